/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * improve: a first plan at once, then better ones until the time limit.
 *
 * A round takes the sequence at hand, removes some recomputations or moves one,
 * repairs it within the budget (reduce.c, with some noise) and removes what it
 * can (prune.c). The result is kept when it is not much longer than the best.
 * The number of rounds follows from the size of the graph and the time limit, so
 * that a run is the same every time, unless the machine is too slow for it.
 *
 * Addresses: a sequence that is better than the plan at hand is given addresses
 * now and then. When they do not fit, the search goes on with a smaller budget of
 * its own; when they do, with a larger one.
 */
#include "plan/cut.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

#define NONE         HEDDLE_PLAN_NONE
#define RATE         4e7 /* work in a second of the time limit: half of what we can */
#define LARGE        3000 /* no time for another order */
#define TINY         32   /* operations: no blocks worth the name */
#define CLIMB        400  /* steps of the bound */
#define LOOKS        4    /* at addresses, during the search */
#define LEASH        0.3  /* of the time, for a first sequence without blocks */
#define BLOCKS       0.2  /* of the time, for a chain of blocks */
#define BLOCKS_LARGE 0.5 /* the same for large graphs: rounds do little there */
#define SHARE        0.7 /* of the time, for the search */
#define SECOND       0.2 /* of the time, for another order at the end */
#define WORTH        0.95  /* of the increase: another order is taken */
#define LITTLE       0.002 /* of all times: not worth another order */
#define GAP          0.2 /* of the increase: below it another order is not tried */
#define GAIN         0.7 /* of the increase: below it another order is taken */

struct improve {
    struct heddle_plan_search x;
    struct heddle_plan_job job; /* with the deadline of the search */
    struct heddle_plan_seq cur, trial, best;
    struct heddle_plan *plan;
    double base, bound;
    uint8_t *mark;
    uint32_t *again, nagain; /* recomputations of cur */
    double work, work_max;   /* at the beginning of the rounds; to do */
    bool is_stopped;
    bool is_second; /* another order or nothing */
};

/* ---- rounds ---------------------------------------------------------------- */

static void list_again(struct improve *m)
{
    m->nagain = 0;
    for (uint32_t p = 0; p < m->cur.n; p++)
        if (m->cur.prev[p] != NONE)
            m->again[m->nagain++] = p;
}

/* Moves a recomputation of the trial to an earlier place. */
static void shift_one(struct improve *m)
{
    struct heddle_plan_seq *s = &m->trial;
    const uint32_t p = m->again[heddle_rng_below32(&m->x.rng, m->nagain)];
    const struct heddle_plan_op *op = &s->g->ops[s->op[p]];
    const uint32_t id = s->op[p];
    uint32_t lo = s->prev[p], to;

    /* behind its inputs, or one of them would be an older one */
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t by = s->g->values[s->g->inputs[op->first_input + i]].op;
        uint32_t q;

        if (by == NONE)
            continue;
        for (q = s->tail[by]; q > p; q = s->prev[q])
            ;
        if (q > lo)
            lo = q;
    }
    if (p - lo < 2)
        return;
    to = lo + 1 + heddle_rng_below32(&m->x.rng, p - lo - 1);
    memmove(&s->op[to + 1], &s->op[to], (p - to) * sizeof(*s->op));
    s->op[to] = id;
    (void)!heddle_plan_seq_eval(s);
}

/* Moves a first computation of the trial within the window that its inputs and
 * its readers leave. */
