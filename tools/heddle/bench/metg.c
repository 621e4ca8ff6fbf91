/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/metg: the shortest task that keeps the workers busy.
 *
 * Measured   METG(e), the minimum effective task granularity of Task Bench
 *            (Slaughter et al., SC 2020): the smallest task length at which the
 *            efficiency, tasks * length / (workers * time), is at least e.
 *            Between two lengths it is interpolated on a logarithmic axis.
 * How        for each length the best of `reps` runs of the stream.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/bench.h"

static const double lengths_us[] = {1, 2, 5, 10, 20, 50, 100};

enum { NLENGTHS = sizeof(lengths_us) / sizeof(lengths_us[0]) };

struct metg {
    struct cli *c;
    struct bench_opts o;
    enum stream_shape shape;
    heddle_ctx *ctx;
    unsigned nworkers;
    double efficiency[NLENGTHS];
};

/* METG of an efficiency in us. *bound_out: already the first length has it.
 * 0: no length has. */
static double metg_at(const struct metg *m, double e, bool *bound_out)
{
    *bound_out = m->efficiency[0] >= e;
    for (unsigned i = 0; i < NLENGTHS; i++) {
        double share;

        if (m->efficiency[i] < e)
            continue;
        if (i == 0)
            return lengths_us[0];
        share = (e - m->efficiency[i - 1]) / (m->efficiency[i] - m->efficiency[i - 1]);
        return lengths_us[i - 1] * pow(lengths_us[i] / lengths_us[i - 1], share);
    }
    return 0;
}

/* Tasks for a run of about a fifth of a second, within reason. */
static size_t metg_ntasks(const struct metg *m, double us)
{
    const double n = 2e5 * m->nworkers / us;

    if (m->o.tasks != 0)
        return m->o.tasks;
    return n < 1000 ? 1000 : n > 1e6 ? 1000000 : (size_t)n;
}

static int print_point(const struct metg *m, unsigned i, size_t ntasks, double wall_ns)
{
    struct heddle_json j;

    if (!m->c->json) {
        fprintf(m->c->out, "%8.0f us %10zu tasks %8.1f %%\n", lengths_us[i], ntasks,
                100 * m->efficiency[i]);
        fflush(m->c->out);
        return 0;
    }
    heddle_json_init_file(&j, m->c->out);
    bench_json_head(&j, "metg_point", &m->o, m->ctx);
    heddle_json_key_str(&j, "shape", heddle_stream_names[m->shape]);
    heddle_json_key_double(&j, "task_us", lengths_us[i]);
    heddle_json_key_uint(&j, "tasks", ntasks);
    heddle_json_key_double(&j, "wall_ns", wall_ns);
    heddle_json_key_double(&j, "efficiency", m->efficiency[i]);
    return bench_json_end(m->c, &j);
}

static int run_length(struct metg *m, unsigned i)
{
    struct stream s;
    struct stream_time t;
    double best = INFINITY;
    size_t ntasks;
    struct bench_opts o = m->o;
    heddle_status st;

    o.tasks = metg_ntasks(m, lengths_us[i]);
    o.task_ns = 1000 * lengths_us[i];
    st = stream_open(&s, m->ctx, m->shape, &o);
    for (unsigned r = 0; r < m->o.reps + 1 && st == HEDDLE_OK; r++) {
        st = stream_run(&s, &t);
        if (r > 0 && t.wall_ns < best) /* the first one warms up */
            best = t.wall_ns;
    }
    ntasks = s.ntasks;
    stream_close(&s);
    if (st != HEDDLE_OK)
        return bench_fail(m->c, m->ctx, st);
    m->efficiency[i] = (double)ntasks * 1000 * lengths_us[i] / m->nworkers / best;
    return print_point(m, i, ntasks, best);
}

static void json_metg(struct heddle_json *j, const char *key, double us)
{
    heddle_json_key(j, key);
    if (us > 0)
        heddle_json_double(j, us);
    else
        heddle_json_null(j);
}

static void line_metg(const struct metg *m, double e)
{
    bool is_bound;
    const double us = metg_at(m, e, &is_bound);

    if (us > 0)
        fprintf(m->c->out, "%.0f %% efficiency from tasks of %s%.2f us on\n", 100 * e,
                is_bound ? "at most " : "", us);
    else
        fprintf(m->c->out, "%.0f %% efficiency was not reached\n", 100 * e);
}

static int print_metg(const struct metg *m)
{
    struct heddle_json j;
    bool is_bound50, is_bound90;
    const double us50 = metg_at(m, 0.5, &is_bound50);
    const double us90 = metg_at(m, 0.9, &is_bound90);

    if (!m->c->json) {
        line_metg(m, 0.5);
        line_metg(m, 0.9);
        return 0;
    }
    heddle_json_init_file(&j, m->c->out);
    bench_json_head(&j, "metg", &m->o, m->ctx);
    heddle_json_key_str(&j, "shape", heddle_stream_names[m->shape]);
    json_metg(&j, "metg50_us", us50);
    heddle_json_key_bool(&j, "metg50_at_most", is_bound50);
    json_metg(&j, "metg90_us", us90);
    heddle_json_key_bool(&j, "metg90_at_most", is_bound90);
    return bench_json_end(m->c, &j);
}

static int metg_run(struct cli *c, int argc, char **argv)
{
    struct metg m = {.c = c, .o = {.shape = "independent", .reps = 3}};
    struct bench_memory memory;
    bool all;
    int rc =
        bench_parse(c, "bench metg", argc, argv,
                    BENCH_SHAPE | BENCH_TASKS | BENCH_REPS | BENCH_NO_LOG | BENCH_WINDOW, &m.o);

    if (rc != 0)
        return rc;
    if (!stream_find(m.o.shape, &m.shape, &all) || all ||
        (m.shape != STREAM_INDEPENDENT && m.shape != STREAM_CHOLESKY))
        return cli_error(c,
                         "metg knows the shapes independent and cholesky, "
                         "not '%s'",
                         m.o.shape);
    rc = bench_open(c, &m.o, &memory, &m.ctx);
    if (rc != 0)
        return rc;
    m.nworkers = bench_nworkers(m.ctx);
    if (!c->json)
        fprintf(c->out, "%s, %u workers\n", m.o.shape, m.nworkers);
    for (unsigned i = 0; i < NLENGTHS && rc == 0; i++)
        rc = run_length(&m, i);
    if (rc == 0)
        rc = print_metg(&m);
    if (rc == 0)
        return bench_finish(c, &m.o, &memory, m.ctx);
    heddle_ctx_destroy(m.ctx);
    return rc;
}

const struct heddle_cmd heddle_bench_metg = {
    .name = "metg",
    .help = "the shortest task that keeps the workers busy (METG)",
    .usage = "heddle bench metg [--shape independent|cholesky] [--tasks N]\n"
             "    [--workers W] [--reps R] [--sched S] [--window N]\n"
             "    [--log FILE | --no-log] [--log-level L] [--no-bind] "
             "[--json]\n"
             "\n"
             "Tasks of 1, 2, 5, 10, 20, 50 and 100 us. Efficiency is the time\n"
             "of all tasks over workers times time of the run.\n"
             "\n"
             "  --tasks  of each length (default: 0.2 s of work); cholesky has\n"
             "           45760\n"
             "  --reps   runs of each length, the best counts (default 3)\n",
    .run = metg_run,
};
