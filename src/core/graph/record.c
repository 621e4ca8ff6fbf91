/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph/record: recording and sealing a region; see graph.h.
 *
 * Threads    one thread records; a sealed graph is constant.
 * Errors     a recording that ran out of memory in the middle of a task cannot be
 *            sealed any more.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/mode.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/error.h"
#include "core/graph/graph.h"
#include "core/group.h"
#include "core/handle.h"
#include "core/kinfo.h"
#include "core/object.h"
#include "data/data.h"

/* --- recording -------------------------------------------------------------- */

static heddle_status graph_grow(heddle_graph *g, void *array, size_t *cap, size_t need, size_t elem)
{
    void **p = array, *bigger;
    size_t n = *cap == 0 ? 64 : *cap;

    if (need <= *cap)
        return HEDDLE_OK;
    while (n < need)
        n *= 2;
    bigger = heddle_zalloc(&g->obj.alloc, n, elem);
    if (bigger == NULL)
        return heddle_refuse(g->obj.ctx, HEDDLE_ENOMEM, "no memory for a graph");
    if (*cap != 0)
        memcpy(bigger, *p, *cap * elem);
    heddle_free(&g->obj.alloc, *p, *cap * elem);
    *p = bigger;
    *cap = n;
    return HEDDLE_OK;
}

heddle_status heddle_graph_begin(heddle_ctx *ctx, heddle_graph **g_out)
{
    heddle_graph *g;

    HEDDLE_CHECK(ctx != NULL && g_out != NULL);
    g = heddle_zalloc_aligned(&ctx->alloc, 1, sizeof(*g), 64);
    if (g == NULL)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for a graph");
    heddle_object_add(ctx, &g->obj, OBJECT_GRAPH);
    heddle_store_rlx(&g->refs, 1u); /* not shared yet */
    heddle_map_init(&g->units, &g->obj.alloc);
    g->serial = heddle_add_rlx(&ctx->next_id, UINT64_C(1)); /* any new number */
    *g_out = g;
    return HEDDLE_OK;
}

static heddle_status graph_unit_get(heddle_graph *g, heddle_handle *h, struct graph_unit **out)
{
    struct graph_unit *u = heddle_map_get_ptr(&g->units, (uintptr_t)h);

    if (u == NULL) {
        u = heddle_zalloc(&g->obj.alloc, 1, sizeof(*u));
        if (u == NULL || heddle_map_put_ptr(&g->units, (uintptr_t)h, u) != HEDDLE_OK) {
            heddle_free(&g->obj.alloc, u, sizeof(*u));
            return heddle_refuse(g->obj.ctx, HEDDLE_ENOMEM, "no memory for a graph");
        }
        u->unit = heddle_unit_ref(h);
        u->index = g->nunits++;
        u->next = g->list;
        g->list = u;
    }
    *out = u;
    return HEDDLE_OK;
}

static heddle_status graph_edge_add(heddle_graph *g, uint32_t pred)
{
    const uint32_t succ = (uint32_t)g->ntasks;

    if (g->cold[pred].succ == succ + 1) /* edges of one task come together */
        return HEDDLE_OK;
    HEDDLE_TRY(graph_grow(g, &g->edge, &g->edge_cap, g->nedges + 1, sizeof(*g->edge)));
    g->cold[pred].succ = succ + 1;
    g->edge[g->nedges++] = (struct graph_edge){pred, succ};
    return HEDDLE_OK;
}

/* What the new task waits for in the history of one unit. */
static heddle_status graph_wait_for(heddle_graph *g, const struct graph_unit *u,
                                    enum heddle_mode mode)
{
    if (u->writer != 0 && (heddle_mode_only_reads(mode) || u->nreaders == 0))
        HEDDLE_TRY(graph_edge_add(g, u->writer - 1));
    for (uint32_t i = 0; !heddle_mode_only_reads(mode) && i < u->nreaders; i++)
        HEDDLE_TRY(graph_edge_add(g, u->reader[i]));
    return HEDDLE_OK;
}

/* What writes all of a unit has waited for the histories of the units inside of it, and later tasks
 * on these find the writer, whose unit overlaps theirs. Registry lock held. */
