/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_ABI_FIXTURE_H
#define HEDDLE_TESTS_ABI_FIXTURE_H

/*
 * What the rows of sizes.c call: for each public struct with a size a small valid
 * instance, and a call that takes or fills it.
 */
#include "heddle/compose.h"
#include "heddle/energy_bound.h"
#include "heddle/energy_fit.h"
#include "heddle/energy_meter.h"
#include "heddle/energy_place.h"
#include "heddle/explain.h"
#include "heddle/heddle.h"
#include "heddle/la.h"
#include "heddle/log_graph.h"
#include "heddle/machine.h"
#include "heddle/offline.h"
#include "heddle/pipeline.h"
#include "heddle/plan.h"
#include "tests/test.h"

static char fixture_why[400];

static struct {
    heddle_ctx *ctx;
    heddle_log *log, *sampled;
    heddle_energy *model;
    heddle_machine *machine;
    heddle_meter *meter;
    struct heddle_plan_graph *graph;
    struct heddle_plan *plan;
    char dir[32], log_path[64], sampled_path[64], out_path[64], machine_path[64], plan_path[64],
        jobs_path[64];
} fx;

/* --- graphs, chains and machines of one task ------------------------------------- */

static const uint32_t one_worker = 1;
static const double one_time = 1000.0, one_joule = 2.0;
static const struct heddle_bound_graph a_bound_graph = {.size = sizeof(a_bound_graph),
                                                        .ntasks = 1,
                                                        .ntypes = 1,
                                                        .nworkers = &one_worker,
                                                        .time = &one_time};
static const struct heddle_energy_graph an_energy_graph = {
    .size = sizeof(an_energy_graph), .graph = &a_bound_graph, .joules = &one_joule, .idle = 1.0};
static const uint64_t two_bytes[] = {8, 8};
static const uint64_t no_bytes[] = {0};
static const struct heddle_plan_chain a_chain = {.n = 1,
                                                 .x = two_bytes,
                                                 .t = two_bytes,
                                                 .forward = &one_time,
                                                 .backward = &one_time,
                                                 .work_f = no_bytes,
                                                 .work_b = no_bytes};
static const struct heddle_pipeline_model a_model = {.size = sizeof(a_model), .chain = &a_chain};
static const struct heddle_plan_machine a_plan_machine = {.size = sizeof(a_plan_machine),
                                                          .budget = 1 << 20};
static const struct heddle_plan_op a_plan_op = {
    .time = 1, .nvalues = 1, .inplace = HEDDLE_PLAN_NONE};
static const struct heddle_plan_value a_plan_value = {.bytes = 8, .op = 0};
static const struct heddle_energy_job a_job = {"a", 5, HEDDLE_ENERGY_NO_DUE};

static heddle_status run_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static const heddle_kernel a_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "nothing",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_nothing}}};

static const struct heddle_log_kernel a_log_kernel = {.id = 1, .name = "k"};
static const struct heddle_log_lane a_lane = {.kind = HEDDLE_LOG_WORKER, .cpu = -1, .name = "w"};
static const struct heddle_log_task a_task = {.id = 1,
                                              .submit_ns = 0,
                                              .ready_ns = 0,
                                              .start_ns = 0,
                                              .end_ns = 2000000000,
                                              .kernel = 0,
                                              .lane = 0};

/* --- the fixture ------------------------------------------------------------------ */

static void fixture_file(char *path, size_t bytes, const char *name, const char *text)
{
    FILE *f;

    snprintf(path, bytes, "%s/%s", fx.dir, name);
    f = text == NULL ? NULL : fopen(path, "w");
    if (f != NULL) {
        fputs(text, f);
        CHECK_EQ(fclose(f), 0);
    }
}

static void fixture_model(void)
{
    const struct heddle_energy_domain d = {
        .size = sizeof(d), .name = "package-0", .device = "cpu", .idle_watts = 10};
    const struct heddle_energy_active w = {
        .size = sizeof(w), .kernel = "k", .device = "cpu", .watts = 5};
    const struct heddle_energy_cap c = {
        .size = sizeof(c), .device = "cpu", .name = "5W", .time_factor = 2, .watts_factor = 0.5};

    CHECK_OK(heddle_energy_create(NULL, &fx.model));
    CHECK_OK(heddle_energy_set_domain(fx.model, &d));
    CHECK_OK(heddle_energy_set_active(fx.model, &w));
    CHECK_OK(heddle_energy_set_cap(fx.model, &c));
}

