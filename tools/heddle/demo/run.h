/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_DEMO_RUN_H
#define HEDDLE_TOOLS_DEMO_RUN_H

/*
 * One run of the demo, and its parts.
 *
 *   cmd/demo.c     options, contexts, the order of steps
 *   demo/dense.c   the factorisation by the dense library
 *   demo/tiles.c   the same by tiles, with kernels of the tool
 *   demo/report.c  what the log says about the run
 *   demo/print.c   the summary, the JSON object
 *
 * A way to factorise is three functions in a struct demo_way. Every clock stops before
 * the check, which shares nothing with what it checks but the memory.
 *
 * Threads  the main thread, and one that moves the progress bar.
 */
#include "base/text.h"
#include "common/progress.h"
#include "demo/demo.h"

/* A backward stable method stays far below. */
#define DEMO_GOOD_ERROR 10.0

struct demo_run;

/* Each returns 0, or the exit status after a sentence. */
struct demo_way {
    /* Chooses n and nb, makes the matrix; what is slow for the first time happens here. */
    int (*prepare)(struct demo_run *d);
    /* Factorises, on the clock. */
    int (*execute)(struct demo_run *d);
    /* When the context is gone: d->error. */
    int (*check)(struct demo_run *d);
    /* In every case. */
    void (*clean)(struct demo_run *d);
};

extern const struct demo_way demo_way_dense, demo_way_tiles;

struct demo_dense; /* dense.c */

struct demo_run {
    struct cli *c;
    const struct demo_way *way;
    const char *log, *page, *kernels, *devices;
    uint64_t workers, log_level;
    bool no_progress;
    uint64_t n, nb; /* 0: by machine and memory */

    heddle_ctx *ctx; /* runs the factorisation */
    struct heddle_ctx_stats stats;
    unsigned ngpus;
    unsigned gpu_memory; /* index of the first GPU's */
    uint64_t memory_available;
    struct progress progress;
    char why[320];

    /* Of the ways. */
    struct demo_matrix matrix; /* tiles */
    heddle_ctx *work;          /* tiles: fills and checks */
    struct demo_dense *dense;

    /* Results. */
    double load_ns;          /* until everything was loaded; 0: nothing was */
    double send_ns, home_ns; /* copies to the GPU and back; 0: inside of wall_ns */
    double sent, fetched;    /* bytes of these */
    double wall_ns;          /* the factorisation */
    uint64_t begin_ns;       /* it began then; 0: the log has nothing else */
    double peak;             /* operations per ns of gemm, all workers; 0: unknown */
    double error;
    struct demo_report report;
};

/* The sentence about the failure `st` of a step; returns 1. */
int demo_failed(struct demo_run *d, heddle_ctx *ctx, const char *step, heddle_status st);
/* Does a matrix of `bytes`, twice, fit into the memory? 0, or 1 after a sentence. */
int demo_fits(struct demo_run *d, double bytes);
/* Operations per ns. */
double demo_rate(const struct demo_run *d);

void demo_print(const struct demo_run *d);
int demo_print_json(const struct demo_run *d);

#endif /* HEDDLE_TOOLS_DEMO_RUN_H */
