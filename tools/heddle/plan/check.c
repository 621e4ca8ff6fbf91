/* SPDX-License-Identifier: BSD-3-Clause */
/* plan check: is a plan in a file what it claims to be? */
#include <inttypes.h>

#include "plan/cmd.h"

static int print(struct cli *c, const struct heddle_plan_graph *g, const struct plan_try *t)
{
    char a[PLAN_CELL], b[PLAN_CELL];
    struct heddle_json j;

    if (c->json) {
        heddle_json_init_file(&j, c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "graph", g->name);
        plan_json(&j, t);
        return plan_json_end(c, &j);
    }
    fprintf(c->out,
            "the plan holds: peak %s, arena %s, %+.2f %% time; %" PRIu32 " computed, %" PRIu32
            " of them again, %" PRIu32 " moved\n",
            plan_text_bytes(a, t->report.peak_bytes), plan_text_bytes(b, t->report.arena_bytes),
            100 * plan_increase(t->plan), t->report.ncomputed, t->report.nrepeated,
            t->report.nmoved);
    return 0;
}

static int check_run(struct cli *c, int argc, char **argv)
{
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{0}};
    struct plan_try t = {.m = {.size = sizeof(t.m)}, .report = {.size = sizeof(t.report)}};
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = t.why, .why_bytes = sizeof(t.why)};
    struct heddle_plan_graph *g = NULL;
    int rc = cli_parse(c, "plan check", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n != 1)
        return cli_error(c, "plan check needs a plan");
    if (heddle_plan_read(args.operand[0], &o, &g, &t.m, &t.plan) != HEDDLE_OK)
        return cli_fail(c, "%s", t.why);
    t.is_checked = heddle_plan_check(g, &t.m, t.plan, &o, &t.report) == HEDDLE_OK;
    if (t.is_checked || c->json)
        rc = print(c, g, &t);
    if (!t.is_checked)
        rc = cli_fail(c, "%s: the plan does not hold: %s", args.operand[0], t.why);
    plan_try_close(&t);
    heddle_plan_graph_destroy(g);
    return rc;
}

const struct heddle_cmd heddle_plan_verb_check = {
    .name = "check",
    .help = "verifies a plan and everything it claims",
    .usage = "heddle plan check PLAN\n",
    .run = check_run,
};
