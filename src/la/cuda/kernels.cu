/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels: what the libraries of CUDA do not do, or do slowly: panels of LU and QR
 * (panels.cuh), rows that change places (rows.cuh), small things (elements.cuh). The kernels
 * are here, so that all of them are one module. `make ptx` makes ptx/kernels.h from it.
 */
#include "la/cuda/elements.cuh"
#include "la/cuda/panels.cuh"
#include "la/cuda/rows.cuh"

#define KERNELS(T, s)                                                                              \
    extern "C" __global__ void la_invert_##s(const T *l, long long ldl, int w, T *x,               \
                                             const int *ipiv, int row0, int *from, int *to)        \
    {                                                                                              \
        lu_invert<T>(l, ldl, w, x, ipiv, row0, from, to);                                          \
    }                                                                                              \
    extern "C" __global__ void la_take_##s(T *a, long long ld, int n, int w, const int *from,      \
                                           const int *to, T *t)                                    \
    {                                                                                              \
        take_rows<T>(a, ld, n, w, from, to, t);                                                    \
    }                                                                                              \
    extern "C" __global__ void la_lu_##s(T *a, long long ld, int m, int w, int row0, int col0,     \
                                         int *ipiv, int *info, T *tell, unsigned *bar)             \
    {                                                                                              \
        lu_panel<T>(a, ld, m, w, row0, col0, ipiv, info, tell, bar);                               \
    }                                                                                              \
    extern "C" __global__ void la_qr_##s(T *a, long long ld, int m, int w, T *v, long long ldv,    \
                                         T *t, int ldt, T *tell, unsigned *bar)                    \
    {                                                                                              \
        qr_panel<T>(a, ld, m, w, v, ldv, t, ldt, tell, bar);                                       \
    }                                                                                              \
    extern "C" __global__ void la_solve_##s(const T *l, long long ldl, T *b, long long ldb, int w, \
                                            int n)                                                 \
    {                                                                                              \
        solve_unit<T>(l, ldl, b, ldb, w, n);                                                       \
    }                                                                                              \
    /* The rows above the first one of v, and t, become zero. */                                   \
    extern "C" __global__ void la_clear_##s(T *x, long long ld, int m, int n)                      \
    {                                                                                              \
        for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < (long long)m * n; \
             i += (long long)gridDim.x * blockDim.x)                                               \
            x[i % m + i / m * ld] = 0;                                                             \
    }

KERNELS(double, d)
KERNELS(float, s)

/* For complex types as well. */
#define ANY_TYPE(T, s)                                                                             \
    extern "C" __global__ void la_v_##s(const T *a, long long lda, int m, int n, T *v,             \
                                        long long ldv)                                             \
    {                                                                                              \
        reflectors<T>(a, lda, m, n, v, ldv);                                                       \
    }                                                                                              \
    extern "C" __global__ void la_scale_##s(T *g, int n, const T *tau, T *t, long long ldt)        \
    {                                                                                              \
        scale_columns<T>(g, n, tau, t, ldt);                                                       \
    }                                                                                              \
    extern "C" __global__ void la_zeros_##s(const T *a, long long ld, int n, int row0, int *found) \
    {                                                                                              \
        zeros<T>(a, ld, n, row0, found);                                                           \
    }                                                                                              \
    extern "C" __global__ void la_no_roots_##s(const T *a, long long ld, int n, int *info)         \
    {                                                                                              \
        no_roots<T>(a, ld, n, info);                                                               \
    }                                                                                              \
    extern "C" __global__ void la_eye_##s(T *x, long long ld, int m, int n, int column)            \
    {                                                                                              \
        identity<T>(x, ld, m, n, column);                                                          \
    }                                                                                              \
    extern "C" __global__ void la_beta_##s(T *c, long long ld, int n, int is_upper, double re,     \
                                           double im, int is_real)                                 \
    {                                                                                              \
        scale_triangle<T>(c, ld, n, is_upper, re, im, is_real);                                    \
    }

ANY_TYPE(float, s)
ANY_TYPE(double, d)
ANY_TYPE(float2, c)
ANY_TYPE(double2, z)

/* By the size of an element. */
#define ANY_SIZE(T, bytes)                                                                         \
    extern "C" __global__ void la_tri_##bytes(const T *x, long long ldx, int n, T *a,              \
                                              long long lda, int is_upper, int is_unit)            \
    {                                                                                              \
        copy_triangle<T>(x, ldx, n, a, lda, is_upper, is_unit);                                    \
    }                                                                                              \
    extern "C" __global__ void la_swap_##bytes(T *a, long long ld, int n, const int *ipiv, int nk, \
                                               int row0, int is_backward)                          \
    {                                                                                              \
        swap_rows<T>(a, ld, n, ipiv, nk, row0, is_backward);                                       \
    }                                                                                              \
    extern "C" __global__ void la_rows_##bytes(T *a, long long ld, int m, int n, const int *from,  \
                                               T *t, int is_back)                                  \
    {                                                                                              \
        order_rows<T>(a, ld, m, n, from, t, is_back);                                              \
    }

ANY_SIZE(float, 4)
ANY_SIZE(double, 8)
ANY_SIZE(double2, 16)

/* Pivots of a panel become those of the matrix. */
extern "C" __global__ void la_shift(int *ipiv, int n, int by)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        ipiv[i] += by;
}

extern "C" __global__ void la_zero(unsigned *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = 0;
}
