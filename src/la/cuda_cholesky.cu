/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_cholesky: panels of Cholesky, 64 columns a launch, for devices of compute
 * capability 9.0 and later. Two headers are made from it, as a device compiles what it
 * gets:
 *
 *     nvcc -ptx -arch=compute_90 -o - src/la/cuda_cholesky.cu |
 *         python3 scripts/ptx_header.py la_cholesky_d 7.8 > src/la/cuda_cholesky_d.h
 *     nvcc -ptx -arch=compute_90 -DLA_FLOAT -o - src/la/cuda_cholesky.cu |
 *         python3 scripts/ptx_header.py la_cholesky_s 7.8 > src/la/cuda_cholesky_s.h
 *
 * Why      libraries make a panel of dozens of small launches, and beside products
 *          that hold the device each of them waits for its turn.
 * Blocks   have the 64 rows of the diagonal block and 192 rows below it. Each does all
 *          there is to do for them: what the columns on the left take away, the factor
 *          of the diagonal block (every block for itself, as that is quicker than to
 *          ask another one), the solve. So blocks never wait for each other.
 * Factor   of the diagonal block: others may still read the block, so it goes to
 *          `diag`, from where la_chol_put brings all of a panel home. Nobody needs it
 *          before: the rows on its right are below it.
 */
enum {
    NB = 64,
    ROWS = 192,
    THREADS = NB + ROWS,
    SLAB = 16,         /* columns on the left, at a time */
    STAGES = 3,        /* slabs on their way */
    LDS = THREADS + 4, /* of a slab: no two of a warp's quarter share a bank */
    LDX = ROWS + 2,    /* of the solution */
    LDL = NB + 2       /* of the factor */
};

template <typename T> struct common {
    union {
        T slab[STAGES][SLAB][LDS];
        T x[NB][LDX];
    };
    T l[NB][LDL]; /* a column each */
    T inverse[NB];
};

/* One element from global to shared memory, without waiting; 0 instead. */
template <typename T>
__device__ static void fetch(T *to, const T *from, bool is_there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at),
                 "l"(from), "n"(sizeof(T)),
                 "r"(is_there ? (unsigned)sizeof(T) : 0u)
                 : "memory");
}

/*
 * acc += the product of 32 rows with the transposed first 64, both of a slab. A lane
 * has of 16 x 8 elements those in rows g and g + 8, columns 2 q and 2 q + 1.
 */
__device__ static void product(double (&acc)[2][8][4],
                               const double (*slab)[LDS], int row, int g, int q)
{
    double a[2][8];

#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            a[t][i] = slab[q + i / 2 * 4][row + 16 * t + g + i % 2 * 8];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        double b[4];

#pragma unroll
        for (int i = 0; i < 4; i++)
            b[i] = slab[q + 4 * i][8 * j + g];
#pragma unroll
        for (int t = 0; t < 2; t++)
            asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
                "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
                : "+d"(acc[t][j][0]), "+d"(acc[t][j][1]), "+d"(acc[t][j][2]),
                  "+d"(acc[t][j][3])
                : "d"(a[t][0]), "d"(a[t][1]), "d"(a[t][2]), "d"(a[t][3]),
                  "d"(a[t][4]), "d"(a[t][5]), "d"(a[t][6]), "d"(a[t][7]),
                  "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
    }
}

__device__ static void product(float (&acc)[2][8][4], const float (*slab)[LDS],
                               int row, int g, int q)
{
#pragma unroll 4
    for (int k = 0; k < SLAB; k++) {
        float a[4];

#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = slab[k][row + 8 * i + g];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float2 b = *(const float2 *)&slab[k][8 * j + 2 * q];

#pragma unroll
            for (int t = 0; t < 2; t++) {
                acc[t][j][0] += a[2 * t] * b.x;
                acc[t][j][1] += a[2 * t] * b.y;
                acc[t][j][2] += a[2 * t + 1] * b.x;
                acc[t][j][3] += a[2 * t + 1] * b.y;
            }
        }
    }
}

/* One row of a slab of columns for each thread; an empty one if there is none. */
template <typename T>
__device__ static void fetch_slab(common<T> *s, const T *row, long long ld,
                                  int slab, int nslabs, bool is_row)
{
    if (slab < nslabs) {
        const T *from = row + (long long)slab * SLAB * ld;
        T *to = &s->slab[slab % STAGES][0][threadIdx.x];

#pragma unroll
        for (int k = 0; k < SLAB; k++)
            fetch(to + k * LDS, is_row ? from + k * ld : from, is_row);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/*
 * The lower triangle in s->l becomes L. A thread has 4 x 4 elements, 16 apart. Columns
 * are left as they are on their turn, and scaled in the end: what they take away from
 * the others is a_ij a_kj / a_jj. Returns the first column whose pivot is not
 * positive, or NB.
 */
template <typename T> __device__ static int factor(common<T> *s)
{
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    int bad = NB;
    T v[4][4];

#pragma unroll
    for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++)
            v[a][b] = s->l[tx + 16 * b][ty + 16 * a];
    __syncthreads();
#pragma unroll
    for (int now = 0; now < 4; now++)
#pragma unroll 1
        for (int c = 0; c < 16; c++) {
            const int j = 16 * now + c;
            T d, inverse;

            if (tx == c)
#pragma unroll
                for (int a = now; a < 4; a++)
                    s->l[j][ty + 16 * a] = v[a][now];
            __syncthreads();
            d = s->l[j][j];
            if (!(d > (T)0) && bad == NB)
                bad = j;
            inverse = bad == NB ? (T)1 / d : (T)0;
#pragma unroll
            for (int a = now; a < 4; a++) {
                const T mine = s->l[j][ty + 16 * a] * inverse;

#pragma unroll
                for (int b = now; b < 4; b++)
                    v[a][b] -= mine * s->l[j][tx + 16 * b];
            }
        }
    __syncthreads();
    if (threadIdx.x < NB) {
        const T d = s->l[threadIdx.x][threadIdx.x];

        s->inverse[threadIdx.x] = (T)1 / sqrt(d);
    }
    __syncthreads();
#pragma unroll
    for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const int i = ty + 16 * a, j = tx + 16 * b;

            if (i > j)
                s->l[j][i] *= s->inverse[j];
        }
    if (threadIdx.x < NB)
        s->l[threadIdx.x][threadIdx.x] = sqrt(s->l[threadIdx.x][threadIdx.x]);
    __syncthreads();
    return bad;
}

