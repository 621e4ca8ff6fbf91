/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every scheduler of the table against the contract in sched/sched.h: a task that
 * was pushed comes out once, from any thread to any thread; an empty scheduler
 * says so; a push never fails; an allocation that fails leaves nothing behind.
 * sched_classes.c does it again with classes.
 */
#include <pthread.h>

#include "base/rng.h"
#include "base/thread.h"
#include "sched_rig.h"

struct item {
    struct heddle_sched_task t;
    size_t number; /* plain: the scheduler publishes it */
    _Atomic unsigned npops;
};

static struct item *make_items(size_t n)
{
    struct item *items = calloc(n, sizeof(*items));

    CHECK(items != NULL);
    return items;
}

static void push(struct bench *b, struct item *items, size_t i, int worker)
{
    items[i].number = i;
    items[i].t.prio = (int)(i * 7 % 5);
    b->ops->push(b->self, &items[i].t, worker);
}

static struct item *pop(struct bench *b, unsigned worker)
{
    struct heddle_sched_task *t = b->ops->pop(b->self, worker);

    return t == NULL ? NULL : (void *)((char *)t - offsetof(struct item, t));
}

/* Marks one that came out. */
static void check_out(const struct item *items, size_t n, struct item *i)
{
    CHECK(i >= items && i < items + n);
    CHECK_EQ(i->number, i - items);
    CHECK_EQ(atomic_fetch_add(&i->npops, 1u), 0);
}

TEST(the_table)
{
    size_t n = 0;

    FOR_EACH_SCHED(a)
    {
        CHECK((*a)->name != NULL && (*a)->name[0] != '\0');
        CHECK((*a)->help != NULL && (*a)->help[0] != '\0');
        CHECK(strchr((*a)->help, '\n') == NULL);
        CHECK((*a)->init != NULL && (*a)->fini != NULL);
        CHECK((*a)->push != NULL && (*a)->pop != NULL);
        CHECK((*a)->instance_size != 0);
        CHECK(heddle_sched_find((*a)->name) == *a);                         /* names are unique */
        CHECK((*a)->alias == NULL || heddle_sched_find((*a)->alias) == *a); /* older ones too */
        printf("     %s: %s\n", (*a)->name, (*a)->help);
        n++;
    }
    CHECK(n >= 3);
    CHECK(heddle_sched_find("plan") != NULL &&
          strcmp(heddle_sched_find("plan")->name, "lookahead") == 0);
    CHECK(heddle_sched_find("") == NULL);
    CHECK(heddle_sched_find("nonesuch") == NULL);
}

TEST(empty_and_alone)
{
    FOR_EACH_SCHED(ops)
    {
        struct item *items = make_items(100);
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, 1, 0));
        CHECK(pop(&b, 0) == NULL);
        for (int round = 0; round < 10; round++) {
            for (size_t i = 0; i < 100; i++)
                push(&b, items, i, (int)(i % 3) - 2); /* all three roles */
            for (size_t i = 0; i < 100; i++)
                check_out(items, 100, pop(&b, 0));
            CHECK(pop(&b, 0) == NULL);
            CHECK(pop(&b, 0) == NULL);
            for (size_t i = 0; i < 100; i++)
                atomic_store(&items[i].npops, 0);
        }
        bench_fini(&b);
        free(items);
    }
}

/* Whatever has room for some tasks takes many more: nothing is refused. */
TEST(more_than_any_array_holds)
{
    enum { MANY = 20000 };

    FOR_EACH_SCHED(ops)
    for (int role = HEDDLE_SCHED_SUBMITTER; role <= 2; role++) {
        struct item *items = make_items(MANY);
        size_t n = 0;
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        for (size_t i = 0; i < MANY; i++)
            push(&b, items, i, role);
        for (unsigned w = 0; n < MANY; w = (w + 1) % WORKERS) {
            struct item *i = pop(&b, w);

            CHECK(i != NULL); /* nobody is in the way */
            check_out(items, MANY, i);
            n++;
        }
        for (unsigned w = 0; w < WORKERS; w++)
            CHECK(pop(&b, w) == NULL);
        bench_fini(&b);
        free(items);
    }
}

/* Progress: one worker alone gets what the others left. */
TEST(one_worker_gets_everything)
{
    FOR_EACH_SCHED(ops)
    for (unsigned who = 0; who < WORKERS; who++) {
        struct item *items = make_items(600);
        uint64_t nsteals = 0;
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        for (size_t i = 0; i < 600; i++)
            push(&b, items, i, (int)(i % 6) - 2);
        for (size_t i = 0; i < 600; i++)
            check_out(items, 600, pop(&b, who));
        CHECK(pop(&b, who) == NULL);
        if ((*ops)->steals != NULL)
            nsteals = (*ops)->steals(b.self);
        CHECK(nsteals <= 600); /* a task is taken once */
        bench_fini(&b);
        free(items);
    }
}

/* --- order, for those that promise one -------------------------------------*/

