/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_RUN_BOUND_H
#define HEDDLE_TOOLS_COMMON_RUN_BOUND_H

/*
 * common/run_bound: how near a run came to the best possible, from its log.
 *
 * What `trace bound`, `trace certify`, the demo and the benchmarks share.
 *
 * Threads  the main thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "heddle/bound.h"
#include "heddle/log_graph.h"

enum { RUN_BOUND_WHY = 320 };

/* A log, its graph and its bounds. Zero is empty. */
struct run_bound {
    heddle_log *log; /* NULL: the caller's, when it was given one */
    heddle_machine *machine;
    heddle_perf *perf;
    struct heddle_log_graph *g;
    struct heddle_bound_result r;
    double makespan_s, best_s;
    double efficiency; /* best / makespan; 0: no makespan */
    double gap;        /* 1 - efficiency, not below 0 */
    double read_s;     /* to make the graph */
    double solve_s;
    char why[RUN_BOUND_WHY]; /* the sentence of a failure */
};

/* Makes the graph. `machine` may be NULL: the log's own. */
heddle_status run_bound_graph(struct run_bound *b, const heddle_log *log,
                              enum heddle_log_durations durations, const char *machine);
/* Then: computes the bounds within that time. */
heddle_status run_bound_solve(struct run_bound *b, uint64_t time_ns);
/* Both for the log in a file, with measured durations, cheaply: within a few
 * seconds, and without a graph of more than some million tasks. */
heddle_status run_bound_read(struct run_bound *b, const char *path);
/* In every case. */
void run_bound_close(struct run_bound *b);

/* The value of a bound in seconds. */
double run_bound_s(const struct run_bound *b, enum heddle_bound_kind kind);

/* One line: "bound  5.35 ms (mixed): this run is at 80 % of ...". */
void run_bound_print(FILE *f, const struct run_bound *b);
/* "bound": an object, null when there is none. Times in seconds. */
void run_bound_json(struct heddle_json *j, const struct run_bound *b);

/*
 * For a benchmark: reads the log at `path`, when there is one, and prints the
 * line. A log without tasks gives no line. A failure is a line too, as the
 * measurement stands without it.
 */
void run_bound_line(FILE *f, const char *path);

#endif /* HEDDLE_TOOLS_COMMON_RUN_BOUND_H */
