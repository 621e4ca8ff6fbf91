/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_la_bound: how fast the tasks of a log could have run.
 *
 * Graph      from what the tasks accessed, in the order of submission: a
 *            dependency that was already satisfied is not in the log, but counts.
 *            Overlapping views of one matrix are taken as independent, which
 *            can only weaken a lower bound.
 * Times      that of each task where it ran; on the other type of worker the
 *            shortest that a task of the same kernel took there, and not at all
 *            where none did.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_la.h"
#include "heddle/bound.h"
#include "heddle/trace.h"

enum { CORES, DEVICES, NTYPES };
enum { MAX_TASKS = 200000 };

struct run {
    uint64_t id;
    uint32_t index; /* in the view */
};

struct graph {
    const heddle_log *log;
    const struct heddle_log_view *v;
    struct run *run; /* executions that count, by id */
    uint32_t ntasks;
    uint32_t *from, *to;
    size_t nedges, cap;
    double *time; /* ntasks x NTYPES */
    unsigned nstreams;
};

static int by_id(const void *a, const void *b)
{
    const uint64_t x = ((const struct run *)a)->id;
    const uint64_t y = ((const struct run *)b)->id;

    return (x > y) - (x < y);
}

static unsigned type_of(const struct graph *g, const struct heddle_log_task *t)
{
    return g->v->lanes[t->lane].kind == HEDDLE_LOG_DEVICE ? DEVICES : CORES;
}

static heddle_status read_tasks(struct graph *g)
{
    g->run = calloc(g->v->ntasks + 1, sizeof(*g->run));
    if (g->run == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < g->v->ntasks; i++) {
        const struct heddle_log_task *t = &g->v->tasks[i];

        if (t->status == HEDDLE_LOG_OK && t->lane != HEDDLE_LOG_NO_LANE &&
            (t->flags & HEDDLE_LOG_GANG) == 0)
            g->run[g->ntasks++] = (struct run){t->id, (uint32_t)i};
    }
    qsort(g->run, g->ntasks, sizeof(*g->run), by_id);
    for (size_t i = 0; i < g->v->nlanes; i++)
        g->nstreams += g->v->lanes[i].kind == HEDDLE_LOG_DEVICE;
    return HEDDLE_OK;
}

static heddle_status read_times(struct graph *g)
{
    double *least = calloc(g->v->nkernels * NTYPES + 1, sizeof(*least));

    g->time = calloc((size_t)g->ntasks * NTYPES + 1, sizeof(*g->time));
    if (least == NULL || g->time == NULL) {
        free(least);
        return HEDDLE_ENOMEM;
    }
    for (size_t i = 0; i < g->v->nkernels * NTYPES; i++)
        least[i] = (double)INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < g->ntasks; i++) {
            const struct heddle_log_task *t = &g->v->tasks[g->run[i].index];
            const unsigned type = type_of(g, t);
            const double ns = (double)(t->end_ns - t->start_ns);
            double *of = least + (size_t)t->kernel * NTYPES;

            if (pass == 0) {
                of[type] = fmin(of[type], ns);
                continue;
            }
            g->time[i * NTYPES + type] = ns;
            g->time[i * NTYPES + 1 - type] = of[1 - type];
        }
    }
    free(least);
    return HEDDLE_OK;
}

static bool add_edge(struct graph *g, uint32_t from, uint32_t to)
{
    if (from == to)
        return true;
    if (g->nedges == g->cap) {
        const size_t cap = g->cap * 2 + 1024;
        uint32_t *a = realloc(g->from, cap * sizeof(*a));
        uint32_t *b;

        if (a != NULL)
            g->from = a;
        b = realloc(g->to, cap * sizeof(*b));
        if (b != NULL)
            g->to = b;
        if (a == NULL || b == NULL)
            return false;
        g->cap = cap;
    }
    g->from[g->nedges] = from;
    g->to[g->nedges++] = to;
    return true;
}

/* What came before on one handle: 1 + its last writer, and its readers since, as a
 * list through `next`. */
