/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event: something to wait for: the end of a task, or the moment that a thread of the
 * program completes by hand.
 *
 * Structure  an event names a cell, so a task waits for it as for any other task.
 *            The cell of a manual event is a hidden task ("notice") that becomes
 *            ready when the event is complete.
 * Invariants (1) status leaves HEDDLE_AGAIN once
 *            (2) pred of an event that is not complete holds everything it waits
 *                for by explicit edges, so a cycle would be found in it
 *            (3) a manual event whose users have let go of it completes: the tasks
 *                behind it must not wait for ever
 *            (4) `users` counts references of the program, `refs` these and the
 *                engine's
 * Threads    status and missing are atomic; event_lock guards pred.
 */
#include "core/event.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/cycle.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/hidden.h"
#include "core/object.h"
#include "core/outside.h"
#include "core/submit.h"
#include "core/worker.h"
#include "task/task.h"

static heddle_status event_new(heddle_ctx *ctx, heddle_event **e_out)
{
    heddle_event *e = heddle_zalloc(&ctx->alloc, 1, sizeof(*e));

    if (e == NULL)
        return heddle_refuse(ctx, HEDDLE_ENOMEM, "no memory for an event");
    heddle_object_add(ctx, &e->obj, OBJECT_EVENT);
    heddle_store_rlx(&e->refs, 1u); /* not shared yet */
    heddle_store_rlx(&e->users, 1u);
    heddle_store_rlx(&e->status, (int)HEDDLE_AGAIN);
    *e_out = e;
    return HEDDLE_OK;
}

heddle_status heddle_event_adopt(heddle_ctx *ctx, heddle_event **e_out)
{
    return event_new(ctx, e_out);
}

heddle_status heddle_event_create(heddle_ctx *ctx, heddle_event **e_out)
{
    struct submission s = {.flags = TASK_LOOSE};
    struct heddle_cell *c;
    heddle_event *e = NULL;
    heddle_status st;

    HEDDLE_CHECK(ctx != NULL && e_out != NULL);
    st = event_new(ctx, &e);
    if (st != HEDDLE_OK) {
        heddle_tell(ctx);
        return st;
    }
    e->is_manual = true;
    heddle_store_rlx(&e->missing, (int64_t)1);
    st = heddle_submit_lock(ctx);
    if (st == HEDDLE_OK) {
        s.sub = &ctx->root;
        s.domain = &ctx->root.domain;
        s.kinfo = &ctx->notice;
        st = heddle_submit_hidden(ctx, &s, NULL, HEDDLE_RW, e, &c);
        if (st == HEDDLE_OK) {
            e->ref = heddle_cell_ref(c);
            heddle_cell_ext(ctx, c)->event = heddle_event_hold(e);
        }
        heddle_submit_unlock(ctx);
    }
    if (st != HEDDLE_OK) {
        heddle_event_drop(e);
        return st == HEDDLE_ENOMEM ? heddle_fail(ctx, st, "no memory for an event") : st;
    }
    *e_out = e;
    return HEDDLE_OK;
}

/* One of the completions a manual event waits for. */
static void event_arrive(heddle_event *e, heddle_status st)
{
    heddle_ctx *ctx = e->obj.ctx;
    int none = 0;

    if (st < HEDDLE_OK)
        (void)heddle_cas_acqrel(&e->first, &none, (int)st);
    heddle_foreign_enter(ctx);
    if (heddle_sub_acqrel(&e->missing, (int64_t)1) != 1) {
        heddle_foreign_leave(ctx);
        return;
    }
    /* It is complete now; the notice lets go of the tasks behind it. Release:
     * what the completing thread wrote; pairs with poll and wait. */
    heddle_store_rel(&e->status, heddle_load_acq(&e->first));
    heddle_engine_push_foreign(ctx, &heddle_pool_cell(&ctx->pool, (uint32_t)e->ref)->sched);
    heddle_ctx_signal(ctx);
    heddle_foreign_leave(ctx);
}

static void event_drop_preds(heddle_event *e)
{
    heddle_event **pred;
    uint32_t n, cap;

    heddle_mutex_lock(&e->obj.ctx->event_lock);
    pred = e->pred;
    n = e->npreds;
    cap = e->pred_cap;
    e->pred = NULL;
    e->npreds = e->pred_cap = 0;
    heddle_mutex_unlock(&e->obj.ctx->event_lock);
    for (uint32_t i = 0; i < n; i++)
        heddle_event_drop(pred[i]);
    heddle_free(&e->obj.alloc, pred, cap * sizeof(*pred));
}

heddle_event *heddle_event_hold(heddle_event *e)
{
    heddle_add_rlx(&e->refs, 1u); /* the caller knows of another */
    return e;
}

