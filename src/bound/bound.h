/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BOUND_BOUND_H
#define HEDDLE_BOUND_BOUND_H

/*
 * Private to bound: the graph as the solvers see it, and the solvers.
 *
 * A solver works on a heddle_bound_dag: checked, in topological order, equal
 * rows of times merged into kinds, types without workers gone. A position is an
 * index in that order. All memory of a step belongs to a heddle_bound_mem and
 * goes with it, so there is nothing to undo on a failure.
 *
 * check.c does not include this header: it must not share anything.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/scratch.h"
#include "base/why.h"
#include "heddle/bound.h"

#define HEDDLE_BOUND_NONE UINT32_MAX

/* Writes the sentence into limits->why and returns st. */
#define HEDDLE_BOUND_FAIL(limits, st, ...)                                                         \
    heddle_why((limits)->why, (limits)->why_bytes, st, __VA_ARGS__)

struct heddle_bound_dag {
    uint32_t n;          /* tasks */
    uint32_t r;          /* types that have workers */
    uint32_t k;          /* kinds; each has a task */
    uint32_t e;          /* edges */
    uint32_t *type;      /* [r] index in the caller's graph */
    double *nworkers;    /* [r] */
    double *time;        /* [k x r] */
    double *fast;        /* [k] the least of a row */
    double *count;       /* [k] tasks */
    uint32_t *kind;      /* [n] of the task at a position */
    uint32_t *task;      /* [n] its index in the caller's graph */
    uint32_t *pred_end;  /* [n + 1] predecessors of v: pred_end[v] up to */
    uint32_t *pred;      /* [e] pred_end[v + 1]; positions < v */
    uint32_t *pred_edge; /* [e] index in the caller's graph */
};

/* Checks the caller's graph and builds the other one. */
HEDDLE_MUST_USE heddle_status heddle_bound_build(const struct heddle_bound_graph *g,
                                                 const struct heddle_bound_limits *limits,
                                                 struct heddle_scratch *m,
                                                 struct heddle_bound_dag *d_out);

/* The part of d with head >= h and tail >= q. `sub_out->task` and `pred_edge`
 * are the caller's indices, as in d; kinds are those of d, count may be 0. */
HEDDLE_MUST_USE heddle_status heddle_bound_restrict(const struct heddle_bound_dag *d,
                                                    const double *head, const double *tail,
                                                    const double hq[2], struct heddle_scratch *m,
                                                    struct heddle_bound_dag *sub_out);

/* A solution before it becomes a certificate. */
struct heddle_bound_sol {
    double head, tail;
    double *price;     /* [r] */
    double *start;     /* [n] flow that enters at a position; NULL: none */
    double *edge_flow; /* [e] in the order of pred; NULL with start */
};

/* path.c: longest paths. `dur` is per position. */
/* len[v] = longest path that ends with v, v included; via[v] = index into pred
 * of its last edge, or HEDDLE_BOUND_NONE. Returns the last position of the
 * longest path, HEDDLE_BOUND_NONE when n is 0. */
uint32_t heddle_bound_longest(const struct heddle_bound_dag *d, const double *dur, double *len,
                              uint32_t *via);
/* The number of positions of the path that ends with v. */
uint32_t heddle_bound_path_len(const struct heddle_bound_dag *d, const uint32_t *via, uint32_t v);
/* pos[0 .. len) of it, and between them via[0 .. len - 1) as above. */
void heddle_bound_path_get(const struct heddle_bound_dag *d, const uint32_t *via, uint32_t v,
                           uint32_t len, uint32_t *pos, uint32_t *step);
/* Before and after each position, itself not included, with `fast` times. */
void heddle_bound_heads(const struct heddle_bound_dag *d, double *head);
void heddle_bound_tails(const struct heddle_bound_dag *d, double *tail);

/* area.c: prices that maximise sum(count[k] min_r price[r] time[k][r]) with
 * sum(nworkers[r] price[r]) = 1. */
HEDDLE_MUST_USE heddle_status heddle_bound_area(const struct heddle_bound_dag *d,
                                                const double *count, struct heddle_scratch *m,
                                                double *price_out, double *value_out);
/* The sum at given prices. */
double heddle_bound_area_at(const struct heddle_bound_dag *d, const double *count,
                            const double *price);
/* min_r price[r] time[k][r] of one kind; *type_out (may be NULL): where. */
double heddle_bound_cost(const struct heddle_bound_dag *d, uint32_t k, const double *price,
                         double flow, uint32_t *type_out);
/* Up to `cap` prices, evenly among those at which two types cost the same for
 * some kind: for two types the best prices for any set of tasks are one of
 * them when all fit. price is [cap x r]; returns how many. */
HEDDLE_MUST_USE heddle_status heddle_bound_breakpoints(const struct heddle_bound_dag *d,
                                                       struct heddle_scratch *m, uint32_t cap,
                                                       double *price, uint32_t *n_out);

struct heddle_bound_effort {
    uint32_t iterations; /* in: at most; out: done */
    uint64_t deadline;   /* heddle_clock_ns; 0: none */
    double gap;
    double upper; /* out: the optimum is at most this */
};

/* mixed.c. The start solution `sol` has value `value`; both are improved. What
 * sol points to belongs to `m`. */
HEDDLE_MUST_USE heddle_status heddle_bound_mixed(const struct heddle_bound_dag *d,
                                                 struct heddle_bound_effort *effort,
                                                 struct heddle_scratch *m,
                                                 struct heddle_bound_sol *sol, double *value);

/* soft.c: goes on from where mixed.c stopped; sol has a flow, effort->upper is
 * the upper bound so far. */
HEDDLE_MUST_USE heddle_status heddle_bound_soft(const struct heddle_bound_dag *d,
                                                struct heddle_bound_effort *effort,
                                                struct heddle_scratch *m,
                                                struct heddle_bound_sol *sol, double *value);

/* window.c: the best window found. */
HEDDLE_MUST_USE heddle_status heddle_bound_window(const struct heddle_bound_dag *d,
                                                  const double *head, const double *tail,
                                                  const double *start_price,
                                                  struct heddle_scratch *m,
                                                  struct heddle_bound_sol *sol, double *value);

#endif /* HEDDLE_BOUND_BOUND_H */
