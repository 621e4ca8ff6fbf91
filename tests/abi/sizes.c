/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every public struct with a size field, called with a smaller, an equal, a larger and
 * no size. scripts/check_abi.py compares the names of the rows with the headers.
 *
 *   IN    the program fills it: a smaller one is accepted and what lies behind it is
 *         not read; a larger one is accepted while its rest is zero
 *   OUT   the library fills it: never behind the program's size
 *   MADE  the library allocates it: its size is the library's
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/abi/fixture_in.h"
#include "tests/abi/fixture_out.h"

#define LATER 64 /* bytes of fields to come */

struct row {
    const char *name;
    size_t bytes;
    size_t smaller;        /* a size with which the call succeeds; 0: there is none */
    void (*fill)(void *s); /* inputs; NULL: zero but for the size */
    heddle_status (*call)(void *s, char *why, size_t why_bytes);
};

#define ROW(type, smaller, fill, call)                                                             \
    {                                                                                              \
#type, sizeof(type), smaller, fill, call                                                   \
    }
#define TO(type, field) offsetof(type, field)

/* --- inputs ------------------------------------------------------------------ */

static const struct row in_rows[] = {
    ROW(struct heddle_ctx_opts, TO(struct heddle_ctx_opts, energy_model), fill_ctx_opts, call_ctx),
    ROW(heddle_kernel, TO(heddle_kernel, cost), fill_kernel, call_kernel),
    ROW(struct heddle_task_opts, TO(struct heddle_task_opts, after), NULL, call_task),
    ROW(struct heddle_launch, TO(struct heddle_launch, priority), NULL, call_launch),
    ROW(struct heddle_nn_opts, TO(struct heddle_nn_opts, why), fill_nn_opts, call_nn),
    ROW(struct heddle_decoder_opts, TO(struct heddle_decoder_opts, why), fill_decoder_opts,
        call_decoder),
    ROW(struct heddle_decoder_choice, TO(struct heddle_decoder_choice, seed), fill_decoder_choice,
        call_decoder_choice),
    ROW(struct heddle_la_opts, TO(struct heddle_la_opts, routine), fill_la_opts, call_la),
    ROW(struct heddle_log_opts, TO(struct heddle_log_opts, why), fill_log_opts, call_log_open),
    ROW(struct heddle_log_view, TO(struct heddle_log_view, links), fill_log_view, call_compose),
    ROW(struct heddle_log_graph_opts, TO(struct heddle_log_graph_opts, machine),
        fill_log_graph_opts, call_log_graph),
    ROW(struct heddle_bound_graph, TO(struct heddle_bound_graph, reserved), fill_bound_graph,
        call_bound_graph),
    ROW(struct heddle_bound_limits, TO(struct heddle_bound_limits, gap), fill_bound_limits,
        call_bound_limits),
    ROW(struct heddle_bound_links, TO(struct heddle_bound_links, reader), fill_bound_links,
        call_bound_links),
    ROW(struct heddle_spread_graph, TO(struct heddle_spread_graph, value), fill_spread_graph,
        call_spread_graph),
    ROW(struct heddle_spread_machine, 0, fill_spread_machine, call_spread_machine),
    ROW(struct heddle_spread_opts, TO(struct heddle_spread_opts, why), fill_spread_opts,
        call_spread_opts),
    ROW(struct heddle_offline_opts, TO(struct heddle_offline_opts, release), fill_offline_opts,
        call_offline_opts),
    ROW(struct heddle_energy_graph, TO(struct heddle_energy_graph, reserved), fill_energy_graph,
        call_energy_graph),
    ROW(struct heddle_energy_limits, TO(struct heddle_energy_limits, gap), fill_energy_limits,
        call_energy_limits),
    ROW(struct heddle_energy_opts, TO(struct heddle_energy_opts, iterations), fill_energy_opts,
        call_energy_opts),
    ROW(struct heddle_energy_fit_opts, TO(struct heddle_energy_fit_opts, nbootstrap),
        fill_energy_fit_opts, call_energy_fit),
    ROW(struct heddle_energy_counter, TO(struct heddle_energy_counter, late), fill_energy_counter,
        call_energy_counter),
    ROW(struct heddle_energy_plant_opts, TO(struct heddle_energy_plant_opts, seed),
        fill_energy_plant_opts, call_energy_plant),
    ROW(struct heddle_energy_domain, TO(struct heddle_energy_domain, low), fill_energy_domain,
        call_energy_domain),
    ROW(struct heddle_energy_active, TO(struct heddle_energy_active, low), fill_energy_active,
        call_energy_active),
    ROW(struct heddle_energy_cap, 0, fill_energy_cap, call_energy_cap),
    ROW(struct heddle_energy_place_opts, TO(struct heddle_energy_place_opts, eps),
        fill_energy_place_opts, call_energy_place),
    ROW(struct heddle_meter_opts, TO(struct heddle_meter_opts, sysfs), fill_meter_opts,
        call_meter_open),
    ROW(struct heddle_pipeline_model, TO(struct heddle_pipeline_model, weights),
        fill_pipeline_model, call_pipeline_model),
    ROW(struct heddle_pipeline_opts, TO(struct heddle_pipeline_opts, ways), fill_pipeline_opts,
        call_pipeline_opts),
    ROW(struct heddle_plan_graph, TO(struct heddle_plan_graph, unit_s), fill_plan_graph,
        call_plan_graph),
    ROW(struct heddle_plan_opts, TO(struct heddle_plan_opts, why), fill_plan_opts, call_plan_opts),
    ROW(struct heddle_plan_machine, TO(struct heddle_plan_machine, host), fill_plan_machine,
        call_plan_machine),
    ROW(struct heddle_planned_opts, TO(struct heddle_planned_opts, why), fill_planned_opts,
        call_planned_opts),
    ROW(struct heddle_plan_solve_opts, TO(struct heddle_plan_solve_opts, slots),
        fill_plan_solve_opts, call_plan_solve),
};

