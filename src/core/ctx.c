/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx: waiting for everything, the end of an instance, facts about it.
 *
 * Structure  destroyed in the reverse order of its creation (start.c); a half-built
 *            context is destroyed by the same function.
 * Threads    destroy runs alone; the rest from any thread.
 */
#include "core/ctx.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/park.h"
#include "base/sized.h"
#include "base/spin.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/dev/dev.h"
#include "core/error.h"
#include "core/handle.h"
#include "core/hidden.h"
#include "core/kinfo.h"
#include "core/object.h"
#include "core/outside.h"
#include "core/sample.h"
#include "core/submit.h"
#include "core/time.h"
#include "core/worker.h"
#include "data/data.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"
#include "topo/topo.h"
#include "trace/trace.h"

enum { HOME_TRIES = 16 }; /* before data count as not to be brought home */

/* From now on, or (NULL) not any more: the log ends. */
void heddle_ctx_watch_memory(heddle_ctx *ctx,
                             void (*changed)(void *owner, const heddle_handle *root, bool is_less))
{
    heddle_mutex_lock(&ctx->reg.lock);
    ctx->reg.changed = changed;
    heddle_mutex_unlock(&ctx->reg.lock);
}

/* --- waiting ---------------------------------------------------------------- */

static bool ctx_quiet(void *arg)
{
    return heddle_ctx_is_quiet(arg);
}

static bool ctx_mem_is_idle(void *arg)
{
    return heddle_mem_is_idle(((heddle_ctx *)arg)->mem);
}

/* All tasks have ended: data of the user come home. False: the deadline came first. */
static bool ctx_go_home(heddle_ctx *ctx, uint64_t deadline_ns)
{
    for (unsigned i = 0; heddle_mem_go_home(ctx->mem) != 0; i++) {
        if (i == HOME_TRIES) {
            (void)heddle_fail(ctx, HEDDLE_EIO, "data could not be brought back to the host");
            break;
        }
        if (!heddle_ctx_help(ctx, ctx_mem_is_idle, ctx, deadline_ns))
            return false;
    }
    heddle_mem_give_home(ctx->mem);
    return true;
}

/* Waits until all tasks have ended and the user's data are home. is_end: the context ends, and
 * transfers that no task waits for have ended, too. False: the deadline came first. */
static bool ctx_wait_all(heddle_ctx *ctx, uint64_t deadline_ns, bool is_end)
{
    /* Without a budget the next uses of data are not recorded. */
    const bool is_homing = ctx->has_devs.has_budget && !is_end;
    bool ok;

    if (is_homing)
        heddle_mem_set_homing(ctx->mem, true);
    ok = heddle_ctx_help(ctx, ctx_quiet, ctx, deadline_ns);
    if (is_homing)
        heddle_mem_set_homing(ctx->mem, false);
    if (ctx->mem == NULL)
        return ok;
    ok = ok && ctx_go_home(ctx, deadline_ns);
    if (is_end) /* transfers that no task waits for */
        (void)heddle_ctx_help(ctx, ctx_mem_is_idle, ctx, 0);
    return ok;
}

/* What a wait returns; the next one starts afresh. */
static heddle_status ctx_take_failure(heddle_ctx *ctx)
{
    heddle_status st;

    heddle_mutex_lock(&ctx->lock);
    st = ctx->waited;
    ctx->waited = HEDDLE_OK;
    ctx->is_missing = false;
    if (st == HEDDLE_OK && !ctx->is_refusal) /* that of an earlier wait */
        ctx->error = (struct heddle_error){.size = sizeof(ctx->error)};
    heddle_mutex_unlock(&ctx->lock);
    if (heddle_load_rlx(&ctx->is_cancelled) != 0) {
        heddle_store_rlx(&ctx->is_cancelled, 0u);
        st = st == HEDDLE_OK ? HEDDLE_ECANCELED : st;
    }
    return st;
}

/* --- destruction ------------------------------------------------------------ */

static void ctx_stop(heddle_ctx *ctx)
{
    /* Release: pairs with worker_stop(). */
    heddle_store_rel(&ctx->is_stopping, 1u);
    heddle_park_ring_all(&ctx->park, ctx->nworkers);
    for (unsigned i = 0; i < ctx->nworkers; i++)
        if (ctx->worker[i].has_thread) {
            /* Asleep between its last look and the ring: wake it again. */
            heddle_park_wake(&ctx->park, i);
            if (heddle_thread_join(&ctx->worker[i].thread) == HEDDLE_OK)
                ctx->worker[i].has_thread = false;
        }
    heddle_dev_stop(ctx);
}

/* Handles without a reference that were still in use when the last one was dropped. */
static void ctx_bury(heddle_ctx *ctx)
{
    heddle_handle *h = ctx->reg.units;

    while (h != NULL) {
        heddle_handle *next = h->next;

        if (h->is_zombie) {
            heddle_unit_free(h);
            next = ctx->reg.units; /* its root may have gone with it */
        }
        h = next;
    }
}

