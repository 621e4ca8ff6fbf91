/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 20_planned: a gradient in a fifth of the memory. 64 states forwards, and backwards through
 * all of them. A plain launch keeps all states; the planned one keeps some, and makes the
 * others again.
 */
#include <heddle/heddle.h>
#include <heddle/planned.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 64, N = 4096 };

static heddle_status step_cpu(struct heddle_exec *x)
{
    const double *u = heddle_exec_ptr(x, 0);
    double *v = heddle_exec_ptr(x, 1);

    for (int i = 0; i < N; i++)
        v[i] = u[i] + 0.1 * sin(u[i]);
    return HEDDLE_OK;
}

static heddle_status back_cpu(struct heddle_exec *x)
{
    const double *u = heddle_exec_ptr(x, 0);
    double *g = heddle_exec_ptr(x, 1);

    for (int i = 0; i < N; i++)
        g[i] *= 1 + 0.1 * cos(u[i]);
    return HEDDLE_OK;
}

#define KERNEL(fn, how)                                                                            \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = #fn, .noperands = 2, .mode = {HEDDLE_R, how},       \
        .variants = {                                                                              \
            {.device = HEDDLE_DEV_CPU, .run = fn}                                                  \
        }                                                                                          \
    }
static const heddle_kernel step = KERNEL(step_cpu, HEDDLE_W), back = KERNEL(back_cpu, HEDDLE_RW);

/* h[0] is the first state, h[1] ... h[STEPS - 1] come from it; h[STEPS] is the gradient,
 * h[STEPS + 1] another one. */
static heddle_status record(heddle_ctx *ctx, heddle_handle **h, heddle_graph **g)
{
    heddle_status st = heddle_graph_begin(ctx, g);

    for (int i = 0; i + 1 < STEPS && st == HEDDLE_OK; i++)
        st = heddle_graph_submit(*g, &step, &(struct heddle_call){.operand = {h[i], h[i + 1]}});
    for (int i = STEPS - 1; i >= 0 && st == HEDDLE_OK; i--)
        st = heddle_graph_submit(*g, &back, &(struct heddle_call){.operand = {h[i], h[STEPS]}});
    return st == HEDDLE_OK ? heddle_graph_end(*g) : st;
}

int main(void)
{
    static double start[N], gradient[2][N];
    double *data[STEPS + 2] = {start, [STEPS] = gradient[0], [STEPS + 1] = gradient[1]};
    const struct heddle_ctx_opts on_cores = {.size = sizeof(on_cores), .devices = "none"};
    struct heddle_planned_info info = {.size = sizeof(info)};
    heddle_handle *h[STEPS + 2] = {NULL};
    heddle_planned *p = NULL;
    heddle_graph *g = NULL;
    heddle_ctx *ctx = NULL;
    const struct heddle_planned_opts opts = {
        .size = sizeof(opts), .temporary = h + 1, .ntemporaries = STEPS - 1, .budget_share = 0.2};
    struct heddle_binding other; /* all states in memory, and another gradient */
    const struct heddle_launch plain = {.size = sizeof(plain), .binding = &other, .nbindings = 1};
    heddle_status st = heddle_ctx_create(&on_cores, &ctx);

    for (int i = 0; i < N; i++) {
        start[i] = 0.001 * i;
        gradient[0][i] = gradient[1][i] = 1;
    }
    for (int i = 0; i < STEPS + 2 && st == HEDDLE_OK; i++) /* NULL: the runtime's memory */
        st = heddle_handle_vector(ctx, data[i], N, HEDDLE_F64, &h[i]);
    other = (struct heddle_binding){h[STEPS], h[STEPS + 1]};
    if (st == HEDDLE_OK)
        st = record(ctx, h, &g);
    if (st == HEDDLE_OK)
        st = heddle_planned_create(g, &opts, &p);
    if (st == HEDDLE_OK)
        st = heddle_planned_launch(p, NULL);
    if (st == HEDDLE_OK)
        st = heddle_graph_launch(g, &plain);
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    (void)heddle_planned_get_info(p, &info);
    heddle_planned_unref(p);
    heddle_graph_unref(g);
    for (int i = 0; i < STEPS + 2; i++)
        heddle_handle_unref(h[i]);
    heddle_ctx_destroy(ctx);
    printf("%s: %zu bytes instead of %zu, %zu tasks instead of %zu\n", heddle_status_text(st),
           (size_t)info.arena_bytes, (size_t)info.as_is_bytes, info.nruns, info.ntasks);
    return st == HEDDLE_OK && memcmp(gradient[0], gradient[1], sizeof(gradient[0])) == 0 ? 0 : 1;
}
