/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_paraver: .prv for Paraver, with the names in .pcf and .row next to it.
 *
 * Structure  one application with one task, in which every lane and every link
 *            is a thread with a processor of its own. Records, by time: states
 *            (1) of what is outermost on a thread; events (2) where kernel,
 *            task, transfer, memory or ready tasks change; communications (3)
 *            for dependencies.
 * Times      nanoseconds, from the earliest in the log when it has some before
 *            its time 0.
 */
#include <inttypes.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "trace/export.h"
#include "trace/spans.h"

/* Types of events. */
enum {
    TYPE_KERNEL = 60000001, /* value: number of the kernel, from 1; 0: none */
    TYPE_TASK = 60000002,   /* value: id of the task; 0: none */
    TYPE_MOVE = 60000003,   /* value: reason of the transfer; 0: none */
    TYPE_BYTES = 60000004,
    TYPE_READY = 60000005,
    TYPE_MARK = 60000006,   /* value: phase + 1 */
    TYPE_MEMORY = 61000000, /* plus the number of the node */
};

/* Numbers of states: those between tasks come behind the fixed ones. */
enum { STATE_IDLE, STATE_RUNNING, STATE_TRANSFER, STATE_FIRST };

enum line { LINE_EDGE, LINE_DEP, LINE_EVENT, LINE_MARK, LINE_READY };

#define LINE_SHIFT 56

struct prv {
    const heddle_log *log;
    FILE *f;
    struct heddle_spans s;
    struct heddle_pair *ready;
    size_t nready;
    struct heddle_pair *p; /* lines; 2 cap */
    size_t n, cap;
    uint32_t *top;   /* of a track: index + 1 of the innermost open span */
    uint32_t *below; /* of a span: index + 1 of the one around it */
};

static size_t ntracks(const struct prv *w)
{
    return w->log->v.nlanes + w->s.nlinks;
}

/* "cpu:appl:task:thread", counted from 1. */
static void put_place(const struct prv *w, uint32_t track)
{
    fprintf(w->f, "%u:1:1:%u", (unsigned)track + 1, (unsigned)track + 1);
}

static void put_event(const struct prv *w, uint32_t track, int64_t t)
{
    fputs("2:", w->f);
    put_place(w, track);
    fprintf(w->f, ":%lld", (long long)(t - w->s.base_ns));
}

static void put_value(const struct prv *w, uint64_t type, uint64_t value)
{
    fprintf(w->f, ":%" PRIu64 ":%" PRIu64, type, value);
}

static unsigned span_state(const struct prv *w, const struct heddle_span *p)
{
    switch ((enum heddle_span_kind)p->kind) {
    case HEDDLE_SPAN_TASK: return STATE_RUNNING;
    case HEDDLE_SPAN_MOVE: return STATE_TRANSFER;
    case HEDDLE_SPAN_STATE: break;
    }
    return w->log->v.states[p->idx].state <= HEDDLE_LOG_MEMORY
               ? STATE_FIRST + w->log->v.states[p->idx].state
               : STATE_IDLE;
}

/* What goes on at a track from now on: `p`, or nothing. */
static void put_now(const struct prv *w, const struct heddle_span *p,
                    const struct heddle_span *before, int64_t t)
{
    const struct heddle_log_view *v = &w->log->v;
    const struct heddle_log_event *e;

    if (before->kind == HEDDLE_SPAN_STATE)
        return;
    put_event(w, before->track, t);
    if (before->kind == HEDDLE_SPAN_MOVE) {
        e = p == NULL ? NULL : &v->events[p->idx];
        put_value(w, TYPE_MOVE, e == NULL ? 0 : (uint64_t)e->kind - HEDDLE_LOG_FETCH + 1);
        put_value(w, TYPE_BYTES, e == NULL ? 0 : e->x);
    } else {
        put_value(w, TYPE_KERNEL, p == NULL ? 0 : (uint64_t)v->tasks[p->idx].kernel + 1);
        put_value(w, TYPE_TASK, p == NULL ? 0 : v->tasks[p->idx].id);
    }
    fputc('\n', w->f);
}

static void put_edge(const struct prv *w, size_t i, int64_t t)
{
    const struct heddle_pair *e = &w->s.edge[i];
    const struct heddle_span *p = heddle_edge_span(&w->s, e), *outer = NULL;
    uint32_t *top = &w->top[p->track];
    const uint32_t me = (uint32_t)(p - w->s.span);

    if (heddle_edge_is_end(e)) {
        /* At one moment the outer one may end first: take what is on top. */
        if (*top != 0)
            *top = w->below[*top - 1];
        if (*top != 0 && w->s.span[*top - 1].kind != HEDDLE_SPAN_STATE)
            outer = &w->s.span[*top - 1];
        put_now(w, outer, p, t);
        return;
    }
    if (*top == 0 && p->end_ns > p->start_ns) {
        fputs("1:", w->f);
        put_place(w, p->track);
        fprintf(w->f, ":%lld:%lld:%u\n", (long long)(t - w->s.base_ns),
                (long long)(p->end_ns - w->s.base_ns), span_state(w, p));
    }
    w->below[me] = *top;
    *top = me + 1;
    put_now(w, p, p, t);
}

