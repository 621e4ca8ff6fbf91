/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seq: the best sequence that blocks give.
 *
 * Several turns and several sizes of blocks; each gives a table, and the table
 * gives sequences for many budgets. What the table calls memory is a little more
 * than what a sequence needs (an input that no later operation reads is not alive),
 * so it is made for more than the budget, and the largest answer that fits in bytes
 * is taken. Answers a little above the budget are repaired.
 */
#include "plan/blocks/blocks.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

enum {
    TURNS = 3,
    SLOTS = 320,
    PLACES = 12,  /* attempts to find addresses */
    LOOKS = 40,   /* answers of a table that are evaluated */
    BLOCKS = 400, /* at most */
    SMALLEST = 4, /* operations of a forward part, the first attempt */
    LARGE = 1000, /* operations: the least memory may be far below */
    MANY = 3000,  /* operations: no time for another sequence than ours */
};
#define OVER   1.25  /* of the budget: the table goes so far */
#define MORE   1.25  /* for the least memory so much further, repairs as well */
#define LOWER  0.983 /* from one look to the next */
#define REPAIR 1.15  /* of the budget: so much is repaired */
#define COSTLY 1.05  /* of the increase: addresses that cost more */
#define HOPE   1.3   /* of the increase at hand: more is hopeless */
#define RATE   4e7   /* work in a second, as in solve/improve.c */
#define SUMS   50    /* of a table: so many are one unit of work */

struct blocks {
    struct heddle_plan_search *x;
    struct heddle_plan_seq *best, trial;
    bool has_best;
};

static void take(struct blocks *b)
{
    if (b->has_best && b->best->time <= b->trial.time)
        return;
    heddle_plan_seq_copy(b->best, &b->trial);
    b->has_best = true;
}

/* The sequence for `slots`, evaluated; false: there is none. */
static bool look(struct blocks *b, struct heddle_plan_cut_table *t, uint32_t slots)
{
    struct heddle_plan_seq *s = &b->trial;
    uint32_t n = 0;

    if (!heddle_plan_cut_trace(t, slots, s->op, s->cap, &n) || n > s->cap)
        return false;
    s->n = n;
    return heddle_plan_seq_eval(s);
}

static void look_all(struct blocks *b, struct heddle_plan_cut_table *t, bool is_least)
{
    struct heddle_plan_search *x = b->x;
    uint32_t nfits = 0, n = 0;
    double time = 0;
    int64_t peak = 0;

    for (uint32_t k = 0; k < LOOKS && nfits < 3; k++) {
        if ((is_least && heddle_plan_search_is_late(x)) ||
            !look(b, t, (uint32_t)(SLOTS * pow(LOWER, k))))
            return;
        /* the same answer again, as the table gave it */
        if (b->trial.n == n && b->trial.peak == peak && b->trial.time == time)
            continue;
        n = b->trial.n;
        peak = b->trial.peak;
        time = b->trial.time;
        if ((double)b->trial.peak > REPAIR * (is_least ? MORE : 1) * (double)x->budget)
            continue;
        nfits += b->trial.peak <= x->budget;
        x->noise = 0;
        x->batch = 4;
        x->max_time = 4 * b->trial.time;
        if (is_least ? heddle_plan_reduce_by_steps(x, &b->trial)
                     : b->trial.peak <= x->budget || heddle_plan_reduce(x, &b->trial)) {
            heddle_plan_prune(x, &b->trial);
            take(b);
        }
    }
}

static heddle_status try_cuts(struct blocks *b, uint32_t turn, uint32_t most,
                              enum heddle_plan_cut_style style)
{
    const bool is_least = style == HEDDLE_PLAN_CUT_LEAST;
    struct heddle_plan_search *x = b->x;
    struct heddle_scratch mem = heddle_scratch_make(x->job->opts.base.alloc);
    struct heddle_plan_cuts cuts;
    struct heddle_plan_stage *stage = NULL;
    struct heddle_plan_cut_table *t = NULL;
    heddle_status st = heddle_plan_find_cuts(x->job, turn, most, style, &mem, &cuts);

