/* SPDX-License-Identifier: BSD-3-Clause */
/* Exporters: the output is well formed, complete and in order. */
#include <ctype.h>

#include "trace/log.h"
#include "trace/sample_test.h"

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
static char *export_sample(const char *format, unsigned flags,
                           struct heddle_log_view *v)
{
    size_t bytes;
    uint8_t *p = sample_bytes(30, 700, &bytes);
    heddle_log *log;
    char path[256], *text;

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    free(p);
    temp_path(path, sizeof path);
    CHECK_OK(heddle_log_export(log, format, path, flags));
    text = (char *)slurp(path, &bytes);
    *v = *heddle_log_get_view(log); /* counts only: the log goes away */
    heddle_log_close(log);
    unlink(path);
    return text;
}

TEST(chrome)
{
    struct heddle_log_view v;
    char *text;

    for (unsigned flags = 0; flags < 4; flags++) {
        text = export_sample("chrome", flags, &v);
        CHECK(*json_space(json_value(text, 0)) == '\0');
        CHECK_EQ(count(text, "\"cat\":\"task\""), v.ntasks);
        CHECK_EQ(count(text, "\"thread_name\""), v.nlanes);
        CHECK_EQ(count(text, "\"ph\":\"s\""), flags & 1 ? v.ndeps : 0);
        CHECK_EQ(count(text, "\"ph\":\"f\""), flags & 1 ? v.ndeps : 0);
        CHECK_EQ(count(text, "\"cat\":\"mark\""), v.nmarks);
        CHECK_EQ(count(text, "\"ph\":\"C\""), v.ntasks);
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
    size_t npush[2], nstart, nend, nmarks, ncreate, ndestroy;
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
              strcmp(w[2], "color") == 0);
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
    s->nstart += strcmp(name, "PajeStartLink") == 0;
    s->nend += strcmp(name, "PajeEndLink") == 0;
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
        CHECK_EQ(s.nstart, flags & 1 ? v.ndeps : 0);
        CHECK_EQ(s.nend, s.nstart);
        CHECK_EQ(s.nmarks, v.nmarks);
        CHECK_EQ(s.ncreate, v.nlanes + 1);
        CHECK_EQ(s.ndestroy, v.nlanes + 1);
        free(text);
    }
}

/* Nested tasks, tasks without length and tasks that touch. */
TEST(paje_nesting)
{
    struct heddle_trace *tr;
    struct heddle_trace_lane *l;
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
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    CHECK_OK(heddle_log_export(log, "paje", path, 3));
    heddle_log_close(log);
    text = (char *)slurp(path, &bytes);
    paje_check(text, &s);
    CHECK_EQ(s.npush[0], 5);
    free(text);
    unlink(path);
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
    CHECK_STATUS(heddle_log_export(log, "paje", "no/such/folder/x", 0),
                 HEDDLE_EIO);
    for (size_t i = 0; heddle_log_get_format(i) != NULL; i++) {
        const struct heddle_log_format *f = heddle_log_get_format(i);

        CHECK(f->name[0] != '\0' && f->help[0] != '\0');
        /* A device that is always full; it is not there everywhere. */
        if (access("/dev/full", W_OK) == 0) {
            CHECK_STATUS(heddle_log_export(log, f->name, "/dev/full", 3),
                         HEDDLE_EIO);
            CHECK_EQ(access("/dev/full", W_OK), 0);
        }
    }
    heddle_log_close(log);
}

TEST_MAIN(chrome, paje, paje_nesting, refused)
