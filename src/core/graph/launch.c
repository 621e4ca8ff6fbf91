/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph/launch: bindings, arguments and the task that stands for a run; see
 * graph.h.
 *
 * Threads    any; the graph is sealed, a run belongs to its launch.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/mode.h"
#include "base/spin.h"
#include "core/call.h"
#include "core/ctx.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/graph/graph.h"
#include "core/graph/node.h"
#include "core/group.h"
#include "core/handle.h"
#include "core/kinfo.h"
#include "core/scope.h"
#include "core/submit.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"

static size_t run_bytes(const heddle_graph *g)
{
    return sizeof(struct graph_run) + g->ntasks * (sizeof(struct heddle_node) + sizeof(int32_t));
}

void heddle_run_free(struct graph_run *r)
{
    const heddle_graph *g = r->graph;
    const struct heddle_allocator *a = &g->obj.alloc;

    for (size_t i = 0; r->op != g->op && r->op != NULL && i < g->nops; i++)
        if (heddle_mode_is_scratch(g->rec[i].mode) && r->op[i] != NULL)
            heddle_unit_unref(r->op[i]);
    if (r->op != g->op)
        heddle_free(a, r->op, (g->nops + 1) * sizeof(*r->op));
    if (r->arg != g->arg)
        heddle_free(a, r->arg, g->arg_cap);
    heddle_free(a, r, run_bytes(g));
}

static struct graph_run *run_new(heddle_graph *g)
{
    struct graph_run *r;

    heddle_spin_lock(&g->lock);
    r = g->free;
    if (r != NULL)
        g->free = r->next;
    heddle_spin_unlock(&g->lock);
    if (r == NULL) {
        r = heddle_zalloc_aligned(&g->obj.alloc, 1, run_bytes(g), 64);
        if (r == NULL)
            return NULL;
        r->graph = g;
        r->task = g->task;
        r->succ = g->succ;
        r->ndeps = (_Atomic int32_t *)(void *)&r->node[g->ntasks];
        r->op = g->op;
        r->arg = g->arg;
        for (size_t i = 0; i < g->ntasks; i++) {
            r->node[i].sched.prio = g->cold[i].prio;
            r->node[i].index = (uint32_t)i;
            heddle_store_rlx(&r->ndeps[i], g->task[i].ndeps);
        }
    }
    r->again = NULL;
    r->pass = 0;
    r->is_started = false;
    return r;
}

/* Back to the graph; the launch is over. */
static void run_recycle(struct graph_run *r)
{
    heddle_graph *g = r->graph;

    if (r->op != g->op || r->arg != g->arg) {
        heddle_run_free(r);
    } else {
        heddle_spin_lock(&g->lock);
        r->next = g->free;
        g->free = r;
        heddle_spin_unlock(&g->lock);
    }
    heddle_graph_unref(g);
}

static heddle_status launch_check_binding(heddle_graph *g, const struct heddle_binding *b)
{
    const struct heddle_layout *l, *m;

    if (b->recorded == NULL || b->actual == NULL || b->actual->reg != &g->obj.ctx->reg ||
        heddle_map_get_ptr(&g->units, (uintptr_t)b->recorded) == NULL)
        return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                           "a binding names a handle that was not recorded, or "
                           "one of another context");
    l = &b->recorded->layout;
    m = &b->actual->layout;
    if (l->dtype != m->dtype || l->ndim != m->ndim ||
        memcmp(l->extent, m->extent, l->ndim * sizeof(l->extent[0])) != 0)
        return heddle_fail(g->obj.ctx, HEDDLE_EINVAL, "a binding of another type or shape");
    return HEDDLE_OK;
}

static bool launch_overlap(const heddle_handle *a, const heddle_handle *b)
{
    return a->root == b->root && heddle_box_overlap(&a->box, &b->box, a->root->layout.ndim);
}

