/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_ABI_FIXTURE_OUT_H
#define HEDDLE_TESTS_ABI_FIXTURE_OUT_H

/* Structs that the library fills, or makes: the calls that do so. */
#include "tests/abi/fixture.h"

#define OUT(name, expr)                                                                            \
    static heddle_status out_##name(void *s, char *why, size_t why_bytes)                          \
    {                                                                                              \
        UNUSED_WHY;                                                                                \
        return expr;                                                                               \
    }
/* The same for a result that is ended, which leaves nothing but its size. */
#define OUT_FINI(name, expr, fini)                                                                 \
    static heddle_status out_##name(void *s, char *why, size_t why_bytes)                          \
    {                                                                                              \
        const heddle_status st = expr;                                                             \
                                                                                                   \
        UNUSED_WHY;                                                                                \
        if (st == HEDDLE_OK)                                                                       \
            fini(s);                                                                               \
        return st;                                                                                 \
    }
#define MADE(name, type, make, unmake)                                                             \
    static heddle_status made_##name(void *s, char *why, size_t why_bytes)                         \
    {                                                                                              \
        type *p = NULL;                                                                            \
        const heddle_status st = make;                                                             \
                                                                                                   \
        UNUSED_WHY;                                                                                \
        if (st == HEDDLE_OK)                                                                       \
            memcpy(s, &p->size, sizeof(p->size));                                                  \
        unmake;                                                                                    \
        return st;                                                                                 \
    }

static const struct heddle_offline_opts quick_offline = {.size = sizeof(quick_offline),
                                                         .policy = "heft"};
static const struct heddle_energy_place_opts a_place = {
    .size = sizeof(a_place), .machines = 1, .alpha = 0.5};

OUT(error, heddle_ctx_error(fx.ctx, s))
OUT(decoder, heddle_decoder_get_info(fx.decoder, s))
OUT(nn_plan, heddle_nn_get_plan(fx.net, NULL, 0, NULL, s))
OUT(stats, heddle_ctx_get_stats(fx.ctx, s))
OUT(memory, heddle_ctx_get_memory(fx.ctx, 0, s))
OUT(class, heddle_ctx_get_class(fx.ctx, 0, s))
OUT(energy_use, heddle_ctx_get_energy(fx.ctx, 0, s))
OUT(gpu, heddle_gpu_query(0, s))
OUT(machine_info, heddle_machine_query(s))
OUT(counts, heddle_machine_describe(fx.machine, s))
OUT(mclass, heddle_machine_get_class(fx.machine, 0, s))
OUT(mnode, heddle_machine_get_node(fx.machine, 1, s))
OUT(mlink, heddle_machine_get_link(fx.machine, 0, s))
OUT(source, heddle_meter_get_source(fx.meter, 0, s))
OUT(domain, heddle_meter_get_domain(fx.meter, 0, s))
OUT(sample, heddle_meter_read(fx.meter, 0, s))
OUT(edomain, heddle_energy_get_domain(fx.model, 0, s))
OUT(eactive, heddle_energy_get_active(fx.model, 0, s))
OUT(ecap, heddle_energy_get_cap(fx.model, 0, s))
OUT(counter, heddle_energy_counter_find("cpu", s))
OUT(report, heddle_plan_check(fx.graph, &a_plan_machine, fx.plan, NULL, s))
OUT_FINI(nn_tasks, heddle_nn_get_tasks(fx.net, NULL, 0, 0, NULL, s), heddle_nn_tasks_fini)
OUT_FINI(bound, heddle_bound_all(&a_bound_graph, NULL, s), heddle_bound_fini)
static const struct heddle_bound_links some_links = {
    .size = sizeof(some_links), .in = 1, .out = 1, .is_far = &near_side};

OUT_FINI(links, heddle_bound_links_find(&a_bound_graph, &some_links, NULL, s),
         heddle_bound_links_fini)
OUT_FINI(spread, heddle_spread_make(&a_spread_graph, &a_spread_machine, NULL, s),
         heddle_spread_fini)
OUT_FINI(offline, heddle_offline_schedule(&a_bound_graph, &quick_offline, s), heddle_offline_fini)
OUT_FINI(energy_bound, heddle_energy_bound(&an_energy_graph, NULL, s), heddle_energy_bound_fini)
OUT_FINI(place, heddle_energy_place_make(&a_job, 1, &a_place, s), heddle_energy_place_fini)
OUT_FINI(jobs, heddle_energy_jobs_read(NULL, fx.jobs_path, s, NULL, 0), heddle_energy_jobs_fini)

