/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_LA_VECS_H
#define HEDDLE_TOOLS_BENCH_LA_VECS_H

/*
 * Parts of matrices, vectors, and their products by plain loops: what residuals are
 * made of. No memory becomes NaN, not a status.
 *
 * Threads  products share the columns, reflectors the vectors.
 */
#include "bench/la/la.h"

enum la_shape { FULL, LOWER, UPPER, UNIT_LOWER, STRICT_LOWER };

/* The upper left m x n of an array, or a part of it. */
struct la_part {
    const void *p;
    size_t m, n, ld;
    enum la_shape shape;
    bool is_adjoint; /* conjugate and transposed */
    bool is_plain;   /* transposed only, then */
};

/* n vectors of m elements, of one or two doubles each. */
struct la_vecs {
    double *p;
    size_t m, n;
    enum la_type t;
    unsigned nthreads; /* that work on them */
};

struct la_part la_part_of(const struct la_array *a, enum la_shape shape);

/* Zeros; .p is NULL without memory. Free .p, as that of all vectors. */
struct la_vecs la_vecs_make(enum la_type t, size_t m, size_t n, unsigned nthreads);
/* Of one vector. */
size_t la_vec_doubles(const struct la_vecs *x);
/* The identity up to order `whole`; else its last and middle column and random vectors. */
struct la_vecs la_probes(const struct la_problem *p, size_t m, size_t whole);

/* y = y + alpha A x; y is NaN where there is no memory. */
void la_apply(const struct la_part *a, double alpha, const struct la_vecs *x, struct la_vecs *y);
/* A x as new vectors. */
struct la_vecs la_product(const struct la_part *a, const struct la_vecs *x);
/* x = Q x or Q^H x, Q as p's reflectors. */
void la_reflect(const struct la_problem *p, struct la_vecs *x, bool is_adjoint);
/* y = y - x. */
void la_subtract(struct la_vecs *y, const struct la_vecs *x);
/* The largest |e| / |x| over the vectors; NaN where one is, or without memory. */
double la_ratio_of(const struct la_vecs *e, const struct la_vecs *x);

double la_norm1_part(const struct la_part *a, const struct la_problem *p);
double la_norm1(const struct la_problem *p, const struct la_array *a);
/* The largest sum of a row; `row` has room for one number per row, all 0. */
double la_norm_inf(enum la_type t, const struct la_part *a, double *row);
/* x = U^-1 b. */
void la_back(enum la_type t, const struct la_part *u, const void *b, double *x);

#endif /* HEDDLE_TOOLS_BENCH_LA_VECS_H */