/* Units that were apart must stay apart: there are no edges between them. */
static heddle_status launch_check_apart(heddle_graph *g, const struct heddle_access *acc,
                                        const struct heddle_binding *b)
{
    for (uint32_t i = 0; i < g->nunits; i++)
        if (g->acc[i].unit != b->recorded && launch_overlap(acc[i].unit, b->actual) &&
            !launch_overlap(g->acc[i].unit, b->recorded))
            return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                               "bindings overlap where the recorded handles "
                               "did not");
    return HEDDLE_OK;
}

static heddle_status launch_bind(heddle_graph *g, struct graph_run *r,
                                 const struct heddle_launch *l, struct heddle_access *acc)
{
    for (size_t i = 0; i < l->nbindings; i++) {
        struct graph_unit *u;

        HEDDLE_TRY(launch_check_binding(g, &l->binding[i]));
        u = heddle_map_get_ptr(&g->units, (uintptr_t)l->binding[i].recorded);
        acc[u->index].unit = l->binding[i].actual;
        acc[u->index].dep = &l->binding[i].actual->dep;
    }
    for (size_t i = 0; i < l->nbindings; i++)
        HEDDLE_TRY(launch_check_apart(g, acc, &l->binding[i]));
    r->op = heddle_zalloc(&g->obj.alloc, g->nops + 1, sizeof(*r->op));
    if (r->op == NULL)
        return heddle_fail(g->obj.ctx, HEDDLE_ENOMEM, "no memory for a launch");
    for (size_t i = 0; i < g->nops; i++) {
        r->op[i] = acc[g->rec[i].index].unit;
        if (heddle_mode_is_scratch(g->rec[i].mode)) /* it has no history */
            heddle_unit_ref(r->op[i]);
    }
    return HEDDLE_OK;
}

static heddle_status launch_args(heddle_graph *g, struct graph_run *r,
                                 const struct heddle_launch *l)
{
    r->arg = heddle_alloc(&g->obj.alloc, g->arg_cap);
    if (r->arg == NULL)
        return heddle_fail(g->obj.ctx, HEDDLE_ENOMEM, "no memory for a launch");
    memcpy(r->arg, g->arg, g->arg_cap);
    for (size_t i = 0; i < l->nargs; i++) {
        const struct heddle_graph_arg *a = &l->arg[i];

        if (a->task >= g->ntasks || a->arg == NULL || a->arg_bytes != g->cold[a->task].arg_bytes)
            return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                               "argument %zu of a launch names no task, or has "
                               "another size",
                               i);
        memcpy(r->arg + (size_t)g->task[a->task].arg * 16, a->arg, a->arg_bytes);
    }
    return HEDDLE_OK;
}

/* Nodes do not ask whether their operands have memory: that is done here. */
static bool run_touch(struct graph_run *r)
{
    heddle_graph *g = r->graph;

    if (!g->has_lazy && r->op == g->op)
        return true;
    for (size_t i = 0; i < g->nops; i++)
        if (!heddle_mode_is_scratch(g->rec[i].mode) && heddle_unit_base(r->op[i]) == NULL)
            return false;
    return true;
}

/* The task of a launch: its only child is the run. */
static heddle_status launch_run(struct heddle_exec *x)
{
    struct graph_run *r;
    struct heddle_sched_task *t;

    memcpy(&r, x->arg, sizeof(r));
    if (x->ctx->dev == NULL && !run_touch(r)) /* else each task sees to it */
        return heddle_exec_fail(x, HEDDLE_ENOMEM, "no memory for the operands of a graph");
    r->is_started = true;
    if (r->graph->ntasks == 0)
        return HEDDLE_OK;
    heddle_scope_begin(x, &r->own_scope);
    r->scope = x->scope;
    x->scope->submitted++;
    t = heddle_run_start(x->worker, r);
    if (t != NULL)
        heddle_engine_push(x->worker, t);
    return HEDDLE_OK;
}

/* The launch has ended, or was cancelled before it began. */
static void launch_done(void *user, heddle_status st)
{
    struct graph_run *r = user;
    void (*done)(void *, heddle_status) = r->done;
    void *done_user = r->done_user;
    heddle_graph *g = r->graph;

    /* Nothing ran: nothing that the region writes is what it should be. */
    for (size_t i = 0; i < g->nops && !r->is_started; i++)
        if (heddle_mode_changes(g->rec[i].mode))
            heddle_unit_mark(r->op[i], st);
    run_recycle(r);
    if (done != NULL)
        done(done_user, st);
}

