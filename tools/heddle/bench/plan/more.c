/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/plan/more: rows of `heddle bench plan` for moving data, for pipelines and
 * for small budgets.
 *
 * Moving   how much of the time that computing again costs is removed when data may
 *          also move, and how much any plan could remove. For the latter: what is
 *          not on the device at time t was copied out before and comes back later,
 *          so it is at most rate * T / 2 bytes. A plan of length T that moves data
 *          is one that moves nothing and has that much more memory: it is not
 *          shorter than the lower bound for that budget, nor than the plan's own
 *          bound.
 * Pipelines  every policy on a chain, each with the budget on each device.
 * Least      the smallest budget, in multiples of the memory that every plan needs,
 *            for which there is a plan.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/plan/plan.h"
#include "heddle/pipeline.h"

enum { STEPS = 12 }; /* budgets tried above the one asked for */

static struct plan_try try_one(const struct heddle_plan_graph *g, uint64_t budget, double rate,
                               double limit_s, bool moves)
{
    struct plan_try t = {
        .m = {.budget = budget, .align = 1, .host = {rate, rate, 0}},
        .opts = {.solver = moves ? "offload" : NULL, .time_limit_s = limit_s, .moves = moves}};

    plan_try_run(&t, g);
    return t;
}

/* The shorter of two attempts that move nothing; the other one is closed. */
static struct plan_try try_alone(const struct heddle_plan_graph *g, uint64_t budget, double limit_s)
{
    struct plan_try a = try_one(g, budget, 0, limit_s, false);
    struct plan_try b = {.m = a.m, .opts = {.solver = "improve", .time_limit_s = limit_s}};

    plan_try_run(&b, g);
    if (a.plan == NULL || (b.plan != NULL && b.plan->makespan < a.plan->makespan)) {
        plan_try_close(&a);
        return b;
    }
    plan_try_close(&b);
    return a;
}

/* The bound of the general solver: it holds whatever is kept. */
static double bound_with(const struct heddle_plan_graph *g, uint64_t budget, double limit_s)
{
    struct plan_try t = {.m = {.budget = budget, .align = 1},
                         .opts = {.solver = "improve", .time_limit_s = limit_s}};
    double bound;

    plan_try_run(&t, g);
    bound = t.plan != NULL ? t.plan->lower_bound : 0;
    plan_try_close(&t);
    return bound;
}

/* The increase when nothing may be computed again; INFINITY: no plan. */
static double moved_alone(const struct heddle_plan_graph *g, uint64_t budget, double rate,
                          double limit_s)
{
    struct heddle_plan_op *op = calloc(g->nops, sizeof(*op));
    struct heddle_plan_graph d = *g, *once = NULL;
    double increase = INFINITY;
    struct plan_try t;

    if (op == NULL)
        return increase;
    memcpy(op, g->ops, g->nops * sizeof(*op));
    for (uint32_t i = 0; i < g->nops; i++)
        op[i].flags |= HEDDLE_PLAN_ONCE;
    d.ops = op;
    if (heddle_plan_graph_create(&d, NULL, &once) == HEDDLE_OK) {
        t = try_one(once, budget, rate, limit_s, true);
        if (t.plan != NULL && t.is_checked)
            increase = plan_increase(t.plan);
        plan_try_close(&t);
    }
    heddle_plan_graph_destroy(once);
    free(op);
    return increase;
}

