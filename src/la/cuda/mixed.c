/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed: launches of the kernels of mixed.cu, and products of halves.
 */
#include "la/cuda/mixed.h"

#include <math.h>

#include "la/cuda/ptx/mixed.h"
#include "launch/launch.h"

/* --- launches ------------------------------------------------------------------- */

static heddle_status put(struct heddle_exec *x, const char *entry, struct heddle_cuda_shape shape,
                         const void *const *values, unsigned n)
{
    return heddle_launch(x, la_mixed_ptx, entry, &shape, values, n);
}

#define PUT(x, name, shape, ...) put((x), (name), (shape), LAUNCH_VALUES(__VA_ARGS__))

enum {
    THREADS = 256,
    MOST_BLOCKS = 4096,
    NARROW_ROWS = 64, /* these as in mixed.cu */
    NARROW_THREADS = 512,
    CORNER_THREADS = 512,
    PUSH_ROWS = 32,
    PUSH_THREADS = 512
};

/* One thread for each of n elements. */
static struct heddle_cuda_shape each(size_t n)
{
    return launch_shape((n + THREADS - 1) / THREADS, THREADS);
}

/* The same where threads take several. */
static struct heddle_cuda_shape many(struct blas_block b)
{
    return launch_shape(la_min((b.m * b.n + THREADS - 1) / THREADS, MOST_BLOCKS), THREADS);
}

static int part_of(char uplo)
{
    return uplo == 'L' || uplo == 'U' ? uplo : 0;
}

/* --- copies ------------------------------------------------------------------------ */

heddle_status heddle_gpu_copy(struct heddle_exec *x, char uplo, size_t col0,
                              enum blas_type from_type, struct blas_block from,
                              enum blas_type to_type, struct blas_block to, int *lost)
{
    static const char *const names[2][2] = {{"la_copy_ss", "la_copy_sd"},
                                            {"la_copy_ds", "la_copy_dd"}};
    const long long ldf = (long long)from.ld, ldt = (long long)to.ld;
    const int m = (int)to.m, n = (int)to.n, part = part_of(uplo), col = (int)col0;

    if (to.m == 0 || to.n == 0)
        return HEDDLE_OK;
    return PUT(x, names[from_type == BLAS_D][to_type == BLAS_D], many(to), &from.a, &ldf, &to.a,
               &ldt, &m, &n, &part, &col, &lost);
}

heddle_status heddle_gpu_set(struct heddle_exec *x, char uplo, size_t col0, enum blas_type t,
                             const void *off, const void *diag, struct blas_block to)
{
    const long long ld = (long long)to.ld;
    const int m = (int)to.m, n = (int)to.n, part = part_of(uplo), col = (int)col0;

    if (to.m == 0 || to.n == 0)
        return HEDDLE_OK;
    return PUT(x, t == BLAS_D ? "la_set_d" : "la_set_s", many(to), &to.a, &ld, &m, &n, &part, &col,
               off, diag);
}

/* --- double to single and back --------------------------------------------------------- */

heddle_status heddle_gpu_narrow(struct heddle_exec *x, char uplo, size_t col0, struct blas_block a,
                                struct blas_block low, double scale, double *sums, bool adds)
{
    const long long lda = (long long)a.ld, ldl = (long long)low.ld;
    const int m = (int)a.m, n = (int)a.n, part = part_of(uplo), col = (int)col0,
              more = adds ? 1 : 0;

    if (a.m == 0 || a.n == 0)
        return HEDDLE_OK;
    LA_TRY(PUT(x, "la_narrow", launch_shape((a.m + NARROW_ROWS - 1) / NARROW_ROWS, NARROW_THREADS),
               &a.a, &lda, &low.a, &ldl, &m, &n, &part, &col, &scale, &sums, &more));
    return part == 0 ? HEDDLE_OK
                     : PUT(x, "la_narrow_mirror", launch_shape(a.n, THREADS), &a.a, &lda, &m, &part,
                           &col, &sums);
}

heddle_status heddle_gpu_largest(struct heddle_exec *x, struct blas_block a, double *out)
{
    const long long ld = (long long)a.ld;
    const int m = (int)a.m;

    if (a.n == 0)
        return HEDDLE_OK;
    return PUT(x, "la_largest", launch_shape(a.n, THREADS), &a.a, &ld, &m, &out);
}

