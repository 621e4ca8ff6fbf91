/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cholesky: panels of Cholesky, each one launch, for devices of compute
 * capability 9.0 and later. `make ptx` makes two headers from it, one for each
 * type, as a device compiles what it gets.
 *
 * Why      libraries make a panel of dozens of small launches, and beside products
 *          that hold the device each of them waits for its turn.
 * Steps    of 64 columns. A block has the 64 rows of the diagonal block and 192 rows
 *          below it, and does all there is to do for them: what the columns on the
 *          left take away, the factor of the diagonal block (every block for itself,
 *          as that is quicker than to ask another one), the solve.
 * Meeting  all blocks meet after a step, because each needs the results of the others
 *          for the next step. A block without rows left arrives at the meeting and ends.
 *          The factor of the diagonal block is stored after the meeting, when no
 *          block reads the old values any more.
 */
enum {
    NB = 64,
    ROWS = 192,
    THREADS = NB + ROWS,
    SLAB = 16,         /* columns on the left, at a time */
    STAGES = 2,        /* slabs, one of them on its way */
    LDS = THREADS + 4, /* of a slab: no two of a warp's half share a bank */
    LDX = ROWS + 2,    /* of the solution */
    LDL = NB + 2       /* of the factor */
};

template <typename T> struct common {
    T slab[STAGES][SLAB][LDS];
    T x[NB][LDX];     /* rows below, a column each */
    T l[NB][LDL];     /* the diagonal block, too */
    T pair[2][2][NB]; /* two columns on their turn, in two copies by turns */
    T inverse[NB];
};

/* 1 / x, wrong by some units of the last place. */
__device__ static double reciprocal(double x)
{
    double y, e;

    if (!(x > 0x1p-1000 && x < 0x1p1000))
        return 1.0 / x;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}

__device__ static float reciprocal(float x)
{
    return 1.0f / x;
}

/* One element from global to shared memory, without waiting; 0 instead. */
template <typename T> __device__ static void fetch(T *to, const T *from, bool is_there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                 "n"(sizeof(T)), "r"(is_there ? (unsigned)sizeof(T) : 0u)
                 : "memory");
}

/* C += A B, 16 x 16 by 16 x 8, by a warp. */
__device__ static void multiply(double (&c)[4], const double (&a)[8], const double (&b)[4])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
        "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
          "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

/*
 * acc += the product of 32 rows with the transposed first 64, both of a slab. A lane
 * has of 16 x 8 elements those in rows g and g + 8, columns 2 q and 2 q + 1.
 */
__device__ static void product(double (&acc)[2][8][4], const double (*slab)[LDS], int row, int g,
                               int q)
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
            multiply(acc[t][j], a[t], b);
    }
}