static void put_dep(const struct prv *w, size_t i, int64_t t)
{
    const struct heddle_log_dep *d = &w->log->v.deps[i];
    const struct heddle_log_task *tasks = w->log->v.tasks;
    const struct heddle_log_task *p = &tasks[heddle_log_find_task(w->log, d->pred)];
    const struct heddle_log_task *s = &tasks[heddle_log_find_task(w->log, d->succ)];
    const long long send = (long long)(t - w->s.base_ns);
    const long long recv = (long long)(s->start_ns - w->s.base_ns);

    fputs("3:", w->f);
    put_place(w, p->lane);
    fprintf(w->f, ":%lld:%lld:", send, send);
    put_place(w, s->lane);
    fprintf(w->f, ":%lld:%lld:0:0\n", recv, recv);
}

static void put_line(const struct prv *w, const struct heddle_pair *q)
{
    const struct heddle_log_view *v = &w->log->v;
    const size_t i = (size_t)(q->idx & ((UINT64_C(1) << LINE_SHIFT) - 1));
    const int64_t t = heddle_edge_time(q);

    switch ((enum line)(q->idx >> LINE_SHIFT)) {
    case LINE_EDGE: put_edge(w, i, t); return;
    case LINE_DEP: put_dep(w, i, t); return;
    case LINE_EVENT:
        put_event(w, v->events[i].lane, t);
        put_value(w, (uint64_t)TYPE_MEMORY + v->events[i].b, v->events[i].x);
        break;
    case LINE_MARK:
        put_event(w, v->marks[i].lane, t);
        put_value(w, TYPE_MARK, (uint64_t)v->marks[i].phase + 1);
        break;
    case LINE_READY:
        put_event(w, 0, t);
        put_value(w, TYPE_READY, w->ready[i].idx);
        break;
    }
    fputc('\n', w->f);
}

/* ---- lines ---- */

static void add_line(struct prv *w, enum line kind, uint64_t key, size_t i)
{
    HEDDLE_ASSERT(w->n < w->cap);
    w->p[w->n].key = key;
    w->p[w->n++].idx = (uint64_t)kind << LINE_SHIFT | i;
}

static void add_deps(struct prv *w)
{
    const struct heddle_log_view *v = &w->log->v;

    for (size_t i = 0; i < v->ndeps; i++) {
        const size_t p = heddle_log_find_task(w->log, v->deps[i].pred);
        const size_t s = heddle_log_find_task(w->log, v->deps[i].succ);
        int64_t t;

        if (p == SIZE_MAX || s == SIZE_MAX || v->tasks[p].lane == HEDDLE_LOG_NO_LANE ||
            v->tasks[s].lane == HEDDLE_LOG_NO_LANE)
            continue;
        t = v->tasks[p].end_ns;
        if (t > v->tasks[s].start_ns)
            t = v->tasks[s].start_ns;
        add_line(w, LINE_DEP, heddle_time_key(t), i);
    }
}

static void add_lines(struct prv *w, unsigned flags)
{
    const struct heddle_log_view *v = &w->log->v;

    for (size_t i = 0; i < 2 * w->s.n; i++)
        add_line(w, LINE_EDGE, w->s.edge[i].key, i);
    for (size_t i = 0; i < v->nevents; i++)
        if (heddle_event_is_memory(&v->events[i]))
            add_line(w, LINE_EVENT, heddle_time_key(v->events[i].t_ns), i);
    for (size_t i = 0; i < v->nmarks; i++)
        add_line(w, LINE_MARK, heddle_time_key(v->marks[i].t_ns), i);
    for (size_t i = 0; i < w->nready; i++)
        add_line(w, LINE_READY, w->ready[i].key, i);
    if ((flags & HEDDLE_LOG_EXPORT_DEPS) != 0)
        add_deps(w);
    heddle_sort_pairs(w->p, w->p + w->cap, w->n);
}

static void put_header(const struct prv *w)
{
    const time_t when = (time_t)(w->log->v.wall_ns / HEDDLE_NS_PER_S % (UINT64_C(1) << 40));
    const size_t n = ntracks(w);
    struct tm tm = {0};

    (void)gmtime_r(&when, &tm);
    fprintf(w->f, "#Paraver (%02d/%02d/%02d at %02d:%02d):%lld_ns:", tm.tm_mday, tm.tm_mon + 1,
            tm.tm_year % 100, tm.tm_hour, tm.tm_min, (long long)(w->s.last_ns - w->s.base_ns));
    fprintf(w->f, "1(%zu):1:1(%zu:1)\n", n, n);
}