static void reorder_one(struct improve *m)
{
    struct heddle_plan_seq *s = &m->trial;
    const struct heddle_plan_graph *g = s->g;
    const uint32_t p = heddle_rng_below32(&m->x.rng, s->n);
    const struct heddle_plan_op *op = &g->ops[s->op[p]];
    const uint32_t id = s->op[p];
    uint32_t lo = 0, hi = p, to;

    if (s->prev[p] != NONE)
        return;
    for (uint32_t i = 0; i < op->ninputs; i++) {
        uint32_t q = g->values[g->inputs[op->first_input + i]].op;

        if (q == NONE)
            continue;
        for (q = s->tail[q]; s->prev[q] != NONE; q = s->prev[q])
            ;
        if (q + 1 > lo)
            lo = q + 1;
    }
    for (bool is_read = false; !is_read && hi + 1 < s->n;) {
        const struct heddle_plan_op *o = &g->ops[s->op[hi + 1]];

        is_read = s->op[hi + 1] == id;
        for (uint32_t i = 0; i < o->ninputs; i++)
            is_read |= g->values[g->inputs[o->first_input + i]].op == id;
        hi += !is_read;
    }
    to = lo + heddle_rng_below32(&m->x.rng, hi - lo + 1);
    if (to < p)
        memmove(&s->op[to + 1], &s->op[to], (p - to) * sizeof(*s->op));
    else
        memmove(&s->op[p], &s->op[p + 1], (to - p) * sizeof(*s->op));
    s->op[to] = id;
    (void)!heddle_plan_seq_eval(s);
}

/* Removes some recomputations of the trial: neighbours, or any. */
static void ruin(struct improve *m)
{
    struct heddle_rng *rng = &m->x.rng;
    const uint32_t kind = heddle_rng_below32(rng, 10);
    const uint32_t most = m->nagain < 12 ? m->nagain : 12;
    const uint32_t k = 1 + heddle_rng_below32(rng, most);

    memset(m->mark, 0, m->trial.n);
    if (kind < 2) {
        for (uint32_t i = 0; i < k; i++)
            m->mark[m->again[heddle_rng_below32(rng, m->nagain)]] = 1;
    } else {
        const uint32_t from = heddle_rng_below32(rng, m->nagain - k + 1);

        for (uint32_t i = 0; i < k; i++)
            if (kind < 6 || heddle_rng_below32(rng, 2) == 0)
                m->mark[m->again[from + i]] = 1;
    }
    heddle_plan_seq_remove(&m->trial, m->mark);
}

static void one_round(struct improve *m)
{
    struct heddle_plan_search *x = &m->x;
    const double slack = 0.02 * (m->best.time - m->base);

    heddle_plan_seq_copy(&m->trial, &m->cur);
    x->work += 4.0 * m->trial.n;
    switch (heddle_rng_below32(&x->rng, 8)) {
    case 0: shift_one(m); break;
    case 1:
    case 2:
        if (x->is_free) {
            reorder_one(m);
            break;
        }
        /* fall through */
    default: ruin(m);
    }
    x->noise = heddle_rng_below32(&x->rng, 2) == 0 ? 0.1 : 0.7;
    x->batch = m->trial.n > 3000 ? 8 : 1;
    x->max_time = m->cur.time * 1.5 + m->base;
    if (!heddle_plan_reduce(x, &m->trial))
        return;
    x->noise = heddle_rng_below32(&x->rng, 2) == 0 ? 0 : 0.5;
    heddle_plan_prune(x, &m->trial);
    if (m->trial.time > m->cur.time && m->trial.time > m->best.time + slack)
        return;
    heddle_plan_seq_copy(&m->cur, &m->trial);
    list_again(m);
    if (m->cur.time < m->best.time)
        heddle_plan_seq_copy(&m->best, &m->cur);
}

/* ---- addresses -------------------------------------------------------------- */

/* Begins again from the best, within the present budget of the search; false:
 * it found nothing. */
static bool restart(struct improve *m)
{
    struct heddle_plan_search *x = &m->x;

    heddle_plan_seq_copy(&m->cur, &m->best);
    x->noise = 0;
    x->batch = 1;
    x->max_time = INFINITY;
    if (!heddle_plan_reduce(x, &m->cur) &&
        heddle_plan_first_seq(x, &m->cur) != HEDDLE_OK)
        return false;
    heddle_plan_prune(x, &m->cur);
    heddle_plan_seq_copy(&m->best, &m->cur);
    list_again(m);
    return true;
}