static void graph_cover(heddle_graph *g, const struct graph_unit *u)
{
    const heddle_handle *h = u->unit;

    for (uint32_t i = 0; i < heddle_unit_noverlaps(h); i++) {
        struct graph_unit *v = heddle_map_get_ptr(&g->units, (uintptr_t)h->overlap[i]);

        if (v != NULL && (v->writer != 0 || v->nreaders != 0) &&
            heddle_box_contains(&h->box, &v->unit->box, h->root->layout.ndim))
            v->writer = v->nreaders = 0;
    }
}

/* Registry lock held. */
static heddle_status graph_enter(heddle_graph *g, struct graph_unit *u, enum heddle_mode mode)
{
    size_t cap = u->cap;

    if (heddle_mode_only_reads(mode)) {
        HEDDLE_TRY(graph_grow(g, &u->reader, &cap, u->nreaders + (size_t)1, sizeof(*u->reader)));
        u->cap = (uint32_t)cap;
        u->reader[u->nreaders++] = (uint32_t)g->ntasks;
    } else {
        u->writer = (uint32_t)g->ntasks + 1;
        u->nreaders = 0;
        graph_cover(g, u);
    }
    /* The launch reads unless the region begins by overwriting. */
    if (u->mode == 0)
        u->mode = heddle_mode_is_in_turn(mode) ? HEDDLE_RW : mode;
    else if (heddle_mode_only_reads(u->mode) && !heddle_mode_only_reads(mode))
        u->mode = HEDDLE_RW;
    return HEDDLE_OK;
}

/* The edges of one operand. Registry lock held: overlap lists are read. */
static heddle_status graph_operand(heddle_graph *g, heddle_handle *h, enum heddle_mode mode)
{
    struct graph_unit *u = NULL;

    HEDDLE_TRY(graph_unit_get(g, h, &u));
    HEDDLE_TRY(graph_wait_for(g, u, mode));
    for (uint32_t i = 0; i < heddle_unit_noverlaps(h); i++) {
        struct graph_unit *v = heddle_map_get_ptr(&g->units, (uintptr_t)h->overlap[i]);

        if (v != NULL)
            HEDDLE_TRY(graph_wait_for(g, v, mode));
    }
    g->rec[g->nops++] = (struct graph_op){h, mode, u->index};
    return HEDDLE_OK;
}

static heddle_status graph_check(heddle_graph *g, const struct heddle_kinfo *k,
                                 const struct heddle_call *call, unsigned nops)
{
    heddle_handle *const *op = call->noperands != 0 ? call->operands : call->operand;
    const enum heddle_mode *mode =
        call->noperands != 0 && call->modes != NULL ? call->modes : k->mode;
    const struct heddle_task_opts *o = call->opts;

    if (g->is_sealed)
        return heddle_fail(g->obj.ctx, HEDDLE_ESTATE, "the graph is sealed");
    if ((call->noperands == 0 && nops > HEDDLE_CALL_OPERANDS) || nops > HEDDLE_KERNEL_OPERANDS ||
        (nops > 0 && op == NULL) ||
        (call->noperands != 0 && call->modes == NULL && nops != k->noperands) ||
        (call->arg == NULL && call->arg_bytes != 0) || call->arg_bytes > UINT32_MAX / 2)
        return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                           "kernel %s: bad operands or argument in a graph", k->kernel->name);
    if ((call->reserved[0] | call->reserved[1]) != 0)
        return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                           "kernel %s: the call has reserved fields that are set: leave these "
                           "zero, or run with the library of that header",
                           k->kernel->name);
    if (o != NULL &&
        (o->after != NULL || o->group != NULL || o->done != NULL || o->event_out != NULL ||
         o->retries != 0 || o->timeout_ns != 0 || o->variant > k->nvariants))
        return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                           "kernel %s: of the options only name and variant "
                           "can be recorded",
                           k->kernel->name);
    for (unsigned i = 0; i < nops; i++) {
        if (op[i] == NULL || op[i]->reg != &g->obj.ctx->reg)
            return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                               "kernel %s: operand %u is NULL or of another "
                               "context",
                               k->kernel->name, i);
        if (!heddle_mode_is_known(mode[i]) || heddle_mode_combines(mode[i]))
            return heddle_fail(g->obj.ctx, HEDDLE_EINVAL,
                               "kernel %s: operand %u: a reduction cannot be "
                               "recorded",
                               k->kernel->name, i);
    }
    return HEDDLE_OK;
}

