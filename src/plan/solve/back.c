/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: a run that was found backwards (back.c), and its addresses.
 *
 * Purpose   a plan near the least memory, where runs in the given order find none.
 * Structure runs whose large values are within a part of the budget; what small values
 *           need beyond it is reduced (reduce.c), what the budget does not ask for is
 *           removed (prune.c). With less for large values the search is quicker, and
 *           small ones have room; so that comes first.
 */
#include "plan/seq/seq.h"

#include <string.h>

#define STATES 16384 /* of one search */
#define TRIES  4     /* budgets, each smaller by ... */
#define LESS   50    /* ... this part */
#define LOOKS  4     /* at addresses of one run */
#define MOST   40    /* times of all operations */
#define SPARE  25    /* part of the budget, for addresses of many operations */
#define LITTLE 100   /* the same where that is too much */
#define MANY   1000  /* operations: addresses are seldom tight */
#define BATCH  64    /* moves of one look, for small values */

/* Whether operations may be computed again in another order. */
static bool is_possible(const struct heddle_plan_graph *g)
{
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (heddle_plan_is_initial(&g->values[v]) != (g->values[v].op == HEDDLE_PLAN_NONE))
            return false;
    for (uint32_t i = 0; i < g->nops; i++)
        if (g->ops[i].inplace != HEDDLE_PLAN_NONE || (g->ops[i].flags & HEDDLE_PLAN_ONCE) != 0)
            return false;
    return true;
}

/* The run of which a copy was made. */
static bool take_back(const struct heddle_plan_search *x, struct heddle_plan_seq *s, uint32_t n)
{
    memcpy(s->op, x->held, n * sizeof(*s->op));
    s->n = n;
    return heddle_plan_seq_eval(s);
}

/* Addresses for a run, with ever less memory. HEDDLE_ENOENT: none fit. */
static heddle_status place(struct heddle_plan_search *x, struct heddle_plan_seq *s, double base,
                           struct heddle_plan **out)
{
    const int64_t budget = (int64_t)x->job->m->budget;
    const bool is_large = x->g->nops > MANY;
    const uint32_t n = s->n;

    memcpy(x->held, s->op, n * sizeof(*s->op));
    x->budget = is_large ? budget - budget / SPARE : budget;
    x->batch = is_large ? BATCH : 1;
    for (int k = 0; k < LOOKS && !heddle_plan_search_is_late(x); k++) {
        uint64_t over = 0;
        heddle_status st;

        if (s->peak > x->budget && !heddle_plan_reduce(x, s)) {
            if (k > 0 || !is_large || !take_back(x, s, n))
                break;
            x->budget = budget - budget / LITTLE;
            continue;
        }
        heddle_plan_prune(x, s);
        st = heddle_plan_seq_finish(x, s, "back", base, 0, &over, out);
        if (st != HEDDLE_ENOENT || over <= (uint64_t)budget)
            return st;
        /* less than what would lose as much */
        x->budget =
            (int64_t)((double)s->peak * (double)budget / (double)over) - budget / LITTLE - 1;
        if (!take_back(x, s, n))
            break;
    }
    return HEDDLE_ENOENT;
}

/* Runs with ever more for large values, until one has a plan. */
static heddle_status try_runs(struct heddle_plan_search *x, struct heddle_plan_back *b,
                              struct heddle_plan_seq *s, double base, struct heddle_plan **out)
{
    static const double part[] = {0.5, 0.6, 0.7, 0.75, 0.8, 0.86, 0.9, 0.92, 0.94, 0.96, 0.98, 1};
    const double budget = (double)x->job->m->budget;

    for (size_t k = 0; k < sizeof(part) / sizeof(part[0]); k++) {
        heddle_status st;

        if (heddle_plan_search_is_late(x))
            break;
        st = heddle_plan_back_run(b, (uint64_t)(part[k] * budget), s);
        if (st == HEDDLE_OK)
            st = place(x, s, base, out);
        if (st != HEDDLE_ENOENT)
            return st;
    }
    return HEDDLE_ENOENT;
}

/* The graph as it is, if it fits; otherwise runs. */
static heddle_status find_plan(struct heddle_plan_search *x, double base, struct heddle_plan **out)
{
    struct heddle_plan_back *b;
    struct heddle_plan_seq s;
    uint64_t over;
    heddle_status st;

    if (!heddle_plan_seq_init(&s, x->g, x->room, &x->mem))
        return HEDDLE_ENOMEM;
    heddle_plan_seq_start(&s);
    if (heddle_plan_peak(x->g) <= x->job->m->budget)
        return heddle_plan_seq_finish(x, &s, "back", base, x->job->deadline_ns, &over, out);
    if (!is_possible(x->g))
        return HEDDLE_ENOENT;
    x->max_time = MOST * base;
    x->is_free = true;
    st = heddle_plan_back_make(x, STATES, &b);
    return st == HEDDLE_OK ? try_runs(x, b, &s, base, out) : st;
}

static int back_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

/* One search, for a budget of its own. */
static heddle_status solve_once(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct heddle_plan_search x;
    heddle_status st = heddle_plan_search_init(&x, job);

    if (st != HEDDLE_OK)
        return st;
    st = find_plan(&x, heddle_plan_sum_times(job->g), out);
    if (st == HEDDLE_ENOENT)
        st = HEDDLE_PLAN_FAIL(&job->opts.base, st, "no plan found by a search backwards");
    else if (st == HEDDLE_ENOMEM)
        st = HEDDLE_PLAN_FAIL(&job->opts.base, st, "no memory for the solver");
    heddle_plan_search_fini(&x);
    return st;
}

/* Whether a search ends is a matter of luck, and a plan for less memory is one for more: where
 * nothing is found, somewhat smaller budgets are tried. */
static heddle_status back_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct heddle_plan_machine less = *job->m;
    struct heddle_plan_job once = *job;
    heddle_status st = HEDDLE_ENOENT;

    once.m = &less;
    for (int k = 0; k < TRIES && st == HEDDLE_ENOENT; k++) {
        less.budget = job->m->budget - job->m->budget / LESS * (uint64_t)k;
        if (k > 0 && (less.budget < job->floor || heddle_plan_job_is_late(job)))
            break;
        st = solve_once(&once, out);
    }
    if (st == HEDDLE_OK)
        (*out)->budget = job->m->budget;
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_back = {
    .face = {.name = "back", .help = "a run found backwards, for the least memory"},
    .rank = back_rank,
    .solve = back_solve,
};
