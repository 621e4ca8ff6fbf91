/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph: from the caller's arrays to a checked problem with edges both ways.
 *
 * Order      tasks keep their order when every edge goes up, which is the case
 *            for submission order; else first in, first out.
 */
#include <string.h>

#include "offline/offline.h"

#define BAD(...) HEDDLE_OFFLINE_FAIL(opts, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status check_shape(const struct heddle_bound_graph *g,
                                 const struct heddle_offline_opts *opts)
{
    if (g->ntypes > HEDDLE_BOUND_TYPES_MAX)
        return BAD("there are %u types of workers; at most %d are possible", g->ntypes,
                   HEDDLE_BOUND_TYPES_MAX);
    if (g->ntasks >= UINT32_MAX - 1 || g->nedges >= UINT32_MAX - 1)
        return BAD("the graph has too many tasks or edges");
    if (g->nedges > 0 && (g->edge_from == NULL || g->edge_to == NULL))
        return BAD("there are %u edges, but edge_from or edge_to is NULL", g->nedges);
    if (g->ntypes > 0 && g->nworkers == NULL)
        return BAD("nworkers is NULL");
    if (g->ntasks > 0 && g->ntypes > 0 && g->time == NULL)
        return BAD("time is NULL");
    if (opts->edge_bytes != NULL && (opts->latency == NULL || opts->byte_time == NULL))
        return BAD("edge_bytes needs latency and byte_time");
    for (uint32_t e = 0; e < g->nedges; e++)
        if (g->edge_from[e] >= g->ntasks || g->edge_to[e] >= g->ntasks)
            return BAD("edge %u goes from task %u to task %u of %u", e, g->edge_from[e],
                       g->edge_to[e], g->ntasks);
    for (uint32_t t = 0; g->kind != NULL && t < g->ntasks; t++)
        if (g->kind[t] >= g->nkinds)
            return BAD("task %u is of kind %u of %u", t, g->kind[t], g->nkinds);
    return HEDDLE_OK;
}

/* A number >= 0, and not so large that a sum of all overflows. */
static bool is_fine(double v)
{
    return v >= 0.0 && v < 1e290;
}

static heddle_status check_extras(const struct heddle_bound_graph *g,
                                  const struct heddle_offline_opts *opts)
{
    for (uint32_t t = 0; opts->release != NULL && t < g->ntasks; t++)
        if (!is_fine(opts->release[t]))
            return BAD("the release of task %u is no number from 0 to 1e290", t);
    if (!is_fine(opts->within) || !is_fine(opts->cost_rate))
        return BAD("within or cost_rate is no number from 0 to 1e290");
    if (opts->edge_bytes == NULL)
        return HEDDLE_OK;
    for (uint32_t e = 0; e < g->nedges; e++)
        if (!is_fine(opts->edge_bytes[e]) || opts->edge_bytes[e] > 1e30)
            return BAD("the bytes of edge %u are no number from 0 to 1e30", e);
    for (uint32_t i = 0; i < g->ntypes * g->ntypes; i++)
        if (!is_fine(opts->latency[i]) || !is_fine(opts->byte_time[i]) ||
            opts->byte_time[i] > 1e250)
            return BAD("the link from type %u to type %u makes no sense", i / g->ntypes,
                       i % g->ntypes);
    return HEDDLE_OK;
}

/* After the times: a cost where a task can run, and the most of all. */
static heddle_status take_costs(const struct heddle_offline_opts *opts,
                                struct heddle_offline_dag *d)
{
    const double within = opts->within;

    d->cost = opts->cost;
    if (d->cost == NULL)
        return HEDDLE_OK;
    for (uint32_t t = 0; t < d->n; t++) {
        double most = 0.0;

        for (uint32_t r = 0; r < d->r; r++) {
            const double c = d->cost[(size_t)d->row[t] * d->r + r];

            if (heddle_offline_time(d, t, r) == INFINITY)
                continue;
            if (!is_fine(c))
                return BAD("the cost of task %u on type %u is no number from "
                           "0 to 1e290",
                           t, r);
            most = fmax(most, c);
        }
        d->cost_top += most;
    }
    d->cost_top += opts->cost_rate * within;
    if (opts->cost_product != 0)
        d->cost_top *= within;
    if (!is_fine(d->cost_top))
        return BAD("the costs of all tasks add up to more than 1e290");
    if (d->cost_top == 0.0)
        d->cost_top = 1.0;
    return HEDDLE_OK;
}

