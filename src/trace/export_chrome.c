/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_chrome: JSON in the "Trace Event Format", for chrome://tracing and
 * for ui.perfetto.dev.
 *
 * Purpose    a second look at a log with a viewer everybody has. Good below a
 *            million tasks: the viewers keep all of it in memory.
 * Structure  one process; a lane is a thread. Tasks are complete events (X),
 *            marks are instants or asynchronous spans, memory is a counter,
 *            dependencies are flows (s, f). Times are microseconds.
 */
#include "base/json.h"
#include "trace/export.h"
#include "trace/log.h"

#define PID 1

static void begin(struct heddle_json *j, const char *ph, const char *name,
                  uint32_t tid)
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

static void put_metadata(struct heddle_json *j, const char *what,
                         const char *value, uint32_t tid)
{
    begin(j, "M", what, tid);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_str(j, "name", value);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void put_lanes(struct heddle_json *j, const struct heddle_log_view *v)
{
    put_metadata(j, "process_name", "heddle", 0);
    for (uint32_t i = 0; i < v->nlanes; i++) {
        put_metadata(j, "thread_name", v->lanes[i].name, i);
        begin(j, "M", "thread_sort_index", i);
        heddle_json_key(j, "args");
        heddle_json_object(j);
        heddle_json_key_uint(j, "sort_index", i);
        heddle_json_end(j);
        heddle_json_end(j);
    }
}

static void put_task(struct heddle_json *j, const struct heddle_log_view *v,
                     const struct heddle_log_task *t)
{
    begin(j, "X", v->kernels[t->kernel].name, t->lane);
    heddle_json_key_str(j, "cat", "task");
    key_us(j, "ts", t->start_ns);
    key_us(j, "dur", t->end_ns - t->start_ns);
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
        heddle_json_key_double(j, "predicted_us",
                               (double)t->predicted_ns / 1e3);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void put_state(struct heddle_json *j, const struct heddle_log_state *s)
{
    if (s->end_ns == s->start_ns)
        return;
    begin(j, "X", heddle_log_state_name(s->state), s->lane);
    heddle_json_key_str(j, "cat", "state");
    key_us(j, "ts", s->start_ns);
    key_us(j, "dur", s->end_ns - s->start_ns);
    heddle_json_end(j);
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

static void put_event(struct heddle_json *j, const struct heddle_log_event *e)
{
    const bool is_memory =
        e->kind == HEDDLE_LOG_MEM_ALLOC || e->kind == HEDDLE_LOG_MEM_FREE;

    if (!is_memory && e->kind != HEDDLE_LOG_POWER)
        return;
    begin(j, "C", is_memory ? "memory" : "energy", e->lane);
    /* Counters with one name are told apart by their id: node or domain. */
    heddle_json_key_uint(j, "id", e->b);
    key_us(j, "ts", e->t_ns);
    heddle_json_key(j, "args");
    heddle_json_object(j);
    heddle_json_key_uint(j, is_memory ? "bytes" : "microjoules", e->x);
    heddle_json_end(j);
    heddle_json_end(j);
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

        if (p != SIZE_MAX && s != SIZE_MAX &&
            v->tasks[p].lane != HEDDLE_LOG_NO_LANE &&
            v->tasks[s].lane != HEDDLE_LOG_NO_LANE)
            put_dep(j, &v->tasks[p], &v->tasks[s], i + 1);
    }
}

static heddle_status chrome_run(const heddle_log *log, FILE *out,
                                unsigned flags)
{
    const struct heddle_log_view *v = &log->v;
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "displayTimeUnit", "ns");
    heddle_json_key(&j, "otherData");
    heddle_json_object(&j);
    for (size_t i = 0; i < v->ninfos; i++)
        heddle_json_key_str(&j, v->infos[i].key, v->infos[i].value);
    heddle_json_end(&j);
    heddle_json_key(&j, "traceEvents");
    heddle_json_array(&j);
    put_lanes(&j, v);
    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].lane != HEDDLE_LOG_NO_LANE)
            put_task(&j, v, &v->tasks[i]);
    for (size_t i = 0; i < v->nmarks; i++)
        put_mark(&j, &v->marks[i]);
    for (size_t i = 0; i < v->nevents; i++)
        put_event(&j, &v->events[i]);
    if ((flags & HEDDLE_LOG_EXPORT_STATES) != 0)
        for (size_t i = 0; i < v->nstates; i++)
            put_state(&j, &v->states[i]);
    if ((flags & HEDDLE_LOG_EXPORT_DEPS) != 0)
        put_deps(&j, log);
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
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
