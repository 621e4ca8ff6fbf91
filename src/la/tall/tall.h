/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_TALL_TALL_H
#define HEDDLE_LA_TALL_TALL_H

/*
 * Tall matrices cut into groups of rows, for QR of them: views of the block
 * columns, and what their tasks share. A task gets the views of one group as its
 * first operands, copies rows into dense memory, works there, and copies back.
 */
#include "la/la.h"

enum { TALL_VIEWS = 200 }; /* of a group, at most */

struct tall {
    heddle_la *la;
    heddle_matrix *a, *r;
    size_t ngroups, nviews;
    heddle_handle **view; /* those of group g: from view[g * nviews] on */
    size_t nown;          /* handles of the algorithm, ... */
    heddle_handle **own;  /* ... all of them unreffed at the end */
};

/* First row of group g; that of group ngroups is the number of rows. */
static inline size_t tall_first(const struct tall *s, size_t g)
{
    return g * s->a->m / s->ngroups;
}

/* Groups of `rows` rows or some more, and room for nown handles. */
heddle_status heddle_tall_open(struct tall *s, heddle_la *la, heddle_matrix *a, heddle_matrix *r,
                               size_t rows, size_t nown);
void heddle_tall_close(struct tall *s);

/* Can the columns of a be operands of one task? */
bool heddle_tall_fits(const heddle_matrix *a);

/* The views of group g with that mode, and n others, to one task. */
heddle_status heddle_tall_submit(struct tall *s, const heddle_kernel *kernel, size_t g,
                                 enum heddle_mode mode, heddle_handle *const *others,
                                 const enum heddle_mode *modes, unsigned n, const void *arg,
                                 size_t arg_bytes, int priority);

/* R from the triangle at h (n x n) to the block columns of s->r. */
heddle_status heddle_tall_finish(struct tall *s, struct la_head h, heddle_handle *from);

/* --- inside of tasks ------------------------------------------------------------ */

/* Rows of the group's views from and to dense memory with all columns. */
void heddle_tall_gather(struct heddle_exec *x, enum blas_type t, unsigned nviews, size_t row,
                        struct blas_block to);
void heddle_tall_scatter(struct heddle_exec *x, enum blas_type t, unsigned nviews, size_t row,
                         struct blas_block from);
void heddle_tall_copy(enum blas_type t, struct blas_block from, struct blas_block to);
/* The upper triangle of from, with zeros below. */
void heddle_tall_upper(enum blas_type t, struct blas_block from, struct blas_block to);

/* The two algorithms: s is open, h is the head of the call. */
heddle_status heddle_tall_tree(struct tall *s, struct la_head h);
/* is_lu: LU first; else a sketch, and LU only when that is of no use. */
heddle_status heddle_tall_cholesky(struct tall *s, struct la_head h, bool is_lu);
enum {
    TALL_TREE_OWN = 4,      /* handles a tree needs, for each group */
    TALL_CHOLESKY_OWN = 4,  /* handles the other needs, for each group, ... */
    TALL_CHOLESKY_MORE = 8, /* ... and all together */
};

#endif /* HEDDLE_LA_TALL_TALL_H */
