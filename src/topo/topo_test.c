/* SPDX-License-Identifier: BSD-3-Clause */
/* topo: recorded shapes, this machine through every source, allocation
 * failures, affinity. */
#include "topo/topo.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "tests/test.h"
#include "topo/source.h"
#include "topo/tree_test.h"

/* Fails every allocation after `left` and counts what is alive. */
struct faulty {
    size_t left;
    long long live;
};

static void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;

    if (f->left == 0)
        return NULL;
    f->left--;
    f->live += (long long)bytes;
    return heddle_alloc_aligned(NULL, bytes, align);
}

static void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;

    f->live -= (long long)bytes;
    heddle_free(NULL, ptr, bytes);
}

/* The invariants of topo.c and memory.c. */
static void check_valid(const struct heddle_topo *t)
{
    unsigned ncpus = 0;

    CHECK(t->ncpus >= 1 && t->nnodes >= 1 && t->source != NULL);
    CHECK(t->ncores >= 1 && t->ncores <= t->ncpus);
    CHECK(t->npackages >= 1 && t->npackages <= t->ncores);
    CHECK(t->ncpus_online >= t->ncpus);
    CHECK(t->memory_available <= t->memory_total);
    CHECK(t->model[0] != '\0');
    for (unsigned i = 0; i < t->ncpus; i++) {
        const struct heddle_topo_cpu *c = &t->cpu[i];

        CHECK(i == 0 || t->cpu[i - 1].os < c->os);
        CHECK(c->core >= 0 && c->core < (int)t->ncores);
        CHECK(c->package >= 0 && c->package < (int)t->npackages);
        CHECK(c->node >= 0 && c->node < (int)t->nnodes);
        CHECK(c->l2 >= -1 && c->l2 < (int)t->nl2);
        CHECK(c->l3 >= -1 && c->l3 < (int)t->nl3);
        CHECK_EQ(heddle_topo_find(t, c->os), i);
    }
    for (unsigned n = 0; n < t->nnodes; n++)
        ncpus += t->node[n].ncpus;
    CHECK_EQ(ncpus, t->ncpus);
    CHECK(heddle_topo_default_workers(t) >= 1);
    CHECK(heddle_topo_default_workers(t) <= t->ncores);
}

TEST(two_sockets)
{
    static const struct test_shape shape = {
        .packages = 2, .cores = 4, .smt = 2, .l2_cores = 1, .l3_cores = 2, .nodes = 2};
    struct test_tree tree;
    const struct heddle_topo_opts o = {.root = tree.root};
    struct heddle_topo *t = NULL;

    test_tree_init(&tree);
    test_tree_machine(&tree, &shape);
    CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
    check_valid(t);
    CHECK_STR(t->source, "sysfs"); /* hwloc reads the real machine only */
    CHECK_STR(t->model, "Test CPU @ 2 GHz");
    CHECK_EQ(t->ncpus, 16);
    CHECK_EQ(t->ncores, 8);
    CHECK_EQ(t->npackages, 2);
    CHECK_EQ(t->nl2, 8);
    CHECK_EQ(t->nl3, 4);
    CHECK_EQ(t->nnodes, 4);
    CHECK_EQ(t->cpu[10].os, 10);
    CHECK_EQ(t->cpu[10].core, t->cpu[2].core);
    CHECK_EQ(t->cpu[10].smt, 1);
    CHECK_EQ(t->cpu[2].smt, 0);
    CHECK_EQ(t->cpu[10].node, 1);
    CHECK_EQ(t->cpu[10].l1_bytes, 48 << 10);
    CHECK_EQ(t->cpu[10].l2_bytes, 2 << 20);
    CHECK_EQ(t->cpu[10].l3_bytes, 32 << 20);
    CHECK_EQ(t->node[3].os, 3);
    CHECK_EQ(t->node[3].ncpus, 4);
    CHECK_EQ(t->node[3].total_bytes, 4096 << 10);
    CHECK_EQ(t->node[3].free_bytes, 1600 << 10);
    CHECK_EQ(t->memory_total, 4 * 4096 << 10);
    CHECK_EQ(t->memory_available, 4 * 2048 << 10);
    CHECK_EQ(t->huge_page_bytes, 2 << 20);
    CHECK_EQ(heddle_topo_default_workers(t), 8);
    heddle_topo_destroy(t);
    test_tree_fini(&tree);
}

