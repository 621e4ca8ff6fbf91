/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed: what solves with factors of low precision need besides products: copies
 * between types, norms, solves with few right-hand sides, vectors of GMRES.
 * `make ptx` makes ptx/mixed.h from it.
 *
 * Sums  are added in an order that depends on the shape alone, so results repeat.
 *       A NaN stays one.
 */
#include <cuda_fp16.h>

/* --- copies ------------------------------------------------------------------------- */

/* Does this element count? uplo 0: all do; 'L', 'U'. */
__device__ static bool counts(int uplo, int row, int col)
{
    return uplo == 0 || (uplo == 'L' ? row >= col : row <= col);
}

/* to = from where it counts, m rows and n columns, of which the first is number col0.
 * *lost = 1: a finite number became an infinite one. */
template <typename From, typename To>
__device__ static void copy(const From *from, long long ldf, To *to, long long ldt, int m, int n,
                            int uplo, int col0, int *lost)
{
    const long long all = (long long)m * n;
    bool has_lost = false;

    for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < all;
         k += (long long)gridDim.x * blockDim.x) {
        const int i = (int)(k % m), j = (int)(k / m);

        if (counts(uplo, i, col0 + j)) {
            const From v = from[i + j * ldf];
            const To w = (To)v;

            to[i + j * ldt] = w;
            has_lost = has_lost || (isinf(w) && !isinf(v));
        }
    }
    if (has_lost)
        *lost = 1; /* all write the same */
}

#define COPY(name, From, To)                                                                       \
    extern "C" __global__ void name(const From *from, long long ldf, To *to, long long ldt, int m, \
                                    int n, int uplo, int col0, int *lost)                          \
    {                                                                                              \
        copy(from, ldf, to, ldt, m, n, uplo, col0, lost);                                          \
    }

COPY(la_copy_ss, float, float)
COPY(la_copy_sd, float, double)
COPY(la_copy_ds, double, float)
COPY(la_copy_dd, double, double)

#define SET(name, T)                                                                               \
    extern "C" __global__ void name(T *to, long long ld, int m, int n, int uplo, int col0, T off,  \
                                    T diag)                                                        \
    {                                                                                              \
        const long long all = (long long)m * n;                                                    \
                                                                                                   \
        for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < all;              \
             k += (long long)gridDim.x * blockDim.x) {                                             \
            const int i = (int)(k % m), j = (int)(k / m);                                          \
                                                                                                   \
            if (counts(uplo, i, col0 + j))                                                         \
                to[i + j * ld] = i == col0 + j ? diag : off;                                       \
        }                                                                                          \
    }

SET(la_set_s, float)
SET(la_set_d, double)

/* --- A to low precision, and norms ----------------------------------------------------- */

enum { NARROW_ROWS = 64, NARROW_GROUPS = 8 };

/*
 * low = scale a, and sums[i] = the sum of row i of |a| (added to what is there when
 * `adds`). Of a triangle: where it does not count low is 0. Block: NARROW_ROWS x
 * NARROW_GROUPS threads, each with every NARROW_GROUPS-th column of a row.
 */
extern "C" __global__ void la_narrow(const double *a, long long lda, float *low, long long ldl,
                                     int m, int n, int uplo, int col0, double scale, double *sums,
                                     int adds)
{
    __shared__ double part[NARROW_GROUPS][NARROW_ROWS];
    const int r = threadIdx.x % NARROW_ROWS, g = threadIdx.x / NARROW_ROWS;
    const int row = blockIdx.x * NARROW_ROWS + r;
    double s = 0;

    if (row < m) {
#pragma unroll 4
        for (int j = g; j < n; j += NARROW_GROUPS) {
            const bool is_in = counts(uplo, row, col0 + j);
            const double v = is_in ? a[row + j * lda] : 0;

            low[row + j * ldl] = (float)(scale * v);
            s += fabs(v);
        }
    }
    part[g][r] = s;
    __syncthreads();
    if (g == 0 && row < m) {
        s = adds ? sums[row] : 0;
        for (int k = 0; k < NARROW_GROUPS; k++)
            s += part[k][r];
        sums[row] = s;
    }
}

enum { WIDE = 256 }; /* threads that reduce */

__device__ static double sum_of_block(double s)
{
    __shared__ double part[WIDE / 32];

    for (int d = 16; d > 0; d /= 2)
        s += __shfl_down_sync(~0u, s, d);
    __syncthreads(); /* part of an earlier call */
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < WIDE / 32; k++)
        s += part[k];
    return s; /* of all threads */
}

