/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random programs: Heddle must do the same as running the tasks one after
 * another in the order of submission, byte for byte; and with failures exactly
 * the dependents are cancelled.
 *
 *   HEDDLE_SEED=n      one program
 *   HEDDLE_SEEDS=n     so many instead of 200, over all parts
 *   HEDDLE_OPS=n       its first n steps only
 *   HEDDLE_WITHOUT=m   without some features (enum prog_feature in prog.h)
 *   HEDDLE_VIRTUAL=1   on simulated machines with devices, in virtual time
 *   HEDDLE_VERBOSE=1   says what Heddle says
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"
#include "tests/test.h"

enum { PARTS = 4, SEEDS = 200, PATIENCE_S = 60 };

static char stuck[160];

/* A hang is a failure like any other: say which program it is. */
static void on_alarm(int sig)
{
    (void)sig;
    if (write(STDOUT_FILENO, stuck, strlen(stuck)) >= 0)
        _exit(1);
    _exit(2);
}

static void run_seed(uint64_t seed)
{
    struct oracle *o = NULL;
    struct prog *p;
    const struct prog_config *c;
    char text[24];

    test_set_seed(seed);
    /* The checks in the other files look there. */
    snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
    CHECK_EQ(setenv("HEDDLE_SEED", text, 1), 0);
    p = prog_generate(seed, &o);
    CHECK(p != NULL);
    c = &p->config;
    snprintf(stuck, sizeof(stuck),
             "stuck: HEDDLE_SEED=%llu (%u workers, %s, window %u, helps %d, "
             "checks %d, failures %d)\n",
             (unsigned long long)seed, c->nworkers, c->sched, c->window, c->helps, c->checks,
             c->has_failures);
    if (getenv("HEDDLE_VERBOSE") != NULL)
        printf("%s", stuck + strlen("stuck: "));
    alarm(TEST_SANITIZED ? 3 * PATIENCE_S : PATIENCE_S);
    prog_run(p, o);
    alarm(0);
    oracle_destroy(o);
    prog_free(p);
}

static void run_part(uint64_t part)
{
    const char *one = getenv("HEDDLE_SEED"), *many = getenv("HEDDLE_SEEDS");
    uint64_t n = test_scale(SEEDS);

    signal(SIGALRM, on_alarm);
    if (one != NULL) {
        run_seed(strtoull(one, NULL, 0));
        return;
    }
    if (many != NULL)
        n = strtoull(many, NULL, 0);
    for (uint64_t i = part; i < n; i += PARTS)
        run_seed(i + 1);
}

TEST(part_1)
{
    run_part(0);
}

TEST(part_2)
{
    run_part(1);
}

TEST(part_3)
{
    run_part(2);
}

TEST(part_4)
{
    run_part(3);
}

TEST_MAIN(part_1, part_2, part_3, part_4)
