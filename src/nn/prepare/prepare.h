/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_PREPARE_PREPARE_H
#define HEDDLE_NN_PREPARE_PREPARE_H

/*
 * Private to nn: the tasks of a plan, rewritten so that fewer and faster ones are left.
 *
 * A pass walks over the tasks once, in order, and replaces groups of tasks by one. Shapes are
 * concrete and constants have data when passes run, so a pass decides on facts. The new task
 * takes the place of the last task of its group and makes that task's result; whatever the group
 * read has been made before.
 *
 * A value inside of a group must have no other reader and be no output of the graph:
 * heddle_prep_only() and heddle_prep_closed() say so. A value that is an alias (Reshape and the
 * like) has the memory of its root; makers and readers are those of roots, shapes those that a
 * task sees.
 *
 * Cost     a pass may look at a bounded number of tasks around each task: all of them together
 *          are linear in the number of tasks.
 * Results  within rounding of those before: a few units of the last place for each operation.
 */
#include "base/assert.h"
#include "nn/op/step.h"
#include "nn/run/run.h"

/* The most tasks that one change replaces; the most operands of what comes. */
enum { PREP_GROUP = 24, PREP_IN = 9 };

struct nn_prep {
    struct nn_plan *p;
    const struct nn_opts *o;
    struct heddle_scratch *temp; /* until the passes have ended */
    uint32_t *maker;             /* by root: the task that makes it; NN_NONE */
    uint32_t *nreads;            /* by root: operands of tasks, and outputs of the graph */
    uint32_t *reader;            /* by root: the last task that reads it */
    uint32_t pass;               /* which one runs */
    uint32_t cap_changes;
};

/* A pass: its name, one sentence on what it does, and the walk. */
struct nn_pass {
    const char *name, *what;
    heddle_status (*run)(struct nn_prep *q);
};
/* Pass i in the order in which they run; NULL: there are no more. */
const struct nn_pass *heddle_nn_get_pass(uint32_t i);

/* Runs all passes on the tasks of a plan, which have no steps yet. HEDDLE_ENOMEM. */
heddle_status heddle_nn_prepare(struct nn_plan *p, const struct nn_opts *o);

/* --- for passes ---------------------------------------------------------------------- */

/* Task i, or NULL where it is gone. */
static inline struct nn_task *prep_task(const struct nn_prep *q, uint32_t i)
{
    return i != NN_NONE && q->p->task[i].node != NULL ? &q->p->task[i] : NULL;
}

/* The value whose memory value v has. */
uint32_t heddle_prep_root(const struct nn_prep *q, uint32_t v);
/* A task of this operator of the standard, with one result. NULL is fine. */
bool heddle_prep_is(const struct nn_task *t, const char *op);
/* All operands and results are f32. */
bool heddle_prep_is_f32(const struct nn_task *t);
/* The task whose only result is operand k of t, perhaps in another shape; NULL. */
struct nn_task *heddle_prep_maker(const struct nn_prep *q, const struct nn_task *t, uint32_t k);
/* The only reader of the task's result, which it reads once; NULL: there is none, or more. */
struct nn_task *heddle_prep_only(const struct nn_prep *q, const struct nn_task *t);
/* The task that makes operand k of t, when t is the only reader of the result. */
struct nn_task *heddle_prep_inner(const struct nn_prep *q, const struct nn_task *t, uint32_t k);
/* The node that made operand k of t, a constant, when the plan was made, as a task; NULL. */
struct nn_task *heddle_prep_folded(struct nn_prep *q, const struct nn_task *t, uint32_t k);
/* The two operands are the same elements in the same shape. */
bool heddle_prep_same(const struct nn_prep *q, const struct nn_task *a, uint32_t i,
                      const struct nn_task *b, uint32_t k);
/* Operand k of t is the result of `made`, in its shape. */
bool heddle_prep_reads(const struct nn_prep *q, const struct nn_task *t, uint32_t k,
                       const struct nn_task *made);
/* Of a task with two operands: the other one than the result of `made`; -1: neither is. */
int heddle_prep_other(const struct nn_prep *q, const struct nn_task *t, const struct nn_task *made);
/* Operand k is a constant f32 of one element. */
bool heddle_prep_number(const struct nn_task *t, uint32_t k, double *out);
/* The same, and the number is v, but for the rounding of a float. */
bool heddle_prep_is_number(const struct nn_task *t, uint32_t k, double v);
/* Operand k is a row of n numbers, the same for all rows of what it is combined with. */
bool heddle_prep_is_row(const struct nn_task *t, uint32_t k, size_t n);
/* The task is a function of operand 0 alone that kernels can do at their end. */
bool heddle_prep_act(const struct nn_task *t, struct dnn_act *out);
/* A call of a function of the task's row. */
struct nn_call heddle_prep_call(const struct nn_prep *q, const struct nn_task *t,
                                struct nn_run *run);

/* A change: the group, and what takes its place. Operands are those of tasks of the group. */
struct prep_change {
    struct nn_task *gone[PREP_GROUP];
    uint32_t ngone;
    const struct nn_op *op;
    uint32_t nin;
    struct prep_operand {
        const struct nn_task *of; /* NULL: absent */
        uint32_t k;
    } in[PREP_IN];
    const struct heddle_onnx_attr *attr; /* in the memory of the plan */
    size_t nattrs;
    const void *own; /* the same */
};

/* Adds a task to the group. False: it is full. */
bool heddle_prep_add(struct prep_change *c, struct nn_task *t);
/* Only tasks of the group read results of the group, but for that of the last one. */
bool heddle_prep_closed(const struct nn_prep *q, const struct prep_change *c,
                        const struct nn_task *last);
/* Replaces the group by one task in the place of the last one, which makes its result. The other
 * tasks of the group go. */
heddle_status heddle_prep_replace(struct nn_prep *q, const struct prep_change *c,
                                  struct nn_task *last);
/* The result of the task becomes operand 0, byte for byte, and the task goes. */
heddle_status heddle_prep_alias(struct nn_prep *q, struct nn_task *t);

/* The same with another value than operand 0, which has the shape of the result. */
heddle_status heddle_prep_alias_of(struct nn_prep *q, const struct prep_change *c,
                                   struct nn_task *t, uint32_t value);

/* Memory that goes with the plan. */
void *heddle_prep_keep(struct nn_prep *q, size_t n, size_t bytes);

#endif /* HEDDLE_NN_PREPARE_PREPARE_H */
