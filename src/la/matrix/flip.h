/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_MATRIX_FLIP_H
#define HEDDLE_LA_MATRIX_FLIP_H

/* A^H as tasks: how routines that work on rows use those that work on columns. */
#include "la/la.h"

/* to = the conjugate transpose of the first to->n rows of `from`; to->m is the
 * number of its columns. Only submits. */
heddle_status heddle_la_flip(heddle_la *la, heddle_matrix *from, heddle_matrix *to);

#endif /* HEDDLE_LA_MATRIX_FLIP_H */