struct past {
    uint32_t writer, reader;
};

struct link {
    uint32_t task, next;
};

static bool add_access(struct graph *g, struct past *h, struct link *link,
                       size_t *nlinks, uint32_t task, unsigned mode)
{
    if (mode == HEDDLE_SCRATCH)
        return true;
    if (h->writer != 0 && !add_edge(g, h->writer - 1, task))
        return false;
    if (mode == HEDDLE_W || mode == HEDDLE_RW) {
        for (uint32_t l = h->reader; l != 0; l = link[l].next)
            if (!add_edge(g, link[l].task, task))
                return false;
        *h = (struct past){.writer = task + 1};
        return true;
    }
    link[*nlinks] =
        (struct link){task, h->reader}; /* readers, and their like */
    h->reader = (uint32_t)(*nlinks)++;
    return true;
}

static heddle_status read_edges(struct graph *g)
{
    struct past *past = calloc(g->v->nhandles + 1, sizeof(*past));
    struct link *link = calloc(g->v->naccesses + 2, sizeof(*link));
    size_t nlinks = 1;
    bool is_ok = past != NULL && link != NULL;

    for (uint32_t i = 0; i < g->ntasks && is_ok; i++) {
        size_t first, last;

        heddle_log_find_accesses(g->log, g->run[i].id, &first, &last);
        for (size_t k = first; k < last && is_ok; k++) {
            const struct heddle_log_access *a = &g->v->accesses[k];

            is_ok = add_access(g, &past[a->handle], link, &nlinks, i, a->mode);
        }
    }
    free(past);
    free(link);
    return is_ok && g->nedges <= UINT32_MAX ? HEDDLE_OK : HEDDLE_ENOMEM;
}

static heddle_status prove(const struct graph *g, unsigned nworkers,
                           struct la_bound *out, char *why, size_t why_bytes)
{
    const uint32_t workers[NTYPES] = {nworkers, g->nstreams};
    const struct heddle_bound_graph graph = {.size = sizeof(graph),
                                             .ntasks = g->ntasks,
                                             .ntypes = NTYPES,
                                             .nedges = (uint32_t)g->nedges,
                                             .edge_from = g->from,
                                             .edge_to = g->to,
                                             .nworkers = workers,
                                             .time = g->time};
    const struct heddle_bound_limits limits = {.size = sizeof(limits),
                                               .time_ns = UINT64_C(3000000000),
                                               .error = why,
                                               .error_bytes = why_bytes};
    struct heddle_bound_result r = {.size = sizeof(r)};
    heddle_status st = heddle_bound_all(&graph, &limits, &r);

    if (st != HEDDLE_OK)
        return st;
    st =
        heddle_bound_check(&graph, &r.cert[r.best_kind], r.best, &limits, NULL);
    out->ns = r.best;
    out->ntasks = g->ntasks;
    heddle_bound_finish(&r);
    return st;
}

heddle_status la_bound_read(const char *path, unsigned nworkers,
                            struct la_bound *out, char *why, size_t why_bytes)
{
    const struct heddle_log_opts opts = {
        .size = sizeof(opts), .why = why, .why_bytes = why_bytes};
    struct graph g = {0};
    heddle_log *log = NULL;
    heddle_status st = heddle_log_open(path, &opts, &log);

    if (st == HEDDLE_OK) {
        g.log = log;
        g.v = heddle_log_get_view(log);
        st = read_tasks(&g);
    }
    if (st == HEDDLE_OK && g.ntasks > MAX_TASKS) {
        out->ntasks = g.ntasks; /* too large: no bound */
    } else {
        if (st == HEDDLE_OK)
            st = read_times(&g);
        if (st == HEDDLE_OK)
            st = read_edges(&g);
        if (st == HEDDLE_OK && g.ntasks > 0)
            st = prove(&g, nworkers, out, why, why_bytes);
    }
    free(g.run);
    free(g.from);
    free(g.to);
    free(g.time);
    heddle_log_close(log);
    return st;
}
