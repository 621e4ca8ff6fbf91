/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work: data, kernels, order and check of the works, the frame of a program.
 *
 * Invariants 1. The data are put back before each repetition, not timed.
 *            2. Every repetition is checked: cholesky by L (L' v) = A v for one
 *               vector v, sweep element by element. A wrong result ends the
 *               program with an error, so no time of one is ever printed.
 * Threads    the BLAS is told to use one thread: tasks are the parallelism.
 */
#include <cblas.h>
#include <dlfcn.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "work.h"

#define WORK_MAX 100000000u /* of any number on the command line */

static const char *const kind_names[WORK_NKINDS] = {"cholesky", "sweep",    "own",
                                                    "shared",   "own-bare", "shared-bare"};

const char work_source[] =
    "__kernel void axpy(__global const float *x, __global float *y, float a)\n"
    "{\n"
    "    const size_t i = get_global_id(0);\n"
    "    y[i] += a * x[i];\n"
    "}\n"
    "__kernel void empty(__global float *y)\n"
    "{\n"
    "    (void)y;\n"
    "}\n";

bool work_is_bare(const struct work *w)
{
    return w->opts.kind == WORK_OWN_BARE || w->opts.kind == WORK_SHARED_BARE;
}

bool work_is_shared(const struct work *w)
{
    return w->opts.kind == WORK_SHARED || w->opts.kind == WORK_SHARED_BARE;
}

/* ---- kernels ------------------------------------------------------------ */

int work_potrf(size_t n, double *a)
{
    return (int)LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, a, (lapack_int)n);
}

void work_trsm(size_t m, size_t n, const double *l, double *b)
{
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)m, (int)n,
                1.0, l, (int)n, b, (int)m);
}

void work_syrk(size_t n, size_t k, const double *a, double *c)
{
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)n, (int)k, -1.0, a, (int)n, 1.0, c,
                (int)n);
}

void work_gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)k, -1.0, a, (int)m, b,
                (int)n, 1.0, c, (int)m);
}

void work_axpy(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += WORK_ALPHA * x[i];
}

/* How to say it differs from BLAS to BLAS, so the function is looked up. */
static void blas_one_thread(void)
{
    static const char *const names[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads",
                                        "bli_thread_set_num_threads"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *p = dlsym(RTLD_DEFAULT, names[i]);
        void (*set)(int) = NULL;

        if (p == NULL)
            continue;
        memcpy(&set, &p, sizeof(set)); /* C has no cast for this */
        set(1);
    }
}

/* ---- cholesky ----------------------------------------------------------- */

static int updates(struct work *w, size_t k, size_t i, work_step_fn fn)
{
    const int left = (int)(2 * (w->nt - k));
    struct work_step s = {
        WORK_SYRK, 2, {work_tile(i, k), work_tile(i, i), 0}, left - (int)(2 * (i - k)) + 1};
    int rc = fn(w, &s);

    for (size_t j = k + 1; j < i && rc == 0; j++) {
        s = (struct work_step){WORK_GEMM,
                               3,
                               {work_tile(i, k), work_tile(j, k), work_tile(i, j)},
                               left - (int)(i - k) - (int)(j - k)};
        rc = fn(w, &s);
    }
    return rc;
}

int work_cholesky(struct work *w, work_step_fn fn)
{
    int rc = 0;

    for (size_t k = 0; k < w->nt && rc == 0; k++) {
        const int left = (int)(2 * (w->nt - k));
        struct work_step s = {WORK_POTRF, 1, {work_tile(k, k), 0, 0}, left + 2};

        rc = fn(w, &s);
        for (size_t i = k + 1; i < w->nt && rc == 0; i++) {
            s = (struct work_step){
                WORK_TRSM, 2, {work_tile(k, k), work_tile(i, k), 0}, left - (int)(i - k) + 1};
            rc = fn(w, &s);
        }
        for (size_t i = k + 1; i < w->nt && rc == 0; i++)
            rc = updates(w, k, i, fn);
    }
    return rc;
}

