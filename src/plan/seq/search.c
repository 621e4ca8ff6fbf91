/* SPDX-License-Identifier: BSD-3-Clause */
/* search: what the solvers of graphs share, and the plan of a sequence. */
#include "plan/seq/seq.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plan/arena/arena.h"
#include "plan/bound/bound.h"

/* A first plan may take so much longer than the time limit. */
#define GRACE_NS HEDDLE_NS_PER_S

heddle_status heddle_plan_search_init(struct heddle_plan_search *x,
                                      const struct heddle_plan_job *job)
{
    *x = (struct heddle_plan_search){
        .job = job,
        .g = job->g,
        .mem = heddle_scratch_make(job->opts.base.alloc),
        .budget = (int64_t)(job->m->budget < INT64_MAX ? job->m->budget : INT64_MAX),
        .batch = 1,
        .max_time = INFINITY,
        .address_work = HEDDLE_PLAN_WORK_SOME,
        .deadline_ns = job->deadline_ns + GRACE_NS,
        .room = heddle_plan_seq_room(job->g)};
    heddle_rng_seed(&x->rng, job->opts.seed);
    x->pick = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->pick));
    x->pick2 = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->pick2));
    x->save = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->save));
    x->key = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->key));
    x->aside = heddle_scratch_get(&x->mem, x->g->nops, sizeof(*x->aside));
    x->kept = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->kept));
    x->held = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->held));
    x->top = heddle_scratch_raw(&x->mem, x->room, sizeof(*x->top));
    if (x->aside == NULL || x->top == NULL || x->kept == NULL || x->held == NULL ||
        x->pick == NULL || x->pick2 == NULL || x->save == NULL || x->key == NULL ||
        !heddle_plan_reduce_init(x)) {
        heddle_plan_search_fini(x);
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the solver");
    }
    return HEDDLE_OK;
}

bool heddle_plan_search_is_late(const struct heddle_plan_search *x)
{
    return heddle_clock_ns() >= x->deadline_ns;
}

void heddle_plan_search_fini(struct heddle_plan_search *x)
{
    heddle_scratch_drop(&x->mem);
}

heddle_status heddle_plan_seq_finish(struct heddle_plan_search *x, const struct heddle_plan_seq *s,
                                     const char *solver, double bound, uint64_t deadline_ns,
                                     uint64_t *over_out, struct heddle_plan **out)
{
    struct heddle_plan_job job = *x->job;
    const struct heddle_plan_claim claim = {.solver = solver,
                                            .lower_bound = bound,
                                            .bound_note = x->is_free ? HEDDLE_PLAN_FREE_NOTE
                                                                     : HEDDLE_PLAN_DAG_NOTE};
    struct heddle_plan_draft d;
    heddle_status st;

    *over_out = 0;
    job.deadline_ns = deadline_ns;
    heddle_plan_draft_init(&d, job.opts.base.alloc);
    st = heddle_plan_draft_from_sequence(job.g, s->op, s->n, &job.opts.base, &d);
    if (st == HEDDLE_OK)
        st = heddle_plan_finish_tops(&job, &d, &claim,
                                     deadline_ns != 0 ? x->address_work : HEDDLE_PLAN_WORK_LITTLE,
                                     over_out, x->top, out);
    heddle_plan_draft_fini(&d);
    return st;
}

/* ---- a first plan ---------------------------------------------------------- */

#define LARGE       3000
#define MOST        60 /* times of all operations, for a first sequence */
#define STEP        4  /* part of the peak that is taken off at once */
#define STEP_MAX    64
#define EVICT_TIMES 100 /* of the time without recomputation */
#define LOOKS       20
#define FEW         300          /* operations whose addresses take no time */
#define LOCAL       12           /* looks at addresses that are over only here and there */
#define SPARE       400          /* part of the budget, for addresses of a large graph */
#define PLACE_NS    100000000ull /* for addresses of one sequence */
#define REORDER     2e7          /* steps towards another order */
#define SETS        10000        /* of values, for a bound when nothing is found */

