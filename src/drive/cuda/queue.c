/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue: what is in flight, order between queues, ends.
 *
 * Structure  an event per launch would cost as much as the launch. So operations of
 *            a queue join an open batch; one event is recorded behind the whole batch
 *            when progress() is called, when something has to wait for one of its
 *            operations, or when the batch is full. While BUSY batches of a queue are
 *            in flight, the next batch stays open and grows: the device has work, and
 *            the event of an older batch tells when to look again.
 *            An operation that is timed has an event at its end anyway, and ends its
 *            batch. A staged copy has a batch of its own, whose event is recorded by the
 *            copier that sends the last chunk (stage.c).
 * Invariants (1) an operation is in one batch exactly while its done() is due;
 *                priv[0] is the batch, priv[1] its note, or its status with bit 0
 *                set, or NULL
 *            (2) batches of a queue end in order, operations of a batch too
 *            (3) nothing is put on a stream between the chunks of a staged copy
 *                that the engine gave to the same stream for kernels (gate)
 * Cost       launch and end of an operation: a few dozen instructions and its share
 *            of an event.
 */
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "drive/cuda/dev.h"

#define LOADING_NS UINT64_C(1000000)
#define LOADS_TOLD 64 /* of a device */

#define BUSY 2

struct heddle_cuda_queue *heddle_cuda_queue_of(struct heddle_dev *dev, unsigned number,
                                               unsigned way)
{
    return &dev->queue[number < HEDDLE_CUDA_STREAMS ? number : way];
}

/* --- records ------------------------------------------------------------- */

struct heddle_cuda_note *heddle_cuda_note_get(struct heddle_dev *dev)
{
    struct heddle_cuda_note *n = dev->spare_notes;
    heddle_cu_event begin = NULL, end = NULL;

    if (n != NULL) {
        dev->spare_notes = n->next;
        begin = n->begin;
        end = n->end;
    } else {
        n = heddle_alloc(dev->env.alloc, sizeof(*n));
        if (n == NULL)
            return NULL;
    }
    memset(n, 0, sizeof(*n));
    n->begin = begin;
    n->end = end;
    return n;
}

void heddle_cuda_note_put(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    if (n->pin != NULL)
        heddle_cuda_pin_drop(dev, n->pin);
    n->next = dev->spare_notes;
    dev->spare_notes = n;
}

static heddle_status batch_get(struct heddle_cuda_queue *q, struct heddle_cuda_batch **out)
{
    struct heddle_dev *dev = q->dev;
    struct heddle_cuda_batch *b = dev->spare_batches;
    heddle_cu_result err;

    if (b != NULL) {
        dev->spare_batches = b->next;
    } else {
        b = heddle_zalloc(dev->env.alloc, 1, sizeof(*b));
        if (b == NULL)
            return HEDDLE_ENOMEM;
        err = dev->api.cuEventCreate(&b->event, HEDDLE_CU_EVENT_DISABLE_TIMING);
        if (err != 0) {
            heddle_free(dev->env.alloc, b, sizeof(*b));
            return heddle_cuda_fail(dev, err, "make an event");
        }
    }
    b->next = NULL;
    b->queue = q;
    b->mark = b->event;
    b->given_ns = heddle_cuda_now(dev);
    b->first = b->last = NULL;
    b->nops = 0;
    b->is_recorded = b->is_complete = false;
    b->stage = NULL;
    *out = b;
    return HEDDLE_OK;
}

static void batch_put(struct heddle_dev *dev, struct heddle_cuda_batch *b)
{
    b->next = dev->spare_batches;
    dev->spare_batches = b;
}

/* --- giving -------------------------------------------------------------- */

void heddle_cuda_gate_wait(struct heddle_cuda_queue *q)
{
    if (q->gate == NULL)
        return;
    while (heddle_load_acq(&q->gate->stage->is_sent) == 0)
        sched_yield();
    q->gate = NULL;
}

heddle_status heddle_cuda_prepare(struct heddle_cuda_queue *q)
{
    if (HEDDLE_UNLIKELY(q->gate != NULL))
        heddle_cuda_gate_wait(q);
    if (HEDDLE_UNLIKELY(q->memory_seen != q->dev->memory.seq))
        HEDDLE_TRY(heddle_cuda_memory_fence(q->dev, q));
    if (q->open != NULL)
        return HEDDLE_OK;
    return batch_get(q, &q->open);
}

static void batch_add(struct heddle_cuda_batch *b, struct heddle_op *op,
                      struct heddle_cuda_note *note)
{
    op->next = NULL;
    op->begin_ns = op->end_ns = 0;
    op->priv[0] = b;
    op->priv[1] = note;
    if (note != NULL)
        note->op = op;
    if (b->last != NULL)
        b->last->next = op;
    else
        b->first = op;
    b->last = op;
    b->nops++;
    b->queue->given++;
    b->queue->dev->nflights++;
}

