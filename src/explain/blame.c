/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blame: why each task waited, and the chain of causes behind the last one.
 *
 * Wait       from ready to start, in parts: the worker was busy with others
 *            (queue); else the data were on their way; else room was being
 *            made; the rest. The largest part is the cause.
 * Chain      from the row that ends last, backwards. At a row: it ran; before
 *            that it waited; before that it was not ready, because a predecessor
 *            ran, where the chain goes on, or because it was not submitted. A
 *            task is submitted by its parent, where the chain goes on, or by the
 *            main program. From a row that repeats another row the chain goes on
 *            there; where the log does not say why a row came so late, the chain
 *            goes on with what its worker did before.
 * Invariants (1) `cur` never grows and every piece is [a, cur) with a >= first,
 *                so the pieces are [first, last)
 *            (2) no row is visited twice, so the walk ends
 * Cost       a binary search or two per row.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "explain/explain.h"

struct waited {
    int64_t queue, data, room, rest;
};

/* Lengths of the spans outside of the lane's busy time. */
static int64_t idle_length(const struct heddle_explain_work *w, uint32_t lane,
                           const struct heddle_explain_span *s, size_t n)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += s[i].end - s[i].start - heddle_explain_busy_in(w, lane, s[i].start, s[i].end);
    return sum;
}

/* Of room[], what is not in data[]; both in order. Spans may be cut in two. */
static size_t spans_minus(struct heddle_explain_span *room, size_t nroom,
                          const struct heddle_explain_span *data, size_t ndata,
                          struct heddle_explain_span *out)
{
    size_t n = 0, j = 0;

    for (size_t i = 0; i < nroom; i++) {
        int64_t a = room[i].start;

        while (j < ndata && data[j].end <= a)
            j++;
        for (size_t k = j; k < ndata && data[k].start < room[i].end; k++) {
            if (data[k].start > a)
                out[n++] = (struct heddle_explain_span){a, data[k].start};
            a = data[k].end;
        }
        if (a < room[i].end)
            out[n++] = (struct heddle_explain_span){a, room[i].end};
    }
    return n;
}

/* What row waited for in [a, b), which ends at or before its start. */
static struct waited wait_split(const struct heddle_explain_work *w, uint32_t row, int64_t a,
                                int64_t b)
{
    const uint32_t lane = w->v->tasks[row].lane;
    struct heddle_explain_span data[HEDDLE_EXPLAIN_SPANS], room[HEDDLE_EXPLAIN_SPANS],
        rest[2 * HEDDLE_EXPLAIN_SPANS];
    struct waited x = {0};
    size_t n, m;

    if (a >= b)
        return x;
    x.queue = heddle_explain_busy_in(w, lane, a, b);
    x.rest = b - a - x.queue;
    if (x.rest == 0)
        return x;
    n = heddle_explain_data(w, row, a, b, data);
    m = heddle_explain_room(w, row, a, b, room);
    x.data = idle_length(w, lane, data, n);
    x.room = idle_length(w, lane, rest, spans_minus(room, m, data, n, rest));
    x.rest -= x.data + x.room;
    return x;
}

static uint8_t wait_cause(const struct heddle_explain_work *w, uint32_t row)
{
    struct waited x;
    int64_t most;

    if (w->ready[row] == HEDDLE_LOG_NONE)
        return HEDDLE_CAUSE_UNKNOWN;
    x = wait_split(w, row, w->ready[row], w->v->tasks[row].start_ns);
    most =
        heddle_explain_max(heddle_explain_max(x.queue, x.data), heddle_explain_max(x.room, x.rest));
    if (most == x.rest)
        return HEDDLE_CAUSE_OVERHEAD;
    if (most == x.data)
        return HEDDLE_CAUSE_DATA;
    return most == x.room ? HEDDLE_CAUSE_MEMORY : HEDDLE_CAUSE_SCHED;
}

/* --- the chain ------------------------------------------------------------------- */

