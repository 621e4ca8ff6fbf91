/* SPDX-License-Identifier: BSD-3-Clause */
/* single: all operators on one class, the one with the shortest period. */
#include "base/assert.h"
#include "spread/spread.h"

static heddle_status single_run(const struct spread_problem *p, struct heddle_scratch *mem,
                                struct spread_set *out)
{
    struct spread_route r, best;

    HEDDLE_TRY(heddle_spread_route(p, mem, &r));
    HEDDLE_TRY(heddle_spread_route(p, mem, &best));
    for (uint32_t c = 0; c < p->m.nclasses; c++) {
        for (uint32_t i = 0; i < p->g.nops; i++)
            r.cls[i] = c;
        if (heddle_spread_fit(p, &r) && r.period < best.period)
            heddle_spread_copy(p, &best, &r);
    }
    return heddle_spread_alone(p, mem, &best, out);
}

const struct heddle_spread_ops heddle_spread_single = {
    .name = "single",
    .help = "all on one class, the best one",
    .run = single_run,
};
