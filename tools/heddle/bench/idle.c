/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/idle: what a context without work costs.
 *
 * Measured   CPU time of the process between 100 ms and 1.1 s after the last
 *            task, in percent of a core. The main thread sleeps meanwhile.
 */
#include "base/thread.h"
#include "bench/bench.h"

enum {
    BLAS_MS = 400, /* a BLAS library's own threads spin that long after loading */
    SETTLE_MS = 100,
    WATCH_MS = 1000,
};

static uint64_t ms(uint64_t n)
{
    return n * UINT64_C(1000000);
}

static heddle_status idle_measure(heddle_ctx *ctx, const struct bench_opts *o, double *percent_out)
{
    struct stream s;
    struct stream_time t;
    uint64_t cpu, wall;
    heddle_status st = stream_open(&s, ctx, STREAM_INDEPENDENT, o);

    heddle_thread_sleep_ns(ms(BLAS_MS));
    if (st == HEDDLE_OK)
        st = stream_run(&s, &t);
    if (st == HEDDLE_OK) {
        heddle_thread_sleep_ns(ms(SETTLE_MS));
        wall = heddle_clock_ns();
        cpu = heddle_clock_process_ns();
        heddle_thread_sleep_ns(ms(WATCH_MS));
        cpu = heddle_clock_process_ns() - cpu;
        wall = heddle_clock_ns() - wall;
        *percent_out = 100.0 * (double)cpu / (double)wall;
    }
    stream_close(&s);
    return st;
}

static int idle_print(struct cli *c, const struct bench_opts *o, heddle_ctx *ctx, double percent)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct heddle_json j;

    if (heddle_ctx_get_stats(ctx, &s) != HEDDLE_OK)
        return cli_fail(c, "the context does not answer");
    if (!c->json) {
        fprintf(c->out, "%u idle workers use %.3f %% of a core\n", s.nworkers, percent);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    bench_json_head(&j, "idle", o, ctx);
    heddle_json_key_uint(&j, "tasks", o->tasks);
    heddle_json_key_double(&j, "cpu_percent", percent);
    heddle_json_key_uint(&j, "parks", s.parks);
    return bench_json_end(c, &j);
}

static int idle_run(struct cli *c, int argc, char **argv)
{
    struct bench_opts o = {.tasks = 10000};
    struct bench_memory m;
    heddle_ctx *ctx = NULL;
    double percent = 0;
    heddle_status st;
    int rc = bench_parse(c, "bench idle", argc, argv, BENCH_TASKS | BENCH_NO_LOG, &o);

    if (rc == 0)
        rc = bench_open(c, &o, &m, &ctx);
    if (rc != 0)
        return rc;
    st = idle_measure(ctx, &o, &percent);
    rc = st != HEDDLE_OK ? bench_fail(c, ctx, st) : idle_print(c, &o, ctx, percent);
    if (rc == 0)
        return bench_finish(c, &o, &m, ctx);
    heddle_ctx_destroy(ctx);
    return rc;
}

const struct heddle_cmd heddle_bench_idle = {
    .name = "idle",
    .help = "processor time of a context that has nothing to do",
    .usage = "heddle bench idle [--workers W] [--tasks N] [--sched S]\n"
             "    [--log FILE | --no-log] [--log-level L] [--no-bind] "
             "[--json]\n"
             "\n"
             "Runs N empty tasks (default 10000), then looks from 100 ms to "
             "1.1 s\n"
             "after the last one.\n",
    .run = idle_run,
};