static heddle_status prv_write(struct prv *w, unsigned flags)
{
    const struct heddle_log_view *v = &w->log->v;

    HEDDLE_TRY(heddle_spans_init(&w->s, w->log, flags));
    HEDDLE_TRY(heddle_ready_curve(w->log, &w->ready, &w->nready));
    w->cap = 2 * w->s.n + v->nevents + v->nmarks + w->nready + v->ndeps + 1;
    w->p = heddle_zalloc(w->log->a, 2 * w->cap, sizeof *w->p);
    w->top = heddle_zalloc(w->log->a, ntracks(w) + 1, sizeof *w->top);
    w->below = heddle_zalloc(w->log->a, w->s.n + 1, sizeof *w->below);
    if (w->p == NULL || w->top == NULL || w->below == NULL)
        return HEDDLE_ENOMEM;
    put_header(w);
    add_lines(w, flags);
    for (size_t i = 0; i < w->n; i++)
        put_line(w, &w->p[i]);
    return HEDDLE_OK;
}

static heddle_status prv_run(const heddle_log *log, FILE *out, unsigned flags)
{
    struct prv w = {.log = log, .f = out};
    const heddle_status st = prv_write(&w, flags);

    heddle_free(log->a, w.p, 2 * w.cap * sizeof *w.p);
    heddle_free(log->a, w.top, (ntracks(&w) + 1) * sizeof *w.top);
    heddle_free(log->a, w.below, (w.s.n + 1) * sizeof *w.below);
    heddle_ready_free(log, w.ready);
    heddle_spans_fini(&w.s, log);
    return st;
}

/* ---- names ---- */

/* A name is the rest of its line. */
static void put_name(FILE *f, const char *s)
{
    for (; *s != '\0'; s++)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '_' : *s, f);
    fputc('\n', f);
}

static void put_type(FILE *f, uint64_t type, const char *name)
{
    fprintf(f, "\nEVENT_TYPE\n0 %" PRIu64 " ", type);
    put_name(f, name);
}

static void put_values(FILE *f, const struct heddle_log_view *v)
{
    put_type(f, TYPE_KERNEL, "Kernel");
    fputs("VALUES\n0 none\n", f);
    for (size_t i = 0; i < v->nkernels; i++) {
        fprintf(f, "%zu ", i + 1);
        put_name(f, v->kernels[i].name);
    }
    put_type(f, TYPE_TASK, "Task");
    put_type(f, TYPE_MOVE, "Transfer");
    fputs("VALUES\n0 none\n", f);
    for (unsigned i = HEDDLE_LOG_FETCH; i <= HEDDLE_LOG_EVICT; i++)
        fprintf(f, "%u %s\n", i - HEDDLE_LOG_FETCH + 1, heddle_log_event_name(i));
    put_type(f, TYPE_BYTES, "Bytes of the transfer");
    put_type(f, TYPE_READY, "Ready tasks");
    put_type(f, TYPE_MARK, "Mark");
    fputs("VALUES\n1 point\n2 begin\n3 end\n", f);
}

static heddle_status pcf_run(const heddle_log *log, FILE *f, unsigned flags)
{
    const struct heddle_log_view *v = &log->v;
    char name[HEDDLE_SPAN_NAME];
    struct heddle_spans s;

    HEDDLE_TRY(heddle_spans_init(&s, log, flags));
    fputs("DEFAULT_OPTIONS\n\nLEVEL THREAD\nUNITS NANOSEC\n\nSTATES\n"
          "0 Idle\n1 Running\n2 Transfer\n",
          f);
    for (unsigned i = 0; i <= HEDDLE_LOG_MEMORY; i++)
        fprintf(f, "%u Between tasks: %s\n", STATE_FIRST + i, heddle_log_state_name(i));
    put_values(f, v);
    for (uint32_t i = 0; i < HEDDLE_SPAN_NODES; i++) {
        if ((s.node[i] & HEDDLE_NODE_MEMORY) == 0)
            continue;
        fprintf(f, "\nEVENT_TYPE\n0 %u Bytes in use: ", TYPE_MEMORY + i);
        put_name(f, heddle_span_node(v, i, name, sizeof name));
    }
    heddle_spans_fini(&s, log);
    return HEDDLE_OK;
}

static heddle_status row_run(const heddle_log *log, FILE *f, unsigned flags)
{
    static const char *const level[] = {"CPU", "THREAD"};
    const struct heddle_log_view *v = &log->v;
    char name[HEDDLE_SPAN_NAME];
    struct heddle_spans s;

    HEDDLE_TRY(heddle_spans_init(&s, log, flags));
    for (unsigned k = 0; k < 2; k++) {
        fprintf(f, "LEVEL %s SIZE %zu\n", level[k], v->nlanes + s.nlinks);
        for (size_t i = 0; i < v->nlanes; i++)
            put_name(f, v->lanes[i].name);
        for (uint32_t i = 0; i < s.nlinks; i++)
            put_name(f, heddle_span_link_name(v, &s.link[i], name));
        fputc('\n', f);
    }
    fputs("LEVEL NODE SIZE 1\nheddle\n", f);
    heddle_spans_fini(&s, log);
    return HEDDLE_OK;
}

static const char *const parts[] = {".pcf", ".row", NULL};
static heddle_export_fn *const run_part[] = {pcf_run, row_run};

const struct heddle_export_ops heddle_export_paraver = {
    .format =
        {
            .name = "paraver",
            .help = "Paraver: .prv, with .pcf and .row next to it",
            .parts = parts,
        },
    .run = prv_run,
    .run_part = run_part,
};
