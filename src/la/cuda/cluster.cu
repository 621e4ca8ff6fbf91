/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: panels of LU by one cluster of multiprocessors, for devices that have
 * clusters (compute capability 9.0 and later). `make ptx` makes two headers
 * from it, one for each type, as a device compiles what it gets.
 *
 * Why      a panel is short of latency, not of arithmetic. The blocks of a cluster
 *          meet in a fraction of a microsecond and write into each other's shared
 *          memory, and the whole panel is one launch: beside products that hold all
 *          multiprocessors it waits once for 16 of them, not before each column.
 * Rows     are dealt out by 32 to the 16 blocks in turns, so that all have work to
 *          the end. A thread has R of them, W columns of each in registers.
 * Steps    W columns at a time: pivots one by one, then rows of the other columns
 *          change places, then U on the right and its update. In the end the same for
 *          columns beside the panel, but for the update, which is a product.
 * Words    between blocks: cluster_words.cuh.
 * Numbers  the pivot is the largest element, the first one of equals, as LAPACK's.
 */
#include <cooperative_groups.h>

#include "la/cuda/cluster_words.cuh"

namespace cg = cooperative_groups;

/* Where each row that moves ends: the exchanges i <-> piv[i] one after the other. */
template <typename T, int W> __device__ static void follow(common<T, W> *s, int w)
{
    const int i = threadIdx.x;

    if (i < 2 * w) {
        const int start = i < w ? i : s->piv[i - w];
        int at = start;

#pragma unroll
        for (int k = 0; k < W; k++) {
            const int p = k < w ? s->piv[k] : k;

            at = at == k ? p : at == p ? k : at;
        }
        s->from[i] = (i >= w && start < w) || at == start ? -1 : start;
        s->to[i] = at;
    }
}

/* How a thread sees its rows: `first` is that of slot 0. */
struct deal {
    int first, me, lane, warp;
};

/*
 * The pivot of a column: all blocks agree on a row. x[][0] is the column; the words
 * that were said stay until the next column but one. Returns the row.
 */
template <typename T, int R, int W>
__device__ static int find_pivot(common<T, W> *s, const struct deal *d, const T (&x)[R][W],
                                 int turn, int m)
{
    enum { STEP = WARPS * BLOCKS * 32, NONE = 0x7fffffff };
    const int parity = turn & 1;
    best<key_for<T>> b = {0, NONE};
    int slot = 0, candidate;

    /* The row on turn belongs to one warp of one block. */
    if (turn / 32 % BLOCKS == d->me && turn / 32 / BLOCKS % WARPS == d->warp) {
#pragma unroll
        for (int r = 0; r < R; r++)
            if (d->first + r * STEP == turn) {
                s->mine[1].inverse = reciprocal(x[r][0]);
#pragma unroll
                for (int k = 0; k < W; k++)
                    s->mine[1].row[k] = x[r][k];
            }
        __syncwarp();
        tell(s, 1, BLOCKS, parity);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int row = d->first + r * STEP;
        const key_for<T> key = key_of(x[r][0]);

        if (row >= turn && row < m && (b.row == NONE || key > b.key)) {
            b.key = key;
            b.row = row;
            slot = r;
        }
    }
    candidate = b.row;
    b = best_of_warp(b);
    if (d->lane == 0) {
        s->warp_key[parity][d->warp] = b.key;
        s->warp_row[parity][d->warp] = b.row;
    }
    if (threadIdx.x == 0)
        expect(s, parity);
    __syncthreads();
    b.key = d->lane < WARPS ? s->warp_key[parity][d->lane] : 0;
    b.row = d->lane < WARPS ? s->warp_row[parity][d->lane] : NONE;
    b = best_of_warp(b);
    const bool is_mine = b.row == candidate && b.row != NONE;

    if (__any_sync(~0u, is_mine) || (b.row == NONE && d->warp == 0)) {
        if (is_mine)
#pragma unroll
            for (int r = 0; r < R; r++)
                if (r == slot) {
                    s->mine[0].inverse = reciprocal(x[r][0]);
#pragma unroll
                    for (int k = 0; k < W; k++)
                        s->mine[0].row[k] = x[r][k];
                }
        if (d->lane == 0) {
            s->mine[0].key = b.row == NONE ? 0 : b.key;
            s->mine[0].at = b.row;
        }
        __syncwarp();
        tell(s, 0, d->me, parity);
    }
    await(s, parity, turn >> 1 & 1);
    b.key = d->lane < BLOCKS ? (key_for<T>)s->said[parity][d->lane].key : 0;
    b.row = d->lane < BLOCKS ? (int)s->said[parity][d->lane].at : NONE;
    b = best_of_warp(b);
    return b.key == 0 ? turn : b.row;
}

