/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/region_graph: the graphs that devices have made of recorded regions. A graph is kept,
 * and brought up to date before its next run.
 *
 * Invariant  a graph is used by one run at a time
 * Threads    heddle_region_forget(): any. The rest: the device thread. `lock` guards the list.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/spin.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/estimate.h"
#include "core/dev/launch.h"
#include "core/dev/region.h"
#include "core/dev/region_graph.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/graph/graph.h"
#include "core/graph/node.h"
#include "drive/drive.h"
#include "mem/mem.h"

enum { REGION_KEPT = 4 }; /* graphs of one region on one device */

static void graph_free(struct heddle_devs *d, struct dev_graph *m)
{
    const struct heddle_allocator *a = &d->ctx->alloc;
    struct dev_class *c = &d->cls[m->cls];

    if (m->graph != NULL)
        c->drv->region_free(c->dev, m->graph);
    heddle_free(a, m->op, (m->nptr + (size_t)1) * sizeof(*m->op));
    heddle_free(a, m->arg, m->arg_bytes + 1);
    heddle_free(a, m, sizeof(*m));
}

static bool op_is_there(const struct dev_graph *m, const struct region_run *rr, uint32_t i)
{
    return m->op[i].ptr == heddle_mem_ptr(&rr->dt.req, i) &&
           m->op[i].unit == rr->dt.req.op[i].unit->id;
}

/* Are the operands where they were? */
static bool graph_is_there(const struct dev_graph *m, const struct region_run *rr)
{
    for (uint32_t i = 0; i < m->nptr; i++)
        if (!op_is_there(m, rr, i))
            return false;
    return m->graph != NULL;
}

bool heddle_region_graph_is_same(const struct dev_graph *m, const struct region_run *rr)
{
    return graph_is_there(m, rr) && memcmp(m->arg, rr->run->arg, m->arg_bytes) == 0;
}

static struct dev_graph *graph_new(struct heddle_devs *d, const struct region_run *rr)
{
    const struct heddle_allocator *a = &d->ctx->alloc;
    const heddle_graph *g = rr->run->graph;
    struct dev_graph *m = heddle_zalloc(a, 1, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->serial = g->serial;
    m->cls = rr->dt.worker->cls;
    m->nptr = g->nunits;
    m->arg_bytes = g->arg_bytes;
    m->op = heddle_zalloc(a, m->nptr + (size_t)1, sizeof(*m->op));
    m->arg = heddle_alloc(a, m->arg_bytes + 1);
    if (m->op == NULL || m->arg == NULL) {
        heddle_free(a, m->op, (m->nptr + (size_t)1) * sizeof(*m->op));
        heddle_free(a, m->arg, m->arg_bytes + 1);
        heddle_free(a, m, sizeof(*m));
        return NULL;
    }
    heddle_spin_lock(&d->region.lock);
    m->next = d->region.made;
    d->region.made = m;
    heddle_spin_unlock(&d->region.lock);
    return m;
}

/* One that is the same; else one whose operands are where they were, which is
 * quickly brought up to date; else a new one, as long as there are not many. */
struct dev_graph *heddle_region_graph_find(struct heddle_devs *d, const struct region_run *rr)
{
    struct dev_graph *near = NULL, *other = NULL;
    unsigned n = 0;

