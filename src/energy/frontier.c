/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier: time against energy, from the fastest schedule to the least energy.
 *
 * Order      the two ends first; then deadlines between them, from the shortest
 *            on. Each search begins at the schedule of the deadline before, so
 *            energy never rises. Bounds hold for all shorter deadlines too, so a
 *            sweep back makes them fall.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/why.h"
#include "energy/spend.h"

#define TIME_NS    (5 * HEDDLE_NS_PER_S)
#define BOUND_PART 0.3  /* of the time, for all bounds */
#define END_PART   0.2  /* of the rest, for each end */
#define NEAR       1e-6 /* of the length: one point is enough */

struct frontier {
    const struct heddle_energy_graph *eg;
    struct heddle_energy_opts o;
    struct heddle_energy_point *point;
    uint32_t n;
    uint64_t begin, end; /* of the searches; end 0: no limit */
    struct heddle_bound_result time;
    struct heddle_offline_result best; /* within the deadline so far */
    struct heddle_energy_cost cost;    /* of best */
};

#define FAIL(st, ...) heddle_why(x->o.why, x->o.why_bytes, st, __VA_ARGS__)

/* `part` of the time that is left for searches. */
static uint64_t share(const struct frontier *x, double part)
{
    const uint64_t now = heddle_clock_ns();

    if (x->end == 0)
        return UINT64_MAX;
    return now < x->end ? (uint64_t)(part * (double)(x->end - now)) + 1 : 1;
}

static heddle_status find_fastest(struct frontier *x)
{
    struct heddle_offline_opts o = {.size = sizeof(o),
                                    .seed = x->o.seed,
                                    .time_ns = share(x, END_PART),
                                    .iterations = x->o.iterations,
                                    .stop_at = x->time.best,
                                    .why = x->o.why,
                                    .why_bytes = x->o.why_bytes,
                                    .alloc = x->o.alloc};

    if (x->o.fastest != NULL) {
        o.policy = "fixed";
        o.type = x->o.fastest->type;
        o.order = x->o.fastest->start;
    }
    return heddle_offline_schedule(x->eg->graph, &o, &x->best);
}

/* The best schedule within a deadline (0: none) from the one in hand, which it
 * replaces when it needs less. */
static heddle_status search(struct frontier *x, double deadline, double part,
                            struct heddle_offline_result *out)
{
    struct heddle_energy_opts o = x->o;

    o.goal = HEDDLE_ENERGY_LEAST;
    o.deadline = deadline;
    o.slack = INFINITY;
    o.fastest = &x->best;
    o.time_ns = share(x, part);
    return heddle_energy_schedule(x->eg, &o, out, NULL);
}

static heddle_status step(struct frontier *x, uint32_t i, uint32_t n)
{
    struct heddle_energy_point *p = &x->point[i];
    struct heddle_offline_result s = {.size = sizeof(s)};
    struct heddle_energy_cost c;

    HEDDLE_TRY(search(x, p->deadline, 1.0 / (n - i), &s));
    if (heddle_energy_of_schedule(x->eg, &s, &c) == HEDDLE_OK && c.total < x->cost.total) {
        heddle_offline_fini(&x->best);
        x->best = s;
        x->cost = c;
    } else {
        heddle_offline_fini(&s);
    }
    p->makespan = x->best.makespan;
    p->cost = x->cost;
    return HEDDLE_OK;
}

