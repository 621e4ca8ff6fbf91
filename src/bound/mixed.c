/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed: area and dependencies in one bound.
 *
 * Problem    maximise B(l, f) = sum_t min_r (l_r + f_t) time(t, r) over prices l
 *            and flows f along paths, sum_r n_r l_r + total flow = 1. B is a
 *            lower bound at every such point, so it does not matter for the
 *            truth of the answer how the point was found.
 * Method     double oracle. Experts are the areas of the types and some paths,
 *            plans are some allocations of all tasks; a small matrix game gives
 *            weights of experts and a mix of plans. The longest path under the
 *            mix is a new expert, and with the areas an upper bound on the
 *            optimum. The cheapest plan at the weights is a new plan, and its
 *            cost is B. Weights are asked half way to the best known ones
 *            ("in-out"): without it the weights swing and the gap stalls.
 * Structure  paths live in a pool, so that the best weights can name a path the
 *            game has dropped since. A plan is a byte per task.
 * Invariants slots 0 .. r-1 of the experts are the areas. Times are divided by
 *            the value of the start, so the game's numbers are around 1.
 * Cost       O(types * (tasks + edges)) per iteration, plus the game.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/rng.h"
#include "bound/game.h"

#define PLANS      144
#define EXPERTS    (144 + HEDDLE_BOUND_TYPES_MAX)
#define PLAN_BYTES ((size_t)512 << 20) /* of all plans together */
#define POOL_STEPS ((size_t)96 << 20)  /* positions of all paths together */
/* So many iterations must shrink the gap by this factor, or too many paths
 * matter and soft.c is the better way. */
#define PATIENCE 40
#define PROGRESS 0.6
#define NEAR     1e-9
#define PART     16 /* of the time, for the method here */

struct path {
    uint32_t *pos, *step; /* step: indices into pred, len - 1 of them */
    uint32_t len;
    uint32_t slot; /* in the game, or HEDDLE_BOUND_NONE */
    uint64_t hash;
};

struct mixed {
    const struct heddle_bound_dag *d;
    struct heddle_scratch *m;   /* of the answer */
    struct heddle_scratch work; /* of this file */
    struct heddle_game game;
    double scale;
    double *time; /* [k x r] divided by scale */
    uint8_t *plan[PLANS];
    uint32_t path_of[EXPERTS]; /* slot -> path */
    struct path *path;
    uint32_t npaths, max_paths;
    size_t nsteps;
    double *dur, *len, *flow;             /* [n] */
    uint32_t *via;                        /* [n] */
    uint8_t *choice;                      /* [n] the plan being made */
    double *kind_cost;                    /* [k] at flow 0 */
    uint8_t *kind_choice;                 /* [k] */
    double price[HEDDLE_BOUND_TYPES_MAX]; /* being asked */
    double *ask;                          /* [max_paths] weights being asked */
    double best_price[HEDDLE_BOUND_TYPES_MAX];
    double *best; /* [max_paths] weights of the best answer */
    double lower, upper;
    bool is_full; /* no room for more; end */
};

static double time_of(const struct mixed *x, uint32_t v, uint32_t r)
{
    return x->time[(size_t)x->d->kind[v] * x->d->r + r];
}

static double path_load(const struct mixed *x, const struct path *p, const uint8_t *plan)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < p->len; i++)
        sum += time_of(x, p->pos[i], plan[p->pos[i]]);
    return sum;
}

