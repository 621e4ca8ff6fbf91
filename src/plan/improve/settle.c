/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle: addresses for the best sequence.
 *
 * When they do not fit, the search goes on with a smaller budget of its own; when they
 * do, with a larger one.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "plan/arena/arena.h"
#include "plan/improve/improve.h"

/* Begins again from the best, within the present budget of the search; false:
 * it found nothing. */
static bool restart(struct heddle_plan_improve *m)
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
    heddle_plan_improve_list(m);
    return true;
}

/* The plan p of the best sequence is taken. What its addresses leave is for the
 * next ones. */
static void take_plan(struct heddle_plan_improve *m, struct heddle_plan *p)
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
    heddle_plan_improve_list(m);
    if (m->cur.time < m->best.time)
        heddle_plan_seq_copy(&m->best, &m->cur);
}

/* The addresses of the best sequence are over: it has to leave more room. */
static void leave_room(struct heddle_plan_improve *m, uint64_t over)
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
    heddle_plan_improve_list(m);
}

heddle_status heddle_plan_improve_settle(struct heddle_plan_improve *m, uint64_t deadline_ns)
{
    struct heddle_plan_search *x = &m->x;
    struct heddle_plan *p = NULL;
    uint64_t over = 0;
    heddle_status st;

    if (m->plan == NULL) /* another one each time */
        heddle_plan_seq_copy(&m->best, &m->cur);
    else if (!(m->best.time < m->plan->makespan * (1 - 1e-12)))
        return HEDDLE_OK;
    heddle_plan_smooth(x, &m->best, HEDDLE_PLAN_IMPROVE_SMOOTH);
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