/* Gives the best sequence addresses, if it is better than the plan. */
static heddle_status settle(struct improve *m, uint64_t deadline_ns)
{
    struct heddle_plan_search *x = &m->x;
    const uint64_t budget = m->job.m->budget;
    struct heddle_plan *p = NULL;
    uint64_t over = 0;
    heddle_status st;

    if (!(m->best.time < m->plan->makespan * (1 - 1e-12)))
        return HEDDLE_OK;
    st = heddle_plan_seq_finish(x, &m->best, "improve", m->bound, deadline_ns,
                                &over, &p);
    if (st == HEDDLE_OK) {
        heddle_plan_destroy(m->plan);
        m->plan = p;
        m->is_stopped = !heddle_plan_job_report(x->job, p);
        /* what the addresses leave is for the next ones */
        x->budget += (int64_t)(budget - p->arena_bytes) * 3 / 4;
        if (x->budget > (int64_t)budget)
            x->budget = (int64_t)budget;
        x->noise = 0;
        heddle_plan_prune(x, &m->cur);
        list_again(m);
        if (m->cur.time < m->best.time)
            heddle_plan_seq_copy(&m->best, &m->cur);
        return HEDDLE_OK;
    }
    if (st != HEDDLE_ENOENT || over <= budget)
        return st;
    x->budget -= (int64_t)((over - budget) / 2 + budget / 2000 + 1);
    m->is_stopped |= !restart(m);
    return HEDDLE_OK;
}

/* How much of the search is over, 0 to 1. */
static double progress(const struct improve *m)
{
    const double work = (m->x.work - m->work) / m->work_max;
    const double time =
        heddle_plan_job_seconds(&m->job) / (SHARE * m->job.opts.time_limit_s);

    return work > time ? work : time;
}

static heddle_status improve(struct improve *m, uint64_t deadline_ns)
{
    int done = 0; /* looks at addresses */
    heddle_status st = HEDDLE_OK;

    list_again(m);
    while (st == HEDDLE_OK && !m->is_stopped && m->nagain > 0) {
        const double now = progress(m);

        if (now >= 1)
            break;
        if (now * (LOOKS + 1) >= done + 1) {
            done++;
            st = settle(m, deadline_ns);
            continue;
        }
        one_round(m);
    }
    return st;
}

/* ---- all of it -------------------------------------------------------------- */

static bool improve_init(struct improve *m)
{
    struct heddle_scratch *mem = &m->x.mem;

    m->mark = heddle_scratch_get(mem, m->x.room, sizeof(*m->mark));
    m->again = heddle_scratch_get(mem, m->x.room, sizeof(*m->again));
    return m->mark != NULL && m->again != NULL &&
           heddle_plan_seq_init(&m->cur, m->x.g, m->x.room, mem) &&
           heddle_plan_seq_init(&m->trial, m->x.g, m->x.room, mem) &&
           heddle_plan_seq_init(&m->best, m->x.g, m->x.room, mem);
}

/* A sequence in another order, when that could be much better: true, and it is
 * the best. The bound of the given order does not hold for it. */
static bool try_free(struct improve *m, bool has_given)
{
    struct heddle_plan_search *x = &m->x;
    const double given = m->best.time;
    double gain = GAIN;

    if (has_given &&
        (x->g->nops > LARGE || given - m->bound <= GAP * (given - m->base)))
        return false;
    /* where the bound says little there is little to lose */
    if (has_given && given - m->bound > 0.6 * (given - m->base))
        gain = 0.97;
    x->is_free = true;
    if (heddle_plan_first_seq(x, &m->cur) == HEDDLE_OK &&
        (!has_given || m->cur.time - m->base < gain * (given - m->base))) {
        heddle_plan_seq_copy(&m->trial, &m->cur);
        m->bound = m->base;
        return true;
    }
    x->is_free = false;
    return false;
}

