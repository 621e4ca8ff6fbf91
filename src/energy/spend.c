/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spend: the energy of a schedule, and schedules that need little.
 *
 * Search     first the fastest schedule, unless it is known; its types and order
 *            are where the search for a cheap one begins, so the deadline is kept
 *            from the start. Both are the policy `best` of heddle/offline.h, with
 *            joules as cost the second time.
 */
#include "energy/spend.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/why.h"

#define TIME_NS (2 * HEDDLE_NS_PER_S)
#define LATE    1e-9 /* a schedule this little late keeps its deadline */

heddle_status heddle_energy_of_schedule(const struct heddle_energy_graph *eg,
                                        const struct heddle_offline_result *schedule,
                                        struct heddle_energy_cost *out)
{
    struct heddle_offline_result own, *s = &own;
    struct heddle_energy_cost c = {0};
    const struct heddle_bound_graph *g;
    struct heddle_spend_input in;

    if (out == NULL || schedule == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_offline_result, &own, schedule, NULL, 0));
    HEDDLE_TRY(heddle_spend_get(eg, &in, NULL, 0));
    g = &in.graph;
    if (s->ntasks != g->ntasks || !(s->makespan >= 0.0) || (s->ntasks > 0 && s->type == NULL))
        return HEDDLE_EINVAL;
    for (uint32_t t = 0; t < g->ntasks; t++) {
        const size_t row = g->kind != NULL ? g->kind[t] : t;
        const uint32_t r = s->type[t];

        if ((g->kind != NULL && g->kind[t] >= g->nkinds) || r >= g->ntypes || g->nworkers[r] == 0 ||
            !(g->time[row * g->ntypes + r] < INFINITY))
            return HEDDLE_EINVAL;
        c.active += in.eg.joules[row * g->ntypes + r];
    }
    c.idle = in.eg.idle * s->makespan;
    c.total = c.active + c.idle;
    *out = c;
    return HEDDLE_OK;
}

/* --- schedules ---------------------------------------------------------------- */

struct search {
    struct heddle_spend_input in;
    const struct heddle_energy_graph *eg; /* in.eg */
    struct heddle_energy_opts o;          /* defaults filled in */
    struct heddle_offline_result given;   /* o.fastest, when there is one */
    uint64_t begin;
    struct heddle_offline_result fast; /* own, when o.fastest is NULL */
    double *cost;                      /* weighted joules */
    size_t cells;
};

#define FAIL(st, ...) heddle_why(x->o.why, x->o.why_bytes, st, __VA_ARGS__)

static heddle_status take_opts(struct search *x, const struct heddle_energy_graph *eg,
                               const struct heddle_energy_opts *opts)
{
    x->eg = &x->in.eg;
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_opts, &x->o, opts));
    if ((unsigned)x->o.goal >= HEDDLE_ENERGY_NGOALS)
        return FAIL(HEDDLE_EINVAL, "there is no such goal");
    if (!(x->o.weight >= 0.0 && x->o.weight <= 1.0))
        return FAIL(HEDDLE_EINVAL, "the weight is not a number from 0 to 1");
    if (!(x->o.deadline >= 0.0) || !(x->o.slack >= 0.0))
        return FAIL(HEDDLE_EINVAL, "the deadline or the slack is not a number >= 0");
    if (x->o.fastest != NULL) {
        HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_offline_result, &x->given, x->o.fastest, x->o.why,
                                    x->o.why_bytes));
        x->o.fastest = &x->given;
    }
    if (x->o.time_ns == 0)
        x->o.time_ns = TIME_NS;
    if (x->o.time_ns == UINT64_MAX && x->o.iterations == 0)
        return FAIL(HEDDLE_EINVAL, "the search needs a limit of time or of "
                                   "iterations");
    return heddle_spend_get(eg, &x->in, x->o.why, x->o.why_bytes);
}

static struct heddle_offline_opts offline_opts(const struct search *x, double part)
{
    struct heddle_offline_opts o = {.size = sizeof(o),
                                    .seed = x->o.seed,
                                    .time_ns = UINT64_MAX,
                                    .iterations = x->o.iterations,
                                    .why = x->o.why,
                                    .why_bytes = x->o.why_bytes,
                                    .alloc = x->o.alloc};

