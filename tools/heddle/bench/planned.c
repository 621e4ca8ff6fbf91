/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/planned: recorded graphs in less memory.
 *
 * Parts      bench/planned/planned.h: random graphs against plain launches, and the time of
 *            a step against the prediction.
 * Bars       equal bits; the peak is the plan's and never above the budget; real time over
 *            predicted time. The exit status is 1 when results or memory are wrong; a time
 *            that misses its bar is only said.
 */
#include <inttypes.h>

#include "bench/planned/planned.h"

static const double ratio_must = 1.07, ratio_aim = 1.03;

struct planned_bench {
    struct cli *c;
    struct bench_opts o;
    uint64_t seeds, first, width;
    double limit_us;
    bool no_times;
};

static const char *met(bool is_met)
{
    return is_met ? "met" : "MISSED";
}

static int report_fuzz(struct planned_bench *b, const struct planned_fuzz *f)
{
    const bool is_right = f->nwrong == 0 && f->nover == 0 && f->nleft == 0;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "fuzz    %" PRIu64 " plans, %" PRIu64 " budgets without one, %" PRIu64
                " tasks run, %" PRIu64 " again, %" PRIu64 " copies, %" PRIu64 " moves, %.1f s\n"
                "        %" PRIu64 " wrong; must 0: %s\n"
                "        %" PRIu64 " peaks above the budget or not the plan's; must 0: %s\n",
                f->nplans, f->nrefused, f->ntasks, f->nrepeated, f->ncopies, f->nmoved, f->seconds,
                f->nwrong, met(f->nwrong == 0), f->nover, met(f->nover == 0));
        return is_right ? 0 : 1;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "planned");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "part", "fuzz");
    heddle_json_key_uint(&j, "first", f->first);
    heddle_json_key_uint(&j, "plans", f->nplans);
    heddle_json_key_uint(&j, "without_plan", f->nrefused);
    heddle_json_key_uint(&j, "tasks", f->ntasks);
    heddle_json_key_uint(&j, "repeated", f->nrepeated);
    heddle_json_key_uint(&j, "copies", f->ncopies);
    heddle_json_key_uint(&j, "moves", f->nmoved);
    heddle_json_key_uint(&j, "wrong", f->nwrong);
    heddle_json_key_uint(&j, "over", f->nover);
    heddle_json_key_double(&j, "seconds", f->seconds);
    heddle_json_key_uint(&j, "must", 0);
    heddle_json_key_uint(&j, "aim", 0);
    heddle_json_key_bool(&j, "met", is_right);
    return bench_json_end(b->c, &j) != 0 || !is_right;
}

static void print_step(FILE *out, const struct planned_step *s)
{
    if (!s->is_found) {
        fprintf(out, "%-7s %3.0f %%  %s\n", s->shape, 100 * s->share, s->why);
        return;
    }
    fprintf(out,
            "%-7s %3.0f %%  arena %7.2f of %7.2f MB  again %3zu of %3zu  step %8.3f ms (cores "
            "%8.3f), planned %8.3f, as it is %8.3f  ratio %.3f; must <= %g: %s, aim %g: %s%s\n",
            s->shape, 100 * s->share, (double)s->info.arena_bytes / 1e6,
            (double)s->info.as_is_bytes / 1e6, s->info.nrepeated, s->info.ntasks, 1e3 * s->real_s,
            1e3 * s->cpu_s, 1e3 * s->info.seconds, 1e3 * s->as_is_s, s->ratio, ratio_must,
            met(s->ratio <= ratio_must), ratio_aim, met(s->ratio <= ratio_aim),
            s->is_equal ? "" : "; OTHER RESULTS");
}