/* Runs that evict, first as the rule says, then with some noise. */
static heddle_status evict_some(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    const int tries = x->g->nops > LARGE ? 3 : x->g->nops > 32 ? 60 : 10;
    const double noise = x->noise;
    heddle_status st = HEDDLE_ENOENT;

    x->max_time = EVICT_TIMES * heddle_plan_sum_times(x->g);
    for (int k = 0; k < tries && st == HEDDLE_ENOENT; k++) {
        if (heddle_plan_search_is_late(x))
            break;
        x->patience = 2u << (k % 5);
        x->noise = k < 5 ? 0 : 0.3 * (1 + k % 7);
        st = heddle_plan_evict(x, HEDDLE_PLAN_RULE_NEXT, s);
    }
    x->noise = noise;
    x->max_time = INFINITY;
    return st;
}

/* Begins with every operation once: the given order, or another. */
static heddle_status start_seq(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    heddle_plan_seq_start(s);
    if (x->is_free)
        return heddle_plan_reorder(x, s, fmin(REORDER, 300.0 * x->g->nops * x->g->nops));
    return heddle_plan_seq_eval(s) ? HEDDLE_OK : HEDDLE_ENOMEM;
}

bool heddle_plan_reduce_by_steps(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    const int64_t budget = x->budget;
    int64_t part = STEP;

    while (s->peak > budget && part <= STEP_MAX && !heddle_plan_search_is_late(x)) {
        const uint32_t n = s->n;

        memcpy(x->kept, s->op, n * sizeof(*s->op));
        x->budget = s->peak - 1 - (s->peak - 1) / part;
        if (x->budget < budget)
            x->budget = budget;
        if (heddle_plan_reduce(x, s)) {
            heddle_plan_prune(x, s);
            continue;
        }
        memcpy(s->op, x->kept, n * sizeof(*s->op));
        s->n = n;
        (void)!heddle_plan_seq_eval(s);
        part *= 2;
    }
    x->budget = budget;
    return s->peak <= budget;
}

heddle_status heddle_plan_greedy_seq(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    const uint32_t batch = x->batch;
    const int64_t budget = x->budget;
    heddle_status st = start_seq(x, s);
    bool is_done;

    if (st != HEDDLE_OK)
        return st;
    x->batch = x->g->nops > LARGE ? 64 + x->g->nops / 96 : 4;
    x->max_time = MOST * heddle_plan_sum_times(x->g);
    if (x->g->nops > LARGE) /* addresses of so many are seldom tight */
        x->budget -= x->budget / SPARE;
    is_done = heddle_plan_reduce(x, s);
    if (!is_done && !x->is_free) {
        st = start_seq(x, s);
        is_done = st == HEDDLE_OK && heddle_plan_reduce_by_steps(x, s);
    }
    x->batch = batch;
    x->max_time = INFINITY;
    if (is_done)
        heddle_plan_prune(x, s);
    x->budget = budget;
    return st != HEDDLE_OK || is_done ? st : HEDDLE_ENOENT;
}

heddle_status heddle_plan_long_seq(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    heddle_status st = evict_some(x, s);

    if (st == HEDDLE_ENOENT)
        st = heddle_plan_from_little(x, s);
    if (st == HEDDLE_OK)
        heddle_plan_prune(x, s);
    return st;
}

heddle_status heddle_plan_first_seq(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    const heddle_status st = heddle_plan_greedy_seq(x, s);

    return st == HEDDLE_ENOENT && !x->is_free ? heddle_plan_long_seq(x, s) : st;
}

heddle_status heddle_plan_no_plan(const struct heddle_plan_search *x)
{
    const struct heddle_plan_job *job = x->job;
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_plan_job late = *job;
    uint64_t least = 0;
    uint32_t op = HEDDLE_PLAN_NONE;
    heddle_status st = heddle_plan_bound_memory(job, job->m->budget, job->g->nops, &least, &op);

    late.deadline_ns = heddle_clock_ns() + PLACE_NS;
    if (st == HEDDLE_OK && least <= job->m->budget)
        st = heddle_plan_bound_sets(&late, job->m->budget, SETS, &least, &op);
    if (st != HEDDLE_OK)
        return HEDDLE_PLAN_FAIL(o, st, "no memory for the solver");
    if (least > job->m->budget)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOENT,
                                "no plan exists that moves nothing: to compute operation %s from "
                                "what there is at the beginning needs %s in every order; the "
                                "budget is %s",
                                heddle_plan_op_label(job->g, op).text,
                                heddle_plan_bytes_label(least).text,
                                heddle_plan_bytes_label(job->m->budget).text);
    return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOENT,
                            "no plan found: the budget is %.3f times the "
                            "least that is known to be needed",
                            (double)job->m->budget / (double)least);
}

