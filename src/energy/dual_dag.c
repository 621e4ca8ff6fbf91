/* SPDX-License-Identifier: BSD-3-Clause */
/* dual_dag: the caller's graph in topological order, for dual.c. */
#include <math.h>

#include "base/assert.h"
#include "energy/dual.h"

/* The tasks in an order in which all edges go forward; place[t]: where. */
static heddle_status sort_tasks(const struct heddle_bound_graph *g, struct heddle_scratch *m,
                                struct heddle_dual_dag *d, uint32_t *place)
{
    uint32_t *at = heddle_scratch_get(m, (size_t)d->n + 1, sizeof(*at));
    uint32_t *to = heddle_scratch_get(m, d->e, sizeof(*to));
    uint32_t *wait = heddle_scratch_get(m, d->n, sizeof(*wait));
    uint32_t n = 0;

    if (at == NULL || to == NULL || wait == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t e = 0; e < d->e; e++) {
        at[g->edge_from[e] + 1]++;
        wait[g->edge_to[e]]++;
    }
    for (uint32_t t = 0; t < d->n; t++)
        at[t + 1] += at[t];
    for (uint32_t e = d->e; e-- > 0;)
        to[--at[g->edge_from[e] + 1]] = g->edge_to[e];
    /* Now at[t + 1] is where the successors of t begin. */
    for (uint32_t t = 0; t < d->n; t++)
        if (wait[t] == 0)
            d->task[n++] = t;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = d->task[i];
        const uint32_t end = t + 1 < d->n ? at[t + 2] : d->e;

        place[t] = i;
        for (uint32_t k = at[t + 1]; k < end; k++)
            if (--wait[to[k]] == 0)
                d->task[n++] = to[k];
    }
    return n == d->n ? HEDDLE_OK : HEDDLE_ECYCLE;
}

static void take_edges(const struct heddle_bound_graph *g, const uint32_t *place,
                       struct heddle_dual_dag *d)
{
    for (uint32_t e = 0; e < d->e; e++)
        d->pred_end[place[g->edge_to[e]] + 1]++;
    for (uint32_t v = 0; v < d->n; v++)
        d->pred_end[v + 1] += d->pred_end[v];
    for (uint32_t e = d->e; e-- > 0;) {
        const uint32_t k = --d->pred_end[place[g->edge_to[e]] + 1];

        d->pred[k] = place[g->edge_from[e]];
        d->pred_edge[k] = e;
    }
    for (uint32_t v = 1; v < d->n; v++) /* back by one */
        d->pred_end[v] = d->pred_end[v + 1];
    if (d->n > 0)
        d->pred_end[d->n] = d->e;
}

static double fastest(const struct heddle_dual_dag *d, uint32_t v)
{
    const double *p = d->time + (size_t)d->row[v] * d->ntypes;
    double least = INFINITY;

    for (uint32_t r = 0; r < d->r; r++)
        least = fmin(least, p[d->type[r]]);
    return least;
}

static void measure(struct heddle_dual_dag *d)
{
    for (uint32_t v = 0; v < d->n; v++)
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            d->head[v] = fmax(d->head[v], d->head[d->pred[i]] + fastest(d, d->pred[i]));
    for (uint32_t v = d->n; v-- > 0;)
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            d->tail[d->pred[i]] = fmax(d->tail[d->pred[i]], d->tail[v] + fastest(d, v));
}

heddle_status heddle_dual_build(const struct heddle_energy_graph *eg, double deadline,
                                struct heddle_scratch *m, struct heddle_dual_dag *d)
{
    const struct heddle_bound_graph *g = eg->graph;
    uint32_t *place = heddle_scratch_get(m, g->ntasks, sizeof(*place));

    *d = (struct heddle_dual_dag){.n = g->ntasks,
                                  .e = g->nedges,
                                  .ntypes = g->ntypes,
                                  .time = g->time,
                                  .joules = eg->joules,
                                  .idle = eg->idle,
                                  .deadline = deadline};
    d->type = heddle_scratch_get(m, d->ntypes, sizeof(*d->type));
    d->nworkers = heddle_scratch_get(m, d->ntypes, sizeof(*d->nworkers));
    d->row = heddle_scratch_get(m, d->n, sizeof(*d->row));
    d->task = heddle_scratch_get(m, d->n, sizeof(*d->task));
    d->pred_end = heddle_scratch_get(m, (size_t)d->n + 1, sizeof(*d->pred_end));
    d->pred = heddle_scratch_get(m, d->e, sizeof(*d->pred));
    d->pred_edge = heddle_scratch_get(m, d->e, sizeof(*d->pred_edge));
    d->head = heddle_scratch_get(m, d->n, sizeof(*d->head));
    d->tail = heddle_scratch_get(m, d->n, sizeof(*d->tail));
    if (place == NULL || d->type == NULL || d->nworkers == NULL || d->row == NULL ||
        d->task == NULL || d->pred_end == NULL || d->pred == NULL || d->pred_edge == NULL ||
        d->head == NULL || d->tail == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t r = 0; r < g->ntypes; r++) {
        if (g->nworkers[r] == 0)
            continue;
        d->nworkers[d->r] = g->nworkers[r];
        d->type[d->r++] = r;
    }
    HEDDLE_TRY(sort_tasks(g, m, d, place));
    take_edges(g, place, d);
    for (uint32_t v = 0; v < d->n; v++)
        d->row[v] = g->kind != NULL ? g->kind[d->task[v]] : d->task[v];
    measure(d);
    return HEDDLE_OK;
}
