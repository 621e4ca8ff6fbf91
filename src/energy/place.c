/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place: checks what was asked for, has one of the two algorithms decide which
 * job goes where, and lines the jobs of each machine up by due date.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/why.h"
#include "energy/place.h"

struct own {
    struct heddle_scratch mem;
};

#define BAD(o, ...) heddle_why((o)->why, (o)->why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status check_opts(struct heddle_energy_place_opts *o)
{
    if (o->machines == 0 || o->machines > HEDDLE_ENERGY_MACHINES)
        return BAD(o, "there are %u machines: it must be 1 to %u", o->machines,
                   (unsigned)HEDDLE_ENERGY_MACHINES);
    if (o->work == 0)
        o->work = UINT64_C(1) << 29;
    if (o->has_due != 0)
        return HEDDLE_OK;
    if (!isfinite(o->alpha) || o->alpha < 0)
        return BAD(o, "alpha is negative or not finite");
    if (o->eps == 0)
        o->eps = 0.01;
    if (!isfinite(o->eps) || o->eps < 0.0001 || o->eps > 1)
        return BAD(o, "eps must be 0.0001 to 1");
    return HEDDLE_OK;
}

static heddle_status check_jobs(const struct heddle_energy_draft *d, uint64_t *total)
{
    *total = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct heddle_energy_job *j = &d->jobs[i];

        if (j->us == 0)
            return BAD(&d->o, "job %zu takes no time", i);
        if (j->us > HEDDLE_ENERGY_JOB_MAX ||
            (j->due_us > HEDDLE_ENERGY_JOB_MAX && j->due_us != HEDDLE_ENERGY_NO_DUE))
            return BAD(&d->o, "a time of job %zu is above 10^10 seconds", i);
        *total += j->us;
        if (*total > HEDDLE_ENERGY_JOBS_MAX)
            return BAD(&d->o, "the jobs together take more than 4.6 x 10^12 "
                              "seconds");
    }
    return HEDDLE_OK;
}

const uint32_t *heddle_energy_place_order(struct heddle_scratch *mem, const uint64_t *key, size_t n)
{
    struct heddle_pair *p = heddle_scratch_get(mem, 2 * n, sizeof(*p));
    uint32_t *order = heddle_scratch_get(mem, n, sizeof(*order));

    if (p == NULL || order == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        p[i] = (struct heddle_pair){key[i], i};
    heddle_sort_pairs(p, p + n, n);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)p[i].idx;
    return order;
}

/* Start times in the order of due dates, and the sums. */
static heddle_status line_up(struct heddle_energy_draft *d, uint64_t *start,
                             struct heddle_energy_place *r)
{
    uint64_t *key = heddle_scratch_get(&d->tmp, d->n, sizeof(*key));
    uint64_t *end = heddle_scratch_get(&d->tmp, d->o.machines, sizeof(*end));
    const uint32_t *order;

    if (key == NULL || end == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < d->n; i++)
        key[i] = d->jobs[i].due_us;
    order = heddle_energy_place_order(&d->tmp, key, d->n);
    if (order == NULL)
        return HEDDLE_ENOMEM;
    for (size_t k = 0; k < d->n; k++) {
        const uint32_t i = order[k], m = d->machine[i];

        if (m == HEDDLE_ENERGY_THERE)
            continue;
        start[i] = end[m];
        end[m] += d->jobs[i].us;
        r->here_us += d->jobs[i].us;
        if (end[m] > r->span_us)
            r->span_us = end[m];
    }
    r->there_us = d->total - r->here_us;
    return HEDDLE_OK;
}

static heddle_status solve(struct heddle_energy_draft *d, uint64_t *start,
                           struct heddle_energy_place *r)
{
    for (size_t i = 0; i < d->n; i++)
        d->machine[i] = HEDDLE_ENERGY_THERE;
    d->proved = 1;
    if (d->n > 0)
        HEDDLE_TRY(d->o.has_due != 0 ? heddle_energy_place_due(d) : heddle_energy_place_free(d));
    HEDDLE_TRY(line_up(d, start, r));
    r->bound = d->bound;
    r->proved = d->proved;
    r->unit_us = d->unit_us;
    if (d->o.has_due == 0) {
        r->cost = ((double)r->span_us + d->o.alpha * (double)r->there_us) / 1e6;
        /* Both were added up in other orders. */
        r->bound = fmin(r->bound, r->cost);
    } else {
        r->bound = fmax(r->bound, (double)r->here_us / 1e6);
    }
    return HEDDLE_OK;
}

static heddle_status make(struct heddle_energy_draft *d, struct heddle_energy_place *out)
{
    struct heddle_energy_place r = {.size = sizeof(r), .njobs = d->n};
    const uint64_t begin = heddle_clock_ns();
    struct own *own = heddle_zalloc(d->o.alloc, 1, sizeof(*own));
    uint64_t *start;
    heddle_status st = HEDDLE_ENOMEM;

    if (own == NULL)
        return HEDDLE_ENOMEM;
    own->mem = heddle_scratch_make(d->o.alloc);
    r.own = own;
    r.machine = d->machine = heddle_scratch_get(&own->mem, d->n, sizeof(*d->machine));
    r.start_us = start = heddle_scratch_get(&own->mem, d->n, sizeof(*start));
    if (d->machine != NULL && start != NULL)
        st = solve(d, start, &r);
    if (st != HEDDLE_OK) {
        heddle_energy_place_fini(&r);
        return st;
    }
    r.time_ns = heddle_clock_ns() - begin;
    heddle_sized_put(out, &r, sizeof(r));
    return HEDDLE_OK;
}

heddle_status heddle_energy_place_make(const struct heddle_energy_job *jobs, size_t njobs,
                                       const struct heddle_energy_place_opts *opts,
                                       struct heddle_energy_place *out)
{
    struct heddle_energy_draft d = {.jobs = jobs, .n = njobs};
    heddle_status st;

    if (opts == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_place_opts, &d.o, opts));
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_energy_place, out, d.o.why, d.o.why_bytes));
    if ((jobs == NULL && njobs > 0) || njobs >= UINT32_MAX)
        return BAD(&d.o, "there are no jobs, or too many");
    if (d.o.alloc == NULL)
        d.o.alloc = &heddle_allocator_default;
    HEDDLE_TRY(check_opts(&d.o));
    HEDDLE_TRY(check_jobs(&d, &d.total));
    d.tmp = heddle_scratch_make(d.o.alloc);
    st = make(&d, out);
    heddle_scratch_drop(&d.tmp);
    if (st == HEDDLE_ENOMEM)
        (void)BAD(&d.o, "no memory for %zu jobs", njobs);
    return st;
}

void heddle_energy_place_fini(struct heddle_energy_place *p)
{
    struct own *own;

    if (p == NULL)
        return;
    own = p->own;
    if (own != NULL) {
        const struct heddle_allocator *a = own->mem.a;

        heddle_scratch_drop(&own->mem);
        heddle_free(a, own, sizeof(*own));
    }
    heddle_sized_clear(p);
}
