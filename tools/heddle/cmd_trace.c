/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: looks at the log of a run and converts it.
 *
 * Purpose    info: where the time went; export: for other viewers; dump: every
 *            record, for scripts and for finding bugs.
 * Output     tables, or with --json one object (info, export) or one object per
 *            line (dump). A log that is not whole is read as far as it goes and
 *            the output says so.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd.h"
#include "heddle/trace.h"

#define CELL 32

/* --- small things -------------------------------------------------------- */

static const char *lane_kind(uint32_t kind)
{
    switch (kind) {
    case HEDDLE_LOG_WORKER: return "worker";
    case HEDDLE_LOG_SUBMITTER: return "submitter";
    case HEDDLE_LOG_DEVICE: return "device";
    case HEDDLE_LOG_LINK: return "link";
    }
    return "other";
}

static const char *text_ns(char buf[CELL], int64_t ns)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, CELL);
    heddle_text_ns(&t, ns > 0 ? (uint64_t)ns : 0);
    return buf;
}

static const char *text_percent(char buf[CELL], double share)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, CELL);
    heddle_text_fixed(&t, 100.0 * share, 1);
    heddle_text_str(&t, " %");
    return buf;
}

/* Names come from a file: nothing in them reaches the terminal as a command. */
static void put_name(FILE *f, const char *s, int width)
{
    for (; *s != '\0'; s++, width--)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, f);
    for (; width > 0; width--)
        fputc(' ', f);
}

static double ratio(int64_t part, double whole)
{
    return whole > 0.0 ? (double)part / whole : 0.0;
}

/* --- info: text ---------------------------------------------------------- */

static void info_head(FILE *f, const char *path, const heddle_log *log,
                      const struct heddle_log_summary *s)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    char a[CELL], b[CELL];
    struct heddle_text t;

    heddle_text_init(&t, a, sizeof(a));
    heddle_text_bytes(&t, v->bytes);
    fprintf(f, "log          %s, %s, format %u.%u%s\n", path, a,
            v->version >> 8, v->version & 0xff,
            v->is_flight ? ", flight recorder" : "");
    if (v->is_partial)
        fprintf(f, "partial      %s\n", heddle_log_get_partial(log));
    if (v->lost > 0)
        fprintf(f, "lost         %" PRIu64 " records\n", v->lost);
    if (v->overwritten > 0)
        fprintf(f,
                "overwritten  the oldest records, %" PRIu64
                " slots of 16 bytes\n",
                v->overwritten);
    for (size_t i = 0; i < v->ninfos; i++) {
        put_name(f, v->infos[i].key, 12);
        fputc(' ', f);
        put_name(f, v->infos[i].value, 0);
        fputc('\n', f);
    }
    fprintf(f,
            "tasks        %" PRIu64 " executed, %" PRIu64 " failed, %" PRIu64
            " cancelled, %" PRIu64 " pending\n",
            s->nexecuted, s->nfailed, s->ncancelled, s->npending);
    fprintf(f, "graph        %zu dependencies, %zu accesses of %zu handles\n",
            v->ndeps, v->naccesses, v->nhandles);
    fprintf(f, "makespan     %s\n", text_ns(a, s->makespan_ns));
    fprintf(f, "utilisation  %s of %" PRIu64 " workers\n",
            text_percent(a, s->utilisation), s->nworkers);
    fprintf(f, "overhead     %s in all, %s per task\n",
            text_ns(a, s->overhead_ns),
            text_ns(b, (int64_t)s->overhead_task_ns));
}

