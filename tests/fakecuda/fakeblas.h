/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_FAKEBLAS_H
#define HEDDLE_TESTS_FAKEBLAS_H

/*
 * What the stand-ins for cuBLAS and cuSOLVER share. Matrices are stored by
 * columns; a leading dimension is the distance of two columns. Elements of all types
 * are read as complex doubles.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/complex.h"
#include "fakecuda.h"

#define BLAS(name, ...)                                                                            \
    FC_EXPORT int name(__VA_ARGS__);                                                               \
    int name(__VA_ARGS__)

enum { BLAS_OK = 0, BLAS_NOT_INITIALIZED = 1, BLAS_ALLOC_FAILED = 3 };
enum { BLAS_INVALID_VALUE = 7, BLAS_EXECUTION_FAILED = 13 };
enum { OP_N, OP_T, OP_C };
enum { LOWER, UPPER };
enum { LEFT, RIGHT };
enum { NON_UNIT, UNIT };

/* For loops over memory that nobody else has: sanitizers need not look on. Products
 * of many numbers gather their operands first, which they do see. */
#define BLAS_UNSEEN                                                                                \
    __attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize("undefined"), noinline))

/* The letters of the four types. */
#define BLAS_TYPES(X) X(S) X(D) X(C) X(Z)
enum blas_type { TYPE_S, TYPE_D, TYPE_C, TYPE_Z };

static inline size_t blas_bytes(enum blas_type t)
{
    return t == TYPE_S ? 4 : t == TYPE_Z ? 16 : 8;
}

static inline double complex blas_get(enum blas_type t, const void *a, size_t i)
{
    switch (t) {
    case TYPE_S: return ((const float *)a)[i];
    case TYPE_D: return ((const double *)a)[i];
    case TYPE_C: return ((const float complex *)a)[i];
    default: return ((const double complex *)a)[i];
    }
}

/* A scalar of a call. cuBLAS reads complex ones of two doubles with an instruction that
 * wants them aligned, and crashes: here they are no numbers. */
static inline double complex blas_scalar(enum blas_type t, const void *p)
{
    return t == TYPE_Z && (uintptr_t)p % 16 != 0 ? NAN : blas_get(t, p, 0);
}

static inline void blas_set(enum blas_type t, void *a, size_t i, double complex v)
{
    switch (t) {
    case TYPE_S: ((float *)a)[i] = (float)creal(v); break;
    case TYPE_D: ((double *)a)[i] = creal(v); break;
    case TYPE_C: ((float complex *)a)[i] = (float complex)v; break;
    default: ((double complex *)a)[i] = v; break;
    }
}

struct blas_handle {
    uint64_t magic;
    CUstream stream;
};

/* False: it leaves the context lost. An empty matrix is always there. */
static inline bool blas_touch(CUcontext ctx, const void *a, int rows, int cols, int ld, size_t elem)
{
    if (rows <= 0 || cols <= 0)
        return true;
    return fakecuda_touch(ctx, a, ((size_t)(cols - 1) * (size_t)ld + (size_t)rows) * elem) == 0;
}

/* Room for what is gathered; free() ends it. */
static inline void *blas_new(size_t bytes)
{
    void *p = malloc(bytes + 1);

    if (p == NULL)
        abort();
    return p;
}

static inline size_t blas_at(int i, int j, int ld)
{
    return (size_t)i + (size_t)j * (size_t)ld;
}

#endif /* HEDDLE_TESTS_FAKEBLAS_H */
