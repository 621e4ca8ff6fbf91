/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_chrome: JSON in the "Trace Event Format", for chrome://tracing and
 * for ui.perfetto.dev.
 *
 * Purpose    a second look at a log with a viewer that every browser has. Good below a
 *            million tasks: the viewers keep all of it in memory.
 * Structure  one process; a lane is a thread, and so is a link between memory
 *            nodes. Tasks, states and transfers are complete events (X), marks
 *            are instants or asynchronous spans, memory and ready tasks are
 *            counters, dependencies are flows (s, f). Times are microseconds.
 */
#include "base/assert.h"
#include "base/json.h"
#include "trace/export.h"
#include "trace/spans.h"

#define PID 1

static void begin(struct heddle_json *j, const char *ph, const char *name, uint32_t tid)
{
    heddle_json_object(j);
    heddle_json_key_str(j, "ph", ph);
    heddle_json_key_str(j, "name", name);
    heddle_json_key_int(j, "pid", PID);
    heddle_json_key_uint(j, "tid", tid);
}

static void key_us(struct heddle_json *j, const char *key, int64_t ns)
{
    heddle_json_key_double(j, key, (double)ns / 1e3);
}

static void put_metadata(struct heddle_json *j, const char *what, const char *value, uint32_t tid)
{
    begin(j, "M", what, tid);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_str(j, "name", value);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void put_thread(struct heddle_json *j, const char *name, uint32_t tid)
{
    put_metadata(j, "thread_name", name, tid);
    begin(j, "M", "thread_sort_index", tid);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_uint(j, "sort_index", tid);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void put_threads(struct heddle_json *j, const struct heddle_log_view *v,
                        const struct heddle_spans *s)
{
    char name[HEDDLE_SPAN_NAME];

    put_metadata(j, "process_name", "heddle", 0);
    for (uint32_t i = 0; i < v->nlanes; i++)
        put_thread(j, v->lanes[i].name, i);
    for (uint32_t i = 0; i < s->nlinks; i++)
        put_thread(j, heddle_span_link_name(v, &s->link[i], name), (uint32_t)v->nlanes + i);
}

static void begin_span(struct heddle_json *j, const char *name, const char *category,
                       const struct heddle_span *p)
{
    begin(j, "X", name, p->track);
    heddle_json_key_str(j, "cat", category);
    key_us(j, "ts", p->start_ns);
    key_us(j, "dur", p->end_ns - p->start_ns);
}

static void put_task(struct heddle_json *j, const struct heddle_log_view *v,
                     const struct heddle_span *p)
{
    const struct heddle_log_task *t = &v->tasks[p->idx];

    begin_span(j, v->kernels[t->kernel].name, "task", p);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_uint(j, "id", t->id);
    if (t->name != NULL)
        heddle_json_key_str(j, "name", t->name);
    heddle_json_key_str(j, "status", heddle_log_status_name(t->status));
    heddle_json_key_uint(j, "variant", t->variant);
    if (t->priority != 0)
        heddle_json_key_int(j, "priority", t->priority);
    if (t->submit_ns != HEDDLE_LOG_NONE)
        key_us(j, "submitted_us", t->submit_ns);
    if (t->ready_ns != HEDDLE_LOG_NONE)
        key_us(j, "ready_us", t->ready_ns);
    if (t->predicted_ns > 0.0f)
        heddle_json_key_double(j, "predicted_us", (double)t->predicted_ns / 1e3);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void put_state(struct heddle_json *j, const struct heddle_log_view *v,
                      const struct heddle_span *p)
{
    if (p->end_ns == p->start_ns)
        return;
    begin_span(j, heddle_log_state_name(v->states[p->idx].state), "state", p);
    heddle_json_end(j);
}

static void put_move(struct heddle_json *j, const struct heddle_log_view *v,
                     const struct heddle_span *p)
{
    const struct heddle_log_event *e = &v->events[p->idx];

    begin_span(j, heddle_log_event_name(e->kind), "transfer", p);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_uint(j, "bytes", e->x);
    heddle_json_key_uint(j, "handle", e->c);
    heddle_json_key_uint(j, "task", e->task);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void put_span(struct heddle_json *j, const struct heddle_log_view *v,
                     const struct heddle_span *p)
{
    switch ((enum heddle_span_kind)p->kind) {
    case HEDDLE_SPAN_TASK: put_task(j, v, p); break;
    case HEDDLE_SPAN_STATE: put_state(j, v, p); break;
    case HEDDLE_SPAN_MOVE: put_move(j, v, p); break;
    }
}

static void put_mark(struct heddle_json *j, const struct heddle_log_mark *m)
{
    const char *ph = m->phase == HEDDLE_LOG_MARK_BEGIN ? "b"
                     : m->phase == HEDDLE_LOG_MARK_END ? "e"
                                                       : "i";

    begin(j, ph, m->text, m->lane);
    heddle_json_key_str(j, "cat", "mark");
    key_us(j, "ts", m->t_ns);
    if (m->phase == HEDDLE_LOG_MARK_BEGIN || m->phase == HEDDLE_LOG_MARK_END)
        heddle_json_key_uint(j, "id", m->lane);
    else
        heddle_json_key_str(j, "s", "t");
    heddle_json_end(j);
}

static void put_counter(struct heddle_json *j, const char *name, uint64_t id, const char *unit,
                        int64_t t, uint64_t value)
{
    begin(j, "C", name, 0);
    /* Counters with one name are told apart by their id: node or domain. */
    heddle_json_key_uint(j, "id", id);
    key_us(j, "ts", t);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_uint(j, unit, value);
    heddle_json_end(j);
    heddle_json_end(j);
}

static heddle_status put_counters(struct heddle_json *j, const heddle_log *log)
{
    const struct heddle_log_view *v = &log->v;
    struct heddle_pair *ready;
    size_t n;

    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (heddle_event_is_memory(e))
            put_counter(j, "memory", e->b, "bytes", e->t_ns, e->x);
        else if (e->kind == HEDDLE_LOG_POWER)
            put_counter(j, "energy", e->b, "microjoules", e->t_ns, e->x);
    }
    HEDDLE_TRY(heddle_ready_curve(log, &ready, &n));
    for (size_t i = 0; i < n; i++)
        put_counter(j, "ready", 0, "tasks", heddle_edge_time(&ready[i]), ready[i].idx);
    heddle_ready_free(log, ready);
    return HEDDLE_OK;
}

/* A flow starts inside the predecessor and ends where the successor starts. */
static void put_dep(struct heddle_json *j, const struct heddle_log_task *pred,
                    const struct heddle_log_task *succ, uint64_t id)
{
    const bool is_long = pred->end_ns > pred->start_ns;

    begin(j, "s", "dependency", pred->lane);
    heddle_json_key_str(j, "cat", "dep");
    heddle_json_key_uint(j, "id", id);
    key_us(j, "ts", pred->end_ns - (is_long ? 1 : 0));
    heddle_json_end(j);
    begin(j, "f", "dependency", succ->lane);
    heddle_json_key_str(j, "bp", "e");
    heddle_json_key_str(j, "cat", "dep");
    heddle_json_key_uint(j, "id", id);
    key_us(j, "ts", succ->start_ns);
    heddle_json_end(j);
}

static void put_deps(struct heddle_json *j, const heddle_log *log)
{
    const struct heddle_log_view *v = &log->v;

    for (size_t i = 0; i < v->ndeps; i++) {
        const size_t p = heddle_log_find_task(log, v->deps[i].pred);
        const size_t s = heddle_log_find_task(log, v->deps[i].succ);

        if (p != SIZE_MAX && s != SIZE_MAX && v->tasks[p].lane != HEDDLE_LOG_NO_LANE &&
            v->tasks[s].lane != HEDDLE_LOG_NO_LANE)
            put_dep(j, &v->tasks[p], &v->tasks[s], i + 1);
    }
}

static heddle_status put_all(struct heddle_json *j, const heddle_log *log,
                             const struct heddle_spans *s, unsigned flags)
{
    const struct heddle_log_view *v = &log->v;

    heddle_json_object(j);
    heddle_json_key_str(j, "displayTimeUnit", "ns");
    heddle_json_key(j, "otherData");
    heddle_json_object(j);
    for (size_t i = 0; i < v->ninfos; i++)
        heddle_json_key_str(j, v->infos[i].key, v->infos[i].value);
    heddle_json_end(j);
    heddle_json_key(j, "traceEvents");
    heddle_json_array(j);
    put_threads(j, v, s);
    for (size_t i = 0; i < s->n; i++)
        put_span(j, v, &s->span[i]);
    for (size_t i = 0; i < v->nmarks; i++)
        put_mark(j, &v->marks[i]);
    HEDDLE_TRY(put_counters(j, log));
    if ((flags & HEDDLE_LOG_EXPORT_DEPS) != 0)
        put_deps(j, log);
    heddle_json_end(j);
    heddle_json_end(j);
    heddle_json_line(j);
    return heddle_json_finish(j);
}

static heddle_status chrome_run(const heddle_log *log, FILE *out, unsigned flags)
{
    struct heddle_spans s;
    struct heddle_json j;
    heddle_status st;

    HEDDLE_TRY(heddle_spans_init(&s, log, flags));
    heddle_json_init_file(&j, out);
    st = put_all(&j, log, &s, flags);
    heddle_json_fini(&j);
    heddle_spans_fini(&s, log);
    return st;
}

const struct heddle_export_ops heddle_export_chrome = {
    .format =
        {
            .name = "chrome",
            .help = "Trace Event JSON: chrome://tracing, ui.perfetto.dev",
        },
    .run = chrome_run,
};