static void info_kernels(FILE *f, const struct heddle_log_view *v,
                         const struct heddle_log_summary *s)
{
    char a[CELL], b[CELL], c[CELL], d[CELL], e[CELL];

    fprintf(f, "\n%-24s %10s %11s %8s %10s %10s %10s %9s\n", "kernel", "tasks",
            "total", "share", "min", "median", "max", "model");
    for (size_t i = 0; i < v->nkernels; i++) {
        const struct heddle_log_kernel_sum *k = &s->kernels[i];

        if (k->ntasks == 0)
            continue;
        put_name(f, v->kernels[i].name, 24);
        fprintf(f, " %10" PRIu64 " %11s %8s %10s %10s %10s", k->ntasks,
                text_ns(a, k->total_ns),
                text_percent(b, ratio(k->total_ns, (double)s->busy_ns)),
                text_ns(c, k->min_ns), text_ns(d, k->median_ns),
                text_ns(e, k->max_ns));
        fprintf(f, " %9s\n",
                k->npredicted > 0 ? text_percent(a, k->model_error) : "-");
    }
}

static void info_lanes(FILE *f, const struct heddle_log_view *v,
                       const struct heddle_log_summary *s)
{
    const double m = (double)s->makespan_ns;
    char a[CELL], b[CELL], c[CELL];

    fprintf(f, "\n%-24s %-10s %4s %10s %8s %8s %8s %6s\n", "lane", "kind",
            "cpu", "tasks", "busy", "idle", "rest", "lost");
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane_sum *l = &s->lanes[i];

        put_name(f, v->lanes[i].name, 24);
        fprintf(f, " %-10s", lane_kind(v->lanes[i].kind));
        if (v->lanes[i].cpu >= 0)
            fprintf(f, " %4d", (int)v->lanes[i].cpu);
        else
            fprintf(f, " %4s", "-");
        fprintf(f, " %10" PRIu64, l->ntasks);
        /* A lane that only submits is not one of the workers. */
        if (l->ntasks > 0 || v->lanes[i].kind == HEDDLE_LOG_WORKER ||
            v->lanes[i].kind == HEDDLE_LOG_DEVICE)
            fprintf(f, " %8s %8s %8s", text_percent(a, ratio(l->busy_ns, m)),
                    text_percent(b, ratio(l->idle_ns, m)),
                    text_percent(c, ratio(l->overhead_ns, m)));
        else
            fprintf(f, " %8s %8s %8s", "-", "-", "-");
        fprintf(f, " %6" PRIu64 "\n", v->lanes[i].lost);
    }
}

/* --- info: JSON ---------------------------------------------------------- */

static void json_head(struct heddle_json *j, const char *path,
                      const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);

    heddle_json_key_str(j, "file", path);
    heddle_json_key_uint(j, "bytes", v->bytes);
    heddle_json_key_uint(j, "version_major", v->version >> 8);
    heddle_json_key_uint(j, "version_minor", v->version & 0xff);
    heddle_json_key_bool(j, "flight_recorder", v->is_flight != 0);
    heddle_json_key_bool(j, "partial", v->is_partial != 0);
    heddle_json_key_str(j, "partial_why",
                        v->is_partial ? heddle_log_get_partial(log) : NULL);
    heddle_json_key_uint(j, "damaged_chunks", v->ndamaged);
    heddle_json_key_uint(j, "lost", v->lost);
    heddle_json_key_uint(j, "overwritten_slots", v->overwritten);
    heddle_json_key_uint(j, "dependencies", v->ndeps);
    heddle_json_key_uint(j, "accesses", v->naccesses);
    heddle_json_key_uint(j, "handles", v->nhandles);
    heddle_json_key_uint(j, "states", v->nstates);
    heddle_json_key_uint(j, "marks", v->nmarks);
    heddle_json_key_uint(j, "events", v->nevents);
    heddle_json_key(j, "info");
    heddle_json_object(j);
    for (size_t i = 0; i < v->ninfos; i++)
        heddle_json_key_str(j, v->infos[i].key, v->infos[i].value);
    heddle_json_end(j);
}

