/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows: rows that change places, and what makes the updates of LU cheap.
 */
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
