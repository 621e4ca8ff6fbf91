/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * polar: A = U H by QDWH, Halley's iteration with weights that change.
 *
 *   U = A / alpha, alpha >= |A|_2; l <= the smallest singular value of U
 *   with a, b, c from l:   U = U (a I + b U^H U) (I + c U^H U)^-1
 *
 * which takes all singular values from [l, 1] to a smaller interval at 1. The
 * inverse comes from a QR factorisation of [sqrt(c) U; I] while c is large, then
 * from Cholesky. Bounds: alpha from norms, l from |R^-1|_F, A = Q R. A matrix whose
 * rank is not full has no l: it gets a change of the size of rounding errors, so
 * that U has orthonormal columns for it too.
 *
 * The numbers a, b, c, l are doubles for all types.
 */
#include <float.h>
#include <math.h>

#include "la/matrix/paste.h"

enum { STEPS = 30 }; /* at most; seven do unless l is wrong */

struct polar {
    heddle_la *la;
    enum blas_type t;
    heddle_matrix *u;
    struct la_owned a;     /* the matrix as it was, for H */
    struct la_owned w;     /* what a step adds to U */
    struct la_owned stack; /* [sqrt(c) U; I] */
    struct la_owned tri;   /* of its reflectors */
    struct la_owned q2, z; /* n x n */
    double alpha, l;
    bool is_changed;
    int steps;
};

