/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/log: what the log has about devices and memories.
 *
 * Structure  definitions at the start (links once more at the end, when they were
 *            measured); transfers and memory as they happen; what the lane of a
 *            stream waits for, each time the device thread has given its workers
 *            tasks: at that moment everything that could be started was started.
 * Invariants (1) a dev_task is counted in nroom, ndata or nlate of the worker whose
 *                stream it will use, or in none of the three, as dt->wait says
 *            (2) memory events are written under the lock of the registry; the lock
 *                of mem is taken under it, so that one lane has the events of all
 *                threads
 * Threads    the device thread, except where a function says otherwise.
 */
#include <math.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/log.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/kinfo.h"
#include "core/time.h"
#include "core/worker.h"
#include "mem/mem.h"
#include "trace/trace.h"

/* --- definitions ------------------------------------------------------------------ */

static void log_link(struct heddle_devs *d, unsigned a, unsigned b)
{
    struct heddle_trace_link l = {.from = a, .to = b};
    char name[72];

    snprintf(name, sizeof(name), "%s-%s", d->node_name[a], d->node_name[b]);
    l.name = name;
    if (d->time->find_link(d, a, b, &l))
        heddle_trace_define_link(d->ctx->trace, &l);
}

void heddle_dev_log_links(struct heddle_devs *d)
{
    for (unsigned a = 0; a < d->nnodes; a++)
        for (unsigned b = 0; b < d->nnodes; b++)
            if (a != b)
                log_link(d, a, b);
}

void heddle_dev_log_define(struct heddle_devs *d)
{
    heddle_ctx *ctx = d->ctx;
    char name[48], value[128];

    for (unsigned i = 0; i < d->nnodes; i++)
        heddle_trace_define_node(ctx->trace, i, (uint32_t)d->node[i].kind, d->node_name[i],
                                 d->node[i].budget == HEDDLE_MEM_NO_LIMIT ? 0 : d->node[i].budget);
    for (unsigned i = 0; i < d->nworkers; i++) {
        const struct dev_class *c = &d->cls[d->worker[i].cls];

        if (c->nworkers == 1)
            snprintf(name, sizeof(name), "%s", c->name);
        else
            snprintf(name, sizeof(name), "%s.%u", c->name, d->worker[i].stream);
        heddle_trace_define_lane(ctx->trace, heddle_dev_lane(ctx, i),
                                 c->kind == HEDDLE_DEV_CPU ? HEDDLE_LOG_WORKER : HEDDLE_LOG_DEVICE,
                                 name, -1, c->node);
    }
    for (unsigned i = 0; i < d->ncls; i++) {
        snprintf(name, sizeof(name), "class %s", d->cls[i].name);
        snprintf(value, sizeof(value), "%u %s %s", d->cls[i].nworkers,
                 heddle_device_name(d->cls[i].kind), d->cls[i].model);
        heddle_trace_define_info(ctx->trace, name, value);
    }
}

/* --- transfers and memory ---------------------------------------------------------- */

void heddle_dev_log_moved(struct heddle_devs *d, const struct heddle_mem_move *move)
{
    static const enum heddle_log_event_kind kind[] = {[HEDDLE_MEM_FETCH] = HEDDLE_LOG_FETCH,
                                                      [HEDDLE_MEM_PREFETCH] = HEDDLE_LOG_PREFETCH,
                                                      [HEDDLE_MEM_WRITEBACK] = HEDDLE_LOG_WRITEBACK,
                                                      [HEDDLE_MEM_EVICT] = HEDDLE_LOG_EVICT};
    struct heddle_trace_lane *lane = d->ctx->driver->lane;
    uint64_t asked = move->asked_ns, begin = move->begin_ns, end = move->op->end_ns;
    struct heddle_trace_event e = {.task = move->task,
                                   .x = move->bytes,
                                   .c = move->unit->id,
                                   .b = (uint16_t)(move->from | move->to << 8)};

    if (!heddle_trace_is_on(lane, HEDDLE_TRACE_DATA))
        return;
    if (end == 0) { /* the driver cannot tell: as far as we know */
        end = heddle_dev_now_ns(d);
        begin = asked;
    }
    /* Clocks of devices are mapped to ours, and may be a little before them. */
    if (end < asked)
        end = asked;
    if (begin < asked)
        begin = asked;
    if (begin > end)
        begin = end;
    asked = heddle_clock_to_ticks(&d->clock, asked);
    begin = heddle_clock_to_ticks(&d->clock, begin);
    e.t = asked;
    e.y = begin - asked;
    e.z = heddle_clock_to_ticks(&d->clock, end) - begin;
    heddle_trace_event(lane, HEDDLE_TRACE_DATA, kind[move->why], &e);
}

