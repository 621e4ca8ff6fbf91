/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm: norms, transposes, sums and test matrices; and for complex types what
 * mixed.cu does for real ones, copies and constants. `make ptx` makes
 * ptx/norm.h from it.
 *
 * Numbers  All is computed in double, sums in an order that depends on the shape
 *          alone, so results repeat. A NaN stays one.
 * Parts    uplo 0: all elements count; 'L', 'U': those of a triangle. col0 is the
 *          number of the first column.
 */

/* --- types --------------------------------------------------------------------------- */

template <typename T, bool Complex, bool Single> struct type_is {
    enum { is_complex = Complex, is_single = Single };
};
template <typename T> struct type;
template <> struct type<float> : type_is<float, false, true> {
};
template <> struct type<double> : type_is<double, false, false> {
};
template <> struct type<float2> : type_is<float2, true, true> {
};
template <> struct type<double2> : type_is<double2, true, false> {
};

__device__ static double2 parts_of(double v)
{
    return make_double2(v, 0);
}

__device__ static double2 parts_of(float2 v)
{
    return make_double2(v.x, v.y);
}

__device__ static double2 parts_of(double2 v)
{
    return v;
}

template <typename R> __device__ static void set(R *to, double re, double)
{
    *to = (R)re;
}

__device__ static void set(float2 *to, double re, double im)
{
    *to = make_float2((float)re, (float)im);
}

__device__ static void set(double2 *to, double re, double im)
{
    *to = make_double2(re, im);
}

/* --- element by element -------------------------------------------------------------- */

/* f(i, j) for what counts of m rows and n columns. */
template <typename F> __device__ static void for_each(int m, int n, int uplo, int col0, F f)
{
    for (int j = blockIdx.y; j < n; j += gridDim.y) {
        const int first = uplo == 'L' ? col0 + j : 0, end = uplo == 'U' ? min(m, col0 + j + 1) : m;

        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x)
            if (i >= first)
                f(i, j);
    }
}

/* to = from; *lost = 1: a finite number became an infinite one. */
#define COPY(name, From, To)                                                                       \
    extern "C" __global__ void name(const From *from, long long ldf, To *to, long long ldt, int m, \
                                    int n, int uplo, int col0, int *lost)                          \
    {                                                                                              \
        for_each(m, n, uplo, col0, [=](int i, int j) {                                             \
            const From v = from[i + j * ldf];                                                      \
            To w;                                                                                  \
                                                                                                   \
            set(&w, v.x, v.y);                                                                     \
            to[i + j * ldt] = w;                                                                   \
            if ((isinf(w.x) && !isinf(v.x)) || (isinf(w.y) && !isinf(v.y)))                        \
                *lost = 1; /* all write the same */                                                \
        });                                                                                        \
    }

COPY(la_copy_cc, float2, float2)
COPY(la_copy_cz, float2, double2)
COPY(la_copy_zc, double2, float2)
COPY(la_copy_zz, double2, double2)

#define SET(name, T)                                                                               \
    extern "C" __global__ void name(T *to, long long ld, int m, int n, int uplo, int col0,         \
                                    double off_re, double off_im, double re, double im)            \
    {                                                                                              \
        for_each(m, n, uplo, col0, [=](int i, int j) {                                             \
            const bool is_on = i == col0 + j;                                                      \
                                                                                                   \
            set(to + i + j * ld, is_on ? re : off_re, is_on ? im : off_im);                        \
        });                                                                                        \
    }

SET(la_set_c, float2)
SET(la_set_z, double2)

/* --- test matrices: what random.c does, with the same bits ---------------------------- */

