/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/run_links: see run_links.h.
 *
 * Structure  tasks in the order of submission; per handle the item that it holds now.
 */
#include "common/run_links.h"

#include <stdlib.h>

#include "base/mode.h"

#define NONE UINT32_MAX

struct maker {
    const heddle_log *log;
    const struct heddle_log_view *v;
    const struct heddle_log_graph *g;
    struct heddle_bound_links l;
    uint8_t far[HEDDLE_BOUND_TYPES_MAX];
    uint32_t *now; /* [handles] the item it holds, NONE: not touched yet */
    bool *is_out;  /* [handles] left out */
    double *bytes;
    uint32_t *who, *item, *reader;
    size_t most;
};

static bool is_host(const struct maker *m, uint32_t node)
{
    return node < m->v->nnodes && m->v->nodes[node].kind == 0;
}

/* Rates, and which types have another memory. False: there are no such links. */
static bool read_links(struct maker *m)
{
    for (size_t i = 0; i < m->v->nlinks; i++) {
        const struct heddle_log_link *k = &m->v->links[i];

        if (is_host(m, k->from) && !is_host(m, k->to))
            m->l.in += k->bytes_per_s * 1e-9;
        else if (!is_host(m, k->from) && is_host(m, k->to))
            m->l.out += k->bytes_per_s * 1e-9;
    }
    for (size_t i = 0; i < m->v->nlanes; i++) {
        const uint32_t type = m->g->lane_type[i];

        if (type < HEDDLE_BOUND_TYPES_MAX && !is_host(m, m->v->lanes[i].node))
            m->far[type] = 1;
    }
    return m->l.in > 0 && m->l.out > 0;
}

static void read_handles(struct maker *m)
{
    for (size_t h = 0; h < m->v->nhandles; h++) {
        const uint32_t parent = m->v->handles[h].parent;

        m->now[h] = NONE;
        if (parent == h)
            continue;
        m->is_out[h] = true;
        if (parent < m->v->nhandles)
            m->is_out[parent] = true;
    }
    for (size_t i = 0; i < m->v->naccesses; i++) {
        const struct heddle_log_access *a = &m->v->accesses[i];

        if (!heddle_mode_is_plain(heddle_mode_of(a->mode)))
            m->is_out[a->handle] = true;
    }
}

static uint32_t add_item(struct maker *m, uint32_t handle, uint32_t who)
{
    m->bytes[m->l.nitems] = (double)m->v->handles[handle].bytes;
    m->who[m->l.nitems] = who;
    m->now[handle] = m->l.nitems;
    return m->l.nitems++;
}

/* Reads first: what a task writes it does not read. */
static void read_task(struct maker *m, uint32_t t)
{
    size_t first, last;

    heddle_log_find_accesses(m->log, m->g->id[t], &first, &last);
    for (size_t i = first; i < last; i++) {
        const struct heddle_log_access *a = &m->v->accesses[i];
        const bool is_new = m->now[a->handle] == NONE;

        if (m->is_out[a->handle] || !heddle_mode_reads(heddle_mode_of(a->mode)) ||
            m->l.nitems + 2 >= m->most)
            continue;
        m->item[m->l.nreads] = is_new ? add_item(m, a->handle, NONE) : m->now[a->handle];
        m->reader[m->l.nreads++] = t;
    }
    for (size_t i = first; i < last; i++) {
        const struct heddle_log_access *a = &m->v->accesses[i];

        if (!m->is_out[a->handle] && heddle_mode_writes(heddle_mode_of(a->mode)) &&
            m->l.nitems + 2 < m->most)
            (void)add_item(m, a->handle, t);
    }
}

static heddle_status solve(struct maker *m, uint64_t time_ns, double *ns_out)
{
    const struct heddle_bound_limits o = {.size = sizeof(o), .time_ns = time_ns};
    struct heddle_bound_links_cert c = {.size = sizeof(c)};
    heddle_status st = heddle_bound_links_find(&m->g->graph, &m->l, &o, &c);

    if (st != HEDDLE_OK)
        return st;
    st = heddle_bound_links_check(&m->g->graph, &m->l, &c, c.value, &o, NULL);
    *ns_out = st == HEDDLE_OK ? c.value : 0;
    heddle_bound_links_fini(&c);
    return st;
}

heddle_status run_links_bound(const heddle_log *log, const struct heddle_log_graph *g,
                              uint64_t time_ns, double *ns_out)
{
    struct maker m = {.log = log, .v = heddle_log_get_view(log), .g = g};
    const size_t n = m.v->nhandles + 1;
    heddle_status st = HEDDLE_OK;

    *ns_out = 0;
    m.l.size = sizeof(m.l);
    if (m.v->naccesses == 0 || m.v->naccesses > UINT32_MAX / 4 || !read_links(&m))
        return HEDDLE_OK;
    m.most = 2 * m.v->naccesses + 4;
    m.now = calloc(n, sizeof(*m.now));
    m.is_out = calloc(n, sizeof(*m.is_out));
    m.bytes = calloc(m.most, sizeof(*m.bytes));
    m.who = calloc(m.most, sizeof(*m.who));
    m.item = calloc(m.most, sizeof(*m.item));
    m.reader = calloc(m.most, sizeof(*m.reader));
    if (m.now == NULL || m.is_out == NULL || m.bytes == NULL || m.who == NULL || m.item == NULL ||
        m.reader == NULL)
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK) {
        read_handles(&m);
        for (uint32_t t = 0; t < g->graph.ntasks; t++)
            read_task(&m, t);
        m.l.is_far = m.far;
        m.l.bytes = m.bytes;
        m.l.maker = m.who;
        m.l.item = m.item;
        m.l.reader = m.reader;
        st = solve(&m, time_ns, ns_out);
    }
    free(m.now);
    free(m.is_out);
    free(m.bytes);
    free(m.who);
    free(m.item);
    free(m.reader);
    return st;
}
