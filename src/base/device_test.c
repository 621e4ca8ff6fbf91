/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of devices by number and by name. */
#include "base/device.h"

#include "tests/test.h"

TEST(names_and_numbers)
{
    CHECK_STR(heddle_device_name(HEDDLE_DEV_CPU), "cpu");
    CHECK_STR(heddle_device_name(HEDDLE_DEV_CUDA), "cuda");
    CHECK_STR(heddle_device_name(HEDDLE_DEV_OPENCL), "opencl");
    CHECK_STR(heddle_device_name((enum heddle_device)0), "unknown");
    CHECK_STR(heddle_device_name((enum heddle_device)99), "unknown");
    for (unsigned k = 0; k < 40; k++) {
        const char *name = heddle_device_name((enum heddle_device)k);

        CHECK_EQ(heddle_device_is_known(k), strcmp(name, "unknown") != 0);
        CHECK_EQ(heddle_device_of(name), heddle_device_is_known(k) ? k : 0);
    }
}

TEST(names_of_devices_and_lanes)
{
    CHECK_EQ(heddle_device_of("cuda0"), 0);
    CHECK_EQ(heddle_device_of(""), 0);
    CHECK_EQ(heddle_device_at_start("cuda0.1"), HEDDLE_DEV_CUDA);
    CHECK_EQ(heddle_device_at_start("OpenCL 0"), HEDDLE_DEV_OPENCL);
    CHECK_EQ(heddle_device_at_start("gpu0"), 0);
    CHECK_EQ(heddle_device_at_start(""), 0);
}

TEST(a_sentence_names_them_all)
{
    char names[64], few[8];

    CHECK(strstr(heddle_device_names(names, sizeof(names)), "cpu, cuda") == names);
    CHECK(strstr(names, " or ") != NULL);
    CHECK(strlen(heddle_device_names(few, sizeof(few))) < sizeof(few));
}

TEST_MAIN(names_and_numbers, names_of_devices_and_lanes, a_sentence_names_them_all)
