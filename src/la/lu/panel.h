/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_LU_PANEL_H
#define HEDDLE_LA_LU_PANEL_H

/*
 * Contract of a panel of LU by a gang of cores, and of the choice between that and a
 * single core.
 */
#include "la/la.h"

/* Numbers of cores of a gang: LA_GANGS(X) is X(2) X(3) and so on. */
#define LA_GANGS(X) X(2) X(3) X(4) X(6) X(8) X(12) X(16)

enum {
    LA_PANEL_MOST = 16,
    LA_PANEL_ROOM = 19 << 10 /* bytes that the members of a gang share */
};

/*
 * P A = L U with partial pivoting of a (its first row is that of its diagonal): every
 * member of the gang calls it. Rows are cut into nparts (1 .. LA_PANEL_MOST) parts; a
 * gang has as many members, or one member does all parts: the result is the same.
 *
 * `room` is shared and aligned to 64; ipiv has min(m, n) numbers (from 1, of rows of
 * a); the first member writes *info_out, as LAPACK's. All of it can be read after the
 * call. HEDDLE_ENOMEM: for all members, and a is as it was.
 */
heddle_status heddle_la_gang_panel(heddle_la *la, struct heddle_exec *x, unsigned nparts,
                                   enum blas_type t, struct blas_block a, int *ipiv, void *room,
                                   int *info_out);

/* --- model.c ------------------------------------------------------------- */

/* A panel and what there is beside it. */
struct la_panel_case {
    enum blas_type t;
    size_t m, n;    /* of the panel */
    size_t columns; /* on its right */
    size_t nb;      /* of a block column */
    unsigned ncores;
};

/* Seconds of a panel of m x n by a gang of so many cores; 1: by a single one, with
 * LAPACK. */
double heddle_la_panel_seconds(enum blas_type t, size_t m, size_t n, unsigned ngang);
/* How many cores should make it, one of LA_GANGS; 1: a single one. */
unsigned heddle_la_panel_choose(const struct la_panel_case *c);
/* The largest gang of so many cores; 1: none. */
unsigned heddle_la_panel_largest(unsigned ncores);

/* How wide the block columns of a matrix of order n should be, on cores. */
size_t heddle_la_width(size_t n, unsigned ncores);

#endif /* HEDDLE_LA_LU_PANEL_H */
