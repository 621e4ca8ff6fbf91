/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_EXPLAIN_H
#define HEDDLE_EXPLAIN_H

/*
 * heddle/explain.h - why a run took as long as it did, from its log.
 *
 * heddle_explain_create() cuts the time of every worker into pieces, each with a cause, so
 * that the pieces of a worker add up to the makespan, exactly. It also follows the run
 * backwards from its last task; the steps of this chain of blame add up to the makespan
 * too. docs/design/explain.md has the rules.
 *
 * Threads:  pure functions of a log, which never changes; any thread.
 * Errors:   functions return heddle_status; on failure nothing was created.
 * Times:    as in heddle/trace.h: int64_t nanoseconds since the log began.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"
#include "heddle/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a worker did, or waited for. The first cause that applies counts. A task is ready
 * when it was submitted and all its predecessors have ended. */
enum heddle_explain_cause {
    HEDDLE_CAUSE_WORK = 0, /* in a task that ended well */
    HEDDLE_CAUSE_WASTE,    /* in an execution that failed or was repeated */
    HEDDLE_CAUSE_DATA,     /* the next task of the worker was ready, its operands were
                              being transferred */
    HEDDLE_CAUSE_MEMORY,   /* the next task of the worker was ready and waited for room */
    HEDDLE_CAUSE_OVERHEAD, /* in the runtime */
    HEDDLE_CAUSE_START,    /* no task of the run had begun yet */
    HEDDLE_CAUSE_END,      /* no task that the worker could run was left to begin */
    HEDDLE_CAUSE_SCHED,    /* a task that the worker could run was ready */
    HEDDLE_CAUSE_SUBMIT,   /* a task that could have run was not submitted yet, or the
                              thread of this worker was submitting */
    HEDDLE_CAUSE_DEPS,     /* no task was ready: all waited for others */
    HEDDLE_CAUSE_UNKNOWN,  /* the log does not tell (level 0) */
    HEDDLE_NCAUSES
};

/* The name of a cause, "work", "waste", "data" and so on, and a sentence about it for people;
 * "?" for other values. */
HEDDLE_API const char *heddle_explain_cause_name(unsigned cause);
HEDDLE_API const char *heddle_explain_cause_text(unsigned cause);

/* A piece of a worker's time that is not WORK or WASTE. Where causes change very
 * often on very many idle workers, neighbouring pieces are put together by
 * cause: their lengths stay, their order does not. */
struct heddle_explain_gap {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t lane;
    uint8_t cause; /* enum heddle_explain_cause */
};

/* The time of a lane by cause. ns[] of a worker adds up to the makespan; of other lanes it
 * is zero. The gaps of a worker add up to ns[], cause by cause. */
struct heddle_explain_lane {
    bool is_worker; /* the lane is of kind WORKER or DEVICE, or ran a task */
    int64_t ns[HEDDLE_NCAUSES];
};

/* Why the chain of blame stood at a task. */
enum heddle_explain_blame {
    HEDDLE_BLAME_EXEC = 0, /* the task ran */
    HEDDLE_BLAME_TRANSFER, /* its data were being transferred, or room was made */
    HEDDLE_BLAME_QUEUE,    /* the task waited behind other tasks of that worker, or of
                              the thread that submits it */
    HEDDLE_BLAME_SUBMIT,   /* the task was not submitted yet */
    HEDDLE_BLAME_OVERHEAD, /* the rest: waking up, scheduling, noticing ends */
    HEDDLE_NBLAMES
};

/* "exec", "transfer" and so on; "?" for other values. */
HEDDLE_API const char *heddle_explain_blame_name(unsigned blame);

/* A step of the chain of blame. Steps are in order of time and add up to the makespan. */
struct heddle_explain_step {
    int64_t start_ns;
    int64_t end_ns;
    size_t task;   /* index in the log's tasks[]; SIZE_MAX: before the first */
    uint8_t blame; /* enum heddle_explain_blame */
};

/* The explanation of a run. */
struct heddle_explain {
    size_t size; /* the size the library knows */

    int64_t first_ns; /* first submission or start, as in a log's summary */
    int64_t last_ns;
    int64_t makespan_ns;
    uint64_t nworkers;
    /* Sums to nworkers * makespan_ns; INT64_MAX where that does not fit, which
     * takes centuries or a forged log. */
    int64_t total_ns[HEDDLE_NCAUSES];

    const struct heddle_explain_lane *lanes; /* one per lane of the log */
    size_t nlanes;
    const struct heddle_explain_gap *gaps; /* by lane, then by start */
    size_t ngaps;

    const struct heddle_explain_step *steps; /* the chain of blame */
    size_t nsteps;
    int64_t blame_ns[HEDDLE_NBLAMES]; /* sums to makespan_ns */

    /* Longest chain of dependencies with the measured durations: indices in
     * the log's tasks[], first to last. */
    const size_t *path;
    size_t npath;
    int64_t path_ns;

    /* For each entry of the log's tasks[]: why it did not start when it was ready (DATA,
     * MEMORY, SCHED for "behind other tasks", OVERHEAD), or UNKNOWN. */
    const uint8_t *wait;
    size_t ntasks;
};

/* Explains the run of a log. `a` may be NULL. HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_explain_create(const heddle_log *log,
                                                               const struct heddle_allocator *a,
                                                               struct heddle_explain **out);
/* Frees an explanation. NULL is fine. The allocator must still be there. */
HEDDLE_API void heddle_explain_destroy(struct heddle_explain *x);

/* Something that changes over time. */
enum heddle_explain_curve_kind {
    HEDDLE_CURVE_RUNNING = 0, /* tasks that run */
    HEDDLE_CURVE_READY,       /* ready, not started */
    HEDDLE_CURVE_SUBMITTED,   /* submitted, not ended */
    HEDDLE_CURVE_MEMORY,      /* bytes in use on memory node `which` (index) */
    HEDDLE_CURVE_POWER,       /* watts of domain `which` */
    HEDDLE_CURVE_LINK,        /* bytes per second; `which` = source node index +
                                 256 * destination node index */
    HEDDLE_NCURVES
};

/* A curve: value[i] holds from t_ns[i] to t_ns[i + 1], the last value to the end. */
struct heddle_explain_curve {
    size_t n; /* 0: the log has no such records */
    const int64_t *t_ns;
    const double *value;
    double max;
};

/* Makes a curve of a log. HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_explain_curve_create(
    const heddle_log *log, enum heddle_explain_curve_kind kind, uint32_t which,
    const struct heddle_allocator *a, struct heddle_explain_curve **out);
/* Frees a curve. NULL is fine. */
HEDDLE_API void heddle_explain_curve_destroy(struct heddle_explain_curve *c);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_EXPLAIN_H */
