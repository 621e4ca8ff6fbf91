/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_paje: the Paje text format, for ViTE, pajeng and StarVZ.
 *
 * Structure  containers: the run, and in it one per lane and one per memory
 *            node. Tasks are states of type ST with one value per kernel,
 *            pushed and popped, so that nested tasks show; what a worker does
 *            between them is a second state type WS; dependencies are links
 *            between lanes, transfers links between nodes, marks are events.
 *            Bytes in use (nodes) and ready tasks (run) are variables.
 * Order      Paje wants lines in order of time. The list of lines is built in
 *            the order they have at one moment (that of the spans first), and
 *            sorted by time, stable.
 * Times      seconds since the start of the log, or since the first line when
 *            that is earlier (Paje has no negative ones); nine decimals.
 */
#include <inttypes.h>

#include "base/assert.h"
#include "trace/export.h"
#include "trace/spans.h"

/* A line is a kind in the top byte and an index below it. */
enum line {
    LINE_EDGE, /* of tasks and states, edge[] of the spans */
    LINE_START_LINK,
    LINE_END_LINK,
    LINE_START_MOVE,
    LINE_END_MOVE,
    LINE_MARK,
    LINE_MEMORY,
    LINE_READY,
};

#define LINE_SHIFT 56

struct lines {
    const heddle_log *log;
    struct heddle_spans s;
    struct heddle_pair *ready;
    size_t nready;
    struct heddle_pair *p;
    size_t n;
    size_t cap;
};

static const char *const header[] = {
    "PajeDefineContainerType 0\n%\tAlias string\n%\tType string\n"
    "%\tName string\n",
    "PajeDefineStateType 1\n%\tAlias string\n%\tType string\n"
    "%\tName string\n",
    "PajeDefineEventType 2\n%\tAlias string\n%\tType string\n"
    "%\tName string\n",
    "PajeDefineLinkType 3\n%\tAlias string\n%\tType string\n"
    "%\tStartContainerType string\n%\tEndContainerType string\n"
    "%\tName string\n",
    "PajeDefineEntityValue 4\n%\tAlias string\n%\tType string\n"
    "%\tName string\n%\tColor color\n",
    "PajeCreateContainer 5\n%\tTime date\n%\tAlias string\n%\tType string\n"
    "%\tContainer string\n%\tName string\n",
    "PajeDestroyContainer 6\n%\tTime date\n%\tName string\n%\tType string\n",
    "PajePushState 7\n%\tTime date\n%\tType string\n%\tContainer string\n"
    "%\tValue string\n",
    "PajePopState 8\n%\tTime date\n%\tType string\n%\tContainer string\n",
    "PajeStartLink 9\n%\tTime date\n%\tType string\n%\tContainer string\n"
    "%\tValue string\n%\tStartContainer string\n%\tKey string\n",
    "PajeEndLink 10\n%\tTime date\n%\tType string\n%\tContainer string\n"
    "%\tValue string\n%\tEndContainer string\n%\tKey string\n",
    "PajeNewEvent 11\n%\tTime date\n%\tType string\n%\tContainer string\n"
    "%\tValue string\n",
    "PajeDefineVariableType 12\n%\tAlias string\n%\tType string\n"
    "%\tName string\n%\tColor color\n",
    "PajeSetVariable 13\n%\tTime date\n%\tType string\n"
    "%\tContainer string\n%\tValue double\n",
};

static void put_time(FILE *f, unsigned event, int64_t ns)
{
    fprintf(f, "%u %lld.%09lld", event, (long long)(ns / 1000000000), (long long)(ns % 1000000000));
}

/* The format has no escapes: quotes and control characters are replaced. */
static void put_quoted(FILE *f, const char *s)
{
    fputs(" \"", f);
    for (; *s != '\0'; s++)
        fputc((unsigned char)*s < 0x20 || *s == '"' || *s == 0x7f ? '_' : *s, f);
    fputc('"', f);
}

/* Hues far apart for neighbouring kernels, of one lightness. */
static void put_colour(FILE *f, uint32_t i)
{
    const unsigned hue = (unsigned)((i * UINT64_C(618)) % 1000) * 6;
    const unsigned part = hue / 1000, x = hue % 1000;
    const unsigned lo = 250, hi = 850;
    const unsigned up = lo + (hi - lo) * x / 1000, down = lo + hi - up;
    const unsigned r[6] = {hi, down, lo, lo, up, hi};
    const unsigned g[6] = {up, hi, hi, down, lo, lo};
    const unsigned b[6] = {lo, lo, up, hi, hi, down};

    fprintf(f, " \"0.%03u 0.%03u 0.%03u\"\n", r[part], g[part], b[part]);
}

static void put_values(FILE *f, const struct heddle_log_view *v)
{
    for (uint32_t i = 0; i < v->nkernels; i++) {
        fprintf(f, "4 K%u ST", (unsigned)i);
        put_quoted(f, v->kernels[i].name);
        put_colour(f, i);
    }
    for (unsigned i = 0; i <= HEDDLE_LOG_MEMORY; i++) {
        fprintf(f, "4 S%u WS", i);
        put_quoted(f, heddle_log_state_name(i));
        fprintf(f, " \"0.%03u 0.%03u 0.%03u\"\n", 900 - 90 * i, 900 - 90 * i, 900 - 60 * i);
    }
}