static heddle_status in_call(const struct row *r, size_t size, int later)
{
    unsigned char *s = malloc(r->bytes + LATER);
    heddle_status st;

    CHECK(s != NULL);
    memset(s, 0, r->bytes + LATER);
    if (r->fill != NULL)
        r->fill(s);
    for (size_t i = size; size != 0 && i < r->bytes; i++)
        s[i] = 0xa5; /* must not be read */
    s[r->bytes + LATER - 1] = (unsigned char)later;
    memcpy(s, &size, sizeof(size));
    fixture_why[0] = '\0';
    st = r->call(s, fixture_why, sizeof(fixture_why));
    free(s);
    return st;
}

static void say(const struct row *r, const char *size)
{
    printf("     %s, %s size: %s\n", r->name, size, fixture_why);
}

TEST(inputs)
{
    fixture_open();
    for (size_t i = 0; i < sizeof(in_rows) / sizeof(in_rows[0]); i++) {
        const struct row *r = &in_rows[i];
        heddle_status st = in_call(r, r->bytes, 0);

        if (st == HEDDLE_EINVAL)
            say(r, "equal");
        CHECK(st != HEDDLE_EINVAL);
        st = in_call(r, r->bytes + LATER, 0);
        if (st == HEDDLE_EINVAL)
            say(r, "larger");
        CHECK(st != HEDDLE_EINVAL);
        CHECK_STATUS(in_call(r, r->bytes + LATER, 1), HEDDLE_EINVAL);
        if (!fixture_is_silent(r->name) && strstr(fixture_why, "leave these zero") == NULL) {
            say(r, "larger");
            CHECK(strstr(fixture_why, "leave these zero") != NULL);
        }
        CHECK_STATUS(in_call(r, 0, 0), HEDDLE_EINVAL);
        if (!fixture_is_silent(r->name) && strstr(fixture_why, "set its field size") == NULL) {
            say(r, "no");
            CHECK(strstr(fixture_why, "set its field size") != NULL);
        }
        st = in_call(r, r->smaller != 0 ? r->smaller : r->bytes - 8, 0);
        if ((st == HEDDLE_EINVAL) != (r->smaller == 0))
            say(r, "smaller");
        CHECK((st == HEDDLE_EINVAL) == (r->smaller == 0));
    }
    fixture_close();
}

/* --- outputs ----------------------------------------------------------------- */