static void fixture_open(void)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 1, .ignore_env = true, .model_dir = "", .devices = "none"};
    const struct heddle_log_view v = {.size = sizeof(v),
                                      .kernels = &a_log_kernel,
                                      .nkernels = 1,
                                      .lanes = &a_lane,
                                      .nlanes = 1,
                                      .tasks = &a_task,
                                      .ntasks = 1};
    const struct heddle_plan_solve_opts s = {.size = sizeof(s), .time_limit_s = 0.01};

    snprintf(fx.dir, sizeof(fx.dir), "sizes.XXXXXX");
    CHECK(mkdtemp(fx.dir) != NULL);
    fixture_file(fx.log_path, sizeof(fx.log_path), "log", NULL);
    fixture_file(fx.sampled_path, sizeof(fx.sampled_path), "sampled", NULL);
    fixture_file(fx.out_path, sizeof(fx.out_path), "out", NULL);
    fixture_file(fx.plan_path, sizeof(fx.plan_path), "plan", NULL);
    fixture_file(fx.jobs_path, sizeof(fx.jobs_path), "jobs", "heddle-jobs 1\njob a 5\n");
    fixture_file(fx.machine_path, sizeof(fx.machine_path), "machine",
                 "heddle-machine 1\nnode gpu0 bytes 4G\nclass cpu kind cpu workers 4 gflops 30\n"
                 "class gpu0 kind cuda workers 1 node gpu0 model small gflops 1500\n"
                 "duplex host gpu0 gbytes 6 latency_us 12\n");
    CHECK_OK(heddle_ctx_create(&o, &fx.ctx));
    CHECK_OK(heddle_log_compose(&v, fx.log_path, NULL));
    CHECK_OK(heddle_log_open(fx.log_path, NULL, &fx.log));
    fixture_model();
    CHECK_OK(heddle_energy_plant_write(fx.log, fx.model, NULL, fx.sampled_path));
    CHECK_OK(heddle_log_open(fx.sampled_path, NULL, &fx.sampled));
    CHECK_OK(heddle_machine_open(fx.machine_path, &fx.machine, fixture_why, sizeof(fixture_why)));
    CHECK_OK(heddle_meter_open(NULL, &fx.meter));
    CHECK_OK(heddle_plan_graph_from_chain(&a_chain, "chain", NULL, &fx.graph));
    CHECK_OK(heddle_plan_solve(fx.graph, &a_plan_machine, &s, &fx.plan));
    CHECK_OK(heddle_plan_write(fx.graph, &a_plan_machine, fx.plan, fx.plan_path, NULL));
}

static void fixture_close(void)
{
    const char *const path[] = {fx.log_path,     fx.sampled_path, fx.out_path,
                                fx.machine_path, fx.plan_path,    fx.jobs_path};

    heddle_plan_destroy(fx.plan);
    heddle_plan_graph_destroy(fx.graph);
    heddle_meter_close(fx.meter);
    heddle_machine_close(fx.machine);
    heddle_energy_destroy(fx.model);
    heddle_log_close(fx.sampled);
    heddle_log_close(fx.log);
    CHECK_OK(heddle_ctx_destroy(fx.ctx));
    for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++)
        (void)unlink(path[i]);
    CHECK_EQ(rmdir(fx.dir), 0);
}

/* Calls without a place for a sentence. */
static bool fixture_is_silent(const char *name)
{
    return strcmp(name, "struct heddle_energy_domain") == 0 ||
           strcmp(name, "struct heddle_energy_active") == 0 ||
           strcmp(name, "struct heddle_energy_cap") == 0;
}

/* --- inputs: a valid one, and a call with it --------------------------------------- */

#define SENTENCE .why = fixture_why, .why_bytes = sizeof(fixture_why)
#define FILL(name, type, ...)                                                                      \
    static void fill_##name(void *s)                                                               \
    {                                                                                              \
        const type v = {.size = sizeof(v), __VA_ARGS__};                                           \
                                                                                                   \
        memcpy(s, &v, sizeof(v));                                                                  \
    }
/* The body has s, why and why_bytes. */
#define CALL(name) static heddle_status call_##name(void *s, char *why, size_t why_bytes)
#define UNUSED_WHY (void)why, (void)why_bytes

FILL(ctx_opts, struct heddle_ctx_opts, .nworkers = 1, .ignore_env = true, .model_dir = "",
     .devices = "none", SENTENCE)
FILL(kernel, heddle_kernel, .name = "k",
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_nothing}})
FILL(la_opts, struct heddle_la_opts, SENTENCE)
FILL(log_opts, struct heddle_log_opts, SENTENCE)
FILL(log_view, struct heddle_log_view, .kernels = &a_log_kernel, .nkernels = 1, .lanes = &a_lane,
     .nlanes = 1, .tasks = &a_task, .ntasks = 1)
FILL(log_graph_opts, struct heddle_log_graph_opts, SENTENCE)
FILL(bound_graph, struct heddle_bound_graph, .ntasks = 1, .ntypes = 1, .nworkers = &one_worker,
     .time = &one_time)
