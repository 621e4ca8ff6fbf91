/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload_set: for a set of values that may move, what is computed again and what
 * comes back over the link.
 *
 * The graph of offload_graph.c answers both questions at once. Sequences of it are
 * found as a chain of blocks, and by the cheapest recomputations; the better one is
 * varied. Addresses are not looked for: steps get them when they are known. Copies under
 * way need room, which is set aside up to the first runs of the operations in whose time they
 * are.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plan/cut.h"
#include "plan/offload_pool.h"

/* Of a load, of all times: just enough that it is not done for nothing. */
#define LOAD_PRICE 1e-18

/* Of the time, for the best blocks. */
#define CUTS 0.05

#define RATE 4e7 /* work in a second, as in solve_improve.c */

struct set {
    struct heddle_plan_joint *j;
    struct heddle_plan_loads l;
    struct heddle_plan_job job; /* of the graph with loads */
    struct heddle_plan_machine m;
    struct heddle_scratch mem;
    struct heddle_plan_search x;
    struct heddle_plan_seq cur, trial, best;
    uint8_t *mark;
    uint32_t *again, nagain;
    uint32_t *new_op; /* [nops] of the graph without loads: its number here */
    uint32_t *load;   /* [nvalues] what loads it; NONE */
    bool *is_loaded;  /* [nvalues] by the sequence so far */
    bool has_best;
    double base;
    double end; /* of the best that was timed */
};

/* Timed with what it moves, and in the pool. */
static heddle_status add(struct set *s, const struct heddle_plan_seq *q)
{
    struct heddle_plan_joint *j = s->j;
    const uint32_t nv = j->job->g->nvalues;
    uint8_t *is_moved = heddle_scratch_get(&j->mem, nv, sizeof(*is_moved));

    if (is_moved == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, q->n));
    j->trial.n =
        heddle_plan_loads_read(&s->l, q->op, q->n, nv, j->trial.seq, is_moved);
    j->trial.is_moved = is_moved;
    HEDDLE_TRY(heddle_plan_entry_time(j, &j->trial));
    s->end = fmin(s->end, j->trial.end);
    return heddle_plan_pool_add(j, &j->trial);
}

/* ---- a sequence, varied -------------------------------------------------------- */

static void list_again(struct set *s)
{
    s->nagain = 0;
    for (uint32_t p = 0; p < s->cur.n; p++)
        if (s->cur.prev[p] != HEDDLE_PLAN_NONE)
            s->again[s->nagain++] = p;
}

/* Some neighbours less, others in their place. */
static void one_round(struct set *s)
{
    struct heddle_plan_search *x = &s->x;
    struct heddle_rng *rng = &x->rng;
    const double slack = 0.02 * (s->best.time - s->base);
    const uint32_t some = s->nagain < 12 ? s->nagain : 12;
    const uint32_t k = 1 + heddle_rng_below32(rng, some);
    const uint32_t from = heddle_rng_below32(rng, s->nagain - k + 1);
    const bool is_part = heddle_rng_below32(rng, 2) == 0;

    heddle_plan_seq_copy(&s->trial, &s->cur);
    memset(s->mark, 0, s->trial.n);
    for (uint32_t i = 0; i < k; i++)
        if (!is_part || heddle_rng_below32(rng, 2) == 0)
            s->mark[s->again[from + i]] = 1;
    heddle_plan_seq_remove(&s->trial, s->mark);
    x->work += 4.0 * s->trial.n;
    x->noise = heddle_rng_below32(rng, 2) == 0 ? 0.1 : 0.7;
    x->batch = 1;
    x->max_time = s->cur.time * 1.5 + s->base;
    if (!heddle_plan_reduce(x, &s->trial))
        return;
    x->noise = heddle_rng_below32(rng, 2) == 0 ? 0 : 0.5;
    heddle_plan_prune(x, &s->trial);
    if (s->trial.time > s->cur.time && s->trial.time > s->best.time + slack)
        return;
    heddle_plan_seq_copy(&s->cur, &s->trial);
    list_again(s);
    if (s->cur.time < s->best.time)
        heddle_plan_seq_copy(&s->best, &s->cur);
}

static void vary(struct set *s, double work)
{
    const double begin = s->x.work;

    heddle_plan_seq_copy(&s->cur, &s->best);
    list_again(s);
    while (s->nagain > 0 && s->x.work - begin < work &&
           !heddle_plan_search_is_late(&s->x))
        one_round(s);
}