    for (struct dev_graph *m = d->region.made; m != NULL; m = m->next) {
        if (m->serial != rr->run->graph->serial || m->cls != rr->dt.worker->cls)
            continue;
        n++;
        if (m->is_busy)
            continue;
        if (heddle_region_graph_is_same(m, rr))
            return m;
        other = m;
        if (graph_is_there(m, rr))
            near = m;
    }
    if (near != NULL)
        return near;
    return n >= REGION_KEPT && other != NULL ? other : graph_new(d, rr);
}

static heddle_status region_put(void *user, unsigned i)
{
    struct region_run *rr = user;
    struct dev_task *dt = &rr->dt;
    struct heddle_devs *d = dt->ctx->dev;
    const heddle_graph *g = rr->run->graph;
    const struct graph_op *rec = &g->rec[g->task[i].op];
    unsigned variant = 0;
    double sure;

    heddle_node_exec(d->ctx->driver, &rr->run->node[i].sched, &dt->x, &dt->own_ext);
    memset(&dt->s, 0, offsetof(struct exec_slow, message) + 1);
    dt->s.name = dt->own_ext.name;
    dt->s.dev = dt;
    dt->x.slow = &dt->s;
    if (isinf(heddle_dev_cost(d, &dt->x, &dt->own_ext, dt->worker->cls, &variant, &sure)))
        return HEDDLE_EDECLINED;
    dt->s.variant = variant;
    for (unsigned k = 0; k < dt->x.nops; k++) {
        dt->at[k] = (int16_t)rec[k].index;
        dt->s.ptr[k] = heddle_mem_ptr(&dt->req, rec[k].index);
    }
    return heddle_dev_call(&dt->x);
}

/* Predecessors by task: what is kept is successors. */
static heddle_status graph_edges(struct heddle_devs *d, const heddle_graph *g, uint32_t **first_out)
{
    uint32_t *first, *pred;

    first = heddle_zalloc(&d->ctx->alloc, g->ntasks + 2 + g->nedges, sizeof(*first));
    if (first == NULL)
        return HEDDLE_ENOMEM;
    pred = first + g->ntasks + 2;
    for (size_t i = 0; i < g->ntasks; i++)
        first[i + 2] = first[i + 1] + (uint32_t)g->task[i].ndeps;
    for (size_t i = 0; i < g->ntasks; i++)
        for (uint32_t k = 0; k < g->task[i].nsucc; k++)
            pred[first[g->succ[g->task[i].succ + k] + 1]++] = (uint32_t)i;
    *first_out = first; /* each entry has moved on by one */
    return HEDDLE_OK;
}

/* A bit for each task whose operands have moved or whose argument is another. */
static uint64_t *graph_changes(struct heddle_devs *d, const struct region_run *rr)
{
    const struct dev_graph *m = rr->made;
    const heddle_graph *g = rr->run->graph;
    uint64_t *bit;

    if (m->graph == NULL)
        return NULL;
    bit = heddle_zalloc(&d->ctx->alloc, g->ntasks / 64 + 1, sizeof(*bit));
    for (size_t i = 0; i < g->ntasks && bit != NULL; i++) {
        const struct graph_task *t = &g->task[i];
        const size_t arg = (size_t)t->arg * 16;
        bool is_same = memcmp(m->arg + arg, rr->run->arg + arg, g->cold[i].arg_bytes) == 0;

        for (uint32_t k = 0; k < (t->info & GRAPH_NOPS) && is_same; k++) {
            const uint32_t a = g->rec[t->op + k].index;

            is_same = op_is_there(m, rr, a);
        }
        if (!is_same)
            bit[i / 64] |= UINT64_C(1) << (i % 64);
    }
    return bit;
}

heddle_status heddle_region_graph_make(struct heddle_devs *d, struct region_run *rr)
{
    struct dev_graph *m = rr->made;
    struct dev_class *c = &d->cls[m->cls];
    const heddle_graph *g = rr->run->graph;
    struct heddle_region region = {.n = (unsigned)g->ntasks, .put = region_put, .user = rr};
    heddle_status st;
    uint32_t *first;

    uint64_t *changed;

    HEDDLE_TRY(graph_edges(d, g, &first));
    changed = graph_changes(d, rr);
    region.changed = changed;
    region.first = first;
    region.pred = first + g->ntasks + 2;
    st = c->drv->region(c->dev, &region, rr->dt.on->stream, &m->graph);
    heddle_free(&d->ctx->alloc, first, (g->ntasks + 2 + g->nedges) * sizeof(*first));
    heddle_free(&d->ctx->alloc, changed, (g->ntasks / 64 + 1) * sizeof(*changed));
    if (st != HEDDLE_OK)
        return st;
    for (uint32_t i = 0; i < m->nptr; i++)
        m->op[i] = (struct made_op){.ptr = heddle_mem_ptr(&rr->dt.req, i),
                                    .unit = rr->dt.req.op[i].unit->id};
    memcpy(m->arg, rr->run->arg, m->arg_bytes);
    return HEDDLE_OK;
}

/* Graphs whose regions are gone. */
void heddle_region_graphs_sweep(struct heddle_devs *d)
{
    struct dev_graph **at = &d->region.made, *m, *dead = NULL;

    heddle_spin_lock(&d->region.lock);
    heddle_store_rlx(&d->region.has_dead, 0u);
    while ((m = *at) != NULL) {
        if (!m->is_dead || m->is_busy) {
            if (m->is_dead)
                heddle_store_rlx(&d->region.has_dead, 1u);
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = dead;
        dead = m;
    }
    heddle_spin_unlock(&d->region.lock);
    while (dead != NULL) {
        m = dead;
        dead = m->next;
        graph_free(d, m);
    }
}

void heddle_region_forget(heddle_ctx *ctx, uint64_t serial)
{
    struct heddle_devs *d = ctx->dev;

    if (d == NULL || !d->has_regions)
        return;
    heddle_spin_lock(&d->region.lock);
    for (struct dev_graph *m = d->region.made; m != NULL; m = m->next)
        if (m->serial == serial) {
            m->is_dead = true;
            heddle_store_rlx(&d->region.has_dead, 1u);
        }
    heddle_spin_unlock(&d->region.lock);
}

void heddle_region_fini(struct heddle_devs *d)
{
    while (d->region.made != NULL) {
        struct dev_graph *m = d->region.made;

        d->region.made = m->next;
        graph_free(d, m);
    }
}
