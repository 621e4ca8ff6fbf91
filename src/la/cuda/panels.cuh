/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * panels: narrow panels of LU and QR, each one launch.
 *
 * Panels   A panel of at most 32 columns is dealt out to the blocks of one launch:
 *          a thread has a row, in shared memory. All blocks meet once per column
 *          (`bar`, zero at the start), so all of them must be on the device at
 *          once: a cooperative launch, at most a block for each multiprocessor.
 *          What a block tells the others goes through global memory, in two copies
 *          by turns: between two writes of a copy the blocks meet, and by then all
 *          have read it.
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