/* A wrong model costs time only, so a failure is said and stops nothing. */
static void end_models(heddle_ctx *ctx)
{
    char why[320] = "";

    if (heddle_perf_end(ctx->perf, why, sizeof(why)) != HEDDLE_OK)
        heddle_report(ctx, HEDDLE_WARNING, "The performance models were not saved: %s.", why);
}

/* How long the run was on the machine that was described. */
static void tell_virtual_time(heddle_ctx *ctx)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    char time[48];
    struct heddle_text t;

    if (ctx->time->virtual_ns(ctx) == 0 || heddle_ctx_get_stats(ctx, &s) != HEDDLE_OK)
        return;
    heddle_text_init(&t, time, sizeof(time));
    heddle_text_ns(&t, s.virtual_ns);
    heddle_report(ctx, HEDDLE_INFO, "virtual time %s, %llu tasks, scheduler %s", time,
                  (unsigned long long)s.done, s.sched);
}

void heddle_ctx_free(heddle_ctx *ctx)
{
    const struct heddle_allocator a = ctx->alloc;

    if (ctx->worker != NULL)
        ctx_stop(ctx);
    heddle_sampler_close(ctx);
    heddle_ctx_watch_memory(ctx, NULL); /* a context that was never whole */
    heddle_objects_orphan(ctx);
    heddle_grants_drop(ctx);
    ctx_bury(ctx);
    heddle_dev_close(ctx); /* and what it knows about kernels */
    heddle_kinfo_free_all(ctx);
    heddle_registry_fini(&ctx->reg);
    if (ctx->sched_self != NULL) {
        ctx->sched->fini(ctx->sched_self);
        heddle_free(&a, ctx->sched_self, ctx->sched->instance_size);
    }
    for (unsigned i = 0; ctx->worker != NULL && i < ctx->nall; i++) {
        struct worker *w = &ctx->worker[i];

        heddle_returns_fini(&w->returns, &ctx->pool);
        heddle_slab_fini(&w->sub.slab);
        heddle_scope_free_all(w);
        heddle_free(&a, w->sub.acc, w->sub.acc_cap * sizeof(*w->sub.acc));
    }
    heddle_slab_fini(&ctx->root.slab);
    heddle_free(&a, ctx->root.acc, ctx->root.acc_cap * sizeof(*ctx->root.acc));
    heddle_free(&a, ctx->worker, ctx->nall * sizeof(*ctx->worker));
    heddle_park_fini(&ctx->park, &a);
    heddle_pool_fini(&ctx->pool);
    heddle_free(&a, ctx->steal_order,
                (size_t)ctx->nworkers * (ctx->nworkers - 1) * sizeof(unsigned));
    heddle_free(&a, ctx->flat_order, ctx->flat_bytes);
    end_models(ctx);
    (void)heddle_trace_close(ctx->trace, NULL, 0);
    heddle_topo_destroy(ctx->topo);
    heddle_mutex_fini(&ctx->event_lock);
    heddle_mutex_fini(&ctx->lock);
    heddle_free(&a, ctx, sizeof(*ctx));
}

heddle_status heddle_ctx_destroy(heddle_ctx *ctx)
{
    heddle_status st, log = HEDDLE_OK;

    if (ctx == NULL)
        return HEDDLE_OK;
    if (heddle_ctx_self(ctx) != NULL)
        return heddle_fail(ctx, HEDDLE_EDEADLK, "a task cannot destroy its context");
    if (heddle_sampler_is_self(ctx))
        return heddle_fail(ctx, HEDDLE_EDEADLK, "a message cannot destroy its context");
    heddle_grants_release(ctx); /* or ends of handles wait for ever */
    (void)heddle_submit_combine(ctx);
    (void)ctx_wait_all(ctx, 0, true);
    heddle_spin_lock(&ctx->submit_lock);
    if (ctx->is_closing || !heddle_ctx_is_quiet(ctx) || heddle_load_acq(&ctx->nwaiters) != 0) {
        heddle_spin_unlock(&ctx->submit_lock);
        return heddle_fail(ctx, HEDDLE_ESTATE, "the context is in use by another thread");
    }
    ctx->is_closing = true;
    heddle_spin_unlock(&ctx->submit_lock);
    while (heddle_load_acq(&ctx->nforeign) != 0)
        heddle_thread_yield();
    st = ctx_take_failure(ctx);
    tell_virtual_time(ctx);
    ctx_stop(ctx);
    heddle_ctx_watch_memory(ctx, NULL);
    heddle_sampler_end(ctx);
    log = heddle_trace_close(ctx->trace, NULL, 0);
    ctx->trace = NULL;
    heddle_ctx_free(ctx);
    return st != HEDDLE_OK ? st : log;
}

