/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels: what the libraries of CUDA do not do, or do slowly: panels of LU and
 * QR, and rows that change places. la/cuda/ptx/kernels.h is made from it:
 *
 *     nvcc -ptx -arch=compute_75 -o - src/la/cuda/kernels.cu |
 *         python3 scripts/ptx_header.py la_kernels > src/la/cuda/ptx/kernels.h
 *
 * Panels   A panel of at most 32 columns is dealt out to the blocks of one launch:
 *          a thread has a row, in shared memory. All blocks meet once per column
 *          (`bar`, zero at the start), so all of them must be on the device at
 *          once: a cooperative launch, at most a block for each multiprocessor.
 *          What a block tells the others goes through global memory, in two copies
 *          by turns: who writes a copy again has met everybody who reads it.
 * Numbers  the pivot is the largest element, the first one of equals, as LAPACK's;
 *          sums are added in a fixed order, so results repeat.
 */
enum { W = 32, STRIDE = W + 1, MAX_WARPS = 32 };

/* All blocks wait for each other, the n-th time (from 1). */
__device__ static void meet(unsigned *bar, unsigned n)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned seen;

        atomicAdd(bar, 1u);
        do
            asm volatile("ld.volatile.global.u32 %0, [%1];"
                         : "=r"(seen)
                         : "l"(__cvta_generic_to_global(bar))
                         : "memory");
        while (seen < n * gridDim.x);
        __threadfence();
    }
    __syncthreads();
}

template <typename T> struct best {
    T value; /* < 0: none */
    int row;
};

template <typename T> __device__ static best<T> better(best<T> a, best<T> b)
{
    return b.value > a.value || (b.value == a.value && b.row < a.row) ? b : a;
}

template <typename T> __device__ static best<T> best_of_warp(best<T> b)
{
    for (int d = 16; d > 0; d /= 2) {
        best<T> other;

        other.value = __shfl_xor_sync(~0u, b.value, d);
        other.row = __shfl_xor_sync(~0u, b.row, d);
        b = better(b, other);
    }
    return b;
}

/*
 * P A = L U for the m x w panel at a. ipiv[j] = row0 + (row of pivot j) + 1; *info:
 * col0 + the first column (from 1) without a pivot, unless it is set already. tell:
 * 2 x (gridDim + 1) x (W + 2) elements.
 */
template <typename T>
__device__ static void lu_panel(T *a, long long ld, int m, int w, int row0, int col0, int *ipiv,
                                int *info, T *tell, unsigned *bar)
{
    extern __shared__ double shared[];
    T *row = (T *)shared + threadIdx.x * STRIDE;
    T *prow = (T *)shared + blockDim.x * STRIDE, *drow = prow + W;
    __shared__ T warp_value[MAX_WARPS];
    __shared__ int warp_row[MAX_WARPS];
    __shared__ int pivot;
    const int r = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32,
              warp = threadIdx.x / 32, nwarps = blockDim.x / 32;
    const int none = 0x7fffffff, share = W + 2;

#pragma unroll 4
    for (int c = 0; c < W; c++)
        row[c] = r < m && c < w ? a[r + c * ld] : (T)0;
#pragma unroll 1
    for (int j = 0; j < w; j++) {
        T *here = tell + (j & 1) * (long long)(gridDim.x + 1) * share;
        best<T> b;

        b.value = r >= j && r < m ? fabs(row[j]) : (T)-1;
        b.row = r >= j && r < m ? r : none;
        if (!(b.value >= 0)) { /* a NaN is no pivot */
            b.value = -1;
            b.row = none;
        }
        b = best_of_warp(b);
        if (lane == 0) {
            warp_value[warp] = b.value;
            warp_row[warp] = b.row;
        }
        __syncthreads();
        if (warp == 0) {
            T *mine = here + blockIdx.x * share;

            b.value = lane < nwarps ? warp_value[lane] : (T)-1;
            b.row = lane < nwarps ? warp_row[lane] : none;
            b = best_of_warp(b);
            if (b.row != none)
                mine[lane] = ((T *)shared)[(b.row - blockIdx.x * blockDim.x) * STRIDE + lane];
            if (lane == 0) {
                mine[W] = b.value;
                mine[W + 1] = (T)b.row;
            }
        } else if (warp == 1 && blockIdx.x == 0) {
            here[gridDim.x * share + lane] =
                ((T *)shared)[j * STRIDE + lane]; /* row j is this block's */
        }
        meet(bar, j + 1);
        if (warp == 0) {
            best<T> win;
            int owner = -1;

            win.value = -1;
            win.row = none;
            for (int k = lane; k < gridDim.x; k += 32) {
                best<T> o;

                o.value = here[k * share + W];
                o.row = o.value >= 0 ? (int)here[k * share + W + 1] : none;
                win = better(win, o);
            }
            win = best_of_warp(win);
            if (win.row != none)
                owner = win.row / blockDim.x;
            drow[lane] = here[gridDim.x * share + lane];
            prow[lane] = owner < 0 ? drow[lane] : here[owner * share + lane];
            if (lane == 0)
                pivot = owner < 0 ? j : win.row;
        }
        __syncthreads();
        if (pivot != j && r == pivot)
#pragma unroll 1
            for (int c = 0; c < w; c++)
                row[c] = drow[c];
        if (r == j)
#pragma unroll 1
            for (int c = 0; c < w; c++)
                row[c] = prow[c];
        if (r > j && r < m && prow[j] != (T)0) {
            const T l = row[j] / prow[j];

            row[j] = l;
#pragma unroll 4
            for (int c = j + 1; c < w; c++)
                row[c] -= l * prow[c];
        }
        if (r == 0) {
            ipiv[j] = row0 + pivot + 1;
            if (!(prow[j] != (T)0) && *info == 0)
                *info = col0 + j + 1;
        }
        __syncthreads();
    }
#pragma unroll 1
    for (int c = 0; c < w && r < m; c++)
        a[r + c * ld] = row[c];
}

