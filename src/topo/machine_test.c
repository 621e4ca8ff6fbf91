/* SPDX-License-Identifier: BSD-3-Clause */
/* machine: the public view, its size rule. */
#include "heddle/machine.h"

#include "tests/test.h"

TEST(query)
{
    struct heddle_machine_info m = {.size = sizeof(m)};

    CHECK_OK(heddle_machine_query(&m));
    CHECK_EQ(m.size, sizeof(m));
    CHECK(m.cpus >= 1 && m.cores >= 1 && m.cores <= m.cpus);
    CHECK(m.cpus_online >= m.cpus);
    CHECK(m.packages >= 1 && m.numa_nodes >= 1);
    CHECK(m.workers >= 1 && m.workers <= m.cores);
    CHECK(m.memory_total > 0 && m.memory_available <= m.memory_total);
    CHECK(m.page_bytes >= 4096);
    CHECK(m.model[0] != '\0');
    CHECK(strcmp(m.source, "hwloc") == 0 || strcmp(m.source, "sysfs") == 0);
}

TEST(sizes)
{
    struct {
        struct heddle_machine_info m;
        unsigned char later[8];
    } x;

    memset(&x, 0xff, sizeof(x));
    x.m.size = sizeof(x);
    CHECK_OK(heddle_machine_query(&x.m));
    CHECK_EQ(x.m.size, sizeof(x));
    for (int i = 0; i < 8; i++)
        CHECK_EQ(x.later[i], 0); /* members we do not know */
    x.m.size = 0;
    CHECK_STATUS(heddle_machine_query(&x.m), HEDDLE_EINVAL);
    memset(&x, 0xff, sizeof(x));
    x.m.size = offsetof(struct heddle_machine_info, source);
    CHECK_OK(heddle_machine_query(&x.m)); /* a smaller one gets what it has room for */
    CHECK(x.m.cpus > 0 && (unsigned char)x.m.source[0] == 0xff);
    CHECK_STATUS(heddle_machine_query(NULL), HEDDLE_EINVAL);
}

TEST_MAIN(query, sizes)
