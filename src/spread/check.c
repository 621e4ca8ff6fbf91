/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: is a spread what it says? Shares no code with what makes spreads: loads are added up
 * value by value and operator by operator from the caller's arrays.
 */
#include <math.h>
#include <stdbool.h>

#include "base/assert.h"
#include "base/scratch.h"
#include "base/sized.h"
#include "base/why.h"
#include "heddle/spread.h"

#define CHECK_EPS 1e-9

struct checker {
    const struct heddle_spread_graph *g;
    const struct heddle_spread_machine *m;
    const struct heddle_spread_opts *o;
    const struct heddle_spread_result *s;
    double *end;      /* [nops] */
    uint32_t *needed; /* [nvalues] bits: memories that need it */
    double *busy, *in, *out;
};

#define REFUSE(c, ...) heddle_why((c)->o->why, (c)->o->why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static bool differs(double a, double b)
{
    return !(fabs(a - b) <= CHECK_EPS * (fabs(a) + fabs(b)) + 1e-300);
}

static uint32_t node_of(const struct checker *c, const uint32_t *cls, uint32_t op)
{
    return op == UINT32_MAX ? 0 : c->m->node[cls[op]];
}

static double copy_in(const struct checker *c, uint32_t node, uint64_t bytes)
{
    const struct heddle_spread_node *n = &c->m->memory[node];

    return node == 0 ? 0.0 : n->in_latency + (double)bytes / n->in_rate;
}

static double copy_out(const struct checker *c, uint32_t node, uint64_t bytes)
{
    const struct heddle_spread_node *n = &c->m->memory[node];

    return node == 0 ? 0.0 : n->out_latency + (double)bytes / n->out_rate;
}

/* When a value is in a memory, on a route alone. */
static double there(const struct checker *c, const uint32_t *cls, uint32_t v, uint32_t node)
{
    const uint32_t maker = c->g->maker[v], home = node_of(c, cls, maker);
    const double made = maker == UINT32_MAX ? 0.0 : c->end[maker];

    if (home == node)
        return made;
    return made + copy_out(c, home, c->g->bytes[v]) + copy_in(c, node, c->g->bytes[v]);
}

/* Operators one after another: their ends, and the latency of the route. Reads are in any order, so
 * this goes over all of them for each operator: slow, and simple. */
static heddle_status check_times(const struct checker *c, uint32_t j)
{
    const struct heddle_spread_route *r = &c->s->route[j];
    double latency = 0.0;

    for (uint32_t i = 0; i < c->g->nops; i++) {
        const double t = c->g->time[(size_t)i * c->m->nclasses + r->cls[i]];
        const uint32_t node = c->m->node[r->cls[i]];
        double begin = 0.0;

        if (!(t < INFINITY))
            return REFUSE(c, "route %u: operator %u cannot run on class %u", j, i, r->cls[i]);
        for (uint32_t k = 0; k < c->g->nreads; k++)
            if (c->g->reader[k] == i)
                begin = fmax(begin, there(c, r->cls, c->g->value[k], node));
        if (c->s->is_streamed[(size_t)i * c->m->nnodes + node])
            begin = fmax(begin, copy_in(c, node, c->g->weights == NULL ? 0 : c->g->weights[i]));
        c->end[i] = begin + t;
        latency = fmax(latency, c->end[i]);
    }
    for (uint32_t k = 0; k < c->g->nreads; k++)
        if (c->g->reader[k] == UINT32_MAX)
            latency = fmax(latency, there(c, r->cls, c->g->value[k], 0));
    return differs(latency, r->latency) ? REFUSE(c, "route %u has another latency", j) : HEDDLE_OK;
}

static heddle_status check_loads(const struct checker *c, uint32_t j)
{
    const struct heddle_spread_route *r = &c->s->route[j];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < c->g->nops; i++) {
        const uint32_t cls = r->cls[i], node = c->m->node[cls];
        const uint64_t w = c->g->weights == NULL ? 0 : c->g->weights[i];

        c->busy[cls] +=
            r->rate * c->g->time[(size_t)i * c->m->nclasses + cls] / c->m->nworkers[cls];
        if (c->s->is_streamed[(size_t)i * c->m->nnodes + node]) {
            c->in[node] += r->rate * copy_in(c, node, w);
            bytes += w;
        }
    }
    for (uint32_t v = 0; v < c->g->nvalues; v++)
        c->needed[v] = 0;
    for (uint32_t k = 0; k < c->g->nreads; k++)
        c->needed[c->g->value[k]] |= 1u << node_of(c, r->cls, c->g->reader[k]);
    for (uint32_t v = 0; v < c->g->nvalues; v++) {
        const uint32_t home = node_of(c, r->cls, c->g->maker[v]);
        const uint32_t away = c->needed[v] & ~(1u << home);

        if (away != 0 && home != 0) {
            c->out[home] += r->rate * copy_out(c, home, c->g->bytes[v]);
            bytes += c->g->bytes[v];
        }
        for (uint32_t k = 1; k < c->m->nnodes; k++)
            if ((away >> k & 1) != 0) {
                c->in[k] += r->rate * copy_in(c, k, c->g->bytes[v]);
                bytes += c->g->bytes[v];
            }
    }
    return bytes != r->link_bytes ? REFUSE(c, "route %u has other bytes over links", j) : HEDDLE_OK;
}

