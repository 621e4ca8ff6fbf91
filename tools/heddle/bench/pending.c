/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/pending: memory of a task that waits.
 *
 * How        every one of 1024 handles is held by a task that waits for an
 *            event; then tasks with three operands are submitted, none of which
 *            can start. The heap of the context grows by what they take.
 */
#include <stdlib.h>

#include "base/atomic.h"
#include "bench/bench.h"

enum { PENDING_TASKS = 100000 };

static heddle_status hold_all(struct stream *s, heddle_event *gate)
{
    heddle_event *const after[] = {gate};
    const struct heddle_task_opts opts = {.size = sizeof(opts), .after = after, .nafter = 1};
    struct heddle_call call = {.opts = &opts};
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < s->nhandles && st == HEDDLE_OK; i++) {
        call.operand[0] = s->handle[i];
        st = heddle_submit(s->ctx, stream_kernel(false, CHOLESKY_POTRF), &call);
    }
    return st;
}

static heddle_status submit_all(const struct stream *s)
{
    struct heddle_call call = {.priority = 0};
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < s->ntasks && st == HEDDLE_OK; i++) {
        for (unsigned o = 0; o < 3; o++)
            call.operand[o] = s->handle[s->task[i].h[o]];
        st = heddle_submit(s->ctx, stream_kernel(false, s->task[i].kind), &call);
    }
    return st;
}

static heddle_status measure(heddle_ctx *ctx, const struct bench_opts *o,
                             const struct bench_memory *m, double *out)
{
    struct stream s;
    heddle_event *gate = NULL;
    heddle_status st = stream_open(&s, ctx, STREAM_RANDOM, o);
    int64_t before = 0, after = 0;

    if (st == HEDDLE_OK)
        st = heddle_event_create(ctx, &gate);
    if (st == HEDDLE_OK)
        st = hold_all(&s, gate);
    before = heddle_load_rlx(&m->live); /* nothing runs */
    if (st == HEDDLE_OK)
        st = submit_all(&s);
    after = heddle_load_rlx(&m->live); /* nothing runs */
    if (gate != NULL) {
        heddle_event_complete(gate, HEDDLE_OK);
        heddle_event_unref(gate);
    }
    if (heddle_wait(ctx) != HEDDLE_OK && st == HEDDLE_OK)
        st = HEDDLE_ETASK;
    stream_close(&s);
    *out = (double)(after - before) / PENDING_TASKS;
    return st;
}

int bench_pending_bytes(struct cli *c, const struct bench_opts *o, double *out)
{
    struct bench_opts mine = *o;
    struct bench_memory m;
    heddle_ctx *ctx = NULL;
    heddle_status st;
    int rc;

    mine.window = 2 * PENDING_TASKS; /* the submission must not wait */
    mine.tasks = PENDING_TASKS;
    mine.task_ns = 0;
    mine.log = NULL;
    rc = bench_open(c, &mine, &m, &ctx);
    if (rc != 0)
        return rc;
    st = measure(ctx, &mine, &m, out);
    if (st != HEDDLE_OK)
        rc = bench_fail(c, ctx, st);
    return rc != 0 ? (heddle_ctx_destroy(ctx), rc) : bench_close(c, &m, ctx);
}
