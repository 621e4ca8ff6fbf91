/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/planned/step: the time of a step under a budget, against what the plan predicted.
 *
 * Graphs    layers Y = f(X W) on matrices, forwards and then backwards, as in training: a
 *           chain; a U, whose second half also reads the first half's results; random
 *           layers of three, each of which reads two of the layers before. Activations and
 *           their gradients are temporary, weights and their gradients are kept.
 * Times     of the tasks: the least of some steps without a limit. Then a plan for each
 *           budget, and steps of the recorded graph and of the planned one in turn: the
 *           least of each, as a sum of least times can only be compared with that.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/planned/planned.h"

enum { NODES = 24, INPUTS = 2, WARM = 5, MAX_REPS = 1000 };

/* --- kernels: all matrices are width x width ---------------------------------------- */

/* c += a b, or c += a' b, or c += a b'. */
static void multiply(size_t n, const float *a, const float *b, float *c, bool is_ta, bool is_tb)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const float x = is_ta ? a[k * n + i] : a[i * n + k];

            if (is_tb) {
                for (size_t j = 0; j < n; j++)
                    c[i * n + k] += a[i * n + j] * b[k * n + j];
            } else {
                for (size_t j = 0; j < n; j++)
                    c[i * n + j] += x * b[k * n + j];
            }
        }
}

static size_t width_of(struct heddle_exec *x)
{
    return heddle_exec_layout(x, 0)->extent[0];
}

/* y = f(sum of inputs times w): y, w, then inputs. */
static heddle_status run_forward(struct heddle_exec *x)
{
    const size_t n = width_of(x);
    float *y = heddle_exec_ptr(x, 0);

    memset(y, 0, n * n * sizeof(*y));
    for (unsigned i = 2; i < heddle_exec_noperands(x); i++)
        multiply(n, heddle_exec_ptr(x, i), heddle_exec_ptr(x, 1), y, false, false);
    for (size_t k = 0; k < n * n; k++)
        y[k] = y[k] / (1 + fabsf(y[k]));
    return HEDDLE_OK;
}

/* The gradient of an input, new or updated: gx, w, gy, y. */
static heddle_status run_backward(struct heddle_exec *x)
{
    const bool *is_new = heddle_exec_arg(x);
    const size_t n = width_of(x);
    const float *gy = heddle_exec_ptr(x, 2), *y = heddle_exec_ptr(x, 3);
    float *gx = heddle_exec_ptr(x, 0), *s = heddle_exec_ptr(x, 4);

    if (*is_new)
        memset(gx, 0, n * n * sizeof(*gx));
    for (size_t k = 0; k < n * n; k++)
        s[k] = gy[k] * (1 - fabsf(y[k])) * (1 - fabsf(y[k]));
    multiply(n, s, heddle_exec_ptr(x, 1), gx, false, true);
    return HEDDLE_OK;
}

/* The gradient of a weight: gw, x, gy. */
static heddle_status run_weight(struct heddle_exec *x)
{
    const size_t n = width_of(x);
    float *gw = heddle_exec_ptr(x, 0);

    memset(gw, 0, n * n * sizeof(*gw));
    multiply(n, heddle_exec_ptr(x, 1), heddle_exec_ptr(x, 2), gw, true, false);
    return HEDDLE_OK;
}

#define STEP_KERNEL(nm, fn)                                                                        \
    static const heddle_kernel nm = {.size = sizeof(heddle_kernel),                                \
                                     .name = #nm,                                                  \
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}}
STEP_KERNEL(forward, run_forward);
STEP_KERNEL(backward, run_backward);
STEP_KERNEL(weight, run_weight);

/* --- graphs --------------------------------------------------------------------------- */

/* Node 0 is the input. */
struct net {
    unsigned nnodes, ninputs[NODES], input[NODES][INPUTS];
};

static void net_add(struct net *t, unsigned node, unsigned input)
{
    for (unsigned i = 0; i < t->ninputs[node]; i++)
        if (t->input[node][i] == input)
            return;
    t->input[node][t->ninputs[node]++] = input;
}

