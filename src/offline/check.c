/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: is it a schedule? Shares no code with what makes them.
 */
#include <math.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/offline.h"

struct checker {
    const struct heddle_bound_graph *g;
    const struct heddle_offline_opts *o;
    const struct heddle_offline_result *s;
    double eps;
};

#define REFUSE(c, ...) heddle_why((c)->o->why, (c)->o->why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status check_tasks(const struct checker *c)
{
    const struct heddle_bound_graph *g = c->g;
    const struct heddle_offline_result *s = c->s;
    double last = 0.0;

    for (uint32_t t = 0; t < g->ntasks; t++) {
        const uint32_t row = g->kind != NULL ? g->kind[t] : t, r = s->type[t];
        uint32_t first = 0;
        double time;

        if (r >= g->ntypes)
            return REFUSE(c, "task %u is on type %u of %u", t, r, g->ntypes);
        for (uint32_t i = 0; i < r; i++)
            first += g->nworkers[i];
        if (s->worker[t] < first || s->worker[t] >= first + g->nworkers[r])
            return REFUSE(c, "task %u is on worker %u, which is not of type %u", t, s->worker[t],
                          r);
        time = g->time[(size_t)row * g->ntypes + r];
        if (!(time < INFINITY))
            return REFUSE(c, "task %u cannot run on type %u", t, r);
        if (!(s->start[t] >= 0.0))
            return REFUSE(c, "task %u starts before time 0", t);
        if (!(fabs(s->end[t] - s->start[t] - time) <= c->eps))
            return REFUSE(c, "task %u does not last as long as it takes", t);
        if (c->o->release != NULL && s->start[t] < c->o->release[t] - c->eps)
            return REFUSE(c, "task %u starts before its release", t);
        last = fmax(last, s->end[t]);
    }
    if (!(fabs(last - s->makespan) <= c->eps))
        return REFUSE(c, "the makespan is not the last end");
    return HEDDLE_OK;
}

static heddle_status check_edges(const struct checker *c)
{
    const struct heddle_bound_graph *g = c->g;
    const struct heddle_offline_result *s = c->s;

    for (uint32_t e = 0; e < g->nedges; e++) {
        const uint32_t a = g->edge_from[e], b = g->edge_to[e];
        double gap = 0.0;

        if (a >= g->ntasks || b >= g->ntasks)
            return REFUSE(c, "edge %u goes nowhere", e);
        if (c->o->edge_bytes != NULL && c->o->edge_bytes[e] > 0.0 && s->worker[a] != s->worker[b]) {
            const uint32_t link = s->type[a] * g->ntypes + s->type[b];

            gap = c->o->latency[link] + c->o->edge_bytes[e] * c->o->byte_time[link];
        }
        if (!(s->start[b] >= s->end[a] + gap - c->eps))
            return REFUSE(c, "task %u starts before task %u allows", b, a);
    }
    return HEDDLE_OK;
}

static bool is_before(const struct heddle_offline_result *s, uint32_t a, uint32_t b)
{
    if (s->worker[a] != s->worker[b])
        return s->worker[a] < s->worker[b];
    if (s->start[a] != s->start[b])
        return s->start[a] < s->start[b];
    if (s->end[a] != s->end[b])
        return s->end[a] < s->end[b];
    return a < b;
}

static void sift(const struct heddle_offline_result *s, uint32_t *v, uint32_t i, uint32_t n)
{
    for (uint32_t k; (k = 2 * i + 1) < n; i = k) {
        uint32_t swap;

        if (k + 1 < n && is_before(s, v[k], v[k + 1]))
            k++;
        if (!is_before(s, v[i], v[k]))
            return;
        swap = v[i];
        v[i] = v[k];
        v[k] = swap;
    }
}

/* Tasks sorted by worker and start: each ends before the next one starts. */
static heddle_status check_overlap(const struct checker *c, uint32_t *v)
{
    const struct heddle_offline_result *s = c->s;
    const uint32_t n = c->g->ntasks;
    uint32_t prev;

    for (uint32_t i = 0; i < n; i++)
        v[i] = i;
    for (uint32_t i = n / 2; i-- > 0;)
        sift(s, v, i, n);
    for (uint32_t k = n; k-- > 1;) {
        const uint32_t swap = v[0];

        v[0] = v[k];
        v[k] = swap;
        sift(s, v, 0, k);
    }
    if (n == 0)
        return HEDDLE_OK;
    prev = v[0]; /* ends last of those so far on its worker */
    for (uint32_t i = 1; i < n; i++) {
        if (s->worker[v[i]] == s->worker[prev] && s->start[v[i]] < s->end[prev] - c->eps)
            return REFUSE(c, "tasks %u and %u overlap on worker %u", prev, v[i], s->worker[prev]);
        if (s->worker[v[i]] != s->worker[prev] || s->end[v[i]] > s->end[prev])
            prev = v[i];
    }
    return HEDDLE_OK;
}

heddle_status heddle_offline_check(const struct heddle_bound_graph *graph,
                                   const struct heddle_offline_opts *opts,
                                   const struct heddle_offline_result *result)
{
    struct heddle_offline_opts o;
    struct heddle_offline_result s;
    struct heddle_bound_graph g;
    struct checker c = {.g = &g, .o = &o, .s = &s};
    uint32_t *v;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_offline_opts, &o, opts));
    if (graph == NULL || result == NULL)
        return REFUSE(&c, "there is no graph, or no schedule");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, graph, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_offline_result, &s, result, o.why, o.why_bytes));
    if (s.ntasks != g.ntasks)
        return REFUSE(&c, "the schedule has %u tasks, the graph %u", s.ntasks, g.ntasks);
    if (s.ntasks > 0 && (s.type == NULL || s.worker == NULL || s.start == NULL || s.end == NULL))
        return REFUSE(&c, "an array of the schedule is missing");
    if (!(s.makespan >= 0.0 && s.makespan < INFINITY))
        return REFUSE(&c, "the makespan is no number");
    c.eps = 1e-9 * s.makespan;
    st = check_tasks(&c);
    if (st == HEDDLE_OK)
        st = check_edges(&c);
    if (st != HEDDLE_OK || g.ntasks == 0)
        return st;
    v = heddle_zalloc(o.alloc, g.ntasks, sizeof(*v));
    if (v == NULL)
        return HEDDLE_ENOMEM;
    st = check_overlap(&c, v);
    heddle_free(o.alloc, v, g.ntasks * sizeof(*v));
    return st;
}
