/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fit: watts that are known are found again; lags and windows too; kernels that
 * cannot be told apart are reported together; bad samples and no memory.
 */
#include "energy/log_test.h"

struct fitted {
    heddle_energy *model;
    struct heddle_energy_fit_report *r;
    char why[512];
};

static heddle_status fit_logs(struct fitted *f, heddle_log *const *logs, size_t n,
                              const struct heddle_energy_fit_opts *o)
{
    struct heddle_energy_fit_opts opts = {.size = sizeof(opts)};

    memset(f, 0, sizeof(*f));
    if (o != NULL)
        opts = *o;
    opts.why = f->why;
    opts.why_bytes = sizeof(f->why);
    return heddle_energy_fit((const heddle_log *const *)logs, n, &opts, &f->model, &f->r);
}

static void fitted_fini(struct fitted *f)
{
    heddle_energy_destroy(f->model);
    heddle_energy_fit_report_destroy(f->r);
}

static const struct heddle_energy_fit_domain *domain(const struct heddle_energy_fit_report *r,
                                                     const char *name)
{
    for (size_t i = 0; i < r->ndomains; i++)
        if (strcmp(r->domains[i].name, name) == 0)
            return &r->domains[i];
    CHECK(!"the domain is there");
    return NULL;
}

static bool has_note(const struct heddle_energy_fit_report *r, const char *word)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strstr(r->notes[i], word) != NULL)
            return true;
    return false;
}

/* All watts of the truth, within a share of them. */
static void check_watts(const heddle_energy *truth, const struct fitted *f, double share)
{
    for (size_t i = 0; i < f->r->nrows; i++) {
        const struct heddle_energy_fit_row *k = &f->r->rows[i];
        const double w = heddle_energy_watts(truth, k->kernel, k->variant, k->device, 0);

        CHECK_NEAR(k->watts, w, share * w);
        CHECK_NEAR(heddle_energy_watts(f->model, k->kernel, k->variant, k->device, 0), k->watts, 0);
        CHECK(k->low <= k->watts && k->watts <= k->high);
        CHECK(k->high > 0);
    }
}

TEST(watts_are_found_again)
{
    const struct heddle_energy_counter c = clear_counter();
    heddle_energy *truth = phases_truth();
    heddle_log *plain = phases_log(1), *log = plant_log(plain, truth, &c, 1);
    struct fitted f, again;

    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    CHECK_EQ(f.r->ndomains, 2);
    CHECK_EQ(f.r->nrows, 6);
    check_watts(truth, &f, 0.01);
    CHECK_NEAR(domain(f.r, "package-0")->idle_watts, 40, 0.4);
    CHECK_NEAR(domain(f.r, "gpu0")->idle_watts, 60, 0.6);
    CHECK(domain(f.r, "gpu0")->r2 > 0.999);
    CHECK(domain(f.r, "gpu0")->condition < 20);
    CHECK_STR(domain(f.r, "gpu0")->device, "cuda0");
    CHECK(isnan(f.r->held_out));
    CHECK_NEAR(f.r->idle_joules + f.r->active_joules, f.r->measured_joules,
               0.01 * f.r->measured_joules);
    /* the mean of the device for what did not run */
    CHECK(heddle_energy_watts(f.model, "new", NULL, "cuda0", 0) > 120);
    CHECK(heddle_energy_watts(f.model, "new", NULL, "cuda0", 0) < 280);
    /* the same numbers every time */
    CHECK_OK(fit_logs(&again, &log, 1, NULL));
    for (size_t i = 0; i < f.r->nrows; i++) {
        CHECK(f.r->rows[i].watts == again.r->rows[i].watts);
        CHECK(f.r->rows[i].low == again.r->rows[i].low);
        CHECK(f.r->rows[i].high == again.r->rows[i].high);
    }
    fitted_fini(&again);
    fitted_fini(&f);
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(truth);
}