static heddle_status take_workers(const struct heddle_bound_graph *g, struct heddle_scratch *m,
                                  struct heddle_offline_dag *d)
{
    const struct heddle_offline_opts *opts = d->opts;
    uint64_t all = 0;

    for (uint32_t i = 0; i < g->ntypes; i++)
        all += g->nworkers[i];
    if (all > UINT32_C(1) << 24)
        return BAD("there are more than 2^24 workers");
    d->w = (uint32_t)all;
    d->r = g->ntypes;
    d->first = heddle_scratch_get(m, (size_t)d->r + 1, sizeof(*d->first));
    d->worker = heddle_scratch_get(m, d->w, sizeof(*d->worker));
    if (d->first == NULL || d->worker == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < d->r; i++) {
        d->first[i + 1] = d->first[i] + g->nworkers[i];
        for (uint32_t w = d->first[i]; w < d->first[i + 1]; w++)
            d->worker[w] = i;
    }
    return HEDDLE_OK;
}

/* Row by row: where each task can run, and where it is fastest. */
static heddle_status take_times(const struct heddle_bound_graph *g, struct heddle_scratch *m,
                                struct heddle_offline_dag *d)
{
    const struct heddle_offline_opts *opts = d->opts;
    const uint32_t rows = g->kind != NULL ? g->nkinds : g->ntasks;
    double total = 0.0;

    d->row = heddle_scratch_get(m, d->n, sizeof(*d->row));
    d->fast = heddle_scratch_get(m, d->n, sizeof(*d->fast));
    d->home = heddle_scratch_get(m, d->n, sizeof(*d->home));
    d->time = heddle_scratch_get(m, (size_t)rows * d->r, sizeof(*d->time));
    if (d->row == NULL || d->fast == NULL || d->home == NULL || d->time == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < (size_t)rows * d->r && d->n > 0; i++)
        d->time[i] = g->nworkers[i % d->r] > 0 ? g->time[i] + 0.0 : (double)INFINITY;
    for (uint32_t t = 0; t < d->n; t++) {
        const double *p;
        double most = -1.0;

        d->row[t] = g->kind != NULL ? g->kind[t] : t;
        d->fast[t] = INFINITY;
        p = heddle_offline_row(d, t);
        for (uint32_t r = 0; r < d->r; r++) {
            if (!(p[r] >= 0.0))
                return BAD("the time of task %u on type %u is negative or not "
                           "a number",
                           t, r);
            if (p[r] < d->fast[t]) {
                d->fast[t] = p[r];
                d->home[t] = (uint8_t)r;
            }
            if (p[r] < INFINITY && p[r] > most)
                most = p[r];
        }
        if (most < 0.0)
            return BAD("task %u can run on no type that has workers", t);
        total += most;
    }
    return total < 1e290 ? HEDDLE_OK : BAD("the sum of the times overflows");
}

static heddle_status take_edges(const struct heddle_bound_graph *g, struct heddle_scratch *m,
                                struct heddle_offline_dag *d)
{
    const size_t n = d->n, e = d->e;
    uint32_t *at = heddle_scratch_get(m, n + 1, sizeof(*at));

    d->succ_end = heddle_scratch_get(m, n + 1, sizeof(*d->succ_end));
    d->pred_end = heddle_scratch_get(m, n + 1, sizeof(*d->pred_end));
    d->succ = heddle_scratch_get(m, e, sizeof(*d->succ));
    d->pred = heddle_scratch_get(m, e, sizeof(*d->pred));
    if (d->opts->edge_bytes != NULL)
        d->pred_bytes = heddle_scratch_get(m, e, sizeof(*d->pred_bytes));
    if (at == NULL || d->succ_end == NULL || d->pred_end == NULL || d->succ == NULL ||
        d->pred == NULL || (d->opts->edge_bytes != NULL && d->pred_bytes == NULL))
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < d->e; i++) {
        d->succ_end[g->edge_from[i] + 1]++;
        d->pred_end[g->edge_to[i] + 1]++;
    }
    for (uint32_t t = 0; t < d->n; t++) {
        d->succ_end[t + 1] += d->succ_end[t];
        d->pred_end[t + 1] += d->pred_end[t];
    }
    memcpy(at, d->succ_end, n * sizeof(*at));
    for (uint32_t i = 0; i < d->e; i++)
        d->succ[at[g->edge_from[i]]++] = g->edge_to[i];
    memcpy(at, d->pred_end, n * sizeof(*at));
    for (uint32_t i = 0; i < d->e; i++) {
        const uint32_t k = at[g->edge_to[i]]++;

        d->pred[k] = g->edge_from[i];
        if (d->pred_bytes != NULL)
            d->pred_bytes[k] = d->opts->edge_bytes[i];
    }
    return HEDDLE_OK;
}

