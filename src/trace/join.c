/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join: sorts the rows of a log and puts what belongs to a task into its row.
 *
 * Purpose    a reader wants one row per task with all its times; the log has
 *            an execution in one lane, a submission in another, and the moment
 *            it became ready in a third.
 * Structure  everything is sorted by radix (base/sort.h), stable, so rows of one
 *            lane keep their order. Joins walk two sorted lists.
 * Invariants (1) tasks: by start, longer first; those that never ran are last
 *            (2) a state ends where the next state of its lane begins, or at
 *                the next start or end of a task there, and not before it began
 * Cost       linear in the rows; peak memory about twice the tasks.
 */
#include <string.h>

#include "base/assert.h"
#include "trace/log.h"

#define PREDICTED_MAX (UINT64_C(1) << 62) /* ns: a longer one is no number */

typedef uint64_t key_fn(const void *row);

static uint64_t key_task_id(const void *row)
{
    return ((const struct heddle_log_task *)row)->id;
}

static uint64_t key_task_start(const void *row)
{
    return heddle_time_key(((const struct heddle_log_task *)row)->start_ns);
}

/* Descending: the longer of two that start together is the outer one. */
static uint64_t key_task_end(const void *row)
{
    return ~heddle_time_key(((const struct heddle_log_task *)row)->end_ns);
}

static uint64_t key_end(const void *row)
{
    return heddle_time_key(((const struct heddle_log_task *)row)->end_ns);
}

static uint64_t key_sub(const void *row)
{
    return ((const struct heddle_log_sub *)row)->id;
}

static uint64_t key_ready(const void *row)
{
    return ((const struct heddle_log_ready *)row)->id;
}

static uint64_t key_dep(const void *row)
{
    return ((const struct heddle_log_dep *)row)->succ;
}

static uint64_t key_access(const void *row)
{
    return ((const struct heddle_log_access *)row)->task;
}

static uint64_t key_attr(const void *row)
{
    return ((const struct heddle_log_attr *)row)->task;
}

static uint64_t key_state(const void *row)
{
    return heddle_time_key(((const struct heddle_log_state *)row)->start_ns);
}

static uint64_t key_mark(const void *row)
{
    return heddle_time_key(((const struct heddle_log_mark *)row)->t_ns);
}

static uint64_t key_event(const void *row)
{
    return heddle_time_key(((const struct heddle_log_event *)row)->t_ns);
}

static bool rows_are_sorted(const uint8_t *rows, size_t n, size_t bytes, key_fn *key)
{
    for (size_t i = 1; i < n; i++)
        if (key(rows + (i - 1) * bytes) > key(rows + i * bytes))
            return false;
    return true;
}

/* Orders p[] by key of the row each index stands for. */
static void pairs_sort(struct heddle_pair *p, struct heddle_pair *tmp, size_t n, const void *rows,
                       size_t bytes, key_fn *key)
{
    for (size_t i = 0; i < n; i++)
        p[i].key = key((const uint8_t *)rows + p[i].idx * bytes);
    heddle_sort_pairs(p, tmp, n);
}

/* *out is 2n pairs: the first n are the rows in order of `second`, then
 * `first` (may be NULL), the others are scratch. */
static heddle_status order_rows(const heddle_log *log, const void *rows, size_t n, size_t bytes,
                                key_fn *first, key_fn *second, struct heddle_pair **out)
{
    struct heddle_pair *p;
    size_t total;

    if (!heddle_mul(&total, 2 * n, sizeof *p))
        return HEDDLE_ENOMEM;
    p = heddle_alloc_large(log->a, total);
    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        p[i].idx = i;
    if (first != NULL)
        pairs_sort(p, p + n, n, rows, bytes, first);
    pairs_sort(p, p + n, n, rows, bytes, second);
    *out = p;
    return HEDDLE_OK;
}

static void order_free(const heddle_log *log, struct heddle_pair *p, size_t n)
{
    heddle_free(log->a, p, 2 * n * sizeof *p);
}

