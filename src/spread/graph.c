/* SPDX-License-Identifier: BSD-3-Clause */
/* graph: is the problem one? Indices of who makes and who reads a value. */
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "spread/spread.h"

#define GRAPH_MOST  1e280 /* sums of times stay finite */
#define GRAPH_BYTES ((uint64_t)1 << 62)
enum { GRAPH_INDEX = 1 << 24 }; /* the most operators, values, reads */

static heddle_status graph_machine(const struct spread_problem *p)
{
    const struct heddle_spread_machine *m = &p->m;

    if (m->nclasses == 0 || m->nclasses > HEDDLE_SPREAD_CLASSES || m->nnodes == 0 ||
        m->nnodes > HEDDLE_SPREAD_NODES)
        return SPREAD_FAIL(p, HEDDLE_EINVAL, "%u classes and %u memories: 1 to %d and 1 to %d",
                           m->nclasses, m->nnodes, HEDDLE_SPREAD_CLASSES, HEDDLE_SPREAD_NODES);
    if (m->nworkers == NULL || m->node == NULL || m->memory == NULL)
        return SPREAD_FAIL(p, HEDDLE_EINVAL, "an array of the machine is missing");
    for (uint32_t r = 0; r < m->nclasses; r++)
        if (m->nworkers[r] == 0 || m->node[r] >= m->nnodes)
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "class %u has no worker, or no memory", r);
    for (uint32_t k = 1; k < m->nnodes; k++) {
        const struct heddle_spread_node *n = &m->memory[k];

        if (!(n->in_rate > 0.0 && n->in_rate < INFINITY && n->out_rate > 0.0 &&
              n->out_rate < INFINITY && n->in_latency >= 0.0 && n->in_latency < GRAPH_MOST &&
              n->out_latency >= 0.0 && n->out_latency < GRAPH_MOST))
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "the links of memory %u make no sense", k);
    }
    return HEDDLE_OK;
}

static heddle_status graph_times(const struct spread_problem *p)
{
    const struct heddle_spread_graph *g = &p->g;
    double sum = 0.0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < g->nops; i++) {
        double least = INFINITY;

        for (uint32_t r = 0; r < p->m.nclasses; r++) {
            const double t = spread_time(p, i, r);

            if (!(t >= 0.0))
                return SPREAD_FAIL(p, HEDDLE_EINVAL, "operator %u has a time that is none", i);
            least = fmin(least, t);
            sum += t < INFINITY ? t : 0.0;
        }
        if (!(least < INFINITY))
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "operator %u can run nowhere", i);
        if (spread_weights(p, i) >= GRAPH_BYTES - bytes)
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "the weights are too large");
        bytes += spread_weights(p, i);
    }
    if (!(sum < GRAPH_MOST))
        return SPREAD_FAIL(p, HEDDLE_EINVAL, "the times are too large");
    for (uint32_t v = 0; v < g->nvalues; v++) {
        if (g->bytes[v] >= GRAPH_BYTES - bytes)
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "the values are too large");
        bytes += g->bytes[v];
    }
    return HEDDLE_OK;
}

static heddle_status graph_check(const struct spread_problem *p)
{
    const struct heddle_spread_graph *g = &p->g;

    HEDDLE_TRY(graph_machine(p));
    if (g->nops == 0 || g->nops > GRAPH_INDEX || g->nvalues > GRAPH_INDEX ||
        g->nreads > GRAPH_INDEX)
        return SPREAD_FAIL(p, HEDDLE_EINVAL, "%u operators, %u values, %u reads: 1 to %d", g->nops,
                           g->nvalues, g->nreads, GRAPH_INDEX);
    if (g->time == NULL || (g->nvalues > 0 && (g->bytes == NULL || g->maker == NULL)) ||
        (g->nreads > 0 && (g->value == NULL || g->reader == NULL)))
        return SPREAD_FAIL(p, HEDDLE_EINVAL, "an array of the graph is missing");
    HEDDLE_TRY(graph_times(p));
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (g->maker[v] != UINT32_MAX && g->maker[v] >= g->nops)
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "value %u has a maker that does not exist", v);
    for (uint32_t i = 0; i < g->nreads; i++) {
        if (g->value[i] >= g->nvalues || (g->reader[i] != UINT32_MAX && g->reader[i] >= g->nops))
            return SPREAD_FAIL(p, HEDDLE_EINVAL,
                               "read %u names a value or an operator that does not exist", i);
        if (g->reader[i] != UINT32_MAX && g->maker[g->value[i]] != UINT32_MAX &&
            g->maker[g->value[i]] >= g->reader[i])
            return SPREAD_FAIL(p, HEDDLE_EINVAL, "operator %u reads what is made later",
                               g->reader[i]);
    }
    return HEDDLE_OK;
}

