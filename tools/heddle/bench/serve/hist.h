/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SERVE_HIST_H
#define HEDDLE_TOOLS_BENCH_SERVE_HIST_H

/*
 * A histogram of times whose cells grow with the time: below HIST_FINE each nanosecond has a
 * cell, above it each octave has HIST_FINE cells. A share is known to 1/HIST_FINE of its value,
 * whatever the range, in memory that does not grow.
 *
 * Threads  one; hist_merge() adds up those of several.
 */
#include <stdint.h>

enum { HIST_BITS = 7, HIST_FINE = 1 << HIST_BITS, HIST_CELLS = (64 - HIST_BITS + 1) * HIST_FINE };

/* Zeroed memory is an empty histogram. */
struct hist {
    uint64_t n, max;
    double sum;
    uint64_t cell[HIST_CELLS];
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *h, const struct hist *other);
/* The time that `share` of all stay at or below, rounded up to the end of its cell, and never more
 * than the largest; 0 when there are none. */
uint64_t hist_at(const struct hist *h, double share);

#endif /* HEDDLE_TOOLS_BENCH_SERVE_HIST_H */