static void json_sums(struct heddle_json *j, const struct heddle_log_summary *s)
{
    heddle_json_key_uint(j, "executed", s->nexecuted);
    heddle_json_key_uint(j, "failed", s->nfailed);
    heddle_json_key_uint(j, "cancelled", s->ncancelled);
    heddle_json_key_uint(j, "pending", s->npending);
    heddle_json_key_uint(j, "workers", s->nworkers);
    heddle_json_key_int(j, "makespan_ns", s->makespan_ns);
    heddle_json_key_int(j, "busy_ns", s->busy_ns);
    heddle_json_key_int(j, "idle_ns", s->idle_ns);
    heddle_json_key_int(j, "overhead_ns", s->overhead_ns);
    heddle_json_key_double(j, "utilisation", s->utilisation);
    heddle_json_key_double(j, "overhead_ns_per_task", s->overhead_task_ns);
}

static void json_kernels(struct heddle_json *j, const struct heddle_log_view *v,
                         const struct heddle_log_summary *s)
{
    heddle_json_key(j, "kernels");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nkernels; i++) {
        const struct heddle_log_kernel_sum *k = &s->kernels[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->kernels[i].name);
        heddle_json_key_uint(j, "tasks", k->ntasks);
        heddle_json_key_int(j, "total_ns", k->total_ns);
        heddle_json_key_int(j, "min_ns", k->min_ns);
        heddle_json_key_int(j, "median_ns", k->median_ns);
        heddle_json_key_int(j, "max_ns", k->max_ns);
        heddle_json_key_uint(j, "predicted", k->npredicted);
        heddle_json_key_double(j, "model_error", k->model_error);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void json_lanes(struct heddle_json *j, const struct heddle_log_view *v,
                       const struct heddle_log_summary *s)
{
    heddle_json_key(j, "lanes");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane_sum *l = &s->lanes[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->lanes[i].name);
        heddle_json_key_str(j, "kind", lane_kind(v->lanes[i].kind));
        heddle_json_key_int(j, "cpu", v->lanes[i].cpu);
        heddle_json_key_uint(j, "tasks", l->ntasks);
        heddle_json_key_int(j, "busy_ns", l->busy_ns);
        heddle_json_key_int(j, "idle_ns", l->idle_ns);
        heddle_json_key_int(j, "overhead_ns", l->overhead_ns);
        heddle_json_key_uint(j, "lost", v->lanes[i].lost);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static heddle_status info_json(FILE *f, const char *path, const heddle_log *log,
                               const struct heddle_log_summary *s)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, f);
    heddle_json_object(&j);
    json_head(&j, path, log);
    json_sums(&j, s);
    json_kernels(&j, v, s);
    json_lanes(&j, v, s);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

static heddle_status info_run(struct cli *c, const char *path,
                              const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_log_summary *s = NULL;
    heddle_status st = heddle_log_summary_create(log, &s);

    if (st != HEDDLE_OK)
        return st;
    if (c->json) {
        st = info_json(c->out, path, log, s);
    } else {
        info_head(c->out, path, log, s);
        info_kernels(c->out, v, s);
        info_lanes(c->out, v, s);
    }
    heddle_log_summary_destroy(log, s);
    return st;
}

/* --- dump ---------------------------------------------------------------- */

/* One record, as words or as an object: both are written by the same lines. */
struct dump {
    struct heddle_json j;
    FILE *out;
    bool json;
};

static void dump_begin(struct dump *d, const char *record)
{
    if (!d->json) {
        fputs(record, d->out);
        return;
    }
    heddle_json_object(&d->j);
    heddle_json_key_str(&d->j, "record", record);
}

static void dump_str(struct dump *d, const char *key, const char *v)
{
    if (d->json) {
        heddle_json_key_str(&d->j, key, v);
    } else if (v != NULL) {
        fprintf(d->out, " %s=\"", key);
        put_name(d->out, v, 0);
        fputc('"', d->out);
    }
}

static void dump_uint(struct dump *d, const char *key, uint64_t v)
{
    if (d->json)
        heddle_json_key_uint(&d->j, key, v);
    else
        fprintf(d->out, " %s=%" PRIu64, key, v);
}

static void dump_int(struct dump *d, const char *key, int64_t v)
{
    if (d->json)
        heddle_json_key_int(&d->j, key, v);
    else
        fprintf(d->out, " %s=%" PRId64, key, v);
}

/* A time that is not known is left out. */
static void dump_time(struct dump *d, const char *key, int64_t ns)
{
    if (ns != HEDDLE_LOG_NONE)
        dump_int(d, key, ns);
}

static void dump_end(struct dump *d)
{
    if (d->json) {
        heddle_json_end(&d->j);
        heddle_json_line(&d->j);
    } else {
        fputc('\n', d->out);
    }
}

static void dump_task(struct dump *d, const struct heddle_log_view *v,
                      const struct heddle_log_task *t)
{
    dump_begin(d, "task");
    dump_uint(d, "id", t->id);
    dump_str(d, "kernel", v->kernels[t->kernel].name);
    dump_str(d, "status", heddle_log_status_name(t->status));
    dump_str(d, "name", t->name);
    if (t->lane != HEDDLE_LOG_NO_LANE)
        dump_str(d, "lane", v->lanes[t->lane].name);
    dump_uint(d, "variant", t->variant);
    dump_uint(d, "flags", t->flags);
    dump_int(d, "priority", t->priority);
    dump_uint(d, "parent", t->parent);
    dump_uint(d, "predicted_ns", (uint64_t)t->predicted_ns);
    dump_time(d, "submit_ns", t->submit_ns);
    dump_time(d, "ready_ns", t->ready_ns);
    dump_time(d, "start_ns", t->start_ns);
    dump_time(d, "end_ns", t->end_ns);
    dump_end(d);
}

static void dump_graph(struct dump *d, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->ndeps; i++) {
        dump_begin(d, "dependency");
        dump_uint(d, "task", v->deps[i].succ);
        dump_uint(d, "after", v->deps[i].pred);
        dump_end(d);
    }
    for (size_t i = 0; i < v->naccesses; i++) {
        dump_begin(d, "access");
        dump_uint(d, "task", v->accesses[i].task);
        dump_uint(d, "operand", v->accesses[i].operand);
        dump_str(d, "handle", v->handles[v->accesses[i].handle].name);
        dump_uint(d, "mode", v->accesses[i].mode);
        dump_end(d);
    }
    for (size_t i = 0; i < v->nattrs; i++) {
        dump_begin(d, "attribute");
        dump_uint(d, "task", v->attrs[i].task);
        dump_uint(d, "key", v->attrs[i].key);
        dump_uint(d, "value", v->attrs[i].value);
        dump_end(d);
    }
}

