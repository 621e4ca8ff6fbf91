/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edges: what had to wait for what.
 *
 * Recorded   deps[]: what a task really waited for, or was told to.
 * Data       a dependency that was satisfied when the task was submitted is not
 *            recorded, but counts. On each handle the accesses of the tasks of
 *            one parent form groups in order of submission: a writer alone, or
 *            readers, or commuting ones, or reductions. All of a group come
 *            after all of the group before. Views that overlap are taken as
 *            independent, which can only weaken a bound.
 * Children   begin after what their parent waited for, as it was running; what
 *            waited for the parent begins after them. Nothing is known of the
 *            order of a parent and its own children.
 * The run    is a schedule: a task that began before a predecessor ended, as
 *            clocks of devices may say, is taken to have begun then; if it even
 *            ended before, the edge goes.
 */
#include <string.h>

#include "base/mode.h"
#include "log_graph/log_graph.h"

static heddle_status edge_room(struct maker *m)
{
    const size_t cap = 2 * m->cap + 1024;
    uint32_t *from, *to;

    if (m->nedges < m->cap)
        return HEDDLE_OK;
    if (m->nedges >= UINT32_MAX - 1)
        return HEDDLE_LG_FAIL(&m->o, HEDDLE_EOVERFLOW, "the log has too many dependencies");
    from = heddle_scratch_get(m->scratch, cap, sizeof(*from));
    to = heddle_scratch_get(m->scratch, cap, sizeof(*to));
    if (from == NULL || to == NULL)
        return HEDDLE_ENOMEM;
    if (m->nedges > 0) {
        memcpy(from, m->from, m->nedges * sizeof(*from));
        memcpy(to, m->to, m->nedges * sizeof(*to));
    }
    m->from = from;
    m->to = to;
    m->cap = cap;
    return HEDDLE_OK;
}

/* --- on handles ----------------------------------------------------------- */

/* Tasks of a group as a list through links; 0 ends it. */
struct link {
    uint32_t task, next;
};

struct past {
    uint32_t domain;    /* 1 + the first of its tasks; others are over */
    uint32_t mode;      /* of the current group */
    uint32_t cur, prev; /* lists */
    uint32_t ncur, nprev;
};

struct edger {
    struct maker *m;
    struct past *past; /* [handles] */
    struct link *link; /* [accesses + 1] */
    uint32_t nlinks;
    uint32_t *seen; /* [tasks] 1 + the last successor it got an edge to */
};

static heddle_status add_edge(struct edger *e, uint32_t from, uint32_t to)
{
    struct maker *m = e->m;

    if (from == to || e->seen[from] == to + 1)
        return HEDDLE_OK;
    e->seen[from] = to + 1;
    HEDDLE_TRY(edge_room(m));
    m->from[m->nedges] = from;
    m->to[m->nedges++] = to;
    return HEDDLE_OK;
}

static heddle_status add_access(struct edger *e, uint32_t domain, uint32_t task,
                                const struct heddle_log_access *a)
{
    struct past *p = &e->past[a->handle];
    const enum heddle_mode mode = heddle_mode_of(a->mode);
    /* What is in order with its like. Children commute as writers do. */
    const bool is_shared =
        !heddle_mode_is_in_turn(mode) || e->m->v->tasks[e->m->log_index[task]].parent == 0;
    bool joins;
    uint32_t left;

    if (!heddle_mode_is_ordered(mode))
        return HEDDLE_OK;
    if (p->domain != domain)
        *p = (struct past){.domain = domain};
    joins = p->cur != 0 && is_shared && heddle_mode_is_alike(p->mode, mode);
    if (!joins) {
        p->prev = p->cur;
        p->nprev = p->ncur;
        p->cur = p->ncur = 0;
        p->mode = (uint8_t)mode;
    }
    left = joins && p->nprev > EDGE_FEW ? EDGE_FEW : UINT32_MAX;
    for (uint32_t l = p->prev; l != 0 && left > 0; l = e->link[l].next, left--)
        HEDDLE_TRY(add_edge(e, e->link[l].task, task));
    e->link[++e->nlinks] = (struct link){task, p->cur};
    p->cur = e->nlinks;
    p->ncur++;
    return HEDDLE_OK;
}

static heddle_status task_edges(struct edger *e, uint32_t domain, uint32_t task)
{
    struct maker *m = e->m;
    size_t first, last;

    heddle_log_find_accesses(m->log, m->id[task], &first, &last);
    for (size_t k = first; k < last; k++)
        HEDDLE_TRY(add_access(e, domain, task, &m->v->accesses[k]));
    heddle_log_find_deps(m->log, m->id[task], &first, &last);
    for (size_t k = first; k < last; k++) {
        const uint64_t *at = heddle_map_find(&m->task_of, m->v->deps[k].pred);

        if (at != NULL && *at != 0)
            HEDDLE_TRY(add_edge(e, (uint32_t)(*at - 1), task));
    }
    return HEDDLE_OK;
}

/* --- children ------------------------------------------------------------- */

/* Edges of each task, as lists of 1 + edge. */
struct lists {
    uint32_t *in, *out;           /* [tasks] */
    uint32_t *next_in, *next_out; /* [cap] */
    size_t cap;
};

static heddle_status lists_grow(struct maker *m, struct lists *l, size_t from)
{
    if (m->cap > l->cap) {
        uint32_t *in = heddle_scratch_get(m->scratch, m->cap, sizeof(*in));
        uint32_t *out = heddle_scratch_get(m->scratch, m->cap, sizeof(*out));

        if (in == NULL || out == NULL)
            return HEDDLE_ENOMEM;
        if (from > 0) {
            memcpy(in, l->next_in, from * sizeof(*in));
            memcpy(out, l->next_out, from * sizeof(*out));
        }
        l->next_in = in;
        l->next_out = out;
        l->cap = m->cap;
    }
    for (size_t i = from; i < m->nedges; i++) {
        l->next_in[i] = l->in[m->to[i]];
        l->in[m->to[i]] = (uint32_t)i + 1;
        l->next_out[i] = l->out[m->from[i]];
        l->out[m->from[i]] = (uint32_t)i + 1;
    }
    return HEDDLE_OK;
}

