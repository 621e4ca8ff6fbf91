/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/sampler: what reading energy counters costs a run.
 *
 * How        the same work, as independent tasks on all workers, in contexts with and
 *            without the sampler in turn, both with a log of level 1. A task does a
 *            fixed amount of arithmetic: what the sampler takes from a core is seen.
 *            Runs differ by more than a sampler costs, so the CPU time of its thread
 *            is given as well, as the kernel counts it.
 * Counters   those of the machine; where it has none, a made-up tree of files with two
 *            packages and their memory, and the output says so: a real counter takes
 *            longer to read.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "heddle/energy_meter.h"

enum { READS = 200, ROUNDS = 15, PATH_BYTES = 512, NZONES = 4, NFILES = 3 };

#define BAR 0.005 /* of the run time */

/* --- a made-up tree --------------------------------------------------------- */

static const struct {
    const char *zone, *name;
} zones[NZONES] = {{"intel-rapl:0", "package-0"},
                   {"intel-rapl:0:0", "dram"},
                   {"intel-rapl:1", "package-1"},
                   {"intel-rapl:1:0", "dram"}};
static const char *const files[NFILES] = {"name", "energy_uj", "max_energy_range_uj"};
static const char *const folders[] = {"class/powercap", "class", "."};

static bool put_file(const char *root, unsigned z, unsigned k)
{
    const char *text = k == 0 ? zones[z].name : k == 1 ? "123456789012" : "262143328850";
    char path[PATH_BYTES + 64];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "%s/class/powercap/%s/%s", root, zones[z].zone, files[k]);
    f = fopen(path, "w");
    ok = f != NULL && fprintf(f, "%s\n", text) > 0;
    return (f == NULL || fclose(f) == 0) && ok;
}

/* "" before: nothing was made. */
static bool tree_make(char root[PATH_BYTES])
{
    const char *dir = getenv("TMPDIR");
    char path[PATH_BYTES + 64];
    bool ok;

    snprintf(root, PATH_BYTES / 2, "%s/heddle-sampler-XXXXXX", dir != NULL ? dir : "/tmp");
    if (mkdtemp(root) == NULL) {
        root[0] = '\0';
        return false;
    }
    ok = true;
    for (int i = 1; i >= 0; i--) {
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        ok = ok && mkdir(path, 0755) == 0;
    }
    for (unsigned z = 0; z < NZONES; z++) {
        snprintf(path, sizeof(path), "%s/class/powercap/%s", root, zones[z].zone);
        ok = ok && mkdir(path, 0755) == 0;
        for (unsigned k = 0; k < NFILES && ok; k++)
            ok = put_file(root, z, k);
    }
    return ok;
}

static void tree_remove(const char *root)
{
    char path[PATH_BYTES + 64];

    if (root[0] == '\0')
        return;
    for (unsigned z = 0; z < NZONES; z++) {
        for (unsigned k = 0; k < NFILES; k++) {
            snprintf(path, sizeof(path), "%s/class/powercap/%s/%s", root, zones[z].zone, files[k]);
            (void)remove(path);
        }
        snprintf(path, sizeof(path), "%s/class/powercap/%s", root, zones[z].zone);
        (void)remove(path);
    }
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        (void)rmdir(path);
    }
    (void)rmdir(root);
}

/* --- work -------------------------------------------------------------------- */

/* Where results go and come from: no step of the arithmetic can be left out. */
static _Atomic uint64_t sink;

/* Steps that depend on each other. */
static void arithmetic(uint64_t n)
{
    double x = (double)(atomic_load_explicit(&sink, memory_order_relaxed) & 255);

    for (uint64_t i = 0; i < n; i++)
        x = x * 0.999999 + 1e-6;
    atomic_fetch_add_explicit(&sink, (uint64_t)x + 1, memory_order_relaxed);
}

static heddle_status work_run(struct heddle_exec *x)
{
    const uint64_t *n = heddle_exec_arg(x);

    arithmetic(*n);
    return HEDDLE_OK;
}

static const heddle_kernel work = {
    .size = sizeof(heddle_kernel),
    .name = "work",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = work_run}},
};

