/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spans: what exporters have in common.
 *
 * Structure  spans of all kinds are collected, sorted by radix, cut so that
 *            they nest, and turned into a list of begins and ends by time.
 * Invariants (1) on a track the spans that are open at a moment form a stack,
 *                with ends that do not grow towards its top
 *            (2) cutting only makes ends earlier, never before the start
 * Cost       linear.
 */
#include "trace/spans.h"

#include "base/assert.h"
#include "base/text.h"

#define NODES 256 /* a transfer has a byte for each node */

bool heddle_event_move(const struct heddle_log_event *e, int64_t *start_ns, int64_t *end_ns,
                       struct heddle_span_link *link)
{
    if (e->kind < HEDDLE_LOG_FETCH || e->kind > HEDDLE_LOG_EVICT)
        return false;
    *start_ns = e->t_ns + (e->y_ns > 0 ? e->y_ns : 0);
    *end_ns = *start_ns + (e->z_ns > 0 ? e->z_ns : 0);
    link->src = e->b % NODES;
    link->dst = e->b / NODES;
    return true;
}

const char *heddle_span_node(const struct heddle_log_view *v, uint32_t id, char *buf, size_t bytes)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, bytes);
    for (size_t i = 0; i < v->nnodes; i++)
        if (v->nodes[i].id == id && v->nodes[i].name[0] != '\0') {
            heddle_text_str(&t, v->nodes[i].name);
            return buf;
        }
    heddle_text_add(&t, "node %u", (unsigned)id);
    return buf;
}

const char *heddle_span_link_name(const struct heddle_log_view *v,
                                  const struct heddle_span_link *link, char buf[HEDDLE_SPAN_NAME])
{
    char src[HEDDLE_SPAN_NAME / 2 - 4], dst[HEDDLE_SPAN_NAME / 2 - 4];
    struct heddle_text t;

    heddle_text_init(&t, buf, HEDDLE_SPAN_NAME);
    heddle_text_add(&t, "%s to %s", heddle_span_node(v, link->src, src, sizeof src),
                    heddle_span_node(v, link->dst, dst, sizeof dst));
    return buf;
}

/* Numbers the links that are used; track_of[src + 256 dst]: track + 1. */
static heddle_status find_links(struct heddle_spans *s, const heddle_log *log, uint32_t *track_of)
{
    const struct heddle_log_view *v = &log->v;
    struct heddle_span_link l;
    int64_t t0, t1;
    uint32_t n = 0;

    for (size_t i = 0; i < v->nevents; i++)
        if (heddle_event_move(&v->events[i], &t0, &t1, &l))
            track_of[l.src + NODES * l.dst] = 1;
    for (uint32_t i = 0; i < NODES * NODES; i++)
        n += track_of[i];
    if (n == 0)
        return HEDDLE_OK;
    s->link = heddle_zalloc(log->a, n, sizeof *s->link);
    if (s->link == NULL)
        return HEDDLE_ENOMEM;
    s->nlinks = n;
    n = 0;
    for (uint32_t i = 0; i < NODES * NODES; i++) {
        if (track_of[i] == 0)
            continue;
        s->link[n] = (struct heddle_span_link){.src = i % NODES, .dst = i / NODES};
        track_of[i] = (uint32_t)v->nlanes + ++n;
    }
    return HEDDLE_OK;
}

static heddle_status find_nodes(struct heddle_spans *s, const heddle_log *log)
{
    const struct heddle_log_view *v = &log->v;

    s->node = heddle_zalloc(log->a, HEDDLE_SPAN_NODES, 1);
    if (s->node == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->nnodes; i++)
        if (v->nodes[i].id < HEDDLE_SPAN_NODES)
            s->node[v->nodes[i].id] |= HEDDLE_NODE_USED;
    for (size_t i = 0; i < v->nlanes; i++)
        if (v->lanes[i].node < HEDDLE_SPAN_NODES)
            s->node[v->lanes[i].node] |= HEDDLE_NODE_USED;
    for (uint32_t i = 0; i < s->nlinks; i++) {
        s->node[s->link[i].src] |= HEDDLE_NODE_USED;
        s->node[s->link[i].dst] |= HEDDLE_NODE_USED;
    }
    for (size_t i = 0; i < v->nevents; i++) {
        uint8_t *flags = &s->node[v->events[i].b];

        if (heddle_event_is_memory(&v->events[i]))
            *flags |= HEDDLE_NODE_USED | HEDDLE_NODE_MEMORY;
        else if (v->events[i].kind == HEDDLE_LOG_POWER)
            *flags |= HEDDLE_NODE_ENERGY;
    }
    return HEDDLE_OK;
}

static size_t count_moves(const struct heddle_log_view *v)
{
    struct heddle_span_link l;
    int64_t t0, t1;
    size_t n = 0;

    for (size_t i = 0; i < v->nevents; i++)
        n += heddle_event_move(&v->events[i], &t0, &t1, &l);
    return n;
}