void heddle_event_drop(heddle_event *e)
{
    heddle_event *dead = NULL;

    if (heddle_sub_acqrel(&e->refs, 1u) != 1)
        return;
    e->walk_next = NULL;
    dead = e;
    while (dead != NULL) { /* a list, not a recursion: chains may be long */
        struct heddle_allocator a;

        e = dead;
        dead = e->walk_next;
        heddle_object_remove(&e->obj);
        for (uint32_t i = 0; i < e->npreds; i++)
            if (heddle_sub_acqrel(&e->pred[i]->refs, 1u) == 1) {
                e->pred[i]->walk_next = dead;
                dead = e->pred[i];
            }
        a = e->obj.alloc;
        heddle_free(&a, e->pred, e->pred_cap * sizeof(*e->pred));
        heddle_free(&a, e, sizeof(*e));
    }
}

heddle_event *heddle_event_ref(heddle_event *e)
{
    if (e == NULL)
        return NULL;
    heddle_add_rlx(&e->users, 1u); /* the caller holds one */
    return heddle_event_hold(e);
}

/* True for the one that may complete a manual event by hand. */
static bool event_say(heddle_event *e)
{
    bool is_first;

    heddle_mutex_lock(&e->obj.ctx->event_lock);
    is_first = e->is_manual && !e->is_said;
    e->is_said = true;
    heddle_mutex_unlock(&e->obj.ctx->event_lock);
    return is_first;
}

void heddle_event_unref(heddle_event *e)
{
    if (e == NULL)
        return;
    /* Invariant (3). */
    if (heddle_sub_acqrel(&e->users, 1u) == 1 && e->is_manual && e->obj.ctx != NULL && event_say(e))
        event_arrive(e, HEDDLE_ECANCELED);
    heddle_event_drop(e);
}

void heddle_event_finish(heddle_event *e, heddle_status st)
{
    /* Release: what the task wrote; pairs with poll and wait. */
    heddle_store_rel(&e->status, (int)st);
    e->is_noticed = true;
    event_drop_preds(e);
    heddle_ctx_signal(e->obj.ctx);
    heddle_event_drop(e);
}

/* Room for n more; lock held. */
static heddle_status event_reserve(heddle_event *e, uint32_t n)
{
    const uint32_t cap = e->npreds + n;
    heddle_event **p;

    if (cap <= e->pred_cap)
        return HEDDLE_OK;
    p = heddle_zalloc(&e->obj.alloc, cap, sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < e->npreds; i++)
        p[i] = e->pred[i];
    heddle_free(&e->obj.alloc, e->pred, e->pred_cap * sizeof(*p));
    e->pred = p;
    e->pred_cap = cap;
    return HEDDLE_OK;
}

void heddle_event_follow(heddle_event *e, heddle_event *const *pred, size_t n)
{
    heddle_mutex_lock(&e->obj.ctx->event_lock);
    /* Without memory a cycle through this task goes unseen; no more. */
    if (n != 0 && event_reserve(e, (uint32_t)n) == HEDDLE_OK)
        for (size_t i = 0; i < n; i++)
            e->pred[e->npreds++] = heddle_event_hold(pred[i]);
    heddle_mutex_unlock(&e->obj.ctx->event_lock);
}

/* Does `from` wait for `to`? Lock held. Each event is put on the list once. */
static bool event_reaches(heddle_event *from, const heddle_event *to, uint32_t walk)
{
    from->walk = walk;
    from->walk_next = NULL;
    while (from != NULL) {
        heddle_event *e = from;

        if (e == to)
            return true;
        from = e->walk_next;
        for (uint32_t i = 0; i < e->npreds; i++)
            if (e->pred[i]->walk != walk) {
                e->pred[i]->walk = walk;
                e->pred[i]->walk_next = from;
                from = e->pred[i];
            }
    }
    return false;
}

static void event_pred_done(void *user, heddle_status st)
{
    heddle_event *e = user;

    event_arrive(e, st);
    heddle_event_drop(e);
}

heddle_event *heddle_event_behind(void (*done)(void *user, heddle_status st), void *user)
{
    return done == event_pred_done ? user : NULL;
}

static heddle_status pass_run(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static const heddle_kernel event_pass = {
    .size = sizeof(heddle_kernel),
    .name = "event",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = pass_run}},
};

