/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_BENCH_H
#define HEDDLE_TOOLS_BENCH_BENCH_H

/*
 * What the benchmarks share: options, contexts with counted memory, the task
 * streams, statistics, and the gate that tells near cores from far ones.
 *
 * A benchmark is one file bench/<name>.c that defines heddle_bench_<name>, and
 * one line in bench/bench.def. Contexts ignore the environment: a result depends on
 * the options alone, and they are printed with it.
 *
 * Threads  the main thread, unless a function says otherwise.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "heddle/heddle.h"
#include "tile/cholesky.h"

/* --- options ------------------------------------------------------------- */

struct bench_opts {
    const char *shape;
    const char *sched; /* NULL: the default */
    const char *log;   /* a file; NULL: the recorder keeps the latest records */
    uint64_t tasks, workers, reps, window, log_level;
    double task_ns;         /* 0: empty kernels */
    const char *energy;     /* as in heddle_ctx_opts; NULL: off */
    const char *devices;    /* as in heddle_ctx_opts */
    uint64_t device_memory; /* the same */
    bool no_log, no_bind, gate;
};

enum bench_accepts {
    BENCH_SHAPE = 1 << 0,
    BENCH_TASKS = 1 << 1,
    BENCH_REPS = 1 << 2,
    BENCH_TASK_US = 1 << 3,
    BENCH_GATE = 1 << 4,
    BENCH_NO_LOG = 1 << 5,
    BENCH_WINDOW = 1 << 6,
};

/*
 * Reads the options of a benchmark into `o`, which holds the defaults: those in
 * the mask, and --workers, --sched, --log, --log-level, --no-bind and --json
 * always. Returns 0, or the exit status after a sentence.
 */
int bench_parse(struct cli *c, const char *what, int argc, char **argv, unsigned accepts,
                struct bench_opts *o);

/* --- contexts ------------------------------------------------------------ */

/* Counts what a context takes from the heap. */
struct bench_memory {
    _Atomic uint64_t calls; /* of alloc() */
    _Atomic int64_t live;   /* bytes */
    char why[320];          /* the latest sentence of the context */
};

/* Returns 0, or the exit status after a sentence. `m` outlives the context. */
int bench_open(struct cli *c, const struct bench_opts *o, struct bench_memory *m,
               heddle_ctx **ctx_out);
/* Destroys it; the exit status. */
int bench_close(struct cli *c, const struct bench_memory *m, heddle_ctx *ctx);
/* The same; then, in text and when the log is a file, how near the run came to
 * the best possible. */
int bench_finish(struct cli *c, const struct bench_opts *o, const struct bench_memory *m,
                 heddle_ctx *ctx);
/* A sentence about a failure in the context; returns 1. */
int bench_fail(struct cli *c, heddle_ctx *ctx, heddle_status st);
unsigned bench_nworkers(heddle_ctx *ctx);

/* --- streams ------------------------------------------------------------- */

/* A task reads its first operands and updates the last one. */
struct stream_task {
    uint32_t h[3];
    uint32_t kind; /* index of its kernel */
};

enum stream_shape {
    STREAM_INDEPENDENT, /* no data */
    STREAM_CHAIN,       /* all update one handle */
    STREAM_RANDOM,      /* 1024 handles: two are read, a third is updated */
    STREAM_CHOLESKY,    /* tile Cholesky of 64 x 64 tiles */
    STREAM_REPLAY,      /* the same, recorded once */
    STREAM_NSHAPES
};

extern const char *const heddle_stream_names[STREAM_NSHAPES + 1];

struct stream {
    heddle_ctx *ctx;
    enum stream_shape shape;
    size_t ntasks;
    struct stream_task *task; /* NULL where all tasks are alike */
    heddle_handle **handle;
    size_t nhandles;
    double *data; /* behind the handles */
    heddle_graph *graph;
    uint64_t ticks; /* that a task keeps its worker busy; 0: empty */
    bool is_bound;  /* the submitter too, while the stream runs */
    struct heddle_call call;
};

/* One run of a stream. */
struct stream_time {
    double wall_ns; /* submission of all and heddle_wait() */
    double submit_ns;
    double cpu_ns; /* of all threads of the process */
};

/* NULL or "all" is every shape: then *all_out. False: no such shape. */
bool stream_find(const char *name, enum stream_shape *shape_out, bool *all_out);
/* Takes tasks, task_ns and no_bind from `o`. `s` may be closed in every case. */
heddle_status stream_open(struct stream *s, heddle_ctx *ctx, enum stream_shape shape,
                          const struct bench_opts *o);
heddle_status stream_run(struct stream *s, struct stream_time *t);
void stream_close(struct stream *s);
/* Three-operand tasks over 1024 handles, `ntasks` of them. */
void stream_draw(struct stream_task *task, size_t ntasks);
const heddle_kernel *stream_kernel(bool is_busy, unsigned kind);

enum { STREAM_RANDOM_HANDLES = 1024, STREAM_TILES = 64 };

/* --- measures ------------------------------------------------------------ */

struct bench_stat {
    double median, min, max;
};

/* Sorts v. n > 0. */
struct bench_stat bench_stat(double *v, size_t n);

/* Sleeps until no thread of the process works any more, 5 s at most: threads of a
 * BLAS spin for a while, and memory is unpinned behind a run. What is timed next
 * must not pay for that, ours or the peer's. */
void bench_settle(void);

/* What all threads of the process have used of the cores. */
uint64_t bench_process_ns(void);

/* Ticks of the core's counter in that many nanoseconds. */
uint64_t bench_ticks(double ns);

/* Bytes of heap that a task with three operands holds while it is pending.
 * Returns 0, or the exit status after a sentence. */
int bench_pending_bytes(struct cli *c, const struct bench_opts *o, double *out);

/* --- two contexts in turn ------------------------------------------------ */

struct bench_pair {
    struct cli *c;
    struct bench_opts o[2]; /* of equal reps */
    enum stream_shape shape;
    struct bench_memory memory[2];
    heddle_ctx *ctx[2];
    struct stream stream[2];
    struct bench_stat ns[2]; /* per task */
};

/* Returns 0, or the exit status after a sentence. */
int bench_pair_run(struct bench_pair *p);
/* In every case. Returns rc, or the status of a close that failed. */
int bench_pair_close(struct bench_pair *p, int rc);

/* --- the gate ------------------------------------------------------------ */

#define BENCH_NEAR_NS 70.0 /* a line transfer below it: the cores are near */

struct bench_gate {
    int cpu[2];
    bool is_on; /* false: fewer than two CPUs, nothing is known */
};

/* Call it before the first context, which may bind the calling thread. */
void bench_gate_init(struct bench_gate *g);
/* One-way transfer time of a cache line between the two CPUs; 0: unknown.
 * Starts two threads of its own. */
double bench_gate_ping(const struct bench_gate *g);

/* --- output -------------------------------------------------------------- */

/* Keys that every result begins with. */
void bench_json_head(struct heddle_json *j, const char *name, const struct bench_opts *o,
                     heddle_ctx *ctx);
/* Ends the object and the line; the exit status. */
int bench_json_end(struct cli *c, struct heddle_json *j);

#endif /* HEDDLE_TOOLS_BENCH_BENCH_H */
