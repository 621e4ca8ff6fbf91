/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/log: what the always-on recorder costs.
 *
 * How        two contexts, with and without it, run the same stream in turn.
 *            The difference of the medians is set beside the cost of one clock
 *            read, which a record cannot do without. Then the same with a log
 *            that goes to a file, which says how long it gets, too.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/output.h"
#include "common/run_bound.h"

enum {
    CLOCK_READS = 200000,
    CLOCK_ROUNDS = 9,
    FILE_TASKS = 200000, /* at most: the file is in memory */
    FILE_REPS = 9,
};

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

/* What one shape costs at one level. */
struct log_cost {
    struct bench_stat without, with; /* the recorder, ns per task */
    double read_ns;                  /* one clock read */
    double file_ns, best_file_ns;    /* that a file adds to no log at all */
    double bytes_per_task;           /* of that file */
    size_t ntasks;
};

static double added(const struct log_cost *l)
{
    return l->with.median - l->without.median;
}

/* A file in memory, so that no disk is measured; its name in `path`. */
static int memory_file(char *path, size_t cap)
{
    const int fd = memfd_create("heddle-bench-log", MFD_CLOEXEC);

    if (fd >= 0)
        snprintf(path, cap, "/proc/self/fd/%d", fd);
    return fd;
}

/* The same pair with a log that goes to a file: coding and writing are counted. */
static int file_cost(struct cli *c, const struct bench_opts *o, enum stream_shape shape,
                     struct log_cost *l)
{
    struct bench_pair p = {.c = c, .o = {*o, *o}, .shape = shape};
    struct stat st = {0};
    char path[64];
    size_t ntasks = 0;
    const int fd = memory_file(path, sizeof(path));
    int rc;

    if (fd < 0)
        return cli_fail(c, "no file in memory: %s", strerror(errno));
    for (unsigned i = 0; i < 2; i++) {
        if (p.o[i].tasks > FILE_TASKS)
            p.o[i].tasks = FILE_TASKS;
        if (p.o[i].reps > FILE_REPS)
            p.o[i].reps = FILE_REPS;
    }
    p.o[0].no_log = true;
    p.o[0].log = NULL;
    p.o[1].log = path;
    rc = bench_pair_run(&p);
    if (rc == 0)
        ntasks = p.stream[1].ntasks * (p.o[1].reps + 1); /* one to warm up */
    rc = bench_pair_close(&p, rc);
    if (rc == 0 && fstat(fd, &st) != 0)
        rc = cli_fail(c, "no file in memory: %s", strerror(errno));
    close(fd);
    l->file_ns = p.ns[1].median - p.ns[0].median;
    l->best_file_ns = p.ns[1].min - p.ns[0].min;
    l->bytes_per_task = ntasks == 0 ? 0 : (double)st.st_size / (double)ntasks;
    return rc;
}

static int log_print(struct bench_pair *p, const struct log_cost *l)
{
    struct heddle_json j;

    if (!p->c->json) {
        fprintf(p->c->out,
                "%-12s %8.1f ns per task without the log, %8.1f with it: "
                "%+.1f ns, %.2f clock reads of %.1f ns; to a file %+.1f ns, "
                "%.1f bytes\n",
                heddle_stream_names[p->shape], l->without.median, l->with.median, added(l),
                added(l) / l->read_ns, l->read_ns, l->file_ns, l->bytes_per_task);
        fflush(p->c->out);
        return 0;
    }
    heddle_json_init_file(&j, p->c->out);
    bench_json_head(&j, "log", &p->o[1], p->ctx[1]);
    heddle_json_key_str(&j, "shape", heddle_stream_names[p->shape]);
    heddle_json_key_uint(&j, "tasks", l->ntasks);
    heddle_json_key_uint(&j, "reps", p->o[1].reps);
    heddle_json_key_double(&j, "ns_per_task_without", l->without.median);
    heddle_json_key_double(&j, "ns_per_task_with", l->with.median);
    heddle_json_key_double(&j, "log_ns_per_task", added(l));
    heddle_json_key_double(&j, "best_log_ns_per_task", l->with.min - l->without.min);
    heddle_json_key_double(&j, "clock_read_ns", l->read_ns);
    heddle_json_key_double(&j, "clock_reads_per_task", added(l) / l->read_ns);
    heddle_json_key_double(&j, "file_ns_per_task", l->file_ns);
    heddle_json_key_double(&j, "best_file_ns_per_task", l->best_file_ns);
    heddle_json_key_double(&j, "file_bytes_per_task", l->bytes_per_task);
    return bench_json_end(p->c, &j);
}

/* ns[0] is without the recorder, ns[1] with it. `out` is where the log goes, or NULL. */
static int run_shape(struct cli *c, const struct bench_opts *o, enum stream_shape shape,
                     struct output *out)
{
    struct bench_pair p = {.c = c, .o = {*o, *o}, .shape = shape};
    struct log_cost l = {.read_ns = clock_read_ns()};
    heddle_status st = HEDDLE_OK;
    int rc;

    p.o[0].no_log = true;
    p.o[0].log = p.o[1].log = NULL; /* written at the end, off the clock */
    rc = bench_pair_run(&p);
    if (rc == 0) {
        l.without = p.ns[0];
        l.with = p.ns[1];
        l.ntasks = p.stream[0].ntasks;
        rc = file_cost(c, o, shape, &l);
    }
    if (rc == 0)
        rc = log_print(&p, &l);
    if (rc == 0 && out != NULL)
        st = heddle_ctx_dump_log(p.ctx[1], out->at);
    if (st != HEDDLE_OK)
        rc = cli_fail(c, "the log '%s' cannot be written: %s", o->log, heddle_status_text(st));
    rc = bench_pair_close(&p, rc);
    if (out != NULL)
        rc = output_end(out, rc);
    if (rc == 0 && !c->json)
        run_bound_line(c->out, o->log);
    return rc;
}

static int log_run(struct cli *c, int argc, char **argv)
{
    struct bench_opts o = {.shape = "independent", .tasks = 1000000, .workers = 1, .reps = 9};
    enum stream_shape shape = STREAM_INDEPENDENT;
    struct output out;
    bool all;
    int rc = bench_parse(c, "bench log", argc, argv,
                         BENCH_SHAPE | BENCH_TASKS | BENCH_REPS | BENCH_TASK_US | BENCH_WINDOW, &o);

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
    if (o.log != NULL)
        rc = output_begin(&out, c, o.log); /* says so before the run, not after it */
    for (unsigned i = 0; i < STREAM_NSHAPES && rc == 0; i++)
        if (all || i == (unsigned)shape)
            rc = run_shape(c, &o, (enum stream_shape)i, o.log != NULL ? &out : NULL);
    return rc;
}

const struct heddle_cmd heddle_bench_log = {
    .name = "log",
    .help = "what the log costs: clock reads and bytes per task",
    .usage = "heddle bench log [--shape SHAPE] [--tasks N] [--workers W]\n"
             "    [--reps R] [--task-us X] [--sched S] [--window N]\n"
             "    [--log FILE] [--log-level L] [--no-bind] [--json]\n"
             "\n"
             "  --shape    one of those of 'bench tasks', or all (default\n"
             "             independent)\n"
             "  --tasks    per repetition (default 1000000)\n"
             "  --workers  (default 1)\n"
             "  --reps     with and without alternate (default 9)\n"
             "  --log      write what the recorder holds at the end\n"
             "  --log-level  what is recorded (default 0: tasks; 1: the graph)\n",
    .run = log_run,
};
