/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan show: a plan as a page.
 *
 * Output     one HTML file that needs nothing else, light or dark as the viewer
 *            asks for: memory over time with the budget, what the streams do, the
 *            addresses, the costliest repetitions and moves, and with --sweep
 *            the trade-off curve.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/output.h"
#include "plan/cmd.h"
#include "plan/page.h"

static int load(struct cli *c, const char *path, struct plan_page *s)
{
    char why[PLAN_WHY] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    size_t n;

    s->m.size = sizeof(s->m);
    if (heddle_plan_read(path, &o, &s->g, &s->m, &s->plan) != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    s->report.size = sizeof(s->report);
    if (heddle_plan_check(s->g, &s->m, s->plan, &o, &s->report) != HEDDLE_OK)
        return cli_fail(c, "%s: the plan does not hold: %s", path, why);
    n = (size_t)s->plan->nsteps + 1;
    s->begin = calloc(n, sizeof(*s->begin));
    s->end = calloc(n, sizeof(*s->end));
    if (s->begin == NULL || s->end == NULL)
        return cli_fail(c, "no memory for the page");
    if (heddle_plan_times(s->g, &s->m, s->plan, &o, s->begin, s->end) != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    return 0;
}

static int write_page(struct cli *c, const struct plan_page *s, const char *file)
{
    struct output o;
    int rc = output_begin_stream(&o, c, file);

    if (rc != 0)
        return rc;
    if (!plan_page_write(s, o.f))
        rc = cli_fail(c, "no memory for the page");
    return output_end(&o, rc);
}

static int print(struct cli *c, const struct plan_page *s, const char *file)
{
    struct heddle_json j;

    if (!c->json) {
        fprintf(c->out, "wrote %s\n", file);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "graph", s->g->name);
    heddle_json_key_str(&j, "file", file);
    heddle_json_key_uint(&j, "steps", s->plan->nsteps);
    heddle_json_key_bool(&j, "checked", true);
    return plan_json_end(c, &j);
}

static int show_run(struct cli *c, int argc, char **argv)
{
    struct plan_page s = {0};
    struct cli_args args = {.max = 1};
    const char *file = NULL;
    bool wants_sweep = false;
    struct plan_point point[PLAN_POINTS];
    const struct cli_opt opts[] = {
        {"-o", CLI_OUTPUT, &file, 0, 0}, {"--sweep", CLI_FLAG, &wants_sweep, 0, 0}, {0}};
    int rc = cli_parse(c, "plan show", argc, argv, opts, &args);

    if (rc == 0 && (args.n != 1 || file == NULL))
        rc = cli_error(c, "plan show needs a plan and -o PAGE.html");
    if (rc == 0)
        rc = load(c, args.operand[0], &s);
    if (rc == 0 && wants_sweep) {
        const struct plan_try t = {.m = s.m,
                                   .opts = {.time_limit_s = 0.5, .moves = s.report.nmoved > 0}};

        plan_sweep(s.g, &t, point, NULL, NULL);
        s.point = point;
    }
    if (rc == 0)
        rc = write_page(c, &s, file);
    if (rc == 0)
        rc = print(c, &s, file);
    free(s.begin);
    free(s.end);
    heddle_plan_destroy(s.plan);
    heddle_plan_graph_destroy(s.g);
    return rc;
}

const struct heddle_cmd heddle_plan_verb_show = {
    .name = "show",
    .help = "a plan as a page: memory over time, what is repeated and moved",
    .usage = "heddle plan show PLAN [--sweep] -o PAGE.html\n"
             "\n"
             "  --sweep  adds the trade-off between memory and time\n",
    .run = show_run,
};
