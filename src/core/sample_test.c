/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample: energy counters of a tree of files come into the log: the first and the last
 * reading, those in between, what they are called; and where there are none, why.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/faulty_test.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/sample.h"
#include "heddle/energy_meter.h"
#include "heddle/heddle.h"
#include "heddle/trace.h"
#include "meter/tree_test.h"
#include "test.h"

#define UJ "class/powercap/intel-rapl:0/energy_uj"
#define MS UINT64_C(1000000)

/* --- a context on a tree ------------------------------------------------------ */

struct rig {
    struct tree tree;
    char log[512], option[512];
    struct heddle_ctx_opts o;
    heddle_ctx *ctx;
    _Atomic unsigned nsaid;
    char said[512];
    /* What on_message() does with a warning. */
    bool dumps;    /* the log, which needs the sampler's lock */
    bool destroys; /* tries to end the context */
};

static void on_message(void *user, enum heddle_severity severity, const char *text)
{
    struct rig *r = user;

    if (atomic_load(&r->nsaid) == 0)
        snprintf(r->said, sizeof(r->said), "%s", text);
    if (r->dumps && severity == HEDDLE_WARNING)
        CHECK_OK(heddle_ctx_dump_log(r->ctx, r->log));
    if (r->destroys && severity == HEDDLE_WARNING)
        CHECK_STATUS(heddle_ctx_destroy(r->ctx), HEDDLE_EDEADLK);
    atomic_fetch_add(&r->nsaid, 1);
}

/* Two packages, the first with memory. */
static void rig_init(struct rig *r, const char *period)
{
    memset(r, 0, sizeof(*r));
    tree_init(&r->tree);
    tree_zone(&r->tree, "intel-rapl:0", "package-0\n", 1000, TREE_RANGE);
    tree_zone(&r->tree, "intel-rapl:0:1", "dram\n", 7, TREE_RANGE);
    tree_zone(&r->tree, "intel-rapl:1", "package-1\n", 5, TREE_RANGE);
    (void)tree_path(&r->tree, "run.log", r->log);
    CHECK(snprintf(r->option, sizeof(r->option), "%s,sys=%s", period, r->tree.root) <
          (int)sizeof(r->option));
    r->o = (struct heddle_ctx_opts){.size = sizeof(r->o),
                                    .nworkers = 2,
                                    .bind = HEDDLE_OFF,
                                    .devices = "none",
                                    .model_dir = "",
                                    .log_level = 1,
                                    .log_path = r->log,
                                    .energy = r->option,
                                    .message = on_message,
                                    .message_user = r,
                                    .ignore_env = true};
}

static void rig_start(struct rig *r)
{
    CHECK_OK(heddle_ctx_create(&r->o, &r->ctx));
}

static void rig_stop(struct rig *r)
{
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    r->ctx = NULL;
}

static void rig_fini(struct rig *r)
{
    tree_fini(&r->tree);
}

static heddle_status nop_run(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static const heddle_kernel nop = {
    .size = sizeof(heddle_kernel),
    .name = "nop",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = nop_run}},
};

static void run_tasks(heddle_ctx *ctx, size_t n)
{
    const struct heddle_call call = {.priority = 0};

    for (size_t i = 0; i < n; i++)
        CHECK_OK(heddle_submit(ctx, &nop, &call));
    CHECK_OK(heddle_wait(ctx));
}

/* --- the log --------------------------------------------------------------------- */

/* Samples of one domain. */
struct series {
    size_t n;
    uint64_t first, last; /* microjoules */
    int64_t first_ns, last_ns;
    size_t ngaps;
};

static heddle_log *log_open(const struct rig *r)
{
    heddle_log *log = NULL;

    CHECK_OK(heddle_log_open(r->log, NULL, &log));
    CHECK_STR(heddle_log_get_partial(log), "");
    CHECK_EQ(heddle_log_get_view(log)->lost, 0);
    return log;
}

static const char *info(const heddle_log *log, const char *key)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);

    for (size_t i = 0; i < v->ninfos; i++)
        if (strcmp(v->infos[i].key, key) == 0)
            return v->infos[i].value;
    return NULL;
}