static const struct row out_rows[] = {
    ROW(struct heddle_error, TO(struct heddle_error, kernel), NULL, out_error),
    ROW(struct heddle_ctx_stats, TO(struct heddle_ctx_stats, steals), NULL, out_stats),
    ROW(struct heddle_decoder_info, TO(struct heddle_decoder_info, vocabulary), NULL, out_decoder),
    ROW(struct heddle_nn_plan_info, TO(struct heddle_nn_plan_info, flops), NULL, out_nn_plan),
    ROW(struct heddle_nn_tasks, TO(struct heddle_nn_tasks, reader), NULL, out_nn_tasks),
    ROW(struct heddle_memory_info, TO(struct heddle_memory_info, evictions), NULL, out_memory),
    ROW(struct heddle_class_info, TO(struct heddle_class_info, is_lost), NULL, out_class),
    ROW(struct heddle_energy_use, TO(struct heddle_energy_use, device), NULL, out_energy_use),
    ROW(struct heddle_gpu_info, TO(struct heddle_gpu_info, why), NULL, out_gpu),
    ROW(struct heddle_machine_info, TO(struct heddle_machine_info, model), NULL, out_machine_info),
    ROW(struct heddle_machine_counts, TO(struct heddle_machine_counts, wake_ns), NULL, out_counts),
    ROW(struct heddle_machine_class, TO(struct heddle_machine_class, gflops), NULL, out_mclass),
    ROW(struct heddle_machine_node, TO(struct heddle_machine_node, bytes), NULL, out_mnode),
    ROW(struct heddle_machine_link, TO(struct heddle_machine_link, bus), NULL, out_mlink),
    ROW(struct heddle_meter_source, TO(struct heddle_meter_source, why), NULL, out_source),
    ROW(struct heddle_meter_domain, TO(struct heddle_meter_domain, why), NULL, out_domain),
    ROW(struct heddle_meter_sample, TO(struct heddle_meter_sample, has_gap), NULL, out_sample),
    ROW(struct heddle_energy_domain, TO(struct heddle_energy_domain, low), NULL, out_edomain),
    ROW(struct heddle_energy_active, TO(struct heddle_energy_active, group), NULL, out_eactive),
    ROW(struct heddle_energy_cap, TO(struct heddle_energy_cap, watts_factor), NULL, out_ecap),
    ROW(struct heddle_energy_counter, TO(struct heddle_energy_counter, margin_ns), NULL,
        out_counter),
    ROW(struct heddle_bound_result, TO(struct heddle_bound_result, best), NULL, out_bound),
    ROW(struct heddle_bound_links_cert, TO(struct heddle_bound_links_cert, flow), NULL, out_links),
    ROW(struct heddle_spread_result, TO(struct heddle_spread_result, busy), NULL, out_spread),
    ROW(struct heddle_offline_result, TO(struct heddle_offline_result, policy), NULL, out_offline),
    ROW(struct heddle_energy_bound_result, TO(struct heddle_energy_bound_result, cert), NULL,
        out_energy_bound),
    ROW(struct heddle_energy_place, TO(struct heddle_energy_place, cost), NULL, out_place),
    ROW(struct heddle_energy_jobs, TO(struct heddle_energy_jobs, ndue), NULL, out_jobs),
    ROW(struct heddle_la_refined, TO(struct heddle_la_refined, tries), NULL, out_refined),
    ROW(struct heddle_plan_machine, TO(struct heddle_plan_machine, host), NULL, out_plan_machine),
    ROW(struct heddle_planned_info, TO(struct heddle_planned_info, real_arena_bytes), NULL,
        out_planned_info),
    ROW(struct heddle_plan_report, TO(struct heddle_plan_report, makespan), NULL, out_report),
};

/* What the library wrote, and that it wrote nothing behind `size`. */
static heddle_status out_call(const struct row *r, size_t size)
{
    const size_t all = r->bytes + 2 * LATER;
    unsigned char *s = malloc(all);
    heddle_status st;
    size_t now;

    CHECK(s != NULL);
    memset(s, 0xa5, all);
    memcpy(s, &size, sizeof(size));
    st = r->call(s, NULL, 0);
    memcpy(&now, s, sizeof(now));
    CHECK_EQ(now, size);
    for (size_t i = size < sizeof(size) ? sizeof(size) : size; i < all; i++)
        if (s[i] != 0xa5) {
            printf("     %s, size %zu: byte %zu was written\n", r->name, size, i);
            CHECK(s[i] == 0xa5);
        }
    for (size_t i = r->bytes; st == HEDDLE_OK && i < size; i++)
        CHECK_EQ(s[i], 0);
    free(s);
    return st;
}

TEST(outputs)
{
    fixture_open();
    for (size_t i = 0; i < sizeof(out_rows) / sizeof(out_rows[0]); i++) {
        const struct row *r = &out_rows[i];

        if (out_call(r, r->bytes) == HEDDLE_EINVAL || out_call(r, r->smaller) == HEDDLE_EINVAL ||
            out_call(r, r->bytes + LATER) == HEDDLE_EINVAL || out_call(r, 0) != HEDDLE_EINVAL ||
            out_call(r, 1) != HEDDLE_EINVAL) {
            printf("     %s\n", r->name);
            CHECK(!"a size is taken, or refused, wrongly");
        }
    }
    fixture_close();
}

/* --- made by the library ------------------------------------------------------- */

static const struct row made_rows[] = {
    ROW(struct heddle_log_view, 0, NULL, made_log_view),
    ROW(struct heddle_log_summary, 0, NULL, made_summary),
    ROW(struct heddle_explain, 0, NULL, made_explain),
    ROW(struct heddle_log_graph, 0, NULL, made_log_graph),
    ROW(struct heddle_energy_run, 0, NULL, made_run),
    ROW(struct heddle_energy_instance, 0, NULL, made_instance),
    ROW(struct heddle_energy_fit_report, 0, NULL, made_fit),
    ROW(struct heddle_plan_graph, 0, NULL, made_plan_graph),
    ROW(struct heddle_plan, 0, NULL, made_plan),
    ROW(struct heddle_pipeline, 0, NULL, made_pipeline),
};

TEST(made)
{
    fixture_open();
    for (size_t i = 0; i < sizeof(made_rows) / sizeof(made_rows[0]); i++) {
        size_t size = 0;

        CHECK_OK(made_rows[i].call(&size, fixture_why, sizeof(fixture_why)));
        CHECK_EQ(size, made_rows[i].bytes);
    }
    fixture_close();
}

TEST_MAIN(inputs, outputs, made)
