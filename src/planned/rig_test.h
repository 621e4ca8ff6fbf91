/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLANNED_RIG_TEST_H
#define HEDDLE_PLANNED_RIG_TEST_H

/* For tests: a chain that is read backwards. Its data live long, so that with a small budget
 * tasks run again. */
#include <stdatomic.h>

#include "heddle/heddle.h"
#include "heddle/planned.h"
#include "tests/test.h"

enum { N = 12, LEN = 40 };

struct rig {
    heddle_ctx *ctx;
    heddle_handle *temp[N + 1]; /* the last one: the sum */
    heddle_handle *in, *out;
    int64_t input[LEN], output[LEN];
    heddle_graph *graph;
};

static _Atomic int runs[2 * N + 2];
static _Atomic int fails_at; /* 1 + task; 0: none */

struct arg {
    int task;
    int64_t add;
};

static inline heddle_status run_step(struct heddle_exec *x)
{
    const struct arg *a = heddle_exec_arg(x);
    const int64_t *from = heddle_exec_ptr(x, 0);
    int64_t *to = heddle_exec_ptr(x, 1);

    atomic_fetch_add(&runs[a->task], 1);
    if (atomic_load(&fails_at) == a->task + 1)
        return heddle_exec_fail(x, HEDDLE_EIO, "this one fails");
    for (int i = 0; i < LEN; i++)
        to[i] = from[i] * 3 + a->add;
    return HEDDLE_OK;
}

/* sum = sum * 5 + from */
static inline heddle_status run_fold(struct heddle_exec *x)
{
    const struct arg *a = heddle_exec_arg(x);
    const int64_t *from = heddle_exec_ptr(x, 0);
    int64_t *to = heddle_exec_ptr(x, 1);

    atomic_fetch_add(&runs[a->task], 1);
    if (atomic_load(&fails_at) == a->task + 1)
        return heddle_exec_fail(x, HEDDLE_EIO, "this one fails");
    for (int i = 0; i < LEN; i++)
        to[i] = to[i] * 5 + from[i];
    return HEDDLE_OK;
}

static const heddle_kernel step_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "step",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_step}}};
static const heddle_kernel fold_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "fold",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_fold}}};
static inline heddle_status submit(struct rig *r, const heddle_kernel *k, int task,
                                   heddle_handle *a, heddle_handle *b)
{
    const struct arg arg = {task, task};

    return heddle_graph_submit(
        r->graph, k,
        &(struct heddle_call){.operand = {a, b}, .arg = &arg, .arg_bytes = sizeof(arg)});
}

/* temp 0 = step(in), temp i = step(temp i - 1), sum = step(temp N - 1), then sum = fold of
 * temp N - 2 ... 0, out = step(sum). */
static inline heddle_status rig_record(struct rig *r)
{
    heddle_status st = heddle_graph_begin(r->ctx, &r->graph);
    int task = 0;

    for (int i = 0; i <= N && st == HEDDLE_OK; i++)
        st = submit(r, &step_kernel, task++, i == 0 ? r->in : r->temp[i - 1], r->temp[i]);
    for (int i = N - 2; i >= 0 && st == HEDDLE_OK; i--)
        st = submit(r, &fold_kernel, task++, r->temp[i], r->temp[N]);
    if (st == HEDDLE_OK)
        st = submit(r, &step_kernel, task++, r->temp[N], r->out);
    return st == HEDDLE_OK ? heddle_graph_end(r->graph) : st;
}

static inline heddle_status rig_open(struct rig *r, unsigned nworkers,
                                     const struct heddle_allocator *a)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .bind = HEDDLE_OFF,
                                      .log = HEDDLE_OFF,
                                      .energy = "off",
                                      .devices = "none",
                                      .model_dir = "",
                                      .ignore_env = true,
                                      .allocator = a != NULL ? *a : (struct heddle_allocator){0}};
    heddle_status st;

    memset(r, 0, sizeof(*r));
    memset(runs, 0, sizeof(runs));
    for (int i = 0; i < LEN; i++)
        r->input[i] = i;
    st = heddle_ctx_create(&o, &r->ctx);
    for (int i = 0; i <= N && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(r->ctx, NULL, LEN, HEDDLE_I64, &r->temp[i]);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(r->ctx, r->input, LEN, HEDDLE_I64, &r->in);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(r->ctx, r->output, LEN, HEDDLE_I64, &r->out);
    return st == HEDDLE_OK ? rig_record(r) : st;
}

static inline void rig_close(struct rig *r)
{
    heddle_graph_unref(r->graph);
    for (int i = 0; i <= N; i++)
        heddle_handle_unref(r->temp[i]);
    heddle_handle_unref(r->in);
    heddle_handle_unref(r->out);
    if (r->ctx != NULL)
        (void)heddle_ctx_destroy(r->ctx);
}

static inline struct heddle_planned_opts rig_opts(struct rig *r, uint64_t values,
                                                  char why[static 200])
{
    why[0] = '\0';
    return (struct heddle_planned_opts){.size = sizeof(struct heddle_planned_opts),
                                        .why = why,
                                        .why_bytes = 200,
                                        .temporary = r->temp,
                                        .ntemporaries = N + 1,
                                        .budget = values * LEN * sizeof(int64_t),
                                        .time_limit_s = 0.02,
                                        .is_watched = true};
}

/* What the graph computes from `input`; `extra` is added by task `who`. */
static inline void expect(const int64_t *input, int who, int64_t extra, int64_t want[LEN])
{
    for (int i = 0; i < LEN; i++) {
        int64_t v = input[i], at[N + 1];
        int task = 0;

        for (int k = 0; k <= N; k++, task++)
            at[k] = v = v * 3 + (task == who ? extra : task);
        for (int k = N - 2; k >= 0; k--, task++)
            v = v * 5 + at[k];
        want[i] = v * 3 + (task == who ? extra : task);
    }
}

static inline void check_output(const int64_t *input, const int64_t *output, int who, int64_t extra)
{
    int64_t want[LEN];

    expect(input, who, extra, want);
    for (int i = 0; i < LEN; i++)
        CHECK_EQ(output[i], want[i]);
}

/* Tasks that are slow enough for moves to pay: `level` 1 host, 2 disk. */
static inline struct heddle_planned_opts move_opts(struct rig *r, unsigned level,
                                                   const double *seconds, char why[static 200])
{
    struct heddle_planned_opts o = rig_opts(r, 4, why);
    const struct heddle_plan_store store = {.out_rate = 1e6, .in_rate = 1e6};

    if (level == 1)
        o.host = store;
    else
        o.disk = store;
    o.disk_path = ".";
    o.seconds = seconds;
    o.nseconds = 2 * N + 1;
    return o;
}

#endif /* HEDDLE_PLANNED_RIG_TEST_H */