heddle_status heddle_event_after(heddle_event *e, heddle_event *pred)
{
    struct heddle_task_opts opts = {
        .size = sizeof(opts), .after = &pred, .nafter = 1, .done = event_pred_done, .done_user = e};
    const struct heddle_call call = {.opts = &opts};
    heddle_status st = HEDDLE_OK;
    heddle_ctx *ctx;
    int64_t missing;

    HEDDLE_CHECK(e != NULL && pred != NULL && e->obj.ctx == pred->obj.ctx);
    ctx = e->obj.ctx;
    if (ctx == NULL)
        return HEDDLE_ESTATE;
    if (!e->is_manual)
        return heddle_fail(ctx, HEDDLE_ESTATE, "an event of a task waits for what the task does");
    heddle_mutex_lock(&ctx->event_lock);
    if (event_reaches(pred, e, ++ctx->event_walk))
        st = HEDDLE_ECYCLE;
    else
        st = event_reserve(e, 1);
    missing = heddle_load_acq(&e->missing);
    /* Not if it is complete already: 0 stays 0. */
    while (st == HEDDLE_OK &&
           (missing == 0 || !heddle_cas_acqrel(&e->missing, &missing, missing + 1)))
        if (missing == 0)
            st = HEDDLE_ESTATE;
    if (st == HEDDLE_OK)
        e->pred[e->npreds++] = heddle_event_hold(pred);
    heddle_mutex_unlock(&ctx->event_lock);
    if (st == HEDDLE_ECYCLE)
        return heddle_fail(ctx, st, "the event would wait for itself");
    if (st == HEDDLE_ESTATE)
        return heddle_fail(ctx, st, "the event is complete already");
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, st, "no memory for an event");
    heddle_event_hold(e); /* event_pred_done() drops it */
    st = heddle_submit(ctx, &event_pass, &call);
    if (st != HEDDLE_OK)
        event_pred_done(e, st); /* do not wait for what will not come */
    return st;
}

heddle_status heddle_event_complete(heddle_event *e, heddle_status st)
{
    HEDDLE_CHECK(e != NULL && st <= HEDDLE_OK);
    if (e->obj.ctx == NULL)
        return HEDDLE_ESTATE;
    if (!event_say(e))
        return heddle_fail(e->obj.ctx, HEDDLE_ESTATE, "the event is complete already, or a task's");
    event_arrive(e, st);
    return HEDDLE_OK;
}

heddle_status heddle_event_poll(heddle_event *e)
{
    HEDDLE_CHECK(e != NULL);
    /* Acquire: pairs with heddle_event_finish(). */
    return (heddle_status)heddle_load_acq(&e->status);
}

static bool event_is_done(void *arg)
{
    return heddle_load_acq(&((heddle_event *)arg)->status) != HEDDLE_AGAIN;
}

heddle_status heddle_event_wait(heddle_event *e, uint64_t timeout_ns)
{
    const uint64_t deadline = heddle_deadline_ns(timeout_ns);
    struct worker *w;

    HEDDLE_CHECK(e != NULL);
    if (event_is_done(e))
        return heddle_event_poll(e);
    if (e->obj.ctx == NULL)
        return HEDDLE_ESTATE;
    w = heddle_ctx_self(e->obj.ctx);
    if (w != NULL)
        HEDDLE_TRY(heddle_cycle_wait(w, event_is_done, e, deadline, e, NULL));
    else if (!heddle_ctx_help(e->obj.ctx, event_is_done, e, deadline))
        return HEDDLE_ETIMEDOUT;
    return heddle_event_poll(e);
}

/* --- objects that may outlive their context -------------------------------- */

void heddle_object_add(heddle_ctx *ctx, struct heddle_object *o, enum heddle_object_kind kind)
{
    o->ctx = ctx;
    o->alloc = ctx->alloc;
    o->kind = kind;
    o->prev = NULL;
    heddle_mutex_lock(&ctx->event_lock);
    o->next = ctx->objects;
    if (o->next != NULL)
        o->next->prev = o;
    ctx->objects = o;
    heddle_mutex_unlock(&ctx->event_lock);
}

void heddle_object_remove(struct heddle_object *o)
{
    heddle_ctx *ctx = o->ctx;

    if (ctx == NULL)
        return;
    heddle_mutex_lock(&ctx->event_lock);
    if (o->prev != NULL)
        o->prev->next = o->next;
    else
        ctx->objects = o->next;
    if (o->next != NULL)
        o->next->prev = o->prev;
    heddle_mutex_unlock(&ctx->event_lock);
}

void heddle_objects_orphan(heddle_ctx *ctx)
{
    while (ctx->objects != NULL) {
        struct heddle_object *o = ctx->objects;
        heddle_event *e = (heddle_event *)(void *)o; /* obj comes first */

        ctx->objects = o->next;
        if (o->next != NULL)
            o->next->prev = NULL;
        o->ctx = NULL;
        o->prev = o->next = NULL;
        /* The cell of a manual event goes with the context. */
        if (o->kind == OBJECT_EVENT && e->is_manual && !e->is_noticed) {
            int again = HEDDLE_AGAIN;

            (void)heddle_cas_acqrel(&e->status, &again, (int)HEDDLE_ECANCELED);
            heddle_event_drop(e);
        }
    }
}
