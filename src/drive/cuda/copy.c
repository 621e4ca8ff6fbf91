/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy: copies between the host and the device, and between devices.
 *
 * Structure  three ways, simplified shapes first:
 *            direct   pinned memory, one run or runs at one distance: one command
 *            small    up to HEDDLE_CUDA_SMALL bytes through a slot of pinned memory:
 *                     gathered here, or scattered in progress()
 *            staged   the rest, in chunks, by the copiers (stage.c)
 * Order      a copy out through pinned memory reaches the host later than the
 *            stream does, and a gather comes earlier. A copy that touches host
 *            memory which an earlier copy out has still to write waits for that one
 *            (settle), when the two are on one stream or were ordered. The engine
 *            never has two transfers of the same bytes in flight: it is rare.
 */
#include <sched.h>

#include "base/assert.h"
#include "drive/cuda/dev.h"
#include "drive/runs.h"

#define MIN_ROW   ((size_t)256)        /* shorter ones are gathered */
#define MAX_PITCH ((size_t)0x7fffffff) /* of a 2-d command */

/* --- copies out and the threads that wait ---------------------------------- */

static void outs_add(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    n->is_out = true;
    n->prev_out = NULL;
    n->next_out = dev->outs;
    if (dev->outs != NULL)
        dev->outs->prev_out = n;
    dev->outs = n;
}

void heddle_cuda_copy_forget(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    if (n->slot != NULL)
        heddle_cuda_slot_put(dev, n->slot);
    n->slot = NULL;
    if (!n->is_out)
        return;
    if (n->prev_out != NULL)
        n->prev_out->next_out = n->next_out;
    else
        dev->outs = n->next_out;
    if (n->next_out != NULL)
        n->next_out->prev_out = n->prev_out;
    if (n->is_ordered)
        dev->nordered--;
    n->is_out = n->is_ordered = false;
}

void heddle_cuda_copy_land(struct heddle_cuda_note *n)
{
    if (n->is_out && !n->has_landed && n->slot != NULL)
        heddle_runs_scatter(&n->runs, n->slot, n->host);
    n->has_landed = true;
}

heddle_status heddle_cuda_copy_settle(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    struct heddle_cuda_batch *b = n->op->priv[0];
    heddle_cu_result err;

    if (n->has_landed)
        return HEDDLE_OK;
    if (b->stage != NULL) {
        while (heddle_load_acq(&n->left) != 0)
            sched_yield();
        n->has_landed = true;
        return HEDDLE_OK;
    }
    if (!b->is_recorded)
        HEDDLE_TRY(heddle_cuda_close(b->queue));
    err = dev->api.cuEventSynchronize(b->mark);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "wait for a copy");
    heddle_cuda_copy_land(n);
    return HEDDLE_OK;
}

static heddle_status copy_settle_overlaps(struct heddle_dev *dev, const struct heddle_cuda_note *c)
{
    const bool is_kernels = c->number < HEDDLE_CUDA_STREAMS;
    struct heddle_cuda_note *n;

    if (dev->outs == NULL || (!is_kernels && dev->nordered == 0))
        return HEDDLE_OK;
    for (n = dev->outs; n != NULL; n = n->next_out)
        if ((n->is_ordered || (is_kernels && n->number == c->number)) &&
            n->host < c->host + c->span && c->host < n->host + n->span)
            HEDDLE_TRY(heddle_cuda_copy_settle(dev, n));
    return HEDDLE_OK;
}

/* --- the three ways ------------------------------------------------------ */

static heddle_cu_result give_line(struct heddle_cuda_queue *q, const struct heddle_cuda_note *n,
                                  void *host)
{
    const struct heddle_cuda_api *api = &q->dev->api;

    if (n->kind == HEDDLE_COPY_IN)
        return api->cuMemcpyHtoDAsync_v2(n->ptr, host, n->bytes, q->stream);
    return api->cuMemcpyDtoHAsync_v2(host, n->ptr, n->bytes, q->stream);
}

