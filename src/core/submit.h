/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_SUBMIT_H
#define HEDDLE_CORE_SUBMIT_H

/* A submission on its way, the submission lock, and the first fields of a task. */
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/scope.h"
#include "core/submitter.h"
#include "heddle/task.h"
#include "task/task.h"

struct submission {
    struct submitter *sub;
    struct heddle_domain *domain;
    struct heddle_scope *scope; /* NULL: the context's */
    struct heddle_kinfo *kinfo;
    const struct heddle_call *call;
    uint32_t flags;
    /* Accesses that are not operands: of a launch. NULL: the operands. */
    struct heddle_access *acc;
    unsigned nacc;
    /* result: a ready task to be pushed or run, or NULL */
    struct heddle_sched_task *ready;
};

/* Pushes or runs what became ready; no lock held. */
void heddle_submit_finish(heddle_ctx *ctx, struct submission *s);

/* HEDDLE_ESTATE: the context is being destroyed; the lock is not held then. */
static inline heddle_status heddle_submit_lock(heddle_ctx *ctx)
{
    heddle_spin_lock(&ctx->submit_lock);
    if (HEDDLE_LIKELY(!ctx->is_closing))
        return HEDDLE_OK;
    heddle_spin_unlock(&ctx->submit_lock);
    return HEDDLE_ESTATE;
}

static inline void heddle_submit_unlock(heddle_ctx *ctx)
{
    heddle_spin_unlock(&ctx->submit_lock);
}

/* One more task of the context. Lock held, before the task can start. */
static inline void heddle_count_submitted(heddle_ctx *ctx)
{
    /* Release: pairs with heddle_ctx_is_quiet(). */
    heddle_store_rel(&ctx->submitted, heddle_load_rlx(&ctx->submitted) + 1);
}

enum { TASK_ID_BLOCK = 1024 }; /* task ids taken at once */

static inline uint64_t heddle_task_id(heddle_ctx *ctx, struct submitter *sub)
{
    if (HEDDLE_UNLIKELY(sub->next_id == sub->end_id)) {
        /* Relaxed: numbers only have to differ. */
        sub->next_id = heddle_add_rlx(&ctx->next_id, (uint64_t)TASK_ID_BLOCK);
        sub->end_id = sub->next_id + TASK_ID_BLOCK;
    }
    return sub->next_id++;
}

/* The fields of a cell that is about to become a task. */
static inline void heddle_cell_begin(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                     unsigned nops)
{
    /* Release: a stale reference of another submitter that sees this generation
     * knows that the old task has ended, and sees what it wrote. */
    heddle_store_rel(&c->succ, (uint64_t)c->gen << 32);
    c->flags = s->flags | nops;
    c->kinfo = s->kinfo;
    c->scope = s->scope;
    c->id = heddle_task_id(ctx, s->sub);
    c->prio = s->call->priority;
    c->ext = 0;
}

/* An argument of at most HEDDLE_CELL_ARG bytes; the usual sizes without a call. */
static inline void heddle_arg_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 16)
        memcpy(to, from, 16);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else if (bytes != 0)
        memcpy(to, from, bytes);
}

/* Before the task can start: a thread may wait for all tasks. */
static inline void heddle_submit_count(heddle_ctx *ctx, const struct submission *s)
{
    if (HEDDLE_UNLIKELY(s->scope != NULL))
        s->scope->submitted++;
    else if ((s->flags & TASK_LOOSE) == 0)
        heddle_count_submitted(ctx);
}

#endif /* HEDDLE_CORE_SUBMIT_H */