static struct series series_of(const heddle_log *log, unsigned domain)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct series s = {0};

    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (e->kind != HEDDLE_LOG_POWER || e->b != domain)
            continue;
        CHECK_STR(v->lanes[e->lane].name, "energy");
        if (s.n == 0) {
            s.first = e->x;
            s.first_ns = e->t_ns;
        } else {
            CHECK(e->x >= s.last);
            CHECK(e->t_ns >= s.last_ns);
        }
        s.last = e->x;
        s.last_ns = e->t_ns;
        s.ngaps += e->c & HEDDLE_LOG_POWER_GAP;
        s.n++;
    }
    return s;
}

static size_t count_power(const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    size_t n = 0;

    for (size_t i = 0; i < v->nevents; i++)
        n += v->events[i].kind == HEDDLE_LOG_POWER;
    return n;
}

/* --- tests ----------------------------------------------------------------------- */

TEST(option)
{
    static const struct {
        const char *text;
        bool is_good, is_off;
        uint64_t period_ns;
        const char *sysfs;
    } row[] = {
        {NULL, true, false, 0, NULL},
        {"auto", true, false, 0, NULL},
        {"off", true, true, 0, NULL},
        {"20ms", true, false, 20 * MS, NULL},
        {"100us", true, false, MS / 10, NULL},
        {"1h", true, false, 3600 * HEDDLE_NS_PER_S, NULL},
        {"sys=/a,b", true, false, 0, "/a,b"},
        {"auto,sys=/x", true, false, 0, "/x"},
        {"5ms,sys=x,sys=y", true, false, 5 * MS, "x,sys=y"},
        {"", false, false, 0, NULL},
        {"on", false, false, 0, NULL},
        {"20", false, false, 0, NULL},
        {"0", false, false, 0, NULL},
        {"99us", false, false, 0, NULL},
        {"2h", false, false, 0, NULL},
        {"-1ms", false, false, 0, NULL},
        {"auto,", false, false, 0, NULL},
        {"auto,/x", false, false, 0, NULL},
        {"auto,sys=", false, false, 0, NULL},
        {"sys=", false, false, 0, NULL},
        {",sys=/x", false, false, 0, NULL},
        {"99999999999999999999999999999999999999ms", false, false, 0, NULL},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct energy_choice c;

        CHECK_EQ(heddle_energy_parse(row[i].text, &c), row[i].is_good);
        if (!row[i].is_good)
            continue;
        CHECK_EQ(c.is_off, row[i].is_off);
        CHECK_EQ(c.period_ns, row[i].period_ns);
        CHECK_STR(c.sysfs, row[i].sysfs);
    }
}

/* All that was used between the first and the last reading is in the log. */
TEST(first_and_last)
{
    struct rig r;
    heddle_log *log;
    struct series s;

    rig_init(&r, "1h"); /* nothing in between */
    rig_start(&r);
    run_tasks(r.ctx, 100);
    tree_number(&r.tree, UJ, 51000);
    tree_number(&r.tree, "class/powercap/intel-rapl:1/energy_uj", 6);
    rig_stop(&r);
    log = log_open(&r);
    CHECK_STR(info(log, "energy.domain.0"), "package-0 cpu");
    CHECK_STR(info(log, "energy.domain.1"), "dram-0 cpu");
    CHECK_STR(info(log, "energy.domain.2"), "package-1 cpu");
    CHECK_STR(info(log, "energy.domain.3"), NULL);
    CHECK_STR(info(log, "energy.source.0"), "rapl every 1 h 0 min");
    CHECK_STR(info(log, "energy"), NULL);
    CHECK_STR(info(log, "energy.problem.0"), NULL);
    s = series_of(log, 0);
    CHECK_EQ(s.n, 2);
    CHECK_EQ(s.first, 0);
    CHECK_EQ(s.last, 50000);
    s = series_of(log, 1);
    CHECK_EQ(s.n, 2);
    CHECK_EQ(s.last, 0);
    s = series_of(log, 2);
    CHECK_EQ(s.last, 1);
    CHECK_EQ(count_power(log), 6);
    /* They enclose the tasks. */
    for (size_t i = 0; i < heddle_log_get_view(log)->ntasks; i++) {
        const struct heddle_log_task *t = &heddle_log_get_view(log)->tasks[i];

        CHECK(t->start_ns >= s.first_ns && t->end_ns <= s.last_ns);
    }
    CHECK_EQ(heddle_log_get_view(log)->ntasks, 100);
    heddle_log_close(log);
    CHECK_EQ(r.nsaid, 0);
    rig_fini(&r);
}

