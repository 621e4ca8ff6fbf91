/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: the rows of L change places where there is a GPU, when all pivots are
 * known: once for each block column, not once for each panel on its right. A core
 * turns the pivots into lists of rows, as that is one exchange after the other.
 *
 * Order k   a task that enters the pivots of panel k, as soon as these are known, into
 *           the lists of the block columns before it: a list says where the rows below
 *           the diagonal block come from. The lists are one behind the other. Little
 *           is left to do after the last panel, where the GPU waits for this alone.
 * Rows j    a task that moves the rows of block column j to their places
 */
#include <string.h>

#include "la/cuda/cuda.h"
#include "la/la.h"

enum { MOST_LISTS = 200 }; /* each has a number for each row */

struct order_arg {
    struct la_head h;
    const int *ipiv;     /* of the matrix; a task has the part of its panel */
    size_t m, n, nb, nt; /* rows, pivots, and those of a part; lists */
    size_t k;            /* of order: the panel */
    size_t k0, at;       /* of a list: its first row, and where it begins */
};

/* No row has changed places yet. */
static void begin_lists(const struct order_arg *g, int *from)
{
    for (size_t j = 0; j < g->nt; j++)
        for (size_t i = (j + 1) * g->nb; i < g->m; i++)
            *from++ = (int)(i - (j + 1) * g->nb);
}

/* The pivots of panel k in a list, whose rows are counted from k0. */
static void exchange(const struct order_arg *g, size_t k0, int *from)
{
    const size_t end = la_min(g->n, (g->k + 1) * g->nb);

    for (size_t i = g->k * g->nb; i < end; i++) {
        const size_t p = (size_t)g->ipiv[i] - 1;
        const int was = from[i - k0];

        if (p < i || p >= g->m)
            continue; /* no pivot: the matrix had no numbers */
        from[i - k0] = from[p - k0];
        from[p - k0] = was;
    }
}

static heddle_status run_order(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    int *from = heddle_exec_ptr(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK; /* nor are there pivots */
    if (g->k == 1)
        begin_lists(g, from);
    for (size_t j = 0; j < g->k; j++) {
        exchange(g, (j + 1) * g->nb, from);
        from += g->m - (j + 1) * g->nb;
    }
    return HEDDLE_OK;
}

static heddle_status run_rows(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    const size_t bytes = blas_bytes(g->h.t);
    const struct blas_block all = la_operand(x, 0);
    const struct blas_block a = blas_part(g->h.t, all, g->k0, 0, all.m - g->k0, all.n);
    const int *from = (const int *)heddle_exec_ptr(x, 1) + g->at;
    char *work;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    work = heddle_la_work(g->h.la, a.m * bytes);
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
    const struct blas_block a = la_operand(x, 0);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_rows(&gpu, blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n),
                           (const int *)heddle_exec_ptr(x, 1) + g->at);
}

static struct heddle_cost cost_rows(struct heddle_exec *x)
{
    const struct order_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = (double)((l->extent[0] - g->k0) * l->extent[1] * blas_bytes(g->h.t) * 4)};
}

static const heddle_kernel kernel_order = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_order",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_order}}};

static const heddle_kernel kernel_rows = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_rows",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_rows},
                 LA_GPU(cuda_rows, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_rows};

bool heddle_la_has_back(const heddle_la *la, const heddle_matrix *a)
{
    return la->has_cuda && a->nt <= MOST_LISTS && a->m * blas_bytes(a->t) <= LA_GPU_SCRATCH;
}

/* On cores, whatever the devices of the sequence are. */
static heddle_status submit_order(struct order_arg g, const struct la_pivots *p,
                                  heddle_handle *lists)
{
    const uint32_t devices = g.h.la->opts.devices;
    heddle_status st = HEDDLE_OK;

    g.h.la->opts.devices = 0;
    for (g.k = 1; g.k < p->nt && st == HEDDLE_OK; g.k++) {
        const enum heddle_mode modes[2] = {g.k == 1 ? HEDDLE_W : HEDDLE_RW, HEDDLE_R};
        heddle_handle *const op[2] = {lists, p->part[g.k]};

        st = heddle_la_submit(g.h.la, &kernel_order, op, modes, 2, &g, sizeof(g), 0);
    }
    g.h.la->opts.devices = devices;
    return st;
}

heddle_status heddle_la_getrf_back(const struct la_head *h, heddle_matrix *a,
                                   const struct la_pivots *pivots)
{
    struct order_arg g = {.h = *h,
                          .ipiv = pivots->ipiv,
                          .m = a->m,
                          .n = pivots->n,
                          .nb = a->nb,
                          .nt = pivots->nt - 1};
    heddle_handle *lists = NULL;
    size_t count = 0;
    heddle_status st;

    for (size_t j = 0; j < g.nt; j++)
        count += a->m - la_first(a, j + 1);
    if (count == 0)
        return HEDDLE_OK;
    LA_TRY(heddle_handle_vector(h->la->ctx, NULL, count, HEDDLE_I32, &lists));
    st = submit_order(g, pivots, lists);
    for (size_t j = 0; j < g.nt && st == HEDDLE_OK; j++) {
        heddle_handle *const op[2] = {a->col[j], lists};

        g.k0 = la_first(a, j + 1);
        st = heddle_la_submit(h->la, &kernel_rows, op, NULL, 2, &g, sizeof(g), 0);
        g.at += a->m - g.k0;
    }
    heddle_handle_unref(lists);
    return st;
}