static double eps_of(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* --- bounds ------------------------------------------------------------------------- */

/* An upper bound of |U|_2. */
static heddle_status bound_above(struct polar *p)
{
    double f = 0, one = 0, inf = 0;

    LA_TRY(heddle_la_norm(p->la, 'F', HEDDLE_LA_GENERAL, 'L', p->u, &f));
    LA_TRY(heddle_la_norm(p->la, '1', HEDDLE_LA_GENERAL, 'L', p->u, &one));
    LA_TRY(heddle_la_norm(p->la, 'I', HEDDLE_LA_GENERAL, 'L', p->u, &inf));
    LA_TRY(heddle_la_wait(p->la, NULL));
    one = sqrt(one) * sqrt(inf);
    p->alpha = one < f ? one : f; /* a NaN is in both */
    return HEDDLE_OK;
}

/* *l_out: 1 / |R^-1|_F, 0 when there is no inverse. Works in w and z. */
static heddle_status bound_below(struct polar *p, double *l_out)
{
    heddle_matrix *u = p->u, *w = p->w.m, *z = p->z.m;
    double f = 0;
    int info = 0;

    LA_TRY(heddle_la_lacpy(p->la, 'A', u, w));
    LA_TRY(heddle_la_geqrf(p->la, w, p->tri.m));
    LA_TRY(heddle_la_paste(p->la, 1, w, 0, 0, z, 0, 0, u->n, u->n));
    LA_TRY(heddle_la_trtri(p->la, 'U', 'N', z));
    LA_TRY(heddle_la_norm(p->la, 'F', HEDDLE_LA_TRIANGULAR, 'U', z, &f));
    LA_TRY(heddle_la_wait(p->la, &info));
    *l_out = info == 0 && f >= 1 && f <= DBL_MAX ? 1 / f : 0;
    return HEDDLE_OK;
}

/* l. What comes from R is no bound when it is as small as the rounding errors in R:
 * then U is changed by some units of the last place, and l is less than what that
 * makes of its singular values, by all odds. */
static heddle_status find_l(struct polar *p)
{
    const double eps = eps_of(p->t), n = (double)p->u->n;
    const struct la_scalar f = heddle_la_real(p->t, 4 * eps), one = heddle_la_real(p->t, 1);

    LA_TRY(bound_below(p, &p->l));
    if (p->l >= 10 * sqrt(n) * eps)
        return HEDDLE_OK;
    LA_TRY(heddle_la_random(p->la, HEDDLE_LA_GENERAL, 0, 1, p->w.m));
    LA_TRY(heddle_la_geadd(p->la, 'A', &f, p->w.m, &one, p->u));
    p->l = eps / (1000 * n);
    p->is_changed = true;
    return HEDDLE_OK;
}

/* --- steps -------------------------------------------------------------------------- */

/* w = f Q1 Q2^H, Q of [sqrt(c) U; I]. */
static heddle_status by_qr(struct polar *p, double c, double f)
{
    heddle_matrix *s = p->stack.m, *u = p->u, *q2 = p->q2.m, *w = p->w.m;
    const struct la_scalar alpha = heddle_la_real(p->t, f / sqrt(c));
    const struct la_head h = heddle_la_begin(p->la, w);
    struct la_product q = {.a = s,
                           .b = q2,
                           .c = w,
                           .ta = 'N',
                           .tb = 'C',
                           .alpha = &alpha,
                           .beta = heddle_blas_zero(p->t),
                           .r = {{0, u->m}, {0, 0}, {0, u->n}}};
    const size_t step = heddle_la_group(p->la, w);

    LA_TRY(heddle_la_laset(p->la, 'A', heddle_blas_zero(p->t), heddle_blas_zero(p->t), s));
    LA_TRY(heddle_la_paste(p->la, sqrt(c), u, 0, 0, s, 0, 0, u->m, u->n));
    LA_TRY(heddle_la_add_diagonal(p->la, 1, u->m, s));
    LA_TRY(heddle_la_geqrf(p->la, s, p->tri.m));
    LA_TRY(heddle_la_orgqr(p->la, s, p->tri.m, s));
    LA_TRY(heddle_la_paste(p->la, 1, s, u->m, 0, q2, 0, 0, u->n, u->n));
    for (size_t j = 0; j < w->nt; j += step) {
        q.r.j = (struct la_range){la_first(w, j), la_min(w->n, la_first(w, j + step))};
        LA_TRY(heddle_la_submit_product(&h, &q, 1));
    }
    return HEDDLE_OK;
}

/* w = f U (I + c U^H U)^-1. */
static heddle_status by_cholesky(struct polar *p, double c, double f)
{
    heddle_matrix *u = p->u, *z = p->z.m, *w = p->w.m;
    const struct la_scalar cs = heddle_la_real(p->t, c), fs = heddle_la_real(p->t, f);
    const void *one = heddle_blas_one(p->t), *zero = heddle_blas_zero(p->t);

    LA_TRY(heddle_la_herk(p->la, 'L', 'C', &cs, u, zero, z));
    LA_TRY(heddle_la_add_diagonal(p->la, 1, 0, z));
    LA_TRY(heddle_la_potrf(p->la, 'L', z));
    LA_TRY(heddle_la_lacpy(p->la, 'A', u, w));
    LA_TRY(heddle_la_trsm(p->la, 'R', 'L', 'C', 'N', &fs, z, w));
    return heddle_la_trsm(p->la, 'R', 'L', 'N', 'N', one, z, w);
}

/* One step; *moved_out: how far U went, in Frobenius' norm. */
static heddle_status step(struct polar *p, double *moved_out)
{
    const double l2 = p->l * p->l;
    const double d = cbrt(4 * (1 - l2) / (l2 * l2)), s = sqrt(1 + d);
    const double a = s + sqrt(fmax(0, 8 - 4 * d + 8 * (2 - l2) / (l2 * s))) / 2;
    const double b = (a - 1) * (a - 1) / 4, c = a + b - 1;
    const struct la_scalar one = heddle_la_real(p->t, 1), keep = heddle_la_real(p->t, b / c - 1);

    LA_TRY(c > 100 ? by_qr(p, c, a - b / c) : by_cholesky(p, c, a - b / c));
    LA_TRY(heddle_la_geadd(p->la, 'A', &keep, p->u, &one, p->w.m));
    LA_TRY(heddle_la_geadd(p->la, 'A', &one, p->w.m, &one, p->u));
    LA_TRY(heddle_la_norm(p->la, 'F', HEDDLE_LA_GENERAL, 'L', p->w.m, moved_out));
    LA_TRY(heddle_la_wait(p->la, NULL));
    p->l = fmin(1, p->l * (a + b * l2) / (1 + c * l2));
    p->steps++;
    return HEDDLE_OK;
}

/* *is_out: U has orthonormal columns. */
static heddle_status look(struct polar *p, bool *is_out)
{
    heddle_matrix *z = p->z.m;
    double off = 0;

    LA_TRY(heddle_la_herk(p->la, 'L', 'C', heddle_blas_one(p->t), p->u, heddle_blas_zero(p->t), z));
    LA_TRY(heddle_la_add_diagonal(p->la, -1, 0, z));
    LA_TRY(heddle_la_norm(p->la, 'F', HEDDLE_LA_HERMITIAN, 'L', z, &off));
    LA_TRY(heddle_la_wait(p->la, NULL));
    *is_out = off <= 10 * (double)z->n * eps_of(p->t);
    return HEDDLE_OK;
}

static heddle_status iterate(struct polar *p)
{
    const double eps = eps_of(p->t);
    double moved = 1;
    bool is_done = false;

    while (p->steps < STEPS && !is_done) {
        LA_TRY(step(p, &moved));
        is_done = fabs(p->l - 1) < 10 * eps && moved < cbrt(5 * eps);
        if (is_done && p->is_changed)
            LA_TRY(look(p, &is_done));
    }
    return HEDDLE_OK;
}

/* --- the whole ------------------------------------------------------------------------- */

/* Nothing to iterate on: 0 = I 0, and a NaN is everywhere. */
static heddle_status without_steps(struct polar *p, heddle_matrix *h)
{
    const bool is_zero = p->alpha == 0;
    const struct la_scalar off = heddle_la_real(p->t, is_zero ? 0 : (double)NAN),
                           on = heddle_la_real(p->t, is_zero ? 1 : (double)NAN);

    LA_TRY(heddle_la_laset(p->la, 'A', &off, &on, p->u));
    if (h != NULL)
        LA_TRY(heddle_la_laset(p->la, 'A', &off, &off, h));
    return heddle_la_wait(p->la, NULL);
}

static heddle_status make(struct polar *p, bool wants_h)
{
    const heddle_matrix *u = p->u;
    const size_t m = u->m, n = u->n, nb = u->nb;
    const enum heddle_dtype d = u->dtype;

    if (wants_h)
        LA_TRY(heddle_la_owned_make(p->la, d, m, n, nb, &p->a));
    LA_TRY(heddle_la_owned_make(p->la, d, m, n, nb, &p->w));
    LA_TRY(heddle_la_owned_make(p->la, d, m + n, n, nb, &p->stack));
    LA_TRY(heddle_la_owned_make(p->la, d, la_min(nb, n), n, nb, &p->tri));
    LA_TRY(heddle_la_owned_make(p->la, d, n, n, nb, &p->q2));
    return heddle_la_owned_make(p->la, d, n, n, nb, &p->z);
}

static heddle_status work(struct polar *p, heddle_matrix *h)
{
    const void *one = heddle_blas_one(p->t), *zero = heddle_blas_zero(p->t);

    LA_TRY(bound_above(p));
    if (!(p->alpha > 0 && p->alpha <= DBL_MAX))
        return without_steps(p, h);
    LA_TRY(make(p, h != NULL));
    if (h != NULL)
        LA_TRY(heddle_la_lacpy(p->la, 'A', p->u, p->a.m));
    LA_TRY(heddle_la_paste(p->la, fmin(1 / p->alpha, DBL_MAX), p->u, 0, 0, p->w.m, 0, 0, p->u->m,
                           p->u->n));
    LA_TRY(heddle_la_lacpy(p->la, 'A', p->w.m, p->u));
    LA_TRY(find_l(p));
    LA_TRY(iterate(p));
    if (h == NULL)
        return HEDDLE_OK;
    LA_TRY(heddle_la_gemm(p->la, 'C', 'N', one, p->u, p->a.m, zero, h));
    LA_TRY(heddle_la_hermitian_part(p->la, h, p->z.m));
    return heddle_la_wait(p->la, NULL);
}

heddle_status heddle_la_polar(heddle_la *la, heddle_matrix *a, heddle_matrix *h,
                              int *iterations_out)
{
    struct polar p = {.la = la, .u = a};
    struct la_kept kept;
    bool is_broken = false;
    heddle_status st;

    LA_CHECK(la, 1, la != NULL && a != NULL && a->m >= a->n);
    LA_CHECK(la, 2, h == NULL || (h != a && h->t == a->t && h->m == a->n && h->n == a->n));
    if (iterations_out != NULL)
        *iterations_out = 0;
    if (a->nt == 0)
        return HEDDLE_OK;
    p.t = a->t;
    LA_TRY(heddle_la_kept_open(la, &kept, &is_broken));
    if (is_broken)
        return HEDDLE_OK;
    st = work(&p, h);
    if (st != HEDDLE_OK && heddle_group_wait(la->group, 0) != HEDDLE_OK)
        (void)0; /* the first failure is known */
    heddle_la_owned_end(&p.a);
    heddle_la_owned_end(&p.w);
    heddle_la_owned_end(&p.stack);
    heddle_la_owned_end(&p.tri);
    heddle_la_owned_end(&p.q2);
    heddle_la_owned_end(&p.z);
    heddle_la_kept_shut(la, &kept);
    if (iterations_out != NULL)
        *iterations_out = p.steps;
    return st;
}