static void queue_append(struct heddle_cuda_queue *q, struct heddle_cuda_batch *b)
{
    if (q->last != NULL)
        q->last->next = b;
    else
        q->first = b;
    q->last = b;
    q->nbatches++;
}

heddle_status heddle_cuda_close(struct heddle_cuda_queue *q)
{
    struct heddle_cuda_batch *b = q->open;
    heddle_cu_result err;

    if (b == NULL || b->nops == 0)
        return HEDDLE_OK;
    heddle_cuda_gate_wait(q);
    err = q->dev->api.cuEventRecord(b->event, q->stream);
    if (err != 0)
        return heddle_cuda_fail(q->dev, err, "record an event");
    b->is_recorded = true;
    q->open = NULL;
    queue_append(q, b);
    return HEDDLE_OK;
}

void heddle_cuda_join(struct heddle_cuda_queue *q, struct heddle_op *op,
                      struct heddle_cuda_note *note)
{
    struct heddle_cuda_batch *b = q->open;

    batch_add(b, op, note);
    if (note != NULL && note->is_timed) { /* its end is marked, and matters */
        b->mark = note->end;
        b->is_recorded = true;
        q->open = NULL;
        queue_append(q, b);
        return;
    }
    /* When that fails, the batch stays open: progress() tries again. */
    if (b->nops >= HEDDLE_CUDA_BATCH)
        (void)!heddle_cuda_close(q);
}

heddle_status heddle_cuda_join_stage(struct heddle_cuda_queue *q, struct heddle_op *op,
                                     struct heddle_cuda_note *note)
{
    struct heddle_cuda_batch *b = NULL;

    HEDDLE_TRY(heddle_cuda_close(q));
    HEDDLE_TRY(batch_get(q, &b));
    b->stage = note;
    b->is_recorded = true; /* once it is sent */
    note->sent = b->event;
    batch_add(b, op, note);
    queue_append(q, b);
    if (q - q->dev->queue < HEDDLE_CUDA_STREAMS)
        q->gate = b;
    return HEDDLE_OK;
}

/* --- order --------------------------------------------------------------- */

static heddle_status event_wait(struct heddle_dev *dev, heddle_cu_stream to, heddle_cu_event event)
{
    const heddle_cu_result err = dev->api.cuStreamWaitEvent(to, event, 0);

    if (err != 0)
        return heddle_cuda_fail(dev, err, "order two streams");
    return HEDDLE_OK;
}

/* Every stream behind `number`, unless it is `from` itself. */
static heddle_status number_wait(struct heddle_dev *dev, unsigned number, heddle_cu_stream from,
                                 heddle_cu_event event)
{
    if (number < HEDDLE_CUDA_STREAMS) {
        struct heddle_cuda_queue *q = &dev->queue[number];

        if (q->stream == from)
            return HEDDLE_OK;
        heddle_cuda_gate_wait(q);
        return event_wait(dev, q->stream, event);
    }
    for (unsigned i = HEDDLE_CUDA_IN; i <= HEDDLE_CUDA_PEER; i++) {
        heddle_cu_stream to = dev->queue[i].stream;

        if (to != NULL && to != from)
            HEDDLE_TRY(event_wait(dev, to, event));
    }
    return HEDDLE_OK;
}

heddle_status heddle_cuda_queue_event(struct heddle_cuda_queue *q, heddle_cu_event *event_out)
{
    *event_out = NULL;
    HEDDLE_TRY(heddle_cuda_close(q));
    if (q->last == NULL)
        return HEDDLE_OK;
    heddle_cuda_gate_wait(q);
    *event_out = q->last->mark;
    return HEDDLE_OK;
}

heddle_status heddle_cuda_wait_queue(struct heddle_dev *dev, unsigned number,
                                     struct heddle_cuda_queue *from)
{
    heddle_cu_event event;

    HEDDLE_TRY(heddle_cuda_queue_event(from, &event));
    if (event == NULL)
        return HEDDLE_OK;
    return number_wait(dev, number, from->stream, event);
}

/* The event of a batch, on its stream. */
static heddle_status batch_record(struct heddle_cuda_batch *b)
{
    struct heddle_dev *dev = b->queue->dev;

    if (b->stage != NULL)
        while (heddle_load_acq(&b->stage->is_sent) == 0)
            sched_yield();
    if (b->is_recorded)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_cuda_enter(dev));
    return heddle_cuda_close(b->queue);
}

