/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace stats: why a run took as long as it did.
 *
 * Output     tables per kernel and per worker, where the time of the workers
 *            went by cause, the chain of blame, and what to look at first; or
 *            with --json one object. All nanoseconds there add up: those of a
 *            worker to makespan_ns, the totals to workers x makespan_ns, the
 *            blame to makespan_ns.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/text.h"
#include "energy/log.h"
#include "heddle/explain.h"
#include "trace/cmd.h"

enum { NADVICE = 3, ADVICE = 400 };

struct stats {
    const char *path;
    const heddle_log *log;
    const struct heddle_log_view *v;
    struct heddle_log_summary *s;
    struct heddle_explain *x;
    char advice[NADVICE][ADVICE];
    struct energy_meter meter[ENERGY_METERS];
    size_t nmeters;
    int64_t lost_ns; /* of tasks, while the system ran something else on their cores */
    uint64_t nlost;  /* such tasks */
};

/* 0 when samples cover no time. */
static double mean_watts(const struct energy_meter *m)
{
    return m->seconds > 0 ? m->joules / m->seconds : 0;
}

/* Of the time that tasks took. */
static double lost_share(const struct stats *t)
{
    return trace_ratio(t->lost_ns, (double)t->x->total_ns[HEDDLE_CAUSE_WORK]);
}

/* Of the time of all workers. */
static double share_of(const struct stats *t, unsigned cause)
{
    return trace_ratio(t->x->total_ns[cause], (double)t->x->nworkers * (double)t->x->makespan_ns);
}

struct efficiency {
    double parallel; /* in tasks that ended well, of all time */
    double runtime;  /* of the time that workers had something to do */
    double pipeline; /* had something to do, of all time */
    double path;     /* longest chain of dependencies, of the makespan */
};

static struct efficiency stats_efficiency(const struct stats *t)
{
    const int64_t *ns = t->x->total_ns;
    const double work = (double)ns[HEDDLE_CAUSE_WORK];
    const double active = work + (double)ns[HEDDLE_CAUSE_WASTE] + (double)ns[HEDDLE_CAUSE_DATA] +
                          (double)ns[HEDDLE_CAUSE_MEMORY] + (double)ns[HEDDLE_CAUSE_OVERHEAD];
    const double all = (double)t->x->nworkers * (double)t->x->makespan_ns;

    return (struct efficiency){.parallel = all > 0 ? work / all : 0,
                               .runtime = active > 0 ? work / active : 0,
                               .pipeline = all > 0 ? active / all : 0,
                               .path = trace_ratio(t->x->path_ns, (double)t->x->makespan_ns)};
}

/* --- advice ------------------------------------------------------------------ */

HEDDLE_PRINTF(3, 4)
static void advise(struct stats *t, unsigned i, const char *fmt, ...)
{
    struct heddle_text x;
    va_list ap;

    heddle_text_init(&x, t->advice[i], ADVICE);
    va_start(ap, fmt);
    heddle_text_vadd(&x, fmt, ap);
    va_end(ap);
}

/* The kernel with most time: of all tasks, or of those on the longest chain. */
static const char *top_kernel(const struct stats *t, bool on_path)
{
    const struct heddle_log_view *v = t->v;
    int64_t *ns = calloc(v->nkernels + 1, sizeof(*ns));
    const char *name = "?";
    int64_t most = -1;

    if (ns == NULL)
        return name;
    for (size_t i = 0; i < v->nkernels && !on_path; i++)
        ns[i] = t->s->kernels[i].total_ns;
    for (size_t i = 0; i < t->x->npath && on_path; i++) {
        const struct heddle_log_task *k = &v->tasks[t->x->path[i]];

        if (k->lane != HEDDLE_LOG_NO_LANE)
            ns[k->kernel] += k->end_ns - k->start_ns;
    }
    for (size_t i = 0; i < v->nkernels; i++)
        if (ns[i] > most) {
            most = ns[i];
            name = v->kernels[i].name;
        }
    free(ns);
    return name;
}

