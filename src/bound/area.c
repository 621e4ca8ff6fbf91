/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * area: all work spread over the types of workers, dependencies ignored.
 *
 * Problem    maximise B(l) = sum_k count_k min_r l_r time[k][r] over prices
 *            l >= 0 with sum_r nworkers_r l_r = 1. B is concave, and B(l) is a
 *            lower bound for every such l: the least time the work costs at
 *            these prices, against what the machine offers.
 * Two types  B is linear between the ratios l_0 / l_1 at which some kind costs
 *            the same on both: sort, sweep, take the best. Exact.
 * More       cutting planes in few dimensions: a game between types and the
 *            allocations that are cheapest at the prices tried so far. Prices
 *            are tried half way between the game's and the best so far, which
 *            keeps the steps from swinging. Ends at a gap of 1e-10.
 * Cost       two types O(kinds log kinds); else some dozens of O(kinds types).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "bound/game.h"

#define PLANS    128
#define STEPS    400
#define AREA_GAP 1e-10

double heddle_bound_cost(const struct heddle_bound_dag *d, uint32_t k, const double *price,
                         double flow, uint32_t *type_out)
{
    const double *p = d->time + (size_t)k * d->r;
    double least = INFINITY;

    for (uint32_t r = 0; r < d->r; r++) {
        const double c = p[r] < INFINITY ? (price[r] + flow) * p[r] : INFINITY;

        if (c < least) {
            least = c;
            if (type_out != NULL)
                *type_out = r;
        }
    }
    return least;
}

double heddle_bound_area_at(const struct heddle_bound_dag *d, const double *count,
                            const double *price)
{
    double sum = 0.0;

    for (uint32_t k = 0; k < d->k; k++)
        if (count[k] > 0.0)
            sum += count[k] * heddle_bound_cost(d, k, price, 0.0, NULL);
    return sum;
}

/* Where a kind changes sides: at prices with l_0 / l_1 = ratio. */
struct turn {
    double ratio; /* time on 1 / time on 0 */
    uint32_t k;
};

static int cmp_turn(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;

    if (x->ratio != y->ratio)
        return x->ratio < y->ratio ? -1 : 1;
    return (x->k > y->k) - (x->k < y->k);
}

/* Kinds that cost nothing somewhere never matter and are left out. */
static uint32_t list_turns(const struct heddle_bound_dag *d, const double *count, struct turn *turn)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < d->k; k++) {
        const double *p = d->time + (size_t)k * d->r;

        if (count[k] <= 0.0 || d->fast[k] <= 0.0)
            continue;
        turn[n].ratio = p[0] < INFINITY ? p[1] / p[0] : 0.0;
        turn[n++].k = k;
    }
    qsort(turn, n, sizeof(*turn), cmp_turn);
    return n;
}

/* Prices of that ratio, scaled to sum 1 over the workers. */
static void price_at(const struct heddle_bound_dag *d, double ratio, double *price)
{
    if (ratio < INFINITY) {
        price[1] = 1.0 / (d->nworkers[0] * ratio + d->nworkers[1]);
        price[0] = ratio * price[1];
    } else {
        price[0] = 1.0 / d->nworkers[0];
        price[1] = 0.0;
    }
}

static void sweep(const struct heddle_bound_dag *d, const double *count, const struct turn *turn,
                  uint32_t n, double *price_out)
{
    double on0 = 0.0, on1 = 0.0, best, price[2];

    for (uint32_t i = 0; i < n; i++)
        if (turn[i].ratio > 0.0)
            on0 += count[turn[i].k] * d->time[2 * (size_t)turn[i].k];
        else
            on1 += count[turn[i].k] * d->time[2 * (size_t)turn[i].k + 1];
    /* The kinds that cannot run on 0 at all, at their own best price. */
    price_at(d, 0.0, price_out);
    best = price_out[1] * on1;
    for (uint32_t i = 0; i < n; i++) {
        const double *p = d->time + 2 * (size_t)turn[i].k;
        double b;

        if (turn[i].ratio <= 0.0)
            continue;
        price_at(d, turn[i].ratio, price);
        b = price[0] * on0 + price[1] * on1;
        if (b > best) {
            best = b;
            memcpy(price_out, price, sizeof(price));
        }
        if (turn[i].ratio < INFINITY) {
            on0 -= count[turn[i].k] * p[0];
            on1 += count[turn[i].k] * p[1];
        }
    }
}

static heddle_status area_two(const struct heddle_bound_dag *d, const double *count,
                              struct heddle_scratch *m, double *price)
{
    struct turn *turn = heddle_scratch_get(m, d->k, sizeof(*turn));

    if (turn == NULL)
        return HEDDLE_ENOMEM;
    sweep(d, count, turn, list_turns(d, count, turn), price);
    return HEDDLE_OK;
}