/* Steps that take about that long. */
static uint64_t calibrate(double ns)
{
    const uint64_t n = 1000000;
    double best = (double)INFINITY;

    for (int i = 0; i < 5; i++) {
        const uint64_t start = heddle_clock_ns();
        double took;

        arithmetic(n);
        took = (double)(heddle_clock_ns() - start);
        best = took < best ? took : best;
    }
    return (uint64_t)(ns * (double)n / best) + 1;
}

/* --- measuring ----------------------------------------------------------------- */

/* CPU time of the sampler's thread, by its name; -1: the kernel does not tell. */
static double thread_ns(void)
{
    DIR *d = opendir("/proc/self/task");
    const struct dirent *e;
    double ns = -1;

    while (d != NULL && ns < 0 && (e = readdir(d)) != NULL) {
        char path[PATH_BYTES], text[64] = "";
        unsigned long long v = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/task/%.32s/comm", e->d_name);
        f = fopen(path, "r");
        if (f == NULL)
            continue;
        if (fgets(text, sizeof(text), f) == NULL)
            text[0] = '\0';
        fclose(f);
        if (strcmp(text, "heddle-energy\n") != 0)
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%.32s/schedstat", e->d_name);
        f = fopen(path, "r");
        if (f != NULL && fscanf(f, "%llu", &v) == 1)
            ns = (double)v;
        if (f != NULL)
            fclose(f);
    }
    if (d != NULL)
        closedir(d);
    return ns;
}

struct run_time {
    double wall_ns, cpu_ns;
    double sampler_share; /* of the wall time; < 0: not known */
};

struct sampler_bench {
    struct cli *c;
    struct bench_opts o;
    char root[PATH_BYTES];   /* the tree, "": the machine has counters */
    char option[PATH_BYTES]; /* with the sampler */
    uint64_t steps;          /* of a task */
};

static heddle_status submit_all(heddle_ctx *ctx, const struct sampler_bench *b)
{
    const struct heddle_call call = {.arg = &b->steps, .arg_bytes = sizeof(b->steps)};
    heddle_status st = HEDDLE_OK;

    for (uint64_t i = 0; i < b->o.tasks && st == HEDDLE_OK; i++)
        st = heddle_submit(ctx, &work, &call);
    return st == HEDDLE_OK ? heddle_wait(ctx) : st;
}

/* One context, one run. */
static int run_once(const struct sampler_bench *b, bool is_on, struct run_time *t)
{
    struct bench_opts o = b->o;
    struct bench_memory memory;
    heddle_ctx *ctx = NULL;
    heddle_status st;
    double before, after;
    uint64_t wall, cpu;
    int rc;

    o.energy = is_on ? b->option : "off";
    rc = bench_open(b->c, &o, &memory, &ctx);
    if (rc != 0)
        return rc;
    before = thread_ns();
    wall = heddle_clock_ns();
    cpu = heddle_clock_process_ns();
    st = submit_all(ctx, b);
    t->cpu_ns = (double)(heddle_clock_process_ns() - cpu);
    t->wall_ns = (double)(heddle_clock_ns() - wall);
    after = thread_ns();
    t->sampler_share =
        before < 0 || after < 0 || !(t->wall_ns > 0) ? -1 : (after - before) / t->wall_ns;
    if (st != HEDDLE_OK)
        rc = bench_fail(b->c, ctx, st);
    return rc != 0 ? (heddle_ctx_destroy(ctx), rc) : bench_close(b->c, &memory, ctx);
}

struct costs {
    struct bench_stat wall, cpu; /* with / without, of each pair */
    struct bench_stat share;     /* CPU time of the sampler per run time */
    bool has_share;
};

