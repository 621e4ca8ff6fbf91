/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dp_trace: reads plans out of the table of the general models.
 *
 * What a state does is not kept: the ways are tried again, and the best of them is the one
 * that the table has.
 */
#include <math.h>

#include "plan/chain/dp_general.h"

double heddle_plan_general_value(const void *ptr, uint32_t m)
{
    const struct heddle_plan_general *x = ptr;

    return (double)heddle_plan_general_row_at(x, 0, 0, x->u->n, 0)[m];
}

static double time_of(const struct heddle_plan_general *x, struct heddle_plan_general_cell c)
{
    return (double)heddle_plan_general_row_at(x, c.s, c.t, c.l, c.f)[c.m];
}

/* What a cell does: the forwards s .. to-1, the part `a`, the part `b` or the
 * backward of s. */
struct move {
    double time;
    uint32_t to;
    struct heddle_plan_general_cell a, b;
    bool has_a, has_b, has_backward;
};

static void take_better(struct move *best, const struct move *v)
{
    if (v->time < best->time)
        *best = *v;
}

/* The tape of s, or one step on. */
static void try_next(const struct heddle_plan_general *x, struct heddle_plan_general_cell c,
                     struct move *best)
{
    const struct heddle_plan_units *u = x->u;
    struct move v = {.time = 0, .to = c.s + 1, .has_backward = c.s == c.t};

    if (c.s == c.l) {
        if (c.m < heddle_plan_general_need_tape(u, c.s, c.l, heddle_plan_general_in_hand(c.f)))
            return;
        v.to = c.s + (heddle_plan_general_in_hand(c.f) == 0);
        take_better(best, &v);
    } else {
        const struct heddle_plan_general_next n =
            heddle_plan_general_next_of(u, c.s, c.t, c.l, c.f);

        if (c.m < n.need)
            return;
        v.a = (struct heddle_plan_general_cell){c.s + 1, n.t, c.l, c.m - n.less, n.f};
        v.has_a = true;
        v.time = n.time + time_of(x, v.a);
        take_better(best, &v);
    }
}

static void try_splits(const struct heddle_plan_general *x, struct heddle_plan_general_cell c,
                       struct move *best)
{
    const struct heddle_plan_units *u = x->u;
    const uint32_t h = (uint32_t)heddle_plan_general_in_hand(c.f), g = c.f - h;
    struct move v = {.to = c.s + 1, .has_a = true, .has_b = true};

    if (c.l == c.s || c.m < heddle_plan_general_need_step(u, c.s, c.l, h))
        return;
    for (uint32_t tp = c.t + 1; tp <= c.l; tp++)
        for (uint32_t left = 0; left < (x->nf > 2 ? 2 : 1); left++) {
            v.a =
                (struct heddle_plan_general_cell){c.s + 1, tp, c.l, c.m - u->x[c.s], h + 2 * left};
            v.b = (struct heddle_plan_general_cell){c.s, c.t, tp - 1, c.m, left + g};
            v.time = u->forward[c.s] + time_of(x, v.a) + time_of(x, v.b);
            take_better(best, &v);
        }
}

static void try_holes(const struct heddle_plan_general *x, struct heddle_plan_general_cell c,
                      const uint32_t *reach, struct move *best)
{
    const struct heddle_plan_units *u = x->u;
    const uint32_t h = (uint32_t)heddle_plan_general_in_hand(c.f), g = c.f - h;
    struct move v = {.has_a = true, .has_b = true};

    for (uint32_t k = c.t > c.s ? c.t : c.s + 1; k < c.l; k++) {
        const uint32_t less = u->x[c.s] + u->t[k + 1] - u->x[k + 1];

        if (c.m < reach[k] + heddle_plan_general_held(u, c.l, h) || c.m < less)
            continue;
        v.to = k + 1;
        v.a = (struct heddle_plan_general_cell){k + 1, k + 1, c.l, c.m - less, h};
        v.b = (struct heddle_plan_general_cell){c.s, c.t, k, c.m, 1 + g};
        v.time = u->before[k + 1] - u->before[c.s] + time_of(x, v.a) + time_of(x, v.b);
        take_better(best, &v);
    }
}

#define BACKWARD UINT32_MAX /* as m: only the backward of s */

static size_t expand(const struct heddle_plan_general *x, struct heddle_plan_general_cell c,
                     uint32_t *reach, struct heddle_plan_general_cell *stack, size_t depth,
                     struct heddle_plan_seq *q)
{
    const uint32_t n = x->u->n;
    struct move best = {.time = INFINITY};

    if (c.m == BACKWARD) {
        heddle_plan_seq_add(q, 2 * n - c.s);
        return depth;
    }
    try_next(x, c, &best);
    try_splits(x, c, &best);
    if (x->nf > 1) {
        heddle_plan_general_set_reach(x->u, c.s, reach);
        try_holes(x, c, reach, &best);
    }
    for (uint32_t i = c.s; i < best.to; i++)
        heddle_plan_seq_add(q, i);
    if (best.has_backward && c.s < n)
        stack[depth++] = (struct heddle_plan_general_cell){.s = c.s, .m = BACKWARD};
    if (best.has_b)
        stack[depth++] = best.b;
    if (best.has_a)
        stack[depth++] = best.a;
    return depth;
}

void heddle_plan_general_trace(const void *ptr, uint32_t m, struct heddle_plan_seq *q)
{
    const struct heddle_plan_general *x = ptr;
    struct heddle_scratch mem = heddle_scratch_make(x->a);
    struct heddle_plan_general_cell *stack =
        heddle_scratch_get(&mem, 2 * x->nstages + 4, sizeof(*stack));
    uint32_t *reach = heddle_scratch_get(&mem, x->nstages, sizeof(*reach));
    size_t depth = 0;

    if (stack == NULL || reach == NULL) {
        heddle_scratch_drop(&mem);
        q->st = HEDDLE_ENOMEM;
        return;
    }
    stack[depth++] = (struct heddle_plan_general_cell){0, 0, x->u->n, m, 0};
    while (depth > 0 && q->st == HEDDLE_OK) {
        const struct heddle_plan_general_cell c = stack[--depth];

        depth = expand(x, c, reach, stack, depth, q);
    }
    heddle_scratch_drop(&mem);
}
