/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/tasks: what a task costs.
 *
 * How        one context; the stream until it allocates nothing any more, but
 *            at most WARM_UPS times, then `reps` times on the clock from the
 *            first submission to the end of heddle_wait().
 * Result     medians over the repetitions, in nanoseconds per task; bytes of a
 *            pending task; allocations per task after the warm-up, which must
 *            be none.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "bench/bench.h"

enum { WARM_UPS = 5 };

struct tasks {
    struct cli *c;
    struct bench_opts o;
    struct bench_gate gate;
    double pending_bytes;
    unsigned nrows; /* printed so far */
};

struct row {
    const char *shape;
    size_t ntasks;
    struct bench_stat ns;
    double submit_ns, cpu_ns;
    double allocations;
    double ping_ns; /* 0: unknown */
    unsigned nnear, nfar;
    double near_ns; /* median of the near ones; 0: there are none */
};

/* Per repetition, all per task. */
struct samples {
    double *ns, *submit, *cpu, *ping, *near;
};

static heddle_status samples_init(struct samples *s, size_t n)
{
    double *v = calloc(5 * n, sizeof(*v));

    *s = (struct samples){v, v + n, v + 2 * n, v + 3 * n, v + 4 * n};
    return v == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

/* --- one shape ----------------------------------------------------------- */

static double ping(const struct tasks *t)
{
    return t->o.gate ? bench_gate_ping(&t->gate) : 0;
}

static heddle_status repeat(struct tasks *t, struct stream *s, struct samples *v, struct row *r)
{
    const double n = (double)s->ntasks;
    heddle_status st = HEDDLE_OK;
    double before = ping(t);

    for (size_t i = 0; i < t->o.reps && st == HEDDLE_OK; i++) {
        struct stream_time time;
        double after;

        st = stream_run(s, &time);
        after = ping(t);
        v->ns[i] = time.wall_ns / n;
        v->submit[i] = time.submit_ns / n;
        v->cpu[i] = time.cpu_ns / n;
        v->ping[i] = before > after ? before : after;
        if (v->ping[i] > 0 && v->ping[i] < BENCH_NEAR_NS)
            v->near[r->nnear++] = v->ns[i];
        else if (v->ping[i] > 0)
            r->nfar++;
        before = after;
    }
    return st;
}

static void reduce(const struct tasks *t, struct samples *v, struct row *r)
{
    const size_t n = t->o.reps;

    r->ns = bench_stat(v->ns, n);
    r->submit_ns = bench_stat(v->submit, n).median;
    r->cpu_ns = bench_stat(v->cpu, n).median;
    r->ping_ns = bench_stat(v->ping, n).median;
    r->near_ns = r->nnear > 0 ? bench_stat(v->near, r->nnear).median : 0;
}

/* Each task ran once per pass; a benchmark that loses some is worthless. */
static bool has_run_all(heddle_ctx *ctx, const struct row *r, size_t passes)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    return heddle_ctx_get_stats(ctx, &s) == HEDDLE_OK && s.executed >= (uint64_t)r->ntasks * passes;
}

static heddle_status warm_up(struct stream *s, const struct bench_memory *m)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < WARM_UPS && st == HEDDLE_OK; i++) {
        /* Relaxed: the context is idle before and after. */
        const uint64_t before = heddle_load_rlx(&m->calls);
        struct stream_time t;

        st = stream_run(s, &t);
        if (heddle_load_rlx(&m->calls) == before)
            break;
    }
    return st;
}

static heddle_status measure(struct tasks *t, heddle_ctx *ctx, const struct bench_memory *m,
                             enum stream_shape shape, struct row *r)
{
    struct stream s;
    struct samples v = {0};
    heddle_status st = samples_init(&v, t->o.reps);
    uint64_t calls;

    if (st == HEDDLE_OK)
        st = stream_open(&s, ctx, shape, &t->o);
    else
        s = (struct stream){0};
    if (st == HEDDLE_OK)
        st = warm_up(&s, m);
    /* Relaxed: as above. */
    calls = heddle_load_rlx(&m->calls);
    r->ntasks = s.ntasks;
    if (st == HEDDLE_OK)
        st = repeat(t, &s, &v, r);
    calls = heddle_load_rlx(&m->calls) - calls;
    if (st == HEDDLE_OK) {
        r->allocations = (double)calls / ((double)s.ntasks * (double)t->o.reps);
        reduce(t, &v, r);
    }
    stream_close(&s);
    free(v.ns);
    return st;
}

/* --- output -------------------------------------------------------------- */

static int print_json(struct tasks *t, heddle_ctx *ctx, const struct row *r)
{
    struct heddle_json j;

    heddle_json_init_file(&j, t->c->out);
    bench_json_head(&j, "tasks", &t->o, ctx);
    heddle_json_key_str(&j, "shape", r->shape);
    heddle_json_key_uint(&j, "tasks", r->ntasks);
    heddle_json_key_double(&j, "task_us", t->o.task_ns / 1000);
    heddle_json_key_uint(&j, "window", t->o.window); /* 0: chosen by Heddle */
    heddle_json_key_uint(&j, "reps", t->o.reps);
    heddle_json_key_double(&j, "ns_per_task", r->ns.median);
    heddle_json_key_double(&j, "min", r->ns.min);
    heddle_json_key_double(&j, "max", r->ns.max);
    heddle_json_key_double(&j, "submit_ns_per_task", r->submit_ns);
    heddle_json_key_double(&j, "cpu_ns_per_task", r->cpu_ns);
    heddle_json_key_double(&j, "bytes_per_pending_task", t->pending_bytes);
    heddle_json_key_double(&j, "allocations_per_task", r->allocations);
    if (t->o.gate) {
        heddle_json_key(&j, "pingpong_ns");
        if (r->ping_ns > 0)
            heddle_json_double(&j, r->ping_ns);
        else
            heddle_json_null(&j);
        heddle_json_key_uint(&j, "near_reps", r->nnear);
        heddle_json_key_uint(&j, "far_reps", r->nfar);
        heddle_json_key(&j, "near_ns_per_task");
        if (r->nnear > 0)
            heddle_json_double(&j, r->near_ns);
        else
            heddle_json_null(&j);
    }
    return bench_json_end(t->c, &j);
}