/* heddle_mix64() of base/rng.h. */
__device__ static unsigned long long mix64(unsigned long long z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* In (-0.5, 0.5); sums are exact. */
template <typename T>
__device__ static double uniform(unsigned long long key, unsigned long long counter)
{
    const unsigned long long h = mix64(key + (counter + 1) * 0x9e3779b97f4a7c15ull);
    const bool is_single = type<T>::is_single;
    const double v =
        __longlong_as_double((long long)((is_single ? h >> 41 << 29 : h >> 12) | 0x3ffull << 52));

    return v - 1.5 + (is_single ? 0x1p-24 : 0x1p-53);
}

/* Above the diagonal of a symmetric matrix is what is below; of a hermitian one, its
 * conjugate. */
template <typename T>
__device__ static void random_elements(T *a, long long ld, int m, int n, int col0,
                                       unsigned long long key, double bump, int is_symmetric,
                                       int is_hermitian)
{
    for_each(m, n, 0, col0, [=](int i, int j) {
        const unsigned c = (unsigned)(col0 + j), r = (unsigned)i;
        const bool is_above = r < c && is_symmetric, is_on = r == c;
        const unsigned long long row = is_above ? c : r, col = is_above ? r : c,
                                 at = (col << 32 | row) << 1;
        double re = uniform<T>(key, at), im = 0;

        if (type<T>::is_complex && !(is_on && is_hermitian))
            im = uniform<T>(key, at + 1);
        if (is_on)
            re += bump;
        set(a + i + j * ld, re, is_above && is_hermitian ? -im : im);
    });
}

__device__ static double2 times(double2 a, double2 v)
{
    return make_double2(a.x * v.x - a.y * v.y, a.x * v.y + a.y * v.x);
}

/* y = a x + b y; a factor 0: that side is not looked at. x may be y. */
template <typename T>
__device__ static void add(const T *x, long long ldx, T *y, long long ldy, int m, int n, int uplo,
                           int col0, double2 a, double2 b)
{
    const bool has_x = a.x != 0 || a.y != 0, has_y = b.x != 0 || b.y != 0;

    for_each(m, n, uplo, col0, [=](int i, int j) {
        double2 s = make_double2(0, 0), t = s;

        if (has_x)
            s = times(a, parts_of(x[i + j * ldx]));
        if (has_y)
            t = times(b, parts_of(y[i + j * ldy]));
        set(y + i + j * ldy, s.x + t.x, s.y + t.y);
    });
}

/* --- transposes ---------------------------------------------------------------------- */

enum { TILE = 32, TILE_ROWS = 8 };

/* to (n x m) = from^T, or from^H. Blocks of TILE x TILE_ROWS threads take tiles by
 * turns. */
template <typename T>
__device__ static void transpose(const T *from, long long ldf, T *to, long long ldt, int m, int n,
                                 int is_conj)
{
    __shared__ T tile[TILE][TILE + 1];
    const int tall = (m + TILE - 1) / TILE, wide = (n + TILE - 1) / TILE;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;

    for (long long k = blockIdx.x; k < (long long)tall * wide; k += gridDim.x) {
        const int row = (int)(k % tall) * TILE, col = (int)(k / tall) * TILE;

#pragma unroll
        for (int c = y; c < TILE; c += TILE_ROWS)
            if (row + x < m && col + c < n)
                tile[c][x] = from[row + x + (col + c) * ldf];
        __syncthreads();
#pragma unroll
        for (int r = y; r < TILE; r += TILE_ROWS)
            if (row + r < m && col + x < n) {
                const double2 v = parts_of(tile[x][r]);

                set(to + col + x + (row + r) * ldt, v.x, is_conj ? -v.y : v.y);
            }
        __syncthreads();
    }
}

/* --- norms: elements ----------------------------------------------------------------- */

/* What is computed of a column, and what counts of its element on the diagonal. */
enum { LARGEST, SUM, SQUARES };
enum { DIAG_ANY, DIAG_REAL, DIAG_ONE, DIAG_NONE };

/* The element (row, col) that is stored as v. */
template <typename T> __device__ static double2 element(T v, int row, int col, int diag)
{
    const double2 p = parts_of(v);

    return row != col || diag == DIAG_ANY ? p
                                          : make_double2(diag == DIAG_REAL  ? p.x
                                                         : diag == DIAG_ONE ? 1
                                                                            : 0,
                                                         0);
}

/* hypot(inf, NaN) is inf: such a number is still none. */
template <typename T> __device__ static double size_of(double2 v)
{
    if (!type<T>::is_complex)
        return fabs(v.x);
    if (type<T>::is_single)
        return sqrt(v.x * v.x + v.y * v.y);
    return v.x != v.x || v.y != v.y ? v.x + v.y : hypot(v.x, v.y);
}

__device__ static double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

/* Sums of squares: of tiny numbers times UP, of others, of huge ones by UP. */
#define UP        0x1p600
#define HUGE_FROM 0x1p480

struct squares {
    double tiny, plain, huge;
};

template <typename T> __device__ static void add_square(struct squares *s, double v, double weight)
{
    if (!type<T>::is_single && fabs(v) > HUGE_FROM)
        s->huge += weight * (v * (1 / UP)) * (v * (1 / UP));
    else if (!type<T>::is_single && fabs(v) < 1 / HUGE_FROM)
        s->tiny += weight * (v * UP) * (v * UP);
    else
        s->plain += weight * v * v; /* a NaN too */
}

/* --- norms: columns ------------------------------------------------------------------ */

enum { WIDE = 256 }; /* threads that reduce */

/* Of all threads of the block. */
__device__ static double reduce(double s, bool is_sum)
{
    __shared__ double part[WIDE / 32];

    for (int d = 16; d > 0; d /= 2) {
        const double other = __shfl_down_sync(~0u, s, d);

        s = is_sum ? s + other : larger(s, other);
    }
    __syncthreads(); /* part of an earlier call */
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < WIDE / 32; k++)
        s = is_sum ? s + part[k] : larger(s, part[k]);
    return s;
}

