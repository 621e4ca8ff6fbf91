/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SCHED_BEST_H
#define HEDDLE_TOOLS_BENCH_SCHED_BEST_H

/*
 * bench/sched_best: the default scheduler against the best of all schedulers, on
 * machine files and on machines that are drawn.
 *
 * Threads  the main thread.
 */
#include "sim/opts.h"

struct sched_best {
    struct cli *c;
    const char *devices; /* as in heddle_ctx_opts */
    unsigned n;          /* cases so far */
    double sum, worst;   /* of length / length of the best policy */
    char worst_case[160];
};

/* Runs one graph on one machine with every scheduler and prints how far the default is
 * from the best. `m` may be NULL: then there is no bound. Returns 0, or the exit status
 * after a sentence. */
int sched_best_case(struct sched_best *b, const char *source, const heddle_machine *m,
                    const struct sim_graph *g, const char *label);

/* The cases that the seeds `first` .. `first + count - 1` draw. */
int sched_best_random(struct sched_best *b, uint64_t first, uint64_t count);

/* The bars, and whether they are met: prints them when there was a case. */
int sched_best_bars(const struct sched_best *b);

#endif /* HEDDLE_TOOLS_BENCH_SCHED_BEST_H */