/* States without length are not shown. */
static size_t count_states(const struct heddle_log_view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->nstates; i++)
        n += v->states[i].end_ns > v->states[i].start_ns;
    return n;
}

static size_t count_run(const struct heddle_log_view *v)
{
    size_t n = v->ntasks; /* tasks that never ran come last */

    while (n > 0 && v->tasks[n - 1].lane == HEDDLE_LOG_NO_LANE)
        n--;
    return n;
}

static void collect(struct heddle_span *p, const heddle_log *log, size_t nrun, bool has_states,
                    const uint32_t *track_of)
{
    const struct heddle_log_view *v = &log->v;
    struct heddle_span_link l;

    for (size_t i = 0; i < nrun; i++)
        *p++ = (struct heddle_span){.start_ns = v->tasks[i].start_ns,
                                    .end_ns = v->tasks[i].end_ns,
                                    .track = v->tasks[i].lane,
                                    .idx = (uint32_t)i,
                                    .kind = HEDDLE_SPAN_TASK};
    for (size_t i = 0; has_states && i < v->nstates; i++)
        if (v->states[i].end_ns > v->states[i].start_ns)
            *p++ = (struct heddle_span){.start_ns = v->states[i].start_ns,
                                        .end_ns = v->states[i].end_ns,
                                        .track = v->states[i].lane,
                                        .idx = (uint32_t)i,
                                        .kind = HEDDLE_SPAN_STATE};
    for (size_t i = 0; i < v->nevents; i++) {
        *p = (struct heddle_span){.idx = (uint32_t)i, .kind = HEDDLE_SPAN_MOVE};
        if (!heddle_event_move(&v->events[i], &p->start_ns, &p->end_ns, &l))
            continue;
        p->track = track_of[l.src + NODES * l.dst] - 1;
        p++;
    }
}

/* By start, longer first; `tmp` has 2n pairs, `sorted` n spans. */
static void sort_spans(const struct heddle_span *in, struct heddle_span *sorted, size_t n,
                       struct heddle_pair *tmp)
{
    for (size_t i = 0; i < n; i++)
        tmp[i] = (struct heddle_pair){~heddle_time_key(in[i].end_ns), i};
    heddle_sort_pairs(tmp, tmp + n, n);
    for (size_t i = 0; i < n; i++)
        tmp[i].key = heddle_time_key(in[tmp[i].idx].start_ns);
    heddle_sort_pairs(tmp, tmp + n, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = in[tmp[i].idx];
}

/* Invariants (1) and (2). top[track] and below[span] are index + 1. */
static void nest(struct heddle_span *p, size_t n, uint32_t *top, uint32_t *below)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t *t = &top[p[i].track];

        while (*t != 0) {
            struct heddle_span *open = &p[*t - 1];

            if (open->end_ns > p[i].start_ns && open->end_ns >= p[i].end_ns)
                break;
            if (open->end_ns > p[i].start_ns)
                open->end_ns = p[i].start_ns;
            *t = below[*t - 1];
        }
        below[i] = *t;
        *t = (uint32_t)i + 1;
    }
}

static void make_edges(struct heddle_spans *s, struct heddle_pair *tmp)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->span[i].end_ns > s->span[i].start_ns)
            s->edge[n++] =
                (struct heddle_pair){heddle_time_key(s->span[i].end_ns), (uint64_t)i << 1 | 1};
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t key = heddle_time_key(s->span[i].start_ns);

        s->edge[n++] = (struct heddle_pair){key, (uint64_t)i << 1};
        if (s->span[i].end_ns == s->span[i].start_ns)
            s->edge[n++] = (struct heddle_pair){key, (uint64_t)i << 1 | 1};
    }
    HEDDLE_ASSERT(n == 2 * s->n);
    heddle_sort_pairs(s->edge, tmp, n);
}

static void widen(struct heddle_spans *s, int64_t t)
{
    if (t == HEDDLE_LOG_NONE)
        return;
    if (t < s->base_ns)
        s->base_ns = t;
    if (t > s->last_ns)
        s->last_ns = t;
}

static void find_range(struct heddle_spans *s, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < s->n; i++) {
        widen(s, s->span[i].start_ns);
        widen(s, s->span[i].end_ns);
    }
    for (size_t i = 0; i < v->ntasks; i++) {
        widen(s, v->tasks[i].submit_ns);
        widen(s, v->tasks[i].ready_ns);
    }
    for (size_t i = 0; i < v->nmarks; i++)
        widen(s, v->marks[i].t_ns);
    for (size_t i = 0; i < v->nevents; i++)
        widen(s, v->events[i].t_ns);
}

/* The work areas of spans_build(). */
struct scratch {
    uint32_t *track_of; /* NODES * NODES */
    struct heddle_span *span;
    struct heddle_pair *tmp; /* 2n */
    uint32_t *below;         /* n */
    uint32_t *top;           /* ntracks */
    size_t ntracks;
};

