/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev: the beginning and the end of the devices of a context, and facts about them.
 *
 * Structure  start: workers, lanes, memories, when the models are there (open.c has
 *            found the devices before).
 * Threads    creation and end of the context; what mem calls: the device thread, but where a
 *            function says otherwise.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/map.h"
#include "base/sized.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/log.h"
#include "core/dev/lose.h"
#include "core/dev/region.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/error.h"
#include "core/kinfo.h"
#include "core/worker.h"
#include "data/data.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "mem/mem.h"
#include "perf/perf.h"
#include "plat/plat.h"
#include "sched/sched.h"
#include "trace/trace.h"

uint64_t heddle_dev_now_ns(void *user)
{
    const struct heddle_devs *d = user;

    return d->time->now_ns(d);
}

void heddle_dev_kick(void *user)
{
    struct heddle_devs *d = user;

    d->time->kick(d);
}

static heddle_status dev_start_workers(struct heddle_devs *d)
{
    heddle_ctx *ctx = d->ctx;
    unsigned n = 0;

    d->worker = heddle_zalloc(&ctx->alloc, d->nsched, sizeof(*d->worker));
    if (d->worker == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned c = 0; c < d->ncls; c++) {
        struct dev_class *cls = &d->cls[c];

        for (unsigned i = 0; i < cls->nworkers && cls->dev != NULL; i++) {
            d->worker[n] = (struct dev_worker){
                .id = cls->first + i,
                .cls = c,
                .stream = i,
                .shown = UINT8_MAX, /* nothing yet */
                .lane = heddle_trace_get_lane(ctx->trace, heddle_dev_lane(ctx, n))};
            n++;
        }
    }
    d->nworkers = n;
    return HEDDLE_OK;
}

static double dev_link_ns(void *user, unsigned from, unsigned to, uint64_t bytes)
{
    struct heddle_devs *d = user;

    return d->time->copy_ns(d, from, to, bytes);
}

static void dev_lose_node(struct heddle_devs *d, unsigned node)
{
    for (unsigned c = 0; c < d->ncls; c++)
        if (d->cls[c].node == node && d->cls[c].dev != NULL)
            heddle_dev_lose(d, c);
}

/* A transfer ended: the log, and the model of the link. */
static void dev_moved(void *user, const struct heddle_mem_move *m, heddle_status st)
{
    struct heddle_devs *d = user;
    struct heddle_perf_link *link = d->link[m->from][m->to];
    const uint64_t ns = m->op->end_ns - m->op->begin_ns;

    if (heddle_load_acq(&d->is_stopped) != 0)
        return;
    if (st == HEDDLE_EDEV)
        dev_lose_node(d, m->from != 0 ? m->from : m->to);
    if (st != HEDDLE_OK)
        return;
    if (link != NULL && m->op->end_ns != 0 && ns > 0 && !m->op->is_rough)
        heddle_perf_link_record(link, m->bytes, (double)ns);
    if (d->counts_joules)
        heddle_dev_energy_moved(d, m->from, m->to, m->bytes);
    heddle_dev_log_moved(d, m);
}

static void dev_used(void *user, unsigned node, int64_t delta, uint64_t used, uint32_t unit,
                     uint64_t task)
{
    heddle_dev_log_used(user, node, delta < 0, used, unit, task);
}

static void dev_admitted(void *user, struct heddle_mem_req *req)
{
    (void)user;
    heddle_dev_log_wait(dev_task_of(req), DEV_WAIT_DATA);
}

static void dev_lost_unit(void *user, heddle_handle *unit, unsigned node)
{
    struct heddle_devs *d = user;
    char buf[64];

    (void)node;
    if (heddle_add_acqrel(&d->lost_units, 1u) == 0)
        snprintf(d->lost_name, sizeof(d->lost_name), "%s",
                 heddle_unit_name(unit, buf, sizeof(buf)));
}

