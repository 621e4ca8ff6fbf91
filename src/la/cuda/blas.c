/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blas: cuBLAS and cuSOLVER, for the four types; on a core the functions of blas.h.
 *
 * Libraries  belong to the device, which closes them at its end: so it is asked for
 *            their functions each time, which it keeps.
 * Sizes      are int there; a matrix has none that is larger (matrix.c).
 */
#include <stdio.h>

#include "heddle/cuda.h"
#include "la/cuda/cuda.h"

enum fn {
    FN_GEMM,
    FN_GEMV,
    FN_GEMM_MANY,
    FN_SYMM,
    FN_HEMM,
    FN_SYRK,
    FN_HERK,
    FN_SYR2K,
    FN_HER2K,
    FN_TRMM,
    FN_TRSM,
    FN_GEAM,
    FN_POTRF_SIZE,
    FN_POTRF,
    FN_GETRF_SIZE,
    FN_GETRF,
    FN_GEQRF_SIZE,
    FN_GEQRF,
    FN_COUNT
};

/* A function, and its name between prefix and letter, and behind it; real types may
 * have another one. */
#define BLAS_FN(real, complex)                                                                     \
    {                                                                                              \
        HEDDLE_CUDA_CUBLAS,                                                                        \
        {                                                                                          \
            "cublasS" real, "cublasD" real, "cublasC" complex, "cublasZ" complex                   \
        }                                                                                          \
    }
#define SOLVER_FN(name)                                                                            \
    {                                                                                              \
        HEDDLE_CUDA_CUSOLVER,                                                                      \
        {                                                                                          \
            "cusolverDnS" name, "cusolverDnD" name, "cusolverDnC" name, "cusolverDnZ" name         \
        }                                                                                          \
    }

static const struct {
    enum heddle_cuda_library library;
    const char *name[4];
} table[FN_COUNT] = {
    [FN_GEMM] = BLAS_FN("gemm_v2", "gemm_v2"),
    [FN_GEMV] = BLAS_FN("gemv_v2", "gemv_v2"),
    [FN_GEMM_MANY] = BLAS_FN("gemmStridedBatched", "gemmStridedBatched"),
    [FN_SYMM] = BLAS_FN("symm_v2", "symm_v2"),
    [FN_HEMM] = BLAS_FN("symm_v2", "hemm_v2"),
    [FN_SYRK] = BLAS_FN("syrk_v2", "syrk_v2"),
    [FN_HERK] = BLAS_FN("syrk_v2", "herk_v2"),
    [FN_SYR2K] = BLAS_FN("syr2k_v2", "syr2k_v2"),
    [FN_HER2K] = BLAS_FN("syr2k_v2", "her2k_v2"),
    [FN_TRMM] = BLAS_FN("trmm_v2", "trmm_v2"),
    [FN_TRSM] = BLAS_FN("trsm_v2", "trsm_v2"),
    [FN_GEAM] = BLAS_FN("geam", "geam"),
    [FN_POTRF_SIZE] = SOLVER_FN("potrf_bufferSize"),
    [FN_POTRF] = SOLVER_FN("potrf"),
    [FN_GETRF_SIZE] = SOLVER_FN("getrf_bufferSize"),
    [FN_GETRF] = SOLVER_FN("getrf"),
    [FN_GEQRF_SIZE] = SOLVER_FN("geqrf_bufferSize"),
    [FN_GEQRF] = SOLVER_FN("geqrf"),
};

typedef int (*gemm_fn)(void *, int, int, int, int, int, const void *, const void *, int,
                       const void *, int, const void *, void *, int);
typedef int (*gemv_fn)(void *, int, int, int, const void *, const void *, int, const void *, int,
                       const void *, void *, int);
typedef int (*gemm_many_fn)(void *, int, int, int, int, int, const void *, const void *, int,
                            long long, const void *, int, long long, const void *, void *, int,
                            long long, int);
typedef int (*symm_fn)(void *, int, int, int, int, const void *, const void *, int, const void *,
                       int, const void *, void *, int);
typedef int (*syrk_fn)(void *, int, int, int, int, const void *, const void *, int, const void *,
                       void *, int);
typedef int (*syr2k_fn)(void *, int, int, int, int, const void *, const void *, int, const void *,
                        int, const void *, void *, int);
typedef int (*trmm_fn)(void *, int, int, int, int, int, int, const void *, const void *, int,
                       const void *, int, void *, int);
typedef int (*trsm_fn)(void *, int, int, int, int, int, int, const void *, const void *, int,
                       void *, int);
typedef int (*geam_fn)(void *, int, int, int, int, const void *, const void *, int, const void *,
                       const void *, int, void *, int);
