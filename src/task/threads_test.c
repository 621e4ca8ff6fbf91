/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deps with real threads: a submitter and workers, with nothing between them that would
 * order more than the edges do.
 */
#include "base/alloc.h"
#include "base/ring.h"
#include "base/rng.h"
#include "base/thread.h"
#include "task/task.h"
#include "tests/test.h"

enum { ENGINE_UNITS = 6, ENGINE_WORKERS = 3, ENGINE_OPS = 4 };

/*
 * A submitter and workers, with nothing between them that would order more than
 * the edges do: what the submitter makes ready goes through a ring, what a worker
 * makes ready it runs itself. Data are plain memory, so that TSan sees an order
 * that is missing; a writer counts the version up, everybody knows which version
 * it must find.
 */
struct engine {
    struct heddle_pool pool;
    struct heddle_slab slab;
    struct heddle_registry reg;
    struct heddle_ring ring;
    heddle_handle *unit[ENGINE_UNITS];
    uint32_t expected[ENGINE_UNITS]; /* the submitter's */
    uint32_t version[ENGINE_UNITS];  /* the tasks' */
    _Atomic size_t left;
};

/* flags: number of operands, then two bits of mode for each. */
static void engine_run(struct engine *e, const struct heddle_cell *c)
{
    uint32_t want[ENGINE_OPS];

    memcpy(want, c->arg, sizeof(want));
    for (unsigned i = 0; i < (c->flags & 0xff); i++) {
        uint32_t *v = &e->version[c->op[i]->id - 1];

        CHECK_EQ(*v, want[i]);
        if ((c->flags >> (8 + 2 * i) & 3) != HEDDLE_R)
            *v = want[i] + 1;
    }
}

/* Runs a task and all that it makes ready. */
static void engine_work(struct engine *e, struct heddle_returns *returns, struct heddle_cell *c)
{
    struct heddle_sched_task *stack = NULL;

    for (;;) {
        uint32_t node, next;

        engine_run(e, c);
        node = (uint32_t)heddle_xchg_acqrel(&c->succ, (uint64_t)c->gen << 32 | HEDDLE_ENDED);
        for (; node != 0; node = next) {
            struct heddle_cell *w = heddle_edge_owner(&e->pool, node, &next);

            if (heddle_load_acq(&w->ndeps) == 1 || heddle_sub_acqrel(&w->ndeps, 1) == 1) {
                w->sched.link[0] = stack;
                stack = &w->sched;
            }
        }
        heddle_cell_return(returns, c);
        heddle_sub_acqrel(&e->left, (size_t)1);
        if (stack == NULL)
            return;
        c = (void *)((char *)stack - offsetof(struct heddle_cell, sched));
        stack = stack->link[0];
    }
}

static void *engine_worker(void *arg)
{
    struct engine *e = arg;
    struct heddle_returns returns;

    CHECK_OK(heddle_returns_init(&returns, &e->pool, 1));
    while (heddle_load_acq(&e->left) != 0) {
        void *item[4];
        const size_t n = heddle_ring_claim(&e->ring, item, 4, 2);

        for (size_t i = 0; i < n; i++)
            engine_work(e, &returns, item[i]);
        if (n == 0) {
            heddle_returns_flush(&returns);
            heddle_thread_yield();
        }
    }
    heddle_returns_flush(&returns);
    heddle_returns_fini(&returns, &e->pool);
    return NULL;
}

static struct heddle_dep *engine_find(struct heddle_domain *d, heddle_handle *unit)
{
    (void)d;
    return &unit->dep;
}

/* R, W and RW of different units. Reads are frequent, so that writers have more
 * edges than fit into a cell. */
static struct heddle_cell *engine_make(struct engine *e, struct heddle_rng *rng,
                                       struct heddle_access *acc, unsigned *nops_out)
{
    struct heddle_cell *c = heddle_slab_take(&e->slab);
    const unsigned nops = 1 + heddle_rng_below32(rng, ENGINE_OPS);
    const uint32_t first = heddle_rng_below32(rng, ENGINE_UNITS);
    uint32_t want[ENGINE_OPS] = {0};

    CHECK(c != NULL);
    heddle_store_rlx(&c->succ, (uint64_t)c->gen << 32);
    c->ext = 0;
    c->flags = nops;
    for (unsigned i = 0; i < nops; i++) {
        const unsigned u = (first + i) % ENGINE_UNITS;
        const bool reads = heddle_rng_below32(rng, 8) != 0;

        acc[i].unit = c->op[i] = e->unit[u];
        acc[i].dep = &e->unit[u]->dep;
        acc[i].mode = reads ? HEDDLE_R : HEDDLE_RW;
        c->flags |= (uint32_t)acc[i].mode << (8 + 2 * i);
        want[i] = e->expected[u];
        e->expected[u] += !reads;
    }
    memcpy(c->arg, want, sizeof(want));
    *nops_out = nops;
    return c;
}

static void engine_submit(struct engine *e, struct heddle_domain *d, struct heddle_rng *rng)
{
    struct heddle_access acc[ENGINE_OPS];
    unsigned nops;
    struct heddle_cell *c = engine_make(e, rng, acc, &nops);
    uint32_t m;

    CHECK_OK(heddle_deps_prepare(d, acc, nops, 0));
    m = heddle_deps_collect(d, acc, nops);
    CHECK_OK(heddle_deps_spill(&e->slab, c, m));
    heddle_deps_update(d, acc, nops, heddle_cell_ref(c));
    if (m == 0 || heddle_deps_link(&e->slab, c, m))
        while (!heddle_ring_push(&e->ring, c))
            heddle_thread_yield();
}

TEST(stress_four_threads)
{
    const size_t ntasks = test_scale(200000);
    static struct engine e;
    struct heddle_thread worker[ENGINE_WORKERS];
    struct heddle_domain d = {.slab = &e.slab, .find = engine_find};
    struct heddle_layout l = {.dtype = HEDDLE_U8, .ndim = 1, .extent = {1}};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    heddle_registry_init(&e.reg, NULL, &heddle_allocator_default);
    CHECK_OK(heddle_pool_init(&e.pool, &heddle_allocator_default));
    heddle_slab_init(&e.slab, &e.pool);
    CHECK_OK(heddle_ring_init(&e.ring, NULL, 256));
    for (int i = 0; i < ENGINE_UNITS; i++)
        CHECK_OK(heddle_unit_create(&e.reg, &l, NULL, &e.unit[i]));
    atomic_store(&e.left, ntasks);
    for (int i = 0; i < ENGINE_WORKERS; i++)
        CHECK_OK(heddle_thread_create(&worker[i], NULL, engine_worker, &e));
    for (size_t i = 0; i < ntasks; i++) {
        engine_submit(&e, &d, &rng);
        while (e.slab.in_use > 4000) { /* a window */
            heddle_slab_collect(&e.slab);
            heddle_thread_yield();
        }
    }
    for (int i = 0; i < ENGINE_WORKERS; i++)
        CHECK_OK(heddle_thread_join(&worker[i]));
    heddle_slab_collect(&e.slab);
    CHECK_EQ(e.slab.in_use, 0);
    for (int i = 0; i < ENGINE_UNITS; i++) {
        CHECK_EQ(e.version[i], e.expected[i]);
        CHECK(heddle_unit_destroy(e.unit[i]) == NULL);
    }
    heddle_ring_fini(&e.ring, NULL);
    heddle_slab_fini(&e.slab);
    heddle_pool_fini(&e.pool);
    heddle_registry_fini(&e.reg);
}

TEST_MAIN(stress_four_threads)
