/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/mixed: cores and GPU together, and the same in virtual time.
 *
 * mixed      makespan of the program of bench/cuda/work.h over the best lower
 *            bound that holds for it, from the costs measured just before; the
 *            bound knows of no transfers. One run before the rounds lets the
 *            models of the context learn.
 * simulate   a machine file with those costs, with the rates of pinned copies and
 *            with what the runtime costs: a submission, waking a core, a launch by
 *            the device thread, seeing its end. Programs of several sizes run for
 *            real and on it, with the same scheduler. The streams of the GPU are
 *            workers that share it: a task alone takes as long as in a chain, and
 *            many at once as long as in a batch. The error is of the makespan; two
 *            simpler machines are simulated for comparison, see enum model.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cuda/work.h"
#include "common/overhead.h"

enum {
    REAL_RUNS = 7,
    MIXED_WALKS = 4, /* of each length on each core, to measure their cost */
    SUBMIT_TILES = 8,
    SUBMIT_TASKS = 200 /* per core: less than the window */
};

static struct heddle_ctx_opts mixed_opts(struct cuda_bench *b)
{
    struct heddle_ctx_opts o = cuda_ctx_opts(b);

    o.sched = b->sched != NULL ? b->sched : "lookahead";
    o.models = HEDDLE_ON;
    return o;
}

/* --- mixed --------------------------------------------------------------- */

static void add_facts(struct bench_case *k, const struct cuda_work *w,
                      const struct cuda_costs *costs, uint64_t copied)
{
    bench_case_fact(k, "order", (double)w->nt * w->nb);
    bench_case_fact(k, "nb", w->nb);
    bench_case_fact(k, "tasks", (double)w->g.ntasks);
    bench_case_fact(k, "workers", costs->nworkers);
    bench_case_fact(k, "gemm_gpu_us", costs->ns[CHOLESKY_GEMM][WORK_GPU] / 1e3);
    bench_case_fact(k, "gemm_core_us", costs->ns[CHOLESKY_GEMM][WORK_CORE] / 1e3);
    bench_case_fact(k, "potrf_gpu_us", costs->ns[CHOLESKY_POTRF][WORK_GPU] / 1e3);
    bench_case_fact(k, "walk_core_us", costs->ns[WORK_WALK + 1][WORK_CORE] / 1e3);
    bench_case_fact(k, "walk_gpu_us", costs->ns[WORK_WALK + 1][WORK_GPU] / 1e3);
    bench_case_fact(k, "copied_mb", (double)copied / 1e6);
}

static uint64_t copied_bytes(heddle_ctx *ctx)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    return heddle_ctx_get_stats(ctx, &s) == HEDDLE_OK ? s.copied_bytes : 0;
}

/* A bound must not be made of costs that a busy machine had: they are measured
 * before the runs and behind them, and the smaller ones count. */
static int measure_again(struct cuda_bench *b, heddle_ctx *ctx, unsigned walks,
                         struct cuda_costs *costs)
{
    struct cuda_costs now;
    const int rc = work_measure(b, ctx, costs->nb, walks, &now);

    for (unsigned i = 0; i < WORK_NKINDS && rc == 0; i++)
        for (unsigned k = 0; k < WORK_NTYPES; k++)
            if (now.ns[i][k] < costs->ns[i][k])
                costs->ns[i][k] = now.ns[i][k];
    return rc;
}

