/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/scale: what more workers bring.
 *
 * How        two contexts, one with one worker and one with W, run the same
 *            stream in turn, so that a slow moment of the machine hits both.
 *            The idle one sleeps.
 */
#include "bench/bench.h"

/* ns[0] is with one worker, ns[1] with several. */
static int scale_print(struct bench_pair *p)
{
    const double n = (double)p->stream[0].ntasks;
    const double speedup = p->ns[0].median / p->ns[1].median;
    const struct bench_opts *o = &p->o[1];
    struct heddle_json j;

    if (!p->c->json) {
        fprintf(p->c->out,
                "%.0f %s tasks of %.1f us: %.2f ms with 1 worker, %.2f ms with "
                "%u, speed-up %.3f\n",
                n, o->shape, o->task_ns / 1000, n * p->ns[0].median / 1e6,
                n * p->ns[1].median / 1e6, bench_nworkers(p->ctx[1]), speedup);
        return 0;
    }
    heddle_json_init_file(&j, p->c->out);
    bench_json_head(&j, "scale", o, p->ctx[1]);
    heddle_json_key_str(&j, "shape", o->shape);
    heddle_json_key_uint(&j, "tasks", p->stream[0].ntasks);
    heddle_json_key_double(&j, "task_us", o->task_ns / 1000);
    heddle_json_key_uint(&j, "reps", o->reps);
    heddle_json_key_double(&j, "one_worker_ns", n * p->ns[0].median);
    heddle_json_key_double(&j, "all_workers_ns", n * p->ns[1].median);
    heddle_json_key_double(&j, "speedup", speedup);
    heddle_json_key_double(&j, "best_speedup", p->ns[0].min / p->ns[1].min);
    return bench_json_end(p->c, &j);
}

static int scale_run(struct cli *c, int argc, char **argv)
{
    struct bench_pair p = {.c = c};
    struct bench_opts o = {
        .shape = "independent", .tasks = 10000, .workers = 2, .reps = 7, .task_ns = 20000};
    bool all;
    int rc = bench_parse(
        c, "bench scale", argc, argv,
        BENCH_SHAPE | BENCH_TASKS | BENCH_REPS | BENCH_TASK_US | BENCH_NO_LOG | BENCH_WINDOW, &o);

    if (rc != 0)
        return rc;
    if (!stream_find(o.shape, &p.shape, &all) || all)
        return cli_error(c, "scale needs one shape, not '%s'", o.shape);
    p.o[0] = p.o[1] = o;
    p.o[0].workers = 1;
    p.o[0].log = NULL;
    rc = bench_pair_run(&p);
    if (rc == 0)
        rc = scale_print(&p);
    return bench_pair_close(&p, rc);
}

const struct heddle_cmd heddle_bench_scale = {
    .name = "scale",
    .help = "speed-up of several workers over one",
    .usage = "heddle bench scale [--workers W] [--shape SHAPE] [--tasks N]\n"
             "    [--task-us X] [--reps R] [--sched S] [--window N]\n"
             "    [--log FILE | --no-log] [--log-level L] [--no-bind] "
             "[--json]\n"
             "\n"
             "  --workers  to compare with one (default 2)\n"
             "  --shape    one of those of 'bench tasks' (default "
             "independent)\n"
             "  --tasks    (default 10000)\n"
             "  --task-us  length of a task (default 20)\n"
             "  --reps     the two alternate (default 7)\n",
    .run = scale_run,
};
