/* SPDX-License-Identifier: BSD-3-Clause */
/* order: binding and stealing on machines of several shapes, made by hand. */
#include "base/alloc.h"
#include "tests/test.h"
#include "topo/topo.h"
#include "topo/tree_test.h"

/* One machine at a time is enough, so its CPUs live here. */
static struct heddle_topo_cpu cpus[64];

/* What heddle_topo_create() finds on such a machine, when only the CPUs of
 * `mask` are usable. */
static struct heddle_topo make(const struct test_shape *s, uint64_t mask)
{
    const int all = s->packages * s->cores;
    int core_of[64], ncores = 0;
    struct heddle_topo t = {
        .a = heddle_allocator_default,
        .cpu = cpus,
        .npackages = (unsigned)s->packages,
        .nl2 = (unsigned)(all / s->l2_cores),
        .nl3 = (unsigned)(all / s->l3_cores),
    };

    for (int i = 0; i < 64; i++)
        core_of[i] = -1;
    for (int os = 0; os < all * s->smt; os++) {
        const int core = os % all;

        if ((mask >> os & 1) == 0)
            continue;
        cpus[t.ncpus++] = (struct heddle_topo_cpu){
            .os = os,
            .core = core_of[core] < 0 ? ncores : core_of[core],
            .package = core / s->cores,
            .node = core / (s->cores / s->nodes),
            .l2 = core / s->l2_cores,
            .l3 = core / s->l3_cores,
            .smt = core_of[core] < 0 ? 0 : 1,
        };
        if (core_of[core] < 0)
            core_of[core] = ncores++;
    }
    t.ncores = (unsigned)ncores;
    return t;
}

static const struct test_shape laptop = {
    .packages = 1, .cores = 4, .smt = 2, .l2_cores = 1, .l3_cores = 4, .nodes = 1};
/* Two sockets of two L3 groups each, L2 shared by two cores. */
static const struct test_shape server = {
    .packages = 2, .cores = 8, .smt = 2, .l2_cores = 2, .l3_cores = 4, .nodes = 2};

TEST(distances)
{
    const struct heddle_topo t = make(&server, UINT64_MAX);

    CHECK_EQ(heddle_topo_distance(&t, 0, 0), HEDDLE_TOPO_SAME);
    CHECK_EQ(heddle_topo_distance(&t, 0, 16), HEDDLE_TOPO_CORE);
    CHECK_EQ(heddle_topo_distance(&t, 0, 1), HEDDLE_TOPO_L2);
    CHECK_EQ(heddle_topo_distance(&t, 0, 17), HEDDLE_TOPO_L2);
    CHECK_EQ(heddle_topo_distance(&t, 0, 3), HEDDLE_TOPO_L3);
    CHECK_EQ(heddle_topo_distance(&t, 0, 4), HEDDLE_TOPO_PACKAGE);
    CHECK_EQ(heddle_topo_distance(&t, 0, 8), HEDDLE_TOPO_MACHINE);
    CHECK_EQ(heddle_topo_distance(&t, 8, 0), HEDDLE_TOPO_MACHINE);
    CHECK_EQ(heddle_topo_distance(&t, 0, 99), HEDDLE_TOPO_MACHINE);
    CHECK_EQ(heddle_topo_distance(&t, -1, -1), HEDDLE_TOPO_MACHINE);
}

static void check_bind(const struct heddle_topo *t, unsigned n, const int *want)
{
    int got[64];

    CHECK(n < 64);
    got[n] = -77;
    CHECK_OK(heddle_topo_bind_order(t, n, got));
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(got[i], want[i]);
    CHECK_EQ(got[n], -77);
}

TEST(bind_laptop)
{
    const struct heddle_topo t = make(&laptop, UINT64_MAX);

    check_bind(&t, 0, NULL);
    check_bind(&t, 1, (const int[]){0});
    check_bind(&t, 4, (const int[]){0, 1, 2, 3});
    check_bind(&t, 6, (const int[]){0, 1, 2, 3, 4, 5});
    check_bind(&t, 10, (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 0, 1});
}

TEST(bind_server)
{
    const struct heddle_topo t = make(&server, UINT64_MAX);

    /* One package while it has cores, spread over its two L3 groups. */
    check_bind(&t, 2, (const int[]){0, 4});
    check_bind(&t, 4, (const int[]){0, 1, 4, 5});
    check_bind(&t, 8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
    /* Both packages, still one worker per core, evenly. */
    check_bind(&t, 10, (const int[]){0, 1, 2, 4, 5, 6, 8, 9, 12, 13});
    check_bind(&t, 18, (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
}

/* Numbers that alternate between packages, caches unknown. */
TEST(bind_alternating_numbers)
{
    struct heddle_topo t = {
        .a = heddle_allocator_default, .cpu = cpus, .ncpus = 8, .ncores = 8, .npackages = 2};

    for (int i = 0; i < 8; i++)
        cpus[i] =
            (struct heddle_topo_cpu){.os = i, .core = i, .package = i % 2, .l2 = -1, .l3 = -1};
    check_bind(&t, 3, (const int[]){0, 2, 4});
    check_bind(&t, 5, (const int[]){0, 2, 4, 1, 3});
    CHECK_EQ(heddle_topo_distance(&t, 0, 2), HEDDLE_TOPO_NODE);
}

/* A cpuset that leaves one core here and four there: the four first. */
TEST(bind_larger_package_first)
{
    const uint64_t usable =
        UINT64_C(1) << 3 | UINT64_C(0xf) << 8 | UINT64_C(1) << 27; /* 27 is the twin of 11 */
    const struct heddle_topo t = make(&server, usable);

    CHECK_EQ(t.ncores, 5);
    check_bind(&t, 4, (const int[]){8, 9, 10, 11});
    check_bind(&t, 5, (const int[]){3, 8, 9, 10, 11});
    check_bind(&t, 7, (const int[]){3, 8, 9, 10, 11, 27, 3});
}

static void check_steal(const struct heddle_topo *t, const int *cpu, unsigned n, unsigned self,
                        const unsigned *want)
{
    unsigned got[64];

    got[n - 1] = 77;
    CHECK_OK(heddle_topo_steal_order(t, cpu, n, self, got));
    for (unsigned i = 0; i + 1 < n; i++)
        CHECK_EQ(got[i], want[i]);
    CHECK_EQ(got[n - 1], 77);
}

TEST(steal_near_first)
{
    /* worker:            0  1  2  3  4  5  6 */
    static const int cpu[] = {0, 8, 4, 3, 1, 16, 0};
    static const int loose[] = {-1, -1, -1};
    const struct heddle_topo t = make(&server, UINT64_MAX);
    unsigned out[8];

    check_steal(&t, cpu, 7, 0, (const unsigned[]){6, 5, 4, 3, 2, 1});
    check_steal(&t, cpu, 7, 2, (const unsigned[]){3, 4, 5, 6, 0, 1});
    check_steal(&t, cpu, 1, 0, NULL);
    check_steal(&t, loose, 3, 1, (const unsigned[]){2, 0});
    CHECK_STATUS(heddle_topo_steal_order(&t, cpu, 7, 7, out), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_topo_steal_order(&t, cpu, 0, 0, out), HEDDLE_EINVAL);
}

TEST_MAIN(distances, bind_laptop, bind_server, bind_alternating_numbers, bind_larger_package_first,
          steal_near_first)
