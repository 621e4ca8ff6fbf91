/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dual: the best multipliers of a bound on energy, by column and row generation.
 *
 * Problem    over fractional allocations and a length T <= deadline, the least
 *            energy such that no reason says that T is too short. Its dual has a
 *            multiplier per reason; any multipliers >= 0 prove a bound, B(s).
 * Method     a linear program over the multipliers of the reasons known so far
 *            against the allocations ("plans") known so far. Its dual values mix
 *            the plans. Under the mix, the longest path and the fullest window are
 *            the reasons that are missing; the cheapest plan under the
 *            multipliers, and under those half way to the best known ("in-out"),
 *            are the plans that are missing.
 * Invariants the answer is the point with the greatest B that was evaluated, so
 *            rounding in the program cannot falsify it.
 * Cost       per iteration O(mixed plans * tasks + edges + tasks * windows).
 */
#include "energy/dual.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"

#define BIG 1e4 /* price of a late schedule, in mean power */
enum {
    FIXED_COLS = 2,       /* theta, lambda */
    PLAN_BYTES = 1 << 26, /* of all plans together */
    FRESH = 12            /* new ones survive a cleaning */
};

#define FIXED_ROWS HEDDLE_DUAL_FIXED_ROWS

/* --- the program ------------------------------------------------------------ */

/* The entry of a plan and a reason in the program. */
static double entry(const struct heddle_dual *x, uint32_t plan, uint32_t j)
{
    return -(x->load[(size_t)plan * HEDDLE_DUAL_REASONS + j] + x->reason[j].lead) / x->tscale;
}

static void program_add_reason(struct heddle_dual *x, uint32_t j)
{
    double a[HEDDLE_DUAL_PLANS + FIXED_ROWS] = {1.0, 0.0};

    for (uint32_t i = 0; i < x->nplans; i++)
        a[FIXED_ROWS + i] = entry(x, i, j);
    heddle_lp_add_col(&x->lp, a, 0.0);
}

static void program_add_plan(struct heddle_dual *x, uint32_t i)
{
    double a[HEDDLE_DUAL_REASONS + FIXED_COLS] = {1.0, 0.0};

    for (uint32_t j = 0; j < x->nreasons; j++)
        a[FIXED_COLS + j] = entry(x, i, j);
    heddle_lp_add_row(&x->lp, a, x->energy[i] / x->escale);
}

/* The program anew, from what is known. */
static void program_make(struct heddle_dual *x)
{
    const double unit = x->tscale / x->escale;
    const bool is_free = x->d->deadline == (double)INFINITY;
    double a[HEDDLE_DUAL_REASONS + FIXED_COLS] = {0};

    heddle_lp_clear(&x->lp);
    heddle_lp_add_col(&x->lp, a, 1.0); /* theta */
    heddle_lp_add_col(&x->lp, a, is_free ? -1.0 : -x->d->deadline / x->tscale);
    for (uint32_t j = 0; j < x->nreasons; j++)
        heddle_lp_add_col(&x->lp, a, 0.0);
    a[1] = -1.0;
    for (uint32_t j = 0; j < x->nreasons; j++)
        a[FIXED_COLS + j] = 1.0;
    heddle_lp_add_row(&x->lp, a, x->d->idle * unit);
    memset(a, 0, sizeof(a));
    a[1] = 1.0;
    heddle_lp_add_row(&x->lp, a, is_free ? 0.0 : BIG);
    for (uint32_t i = 0; i < x->nplans; i++)
        program_add_plan(x, i);
}

/* --- one evaluation ---------------------------------------------------------- */

/* What the areas of the windows ask for, per window and type; windows that ask
 * for nothing are left out. */
struct prices {
    uint32_t n;
    uint32_t window[HEDDLE_DUAL_WINDOWS];
    double price[HEDDLE_DUAL_WINDOWS][HEDDLE_BOUND_TYPES_MAX];
    double given;
};

static void collect(struct heddle_dual *x, const double *s, struct prices *p)
{
    int at[HEDDLE_DUAL_WINDOWS];

    memset(at, -1, sizeof(at));
    memset(x->flow, 0, x->d->n * sizeof(*x->flow));
    p->n = 0;
    p->given = 0.0;
    for (uint32_t j = 0; j < x->nreasons; j++) {
        const struct heddle_dual_reason *q = &x->reason[j];

        if (s[j] <= 0.0)
            continue;
        if (q->kind == HEDDLE_DUAL_GIVEN)
            p->given = s[j];
        if (q->kind == HEDDLE_DUAL_PATH)
            for (uint32_t i = 0; i < q->length; i++)
                x->flow[q->pos[i]] += s[j];
        if (q->kind != HEDDLE_DUAL_AREA)
            continue;
        if (at[q->window] < 0) {
            at[q->window] = (int)p->n;
            memset(p->price[p->n], 0, sizeof(p->price[p->n]));
            p->window[p->n++] = q->window;
        }
        p->price[at[q->window]][q->type] = s[j] / x->d->nworkers[q->type];
    }
}

