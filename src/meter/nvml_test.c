/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvml: GPUs by their place on the bus, their energy, and why there is none. With the
 * stand-in for NVML, or with HEDDLE_REAL_GPU on a GPU.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "meter/meter.h"
#include "test.h"

extern const struct heddle_meter_ops heddle_meter_nvml;

static const struct heddle_meter_ops *const only_nvml[] = {&heddle_meter_nvml, NULL};

#define LIBRARY "libnvidia-ml.so.1"

static bool is_real(void)
{
    return getenv("HEDDLE_REAL_GPU") != NULL;
}

static heddle_meter *start(const struct heddle_meter_env *env)
{
    heddle_meter *m = NULL;

    CHECK_OK(heddle_meter_create(env, only_nvml, &m));
    return m;
}

static const char *why_of(heddle_meter *m)
{
    struct heddle_meter_source s = {.size = sizeof(s)};

    CHECK_OK(heddle_meter_get_source(m, 0, &s));
    return s.why;
}

static void check_domain(heddle_meter *m, size_t i, const char *name, const char *device)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};

    CHECK_OK(heddle_meter_get_domain(m, i, &d));
    CHECK_STR(d.name, name);
    CHECK_STR(d.device, device);
}

TEST(all_of_them)
{
    const struct heddle_meter_env env = {.nvml_library = LIBRARY};
    struct heddle_meter_sample a = {.size = sizeof(a)}, b = {.size = sizeof(b)};
    heddle_meter *m;
    uint64_t t0, t1;
    double watts;

    CHECK_EQ(setenv("FAKECUDA_DEVICES", "3", 1), 0);
    m = start(&env);
    if (is_real() && heddle_meter_ndomains(m) == 0) {
        printf("%s\n", why_of(m));
        heddle_meter_close(m);
        SKIP("no GPU counts energy");
    }
    CHECK(is_real() || heddle_meter_ndomains(m) == 3);
    check_domain(m, 0, "gpu0", "cuda");
    CHECK_OK(heddle_meter_read(m, 0, &a));
    t0 = heddle_clock_ns();
    heddle_thread_sleep_ns(UINT64_C(300000000));
    CHECK_OK(heddle_meter_read(m, 0, &b));
    t1 = heddle_clock_ns();
    watts = (double)(b.microjoules - a.microjoules) * 1e3 / (double)(t1 - t0);
    CHECK(!a.has_gap && !b.has_gap);
    if (!is_real()) /* steps of 20 ms, and the machine may be busy */
        CHECK(watts > 40 && watts < 160);
    heddle_meter_close(m);
    CHECK_EQ(unsetenv("FAKECUDA_DEVICES"), 0);
}

/* CUDA's numbers are not NVML's: the bus decides. */
TEST(listed)
{
    static const struct heddle_meter_gpu gpu[] = {
        {"cuda0", "0000:00:02.0"}, {"cuda1", "0000:00:01.0"}, {"cuda2", "0000:00:7f.0"}};
    const struct heddle_meter_env env = {
        .nvml_library = LIBRARY, .has_gpu_list = true, .gpu = gpu, .ngpus = 3};
    heddle_meter *m;

    if (is_real())
        SKIP("the places are those of the stand-in");
    m = start(&env);
    CHECK_EQ(heddle_meter_ndomains(m), 2);
    check_domain(m, 0, "gpu0", "cuda0");
    check_domain(m, 1, "gpu1", "cuda1");
    CHECK(strstr(why_of(m), "does not know cuda2: Not Found") != NULL);
    heddle_meter_close(m);
}

TEST(none_is_used)
{
    const struct heddle_meter_env env = {.nvml_library = "/no/such/library", .has_gpu_list = true};
    heddle_meter *m = start(&env);

    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK_STR(why_of(m), "no NVIDIA GPU is used"); /* it was not looked for */
    heddle_meter_close(m);
}

TEST(no_library)
{
    const struct heddle_meter_env env = {.nvml_library = "/no/such/library"};
    heddle_meter *m = start(&env);

    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "NVML cannot be loaded: /no/such/library") != NULL);
    heddle_meter_close(m);
}

/* The C library is a library, but not that one. */
TEST(another_library)
{
    const struct heddle_meter_env env = {.nvml_library = "libc.so.6"};
    heddle_meter *m = start(&env);

    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "too old") != NULL);
    heddle_meter_close(m);
}

TEST(no_device_node)
{
    const struct heddle_meter_env env = {0};
    heddle_meter *m;

    if (heddle_nvml_has_node())
        SKIP("there is a device node");
    m = start(&env);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK_STR(why_of(m), "there is no NVIDIA device node");
    heddle_meter_close(m);
}

TEST(no_counter)
{
    const struct heddle_meter_env env = {.nvml_library = LIBRARY};
    heddle_meter *m;

    if (is_real())
        SKIP("the stand-in can be without");
    CHECK_EQ(setenv("FAKECUDA_ENERGY", "0", 1), 0);
    m = start(&env);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK_STR(why_of(m), "gpu0 has no energy counter: Not Supported");
    heddle_meter_close(m);
    CHECK_EQ(setenv("FAKECUDA_DEVICES", "0", 1), 0);
    m = start(&env);
    CHECK_STR(why_of(m), "NVML knows no GPU");
    heddle_meter_close(m);
    CHECK_EQ(unsetenv("FAKECUDA_ENERGY"), 0);
    CHECK_EQ(unsetenv("FAKECUDA_DEVICES"), 0);
}

/* It stops answering while it is in use. */
TEST(goes_away)
{
    const struct heddle_meter_env env = {.nvml_library = LIBRARY};
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    heddle_meter *m;

    if (is_real())
        SKIP("only the stand-in does that");
    m = start(&env);
    CHECK_EQ(heddle_meter_ndomains(m), 1);
    CHECK_EQ(setenv("FAKECUDA_ENERGY", "0", 1), 0);
    CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_EIO);
    CHECK_OK(heddle_meter_get_domain(m, 0, &d));
    CHECK_STR(d.why, "NVML does not answer: Not Supported");
    CHECK_EQ(unsetenv("FAKECUDA_ENERGY"), 0);
    CHECK_OK(heddle_meter_read(m, 0, &s));
    heddle_meter_close(m);
}

TEST_MAIN(all_of_them, listed, none_is_used, no_library, another_library, no_device_node,
          no_counter, goes_away)
