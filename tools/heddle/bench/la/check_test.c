/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_la_check: residuals of right factors are small, those of factors with one
 * wrong element are not; below the order from which a few vectors stand for the whole
 * matrix, and above it, with one thread and with several. Also the values and copies
 * of bench_la_data.
 */
#include <math.h>
#include <string.h>

#include "bench/la/la.h"
#include "tests/test.h"

enum { SMALL = 60, LARGE = 1030 }; /* the large one has work for threads */

#define LIMIT 60.0

static double *at(const struct la_array *a, size_t i, size_t j)
{
    return (double *)a->p + i + j * a->m;
}

static struct la_problem problem(const struct la_row *row, size_t m, size_t n, enum la_fill fill,
                                 unsigned nthreads)
{
    struct la_problem p = {.row = row, .t = LA_D, .m = m, .n = n, .nrhs = 1, .nthreads = nthreads};

    p.in[0] = la_array_make(LA_D, m, n);
    p.out[0] = la_array_make(LA_D, m, n);
    p.tau = la_array_make(LA_D, n, 1);
    CHECK(p.in[0].p != NULL && p.out[0].p != NULL && p.tau.p != NULL);
    la_array_fill(&p.in[0], fill, 1, nthreads);
    la_array_copy(&p.out[0], &p.in[0], false, nthreads);
    return p;
}

static void problem_end(struct la_problem *p)
{
    la_array_free(&p->in[0]);
    la_array_free(&p->out[0]);
    la_array_free(&p->tau);
}

/* y = y - s x in rows from .. m - 1. */
static void axpy(double *y, const double *x, double s, size_t from, size_t m)
{
    for (size_t i = from; i < m; i++)
        y[i] -= s * x[i];
}

static void cholesky(const struct la_array *a)
{
    for (size_t k = 0; k < a->n; k++) {
        const double d = sqrt(*at(a, k, k));

        for (size_t i = k; i < a->m; i++)
            *at(a, i, k) /= d;
        for (size_t j = k + 1; j < a->n; j++)
            axpy(at(a, 0, j), at(a, 0, k), *at(a, j, k), j, a->m);
    }
}

static void lu(const struct la_array *a)
{
    for (size_t k = 0; k < a->n; k++) {
        for (size_t i = k + 1; i < a->m; i++)
            *at(a, i, k) /= *at(a, k, k);
        for (size_t j = k + 1; j < a->n; j++)
            axpy(at(a, 0, j), at(a, 0, k), *at(a, k, j), k + 1, a->m);
    }
}

/* Householder, with v[k] = 1 that is not stored. */
static void qr(const struct la_array *a, double *tau)
{
    for (size_t k = 0; k < a->n; k++) {
        double norm = 0, head = *at(a, k, k), beta;

        for (size_t i = k; i < a->m; i++)
            norm += *at(a, i, k) * *at(a, i, k);
        beta = head > 0 ? -sqrt(norm) : sqrt(norm);
        tau[k] = (beta - head) / beta;
        for (size_t i = k + 1; i < a->m; i++)
            *at(a, i, k) /= head - beta;
        *at(a, k, k) = beta;
        for (size_t j = k + 1; j < a->n; j++) {
            double s = *at(a, k, j);

            for (size_t i = k + 1; i < a->m; i++)
                s += *at(a, i, k) * *at(a, i, j);
            *at(a, k, j) -= tau[k] * s;
            axpy(at(a, 0, j), at(a, 0, k), tau[k] * s, k + 1, a->m);
        }
    }
}

/* Sanitizers take long over the large ones: one element is enough there. */
static bool has_time(size_t m)
{
    return !TEST_SANITIZED || m <= SMALL;
}

/* Right as it is; wrong with one other element; NaN is never right. */
static void check_damage(struct la_problem *p, double *element, double by)
{
    double (*const residual)(const struct la_problem *) = p->row->residual;
    const double was = *element;

    CHECK(residual(p) < LIMIT);
    *element = was + by;
    CHECK(residual(p) > LIMIT);
    *element = NAN;
    CHECK(!(residual(p) <= LIMIT));
    *element = was;
    CHECK(residual(p) < LIMIT);
}

TEST(cholesky_is_checked)
{
    static const struct la_row row = {.residual = la_check_potrf};
    static const size_t orders[] = {1, SMALL, LARGE};

    for (unsigned i = 0; i < 3; i++) {
        const size_t n = orders[i];
        struct la_problem p = problem(&row, n, n, LA_POSITIVE, 3);

        CHECK_EQ(la_check_is_whole(&p), n <= LA_CHECK_WHOLE);
        cholesky(&p.out[0]);
        check_damage(&p, at(&p.out[0], n - 1, n / 3), 1e-3);
        if (has_time(n))
            check_damage(&p, at(&p.out[0], n / 2, n / 2), 1e-3);
        p.nthreads = 1;
        check_damage(&p, at(&p.out[0], n - 1, 0), 1e-3);
        problem_end(&p);
    }
}