static int json_step(struct planned_bench *b, const struct planned_step *s)
{
    struct heddle_json j;

    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "planned");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "part", "step");
    heddle_json_key_str(&j, "shape", s->shape);
    heddle_json_key_uint(&j, "workers", b->o.workers);
    heddle_json_key_uint(&j, "width", b->width);
    heddle_json_key_double(&j, "share", s->share);
    heddle_json_key_bool(&j, "found", s->is_found);
    if (s->is_found) {
        heddle_json_key_bool(&j, "equal", s->is_equal);
        heddle_json_key_uint(&j, "arena_bytes", s->info.arena_bytes);
        heddle_json_key_uint(&j, "as_is_bytes", s->info.as_is_bytes);
        heddle_json_key_uint(&j, "tasks", s->info.ntasks);
        heddle_json_key_uint(&j, "repeated", s->info.nrepeated);
        heddle_json_key_double(&j, "as_is_s", s->as_is_s);
        heddle_json_key_double(&j, "planned_s", s->info.seconds);
        heddle_json_key_double(&j, "real_s", s->real_s);
        heddle_json_key_double(&j, "ratio", s->ratio);
        heddle_json_key_double(&j, "cpu_s", s->cpu_s);
        heddle_json_key_double(&j, "must", ratio_must);
        heddle_json_key_double(&j, "aim", ratio_aim);
        heddle_json_key_bool(&j, "met", s->ratio <= ratio_must && s->is_equal);
        heddle_json_key_bool(&j, "aim_met", s->ratio <= ratio_aim && s->is_equal);
    }
    return bench_json_end(b->c, &j);
}

static int run_steps(struct planned_bench *b)
{
    struct planned_step step[PLANNED_SHAPES * PLANNED_BUDGETS];
    int rc = planned_step_run(b->c, &b->o, b->width, b->limit_us * 1e-9, step);
    bool is_right = true;

    for (unsigned i = 0; i < PLANNED_SHAPES * PLANNED_BUDGETS && rc == 0; i++) {
        is_right = is_right && (!step[i].is_found || step[i].is_equal);
        if (b->c->json)
            rc = json_step(b, &step[i]);
        else
            print_step(b->c->out, &step[i]);
    }
    return rc != 0 ? rc : is_right ? 0 : 1;
}

static int planned_run(struct cli *c, int argc, char **argv)
{
    struct planned_bench b = {.c = c,
                              .o = {.workers = 1, .reps = 60},
                              .seeds = 10000,
                              .first = 1,
                              .width = 64,
                              .limit_us = 5e8};
    const struct cli_opt opts[] = {{"--seeds", CLI_UINT, &b.seeds, 0, 100000000},
                                   {"--first", CLI_UINT, &b.first, 0, 1 << 30},
                                   {"--no-times", CLI_FLAG, &b.no_times, 0, 0},
                                   {"--width", CLI_UINT, &b.width, 8, 4096},
                                   {"--workers", CLI_UINT, &b.o.workers, 1, 256},
                                   {"--reps", CLI_UINT, &b.o.reps, 1, 1000},
                                   {"--limit-us", CLI_NS, &b.limit_us, 0, 1000000000},
                                   {0}};
    int rc = cli_parse(c, "bench planned", argc, argv, opts, NULL);
    struct planned_fuzz f = {.c = c, .first = b.first, .seeds = b.seeds};

    if (rc == 0 && b.seeds > 0)
        rc = planned_fuzz_run(&f);
    if (rc == 0 && b.seeds > 0)
        rc = report_fuzz(&b, &f);
    if (rc == 0 && !b.no_times)
        rc = run_steps(&b);
    return rc;
}

const struct heddle_cmd heddle_bench_planned = {
    .name = "planned",
    .help = "recorded graphs in less memory: right, and as fast as planned",
    .usage = "heddle bench planned [--seeds N] [--first SEED] [--no-times]\n"
             "    [--width N] [--workers W] [--reps R] [--limit-us T] [--json]\n"
             "\n"
             "  --seeds     random graphs under random budgets, against plain launches\n"
             "              (default 10000; 0: none)\n"
             "  --first     the first of them (default 1)\n"
             "  --no-times  only these\n"
             "  --width     of the matrices of the timed graphs (default 64)\n"
             "  --workers   that run the timed graphs (default 1: a plan predicts the\n"
             "              time of its tasks one after another)\n"
             "  --reps      the shortest of so many steps (default 60)\n"
             "  --limit-us  that a solver may improve a plan (default 500000)\n"
             "Exit status 1: a result was not that of a plain launch, or the memory was\n"
             "not the plan's.\n",
    .run = planned_run,
};
