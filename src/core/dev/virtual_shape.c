/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/virtual_shape: what tasks and transfers take on a described machine.
 *
 * Threads    any, at any time, but where a function says otherwise.
 */
#include <math.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/estimate.h"
#include "core/dev/shape.h"
#include "core/dev/virtual.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/worker.h"
#include "drive/sim/sim.h"
#include "plat/plat.h"
#include "trace/trace.h"

enum { UNKNOWN_NS = 10000 }; /* virtual time with real functions: no timing */

/* --- shapes ------------------------------------------------------------------- */

/* Schedulers see what it takes when all workers of the device are busy. */
static void shape_share(const struct heddle_devs *d, const heddle_kernel *k, struct dev_shape *s,
                        unsigned c)
{
    const double share = heddle_plat_share(d->plat, k->name, d->cls[c].plat, s->bytes) *
                         heddle_dev_energy_time(d, c);
    const double all = share * d->cls[c].nworkers;

    s->alone[c] = s->ns[c];
    if (!(share > 0))
        return;
    s->share[c] = share;
    if (isfinite(s->ns[c]) && all > s->ns[c])
        s->ns[c] = all;
}

static void shape_costs(struct heddle_devs *d, const struct heddle_exec *x, struct dev_shape *s)
{
    const heddle_kernel *k = x->kinfo->kernel;

    for (unsigned c = 0; c < d->ncls; c++) {
        s->ns[c] = heddle_plat_time(d->plat, k->name, d->cls[c].plat, s->bytes, s->cost.flops);
        if (!isfinite(s->ns[c]) && d->executes)
            s->ns[c] = UNKNOWN_NS;
        s->ns[c] *= heddle_dev_energy_time(d, c);
        s->ns[c] += d->plat->task_ns;
        shape_share(d, k, s, c);
    }
}

static double shape_variant_ns(const struct heddle_devs *d, const heddle_kernel *k,
                               const struct dev_shape *s, unsigned v, unsigned c)
{
    return heddle_plat_variant_time(d->plat, k->name, k->variants[v].name, d->cls[c].plat, s->bytes,
                                    s->cost.flops) *
               heddle_dev_energy_time(d, c) +
           d->plat->task_ns;
}

/* Does the machine tell variants of the kernel apart? */
static bool shape_has_own(const struct heddle_devs *d, const heddle_kernel *k,
                          const struct dev_shape *s)
{
    for (unsigned v = 0; v < s->nvariants; v++)
        for (unsigned c = 0; c < d->ncls; c++)
            if (!isnan(shape_variant_ns(d, k, s, v, c)))
                return true;
    return false;
}

bool heddle_virtual_fill_shape(struct heddle_devs *d, const struct heddle_exec *x,
                               struct dev_shape *s)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const size_t n = (size_t)s->nvariants * d->ncls;

    shape_costs(d, x, s);
    if (!shape_has_own(d, k, s))
        return true;
    s->own = heddle_zalloc(&d->ctx->alloc, n, sizeof(*s->own));
    if (s->own == NULL)
        return false;
    for (unsigned v = 0; v < s->nvariants; v++)
        for (unsigned c = 0; c < d->ncls; c++)
            s->own[v * d->ncls + c] = shape_variant_ns(d, k, s, v, c);
    return true;
}

/* --- costs -------------------------------------------------------------------- */

/* Times are described. The first variant that may run, but where the
 * machine has times of variants, or energy counts, the best one. */
static double cost_best(const struct heddle_devs *d, const struct heddle_exec *x,
                        const struct task_ext *ext, const struct dev_shape *shape, unsigned cls,
                        unsigned *variant_out)
{
    const unsigned only = ext == NULL ? 0 : ext->variant;
    const bool weighs = d->weighs_energy;
    double best = INFINITY, least = INFINITY;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
        double ns = shape->own == NULL ? NAN : shape->own[v * d->ncls + cls];
        double worth;

        if ((only != 0 && v != only - 1) ||
            !heddle_dev_variant_serves(d, &x->kinfo->kernel->variants[v], &d->cls[cls], ext))
            continue;
        if (isnan(ns))
            ns = shape->ns[cls];
        worth = weighs ? ns * heddle_dev_energy_worth(d, shape, cls, v) : ns;
        if (worth < best) {
            best = worth;
            least = ns;
            *variant_out = v;
        }
    }
    return least;
}

double heddle_virtual_cost(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                           unsigned cls, unsigned *variant_out, double *confidence_out)
{
    const unsigned only = ext == NULL ? 0 : ext->variant;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
        const struct dev_shape *shape;

        if ((only != 0 && v != only - 1) ||
            !heddle_dev_variant_serves(d, &x->kinfo->kernel->variants[v], &d->cls[cls], ext))
            continue;
        shape = heddle_dev_shape(d, x);
        if (shape == NULL)
            return NAN;
        *variant_out = v;
        *confidence_out = 1;
        if (HEDDLE_UNLIKELY(shape->own != NULL || d->weighs_energy))
            return cost_best(d, x, ext, shape, cls, variant_out);
        return isnan(shape->ns[cls]) ? INFINITY : shape->ns[cls];
    }
    return heddle_dev_cost_of_none(d, x, cls);
}

/* --- links --------------------------------------------------------------------------------- */

double heddle_virtual_copy_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    return heddle_sim_copy_ns(d->sim, from, to, bytes);
}

double heddle_virtual_way_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    const int link = heddle_plat_find_link(d->plat, from, to);

    if (link >= 0)
        return d->plat->link[link].latency_ns + (double)bytes / d->plat->link[link].bytes_per_ns;
    return heddle_virtual_way_ns(d, from, 0, bytes) + heddle_virtual_way_ns(d, 0, to, bytes);
}

double heddle_virtual_fetch_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    /* The queues of links are the device thread's. */
    if (heddle_load_rlx(&d->ctx->driver->self) == (uintptr_t)pthread_self())
        return heddle_sim_copy_ns(d->sim, from, to, bytes);
    return heddle_virtual_way_ns(d, from, to, bytes);
}

bool heddle_virtual_find_link(const struct heddle_devs *d, unsigned from, unsigned to,
                              struct heddle_trace_link *l)
{
    const int i = heddle_plat_find_link(d->plat, from, to);

    if (i < 0)
        return false;
    l->name = d->plat->link[i].name;
    l->bytes_per_s = d->plat->link[i].bytes_per_ns * 1e9;
    l->latency_ns = d->plat->link[i].latency_ns;
    return true;
}
