/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost: time that the system takes from a task is in the log as such, as much as the task
 * itself measures, and is no sample for models; time that a task sleeps is neither.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "heddle/heddle.h"
#include "heddle/trace.h"
#include "tests/test.h"

#define NS_PER_MS INT64_C(1000000)

static int64_t gap_ns; /* of the last run_burn(): time that passed less processor time */

static int64_t cpu_ns(void)
{
    struct timespec t;

    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

/* Uses as much processor time as its argument says, in nanoseconds. */
static heddle_status run_burn(struct heddle_exec *x)
{
    const int64_t t0 = (int64_t)heddle_clock_ns(), c0 = cpu_ns();

    while (cpu_ns() - c0 < *(const int64_t *)heddle_exec_arg(x))
        ;
    gap_ns = (int64_t)heddle_clock_ns() - t0 - (cpu_ns() - c0);
    return HEDDLE_OK;
}

static heddle_status run_sleep(struct heddle_exec *x)
{
    const struct timespec t = {.tv_nsec = 30 * NS_PER_MS};

    (void)x;
    (void)nanosleep(&t, NULL);
    return HEDDLE_OK;
}

static struct heddle_cost cost_of(struct heddle_exec *x)
{
    (void)x;
    return (struct heddle_cost){.flops = 1};
}

static const heddle_kernel k_burn = {
    .size = sizeof(heddle_kernel),
    .name = "burn",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_burn}},
};

static const heddle_kernel k_model = {
    .size = sizeof(heddle_kernel),
    .name = "model",
    .cost = cost_of,
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_burn}},
};

static const heddle_kernel k_sleep = {
    .size = sizeof(heddle_kernel),
    .name = "sleep",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_sleep}},
};

/* --- a thread that wants the same core --------------------------------------------- */

static _Atomic int has_begun, stops;

static void *rival_run(void *arg)
{
    (void)arg;
    atomic_store(&has_begun, 1);
    while (atomic_load(&stops) == 0)
        ;
    return NULL;
}

/* This thread and its children have one core from now on. */
static void one_core(void)
{
    cpu_set_t all, one;
    int cpu = 0;

    CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

static pthread_t rival_start(void)
{
    pthread_t t;

    atomic_store(&has_begun, 0);
    atomic_store(&stops, 0);
    CHECK_EQ(pthread_create(&t, NULL, rival_run, NULL), 0);
    while (atomic_load(&has_begun) == 0)
        sched_yield();
    return t;
}

static void rival_stop(pthread_t t)
{
    atomic_store(&stops, 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

/* --- programs ------------------------------------------------------------------------ */

static heddle_ctx *start(const char *log)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = 1,
                                      .bind = HEDDLE_OFF,
                                      .log_level = 1,
                                      .log_path = log,
                                      .ignore_env = true,
                                      .model_dir = "",
                                      .devices = "none"};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

static void run(heddle_ctx *ctx, const heddle_kernel *k, int64_t ns)
{
    const struct heddle_call call = {.arg = &ns, .arg_bytes = sizeof(ns)};

    CHECK_OK(heddle_submit(ctx, k, &call));
    CHECK_OK(heddle_wait(ctx));
}

static void path_make(char *path, size_t bytes)
{
    const char *dir = getenv("TMPDIR");

    snprintf(path, bytes, "%s/heddle-lost-%d.hlog", dir != NULL ? dir : "/tmp", (int)getpid());
}

static heddle_log *read_log(const char *path)
{
    heddle_log *log = NULL;

    CHECK_OK(heddle_log_open(path, NULL, &log));
    CHECK_EQ(unlink(path), 0);
    return log;
}

/* What the log says that tasks of a kernel lost: at most the time beyond what each needs. */
static int64_t lost_of(const struct heddle_log_view *v, const char *kernel, int64_t needs)
{
    int64_t sum = 0;

    for (size_t i = 0; i < v->ntasks; i++)
        for (size_t k = 0; k < v->nevents; k++) {
            const struct heddle_log_task *t = &v->tasks[i];
            const struct heddle_log_event *e = &v->events[k];

            if (strcmp(v->kernels[t->kernel].name, kernel) != 0 || e->kind != HEDDLE_LOG_LOST ||
                e->task != t->id || t->end_ns - t->start_ns < needs)
                continue;
            CHECK_EQ(e->t_ns, t->end_ns);
            CHECK(e->y_ns > 0 && e->y_ns <= t->end_ns - t->start_ns - needs + NS_PER_MS / 10);
            sum += e->y_ns;
        }
    return sum;
}

TEST(as_much_as_the_task_measures)
{
    const int64_t burn = 80 * NS_PER_MS;
    char path[512];
    heddle_log *log;
    heddle_ctx *ctx;
    pthread_t rival;
    int64_t gap, lost;

    path_make(path, sizeof(path));
    one_core();
    ctx = start(path);
    run(ctx, &k_burn, 1000); /* short: no word about it */
    rival = rival_start();
    run(ctx, &k_burn, burn);
    gap = gap_ns;
    rival_stop(rival);
    run(ctx, &k_sleep, 0);
    CHECK_OK(heddle_ctx_destroy(ctx));
    log = read_log(path);
    lost = lost_of(heddle_log_get_view(log), "burn", burn);
    printf("the task measured %.3f ms, the log has %.3f ms\n", (double)gap / 1e6,
           (double)lost / 1e6);
    CHECK(gap > 5 * NS_PER_MS); /* else the rival did nothing */
    CHECK(lost >= gap - 2 * NS_PER_MS);
    CHECK_EQ(lost_of(heddle_log_get_view(log), "sleep", 0), 0);
    heddle_log_close(log);
}

/* The prediction at the submission of task n of a kernel; 0: there was none. */
static float predicted(const struct heddle_log_view *v, const char *kernel, size_t n)
{
    for (size_t i = 0; i < v->ntasks; i++)
        if (strcmp(v->kernels[v->tasks[i].kernel].name, kernel) == 0 && n-- == 0)
            return v->tasks[i].predicted_ns;
    CHECK(false);
    return 0;
}

/* A short task after the disturbed one is soon undisturbed; the model knows that one alone. */
TEST(models_ignore_it)
{
    enum { SHORT = 20 };
    const int64_t burn = 60 * NS_PER_MS;
    const struct heddle_log_view *v;
    char path[512];
    heddle_log *log;
    heddle_ctx *ctx;
    pthread_t rival;

    path_make(path, sizeof(path));
    one_core();
    ctx = start(path);
    rival = rival_start();
    run(ctx, &k_model, burn);
    rival_stop(rival);
    for (int i = 0; i < SHORT; i++)
        run(ctx, &k_model, NS_PER_MS / 10);
    CHECK_OK(heddle_ctx_destroy(ctx));
    log = read_log(path);
    v = heddle_log_get_view(log);
    CHECK(lost_of(v, "model", 0) > 5 * NS_PER_MS);
    printf("predicted %g, %g, ..., %g ns\n", (double)predicted(v, "model", 0),
           (double)predicted(v, "model", 1), (double)predicted(v, "model", SHORT));
    /* Nothing was learnt from the first one, and the rest took 0.1 ms each. */
    CHECK(predicted(v, "model", 1) == predicted(v, "model", 0));
    CHECK(predicted(v, "model", SHORT) != predicted(v, "model", 0));
    heddle_log_close(log);
}

TEST_MAIN(as_much_as_the_task_measures, models_ignore_it)