static heddle_cu_result give_rows(struct heddle_cuda_queue *q, const struct heddle_cuda_note *n)
{
    const struct heddle_runs *r = &n->runs;
    const heddle_cu_side host = {
        .type = HEDDLE_CU_MEMORY_HOST, .host = n->host, .pitch = r->step[0]};
    const heddle_cu_side device = {
        .type = HEDDLE_CU_MEMORY_DEVICE, .device = n->ptr, .pitch = r->run_bytes};
    const bool is_in = n->kind == HEDDLE_COPY_IN;
    const heddle_cu_copy2d c = {.from = is_in ? host : device,
                                .to = is_in ? device : host,
                                .width_bytes = r->run_bytes,
                                .height = r->count[0]};

    return q->dev->api.cuMemcpy2DAsync_v2(&c, q->stream);
}

static bool is_rows(const struct heddle_runs *r)
{
    return r->ndim == 1 && r->run_bytes >= MIN_ROW && r->step[0] >= r->run_bytes &&
           r->step[0] <= MAX_PITCH;
}

/* HEDDLE_AGAIN: CUDA does not take that memory; try another way. */
static heddle_status copy_direct(struct heddle_cuda_queue *q, struct heddle_cuda_note *n,
                                 struct heddle_op *op)
{
    struct heddle_dev *dev = q->dev;
    heddle_cu_result err;

    HEDDLE_TRY(heddle_cuda_prepare(q));
    heddle_cuda_note_begin(q, n);
    if (n->slot != NULL)
        err = give_line(q, n, n->slot);
    else if (n->runs.ndim == 0)
        err = give_line(q, n, n->host);
    else
        err = give_rows(q, n);
    if (err == HEDDLE_CU_INVALID_VALUE && n->slot == NULL) {
        heddle_cuda_pin_doubt(dev, n->host);
        return HEDDLE_AGAIN;
    }
    if (err != 0)
        return heddle_cuda_fail(dev, err, "copy");
    heddle_cuda_note_end(q, n);
    heddle_cuda_join(q, op, n);
    return HEDDLE_OK;
}

static heddle_status copy_small(struct heddle_cuda_queue *q, struct heddle_cuda_note *n,
                                struct heddle_op *op)
{
    if (n->kind == HEDDLE_COPY_IN)
        heddle_runs_gather(&n->runs, n->host, n->slot);
    return copy_direct(q, n, op);
}

static heddle_status copy_staged(struct heddle_dev *dev, struct heddle_cuda_note *n,
                                 struct heddle_op *op)
{
    struct heddle_cuda_queue *q = heddle_cuda_queue_of(
        dev, n->number, n->kind == HEDDLE_COPY_IN ? HEDDLE_CUDA_STAGED_IN : HEDDLE_CUDA_STAGED_OUT);

    HEDDLE_TRY(heddle_cuda_stage_start(dev));
    HEDDLE_TRY(heddle_cuda_prepare(q));
    n->is_timed = false;
    n->given_ns = heddle_cuda_now(dev);
    n->stream = q->stream;
    HEDDLE_TRY(heddle_cuda_join_stage(q, op, n));
    heddle_cuda_stage_give(dev, n);
    return HEDDLE_OK;
}

static heddle_status copy_give(struct heddle_dev *dev, struct heddle_cuda_note *n,
                               struct heddle_op *op)
{
    struct heddle_cuda_queue *q = heddle_cuda_queue_of(
        dev, n->number, n->kind == HEDDLE_COPY_IN ? HEDDLE_CUDA_IN : HEDDLE_CUDA_OUT);
    heddle_status st;

    HEDDLE_TRY(copy_settle_overlaps(dev, n));
    if (n->runs.ndim == 0 || is_rows(&n->runs))
        n->pin = heddle_cuda_pin_hold(dev, n->host, n->span);
    if (n->pin != NULL) {
        st = copy_direct(q, n, op);
        if (st != HEDDLE_AGAIN)
            return st;
    }
    if (n->bytes <= HEDDLE_CUDA_SMALL)
        n->slot = heddle_cuda_slot_get(dev);
    if (n->slot != NULL)
        return copy_small(q, n, op);
    return copy_staged(dev, n, op);
}

