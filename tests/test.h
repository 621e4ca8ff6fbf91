/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_TEST_H
#define HEDDLE_TESTS_TEST_H

/*
 * The whole test framework. A test file is a program:
 *
 *     TEST(push_then_pop)
 *     {
 *         CHECK_EQ(queue_len(&q), 1);
 *     }
 *     TEST_MAIN(push_then_pop, ...)
 *
 * Exit status 0: passed, 1: a check failed, 77: every test was skipped. The
 * first failed check prints file, line, values and HEDDLE_SEED=... and ends
 * the program at once, from any thread: what other threads would do to the
 * stack of a test that has returned is not worth reading.
 *
 * `program name ...` runs the named tests only; `program --list` lists them.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heddle/status.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

struct test_case {
    const char *name;
    void (*run)(void);
};

/* Main thread only, but for `name`, which does not change during a test. */
static struct {
    const char *name;
    int has_seed;
    int skipped;
    uint64_t seed;
} test_now;

/* For property tests: the seed a failure from here on is printed with. */
static inline void test_set_seed(uint64_t seed)
{
    test_now.seed = seed;
    test_now.has_seed = 1;
}

/* HEDDLE_SEED from the environment, else a constant: runs repeat. */
static inline uint64_t test_seed(void)
{
    const char *s = getenv("HEDDLE_SEED");

    if (!test_now.has_seed)
        test_set_seed(s != NULL ? strtoull(s, NULL, 0) : 20250101u);
    return test_now.seed;
}

/* n, or a tenth of it (at least 1) under a sanitizer. */
static inline size_t test_scale(size_t n)
{
    if (!TEST_SANITIZED || n == 0)
        return n;
    return n >= 10 ? n / 10 : 1;
}

__attribute__((noreturn)) static inline void test_die(void)
{
    printf("  in test %s; to repeat: HEDDLE_SEED=%llu\n", test_now.name,
           (unsigned long long)test_seed());
    fflush(NULL);
    _exit(1);
}

static inline void test_check(int ok, const char *file, int line, const char *what)
{
    if (ok)
        return;
    printf("%s:%d: failed: %s\n", file, line, what);
    test_die();
}

static inline void test_check_eq(long long a, long long b, const char *file, int line,
                                 const char *what)
{
    if (a == b)
        return;
    printf("%s:%d: failed: %s\n  left  %lld (0x%llx)\n  right %lld (0x%llx)\n", file, line, what, a,
           (unsigned long long)a, b, (unsigned long long)b);
    test_die();
}

static inline void test_check_near(double a, double b, double tol, const char *file, int line,
                                   const char *what)
{
    if (fabs(a - b) <= tol)
        return;
    printf("%s:%d: failed: %s\n  left  %.17g\n  right %.17g\n  tolerance %g\n", file, line, what, a,
           b, tol);
    test_die();
}

static inline void test_check_str(const char *a, const char *b, const char *file, int line,
                                  const char *what)
{
    if (a == b || (a != NULL && b != NULL && strcmp(a, b) == 0))
        return;
    printf("%s:%d: failed: %s\n  left  %s%s%s\n  right %s%s%s\n", file, line, what, a ? "\"" : "",
           a ? a : "NULL", a ? "\"" : "", b ? "\"" : "", b ? b : "NULL", b ? "\"" : "");
    test_die();
}

static inline void test_check_status(heddle_status got, heddle_status want, const char *file,
                                     int line, const char *what)
{
    if (got == want)
        return;
    printf("%s:%d: failed: %s\n  got    %s (%d)\n  wanted %s\n", file, line, what,
           heddle_status_name(got), (int)got, heddle_status_name(want));
    test_die();
}

#define TEST_AT                  __FILE__, __LINE__
#define CHECK(cond)              test_check(!!(cond), TEST_AT, #cond)
#define CHECK_STR(a, b)          test_check_str(a, b, TEST_AT, #a " is " #b)
#define CHECK_NEAR(a, b, tol)    test_check_near(a, b, tol, TEST_AT, #a " is about " #b)
#define CHECK_STATUS(expr, want) test_check_status(expr, want, TEST_AT, #expr " is " #want)
#define CHECK_OK(expr)           test_check_status(expr, HEDDLE_OK, TEST_AT, #expr)

#define CHECK_EQ(a, b) test_check_eq((long long)(a), (long long)(b), TEST_AT, #a " == " #b)

/* Leaves the test; for the body of a TEST, not for the functions it calls. */
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        printf("skip %s: %s\n", test_now.name, why);                                               \
        test_now.skipped = 1;                                                                      \
        return;                                                                                    \
    } while (0)

#define TEST(name) static void testfn_##name(void)

static inline int test_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

static inline int test_run(const struct test_case *tests, int argc, char **argv)
{
    const int list = argc == 2 && strcmp(argv[1], "--list") == 0;
    size_t nrun = 0, nskipped = 0;

    for (const struct test_case *t = tests; t->name != NULL; t++) {
        if (list)
            printf("%s\n", t->name);
        if (list || !test_wanted(t->name, argc, argv))
            continue;
        test_now.name = t->name;
        test_now.has_seed = test_now.skipped = 0;
        t->run();
        nrun++;
        nskipped += test_now.skipped != 0;
        if (!test_now.skipped)
            printf("ok   %s\n", t->name);
        fflush(stdout);
    }
    if (!list && nrun == 0) {
        printf("no such test\n");
        return 1;
    }
    return nrun > 0 && nskipped == nrun ? 77 : 0;
}

/*
 * TEST_MAIN(a, b, c) has to become {"a", testfn_a}, {"b", testfn_b}, ... A macro
 * cannot call itself, so each step leaves the next one unexpanded and
 * TEST_AGAIN rescans often enough for 250 tests. The word END stops it.
 */
#define TEST_AGAIN(...)  TEST_AGAIN2(TEST_AGAIN2(TEST_AGAIN2(TEST_AGAIN2(__VA_ARGS__))))
#define TEST_AGAIN2(...) TEST_AGAIN3(TEST_AGAIN3(TEST_AGAIN3(TEST_AGAIN3(__VA_ARGS__))))
#define TEST_AGAIN3(...) TEST_AGAIN4(TEST_AGAIN4(TEST_AGAIN4(TEST_AGAIN4(__VA_ARGS__))))
#define TEST_AGAIN4(...) TEST_AGAIN5(TEST_AGAIN5(__VA_ARGS__))
#define TEST_AGAIN5(...) __VA_ARGS__
#define TEST_NOTHING()
#define TEST_SECOND(a, b, ...) b
#define TEST_PICK(...)         TEST_SECOND(__VA_ARGS__)
#define TEST_STOP_END          ~, TEST_LAST
#define TEST_LAST(...)                                                                             \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }
#define TEST_ROW(name, ...)  {#name, testfn_##name}, TEST_NEXT TEST_NOTHING()()(__VA_ARGS__)
#define TEST_NEXT()          TEST_STEP
#define TEST_STEP(name, ...) TEST_PICK(TEST_STOP_##name, TEST_ROW, ~)(name, __VA_ARGS__)

#define TEST_MAIN(...)                                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct test_case tests[] = {TEST_AGAIN(TEST_STEP(__VA_ARGS__, END, ~))};      \
                                                                                                   \
        return test_run(tests, argc, argv);                                                        \
    }

#endif /* HEDDLE_TESTS_TEST_H */
