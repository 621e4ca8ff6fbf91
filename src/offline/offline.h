/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_OFFLINE_OFFLINE_H
#define HEDDLE_OFFLINE_OFFLINE_H

/*
 * Private to offline: the problem as policies see it, the contract of a policy,
 * and the tools they share.
 *
 * check.c does not include this header: it must not share anything.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "base/why.h"
#include "heddle/offline.h"

#define HEDDLE_OFFLINE_NONE UINT32_MAX

/* The checked problem; read-only for policies. */
struct heddle_offline_dag {
    uint32_t n;                /* tasks */
    uint32_t r;                /* types */
    uint32_t e;                /* edges */
    uint32_t w;                /* workers */
    uint32_t *first;           /* [r + 1] workers of type i: first[i] to first[i + 1] */
    uint32_t *worker;          /* [w] type of a worker */
    double *time;              /* [rows x r] INFINITY: cannot; also without workers */
    uint32_t *row;             /* [n] */
    double *fast;              /* [n] least time */
    uint8_t *home;             /* [n] its type, the first of them */
    uint32_t *topo;            /* [n] an order that respects the edges */
    uint32_t *succ_end, *succ; /* successors of t: succ[succ_end[t] ...] */
    uint32_t *pred_end, *pred;
    double *pred_bytes; /* [e] as pred; NULL: no transfers */
    const double *latency, *byte_time;
    const double *release; /* NULL: none */
    bool is_plain;         /* neither transfers nor releases */
    const double *cost;    /* [rows x r] NULL: the length counts */
    double cost_top;       /* no schedule in time costs more */

    const struct heddle_bound_graph *graph; /* the caller's */
    const struct heddle_offline_opts *opts;
    uint64_t deadline; /* heddle_clock_ns; 0: none */
};

static inline const double *heddle_offline_row(const struct heddle_offline_dag *d, uint32_t t)
{
    return d->time + (size_t)d->row[t] * d->r;
}

static inline double heddle_offline_time(const struct heddle_offline_dag *d, uint32_t t,
                                         uint32_t type)
{
    return d->time[(size_t)d->row[t] * d->r + type];
}

/* A schedule while it is made. */
struct heddle_offline_sched {
    double makespan;
    const char *policy;  /* `best`: whose it was; NULL: the policy's own */
    uint64_t iterations; /* of `best` */
    uint32_t *type;      /* [n] */
    uint32_t *worker;    /* [n] */
    double *start;       /* [n] */
    double *end;         /* [n] */
};

/*
 * A policy: one file, one line in offline.def. run() fills `out`, whose arrays
 * are there; memory it needs comes from `m`, which the caller drops.
 *
 * HEDDLE_ENOMEM; HEDDLE_EINVAL with a sentence (heddle_offline_fail).
 */
struct heddle_offline_ops {
    const char *name;
    const char *help;
    heddle_status (*run)(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out);
    uint32_t seed_limit; /* `best` starts from it up to so many tasks */
};

extern const struct heddle_offline_ops *const heddle_offline_table[];

/* Writes the sentence into opts->why and returns st. */
#define HEDDLE_OFFLINE_FAIL(opts, st, ...)                                                         \
    heddle_why((opts)->why, (opts)->why_bytes, st, __VA_ARGS__)
bool heddle_offline_is_late(const struct heddle_offline_dag *d);

/* graph.c */
HEDDLE_MUST_USE heddle_status heddle_offline_build(const struct heddle_bound_graph *g,
                                                   const struct heddle_offline_opts *opts,
                                                   struct heddle_scratch *m,
                                                   struct heddle_offline_dag *d_out);
bool heddle_offline_sched_get(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                              struct heddle_offline_sched *s_out);
void heddle_offline_sched_copy(const struct heddle_offline_dag *d, struct heddle_offline_sched *to,
                               const struct heddle_offline_sched *from);

/* --- rank.c ---------------------------------------------------------------- */

/* Mean time of the bytes of an edge (index into pred); 0 without transfers. */
double heddle_offline_mean_delay(const struct heddle_offline_dag *d, uint32_t edge);
/* rank[t] = weight[t] + the longest way behind it, mean transfers counted. */
void heddle_offline_rank(const struct heddle_offline_dag *d, const double *weight, double *rank);
/* Longest way before each task, with the least times. */
void heddle_offline_heads(const struct heddle_offline_dag *d, double *head);
/* order[i]: the task with the i-th greatest rank >= 0; ties as in topo. */
HEDDLE_MUST_USE heddle_status heddle_offline_order(const struct heddle_offline_dag *d,
                                                   const double *rank, struct heddle_scratch *m,
                                                   uint32_t *order);
