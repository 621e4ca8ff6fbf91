/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_FAKEBLAS_H
#define HEDDLE_TESTS_FAKEBLAS_H

/*
 * What the stand-ins for cuBLAS and cuSOLVER share. Matrices are stored by
 * columns; a leading dimension is the distance of two columns.
 */
#include "fakecuda.h"

#define BLAS(name, ...)                                                        \
    FC_EXPORT int name(__VA_ARGS__);                                           \
    int name(__VA_ARGS__)

enum { BLAS_OK = 0, BLAS_NOT_INITIALIZED = 1, BLAS_ALLOC_FAILED = 3 };
enum { BLAS_INVALID_VALUE = 7, BLAS_EXECUTION_FAILED = 13 };
enum { OP_N, OP_T, OP_C };
enum { LOWER, UPPER };
enum { LEFT, RIGHT };
enum { NON_UNIT, UNIT };

struct blas_handle {
    uint64_t magic;
    CUstream stream;
};

/* False: it leaves the context lost. An empty matrix is always there. */
static inline bool blas_touch(CUcontext ctx, const void *a, int rows, int cols,
                              int ld, size_t elem)
{
    if (rows <= 0 || cols <= 0)
        return true;
    return fakecuda_touch(ctx, a,
                          ((size_t)(cols - 1) * (size_t)ld + (size_t)rows) *
                              elem) == 0;
}

static inline size_t blas_at(int i, int j, int ld)
{
    return (size_t)i + (size_t)j * (size_t)ld;
}

#endif /* HEDDLE_TESTS_FAKEBLAS_H */
