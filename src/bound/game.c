/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * game: the value of a matrix game by the simplex method on a dense tableau.
 *
 * Problem    with x = u / value: maximise sum x over x >= 0 such that for each
 *            expert j sum_i x_i load[i][j] <= 1. All slacks is a first basis.
 * Growth     a plan is a new column, which keeps the basis feasible: the primal
 *            method goes on. An expert is a new row, which keeps the reduced
 *            costs right: the dual method goes on. Both begin near the optimum.
 * Invariants a row belongs to the basis column basis[row]; columns of free
 *            slots are zero, so no loop has to skip them.
 * Rounding   each solution is checked against `load`: both players' mixes are
 *            evaluated anew. When they disagree the tableau is made anew, once.
 * Cost       a pivot is O(experts * (plans + experts)); a step takes a few.
 */
#include "bound/game.h"

#include <math.h>
#include <string.h>

#define EPS       1e-11
#define PIVOT_EPS 1e-9
#define BLAND     400  /* pivots of one solve before the slow, safe rule */
#define ROUNDS    4000 /* pivots of one solve */
#define AGREE     1e-7 /* relative difference of low and high */

heddle_status heddle_game_init(struct heddle_game *g, struct heddle_scratch *m, uint32_t max_plans,
                               uint32_t max_experts)
{
    const size_t np = max_plans, ne = max_experts;

    memset(g, 0, sizeof(*g));
    g->max_plans = max_plans;
    g->max_experts = max_experts;
    g->width = max_plans + max_experts + 1;
    g->has_plan = heddle_scratch_get(m, np, sizeof(*g->has_plan));
    g->has_expert = heddle_scratch_get(m, ne, sizeof(*g->has_expert));
    g->load = heddle_scratch_get(m, np * ne, sizeof(*g->load));
    g->t = heddle_scratch_get(m, ne * g->width, sizeof(*g->t));
    g->cost = heddle_scratch_get(m, g->width, sizeof(*g->cost));
    g->basis = heddle_scratch_get(m, ne, sizeof(*g->basis));
    g->w = heddle_scratch_get(m, ne, sizeof(*g->w));
    g->u = heddle_scratch_get(m, np, sizeof(*g->u));
    if (g->has_plan == NULL || g->has_expert == NULL || g->load == NULL || g->t == NULL ||
        g->cost == NULL || g->basis == NULL || g->w == NULL || g->u == NULL)
        return HEDDLE_ENOMEM;
    return HEDDLE_OK;
}

static double *game_row(const struct heddle_game *g, uint32_t row)
{
    return g->t + (size_t)row * g->width;
}

static void axpy(double *y, double a, const double *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static void pivot(struct heddle_game *g, uint32_t row, uint32_t col)
{
    double *p = game_row(g, row);
    const double inv = 1.0 / p[col];

    for (uint32_t c = 0; c < g->width; c++)
        p[c] *= inv;
    p[col] = 1.0;
    for (uint32_t i = 0; i < g->nrows; i++) {
        double *q = game_row(g, i);

        if (i != row && q[col] != 0.0) {
            axpy(q, -q[col], p, g->width);
            q[col] = 0.0;
        }
    }
    axpy(g->cost, -g->cost[col], p, g->width);
    g->cost[col] = 0.0;
    g->basis[row] = col;
    g->npivots++;
}

static void put_column(struct heddle_game *g, uint32_t plan)
{
    const double *load = g->load + (size_t)plan * g->max_experts;
    const double *y = g->cost + g->max_plans;
    double cost = -1.0;

    for (uint32_t j = 0; j < g->max_experts; j++)
        cost += y[j] * load[j];
    g->cost[plan] = cost;
    for (uint32_t i = 0; i < g->nrows; i++) {
        double *q = game_row(g, i);
        double sum = 0.0;

        for (uint32_t j = 0; j < g->max_experts; j++)
            sum += q[g->max_plans + j] * load[j];
        q[plan] = sum;
    }
}

static void put_row(struct heddle_game *g, uint32_t expert)
{
    const uint32_t row = g->nrows++;
    double *p = game_row(g, row);

    memset(p, 0, g->width * sizeof(*p));
    for (uint32_t i = 0; i < g->max_plans; i++)
        if (g->has_plan[i])
            p[i] = g->load[(size_t)i * g->max_experts + expert];
    p[g->max_plans + expert] = 1.0;
    p[g->width - 1] = 1.0;
    g->basis[row] = g->max_plans + expert;
    for (uint32_t i = 0; i < row; i++) {
        const uint32_t col = g->basis[i];

        if (p[col] != 0.0) {
            axpy(p, -p[col], game_row(g, i), g->width);
            p[col] = 0.0;
        }
    }
}

static uint32_t free_slot(const bool *has, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!has[i])
            return i;
    return HEDDLE_BOUND_NONE;
}