static int mixed_rounds(struct cuda_work *w, struct cuda_costs *costs)
{
    struct cuda_bench *b = w->b;
    struct bench_case k = {.part = "mixed",
                           .name = "makespan over bound",
                           .unit = "ms",
                           .raw_name = "bound",
                           .rule = BENCH_RATIO_AT_MOST,
                           .must = 1 / 0.8,
                           .aim = 1 / 0.92,
                           .n = b->rounds};
    double bound = 0, ns = 0;
    uint64_t copied = 0;
    char why[320];
    heddle_status st = HEDDLE_OK;
    int rc;

    for (size_t r = 0; r < b->rounds + 1 && st == HEDDLE_OK; r++) {
        st = work_reset(w);
        copied = copied_bytes(w->ctx);
        if (st == HEDDLE_OK)
            st = work_run(w, &ns);
        copied = copied_bytes(w->ctx) - copied;
        k.heddle[r > 0 ? r - 1 : 0] = ns / 1e6; /* 0: the models learn */
    }
    if (st != HEDDLE_OK)
        return cuda_fail(b, "the mixed program fails", w->ctx, st);
    rc = measure_again(b, w->ctx, MIXED_WALKS, costs);
    if (rc != 0)
        return rc;
    if (work_bound(w, costs, &bound, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    for (size_t r = 0; r < b->rounds; r++)
        k.raw[r] = bound / 1e6;
    add_facts(&k, w, costs, copied);
    rc = work_check(w);
    return rc == 0 ? cuda_report(b, &k) : rc;
}

static int mixed_work(struct cuda_bench *b, heddle_ctx *ctx)
{
    const uint32_t nb = (uint32_t)cuda_scaled(b, 1024, 8);
    const uint32_t nt = b->is_quick ? 12 : 20;
    struct cuda_costs costs;
    struct cuda_work w = {0};
    heddle_status st;
    int rc = work_measure(b, ctx, nb, MIXED_WALKS, &costs);

    if (rc != 0)
        return rc;
    st = work_make(&w, b, nt, nb, work_balanced(&costs, nt));
    if (st == HEDDLE_OK)
        st = work_open(&w, ctx);
    rc = st == HEDDLE_OK ? mixed_rounds(&w, &costs)
                         : cuda_fail(b, "the mixed program cannot begin", ctx, st);
    work_close(&w);
    work_free(&w);
    return rc;
}

int bench_cuda_mixed(struct cuda_bench *b)
{
    const struct heddle_ctx_opts o = mixed_opts(b);
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(&o, &ctx), closed;
    const int rc = st == HEDDLE_OK ? mixed_work(b, ctx)
                                   : cuda_fail(b, "the mixed program cannot begin", NULL, st);

    closed = heddle_ctx_destroy(ctx);
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(b, "the context ended with", NULL, closed)
                                          : rc;
}

/* --- simulate: the machine ----------------------------------------------- */

struct link {
    double in_rate, out_rate, latency_ns; /* bytes per ns */
};

struct simulating {
    struct cuda_bench *b;
    heddle_ctx *ctx;
    struct cuda_costs costs, rough; /* rough: as batches have them */
    struct link link;
    struct overhead overhead;
    char file[4200];
    struct bench_case all;
};

static int time_copies(struct cuda_raw *r, cuda_raw_ptr device, void *host, size_t bytes,
                       double ns_out[2])
{
    int code = 0;

    for (unsigned i = 0; i < 4 && code == 0; i++) { /* the first two warm up */
        const uint64_t start = heddle_clock_ns();

        code = i % 2 == 0 ? r->copy_in(device, host, bytes, r->stream)
                          : r->copy_out(host, device, bytes, r->stream);
        if (code == 0)
            code = r->stream_sync(r->stream);
        ns_out[i % 2] = cuda_ns_since(start);
    }
    return code;
}

static int measure_link(struct cuda_bench *b, struct link *l)
{
    const size_t bytes = cuda_scaled(b, (size_t)64 << 20, 4096);
    struct cuda_raw *r = &b->raw;
    cuda_raw_ptr device = 0;
    double large[2] = {0, 0}, small[2] = {0, 0};
    void *host = NULL;
    int code;

    cuda_raw_use(r);
    code = r->mem_alloc(&device, bytes);
    if (code == 0)
        code = r->host_alloc(&host, bytes, CUDA_RAW_HOST_PORTABLE);
    if (code == 0)
        code = time_copies(r, device, host, bytes, large);
    if (code == 0)
        code = time_copies(r, device, host, 64, small);
    if (host != NULL)
        r->host_free(host);
    if (device != 0)
        r->mem_free(device);
    if (code != 0)
        return cuda_raw_fail(b, "the link cannot be measured", code);
    *l = (struct link){(double)bytes / large[0], (double)bytes / large[1],
                       (small[0] + small[1]) / 2};
    return 0;
}

/* What submitting costs the thread that does it: the tasks of a program like
 * those that follow, fewer than the window holds. */
static heddle_status measure_submit(struct simulating *s)
{
    const size_t most = (size_t)SUBMIT_TASKS * s->costs.nworkers;
    const size_t tiles = cholesky_ntasks(SUBMIT_TILES);
    size_t walks = work_balanced(&s->costs, SUBMIT_TILES);
    double v[REAL_RUNS + 1] = {0}, ignored;
    struct cuda_work w = {0};
    heddle_status st;

    if (walks + 2 * tiles > most)
        walks = most > 2 * tiles ? most - 2 * tiles : 0;
    st = work_make(&w, s->b, SUBMIT_TILES, s->costs.nb, walks);
    if (st == HEDDLE_OK)
        st = work_open(&w, s->ctx);
    for (unsigned i = 0; i < REAL_RUNS + 1 && st == HEDDLE_OK; i++) {
        st = work_reset(&w);
        if (st == HEDDLE_OK)
            st = work_run(&w, &ignored);
        v[i] = w.submit_ns / (double)w.g.ntasks;
    }
    s->overhead.submit_ns = bench_stat(v + 1, REAL_RUNS).median;
    work_close(&w);
    work_free(&w);
    return st;
}

/* Waking first: the submissions of this program replace those of common/overhead.c. */
static heddle_status measure_overhead(struct simulating *s)
{
    heddle_status st = overhead_measure(s->ctx, &s->overhead);

    if (st == HEDDLE_OK)
        st = measure_submit(s);
    return st == HEDDLE_OK ? overhead_drive(s->ctx, &bench_kernel_empty_rw, &s->overhead) : st;
}

/* FREE: a runtime that costs nothing and a GPU that runs one task after the other,
 * each as fast as in a batch, with what the runtime costs in it. SERIAL: that GPU, and what the
 * runtime costs. SHARED:
 * and the GPU's streams. */
enum model { FREE, SERIAL, SHARED, NMODELS };

static heddle_status write_machine(const struct simulating *s, enum model m)
{
    const struct cuda_costs *k = m == FREE ? &s->rough : &s->costs;
    FILE *f = fopen(s->file, "w");
    bool is_ok = f != NULL;

    if (!is_ok)
        return HEDDLE_EIO;
    fprintf(f,
            "heddle-machine 2\n"
            "node cuda0\n"
            "class cpu kind cpu workers %u\n"
            "class cuda0 kind cuda workers %u node cuda0\n"
            "link host cuda0 gbytes %.6f latency_us %.6f\n"
            "link cuda0 host gbytes %.6f latency_us %.6f\n"
            "time fill cuda %zu 1\n",
            k->nworkers, m == SHARED ? k->nstreams : 1, s->link.in_rate, s->link.latency_ns / 1e3,
            s->link.out_rate, s->link.latency_ns / 1e3, (size_t)k->nb * k->nb * sizeof(double));
    if (m != FREE)
        overhead_write(f, &s->overhead);
    for (unsigned i = 0; i < WORK_NKINDS; i++) {
        const char *name = work_kernel_name(i);
        const size_t bytes = work_bytes(k->nb, i);

        fprintf(f, "time %s cpu %zu %.6f\n", name, bytes, k->ns[i][WORK_CORE] / 1e3);
        fprintf(f, "time %s cuda0 %zu %.6f\n", name, bytes,
                (m == SHARED ? k->alone[i] : k->ns[i][WORK_GPU]) / 1e3);
        if (m == SHARED)
            fprintf(f, "share %s cuda0 %zu %.6f\n", name, bytes, k->ns[i][WORK_GPU] / 1e3);
    }
    is_ok = ferror(f) == 0;
    return fclose(f) == 0 && is_ok ? HEDDLE_OK : HEDDLE_EIO;
}

/* --- simulate: points ---------------------------------------------------- */

static heddle_status real_runs(struct cuda_work *w, double *ns_out)
{
    double v[REAL_RUNS + 1] = {0};
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < REAL_RUNS + 1 && st == HEDDLE_OK; i++) {
        st = work_reset(w);
        if (st == HEDDLE_OK)
            st = work_run(w, &v[i]);
    }
    *ns_out = bench_stat(v + 1, REAL_RUNS).median; /* the first one warms up */
    return st;
}

static heddle_status virtual_run(struct simulating *s, struct cuda_work *w, enum model m,
                                 double *ns_out, uint64_t *copied_out)
{
    struct heddle_ctx_opts o = mixed_opts(s->b);
    heddle_ctx *ctx = NULL;
    heddle_status st = write_machine(s, m), closed;

    o.nworkers = 0; /* as the machine says */
    o.devices = NULL;
    o.machine = s->file;
    o.models = HEDDLE_DEFAULT;
    w->is_virtual = true;
    if (st == HEDDLE_OK)
        st = heddle_ctx_create(&o, &ctx);
    if (st == HEDDLE_OK)
        st = work_open(w, ctx);
    if (st == HEDDLE_OK)
        st = work_reset(w);
    if (st == HEDDLE_OK)
        st = work_run(w, ns_out);
    if (st == HEDDLE_OK)
        *copied_out = copied_bytes(ctx);
    work_close(w);
    closed = heddle_ctx_destroy(ctx);
    return st == HEDDLE_OK ? closed : st;
}

static int simulate_point(struct simulating *s, uint32_t nt, bool has_walks)
{
    struct cuda_bench *b = s->b;
    struct bench_case k = {.part = "simulate", .unit = "ms simulated", .raw_name = "real", .n = 1};
    const size_t walks = has_walks ? work_balanced(&s->costs, nt) : 0;
    const size_t at = s->all.n;
    double real = 0, ns[NMODELS] = {0}, submit;
    uint64_t copied[2] = {copied_bytes(s->ctx), 0};
    struct cuda_work w = {0};
    char name[64];
    heddle_status st = work_make(&w, b, nt, s->costs.nb, walks);

    if (st == HEDDLE_OK)
        st = work_open(&w, s->ctx);
    if (st == HEDDLE_OK)
        st = real_runs(&w, &real);
    submit = w.submit_ns;
    copied[0] = (copied_bytes(s->ctx) - copied[0]) / (REAL_RUNS + 1);
    work_close(&w);
    for (enum model m = FREE; m < NMODELS && st == HEDDLE_OK; m++)
        st = virtual_run(s, &w, m, &ns[m], &copied[1]);
    snprintf(name, sizeof(name), "%u tiles of %u%s", nt, s->costs.nb, has_walks ? ", walks" : "");
    k.name = name;
    k.heddle[0] = ns[SHARED] / 1e6;
    k.raw[0] = real / 1e6;
    bench_case_fact(&k, "tasks", (double)w.g.ntasks);
    bench_case_fact(&k, "error", fabs(ns[SHARED] - real) / real);
    bench_case_fact(&k, "error_serial", fabs(ns[SERIAL] - real) / real);
    bench_case_fact(&k, "error_free", fabs(ns[FREE] - real) / real);
    bench_case_fact(&k, "submit_ms", submit / 1e6);
    bench_case_fact(&k, "simulated_submit_ms", w.submit_ns / 1e6);
    bench_case_fact(&k, "copied_mb", (double)copied[0] / 1e6);
    bench_case_fact(&k, "simulated_copied_mb", (double)copied[1] / 1e6);
    work_free(&w);
    if (st != HEDDLE_OK)
        return cuda_fail(b, "the simulation fails", s->ctx, st);
    s->all.heddle[at] = fabs(ns[SHARED] - real) / real;
    s->all.raw[at] = 1;
    s->all.n++;
    return cuda_report(b, &k);
}

static int simulate_order(struct simulating *s, uint32_t nb, const uint32_t *sizes, unsigned n)
{
    heddle_status st;
    int rc = work_measure(s->b, s->ctx, nb, 16, &s->costs);

    if (rc != 0)
        return rc;
    st = measure_overhead(s);
    if (st != HEDDLE_OK)
        return cuda_fail(s->b, "the runtime cannot be measured", s->ctx, st);
    s->rough = s->costs;
    rc = work_alone(s->b, s->ctx, s->overhead.single_ns, &s->costs);
    for (unsigned i = 0; i < n && rc == 0; i++) {
        rc = simulate_point(s, sizes[i], false);
        if (rc == 0)
            rc = simulate_point(s, sizes[i], true);
    }
    return rc;
}

static int simulate_all(struct simulating *s)
{
    static const uint32_t small[] = {8, 12, 20}, large[] = {6, 10};
    struct cuda_bench *b = s->b;
    int rc = measure_link(b, &s->link);

    if (rc == 0)
        rc = simulate_order(s, (uint32_t)cuda_scaled(b, 1024, 8), small, b->is_quick ? 2 : 3);
    if (rc == 0)
        rc = simulate_order(s, (uint32_t)cuda_scaled(b, 2048, 16), large, b->is_quick ? 1 : 2);
    s->all.part = "simulate";
    s->all.name = "median error";
    s->all.unit = "of the makespan";
    s->all.raw_name = "whole";
    s->all.rule = BENCH_VALUE_AT_MOST;
    s->all.must = 0.1;
    s->all.aim = 0.04;
    bench_case_fact(&s->all, "in_gbytes", s->link.in_rate);
    bench_case_fact(&s->all, "out_gbytes", s->link.out_rate);
    bench_case_fact(&s->all, "latency_us", s->link.latency_ns / 1e3);
    bench_case_fact(&s->all, "submit_us", s->overhead.submit_ns / 1e3);
    bench_case_fact(&s->all, "wake_us", s->overhead.wake_ns / 1e3);
    bench_case_fact(&s->all, "drive_us", s->overhead.drive_ns / 1e3);
    bench_case_fact(&s->all, "notice_us", s->overhead.notice_ns / 1e3);
    bench_case_fact(&s->all, "potrf_us", s->costs.ns[CHOLESKY_POTRF][WORK_GPU] / 1e3);
    bench_case_fact(&s->all, "potrf_alone_us", s->costs.alone[CHOLESKY_POTRF] / 1e3);
    return rc == 0 ? cuda_report(b, &s->all) : rc;
}

int bench_cuda_simulate(struct cuda_bench *b)
{
    const struct heddle_ctx_opts o = mixed_opts(b);
    const char *tmp = getenv("TMPDIR");
    struct simulating s = {.b = b};
    heddle_status st, closed;
    int fd, rc;

    snprintf(s.file, sizeof(s.file), "%s/heddle-bench-XXXXXX",
             tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    fd = mkstemp(s.file);
    if (fd < 0)
        return cli_fail(b->c, "no temporary file '%s' can be made", s.file);
    close(fd);
    st = heddle_ctx_create(&o, &s.ctx);
    rc = st == HEDDLE_OK ? simulate_all(&s) : cuda_fail(b, "the simulation cannot begin", NULL, st);
    unlink(s.file);
    closed = heddle_ctx_destroy(s.ctx);
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(b, "the context ended with", NULL, closed)
                                          : rc;
}
