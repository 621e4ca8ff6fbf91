/* SPDX-License-Identifier: BSD-3-Clause */
/* Placing jobs: known answers, bad input, lying placements, no memory, many jobs. */
#include <stdbool.h>

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "heddle/energy_place.h"
#include "tests/test.h"

static char why[256];

static struct heddle_energy_place_opts options(uint32_t machines, double alpha, bool has_due)
{
    return (struct heddle_energy_place_opts){.size = sizeof(struct heddle_energy_place_opts),
                                             .machines = machines,
                                             .alpha = alpha,
                                             .has_due = has_due,
                                             .why = why,
                                             .why_bytes = sizeof(why)};
}

static struct heddle_energy_place make(const struct heddle_energy_job *job, size_t n,
                                       const struct heddle_energy_place_opts *o)
{
    struct heddle_energy_place p = {.size = sizeof(p)};

    CHECK_OK(heddle_energy_place_make(job, n, o, &p));
    CHECK_OK(heddle_energy_place_check(job, n, o, &p));
    return p;
}

TEST(a_high_price_keeps_all_here)
{
    const struct heddle_energy_job job[] = {{NULL, 4, 1}, {NULL, 3, 1}, {NULL, 3, 1}, {NULL, 2, 1}};
    struct heddle_energy_place_opts o = options(2, 1, false);
    struct heddle_energy_place p = make(job, 4, &o);

    CHECK_EQ(p.there_us, 0);
    CHECK_EQ(p.span_us, 6);
    CHECK_NEAR(p.cost, 6e-6, 1e-15);
    CHECK_NEAR(p.bound, 6e-6, 1e-15);
    heddle_energy_place_fini(&p);
}

TEST(a_low_price_sends_all_there)
{
    const struct heddle_energy_job job[] = {{NULL, 4, 1}, {NULL, 3, 1}};
    struct heddle_energy_place_opts o = options(4, 0.25, false);
    struct heddle_energy_place p = make(job, 2, &o);

    CHECK_EQ(p.here_us, 0);
    CHECK_EQ(p.span_us, 0);
    CHECK_NEAR(p.cost, 1.75e-6, 1e-15);
    CHECK_NEAR(p.proved, 1, 0);
    heddle_energy_place_fini(&p);
    o.alpha = 0;
    p = make(job, 2, &o);
    CHECK_NEAR(p.cost, 0, 0);
    heddle_energy_place_fini(&p);
}

TEST(one_long_job_goes_there)
{
    const struct heddle_energy_job job[] = {
        {NULL, 100, 1}, {NULL, 10, 1}, {NULL, 10, 1}, {NULL, 10, 1}};
    struct heddle_energy_place_opts o = options(3, 0.6, false);
    struct heddle_energy_place p = make(job, 4, &o);

    CHECK_EQ(p.machine[0], HEDDLE_ENERGY_THERE);
    CHECK_EQ(p.span_us, 10);
    CHECK_NEAR(p.cost, 70e-6, 1e-15);
    heddle_energy_place_fini(&p);
}

TEST(due_dates_are_kept)
{
    /* 7 by 7, or 3 and 5 by 8: the best is 3 + 5; then 7 on the other machine. */
    const struct heddle_energy_job job[] = {{NULL, 7, 7}, {NULL, 3, 8}, {NULL, 5, 8}, {NULL, 9, 8}};
    struct heddle_energy_place_opts o = options(1, 0, true);
    struct heddle_energy_place p = make(job, 4, &o);

    CHECK_EQ(p.here_us, 8);
    CHECK_EQ(p.machine[0], HEDDLE_ENERGY_THERE);
    CHECK_EQ(p.unit_us, 0);
    CHECK_NEAR(p.proved, 1, 0);
    heddle_energy_place_fini(&p);
    o.machines = 2;
    p = make(job, 4, &o);
    CHECK_EQ(p.here_us, 15);
    CHECK_NEAR(p.proved, 1, 0); /* the last job is late wherever it starts */
    CHECK_NEAR(p.bound, 15e-6, 1e-15);
    heddle_energy_place_fini(&p);
}

TEST(no_due_date_is_never_late)
{
    const struct heddle_energy_job job[] = {{NULL, 7, HEDDLE_ENERGY_NO_DUE},
                                            {NULL, 9, HEDDLE_ENERGY_NO_DUE}};
    struct heddle_energy_place_opts o = options(1, 0, true);
    struct heddle_energy_place p = make(job, 2, &o);

    CHECK_EQ(p.here_us, 16);
    heddle_energy_place_fini(&p);
}

TEST(no_jobs)
{
    struct heddle_energy_place_opts o = options(3, 0.5, false);
    struct heddle_energy_place p = make(NULL, 0, &o);

    CHECK_EQ(p.njobs, 0);
    CHECK_NEAR(p.cost, 0, 0);
    heddle_energy_place_fini(&p);
    o.has_due = 1;
    p = make(NULL, 0, &o);
    heddle_energy_place_fini(&p);
    heddle_energy_place_fini(NULL);
}

