/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * improve: a first plan at once, then better ones until the time limit.
 *
 * The number of rounds (improve/rounds.c) follows from the size of the graph and the
 * time limit, so that a run is the same every time, unless the machine is too slow for
 * it. A sequence that is better than the plan at hand is given addresses now and then
 * (improve/settle.c).
 */
#include "plan/improve/improve.h"

#include <math.h>

#include "plan/bound/bound.h"

#define RATE        4e7  /* work in a second of the time limit: half of what we can */
#define CLIMB       400  /* steps of the bound */
#define LOOKS       4    /* at addresses, during the search */
#define LOOKS_FIRST 16   /* the same, as long as none fit */
#define LOOSE       100  /* part of the peak: more lost, and addresses are improved */
#define SHARE       0.7  /* of the time, for the search */
#define SHARE_FIRST 0.95 /* the same, as long as there is no plan */
#define LEAST_S     0.5  /* seconds for a first plan, or TIMES the limit */
#define TIMES       100

/* Seconds that a first plan may take, however short the limit is. */
static double at_least(double limit)
{
    return fmin(LEAST_S, TIMES * limit);
}

/* How much of the search is over, 0 to 1. */
static double progress(const struct heddle_plan_improve *m)
{
    const double work = (m->x.work - m->work) / m->work_max;
    const double limit = m->job.opts.time_limit_s;
    const double time =
        heddle_plan_job_seconds(&m->job) /
        (m->plan != NULL ? SHARE * limit : fmax(SHARE_FIRST * limit, at_least(limit)));

    return work > time ? work : time;
}

static heddle_status improve(struct heddle_plan_improve *m, uint64_t deadline_ns)
{
    double next = 0; /* look at addresses */
    heddle_status st = HEDDLE_OK;

    heddle_plan_improve_list(m);
    while (st == HEDDLE_OK && !m->is_stopped && m->nagain > 0) {
        const double now = progress(m);

        if (now >= 1)
            break;
        if (now >= next) {
            if (next > 0 || m->plan == NULL)
                st = heddle_plan_improve_settle(m, deadline_ns);
            next = now + 1. / (m->plan != NULL ? LOOKS + 1 : LOOKS_FIRST);
            continue;
        }
        heddle_plan_improve_round(m);
    }
    return st;
}

static bool improve_init(struct heddle_plan_improve *m)
{
    struct heddle_scratch *mem = &m->x.mem;

    m->mark = heddle_scratch_raw(mem, m->x.room, sizeof(*m->mark));
    m->again = heddle_scratch_raw(mem, m->x.room, sizeof(*m->again));
    m->aside = heddle_scratch_get(mem, m->x.g->nops, sizeof(*m->aside));
    m->given = heddle_scratch_raw(mem, m->x.room, sizeof(*m->given));
    if (m->mark == NULL || m->again == NULL || m->aside == NULL || m->given == NULL ||
        !heddle_plan_seq_init(&m->cur, m->x.g, m->x.room, mem) ||
        !heddle_plan_seq_init(&m->trial, m->x.g, m->x.room, mem) ||
        !heddle_plan_seq_init(&m->best, m->x.g, m->x.room, mem))
        return false;
    m->cur.aside = m->trial.aside = m->best.aside = m->x.aside;
    return true;
}

static bool has_once(const struct heddle_plan_graph *g)
{
    for (uint32_t i = 0; i < g->nops; i++)
        if ((g->ops[i].flags & HEDDLE_PLAN_ONCE) != 0)
            return true;
    return false;
}

/* The better one of the quick plan and of what was found behind it. */
static heddle_status choose(struct heddle_plan_improve *m, heddle_status st)
{
    if (m->quick == NULL || (st != HEDDLE_OK && st != HEDDLE_ENOENT))
        return st;
    if (st == HEDDLE_ENOENT || m->plan->makespan > m->quick->makespan) {
        heddle_plan_destroy(m->plan);
        m->plan = m->quick;
        m->quick = NULL;
    }
    return HEDDLE_OK;
}