static void net_make(struct net *t, unsigned shape)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, 20);
    *t = (struct net){.nnodes = NODES};
    for (unsigned k = 1; k < NODES; k++) {
        const unsigned layer = (k - 1) / 3, before = layer == 0 ? 0 : 3 * (layer - 1) + 1;

        if (shape < 2)
            net_add(t, k, k - 1);
        if (shape == 1 && k > NODES / 2)
            net_add(t, k, NODES - k);
        for (unsigned i = 0; shape == 2 && i < INPUTS; i++)
            net_add(t, k, layer == 0 ? 0 : before + heddle_rng_below32(&r, 3));
    }
}

struct step {
    struct cli *c;
    heddle_ctx *ctx;
    size_t width;
    struct net net;
    float *memory; /* the input, weights, gradients of weights, the gradient of the end */
    heddle_handle *y[NODES], *gy[NODES], *w[NODES], *gw[NODES], *x, *end, *scratch;
    heddle_handle *temp[2 * NODES];
    size_t ntemps;
    heddle_graph *graph;
};

static heddle_status matrix(struct step *s, float *at, heddle_handle **out)
{
    const struct heddle_layout l = {.dtype = HEDDLE_F32, .ndim = 2, .extent = {s->width, s->width}};

    return heddle_handle_create(s->ctx, &l, at, out);
}

static heddle_status make_data(struct step *s)
{
    const size_t nn = s->width * s->width;
    heddle_status st = HEDDLE_OK;
    struct heddle_rng r;

    heddle_rng_seed(&r, 1);
    s->memory = malloc((2 * NODES + 2) * nn * sizeof(float));
    if (s->memory == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < (2 * NODES + 2) * nn; i++)
        s->memory[i] = (float)(heddle_rng_double(&r) - 0.5) / sqrtf((float)s->width);
    for (unsigned k = 0; k < NODES && st == HEDDLE_OK; k++) {
        st = matrix(s, s->memory + (2 * k) * nn, &s->w[k]);
        if (st == HEDDLE_OK)
            st = matrix(s, s->memory + (2 * k + 1) * nn, &s->gw[k]);
        if (st == HEDDLE_OK)
            st = matrix(s, NULL, &s->y[k]);
        if (st == HEDDLE_OK)
            st = matrix(s, NULL, &s->gy[k]);
        if (st == HEDDLE_OK && k > 0) {
            s->temp[s->ntemps++] = s->y[k];
            s->temp[s->ntemps++] = s->gy[k];
        }
    }
    if (st == HEDDLE_OK)
        st = matrix(s, s->memory + (2 * (size_t)NODES) * nn, &s->x);
    if (st == HEDDLE_OK)
        st = matrix(s, s->memory + (2 * (size_t)NODES + 1) * nn, &s->end);
    return st == HEDDLE_OK ? matrix(s, NULL, &s->scratch) : st;
}

static heddle_status submit(struct step *s, const heddle_kernel *k, bool is_new, unsigned n,
                            heddle_handle *const *op, const enum heddle_mode *mode)
{
    return heddle_graph_submit(s->graph, k,
                               &(struct heddle_call){.arg = &is_new,
                                                     .arg_bytes = sizeof(is_new),
                                                     .noperands = n,
                                                     .operands = op,
                                                     .modes = mode});
}

static heddle_handle *output(struct step *s, unsigned k)
{
    return k == 0 ? s->x : s->y[k];
}

static heddle_status record_forward(struct step *s, unsigned k)
{
    heddle_handle *op[2 + INPUTS] = {s->y[k], s->w[k]};
    static const enum heddle_mode mode[] = {HEDDLE_W, HEDDLE_R, HEDDLE_R, HEDDLE_R};

    for (unsigned i = 0; i < s->net.ninputs[k]; i++)
        op[2 + i] = output(s, s->net.input[k][i]);
    return submit(s, &forward, false, 2 + s->net.ninputs[k], op, mode);
}

