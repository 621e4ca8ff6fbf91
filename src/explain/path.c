/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path: the longest chain of dependencies, with the durations of this run.
 *
 * Method     jobs in topological order (Kahn), longest distance forwards. A
 *            cycle, which only a forged log has, is left out with all behind it.
 * Durations  of the last execution of each job; 0 when it never ran.
 * Cost       linear in jobs and dependencies.
 */
#include "base/assert.h"
#include "explain/explain.h"

struct graph {
    const struct heddle_explain_work *w;
    uint32_t *succ_at; /* [njobs + 1] */
    uint32_t *succ;
    uint32_t *nwait; /* [njobs] predecessors that were not taken yet */
    uint32_t *order; /* [njobs] */
    uint32_t *via;   /* [njobs] the predecessor on its longest path */
    int64_t *dist;   /* [njobs] longest path that ends with it */
};

static int64_t job_length(const struct heddle_explain_work *w, uint32_t j)
{
    const uint32_t row = w->main[j];

    return row < w->nran ? w->v->tasks[row].end_ns - w->v->tasks[row].start_ns : 0;
}

static void graph_invert(struct graph *g)
{
    const struct heddle_explain_work *w = g->w;
    const uint32_t npred = w->pred_at[w->njobs];

    for (uint32_t i = 0; i < npred; i++)
        if (w->pred[i] != HEDDLE_EXPLAIN_NONE)
            g->succ_at[w->pred[i] + 1]++;
    for (uint32_t j = 0; j < w->njobs; j++)
        g->succ_at[j + 1] += g->succ_at[j];
    for (uint32_t j = 0; j < w->njobs; j++)
        for (uint32_t i = w->pred_at[j]; i < w->pred_at[j + 1]; i++)
            if (w->pred[i] != HEDDLE_EXPLAIN_NONE) {
                g->succ[g->succ_at[w->pred[i]]++] = j;
                g->nwait[j]++;
            }
    for (uint32_t j = w->njobs; j > 0; j--) /* each is where the next begins */
        g->succ_at[j] = g->succ_at[j - 1];
    g->succ_at[0] = 0;
}

/* The job at which the longest path ends, or NONE. */
static uint32_t graph_walk(struct graph *g)
{
    const struct heddle_explain_work *w = g->w;
    uint32_t n = 0, best = HEDDLE_EXPLAIN_NONE;

    for (uint32_t j = 0; j < w->njobs; j++) {
        g->via[j] = HEDDLE_EXPLAIN_NONE;
        if (g->nwait[j] == 0)
            g->order[n++] = j;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t j = g->order[i];

        g->dist[j] = heddle_explain_add(g->dist[j], job_length(w, j));
        if (best == HEDDLE_EXPLAIN_NONE || g->dist[j] > g->dist[best])
            best = j;
        for (uint32_t k = g->succ_at[j]; k < g->succ_at[j + 1]; k++) {
            const uint32_t s = g->succ[k];

            if (g->dist[j] > g->dist[s] || g->via[s] == HEDDLE_EXPLAIN_NONE) {
                g->dist[s] = g->dist[j];
                g->via[s] = j;
            }
            if (--g->nwait[s] == 0)
                g->order[n++] = s;
        }
    }
    return best;
}

static heddle_status path_keep(const struct graph *g, uint32_t end, struct heddle_explain *x,
                               struct heddle_scratch *out)
{
    size_t *path, n = 0;

    for (uint32_t j = end; j != HEDDLE_EXPLAIN_NONE; j = g->via[j])
        n++;
    path = heddle_scratch_get(out, n, sizeof(*path));
    if (path == NULL)
        return HEDDLE_ENOMEM;
    x->path = path;
    x->npath = n;
    if (n > 0)
        x->path_ns = g->dist[end];
    for (uint32_t j = end; j != HEDDLE_EXPLAIN_NONE; j = g->via[j])
        path[--n] = g->w->main[j];
    return HEDDLE_OK;
}

heddle_status heddle_explain_path(struct heddle_explain_work *w, struct heddle_explain *x,
                                  struct heddle_scratch *out)
{
    struct heddle_scratch tmp = {.a = w->mem->a};
    struct graph g = {.w = w};
    const size_t n = w->njobs;
    heddle_status st = HEDDLE_ENOMEM;

    g.succ_at = heddle_scratch_get(&tmp, n + 1, sizeof(*g.succ_at));
    g.succ = heddle_scratch_get(&tmp, w->pred_at[n], sizeof(*g.succ));
    g.nwait = heddle_scratch_get(&tmp, n, sizeof(*g.nwait));
    g.order = heddle_scratch_get(&tmp, n, sizeof(*g.order));
    g.via = heddle_scratch_get(&tmp, n, sizeof(*g.via));
    g.dist = heddle_scratch_get(&tmp, n, sizeof(*g.dist));
    if (g.succ_at != NULL && g.succ != NULL && g.nwait != NULL && g.order != NULL &&
        g.via != NULL && g.dist != NULL) {
        graph_invert(&g);
        st = path_keep(&g, graph_walk(&g), x, out);
    }
    heddle_scratch_drop(&tmp);
    return st;
}
