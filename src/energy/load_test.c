/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load and series: what a log kept busy, against sums over all pieces; samples
 * that wrap, jump, go back or stand still.
 */
#include "energy/load.h"

#include "energy/log_test.h"
#include "energy/series.h"

TEST(devices_and_nesting)
{
    struct heddle_energy_keys keys = heddle_energy_keys_make(NULL, false);
    struct heddle_energy_load l;
    struct heddle_log_task *t;
    struct book b;
    heddle_log *log;
    uint32_t core, stream, host;

    book_init(&b);
    core = book_lane(&b, "cpu.3", HEDDLE_LOG_WORKER, 0);
    stream = book_lane(&b, "cuda1.2", HEDDLE_LOG_DEVICE, 1);
    host = book_lane(&b, "program", HEDDLE_LOG_OTHER, 0);
    (void)book_kernel(&b, "outer");
    (void)book_kernel(&b, "inner");
    book_task(&b, 0, core, 0, 100 * MS);
    book_task(&b, 1, core, 20 * MS, 50 * MS)->flags = HEDDLE_LOG_INLINE;
    book_task(&b, 0, stream, 10 * MS, 30 * MS)->variant = 1;
    book_task(&b, 1, host, 0, 5 * MS)->status = HEDDLE_LOG_FAILED;
    t = book_task(&b, 1, host, 0, 5 * MS);
    t->status = HEDDLE_LOG_CANCELLED;
    log = book_open(&b);
    CHECK_OK(heddle_energy_load_make(&l, log, &keys));
    CHECK_EQ(keys.n, 3);
    for (size_t i = 0; i < keys.n; i++) {
        const struct heddle_energy_key *k = &keys.key[i];
        const bool is_outer = strcmp(k->kernel, "outer") == 0;

        if (strcmp(k->device, "cuda1") == 0) {
            CHECK_STR(k->variant, "fast");
            CHECK_NEAR(l.seconds[i], 0.020, 1e-12);
        } else {
            CHECK_STR(k->device, "cpu");
            CHECK_NEAR(l.seconds[i], is_outer ? 0.070 : 0.035, 1e-12);
            CHECK_EQ(l.ntasks[i], is_outer ? 1 : 2);
        }
        CHECK_NEAR(heddle_energy_curve_at(&l.curve[i], -1), 0, 0);
        CHECK_NEAR(heddle_energy_curve_at(&l.curve[i], 1e18), l.seconds[i], 1e-12);
    }
    CHECK_EQ(l.last_ns - l.first_ns, 100 * MS);
    heddle_energy_load_drop(&l);
    heddle_energy_keys_drop(&keys);
    heddle_log_close(log);
    book_fini(&b);
    CHECK(heddle_energy_counts("cpu", "cpu"));
    CHECK(heddle_energy_counts("*", "cuda7"));
    CHECK(heddle_energy_counts("cuda", "cuda7"));
    CHECK(!heddle_energy_counts("cuda0", "cuda7"));
    CHECK(!heddle_energy_counts("", "cpu"));
    CHECK(!heddle_energy_counts("-", "cpu"));
}

/* Curves against the overlap of every task with every interval. */
TEST(curves_are_exact)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t round = 0; round < test_scale(30); round++) {
        struct heddle_energy_keys keys = heddle_energy_keys_make(NULL, false);
        struct heddle_energy_load l;
        struct book b;
        heddle_log *log;
        size_t hint = 0;
        int64_t from[60], to[60];

        book_init(&b);
        (void)book_kernel(&b, "k");
        for (int i = 0; i < 60; i++) {
            const uint32_t lane =
                i < 12 ? book_lane(&b, "worker 1", HEDDLE_LOG_WORKER, 0) : (uint32_t)i % 12;

            /* tasks of a lane one after the other, lanes at once */
            from[i] = (i / 12) * 1000 + (int64_t)heddle_rng_below(&rng, 500);
            to[i] = from[i] + (int64_t)heddle_rng_below(&rng, 501);
            book_task(&b, 0, lane, from[i], to[i]);
        }
        log = book_open(&b);
        CHECK_OK(heddle_energy_load_make(&l, log, &keys));
        for (int64_t at = -50; at < 6000; at += 37) {
            double sum = 0;

            for (int i = 0; i < 60; i++)
                if (at > from[i])
                    sum += (double)((at < to[i] ? at : to[i]) - from[i]);
            CHECK_NEAR(heddle_energy_curve_at(&l.curve[0], (double)at), sum * 1e-9, 1e-15);
            CHECK_NEAR(heddle_energy_curve_from(&l.curve[0], (double)at, &hint), sum * 1e-9, 1e-15);
        }
        heddle_energy_load_drop(&l);
        heddle_energy_keys_drop(&keys);
        heddle_log_close(log);
        book_fini(&b);
    }
}

