/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cut: the cheapest route when the use of every resource has a price.
 *
 * An operator is near (at the host's memory) or far. The cheapest sides are a minimum cut:
 * operator v is on the side of the source when it is near. Cutting source -> v costs the cheapest
 * far class, v -> sink the cheapest near one. A value that is made near costs a copy as soon as one
 * reader is far, through a node of its own (maker -> value, value -> readers without limit), and
 * the same backwards. What comes with a request, and who wants a result, is the source.
 *
 * The flow is made by shortest augmenting paths; each of them fills an edge exactly, so they end.
 * Any flow is a bound, whatever rounding does.
 */
#include <string.h>

#include "base/assert.h"
#include "spread/spread.h"

struct edge {
    uint32_t to, next; /* of the same node; the edge back is this one ^ 1 */
    double room;
};

struct net {
    uint32_t nnodes, nedges;
    uint32_t *head;  /* [nnodes] */
    uint32_t *via;   /* [nnodes] the edge of the path, SPREAD_NONE: not reached */
    uint32_t *queue; /* [nnodes] */
    struct edge *edge;
};

enum { NET_SOURCE = 0, NET_SINK = 1, NET_FIRST = 2 };

static void net_edge(struct net *n, uint32_t from, uint32_t to, double room)
{
    const uint32_t e = n->nedges;

    n->edge[e] = (struct edge){to, n->head[from], room};
    n->head[from] = e;
    n->edge[e + 1] = (struct edge){from, n->head[to], 0.0};
    n->head[to] = e + 1;
    n->nedges += 2;
}

static bool net_init(struct net *n, const struct spread_problem *p, struct heddle_scratch *mem)
{
    const size_t nedges =
        2 * (size_t)p->g.nops + 2 * (size_t)p->g.nreads + 2 * (size_t)p->g.nvalues;

    *n = (struct net){.nnodes = NET_FIRST + p->g.nops + 2 * p->g.nvalues};
    n->head = heddle_scratch_get(mem, n->nnodes, sizeof(*n->head));
    n->via = heddle_scratch_get(mem, n->nnodes, sizeof(*n->via));
    n->queue = heddle_scratch_get(mem, n->nnodes, sizeof(*n->queue));
    n->edge = heddle_scratch_get(mem, 2 * nedges, sizeof(*n->edge));
    if (n->head == NULL || n->via == NULL || n->queue == NULL || n->edge == NULL)
        return false;
    memset(n->head, 0xff, n->nnodes * sizeof(*n->head));
    return true;
}

/* A shortest path with room; via[] tells what the source reaches. */
static bool net_path(struct net *n)
{
    uint32_t from = 0, upto = 1;

    memset(n->via, 0xff, n->nnodes * sizeof(*n->via));
    n->via[NET_SOURCE] = 0;
    n->queue[0] = NET_SOURCE;
    while (from < upto) {
        const uint32_t v = n->queue[from++];

        for (uint32_t e = n->head[v]; e != SPREAD_NONE; e = n->edge[e].next)
            if (n->edge[e].room > 0.0 && n->via[n->edge[e].to] == SPREAD_NONE) {
                n->via[n->edge[e].to] = e;
                n->queue[upto++] = n->edge[e].to;
            }
    }
    return n->via[NET_SINK] != SPREAD_NONE;
}

static double net_flow(struct net *n)
{
    double flow = 0.0;

    while (net_path(n)) {
        double room = INFINITY;

        for (uint32_t v = NET_SINK; v != NET_SOURCE; v = n->edge[n->via[v] ^ 1].to)
            room = fmin(room, n->edge[n->via[v]].room);
        for (uint32_t v = NET_SINK; v != NET_SOURCE; v = n->edge[n->via[v] ^ 1].to) {
            n->edge[n->via[v]].room -= room;
            n->edge[n->via[v] ^ 1].room += room;
        }
        flow += room;
    }
    return flow;
}

/* --- prices --------------------------------------------------------------------------------- */

struct side {
    double cost;
    uint32_t cls; /* SPREAD_NONE: cannot run on this side */
};

/* The cheapest class of an operator on a side. */
static struct side cut_side(const struct spread_problem *p, const struct spread_prices *x,
                            uint32_t op, bool is_far)
{
    const uint32_t c = p->m.nclasses;
    struct side best = {INFINITY, SPREAD_NONE};

    for (uint32_t r = 0; r < c; r++) {
        const uint32_t node = p->m.node[r];
        uint8_t kept;
        double cost;

        if ((node != 0) != is_far || !(spread_time(p, op, r) < INFINITY))
            continue;
        cost = x->price[r] * p->load[(size_t)op * c + r];
        kept = x->weights != NULL ? x->weights[(size_t)op * p->m.nnodes + node] : SPREAD_KEPT;
        if (kept == SPREAD_NOT_HERE)
            continue;
        if (kept == SPREAD_STREAMED)
            cost += x->price[c + 2 * node] * spread_in(p, node, (double)spread_weights(p, op));
        if (cost < best.cost)
            best = (struct side){cost, r};
    }
    return best;
}

/* What a copy costs, to or from the far memory. */
static double cut_copy(const struct spread_problem *p, const struct spread_prices *x,
                       uint32_t value, bool is_out)
{
    const double bytes = (double)p->g.bytes[value];

    return x->price[p->m.nclasses + 2 + is_out] *
           (is_out ? spread_out(p, 1, bytes) : spread_in(p, 1, bytes));
}

static void cut_value(const struct spread_problem *p, const struct spread_prices *x, struct net *n,
                      uint32_t v)
{
    const uint32_t maker = p->g.maker[v] == UINT32_MAX ? NET_SOURCE : NET_FIRST + p->g.maker[v];
    const uint32_t in = NET_FIRST + p->g.nops + 2 * v, out = in + 1;

    if (p->used.end[v] == p->used.end[v + 1])
        return;
    net_edge(n, maker, in, cut_copy(p, x, v, false));
    if (maker != NET_SOURCE)
        net_edge(n, out, maker, cut_copy(p, x, v, true));
    for (uint32_t k = p->used.end[v]; k < p->used.end[v + 1]; k++) {
        const uint32_t reader = p->used.list[k];

        if (reader != SPREAD_NONE)
            net_edge(n, in, NET_FIRST + reader, INFINITY);
        if (maker != NET_SOURCE)
            net_edge(n, reader == SPREAD_NONE ? NET_SOURCE : NET_FIRST + reader, out, INFINITY);
    }
}

/* Without a far memory, or where an operator cannot run on a side, there is nothing to cut. */
static double cut_ops(const struct spread_problem *p, const struct spread_prices *x, struct net *n)
{
    double fixed = 0.0;

    for (uint32_t i = 0; i < p->g.nops; i++) {
        const struct side near = cut_side(p, x, i, false), far = cut_side(p, x, i, true);
        const double both = fmin(near.cost, far.cost);

        /* Both sides cost the lesser one in any case: only the difference is cut. */
        fixed += both;
        net_edge(n, NET_SOURCE, NET_FIRST + i, far.cost - both);
        net_edge(n, NET_FIRST + i, NET_SINK, near.cost - both);
    }
    return fixed;
}

heddle_status heddle_spread_cheapest(const struct spread_problem *p, const struct spread_prices *x,
                                     struct heddle_scratch *mem, struct spread_route *r,
                                     double *least_out)
{
    struct heddle_scratch tmp = heddle_scratch_make(mem->a);
    struct net n;
    double least = 0.0;

    if (!net_init(&n, p, &tmp)) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    least = cut_ops(p, x, &n);
    for (uint32_t v = 0; v < p->g.nvalues && p->m.nnodes > 1; v++)
        cut_value(p, x, &n, v);
    least += net_flow(&n);
    for (uint32_t i = 0; i < p->g.nops; i++) {
        const bool is_far = n.via[NET_FIRST + i] == SPREAD_NONE;
        const struct side s = cut_side(p, x, i, is_far);

        r->cls[i] = s.cls != SPREAD_NONE ? s.cls : cut_side(p, x, i, !is_far).cls;
        r->is_streamed[i] =
            x->weights != NULL && x->weights[(size_t)i * p->m.nnodes + p->m.node[r->cls[i]]];
    }
    heddle_scratch_drop(&tmp);
    *least_out = least;
    return HEDDLE_OK;
}
