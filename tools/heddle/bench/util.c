/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/util: options, contexts with counted memory, statistics.
 *
 * Threads    the allocator is called from any thread; its counters are relaxed
 *            atomics: they are read while no thread allocates.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "common/run_bound.h"
#include "heddle/machine.h"
#include "heddle/trace.h"
#include "sim/opts.h"

/* --- options ------------------------------------------------------------- */

enum { MAX_WORKERS = 4096, NOPTS = 14 };

int bench_parse(struct cli *c, const char *what, int argc, char **argv, unsigned accepts,
                struct bench_opts *o)
{
    const struct {
        unsigned needs;
        struct cli_opt opt;
    } all[] = {
        {0, {"--workers", CLI_UINT, &o->workers, 1, MAX_WORKERS}},
        {0, {"--sched", CLI_STRING, &o->sched, 0, 0}},
        {0, {"--log", CLI_OUTPUT, &o->log, 0, 0}},
        {0, {"--log-level", CLI_UINT, &o->log_level, 0, HEDDLE_LOG_EXPERT}},
        {0, {"--no-bind", CLI_FLAG, &o->no_bind, 0, 0}},
        {BENCH_SHAPE, {"--shape", CLI_STRING, &o->shape, 0, 0}},
        {BENCH_TASKS, {"--tasks", CLI_UINT, &o->tasks, 1, 100000000}},
        {BENCH_REPS, {"--reps", CLI_UINT, &o->reps, 1, 10000}},
        {BENCH_TASK_US, {"--task-us", CLI_NS, &o->task_ns, 0, 1000000}},
        {BENCH_GATE, {"--gate", CLI_FLAG, &o->gate, 0, 0}},
        {BENCH_NO_LOG, {"--no-log", CLI_FLAG, &o->no_log, 0, 0}},
        {BENCH_WINDOW, {"--window", CLI_UINT, &o->window, 1, 100000000}},
    };
    struct cli_opt opts[NOPTS] = {{0}};
    unsigned n = 0;
    int rc;

    _Static_assert(sizeof(all) / sizeof(all[0]) < NOPTS, "a NULL at the end");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if ((all[i].needs & ~accepts) == 0)
            opts[n++] = all[i].opt;
    rc = cli_parse(c, what, argc, argv, opts, NULL);
    if (rc == 0 && o->log != NULL && o->no_log)
        return cli_error(c, "--log and --no-log exclude each other");
    return rc;
}

/* --- counted memory ------------------------------------------------------ */

static void *counted_alloc(void *user, size_t bytes, size_t align)
{
    struct bench_memory *m = user;
    void *p = heddle_alloc_aligned(NULL, bytes, align);

    if (p != NULL) {
        /* Relaxed: counters. */
        heddle_add_rlx(&m->calls, (uint64_t)1);
        heddle_add_rlx(&m->live, (int64_t)bytes);
    }
    return p;
}

static void counted_free(void *user, void *ptr, size_t bytes)
{
    struct bench_memory *m = user;

    heddle_add_rlx(&m->live, -(int64_t)bytes); /* relaxed: a counter */
    heddle_free(NULL, ptr, bytes);
}

/* --- contexts ------------------------------------------------------------ */

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct bench_memory *m = user;

    if (severity == HEDDLE_ERROR)
        snprintf(m->why, sizeof(m->why), "%s", text);
}

int bench_open(struct cli *c, const struct bench_opts *o, struct bench_memory *m,
               heddle_ctx **ctx_out)
{
    struct heddle_ctx_opts opts = {.size = sizeof(opts), .ignore_env = true};
    heddle_status st;

    if (o->sched != NULL && sim_check_policy(c, o->sched) != 0)
        return 2;
    opts.nworkers = (unsigned)o->workers;
    opts.sched = o->sched;
    opts.bind = o->no_bind ? HEDDLE_OFF : HEDDLE_ON;
    opts.window = (unsigned)o->window;
    opts.log = o->no_log ? HEDDLE_OFF : HEDDLE_ON;
    opts.log_level = (int)o->log_level;
    opts.log_path = o->log;
    opts.energy = o->energy != NULL ? o->energy : "off";
    opts.devices = o->devices;
    opts.device_memory = o->device_memory;
    opts.model_dir = "";
    opts.message = keep_sentence;
    opts.message_user = m;
    opts.allocator =
        (struct heddle_allocator){.alloc = counted_alloc, .free = counted_free, .user = m};
    *m = (struct bench_memory){0};
    st = heddle_ctx_create(&opts, ctx_out);
    if (st == HEDDLE_OK)
        return 0;
    if (m->why[0] != '\0')
        return cli_fail(c, "%s", m->why);
    if (st == HEDDLE_EIO && o->log != NULL)
        return cli_fail(c, "the log '%s' cannot be written", o->log);
    return cli_fail(c, "no context can be started: %s", heddle_status_text(st));
}