/* The path that ends with v, from x->via: known, or new in the pool. */
static heddle_status pool_add(struct mixed *x, uint32_t v, uint32_t *path_out)
{
    const uint32_t len = heddle_bound_path_len(x->d, x->via, v);
    struct path *p = &x->path[x->npaths];
    uint64_t hash = len;

    *path_out = HEDDLE_BOUND_NONE;
    for (uint32_t w = v; w != HEDDLE_BOUND_NONE;
         w = x->via[w] == HEDDLE_BOUND_NONE ? HEDDLE_BOUND_NONE : x->d->pred[x->via[w]])
        hash = heddle_mix64(hash ^ w);
    for (uint32_t i = 0; i < x->npaths; i++) {
        if (x->path[i].hash == hash && x->path[i].len == len) {
            *path_out = i;
            return HEDDLE_OK;
        }
    }
    if (x->npaths == x->max_paths || x->nsteps + len > POOL_STEPS) {
        x->is_full = true;
        return HEDDLE_OK;
    }
    p->pos = heddle_scratch_get(&x->work, len, sizeof(*p->pos));
    p->step = heddle_scratch_get(&x->work, len, sizeof(*p->step));
    if (p->pos == NULL || p->step == NULL)
        return HEDDLE_ENOMEM;
    heddle_bound_path_get(x->d, x->via, v, len, p->pos, p->step);
    p->len = len;
    p->slot = HEDDLE_BOUND_NONE;
    p->hash = hash;
    x->nsteps += len;
    *path_out = x->npaths++;
    return HEDDLE_OK;
}

/* Puts a path of the pool into the game; false: it is there already. */
static bool add_expert(struct mixed *x, uint32_t path)
{
    double load[PLANS] = {0};
    uint32_t slot;

    if (path == HEDDLE_BOUND_NONE || x->path[path].slot != HEDDLE_BOUND_NONE)
        return false;
    for (uint32_t i = 0; i < x->game.max_plans; i++)
        if (x->game.has_plan[i])
            load[i] = path_load(x, &x->path[path], x->plan[i]);
    slot = heddle_game_add_expert(&x->game, load);
    if (slot == HEDDLE_BOUND_NONE) {
        const uint32_t old = heddle_game_drop_expert(&x->game, x->d->r);

        if (old != HEDDLE_BOUND_NONE) {
            x->path[x->path_of[old]].slot = HEDDLE_BOUND_NONE;
            slot = heddle_game_add_expert(&x->game, load);
        }
    }
    if (slot == HEDDLE_BOUND_NONE) {
        x->is_full = true;
        return false;
    }
    x->path_of[slot] = path;
    x->path[path].slot = slot;
    return true;
}

/* Loads of x->choice on all experts. */
static void plan_loads(const struct mixed *x, double *load)
{
    const struct heddle_bound_dag *d = x->d;

    memset(load, 0, EXPERTS * sizeof(*load));
    for (uint32_t v = 0; v < d->n; v++)
        load[x->choice[v]] += time_of(x, v, x->choice[v]);
    for (uint32_t r = 0; r < d->r; r++)
        load[r] /= d->nworkers[r];
    for (uint32_t j = d->r; j < x->game.max_experts; j++)
        if (x->game.has_expert[j])
            load[j] = path_load(x, &x->path[x->path_of[j]], x->choice);
}

/* Puts x->choice into the game. */
static heddle_status add_plan(struct mixed *x)
{
    double load[EXPERTS];
    uint32_t slot;

    plan_loads(x, load);
    slot = heddle_game_add_plan(&x->game, load);
    if (slot == HEDDLE_BOUND_NONE && heddle_game_drop_plan(&x->game) != HEDDLE_BOUND_NONE)
        slot = heddle_game_add_plan(&x->game, load);
    if (slot == HEDDLE_BOUND_NONE) {
        x->is_full = true;
        return HEDDLE_OK;
    }
    if (x->plan[slot] == NULL)
        x->plan[slot] = heddle_scratch_get(&x->work, x->d->n, 1);
    if (x->plan[slot] == NULL)
        return HEDDLE_ENOMEM;
    memcpy(x->plan[slot], x->choice, x->d->n);
    return HEDDLE_OK;
}

