/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph/run: the nodes of a recorded region in flight; see graph.h.
 *
 * Purpose    the hot path of replay: a node costs its counter, its edges and the
 *            kernel. Nothing is submitted, allocated or collected.
 * Threads    the slot that runs the node.
 */
#include <stddef.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/graph/graph.h"
#include "core/graph/node.h"
#include "core/group.h"
#include "core/kinfo.h"
#include "core/lost.h"
#include "core/scope.h"
#include "core/slow.h"
#include "core/time.h"
#include "core/worker.h"
#include "sched/sched.h"
#include "trace/trace.h"

/* True: that was the last one. */
static inline bool node_count_down(_Atomic int32_t *ndeps, bool is_alone)
{
    int32_t n;

    if (!is_alone) /* as in engine_release() */
        return heddle_load_acq(ndeps) == 1 || heddle_sub_acqrel(ndeps, 1) == 1;
    /* One slot runs all nodes: no other thread counts. */
    n = heddle_load_rlx(ndeps) - 1;
    heddle_store_rlx(ndeps, n);
    return n == 0;
}

static struct graph_run *node_run_of(struct heddle_node *n)
{
    return (struct graph_run *)(void *)((char *)(n - n->index) - offsetof(struct graph_run, node));
}

/* At level 1 and above the log has the graph: the nodes are children of the launch.
 */
static HEDDLE_NOINLINE void run_trace(struct worker *w, const struct graph_run *r)
{
    const heddle_graph *g = r->graph;
    const uint64_t now = heddle_ctx_ticks(w->ctx);

    for (size_t i = 0; i < g->ntasks; i++) {
        const struct graph_task *t = &g->task[i];
        const uint64_t id = r->first_id + i;

        heddle_trace_submit(w->lane, id, t->kinfo->id, g->cold[i].prio, now, 0,
                            r->scope->parent_id);
        for (uint32_t k = 0; k < (t->info & GRAPH_NOPS); k++)
            heddle_trace_access(w->lane, id, r->op[t->op + k]->id, (uint8_t)g->rec[t->op + k].mode,
                                (uint16_t)k);
        for (uint32_t k = 0; k < t->nsucc; k++)
            heddle_trace_dep(w->lane, r->first_id + r->succ[t->succ + k], id);
        if (g->cold[i].name != NULL)
            heddle_trace_attr(w->lane, id, HEDDLE_LOG_ATTR_NAME,
                              heddle_trace_define_string(w->ctx->trace, g->cold[i].name));
    }
}

struct heddle_sched_task *heddle_run_nodes(struct worker *w, struct graph_run *r)
{
    heddle_graph *g = r->graph;
    heddle_ctx *ctx = w->ctx;
    struct heddle_sched_task *keep = NULL;

    if (HEDDLE_UNLIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_SUBMIT)))
        run_trace(w, r);
    heddle_store_rlx(&r->left, g->nsinks); /* published by the pushes */
    for (size_t i = g->ntasks; i-- > 0;) {
        if (g->task[i].ndeps != 0)
            continue;
        if (keep != NULL)
            heddle_ready(ctx, keep, w->pusher);
        keep = &r->node[i].sched;
    }
    w->has_pushed = true;
    heddle_ring(ctx, w->id);
    return keep;
}

static inline bool run_is_cancelled(const struct graph_run *r)
{
    return r->group != NULL && heddle_load_acq(&r->group->is_cancelled) != 0;
}

/* The last sink has ended: another pass, or the end of the launch. */
struct heddle_sched_task *heddle_run_end(struct worker *w, struct graph_run *r)
{
    struct heddle_exec x = {.ctx = w->ctx, .worker = w, .id = r->first_id};
    struct heddle_scope *scope = r->scope;
    bool goes_on = false;

    if (r->again != NULL && heddle_load_acq(&scope->status) == 0) {
        if (heddle_load_rlx(&w->ctx->is_cancelled) != 0 || run_is_cancelled(r)) {
            goes_on = true; /* its tasks say that they were left out */
        } else {
            heddle_exec_enter(&x); /* a wait in there would be for this one */
            goes_on = r->again(r->again_user, ++r->pass);
            heddle_exec_leave(&x);
        }
    }
    if (!goes_on)
        return heddle_scope_child_end(w, scope, NULL);
    /* Other tasks than before; relaxed: ids only have to differ. */
    r->first_id = heddle_add_rlx(&w->ctx->next_id, (uint64_t)r->graph->ntasks);
    return heddle_engine_hand_on(w, heddle_run_start(w, r), true);
}

