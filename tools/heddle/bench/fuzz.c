/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/fuzz: random programs on random machines against a sequential oracle.
 *
 * Structure  for each seed: a program (fuzz/gen.c), a run (fuzz/live.c), a
 *            verdict (fuzz/check.c). A thread watches: a run that does not end
 *            is reported, and so ends the process.
 * Threads    the main thread; the watchdog reads two atomics.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "fuzz/fuzz.h"

/* --- options ------------------------------------------------------------- */

struct fuzz_opts {
    uint64_t seeds, first, tasks, limit_s;
    const char *devices, *without;
    bool has_faults, may_lose, prints, keeps_going;
};

struct fuzz_total {
    uint64_t runs, hangs, wrong, leaks, skipped;
    uint64_t tasks, evictions, copied_bytes, lost;
    double seconds;
};

struct fuzz {
    struct cli *c;
    struct fuzz_opts o;
    struct fuzz_setup setup;
    enum fuzz_device device[FUZZ_NDEVICES];
    unsigned ndevices;
    struct fuzz_total total;
    struct fuzz_prog *prog;
    struct fuzz_arena arena;
    char folder[480];

    struct heddle_thread watch;
    _Atomic uint64_t began_ns; /* of the present run; 0: none */
    _Atomic uint64_t ends;     /* the watchdog shall go */
};

static enum fuzz_device device_of(const struct fuzz *f, uint64_t seed)
{
    return f->device[seed % f->ndevices];
}

static void print_repeat(const struct fuzz *f, uint64_t seed)
{
    fprintf(f->c->err,
            "to repeat: %s bench fuzz --first %" PRIu64 " --seeds 1 --devices %s%s%s%s%s\n",
            f->c->prog, seed, heddle_fuzz_devices[device_of(f, seed)],
            f->o.has_faults ? " --faults" : "", f->o.may_lose ? " --may-lose" : "",
            f->o.without != NULL ? " --without " : "", f->o.without != NULL ? f->o.without : "");
}

static int fuzz_report(struct fuzz *f)
{
    const struct fuzz_total *t = &f->total;
    struct heddle_json j;

    if (!f->c->json) {
        fprintf(f->c->out,
                "%" PRIu64 " runs, %" PRIu64 " hangs, %" PRIu64 " wrong, %" PRIu64
                " leaks (%s%s, %" PRIu64 " tasks, %" PRIu64 " evictions, %.1f MB copied, %.1f s)\n",
                t->runs, t->hangs, t->wrong, t->leaks, f->o.devices,
                f->o.has_faults ? ", faults" : "", t->tasks, t->evictions,
                (double)t->copied_bytes / 1e6, t->seconds);
        return 0;
    }
    heddle_json_init_file(&j, f->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "fuzz");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "devices", f->o.devices);
    heddle_json_key_bool(&j, "faults", f->o.has_faults);
    heddle_json_key_uint(&j, "first", f->o.first);
    heddle_json_key_uint(&j, "runs", t->runs);
    heddle_json_key_uint(&j, "hangs", t->hangs);
    heddle_json_key_uint(&j, "wrong", t->wrong);
    heddle_json_key_uint(&j, "leaks", t->leaks);
    heddle_json_key_uint(&j, "skipped", t->skipped);
    heddle_json_key_uint(&j, "tasks", t->tasks);
    heddle_json_key_uint(&j, "evictions", t->evictions);
    heddle_json_key_uint(&j, "copied_bytes", t->copied_bytes);
    heddle_json_key_uint(&j, "devices_lost", t->lost);
    heddle_json_key_double(&j, "seconds", t->seconds);
    return bench_json_end(f->c, &j);
}

/* --- the watchdog -------------------------------------------------------- */

enum { WATCH_MS = 100 };

static void remove_folder(const struct fuzz *f)
{
    char path[512];

    if (f->folder[0] == '\0')
        return;
    snprintf(path, sizeof(path), "%s/fuzz.machine", f->folder);
    (void)remove(path);
    (void)rmdir(f->folder);
}

static void watch_bite(struct fuzz *f, uint64_t ns)
{
    fprintf(f->c->err, "heddle: seed %" PRIu64 " has not ended after %" PRIu64 " s\n",
            f->prog->seed, ns / UINT64_C(1000000000));
    fuzz_print(f->c->err, f->prog);
    print_repeat(f, f->prog->seed);
    f->total.hangs++;
    remove_folder(f);
    (void)fuzz_report(f);
    fflush(NULL);
    _exit(1);
}

static void *watch_main(void *arg)
{
    struct fuzz *f = arg;
    const uint64_t limit = f->o.limit_s * UINT64_C(1000000000);

    while (heddle_load_acq(&f->ends) == 0) {
        const uint64_t began = heddle_load_acq(&f->began_ns);
        const uint64_t now = heddle_clock_ns();

        if (began != 0 && now > began && now - began > limit)
            watch_bite(f, now - began);
        heddle_thread_sleep_ns(UINT64_C(1000000) * WATCH_MS);
    }
    return NULL;
}

