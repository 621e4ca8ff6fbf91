/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab: cells come out once, come back with their further cells under a new
 * generation, in batches; all interleavings of two threads that return batches
 * and the owner that collects (see model_test.h for the memory model); a stress
 * test with real threads; each allocation failing.
 */
#include "base/model_test.h"

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/ring.h"
#include "base/thread.h"
#include "task/slab.c" /* the code under test, over modelled atomics */

struct setup {
    struct faulty f;
    struct heddle_pool pool;
    struct heddle_slab slab;
    struct heddle_returns returns;
};

static void setup_init(struct setup *s)
{
    faulty_init(&s->f, 0);
    CHECK_OK(heddle_pool_init(&s->pool, &s->f.a));
    heddle_slab_init(&s->slab, &s->pool);
    CHECK_OK(heddle_returns_init(&s->returns, &s->pool, 1));
}

static void setup_fini(struct setup *s)
{
    heddle_returns_fini(&s->returns, &s->pool);
    heddle_slab_fini(&s->slab);
    heddle_pool_fini(&s->pool);
    CHECK_EQ(s->f.nlive, 0);
}

/* What a submitter does first with a cell. */
static struct heddle_cell *take(struct heddle_slab *s)
{
    struct heddle_cell *c = heddle_slab_take(s);

    CHECK(c != NULL);
    CHECK_EQ((uintptr_t)c % 128, 0);
    CHECK(c == heddle_pool_cell(s->pool, c->self));
    CHECK(c->self % HEDDLE_CHUNK != 0 && c->gen != 0);
    CHECK(heddle_cell_home(c)->slab == s);
    /* Invariant slab(3): whatever was there before has ended. */
    CHECK_EQ((uint32_t)heddle_load_rlx(&c->succ), HEDDLE_ENDED);
    heddle_store_rlx(&c->succ, (uint64_t)c->gen << 32);
    return c;
}

/* What a worker does last with it. */
static void end(struct heddle_returns *r, struct heddle_cell *c)
{
    heddle_xchg_acqrel(&c->succ, (uint64_t)c->gen << 32 | HEDDLE_ENDED);
    heddle_cell_return(r, c);
}

TEST(cells_are_distinct_and_come_back)
{
    enum { N = 3 * HEDDLE_CHUNK };
    static struct heddle_cell *cell[N];
    static heddle_ref ref[N];
    static bool is_out[N + HEDDLE_CHUNK];
    struct setup s;

    setup_init(&s);
    for (int round = 0; round < 4; round++) {
        memset(is_out, 0, sizeof(is_out));
        for (int i = 0; i < N; i++) {
            cell[i] = take(&s.slab);
            CHECK(!is_out[cell[i]->self]);
            is_out[cell[i]->self] = true;
            ref[i] = heddle_cell_ref(cell[i]);
            CHECK(heddle_ref_live(&s.slab, ref[i]) == cell[i]);
        }
        CHECK_EQ(s.slab.in_use, N);
        for (int i = 0; i < N; i++) {
            end(&s.returns, cell[i]);
            CHECK(heddle_ref_live(&s.slab, ref[i]) == NULL); /* has ended */
        }
        heddle_returns_flush(&s.returns);
        heddle_slab_collect(&s.slab);
        CHECK_EQ(s.slab.in_use, 0);
        /* The first cell of a chunk is no task, so a little over three chunks;
         * and no more later. */
        CHECK_EQ(s.slab.ncells, 4 * (HEDDLE_CHUNK - 1));
        for (int i = 0; i < N; i++)
            CHECK(heddle_ref_live(&s.slab, ref[i]) == NULL); /* collected */
    }
    CHECK(heddle_ref_live(&s.slab, 0) == NULL);
    setup_fini(&s);
}

