/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index: from rows to jobs, with predecessors and the times that follow.
 *
 * Purpose    the log has executions; causes are between tasks.
 * Edges      those of the log, and those that operands imply (implied.c).
 * Terms      A row *repeats* another when it is a later execution of the same
 *            task, helpers of a gang aside. A job has *ended* when it and the
 *            tasks that it submitted have. It was *available* when all its
 *            predecessors had ended and the task that submits it had begun; it
 *            was *ready* when it was available and submitted.
 * Invariants (1) id[] ascends
 *            (2) first <= ready[row] <= start of the row, or LOG_NONE
 *            (3) first <= avail[job]
 * Cost       linear but for ids that are far from dense: then a binary search
 *            per dependency.
 */
#include "base/assert.h"
#include "base/sort.h"
#include "explain/explain.h"

uint32_t heddle_explain_find(const struct heddle_explain_work *w, uint64_t id)
{
    uint32_t lo = 0, hi = w->njobs, mid;

    if (w->njobs == 0 || id < w->id[0])
        return HEDDLE_EXPLAIN_NONE;
    /* Ids are usually dense. */
    if (id - w->id[0] < w->njobs && w->id[id - w->id[0]] == id)
        return (uint32_t)(id - w->id[0]);
    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (w->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < w->njobs && w->id[lo] == id ? lo : HEDDLE_EXPLAIN_NONE;
}

/* Logs of version 1.0 have one id for all passes of a recorded graph. */
static bool is_pass(const struct heddle_log_task *t, const struct heddle_log_task *before)
{
    return (t->flags & HEDDLE_LOG_REPLAYED) != 0 && before->status == HEDDLE_LOG_OK;
}

/* The rows of job j are p[0 .. n), in order of time. */
static void job_fill(struct heddle_explain_work *w, uint32_t j, const struct heddle_pair *p,
                     size_t n)
{
    uint32_t prev = HEDDLE_EXPLAIN_NONE;

    w->id[j] = p[0].key;
    w->head[j] = (uint32_t)p[0].idx;
    w->last_row[j] = HEDDLE_EXPLAIN_NONE;
    w->end[j] = HEDDLE_LOG_NONE;
    for (size_t i = 0; i < n; i++) {
        const uint32_t row = (uint32_t)p[i].idx;
        const struct heddle_log_task *t = &w->v->tasks[row];

        w->job[row] = j;
        w->before[row] = HEDDLE_EXPLAIN_NONE;
        if (row < w->nran && (w->last_row[j] == HEDDLE_EXPLAIN_NONE || t->end_ns > w->end[j])) {
            w->end[j] = t->end_ns;
            w->last_row[j] = row;
        }
        if (heddle_explain_is_helper(t))
            continue;
        if (prev == HEDDLE_EXPLAIN_NONE)
            w->head[j] = row;
        if (prev == HEDDLE_EXPLAIN_NONE || !is_pass(t, &w->v->tasks[prev]))
            w->before[row] = prev;
        prev = row;
    }
    w->main[j] = prev != HEDDLE_EXPLAIN_NONE ? prev : w->head[j];
}

static heddle_status jobs_alloc(struct heddle_explain_work *w)
{
    struct heddle_scratch *m = w->mem;
    const size_t n = w->njobs;

    w->id = heddle_scratch_get(m, n, sizeof(*w->id));
    w->job = heddle_scratch_get(m, w->nrows, sizeof(*w->job));
    w->head = heddle_scratch_get(m, n, sizeof(*w->head));
    w->main = heddle_scratch_get(m, n, sizeof(*w->main));
    w->parent = heddle_scratch_get(m, n, sizeof(*w->parent));
    w->before = heddle_scratch_get(m, w->nrows, sizeof(*w->before));
    w->end = heddle_scratch_get(m, n, sizeof(*w->end));
    w->last_row = heddle_scratch_get(m, n, sizeof(*w->last_row));
    w->avail = heddle_scratch_get(m, n, sizeof(*w->avail));
    w->ready = heddle_scratch_get(m, w->nrows, sizeof(*w->ready));
    w->pred_at = heddle_scratch_get(m, n + 1, sizeof(*w->pred_at));
    return w->id == NULL || w->job == NULL || w->head == NULL || w->main == NULL ||
                   w->parent == NULL || w->before == NULL || w->end == NULL ||
                   w->last_row == NULL || w->avail == NULL || w->ready == NULL || w->pred_at == NULL
               ? HEDDLE_ENOMEM
               : HEDDLE_OK;
}

static heddle_status jobs_build(struct heddle_explain_work *w)
{
    struct heddle_scratch tmp = {.a = w->mem->a};
    struct heddle_pair *p = heddle_scratch_get(&tmp, 2 * (size_t)w->nrows, sizeof(*p));
    uint32_t j = 0;
    size_t from = 0;
    heddle_status st;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < w->nrows; i++)
        p[i] = (struct heddle_pair){w->v->tasks[i].id, i};
    heddle_sort_pairs(p, p + w->nrows, w->nrows);
    for (uint32_t i = 0; i < w->nrows; i++)
        w->njobs += i == 0 || p[i].key != p[i - 1].key;
    st = jobs_alloc(w);
    for (size_t i = 1; st == HEDDLE_OK && i <= w->nrows; i++)
        if (i == w->nrows || p[i].key != p[from].key) {
            job_fill(w, j++, p + from, i - from);
            from = i;
        }
    heddle_scratch_drop(&tmp);
    return st;
}