FILL(bound_limits, struct heddle_bound_limits, .time_ns = 1000000, SENTENCE)
FILL(offline_opts, struct heddle_offline_opts, .policy = "heft", SENTENCE)
FILL(energy_graph, struct heddle_energy_graph, .graph = &a_bound_graph, .joules = &one_joule,
     .idle = 1.0)
FILL(energy_limits, struct heddle_energy_limits, .time_ns = 1000000, SENTENCE)
FILL(energy_opts, struct heddle_energy_opts, .time_ns = 1000000, SENTENCE)
FILL(energy_fit_opts, struct heddle_energy_fit_opts, SENTENCE)
FILL(energy_counter, struct heddle_energy_counter, .period_ns = 1000000, .sampled = 1,
     .quantum_j = 1e-6, .sample_ns = 1000000)
FILL(energy_plant_opts, struct heddle_energy_plant_opts, SENTENCE)
FILL(energy_domain, struct heddle_energy_domain, .name = "d", .device = "cpu", .idle_watts = 1)
FILL(energy_active, struct heddle_energy_active, .kernel = "k", .device = "cpu", .watts = 1)
FILL(energy_cap, struct heddle_energy_cap, .device = "cpu", .name = "c", .time_factor = 1,
     .watts_factor = 1)
FILL(energy_place_opts, struct heddle_energy_place_opts, .machines = 1, .alpha = 0.5, SENTENCE)
FILL(meter_opts, struct heddle_meter_opts, SENTENCE)
FILL(pipeline_model, struct heddle_pipeline_model, .chain = &a_chain)
FILL(pipeline_opts, struct heddle_pipeline_opts, SENTENCE)
FILL(plan_graph, struct heddle_plan_graph, .name = "one", .nops = 1, .nvalues = 1,
     .ops = &a_plan_op, .values = &a_plan_value)
FILL(plan_opts, struct heddle_plan_opts, SENTENCE)
FILL(plan_machine, struct heddle_plan_machine, .budget = 1 << 20)
FILL(plan_solve_opts, struct heddle_plan_solve_opts, .time_limit_s = 0.01, SENTENCE)

static heddle_status told(heddle_ctx *ctx, heddle_status st, char *why, size_t why_bytes)
{
    struct heddle_error e = {.size = sizeof(e)};

    CHECK_OK(heddle_ctx_error(ctx, &e));
    snprintf(why, why_bytes, "%s", e.message);
    return st;
}

CALL(ctx)
{
    heddle_ctx *ctx = NULL;
    const heddle_status st = heddle_ctx_create(s, &ctx);

    UNUSED_WHY;
    CHECK_OK(heddle_ctx_destroy(ctx));
    return st;
}

/* A context knows a kernel by its address: a new one each time. */
CALL(kernel)
{
    struct heddle_ctx_opts o;
    heddle_ctx *ctx = NULL;
    heddle_status st;

    fill_ctx_opts(&o);
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    st = told(ctx, heddle_submit(ctx, s, NULL), why, why_bytes);
    CHECK_OK(heddle_ctx_destroy(ctx));
    return st;
}

CALL(task)
{
    const struct heddle_call c = {.opts = s};

    return told(fx.ctx, heddle_submit(fx.ctx, &a_kernel, &c), why, why_bytes);
}

CALL(launch)
{
    heddle_graph *g = NULL;
    heddle_status st;

    CHECK_OK(heddle_graph_begin(fx.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &a_kernel, NULL));
    CHECK_OK(heddle_graph_end(g));
    st = told(fx.ctx, heddle_graph_launch(g, s), why, why_bytes);
    CHECK_OK(heddle_wait(fx.ctx));
    heddle_graph_unref(g);
    return st;
}

CALL(la)
{
    heddle_la *la = NULL;
    const heddle_status st = heddle_la_create(fx.ctx, s, &la);

    UNUSED_WHY;
    heddle_la_destroy(la);
    return st;
}

CALL(log_open)
{
    heddle_log *log = NULL;
    const heddle_status st = heddle_log_open(fx.log_path, s, &log);

    UNUSED_WHY;
    heddle_log_close(log);
    return st;
}

CALL(compose)
{
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};

    return heddle_log_compose(s, fx.out_path, &o);
}

CALL(log_graph)
{
    struct heddle_log_graph *g = NULL;
    const heddle_status st = heddle_log_graph_create(fx.log, s, &g);

    UNUSED_WHY;
    heddle_log_graph_destroy(g);
    return st;
}

static heddle_status bound(const void *graph, const void *limits)
{
    struct heddle_bound_result r = {.size = sizeof(r)};
    const heddle_status st = heddle_bound_all(graph, limits, &r);

    heddle_bound_fini(&r);
    return st;
}

CALL(bound_graph)
{
    const struct heddle_bound_limits l = {
        .size = sizeof(l), .time_ns = 1000000, .why = why, .why_bytes = why_bytes};

    return bound(s, &l);
}

