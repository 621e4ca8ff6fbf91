/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy bound: the least energy of the tasks of a log, with and without a
 * deadline, and a schedule near it.
 *
 * Proof      every bound is checked against its certificate before it is printed,
 *            and so is the proof that a deadline cannot be kept.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "energy/input.h"
#include "trace/cmd.h"

struct bound_args {
    struct energy_args common;
    const char *deadline, *slack, *goal;
    double deadline_ns; /* 0: none */
    double part;        /* of --slack */
    enum heddle_energy_goal by;
    double weight;
};

struct answer {
    struct energy_input in;
    double deadline; /* ns; INFINITY: none */
    double fastest;  /* ns; the fastest schedule found */
    struct heddle_energy_bound_result r;
    struct heddle_offline_result s;
    struct heddle_energy_cost cost;
    bool has_schedule;
};

/* --- output ------------------------------------------------------------------- */

static void print_text(const struct answer *x)
{
    FILE *f = x->in.c->out;
    char a[TRACE_CELL], b[TRACE_CELL];

    energy_input_print(&x->in);
    if (x->deadline < INFINITY)
        fprintf(f, "deadline     %s; the fastest schedule takes %s\n",
                trace_text_ns(a, (int64_t)x->deadline), trace_text_ns(b, (int64_t)x->fastest));
    fprintf(f,
            "bound        %.4g J: no schedule%s needs less (%u terms, "
            "checked)\n",
            x->r.value, x->deadline < INFINITY ? " in that time" : "", x->r.cert.nterms);
    if (!x->has_schedule) {
        fprintf(f, "schedule     none: %s\n", x->in.why);
        return;
    }
    fprintf(f,
            "schedule     %.4g J in %s: %.4g J of tasks, %.4g J idle; %.3f "
            "times the bound\n",
            x->cost.total, trace_text_ns(a, (int64_t)x->s.makespan), x->cost.active, x->cost.idle,
            x->r.value > 0.0 ? x->cost.total / x->r.value : 1.0);
    if (!isnan(x->in.run_total) && x->in.run_total > 0.0)
        fprintf(f, "The run needed %.1f %% %s than the schedule.\n",
                100.0 * fabs(x->in.run_total / x->cost.total - 1.0),
                x->in.run_total < x->cost.total ? "less" : "more");
}

static heddle_status print_json(const struct answer *x)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, x->in.c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "unit", "s");
    energy_input_json(&x->in, &j);
    if (x->deadline < INFINITY)
        heddle_json_key_double(&j, "deadline", x->deadline * 1e-9);
    heddle_json_key_bool(&j, "possible", x->r.value < INFINITY);
    heddle_json_key_double(&j, "time_bound", x->r.time.value * 1e-9);
    heddle_json_key_bool(&j, "checked", true);
    if (x->r.value < INFINITY) {
        heddle_json_key_double(&j, "bound_joules", x->r.value);
        heddle_json_key_uint(&j, "terms", x->r.cert.nterms);
    }
    if (x->has_schedule) {
        heddle_json_key_double(&j, "fastest", x->fastest * 1e-9);
        heddle_json_key(&j, "schedule");
        heddle_json_object(&j);
        energy_cost_json(&j, x->s.makespan, &x->cost);
        heddle_json_end(&j);
        heddle_json_key_double(&j, "ratio", x->r.value > 0.0 ? x->cost.total / x->r.value : 1.0);
    }
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

/* --- the answer ---------------------------------------------------------------- */

/* The deadline cannot be kept: what proves it is checked, too. */
static int say_impossible(struct answer *x)
{
    struct energy_input *in = &x->in;
    char a[TRACE_CELL], b[TRACE_CELL];
    double proven;
    heddle_status st;

    if (x->r.cert.nterms > 0)
        st = heddle_energy_bound_check(&in->g->eg, &x->r.cert, x->r.cert.value, NULL, &proven);
    else
        st = heddle_bound_check(&in->g->graph, &x->r.time, x->r.time.value, NULL, &proven);
    if (st != HEDDLE_OK)
        return cli_fail(in->c, "the proof that the deadline is impossible "
                               "does not hold");
    if (in->c->json && trace_end(in->c, print_json(x)) != 0)
        return 1;
    return cli_fail(in->c,
                    "no schedule keeps the deadline of %s: these tasks need "
                    "at least %s%s (certificate checked)",
                    trace_text_ns(a, (int64_t)x->deadline),
                    trace_text_ns(b, (int64_t)x->r.time.value),
                    x->r.cert.nterms > 0 ? ", and together more energy than they can draw" : "");
}

static heddle_status find_bound(struct answer *x, const struct bound_args *a)
{
    const struct heddle_energy_limits l = {.size = sizeof(l),
                                           .deadline = x->deadline < INFINITY ? x->deadline : 0.0,
                                           .time_ns = a->common.time_ns,
                                           .why = x->in.why,
                                           .why_bytes = sizeof(x->in.why)};
    heddle_status st = heddle_energy_bound(&x->in.g->eg, &l, &x->r);

    if (st == HEDDLE_OK && x->r.value < INFINITY)
        st = heddle_energy_bound_check(&x->in.g->eg, &x->r.cert, x->r.value, &l, NULL);
    return st;
}

