/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain: the least time of the backward of any run of layers.
 *
 * C(i, l, m): from x[i] and the gradient of x[l + 1] to the gradient of x[i], with
 * m units of memory, of which the gradient is part and x[i] is not. Either layer i
 * keeps its tape, or the forward goes on to some j, whose input is kept, and
 * i..j-1 comes again behind j..l. Sizes are rounded up to units.
 */
#include <math.h>

#include "base/assert.h"
#include "pipeline/pipeline.h"

enum { SLOTS = 240, LEAST_SLOTS = 12 };
#define MOST_SUMS 1.5e8 /* of the table */

static double *row(const struct heddle_pl_chain *c, uint32_t i, uint32_t l)
{
    return &c->best[((size_t)i * c->n + l) * (c->slots + 1)];
}

/* In units; more than there are: all of them and one. */
static uint32_t units(const struct heddle_pl_chain *c, uint64_t bytes)
{
    const uint64_t n = bytes / c->unit + (bytes % c->unit != 0);

    return n > c->slots ? c->slots + 1 : (uint32_t)n;
}

/* Units that layer i with its tape needs while l + 1's gradient is there. */
static uint32_t need_tape(const struct heddle_pl_chain *c, uint32_t i, uint32_t l)
{
    const uint32_t f = c->x[l + 1] + c->t[i + 1] + c->work_f[i];
    const uint32_t b = c->x[i] + c->x[i + 1] + c->t[i + 1] + c->work_b[i];

    return f > b ? f : b;
}

/* And layers i..k without tapes, given what i..k-1 need. */
static uint32_t need_pass(const struct heddle_pl_chain *c, uint32_t i, uint32_t k, uint32_t l,
                          uint32_t before)
{
    const uint32_t one = (k > i ? c->x[k] : 0) + c->x[k + 1] + c->work_f[k] + c->x[l + 1];

    return one > before ? one : before;
}

static void fill_row(struct heddle_pl_chain *c, uint32_t i, uint32_t l)
{
    double *out = row(c, i, l);
    const uint32_t tape = need_tape(c, i, l);
    uint32_t pass = 0;
    double f = 0;

    for (uint32_t m = 0; m <= c->slots; m++)
        out[m] = INFINITY;
    for (uint32_t m = tape; m <= c->slots; m++)
        out[m] = c->f[i] + c->b[i] + (i < l ? row(c, i + 1, l)[m - c->t[i + 1]] : 0);
    for (uint32_t j = i + 1; j <= l; j++) {
        const double *right = row(c, j, l), *left = row(c, i, j - 1);

        pass = need_pass(c, i, j - 1, l, pass);
        f += c->f[j - 1];
        for (uint32_t m = pass; m <= c->slots; m++) {
            const double t = f + right[m - c->x[j]] + left[m];

            out[m] = t < out[m] ? t : out[m];
        }
    }
}

static uint64_t most_needed(const struct heddle_pl *p)
{
    uint64_t sum = 0, most = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const uint64_t work = p->c->work_f[i] > p->c->work_b[i] ? p->c->work_f[i] : p->c->work_b[i];
        const uint64_t one = heddle_pl_add(work, heddle_pl_add(p->c->x[i], p->c->x[i + 1]));

        most = one > most ? one : most;
        sum = heddle_pl_add(sum, p->c->t[i + 1]);
    }
    sum = heddle_pl_add(sum, heddle_pl_add(most, p->c->x[p->n]));
    return sum < p->budget ? sum : p->budget;
}

static uint32_t slots_for(uint32_t n, uint64_t bytes)
{
    const double sums = (double)n * n * n / 6 + 1;
    double slots = fmin(SLOTS, fmax(LEAST_SLOTS, MOST_SUMS / sums));

    return (double)bytes < slots ? (uint32_t)bytes + 1 : (uint32_t)slots;
}

heddle_status heddle_pl_chain_make(const struct heddle_pl *p, struct heddle_pl_chain *c)
{
    const size_t n = (size_t)p->n + 1;
    const uint64_t most = most_needed(p);

    c->n = p->n;
    c->slots = slots_for(p->n, most);
    c->unit = most / c->slots + (most % c->slots != 0);
    c->unit = c->unit < 1 ? 1 : c->unit;
    c->f = p->c->forward;
    c->b = p->c->backward;
    c->x = heddle_scratch_get(p->mem, 4 * n, sizeof(*c->x));
    c->best = heddle_scratch_get(p->mem, (size_t)p->n * p->n * (c->slots + 1), sizeof(*c->best));
    if (c->x == NULL || c->best == NULL)
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the table of the stages");
    c->t = c->x + n;
    c->work_f = c->t + n;
    c->work_b = c->work_f + n;
    for (uint32_t i = 0; i <= p->n; i++) {
        c->x[i] = units(c, p->c->x[i]);
        c->t[i] = i > 0 ? units(c, p->c->t[i]) : 0;
        c->work_f[i] = i < p->n ? units(c, p->c->work_f[i]) : 0;
        c->work_b[i] = i < p->n ? units(c, p->c->work_b[i]) : 0;
    }
    for (uint32_t d = 0; d < p->n; d++)
        for (uint32_t i = 0; i + d < p->n; i++)
            fill_row(c, i, i + d);
    return HEDDLE_OK;
}

double heddle_pl_chain_time(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m)
{
    return row(c, i, l)[m];
}

uint32_t heddle_pl_chain_need(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m)
{
    const double *v = row(c, i, l);
    uint32_t lo = 0, hi = m;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (v[mid] > v[m])
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void put(struct heddle_pl_steps *out, uint32_t layer, uint32_t kind)
{
    if (out->step != NULL)
        out->step[out->n] = (struct heddle_pipeline_step){layer, kind};
    out->n++;
}

/* The j that C(i, l, m) is made of, when that is not a tape. */
static uint32_t find_jump(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m)
{
    const double best = row(c, i, l)[m];
    uint32_t pass = 0, j;
    double f = 0;

    for (j = i + 1; j < l; j++) {
        pass = need_pass(c, i, j - 1, l, pass);
        f += c->f[j - 1];
        if (m >= pass && !(f + row(c, j, l)[m - c->x[j]] + row(c, i, j - 1)[m] > best))
            break;
    }
    return j;
}

void heddle_pl_chain_trace(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m,
                           struct heddle_pl_steps *out)
{
    const double best = row(c, i, l)[m];
    const uint32_t tape = need_tape(c, i, l);
    uint32_t at = i; /* i: its tape is kept */

    if (m < tape || best < c->f[i] + c->b[i] + (i < l ? row(c, i + 1, l)[m - c->t[i + 1]] : 0))
        at = find_jump(c, i, l, m);
    if (at == i) {
        put(out, i, HEDDLE_PIPELINE_KEEP);
        if (i < l)
            heddle_pl_chain_trace(c, i + 1, l, m - c->t[i + 1], out);
        put(out, i, HEDDLE_PIPELINE_UNDO);
        return;
    }
    put(out, i, HEDDLE_PIPELINE_SAVE);
    for (uint32_t k = i + 1; k < at; k++)
        put(out, k, HEDDLE_PIPELINE_PASS);
    heddle_pl_chain_trace(c, at, l, m - c->x[at], out);
    heddle_pl_chain_trace(c, i, at - 1, m, out);
}
