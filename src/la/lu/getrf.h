/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_LU_GETRF_H
#define HEDDLE_LA_LU_GETRF_H

/*
 * Contract between the loop of LU (getrf.c) and its tasks (tasks.c).
 */
#include "la/la.h"

/* Of all kernels below. */
struct getrf_arg {
    struct la_head h;
    size_t k, k0, nk; /* block k, rows and columns of its diagonal block */
    size_t nsteps;    /* of a back task: pivots of so many blocks */
    unsigned ngang;   /* the panel is cut for so many cores; 1: it is not */
    bool has_pivots, has_aux, is_packed;
    bool has_halves; /* aux has the rows below the diagonal block as halves too */
};

/* The panel, by a gang of so many cores where there is a kernel for that. Operands: A_k, then,
 * as far as there are any: its pivots, the record of info, aux (or the packed panel). */
const heddle_kernel *heddle_getrf_panel(unsigned ngang);

/* A_j on the right of the panel. Operands: A_k (or the packed panel), A_j, then, as far as
 * there are any: pivots, aux. */
extern const heddle_kernel heddle_getrf_update;
/* Next to the panel: the panel that comes waits for it, so on a GPU it goes first. */
extern const heddle_kernel heddle_getrf_next;
/* Rows of a block column before the panel change places. Operands: A_j, pivots. */
extern const heddle_kernel heddle_getrf_back;

#endif /* HEDDLE_LA_LU_GETRF_H */