struct chain {
    const struct heddle_explain_work *w;
    struct heddle_explain *x;
    const struct heddle_allocator *alloc;
    struct heddle_explain_step *step; /* last one first */
    size_t n, cap;
    int64_t cur;
    uint8_t *is_visited;
    uint32_t *on_lane; /* [nran] the row before it on its lane, or NONE */
    heddle_status st;
};

static bool chain_grow(struct chain *c)
{
    const size_t cap = c->cap == 0 ? 64 : 2 * c->cap;
    struct heddle_explain_step *p = heddle_alloc(c->alloc, cap * sizeof(*p));

    if (p == NULL) {
        c->st = HEDDLE_ENOMEM;
        return false;
    }
    for (size_t i = 0; i < c->n; i++)
        p[i] = c->step[i];
    heddle_free(c->alloc, c->step, c->cap * sizeof(*p));
    c->step = p;
    c->cap = cap;
    return true;
}

/* Invariant (1). */
static void chain_add(struct chain *c, size_t task, unsigned blame, int64_t a)
{
    a = heddle_explain_max(a, c->w->first);
    if (a >= c->cur || c->st != HEDDLE_OK)
        return;
    c->x->blame_ns[blame] += c->cur - a;
    if (c->n > 0 && c->step[c->n - 1].task == task && c->step[c->n - 1].blame == blame) {
        c->step[c->n - 1].start_ns = a;
    } else if (c->n < c->cap || chain_grow(c)) {
        c->step[c->n++] = (struct heddle_explain_step){
            .start_ns = a, .end_ns = c->cur, .task = task, .blame = (uint8_t)blame};
    }
    c->cur = a;
}

/* From `from` to now it waited: pieces put together by cause. */
static void chain_wait(struct chain *c, uint32_t row, int64_t from)
{
    const int64_t a = heddle_explain_max(from, c->w->first);
    struct waited x;

    if (a >= c->cur)
        return;
    x = wait_split(c->w, row, a, c->cur);
    chain_add(c, row, HEDDLE_BLAME_OVERHEAD, c->cur - x.rest);
    chain_add(c, row, HEDDLE_BLAME_TRANSFER, c->cur - x.data - x.room);
    chain_add(c, row, HEDDLE_BLAME_QUEUE, a);
}

/* From `from` to now it was not submitted. A program that runs tasks itself
 * meanwhile is behind these. */
static void chain_submit(struct chain *c, uint32_t row, int64_t from)
{
    const struct heddle_explain_work *w = c->w;
    const int64_t a = heddle_explain_max(from, w->first);
    int64_t busy = 0;

    if (a >= c->cur)
        return;
    if (w->program_lane != HEDDLE_EXPLAIN_NONE)
        busy = heddle_explain_busy_in(w, w->program_lane, a, c->cur);
    chain_add(c, row, HEDDLE_BLAME_SUBMIT, a + busy);
    chain_add(c, row, HEDDLE_BLAME_QUEUE, a);
}

/* The predecessor that ends last, or NONE. */
static uint32_t chain_pred(const struct heddle_explain_work *w, uint32_t job)
{
    uint32_t best = HEDDLE_EXPLAIN_NONE;

    for (uint32_t i = w->pred_at[job]; i < w->pred_at[job + 1]; i++) {
        const uint32_t p = w->pred[i];

        if (p == HEDDLE_EXPLAIN_NONE || p == job || w->last_row[p] == HEDDLE_EXPLAIN_NONE)
            continue;
        if (best == HEDDLE_EXPLAIN_NONE || w->end[p] > w->end[best])
            best = p;
    }
    return best;
}

static heddle_status chain_lanes(struct chain *c)
{
    const struct heddle_explain_work *w = c->w;
    const size_t nlanes = w->v->nlanes;
    uint32_t *last;

    c->on_lane = heddle_scratch_get(w->mem, w->nran, sizeof(*c->on_lane));
    last = heddle_scratch_get(w->mem, nlanes, sizeof(*last));
    if (c->on_lane == NULL || last == NULL)
        return HEDDLE_ENOMEM;
    for (size_t l = 0; l < nlanes; l++)
        last[l] = HEDDLE_EXPLAIN_NONE;
    for (uint32_t i = 0; i < w->nran; i++) {
        c->on_lane[i] = last[w->v->tasks[i].lane];
        last[w->v->tasks[i].lane] = i;
    }
    return HEDDLE_OK;
}

