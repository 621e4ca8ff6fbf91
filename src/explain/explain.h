/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_EXPLAIN_EXPLAIN_H
#define HEDDLE_EXPLAIN_EXPLAIN_H

/*
 * Private to explain: what its files share.
 *
 * A *row* is an entry of the log's tasks[]: one execution, or one task that
 * never ran. A *job* is a task: all rows with one id. Rows that ran come first
 * and are in order of their start, so "row < nran" says that it ran.
 *
 * All scratch memory belongs to one heddle_explain_mem, all results to
 * another one, so there is nothing to undo on a failure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scratch.h"
#include "heddle/explain.h"

#define HEDDLE_EXPLAIN_NONE UINT32_MAX

/* Workers of one type can run the same kernels: cores, or devices of a kind. */
enum {
    HEDDLE_EXPLAIN_CORE = 0,
    HEDDLE_EXPLAIN_DEVICE = 7, /* of a kind that the log does not tell */
    HEDDLE_EXPLAIN_NTYPES = 8,
    HEDDLE_EXPLAIN_NOT_A_WORKER = 255
};

/* Time in which a worker is in a task, or in several: a union, so two of one
 * lane never touch. */
struct heddle_explain_busy {
    int64_t start, end;
    int64_t before; /* busy time of the lane before `start` */
    uint32_t first; /* the row that starts it */
    uint32_t last;  /* a row that ends it */
};

/* A transfer, from when it was asked for to its end. */
struct heddle_explain_move {
    uint64_t key;
    int64_t start, end;
};

/* Sorted by key, then by start. */
struct heddle_explain_moves {
    struct heddle_explain_move *p;
    size_t n;
};

struct heddle_explain_work {
    const heddle_log *log;
    const struct heddle_log_view *v;
    struct heddle_scratch *mem;
    int64_t first, last; /* of the run */
    uint32_t nrows, nran;

    /* index.c: jobs in order of id. NONE in a column: there is none. */
    uint32_t njobs;
    uint64_t *id;       /* [njobs] */
    uint32_t *job;      /* [nrows] */
    uint32_t *head;     /* [njobs] its first row, of the leader of a gang */
    uint32_t *main;     /* [njobs] its last row, likewise */
    uint32_t *parent;   /* [njobs] */
    uint32_t *before;   /* [nrows] the execution that this one repeats */
    int64_t *end;       /* [njobs] of it and its descendants */
    uint32_t *last_row; /* [njobs] a row that ends then */
    int64_t *avail;     /* [njobs] what it waits for had ended by then */
    int64_t *ready;     /* [nrows] first <= ready <= start */
    uint32_t *pred_at;  /* [njobs + 1] predecessors of j: pred[pred_at[j]] up */
    uint32_t *pred;     /* to pred[pred_at[j + 1]]; jobs, NONE among them */

    /* lanes.c */
    uint8_t *type;        /* [lanes] or NOT_A_WORKER */
    uint8_t *kernel_mask; /* [kernels] bit t: workers of type t can run it */
    uint8_t *is_good;     /* [nrows] it ended well and was not repeated */
    size_t *busy_at;      /* [lanes + 1] */
    struct heddle_explain_busy *busy;
    size_t *state_at; /* [lanes + 1] */
    uint32_t *state;  /* indices of states, by lane, then by start */
    bool has_looks;   /* workers note when they look for work */
    bool has_waits;   /* and when they wait for data or memory */
    int64_t *program; /* submissions of the main program, sorted */
    size_t nprogram;
    uint32_t program_lane; /* the main program runs there, or NONE */

    /* moves.c */
    struct heddle_explain_moves data;
    struct heddle_explain_moves room;
};

/* index.c */
HEDDLE_MUST_USE heddle_status heddle_explain_index(struct heddle_explain_work *w);
/* NONE: the log has no such task. */
uint32_t heddle_explain_find(const struct heddle_explain_work *w, uint64_t id);
static inline bool heddle_explain_is_helper(const struct heddle_log_task *t)
{
    return (t->flags & HEDDLE_LOG_GANG) != 0;
}

