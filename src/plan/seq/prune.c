/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prune: removes recomputations that the budget does not ask for.
 *
 * Without an occurrence, the one before it serves its readers: its outputs stay
 * from their last reader on. That fits when the tree has room over that time.
 * What the removed one read lives shorter, which the next pass sees.
 */
#include "plan/seq/seq.h"

#include <string.h>

#define NONE   HEDDLE_PLAN_NONE
#define PASSES 6

void heddle_plan_seq_remove(struct heddle_plan_seq *s, const uint8_t *mark)
{
    uint32_t n = 0;

    for (uint32_t p = 0; p < s->n; p++)
        if (mark[p] == 0 || s->prev[p] == NONE)
            s->op[n++] = s->op[p];
    s->n = n;
    /* shorter than before: it has room */
    (void)!heddle_plan_seq_eval(s);
}

/* Adds what the occurrence before p would hold without p; sign -1 takes it back.
 * Returns the largest memory over that time. */
static int64_t stretch(struct heddle_plan_seq *s, uint32_t p, int sign)
{
    const struct heddle_plan_op *op = &s->g->ops[s->op[p]];
    const uint32_t before = s->prev[p];
    int64_t max = INT64_MIN;

    for (uint32_t i = 0; i < op->nvalues; i++) {
        const uint32_t last = s->last[s->base[p] + i];
        uint32_t from = s->last[s->base[before] + i];
        int64_t m;

        if (last == NONE)
            continue;
        if (from == NONE)
            from = before - (i > 0); /* a further output was not made */
        heddle_plan_tree_add(&s->tree, from + 1, p,
                             sign * (int64_t)s->g->values[op->first_value + i].bytes);
        m = heddle_plan_tree_max(&s->tree, from + 1, p);
        if (m > max)
            max = m;
    }
    return max;
}

/* The occurrence before p takes its readers. */
static void unlink_one(struct heddle_plan_seq *s, uint32_t p)
{
    const uint32_t before = s->prev[p], behind = s->next[p];
    const uint32_t n = s->g->ops[s->op[p]].nvalues;

    for (uint32_t i = 0; i < n; i++)
        if (s->last[s->base[p] + i] != NONE)
            s->last[s->base[before] + i] = s->last[s->base[p] + i];
    s->next[before] = behind;
    if (behind != NONE)
        s->prev[behind] = before;
}

static void sort_by_key(uint32_t *pick, const double *key, uint32_t n)
{
    for (uint32_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (uint32_t i = gap; i < n; i++) {
            const uint32_t t = pick[i];
            uint32_t k = i;

            for (; k >= gap && (key[pick[k - gap]] < key[t] ||
                                (key[pick[k - gap]] == key[t] && pick[k - gap] < t));
                 k -= gap)
                pick[k] = pick[k - gap];
            pick[k] = t;
        }
}

/* One pass; the marks of what goes in x->pick2, as bytes. True: something goes. */
static bool one_pass(struct heddle_plan_search *x, struct heddle_plan_seq *s, uint8_t *mark)
{
    uint32_t n = 0;
    bool is_any = false;

    memset(mark, 0, s->n);
    heddle_plan_seq_plant(s);
    for (uint32_t p = 0; p < s->n; p++) {
        const struct heddle_plan_op *op = &s->g->ops[s->op[p]];
        bool is_used = false;

        if (s->prev[p] == NONE)
            continue;
        for (uint32_t i = 0; i < op->nvalues; i++)
            is_used |= s->last[s->base[p] + i] != NONE;
        x->key[p] = is_used ? op->time : 1e300;
        if (x->noise > 0)
            x->key[p] *= 0.25 + heddle_rng_double(&x->rng);
        x->pick[n++] = p;
    }
    sort_by_key(x->pick, x->key, n);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t p = x->pick[k];

        if (stretch(s, p, 1) <= x->budget) {
            unlink_one(s, p);
            mark[p] = 1;
            is_any = true;
        } else {
            stretch(s, p, -1);
        }
    }
    return is_any;
}

/* The same, one by one, each evaluated: for graphs where an operation may lose
 * the right to take its input's place when that lives longer. */
static void slow_passes(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    for (uint32_t p = s->n; p-- > 0;) {
        const uint32_t id = s->op[p];

        if (s->prev[p] == NONE)
            continue;
        memmove(&s->op[p], &s->op[p + 1], (s->n - p - 1) * sizeof(*s->op));
        s->n--;
        if (heddle_plan_seq_eval(s) && s->peak <= x->budget)
            continue;
        memmove(&s->op[p + 1], &s->op[p], (s->n - p) * sizeof(*s->op));
        s->op[p] = id;
        s->n++;
        (void)!heddle_plan_seq_eval(s);
    }
}

void heddle_plan_prune_once(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    uint8_t *mark = (uint8_t *)x->pick2;

    x->work += 6.0 * s->n;
    if (one_pass(x, s, mark))
        heddle_plan_seq_remove(s, mark);
}

void heddle_plan_prune(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    uint8_t *mark = (uint8_t *)x->pick2;

    for (int pass = 0; pass < PASSES; pass++) {
        const uint32_t n = s->n;

        x->work += 6.0 * n;
        memcpy(x->save, s->op, n * sizeof(*s->op));
        if (!one_pass(x, s, mark))
            break;
        heddle_plan_seq_remove(s, mark);
        if (s->peak <= x->budget)
            continue;
        memcpy(s->op, x->save, n * sizeof(*s->op));
        s->n = n;
        (void)!heddle_plan_seq_eval(s);
        slow_passes(x, s);
        return;
    }
}