/* Weights of the types to prices. */
static void to_price(const struct heddle_bound_dag *d, const double *w, double *price)
{
    for (uint32_t r = 0; r < d->r; r++)
        price[r] = w[r] / d->nworkers[r];
}

/* B at these prices, and the load of each type under the cheapest plan, both
 * divided by `scale`. */
static double cheapest(const struct heddle_bound_dag *d, const double *count, const double *price,
                       double scale, double *load)
{
    double sum = 0.0;

    memset(load, 0, d->r * sizeof(*load));
    for (uint32_t k = 0; k < d->k; k++) {
        uint32_t r = 0;

        if (count[k] <= 0.0)
            continue;
        sum += count[k] * heddle_bound_cost(d, k, price, 0.0, &r);
        load[r] += count[k] * d->time[(size_t)k * d->r + r];
    }
    for (uint32_t r = 0; r < d->r; r++)
        load[r] /= d->nworkers[r] * scale;
    return sum / scale;
}

struct cuts {
    struct heddle_game game;
    double w[HEDDLE_BOUND_TYPES_MAX]; /* the best so far ... */
    double value;                     /* ... and B there */
    double scale;
};

/* Tries weights: a better B is kept, the plan joins the game. */
static bool try_weights(const struct heddle_bound_dag *d, const double *count, struct cuts *c,
                        const double *w)
{
    double price[HEDDLE_BOUND_TYPES_MAX], load[HEDDLE_BOUND_TYPES_MAX];
    double value;

    to_price(d, w, price);
    value = cheapest(d, count, price, c->scale, load);
    if (value > c->value) {
        c->value = value;
        memcpy(c->w, w, d->r * sizeof(*w));
    }
    if (heddle_game_add_plan(&c->game, load) != HEDDLE_BOUND_NONE)
        return true;
    return heddle_game_drop_plan(&c->game) != HEDDLE_BOUND_NONE &&
           heddle_game_add_plan(&c->game, load) != HEDDLE_BOUND_NONE;
}

static heddle_status area_many(const struct heddle_bound_dag *d, const double *count,
                               struct heddle_scratch *m, double *price)
{
    struct cuts *c = heddle_scratch_get(m, 1, sizeof(*c));
    double w[HEDDLE_BOUND_TYPES_MAX];
    const double none[PLANS] = {0};

    if (c == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_game_init(&c->game, m, PLANS, d->r));
    for (uint32_t r = 0; r < d->r; r++) {
        heddle_game_add_expert(&c->game, none);
        w[r] = c->w[r] = 1.0 / (double)d->r;
    }
    to_price(d, w, price);
    c->scale = heddle_bound_area_at(d, count, price);
    if (!(c->scale > 1e-280))
        return HEDDLE_OK;
    if (!try_weights(d, count, c, w))
        return HEDDLE_OK;
    for (int step = 0; step < STEPS && heddle_game_solve(&c->game); step++) {
        if (c->game.low - c->value <= AREA_GAP * c->value)
            break;
        for (uint32_t r = 0; r < d->r; r++)
            w[r] = 0.5 * (c->game.w[r] + c->w[r]);
        if (!try_weights(d, count, c, w) || !try_weights(d, count, c, c->game.w))
            break;
    }
    to_price(d, c->w, price);
    return HEDDLE_OK;
}

heddle_status heddle_bound_area(const struct heddle_bound_dag *d, const double *count,
                                struct heddle_scratch *m, double *price_out, double *value_out)
{
    struct heddle_scratch tmp = {.a = m->a};
    heddle_status st = HEDDLE_OK;

    if (d->r == 1)
        price_out[0] = 1.0 / d->nworkers[0];
    else if (d->r == 2)
        st = area_two(d, count, &tmp, price_out);
    else if (d->r > 2)
        st = area_many(d, count, &tmp, price_out);
    heddle_scratch_drop(&tmp);
    *value_out = st == HEDDLE_OK ? heddle_bound_area_at(d, count, price_out) : 0.0;
    return st;
}

heddle_status heddle_bound_breakpoints(const struct heddle_bound_dag *d, struct heddle_scratch *m,
                                       uint32_t cap, double *price, uint32_t *n_out)
{
    struct turn *turn;
    uint32_t n, distinct = 0;

    *n_out = 0;
    if (d->r != 2)
        return HEDDLE_OK;
    turn = heddle_scratch_get(m, d->k, sizeof(*turn));
    if (turn == NULL)
        return HEDDLE_ENOMEM;
    n = list_turns(d, d->count, turn);
    for (uint32_t i = 0; i < n; i++)
        if (distinct == 0 || turn[distinct - 1].ratio != turn[i].ratio)
            turn[distinct++] = turn[i];
    n = distinct < cap ? distinct : cap;
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = n < 2 ? 0 : (size_t)i * (distinct - 1) / (size_t)(n - 1);

        price_at(d, turn[at].ratio, price + 2 * (size_t)i);
    }
    *n_out = n;
    return HEDDLE_OK;
}
