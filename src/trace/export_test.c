/* SPDX-License-Identifier: BSD-3-Clause */
/* Exporters: the output is well formed, complete and in order. */
#include <ctype.h>
#include <sys/stat.h>

#include "trace/sample_test.h"
#include "trace/spans.h"

/* ---- a JSON checker: accepts exactly one value ---- */

static const char *json_value(const char *p, int depth);

static const char *json_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static const char *json_string(const char *p)
{
    CHECK(*p == '"');
    for (p++; *p != '"'; p++) {
        CHECK((unsigned char)*p >= 0x20);
        if (*p != '\\')
            continue;
        p++;
        CHECK(strchr("\"\\/bfnrtu", *p) != NULL && *p != '\0');
        if (*p == 'u')
            for (int i = 0; i < 4; i++)
                CHECK(isxdigit((unsigned char)*++p));
    }
    return p + 1;
}

static const char *json_list(const char *p, int depth, char close)
{
    p = json_space(p + 1);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = json_space(json_string(p));
            CHECK(*p == ':');
            p++;
        }
        p = json_space(json_value(p, depth + 1));
        if (*p == close)
            return p + 1;
        CHECK(*p == ',');
        p = json_space(p + 1);
    }
}

static const char *json_value(const char *p, int depth)
{
    char *end;

    CHECK(depth < 20);
    p = json_space(p);
    if (*p == '{')
        return json_list(p, depth, '}');
    if (*p == '[')
        return json_list(p, depth, ']');
    if (*p == '"')
        return json_string(p);
    if (strncmp(p, "true", 4) == 0 || strncmp(p, "null", 4) == 0)
        return p + 4;
    if (strncmp(p, "false", 5) == 0)
        return p + 5;
    CHECK(*p == '-' || isdigit((unsigned char)*p));
    (void)strtod(p, &end);
    CHECK(end > p);
    return end;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

/* The sample, exported; free() the text. */
static char *export_sample_bytes(const char *format, unsigned flags, struct heddle_log_view *v,
                                 size_t *bytes_out)
{
    size_t bytes;
    uint8_t *p = sample_bytes(30, 700, &bytes);
    heddle_log *log;
    char path[256], *text;

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    free(p);
    temp_path(path, sizeof path);
    CHECK_OK(heddle_log_export(log, format, path, flags));
    text = (char *)slurp(path, bytes_out);
    *v = *heddle_log_get_view(log); /* counts only: the log goes away */
    heddle_log_close(log);
    unlink(path);
    for (unsigned i = 0; i < 3; i++) {
        const char *const ext[] = {".pcf", ".row", ".platform.rec"};
        char part[300];

        snprintf(part, sizeof part, "%s%s", path, ext[i]);
        unlink(part);
    }
    return text;
}

static char *export_sample(const char *format, unsigned flags, struct heddle_log_view *v)
{
    size_t bytes;

    return export_sample_bytes(format, flags, v, &bytes);
}

TEST(chrome)
{
    struct heddle_log_view v;
    char *text;

    for (unsigned flags = 0; flags < 4; flags++) {
        text = export_sample("chrome", flags, &v);
        CHECK(*json_space(json_value(text, 0)) == '\0');
        CHECK_EQ(count(text, "\"cat\":\"task\""), v.ntasks);
        CHECK_EQ(count(text, "\"thread_name\""), v.nlanes + 1); /* a link */
        CHECK_EQ(count(text, "\"cat\":\"transfer\""), v.ntasks);
        CHECK_EQ(count(text, "\"name\":\"memory\""), v.ntasks);
        CHECK(count(text, "\"name\":\"ready\"") > v.ntasks / 2);
        CHECK_EQ(count(text, "\"ph\":\"s\""), flags & 1 ? v.ndeps : 0);
        CHECK_EQ(count(text, "\"ph\":\"f\""), flags & 1 ? v.ndeps : 0);
        CHECK_EQ(count(text, "\"cat\":\"mark\""), v.nmarks);
        CHECK((count(text, "\"cat\":\"state\"") > 0) == ((flags & 2) != 0));
        CHECK(strstr(text, "pot\\\"rf\\n") != NULL);
        CHECK(strstr(text, "\"scheduler\":\"ws\"") != NULL);
        free(text);
    }
}

/* ---- a Paje checker ---- */

struct paje {
    unsigned nfields[16]; /* of each event, 0: not defined */
    char name[16][40];
    double now;
    int depth[2][8]; /* open states of type ST and WS, per lane */
    size_t npush[2], nstart[2], nend[2], nmarks, ncreate, ndestroy, nvars[2];
};

/* Splits a line into words; quotes group. Returns how many. */
static unsigned words(char *line, char *out[16])
{
    unsigned n = 0;

    for (char *p = line; *p != '\0';) {
        while (*p == ' ' || *p == '\t')
            *p++ = '\0';
        if (*p == '\0')
            break;
        CHECK(n < 16);
        if (*p == '"') {
            out[n++] = ++p;
            p = strchr(p, '"');
            CHECK(p != NULL);
            *p++ = '\0';
            CHECK(*p == ' ' || *p == '\0');
        } else {
            out[n++] = p;
            while (*p != '\0' && *p != ' ' && *p != '\t')
                p++;
        }
    }
    return n;
}

/* "%EventDef name id", "% field type", "%EndEventDef" */
static void paje_define(struct paje *s, char *w[16], unsigned n, int *open)
{
    if (strcmp(w[0], "%EventDef") == 0) {
        CHECK(n == 3 && *open < 0);
        *open = (int)strtol(w[2], NULL, 10);
        CHECK(*open >= 0 && *open < 16 && s->nfields[*open] == 0);
        snprintf(s->name[*open], sizeof s->name[0], "%s", w[1]);
        s->nfields[*open] = 1;
    } else if (strcmp(w[0], "%EndEventDef") == 0) {
        CHECK(*open >= 0);
        *open = -1;
    } else {
        CHECK(strcmp(w[0], "%") == 0 && n == 3 && *open >= 0);
        CHECK(strcmp(w[2], "string") == 0 || strcmp(w[2], "date") == 0 ||
              strcmp(w[2], "color") == 0 || strcmp(w[2], "double") == 0);
        s->nfields[*open]++;
    }
}

static void paje_event(struct paje *s, char *w[16], unsigned n)
{
    const int id = (int)strtol(w[0], NULL, 10);
    const char *name;
    double t;
    unsigned ws, lane;

    CHECK(id >= 0 && id < 16 && s->nfields[id] > 0);
    CHECK_EQ(n, s->nfields[id]);
    name = s->name[id];
    if (strncmp(name, "PajeDefine", 10) == 0)
        return;
    t = strtod(w[1], NULL);
    CHECK(t >= s->now); /* in order of time */
    s->now = t;
    s->ncreate += strcmp(name, "PajeCreateContainer") == 0;
    s->ndestroy += strcmp(name, "PajeDestroyContainer") == 0;
    s->nstart[strcmp(w[2], "LX") == 0] += strcmp(name, "PajeStartLink") == 0;
    s->nend[strcmp(w[2], "LX") == 0] += strcmp(name, "PajeEndLink") == 0;
    s->nvars[strcmp(w[2], "VM") == 0] += strcmp(name, "PajeSetVariable") == 0;
    s->nmarks += strcmp(name, "PajeNewEvent") == 0;
    if (strstr(name, "State") == NULL)
        return;
    ws = strcmp(w[2], "WS") == 0;
    CHECK(w[3][0] == 'L');
    lane = (unsigned)strtoul(w[3] + 1, NULL, 10);
    CHECK(lane < 8);
    if (strcmp(name, "PajePushState") == 0) {
        s->npush[ws]++;
        s->depth[ws][lane]++;
    } else {
        CHECK(--s->depth[ws][lane] >= 0);
    }
}

static void paje_check(char *text, struct paje *s)
{
    char *w[16], *next;
    int open = -1;
    unsigned n;

    memset(s, 0, sizeof *s);
    for (char *line = text; *line != '\0'; line = next) {
        next = strchr(line, '\n');
        CHECK(next != NULL);
        *next++ = '\0';
        n = words(line, w);
        CHECK(n > 0);
        if (w[0][0] == '%')
            paje_define(s, w, n, &open);
        else
            paje_event(s, w, n);
    }
    for (unsigned i = 0; i < 16; i++)
        CHECK_EQ(s->depth[i / 8][i % 8], 0);
}

TEST(paje)
{
    struct heddle_log_view v;
    struct paje s;
    char *text;

    for (unsigned flags = 0; flags < 4; flags++) {
        text = export_sample("paje", flags, &v);
        CHECK(strstr(text, "\"pot_rf_\"") != NULL);
        paje_check(text, &s);
        CHECK_EQ(s.npush[0], v.ntasks);
        CHECK((s.npush[1] > 0) == ((flags & 2) != 0));
        CHECK_EQ(s.nstart[0], flags & 1 ? v.ndeps : 0);
        CHECK_EQ(s.nend[0], s.nstart[0]);
        CHECK_EQ(s.nstart[1], v.ntasks); /* one transfer each */
        CHECK_EQ(s.nend[1], v.ntasks);
        CHECK_EQ(s.nvars[1], v.ntasks); /* bytes in use */
        CHECK(s.nvars[0] > v.ntasks / 2);
        CHECK_EQ(s.nmarks, v.nmarks);
        /* The run, lanes, and nodes 0, 1 and the one of memory. */
        CHECK_EQ(s.ncreate, v.nlanes + 4);
        CHECK_EQ(s.ndestroy, s.ncreate);
        free(text);
    }
}

/* ---- a Perfetto checker ---- */

struct wire {
    const uint8_t *p, *end;
    unsigned field;
    uint64_t v; /* number, or bytes of the next */
    const uint8_t *bytes;
};

static uint64_t wire_varint(struct wire *w)
{
    uint64_t v = 0;

    for (unsigned shift = 0;; shift += 7) {
        CHECK(w->p < w->end && shift < 64);
        v |= (uint64_t)(*w->p & 0x7f) << shift;
        if ((*w->p++ & 0x80) == 0)
            return v;
    }
}

/* The next field; false at the end. */
static bool wire_next(struct wire *w)
{
    uint64_t tag;

    if (w->p == w->end)
        return false;
    tag = wire_varint(w);
    w->field = (unsigned)(tag >> 3);
    CHECK(w->field > 0);
    w->bytes = NULL;
    switch (tag & 7) {
    case 0: w->v = wire_varint(w); break;
    case 1:
        CHECK(w->end - w->p >= 8);
        memcpy(&w->v, w->p, 8);
        w->p += 8;
        break;
    case 2:
        w->v = wire_varint(w);
        CHECK(w->v <= (size_t)(w->end - w->p));
        w->bytes = w->p;
        w->p += w->v;
        break;
    default: CHECK(false);
    }
    return true;
}

static struct wire wire_inside(const struct wire *w)
{
    CHECK(w->bytes != NULL);
    return (struct wire){.p = w->bytes, .end = w->bytes + w->v};
}

struct perfetto {
    size_t npackets, nnames, ntracks, type[5], nflow, nflow_end;
    int64_t depth[64];
    uint64_t last[64]; /* time of a track below 64 */
    uint64_t now;
};

static void perfetto_event(struct perfetto *s, struct wire e, uint64_t t)
{
    uint64_t type = 0, track = 0, name = 0;

    while (wire_next(&e)) {
        type = e.field == 9 ? e.v : type;
        track = e.field == 11 ? e.v : track;
        name = e.field == 10 ? e.v : name;
        s->nflow += e.field == 47;
        s->nflow_end += e.field == 48;
    }
    CHECK(type >= 1 && type <= 4 && track > 0);
    s->type[type]++;
    CHECK(name <= s->nnames);
    CHECK((name != 0) == (type == 1));
    if (type > 2)
        return;
    CHECK(t >= s->now); /* slices by time */
    s->now = t;
    CHECK(track < 64);
    CHECK(t >= s->last[track]);
    s->last[track] = t;
    s->depth[track] += type == 1 ? 1 : -1;
    CHECK(s->depth[track] >= 0);
}

static void perfetto_packet(struct perfetto *s, struct wire p)
{
    uint64_t t = 0, flags = 0, sequence = 0;

    s->npackets++;
    while (wire_next(&p)) {
        struct wire in;

        t = p.field == 8 ? p.v : t;
        sequence = p.field == 10 ? p.v : sequence;
        flags = p.field == 13 ? p.v : flags;
        s->ntracks += p.field == 60;
        if (p.field == 11)
            perfetto_event(s, wire_inside(&p), t);
        if (p.field != 12)
            continue;
        CHECK_EQ(s->npackets, 1); /* names come first */
        for (in = wire_inside(&p); wire_next(&in);)
            s->nnames += in.field == 2;
    }
    CHECK_EQ(sequence, 1);
    CHECK_EQ(flags, s->npackets == 1 ? 1 : 2);
}

static void perfetto_check(const uint8_t *p, size_t n, struct perfetto *s)
{
    struct wire w = {.p = p, .end = p + n};

    memset(s, 0, sizeof *s);
    while (wire_next(&w)) {
        CHECK_EQ(w.field, 1);
        perfetto_packet(s, wire_inside(&w));
    }
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(s->depth[i], 0);
    CHECK_EQ(s->type[1], s->type[2]);
    CHECK_EQ(s->nflow, s->nflow_end);
}

TEST(perfetto)
{
    struct heddle_log_view v;
    struct perfetto s;
    size_t bytes;

    for (unsigned flags = 0; flags < 4; flags++) {
        uint8_t *p = (uint8_t *)export_sample_bytes("perfetto", flags, &v, &bytes);

        perfetto_check(p, bytes, &s);
        if ((flags & 2) == 0)
            CHECK_EQ(s.type[1], 2 * v.ntasks); /* tasks and transfers */
        else
            CHECK(s.type[1] > 2 * v.ntasks);
        CHECK_EQ(s.type[3], v.nmarks);
        CHECK(s.type[4] > v.ntasks); /* memory, ready tasks */
        CHECK_EQ(s.nflow, flags & 1 ? v.ndeps : 0);
        /* Lanes, nodes 0, 1 and 256, its memory, links, one link, ready. */
        CHECK_EQ(s.ntracks, v.nlanes + 3 + 1 + 2 + 1);
        free(p);
    }
}

/* ---- Paraver ---- */

TEST(paraver)
{
    struct heddle_log_view v;
    size_t n[4] = {0}, bytes;
    char *text, *line, *next;
    char path[256], part[300];
    int64_t now = 0, t;
    heddle_log *log;
    uint8_t *p;

    text = export_sample_bytes("paraver", 3, &v, &bytes);
    CHECK(strncmp(text, "#Paraver (", 10) == 0);
    for (line = strchr(text, '\n') + 1; *line != '\0'; line = next) {
        int64_t f[16] = {0};
        unsigned k = 0;

        next = strchr(line, '\n') + 1;
        for (char *q = line; q < next && k < 16; q++, k++)
            f[k] = strtoll(q, &q, 10);
        CHECK(f[0] >= 1 && f[0] <= 3);
        n[f[0]]++;
        CHECK(f[1] >= 1 && (size_t)f[1] <= v.nlanes + 1 && f[4] == f[1]);
        CHECK(f[2] == 1 && f[3] == 1);
        t = f[5];
        CHECK(t >= now);
        now = t;
        CHECK(f[0] != 1 || (k == 8 && f[6] > t));
        CHECK(f[0] != 2 || k >= 8);
        CHECK(f[0] != 3 || (k == 15 && f[11] >= t));
    }
    CHECK(n[1] > v.ntasks && n[2] > 4 * v.ntasks);
    CHECK_EQ(n[3], v.ndeps);
    free(text);

    /* The files beside it; when one cannot be written, there is none. */
    p = sample_bytes(3, 700, &bytes);
    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    free(p);
    temp_path(path, sizeof path);
    snprintf(part, sizeof part, "%s.row", path);
    CHECK_OK(heddle_log_export(log, "paraver", path, 0));
    CHECK_EQ(access(part, R_OK), 0);
    unlink(part);
    CHECK_EQ(mkdir(part, 0777), 0);
    CHECK_STATUS(heddle_log_export(log, "paraver", path, 0), HEDDLE_EIO);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQ(rmdir(part), 0);
    snprintf(part, sizeof part, "%s.pcf", path);
    CHECK(access(part, F_OK) != 0);
    heddle_log_close(log);
}

/* ---- what they share ---- */

/* Nested tasks, tasks without length, tasks that touch, tasks that overlap. */
TEST(nesting)
{
    struct heddle_trace *tr;
    struct heddle_trace_lane *l;
    struct heddle_spans spans;
    struct perfetto pf;
    struct paje s;
    heddle_log *log;
    char path[256], *text;
    size_t bytes;
    uint64_t t;

    temp_path(path, sizeof path);
    CHECK_OK(sample_create(path, 0, NULL, &tr));
    l = heddle_trace_get_lane(tr, 1);
    t = heddle_ticks();
    heddle_trace_task(l, 1, 0, 0, 0, t, t, 0);
    heddle_trace_task(l, 2, 0, 0, 0, t + 100000, t + 200000, 0);
    heddle_trace_task(l, 3, 0, 0, 0, t, t + 400000, 0);
    heddle_trace_task(l, 4, 0, 0, 0, t + 400000, t + 400000, 0);
    heddle_trace_task(l, 5, 0, 0, 0, t + 400000, t + 500000, 0);
    heddle_trace_task(l, 6, 0, 0, 0, t + 450000, t + 600000, 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    CHECK_OK(heddle_spans_init(&spans, log, 0));
    CHECK_EQ(spans.n, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct heddle_span *p = &spans.span[i];
        const struct heddle_log_task *x = &log->v.tasks[p->idx];

        CHECK_EQ(p->start_ns, x->start_ns);
        if (x->id == 5)
            CHECK_EQ(p->end_ns, /* cut */
                     log->v.tasks[heddle_log_find_task(log, 6)].start_ns);
        else
            CHECK_EQ(p->end_ns, x->end_ns);
    }
    heddle_spans_fini(&spans, log);
    CHECK_OK(heddle_log_export(log, "paje", path, 3));
    text = (char *)slurp(path, &bytes);
    paje_check(text, &s);
    CHECK_EQ(s.npush[0], 6);
    free(text);
    CHECK_OK(heddle_log_export(log, "perfetto", path, 3));
    text = (char *)slurp(path, &bytes);
    perfetto_check((uint8_t *)text, bytes, &pf);
    CHECK_EQ(pf.type[1], 6);
    free(text);
    heddle_log_close(log);
    unlink(path);
}

/* Every allocation of every exporter fails once. */
TEST(no_memory)
{
    size_t bytes, k;
    uint8_t *p = sample_bytes(20, 700, &bytes);
    char path[256], part[300];
    struct heddle_log_opts o = {.size = sizeof o};
    heddle_status st = HEDDLE_ENOMEM;
    struct faulty f;
    heddle_log *log;

    temp_path(path, sizeof path);
    for (size_t i = 0; heddle_log_get_format(i) != NULL; i++) {
        for (k = 1; k < 200; k++) {
            faulty_init(&f, 0);
            o.allocator = &f.a;
            CHECK_OK(heddle_log_parse(p, bytes, &o, &log));
            f.fail_at = f.nallocs + k;
            st = heddle_log_export(log, heddle_log_get_format(i)->name, path, 3);
            heddle_log_close(log);
            CHECK_EQ(f.live_bytes, 0);
            if (f.nallocs < f.fail_at)
                break;
            CHECK_STATUS(st, HEDDLE_ENOMEM);
            CHECK(access(path, F_OK) != 0);
        }
        CHECK_OK(st);
        CHECK(k > 2 && k < 200);
    }
    free(p);
    unlink(path);
    for (unsigned i = 0; i < 3; i++) {
        const char *const ext[] = {".pcf", ".row", ".platform.rec"};

        snprintf(part, sizeof part, "%s%s", path, ext[i]);
        unlink(part);
    }
}

TEST(refused)
{
    size_t bytes;
    uint8_t *p = sample_bytes(1, 700, &bytes);
    heddle_log *log;

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    free(p);
    CHECK_STATUS(heddle_log_export(log, "csv", "x", 0), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_log_export(NULL, "paje", "x", 0), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_log_export(log, "paje", "no/such/folder/x", 0), HEDDLE_EIO);
    for (size_t i = 0; heddle_log_get_format(i) != NULL; i++) {
        const struct heddle_log_format *f = heddle_log_get_format(i);

        CHECK(f->name[0] != '\0' && f->help[0] != '\0');
        /* A device that is always full; it is not there everywhere. */
        if (access("/dev/full", W_OK) == 0) {
            CHECK_STATUS(heddle_log_export(log, f->name, "/dev/full", 3), HEDDLE_EIO);
            CHECK_EQ(access("/dev/full", W_OK), 0);
        }
    }
    heddle_log_close(log);
}

TEST_MAIN(chrome, paje, perfetto, paraver, nesting, no_memory, refused)
