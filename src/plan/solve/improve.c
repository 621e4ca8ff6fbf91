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
#include "plan/blocks/blocks.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

#define NONE        HEDDLE_PLAN_NONE
#define RATE        4e7  /* work in a second of the time limit: half of what we can */
#define LARGE       3000 /* no time for another order */
#define MANY        1000 /* operations: several passes are worth a try */
#define DEEP        16   /* the budget is less than this part: a sweep comes first */
#define TINY        32   /* operations: no blocks worth the name */
#define CLIMB       400  /* steps of the bound */
#define CLIMB_WORK  2    /* times the work of the search, for another order */
#define LOOKS       4    /* at addresses, during the search */
#define LOOKS_FIRST 16   /* the same, as long as none fit */
#define LONG        1.25 /* times all operations: too long to be given addresses */
#define LOOSE       100  /* part of the peak: more lost, and addresses are improved */
#define SHARE       0.7  /* of the time, for the search */
#define BLOCKS      0.2  /* of the time, for a chain of blocks */
#define BLOCKS_MUCH 0.5  /* the same for large graphs: rounds do little there */
#define BACK        0.5  /* of the time at least, for a run found backwards */
#define END         0.97 /* of the time, for addresses */
#define SHARE_FIRST 0.95 /* the same, as long as there is no plan */
#define LEAST_S     0.5  /* seconds for a first plan, or TIMES the limit */
#define TIMES       100
#define SMOOTH      2e7 /* work before addresses */
#define GAP         0.2 /* of the increase: below it another order is not tried */
#define GAIN        0.7 /* of the increase: below it another order is taken */

struct improve {
    struct heddle_plan_search x;
    struct heddle_plan_job job; /* with the deadline of the search */
    struct heddle_plan_seq cur, trial, best;
    struct heddle_plan *plan;
    struct heddle_plan *quick; /* a first one, for very small budgets; NULL */
    double base, bound;
    uint8_t *mark;
    uint32_t *again, nagain; /* recomputations of cur */
    int64_t *aside;          /* [nops] x.aside, to go back to */
    uint32_t *given, ngiven; /* a sequence in the given order */
    double work, work_max;   /* at the beginning of the rounds; to do */
    bool is_stopped;
    bool is_swept, is_several; /* a quick plan was looked for; it has passes */
    bool is_back;              /* it was looked for backwards */
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
    const uint32_t some = m->nagain < 12 ? m->nagain : 12;
    const uint32_t most = m->nagain > 32 * 12 ? m->nagain / 32 : some;
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
        (m->plan == NULL || heddle_plan_first_seq(x, &m->cur) != HEDDLE_OK))
        return false;
    heddle_plan_prune(x, &m->cur);
    heddle_plan_seq_copy(&m->best, &m->cur);
    list_again(m);
    return true;
}

/* The plan p of the best sequence is taken. What its addresses leave is for the
 * next ones. */
static void take_plan(struct improve *m, struct heddle_plan *p)
{
    struct heddle_plan_search *x = &m->x;
    const uint64_t budget = m->job.m->budget;

    heddle_plan_destroy(m->plan);
    m->plan = p;
    m->is_stopped = !heddle_plan_job_report(x->job, p);
    x->budget += (int64_t)(budget - p->arena_bytes) * 3 / 4;
    if (x->budget > (int64_t)budget)
        x->budget = (int64_t)budget;
    (void)heddle_plan_set_aside(x, &m->best, 0.5);
    (void)!heddle_plan_seq_eval(&m->best);
    (void)!heddle_plan_seq_eval(&m->cur);
    x->noise = 0;
    heddle_plan_prune(x, &m->cur);
    list_again(m);
    if (m->cur.time < m->best.time)
        heddle_plan_seq_copy(&m->best, &m->cur);
}

/* The addresses of the best sequence are over: it has to leave more room. */
static void leave_room(struct improve *m, uint64_t over)
{
    struct heddle_plan_search *x = &m->x;
    const uint64_t budget = m->job.m->budget;
    const size_t bytes = x->g->nops * sizeof(*x->aside);
    const int64_t was = x->budget;

    memcpy(m->aside, x->aside, bytes);
    if (!heddle_plan_set_aside(x, &m->best, m->plan != NULL ? 0.5 : 0.25))
        x->budget -= (int64_t)((over - budget) / 2 + budget / 2000 + 1);
    (void)!heddle_plan_seq_eval(&m->best);
    if (restart(m))
        return;
    if (m->plan != NULL) {
        m->is_stopped = true;
        return;
    }
    /* another sequence may have other addresses */
    memcpy(x->aside, m->aside, bytes);
    x->budget = was;
    (void)!heddle_plan_seq_eval(&m->best);
    heddle_plan_seq_copy(&m->cur, &m->best);
    list_again(m);
}