uint32_t heddle_game_add_plan(struct heddle_game *g, const double *load)
{
    const uint32_t i = free_slot(g->has_plan, g->max_plans);

    if (i == HEDDLE_BOUND_NONE)
        return i;
    g->has_plan[i] = true;
    for (uint32_t j = 0; j < g->max_experts; j++)
        g->load[(size_t)i * g->max_experts + j] = g->has_expert[j] ? load[j] : 0.0;
    put_column(g, i);
    return i;
}

uint32_t heddle_game_add_expert(struct heddle_game *g, const double *load)
{
    const uint32_t j = free_slot(g->has_expert, g->max_experts);

    if (j == HEDDLE_BOUND_NONE)
        return j;
    g->has_expert[j] = true;
    for (uint32_t i = 0; i < g->max_plans; i++)
        if (g->has_plan[i])
            g->load[(size_t)i * g->max_experts + j] = load[i];
    put_row(g, j);
    return j;
}

static bool is_basic(const struct heddle_game *g, uint32_t col)
{
    for (uint32_t i = 0; i < g->nrows; i++)
        if (g->basis[i] == col)
            return true;
    return false;
}

static void clear_column(struct heddle_game *g, uint32_t col)
{
    for (uint32_t i = 0; i < g->nrows; i++)
        game_row(g, i)[col] = 0.0;
    g->cost[col] = 0.0;
}

uint32_t heddle_game_drop_plan(struct heddle_game *g)
{
    uint32_t worst = HEDDLE_BOUND_NONE;

    for (uint32_t i = 0; i < g->max_plans; i++) {
        if (!g->has_plan[i] || is_basic(g, i))
            continue;
        if (worst == HEDDLE_BOUND_NONE || g->cost[i] > g->cost[worst])
            worst = i;
    }
    if (worst == HEDDLE_BOUND_NONE)
        return worst;
    g->has_plan[worst] = false;
    clear_column(g, worst);
    return worst;
}

uint32_t heddle_game_drop_expert(struct heddle_game *g, uint32_t keep)
{
    const uint32_t rhs = g->width - 1;
    uint32_t worst = HEDDLE_BOUND_NONE, j, last;

    for (uint32_t i = 0; i < g->nrows; i++) {
        if (g->basis[i] < g->max_plans + keep)
            continue;
        if (worst == HEDDLE_BOUND_NONE || game_row(g, i)[rhs] > game_row(g, worst)[rhs])
            worst = i;
    }
    if (worst == HEDDLE_BOUND_NONE)
        return worst;
    j = g->basis[worst] - g->max_plans;
    last = --g->nrows;
    if (worst != last)
        memcpy(game_row(g, worst), game_row(g, last), g->width * sizeof(*g->t));
    g->basis[worst] = g->basis[last];
    g->has_expert[j] = false;
    clear_column(g, g->max_plans + j);
    for (uint32_t i = 0; i < g->max_plans; i++)
        g->load[(size_t)i * g->max_experts + j] = 0.0;
    return j;
}

/* Makes right-hand sides positive again after rows were added. */
static bool dual_simplex(struct heddle_game *g)
{
    const uint32_t rhs = g->width - 1;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t row = HEDDLE_BOUND_NONE, col = HEDDLE_BOUND_NONE;
        double least = -EPS, best = INFINITY;
        const double *p;

        for (uint32_t i = 0; i < g->nrows; i++) {
            if (game_row(g, i)[rhs] < least) {
                least = game_row(g, i)[rhs];
                row = i;
                if (round > BLAND)
                    break;
            }
        }
        if (row == HEDDLE_BOUND_NONE)
            return true;
        p = game_row(g, row);
        for (uint32_t c = 0; c < rhs; c++) {
            const double ratio = p[c] < -PIVOT_EPS ? fmax(g->cost[c], 0.0) / -p[c] : INFINITY;

            if (ratio < best) {
                best = ratio;
                col = c;
            }
        }
        if (col == HEDDLE_BOUND_NONE)
            return false;
        pivot(g, row, col);
    }
    return false;
}

