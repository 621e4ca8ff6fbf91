/* SPDX-License-Identifier: BSD-3-Clause */
/* cgroup: both versions, every level, containers with and without their own
 * namespace, files that are missing or odd. */
#include "topo/cgroup.h"

#include "tests/test.h"
#include "topo/tree_test.h"

#define NONE HEDDLE_CGROUP_NO_LIMIT

TEST(texts)
{
    CHECK_NEAR(heddle_cgroup_cpu_max("150000 100000"), 1.5, 1e-12);
    CHECK_NEAR(heddle_cgroup_cpu_max("max 100000"), 0.0, 0.0);
    CHECK_NEAR(heddle_cgroup_cpu_max("150000"), 0.0, 0.0);
    CHECK_NEAR(heddle_cgroup_cpu_max("150000 0"), 0.0, 0.0);
    CHECK_NEAR(heddle_cgroup_cpu_max(""), 0.0, 0.0);
    CHECK_NEAR(heddle_cgroup_cfs("-1", "100000"), 0.0, 0.0);
    CHECK_NEAR(heddle_cgroup_cfs("50000", "100000"), 0.5, 1e-12);
    CHECK_EQ(heddle_cgroup_bytes("4096"), 4096);
    CHECK(heddle_cgroup_bytes("max") == NONE);
    CHECK(heddle_cgroup_bytes("9223372036854771712") == NONE);
    CHECK(heddle_cgroup_bytes("") == NONE);
}

TEST(nothing_there)
{
    struct test_tree t;
    struct heddle_cgroup g;

    test_tree_init(&t);
    heddle_cgroup_read(t.root, &g);
    CHECK_NEAR(g.cpus, 0.0, 0.0);
    CHECK(g.memory_limit == NONE && g.memory_available == NONE);
    test_tree_file(&t, "/proc/self/cgroup", "garbage\n0::\n:::");
    test_tree_file(&t, "/proc/self/mountinfo", "garbage\n1 2 3 - cgroup2\n - ");
    heddle_cgroup_read(t.root, &g);
    CHECK_NEAR(g.cpus, 0.0, 0.0);
    CHECK(g.memory_limit == NONE && g.memory_available == NONE);
    test_tree_fini(&t);
}

TEST(v2_strictest_level_wins)
{
    struct test_tree t;
    struct heddle_cgroup g;

    test_tree_init(&t);
    test_tree_file(&t, "/proc/self/cgroup", "0::/job/step");
    test_tree_file(&t, "/proc/self/mountinfo",
                   "22 1 0:21 / / rw - ext4 /dev/sda rw\n"
                   "30 22 0:26 / /cg\\040two rw shared:4 - cgroup2 none rw");
    test_tree_file(&t, "/cg two/job/step/cpu.max", "400000 100000");
    test_tree_file(&t, "/cg two/job/cpu.max", "250000 100000");
    test_tree_file(&t, "/cg two/cpu.max", "max 100000");
    test_tree_file(&t, "/cg two/job/step/memory.max", "max");
    test_tree_file(&t, "/cg two/job/memory.max", "1000000");
    test_tree_file(&t, "/cg two/job/memory.high", "900000");
    test_tree_file(&t, "/cg two/job/memory.current", "300000");
    test_tree_file(&t, "/cg two/job/memory.stat",
                   "anon 1\ninactive_file_x 7\ninactive_file 100000\nfile 2");
    heddle_cgroup_read(t.root, &g);
    CHECK_NEAR(g.cpus, 2.5, 1e-12);
    CHECK_EQ(g.memory_limit, 900000);
    CHECK_EQ(g.memory_available, 700000);
    test_tree_fini(&t);
}

TEST(v1_two_hierarchies)
{
    struct test_tree t;
    struct heddle_cgroup g;

    test_tree_init(&t);
    test_tree_file(&t, "/proc/self/cgroup",
                   "9:cpuset:/other\n4:memory:/m/n\n3:cpu,cpuacct:/c\n0::/");
    test_tree_file(&t, "/proc/self/mountinfo",
                   "31 1 0:1 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
                   "32 1 0:2 / /cg/cpu rw - cgroup cgroup rw,cpuacct,cpu\n"
                   "33 1 0:3 / /cg/memory rw - cgroup cgroup rw,memory\n"
                   "34 1 0:4 / /cg/unified rw - cgroup2 cgroup2 rw");
    test_tree_file(&t, "/cg/cpu/c/cpu.cfs_quota_us", "50000");
    test_tree_file(&t, "/cg/cpu/c/cpu.cfs_period_us", "100000");
    test_tree_file(&t, "/cg/cpu/cpu.cfs_quota_us", "-1");
    test_tree_file(&t, "/cg/cpu/cpu.cfs_period_us", "100000");
    test_tree_file(&t, "/cg/cpuset/other/cpu.cfs_quota_us", "1");
    test_tree_file(&t, "/cg/memory/m/n/memory.limit_in_bytes", "9223372036854771712");
    test_tree_file(&t, "/cg/memory/m/memory.limit_in_bytes", "5000");
    test_tree_file(&t, "/cg/memory/m/memory.usage_in_bytes", "7000");
    test_tree_file(&t, "/cg/memory/m/memory.stat", "total_inactive_file 500");
    heddle_cgroup_read(t.root, &g);
    CHECK_NEAR(g.cpus, 0.5, 1e-12);
    CHECK_EQ(g.memory_limit, 5000);
    CHECK_EQ(g.memory_available, 0); /* used beyond the limit */
    test_tree_fini(&t);
}

/* A container's mount shows its own group at the top. */
TEST(container_mounts)
{
    static const char *const mine[] = {
        "0::/docker/abc",  /* no namespace: the path repeats the top */
        "0::/",            /* own namespace */
        "0::/../elsewhere" /* moved out of the namespace */
    };
    static const char *const top[] = {"/docker/abc", "/", "/"};
    struct heddle_cgroup g;

    for (int i = 0; i < 3; i++) {
        struct test_tree t;

        test_tree_init(&t);
        test_tree_file(&t, "/proc/self/cgroup", "%s", mine[i]);
        test_tree_file(&t, "/proc/self/mountinfo", "30 22 0:26 %s /cg rw - cgroup2 none rw",
                       top[i]);
        test_tree_file(&t, "/cg/cpu.max", "100000 100000");
        heddle_cgroup_read(t.root, &g);
        CHECK_NEAR(g.cpus, 1.0, 1e-12);
        test_tree_fini(&t);
    }
}

TEST(this_machine)
{
    struct heddle_cgroup g;

    heddle_cgroup_read("", &g);
    CHECK(g.cpus >= 0.0);
    CHECK(g.memory_available <= g.memory_limit);
}

TEST_MAIN(texts, nothing_there, v2_strictest_level_wins, v1_two_hierarchies, container_mounts,
          this_machine)