TEST(a_new_generation_for_each_use)
{
    struct heddle_chunk *k;
    struct heddle_cell *c;
    heddle_ref old;
    struct setup s;

    setup_init(&s);
    c = take(&s.slab);
    old = heddle_cell_ref(c);
    end(&s.returns, c);
    heddle_returns_flush(&s.returns);
    heddle_slab_collect(&s.slab);
    CHECK(take(&s.slab) == c); /* the warmest first */
    CHECK_EQ(heddle_cell_ref(c) - old, UINT64_C(1) << 32);
    CHECK(heddle_ref_live(&s.slab, old) == NULL);
    CHECK(heddle_ref_live(&s.slab, heddle_cell_ref(c)) == c);
    /* The last generation is followed by 1: 0 would make a ref of "none". */
    k = heddle_pool_chunk(&s.pool, c->self);
    k->gen[c->self % HEDDLE_CHUNK] = c->gen = UINT32_MAX;
    end(&s.returns, c);
    heddle_returns_flush(&s.returns);
    heddle_slab_collect(&s.slab);
    CHECK(take(&s.slab) == c);
    CHECK_EQ(c->gen, 1);
    setup_fini(&s);
}

TEST(batches_are_handed_over_when_full)
{
    struct heddle_cell *cell[HEDDLE_BATCH + 1];
    struct setup s;

    setup_init(&s);
    for (int i = 0; i <= HEDDLE_BATCH; i++)
        cell[i] = take(&s.slab);
    for (int i = 0; i < HEDDLE_BATCH; i++)
        end(&s.returns, cell[i]);
    CHECK_EQ(heddle_load_rlx(&s.slab.returned), 0);
    end(&s.returns, cell[HEDDLE_BATCH]);
    CHECK(heddle_load_rlx(&s.slab.returned) != 0);
    heddle_slab_collect(&s.slab);
    CHECK_EQ(s.slab.in_use, 0);
    /* A hungry owner gets each cell at once. */
    heddle_store_rlx(&s.slab.is_hungry, 1u);
    end(&s.returns, take(&s.slab));
    CHECK(heddle_load_rlx(&s.slab.returned) != 0);
    heddle_slab_collect(&s.slab);
    CHECK_EQ(s.slab.in_use, 0);
    /* Nothing half filled is left behind. */
    heddle_returns_flush(&s.returns);
    CHECK_EQ(heddle_load_rlx(&s.slab.returned), 0);
    setup_fini(&s);
}

/* Without an explicit collect, a stream with a small window stays in its cells. */
TEST(the_steady_state_allocates_nothing)
{
    struct heddle_cell *cell[100] = {NULL};
    struct setup s;
    size_t before;

    setup_init(&s);
    take(&s.slab);
    before = s.f.ncalls;
    for (size_t i = 0; i < test_scale(100000); i++) {
        struct heddle_cell **c = &cell[i % 100];

        if (*c != NULL)
            end(&s.returns, *c);
        *c = take(&s.slab);
    }
    CHECK_EQ(s.f.ncalls, before);
    CHECK_EQ(s.slab.ncells, HEDDLE_CHUNK - 1);
    setup_fini(&s);
}

TEST(further_cells_follow_the_first)
{
    struct heddle_cell *c, *f[3], *g;
    heddle_ref ref;
    struct setup s;

    setup_init(&s);
    c = take(&s.slab);
    for (int i = 0; i < 3; i++) {
        f[i] = heddle_slab_take_further(&s.slab, c);
        CHECK(f[i] != NULL && f[i] != c);
        memset(f[i]->bytes, 0xee, sizeof(f[i]->bytes)); /* all but succ */
    }
    g = take(&s.slab);
    CHECK_EQ(s.slab.in_use, 5);
    ref = heddle_cell_ref(c);
    end(&s.returns, c);
    heddle_returns_flush(&s.returns);
    heddle_slab_collect(&s.slab);
    CHECK_EQ(s.slab.in_use, 1);
    CHECK(heddle_ref_live(&s.slab, ref) == NULL);
    for (int i = 0; i < 4; i++) { /* they come out again, as good as new */
        struct heddle_cell *n = take(&s.slab);

        CHECK(n == c || n == f[0] || n == f[1] || n == f[2]);
        CHECK_EQ(n->gen, 2);
    }
    /* Untaken: the same, without a detour. */
    for (int i = 0; i < 3; i++)
        CHECK(heddle_slab_take_further(&s.slab, g) != NULL);
    CHECK_EQ(s.slab.in_use, 8);
    ref = heddle_cell_ref(g);
    heddle_slab_untake(&s.slab, g);
    CHECK_EQ(s.slab.in_use, 4);
    CHECK(heddle_ref_live(&s.slab, ref) == NULL);
    for (int i = 0; i < 4; i++)
        CHECK(take(&s.slab) != NULL);
    setup_fini(&s);
}

