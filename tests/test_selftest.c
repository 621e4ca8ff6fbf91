/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feeds test.h with tests that pass, fail and skip. test_selftest.sh runs them
 * one by one and looks at the exit status and at what was printed.
 */
#include "tests/test.h"

#include <pthread.h>

TEST(pass)
{
    CHECK(1 + 1 == 2);
    CHECK_EQ(-1, 2 - 3);
    CHECK_EQ(UINT64_MAX, 0ull - 1);
    CHECK_STR("ab", "ab");
    CHECK_STR(NULL, NULL);
    CHECK_NEAR(0.1 + 0.2, 0.3, 1e-15);
    CHECK_OK(HEDDLE_OK);
    CHECK_STATUS(HEDDLE_EINVAL, HEDDLE_EINVAL);
    CHECK(test_scale(0) == 0 && test_scale(5) >= 1 && test_scale(100) >= 10);
}

TEST(seed)
{
    printf("seed %llu\n", (unsigned long long)test_seed());
}

TEST(own_seed)
{
    test_set_seed(4711);
    CHECK(0);
}

TEST(fail)
{
    CHECK(1 == 2);
}

TEST(fail_eq)
{
    CHECK_EQ(3, 4);
}

TEST(fail_str)
{
    CHECK_STR("left", NULL);
}

TEST(fail_near)
{
    CHECK_NEAR(1.0, NAN, 1.0);
}

TEST(fail_status)
{
    CHECK_OK(HEDDLE_ENOMEM);
}

static void *check_in_thread(void *arg)
{
    (void)arg;
    CHECK(0);
    return NULL;
}

TEST(fail_thread)
{
    pthread_t t;

    CHECK_EQ(pthread_create(&t, NULL, check_in_thread, NULL), 0);
    pthread_join(t, NULL);
}

TEST(skip)
{
    SKIP("nothing to see");
}

TEST_MAIN(pass, seed, own_seed, fail, fail_eq, fail_str, fail_near, fail_status, fail_thread, skip)
