/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/vecs: products of parts of matrices with vectors, by plain loops.
 *
 * Purpose    shares nothing with what is checked: neither the library's tasks nor
 *            the BLAS. Sums are of doubles.
 */
#include "bench/la/vecs.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum { PROBES = 4, COLUMNS = 16, MAX_SHARES = 64 };

/* --- loops ------------------------------------------------------------------ */

struct range {
    size_t from, to;
};

static struct range part_rows(const struct la_part *a, size_t j)
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
    void (*mul)(const struct la_part *a, struct share h, double alpha, const void *x, size_t ldx,
                void *y, size_t ldy, size_t nv);
    void (*reflect)(const struct la_part *a, const void *tau, void *x);
    double (*norm1)(const struct la_part *a, struct share h);
    double (*norm_inf)(const struct la_part *a, double *row);
    void (*back)(const struct la_part *a, const void *b, void *x);
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

size_t la_vec_doubles(const struct la_vecs *x)
{
    return x->m * (la_is_complex(x->t) ? 2 : 1);
}

struct la_vecs la_vecs_make(enum la_type t, size_t m, size_t n, unsigned nthreads)
{
    struct la_vecs x = {.m = m, .n = n, .t = t, .nthreads = nthreads};

    x.p = calloc(la_vec_doubles(&x) * n + 1, sizeof(double));
    return x;
}

/* The identity; or its last and middle column and random vectors. */
struct la_vecs la_probes(const struct la_problem *p, size_t m, size_t whole)
{
    const bool is_whole = m <= whole;
    const enum la_type t = p->t;
    struct la_vecs x = la_vecs_make(t, m, is_whole ? m : PROBES, p->nthreads);
    const size_t len = la_vec_doubles(&x);
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

static double vec_norm1(const struct la_vecs *x, size_t j)
{
    const size_t len = la_vec_doubles(x);
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
static unsigned shares(const struct la_part *a, unsigned nthreads)
{
    if (nthreads <= 1 || a->m * a->n < (size_t)1 << 20)
        return 1;
    return nthreads < MAX_SHARES ? nthreads : MAX_SHARES;
}

struct work {
    const struct la_part *a;
    const struct la_vecs *x, *y;
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
void la_apply(const struct la_part *a, double alpha, const struct la_vecs *x, struct la_vecs *y)
{
    const size_t len = la_vec_doubles(y) * y->n;
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

double la_norm1_part(const struct la_part *a, const struct la_problem *p)
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
        ops[w->t]->reflect(w->a, w->tau, w->x->p + v * la_vec_doubles(w->x));
}

/* A x as new vectors. */
struct la_vecs la_product(const struct la_part *a, const struct la_vecs *x)
{
    struct la_vecs y = la_vecs_make(x->t, a->is_adjoint ? a->n : a->m, x->n, x->nthreads);

    if (y.p != NULL && x->p != NULL)
        la_apply(a, 1, x, &y);
    return y;
}

/* The largest |e| / |x| over the vectors; NaN where one is, or without memory. */
double la_ratio_of(const struct la_vecs *e, const struct la_vecs *x)
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

void la_subtract(struct la_vecs *y, const struct la_vecs *x)
{
    if (x->p == NULL || y->p == NULL) {
        free(y->p);
        y->p = NULL; /* becomes NaN */
        return;
    }
    for (size_t i = 0; i < la_vec_doubles(y) * y->n; i++)
        y->p[i] -= x->p[i];
}

struct la_part la_part_of(const struct la_array *a, enum la_shape shape)
{
    return (struct la_part){
        .p = a->p, .m = a->m, .n = a->n, .ld = a->m > 0 ? a->m : 1, .shape = shape};
}

double la_norm1(const struct la_problem *p, const struct la_array *a)
{
    const struct la_part x = la_part_of(a, FULL);

    return la_norm1_part(&x, p);
}

void la_reflect(const struct la_problem *p, struct la_vecs *x, bool is_adjoint)
{
    struct la_part q = la_part_of(&p->out[0], FULL);
    struct work w = {.a = &q, .x = x, .tau = p->tau.p, .t = p->t};

    q.is_adjoint = is_adjoint;
    w.nthreads = shares(&q, p->nthreads);
    if (x->p != NULL)
        la_parallel(w.nthreads, reflect_some, &w);
}

double la_norm_inf(enum la_type t, const struct la_part *a, double *row)
{
    return ops[t]->norm_inf(a, row);
}

void la_back(enum la_type t, const struct la_part *u, const void *b, double *x)
{
    ops[t]->back(u, b, x);
}