/* More chunks than the first two tables of the pool hold. */
TEST(the_table_of_chunks_grows)
{
    enum { N = 40 * HEDDLE_CHUNK };
    struct heddle_cell *first = NULL;
    struct setup s;

    setup_init(&s);
    for (int i = 0; i < N; i++) {
        struct heddle_cell *c = take(&s.slab);

        c->id = (uint64_t)c->self * 3;
        if (first == NULL)
            first = c;
    }
    CHECK_EQ(s.pool.nchunks, 41);
    CHECK_EQ(s.pool.nold, 2);
    CHECK(heddle_pool_cell(&s.pool, first->self) == first);
    for (uint32_t i = 1; i < N; i += 777)
        if (i % HEDDLE_CHUNK != 0)
            CHECK_EQ(heddle_pool_cell(&s.pool, i)->id, (uint64_t)i * 3);
    setup_fini(&s);
}

TEST(a_reference_into_another_slab)
{
    struct heddle_slab other;
    struct heddle_cell *c;
    struct setup s;
    heddle_ref ref;

    setup_init(&s);
    heddle_slab_init(&other, &s.pool);
    CHECK_EQ(other.id, 1);
    c = take(&s.slab);
    ref = heddle_cell_ref(c);
    CHECK(heddle_ref_live(&other, ref) == c);
    end(&s.returns, c);
    CHECK(heddle_ref_live(&other, ref) == NULL);
    heddle_returns_flush(&s.returns);
    heddle_slab_collect(&s.slab);
    CHECK(heddle_ref_live(&other, ref) == NULL);
    CHECK(take(&s.slab) == c); /* alive, as another task */
    CHECK(heddle_ref_live(&other, ref) == NULL);
    CHECK(heddle_ref_live(&other, heddle_cell_ref(c)) == c);
    heddle_slab_fini(&other);
    setup_fini(&s);
}

/* --- model -----------------------------------------------------------------*/

enum {
    RETURNERS = 2,
    BATCHES = 2, /* per returner, of two cells each */
    COLLECTS = 3,
    CELLS = RETURNERS * BATCHES * 2
};

static _Alignas(64) struct model_state home_state;
static struct setup home;
static void (*home_collect)(struct heddle_slab *s);

/* What belongs to the owner: put back when its operation starts again. */
struct home_own {
    uint32_t free, in_use;
    uint32_t gen[1 + CELLS], next[1 + CELLS];
};

static void home_copy(struct home_own *own, bool restores)
{
    struct heddle_chunk *k = heddle_pool_chunk(&home.pool, 1);

    if (restores) {
        home.slab.free = own->free;
        home.slab.in_use = own->in_use;
        memcpy(k->gen, own->gen, sizeof(own->gen));
        memcpy(k->next, own->next, sizeof(own->next));
    } else {
        own->free = home.slab.free;
        own->in_use = home.slab.in_use;
        memcpy(own->gen, k->gen, sizeof(own->gen));
        memcpy(own->next, k->next, sizeof(own->next));
    }
}

static void home_begin(void)
{
    struct heddle_chunk *k = heddle_pool_chunk(&home.pool, 1);

    /* As after CELLS takes: 1, 2, 3, ... are out. */
    home.slab.free = 0;
    home.slab.in_use = CELLS;
    atomic_store(&home.slab.returned, 0);
    for (uint32_t i = 1; i <= CELLS; i++) {
        k->gen[i] = 1;
        k->next[i] = 0;
        memset(k->cell[i].bytes, 0, sizeof(k->cell[i].bytes));
    }
}