__device__ static struct squares reduce_squares(struct squares q)
{
    q.tiny = reduce(q.tiny, true);
    q.plain = reduce(q.plain, true);
    q.huge = reduce(q.huge, true);
    return q;
}

/*
 * Of each column the largest size, the sum of sizes, or sums of squares in which
 * elements off the diagonal have a weight. Block (j, c) has `rows` rows of column j, the
 * c-th such part of it; what it finds becomes part[c gridDim.x + j], three arrays for
 * squares.
 */
template <typename T>
__device__ static void columns(const T *a, long long ld, int m, int rows, int uplo, int diag,
                               int col0, int what, double weight, double *part)
{
    const int col = col0 + blockIdx.x, top = blockIdx.y * rows, bottom = min(m, top + rows),
              first = uplo == 'L' ? max(top, col) : top,
              end = uplo == 'U' ? min(bottom, col + 1) : bottom;
    const long long step = (long long)gridDim.x * gridDim.y;
    struct squares q = {0, 0, 0};
    double s = 0;

    a += blockIdx.x * ld;
#pragma unroll 4
    for (int i = first + threadIdx.x; i < end; i += WIDE) {
        const double2 v = element(a[i], i, col, diag);
        const double w = i == col ? 1 : weight;

        if (what != SQUARES) {
            s = what == SUM ? s + size_of<T>(v) : larger(s, size_of<T>(v));
        } else {
            add_square<T>(&q, v.x, w);
            if (type<T>::is_complex)
                add_square<T>(&q, v.y, w);
        }
    }
    if (what == SQUARES)
        q = reduce_squares(q);
    else
        s = reduce(s, what == SUM);
    if (threadIdx.x == 0) {
        part += blockIdx.y * (long long)gridDim.x + blockIdx.x;
        part[0] = what == SQUARES ? q.tiny : s;
        if (what == SQUARES) {
            part[step] = q.plain;
            part[2 * step] = q.huge;
        }
    }
}

/* Column j of such an array of `count` rows. */
__device__ static double sum_of_parts(const double *part, int count, int n, int j)
{
    double s = 0;

    for (int c = 0; c < count; c++)
        s += part[c * (long long)n + j];
    return s;
}

/* As on cores (norm.c): scale^2 sum. */
struct scaled {
    double scale, sum;
};

__device__ static struct scaled join(struct scaled a, double scale, double sum)
{
    const struct scaled b = {sum == 0 ? 0 : scale, sum}, big = a.scale < b.scale ? b : a,
                        small = a.scale < b.scale ? a : b;
    const double ratio = small.scale == big.scale ? 1 : small.scale / big.scale;
    const struct scaled s = {big.scale, big.sum + small.sum * ratio * ratio};

    return small.scale == 0 ? big : s;
}

/* The norm of n columns, from `count` parts of each, by one block: out[0], or for
 * squares scale and sum; joined with what is there when `adds`. */
