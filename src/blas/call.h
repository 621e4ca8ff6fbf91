/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BLAS_CALL_H
#define HEDDLE_BLAS_CALL_H

/* For the files of this module: how a routine of Fortran is called. */
#include "blas/blas.h"

/* Fortran gets addresses, and the lengths of strings behind them. An empty part
 * may have any leading dimension but none below 1. */
#define INT(name, value) const int name = (int)(value)
#define LD(name, b)      const int name = (int)((b).ld > 0 ? (b).ld : 1)
/* Between the first open and the last close the table is there. */
#define CALL(name, type, t) ((type)heddle_blas_get()->name[t])

#endif /* HEDDLE_BLAS_CALL_H */
