/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supply: what there was to run for workers of one type, as a step function.
 *
 * Rule       at every moment, the first that holds:
 *              START    no task of the run has begun
 *              END      no row of this type is left to begin
 *              SCHED    one is ready and has not begun
 *              SUBMIT   one is available and was not submitted yet
 *              DEPS     one that is left has a known moment of being ready
 *              UNKNOWN  else
 * Structure  four lists of rows, by start (the log's order), ready, available
 *            and submitted; they are sorted once and swept for each type with
 *            one counter per line of the rule.
 * Invariant  step[0].t == first; times ascend strictly; neighbours differ.
 * Cost       linear after sorting.
 */
#include "base/assert.h"
#include "base/sort.h"
#include "explain/explain.h"

typedef int64_t time_fn(const struct heddle_explain_work *w, uint32_t row);

static bool is_counted(const struct heddle_explain_work *w, uint32_t row)
{
    return !heddle_explain_is_helper(&w->v->tasks[row]);
}

static bool is_late(const struct heddle_explain_work *w, uint32_t row)
{
    const struct heddle_log_task *t = &w->v->tasks[row];

    return is_counted(w, row) && w->before[row] == HEDDLE_EXPLAIN_NONE &&
           t->submit_ns != HEDDLE_LOG_NONE && w->avail[w->job[row]] < t->submit_ns;
}

static int64_t time_ready(const struct heddle_explain_work *w, uint32_t row)
{
    return is_counted(w, row) && w->ready[row] < w->v->tasks[row].start_ns ? w->ready[row]
                                                                           : HEDDLE_LOG_NONE;
}

static int64_t time_avail(const struct heddle_explain_work *w, uint32_t row)
{
    return is_late(w, row) ? w->avail[w->job[row]] : HEDDLE_LOG_NONE;
}

static int64_t time_submit(const struct heddle_explain_work *w, uint32_t row)
{
    return is_late(w, row) ? w->v->tasks[row].submit_ns : HEDDLE_LOG_NONE;
}

/* The rows whose time is known, in its order. */
static heddle_status list_rows(const struct heddle_explain_work *w, struct heddle_scratch *mem,
                               time_fn *time, uint32_t **rows_out, size_t *n_out)
{
    struct heddle_scratch tmp = {.a = mem->a};
    struct heddle_pair *p;
    size_t n = 0, m = 0;

    for (uint32_t i = 0; i < w->nran; i++)
        n += time(w, i) != HEDDLE_LOG_NONE;
    *rows_out = heddle_scratch_get(mem, n, sizeof(**rows_out));
    p = heddle_scratch_get(&tmp, 2 * n, sizeof(*p));
    if (*rows_out == NULL || p == NULL) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t i = 0; i < w->nran; i++) {
        const int64_t t = time(w, i);

        if (t != HEDDLE_LOG_NONE)
            p[m++] = (struct heddle_pair){heddle_time_key(t), i};
    }
    heddle_sort_pairs(p, p + n, n);
    for (size_t i = 0; i < n; i++)
        (*rows_out)[i] = (uint32_t)p[i].idx;
    *n_out = n;
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

heddle_status heddle_explain_supply_create(const struct heddle_explain_work *w,
                                           struct heddle_explain_supply *s)
{
    HEDDLE_TRY(list_rows(w, s->mem, time_ready, &s->by_ready, &s->nready));
    HEDDLE_TRY(list_rows(w, s->mem, time_avail, &s->by_avail, &s->navail));
    HEDDLE_TRY(list_rows(w, s->mem, time_submit, &s->by_submit, &s->nsubmit));
    s->step = heddle_scratch_get(s->mem, w->nran + s->nready + s->navail + s->nsubmit + 1,
                                 sizeof(*s->step));
    return s->step == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

struct sweep {
    const struct heddle_explain_work *w;
    uint8_t mask;
    size_t start, ready, avail, submit; /* next of each list */
    uint64_t nleft, nknown, nready, nlate;
};

static bool has_type(const struct sweep *x, uint32_t row)
{
    return (x->w->kernel_mask[x->w->v->tasks[row].kernel] & x->mask) != 0;
}

static void sweep_until(struct sweep *x, const struct heddle_explain_supply *s, int64_t t)
{
    const struct heddle_explain_work *w = x->w;
    const struct heddle_log_task *tasks = w->v->tasks;
    uint32_t row;

    for (; x->avail < s->navail && time_avail(w, row = s->by_avail[x->avail]) <= t; x->avail++)
        x->nlate += has_type(x, row);
    for (; x->submit < s->nsubmit && tasks[row = s->by_submit[x->submit]].submit_ns <= t;
         x->submit++)
        x->nlate -= has_type(x, row);
    for (; x->ready < s->nready && w->ready[row = s->by_ready[x->ready]] <= t; x->ready++)
        x->nready += has_type(x, row);
    for (; x->start < w->nran && tasks[x->start].start_ns <= t; x->start++) {
        row = (uint32_t)x->start;
        if (!is_counted(w, row) || !has_type(x, row))
            continue;
        x->nleft--;
        x->nknown -= w->ready[row] != HEDDLE_LOG_NONE;
        x->nready -= w->ready[row] < tasks[row].start_ns; /* NONE: no */
    }
}

static uint8_t sweep_cause(const struct sweep *x)
{
    if (x->start == 0)
        return HEDDLE_CAUSE_START;
    if (x->nleft == 0)
        return HEDDLE_CAUSE_END;
    if (x->nready > 0)
        return HEDDLE_CAUSE_SCHED;
    if (x->nlate > 0)
        return HEDDLE_CAUSE_SUBMIT;
    return x->nknown > 0 ? HEDDLE_CAUSE_DEPS : HEDDLE_CAUSE_UNKNOWN;
}

/* When something changes next; LOG_NONE: never. */
static int64_t sweep_next(const struct sweep *x, const struct heddle_explain_supply *s)
{
    const struct heddle_explain_work *w = x->w;
    const struct heddle_log_task *tasks = w->v->tasks;
    int64_t t = HEDDLE_LOG_NONE;

    if (x->start < w->nran)
        t = tasks[x->start].start_ns;
    if (x->ready < s->nready)
        t = heddle_explain_min(t, w->ready[s->by_ready[x->ready]]);
    if (x->avail < s->navail)
        t = heddle_explain_min(t, w->avail[w->job[s->by_avail[x->avail]]]);
    if (x->submit < s->nsubmit)
        t = heddle_explain_min(t, tasks[s->by_submit[x->submit]].submit_ns);
    return t;
}

void heddle_explain_supply_run(const struct heddle_explain_work *w, struct heddle_explain_supply *s,
                               unsigned type)
{
    struct sweep x = {.w = w, .mask = (uint8_t)(1u << type)};
    int64_t t = w->first;
    uint8_t cause;

    for (uint32_t i = 0; i < w->nran; i++)
        if (is_counted(w, i) && has_type(&x, i)) {
            x.nleft++;
            x.nknown += w->ready[i] != HEDDLE_LOG_NONE;
        }
    s->n = 0;
    for (; t < w->last; t = sweep_next(&x, s)) { /* LOG_NONE > last */
        sweep_until(&x, s, t);
        cause = sweep_cause(&x);
        if (s->n == 0 || s->step[s->n - 1].cause != cause)
            s->step[s->n++] = (struct heddle_explain_step_at){t, cause};
    }
}
