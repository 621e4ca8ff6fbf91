/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_ABI_FIXTURE_IN_H
#define HEDDLE_TESTS_ABI_FIXTURE_IN_H

/* Structs that the program fills: a small valid one of each, and a call that takes it. */
#include "tests/abi/fixture.h"

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

FILL(ctx_opts, struct heddle_ctx_opts, .nworkers = 1, .ignore_env = true, .model_dir = "",
     .devices = "none", SENTENCE)
FILL(kernel, heddle_kernel, .name = "k",
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_nothing}})
FILL(nn_opts, struct heddle_nn_opts, SENTENCE)
FILL(decoder_opts, struct heddle_decoder_opts, .max_sequences = 1, SENTENCE)
FILL(decoder_choice, struct heddle_decoder_choice, .temperature = 1)
FILL(la_opts, struct heddle_la_opts, SENTENCE)
FILL(log_opts, struct heddle_log_opts, SENTENCE)
FILL(log_view, struct heddle_log_view, .kernels = &a_log_kernel, .nkernels = 1, .lanes = &a_lane,
     .nlanes = 1, .tasks = &a_task, .ntasks = 1)
FILL(log_graph_opts, struct heddle_log_graph_opts, SENTENCE)
FILL(bound_graph, struct heddle_bound_graph, .ntasks = 1, .ntypes = 1, .nworkers = &one_worker,
     .time = &one_time)
FILL(bound_limits, struct heddle_bound_limits, .time_ns = 1000000, SENTENCE)
FILL(bound_links, struct heddle_bound_links, .in = 1, .out = 1, .is_far = &near_side)
FILL(spread_graph, struct heddle_spread_graph, .nops = 1, .time = &one_time)
FILL(spread_machine, struct heddle_spread_machine, .nclasses = 1, .nnodes = 1,
     .nworkers = &one_worker, .node = &host_node, .memory = &host_memory)
FILL(spread_opts, struct heddle_spread_opts, SENTENCE)
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
FILL(planned_opts, struct heddle_planned_opts, .time_limit_s = 0.01, SENTENCE)
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

CALL(nn)
{
    heddle_nn *net = NULL;
    const heddle_status st = heddle_nn_open(fx.ctx, fx.net_path, s, &net);

    UNUSED_WHY;
    heddle_nn_close(net);
    return st;
}

CALL(decoder)
{
    heddle_decoder *d = NULL;
    const heddle_status st = heddle_decoder_create(fx.decoder_net, s, &d);

    UNUSED_WHY;
    heddle_decoder_destroy(d);
    return st;
}

CALL(decoder_choice)
{
    const int64_t prompt = 1;
    unsigned sequence = 0;
    const heddle_status st = heddle_decoder_begin(fx.decoder, &prompt, 1, 0, s, &sequence);

    snprintf(why, why_bytes, "%s", heddle_decoder_why(fx.decoder));
    if (st == HEDDLE_OK)
        heddle_decoder_end(fx.decoder, sequence);
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

CALL(bound_links)
{
    const struct heddle_bound_limits l = {
        .size = sizeof(l), .time_ns = 1000000, .why = why, .why_bytes = why_bytes};
    struct heddle_bound_links_cert c = {.size = sizeof(c)};
    heddle_status st = heddle_bound_links_find(&a_bound_graph, s, &l, &c);

    if (st == HEDDLE_OK)
        st = heddle_bound_links_check(&a_bound_graph, s, &c, c.value, &l, NULL);
    heddle_bound_links_fini(&c);
    return st;
}

static heddle_status spread(const struct heddle_spread_graph *g,
                            const struct heddle_spread_machine *m,
                            const struct heddle_spread_opts *o)
{
    struct heddle_spread_result r = {.size = sizeof(r)};
    heddle_status st = heddle_spread_make(g, m, o, &r);

    if (st == HEDDLE_OK)
        st = heddle_spread_check(g, m, o, &r);
    heddle_spread_fini(&r);
    return st;
}

CALL(spread_graph)
{
    const struct heddle_spread_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};

    return spread(s, &a_spread_machine, &o);
}

CALL(spread_machine)
{
    const struct heddle_spread_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};

    return spread(&a_spread_graph, s, &o);
}

CALL(spread_opts)
{
    UNUSED_WHY;
    return spread(&a_spread_graph, &a_spread_machine, s);
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

CALL(planned_opts)
{
    struct heddle_planned *p = NULL;
    heddle_graph *g = NULL;
    heddle_status st;

    UNUSED_WHY;
    CHECK_OK(heddle_graph_begin(fx.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &a_kernel, NULL));
    CHECK_OK(heddle_graph_end(g));
    st = heddle_planned_create(g, s, &p);
    heddle_planned_unref(p);
    heddle_graph_unref(g);
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

#endif /* HEDDLE_TESTS_ABI_FIXTURE_IN_H */
