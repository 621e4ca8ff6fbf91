/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prefix: the rule of a list of preferred devices, to compare with. The fastest class gets the
 * operators from the first on until its memory is full, the next class goes on from there; no
 * operator comes back, and nothing looks ahead.
 */
#include "base/assert.h"
#include "spread/spread.h"

/* Classes by the time of the whole network, those that cannot run all of it last. */
static void prefix_order(const struct spread_problem *p, uint32_t *order)
{
    double sum[HEDDLE_SPREAD_CLASSES] = {0.0};

    for (uint32_t r = 0; r < p->m.nclasses; r++) {
        uint32_t at = r;

        for (uint32_t i = 0; i < p->g.nops; i++)
            sum[r] += p->load[(size_t)i * p->m.nclasses + r];
        for (; at > 0 && sum[r] < sum[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = r;
    }
}

static heddle_status prefix_run(const struct spread_problem *p, struct heddle_scratch *mem,
                                struct spread_set *out)
{
    uint32_t order[HEDDLE_SPREAD_CLASSES], k = 0;
    uint64_t used[HEDDLE_SPREAD_NODES] = {0};
    struct spread_route r;

    HEDDLE_TRY(heddle_spread_route(p, mem, &r));
    prefix_order(p, order);
    for (uint32_t i = 0; i < p->g.nops; i++) {
        uint32_t at;

        for (at = k; at < p->m.nclasses; at++) { /* what cannot run here runs on a later one */
            const uint32_t node = p->m.node[order[at]];
            const uint64_t limit = p->m.memory[node].bytes;
            const bool is_full = limit != 0 && used[node] + spread_weights(p, i) > limit;

            if (at == k && is_full)
                k++;
            if (!is_full && spread_time(p, i, order[at]) < INFINITY)
                break;
        }
        if (at == p->m.nclasses)
            return SPREAD_FAIL(p, HEDDLE_ENOENT, "the method found no spread that fits");
        r.cls[i] = order[at];
        used[p->m.node[order[at]]] += spread_weights(p, i);
    }
    (void)heddle_spread_measure(p, &r);
    return heddle_spread_alone(p, mem, &r, out);
}

const struct heddle_spread_ops heddle_spread_prefix = {
    .name = "prefix",
    .help = "baseline: the first operators on the fastest class until its memory is full",
    .run = prefix_run,
};