__device__ static double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

__device__ static double largest_of_block(double s)
{
    __shared__ double part[WIDE / 32];

    for (int d = 16; d > 0; d /= 2)
        s = larger(s, __shfl_down_sync(~0u, s, d));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < WIDE / 32; k++)
        s = larger(s, part[k]);
    return s;
}

/* The mirrored half: sums[col] += |column| without its diagonal. A block a column. */
extern "C" __global__ void la_narrow_mirror(const double *a, long long lda, int m, int uplo,
                                            int col0, double *sums)
{
    const int j = blockIdx.x, col = col0 + j;
    const int first = uplo == 'L' ? col + 1 : 0, end = uplo == 'L' ? m : col;
    double s = 0;

    for (int i = first + threadIdx.x; i < end; i += WIDE)
        s += fabs(a[i + j * lda]);
    s = sum_of_block(s);
    if (threadIdx.x == 0)
        sums[col] += s;
}

/* out[j] = the largest |column j|. A block a column. */
extern "C" __global__ void la_largest(const double *a, long long ld, int m, double *out)
{
    double s = 0;

    for (int i = threadIdx.x; i < m; i += WIDE)
        s = larger(s, fabs(a[i + blockIdx.x * ld]));
    s = largest_of_block(s);
    if (threadIdx.x == 0)
        out[blockIdx.x] = s;
}

/* --- right-hand sides ------------------------------------------------------------------- */

/* to[i] = factor from[perm[i]]; perm NULL: i. */
extern "C" __global__ void la_down(float *to, const double *from, const int *perm, int n,
                                   double factor)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        to[i] = (float)(factor * from[perm != 0 ? perm[i] : i]);
}

/* to = beta to + factor from, beta 0 or 1. */
extern "C" __global__ void la_up(double *to, const float *from, int n, double beta, double factor)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        to[i] = (beta != 0 ? to[i] : 0) + factor * (double)from[i];
}

/* --- triangles ------------------------------------------------------------------------------ */

enum { INVERT = 64 };

/*
 * The columns at x become those of the inverses of the diagonal blocks of t, of order
 * INVERT; t has order w, and is upper when is_up. A block for each; a warp has a column at
 * a time. Upper ones are lower ones counted from their end.
 */
extern "C" __global__ void la_corners(const float *t, long long ld, int w, float *x, long long ldx,
                                      int is_up, int is_unit)
{
    __shared__ float low[INVERT * (INVERT + 1)], root[INVERT];
    const int k0 = blockIdx.x * INVERT, n = min(INVERT, w - k0), lane = threadIdx.x % 32;

    for (int k = threadIdx.x; k < INVERT * INVERT; k += blockDim.x) {
        const int i = k % INVERT, j = k / INVERT;
        const int row = k0 + (is_up ? n - 1 - i : i), col = k0 + (is_up ? n - 1 - j : j);
        const float v = i < n && j < n && i >= j ? t[row + col * ld] : 0;

        low[i * (INVERT + 1) + j] = v;
        if (i == j)
            root[i] = i >= n || is_unit ? 1 : 1 / v;
    }
    for (int k = threadIdx.x; k < w * n; k += blockDim.x)
        x[k % w + (k0 + k / w) * ldx] = 0;
    __syncthreads();
    for (int c = threadIdx.x / 32; c < n; c += blockDim.x / 32) {
        float *column = x + k0 + (k0 + (is_up ? n - 1 - c : c)) * ldx;
        float y0 = lane == c ? 1 : 0, y1 = lane + 32 == c ? 1 : 0;

#pragma unroll 4
        for (int k = c; k < n; k++) {
            const float yk = __shfl_sync(~0u, k < 32 ? y0 : y1, k % 32) * root[k];

            if (lane > k)
                y0 -= low[lane * (INVERT + 1) + k] * yk;
            if (lane + 32 > k)
                y1 -= low[(lane + 32) * (INVERT + 1) + k] * yk;
        }
        if (lane < n)
            column[is_up ? n - 1 - lane : lane] = y0 * root[lane];
        if (lane + 32 < n)
            column[is_up ? n - 33 - lane : lane + 32] = y1 * root[lane + 32];
    }
}

/* --- products with few columns --------------------------------------------------------- */

enum { PUSH_WIDE = 512, PUSH_ROWS = 32, PUSH_GROUPS = 16 };

