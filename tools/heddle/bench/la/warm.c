/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/warm: what is slow the first time, and how fast the machine is.
 *
 * Purpose    BLAS, the GPU's libraries and kernels, memory and threads are slow the first
 *            time. A small matrix is factorised twice: the first time loads, the second
 *            time tells the rate, from which a size is chosen.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/la/la.h"

enum { WARM_ORDER = 2048, WARM_ORDER_GPU = 8192, LEAST_ORDER = 64, WARM_COLUMNS = 4, SEED = 7 };

static bool is_cholesky(const struct la_warm *w)
{
    return strcmp(w->routine, "potrf") == 0;
}

/* What LAPACK counts. */
static double flops(const struct la_warm *w, double n)
{
    return (is_cholesky(w) ? n * n * n / 3 : 2 * n * n * n / 3) * (la_is_complex(w->t) ? 4 : 1);
}

static heddle_status factor(const struct la_warm *w, heddle_la *la, heddle_matrix *a, int *ipiv,
                            double *ns_out)
{
    const size_t n = heddle_matrix_cols(a);
    heddle_status st = heddle_la_random(
        la, is_cholesky(w) ? HEDDLE_LA_HERMITIAN : HEDDLE_LA_GENERAL, (double)n, SEED, a);
    heddle_status waited = heddle_la_wait(la, NULL);
    uint64_t start;

    if (st != HEDDLE_OK || waited != HEDDLE_OK)
        return st != HEDDLE_OK ? st : waited;
    start = heddle_clock_ns();
    st = is_cholesky(w) ? heddle_la_potrf(la, 'L', a) : heddle_la_getrf(la, a, ipiv);
    waited = heddle_la_wait(la, NULL);
    *ns_out = (double)(heddle_clock_ns() - start);
    return st != HEDDLE_OK ? st : waited;
}

/* nb 0: the width that suits it. The matrix is the runtime's. */
static heddle_status factor_small(const struct la_warm *w, size_t n, size_t nb, double *ns_out)
{
    const struct heddle_la_opts o = {.size = sizeof(o), .nb = w->nb, .routine = w->routine};
    int *ipiv = calloc(n + 1, sizeof(*ipiv));
    heddle_matrix *a = NULL;
    heddle_la *la = NULL;
    heddle_status st = ipiv == NULL ? HEDDLE_ENOMEM : heddle_la_create(w->ctx, &o, &la);

    if (st == HEDDLE_OK)
        st = nb == 0 ? heddle_matrix_create(la, la_dtype(w->t), n, n, NULL, n, &a)
                     : heddle_matrix_create_nb(la, la_dtype(w->t), n, n, NULL, n, nb, &a);
    if (st == HEDDLE_OK)
        st = factor(w, la, a, ipiv, ns_out);
    heddle_matrix_destroy(a);
    heddle_la_destroy(la);
    free(ipiv);
    return st;
}

heddle_status la_warm_up(struct la_warm *w, uint64_t most)
{
    size_t n = w->has_gpu ? WARM_ORDER_GPU : WARM_ORDER;
    double ns = 0;
    heddle_status st;

    while (w->memory > 0 && n > LEAST_ORDER && (double)n * (double)n * 64 > (double)w->memory)
        n /= 2;
    if (most != 0 && most < n)
        n = most;
    st = factor_small(w, n, 0, &ns);
    if (st == HEDDLE_OK)
        st = factor_small(w, n, 0, &ns);
    w->rate = st == HEDDLE_OK && ns > 0 ? flops(w, (double)n) / ns : 0;
    return st;
}

double la_warm_order(const struct la_warm *w, double seconds)
{
    return cbrt(seconds * 1e9 * w->rate / flops(w, 1));
}

heddle_status la_warm_width(struct la_warm *w, size_t n, size_t *nb_out)
{
    const struct heddle_la_opts o = {.size = sizeof(o), .nb = w->nb, .routine = w->routine};
    heddle_matrix *a = NULL;
    heddle_la *la = NULL;
    heddle_status st = heddle_la_create(w->ctx, &o, &la);
    double ns;

    /* It has no memory yet: only the width is asked for. */
    if (st == HEDDLE_OK)
        st = heddle_matrix_create(la, la_dtype(w->t), n, n, NULL, n, &a);
    *nb_out = heddle_matrix_nb(a);
    heddle_matrix_destroy(a);
    heddle_la_destroy(la);
    if (st == HEDDLE_OK)
        st = factor_small(w, n < WARM_COLUMNS * *nb_out ? n : WARM_COLUMNS * *nb_out, *nb_out, &ns);
    return st;
}

unsigned la_warm_gpus(heddle_ctx *ctx, unsigned *memory_out)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};
    unsigned n = 0;

    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &cls) == HEDDLE_OK; i++)
        if (strcmp(cls.kind, "cuda") == 0 && n++ == 0)
            *memory_out = cls.memory;
    return n;
}