TEST(lag_and_window)
{
    struct heddle_energy_counter c = clear_counter();
    const struct heddle_energy_fit_opts none = {.size = sizeof(none), .has_lag = 1};
    heddle_energy *truth = phases_truth();
    heddle_log *plain = phases_log(2), *log;
    struct fitted f, without;

    c.lag_ns = 14 * MS;
    log = plant_log(plain, truth, &c, 1);
    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    for (size_t i = 0; i < f.r->ndomains; i++) {
        /* up to a period more: when it is read after an update */
        CHECK(f.r->domains[i].lag_ns >= 13 * MS);
        CHECK(f.r->domains[i].lag_ns <= 16 * MS);
    }
    check_watts(truth, &f, 0.03);
    CHECK_OK(fit_logs(&without, &log, 1, &none));
    CHECK(domain(without.r, "gpu0")->r2 < domain(f.r, "gpu0")->r2 - 0.02);
    CHECK_EQ(domain(without.r, "gpu0")->lag_ns, 0);
    fitted_fini(&without);
    fitted_fini(&f);
    heddle_log_close(log);
    /* a quarter of the time is looked at */
    c.lag_ns = 0;
    c.period_ns = 40 * MS;
    c.sampled = 0.25;
    log = plant_log(plain, truth, &c, 3);
    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    CHECK(domain(f.r, "gpu0")->window_ns > 6 * MS);
    CHECK(domain(f.r, "gpu0")->window_ns < 16 * MS);
    check_watts(truth, &f, 0.12);
    fitted_fini(&f);
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(truth);
}

TEST(several_logs)
{
    struct heddle_energy_counter c = clear_counter();
    heddle_energy *truth = phases_truth();
    heddle_log *plain[3], *log[3];
    struct heddle_energy_run *t = NULL, *m = NULL;
    struct fitted f;

    c.noise = 0.02;
    for (int i = 0; i < 3; i++) {
        plain[i] = phases_log((uint64_t)i + 10);
        log[i] = plant_log(plain[i], truth, &c, (uint64_t)i);
    }
    CHECK_OK(fit_logs(&f, log, 3, NULL));
    CHECK_EQ(f.r->nlogs, 3);
    CHECK(f.r->held_out < 0.01);
    CHECK(domain(f.r, "package-0")->held_out < 0.01);
    check_watts(truth, &f, 0.03);
    CHECK_OK(heddle_energy_run_create(NULL, truth, plain[0], &t));
    CHECK_OK(heddle_energy_run_create(NULL, f.model, plain[0], &m));
    CHECK_NEAR(m->joules, t->joules, 0.01 * t->joules);
    CHECK_EQ(m->nunknown, 0);
    heddle_energy_run_destroy(t);
    heddle_energy_run_destroy(m);
    fitted_fini(&f);
    for (int i = 0; i < 3; i++) {
        heddle_log_close(plain[i]);
        heddle_log_close(log[i]);
    }
    heddle_energy_destroy(truth);
}

