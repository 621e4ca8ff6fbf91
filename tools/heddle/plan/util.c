/* SPDX-License-Identifier: BSD-3-Clause */
/* plan/util: graphs from files, budgets, attempts with a verdict, output. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "common/output.h"
#include "plan/cmd.h"

#define BUDGET_MAX (UINT64_C(1) << 62)

/* The log of a run; HEDDLE_EFORMAT: it is none. */
static heddle_status load_log(const char *path, struct heddle_plan_opts *o,
                              struct heddle_plan_graph **out)
{
    heddle_log *log = NULL;
    heddle_status st;

    if (heddle_log_open(path, NULL, &log) != HEDDLE_OK)
        return HEDDLE_EFORMAT;
    st = heddle_plan_graph_from_log(log, o, out);
    heddle_log_close(log);
    return st == HEDDLE_EFORMAT ? HEDDLE_EINVAL : st;
}

int plan_load(struct cli *c, const char *path, double unit_s, struct heddle_plan_graph **out)
{
    char why[PLAN_WHY] = "", other[PLAN_WHY] = "";
    struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_status st = heddle_plan_graph_read(path, &o, out);

    if (st == HEDDLE_EFORMAT) {
        o.why = other;
        st = load_log(path, &o, out);
        if (st != HEDDLE_OK && st != HEDDLE_EFORMAT)
            return cli_fail(c, "%s: %s", path, other);
    }
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    if ((*out)->unit_s == 0)
        (*out)->unit_s = unit_s;
    return 0;
}

uint64_t plan_tape_bytes(const struct heddle_plan_graph *g)
{
    uint64_t sum;

    if (g->chain == NULL)
        return heddle_plan_peak(g);
    sum = g->chain->x[0];
    for (uint32_t i = 1; i <= g->chain->n; i++)
        sum += g->chain->t[i];
    return sum;
}

bool plan_parse_budget(const char *text, uint64_t full, uint64_t *out)
{
    const size_t n = strlen(text);
    char buf[32];
    double v = 0;

    if (n == 0 || text[n - 1] != '%')
        return heddle_parse_size(text, 0, out) == HEDDLE_OK;
    if (n > sizeof(buf))
        return false;
    memcpy(buf, text, n - 1);
    buf[n - 1] = '\0';
    if (!heddle_number_finite(buf, &v) || v < 0 || v > 1000)
        return false;
    /* All values of a graph have less than 2^62 bytes: more is not needed. */
    v = floor(v * (double)full / 100);
    *out = v < (double)BUDGET_MAX ? (uint64_t)v : BUDGET_MAX;
    /* A double does not hold every number of bytes. */
    if (v >= (double)full && *out < full)
        *out = full;
    return true;
}

void plan_try_run(struct plan_try *t, const struct heddle_plan_graph *g)
{
    const struct heddle_plan_opts o = {
        .size = sizeof(o), .why = t->why, .why_bytes = sizeof(t->why)};

    t->plan = NULL;
    t->is_checked = false;
    t->why[0] = '\0';
    t->opts.size = sizeof(t->opts);
    t->opts.why = t->why;
    t->opts.why_bytes = sizeof(t->why);
    t->m.size = sizeof(t->m);
    t->report.size = sizeof(t->report);
    t->st = heddle_plan_solve(g, &t->m, &t->opts, &t->plan);
    if (t->st == HEDDLE_OK)
        t->is_checked = heddle_plan_check(g, &t->m, t->plan, &o, &t->report) == HEDDLE_OK;
}

void plan_try_close(struct plan_try *t)
{
    heddle_plan_destroy(t->plan);
    t->plan = NULL;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

int plan_save(struct cli *c, const struct heddle_plan_graph *g, const struct plan_try *t,
              const char *path)
{
    char why[PLAN_WHY] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct output out;
    int rc = output_begin(&out, c, path);

    if (rc != 0)
        return rc;
    if (heddle_plan_write(g, &t->m, t->plan, out.at, &o) != HEDDLE_OK)
        rc = output_fail(&out, why);
    return output_end(&out, rc);
}

double plan_increase(const struct heddle_plan *p)
{
    return share(p->makespan - p->baseline, p->baseline);
}

double plan_bound(const struct heddle_plan *p)
{
    return share(p->lower_bound - p->baseline, p->baseline);
}

double plan_gap(const struct heddle_plan *p)
{
    return share(p->makespan - p->lower_bound, p->baseline);
}

void plan_json(struct heddle_json *j, const struct plan_try *t)
{
    const struct heddle_plan *p = t->plan;

    heddle_json_key_bool(j, "feasible", p != NULL);
    heddle_json_key_uint(j, "budget_bytes", t->m.budget);
    if (p == NULL) {
        heddle_json_key_str(j, "why", t->why);
        return;
    }
    heddle_json_key_str(j, "solver", p->solver);
    heddle_json_key_uint(j, "peak_bytes", p->peak_bytes);
    heddle_json_key_uint(j, "arena_bytes", p->arena_bytes);
    heddle_json_key_double(j, "makespan", p->makespan);
    heddle_json_key_double(j, "baseline_makespan", p->baseline);
    heddle_json_key_double(j, "increase", plan_increase(p));
    heddle_json_key_double(j, "compute", p->compute);
    heddle_json_key_double(j, "link_busy", p->link_busy);
    heddle_json_key_double(j, "lower_bound", p->lower_bound);
    heddle_json_key_str(j, "bound_note", p->bound_note);
    heddle_json_key_double(j, "gap", plan_gap(p));
    heddle_json_key_uint(j, "computed", t->report.ncomputed);
    heddle_json_key_uint(j, "repeated", t->report.nrepeated);
    heddle_json_key_uint(j, "moved", t->report.nmoved);
    heddle_json_key_uint(j, "host_bytes", t->report.host_bytes);
    heddle_json_key_uint(j, "disk_bytes", t->report.disk_bytes);
    heddle_json_key_double(j, "seconds", p->seconds);
    heddle_json_key_bool(j, "checked", t->is_checked);
    if (!t->is_checked)
        heddle_json_key_str(j, "why", t->why);
}

int plan_json_end(struct cli *c, struct heddle_json *j)
{
    heddle_status st;

    heddle_json_end(j);
    heddle_json_line(j);
    st = heddle_json_finish(j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

const char *plan_text_bytes(char buf[PLAN_CELL], uint64_t bytes)
{
    struct heddle_text t;

    heddle_text_init(&t, buf, PLAN_CELL);
    heddle_text_bytes(&t, bytes);
    return buf;
}
