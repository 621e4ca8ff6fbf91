/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_POOL_H
#define HEDDLE_SCHED_POOL_H

/*
 * The pool: ready tasks that are not placed yet. A free worker looks through the
 * pool and takes the task that suits it best.
 *
 * Buckets  tasks of one sort, in bins by rank on a logarithmic scale; a bin is a
 *          heap. So the first task of a bucket is found at once, and so is the first
 *          task whose rank is below a limit, which can wait. When there are more
 *          sorts than buckets, a sort shares a bucket with a sort that can run on the
 *          same classes and has similar ratios of costs.
 * Forced   a heap per class: tasks that must be measured there, or that found no
 *          bucket.
 * Plain    without classes: one heap by priority.
 *
 * Threads  as in win.h; the functions below are called with its lock.
 */
#include "sched/win.h"

enum {
    HEDDLE_SCHED_POOL_NEAR = 6,   /* tasks that are compared by where their data are */
    HEDDLE_SCHED_POOL_TYPES = 16, /* more are refused */
    HEDDLE_SCHED_POOL_BUCKETS = 64,
    HEDDLE_SCHED_POOL_BINS = 512, /* 16 per factor of two, from 2^10 ns */
};

struct heddle_sched_pool_bucket {
    struct heddle_heap bin[HEDDLE_SCHED_POOL_BINS];
    uint64_t map[HEDDLE_SCHED_POOL_BINS / 64]; /* bins in use */
    size_t count;
    uint64_t nlive;               /* submitted and not popped, of all its sorts */
    uint64_t mask;                /* classes that can run them */
    struct heddle_win_sort *like; /* the first sort in it */
};

struct heddle_sched_pool {
    struct heddle_win win;
    struct heddle_sched_pool_bucket *bucket[HEDDLE_SCHED_POOL_BUCKETS];
    unsigned nbuckets;
    struct heddle_heap *forced; /* per class */
    struct heddle_heap plain;
    uint32_t pushes;
    uint32_t nrefused;                        /* pops in a row that found nothing */
    size_t count;                             /* in buckets */
    double nworkers[HEDDLE_SCHED_POOL_TYPES]; /* of classes that are not lost */
};

/* What a policy knows of a bucket when it decides. */
struct heddle_sched_pool_times {
    double ns[HEDDLE_SCHED_POOL_TYPES];
    double energy[HEDDLE_SCHED_POOL_TYPES]; /* in ns; 0: only time counts */
    unsigned fast;                          /* the type with the least of both together */
    unsigned quick;                         /* the type with the least ns */
    bool is_known;                          /* on some type */
};

heddle_status heddle_sched_pool_init(struct heddle_sched_pool *p,
                                     const struct heddle_sched_env *env);
void heddle_sched_pool_fini(struct heddle_sched_pool *p);

/* Without the lock: submitted() up to there. Returns with the lock. */
struct heddle_win_rec *heddle_sched_pool_submitted(struct heddle_sched_pool *p,
                                                   struct heddle_sched_task *t,
                                                   struct heddle_sched_task *const *pred,
                                                   unsigned npred);

/* Without the lock: all of push(). */
void heddle_sched_pool_push(struct heddle_sched_pool *p, struct heddle_sched_task *t);

/* Without the lock: all of pop() but the choice, which is `pick`: a task taken out
 * of a bucket with heddle_sched_pool_take(), or NULL. */
typedef struct heddle_sched_task *(*heddle_sched_pool_pick)(struct heddle_sched_pool *p,
                                                            unsigned worker, double now);
struct heddle_sched_task *heddle_sched_pool_pop(struct heddle_sched_pool *p, unsigned worker,
                                                heddle_sched_pool_pick pick);

/* Without the lock: all of lost(). */
struct heddle_sched_task *heddle_sched_pool_lost(struct heddle_sched_pool *p, unsigned cls);

/* The bin of the first task of a bucket; of the first with rank <= limit. -1:
 * none. bin[i].root is the task. */
int heddle_sched_pool_first(const struct heddle_sched_pool *p,
                            const struct heddle_sched_pool_bucket *b);
int heddle_sched_pool_below(const struct heddle_sched_pool *p,
                            const struct heddle_sched_pool_bucket *b, double limit);
struct heddle_sched_task *heddle_sched_pool_take(struct heddle_sched_pool *p,
                                                 struct heddle_sched_pool_bucket *b, int bin);
void heddle_sched_pool_put(struct heddle_sched_pool *p, struct heddle_sched_task *t);

/* The same, but among the first few of the bin, which have about equal ranks, the
 * one with the most of its data in the memory of the class. */
struct heddle_sched_task *heddle_sched_pool_take_near(struct heddle_sched_pool *p,
                                                      struct heddle_sched_pool_bucket *b, int bin,
                                                      unsigned cls);

/* ns of a bucket's tasks on each type; INFINITY: cannot, or not known well. For a
 * bucket that several sorts share it is that of the first. */
void heddle_sched_pool_times(const struct heddle_sched_pool *p,
                             const struct heddle_sched_pool_bucket *b,
                             struct heddle_sched_pool_times *out);

/* The bin that a worker of the type may take from, whatever else there is; -1: none.
 * The fast type may take the first. Where energy counts and another type is quicker,
 * it may take what has time, and the quicker one what has not: there is always one
 * of them that may. */
int heddle_sched_pool_own(const struct heddle_sched_pool *p,
                          const struct heddle_sched_pool_bucket *b,
                          const struct heddle_sched_pool_times *x, unsigned type, double now);

/* ns that a task of the bucket costs on a type which is not the fast one, when the
 * energy it takes more there, or less, is counted. */
static inline double heddle_sched_pool_slow_ns(const struct heddle_sched_pool_times *x,
                                               unsigned type)
{
    return x->ns[type] + (x->energy[type] - x->energy[x->fast]);
}

/* Per type, ns until its workers are through with what waits for them: the tasks of
 * all buckets that are fastest there. `times` is what was made for each bucket. */
void heddle_sched_pool_backlog(const struct heddle_sched_pool *p,
                               const struct heddle_sched_pool_times *times, double *out);

/* A task's cost on a class, from its record. */
static inline double heddle_sched_pool_ns(const struct heddle_sched_pool *p,
                                          const struct heddle_sched_task *t, unsigned cls)
{
    const struct heddle_win_rec *r = heddle_win_rec(&p->win, t);

    return heddle_win_sort_ns(&p->win, r->sort, cls);
}

#endif /* HEDDLE_SCHED_POOL_H */