static struct heddle_cuda_note *note_of(const struct heddle_op *op)
{
    const uintptr_t p = (uintptr_t)op->priv[1];

    return (p & 1) != 0 ? NULL : op->priv[1];
}

heddle_status heddle_cuda_order(struct heddle_dev *dev, unsigned stream, struct heddle_op *op)
{
    struct heddle_cuda_batch *b = op->priv[0];
    struct heddle_cuda_queue *q = b->queue;
    struct heddle_cuda_note *n = note_of(op);

    if (dev->is_lost)
        return HEDDLE_EDEV;
    if (b->is_complete || q->dev->is_lost)
        return HEDDLE_OK;
    if (q->dev == dev && stream < HEDDLE_CUDA_STREAMS && q == &dev->queue[stream])
        return HEDDLE_OK;
    /* Bytes on the host: another device does not know of them; for this one see
     * heddle_cuda_copy(). */
    if (n != NULL && n->is_out && q->dev != dev) {
        HEDDLE_TRY(heddle_cuda_enter(q->dev));
        return heddle_cuda_copy_settle(q->dev, n);
    }
    if (n != NULL && n->is_out && !n->is_ordered && !n->has_landed) {
        n->is_ordered = true;
        q->dev->nordered++;
    }
    HEDDLE_TRY(batch_record(b));
    HEDDLE_TRY(heddle_cuda_enter(dev));
    return number_wait(dev, stream, q->stream, b->mark);
}

/* --- ends ---------------------------------------------------------------- */

/* The first uses of a library and of its kernels make the host load them while the
 * stream waits: what the host took is most of what passed between the marks. Some
 * functions may do so for ever, so only the first ones are told. */
static bool note_is_loading(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    const uint64_t ns = n->op->end_ns - n->op->begin_ns;

    if (n->host_ns < LOADING_NS || ns > 2 * n->host_ns || dev->nloads == LOADS_TOLD)
        return false;
    dev->nloads++;
    return true;
}

static void op_end(struct heddle_dev *dev, struct heddle_op *op, heddle_status st)
{
    const uintptr_t tag = (uintptr_t)op->priv[1];
    struct heddle_cuda_note *n = note_of(op);

    if (n != NULL) {
        if (st == HEDDLE_OK)
            st = n->st;
        if (n->is_timed && !dev->is_lost) {
            op->is_rough = false;
            heddle_cuda_note_times(dev, n);
            op->is_loading = note_is_loading(dev, n);
        } else if (n->given_ns != 0) {
            op->is_rough = false;
            op->begin_ns = n->given_ns;
            op->end_ns = heddle_cuda_now(dev);
        }
        if (n->host != NULL) {
            if (st == HEDDLE_OK)
                heddle_cuda_copy_land(n);
            heddle_cuda_copy_forget(dev, n);
        }
        heddle_cuda_note_put(dev, n);
    } else if (tag != 0 && st == HEDDLE_OK) {
        st = (heddle_status)(-(int)(tag >> 1));
    }
    op->priv[0] = op->priv[1] = NULL;
    dev->nflights--;
    op->done(op, st);
}

/* Operations that were not timed share the time of their batch. The ns of each;
 * *begin_out: of the first. */
static uint64_t batch_share(struct heddle_cuda_batch *b, uint64_t *begin_out)
{
    struct heddle_cuda_queue *q = b->queue;
    const uint64_t now = heddle_cuda_now(q->dev);
    uint64_t begin = b->given_ns > q->ended_ns ? b->given_ns : q->ended_ns;

    *begin_out = now;
    if (b->nops == 0)
        return 0;
    q->ended_ns = now;
    if (begin > now)
        begin = now;
    *begin_out = begin;
    return (now - begin) / b->nops;
}

static unsigned batch_end(struct heddle_cuda_batch *b, heddle_status st)
{
    struct heddle_dev *dev = b->queue->dev;
    struct heddle_op *op = b->first, *next;
    const unsigned nops = b->nops;
    uint64_t begin, share;

    b->is_complete = true;
    share = batch_share(b, &begin);
    b->queue->ended += nops;
    if (b->queue->gate == b)
        b->queue->gate = NULL;
    for (; op != NULL; op = next) {
        next = op->next;
        HEDDLE_PREFETCH_W(next);
        op->is_rough = true;
        op->begin_ns = begin;
        op->end_ns = begin += share;
        op_end(dev, op, st);
    }
    batch_put(dev, b);
    return nops;
}

static struct heddle_cuda_batch *queue_pop(struct heddle_cuda_queue *q)
{
    struct heddle_cuda_batch *b = q->first;