static void dump_times(struct dump *d, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->nstates; i++) {
        dump_begin(d, "state");
        dump_str(d, "lane", v->lanes[v->states[i].lane].name);
        dump_str(d, "state", heddle_log_state_name(v->states[i].state));
        dump_int(d, "start_ns", v->states[i].start_ns);
        dump_int(d, "end_ns", v->states[i].end_ns);
        dump_end(d);
    }
    for (size_t i = 0; i < v->nmarks; i++) {
        dump_begin(d, "mark");
        dump_str(d, "lane", v->lanes[v->marks[i].lane].name);
        dump_str(d, "text", v->marks[i].text);
        dump_uint(d, "phase", v->marks[i].phase);
        dump_int(d, "t_ns", v->marks[i].t_ns);
        dump_end(d);
    }
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        dump_begin(d, "event");
        dump_str(d, "lane", v->lanes[e->lane].name);
        dump_str(d, "kind", heddle_log_event_name(e->kind));
        dump_uint(d, "task", e->task);
        dump_uint(d, "b", e->b);
        dump_uint(d, "c", e->c);
        dump_uint(d, "x", e->x);
        dump_int(d, "y_ns", e->y_ns);
        dump_int(d, "z_ns", e->z_ns);
        dump_int(d, "t_ns", e->t_ns);
        dump_end(d);
    }
}

