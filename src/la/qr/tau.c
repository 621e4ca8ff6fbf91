/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tau: between LAPACK's vector of scalars and the triangular factors of block
 * reflectors. A program that has only tau gets the triangles by larft.
 */
#include "la/la.h"
#include "la/qr/reflect.h"

struct tau_arg {
    struct la_head h;
    size_t k0, nk; /* first row, and number of reflectors */
};

static heddle_status run_in(struct heddle_exec *x)
{
    const struct tau_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_blas_larft(g->h.t, blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, g->nk),
                      heddle_exec_ptr(x, 1), la_operand(x, 2));
    return HEDDLE_OK;
}

static heddle_status run_out(struct heddle_exec *x)
{
    const struct tau_arg *g = heddle_exec_arg(x);
    const struct blas_block tri = la_operand(x, 0);
    const size_t bytes = blas_bytes(g->h.t);
    char *tau = heddle_exec_ptr(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t i = 0; i < g->nk; i++)
        memcpy(tau + i * bytes, blas_at(g->h.t, tri, i, i), bytes);
    return HEDDLE_OK;
}

static struct heddle_cost cost_in(struct heddle_exec *x)
{
    const struct tau_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->nk, g->nk) / 2,
                                .bytes = (double)(m * g->nk * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_out(struct heddle_exec *x)
{
    const struct tau_arg *g = heddle_exec_arg(x);

    (void)x;
    return (struct heddle_cost){.bytes = (double)(2 * g->nk * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_in = {.size = sizeof(heddle_kernel),
                                        .name = "tau_in",
                                        .noperands = 3,
                                        .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_W},
                                        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_in}},
                                        .cost = cost_in};

static const heddle_kernel kernel_out = {.size = sizeof(heddle_kernel),
                                         .name = "tau_out",
                                         .noperands = 2,
                                         .mode = {HEDDLE_R, HEDDLE_W},
                                         .variants = {{.device = HEDDLE_DEV_CPU, .run = run_out}},
                                         .cost = cost_out};

/* a NULL: out of t. */
static heddle_status all_blocks(heddle_la *la, heddle_matrix *a, heddle_matrix *t, size_t n,
                                void *tau)
{
    struct tau_arg g = {.h = heddle_la_begin(la, t)};

    for (size_t k = 0; k < t->nt && la_first(t, k) < n; k++) {
        heddle_handle *part = NULL;
        heddle_status st;

        g.k0 = la_first(t, k);
        g.nk = la_min(t->nb, n - g.k0);
        LA_TRY(heddle_handle_vector(la->ctx, (char *)tau + g.k0 * blas_bytes(t->t), g.nk, t->dtype,
                                    &part));
        if (a != NULL) {
            heddle_handle *const op[3] = {a->col[k], part, t->col[k]};

            st = heddle_la_submit(la, &kernel_in, op, NULL, 3, &g, sizeof(g),
                                  (int)(2 * (t->nt - k) + 1));
        } else {
            heddle_handle *const op[2] = {t->col[k], part};

            st = heddle_la_submit(la, &kernel_out, op, NULL, 2, &g, sizeof(g), 0);
        }
        heddle_handle_unref(part);
        LA_TRY(st);
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_taus(heddle_la *la, heddle_matrix *a, const void *tau, heddle_matrix *t)
{
    const size_t n = la_min(la_min(a->m, a->n), t->n);

    if (t->nb != a->nb || t->t != a->t || t->m < la_min(n, a->nb))
        return HEDDLE_EINVAL;
    return all_blocks(la, a, t, n, (void *)(uintptr_t)tau);
}

heddle_status heddle_la_taus_rows(heddle_la *la, heddle_matrix *a, const void *tau,
                                  heddle_matrix *t)
{
    heddle_matrix *v = NULL;
    heddle_status st;

    if (a->nt == 0)
        return HEDDLE_OK;
    LA_TRY(heddle_la_reflectors_of_rows(la, a, t, &v));
    st = heddle_la_taus(la, v, tau, t);
    heddle_matrix_destroy(v);
    return st;
}

heddle_status heddle_la_tau_out(heddle_la *la, heddle_matrix *t, size_t k, void *tau)
{
    return all_blocks(la, NULL, t, la_min(k, t->n), tau);
}