/* Sorts rows[n] by `second`, then `first`; replaces *rows. */
static heddle_status sort_rows(const heddle_log *log, void *rows, size_t n, size_t bytes,
                               key_fn *first, key_fn *second)
{
    uint8_t *old, *sorted;
    struct heddle_pair *p;

    memcpy(&old, rows, sizeof old); /* the address of a pointer to any type */
    if (n < 2 || (first == NULL && rows_are_sorted(old, n, bytes, second)))
        return HEDDLE_OK;
    HEDDLE_TRY(order_rows(log, old, n, bytes, first, second, &p));
    sorted = heddle_alloc_large(log->a, n * bytes);
    if (sorted != NULL) {
        for (size_t i = 0; i < n; i++)
            memcpy(sorted + i * bytes, old + p[i].idx * bytes, bytes);
        heddle_free(log->a, old, n * bytes);
        memcpy(rows, &sorted, sizeof sorted);
    }
    order_free(log, p, n);
    return sorted == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static heddle_status sort_simple(struct heddle_log_build *b)
{
    const heddle_log *log = b->log;
    struct heddle_log_arrays *r = &b->log->arr;

    HEDDLE_TRY(sort_rows(log, &r->deps, r->ndeps, sizeof *r->deps, NULL, key_dep));
    HEDDLE_TRY(sort_rows(log, &r->accesses, r->naccesses, sizeof *r->accesses, NULL, key_access));
    HEDDLE_TRY(sort_rows(log, &r->attrs, r->nattrs, sizeof *r->attrs, NULL, key_attr));
    HEDDLE_TRY(sort_rows(log, &r->states, r->nstates, sizeof *r->states, NULL, key_state));
    HEDDLE_TRY(sort_rows(log, &r->marks, r->nmarks, sizeof *r->marks, NULL, key_mark));
    return sort_rows(log, &r->events, r->nevents, sizeof *r->events, NULL, key_event);
}

/* What is joined with the tasks, by their ids. */
static heddle_status sort_joined(struct heddle_log_build *b)
{
    HEDDLE_TRY(sort_rows(b->log, &b->sub, b->n[HEDDLE_REC_SUBMIT], sizeof *b->sub, NULL, key_sub));
    return sort_rows(b->log, &b->ready, b->n[HEDDLE_REC_READY], sizeof *b->ready, NULL, key_ready);
}

/* ---- ids that lie close together ---- */

/* Nearly every log: ids are counted, so tables indexed by them take the place of
 * sorting. first[k] is where the rows of id min + k begin in by_id. */
struct ids {
    uint64_t min;
    size_t n; /* 0: they are far apart */
    uint32_t *first;
};

static void ids_range(struct ids *x, const struct heddle_log_task *rows, size_t n)
{
    uint64_t max = 0;

    x->min = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        x->min = rows[i].id < x->min ? rows[i].id : x->min;
        max = rows[i].id > max ? rows[i].id : max;
    }
    x->n = n > 0 && max - x->min < 2 * (uint64_t)n + 1024 ? (size_t)(max - x->min) + 1 : 0;
}

/* Has every submission an execution? Then *yes and x are set; otherwise, and
 * when ids are far apart, the sorted way is taken. */
static heddle_status ids_check(const struct heddle_log_build *b, struct ids *x, bool *yes)
{
    const size_t nexec = b->n[HEDDLE_REC_TASK];
    uint8_t *seen;

    *yes = false;
    ids_range(x, b->exec, nexec);
    if (x->n == 0)
        return HEDDLE_OK;
    seen = heddle_zalloc(b->log->a, x->n, 1);
    if (seen == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < nexec; i++)
        seen[b->exec[i].id - x->min] = 1;
    *yes = true;
    for (size_t i = 0; i < b->n[HEDDLE_REC_SUBMIT] && *yes; i++) {
        const uint64_t k = b->sub[i].id - x->min;

        *yes = k < x->n && seen[k] != 0;
    }
    heddle_free(b->log->a, seen, x->n);
    return HEDDLE_OK;
}

/* by_id and first, by counting; stable, so by time within an id. */
static heddle_status ids_index(heddle_log *log, struct ids *x)
{
    struct heddle_log_arrays *r = &log->arr;
    uint32_t *first = heddle_zalloc(log->a, x->n + 2, sizeof *first);

    if (first == NULL)
        return HEDDLE_ENOMEM;
    /* Two places ahead: after filling, first[k + 1] has moved on to the end of
     * k, which is where k + 1 begins. */
    for (size_t i = 0; i < r->ntasks; i++)
        first[r->tasks[i].id - x->min + 2]++;
    for (size_t k = 2; k < x->n + 2; k++)
        first[k] += first[k - 1];
    for (size_t i = 0; i < r->ntasks; i++)
        r->by_id[first[r->tasks[i].id - x->min + 1]++] = (uint32_t)i;
    x->first = first;
    return HEDDLE_OK;
}