heddle_status heddle_gpu_down(struct heddle_exec *x, float *to, const double *from, const int *perm,
                              size_t n, double factor)
{
    const int count = (int)n;

    return PUT(x, "la_down", each(n), &to, &from, &perm, &count, &factor);
}

heddle_status heddle_gpu_up(struct heddle_exec *x, double *to, const float *from, size_t n,
                            double beta, double factor)
{
    const int count = (int)n;

    return PUT(x, "la_up", each(n), &to, &from, &count, &beta, &factor);
}

/* --- triangles --------------------------------------------------------------------------- */

heddle_status heddle_gpu_invert(struct la_gpu *g, char uplo, char diag, struct blas_block t,
                                struct blas_block to)
{
    const long long ldt = (long long)t.ld, ldx = (long long)to.ld;
    const int w = (int)to.n, is_up = uplo == 'U', is_unit = diag == 'U';

    if (to.n == 0)
        return HEDDLE_OK;
    LA_TRY(PUT(g->x, "la_corners",
               launch_shape((to.n + LA_GPU_INVERT - 1) / LA_GPU_INVERT, CORNER_THREADS), &t.a, &ldt,
               &w, &to.a, &ldx, &is_up, &is_unit));
    for (size_t s = LA_GPU_INVERT; s < la_min(to.n, LA_GPU_FEW); s *= 2)
        LA_TRY(heddle_gpu_join(g, uplo, t, to, s));
    return HEDDLE_OK;
}

/* --- products with few columns ----------------------------------------------------------- */

heddle_status heddle_gpu_few(struct heddle_exec *x, char trans, float alpha, struct blas_block a,
                             struct blas_block v, float beta, struct blas_block y)
{
    const long long ld = (long long)a.ld, ldv = (long long)v.ld, ldy = (long long)y.ld;
    const int m = (int)a.m, w = (int)a.n;
    struct heddle_cuda_shape shape = {.grid = {0, (unsigned)y.n}};

    if (a.m == 0 || a.n == 0 || y.n == 0)
        return HEDDLE_OK;
    if (trans == 'N') {
        shape.grid[0] = (unsigned)((a.m + PUSH_ROWS - 1) / PUSH_ROWS);
        shape.block[0] = PUSH_THREADS;
        return PUT(x, "la_push", shape, &a.a, &ld, &m, &w, &v.a, &ldv, &y.a, &ldy, &alpha, &beta);
    }
    shape.grid[0] = (unsigned)a.n;
    shape.block[0] = THREADS;
    return PUT(x, "la_pull", shape, &a.a, &ld, &m, &v.a, &ldv, &y.a, &ldy, &alpha, &beta);
}

/* --- vectors ------------------------------------------------------------------------------- */

heddle_status heddle_gpu_dots(struct heddle_exec *x, const double *const *v, unsigned count,
                              const double *z, size_t n, double *out)
{
    const double *all[LA_GPU_VECTORS] = {NULL};
    const int size = (int)n;

    for (unsigned i = 0; i < count; i++)
        all[i] = v[i];
    return PUT(x, "la_dots", launch_shape(count, THREADS), &all[0], &all[1], &all[2], &all[3],
               &all[4], &all[5], &all[6], &all[7], &z, &size, &out);
}

heddle_status heddle_gpu_combine(struct heddle_exec *x, const double *const *v, unsigned count,
                                 const double *c, double factor, double *z, size_t n)
{
    const double *all[LA_GPU_VECTORS] = {NULL};
    const int size = (int)n, used = (int)count;

    for (unsigned i = 0; i < count; i++)
        all[i] = v[i];
    return PUT(x, "la_combine", each(n), &all[0], &all[1], &all[2], &all[3], &all[4], &all[5],
               &all[6], &all[7], &used, &c, &factor, &z, &size);
}

heddle_status heddle_gpu_unit(struct heddle_exec *x, double *z, const double *square, size_t n)
{
    const int count = (int)n;

    return PUT(x, "la_unit", each(n), &z, &square, &count);
}

heddle_status heddle_gpu_scale_vector(struct heddle_exec *x, double *to, const double *from,
                                      size_t n, double factor)
{
    const int count = (int)n;

    return PUT(x, "la_scale", each(n), &to, &from, &count, &factor);
}