static double dev_order(void *user, const void *tag, uint64_t *nodes_out)
{
    const struct heddle_devs *d = user;
    const heddle_ctx *ctx = d->ctx;
    uint64_t nodes = 0;
    double order;
    int type = -1;

    if (ctx->sched->order == NULL)
        return (double)NAN;
    order = ctx->sched->order(ctx->sched_self, tag, &type);
    for (unsigned c = 0; c < d->ncls && type >= 0; c++)
        if (d->cls[c].type == (unsigned)type)
            nodes |= UINT64_C(1) << d->cls[c].node;
    if (type >= 0)
        *nodes_out = nodes;
    return order;
}

static void dev_forget(void *owner, heddle_handle *h)
{
    heddle_ctx *ctx = owner;

    if (ctx->mem != NULL)
        heddle_mem_forget(ctx->mem, h);
}

static const char *dev_node_model(struct heddle_devs *d, unsigned node)
{
    for (unsigned c = 0; c < d->ncls; c++)
        if (d->cls[c].node == node && d->cls[c].dev != NULL)
            return d->cls[c].model;
    return d->node_name[node];
}

static void dev_start_links(struct heddle_devs *d)
{
    for (unsigned a = 0; a < d->nnodes && d->ctx->perf != NULL; a++)
        for (unsigned b = 0; b < d->nnodes; b++)
            if (a != b && (a == 0 || b == 0) &&
                heddle_perf_link_get(d->ctx->perf, dev_node_model(d, a), dev_node_model(d, b),
                                     &d->link[a][b]) != HEDDLE_OK)
                d->link[a][b] = NULL; /* costs time only */
}

heddle_status heddle_dev_start(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;
    struct heddle_mem_opts o = {
        .alloc = &ctx->alloc,
        .reg = &ctx->reg,
        .node = d->node,
        .nnodes = d->nnodes,
        .is_fake = !d->executes,
        .host = {.user = d,
                 .link_ns = dev_link_ns,
                 .moved = dev_moved,
                 .now_ns = heddle_dev_now_ns,
                 .used = dev_used,
                 .admitted = dev_admitted,
                 .lost = dev_lost_unit,
                 .order = dev_order,
                 .kick = heddle_dev_kick,
                 .fault_copy = d->nfaults != 0 ? heddle_dev_fault_copy : NULL,
                 .fault_alloc = d->nfaults != 0 ? heddle_dev_fault_alloc : NULL},
    };

    HEDDLE_TRY(dev_start_workers(d));
    heddle_region_init(d);
    dev_start_links(d);
    heddle_dev_log_define(d);
    heddle_dev_log_links(d);
    if (d->counts_joules)
        heddle_dev_energy_define(d);
    HEDDLE_TRY(heddle_mem_create(&o, &ctx->mem));
    ctx->reg.forget = dev_forget;
    return d->time->start(d);
}

void heddle_dev_stop(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;

    if (d == NULL)
        return;
    d->time->stop(d);
    heddle_store_rel(&d->is_stopped, 1u);
}

static void tasks_free(const struct heddle_allocator *a, struct dev_task *dt)
{
    for (struct dev_task *next; dt != NULL; dt = next) {
        next = dt->next;
        heddle_free(a, dt, sizeof(*dt));
    }
}

