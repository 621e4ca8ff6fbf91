/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace info: where the time of a run went.
 *
 * Output     tables per kernel and per lane, or with --json one object. A log
 *            that is not whole is read as far as it goes, and the output says so.
 */
#include <inttypes.h>

#include "base/json.h"
#include "base/text.h"
#include "trace/cmd.h"

/* --- info: text ---------------------------------------------------------- */

static void info_head(FILE *f, const char *path, const heddle_log *log,
                      const struct heddle_log_summary *s)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    char a[TRACE_CELL], b[TRACE_CELL];
    struct heddle_text t;

    heddle_text_init(&t, a, sizeof(a));
    heddle_text_bytes(&t, v->bytes);
    fprintf(f, "log          %s, %s, format %u.%u%s\n", path, a, v->version >> 8, v->version & 0xff,
            v->is_flight ? ", flight recorder" : "");
    if (v->is_partial)
        fprintf(f, "partial      %s\n", heddle_log_get_partial(log));
    if (v->lost > 0)
        fprintf(f, "lost         %" PRIu64 " records\n", v->lost);
    if (v->overwritten > 0)
        fprintf(f, "overwritten  the oldest records, %" PRIu64 " slots of 16 bytes\n",
                v->overwritten);
    for (size_t i = 0; i < v->ninfos; i++) {
        trace_put_name(f, v->infos[i].key, 12);
        fputc(' ', f);
        trace_put_name(f, v->infos[i].value, 0);
        fputc('\n', f);
    }
    fprintf(f,
            "tasks        %" PRIu64 " executed, %" PRIu64 " failed, %" PRIu64 " cancelled, %" PRIu64
            " pending\n",
            s->nexecuted, s->nfailed, s->ncancelled, s->npending);
    fprintf(f, "graph        %zu dependencies that tasks waited for, %zu accesses of %zu handles\n",
            v->ndeps, v->naccesses, v->nhandles);
    fprintf(f, "makespan     %s\n", trace_text_ns(a, s->makespan_ns));
    fprintf(f, "utilisation  %s of %" PRIu64 " workers\n", trace_text_percent(a, s->utilisation),
            s->nworkers);
    fprintf(f, "rest         %s in all, %s per task: neither in tasks nor known as idle\n",
            trace_text_ns(a, s->overhead_ns), trace_text_ns(b, (int64_t)s->overhead_task_ns));
}

static void info_lanes(FILE *f, const struct heddle_log_view *v, const struct heddle_log_summary *s)
{
    const double m = (double)s->makespan_ns;
    char a[TRACE_CELL], b[TRACE_CELL], c[TRACE_CELL];

    fprintf(f, "\n%-24s %-10s %4s %10s %8s %8s %8s %6s\n", "lane", "kind", "cpu", "tasks", "busy",
            "idle", "rest", "lost");
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane_sum *l = &s->lanes[i];

        trace_put_name(f, v->lanes[i].name, 24);
        fprintf(f, " %-10s", trace_lane_kind(v->lanes[i].kind));
        if (v->lanes[i].cpu >= 0)
            fprintf(f, " %4d", (int)v->lanes[i].cpu);
        else
            fprintf(f, " %4s", "-");
        fprintf(f, " %10" PRIu64, l->ntasks);
        /* A lane that only submits is not one of the workers. */
        if (l->ntasks > 0 || v->lanes[i].kind == HEDDLE_LOG_WORKER ||
            v->lanes[i].kind == HEDDLE_LOG_DEVICE)
            fprintf(f, " %8s %8s %8s", trace_text_percent(a, trace_ratio(l->busy_ns, m)),
                    trace_text_percent(b, trace_ratio(l->idle_ns, m)),
                    trace_text_percent(c, trace_ratio(l->overhead_ns, m)));
        else
            fprintf(f, " %8s %8s %8s", "-", "-", "-");
        fprintf(f, " %6" PRIu64 "\n", v->lanes[i].lost);
    }
}

/* --- info: JSON ---------------------------------------------------------- */

static void json_head(struct heddle_json *j, const char *path, const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);

    heddle_json_key_str(j, "file", path);
    heddle_json_key_uint(j, "bytes", v->bytes);
    heddle_json_key_uint(j, "version_major", v->version >> 8);
    heddle_json_key_uint(j, "version_minor", v->version & 0xff);
    heddle_json_key_bool(j, "flight_recorder", v->is_flight != 0);
    heddle_json_key_bool(j, "partial", v->is_partial != 0);
    heddle_json_key_str(j, "partial_why", v->is_partial ? heddle_log_get_partial(log) : NULL);
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

static void json_lanes(struct heddle_json *j, const struct heddle_log_view *v,
                       const struct heddle_log_summary *s)
{
    heddle_json_key(j, "lanes");
    heddle_json_array(j);
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane_sum *l = &s->lanes[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", v->lanes[i].name);
        heddle_json_key_str(j, "kind", trace_lane_kind(v->lanes[i].kind));
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
    trace_json_kernels(&j, v, s);
    json_lanes(&j, v, s);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

static heddle_status info_print(struct cli *c, const char *path, const heddle_log *log)
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
        trace_put_kernels(c->out, v, s);
        info_lanes(c->out, v, s);
    }
    heddle_log_summary_destroy(log, s);
    return st;
}

static int info_run(struct cli *c, int argc, char **argv)
{
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{.name = NULL}};
    heddle_log *log = NULL;
    int rc = cli_parse(c, "trace info", argc, argv, opts, &args);

    if (rc == 0)
        rc = trace_open(c, "info", &args, &log);
    if (rc == 0)
        rc = trace_end(c, info_print(c, args.operand[0], log));
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_info = {
    .name = "info",
    .help = "where the time went: tables per kernel and per lane",
    .usage = "heddle trace info LOG [--json]\n",
    .run = info_run,
};
