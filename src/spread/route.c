/* SPDX-License-Identifier: BSD-3-Clause */
/* route: what a route costs, and what of its weights is streamed. */
#include <string.h>

#include "base/assert.h"
#include "spread/spread.h"

heddle_status heddle_spread_route(const struct spread_problem *p, struct heddle_scratch *mem,
                                  struct spread_route *out)
{
    *out = (struct spread_route){.period = INFINITY};
    out->cls = heddle_scratch_get(mem, p->g.nops, sizeof(*out->cls));
    out->is_streamed = heddle_scratch_get(mem, p->g.nops, sizeof(*out->is_streamed));
    return out->cls != NULL && out->is_streamed != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

void heddle_spread_copy(const struct spread_problem *p, struct spread_route *to,
                        const struct spread_route *from)
{
    uint32_t *cls = to->cls;
    uint8_t *is_streamed = to->is_streamed;

    memcpy(cls, from->cls, p->g.nops * sizeof(*cls));
    memcpy(is_streamed, from->is_streamed, p->g.nops * sizeof(*is_streamed));
    *to = *from;
    to->cls = cls;
    to->is_streamed = is_streamed;
}

static uint32_t route_node(const struct spread_problem *p, const struct spread_route *r,
                           uint32_t op)
{
    return op == UINT32_MAX ? 0 : p->m.node[r->cls[op]];
}

/* When a value is in a memory. */
static double route_arrival(const struct spread_problem *p, const struct spread_route *r,
                            uint32_t value, uint32_t node)
{
    const uint32_t maker = p->g.maker[value], home = route_node(p, r, maker);
    const double bytes = (double)p->g.bytes[value];
    double t = maker == UINT32_MAX ? 0.0 : p->end[maker];

    if (home == node)
        return t;
    t += home != 0 ? spread_out(p, home, bytes) : 0.0;
    return t + (node != 0 ? spread_in(p, node, bytes) : 0.0);
}

static bool route_ops(const struct spread_problem *p, struct spread_route *r)
{
    const uint32_t c = p->m.nclasses;

    for (uint32_t i = 0; i < p->g.nops; i++) {
        const uint32_t cls = r->cls[i], node = p->m.node[cls];
        double begin = 0.0;

        if (!(spread_time(p, i, cls) < INFINITY))
            return false;
        r->load[cls] += p->load[(size_t)i * c + cls];
        for (uint32_t k = p->in.end[i]; k < p->in.end[i + 1]; k++)
            begin = fmax(begin, route_arrival(p, r, p->in.list[k], node));
        if (r->is_streamed[i]) {
            const double t = spread_in(p, node, (double)spread_weights(p, i));

            r->load[c + 2 * node] += t;
            r->link_bytes += spread_weights(p, i);
            begin = fmax(begin, t);
        }
        p->end[i] = begin + spread_time(p, i, cls);
        r->latency = fmax(r->latency, p->end[i]);
    }
    return true;
}

/* Copies of a value: once from where it is made, once to each memory that needs it. */
static void route_value(const struct spread_problem *p, struct spread_route *r, uint32_t v)
{
    const uint32_t home = route_node(p, r, p->g.maker[v]), c = p->m.nclasses;
    const double bytes = (double)p->g.bytes[v];
    uint32_t needed = 0;

    for (uint32_t k = p->used.end[v]; k < p->used.end[v + 1]; k++) {
        needed |= 1u << route_node(p, r, p->used.list[k]);
        if (p->used.list[k] == SPREAD_NONE)
            r->latency = fmax(r->latency, route_arrival(p, r, v, 0));
    }
    needed &= ~(1u << home);
    if (needed != 0 && home != 0) {
        r->load[c + 2 * home + 1] += spread_out(p, home, bytes);
        r->link_bytes += p->g.bytes[v];
    }
    for (uint32_t k = 1; k < p->m.nnodes; k++)
        if ((needed & 1u << k) != 0) {
            r->load[c + 2 * k] += spread_in(p, k, bytes);
            r->link_bytes += p->g.bytes[v];
        }
}

bool heddle_spread_measure(const struct spread_problem *p, struct spread_route *r)
{
    memset(r->load, 0, sizeof(r->load));
    r->period = INFINITY;
    r->latency = 0.0;
    r->link_bytes = 0;
    if (!route_ops(p, r))
        return false;
    for (uint32_t v = 0; v < p->g.nvalues; v++)
        route_value(p, r, v);
    r->period = 0.0;
    for (uint32_t i = 0; i < p->nresources; i++)
        r->period = fmax(r->period, r->load[i]);
    return true;
}

/* --- weights ---------------------------------------------------------------------------------- */

struct choice {
    uint32_t from, upto; /* in by_weight: streamed ... */
    uint32_t last;       /* ... and this operator; SPREAD_NONE: none */
    uint64_t bytes;
};

/* The operators on `node`, of by_weight from `from` on, until `need` bytes are gone; the last of
 * them is the lightest that is enough. */
static bool route_choose(const struct spread_problem *p, const struct spread_route *r,
                         uint32_t node, uint32_t from, uint64_t need, struct choice *best)
{
    struct choice c = {from, from, SPREAD_NONE, 0};

    for (uint32_t i = from; i < p->g.nops; i++) {
        const uint32_t op = p->by_weight[i];
        const uint64_t w = spread_weights(p, op);

        if (p->m.node[r->cls[op]] != node || w == 0)
            continue;
        if (c.bytes + w >= need) {
            c.last = op; /* a lighter one may be enough as well */
        } else if (c.last == SPREAD_NONE) {
            c.bytes += w;
            c.upto = i + 1;
        } else {
            break;
        }
    }
    if (c.last == SPREAD_NONE)
        return false;
    c.bytes += spread_weights(p, c.last);
    if (c.bytes < best->bytes)
        *best = c;
    return true;
}

bool heddle_spread_fit_node(const struct spread_problem *p, struct spread_route *r, uint32_t node)
{
    const uint64_t limit = p->m.memory[node].bytes;
    struct choice best = {.bytes = UINT64_MAX};
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->g.nops; i++)
        if (p->m.node[r->cls[i]] == node)
            r->is_streamed[i] = 0;
    for (uint32_t i = 0; i < p->g.nops; i++)
        if (p->m.node[r->cls[i]] == node)
            sum += spread_weights(p, i);
    if (limit == 0 || sum <= limit)
        return true;
    for (uint32_t i = 0; i < p->g.nops && node != 0; i++) {
        const uint32_t op = p->by_weight[i];
        const uint64_t room = 2 * spread_weights(p, op);

        if (p->m.node[r->cls[op]] == node && room > 0 && room <= limit)
            (void)route_choose(p, r, node, i, sum - (limit - room), &best);
    }
    if (best.bytes == UINT64_MAX)
        return false;
    for (uint32_t i = best.from; i < best.upto; i++)
        if (p->m.node[r->cls[p->by_weight[i]]] == node)
            r->is_streamed[p->by_weight[i]] = spread_weights(p, p->by_weight[i]) > 0;
    r->is_streamed[best.last] = 1;
    return true;
}

