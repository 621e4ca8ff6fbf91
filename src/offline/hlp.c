/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hlp: types from the mixed bound, which is a linear program. Its value says how
 * full a type may be, and the flow of its certificate through a task how much
 * the bound would pay for running that task fast. Every task begins on its
 * fastest type; from types that are too full, tasks without flow leave first. A
 * list schedule by rank follows.
 */
#include "offline/offline.h"

#define BOUND_NS UINT64_C(500000000)
#define HOLD     1e3 /* a flow of 1 makes leaving so much dearer */

static void flows(const struct heddle_bound_graph *g, const struct heddle_bound_cert *c,
                  double *flow)
{
    for (uint32_t i = 0; i < c->nstarts; i++)
        flow[c->start[i]] += c->start_flow[i];
    for (uint32_t i = 0; i < c->nedges; i++)
        flow[g->edge_to[c->edge[i]]] += c->edge_flow[i];
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    struct heddle_bound_limits l = {.size = sizeof(l),
                                    .which = 1u << HEDDLE_BOUND_MIXED,
                                    .iterations = 200,
                                    .time_ns = UINT64_MAX,
                                    .gap = 0.005,
                                    .why = d->opts->why,
                                    .why_bytes = d->opts->why_bytes,
                                    .alloc = d->opts->alloc};
    struct heddle_bound_result res = {.size = sizeof(res)};
    const struct heddle_bound_cert *c = &res.cert[HEDDLE_BOUND_MIXED];
    double *flow = heddle_scratch_get(m, d->n, sizeof(*flow));
    uint8_t *type = heddle_scratch_get(m, d->n, sizeof(*type));
    heddle_status st;

    if (flow == NULL || type == NULL)
        return HEDDLE_ENOMEM;
    /* A limit in time for `best`; else the result must not depend on it. */
    if (d->deadline != 0)
        l.time_ns = BOUND_NS;
    st = heddle_bound_all(d->graph, &l, &res);
    if (st != HEDDLE_OK)
        return st;
    flows(d->graph, c, flow);
    for (uint32_t t = 0; t < d->n; t++)
        flow[t] *= HOLD;
    st = heddle_offline_balance(d, c->value, flow, m, type);
    heddle_bound_fini(&res);
    if (st != HEDDLE_OK)
        return st;
    return heddle_offline_list_types(d, type, m, out);
}

const struct heddle_offline_ops heddle_offline_hlp = {
    .name = "hlp",
    .help = "loads as full as the mixed bound, longest way first",
    .run = run,
    .seed_limit = 20000,
};