/* `now`: ticks, if they were read for the log; or 0. */
static inline struct heddle_sched_task *node_release(struct worker *w, struct graph_run *r,
                                                     const struct graph_task *t, uint64_t now)
{
    heddle_ctx *ctx = w->ctx;
    const uint32_t *succ = &r->succ[t->succ];
    struct heddle_sched_task *keep = NULL;
    bool has_pushed = false;

    if (HEDDLE_UNLIKELY(t->nsucc == 0)) {
        /* Acquire and release: the last one sees what all wrote. */
        if (heddle_sub_acqrel(&r->left, 1u) == 1)
            return heddle_run_end(w, r);
        return NULL;
    }
    for (uint32_t i = t->nsucc; i-- > 0;) {
        _Atomic int32_t *ndeps = &r->ndeps[succ[i]];
        struct heddle_node *n;

        if (!node_count_down(ndeps, ctx->runs_inline))
            continue;
        n = &r->node[succ[i]];
        HEDDLE_PREFETCH(n);
        HEDDLE_PREFETCH(&r->task[succ[i]]);
        if (HEDDLE_UNLIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_READY)))
            heddle_trace_ready(w->lane, r->first_id + succ[i],
                               now != 0 ? now : heddle_ctx_ticks(ctx));
        if (keep != NULL) {
            heddle_ready(ctx, keep, w->pusher);
            has_pushed = true;
        }
        keep = &n->sched;
    }
    return heddle_engine_hand_on(w, keep, has_pushed);
}

static inline void node_exec(struct worker *w, struct heddle_node *n, struct graph_run *r,
                             const struct graph_task *t, struct heddle_exec *x)
{
    x->ctx = w->ctx;
    x->worker = w;
    x->kinfo = t->kinfo;
    x->op = r->op + t->op;
    x->mode = t->kinfo->mode;
    x->arg = r->arg + (size_t)t->arg * 16;
    x->nops = t->info & GRAPH_NOPS;
    x->arg_bytes = NODE_ARG; /* looked up when asked for */
    x->id = r->first_id + n->index;
    x->cell = NULL;
    x->node = n;
    x->scope = NULL;
    x->slow = NULL;
    x->inlined = HEDDLE_OK;
    if (HEDDLE_UNLIKELY((t->info & GRAPH_MODES) != 0))
        x->mode = r->graph->mode + t->op;
}

struct heddle_sched_task *heddle_node_end(struct worker *w, struct heddle_node *n, heddle_status st)
{
    struct graph_run *r = node_run_of(n);
    const struct graph_task *t = &r->task[n->index];

    if (HEDDLE_UNLIKELY(w->ctx->dev != NULL))
        heddle_dev_settle(w, &n->sched, st);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK || heddle_load_rlx(&w->ctx->reg.nmarks) != 0)) {
        struct heddle_exec x;
        int none = 0;

        node_exec(w, n, r, t, &x);
        heddle_end_settle(&x, st);
        if (st != HEDDLE_OK)
            (void)heddle_cas_acqrel(&r->scope->status, &none, (int)st);
    }
    if (HEDDLE_UNLIKELY(r->graph->watch.end != NULL))
        r->graph->watch.end(r->graph->watch.user, n->index, st);
    return node_release(w, r, t, 0);
}

struct heddle_sched_task *heddle_node_leave(struct heddle_exec *x, heddle_status st)
{
    struct worker *w = x->worker;
    struct heddle_node *n = x->node;

    if (st > 0)
        st = HEDDLE_ETASK;
    if (st != HEDDLE_OK)
        heddle_fail_task(x, st);
    if (x->scope != NULL && heddle_scope_leave(x, &st))
        return NULL;
    return heddle_node_end(w, n, st);
}

/* After the function of a node that failed, has children or is slow. */
static struct heddle_sched_task *node_after(struct heddle_exec *x, heddle_status st, uint64_t start)
{
    heddle_end_trace(x, st, start, HEDDLE_LOG_REPLAYED);
    return heddle_node_leave(x, st);
}