/* A parent has ended when its children have. Children have larger ids. */
static void jobs_nest(struct heddle_explain_work *w)
{
    for (uint32_t j = w->njobs; j-- > 0;) {
        const uint64_t id = w->v->tasks[w->head[j]].parent;
        const uint32_t p = id == 0 ? HEDDLE_EXPLAIN_NONE : heddle_explain_find(w, id);

        w->parent[j] = p < j ? p : HEDDLE_EXPLAIN_NONE;
        if (p < j && w->last_row[j] != HEDDLE_EXPLAIN_NONE &&
            w->last_row[p] != HEDDLE_EXPLAIN_NONE && w->end[j] > w->end[p]) {
            w->end[p] = w->end[j];
            w->last_row[p] = w->last_row[j];
        }
    }
}

/* deps[] is sorted by successor, as jobs are. */
static void jobs_link(struct heddle_explain_work *w, struct heddle_explain_implied *m)
{
    const struct heddle_log_view *v = w->v;
    uint32_t n = 0;
    size_t d = 0;

    for (uint32_t j = 0; j < w->njobs; j++) {
        while (d < v->ndeps && v->deps[d].succ < w->id[j])
            d++; /* of a task that the log does not have */
        w->pred_at[j] = n;
        for (; d < v->ndeps && v->deps[d].succ == w->id[j]; d++)
            w->pred[n++] = heddle_explain_find(w, v->deps[d].pred);
        if (m != NULL)
            n += heddle_explain_implied_of(w, m, j, w->pred + n);
    }
    w->pred_at[w->njobs] = n;
}

static heddle_status jobs_order(struct heddle_explain_work *w)
{
    struct heddle_scratch tmp = {.a = w->mem->a};
    const size_t nimplied = heddle_explain_implied_max(w->v);
    struct heddle_explain_implied *m = NULL;
    heddle_status st = HEDDLE_OK;

    if (w->v->ndeps > UINT32_MAX / 2)
        return HEDDLE_EOVERFLOW;
    if (nimplied > 0)
        st = heddle_explain_implied_create(w, &tmp, &m);
    w->pred = heddle_scratch_get(w->mem, w->v->ndeps + nimplied, sizeof(*w->pred));
    if (w->pred == NULL)
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        jobs_link(w, m);
    heddle_scratch_drop(&tmp);
    return st;
}

static int64_t job_avail(const struct heddle_explain_work *w, uint32_t j)
{
    int64_t t = w->first;

    if (w->parent[j] != HEDDLE_EXPLAIN_NONE && w->head[w->parent[j]] < w->nran)
        t = heddle_explain_max(t, w->v->tasks[w->head[w->parent[j]]].start_ns);
    for (uint32_t i = w->pred_at[j]; i < w->pred_at[j + 1]; i++) {
        const uint32_t p = w->pred[i];

        if (p != HEDDLE_EXPLAIN_NONE && p != j && w->last_row[p] != HEDDLE_EXPLAIN_NONE)
            t = heddle_explain_max(t, w->end[p]);
    }
    return t;
}

static int64_t row_ready(const struct heddle_explain_work *w, uint32_t row)
{
    const struct heddle_log_task *t = &w->v->tasks[row];
    int64_t r;

    if (row >= w->nran)
        return HEDDLE_LOG_NONE;
    if (w->before[row] != HEDDLE_EXPLAIN_NONE) {
        r = w->v->tasks[w->before[row]].end_ns;
    } else {
        /* A record of READY can be early: a task that is launched ahead, behind
         * what it waits for, is written down as ready then. */
        r = t->ready_ns != HEDDLE_LOG_NONE ? t->ready_ns : t->submit_ns;
        if (r == HEDDLE_LOG_NONE)
            return r;
        r = heddle_explain_max(r, w->avail[w->job[row]]);
        if (t->submit_ns != HEDDLE_LOG_NONE)
            r = heddle_explain_max(r, t->submit_ns);
    }
    return heddle_explain_min(heddle_explain_max(r, w->first), t->start_ns);
}

heddle_status heddle_explain_index(struct heddle_explain_work *w)
{
    HEDDLE_TRY(jobs_build(w));
    jobs_nest(w);
    HEDDLE_TRY(jobs_order(w));
    for (uint32_t j = 0; j < w->njobs; j++)
        w->avail[j] = job_avail(w, j);
    for (uint32_t i = 0; i < w->nrows; i++)
        w->ready[i] = row_ready(w, i);
    return HEDDLE_OK;
}