/* The cheapest type of the task at v; returns its cost. */
static double answer(const struct heddle_dual *x, const struct prices *p, uint32_t v,
                     uint8_t *type_out)
{
    const uint32_t r = x->d->r;
    double c[HEDDLE_BOUND_TYPES_MAX], least = INFINITY;

    for (uint32_t i = 0; i < r; i++)
        c[i] = x->flow[v];
    for (uint32_t k = 0; k < p->n; k++)
        if (heddle_dual_in_window(x, v, p->window[k]))
            for (uint32_t i = 0; i < r; i++)
                c[i] += p->price[k][i];
    if (p->given > 0.0 && heddle_dual_in_given(x, v))
        for (uint32_t i = 0; i < r; i++)
            c[i] += p->given * (x->given->price[i] + x->given->flow[v]);
    for (uint32_t i = 0; i < r; i++) {
        double time, cost;

        if (!heddle_dual_can(x->d, v, i, &time))
            continue;
        cost = heddle_dual_joules_of(x, v, i) + c[i] * time;
        if (cost < least) {
            least = cost;
            *type_out = (uint8_t)i;
        }
    }
    return least;
}

/* B(s); the plan that answers s goes behind the others, its loads with it. s is
 * in joules per unit of time. */
static double evaluate(struct heddle_dual *x, const double *s)
{
    const uint32_t i = x->nplans++;
    struct prices p;
    double sum = 0.0, all = 0.0;

    collect(x, s, &p);
    x->energy[i] = 0.0;
    for (uint32_t v = 0; v < x->d->n; v++) {
        sum += answer(x, &p, v, &x->plan[i][v]);
        x->energy[i] += heddle_dual_joules_of(x, v, x->plan[i][v]);
    }
    for (uint32_t j = 0; j < x->nreasons; j++) {
        x->load[(size_t)i * HEDDLE_DUAL_REASONS + j] =
            heddle_dual_load(x, x->plan[i], &x->reason[j]);
        all += s[j];
        sum += s[j] * x->reason[j].lead;
    }
    if (all > x->d->idle)
        sum -= x->d->deadline < INFINITY ? (all - x->d->idle) * x->d->deadline : (double)INFINITY;
    return sum;
}

/* Without a deadline, multipliers may add up to the idle power and no more. */
static void within_idle(const struct heddle_dual *x, double *s)
{
    double all = 0.0;

    for (uint32_t j = 0; j < x->nreasons; j++)
        all += s[j];
    for (uint32_t j = 0; j < x->nreasons && all > x->d->idle && x->d->deadline == (double)INFINITY;
         j++)
        s[j] *= x->d->idle / all * (1.0 - 1e-15);
}

static void attempt(struct heddle_dual *x, const double *s)
{
    double v = evaluate(x, s);

    if (v > x->best) {
        x->best = v;
        memcpy(x->best_s, s, sizeof(x->best_s));
    }
}

/* --- cleaning ------------------------------------------------------------------ */

static void drop_reasons(struct heddle_dual *x)
{
    uint32_t k = 0;

    for (uint32_t j = 0; j < x->nreasons; j++) {
        if (j >= x->d->r + 1 && x->s[j] <= 0.0 && x->best_s[j] <= 0.0 && j + FRESH < x->nreasons)
            continue;
        x->reason[k] = x->reason[j];
        x->s[k] = x->s[j];
        x->best_s[k] = x->best_s[j];
        for (uint32_t i = 0; i < x->nplans; i++)
            x->load[(size_t)i * HEDDLE_DUAL_REASONS + k] =
                x->load[(size_t)i * HEDDLE_DUAL_REASONS + j];
        k++;
    }
    for (uint32_t j = k; j < x->nreasons; j++)
        x->s[j] = x->best_s[j] = 0.0;
    x->nreasons = k;
}

static void drop_windows(struct heddle_dual *x)
{
    uint32_t to[HEDDLE_DUAL_WINDOWS] = {0}, k = 1;

    for (uint32_t w = 1; w < x->nwindows; w++) {
        bool is_used = false;

        for (uint32_t j = 0; j < x->nreasons; j++)
            is_used =
                is_used || (x->reason[j].kind == HEDDLE_DUAL_AREA && x->reason[j].window == w);
        to[w] = k;
        if (is_used)
            x->window[k++] = x->window[w];
    }
    x->nwindows = k;
    for (uint32_t j = 0; j < x->nreasons; j++)
        x->reason[j].window = to[x->reason[j].window];
}