/* A counter that moves all the time, read every millisecond. */
TEST(in_between)
{
    struct rig r;
    heddle_log *log;
    struct series s;
    uint64_t uj = 1000;

    rig_init(&r, "1ms");
    rig_start(&r);
    for (int i = 0; i < 100; i++) {
        uj += 50;
        tree_number(&r.tree, UJ, uj);
        run_tasks(r.ctx, 10);
        heddle_thread_sleep_ns(MS / 2);
    }
    rig_stop(&r);
    log = log_open(&r);
    s = series_of(log, 0);
    CHECK_EQ(s.first, 0);
    CHECK_EQ(s.last, 5000);
    CHECK_EQ(s.ngaps, 0);
    CHECK_EQ(series_of(log, 1).n, s.n);
    heddle_log_close(log);
    rig_fini(&r);
    if (s.n <= 5) /* of about 50 */
        SKIP("the machine is too busy: nearly no sample in between");
}

TEST(no_counter)
{
    struct rig r;
    heddle_log *log;

    rig_init(&r, "auto");
    snprintf(r.option, sizeof(r.option), "auto,sys=/no/such/folder");
    rig_start(&r);
    run_tasks(r.ctx, 10);
    rig_stop(&r);
    log = log_open(&r);
    CHECK(strstr(info(log, "energy"), "no counter: rapl: /no/such/folder/class/powercap is not "
                                      "there; perf: ") != NULL);
    CHECK_STR(info(log, "energy.domain.0"), NULL);
    CHECK_EQ(count_power(log), 0);
    heddle_log_close(log);
    CHECK_EQ(r.nsaid, 0);
    rig_fini(&r);
}

TEST(not_wanted)
{
    struct rig r;
    heddle_log *log;

    rig_init(&r, "off");
    rig_start(&r);
    rig_stop(&r);
    log = log_open(&r);
    CHECK_STR(info(log, "energy"), "not recorded: it was switched off");
    CHECK_EQ(count_power(log), 0);
    heddle_log_close(log);

    r.o.energy = NULL;
    r.o.log_level = 0;
    rig_start(&r);
    rig_stop(&r);
    log = log_open(&r);
    CHECK_STR(info(log, "energy"), "not recorded: the log has level 0");
    heddle_log_close(log);

    r.o.log_level = 1;
    r.o.log = HEDDLE_OFF;
    r.o.log_path = NULL;
    rig_start(&r);
    CHECK(r.ctx->sampler == NULL);
    rig_stop(&r);
    rig_fini(&r);
}

/* In virtual time the counters of this machine mean nothing. */
TEST(virtual_time)
{
    struct rig r;
    heddle_log *log;
    char machine[512];

    rig_init(&r, "1ms");
    tree_text(&r.tree, "m.machine",
              "heddle-machine 1\nclass cpu kind cpu workers 2 gflops 1\n"
              "time nop cpu 0 1000\n");
    r.o.machine = tree_path(&r.tree, "m.machine", machine);
    r.o.devices = NULL;
    rig_start(&r);
    CHECK(r.ctx->sampler == NULL);
    run_tasks(r.ctx, 10);
    rig_stop(&r);
    log = log_open(&r);
    CHECK_STR(info(log, "time"), "virtual");
    CHECK_STR(info(log, "energy"), NULL);
    CHECK_STR(info(log, "energy.domain.0"), NULL);
    CHECK_EQ(count_power(log), 0);
    heddle_log_close(log);
    rig_fini(&r);
}

/* Told once, counted in the log, and never negative energy. */
TEST(jumps)
{
    struct rig r;
    heddle_log *log;
    struct series s;

    rig_init(&r, "1ms");
    tree_number(&r.tree, UJ, 500000000);
    rig_start(&r);
    heddle_thread_sleep_ns(5 * MS);
    for (int i = 0; i < 3; i++) {
        tree_number(&r.tree, UJ, 10); /* back */
        while (r.nsaid == 0)
            heddle_thread_sleep_ns(MS);
        heddle_thread_sleep_ns(10 * MS);
        tree_number(&r.tree, UJ, 1010);
        heddle_thread_sleep_ns(10 * MS);
        tree_number(&r.tree, UJ, TREE_RANGE / 2); /* ahead */
        heddle_thread_sleep_ns(10 * MS);
    }
    heddle_sampler_take(r.ctx); /* on a busy machine: dropped, and one after it */
    heddle_sampler_take(r.ctx);
    rig_stop(&r);
    CHECK_EQ(r.nsaid, 1);
    CHECK(strstr(r.said, "left out: package-0: the counter went back from "
                         "500000000 to 10 microjoules") != NULL);
    log = log_open(&r);
    s = series_of(log, 0);
    CHECK(s.last <= 3000);
    CHECK(s.ngaps >= 1);
    CHECK(strstr(info(log, "energy.problem.0"), "samples are left out: the "
                                                "counter ") != NULL);
    CHECK_STR(info(log, "energy.problem.1"), NULL);
    heddle_log_close(log);
    rig_fini(&r);
}

