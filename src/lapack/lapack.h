/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LAPACK_LAPACK_H
#define HEDDLE_LAPACK_LAPACK_H

/*
 * Contract of libheddle_lapack.so: LAPACK's symbols in front of LAPACK.
 *
 * A routine checks its arguments as LAPACK does. Calls that are legal and large
 * enough become tasks; all others go to the routine of the same name in the
 * program's own library, which also reports illegal arguments:
 *
 *   if (legal && heddle_lapack_begin(&c, ...) &&
 *       heddle_lapack_end(&c, heddle_la_potrf(c.la, ...), info))
 *       return;
 *   LAPACK_REAL(potrf, t, ...)(...);
 *
 * The routines have no parameters for Fortran's hidden lengths of strings, since callers
 * from C may not pass them. Calls that are passed on do have them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/heddle.h"
#include "heddle/la.h"

#define LAPACK_EXPORT __attribute__((visibility("default")))

enum lapack_type { LAPACK_S, LAPACK_D, LAPACK_C, LAPACK_Z };

enum lapack_routine {
#define LAPACK(name, s, d, c, z, cores, devices) LAPACK_##name,
#define LAPACK_USED(name, s, d, c, z)            LAPACK_##name,
#include "lapack/lapack.def"
#undef LAPACK
#undef LAPACK_USED
    LAPACK_NROUTINES
};

static inline bool lapack_is_complex(enum lapack_type t)
{
    return t >= LAPACK_C;
}

static inline size_t lapack_bytes(enum lapack_type t)
{
    return t == LAPACK_S ? 4 : t == LAPACK_Z ? 16 : 8;
}

/* --- real.c: what is behind us ---------------------------------------------- */

typedef void (*lapack_fn)(void);

/* Never NULL: without a BLAS there is no way on. */
lapack_fn heddle_lapack_real(enum lapack_routine r, enum lapack_type t);
#define LAPACK_REAL(name, t, type) ((type)heddle_lapack_real(LAPACK_##name, (t)))

/* Threads of the BLAS behind us; 0: it does not say. */
int heddle_lapack_threads(void);

/* --- shared.c: the context of the process ----------------------------------- */

/* Is a call of this order taken over? Quick. */
bool heddle_lapack_takes(enum lapack_routine r, long order);

/* NULL: go direct. Otherwise heddle_lapack_leave() follows: was the call taken
 * over after all? */
heddle_ctx *heddle_lapack_enter(void);
void heddle_lapack_leave(bool is_done);

/* Around calls of BLAS by tasks of ours: what these call is not taken over. */
void heddle_lapack_inside(bool is_inside);

/* Calls that were taken over in this process. For tests and the curious. */
LAPACK_EXPORT unsigned long heddle_lapack_calls(void);

/* --- call.c: one call -------------------------------------------------------- */

enum { LAPACK_MATRICES = 4 };

struct lapack_call {
    heddle_la *la;
    heddle_ctx *ctx;
    enum lapack_type t;
    unsigned n;
    struct {
        heddle_matrix *m;
        bool is_out;
    } matrix[LAPACK_MATRICES];
};

bool heddle_lapack_begin(struct lapack_call *c, enum lapack_routine r, enum lapack_type t,
                         long order);
/* m x n of the program's memory. NULL: none; the routine then refuses it, and
 * the call goes direct. */
heddle_matrix *heddle_lapack_in(struct lapack_call *c, int m, int n, const void *a, int ld);
heddle_matrix *heddle_lapack_out(struct lapack_call *c, int m, int n, void *a, int ld);
/* The triangular factors for k reflectors of a, in memory of the runtime. */
heddle_matrix *heddle_lapack_factors(struct lapack_call *c, heddle_matrix *a, int k);
/* Waits. False: the routine (st is what it returned) was refused, nothing has
 * changed and the call is closed. */
bool heddle_lapack_run(struct lapack_call *c, heddle_status st, int *info);
void heddle_lapack_close(struct lapack_call *c);
/* Both. */
bool heddle_lapack_end(struct lapack_call *c, heddle_status st, int *info);

/* --- arguments ----------------------------------------------------------------- */

/* In upper case; 0: none of the letters. */
static inline char lapack_letter(const char *p, const char *letters)
{
    const char c = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;

    for (; *letters != '\0'; letters++)
        if (c == *letters)
            return c;
    return '\0';
}

static inline int lapack_min(int a, int b)
{
    return a < b ? a : b;
}

static inline int lapack_max(int a, int b)
{
    return a > b ? a : b;
}

/* Is ld one of m rows, m itself not negative? */
static inline bool lapack_is_ld(int ld, int m)
{
    return m >= 0 && ld >= lapack_max(1, m);
}

/* 'C' is 'T' for real types; 0: not legal. */
static inline char lapack_trans(const char *p, enum lapack_type t)
{
    const char c = lapack_letter(p, "NTC");

    return c == 'C' && !lapack_is_complex(t) ? 'T' : c;
}

/* The same for products with Q: complex types have no 'T'. */
static inline char lapack_trans_q(const char *p, enum lapack_type t)
{
    return lapack_letter(p, lapack_is_complex(t) ? "NC" : "NT");
}

/* For X(symbol, type): the four symbols of a routine; or two, complex only. */
#define LAPACK_FOUR(X, real, complex)                                                              \
    X(s##real, LAPACK_S)                                                                           \
    X(d##real, LAPACK_D)                                                                           \
    X(c##complex, LAPACK_C)                                                                        \
    X(z##complex, LAPACK_Z)
#define LAPACK_TWO(X, complex)                                                                     \
    X(c##complex, LAPACK_C)                                                                        \
    X(z##complex, LAPACK_Z)

#endif /* HEDDLE_LAPACK_LAPACK_H */
