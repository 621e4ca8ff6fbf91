/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * small: kernels of our own beside the panels: rows that change places, diagonals,
 * triangles.
 */
#include "la/cuda/kernel.h"

heddle_status heddle_la_clear(struct la_gpu *g, struct blas_block b)
{
    const long long ld = (long long)b.ld;
    const int m = (int)b.m, n = (int)b.n;

    if (m == 0 || n == 0)
        return HEDDLE_OK;
    return PUT(g, "la_clear", la_elements(b.m, b.n), &b.a, &ld, &m, &n);
}

/* At most LA_GPU_NB pivots. */
enum { ROWS_THREADS = 512 };

static heddle_status swap_some(struct la_gpu *g, struct blas_block a, const int *ipiv, size_t nk,
                               size_t row0, bool is_backward)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, count = (int)nk, first = (int)row0, back = is_backward;

    return PUT_SIZED(g, "la_swap",
                     la_shape(la_min(a.n, 256), nk <= 64 ? 128 : 512, 5 * nk * sizeof(int)), &a.a,
                     &ld, &n, &ipiv, &count, &first, &back);
}

heddle_status heddle_gpu_swap(struct la_gpu *g, struct blas_block a, const int *ipiv, size_t nk,
                              size_t row0, bool is_backward)
{
    for (size_t done = 0; done < nk && a.n > 0;) {
        const size_t n = la_min(LA_GPU_NB, nk - done), at = is_backward ? nk - done - n : done;

        LA_TRY(swap_some(g, blas_part(g->t, a, at, 0, a.m - at, a.n), ipiv + at, n, row0 + at,
                         is_backward));
        done += n;
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_rows(struct la_gpu *g, struct blas_block a, const int *from)
{
    void *scratch = heddle_exec_scratch(g->x);
    const long long ld = (long long)a.ld;
    const int m = (int)a.m;
    size_t w;

    if (a.m == 0 || a.n == 0)
        return HEDDLE_OK;
    w = LA_GPU_SCRATCH / (a.m * blas_bytes(g->t));
    if (w == 0)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < a.n; j += w) {
        const struct blas_block p = blas_part(g->t, a, 0, j, a.m, la_min(w, a.n - j));
        const int n = (int)p.n;

        for (int is_back = 0; is_back < 2; is_back++)
            LA_TRY(PUT_SIZED(g, "la_rows", la_shape(p.n, ROWS_THREADS, 0), &p.a, &ld, &m, &n, &from,
                             &scratch, &is_back));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_zeros(struct la_gpu *g, struct blas_block a, size_t row0, int *found)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, first = (int)row0;

    return PUT(g, "la_zeros", la_shape(1, 256, 0), &a.a, &ld, &n, &first, &found);
}

heddle_status heddle_gpu_no_roots(struct la_gpu *g, struct blas_block a, int *info)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n;

    return PUT(g, "la_no_roots", la_shape(1, 256, 0), &a.a, &ld, &n, &info);
}

heddle_status heddle_gpu_identity(struct la_gpu *g, struct blas_block a, size_t column)
{
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n, first = (int)column;

    if (a.m == 0 || a.n == 0)
        return HEDDLE_OK;
    return PUT(g, "la_eye", la_elements(a.m, a.n), &a.a, &ld, &m, &n, &first);
}

heddle_status heddle_la_copy_triangle(struct la_gpu *g, char uplo, char diag,
                                      struct blas_block from, struct blas_block to)
{
    const long long ldx = (long long)from.ld, lda = (long long)to.ld;
    const int n = (int)to.n, is_upper = uplo == 'U', is_unit = diag == 'U';

    return PUT_SIZED(g, "la_tri", la_elements(to.n, to.n), &from.a, &ldx, &n, &to.a, &lda,
                     &is_upper, &is_unit);
}

heddle_status heddle_gpu_scale(struct la_gpu *g, bool is_hermitian, char uplo, const void *beta,
                               struct blas_block a)
{
    const bool is_single = blas_real_bytes(g->t) == 4,
               is_pair = blas_is_complex(g->t) && !is_hermitian;
    const float *f = beta;
    const double *d = beta;
    const double re = is_single ? f[0] : d[0], im = !is_pair ? 0 : is_single ? f[1] : d[1];
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, is_upper = uplo == 'U', is_real = is_hermitian;

    return PUT(g, "la_beta", la_elements(a.n, a.n), &a.a, &ld, &n, &is_upper, &re, &im, &is_real);
}

/* --- triangles -------------------------------------------------------------------- */

heddle_status heddle_gpu_has_squares(struct la_gpu *g, size_t n, unsigned count)
{
    void *function = NULL;

    if (n > LA_GPU_SCRATCH || (n * n * blas_bytes(g->t) + 255) * count > LA_GPU_SCRATCH)
        return HEDDLE_EDECLINED;
    return heddle_la_kernel(g, false, "la_zero", &function); /* so all are there */
}

heddle_status heddle_gpu_trtri(struct la_gpu *g, char uplo, char diag, struct blas_block a)
{
    size_t at = 0;
    const struct blas_block x = la_gpu_work(g, &at, a.n, a.n);

    LA_TRY(heddle_gpu_identity(g, x, 0));
    LA_TRY(heddle_gpu_trsm(g, 'L', uplo, 'N', diag, heddle_blas_one(g->t), a, x));
    return heddle_la_copy_triangle(g, uplo, diag, x, a);
}

heddle_status heddle_gpu_lauum(struct la_gpu *g, char uplo, struct blas_block a)
{
    size_t at = 0;
    const struct blas_block x = la_gpu_work(g, &at, a.n, a.n);

    LA_TRY(heddle_gpu_identity(g, x, 0));
    LA_TRY(heddle_la_copy_triangle(g, uplo, 'N', a, x));
    return heddle_gpu_syrk(g, true, uplo, uplo == 'U' ? 'N' : 'C', heddle_blas_one(g->t), x,
                           heddle_blas_zero(g->t), a);
}
