/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * curve: something that changes over time, as steps.
 *
 * Structure  tasks and transfers become pairs of changes, +value and -value,
 *            sorted by time and summed; samples of memory are steps already;
 *            energy is a difference between neighbours.
 * Invariant  t_ns ascends strictly; neighbours differ in value, but for the
 *            first.
 * Cost       linear in what is counted.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/sort.h"
#include "explain/explain.h"

struct curve {
    struct heddle_explain_curve c; /* first: what the caller sees */
    struct heddle_allocator alloc;
    struct heddle_scratch mem;
    int64_t *t;
    double *value;
};

/* Something counts `value` from start to end. */
struct interval {
    int64_t start, end;
    double value;
};

struct source {
    const struct heddle_explain_work *w;
    enum heddle_explain_curve_kind kind;
    uint32_t which;
};

/* --- steps --------------------------------------------------------------------- */

static heddle_status curve_room(struct curve *c, size_t n)
{
    c->t = heddle_scratch_get(&c->mem, n, sizeof(*c->t));
    c->value = heddle_scratch_get(&c->mem, n, sizeof(*c->value));
    return c->t == NULL || c->value == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

/* Times do not fall; a later value for the same time replaces the earlier. */
static void curve_put(struct curve *c, int64_t t, double value)
{
    const size_t n = c->c.n;

    if (n > 0 && c->t[n - 1] == t) {
        c->value[n - 1] = value;
        if (n > 1 && c->value[n - 2] == value)
            c->c.n--;
        return;
    }
    if (n > 0 && c->value[n - 1] == value)
        return;
    c->t[n] = t;
    c->value[n] = value;
    c->c.n++;
}

/* --- intervals ------------------------------------------------------------------ */

static bool is_transfer(const struct source *s, const struct heddle_log_event *e)
{
    const struct heddle_log_view *v = s->w->v;
    const uint32_t from = s->which & 0xff, to = s->which >> 8;

    return e->kind >= HEDDLE_LOG_FETCH && e->kind <= HEDDLE_LOG_EVICT && e->z_ns > 0 &&
           from < v->nnodes && to < v->nnodes && v->nodes[from].id == (e->b & 0xffu) &&
           v->nodes[to].id == e->b >> 8;
}

/* Number i of the source; false: it does not count. */
static bool source_get(const struct source *s, size_t i, struct interval *out)
{
    const struct heddle_explain_work *w = s->w;

    out->value = 1.0;
    if (s->kind == HEDDLE_CURVE_LINK) {
        const struct heddle_log_event *e = &w->v->events[i];

        if (!is_transfer(s, e))
            return false;
        out->start = heddle_explain_add(e->t_ns, e->y_ns);
        out->end = heddle_explain_add(out->start, e->z_ns);
        out->value = (double)e->x * 1e9 / (double)e->z_ns;
    } else {
        const struct heddle_log_task *t = &w->v->tasks[i];

        if (heddle_explain_is_helper(t))
            return false;
        out->start = t->start_ns;
        out->end = t->end_ns;
        if (s->kind == HEDDLE_CURVE_READY) {
            out->start = w->ready[i];
            out->end = t->start_ns;
        } else if (s->kind == HEDDLE_CURVE_SUBMITTED) {
            if (w->before[i] != HEDDLE_EXPLAIN_NONE)
                return false; /* counted with the execution before */
            out->start = t->submit_ns;
            out->end = w->end[w->job[i]];
        }
    }
    return out->start < out->end && out->end != HEDDLE_LOG_NONE;
}

static size_t source_count(const struct source *s)
{
    return s->kind == HEDDLE_CURVE_LINK ? s->w->v->nevents : s->w->nran;
}

/* p[] are changes in order of time: index 2i the start, 2i + 1 the end of
 * number i. */
static void curve_sum(struct curve *c, const struct source *s, const struct heddle_pair *p,
                      size_t n)
{
    double sum = 0.0;
    size_t nopen = 0;

    for (size_t i = 0; i < n; i++) {
        struct interval x;

        if (!source_get(s, p[i].idx / 2, &x))
            continue;
        if (p[i].idx % 2 == 0) {
            sum += x.value;
            nopen++;
        } else {
            sum -= x.value;
            nopen--;
        }
        if (nopen == 0)
            sum = 0.0; /* no rounding is left */
        curve_put(c, (int64_t)(p[i].key ^ (UINT64_C(1) << 63)), sum);
    }
}

static heddle_status curve_intervals(struct curve *c, const struct source *s,
                                     struct heddle_scratch *tmp)
{
    const size_t n = source_count(s);
    struct heddle_pair *p;
    struct interval x;
    size_t m = 0;

    for (size_t i = 0; i < n; i++)
        m += source_get(s, i, &x) ? 2 : 0;
    p = heddle_scratch_get(tmp, 2 * m, sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    m = 0;
    for (size_t i = 0; i < n; i++)
        if (source_get(s, i, &x)) {
            p[m++] = (struct heddle_pair){heddle_time_key(x.start), 2 * i};
            p[m++] = (struct heddle_pair){heddle_time_key(x.end), 2 * i + 1};
        }
    heddle_sort_pairs(p, p + m, m);
    HEDDLE_TRY(curve_room(c, m));
    curve_sum(c, s, p, m);
    return HEDDLE_OK;
}

/* --- samples -------------------------------------------------------------------- */

static bool is_sample(const struct source *s, const struct heddle_log_event *e)
{
    const struct heddle_log_view *v = s->w->v;

    if (s->kind == HEDDLE_CURVE_POWER)
        return e->kind == HEDDLE_LOG_POWER && e->b == s->which;
    return (e->kind == HEDDLE_LOG_MEM_ALLOC || e->kind == HEDDLE_LOG_MEM_FREE) &&
           s->which < v->nnodes && v->nodes[s->which].id == e->b;
}

static heddle_status curve_samples(struct curve *c, const struct source *s)
{
    const struct heddle_log_view *v = s->w->v;
    const struct heddle_log_event *prev = NULL, *same = NULL;
    size_t n = 0;

    for (size_t i = 0; i < v->nevents; i++)
        n += is_sample(s, &v->events[i]);
    HEDDLE_TRY(curve_room(c, n));
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (!is_sample(s, e))
            continue;
        if (s->kind == HEDDLE_CURVE_MEMORY) {
            curve_put(c, e->t_ns, (double)e->x);
            continue;
        }
        /* A counter that is read more often than it is updated says nothing
         * until it has moved. */
        same = prev != NULL && e->x == prev->x && (e->c & HEDDLE_LOG_POWER_GAP) == 0 ? e : NULL;
        if (same != NULL)
            continue;
        /* Microjoules since the start; one per nanosecond is a kilowatt. */
        if (prev != NULL && e->t_ns > prev->t_ns && e->x >= prev->x &&
            (e->c & HEDDLE_LOG_POWER_GAP) == 0)
            curve_put(c, prev->t_ns,
                      (double)(e->x - prev->x) * 1e3 / (double)(e->t_ns - prev->t_ns));
        if (prev == NULL || e->t_ns > prev->t_ns)
            prev = e;
    }
    if (same != NULL && c->c.n == 0) /* it never did */
        curve_put(c, prev->t_ns, 0);
    return HEDDLE_OK;
}

static heddle_status curve_fill(struct curve *c, const heddle_log *log,
                                enum heddle_explain_curve_kind kind, uint32_t which,
                                struct heddle_scratch *tmp)
{
    struct heddle_explain_work w;
    const struct source s = {.w = &w, .kind = kind, .which = which};

    HEDDLE_TRY(heddle_explain_begin(&w, log, tmp));
    if (kind == HEDDLE_CURVE_MEMORY || kind == HEDDLE_CURVE_POWER)
        HEDDLE_TRY(curve_samples(c, &s));
    else
        HEDDLE_TRY(curve_intervals(c, &s, tmp));
    for (size_t i = 0; i < c->c.n; i++)
        if (c->value[i] > c->c.max)
            c->c.max = c->value[i];
    c->c.t_ns = c->t;
    c->c.value = c->value;
    return HEDDLE_OK;
}

heddle_status heddle_explain_curve_create(const heddle_log *log,
                                          enum heddle_explain_curve_kind kind, uint32_t which,
                                          const struct heddle_allocator *a,
                                          struct heddle_explain_curve **out)
{
    struct heddle_scratch tmp = {.a = a};
    struct curve *c;
    heddle_status st;

    HEDDLE_CHECK(log != NULL && out != NULL && (unsigned)kind < HEDDLE_NCURVES);
    c = heddle_zalloc(a, 1, sizeof(*c));
    if (c == NULL)
        return HEDDLE_ENOMEM;
    if (a != NULL) {
        c->alloc = *a;
        c->mem.a = &c->alloc;
    }
    st = curve_fill(c, log, kind, which, &tmp);
    heddle_scratch_drop(&tmp);
    if (st == HEDDLE_OK)
        *out = &c->c;
    else
        heddle_explain_curve_destroy(&c->c);
    return st;
}

void heddle_explain_curve_destroy(struct heddle_explain_curve *x)
{
    struct curve *c = (struct curve *)(void *)x;
    struct heddle_allocator alloc;
    bool is_default;

    if (c == NULL)
        return;
    heddle_scratch_drop(&c->mem);
    alloc = c->alloc;
    is_default = c->mem.a == NULL;
    heddle_free(is_default ? NULL : &alloc, c, sizeof(*c));
}
