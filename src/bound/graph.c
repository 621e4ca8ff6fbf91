/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph: from the caller's arrays to a checked graph in topological order.
 *
 * Structure  types without workers are dropped; rows of times that are equal on
 *            the remaining types become one kind; tasks keep their order when
 *            every edge goes up, which is the case for submission order and
 *            keeps neighbours in memory together; else first in, first out.
 * Cost       O(tasks * types + edges), one hash table of kinds.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "base/text.h"
#include "bound/bound.h"

struct heddle_bound_block {
    struct heddle_bound_block *next;
    size_t bytes;
};

/* Room for the header that keeps what follows aligned for any type. */
#define HEAD_BYTES 64

void *heddle_bound_get(struct heddle_bound_mem *m, size_t n, size_t bytes)
{
    struct heddle_bound_block *b;
    size_t all;

    if (!heddle_mul(&all, n, bytes) || !heddle_add(&all, all, HEAD_BYTES))
        return NULL;
    b = heddle_zalloc(m->alloc, 1, all);
    if (b == NULL)
        return NULL;
    b->bytes = all;
    b->next = m->head;
    m->head = b;
    return (char *)b + HEAD_BYTES;
}

void heddle_bound_drop(struct heddle_bound_mem *m)
{
    while (m->head != NULL) {
        struct heddle_bound_block *b = m->head;

        m->head = b->next;
        heddle_free(m->alloc, b, b->bytes);
    }
}

heddle_status heddle_bound_fail(const struct heddle_bound_limits *limits, heddle_status st,
                                const char *fmt, ...)
{
    struct heddle_text t;
    va_list ap;

    if (limits == NULL || limits->why == NULL || limits->why_bytes == 0)
        return st;
    heddle_text_init(&t, limits->why, limits->why_bytes);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return st;
}

#define BAD(...) heddle_bound_fail(limits, HEDDLE_EINVAL, __VA_ARGS__)

static uint32_t row_of(const struct heddle_bound_graph *g, uint32_t t)
{
    return g->kind != NULL ? g->kind[t] : t;
}

static heddle_status check_shape(const struct heddle_bound_graph *g,
                                 const struct heddle_bound_limits *limits)
{
    if (g->ntypes > HEDDLE_BOUND_TYPES_MAX)
        return BAD("there are %u types of workers; at most %d are possible", g->ntypes,
                   HEDDLE_BOUND_TYPES_MAX);
    if (g->ntasks == UINT32_MAX || g->nedges == UINT32_MAX)
        return BAD("the graph has too many tasks or edges");
    if (g->nedges > 0 && (g->edge_from == NULL || g->edge_to == NULL))
        return BAD("there are %u edges, but edge_from or edge_to is NULL", g->nedges);
    if (g->ntypes > 0 && g->nworkers == NULL)
        return BAD("nworkers is NULL");
    if (g->ntasks > 0 && g->ntypes > 0 && g->time == NULL)
        return BAD("time is NULL");
    for (uint32_t e = 0; e < g->nedges; e++) {
        if (g->edge_from[e] >= g->ntasks || g->edge_to[e] >= g->ntasks)
            return BAD("edge %u goes from task %u to task %u of %u", e, g->edge_from[e],
                       g->edge_to[e], g->ntasks);
    }
    for (uint32_t t = 0; g->kind != NULL && t < g->ntasks; t++) {
        if (g->kind[t] >= g->nkinds)
            return BAD("task %u is of kind %u of %u", t, g->kind[t], g->nkinds);
    }
    return HEDDLE_OK;
}