/* ---- all of it -------------------------------------------------------------- */

/* Better plans, or the first one; then addresses until the end. */
static heddle_status search(struct heddle_plan_improve *m, const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    const double limit = job->opts.time_limit_s;
    struct heddle_plan_job last = *job;
    heddle_status st;

    last.deadline_ns = job->start_ns + (uint64_t)(HEDDLE_PLAN_IMPROVE_END * limit * 1e9);
    x->deadline_ns = m->job.deadline_ns;
    if (m->plan == NULL) {
        const double most = fmax(HEDDLE_PLAN_IMPROVE_END * limit, at_least(limit));

        last.deadline_ns = job->start_ns + (uint64_t)(most * 1e9);
        x->deadline_ns = last.deadline_ns;
    }
    m->work = x->work;
    st = improve(m, last.deadline_ns);
    x->deadline_ns = last.deadline_ns;
    for (int k = 0; k < 4 && st == HEDDLE_OK && !m->is_stopped; k++) {
        if (heddle_plan_job_seconds(job) >
            (m->plan != NULL ? SHARE_FIRST * limit : fmax(SHARE_FIRST * limit, at_least(limit))))
            break;
        st = heddle_plan_improve_settle(m, last.deadline_ns);
    }
    if (st == HEDDLE_OK && m->plan == NULL)
        st = HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                              "no plan found whose addresses fit; what is "
                              "alive does");
    if (st == HEDDLE_OK && m->plan->arena_bytes - m->plan->peak_bytes > m->plan->peak_bytes / LOOSE)
        st = heddle_plan_lower(&last, m->plan);
    if (st == HEDDLE_OK && m->bound > m->plan->lower_bound)
        m->plan->lower_bound = m->bound < m->plan->makespan ? m->bound : m->plan->makespan;
    return st;
}

static heddle_status run(struct heddle_plan_improve *m, const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    heddle_status st;

    m->base = heddle_plan_sum_times(job->g);
    m->work_max = RATE * job->opts.time_limit_s;
    m->bound = m->base;
    /* a large graph gets its bound after its first plan */
    st = m->x.g->nops <= HEDDLE_PLAN_IMPROVE_LARGE || has_once(m->x.g)
             ? heddle_plan_bound_dag(&m->job, 0, 0, &m->bound)
             : HEDDLE_OK;
    if (st != HEDDLE_OK)
        return st;
    if (isinf(m->bound))
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                                "no plan exists: what must not be computed "
                                "again needs more than the budget");
    st = heddle_plan_improve_first(m, job);
    if (st == HEDDLE_OK && !m->is_stopped && !x->is_free && !heddle_plan_job_is_late(&m->job) &&
        m->best.time > m->base * (1 + 1e-9))
        st = heddle_plan_improve_blocks(m, m->plan != NULL ? m->plan->makespan : INFINITY);
    if (st == HEDDLE_OK && !x->is_free)
        st = heddle_plan_bound_dag(&m->job, m->best.time, CLIMB, &m->bound);
    if (st != HEDDLE_OK)
        return st;
    return search(m, job);
}

static int improve_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 3;
}

static heddle_status improve_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct heddle_plan_improve m = {.job = *job};
    heddle_status st;

    m.job.deadline_ns = job->start_ns + (uint64_t)(SHARE * job->opts.time_limit_s * 1e9);
    st = heddle_plan_search_init(&m.x, &m.job);
    if (st != HEDDLE_OK)
        return st;
    st = improve_init(&m)
             ? choose(&m, run(&m, job))
             : HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the solver");
    heddle_plan_destroy(m.quick);
    if (st == HEDDLE_OK) {
        m.plan->seconds = heddle_plan_job_seconds(job);
        *out = m.plan;
    } else {
        heddle_plan_destroy(m.plan);
    }
    heddle_plan_search_fini(&m.x);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_improve = {
    .face = {.name = "improve", .help = "a plan at once, better ones until the time limit"},
    .rank = improve_rank,
    .solve = improve_solve,
};
