/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/check: residuals of what was computed, by plain loops.
 *
 * Purpose    shares nothing with what is checked: neither the library's tasks nor
 *            the BLAS.
 * Method     a residual matrix E is multiplied by vectors X; |E| >= |E x| / |x|.
 *            Small matrices: X is the identity, and it is E's norm itself. Large
 *            ones: a few vectors, O(n^2) operations. An error in one element is in
 *            their products, up to n / 4 times smaller than in |E|; one of a block
 *            or a column is not. Sums are of doubles.
 * Threads    products share the columns, reflectors the vectors.
 */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/la/la.h"

enum { WHOLE = LA_CHECK_WHOLE, PROBES = 4, SOLUTIONS = 8, COLUMNS = 16, MAX_SHARES = 64 };

/* --- loops ------------------------------------------------------------------ */

enum shape { FULL, LOWER, UPPER, UNIT_LOWER, STRICT_LOWER };

/* The upper left m x n of an array, or a part of it. */
struct part {
    const void *p;
    size_t m, n, ld;
    enum shape shape;
    bool is_adjoint; /* conjugate and transposed */
    bool is_plain;   /* transposed only, then */
};

struct range {
    size_t from, to;
};

static struct range part_rows(const struct part *a, size_t j)
{
    struct range r = {0, a->m};

    if (a->shape == LOWER)
        r.from = j < a->m ? j : a->m;
    else if (a->shape == UNIT_LOWER || a->shape == STRICT_LOWER)
        r.from = j + 1 < a->m ? j + 1 : a->m;
    else if (a->shape == UPPER)
        r.to = j + 1 < a->m ? j + 1 : a->m;
    return r;
}

/* The columns of one of some threads: every so many of them. */
struct share {
    unsigned index, of;
};

static bool is_mine(struct share h, size_t column)
{
    return column / COLUMNS % h.of == h.index;
}

struct vec_ops {
    /* y = y + alpha op(a) x, for nv vectors. */
    void (*mul)(const struct part *a, struct share h, double alpha, const void *x, size_t ldx,
                void *y, size_t ldy, size_t nv);
    void (*reflect)(const struct part *a, const void *tau, void *x);
    double (*norm1)(const struct part *a, struct share h);
    double (*norm_inf)(const struct part *a, double *row);
    void (*back)(const struct part *a, const void *b, void *x);
};

#define ABS_REAL(x) fabs((double)(x))
/* Without the detours of cabs(): the numbers are of order 1. */
#define ABS_COMPLEX(x)                                                                             \
    sqrt((double)creal(x) * (double)creal(x) + (double)cimag(x) * (double)cimag(x))

#define V       double
#define CONJ(x) (x)
#define ABS     ABS_REAL
#define T       float
#define NAME(x) s_##x
#include "bench/la/vec.h"
#undef T
#undef NAME
#define T       double
#define NAME(x) d_##x
#include "bench/la/vec.h"
#undef T
#undef NAME
#undef V
#undef CONJ
#undef ABS
#define V       double complex
#define CONJ(x) conj(x)
#define ABS     ABS_COMPLEX
#define T       float complex
#define NAME(x) c_##x
#include "bench/la/vec.h"
#undef T
#undef NAME
#define T       double complex
#define NAME(x) z_##x
#include "bench/la/vec.h"
#undef T
#undef NAME

static const struct vec_ops *const ops[] = {&s_ops, &d_ops, &c_ops, &z_ops};

/* --- vectors ---------------------------------------------------------------- */

/* n vectors of m elements, of one or two doubles each. */
struct vecs {
    double *p;
    size_t m, n;
    enum la_type t;
    unsigned nthreads; /* that work on them */
};

static size_t vec_doubles(const struct vecs *x)
{
    return x->m * (la_is_complex(x->t) ? 2 : 1);
}

static struct vecs vecs_make(enum la_type t, size_t m, size_t n, unsigned nthreads)
{
    struct vecs x = {.m = m, .n = n, .t = t, .nthreads = nthreads};

    x.p = calloc(vec_doubles(&x) * n + 1, sizeof(double));
    return x;
}

