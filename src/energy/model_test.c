/* SPDX-License-Identifier: BSD-3-Clause */
/* model: rows added, replaced, refused; the row that fits best; no memory. */
#include "base/faulty_test.h"
#include "heddle/energy.h"

static void set_active(heddle_energy *e, const char *kernel, const char *device,
                       const char *variant, uint64_t bytes, double watts)
{
    const struct heddle_energy_active row = {.size = sizeof(row),
                                             .kernel = kernel,
                                             .device = device,
                                             .variant = variant,
                                             .bytes = bytes,
                                             .watts = watts};

    CHECK_OK(heddle_energy_set_active(e, &row));
}

TEST(rows_come_back)
{
    struct heddle_energy_domain d = {.size = sizeof(d),
                                     .name = "package-0",
                                     .device = "cpu",
                                     .idle_watts = 40,
                                     .low = 39,
                                     .high = 41};
    struct heddle_energy_cap c = {.size = sizeof(c),
                                  .device = "cuda",
                                  .name = "250W",
                                  .time_factor = 1.1,
                                  .watts_factor = 0.7};
    struct heddle_energy_active a = {.size = sizeof(a)};
    heddle_energy *e = NULL;

    CHECK_OK(heddle_energy_create(NULL, &e));
    CHECK_NEAR(heddle_energy_idle_watts(e), 0, 0);
    CHECK_OK(heddle_energy_set_domain(e, &d));
    d.name = "gpu0";
    d.device = NULL;
    d.idle_watts = 60;
    CHECK_OK(heddle_energy_set_domain(e, &d));
    CHECK_NEAR(heddle_energy_idle_watts(e), 100, 0);
    d.idle_watts = 70; /* the same domain again */
    CHECK_OK(heddle_energy_set_domain(e, &d));
    CHECK_NEAR(heddle_energy_idle_watts(e), 110, 0);
    CHECK_OK(heddle_energy_get_domain(e, 1, &d));
    CHECK_STR(d.name, "gpu0");
    CHECK_STR(d.device, "");
    CHECK_STATUS(heddle_energy_get_domain(e, 2, &d), HEDDLE_ENOENT);
    CHECK_OK(heddle_energy_set_cap(e, &c));
    c.time_factor = 1.2;
    CHECK_OK(heddle_energy_set_cap(e, &c));
    CHECK_OK(heddle_energy_get_cap(e, 0, &c));
    CHECK_NEAR(c.time_factor, 1.2, 0);
    CHECK_STATUS(heddle_energy_get_cap(e, 1, &c), HEDDLE_ENOENT);
    for (int i = 0; i < 40; i++) /* arrays grow */
        set_active(e, "k", "cpu", NULL, (uint64_t)i + 1, i);
    set_active(e, "k", "cpu", NULL, 3, 99);
    CHECK_OK(heddle_energy_get_active(e, 2, &a));
    CHECK_NEAR(a.watts, 99, 0);
    CHECK_STATUS(heddle_energy_get_active(e, 40, &a), HEDDLE_ENOENT);
    CHECK_OK(heddle_energy_set_move(e, 1e-10));
    CHECK_NEAR(heddle_energy_get_move(e), 1e-10, 0);
    heddle_energy_destroy(e);
}