extern "C" __global__ void la_norm_join(const double *part, int count, int n, int what, int adds,
                                        double *out)
{
    const long long step = (long long)count * n;
    struct squares q = {0, 0, 0};
    double s = 0;

    for (int j = threadIdx.x; j < n; j += WIDE) {
        if (what == SUM)
            s = larger(s, sum_of_parts(part, count, n, j));
        for (int c = 0; c < count && what == LARGEST; c++)
            s = larger(s, part[c * (long long)n + j]);
        if (what == SQUARES) {
            q.tiny += sum_of_parts(part, count, n, j);
            q.plain += sum_of_parts(part + step, count, n, j);
            q.huge += sum_of_parts(part + 2 * step, count, n, j);
        }
    }
    if (what == SQUARES)
        q = reduce_squares(q);
    else
        s = reduce(s, false);
    if (threadIdx.x != 0)
        return;
    if (what == SQUARES) {
        struct scaled r = {0, 0};

        r = join(join(join(r, 1 / UP, q.tiny), 1, q.plain), UP, q.huge);
        if (isinf(r.sum)) /* so that no ratio becomes NaN */
            r = {r.sum, 1};
        if (adds)
            r = join(r, out[0], out[1]);
        out[0] = r.scale;
        out[1] = r.sum;
    } else {
        out[0] = adds ? larger(out[0], s) : s;
    }
}

/* out[j] += column j. */
extern "C" __global__ void la_norm_mirror(const double *part, int count, int n, double *out)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;

    if (j < n)
        out[j] += sum_of_parts(part, count, n, j);
}

/* --- norms: rows --------------------------------------------------------------------- */

enum { ROWS = 32, GROUPS = 16 };

/* out[i] = the sum of row i, added to what is there when `adds`. Blocks of ROWS x GROUPS
 * threads, each with every GROUPS-th column of a row. */
template <typename T>
__device__ static void sum_rows(const T *a, long long ld, int m, int n, int uplo, int diag,
                                int col0, int adds, double *out)
{
    __shared__ double part[GROUPS][ROWS];
    const int r = threadIdx.x % ROWS, g = threadIdx.x / ROWS;
    const int row = blockIdx.x * ROWS + r;
    const int first = uplo == 'U' ? max(0, row - col0) : 0,
              end = uplo == 'L' ? min(n, row - col0 + 1) : n;
    double s = 0;

#pragma unroll 4
    for (int j = first / GROUPS * GROUPS + g; row < m && j < end; j += GROUPS)
        if (j >= first)
            s += size_of<T>(element(a[row + j * ld], row, col0 + j, diag));
    part[g][r] = s;
    __syncthreads();
    if (g == 0 && row < m) {
        s = adds ? out[row] : 0;
        for (int k = 0; k < GROUPS; k++)
            s += part[k][r];
        out[row] = s;
    }
}

/* --- the four types ------------------------------------------------------------------ */

#define ANY_TYPE(T, s)                                                                             \
    extern "C" __global__ void la_random_##s(T *a, long long ld, int m, int n, int col0,           \
                                             unsigned long long key, double bump,                  \
                                             int is_symmetric, int is_hermitian)                   \
    {                                                                                              \
        random_elements(a, ld, m, n, col0, key, bump, is_symmetric, is_hermitian);                 \
    }                                                                                              \
    extern "C" __global__ void la_add_##s(const T *x, long long ldx, T *y, long long ldy, int m,   \
                                          int n, int uplo, int col0, double a_re, double a_im,     \
                                          double b_re, double b_im)                                \
    {                                                                                              \
        add(x, ldx, y, ldy, m, n, uplo, col0, make_double2(a_re, a_im), make_double2(b_re, b_im)); \
    }                                                                                              \
    extern "C" __global__ void la_transpose_##s(const T *from, long long ldf, T *to,               \
                                                long long ldt, int m, int n, int is_conj)          \
    {                                                                                              \
        transpose(from, ldf, to, ldt, m, n, is_conj);                                              \
    }                                                                                              \
    extern "C" __global__ void la_norm_columns_##s(const T *a, long long ld, int m, int rows,      \
                                                   int uplo, int diag, int col0, int what,         \
                                                   double weight, double *part)                    \
    {                                                                                              \
        columns(a, ld, m, rows, uplo, diag, col0, what, weight, part);                             \
    }                                                                                              \
    extern "C" __global__ void la_norm_rows_##s(const T *a, long long ld, int m, int n, int uplo,  \
                                                int diag, int col0, int adds, double *out)         \
    {                                                                                              \
        sum_rows(a, ld, m, n, uplo, diag, col0, adds, out);                                        \
    }

ANY_TYPE(float, s)
ANY_TYPE(double, d)
ANY_TYPE(float2, c)
ANY_TYPE(double2, z)
