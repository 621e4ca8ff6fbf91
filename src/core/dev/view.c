/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/view: what a scheduler may ask about a task: costs, transfers, bytes, sorts.
 *
 * Threads    any, at any time.
 */
#include <math.h>

#include "base/atomic.h"
#include "base/mode.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/devs.h"
#include "core/dev/estimate.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/view.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "mem/mem.h"
#include "sched/sched.h"

static double view_cost(void *view, const struct heddle_sched_task *t, unsigned cls,
                        double *confidence_out)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const struct task_ext *ext;
    struct heddle_exec x;
    struct task_ext own;
    double sure = 0, ns;
    unsigned v;

    if (heddle_dev_is_barred(d, t, cls))
        return INFINITY;
    ext = heddle_task_exec(d->ctx->foreign, task, &x, &own);
    ns = heddle_dev_cost(d, &x, ext, cls, &v, &sure);
    if (confidence_out != NULL)
        *confidence_out = sure;
    return ns;
}

static double view_joules(void *view, const struct heddle_sched_task *t, unsigned cls, double ns)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const struct task_ext *ext;
    const struct dev_shape *s;
    struct heddle_exec x;
    struct task_ext own;
    double sure = 0;
    unsigned v = 0;

    ext = heddle_task_exec(d->ctx->foreign, task, &x, &own);
    if (x.kinfo->nvariants == 0 || isinf(heddle_dev_cost(d, &x, ext, cls, &v, &sure)))
        return x.kinfo->nvariants == 0 ? 0 : (double)NAN;
    s = heddle_dev_shape(d, &x);
    return s == NULL || s->watts == NULL ? (double)NAN : s->watts[v * d->ncls + cls] * 1e-9 * ns;
}

/* --- data ----------------------------------------------------------------------- */

static int nearest_source(const struct heddle_devs *d, uint64_t valid, unsigned to)
{
    if ((valid & 1) != 0)
        return 0;
    for (unsigned s = 0; s < d->nnodes; s++)
        if ((valid >> s & 1) != 0 && s != to)
            return (int)s;
    return -1;
}

static double view_fetch(void *view, const struct heddle_sched_task *t, unsigned cls)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const unsigned to = d->cls[cls].node;
    uint64_t bytes[HEDDLE_MEM_NODES];
    uint64_t sources = 0;
    struct heddle_exec x;
    struct task_ext own;
    const struct dev_ahead_view v = heddle_ahead_view(d, t, cls);
    double ns = v.wait_ns;

    (void)heddle_task_exec(d->ctx->foreign, task, &x, &own);
    for (unsigned i = 0; i < x.nops; i++) {
        const uint64_t valid =
            i < 32 && (v.there >> i & 1) != 0 ? UINT64_C(1) << v.node : heddle_mem_valid(x.op[i]);
        int from;

        if (!heddle_mode_reads(x.mode[i]) || (valid >> to & 1) != 0 ||
            (i < 32 && (v.here >> i & 1) != 0))
            continue;
        from = nearest_source(d, valid, to);
        if (from < 0)
            continue;
        if ((sources >> from & 1) == 0)
            bytes[from] = 0;
        sources |= UINT64_C(1) << from;
        bytes[from] += x.op[i]->bytes;
    }
    for (unsigned s = 0; sources != 0; s++, sources >>= 1)
        if ((sources & 1) != 0)
            ns += d->time->fetch_ns(d, s, to, bytes[s]);
    return ns;
}

static double view_move(void *view, unsigned from, unsigned to, uint64_t bytes)
{
    struct heddle_devs *d = view;
    const unsigned a = d->cls[from].node, b = d->cls[to].node;

    return a == b ? 0 : d->time->way_ns(d, a, b, bytes);
}

static void view_bytes(void *view, const struct heddle_sched_task *t, unsigned cls,
                       uint64_t *read_out, uint64_t *written_out, uint64_t *present_out)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    uint64_t reads = 0, writes = 0, present = 0;
    struct heddle_exec x;
    struct task_ext own;

    (void)heddle_task_exec(d->ctx->foreign, task, &x, &own);
    for (unsigned i = 0; i < x.nops; i++) {
        const uint64_t n = x.op[i]->bytes;

        if (heddle_mode_writes(x.mode[i]))
            writes += n;
        if (!heddle_mode_reads(x.mode[i]))
            continue;
        reads += n;
        if ((heddle_mem_valid(x.op[i]) >> d->cls[cls].node & 1) != 0)
            present += n;
    }
    *read_out = reads;
    *written_out = writes;
    *present_out = present;
}

/* Where a task may run, by its own restrictions; all bits: wherever the kernel
 * can. */
static uint64_t task_classes(struct heddle_devs *d, const struct heddle_sched_task *t,
                             struct heddle_exec *x, const struct task_ext *ext)
{
    uint64_t classes = 0;
    double sure;
    unsigned v;

    if ((ext == NULL || (ext->variant | ext->devices | ext->digits) == 0) &&
        heddle_load_acq(&d->nnotes) == 0 && !heddle_dev_has_alias(x))
        return UINT64_MAX;
    for (unsigned c = 0; c < d->ncls; c++)
        if (!heddle_dev_is_barred(d, t, c) && !isinf(heddle_dev_cost(d, x, ext, c, &v, &sure)))
            classes |= UINT64_C(1) << c;
    return classes;
}

static unsigned view_sort(void *view, const struct heddle_sched_task *t)
{
    struct heddle_devs *d = view;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    const struct task_ext *ext;
    struct dev_shape *s;
    struct heddle_exec x;
    struct task_ext own;

    ext = heddle_task_exec(d->ctx->foreign, task, &x, &own);
    s = heddle_dev_shape(d, &x);
    return s == NULL ? 0 : heddle_dev_shape_sort(d, s, task_classes(d, t, &x, ext));
}

static const char *view_kernel(void *view, const struct heddle_sched_task *t)
{
    struct heddle_devs *d = view;
    struct heddle_exec x;
    struct task_ext own;

    (void)heddle_task_exec(d->ctx->foreign, (struct heddle_sched_task *)(uintptr_t)t, &x, &own);
    return x.kinfo->kernel->name;
}

static uint64_t view_id(void *view, const struct heddle_sched_task *t)
{
    struct heddle_devs *d = view;
    struct heddle_exec x;
    struct task_ext own;

    (void)heddle_task_exec(d->ctx->foreign, (struct heddle_sched_task *)(uintptr_t)t, &x, &own);
    return x.id;
}

static bool view_is_idle(void *view)
{
    const struct heddle_devs *d = view;

    return d->time->is_idle(d);
}

const struct heddle_sched_view heddle_dev_view = {
    .cost = view_cost,
    .joules = view_joules,
    .fetch = view_fetch,
    .bytes = view_bytes,
    .move = view_move,
    .sort = view_sort,
    .kernel = view_kernel,
    .id = view_id,
    .now_ns = heddle_dev_now_ns,
    .is_idle = view_is_idle,
};
