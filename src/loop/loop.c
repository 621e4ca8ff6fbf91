/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: a range as a task that splits itself, see heddle/loop.h.
 *
 * Splitting  a task halves its range until what is left is at most the grain, and
 *            submits each upper half as a child. The depth of children is the logarithm
 *            of the number of ranges, and the queue of a worker has its largest range
 *            where others steal.
 * Failure    the first failure is kept in the loop, whose caller gets it; ranges that
 *            begin later end at once. The tasks themselves end well: a failure that the
 *            caller has in its hands is not told by heddle_wait() a second time.
 */
#include "heddle/loop.h"

#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

enum { LOOP_RANGES = 8 }; /* per worker, when no grain is given */

/* One loop; lives on the stack of the caller, who waits for its end. */
struct loop {
    heddle_range_fn body;
    void *arg;
    size_t grain;
    _Atomic int failed; /* status of a range that failed; 0: none */
};

struct loop_range {
    struct loop *loop;
    size_t begin, end;
};

static heddle_status range_run(struct heddle_exec *x);

static const heddle_kernel range_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "parallel_for",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = range_run}},
};

static heddle_status range_split(struct heddle_exec *x, struct loop_range *r)
{
    while (r->end - r->begin > r->loop->grain) {
        struct loop_range upper = *r;

        upper.begin += (r->end - r->begin) / 2;
        r->end = upper.begin;
        HEDDLE_TRY(heddle_exec_submit(
            x, &range_kernel, &(struct heddle_call){.arg = &upper, .arg_bytes = sizeof(upper)}));
    }
    return HEDDLE_OK;
}

static void loop_failed(struct loop *l, heddle_status st)
{
    int none = 0;

    /* Relaxed: the end of the tasks carries the order. */
    if (st != HEDDLE_OK)
        (void)atomic_compare_exchange_strong_explicit(&l->failed, &none, (int)st,
                                                      memory_order_relaxed, memory_order_relaxed);
}

static heddle_status loop_status(struct loop *l, heddle_status waited)
{
    const int failed = heddle_load_rlx(&l->failed); /* all tasks have ended */

    return failed != 0 ? (heddle_status)failed : waited;
}

/* Gives parts of the range away and runs the rest. */
static void range_work(struct heddle_exec *x, struct loop_range *r)
{
    const heddle_status st = range_split(x, r);

    loop_failed(r->loop, st != HEDDLE_OK ? st : r->loop->body(r->loop->arg, r->begin, r->end));
}

static heddle_status range_run(struct heddle_exec *x)
{
    struct loop_range r = *(const struct loop_range *)heddle_exec_arg(x);

    /* Relaxed: a range that begins all the same only costs time. */
    if (heddle_load_rlx(&r.loop->failed) == 0)
        range_work(x, &r);
    return HEDDLE_OK;
}

static size_t loop_grain(heddle_ctx *ctx, size_t n, size_t grain)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    if (grain != 0)
        return grain;
    if (heddle_ctx_get_stats(ctx, &s) != HEDDLE_OK || s.nworkers == 0)
        return n;
    return (n - 1) / ((size_t)LOOP_RANGES * s.nworkers) + 1;
}

heddle_status heddle_parallel_for(heddle_ctx *ctx, size_t begin, size_t end, size_t grain,
                                  heddle_range_fn body, void *arg)
{
    struct loop loop = {.body = body, .arg = arg};
    struct loop_range all = {&loop, begin, end};
    heddle_event *done = NULL;
    heddle_status st;

    HEDDLE_CHECK(ctx != NULL && body != NULL);
    if (begin >= end)
        return HEDDLE_OK;
    loop.grain = loop_grain(ctx, end - begin, grain);
    st = heddle_submit(
        ctx, &range_kernel,
        &(struct heddle_call){.arg = &all,
                              .arg_bytes = sizeof(all),
                              .opts = &(struct heddle_task_opts){
                                  .size = sizeof(struct heddle_task_opts), .event_out = &done}});
    if (st != HEDDLE_OK)
        return st;
    st = heddle_event_wait(done, 0);
    heddle_event_unref(done);
    return loop_status(&loop, st);
}

heddle_status heddle_exec_parallel_for(struct heddle_exec *x, size_t begin, size_t end,
                                       size_t grain, heddle_range_fn body, void *arg)
{
    struct loop loop = {.body = body, .arg = arg};
    struct loop_range all = {&loop, begin, end};
    heddle_status st;

    HEDDLE_CHECK(x != NULL && body != NULL);
    if (begin >= end)
        return HEDDLE_OK;
    loop.grain = loop_grain(heddle_exec_ctx(x), end - begin, grain);
    range_work(x, &all);
    st = heddle_exec_wait(x); /* children use `loop` */
    return loop_status(&loop, st);
}