/* Puts what comes before the row's start; the row to go on with, or NONE. */
static uint32_t chain_back(struct chain *c, uint32_t row)
{
    const struct heddle_explain_work *w = c->w;
    const struct heddle_log_task *t = &w->v->tasks[row];
    const uint32_t job = w->job[row], parent = w->parent[job];
    uint32_t pred;

    if (w->ready[row] != HEDDLE_LOG_NONE)
        chain_wait(c, row, w->ready[row]);
    if (w->before[row] != HEDDLE_EXPLAIN_NONE)
        return w->before[row];
    pred = chain_pred(w, job);
    if (t->submit_ns != HEDDLE_LOG_NONE &&
        (pred == HEDDLE_EXPLAIN_NONE || t->submit_ns > w->end[pred])) {
        chain_add(c, row, HEDDLE_BLAME_OVERHEAD, t->submit_ns);
        if (parent != HEDDLE_EXPLAIN_NONE && w->head[parent] < w->nran)
            return w->head[parent];
        chain_submit(c, row, pred == HEDDLE_EXPLAIN_NONE ? w->first : w->end[pred]);
    }
    if (pred != HEDDLE_EXPLAIN_NONE)
        return w->last_row[pred];
    return c->cur > w->first ? c->on_lane[row] : HEDDLE_EXPLAIN_NONE;
}

static void chain_walk(struct chain *c)
{
    const struct heddle_explain_work *w = c->w;
    uint32_t row = 0, next;

    for (uint32_t i = 1; i < w->nran; i++)
        if (w->v->tasks[i].end_ns > w->v->tasks[row].end_ns)
            row = i;
    c->cur = w->last;
    while (row != HEDDLE_EXPLAIN_NONE && c->is_visited[row] == 0) {
        c->is_visited[row] = 1; /* invariant (2) */
        chain_add(c, row, HEDDLE_BLAME_EXEC, w->v->tasks[row].start_ns);
        next = chain_back(c, row);
        if (next != HEDDLE_EXPLAIN_NONE) /* noticing that it has ended */
            chain_add(c, row, HEDDLE_BLAME_OVERHEAD, w->v->tasks[next].end_ns);
        row = next;
    }
    chain_add(c, SIZE_MAX, HEDDLE_BLAME_OVERHEAD, w->first);
}

static heddle_status chain_keep(struct chain *c, struct heddle_scratch *out)
{
    struct heddle_explain_step *p = heddle_scratch_get(out, c->n, sizeof(*p));

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < c->n; i++)
        p[i] = c->step[c->n - 1 - i];
    c->x->steps = p;
    c->x->nsteps = c->n;
    return HEDDLE_OK;
}

heddle_status heddle_explain_blame(struct heddle_explain_work *w, struct heddle_explain *x,
                                   struct heddle_scratch *out)
{
    struct chain c = {.w = w, .x = x, .alloc = w->mem->a};
    uint8_t *wait = heddle_scratch_get(out, w->nrows, 1);

    c.is_visited = heddle_scratch_get(w->mem, w->nran, 1);
    if (wait == NULL || c.is_visited == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < w->nrows; i++)
        wait[i] = i < w->nran ? wait_cause(w, i) : HEDDLE_CAUSE_UNKNOWN;
    x->wait = wait;
    HEDDLE_TRY(chain_lanes(&c));
    if (w->last > w->first)
        chain_walk(&c);
    if (c.st == HEDDLE_OK)
        c.st = chain_keep(&c, out);
    heddle_free(c.alloc, c.step, c.cap * sizeof(*c.step));
    return c.st;
}