bool heddle_plan_set_aside(struct heddle_plan_search *x, const struct heddle_plan_seq *s,
                           double part)
{
    const int64_t budget = (int64_t)(x->job->m->budget < INT64_MAX ? x->job->m->budget : INT64_MAX);
    int64_t over = INT64_MIN;
    bool is_changed = false;

    for (uint32_t p = 0; p < s->n; p++) {
        const uint32_t op = s->op[p];
        const int64_t here = (int64_t)x->top[p] - budget;
        int64_t most, now = x->aside[op];

        over = here > over ? here : over;
        if (s->prev[p] != HEDDLE_PLAN_NONE)
            continue;
        most = budget - (int64_t)heddle_plan_op_bytes(x->g, op, UINT64_MAX);
        now += (int64_t)((double)over * part) + (over > 0 ? budget / 2000 : -now / 4);
        now = now > most ? most : now;
        now = now < 0 ? 0 : now;
        is_changed |= now != x->aside[op];
        x->aside[op] = now;
        over = INT64_MIN;
    }
    return is_changed;
}

/* Less memory where addresses were over, or everywhere; HEDDLE_ENOENT: that is too
 * little. */
static heddle_status leave_room(struct heddle_plan_search *x, struct heddle_plan_seq *s,
                                bool is_local, uint64_t over)
{
    const uint64_t budget = x->job->m->budget;

    x->max_time = 4 * s->time;
    x->batch = x->g->nops > LARGE ? 64 : 4;
    if (is_local && heddle_plan_set_aside(x, s, 0.75) && heddle_plan_seq_eval(s) &&
        heddle_plan_reduce(x, s)) {
        heddle_plan_prune(x, s);
        return HEDDLE_OK;
    }
    memset(x->aside, 0, x->g->nops * sizeof(*x->aside));
    if (x->budget <= (int64_t)x->job->floor)
        return HEDDLE_ENOENT;
    x->budget -= (int64_t)((over - budget) * 3 / 4 + budget / 1000 + 1);
    if (x->budget < (int64_t)x->job->floor)
        x->budget = (int64_t)x->job->floor;
    if (heddle_plan_seq_eval(s) && heddle_plan_reduce(x, s)) {
        heddle_plan_prune(x, s);
        return HEDDLE_OK;
    }
    return x->is_patient ? HEDDLE_ENOENT : heddle_plan_first_seq(x, s);
}

/* The deadline, or a little later than now when that is over. */
static uint64_t later(const struct heddle_plan_search *x, uint64_t now)
{
    const uint64_t soon = now + PLACE_NS;

    if (soon <= x->job->deadline_ns)
        return x->job->deadline_ns;
    return soon < x->deadline_ns ? soon : x->deadline_ns;
}

heddle_status heddle_plan_place_seq(struct heddle_plan_search *x, struct heddle_plan_seq *s,
                                    const char *solver, double bound, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &x->job->opts.base;
    const uint64_t budget = x->job->m->budget;
    uint64_t over = 0, deadline = s->n < FEW ? x->job->deadline_ns : 0;
    heddle_status st;

    for (int k = 0; k < LOOKS; k++) {
        const uint32_t n = s->n;

        st = heddle_plan_seq_finish(x, s, solver, bound, deadline, &over, out);
        if (st != HEDDLE_ENOENT || over <= budget)
            return st;
        memcpy(x->held, s->op, n * sizeof(*s->op));
        st = leave_room(x, s, k < LOCAL, over);
        if (st == HEDDLE_ENOMEM)
            return HEDDLE_PLAN_FAIL(o, st, "no memory for the solver");
        if (st != HEDDLE_OK) {
            if (deadline != 0 || x->is_patient)
                break;
            memcpy(s->op, x->held, n * sizeof(*s->op));
            s->n = n;
            if (!heddle_plan_seq_eval(s))
                break;
        }
        /* more work when it is almost enough, or nothing else is left; a first
         * plan may take longer than the limit */
        deadline = s->n < FEW || st != HEDDLE_OK || over - budget < budget / 50
                       ? later(x, heddle_clock_ns())
                       : 0;
    }
    return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOENT,
                            "no plan found whose addresses fit; the last "
                            "needs %s",
                            heddle_plan_bytes_label(over).text);
}