/* Is there an edge of this list to or from a task of the same parent? */
static bool has_sibling(const struct maker *m, const uint32_t *next, const uint32_t *of, uint32_t l,
                        uint64_t parent)
{
    for (; l != 0; l = next[l - 1])
        if (m->v->tasks[m->log_index[of[l - 1]]].parent == parent)
            return true;
    return false;
}

static heddle_status child_edges(struct maker *m, struct lists *l, uint32_t parent, uint32_t child)
{
    const uint64_t id = m->id[parent];
    const size_t from = m->nedges;
    const bool is_first = !has_sibling(m, l->next_in, m->from, l->in[child], id);
    const bool is_last = !has_sibling(m, l->next_out, m->to, l->out[child], id);
    uint32_t left = EDGE_FEW;

    for (uint32_t e = l->in[parent]; is_first && e != 0 && left > 0;
         e = l->next_in[e - 1], left--) {
        const uint32_t pred = m->from[e - 1];

        HEDDLE_TRY(edge_room(m));
        m->from[m->nedges] = pred;
        m->to[m->nedges++] = child;
    }
    left = EDGE_FEW;
    for (uint32_t e = l->out[parent]; is_last && e != 0 && left > 0;
         e = l->next_out[e - 1], left--) {
        const uint32_t succ = m->to[e - 1];

        HEDDLE_TRY(edge_room(m));
        m->from[m->nedges] = child;
        m->to[m->nedges++] = succ;
    }
    return lists_grow(m, l, from);
}

/* A parent begins before its children do: the order of starts is top down. */
static heddle_status children_edges(struct maker *m)
{
    struct lists l = {0};

    l.in = heddle_scratch_get(m->scratch, m->n, sizeof(*l.in));
    l.out = heddle_scratch_get(m->scratch, m->n, sizeof(*l.out));
    if (l.in == NULL || l.out == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(lists_grow(m, &l, 0));
    for (size_t i = 0; i < m->v->ntasks; i++) {
        const struct heddle_log_task *t = &m->v->tasks[i];
        const uint64_t *child, *parent;

        if (t->parent == 0 || t->parent == t->id)
            continue;
        child = heddle_map_find(&m->task_of, t->id);
        parent = heddle_map_find(&m->task_of, t->parent);
        if (child != NULL && *child != 0 && parent != NULL && *parent != 0 &&
            m->log_index[*child - 1] == i)
            HEDDLE_TRY(child_edges(m, &l, (uint32_t)(*parent - 1), (uint32_t)(*child - 1)));
    }
    return HEDDLE_OK;
}

/* --- the run -------------------------------------------------------------- */

/* Whether a comes first where both last no time: so that no cycle is left. */
static bool is_before(const struct maker *m, uint32_t a, uint32_t b)
{
    if (m->end_ns[a] != m->end_ns[b])
        return m->end_ns[a] < m->end_ns[b];
    if (m->start_ns[a] != m->start_ns[b])
        return m->start_ns[a] < m->start_ns[b];
    return m->log_index[a] < m->log_index[b];
}

static void follow_run(struct maker *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->nedges; i++) {
        if (!is_before(m, m->from[i], m->to[i])) {
            m->g->ndropped++;
            continue;
        }
        m->from[n] = m->from[i];
        m->to[n++] = m->to[i];
    }
    m->nedges = n;
    for (size_t i = 0; i < n; i++)
        if (m->start_ns[m->to[i]] < m->end_ns[m->from[i]])
            m->start_ns[m->to[i]] = m->end_ns[m->from[i]];
}

/* From the memory they grew in to what the graph keeps. */
static heddle_status keep_edges(struct maker *m)
{
    const size_t bytes = m->nedges * sizeof(*m->from);
    uint32_t *from = heddle_scratch_get(m->own, 1, bytes);
    uint32_t *to = heddle_scratch_get(m->own, 1, bytes);

    if (from == NULL || to == NULL)
        return HEDDLE_ENOMEM;
    if (bytes > 0) {
        memcpy(from, m->from, bytes);
        memcpy(to, m->to, bytes);
    }
    m->from = from;
    m->to = to;
    return HEDDLE_OK;
}

heddle_status heddle_lg_edges(struct maker *m)
{
    struct edger e = {.m = m};
    uint32_t domain = 0;
    uint64_t parent = 0;

    if (!m->g->has_deps)
        return keep_edges(m);
    if (m->v->naccesses >= UINT32_MAX - 1)
        return HEDDLE_LG_FAIL(&m->o, HEDDLE_EOVERFLOW, "the log has too many accesses");
    e.past = heddle_scratch_get(m->scratch, m->v->nhandles, sizeof(*e.past));
    e.link = heddle_scratch_get(m->scratch, m->v->naccesses + 1, sizeof(*e.link));
    e.seen = heddle_scratch_get(m->scratch, m->n, sizeof(*e.seen));
    if (e.past == NULL || e.link == NULL || e.seen == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t t = m->order[i];
        const uint64_t of = m->v->tasks[m->log_index[t]].parent;

        if (i == 0 || of != parent)
            domain = i + 1;
        parent = of;
        HEDDLE_TRY(task_edges(&e, domain, t));
    }
    if (m->has_children)
        HEDDLE_TRY(children_edges(m));
    follow_run(m);
    return keep_edges(m);
}
