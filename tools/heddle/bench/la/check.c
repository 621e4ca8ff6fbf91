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
 *            or a column is not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/la/vecs.h"

enum { WHOLE = LA_CHECK_WHOLE, SOLUTIONS = 8 };

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
    const struct la_part a = la_part_of(&p->in[0], FULL);
    struct la_part l = la_part_of(&p->out[0], LOWER), lh = l;
    struct la_vecs x = la_probes(p, p->n, WHOLE), e = la_product(&a, &x), y, z;
    double r;

    lh.is_adjoint = true;
    y = la_product(&lh, &x);
    z = la_product(&l, &y);
    la_subtract(&e, &z);
    r = la_ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(z.p);
    free(e.p);
    return scaled(r, la_norm1(p, &p->in[0]), p->n, p->t);
}

/* Rows change places as LAPACK's ipiv says, from the last one back. */
static void unpivot(struct la_vecs *x, const int *ipiv, size_t k)
{
    const size_t nd = la_is_complex(x->t) ? 2 : 1;

    for (size_t v = 0; v < x->n && x->p != NULL; v++) {
        double *row = x->p + v * la_vec_doubles(x);

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
    const struct la_part a = la_part_of(&p->in[0], FULL);
    struct la_part l = la_part_of(&p->out[0], UNIT_LOWER);
    struct la_part u = la_part_of(&p->out[0], UPPER);
    struct la_vecs x = la_probes(p, p->n, WHOLE), e = la_product(&a, &x), y, z;
    double r;

    l.n = k;
    u.m = k;
    y = la_product(&u, &x);
    z = la_product(&l, &y);
    if (p->row->has_pivots)
        unpivot(&z, p->ipiv, k);
    la_subtract(&e, &z);
    r = la_ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(z.p);
    free(e.p);
    return scaled(r, la_norm1(p, &p->in[0]), larger(p->m, p->n), p->t);
}

/* |Q^H Q x - x| */
static double orthogonality(const struct la_problem *p)
{
    struct la_vecs x = la_probes(p, p->m, WHOLE), y = la_probes(p, p->m, WHOLE);
    double r;

    la_reflect(p, &y, false);
    la_reflect(p, &y, true);
    la_subtract(&y, &x);
    r = la_ratio_of(&y, &x);
    free(x.p);
    free(y.p);
    return r;
}

double la_check_geqrf(const struct la_problem *p)
{
    const struct la_part a = la_part_of(&p->in[0], FULL);
    struct la_part r = la_part_of(&p->out[0], UPPER);
    struct la_vecs x = la_probes(p, p->n, WHOLE), e = la_product(&a, &x);
    struct la_vecs y = la_product(&r, &x); /* rows below R are 0 */
    double of_a, of_q;

    la_reflect(p, &y, false);
    la_subtract(&e, &y);
    of_a = scaled(la_ratio_of(&e, &x), la_norm1(p, &p->in[0]), larger(p->m, p->n), p->t);
    of_q = scaled(orthogonality(p), 1, smaller(p->m, p->n), p->t);
    free(x.p);
    free(y.p);
    free(e.p);
    return of_a >= of_q || isnan(of_a) ? of_a : of_q;
}

/* Q is explicit, R a matrix of its own. */
double la_check_tsqr(const struct la_problem *p)
{
    const struct la_part a = la_part_of(&p->in[0], FULL);
    const struct la_part q = la_part_of(&p->out[0], FULL);
    const struct la_part r = la_part_of(&p->out[1], UPPER);
    struct la_part qh = q;
    struct la_vecs x = la_probes(p, p->n, WHOLE), e = la_product(&a, &x), y, z, o;
    double of_a, of_q;

    qh.is_adjoint = true;
    y = la_product(&r, &x);
    z = la_product(&q, &y);
    la_subtract(&e, &z);
    of_a = scaled(la_ratio_of(&e, &x), la_norm1(p, &p->in[0]), p->m, p->t);
    free(y.p);
    y = la_product(&q, &x);
    o = la_product(&qh, &y);
    la_subtract(&o, &x);
    of_q = scaled(la_ratio_of(&o, &x), 1, p->n, p->t);
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
    const struct la_part a = la_part_of(&p->in[0], FULL);
    const struct la_part b = la_part_of(&p->in[1], FULL);
    const struct la_part c0 = la_part_of(&p->in[2], FULL);
    const struct la_part c = la_part_of(&p->out[2], FULL);
    struct la_vecs x = la_probes(p, p->n, WHOLE), e = la_product(&c, &x);
    struct la_vecs y = la_product(&b, &x);
    double r = NAN, norm;

    if (x.p != NULL && y.p != NULL && e.p != NULL) {
        la_apply(&a, -1, &y, &e);
        la_apply(&c0, -1, &x, &e);
        r = la_ratio_of(&e, &x);
    }
    norm = fmax(la_norm1(p, &p->in[0]), la_norm1(p, &p->in[1])) + la_norm1(p, &p->out[2]);
    free(x.p);
    free(y.p);
    free(e.p);
    return scaled(r, norm, p->n, p->t);
}

/* y = y + alpha C x, C symmetric or hermitian, of which the lower part counts. */
static void apply_mirrored(const struct la_array *c, bool is_hermitian, double alpha,
                           const struct la_vecs *x, struct la_vecs *y)
{
    const struct la_part lower = la_part_of(c, LOWER);
    struct la_part upper = la_part_of(c, STRICT_LOWER);

    upper.is_adjoint = true;
    upper.is_plain = !is_hermitian;
    la_apply(&lower, alpha, x, y);
    la_apply(&upper, alpha, x, y);
}

/* C = A A^T + C, the lower triangle. */
double la_check_syrk(const struct la_problem *p)
{
    const struct la_part a = la_part_of(&p->in[0], FULL);
    struct la_part at = a;
    struct la_vecs x = la_probes(p, p->n, WHOLE), y;
    struct la_vecs e = la_vecs_make(p->t, p->n, x.n, p->nthreads);
    double r = NAN, norm;

    at.is_adjoint = at.is_plain = true;
    y = la_product(&at, &x);
    if (x.p != NULL && y.p != NULL && e.p != NULL) {
        apply_mirrored(&p->out[1], false, 1, &x, &e);
        apply_mirrored(&p->in[1], false, -1, &x, &e);
        la_apply(&a, -1, &y, &e);
        r = la_ratio_of(&e, &x);
    }
    norm = la_norm1(p, &p->in[0]) + la_norm1(p, &p->out[1]);
    free(x.p);
    free(y.p);
    free(e.p);
    return scaled(r, norm, p->n, p->t);
}

double la_check_trtri(const struct la_problem *p)
{
    const struct la_part a = la_part_of(&p->in[0], LOWER);
    const struct la_part inverse = la_part_of(&p->out[0], LOWER);
    struct la_vecs x = la_probes(p, p->n, WHOLE), y = la_product(&inverse, &x);
    struct la_vecs e = la_product(&a, &y);
    double r;

    la_subtract(&e, &x);
    r = la_ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(e.p);
    return scaled(r, la_norm1_part(&a, p) * la_norm1_part(&inverse, p), p->n, p->t);
}

/* The inverse of L L^H: |L L^H Y x - x|. */
double la_check_potri(const struct la_problem *p)
{
    const struct la_part l = la_part_of(&p->in[0], LOWER);
    struct la_part lh = l;
    struct la_vecs x = la_probes(p, p->n, WHOLE), z, e;
    struct la_vecs y = la_vecs_make(p->t, p->n, x.n, p->nthreads);
    const double norm_l = la_norm1(p, &p->in[0]);
    double r;

    lh.is_adjoint = true;
    if (x.p != NULL && y.p != NULL)
        apply_mirrored(&p->out[0], true, 1, &x, &y);
    z = la_product(&lh, &y);
    e = la_product(&l, &z);
    la_subtract(&e, &x);
    r = la_ratio_of(&e, &x);
    free(x.p);
    free(y.p);
    free(z.p);
    free(e.p);
    return scaled(r, norm_l * norm_l * la_norm1(p, &p->out[0]), p->n, p->t);
}

/* |B Y - A (X Y)| / (|A| |X| |Y|) for some vectors Y. */
static double solve(const struct la_problem *p, const struct la_array *x_array, enum la_shape shape)
{
    const struct la_part a = la_part_of(&p->in[0], shape);
    const struct la_part b = la_part_of(&p->in[1], FULL);
    const struct la_part x = la_part_of(x_array, FULL);
    struct la_vecs y = la_probes(p, p->nrhs, SOLUTIONS), e = la_product(&b, &y);
    struct la_vecs xy = la_product(&x, &y);
    double r = NAN;

    if (y.p != NULL && xy.p != NULL && e.p != NULL) {
        la_apply(&a, -1, &xy, &e);
        r = la_ratio_of(&e, &y);
    }
    free(y.p);
    free(xy.p);
    free(e.p);
    return scaled(r, la_norm1_part(&a, p) * la_norm1(p, x_array), p->n, p->t);
}

/* |A^H (B - A X) y| / (|A| |B| |y|); X is in the first rows. */
double la_check_gels(const struct la_problem *p)
{
    const struct la_part a = la_part_of(&p->in[0], FULL);
    const struct la_part b = la_part_of(&p->in[1], FULL);
    struct la_part x = la_part_of(&p->out[1], FULL), ah = a;
    struct la_vecs y = la_probes(p, p->nrhs, SOLUTIONS), e = la_product(&b, &y), n;
    struct la_vecs xy;
    double r = NAN;

    x.m = p->n;
    ah.is_adjoint = true;
    xy = la_product(&x, &y);
    if (y.p != NULL && xy.p != NULL && e.p != NULL)
        la_apply(&a, -1, &xy, &e);
    n = la_product(&ah, &e);
    r = la_ratio_of(&n, &y);
    free(y.p);
    free(xy.p);
    free(e.p);
    free(n.p);
    return scaled(r, la_norm1(p, &p->in[0]) * la_norm1(p, &p->in[1]), p->m, p->t);
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
    struct la_part u = la_part_of(a, UPPER);

    u.n = a->n - 1;
    la_back(a->t, &u, last_column(a), x);
}

static double largest(const struct la_vecs *x)
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
    struct la_part a = la_part_of(ab, FULL), b = a;
    struct la_vecs x = la_vecs_make(ab->t, ab->n - 1, 1, nthreads);
    struct la_vecs one = la_vecs_make(ab->t, 1, 1, 1), r, rhs;
    double *row = calloc(ab->m + 1, sizeof(*row));
    double of_a = NAN, of_b = NAN, of_r = NAN, of_x = NAN;

    a.n = ab->n - 1;
    b.p = last_column(ab);
    b.n = 1;
    if (one.p != NULL)
        one.p[0] = 1;
    rhs = la_product(&b, &one);
    r = la_product(&b, &one);
    if (x.p != NULL && r.p != NULL && rhs.p != NULL && row != NULL) {
        memcpy(x.p, solution, la_vec_doubles(&x) * sizeof(double));
        la_apply(&a, -1, &x, &r);
        of_a = la_norm_inf(ab->t, &a, row);
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