typedef int (*potrf_size_fn)(void *, int, int, void *, int, int *);
typedef int (*potrf_fn)(void *, int, int, void *, int, void *, int, int *);
typedef int (*factor_size_fn)(void *, int, int, void *, int, int *);
typedef int (*getrf_fn)(void *, int, int, void *, int, void *, int *, int *);
typedef int (*geqrf_fn)(void *, int, int, void *, int, void *, void *, int, int *);

/* 0: the library has no such function. */
static uintptr_t find(const struct la_gpu *g, enum fn fn)
{
    return (uintptr_t)heddle_cuda_symbol(g->x, table[fn].library, table[fn].name[g->t]);
}

static heddle_status result(const struct la_gpu *g, enum fn fn, int code)
{
    char text[80];

    if (code == 0)
        return HEDDLE_OK;
    snprintf(text, sizeof(text), "%s refuses with its status %d", table[fn].name[g->t], code);
    return heddle_exec_fail(g->x, HEDDLE_ETASK, text);
}

heddle_status heddle_gpu_open(struct la_gpu *g, struct heddle_exec *x, enum blas_type t)
{
    heddle_status st;

    *g = (struct la_gpu){.x = x, .t = t};
    st = heddle_cuda_handle(x, HEDDLE_CUDA_CUBLAS, &g->blas);
    if (st == HEDDLE_ENOENT || st == HEDDLE_ENOSYS)
        return HEDDLE_EDECLINED;
    if (st == HEDDLE_OK && find(g, FN_GEMM_MANY) == 0)
        return HEDDLE_EDECLINED; /* the youngest: who has it has the others */
    return st;
}

static bool is_core(const struct la_gpu *g)
{
    return g->x == NULL;
}

static int op_of(const struct la_gpu *g, char trans)
{
    return trans == 'N' ? 0 : trans == 'C' && blas_is_complex(g->t) ? 2 : 1;
}

static int ld_of(struct blas_block b)
{
    return b.ld > 0 ? (int)b.ld : 1;
}

/* cuBLAS reads both halves of a complex scalar at once, aligned; ours are where a task
 * has them. */
struct scalar {
    _Alignas(16) char at[16];
};

static struct scalar scalar(const struct la_gpu *g, const void *from)
{
    struct scalar s = {{0}};

    memcpy(s.at, from, blas_bytes(g->t));
    return s;
}

/* --- cuBLAS ---------------------------------------------------------------------- */

heddle_status heddle_gpu_add(struct la_gpu *g, char trans, const void *alpha, struct blas_block a,
                             const void *beta, struct blas_block b)
{
    const geam_fn fn = (geam_fn)find(g, FN_GEAM);

    if (b.m == 0 || b.n == 0)
        return HEDDLE_OK;
    return result(g, FN_GEAM,
                  fn(g->blas, 0, op_of(g, trans), (int)b.m, (int)b.n, scalar(g, beta).at, b.a,
                     ld_of(b), scalar(g, alpha).at, a.a, ld_of(a), b.a, ld_of(b)));
}

heddle_status heddle_gpu_gemm(struct la_gpu *g, char ta, char tb, const void *alpha,
                              struct blas_block a, struct blas_block b, const void *beta,
                              struct blas_block c)
{
    const size_t k = ta == 'N' ? a.n : a.m;

    if (is_core(g)) {
        heddle_blas_gemm(g->t, ta, tb, alpha, a, b, beta, c);
        return HEDDLE_OK;
    }
    if (c.m == 0 || c.n == 0)
        return HEDDLE_OK;
    if (k == 0)
        return heddle_gpu_add(g, 'N', heddle_blas_zero(g->t), c, beta, c);
    if (c.n == 1 && tb == 'N' && find(g, FN_GEMV) != 0)
        return result(g, FN_GEMV,
                      ((gemv_fn)find(g, FN_GEMV))(g->blas, op_of(g, ta), (int)a.m, (int)a.n,
                                                  scalar(g, alpha).at, a.a, ld_of(a), b.a, 1,
                                                  scalar(g, beta).at, c.a, 1));
    if (g->is_tf32 && g->t == BLAS_S) {
        const heddle_status st = heddle_gpu_gemm_tf32(g, ta, tb, alpha, a, b, beta, c);

        if (st != HEDDLE_ENOENT)
            return st;
    }
    return result(g, FN_GEMM,
                  ((gemm_fn)find(g, FN_GEMM))(g->blas, op_of(g, ta), op_of(g, tb), (int)c.m,
                                              (int)c.n, (int)k, scalar(g, alpha).at, a.a, ld_of(a),
                                              b.a, ld_of(b), scalar(g, beta).at, c.a, ld_of(c)));
}