/* Every time is a number >= 0, and each task can run somewhere. */
static heddle_status check_times(const struct heddle_bound_graph *g,
                                 const struct heddle_bound_limits *limits)
{
    double total = 0.0;

    for (uint32_t t = 0; t < g->ntasks; t++) {
        const double *p = g->time + (size_t)row_of(g, t) * g->ntypes;
        double most = -1.0;

        for (uint32_t r = 0; r < g->ntypes; r++) {
            if (!(p[r] >= 0.0))
                return BAD("the time of task %u on type %u is negative or not "
                           "a number",
                           t, r);
            if (g->nworkers[r] > 0 && p[r] < INFINITY && p[r] > most)
                most = p[r];
        }
        if (most < 0.0)
            return BAD("task %u can run on no type that has workers", t);
        total += most;
    }
    /* Half the range: sums of two bounds stay finite. */
    if (!(total < 0.5 * HUGE_VAL) || total > 1e307)
        return BAD("the sum of the times overflows");
    return HEDDLE_OK;
}

static heddle_status take_types(const struct heddle_bound_graph *g, struct heddle_bound_mem *m,
                                struct heddle_bound_dag *d)
{
    d->type = heddle_bound_get(m, g->ntypes, sizeof(*d->type));
    d->nworkers = heddle_bound_get(m, g->ntypes, sizeof(*d->nworkers));
    if (d->type == NULL || d->nworkers == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t r = 0; r < g->ntypes; r++) {
        if (g->nworkers[r] > 0) {
            d->type[d->r] = r;
            d->nworkers[d->r++] = (double)g->nworkers[r];
        }
    }
    return HEDDLE_OK;
}

/* The row of a task, cut to the types that are left; +0 and -0 are the same. */
static uint64_t cut_row(const struct heddle_bound_dag *d, const double *p, double *row)
{
    uint64_t h = 0x9e37;

    for (uint32_t r = 0; r < d->r; r++) {
        uint64_t bits;

        row[r] = p[d->type[r]] + 0.0;
        memcpy(&bits, &row[r], sizeof(bits));
        h = heddle_mix64(h ^ bits);
    }
    return h;
}

/* Kinds of the caller that are used, or of single tasks, by content. */
struct kinds {
    uint32_t *table; /* hash -> kind + 1 */
    size_t mask;
    uint32_t *of_row; /* the caller's kind -> kind + 1 */
};

static uint32_t find_kind(struct heddle_bound_dag *d, struct kinds *ks, const double *p)
{
    double row[HEDDLE_BOUND_TYPES_MAX];
    const size_t bytes = d->r * sizeof(row[0]);
    size_t i = (size_t)cut_row(d, p, row) & ks->mask;

    for (; ks->table[i] != 0; i = (i + 1) & ks->mask) {
        const uint32_t k = ks->table[i] - 1;

        if (memcmp(d->time + (size_t)k * d->r, row, bytes) == 0)
            return k;
    }
    memcpy(d->time + (size_t)d->k * d->r, row, bytes);
    d->fast[d->k] = INFINITY;
    for (uint32_t r = 0; r < d->r; r++)
        d->fast[d->k] = fmin(d->fast[d->k], row[r]);
    ks->table[i] = ++d->k;
    return d->k - 1;
}

/* d->kind by the caller's task index. */
static heddle_status take_kinds(const struct heddle_bound_graph *g, struct heddle_bound_mem *m,
                                struct heddle_bound_dag *d, uint32_t *kind)
{
    const size_t most = g->kind != NULL && g->nkinds < g->ntasks ? g->nkinds : g->ntasks;
    struct kinds ks = {.mask = 15};

    while (ks.mask < 2 * most)
        ks.mask = 2 * ks.mask + 1;
    ks.table = heddle_bound_get(m, ks.mask + 1, sizeof(*ks.table));
    ks.of_row = heddle_bound_get(m, g->kind != NULL ? g->nkinds : 0, sizeof(*ks.of_row));
    d->time = heddle_bound_get(m, most, d->r * sizeof(*d->time));
    d->fast = heddle_bound_get(m, most, sizeof(*d->fast));
    d->count = heddle_bound_get(m, most, sizeof(*d->count));
    if (ks.table == NULL || ks.of_row == NULL || d->time == NULL || d->fast == NULL ||
        d->count == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < g->ntasks; t++) {
        const uint32_t row = row_of(g, t);

        if (g->kind == NULL || ks.of_row[row] == 0) {
            kind[t] = find_kind(d, &ks, g->time + (size_t)row * g->ntypes);
            if (g->kind != NULL)
                ks.of_row[row] = kind[t] + 1;
        } else {
            kind[t] = ks.of_row[row] - 1;
        }
        d->count[kind[t]] += 1.0;
    }
    return HEDDLE_OK;
}

