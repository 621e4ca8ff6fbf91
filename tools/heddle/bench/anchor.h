/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_ANCHOR_H
#define HEDDLE_TOOLS_BENCH_ANCHOR_H

/*
 * bench/anchor: tile Cholesky on three machines whose kernels were measured. The
 * times are data of the benchmarks: results can be compared without any file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/bound.h"
#include "sim/graph.h"

enum { ANCHOR_NSIZES = 3, ANCHOR_NMACHINES = 3 };

/* Tiles a side. */
extern const uint32_t anchor_sizes[ANCHOR_NSIZES];

/* Microseconds by kind, on a core and on a GPU: tiles of 960 x 960 floats. One
 * core per GPU drives it and does not count. */
struct anchor_machine {
    const char *name;
    uint32_t nworkers[2];
    double us[2 * CHOLESKY_NKINDS];
};
extern const struct anchor_machine anchor_machines[ANCHOR_NMACHINES];

/* A graph with its arrays. */
struct anchor {
    struct heddle_bound_graph g;
    uint32_t *kind, *from, *to;
};

/* False: no memory; anchor_free() in every case. */
bool anchor_get(struct anchor *in, size_t ntasks, size_t nedges);
void anchor_free(struct anchor *in);

/* The graph without a machine. */
heddle_status anchor_cholesky(struct anchor *in, uint32_t tiles);

#endif /* HEDDLE_TOOLS_BENCH_ANCHOR_H */