/*
 * Q R = A for the m x w panel at a, as LAPACK's geqrf leaves it; v (m x w) gets the
 * reflectors with their zeros and ones, t (w x w) the factor with Q = I - V T V^T.
 * tell: 2 x (gridDim + 1) x W elements.
 */
template <typename T>
__device__ static void qr_panel(T *a, long long ld, int m, int w, T *v, long long ldv, T *t,
                                int ldt, T *tell, unsigned *bar)
{
    extern __shared__ double shared[];
    T *all = (T *)shared, *row = all + threadIdx.x * STRIDE;
    T *part = all + blockDim.x * STRIDE; /* MAX_WARPS x W */
    T *sum = part + MAX_WARPS * W, *drow = sum + W, *upd = drow + W;
    T *tri = upd + W; /* W x STRIDE, of block 0 */
    __shared__ T tau, scale, beta;
    const int r = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32,
              warp = threadIdx.x / 32, nwarps = blockDim.x / 32;

#pragma unroll 4
    for (int c = 0; c < W; c++)
        row[c] = r < m && c < w ? a[r + c * ld] : (T)0;
    for (int k = threadIdx.x; k < W * STRIDE; k += blockDim.x)
        tri[k] = 0;
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j < w; j++) {
        T *here = tell + (j & 1) * (long long)(gridDim.x + 1) * W;
        T s = 0;

        /* Column `lane` times column j over the rows of this warp below j. */
#pragma unroll 8
        for (int k = 0; k < 32; k++) {
            const int i = warp * 32 + k;

            if ((int)(blockIdx.x * blockDim.x) + i > j)
                s += all[i * STRIDE + j] * all[i * STRIDE + lane];
        }
        part[warp * W + lane] = s;
        __syncthreads();
        if (warp == 0) {
            s = 0;
#pragma unroll 1
            for (int k = 0; k < nwarps; k++)
                s += part[k * W + lane];
            here[blockIdx.x * W + lane] = s;
        } else if (warp == 1 && blockIdx.x == 0) {
            here[gridDim.x * W + lane] = all[j * STRIDE + lane];
        }
        meet(bar, j + 1);
        s = 0;
        for (int k = warp; k < gridDim.x; k += nwarps)
            s += here[k * W + lane];
        part[warp * W + lane] = s;
        __syncthreads();
        if (warp == 0) {
            T alpha, x2;

            s = 0;
#pragma unroll 1
            for (int k = 0; k < nwarps; k++)
                s += part[k * W + lane];
            sum[lane] = s;
            drow[lane] = here[gridDim.x * W + lane];
            __syncwarp();
            alpha = drow[j];
            x2 = sum[j];
            if (lane == 0) {
                const T norm = sqrt(alpha * alpha + x2);

                beta = x2 == (T)0 ? alpha : alpha > 0 ? -norm : norm;
                tau = x2 == (T)0 ? (T)0 : (beta - alpha) / beta;
                scale = x2 == (T)0 ? (T)0 : 1 / (alpha - beta);
            }
            __syncwarp();
            upd[lane] = tau * (drow[lane] + scale * sum[lane]);
            if (blockIdx.x == 0) { /* T(0:j, j) = -tau T(0:j, 0:j) V^T v */
                T z = 0;

#pragma unroll 1
                for (int k = lane; k < j; k++)
                    z += tri[lane * STRIDE + k] * (drow[k] + scale * sum[k]);
                tri[lane * STRIDE + j] = lane < j ? -tau * z : lane == j ? tau : (T)0;
            }
        }
        __syncthreads();
        if (r == j) {
            row[j] = beta;
            for (int c = j + 1; c < w; c++)
                row[c] -= upd[c];
        } else if (r > j) {
            const T x = row[j] * scale;

            row[j] = x;
#pragma unroll 4
            for (int c = j + 1; c < w; c++)
                row[c] -= x * upd[c];
        }
        __syncthreads();
    }