/* --- products of halves ---------------------------------------------------------------------- */

static heddle_status split(struct la_gpu *g, struct blas_block from, float scale, void *to,
                           size_t ld, size_t step, unsigned terms, unsigned low)
{
    const long long ldf = (long long)from.ld, ldt = (long long)ld, apart = (long long)step;
    const int m = (int)from.m, n = (int)from.n, count = (int)terms, rest = (int)low;

    if (from.m == 0 || from.n == 0)
        return HEDDLE_OK;
    return PUT(g->x, "la_split", many(from), &from.a, &ldf, &m, &n, &scale, &to, &ldt, &apart,
               &count, &rest);
}

heddle_status heddle_gpu_half_open(struct la_gpu *g)
{
    void *function = NULL;
    const heddle_status st = heddle_cuda_kernel(g->x, la_mixed_ptx, 0, "la_split", &function);

    return st == HEDDLE_EINVAL ? HEDDLE_EDECLINED : st;
}

heddle_status heddle_gpu_half_left(struct la_gpu *g, struct la_low low, struct blas_block l,
                                   void *to)
{
    const size_t ld = la_half_ld(l.m);

    return split(g, l, low.left, to, ld, ld * l.n, la_half_terms(low), 1);
}

heddle_status heddle_gpu_half_both(struct la_gpu *g, struct la_low low, struct blas_block l,
                                   void *to)
{
    const size_t ld = la_half_ld(l.m), step = ld * l.n;

    LA_TRY(split(g, l, low.left, to, ld, step, 2, 0));
    return split(g, l, low.left, (uint16_t *)to + 2 * step, ld, step, 2, 1);
}

/* The half nearest to v, to even, as its bits. */
static uint16_t half_of(float v)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const float a = fabsf(v);
    float q;
    int e;

    if (a != a)
        return 0x7e00;
    if (a >= 65520)
        return sign | 0x7c00;
    if (a < 0x1p-14f) /* the same steps down to zero */
        return (uint16_t)(sign | (unsigned)lrintf(a * 0x1p24f));
    (void)frexpf(a, &e); /* a = q 2^(e - 11), q from 1024 on; 2048: the next e */
    q = rintf(ldexpf(a, 11 - e));
    return (uint16_t)(sign | (((unsigned)(e + 13) << 10) + (unsigned)q));
}

static float of_half(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const float a = e == 31  ? m != 0 ? NAN : INFINITY
                    : e == 0 ? ldexpf((float)m, -24)
                             : ldexpf((float)(m + 1024), e - 25);

    return (h & 0x8000) != 0 ? -a : a;
}

/* What la_split does. */
static void split_on_core(struct blas_block l, float scale, uint16_t *out, unsigned terms,
                          unsigned low)
{
    const size_t ld = la_half_ld(l.m), step = ld * l.n;

    for (size_t j = 0; j < l.n; j++) {
        const float *from = blas_at(BLAS_S, l, 0, j);

        for (size_t i = 0; i < l.m; i++) {
            const float v = scale * from[i];
            const uint16_t high = half_of(v), rest = half_of(v - of_half(high));

            for (unsigned t = 0; t < terms; t++)
                out[t * step + j * ld + i] = t == low ? rest : high;
        }
    }
}

void heddle_la_half_left(struct la_low low, struct blas_block l, void *to)
{
    split_on_core(l, low.left, to, la_half_terms(low), 1);
}

void heddle_la_half_both(struct la_low low, struct blas_block l, void *to)
{
    split_on_core(l, low.left, to, 2, 0);
    split_on_core(l, low.left, (uint16_t *)to + 2 * la_half_ld(l.m) * l.n, 2, 1);
}

typedef int (*gemm_ex_fn)(void *, int, int, int, int, int, const void *, const void *, int, int,
                          const void *, int, int, const void *, void *, int, int, int, int);

/* Of cuBLAS. */
enum { TYPE_SINGLE = 0, TYPE_HALF = 2, COMPUTE_SINGLE = 68, COMPUTE_TF32 = 77, ALGORITHM_ANY = -1 };