/* A symmetric matrix whose diagonal dominates: element (i, j). */
static double element(size_t n, size_t i, size_t j)
{
    const uint64_t lo = i < j ? i : j, hi = i < j ? j : i;
    uint64_t z = (hi * 65537 + lo + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
    z ^= z >> 32;
    return (double)(z >> 11) * 0x1p-53 - 0.5 + (i == j ? (double)n : 0.0);
}

static double *at(const struct work *w, size_t i, size_t j)
{
    const size_t nb = w->opts.tile;

    return w->a + work_tile(i / nb, j / nb) * nb * nb + (j % nb) * work_extent(w, i / nb) + i % nb;
}

static void matrix_fill(struct work *w)
{
    const size_t nb = w->opts.tile;

    for (size_t i = 0; i < w->nt; i++)
        for (size_t j = 0; j <= i; j++)
            for (size_t c = 0; c < work_extent(w, j); c++)
                for (size_t r = 0; r < work_extent(w, i); r++)
                    *at(w, i * nb + r, j * nb + c) = element(w->opts.n, i * nb + r, j * nb + c);
}

/* |L (L' v) - A v| against |A v|; v is all ones. */
static int matrix_check(const struct work *w)
{
    const size_t n = w->opts.n;
    double *u = calloc(n, sizeof(*u)), *r = calloc(n, sizeof(*r));
    double worst = INFINITY;

    if (u != NULL && r != NULL) {
        worst = 0.0;
        for (size_t j = 0; j < n; j++)
            for (size_t i = j; i < n; i++)
                u[j] += *at(w, i, j);
        for (size_t j = 0; j < n; j++)
            for (size_t i = j; i < n; i++)
                r[i] += *at(w, i, j) * u[j];
        for (size_t i = 0; i < n; i++) {
            double want = 0.0;

            for (size_t j = 0; j < n; j++)
                want += element(n, i, j);
            worst = fmax(worst, fabs(r[i] - want) / (double)n);
        }
    }
    free(u);
    free(r);
    if (worst < 1e-10) /* NaN is wrong too */
        return 0;
    fprintf(stderr, "the factor is wrong: residual %g\n", worst);
    return 1;
}

/* ---- sweep -------------------------------------------------------------- */

static void vectors_fill(struct work *w)
{
    for (size_t i = 0; i < w->opts.ntiles * w->opts.elems; i++) {
        w->x[i] = (float)(i % 7);
        w->y[i] = (float)(i % 5);
    }
}

/* Small multiples of a half: exact. */
static int vectors_check(const struct work *w)
{
    for (size_t i = 0; i < w->opts.ntiles * w->opts.elems; i++) {
        const float want = (float)(i % 5) + (float)w->opts.sweeps * WORK_ALPHA * (float)(i % 7);

        if (w->y[i] != want) {
            fprintf(stderr, "element %zu is %g, not %g\n", i, (double)w->y[i], (double)want);
            return 1;
        }
    }
    return 0;
}

/* ---- the frame ---------------------------------------------------------- */

/* In huge pages where there are any, as Heddle's own benchmarks have it. */
static void *large_alloc(size_t bytes)
{
    const size_t page = (size_t)2 << 20, room = (bytes + page - 1) / page * page;
    void *p = aligned_alloc(page, room > 0 ? room : page);

    if (p != NULL)
        (void)madvise(p, room, MADV_HUGEPAGE);
    return p;
}

static int data_create(struct work *w)
{
    const struct work_opts *o = &w->opts;
    const size_t m = o->ntiles * o->elems;

    if (o->kind == WORK_CHOLESKY) {
        w->nt = (o->n + o->tile - 1) / o->tile;
        w->a = large_alloc(work_tile(w->nt, 0) * o->tile * o->tile * sizeof(*w->a));
    } else if (o->kind == WORK_SWEEP) {
        w->x = aligned_alloc(64, m * sizeof(*w->x));
        w->y = aligned_alloc(64, m * sizeof(*w->y));
    }
    if ((o->kind == WORK_CHOLESKY && w->a == NULL) ||
        (o->kind == WORK_SWEEP && (w->x == NULL || w->y == NULL))) {
        fprintf(stderr, "no memory for the data\n");
        return 1;
    }
    return 0;
}

static void data_fill(struct work *w)
{
    if (w->opts.kind == WORK_CHOLESKY)
        matrix_fill(w);
    else if (w->opts.kind == WORK_SWEEP)
        vectors_fill(w);
}

static int data_check(const struct work *w)
{
    if (w->opts.kind == WORK_CHOLESKY)
        return matrix_check(w);
    return w->opts.kind == WORK_SWEEP ? vectors_check(w) : 0;
}

static size_t count_tasks(const struct work *w)
{
    const size_t nt = w->nt;

    if (w->opts.kind == WORK_CHOLESKY)
        return nt + nt * (nt - 1) + nt * (nt - 1) * (nt - 2) / 6;
    if (w->opts.kind == WORK_SWEEP)
        return w->opts.ntiles * w->opts.sweeps;
    return w->opts.ntasks;
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int measure_one(struct work *w, const struct work_ops *ops, bool prints)
{
    uint64_t wall, cpu;
    int rc;

    data_fill(w);
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    wall = clock_ns(CLOCK_MONOTONIC);
    rc = ops->run(w);
    wall = clock_ns(CLOCK_MONOTONIC) - wall;
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (rc != 0 || data_check(w) != 0)
        return 1;
    if (prints)
        printf("{\"name\":\"%s\",\"work\":\"%s\",\"sched\":\"%s\",\"cores\":%u,"
               "\"n\":%zu,\"tile\":%zu,\"tasks\":%zu,\"ms\":%.4f,\"cpu_ms\":%.4f,"
               "\"ns_per_task\":%.1f}\n",
               ops->name, kind_names[w->opts.kind], ops->sched(w), w->opts.cores,
               w->opts.kind == WORK_CHOLESKY ? w->opts.n : 0,
               w->opts.kind == WORK_CHOLESKY ? w->opts.tile : 0, count_tasks(w), (double)wall / 1e6,
               (double)cpu / 1e6, (double)wall / (double)count_tasks(w));
    fflush(stdout);
    return 0;
}

static bool read_count(const char *text, size_t *out)
{
    char *end;
    const unsigned long long v = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || v == 0 || v > WORK_MAX)
        return false;
    *out = (size_t)v;
    return true;
}

static bool opts_set(struct work_opts *o, const char *key, const char *value)
{
    size_t v = 0;

    if (strcmp(key, "--work") == 0) {
        for (o->kind = 0; o->kind < WORK_NKINDS; o->kind++)
            if (strcmp(value, kind_names[o->kind]) == 0)
                return true;
        return false;
    }
    if (strcmp(key, "--sched") == 0) {
        o->sched = value;
        return true;
    }
    if (!read_count(value, &v))
        return false;
    if (strcmp(key, "--cores") == 0)
        o->cores = (unsigned)v;
    else if (strcmp(key, "--reps") == 0)
        o->reps = (unsigned)v;
    else if (strcmp(key, "--warm") == 0)
        o->warm = (unsigned)v;
    else if (strcmp(key, "--n") == 0)
        o->n = v;
    else if (strcmp(key, "--tile") == 0)
        o->tile = v;
    else if (strcmp(key, "--sweeps") == 0)
        o->sweeps = v;
    else if (strcmp(key, "--tasks") == 0)
        o->ntasks = v;
    else
        return false;
    return true;
}

static bool opts_parse(struct work_opts *o, int argc, char **argv)
{
    *o = (struct work_opts){.kind = WORK_CHOLESKY,
                            .cores = 2,
                            .reps = 1,
                            .warm = 2,
                            .n = 2048,
                            .tile = 128,
                            .ntiles = 64,
                            .elems = 65536,
                            .sweeps = 50,
                            .ntasks = 10000};
    for (int i = 1; i < argc; i += 2)
        if (i + 1 >= argc || !opts_set(o, argv[i], argv[i + 1]))
            return false;
    return true;
}

int work_main(int argc, char **argv, const struct work_ops *ops)
{
    struct work w = {.a = NULL};
    int rc;

    if (!opts_parse(&w.opts, argc, argv)) {
        fprintf(stderr,
                "usage: %s --work cholesky|sweep|own|shared|own-bare|"
                "shared-bare\n       [--sched S] [--cores C] [--reps R] "
                "[--warm R] [--n N] [--tile T] [--sweeps S] [--tasks N]\n",
                argv[0]);
        return 2;
    }
    blas_one_thread();
    rc = data_create(&w);
    if (rc == 0) {
        data_fill(&w);
        rc = ops->open(&w);
        if (rc == 0) {
            /* Some for nothing: threads, memory, compiled kernels, models. */
            for (unsigned r = 0; r < w.opts.warm && rc == 0; r++)
                rc = measure_one(&w, ops, false);
            for (unsigned r = 0; r < w.opts.reps && rc == 0; r++)
                rc = measure_one(&w, ops, true);
            ops->close(&w);
        }
    }
    free(w.a);
    free(w.x);
    free(w.y);
    return rc;
}