static void refused(const struct heddle_energy_job *job, size_t n,
                    const struct heddle_energy_place_opts *o, const char *text)
{
    struct heddle_energy_place p = {.size = sizeof(p)};

    why[0] = '\0';
    CHECK_STATUS(heddle_energy_place_make(job, n, o, &p), HEDDLE_EINVAL);
    CHECK(strstr(why, text) != NULL);
    CHECK(p.own == NULL);
}

TEST(bad_arguments_are_refused)
{
    struct heddle_energy_job job[3] = {{NULL, 4, 5}, {NULL, 3, 5}, {NULL, 3, 5}};
    struct heddle_energy_place_opts o = options(2, 0.7, false);
    struct heddle_energy_place p = {.size = sizeof(p)};
    struct heddle_energy_job many[600];

    CHECK_STATUS(heddle_energy_place_make(job, 3, NULL, &p), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_place_make(NULL, 3, &o, &p), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_place_make(job, 3, &o, NULL), HEDDLE_EINVAL);
    p.size = 8;
    CHECK_STATUS(heddle_energy_place_make(job, 3, &o, &p), HEDDLE_EINVAL);
    o.machines = 0;
    refused(job, 3, &o, "there are 0 machines");
    o.machines = HEDDLE_ENERGY_MACHINES + 1;
    refused(job, 3, &o, "machines");
    o = options(2, -1, false);
    refused(job, 3, &o, "alpha");
    o = options(2, NAN, false);
    refused(job, 3, &o, "alpha");
    o = options(2, 0.7, false);
    o.eps = 2;
    refused(job, 3, &o, "eps");
    o.eps = NAN;
    refused(job, 3, &o, "eps");
    o.eps = 0;
    job[1].us = 0;
    refused(job, 3, &o, "job 1 takes no time");
    job[1].us = HEDDLE_ENERGY_JOB_MAX + 1;
    refused(job, 3, &o, "job 1 is above");
    job[1].us = 1;
    job[2].due_us = HEDDLE_ENERGY_JOB_MAX + 1;
    refused(job, 3, &o, "job 2 is above");
    for (size_t i = 0; i < 600; i++)
        many[i] = (struct heddle_energy_job){NULL, HEDDLE_ENERGY_JOB_MAX, 5};
    refused(many, 600, &o, "together");
    o.why = NULL;
    CHECK_STATUS(heddle_energy_place_make(many, 600, &o, &p), HEDDLE_EINVAL);
}

TEST(lies_are_found)
{
    const struct heddle_energy_job job[] = {{NULL, 4, 9}, {NULL, 3, 9}, {NULL, 3, 9}, {NULL, 2, 9}};
    struct heddle_energy_place_opts o = options(2, 1, false), due;
    const struct heddle_energy_place p = make(job, 4, &o);
    uint32_t machine[4];
    uint64_t start[4];
    struct heddle_energy_place q = p;

#define LIE(text)                                                                                  \
    do {                                                                                           \
        CHECK_STATUS(heddle_energy_place_check(job, 4, &o, &q), HEDDLE_EINVAL);                    \
        CHECK(strstr(why, text) != NULL);                                                          \
        q = p;                                                                                     \
        memcpy(machine, p.machine, sizeof(machine));                                               \
        memcpy(start, p.start_us, sizeof(start));                                                  \
        q.machine = machine;                                                                       \
        q.start_us = start;                                                                        \
    } while (0)

    q.njobs = 3;
    LIE("3 jobs instead of 4");
    q.span_us--;
    LIE("a sum");
    q.there_us++;
    LIE("a sum");
    q.cost *= 0.99;
    LIE("the cost");
    q.bound = q.cost * 1.01;
    LIE("the bound");
    q.bound = NAN;
    LIE("the bound");
    machine[0] = 2;
    LIE("there is none");
    machine[0] = HEDDLE_ENERGY_THERE;
    LIE("a sum");
    for (size_t i = 1; i < 4; i++)
        if (machine[i] == machine[0])
            start[i] = start[0];
    LIE("overlap");
    start[0] = UINT64_MAX;
    LIE("after all time");
    o.has_due = 1;
    start[1] += 20;
    LIE("is late");
    q.bound = 1e-6;
    LIE("more is done");
    due = options(2, 1, true);
    q = p;
    q.bound = 1e-3;
    CHECK_OK(heddle_energy_place_check(job, 4, &due, &q));
    q.size = 0;
    CHECK_STATUS(heddle_energy_place_check(job, 4, &due, &q), HEDDLE_EINVAL);
    q = p;
    heddle_energy_place_fini(&q);
}

