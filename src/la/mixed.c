/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed: gesv and posv with factors of half as many digits, then refined.
 *
 *   low = scale A in low precision, factorised
 *   x = 0, r = b;  again: x = x + A^-1 r by the low factors, r = b - A x
 *
 * until every residual is small: |r| <= |x| |A| eps sqrt(n) in inf norms. When a
 * step does not halve the residual, GMRES goes on (mixed_gmres.c), and after that
 * the full precision is factorised.
 *
 * Scaling  A as a whole, when its norm is far from 1; each residual, always: so
 *          neither runs over in low precision.
 */
#include "la/mixed.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"

/* A NaN stays. */
static inline double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

enum {
    STEPS = 30,    /* of refinement, at most */
    TOGETHER = 256 /* right-hand sides that are one block column */
};

/* --- classic refinement --------------------------------------------------------------- */

/* The largest residual that is good enough. */
static double goal_of(const struct la_mixed *s, const struct la_rhs *h)
{
    return h->x * s->norm * DBL_EPSILON * sqrt((double)s->a->n);
}

/* A power of two near 1 / v. */
static double inverse_power(double v)
{
    int e = 0;

    (void)frexp(v, &e);
    return v == 0 ? 1 : ldexp(1, -e);
}

double heddle_la_mixed_look(struct la_mixed *s)
{
    double worst = 0;

    for (size_t j = 0; j < s->nrhs; j++) {
        struct la_rhs *h = &s->rhs[j];
        const double ratio = h->before == 0 ? 1 : h->r / h->before;

        h->is_done = h->is_done || h->r <= goal_of(s, h);
        if (h->is_done)
            continue;
        worst = larger(worst, ratio);
        h->before = h->r;
        h->goal = goal_of(s, h);
        h->down = inverse_power(h->r);
        h->up = s->scale / h->down;
    }
    return worst;
}

static bool all_done(const struct la_mixed *s)
{
    for (size_t j = 0; j < s->nrhs; j++)
        if (!s->rhs[j].is_done)
            return false;
    return true;
}