static int measure(const struct sampler_bench *b, struct costs *x)
{
    const size_t reps = b->o.reps;
    double *v = calloc(3 * reps, sizeof(*v));
    struct run_time off, on;
    int rc = v == NULL ? cli_fail(b->c, "no memory for %zu repetitions", reps) : 0;

    x->has_share = true;
    for (size_t r = 0; r < reps + 1 && rc == 0; r++) {
        /* Which one is first changes: a machine gets warm. */
        rc = run_once(b, r % 2 != 0, r % 2 != 0 ? &on : &off);
        if (rc == 0)
            rc = run_once(b, r % 2 == 0, r % 2 == 0 ? &on : &off);
        if (rc != 0 || r == 0) /* the first one warms up */
            continue;
        v[r - 1] = on.wall_ns / off.wall_ns;
        v[reps + r - 1] = on.cpu_ns / off.cpu_ns;
        v[2 * reps + r - 1] = on.sampler_share;
        x->has_share = x->has_share && on.sampler_share >= 0;
    }
    if (rc == 0) {
        x->wall = bench_stat(v, reps);
        x->cpu = bench_stat(v + reps, reps);
        x->share = bench_stat(v + 2 * reps, reps);
    }
    free(v);
    return rc;
}

/* Nanoseconds of reading one domain of a source. */
static struct bench_stat read_cost(heddle_meter *m, size_t domain)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    double v[ROUNDS];

    for (unsigned r = 0; r < ROUNDS; r++) {
        const uint64_t start = heddle_clock_ns();

        for (unsigned i = 0; i < READS; i++)
            if (heddle_meter_read(m, domain, &s) == HEDDLE_ENOENT)
                break;
        v[r] = (double)(heddle_clock_ns() - start) / READS;
    }
    return bench_stat(v, ROUNDS);
}

/* --- output -------------------------------------------------------------------- */

static void put_reads(const struct sampler_bench *b, heddle_meter *m)
{
    struct heddle_meter_source s = {.size = sizeof(s)};
    size_t domain = 0;

    for (size_t i = 0; heddle_meter_get_source(m, i, &s) == HEDDLE_OK; i++) {
        if (s.ndomains == 0) {
            fprintf(b->c->out, "one read    %-5s not measured: %s\n", s.name, s.why);
        } else {
            const struct bench_stat t = read_cost(m, domain);

            fprintf(b->c->out, "one read    %-5s %.2f us [%.2f .. %.2f], %zu domains\n", s.name,
                    t.median / 1e3, t.min / 1e3, t.max / 1e3, s.ndomains);
        }
        domain += s.ndomains;
    }
}

static void json_reads(struct heddle_json *j, heddle_meter *m)
{
    struct heddle_meter_source s = {.size = sizeof(s)};
    size_t domain = 0;

    heddle_json_key(j, "reads");
    heddle_json_array(j);
    for (size_t i = 0; heddle_meter_get_source(m, i, &s) == HEDDLE_OK; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", s.name);
        heddle_json_key_uint(j, "domains", s.ndomains);
        heddle_json_key_double(j, "ns", s.ndomains > 0 ? read_cost(m, domain).median : (double)NAN);
        heddle_json_key_str(j, "problem", s.why[0] != '\0' ? s.why : NULL);
        heddle_json_end(j);
        domain += s.ndomains;
    }
    heddle_json_end(j);
}

static void json_stat(struct heddle_json *j, const char *key, const struct bench_stat *s,
                      bool is_known)
{
    heddle_json_key(j, key);
    if (!is_known) {
        heddle_json_null(j);
        return;
    }
    heddle_json_object(j);
    heddle_json_key_double(j, "median", s->median);
    heddle_json_key_double(j, "min", s->min);
    heddle_json_key_double(j, "max", s->max);
    heddle_json_end(j);
}

static int print_json(const struct sampler_bench *b, const struct costs *x, heddle_meter *m)
{
    struct bench_memory memory;
    struct heddle_json j;
    heddle_ctx *ctx = NULL;
    int rc = bench_open(b->c, &b->o, &memory, &ctx); /* its facts are printed */

    if (rc != 0)
        return rc;
    heddle_json_init_file(&j, b->c->out);
    bench_json_head(&j, "sampler", &b->o, ctx);
    heddle_json_key_bool(&j, "made_up", b->root[0] != '\0');
    heddle_json_key_uint(&j, "tasks", b->o.tasks);
    heddle_json_key_uint(&j, "reps", b->o.reps);
    json_stat(&j, "wall_ratio", &x->wall, true);
    json_stat(&j, "cpu_ratio", &x->cpu, true);
    json_stat(&j, "sampler_share", &x->share, x->has_share);
    heddle_json_key_double(&j, "bar", BAR);
    json_reads(&j, m);
    rc = bench_json_end(b->c, &j);
    return rc != 0 ? (heddle_ctx_destroy(ctx), rc) : bench_close(b->c, &memory, ctx);
}

