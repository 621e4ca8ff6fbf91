/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * first: the first plan.
 *
 * A sequence in the given order, or in another one where that could be much better; where
 * none is found, a chain of blocks, several passes, or a run that is found backwards.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "plan/bound/bound.h"
#include "plan/improve/improve.h"

#define MANY        1000 /* operations: several passes are worth a try */
#define DEEP        16   /* the budget is less than this part: a sweep comes first */
#define TINY        32   /* operations: no blocks worth the name */
#define CLIMB_WORK  2    /* times the work of the search, for another order */
#define LONG        1.25 /* times all operations: too long to be given addresses */
#define BLOCKS      0.2  /* of the time, for a chain of blocks */
#define BLOCKS_MUCH 0.5  /* the same for large graphs: rounds do little there */
#define BACK        0.5  /* of the time at least, for a run found backwards */
#define GAP         0.2  /* of the increase: below it another order is not tried */
#define GAIN        0.7  /* of the increase: below it another order is taken */

/*
 * From a sequence that is over the budget down to it: less memory, a part of
 * the way, with other recomputations in the place of some. What is stuck is
 * varied at its own level. True: m->cur is there.
 */
static bool descend(struct heddle_plan_improve *m)
{
    struct heddle_plan_search *x = &m->x;
    const int64_t budget = x->budget;
    const double work = x->work + m->work_max / 20;
    uint32_t part = 2;

    if (m->cur.peak / 2 > budget)
        return false;
    x->batch = 1;
    for (int k = 0; m->cur.peak > budget && x->work < work; k++) {
        const int64_t over = m->cur.peak - budget;

        if (heddle_plan_search_is_late(x))
            break;
        heddle_plan_improve_list(m);
        heddle_plan_seq_copy(&m->trial, &m->cur);
        if (k % 2 == 1 && m->nagain > 0)
            heddle_plan_improve_ruin(m);
        x->budget = m->cur.peak - 1 - (over - 1) / part;
        x->noise = heddle_rng_below32(&x->rng, 2) == 0 ? 0.1 : 0.7;
        x->max_time = m->cur.time * 1.5 + m->base;
        if (heddle_plan_reduce(x, &m->trial)) {
            heddle_plan_prune(x, &m->trial);
            heddle_plan_seq_copy(&m->cur, &m->trial);
            part = part > 2 ? part / 2 : 1;
            continue;
        }
        part = part < 64 ? part * 2 : 64;
        x->budget = m->cur.peak;
        heddle_plan_seq_copy(&m->best, &m->cur);
        if (m->nagain > 0)
            heddle_plan_improve_round(m);
    }
    x->budget = budget;
    x->noise = 0;
    x->max_time = INFINITY;
    return m->cur.peak <= budget;
}

/* A first sequence, in m->cur: cheap, or else whatever fits. */
static heddle_status first_seq(struct heddle_plan_improve *m)
{
    struct heddle_plan_search *x = &m->x;
    heddle_status st = heddle_plan_greedy_seq(x, &m->cur);

    /* a large graph: blocks come first */
    if (st != HEDDLE_ENOENT || (x->g->nops > HEDDLE_PLAN_IMPROVE_LARGE && !x->is_free))
        return st;
    if (descend(m))
        return HEDDLE_OK;
    return x->is_free ? HEDDLE_ENOENT : heddle_plan_long_seq(x, &m->cur);
}

/* m->cur, after some rounds: what is very long has too many blocks, and the first
 * look at a sequence says little. */
static void shorten(struct heddle_plan_improve *m)
{
    const double begin = m->x.work;
    const double few = m->x.g->nops > HEDDLE_PLAN_IMPROVE_LARGE ? 0 : m->work_max / 20;

    heddle_plan_seq_copy(&m->best, &m->cur);
    heddle_plan_improve_list(m);
    while (m->nagain > 0 && !heddle_plan_search_is_late(&m->x)) {
        const double work = m->x.work - begin;

        if (work >= m->work_max / 5 || (work >= few && m->best.time <= LONG * m->base))
            break;
        heddle_plan_improve_round(m);
    }
    heddle_plan_seq_copy(&m->cur, &m->best);
    m->x.max_time = INFINITY;
    m->x.noise = 0;
}