static heddle_status out_planned_info(void *s, char *why, size_t why_bytes)
{
    struct heddle_planned *p = NULL;
    heddle_graph *g = NULL;
    heddle_status st;

    UNUSED_WHY;
    CHECK_OK(heddle_graph_begin(fx.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &a_kernel, NULL));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_planned_create(g, NULL, &p));
    st = heddle_planned_get_info(p, s);
    heddle_planned_unref(p);
    heddle_graph_unref(g);
    return st;
}

static heddle_status out_plan_machine(void *s, char *why, size_t why_bytes)
{
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan *p = NULL;
    const heddle_status st = heddle_plan_read(fx.plan_path, NULL, &g, s, &p);

    UNUSED_WHY;
    heddle_plan_destroy(p);
    heddle_plan_graph_destroy(g);
    return st;
}

/* Without a BLAS there is no sequence: only the size is looked at. */
static heddle_status out_refined(void *s, char *why, size_t why_bytes)
{
    double a = 2, b = 4, x = 0;
    heddle_matrix *m[3] = {NULL};
    heddle_la *la = NULL;
    heddle_status st;
    int ipiv = 0;

    UNUSED_WHY;
    if (heddle_la_missing()[0] != '\0')
        return *(size_t *)s < sizeof(size_t) ? HEDDLE_EINVAL : HEDDLE_ENOENT;
    CHECK_OK(heddle_la_create(fx.ctx, NULL, &la));
    CHECK_OK(heddle_matrix_create(la, HEDDLE_F64, 1, 1, &a, 1, &m[0]));
    CHECK_OK(heddle_matrix_create(la, HEDDLE_F64, 1, 1, &b, 1, &m[1]));
    CHECK_OK(heddle_matrix_create(la, HEDDLE_F64, 1, 1, &x, 1, &m[2]));
    st = heddle_la_gesv_mixed(la, HEDDLE_LA_REFINE_AUTO, m[0], &ipiv, m[1], m[2], s, NULL);
    for (int i = 0; i < 3; i++)
        heddle_matrix_destroy(m[i]);
    heddle_la_destroy(la);
    return st;
}

/* --- made ------------------------------------------------------------------------ */

static heddle_status made_log_view(void *s, char *why, size_t why_bytes)
{
    UNUSED_WHY;
    memcpy(s, &heddle_log_get_view(fx.log)->size, sizeof(size_t));
    return HEDDLE_OK;
}

MADE(summary, struct heddle_log_summary, heddle_log_summary_create(fx.log, &p),
     heddle_log_summary_destroy(fx.log, p))
MADE(explain, struct heddle_explain, heddle_explain_create(fx.log, NULL, &p),
     heddle_explain_destroy(p))
MADE(log_graph, struct heddle_log_graph, heddle_log_graph_create(fx.log, NULL, &p),
     heddle_log_graph_destroy(p))
MADE(run, struct heddle_energy_run, heddle_energy_run_create(NULL, fx.model, fx.log, &p),
     heddle_energy_run_destroy(p))
MADE(plan_graph, struct heddle_plan_graph,
     heddle_plan_graph_from_chain(&a_chain, "chain", NULL, &p), heddle_plan_graph_destroy(p))
MADE(plan, struct heddle_plan,
     heddle_plan_solve(fx.graph, &a_plan_machine,
                       &(struct heddle_plan_solve_opts){
                           .size = sizeof(struct heddle_plan_solve_opts), .time_limit_s = 0.01},
                       &p),
     heddle_plan_destroy(p))
MADE(pipeline, struct heddle_pipeline, heddle_pipeline_solve(&a_model, &a_plan_machine, NULL, &p),
     heddle_pipeline_destroy(p))

static heddle_status made_instance(void *s, char *why, size_t why_bytes)
{
    struct heddle_energy_instance *p = NULL;
    struct heddle_log_graph *g = NULL;
    heddle_status st = heddle_log_graph_create(fx.log, NULL, &g);

    if (st == HEDDLE_OK)
        st = heddle_energy_graph_create(NULL, fx.model, g, NULL, 0, &p, why, why_bytes);
    if (st == HEDDLE_OK)
        memcpy(s, &p->size, sizeof(p->size));
    heddle_energy_graph_destroy(p);
    heddle_log_graph_destroy(g);
    return st;
}

static heddle_status made_fit(void *s, char *why, size_t why_bytes)
{
    const heddle_log *const log = fx.sampled;
    struct heddle_energy_fit_report *report = NULL;
    heddle_energy *model = NULL;
    const heddle_status st = heddle_energy_fit(&log, 1, NULL, &model, &report);

    UNUSED_WHY;
    if (st == HEDDLE_OK)
        memcpy(s, &report->size, sizeof(report->size));
    heddle_energy_fit_report_destroy(report);
    heddle_energy_destroy(model);
    return st;
}

#endif /* HEDDLE_TESTS_ABI_FIXTURE_OUT_H */
