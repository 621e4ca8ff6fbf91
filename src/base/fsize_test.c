/* SPDX-License-Identifier: BSD-3-Clause */
/* fsize: a write beyond the limit fails and kills nobody; other signals stay. */
#include "base/fsize.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { LIMIT = 4096 };

/* Writes beyond the limit in a process of its own; returns how that process ended. */
static int child(bool is_guarded)
{
    const pid_t pid = fork();
    int how = 0;

    if (pid == 0) {
        const struct rlimit small = {LIMIT, LIMIT}, none = {0, 0};
        char name[] = "fsize_test.XXXXXX", buf[LIMIT] = {0};
        const int fd = mkstemp(name);
        struct heddle_fsize f;
        ssize_t first, second;

        (void)unlink(name);
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)setrlimit(RLIMIT_FSIZE, &small);
        if (is_guarded)
            heddle_fsize_enter(&f);
        first = write(fd, buf, sizeof(buf));
        second = write(fd, buf, sizeof(buf));
        if (is_guarded)
            heddle_fsize_leave(&f);
        _exit(first == LIMIT && second < 0 && errno == EFBIG ? 0 : 1);
    }
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &how, 0), pid);
    return how;
}

TEST(write_fails)
{
    const int how = child(true);

    CHECK(WIFEXITED(how));
    CHECK_EQ(WEXITSTATUS(how), 0);
}

/* The guard is what makes the difference. */
TEST(without_guard)
{
    const int how = child(false);

    CHECK(WIFSIGNALED(how));
    CHECK_EQ(WTERMSIG(how), SIGXFSZ);
}

TEST(mask_comes_back)
{
    struct heddle_fsize f;
    sigset_t before, now;

    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    heddle_fsize_enter(&f);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    CHECK_EQ(sigismember(&now, SIGXFSZ), 1);
    errno = ENOSPC;
    heddle_fsize_leave(&f);
    CHECK_EQ(errno, ENOSPC);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    CHECK_EQ(sigismember(&now, SIGXFSZ), sigismember(&before, SIGXFSZ));
}

/* A signal that the program itself has blocked and waits for is not taken away. */
TEST(pending_stays)
{
    struct heddle_fsize f;
    sigset_t only, pending;

    sigemptyset(&only);
    sigaddset(&only, SIGXFSZ);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &only, NULL), 0);
    CHECK_EQ(pthread_kill(pthread_self(), SIGXFSZ), 0);
    heddle_fsize_enter(&f);
    heddle_fsize_leave(&f);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGXFSZ), 1);
}

TEST_MAIN(write_fails, without_guard, mask_comes_back, pending_stays)
