/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gang: one task on several workers at once, all or nothing.
 *
 * Structure  one gang forms at a time (gang_lock): its leader publishes it in
 *            ctx->gang, workers join when they come back to their loop, and when
 *            enough have joined, all start. At the end the leader waits for all
 *            members.
 * Invariants (1) a forming gang waits only for workers that will come: if too few
 *                can (slot 0 is empty), the gang dissolves and the task goes back
 *                to the scheduler
 *            (2) a worker inside a gang's body joins and leads no other gang, and
 *                a gang has no gang among its children: so the workers a forming
 *                gang waits for never wait for it
 * Threads    gang_lock guards ctx->gang and `joined`; the body's x is copied per
 *            member.
 */
#include "core/gang.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/park.h"
#include "base/spin.h"
#include "base/thread.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/worker.h"
#include "trace/trace.h"

struct gang {
    unsigned size;
    heddle_run_fn run;
    struct heddle_exec x; /* as it was before the leader began */
    struct exec_slow slow;
    _Atomic uint32_t joined; /* members, the leader included */
    _Atomic uint32_t is_formed;
    _Atomic uint32_t ended;   /* members whose function returned */
    _Atomic uint32_t left;    /* helpers that no longer look at this */
    _Atomic int status;       /* the first failure */
    _Atomic uint32_t arrived; /* barrier: members in this round */
    _Atomic uint32_t round;
};

static void gang_relax(unsigned *n)
{
    if (++*n % 64 == 0)
        heddle_thread_yield();
    else
        heddle_pause();
}

static void gang_member(struct worker *w, struct gang *g, unsigned rank)
{
    struct exec_slow s = g->slow;
    struct heddle_exec x = g->x;
    heddle_status st;
    int none = 0;

    s.rank = rank;
    x.worker = w;
    x.slow = &s;
    x.scope = NULL;
    x.inlined = HEDDLE_OK;
    w->gang_depth++;
    heddle_exec_enter(&x);
    st = g->run(&x);
    heddle_exec_leave(&x);
    w->gang_depth--;
    if (st > 0)
        st = HEDDLE_ETASK;
    if (st != HEDDLE_OK) {
        heddle_fail_task(&x, st);
        (void)heddle_cas_acqrel(&g->status, &none, (int)st);
    }
}

bool heddle_gang_join(struct worker *w)
{
    heddle_ctx *ctx = w->ctx;
    uint32_t n, spins = 0;
    uint64_t start;
    struct gang *g;

    if (w->gang_depth > 0)
        return false; /* invariant (2) */
    /* The lock keeps g alive while we look at it. */
    heddle_spin_lock(&ctx->gang_lock);
    g = heddle_load_rlx(&ctx->gang);
    n = g == NULL ? 0 : heddle_load_rlx(&g->joined);
    if (g == NULL || n >= g->size) {
        heddle_spin_unlock(&ctx->gang_lock);
        return false;
    }
    heddle_store_rlx(&g->joined, n + 1); /* under the lock */
    heddle_spin_unlock(&ctx->gang_lock);
    /* Acquire: pairs with the leader's decision. */
    while ((start = heddle_load_acq(&g->is_formed)) == 0)
        gang_relax(&spins);
    if (start == 1) {
        start = heddle_ticks();
        gang_member(w, g, n);
        heddle_trace_task(w->lane, g->x.id, g->x.kinfo->id, (uint8_t)g->slow.variant,
                          HEDDLE_LOG_GANG, start, heddle_ticks(), 0);
        w->last = 0;
        heddle_add_acqrel(&g->ended, 1u); /* what this member wrote */
    }
    heddle_add_acqrel(&g->left, 1u);
    return true;
}

/* How many workers can come at all. */
static unsigned gang_present(const heddle_ctx *ctx)
{
    /* Relaxed: asked again and again. */
    const bool has_master = !ctx->helps || heddle_load_rlx(&ctx->master.is_locked) != 0;

    return ctx->nworkers - (has_master ? 0 : 1);
}

bool heddle_gang_fits(const struct worker *w, unsigned size)
{
    return w->gang_depth == 0 && size <= gang_present(w->ctx);
}

/* Waits until enough have joined. False: dissolved. */
static bool gang_form(heddle_ctx *ctx, struct gang *g)
{
    unsigned spins = 0;
    bool ok;

    for (;;) {
        heddle_spin_lock(&ctx->gang_lock);
        ok = heddle_load_rlx(&g->joined) == g->size;
        if (ok || g->size > gang_present(ctx)) {
            heddle_store_rlx(&ctx->gang, NULL);
            heddle_spin_unlock(&ctx->gang_lock);
            break;
        }
        heddle_spin_unlock(&ctx->gang_lock);
        gang_relax(&spins);
    }
    /* Publishes g to the members; pairs with heddle_gang_join(). */
    heddle_store_rel(&g->is_formed, ok ? 1u : 2u);
    return ok;
}

heddle_status heddle_gang_run(struct heddle_exec *x, struct exec_slow *s, heddle_run_fn run,
                              unsigned size)
{
    struct gang g = {.size = size, .run = run};
    heddle_ctx *ctx = x->ctx;
    struct worker *w = x->worker;
    unsigned spins = 0;
    uint32_t helpers;
    heddle_status st = TASK_PUT_BACK;

    if (!heddle_gang_fits(w, size))
        return TASK_PUT_BACK;
    s->gang = &g;
    g.x = *x;
    g.slow = *s;
    heddle_store_rlx(&g.joined, 1u); /* not shared yet */
    heddle_spin_lock(&ctx->gang_lock);
    if (heddle_load_rlx(&ctx->gang) != NULL) {
        heddle_spin_unlock(&ctx->gang_lock);
        s->gang = NULL;
        return TASK_PUT_BACK; /* another forms: join that one first */
    }
    heddle_store_rel(&ctx->gang, &g);
    heddle_spin_unlock(&ctx->gang_lock);
    heddle_park_ring_all(&ctx->park, w->id);
    if (gang_form(ctx, &g)) {
        w->gang_depth++;
        st = run(x);
        if (st > 0)
            st = HEDDLE_ETASK; /* a positive status is none */
        w->gang_depth--;
        while (heddle_load_acq(&g.ended) != size - 1)
            gang_relax(&spins);
        if (st == HEDDLE_OK)
            st = (heddle_status)heddle_load_acq(&g.status);
    }
    s->gang = NULL;
    /* g lives on this stack: wait until the helpers have let go of it. */
    helpers = heddle_load_acq(&g.joined) - 1;
    while (heddle_load_acq(&g.left) != helpers)
        gang_relax(&spins);
    return st;
}

unsigned heddle_exec_gang_rank(struct heddle_exec *x)
{
    return x == NULL || x->slow == NULL ? 0 : x->slow->rank;
}

unsigned heddle_exec_gang_size(struct heddle_exec *x)
{
    return x == NULL || x->slow == NULL || x->slow->gang == NULL ? 1 : x->slow->gang->size;
}

void heddle_exec_gang_barrier(struct heddle_exec *x)
{
    struct gang *g = x == NULL || x->slow == NULL ? NULL : x->slow->gang;
    unsigned spins = 0;
    uint32_t round;

    if (g == NULL)
        return;
    round = heddle_load_acq(&g->round);
    if (heddle_add_acqrel(&g->arrived, 1u) == g->size - 1) {
        heddle_store_rlx(&g->arrived, 0u); /* before the next round opens */
        heddle_store_rel(&g->round, round + 1);
        return;
    }
    while (heddle_load_acq(&g->round) == round)
        gang_relax(&spins);
}