/* x and y always run together, z by itself; r runs once, for a moment. */
static heddle_log *twins_log(void)
{
    struct book b;
    heddle_log *log;

    book_init(&b);
    for (int i = 0; i < 3; i++)
        (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    (void)book_kernel(&b, "x");
    (void)book_kernel(&b, "y");
    (void)book_kernel(&b, "z");
    (void)book_kernel(&b, "r");
    for (int64_t t = 0; t < 2000 * MS; t += 20 * MS) {
        if (t / (20 * MS) % 3 == 0)
            book_task(&b, 0, 0, t, t + 18 * MS);
        if (t / (20 * MS) % 3 == 0)
            book_task(&b, 1, 1, t, t + 18 * MS);
        if (t / (20 * MS) % 5 == 0)
            book_task(&b, 2, 2, t, t + 15 * MS);
    }
    book_task(&b, 3, 2, 1999 * MS, 1999 * MS + 1000);
    log = book_open(&b);
    book_fini(&b);
    return log;
}

TEST(twins_and_rare_ones)
{
    const struct heddle_energy_counter c = clear_counter();
    heddle_energy *truth = NULL;
    heddle_log *plain = twins_log(), *log;
    double x = 0, y = 0;
    struct fitted f;

    CHECK_OK(heddle_energy_create(NULL, &truth));
    model_domain(truth, "package-0", "cpu", 30);
    model_active(truth, "x", "cpu", NULL, 8);
    model_active(truth, "y", "cpu", NULL, 20);
    model_active(truth, "z", "cpu", NULL, 5);
    log = plant_log(plain, truth, &c, 1);
    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    for (size_t i = 0; i < f.r->nrows; i++) {
        const struct heddle_energy_fit_row *k = &f.r->rows[i];

        if (k->kernel[0] == 'x' || k->kernel[0] == 'y')
            CHECK_EQ(k->group, 1);
        if (k->kernel[0] == 'z') {
            CHECK_EQ(k->group, 0);
            CHECK_NEAR(k->watts, 5, 0.1);
        }
        if (k->kernel[0] == 'r') /* it follows no noise */
            CHECK(k->watts > 3 && k->watts < 20);
        x = k->kernel[0] == 'x' ? k->watts : x;
        y = k->kernel[0] == 'y' ? k->watts : y;
    }
    /* one number for both, which is right for their sum */
    CHECK_NEAR(x, y, 0);
    CHECK_NEAR(2 * x, 8 + 20, 0.5);
    fitted_fini(&f);
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(truth);
}

/* Variants of a kernel have rows of their own where several ran. */
TEST(variants_and_prior)
{
    const struct heddle_energy_counter c = clear_counter();
    struct heddle_energy_fit_opts o = {.size = sizeof(o)};
    heddle_energy *truth = NULL, *prior = NULL;
    struct book b;
    heddle_log *plain, *log;
    struct fitted f;

    book_init(&b);
    (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    (void)book_kernel(&b, "k");
    (void)book_kernel(&b, "other");
    for (int64_t t = 0; t < 1000 * MS; t += 10 * MS)
        book_task(&b, t / (70 * MS) % 3 == 2, 0, t, t + 8 * MS)->variant = t / (70 * MS) % 3 == 1;
    plain = book_open(&b);
    CHECK_OK(heddle_energy_create(NULL, &truth));
    model_domain(truth, "package-0", "cpu", 30);
    model_active(truth, "k", "cpu", "plain", 8);
    model_active(truth, "k", "cpu", "fast", 20);
    model_active(truth, "other", "cpu", NULL, 5);
    log = plant_log(plain, truth, &c, 1);
    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    CHECK_EQ(f.r->nrows, 3);
    check_watts(truth, &f, 0.02);
    for (size_t i = 0; i < f.r->nrows; i++)
        CHECK((f.r->rows[i].variant[0] == '\0') == (strcmp(f.r->rows[i].kernel, "other") == 0));
    fitted_fini(&f);
    /* A prior that is wrong does not matter when there are data. */
    CHECK_OK(heddle_energy_create(NULL, &prior));
    model_domain(prior, "package-0", "cpu", 30);
    model_active(prior, "*", "cpu", NULL, 1000);
    o.prior = prior;
    CHECK_OK(fit_logs(&f, &log, 1, &o));
    check_watts(truth, &f, 0.05);
    fitted_fini(&f);
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(truth);
    heddle_energy_destroy(prior);
    book_fini(&b);
}

/* ---- what is not as it should be ----------------------------------------------- */

TEST(no_samples)
{
    struct heddle_energy_fit_opts o = {.size = sizeof(o)};
    heddle_log *plain = phases_log(3), *log;
    struct fitted f;
    struct book b;

    CHECK_STATUS(fit_logs(&f, &plain, 1, NULL), HEDDLE_ENOENT);
    CHECK(strstr(f.why, "no samples") != NULL);
    CHECK(f.model == NULL && f.r == NULL);
    CHECK_STATUS(fit_logs(&f, &plain, 0, NULL), HEDDLE_EINVAL);
    o.nbootstrap = 100000;
    CHECK_STATUS(fit_logs(&f, &plain, 1, &o), HEDDLE_EINVAL);
    o = (struct heddle_energy_fit_opts){.size = sizeof(o), .has_lag = 1, .lag_ns = -1};
    CHECK_STATUS(fit_logs(&f, &plain, 1, &o), HEDDLE_EINVAL);
    o.size = 1;
    CHECK_STATUS(fit_logs(&f, &plain, 1, &o), HEDDLE_EINVAL);
    heddle_log_close(plain);
    plain = NULL;
    CHECK_STATUS(fit_logs(&f, &plain, 1, NULL), HEDDLE_EINVAL);
    /* what the log says of it */
    book_init(&b);
    (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    book_info(&b, "energy", "no counter: nobody may read it");
    log = book_open(&b);
    CHECK_STATUS(fit_logs(&f, &log, 1, NULL), HEDDLE_ENOENT);
    CHECK(strstr(f.why, "nobody may read it") != NULL);
    heddle_log_close(log);
    /* a counter that stands still */
    for (int i = 0; i < 10; i++)
        book_sample(&b, 0, i * MS, 77, 0);
    log = book_open(&b);
    CHECK_STATUS(fit_logs(&f, &log, 1, NULL), HEDDLE_ENOENT);
    CHECK(strstr(f.why, "never moved") != NULL);
    heddle_log_close(log);
    /* no tasks: idle power alone */
    for (int i = 0; i < 40; i++)
        book_sample(&b, 1, i * 10 * MS, (uint64_t)i * 500000, 0);
    log = book_open(&b);
    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    CHECK_EQ(f.r->nrows, 0);
    CHECK_NEAR(f.r->domains[0].idle_watts, 50, 1e-6);
    CHECK(has_note(f.r, "never moved"));
    CHECK(has_note(f.r, "does not say whose"));
    fitted_fini(&f);
    heddle_log_close(log);
    book_fini(&b);
}

/* Counters that wrap often: the same watts; one that goes back: a sentence. */
TEST(bad_samples)
{
    struct heddle_energy_counter c = clear_counter();
    struct heddle_log_event *event;
    struct heddle_log_view v;
    heddle_energy *truth = phases_truth();
    heddle_log *plain = phases_log(4), *log, *bad = NULL;
    struct fitted f;
    char path[64];
    size_t seen = 0;

    c.wrap_uj = 9000000;
    log = plant_log(plain, truth, &c, 1);
    CHECK_OK(fit_logs(&f, &log, 1, NULL));
    check_watts(truth, &f, 0.02);
    CHECK_EQ(f.r->nnotes, 0);
    fitted_fini(&f);
    heddle_log_close(log);
    c.wrap_uj = 0;
    log = plant_log(plain, truth, &c, 1);
    v = *heddle_log_get_view(log);
    event = calloc(v.nevents, sizeof(*event));
    CHECK(event != NULL);
    memcpy(event, v.events, v.nevents * sizeof(*event));
    for (size_t i = 0; i < v.nevents; i++) {
        if (event[i].kind != HEDDLE_LOG_POWER || event[i].b != 0)
            continue;
        seen++;
        if (seen == 50)
            event[i].x = 3; /* back, and far ahead next time */
        if (seen == 90)
            event[i].x = UINT64_MAX;
    }
    v.events = event;
    book_path(path, sizeof(path));
    CHECK_OK(heddle_log_compose(&v, path, NULL));
    CHECK_OK(heddle_log_open(path, NULL, &bad));
    unlink(path);
    CHECK_OK(fit_logs(&f, &bad, 1, NULL));
    check_watts(truth, &f, 0.03);
    CHECK(has_note(f.r, "package-0 went back"));
    CHECK(has_note(f.r, "package-0 jumped ahead"));
    CHECK(domain(f.r, "package-0")->ndropped >= 3);
    CHECK_EQ(domain(f.r, "gpu0")->ndropped, 0);
    fitted_fini(&f);
    free(event);
    heddle_log_close(bad);
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(truth);
}

/* Samples of any values at any time: an answer or a sentence, nothing else. */
TEST(any_samples)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t round = 0; round < test_scale(40); round++) {
        struct book b;
        heddle_log *log;
        struct fitted f;
        heddle_status st;

        book_init(&b);
        (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
        (void)book_kernel(&b, "k");
        for (int i = 0; i < 20; i++)
            book_task(&b, 0, 0, i * 10 * MS,
                      i * 10 * MS + (int64_t)heddle_rng_below(&rng, 10 * MS));
        for (int i = 0; i < 60; i++)
            book_sample(&b, (uint16_t)heddle_rng_below(&rng, 3),
                        (int64_t)heddle_rng_below(&rng, 300 * MS) - 50 * MS,
                        heddle_rng_next(&rng) >> heddle_rng_below(&rng, 64),
                        heddle_rng_below(&rng, 20) == 0);
        log = book_open(&b);
        st = fit_logs(&f, &log, 1, NULL);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
        CHECK((st == HEDDLE_OK) == (f.why[0] == '\0'));
        for (size_t i = 0; st == HEDDLE_OK && i < f.r->nrows; i++)
            CHECK(f.r->rows[i].watts >= 0 && isfinite(f.r->rows[i].watts));
        fitted_fini(&f);
        heddle_log_close(log);
        book_fini(&b);
    }
}

TEST(no_memory)
{
    struct heddle_energy_counter c = clear_counter();
    heddle_energy *truth = phases_truth();
    heddle_log *plain = twins_log(), *log;
    struct faulty f;
    size_t step = 1;

    c.sample_ns = 100 * MS;
    log = plant_log(plain, truth, &c, 1);
    /* every one of the first ones, then some of the many that follow */
    for (size_t k = 1; k == 1 || f.has_failed; k += step) {
        struct heddle_energy_fit_opts o = {.size = sizeof(o), .alloc = &f.a, .nbootstrap = 20};
        struct fitted x;
        heddle_status st;

        faulty_init(&f, k);
        st = fit_logs(&x, &log, 1, &o);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        if (st != HEDDLE_OK)
            CHECK(strstr(x.why, "memory") != NULL);
        fitted_fini(&x);
        CHECK_EQ(f.nlive, 0);
        if (k > 200)
            step = 1 + k / 20;
    }
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(truth);
}

TEST_MAIN(watts_are_found_again, lag_and_window, several_logs, twins_and_rare_ones,
          variants_and_prior, no_samples, bad_samples, any_samples, no_memory)