static int print(const struct sampler_bench *b, const struct costs *x, heddle_meter *m)
{
    FILE *out = b->c->out;

    if (b->c->json)
        return print_json(b, x, m);
    if (b->root[0] != '\0')
        fputs("counters    a made-up tree of files: this machine has none, and "
              "real ones take longer to read\n",
              out);
    fprintf(out,
            "wall time   with / without the sampler: %.4f [%.4f .. %.4f], "
            "%" PRIu64 " pairs\n"
            "CPU time    with / without the sampler: %.4f [%.4f .. %.4f]\n",
            x->wall.median, x->wall.min, x->wall.max, b->o.reps, x->cpu.median, x->cpu.min,
            x->cpu.max);
    if (x->has_share)
        fprintf(out,
                "its thread  %.4f %% of the run time [%.4f .. %.4f]; the bar "
                "is %.1f %%: %s\n",
                100 * x->share.median, 100 * x->share.min, 100 * x->share.max, 100 * BAR,
                x->share.median <= BAR ? "met" : "missed");
    put_reads(b, m);
    return 0;
}

static int open_counters(struct sampler_bench *b, heddle_meter **m)
{
    const struct heddle_meter_opts plain = {.size = sizeof(plain), .sysfs = "/sys"};
    struct heddle_meter_opts o = plain;
    struct heddle_meter_domain d = {.size = sizeof(d)};
    heddle_status st = heddle_meter_open(&plain, m);

    snprintf(b->option, sizeof(b->option), "auto");
    if (st == HEDDLE_OK && heddle_meter_get_domain(*m, 0, &d) != HEDDLE_OK) {
        heddle_meter_close(*m);
        *m = NULL;
        if (!tree_make(b->root))
            return cli_fail(b->c, "no folder for made-up counters: %s", strerror(errno));
        snprintf(b->option, sizeof(b->option), "auto,sys=%.400s", b->root);
        o.sysfs = b->root;
        st = heddle_meter_open(&o, m);
    }
    return st == HEDDLE_OK ? 0 : cli_fail(b->c, "%s", heddle_status_text(st));
}

static int sampler_run(struct cli *c, int argc, char **argv)
{
    struct sampler_bench b = {.c = c,
                              .o = {.tasks = 20000, .reps = 11, .task_ns = 20000, .log_level = 1}};
    heddle_meter *m = NULL;
    struct costs x;
    int rc =
        bench_parse(c, "bench sampler", argc, argv, BENCH_TASKS | BENCH_REPS | BENCH_TASK_US, &b.o);

    if (rc == 0 && b.o.log_level == 0)
        rc = cli_error(c, "energy is in logs of level 1 and more");
    if (rc != 0)
        return rc;
    b.steps = calibrate(b.o.task_ns);
    rc = open_counters(&b, &m);
    if (rc == 0)
        rc = measure(&b, &x);
    if (rc == 0)
        rc = print(&b, &x, m);
    heddle_meter_close(m);
    tree_remove(b.root);
    return rc;
}

const struct heddle_cmd heddle_bench_sampler = {
    .name = "sampler",
    .help = "what reading energy counters costs a run",
    .usage = "heddle bench sampler [--tasks N] [--task-us X] [--workers W]\n"
             "    [--reps R] [--sched S] [--log FILE] [--log-level L] [--no-bind]\n"
             "    [--json]\n"
             "\n"
             "  --tasks      per run (default 20000)\n"
             "  --task-us    arithmetic of a task (default 20)\n"
             "  --workers    (default: all cores)\n"
             "  --reps       pairs with and without, in turn (default 11)\n"
             "  --log-level  of both (default 1)\n",
    .run = sampler_run,
};
