/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec: the record of a running task: how it is filled, and what a kernel may ask
 * about its task.
 *
 * Threads    the thread that is about to run the task, or that asks for its cost.
 */
#include "core/exec.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/graph/node.h"
#include "core/group.h"
#include "core/scope.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"

void heddle_cell_exec_ext(struct worker *w, struct heddle_cell *c, const struct task_ext *ext,
                          struct heddle_exec *x)
{
    heddle_cell_exec(w, c, x);
    if (ext == NULL)
        return;
    if (ext->op != NULL)
        x->op = ext->op;
    if (ext->mode != NULL)
        x->mode = ext->mode;
    if (ext->arg != NULL) {
        x->arg = ext->arg;
        x->arg_bytes = ext->arg_bytes;
    }
}

const struct task_ext *heddle_task_exec(struct worker *w, struct heddle_sched_task *t,
                                        struct heddle_exec *x, struct task_ext *own)
{
    const struct task_ext *ext;

    if (heddle_is_node(t)) {
        heddle_node_exec(w, t, x, own);
        return own;
    }
    ext = heddle_cell_ext(w->ctx, heddle_task_cell(t));
    heddle_cell_exec_ext(w, heddle_task_cell(t), ext, x);
    return ext;
}

/* --- what a kernel may ask ---------------------------------------------------------------- */

void *heddle_exec_ptr(struct heddle_exec *x, unsigned i)
{
    if (HEDDLE_UNLIKELY(x == NULL || i >= x->nops))
        return NULL;
    if (HEDDLE_UNLIKELY(x->slow != NULL) && i < HEDDLE_KERNEL_OPERANDS && x->slow->ptr[i] != NULL)
        return x->slow->ptr[i];
    return heddle_unit_base(x->op[i]);
}

size_t heddle_exec_count(struct heddle_exec *x, unsigned i)
{
    return x == NULL || i >= x->nops ? 0 : x->op[i]->count;
}

heddle_handle *heddle_exec_operand(struct heddle_exec *x, unsigned i)
{
    return x == NULL || i >= x->nops ? NULL : x->op[i];
}

unsigned heddle_exec_noperands(struct heddle_exec *x)
{
    return x == NULL ? 0 : x->nops;
}

const void *heddle_exec_arg(struct heddle_exec *x)
{
    return heddle_exec_arg_bytes(x) == 0 ? NULL : x->arg;
}

size_t heddle_exec_arg_bytes(struct heddle_exec *x)
{
    if (x == NULL)
        return 0;
    return x->arg_bytes == NODE_ARG ? heddle_node_arg_bytes(x) : x->arg_bytes;
}

void *heddle_exec_scratch(struct heddle_exec *x)
{
    return x == NULL || x->slow == NULL ? NULL : x->slow->scratch;
}

unsigned heddle_exec_worker(struct heddle_exec *x)
{
    return x == NULL ? 0 : x->worker->id;
}

heddle_ctx *heddle_exec_ctx(struct heddle_exec *x)
{
    return x == NULL ? NULL : x->ctx;
}

heddle_group *heddle_exec_group(const struct heddle_exec *x)
{
    struct task_ext *ext;

    if (x->node != NULL)
        return heddle_node_group(x->node);
    if (x->cell == NULL)
        return NULL;
    ext = heddle_cell_ext(x->ctx, x->cell);
    if (ext != NULL && ext->group != NULL)
        return ext->group;
    return x->cell->scope != NULL ? x->cell->scope->group : NULL;
}

bool heddle_exec_is_cancelled(struct heddle_exec *x)
{
    heddle_group *group;

    if (x == NULL)
        return false;
    if (heddle_load_acq(&x->ctx->is_cancelled) != 0)
        return true;
    group = heddle_exec_group(x);
    return group != NULL && heddle_load_acq(&group->is_cancelled) != 0;
}