/* y = beta y + alpha A x, beta 0 or 1, A m x w with w <= PUSH_WIDE. Threads: PUSH_ROWS x
 * PUSH_GROUPS; blocks: rows, columns of x. */
extern "C" __global__ void la_push(const float *a, long long ld, int m, int w, const float *x,
                                   long long ldx, float *y, long long ldy, float alpha, float beta)
{
    __shared__ float v[PUSH_WIDE], part[PUSH_GROUPS][PUSH_ROWS];
    const int r = threadIdx.x % PUSH_ROWS, g = threadIdx.x / PUSH_ROWS;
    const int row = blockIdx.x * PUSH_ROWS + r;
    float s = 0;

    for (int k = threadIdx.x; k < w; k += PUSH_ROWS * PUSH_GROUPS)
        v[k] = x[k + blockIdx.y * ldx];
    __syncthreads();
    if (row < m) {
#pragma unroll 8
        for (int k = g; k < w; k += PUSH_GROUPS)
            s += a[row + k * ld] * v[k];
    }
    part[g][r] = s;
    __syncthreads();
    if (g == 0 && row < m) {
        float *to = y + row + blockIdx.y * ldy;

        s = 0;
        for (int k = 0; k < PUSH_GROUPS; k++)
            s += part[k][r];
        *to = (beta != 0 ? *to : 0) + alpha * s;
    }
}

/* y = beta y + alpha A^T x, A m x w: a block for each column of A and of x. */
extern "C" __global__ void la_pull(const float *a, long long ld, int m, const float *x,
                                   long long ldx, float *y, long long ldy, float alpha, float beta)
{
    const float *v = x + blockIdx.y * ldx;
    float s = 0;

    a += blockIdx.x * ld;
#pragma unroll 4
    for (int i = threadIdx.x; i < m; i += WIDE)
        s += a[i] * v[i];
    s = (float)sum_of_block((double)s);
    if (threadIdx.x == 0) {
        float *to = y + blockIdx.x + blockIdx.y * ldy;

        *to = (beta != 0 ? *to : 0) + alpha * s;
    }
}

/* --- products of halves ----------------------------------------------------------------------- */

/*
 * scale from (m x n) as `terms` matrices of halves, `step` elements apart: what number
 * `low` of them holds is what rounding has taken from the others.
 */
extern "C" __global__ void la_split(const float *from, long long ld, int m, int n, float scale,
                                    __half *to, long long ldt, long long step, int terms, int low)
{
    const long long all = (long long)m * n;

    for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < all;
         k += (long long)gridDim.x * blockDim.x) {
        const long long i = k % m, j = k / m;
        const float v = scale * from[i + j * ld];
        const __half high = __float2half_rn(v), rest = __float2half_rn(v - __half2float(high));

        for (int t = 0; t < terms; t++)
            to[i + j * ldt + t * step] = t == low ? rest : high;
    }
}

/* --- vectors of GMRES
 * ---------------------------------------------------------------------------- */

/* What a launch takes of a basis at once. */
#define VECTORS                                                                                    \
    const double *v0, const double *v1, const double *v2, const double *v3, const double *v4,      \
        const double *v5, const double *v6, const double *v7
#define EACH                                                                                       \
    {                                                                                              \
        v0, v1, v2, v3, v4, v5, v6, v7                                                             \
    }

/* out[i] = z . v[i], a block each. */
extern "C" __global__ void la_dots(VECTORS, const double *z, int n, double *out)
{
    const double *const all[8] = EACH, *v = all[blockIdx.x];
    double s = 0;

#pragma unroll 4
    for (int i = threadIdx.x; i < n; i += WIDE)
        s += v[i] * z[i];
    s = sum_of_block(s);
    if (threadIdx.x == 0)
        out[blockIdx.x] = s;
}

/* z = z + factor (c[0] v[0] + c[1] v[1] ...). */
extern "C" __global__ void la_combine(VECTORS, int count, const double *c, double factor, double *z,
                                      int n)
{
    const double *const all[8] = EACH;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    double s = 0;

    if (i >= n)
        return;
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (k < count)
            s += c[k] * all[k][i];
    z[i] += factor * s;
}

/* z = z / sqrt(square); nothing for 0 or NaN. */
extern "C" __global__ void la_unit(double *z, const double *square, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double s = *square;

    if (i < n && s > 0)
        z[i] /= sqrt(s);
}

/* to = factor from. */
extern "C" __global__ void la_scale(double *to, const double *from, int n, double factor)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        to[i] = factor * from[i];
}