/* Orders until one has a plan, in m->cur; not where it is known that none has. */
static heddle_status climb(struct heddle_plan_improve *m)
{
    uint64_t least = 0;
    uint32_t op;
    heddle_status st =
        heddle_plan_bound_memory(&m->job, m->job.m->budget, m->x.g->nops, &least, &op);

    if (st != HEDDLE_OK || least > m->job.m->budget)
        return st == HEDDLE_OK ? HEDDLE_ENOENT : st;
    return heddle_plan_climb(&m->x, &m->cur, CLIMB_WORK * m->work_max);
}

/* A sequence in another order, when that could be much better: true, and it is
 * in m->cur. The bound of the given order does not hold for it. */
static bool try_free(struct heddle_plan_improve *m, bool has_given, double given)
{
    struct heddle_plan_search *x = &m->x;
    double gain = GAIN;
    heddle_status st;

    if (has_given &&
        (x->g->nops > HEDDLE_PLAN_IMPROVE_LARGE || given - m->bound <= GAP * (given - m->base)))
        return false;
    /* where the bound says little there is little to lose */
    if (has_given && given - m->bound > 0.6 * (given - m->base))
        gain = 0.97;
    x->is_free = true;
    st = first_seq(m);
    if (st == HEDDLE_ENOENT && !has_given && x->g->nops <= HEDDLE_PLAN_IMPROVE_LARGE)
        st = climb(m);
    if (st == HEDDLE_OK) {
        shorten(m);
        if (!has_given || m->cur.time - m->base < gain * (given - m->base)) {
            m->bound = m->base;
            return true;
        }
    }
    x->is_free = false;
    return false;
}

/* Addresses for m->cur; m->best is what got them. */
static heddle_status place(struct heddle_plan_improve *m, uint64_t budget)
{
    struct heddle_plan_search *x = &m->x;

    x->budget = (int64_t)budget;
    memset(x->aside, 0, x->g->nops * sizeof(*x->aside));
    (void)!heddle_plan_seq_eval(&m->cur);
    heddle_plan_seq_copy(&m->best, &m->cur);
    if (x->g->nops <= HEDDLE_PLAN_IMPROVE_LARGE)
        heddle_plan_smooth(x, &m->best, HEDDLE_PLAN_IMPROVE_SMOOTH);
    x->is_patient = true;
    return heddle_plan_place_seq(x, &m->best, "improve", m->bound, &m->plan);
}