/* Gives the best sequence addresses, if it is better than the plan. */
static heddle_status settle(struct improve *m, uint64_t deadline_ns)
{
    struct heddle_plan_search *x = &m->x;
    struct heddle_plan *p = NULL;
    uint64_t over = 0;
    heddle_status st;

    if (m->plan == NULL) /* another one each time */
        heddle_plan_seq_copy(&m->best, &m->cur);
    else if (!(m->best.time < m->plan->makespan * (1 - 1e-12)))
        return HEDDLE_OK;
    heddle_plan_smooth(x, &m->best, SMOOTH);
    x->address_work = m->plan != NULL ? HEDDLE_PLAN_WORK_SOME : HEDDLE_PLAN_WORK_SOME / 4;
    st = heddle_plan_seq_finish(x, &m->best, "improve", m->bound, deadline_ns, &over, &p);
    if (st == HEDDLE_OK)
        take_plan(m, p);
    if (st != HEDDLE_ENOENT || over <= m->job.m->budget)
        return st;
    if (heddle_clock_ns() < deadline_ns)
        leave_room(m, over);
    else
        m->is_stopped = true;
    return HEDDLE_OK;
}

/* Seconds that a first plan may take, however short the limit is. */
static double at_least(double limit)
{
    return fmin(LEAST_S, TIMES * limit);
}

/* How much of the search is over, 0 to 1. */
static double progress(const struct improve *m)
{
    const double work = (m->x.work - m->work) / m->work_max;
    const double limit = m->job.opts.time_limit_s;
    const double time =
        heddle_plan_job_seconds(&m->job) /
        (m->plan != NULL ? SHARE * limit : fmax(SHARE_FIRST * limit, at_least(limit)));

    return work > time ? work : time;
}