static void set_flow(struct mixed *x)
{
    memset(x->flow, 0, x->d->n * sizeof(*x->flow));
    for (uint32_t j = 0; j < x->npaths; j++) {
        const struct path *p = &x->path[j];

        if (x->ask[j] <= 0.0)
            continue;
        for (uint32_t i = 0; i < p->len; i++)
            x->flow[p->pos[i]] += x->ask[j];
    }
}

static double cheapest_type(const struct mixed *x, uint32_t k, double flow, uint8_t *choice_out)
{
    const double *p = x->time + (size_t)k * x->d->r;
    double least = INFINITY;

    for (uint32_t r = 0; r < x->d->r; r++) {
        const double c = p[r] < INFINITY ? (x->price[r] + flow) * p[r] : INFINITY;

        if (c < least) {
            least = c;
            *choice_out = (uint8_t)r;
        }
    }
    return least;
}

/* B at x->price and x->ask; the plan it comes from is x->choice. */
static double ask_plan(struct mixed *x)
{
    const struct heddle_bound_dag *d = x->d;
    double sum = 0.0;

    set_flow(x);
    for (uint32_t k = 0; k < d->k; k++) {
        x->kind_choice[k] = 0;
        x->kind_cost[k] = cheapest_type(x, k, 0.0, &x->kind_choice[k]);
    }
    for (uint32_t v = 0; v < d->n; v++) {
        const uint32_t k = d->kind[v];

        if (x->flow[v] > 0.0) {
            sum += cheapest_type(x, k, x->flow[v], &x->choice[v]);
        } else {
            sum += x->kind_cost[k];
            x->choice[v] = x->kind_choice[k];
        }
    }
    return sum;
}

static void keep_if_better(struct mixed *x, double value)
{
    if (value <= x->lower)
        return;
    x->lower = value;
    memcpy(x->best_price, x->price, sizeof(x->price));
    memcpy(x->best, x->ask, x->max_paths * sizeof(*x->ask));
}

/* What is asked: `share` of the game's weights, the rest of the best ones. */
static void blend(struct mixed *x, double share)
{
    const struct heddle_game *g = &x->game;

    for (uint32_t r = 0; r < x->d->r; r++)
        x->price[r] = share * g->w[r] / x->d->nworkers[r] + (1.0 - share) * x->best_price[r];
    for (uint32_t j = 0; j < x->npaths; j++)
        x->ask[j] = (1.0 - share) * x->best[j];
    for (uint32_t s = x->d->r; s < g->max_experts; s++)
        if (g->has_expert[s])
            x->ask[x->path_of[s]] += share * g->w[s];
}

/* x->dur = the times of the tasks under the mix of plans. */
static void mix_times(struct mixed *x)
{
    const struct heddle_game *g = &x->game;

    memset(x->dur, 0, x->d->n * sizeof(*x->dur));
    for (uint32_t i = 0; i < g->max_plans; i++) {
        const uint8_t *plan = x->plan[i];

        if (!g->has_plan[i] || !(g->u[i] > 0.0))
            continue;
        for (uint32_t v = 0; v < x->d->n; v++)
            x->dur[v] += g->u[i] * time_of(x, v, plan[v]);
    }
}

static void choice_times(struct mixed *x)
{
    for (uint32_t v = 0; v < x->d->n; v++)
        x->dur[v] = time_of(x, v, x->choice[v]);
}

/* The longest path under x->dur, into the pool. */
static heddle_status find_path(struct mixed *x, double *len_out, uint32_t *path_out)
{
    const uint32_t v = heddle_bound_longest(x->d, x->dur, x->len, x->via);

    *len_out = x->len[v];
    return pool_add(x, v, path_out);
}