static void dump_definitions(struct dump *d, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->nlanes; i++) {
        dump_begin(d, "lane");
        dump_uint(d, "id", v->lanes[i].id);
        dump_str(d, "name", v->lanes[i].name);
        dump_str(d, "kind", lane_kind(v->lanes[i].kind));
        dump_int(d, "cpu", v->lanes[i].cpu);
        dump_uint(d, "node", v->lanes[i].node);
        dump_end(d);
    }
    for (size_t i = 0; i < v->nkernels; i++) {
        dump_begin(d, "kernel");
        dump_uint(d, "id", v->kernels[i].id);
        dump_str(d, "name", v->kernels[i].name);
        dump_uint(d, "variants", v->kernels[i].nvariants);
        dump_end(d);
    }
    for (size_t i = 0; i < v->nhandles; i++) {
        dump_begin(d, "handle");
        dump_uint(d, "id", v->handles[i].id);
        dump_str(d, "name", v->handles[i].name);
        dump_uint(d, "bytes", v->handles[i].bytes);
        if (v->handles[i].parent != i)
            dump_str(d, "view_of", v->handles[v->handles[i].parent].name);
        dump_end(d);
    }
}

static heddle_status dump_run(struct cli *c, const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct dump d = {.out = c->out, .json = c->json};
    heddle_status st;

    heddle_json_init_file(&d.j, c->out);
    dump_definitions(&d, v);
    for (size_t i = 0; i < v->ntasks; i++)
        dump_task(&d, v, &v->tasks[i]);
    dump_graph(&d, v);
    dump_times(&d, v);
    st = heddle_json_finish(&d.j);
    heddle_json_fini(&d.j);
    return st;
}

/* --- the command --------------------------------------------------------- */

struct trace_args {
    const char *format;
    const char *file;
    bool deps;
    bool states;
};