/* Gradients of the inputs of a node, and of its weight. */
static heddle_status record_backward(struct step *s, unsigned k, bool has[NODES])
{
    heddle_handle *const gy = has[k] ? s->gy[k] : s->end;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < s->net.ninputs[k] && st == HEDDLE_OK; i++) {
        const unsigned from = s->net.input[k][i];
        heddle_handle *op[] = {s->gy[from], s->w[k], gy, s->y[k], s->scratch};
        const enum heddle_mode mode[] = {has[from] ? HEDDLE_RW : HEDDLE_W, HEDDLE_R, HEDDLE_R,
                                         HEDDLE_R, HEDDLE_SCRATCH};

        if (from == 0)
            continue;
        st = submit(s, &backward, !has[from], 5, op, mode);
        has[from] = true;
    }
    if (st == HEDDLE_OK)
        st = submit(s, &weight, false, 3,
                    (heddle_handle *[]){s->gw[k], output(s, s->net.input[k][0]), gy},
                    (enum heddle_mode[]){HEDDLE_W, HEDDLE_R, HEDDLE_R});
    return st;
}

static heddle_status record(struct step *s)
{
    bool has[NODES] = {false};
    heddle_status st = heddle_graph_begin(s->ctx, &s->graph);

    for (unsigned k = 1; k < NODES && st == HEDDLE_OK; k++)
        st = record_forward(s, k);
    for (unsigned k = NODES; k-- > 1 && st == HEDDLE_OK;)
        st = record_backward(s, k, has);
    return st == HEDDLE_OK ? heddle_graph_end(s->graph) : st;
}

/* --- measuring ---------------------------------------------------------------------------- */

/* *cpu_out (may be NULL): of all threads. */
static heddle_status time_one(struct step *s, heddle_planned *p, double *out, double *cpu_out)
{
    const uint64_t cpu = heddle_clock_process_ns(), start = heddle_clock_ns();
    heddle_status st =
        p == NULL ? heddle_graph_launch(s->graph, NULL) : heddle_planned_launch(p, NULL);

    if (st == HEDDLE_OK)
        st = heddle_wait(s->ctx);
    *out = (double)(heddle_clock_ns() - start) * 1e-9;
    if (cpu_out != NULL)
        *cpu_out = (double)(heddle_clock_process_ns() - cpu) * 1e-9;
    return st;
}

static heddle_status measure_tasks(struct step *s, double *seconds, double limit_s)
{
    const struct heddle_planned_opts o = {.size = sizeof(o),
                                          .temporary = s->temp,
                                          .ntemporaries = s->ntemps,
                                          .time_limit_s = limit_s,
                                          .is_watched = true};
    heddle_planned *p = NULL;
    heddle_status st = heddle_planned_create(s->graph, &o, &p);
    double t;

    for (unsigned i = 0; i < WARM && st == HEDDLE_OK; i++)
        st = time_one(s, p, &t, NULL);
    if (st == HEDDLE_OK)
        st = heddle_planned_get_seconds(p, seconds, heddle_graph_get_ntasks(s->graph));
    heddle_planned_unref(p);
    return st;
}

static bool is_equal(const struct step *s, const float *want)
{
    return memcmp(s->memory, want, 2 * NODES * s->width * s->width * sizeof(float)) == 0;
}

/* Steps of both graphs in turn. */
static heddle_status measure_steps(struct step *s, heddle_planned *p, uint64_t reps,
                                   const float *want, struct planned_step *out)
{
    double plain[MAX_REPS], planned[MAX_REPS], cpu[MAX_REPS];
    const size_t nn = s->width * s->width;
    heddle_status st = HEDDLE_OK;

    for (uint64_t i = 0; i < reps && st == HEDDLE_OK; i++) {
        st = time_one(s, NULL, &plain[i], NULL);
        for (unsigned k = 0; k < NODES; k++) /* so that the planned step must write them */
            memset(s->memory + (2 * k + 1) * nn, 0, k == 0 ? 0 : nn * sizeof(float));
        if (st == HEDDLE_OK)
            st = time_one(s, p, &planned[i], &cpu[i]);
    }
    if (st != HEDDLE_OK)
        return st;
    out->is_equal = is_equal(s, want);
    out->as_is_s = bench_stat(plain, reps).min;
    out->real_s = bench_stat(planned, reps).min;
    out->cpu_s = bench_stat(cpu, reps).min;
    out->info.size = sizeof(out->info);
    st = heddle_planned_get_info(p, &out->info);
    out->ratio = out->real_s / out->info.seconds;
    return st;
}