/*
 * Columns j .. j + w - 1, which are in x: one by one. Registers cannot be counted
 * through, so the columns go round: the one on turn is x[][0], what it leaves
 * becomes x[][W - 1]. After W columns all are back in their places.
 */
template <typename T, int R, int W>
__device__ static void factor(common<T, W> *s, const struct deal *d, T (&x)[R][W], int j, int w,
                              int m, int row0, int col0, int *ipiv, int *info)
{
    enum { STEP = WARPS * BLOCKS * 32 };

#pragma unroll 1
    for (int c = 0; c < w; c++) {
        const int turn = j + c, parity = turn & 1;
        const int pivot = find_pivot(s, d, x, turn, m);
        const word<T, W> *was = &s->said[parity][BLOCKS];
        const word<T, W> *win = pivot == turn ? was : &s->said[parity][pivot / 32 % BLOCKS];
        const T p = win->row[0];
        const T inverse = win->inverse, size = p < 0 ? -p : p;
        /* Numbers whose inverse is a number, too. */
        const bool is_plain = size >= (T)(sizeof(T) == 8 ? 0x1p-1021 : 0x1p-125) &&
                              size <= (T)(sizeof(T) == 8 ? 0x1p1021 : 0x1p125);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int row = d->first + r * STEP;
            T l = 0, last;

            if (row - d->lane >= m)
                break; /* nobody of this warp has a row */

            if (row == pivot || row == turn) {
                const word<T, W> *now = row == turn ? win : was;

#pragma unroll
                for (int k = 0; k < W; k++)
                    x[r][k] = now->row[k];
            }
            last = x[r][0];
            if (row > turn && p != (T)0) {
                l = is_plain ? last * inverse : last / p;
                last = l;
            }
            /* Columns that were on turn before only move on. */
#pragma unroll
            for (int k = 0; k < W; k += quad<T>::N) {
                const quad<T> u = *(const quad<T> *)&win->row[k];

#pragma unroll
                for (int i = k == 0; i < quad<T>::N; i++)
                    x[r][k + i - 1] = x[r][k + i] - l * (k + i < W - c ? u.v[i] : (T)0);
            }
            x[r][W - 1] = last;
        }
        if (threadIdx.x < W)
            s->lu[c][(threadIdx.x + c) % W] = win->row[threadIdx.x];
        if (threadIdx.x == 0) {
            s->piv[c] = pivot - j;
            if (d->me == 0) {
                ipiv[turn] = row0 + pivot + 1;
                if (!(p != (T)0) && *info == 0)
                    *info = col0 + turn + 1;
            }
        }
    }
#pragma unroll 1
    for (int c = w; c < W; c++)
#pragma unroll
        for (int r = 0; r < R; r++) {
            const T front = x[r][0];

#pragma unroll
            for (int k = 1; k < W; k++)
                x[r][k - 1] = x[r][k];
            x[r][W - 1] = front;
        }
}

/* Rows of the other columns of the panel change places: a column for each block in
 * turn, a thread for each row of it. */
template <typename T, int W>
__device__ static void swap_others(common<T, W> *s, int me, T *a, long long ld, int j, int w, int n)
{
    enum { SIDES = THREADS / (2 * W) };
    const int side = threadIdx.x / (2 * W), i = threadIdx.x % (2 * W);

    __syncthreads();
    follow(s, w);
    __syncthreads();
    for (int q = 0; q * SIDES * BLOCKS < n - w; q++) {
        const int o = (q * SIDES + side) * BLOCKS + me;
        const bool moves = o < n - w && i < 2 * w && s->from[i] >= 0;
        T *col = a + j + (o < j ? o : o + w) * ld;
        T kept = 0;

        if (moves)
            kept = col[s->from[i]];
        __syncthreads();
        if (moves)
            col[s->to[i]] = kept;
    }
}

/* U = L^-1 A for the `right` columns at a, in every block for itself: W threads for
 * each. */
template <typename T, int W>
__device__ static void solve_right(common<T, W> *s, const T *a, long long ld, int w, int right)
{
    const int i = threadIdx.x % W;

    for (int q0 = 0; q0 < right; q0 += THREADS / W) {
        const int q = q0 + threadIdx.x / W;
        T y = i < w && q < right ? a[i + q * ld] : (T)0;

#pragma unroll 8
        for (int k = 0; k < W; k++) {
            const T yk = __shfl_sync(~0u, y, k, W);

            if (i > k && i < w)
                y -= s->lu[i][k] * yk;
        }
        if (q < right)
            s->u[q][i] = y;
    }
    __syncthreads();
}