/* --- runs ---------------------------------------------------------------- */

static void run_note(struct fuzz *f, const struct fuzz_run *r)
{
    struct fuzz_total *t = &f->total;

    t->runs++;
    t->tasks += f->prog->ntasks;
    t->evictions += r->evictions;
    t->copied_bytes += r->copied;
    t->lost += r->is_lost;
    t->wrong += r->is_wrong;
    t->leaks += r->is_leak;
    if (f->o.prints)
        fuzz_print(f->c->err, f->prog);
    if (!r->is_wrong && !r->is_leak)
        return;
    if (r->is_wrong)
        fprintf(f->c->err, "heddle: seed %" PRIu64 ": %s\n", f->prog->seed, r->why);
    if (r->is_leak)
        fprintf(f->c->err, "heddle: seed %" PRIu64 ": %" PRId64 " bytes were left behind\n",
                f->prog->seed, heddle_load_rlx(&r->memory.live));
    print_repeat(f, f->prog->seed);
}

/* May the device of the program not be there? */
static bool is_absent(const struct fuzz *f)
{
    const enum fuzz_device d = f->prog->config.device;

    return d == FUZZ_OPENCL || (d == FUZZ_CUDA && (f->setup.ncuda == 0 || f->o.may_lose));
}

/* Returns 0, or the exit status after a sentence. */
static int run_one(struct fuzz *f, uint64_t seed)
{
    struct fuzz_run r = {.setup = &f->setup, .prog = f->prog, .arena = &f->arena};
    heddle_status st;

    fuzz_arena_reset(&f->arena);
    if (!fuzz_generate(f->prog, &f->arena, &f->setup, device_of(f, seed), seed))
        return cli_fail(f->c, "no memory for a program");
    heddle_store_rel(&f->began_ns, heddle_clock_ns());
    st = fuzz_open(&r);
    if (st == HEDDLE_EDEV && is_absent(f)) {
        heddle_store_rel(&f->began_ns, UINT64_C(0));
        f->total.skipped++;
        return 0;
    }
    if (st != HEDDLE_OK) {
        fuzz_print(f->c->err, f->prog);
        return cli_fail(f->c, "seed %" PRIu64 ": no context can be started: %s", seed,
                        heddle_status_text(st));
    }
    if (fuzz_live(&r))
        fuzz_check(&r);
    if (!r.is_wrong)
        fuzz_log_check(&r);
    heddle_store_rel(&f->began_ns, UINT64_C(0));
    r.is_leak = heddle_load_rlx(&r.memory.live) != 0; /* all threads are gone */
    run_note(f, &r);
    return 0;
}

static int run_all(struct fuzz *f)
{
    const uint64_t t0 = heddle_clock_ns();
    int rc = 0;

    for (uint64_t i = 0; i < f->o.seeds && rc == 0; i++) {
        rc = run_one(f, f->o.first + i);
        if (f->total.wrong + f->total.leaks > 0 && !f->o.keeps_going)
            break;
    }
    f->total.seconds = (double)(heddle_clock_ns() - t0) / 1e9;
    return rc;
}

static int parse_devices(struct fuzz *f)
{
    const char *p = f->o.devices;

    while (*p != '\0') {
        const size_t n = strcspn(p, ",");
        unsigned d = 0;

        while (d < FUZZ_NDEVICES &&
               (strlen(heddle_fuzz_devices[d]) != n || strncmp(heddle_fuzz_devices[d], p, n) != 0))
            d++;
        if (d == FUZZ_NDEVICES || f->ndevices == FUZZ_NDEVICES)
            return cli_error(f->c,
                             "--devices takes cpu, sim, opencl, disk and "
                             "cuda with commas, not '%s'",
                             f->o.devices);
        f->device[f->ndevices++] = (enum fuzz_device)d;
        p += n + (p[n] == ',');
    }
    return f->ndevices > 0 ? 0 : cli_error(f->c, "--devices names none");
}

static int parse_without(struct fuzz *f)
{
    const char *p = f->o.without != NULL ? f->o.without : "";

    while (*p != '\0') {
        const size_t n = strcspn(p, ",");
        unsigned i = 0;

        while (i < FUZZ_NPARTS &&
               (strlen(heddle_fuzz_parts[i]) != n || strncmp(heddle_fuzz_parts[i], p, n) != 0))
            i++;
        if (i == FUZZ_NPARTS)
            return cli_error(f->c, "--without: there is no part '%.*s'", (int)n, p);
        f->setup.without |= 1u << i;
        p += n + (p[n] == ',');
    }
    return 0;
}

