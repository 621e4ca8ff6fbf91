/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getrf: LU on block columns, with partial pivoting or without.
 *
 * Panel k       P_k A_k = L_k U_kk on the rows from k on, by one task
 * Update j, k   rows of A_j change places as P_k says, A_kj = L_kk^-1 A_kj,
 *               A_ij = A_ij - L_ik A_kj: one task for each j > k
 * Back j, k     rows of A_j for j < k change places: what LAPACK leaves; those of
 *               several steps at once
 *
 * Pivots are LAPACK's: numbers of rows of the whole matrix, from 1.
 *
 * Where there is a GPU, a panel also leaves what makes its updates cheap there, the
 * inverse of L_kk and where rows go (cuda.h): a solve with L_kk is many small launches,
 * and a product is one. Where products are made of halves, the rows below L_kk are there
 * as such, made once for all updates. On cores alone it leaves itself packed, where that
 * is quicker than the BLAS (packed.h), and updates read nothing else.
 *
 * A panel is made by one core with LAPACK, by a gang of them (panel.h) or, where
 * there is one, by a GPU. On cores a model chooses, when the step is submitted; whether
 * a core or the GPU does it is up to the scheduler.
 */
#include <string.h>

#include "la/cuda/mixed.h"
#include "la/lu/getrf.h"
#include "la/lu/panel.h"
#include "la/product/packed.h"

enum {
    RING = 4, /* steps whose packed panels are there at once */
    BACK = 8  /* steps whose pivots go back together */
};

/* What the steps of a call share; each of it may be NULL. */
struct getrf_call {
    heddle_matrix *a;
    struct la_pivots *pivots;
    heddle_handle *record;
    heddle_handle *ring[RING]; /* packed panels, used by turns */
};

/* Columns on the left, for which no task waits: the pivots of `nsteps` steps. */
static heddle_status submit_back(const struct getrf_call *c, struct getrf_arg g, size_t last)
{
    static const enum heddle_mode modes[1 + BACK] = {
        HEDDLE_RW, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R};
    const size_t first = last + 1 - g.nsteps;

    for (size_t j = 0; j < last; j++) {
        heddle_handle *op[1 + BACK] = {c->a->col[j]};
        const size_t k = la_max(j + 1, first);

        g.nsteps = last + 1 - k;
        g.k0 = la_first(c->a, k);
        memcpy(op + 1, c->pivots->part + k, g.nsteps * sizeof(op[0]));
        LA_TRY(heddle_la_submit(g.h.la, &heddle_getrf_back, op, modes, 1 + (unsigned)g.nsteps, &g,
                                sizeof(g), -1));
    }
    return HEDDLE_OK;
}

/* How many cores make the panel of step k. Where there is a GPU, its scheduler is
 * asked, which knows of single cores only. */
static unsigned pick_gang(const struct getrf_arg *g, const heddle_matrix *a)
{
    const heddle_la *la = g->h.la;
    const bool has_cores = la->opts.devices == 0 || (la->opts.devices >> HEDDLE_DEV_CPU & 1) != 0;

    if (!g->has_pivots || !has_cores || la->opts.panel == HEDDLE_LA_PANEL_SINGLE)
        return 1;
    if (la->opts.panel == HEDDLE_LA_PANEL_GANG)
        return heddle_la_panel_largest(la->ncores);
    return la->has_cuda ? 1
                        : heddle_la_panel_choose(
                              &(struct la_panel_case){.t = g->h.t,
                                                      .m = a->m - g->k0,
                                                      .n = g->nk,
                                                      .columns = a->n - la_min(a->n, g->k0 + a->nb),
                                                      .nb = a->nb,
                                                      .ncores = la->ncores});
}

/* The panel of step k, then the columns on its right. aux: what updates on a GPU
 * want, or on cores (is_packed). */
static heddle_status submit_step(const struct getrf_call *c, const struct getrf_arg *g,
                                 heddle_handle *aux)
{
    const heddle_matrix *a = c->a;
    heddle_handle *pivots = g->has_pivots ? c->pivots->part[g->k] : NULL;
    heddle_handle *op[4] = {a->col[g->k]};
    enum heddle_mode modes[4] = {HEDDLE_RW};
    unsigned n = 1;

    if (pivots != NULL) {
        modes[n] = HEDDLE_W;
        op[n++] = pivots;
    }
    if (c->record != NULL) {
        modes[n] = HEDDLE_RW;
        op[n++] = c->record;
    }
    if (aux != NULL) {
        modes[n] = HEDDLE_W;
        op[n++] = aux;
    }
    LA_TRY(heddle_la_submit(g->h.la, heddle_getrf_panel(g->ngang), op, modes, n, g, sizeof(*g),
                            (int)(2 * (a->nt - g->k) + 1)));
    n = g->is_packed ? 2 : pivots == NULL ? 2 : aux == NULL ? 3 : 4;
    for (size_t j = g->k + 1; j < a->nt; j++) {
        static const enum heddle_mode update[4] = {HEDDLE_R, HEDDLE_RW, HEDDLE_R, HEDDLE_R};
        heddle_handle *const with[4] = {g->is_packed ? aux : a->col[g->k], a->col[j], pivots, aux};

        LA_TRY(heddle_la_submit(
            g->h.la, g->h.la->has_cuda && j == g->k + 1 ? &heddle_getrf_next : &heddle_getrf_update,
            with, update, n, g, sizeof(*g), (int)(2 * (a->nt - j))));
    }
    return HEDDLE_OK;
}

