/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_MIXED_MIXED_H
#define HEDDLE_LA_MIXED_MIXED_H

/*
 * Contract of solves with factors of low precision: the tasks (narrow.c, rhs.c, product.c), and
 * the two refinements (mixed.c, gmres.c).
 *
 * The low matrix is scale A, a power of two times the matrix. Right-hand sides are
 * columns in lock step; what is known of one is a struct la_rhs, which the thread of the
 * call writes. Tasks run on cores or on a device: they leave their numbers in a small
 * vector (`told`), which is read when they have ended.
 */
#include "la/la.h"

struct la_rhs {
    double b, x, r; /* inf norms: right-hand side, solution, residual */
    double goal;    /* the residual to reach */
    double before;  /* the residual one step earlier */
    double down;    /* a power of two: what is solved in low precision */
    double up;      /* and what its solution is multiplied by */
    bool is_done;
};

enum {
    LA_MIXED_SUMS = 64, /* vectors of sums of rows */
    LA_MIXED_FEW = 4    /* right-hand sides that a device solves for by itself */
};

struct la_mixed {
    heddle_la *la;
    enum blas_type t;
    char uplo; /* 0: LU */
    heddle_matrix *a, *b;
    int *ipiv;
    double norm, scale;      /* of A */
    enum heddle_la_low kind; /* of the low factors */
    bool ran_over;           /* with these a residual was not finite */
    bool is_hopeless;        /* nor is A or B: no factors will do */
    heddle_handle *sums[LA_MIXED_SUMS];
    heddle_handle *told; /* norms: of A, of residuals, of solutions */
    int *perm;           /* LU: row perm[i] becomes row i */
    heddle_handle *perms;
    size_t nrhs;
    struct la_owned low;
    struct la_owned x, r;   /* n x nrhs, full precision */
    struct la_owned d;      /* low precision */
    struct la_owned e;      /* the same, between two sweeps */
    struct la_owned inv[2]; /* of the triangles on the diagonal: see sweep.c */
    struct la_rhs *rhs;
    int iterations, tries;
};

/* The precision below. */
static inline enum blas_type la_low(enum blas_type t)
{
    return t == BLAS_Z ? BLAS_C : BLAS_S;
}

/* sums, told and perm, and their end. */
heddle_status heddle_la_mixed_open(struct la_mixed *s);
void heddle_la_mixed_shut(struct la_mixed *s);

/* These submit. */
/* The low matrix from A, and the inf norm of A, which is told. */
heddle_status heddle_la_mixed_narrow(struct la_mixed *s);
/* y = beta y + alpha A x, alpha and beta 1, 0 or -1. */
heddle_status heddle_la_mixed_product(struct la_mixed *s, const void *alpha, heddle_matrix *x,
                                      const void *beta, heddle_matrix *y);
/* (sweep.c) Are solves sweeps? These need e and inv, and the triangles inverted. */
bool heddle_la_mixed_sweeps(const struct la_mixed *s);
heddle_status heddle_la_mixed_invert(struct la_mixed *s);
/* (sweep.c) d = the solution with the low factors for down[j] * from, then to = up[j] * d, or
 * that is added; down and up from s->rhs, columns that are done stay. */
heddle_status heddle_la_mixed_solve(struct la_mixed *s, heddle_matrix *from, heddle_matrix *to,
                                    bool adds);
/* r = b - A x. */
heddle_status heddle_la_mixed_residual(struct la_mixed *s);
/* Norms of x and r into s->rhs; waits. */
heddle_status heddle_la_mixed_measure(struct la_mixed *s);
/* The norm of A, which tasks have told. */
heddle_status heddle_la_mixed_norm(struct la_mixed *s);
/* Right-hand sides down to d, their rows as pivots say, and up from it. */
heddle_status heddle_la_mixed_down(struct la_mixed *s, heddle_matrix *from);
heddle_status heddle_la_mixed_up(struct la_mixed *s, heddle_matrix *to, bool adds);

/* Which are done, and how the residuals of the others are scaled. The worst ratio
 * to the residual before, of those that are not done. */
double heddle_la_mixed_look(struct la_mixed *s);

/* From the x and r that are there. *is_good_out: all are done. Waits. */
heddle_status heddle_la_mixed_gmres(struct la_mixed *s, bool *is_good_out);

#endif /* HEDDLE_LA_MIXED_MIXED_H */