static uint32_t entering(const struct heddle_game *g, bool bland)
{
    uint32_t col = HEDDLE_BOUND_NONE;
    double least = -EPS;

    for (uint32_t c = 0; c < g->width - 1; c++) {
        if (g->cost[c] < least) {
            least = g->cost[c];
            col = c;
            if (bland)
                break;
        }
    }
    return col;
}

static bool primal_simplex(struct heddle_game *g)
{
    const uint32_t rhs = g->width - 1;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        const bool bland = round > BLAND;
        const uint32_t col = entering(g, bland);
        uint32_t row = HEDDLE_BOUND_NONE;
        double best = INFINITY;

        if (col == HEDDLE_BOUND_NONE)
            return true;
        for (uint32_t i = 0; i < g->nrows; i++) {
            const double *q = game_row(g, i);
            const double ratio = q[col] > PIVOT_EPS ? fmax(q[rhs], 0.0) / q[col] : INFINITY;
            const bool is_tie = row != HEDDLE_BOUND_NONE && ratio == best;

            if (ratio < best || (is_tie && bland && g->basis[i] < g->basis[row]) ||
                (is_tie && !bland && q[col] > game_row(g, row)[col])) {
                best = ratio;
                row = i;
            }
        }
        if (row == HEDDLE_BOUND_NONE)
            return false;
        pivot(g, row, col);
    }
    return false;
}

/* Scales v to sum 1 without its negative entries. */
static bool normalise(double *v, uint32_t n)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < n; i++) {
        v[i] = v[i] > 0.0 ? v[i] : 0.0;
        sum += v[i];
    }
    if (!(sum > 0.0) || !(sum < INFINITY))
        return false;
    for (uint32_t i = 0; i < n; i++)
        v[i] /= sum;
    return true;
}

/* low and high from the loads themselves; true when they agree. */
static bool evaluate(struct heddle_game *g)
{
    g->low = INFINITY;
    g->high = 0.0;
    for (uint32_t i = 0; i < g->max_plans; i++) {
        const double *load = g->load + (size_t)i * g->max_experts;
        double sum = 0.0;

        for (uint32_t j = 0; g->has_plan[i] && j < g->max_experts; j++)
            sum += g->w[j] * load[j];
        if (g->has_plan[i] && sum < g->low)
            g->low = sum;
    }
    for (uint32_t j = 0; j < g->max_experts; j++) {
        double sum = 0.0;

        if (!g->has_expert[j])
            continue;
        for (uint32_t i = 0; i < g->max_plans; i++)
            if (g->has_plan[i] && g->u[i] > 0.0)
                sum += g->u[i] * g->load[(size_t)i * g->max_experts + j];
        g->high = fmax(g->high, sum);
    }
    return g->high - g->low <= AGREE * g->high;
}

static bool read_mixes(struct heddle_game *g)
{
    memset(g->u, 0, g->max_plans * sizeof(*g->u));
    for (uint32_t i = 0; i < g->nrows; i++)
        if (g->basis[i] < g->max_plans)
            g->u[g->basis[i]] = game_row(g, i)[g->width - 1];
    memcpy(g->w, g->cost + g->max_plans, g->max_experts * sizeof(*g->w));
    return normalise(g->w, g->max_experts) && normalise(g->u, g->max_plans) && evaluate(g);
}

static void rebuild(struct heddle_game *g)
{
    memset(g->cost, 0, g->width * sizeof(*g->cost));
    g->nrows = 0;
    for (uint32_t j = 0; j < g->max_experts; j++)
        if (g->has_expert[j])
            put_row(g, j);
    for (uint32_t i = 0; i < g->max_plans; i++)
        if (g->has_plan[i])
            g->cost[i] = -1.0;
}

bool heddle_game_solve(struct heddle_game *g)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        if (g->is_stale)
            rebuild(g);
        g->is_stale = !(dual_simplex(g) && primal_simplex(g) && read_mixes(g));
        if (!g->is_stale)
            return true;
    }
    return false;
}