TEST(eager_is_first_in_first_out)
{
    const struct heddle_sched_ops *ops = heddle_sched_find("eager");
    struct item *items = make_items(1000);
    struct bench b;

    if (ops == NULL)
        SKIP("not in this build");
    CHECK_OK(bench_init(&b, ops, WORKERS, 0));
    for (size_t i = 0; i < 1000; i++)
        push(&b, items, i, (int)(i % 6) - 2);
    for (size_t i = 0; i < 1000; i++)
        CHECK_EQ(pop(&b, (unsigned)i % WORKERS)->number, i);
    bench_fini(&b);
    free(items);
}

TEST(prio_is_by_priority_then_first_in_first_out)
{
    const struct heddle_sched_ops *ops = heddle_sched_find("prio");
    struct item *items = make_items(1000);
    const struct item *last = NULL;
    struct bench b;

    if (ops == NULL)
        SKIP("not in this build");
    CHECK_OK(bench_init(&b, ops, WORKERS, 0));
    for (size_t i = 0; i < 1000; i++)
        push(&b, items, i, (int)(i % 6) - 2);
    for (size_t i = 0; i < 1000; i++) {
        const struct item *x = pop(&b, (unsigned)i % WORKERS);

        if (last != NULL)
            CHECK(last->t.prio > x->t.prio ||
                  (last->t.prio == x->t.prio && last->number < x->number));
        last = x;
    }
    bench_fini(&b);
    free(items);
}

/* --- several threads -------------------------------------------------------*/

/* Seven threads: four workers push and pop; the submitter and two foreign threads
 * push. */
struct crowd {
    struct bench *b;
    struct item *items;
    size_t nitems;
    size_t share;          /* items per pushing thread */
    _Atomic size_t left;   /* to come out */
    _Atomic unsigned next; /* number of the next thread */
};

static void crowd_pop(struct crowd *c, unsigned worker)
{
    struct item *i = pop(c->b, worker);

    if (i == NULL) {
        heddle_thread_yield();
        return;
    }
    check_out(c->items, c->nitems, i);
    atomic_fetch_sub(&c->left, 1);
}

static void *crowd_main(void *arg)
{
    struct crowd *c = arg;
    const unsigned me = atomic_fetch_add(&c->next, 1u);
    const int role = me < WORKERS    ? (int)me
                     : me == WORKERS ? HEDDLE_SCHED_SUBMITTER
                                     : HEDDLE_SCHED_FOREIGN;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 1 + me);
    for (size_t i = 0; i < c->share; i++) {
        push(c->b, c->items, me * c->share + i, role);
        while (role >= 0 && heddle_rng_below32(&rng, 2) == 0)
            crowd_pop(c, me);
        if (role < 0 && i % 64 == 0)
            heddle_thread_yield();
    }
    while (role >= 0 && atomic_load(&c->left) != 0)
        crowd_pop(c, me);
    return NULL;
}

TEST(each_task_comes_out_once_with_many_threads)
{
    enum { THREADS = WORKERS + 3 }; /* two foreign ones */

    FOR_EACH_SCHED(ops)
    {
        struct heddle_thread t[THREADS];
        struct crowd c = {.share = test_scale(20000) / THREADS};
        struct bench b;

        c.nitems = c.share * THREADS;
        c.items = make_items(c.nitems);
        c.b = &b;
        atomic_store(&c.left, c.nitems);
        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        for (int i = 0; i < THREADS; i++)
            CHECK_OK(heddle_thread_create(&t[i], NULL, crowd_main, &c));
        for (int i = 0; i < THREADS; i++)
            CHECK_OK(heddle_thread_join(&t[i]));
        for (size_t i = 0; i < c.nitems; i++)
            CHECK_EQ(atomic_load(&c.items[i].npops), 1);
        for (unsigned w = 0; w < WORKERS; w++)
            CHECK(pop(&b, w) == NULL);
        bench_fini(&b);
        free(c.items);
    }
}

/* --- no memory -------------------------------------------------------------*/

TEST(each_allocation_fails_once)
{
    FOR_EACH_SCHED(ops)
    for (unsigned nworkers = 1; nworkers <= WORKERS; nworkers++) {
        heddle_status st = HEDDLE_ENOMEM;

        for (size_t k = 1; st != HEDDLE_OK; k++) {
            struct bench b;

            st = bench_init(&b, *ops, nworkers, k);
            CHECK_EQ(st, b.f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
            bench_fini(&b); /* also after a failed init */
        }
    }
}

/* Push and pop have no status: they may not need memory. */
TEST(push_and_pop_allocate_nothing)
{
    FOR_EACH_SCHED(ops)
    {
        struct item *items = make_items(20000);
        size_t before;
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        before = b.f.ncalls;
        for (size_t i = 0; i < 20000; i++)
            push(&b, items, i, (int)(i % 6) - 2);
        for (unsigned w = 0; pop(&b, w) != NULL; w = (w + 1) % WORKERS)
            ;
        CHECK_EQ(b.f.ncalls, before);
        bench_fini(&b);
        free(items);
    }
}

TEST_MAIN(the_table, empty_and_alone, more_than_any_array_holds, one_worker_gets_everything,
          eager_is_first_in_first_out, prio_is_by_priority_then_first_in_first_out,
          each_task_comes_out_once_with_many_threads, each_allocation_fails_once,
          push_and_pop_allocate_nothing)