/* The identity; or its last and middle column and random vectors. */
static struct vecs probes(const struct la_problem *p, size_t m, size_t whole)
{
    const bool is_whole = m <= whole;
    const enum la_type t = p->t;
    struct vecs x = vecs_make(t, m, is_whole ? m : PROBES, p->nthreads);
    const size_t len = vec_doubles(&x);
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 11);
    if (x.p == NULL)
        return x;
    for (size_t j = 0; j < x.n; j++) {
        const size_t at = is_whole ? j : j == 0 ? m - 1 : m / 2;

        if (is_whole || j < 2)
            x.p[j * len + at * (la_is_complex(t) ? 2 : 1)] = 1;
        else
            for (size_t i = 0; i < len; i++)
                x.p[j * len + i] = heddle_rng_double(&rng) - 0.5;
    }
    return x;
}

static double vec_norm1(const struct vecs *x, size_t j)
{
    const size_t len = vec_doubles(x);
    const double *v = x->p + j * len;
    double s = 0;

    if (la_is_complex(x->t))
        for (size_t i = 0; i < len; i += 2)
            s += sqrt(v[i] * v[i] + v[i + 1] * v[i + 1]);
    else
        for (size_t i = 0; i < len; i++)
            s += fabs(v[i]);
    return s;
}

/* Threads for a matrix: none of its own for a small one. */
static unsigned shares(const struct part *a, unsigned nthreads)
{
    if (nthreads <= 1 || a->m * a->n < (size_t)1 << 20)
        return 1;
    return nthreads < MAX_SHARES ? nthreads : MAX_SHARES;
}

struct work {
    const struct part *a;
    const struct vecs *x, *y;
    const void *tau;
    double alpha;
    unsigned nthreads;
    enum la_type t;
    double *sum[MAX_SHARES]; /* of each; the first one's is y */
    double norm[MAX_SHARES];
};

static void mul_some(void *arg, unsigned index)
{
    struct work *w = arg;
    const struct share h = {index, w->nthreads};

    if (w->sum[index] != NULL)
        ops[w->t]->mul(w->a, h, w->alpha, w->x->p, w->x->m, w->sum[index], w->y->m, w->x->n);
}

/* y = y + alpha A x; y is NaN where there is no memory. */
static void apply(const struct part *a, double alpha, const struct vecs *x, struct vecs *y)
{
    const size_t len = vec_doubles(y) * y->n;
    struct work w = {.a = a, .x = x, .y = y, .alpha = alpha, .t = x->t};

    w.nthreads = shares(a, x->nthreads);
    for (unsigned i = 0; i < w.nthreads; i++) /* an adjoint's do not meet */
        w.sum[i] = i == 0 || a->is_adjoint ? y->p : calloc(len + 1, sizeof(double));
    la_parallel(w.nthreads, mul_some, &w);
    for (unsigned i = 1; i < w.nthreads && !a->is_adjoint; i++) {
        for (size_t k = 0; k < len; k++)
            y->p[k] += w.sum[i] != NULL ? w.sum[i][k] : (double)NAN;
        free(w.sum[i]);
    }
}

static void norm_some(void *arg, unsigned index)
{
    struct work *w = arg;

    w->norm[index] = ops[w->t]->norm1(w->a, (struct share){index, w->nthreads});
}

static double norm1_part(const struct part *a, const struct la_problem *p)
{
    struct work w = {.a = a, .t = p->t, .nthreads = shares(a, p->nthreads)};
    double most = 0;

    la_parallel(w.nthreads, norm_some, &w);
    for (unsigned i = 0; i < w.nthreads && !isnan(most); i++)
        if (!(w.norm[i] <= most)) /* NaN stays */
            most = w.norm[i];
    return most;
}

static void reflect_some(void *arg, unsigned index)
{
    struct work *w = arg;

    for (size_t v = index; v < w->x->n; v += w->nthreads)
        ops[w->t]->reflect(w->a, w->tau, w->x->p + v * vec_doubles(w->x));
}

/* A x as new vectors. */
static struct vecs product(const struct part *a, const struct vecs *x)
{
    struct vecs y = vecs_make(x->t, a->is_adjoint ? a->n : a->m, x->n, x->nthreads);

    if (y.p != NULL && x->p != NULL)
        apply(a, 1, x, &y);
    return y;
}

/* The largest |e| / |x| over the vectors; NaN where one is, or without memory. */
static double ratio_of(const struct vecs *e, const struct vecs *x)
{
    double most = 0;

    if (e->p == NULL || x->p == NULL)
        return NAN;
    for (size_t j = 0; j < x->n; j++) {
        const double a = vec_norm1(e, j), b = vec_norm1(x, j);

        if (!(a >= 0))
            return NAN;
        if (b > 0 && a / b > most)
            most = a / b;
    }
    return most;
}