/* Goes on from a chain of blocks if that is better than `goal`. */
static heddle_status try_blocks(struct improve *m, double goal)
{
    struct heddle_plan_search *x = &m->x;
    const int64_t budget = x->budget;
    const uint64_t late_ns = x->deadline_ns;
    const double share = x->g->nops > LARGE ? BLOCKS_LARGE : BLOCKS;
    struct heddle_plan_blocks_try try = {
        .seconds = share * m->job.opts.time_limit_s, .goal = goal};
    struct heddle_plan *p = NULL;
    heddle_status st;

    if (x->g->nops < TINY)
        return HEDDLE_OK;
    if (m->plan != NULL) /* no hurry to have one */
        x->deadline_ns = m->job.deadline_ns;
    x->budget = (int64_t)m->job.m->budget;
    st = heddle_plan_blocks_plan(x, &try, &m->trial, "improve", m->base, &p);
    x->deadline_ns = late_ns;
    if (st == HEDDLE_OK && p->makespan < goal) {
        heddle_plan_destroy(m->plan);
        m->plan = p;
        heddle_plan_seq_copy(&m->best, &m->trial);
        heddle_plan_seq_copy(&m->cur, &m->trial);
        m->is_stopped = !heddle_plan_job_report(&m->job, p);
        return HEDDLE_OK;
    }
    heddle_plan_destroy(p);
    x->budget = budget;
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* A first sequence in the given order, in m->cur. What takes long without blocks
 * is left to them (then there is a plan); what they cannot do may take all the
 * time there is. */
static heddle_status given_seq(struct improve *m)
{
    struct heddle_plan_search *x = &m->x;
    const uint64_t late_ns = x->deadline_ns;
    const double leash = LEASH * m->job.opts.time_limit_s;
    bool is_late;
    heddle_status st;

    x->deadline_ns = heddle_clock_ns() + (uint64_t)(leash * 1e9);
    st = heddle_plan_first_seq(x, &m->cur);
    is_late = heddle_plan_search_is_late(x);
    x->deadline_ns = late_ns;
    if (st != HEDDLE_ENOENT)
        return st;
    st = try_blocks(m, INFINITY);
    if (st == HEDDLE_OK && m->plan == NULL)
        st = is_late ? heddle_plan_first_seq(x, &m->cur) : HEDDLE_ENOENT;
    return st;
}

static heddle_status first_plan(struct improve *m,
                                const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    const double bound = m->bound;
    const int64_t budget = x->budget;
    heddle_status st = m->is_second ? HEDDLE_ENOENT : given_seq(m);
    const bool has_given = st == HEDDLE_OK;

    if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
        return heddle_plan_fail(&job->opts.base, st,
                                "no memory for the solver");
    if (m->plan != NULL)
        return HEDDLE_OK;
    if (has_given)
        heddle_plan_seq_copy(&m->best, &m->cur);
    if (try_free(m, has_given)) {
        st = heddle_plan_place_seq(x, &m->trial, "improve", m->bound, &m->plan);
        if (st == HEDDLE_OK)
            heddle_plan_seq_copy(&m->best, &m->trial);
    } else if (!has_given) {
        return heddle_plan_no_plan(x);
    }
    if (m->plan == NULL && has_given) {
        x->is_free = false;
        x->budget = budget;
        m->bound = bound;
        st = heddle_plan_place_seq(x, &m->best, "improve", bound, &m->plan);
    }
    if (st == HEDDLE_OK) {
        heddle_plan_seq_copy(&m->cur, &m->best);
        m->is_stopped = !heddle_plan_job_report(job, m->plan);
    }
    return st;
}

static heddle_status run(struct improve *m, const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    heddle_status st;

    for (uint32_t i = 0; i < job->g->nops; i++)
        m->base += job->g->ops[i].time;
    st = heddle_plan_bound_dag(&m->job, 0, 0, &m->bound);
    if (st != HEDDLE_OK)
        return st;
    if (isinf(m->bound))
        return heddle_plan_fail(&job->opts.base, HEDDLE_ENOENT,
                                "no plan exists: what must not be computed "
                                "again needs more than the budget");
    st = first_plan(m, job);
    if (st == HEDDLE_OK && !m->is_stopped && !x->is_free &&
        !heddle_plan_job_is_late(&m->job) &&
        m->plan->makespan > m->base * (1 + 1e-9))
        st = try_blocks(m, m->plan->makespan);
    if (st == HEDDLE_OK && !x->is_free)
        st =
            heddle_plan_bound_dag(&m->job, m->plan->makespan, CLIMB, &m->bound);
    if (st != HEDDLE_OK)
        return st;
    x->deadline_ns = m->job.deadline_ns;
    m->work = x->work;
    m->work_max = RATE * job->opts.time_limit_s;
    st = improve(m, job->deadline_ns);
    for (int k = 0; k < 4 && st == HEDDLE_OK && !m->is_stopped; k++)
        st = settle(m, job->deadline_ns);
    if (st == HEDDLE_OK && m->bound > m->plan->lower_bound)
        m->plan->lower_bound =
            m->bound < m->plan->makespan ? m->bound : m->plan->makespan;
    return st;
}

static int improve_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 3;
}