__device__ static void product(float (&acc)[2][8][4], const float (*slab)[LDS], int row, int g,
                               int q)
{
#pragma unroll 2
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

/* n elements of a row for each thread, `step` apart there; zeros if there is no such
 * row, or only `nthere` of them. */
template <typename T>
__device__ static void fetch_row(T *to, int step, const T *from, long long ld, int n, int nthere)
{
#pragma unroll 8
    for (int k = 0; k < n; k++, to += step) {
        fetch(to, from, k < nthere);
        if (k + 1 < nthere)
            from += ld;
    }
}

/*
 * 1 / (d - e^2 / c), which is 1 / last, for the pivots of two columns. By their
 * determinant, as then nobody waits for 1 / c first; unless digits cancel in it, or it
 * is no plain number.
 */
template <typename T> __device__ static T both_inverse(T c, T e, T d, T last)
{
    const T most = (T)(sizeof(T) == 8 ? 0x1p1000 : 0x1p100);
    const T whole = c * d, det = whole - e * e;

    return det > whole * (T)0x1p-10 && det > 1 / most && whole < most ? c * reciprocal(det)
                                                                      : reciprocal(last);
}

/* The first FACTOR threads meet. */
enum { FACTOR = 128 };

__device__ static void meet_factor()
{
    asm volatile("bar.sync 1, %0;" ::"n"((int)FACTOR) : "memory");
}

/*
 * The lower triangle in s->l becomes L, by half of the threads: more would only wait
 * for each other. A thread has 8 x 4 elements, rows 8 and columns 16 apart. Two columns
 * are on turn at a time: c, and d, from which everybody takes away itself what c does
 * to it. They are left as they are then and scaled in the end: what c takes away from
 * the others is c_i c_k / c_j. Returns the first column whose pivot is not positive,
 * or NB.
 */
template <typename T> __device__ static int factor(common<T> *s)
{
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    int bad = NB;
    T v[8][4];

#pragma unroll
    for (int a = 0; a < 8; a++)
#pragma unroll
        for (int b = 0; b < 4; b++)
            v[a][b] = s->l[tx + 16 * b][ty + 8 * a];
    meet_factor();
#pragma unroll
    for (int now = 0; now < 4; now++)
#pragma unroll 1
        for (int turn = 0; turn < 16; turn += 2) {
            const int j = 16 * now + turn;
            const bool is_turn = tx / 2 == turn / 2;
            T(*pair)[NB] = s->pair[turn / 2 % 2];
            T c_inverse, d_inverse, between, last, ck[4], dk[4];

            if (is_turn)
#pragma unroll
                for (int a = 2 * now; a < 8; a++)
                    pair[tx % 2][ty + 8 * a] = v[a][now];
            meet_factor();
            c_inverse = reciprocal(pair[0][j]);
            between = pair[0][j + 1] * c_inverse;
            last = pair[1][j + 1] - pair[0][j + 1] * between;
            d_inverse = both_inverse(pair[0][j], pair[0][j + 1], pair[1][j + 1], last);
            if (!(pair[0][j] > (T)0) && bad == NB)
                bad = j;
            if (!(last > (T)0) && bad == NB)
                bad = j + 1;
#pragma unroll
            for (int b = now; b < 4; b++) {
                ck[b] = pair[0][tx + 16 * b];
                dk[b] = pair[1][tx + 16 * b] - ck[b] * between;
            }
#pragma unroll
            for (int a = 2 * now; a < 8; a++) {
                const int i = ty + 8 * a;
                const T c = pair[0][i], d = pair[1][i] - c * between;
                const T mine = c * c_inverse, too = d * d_inverse;

                if (is_turn)
                    s->l[16 * now + tx][i] = tx % 2 == 0 ? c : d;
#pragma unroll
                for (int b = now; b < 4; b++)
                    v[a][b] = v[a][b] - mine * ck[b] - too * dk[b];
            }
        }
    meet_factor();
    if (threadIdx.x < NB) {
        const T d = s->l[threadIdx.x][threadIdx.x];

        s->inverse[threadIdx.x] = rsqrt(d);
        s->l[threadIdx.x][threadIdx.x] = sqrt(d);
    }
    meet_factor();
#pragma unroll
    for (int a = 0; a < 8; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const int i = ty + 8 * a, j = tx + 16 * b;

            if (i > j)
                s->l[j][i] *= s->inverse[j];
        }
    return bad;
}

/*
 * 16 rows and 8 columns of x, from `row` and `to` on, less the product of columns
 * `from` .. `from` + 15 with L. A lane has the elements that `product` says.
 */
__device__ static void take(common<double> *s, int row, int to, int from, int g, int q)
{
    double c[4], a[8], b[4];

#pragma unroll
    for (int i = 0; i < 4; i++) {
        c[i] = -s->x[to + 2 * q + i % 2][row + g + i / 2 * 8];
        b[i] = s->l[from + q + 4 * i][to + g];
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        a[i] = s->x[from + q + i / 2 * 4][row + g + i % 2 * 8];
    multiply(c, a, b);
#pragma unroll
    for (int i = 0; i < 4; i++)
        s->x[to + 2 * q + i % 2][row + g + i / 2 * 8] = -c[i];
}

__device__ static void take(common<float> *s, int row, int to, int from, int g, int q)
{
    float c[4];

#pragma unroll
    for (int i = 0; i < 4; i++)
        c[i] = s->x[to + 2 * q + i % 2][row + g + i / 2 * 8];
#pragma unroll 4
    for (int k = from; k < from + 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[i] -= s->x[k][row + g + i / 2 * 8] * s->l[k][to + 2 * q + i % 2];
#pragma unroll
    for (int i = 0; i < 4; i++)
        s->x[to + 2 * q + i % 2][row + g + i / 2 * 8] = c[i];
}

/* X = X L^-T for 16 columns from j on, a row of s->x for each thread; to global memory
 * too, if there is such a row, and w columns in all. */
template <typename T>
__device__ static void solve_few(common<T> *s, T *row, long long ld, int j, int w, bool is_row)
{
    const int me = threadIdx.x;
    T x[16];

#pragma unroll
    for (int k = 0; k < 16; k++)
        x[k] = s->x[j + k][me];
#pragma unroll
    for (int c = 0; c < 16; c++) {
        x[c] *= s->inverse[j + c];
#pragma unroll
        for (int k = c + 1; k < 16; k++)
            x[k] -= x[c] * s->l[j + c][j + k];
    }
#pragma unroll
    for (int k = 0; k < 16; k++)
        s->x[j + k][me] = x[k];
    if (is_row) {
        row += j * ld;
#pragma unroll
        for (int k = 0; k < 16; k++, row += ld)
            if (j + k < w)
                *row = x[k];
    }
}

/* X = X L^-T, 16 columns at a time. */
template <typename T>
__device__ static void solve(common<T> *s, T *row, long long ld, int w, bool is_row)
{
    const int me = threadIdx.x, warp = me / 32, g = me % 32 / 4, q = me % 4;

#pragma unroll 1
    for (int j = 0; j < NB; j += 16) {
        const int right = (NB - j - 16) / 8, ntiles = ROWS / 16 * right;

        if (me < ROWS)
            solve_few(s, row, ld, j, w, is_row);
        __syncthreads();
#pragma unroll 1
        for (int i = warp; i < ntiles; i += THREADS / 32)
            take(s, i % (ROWS / 16) * 16, j + 16 + i / (ROWS / 16) * 8, j, g, q);
        __syncthreads();
    }
}

/* What a block is about: columns c0 .. c0 + w - 1 of the panel, which has others
 * before it. */
template <typename T> struct panel {
    T *a;
    long long ld;
    int m, n, before, c0, w;
};

/* Blocks that have work at step c0. */
template <typename T> __device__ static int blocks_at(const panel<T> *p, int c0)
{
    const int below = p->m - c0 - (p->n - c0 < NB ? p->n - c0 : NB);
    const int chunks = below > ROWS ? (below + ROWS - 1) / ROWS : 1;

    return chunks < (int)gridDim.x ? chunks : (int)gridDim.x;
}

/*
 * The rows of the diagonal block (in `s->l`, the first time only), and ROWS more from
 * row `below` on: less what the columns on the left take away, then the factor, then
 * the solve.
 */
template <typename T>
__device__ static void do_rows(common<T> *s, const panel<T> *p, int below, bool is_first, int *info)
{
    const int me = threadIdx.x, warp = me / 32, g = me % 32 / 4, q = me % 4;
    const int row = me < NB ? p->c0 + me : below + me - NB;
    const bool is_row = me < NB ? me < p->w : row < p->m;
    const bool is_diag = warp < NB / 32; /* where the products of a warp go */
    const int nslabs = p->c0 / SLAB;
    const T *from = p->a + (is_row ? row : 0);
    T acc[2][8][4] = {};

    if (me >= NB || is_first)
        fetch_row(me < NB ? &s->l[0][me] : &s->x[0][me - NB], me < NB ? LDL : LDX,
                  from + p->c0 * p->ld, p->ld, NB, is_row ? p->w : 0);
    for (int i = 0; i <= nslabs; i++) {
        if (i < nslabs)
            fetch_row(&s->slab[i % STAGES][0][me], LDS, from + (long long)i * SLAB * p->ld, p->ld,
                      SLAB, is_row ? SLAB : 0);
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (i > 0)
            product(acc, s->slab[(i - 1) % STAGES], 32 * warp, g, q);
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
    }
    if (!is_diag || is_first) {
        T *to = is_diag ? &s->l[0][32 * warp] : &s->x[0][32 * warp - NB];
        const int ld = is_diag ? LDL : LDX;

#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    to[(8 * j + 2 * q + i % 2) * ld + 16 * t + g + i / 2 * 8] -= acc[t][j][i];
    }
    __syncthreads();
    if (is_first && me < FACTOR) {
        int bad;

        if (me >= p->w && me < NB)
            s->l[me][me] = 1; /* where there is no row, and so no product */
        meet_factor();
        bad = factor(s);
        if (blockIdx.x == 0 && me == 0 && bad < p->w && *info == 0)
            *info = p->before + p->c0 + bad + 1;
    }
    __syncthreads();
    solve(s, p->a + below + me + (long long)p->c0 * p->ld, p->ld, p->w, below + me < p->m);
}

/* All blocks that had work are done with it: `arrived` of them in all. */
__device__ static void meet(unsigned *bar, unsigned arrived, bool stays)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(bar) : "memory");
        if (stays) {
            unsigned now;

            do
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                             : "=r"(now)
                             : "l"(bar)
                             : "memory");
            while (now < arrived);
        }
    }
    __syncthreads();
}