/* --- peers --------------------------------------------------------------- */

/* Opens the memory of `to` for this device, once. */
static bool peer_open(struct heddle_dev *dev, struct heddle_dev *to)
{
    const heddle_cu_access access = {{HEDDLE_CU_LOCATION_DEVICE, dev->id},
                                     HEDDLE_CU_ACCESS_READ_WRITE};
    const struct heddle_cuda_api *api = &dev->api;
    struct heddle_cuda_queue *q = &dev->queue[HEDDLE_CUDA_PEER];
    heddle_cu_result err;
    int can = 0;

    if (dev->id == to->id || heddle_cuda_enter(dev) != HEDDLE_OK ||
        api->cuDeviceCanAccessPeer(&can, dev->id, to->id) != 0 || can == 0)
        return false;
    err = api->cuCtxEnablePeerAccess(to->context, 0);
    if (err != 0 && err != HEDDLE_CU_PEER_ACCESS_ALREADY_ENABLED)
        return false;
    if (to->memory.has_pool && api->cuMemPoolSetAccess(to->memory.pool, &access, 1) != 0)
        return false;
    return q->stream != NULL || api->cuStreamCreate(&q->stream, HEDDLE_CU_STREAM_NON_BLOCKING) == 0;
}

bool heddle_cuda_can_peer(struct heddle_dev *dev, struct heddle_dev *to)
{
    uint64_t bit;

    if (heddle_dev_base(to)->driver != &heddle_driver_cuda || dev->is_lost || to->is_lost)
        return false;
    bit = UINT64_C(1) << (to->id & 63);
    if ((dev->peers_asked & bit) == 0) {
        dev->peers_asked |= bit;
        if (peer_open(dev, to))
            dev->peers_open |= bit;
    }
    return (dev->peers_open & bit) != 0;
}

static heddle_status copy_peer(struct heddle_dev *dev, const struct heddle_copy *c,
                               struct heddle_cuda_note *n, struct heddle_op *op)
{
    struct heddle_cuda_queue *q = &dev->queue[HEDDLE_CUDA_PEER];
    heddle_cu_result err;

    HEDDLE_TRY(heddle_cuda_prepare(q));
    HEDDLE_TRY(heddle_cuda_memory_fence(c->peer, q));
    heddle_cuda_note_begin(q, n);
    err = dev->api.cuMemcpyPeerAsync((heddle_cu_ptr)(uintptr_t)c->peer_ptr, c->peer->context,
                                     n->ptr, dev->context, n->bytes, q->stream);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "copy to another device");
    heddle_cuda_note_end(q, n);
    heddle_cuda_join(q, op, n);
    return HEDDLE_OK;
}

/* --- the call ------------------------------------------------------------ */

heddle_status heddle_cuda_copy(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                               struct heddle_op *op)
{
    struct heddle_cuda_note *n;
    heddle_status st;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    if (c->kind == HEDDLE_COPY_PEER && !heddle_cuda_can_peer(dev, c->peer))
        return HEDDLE_ENOSYS;
    HEDDLE_ASSERT(heddle_runs_bytes(&c->runs) > 0);
    n = heddle_cuda_note_get(dev);
    if (n == NULL)
        return HEDDLE_ENOMEM;
    n->op = op;
    n->kind = c->kind;
    n->number = stream;
    n->ptr = (heddle_cu_ptr)(uintptr_t)c->ptr;
    n->runs = heddle_runs_simplify(&c->runs);
    n->bytes = heddle_runs_bytes(&n->runs);
    n->span = heddle_runs_span(&n->runs);
    if (c->kind == HEDDLE_COPY_PEER) {
        st = copy_peer(dev, c, n, op);
    } else {
        n->host = c->host;
        st = copy_give(dev, n, op);
        if (st == HEDDLE_OK && c->kind == HEDDLE_COPY_OUT)
            outs_add(dev, n);
    }
    if (st != HEDDLE_OK) {
        heddle_cuda_copy_forget(dev, n);
        heddle_cuda_note_put(dev, n);
    }
    return st;
}
