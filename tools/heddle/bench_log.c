/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_log: what the always-on recorder costs.
 *
 * How        two contexts, with and without it, run the same stream in turn.
 *            The difference of the medians is set beside the cost of one clock
 *            read, which a record cannot do without.
 */
#include <errno.h>
#include <string.h>

#include "bench.h"
#include "run_bound.h"

enum { CLOCK_READS = 200000, CLOCK_ROUNDS = 9 };

/* Nanoseconds of one heddle_ticks(). */
static double clock_read_ns(void)
{
    double v[CLOCK_ROUNDS];

    for (unsigned r = 0; r < CLOCK_ROUNDS; r++) {
        const uint64_t start = heddle_clock_ns();
        uint64_t sum = 0;

        for (unsigned i = 0; i < CLOCK_READS; i++)
            sum += heddle_ticks();
        /* The sum is odd or even: the loop cannot be left out. */
        v[r] = (double)(heddle_clock_ns() - start + (sum & 1)) / CLOCK_READS;
    }
    return bench_stat(v, CLOCK_ROUNDS).median;
}

/* ns[0] is without the recorder, ns[1] with it. */
static int log_print(struct bench_pair *p)
{
    const struct bench_stat *stat = p->ns;
    const double cost = stat[1].median - stat[0].median;
    const double read = clock_read_ns();
    struct heddle_json j;

    if (!p->c->json) {
        fprintf(p->c->out,
                "%-12s %8.1f ns per task without the log, %8.1f with it: "
                "%+.1f ns, %.2f clock reads of %.1f ns\n",
                heddle_stream_names[p->shape], stat[0].median, stat[1].median,
                cost, cost / read, read);
        fflush(p->c->out);
        return 0;
    }
    heddle_json_init_file(&j, p->c->out);
    bench_json_head(&j, "log", &p->o[1], p->ctx[1]);
    heddle_json_key_str(&j, "shape", heddle_stream_names[p->shape]);
    heddle_json_key_uint(&j, "tasks", p->stream[0].ntasks);
    heddle_json_key_uint(&j, "reps", p->o[1].reps);
    heddle_json_key_double(&j, "ns_per_task_without", stat[0].median);
    heddle_json_key_double(&j, "ns_per_task_with", stat[1].median);
    heddle_json_key_double(&j, "log_ns_per_task", cost);
    heddle_json_key_double(&j, "best_log_ns_per_task",
                           stat[1].min - stat[0].min);
    heddle_json_key_double(&j, "clock_read_ns", read);
    heddle_json_key_double(&j, "clock_reads_per_task", cost / read);
    return bench_json_end(p->c, &j);
}

static int run_shape(struct cli *c, const struct bench_opts *o,
                     enum stream_shape shape)
{
    struct bench_pair p = {.c = c, .o = {*o, *o}, .shape = shape};
    heddle_status st = HEDDLE_OK;
    int rc;

    p.o[0].no_log = true;
    p.o[0].log = p.o[1].log = NULL; /* written at the end, off the clock */
    rc = bench_pair_run(&p);
    if (rc == 0)
        rc = log_print(&p);
    if (rc == 0 && o->log != NULL)
        st = heddle_ctx_dump_log(p.ctx[1], o->log);
    if (st != HEDDLE_OK)
        rc = cli_fail(c, "the log '%s' cannot be written: %s", o->log,
                      heddle_status_text(st));
    rc = bench_pair_close(&p, rc);
    if (rc == 0 && !c->json)
        run_bound_line(c->out, o->log);
    return rc;
}

/* Says so before the run, not after it. */
static bool can_write(const char *path)
{
    FILE *f = fopen(path, "wb");

    return f != NULL && fclose(f) == 0;
}

static int log_run(struct cli *c, int argc, char **argv)
{
    struct bench_opts o = {
        .shape = "independent", .tasks = 1000000, .workers = 1, .reps = 9};
    enum stream_shape shape = STREAM_INDEPENDENT;
    bool all;
    int rc = bench_parse(c, "bench log", argc, argv,
                         BENCH_SHAPE | BENCH_TASKS | BENCH_REPS |
                             BENCH_TASK_US | BENCH_WINDOW,
                         &o);

    if (rc != 0)
        return rc;
    if (!stream_find(o.shape, &shape, &all))
        return cli_error(c,
                         "there is no shape '%s': independent, chain, random, "
                         "cholesky, replay or all",
                         o.shape);
    if (all && o.log != NULL)
        return cli_error(c, "--log needs one --shape: each would overwrite the "
                            "log of the one before");
    if (o.log != NULL && !can_write(o.log))
        return cli_fail(c, "the log '%s' cannot be written: %s", o.log,
                        strerror(errno));
    for (unsigned i = 0; i < STREAM_NSHAPES && rc == 0; i++)
        if (all || i == (unsigned)shape)
            rc = run_shape(c, &o, (enum stream_shape)i);
    return rc;
}

const struct heddle_cmd heddle_bench_log = {
    .name = "log",
    .help = "what the always-on recorder costs, in clock reads per task",
    .usage = "heddle bench log [--shape SHAPE] [--tasks N] [--workers W]\n"
             "    [--reps R] [--task-us X] [--sched S] [--window N]\n"
             "    [--log FILE] [--log-level L] [--no-bind] [--json]\n"
             "\n"
             "  --shape    one of those of 'bench tasks', or all (default\n"
             "             independent)\n"
             "  --tasks    per repetition (default 1000000)\n"
             "  --workers  (default 1)\n"
             "  --reps     with and without alternate (default 9)\n"
             "  --log      write what the recorder holds at the end\n",
    .run = log_run,
};