static int export_run(struct cli *c, const heddle_log *log,
                      const struct trace_args *a)
{
    unsigned flags = 0;
    struct heddle_json j;
    heddle_status st;

    flags |= a->deps ? HEDDLE_LOG_EXPORT_DEPS : 0;
    flags |= a->states ? HEDDLE_LOG_EXPORT_STATES : 0;
    errno = 0;
    st = heddle_log_export(log, a->format, a->file, flags);
    if (st != HEDDLE_OK) {
        const int e = errno;

        return cli_fail(c, "the file '%s' cannot be written: %s", a->file,
                        st == HEDDLE_EIO && e != 0 ? strerror(e)
                                                   : heddle_status_text(st));
    }
    if (c->json) {
        heddle_json_init_file(&j, c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "file", a->file);
        heddle_json_key_str(&j, "format", a->format);
        heddle_json_key_uint(&j, "tasks", heddle_log_get_view(log)->ntasks);
        heddle_json_end(&j);
        heddle_json_line(&j);
        st = heddle_json_finish(&j);
        heddle_json_fini(&j);
    }
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

static bool is_format(const char *name)
{
    const struct heddle_log_format *f;

    for (size_t i = 0; (f = heddle_log_get_format(i)) != NULL; i++)
        if (strcmp(f->name, name) == 0)
            return true;
    return false;
}

/* Two names of one file? Then writing the one would destroy the other. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat sa, sb;

    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

/* 0, or the exit status of a wrong command line. */
static int check_args(struct cli *c, const char *verb,
                      const struct cli_args *args, const struct trace_args *a)
{
    const bool is_export = strcmp(verb, "export") == 0;

    if (args->n < 2)
        return cli_error(c, "trace %s needs the file of a log", verb);
    if (!is_export &&
        (a->format != NULL || a->file != NULL || a->deps || a->states))
        return cli_error(c, "trace %s takes no option but --json", verb);
    if (!is_export)
        return 0;
    if (a->format == NULL || a->file == NULL)
        return cli_error(c, "trace export needs --format and -o");
    if (!is_format(a->format))
        return cli_error(c,
                         "'%s' is not a format of trace export, see 'heddle "
                         "help trace'",
                         a->format);
    if (strcmp(a->file, "-") == 0)
        return cli_error(c, "trace export writes a file: give -o a name, or "
                            "/dev/stdout");
    if (is_same_file(args->operand[1], a->file))
        return cli_error(c, "'%s' is the log itself and would be overwritten",
                         a->file);
    return 0;
}

static int trace_verb(struct cli *c, const char *verb, const char *path,
                      const struct trace_args *a)
{
    char why[512] = "";
    const struct heddle_log_opts o = {
        .size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_log *log = NULL;
    heddle_status st = heddle_log_open(path, &o, &log);
    int rc = 0;

    if (st == HEDDLE_ENOENT || st == HEDDLE_EIO)
        return cli_fail(c, "%s", why); /* it names the file */
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s: %s", path,
                        why[0] != '\0' ? why : heddle_status_text(st));
    if (strcmp(verb, "export") == 0)
        rc = export_run(c, log, a);
    else if (strcmp(verb, "info") == 0)
        st = info_run(c, path, log);
    else
        st = dump_run(c, log);
    if (st != HEDDLE_OK)
        rc = st == HEDDLE_EIO ? cli_output_failed(c, st)
                              : cli_fail(c, "%s", heddle_status_text(st));
    /* info has said it already. */
    if (rc == 0 && strcmp(verb, "info") != 0 &&
        heddle_log_get_partial(log)[0] != '\0')
        fprintf(c->err, "heddle: %s: %s\n", path, heddle_log_get_partial(log));
    heddle_log_close(log);
    return rc;
}

static int trace_run(struct cli *c, int argc, char **argv)
{
    struct trace_args a = {0};
    struct cli_args args = {.max = 2};
    const struct cli_opt opts[] = {
        {.name = "--format", .kind = CLI_STRING, .out = &a.format},
        {.name = "-o", .kind = CLI_STRING, .out = &a.file},
        {.name = "--output", .kind = CLI_STRING, .out = &a.file},
        {.name = "--deps", .kind = CLI_FLAG, .out = &a.deps},
        {.name = "--states", .kind = CLI_FLAG, .out = &a.states},
        {.name = NULL},
    };
    int rc = cli_parse(c, "trace", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n == 0)
        return cli_error(c, "trace needs one of info, export, dump, see "
                            "'heddle help trace'");
    if (strcmp(args.operand[0], "info") != 0 &&
        strcmp(args.operand[0], "export") != 0 &&
        strcmp(args.operand[0], "dump") != 0)
        return cli_error(c, "trace has no '%s': it has info, export, dump",
                         args.operand[0]);
    rc = check_args(c, args.operand[0], &args, &a);
    return rc != 0 ? rc : trace_verb(c, args.operand[0], args.operand[1], &a);
}

const struct heddle_cmd heddle_cmd_trace = {
    .name = "trace",
    .help = "looks at the log of a run, or converts it",
    .usage =
        "heddle trace info LOG [--json]\n"
        "heddle trace export LOG --format FORMAT -o FILE [--deps]\n"
        "                        [--states] [--json]\n"
        "heddle trace dump LOG [--json]\n"
        "\n"
        "  info      where the time went: tables per kernel and per lane\n"
        "  export    write the log for another viewer\n"
        "  dump      every record, one per line\n"
        "\n"
        "  --format FORMAT   chrome (chrome://tracing, ui.perfetto.dev) or\n"
        "                    paje (ViTE)\n"
        "  -o FILE           where to write\n"
        "  --deps            dependencies too, as arrows\n"
        "  --states          what workers do between tasks, too\n"
        "  --json            JSON: one object, or one per line with dump\n"
        "\n"
        "A log that was cut or damaged is read as far as it is whole.\n",
    .run = trace_run,
};
