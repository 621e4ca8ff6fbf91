/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 08_views: rows, columns, tiles and every second column of one matrix. Views
 * overlap; the result is that of the same steps one after another.
 */
#include <heddle/heddle.h>
#include <stdio.h>

enum { M = 12, N = 16 };

/* Every element becomes a times itself plus b. */
static heddle_status linear_cpu(struct heddle_exec *x)
{
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    const int64_t *ab = heddle_exec_arg(x);
    int64_t *v = heddle_exec_ptr(x, 0);

    for (size_t j = 0; j < l->extent[1]; j++)
        for (size_t i = 0; i < l->extent[0]; i++) {
            int64_t *e = &v[i * l->stride[0] + j * l->stride[1]];
            *e = ab[0] * *e + ab[1];
        }
    return HEDDLE_OK;
}

static const heddle_kernel linear = {
    .size = sizeof(heddle_kernel),
    .name = "linear",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = linear_cpu}},
};

struct box {
    size_t offset[2], extent[2], step[2];
    int64_t ab[2];
};

static const struct box steps[] = {
    {{0, 0}, {M, N}, {1, 1}, {1, 1}},         /* all of it */
    {{3, 0}, {1, N}, {1, 1}, {2, 3}},         /* a row */
    {{0, 5}, {M, 1}, {1, 1}, {3, -1}},        /* a column: crosses the row */
    {{0, 0}, {M, N / 2}, {1, 2}, {5, 1}},     /* the even columns */
    {{4, 4}, {4, 4}, {1, 1}, {-1, 7}},        /* a tile */
    {{0, 0}, {M / 3, N / 4}, {3, 4}, {1, 9}}, /* a grid */
    {{2, 2}, {7, 9}, {1, 1}, {2, 0}},
};
enum { NSTEPS = sizeof(steps) / sizeof(steps[0]) };

static heddle_status submit(heddle_ctx *ctx, heddle_handle *a, const struct box *b)
{
    heddle_handle *view = NULL;
    heddle_status st = heddle_view_box(a, b->offset, b->extent, b->step, &view);

    if (st == HEDDLE_OK)
        st = heddle_submit(
            ctx, &linear,
            &(struct heddle_call){.operand = {view}, .arg = b->ab, .arg_bytes = sizeof(b->ab)});
    heddle_handle_unref(view);
    return st;
}

/* The same without tasks. */
static void apply(int64_t *a, const struct box *b)
{
    for (size_t j = 0; j < b->extent[1]; j++)
        for (size_t i = 0; i < b->extent[0]; i++) {
            int64_t *e = &a[b->offset[0] + i * b->step[0] + (b->offset[1] + j * b->step[1]) * M];
            *e = b->ab[0] * *e + b->ab[1];
        }
}

int main(void)
{
    int64_t a[M * N] = {0}, expected[M * N] = {0};
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);
    int wrong = 0;

    if (st == HEDDLE_OK)
        st = heddle_handle_matrix(ctx, a, M, N, 0, HEDDLE_I64, &h);
    for (int round = 0; round < 3; round++)
        for (int s = 0; s < NSTEPS; s++, apply(expected, &steps[s - 1]))
            if (st == HEDDLE_OK)
                st = submit(ctx, h, &steps[s]);
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    heddle_handle_unref(h);
    heddle_ctx_destroy(ctx);
    for (int i = 0; i < M * N; i++)
        wrong += a[i] != expected[i];
    printf("views: %s, %d wrong\n", heddle_status_text(st), wrong);
    return st == HEDDLE_OK && wrong == 0 ? 0 : 1;
}
