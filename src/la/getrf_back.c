/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getrf_back: the rows of L change places where there is a GPU, when all pivots are
 * known: once for each block column, not once for each panel on its right. A core
 * turns the pivots into the list of rows, as that is one exchange after the other.
 *
 * Order j   where each row of block column j comes from, for the panels on its right
 * Rows j    brings them there
 */
#include <string.h>

#include "la/cuda.h"
#include "la/la.h"

enum { MOST_PIVOTS = 200 }; /* operands of a task */

struct order_arg {
    struct la_head h;
    const int *ipiv; /* of the matrix; tasks have its parts as operands */
    size_t k0, n;    /* the first row that changes, and pivots in all */
};

static heddle_status run_order(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_count(x, 0);
    int *from = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < m; i++)
        from[i] = (int)i;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK; /* nor are there pivots */
    for (size_t i = g->k0; i < g->n; i++) {
        const size_t p = (size_t)g->ipiv[i] - 1;
        const int was = from[i - g->k0];

        from[i - g->k0] = from[p - g->k0];
        from[p - g->k0] = was;
    }
    return HEDDLE_OK;
}

static heddle_status run_rows(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    const size_t bytes = la_bytes(g->h.t);
    const struct la_block all = la_operand(x, 0);
    const struct la_block a =
        la_part(g->h.t, all, g->k0, 0, all.m - g->k0, all.n);
    const int *from = heddle_exec_ptr(x, 1);
    char *work = heddle_la_work(a.m * bytes);

    if (work == NULL)
        return HEDDLE_ENOMEM;
    for (size_t j = 0; j < a.n; j++) {
        char *column = (char *)a.a + j * a.ld * bytes;

        for (size_t i = 0; i < a.m; i++)
            memcpy(work + i * bytes, column + (size_t)from[i] * bytes, bytes);
        memcpy(column, work, a.m * bytes);
    }
    return HEDDLE_OK;
}

static heddle_status cuda_rows(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    const struct la_block a = la_operand(x, 0);
    struct la_gpu gpu;

    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_rows(&gpu, la_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n),
                           heddle_exec_ptr(x, 1));
}

static struct heddle_cost cost_rows(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = (double)((l->extent[0] - g->k0) * l->extent[1] *
                          la_bytes(g->h.t) * 4)};
}

static const heddle_kernel kernel_order = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_order",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_order}}};

static const heddle_kernel kernel_rows = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_rows",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_rows},
                 {.device = HEDDLE_DEV_CUDA,
                  .run = cuda_rows,
                  .scratch_bytes = LA_GPU_SCRATCH}},
    .cost = cost_rows};

bool heddle_la_has_back(const heddle_la *la, const heddle_matrix *a)
{
    return la->has_cuda && a->nt <= MOST_PIVOTS &&
           a->m * la_bytes(a->t) <= LA_GPU_SCRATCH;
}

static heddle_status submit_column(struct order_arg *g, heddle_matrix *a,
                                   const struct la_pivots *p, size_t j)
{
    enum heddle_mode modes[1 + MOST_PIVOTS] = {HEDDLE_W};
    heddle_handle *op[1 + MOST_PIVOTS], *from = NULL;
    unsigned n = 1;
    heddle_status st;

    g->k0 = la_first(a, j + 1);
    LA_TRY(heddle_handle_vector(g->h.la->ctx, NULL, a->m - g->k0, HEDDLE_I32,
                                &from));
    op[0] = from;
    for (size_t k = j + 1; k < p->nt; k++, n++) {
        op[n] = p->part[k];
        modes[n] = HEDDLE_R;
    }
    st = heddle_la_submit(g->h.la, &kernel_order, op, modes, n, g, sizeof(*g),
                          0);
    if (st == HEDDLE_OK)
        st = heddle_la_submit(g->h.la, &kernel_rows,
                              (heddle_handle *const[]){a->col[j], from}, NULL,
                              2, g, sizeof(*g), 0);
    heddle_handle_unref(from);
    return st;
}

heddle_status heddle_la_getrf_back(const struct la_head *h, heddle_matrix *a,
                                   const struct la_pivots *pivots)
{
    struct order_arg g = {.h = *h, .ipiv = pivots->ipiv, .n = pivots->n};

    for (size_t j = 0; j + 1 < pivots->nt; j++)
        LA_TRY(submit_column(&g, a, pivots, j));
    return HEDDLE_OK;
}