static void subtract(struct vecs *y, const struct vecs *x)
{
    if (x->p == NULL || y->p == NULL) {
        free(y->p);
        y->p = NULL; /* becomes NaN */
        return;
    }
    for (size_t i = 0; i < vec_doubles(y) * y->n; i++)
        y->p[i] -= x->p[i];
}

static struct part part_of(const struct la_array *a, enum shape shape)
{
    return (struct part){
        .p = a->p, .m = a->m, .n = a->n, .ld = a->m > 0 ? a->m : 1, .shape = shape};
}

static double norm1(const struct la_problem *p, const struct la_array *a)
{
    const struct part x = part_of(a, FULL);

    return norm1_part(&x, p);
}

/* residual / (norm n eps), where nothing is 0 / 0. */
static double scaled(double residual, double norm, size_t n, enum la_type t)
{
    const double by = norm * (double)n * la_eps(t);

    return residual == 0 ? 0 : residual / by;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool la_check_is_whole(const struct la_problem *p)
{
    if (p->row->nrhs != 0) /* all columns of the solution are in it */
        return p->nrhs <= SOLUTIONS;
    return larger(p->n, p->row->has_tau ? p->m : 0) <= WHOLE;
}

/* --- factorisations ----------------------------------------------------------- */

double la_check_potrf(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], FULL);
    struct part l = part_of(&p->out[0], LOWER), lh = l;
    struct vecs x = probes(p, p->n, WHOLE), e = product(&a, &x), y, z;
    double r;

    lh.is_adjoint = true;
    y = product(&lh, &x);
    z = product(&l, &y);
    subtract(&e, &z);
    r = ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(z.p);
    free(e.p);
    return scaled(r, norm1(p, &p->in[0]), p->n, p->t);
}

/* Rows change places as LAPACK's ipiv says, from the last one back. */
static void unpivot(struct vecs *x, const int *ipiv, size_t k)
{
    const size_t nd = la_is_complex(x->t) ? 2 : 1;

    for (size_t v = 0; v < x->n && x->p != NULL; v++) {
        double *row = x->p + v * vec_doubles(x);

        for (size_t i = k; i-- > 0;) {
            const size_t j = (size_t)ipiv[i] - 1;

            for (size_t d = 0; d < nd && j < x->m; d++) {
                const double s = row[i * nd + d];

                row[i * nd + d] = row[j * nd + d];
                row[j * nd + d] = s;
            }
        }
    }
}

double la_check_getrf(const struct la_problem *p)
{
    const size_t k = smaller(p->m, p->n);
    const struct part a = part_of(&p->in[0], FULL);
    struct part l = part_of(&p->out[0], UNIT_LOWER);
    struct part u = part_of(&p->out[0], UPPER);
    struct vecs x = probes(p, p->n, WHOLE), e = product(&a, &x), y, z;
    double r;

    l.n = k;
    u.m = k;
    y = product(&u, &x);
    z = product(&l, &y);
    if (p->row->has_pivots)
        unpivot(&z, p->ipiv, k);
    subtract(&e, &z);
    r = ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(z.p);
    free(e.p);
    return scaled(r, norm1(p, &p->in[0]), larger(p->m, p->n), p->t);
}

static void reflect(const struct la_problem *p, struct vecs *x, bool is_adjoint)
{
    struct part q = part_of(&p->out[0], FULL);

    struct work w = {.a = &q, .x = x, .tau = p->tau.p, .t = p->t};

    q.is_adjoint = is_adjoint;
    w.nthreads = shares(&q, p->nthreads);
    if (x->p != NULL)
        la_parallel(w.nthreads, reflect_some, &w);
}

/* |Q^H Q x - x| */
static double orthogonality(const struct la_problem *p)
{
    struct vecs x = probes(p, p->m, WHOLE), y = probes(p, p->m, WHOLE);
    double r;

    reflect(p, &y, false);
    reflect(p, &y, true);
    subtract(&y, &x);
    r = ratio_of(&y, &x);
    free(x.p);
    free(y.p);
    return r;
}

double la_check_geqrf(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], FULL);
    struct part r = part_of(&p->out[0], UPPER);
    struct vecs x = probes(p, p->n, WHOLE), e = product(&a, &x);
    struct vecs y = product(&r, &x); /* rows below R are 0 */
    double of_a, of_q;

    reflect(p, &y, false);
    subtract(&e, &y);
    of_a = scaled(ratio_of(&e, &x), norm1(p, &p->in[0]), larger(p->m, p->n), p->t);
    of_q = scaled(orthogonality(p), 1, smaller(p->m, p->n), p->t);
    free(x.p);
    free(y.p);
    free(e.p);
    return of_a >= of_q || isnan(of_a) ? of_a : of_q;
}