/* implied.c: dependencies that are not in the log. */
struct heddle_explain_implied;
/* At most so many; 0: there are too many, ask for none. */
size_t heddle_explain_implied_max(const struct heddle_log_view *v);
HEDDLE_MUST_USE heddle_status heddle_explain_implied_create(const struct heddle_explain_work *w,
                                                            struct heddle_scratch *mem,
                                                            struct heddle_explain_implied **out);
/* Writes the predecessors of a job; returns how many. Ask for all jobs in order,
 * once. */
uint32_t heddle_explain_implied_of(const struct heddle_explain_work *w,
                                   struct heddle_explain_implied *m, uint32_t job, uint32_t *out);

/* lanes.c */
HEDDLE_MUST_USE heddle_status heddle_explain_lanes(struct heddle_explain_work *w);
/* Busy time of a lane in [a, b]. */
int64_t heddle_explain_busy_in(const struct heddle_explain_work *w, uint32_t lane, int64_t a,
                               int64_t b);
/* Number of busy pieces of the lane that start before t. */
size_t heddle_explain_busy_before(const struct heddle_explain_work *w, uint32_t lane, int64_t t);

/* moves.c: the time between a row being ready and its start in which its data
 * were on their way, or room was made for it. Disjoint pieces within [a, b],
 * in order; at most HEDDLE_EXPLAIN_SPANS of them. */
enum { HEDDLE_EXPLAIN_SPANS = 64 };
struct heddle_explain_span {
    int64_t start, end;
};
HEDDLE_MUST_USE heddle_status heddle_explain_moves(struct heddle_explain_work *w);
size_t heddle_explain_data(const struct heddle_explain_work *w, uint32_t row, int64_t a, int64_t b,
                           struct heddle_explain_span *out);
size_t heddle_explain_room(const struct heddle_explain_work *w, uint32_t row, int64_t a, int64_t b,
                           struct heddle_explain_span *out);

/* supply.c: what there was to run for workers of one type, from `first` to
 * `last`: START, END, SCHED, SUBMIT, DEPS or UNKNOWN. */
struct heddle_explain_step_at {
    int64_t t; /* from here to the next */
    uint8_t cause;
};
struct heddle_explain_supply {
    uint32_t *by_ready, *by_avail, *by_submit; /* rows */
    size_t nready, navail, nsubmit;
    struct heddle_explain_step_at *step;
    size_t n;
    struct heddle_scratch *mem;
};
HEDDLE_MUST_USE heddle_status heddle_explain_supply_create(const struct heddle_explain_work *w,
                                                           struct heddle_explain_supply *s);
/* Fills step[] for that type. */
void heddle_explain_supply_run(const struct heddle_explain_work *w, struct heddle_explain_supply *s,
                               unsigned type);

/* idle.c: lanes, gaps, totals of the result. */
HEDDLE_MUST_USE heddle_status heddle_explain_idle(struct heddle_explain_work *w,
                                                  struct heddle_explain *x,
                                                  struct heddle_scratch *out);

/* blame.c: wait and the chain; path.c: the path. */
HEDDLE_MUST_USE heddle_status heddle_explain_blame(struct heddle_explain_work *w,
                                                   struct heddle_explain *x,
                                                   struct heddle_scratch *out);
HEDDLE_MUST_USE heddle_status heddle_explain_path(struct heddle_explain_work *w,
                                                  struct heddle_explain *x,
                                                  struct heddle_scratch *out);

/* explain.c: first, last, rows of a log. Runs the index as well. */
HEDDLE_MUST_USE heddle_status heddle_explain_begin(struct heddle_explain_work *w,
                                                   const heddle_log *log,
                                                   struct heddle_scratch *mem);

/* A forged log can have any durations: sums stop at the largest number. */
static inline int64_t heddle_explain_add(int64_t a, int64_t b)
{
    int64_t r;

    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static inline int64_t heddle_explain_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t heddle_explain_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif /* HEDDLE_EXPLAIN_EXPLAIN_H */