TEST(lu_is_checked)
{
    static const struct la_row row = {.residual = la_check_getrf};

    for (unsigned i = 0; i < 2; i++) {
        const size_t n = i == 0 ? SMALL : 530, m = i == 0 ? n : 2000;
        struct la_problem p = problem(&row, m, n, LA_DOMINANT, 4);

        lu(&p.out[0]);
        check_damage(&p, at(&p.out[0], n / 2, n / 3), 1e-3);
        if (has_time(m))
            check_damage(&p, at(&p.out[0], n / 3, n - 1), 1e-3);
        problem_end(&p);
    }
}

TEST(qr_is_checked)
{
    static const struct la_row row = {.has_tau = true, .residual = la_check_geqrf};
    static const size_t sizes[][2] = {{SMALL, SMALL - 7}, {9000, 117}};

    for (unsigned i = 0; i < 2; i++) {
        const size_t m = sizes[i][0], n = sizes[i][1];
        struct la_problem p = problem(&row, m, n, LA_RANDOM, 3);

        CHECK_EQ(la_check_is_whole(&p), i == 0);
        qr(&p.out[0], p.tau.p);
        check_damage(&p, at(&p.out[0], m - 1, n / 3), 1e-3);
        if (has_time(m))
            check_damage(&p, at(&p.out[0], n / 3, n / 2), 1e-3);
        if (has_time(m))
            check_damage(&p, (double *)p.tau.p + n / 2, 1e-3);
        problem_end(&p);
    }
}

/* --- values -------------------------------------------------------------------- */

static double part(const struct la_array *a, size_t i, size_t j, unsigned k)
{
    const size_t place = (i + j * a->m) * (la_is_complex(a->t) ? 2 : 1) + k;

    if (k == 1 && !la_is_complex(a->t))
        return 0;
    return a->t == LA_S || a->t == LA_C ? (double)((float *)a->p)[place] : ((double *)a->p)[place];
}

/* Element (i, j) as the header says it, from those of a random matrix. */
static void check_fill(const struct la_array *a, const struct la_array *r, enum la_fill fill)
{
    const double eps = la_eps(a->t) * (double)a->n * 2;

    for (size_t j = 0; j < a->n; j++)
        for (size_t i = 0; i < a->m; i++) {
            const bool is_flipped = fill == LA_POSITIVE && i < j;
            const bool is_real = i == j && (fill == LA_POSITIVE || fill == LA_FACTOR);
            double re = part(r, is_flipped ? j : i, is_flipped ? i : j, 0);
            double im = part(r, is_flipped ? j : i, is_flipped ? i : j, 1);

            CHECK(fabs(re) < 0.5 && fabs(im) < 0.5);
            CHECK(i == 0 || part(r, i, j, 0) != part(r, i - 1, j, 0));
            if (fill == LA_ZERO || (fill == LA_FACTOR && i < j))
                re = im = 0;
            else if (i == j && fill != LA_RANDOM)
                re += fill == LA_FACTOR ? sqrt((double)a->n) : (double)a->n;
            CHECK(fabs(part(a, i, j, 0) - re) <= eps);
            CHECK(part(a, i, j, 1) == (is_real ? 0 : is_flipped ? -im : im));
        }
}

TEST(values_are_those_of_their_place)
{
    /* Around the number that is made at once. */
    static const size_t order[] = {1, 513};

    for (unsigned t = LA_S; t <= LA_Z; t++)
        for (unsigned k = 0; k < 2; k++) {
            struct la_array r = la_array_make((enum la_type)t, order[k], order[k]);
            struct la_array a = la_array_make((enum la_type)t, order[k], order[k]);

            CHECK(r.p != NULL && a.p != NULL);
            la_array_fill(&r, LA_RANDOM, 5, 1);
            for (unsigned f = LA_ZERO; f <= LA_FACTOR; f++) {
                la_array_fill(&a, (enum la_fill)f, 5, 1 + f % 3);
                check_fill(&a, &r, (enum la_fill)f);
            }
            la_array_free(&r);
            la_array_free(&a);
        }
}

TEST(copies_of_a_triangle)
{
    struct la_array a = la_array_make(LA_D, 40, 50);
    struct la_array b = la_array_make(LA_D, 40, 50);

    CHECK(a.p != NULL && b.p != NULL);
    la_array_fill(&a, LA_RANDOM, 1, 2);
    la_array_fill(&b, LA_ZERO, 0, 2);
    la_array_copy(&b, &a, true, 3);
    for (size_t j = 0; j < 50; j++)
        for (size_t i = 0; i < 40; i++)
            CHECK(*at(&b, i, j) == (i >= j || j >= 40 ? *at(&a, i, j) : 0));
    la_array_copy(&b, &a, false, 2);
    CHECK(memcmp(a.p, b.p, la_array_bytes(&a)) == 0);
    la_array_free(&a);
    la_array_free(&b);
}

TEST_MAIN(cholesky_is_checked, lu_is_checked, qr_is_checked, values_are_those_of_their_place,
          copies_of_a_triangle)