    if (st == HEDDLE_OK) {
        const double bytes =
            OVER * (is_least ? MORE : 1) * (double)x->budget - (double)cuts.kept_bytes;

        if (bytes < 1 || cuts.n > BLOCKS)
            st = HEDDLE_ENOENT;
        if (st == HEDDLE_OK)
            st = heddle_plan_make_stages(x, &cuts, &mem, &stage, NULL);
        if (st == HEDDLE_OK) {
            x->work += (double)SLOTS / 6 / SUMS * cuts.n * cuts.n * cuts.n;
            st = heddle_plan_cut_solve(&cuts, stage, (uint64_t)bytes, SLOTS, &mem, &t);
        }
        if (st == HEDDLE_OK)
            look_all(b, t, is_least);
    }
    heddle_scratch_drop(&mem);
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* Whether it is clear that blocks do not reach the goal. */
static bool is_hopeless(const struct blocks *b, double goal, double base)
{
    return b->has_best && b->best->time - base > HOPE * (goal - base);
}

static heddle_status try_sizes(struct blocks *b, struct heddle_plan_blocks_try *try)
{
    /* the most promising first: time may not be enough for all. For the least
     * memory a step of an unrolled network has to fit. */
    static const uint32_t size[][5] = {{3, 9, 1, 27, 81}, {3, 9, 1, 27, 81}, {21, 27, 15, 9, 45}};
    const uint32_t n = 5, end = b->x->g->nops > LARGE ? 3 * n : 2 * n;
    struct heddle_plan_search *x = b->x;
    const double work = x->work;
    uint32_t turn[TURNS], nturns = 0;
    double base = 0;
    heddle_status st = heddle_plan_find_turns(x->job, TURNS, turn, &nturns);

    base = heddle_plan_sum_times(x->g);
    for (uint32_t k = n * try->style; k < end; k++)
        for (uint32_t i = 0; i < nturns && st == HEDDLE_OK; i++) {
            const uint32_t most = (turn[i] / BLOCKS + SMALLEST) * size[k / n][k % n];
            const enum heddle_plan_cut_style style = (enum heddle_plan_cut_style)(k / n);
            const double before = b->has_best ? b->best->time : INFINITY;

            if (x->work - work > RATE * try->seconds || heddle_plan_search_is_late(x) ||
                (k >= n && b->has_best) || (k >= 2 && is_hopeless(b, try->goal, base)))
                return HEDDLE_OK;
            st = try_cuts(b, turn[i], most, style);
            if (b->has_best && b->best->time < before) {
                try->turn = turn[i];
                try->most = most;
                try->style = style;
            }
        }
    return st;
}

heddle_status heddle_plan_blocks_seq(struct heddle_plan_search *x,
                                     struct heddle_plan_blocks_try *try, struct heddle_plan_seq *s)
{
    struct blocks b = {.x = x, .best = s};
    struct heddle_scratch mem = heddle_scratch_make(x->job->opts.base.alloc);
    heddle_status st = HEDDLE_ENOMEM;

    if (heddle_plan_seq_init(&b.trial, x->g, x->room, &mem)) {
        b.trial.aside = s->aside;
        st = try->most > 0 ? try_cuts(&b, try->turn, try->most, try->style) : try_sizes(&b, try);
    }
    x->max_time = INFINITY;
    x->batch = 1;
    heddle_scratch_drop(&mem);
    return st == HEDDLE_OK && !b.has_best ? HEDDLE_ENOENT : st;
}

/* A sequence within x->budget, with the cuts at hand or with thin ones, which reach
 * further down. */
static heddle_status seq_below(struct heddle_plan_search *x, struct heddle_plan_blocks_try *try,
                               struct heddle_plan_seq *s)
{
    const struct heddle_plan_blocks_try before = *try;
    heddle_status st = heddle_plan_blocks_seq(x, try, s);

