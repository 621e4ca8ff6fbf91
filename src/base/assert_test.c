/* SPDX-License-Identifier: BSD-3-Clause */
/* assert: what the macros do at this build's level, and the last words. */
#include "base/assert.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/test.h"

static heddle_status try_it(heddle_status st, int *after)
{
    HEDDLE_TRY(st);
    *after = 1;
    return HEDDLE_OK;
}

static heddle_status check_it(const void *p)
{
    HEDDLE_CHECK(p != NULL);
    return HEDDLE_OK;
}

TEST(try_and_check)
{
    int after = 0;

    CHECK_STATUS(try_it(HEDDLE_ENOMEM, &after), HEDDLE_ENOMEM);
    CHECK_STATUS(try_it(HEDDLE_AGAIN, &after), HEDDLE_AGAIN);
    CHECK_EQ(after, 0);
    CHECK_OK(try_it(HEDDLE_OK, &after));
    CHECK_EQ(after, 1);
    CHECK_STATUS(check_it(NULL), HEDDLE_EINVAL);
    CHECK_OK(check_it(&after));
}

/* Exit status of a child that runs the assertion: -1 when it aborted. */
static int child(int ok, char *said, size_t cap)
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
        HEDDLE_ASSERT(ok == 1);
        _exit(0);
    }
    close(fd[1]);
    while (len + 1 < cap && (n = read(fd[0], said + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(fd[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return -1;
    return WEXITSTATUS(status);
}

TEST(assertions_follow_the_level)
{
    char said[512];

    CHECK_EQ(child(1, said, sizeof(said)), 0);
    CHECK_STR(said, "");
    CHECK_EQ(child(0, said, sizeof(said)), HEDDLE_DEBUG >= 1 ? -1 : 0);
    if (HEDDLE_DEBUG >= 1) {
        CHECK(strncmp(said, "heddle: ", 8) == 0);
        CHECK(strstr(said, "assert_test.c:") != NULL);
        CHECK(strstr(said, "assertion failed: ok == 1\n") != NULL);
    }
}

TEST(disabled_assertions_do_not_run)
{
    int n = 0;

    HEDDLE_ASSERT(n++ == 0);
    CHECK_EQ(n, HEDDLE_DEBUG >= 1);
    n = 0;
    HEDDLE_ASSERT2(n++ == 0);
    CHECK_EQ(n, HEDDLE_DEBUG >= 2);
    n = 0;
    HEDDLE_ASSERT3(n++ == 0);
    CHECK_EQ(n, HEDDLE_DEBUG >= 3);
}

TEST_MAIN(try_and_check, assertions_follow_the_level, disabled_assertions_do_not_run)
