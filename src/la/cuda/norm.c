/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm: launches of the kernels of norm.cu.
 */
#include "la/cuda/norm.h"

#include <stdio.h>

#include "la/cuda/mixed.h"
#include "la/cuda/ptx/norm.h"
#include "la/product/product.h"
#include "launch/launch.h"

/* --- launches ------------------------------------------------------------------------ */

static const char letter[4] = {'s', 'd', 'c', 'z'};

static heddle_status put(struct heddle_exec *x, const char *entry, struct heddle_cuda_shape shape,
                         const void *const *values, unsigned n)
{
    return heddle_launch(x, la_norm_ptx, entry, &shape, values, n);
}

/* name_<letter of the type> */
static heddle_status put_typed(struct heddle_exec *x, const char *name, enum blas_type t,
                               struct heddle_cuda_shape shape, const void *const *values,
                               unsigned n)
{
    char entry[24];

    snprintf(entry, sizeof(entry), "%s_%c", name, letter[t]);
    return put(x, entry, shape, values, n);
}

#define SHAPE(blocks, more, threads)                                                               \
    ((struct heddle_cuda_shape){.grid = {(unsigned)(blocks), (unsigned)(more)},                    \
                                .block = {(unsigned)(threads)}})
#define PUT(x, name, shape, ...) put((x), (name), (shape), LAUNCH_VALUES(__VA_ARGS__))
#define PUT_TYPED(x, name, t, shape, ...)                                                          \
    put_typed((x), (name), (t), (shape), LAUNCH_VALUES(__VA_ARGS__))

enum {
    THREADS = 256, /* these as in norm.cu */
    TILE = 32,
    ROWS = 32,
    ROWS_THREADS = 512,
    PART_ROWS = 4096, /* of a column, at least, for one block */
    PART_MOST = 256   /* parts of a column */
};

/* Blocks beside and below each other; threads take several elements. */
static struct heddle_cuda_shape elements(struct blas_block b)
{
    return SHAPE(la_min((b.m + THREADS - 1) / THREADS, 32), la_min(b.n, 256), THREADS);
}

static int part_of(char uplo)
{
    return uplo == 'L' || uplo == 'U' ? uplo : 0;
}

/* Real and imaginary part. */
struct pair {
    double re, im;
};

static struct pair pair_of(enum blas_type t, const void *v)
{
    const float *f = v;
    const double *d = v;
    const bool two = blas_is_complex(t);

    return blas_real_bytes(t) == 4 ? (struct pair){(double)f[0], two ? (double)f[1] : 0}
                                   : (struct pair){d[0], two ? d[1] : 0};
}

/* --- element by element -------------------------------------------------------------- */

heddle_status heddle_gpu_lacpy(struct heddle_exec *x, char uplo, size_t col0,
                               enum blas_type from_type, struct blas_block from,
                               enum blas_type to_type, struct blas_block to, int *lost)
{
    static const char *const names[2][2] = {{"la_copy_cc", "la_copy_cz"},
                                            {"la_copy_zc", "la_copy_zz"}};
    const long long ldf = (long long)from.ld, ldt = (long long)to.ld;
    const int m = (int)to.m, n = (int)to.n, part = part_of(uplo), col = (int)col0;

    if (!blas_is_complex(to_type))
        return heddle_gpu_copy(x, uplo, col0, from_type, from, to_type, to, lost);
    if (to.m == 0 || to.n == 0)
        return HEDDLE_OK;
    return PUT(x, names[from_type == BLAS_Z][to_type == BLAS_Z], elements(to), &from.a, &ldf, &to.a,
               &ldt, &m, &n, &part, &col, &lost);
}

heddle_status heddle_gpu_laset(struct heddle_exec *x, char uplo, size_t col0, enum blas_type t,
                               const void *off, const void *diag, struct blas_block to)
{
    const long long ld = (long long)to.ld;
    const int m = (int)to.m, n = (int)to.n, part = part_of(uplo), col = (int)col0;
    const struct pair o = pair_of(t, off), d = pair_of(t, diag);

    if (!blas_is_complex(t))
        return heddle_gpu_set(x, uplo, col0, t, off, diag, to);
    if (to.m == 0 || to.n == 0)
        return HEDDLE_OK;
    return PUT_TYPED(x, "la_set", t, elements(to), &to.a, &ld, &m, &n, &part, &col, &o.re, &o.im,
                     &d.re, &d.im);
}

heddle_status heddle_gpu_random(struct heddle_exec *x, struct la_random r, size_t col0,
                                enum blas_type t, struct blas_block to)
{
    const long long ld = (long long)to.ld;
    const int m = (int)to.m, n = (int)to.n, col = (int)col0, is_symmetric = r.is_symmetric,
              is_hermitian = r.is_hermitian;

    if (to.m == 0 || to.n == 0)
        return HEDDLE_OK;
    return PUT_TYPED(x, "la_random", t, elements(to), &to.a, &ld, &m, &n, &col, &r.key, &r.bump,
                     &is_symmetric, &is_hermitian);
}

