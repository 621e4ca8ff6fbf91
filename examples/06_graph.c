/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 06_graph: a region recorded once and replayed. The region is one sweep of
 * the heat equation, there and back; the launch repeats it until a condition
 * holds, then the same region runs on other data with another argument.
 */
#include <heddle/heddle.h>
#include <math.h>
#include <stdio.h>

enum { N = 32 };

/* v = u + c (left - 2 u + right), the ends stay. */
static heddle_status heat_cpu(struct heddle_exec *x)
{
    const double *u = heddle_exec_ptr(x, 0);
    double *v = heddle_exec_ptr(x, 1);
    double c = *(const double *)heddle_exec_arg(x);

    v[0] = u[0];
    v[N - 1] = u[N - 1];
    for (int i = 1; i < N - 1; i++)
        v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]);
    return HEDDLE_OK;
}

static const heddle_kernel heat = {
    .size = sizeof(heddle_kernel),
    .name = "heat",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = heat_cpu}},
};

/* The loop around the region: false ends it. */
static bool again(void *user, unsigned pass)
{
    (void)user;
    return pass < 5000;
}

static heddle_status record(heddle_graph *g, heddle_handle *u, heddle_handle *v)
{
    double c = 0.4;
    struct heddle_call there = {.operand = {u, v}, .arg = &c, .arg_bytes = sizeof(c)};
    struct heddle_call back = {.operand = {v, u}, .arg = &c, .arg_bytes = sizeof(c)};
    heddle_status st = heddle_graph_submit(g, &heat, &there);

    if (st == HEDDLE_OK)
        st = heddle_graph_submit(g, &heat, &back);
    return st == HEDDLE_OK ? heddle_graph_end(g) : st;
}

int main(void)
{
    double data[3][N] = {{[N - 1] = 31.0}, {0}, {[N - 1] = 1.0}}, c = 0.25;
    heddle_handle *h[3] = {NULL};
    heddle_ctx *ctx = NULL;
    heddle_graph *g = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);
    double error = 0;

    for (int i = 0; i < 3 && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(ctx, data[i], N, HEDDLE_F64, &h[i]);
    if (st == HEDDLE_OK)
        st = heddle_graph_begin(ctx, &g);
    if (st == HEDDLE_OK)
        st = record(g, h[0], h[1]);
    if (st == HEDDLE_OK) /* until it is steady: a straight line */
        st = heddle_graph_launch(
            g, &(struct heddle_launch){.size = sizeof(struct heddle_launch), .again = again});
    if (st == HEDDLE_OK) /* once, on data[2], first task with c = 0.25 */
        st = heddle_graph_launch(
            g, &(struct heddle_launch){.size = sizeof(struct heddle_launch),
                                       .binding = &(struct heddle_binding){h[0], h[2]},
                                       .nbindings = 1,
                                       .arg = &(struct heddle_graph_arg){0, &c, sizeof(c)},
                                       .nargs = 1});
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    heddle_graph_unref(g);
    for (int i = 0; i < 3; i++)
        heddle_handle_unref(h[i]);
    heddle_ctx_destroy(ctx);
    for (int i = 0; i < N; i++)
        error = fmax(error, fabs(data[0][i] - i));
    error = fmax(error, fabs(data[2][N - 2] - 0.45)); /* 0.25 * 0.2 + 0.4 */
    printf("heat: %s, error %.1e\n", heddle_status_text(st), error);
    return st == HEDDLE_OK && error < 1e-9 ? 0 : 1;
}
