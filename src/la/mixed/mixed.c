/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed: gesv and posv with factors of half as many digits, then refined.
 *
 *   low = scale A in low precision, factorised
 *   x = 0, r = b;  again: x = x + A^-1 r by the low factors, r = b - A x
 *
 * until every residual is small: |r| <= |x| |A| eps sqrt(n) in inf norms. When a
 * step does not halve the residual, GMRES goes on (gmres.c), and after that
 * factors with more digits are tried, the full precision last.
 *
 * Scaling  A as a whole, when its norm is far from 1; each residual, always: so
 *          neither runs over in low precision.
 * Factors  On a GPU the products are what a try says (enum heddle_la_low). The error of
 *          TF32 or halves in LU of a random matrix grows with its order, and with it
 *          the number of vectors that GMRES has to find: beyond order 4096 too many.
 *          So two halves are taken for each number, but for Cholesky with an upper
 *          triangle, whose products are others: it begins with TF32.
 */
#include "la/mixed/mixed.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/sized.h"

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
static heddle_status classic(struct la_mixed *s, double factor, bool *is_good_out)
{
    bool is_moving = true;

    for (int step = 0; step <= STEPS && is_moving && !all_done(s); step++) {
        LA_TRY(heddle_la_mixed_solve(s, s->r.m, s->x.m, true));
        LA_TRY(heddle_la_mixed_residual(s));
        LA_TRY(heddle_la_mixed_measure(s));
        if (step > 0) /* the first one is the solve */
            s->iterations++;
        is_moving = heddle_la_mixed_look(s) * factor <= 1;
    }
    for (size_t j = 0; j < s->nrhs; j++)
        s->ran_over = s->ran_over || !(s->rhs[j].r <= DBL_MAX);
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

/* How products are made, and what factors are multiplied by before they become halves.
 * LU: elements of L are at most 1; those of U are much smaller than the norm in dense
 * matrices, and have room to grow. Cholesky: at most the root of the norm. */
static struct la_low low_of(const struct la_mixed *s, enum heddle_la_low kind)
{
    const double norm = s->norm * s->scale;

    if (s->uplo != '\0') {
        const float f = (float)(0x1p11 * inverse_power(sqrt(norm)));

        return (struct la_low){.kind = kind, .left = f, .right = f};
    }
    return (struct la_low){
        .kind = kind, .left = 0x1p12f, .right = (float)(0x1p13 * inverse_power(norm))};
}

static heddle_status factorise(struct la_mixed *s, struct la_low low)
{
    heddle_status st;

    s->la->low = low;
    st = s->uplo == '\0' ? heddle_la_getrf(s->la, s->low.m, s->ipiv)
                         : heddle_la_potrf(s->la, s->uplo, s->low.m);
    s->la->low = (struct la_low){.kind = HEDDLE_LA_LOW_AUTO};
    return st;
}

/* From pivots to rows. False: these are none, so the factors are of no use. */
static bool fill_perm(struct la_mixed *s)
{
    const int n = (int)s->a->n;

    for (int i = 0; i < n; i++)
        s->perm[i] = i;
    for (int i = 0; i < n; i++) {
        const int p = s->ipiv[i] - 1, row = s->perm[i];

        if (p < i || p >= n)
            return false;
        s->perm[i] = s->perm[p];
        s->perm[p] = row;
    }
    return true;
}

static heddle_status make_perm(struct la_mixed *s, bool *is_good_out)
{
    heddle_handle_unref(s->perms);
    s->perms = NULL;
    *is_good_out = fill_perm(s);
    return *is_good_out ? heddle_handle_vector(s->la->ctx, s->perm, s->a->n, HEDDLE_I32, &s->perms)
                        : HEDDLE_OK;
}

/* The low factors. *is_good_out: they can be used. Cores begin before the norm is
 * known, which scaling waits for. */
static heddle_status go_down(struct la_mixed *s, enum heddle_la_low kind, bool *is_good_out)
{
    const bool is_early = !s->la->has_cuda;
    bool is_again = true;
    int info = 0;

    *is_good_out = false;
    while (is_again) {
        LA_TRY(heddle_la_mixed_narrow(s));
        if (is_early)
            LA_TRY(factorise(s, (struct la_low){.kind = kind}));
        LA_TRY(heddle_la_wait(s->la, &info));
        LA_TRY(heddle_la_mixed_norm(s));
        if (!(s->norm > 0 && s->norm <= DBL_MAX))
            return HEDDLE_OK;
        is_again = s->scale == 1 && (s->norm > 0x1p100 || s->norm < 0x1p-60);
        if (is_again)
            s->scale = inverse_power(s->norm);
    }
    if (!is_early) {
        LA_TRY(factorise(s, low_of(s, kind)));
        LA_TRY(heddle_la_wait(s->la, &info));
    }
    *is_good_out = info == 0 && s->scale >= DBL_MIN && s->scale <= 0x1p1000;
    if (*is_good_out && s->uplo == '\0')
        LA_TRY(make_perm(s, is_good_out));
    return *is_good_out && heddle_la_mixed_sweeps(s) ? heddle_la_mixed_invert(s) : HEDDLE_OK;
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
static heddle_status fall_back(struct la_mixed *s, bool wants_error, int *info_out)
{
    heddle_matrix *a = s->a;
    struct la_owned copy = {.m = NULL};
    heddle_status st = HEDDLE_OK;

    heddle_la_owned_end(&s->low);
    if (wants_error) {
        st = heddle_la_owned_make(s->la, a->dtype, a->m, a->n, a->nb, &copy);
        if (st == HEDDLE_OK)
            st = heddle_la_lacpy(s->la, s->uplo == '\0' ? 'A' : s->uplo, a, copy.m);
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

static heddle_status refine(struct la_mixed *s, enum heddle_la_refine *how, bool *is_good_out)
{
    bool is_finite = true;

    for (size_t j = 0; j < s->nrhs; j++)
        s->rhs[j] = (struct la_rhs){.is_done = false};
    LA_TRY(heddle_la_laset(s->la, 'A', heddle_blas_zero(s->t), heddle_blas_zero(s->t), s->x.m));
    LA_TRY(heddle_la_lacpy(s->la, 'A', s->b, s->r.m));
    LA_TRY(heddle_la_mixed_measure(s));
    for (size_t j = 0; j < s->nrhs; j++) {
        s->rhs[j].b = s->rhs[j].r;
        is_finite = is_finite && s->rhs[j].b <= DBL_MAX;
    }
    (void)heddle_la_mixed_look(s);
    *is_good_out = false;
    s->is_hopeless = !is_finite;
    if (!is_finite)
        return HEDDLE_OK;
    if (all_done(s)) {
        *is_good_out = true;
        return HEDDLE_OK;
    }
    if (*how != HEDDLE_LA_REFINE_GMRES)
        LA_TRY(classic(s, *how == HEDDLE_LA_REFINE_AUTO ? 2 : 1.1, is_good_out));
    if (*is_good_out || s->ran_over || *how == HEDDLE_LA_REFINE_CLASSIC)
        return HEDDLE_OK;
    *how = HEDDLE_LA_REFINE_GMRES;
    return heddle_la_mixed_gmres(s, is_good_out);
}

static heddle_status make(struct la_mixed *s, const heddle_matrix *x)
{
    const enum heddle_dtype full = s->a->dtype, low = full == HEDDLE_F64 ? HEDDLE_F32 : HEDDLE_C64;
    const size_t n = s->a->n, nb = la_max(1, la_min(x->n, TOGETHER));

    LA_TRY(heddle_la_mixed_open(s));
    LA_TRY(heddle_la_owned_make(s->la, low, n, n, s->a->nb, &s->low));
    LA_TRY(heddle_la_owned_make(s->la, full, n, x->n, nb, &s->x));
    LA_TRY(heddle_la_owned_make(s->la, full, n, x->n, nb, &s->r));
    LA_TRY(heddle_la_owned_make(s->la, low, n, x->n, nb, &s->d));
    if (!heddle_la_mixed_sweeps(s))
        return HEDDLE_OK;
    LA_TRY(heddle_la_owned_make(s->la, low, n, x->n, nb, &s->e));
    for (unsigned i = 0; i < (s->uplo == '\0' ? 2 : 1); i++)
        LA_TRY(heddle_la_owned_make(s->la, low, la_min(n, s->a->nb), n, s->a->nb, &s->inv[i]));
    return HEDDLE_OK;
}

enum { TENSOR_N = 4096 }; /* order from which on tensor cores pay */

/* What is tried, one after the other. */
static unsigned pick_kinds(const struct la_mixed *s, enum heddle_la_low out[2])
{
    const bool is_lu = s->uplo == '\0';
    enum heddle_la_low kind = s->la->opts.low;

    if (kind == HEDDLE_LA_LOW_AUTO)
        kind = s->a->n < TENSOR_N ? HEDDLE_LA_LOW_SINGLE
               : s->uplo != 'U'   ? HEDDLE_LA_LOW_HALVES
                                  : HEDDLE_LA_LOW_TF32;
    if (!is_lu && kind == HEDDLE_LA_LOW_HALF)
        kind = HEDDLE_LA_LOW_TF32;
    if (!s->la->has_cuda || blas_is_complex(s->t) ||
        (s->uplo == 'U' && kind == HEDDLE_LA_LOW_HALVES))
        kind = HEDDLE_LA_LOW_SINGLE;
    out[0] = kind;
    out[1] = HEDDLE_LA_LOW_SINGLE;
    return kind == HEDDLE_LA_LOW_SINGLE ? 1 : 2;
}

/* *how: what was used at the end. */
static heddle_status try_kinds(struct la_mixed *s, enum heddle_la_refine *how, bool *is_good_out)
{
    const enum heddle_la_refine asked = *how;
    enum heddle_la_low kinds[2];
    const unsigned n = pick_kinds(s, kinds);

    s->scale = 1;
    for (unsigned i = 0; i < n && !*is_good_out && !s->is_hopeless; i++) {
        /* Two halves are single precision, if they have not run over. */
        if (s->kind == HEDDLE_LA_LOW_HALVES && !s->ran_over)
            break;
        s->kind = kinds[i];
        s->ran_over = false;
        s->tries++;
        *how = asked;
        LA_TRY(go_down(s, kinds[i], is_good_out));
        s->is_hopeless = !(s->norm > 0 && s->norm <= DBL_MAX);
        if (*is_good_out)
            LA_TRY(refine(s, how, is_good_out));
    }
    return HEDDLE_OK;
}

static heddle_status work(struct la_mixed *s, enum heddle_la_refine how, heddle_matrix *x,
                          struct heddle_la_refined *out, int *info_out)
{
    bool is_good = false;
    heddle_status st = make(s, x);

    if (st == HEDDLE_OK)
        st = try_kinds(s, &how, &is_good);
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
        out->low = s->kind;
        out->tries = s->tries;
        out->backward_error = *info_out == 0 ? backward_error(s) : (double)INFINITY;
    }
    return st;
}

static bool fits(const heddle_matrix *a, const heddle_matrix *b)
{
    return b != NULL && b != a && b->t == a->t && b->m == a->m;
}

static bool is_full(const heddle_matrix *a)
{
    return a != NULL && a->m == a->n && blas_real_bytes(a->t) == 8;
}

static bool is_out(const struct heddle_la_refined *out)
{
    return out == NULL || HEDDLE_SIZED_ROOM(struct heddle_la_refined, out, NULL, 0) == HEDDLE_OK;
}

/* Arguments are fine. */
static heddle_status solve(struct la_mixed s, enum heddle_la_refine how, heddle_matrix *x,
                           struct heddle_la_refined *out, int *info_out)
{
    struct la_kept kept;
    bool is_broken = false;
    heddle_status st;
    int info = 0;

    if (out != NULL)
        *out = (struct heddle_la_refined){
            .size = sizeof(*out),
            .how = how == HEDDLE_LA_REFINE_AUTO ? HEDDLE_LA_REFINE_CLASSIC : how};
    if (info_out != NULL)
        *info_out = 0;
    if (s.a->n == 0)
        return HEDDLE_OK;
    s.t = s.a->t;
    s.nrhs = x->n;
    LA_TRY(heddle_la_kept_open(s.la, &kept, &is_broken));
    if (is_broken)
        return HEDDLE_OK;
    s.rhs = heddle_zalloc(&s.la->alloc, la_max(s.nrhs, 1), sizeof(*s.rhs));
    st = s.rhs == NULL ? HEDDLE_ENOMEM : work(&s, how, x, out, &info);
    if (st != HEDDLE_OK)
        end_tasks(s.la);
    heddle_la_owned_end(&s.low);
    heddle_la_owned_end(&s.x);
    heddle_la_owned_end(&s.r);
    heddle_la_owned_end(&s.d);
    heddle_la_owned_end(&s.e);
    heddle_la_owned_end(&s.inv[0]);
    heddle_la_owned_end(&s.inv[1]);
    heddle_la_mixed_shut(&s);
    heddle_free(&s.la->alloc, s.rhs, la_max(s.nrhs, 1) * sizeof(*s.rhs));
    heddle_la_kept_shut(s.la, &kept);
    if (out != NULL && out->how == HEDDLE_LA_REFINE_AUTO)
        out->how = HEDDLE_LA_REFINE_CLASSIC;
    if (info_out != NULL)
        *info_out = info;
    return st;
}

/* The same into the caller's struct, of whatever size. */
static heddle_status solve_into(struct la_mixed s, enum heddle_la_refine how, heddle_matrix *x,
                                struct heddle_la_refined *out, int *info_out)
{
    struct heddle_la_refined r = {.size = sizeof(r)};
    const heddle_status st = solve(s, how, x, out != NULL ? &r : NULL, info_out);

    if (out != NULL)
        heddle_sized_put(out, &r, sizeof(r));
    return st;
}

heddle_status heddle_la_gesv_mixed(heddle_la *la, enum heddle_la_refine how, heddle_matrix *a,
                                   int *ipiv, heddle_matrix *b, heddle_matrix *x,
                                   struct heddle_la_refined *out, int *info_out)
{
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= HEDDLE_LA_REFINE_GMRES);
    LA_CHECK(la, 2, is_full(a));
    LA_CHECK(la, 3, ipiv != NULL || a->n == 0);
    LA_CHECK(la, 4, fits(a, b));
    LA_CHECK(la, 5, fits(a, x) && x != b && x->n == b->n);
    LA_CHECK(la, 6, is_out(out));
    return solve_into((struct la_mixed){.la = la, .a = a, .ipiv = ipiv, .b = b}, how, x, out,
                      info_out);
}

heddle_status heddle_la_posv_mixed(heddle_la *la, enum heddle_la_refine how, char uplo,
                                   heddle_matrix *a, heddle_matrix *b, heddle_matrix *x,
                                   struct heddle_la_refined *out, int *info_out)
{
    uplo = heddle_la_letter(uplo, "UL");
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= HEDDLE_LA_REFINE_GMRES);
    LA_CHECK(la, 2, uplo != '\0');
    LA_CHECK(la, 3, is_full(a));
    LA_CHECK(la, 4, fits(a, b));
    LA_CHECK(la, 5, fits(a, x) && x != b && x->n == b->n);
    LA_CHECK(la, 6, is_out(out));
    return solve_into((struct la_mixed){.la = la, .a = a, .uplo = uplo, .b = b}, how, x, out,
                      info_out);
}