/* One round; *moved_out: the game has changed. */
static heddle_status iterate(struct mixed *x, bool *moved_out)
{
    uint32_t worst, other;
    double len, ignored;

    *moved_out = false;
    if (!heddle_game_solve(&x->game))
        return HEDDLE_OK;
    mix_times(x);
    HEDDLE_TRY(find_path(x, &len, &worst));
    x->upper = fmin(x->upper, fmax(x->game.high, len));
    if (len <= x->game.high * (1.0 + NEAR))
        worst = HEDDLE_BOUND_NONE;

    blend(x, 0.5);
    keep_if_better(x, ask_plan(x));
    HEDDLE_TRY(add_plan(x));
    choice_times(x);
    HEDDLE_TRY(find_path(x, &ignored, &other));

    /* The loads of the new paths include the new plan, so they come second. */
    blend(x, 1.0);
    ignored = ask_plan(x);
    keep_if_better(x, ignored);
    /* A plan as dear as the game's value is in the game already. */
    *moved_out = ignored < x->game.low * (1.0 - NEAR);
    if (*moved_out)
        HEDDLE_TRY(add_plan(x));
    *moved_out = add_expert(x, worst) || *moved_out;
    *moved_out = add_expert(x, other) || *moved_out;
    return HEDDLE_OK;
}

static heddle_status get_memory(struct mixed *x, uint32_t iterations)
{
    const struct heddle_bound_dag *d = x->d;
    const size_t fit = PLAN_BYTES / d->n;
    const uint32_t plans = fit < 16 ? 16 : fit < PLANS ? (uint32_t)fit : PLANS;

    x->max_paths = 2 * iterations + 2;
    x->time = heddle_scratch_get(&x->work, d->k, d->r * sizeof(*x->time));
    x->path = heddle_scratch_get(&x->work, x->max_paths, sizeof(*x->path));
    x->ask = heddle_scratch_get(&x->work, x->max_paths, sizeof(*x->ask));
    x->best = heddle_scratch_get(&x->work, x->max_paths, sizeof(*x->best));
    x->dur = heddle_scratch_get(&x->work, d->n, sizeof(*x->dur));
    x->len = heddle_scratch_get(&x->work, d->n, sizeof(*x->len));
    x->flow = heddle_scratch_get(&x->work, d->n, sizeof(*x->flow));
    x->via = heddle_scratch_get(&x->work, d->n, sizeof(*x->via));
    x->choice = heddle_scratch_get(&x->work, d->n, 1);
    x->kind_cost = heddle_scratch_get(&x->work, d->k, sizeof(*x->kind_cost));
    x->kind_choice = heddle_scratch_get(&x->work, d->k, 1);
    if (x->time == NULL || x->path == NULL || x->ask == NULL || x->best == NULL || x->dur == NULL ||
        x->len == NULL || x->flow == NULL || x->via == NULL || x->choice == NULL ||
        x->kind_cost == NULL || x->kind_choice == NULL)
        return HEDDLE_ENOMEM;
    return heddle_game_init(&x->game, &x->work, plans, 144 + d->r);
}

/* Areas, the critical path, and the plans that are best for the start and for
 * the path alone. */
static heddle_status start(struct mixed *x, const struct heddle_bound_sol *sol)
{
    const struct heddle_bound_dag *d = x->d;
    const double none[PLANS] = {0};
    uint32_t path;
    double len;

    for (size_t i = 0; i < (size_t)d->k * d->r; i++)
        x->time[i] = d->time[i] / x->scale;
    for (uint32_t r = 0; r < d->r; r++)
        heddle_game_add_expert(&x->game, none);
    for (uint32_t v = 0; v < d->n; v++)
        x->dur[v] = d->fast[d->kind[v]] / x->scale;
    HEDDLE_TRY(find_path(x, &len, &path));
    HEDDLE_CHECK(path == 0);
    add_expert(x, 0);

    x->ask[0] = 1.0;
    keep_if_better(x, ask_plan(x));
    HEDDLE_TRY(add_plan(x));
    x->ask[0] = 0.0;
    memcpy(x->price, sol->price, d->r * sizeof(*x->price));
    keep_if_better(x, ask_plan(x));
    return add_plan(x);
}

