/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_H
#define HEDDLE_LA_H

/*
 * heddle/la.h - dense linear algebra as tasks.
 *
 * A matrix is a heddle_matrix: column-major memory of the program, used in place,
 * or memory of the runtime. The matrix is cut into block columns; every routine submits
 * tasks on these and returns at once. Consecutive routines overlap: a solve may start
 * before the factorisation has ended. heddle_la_wait() waits for a sequence of calls and
 * returns LAPACK's info.
 *
 *   heddle_la *la;
 *   heddle_matrix *a, *b;
 *   heddle_la_create(ctx, NULL, &la);
 *   heddle_matrix_create(la, HEDDLE_F64, n, n, a_ptr, lda, &a);
 *   heddle_matrix_create(la, HEDDLE_F64, n, 1, b_ptr, ldb, &b);
 *   heddle_la_potrf(la, 'L', a);
 *   heddle_la_potrs(la, 'L', a, b);
 *   heddle_la_wait(la, &info);
 *
 * Types:    HEDDLE_F32, F64, C64, C128. Scalars are pointers to elements of the
 *           matrices' type, to its real type where LAPACK says so (herk, her2k).
 * Letters:  as in LAPACK, small ones too: uplo 'U' 'L'; trans 'N' 'T' 'C';
 *           side 'L' 'R'; diag 'N' 'U'; norm 'M' '1' 'I' 'F'. For real types 'C'
 *           is 'T', hemm is symm, and so on.
 * Errors:   for an argument that LAPACK calls illegal a routine returns HEDDLE_EINVAL
 *           and submits nothing; heddle_la_wait() then also returns the number of that
 *           argument, negative, as info. A pivot that is zero or not positive is no
 *           failure of the runtime: info reports it. After a pivot that is not positive
 *           the later calls of the sequence do nothing.
 * Threads:  one thread at a time uses a sequence. Sequences are independent.
 * BLAS:     tasks on cores call the BLAS and LAPACK of the machine, which are
 *           loaded when the first sequence is made: HEDDLE_BLAS_LIBRARY or the
 *           usual names. While a sequence exists, that BLAS uses one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/ctx.h"
#include "heddle/data.h"
#include "heddle/status.h"
#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A sequence of calls. */
typedef struct heddle_la heddle_la;
/* A matrix: a list of block columns. */
typedef struct heddle_matrix heddle_matrix;

/*
 * How the factors of gesv_mixed and posv_mixed are made. Their elements are of single
 * precision; on a GPU the products, which are most of the work, may have less:
 *
 *   SINGLE  full single precision
 *   TF32    10 bits of the inputs' mantissas, which tensor cores multiply fast
 *   HALF    10 bits, and the exponents of halves: faster still
 *   HALVES  each number is two halves, and a product three: nearly single precision
 *
 * Sums are of single precision. Cores always do SINGLE, and so do complex types.
 */
enum heddle_la_low {
    HEDDLE_LA_LOW_AUTO = 0, /* the kind that most likely solves fastest */
    HEDDLE_LA_LOW_SINGLE,
    HEDDLE_LA_LOW_TF32,
    HEDDLE_LA_LOW_HALF,  /* posv_mixed: as TF32 */
    HEDDLE_LA_LOW_HALVES /* posv_mixed with 'U': as SINGLE */
};

/* "auto", "single", "tf32", "half", "halves"; "unknown" for other values. */
HEDDLE_API const char *heddle_la_low_name(enum heddle_la_low low);

/*
 * How many cores make a panel of getrf, and of the routines that use it:
 *
 *   SINGLE  one core, with LAPACK
 *   GANG    as many cores as there are, 16 at most, each on some of the rows
 *
 * The results differ by rounding.
 */
enum heddle_la_panel {
    HEDDLE_LA_PANEL_AUTO = 0, /* a model chooses the faster one for each panel */
    HEDDLE_LA_PANEL_SINGLE,
    HEDDLE_LA_PANEL_GANG
};