static heddle_status take_order(struct heddle_scratch *m, struct heddle_offline_dag *d)
{
    const struct heddle_offline_opts *opts = d->opts;
    uint32_t *wait = heddle_scratch_get(m, d->n, sizeof(*wait));
    uint32_t n = 0;
    bool goes_up = true;

    d->topo = heddle_scratch_get(m, d->n, sizeof(*d->topo));
    if (d->topo == NULL || wait == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < d->n; t++)
        for (uint32_t i = d->pred_end[t]; i < d->pred_end[t + 1]; i++)
            goes_up = goes_up && d->pred[i] < t;
    for (uint32_t t = 0; t < d->n; t++) {
        wait[t] = d->pred_end[t + 1] - d->pred_end[t];
        if (goes_up || wait[t] == 0)
            d->topo[n++] = t;
    }
    for (uint32_t i = 0; i < n && !goes_up; i++) {
        const uint32_t t = d->topo[i];

        for (uint32_t k = d->succ_end[t]; k < d->succ_end[t + 1]; k++)
            if (--wait[d->succ[k]] == 0)
                d->topo[n++] = d->succ[k];
    }
    if (n < d->n)
        return HEDDLE_OFFLINE_FAIL(opts, HEDDLE_ECYCLE, "the edges form a cycle");
    return HEDDLE_OK;
}

heddle_status heddle_offline_build(const struct heddle_bound_graph *g,
                                   const struct heddle_offline_opts *opts, struct heddle_scratch *m,
                                   struct heddle_offline_dag *d)
{
    heddle_status st = check_shape(g, opts);

    *d = (struct heddle_offline_dag){.n = g->ntasks,
                                     .e = g->nedges,
                                     .graph = g,
                                     .opts = opts,
                                     .latency = opts->latency,
                                     .byte_time = opts->byte_time,
                                     .release = opts->release};
    d->is_plain = opts->release == NULL && opts->edge_bytes == NULL;
    if (st == HEDDLE_OK)
        st = check_extras(g, opts);
    if (st == HEDDLE_OK)
        st = take_workers(g, m, d);
    if (st == HEDDLE_OK)
        st = take_times(g, m, d);
    if (st == HEDDLE_OK)
        st = take_costs(opts, d);
    if (st == HEDDLE_OK)
        st = take_edges(g, m, d);
    if (st == HEDDLE_OK)
        st = take_order(m, d);
    return st;
}

bool heddle_offline_sched_get(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                              struct heddle_offline_sched *s)
{
    *s = (struct heddle_offline_sched){0};
    s->type = heddle_scratch_get(m, d->n, sizeof(*s->type));
    s->worker = heddle_scratch_get(m, d->n, sizeof(*s->worker));
    s->start = heddle_scratch_get(m, d->n, sizeof(*s->start));
    s->end = heddle_scratch_get(m, d->n, sizeof(*s->end));
    return s->type != NULL && s->worker != NULL && s->start != NULL && s->end != NULL;
}

void heddle_offline_sched_copy(const struct heddle_offline_dag *d, struct heddle_offline_sched *to,
                               const struct heddle_offline_sched *from)
{
    to->makespan = from->makespan;
    memcpy(to->type, from->type, d->n * sizeof(*to->type));
    memcpy(to->worker, from->worker, d->n * sizeof(*to->worker));
    memcpy(to->start, from->start, d->n * sizeof(*to->start));
    memcpy(to->end, from->end, d->n * sizeof(*to->end));
}