/* Always the ready task with the greatest rank: respects the edges. */
HEDDLE_MUST_USE heddle_status heddle_offline_ready_order(const struct heddle_offline_dag *d,
                                                         const double *rank,
                                                         struct heddle_scratch *m, uint32_t *order);
/* The order by rank with the times of an allocation. */
HEDDLE_MUST_USE heddle_status heddle_offline_order_types(const struct heddle_offline_dag *d,
                                                         const uint8_t *type,
                                                         struct heddle_scratch *m, uint32_t *order);

/* --- place.c --------------------------------------------------------------- */

/* Tasks in a topological order, each on the worker where `end + bias` is least,
 * gaps included. bias is [n x r]; NULL: nothing. */
HEDDLE_MUST_USE heddle_status heddle_offline_place(const struct heddle_offline_dag *d,
                                                   const uint32_t *order, const double *bias,
                                                   struct heddle_scratch *m,
                                                   struct heddle_offline_sched *out);

/* The same, by falling rank with these weights. */
HEDDLE_MUST_USE heddle_status heddle_offline_heft_by(const struct heddle_offline_dag *d,
                                                     const double *weight, struct heddle_scratch *m,
                                                     struct heddle_offline_sched *out);

/* --- engine.c: time goes by ------------------------------------------------ */

struct heddle_offline_event {
    double t;
    uint32_t task;
    uint32_t turn; /* of a start; 0: a release */
};

struct heddle_offline_engine {
    const struct heddle_offline_dag *d;
    struct heddle_offline_sched *out;
    double now;
    uint32_t *running; /* [w] task or HEDDLE_OFFLINE_NONE */
    uint32_t *fresh;   /* tasks that became ready with the last step */
    uint32_t nfresh;
    uint32_t nended;
    uint32_t *wait; /* [n] predecessors that have not ended */
    uint32_t *turn; /* [n] of the last start */
    struct heddle_offline_event *heap;
    size_t nheap;
};

HEDDLE_MUST_USE heddle_status heddle_offline_engine_init(struct heddle_offline_engine *e,
                                                         const struct heddle_offline_dag *d,
                                                         struct heddle_scratch *m,
                                                         struct heddle_offline_sched *out);
/* Goes to the next moment at which something happens: ends of tasks, then
 * `fresh`. False: all tasks have ended, or nothing can happen. */
bool heddle_offline_engine_step(struct heddle_offline_engine *e);
/* A ready task on an idle worker, now or as soon as its data are there. */
void heddle_offline_engine_start(struct heddle_offline_engine *e, uint32_t task, uint32_t worker);
/* Takes the running task away from its worker; it is ready again. */
void heddle_offline_engine_abort(struct heddle_offline_engine *e, uint32_t worker);
/* When the data of a task whose predecessors have ended are at the worker. */
double heddle_offline_arrival(const struct heddle_offline_dag *d,
                              const struct heddle_offline_sched *s, uint32_t task, uint32_t worker);

/* A heap of tasks, least key first, then least task. */
struct heddle_offline_heap {
    uint32_t *task;
    double *key;
    uint32_t n;
};
bool heddle_offline_heap_get(struct heddle_scratch *m, uint32_t cap,
                             struct heddle_offline_heap *h_out);
void heddle_offline_heap_push(struct heddle_offline_heap *h, uint32_t task, double key);
uint32_t heddle_offline_heap_pop(struct heddle_offline_heap *h);

/* List schedule: a free worker takes the first ready task of its type in the
 * order, which need not respect the edges. */
HEDDLE_MUST_USE heddle_status heddle_offline_list(const struct heddle_offline_dag *d,
                                                  const uint8_t *type, const uint32_t *order,
                                                  struct heddle_scratch *m,
                                                  struct heddle_offline_sched *out);

/* The same, longest way behind it first. */
HEDDLE_MUST_USE heddle_status heddle_offline_list_types(const struct heddle_offline_dag *d,
                                                        const uint8_t *type,
                                                        struct heddle_scratch *m,
                                                        struct heddle_offline_sched *out);

/* --- decode.c: the same, fast, for plain problems -------------------------- */

/* A point of the search. */
struct heddle_offline_point {
    uint8_t *type;   /* [n] */
    uint32_t *order; /* [n] */
    double length;   /* of its schedule */
    double value;    /* what is made small: the length, or a cost */
};