static const char *cause_remedy(unsigned cause)
{
    switch (cause) {
    case HEDDLE_CAUSE_WASTE: return "see which tasks fail, and why";
    case HEDDLE_CAUSE_DATA:
        return "let tasks run where their data are, or give prefetches more "
               "time";
    case HEDDLE_CAUSE_MEMORY:
        return "the memory is too small for what is used at once: smaller "
               "pieces, or a larger budget";
    case HEDDLE_CAUSE_OVERHEAD: return "make tasks larger";
    case HEDDLE_CAUSE_START: return "the first task began late: see what the program does before";
    case HEDDLE_CAUSE_END:
        return "the end has too few tasks for the workers: make the last ones "
               "smaller, or give the long chains priority";
    case HEDDLE_CAUSE_SCHED: return "try another scheduler; if tasks are short, make them larger";
    case HEDDLE_CAUSE_SUBMIT:
        return "submission is the limit: larger tasks, a recorded graph, or "
               "tasks that submit tasks";
    case HEDDLE_CAUSE_DEPS:
        return "too little can run at once: smaller tasks, or priority for "
               "those on the longest chain";
    default: return "write a log of level 1, this one tells too little";
    }
}

/* The share of time that lanes of a kind were in tasks; 0: there are none. */
static double kind_share(const struct stats *t, uint32_t kind)
{
    double sum = 0;
    uint64_t n = 0;

    for (size_t l = 0; l < t->v->nlanes; l++)
        if (t->v->lanes[l].kind == kind) {
            sum += (double)t->x->lanes[l].ns[HEDDLE_CAUSE_WORK];
            n++;
        }
    return n == 0 ? 0 : sum / ((double)n * (double)t->x->makespan_ns);
}

static void stats_advise(struct stats *t)
{
    const struct efficiency e = stats_efficiency(t);
    char a[TRACE_CELL], b[TRACE_CELL];
    unsigned worst = HEDDLE_CAUSE_WASTE;
    double devices;

    if (t->x->makespan_ns == 0) {
        advise(t, 0, "No task ran for any time.");
        return;
    }
    for (unsigned c = worst; c < HEDDLE_NCAUSES; c++)
        if (t->x->total_ns[c] > t->x->total_ns[worst])
            worst = c;
    devices = kind_share(t, HEDDLE_LOG_DEVICE);
    if (share_of(t, worst) < 0.1)
        advise(t, 0,
               "Workers were in tasks %s of the time: what can be gained is in "
               "the tasks themselves, first in %s.",
               trace_text_percent(a, e.parallel), top_kernel(t, false));
    else if (devices > 0.8)
        advise(t, 0,
               "The devices were in tasks %s of the time and set the pace; the "
               "workers together lost %s because of %s (%s).",
               trace_text_percent(a, devices), trace_text_percent(b, share_of(t, worst)),
               heddle_explain_cause_name(worst), heddle_explain_cause_text(worst));
    else
        advise(t, 0, "Workers lost %s of their time because of %s (%s): %s.",
               trace_text_percent(a, share_of(t, worst)), heddle_explain_cause_name(worst),
               heddle_explain_cause_text(worst), cause_remedy(worst));
    if (e.path > 0.5 && t->x->npath > 1)
        advise(t, 1,
               "The longest chain of dependencies, %zu tasks, alone takes %s "
               "of the run; most of it is %s.",
               t->x->npath, trace_text_percent(b, e.path), top_kernel(t, true));
    if (lost_share(t) >= 0.02)
        advise(t, 2,
               "The system ran something else on the cores for %s of the time of the tasks: run "
               "with fewer workers, or with nothing beside.",
               trace_text_percent(a, lost_share(t)));
}

/* --- text ---------------------------------------------------------------------- */

static void text_head(FILE *f, const struct stats *t)
{
    const struct efficiency e = stats_efficiency(t);
    char a[TRACE_CELL];

    fprintf(f, "log                  %s\n", t->path);
    if (t->v->is_partial)
        fprintf(f, "partial              %s\n", heddle_log_get_partial(t->log));
    fprintf(f,
            "tasks                %" PRIu64 " executed, %" PRIu64 " failed, %" PRIu64
            " cancelled, %" PRIu64 " pending\n",
            t->s->nexecuted, t->s->nfailed, t->s->ncancelled, t->s->npending);
    fprintf(f, "makespan             %s on %" PRIu64 " workers\n",
            trace_text_ns(a, t->x->makespan_ns), t->x->nworkers);
    fprintf(f, "parallel efficiency  %s in tasks, of all time of the workers\n",
            trace_text_percent(a, e.parallel));
    fprintf(f,
            "runtime efficiency   %s in tasks, of the time in which they had "
            "something to do\n",
            trace_text_percent(a, e.runtime));
    fprintf(f, "pipeline efficiency  %s of the time they had something to do\n",
            trace_text_percent(a, e.pipeline));
    fprintf(f, "longest chain        %zu tasks, %s, ", t->x->npath,
            trace_text_ns(a, t->x->path_ns));
    fprintf(f, "%s of the makespan\n", trace_text_percent(a, e.path));
    if (t->nlost == 0)
        return;
    fprintf(f, "lost to the system   %s of %" PRIu64 " tasks, ", trace_text_ns(a, t->lost_ns),
            t->nlost);
    fprintf(f, "%s of the time in tasks: something else ran on their cores\n",
            trace_text_percent(a, lost_share(t)));
}

