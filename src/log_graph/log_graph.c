/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_graph: memory, sentences and the steps from a log to a graph.
 */
#include "log_graph/log_graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/text.h"

/* --- names ---------------------------------------------------------------- */

static const char *const names[HEDDLE_NDURATIONS] = {"measured", "min", "median", "model"};

const char *heddle_log_durations_name(unsigned durations)
{
    return durations < HEDDLE_NDURATIONS ? names[durations] : "?";
}

heddle_status heddle_log_durations_find(const char *name, enum heddle_log_durations *out)
{
    if (name == NULL || out == NULL)
        return HEDDLE_EINVAL;
    for (unsigned i = 0; i < HEDDLE_NDURATIONS; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum heddle_log_durations)i;
            return HEDDLE_OK;
        }
    }
    return HEDDLE_ENOENT;
}

/* --- digest --------------------------------------------------------------- */

uint64_t heddle_log_graph_digest(const struct heddle_bound_graph *g)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    size_t rows;

    if (g == NULL)
        return 0;
    rows = g->kind != NULL ? g->nkinds : g->ntasks;
    h = heddle_lg_mix(h, (uint64_t)g->ntasks << 32 | g->nedges);
    h = heddle_lg_mix(h, (uint64_t)rows << 32 | g->ntypes);
    for (uint32_t i = 0; i < g->ntypes; i++)
        h = heddle_lg_mix(h, g->nworkers[i]);
    for (size_t i = 0; i < g->nedges; i++)
        h = heddle_lg_mix(h, (uint64_t)g->edge_from[i] << 32 | g->edge_to[i]);
    for (size_t i = 0; g->kind != NULL && i < g->ntasks; i++)
        h = heddle_lg_mix(h, g->kind[i]);
    for (size_t i = 0; i < rows * g->ntypes; i++) {
        uint64_t bits;

        memcpy(&bits, &g->time[i], sizeof(bits));
        h = heddle_lg_mix(h, bits);
    }
    return h;
}

/* --- the whole ------------------------------------------------------------ */

static heddle_status make_makespan(struct maker *m)
{
    struct heddle_log_summary *s = NULL;
    heddle_status st = heddle_log_summary_create(m->log, &s);

    if (st != HEDDLE_OK)
        return st;
    m->g->first_ns = s->first_ns;
    m->g->last_ns = s->last_ns;
    m->g->makespan_ns = s->makespan_ns;
    heddle_log_summary_destroy(m->log, s);
    return HEDDLE_OK;
}

static heddle_status make_notes(struct maker *m)
{
    const struct heddle_log_graph *g = m->g;

    if (m->v->is_partial)
        HEDDLE_TRY(heddle_notes_add(&m->notes,
                                    "the log is not whole: tasks and dependencies may be missing, "
                                    "which makes bounds lower"));
    if (m->n > 0 && !g->has_deps)
        HEDDLE_TRY(heddle_notes_add(&m->notes,
                                    "the log has no dependencies (level 0): tasks count as "
                                    "independent; run with level 1 to have them"));
    if (g->nnot_run > 0)
        HEDDLE_TRY(heddle_notes_add(&m->notes, "%llu tasks did not end well and are not counted",
                                    (unsigned long long)g->nnot_run));
    if (g->ndropped > 0)
        HEDDLE_TRY(heddle_notes_add(&m->notes,
                                    "%llu dependencies that the run contradicts are left out",
                                    (unsigned long long)g->ndropped));
    return HEDDLE_OK;
}

/* What was made becomes the graph. */
static void make_graph(struct maker *m)
{
    struct heddle_log_graph *g = m->g;

    g->graph.size = sizeof(g->graph);
    g->graph.ntasks = m->n;
    g->graph.nedges = (uint32_t)m->nedges;
    g->graph.edge_from = m->from;
    g->graph.edge_to = m->to;
    g->id = m->id;
    g->log_index = m->log_index;
    g->kind = m->kind;
    g->type = m->type;
    g->start_ns = m->start_ns;
    g->end_ns = m->end_ns;
    g->took_ns = m->took_ns;
    g->priority = m->priority;
    g->width = m->width;
    g->kinds = m->kinds;
    g->nkinds = m->nkinds;
    g->notes = m->notes.text;
    g->nnotes = m->notes.n;
    g->digest = heddle_log_graph_digest(&g->graph);
}

static heddle_status make_all(struct maker *m)
{
    static heddle_status (*const steps[])(struct maker *) = {
        make_makespan,  heddle_lg_lanes, heddle_lg_tasks, heddle_lg_kinds, heddle_lg_edges,
        heddle_lg_took, make_notes,      heddle_lg_types, heddle_lg_times};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const heddle_status st = steps[i](m);

        heddle_scratch_drop(m->scratch);
        if (st != HEDDLE_OK)
            return st;
    }
    make_graph(m);
    return HEDDLE_OK;
}

static heddle_status check_args(const heddle_log *log, const struct heddle_log_graph_opts *o,
                                struct heddle_log_graph **out)
{
    if (log == NULL || out == NULL)
        return HEDDLE_LG_FAIL(o, HEDDLE_EINVAL, "there is no log");
    if ((unsigned)o->durations >= HEDDLE_NDURATIONS)
        return HEDDLE_LG_FAIL(o, HEDDLE_EINVAL, "there are no such durations");
    return HEDDLE_OK;
}

heddle_status heddle_log_graph_create(const heddle_log *log,
                                      const struct heddle_log_graph_opts *opts,
                                      struct heddle_log_graph **out)
{
    struct heddle_scratch own, temp, scratch, *keep;
    struct maker m = {
        .log = log, .own = &own, .temp = &temp, .scratch = &scratch, .notes = {.mem = &own}};
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_log_graph_opts, &m.o, opts));
    HEDDLE_TRY(check_args(log, &m.o, out));
    own = temp = scratch = (struct heddle_scratch){.a = m.o.alloc};
    m.v = heddle_log_get_view(log);
    heddle_map_init(&m.task_of, m.o.alloc);
    m.g = heddle_scratch_get(&own, 1, sizeof(*m.g));
    keep = heddle_scratch_get(&own, 1, sizeof(*keep));
    st = m.g == NULL || keep == NULL ? HEDDLE_ENOMEM : make_all(&m);
    heddle_map_fini(&m.task_of);
    heddle_scratch_drop(&temp);
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&own);
        return st == HEDDLE_ENOMEM ? HEDDLE_LG_FAIL(&m.o, st, "no memory") : st;
    }
    *keep = own;
    m.g->size = sizeof(*m.g);
    m.g->own = keep;
    *out = m.g;
    return HEDDLE_OK;
}

void heddle_log_graph_destroy(struct heddle_log_graph *g)
{
    struct heddle_scratch own;

    if (g == NULL)
        return;
    own = *(const struct heddle_scratch *)g->own; /* it is in one of the blocks */
    heddle_scratch_drop(&own);
}