/* From pairs (key, item) to lists by key, each pair once. `last` [items] is scratch of zeros. */
static bool graph_lists(struct heddle_scratch *mem, uint32_t nkeys, const uint32_t *key,
                        const uint32_t *item, uint32_t n, struct spread_lists *out)
{
    uint32_t *at = heddle_scratch_get(mem, (size_t)nkeys + 1, sizeof(*at));
    uint32_t kept = 0;

    out->end = heddle_scratch_get(mem, (size_t)nkeys + 1, sizeof(*out->end));
    out->list = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*out->list));
    if (at == NULL || out->end == NULL || out->list == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != SPREAD_NONE)
            at[key[i] + 1]++;
    for (uint32_t k = 0; k < nkeys; k++)
        at[k + 1] += at[k];
    memcpy(out->end, at, ((size_t)nkeys + 1) * sizeof(*at));
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != SPREAD_NONE)
            out->list[at[key[i]]++] = item[i];
    for (uint32_t k = 0, from = 0; k < nkeys; k++) { /* drop what is there twice */
        const uint32_t to = out->end[k + 1], first = kept;

        for (uint32_t i = from; i < to; i++) {
            uint32_t j = first;

            while (j < kept && out->list[j] != out->list[i])
                j++;
            if (j == kept)
                out->list[kept++] = out->list[i];
        }
        from = to;
        out->end[k] = first;
        if (k + 1 == nkeys)
            out->end[nkeys] = kept;
    }
    return true;
}

static bool graph_index(struct spread_problem *p, struct heddle_scratch *mem)
{
    const struct heddle_spread_graph *g = &p->g;
    const uint32_t c = p->m.nclasses;
    uint32_t *self = heddle_scratch_get(mem, (size_t)g->nvalues + 1, sizeof(*self));

    p->load = heddle_scratch_get(mem, (size_t)g->nops * c, sizeof(*p->load));
    p->end = heddle_scratch_get(mem, g->nops, sizeof(*p->end));
    p->by_weight = heddle_scratch_get(mem, g->nops, sizeof(*p->by_weight));
    if (self == NULL || p->load == NULL || p->end == NULL || p->by_weight == NULL)
        return false;
    for (uint32_t v = 0; v < g->nvalues; v++)
        self[v] = v;
    for (uint32_t i = 0; i < g->nops; i++)
        for (uint32_t r = 0; r < c; r++)
            p->load[(size_t)i * c + r] = spread_time(p, i, r) / p->m.nworkers[r];
    return graph_lists(mem, g->nops, g->reader, g->value, g->nreads, &p->in) &&
           graph_lists(mem, g->nops, g->maker, self, g->nvalues, &p->made) &&
           graph_lists(mem, g->nvalues, g->value, g->reader, g->nreads, &p->used);
}

static bool graph_by_weight(struct spread_problem *p, struct heddle_scratch *mem)
{
    const uint32_t n = p->g.nops;
    struct heddle_pair *item = heddle_scratch_get(mem, n, sizeof(*item));
    struct heddle_pair *other = heddle_scratch_get(mem, n, sizeof(*other));

    if (item == NULL || other == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        item[i] = (struct heddle_pair){~spread_weights(p, i), i};
    heddle_sort_pairs(item, other, n);
    for (uint32_t i = 0; i < n; i++)
        p->by_weight[i] = (uint32_t)item[i].idx;
    return true;
}

static uint32_t graph_fastest(const struct spread_problem *p)
{
    double best = INFINITY;
    uint32_t fastest = SPREAD_NONE;

    for (uint32_t r = 0; r < p->m.nclasses; r++) {
        double sum = 0.0;

        for (uint32_t i = 0; i < p->g.nops; i++)
            sum += p->load[(size_t)i * p->m.nclasses + r];
        if (sum < best) {
            best = sum;
            fastest = r;
        }
    }
    return fastest;
}

heddle_status heddle_spread_build(const struct heddle_spread_graph *g,
                                  const struct heddle_spread_machine *m,
                                  const struct heddle_spread_opts *o, struct heddle_scratch *mem,
                                  struct spread_problem *out)
{
    *out = (struct spread_problem){.g = *g, .m = *m, .o = *o};
    HEDDLE_TRY(graph_check(out));
    out->nresources = m->nclasses + 2 * m->nnodes;
    if (!graph_index(out, mem) || !graph_by_weight(out, mem))
        return HEDDLE_ENOMEM;
    out->fastest = graph_fastest(out);
    for (uint32_t k = 1; k < m->nnodes; k++)
        out->has_limits |= m->memory[k].bytes != 0;
    return HEDDLE_OK;
}
