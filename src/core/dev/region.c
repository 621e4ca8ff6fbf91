/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/region: a recorded region as one operation of a device.
 *
 * Purpose    a region of small kernels costs the host one launch instead of one for
 *            each: where all its tasks can run on one device, and the driver can
 *            replay (CUDA graphs), the whole run goes there.
 * Structure  The engine offers each run of a region here when it starts. If all its
 *            tasks can run on one device, the run becomes one request for all operands
 *            together. When the operands are there, the driver makes a graph of the
 *            launches, or takes one made before: unchanged when no launch has changed,
 *            else brought up to date. When something goes wrong before the replay has
 *            ended well, the run is repeated node by node, as if this file did not
 *            exist: so each failure is reported by the node it belongs to.
 * Invariants (1) a graph is used by one run at a time
 *            (2) data that a run wrote are not valid before heddle_mem_end()
 * Threads    heddle_region_offer(): any thread. The other functions: the device thread.
 *            `lock` guards the two lists.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/estimate.h"
#include "core/dev/lose.h"
#include "core/dev/queue.h"
#include "core/dev/region.h"
#include "core/dev/region_graph.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/graph/graph.h"
#include "core/graph/node.h"
#include "core/group.h"
#include "core/kinfo.h"
#include "core/worker.h"
#include "data/data.h"
#include "drive/drive.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "trace/trace.h"

enum {
    REGION_UNITS = 4096, /* most operands of a region */
    REGION_EVERY = 64,   /* launches between looks at the costs */
    REGION_NS = 3000,    /* a small kernel of unknown length */
    REGION_TRIES = 3,    /* that fail, before it is left alone for a while */
    REGION_NONE = 1,     /* graph.region: as nodes; 2 + class: there */
};

/* --- which regions ---------------------------------------------------------------- */

/* Units that overlap have copies of their own on a device: such regions do not go
 * there as a whole. */
static bool region_is_apart(const heddle_graph *g)
{
    for (uint32_t i = 1; i < g->nunits; i++)
        for (uint32_t k = 0; k < i; k++)
            if (g->acc[k].unit->root == g->acc[i].unit->root &&
                heddle_box_overlap(&g->acc[k].unit->box, &g->acc[i].unit->box,
                                   g->acc[i].unit->root->layout.ndim))
                return false;
    return true;
}

static bool region_is_plain(const heddle_graph *g)
{
    if (g->ntasks < 2 || g->ntasks > UINT32_MAX / 2 || g->nunits > REGION_UNITS)
        return false;
    for (size_t i = 0; i < g->nops; i++)
        if (!heddle_mode_is_plain(g->rec[i].mode))
            return false;
    for (size_t i = 0; i < g->ntasks; i++) {
        const heddle_kernel *k = g->task[i].kinfo->kernel;

        if (k->expand != NULL)
            return false;
        for (unsigned v = 0; v < g->task[i].kinfo->nvariants; v++)
            if (k->variants[v].device != HEDDLE_DEV_CPU && k->variants[v].scratch_bytes != 0)
                return false;
    }
    return region_is_apart(g);
}

/* ns of all its tasks on a class, INFINITY: not there. */
static double region_cost(struct worker *w, struct graph_run *r, unsigned cls, double unknown)
{
    struct heddle_devs *d = w->ctx->dev;
    double ns = 0;

    for (size_t i = 0; i < r->graph->ntasks; i++) {
        struct heddle_exec x;
        struct task_ext ext;
        unsigned variant;
        double sure, one;

        heddle_node_exec(w, &r->node[i].sched, &x, &ext);
        one = heddle_dev_cost(d, &x, &ext, cls, &variant, &sure);
        ns += isnan(one) ? unknown : one;
    }
    return ns;
}

static bool region_fits(struct heddle_devs *d, const heddle_graph *g, unsigned cls)
{
    uint64_t need = 0;

    for (uint32_t i = 0; i < g->nunits; i++)
        need += heddle_mem_copy_bytes(g->acc[i].unit);
    return need <= d->node[d->cls[cls].node].budget;
}

static int32_t region_decide(struct worker *w, struct graph_run *r)
{
    struct heddle_devs *d = w->ctx->dev;
    const heddle_graph *g = r->graph;
    double best = INFINITY, cores;
    int32_t where = REGION_NONE;

    if (!region_is_plain(g))
        return REGION_NONE;
    for (unsigned c = 0; c < d->ncls; c++) {
        double ns;

        if (d->cls[c].dev == NULL || d->cls[c].drv->region == NULL ||
            heddle_load_acq(&d->cls[c].is_lost) != 0 || !region_fits(d, g, c))
            continue;
        ns = region_cost(w, r, c, REGION_NS);
        if (ns < best) {
            best = ns;
            where = (int32_t)c + 2;
        }
    }
    if (where == REGION_NONE)
        return where;
    /* Unknown on cores: the device it is. */
    cores = region_cost(w, r, 0, INFINITY) / w->ctx->nworkers;
    return cores < best ? REGION_NONE : where;
}

