/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * end: the end of a task that is more than the release of its successors.
 *
 * Structure  heddle_end_after() and heddle_end_leave() come from the task's function;
 *            when the last child has ended, heddle_engine_finish() settles marks,
 *            turns, callbacks, events and groups, and heddle_engine_end() (engine.c)
 *            releases the successors.
 * Invariant  a task that does not run to success marks all it should have
 *            written, before its successors start
 * Threads    the slot that runs the task or its last child; an outside thread with
 *            foreign_lock held.
 */
#include "core/end.h"
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/event.h"
#include "core/exec.h"
#include "core/group.h"
#include "core/handle.h"
#include "core/kinfo.h"
#include "core/lost.h"
#include "core/outside.h"
#include "core/scope.h"
#include "core/time.h"
#include "core/turn.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

void heddle_end_settle(struct heddle_exec *x, heddle_status st)
{
    for (unsigned i = 0; i < x->nops; i++) {
        if (!heddle_mode_changes(x->mode[i]))
            continue;
        if (st != HEDDLE_OK)
            heddle_unit_mark(x->op[i], st); /* the invariant */
        else if (heddle_mode_overwrites(x->mode[i]) && heddle_load_acq(&x->ctx->reg.nmarks) != 0)
            heddle_unit_unmark(x->op[i]);
    }
}

void heddle_end_trace(struct heddle_exec *x, heddle_status st, uint64_t start, unsigned flags)
{
    struct worker *w = x->worker;
    const uint64_t now = heddle_ctx_ticks(x->ctx);
    enum heddle_log_status log = HEDDLE_LOG_FAILED;
    uint64_t lost;

    if (!heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))
        return;
    if (st == HEDDLE_OK)
        log = HEDDLE_LOG_OK;
    else if (st == HEDDLE_ECANCELED)
        log = HEDDLE_LOG_CANCELLED;
    if (w->current != NULL)
        flags |= HEDDLE_LOG_INLINE;
    lost = heddle_lost_take(w, start, now) + (x->slow != NULL ? x->slow->lost : 0);
    if (start != 0 && st == HEDDLE_OK && lost == 0)
        heddle_kinfo_took(x->kinfo, now - start);
    heddle_trace_task(w->lane, x->id, x->kinfo->id,
                      (uint8_t)(x->slow != NULL ? x->slow->variant : 0),
                      (uint8_t)((unsigned)log | flags), start != 0 ? start : now, now, 0);
    heddle_lost_trace(w, x->id, lost, now);
    w->last = now;
}

static void further_free(heddle_ctx *ctx, void *p, size_t bytes)
{
    if (bytes > sizeof(((struct heddle_cell *)0)->bytes))
        heddle_free(&ctx->alloc, p, bytes);
}

static void ext_finish(struct heddle_exec *x, struct task_ext *e, heddle_status st)
{
    struct heddle_cell *c = x->cell;
    heddle_ctx *ctx = x->ctx;

    if (e->done != NULL) {
        heddle_exec_enter(x); /* a wait in there would be for this very task */
        e->done(e->done_user, st);
        heddle_exec_leave(x);
    }
    if (e->event != NULL)
        heddle_event_finish(e->event, st);
    if (e->group != NULL)
        heddle_group_task_end(e->group, st);
    for (uint32_t i = 0; i < e->nafter; i++)
        heddle_event_drop(e->after[i]);
    further_free(ctx, e->after, e->nafter * sizeof(*e->after));
    further_free(ctx, e->arg, e->arg_bytes);
    further_free(ctx, e->mode, e->nmode * sizeof(*e->mode));
    further_free(ctx, e->op, (c->flags & TASK_NOPS) * sizeof(*e->op));
}

void heddle_engine_settle(struct worker *w, struct heddle_cell *c, heddle_status st)
{
    heddle_ctx *ctx = w->ctx;
    struct task_ext *ext = heddle_cell_ext(ctx, c);
    struct heddle_exec x;

    if (HEDDLE_UNLIKELY(ctx->dev != NULL))
        heddle_dev_settle(w, &c->sched, st);
    heddle_cell_exec_ext(w, c, ext, &x);
    if ((c->flags & (TASK_HIDDEN | TASK_LOOSE)) == TASK_HIDDEN && c->scope == NULL)
        heddle_counter_add(&w->hidden, 1);
    if (st == HEDDLE_ECANCELED)
        heddle_store_rlx(&w->cancelled, heddle_load_rlx(&w->cancelled) + 1);
    else if (st != HEDDLE_OK)
        heddle_store_rlx(&w->failed, heddle_load_rlx(&w->failed) + 1);
    if (c->scope != NULL && st != HEDDLE_OK) {
        int none = 0;

        (void)heddle_cas_acqrel(&c->scope->status, &none, (int)st);
    }
    heddle_end_settle(&x, st);
    for (unsigned i = 0; i < x.nops && (c->flags & TASK_HIDDEN) == 0; i++)
        if (heddle_mode_is_scratch(x.mode[i]))
            heddle_unit_unref(x.op[i]); /* see submit_commit() */
    if ((c->flags & TASK_TURNS) != 0)
        heddle_turns_release(&x);
    if (ext != NULL)
        ext_finish(&x, ext, st);
}

struct heddle_sched_task *heddle_engine_finish(struct worker *w, struct heddle_cell *c,
                                               heddle_status st)
{
    heddle_engine_settle(w, c, st);
    if (HEDDLE_UNLIKELY((c->flags & TASK_AHEAD) != 0))
        return heddle_dev_end_ahead(w, c, st);
    return heddle_engine_end(w, c);
}

void heddle_engine_finish_foreign(heddle_ctx *ctx, struct heddle_cell *c, heddle_status st)
{
    struct worker *w = ctx->foreign;
    struct heddle_sched_task *t;

    heddle_foreign_enter(ctx);
    heddle_spin_lock(&ctx->foreign_lock);
    t = heddle_engine_finish(w, c, st);
    heddle_returns_flush(&w->returns);
    heddle_spin_unlock(&ctx->foreign_lock);
    if (t != NULL)
        heddle_engine_push_foreign(ctx, t);
    heddle_ctx_signal(ctx);
    heddle_foreign_leave(ctx);
}

struct heddle_sched_task *heddle_end_leave(struct heddle_exec *x, heddle_status st)
{
    struct worker *w = x->worker;
    struct heddle_cell *c = x->cell;

    if (st > 0)
        st = HEDDLE_ETASK; /* a positive status is none */
    if (st != HEDDLE_OK)
        heddle_fail_task(x, st);
    else
        st = x->inlined;
    if (x->scope != NULL && heddle_scope_leave(x, &st))
        return NULL; /* the last child ends it */
    return heddle_engine_finish(w, c, st);
}

struct heddle_sched_task *heddle_end_after(struct heddle_exec *x, heddle_status st, uint64_t start)
{
    heddle_end_trace(x, st, start, 0);
    return heddle_end_leave(x, st);
}