void heddle_dev_log_used(struct heddle_devs *d, unsigned node, bool is_less, uint64_t used,
                         uint32_t unit, uint64_t task)
{
    if (heddle_load_acq(&d->is_stopped) != 0 || /* the lane is gone, too */
        !heddle_trace_is_on(d->ctx->memory_lane, HEDDLE_TRACE_DATA))
        return;
    heddle_trace_event(d->ctx->memory_lane, HEDDLE_TRACE_DATA,
                       is_less ? HEDDLE_LOG_MEM_FREE : HEDDLE_LOG_MEM_ALLOC,
                       &(struct heddle_trace_event){
                           .t = heddle_ctx_ticks(d->ctx),
                           .task = task,
                           .x = used,
                           .c = unit,
                           .b = (uint16_t)node,
                       });
}

/* --- what lanes wait for ------------------------------------------------------------- */

static void wait_count(struct dev_task *dt, enum dev_wait wait, uint32_t n)
{
    heddle_ctx *ctx = dt->ctx;
    struct dev_worker *dw = dt->on;

    if (dw == NULL && wait == DEV_WAIT_ROOM)
        heddle_add_rlx(&ctx->lack_room, n); /* for pictures: no order needed */
    else if (dw == NULL && wait == DEV_WAIT_DATA)
        heddle_add_rlx(&ctx->lack_data, n);
    else if (wait == DEV_WAIT_ROOM)
        dw->nroom += n;
    else if (wait == DEV_WAIT_DATA)
        dw->ndata += n;
    else if (wait == DEV_WAIT_LATE)
        dw->nlate += n;
}

/* Any thread that has the task. */
void heddle_dev_log_wait(struct dev_task *dt, enum dev_wait wait)
{
    if (dt->wait == wait)
        return;
    wait_count(dt, dt->wait, UINT32_MAX);
    wait_count(dt, wait, 1);
    dt->wait = wait;
}

void heddle_dev_log_free(struct heddle_devs *d, struct dev_worker *dw, bool is_submitting)
{
    const enum heddle_log_state_kind state = is_submitting    ? HEDDLE_LOG_SUBMIT
                                             : dw->nlate != 0 ? HEDDLE_LOG_OVERHEAD
                                             : dw->ndata != 0 ? HEDDLE_LOG_DATA
                                             : dw->nroom != 0 ? HEDDLE_LOG_MEMORY
                                                              : HEDDLE_LOG_IDLE;

    if (dw->shown == (uint8_t)state)
        return;
    dw->shown = (uint8_t)state;
    heddle_trace_state(dw->lane, state, heddle_ctx_ticks(d->ctx), 0);
}

/* --- tasks ---------------------------------------------------------------------------- */

void heddle_dev_log_task(struct dev_task *dt, heddle_status st)
{
    heddle_ctx *ctx = dt->ctx;
    struct heddle_devs *d = ctx->dev;
    struct heddle_trace_lane *lane = dt->on->lane;
    enum heddle_log_status log = HEDDLE_LOG_FAILED;
    uint64_t begin = dt->op.begin_ns, end = dt->op.end_ns;

    if (!heddle_trace_is_on(lane, HEDDLE_TRACE_TASK))
        return;
    if (end == 0)
        begin = end = heddle_dev_now_ns(d);
    if (st == HEDDLE_OK)
        log = HEDDLE_LOG_OK;
    else if (st == HEDDLE_ECANCELED)
        log = HEDDLE_LOG_CANCELLED;
    heddle_trace_task(lane, dt->x.id, dt->x.kinfo->id, (uint8_t)dt->variant,
                      (uint8_t)((unsigned)log | (dt->x.node != NULL ? HEDDLE_LOG_REPLAYED : 0u)),
                      heddle_clock_to_ticks(&d->clock, begin),
                      heddle_clock_to_ticks(&d->clock, end), 0);
    /* Its submission has what the fastest class would take. */
    if (d->ntypes > 1 && dt->model_ns >= 0.5 && isfinite(dt->model_ns))
        heddle_trace_attr(lane, dt->x.id, HEDDLE_LOG_ATTR_PREDICTED,
                          (uint64_t)(dt->model_ns + 0.5));
}
