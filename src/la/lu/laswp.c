/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * laswp: rows change places; one task for each block column, or, where there is a
 * device, for each block column and each part of the pivots.
 *
 * Order    the factorisation that finds the pivots may still be running. When it belongs
 *          to the same sequence, a task has the handles of the pivots as operands.
 *          When it belongs to another one, a task has the block columns of the factors
 *          as operands, where it knows them: the pivots are written before these.
 */
#include "la/cuda/cuda.h"
#include "la/la.h"

enum { MOST_OPERANDS = 250, MOST_COLUMNS = 120, MOST_PIVOTS = 120 };
enum { PART = 512 }; /* pivots of a task for a device, unless it is given */

struct laswp_arg {
    struct la_head h;
    const int *ipiv; /* of the whole call */
    size_t k0, k1;   /* rows of this task's pivots */
    bool is_backward;
    bool has_part; /* operand 1 has the pivots */
};

static heddle_status run_swap(struct heddle_exec *x)
{
    const struct laswp_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);
    const size_t n = g->k1 - g->k0;
    const int *ipiv = g->has_part ? heddle_exec_ptr(x, 1) : g->ipiv + g->k0;
    int *local;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    local = heddle_la_work(g->h.la, n * sizeof(int));
    if (local == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        local[i] = ipiv[i] - (int)g->k0;
    heddle_blas_laswp(g->h.t, blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n), local, n,
                      g->is_backward);
    return HEDDLE_OK;
}

static heddle_status cuda_swap(struct heddle_exec *x)
{
    const struct laswp_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);
    struct la_gpu gpu;

    if (!g->has_part)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_swap(&gpu, blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n),
                           heddle_exec_ptr(x, 1), g->k1 - g->k0, g->k0, g->is_backward);
}

static struct heddle_cost cost_swap(struct heddle_exec *x)
{
    const struct laswp_arg *g = heddle_exec_arg(x);
    const size_t n = heddle_exec_layout(x, 0)->extent[1];

    return (struct heddle_cost){.bytes = (double)((g->k1 - g->k0) * n * blas_bytes(g->h.t) * 4)};
}

static const heddle_kernel kernel_swap = {
    .size = sizeof(heddle_kernel),
    .name = "laswp",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_swap}, LA_GPU(cuda_swap)},
    .cost = cost_swap};

/* The pivots k0 .. k1 - 1, which come with n block columns at `from`. Tasks take
 * them from the program's memory: that is where their handles have them on cores. */
static heddle_status swap_all(const struct laswp_arg *g, heddle_matrix *a,
                              heddle_handle *const *from, size_t n)
{
    heddle_handle *op[MOST_OPERANDS];
    enum heddle_mode modes[MOST_OPERANDS] = {HEDDLE_RW};
    size_t more = 0;

    LA_TRY(
        heddle_la_pivots_read(g->h.la, g->ipiv + g->k0, g->k1 - g->k0, MOST_PIVOTS, op + 1, &more));
    for (size_t i = 0; i < n; i++)
        op[1 + more + i] = from[i];
    n += more;
    for (size_t i = 0; i < n; i++)
        modes[i + 1] = HEDDLE_R;
    for (size_t j = 0; j < a->nt; j++) {
        op[0] = a->col[j];
        LA_TRY(heddle_la_submit(g->h.la, &kernel_swap, op, modes, (unsigned)n + 1, g, sizeof(*g),
                                (int)(a->nt - j)));
    }
    return HEDDLE_OK;
}

/* The same where there is a device: the pivots are one operand. factor NULL: none. */
static heddle_status swap_part(struct laswp_arg *g, heddle_matrix *a, heddle_handle *factor)
{
    static const enum heddle_mode modes[3] = {HEDDLE_RW, HEDDLE_R, HEDDLE_R};
    heddle_handle *op[3] = {NULL, NULL, factor};
    heddle_status st = HEDDLE_OK;

    g->has_part = true;
    LA_TRY(heddle_la_pivots_part(g->h.la, g->ipiv + g->k0, g->k1 - g->k0, &op[1]));
    for (size_t j = 0; j < a->nt && st == HEDDLE_OK; j++) {
        op[0] = a->col[j];
        st = heddle_la_submit(g->h.la, &kernel_swap, op, modes, factor != NULL ? 3 : 2, g,
                              sizeof(*g), (int)(a->nt - j));
    }
    heddle_handle_unref(op[1]);
    return st;
}

/* k pivots, `width` in each part. */
static heddle_status swap_parts(struct laswp_arg *g, heddle_matrix *a, size_t k, size_t width,
                                const heddle_matrix *factor)
{
    const size_t n = (k + width - 1) / width;

    for (size_t i = 0; i < n; i++) {
        const size_t p = g->is_backward ? n - 1 - i : i;

        g->k0 = p * width;
        g->k1 = la_min(k, g->k0 + width);
        LA_TRY(swap_part(g, a, factor != NULL ? factor->col[p] : NULL));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_laswp_after(heddle_la *la, heddle_matrix *a, const int *ipiv, size_t k,
                                    bool is_backward, heddle_matrix *factor)
{
    struct laswp_arg g = {.h = heddle_la_begin(la, a), .ipiv = ipiv, .is_backward = is_backward};
    const size_t nt = la_min(factor->nt, (k + factor->nb - 1) / factor->nb);

    if (la->has_cuda)
        return swap_parts(&g, a, la_min(k, factor->n), factor->nb, factor);
    for (size_t done = 0; done < nt;) {
        const size_t n = la_min(MOST_COLUMNS, nt - done);
        const size_t c = is_backward ? nt - done - n : done;

        g.k0 = c * factor->nb;
        g.k1 = la_min(k, (c + n) * factor->nb);
        LA_TRY(swap_all(&g, a, factor->col + c, n));
        done += n;
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_laswp(heddle_la *la, heddle_matrix *a, const int *ipiv, size_t k,
                              bool is_backward)
{
    struct laswp_arg g = {.ipiv = ipiv, .k1 = k, .is_backward = is_backward};
    bool are_legal;

    LA_CHECK(la, 1, la != NULL && a != NULL);
    LA_CHECK(la, 2, ipiv != NULL || k == 0);
    LA_CHECK(la, 3, k <= a->m);
    if (k == 0)
        return HEDDLE_OK;
    LA_TRY(heddle_la_pivots_check(la, ipiv, k, a->m, &are_legal));
    LA_CHECK(la, 2, are_legal);
    g.h = heddle_la_begin(la, a);
    if (la->has_cuda) {
        const size_t width = heddle_la_pivots_width(la, ipiv);

        return swap_parts(&g, a, k, width != 0 ? width : PART, NULL);
    }
    return swap_all(&g, a, NULL, 0);
}