static bool goes_up(const struct heddle_bound_graph *g)
{
    for (uint32_t e = 0; e < g->nedges; e++)
        if (g->edge_from[e] >= g->edge_to[e])
            return false;
    return true;
}

/* Kahn: a task is placed when its last predecessor was. */
static heddle_status sort_tasks(const struct heddle_bound_graph *g, struct heddle_bound_mem *m,
                                uint32_t *order)
{
    uint32_t *end = heddle_bound_get(m, (size_t)g->ntasks + 1, sizeof(*end));
    uint32_t *succ = heddle_bound_get(m, g->nedges, sizeof(*succ));
    uint32_t *wait = heddle_bound_get(m, g->ntasks, sizeof(*wait));
    uint32_t n = 0;

    if (end == NULL || succ == NULL || wait == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t e = 0; e < g->nedges; e++) {
        end[g->edge_from[e] + 1]++;
        wait[g->edge_to[e]]++;
    }
    for (uint32_t t = 0; t < g->ntasks; t++)
        end[t + 1] += end[t];
    /* Filled from the back, end[t] ends up where the edges of t begin. */
    for (uint32_t e = g->nedges; e-- > 0;)
        succ[--end[g->edge_from[e] + 1]] = g->edge_to[e];
    for (uint32_t t = 0; t < g->ntasks; t++)
        if (wait[t] == 0)
            order[n++] = t;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = order[i];
        const uint32_t to = t + 2 <= g->ntasks ? end[t + 2] : g->nedges;

        for (uint32_t j = end[t + 1]; j < to; j++)
            if (--wait[succ[j]] == 0)
                order[n++] = succ[j];
    }
    return n == g->ntasks ? HEDDLE_OK : HEDDLE_ECYCLE;
}

static heddle_status order_tasks(const struct heddle_bound_graph *g, struct heddle_bound_mem *m,
                                 uint32_t *order)
{
    if (!goes_up(g))
        return sort_tasks(g, m, order);
    for (uint32_t t = 0; t < g->ntasks; t++)
        order[t] = t;
    return HEDDLE_OK;
}

static heddle_status take_edges(const struct heddle_bound_graph *g, struct heddle_bound_mem *m,
                                struct heddle_bound_dag *d, const uint32_t *place)
{
    d->e = g->nedges;
    d->pred_end = heddle_bound_get(m, (size_t)d->n + 2, sizeof(*d->pred_end));
    d->pred = heddle_bound_get(m, d->e, sizeof(*d->pred));
    d->pred_edge = heddle_bound_get(m, d->e, sizeof(*d->pred_edge));
    if (d->pred_end == NULL || d->pred == NULL || d->pred_edge == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t e = 0; e < d->e; e++)
        d->pred_end[place[g->edge_to[e]] + 2]++;
    for (uint32_t v = 0; v < d->n; v++)
        d->pred_end[v + 2] += d->pred_end[v + 1];
    for (uint32_t e = 0; e < d->e; e++) {
        const uint32_t i = d->pred_end[place[g->edge_to[e]] + 1]++;

        d->pred[i] = place[g->edge_from[e]];
        d->pred_edge[i] = e;
    }
    return HEDDLE_OK;
}

static heddle_status place_tasks(const struct heddle_bound_graph *g, struct heddle_bound_mem *tmp,
                                 struct heddle_bound_mem *m, struct heddle_bound_dag *d)
{
    uint32_t *kind = heddle_bound_get(tmp, g->ntasks, sizeof(*kind));
    uint32_t *place = heddle_bound_get(tmp, g->ntasks, sizeof(*place));

