/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_PLAN_PLAN_H
#define HEDDLE_TOOLS_BENCH_PLAN_PLAN_H

/*
 * The parts of `heddle bench plan`. Each returns 0, or the exit status after a sentence.
 */
#include <stdint.h>

#include "plan/cmd.h"

/* --- chains (bench/plan/chain.c) ------------------------------------------- */

/* How long the tables of chain solvers take: one line per case of up to so many layers. */
int bench_plan_chain(struct cli *c, uint64_t layers, uint64_t seed);

/* --- rows instead of those of a solver (bench/plan/more.c) ------------------ */

/* Moving data at `rate` bytes per unit of time, against computing again alone. */
int plan_bench_moving(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                      double rate, double limit_s);
/* Every policy; nothing for graphs that are not chains. */
int plan_bench_pipeline(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                        uint32_t ndevices);
/* The smallest budget with a plan. */
int plan_bench_least(struct cli *c, const struct heddle_plan_graph *g, double limit_s);

/* --- graphs of 10 000 operations (bench/plan/large.c) ----------------------- */

/* When the first plan comes, and how good it is after the limit and six times it. */
int plan_bench_large(struct cli *c, const char *only, const char *solver, const double *fraction,
                     unsigned nfractions, double limit_s, uint64_t seed);

/* --- bench/plan.c ----------------------------------------------------------- */

/* The sentence when --instance means no graph; returns 2. */
int plan_bench_no_instance(struct cli *c, const char *text);

#endif /* HEDDLE_TOOLS_BENCH_PLAN_PLAN_H */
