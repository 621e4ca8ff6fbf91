/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_SCHED_H
#define HEDDLE_SCHED_SCHED_H

/*
 * Scheduler contract.
 *
 * A scheduler is a container of ready tasks: the engine puts tasks in with
 * push() and takes them out with pop(). The scheduler decides in which order
 * tasks run and which worker runs each, and nothing else. The engine wakes and
 * parks workers, writes the log, counts, and follows dependencies, so a policy
 * holds no thread and no event, and runs as well in a unit test or offline on a
 * recorded graph.
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
 * Progress  if every worker keeps calling pop(), each pushed task is returned
 *           sooner or later. NULL means "no task for this worker now".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

struct heddle_sched_task {
    int prio;
    uint32_t aux; /* for the policy, from submitted() or push() on; link: from push() on */
    struct heddle_sched_task *link[2];
};

enum {
    HEDDLE_SCHED_FOREIGN = -1,   /* a thread that is no worker */
    HEDDLE_SCHED_SUBMITTER = -2, /* the one that holds the submission lock */
    HEDDLE_SCHED_CORES = 1,      /* heddle_sched_class.kind: HEDDLE_DEV_CPU */
};

/* The worker of ended() for a task that no worker ever got. */
#define HEDDLE_SCHED_NOBODY UINT32_MAX

/* Workers that are alike and share a memory: all cores, or one accelerator. */
struct heddle_sched_class {
    const char *name;
    unsigned kind;  /* enum heddle_device */
    unsigned type;  /* classes of one type take equal times */
    unsigned node;  /* its memory */
    unsigned first; /* its first worker; they are numbered in a row */
    unsigned nworkers;
};

/*
 * What a policy may ask about a task, from push(), pop() and submitted(), while the
 * policy owns the task. No function blocks for long. Costs come from models: good
 * enough to decide by, never to be relied on.
 */
struct heddle_sched_view {
    /* ns of the task on a worker of the class. INFINITY: it cannot run there.
     * NAN: unknown, nothing like it was ever measured. From 0 to 1 in
     * *confidence_out (may be NULL): how sure. */
    double (*cost)(void *view, const struct heddle_sched_task *t, unsigned cls,
                   double *confidence_out);
    /* Joules above idle of the task on a worker of the class, where it would take
     * ns. NAN: not known. Asked only when there is an objective: see `energy` of
     * the environment. May be NULL: not known. */
    double (*joules)(void *view, const struct heddle_sched_task *t, unsigned cls, double ns);
    /* ns until what the task reads would be in the memory of the class. */
    double (*fetch)(void *view, const struct heddle_sched_task *t, unsigned cls);
    /* Bytes the task reads and writes, and how many of those it reads are valid in
     * the memory of the class. */
    void (*bytes)(void *view, const struct heddle_sched_task *t, unsigned cls, uint64_t *read_out,
                  uint64_t *written_out, uint64_t *present_out);
    /* ns to bring so much from the memory of one class to that of another when nothing
     * else moves. May be NULL: not known. */
    double (*move)(void *view, unsigned from, unsigned to, uint64_t bytes);
    /* Tasks of one number are the same kernel on the same shapes; from 0, dense,
     * less than 2^20. */
    unsigned (*sort)(void *view, const struct heddle_sched_task *t);
    /* The kernel's name, and the task's number in the order of submission. */
    const char *(*kernel)(void *view, const struct heddle_sched_task *t);
    uint64_t (*id)(void *view, const struct heddle_sched_task *t);
    /* The context's clock: real or virtual. */
    uint64_t (*now_ns)(void *view);
    /* True: no worker runs a task; tasks that were popped wait for others at most. A
     * policy that answers every pop() with NULL in this state would block the context
     * for ever. May be NULL: not known. */
    bool (*is_idle)(void *view);
};

/*
 * How much energy counts. A joule is worth ns_per_joule of time: a policy that would
 * choose by time chooses by time + ns_per_joule * joules instead
 * (docs/design/energy-online.md).
 */
struct heddle_sched_energy {
    /* > 0: the policy computes ns_per_joule, so that the expected length of the run
     * grows by this share at most. 0: ns_per_joule is given. */
    double slack;
    double idle_watts; /* drawn as long as the run lasts */
    /* The policy may change this number at any time; the engine reads it when it
     * chooses variants. */
    _Atomic double ns_per_joule;
};

/* Read-only facts about the machine, valid until fini() returns. */
struct heddle_sched_env {
    const struct heddle_allocator *alloc;
    unsigned nworkers;
    /* For worker w the other workers, nearest first:
     * steal_order[w * (nworkers - 1) + i]. NULL when nworkers is 1, and when
     * there is more than one class. */
    const unsigned *steal_order;

    /* NULL and 0: one class, the cores, and nothing can be asked. */
    const struct heddle_sched_class *cls;
    unsigned ncls, ntypes;
    const unsigned *class_of; /* worker -> class */
    const struct heddle_sched_view *view;
    void *view_self;                    /* the first argument of its functions */
    const char *placement;              /* replay: a placement file; or NULL */
    struct heddle_sched_energy *energy; /* NULL: time is all that counts */
    char *why;                          /* init() that fails may leave a sentence; or NULL */
    size_t why_bytes;
};