/*
 * A = A - L U for the rows of this thread from `above` on, L in x, the columns at a.
 * A few columns at once, and the next ones are on their way: memory is far away. Rows
 * and columns that are not there are those before, and not stored.
 */
template <typename T, int R, int W>
__device__ static void update_right(const common<T, W> *s, const struct deal *d, const T (&x)[R][W],
                                    T *a, long long ld, int above, int m, int right)
{
    enum { STEP = WARPS * BLOCKS * 32, Q = R == 1 ? 4 : 8 / R };
    T next[Q][R];
    int at[R];

#pragma unroll
    for (int r = 0; r < R; r++)
        at[r] = d->first + r * STEP < m ? d->first + r * STEP : m - 1;
#pragma unroll
    for (int i = 0; i < Q; i++)
#pragma unroll
        for (int r = 0; r < R; r++)
            next[i][r] = a[at[r] + (i < right ? i : right - 1) * ld];
#pragma unroll 1
    for (int q = 0; q < right; q += Q) {
        T sum[Q][R];

#pragma unroll
        for (int i = 0; i < Q; i++)
#pragma unroll
            for (int r = 0; r < R; r++) {
                const int col = q + Q + i < right ? q + Q + i : right - 1;

                sum[i][r] = next[i][r];
                next[i][r] = a[at[r] + col * ld];
            }
#pragma unroll
        for (int k = 0; k < W; k += quad<T>::N)
#pragma unroll
            for (int i = 0; i < Q; i++) {
                const quad<T> u = *(const quad<T> *)&s->u[q + i][k];

#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int n = 0; n < quad<T>::N; n++)
                        sum[i][r] -= x[r][k + n] * u.v[n];
            }
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int row = d->first + r * STEP;

            if (row >= above && row < m)
#pragma unroll
                for (int i = 0; i < Q; i++)
                    if (q + i < right)
                        a[row + (q + i) * ld] = sum[i][r];
        }
    }
}

/* For the columns beside a panel. */
template <typename T> struct beside {
    T low[MAX_N][MAX_N + 1]; /* L, row by row */
    int piv[MAX_N], from[2 * MAX_N], to[2 * MAX_N];
};

/* Rows of `count` columns change places; where they are on the right, A = L^-1 A in the
 * first w rows. A block has WARPS columns at a time. */
template <typename T>
__device__ static void lu_columns(const beside<T> *s, int me, T *a, long long ld, int w, int count,
                                  bool is_right)
{
    enum { AT_ONCE = THREADS / (2 * MAX_N), PASSES = WARPS / AT_ONCE };
    const int i = threadIdx.x % (2 * MAX_N), side = threadIdx.x / (2 * MAX_N),
              lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool moves = i < 2 * w && s->from[i] >= 0;

    for (int first = me * WARPS; first < count; first += BLOCKS * WARPS) {
        T *col = a + (first + warp) * ld;
        T kept[PASSES];

#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            const int c = first + p * AT_ONCE + side;

            if (c < count && moves)
                kept[p] = a[s->from[i] + c * ld];
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            const int c = first + p * AT_ONCE + side;

            if (c < count && moves)
                a[s->to[i] + c * ld] = kept[p];
        }
        __syncthreads();
        if (!is_right || first + warp >= count)
            continue;
        T y0 = lane < w ? col[lane] : (T)0;
        T y1 = lane + 32 < w ? col[lane + 32] : (T)0;

#pragma unroll 8
        for (int k = 0; k < w; k++) {
            const T yk = __shfl_sync(~0u, k < 32 ? y0 : y1, k % 32);

            if (lane > k && lane < w)
                y0 -= s->low[lane][k] * yk;
            if (lane + 32 > k && lane + 32 < w)
                y1 -= s->low[lane + 32][k] * yk;
        }
        if (lane < w)
            col[lane] = y0;
        if (lane + 32 < w)
            col[lane + 32] = y1;
    }
}