void heddle_dev_close(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;
    const struct heddle_allocator *a = &ctx->alloc;

    if (d == NULL)
        return;
    for (struct heddle_kinfo *k = ctx->kernels; k != NULL; k = k->next)
        heddle_dev_free_shapes(d, k);
    heddle_mem_destroy(ctx->mem);
    ctx->mem = NULL;
    ctx->reg.forget = NULL;
    tasks_free(a, d->free);
    tasks_free(a, d->spare);
    heddle_region_fini(d);
    for (unsigned i = 0; i < d->ncls; i++)
        if (d->cls[i].dev != NULL)
            d->cls[i].drv->close(d->cls[i].dev);
    if (d->disk != NULL)
        heddle_dev_base(d->disk)->driver->close(d->disk);
    heddle_dev_energy_close(d);
    heddle_sim_destroy(d->sim);
    heddle_plat_destroy(d->plat);
    heddle_map_fini(&d->notes);
    heddle_map_fini(&d->cost.since);
    heddle_ahead_fini(&d->ahead);
    heddle_free(a, d->fault, d->fault_cap * sizeof(*d->fault));
    heddle_free(a, d->class_of, d->nsched * sizeof(*d->class_of));
    heddle_free(a, d->worker, d->nsched * sizeof(*d->worker));
    heddle_free(a, d, sizeof(*d));
    ctx->dev = NULL;
}

/* --- facts --------------------------------------------------------------------- */

heddle_status heddle_ctx_get_memory(heddle_ctx *ctx, unsigned i, struct heddle_memory_info *out)
{
    struct heddle_memory_info m = {.size = sizeof(m), .budget = UINT64_MAX};
    struct heddle_mem_stats s = {0};

    HEDDLE_CHECK(ctx != NULL);
    HEDDLE_TRY(HEDDLE_MAY_FILL(ctx, struct heddle_memory_info, out));
    if (i >= (ctx->dev != NULL ? ctx->dev->nnodes : 1))
        return HEDDLE_ENOENT;
    if (ctx->dev == NULL) {
        snprintf(m.name, sizeof(m.name), "host");
        m.used = heddle_load_rlx(&ctx->reg.used); /* counters */
        m.peak = heddle_load_rlx(&ctx->reg.peak);
        if (ctx->reg.budget != 0)
            m.budget = ctx->reg.budget;
        heddle_sized_put(out, &m, sizeof(m));
        return HEDDLE_OK;
    }
    heddle_mem_get_stats(ctx->mem, i, &s);
    snprintf(m.name, sizeof(m.name), "%s", ctx->dev->node_name[i]);
    m.budget = s.budget;
    m.used = s.used;
    m.peak = s.peak;
    for (unsigned r = 0; r < HEDDLE_MEM_NREASONS; r++)
        m.bytes_in += s.bytes_in[r];
    m.bytes_out = s.bytes_out;
    m.bytes_written_back = s.bytes_in[HEDDLE_MEM_WRITEBACK] + s.bytes_in[HEDDLE_MEM_EVICT];
    m.evictions = s.evictions;
    heddle_sized_put(out, &m, sizeof(m));
    return HEDDLE_OK;
}

heddle_status heddle_ctx_get_class(heddle_ctx *ctx, unsigned i, struct heddle_class_info *out)
{
    struct heddle_class_info c = {.size = sizeof(c)};
    const struct dev_class *cls;

    HEDDLE_CHECK(ctx != NULL);
    HEDDLE_TRY(HEDDLE_MAY_FILL(ctx, struct heddle_class_info, out));
    if (i >= (ctx->dev != NULL ? ctx->dev->ncls : 1))
        return HEDDLE_ENOENT;
    snprintf(c.name, sizeof(c.name), "cpu");
    snprintf(c.kind, sizeof(c.kind), "cpu");
    snprintf(c.model, sizeof(c.model), "%s", ctx->device);
    c.nworkers = ctx->nworkers;
    if (ctx->dev != NULL) {
        cls = &ctx->dev->cls[i];
        snprintf(c.name, sizeof(c.name), "%s", cls->name);
        snprintf(c.model, sizeof(c.model), "%s", cls->model);
        snprintf(c.kind, sizeof(c.kind), "%s", heddle_device_name(cls->kind));
        c.memory = cls->node;
        c.nworkers = cls->nworkers;
        c.is_lost = heddle_load_acq(&cls->is_lost) != 0;
    }
    heddle_sized_put(out, &c, sizeof(c));
    return HEDDLE_OK;
}
