/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_TEST_H
#define HEDDLE_LA_TEST_H

/*
 * For tests of the dense library: a plain matrix of complex doubles as reference,
 * its conversion to memory of the four types, and a context with a sequence.
 *
 * Everything a test makes with these goes at test_forget().
 *
 * LA_TEST_DEVICES in the environment: "cuda", tasks run on a device as well;
 * "only-cuda", no task of a sequence may run elsewhere: one that is declined fails.
 */
#include <float.h>

#include "base/complex.h"
#include "base/rng.h"
#include "la/cuda/cuda.h"
#include "la/la.h"
#include "tests/test.h"

struct ref {
    size_t m, n;
    double complex *a; /* m x n, column-major */
};

static void *test_kept[4096];
static size_t test_nkept;
static heddle_ctx *test_ctx; /* one with devices, which keep memory pinned until its
                                handles have gone */

static inline void *test_keep(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);

    CHECK(p != NULL && test_nkept < sizeof(test_kept) / sizeof(test_kept[0]));
    test_kept[test_nkept++] = p;
    return p;
}

static inline void test_forget(void)
{
    if (test_ctx != NULL)
        CHECK_OK(heddle_wait(test_ctx));
    while (test_nkept > 0)
        free(test_kept[--test_nkept]);
}

static const enum heddle_dtype test_dtype[4] = {HEDDLE_F32, HEDDLE_F64, HEDDLE_C64, HEDDLE_C128};

static inline double test_eps(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static inline struct ref ref_new(size_t m, size_t n)
{
    return (struct ref){m, n, test_keep(m * n * sizeof(double complex))};
}

#define REF(r, i, j) ((r).a[(i) + (j) * (r).m])

/* Uniform in (-0.5, 0.5); with an imaginary part for complex types; numbers that
 * the type has exactly. */
static inline struct ref ref_random(enum blas_type t, size_t m, size_t n, struct heddle_rng *rng)
{
    struct ref r = ref_new(m, n);

    for (size_t i = 0; i < m * n; i++) {
        const double re = (double)(heddle_rng_next(rng) >> 40) / 16777216 - 0.5;
        const double im = (double)(heddle_rng_next(rng) >> 40) / 16777216 - 0.5;

        r.a[i] = blas_is_complex(t) ? re + im * I : re;
    }
    return r;
}

/* op(r): 'N', 'T' or 'C'. */
static inline struct ref ref_op(struct ref r, char trans)
{
    struct ref q = trans == 'N' ? ref_new(r.m, r.n) : ref_new(r.n, r.m);

    for (size_t j = 0; j < r.n; j++)
        for (size_t i = 0; i < r.m; i++)
            if (trans == 'N')
                REF(q, i, j) = REF(r, i, j);
            else
                REF(q, j, i) = trans == 'C' ? conj(REF(r, i, j)) : REF(r, i, j);
    return q;
}

static inline struct ref ref_mul(struct ref a, struct ref b)
{
    struct ref c = ref_new(a.m, b.n);

    CHECK_EQ(a.n, b.m);
    for (size_t j = 0; j < b.n; j++)
        for (size_t k = 0; k < a.n; k++)
            for (size_t i = 0; i < a.m; i++)
                REF(c, i, j) += REF(a, i, k) * REF(b, k, j);
    return c;
}

/* a + f b. */
static inline struct ref ref_add(struct ref a, double complex f, struct ref b)
{
    struct ref c = ref_new(a.m, a.n);

    CHECK(a.m == b.m && a.n == b.n);
    for (size_t i = 0; i < a.m * a.n; i++)
        c.a[i] = a.a[i] + f * b.a[i];
    return c;
}

static inline struct ref ref_identity(size_t n)
{
    struct ref r = ref_new(n, n);

    for (size_t i = 0; i < n; i++)
        REF(r, i, i) = 1;
    return r;
}

static inline struct ref ref_part(struct ref r, size_t i0, size_t j0, size_t m, size_t n)
{
    struct ref q = ref_new(m, n);

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            REF(q, i, j) = REF(r, i0 + i, j0 + j);
    return q;
}

/* The triangle, 0 elsewhere; with ones on the diagonal if is_unit. */
static inline struct ref ref_triangle(struct ref r, char uplo, bool is_unit)
{
    struct ref q = ref_new(r.m, r.n);

    for (size_t j = 0; j < r.n; j++)
        for (size_t i = 0; i < r.m; i++)
            if (i == j && is_unit)
                REF(q, i, j) = 1;
            else if (uplo == 'L' ? i >= j : i <= j)
                REF(q, i, j) = REF(r, i, j);
    return q;
}

/* The matrix of which the triangle uplo is stored. */
static inline struct ref ref_mirror(struct ref r, char uplo, bool is_hermitian)
{
    struct ref q = ref_new(r.m, r.n);

    for (size_t j = 0; j < r.n; j++)
        for (size_t i = 0; i < r.m; i++) {
            const bool is_there = uplo == 'L' ? i >= j : i <= j;
            const double complex v = is_there ? REF(r, i, j) : REF(r, j, i);

            REF(q, i, j) = is_there || !is_hermitian ? v : conj(v);
            if (i == j && is_hermitian)
                REF(q, i, j) = creal(v);
        }
    return q;
}

static inline double ref_norm1(struct ref r)
{
    double norm = 0;

    for (size_t j = 0; j < r.n; j++) {
        double sum = 0;

        for (size_t i = 0; i < r.m; i++)
            sum += cabs(REF(r, i, j));
        if (norm < sum || sum != sum)
            norm = sum; /* a NaN stays: nothing is more */
    }
    return norm;
}

/* Memory of the type with that leading dimension; the gaps are NaN. */
static inline void *ref_store(enum blas_type t, struct ref r, size_t ld)
{
    const size_t n = ld * (r.n > 0 ? r.n : 1);
    void *p = test_keep(n * blas_bytes(t));

    memset(p, 0xff, n * blas_bytes(t));
    for (size_t j = 0; j < r.n; j++)
        for (size_t i = 0; i < r.m; i++) {
            const double complex v = REF(r, i, j);
            const size_t at = i + j * ld;

            switch (t) {
            case BLAS_S: ((float *)p)[at] = (float)creal(v); break;
            case BLAS_D: ((double *)p)[at] = creal(v); break;
            case BLAS_C: ((float complex *)p)[at] = (float complex)v; break;
            default: ((double complex *)p)[at] = v; break;
            }
        }
    return p;
}

static inline struct ref ref_load(enum blas_type t, const void *p, size_t m, size_t n, size_t ld)
{
    struct ref r = ref_new(m, n);

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            const size_t at = i + j * ld;

            switch (t) {
            case BLAS_S: REF(r, i, j) = ((const float *)p)[at]; break;
            case BLAS_D: REF(r, i, j) = ((const double *)p)[at]; break;
            case BLAS_C: REF(r, i, j) = ((const float complex *)p)[at]; break;
            default: REF(r, i, j) = ((const double complex *)p)[at]; break;
            }
        }
    return r;
}

