/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BLAS_BLAS_H
#define HEDDLE_BLAS_BLAS_H

/*
 * Contract of the BLAS and LAPACK behind the tasks on cores.
 *
 * The libraries are found at run time, so that one build works with any of them,
 * and so that a library that replaces LAPACK's routines by Heddle's can be loaded
 * before them: functions are taken from their library by handle, never by the
 * names the program sees.
 *
 * Precision is data: a routine is a row of four addresses, the types of elements
 * differ only behind pointers. The functions below are the Fortran routines with
 * sizes by value; t is the type of the elements.
 *
 * Threads  heddle_blas_open() and close() from any thread; they count. Between
 *          the first open and the last close the BLAS uses one thread.
 */
#include <stdbool.h>
#include <stddef.h>

#include "heddle/data.h"

enum blas_type { BLAS_S, BLAS_D, BLAS_C, BLAS_Z };

struct heddle_blas {
    void *library[2];
    void (*set_threads)(int);
    int (*get_threads)(void);
#define BLAS_ROUTINE(name, s, d, c, z) void (*name[4])(void);
#include "blas/blas.def"
#undef BLAS_ROUTINE
};

/* Loads it, or adds a user. NULL: there is none; why (may be NULL) says so. */
const struct heddle_blas *heddle_blas_open(const char *library, char *why, size_t why_bytes);
void heddle_blas_close(void);
/* NULL: it is not open. */
const struct heddle_blas *heddle_blas_get(void);

/* Is this thread inside of a routine of the BLAS that a task called? */
bool heddle_blas_is_inside(void);
void heddle_blas_enter(void);
void heddle_blas_leave(void);

/* 1, 0 and -1 of a type. */
const void *heddle_blas_one(enum blas_type t);
const void *heddle_blas_zero(enum blas_type t);
const void *heddle_blas_minus_one(enum blas_type t);

/* Is the number at p 0? */
bool heddle_blas_is_zero(enum blas_type t, const void *p);

static inline bool blas_is_complex(enum blas_type t)
{
    return t >= BLAS_C;
}

/* Bytes of an element, and of its real type. */
static inline size_t blas_bytes(enum blas_type t)
{
    return t == BLAS_S ? 4 : t == BLAS_Z ? 16 : 8;
}

static inline size_t blas_real_bytes(enum blas_type t)
{
    return t == BLAS_S || t == BLAS_C ? 4 : 8;
}

/* Real numbers in an element. */
static inline size_t blas_reals(enum blas_type t)
{
    return blas_is_complex(t) ? 2 : 1;
}

/* False: none of the four. */
static inline bool blas_type_of(enum heddle_dtype d, enum blas_type *out)
{
    switch (d) {
    case HEDDLE_F32: *out = BLAS_S; return true;
    case HEDDLE_F64: *out = BLAS_D; return true;
    case HEDDLE_C64: *out = BLAS_C; return true;
    case HEDDLE_C128: *out = BLAS_Z; return true;
    default: return false;
    }
}

/* A part of a matrix in memory that the task can reach. */
struct blas_block {
    void *a;
    size_t m, n, ld;
};

/* Element (i, j). */
static inline void *blas_at(enum blas_type t, struct blas_block b, size_t i, size_t j)
{
    return (char *)b.a + (i + j * b.ld) * blas_bytes(t);
}

static inline struct blas_block blas_part(enum blas_type t, struct blas_block b, size_t i, size_t j,
                                          size_t m, size_t n)
{
    return (struct blas_block){blas_at(t, b, i, j), m, n, b.ld};
}

/* C = alpha op(A) op(B) + beta C; sizes from C and, for k, from A. */
void heddle_blas_gemm(enum blas_type t, char ta, char tb, const void *alpha, struct blas_block a,
                      struct blas_block b, const void *beta, struct blas_block c);
void heddle_blas_symm(enum blas_type t, bool is_hermitian, char side, char uplo, const void *alpha,
                      struct blas_block a, struct blas_block b, const void *beta,
                      struct blas_block c);
/* alpha and beta are real when is_hermitian. */
void heddle_blas_syrk(enum blas_type t, bool is_hermitian, char uplo, char trans, const void *alpha,
                      struct blas_block a, const void *beta, struct blas_block c);
void heddle_blas_syr2k(enum blas_type t, bool is_hermitian, char uplo, char trans,
                       const void *alpha, struct blas_block a, struct blas_block b,
                       const void *beta, struct blas_block c);
void heddle_blas_trmm(enum blas_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct blas_block a, struct blas_block b);
void heddle_blas_trsm(enum blas_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct blas_block a, struct blas_block b);
/* These return LAPACK's info. */
int heddle_blas_potrf(enum blas_type t, char uplo, struct blas_block a);
int heddle_blas_lauum(enum blas_type t, char uplo, struct blas_block a);
int heddle_blas_trtri(enum blas_type t, char uplo, char diag, struct blas_block a);
int heddle_blas_getrf(enum blas_type t, struct blas_block a, int *ipiv);
/* Rows i and ipiv[i] (from 1), for i = 0 .. n - 1, or back from the last one. */
void heddle_blas_laswp(enum blas_type t, struct blas_block a, const int *ipiv, size_t n,
                       bool is_backward);
int heddle_blas_geqrt3(enum blas_type t, struct blas_block a, struct blas_block tri);
/* The triangular factor of the k reflectors in the columns of v, k = v.n. */
void heddle_blas_larft(enum blas_type t, struct blas_block v, const void *tau,
                       struct blas_block tri);
/* Eigenvalues into w (of the real type), vectors into a when vectors is 'V'. work has
 * heddle_blas_heevd_bytes(t, n). */
int heddle_blas_heevd(enum blas_type t, char vectors, char uplo, struct blas_block a, void *w,
                      void *work);
size_t heddle_blas_heevd_bytes(enum blas_type t, size_t n);

#endif /* HEDDLE_BLAS_BLAS_H */