/* Cores alone: the panel is packed for its updates. Memory is that of an earlier
 * step, whose updates have ended by then. */
static heddle_status submit_packed(struct getrf_call *c, struct getrf_arg *g, size_t bytes)
{
    heddle_handle **slot = &c->ring[g->k % RING];

    if (*slot == NULL)
        LA_TRY(heddle_handle_vector(g->h.la->ctx, NULL, bytes, HEDDLE_U8, slot));
    g->is_packed = true;
    return submit_step(c, g, *slot);
}

/* A step with what its updates need, where that helps. */
static heddle_status submit_with_aux(struct getrf_call *c, struct getrf_arg *g)
{
    const heddle_matrix *a = c->a;
    const enum blas_type t = g->h.t;
    const size_t bytes = heddle_packed_lu_bytes(t, a->m - g->k0, g->nk);
    heddle_handle *aux = NULL;
    heddle_status st = HEDDLE_OK;

    g->is_packed = g->has_aux = false;
    if (!g->h.la->has_cuda && g->k + 1 < a->nt && bytes > 0)
        return submit_packed(c, g, bytes);
    g->has_aux = g->has_pivots && c->record != NULL && !blas_is_complex(t) &&
                 la_lu_has_aux(g->nk) && g->k + 1 < a->nt &&
                 g->nk * a->nb * blas_bytes(t) <= LA_GPU_SCRATCH;
    g->has_halves = g->has_aux && t == BLAS_S && la_half_terms(g->h.low) > 0 &&
                    la_half_bytes(g->h.low, g->nk, a->nb) <= LA_GPU_SCRATCH;
    /* As large for all steps: what one has given back fits the next one. */
    if (g->has_aux)
        st = heddle_handle_vector(g->h.la->ctx, NULL,
                                  (g->has_halves
                                       ? la_half_at(t, g->nk) + la_half_bytes(g->h.low, a->m, g->nk)
                                       : la_lu_aux_bytes(t, g->nk)) /
                                      4,
                                  HEDDLE_I32, &aux);
    if (st == HEDDLE_OK)
        st = submit_step(c, g, aux);
    heddle_handle_unref(aux);
    return st;
}

static heddle_status submit_steps(struct getrf_call *c, struct getrf_arg *g)
{
    const heddle_matrix *a = c->a;
    const size_t n = la_min(a->m, a->n), nsteps = (n + a->nb - 1) / a->nb;
    const size_t back = g->h.la->has_cuda ? 1 : BACK; /* a GPU takes one */
    const bool at_end = heddle_la_has_back(g->h.la, a);

    for (size_t k = 0; k < nsteps; k++) {
        g->k = k;
        g->k0 = la_first(a, k);
        g->nk = la_min(a->nb, n - g->k0);
        g->nsteps = 1;
        g->ngang = pick_gang(g, a);
        LA_TRY(submit_with_aux(c, g));
        if (!g->has_pivots || at_end || ((k + 1) % back != 0 && k + 1 < nsteps))
            continue;
        g->nsteps = k % back + 1;
        LA_TRY(submit_back(c, *g, k));
    }
    return g->has_pivots && at_end ? heddle_la_getrf_back(&g->h, c->a, c->pivots) : HEDDLE_OK;
}

static heddle_status submit_all(heddle_la *la, heddle_matrix *a, int *ipiv)
{
    const size_t n = la_min(a->m, a->n);
    struct getrf_arg g = {.h = heddle_la_begin(la, a), .has_pivots = ipiv != NULL};
    struct getrf_call c = {.a = a};
    heddle_status st;

    if (n == 0)
        return HEDDLE_OK;
    if (ipiv != NULL)
        LA_TRY(heddle_la_pivots(la, ipiv, n, a->nb, a->m, &c.pivots));
    LA_TRY(heddle_la_record(la, a->nt, &c.record));
    st = submit_steps(&c, &g);
    for (unsigned i = 0; i < RING; i++)
        heddle_handle_unref(c.ring[i]);
    if (st == HEDDLE_OK)
        return heddle_la_collect(&g.h, c.record, a->nb, false);
    heddle_handle_unref(c.record);
    return st;
}

heddle_status heddle_la_getrf(heddle_la *la, heddle_matrix *a, int *ipiv)
{
    LA_CHECK(la, 1, la != NULL && a != NULL);
    LA_CHECK(la, 2, ipiv != NULL || la_min(a->m, a->n) == 0);
    return submit_all(la, a, ipiv);
}

heddle_status heddle_la_getrf_nopiv(heddle_la *la, heddle_matrix *a)
{
    LA_CHECK(la, 1, la != NULL && a != NULL);
    return submit_all(la, a, NULL);
}
