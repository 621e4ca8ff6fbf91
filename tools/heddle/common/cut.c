/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/cut: the last part of a log, as a log.
 *
 * Method   copies of the rows that stay, with other times, are composed. An earlier
 *          change of a memory stays as well, at time 0: what lay there is used later. A
 *          sample of power stays too: counters only grow, and the last one before time 0
 *          would be the first one of all.
 */
#include "common/cut.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/map.h"
#include "common/output.h"
#include "heddle/compose.h"

struct cut {
    const struct heddle_log_view *from;
    struct heddle_log_view to;
    struct heddle_map kept; /* ids of tasks that stay */
    int64_t begin;          /* on the log's clock */
    struct heddle_log_task *tasks;
    struct heddle_log_dep *deps;
    struct heddle_log_access *accesses;
    struct heddle_log_attr *attrs;
    struct heddle_log_state *states;
    struct heddle_log_mark *marks;
    struct heddle_log_event *events;
};

static int64_t earliest(const struct heddle_log_task *t)
{
    return t->submit_ns != HEDDLE_LOG_NONE  ? t->submit_ns
           : t->ready_ns != HEDDLE_LOG_NONE ? t->ready_ns
                                            : t->start_ns;
}

static void shift(int64_t *t, int64_t by)
{
    if (*t != HEDDLE_LOG_NONE)
        *t -= by;
}

static heddle_status cut_tasks(struct cut *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->from->ntasks; i++) {
        struct heddle_log_task t = c->from->tasks[i];

        if (earliest(&t) < c->begin)
            continue;
        HEDDLE_TRY(heddle_map_put(&c->kept, t.id, 1));
        shift(&t.submit_ns, c->begin);
        shift(&t.ready_ns, c->begin);
        if (t.lane != HEDDLE_LOG_NO_LANE) {
            shift(&t.start_ns, c->begin);
            shift(&t.end_ns, c->begin);
        }
        c->tasks[n++] = t;
    }
    c->to.tasks = c->tasks;
    c->to.ntasks = n;
    return HEDDLE_OK;
}

static bool is_kept(const struct cut *c, uint64_t id)
{
    uint64_t v;

    return heddle_map_get(&c->kept, id, &v);
}

static void cut_graph(struct cut *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->from->ndeps; i++)
        if (is_kept(c, c->from->deps[i].succ) && is_kept(c, c->from->deps[i].pred))
            c->deps[n++] = c->from->deps[i];
    c->to.deps = c->deps;
    c->to.ndeps = n;
    n = 0;
    for (size_t i = 0; i < c->from->naccesses; i++)
        if (is_kept(c, c->from->accesses[i].task))
            c->accesses[n++] = c->from->accesses[i];
    c->to.accesses = c->accesses;
    c->to.naccesses = n;
    n = 0;
    for (size_t i = 0; i < c->from->nattrs; i++)
        if (is_kept(c, c->from->attrs[i].task))
            c->attrs[n++] = c->from->attrs[i];
    c->to.attrs = c->attrs;
    c->to.nattrs = n;
}

static void cut_events(struct cut *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->from->nevents; i++) {
        struct heddle_log_event e = c->from->events[i];
        const bool is_early = e.t_ns < c->begin;

        if (is_early && e.kind != HEDDLE_LOG_MEM_ALLOC && e.kind != HEDDLE_LOG_MEM_FREE &&
            e.kind != HEDDLE_LOG_POWER)
            continue;
        e.t_ns = is_early ? 0 : e.t_ns - c->begin;
        c->events[n++] = e;
    }
    c->to.events = c->events;
    c->to.nevents = n;
}

static void cut_lines(struct cut *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->from->nstates; i++) {
        struct heddle_log_state s = c->from->states[i];

        if (s.end_ns <= c->begin)
            continue;
        s.start_ns = s.start_ns > c->begin ? s.start_ns - c->begin : 0;
        s.end_ns -= c->begin;
        c->states[n++] = s;
    }
    c->to.states = c->states;
    c->to.nstates = n;
    n = 0;
    for (size_t i = 0; i < c->from->nmarks; i++) {
        struct heddle_log_mark m = c->from->marks[i];

        if (m.t_ns < c->begin)
            continue;
        m.t_ns -= c->begin;
        c->marks[n++] = m;
    }
    c->to.marks = c->marks;
    c->to.nmarks = n;
}

/* As many rows as there are; never of 0 bytes. */
static bool cut_memory(struct cut *c)
{
    const struct heddle_log_view *v = c->from;

    c->tasks = calloc(v->ntasks + 1, sizeof(*c->tasks));
    c->deps = calloc(v->ndeps + 1, sizeof(*c->deps));
    c->accesses = calloc(v->naccesses + 1, sizeof(*c->accesses));
    c->attrs = calloc(v->nattrs + 1, sizeof(*c->attrs));
    c->states = calloc(v->nstates + 1, sizeof(*c->states));
    c->marks = calloc(v->nmarks + 1, sizeof(*c->marks));
    c->events = calloc(v->nevents + 1, sizeof(*c->events));
    return c->tasks != NULL && c->deps != NULL && c->accesses != NULL && c->attrs != NULL &&
           c->states != NULL && c->marks != NULL && c->events != NULL;
}

static void cut_fini(struct cut *c)
{
    heddle_map_fini(&c->kept);
    free(c->tasks);
    free(c->deps);
    free(c->accesses);
    free(c->attrs);
    free(c->states);
    free(c->marks);
    free(c->events);
}

heddle_status cut_log(const char *from, const char *to, uint64_t begin_ns, char *why,
                      size_t why_bytes)
{
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};
    heddle_log *log = NULL;
    struct cut c = {0};
    heddle_status st = heddle_log_open(from, &o, &log);

    if (st != HEDDLE_OK)
        return st;
    c.from = heddle_log_get_view(log);
    c.to = *c.from;
    c.begin = (int64_t)(begin_ns - c.from->origin_ns);
    c.to.wall_ns += (uint64_t)c.begin;
    heddle_map_init(&c.kept, NULL);
    if (!cut_memory(&c)) {
        snprintf(why, why_bytes, "There is not enough memory to cut the log.");
        st = HEDDLE_ENOMEM;
    }
    if (st == HEDDLE_OK)
        st = cut_tasks(&c);
    if (st == HEDDLE_OK) {
        cut_graph(&c);
        cut_events(&c);
        cut_lines(&c);
        st = heddle_log_compose(&c.to, to, &o);
    }
    cut_fini(&c);
    heddle_log_close(log);
    return st;
}

int cut_file(struct cli *c, const char *path, uint64_t begin_ns)
{
    char why[320] = "";
    struct output o;
    heddle_status st;
    int rc = output_begin(&o, c, path);

    if (rc != 0)
        return rc;
    st = cut_log(path, o.at, begin_ns, why, sizeof(why));
    if (st != HEDDLE_OK)
        rc = output_fail(&o, why[0] != '\0' ? why : heddle_status_text(st));
    return output_end(&o, rc);
}
