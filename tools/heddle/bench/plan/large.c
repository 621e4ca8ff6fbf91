/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/plan/large: graphs of 10 000 operations.
 *
 * Three numbers for each: when the first plan is there, how good it is after the
 * time limit, and after six times as much.
 */
#include <math.h>
#include <string.h>

#include "bench/plan/plan.h"
#include "plan/gen.h"

struct watch {
    double first_s; /* when the first plan came; < 0: not yet */
    double first_increase;
};

static bool on_plan(void *user, double seconds, const struct heddle_plan *best)
{
    struct watch *w = user;

    if (w->first_s < 0) {
        w->first_s = seconds;
        w->first_increase = plan_increase(best);
    }
    return true;
}

static void solve(const struct heddle_plan_graph *g, double fraction, double limit_s,
                  const char *solver, struct watch *w, struct plan_try *t)
{
    *w = (struct watch){.first_s = -1};
    *t = (struct plan_try){
        .m = {.budget = (uint64_t)(fraction * (double)plan_tape_bytes(g)), .align = 1},
        .opts = {.solver = strcmp(solver, "best") == 0 ? NULL : solver,
                 .time_limit_s = limit_s,
                 .progress = on_plan,
                 .user = w}};
    plan_try_run(t, g);
    if (t->plan != NULL && w->first_s < 0) { /* it reports nothing */
        w->first_s = t->plan->seconds;
        w->first_increase = plan_increase(t->plan);
    }
}

static int print(struct cli *c, const struct heddle_plan_graph *g, double fraction,
                 const struct watch *w, const struct plan_try *now, const struct plan_try *later)
{
    const bool has_both = now->plan != NULL && later->plan != NULL;
    const double a = has_both ? plan_increase(now->plan) : 0;
    const double b = has_both ? plan_increase(later->plan) : 0;
    struct heddle_json j;

    if (!c->json) {
        if (!has_both)
            fprintf(c->out, "%-20s %4.2f  no plan: %s\n", g->name, fraction,
                    now->plan == NULL ? now->why : later->why);
        else
            fprintf(c->out,
                    "%-20s %4.2f  first %6.3f s %+8.3f %%  then %+8.3f %%  "
                    "later %+8.3f %%  ratio %.3f  bound %+8.3f %%  %s\n",
                    g->name, fraction, w->first_s, 100 * w->first_increase, 100 * a, 100 * b,
                    b > 0 ? a / b : 1, 100 * plan_bound(later->plan),
                    now->is_checked && later->is_checked ? "checked" : "NOT CHECKED");
        fflush(c->out);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan large");
    heddle_json_key_str(&j, "instance", g->name);
    heddle_json_key_uint(&j, "operations", g->nops);
    heddle_json_key_double(&j, "budget", fraction);
    heddle_json_key_bool(&j, "feasible", has_both);
    if (has_both) {
        heddle_json_key_double(&j, "first_seconds", w->first_s);
        heddle_json_key_double(&j, "first_increase", w->first_increase);
        heddle_json_key_double(&j, "seconds", now->plan->seconds);
        heddle_json_key_double(&j, "increase", a);
        heddle_json_key_double(&j, "later_increase", b);
        heddle_json_key_double(&j, "bound", plan_bound(later->plan));
        heddle_json_key_bool(&j, "checked", now->is_checked && later->is_checked);
    }
    return plan_json_end(c, &j);
}

int plan_bench_large(struct cli *c, const char *only, const char *solver, const double *fraction,
                     unsigned nfractions, double limit_s, uint64_t seed)
{
    static const struct {
        enum plan_family family;
        uint32_t size;
    } all[] = {{PLAN_CNN, 714}, {PLAN_TRANSFORMER, 416}, {PLAN_LAYERED, 10000}};
    unsigned nchosen = 0;
    int rc = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && rc == 0; i++) {
        struct heddle_plan_graph *g = NULL;

        if (only != NULL && strstr(plan_family_name(all[i].family), only) == NULL)
            continue;
        nchosen++;
        if (plan_gen(all[i].family, all[i].size, seed + 1, &g) != HEDDLE_OK)
            return cli_fail(c, "a graph cannot be made");
        for (unsigned k = 0; k < nfractions && rc == 0; k++) {
            struct watch w, later;
            struct plan_try a, b;

            solve(g, fraction[k], 6 * limit_s, solver, &later, &b);
            solve(g, fraction[k], limit_s, solver, &w, &a);
            rc = print(c, g, fraction[k], &w, &a, &b);
            if (rc == 0 && ((a.plan != NULL && !a.is_checked) || (b.plan != NULL && !b.is_checked)))
                rc = cli_fail(c, "the checker refuses a plan");
            plan_try_close(&a);
            plan_try_close(&b);
        }
        heddle_plan_graph_destroy(g);
    }
    return rc == 0 && nchosen == 0 ? plan_bench_no_instance(c, only) : rc;
}