/* Edges that no operand stands for. */
static heddle_status graph_order(heddle_graph *g, const uint32_t *pred, size_t npreds)
{
    for (size_t i = 0; i < npreds; i++)
        HEDDLE_TRY(graph_edge_add(g, pred[i]));
    return HEDDLE_OK;
}

/* All operands: first the edges, then the histories, as in deps.c. */
static heddle_status graph_operands(heddle_graph *g, heddle_handle *const *op,
                                    const enum heddle_mode *mode, unsigned nops)
{
    const size_t first = g->nops;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < nops && st == HEDDLE_OK; i++) {
        if (heddle_mode_is_scratch(mode[i])) { /* no order, but it must live */
            struct graph_unit *u = NULL;

            st = graph_unit_get(g, op[i], &u);
            if (st == HEDDLE_OK)
                g->rec[g->nops++] = (struct graph_op){op[i], mode[i], u->index};
            continue;
        }
        heddle_mutex_lock(&g->obj.ctx->reg.lock);
        st = graph_operand(g, op[i], mode[i]);
        heddle_mutex_unlock(&g->obj.ctx->reg.lock);
    }
    heddle_mutex_lock(&g->obj.ctx->reg.lock);
    for (size_t i = first; i < g->nops && st == HEDDLE_OK; i++)
        if (heddle_mode_is_ordered(g->rec[i].mode))
            st = graph_enter(g, heddle_map_get_ptr(&g->units, (uintptr_t)g->rec[i].unit),
                             g->rec[i].mode);
    heddle_mutex_unlock(&g->obj.ctx->reg.lock);
    return st;
}

static heddle_status graph_submit(heddle_graph *g, const heddle_kernel *kernel,
                                  const struct heddle_call *given, const uint32_t *pred,
                                  size_t npreds)
{
    struct heddle_call own = {.arg = NULL}, *call = &own;
    struct heddle_task_opts opts;
    struct graph_task t = {.nsucc = 0};
    struct graph_cold cold = {.prio = 0};
    struct heddle_kinfo *k = NULL;
    unsigned nops;
    heddle_handle *const *op;
    const enum heddle_mode *mode;
    size_t edges, ops, arg;
    heddle_status st;

    if (given != NULL)
        own = *given;
    if (own.opts != NULL) {
        HEDDLE_TRY(HEDDLE_TAKE(g->obj.ctx, struct heddle_task_opts, &opts, own.opts));
        own.opts = &opts;
    }
    HEDDLE_TRY(heddle_kinfo_get(g->obj.ctx, kernel, &k));
    nops = call->noperands != 0 ? call->noperands : k->noperands;
    HEDDLE_TRY(graph_check(g, k, call, nops));
    op = call->noperands != 0 ? call->operands : call->operand;
    mode = call->noperands != 0 && call->modes != NULL ? call->modes : k->mode;
    HEDDLE_TRY(graph_grow(g, &g->task, &g->task_cap, g->ntasks + 1, sizeof(*g->task)));
    HEDDLE_TRY(graph_grow(g, &g->cold, &g->cold_cap, g->ntasks + 1, sizeof(*g->cold)));
    HEDDLE_TRY(graph_grow(g, &g->rec, &g->op_cap, g->nops + nops, sizeof(*g->rec)));
    arg = (g->arg_bytes + 15) & ~(size_t)15;
    if (arg / 16 > UINT32_MAX || g->nops > UINT32_MAX || g->nedges > UINT32_MAX)
        return heddle_fail(g->obj.ctx, HEDDLE_EOVERFLOW, "the graph is too large");
    HEDDLE_TRY(graph_grow(g, &g->arg, &g->arg_cap, arg + call->arg_bytes + 16, 1));
    edges = g->nedges;
    ops = g->nops;
    st = graph_order(g, pred, npreds);
    if (st == HEDDLE_OK)
        st = graph_operands(g, op, mode, nops);
    if (st != HEDDLE_OK) { /* histories may name this task */
        g->nedges = edges;
        g->nops = ops;
        g->is_broken = true;
        return st;
    }
    t.kinfo = k;
    t.op = (uint32_t)ops;
    t.arg = (uint32_t)(arg / 16);
    t.info = nops;
    if (k->is_slow || g->watch.begin != NULL || (call->opts != NULL && call->opts->variant != 0))
        t.info |= GRAPH_SLOW;
    if (mode != k->mode)
        t.info |= GRAPH_MODES | GRAPH_SLOW;
    cold.prio = call->priority;
    cold.arg_bytes = (uint32_t)call->arg_bytes;
    if (call->arg_bytes != 0)
        memcpy(g->arg + arg, call->arg, call->arg_bytes);
    g->arg_bytes = arg + call->arg_bytes;
    if (call->opts != NULL) {
        cold.name = call->opts->name;
        cold.variant = call->opts->variant;
    }
    g->cold[g->ntasks] = cold;
    g->task[g->ntasks++] = t;
    return HEDDLE_OK;
}