/* ---- joining ---- */

/* Submissions whose id no execution has: counts them, and appends rows when
 * `out` is not NULL. `by` is the executions by id. */
static size_t pending_walk(const struct heddle_log_build *b, const struct heddle_pair *by,
                           struct heddle_log_task *out)
{
    const size_t nsub = b->n[HEDDLE_REC_SUBMIT], n = b->n[HEDDLE_REC_TASK];
    size_t j = 0, k = 0;

    for (size_t i = 0; i < nsub; i++) {
        const struct heddle_log_sub *s = &b->sub[i];

        while (j < n && by[j].key < s->id)
            j++;
        if ((j < n && by[j].key == s->id) || (i > 0 && b->sub[i - 1].id == s->id))
            continue;
        if (out != NULL)
            out[k] = (struct heddle_log_task){
                .id = s->id,
                .submit_ns = s->t_ns,
                .ready_ns = HEDDLE_LOG_NONE,
                .start_ns = HEDDLE_LOG_NONE,
                .end_ns = HEDDLE_LOG_NONE,
                .kernel = s->kernel,
                .lane = HEDDLE_LOG_NO_LANE,
                .status = HEDDLE_LOG_PENDING,
            };
        k++;
    }
    return k;
}

enum { FEW = 32 };

/* Pairs with one start, few of them: the longer first. false: too many. */
static bool order_ties(struct heddle_pair *p, size_t n, const struct heddle_log_task *exec)
{
    struct heddle_pair x;
    size_t from = 0, k;

    for (size_t i = 1; i < n; i++) {
        if (p[i].key != p[from].key)
            from = i;
        if (i - from > FEW)
            return false;
        x = p[i];
        for (k = i; k > from && exec[p[k - 1].idx].end_ns < exec[x.idx].end_ns; k--)
            p[k] = p[k - 1];
        p[k] = x;
    }
    return true;
}

/* Executions by start, longer first. Ties are rare, so the second key is not
 * worth a sort of its own, unless they are not rare. */
static heddle_status order_exec(const struct heddle_log_build *b, size_t n,
                                struct heddle_pair **out)
{
    const heddle_log *log = b->log;

    HEDDLE_TRY(order_rows(log, b->exec, n, sizeof *b->exec, NULL, key_task_start, out));
    if (order_ties(*out, n, b->exec))
        return HEDDLE_OK;
    order_free(log, *out, n);
    return order_rows(log, b->exec, n, sizeof *b->exec, key_task_end, key_task_start, out);
}

/* Brings rows[i] to the place of rows[p[i].idx], for all i, along the cycles of
 * that permutation: a log of ten million tasks has no room for a second copy. */
static void exec_permute(struct heddle_log_task *rows, struct heddle_pair *p, size_t n)
{
    struct heddle_log_task first;
    size_t to, from;

    for (size_t i = 0; i < n; i++) {
        if (p[i].idx == i)
            continue;
        first = rows[i];
        for (to = i; (from = (size_t)p[to].idx) != i; to = from) {
            rows[to] = rows[from];
            p[to].idx = to;
        }
        rows[to] = first;
        p[to].idx = to;
    }
}

/* The executions become the first of arr.tasks, in order. */
static heddle_status exec_move(struct heddle_log_build *b)
{
    heddle_log *log = b->log;
    struct heddle_log_arrays *r = &log->arr;
    const size_t n = b->n[HEDDLE_REC_TASK];
    struct heddle_pair *p;

    if (n == 0)
        return HEDDLE_OK;
    HEDDLE_TRY(order_exec(b, n, &p));
    exec_permute(b->exec, p, n);
    order_free(log, p, n);
    if (r->tasks != NULL) {
        memcpy(r->tasks, b->exec, n * sizeof *r->tasks);
        return HEDDLE_OK;
    }
    HEDDLE_ASSERT(n == b->cap[HEDDLE_REC_TASK]);
    r->tasks = b->exec;
    r->ntasks = n;
    b->exec = NULL;
    return HEDDLE_OK;
}

