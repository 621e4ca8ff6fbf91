/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SIM_GRAPH_H
#define HEDDLE_TOOLS_SIM_GRAPH_H

/*
 * Workloads in virtual time: task graphs on square tiles, without arithmetic,
 * for machines that are descriptions. What the benchmarks sched, memory and
 * simulate share.
 *
 * The kernels are potrf, trsm, syrk and gemm, which machines have timings of, and for
 * QR geqrt, ormqr, tsqrt and tsmqr.
 * The data are the runtime's: one handle per tile, valid on the host when the
 * clock starts.
 *
 * Threads  the main thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "tile/cholesky.h"

enum sim_workload {
    SIM_CHOLESKY, /* of N x N tiles, the lower triangle */
    SIM_LU,       /* without pivoting: potrf on the diagonal, trsm, gemm */
    SIM_GEMM,     /* C = C + A B of N x N tiles each */
    SIM_RANDOM,   /* N^3 / 6 tasks on N^2 tiles, kinds and tiles drawn */
    SIM_QR,       /* of N x N tiles, flat trees: panels are chains */
    SIM_LAYERED,  /* N^3 / 6 tasks in layers of up to 2 N, which read the layer before */
    SIM_NWORKLOADS
};

enum { SIM_TILE = 960, SIM_MAX_TILES = 256, SIM_MAX_MACHINES = 16 };

/* The first are those of enum cholesky_kind. */
enum sim_kind {
    SIM_GEQRT = CHOLESKY_NKINDS, /* factorises a tile */
    SIM_ORMQR,                   /* applies that to a tile beside it */
    SIM_TSQRT,                   /* factorises a tile below a triangle, and updates both */
    SIM_TSMQR,                   /* applies that to two tiles */
    SIM_NKINDS
};

/* The kernel's name. */
const char *sim_kind_name(unsigned kind);
/* Operands of the kernel, a tile each. */
unsigned sim_kind_operands(unsigned kind);

/* A task updates its last tile, or its last two (tsqrt, tsmqr), and reads the others. */
struct sim_task {
    uint32_t kind; /* enum cholesky_kind or sim_kind */
    uint32_t ntiles;
    uint32_t tile[3];
};

struct sim_graph {
    enum sim_workload workload;
    uint32_t tiles; /* along a side */
    uint32_t nb;    /* order of a tile */
    uint32_t ntiles;
    size_t ntasks, cap;
    struct sim_task *task;
};

/* False: no such workload. */
bool sim_workload_find(const char *name, enum sim_workload *out);
const char *sim_workload_name(enum sim_workload w);

/* HEDDLE_ENOMEM. `g` may be freed in every case. */
heddle_status sim_graph_make(struct sim_graph *g, enum sim_workload workload, uint32_t tiles,
                             uint64_t seed);
void sim_graph_free(struct sim_graph *g);
uint64_t sim_tile_bytes(const struct sim_graph *g);
uint64_t sim_data_bytes(const struct sim_graph *g);
/* Of the largest task. */
uint64_t sim_task_bytes(const struct sim_graph *g);

/* --- one run ------------------------------------------------------------- */

struct sim_opts {
    const char *machine; /* required */
    const char *policy;  /* NULL: the default */
    const char *devices; /* as in heddle_ctx_opts */
    const char *faults;
    const char *log; /* NULL: nothing is recorded */
    uint64_t device_memory;
    const char *energy_model, *power_cap; /* as in heddle_ctx_opts, too */
    double energy_weight, energy_slack;
};

struct sim_result {
    char policy[32];
    double makespan_ns;
    double real_ns; /* submission and wait */
    double submit_ns;
    uint64_t copied_bytes, evictions;
    double active_joules, idle_joules; /* with an energy model */
    uint64_t budget;                   /* of the smallest device; 0: there is none */
    /* Classes that were used, by index in the machine. */
    uint64_t classes;
    bool was_refused; /* no context with these options */
    char why[320];    /* what went wrong */
};

/* HEDDLE_OK, or why not in r->why. */
heddle_status sim_graph_run(const struct sim_graph *g, const struct sim_opts *o,
                            struct sim_result *r);

/* The best lower bound on the makespan, on the classes of the mask; transfers
 * are not counted. A failure has its sentence in `why`. */
heddle_status sim_graph_bound(const struct sim_graph *g, const heddle_machine *m, uint64_t classes,
                              double *bound_ns_out, char *why, size_t cap);

/* Edges of the graph, as pairs; NULL: no memory. Free it. */
uint32_t *sim_graph_edges(const struct sim_graph *g, size_t *nedges_out);

#endif /* HEDDLE_TOOLS_SIM_GRAPH_H */
