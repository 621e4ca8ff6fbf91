/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eigen: what is promised about bits, by LAPACK's drivers of the generalised eigenvalue
 * problem in all types.
 *
 *   eigen FILE     writes the eigenvalues to FILE, or compares them with FILE bit by bit
 *
 * The same calls give the same bits at any time, and where the matrix is one block, on any
 * number of workers. With vectors LAPACK transforms more columns and takes other routines:
 * then the eigenvalues are the same to rounding.
 */
#include <complex.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/test.h"

enum { MAX = 96, PROBLEMS = 12, TYPES = 4 };

static const char letters[] = "sdcz";

static size_t bytes_of(int t)
{
    return t == 0 ? 4 : t == 3 ? 16 : 8;
}

static bool is_complex(int t)
{
    return t >= 2;
}

static bool is_double(int t)
{
    return t == 1 || t == 3;
}

static void set(int t, void *a, size_t i, double complex v)
{
    if (is_double(t) && is_complex(t))
        ((double complex *)a)[i] = v;
    else if (is_complex(t))
        ((float complex *)a)[i] = (float complex)v;
    else if (is_double(t))
        ((double *)a)[i] = creal(v);
    else
        ((float *)a)[i] = (float)creal(v);
}

static double real_at(int t, const void *a, size_t i)
{
    return is_double(t) ? ((const double *)a)[i] : (double)((const float *)a)[i];
}

/* An n x n matrix: `diagonal` + the index times `step` on the diagonal, small elements
 * elsewhere. Of kind 1 some columns and rows have none below the diagonal, so that LAPACK finds
 * eigenvalues there without work. */
static void fill(int t, void *a, int n, double diagonal, double step, int kind,
                 struct heddle_rng *rng)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            const double re = heddle_rng_double(rng) - 0.5, im = heddle_rng_double(rng) - 0.5;
            const bool is_zero = kind == 1 && i > j && (j < n / 5 || i >= n - n / 4);

            set(t, a, (size_t)i + (size_t)j * (size_t)n,
                i == j    ? diagonal + step * i
                : is_zero ? 0
                          : 0.02 * (re + im * I));
        }
}

static void *find(int t, const char *real, const char *complex_name)
{
    char name[32];
    void *p;

    snprintf(name, sizeof(name), "%c%s_", letters[t], is_complex(t) ? complex_name : real);
    p = dlsym(RTLD_DEFAULT, name);
    if (p == NULL)
        printf("no %s\n", name);
    CHECK(p != NULL);
    return p;
}

struct problem {
    int t, n;
    void *a, *b; /* kept */
    void *x, *y; /* overwritten */
    void *left, *right, *work, *rwork;
};

static void problem_make(struct problem *p, int t, int n)
{
    const size_t bytes = (size_t)n * (size_t)n * bytes_of(t);
    void **all[] = {&p->a, &p->b, &p->x, &p->y, &p->left, &p->right};

    *p = (struct problem){.t = t, .n = n};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        *all[i] = calloc(1, bytes);
        CHECK(*all[i] != NULL);
    }
    p->work = calloc(64 * MAX, 16);
    p->rwork = calloc(8 * MAX, 8);
    CHECK(p->work != NULL && p->rwork != NULL);
}

static void problem_free(struct problem *p)
{
    void *all[] = {p->a, p->b, p->x, p->y, p->left, p->right, p->work, p->rwork};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        free(all[i]);
}

static void problem_reset(struct problem *p)
{
    const size_t bytes = (size_t)p->n * (size_t)p->n * bytes_of(p->t);

    memcpy(p->x, p->a, bytes);
    memcpy(p->y, p->b, bytes);
}

typedef void (*sygv_fn)(const int *, const char *, const char *, const int *, void *, const int *,
                        void *, const int *, void *, void *, const int *, int *, size_t, size_t);
typedef void (*hegv_fn)(const int *, const char *, const char *, const int *, void *, const int *,
                        void *, const int *, void *, void *, const int *, void *, int *, size_t,
                        size_t);
typedef void (*ggev_fn)(const char *, const char *, const int *, void *, const int *, void *,
                        const int *, void *, void *, void *, void *, const int *, void *,
                        const int *, void *, const int *, int *, size_t, size_t);
typedef void (*ggev_complex_fn)(const char *, const char *, const int *, void *, const int *,
                                void *, const int *, void *, void *, void *, const int *, void *,
                                const int *, void *, const int *, void *, int *, size_t, size_t);

/* The eigenvalues, n of a real type. */
static void call_sygv(struct problem *p, const char *job, void *w)
{
    const int one = 1, lwork = 64 * MAX;
    void *fn = find(p->t, "sygv", "hegv");
    sygv_fn real;
    hegv_fn other;
    int info = -1;

    memcpy(&real, &fn, sizeof(fn));
    memcpy(&other, &fn, sizeof(fn));
    problem_reset(p);
    if (is_complex(p->t))
        other(&one, job, "L", &p->n, p->x, &p->n, p->y, &p->n, w, p->work, &lwork, p->rwork, &info,
              1, 1);
    else
        real(&one, job, "L", &p->n, p->x, &p->n, p->y, &p->n, w, p->work, &lwork, &info, 1, 1);
    CHECK_EQ(info, 0);
}