static heddle_status measure_budget(struct step *s, const double *seconds, double limit_s,
                                    uint64_t reps, const float *want, struct planned_step *out)
{
    const struct heddle_planned_opts o = {.size = sizeof(o),
                                          .temporary = s->temp,
                                          .ntemporaries = s->ntemps,
                                          .budget_share = out->share,
                                          .time_limit_s = limit_s,
                                          .seconds = seconds,
                                          .nseconds = heddle_graph_get_ntasks(s->graph),
                                          .why = out->why,
                                          .why_bytes = sizeof(out->why)};
    heddle_planned *p = NULL;
    heddle_status st = heddle_planned_create(s->graph, &o, &p);

    if (st == HEDDLE_ENOENT)
        return HEDDLE_OK;
    out->is_found = st == HEDDLE_OK;
    if (st == HEDDLE_OK)
        st = measure_steps(s, p, reps, want, out);
    heddle_planned_unref(p);
    return st;
}

static heddle_status measure(struct step *s, const struct bench_opts *o, double limit_s,
                             struct planned_step *out)
{
    const size_t bytes = 2 * NODES * s->width * s->width * sizeof(float);
    double *seconds = calloc(heddle_graph_get_ntasks(s->graph) + 1, sizeof(*seconds));
    float *want = malloc(bytes);
    heddle_status st = seconds != NULL && want != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
    double t;

    if (st == HEDDLE_OK)
        st = time_one(s, NULL, &t, NULL);
    if (st == HEDDLE_OK)
        memcpy(want, s->memory, bytes);
    if (st == HEDDLE_OK)
        st = measure_tasks(s, seconds, limit_s);
    for (unsigned b = 0; b < PLANNED_BUDGETS && st == HEDDLE_OK; b++)
        st = measure_budget(s, seconds, limit_s, o->reps, want, &out[b]);
    free(seconds);
    free(want);
    return st;
}

static void drop(struct step *s)
{
    heddle_graph_unref(s->graph);
    for (unsigned k = 0; k < NODES; k++) {
        heddle_handle_unref(s->y[k]);
        heddle_handle_unref(s->gy[k]);
        heddle_handle_unref(s->w[k]);
        heddle_handle_unref(s->gw[k]);
    }
    heddle_handle_unref(s->x);
    heddle_handle_unref(s->end);
    heddle_handle_unref(s->scratch);
}

int planned_step_run(struct cli *c, const struct bench_opts *o, uint64_t width, double limit_s,
                     struct planned_step out[PLANNED_SHAPES * PLANNED_BUDGETS])
{
    static const char *const shape[PLANNED_SHAPES] = {"chain", "u", "random"};
    static const double share[PLANNED_BUDGETS] = {0.7, 0.5, 0.3};
    int rc = 0;

    for (unsigned k = 0; k < PLANNED_SHAPES && rc == 0; k++) {
        struct step s = {.c = c, .width = width};
        struct bench_memory m = {.calls = 0};
        heddle_status st;

        for (unsigned b = 0; b < PLANNED_BUDGETS; b++)
            out[k * PLANNED_BUDGETS + b] =
                (struct planned_step){.shape = shape[k], .share = share[b]};
        rc = bench_open(c, o, &m, &s.ctx);
        if (rc != 0)
            return rc;
        net_make(&s.net, k);
        st = make_data(&s);
        if (st == HEDDLE_OK)
            st = record(&s);
        if (st == HEDDLE_OK)
            st = measure(&s, o, limit_s, &out[(size_t)k * PLANNED_BUDGETS]);
        if (st != HEDDLE_OK)
            rc = bench_fail(c, s.ctx, st);
        drop(&s);
        if (rc == 0)
            rc = bench_close(c, &m, s.ctx);
        else
            (void)heddle_ctx_destroy(s.ctx);
        free(s.memory);
    }
    return rc;
}