#pragma unroll 1
    for (int c = 0; c < w && r < m; c++) {
        a[r + c * ld] = row[c];
        v[r + c * ldv] = r > c ? row[c] : r == c ? (T)1 : (T)0;
    }
    if (blockIdx.x == 0)
        for (int k = threadIdx.x; k < w * w; k += blockDim.x)
            t[k % w + (k / w) * (long long)ldt] = tri[(k % w) * STRIDE + k / w];
}

/* Rows i and ipiv[i] - 1 - row0 of the n columns at a change places, i = 0 .. nk - 1,
 * one after the other, or back from the last one: every row that moves is followed to
 * its end first. Shared memory: 5 nk ints. */
template <typename T>
__device__ static void swap_rows(T *a, long long ld, int n, const int *ipiv, int nk, int row0,
                                 int is_backward)
{
    extern __shared__ double shared[];
    int *p = (int *)shared, *from = p + nk, *to = from + 2 * nk;
    const int per = (n + gridDim.x - 1) / gridDim.x;
    const int first = blockIdx.x * per, last = first + per < n ? first + per : n;

    for (int i = threadIdx.x; i < nk; i += blockDim.x)
        p[i] = ipiv[i] - 1 - row0;
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * nk; i += blockDim.x) {
        const int start = i < nk ? i : p[i - nk];
        int at = start;

#pragma unroll 4
        for (int q = 0; q < nk; q++) {
            const int k = is_backward ? nk - 1 - q : q;

            at = at == k ? p[k] : at == p[k] ? k : at;
        }
        from[i] = (i >= nk && start < nk) || at == start ? -1 : start;
        to[i] = at;
    }
    __syncthreads();
    for (int c = first; c < last; c++) {
        T kept[8];
        int count = 0;

        for (int i = threadIdx.x; i < 2 * nk; i += blockDim.x, count++)
            if (from[i] >= 0)
                kept[count] = a[from[i] + c * ld];
        __syncthreads();
        count = 0;
        for (int i = threadIdx.x; i < 2 * nk; i += blockDim.x, count++)
            if (from[i] >= 0)
                a[to[i] + c * ld] = kept[count];
        __syncthreads();
    }
}

/* B = L^-1 B, L unit lower triangular of order w <= 32: a warp for each column. */
template <typename T>
__device__ static void solve_unit(const T *l, long long ldl, T *b, long long ldb, int w, int n)
{
    __shared__ T low[W * STRIDE];
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;

    for (int k = threadIdx.x; k < w * w; k += blockDim.x)
        low[(k % w) * STRIDE + k / w] = l[k % w + (k / w) * ldl];
    __syncthreads();
    for (int c = blockIdx.x * warps + threadIdx.x / 32; c < n; c += gridDim.x * warps) {
        T x = lane < w ? b[lane + c * ldb] : (T)0;

#pragma unroll 4
        for (int j = 0; j < w; j++) {
            const T y = __shfl_sync(~0u, x, j);

            if (lane > j && lane < w)
                x -= low[lane * STRIDE + j] * y;
        }
        if (lane < w)
            b[lane + c * ldb] = x;
    }
}

/* Order of the blocks that are inverted one by one, and the widest panel. */
enum { INVERT = 64, TAKE_N = 1024, TAKE_THREADS = 256, TAKE_COLUMNS = 8 };

/*
 * For the panel l of w columns (a multiple of INVERT, at most TAKE_N): block b < w /
 * INVERT of the launch writes the inverse of diagonal block b of L to x, and zeros
 * above it; the last one writes where rows go: row from[i] to to[i], i < 2 w; from[i]
 * < 0 says that another i has it. What is below the diagonal blocks of x stays.
 */
