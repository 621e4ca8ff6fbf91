/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench: the benchmarks, each a file of its own.
 *
 * Purpose    finds the benchmark in the tables made of bench/bench.def and
 *            bench/la/la.def and runs it.
 */
#include <string.h>

#include "base/cond.h"
#include "cmd/cmd.h"
#include "heddle_config.h"

#define HEDDLE_BENCH(name, on) HEDDLE_IF(on, extern const struct heddle_cmd heddle_bench_##name;)
#include "bench/bench.def"
#undef HEDDLE_BENCH
#define HEDDLE_BENCH_LA(name, help) extern const struct heddle_cmd heddle_bench_##name;
#include "bench/la/la.def"
#undef HEDDLE_BENCH_LA

static const struct heddle_cmd *const bench_table[] = {
#define HEDDLE_BENCH(name, on) HEDDLE_IF(on, &heddle_bench_##name, )
#include "bench/bench.def"
#undef HEDDLE_BENCH
#define HEDDLE_BENCH_LA(name, help) &heddle_bench_##name,
#include "bench/la/la.def"
#undef HEDDLE_BENCH_LA
    NULL,
};

extern const struct heddle_cmd heddle_cmd_bench; /* at the end */

static int bench_help(struct cli *c)
{
    cli_usage(c, "heddle", &heddle_cmd_bench);
    fputc('\n', c->out);
    for (const struct heddle_cmd *const *p = bench_table; *p != NULL; p++)
        fprintf(c->out, "  %-11s %s\n", (*p)->name, (*p)->help);
    return 0;
}

static int bench_unknown(struct cli *c, const char *name)
{
    const char *near = cli_nearest(bench_table, name);

    if (near != NULL)
        return cli_error(c, "there is no benchmark '%s', did you mean '%s'?", name, near);
    return cli_error(c, "there is no benchmark '%s', see 'heddle help bench'", name);
}

static int bench_run(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *b;

    if (argc < 2)
        return cli_error(c, "bench needs the name of a benchmark, see 'heddle "
                            "help bench'");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return bench_help(c);
    b = cli_find(bench_table, argv[1]);
    if (b == NULL)
        return bench_unknown(c, argv[1]);
    if (cli_wants_help(argc - 1, argv + 1))
        return cli_usage(c, "heddle bench", b);
    return b->run(c, argc - 1, argv + 1);
}

const struct heddle_cmd heddle_cmd_bench = {
    .name = "bench",
    .help = "measures what the runtime costs",
    .usage = "heddle bench NAME [options]\n"
             "heddle bench NAME --help\n"
             "\n"
             "Every benchmark takes\n"
             "  --workers W    threads that run tasks (default: all cores)\n"
             "  --sched S      scheduler, see 'heddle info'\n"
             "  --log FILE     keep the log of the run in FILE\n"
             "  --log-level L  0 (tasks) to 3, see heddle(7)\n"
             "  --no-bind      do not bind workers to cores\n"
             "  --json         one JSON object per line\n"
             "Benchmarks do not look at the environment.\n",
    .run = bench_run,
    .verbs = bench_table,
    .has_own_help = true,
};