static heddle_status improve(struct improve *m, uint64_t deadline_ns)
{
    double next = 0; /* look at addresses */
    heddle_status st = HEDDLE_OK;

    list_again(m);
    while (st == HEDDLE_OK && !m->is_stopped && m->nagain > 0) {
        const double now = progress(m);

        if (now >= 1)
            break;
        if (now >= next) {
            if (next > 0 || m->plan == NULL)
                st = settle(m, deadline_ns);
            next = now + 1. / (m->plan != NULL ? LOOKS + 1 : LOOKS_FIRST);
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

/* ---- a first plan ----------------------------------------------------------- */

/*
 * From a sequence that is over the budget down to it: less memory, a part of
 * the way, with other recomputations in the place of some. What is stuck is
 * varied at its own level. True: m->cur is there.
 */
static bool descend(struct improve *m)
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
        list_again(m);
        heddle_plan_seq_copy(&m->trial, &m->cur);
        if (k % 2 == 1 && m->nagain > 0)
            ruin(m);
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
            one_round(m);
    }
    x->budget = budget;
    x->noise = 0;
    x->max_time = INFINITY;
    return m->cur.peak <= budget;
}

/* A first sequence, in m->cur: cheap, or else whatever fits. */
static heddle_status first_seq(struct improve *m)
{
    struct heddle_plan_search *x = &m->x;
    heddle_status st = heddle_plan_greedy_seq(x, &m->cur);

    /* a large graph: blocks come first */
    if (st != HEDDLE_ENOENT || (x->g->nops > LARGE && !x->is_free))
        return st;
    if (descend(m))
        return HEDDLE_OK;
    return x->is_free ? HEDDLE_ENOENT : heddle_plan_long_seq(x, &m->cur);
}

/* m->cur, after some rounds: what is very long has too many blocks, and the first
 * look at a sequence says little. */
static void shorten(struct improve *m)
{
    const double begin = m->x.work;
    const double few = m->x.g->nops > LARGE ? 0 : m->work_max / 20;

    heddle_plan_seq_copy(&m->best, &m->cur);
    list_again(m);
    while (m->nagain > 0 && !heddle_plan_search_is_late(&m->x)) {
        const double work = m->x.work - begin;

        if (work >= m->work_max / 5 || (work >= few && m->best.time <= LONG * m->base))
            break;
        one_round(m);
    }
    heddle_plan_seq_copy(&m->cur, &m->best);
    m->x.max_time = INFINITY;
    m->x.noise = 0;
}

static bool has_once(const struct heddle_plan_graph *g)
{
    for (uint32_t i = 0; i < g->nops; i++)
        if ((g->ops[i].flags & HEDDLE_PLAN_ONCE) != 0)
            return true;
    return false;
}

/* Orders until one has a plan, in m->cur; not where it is known that none has. */
static heddle_status climb(struct improve *m)
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
static bool try_free(struct improve *m, bool has_given, double given)
{
    struct heddle_plan_search *x = &m->x;
    double gain = GAIN;
    heddle_status st;

    if (has_given && (x->g->nops > LARGE || given - m->bound <= GAP * (given - m->base)))
        return false;
    /* where the bound says little there is little to lose */
    if (has_given && given - m->bound > 0.6 * (given - m->base))
        gain = 0.97;
    x->is_free = true;
    st = first_seq(m);
    if (st == HEDDLE_ENOENT && !has_given && x->g->nops <= LARGE)
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
static heddle_status place(struct improve *m, uint64_t budget)
{
    struct heddle_plan_search *x = &m->x;

    x->budget = (int64_t)budget;
    memset(x->aside, 0, x->g->nops * sizeof(*x->aside));
    (void)!heddle_plan_seq_eval(&m->cur);
    heddle_plan_seq_copy(&m->best, &m->cur);
    if (x->g->nops <= LARGE)
        heddle_plan_smooth(x, &m->best, SMOOTH);
    x->is_patient = true;
    return heddle_plan_place_seq(x, &m->best, "improve", m->bound, &m->plan);
}

/* Goes on from a chain of blocks if that is better than `goal`. */
static heddle_status try_blocks(struct improve *m, double goal)
{
    struct heddle_plan_search *x = &m->x;
    const int64_t budget = x->budget;
    const uint64_t late_ns = x->deadline_ns;
    const double share = x->g->nops > LARGE ? BLOCKS_MUCH : BLOCKS;
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

/* Takes a plan whose sequence nobody has. */
static void take_foreign(struct improve *m, struct heddle_plan *p)
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
static heddle_status try_passes(struct improve *m)
{
    struct heddle_plan_job job = m->job;
    const double limit = job.opts.time_limit_s;
    struct heddle_plan *p = NULL;
    heddle_status st;

    job.deadline_ns = job.start_ns + (uint64_t)(END * limit * 1e9);
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
static heddle_status try_back(struct improve *m)
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
static heddle_status try_quick(struct improve *m, bool is_swept)
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
static heddle_status try_longer(struct improve *m)
{
    heddle_status st = HEDDLE_OK;

    m->x.deadline_ns = m->job.deadline_ns; /* no hurry */
    if (!m->is_stopped && !heddle_plan_search_is_late(&m->x))
        st = m->is_several ? try_passes(m) : try_blocks(m, m->quick->makespan);
    return st == HEDDLE_OK && m->plan == NULL ? HEDDLE_ENOENT : st;
}

/* The better one of the quick plan and of what was found behind it. */
static heddle_status choose(struct improve *m, heddle_status st)
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

/* The quick plan is the first one: rounds go on from it. */
static heddle_status take_quick(struct improve *m)
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

static heddle_status first_plan(struct improve *m, const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    const double bound = m->bound;
    const uint64_t budget = (uint64_t)x->budget;
    const bool is_large = x->g->nops > LARGE;
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
        st = try_blocks(m, INFINITY);
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
    if (!has_given && x->g->nops > LARGE) {
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

/* ---- all of it -------------------------------------------------------------- */

/* Better plans, or the first one; then addresses until the end. */
static heddle_status search(struct improve *m, const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    const double limit = job->opts.time_limit_s;
    struct heddle_plan_job last = *job;
    heddle_status st;

    last.deadline_ns = job->start_ns + (uint64_t)(END * limit * 1e9);
    x->deadline_ns = m->job.deadline_ns;
    if (m->plan == NULL) {
        const double most = fmax(END * limit, at_least(limit));

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
        st = settle(m, last.deadline_ns);
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

static heddle_status run(struct improve *m, const struct heddle_plan_job *job)
{
    struct heddle_plan_search *x = &m->x;
    heddle_status st;

    m->base = heddle_plan_sum_times(job->g);
    m->work_max = RATE * job->opts.time_limit_s;
    m->bound = m->base;
    /* a large graph gets its bound after its first plan */
    st = m->x.g->nops <= LARGE || has_once(m->x.g) ? heddle_plan_bound_dag(&m->job, 0, 0, &m->bound)
                                                   : HEDDLE_OK;
    if (st != HEDDLE_OK)
        return st;
    if (isinf(m->bound))
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                                "no plan exists: what must not be computed "
                                "again needs more than the budget");
    st = first_plan(m, job);
    if (st == HEDDLE_OK && !m->is_stopped && !x->is_free && !heddle_plan_job_is_late(&m->job) &&
        m->best.time > m->base * (1 + 1e-9))
        st = try_blocks(m, m->plan != NULL ? m->plan->makespan : INFINITY);
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
    struct improve m = {.job = *job};
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