static void put_containers(FILE *f, const struct lines *l)
{
    const struct heddle_log_view *v = &l->log->v;
    char name[HEDDLE_SPAN_NAME];

    put_time(f, 5, 0);
    fputs(" R CR 0 \"heddle\"\n", f);
    for (uint32_t i = 0; i < v->nlanes; i++) {
        put_time(f, 5, 0);
        fprintf(f, " L%u CL R", (unsigned)i);
        put_quoted(f, v->lanes[i].name);
        fputc('\n', f);
    }
    for (uint32_t i = 0; i < HEDDLE_SPAN_NODES; i++) {
        if ((l->s.node[i] & HEDDLE_NODE_USED) == 0)
            continue;
        put_time(f, 5, 0);
        fprintf(f, " N%u CN R", (unsigned)i);
        put_quoted(f, heddle_span_node(v, i, name, sizeof name));
        fputc('\n', f);
    }
}

static void put_types(FILE *f, const struct lines *l)
{
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++)
        fprintf(f, "%%EventDef %s%%EndEventDef\n", header[i]);
    fputs("0 CR 0 \"Run\"\n0 CL CR \"Lane\"\n0 CN CR \"Memory\"\n"
          "1 ST CL \"Task\"\n1 WS CL \"Between tasks\"\n"
          "2 EM CL \"Mark\"\n3 LD CR CL CL \"Dependency\"\n"
          "3 LX CR CN CN \"Transfer\"\n"
          "12 VM CN \"Bytes in use\" \"0.200 0.400 0.800\"\n"
          "12 VR CR \"Ready tasks\" \"0.800 0.400 0.200\"\n",
          f);
    put_values(f, &l->log->v);
    put_containers(f, l);
}

static void add_line(struct lines *l, enum line kind, uint64_t key, size_t i)
{
    HEDDLE_ASSERT(l->n < l->cap);
    l->p[l->n].key = key;
    l->p[l->n++].idx = (uint64_t)kind << LINE_SHIFT | i;
}

static bool is_shown(const struct heddle_log_view *v, const struct heddle_span *p)
{
    return p->kind != HEDDLE_SPAN_STATE || v->states[p->idx].state <= HEDDLE_LOG_MEMORY;
}

/* Tasks and states; transfers are drawn as arrows, uncut. */
static void add_edges(struct lines *l)
{
    for (size_t i = 0; i < 2 * l->s.n; i++) {
        const struct heddle_span *p = heddle_edge_span(&l->s, &l->s.edge[i]);

        if (p->kind != HEDDLE_SPAN_MOVE && is_shown(&l->log->v, p))
            add_line(l, LINE_EDGE, l->s.edge[i].key, i);
    }
}

static void add_rest(struct lines *l)
{
    const struct heddle_log_view *v = &l->log->v;
    struct heddle_span_link link;
    int64_t start, end;

    for (size_t i = 0; i < v->nmarks; i++)
        add_line(l, LINE_MARK, heddle_time_key(v->marks[i].t_ns), i);
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (heddle_event_is_memory(e)) {
            add_line(l, LINE_MEMORY, heddle_time_key(e->t_ns), i);
        } else if (heddle_event_move(e, &start, &end, &link)) {
            add_line(l, LINE_START_MOVE, heddle_time_key(start), i);
            add_line(l, LINE_END_MOVE, heddle_time_key(end), i);
        }
    }
    for (size_t i = 0; i < l->nready; i++)
        add_line(l, LINE_READY, l->ready[i].key, i);
}

/* The execution a link begins or ends at; NULL: none. */
static const struct heddle_log_task *link_task(const heddle_log *log, uint64_t id)
{
    const size_t i = heddle_log_find_task(log, id);

    return i == SIZE_MAX || log->v.tasks[i].lane == HEDDLE_LOG_NO_LANE ? NULL : &log->v.tasks[i];
}

static void add_links(struct lines *l)
{
    const struct heddle_log_view *v = &l->log->v;
    const struct heddle_log_task *p, *s;

    for (size_t i = 0; i < v->ndeps; i++) {
        p = link_task(l->log, v->deps[i].pred);
        s = link_task(l->log, v->deps[i].succ);
        if (p == NULL || s == NULL)
            continue;
        /* Clocks of two lanes may disagree a little: no arrow goes back. */
        add_line(l, LINE_START_LINK,
                 heddle_time_key(p->end_ns < s->start_ns ? p->end_ns : s->start_ns), i);
        add_line(l, LINE_END_LINK, heddle_time_key(s->start_ns), i);
    }
}

static void put_link(FILE *f, const struct lines *l, size_t i, int64_t t, bool is_start)
{
    const struct heddle_log_dep *d = &l->log->v.deps[i];
    const struct heddle_log_task *x = link_task(l->log, is_start ? d->pred : d->succ);

    put_time(f, is_start ? 9 : 10, t);
    fprintf(f, " LD R dependency L%u D%zu\n", (unsigned)x->lane, i);
}