/* A step has to make a residual `factor` times smaller. */
static heddle_status classic(struct la_mixed *s, double factor,
                             bool *is_good_out)
{
    bool is_moving = true;

    for (int step = 0; step <= STEPS && is_moving && !all_done(s); step++) {
        LA_TRY(heddle_la_mixed_solve(s, s->r.m, s->x.m, true));
        LA_TRY(heddle_la_mixed_residual(s));
        LA_TRY(heddle_la_mixed_measure(s));
        s->iterations = step; /* the first one is the solve */
        is_moving = heddle_la_mixed_look(s) * factor <= 1;
    }
    *is_good_out = all_done(s);
    return HEDDLE_OK;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* After a failure: memory that tasks may use goes next. */
static void end_tasks(heddle_la *la)
{
    if (heddle_group_wait(la->group, 0) != HEDDLE_OK)
        (void)0; /* the first failure is known */
}

static heddle_status factorise(struct la_mixed *s)
{
    return s->uplo == '\0' ? heddle_la_getrf(s->la, s->low.m, s->ipiv)
                           : heddle_la_potrf(s->la, s->uplo, s->low.m);
}

/* The largest sum of a row; NaN when one is. */
static double norm_of(const double *sums, size_t parts, size_t m)
{
    double most = 0;

    for (size_t i = 0; i < m; i++) {
        double sum = 0;

        for (size_t p = 0; p < parts; p++)
            sum += sums[p * m + i];
        most = larger(most, sum);
    }
    return most;
}

/* The low factors. *is_good_out: they can be used. */
static heddle_status go_down(struct la_mixed *s, double *sums, size_t parts,
                             bool *is_good_out)
{
    int info = 0;

    s->scale = 1;
    LA_TRY(heddle_la_mixed_narrow(s, sums));
    LA_TRY(factorise(s));
    LA_TRY(heddle_la_wait(s->la, &info));
    s->norm = norm_of(sums, parts, s->a->m);
    *is_good_out = false;
    if (!(s->norm > 0 && s->norm <= DBL_MAX))
        return HEDDLE_OK;
    if (s->norm > 0x1p100 || s->norm < 0x1p-60) {
        s->scale = inverse_power(s->norm);
        LA_TRY(heddle_la_mixed_narrow(s, sums));
        LA_TRY(factorise(s));
        LA_TRY(heddle_la_wait(s->la, &info));
    }
    *is_good_out = info == 0 && s->scale >= DBL_MIN && s->scale <= 0x1p1000;
    return HEDDLE_OK;
}

static double backward_error(const struct la_mixed *s)
{
    double worst = 0;

    for (size_t j = 0; j < s->nrhs; j++) {
        const struct la_rhs *h = &s->rhs[j];
        const double e = h->r == 0 ? 0 : h->r / (s->norm * h->x + h->b);

        worst = larger(worst, e);
    }
    return worst;
}

/* In full precision, as the plain routine. A copy of A is for the residual. */
static heddle_status fall_back(struct la_mixed *s, bool wants_error,
                               int *info_out)
{
    heddle_matrix *a = s->a;
    struct la_owned copy = {.m = NULL};
    heddle_status st = HEDDLE_OK;

    heddle_la_owned_end(&s->low);
    if (wants_error) {
        st = heddle_la_owned_make(s->la, a->dtype, a->m, a->n, a->nb, &copy);
        if (st == HEDDLE_OK)
            st = heddle_la_lacpy(s->la, s->uplo == '\0' ? 'A' : s->uplo, a,
                                 copy.m);
    }
    if (st == HEDDLE_OK)
        st = heddle_la_lacpy(s->la, 'A', s->b, s->x.m);
    if (st == HEDDLE_OK)
        st = s->uplo == '\0' ? heddle_la_gesv(s->la, a, s->ipiv, s->x.m)
                             : heddle_la_posv(s->la, s->uplo, a, s->x.m);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(s->la, info_out);
    if (st == HEDDLE_OK && wants_error && *info_out == 0) {
        s->a = copy.m;
        st = heddle_la_mixed_residual(s);
        if (st == HEDDLE_OK)
            st = heddle_la_mixed_measure(s);
        s->a = a;
    }
    if (st != HEDDLE_OK)
        end_tasks(s->la);
    heddle_la_owned_end(&copy);
    return st;
}

static heddle_status refine(struct la_mixed *s, enum heddle_la_refine *how,
                            bool *is_good_out)
{
    bool is_finite = true;

    LA_TRY(heddle_la_laset(s->la, 'A', heddle_la_zero(s->t),
                           heddle_la_zero(s->t), s->x.m));
    LA_TRY(heddle_la_lacpy(s->la, 'A', s->b, s->r.m));
    LA_TRY(heddle_la_mixed_measure(s));
    for (size_t j = 0; j < s->nrhs; j++) {
        s->rhs[j].b = s->rhs[j].r;
        is_finite = is_finite && s->rhs[j].b <= DBL_MAX;
    }
    (void)heddle_la_mixed_look(s);
    *is_good_out = false;
    if (!is_finite)
        return HEDDLE_OK;
    if (all_done(s)) {
        *is_good_out = true;
        return HEDDLE_OK;
    }
    if (*how != HEDDLE_LA_REFINE_GMRES)
        LA_TRY(
            classic(s, *how == HEDDLE_LA_REFINE_AUTO ? 2 : 1.1, is_good_out));
    if (*is_good_out || *how == HEDDLE_LA_REFINE_CLASSIC)
        return HEDDLE_OK;
    *how = HEDDLE_LA_REFINE_GMRES;
    return heddle_la_mixed_gmres(s, is_good_out);
}

static heddle_status make(struct la_mixed *s, const heddle_matrix *x)
{
    const enum heddle_dtype full = s->a->dtype,
                            low = full == HEDDLE_F64 ? HEDDLE_F32 : HEDDLE_C64;
    const size_t n = s->a->n, nb = la_max(1, la_min(x->n, TOGETHER));

    LA_TRY(heddle_la_owned_make(s->la, low, n, n, s->a->nb, &s->low));
    LA_TRY(heddle_la_owned_make(s->la, full, n, x->n, nb, &s->x));
    LA_TRY(heddle_la_owned_make(s->la, full, n, x->n, nb, &s->r));
    return heddle_la_owned_make(s->la, low, n, x->n, nb, &s->d);
}

static heddle_status work(struct la_mixed *s, enum heddle_la_refine how,
                          heddle_matrix *x, struct heddle_la_refined *out,
                          int *info_out)
{
    const size_t parts = heddle_la_mixed_parts(s->a);
    double *sums = heddle_zalloc(&heddle_allocator_default, parts * s->a->m,
                                 sizeof(*sums));
    bool is_good = false;
    heddle_status st = sums == NULL ? HEDDLE_ENOMEM : make(s, x);

    if (st == HEDDLE_OK)
        st = go_down(s, sums, parts, &is_good);
    if (st != HEDDLE_OK)
        end_tasks(s->la);
    heddle_free(&heddle_allocator_default, sums,
                parts * s->a->m * sizeof(*sums));
    if (st == HEDDLE_OK && is_good)
        st = refine(s, &how, &is_good);
    if (st == HEDDLE_OK && !is_good)
        st = fall_back(s, out != NULL, info_out);
    if (st == HEDDLE_OK)
        st = heddle_la_lacpy(s->la, 'A', s->x.m, x);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(s->la, NULL);
    if (st == HEDDLE_OK && out != NULL) {
        out->iterations = s->iterations;
        out->fell_back = !is_good;
        out->how = how;
        out->backward_error =
            *info_out == 0 ? backward_error(s) : (double)INFINITY;
    }
    return st;
}

static bool fits(const heddle_matrix *a, const heddle_matrix *b)
{
    return b != NULL && b != a && b->t == a->t && b->m == a->m;
}

static bool is_full(const heddle_matrix *a)
{
    return a != NULL && a->m == a->n && la_real_bytes(a->t) == 8;
}

static bool is_out(const struct heddle_la_refined *out)
{
    return out == NULL || out->size == sizeof(*out);
}

/* Arguments are fine. */
static heddle_status solve(struct la_mixed s, enum heddle_la_refine how,
                           heddle_matrix *x, struct heddle_la_refined *out,
                           int *info_out)
{
    struct la_kept kept;
    bool is_broken = false;
    heddle_status st;
    int info = 0;

    if (out != NULL)
        *out = (struct heddle_la_refined){.size = sizeof(*out),
                                          .how = how == HEDDLE_LA_REFINE_AUTO
                                                     ? HEDDLE_LA_REFINE_CLASSIC
                                                     : how};
    if (info_out != NULL)
        *info_out = 0;
    if (s.a->n == 0)
        return HEDDLE_OK;
    s.t = s.a->t;
    s.nrhs = x->n;
    LA_TRY(heddle_la_kept_open(s.la, &kept, &is_broken));
    if (is_broken)
        return HEDDLE_OK;
    s.rhs = heddle_zalloc(&heddle_allocator_default, la_max(s.nrhs, 1),
                          sizeof(*s.rhs));
    st = s.rhs == NULL ? HEDDLE_ENOMEM : work(&s, how, x, out, &info);
    if (st != HEDDLE_OK)
        end_tasks(s.la);
    heddle_la_owned_end(&s.low);
    heddle_la_owned_end(&s.x);
    heddle_la_owned_end(&s.r);
    heddle_la_owned_end(&s.d);
    heddle_free(&heddle_allocator_default, s.rhs,
                la_max(s.nrhs, 1) * sizeof(*s.rhs));
    heddle_la_kept_shut(s.la, &kept);
    if (out != NULL && out->how == HEDDLE_LA_REFINE_AUTO)
        out->how = HEDDLE_LA_REFINE_CLASSIC;
    if (info_out != NULL)
        *info_out = info;
    return st;
}

heddle_status heddle_la_gesv_mixed(heddle_la *la, enum heddle_la_refine how,
                                   heddle_matrix *a, int *ipiv,
                                   heddle_matrix *b, heddle_matrix *x,
                                   struct heddle_la_refined *out, int *info_out)
{
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= HEDDLE_LA_REFINE_GMRES);
    LA_CHECK(la, 2, is_full(a));
    LA_CHECK(la, 3, ipiv != NULL || a->n == 0);
    LA_CHECK(la, 4, fits(a, b));
    LA_CHECK(la, 5, fits(a, x) && x != b && x->n == b->n);
    LA_CHECK(la, 6, is_out(out));
    return solve((struct la_mixed){.la = la, .a = a, .ipiv = ipiv, .b = b}, how,
                 x, out, info_out);
}

heddle_status heddle_la_posv_mixed(heddle_la *la, enum heddle_la_refine how,
                                   char uplo, heddle_matrix *a,
                                   heddle_matrix *b, heddle_matrix *x,
                                   struct heddle_la_refined *out, int *info_out)
{
    uplo = heddle_la_letter(uplo, "UL");
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= HEDDLE_LA_REFINE_GMRES);
    LA_CHECK(la, 2, uplo != '\0');
    LA_CHECK(la, 3, is_full(a));
    LA_CHECK(la, 4, fits(a, b));
    LA_CHECK(la, 5, fits(a, x) && x != b && x->n == b->n);
    LA_CHECK(la, 6, is_out(out));
    return solve((struct la_mixed){.la = la, .a = a, .uplo = uplo, .b = b}, how,
                 x, out, info_out);
}
