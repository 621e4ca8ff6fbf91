/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_PRODUCT_PACKED_H
#define HEDDLE_LA_PRODUCT_PACKED_H

/*
 * Contract of products of packed operands on cores, for doubles.
 *
 * A product runs at full speed when its operands lie in memory in the order in which
 * the loops read them. A BLAS copies the operands into that order in each call; here the
 * left operand can be packed once and used by many tasks, on any core.
 *
 * Left     m x k: panels of `rows` rows, each panel column after column; the last
 *          panel is filled with zeros
 * Right    k x n: panels of `cols` columns, each panel row after row; the last panel is
 *          filled with zeros
 * Numbers  an element of a product is summed over k in order, with one rounding per
 *          term, then added to C: the result does not depend on its position, nor on
 *          which part of C a call computes, nor on which task packed.
 * Threads  any; no function has state.
 */
#include "la/la.h"

/* What a kind of processor has for it. Panels are aligned to 64 bytes. */
struct la_packed {
    size_t rows, cols;
    /* C = A B + beta C, all of it; C is not read when beta is 0. */
    void (*multiply)(size_t k, const double *a, const double *b, const double *beta, double *c,
                     size_t ld);
    /* Rows k .. k + n - 1 of a solve with a unit lower triangle, n <= rows; those
     * above are solved. l is their panel of the triangle, b a right panel. */
    void (*solve)(size_t k, size_t n, const double *l, double *b);
};

/* NULL: this processor has nothing better than its BLAS. */
const struct la_packed *heddle_packed(void);

/* Bytes of a left operand. */
size_t heddle_packed_left_bytes(size_t m, size_t k);
/* A part of a left operand of m x k at `to`: rows i on, columns p on, from op(A) times
 * alpha. All parts together are all of it. */
void heddle_packed_left(char trans, double alpha, struct blas_block a, size_t i, size_t p, size_t m,
                        size_t k, double *to);

/* Memory of the thread for a right operand of k x n, until the next call of a
 * function of this file. NULL: none. */
double *heddle_packed_right_room(heddle_la *la, size_t k, size_t n);
/* A part of it: rows p on, all columns, from op(B). */
void heddle_packed_right(char trans, struct blas_block b, size_t p, size_t k, size_t n, double *to);

/* C = A B + beta C. */
void heddle_packed_multiply(size_t k, const double *left, const double *right, double beta,
                            struct blas_block c);

/* --- LU -------------------------------------------------------------------------- */

/* Bytes that a panel of LU leaves for its updates: m rows, n columns. 0: nothing,
 * updates call the BLAS. */
size_t heddle_packed_lu_bytes(enum blas_type t, size_t m, size_t n);
/* The factorised panel, from its first row on. Its pivots are rows of a matrix in
 * which that row has the number `first`; NULL: none. The work is cut into nparts,
 * of which the first one needs memory; all of them together are the whole. False: no
 * memory. */
bool heddle_packed_lu_panel(heddle_la *la, struct blas_block l, const int *ipiv, int first,
                            unsigned part, unsigned nparts, void *to);
/* What the panel of n columns means for the columns c on its right, from its first
 * row on: rows change places, a solve, a product. False: no memory, c as it was. */
bool heddle_packed_lu_update(heddle_la *la, const void *panel, size_t n, struct blas_block c);

#endif /* HEDDLE_LA_PRODUCT_PACKED_H */