/* Q is explicit, R a matrix of its own. */
double la_check_tsqr(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], FULL);
    const struct part q = part_of(&p->out[0], FULL);
    const struct part r = part_of(&p->out[1], UPPER);
    struct part qh = q;
    struct vecs x = probes(p, p->n, WHOLE), e = product(&a, &x), y, z, o;
    double of_a, of_q;

    qh.is_adjoint = true;
    y = product(&r, &x);
    z = product(&q, &y);
    subtract(&e, &z);
    of_a = scaled(ratio_of(&e, &x), norm1(p, &p->in[0]), p->m, p->t);
    free(y.p);
    y = product(&q, &x);
    o = product(&qh, &y);
    subtract(&o, &x);
    of_q = scaled(ratio_of(&o, &x), 1, p->n, p->t);
    free(x.p);
    free(y.p);
    free(z.p);
    free(o.p);
    free(e.p);
    return of_a >= of_q || isnan(of_a) ? of_a : of_q;
}

/* --- products and solves -------------------------------------------------------- */

double la_check_gemm(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], FULL);
    const struct part b = part_of(&p->in[1], FULL);
    const struct part c0 = part_of(&p->in[2], FULL);
    const struct part c = part_of(&p->out[2], FULL);
    struct vecs x = probes(p, p->n, WHOLE), e = product(&c, &x);
    struct vecs y = product(&b, &x);
    double r = NAN, norm;

    if (x.p != NULL && y.p != NULL && e.p != NULL) {
        apply(&a, -1, &y, &e);
        apply(&c0, -1, &x, &e);
        r = ratio_of(&e, &x);
    }
    norm = fmax(norm1(p, &p->in[0]), norm1(p, &p->in[1])) + norm1(p, &p->out[2]);
    free(x.p);
    free(y.p);
    free(e.p);
    return scaled(r, norm, p->n, p->t);
}

/* y = y + alpha C x, C symmetric or hermitian, of which the lower part counts. */
static void apply_mirrored(const struct la_array *c, bool is_hermitian, double alpha,
                           const struct vecs *x, struct vecs *y)
{
    const struct part lower = part_of(c, LOWER);
    struct part upper = part_of(c, STRICT_LOWER);

    upper.is_adjoint = true;
    upper.is_plain = !is_hermitian;
    apply(&lower, alpha, x, y);
    apply(&upper, alpha, x, y);
}

/* C = A A^T + C, the lower triangle. */
double la_check_syrk(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], FULL);
    struct part at = a;
    struct vecs x = probes(p, p->n, WHOLE), y;
    struct vecs e = vecs_make(p->t, p->n, x.n, p->nthreads);
    double r = NAN, norm;

    at.is_adjoint = at.is_plain = true;
    y = product(&at, &x);
    if (x.p != NULL && y.p != NULL && e.p != NULL) {
        apply_mirrored(&p->out[1], false, 1, &x, &e);
        apply_mirrored(&p->in[1], false, -1, &x, &e);
        apply(&a, -1, &y, &e);
        r = ratio_of(&e, &x);
    }
    norm = norm1(p, &p->in[0]) + norm1(p, &p->out[1]);
    free(x.p);
    free(y.p);
    free(e.p);
    return scaled(r, norm, p->n, p->t);
}

double la_check_trtri(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], LOWER);
    const struct part inverse = part_of(&p->out[0], LOWER);
    struct vecs x = probes(p, p->n, WHOLE), y = product(&inverse, &x);
    struct vecs e = product(&a, &y);
    double r;

    subtract(&e, &x);
    r = ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(e.p);
    return scaled(r, norm1_part(&a, p) * norm1_part(&inverse, p), p->n, p->t);
}

/* The inverse of L L^H: |L L^H Y x - x|. */
double la_check_potri(const struct la_problem *p)
{
    const struct part l = part_of(&p->in[0], LOWER);
    struct part lh = l;
    struct vecs x = probes(p, p->n, WHOLE), z, e;
    struct vecs y = vecs_make(p->t, p->n, x.n, p->nthreads);
    const double norm_l = norm1(p, &p->in[0]);
    double r;

    lh.is_adjoint = true;
    if (x.p != NULL && y.p != NULL)
        apply_mirrored(&p->out[0], true, 1, &x, &y);
    z = product(&lh, &y);
    e = product(&l, &z);
    subtract(&e, &x);
    r = ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(z.p);
    free(e.p);
    return scaled(r, norm_l * norm_l * norm1(p, &p->out[0]), p->n, p->t);
}