heddle_status heddle_wait_for(heddle_ctx *ctx, uint64_t timeout_ns)
{
    const uint64_t deadline = heddle_deadline_ns(timeout_ns);

    HEDDLE_CHECK(ctx != NULL);
    if (heddle_ctx_self(ctx) != NULL)
        return heddle_fail(ctx, HEDDLE_EDEADLK,
                           "a task cannot wait for all tasks: it is one of "
                           "them (see heddle_exec_wait)");
    if (heddle_submit_combine(ctx) != HEDDLE_OK)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory to combine a reduction");
    return ctx_wait_all(ctx, deadline, false) ? ctx_take_failure(ctx) : HEDDLE_ETIMEDOUT;
}

heddle_status heddle_wait(heddle_ctx *ctx)
{
    return heddle_wait_for(ctx, 0);
}

heddle_status heddle_ctx_cancel(heddle_ctx *ctx)
{
    HEDDLE_CHECK(ctx != NULL);
    heddle_store_rel(&ctx->is_cancelled, 1u);
    return HEDDLE_OK;
}

/* --- facts ------------------------------------------------------------------ */

heddle_status heddle_ctx_get_allocator(const heddle_ctx *ctx, struct heddle_allocator *out)
{
    if (ctx == NULL || out == NULL)
        return HEDDLE_EINVAL;
    *out = ctx->alloc;
    return HEDDLE_OK;
}

heddle_status heddle_ctx_get_stats(heddle_ctx *ctx, struct heddle_ctx_stats *out)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    uint64_t hidden = 0;

    HEDDLE_CHECK(ctx != NULL);
    HEDDLE_TRY(HEDDLE_MAY_FILL(ctx, struct heddle_ctx_stats, out));
    s.nworkers = ctx->nworkers;
    s.sched = ctx->sched->name;
    s.submitted = heddle_load_acq(&ctx->submitted) - heddle_load_rlx(&ctx->nhidden);
    /* Relaxed: counters. */
    for (unsigned i = 0; i < ctx->nall; i++) {
        const struct worker *w = &ctx->worker[i];

        hidden += heddle_load_rlx(&w->hidden);
        s.done += heddle_load_rlx(&w->done);
        s.executed += heddle_load_rlx(&w->executed);
        s.failed += heddle_load_rlx(&w->failed);
        s.cancelled += heddle_load_rlx(&w->cancelled);
        s.parks += heddle_load_rlx(&w->parks);
    }
    s.done -= hidden < s.done ? hidden : s.done; /* `hidden` may be ahead by one */
    if (ctx->sched->steals != NULL)
        s.steals = ctx->sched->steals(ctx->sched_self);
    heddle_spin_lock(&ctx->pool.lock);
    s.cells = (uint64_t)ctx->pool.nchunks * HEDDLE_CHUNK;
    s.cell_bytes = ctx->pool.nchunks *
                   (sizeof(struct heddle_chunk) + HEDDLE_CHUNK * sizeof(struct heddle_cell));
    heddle_spin_unlock(&ctx->pool.lock);
    s.data_bytes = heddle_load_rlx(&ctx->reg.used);
    for (unsigned i = 0; ctx->dev != NULL; i++) {
        struct heddle_memory_info m = {.size = sizeof(m)};

        if (heddle_ctx_get_memory(ctx, i, &m) != HEDDLE_OK)
            break;
        s.copied_bytes += m.bytes_in;
        s.evictions += m.evictions;
    }
    s.virtual_ns = ctx->time->virtual_ns(ctx);
    heddle_sized_put(out, &s, sizeof(s));
    return HEDDLE_OK;
}

heddle_status heddle_ctx_dump_log(heddle_ctx *ctx, const char *path)
{
    heddle_status st;
    char why[256] = "";

    HEDDLE_CHECK(ctx != NULL && path != NULL);
    if (!heddle_ctx_is_quiet(ctx))
        return heddle_fail(ctx, HEDDLE_ESTATE, "the log is written when no task is pending");
    heddle_sampler_take(ctx);
    st = heddle_trace_dump(ctx->trace, path, why, sizeof(why));
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, st, "%s", why[0] != '\0' ? why : heddle_status_text(st));
    return st;
}

heddle_status heddle_mark(heddle_ctx *ctx, const char *name)
{
    HEDDLE_CHECK(ctx != NULL && name != NULL);
    HEDDLE_TRY(heddle_submit_lock(ctx)); /* the submitter's lane */
    heddle_trace_mark(ctx->root.lane, heddle_trace_define_string(ctx->trace, name),
                      HEDDLE_LOG_MARK_POINT, heddle_ctx_ticks(ctx));
    heddle_submit_unlock(ctx);
    return HEDDLE_OK;
}

heddle_status heddle_sched_get_info(unsigned i, struct heddle_sched_info *out)
{
    HEDDLE_CHECK(out != NULL);
    for (unsigned k = 0; heddle_sched_table[k] != NULL; k++)
        if (k == i) {
            out->name = heddle_sched_table[k]->name;
            out->help = heddle_sched_table[k]->help;
            return HEDDLE_OK;
        }
    return HEDDLE_ENOENT;
}

const char *heddle_sched_get_name(const char *name)
{
    const struct heddle_sched_ops *s = name != NULL ? heddle_sched_find(name) : NULL;

    return s != NULL ? s->name : NULL;
}