/* Bytes of operands keep tasks of a kernel apart if asked for. */
TEST(sizes_and_moves)
{
    struct heddle_energy_keys keys = heddle_energy_keys_make(NULL, true);
    struct heddle_log_handle handle[2] = {{.id = 1, .parent = 0, .bytes = 100, .name = ""},
                                          {.id = 2, .parent = 1, .bytes = 900, .name = ""}};
    struct heddle_log_access access[3] = {
        {.task = 1, .handle = 0}, {.task = 2, .handle = 1}, {.task = 2, .handle = 0, .operand = 1}};
    struct heddle_energy_load l;
    struct book b;
    heddle_log *log;

    book_init(&b);
    (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    (void)book_lane(&b, "cuda0.0", HEDDLE_LOG_DEVICE, 1);
    (void)book_kernel(&b, "k");
    book_task(&b, 0, 0, 0, 10);
    book_task(&b, 0, 0, 10, 30);
    b.v.handles = handle;
    b.v.nhandles = 2;
    b.v.accesses = access;
    b.v.naccesses = 3;
    b.event[b.v.nevents++] = (struct heddle_log_event){.t_ns = 0,
                                                       .x = 900,
                                                       .y_ns = 10,
                                                       .z_ns = 90,
                                                       .c = 2,
                                                       .b = 0 + 256 * 1,
                                                       .kind = HEDDLE_LOG_FETCH};
    log = book_open(&b);
    CHECK_OK(heddle_energy_load_make(&l, log, &keys));
    CHECK_EQ(keys.n, 2);
    CHECK_EQ(keys.key[0].bytes, 100);
    CHECK_EQ(keys.key[1].bytes, 1000);
    CHECK_NEAR(l.moved, 900, 0);
    CHECK_EQ(l.nplaces, 2);
    CHECK_NEAR(l.place[0].moved, 900, 0);
    CHECK_NEAR(l.place[1].moved, 900, 0);
    CHECK_NEAR(heddle_energy_curve_at(&l.place[1].bytes, 40), 300, 1e-9);
    heddle_energy_load_drop(&l);
    heddle_energy_keys_drop(&keys);
    heddle_log_close(log);
    book_fini(&b);
}

/* ---- samples ----------------------------------------------------------------- */

/* n samples, 10 ms and 1 J apart, then changed by the test. */
static void book_samples(struct book *b, int n)
{
    book_init(b);
    (void)book_lane(b, "worker 0", HEDDLE_LOG_WORKER, 0);
    for (int i = 0; i < n; i++)
        book_sample(b, 3, i * 10 * MS, (uint64_t)i * 1000000, 0);
}

static struct heddle_energy_series *series_of(struct heddle_scratch *mem, struct book *b,
                                              size_t want)
{
    struct heddle_energy_series *s = NULL;
    heddle_log *log = book_open(b);
    size_t n = 0;

    CHECK_OK(heddle_energy_series_get(mem, log, &s, &n));
    CHECK_EQ(n, want);
    heddle_log_close(log);
    book_fini(b);
    return s;
}

static double sum_of(const struct heddle_energy_series *s)
{
    double sum = 0;

    for (size_t i = 0; i < s->nsteps; i++)
        sum += s->step[i].joules;
    return sum;
}

TEST(samples)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_energy_series *s;
    struct book b;

    book_samples(&b, 0);
    (void)series_of(&mem, &b, 0);
    book_samples(&b, 20); /* nobody says what it is */
    s = series_of(&mem, &b, 1);
    CHECK_STR(s->name, "domain-3");
    CHECK_STR(s->device, "*");
    CHECK_EQ(s->nsteps, 19);
    CHECK_NEAR(sum_of(s), 19, 1e-9);
    /* a wrap that the log explains, at 7 J */
    book_samples(&b, 20);
    book_info(&b, "energy.domain.3", "package-0 cpu 7000000");
    for (int i = 0; i < 20; i++)
        b.event[i].x %= 7000000;
    s = series_of(&mem, &b, 1);
    CHECK_STR(s->name, "package-0");
    CHECK_STR(s->device, "cpu");
    CHECK_EQ(s->nwraps, 2);
    CHECK_EQ(s->nback, 0);
    CHECK_NEAR(sum_of(s), 19, 1e-9);
    /* one that nothing explains */
    book_samples(&b, 20);
    for (int i = 10; i < 20; i++)
        b.event[i].x -= 8000000;
    s = series_of(&mem, &b, 1);
    CHECK_EQ(s->nback, 1);
    CHECK_NEAR(sum_of(s), 18, 1e-9);
    /* far ahead, up to the largest number */
    book_samples(&b, 20);
    for (int i = 10; i < 20; i++)
        b.event[i].x += UINT64_MAX / 2;
    s = series_of(&mem, &b, 1);
    CHECK_EQ(s->njumps, 1);
    CHECK_NEAR(sum_of(s), 18, 1e-9);
    /* a gap that the recorder has marked */
    book_samples(&b, 20);
    b.event[10].c = 1;
    s = series_of(&mem, &b, 1);
    CHECK_EQ(s->ngaps, 1);
    CHECK_NEAR(sum_of(s), 18, 1e-9);
    /* one that stands still */
    book_samples(&b, 20);
    for (int i = 0; i < 20; i++)
        b.event[i].x = 5;
    s = series_of(&mem, &b, 1);
    CHECK_EQ(s->nsteps, 0);
    CHECK_EQ(s->nsamples, 20);
    /* updated at every fourth reading: steps are from update to update */
    book_samples(&b, 40);
    for (int i = 0; i < 40; i++)
        b.event[i].x = (uint64_t)((i + 2) / 4) * 4000000;
    s = series_of(&mem, &b, 1);
    CHECK_EQ(s->nsteps, 9);
    for (size_t i = 0; i < s->nsteps; i++) {
        CHECK_EQ(s->step[i].to - s->step[i].from, 40 * MS);
        CHECK_NEAR(s->step[i].joules, 4, 1e-9);
    }
    heddle_scratch_drop(&mem);
}