heddle_status heddle_gpu_geadd(struct heddle_exec *x, char uplo, size_t col0, enum blas_type t,
                               const void *alpha, struct blas_block a, const void *beta,
                               struct blas_block b)
{
    const long long lda = (long long)a.ld, ldb = (long long)b.ld;
    const int m = (int)b.m, n = (int)b.n, part = part_of(uplo), col = (int)col0;
    const struct pair p = pair_of(t, alpha), q = pair_of(t, beta);

    if (b.m == 0 || b.n == 0)
        return HEDDLE_OK;
    return PUT_TYPED(x, "la_add", t, elements(b), &a.a, &lda, &b.a, &ldb, &m, &n, &part, &col,
                     &p.re, &p.im, &q.re, &q.im);
}

heddle_status heddle_gpu_transpose(struct heddle_exec *x, bool is_conj, enum blas_type t,
                                   struct blas_block from, struct blas_block to)
{
    const long long ldf = (long long)from.ld, ldt = (long long)to.ld;
    const int m = (int)from.m, n = (int)from.n, conj = is_conj && blas_is_complex(t);
    const size_t tiles = ((from.m + TILE - 1) / TILE) * ((from.n + TILE - 1) / TILE);

    if (tiles == 0)
        return HEDDLE_OK;
    return PUT_TYPED(x, "la_transpose", t, SHAPE(la_min(tiles, 1 << 16), 1, THREADS), &from.a, &ldf,
                     &to.a, &ldt, &m, &n, &conj);
}

/* --- norms --------------------------------------------------------------------------- */

enum diag { DIAG_ANY, DIAG_REAL, DIAG_ONE, DIAG_NONE };

static enum diag diag_of(enum heddle_la_kind kind)
{
    return kind == HEDDLE_LA_HERMITIAN         ? DIAG_REAL
           : kind == HEDDLE_LA_UNIT_TRIANGULAR ? DIAG_ONE
                                               : DIAG_ANY;
}

/* Columns of which parts have room in the scratch, `count` parts of each. */
static size_t columns_at_once(size_t count)
{
    return LA_GPU_NORM_SCRATCH / sizeof(double) / 3 / count;
}

/* By columns. With LA_NORM_ROW_SUMS: sums of columns without their diagonal, out[j] +=
 * that of column j. */
static heddle_status norm_columns(struct heddle_exec *x, enum la_norm_what what, enum diag diag,
                                  double weight, int part, size_t col0, enum blas_type t,
                                  struct blas_block a, bool adds, double *out)
{
    const bool is_mirror = what == LA_NORM_ROW_SUMS;
    const size_t rows = la_max(PART_ROWS, (a.m + PART_MOST - 1) / PART_MOST);
    const size_t parts = (a.m + rows - 1) / rows, most = columns_at_once(parts);
    double *scratch = heddle_exec_scratch(x);
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, nrows = (int)rows, count = (int)parts,
              on = is_mirror ? DIAG_NONE : (int)diag,
              kind = is_mirror ? LA_NORM_COLUMN_SUM : (int)what;

    for (size_t j = 0; j < a.n; j += most) {
        const struct blas_block b = blas_part(t, a, 0, j, a.m, la_min(most, a.n - j));
        const int n = (int)b.n, col = (int)(col0 + j), more = adds || j > 0;
        double *at = out + (is_mirror ? col0 + j : 0);

        LA_TRY(PUT_TYPED(x, "la_norm_columns", t, SHAPE(b.n, parts, THREADS), &b.a, &ld, &m, &nrows,
                         &part, &on, &col, &kind, &weight, &scratch));
        LA_TRY(is_mirror
                   ? PUT(x, "la_norm_mirror", SHAPE((b.n + THREADS - 1) / THREADS, 1, THREADS),
                         &scratch, &count, &n, &at)
                   : PUT(x, "la_norm_join", SHAPE(1, 1, THREADS), &scratch, &count, &n, &kind,
                         &more, &at));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_norm(struct heddle_exec *x, enum la_norm_what what,
                              enum heddle_la_kind kind, char uplo, size_t col0, enum blas_type t,
                              struct blas_block a, bool adds, double *out)
{
    const bool is_mirrored = kind == HEDDLE_LA_SYMMETRIC || kind == HEDDLE_LA_HERMITIAN;
    const int part = kind == HEDDLE_LA_GENERAL ? 0 : part_of(uplo);
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n, diag = (int)diag_of(kind), col = (int)col0, more = adds;

    if (what == LA_NORM_ROW_SUMS)
        LA_TRY(PUT_TYPED(x, "la_norm_rows", t, SHAPE((a.m + ROWS - 1) / ROWS, 1, ROWS_THREADS),
                         &a.a, &ld, &m, &n, &part, &diag, &col, &more, &out));
    if (what == LA_NORM_ROW_SUMS && !is_mirrored)
        return HEDDLE_OK;
    return norm_columns(x, what, diag_of(kind), is_mirrored ? 2 : 1, part, col0, t, a, adds, out);
}
