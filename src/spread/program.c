/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program: the best rates of some routes.
 *
 *     maximise sum x_i  such that for each resource sum x_i load_i <= 1,  x >= 0
 *
 * Growth  with the prices of the resources (the dual values) a route helps only when its loads
 *         cost less than 1. The cheapest of all routes is known (cut.c): when that costs 1, the
 *         program is as good as the one with all routes.
 * Bound   for any prices, every route costs at least c; so the rates of any spread add up to at
 *         most sum(prices) / c, and the period is at least c / sum(prices).
 */
#include "base/assert.h"
#include "base/lp.h"
#include "spread/spread.h"

enum { PROGRAM_COLUMNS = 600, PROGRAM_ROUNDS = 400 };
#define PROGRAM_GAP 1e-7

struct spread_program {
    const struct spread_problem *p;
    struct heddle_scratch *mem;
    struct heddle_lp lp;
    struct spread_route *route; /* [PROGRAM_COLUMNS] */
    double scale;               /* of loads */
};

heddle_status heddle_spread_program(const struct spread_problem *p, struct heddle_scratch *mem,
                                    struct spread_program **out)
{
    struct spread_program *x = heddle_scratch_get(mem, 1, sizeof(*x));
    static const double none[1];

    if (x == NULL)
        return HEDDLE_ENOMEM;
    x->p = p;
    x->mem = mem;
    x->route = heddle_scratch_get(mem, PROGRAM_COLUMNS, sizeof(*x->route));
    if (x->route == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_lp_init(&x->lp, mem, p->nresources, PROGRAM_COLUMNS));
    for (uint32_t i = 0; i < p->nresources; i++)
        heddle_lp_add_row(&x->lp, none, 1.0);
    *out = x;
    return HEDDLE_OK;
}

heddle_status heddle_spread_add(struct spread_program *x, const struct spread_route *r)
{
    double a[SPREAD_RESOURCES];
    struct spread_route *to = &x->route[x->lp.ncols];

    if (x->lp.ncols == PROGRAM_COLUMNS || !(r->period > 0.0 && r->period < INFINITY))
        return HEDDLE_EOVERFLOW;
    if (x->lp.ncols == 0)
        x->scale = 1.0 / r->period;
    HEDDLE_TRY(heddle_spread_route(x->p, x->mem, to));
    heddle_spread_copy(x->p, to, r);
    for (uint32_t i = 0; i < x->p->nresources; i++)
        a[i] = r->load[i] * x->scale;
    heddle_lp_add_col(&x->lp, a, 1.0);
    return HEDDLE_OK;
}

bool heddle_spread_solve(struct spread_program *x)
{
    return heddle_lp_solve(&x->lp);
}

double heddle_spread_period(const struct spread_program *x)
{
    const double rates = heddle_lp_value(&x->lp) * x->scale;

    return rates > 0.0 ? 1.0 / rates : INFINITY;
}

void heddle_spread_prices(const struct spread_program *x, double *price)
{
    heddle_lp_get(&x->lp, NULL, price);
    for (uint32_t i = 0; i < x->p->nresources; i++)
        price[i] *= x->scale;
}

heddle_status heddle_spread_grow(struct spread_program *x, const uint8_t *weights,
                                 double *bound_out)
{
    struct spread_prices s = {.weights = weights};
    struct spread_route r;
    double bound = 0.0;

    HEDDLE_TRY(heddle_spread_route(x->p, x->mem, &r));
    for (unsigned round = 0; round < PROGRAM_ROUNDS; round++) {
        double sum = 0.0, least = 0.0;
        heddle_status st;

        if (!heddle_spread_solve(x))
            break; /* rounding won: the bound so far holds, and so do the routes */
        heddle_spread_prices(x, s.price);
        for (uint32_t i = 0; i < x->p->nresources; i++)
            sum += s.price[i];
        HEDDLE_TRY(heddle_spread_cheapest(x->p, &s, x->mem, &r, &least));
        bound = fmax(bound, least / sum);
        if (least >= 1.0 - PROGRAM_GAP || !heddle_spread_measure(x->p, &r))
            break;
        st = heddle_spread_add(x, &r);
        if (st == HEDDLE_EOVERFLOW)
            break;
        HEDDLE_TRY(st);
    }
    if (bound_out != NULL)
        *bound_out = bound;
    return HEDDLE_OK;
}

heddle_status heddle_spread_take(struct spread_program *x, struct heddle_scratch *mem,
                                 struct spread_set *out)
{
    double *rate = heddle_scratch_get(mem, PROGRAM_COLUMNS, sizeof(*rate));

    *out = (struct spread_set){.n = 0};
    out->route = heddle_scratch_get(mem, PROGRAM_COLUMNS, sizeof(*out->route));
    out->rate = heddle_scratch_get(mem, PROGRAM_COLUMNS, sizeof(*out->rate));
    if (rate == NULL || out->route == NULL || out->rate == NULL)
        return HEDDLE_ENOMEM;
    heddle_lp_get(&x->lp, rate, NULL);
    for (uint32_t i = 0; i < x->lp.ncols; i++)
        if (rate[i] > 0.0) {
            out->route[out->n] = x->route[i];
            out->rate[out->n++] = rate[i] * x->scale;
        }
    return HEDDLE_OK;
}