/* "auto", "single", "gang"; "unknown" for other values. */
HEDDLE_API const char *heddle_la_panel_name(enum heddle_la_panel panel);

/* Options of a sequence; zero is a default everywhere. */
struct heddle_la_opts {
    size_t size;            /* sizeof(struct heddle_la_opts) */
    size_t nb;              /* width of block columns; 0: by matrix and machine */
    int priority;           /* added to that of every task */
    heddle_devices devices; /* kinds that may run the tasks; 0: any */
    /* The routine that matters most, as "gemm", "potrf" or "getrf": it decides the width
     * of block columns. NULL: not known. All routines may be called. */
    const char *routine;
    enum heddle_la_low low;     /* the factors that gesv_mixed and posv_mixed try first */
    enum heddle_la_panel panel; /* for panels of getrf on cores */
    char *why;                  /* a sentence, should heddle_la_create() fail; may be NULL */
    size_t why_bytes;
};

/* --- a sequence of calls -------------------------------------------------- */

/*
 * Begins a sequence. opts may be NULL.
 *
 * HEDDLE_OK      *la_out is yours; end it with heddle_la_destroy()
 * HEDDLE_EINVAL  ctx is NULL, or opts make no sense
 * HEDDLE_ENOENT  no BLAS or LAPACK on this machine: see heddle_la_missing()
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_create(heddle_ctx *ctx,
                                                          const struct heddle_la_opts *opts,
                                                          heddle_la **la_out);

/* "" when BLAS and LAPACK were found; otherwise one sentence about the libraries that
 * were looked for. Constant. */
HEDDLE_API const char *heddle_la_missing(void);

/* True: this thread is inside of a routine of BLAS or LAPACK that a task of this
 * library called. For libraries that stand in front of the BLAS. */
HEDDLE_API bool heddle_la_is_inside(void);

/* Waits for the tasks of the sequence and ends it. NULL is fine. */
HEDDLE_API void heddle_la_destroy(heddle_la *la);

/*
 * Runs tasks until the tasks of the sequence have ended. *info_out (may be NULL): 0; -i:
 * argument i of the first call that was refused; or the positive info of the first call
 * that has one. After the wait, info is 0 again. Returns the status of the first task
 * that failed, or HEDDLE_OK.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_wait(heddle_la *la, int *info_out);

/* --- matrices -------------------------------------------------------------- */

/*
 * Makes an m x n matrix, column-major at `a`, columns ld elements apart (ld >= m), used in
 * place; with `a` NULL, in memory of the runtime, zero at first, each block column an
 * array of its own. m and n may be 0. When tasks on a device have written block columns of
 * the program's memory, the program sees the result after heddle_wait(), or after it has
 * acquired these block columns (heddle_matrix_column()).
 *
 * HEDDLE_EINVAL     a type that is not one of the four, or ld < m
 * HEDDLE_EOVERFLOW  m, n or ld has more than 31 bits, as BLAS counts
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_matrix_create(heddle_la *la,
                                                              enum heddle_dtype dtype, size_t m,
                                                              size_t n, void *a, size_t ld,
                                                              heddle_matrix **out);
/* The same with block columns of width nb. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_matrix_create_nb(heddle_la *la,
                                                                 enum heddle_dtype dtype, size_t m,
                                                                 size_t n, void *a, size_t ld,
                                                                 size_t nb, heddle_matrix **out);
/* Returns at once; tasks that use the matrix go on. NULL is fine. */
HEDDLE_API void heddle_matrix_destroy(heddle_matrix *a);

/* Rows, columns, the width of block columns, and the type. */
HEDDLE_API size_t heddle_matrix_rows(const heddle_matrix *a);
HEDDLE_API size_t heddle_matrix_cols(const heddle_matrix *a);
HEDDLE_API size_t heddle_matrix_nb(const heddle_matrix *a);
HEDDLE_API enum heddle_dtype heddle_matrix_dtype(const heddle_matrix *a);
/* Block column j as a handle, borrowed; NULL: there is none. */
HEDDLE_API heddle_handle *heddle_matrix_column(heddle_matrix *a, size_t j);