static void put_move(FILE *f, const struct lines *l, size_t i, int64_t t, bool is_start)
{
    const struct heddle_log_event *e = &l->log->v.events[i];
    struct heddle_span_link link;
    int64_t start, end;

    (void)heddle_event_move(e, &start, &end, &link);
    put_time(f, is_start ? 9 : 10, t);
    fprintf(f, " LX R %s N%u X%zu\n", heddle_log_event_name(e->kind),
            (unsigned)(is_start ? link.src : link.dst), i);
}

static void put_edge(FILE *f, const struct lines *l, size_t i, int64_t t)
{
    const struct heddle_log_view *v = &l->log->v;
    const struct heddle_pair *e = &l->s.edge[i];
    const struct heddle_span *p = heddle_edge_span(&l->s, e);
    const bool is_task = p->kind == HEDDLE_SPAN_TASK;

    put_time(f, heddle_edge_is_end(e) ? 8 : 7, t);
    fprintf(f, " %s L%u", is_task ? "ST" : "WS", (unsigned)p->track);
    if (!heddle_edge_is_end(e))
        fprintf(f, " %c%u", is_task ? 'K' : 'S',
                (unsigned)(is_task ? v->tasks[p->idx].kernel : v->states[p->idx].state));
    fputc('\n', f);
}

static void put_line(FILE *f, const struct lines *l, const struct heddle_pair *q)
{
    const struct heddle_log_view *v = &l->log->v;
    const size_t i = (size_t)(q->idx & ((UINT64_C(1) << LINE_SHIFT) - 1));
    const int64_t t = heddle_edge_time(q) - l->s.base_ns;

    switch ((enum line)(q->idx >> LINE_SHIFT)) {
    case LINE_EDGE: put_edge(f, l, i, t); break;
    case LINE_START_LINK: put_link(f, l, i, t, true); break;
    case LINE_END_LINK: put_link(f, l, i, t, false); break;
    case LINE_START_MOVE: put_move(f, l, i, t, true); break;
    case LINE_END_MOVE: put_move(f, l, i, t, false); break;
    case LINE_MARK:
        put_time(f, 11, t);
        fprintf(f, " EM L%u", (unsigned)v->marks[i].lane);
        put_quoted(f, v->marks[i].text);
        fputc('\n', f);
        break;
    case LINE_MEMORY:
        put_time(f, 13, t);
        fprintf(f, " VM N%u %" PRIu64 "\n", (unsigned)v->events[i].b, v->events[i].x);
        break;
    case LINE_READY:
        put_time(f, 13, t);
        fprintf(f, " VR R %" PRIu64 "\n", l->ready[i].idx);
        break;
    }
}

static void put_end(FILE *f, const struct lines *l)
{
    const int64_t t = l->s.last_ns - l->s.base_ns;

    for (uint32_t i = 0; i < l->log->v.nlanes; i++) {
        put_time(f, 6, t);
        fprintf(f, " L%u CL\n", (unsigned)i);
    }
    for (uint32_t i = 0; i < HEDDLE_SPAN_NODES; i++) {
        if ((l->s.node[i] & HEDDLE_NODE_USED) == 0)
            continue;
        put_time(f, 6, t);
        fprintf(f, " N%u CN\n", (unsigned)i);
    }
    put_time(f, 6, t);
    fputs(" R CR\n", f);
}

static heddle_status paje_write(struct lines *l, FILE *out, unsigned flags)
{
    const struct heddle_log_view *v = &l->log->v;

    HEDDLE_TRY(heddle_spans_init(&l->s, l->log, flags));
    HEDDLE_TRY(heddle_ready_curve(l->log, &l->ready, &l->nready));
    l->cap = 2 * (l->s.n + v->ndeps + v->nevents) + v->nmarks + l->nready + 1;
    l->p = heddle_zalloc(l->log->a, 2 * l->cap, sizeof *l->p);
    if (l->p == NULL)
        return HEDDLE_ENOMEM;
    add_edges(l);
    add_rest(l);
    if ((flags & HEDDLE_LOG_EXPORT_DEPS) != 0)
        add_links(l);
    heddle_sort_pairs(l->p, l->p + l->cap, l->n);
    put_types(out, l);
    for (size_t i = 0; i < l->n; i++)
        put_line(out, l, &l->p[i]);
    put_end(out, l);
    return HEDDLE_OK;
}

static heddle_status paje_run(const heddle_log *log, FILE *out, unsigned flags)
{
    struct lines l = {.log = log};
    const heddle_status st = paje_write(&l, out, flags);

    heddle_free(log->a, l.p, 2 * l.cap * sizeof *l.p);
    heddle_ready_free(log, l.ready);
    heddle_spans_fini(&l.s, log);
    return st;
}

const struct heddle_export_ops heddle_export_paje = {
    .format =
        {
            .name = "paje",
            .help = "Paje text: ViTE, pajeng, StarVZ",
        },
    .run = paje_run,
};