TEST(limits)
{
    static const struct test_shape shape = {
        .packages = 1, .cores = 8, .smt = 1, .l2_cores = 1, .l3_cores = 0, .nodes = 1};
    struct test_tree tree;
    const struct heddle_topo_opts o = {.root = tree.root};
    struct heddle_topo *t = NULL;

    test_tree_init(&tree);
    test_tree_machine(&tree, &shape);
    test_tree_file(&tree, "/proc/self/cgroup", "0::/");
    test_tree_file(&tree, "/proc/self/mountinfo", "30 22 0:26 / /cg rw - cgroup2 none rw");
    test_tree_file(&tree, "/cg/cpu.max", "210000 100000");
    test_tree_file(&tree, "/cg/memory.max", "1000000");
    test_tree_file(&tree, "/cg/memory.current", "400000");
    CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
    check_valid(t);
    CHECK_EQ(heddle_topo_default_workers(t), 3);
    CHECK_EQ(t->memory_total, 1000000);
    CHECK_EQ(t->memory_available, 600000);
    CHECK_EQ(t->node[0].total_bytes, 1000000);
    heddle_topo_destroy(t);

    test_tree_file(&tree, "/cg/cpu.max", "1000 100000");
    CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
    CHECK_EQ(heddle_topo_default_workers(t), 1);
    heddle_topo_destroy(t);
    test_tree_file(&tree, "/cg/cpu.max", "9900000 100000");
    CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
    CHECK_EQ(heddle_topo_default_workers(t), 8);
    heddle_topo_destroy(t);
    test_tree_fini(&tree);
}

/* A cpuset without the first socket, whose memory is not allowed either, and
 * a node that has memory only. */
TEST(cpusets)
{
    static const struct test_shape shape = {
        .packages = 2, .cores = 2, .smt = 2, .l2_cores = 1, .l3_cores = 2, .nodes = 1};
    static const int cpus[] = {7, 2, 3, 6};
    struct test_tree tree;
    const struct heddle_topo_opts o = {.root = tree.root, .cpus = cpus, .ncpus = 4};
    struct heddle_topo *t = NULL;

    test_tree_init(&tree);
    test_tree_machine(&tree, &shape);
    test_tree_file(&tree, "/sys/devices/system/node/online", "0-2");
    test_tree_file(&tree, "/sys/devices/system/node/node2/cpulist", "%s", "");
    test_tree_file(&tree, "/proc/self/status", "Name:\tx\nMems_allowed_list:\t1-2");
    CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
    check_valid(t);
    CHECK_EQ(t->ncpus, 4);
    CHECK_EQ(t->ncpus_online, 8);
    CHECK_EQ(t->ncores, 2);
    CHECK_EQ(t->npackages, 1);
    CHECK_EQ(t->nl3, 1);
    CHECK_EQ(t->cpu[3].os, 7);
    CHECK_EQ(t->cpu[3].smt, 1);
    CHECK_EQ(t->nnodes, 2);
    CHECK_EQ(t->node[0].os, 1);
    CHECK_EQ(t->node[0].ncpus, 4);
    CHECK_EQ(t->node[1].os, 2);
    CHECK_EQ(t->node[1].ncpus, 0);
    CHECK_EQ(heddle_topo_find(t, 0), -1);
    CHECK_EQ(heddle_topo_find(t, 99), -1);
    heddle_topo_destroy(t);
    test_tree_fini(&tree);
}