static void text_row(FILE *f, const struct stats *t, const int64_t *ns, double whole)
{
    char a[TRACE_CELL];

    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        if (t->x->total_ns[c] > 0)
            fprintf(f, " %8s", trace_text_percent(a, trace_ratio(ns[c], whole)));
    fputc('\n', f);
}

/* Only causes that there are. */
static void text_workers(FILE *f, const struct stats *t)
{
    const double m = (double)t->x->makespan_ns;

    fprintf(f, "\n%-24s %10s", "worker", "tasks");
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        if (t->x->total_ns[c] > 0)
            fprintf(f, " %8s", heddle_explain_cause_name(c));
    fputc('\n', f);
    for (size_t l = 0; l < t->v->nlanes; l++) {
        if (!t->x->lanes[l].is_worker)
            continue;
        trace_put_name(f, t->v->lanes[l].name, 24);
        fprintf(f, " %10" PRIu64, t->s->lanes[l].ntasks);
        text_row(f, t, t->x->lanes[l].ns, m);
    }
    fprintf(f, "%-24s %10s", "all", "");
    text_row(f, t, t->x->total_ns, m * (double)t->x->nworkers);
    fputc('\n', f);
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        if (t->x->total_ns[c] > 0)
            fprintf(f, "%-10s %s\n", heddle_explain_cause_name(c), heddle_explain_cause_text(c));
}

static void text_blame(FILE *f, const struct stats *t)
{
    char a[TRACE_CELL];

    fprintf(f, "\nBehind the task that ended last:");
    for (unsigned b = 0; b < HEDDLE_NBLAMES; b++)
        fprintf(f, "%s %s %s", b == 0 ? "" : ",", heddle_explain_blame_name(b),
                trace_text_percent(a, trace_ratio(t->x->blame_ns[b], (double)t->x->makespan_ns)));
    fprintf(f, "\n\nWhat to look at first:\n");
    for (unsigned i = 0; i < NADVICE; i++)
        if (t->advice[i][0] != '\0') {
            trace_put_name(f, t->advice[i], 0);
            fputc('\n', f);
        }
}

/* Measured while the run lasted, nothing by a model. */
static void text_energy(FILE *f, const struct stats *t)
{
    double sum = 0;

    if (t->nmeters == 0)
        return;
    fprintf(f, "\n%-24s %12s %12s %12s %10s\n", "energy measured", "joules", "average W", "peak W",
            "seconds");
    for (size_t i = 0; i < t->nmeters; i++) {
        const struct energy_meter *m = &t->meter[i];

        trace_put_name(f, m->name, 24);
        fprintf(f, " %12.6g %12.4g %12.4g %10.4g\n", m->joules, mean_watts(m), m->peak, m->seconds);
        sum += m->joules;
    }
    if (t->nmeters > 1)
        fprintf(f, "%-24s %12.6g\n", "all domains", sum);
}

/* --- JSON ------------------------------------------------------------------------ */

static void json_causes(struct heddle_json *j, const int64_t *ns)
{
    heddle_json_object(j);
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        heddle_json_key_int(j, heddle_explain_cause_name(c), ns[c]);
    heddle_json_end(j);
}

static void json_head(struct heddle_json *j, const struct stats *t)
{
    const struct efficiency e = stats_efficiency(t);

    heddle_json_key_str(j, "file", t->path);
    heddle_json_key_bool(j, "partial", t->v->is_partial != 0);
    heddle_json_key_str(j, "partial_why", t->v->is_partial ? heddle_log_get_partial(t->log) : NULL);
    heddle_json_key_int(j, "makespan_ns", t->x->makespan_ns);
    heddle_json_key_int(j, "first_ns", t->x->first_ns);
    heddle_json_key_int(j, "last_ns", t->x->last_ns);
    heddle_json_key_uint(j, "workers", t->x->nworkers);
    heddle_json_key_uint(j, "executed", t->s->nexecuted);
    heddle_json_key_uint(j, "failed", t->s->nfailed);
    heddle_json_key_uint(j, "cancelled", t->s->ncancelled);
    heddle_json_key_uint(j, "pending", t->s->npending);
    heddle_json_key_double(j, "parallel_efficiency", e.parallel);
    heddle_json_key_double(j, "runtime_efficiency", e.runtime);
    heddle_json_key_double(j, "pipeline_efficiency", e.pipeline);
    heddle_json_key(j, "path");
    heddle_json_object(j);
    heddle_json_key_uint(j, "tasks", t->x->npath);
    heddle_json_key_int(j, "ns", t->x->path_ns);
    heddle_json_key_double(j, "share", e.path);
    heddle_json_end(j);
}