/* |B Y - A (X Y)| / (|A| |X| |Y|) for some vectors Y. */
static double solve(const struct la_problem *p, const struct la_array *x_array, enum shape shape)
{
    const struct part a = part_of(&p->in[0], shape);
    const struct part b = part_of(&p->in[1], FULL);
    const struct part x = part_of(x_array, FULL);
    struct vecs y = probes(p, p->nrhs, SOLUTIONS), e = product(&b, &y);
    struct vecs xy = product(&x, &y);
    double r = NAN;

    if (y.p != NULL && xy.p != NULL && e.p != NULL) {
        apply(&a, -1, &xy, &e);
        r = ratio_of(&e, &y);
    }
    free(y.p);
    free(xy.p);
    free(e.p);
    return scaled(r, norm1_part(&a, p) * norm1(p, x_array), p->n, p->t);
}

/* |A^H (B - A X) y| / (|A| |B| |y|); X is in the first rows. */
double la_check_gels(const struct la_problem *p)
{
    const struct part a = part_of(&p->in[0], FULL);
    const struct part b = part_of(&p->in[1], FULL);
    struct part x = part_of(&p->out[1], FULL), ah = a;
    struct vecs y = probes(p, p->nrhs, SOLUTIONS), e = product(&b, &y), n;
    struct vecs xy;
    double r = NAN;

    x.m = p->n;
    ah.is_adjoint = true;
    xy = product(&x, &y);
    if (y.p != NULL && xy.p != NULL && e.p != NULL)
        apply(&a, -1, &xy, &e);
    n = product(&ah, &e);
    r = ratio_of(&n, &y);
    free(y.p);
    free(xy.p);
    free(e.p);
    free(n.p);
    return scaled(r, norm1(p, &p->in[0]) * norm1(p, &p->in[1]), p->m, p->t);
}

double la_check_trsm(const struct la_problem *p)
{
    return solve(p, &p->out[1], LOWER);
}

double la_check_solve(const struct la_problem *p)
{
    return solve(p, &p->out[1], FULL);
}

double la_check_solve_x(const struct la_problem *p)
{
    return solve(p, &p->out[2], FULL);
}

/* --- HPL ------------------------------------------------------------------------- */

static const void *last_column(const struct la_array *a)
{
    return (const char *)a->p + (a->n - 1) * a->m * la_elem_bytes(a->t);
}

void la_back_solve(const struct la_array *a, double *x)
{
    struct part u = part_of(a, UPPER);

    u.n = a->n - 1;
    ops[a->t]->back(&u, last_column(a), x);
}

static double largest(const struct vecs *x)
{
    const size_t nd = la_is_complex(x->t) ? 2 : 1;
    double most = 0;

    for (size_t i = 0; i < x->m; i++) {
        const double *v = x->p + i * nd;
        const double s = nd == 2 ? hypot(v[0], v[1]) : fabs(v[0]);

        if (isnan(s))
            return s;
        most = fmax(most, s);
    }
    return most;
}

double la_check_hpl(const struct la_array *ab, const double *solution, unsigned nthreads)
{
    struct part a = part_of(ab, FULL), b = a;
    struct vecs x = vecs_make(ab->t, ab->n - 1, 1, nthreads);
    struct vecs one = vecs_make(ab->t, 1, 1, 1), r, rhs;
    double *row = calloc(ab->m + 1, sizeof(*row));
    double of_a = NAN, of_b = NAN, of_r = NAN, of_x = NAN;

    a.n = ab->n - 1;
    b.p = last_column(ab);
    b.n = 1;
    if (one.p != NULL)
        one.p[0] = 1;
    rhs = product(&b, &one);
    r = product(&b, &one);
    if (x.p != NULL && r.p != NULL && rhs.p != NULL && row != NULL) {
        memcpy(x.p, solution, vec_doubles(&x) * sizeof(double));
        apply(&a, -1, &x, &r);
        of_a = ops[ab->t]->norm_inf(&a, row);
        of_b = largest(&rhs);
        of_r = largest(&r);
        of_x = largest(&x);
    }
    free(x.p);
    free(r.p);
    free(rhs.p);
    free(one.p);
    free(row);
    return of_r / (la_eps(ab->t) * (of_a * of_x + of_b) * (double)a.n);
}