    d->n = g->ntasks;
    d->kind = heddle_bound_get(m, d->n, sizeof(*d->kind));
    d->task = heddle_bound_get(m, d->n, sizeof(*d->task));
    if (kind == NULL || place == NULL || d->kind == NULL || d->task == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(take_kinds(g, m, d, kind));
    HEDDLE_TRY(order_tasks(g, tmp, d->task));
    for (uint32_t v = 0; v < d->n; v++) {
        place[d->task[v]] = v;
        d->kind[v] = kind[d->task[v]];
    }
    return take_edges(g, m, d, place);
}

heddle_status heddle_bound_build(const struct heddle_bound_graph *g,
                                 const struct heddle_bound_limits *limits,
                                 struct heddle_bound_mem *m, struct heddle_bound_dag *d_out)
{
    struct heddle_bound_mem tmp = {.alloc = m->alloc};
    heddle_status st;

    memset(d_out, 0, sizeof(*d_out));
    HEDDLE_TRY(check_shape(g, limits));
    HEDDLE_TRY(check_times(g, limits));
    HEDDLE_TRY(take_types(g, m, d_out));
    st = place_tasks(g, &tmp, m, d_out);
    heddle_bound_drop(&tmp);
    if (st == HEDDLE_ECYCLE)
        return heddle_bound_fail(limits, st, "the edges form a cycle");
    return st;
}

/* Places of the tasks that stay. */
static void keep_tasks(const struct heddle_bound_dag *d, const double *head, const double *tail,
                       const double hq[2], struct heddle_bound_dag *s, uint32_t *place)
{
    for (uint32_t v = 0; v < d->n; v++) {
        place[v] = HEDDLE_BOUND_NONE;
        if (head[v] >= hq[0] && tail[v] >= hq[1]) {
            place[v] = s->n;
            s->kind[s->n] = d->kind[v];
            s->task[s->n++] = d->task[v];
            s->count[d->kind[v]] += 1.0;
        }
    }
}

static void keep_edges(const struct heddle_bound_dag *d, struct heddle_bound_dag *s,
                       const uint32_t *place)
{
    for (uint32_t v = 0; v < d->n; v++) {
        if (place[v] == HEDDLE_BOUND_NONE)
            continue;
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            if (place[d->pred[i]] == HEDDLE_BOUND_NONE)
                continue;
            s->pred[s->e] = place[d->pred[i]];
            s->pred_edge[s->e++] = d->pred_edge[i];
        }
        s->pred_end[place[v] + 1] = s->e;
    }
}

heddle_status heddle_bound_restrict(const struct heddle_bound_dag *d, const double *head,
                                    const double *tail, const double hq[2],
                                    struct heddle_bound_mem *m, struct heddle_bound_dag *sub_out)
{
    uint32_t *place = heddle_bound_get(m, d->n, sizeof(*place));
    struct heddle_bound_dag s = *d;

    s.n = s.e = 0;
    s.kind = heddle_bound_get(m, d->n, sizeof(*s.kind));
    s.task = heddle_bound_get(m, d->n, sizeof(*s.task));
    s.count = heddle_bound_get(m, d->k, sizeof(*s.count));
    s.pred_end = heddle_bound_get(m, (size_t)d->n + 1, sizeof(*s.pred_end));
    s.pred = heddle_bound_get(m, d->e, sizeof(*s.pred));
    s.pred_edge = heddle_bound_get(m, d->e, sizeof(*s.pred_edge));
    if (place == NULL || s.kind == NULL || s.task == NULL || s.count == NULL ||
        s.pred_end == NULL || s.pred == NULL || s.pred_edge == NULL)
        return HEDDLE_ENOMEM;
    keep_tasks(d, head, tail, hq, &s, place);
    keep_edges(d, &s, place);
    *sub_out = s;
    return HEDDLE_OK;
}
