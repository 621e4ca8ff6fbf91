/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_paje: the Paje text format, for ViTE, pajeng and StarVZ.
 *
 * Structure  containers: the run, and one per lane in it. Tasks are states of
 *            type ST with one value per kernel, pushed and popped, so that
 *            nested tasks show; what a worker does between them is a second
 *            state type WS; dependencies are links, marks are events.
 * Order      Paje wants lines in order of time. At one moment states that end
 *            come first, then those that begin, outer ones before inner ones; a
 *            state without length begins and ends there. The list of lines is
 *            built in that order and sorted by time, stable.
 * Times      seconds since the start of the log, or since the first line when
 *            that is earlier (Paje has no negative ones); nine decimals.
 */
#include "base/assert.h"
#include "trace/export.h"
#include "trace/log.h"

/* A line is a kind in the top byte and an index below it. */
enum line {
    LINE_PUSH_TASK,
    LINE_POP_TASK,
    LINE_PUSH_STATE,
    LINE_POP_STATE,
    LINE_START_LINK,
    LINE_END_LINK,
    LINE_MARK,
};

#define LINE_SHIFT 56

struct lines {
    const heddle_log *log;
    struct heddle_pair *p;
    size_t n;
    int64_t base; /* time 0 of the output: of the log, or the first line's */
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
};

static void put_time(FILE *f, unsigned event, int64_t ns)
{
    fprintf(f, "%u %lld.%09lld", event, (long long)(ns / 1000000000),
            (long long)(ns % 1000000000));
}

/* The format has no escapes: quotes and control characters are replaced. */
static void put_quoted(FILE *f, const char *s)
{
    fputs(" \"", f);
    for (; *s != '\0'; s++)
        fputc((unsigned char)*s < 0x20 || *s == '"' || *s == 0x7f ? '_' : *s,
              f);
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

static void put_types(FILE *f, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++)
        fprintf(f, "%%EventDef %s%%EndEventDef\n", header[i]);
    fputs("0 CR 0 \"Run\"\n0 CL CR \"Lane\"\n"
          "1 ST CL \"Task\"\n1 WS CL \"Between tasks\"\n"
          "2 EM CL \"Mark\"\n3 LD CR CL CL \"Dependency\"\n",
          f);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        fprintf(f, "4 K%u ST", (unsigned)i);
        put_quoted(f, v->kernels[i].name);
        put_colour(f, i);
    }
    for (unsigned i = 0; i <= HEDDLE_LOG_MEMORY; i++) {
        fprintf(f, "4 S%u WS", i);
        put_quoted(f, heddle_log_state_name(i));
        fprintf(f, " \"0.%03u 0.%03u 0.%03u\"\n", 900 - 90 * i, 900 - 90 * i,
                900 - 60 * i);
    }
    put_time(f, 5, 0);
    fputs(" R CR 0 \"heddle\"\n", f);
    for (uint32_t i = 0; i < v->nlanes; i++) {
        put_time(f, 5, 0);
        fprintf(f, " L%u CL R", (unsigned)i);
        put_quoted(f, v->lanes[i].name);
        fputc('\n', f);
    }
}

static int64_t line_time(const struct heddle_pair *q)
{
    return (int64_t)heddle_time_key((int64_t)q->key); /* its own inverse */
}

static bool is_shown(const struct heddle_log_state *s)
{
    return s->end_ns > s->start_ns && s->state <= HEDDLE_LOG_MEMORY;
}

static void add_line(struct lines *l, enum line kind, int64_t t, size_t i)
{
    l->p[l->n].key = heddle_time_key(t);
    l->p[l->n++].idx = (uint64_t)kind << LINE_SHIFT | i;
}

/* States that end where others may begin. */
static void add_ends(struct lines *l, const struct heddle_log_view *v,
                     unsigned flags)
{
    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].end_ns > v->tasks[i].start_ns)
            add_line(l, LINE_POP_TASK, v->tasks[i].end_ns, i);
    if ((flags & HEDDLE_LOG_EXPORT_STATES) == 0)
        return;
    for (size_t i = 0; i < v->nstates; i++)
        if (is_shown(&v->states[i]))
            add_line(l, LINE_POP_STATE, v->states[i].end_ns, i);
}

static void add_begins(struct lines *l, const struct heddle_log_view *v,
                       unsigned flags)
{
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (t->lane == HEDDLE_LOG_NO_LANE)
            break;
        add_line(l, LINE_PUSH_TASK, t->start_ns, i);
        if (t->end_ns == t->start_ns)
            add_line(l, LINE_POP_TASK, t->end_ns, i);
    }
    for (size_t i = 0; i < v->nmarks; i++)
        add_line(l, LINE_MARK, v->marks[i].t_ns, i);
    if ((flags & HEDDLE_LOG_EXPORT_STATES) == 0)
        return;
    for (size_t i = 0; i < v->nstates; i++)
        if (is_shown(&v->states[i]))
            add_line(l, LINE_PUSH_STATE, v->states[i].start_ns, i);
}