/* Copies the whole matrix from, or to, column-major memory of the program that is not the
 * memory of the matrix; waits. HEDDLE_EINVAL: NULL, or ld < m. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_matrix_put(heddle_la *la, heddle_matrix *a,
                                                           const void *from, size_t ld);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_matrix_get(heddle_la *la, heddle_matrix *a,
                                                           void *to, size_t ld);

/*
 * The same where that memory holds tiles of mb x nb elements, each of them
 * column-major and in one piece. mb and nb are any numbers from 1 on; the width of
 * the matrix's block columns does not matter.
 *
 * Tiles lie as in the descriptors of PLASMA and Chameleon, without gaps: m n
 * elements in all. Let h = m - m % mb and w = n - n % nb be what full tiles cover.
 * First come the full tiles, then those of the last m % mb rows, then those of the
 * last n % nb columns, then the corner; in each of these parts tile columns from
 * left to right, and tiles from top to bottom. A tile of r rows has its columns r
 * elements apart. The first element of the tile in row i and column j (multiples of
 * mb and nb) so is element
 *
 *     j h + i nb            i < h, j < w
 *     h w + j (m - h)       i = h, j < w
 *     m w + i (n - w)       j = w
 *
 * HEDDLE_EINVAL  NULL, or mb or nb is 0
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_matrix_put_tiles(heddle_la *la, heddle_matrix *a,
                                                                 const void *from, size_t mb,
                                                                 size_t nb);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_matrix_get_tiles(heddle_la *la, heddle_matrix *a,
                                                                 void *to, size_t mb, size_t nb);

/* --- products (BLAS-3) ------------------------------------------------------- */

/* C = alpha op(A) op(B) + beta C. beta 0 overwrites, whatever C held. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gemm(heddle_la *la, char transa, char transb,
                                                        const void *alpha, heddle_matrix *a,
                                                        heddle_matrix *b, const void *beta,
                                                        heddle_matrix *c);
/* C = alpha A B + beta C (side 'L') or alpha B A + beta C; A symmetric, hermitian. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_symm(heddle_la *la, char side, char uplo,
                                                        const void *alpha, heddle_matrix *a,
                                                        heddle_matrix *b, const void *beta,
                                                        heddle_matrix *c);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_hemm(heddle_la *la, char side, char uplo,
                                                        const void *alpha, heddle_matrix *a,
                                                        heddle_matrix *b, const void *beta,
                                                        heddle_matrix *c);
/* C = alpha A A^T + beta C ('N') or alpha A^T A + beta C; herk with ^H. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_syrk(heddle_la *la, char uplo, char trans,
                                                        const void *alpha, heddle_matrix *a,
                                                        const void *beta, heddle_matrix *c);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_herk(heddle_la *la, char uplo, char trans,
                                                        const void *alpha, heddle_matrix *a,
                                                        const void *beta, heddle_matrix *c);
/* C = alpha A B^T + alpha B A^T + beta C, or with the first factors transposed. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_syr2k(heddle_la *la, char uplo, char trans,
                                                         const void *alpha, heddle_matrix *a,
                                                         heddle_matrix *b, const void *beta,
                                                         heddle_matrix *c);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_her2k(heddle_la *la, char uplo, char trans,
                                                         const void *alpha, heddle_matrix *a,
                                                         heddle_matrix *b, const void *beta,
                                                         heddle_matrix *c);
/* B = alpha op(A) B ('L') or alpha B op(A); trsm with the inverse of A. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trmm(heddle_la *la, char side, char uplo,
                                                        char trans, char diag, const void *alpha,
                                                        heddle_matrix *a, heddle_matrix *b);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trsm(heddle_la *la, char side, char uplo,
                                                        char trans, char diag, const void *alpha,
                                                        heddle_matrix *a, heddle_matrix *b);
/* op(A) X = B with a triangle. info: the first zero on its diagonal; then B is as it was. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trtrs(heddle_la *la, char uplo, char trans,
                                                         char diag, heddle_matrix *a,
                                                         heddle_matrix *b);

/* --- Cholesky --------------------------------------------------------------- */

