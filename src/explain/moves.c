/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moves: was a task that was ready waiting for its data, or for room?
 *
 * Data       fetches and prefetches for the task itself, or of one of its
 *            operands to the memory of its lane; and the state "data" there.
 * Room       evictions and write-backs for the task; and the state "memory".
 * Structure  two lists of transfers, by key (a task, or an operand and a
 *            memory), then by time. What overlaps a time is found backwards from
 *            its end. Transfers of one key follow each other, so the search
 *            ends at the first one that was over before; a forged log, where
 *            they do not, only loses some.
 * Cost       sort once; per question a binary search per operand.
 */
#include "base/assert.h"
#include "base/sort.h"
#include "explain/explain.h"

enum { NOPERANDS = 64 }; /* of a task that are looked at */

static uint64_t key_job(uint32_t job)
{
    return (uint64_t)job << 1;
}

static uint64_t key_handle(uint32_t handle, uint32_t node)
{
    return (uint64_t)handle << 9 | (uint64_t)(node & 0xff) << 1 | 1;
}

static bool is_data(const struct heddle_log_event *e)
{
    return e->kind == HEDDLE_LOG_FETCH || e->kind == HEDDLE_LOG_PREFETCH;
}

static bool is_room(const struct heddle_log_event *e)
{
    return e->kind == HEDDLE_LOG_EVICT || e->kind == HEDDLE_LOG_WRITEBACK;
}

static void move_put(struct heddle_explain_moves *m, uint64_t key, const struct heddle_log_event *e)
{
    m->p[m->n++] = (struct heddle_explain_move){
        .key = key,
        .start = e->t_ns,
        .end = heddle_explain_add(e->t_ns, heddle_explain_add(e->y_ns, e->z_ns))};
}

/* Events are in order of time, and the sort is stable. */
static heddle_status moves_sort(struct heddle_scratch *mem, struct heddle_explain_moves *m)
{
    struct heddle_scratch tmp = {.a = mem->a};
    struct heddle_explain_move *sorted;
    struct heddle_pair *p;

    sorted = heddle_scratch_get(mem, m->n, sizeof(*sorted));
    p = heddle_scratch_get(&tmp, 2 * m->n, sizeof(*p));
    if (sorted == NULL || p == NULL) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    for (size_t i = 0; i < m->n; i++)
        p[i] = (struct heddle_pair){m->p[i].key, i};
    heddle_sort_pairs(p, p + m->n, m->n);
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = m->p[p[i].idx];
    m->p = sorted;
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

heddle_status heddle_explain_moves(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;
    size_t ndata = 0, nroom = 0;

    for (size_t i = 0; i < v->nevents; i++) {
        ndata += is_data(&v->events[i]);
        nroom += is_room(&v->events[i]);
    }
    w->data.p = heddle_scratch_get(w->mem, 2 * ndata, sizeof(*w->data.p));
    w->room.p = heddle_scratch_get(w->mem, nroom, sizeof(*w->room.p));
    if (w->data.p == NULL || w->room.p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];
        uint32_t job;

        if (!is_data(e) && !is_room(e))
            continue;
        job = heddle_explain_find(w, e->task);
        if (is_data(e))
            move_put(&w->data, key_handle(e->c, e->b >> 8), e);
        if (job != HEDDLE_EXPLAIN_NONE)
            move_put(is_data(e) ? &w->data : &w->room, key_job(job), e);
    }
    HEDDLE_TRY(moves_sort(w->mem, &w->data));
    return moves_sort(w->mem, &w->room);
}

/* --- questions ---------------------------------------------------------------- */

struct spans {
    struct heddle_explain_span *p;
    size_t n;
    int64_t a, b;
};

/* false: enough of them. */
static bool span_add(struct spans *s, int64_t start, int64_t end)
{
    start = heddle_explain_max(start, s->a);
    end = heddle_explain_min(end, s->b);
    if (s->n == HEDDLE_EXPLAIN_SPANS)
        return false;
    if (start < end)
        s->p[s->n++] = (struct heddle_explain_span){start, end};
    return true;
}