    if (x->o.time_ns != UINT64_MAX) {
        const uint64_t gone = heddle_clock_ns() - x->begin;
        const uint64_t left = gone < x->o.time_ns ? x->o.time_ns - gone : 0;

        o.time_ns = (uint64_t)(part * (double)left) + 1;
    }
    return o;
}

static heddle_status find_fastest(struct search *x)
{
    const struct heddle_offline_opts o = offline_opts(x, 0.35);

    x->fast.size = sizeof(x->fast);
    if (x->o.fastest != NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_offline_schedule(x->eg->graph, &o, &x->fast));
    x->o.fastest = &x->fast;
    return HEDDLE_OK;
}

/* What the search shall make small. */
static heddle_status set_goal(struct search *x, struct heddle_offline_opts *o)
{
    const struct heddle_bound_graph *g = x->eg->graph;
    const size_t rows = g->kind != NULL ? g->nkinds : g->ntasks;
    struct heddle_energy_cost c;
    double a, b;

    o->cost = x->eg->joules;
    o->cost_rate = x->eg->idle;
    o->cost_product = x->o.goal == HEDDLE_ENERGY_EDP;
    if (x->o.goal != HEDDLE_ENERGY_WEIGHTED)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_energy_of_schedule(x->eg, x->o.fastest, &c));
    a = c.total > 0.0 ? x->o.weight / c.total : 0.0;
    b = x->o.fastest->makespan > 0.0 ? (1.0 - x->o.weight) / x->o.fastest->makespan : 0.0;
    x->cells = rows * g->ntypes + 1;
    x->cost = heddle_zalloc(x->o.alloc, x->cells, sizeof(*x->cost));
    if (x->cost == NULL)
        return FAIL(HEDDLE_ENOMEM, "there is no memory");
    for (size_t i = 0; i < rows * g->ntypes; i++)
        if (g->nworkers[i % g->ntypes] > 0 && g->time[i] < INFINITY)
            x->cost[i] = a * x->eg->joules[i];
    o->cost = x->cost;
    o->cost_rate = a * x->eg->idle + b;
    return HEDDLE_OK;
}

static heddle_status find_cheap(struct search *x, struct heddle_offline_result *out)
{
    struct heddle_offline_opts o = offline_opts(x, 1.0);

    o.type = x->o.fastest->type;
    o.order = x->o.fastest->start;
    o.within = x->o.deadline;
    if (o.within == 0.0 && x->o.slack < INFINITY)
        o.within = (1.0 + x->o.slack) * x->o.fastest->makespan;
    HEDDLE_TRY(set_goal(x, &o));
    HEDDLE_TRY(heddle_offline_schedule(x->eg->graph, &o, out));
    if (o.within == 0.0 || out->makespan <= o.within * (1.0 + LATE))
        return HEDDLE_OK;
    heddle_offline_fini(out);
    return FAIL(HEDDLE_ENOENT,
                "no schedule was found that keeps the deadline; the fastest "
                "takes %.4g times as long",
                x->o.fastest->makespan / o.within);
}

heddle_status heddle_energy_schedule(const struct heddle_energy_graph *eg,
                                     const struct heddle_energy_opts *opts,
                                     struct heddle_offline_result *result_out, double *fastest_out)
{
    struct heddle_offline_result r = {.size = sizeof(r)};
    struct search state = {.begin = heddle_clock_ns()};
    struct search *x = &state;
    heddle_status st;

    HEDDLE_TRY(take_opts(x, eg, opts));
    HEDDLE_TRY(
        HEDDLE_SIZED_ROOM_OWN(struct heddle_offline_result, result_out, x->o.why, x->o.why_bytes));
    st = find_fastest(x);
    if (st == HEDDLE_OK && x->o.fastest->ntasks != x->in.graph.ntasks)
        st = FAIL(HEDDLE_EINVAL, "the fastest schedule is not of this graph");
    if (st == HEDDLE_OK)
        st = find_cheap(x, &r);
    if (st == HEDDLE_OK)
        heddle_sized_put(result_out, &r, sizeof(r));
    if ((st == HEDDLE_OK || st == HEDDLE_ENOENT) && fastest_out != NULL)
        *fastest_out = x->o.fastest->makespan;
    heddle_free(x->o.alloc, x->cost, x->cells * sizeof(*x->cost));
    heddle_offline_fini(&x->fast);
    return st;
}