CALL(bound_limits)
{
    UNUSED_WHY;
    return bound(&a_bound_graph, s);
}

CALL(offline_opts)
{
    struct heddle_offline_result r = {.size = sizeof(r)};
    heddle_status st = heddle_offline_schedule(&a_bound_graph, s, &r);

    UNUSED_WHY;
    if (st == HEDDLE_OK)
        st = heddle_offline_check(&a_bound_graph, s, &r);
    heddle_offline_fini(&r);
    return st;
}

static heddle_status energy_bound(const void *graph, const void *limits)
{
    struct heddle_energy_bound_result r = {.size = sizeof(r)};
    heddle_status st = heddle_energy_bound(graph, limits, &r);

    if (st == HEDDLE_OK)
        st = heddle_energy_bound_check(graph, &r.cert, r.value, limits, NULL);
    heddle_energy_bound_fini(&r);
    return st;
}

CALL(energy_graph)
{
    const struct heddle_energy_limits l = {
        .size = sizeof(l), .time_ns = 1000000, .why = why, .why_bytes = why_bytes};

    return energy_bound(s, &l);
}

CALL(energy_limits)
{
    UNUSED_WHY;
    return energy_bound(&an_energy_graph, s);
}

CALL(energy_opts)
{
    struct heddle_offline_result r = {.size = sizeof(r)};
    const heddle_status st = heddle_energy_schedule(&an_energy_graph, s, &r, NULL);

    UNUSED_WHY;
    heddle_offline_fini(&r);
    return st;
}

CALL(energy_fit)
{
    const heddle_log *const log = fx.sampled;
    struct heddle_energy_fit_report *report = NULL;
    heddle_energy *model = NULL;
    const heddle_status st = heddle_energy_fit(&log, 1, s, &model, &report);

    UNUSED_WHY;
    heddle_energy_fit_report_destroy(report);
    heddle_energy_destroy(model);
    return st;
}

CALL(energy_counter)
{
    const struct heddle_energy_plant_opts o = {
        .size = sizeof(o), .cpu = s, .why = why, .why_bytes = why_bytes};

    return heddle_energy_plant_write(fx.log, fx.model, &o, fx.out_path);
}

CALL(energy_plant)
{
    UNUSED_WHY;
    return heddle_energy_plant_write(fx.log, fx.model, s, fx.out_path);
}

CALL(energy_domain)
{
    UNUSED_WHY;
    return heddle_energy_set_domain(fx.model, s);
}

CALL(energy_active)
{
    UNUSED_WHY;
    return heddle_energy_set_active(fx.model, s);
}

CALL(energy_cap)
{
    UNUSED_WHY;
    return heddle_energy_set_cap(fx.model, s);
}

CALL(energy_place)
{
    struct heddle_energy_place p = {.size = sizeof(p)};
    heddle_status st = heddle_energy_place_make(&a_job, 1, s, &p);

    UNUSED_WHY;
    if (st == HEDDLE_OK)
        st = heddle_energy_place_check(&a_job, 1, s, &p);
    heddle_energy_place_fini(&p);
    return st;
}

CALL(meter_open)
{
    heddle_meter *m = NULL;
    const heddle_status st = heddle_meter_open(s, &m);

    UNUSED_WHY;
    heddle_meter_close(m);
    return st;
}

static heddle_status pipeline(const void *model, const void *opts)
{
    struct heddle_pipeline *p = NULL;
    const heddle_status st = heddle_pipeline_solve(model, &a_plan_machine, opts, &p);

    heddle_pipeline_destroy(p);
    return st;
}

CALL(pipeline_model)
{
    const struct heddle_pipeline_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};

    return pipeline(s, &o);
}

CALL(pipeline_opts)
{
    UNUSED_WHY;
    return pipeline(&a_model, s);
}

CALL(plan_graph)
{
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};
    struct heddle_plan_graph *g = NULL;
    const heddle_status st = heddle_plan_graph_create(s, &o, &g);

    heddle_plan_graph_destroy(g);
    return st;
}

CALL(plan_opts)
{
    struct heddle_plan_graph *g = NULL;
    const heddle_status st = heddle_plan_graph_from_chain(&a_chain, "chain", s, &g);

    UNUSED_WHY;
    heddle_plan_graph_destroy(g);
    return st;
}

CALL(plan_machine)
{
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};

    return heddle_plan_check(fx.graph, s, fx.plan, &o, NULL);
}

CALL(plan_solve)
{
    struct heddle_plan *p = NULL;
    const heddle_status st = heddle_plan_solve(fx.graph, &a_plan_machine, s, &p);

    UNUSED_WHY;
    heddle_plan_destroy(p);
    return st;
}

#endif /* HEDDLE_TESTS_ABI_FIXTURE_H */