const heddle_kernel heddle_launch_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "graph",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = launch_run}},
};

static heddle_status launch_submit(heddle_graph *g, struct graph_run *r, struct heddle_access *acc,
                                   int priority)
{
    heddle_ctx *ctx = g->obj.ctx;
    const struct heddle_call call = {
        .arg = &r, .arg_bytes = sizeof(struct graph_run *), .priority = priority, .opts = &r->opts};
    struct submission s = {.sub = &ctx->root,
                           .domain = &ctx->root.domain,
                           .call = &call,
                           .acc = acc,
                           .nacc = g->nunits};
    heddle_status st;

    st = heddle_kinfo_get(ctx, &heddle_launch_kernel, &s.kinfo);
    if (st == HEDDLE_OK)
        st = heddle_submit_lock(ctx);
    if (st != HEDDLE_OK)
        return st;
    st = heddle_submit_one(ctx, &s);
    heddle_submit_unlock(ctx);
    if (st == HEDDLE_OK)
        heddle_submit_finish(ctx, &s);
    else
        heddle_tell(ctx);
    return st;
}

static heddle_status launch_check(heddle_graph *g, const struct heddle_launch *l)
{
    if (!g->is_sealed)
        return heddle_fail(g->obj.ctx, HEDDLE_ESTATE,
                           "a graph is launched after heddle_graph_end()");
    if ((l->nbindings != 0 && l->binding == NULL) || (l->nargs != 0 && l->arg == NULL))
        return heddle_fail(g->obj.ctx, HEDDLE_EINVAL, "a launch has a count but no array");
    return HEDDLE_OK;
}

heddle_status heddle_graph_launch(heddle_graph *g, const struct heddle_launch *launch)
{
    struct heddle_launch copy, *l = &copy;
    struct heddle_task_opts opts;
    struct heddle_access *acc;
    struct graph_run *r;
    heddle_status st = HEDDLE_OK;
    size_t bytes;

    HEDDLE_CHECK(g != NULL);
    if (g->obj.ctx == NULL)
        return HEDDLE_ESTATE;
    st = HEDDLE_TAKE(g->obj.ctx, struct heddle_launch, l, launch);
    if (st == HEDDLE_OK)
        st = HEDDLE_TAKE(g->obj.ctx, struct heddle_task_opts, &opts, l->opts);
    if (st != HEDDLE_OK) {
        heddle_tell(g->obj.ctx);
        return st;
    }
    HEDDLE_TRY(launch_check(g, l));
    bytes = (g->nunits + (size_t)1) * sizeof(*acc);
    acc = l->nbindings == 0 ? g->acc : heddle_alloc(&g->obj.alloc, bytes);
    r = run_new(g);
    if (acc == NULL || r == NULL) {
        st = heddle_fail(g->obj.ctx, HEDDLE_ENOMEM, "no memory for a launch");
    } else if (l->nbindings != 0) {
        memcpy(acc, g->acc, bytes);
        st = launch_bind(g, r, l, acc);
    }
    if (st == HEDDLE_OK && l->nargs != 0)
        st = launch_args(g, r, l);
    if (r != NULL)
        heddle_add_rlx(&g->refs, 1u); /* the run's; the caller holds one */
    if (st == HEDDLE_OK) {
        r->again = l->again;
        r->again_user = l->again_user;
        /* Relaxed: ids only have to differ. */
        r->first_id = heddle_add_rlx(&g->obj.ctx->next_id, (uint64_t)g->ntasks);
        r->opts = opts;
        r->group = r->opts.group;
        r->done = r->opts.done;
        r->done_user = r->opts.done_user;
        r->opts.done = launch_done;
        r->opts.done_user = r;
        st = launch_submit(g, r, acc, l->priority);
    }
    if (st != HEDDLE_OK && r != NULL)
        run_recycle(r);
    if (acc != g->acc)
        heddle_free(&g->obj.alloc, acc, bytes);
    return st;
}