/* A part of the time that is left: the rest is for soft.c. */
static uint64_t part_time(uint64_t deadline)
{
    const uint64_t now = heddle_clock_ns();

    return deadline > now ? now + (deadline - now) / PART : deadline;
}

static heddle_status loop(struct mixed *x, struct heddle_bound_effort *effort)
{
    const uint64_t end = part_time(effort->deadline);
    double gap_then = INFINITY;
    uint32_t i = 0;
    bool moved = true;

    while (moved && !x->is_full && i < effort->iterations) {
        if (x->upper < INFINITY && x->upper - x->lower <= effort->gap * x->upper)
            break;
        if (end != 0 && heddle_clock_ns() >= end)
            break;
        HEDDLE_TRY(iterate(x, &moved));
        if (++i % PATIENCE == 0) {
            if (x->upper - x->lower > PROGRESS * gap_then)
                break;
            gap_then = x->upper - x->lower;
        }
    }
    effort->iterations = i;
    return HEDDLE_OK;
}

/* The best weights, paths added up into a flow. */
static heddle_status answer(struct mixed *x, struct heddle_bound_sol *sol)
{
    memcpy(sol->price, x->best_price, x->d->r * sizeof(*sol->price));
    sol->start = heddle_scratch_get(x->m, x->d->n, sizeof(*sol->start));
    sol->edge_flow = heddle_scratch_get(x->m, x->d->e, sizeof(*sol->edge_flow));
    if (sol->start == NULL || sol->edge_flow == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t j = 0; j < x->npaths; j++) {
        const struct path *p = &x->path[j];

        if (x->best[j] <= 0.0)
            continue;
        sol->start[p->pos[0]] += x->best[j];
        for (uint32_t i = 0; i + 1 < p->len; i++)
            sol->edge_flow[p->step[i]] += x->best[j];
    }
    return HEDDLE_OK;
}

/* The rest of the iterations, with all paths at once. */
static heddle_status go_on(const struct heddle_bound_dag *d, struct heddle_bound_effort *effort,
                           uint32_t iterations, struct heddle_scratch *m,
                           struct heddle_bound_sol *sol, double *value)
{
    const uint32_t done = effort->iterations;
    heddle_status st;

    effort->iterations = iterations - done;
    st = heddle_bound_soft(d, effort, m, sol, value);
    effort->iterations += done;
    return st;
}

heddle_status heddle_bound_mixed(const struct heddle_bound_dag *d,
                                 struct heddle_bound_effort *effort, struct heddle_scratch *m,
                                 struct heddle_bound_sol *sol, double *value)
{
    const uint32_t iterations = effort->iterations;
    struct mixed *x;
    struct heddle_scratch own = {.a = m->a};
    heddle_status st;

    effort->upper = *value;
    if (d->n == 0 || !(*value > 1e-280)) {
        effort->iterations = 0;
        return HEDDLE_OK;
    }
    x = heddle_scratch_get(&own, 1, sizeof(*x));
    if (x == NULL)
        return HEDDLE_ENOMEM;
    x->d = d;
    x->m = m;
    x->work.a = m->a;
    x->scale = *value;
    x->upper = INFINITY;
    st = get_memory(x, effort->iterations);
    if (st == HEDDLE_OK)
        st = start(x, sol);
    if (st == HEDDLE_OK)
        st = loop(x, effort);
    if (st == HEDDLE_OK)
        st = answer(x, sol);
    if (st == HEDDLE_OK) {
        *value = x->lower * x->scale;
        effort->upper = fmax(x->upper, x->lower) * x->scale;
    }
    heddle_scratch_drop(&x->work);
    heddle_scratch_drop(&own);
    if (st == HEDDLE_OK &&
        (effort->upper == INFINITY || effort->upper - *value > effort->gap * effort->upper))
        st = go_on(d, effort, iterations, m, sol, value);
    return st;
}