/* The execution a link begins or ends at; NULL: none. */
static const struct heddle_log_task *link_task(const heddle_log *log,
                                               uint64_t id)
{
    const size_t i = heddle_log_find_task(log, id);

    return i == SIZE_MAX || log->v.tasks[i].lane == HEDDLE_LOG_NO_LANE
               ? NULL
               : &log->v.tasks[i];
}

static void add_links(struct lines *l, const struct heddle_log_view *v)
{
    const struct heddle_log_task *p, *s;

    for (size_t i = 0; i < v->ndeps; i++) {
        p = link_task(l->log, v->deps[i].pred);
        s = link_task(l->log, v->deps[i].succ);
        if (p == NULL || s == NULL)
            continue;
        /* Clocks of two lanes may disagree a little: no arrow goes back. */
        add_line(l, LINE_START_LINK,
                 p->end_ns < s->start_ns ? p->end_ns : s->start_ns, i);
        add_line(l, LINE_END_LINK, s->start_ns, i);
    }
}

static void put_link(FILE *f, const struct lines *l, size_t i, int64_t t,
                     bool is_start)
{
    const struct heddle_log_dep *d = &l->log->v.deps[i];
    const struct heddle_log_task *x =
        link_task(l->log, is_start ? d->pred : d->succ);

    put_time(f, is_start ? 9 : 10, t);
    fprintf(f, " LD R 0 L%u D%zu\n", (unsigned)x->lane, i);
}

static void put_line(FILE *f, const struct lines *l,
                     const struct heddle_pair *q)
{
    const struct heddle_log_view *v = &l->log->v;
    const size_t i = (size_t)(q->idx & ((UINT64_C(1) << LINE_SHIFT) - 1));
    const int64_t t = line_time(q) - l->base;

    switch ((enum line)(q->idx >> LINE_SHIFT)) {
    case LINE_PUSH_TASK:
        put_time(f, 7, t);
        fprintf(f, " ST L%u K%u\n", (unsigned)v->tasks[i].lane,
                (unsigned)v->tasks[i].kernel);
        break;
    case LINE_POP_TASK:
        put_time(f, 8, t);
        fprintf(f, " ST L%u\n", (unsigned)v->tasks[i].lane);
        break;
    case LINE_PUSH_STATE:
        put_time(f, 7, t);
        fprintf(f, " WS L%u S%u\n", (unsigned)v->states[i].lane,
                (unsigned)v->states[i].state);
        break;
    case LINE_POP_STATE:
        put_time(f, 8, t);
        fprintf(f, " WS L%u\n", (unsigned)v->states[i].lane);
        break;
    case LINE_START_LINK: put_link(f, l, i, t, true); break;
    case LINE_END_LINK: put_link(f, l, i, t, false); break;
    case LINE_MARK:
        put_time(f, 11, t);
        fprintf(f, " EM L%u", (unsigned)v->marks[i].lane);
        put_quoted(f, v->marks[i].text);
        fputc('\n', f);
        break;
    }
}

static void put_end(FILE *f, const struct heddle_log_view *v, int64_t t)
{
    for (uint32_t i = 0; i < v->nlanes; i++) {
        put_time(f, 6, t);
        fprintf(f, " L%u CL\n", (unsigned)i);
    }
    put_time(f, 6, t);
    fputs(" R CR\n", f);
}

static heddle_status paje_run(const heddle_log *log, FILE *out, unsigned flags)
{
    const struct heddle_log_view *v = &log->v;
    const size_t cap = 2 * (v->ntasks + v->nstates + v->ndeps) + v->nmarks + 1;
    struct lines l = {.log = log};
    int64_t last = 0;

    l.p = heddle_zalloc(log->a, 2 * cap, sizeof *l.p);
    if (l.p == NULL)
        return HEDDLE_ENOMEM;
    put_types(out, v);
    add_ends(&l, v, flags);
    add_begins(&l, v, flags);
    if ((flags & HEDDLE_LOG_EXPORT_DEPS) != 0)
        add_links(&l, v);
    HEDDLE_ASSERT(l.n <= cap);
    heddle_sort_pairs(l.p, l.p + cap, l.n);
    if (l.n > 0) {
        l.base = line_time(&l.p[0]) < 0 ? line_time(&l.p[0]) : 0;
        last = line_time(&l.p[l.n - 1]) - l.base;
    }
    for (size_t i = 0; i < l.n; i++)
        put_line(out, &l, &l.p[i]);
    put_end(out, v, last);
    heddle_free(log->a, l.p, 2 * cap * sizeof *l.p);
    return HEDDLE_OK;
}

const struct heddle_export_ops heddle_export_paje = {
    .format =
        {
            .name = "paje",
            .help = "Paje text: ViTE, pajeng, StarVZ",
        },
    .run = paje_run,
};
