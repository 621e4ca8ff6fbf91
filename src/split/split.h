/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SPLIT_SPLIT_H
#define HEDDLE_SPLIT_SPLIT_H

/*
 * Contract of wide tasks that several cores share.
 *
 * Operands as wide as a GPU likes them are long tasks for one core. A kernel with `expand` is
 * asked when a core begins its task. The kernel then gives parts of the operands to children,
 * which do the same work on narrower blocks; the task has ended when its children have.
 *
 * Operands are arrays of one or two dimensions, the columns being the second one. What the
 * elements mean is the caller's business.
 *
 * Threads  all functions but heddle_split_width() are called by a running task, for itself.
 */
#include <stddef.h>

#include "heddle/heddle.h"

/* Columns (or rows) of each part when ncores share n of them; n: the task stays whole. */
size_t heddle_split_width(unsigned ncores, size_t n);

enum { SPLIT_CUTS = HEDDLE_KERNEL_OPERANDS };

/* A part of operand `op` of the parent: m x n elements from (row, col) on. n 0: all of it. */
struct split_cut {
    unsigned op;
    enum heddle_mode mode;
    size_t row, col, m, n;
};

/* From expand(): submits a child on n (at most SPLIT_CUTS) parts. The kernel is one for cores
 * only. */
heddle_status heddle_split_child(struct heddle_exec *x, const heddle_kernel *kernel,
                                 const struct split_cut *cut, unsigned n, const void *arg,
                                 size_t arg_bytes);

/* The same on the first nops operands: the child writes `width` columns of operand op from
 * `col` on, or as many as there are, and reads the other operands as they are. */
heddle_status heddle_split_columns(struct heddle_exec *x, const heddle_kernel *kernel, unsigned op,
                                   unsigned nops, size_t col, size_t width, const void *arg,
                                   size_t arg_bytes);

#endif /* HEDDLE_SPLIT_SPLIT_H */