static heddle_status one_pass(const struct heddle_plan_job *job, bool is_second,
                              bool *is_free, struct heddle_plan **out)
{
    struct improve m = {.job = *job, .is_second = is_second};
    heddle_status st;

    m.job.deadline_ns =
        job->start_ns + (uint64_t)(SHARE * job->opts.time_limit_s * 1e9);
    st = heddle_plan_search_init(&m.x, &m.job);
    if (st != HEDDLE_OK)
        return st;
    st = improve_init(&m) ? run(&m, job)
                          : heddle_plan_fail(&job->opts.base, HEDDLE_ENOMEM,
                                             "no memory for the solver");
    *is_free = m.x.is_free;
    if (st == HEDDLE_OK)
        *out = m.plan;
    else
        heddle_plan_destroy(m.plan);
    heddle_plan_search_fini(&m.x);
    return st;
}

/* The given order may be the wrong one although its plan is near its bound: what
 * is left of the time is for others. */
static void try_second(const struct heddle_plan_job *job,
                       struct heddle_plan **best)
{
    struct heddle_plan_job second = *job;
    struct heddle_plan *p = NULL;
    char why[8];
    bool is_free;

    second.start_ns = heddle_clock_ns();
    if (job->g->nops > LARGE ||
        heddle_plan_job_seconds(job) > (1 - SECOND) * job->opts.time_limit_s ||
        (*best)->makespan <= (*best)->baseline * (1 + LITTLE))
        return;
    second.opts.time_limit_s = SECOND * job->opts.time_limit_s;
    second.deadline_ns =
        second.start_ns + (uint64_t)(second.opts.time_limit_s * 1e9);
    second.opts.progress = NULL;
    second.opts.base.why = why;
    second.opts.base.why_bytes = sizeof(why);
    if (one_pass(&second, true, &is_free, &p) != HEDDLE_OK)
        return;
    /* a little less is not worth the bound */
    if (p->makespan - p->baseline <
        WORTH * ((*best)->makespan - (*best)->baseline)) {
        heddle_plan_destroy(*best);
        *best = p;
    } else {
        heddle_plan_destroy(p);
    }
}

static heddle_status improve_solve(const struct heddle_plan_job *job,
                                   struct heddle_plan **out)
{
    bool is_free = false;
    const heddle_status st = one_pass(job, false, &is_free, out);

    if (st != HEDDLE_OK)
        return st;
    if (!is_free)
        try_second(job, out);
    (*out)->seconds = heddle_plan_job_seconds(job);
    return HEDDLE_OK;
}

const struct heddle_plan_solver_ops heddle_plan_solver_improve = {
    .face = {.name = "improve",
             .help = "a plan at once, better ones until the time limit"},
    .rank = improve_rank,
    .solve = improve_solve,
};