static void drop_plans(struct heddle_dual *x)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < x->nplans; i++) {
        uint8_t *swap = x->plan[k];

        if (x->u[FIXED_ROWS + i] <= 0.0 && i + FRESH < x->nplans)
            continue;
        x->plan[k] = x->plan[i];
        x->plan[i] = swap;
        x->energy[k] = x->energy[i];
        memcpy(x->load + (size_t)k * HEDDLE_DUAL_REASONS, x->load + (size_t)i * HEDDLE_DUAL_REASONS,
               HEDDLE_DUAL_REASONS * sizeof(*x->load));
        k++;
    }
    x->nplans = k;
}

/* Room for the next iteration: at most two plans, and a path per plan, one of
 * the mix and a window per type. False: there is none. */
static bool make_room(struct heddle_dual *x)
{
    const uint32_t reasons = 3 + x->d->r;

    if (x->nplans + 2 <= x->max_plans && x->nreasons + reasons <= HEDDLE_DUAL_REASONS &&
        x->nwindows + x->d->r <= HEDDLE_DUAL_WINDOWS)
        return true;
    drop_reasons(x);
    drop_windows(x);
    drop_plans(x);
    program_make(x);
    return x->nplans + 2 <= x->max_plans && x->nreasons + reasons <= HEDDLE_DUAL_REASONS &&
           x->nwindows + x->d->r <= HEDDLE_DUAL_WINDOWS;
}

/* --- the whole ------------------------------------------------------------------ */

/* Solves the program and reads it; false: it is of no use. */
static bool program_solve(struct heddle_dual *x)
{
    double v[HEDDLE_DUAL_REASONS + FIXED_COLS];
    const double unit = x->escale / x->tscale;

    if (!heddle_lp_solve(&x->lp)) {
        program_make(x);
        if (!heddle_lp_solve(&x->lp))
            return false;
    }
    heddle_lp_get(&x->lp, v, x->u);
    memset(x->s, 0, sizeof(x->s));
    for (uint32_t j = 0; j < x->nreasons; j++)
        x->s[j] = v[FIXED_COLS + j] * unit;
    within_idle(x, x->s);
    x->length = x->u[0] * x->tscale;
    return true;
}

/* One iteration; *is_done: nothing is missing. */
static heddle_status iterate(struct heddle_dual *x, double gap, bool *is_done)
{
    const double v = heddle_lp_value(&x->lp) * x->escale;
    const uint32_t nreasons = x->nreasons, nplans = x->nplans;
    double half[HEDDLE_DUAL_REASONS] = {0};
    heddle_status st;

    heddle_dual_mix(x);
    st = heddle_dual_add_path(x);
    heddle_dual_add_windows(x);
    x->value = v;
    *is_done = nreasons == x->nreasons && v - x->best <= gap * fabs(v);
    if (st != HEDDLE_OK || *is_done)
        return st;
    for (uint32_t j = 0; j < x->nreasons; j++)
        half[j] = 0.5 * (x->s[j] + x->best_s[j]);
    within_idle(x, half);
    attempt(x, x->s);
    attempt(x, half);
    for (uint32_t i = nplans; i < x->nplans && st == HEDDLE_OK; i++)
        st = heddle_dual_path_of_plan(x, i, x->length);
    *is_done = nreasons == x->nreasons && v - x->best <= gap * fabs(v);
    /* The program knows columns first, then rows. */
    for (uint32_t i = nplans; i < x->nplans; i++)
        x->u[FIXED_ROWS + i] = 0.0;
    x->nplans = nplans;
    for (uint32_t j = nreasons; j < x->nreasons; j++)
        program_add_reason(x, j);
    x->nplans = nplans + 2;
    if (nreasons < x->nreasons && !heddle_lp_solve(&x->lp)) {
        program_make(x);
        return st;
    }
    for (uint32_t i = nplans; i < x->nplans; i++)
        program_add_plan(x, i);
    return st;
}

static heddle_status loop(struct heddle_dual *x, const struct heddle_dual_effort *effort,
                          uint32_t *iterations)
{
    heddle_status st = HEDDLE_OK;
    bool is_done = false;

    for (*iterations = 0; *iterations < effort->iterations && !is_done; ++*iterations) {
        if (effort->deadline != 0 && heddle_clock_ns() >= effort->deadline)
            break;
        if (!make_room(x) || !program_solve(x))
            break;
        st = iterate(x, effort->gap, &is_done);
        if (st != HEDDLE_OK)
            return st;
    }
    return HEDDLE_OK;
}