static heddle_status spans_build(struct heddle_spans *s, const heddle_log *log, unsigned flags,
                                 struct scratch *w)
{
    const struct heddle_log_view *v = &log->v;
    const size_t nrun = count_run(v);
    const bool has_states = (flags & HEDDLE_LOG_EXPORT_STATES) != 0;

    w->track_of = heddle_zalloc(log->a, (size_t)NODES * NODES, sizeof *w->track_of);
    if (w->track_of == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(find_links(s, log, w->track_of));
    HEDDLE_TRY(find_nodes(s, log));
    s->n = nrun + (has_states ? count_states(v) : 0) + count_moves(v);
    if (s->n == 0)
        return HEDDLE_OK;
    if (s->n >= UINT32_MAX)
        return HEDDLE_EOVERFLOW;
    w->ntracks = v->nlanes + s->nlinks;
    /* One more: a candidate is written before it is known to be one. */
    w->span = heddle_zalloc(log->a, s->n + 1, sizeof *w->span);
    w->tmp = heddle_zalloc(log->a, 2 * s->n, sizeof *w->tmp);
    w->below = heddle_zalloc(log->a, s->n, sizeof *w->below);
    w->top = heddle_zalloc(log->a, w->ntracks, sizeof *w->top);
    s->span = heddle_zalloc(log->a, s->n, sizeof *s->span);
    s->edge = heddle_zalloc(log->a, 2 * s->n, sizeof *s->edge);
    if (w->span == NULL || w->tmp == NULL || w->below == NULL || w->top == NULL ||
        s->span == NULL || s->edge == NULL)
        return HEDDLE_ENOMEM;
    collect(w->span, log, nrun, has_states, w->track_of);
    sort_spans(w->span, s->span, s->n, w->tmp);
    nest(s->span, s->n, w->top, w->below);
    make_edges(s, w->tmp);
    return HEDDLE_OK;
}

heddle_status heddle_spans_init(struct heddle_spans *s, const heddle_log *log, unsigned flags)
{
    struct scratch w = {0};
    heddle_status st;

    *s = (struct heddle_spans){0};
    st = spans_build(s, log, flags, &w);
    heddle_free(log->a, w.track_of, (size_t)NODES * NODES * sizeof *w.track_of);
    heddle_free(log->a, w.span, (s->n + 1) * sizeof *w.span);
    heddle_free(log->a, w.tmp, 2 * s->n * sizeof *w.tmp);
    heddle_free(log->a, w.below, s->n * sizeof *w.below);
    heddle_free(log->a, w.top, w.ntracks * sizeof *w.top);
    if (st != HEDDLE_OK)
        heddle_spans_fini(s, log);
    else
        find_range(s, &log->v);
    return st;
}

void heddle_spans_fini(struct heddle_spans *s, const heddle_log *log)
{
    heddle_free(log->a, s->span, s->n * sizeof *s->span);
    heddle_free(log->a, s->edge, 2 * s->n * sizeof *s->edge);
    heddle_free(log->a, s->link, s->nlinks * sizeof *s->link);
    heddle_free(log->a, s->node, HEDDLE_SPAN_NODES);
    *s = (struct heddle_spans){0};
}

/* ---- ready tasks ---- */

heddle_status heddle_ready_curve(const heddle_log *log, struct heddle_pair **p_out, size_t *n_out)
{
    const struct heddle_log_view *v = &log->v;
    struct heddle_pair *p;
    size_t n = 0, kept = 0;
    int64_t ready = 0;

    *p_out = NULL;
    *n_out = 0;
    if (v->ntasks == 0)
        return HEDDLE_OK;
    p = heddle_zalloc(log->a, 4 * v->ntasks, sizeof *p);
    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        /* Each task once: not when it is tried again, not for helpers. */
        if (t->ready_ns == HEDDLE_LOG_NONE || t->ready_ns >= t->start_ns ||
            heddle_log_find_task(log, t->id) != i)
            continue;
        p[n++] = (struct heddle_pair){heddle_time_key(t->ready_ns), 1};
        if (t->start_ns != HEDDLE_LOG_NONE)
            p[n++] = (struct heddle_pair){heddle_time_key(t->start_ns), 0};
    }
    heddle_sort_pairs(p, p + 2 * v->ntasks, n);
    for (size_t i = 0; i < n; i++) {
        ready += p[i].idx == 1 ? 1 : -1;
        if (i + 1 < n && p[i + 1].key == p[i].key)
            continue;
        p[kept++] = (struct heddle_pair){p[i].key, (uint64_t)ready};
    }
    *p_out = p;
    *n_out = kept;
    return HEDDLE_OK;
}

void heddle_ready_free(const heddle_log *log, struct heddle_pair *p)
{
    heddle_free(log->a, p, 4 * log->v.ntasks * sizeof *p);
}
