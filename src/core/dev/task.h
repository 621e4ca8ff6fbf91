/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_TASK_H
#define HEDDLE_CORE_DEV_TASK_H

/* A task somewhere else than on a core, or one whose data were away: its record and its notes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "core/cell.h"
#include "core/exec.h"
#include "drive/drive.h"
#include "mem/mem.h"
#include "perf/perf.h"
#include "sched/sched.h"

struct dev_ahead;
struct dev_worker;
struct heddle_devs;

/* What a task waits for before its launch, for the log. */
enum dev_wait { DEV_WAIT_NONE, DEV_WAIT_ROOM, DEV_WAIT_DATA, DEV_WAIT_LATE };

/* A task somewhere else than on a core, or one whose data were away. */
struct dev_task {
    struct heddle_op op; /* first: of the launch */
    /* What every task needs lies together. */
    struct dev_task *next;
    heddle_ctx *ctx;
    struct heddle_sched_task *t;
    struct dev_worker *worker; /* NULL: on the host */
    struct dev_worker *on;     /* whose stream it is on */
    const struct task_ext *ext;
    struct heddle_exec x;
    struct dev_ahead *ahead; /* NULL: it waits for no launched task, and none waits for it */
    struct dev_task *fly_prev, *fly_next;
    double model_ns; /* expected; < 0: unknown */
    double watts;    /* virtual time with an energy model: while it runs */
    struct heddle_perf_entry *model;
    uint64_t due_ns;            /* when it will have ended, about */
    double work_ns;             /* what it counts in its worker's */
    struct heddle_mem_op *more; /* more operands than fit */
    unsigned variant;
    unsigned popper;     /* on the host: the worker that got it */
    unsigned time_every; /* such task is timed */
    unsigned nraw;       /* copies of partial results under way */
    heddle_status raw_status;
    heddle_status called; /* what its function said */
    heddle_status held;
    _Atomic int status;                 /* on the host: why the data are not there */
    bool is_out;                        /* partial results are on their way back */
    bool has_run;                       /* its function was called */
    bool has_scratch;                   /* the last private buffer */
    bool is_settled;                    /* the request holds nothing */
    bool is_lent;                       /* children had its operands: see dev/host.c */
    bool is_flying;                     /* launched, and listed as such */
    bool has_heir;                      /* a successor is on its stream */
    bool is_held;                       /* its end waits for its predecessors' */
    bool was_ahead;                     /* when it began */
    enum dev_wait wait;                 /* what it waits for: see dev/log.c */
    int16_t at[HEDDLE_KERNEL_OPERANDS]; /* operand -> req.op, or -1 - private */
    struct heddle_mem_req req;
    struct exec_slow s;
    struct task_ext own_ext; /* of a node */
    struct dev_raw {
        struct heddle_op op; /* first */
        struct dev_task *owner;
        unsigned tries;
        void *back; /* where it comes back to, until the task is sure to end */
    } raw[HEDDLE_KERNEL_OPERANDS];
};

/* The task whose request it is. */
static inline struct dev_task *dev_task_of(struct heddle_mem_req *req)
{
    return (struct dev_task *)(void *)((char *)req - offsetof(struct dev_task, req));
}

/* The record of a task that no queue has; NULL: none. */
static inline struct dev_task *dev_record(const struct heddle_sched_task *t)
{
    return (struct dev_task *)(void *)t->link[1];
}

/* The records of tasks; the device thread has its own. */
struct dev_task *heddle_dev_task_new(struct worker *w);
void heddle_dev_task_free(struct worker *w, struct dev_task *dt);

/* The note of a task: a bit for each class that the task is barred from; 0: it has none. */
uint64_t heddle_dev_note(struct heddle_devs *d, const struct heddle_sched_task *t);
/* False: no memory for it. */
bool heddle_dev_set_note(struct heddle_devs *d, const struct heddle_sched_task *t, uint64_t note);
bool heddle_dev_is_barred(struct heddle_devs *d, const struct heddle_sched_task *t, unsigned cls);
/* The task is over: its note is forgotten. */
void heddle_dev_drop_note(struct heddle_devs *d, const struct heddle_sched_task *t);

#endif /* HEDDLE_CORE_DEV_TASK_H */
