/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_COST_H
#define HEDDLE_CORE_DEV_COST_H

/* What the runtime itself costs, in virtual time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "heddle/ctx.h"
#include "sched/sched.h"

struct dev_task;
struct dev_worker;
struct heddle_devs;
struct worker;

/* The task of a device that made another one ready. */
struct dev_from {
    uint64_t begin_ns, end_ns;
    unsigned cls;
    bool is_set;
};

/* What the runtime costs, in virtual time: see dev/cost.c. Else all is 0. */
struct dev_overhead {
    double submit_ns;
    uint64_t wake_ns, drive_ns, notice_ns;
    uint64_t spin_ns;        /* that a core looks for work before it sleeps */
    bool is_on;              /* wake, drive or notice */
    bool has_own_core;       /* the program's thread: it runs no tasks */
    bool is_submitting;      /* the program's thread is busy */
    unsigned master;         /* the core that is the program's thread, if any */
    uint64_t driver_ns;      /* until when the device thread is busy */
    uint64_t told_ns;        /* when all ends so far are known to the workers */
    struct dev_from from;    /* whose end makes tasks ready now */
    struct heddle_map since; /* the same of tasks that wait to be launched */
};

/* The costs of the described machine. Its workers are there. */
void heddle_cost_init(struct heddle_devs *d);
/* Cores of the described machine where a submission takes time; else 0. */
unsigned heddle_cost_cores(const heddle_ctx *ctx);
/* What becomes ready from now on does so by the end of dt. Returns what d->cost.from
 * was, to be set again. */
struct dev_from heddle_cost_release(struct heddle_devs *d, const struct dev_task *dt);
/* It is ready. */
void heddle_cost_pushed(struct heddle_devs *d, const struct heddle_sched_task *t);
/* ns until a task that could begin now really does. Once per launch. */
uint64_t heddle_cost_delay(struct dev_task *dt);
/* A core has nothing to do from now on. */
void heddle_cost_idle(struct heddle_devs *d, struct dev_worker *dw);
/* The program's thread learns what has ended. */
void heddle_cost_catch_up(struct worker *w);
/* n tasks were submitted, which took a while. Any thread, no lock held. */
void heddle_cost_charge(heddle_ctx *ctx, size_t n);

#endif /* HEDDLE_CORE_DEV_COST_H */