static void json_workers(struct heddle_json *j, const struct stats *t)
{
    heddle_json_key(j, "totals");
    json_causes(j, t->x->total_ns);
    heddle_json_key(j, "workers_table");
    heddle_json_array(j);
    for (size_t l = 0; l < t->v->nlanes; l++) {
        if (!t->x->lanes[l].is_worker)
            continue;
        heddle_json_object(j);
        heddle_json_key_str(j, "name", t->v->lanes[l].name);
        heddle_json_key_str(j, "kind", trace_lane_kind(t->v->lanes[l].kind));
        heddle_json_key_uint(j, "tasks", t->s->lanes[l].ntasks);
        heddle_json_key(j, "ns");
        json_causes(j, t->x->lanes[l].ns);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key(j, "blame");
    heddle_json_object(j);
    for (unsigned b = 0; b < HEDDLE_NBLAMES; b++)
        heddle_json_key_int(j, heddle_explain_blame_name(b), t->x->blame_ns[b]);
    heddle_json_end(j);
}

static void json_energy(struct heddle_json *j, const struct stats *t)
{
    heddle_json_key(j, "energy");
    heddle_json_array(j);
    for (size_t i = 0; i < t->nmeters; i++) {
        const struct energy_meter *m = &t->meter[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", m->name);
        heddle_json_key_str(j, "device", m->device);
        heddle_json_key_uint(j, "samples", m->nsamples);
        heddle_json_key_double(j, "seconds", m->seconds);
        heddle_json_key_double(j, "joules", m->joules);
        heddle_json_key_double(j, "mean_watts", mean_watts(m));
        heddle_json_key_double(j, "peak_watts", m->peak);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key_str(j, "energy_why", t->nmeters == 0 ? energy_log_why(t->v) : NULL);
}

static heddle_status stats_json(FILE *f, const struct stats *t)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, f);
    heddle_json_object(&j);
    json_head(&j, t);
    heddle_json_key_int(&j, "lost_ns", t->lost_ns);
    heddle_json_key_uint(&j, "lost_tasks", t->nlost);
    json_workers(&j, t);
    trace_json_kernels(&j, t->v, t->s);
    json_energy(&j, t);
    heddle_json_key(&j, "advice");
    heddle_json_array(&j);
    for (unsigned i = 0; i < NADVICE; i++)
        if (t->advice[i][0] != '\0')
            heddle_json_str(&j, t->advice[i]);
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

/* --- the verb ---------------------------------------------------------------------- */

static heddle_status stats_print(struct cli *c, const char *path, const heddle_log *log)
{
    struct stats t = {.path = path, .log = log, .v = heddle_log_get_view(log)};
    heddle_status st = heddle_log_summary_create(log, &t.s);

    if (st == HEDDLE_OK)
        st = heddle_explain_create(log, NULL, &t.x);
    if (st == HEDDLE_OK)
        trace_lost(t.v, &t.lost_ns, &t.nlost);
    if (st == HEDDLE_OK)
        stats_advise(&t);
    t.nmeters = t.x == NULL ? 0 : energy_meters(t.v, t.x->first_ns, t.x->last_ns, t.meter);
    if (st == HEDDLE_OK && c->json) {
        st = stats_json(c->out, &t);
    } else if (st == HEDDLE_OK) {
        text_head(c->out, &t);
        trace_put_kernels(c->out, t.v, t.s);
        text_workers(c->out, &t);
        text_energy(c->out, &t);
        text_blame(c->out, &t);
    }
    heddle_explain_destroy(t.x);
    heddle_log_summary_destroy(log, t.s);
    return st;
}

static int stats_run(struct cli *c, int argc, char **argv)
{
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{.name = NULL}};
    heddle_log *log = NULL;
    int rc = cli_parse(c, "trace stats", argc, argv, opts, &args);

    if (rc == 0)
        rc = trace_open(c, "stats", &args, &log);
    if (rc == 0)
        rc = trace_end(c, stats_print(c, args.operand[0], log));
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_stats = {
    .name = "stats",
    .help = "why it took that long: idle time by cause, blame, efficiency",
    .usage = "heddle trace stats LOG [--json]\n",
    .run = stats_run,
};
