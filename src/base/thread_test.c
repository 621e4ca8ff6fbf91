/* SPDX-License-Identifier: BSD-3-Clause */
/* thread: options reach the thread, bad ones are refused, signals stay out. */
#include "base/thread.h"

#include <signal.h>

#include "base/clock.h"
#include "tests/test.h"

/* What the thread saw of itself. */
struct seen {
    char name[16];
    size_t stack_bytes;
    int cpus[4];
    unsigned ncpus;
    int cpu;
    uint32_t id;
    int blocks_int, blocks_segv;
};

static void *look(void *arg)
{
    struct seen *s = arg;
    pthread_attr_t attr;
    sigset_t set;

    /* The creator sets the name after the start. */
    for (int i = 0; i < 1000 && strcmp(s->name, "heddle-worker-1") != 0; i++) {
        pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
        heddle_thread_sleep_ns(100000);
    }
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstacksize(&attr, &s->stack_bytes);
        pthread_attr_destroy(&attr);
    }
    if (heddle_thread_get_cpus(s->cpus, 4, &s->ncpus) != HEDDLE_OK)
        s->ncpus = 0;
    s->cpu = heddle_thread_cpu();
    s->id = heddle_thread_id();
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    s->blocks_int = sigismember(&set, SIGINT);
    s->blocks_segv = sigismember(&set, SIGSEGV);
    return NULL;
}

TEST(options_reach_the_thread)
{
    int cpu = -1;
    unsigned n = 0;
    struct seen s = {.cpu = -1};
    struct heddle_thread t;
    sigset_t set;

    CHECK_OK(heddle_thread_get_cpus(&cpu, 1, &n));
    CHECK(n >= 1);
    {
        const struct heddle_thread_opts o = {
            .name = "heddle-worker-123456789",
            .stack_bytes = 1000001,
            .cpus = &cpu,
            .ncpus = 1,
        };

        CHECK_OK(heddle_thread_create(&t, &o, look, &s));
    }
    CHECK_OK(heddle_thread_join(&t));
    CHECK_STR(s.name, "heddle-worker-1");
    CHECK(s.stack_bytes >= 1000001);
    CHECK_EQ(s.ncpus, 1);
    CHECK_EQ(s.cpus[0], cpu);
    CHECK_EQ(s.cpu, cpu);
    CHECK(s.id != heddle_thread_id());
    CHECK_EQ(s.blocks_int, 1);
    CHECK_EQ(s.blocks_segv, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    CHECK_EQ(sigismember(&set, SIGINT), 0); /* ours is as before */
}

static void *set_flag(void *arg)
{
    *(int *)arg = 1;
    return NULL;
}

TEST(defaults_and_small_stacks)
{
    const struct heddle_thread_opts tiny = {.stack_bytes = 1};
    struct heddle_thread t;
    int flag = 0;

    CHECK_OK(heddle_thread_create(&t, NULL, set_flag, &flag));
    CHECK_OK(heddle_thread_join(&t));
    CHECK_EQ(flag, 1);
    flag = 0;
    CHECK_OK(heddle_thread_create(&t, &tiny, set_flag, &flag));
    CHECK_OK(heddle_thread_join(&t));
    CHECK_EQ(flag, 1);
}

TEST(bad_options_are_refused)
{
    static const int negative = -1, huge = HEDDLE_CPU_MAX, missing = HEDDLE_CPU_MAX - 1;
    const struct heddle_thread_opts bad[] = {
        {.cpus = &negative, .ncpus = 1},
        {.cpus = &huge, .ncpus = 1},
        {.cpus = &negative, .ncpus = 0},
    };
    const struct heddle_thread_opts absurd = {.stack_bytes = SIZE_MAX};
    struct heddle_thread t;
    int flag = 0;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STATUS(heddle_thread_create(&t, &bad[i], set_flag, &flag), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_thread_create(&t, &absurd, set_flag, &flag), HEDDLE_ENOMEM);
    CHECK_STATUS(heddle_thread_create(&t, NULL, NULL, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_thread_bind(NULL, 1), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_thread_bind(&negative, 1), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_thread_bind(&missing, 1), HEDDLE_EINVAL);
    CHECK_EQ(flag, 0);
}

static void *bind_here(void *arg)
{
    int now = -1;
    unsigned n = 0;
    const int *cpu = arg;

    CHECK_OK(heddle_thread_bind(cpu, 1));
    CHECK_OK(heddle_thread_get_cpus(&now, 1, &n));
    CHECK_EQ(n, 1);
    CHECK_EQ(now, *cpu);
    heddle_thread_yield();
    return NULL;
}

TEST(bind_to_each_cpu)
{
    static int cpus[HEDDLE_CPU_MAX];
    struct heddle_thread t;
    unsigned n = 0, before = 0;

    CHECK_OK(heddle_thread_get_cpus(cpus, HEDDLE_CPU_MAX, &n));
    for (unsigned i = 0; i < n && i < 8; i++) {
        CHECK_OK(heddle_thread_create(&t, NULL, bind_here, &cpus[i]));
        CHECK_OK(heddle_thread_join(&t));
    }
    CHECK_OK(heddle_thread_get_cpus(NULL, 0, &before));
    CHECK_EQ(before, n); /* the creator's set did not change */
}

TEST(sleep_lasts)
{
    const uint64_t t0 = heddle_clock_ns();

    heddle_thread_sleep_ns(2000000);
    CHECK(heddle_clock_ns() - t0 >= 2000000);
    heddle_thread_sleep_ns(0);
}

TEST_MAIN(options_reach_the_thread, defaults_and_small_stacks, bad_options_are_refused,
          bind_to_each_cpu, sleep_lasts)