int bench_close(struct cli *c, const struct bench_memory *m, heddle_ctx *ctx)
{
    const heddle_status st = heddle_ctx_destroy(ctx);
    const int64_t live = heddle_load_rlx(&m->live); /* all threads are gone */

    if (st != HEDDLE_OK)
        return cli_fail(c, "the context ended with: %s",
                        m->why[0] != '\0' ? m->why : heddle_status_text(st));
    if (live != 0)
        return cli_fail(c, "the context left %" PRId64 " bytes behind", live);
    return 0;
}

int bench_finish(struct cli *c, const struct bench_opts *o, const struct bench_memory *m,
                 heddle_ctx *ctx)
{
    const int rc = bench_close(c, m, ctx); /* writes the log */

    if (rc == 0 && !c->json)
        run_bound_line(c->out, o->log);
    return rc;
}

int bench_fail(struct cli *c, heddle_ctx *ctx, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (heddle_ctx_error(ctx, &e) == HEDDLE_OK && e.message[0] != '\0')
        return cli_fail(c, "%s", e.message);
    return cli_fail(c, "the benchmark failed: %s", heddle_status_text(st));
}

unsigned bench_nworkers(heddle_ctx *ctx)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    return heddle_ctx_get_stats(ctx, &s) == HEDDLE_OK ? s.nworkers : 0;
}

/* --- statistics ---------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

uint64_t bench_process_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * HEDDLE_NS_PER_S + (uint64_t)t.tv_nsec;
}

void bench_settle(void)
{
    enum { STEP_NS = 20000000, QUIET = 4, MOST = 250 };
    unsigned quiet = 0;

    for (unsigned i = 0; i < MOST && quiet < QUIET; i++) {
        const uint64_t before = bench_process_ns();

        heddle_thread_sleep_ns(STEP_NS);
        quiet = bench_process_ns() - before < STEP_NS / 20 ? quiet + 1 : 0;
    }
}

struct bench_stat bench_stat(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare);
    return (struct bench_stat){.median = n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2,
                               .min = v[0],
                               .max = v[n - 1]};
}

uint64_t bench_ticks(double ns)
{
    struct heddle_clock clock;
    uint64_t ticks;

    if (ns <= 0)
        return 0;
    heddle_clock_init(&clock);
    ticks = (uint64_t)(ns / clock.ns_per_tick);
    return ticks > 0 ? ticks : 1;
}

/* --- output -------------------------------------------------------------- */

static const char *log_kind(const struct bench_opts *o)
{
    if (o->no_log)
        return "off";
    return o->log != NULL ? "file" : "recorder";
}

void bench_json_head(struct heddle_json *j, const char *name, const struct bench_opts *o,
                     heddle_ctx *ctx)
{
    struct heddle_machine_info m = {.size = sizeof(m)};
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    if (heddle_machine_query(&m) != HEDDLE_OK)
        m.model[0] = '\0';
    if (heddle_ctx_get_stats(ctx, &s) != HEDDLE_OK)
        s.sched = NULL;
    heddle_json_object(j);
    heddle_json_key_str(j, "name", name);
    heddle_json_key_str(j, "version", heddle_version());
    heddle_json_key_str(j, "machine", m.model);
    heddle_json_key_str(j, "compiler", heddle_build.compiler);
    heddle_json_key_uint(j, "workers", s.nworkers);
    heddle_json_key_str(j, "sched", s.sched);
    heddle_json_key_str(j, "log", log_kind(o));
    heddle_json_key_int(j, "log_level", o->no_log ? HEDDLE_LOG_OFF : (int64_t)o->log_level);
    heddle_json_key_bool(j, "bound", !o->no_bind);
}

int bench_json_end(struct cli *c, struct heddle_json *j)
{
    heddle_status st;

    heddle_json_end(j);
    heddle_json_line(j);
    st = heddle_json_finish(j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}