/* X = X L^-T, a row of s->x for each of the first threads; to global memory too. */
template <typename T>
__device__ static void solve(common<T> *s, T *row, long long ld, int w,
                             bool is_row)
{
    const int me = threadIdx.x;

#pragma unroll 1
    for (int j = 0; j < NB; j += 16) {
        T x[16];

#pragma unroll
        for (int k = 0; k < 16; k++)
            x[k] = s->x[j + k][me];
#pragma unroll 2
        for (int c = 0; c < j; c++) {
            const T y = s->x[c][me];

#pragma unroll
            for (int k = 0; k < 16; k++)
                x[k] -= y * s->l[c][j + k];
        }
#pragma unroll
        for (int c = 0; c < 16; c++) {
            x[c] *= s->inverse[j + c];
#pragma unroll
            for (int k = c + 1; k < 16; k++)
                x[k] -= x[c] * s->l[j + c][j + k];
        }
#pragma unroll
        for (int k = 0; k < 16; k++) {
            s->x[j + k][me] = x[k];
            if (is_row && j + k < w)
                row[(j + k) * ld] = x[k];
        }
    }
}

/*
 * Columns c0 .. c0 + w - 1 of a panel of m rows, w <= 64, whose columns on the left
 * are done; c0 is a multiple of 64. *info: the first pivot of the panel that is not
 * positive, from 1, unless it is there already.
 */
template <typename T>
__device__ static void step(T *a, long long ld, int m, int c0, int w, T *diag,
                            int *info)
{
    extern __shared__ __align__(16) char memory[];
    common<T> *s = (common<T> *)memory;
    const int me = threadIdx.x, warp = me / 32, g = me % 32 / 4, q = me % 4;
    const int below = c0 + w + (int)blockIdx.x * ROWS;
    const int row = me < NB ? c0 + me : below + me - NB;
    const bool is_row = me < NB ? me < w : row < m;
    const int nslabs = c0 / SLAB;
    T acc[2][8][4] = {};
    int bad;

    for (int i = 0; i < STAGES - 1; i++)
        fetch_slab(s, a + (is_row ? row : 0), ld, i, nslabs, is_row);
    for (int i = 0; i < nslabs; i++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch_slab(s, a + (is_row ? row : 0), ld, i + STAGES - 1, nslabs,
                   is_row);
        product(acc, s->slab[i % STAGES], 32 * warp, g, q);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int r = 32 * warp + 16 * t + g + i / 2 * 8;
                const int c = 8 * j + 2 * q + i % 2;
                const int at = r < NB ? c0 + r : below + r - NB;
                const bool is_mine =
                    c < w && (r < NB ? r < w && r >= c : at < m);
                T v = r == c ? (T)1 : (T)0;

                if (is_mine)
                    v = a[at + (long long)(c0 + c) * ld] - acc[t][j][i];
                if (r < NB)
                    s->l[c][r] = v;
                else
                    s->x[c][r - NB] = v;
            }
    __syncthreads();
    bad = factor(s);
    if (blockIdx.x == 0) {
        for (int i = me; i < NB * NB; i += THREADS)
            diag[i] = s->l[i / NB][i % NB];
        if (me == 0 && bad < w && *info == 0)
            *info = c0 + bad + 1;
    }
    if (me < ROWS)
        solve(s, a + below + me + (long long)c0 * ld, ld, w, below + me < m);
}

/* The factors of the diagonal blocks of a panel, one for each block: to their places. */
template <typename T>
__device__ static void put(T *a, long long ld, int n, const T *diag)
{
    const int j = (int)blockIdx.x * NB, w = n - j < NB ? n - j : NB;

    for (int i = threadIdx.x; i < NB * NB; i += blockDim.x)
        if (i % NB >= i / NB && i % NB < w)
            a[j + i % NB + (long long)(j + i / NB) * ld] =
                diag[(long long)j * NB + i];
}

#ifdef LA_FLOAT
#define NAME(x) x##_s
typedef float real;
#else
#define NAME(x) x##_d
typedef double real;
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    NAME(la_chol)(real *a, long long ld, int m, int c0, int w, real *diag,
                  int *info)
{
    step(a, ld, m, c0, w, diag, info);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    NAME(la_chol_put)(real *a, long long ld, int n, const real *diag)
{
    put(a, ld, n, diag);
}
