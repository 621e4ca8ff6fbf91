/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_PACE_H
#define HEDDLE_TOOLS_SERVE_PACE_H

/*
 * How long a batch takes: a + b * rows, fitted to the batches that have ended. Later ones weigh
 * more; a time far above the line is passed over, unless such times go on.
 *
 * Threads  the caller's lock.
 */
#include <stdint.h>

/* Zeroed memory knows nothing yet. */
struct serve_pace {
    double n, rows, rows2, ns, rows_ns; /* sums, each step weighing less */
    unsigned nfar;                      /* times that were passed over, in a row */
};

void serve_pace_add(struct serve_pace *p, uint64_t rows, uint64_t ns);
/* What a batch will take; 0 before the first has ended. */
uint64_t serve_pace_ns(const struct serve_pace *p, uint64_t rows);

#endif /* HEDDLE_TOOLS_SERVE_PACE_H */
