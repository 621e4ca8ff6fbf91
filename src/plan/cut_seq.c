/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cut_seq: the best sequence that blocks give.
 *
 * Several turns and several sizes of blocks; each gives a table, and the table
 * gives sequences for many budgets. What the table calls memory is a little more
 * than what a sequence needs (an input that nobody reads any more is not there),
 * so it is made for more than the budget, and the largest answer that fits in bytes
 * is taken. Answers a little above the budget are repaired.
 */
#include "plan/cut.h"

#include <math.h>

#include "base/clock.h"

enum {
    TURNS = 3,
    SLOTS = 320,
    LOOKS = 24,   /* answers of a table that are evaluated */
    BLOCKS = 400, /* at most */
    SMALLEST = 4, /* operations of a forward part, the first attempt */
};
#define OVER   1.4  /* of the budget: the table goes so far */
#define REPAIR 1.15 /* of the budget: so much is repaired */
#define SUMS   2e9  /* of a table, in a second */

struct blocks {
    struct heddle_plan_search *x;
    struct heddle_plan_seq *best, trial;
    bool has_best;
    uint64_t late_ns;
};

static void take(struct blocks *b)
{
    if (b->has_best && b->best->time <= b->trial.time)
        return;
    heddle_plan_seq_copy(b->best, &b->trial);
    b->has_best = true;
}

/* The sequence for `slots`, evaluated; false: there is none. */
static bool look(struct blocks *b, struct heddle_plan_cut_table *t,
                 uint32_t slots)
{
    struct heddle_plan_seq *s = &b->trial;
    uint32_t n = 0;

    if (!heddle_plan_cut_trace(t, slots, s->op, s->cap, &n) || n > s->cap)
        return false;
    s->n = n;
    return heddle_plan_seq_eval(s);
}

static void look_all(struct blocks *b, struct heddle_plan_cut_table *t)
{
    struct heddle_plan_search *x = b->x;
    uint32_t nfits = 0;

    for (uint32_t k = LOOKS; k > 0 && nfits < 3; k--) {
        if (!look(b, t, SLOTS * k / LOOKS))
            return;
        if ((double)b->trial.peak > REPAIR * (double)x->budget)
            continue;
        nfits += b->trial.peak <= x->budget;
        x->noise = 0;
        x->batch = 4;
        x->max_time = 4 * b->trial.time;
        if (b->trial.peak <= x->budget || heddle_plan_reduce(x, &b->trial)) {
            heddle_plan_prune(x, &b->trial);
            take(b);
        }
    }
}

static heddle_status try_cuts(struct blocks *b, uint32_t turn, uint32_t most,
                              uint32_t *n_out)
{
    struct heddle_plan_search *x = b->x;
    struct heddle_scratch mem = heddle_scratch_make(x->job->opts.base.alloc);
    struct heddle_plan_cuts cuts;
    struct heddle_plan_stage *stage = NULL;
    struct heddle_plan_cut_table *t = NULL;
    heddle_status st = heddle_plan_find_cuts(x->job, turn, most, &mem, &cuts);

    *n_out = 0;
    if (st == HEDDLE_OK) {
        const double bytes = OVER * (double)x->budget - (double)cuts.kept_bytes;

        *n_out = cuts.n;
        if (bytes < 1 || cuts.n > BLOCKS)
            st = HEDDLE_ENOENT;
        if (st == HEDDLE_OK)
            st = heddle_plan_make_stages(x, &cuts, &mem, &stage, NULL);
        if (st == HEDDLE_OK)
            st = heddle_plan_cut_solve(&cuts, stage, (uint64_t)bytes, SLOTS,
                                       &mem, &t);
        if (st == HEDDLE_OK)
            look_all(b, t);
    }
    heddle_scratch_drop(&mem);
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

heddle_status heddle_plan_blocks_seq(struct heddle_plan_search *x,
                                     double seconds, struct heddle_plan_seq *s)
{
    struct blocks b = {.x = x, .best = s};
    uint32_t turn[TURNS], nturns = 0;
    heddle_status st = heddle_plan_find_turns(x->job, TURNS, turn, &nturns);

    b.late_ns = heddle_clock_ns() + (uint64_t)(seconds * 1e9);
    if (st == HEDDLE_OK &&
        !heddle_plan_seq_init(&b.trial, x->g, x->room, &x->mem))
        st = HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < nturns && st == HEDDLE_OK; i++) {
        uint32_t most = turn[i] / BLOCKS + SMALLEST, n = 2;

        for (; n >= 2 && st == HEDDLE_OK && heddle_clock_ns() < b.late_ns;
             most *= 3)
            st = try_cuts(&b, turn[i], most, &n);
    }
    x->max_time = INFINITY;
    if (st == HEDDLE_OK && !b.has_best)
        st = HEDDLE_ENOENT;
    return st;
}