static void spans_find(const struct heddle_explain_moves *m, uint64_t key, struct spans *s)
{
    size_t lo = 0, hi = m->n, mid;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (m->p[mid].key < key || (m->p[mid].key == key && m->p[mid].start < s->b))
            lo = mid + 1;
        else
            hi = mid;
    }
    while (lo-- > 0 && m->p[lo].key == key && m->p[lo].end > s->a &&
           span_add(s, m->p[lo].start, m->p[lo].end))
        ;
}

static void spans_state(const struct heddle_explain_work *w, uint32_t lane,
                        enum heddle_log_state_kind kind, struct spans *s)
{
    const struct heddle_log_state *states = w->v->states;
    size_t lo = w->state_at[lane], hi = w->state_at[lane + 1], mid;
    const size_t from = lo;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (states[w->state[mid]].start_ns < s->b)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t n = 0; n < HEDDLE_EXPLAIN_SPANS && lo > from; n++) {
        const struct heddle_log_state *x = &states[w->state[--lo]];

        if (x->end_ns <= s->a)
            break;
        if (x->state == kind && !span_add(s, x->start_ns, x->end_ns))
            break;
    }
}

/* In order, and what touches becomes one. */
static size_t spans_merge(struct spans *s)
{
    size_t n = 0;

    for (size_t i = 1; i < s->n; i++) {
        const struct heddle_explain_span x = s->p[i];
        size_t k = i;

        for (; k > 0 && s->p[k - 1].start > x.start; k--)
            s->p[k] = s->p[k - 1];
        s->p[k] = x;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (n > 0 && s->p[i].start <= s->p[n - 1].end)
            s->p[n - 1].end = heddle_explain_max(s->p[n - 1].end, s->p[i].end);
        else
            s->p[n++] = s->p[i];
    }
    return n;
}

/* Only what comes after the row was ready counts. */
static struct spans spans_begin(const struct heddle_explain_work *w, uint32_t row, int64_t a,
                                int64_t b, struct heddle_explain_span *out)
{
    struct spans s = {.p = out, .a = a, .b = b};

    if (!w->has_waits && w->data.n + w->room.n == 0)
        s.a = b; /* nothing to find */
    else if (w->ready[row] != HEDDLE_LOG_NONE)
        s.a = heddle_explain_max(a, w->ready[row]);
    return s;
}

size_t heddle_explain_data(const struct heddle_explain_work *w, uint32_t row, int64_t a, int64_t b,
                           struct heddle_explain_span *out)
{
    const struct heddle_log_view *v = w->v;
    const struct heddle_log_task *t = &v->tasks[row];
    struct spans s = spans_begin(w, row, a, b, out);
    size_t first, last;

    if (s.a >= s.b)
        return 0;
    spans_state(w, t->lane, HEDDLE_LOG_DATA, &s);
    if (w->data.n > 0) {
        spans_find(&w->data, key_job(w->job[row]), &s);
        heddle_log_find_accesses(w->log, t->id, &first, &last);
        if (last - first > NOPERANDS)
            last = first + NOPERANDS;
        for (; first < last; first++)
            spans_find(&w->data,
                       key_handle(v->handles[v->accesses[first].handle].id, v->lanes[t->lane].node),
                       &s);
    }
    return spans_merge(&s);
}

size_t heddle_explain_room(const struct heddle_explain_work *w, uint32_t row, int64_t a, int64_t b,
                           struct heddle_explain_span *out)
{
    struct spans s = spans_begin(w, row, a, b, out);

    if (s.a >= s.b)
        return 0;
    spans_state(w, w->v->tasks[row].lane, HEDDLE_LOG_MEMORY, &s);
    if (w->room.n > 0)
        spans_find(&w->room, key_job(w->job[row]), &s);
    return spans_merge(&s);
}
