/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time: times of the device on the context's clock.
 *
 * Structure  CUDA tells only how far apart two events are, in milliseconds as a
 *            float. A reference event whose moment is known on the host turns that
 *            into a moment. A float has 24 bits, and two clocks drift: the reference
 *            is renewed every second, by an event that no stream waits for; when it is
 *            seen soon enough, the host's clock is believed, otherwise the device's.
 */
#include "base/assert.h"
#include "drive/cuda/dev.h"

#define RENEW_NS  UINT64_C(1000000000)
#define SOON_NS   UINT64_C(50000)
#define FIRST_TRY 4 /* times, at the start; the quickest one counts */

static double elapsed_ns(struct heddle_dev *dev, heddle_cu_event from, heddle_cu_event to, bool *ok)
{
    float ms = 0;

    if (dev->api.cuEventElapsedTime(&ms, from, to) != 0)
        *ok = false;
    return (double)ms * 1e6;
}

heddle_status heddle_cuda_clock_init(struct heddle_dev *dev)
{
    const struct heddle_cuda_api *api = &dev->api;
    struct heddle_cuda_clock *c = &dev->clock;
    uint64_t best = UINT64_MAX;
    heddle_cu_result err;

    err = api->cuEventCreate(&c->ref, HEDDLE_CU_EVENT_DEFAULT);
    if (err == 0)
        err = api->cuEventCreate(&c->probe, HEDDLE_CU_EVENT_DEFAULT);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make an event");
    if (dev->env.now_ns == NULL)
        return HEDDLE_OK;
    for (unsigned i = 0; i < FIRST_TRY; i++) {
        const uint64_t before = heddle_cuda_now(dev);
        uint64_t after;

        err = api->cuEventRecord(c->probe, dev->memory.stream);
        if (err == 0)
            err = api->cuEventSynchronize(c->probe);
        if (err != 0)
            return heddle_cuda_fail(dev, err, "record an event");
        after = heddle_cuda_now(dev);
        if (after - before < best) {
            heddle_cu_event e = c->ref;

            best = after - before;
            c->ref = c->probe;
            c->probe = e;
            c->ref_ns = before + best / 2;
        }
    }
    c->next_ns = c->ref_ns + RENEW_NS;
    return HEDDLE_OK;
}

void heddle_cuda_clock_fini(struct heddle_dev *dev)
{
    struct heddle_cuda_clock *c = &dev->clock;

    if (c->ref != NULL)
        dev->api.cuEventDestroy_v2(c->ref);
    if (c->probe != NULL)
        dev->api.cuEventDestroy_v2(c->probe);
}

static void clock_renew(struct heddle_dev *dev, uint64_t seen_ns)
{
    struct heddle_cuda_clock *c = &dev->clock;
    heddle_cu_event old = c->ref;
    bool ok = true;
    const double ns = elapsed_ns(dev, old, c->probe, &ok);

    c->is_probing = false;
    c->next_ns = seen_ns + RENEW_NS;
    if (!ok)
        return;
    if (seen_ns - c->probe_ns < SOON_NS)
        c->ref_ns = c->probe_ns + (seen_ns - c->probe_ns) / 2;
    else
        c->ref_ns += (uint64_t)(int64_t)ns;
    c->ref = c->probe;
    c->probe = old;
}

void heddle_cuda_clock_poll(struct heddle_dev *dev)
{
    struct heddle_cuda_clock *c = &dev->clock;
    heddle_cu_result err;

    if (!c->is_probing) {
        c->probe_ns = heddle_cuda_now(dev);
        if (c->probe_ns < c->next_ns)
            return;
        c->is_probing = dev->api.cuEventRecord(c->probe, dev->memory.stream) == 0;
    }
    if (!c->is_probing)
        return;
    err = dev->api.cuEventQuery(c->probe);
    if (err == 0)
        clock_renew(dev, heddle_cuda_now(dev));
    else if (err != HEDDLE_CU_NOT_READY)
        c->is_probing = false;
}

static bool note_mark(struct heddle_cuda_queue *q, heddle_cu_event *event)
{
    const struct heddle_cuda_api *api = &q->dev->api;

    if (*event == NULL && api->cuEventCreate(event, HEDDLE_CU_EVENT_DEFAULT) != 0) {
        *event = NULL;
        return false;
    }
    return api->cuEventRecord(*event, q->stream) == 0;
}

void heddle_cuda_note_begin(struct heddle_cuda_queue *q, struct heddle_cuda_note *n)
{
    n->is_timed = q->dev->env.now_ns != NULL && note_mark(q, &n->begin);
}

void heddle_cuda_note_end(struct heddle_cuda_queue *q, struct heddle_cuda_note *n)
{
    n->is_timed = n->is_timed && note_mark(q, &n->end);
}

void heddle_cuda_note_times(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    struct heddle_cuda_clock *c = &dev->clock;
    bool ok = true;
    double before, length;

    before = elapsed_ns(dev, c->ref, n->begin, &ok);
    length = elapsed_ns(dev, n->begin, n->end, &ok);
    if (ok && length >= 0 && (double)c->ref_ns + before > 0) {
        n->op->begin_ns = c->ref_ns + (uint64_t)(int64_t)before;
        n->op->end_ns = n->op->begin_ns + (uint64_t)length;
    }
    heddle_cuda_clock_poll(dev);
}
