/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * summary: makespan, utilisation, tables per lane and per kernel.
 *
 * Purpose    the numbers of `heddle trace info` and of every benchmark.
 * Invariants (1) busy + idle + overhead == makespan for every lane
 *            (2) nested tasks are busy once: what counts is the union of the
 *                intervals of a lane
 * Cost       linear in the tasks and states; 32 bytes per task for the medians.
 */
#include "base/assert.h"
#include "trace/log.h"

static bool is_executed(const struct heddle_log_task *t)
{
    return t->status == HEDDLE_LOG_OK || t->status == HEDDLE_LOG_FAILED ||
           t->status == HEDDLE_LOG_DECLINED;
}

/* A forged log can have any durations: sums stop at the largest number. */
static int64_t sat_add(int64_t a, int64_t b)
{
    int64_t r;

    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t min_known(int64_t a, int64_t b)
{
    return a < b ? a : b; /* HEDDLE_LOG_NONE is the largest */
}

static void count_tasks(const struct heddle_log_view *v, struct heddle_log_summary *s)
{
    int64_t first = HEDDLE_LOG_NONE, last = -HEDDLE_LOG_NONE;
    const struct heddle_log_task *t;

    for (size_t i = 0; i < v->ntasks; i++) {
        t = &v->tasks[i];
        s->nexecuted += is_executed(t) && (t->flags & HEDDLE_LOG_GANG) == 0;
        s->nfailed += t->status == HEDDLE_LOG_FAILED;
        s->ncancelled += t->status == HEDDLE_LOG_CANCELLED;
        s->npending += t->status == HEDDLE_LOG_PENDING;
        if (t->lane == HEDDLE_LOG_NO_LANE)
            continue;
        s->lanes[t->lane].ntasks++;
        first = min_known(first, min_known(t->start_ns, t->submit_ns));
        last = t->end_ns > last ? t->end_ns : last;
    }
    if (first != HEDDLE_LOG_NONE && last > first) {
        s->first_ns = first;
        s->last_ns = last;
        s->makespan_ns = last - first;
    }
}

static bool is_idle(unsigned state)
{
    return state == HEDDLE_LOG_IDLE || state == HEDDLE_LOG_SPIN || state == HEDDLE_LOG_SLEEP ||
           state == HEDDLE_LOG_WAKE;
}

/* cover[lane]: up to here the lane's busy time is counted. */
static void add_busy(struct heddle_log_summary *s, int64_t *cover, const struct heddle_log_task *t)
{
    const int64_t from = t->start_ns > cover[t->lane] ? t->start_ns : cover[t->lane];

    if (t->end_ns > from) {
        s->lanes[t->lane].busy_ns += t->end_ns - from;
        cover[t->lane] = t->end_ns;
    }
}

static void add_idle(struct heddle_log_summary *s, const int64_t *cover,
                     const struct heddle_log_state *x)
{
    int64_t from = x->start_ns > s->first_ns ? x->start_ns : s->first_ns;
    const int64_t to = x->end_ns < s->last_ns ? x->end_ns : s->last_ns;

    if (!is_idle(x->state))
        return;
    from = from > cover[x->lane] ? from : cover[x->lane]; /* inside a task */
    if (to > from)
        s->lanes[x->lane].idle_ns += to - from;
}

/* Tasks and states in order of their start. */
static void sum_lanes(const struct heddle_log_view *v, struct heddle_log_summary *s, int64_t *cover)
{
    size_t i = 0, j = 0;

    for (size_t l = 0; l < v->nlanes; l++)
        cover[l] = s->first_ns;
    while (i < v->ntasks || j < v->nstates) {
        const struct heddle_log_task *t = i < v->ntasks ? &v->tasks[i] : NULL;

        if (t != NULL && t->lane == HEDDLE_LOG_NO_LANE) {
            i = v->ntasks; /* those that never ran come last */
        } else if (t != NULL && (j == v->nstates || t->start_ns < v->states[j].start_ns)) {
            add_busy(s, cover, t);
            i++;
        } else if (j < v->nstates) {
            add_idle(s, cover, &v->states[j++]);
        }
    }
}

static void total_lanes(const struct heddle_log_view *v, struct heddle_log_summary *s)
{
    for (size_t l = 0; l < v->nlanes; l++) {
        struct heddle_log_lane_sum *x = &s->lanes[l];
        const uint32_t kind = v->lanes[l].kind;

        x->overhead_ns = s->makespan_ns - x->busy_ns - x->idle_ns;
        HEDDLE_ASSERT(x->overhead_ns >= 0);
        if (kind != HEDDLE_LOG_WORKER && kind != HEDDLE_LOG_DEVICE && x->ntasks == 0)
            continue;
        s->nworkers++;
        s->busy_ns = sat_add(s->busy_ns, x->busy_ns);
        s->idle_ns = sat_add(s->idle_ns, x->idle_ns);
        s->overhead_ns = sat_add(s->overhead_ns, x->overhead_ns);
    }
    if (s->makespan_ns > 0 && s->nworkers > 0)
        s->utilisation = (double)s->busy_ns / ((double)s->nworkers * (double)s->makespan_ns);
    if (s->nexecuted > 0)
        s->overhead_task_ns = (double)s->overhead_ns / (double)s->nexecuted;
}

/* p[0..n) are the executions of one kernel, by duration. */
static void sum_kernel(const struct heddle_log_view *v, struct heddle_log_kernel_sum *k,
                       const struct heddle_pair *p, size_t n)
{
    const struct heddle_log_task *t;
    double error = 0.0, predicted;
    int64_t d;

    k->ntasks = n;
    for (size_t i = 0; i < n; i++) {
        t = &v->tasks[p[i].idx];
        d = t->end_ns - t->start_ns;
        k->total_ns = sat_add(k->total_ns, d);
        if (i == 0)
            k->min_ns = d;
        if (i == (n - 1) / 2)
            k->median_ns = d;
        if (i == n / 2)
            k->median_ns += (d - k->median_ns) / 2;
        k->max_ns = d;
        predicted = (double)t->predicted_ns;
        if (predicted > 0.0 && d > 0) {
            k->npredicted++;
            error +=
                (predicted > (double)d ? predicted - (double)d : (double)d - predicted) / (double)d;
        }
    }
    if (k->npredicted > 0)
        k->model_error = error / (double)k->npredicted;
}

static void sum_kernels(const struct heddle_log_view *v, struct heddle_log_summary *s,
                        struct heddle_pair *p, size_t cap)
{
    const struct heddle_log_task *t;
    size_t n = 0, first = 0;

    for (size_t i = 0; i < v->ntasks; i++) {
        t = &v->tasks[i];
        if (!is_executed(t) || (t->flags & HEDDLE_LOG_GANG) != 0)
            continue;
        p[n].key = (uint64_t)(t->end_ns - t->start_ns);
        p[n++].idx = i;
    }
    heddle_sort_pairs(p, p + cap, n);
    for (size_t i = 0; i < n; i++)
        p[i].key = v->tasks[p[i].idx].kernel;
    heddle_sort_pairs(p, p + cap, n);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && p[i + 1].key == p[i].key)
            continue;
        sum_kernel(v, &s->kernels[p[i].key], p + first, i + 1 - first);
        first = i + 1;
    }
}