/* A = L L^H or U^H U. info: the order of the leading minor that is not positive. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_potrf(heddle_la *la, char uplo,
                                                         heddle_matrix *a);
/* A X = B with potrf's factor in a; posv: both. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_potrs(heddle_la *la, char uplo, heddle_matrix *a,
                                                         heddle_matrix *b);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_posv(heddle_la *la, char uplo, heddle_matrix *a,
                                                        heddle_matrix *b);
/* The inverse of A from potrf's factor; of a triangle (info: a zero on the
 * diagonal); and U U^H or L^H L. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_potri(heddle_la *la, char uplo,
                                                         heddle_matrix *a);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trtri(heddle_la *la, char uplo, char diag,
                                                         heddle_matrix *a);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_lauum(heddle_la *la, char uplo,
                                                         heddle_matrix *a);

/* --- LU ------------------------------------------------------------------------ */

/* P A = L U by partial pivoting; ipiv has min(m, n) numbers, LAPACK's (from 1),
 * and belongs to the sequence until it has been waited for. Later calls of the
 * sequence that read or overwrite them come after this one; another sequence waits
 * for this one first. info: the first pivot that is zero; the factorisation is
 * complete. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_getrf(heddle_la *la, heddle_matrix *a,
                                                         int *ipiv);
/* A = L U without pivoting. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_getrf_nopiv(heddle_la *la, heddle_matrix *a);
/* op(A) X = B with the factors in a; ipiv NULL: those of getrf_nopiv. Pivots outside of
 * 1 .. n are an illegal argument. gesv: both (after a pivot that is zero the solve does
 * nothing). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_getrs(heddle_la *la, char trans,
                                                         heddle_matrix *a, const int *ipiv,
                                                         heddle_matrix *b);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gesv(heddle_la *la, heddle_matrix *a, int *ipiv,
                                                        heddle_matrix *b);
/* Exchanges rows i and ipiv[i] (from 1) of A, for i = 0 .. k - 1; in the opposite order,
 * from the last one, when is_backward. Pivots outside of 1 .. m are an illegal argument,
 * and nothing is done. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_laswp(heddle_la *la, heddle_matrix *a,
                                                         const int *ipiv, size_t k,
                                                         bool is_backward);

/* --- QR ------------------------------------------------------------------------ */

/* A = Q R as LAPACK's geqrf leaves it. t is nb x min(m, n) with block columns as
 * wide as a's (heddle_matrix_nb()): block column k gets the upper triangular
 * factor of block reflector k, whose diagonal is LAPACK's tau. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_geqrf(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t);
/* C = op(Q) C ('L') or C op(Q), Q from geqrf; trans 'N', or 'C' ('T' if real). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_ormqr(heddle_la *la, char side, char trans,
                                                         heddle_matrix *a, heddle_matrix *t,
                                                         heddle_matrix *c);
/* The first columns of Q, as many as q has. q may be a. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_orgqr(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t, heddle_matrix *q);
/* A = L Q as LAPACK's gelqf leaves it. t is nb x min(m, n), nb that of a. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gelqf(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_ormlq(heddle_la *la, char side, char trans,
                                                         heddle_matrix *a, heddle_matrix *t,
                                                         heddle_matrix *c);
/* The first rows of Q, as many as q has. q may be a. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_orglq(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t, heddle_matrix *q);
/* The least squares solution of A X = B (m >= n), or that of least norm; trans
 * 'N', or 'C' ('T' if real) for A^H. A is overwritten by its factors, B (max(m, n)
 * rows) by X in its first rows. A has full rank: info is a diagonal element of the
 * triangle that is zero. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gels(heddle_la *la, char trans, heddle_matrix *a,
                                                        heddle_matrix *b);

/* How a tall and narrow matrix is factorised. */
enum heddle_la_tall {
    HEDDLE_LA_TALL_AUTO = 0,
    HEDDLE_LA_TALL_FLAT,     /* Householder, one column of reflectors: geqrf */
    HEDDLE_LA_TALL_TREE,     /* groups of rows, then pairs: TSQR */
    HEDDLE_LA_TALL_CHOLESKY, /* LU, then Cholesky twice (LU-CholeskyQR2) */
    HEDDLE_LA_TALL_SKETCH    /* R of sums of rows with signs, then Cholesky; when A
                             has no full rank, LU as above */
};
/* A = Q R, m >= n: a becomes Q (explicit), r (n x n) gets R, its lower part 0. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_tsqr(heddle_la *la, enum heddle_la_tall how,
                                                        heddle_matrix *a, heddle_matrix *r);

/* --- norms, copies, test matrices ------------------------------------------------ */