/* A scalar of the type. */
static inline const void *test_scalar(enum blas_type t, double complex v)
{
    struct ref r = ref_new(1, 1);

    r.a[0] = v;
    return ref_store(t, r, 1);
}

/* --- a context and a sequence ---------------------------------------------- */

struct rig {
    heddle_ctx *ctx;
    heddle_la *la;
};

/* Devices that tests are asked for; NULL: none. */
static inline const char *test_devices(void)
{
    return getenv("LA_TEST_DEVICES");
}

/* Every operation takes long: fewer cases, please. */
static inline bool test_is_slow(void)
{
    return TEST_SANITIZED || test_devices() != NULL;
}

/* Of cases that are crossed with others every third, where each takes very long: with a
 * sanitizer and a stand-in for a device. */
static inline unsigned test_step(void)
{
    return TEST_SANITIZED && test_devices() != NULL ? 3 : 1;
}

/* False: no BLAS here, or not the device that is asked for. */
static inline bool rig_open_on(struct rig *r, unsigned workers, const char *devices)
{
    const bool only = devices != NULL && strcmp(devices, "only-cuda") == 0;
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = workers,
                                      .sched = "prio",
                                      .devices = devices != NULL ? "cuda" : "none",
                                      .model_dir = ""};
    const struct heddle_la_opts lo = {.size = sizeof(lo), .devices = only ? LA_GPU_KINDS : 0};
    heddle_status st = heddle_ctx_create(&o, &r->ctx);

    if (st != HEDDLE_OK && devices != NULL)
        return false;
    CHECK_OK(st);
    st = heddle_la_create(r->ctx, &lo, &r->la);
    if (st == HEDDLE_OK && devices != NULL && !r->la->has_cuda) {
        heddle_la_destroy(r->la);
        st = HEDDLE_ENOENT;
    }
    if (st == HEDDLE_ENOENT) {
        CHECK_OK(heddle_ctx_destroy(r->ctx));
        return false;
    }
    CHECK_OK(st);
    test_ctx = r->la->has_cuda ? r->ctx : NULL;
    return true;
}

static inline bool rig_open(struct rig *r, unsigned workers)
{
    return rig_open_on(r, workers, test_devices());
}

static inline void rig_close(struct rig *r)
{
    heddle_la_destroy(r->la);
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    test_ctx = NULL;
    test_forget();
}

#define RIG(r)                                                                                     \
    struct rig r;                                                                                  \
                                                                                                   \
    if (!rig_open(&r, 3))                                                                          \
    SKIP("there is no BLAS here, or no such device")

/* In place at p, or (p NULL) of the runtime with the values of `of`. */
static inline heddle_matrix *rig_matrix(struct rig *r, enum blas_type t, size_t m, size_t n,
                                        void *p, size_t ld, size_t nb)
{
    heddle_matrix *a = NULL;

    if (r->la->has_cuda) /* an earlier one on this memory has gone */
        CHECK_OK(heddle_wait(r->ctx));
    CHECK_OK(heddle_matrix_create_nb(r->la, test_dtype[t], m, n, p, ld, nb, &a));
    return a;
}

/* Waits, and brings home what is on devices; the sequence ends well with that info. */
static inline void rig_wait(struct rig *r, int info)
{
    int got = 0;

    CHECK_OK(heddle_la_wait(r->la, &got));
    CHECK_EQ(got, info);
    if (r->la->has_cuda)
        CHECK_OK(heddle_wait(r->ctx));
}

#endif /* HEDDLE_LA_TEST_H */
