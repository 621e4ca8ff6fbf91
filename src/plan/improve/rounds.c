/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rounds: one change of the sequence at hand.
 *
 * Some recomputations are removed or one is moved, the sequence is repaired within the
 * budget (seq/reduce.c, with some noise), and what it can do without is removed
 * (seq/prune.c). The result is kept when it is not much longer than the best.
 */
#include <string.h>

#include "plan/improve/improve.h"

#define NONE HEDDLE_PLAN_NONE

void heddle_plan_improve_list(struct heddle_plan_improve *m)
{
    m->nagain = 0;
    for (uint32_t p = 0; p < m->cur.n; p++)
        if (m->cur.prev[p] != NONE)
            m->again[m->nagain++] = p;
}

/* Moves a recomputation of the trial to an earlier place. */
static void shift_one(struct heddle_plan_improve *m)
{
    struct heddle_plan_seq *s = &m->trial;
    const uint32_t p = m->again[heddle_rng_below32(&m->x.rng, m->nagain)];
    const struct heddle_plan_op *op = &s->g->ops[s->op[p]];
    const uint32_t id = s->op[p];
    uint32_t lo = s->prev[p], to;

    /* behind its inputs, or one of them would be an older one */
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t by = s->g->values[s->g->inputs[op->first_input + i]].op;
        uint32_t q;

        if (by == NONE)
            continue;
        for (q = s->tail[by]; q > p; q = s->prev[q])
            ;
        if (q > lo)
            lo = q;
    }
    if (p - lo < 2)
        return;
    to = lo + 1 + heddle_rng_below32(&m->x.rng, p - lo - 1);
    memmove(&s->op[to + 1], &s->op[to], (p - to) * sizeof(*s->op));
    s->op[to] = id;
    (void)!heddle_plan_seq_eval(s);
}

/* Moves a first computation of the trial within the window that its inputs and
 * its readers leave. */
static void reorder_one(struct heddle_plan_improve *m)
{
    struct heddle_plan_seq *s = &m->trial;
    const struct heddle_plan_graph *g = s->g;
    const uint32_t p = heddle_rng_below32(&m->x.rng, s->n);
    const struct heddle_plan_op *op = &g->ops[s->op[p]];
    const uint32_t id = s->op[p];
    uint32_t lo = 0, hi = p, to;

    if (s->prev[p] != NONE)
        return;
    for (uint32_t i = 0; i < op->ninputs; i++) {
        uint32_t q = g->values[g->inputs[op->first_input + i]].op;

        if (q == NONE)
            continue;
        for (q = s->tail[q]; s->prev[q] != NONE; q = s->prev[q])
            ;
        if (q + 1 > lo)
            lo = q + 1;
    }
    for (bool is_read = false; !is_read && hi + 1 < s->n;) {
        const struct heddle_plan_op *o = &g->ops[s->op[hi + 1]];

        is_read = s->op[hi + 1] == id;
        for (uint32_t i = 0; i < o->ninputs; i++)
            is_read |= g->values[g->inputs[o->first_input + i]].op == id;
        hi += !is_read;
    }
    to = lo + heddle_rng_below32(&m->x.rng, hi - lo + 1);
    if (to < p)
        memmove(&s->op[to + 1], &s->op[to], (p - to) * sizeof(*s->op));
    else
        memmove(&s->op[p], &s->op[p + 1], (to - p) * sizeof(*s->op));
    s->op[to] = id;
    (void)!heddle_plan_seq_eval(s);
}

void heddle_plan_improve_ruin(struct heddle_plan_improve *m)
{
    struct heddle_rng *rng = &m->x.rng;
    const uint32_t kind = heddle_rng_below32(rng, 10);
    const uint32_t some = m->nagain < 12 ? m->nagain : 12;
    const uint32_t most = m->nagain > 32 * 12 ? m->nagain / 32 : some;
    const uint32_t k = 1 + heddle_rng_below32(rng, most);

    memset(m->mark, 0, m->trial.n);
    if (kind < 2) {
        for (uint32_t i = 0; i < k; i++)
            m->mark[m->again[heddle_rng_below32(rng, m->nagain)]] = 1;
    } else {
        const uint32_t from = heddle_rng_below32(rng, m->nagain - k + 1);

        for (uint32_t i = 0; i < k; i++)
            if (kind < 6 || heddle_rng_below32(rng, 2) == 0)
                m->mark[m->again[from + i]] = 1;
    }
    heddle_plan_seq_remove(&m->trial, m->mark);
}

void heddle_plan_improve_round(struct heddle_plan_improve *m)
{
    struct heddle_plan_search *x = &m->x;
    const double slack = 0.02 * (m->best.time - m->base);

    heddle_plan_seq_copy(&m->trial, &m->cur);
    x->work += 4.0 * m->trial.n;
    switch (heddle_rng_below32(&x->rng, 8)) {
    case 0: shift_one(m); break;
    case 1:
    case 2:
        if (x->is_free) {
            reorder_one(m);
            break;
        }
        /* fall through */
    default: heddle_plan_improve_ruin(m);
    }
    x->noise = heddle_rng_below32(&x->rng, 2) == 0 ? 0.1 : 0.7;
    x->batch = m->trial.n > 3000 ? 8 : 1;
    x->max_time = m->cur.time * 1.5 + m->base;
    if (!heddle_plan_reduce(x, &m->trial))
        return;
    x->noise = heddle_rng_below32(&x->rng, 2) == 0 ? 0 : 0.5;
    heddle_plan_prune(x, &m->trial);
    if (m->trial.time > m->cur.time && m->trial.time > m->best.time + slack)
        return;
    heddle_plan_seq_copy(&m->cur, &m->trial);
    heddle_plan_improve_list(m);
    if (m->cur.time < m->best.time)
        heddle_plan_seq_copy(&m->best, &m->cur);
}