/* Readings each 47 ms of a counter that is updated each 100 ms: the ends of the
 * steps are the updates, not the readings. */
TEST(updates)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_energy_series *s;
    struct book b;

    for (int jitter = 0; jitter < 2; jitter++) {
        book_init(&b);
        (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
        for (int64_t i = 0; i < 200; i++) {
            const int64_t t = i * 47 * MS;
            /* with jitter: updates at any time */
            const uint64_t n =
                (uint64_t)((t + 70 * MS) / (100 * MS)) +
                (jitter ? heddle_mix64((uint64_t)i / 7) % 50 + (uint64_t)i / 7 * 60 : 0);

            book_sample(&b, 0, t, n * 1000000, 0);
        }
        s = series_of(&mem, &b, 1);
        CHECK(s->nsteps > 25);
        for (size_t i = 1; i < s->nsteps && !jitter; i++) {
            CHECK_NEAR((double)((s->step[i].to + 120 * MS) % (100 * MS)), 50e6, 5e6);
            CHECK_NEAR((double)(s->step[i].to - s->step[i].from), 100e6, 5e6);
        }
        for (size_t i = 0; i < s->nsteps; i++)
            CHECK(s->step[i].to > s->step[i].from && s->step[i].to >= s->step[i].seen);
    }
    heddle_scratch_drop(&mem);
}

TEST_MAIN(devices_and_nesting, curves_are_exact, sizes_and_moves, samples, updates)
