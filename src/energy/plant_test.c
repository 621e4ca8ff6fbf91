/* SPDX-License-Identifier: BSD-3-Clause */
/* plant and run: what counters show adds up to the truth; bad input. */
#include "energy/log_test.h"

/* 100 ms of one kernel on a core, 50 ms on the device. */
static heddle_log *small_log(void)
{
    struct book b;
    heddle_log *log;

    book_init(&b);
    (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    (void)book_lane(&b, "cuda0.0", HEDDLE_LOG_DEVICE, 1);
    (void)book_kernel(&b, "a");
    (void)book_kernel(&b, "new");
    book_info(&b, "host", "here");
    book_info(&b, "energy.domain.0", "old one");
    book_task(&b, 0, 0, 0, 100 * MS);
    book_task(&b, 0, 1, 50 * MS, 100 * MS);
    book_task(&b, 1, 0, 100 * MS, 200 * MS);
    book_sample(&b, 0, 5, 5, 0);
    b.event[b.v.nevents++] = (struct heddle_log_event){
        .t_ns = 0, .x = 1000000000, .z_ns = 10 * MS, .c = 0, .b = 256, .kind = HEDDLE_LOG_FETCH};
    log = book_open(&b);
    book_fini(&b);
    return log;
}

TEST(energy_of_a_run)
{
    heddle_energy *e = phases_truth();
    heddle_log *log = small_log();
    struct heddle_energy_run *r = NULL;

    CHECK_OK(heddle_energy_set_move(e, 2e-9));
    CHECK_OK(heddle_energy_run_create(NULL, e, log, &r));
    CHECK_NEAR(r->seconds, 0.2, 1e-12);
    CHECK_NEAR(r->idle_joules, 100 * 0.2, 1e-9);
    CHECK_NEAR(r->active_joules, 6 * 0.1 + 200 * 0.05, 1e-9);
    CHECK_NEAR(r->move_joules, 2, 1e-9);
    CHECK_NEAR(r->joules, 20 + 10.6 + 2, 1e-9);
    CHECK_EQ(r->nunknown, 1);
    CHECK_EQ(r->nrows, 3);
    CHECK_STR(r->rows[0].device, "cuda0");
    CHECK_NEAR(r->rows[0].joules, 10, 1e-9);
    CHECK(isnan(r->rows[2].joules));
    CHECK_STR(r->rows[2].kernel, "new");
    CHECK_EQ(r->ndomains, 2);
    CHECK_NEAR(r->domains[0].joules, 40 * 0.2 + 0.6 + 1, 1e-9);
    CHECK_NEAR(r->domains[1].joules, 60 * 0.2 + 10 + 1, 1e-9);
    CHECK(isnan(r->measured_joules));
    CHECK(isnan(r->domains[0].measured_joules));
    heddle_energy_run_destroy(r);
    heddle_energy_run_destroy(NULL);
    CHECK_STATUS(heddle_energy_run_create(NULL, NULL, log, &r), HEDDLE_EINVAL);
    /* two counters that see the same cores share what tasks take */
    model_domain(e, "dram-0", "cpu", 10);
    CHECK_OK(heddle_energy_run_create(NULL, e, log, &r));
    CHECK_NEAR(r->domains[0].active_joules, 0.8 * 0.6, 1e-9);
    CHECK_NEAR(r->domains[2].active_joules, 0.2 * 0.6, 1e-9);
    CHECK_NEAR(r->active_joules, 10.6, 1e-9);
    heddle_energy_run_destroy(r);
    heddle_log_close(log);
    heddle_energy_destroy(e);
}

TEST(counters_add_up)
{
    struct heddle_energy_counter c = clear_counter();
    heddle_energy *e = phases_truth();
    heddle_log *plain = small_log(), *log = plant_log(plain, e, &c, 1);
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_energy_run *r = NULL;
    size_t nold = 0, nmoves = 0;
    uint64_t last[2] = {0, 0};

    for (size_t i = 0; i < v->ninfos; i++)
        nold += strcmp(v->infos[i].value, "old one") == 0;
    CHECK_EQ(nold, 0);
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *x = &v->events[i];

        nmoves += x->kind == HEDDLE_LOG_FETCH;
        if (x->kind != HEDDLE_LOG_POWER)
            continue;
        CHECK(x->x >= last[x->b]);
        last[x->b] = x->x;
    }
    CHECK_EQ(nmoves, 1);
    /* 0.3 s of idle power, within two updates */
    CHECK_NEAR((double)last[0] * 1e-6, 40 * 0.3 + 0.6, 0.15);
    CHECK_NEAR((double)last[1] * 1e-6, 60 * 0.3 + 10, 0.15);
    CHECK_OK(heddle_energy_run_create(NULL, e, log, &r));
    CHECK_NEAR(r->measured_joules, r->measured_predicted, 0.01 * r->measured_joules);
    heddle_energy_run_destroy(r);
    heddle_log_close(log);
    /* counts are whole */
    c.quantum_j = 0.25;
    log = plant_log(plain, e, &c, 1);
    v = heddle_log_get_view(log);
    for (size_t i = 0; i < v->nevents; i++)
        if (v->events[i].kind == HEDDLE_LOG_POWER)
            CHECK_EQ(v->events[i].x % 250000, 0);
    heddle_log_close(log);
    heddle_log_close(plain);
    heddle_energy_destroy(e);
}