/* ---- all of it ------------------------------------------------------------------- */

/* Copies under way, by operations of the graph with loads. */
static heddle_status leave_room(struct set *s, const uint8_t *is_moved)
{
    const struct heddle_plan_job *job = s->j->job;
    struct heddle_plan_stay *stay = NULL;
    uint32_t nstay = 0;
    int64_t *diff =
        heddle_scratch_get(&s->mem, (size_t)job->g->nops + 1, sizeof(*diff));
    int64_t sum = 0;

    if (diff == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_plan_loads_stays(job, is_moved, &s->mem, &stay, &nstay));
    for (uint32_t i = 0; i < nstay; i++) {
        diff[stay[i].from] += (int64_t)job->g->values[stay[i].value].bytes;
        diff[stay[i].to] -= (int64_t)job->g->values[stay[i].value].bytes;
    }
    for (uint32_t i = 0; i < s->l.g->nops; i++) {
        if (s->l.op[i] != HEDDLE_PLAN_NONE)
            sum += diff[s->l.op[i]];
        s->x.aside[i] = sum;
    }
    return HEDDLE_OK;
}

static void put_load(struct set *s, uint32_t v, bool is_first)
{
    const uint32_t op = s->load[v];

    if (op == HEDDLE_PLAN_NONE || (is_first && s->is_loaded[v]))
        return;
    s->is_loaded[v] = true;
    s->cur.op[s->cur.n++] = op;
}

/* Steps that are known as a sequence of the graph with loads, in s->cur. True: it is
 * within the budget. */
static bool begin_with(struct set *s, const struct heddle_plan_draft *d)
{
    const struct heddle_plan_graph *g = s->j->job->g;
    struct heddle_plan_seq *q = &s->cur;

    q->n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        const struct heddle_plan_step *t = &d->step[i];
        const struct heddle_plan_op *op;

        if (t->kind == HEDDLE_PLAN_PREFETCH && q->n < q->cap)
            put_load(s, t->what, false);
        if (t->kind != HEDDLE_PLAN_COMPUTE)
            continue;
        op = &g->ops[t->what];
        if (q->n + op->ninputs + op->nvalues + 1 > q->cap)
            return false;
        for (uint32_t k = 0; k < op->ninputs; k++) /* it was there at first */
            put_load(s, g->inputs[op->first_input + k], true);
        q->op[q->n++] = s->new_op[t->what];
        for (uint32_t k = 0; k < op->nvalues; k++)
            put_load(s, op->first_value + k, false);
    }
    s->x.noise = 0;
    s->x.batch = 1;
    s->x.max_time = INFINITY;
    if (!heddle_plan_seq_eval(q))
        return false;
    if (q->peak > s->x.budget && !heddle_plan_reduce(&s->x, q))
        return false;
    heddle_plan_prune(&s->x, q);
    return true;
}

static void take_cur(struct set *s)
{
    if (!s->has_best || s->cur.time < s->best.time)
        heddle_plan_seq_copy(&s->best, &s->cur);
    s->has_best = true;
}

/* A chain of blocks, in s->cur. Which blocks are best is looked for once: other sets
 * have other numbers, but the same layers. */
static heddle_status try_blocks(struct set *s)
{
    struct heddle_plan_joint *j = s->j;
    struct heddle_plan_blocks_try try = {
        .seconds = CUTS * j->job->opts.time_limit_s, .goal = INFINITY};
    heddle_status st;

    if (j->cut.most > 0) {
        try = j->cut;
        try.turn = s->new_op[j->cut.turn];
    }
    st = heddle_plan_blocks_seq(&s->x, &try, &s->cur);
    if (st != HEDDLE_OK || j->cut.most > 0)
        return st;
    j->cut = try;
    while (j->cut.turn > 0 && s->l.op[j->cut.turn] == HEDDLE_PLAN_NONE)
        j->cut.turn--;
    j->cut.turn = s->l.op[j->cut.turn];
    if (j->cut.turn == HEDDLE_PLAN_NONE)
        j->cut.most = 0;
    return st;
}

