/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_PLANNED_PLANNED_H
#define HEDDLE_TOOLS_BENCH_PLANNED_PLANNED_H

/* The parts of `heddle bench planned`. */
#include "bench/bench.h"
#include "heddle/planned.h"

/* --- random graphs under random budgets (bench/planned/fuzz.c) ----------------- */

struct planned_fuzz {
    struct cli *c;
    uint64_t first, seeds;
    uint64_t nplans, nrefused, nrepeated, ncopies, nmoved, ntasks;
    uint64_t nwrong; /* bits, runs, addresses */
    uint64_t nover;  /* memory above the budget, or another peak than the plan's */
    int64_t nleft;   /* bytes that were not given back */
    double seconds;
};

/* Returns 0, or the exit status after a sentence; what is wrong is counted, and said. */
int planned_fuzz_run(struct planned_fuzz *f);

/* --- the time of a step (bench/planned/step.c) ---------------------------------- */

enum { PLANNED_SHAPES = 3, PLANNED_BUDGETS = 3 };

struct planned_step {
    const char *shape;
    double share; /* of the memory that the graph needs as it is */
    bool is_found;
    char why[200];
    bool is_equal; /* results, bit for bit */
    struct heddle_planned_info info;
    double as_is_s; /* the shortest step of the recorded graph */
    double real_s;  /* and of the planned one */
    double cpu_s;   /* what the planned one took of the cores, at least */
    double ratio;   /* real over predicted */
};

/* One line per shape and budget. Returns 0, or the exit status after a sentence. */
int planned_step_run(struct cli *c, const struct bench_opts *o, uint64_t width, double limit_s,
                     struct planned_step out[PLANNED_SHAPES * PLANNED_BUDGETS]);

#endif /* HEDDLE_TOOLS_BENCH_PLANNED_PLANNED_H */