/* One call of took() or ended() that is told late: see noted(). */
struct heddle_sched_note {
    uint32_t aux; /* of the task, as the policy left it */
    unsigned worker;
    double ns; /* < 0: the call was took(); >= 0: ended(), after running for so long */
};

struct heddle_sched_ops {
    const char *name;     /* unique; the user selects it with HEDDLE_SCHED=name */
    const char *alias;    /* an older name that selects it too; NULL: none */
    const char *help;     /* one line for `heddle info` */
    size_t instance_size; /* the engine allocates it, zeroed, before init() */

    /* True: when a task that ends makes another one ready, the engine may run that one
     * at once on the same worker, without a push and a pop. False where order matters. */
    bool allows_handoff;

    /* Required. On failure leave `self` in a state fini() accepts. */
    heddle_status (*init)(void *self, const struct heddle_sched_env *env);

    /* Required. Called once, also after a failed init(). No task is in the container. */
    void (*fini)(void *self);

    /* Required. `worker`: the worker that pushes, or HEDDLE_SCHED_FOREIGN, or
     * HEDDLE_SCHED_SUBMITTER. */
    void (*push)(void *self, struct heddle_sched_task *t, int worker);

    /* Optional, with allows_handoff; for that worker. How many tasks can the others take
     * from it? A guess. *taken_out: how many they took so far. Where it is missing, all
     * tasks are pushed. */
    size_t (*length)(void *self, unsigned worker, uint64_t *taken_out);

    /* Required. Never blocks. With classes: only a task that can run on the
     * worker's class. */
    struct heddle_sched_task *(*pop)(void *self, unsigned worker);

    /* The policy asks cost() and so on: it can be used with several classes. */
    bool knows_classes;

    /* With a placement file, a task may be for one worker alone: after a push every
     * worker must call pop(). */
    bool names_workers;

    /* Optional, called only when there are classes. The task was submitted and will be
     * pushed later. `pred`: its predecessors that may still run, 32 at most. Only `aux`
     * of a predecessor counts: as the policy left it in submitted(), or 0 for a task that
     * the policy was not told of or that another thread submitted. Each submitting thread
     * calls this for one task at a time; several threads may call at once, so the policy
     * locks. */
    void (*submitted)(void *self, struct heddle_sched_task *t,
                      struct heddle_sched_task *const *pred, unsigned npred);

    /* Optional. The next submitted() of this thread is about a child of a running task,
     * which does not end before the child. */
    void (*nested)(void *self);

    /* Optional, called only when there are classes. A task that pop() gave to
     * `worker` has ended after running for `ns`, or could not be run (ns < 0) and
     * will be pushed again. NAN: the time tells nothing; the task is over, or its sort
     * has changed and submitted() follows. `aux` is as the policy left it.
     * With HEDDLE_SCHED_NOBODY the task is over before any pop() gave it to a worker
     * (no device is left that can run it): the policy must not wait for that task. */
    void (*ended)(void *self, const struct heddle_sched_task *t, unsigned worker, double ns);

    /* Optional. A task that was not pushed goes to `worker`: it runs right behind a task
     * that this worker has. ended() follows. */
    void (*took)(void *self, struct heddle_sched_task *t, unsigned worker);

    /* Optional, with took() and ended(). The engine reports several calls of took(), and
     * of ended() with ns >= 0, at once and a little late, in their order, so that the
     * policy locks once. The records of these tasks may have been reused by then. */
    void (*noted)(void *self, const struct heddle_sched_note *note, unsigned n);

    /* Optional, for a task that was submitted and has not ended. Tasks will run about in
     * the increasing order of the returned number; the engine decides by it which data to
     * keep in memory. NAN: not known. *type_out: the type of class that will run the task;
     * -1: not decided. */
    double (*order)(void *self, const struct heddle_sched_task *t, int *type_out);

    /* Required when knows_classes. The class is lost: no worker will pop for it any more,
     * and cost() returns INFINITY for it from now on. Takes out every task that is placed
     * on the class, or that can run nowhere now, and returns these tasks chained through
     * link[0]; the engine pushes them again or ends them. */
    struct heddle_sched_task *(*lost)(void *self, unsigned cls);

    /* Optional. Tasks taken from another worker so far. */
    uint64_t (*steals)(void *self);
};

/* The policy that is used with accelerators when none is named; why:
 * docs/design/schedulers.md. */
#define HEDDLE_SCHED_WITH_DEVICES "lookahead"

/* NULL-terminated; built from sched.def. The first is the default on cores. */
extern const struct heddle_sched_ops *const heddle_sched_table[];

/* By name or alias; NULL when there is none of that name. */
const struct heddle_sched_ops *heddle_sched_find(const char *name);

#endif /* HEDDLE_SCHED_SCHED_H */
