/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expand: the rule of a device for each weight, to compare with. Operators with weights are
 * assigned, the last ones to the fastest class until its memory is full, the others to the next;
 * four sweeps then give the class of a neighbour to operators that have none, the fastest class
 * first. No costs are looked at.
 */
#include <string.h>

#include "base/assert.h"
#include "spread/spread.h"

struct expand {
    const struct spread_problem *p;
    struct spread_route r; /* SPREAD_NONE: no class yet */
    uint32_t first, second;
};

static bool expand_can(const struct expand *x, uint32_t op, uint32_t cls)
{
    return cls != SPREAD_NONE && spread_time(x->p, op, cls) < INFINITY;
}

/* The class of a maker of what an operator reads, or of a reader of what it makes; only: this one
 * alone, SPREAD_NONE: any. */
static uint32_t expand_near(const struct expand *x, uint32_t op, bool is_down, uint32_t only)
{
    const struct spread_lists *l = is_down ? &x->p->in : &x->p->made;

    for (uint32_t k = l->end[op]; k < l->end[op + 1]; k++) {
        const uint32_t v = l->list[k], n = is_down ? 1 : x->p->used.end[v + 1] - x->p->used.end[v];

        for (uint32_t j = 0; j < n; j++) {
            const uint32_t at = is_down ? x->p->g.maker[v] : x->p->used.list[x->p->used.end[v] + j];
            const uint32_t cls = at == UINT32_MAX ? SPREAD_NONE : x->r.cls[at];

            if (cls != SPREAD_NONE && (only == SPREAD_NONE || cls == only) &&
                expand_can(x, op, cls))
                return cls;
        }
    }
    return SPREAD_NONE;
}

static void expand_sweep(struct expand *x, bool is_down, uint32_t only)
{
    const uint32_t n = x->p->g.nops;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t op = is_down ? i : n - 1 - i;

        if (x->r.cls[op] == SPREAD_NONE)
            x->r.cls[op] = expand_near(x, op, is_down, only);
    }
}

/* Two classes: the fastest one that can run anything, and one of another memory. */
static void expand_weights(struct expand *x)
{
    const struct spread_problem *p = x->p;
    const uint64_t limit = p->m.memory[p->m.node[x->first]].bytes;
    uint64_t used = 0;
    bool is_full = false;

    for (uint32_t i = p->g.nops; i-- > 0;) {
        const uint64_t w = spread_weights(p, i);

        if (w == 0)
            continue;
        is_full |= limit != 0 && used + w > limit;
        if (!is_full && expand_can(x, i, x->first)) {
            x->r.cls[i] = x->first;
            used += w;
        } else if (expand_can(x, i, x->second)) {
            x->r.cls[i] = x->second;
        }
    }
}

static heddle_status expand_run(const struct spread_problem *p, struct heddle_scratch *mem,
                                struct spread_set *out)
{
    struct expand x = {.p = p, .first = p->fastest != SPREAD_NONE ? p->fastest : 0};

    x.second = SPREAD_NONE;
    for (uint32_t r = 0; r < p->m.nclasses; r++)
        if (p->m.node[r] != p->m.node[x.first] && x.second == SPREAD_NONE)
            x.second = r;
    HEDDLE_TRY(heddle_spread_route(p, mem, &x.r));
    memset(x.r.cls, 0xff, p->g.nops * sizeof(*x.r.cls));
    expand_weights(&x);
    expand_sweep(&x, true, x.first);
    expand_sweep(&x, false, x.first);
    expand_sweep(&x, true, SPREAD_NONE);
    expand_sweep(&x, false, SPREAD_NONE);
    for (uint32_t i = 0; i < p->g.nops; i++) {
        uint32_t cls = x.r.cls[i] != SPREAD_NONE ? x.r.cls[i] : x.first;

        for (uint32_t r = 0; r < p->m.nclasses && !expand_can(&x, i, cls); r++)
            cls = r;
        x.r.cls[i] = cls;
    }
    (void)heddle_spread_fit(p, &x.r);
    return heddle_spread_alone(p, mem, &x.r, out);
}

const struct heddle_spread_ops heddle_spread_expand = {
    .name = "expand",
    .help = "baseline: classes by weights, the last ones on the fastest, the others follow",
    .run = expand_run,
};