static heddle_status get_memory(struct heddle_dual *x)
{
    const uint32_t n = x->d->n, most = PLAN_BYTES / (n + 1);
    struct heddle_scratch *m = x->m;

    x->max_plans = most < 32 ? 32 : most < HEDDLE_DUAL_PLANS ? most : HEDDLE_DUAL_PLANS;
    x->reason = heddle_scratch_get(m, HEDDLE_DUAL_REASONS, sizeof(*x->reason));
    x->window = heddle_scratch_get(m, HEDDLE_DUAL_WINDOWS, sizeof(*x->window));
    x->plan = heddle_scratch_get(m, x->max_plans, sizeof(*x->plan));
    x->energy = heddle_scratch_get(m, x->max_plans, sizeof(*x->energy));
    x->load = heddle_scratch_get(m, (size_t)x->max_plans * HEDDLE_DUAL_REASONS, sizeof(*x->load));
    x->mean = heddle_scratch_get(m, n, sizeof(*x->mean));
    x->len = heddle_scratch_get(m, n, sizeof(*x->len));
    x->via = heddle_scratch_get(m, n, sizeof(*x->via));
    x->flow = heddle_scratch_get(m, n, sizeof(*x->flow));
    x->cell = heddle_scratch_get(m, n, sizeof(*x->cell));
    x->grid = heddle_scratch_get(m, (size_t)x->d->r * HEDDLE_DUAL_GRID * HEDDLE_DUAL_GRID,
                                 sizeof(*x->grid));
    if (x->reason == NULL || x->window == NULL || x->plan == NULL || x->energy == NULL ||
        x->load == NULL || x->mean == NULL || x->len == NULL || x->via == NULL || x->flow == NULL ||
        x->cell == NULL || x->grid == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < x->max_plans; i++)
        if ((x->plan[i] = heddle_scratch_get(m, n, 1)) == NULL)
            return HEDDLE_ENOMEM;
    return heddle_lp_init(&x->lp, m, HEDDLE_DUAL_PLANS + FIXED_ROWS,
                          HEDDLE_DUAL_REASONS + FIXED_COLS);
}

/* The areas of the whole, the given certificate, and the first plans: what costs
 * least, and what costs least when time is dear. */
static heddle_status begin(struct heddle_dual *x)
{
    double s[HEDDLE_DUAL_REASONS] = {0};
    const uint32_t r = x->d->r;

    x->nwindows = 1;
    for (uint32_t i = 0; i < r; i++)
        heddle_dual_add_reason(x,
                               &(struct heddle_dual_reason){.kind = HEDDLE_DUAL_AREA, .type = i});
    if (x->given != NULL)
        heddle_dual_add_reason(
            x, &(struct heddle_dual_reason){.kind = HEDDLE_DUAL_GIVEN,
                                            .lead = x->given->head + x->given->tail});
    attempt(x, s);
    if (x->given != NULL) {
        s[r] = x->d->idle;
        attempt(x, s);
    }
    for (uint32_t i = 0; i < r; i++)
        s[i] = 1e3 * x->escale / x->tscale;
    within_idle(x, s);
    (void)evaluate(x, s);
    HEDDLE_TRY(heddle_dual_path_of_plan(x, x->nplans - 1, 0.0));
    program_make(x);
    return HEDDLE_OK;
}

heddle_status heddle_dual_solve(const struct heddle_dual_dag *d,
                                const struct heddle_dual_given *given,
                                const struct heddle_dual_effort *effort, double length,
                                struct heddle_scratch *m, struct heddle_dual_sol *sol_out)
{
    struct heddle_dual *x = heddle_scratch_get(m, 1, sizeof(*x));

    if (x == NULL)
        return HEDDLE_ENOMEM;
    x->d = d;
    x->given = given;
    x->m = m;
    x->best = -INFINITY;
    *sol_out = (struct heddle_dual_sol){0};
    HEDDLE_TRY(get_memory(x));
    HEDDLE_TRY(heddle_dual_levels(x));
    x->tscale = length > 0.0 ? length : 1.0;
    x->escale = d->idle * x->tscale;
    for (uint32_t v = 0; v < d->n; v++) {
        double least = INFINITY, time;

        for (uint32_t i = 0; i < d->r; i++)
            if (heddle_dual_can(d, v, i, &time))
                least = fmin(least, heddle_dual_joules_of(x, v, i));
        x->escale += least;
    }
    if (!(x->escale > 0.0))
        x->escale = 1.0;
    HEDDLE_TRY(begin(x));
    HEDDLE_TRY(loop(x, effort, &sol_out->iterations));
    sol_out->value = x->best;
    sol_out->upper = fmax(x->best, x->value);
    sol_out->nreasons = x->nreasons;
    sol_out->nwindows = x->nwindows;
    sol_out->reason = x->reason;
    sol_out->window = x->window;
    sol_out->s = x->best_s;
    return HEDDLE_OK;
}