static int print_moved(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                       double rate, const struct heddle_plan *alone, double moved,
                       const struct plan_try *joint, double most)
{
    const struct heddle_plan *p = joint->plan;
    const double lost = alone->makespan - alone->baseline;
    const double removed = lost > 0 ? (alone->makespan - p->makespan) / lost : 0;
    struct heddle_json j;

    if (!c->json) {
        fprintf(c->out,
                "%-48s %-10s %4.2f  %+8.3f %%  alone %+8.3f %%  moved alone "
                "%+8.1f %%  removed %5.1f %%  possible %5.1f %%  %7.3f s  %s\n",
                g->name, "moving", fraction, 100 * plan_increase(p), 100 * plan_increase(alone),
                100 * moved, 100 * removed, 100 * most, p->seconds,
                joint->is_checked ? "checked" : joint->why);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan moving");
    heddle_json_key_str(&j, "instance", g->name);
    heddle_json_key_double(&j, "budget", fraction);
    heddle_json_key_double(&j, "rate", rate);
    heddle_json_key_double(&j, "alone_increase", plan_increase(alone));
    if (isfinite(moved))
        heddle_json_key_double(&j, "moved_increase", moved);
    heddle_json_key_double(&j, "removed", removed);
    heddle_json_key_double(&j, "removed_bound", most);
    plan_json(&j, joint);
    return plan_json_end(c, &j);
}

/* Both attempts for the fraction, or the next hundredths above it at which there
 * are plans: below the largest operation there are none. */
static double try_both(const struct heddle_plan_graph *g, double fraction, double rate,
                       double limit_s, struct plan_try *alone, struct plan_try *joint)
{
    const double full = (double)plan_tape_bytes(g);
    const double floor = (double)heddle_plan_floor(g, NULL) / full;

    if (floor > fraction)
        fraction = ceil(100 * floor) / 100;
    for (int i = 0; fraction < 1.005; i++, fraction += 0.01) {
        const uint64_t budget = (uint64_t)(fraction * full);

        *alone = try_alone(g, budget, limit_s);
        *joint = try_one(g, budget, rate, limit_s, true);
        if ((alone->plan != NULL && joint->plan != NULL) || i == STEPS)
            return fraction;
        plan_try_close(alone);
        plan_try_close(joint);
    }
    return 0;
}

int plan_bench_moving(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                      double rate, double limit_s)
{
    struct plan_try alone, joint;
    int rc = 0;

    fraction = try_both(g, fraction, rate, limit_s, &alone, &joint);
    if (!(fraction > 0))
        return 0;
    if (alone.plan != NULL && joint.plan != NULL) {
        const uint64_t budget = alone.plan->budget;
        const double base = alone.plan->baseline;
        const double lost = alone.plan->makespan - base;
        const double host = rate * joint.plan->makespan / 2;
        const double bound =
            fmax(bound_with(g, budget + (uint64_t)host, limit_s), joint.plan->lower_bound);

        rc = print_moved(c, g, fraction, rate, alone.plan, moved_alone(g, budget, rate, limit_s),
                         &joint, lost > 0 && bound > 0 ? (alone.plan->makespan - bound) / lost : 0);
        if (rc == 0 && !joint.is_checked)
            rc = cli_fail(c, "the checker refuses a plan: %s", joint.why);
    }
    plan_try_close(&alone);
    plan_try_close(&joint);
    return rc;
}

/* --- pipelines ------------------------------------------------------------- */

static int print_pipeline(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                          const struct heddle_pipeline *p, double seconds)
{
    struct heddle_json j;

    if (!c->json) {
        fprintf(c->out,
                "%-48s %-10s %4.2f  %3u devices  period %10.6g  (bound "
                "%10.6g)  makespan %10.6g  bubble %5.1f %%  %7.3f s  checked\n",
                g->name, heddle_pipeline_get_policy(p->policy), fraction, p->ndevices, p->period,
                p->period_bound, p->makespan, 100 * p->bubble, seconds);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan pipeline");
    heddle_json_key_str(&j, "instance", g->name);
    heddle_json_key_double(&j, "budget", fraction);
    heddle_json_key_str(&j, "policy", heddle_pipeline_get_policy(p->policy));
    heddle_json_key_uint(&j, "devices", p->ndevices);
    heddle_json_key_double(&j, "period", p->period);
    heddle_json_key_double(&j, "period_bound", p->period_bound);
    heddle_json_key_double(&j, "makespan", p->makespan);
    heddle_json_key_double(&j, "bubble", p->bubble);
    heddle_json_key_double(&j, "seconds", seconds);
    heddle_json_key_bool(&j, "checked", true);
    return plan_json_end(c, &j);
}

int plan_bench_pipeline(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                        uint32_t ndevices)
{
    const struct heddle_plan_machine m = {.size = sizeof(m),
                                          .budget =
                                              (uint64_t)(fraction * (double)plan_tape_bytes(g)),
                                          .ndevices = ndevices};
    const struct heddle_pipeline_model model = {.size = sizeof(model), .chain = g->chain};
    int rc = 0;

    for (uint32_t k = HEDDLE_PIPELINE_GPIPE;
         rc == 0 && g->chain != NULL && heddle_pipeline_get_policy(k) != NULL; k++) {
        char why[PLAN_WHY] = "";
        const struct heddle_pipeline_opts o = {
            .size = sizeof(o), .policy = k, .why = why, .why_bytes = sizeof(why)};
        const struct heddle_plan_opts check = {
            .size = sizeof(check), .why = why, .why_bytes = sizeof(why)};
        const uint64_t start = heddle_clock_ns();
        struct heddle_pipeline *p = NULL;

        if (heddle_pipeline_solve(&model, &m, &o, &p) != HEDDLE_OK)
            continue;
        if (heddle_pipeline_check(&model, &m, p, &check) != HEDDLE_OK)
            rc = cli_fail(c, "the checker refuses a pipeline: %s", why);
        else
            rc = print_pipeline(c, g, fraction, p, (double)(heddle_clock_ns() - start) * 1e-9);
        heddle_pipeline_destroy(p);
    }
    return rc;
}

static int print_least(struct cli *c, const struct heddle_plan_graph *g, uint64_t least,
                       double times, const struct plan_try *t)
{
    struct heddle_json j;

    if (!c->json) {
        if (t->plan == NULL)
            fprintf(c->out, "%-48s at least %llu bytes, no plan with %g times that\n", g->name,
                    (unsigned long long)least, times);
        else
            fprintf(c->out,
                    "%-48s at least %llu bytes, a plan with %g times that: "
                    "%+.3f %%  %.3f s  %s\n",
                    g->name, (unsigned long long)least, times, 100 * plan_increase(t->plan),
                    t->plan->seconds, t->is_checked ? "checked" : t->why);
        fflush(c->out);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan least");
    heddle_json_key_str(&j, "instance", g->name);
    heddle_json_key_uint(&j, "least_bytes", least);
    heddle_json_key_double(&j, "times", times);
    plan_json(&j, t);
    return plan_json_end(c, &j);
}

int plan_bench_least(struct cli *c, const struct heddle_plan_graph *g, double limit_s)
{
    static const double all[] = {1,    1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.12,
                                 1.15, 1.2,  1.3,  1.5,  2,    3,    5};
    const size_t n = sizeof(all) / sizeof(all[0]);
    uint64_t least = 0;
    int rc = 0;

    if (heddle_plan_least(g, 10, NULL, &least) != HEDDLE_OK)
        return cli_fail(c, "no memory for the bound");
    for (size_t i = 0; i < n; i++) {
        struct plan_try t = {.m = {.budget = (uint64_t)((double)least * all[i]) + 1, .align = 1},
                             .opts = {.time_limit_s = limit_s}};
        bool is_last;

        plan_try_run(&t, g);
        is_last = t.plan != NULL || i + 1 == n;
        if (is_last)
            rc = print_least(c, g, least, all[i], &t);
        if (rc == 0 && t.plan != NULL && !t.is_checked)
            rc = cli_fail(c, "the checker refuses a plan: %s", t.why);
        plan_try_close(&t);
        if (is_last)
            break;
    }
    return rc;
}
