/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * set: for a set of values that may move, what is computed again and what
 * comes back over the link.
 *
 * The graph of graph.c answers both questions at once. Its sequences are found as a
 * chain of blocks, and by the cheapest recomputations; the better sequence is varied.
 * Addresses are not searched here: steps get addresses when the steps are known. Copies
 * in flight need room, which is set aside up to the first runs of the operations during
 * which the copies are made.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plan/blocks/blocks.h"
#include "plan/offload/pool.h"

/* Of a load, of all times: just enough that it is not done for nothing. */
#define LOAD_PRICE 1e-18

/* Of the time, for the best blocks. */
#define CUTS 0.05

enum { TRIES = 2 }; /* of blocks, as long as there are none */

#define RATE 4e7 /* work in a second, as in solve/improve.c */

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

/* A sequence of a graph with loads: timed with what it moves, and in the pool. */
static heddle_status add(struct set *s, const struct heddle_plan_loads *l, const uint32_t *op,
                         size_t n)
{
    struct heddle_plan_joint *j = s->j;
    const uint32_t nv = j->job->g->nvalues;
    uint8_t *is_moved = heddle_scratch_get(&j->mem, nv, sizeof(*is_moved));

    if (is_moved == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, n));
    j->trial.n = heddle_plan_loads_read(l, op, n, nv, j->trial.seq, is_moved);
    j->trial.is_moved = is_moved;
    HEDDLE_TRY(heddle_plan_entry_time(j, &j->trial));
    s->end = fmin(s->end, j->trial.end);
    return heddle_plan_pool_add(j, &j->trial);
}

/* Its time begins now. */
static void set_clock(const struct set *s, struct heddle_plan_job *job)
{
    job->start_ns = heddle_clock_ns();
    job->deadline_ns = job->start_ns + (uint64_t)(job->opts.time_limit_s * 1e9);
    if (job->deadline_ns > s->j->job->deadline_ns)
        job->deadline_ns = s->j->job->deadline_ns;
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
    while (s->nagain > 0 && s->x.work - begin < work && !heddle_plan_search_is_late(&s->x))
        one_round(s);
}

/* ---- all of it ------------------------------------------------------------------- */

/* Copies under way, by operations of the graph with loads. */
static heddle_status leave_room(struct set *s, const uint8_t *is_moved)
{
    const struct heddle_plan_job *job = s->j->job;
    struct heddle_plan_stay *stay = NULL;
    uint32_t nstay = 0;
    int64_t *diff = heddle_scratch_get(&s->mem, (size_t)job->g->nops + 1, sizeof(*diff));
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
    struct heddle_plan_blocks_try try = {.seconds = CUTS * j->job->opts.time_limit_s,
                                         .goal = INFINITY};
    heddle_status st;

    if (j->nblocks == TRIES)
        return HEDDLE_ENOENT;
    if (j->cut.most > 0) {
        try = j->cut;
        try.turn = s->new_op[j->cut.turn];
    }
    st = heddle_plan_blocks_seq(&s->x, &try, &s->cur);
    j->nblocks += st == HEDDLE_ENOENT;
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
    if (known != NULL && begin_with(s, known))
        take_cur(s);
    for (int k = 0; k < 2; k++) {
        st = k == 0 ? heddle_plan_greedy_seq(x, &s->cur) : try_blocks(s);
        if (st == HEDDLE_OK)
            take_cur(s);
        else if (st != HEDDLE_ENOENT)
            return st;
    }
    if (!s->has_best)
        return HEDDLE_OK;
    vary(s, RATE * 0.6 * s->job.opts.time_limit_s);
    return add(s, &s->l, s->best.op, s->best.n);
}

/* What solver improve finds, which knows of other orders. Room for copies is that of
 * values: it is not between the same operations in every order. */