static heddle_status check_routes(const struct checker *c)
{
    double rates = 0.0, latency = 0.0;

    for (uint32_t j = 0; j < c->s->nroutes; j++) {
        const struct heddle_spread_route *r = &c->s->route[j];

        if (r->cls == NULL || !(r->rate > 0.0 && r->rate < INFINITY))
            return REFUSE(c, "route %u has no classes, or no rate", j);
        for (uint32_t i = 0; i < c->g->nops; i++)
            if (r->cls[i] >= c->m->nclasses)
                return REFUSE(c, "route %u: operator %u is on a class that does not exist", j, i);
        HEDDLE_TRY(check_times(c, j));
        HEDDLE_TRY(check_loads(c, j));
        rates += r->rate;
        latency = fmax(latency, r->latency);
    }
    if (differs(1.0 / rates, c->s->period))
        return REFUSE(c, "the period is not what the rates say");
    if (differs(latency, c->s->latency))
        return REFUSE(c, "the latency is not the longest of the routes");
    if (!(c->s->bound >= 0.0 && c->s->bound <= c->s->period * (1.0 + CHECK_EPS)))
        return REFUSE(c, "the bound is above the period");
    return HEDDLE_OK;
}

static heddle_status check_use(const struct checker *c, const char *what, uint32_t i, double use,
                               double claim)
{
    if (differs(use, claim) && fabs(use - claim) > CHECK_EPS)
        return REFUSE(c, "%s %u is busy for another part of the time", what, i);
    if (use > 1.0 + CHECK_EPS)
        return REFUSE(c, "%s %u has more to do than it can", what, i);
    return HEDDLE_OK;
}

static heddle_status check_memory(const struct checker *c, uint32_t k)
{
    uint64_t kept = 0, heaviest = 0;

    for (uint32_t i = 0; i < c->g->nops && c->g->weights != NULL; i++) {
        const uint64_t w = c->g->weights[i];
        bool is_here = false;

        for (uint32_t j = 0; j < c->s->nroutes; j++)
            is_here |= c->m->node[c->s->route[j].cls[i]] == k;
        if (!is_here)
            continue;
        if (!c->s->is_streamed[(size_t)i * c->m->nnodes + k])
            kept += w;
        else if (w > heaviest)
            heaviest = w;
    }
    if (heaviest > 0 && k == 0)
        return REFUSE(c, "weights are streamed to the host's memory");
    if (kept + 2 * heaviest != c->s->memory[k])
        return REFUSE(c, "memory %u has other bytes", k);
    if (c->m->memory[k].bytes != 0 && kept + 2 * heaviest > c->m->memory[k].bytes)
        return REFUSE(c, "the weights do not fit into memory %u", k);
    return HEDDLE_OK;
}

static heddle_status check_all(struct checker *c, struct heddle_scratch *mem)
{
    c->end = heddle_scratch_get(mem, c->g->nops, sizeof(*c->end));
    c->needed = heddle_scratch_get(mem, (size_t)c->g->nvalues + 1, sizeof(*c->needed));
    c->busy = heddle_scratch_get(mem, c->m->nclasses, sizeof(*c->busy));
    c->in = heddle_scratch_get(mem, c->m->nnodes, sizeof(*c->in));
    c->out = heddle_scratch_get(mem, c->m->nnodes, sizeof(*c->out));
    if (c->end == NULL || c->needed == NULL || c->busy == NULL || c->in == NULL || c->out == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(check_routes(c));
    for (uint32_t r = 0; r < c->m->nclasses; r++)
        HEDDLE_TRY(check_use(c, "class", r, c->busy[r], c->s->busy[r]));
    for (uint32_t k = 0; k < c->m->nnodes; k++) {
        HEDDLE_TRY(check_use(c, "the link to memory", k, c->in[k], c->s->busy_in[k]));
        HEDDLE_TRY(check_use(c, "the link from memory", k, c->out[k], c->s->busy_out[k]));
        HEDDLE_TRY(check_memory(c, k));
    }
    return HEDDLE_OK;
}

heddle_status heddle_spread_check(const struct heddle_spread_graph *graph,
                                  const struct heddle_spread_machine *machine,
                                  const struct heddle_spread_opts *opts,
                                  const struct heddle_spread_result *result)
{
    struct heddle_spread_opts o;
    struct heddle_spread_graph g;
    struct heddle_spread_machine m;
    struct heddle_spread_result s;
    struct checker c = {.g = &g, .m = &m, .o = &o, .s = &s};
    struct heddle_scratch mem;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_spread_opts, &o, opts));
    if (graph == NULL || machine == NULL || result == NULL)
        return REFUSE(&c, "there is no graph, no machine, or no spread");
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_spread_graph, &g, graph, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_spread_machine, &m, machine, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_spread_result, &s, result, o.why, o.why_bytes));
    if (s.nops != g.nops || s.nroutes == 0)
        return REFUSE(&c, "the spread has %u operators and %u routes, the graph %u", s.nops,
                      s.nroutes, g.nops);
    if (s.route == NULL || s.busy == NULL || s.busy_in == NULL || s.busy_out == NULL ||
        s.memory == NULL || s.is_streamed == NULL)
        return REFUSE(&c, "an array of the spread is missing");
    mem = heddle_scratch_make(o.alloc);
    st = check_all(&c, &mem);
    heddle_scratch_drop(&mem);
    return st;
}