static int fuzz_begin(struct fuzz *f)
{
    const char *tmp = getenv("TMPDIR");

    f->prog = calloc(1, sizeof(*f->prog));
    if (f->prog == NULL)
        return cli_fail(f->c, "no memory");
    snprintf(f->folder, sizeof(f->folder), "%.440s/heddle-fuzz.XXXXXX",
             tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    if (mkdtemp(f->folder) == NULL) {
        f->folder[0] = '\0';
        return cli_fail(f->c, "no temporary folder can be made");
    }
    f->setup.folder = f->folder;
    f->setup.tasks = f->o.tasks;
    f->setup.has_faults = f->o.has_faults;
    f->setup.may_lose = f->o.may_lose;
    f->setup.prints = f->o.prints;
    f->setup.err = f->c->err;
    if (!fuzz_find_scheds(&f->setup))
        return cli_fail(f->c, "no scheduler runs on a simulated machine");
    for (unsigned i = 0; i < f->ndevices; i++)
        if (f->device[i] == FUZZ_CUDA && f->setup.cuda == NULL)
            fuzz_find_cuda(&f->setup);
    if (heddle_thread_create(&f->watch, NULL, watch_main, f) != HEDDLE_OK)
        return cli_fail(f->c, "no thread can be started");
    return 0;
}

static void fuzz_end(struct fuzz *f)
{
    heddle_store_rel(&f->ends, UINT64_C(1));
    (void)!heddle_thread_join(&f->watch);
    fuzz_drop_cuda(&f->setup);
    remove_folder(f);
    fuzz_arena_fini(&f->arena);
    free(f->prog);
}

static int fuzz_run(struct cli *c, int argc, char **argv)
{
    struct fuzz f = {.c = c, .o = {.seeds = 100, .limit_s = 60, .devices = "cpu,sim"}};
    const struct cli_opt opts[] = {{"--seeds", CLI_UINT, &f.o.seeds, 1, 1000000000},
                                   {"--first", CLI_UINT, &f.o.first, 0, UINT64_MAX / 16},
                                   {"--tasks", CLI_UINT, &f.o.tasks, 1, FUZZ_TASKS},
                                   {"--limit", CLI_UINT, &f.o.limit_s, 1, 86400},
                                   {"--devices", CLI_STRING, &f.o.devices, 0, 0},
                                   {"--without", CLI_STRING, &f.o.without, 0, 0},
                                   {"--faults", CLI_FLAG, &f.o.has_faults, 0, 0},
                                   {"--may-lose", CLI_FLAG, &f.o.may_lose, 0, 0},
                                   {"--print", CLI_FLAG, &f.o.prints, 0, 0},
                                   {"--all", CLI_FLAG, &f.o.keeps_going, 0, 0},
                                   {NULL, CLI_FLAG, NULL, 0, 0}};
    int rc = cli_parse(c, "bench fuzz", argc, argv, opts, NULL);

    if (rc == 0)
        rc = parse_devices(&f);
    if (rc == 0)
        rc = parse_without(&f);
    if (rc != 0)
        return rc;
    rc = fuzz_begin(&f);
    if (rc != 0) {
        fuzz_drop_cuda(&f.setup);
        remove_folder(&f);
        free(f.prog);
    } else {
        rc = run_all(&f);
        if (f.total.runs == 0 && f.total.skipped > 0)
            fprintf(c->err, "heddle: no such device is there, nothing was run\n");
        if (rc == 0)
            rc = fuzz_report(&f);
        fuzz_end(&f);
    }
    return rc != 0 ? rc : f.total.wrong + f.total.leaks > 0;
}

const struct heddle_cmd heddle_bench_fuzz = {
    .name = "fuzz",
    .help = "random programs on random machines against an oracle",
    .usage = "heddle bench fuzz [--seeds N] [--first S] [--devices LIST] "
             "[--faults]\n"
             "    [--may-lose] [--tasks N] [--without PARTS] [--limit SECONDS] "
             "[--all]\n"
             "    [--print] [--json]\n"
             "\n"
             "Runs N random programs (default 100), one per seed from S on, and "
             "the\n"
             "same in plain memory; every byte must be equal. LIST is of\n"
             "  cpu     the cores alone\n"
             "  sim     a random simulated machine with real memories\n"
             "  opencl  the cores and OpenCL devices\n"
             "  disk    the cores, with little memory and a disk\n"
             "  cuda    the cores and GPUs\n"
             "and the seed chooses (default cpu,sim). --faults lets kernels, "
             "copies\n"
             "and devices fail; with --may-lose a device may go by itself.\n"
             "--tasks cuts each program after so many tasks, --without leaves "
             "parts\n"
             "out (reduce, commute, scratch, views, advice, pins, nesting, graphs,\n"
             "events, retries, acquire, unref, alias, late, limits, chains,\n"
             "bindings), --print shows it, --all goes on after a failure. A run "
             "that\n"
             "takes longer than the limit (default 60 s) is a hang and ends the\n"
             "process.\n",
    .run = fuzz_run,
};