static void home_op(unsigned thread)
{
    struct model_thread *t = model_self();
    const uint32_t first = 1 + 2 * ((thread - 1) * BATCHES + t->op);

    if (thread == 0) {
        model.is_on = false;
        home_copy((void *)home_state.world, t->nlog != 0);
        model.is_on = true;
        home_collect(&home.slab);
        t->is_done = ++t->op == COLLECTS;
        return;
    }
    {
        struct heddle_cell *c = heddle_pool_cell(&home.pool, first);
        struct heddle_batch b = {.cell = c, .first = first, .n = 1};

        c->index[0] = first + 1;
        heddle_batch_push(&b);
    }
    t->is_done = ++t->op == BATCHES;
}

static void home_at_rest(void)
{
    struct heddle_chunk *k;
    uint32_t n = 0;

    model.is_on = false; /* what is still on its way */
    k = heddle_pool_chunk(&home.pool, 1);
    heddle_slab_collect(&home.slab);
    model.is_on = true;
    model_expect(home.slab.in_use == 0, "a cell was lost");
    for (uint32_t i = 1; i <= CELLS; i++)
        model_expect(k->gen[i] == 2, "a cell did not come home once");
    for (uint32_t i = home.slab.free; i != 0 && n <= CELLS; n++)
        i = k->next[(i - 1) % HEDDLE_CHUNK];
    model_expect(n == CELLS, "the list of free cells is broken");
}

/* Forgets what comes between the load and the store. */
static void collect_without_exchange(struct heddle_slab *s)
{
    uint32_t batch = heddle_load_acq(&s->returned);

    heddle_store_sc(&s->returned, 0u);
    while (batch != 0) {
        struct heddle_cell *c = heddle_pool_cell(s->pool, batch - 1);
        const uint32_t first = batch - 1;

        batch = c->next;
        heddle_slab_free(s, c->index[0]);
        heddle_slab_free(s, first);
    }
}

TEST(model_batches_come_home)
{
    struct heddle_chunk *k;

    setup_init(&home);
    take(&home.slab);
    k = heddle_pool_chunk(&home.pool, 1);
    model.region[0].addr = &home.slab;
    model.region[0].bytes = sizeof(home.slab);
    model.region[1].addr = k->gen;
    model.region[1].bytes = (1 + CELLS) * sizeof(k->gen[0]);
    model.region[2].addr = k->next;
    model.region[2].bytes = (1 + CELLS) * sizeof(k->next[0]);
    model.region[3].addr = &k->cell[1];
    model.region[3].bytes = CELLS * sizeof(k->cell[0]);
    home_collect = heddle_slab_collect;
    CHECK_STR(model_run(&home_state, 1 + RETURNERS, home_begin, home_op, home_at_rest, NULL), NULL);
    home_collect = collect_without_exchange;
    CHECK_STR(model_run(&home_state, 1 + RETURNERS, home_begin, home_op, home_at_rest, NULL),
              "a cell was lost");
    memset(model.region, 0, sizeof(model.region));
    setup_fini(&home);
}

/* --- no memory -------------------------------------------------------------*/

static heddle_status faulty_run(struct setup *s)
{
    heddle_status st = heddle_pool_init(&s->pool, &s->f.a);

    s->pool.has_ids = true;
    heddle_slab_init(&s->slab, &s->pool);
    if (st == HEDDLE_OK)
        st = heddle_returns_init(&s->returns, &s->pool, 1);
    for (int i = 0; i < 26 * HEDDLE_CHUNK && st == HEDDLE_OK; i++) {
        struct heddle_cell *c = heddle_slab_take(&s->slab);

        if (c == NULL)
            st = HEDDLE_ENOMEM;
        else if (i % 3 == 0) /* every other way home */
            heddle_slab_untake(&s->slab, c);
    }
    if (st == HEDDLE_ENOMEM && s->slab.ncells > 0)
        CHECK(heddle_slab_take(&s->slab) != NULL); /* once more: there is some */
    heddle_returns_fini(&s->returns, &s->pool);
    heddle_slab_fini(&s->slab);
    heddle_pool_fini(&s->pool);
    return st;
}