heddle_status heddle_gpu_gemm_many(struct la_gpu *g, size_t s, const void *alpha,
                                   struct blas_block a, size_t step_a, struct blas_block b,
                                   size_t step_b, struct blas_block c, size_t step_c, size_t n)
{
    const gemm_many_fn fn = (gemm_many_fn)find(g, FN_GEMM_MANY);

    return result(g, FN_GEMM_MANY,
                  fn(g->blas, 0, 0, (int)s, (int)s, (int)s, scalar(g, alpha).at, a.a, ld_of(a),
                     (long long)step_a, b.a, ld_of(b), (long long)step_b,
                     scalar(g, heddle_blas_zero(g->t)).at, c.a, ld_of(c), (long long)step_c,
                     (int)n));
}

heddle_status heddle_gpu_symm(struct la_gpu *g, bool is_hermitian, char side, char uplo,
                              const void *alpha, struct blas_block a, struct blas_block b,
                              const void *beta, struct blas_block c)
{
    const enum fn fn = is_hermitian ? FN_HEMM : FN_SYMM;

    if (is_core(g)) {
        heddle_blas_symm(g->t, is_hermitian, side, uplo, alpha, a, b, beta, c);
        return HEDDLE_OK;
    }
    if (c.m == 0 || c.n == 0)
        return HEDDLE_OK;
    return result(g, fn,
                  ((symm_fn)find(g, fn))(g->blas, side == 'R', uplo == 'U', (int)c.m, (int)c.n,
                                         scalar(g, alpha).at, a.a, ld_of(a), b.a, ld_of(b),
                                         scalar(g, beta).at, c.a, ld_of(c)));
}

/* A sum of nothing, where cuBLAS does not say what it does. */
static heddle_status scale_only(struct la_gpu *g, bool is_hermitian, char uplo, const void *beta,
                                struct blas_block c)
{
    return memcmp(beta, heddle_blas_one(g->t),
                  is_hermitian ? blas_real_bytes(g->t) : blas_bytes(g->t)) == 0
               ? HEDDLE_OK
               : heddle_gpu_scale(g, is_hermitian, uplo, beta, c);
}

heddle_status heddle_gpu_syrk(struct la_gpu *g, bool is_hermitian, char uplo, char trans,
                              const void *alpha, struct blas_block a, const void *beta,
                              struct blas_block c)
{
    const enum fn fn = is_hermitian ? FN_HERK : FN_SYRK;
    const size_t k = trans == 'N' ? a.n : a.m;

    if (is_core(g)) {
        heddle_blas_syrk(g->t, is_hermitian, uplo, trans, alpha, a, beta, c);
        return HEDDLE_OK;
    }
    if (c.n == 0)
        return HEDDLE_OK;
    if (k == 0)
        return scale_only(g, is_hermitian, uplo, beta, c);
    return result(g, fn,
                  ((syrk_fn)find(g, fn))(g->blas, uplo == 'U', op_of(g, trans), (int)c.n, (int)k,
                                         is_hermitian ? alpha : scalar(g, alpha).at, a.a, ld_of(a),
                                         is_hermitian ? beta : scalar(g, beta).at, c.a, ld_of(c)));
}

heddle_status heddle_gpu_syr2k(struct la_gpu *g, bool is_hermitian, char uplo, char trans,
                               const void *alpha, struct blas_block a, struct blas_block b,
                               const void *beta, struct blas_block c)
{
    const enum fn fn = is_hermitian ? FN_HER2K : FN_SYR2K;
    const size_t k = trans == 'N' ? a.n : a.m;

    if (is_core(g)) {
        heddle_blas_syr2k(g->t, is_hermitian, uplo, trans, alpha, a, b, beta, c);
        return HEDDLE_OK;
    }
    if (c.n == 0)
        return HEDDLE_OK;
    if (k == 0)
        return scale_only(g, is_hermitian, uplo, beta, c);
    return result(g, fn,
                  ((syr2k_fn)find(g, fn))(g->blas, uplo == 'U', op_of(g, trans), (int)c.n, (int)k,
                                          scalar(g, alpha).at, a.a, ld_of(a), b.a, ld_of(b),
                                          is_hermitian ? beta : scalar(g, beta).at, c.a, ld_of(c)));
}

heddle_status heddle_gpu_trmm_to(struct la_gpu *g, char side, char uplo, char trans, char diag,
                                 const void *alpha, struct blas_block a, struct blas_block b,
                                 struct blas_block c)
{
    const trmm_fn fn = (trmm_fn)find(g, FN_TRMM);

    if (b.m == 0 || b.n == 0)
        return HEDDLE_OK;
    return result(g, FN_TRMM,
                  fn(g->blas, side == 'R', uplo == 'U', op_of(g, trans), diag == 'U', (int)b.m,
                     (int)b.n, scalar(g, alpha).at, a.a, ld_of(a), b.a, ld_of(b), c.a, ld_of(c)));
}

