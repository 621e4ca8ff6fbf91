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
    char *why;                  /* gets a sentence when heddle_la_create() fails; may be NULL */
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
/* C = alpha A B + beta C (side 'L') or C = alpha B A + beta C ('R'). symm: A is symmetric;
 * hemm: A is hermitian. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_symm(heddle_la *la, char side, char uplo,
                                                        const void *alpha, heddle_matrix *a,
                                                        heddle_matrix *b, const void *beta,
                                                        heddle_matrix *c);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_hemm(heddle_la *la, char side, char uplo,
                                                        const void *alpha, heddle_matrix *a,
                                                        heddle_matrix *b, const void *beta,
                                                        heddle_matrix *c);
/* C = alpha A A^T + beta C (trans 'N') or C = alpha A^T A + beta C; herk has A^H instead of
 * A^T. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_syrk(heddle_la *la, char uplo, char trans,
                                                        const void *alpha, heddle_matrix *a,
                                                        const void *beta, heddle_matrix *c);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_herk(heddle_la *la, char uplo, char trans,
                                                        const void *alpha, heddle_matrix *a,
                                                        const void *beta, heddle_matrix *c);
/* C = alpha A B^T + alpha B A^T + beta C (trans 'N') or C = alpha A^T B + alpha B^T A + beta C;
 * her2k has ^H instead of ^T, and the conjugate of alpha in the second product. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_syr2k(heddle_la *la, char uplo, char trans,
                                                         const void *alpha, heddle_matrix *a,
                                                         heddle_matrix *b, const void *beta,
                                                         heddle_matrix *c);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_her2k(heddle_la *la, char uplo, char trans,
                                                         const void *alpha, heddle_matrix *a,
                                                         heddle_matrix *b, const void *beta,
                                                         heddle_matrix *c);
/* B = alpha op(A) B (side 'L') or B = alpha B op(A) ('R'), A a triangle; trsm has the inverse
 * of op(A) instead. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trmm(heddle_la *la, char side, char uplo,
                                                        char trans, char diag, const void *alpha,
                                                        heddle_matrix *a, heddle_matrix *b);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trsm(heddle_la *la, char side, char uplo,
                                                        char trans, char diag, const void *alpha,
                                                        heddle_matrix *a, heddle_matrix *b);
/* Solves op(A) X = B, A a triangle; B becomes X. info: the first zero on the diagonal of A;
 * then B is as it was. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trtrs(heddle_la *la, char uplo, char trans,
                                                         char diag, heddle_matrix *a,
                                                         heddle_matrix *b);

/* --- Cholesky --------------------------------------------------------------- */

/* The factorisation A = L L^H or A = U^H U. info: the order of the leading minor that is not
 * positive. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_potrf(heddle_la *la, char uplo,
                                                         heddle_matrix *a);
/* potrs solves A X = B with potrf's factor in `a`; posv factorises A and solves. B becomes X. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_potrs(heddle_la *la, char uplo, heddle_matrix *a,
                                                         heddle_matrix *b);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_posv(heddle_la *la, char uplo, heddle_matrix *a,
                                                        heddle_matrix *b);
/* potri: the inverse of A, from potrf's factor. trtri: the inverse of a triangle; info: the
 * first zero on its diagonal. lauum: U U^H or L^H L, for a triangle U or L. All in place. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_potri(heddle_la *la, char uplo,
                                                         heddle_matrix *a);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_trtri(heddle_la *la, char uplo, char diag,
                                                         heddle_matrix *a);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_lauum(heddle_la *la, char uplo,
                                                         heddle_matrix *a);

/* --- LU ------------------------------------------------------------------------ */