static heddle_status multiply(struct la_gpu *g, char ta, char tb, int type, int compute, size_t k,
                              const void *alpha, const void *a, size_t lda, const void *b,
                              size_t ldb, const void *beta, struct blas_block c)
{
    const gemm_ex_fn fn =
        (gemm_ex_fn)(uintptr_t)heddle_cuda_symbol(g->x, HEDDLE_CUDA_CUBLAS, "cublasGemmEx");

    if (fn == NULL)
        return HEDDLE_ENOENT;
    return fn(g->blas, ta != 'N', tb != 'N', (int)c.m, (int)c.n, (int)k, alpha, a, type, (int)lda,
              b, type, (int)ldb, beta, c.a, TYPE_SINGLE, (int)la_max(c.ld, 1), compute,
              ALGORITHM_ANY) == 0
               ? HEDDLE_OK
               : heddle_exec_fail(g->x, HEDDLE_ETASK, "cublasGemmEx refuses a product");
}

heddle_status heddle_gpu_gemm_tf32(struct la_gpu *g, char ta, char tb, const void *alpha,
                                   struct blas_block a, struct blas_block b, const void *beta,
                                   struct blas_block c)
{
    return multiply(g, ta, tb, TYPE_SINGLE, COMPUTE_TF32, ta == 'N' ? a.n : a.m, alpha, a.a,
                    la_max(a.ld, 1), b.a, la_max(b.ld, 1), beta, c);
}

/* Elements of the result that a multiprocessor has at a time, in cuBLAS for halves. */
enum { HALF_TILE = 320 * 128 };

typedef int (*target_fn)(void *, int);

/* How many multiprocessors cuBLAS may take; 0: all. */
static void set_target(struct la_gpu *g, size_t n)
{
    const target_fn fn = (target_fn)(uintptr_t)heddle_cuda_symbol(g->x, HEDDLE_CUDA_CUBLAS,
                                                                  "cublasSetSmCountTarget");

    if (fn != NULL)
        (void)fn(g->blas, (int)n);
}

/*
 * cuBLAS's kernels hold all multiprocessors until their last element. The launches of a
 * panel would wait for that, one after the other; so a product beside it leaves as many
 * free as a panel has, and its rows are cut so that each of the others has one tile.
 */
heddle_status heddle_gpu_half_product(struct la_gpu *g, struct la_low low, const void *l,
                                      struct blas_block u, struct blas_block c, bool is_beside)
{
    const unsigned terms = la_half_terms(low);
    const size_t w = u.m, ld = terms * w;
    const float alpha = -1 / (low.left * low.right), one = 1;
    void *cut = heddle_exec_scratch(g->x);
    size_t rows = c.m, shared;
    heddle_status st = HEDDLE_OK;
    unsigned nsm = 0;

    if (c.m == 0 || c.n == 0)
        return HEDDLE_OK;
    LA_TRY(split(g, u, low.right, cut, ld, w, terms, 2));
    heddle_cuda_get_limits(g->x, &nsm, &shared);
    if (nsm > 2 * LA_GPU_CLUSTER)
        nsm -= LA_GPU_CLUSTER;
    if (is_beside) {
        set_target(g, nsm);
        rows = la_max(nsm * HALF_TILE / c.n / 8 * 8, 8);
    }
    for (size_t i = 0; i < c.m && st == HEDDLE_OK; i += rows)
        st = multiply(g, 'N', 'N', TYPE_HALF, COMPUTE_SINGLE, ld, &alpha, (const uint16_t *)l + i,
                      la_half_ld(c.m), cut, ld, &one,
                      blas_part(BLAS_S, c, i, 0, la_min(rows, c.m - i), c.n));
    if (is_beside)
        set_target(g, 0);
    return st;
}

heddle_status heddle_gpu_half_square(struct la_gpu *g, struct la_low low, const void *l, size_t m,
                                     size_t w, size_t row, struct blas_block c)
{
    const size_t ld = la_half_ld(m);
    const uint16_t *left = (const uint16_t *)l + row, *right = left + ld * w;
    const float alpha = -1 / (low.left * low.left), one = 1;

    if (c.m == 0 || c.n == 0)
        return HEDDLE_OK;
    return multiply(g, 'N', 'T', TYPE_HALF, COMPUTE_SINGLE, 3 * w, &alpha, left, ld, right, ld,
                    &one, c);
}
