/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BENCH_PEERS_WORK_H
#define HEDDLE_BENCH_PEERS_WORK_H

/*
 * work: real work, on cores and on an OpenCL device, for two runtimes.
 *
 * work_heddle.c and work_starpu.c each have main(), which calls work_main().
 * The data, the kernels, the order of tasks, the clocks and the check of the
 * result are here, so that the programs differ in the runtime only.
 *
 * Works:
 *   cholesky       tile Cholesky in double, CBLAS and LAPACKE, cores only
 *   sweep          y_i += a x_i over tiles; tile i is updated by the device in
 *                  every second sweep and by a core in the others, neighbours
 *                  the other way round: every update moves a tile
 *   own, shared    an empty kernel on the device, a handle for each task or one
 *                  for all of them
 *   own-bare, shared-bare  the same, but nothing is put on the device's queue:
 *                  what the runtime alone costs
 *
 * Threads: the kernels may run on any thread; the rest is for one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum work_kind {
    WORK_CHOLESKY,
    WORK_SWEEP,
    WORK_OWN,
    WORK_SHARED,
    WORK_OWN_BARE,
    WORK_SHARED_BARE,
    WORK_NKINDS
};

struct work_opts {
    enum work_kind kind;
    const char *sched; /* NULL: the runtime's default */
    unsigned cores;    /* that may run tasks */
    unsigned reps;
    unsigned warm; /* repetitions before them, which are not printed */
    size_t n;      /* cholesky: order of the matrix */
    size_t tile;   /* cholesky: order of a tile; the last ones may be smaller */
    size_t ntiles; /* sweep */
    size_t elems;  /* sweep: floats in a tile */
    size_t sweeps;
    size_t ntasks; /* own, shared */
};

struct work {
    struct work_opts opts;
    double *a;  /* cholesky: tiles (i, j), i >= j, each column-major, dense, in
                   a place of its own of tile * tile elements */
    size_t nt;  /* tiles along a side */
    float *x;   /* sweep */
    float *y;   /* sweep */
    void *self; /* the runtime's own */
};

enum { WORK_POTRF, WORK_TRSM, WORK_SYRK, WORK_GEMM, WORK_NSTEPS };

/* One task of the Cholesky. Operands are tiles, the last one is updated. */
struct work_step {
    int kind;
    unsigned n;
    size_t tile[3];
    int priority; /* higher is nearer to the end of the critical path */
};

typedef int (*work_step_fn)(struct work *w, const struct work_step *s);

/* Members return 0 or, after a message on stderr, 1; open() returns 3 where
 * there is no device. run() submits all tasks and returns when they have ended
 * and, but for own and shared, their data are in host memory. */
struct work_ops {
    const char *name;
    int (*open)(struct work *w);
    int (*run)(struct work *w);
    const char *(*sched)(struct work *w); /* the scheduler in use */
    void (*close)(struct work *w);
};

/* Returns the exit status: 0 done, 1 failed, 2 wrong options, 3 the runtime has
 * no OpenCL device (open() returned 3). */
int work_main(int argc, char **argv, const struct work_ops *ops);

/* Calls fn for each task of the Cholesky, in order, until it fails. */
int work_cholesky(struct work *w, work_step_fn fn);
static inline size_t work_tile(size_t i, size_t j)
{
    return i * (i + 1) / 2 + j;
}

/* Rows of the tiles (i, .), columns of the tiles (., i). */
static inline size_t work_extent(const struct work *w, size_t i)
{
    const size_t rest = w->opts.n - i * w->opts.tile;

    return rest < w->opts.tile ? rest : w->opts.tile;
}

/* From tile (i, j) to the next one in memory. */
static inline void work_next(size_t *i, size_t *j)
{
    if (++*j > *i) {
        ++*i;
        *j = 0;
    }
}

/* Is this update of the sweeps the device's? */
static inline bool work_is_on_device(size_t sweep, size_t tile)
{
    return (sweep + tile) % 2 == 0;
}

bool work_is_bare(const struct work *w);
bool work_is_shared(const struct work *w);

/* ---- kernels: tiles are column-major, dense ----------------------------- */

int work_potrf(size_t n, double *a);
/* B = B L^-T, B is m x n. */
void work_trsm(size_t m, size_t n, const double *l, double *b);
/* C = C - A A^T, A is n x k. */
void work_syrk(size_t n, size_t k, const double *a, double *c);
/* C = C - A B^T, A is m x k, C is m x n. */
void work_gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c);

#define WORK_ALPHA 0.5f
void work_axpy(size_t n, const float *x, float *y);

/* OpenCL C: axpy(x, y) and empty(y). */
extern const char work_source[];

#endif /* HEDDLE_BENCH_PEERS_WORK_H */