heddle_status heddle_graph_submit_after(heddle_graph *g, const heddle_kernel *kernel,
                                        const struct heddle_call *call, const uint32_t *pred,
                                        size_t npreds)
{
    heddle_status st;

    HEDDLE_CHECK(g != NULL);
    if (g->obj.ctx == NULL)
        return HEDDLE_ESTATE;
    st = graph_submit(g, kernel, call, pred, npreds);
    if (st != HEDDLE_OK)
        heddle_tell(g->obj.ctx);
    return st;
}

heddle_status heddle_graph_submit(heddle_graph *g, const heddle_kernel *kernel,
                                  const struct heddle_call *call)
{
    return heddle_graph_submit_after(g, kernel, call, NULL, 0);
}

/* --- sealing ---------------------------------------------------------------- */

/* Edges come sorted by successor; successors are wanted by predecessor. */
static void graph_count_edges(heddle_graph *g)
{
    uint32_t at = 0;

    for (size_t e = 0; e < g->nedges; e++) {
        g->task[g->edge[e].pred].nsucc++;
        g->task[g->edge[e].succ].ndeps++;
    }
    for (size_t t = 0; t < g->ntasks; t++) {
        g->task[t].succ = at;
        at += g->task[t].nsucc;
        g->nsinks += g->task[t].nsucc == 0;
        g->task[t].nsucc = 0;
    }
    for (size_t e = 0; e < g->nedges; e++) {
        struct graph_task *p = &g->task[g->edge[e].pred];

        g->succ[p->succ + p->nsucc++] = g->edge[e].succ;
    }
}

heddle_status heddle_graph_end(heddle_graph *g)
{
    const struct heddle_allocator *a;

    HEDDLE_CHECK(g != NULL);
    if (g->obj.ctx == NULL)
        return HEDDLE_ESTATE;
    a = &g->obj.alloc;
    if (g->is_sealed || g->is_broken)
        return heddle_fail(g->obj.ctx, HEDDLE_ESTATE,
                           g->is_sealed ? "the graph is sealed already"
                                        : "recording failed before");
    g->succ = heddle_zalloc(a, g->nedges + 1, sizeof(*g->succ));
    g->op = heddle_zalloc(a, g->nops + 1, sizeof(*g->op));
    g->mode = heddle_zalloc(a, g->nops + 1, sizeof(*g->mode));
    g->acc = heddle_zalloc(a, g->nunits + (size_t)1, sizeof(*g->acc));
    if (g->succ == NULL || g->op == NULL || g->mode == NULL || g->acc == NULL) {
        g->is_broken = true;
        return heddle_fail(g->obj.ctx, HEDDLE_ENOMEM, "no memory for a graph");
    }
    graph_count_edges(g);
    for (size_t i = 0; i < g->nops; i++) {
        g->has_lazy = g->has_lazy || heddle_unit_is_lazy(g->rec[i].unit);
        g->op[i] = g->rec[i].unit;
        g->mode[i] = g->rec[i].mode;
    }
    for (struct graph_unit *u = g->list; u != NULL; u = u->next) {
        g->acc[u->index].unit = u->unit;
        g->acc[u->index].mode = u->mode != 0 ? u->mode : HEDDLE_SCRATCH;
        g->acc[u->index].dep = &u->unit->dep;
    }
    g->is_sealed = true;
    return HEDDLE_OK;
}