/* alpha and beta behind it: 3 n (of real types) or 2 n elements (of complex ones). */
static void call_ggev(struct problem *p, const char *job, void *w)
{
    const size_t step = (size_t)p->n * bytes_of(p->t);
    const int lwork = 64 * MAX;
    void *fn = find(p->t, "ggev", "ggev");
    char *at = w;
    ggev_fn real;
    ggev_complex_fn other;
    int info = -1;

    memcpy(&real, &fn, sizeof(fn));
    memcpy(&other, &fn, sizeof(fn));
    problem_reset(p);
    if (is_complex(p->t))
        other(job, job, &p->n, p->x, &p->n, p->y, &p->n, at, at + step, p->left, &p->n, p->right,
              &p->n, p->work, &lwork, p->rwork, &info, 1, 1);
    else
        real(job, job, &p->n, p->x, &p->n, p->y, &p->n, at, at + step, at + 2 * step, p->left,
             &p->n, p->right, &p->n, p->work, &lwork, &info, 1, 1);
    CHECK_EQ(info, 0);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The real parts of the eigenvalues in order; the problems have real ones, well apart. */
static void values(const struct problem *p, bool is_ggev, const void *w, double *out)
{
    const size_t n = (size_t)p->n, twice = is_complex(p->t) ? 2 : 1;
    const size_t beta = 2 * n; /* behind n complex or 2 n real elements */

    for (size_t i = 0; i < n; i++)
        out[i] = is_ggev ? real_at(p->t, w, twice * i) / real_at(p->t, w, beta + twice * i)
                         : real_at(p->t, w, i);
    qsort(out, n, sizeof(*out), by_size);
}

static FILE *file;
static bool is_write;
static int ndiffer, ncompared;

static void same_bits(const void *w, size_t bytes)
{
    static char other[3 * MAX * 16];

    CHECK(bytes <= sizeof(other));
    if (is_write) {
        CHECK_EQ(fwrite(w, 1, bytes, file), bytes);
        return;
    }
    CHECK_EQ(fread(other, 1, bytes, file), bytes);
    CHECK_EQ(memcmp(w, other, bytes), 0);
    ncompared++;
}

static void solve(struct problem *p, bool is_ggev)
{
    static char w[2][3 * MAX * 16];
    const double eps = is_double(p->t) ? DBL_EPSILON : FLT_EPSILON;
    double value[2][MAX];

    memset(w, 0, sizeof(w));
    for (int v = 0; v < 2; v++) {
        if (is_ggev)
            call_ggev(p, v == 0 ? "N" : "V", w[v]);
        else
            call_sygv(p, v == 0 ? "N" : "V", w[v]);
        same_bits(w[v], sizeof(w[v]));
        values(p, is_ggev, w[v], value[v]);
    }
    ndiffer += memcmp(w[0], w[1], sizeof(w[0])) != 0;
    for (int i = 0; i < p->n; i++)
        CHECK(fabs(value[0][i] - value[1][i]) <= 20 * p->n * eps * fabs(value[0][p->n - 1]));
}

static void solve_all(void)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 18);
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < PROBLEMS; i++) {
            const int n = 20 + (int)heddle_rng_below(&rng, MAX - 20);
            struct problem p;

            problem_make(&p, t, n);
            for (int kind = 0; kind < 3; kind++) {
                fill(t, p.a, n, 1, 1, kind, &rng);
                fill(t, p.b, n, 4, 0, kind, &rng);
                solve(&p, kind != 2);
            }
            problem_free(&p);
        }
}

typedef void (*geqrf_fn)(const int *, const int *, void *, const int *, void *, void *, const int *,
                         int *);

/* A factorisation in several blocks, whose tasks run in another order each time. */
static void repeat(void)
{
    enum { N = 700, TIMES = 4 };
    const int n = N, lwork = 64 * N;
    const size_t bytes = sizeof(double) * N * N;
    double *a = malloc(bytes), *first = malloc(bytes), *x = malloc(bytes);
    double *work = malloc(sizeof(double) * 64 * N), tau[N];
    void *fn = find(1, "geqrf", "");
    struct heddle_rng rng;
    geqrf_fn geqrf;
    int info = -1;

    CHECK(a != NULL && first != NULL && x != NULL && work != NULL);
    memcpy(&geqrf, &fn, sizeof(fn));
    heddle_rng_seed(&rng, 1);
    for (size_t i = 0; i < (size_t)N * N; i++)
        a[i] = heddle_rng_double(&rng) - 0.5;
    for (int i = 0; i < TIMES; i++) {
        memcpy(x, a, bytes);
        geqrf(&n, &n, x, &n, tau, work, &lwork, &info);
        CHECK_EQ(info, 0);
        if (i == 0)
            memcpy(first, x, bytes);
        CHECK_EQ(memcmp(first, x, bytes), 0);
    }
    free(a);
    free(first);
    free(x);
    free(work);
}

int main(int argc, char **argv)
{
    unsigned long (*calls)(void) = NULL;
    void *p = dlsym(RTLD_DEFAULT, "heddle_lapack_calls");

    memcpy(&calls, &p, sizeof(p));
    test_now.name = "eigen";
    if (argc != 2)
        return 2;
    if (dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("skipped: no libopenblas.so.0\n");
        return 77;
    }
    file = fopen(argv[1], "rb");
    is_write = file == NULL;
    if (is_write)
        file = fopen(argv[1], "wb");
    CHECK(file != NULL);
    solve_all();
    repeat();
    CHECK_EQ(fclose(file), 0);
    printf("%d problems: %d have other bits with vectors; %d compared with the run before\n",
           3 * TYPES * PROBLEMS, ndiffer, ncompared);
    CHECK(calls != NULL && calls() > 0); /* else this was another library's promise */
    return 0;
}