static heddle_status search(struct set *s, const uint8_t *is_moved,
                            const struct heddle_plan_draft *known)
{
    struct heddle_plan_search *x = &s->x;
    heddle_status st;

    HEDDLE_TRY(leave_room(s, is_moved));
    s->best.aside = s->cur.aside = s->trial.aside = x->aside;
    if (known != NULL && begin_with(s, known)) {
        take_cur(s);
    }
    st = heddle_plan_greedy_seq(x, &s->cur);
    if (st == HEDDLE_OK) {
        take_cur(s);
    } else if (st != HEDDLE_ENOENT) {
        return st;
    }
    st = try_blocks(s);
    if (st == HEDDLE_OK) {
        take_cur(s);
    } else if (st != HEDDLE_ENOENT) {
        return st;
    }
    if (!s->has_best)
        return HEDDLE_OK;
    vary(s, RATE * 0.6 * s->job.opts.time_limit_s);
    return add(s, &s->best);
}

static heddle_status set_init(struct set *s, const uint8_t *is_moved,
                              double share)
{
    struct heddle_plan_joint *j = s->j;
    const struct heddle_plan_graph *g = j->job->g;

    s->job.opts.base.why = NULL;
    s->job.opts.seed += j->nloads++;
    s->job.opts.moves = 0;
    s->job.opts.time_limit_s *= share;
    s->m.budget = j->target;
    s->job.m = &s->m;
    HEDDLE_TRY(heddle_plan_loads_make(j->job->g, is_moved, LOAD_PRICE * j->base,
                                      &s->job.opts.base, &s->mem, &s->l));
    s->job.g = s->l.g;
    s->job.floor = heddle_plan_floor(s->l.g, NULL);
    if (s->job.floor > j->target)
        return HEDDLE_ENOENT;
    s->job.start_ns = heddle_clock_ns();
    s->job.deadline_ns =
        s->job.start_ns + (uint64_t)(s->job.opts.time_limit_s * 1e9);
    if (s->job.deadline_ns > j->job->deadline_ns)
        s->job.deadline_ns = j->job->deadline_ns;
    s->new_op = heddle_scratch_get(&s->mem, (size_t)g->nops + g->nvalues,
                                   sizeof(*s->new_op));
    s->is_loaded = heddle_scratch_get(&s->mem, g->nvalues, 1);
    if (s->new_op == NULL || s->is_loaded == NULL)
        return HEDDLE_ENOMEM;
    s->load = s->new_op + g->nops;
    for (uint32_t v = 0; v < g->nvalues; v++)
        s->load[v] = HEDDLE_PLAN_NONE;
    for (uint32_t i = 0; i < s->l.g->nops; i++)
        if (s->l.op[i] != HEDDLE_PLAN_NONE)
            s->new_op[s->l.op[i]] = i;
        else if (s->l.value[i] != HEDDLE_PLAN_NONE)
            s->load[s->l.value[i]] = i;
    return heddle_plan_users_make(s->l.g, &s->mem, &s->job.users);
}

heddle_status heddle_plan_set_solve(struct heddle_plan_joint *j,
                                    const uint8_t *is_moved,
                                    const struct heddle_plan_draft *known,
                                    double share, double *end_out)
{
    struct set s = {.j = j,
                    .job = *j->job,
                    .m = *j->job->m,
                    .mem = heddle_scratch_make(j->job->opts.base.alloc),
                    .base = j->base,
                    .end = INFINITY};
    heddle_status st = set_init(&s, is_moved, share);
    const bool has_search =
        st == HEDDLE_OK &&
        (st = heddle_plan_search_init(&s.x, &s.job)) == HEDDLE_OK;

    if (has_search) {
        s.mark = heddle_scratch_raw(&s.mem, s.x.room, sizeof(*s.mark));
        s.again = heddle_scratch_raw(&s.mem, s.x.room, sizeof(*s.again));
        st = s.mark != NULL && s.again != NULL &&
                     heddle_plan_seq_init(&s.cur, s.l.g, s.x.room, &s.mem) &&
                     heddle_plan_seq_init(&s.trial, s.l.g, s.x.room, &s.mem) &&
                     heddle_plan_seq_init(&s.best, s.l.g, s.x.room, &s.mem)
                 ? search(&s, is_moved, known)
                 : HEDDLE_ENOMEM;
        heddle_plan_search_fini(&s.x);
    }
    heddle_plan_graph_destroy(s.l.g);
    heddle_scratch_drop(&s.mem);
    *end_out = s.end;
    if (st == HEDDLE_ENOMEM)
        return heddle_plan_joint_no_memory(j);
    /* EINVAL: with the copies it is too large for a graph. */
    return st == HEDDLE_ENOENT || st == HEDDLE_EINVAL ? HEDDLE_OK : st;
}