template <typename T>
__device__ static void lu_invert(const T *l, long long ldl, int w, T *x, const int *ipiv, int row0,
                                 int *from, int *to)
{
    __shared__ T low[INVERT * (INVERT + 1)];
    __shared__ int piv[TAKE_N];
    const int b = blockIdx.x, k0 = b * INVERT, lane = threadIdx.x % 32;

    if (k0 >= w) {
        for (int k = threadIdx.x; k < w; k += blockDim.x)
            piv[k] = ipiv[k] - 1 - row0;
        __syncthreads();
        for (int i = threadIdx.x; i < 2 * w; i += blockDim.x) {
            const int start = i < w ? i : piv[i - w];
            int at = start;

#pragma unroll 4
            for (int k = 0; k < w; k++)
                at = at == k ? piv[k] : at == piv[k] ? k : at;
            from[i] = i >= w && start < w ? -1 : start;
            to[i] = at;
        }
        return;
    }
    for (int k = threadIdx.x; k < INVERT * INVERT; k += blockDim.x)
        low[k % INVERT * (INVERT + 1) + k / INVERT] = l[k0 + k % INVERT + (k0 + k / INVERT) * ldl];
    for (int k = threadIdx.x; k < k0 * INVERT; k += blockDim.x)
        x[k % k0 + (k0 + k / k0) * (long long)w] = 0;
    __syncthreads();
    for (int c = threadIdx.x / 32; c < INVERT; c += blockDim.x / 32) {
        T y0 = lane == c ? (T)1 : (T)0, y1 = lane + 32 == c ? (T)1 : (T)0;

#pragma unroll 4
        for (int k = c; k < INVERT; k++) {
            const T yk = __shfl_sync(~0u, k < 32 ? y0 : y1, k % 32);

            if (lane > k)
                y0 -= low[lane * (INVERT + 1) + k] * yk;
            if (lane + 32 > k)
                y1 -= low[(lane + 32) * (INVERT + 1) + k] * yk;
        }
        x[k0 + lane + (k0 + c) * (long long)w] = y0;
        x[k0 + lane + 32 + (k0 + c) * (long long)w] = y1;
    }
}

/* Rows of the n columns at a change places as from and to say; those that come into the
 * first w rows go to t (w x n) instead. A block has a few columns. */
template <typename T>
__device__ static void take_rows(T *a, long long ld, int n, int w, const int *from, const int *to,
                                 T *t)
{
    enum { EACH = 2 * TAKE_N / TAKE_THREADS };
    const int first = blockIdx.x * TAKE_COLUMNS;
    T kept[EACH][TAKE_COLUMNS];

#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = threadIdx.x + e * TAKE_THREADS;
        const int row = i < 2 * w ? from[i] : -1;

#pragma unroll
        for (int c = 0; c < TAKE_COLUMNS; c++)
            kept[e][c] = row >= 0 && first + c < n ? a[row + (first + c) * ld] : (T)0;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = threadIdx.x + e * TAKE_THREADS;
        const int row = i < 2 * w ? from[i] : -1, at = i < 2 * w ? to[i] : 0;

#pragma unroll
        for (int c = 0; c < TAKE_COLUMNS; c++)
            if (row >= 0 && first + c < n) {
                if (at < w)
                    t[at + (first + c) * (long long)w] = kept[e][c];
                else
                    a[at + (first + c) * ld] = kept[e][c];
            }
    }
}

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

/* --- for complex types as well --------------------------------------------------- */

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

__device__ static float times(float x, float y)
{
    return x * y;
}

__device__ static double times(double x, double y)
{
    return x * y;
}

__device__ static float2 times(float2 x, float2 y)
{
    return make_float2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

__device__ static double2 times(double2 x, double2 y)
{
    return make_double2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

__device__ static void set(float *x, float to)
{
    *x = to;
}

__device__ static void set(double *x, double to)
{
    *x = to;
}

__device__ static void set(float2 *x, float to)
{
    *x = make_float2(to, 0);
}

__device__ static void set(double2 *x, double to)
{
    *x = make_double2(to, 0);
}

/* v (m x n) becomes the reflectors below the diagonal of a, with zeros and ones. */
template <typename T>
__device__ static void reflectors(const T *a, long long lda, int m, int n, T *v, long long ldv)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)m * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % m, j = e / m;

        if (i > j)
            v[i + j * ldv] = a[i + j * lda];
        else
            set(&v[i + j * ldv], i == j);
    }
}

