/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/run_bound: how near a run came to the best possible, from its log.
 */
#include "common/run_bound.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

enum { LINE_TASKS = 4000000, MANY_TASKS = 100000, CELL = 32 };
#define LINE_NS UINT64_C(3000000000)

heddle_status run_bound_graph(struct run_bound *b, const heddle_log *log,
                              enum heddle_log_durations durations, const char *machine)
{
    const uint64_t t0 = heddle_clock_ns();
    char dir[4096];
    struct heddle_log_graph_opts o = {
        .size = sizeof(o), .durations = durations, .why = b->why, .why_bytes = sizeof(b->why)};
    heddle_status st = HEDDLE_OK;

    b->why[0] = '\0';
    if (machine != NULL)
        st = heddle_machine_open(machine, &b->machine, b->why, sizeof(b->why));
    if (st == HEDDLE_OK && durations == HEDDLE_DURATIONS_MODEL) {
        heddle_env_cache_dir(dir, sizeof(dir));
        st = heddle_perf_create(NULL, dir, &b->perf);
    }
    o.machine = b->machine;
    o.perf = b->perf;
    if (st == HEDDLE_OK)
        st = heddle_log_graph_create(log, &o, &b->g);
    if (st != HEDDLE_OK && b->why[0] == '\0')
        snprintf(b->why, sizeof(b->why), "%s", heddle_status_text(st));
    if (st == HEDDLE_OK)
        b->makespan_s = (double)b->g->makespan_ns * 1e-9;
    b->read_s = (double)(heddle_clock_ns() - t0) * 1e-9;
    return st;
}

heddle_status run_bound_solve(struct run_bound *b, uint64_t time_ns)
{
    struct heddle_bound_limits limits = {
        .size = sizeof(limits), .time_ns = time_ns, .why = b->why, .why_bytes = sizeof(b->why)};
    heddle_status st;

    if (b->g->graph.ntasks > MANY_TASKS)
        limits.gap = 0.004; /* the last tenths would take most of the time */
    b->r.size = sizeof(b->r);
    st = heddle_bound_all(&b->g->graph, &limits, &b->r);
    if (st != HEDDLE_OK) {
        b->r.size = 0; /* there is none */
        return st;
    }
    b->best_s = b->r.best * 1e-9;
    b->solve_s = (double)b->r.time_ns * 1e-9;
    b->efficiency = b->makespan_s > 0 ? b->best_s / b->makespan_s : 0;
    b->gap = b->efficiency < 1 ? 1 - b->efficiency : 0;
    return HEDDLE_OK;
}

heddle_status run_bound_read(struct run_bound *b, const char *path)
{
    const struct heddle_log_opts o = {
        .size = sizeof(o), .why = b->why, .why_bytes = sizeof(b->why)};
    heddle_status st = heddle_log_open(path, &o, &b->log);

    if (st != HEDDLE_OK)
        return st;
    if (heddle_log_get_view(b->log)->ntasks > LINE_TASKS) {
        snprintf(b->why, sizeof(b->why), "many tasks: 'heddle trace bound %.200s' computes it",
                 path);
        return HEDDLE_EOVERFLOW;
    }
    st = run_bound_graph(b, b->log, HEDDLE_DURATIONS_MEASURED, NULL);
    return st == HEDDLE_OK ? run_bound_solve(b, LINE_NS) : st;
}

void run_bound_close(struct run_bound *b)
{
    heddle_bound_fini(b->r.size != 0 ? &b->r : NULL);
    heddle_log_graph_destroy(b->g);
    heddle_machine_close(b->machine);
    (void)heddle_perf_destroy(b->perf); /* nothing was recorded in it */
    heddle_log_close(b->log);
    *b = (struct run_bound){0};
}

double run_bound_s(const struct run_bound *b, enum heddle_bound_kind kind)
{
    return b->r.cert[kind].value * 1e-9;
}

static void put_ns(FILE *f, double ns)
{
    char s[CELL];
    struct heddle_text t;

    heddle_text_init(&t, s, sizeof(s));
    heddle_text_ns(&t, ns > 0 ? (uint64_t)ns : 0);
    fputs(s, f);
}

void run_bound_print(FILE *f, const struct run_bound *b)
{
    if (b->r.size == 0) {
        fprintf(f, "bound        none: %s\n", b->why);
        return;
    }
    fputs("bound        ", f);
    put_ns(f, b->r.best);
    fprintf(f,
            " (%s): this run is at %.1f %% of the best possible on this "
            "machine\n",
            heddle_bound_kind_name(b->r.best_kind), 100 * b->efficiency);
    if (!b->g->has_deps && b->g->graph.ntasks > 0)
        fputs("             without dependencies, which a log of level 0 does "
              "not have\n",
              f);
}

void run_bound_json(struct heddle_json *j, const struct run_bound *b)
{
    heddle_json_key(j, "bound");
    if (b->r.size == 0) {
        heddle_json_null(j);
        return;
    }
    heddle_json_object(j);
    heddle_json_key_uint(j, "tasks", b->g->graph.ntasks);
    heddle_json_key_double(j, "makespan", b->makespan_s);
    heddle_json_key_double(j, "critical_path", run_bound_s(b, HEDDLE_BOUND_PATH));
    heddle_json_key_double(j, "area", run_bound_s(b, HEDDLE_BOUND_AREA));
    heddle_json_key_double(j, "best", b->best_s);
    heddle_json_key_str(j, "best_kind", heddle_bound_kind_name(b->r.best_kind));
    heddle_json_key_double(j, "efficiency", b->efficiency);
    heddle_json_key_bool(j, "dependencies", b->g->has_deps != 0);
    heddle_json_end(j);
}

void run_bound_line(FILE *f, const char *path)
{
    struct run_bound b = {0};

    if (path == NULL)
        return;
    /* What failed is in b.why, and printed. */
    if (run_bound_read(&b, path) != HEDDLE_OK || b.g->graph.ntasks > 0)
        run_bound_print(f, &b);
    run_bound_close(&b);
}