/* The sentence is told without a lock: the callback may use the context. */
TEST(told_without_a_lock)
{
    struct rig r;
    heddle_log *log;

    rig_init(&r, "1ms");
    r.o.log_path = NULL;
    r.dumps = true;
    rig_start(&r);
    heddle_thread_sleep_ns(5 * MS); /* the callback needs r.ctx */
    tree_text(&r.tree, UJ, "nonsense\n");
    while (r.nsaid == 0)
        heddle_thread_sleep_ns(MS);
    tree_number(&r.tree, UJ, 2000);
    rig_stop(&r);
    log = log_open(&r);
    CHECK(count_power(log) >= 3);
    heddle_log_close(log);
    rig_fini(&r);
}

/* Nor can it end the context that it is called by. */
TEST(told_and_destroyed)
{
    struct rig r;

    rig_init(&r, "1ms");
    r.destroys = true;
    rig_start(&r);
    heddle_thread_sleep_ns(5 * MS);
    tree_text(&r.tree, UJ, "nonsense\n");
    while (r.nsaid < 2) /* the refusal is told as well, inside of the first */
        heddle_thread_sleep_ns(MS);
    rig_stop(&r);
    CHECK_STR(r.said, "a message cannot destroy its context");
    rig_fini(&r);
}

/* A dump of the flight recorder ends with a sample of that moment. */
TEST(dump)
{
    struct rig r;
    heddle_log *log;

    rig_init(&r, "1h");
    r.o.log_path = NULL;
    rig_start(&r);
    run_tasks(r.ctx, 10);
    tree_number(&r.tree, UJ, 1200);
    CHECK_OK(heddle_ctx_dump_log(r.ctx, r.log));
    log = log_open(&r);
    CHECK_EQ(series_of(log, 0).n, 2);
    CHECK_EQ(series_of(log, 0).last, 200);
    heddle_log_close(log);
    tree_number(&r.tree, UJ, 1300);
    CHECK_OK(heddle_ctx_dump_log(r.ctx, r.log));
    log = log_open(&r);
    CHECK_EQ(series_of(log, 0).n, 3);
    CHECK_EQ(series_of(log, 0).last, 300);
    heddle_log_close(log);
    rig_stop(&r);
    rig_fini(&r);
}

/* The log is closed while the thread samples as fast as it may. */
TEST(start_and_stop)
{
    struct rig r;

    rig_init(&r, "100us");
    for (size_t i = 0; i < test_scale(100); i++) {
        heddle_log *log;

        tree_number(&r.tree, UJ, 1000);
        rig_start(&r);
        run_tasks(r.ctx, i % 7);
        if (i % 3 == 0)
            heddle_thread_sleep_ns(MS);
        tree_number(&r.tree, UJ, 1000 + i);
        rig_stop(&r);
        log = log_open(&r);
        CHECK(series_of(log, 0).n >= 2);
        CHECK_EQ(series_of(log, 0).last, i);
        heddle_log_close(log);
    }
    rig_fini(&r);
}

TEST(two_contexts)
{
    struct rig a, b;
    heddle_log *log;

    rig_init(&a, "200us");
    rig_init(&b, "300us");
    rig_start(&a);
    rig_start(&b);
    for (unsigned i = 1; i <= 20; i++) {
        tree_number(&a.tree, UJ, 1000 + 10 * i);
        tree_number(&b.tree, UJ, 1000 + 1000 * i);
        run_tasks(a.ctx, 20);
        run_tasks(b.ctx, 20);
    }
    rig_stop(&a);
    run_tasks(b.ctx, 20);
    rig_stop(&b);
    log = log_open(&a);
    CHECK_EQ(series_of(log, 0).last, 200);
    heddle_log_close(log);
    log = log_open(&b);
    CHECK_EQ(series_of(log, 0).last, 20000);
    heddle_log_close(log);
    rig_fini(&a);
    rig_fini(&b);
}