    if (st != HEDDLE_ENOENT || try->style != HEDDLE_PLAN_CUT_FEW)
        return st;
    try->style = HEDDLE_PLAN_CUT_THIN;
    try->most = 0;
    st = heddle_plan_blocks_seq(x, try, s);
    if (st == HEDDLE_ENOENT)
        *try = before; /* with more memory those may do again */
    return st;
}

/* Lowers the budget of the blocks until their addresses fit. */
static heddle_status plan_below(struct heddle_plan_search *x, struct heddle_plan_blocks_try *try,
                                struct heddle_plan_seq *s, const char *solver, double bound,
                                struct heddle_plan **out)
{
    const uint64_t budget = x->job->m->budget;
    int64_t none = (int64_t)x->job->floor - 1; /* no sequence there */
    int64_t some = INT64_MAX;                  /* one without addresses there */
    heddle_status st = HEDDLE_ENOENT;

    for (int k = 0; k < PLACES && st == HEDDLE_ENOENT; k++) {
        uint64_t over = 0;
        int64_t next = none;

        if (x->budget <= none || heddle_plan_search_is_late(x))
            break;
        st = seq_below(x, try, s);
        if (st == HEDDLE_ENOENT) {
            none = x->budget;
        } else if (st == HEDDLE_OK) {
            st = heddle_plan_seq_finish(x, s, solver, bound, 0, &over, out);
            if (st != HEDDLE_ENOENT || over <= budget)
                break;
            some = s->peak < x->budget ? s->peak : x->budget;
            next = some - (k + 1) * (int64_t)((over - budget) / 4 + budget / 500 + 1);
        }
        if (some - none <= (int64_t)(budget / 400) || some == INT64_MAX)
            break;
        x->budget = next > none ? next : none + (some - none) / 2;
    }
    return st;
}

heddle_status heddle_plan_blocks_plan(struct heddle_plan_search *x,
                                      struct heddle_plan_blocks_try *try, struct heddle_plan_seq *s,
                                      const char *solver, double bound, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &x->job->opts.base;
    const int64_t budget = x->budget;
    const bool is_patient = x->is_patient;
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    struct heddle_plan_seq other;
    struct heddle_plan *p = NULL;
    heddle_status st = heddle_plan_blocks_seq(x, try, s), st2;
    double time = s->time, base = 0;
    int64_t low;

    if (st == HEDDLE_ENOENT)
        return HEDDLE_PLAN_FAIL(o, st, "no plan found as a chain of blocks within %s",
                                heddle_plan_bytes_label((uint64_t)budget).text);
    if (st == HEDDLE_OK && !heddle_plan_seq_init(&other, x->g, x->room, &mem))
        st = HEDDLE_ENOMEM;
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&mem);
        return HEDDLE_PLAN_FAIL(o, st, "no memory for the solver");
    }
    base = heddle_plan_sum_times(x->g);
    x->is_patient |= x->g->nops > MANY;
    st = heddle_plan_place_seq(x, s, solver, bound, out);
    x->is_patient = is_patient;
    low = x->budget;
    if (st == HEDDLE_ENOENT ||
        (st == HEDDLE_OK && (*out)->makespan - base > COSTLY * (time - base))) {
        x->budget = budget - budget / 100;
        st2 = plan_below(x, try, &other, solver, bound, &p);
        if (st2 == HEDDLE_OK && (st != HEDDLE_OK || p->makespan < (*out)->makespan)) {
            if (st == HEDDLE_OK)
                heddle_plan_destroy(*out);
            *out = p;
            heddle_plan_seq_copy(s, &other);
            memset(x->aside, 0, x->g->nops * sizeof(*x->aside));
            st = HEDDLE_OK;
        } else {
            heddle_plan_destroy(p);
            x->budget = low;
            if (st2 == HEDDLE_ENOMEM && st != HEDDLE_OK)
                st = HEDDLE_PLAN_FAIL(o, st2, "no memory for the solver");
        }
    }
    heddle_scratch_drop(&mem);
    return st;
}