heddle_status heddle_gpu_trmm(struct la_gpu *g, char side, char uplo, char trans, char diag,
                              const void *alpha, struct blas_block a, struct blas_block b)
{
    if (is_core(g)) {
        heddle_blas_trmm(g->t, side, uplo, trans, diag, alpha, a, b);
        return HEDDLE_OK;
    }
    return heddle_gpu_trmm_to(g, side, uplo, trans, diag, alpha, a, b, b);
}

heddle_status heddle_gpu_trsm(struct la_gpu *g, char side, char uplo, char trans, char diag,
                              const void *alpha, struct blas_block a, struct blas_block b)
{
    if (is_core(g)) {
        heddle_blas_trsm(g->t, side, uplo, trans, diag, alpha, a, b);
        return HEDDLE_OK;
    }
    if (b.m == 0 || b.n == 0)
        return HEDDLE_OK;
    return result(g, FN_TRSM,
                  ((trsm_fn)find(g, FN_TRSM))(g->blas, side == 'R', uplo == 'U', op_of(g, trans),
                                              diag == 'U', (int)b.m, (int)b.n, scalar(g, alpha).at,
                                              a.a, ld_of(a), b.a, ld_of(b)));
}

/* --- cuSOLVER -------------------------------------------------------------------- */

static heddle_status open_solver(struct la_gpu *g, enum fn size, enum fn fn)
{
    return find(g, size) == 0 || find(g, fn) == 0 ||
                   heddle_cuda_handle(g->x, HEDDLE_CUDA_CUSOLVER, &g->solver) != HEDDLE_OK
               ? HEDDLE_EDECLINED
               : HEDDLE_OK;
}

heddle_status heddle_gpu_potrf_open(struct la_gpu *g, char uplo, struct blas_block a)
{
    LA_TRY(open_solver(g, FN_POTRF_SIZE, FN_POTRF));
    LA_TRY(heddle_gpu_has_squares(g, a.n, 0)); /* so our kernels are there */
    LA_TRY(result(g, FN_POTRF_SIZE,
                  ((potrf_size_fn)find(g, FN_POTRF_SIZE))(g->solver, uplo == 'U', (int)a.n, a.a,
                                                          ld_of(a), &g->nwork)));
    return (size_t)g->nwork * blas_bytes(g->t) > LA_GPU_SCRATCH ? HEDDLE_EDECLINED : HEDDLE_OK;
}

heddle_status heddle_gpu_potrf(struct la_gpu *g, char uplo, struct blas_block a, int *info)
{
    const potrf_fn fn = (potrf_fn)find(g, FN_POTRF);

    LA_TRY(result(g, FN_POTRF,
                  fn(g->solver, uplo == 'U', (int)a.n, a.a, ld_of(a), heddle_exec_scratch(g->x),
                     g->nwork, info)));
    return heddle_gpu_no_roots(g, a, info); /* of a NaN it says nothing */
}

heddle_status heddle_gpu_getrf_open(struct la_gpu *g, struct blas_block a)
{
    LA_TRY(open_solver(g, FN_GETRF_SIZE, FN_GETRF));
    LA_TRY(result(g, FN_GETRF_SIZE,
                  ((factor_size_fn)find(g, FN_GETRF_SIZE))(g->solver, (int)a.m, (int)a.n, a.a,
                                                           ld_of(a), &g->nwork)));
    return (size_t)g->nwork * blas_bytes(g->t) > LA_GPU_SCRATCH ? HEDDLE_EDECLINED : HEDDLE_OK;
}

heddle_status heddle_gpu_getrf(struct la_gpu *g, struct blas_block a, int *ipiv, int *info)
{
    const getrf_fn fn = (getrf_fn)find(g, FN_GETRF);

    return result(
        g, FN_GETRF,
        fn(g->solver, (int)a.m, (int)a.n, a.a, ld_of(a), heddle_exec_scratch(g->x), ipiv, info));
}

heddle_status heddle_gpu_geqrf_open(struct la_gpu *g, struct blas_block a)
{
    LA_TRY(open_solver(g, FN_GEQRF_SIZE, FN_GEQRF));
    return result(g, FN_GEQRF_SIZE,
                  ((factor_size_fn)find(g, FN_GEQRF_SIZE))(g->solver, (int)a.m, (int)a.n, a.a,
                                                           ld_of(a), &g->nwork));
}

heddle_status heddle_gpu_geqrf(struct la_gpu *g, struct blas_block a, void *tau, void *work,
                               int *info)
{
    const geqrf_fn fn = (geqrf_fn)find(g, FN_GEQRF);

    return result(g, FN_GEQRF,
                  fn(g->solver, (int)a.m, (int)a.n, a.a, ld_of(a), tau, work, g->nwork, info));
}