/* The class for this launch, or -1. */
static int region_class(struct worker *w, struct graph_run *r)
{
    heddle_graph *g = r->graph;
    /* Relaxed: a cache; two launches may decide twice. */
    const uint32_t age = heddle_add_rlx(&g->region_age, 1u);
    int32_t where = heddle_load_rlx(&g->region);

    if (where == 0 || age % REGION_EVERY == REGION_EVERY - 1) {
        where = region_decide(w, r);
        heddle_store_rlx(&g->region, where);
    }
    if (where < 2 || heddle_load_acq(&w->ctx->dev->cls[where - 2].is_lost) != 0)
        return -1;
    return where - 2;
}

/* --- a run ------------------------------------------------------------------------ */

static struct region_run *region_new(heddle_ctx *ctx, struct graph_run *r)
{
    const heddle_graph *g = r->graph;
    struct region_run *rr = heddle_zalloc(&ctx->alloc, 1, sizeof(*rr));

    if (rr == NULL)
        return NULL;
    rr->dt.more = heddle_zalloc(&ctx->alloc, g->nunits + (size_t)1, sizeof(*rr->dt.more));
    if (rr->dt.more == NULL) {
        heddle_free(&ctx->alloc, rr, sizeof(*rr));
        return NULL;
    }
    rr->run = r;
    rr->dt.ctx = ctx;
    rr->dt.req.op = rr->dt.more;
    rr->dt.req.nops = g->nunits;
    rr->dt.req.stays = true;
    for (size_t i = 0; i < g->nops; i++)
        rr->dt.more[g->rec[i].index] =
            (struct heddle_mem_op){.unit = r->op[i], .mode = g->acc[g->rec[i].index].mode};
    return rr;
}

static void region_free(struct region_run *rr)
{
    heddle_ctx *ctx = rr->dt.ctx;

    heddle_free(&ctx->alloc, rr->dt.more, (rr->dt.req.nops + (size_t)1) * sizeof(*rr->dt.more));
    heddle_free(&ctx->alloc, rr, sizeof(*rr));
}

/* The scheduler hears of all nodes before the first of them is pushed. */
static void region_announce(heddle_ctx *ctx, struct graph_run *r)
{
    const heddle_graph *g = r->graph;

    for (size_t i = 0; i < g->ntasks; i++)
        heddle_dev_announce(ctx, &r->node[i].sched, g->task[i].ndeps == 0);
}

static bool region_take_on(struct worker *w, struct graph_run *r)
{
    heddle_ctx *ctx = w->ctx;
    struct heddle_devs *d = ctx->dev;
    struct region_run *rr;
    int cls;

    if (!d->has_regions || heddle_load_rlx(&ctx->reg.nmarks) != 0 ||
        heddle_load_rlx(&ctx->is_cancelled) != 0 ||
        (r->group != NULL && heddle_load_acq(&r->group->is_cancelled) != 0))
        return false;
    cls = region_class(w, r);
    if (cls < 0)
        return false;
    rr = region_new(ctx, r);
    if (rr == NULL)
        return false;
    rr->dt.req.node = d->cls[cls].node;
    heddle_spin_lock(&d->region.lock);
    for (unsigned i = 0; i < d->nworkers; i++)
        if (d->worker[i].cls == (unsigned)cls)
            rr->dt.worker = &d->worker[i];
    rr->next = NULL;
    if (d->region.last == NULL)
        d->region.first = rr;
    else
        d->region.last->next = rr;
    d->region.last = rr;
    heddle_spin_unlock(&d->region.lock);
    heddle_add_acqrel(&d->nregions, 1u);
    heddle_dev_kick(d);
    return true;
}

bool heddle_region_offer(struct worker *w, struct graph_run *r)
{
    if (region_take_on(w, r))
        return true;
    region_announce(w->ctx, r);
    return false;
}

static void region_leave(struct region_run *rr)
{
    heddle_sub_acqrel(&rr->dt.ctx->dev->nregions, 1u);
    region_free(rr);
}

/* As nodes, one by one. */
static void region_back(struct region_run *rr)
{
    struct worker *w = rr->dt.ctx->driver;
    struct graph_run *r = rr->run;

    region_leave(rr);
    region_announce(w->ctx, r);
    heddle_engine_push(w, heddle_run_nodes(w, r));
}

/* It was not possible; perhaps because a library was called for the first time.
 * Tried again now and then. */
static void region_refused(struct region_run *rr)
{
    heddle_graph *g = rr->run->graph;

    if (heddle_add_rlx(&g->region_fails, 1u) >= REGION_TRIES)
        heddle_store_rlx(&g->region, REGION_NONE); /* a cache */
    region_back(rr);
}

/* --- the way of a run --------------------------------------------------------------- */

