/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_SCHED_H
#define HEDDLE_SCHED_SCHED_H

/*
 * Scheduler contract.
 *
 * A scheduler is a container of ready tasks: the engine puts tasks in with
 * push() and takes them out with pop(). It decides order and placement and
 * nothing else. Waking and parking workers, tracing, counting and dependencies
 * are the engine's job, so a policy holds no thread and no event, and runs as
 * well in a unit test or offline on a recorded graph.
 *
 * Threads   push() and pop() run at the same time on any thread. At any moment
 *           one thread at most calls with a given worker number, and one at most
 *           with HEDDLE_SCHED_SUBMITTER; several may call push() with
 *           HEDDLE_SCHED_FOREIGN. init() and fini() run alone. The engine holds
 *           no lock of rank >= HEDDLE_RANK_SCHED; a policy takes spin locks or
 *           locks of that rank and never calls back.
 * Ownership a task belongs to the scheduler from push() until the pop() that
 *           returns it; meanwhile `link` is the policy's to use.
 * Failure   push() cannot fail: a policy whose arrays are full chains tasks
 *           through `link`, which needs no memory.
 * Progress  a pushed task must be returned by pop() sooner or later, if every
 *           worker keeps asking; NULL means "nothing for this worker now".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

struct heddle_sched_task {
    int prio;
    uint32_t aux; /* the policy's, as is link */
    struct heddle_sched_task *link[2];
};

enum {
    HEDDLE_SCHED_FOREIGN = -1,   /* a thread that is no worker */
    HEDDLE_SCHED_SUBMITTER = -2, /* the one that holds the submission lock */
};

/* Read-only facts about the machine, valid until fini() returns. */
struct heddle_sched_env {
    const struct heddle_allocator *alloc;
    unsigned nworkers;
    /* For worker w the other workers, nearest first:
     * steal_order[w * (nworkers - 1) + i]. NULL when nworkers is 1. */
    const unsigned *steal_order;
};

struct heddle_sched_ops {
    const char *name; /* unique; the user selects it with HEDDLE_SCHED=name */
    const char *help; /* one line for `heddle info` */
    size_t instance_size; /* the engine allocates it, zeroed, before init() */

    /* The engine may run one task that another has just made ready at once, on
     * the same worker, without a push and a pop. False where order matters. */
    bool allows_handoff;

    /* Required. On failure leave `self` in a state fini() accepts. */
    heddle_status (*init)(void *self, const struct heddle_sched_env *env);

    /* Required. Called once, also after a failed init(). It is empty. */
    void (*fini)(void *self);

    /* Required. `worker`: who pushes, a number or one of the two above. */
    void (*push)(void *self, struct heddle_sched_task *t, int worker);

    /* Required. Never blocks. */
    struct heddle_sched_task *(*pop)(void *self, unsigned worker);

    /* Optional. Tasks taken from another worker so far. */
    uint64_t (*steals)(void *self);
};

/* NULL-terminated; built from sched.def. The first is the default. */
extern const struct heddle_sched_ops *const heddle_sched_table[];

/* NULL when there is none of that name. */
const struct heddle_sched_ops *heddle_sched_find(const char *name);

#endif /* HEDDLE_SCHED_SCHED_H */