/*
 * A panel of m rows and n <= m columns. *info: the first pivot that is not positive,
 * from 1, and with the columns before the panel. *bar, 0 before, counts who has
 * arrived.
 */
template <typename T> __device__ static void factor_panel(panel<T> p, int *info, unsigned *bar)
{
    extern __shared__ __align__(16) char memory[];
    common<T> *s = (common<T> *)memory;
    unsigned arrived = 0;

    for (p.c0 = 0; p.c0 < p.n; p.c0 += NB) {
        const int blocks = blocks_at(&p, p.c0), next = p.c0 + NB;
        const bool stays = blockIdx.x == 0 || (next < p.n && (int)blockIdx.x < blocks_at(&p, next));
        bool is_first;
        int below;

        p.w = p.n - p.c0 < NB ? p.n - p.c0 : NB;
        below = p.c0 + p.w + (int)blockIdx.x * ROWS;
        is_first = true;
#pragma unroll 1
        do {
            do_rows(s, &p, below, is_first, info);
            is_first = false;
            below += (int)gridDim.x * ROWS;
        } while (below < p.m);
        arrived += (unsigned)blocks;
        meet(bar, arrived, stays);
        if (!stays)
            return;
        if (blockIdx.x == 0)
            for (int i = threadIdx.x; i < NB * NB; i += THREADS)
                if (i % NB >= i / NB && i % NB < p.w)
                    p.a[p.c0 + i % NB + (long long)(p.c0 + i / NB) * p.ld] = s->l[i / NB][i % NB];
        __syncthreads();
    }
}

#ifdef LA_FLOAT
#define NAME(x) x##_s
typedef float real;
#else
#define NAME(x) x##_d
typedef double real;
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    NAME(la_chol)(real *a, long long ld, int m, int n, int before, int *info, unsigned *bar)
{
    factor_panel(panel<real>{a, ld, m, n, before, 0, 0}, info, bar);
}

extern "C" __global__ void NAME(la_chol_start)(unsigned *bar)
{
    *bar = 0;
}