static heddle_status find_schedule(struct answer *x, const struct bound_args *a)
{
    const struct heddle_energy_opts o = {.size = sizeof(o),
                                         .goal = a->by,
                                         .weight = a->weight,
                                         .deadline = a->deadline_ns,
                                         .slack = a->slack != NULL ? a->part : (double)INFINITY,
                                         .seed = a->common.seed,
                                         .time_ns = a->common.time_ns,
                                         .iterations = a->common.iterations,
                                         .why = x->in.why,
                                         .why_bytes = sizeof(x->in.why)};
    heddle_status st = heddle_energy_schedule(&x->in.g->eg, &o, &x->s, &x->fastest);

    if (st == HEDDLE_OK)
        st = heddle_offline_check(&x->in.g->graph, NULL, &x->s);
    if (st == HEDDLE_OK)
        st = heddle_energy_of_schedule(&x->in.g->eg, &x->s, &x->cost);
    x->has_schedule = st == HEDDLE_OK;
    return st;
}

static int answer_all(struct answer *x, const struct bound_args *a)
{
    heddle_status st = HEDDLE_OK;

    x->deadline = a->deadline_ns > 0.0 ? a->deadline_ns : (double)INFINITY;
    /* An impossible deadline is known before anything is searched. */
    if (a->slack == NULL)
        st = find_bound(x, a);
    if (st == HEDDLE_OK && a->slack == NULL && x->r.value == (double)INFINITY)
        return say_impossible(x);
    if (st == HEDDLE_OK)
        st = find_schedule(x, a);
    if (st == HEDDLE_ENOENT) /* the bound stands without one */
        st = HEDDLE_OK;
    if (st == HEDDLE_OK && a->slack != NULL) {
        x->deadline = (1.0 + a->part) * x->fastest;
        st = find_bound(x, a);
    }
    if (st != HEDDLE_OK)
        return energy_input_fail(&x->in, st);
    if (x->in.c->json)
        return trace_end(x->in.c, print_json(x));
    print_text(x);
    return 0;
}

/* --- command line --------------------------------------------------------------- */

static int check_args(struct cli *c, struct bound_args *a)
{
    uint64_t ns;

    if (a->deadline != NULL && a->slack != NULL)
        return cli_error(c, "--deadline and --slack exclude each other");
    if (a->deadline != NULL) {
        if (heddle_parse_ns(a->deadline, &ns) != HEDDLE_OK || ns == 0 || ns > INT64_MAX / 1024)
            return cli_error(c, "--deadline is '%s', but it must be a time as in 2.5s",
                             a->deadline);
        a->deadline_ns = (double)ns;
    }
    if (a->slack != NULL && (!energy_parse_part(a->slack, &a->part) || a->part > 1e6))
        return cli_error(c, "--slack is '%s', but it must be a part as in 5%%", a->slack);
    if (a->goal == NULL || strcmp(a->goal, "energy") == 0)
        return 0;
    if (strcmp(a->goal, "edp") == 0) {
        a->by = HEDDLE_ENERGY_EDP;
        return 0;
    }
    a->by = HEDDLE_ENERGY_WEIGHTED;
    if (strncmp(a->goal, "weight=", 7) != 0 || !energy_parse_part(a->goal + 7, &a->weight) ||
        a->weight > 1.0)
        return cli_error(c,
                         "--goal is '%s', but it must be energy, edp or "
                         "weight=W with W from 0 to 1",
                         a->goal);
    return 0;
}

static int bound_run(struct cli *c, int argc, char **argv)
{
    struct bound_args a = {.common = {.time = "2s", .seed = 1}};
    struct answer x = {.r = {.size = sizeof(x.r)}, .s = {.size = sizeof(x.s)}};
    struct cli_args args = {.max = 1};
    struct cli_opt opts[ENERGY_NOPTS + 3] = {{0}};
    int rc;

    energy_args_opts(&a.common, opts);
    opts[ENERGY_NOPTS - 1] = (struct cli_opt){"--deadline", CLI_STRING, &a.deadline, 0, 0};
    opts[ENERGY_NOPTS] = (struct cli_opt){"--slack", CLI_STRING, &a.slack, 0, 0};
    opts[ENERGY_NOPTS + 1] = (struct cli_opt){"--goal", CLI_STRING, &a.goal, 0, 0};
    rc = cli_parse(c, "energy bound", argc, argv, opts, &args);
    if (rc == 0)
        rc = check_args(c, &a);
    if (rc == 0)
        rc = energy_input_open(&x.in, c, "bound", &args, &a.common);
    if (rc == 0)
        rc = answer_all(&x, &a);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], x.in.log);
    heddle_energy_bound_fini(&x.r);
    heddle_offline_fini(&x.s);
    energy_input_close(&x.in);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_bound = {
    .name = "bound",
    .help = "the least energy at a deadline, and a schedule near it",
    .usage = "heddle energy bound LOG [--deadline T | --slack PART] [--model FILE]\n"
             "    [--machine FILE] [--cap CAPS] [--goal G] [--durations D] [--time "
             "T]\n"
             "    [--seed S] [--iterations N] [--json]\n"
             "\n"
             "  --deadline    schedules that take longer do not count: 2.5s\n"
             "  --slack       the same, so much longer than the fastest schedule "
             "found:\n"
             "                5%. Neither: the least energy of all schedules\n"
             "  --model       watts of kernels, idle watts (default: those fitted "
             "for the\n"
             "                machine)\n"
             "  --machine     another machine: its workers, and times that the log\n"
             "                does not have\n"
             "  --cap         TYPE=CAP or TYPE=CAP:WORKERS, with commas between: "
             "caps of\n"
             "                the model for workers of a type\n"
             "  --goal        of the schedule: energy (default), edp, weight=W "
             "between\n"
             "                length (0) and energy (1)\n"
             "  --durations   measured (default), min, median or model\n"
             "  --time        for the search (default 2s)\n"
             "  --seed, --iterations  of the search (default 1, and no limit)\n"
             "Bounds are checked against their certificates. Times in JSON are "
             "seconds,\n"
             "energies joules.\n",
    .run = bound_run,
};
