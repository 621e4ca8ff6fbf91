/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nopiv: panels of LU without pivots, 64 columns at a time. `make ptx` makes
 * ptx/nopiv.h from it.
 *
 * Diagonal  one block of threads; each has 4 x 4 elements in registers, 16 rows and 16
 *           columns apart, so that all have work until the end. For each column its
 *           elements and those of the row go through shared memory, in two copies by
 *           turns: all meet once.
 * Rows      below it know nothing of each other: a thread has one, 16 columns of it in
 *           registers.
 * Zeros     on the diagonal are told, and their columns have no part in the rest of the
 *           64; cores do so for 16 at a time. Later products use them as they are.
 */
enum { W = 64, SIDE = 16, EACH = W / SIDE, GROUP = 16 };

/* --- types ------------------------------------------------------------------------ */

__device__ static bool is_zero(float x)
{
    return x == 0;
}

__device__ static bool is_zero(double x)
{
    return x == 0;
}

__device__ static bool is_zero(float2 x)
{
    return x.x == 0 && x.y == 0;
}

__device__ static bool is_zero(double2 x)
{
    return x.x == 0 && x.y == 0;
}

template <typename T> __device__ static T zero();

template <> __device__ float zero<float>()
{
    return 0;
}

template <> __device__ double zero<double>()
{
    return 0;
}

template <> __device__ float2 zero<float2>()
{
    return make_float2(0, 0);
}

template <> __device__ double2 zero<double2>()
{
    return make_double2(0, 0);
}

/* x -= y z */
__device__ static void take(float *x, float y, float z)
{
    *x -= y * z;
}

__device__ static void take(double *x, double y, double z)
{
    *x -= y * z;
}

__device__ static void take(float2 *x, float2 y, float2 z)
{
    x->x = fma(y.y, z.y, fma(-y.x, z.x, x->x));
    x->y = fma(-y.y, z.x, fma(-y.x, z.y, x->y));
}

__device__ static void take(double2 *x, double2 y, double2 z)
{
    x->x = fma(y.y, z.y, fma(-y.x, z.x, x->x));
    x->y = fma(-y.y, z.x, fma(-y.x, z.y, x->y));
}

__device__ static float over(float x, float y)
{
    return x / y;
}

__device__ static double over(double x, double y)
{
    return x / y;
}

/* By the larger part of y: no square that is too large or too small. Long, and in many
 * places, so it is called. */
template <typename P, typename R> __device__ __noinline__ static P pair_over(P x, P y)
{
    const bool is_real = fabs(y.x) >= fabs(y.y);
    const R p = is_real ? y.x : y.y, q = is_real ? y.y : y.x, f = q / p, d = p + q * f;
    P z;

    z.x = (is_real ? x.x + x.y * f : x.x * f + x.y) / d;
    z.y = (is_real ? x.y - x.x * f : x.y * f - x.x) / d;
    return z;
}

__device__ static float2 over(float2 x, float2 y)
{
    return pair_over<float2, float>(x, y);
}

__device__ static double2 over(double2 x, double2 y)
{
    return pair_over<double2, double>(x, y);
}

/* --- kernels ------------------------------------------------------------------------ */

/* A = L U, n x n, n at most W, by SIDE x SIDE threads. *info, if it is 0: col0 + the
 * first column (from 1) whose pivot is zero. */
template <typename T>
__device__ static void diagonal(T *a, long long ld, int n, int col0, int *info)
{
    __shared__ T row[2][W], column[2][W];
    const int i0 = threadIdx.x % SIDE, k0 = threadIdx.x / SIDE;
    const T none = zero<T>();
    T x[EACH][EACH];
    int first = 0;

#pragma unroll
    for (int c = 0; c < EACH; c++)
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int i = i0 + r * SIDE, k = k0 + c * SIDE;

            x[r][c] = i < n && k < n ? a[i + k * ld] : none;
        }
#pragma unroll
    for (int b = 0; b < EACH; b++)
