/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace dump: every record of a log, for scripts and for finding bugs.
 *
 * Output     a line per record; with --json each is an object.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "trace/cmd.h"

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
        trace_put_name(d->out, v, 0);
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

static void dump_double(struct dump *d, const char *key, double v)
{
    if (d->json)
        heddle_json_key_double(&d->j, key, v);
    else
        fprintf(d->out, " %s=%.17g", key, v);
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
        dump_str(d, "kind", trace_lane_kind(v->lanes[i].kind));
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

static void dump_memories(struct dump *d, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->nnodes; i++) {
        dump_begin(d, "node");
        dump_uint(d, "id", v->nodes[i].id);
        dump_str(d, "name", v->nodes[i].name);
        dump_uint(d, "bytes", v->nodes[i].bytes);
        dump_end(d);
    }
    for (size_t i = 0; i < v->nlinks; i++) {
        dump_begin(d, "link");
        dump_str(d, "name", v->links[i].name);
        dump_str(d, "from", v->nodes[v->links[i].from].name);
        dump_str(d, "to", v->nodes[v->links[i].to].name);
        dump_double(d, "bytes_per_s", v->links[i].bytes_per_s);
        dump_double(d, "latency_ns", v->links[i].latency_ns);
        dump_end(d);
    }
}

static heddle_status dump_print(struct cli *c, const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct dump d = {.out = c->out, .json = c->json};
    heddle_status st;

    heddle_json_init_file(&d.j, c->out);
    dump_definitions(&d, v);
    dump_memories(&d, v);
    for (size_t i = 0; i < v->ntasks; i++)
        dump_task(&d, v, &v->tasks[i]);
    dump_graph(&d, v);
    dump_times(&d, v);
    st = heddle_json_finish(&d.j);
    heddle_json_fini(&d.j);
    return st;
}

static int dump_run(struct cli *c, int argc, char **argv)
{
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{.name = NULL}};
    heddle_log *log = NULL;
    int rc = cli_parse(c, "trace dump", argc, argv, opts, &args);

    if (rc == 0)
        rc = trace_open(c, "dump", &args, &log);
    if (rc == 0)
        rc = trace_end(c, dump_print(c, log));
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], log);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_dump = {
    .name = "dump",
    .help = "every record, one per line",
    .usage = "heddle trace dump LOG [--json]\n"
             "\n"
             "  --json   each line is a JSON object\n",
    .run = dump_run,
};
