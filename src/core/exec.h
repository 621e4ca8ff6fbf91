/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_EXEC_H
#define HEDDLE_CORE_EXEC_H

/* The record of a running task. Kernels get it and ask about their task (heddle/task.h). */
#include <stdbool.h>
#include <stdint.h>

#include "core/cell.h"
#include "core/worker.h"
#include "data/data.h"
#include "heddle/task.h"

struct dev_task;
struct gang;
struct heddle_node;
struct heddle_scope;

struct heddle_exec {
    heddle_ctx *ctx;
    struct worker *worker;
    struct heddle_kinfo *kinfo;
    heddle_handle *const *op;
    const enum heddle_mode *mode;
    const void *arg;
    uint32_t nops;
    uint32_t arg_bytes;
    uint64_t id;
    struct heddle_cell *cell;
    struct heddle_node *node;
    struct heddle_scope *scope; /* made with the first child */
    struct exec_slow *slow;     /* NULL on the fast path */
    struct heddle_exec *outer;  /* the task below on this stack */
    heddle_status inlined;      /* of the first child that failed inside its submission */
};

/* What the slow path adds to a running task. */
struct exec_slow {
    const char *name;
    unsigned variant;
    unsigned rank;
    void *scratch;
    struct gang *gang;
    struct dev_task *dev;              /* on a device */
    void *check;                       /* the checker's */
    uint64_t lost;                     /* ticks that the system took, see lost.h */
    bool is_skipped;                   /* the engine decided not to run the task */
    bool is_missing;                   /* because its data or an event had failed */
    void *ptr[HEDDLE_KERNEL_OPERANDS]; /* replaces the operands' memory */
    struct heddle_partial *partial[HEDDLE_KERNEL_OPERANDS];
    void *backup[HEDDLE_KERNEL_OPERANDS];
    char message[200]; /* last field: all others are cleared, and its first byte */
};

/* Around the function of a task. */
static inline void heddle_exec_enter(struct heddle_exec *x)
{
    x->outer = x->worker->current;
    x->worker->current = x;
}

static inline void heddle_exec_leave(struct heddle_exec *x)
{
    x->worker->current = x->outer;
}

/* The record of a plain task. */
static inline void heddle_cell_exec(struct worker *w, struct heddle_cell *c, struct heddle_exec *x)
{
    x->ctx = w->ctx;
    x->worker = w;
    x->kinfo = c->kinfo;
    x->op = c->op;
    x->mode = c->kinfo->mode;
    x->arg = c->arg;
    x->nops = c->flags & TASK_NOPS;
    x->arg_bytes = c->flags >> TASK_ARG_SHIFT;
    x->id = c->id;
    x->cell = c;
    x->node = NULL;
    x->scope = NULL;
    x->slow = NULL;
    x->inlined = HEDDLE_OK;
}

/* The same for a cell that may have an extension. */
void heddle_cell_exec_ext(struct worker *w, struct heddle_cell *c, const struct task_ext *ext,
                          struct heddle_exec *x);
/* The record of any task, and its extension (NULL: none); `own` is for nodes. */
const struct task_ext *heddle_task_exec(struct worker *w, struct heddle_sched_task *t,
                                        struct heddle_exec *x, struct task_ext *own);
/* The group of a running task, its own or that of the task it is a child of; NULL:
 * none. */
heddle_group *heddle_exec_group(const struct heddle_exec *x);

#endif /* HEDDLE_CORE_EXEC_H */