static void print_head(struct tasks *t, heddle_ctx *ctx)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    if (heddle_ctx_get_stats(ctx, &s) != HEDDLE_OK)
        s.sched = "?";
    fprintf(t->c->out, "%u workers, %s, %" PRIu64 " repetitions; ns per task\n", s.nworkers,
            s.sched, t->o.reps);
    fprintf(t->c->out, "%-12s %9s %9s %9s %9s %9s %9s %8s %8s%s\n", "shape", "tasks", "median",
            "min", "max", "submit", "cpu", "B/task", "allocs",
            t->o.gate ? "      near far  ping" : "");
}

static void print_row(struct tasks *t, const struct row *r)
{
    fprintf(t->c->out, "%-12s %9zu %9.1f %9.1f %9.1f %9.1f %9.1f %8.0f %8.4g", r->shape, r->ntasks,
            r->ns.median, r->ns.min, r->ns.max, r->submit_ns, r->cpu_ns, t->pending_bytes,
            r->allocations);
    if (t->o.gate)
        fprintf(t->c->out, " %9.1f %u/%u %5.0f", r->near_ns, r->nnear, r->nnear + r->nfar,
                r->ping_ns);
    fputc('\n', t->c->out);
    fflush(t->c->out); /* the next one may take a while */
}

/* --- the benchmark ------------------------------------------------------- */

static int run_shape(struct tasks *t, enum stream_shape shape)
{
    struct row r = {.shape = heddle_stream_names[shape]};
    struct bench_memory m;
    heddle_ctx *ctx = NULL;
    heddle_status st;
    int rc = bench_open(t->c, &t->o, &m, &ctx);

    if (rc != 0)
        return rc;
    st = measure(t, ctx, &m, shape, &r);
    if (st != HEDDLE_OK) {
        rc = bench_fail(t->c, ctx, st);
    } else if (!has_run_all(ctx, &r, t->o.reps + 1)) {
        rc = cli_fail(t->c, "tasks were lost in shape %s", r.shape);
    } else if (t->c->json) {
        rc = print_json(t, ctx, &r);
    } else {
        if (t->nrows++ == 0)
            print_head(t, ctx);
        print_row(t, &r);
    }
    if (rc != 0) {
        heddle_ctx_destroy(ctx);
        return rc;
    }
    return bench_finish(t->c, &t->o, &m, ctx);
}

static int tasks_run(struct cli *c, int argc, char **argv)
{
    struct tasks t = {.c = c, .o = {.tasks = 1000000, .reps = 7}};
    enum stream_shape shape = STREAM_INDEPENDENT;
    bool all;
    int rc = bench_parse(c, "bench tasks", argc, argv,
                         BENCH_SHAPE | BENCH_TASKS | BENCH_REPS | BENCH_TASK_US | BENCH_GATE |
                             BENCH_NO_LOG | BENCH_WINDOW,
                         &t.o);

    if (rc != 0)
        return rc;
    if (!stream_find(t.o.shape, &shape, &all))
        return cli_error(c,
                         "there is no shape '%s': independent, chain, random, "
                         "cholesky, replay or all",
                         t.o.shape);
    if (all && t.o.log != NULL)
        return cli_error(c, "--log needs one --shape: each would overwrite the "
                            "log of the one before");
    bench_gate_init(&t.gate);
    rc = bench_pending_bytes(c, &t.o, &t.pending_bytes);
    for (unsigned i = 0; i < STREAM_NSHAPES && rc == 0; i++)
        if (all || i == (unsigned)shape)
            rc = run_shape(&t, (enum stream_shape)i);
    return rc;
}

const struct heddle_cmd heddle_bench_tasks = {
    .name = "tasks",
    .help = "nanoseconds per task of several streams",
    .usage = "heddle bench tasks [--shape SHAPE] [--tasks N] [--workers W]\n"
             "    [--reps R] [--task-us X] [--sched S] [--window N] [--gate]\n"
             "    [--log FILE | --no-log] [--log-level L] [--no-bind] [--json]\n"
             "\n"
             "  --shape    independent, chain, random, cholesky, replay or all\n"
             "             (default all)\n"
             "  --tasks    per repetition (default 1000000); cholesky and replay\n"
             "             have 45760\n"
             "  --reps     on the clock, after some to warm up (default 7)\n"
             "  --task-us  a task keeps its worker busy for X microseconds\n"
             "             (default 0)\n"
             "  --window   tasks in flight before the submitter helps\n"
             "  --gate     tell near cores from far ones by a ping-pong around\n"
             "             each repetition\n"
             "  --no-log   without the always-on recorder\n",
    .run = tasks_run,
};