/* Which elements of a matrix are read. */
enum heddle_la_kind {
    HEDDLE_LA_GENERAL = 0,
    HEDDLE_LA_SYMMETRIC, /* the triangle uplo, mirrored */
    HEDDLE_LA_HERMITIAN,
    HEDDLE_LA_TRIANGULAR,     /* the triangle (or trapezoid) uplo */
    HEDDLE_LA_UNIT_TRIANGULAR /* with ones on its diagonal */
};
/* The norm 'M' (largest element), '1', 'I' or 'F'. *norm_out is valid after the sequence
 * was waited for; it is NaN when an element is NaN. uplo is not read when the kind is
 * GENERAL. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_norm(heddle_la *la, char norm,
                                                        enum heddle_la_kind kind, char uplo,
                                                        heddle_matrix *a, double *norm_out);
/* B = A, all of it (uplo 'A') or a triangle; types may differ: that rounds. info:
 * 1 when a finite element has no finite image. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_lacpy(heddle_la *la, char uplo, heddle_matrix *a,
                                                         heddle_matrix *b);
/* B = A^T ('T') or A^H ('C'). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_transpose(heddle_la *la, char trans,
                                                             heddle_matrix *a, heddle_matrix *b);
/* B = alpha A + beta B, all or a triangle. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_geadd(heddle_la *la, char uplo,
                                                         const void *alpha, heddle_matrix *a,
                                                         const void *beta, heddle_matrix *b);
/* Off-diagonal elements = alpha, diagonal = beta, in all or a triangle. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_laset(heddle_la *la, char uplo,
                                                         const void *alpha, const void *beta,
                                                         heddle_matrix *a);

/* Elements uniform in (-0.5, 0.5), both parts, the same for any block width; with
 * `bump` added to the diagonal. kind GENERAL, SYMMETRIC or HERMITIAN (both
 * triangles are set). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_random(heddle_la *la, enum heddle_la_kind kind,
                                                          double bump, uint64_t seed,
                                                          heddle_matrix *a);
/* Singular values (kind GENERAL) or eigenvalues (HERMITIAN, all positive) from 1
 * down to 1 / cond in geometric steps, random vectors. m >= n. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_latms(heddle_la *la, enum heddle_la_kind kind,
                                                         double cond, uint64_t seed,
                                                         heddle_matrix *a);

/* --- the list ------------------------------------------------------------------ */

/* A routine of the library: heddle_la_<name>(). */
struct heddle_la_routine {
    const char *name;
    const char *what; /* what the routine does */
    /* Real operations on real types, of a matrix m x n and r right-hand sides (products: r
     * columns of the left factor); 0: the routine moves numbers, or it depends on these. */
    double (*flops)(double m, double n, double r);
};

/* All of them, i = 0, 1 and so on; NULL behind the last one. */
HEDDLE_API const struct heddle_la_routine *heddle_la_get_routine(unsigned i);

#ifdef __cplusplus
}
#endif

/* What belongs to it as well. */
#include "heddle/la_eig.h"
#include "heddle/la_mixed.h"

#endif /* HEDDLE_LA_H */