heddle_status heddle_plan_improve_blocks(struct heddle_plan_improve *m, double goal)
{
    struct heddle_plan_search *x = &m->x;
    const int64_t budget = x->budget;
    const uint64_t late_ns = x->deadline_ns;
    const double share = x->g->nops > HEDDLE_PLAN_IMPROVE_LARGE ? BLOCKS_MUCH : BLOCKS;
    const size_t bytes = x->g->nops * sizeof(*x->aside);
    struct heddle_plan_blocks_try try = {.seconds = share * m->job.opts.time_limit_s, .goal = goal};
    struct heddle_plan *p = NULL;
    heddle_status st;

    if (x->g->nops < TINY)
        return HEDDLE_OK;
    if (m->plan != NULL) /* no hurry to have one */
        x->deadline_ns = m->job.deadline_ns;
    memcpy(m->aside, x->aside, bytes);
    memset(x->aside, 0, bytes);
    x->budget = (int64_t)m->job.m->budget;
    st = heddle_plan_blocks_plan(x, &try, &m->trial, "improve", m->base, &p);
    x->deadline_ns = late_ns;
    if (st == HEDDLE_OK && p->makespan < goal) {
        heddle_plan_destroy(m->plan);
        m->plan = p;
        (void)!heddle_plan_seq_eval(&m->trial);
        heddle_plan_seq_copy(&m->best, &m->trial);
        heddle_plan_seq_copy(&m->cur, &m->trial);
        m->is_stopped = !heddle_plan_job_report(&m->job, p);
        return HEDDLE_OK;
    }
    heddle_plan_destroy(p);
    memcpy(x->aside, m->aside, bytes);
    x->budget = budget;
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* Takes a plan whose sequence no other one has. */
static void take_foreign(struct heddle_plan_improve *m, struct heddle_plan *p)
{
    heddle_plan_destroy(m->plan);
    m->plan = p;
    p->solver = "improve";
    m->cur.n = 0;
    m->is_stopped = true;
    m->x.is_free = true;
    m->bound = m->base;
}

/* A plan of several passes, which needs the least memory and much time. It has the
 * time limit for itself when nothing else was found, otherwise what is left. */
static heddle_status try_passes(struct heddle_plan_improve *m)
{
    struct heddle_plan_job job = m->job;
    const double limit = job.opts.time_limit_s;
    struct heddle_plan *p = NULL;
    heddle_status st;

    job.deadline_ns = job.start_ns + (uint64_t)(HEDDLE_PLAN_IMPROVE_END * limit * 1e9);
    if (m->quick == NULL) {
        job.start_ns = heddle_clock_ns();
        job.deadline_ns = job.start_ns + (uint64_t)(limit * 1e9);
    } else if (heddle_clock_ns() >= job.deadline_ns) {
        return HEDDLE_OK;
    }
    st = heddle_plan_passes(&job, false, m->is_swept, &p);
    if (st == HEDDLE_OK && m->quick != NULL && p->makespan >= m->quick->makespan) {
        heddle_plan_destroy(p);
    } else if (st == HEDDLE_OK) {
        (void)heddle_plan_job_report(&m->job, p);
        take_foreign(m, p);
    } else if (m->quick == NULL) {
        m->x.deadline_ns += heddle_clock_ns() - job.start_ns;
    }
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* A run that is found backwards, with some time even if little is left; without one others
 * have as much time as before. */
static heddle_status try_back(struct heddle_plan_improve *m)
{
    struct heddle_plan_job job = m->job;
    const double seconds = BACK * job.opts.time_limit_s;
    const uint64_t now = heddle_clock_ns();
    const uint64_t until = now + (uint64_t)(seconds * 1e9);
    heddle_status st;

    job.deadline_ns = until > job.deadline_ns ? until : job.deadline_ns;
    st = heddle_plan_find_solver("back")->solve(&job, &m->quick);
    m->is_back = st == HEDDLE_OK;
    m->x.deadline_ns += heddle_clock_ns() - now;
    return st;
}

/* A plan at once, where others find nothing or take long: a sweep, or passes of
 * sweeps (is_swept), or a run that is found backwards. */
static heddle_status try_quick(struct heddle_plan_improve *m, bool is_swept)
{
    heddle_status st = HEDDLE_ENOENT;

    m->is_swept = is_swept;
    if (is_swept)
        st = heddle_plan_find_solver("sweep")->solve(&m->job, &m->quick);
    if (st == HEDDLE_ENOENT)
        m->is_several = true;
    if (st == HEDDLE_ENOENT && is_swept)
        st = heddle_plan_passes(&m->job, true, false, &m->quick);
    if (st == HEDDLE_ENOENT)
        st = try_back(m);
    if (st == HEDDLE_OK) {
        m->quick->solver = "improve";
        m->is_stopped = !heddle_plan_job_report(&m->job, m->quick);
    }
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* A better one than the quick plan, of the same kind, in what is left of the time. */
static heddle_status try_longer(struct heddle_plan_improve *m)
{
    heddle_status st = HEDDLE_OK;

    m->x.deadline_ns = m->job.deadline_ns; /* no hurry */
    if (!m->is_stopped && !heddle_plan_search_is_late(&m->x))
        st = m->is_several ? try_passes(m) : heddle_plan_improve_blocks(m, m->quick->makespan);
    return st == HEDDLE_OK && m->plan == NULL ? HEDDLE_ENOENT : st;
}

/* The quick plan is the first one: rounds go on from it. */
static heddle_status take_quick(struct heddle_plan_improve *m)
{
    struct heddle_plan *p = m->quick;

    m->cur.n = 0;
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].kind == HEDDLE_PLAN_COMPUTE)
            m->cur.op[m->cur.n++] = p->steps[i].what;
    memset(m->x.aside, 0, m->x.g->nops * sizeof(*m->x.aside));
    if (!heddle_plan_seq_eval(&m->cur))
        return HEDDLE_ENOMEM;
    heddle_plan_seq_copy(&m->best, &m->cur);
    m->plan = p;
    m->quick = NULL;
    m->bound = m->base;
    m->x.is_free = true;
    m->x.budget = m->cur.peak; /* more when addresses leave it */
    return HEDDLE_OK;
}

heddle_status heddle_plan_improve_first(struct heddle_plan_improve *m,
                                        const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    const double bound = m->bound;
    const uint64_t budget = (uint64_t)x->budget;
    const bool is_large = x->g->nops > HEDDLE_PLAN_IMPROVE_LARGE;
    heddle_status st = HEDDLE_OK;
    bool has_given;
    double given = 0;

    if (is_large && heddle_plan_peak(x->g) / DEEP > budget)
        st = try_quick(m, true);
    if (st == HEDDLE_OK && m->is_back)
        return take_quick(m);
    if (st != HEDDLE_OK || m->quick != NULL)
        return st == HEDDLE_OK ? try_longer(m) : st;
    st = first_seq(m);
    has_given = st == HEDDLE_OK;
    if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
        return HEDDLE_PLAN_FAIL(&job->opts.base, st, "no memory for the solver");
    if (!has_given) {
        st = heddle_plan_improve_blocks(m, INFINITY);
        if (st == HEDDLE_OK && m->plan == NULL && is_large && !m->is_swept)
            st = try_quick(m, true);
        if (st == HEDDLE_OK && m->plan == NULL && x->g->nops > MANY && !m->is_back)
            st = try_passes(m);
        if (st == HEDDLE_OK && m->plan == NULL && x->g->nops > MANY && !m->is_swept)
            st = try_quick(m, false);
        if (st == HEDDLE_OK && m->plan == NULL && m->is_back)
            return take_quick(m);
        if (st != HEDDLE_OK || m->plan != NULL)
            return st;
        if (m->quick != NULL)
            return HEDDLE_ENOENT;
    }
    if (!has_given && x->g->nops > HEDDLE_PLAN_IMPROVE_LARGE) {
        st = heddle_plan_long_seq(x, &m->cur);
        has_given = st == HEDDLE_OK;
        if (!has_given && st != HEDDLE_ENOENT)
            return HEDDLE_PLAN_FAIL(&job->opts.base, st, "no memory for the solver");
    }
    if (has_given) {
        shorten(m);
        given = m->cur.time;
        memcpy(m->given, m->cur.op, m->cur.n * sizeof(*m->given));
        m->ngiven = m->cur.n;
    }
    if (try_free(m, has_given, given))
        st = place(m, budget);
    else if (!has_given)
        return heddle_plan_no_plan(x);
    if (m->plan == NULL && has_given) {
        x->is_free = false;
        m->bound = bound;
        memcpy(m->cur.op, m->given, m->ngiven * sizeof(*m->given));
        m->cur.n = m->ngiven;
        st = place(m, budget);
    }
    if (st == HEDDLE_ENOENT) {
        /* the search goes on without a plan */
        x->budget = (int64_t)budget;
        memset(x->aside, 0, x->g->nops * sizeof(*x->aside));
        (void)!heddle_plan_seq_eval(&m->cur);
        heddle_plan_seq_copy(&m->best, &m->cur);
        st = HEDDLE_OK;
    }
    if (st == HEDDLE_OK) {
        heddle_plan_seq_copy(&m->cur, &m->best);
        if (m->plan != NULL)
            m->is_stopped = !heddle_plan_job_report(job, m->plan);
    }
    return st;
}