TEST(best_row)
{
    heddle_energy *e = NULL;

    CHECK_OK(heddle_energy_create(NULL, &e));
    CHECK(isnan(heddle_energy_watts(e, "gemm", NULL, "cpu", 0)));
    set_active(e, "*", "*", NULL, 0, 1);
    set_active(e, "gemm", "*", NULL, 0, 2);
    set_active(e, "*", "cuda", NULL, 0, 3);
    set_active(e, "gemm", "cuda", NULL, 0, 4);
    set_active(e, "gemm", "cuda1", NULL, 0, 5);
    set_active(e, "gemm", "cuda1", "tf32", 0, 6);
    set_active(e, "gemm", "cuda1", "tf32", 1000, 7);
    set_active(e, "gemm", "cuda1", "tf32", 9000, 8);
    CHECK_NEAR(heddle_energy_watts(e, "trsm", NULL, "cpu", 0), 1, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", NULL, "cpu", 0), 2, 0);
    /* device before kernel */
    CHECK_NEAR(heddle_energy_watts(e, "trsm", NULL, "cuda0", 0), 3, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", NULL, "cuda0", 0), 4, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", NULL, "cuda small", 0), 4, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", NULL, "cuda1", 0), 5, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", "fp64", "cuda1", 5), 5, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", "tf32", "cuda1", 0), 6, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", "tf32", "cuda1", 1000), 7, 0);
    /* the nearest size */
    CHECK_NEAR(heddle_energy_watts(e, "gemm", "tf32", "cuda1", 1001), 7, 0);
    CHECK_NEAR(heddle_energy_watts(e, "gemm", "tf32", "cuda1", 8000), 8, 0);
    CHECK(isnan(heddle_energy_watts(e, NULL, NULL, "cpu", 0)));
    heddle_energy_destroy(e);
}

TEST(bad_rows)
{
    const struct heddle_energy_active good = {
        .size = sizeof(good), .kernel = "k", .device = "cpu", .watts = 1};
    struct heddle_energy_active a;
    struct heddle_energy_domain d = {.size = sizeof(d), .name = ""};
    struct heddle_energy_cap c = {
        .size = sizeof(c), .device = "cpu", .name = "x", .time_factor = 1};
    char longer[HEDDLE_ENERGY_NAME_MAX + 2];
    heddle_energy *e = NULL;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CHECK_STATUS(heddle_energy_create(NULL, NULL), HEDDLE_EINVAL);
    CHECK_OK(heddle_energy_create(NULL, &e));
    CHECK_STATUS(heddle_energy_set_active(NULL, &good), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_set_active(e, NULL), HEDDLE_EINVAL);
#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        a = good;                                                                                  \
        a.field = (value);                                                                         \
        CHECK_STATUS(heddle_energy_set_active(e, &a), HEDDLE_EINVAL);                              \
    } while (0)
    REFUSED(size, 4);
    REFUSED(kernel, NULL);
    REFUSED(kernel, "");
    REFUSED(device, NULL);
    REFUSED(kernel, longer);
    REFUSED(variant, longer);
    REFUSED(watts, -1);
    REFUSED(watts, NAN);
    REFUSED(watts, INFINITY);
    REFUSED(low, 1); /* above high, 0 */
    REFUSED(high, NAN);
#undef REFUSED
    CHECK_STATUS(heddle_energy_set_domain(e, &d), HEDDLE_EINVAL);
    d.name = "x";
    d.idle_watts = -3;
    CHECK_STATUS(heddle_energy_set_domain(e, &d), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_set_cap(e, &c), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_set_move(e, -1), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_set_move(e, NAN), HEDDLE_EINVAL);
    a = good;
    CHECK_STATUS(heddle_energy_get_active(e, 0, &a), HEDDLE_ENOENT);
    heddle_energy_destroy(e);
    heddle_energy_destroy(NULL);
}

TEST(no_memory)
{
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        const struct heddle_energy_domain d = {.size = sizeof(d), .name = "d"};
        const struct heddle_energy_cap c = {
            .size = sizeof(c), .device = "cpu", .name = "x", .time_factor = 1, .watts_factor = 1};
        struct heddle_energy_active a = {
            .size = sizeof(a), .kernel = "k", .device = "cpu", .watts = 1};
        heddle_status st;
        heddle_energy *e = NULL;

        faulty_init(&f, k);
        st = heddle_energy_create(&f.a, &e);
        if (st == HEDDLE_OK)
            st = heddle_energy_set_domain(e, &d);
        if (st == HEDDLE_OK)
            st = heddle_energy_set_cap(e, &c);
        for (int i = 0; i < 20 && st == HEDDLE_OK; i++) {
            a.bytes = (uint64_t)i;
            st = heddle_energy_set_active(e, &a);
        }
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_energy_destroy(e);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(rows_come_back, best_row, bad_rows, no_memory)