bool heddle_spread_fit(const struct spread_problem *p, struct spread_route *r)
{
    for (uint32_t k = 0; k < p->m.nnodes; k++)
        if (!heddle_spread_fit_node(p, r, k))
            return false;
    return heddle_spread_measure(p, r);
}

heddle_status heddle_spread_alone(const struct spread_problem *p, struct heddle_scratch *mem,
                                  const struct spread_route *r, struct spread_set *out)
{
    out->n = 1;
    out->route = heddle_scratch_get(mem, 1, sizeof(*out->route));
    out->rate = heddle_scratch_get(mem, 1, sizeof(*out->rate));
    if (out->route == NULL || out->rate == NULL)
        return HEDDLE_ENOMEM;
    if (!(r->period < INFINITY))
        return SPREAD_FAIL(p, HEDDLE_ENOENT, "the method found no spread that fits");
    out->route[0] = *r;
    out->rate[0] = 1.0 / r->period;
    return HEDDLE_OK;
}

bool heddle_spread_is_convex(const struct spread_problem *p, const uint32_t *cls)
{
    uint32_t reach[HEDDLE_SPREAD_CLASSES] = {0};

    for (uint32_t i = 0; i < p->g.nops; i++)
        for (uint32_t k = p->in.end[i]; k < p->in.end[i + 1]; k++) {
            const uint32_t maker = p->g.maker[p->in.list[k]];

            if (maker != UINT32_MAX && cls[maker] != cls[i])
                reach[cls[maker]] |= 1u << cls[i];
        }
    for (uint32_t b = 0; b < p->m.nclasses; b++)
        for (uint32_t a = 0; a < p->m.nclasses; a++)
            if ((reach[a] & 1u << b) != 0)
                reach[a] |= reach[b];
    for (uint32_t a = 0; a < p->m.nclasses; a++)
        if ((reach[a] & 1u << a) != 0)
            return false;
    return true;
}
