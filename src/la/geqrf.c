/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * geqrf: QR on block columns, as LAPACK leaves it.
 *
 * Panel k      A_k = Q_k R_kk on the rows from k on, Q_k = I - V T V^H; recursive,
 *              so that most of it is products
 * Update j, k  A_j = Q_k^H A_j
 */
#include "la/la.h"

#include "la/reflect.h"

struct geqrf_arg {
    struct la_head h;
    size_t k0, nk; /* first row, and number of reflectors */
};

static heddle_status run_panel(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block a = la_operand(x, 0), tri = la_operand(x, 1);
    const struct la_block v = la_part(t, a, g->k0, 0, a.m - g->k0, g->nk);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    (void)heddle_blas_geqrt3(t, v, tri);
    if (g->nk < a.n) /* more columns than rows: the rest of the block */
        return heddle_la_reflect(
            t, 'L', 'C', v, tri,
            la_part(t, a, g->k0, g->nk, a.m - g->k0, a.n - g->nk));
    return HEDDLE_OK;
}

static heddle_status run_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block v = la_operand(x, 0), tri = la_operand(x, 1),
                          c = la_operand(x, 2);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return heddle_la_reflect(t, 'L', 'C',
                             la_part(t, v, g->k0, 0, v.m - g->k0, g->nk), tri,
                             la_part(t, c, g->k0, 0, c.m - g->k0, c.n));
}

static struct heddle_cost cost_panel(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->nk, g->nk),
                                .bytes =
                                    (double)(m * g->nk * la_bytes(g->h.t) * 2)};
}

static struct heddle_cost cost_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 2);
    const size_t m = l->extent[0] - g->k0;

    return (struct heddle_cost){
        .flops = 2 * la_flops(g->h.t, m, l->extent[1], g->nk),
        .bytes = (double)(m * (g->nk + 2 * l->extent[1]) * la_bytes(g->h.t))};
}

static const heddle_kernel kernel_panel = {
    .size = sizeof(heddle_kernel),
    .name = "geqrf_panel",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_panel}},
    .cost = cost_panel};

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "geqrf_update",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}},
    .cost = cost_update};

heddle_status heddle_la_geqrf(heddle_la *la, heddle_matrix *a, heddle_matrix *t)
{
    struct geqrf_arg g = {0};
    size_t n;

    LA_CHECK(la, 1, la != NULL && a != NULL);
    n = la_min(a->m, a->n);
    LA_CHECK(la, 2,
             t != NULL && t->t == a->t && t->nb == a->nb && t->n >= n &&
                 t->m >= la_min(a->nb, n));
    g.h = heddle_la_begin(la, a);
    for (size_t k = 0; k < a->nt && la_first(a, k) < n; k++) {
        heddle_handle *const op[2] = {a->col[k], t->col[k]};

        g.k0 = la_first(a, k);
        g.nk = la_min(la_width(a, k), n - g.k0);
        LA_TRY(heddle_la_submit(la, &kernel_panel, op, NULL, 2, &g, sizeof(g),
                                (int)(2 * (a->nt - k) + 1)));
        for (size_t j = k + 1; j < a->nt; j++) {
            heddle_handle *const upd[3] = {a->col[k], t->col[k], a->col[j]};

            LA_TRY(heddle_la_submit(la, &kernel_update, upd, NULL, 3, &g,
                                    sizeof(g), (int)(2 * (a->nt - j))));
        }
    }
    return HEDDLE_OK;
}