/* Any thread may ask for a sample while the thread takes its own. */
static void *take_many(void *arg)
{
    for (size_t i = 0; i < test_scale(2000); i++)
        heddle_sampler_take(arg);
    return NULL;
}

TEST(from_many_threads)
{
    pthread_t thread[3];
    struct rig r;
    heddle_log *log;

    rig_init(&r, "100us");
    rig_start(&r);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, take_many, r.ctx), 0);
    for (unsigned i = 1; i <= 50; i++)
        tree_number(&r.tree, UJ, 1000 + i);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    rig_stop(&r);
    log = log_open(&r);
    CHECK(series_of(log, 0).n >= 3 * test_scale(2000));
    CHECK_EQ(series_of(log, 0).last, 50);
    heddle_log_close(log);
    rig_fini(&r);
}

/* A child that only ends does not disturb its parent's sampler. */
TEST(fork_and_go_on)
{
    struct rig r;
    heddle_log *log;
    int status = 0;
    pid_t pid;

    rig_init(&r, "100us");
    rig_start(&r);
    run_tasks(r.ctx, 10);
    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(7);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    tree_number(&r.tree, UJ, 1900);
    run_tasks(r.ctx, 10);
    rig_stop(&r);
    log = log_open(&r);
    CHECK_EQ(series_of(log, 0).last, 900);
    heddle_log_close(log);
    rig_fini(&r);
}

TEST(wrong_option)
{
    struct rig r;

    rig_init(&r, "auto");
    r.o.energy = "often";
    CHECK_STATUS(heddle_ctx_create(&r.o, &r.ctx), HEDDLE_EINVAL);
    CHECK_STR(r.said, "the caller has the energy option 'often': it is off, "
                      "auto or a period such as 20ms");
    rig_fini(&r);
}

TEST(environment)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};
    struct heddle_meter_opts o = {.size = sizeof(o), .sysfs = "/no/such"};
    heddle_meter *m = NULL;
    heddle_log *log;
    struct rig r;

    rig_init(&r, "1h");
    CHECK_EQ(setenv("HEDDLE_ENERGY", r.option, 1), 0);
    r.o.energy = NULL;
    r.o.ignore_env = false;
    rig_start(&r);
    rig_stop(&r);
    log = log_open(&r);
    CHECK_EQ(series_of(log, 0).n, 2);
    heddle_log_close(log);
    CHECK_OK(heddle_meter_open(NULL, &m));
    CHECK_OK(heddle_meter_get_domain(m, 0, &d));
    CHECK_STR(d.name, "package-0");
    heddle_meter_close(m);
    CHECK_OK(heddle_meter_open(&o, &m)); /* the caller's word comes first */
    CHECK(heddle_meter_get_domain(m, 0, &d) == HEDDLE_ENOENT || strncmp(d.name, "gpu", 3) == 0);
    heddle_meter_close(m);
    CHECK_EQ(setenv("HEDDLE_ENERGY", "often", 1), 0);
    CHECK_STATUS(heddle_ctx_create(&r.o, &r.ctx), HEDDLE_EINVAL);
    CHECK(strstr(r.said, "the environment has the energy option") != NULL);
    CHECK_STATUS(heddle_meter_open(NULL, &m), HEDDLE_EINVAL);
    CHECK_EQ(unsetenv("HEDDLE_ENERGY"), 0);
    rig_fini(&r);
}

TEST(no_memory)
{
    struct faulty f;
    struct rig r;

    rig_init(&r, "100us");
    r.o.nworkers = 1;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        r.o.allocator = f.a;
        r.ctx = NULL;
        st = heddle_ctx_create(&r.o, &r.ctx);
        if (st == HEDDLE_OK)
            (void)heddle_ctx_destroy(r.ctx); /* the log may be short of it */
        else
            CHECK(st == HEDDLE_ENOMEM && f.has_failed);
        CHECK_EQ(f.nlive, 0);
    }
    rig_fini(&r);
}

TEST_MAIN(option, first_and_last, in_between, no_counter, not_wanted, virtual_time, jumps,
          told_without_a_lock, told_and_destroyed, dump, start_and_stop, two_contexts,
          from_many_threads, fork_and_go_on, wrong_option, environment, no_memory)