TEST(bare_machine)
{
    struct test_tree tree;
    static const int cpus[] = {0, 1, 2}, twice[] = {1, 1}, huge[] = {1 << 20}, negative[] = {-1};
    struct heddle_topo_opts o = {.root = tree.root};
    struct heddle_topo *t = NULL;

    test_tree_init(&tree);
    CHECK_STATUS(heddle_topo_create_with(NULL, &o, &t), HEDDLE_ENOENT);
    o.cpus = twice;
    o.ncpus = 2;
    CHECK_STATUS(heddle_topo_create_with(NULL, &o, &t), HEDDLE_EINVAL);
    o.cpus = huge;
    o.ncpus = 1;
    CHECK_STATUS(heddle_topo_create_with(NULL, &o, &t), HEDDLE_EINVAL);
    o.cpus = negative;
    CHECK_STATUS(heddle_topo_create_with(NULL, &o, &t), HEDDLE_EINVAL);
    o.cpus = cpus;
    o.ncpus = 3;
    o.source = "nonsense";
    CHECK_STATUS(heddle_topo_create_with(NULL, &o, &t), HEDDLE_ENOENT);
    o.source = NULL;
    CHECK(t == NULL);
    /* Not one file: CPUs are cores of one package on one node. */
    CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
    check_valid(t);
    CHECK_EQ(t->ncores, 3);
    CHECK_EQ(t->npackages, 1);
    CHECK_EQ(t->nnodes, 1);
    CHECK_EQ(t->memory_total, 0);
    heddle_topo_destroy(t);
    heddle_topo_destroy(NULL);
    test_tree_fini(&tree);
}

TEST(this_machine_by_every_source)
{
    unsigned ncpus = 0;
    struct heddle_topo *first = NULL;

    CHECK_OK(heddle_thread_get_cpus(NULL, 0, &ncpus));
    CHECK_OK(heddle_topo_create(NULL, &first));
    check_valid(first);
    CHECK_EQ(first->ncpus, ncpus);
    CHECK(first->memory_total > 0);
    for (unsigned i = 0; heddle_topo_sources[i] != NULL; i++) {
        const struct heddle_topo_opts o = {.source = heddle_topo_sources[i]->name};
        struct heddle_topo *t = NULL;

        CHECK_OK(heddle_topo_create_with(NULL, &o, &t));
        check_valid(t);
        CHECK_STR(t->source, o.source);
        CHECK_EQ(t->ncpus, first->ncpus);
        CHECK_EQ(t->nnodes, first->nnodes);
        heddle_topo_destroy(t);
    }
    heddle_topo_destroy(first);
}

static void *bound(void *arg)
{
    struct heddle_topo *t = NULL;

    (void)arg;
    CHECK_OK(heddle_topo_create(NULL, &t));
    check_valid(t);
    CHECK_EQ(t->ncpus, 1);
    CHECK_EQ(heddle_topo_default_workers(t), 1);
    heddle_topo_destroy(t);
    return NULL;
}

TEST(affinity_is_honoured)
{
    int cpu = -1;
    unsigned n = 0;
    struct heddle_thread th;
    const struct heddle_thread_opts o = {.cpus = &cpu, .ncpus = 1};

    CHECK_OK(heddle_thread_get_cpus(&cpu, 1, &n));
    CHECK_OK(heddle_thread_create(&th, &o, bound, NULL));
    CHECK_OK(heddle_thread_join(&th));
}

TEST(allocation_failures)
{
    bool is_done = false;

    for (size_t k = 0; !is_done; k++) {
        struct faulty f = {.left = k};
        const struct heddle_allocator a = {faulty_alloc, faulty_free, &f};
        struct heddle_topo *t = NULL;
        int cpu[3];
        heddle_status st = heddle_topo_create(&a, &t);

        if (st == HEDDLE_OK)
            st = heddle_topo_bind_order(t, 3, cpu);
        is_done = st == HEDDLE_OK;
        if (!is_done)
            CHECK_STATUS(st, HEDDLE_ENOMEM);
        heddle_topo_destroy(t);
        CHECK_EQ(f.live, 0);
        CHECK(k < 20);
    }
}

TEST_MAIN(two_sockets, limits, cpusets, bare_machine, this_machine_by_every_source,
          affinity_is_honoured, allocation_failures)