void heddle_log_summary_destroy(const heddle_log *log, struct heddle_log_summary *sum)
{
    if (log == NULL || sum == NULL)
        return;
    heddle_free(log->a, sum->lanes, log->v.nlanes * sizeof *sum->lanes);
    heddle_free(log->a, sum->kernels, log->v.nkernels * sizeof *sum->kernels);
    heddle_free(log->a, sum, sizeof *sum);
}

heddle_status heddle_log_summary_create(const heddle_log *log, struct heddle_log_summary **sum_out)
{
    const struct heddle_log_view *v;
    struct heddle_log_summary *s;
    struct heddle_pair *p;
    int64_t *cover;
    heddle_status st = HEDDLE_ENOMEM;

    HEDDLE_CHECK(log != NULL && sum_out != NULL);
    v = &log->v;
    s = heddle_zalloc(log->a, 1, sizeof *s);
    if (s == NULL)
        return HEDDLE_ENOMEM;
    s->size = sizeof *s;
    s->lanes = heddle_zalloc(log->a, v->nlanes, sizeof *s->lanes);
    s->kernels = heddle_zalloc(log->a, v->nkernels, sizeof *s->kernels);
    cover = heddle_zalloc(log->a, v->nlanes, sizeof *cover);
    p = heddle_zalloc(log->a, 2 * v->ntasks, sizeof *p);
    if ((v->nlanes == 0 || (s->lanes != NULL && cover != NULL)) &&
        (v->nkernels == 0 || s->kernels != NULL) && (v->ntasks == 0 || p != NULL)) {
        count_tasks(v, s);
        sum_lanes(v, s, cover);
        total_lanes(v, s);
        if (v->ntasks > 0)
            sum_kernels(v, s, p, v->ntasks);
        st = HEDDLE_OK;
    }
    heddle_free(log->a, cover, v->nlanes * sizeof *cover);
    heddle_free(log->a, p, 2 * v->ntasks * sizeof *p);
    if (st == HEDDLE_OK)
        *sum_out = s;
    else
        heddle_log_summary_destroy(log, s);
    return st;
}