void heddle_graph_unref(heddle_graph *g)
{
    const struct heddle_allocator *a;
    struct heddle_allocator alloc;

    if (g == NULL || heddle_sub_acqrel(&g->refs, 1u) != 1)
        return;
    if (g->obj.ctx != NULL && g->obj.ctx->dev != NULL)
        heddle_region_forget(g->obj.ctx, g->serial);
    heddle_object_remove(&g->obj);
    alloc = g->obj.alloc;
    a = &alloc;
    while (g->free != NULL) {
        struct graph_run *r = g->free;

        g->free = r->next;
        heddle_run_free(r);
    }
    while (g->list != NULL) {
        struct graph_unit *u = g->list;

        g->list = u->next;
        heddle_unit_unref(u->unit);
        heddle_free(a, u->reader, u->cap * sizeof(*u->reader));
        heddle_free(a, u, sizeof(*u));
    }
    heddle_map_fini(&g->units);
    heddle_free(a, g->task, g->task_cap * sizeof(*g->task));
    heddle_free(a, g->cold, g->cold_cap * sizeof(*g->cold));
    heddle_free(a, g->rec, g->op_cap * sizeof(*g->rec));
    heddle_free(a, g->op, (g->nops + 1) * sizeof(*g->op));
    heddle_free(a, g->mode, (g->nops + 1) * sizeof(*g->mode));
    heddle_free(a, g->arg, g->arg_cap);
    heddle_free(a, g->edge, g->edge_cap * sizeof(*g->edge));
    heddle_free(a, g->succ, (g->nedges + 1) * sizeof(*g->succ));
    heddle_free(a, g->acc, (g->nunits + (size_t)1) * sizeof(*g->acc));
    heddle_free(a, g, sizeof(*g));
}

/* --- for those who make one graph of another -------------------------------- */

void heddle_graph_set_watch(heddle_graph *g, const struct heddle_graph_watch *watch)
{
    HEDDLE_ASSERT(g->ntasks == 0);
    g->watch = *watch;
}

heddle_ctx *heddle_graph_ctx(const heddle_graph *g, bool *is_sealed_out, bool *has_devices_out)
{
    *is_sealed_out = g->is_sealed;
    *has_devices_out = g->obj.ctx != NULL && g->obj.ctx->dev != NULL;
    return g->obj.ctx;
}

void heddle_graph_get_task(const heddle_graph *g, size_t task, struct heddle_graph_task *out)
{
    const struct graph_task *t = &g->task[task];
    const struct graph_cold *cold = &g->cold[task];

    *out = (struct heddle_graph_task){.kernel = t->kinfo->given,
                                      .operands = g->op + t->op,
                                      .modes = g->mode + t->op,
                                      .noperands = t->info & GRAPH_NOPS,
                                      .has_modes = (t->info & GRAPH_MODES) != 0,
                                      .arg = g->arg + (size_t)t->arg * 16,
                                      .arg_bytes = cold->arg_bytes,
                                      .priority = cold->prio,
                                      .opts = {.size = sizeof(struct heddle_task_opts),
                                               .name = cold->name,
                                               .variant = cold->variant}};
}

void heddle_graph_get_edge(const heddle_graph *g, size_t edge, uint32_t *pred_out,
                           uint32_t *succ_out)
{
    *pred_out = g->edge[edge].pred;
    *succ_out = g->edge[edge].succ;
}

size_t heddle_graph_get_ntasks(const heddle_graph *g)
{
    return g == NULL ? 0 : g->ntasks;
}

size_t heddle_graph_get_nedges(const heddle_graph *g)
{
    return g == NULL ? 0 : g->nedges;
}
