/* SPDX-License-Identifier: BSD-3-Clause */
/* lock: exclusion, and that a debug build stops on each kind of misuse. */
#include "base/lock.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/spin.h"
#include "base/thread.h"
#include "tests/test.h"

struct shared {
    struct heddle_mutex m;
    struct heddle_spin s;
    size_t nrounds;
    size_t by_mutex, by_spin; /* guarded by m, by s */
};

static void *count(void *arg)
{
    struct shared *x = arg;

    for (size_t i = 0; i < x->nrounds; i++) {
        heddle_mutex_lock(&x->m);
        x->by_mutex++;
        heddle_mutex_unlock(&x->m);
        heddle_spin_lock(&x->s);
        x->by_spin++;
        heddle_spin_unlock(&x->s);
    }
    return NULL;
}

TEST(locks_exclude)
{
    struct shared x = {.nrounds = test_scale(20000)};
    struct heddle_thread t[4];

    heddle_mutex_init(&x.m, HEDDLE_RANK_LEAF, "count");
    heddle_spin_init(&x.s);
    for (int i = 0; i < 4; i++)
        CHECK_OK(heddle_thread_create(&t[i], NULL, count, &x));
    for (int i = 0; i < 4; i++)
        CHECK_OK(heddle_thread_join(&t[i]));
    CHECK_EQ(x.by_mutex, 4 * x.nrounds);
    CHECK_EQ(x.by_spin, 4 * x.nrounds);
    heddle_mutex_fini(&x.m);
}

TEST(trylock)
{
    struct heddle_mutex low, high;
    struct heddle_spin s = {0};

    heddle_mutex_init(&low, HEDDLE_RANK_CTX, "low");
    heddle_mutex_init(&high, HEDDLE_RANK_LEAF, "high");
    heddle_mutex_lock(&high);
    CHECK(heddle_mutex_is_held(&high));
    CHECK(!heddle_mutex_trylock(&high));
    CHECK(heddle_mutex_trylock(&low)); /* against the order: cannot wait */
    heddle_mutex_unlock(&high);        /* not the last one taken */
    heddle_mutex_unlock(&low);
    heddle_mutex_fini(&low);
    heddle_mutex_fini(&high);

    CHECK(heddle_spin_trylock(&s));
    CHECK(!heddle_spin_trylock(&s));
    heddle_spin_unlock(&s);
    CHECK(heddle_spin_trylock(&s));
}

static void wrong_order(void)
{
    struct heddle_mutex a, b;

    heddle_mutex_init(&a, HEDDLE_RANK_CTX, "first");
    heddle_mutex_init(&b, HEDDLE_RANK_DATA, "second");
    heddle_mutex_lock(&b);
    heddle_mutex_lock(&a);
}

static void same_rank(void)
{
    struct heddle_mutex a, b;

    heddle_mutex_init(&a, HEDDLE_RANK_DATA, "first");
    heddle_mutex_init(&b, HEDDLE_RANK_DATA, "second");
    heddle_mutex_lock(&a);
    heddle_mutex_lock(&b);
}

static void twice(void)
{
    struct heddle_mutex a;

    heddle_mutex_init(&a, HEDDLE_RANK_DATA, "first");
    heddle_mutex_lock(&a);
    heddle_mutex_lock(&a);
}

static void not_held(void)
{
    struct heddle_mutex a;

    heddle_mutex_init(&a, HEDDLE_RANK_DATA, "first");
    heddle_mutex_unlock(&a);
}

/* Runs fn in a child that must abort; its message goes to `said`. */
static void check_dies(void (*fn)(void), char *said, size_t cap)
{
    int fd[2], status = 0;
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    CHECK(pipe(fd) == 0);
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        const struct rlimit none = {0, 0};

        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        dup2(fd[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(fd[1]);
    while (len + 1 < cap && (n = read(fd[0], said + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(fd[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(debug_builds_stop)
{
    char said[1024];

    if (HEDDLE_DEBUG < 2)
        SKIP("needs HEDDLE_DEBUG >= 2");
    check_dies(wrong_order, said, sizeof(said));
    CHECK(strstr(said, "'first' (rank 10) taken under 'second' (rank 30)") != NULL);
    check_dies(same_rank, said, sizeof(said));
    CHECK(strstr(said, "'second' (rank 30) taken under 'first'") != NULL);
    check_dies(twice, said, sizeof(said));
    CHECK(strstr(said, "'first' (rank 30) taken under 'first'") != NULL);
    check_dies(not_held, said, sizeof(said));
    CHECK(strstr(said, "unlock of 'first'") != NULL);
}

TEST_MAIN(locks_exclude, trylock, debug_builds_stop)