    q->first = b->next;
    if (q->first == NULL)
        q->last = NULL;
    q->nbatches--;
    return b;
}

/* A lost device: nothing can be awaited of it. But a copier may still be reading
 * or writing the host's memory. */
static unsigned end_all(struct heddle_dev *dev)
{
    unsigned nended = 0;

    for (unsigned i = 0; i < HEDDLE_CUDA_QUEUES; i++) {
        struct heddle_cuda_queue *q = &dev->queue[i];

        while (q->first != NULL) {
            struct heddle_cuda_batch *b = queue_pop(q);

            if (b->stage != NULL)
                while (heddle_load_acq(&b->stage->is_sent) == 0 ||
                       heddle_load_acq(&b->stage->left) != 0)
                    sched_yield();
            nended += batch_end(b, HEDDLE_EDEV);
        }
        if (q->open != NULL) {
            struct heddle_cuda_batch *b = q->open;

            q->open = NULL;
            nended += batch_end(b, HEDDLE_EDEV);
        }
    }
    return nended;
}

/* HEDDLE_AGAIN: not yet. What CUDA reports here is the end of the device. */
static heddle_status batch_poll(struct heddle_dev *dev, struct heddle_cuda_batch *b)
{
    struct heddle_cuda_note *n = b->stage;
    heddle_cu_result err;

    if (n != NULL && heddle_load_acq(&n->left) != 0)
        return HEDDLE_AGAIN;
    err = dev->api.cuEventQuery(b->mark);
    if (err == HEDDLE_CU_NOT_READY)
        return HEDDLE_AGAIN;
    if (err != 0) {
        (void)!heddle_cuda_fail(dev, err, "run what was given to it");
        dev->is_lost = true;
        return HEDDLE_EDEV;
    }
    if (n != NULL && heddle_load_rlx(&n->error) != 0)
        return heddle_cuda_fail(dev, heddle_load_rlx(&n->error), "copy");
    return HEDDLE_OK;
}

/* No more than what is in flight now: done() may go on for ever. */
static unsigned queue_progress(struct heddle_cuda_queue *q)
{
    struct heddle_dev *dev = q->dev;
    unsigned nended = 0;

    if (q->open != NULL && q->open->nops != 0 && q->nbatches < BUSY &&
        heddle_cuda_close(q) != HEDDLE_OK && dev->is_lost)
        return 0;
    for (unsigned n = q->nbatches; n > 0; n--) {
        const heddle_status st = batch_poll(dev, q->first);

        if (st == HEDDLE_AGAIN || dev->is_lost)
            break;
        nended += batch_end(queue_pop(q), st);
        if (dev->is_lost)
            break;
    }
    return nended;
}

unsigned heddle_cuda_progress(struct heddle_dev *dev)
{
    unsigned nended = 0;

    if (dev->nflights == 0)
        return 0;
    if (!dev->is_lost && heddle_cuda_enter(dev) == HEDDLE_OK) {
        for (unsigned i = 0; i < HEDDLE_CUDA_QUEUES && !dev->is_lost; i++)
            if (dev->queue[i].given != dev->queue[i].ended)
                nended += queue_progress(&dev->queue[i]);
        if (dev->clock.is_probing && !dev->is_lost)
            heddle_cuda_clock_poll(dev);
    }
    if (dev->is_lost)
        nended += end_all(dev);
    return nended;
}

void heddle_cuda_queues_fini(struct heddle_dev *dev)
{
    const struct heddle_cuda_api *api = &dev->api;

    for (unsigned i = 0; i < HEDDLE_CUDA_QUEUES; i++) {
        struct heddle_cuda_queue *q = &dev->queue[i];

        HEDDLE_ASSERT(q->first == NULL);
        if (q->open != NULL)
            batch_put(dev, q->open);
        q->open = NULL;
        if (q->stream == NULL || i > HEDDLE_CUDA_PEER)
            continue;
        if (!dev->is_lost)
            api->cuStreamSynchronize(q->stream);
        api->cuStreamDestroy_v2(q->stream);
    }
    while (dev->spare_batches != NULL) {
        struct heddle_cuda_batch *b = dev->spare_batches;

        dev->spare_batches = b->next;
        api->cuEventDestroy_v2(b->event);
        heddle_free(dev->env.alloc, b, sizeof(*b));
    }
    while (dev->spare_notes != NULL) {
        struct heddle_cuda_note *n = dev->spare_notes;

        dev->spare_notes = n->next;
        if (n->begin != NULL)
            api->cuEventDestroy_v2(n->begin);
        if (n->end != NULL)
            api->cuEventDestroy_v2(n->end);
        heddle_free(dev->env.alloc, n, sizeof(*n));
    }
}