static heddle_status improve(struct set *s, const uint8_t *is_moved)
{
    struct heddle_plan_joint *j = s->j;
    struct heddle_plan_loads l = {.g = NULL};
    struct heddle_plan_job job = s->job;
    struct heddle_plan_stay *stay = NULL;
    struct heddle_plan *p = NULL;
    const double end = s->end;
    uint32_t nstay = 0, n = 0, *op = NULL;
    heddle_status st = heddle_plan_loads_stays(j->job, is_moved, &s->mem, &stay, &nstay);

    if (st == HEDDLE_OK)
        st = heddle_plan_loads_make(j->job->g, is_moved, LOAD_PRICE * j->base, stay, nstay,
                                    &job.opts.base, &s->mem, &l);
    if (st == HEDDLE_OK) {
        job.g = l.g;
        job.floor = heddle_plan_floor(l.g, NULL);
        st = job.floor <= j->target ? heddle_plan_users_make(l.g, &s->mem, &job.users)
                                    : HEDDLE_ENOENT;
    }
    if (st == HEDDLE_OK) {
        set_clock(s, &job);
        st = heddle_plan_find_solver("improve")->solve(&job, &p);
    }
    if (st == HEDDLE_OK) {
        op = heddle_scratch_get(&s->mem, p->nsteps, sizeof(*op));
        st = op != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
    }
    if (st == HEDDLE_OK) {
        for (uint32_t i = 0; i < p->nsteps; i++)
            if (p->steps[i].kind == HEDDLE_PLAN_COMPUTE)
                op[n++] = p->steps[i].what;
        st = add(s, &l, op, n);
    }
    if (st == HEDDLE_OK)
        j->is_improved |= s->end < end;
    heddle_plan_destroy(p);
    heddle_plan_graph_destroy(l.g);
    return st;
}

static heddle_status make_graph(struct set *s, const uint8_t *is_moved)
{
    struct heddle_plan_joint *j = s->j;
    const struct heddle_plan_graph *g = j->job->g;

    HEDDLE_TRY(heddle_plan_loads_make(g, is_moved, LOAD_PRICE * j->base, NULL, 0, &s->job.opts.base,
                                      &s->mem, &s->l));
    s->job.g = s->l.g;
    s->job.floor = heddle_plan_floor(s->l.g, NULL);
    if (s->job.floor > j->target)
        return HEDDLE_ENOENT;
    s->new_op = heddle_scratch_get(&s->mem, (size_t)g->nops + g->nvalues, sizeof(*s->new_op));
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

/* As a chain of blocks and by the cheapest recomputations. */
static heddle_status solve(struct set *s, const uint8_t *is_moved,
                           const struct heddle_plan_draft *known)
{
    struct heddle_scratch *mem = &s->mem;
    heddle_status st = make_graph(s, is_moved);

    if (st == HEDDLE_OK) {
        set_clock(s, &s->job);
        st = heddle_plan_search_init(&s->x, &s->job);
    }
    if (st != HEDDLE_OK)
        return st;
    s->mark = heddle_scratch_raw(mem, s->x.room, sizeof(*s->mark));
    s->again = heddle_scratch_raw(mem, s->x.room, sizeof(*s->again));
    st = s->mark != NULL && s->again != NULL &&
                 heddle_plan_seq_init(&s->cur, s->l.g, s->x.room, mem) &&
                 heddle_plan_seq_init(&s->trial, s->l.g, s->x.room, mem) &&
                 heddle_plan_seq_init(&s->best, s->l.g, s->x.room, mem)
             ? search(s, is_moved, known)
             : HEDDLE_ENOMEM;
    heddle_plan_search_fini(&s->x);
    return st;
}

heddle_status heddle_plan_set_solve(struct heddle_plan_joint *j, const uint8_t *is_moved,
                                    const struct heddle_plan_draft *known, double share,
                                    bool is_both, double *end_out)
{
    struct set s = {.j = j,
                    .job = *j->job,
                    .m = *j->job->m,
                    .mem = heddle_scratch_make(j->job->opts.base.alloc),
                    .base = j->base,
                    .end = INFINITY};
    heddle_status st = HEDDLE_OK;

    s.job.opts.base.why = NULL;
    s.job.opts.seed += j->nloads++;
    s.job.opts.moves = 0;
    s.job.opts.solver = NULL;
    s.job.opts.progress = NULL;
    s.job.opts.time_limit_s *= share;
    s.m.budget = j->target;
    s.job.m = &s.m;
    is_both |= j->is_improved;
    if (!j->is_improved)
        st = solve(&s, is_moved, known);
    if (is_both && (st == HEDDLE_OK || st == HEDDLE_ENOENT))
        st = improve(&s, is_moved);
    heddle_plan_graph_destroy(s.l.g);
    heddle_scratch_drop(&s.mem);
    *end_out = s.end;
    if (st == HEDDLE_ENOMEM)
        return heddle_plan_joint_no_memory(j);
    /* EINVAL: with the copies it is too large for a graph. */
    return st == HEDDLE_ENOENT || st == HEDDLE_EINVAL ? HEDDLE_OK : st;
}