/* A window before the samples: what is shown lags behind by half of it. */
TEST(windows_and_presets)
{
    struct heddle_energy_counter c = clear_counter(), preset = c;
    heddle_energy *e = phases_truth();
    heddle_log *plain = small_log();
    double shown[2];

    CHECK_OK(heddle_energy_counter_find("cpu", &preset));
    CHECK_EQ(preset.period_ns, MS);
    CHECK_NEAR(preset.quantum_j, 61e-6, 1e-9);
    CHECK_OK(heddle_energy_counter_find("gpu", &preset));
    CHECK_EQ(preset.period_ns, 100 * MS);
    CHECK_NEAR(preset.sampled, 0.25, 0);
    CHECK_STATUS(heddle_energy_counter_find("tpu", &preset), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_energy_counter_find(NULL, &preset), HEDDLE_EINVAL);
    for (int k = 0; k < 2; k++) {
        heddle_log *log;
        const struct heddle_log_view *v;

        c.window_ns = k * 20 * MS;
        log = plant_log(plain, e, &c, 1);
        v = heddle_log_get_view(log);
        for (size_t i = 0; i < v->nevents; i++)
            if (v->events[i].kind == HEDDLE_LOG_POWER && v->events[i].b == 1 &&
                v->events[i].t_ns == 80 * MS)
                shown[k] = (double)v->events[i].x * 1e-6;
        heddle_log_close(log);
    }
    CHECK_NEAR(shown[0] - shown[1], 200 * 0.010, 0.25);
    heddle_log_close(plain);
    heddle_energy_destroy(e);
}

static heddle_status plant(const heddle_log *log, const heddle_energy *e,
                           const struct heddle_energy_counter *c, const struct heddle_allocator *a,
                           char *why, size_t cap)
{
    const struct heddle_energy_plant_opts o = {
        .size = sizeof(o), .alloc = a, .cpu = c, .gpu = c, .why = why, .why_bytes = cap};
    char path[64];
    heddle_status st;

    book_path(path, sizeof(path));
    st = heddle_energy_plant_write(log, e, &o, path);
    unlink(path);
    return st;
}

TEST(bad_input)
{
    const struct heddle_energy_counter good = clear_counter();
    struct heddle_energy_counter c;
    heddle_energy *e = phases_truth(), *none = NULL;
    heddle_log *log = small_log(), *empty;
    struct book b;
    char why[256];

    CHECK_STATUS(heddle_energy_plant_write(NULL, e, NULL, "x"), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_plant_write(log, e, NULL, NULL), HEDDLE_EINVAL);
#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        c = good;                                                                                  \
        c.field = (value);                                                                         \
        why[0] = '\0';                                                                             \
        CHECK_STATUS(plant(log, e, &c, NULL, why, sizeof(why)), HEDDLE_EINVAL);                    \
        CHECK(why[0] != '\0');                                                                     \
    } while (0)
    REFUSED(period_ns, 0);
    REFUSED(period_ns, -1);
    REFUSED(lag_ns, -1);
    REFUSED(window_ns, -1);
    REFUSED(sampled, 0);
    REFUSED(sampled, 1.5);
    REFUSED(sampled, NAN);
    REFUSED(quantum_j, 0);
    REFUSED(quantum_j, INFINITY);
    REFUSED(noise, -0.1);
    REFUSED(noise, NAN);
    REFUSED(late, 1);
    REFUSED(late, NAN);
    REFUSED(sample_ns, 0);
    REFUSED(sample_ns, 1); /* more samples than anybody wants */
    REFUSED(margin_ns, INT64_MAX);
#undef REFUSED
    CHECK_OK(heddle_energy_create(NULL, &none));
    CHECK_STATUS(plant(log, none, &good, NULL, why, sizeof(why)), HEDDLE_EINVAL);
    CHECK(strstr(why, "no domain") != NULL);
    model_domain(none, "two words", "cpu", 1);
    CHECK_STATUS(plant(log, none, &good, NULL, why, sizeof(why)), HEDDLE_EINVAL);
    CHECK(strstr(why, "blank") != NULL);
    book_init(&b);
    (void)book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    empty = book_open(&b);
    book_fini(&b);
    CHECK_STATUS(plant(empty, e, &good, NULL, why, sizeof(why)), HEDDLE_EINVAL);
    CHECK(strstr(why, "no task") != NULL);
    heddle_log_close(empty);
    heddle_log_close(log);
    heddle_energy_destroy(none);
    heddle_energy_destroy(e);
}

TEST(no_memory)
{
    const struct heddle_energy_counter c = clear_counter();
    heddle_energy *e = phases_truth();
    heddle_log *log = small_log();
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        char why[256] = "";
        heddle_status st;

        faulty_init(&f, k);
        st = plant(log, e, &c, &f.a, why, sizeof(why));
        CHECK(st == HEDDLE_ENOMEM || st == HEDDLE_OK);
        CHECK(f.has_failed || st == HEDDLE_OK); /* an index is optional */
        CHECK_EQ(f.nlive, 0);
    }
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_energy_run *r = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_energy_run_create(&f.a, e, log, &r);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_energy_run_destroy(r);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_log_close(log);
    heddle_energy_destroy(e);
}

TEST_MAIN(energy_of_a_run, counters_add_up, windows_and_presets, bad_input, no_memory)
