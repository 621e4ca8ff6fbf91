/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_ABI_FIXTURE_H
#define HEDDLE_TESTS_ABI_FIXTURE_H

/*
 * What the calls of sizes.c work on: a context, a log, models, a machine, a plan, each
 * as small as it can be. fixture_in.h and fixture_out.h have the calls.
 */
#include "heddle/compose.h"
#include "heddle/decoder.h"
#include "heddle/energy_bound.h"
#include "heddle/energy_fit.h"
#include "heddle/energy_meter.h"
#include "heddle/energy_place.h"
#include "heddle/explain.h"
#include "heddle/heddle.h"
#include "heddle/la.h"
#include "heddle/log_graph.h"
#include "heddle/machine.h"
#include "heddle/nn.h"
#include "heddle/offline.h"
#include "heddle/pipeline.h"
#include "heddle/plan.h"
#include "heddle/planned.h"
#include "heddle/spread.h"
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
        jobs_path[64], net_path[64], decoder_path[64];
    heddle_nn *net, *decoder_net;
    heddle_decoder *decoder;
} fx;

/* --- graphs, chains and machines of one task ------------------------------------- */

static const uint32_t one_worker = 1;
static const double one_time = 1000.0, one_joule = 2.0;
static const uint8_t near_side = 0;
static const struct heddle_bound_graph a_bound_graph = {.size = sizeof(a_bound_graph),
                                                        .ntasks = 1,
                                                        .ntypes = 1,
                                                        .nworkers = &one_worker,
                                                        .time = &one_time};
static const struct heddle_energy_graph an_energy_graph = {
    .size = sizeof(an_energy_graph), .graph = &a_bound_graph, .joules = &one_joule, .idle = 1.0};
static const uint32_t host_node = 0;
static const struct heddle_spread_node host_memory = {.in_rate = 1, .out_rate = 1};
static const struct heddle_spread_graph a_spread_graph = {
    .size = sizeof(a_spread_graph), .nops = 1, .time = &one_time};
static const struct heddle_spread_machine a_spread_machine = {.size = sizeof(a_spread_machine),
                                                              .nclasses = 1,
                                                              .nnodes = 1,
                                                              .nworkers = &one_worker,
                                                              .node = &host_node,
                                                              .memory = &host_memory};
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
    /* A network that does nothing: a graph with a name. */
    fixture_file(fx.net_path, sizeof(fx.net_path), "net.onnx", "\x3a\x03\x12\x01g");
    CHECK_OK(heddle_nn_open(fx.ctx, fx.net_path, NULL, &fx.net));
    /* One with the ports of a decoder: input_ids of b x s -> Identity -> logits of b x s x v. */
    fixture_file(fx.decoder_path, sizeof(fx.decoder_path), "decoder.onnx",
                 "\x08\x08:j\x0a%\x0a\x09input_ids\x12\x06logits\x1a\x06logits\"\x08Identity"
                 "\x12\x01gZ\x1d\x0a\x09input_ids\x12\x10\x0a\x0e\x08\x07\x12\x0a\x0a\x03\x12"
                 "\x01"
                 "b\x0a\x03\x12\x01s"
                 "b\x1f\x0a\x06logits\x12\x15\x0a\x13\x08\x01\x12\x0f\x0a\x03\x12\x01"
                 "b"
                 "\x0a\x03\x12\x01s\x0a\x03\x12\x01vB\x02\x10\x11");
    CHECK_OK(heddle_nn_open(fx.ctx, fx.decoder_path, NULL, &fx.decoder_net));
    CHECK_OK(heddle_decoder_create(fx.decoder_net, NULL, &fx.decoder));
    CHECK_OK(heddle_machine_open(fx.machine_path, &fx.machine, fixture_why, sizeof(fixture_why)));
    CHECK_OK(heddle_meter_open(NULL, &fx.meter));
    CHECK_OK(heddle_plan_graph_from_chain(&a_chain, "chain", NULL, &fx.graph));
    CHECK_OK(heddle_plan_solve(fx.graph, &a_plan_machine, &s, &fx.plan));
    CHECK_OK(heddle_plan_write(fx.graph, &a_plan_machine, fx.plan, fx.plan_path, NULL));
}

static void fixture_close(void)
{
    const char *const path[] = {fx.log_path,  fx.sampled_path, fx.out_path, fx.machine_path,
                                fx.plan_path, fx.jobs_path,    fx.net_path, fx.decoder_path};

    heddle_plan_destroy(fx.plan);
    heddle_plan_graph_destroy(fx.graph);
    heddle_meter_close(fx.meter);
    heddle_decoder_destroy(fx.decoder);
    heddle_nn_close(fx.decoder_net);
    heddle_nn_close(fx.net);
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

#define UNUSED_WHY (void)why, (void)why_bytes

#endif /* HEDDLE_TESTS_ABI_FIXTURE_H */