struct heddle_offline_decoder {
    const struct heddle_offline_dag *d;
    uint32_t *rank, *wait;     /* [n] */
    uint32_t *started, *ended; /* [n] tasks in the order of these events */
    uint32_t *back;            /* [n] */
    uint64_t *bits;            /* ready tasks per type, by rank, in levels */
    size_t words;              /* of one type */
    size_t level[6];           /* where each level starts */
    unsigned nlevels;
    double *end;                   /* [w] heap of the running tasks */
    uint32_t *run;                 /* [w] */
    uint32_t *nfree;               /* [r] */
    struct heddle_scratch scratch; /* of problems that are not plain */
    struct heddle_offline_sched s;
};

HEDDLE_MUST_USE heddle_status heddle_offline_decoder_init(struct heddle_offline_decoder *c,
                                                          const struct heddle_offline_dag *d,
                                                          struct heddle_scratch *m);
void heddle_offline_decoder_fini(struct heddle_offline_decoder *c);
bool heddle_offline_point_get(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                              struct heddle_offline_point *p_out);
void heddle_offline_point_copy(const struct heddle_offline_dag *d, struct heddle_offline_point *to,
                               const struct heddle_offline_point *from);
/* What a schedule of these types and this length is worth; less is better. */
double heddle_offline_value(const struct heddle_offline_dag *d, const uint8_t *type, double length);
/* Sets p->length to that of the schedule by p->order, or of one that is
 * shorter, and p->value: the schedule is pushed against its end and back up to `rounds`
 * times, if it is no longer than `worth`. p->order becomes the order of starts
 * of the shortest. */
HEDDLE_MUST_USE heddle_status heddle_offline_evaluate(struct heddle_offline_decoder *c,
                                                      struct heddle_offline_point *p,
                                                      unsigned rounds, double worth);
/* The schedule of an evaluated point. */
HEDDLE_MUST_USE heddle_status heddle_offline_emit(struct heddle_offline_decoder *c,
                                                  const struct heddle_offline_point *p,
                                                  struct heddle_scratch *m,
                                                  struct heddle_offline_sched *out);

/* --- shares.c, balanced.c --------------------------------------------------- */

enum { HEDDLE_OFFLINE_GROUPS = 64 };

/* Tasks whose times on the types have about the same ratios. */
struct heddle_offline_groups {
    uint32_t n;
    uint8_t *of;                               /* [ntasks] */
    uint32_t first[HEDDLE_OFFLINE_GROUPS + 1]; /* ranges of `task` */
    uint32_t *task;                            /* of each group, most slack first */
};
HEDDLE_MUST_USE heddle_status heddle_offline_groups(const struct heddle_offline_dag *d,
                                                    struct heddle_scratch *m,
                                                    struct heddle_offline_groups *g_out);

/* Each task on its fastest type, then loads are levelled until none is above
 * `level` per worker. stay[t] >= 0 holds a task at home; NULL: nothing does. */
HEDDLE_MUST_USE heddle_status heddle_offline_balance(const struct heddle_offline_dag *d,
                                                     double level, const double *stay,
                                                     struct heddle_scratch *m, uint8_t *type_out);

/* Searches how many tasks of each group go to which type; improves *best,
 * which is evaluated, or empty. Ends by itself, or at the deadline. */
HEDDLE_MUST_USE heddle_status heddle_offline_search_shares(const struct heddle_offline_dag *d,
                                                           const struct heddle_offline_groups *g,
                                                           struct heddle_offline_decoder *c,
                                                           struct heddle_scratch *m,
                                                           struct heddle_offline_point *best);

/* --- cheapen.c --------------------------------------------------------------- */

/* With costs: improves *best, which is evaluated, by moving many tasks to
 * cheaper types at once. Ends by itself, or at the deadline. */
HEDDLE_MUST_USE heddle_status heddle_offline_cheapen(const struct heddle_offline_dag *d,
                                                     struct heddle_offline_decoder *c,
                                                     struct heddle_scratch *m,
                                                     struct heddle_offline_point *best);

/* --- anneal.c --------------------------------------------------------------- */

/* Improves *best, which is evaluated, until the deadline, until opts->stop_at or
 * for so many iterations (0: no limit), which are added up in *done. */
HEDDLE_MUST_USE heddle_status heddle_offline_anneal(const struct heddle_offline_dag *d,
                                                    const struct heddle_offline_groups *g,
                                                    struct heddle_offline_decoder *c,
                                                    struct heddle_scratch *m, uint64_t iterations,
                                                    struct heddle_offline_point *best,
                                                    uint64_t *done);

#endif /* HEDDLE_OFFLINE_OFFLINE_H */
