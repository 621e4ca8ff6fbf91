/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * took: how long each execution had its lane for itself.
 *
 * Each moment of a lane belongs to the execution that began last and has not ended: a
 * task that ran inside of a waiting task has that time for itself. Moments in which the
 * lane slept or looked for work belong to no execution, nor does what the system took from
 * it to run something else. So the times of a lane add up to
 * at most the makespan, and so do the times of a chain of tasks, because moments before
 * the end of a predecessor do not count.
 */
#include "log_graph/log_graph.h"

#define NONE HEDDLE_LOG_GRAPH_NONE

struct sweep {
    struct maker *m;
    const uint32_t *task; /* [log's tasks] 1 + task; 0: does not count */
    const uint32_t *exec; /* of this lane, by start */
    size_t nexecs;
    const uint32_t *state; /* of this lane, by start */
    size_t nstates, at;
    uint32_t *stack;
    size_t depth;
    int64_t now;
};

static bool is_waiting(unsigned state)
{
    return state == HEDDLE_LOG_IDLE || state == HEDDLE_LOG_SPIN || state == HEDDLE_LOG_SLEEP ||
           state == HEDDLE_LOG_WAKE || state == HEDDLE_LOG_DATA || state == HEDDLE_LOG_MEMORY;
}

/* Gives the moments up to `until` to the top of the stack. */
static void sweep_to(struct sweep *s, int64_t until)
{
    const uint32_t exec = s->stack[s->depth - 1];
    const uint32_t task = s->task[exec];
    int64_t from = s->now, ns;

    if (until <= from)
        return;
    s->now = until;
    if (task == 0)
        return;
    if (from < s->m->start_ns[task - 1])
        from = s->m->start_ns[task - 1];
    ns = until > from ? until - from : 0;
    while (s->at < s->nstates) {
        const struct heddle_log_state *w = &s->m->v->states[s->state[s->at]];
        const int64_t a = w->start_ns > from ? w->start_ns : from;
        const int64_t b = w->end_ns < until ? w->end_ns : until;

        if (w->start_ns >= until)
            break;
        if (b > a)
            ns -= b - a;
        if (w->end_ns > until)
            break;
        s->at++;
    }
    s->m->took_ns[task - 1] += ns > 0 ? (double)ns : 0;
}

static void sweep_lane(struct sweep *s)
{
    s->now = INT64_MIN;
    for (size_t i = 0; i <= s->nexecs; i++) {
        const struct heddle_log_task *t = i < s->nexecs ? &s->m->v->tasks[s->exec[i]] : NULL;
        const int64_t start = t != NULL ? t->start_ns : INT64_MAX;

        while (s->depth > 0) {
            const int64_t end = s->m->v->tasks[s->stack[s->depth - 1]].end_ns;

            sweep_to(s, end < start ? end : start);
            if (end > start)
                break;
            s->depth--;
        }
        if (t == NULL)
            break;
        if (s->now < start)
            s->now = start;
        s->stack[s->depth++] = s->exec[i];
    }
}

/* Puts indices in the order of lanes; first[lane] up to first[lane + 1]. */
static void by_lane(const struct heddle_log_view *v, bool is_state, size_t *first, uint32_t *out)
{
    const size_t n = is_state ? v->nstates : v->ntasks;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t lane = is_state ? v->states[i].lane : v->tasks[i].lane;

            if (lane == HEDDLE_LOG_NO_LANE || lane >= v->nlanes ||
                (is_state && !is_waiting(v->states[i].state)))
                continue;
            if (pass == 0)
                first[lane + 2]++;
            else
                out[first[lane + 1]++] = (uint32_t)i;
        }
        for (size_t i = 2; pass == 0 && i < v->nlanes + 2; i++)
            first[i] += first[i - 1];
    }
}

/* What executions lost to the system is in events at their ends. */
static void take_lost(struct maker *m)
{
    for (size_t i = 0; i < m->v->nevents; i++) {
        const struct heddle_log_event *e = &m->v->events[i];
        const uint64_t *at =
            e->kind == HEDDLE_LOG_LOST ? heddle_map_find(&m->task_of, e->task) : NULL;
        const uint32_t task = at != NULL && *at != 0 ? (uint32_t)*at - 1 : NONE;

        if (task == NONE || e->y_ns <= 0 || e->t_ns < m->start_ns[task] ||
            e->t_ns > m->end_ns[task])
            continue;
        m->took_ns[task] =
            m->took_ns[task] > (double)e->y_ns ? m->took_ns[task] - (double)e->y_ns : 0;
    }
}

heddle_status heddle_lg_took(struct maker *m)
{
    const struct heddle_log_view *v = m->v;
    size_t *fe = heddle_scratch_get(m->scratch, v->nlanes + 2, sizeof(*fe));
    size_t *fs = heddle_scratch_get(m->scratch, v->nlanes + 2, sizeof(*fs));
    uint32_t *exec = heddle_scratch_get(m->scratch, v->ntasks, sizeof(*exec));
    uint32_t *state = heddle_scratch_get(m->scratch, v->nstates, sizeof(*state));
    uint32_t *task = heddle_scratch_get(m->scratch, v->ntasks, sizeof(*task));
    uint32_t *stack = heddle_scratch_get(m->scratch, v->ntasks + 1, sizeof(*stack));

    if (fe == NULL || fs == NULL || exec == NULL || state == NULL || task == NULL || stack == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < m->n; i++)
        task[m->log_index[i]] = i + 1;
    by_lane(v, false, fe, exec);
    by_lane(v, true, fs, state);
    for (size_t l = 0; l < v->nlanes; l++) {
        struct sweep s = {.m = m,
                          .task = task,
                          .exec = exec + fe[l],
                          .nexecs = fe[l + 1] - fe[l],
                          .state = state + fs[l],
                          .nstates = fs[l + 1] - fs[l],
                          .stack = stack};

        sweep_lane(&s);
    }
    take_lost(m);
    return HEDDLE_OK;
}
