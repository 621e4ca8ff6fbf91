/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/plan/chain: how long the tables of chain solvers take.
 *
 * A generated chain of so many layers, so many slots over 35 % of its tapes, one
 * plan, checked. Seconds are those of the thread's processor time: other work on
 * the machine does not count. Bytes are the most the process had: the largest
 * case is the last.
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "bench/plan/plan.h"
#include "plan/gen.h"

struct chain_bar {
    const char *solver;
    uint32_t layers, slots;
    double must_s, aim_s; /* 0: none */
};

static const struct chain_bar bars[] = {
    {"chain_general", 100, 500, 2, 1},
    {"chain_unpinned", 92, 500, 0, 0},
    {"chain", 339, 500, 0.8, 0.4},
    {"chain", 1000, 500, 20, 10},
};

static uint64_t most_bytes(void)
{
    struct rusage u;

    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

static int print_bar(struct cli *c, const struct chain_bar *b, const struct plan_try *t,
                     double seconds)
{
    const uint64_t bytes = most_bytes();
    struct heddle_json j;

    if (!c->json) {
        fprintf(c->out,
                "%-16s %5u layers %4u slots  %+8.3f %%  %8.3f s of processor "
                "time",
                b->solver, b->layers, b->slots, t->plan != NULL ? 100 * plan_increase(t->plan) : 0,
                seconds);
        if (b->must_s > 0)
            fprintf(c->out, " (must %g, aim %g)", b->must_s, b->aim_s);
        fprintf(c->out, "  %.2f GB  %s\n", (double)bytes * 1e-9,
                t->is_checked ? "checked" : t->why);
        fflush(c->out);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan chain");
    heddle_json_key_str(&j, "asked", b->solver);
    heddle_json_key_uint(&j, "layers", b->layers);
    heddle_json_key_uint(&j, "slots", b->slots);
    heddle_json_key_double(&j, "processor_seconds", seconds);
    heddle_json_key_double(&j, "must_seconds", b->must_s);
    heddle_json_key_double(&j, "aim_seconds", b->aim_s);
    heddle_json_key_uint(&j, "process_bytes", bytes);
    plan_json(&j, t);
    return plan_json_end(c, &j);
}

static int run_bar(struct cli *c, const struct chain_bar *b, uint64_t seed)
{
    struct heddle_plan_graph *g = NULL;
    struct plan_try t = {.m = {.align = 1}, .opts = {.solver = b->solver, .slots = b->slots}};
    const heddle_status st = plan_gen(PLAN_CNN_CHAIN, b->layers, seed, &g);
    uint64_t begin;
    int rc;

    if (st != HEDDLE_OK)
        return cli_fail(c, "a chain cannot be made: %s", heddle_status_text(st));
    t.m.budget = plan_tape_bytes(g) / 20 * 7;
    begin = heddle_clock_thread_ns();
    plan_try_run(&t, g);
    rc = print_bar(c, b, &t, (double)(heddle_clock_thread_ns() - begin) * 1e-9);
    if (rc == 0 && t.plan != NULL && !t.is_checked)
        rc = cli_fail(c, "the checker refuses a plan: %s", t.why);
    plan_try_close(&t);
    heddle_plan_graph_destroy(g);
    return rc;
}

int bench_plan_chain(struct cli *c, uint64_t layers, uint64_t seed)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]) && rc == 0; i++)
        if (bars[i].layers <= layers)
            rc = run_bar(c, &bars[i], seed + 1);
    return rc;
}