/* --- many jobs ------------------------------------------------------------- */

static struct heddle_energy_job *draw(size_t n, uint64_t most, uint64_t due)
{
    struct heddle_energy_job *job = malloc(n * sizeof(*job));
    struct heddle_rng rng;

    CHECK(job != NULL);
    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < n; i++) {
        job[i].name = NULL;
        job[i].us = 1 + heddle_rng_below(&rng, most);
        job[i].due_us = 1 + heddle_rng_below(&rng, due);
    }
    return job;
}

TEST(many_jobs_come_near_the_bound)
{
    const size_t n = test_scale(100000);
    struct heddle_energy_job *job = draw(n, 3600000000u, 8000000000000u);
    struct heddle_energy_place_opts o = options(16, 0.5, false);
    struct heddle_energy_place p = make(job, n, &o);

    CHECK(p.cost <= 1.01 * p.bound);
    heddle_energy_place_fini(&p);
    o.has_due = 1;
    p = make(job, n, &o);
    CHECK(p.unit_us > 0);
    CHECK(1e-6 * (double)p.here_us >= 0.95 * p.bound);
    CHECK(p.proved > 0.6);
    heddle_energy_place_fini(&p);
    free(job);
}

/* Machines enough that every kind of job and triples matter. */
TEST(many_machines)
{
    const size_t n = test_scale(4000);
    struct heddle_energy_job *job = draw(n, 1000, 4000);

    for (uint32_t m = 50; m <= 1600; m *= 2) {
        struct heddle_energy_place_opts o = options(m, 3.0 / m, false);
        struct heddle_energy_place p = make(job, n, &o);

        CHECK(p.cost <= 1.25 * 1.01 * p.bound);
        heddle_energy_place_fini(&p);
        o.has_due = 1;
        p = make(job, n, &o);
        heddle_energy_place_fini(&p);
    }
    free(job);
}

/* Lengths about the limits of the kinds of jobs, for some end T, so that every way to
 * fill a machine is the best one somewhere. The bound alone shows the ratio. */
TEST(lengths_at_the_limits)
{
    static const double part[] = {1,   0.76, 0.75, 0.74, 0.51, 0.5,  0.49,
                                  0.4, 0.34, 0.33, 0.32, 0.26, 0.25, 0.1};
    struct heddle_energy_job job[240];
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < test_scale(2000); i++) {
        const size_t n = 1 + heddle_rng_below(&rng, 240);
        const size_t first = heddle_rng_below(&rng, 14);
        const size_t kinds = 1 + heddle_rng_below(&rng, 14 - first);
        const uint32_t m = 2 + heddle_rng_below32(&rng, 60);
        struct heddle_energy_place_opts o =
            options(m, (1 + 4 * heddle_rng_double(&rng)) / m, false);
        struct heddle_energy_place p;

        o.eps = i % 2 == 0 ? 0.01 : 0.2;
        for (size_t k = 0; k < n; k++) {
            const double x = part[first + heddle_rng_below(&rng, kinds)];

            job[k] = (struct heddle_energy_job){
                NULL, (uint64_t)(x * 1e6) + heddle_rng_below(&rng, 5000), 1};
        }
        p = make(job, n, &o);
        CHECK(p.cost <= p.proved * p.bound * (1 + 1e-12));
        heddle_energy_place_fini(&p);
    }
}

TEST(every_allocation_may_fail)
{
    struct heddle_energy_job *job = draw(50, 100, 300);
    struct faulty f;

    for (uint32_t has_due = 0; has_due < 2; has_due++)
        for (size_t k = 1; k == 1 || f.has_failed; k++) {
            struct heddle_energy_place_opts o = options(3, 0.6, has_due != 0);
            struct heddle_energy_place p = {.size = sizeof(p)};
            heddle_status st;

            faulty_init(&f, k);
            o.alloc = &f.a;
            st = heddle_energy_place_make(job, 50, &o, &p);
            CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
            if (st == HEDDLE_OK) {
                st = heddle_energy_place_check(job, 50, &o, &p);
                CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
                heddle_energy_place_fini(&p);
            }
            CHECK_EQ(f.nlive, 0);
        }
    free(job);
}

/* --- files ----------------------------------------------------------------- */

static heddle_status read_text(const char *text, const struct heddle_allocator *a,
                               struct heddle_energy_jobs *out)
{
    char path[] = "/tmp/heddle-jobs-XXXXXX";
    const int fd = mkstemp(path);
    const size_t n = strlen(text);
    heddle_status st;

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, text, n), n);
    close(fd);
    st = heddle_energy_jobs_read(a, path, out, why, sizeof(why));
    unlink(path);
    return st;
}