#pragma unroll 1
        for (int s = 0; s < SIDE && b * SIDE + s < n; s++) {
            const int j = b * SIDE + s;
            T *u = row[s % 2], *l = column[s % 2];

            if (k0 == s)
#pragma unroll
                for (int r = 0; r < EACH; r++)
                    l[i0 + r * SIDE] = x[r][b];
            if (i0 == s)
#pragma unroll
                for (int c = 0; c < EACH; c++)
                    u[k0 + c * SIDE] = x[b][c];
            __syncthreads();
            if (is_zero(u[j])) {
                first = first == 0 ? j + 1 : first;
                continue;
            }
#pragma unroll
            for (int r = b; r < EACH; r++) {
                const bool is_below = i0 + r * SIDE > j;
                const T f = over(l[i0 + r * SIDE], u[j]);

                if (k0 == s && is_below)
                    x[r][b] = f;
#pragma unroll
                for (int c = b; c < EACH; c++) {
                    T y = x[r][c];

                    take(&y, f, u[k0 + c * SIDE]);
                    if (is_below && k0 + c * SIDE > j)
                        x[r][c] = y;
                }
            }
        }
#pragma unroll
    for (int c = 0; c < EACH; c++)
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int i = i0 + r * SIDE, k = k0 + c * SIDE;

            if (i < n && k < n)
                a[i + k * ld] = x[r][c];
        }
    if (threadIdx.x == 0 && first != 0 && *info == 0)
        *info = col0 + first;
}

/* B = B U^-1, m x n; U is n x n, n at most W, at u. A thread for each row. */
template <typename T>
__device__ static void rows_below(const T *u, T *b, long long ld, int m, int n)
{
    __shared__ T part[W][GROUP]; /* the columns of U that are on turn */
    __shared__ int is_none[W];
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    const T none = zero<T>();

    for (int k = threadIdx.x; k < W; k += blockDim.x)
        is_none[k] = k >= n || is_zero(u[k + k * ld]);
    for (int g = 0; g < n; g += GROUP) {
        const int end = g + GROUP;
        T x[GROUP];

        __syncthreads();
        for (int e = threadIdx.x; e < end * GROUP; e += blockDim.x) {
            const int k = e % end, c = e / end;

            part[k][c] = k < n && g + c < n ? u[k + (g + c) * ld] : none;
        }
        __syncthreads();
        if (r >= m)
            continue;
#pragma unroll
        for (int c = 0; c < GROUP; c++)
            x[c] = g + c < n ? b[r + (g + c) * ld] : none;
#pragma unroll 1
        for (int k = 0; k < g; k++) {
            const T y = is_none[k] ? none : b[r + k * ld];

#pragma unroll
            for (int c = 0; c < GROUP; c++)
                take(&x[c], y, part[k][c]);
        }
#pragma unroll
        for (int c = 0; c < GROUP; c++) {
            const bool is_there = !is_none[g + c];
            const T y = over(x[c], part[g + c][c]), z = is_there ? y : none;

            x[c] = is_there ? y : x[c];
#pragma unroll
            for (int d = c + 1; d < GROUP; d++)
                take(&x[d], z, part[g + c][d]);
        }
#pragma unroll
        for (int c = 0; c < GROUP; c++)
            if (g + c < n)
                b[r + (g + c) * ld] = x[c];
    }
}

#define KERNELS(T, s)                                                                              \
    extern "C" __global__ void la_nopiv_##s(T *a, long long ld, int n, int col0, int *info)        \
    {                                                                                              \
        diagonal<T>(a, ld, n, col0, info);                                                         \
    }                                                                                              \
    extern "C" __global__ void la_below_##s(const T *u, T *b, long long ld, int m, int n)          \
    {                                                                                              \
        rows_below<T>(u, b, ld, m, n);                                                             \
    }

KERNELS(float, s)
KERNELS(double, d)
KERNELS(float2, c)
KERNELS(double2, z)
