/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_AHEAD_H
#define HEDDLE_CORE_DEV_AHEAD_H

/* Tasks that are put on a device before their predecessors have ended. */
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/spin.h"
#include "heddle/ctx.h"
#include "sched/sched.h"
#include "task/task.h"

struct dev_task;
struct dev_worker;
struct heddle_devs;
struct worker;

enum {
    AHEAD_LOOKS = 16, /* launched tasks that a busy driver looks at in one step */
    AHEAD_PREDS = 8,  /* predecessors that a record has room for */
};

/* A task and its neighbours on a device: see dev/ahead.c. */
struct dev_ahead {
    struct dev_ahead *next, **prev; /* of those that wait, or free */
    struct heddle_cell *cell;
    struct dev_task *dt; /* while it is on a device */
    unsigned state;
    unsigned cls;   /* where its predecessors are */
    unsigned npred; /* launched and not ended */
    struct dev_ahead *pred[AHEAD_PREDS];
    struct ahead_succ *succ;
    uint32_t shared;   /* operands that its predecessors have, a bit each */
    uint32_t written;  /* those that they write */
    uint64_t ready_ns; /* when they will have ended, about */
    uint64_t begun_ns; /* when its task began to run, about; 0: it waits */
    uint64_t later_ns; /* not ahead before; 0: see ahead_later() */
    bool is_listed;
    bool is_mixed;   /* waits for their ends */
    bool is_void;    /* one of them goes again: so must this */
    bool has_failed; /* one of them */
};

struct ahead {
    struct heddle_spin lock;
    struct heddle_pool *pool; /* its `side` has the record of a cell */
    const struct heddle_allocator *alloc;
    struct dev_ahead *free, *waiting;
    struct ahead_succ *spare;
    unsigned nspare;
    /* the device thread's */
    struct dev_task *flying, *flying_last;          /* launched, oldest first */
    struct dev_task *look;                          /* of these, at next */
    struct dev_task *freed;                         /* held no more */
    struct heddle_sched_task *direct, *direct_last; /* to begin at once */
};

void heddle_ahead_init(struct ahead *a, heddle_ctx *ctx);
void heddle_ahead_fini(struct ahead *a);
/* A worker got it from the scheduler: may it go on there? False: it was put
 * aside, and the scheduler was told. */
bool heddle_ahead_pop(struct heddle_devs *d, struct heddle_sched_task *t, unsigned cls,
                      unsigned worker);
/* The scheduler does not have it any more: true: it was ahead, and is pushed when
 * it is ready. */
bool heddle_ahead_aside(struct heddle_devs *d, struct heddle_sched_task *t);
/* Driver. Finds what may go ahead; a busy one not all at once. */
bool heddle_ahead_step(struct heddle_devs *d, bool is_busy);
/* Driver. Begins what needs no scheduler. */
bool heddle_ahead_begin_direct(struct heddle_devs *d);
/* The task begins on a device; do its predecessors still run; the worker whose stream it shall
 * use; makes that wait for its predecessors. */
void heddle_ahead_begin(struct dev_task *dt);
bool heddle_ahead_is_ahead(struct dev_task *dt);
struct dev_worker *heddle_ahead_stream(struct dev_task *dt);
heddle_status heddle_ahead_order(struct dev_task *dt);
/* It was launched; the launch has ended. */
void heddle_ahead_launched(struct dev_task *dt);
void heddle_ahead_landed(struct dev_task *dt);
/* Must its end wait? Then heddle_dev_unhold() will be called. */
bool heddle_ahead_hold(struct dev_task *dt, heddle_status st);
bool heddle_ahead_is_void(const struct dev_task *dt);
bool heddle_ahead_has_failed(const struct dev_task *dt);
/* It leaves the device and will run again. True: it is not to be pushed now. */
bool heddle_ahead_again(struct dev_task *dt);

/* For schedulers, what a task finds that may go ahead of its predecessors. */
struct dev_ahead_view {
    uint32_t here;  /* operands that count as being on the class, a bit each */
    uint32_t there; /* those that will be on this node alone */
    unsigned node;
    double wait_ns; /* until its predecessors, elsewhere, have ended */
};

struct dev_ahead_view heddle_ahead_view(struct heddle_devs *d, const struct heddle_sched_task *t,
                                        unsigned cls);

#endif /* HEDDLE_CORE_DEV_AHEAD_H */