TEST(files_are_read)
{
    struct heddle_energy_jobs j = {.size = sizeof(j)};

    CHECK_OK(read_text("# jobs\nheddle-jobs 1\n\njob a 1.1 # one\r\n"
                       "job b\t2e3 due 0.0000019\njob c 0.00000011 due 10",
                       NULL, &j));
    CHECK_EQ(j.njobs, 3);
    CHECK_EQ(j.ndue, 2);
    CHECK_STR(j.jobs[0].name, "a");
    CHECK_EQ(j.jobs[0].us, 1100000);
    CHECK(j.jobs[0].due_us == HEDDLE_ENERGY_NO_DUE);
    CHECK_EQ(j.jobs[1].us, 2000000000);
    CHECK_EQ(j.jobs[1].due_us, 1);
    CHECK_EQ(j.jobs[2].us, 1);
    CHECK_EQ(j.jobs[2].due_us, 10000000);
    heddle_energy_jobs_fini(&j);
    CHECK_OK(read_text("heddle-jobs 1\n", NULL, &j));
    CHECK_EQ(j.njobs, 0);
    heddle_energy_jobs_fini(&j);
    heddle_energy_jobs_fini(NULL);
}

TEST(bad_files_get_a_sentence)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        {"", ": here should be"},
        {"job a 1\n", ":1: here should be"},
        {"heddle-jobs 2\n", "no other version"},
        {"heddle-jobs 1 2\n", "no other version"},
        {"heddle-jobs 1\ntask a 1\n", ":2: 'task' is not 'job'"},
        {"heddle-jobs 1\njob\n", ":2: the name"},
        {"heddle-jobs 1\njob a\n", ":2: the duration is missing"},
        {"heddle-jobs 1\njob a x\n", "not a finite number: 'x'"},
        {"heddle-jobs 1\njob a nan\n", "not a finite number: 'nan'"},
        {"heddle-jobs 1\njob a inf\n", "not a finite number"},
        {"heddle-jobs 1\njob a 1e999\n", "not a finite number"},
        {"heddle-jobs 1\njob a -1\n", "the duration is negative"},
        {"heddle-jobs 1\njob a 0\n", "takes no time"},
        {"heddle-jobs 1\njob a 1e11\n", "above 10^10 seconds"},
        {"heddle-jobs 1\njob a 1 by 2\n", "'by' is not 'due'"},
        {"heddle-jobs 1\njob a 1 due\n", "the due date is missing"},
        {"heddle-jobs 1\njob a 1 due -2\n", "the due date is negative"},
        {"heddle-jobs 1\njob a 1 due 2 3\n", "'3' is one word too many"},
        {"heddle-jobs 1\njob a 1\njob b 1\njob a 2\n", ":4: there is a job 'a'"},
        {"heddle-jobs 1\njob a\001 1\n", ":2: this is not text"},
    };
    char name[400] = "heddle-jobs 1\njob ";
    struct heddle_energy_jobs j = {.size = sizeof(j)};

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        why[0] = '\0';
        CHECK_STATUS(read_text(row[i].text, NULL, &j), HEDDLE_EFORMAT);
        if (strstr(why, row[i].why) == NULL)
            printf("'%s' instead of '%s'\n", why, row[i].why);
        CHECK(strstr(why, row[i].why) != NULL);
        CHECK(j.own == NULL);
    }
    memset(name + strlen(name), 'x', 300);
    CHECK_STATUS(read_text(name, NULL, &j), HEDDLE_EFORMAT);
    CHECK(strstr(why, "more than 255 bytes") != NULL);
    CHECK_STATUS(heddle_energy_jobs_read(NULL, "/nowhere", &j, why, sizeof(why)), HEDDLE_ENOENT);
    CHECK(strstr(why, "/nowhere") != NULL);
    CHECK_STATUS(heddle_energy_jobs_read(NULL, NULL, &j, why, sizeof(why)), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_jobs_read(NULL, "/nowhere", &j, NULL, 0), HEDDLE_ENOENT);
}

TEST(reading_may_lack_memory)
{
    char text[4096] = "heddle-jobs 1\n";
    struct faulty f;

    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "job j%d %d\n", i, i + 1);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_energy_jobs j = {.size = sizeof(j)};
        heddle_status st;

        faulty_init(&f, k);
        st = read_text(text, &f.a, &j);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        if (st == HEDDLE_OK) {
            CHECK_EQ(j.njobs, 100);
            heddle_energy_jobs_fini(&j);
        }
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(a_high_price_keeps_all_here, a_low_price_sends_all_there, one_long_job_goes_there,
          due_dates_are_kept, no_due_date_is_never_late, no_jobs, bad_arguments_are_refused,
          lies_are_found, many_jobs_come_near_the_bound, many_machines, lengths_at_the_limits,
          every_allocation_may_fail, files_are_read, bad_files_get_a_sentence,
          reading_may_lack_memory)