static void region_trace(struct region_run *rr)
{
    struct dev_task *dt = &rr->dt;
    heddle_ctx *ctx = dt->ctx;
    struct heddle_trace_lane *lane = dt->on->lane;
    uint64_t begin = dt->op.begin_ns, end = dt->op.end_ns;
    struct heddle_kinfo *k;

    if (!heddle_trace_is_on(lane, HEDDLE_TRACE_TASK) ||
        heddle_kinfo_get(ctx, &heddle_launch_kernel, &k) != HEDDLE_OK)
        return;
    if (end == 0)
        begin = end = heddle_dev_now_ns(ctx->dev);
    heddle_trace_task(lane, rr->run->first_id, k->id, 0,
                      (uint8_t)(HEDDLE_LOG_OK | HEDDLE_LOG_REPLAYED),
                      heddle_clock_to_ticks(&ctx->dev->clock, begin),
                      heddle_clock_to_ticks(&ctx->dev->clock, end), 0);
}

static void region_done(struct heddle_op *op, heddle_status st)
{
    struct region_run *rr = (struct region_run *)(void *)op;
    struct dev_task *dt = &rr->dt;
    struct heddle_devs *d = dt->ctx->dev;
    struct worker *w = d->ctx->driver;
    struct graph_run *r = rr->run;
    struct heddle_sched_task *next;

    dt->on->nlaunched--;
    rr->made->is_busy = false;
    if (heddle_load_rlx(&d->cls[dt->worker->cls].is_lost) != 0)
        st = HEDDLE_EDEV;
    if (st == HEDDLE_EDEV)
        heddle_dev_lose(d, dt->worker->cls);
    heddle_mem_end(d->ctx->mem, &dt->req, st);
    for (unsigned i = 0; i < dt->req.nops; i++) /* not what it was, nor should be */
        if (st != HEDDLE_OK && st != HEDDLE_EDEV && heddle_mode_writes(dt->req.op[i].mode))
            heddle_unit_mark(dt->req.op[i].unit, st);
    if (st != HEDDLE_OK) {
        region_refused(rr);
        return;
    }
    heddle_store_rlx(&w->executed, heddle_load_rlx(&w->executed) + r->graph->ntasks);
    region_trace(rr);
    region_leave(rr);
    next = heddle_run_end(w, r);
    if (next != NULL)
        heddle_engine_push(w, next);
}

static void region_ready(struct heddle_mem_req *req, heddle_status st)
{
    struct dev_task *dt = dev_task_of(req);
    struct region_run *rr = (struct region_run *)(void *)dt;
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_class *c = &d->cls[dt->worker->cls];

    if (st != HEDDLE_OK) {
        region_back(rr);
        return;
    }
    dt->is_settled = false;
    st = heddle_dev_fault_launch(d, dt->worker->cls);
    rr->made = st == HEDDLE_OK ? heddle_region_graph_find(d, rr) : NULL;
    if (st == HEDDLE_OK && rr->made == NULL)
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK && !heddle_region_graph_is_same(rr->made, rr))
        st = heddle_region_graph_make(d, rr);
    if (st == HEDDLE_OK) {
        dt->op = (struct heddle_op){.done = region_done};
        rr->made->is_busy = true;
        dt->on->nlaunched++;
        st = c->drv->replay(c->dev, rr->made->graph, dt->on->stream, &dt->op);
        if (st == HEDDLE_OK)
            return;
        dt->on->nlaunched--;
    }
    if (rr->made != NULL)
        rr->made->is_busy = false;
    /* First, so that it sees whose only copy goes. */
    if (st == HEDDLE_EDEV)
        heddle_dev_lose(d, dt->worker->cls);
    heddle_mem_end(d->ctx->mem, req, HEDDLE_EDECLINED); /* nothing was touched */
    region_refused(rr);
}

static void region_begin(struct heddle_devs *d, struct region_run *rr)
{
    struct dev_task *dt = &rr->dt;
    const struct dev_class *c = &d->cls[dt->worker->cls];

    /* Regions that do not depend on each other run beside each other. */
    dt->on = dt->worker - (d->region.turn++ % c->nworkers);
    dt->req.ready = region_ready;
    dt->is_settled = true;
    if (heddle_mem_begin(d->ctx->mem, &dt->req))
        region_ready(&dt->req, HEDDLE_OK);
}

static struct region_run *region_take(struct heddle_devs *d)
{
    struct region_run *rr;

    heddle_spin_lock(&d->region.lock);
    rr = d->region.first;
    if (rr != NULL)
        d->region.first = rr->next;
    if (d->region.first == NULL)
        d->region.last = NULL;
    heddle_spin_unlock(&d->region.lock);
    return rr;
}

bool heddle_region_step(struct heddle_devs *d)
{
    struct region_run *rr;
    bool did = false;

    if (!d->has_regions)
        return false;
    while ((rr = region_take(d)) != NULL) {
        region_begin(d, rr);
        did = true;
    }
    if (heddle_load_rlx(&d->region.has_dead) != 0)
        heddle_region_graphs_sweep(d);
    return did;
}

void heddle_region_init(struct heddle_devs *d)
{
    for (unsigned c = 0; c < d->ncls; c++)
        d->has_regions = d->has_regions || (d->cls[c].dev != NULL && d->cls[c].drv->region != NULL);
}