TEST(each_allocation_fails_once)
{
    heddle_status st = HEDDLE_ENOMEM;
    size_t k = 0;

    while (st != HEDDLE_OK) {
        struct setup s = {.slab = {.pool = NULL}};

        faulty_init(&s.f, ++k);
        st = faulty_run(&s);
        CHECK_EQ(st, s.f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(s.f.nlive, 0);
    }
    CHECK(k > 35);
}

/* --- real threads ----------------------------------------------------------*/

enum { OWNERS = 2, ENDERS = 2 };

struct owner {
    struct shared *shared;
    struct heddle_slab slab;
    struct heddle_ring ring; /* cells on their way to the enders */
};

/* Owners take cells and send them; enders send them home. */
struct shared {
    struct heddle_pool pool;
    struct owner owner[OWNERS];
    size_t ncells; /* per owner */
    _Atomic size_t left;
};

static void *owner_main(void *arg)
{
    struct owner *o = arg;

    for (size_t i = 0; i < o->shared->ncells; i++) {
        struct heddle_cell *c = take(&o->slab);

        c->id = i;
        c->op[0] = (void *)c;
        if (i % 7 == 0) {
            struct heddle_cell *f = heddle_slab_take_further(&o->slab, c);

            CHECK(f != NULL);
            c->ext = f->self;
            f->owner = c->self;
        }
        while (!heddle_ring_push(&o->ring, c))
            heddle_thread_yield();
    }
    return NULL;
}

static void *ender_main(void *arg)
{
    struct shared *s = arg;
    struct heddle_returns returns;

    CHECK_OK(heddle_returns_init(&returns, &s->pool, OWNERS));
    while (atomic_load(&s->left) != 0) {
        void *item[8];
        size_t n = 0;

        for (int o = 0; o < OWNERS && n == 0; o++)
            n = heddle_ring_claim(&s->owner[o].ring, item, 8, 2);
        if (n == 0)
            heddle_thread_yield();
        for (size_t i = 0; i < n; i++) {
            struct heddle_cell *c = item[i];

            CHECK(c->op[0] == (void *)c);
            if (c->id % 7 == 0)
                CHECK_EQ(heddle_pool_cell(&s->pool, c->ext)->owner, c->self);
            end(&returns, c);
        }
        atomic_fetch_sub(&s->left, n);
    }
    heddle_returns_flush(&returns);
    heddle_returns_fini(&returns, &s->pool);
    return NULL;
}

TEST(stress_four_threads)
{
    static struct shared s;
    struct heddle_thread owner[OWNERS], ender[ENDERS];

    s.ncells = test_scale(600000);
    atomic_store(&s.left, OWNERS * s.ncells);
    CHECK_OK(heddle_pool_init(&s.pool, &heddle_allocator_default));
    for (int i = 0; i < OWNERS; i++) {
        s.owner[i].shared = &s;
        heddle_slab_init(&s.owner[i].slab, &s.pool);
        CHECK_OK(heddle_ring_init(&s.owner[i].ring, NULL, 4096));
    }
    /* One of them gets its cells one by one. */
    heddle_store_rlx(&s.owner[1].slab.is_hungry, 1u);
    for (int i = 0; i < ENDERS; i++)
        CHECK_OK(heddle_thread_create(&ender[i], NULL, ender_main, &s));
    for (int i = 0; i < OWNERS; i++)
        CHECK_OK(heddle_thread_create(&owner[i], NULL, owner_main, &s.owner[i]));
    for (int i = 0; i < OWNERS; i++)
        CHECK_OK(heddle_thread_join(&owner[i]));
    for (int i = 0; i < ENDERS; i++)
        CHECK_OK(heddle_thread_join(&ender[i]));
    for (int i = 0; i < OWNERS; i++) {
        heddle_slab_collect(&s.owner[i].slab);
        CHECK_EQ(s.owner[i].slab.in_use, 0);
        /* What was on its way, and little more. */
        CHECK(s.owner[i].slab.ncells <= 8 * HEDDLE_CHUNK);
        heddle_ring_fini(&s.owner[i].ring, NULL);
        heddle_slab_fini(&s.owner[i].slab);
    }
    heddle_pool_fini(&s.pool);
}

TEST_MAIN(cells_are_distinct_and_come_back, a_new_generation_for_each_use,
          batches_are_handed_over_when_full, the_steady_state_allocates_nothing,
          further_cells_follow_the_first, the_table_of_chunks_grows, a_reference_into_another_slab,
          model_batches_come_home, each_allocation_fails_once, stress_four_threads)