/* Column j of g (n x n) is multiplied by tau[j]; t becomes the diagonal tau. */
template <typename T>
__device__ static void scale_columns(T *g, int n, const T *tau, T *t, long long ldt)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)n * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % n, j = e / n;

        g[e] = times(g[e], tau[j]);
        if (i == j)
            t[i + j * ldt] = tau[j];
        else
            set(&t[i + j * ldt], 0);
    }
}

/* *found: the first row (from 1), row0 + j, where the diagonal of the n columns at a
 * has a zero, if there is one before *found; 0: none yet. One block. */
template <typename T>
__device__ static void zeros(const T *a, long long ld, int n, int row0, int *found)
{
    __shared__ int first;

    if (threadIdx.x == 0)
        first = 0x7fffffff;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (is_zero(a[row0 + j + j * ld]))
            atomicMin(&first, row0 + j + 1);
    __syncthreads();
    if (threadIdx.x == 0 && first != 0x7fffffff && (*found == 0 || first < *found))
        *found = first;
}

__device__ static bool is_nan(float x)
{
    return x != x;
}

__device__ static bool is_nan(double x)
{
    return x != x;
}

__device__ static bool is_nan(float2 x)
{
    return is_nan(x.x);
}

__device__ static bool is_nan(double2 x)
{
    return is_nan(x.x);
}

/* *info, if it is 0: the first row (from 1) where the diagonal of a, of order n, has a NaN.
 * One block. */
template <typename T> __device__ static void no_roots(const T *a, long long ld, int n, int *info)
{
    __shared__ int first;

    if (threadIdx.x == 0)
        first = 0x7fffffff;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (is_nan(a[j + j * ld]))
            atomicMin(&first, j + 1);
    __syncthreads();
    if (threadIdx.x == 0 && first != 0x7fffffff && *info == 0)
        *info = first;
}

/* x (m x n): columns `column` and so on of the identity. */
template <typename T> __device__ static void identity(T *x, long long ld, int m, int n, int column)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)m * n;
         e += (long long)gridDim.x * blockDim.x)
        set(&x[e % m + e / m * ld], e % m == column + e / m);
}

/* x = (re, im) x, or 0; without its imaginary part if is_real. */
__device__ static void scale(float *x, double re, double, bool)
{
    *x = re == 0 ? 0 : (float)re * *x;
}

__device__ static void scale(double *x, double re, double, bool)
{
    *x = re == 0 ? 0 : re * *x;
}

__device__ static void scale(float2 *x, double re, double im, bool is_real)
{
    const float2 y = times(make_float2((float)re, (float)im), *x);

    *x = re == 0 && im == 0 ? make_float2(0, 0) : make_float2(y.x, is_real ? 0 : y.y);
}

__device__ static void scale(double2 *x, double re, double im, bool is_real)
{
    const double2 y = times(make_double2(re, im), *x);

    *x = re == 0 && im == 0 ? make_double2(0, 0) : make_double2(y.x, is_real ? 0 : y.y);
}

/* The triangle of c (n x n) is scaled; its diagonal becomes real if is_real. */
template <typename T>
__device__ static void scale_triangle(T *c, long long ld, int n, int is_upper, double re, double im,
                                      int is_real)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)n * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % n, j = e / n;

        if (is_upper ? i <= j : i >= j)
            scale(&c[i + j * ld], re, im, is_real && i == j);
    }
}

/* The triangle of x (n x n) goes to a, without the diagonal if is_unit. */
template <typename T>
__device__ static void copy_triangle(const T *x, long long ldx, int n, T *a, long long lda,
                                     int is_upper, int is_unit)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)n * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % n, j = e / n;

        if (i == j ? !is_unit : is_upper ? i < j : i > j)
            a[i + j * lda] = x[i + j * ldx];
    }
}

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

/* Columns, a block for each: rows in another order to t, or back from there. */
template <typename T>
__device__ static void order_rows(T *a, long long ld, int m, int n, const int *from, T *t,
                                  int is_back)
{
    for (int j = blockIdx.x; j < n; j += gridDim.x) {
        T *column = a + j * ld, *other = t + (long long)j * m;

        for (int i = threadIdx.x; i < m; i += blockDim.x)
            if (is_back)
                column[i] = other[i];
            else
                other[i] = column[from[i]];
    }
}

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