/* Executions and pending submissions become arr.tasks, sorted by time: what
 * never ran has no start, which is later than any. */
static heddle_status tasks_build(struct heddle_log_build *b)
{
    heddle_log *log = b->log;
    struct heddle_log_arrays *r = &log->arr;
    const size_t nexec = b->n[HEDDLE_REC_TASK];
    struct heddle_pair *by = NULL;
    size_t n;

    if (nexec > 0 && b->n[HEDDLE_REC_SUBMIT] > 0)
        HEDDLE_TRY(order_rows(log, b->exec, nexec, sizeof *b->exec, NULL, key_task_id, &by));
    n = nexec + pending_walk(b, by, NULL);
    if (n > nexec && n < UINT32_MAX)
        r->tasks = heddle_alloc_large(log->a, n * sizeof *r->tasks);
    if (r->tasks != NULL) {
        r->ntasks = n;
        (void)pending_walk(b, by, r->tasks + nexec);
    }
    order_free(log, by, nexec);
    if (n > nexec && r->tasks == NULL)
        return n < UINT32_MAX ? HEDDLE_ENOMEM : HEDDLE_EOVERFLOW;
    return exec_move(b);
}

static void apply_sub(const heddle_log *log, struct heddle_log_task *t, const void *row)
{
    const struct heddle_log_sub *s = row;

    (void)log;
    t->submit_ns = s->t_ns;
    t->parent = s->parent;
    t->priority = s->prio;
    t->predicted_ns = s->predicted_ns;
}

/* A task that waited for nothing has no record of it. */
static void apply_at_once(const heddle_log *log, struct heddle_log_task *t, const void *row)
{
    const struct heddle_log_sub *s = row;

    if (t->ready_ns == HEDDLE_LOG_NONE && t->lane != HEDDLE_LOG_NO_LANE && log->end_lost == 0 &&
        log->end_overwritten == 0 && log->v.ndamaged == 0) /* else the record may have been lost */
        t->ready_ns = s->t_ns;
}

static void apply_ready(const heddle_log *log, struct heddle_log_task *t, const void *row)
{
    (void)log;
    t->ready_ns = ((const struct heddle_log_ready *)row)->t_ns;
}

static void apply_attr(const heddle_log *log, struct heddle_log_task *t, const void *row)
{
    const struct heddle_log_attr *x = row;
    uint64_t i;

    if (x->key == HEDDLE_LOG_ATTR_NAME && heddle_map_get(&log->strings.map, x->value, &i))
        t->name = ((const char *const *)(const void *)log->strings.items)[i];
    if (x->key == HEDDLE_LOG_ATTR_PREDICTED && x->value < PREDICTED_MAX)
        t->predicted_ns = (float)x->value;
}

typedef void apply_fn(const heddle_log *log, struct heddle_log_task *t, const void *row);

/* Applies each row to all tasks with its id. Without ids the rows are sorted. */
static void join_rows(const heddle_log *log, const struct ids *x, const void *rows, size_t n,
                      size_t bytes, key_fn *key, apply_fn *apply)
{
    const struct heddle_log_arrays *r = &log->arr;
    size_t j = 0;

    for (size_t i = 0; i < n; i++) {
        const void *row = (const uint8_t *)rows + i * bytes;
        const uint64_t id = key(row);

        if (x->first != NULL) {
            if (id - x->min >= x->n)
                continue;
            j = x->first[id - x->min];
        }
        while (j < r->ntasks && r->tasks[r->by_id[j]].id < id)
            j++;
        for (size_t k = j; k < r->ntasks && r->tasks[r->by_id[k]].id == id; k++)
            apply(log, &r->tasks[r->by_id[k]], row);
    }
}

static heddle_status by_id_sort(heddle_log *log)
{
    struct heddle_log_arrays *r = &log->arr;
    struct heddle_pair *by;

    HEDDLE_TRY(order_rows(log, r->tasks, r->ntasks, sizeof *r->tasks, NULL, key_task_id, &by));
    for (size_t i = 0; i < r->ntasks; i++)
        r->by_id[i] = (uint32_t)by[i].idx;
    order_free(log, by, r->ntasks);
    return HEDDLE_OK;
}