static struct task_ext node_ext(const struct heddle_node *n, const struct graph_run *r)
{
    const struct graph_cold *cold = &r->graph->cold[n->index];

    return (struct task_ext){.name = cold->name, .variant = (uint8_t)cold->variant};
}

void heddle_node_rearm(struct heddle_sched_task *t)
{
    struct heddle_node *n = (struct heddle_node *)(void *)t;
    struct graph_run *r = node_run_of(n);

    heddle_store_rlx(&r->ndeps[n->index], r->task[n->index].ndeps);
}

void heddle_node_exec(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                      struct task_ext *ext)
{
    struct heddle_node *n = (struct heddle_node *)(void *)t;
    struct graph_run *r = node_run_of(n);

    node_exec(w, n, r, &r->task[n->index], x);
    *ext = node_ext(n, r);
}

const struct heddle_kinfo *heddle_node_kinfo(struct heddle_sched_task *t)
{
    struct heddle_node *n = (struct heddle_node *)(void *)t;

    return node_run_of(n)->task[n->index].kinfo;
}

static struct heddle_sched_task *node_run_slow(struct heddle_exec *x, uint64_t start)
{
    const struct task_ext ext = node_ext(x->node, node_run_of(x->node));
    const struct heddle_graph_watch *watch = &node_run_of(x->node)->graph->watch;
    struct worker *w = x->worker;
    struct exec_slow s;
    heddle_status st;

    if (w->ctx->dev != NULL && heddle_dev_supply(w, &x->node->sched, x, &ext) == HEDDLE_AGAIN)
        return NULL;
    if (watch->begin != NULL)
        watch->begin(watch->user, x->node->index);
    st = heddle_slow_body(x, &s, &ext);
    if (st == TASK_PUT_BACK) {
        heddle_engine_put_back(w, &x->node->sched, false);
        return NULL;
    }
    return node_after(x, st, start);
}

struct heddle_sched_task *heddle_node_run(struct worker *w, struct heddle_sched_task *task)
{
    struct heddle_node *n = (struct heddle_node *)(void *)task;
    struct graph_run *r = node_run_of(n);
    const struct graph_task *t = &r->task[n->index];
    const uint64_t start = HEDDLE_UNLIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_READY))
                               ? heddle_ticks() /* as engine_start() */
                               : w->last;
    heddle_ctx *ctx = w->ctx;
    uint64_t now = 0, lost;
    struct heddle_exec x;
    heddle_status st;

    heddle_store_rlx(&r->ndeps[n->index], t->ndeps); /* invariant (4) */
    node_exec(w, n, r, t, &x);
    if (HEDDLE_UNLIKELY((t->info & GRAPH_SLOW) != 0 || run_is_cancelled(r) || ctx->dev != NULL ||
                        heddle_load_rlx(&ctx->is_cancelled) != 0 ||
                        heddle_load_rlx(&ctx->reg.nmarks) != 0))
        return node_run_slow(&x, start);
    heddle_exec_enter(&x);
    st = t->kinfo->run(&x);
    heddle_exec_leave(&x);
    heddle_store_rlx(&w->executed, heddle_load_rlx(&w->executed) + 1);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK || x.scope != NULL))
        return node_after(&x, st, start);
    if (HEDDLE_LIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))) {
        now = heddle_ticks();
        lost = heddle_lost_take(w, start, now);
        heddle_trace_task(w->lane, x.id, t->kinfo->id, 0, HEDDLE_LOG_REPLAYED,
                          start != 0 ? start : now, now, 0);
        if (HEDDLE_UNLIKELY(lost != 0))
            heddle_lost_trace(w, x.id, lost, now);
        w->last = now;
    }
    return node_release(w, r, t, now);
}

heddle_group *heddle_node_group(struct heddle_node *n)
{
    return node_run_of(n)->group;
}

struct heddle_scope *heddle_node_scope(struct heddle_node *n)
{
    return n == NULL ? NULL : node_run_of(n)->scope;
}

uint32_t heddle_node_arg_bytes(const struct heddle_exec *x)
{
    return node_run_of(x->node)->graph->cold[x->node->index].arg_bytes;
}
