/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place_check: does a placement hold?
 *
 * Shares nothing with what makes placements: jobs are sorted by machine and start
 * by a heap of its own, then swept once.
 */
#include <math.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/energy_place.h"

struct check {
    const struct heddle_energy_job *jobs;
    const struct heddle_energy_place *p;
    const struct heddle_energy_place_opts *o;
    uint32_t *order; /* jobs here, by machine and start */
    size_t n;
};

#define BAD(c, ...) heddle_why((c)->o->why, (c)->o->why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static bool is_before(const struct check *c, uint32_t a, uint32_t b)
{
    const struct heddle_energy_place *p = c->p;

    if (p->machine[a] != p->machine[b])
        return p->machine[a] < p->machine[b];
    return p->start_us[a] < p->start_us[b];
}

static void sink(struct check *c, size_t i, size_t n)
{
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        const uint32_t x = c->order[i];

        if (k + 1 < n && is_before(c, c->order[k], c->order[k + 1]))
            k++;
        if (!is_before(c, x, c->order[k]))
            return;
        c->order[i] = c->order[k];
        c->order[k] = x;
    }
}

static void sort(struct check *c)
{
    for (size_t i = c->n / 2; i-- > 0;)
        sink(c, i, c->n);
    for (size_t n = c->n; n > 1;) {
        const uint32_t x = c->order[0];

        c->order[0] = c->order[--n];
        c->order[n] = x;
        sink(c, 0, n);
    }
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static heddle_status check_sums(const struct check *c, uint64_t span, uint64_t here, uint64_t there)
{
    const struct heddle_energy_place *p = c->p;
    const double h = 1e-6 * (double)here;
    double cost;

    if (p->span_us != span || p->here_us != here || p->there_us != there)
        return BAD(c, "a sum is not what the jobs add up to");
    if (c->o->has_due != 0)
        return isfinite(p->bound) && h <= p->bound * (1 + 1e-9)
                   ? HEDDLE_OK
                   : BAD(c, "more is done here than the bound allows");
    cost = 1e-6 * (double)span + c->o->alpha * 1e-6 * (double)there;
    if (!is_near(p->cost, cost))
        return BAD(c, "the cost is not that of the placement");
    if (!isfinite(p->bound) || p->bound > cost * (1 + 1e-9))
        return BAD(c, "the bound is above the cost");
    return HEDDLE_OK;
}

static heddle_status sweep(struct check *c)
{
    uint64_t end = 0, span = 0, here = 0, there = 0;

    for (size_t i = 0; i < c->p->njobs; i++)
        if (c->p->machine[i] == HEDDLE_ENERGY_THERE)
            there += c->jobs[i].us;
        else if (c->p->machine[i] >= c->o->machines)
            return BAD(c, "job %zu is on machine %u: there is none", i, c->p->machine[i]);
        else
            c->order[c->n++] = (uint32_t)i;
    sort(c);
    for (size_t k = 0; k < c->n; k++) {
        const uint32_t i = c->order[k];
        const bool is_first = k == 0 || c->p->machine[c->order[k - 1]] != c->p->machine[i];

        if (!is_first && c->p->start_us[i] < end)
            return BAD(c, "jobs %u and %u overlap on machine %u", c->order[k - 1], i,
                       c->p->machine[i]);
        if (__builtin_add_overflow(c->p->start_us[i], c->jobs[i].us, &end))
            return BAD(c, "job %u ends after all time", i);
        if (c->o->has_due != 0 && end > c->jobs[i].due_us)
            return BAD(c, "job %u is late", i);
        here += c->jobs[i].us;
        span = end > span ? end : span;
    }
    return check_sums(c, span, here, there);
}

heddle_status heddle_energy_place_check(const struct heddle_energy_job *jobs, size_t njobs,
                                        const struct heddle_energy_place_opts *opts,
                                        const struct heddle_energy_place *p)
{
    struct heddle_energy_place_opts o;
    struct heddle_energy_place place;
    struct check c = {.jobs = jobs, .p = &place, .o = &o};
    heddle_status st;

    if (opts == NULL || p == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_place_opts, &o, opts));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_energy_place, &place, p, o.why, o.why_bytes));
    if ((jobs == NULL && njobs > 0) || njobs >= UINT32_MAX)
        return BAD(&c, "there are no jobs, or too many");
    if (place.njobs != njobs)
        return BAD(&c, "it has %zu jobs instead of %zu", place.njobs, njobs);
    if (njobs > 0 && (place.machine == NULL || place.start_us == NULL))
        return BAD(&c, "an array of the placement is missing");
    if (njobs == 0)
        return check_sums(&c, 0, 0, 0);
    c.order = heddle_zalloc(o.alloc, njobs, sizeof(*c.order));
    if (c.order == NULL)
        return HEDDLE_ENOMEM;
    st = sweep(&c);
    heddle_free(o.alloc, c.order, njobs * sizeof(*c.order));
    return st;
}