/* What the panel of w <= MAX_N columns at a means for those `left` and `right` of it. */
template <typename T>
__device__ static void lu_beside(beside<T> *s, int me, T *a, long long ld, int left, int w,
                                 int right, const int *ipiv, int row0)
{
    const int i = threadIdx.x;

    if (i < w)
        s->piv[i] = ipiv[i] - 1 - row0;
    for (int k = i; k < w * w; k += THREADS)
        s->low[k % w][k / w] = a[k % w + k / w * ld];
    __syncthreads();
    if (i < 2 * w) {
        const int start = i < w ? i : s->piv[i - w];
        int at = start;

#pragma unroll 8
        for (int k = 0; k < w; k++)
            at = at == k ? s->piv[k] : at == s->piv[k] ? k : at;
        s->from[i] = (i >= w && start < w) || at == start ? -1 : start;
        s->to[i] = at;
    }
    __syncthreads();
    lu_columns(s, me, a + w * ld, ld, w, right, true);
    lu_columns(s, me, a - left * ld, ld, w, left, false);
}

/*
 * P A = L U for the m x n panel at a, n <= MAX_N and n <= m; m <= BLOCKS * THREADS * R.
 * ipiv[j] = row0 + (row of pivot j) + 1; *info: col0 + the first column (from 1)
 * without a pivot, unless it is set already. `left` columns before it and `right` ones
 * behind it follow.
 */
template <typename T, int R, int W>
__device__ static void lu_cluster(T *a, long long ld, int m, int n, int row0, int col0, int *ipiv,
                                  int *info, int left, int behind)
{
    extern __shared__ double shared[];
    common<T, W> *s = (common<T, W> *)shared;
    cg::cluster_group cluster = cg::this_cluster();
    enum { STEP = WARPS * BLOCKS * 32 }; /* from one row of a thread to the next */
    struct deal d;

    d.me = cluster.block_rank();
    d.lane = threadIdx.x % 32;
    d.warp = threadIdx.x / 32;
    d.first = (d.warp * BLOCKS + d.me) * 32 + d.lane;
    if (threadIdx.x < 2)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;" ::"r"(address(&s->bar[threadIdx.x]))
                     : "memory");
    cluster.sync();
#pragma unroll 1
    for (int j = 0; j < n; j += W) {
        const int w = n - j < W ? n - j : W, right = n - j - w;
        T *diag = a + j + j * ld, *u = diag + w * ld;
        T x[R][W];

#pragma unroll
        for (int r = 0; r < R; r++) {
            const int row = d.first + r * STEP;

#pragma unroll
            for (int c = 0; c < W; c++)
                x[r][c] = row >= j && row < m && c < w ? a[row + (j + c) * ld] : (T)0;
        }
        factor(s, &d, x, j, w, m, row0, col0, ipiv, info);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int row = d.first + r * STEP;

#pragma unroll
            for (int c = 0; c < W; c++)
                if (row >= j && row < m && c < w)
                    a[row + (j + c) * ld] = x[r][c];
        }
        if (n == w)
            break;
        swap_others(s, d.me, a, ld, j, w, n);
        if (right == 0)
            break;
        cluster.sync();
        solve_right(s, u, ld, w, right);
        update_right(s, &d, x, a + (j + w) * ld, ld, j + w, m, right);
        cluster.sync(); /* all have read what U replaces */
        for (int q = d.me + BLOCKS * (threadIdx.x / W); q < right; q += BLOCKS * (THREADS / W))
            if ((int)(threadIdx.x % W) < w)
                u[threadIdx.x % W + q * ld] = s->u[q][threadIdx.x % W];
    }
    cluster.sync(); /* nobody writes into the memory of another one any more */
    if (left + behind == 0)
        return;
    if (threadIdx.x < 2)
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address(&s->bar[threadIdx.x]))
                     : "memory");
    __syncthreads();
    lu_beside((beside<T> *)shared, d.me, a, ld, left, n, behind, ipiv, row0);
}

#define LU(T, s, R, W)                                                                             \
    extern "C" __global__ __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(                        \
        THREADS) void la_lu_x##R##_##s(T *a, long long ld, int m, int n, int row0, int col0,       \
                                       int *ipiv, int *info, int left, int right)                  \
    {                                                                                              \
        lu_cluster<T, R, W>(a, ld, m, n, row0, col0, ipiv, info, left, right);                     \
    }

/* Of single precision twice as many numbers are in registers. */
#define KERNELS(T, s, times)                                                                       \
    LU(T, s, 1, 32)                                                                                \
    LU(T, s, 2, 16 * (times))                                                                      \
    LU(T, s, 4, 8 * (times))

#ifdef LA_FLOAT
KERNELS(float, s, 2)
#else
KERNELS(double, d, 1)
#endif
