/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_DEMO_DEMO_H
#define HEDDLE_TOOLS_DEMO_DEMO_H

/*
 * A tile Cholesky factorisation as a task graph, checked afterwards: for the demo (see
 * demo/run.h) and for benchmarks.
 *
 *   demo/matrix.c  the matrix, its kernels, factorisation and check
 *   demo/report.c  what the log says about the run
 *   cholesky*.c    the task graph and its kernels
 *   tile*.c        arithmetic on one tile
 *
 * The matrix is A[i][j] = h(i, j) + (i == j ? n : 0) with h a hash into
 * [-1/2, 1/2): symmetric, positive definite, and the same on every machine, so
 * that the check can make it again instead of keeping a copy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "heddle/heddle.h"
#include "tile/cholesky.h"
#include "tile/tile.h"

enum { DEMO_FILL = CHOLESKY_NKINDS, DEMO_NORM, DEMO_NKERNELS };

struct demo_matrix {
    const struct heddle_tile_ops *ops;
    size_t n, nb;
    uint32_t nt;  /* tiles along a side */
    double *data; /* nt (nt + 1) / 2 tiles of nb x nb each */
    size_t bytes;
    int *info;                           /* of each potrf, see tile/cholesky.h */
    heddle_kernel kernel[DEMO_NKERNELS]; /* constant after init */
};

/* Called now and then while tasks run. */
typedef void (*demo_tick_fn)(void *user, uint64_t done);

struct demo_factor {
    heddle_ctx *ctx;
    demo_tick_fn tick;
    void *tick_user;
    double wall_ns; /* result: submission and wait */
    size_t bad_row; /* result: 1 + the row whose pivot is not positive; 0: none
                       was found on a device */
};

/* Bytes of a matrix; 0: it does not fit into a size_t. */
size_t demo_matrix_bytes(size_t n, size_t nb);
/* HEDDLE_ENOMEM. */
heddle_status demo_matrix_init(struct demo_matrix *m, const struct heddle_tile_ops *ops, size_t n,
                               size_t nb);
void demo_matrix_fini(struct demo_matrix *m);

/* A = the matrix, by tasks of ctx. */
heddle_status demo_matrix_fill(struct demo_matrix *m, heddle_ctx *ctx);
/* A = L L^T by tasks of f->ctx. */
heddle_status demo_matrix_factor(struct demo_matrix *m, struct demo_factor *f);
/* ||A - L L^T|| / (n ||A|| eps) in the Frobenius norm, by tasks of ctx. */
heddle_status demo_matrix_check(struct demo_matrix *m, heddle_ctx *ctx, double *error_out);
/* Operations of the whole factorisation, n^3/3 and less. */
double demo_matrix_flops(size_t n);

/* Operations per nanosecond of gemm on tiles of order nb, one core; 0: no
 * memory to try. */
double demo_peak(const struct heddle_tile_ops *ops, size_t nb);

enum { DEMO_MAX_DEVICES = 15, DEMO_MAX_KERNELS = 24 };

/* What the log of the factorisation says. */
struct demo_report {
    double utilisation;      /* of the cores, 0..1 */
    double overhead_task_ns; /* of the cores: not in a task, not known idle */
    double area_ns;          /* all work, spread perfectly */
    double path_ns;          /* longest chain of these tasks */
    double bound_ns;         /* no schedule of them is shorter */
    bool has_deps;           /* false: the log has no dependencies (level 0) */
    uint64_t log_bytes;
    uint64_t ntasks;     /* that ended well */
    uint64_t core_tasks; /* of these, on the cores */
    unsigned nkernels;   /* that ran tasks; the last one stands for all others */
    struct demo_kernel {
        char name[48];
        uint64_t ntasks;
    } kernel[DEMO_MAX_KERNELS];
    unsigned ndevices;
    struct demo_device {
        char name[32];
        unsigned nstreams;
        uint64_t ntasks;
        double busy; /* part of the makespan with a task on it */
    } device[DEMO_MAX_DEVICES];
};

/* `why` gets a sentence on failure. */
heddle_status demo_report_read(struct demo_report *r, const char *path, unsigned nworkers,
                               char *why, size_t why_bytes);

#endif /* HEDDLE_TOOLS_DEMO_DEMO_H */