/* The factorisation P A = L U with partial pivoting. ipiv gets min(m, n) row numbers as
 * LAPACK's getrf writes them (from 1). The array belongs to the sequence until
 * heddle_la_wait(): later calls of the sequence that read or overwrite the array come after
 * this one; a program that passes it to another sequence waits for this one first. info: the
 * first pivot that is zero; the factorisation is complete all the same. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_getrf(heddle_la *la, heddle_matrix *a,
                                                         int *ipiv);
/* The factorisation A = L U without pivoting. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_getrf_nopiv(heddle_la *la, heddle_matrix *a);
/* getrs solves op(A) X = B with the factors in `a`; ipiv NULL: factors of getrf_nopiv. A
 * pivot outside of 1 .. n is an illegal argument. gesv factorises A and solves; after a pivot
 * that is zero it does not solve. B becomes X. */
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

/* The factorisation A = Q R, in `a` as LAPACK's geqrf leaves it. t is nb x min(m, n) with
 * block columns as wide as those of `a` (heddle_matrix_nb()): block column k gets the upper
 * triangular factor of block reflector k, whose diagonal is LAPACK's tau. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_geqrf(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t);
/* C = op(Q) C (side 'L') or C = C op(Q) ('R'), with Q from geqrf; trans is 'N', or 'C' ('T'
 * for real types). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_ormqr(heddle_la *la, char side, char trans,
                                                         heddle_matrix *a, heddle_matrix *t,
                                                         heddle_matrix *c);
/* The first columns of Q, as many as q has. q may be a. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_orgqr(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t, heddle_matrix *q);
/* The factorisation A = L Q, in `a` as LAPACK's gelqf leaves it. t is nb x min(m, n), with the
 * nb of `a`. ormlq is to gelqf what ormqr is to geqrf. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gelqf(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_ormlq(heddle_la *la, char side, char trans,
                                                         heddle_matrix *a, heddle_matrix *t,
                                                         heddle_matrix *c);
/* The first rows of Q, as many as q has. q may be a. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_orglq(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *t, heddle_matrix *q);
/* The least squares solution of op(A) X = B, or where that system has fewer equations than
 * unknowns, its solution of least norm; trans is 'N', or 'C' ('T' for real types) for A^H. A is
 * overwritten by its factors; B has max(m, n) rows, and X is in the first of them. A must have
 * full rank: otherwise info is the first diagonal element of the triangle that is zero. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gels(heddle_la *la, char trans, heddle_matrix *a,
                                                        heddle_matrix *b);

/* How a tall and narrow matrix is factorised. */
enum heddle_la_tall {
    HEDDLE_LA_TALL_AUTO = 0,
    HEDDLE_LA_TALL_FLAT,     /* Householder, one column of reflectors: geqrf */
    HEDDLE_LA_TALL_TREE,     /* groups of rows, then pairs: TSQR */
    HEDDLE_LA_TALL_CHOLESKY, /* LU, then Cholesky twice (LU-CholeskyQR2) */
    HEDDLE_LA_TALL_SKETCH    /* R of a few sums of rows with random signs, then Cholesky;
                             when A has no full rank, as CHOLESKY */
};
/* The factorisation A = Q R, m >= n: `a` becomes Q itself, and r (n x n) gets R, with zeros
 * below the diagonal. */
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
/* B = A, all of it (uplo 'A') or a triangle. B may have another type than A; then elements are
 * rounded. info: 1 when a finite element is too large for the type of B. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_lacpy(heddle_la *la, char uplo, heddle_matrix *a,
                                                         heddle_matrix *b);
/* B = A^T ('T') or A^H ('C'). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_transpose(heddle_la *la, char trans,
                                                             heddle_matrix *a, heddle_matrix *b);
/* B = alpha A + beta B, all of it (uplo 'A') or a triangle. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_geadd(heddle_la *la, char uplo,
                                                         const void *alpha, heddle_matrix *a,
                                                         const void *beta, heddle_matrix *b);
/* Sets the elements of A, all of them (uplo 'A') or a triangle: beta on the diagonal, alpha
 * elsewhere. */
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

/* The other two headers of dense linear algebra. */
#include "heddle/la_eig.h"
#include "heddle/la_mixed.h"

#endif /* HEDDLE_LA_H */
