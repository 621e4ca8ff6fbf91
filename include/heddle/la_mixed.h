/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_MIXED_H
#define HEDDLE_LA_MIXED_H

/*
 * heddle/la_mixed.h - solves with factors of low precision, then refined. Part of heddle/la.h.
 */
#include <stdbool.h>

#include "heddle/la.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a solution is refined. */
enum heddle_la_refine {
    HEDDLE_LA_REFINE_AUTO = 0,
    HEDDLE_LA_REFINE_CLASSIC, /* Newton's steps */
    HEDDLE_LA_REFINE_GMRES    /* GMRES with the factors as preconditioner */
};

/* How a solve with mixed precision went. */
struct heddle_la_refined {
    size_t size;               /* sizeof(struct heddle_la_refined) */
    int iterations;            /* of all right-hand sides together */
    bool fell_back;            /* the matrix was factorised in full precision after all */
    enum heddle_la_refine how; /* the method that was used at the end */
    enum heddle_la_low low;    /* the factors that were refined last */
    int tries;                 /* how often factors of low precision were made: factors that do
                  not lead to a solution are made again with more digits */
    double backward_error;     /* the largest |b - A x| / (|A| |x| + |b|), inf norms */
};

/* Solves A X = B in F64 or C128 with factors of half as many digits. `a` keeps its values
 * unless the solve fell back to full precision (then it has the factors); b does not
 * change; x gets the solution. The routines wait, because they decide by numbers they have
 * computed. info as getrf's or potrf's. `out` may be NULL. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gesv_mixed(
    heddle_la *la, enum heddle_la_refine how, heddle_matrix *a, int *ipiv, heddle_matrix *b,
    heddle_matrix *x, struct heddle_la_refined *out, int *info_out);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_posv_mixed(
    heddle_la *la, enum heddle_la_refine how, char uplo, heddle_matrix *a, heddle_matrix *b,
    heddle_matrix *x, struct heddle_la_refined *out, int *info_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_LA_MIXED_H */
