/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_PLACE_H
#define HEDDLE_SCHED_PLACE_H

/*
 * Placing: each task goes, when it is ready, to the class where it would end
 * first. The base of heft and lookahead.
 *
 * Structure a heap per class, by the user's priority, then rank. A worker takes
 *           from the heap of its class; a worker that finds that heap empty takes a
 *           task of another class that would end earlier on this worker. `anyone`
 *           holds tasks whose costs are not known: any free worker takes them, few at
 *           a time, until they are measured.
 * Estimate  a task waits for the work of its class that comes before it: the work
 *           is kept in 64 bins by rank. Then end = max(begin, data there) + cost.
 * Energy    where energy counts, a task goes to one of the classes that cost about the
 *           least (heddle_win_price), and among these to the one with the first end.
 * Target    a record with target >= 0 is placed on classes of that type only, as
 *           long as one of these classes can run the task.
 *
 * Threads   the lock of the window; functions below that say "locked" are called
 *           with it, the others take it.
 * Cost      push O(classes * (workers + 64)), pop O(log n) amortised.
 */
#include "sched/win.h"

enum { HEDDLE_PLACE_BINS = 64 };

struct heddle_place_queue {
    /* What comes in its order is chained through link[0], first to last: often
     * that is all. The rest is in the heap. */
    struct heddle_sched_task *first, *last;
    struct heddle_heap heap;
    size_t count;                  /* in both */
    double bin[HEDDLE_PLACE_BINS]; /* ns of queued work by rank */
    double sum;
};

struct heddle_place {
    struct heddle_win win;
    struct heddle_place_queue *queue; /* per class */
    struct heddle_heap plain;         /* no classes: all tasks */
    uint32_t pushes;
    struct heddle_sched_task *anyone, **anyone_end; /* through link[0] */
    uint32_t version; /* of the costs with which all of these were unknown */
    uint64_t nsteals;
};

heddle_status heddle_place_init(struct heddle_place *p, const struct heddle_sched_env *env);
void heddle_place_fini(struct heddle_place *p);

void heddle_place_push(struct heddle_place *p, struct heddle_sched_task *t);
struct heddle_sched_task *heddle_place_pop(struct heddle_place *p, unsigned worker);
void heddle_place_took(struct heddle_place *p, struct heddle_sched_task *t, unsigned worker);
void heddle_place_ended(struct heddle_place *p, const struct heddle_sched_task *t, unsigned worker,
                        double ns);
void heddle_place_noted(struct heddle_place *p, const struct heddle_sched_note *note, unsigned n);
struct heddle_sched_task *heddle_place_lost(struct heddle_place *p, unsigned cls);

/* Locked: queued tasks whose record plans another type are placed again. */
void heddle_place_again(struct heddle_place *p, double now);

#endif /* HEDDLE_SCHED_PLACE_H */
