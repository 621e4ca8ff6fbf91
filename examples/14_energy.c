/* SPDX-License-Identifier: BSD-3-Clause */
/* 14_energy: the same tasks for time, for energy, and for something in between. */
#include <heddle/energy.h>
#include <heddle/heddle.h>
#include <stdio.h>

enum { TASKS = 40, N = 960 };

/* In virtual time nothing is computed, so there is nothing to write down. */
static const heddle_kernel potrf = {
    .size = sizeof(heddle_kernel),
    .name = "potrf",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU}, {.device = HEDDLE_DEV_CUDA}},
};

/* What the machine draws: all the time, and above that while a task runs. */
static heddle_status describe(heddle_energy *e)
{
    heddle_status st = heddle_energy_set_domain(
        e, &(struct heddle_energy_domain){.size = sizeof(struct heddle_energy_domain),
                                          .name = "package-0",
                                          .device = "cpu",
                                          .idle_watts = 2});

    if (st == HEDDLE_OK)
        st = heddle_energy_set_active(
            e, &(struct heddle_energy_active){.size = sizeof(struct heddle_energy_active),
                                              .kernel = "*",
                                              .device = "cpu",
                                              .watts = 3});
    if (st == HEDDLE_OK)
        st = heddle_energy_set_active(
            e, &(struct heddle_energy_active){.size = sizeof(struct heddle_energy_active),
                                              .kernel = "*",
                                              .device = "gpu0",
                                              .watts = 90});
    return st;
}

/* All tasks in a context with these options: seconds and joules. */
static heddle_status run(const struct heddle_ctx_opts *o, double *s, double *j)
{
    struct heddle_energy_use use = {.size = sizeof(use)};
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(o, &ctx);

    for (int i = 0; i < TASKS && st == HEDDLE_OK; i++) {
        heddle_handle *h = NULL;

        st = heddle_handle_matrix(ctx, NULL, N, N, 0, HEDDLE_F32, &h);
        if (st == HEDDLE_OK)
            st = heddle_submit(ctx, &potrf, &(struct heddle_call){.operand = {h}});
        heddle_handle_unref(h);
    }
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    *j = 0;
    for (unsigned i = 0; heddle_ctx_get_energy(ctx, i, &use) == HEDDLE_OK; i++)
        *j += use.active_joules + use.idle_joules;
    (void)heddle_ctx_get_stats(ctx, &stats);
    *s = (double)stats.virtual_ns * 1e-9;
    heddle_ctx_destroy(ctx);
    return st;
}

int main(int argc, char **argv)
{
    const double weight[] = {0, 0.5, 1};
    double s[3] = {0}, j[3] = {0};
    heddle_energy *model = NULL;
    heddle_status st = heddle_energy_create(NULL, &model);

    if (st == HEDDLE_OK)
        st = describe(model);
    for (int i = 0; i < 3 && st == HEDDLE_OK; i++) {
        const struct heddle_ctx_opts o = {.size = sizeof(o),
                                          .machine = argc > 1 ? argv[1]
                                                              : "examples/machines/laptop.machine",
                                          .sched = "heft",
                                          .energy_object = model,
                                          .energy_weight = weight[i],
                                          .ignore_env = true};

        st = run(&o, &s[i], &j[i]);
        printf("weight %.1f: %s, %.2f ms, %.4f J\n", weight[i], heddle_status_text(st), s[i] * 1e3,
               j[i]);
    }
    heddle_energy_destroy(model);
    return st == HEDDLE_OK && j[2] < j[0] && s[0] <= s[2] ? 0 : 1;
}