static heddle_status tasks_join(struct heddle_log_build *b, struct ids *x)
{
    heddle_log *log = b->log;
    struct heddle_log_arrays *r = &log->arr;

    if (r->ntasks == 0)
        return HEDDLE_OK;
    r->by_id = heddle_alloc_large(log->a, r->ntasks * sizeof *r->by_id);
    if (r->by_id == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(x->n > 0 ? ids_index(log, x) : by_id_sort(log));
    join_rows(log, x, b->sub, b->n[HEDDLE_REC_SUBMIT], sizeof *b->sub, key_sub, apply_sub);
    join_rows(log, x, b->ready, b->n[HEDDLE_REC_READY], sizeof *b->ready, key_ready, apply_ready);
    join_rows(log, x, b->sub, b->n[HEDDLE_REC_SUBMIT], sizeof *b->sub, key_sub, apply_at_once);
    join_rows(log, x, r->attrs, r->nattrs, sizeof *r->attrs, key_attr, apply_attr);
    heddle_free(log->a, x->first, (x->n + 2) * sizeof *x->first);
    return HEDDLE_OK;
}

/* ---- states ---- */

/* Ends the state that is open in a lane, if there is one. */
static void state_close(struct heddle_log_arrays *r, uint32_t *open, uint32_t lane, int64_t t)
{
    struct heddle_log_state *s;

    if (open[lane] == 0)
        return;
    s = &r->states[open[lane] - 1];
    s->end_ns = t > s->start_ns ? t : s->start_ns;
    open[lane] = 0;
}

/* One walk over ends, states and starts in time order; at one moment a task
 * ends first, then a state begins, then a task starts. */
static void states_walk(struct heddle_log_arrays *r, const struct heddle_pair *ends, size_t nrun,
                        uint32_t *open, size_t nlanes)
{
    size_t e = 0, s = 0, b = 0;
    int64_t t = 0, te, ts, tb;

    while (e < nrun || s < r->nstates || b < nrun) {
        te = e < nrun ? r->tasks[ends[e].idx].end_ns : HEDDLE_LOG_NONE;
        ts = s < r->nstates ? r->states[s].start_ns : HEDDLE_LOG_NONE;
        tb = b < nrun ? r->tasks[b].start_ns : HEDDLE_LOG_NONE;
        if (te <= ts && te <= tb) {
            t = te;
            state_close(r, open, r->tasks[ends[e++].idx].lane, t);
        } else if (ts <= tb) {
            t = ts;
            state_close(r, open, r->states[s].lane, t);
            open[r->states[s].lane] = (uint32_t)s + 1;
            s++;
        } else {
            t = tb;
            state_close(r, open, r->tasks[b++].lane, t);
        }
    }
    for (uint32_t l = 0; l < nlanes; l++)
        state_close(r, open, l, t);
}

static heddle_status states_join(heddle_log *log)
{
    struct heddle_log_arrays *r = &log->arr;
    struct heddle_pair *ends = NULL;
    size_t nrun = r->ntasks;
    uint32_t *open;

    if (r->nstates == 0)
        return HEDDLE_OK;
    while (nrun > 0 && r->tasks[nrun - 1].lane == HEDDLE_LOG_NO_LANE)
        nrun--;
    open = heddle_zalloc(log->a, log->lanes.n, sizeof *open);
    if (open == NULL)
        return HEDDLE_ENOMEM;
    if (nrun == 0 ||
        order_rows(log, r->tasks, nrun, sizeof *r->tasks, NULL, key_end, &ends) == HEDDLE_OK)
        states_walk(r, ends, nrun, open, log->lanes.n);
    order_free(log, ends, nrun);
    heddle_free(log->a, open, log->lanes.n * sizeof *open);
    return nrun > 0 && ends == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

heddle_status heddle_log_join(struct heddle_log_build *b)
{
    struct ids ids = {0};
    bool is_plain;

    HEDDLE_TRY(sort_simple(b));
    HEDDLE_TRY(ids_check(b, &ids, &is_plain));
    if (is_plain) {
        HEDDLE_TRY(exec_move(b));
    } else {
        ids.n = 0;
        HEDDLE_TRY(sort_joined(b));
        HEDDLE_TRY(tasks_build(b));
    }
    HEDDLE_TRY(tasks_join(b, &ids));
    return states_join(b->log);
}