/* Deadlines evenly between the ends; the last is that of the cheapest. */
static heddle_status find_ends(struct frontier *x, uint32_t *nout)
{
    struct heddle_offline_result s = {.size = sizeof(s)};
    double first, last;
    heddle_status st;

    HEDDLE_TRY(find_fastest(x));
    HEDDLE_TRY(heddle_energy_of_schedule(x->eg, &x->best, &x->cost));
    HEDDLE_TRY(search(x, 0.0, END_PART / (1.0 - END_PART), &s));
    first = x->best.makespan;
    last = fmax(first, s.makespan);
    *nout = last > first * (1.0 + NEAR) ? x->n : 1;
    for (uint32_t i = 0; i < *nout; i++)
        x->point[i].deadline = i + 1 == *nout ? last : first + (last - first) * i / (*nout - 1);
    for (uint32_t i = 0; i + 1 < *nout; i++) {
        st = step(x, i, *nout);
        if (st != HEDDLE_OK) {
            heddle_offline_fini(&s);
            return st;
        }
    }
    /* The cheapest of all goes on from the better of the two. */
    st = heddle_energy_of_schedule(x->eg, &s, &x->point[*nout - 1].cost);
    if (st == HEDDLE_OK && x->point[*nout - 1].cost.total < x->cost.total) {
        heddle_offline_fini(&x->best);
        x->best = s;
        x->cost = x->point[*nout - 1].cost;
    } else {
        heddle_offline_fini(&s);
    }
    return st == HEDDLE_OK ? step(x, *nout - 1, *nout) : st;
}

static heddle_status find_bounds(struct frontier *x, uint32_t n)
{
    struct heddle_energy_limits l = {.size = sizeof(l),
                                     .time = &x->time,
                                     .time_ns = UINT64_MAX,
                                     .why = x->o.why,
                                     .why_bytes = x->o.why_bytes,
                                     .alloc = x->o.alloc};

    if (x->end != 0)
        l.time_ns = (uint64_t)(BOUND_PART * (double)x->o.time_ns / n) + 1;
    for (uint32_t i = n; i-- > 0;) {
        struct heddle_energy_bound_result r = {.size = sizeof(r)};

        l.deadline = x->point[i].deadline;
        HEDDLE_TRY(heddle_energy_bound(x->eg, &l, &r));
        x->point[i].bound = r.value;
        if (i + 1 < n)
            x->point[i].bound = fmax(r.value, x->point[i + 1].bound);
        heddle_energy_bound_fini(&r);
    }
    return HEDDLE_OK;
}

static heddle_status run(struct frontier *x, uint32_t *nout)
{
    struct heddle_bound_limits l = {.size = sizeof(l),
                                    .time_ns = share(x, 0.1),
                                    .why = x->o.why,
                                    .why_bytes = x->o.why_bytes,
                                    .alloc = x->o.alloc};

    HEDDLE_TRY(heddle_bound_all(x->eg->graph, &l, &x->time));
    HEDDLE_TRY(find_ends(x, nout));
    return find_bounds(x, *nout);
}

heddle_status heddle_energy_frontier(const struct heddle_energy_graph *eg,
                                     const struct heddle_energy_opts *opts, uint32_t n,
                                     struct heddle_energy_point *out, uint32_t *nout)
{
    struct heddle_spend_input in;
    struct frontier state = {.eg = &in.eg, .point = out, .n = n};
    struct frontier *x = &state;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_opts, &x->o, opts));
    x->o.goal = HEDDLE_ENERGY_LEAST;
    x->o.weight = x->o.deadline = x->o.slack = 0.0;
    if (n < 2 || out == NULL || nout == NULL)
        return FAIL(HEDDLE_EINVAL, "a frontier needs room for two points");
    HEDDLE_TRY(heddle_spend_get(eg, &in, x->o.why, x->o.why_bytes));
    if (x->o.time_ns == 0)
        x->o.time_ns = TIME_NS;
    if (x->o.time_ns == UINT64_MAX && x->o.iterations == 0)
        return FAIL(HEDDLE_EINVAL, "the search needs a limit of time or of "
                                   "iterations");
    x->begin = heddle_clock_ns();
    if (x->o.time_ns != UINT64_MAX)
        x->end = x->begin + (uint64_t)((1.0 - BOUND_PART) * (double)x->o.time_ns) + 1;
    x->time.size = sizeof(x->time);
    x->best.size = sizeof(x->best);
    memset(out, 0, n * sizeof(*out));
    st = run(x, nout);
    heddle_offline_fini(&x->best);
    heddle_bound_fini(&x->time);
    return st;
}
