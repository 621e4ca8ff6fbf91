/* SPDX-License-Identifier: BSD-3-Clause */
/* units: a chain in units of memory and scaled times; sequences. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/chain/chain.h"

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

uint64_t heddle_plan_chain_unit(const struct heddle_plan_chain *c)
{
    uint64_t g = c->x[0];

    for (uint32_t i = 0; i < c->n; i++)
        g = gcd(gcd(gcd(gcd(g, c->x[i + 1]), c->t[i + 1]), c->work_f[i]), c->work_b[i]);
    return g;
}

/* *lost: what sizes before this one lost. */
static uint32_t count(uint64_t bytes, uint64_t unit, enum heddle_plan_rounding rounding,
                      uint32_t slots, uint64_t *lost)
{
    uint64_t k = bytes / unit, rest = bytes % unit;

    if (rounding == HEDDLE_PLAN_UP)
        k += rest != 0;
    else if (rounding == HEDDLE_PLAN_EVEN && rest >= unit - *lost) {
        k++;
        *lost = rest - (unit - *lost);
    } else
        *lost += rounding == HEDDLE_PLAN_EVEN ? rest : 0;
    return k <= slots ? (uint32_t)k : slots + 1;
}

static bool is_whole(double t)
{
    return t == floor(t);
}

/* Scales times; whole numbers whose sums stay below 2^22 are exact, with room
 * for computing everything four times. */
static void set_times(const struct heddle_plan_chain *c, struct heddle_plan_units *u)
{
    double sum = 0;
    int e = 0;

    u->is_exact = true;
    for (uint32_t i = 0; i < c->n; i++) {
        sum += c->forward[i] + c->backward[i];
        u->is_exact = u->is_exact && is_whole(c->forward[i]) && is_whole(c->backward[i]);
    }
    u->is_exact = u->is_exact && sum < (1 << 22);
    if (sum > 0)
        (void)frexp(sum, &e);
    u->scale = ldexp(1, e);
    for (uint32_t i = 0; i <= c->n; i++) {
        const double f = i < c->n ? ldexp(c->forward[i], -e) : 0;
        const double b = i < c->n ? ldexp(c->backward[i], -e) : 0;

        u->forward[i] = f;
        u->backward[i] = b;
        u->before[i + 1] = u->before[i] + f;
        u->both[i + 1] = u->both[i] + f + b;
    }
}

heddle_status heddle_plan_units_make(const struct heddle_plan_chain *c, uint64_t unit,
                                     enum heddle_plan_rounding rounding, uint32_t slots,
                                     struct heddle_scratch *mem, struct heddle_plan_units *out)
{
    const size_t n = (size_t)c->n + 2;
    uint64_t lost_x = unit / 2, lost_t = unit / 2;
    uint32_t *k = heddle_scratch_get(mem, 4 * n, sizeof(*k));
    double *d = heddle_scratch_get(mem, 4 * n, sizeof(*d));

    if (k == NULL || d == NULL)
        return HEDDLE_ENOMEM;
    *out = (struct heddle_plan_units){.n = c->n,
                                      .slots = slots,
                                      .x = k,
                                      .t = k + n,
                                      .work_f = k + 2 * n,
                                      .work_b = k + 3 * n,
                                      .forward = d,
                                      .backward = d + n,
                                      .before = d + 2 * n,
                                      .both = d + 3 * n};
    for (uint32_t i = 0; i <= c->n; i++) {
        out->x[i] = count(c->x[i], unit, rounding, slots, &lost_x);
        if (i == 0)
            continue;
        out->t[i] = count(c->t[i], unit, rounding, slots, &lost_t);
        if (out->t[i] < out->x[i])
            out->t[i] = out->x[i];
    }
    if (rounding == HEDDLE_PLAN_EVEN)
        rounding = HEDDLE_PLAN_UP; /* workspaces do not add up */
    for (uint32_t i = 0; i < c->n; i++) {
        out->work_f[i] = count(c->work_f[i], unit, rounding, slots, &lost_x);
        out->work_b[i] = count(c->work_b[i], unit, rounding, slots, &lost_x);
    }
    set_times(c, out);
    return HEDDLE_OK;
}

/* ---- sequences ------------------------------------------------------------- */

void heddle_plan_seq_add(struct heddle_plan_seq *q, uint32_t op)
{
    if (q->st != HEDDLE_OK)
        return;
    if (q->n == q->cap) {
        const size_t cap = q->cap < 128 ? 256 : 2 * q->cap;
        uint32_t *more = heddle_zalloc(q->a, cap, sizeof(*more));

        if (more == NULL) {
            q->st = HEDDLE_ENOMEM;
            return;
        }
        if (q->n > 0)
            memcpy(more, q->op, q->n * sizeof(*more));
        heddle_free(q->a, q->op, q->cap * sizeof(*more));
        q->op = more;
        q->cap = cap;
    }
    q->op[q->n++] = op;
}

void heddle_plan_seq_fini(struct heddle_plan_seq *q)
{
    heddle_free(q->a, q->op, q->cap * sizeof(*q->op));
}
