/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prio: random pushes and pops against a naive list: the highest priority first,
 * among equals the one that was pushed first, also when the push number wraps.
 */
#include "base/rng.h"
#include "sched/prio.c" /* for `pushes` */
#include "tests/test.h"

enum { N = 300 };

struct item {
    struct heddle_sched_task t;
    int prio;
    uint64_t pushed; /* 0: not in the queue */
};

static struct item items[N];

/* What pop must return. */
static struct item *naive_first(void)
{
    struct item *best = NULL;

    for (struct item *i = items; i < items + N; i++)
        if (i->pushed != 0 && (best == NULL || i->prio > best->prio ||
                               (i->prio == best->prio && i->pushed < best->pushed)))
            best = i;
    return best;
}

/* Invariant prio(1): no child comes before its parent; counts the tasks. The
 * heap may be a long list: no recursion along siblings. */
static size_t count_heap(const struct heddle_sched_task *t)
{
    size_t n = 1;

    for (const struct heddle_sched_task *c = t->link[0]; c != NULL; c = c->link[1]) {
        CHECK(!prio_before(c, t));
        n += count_heap(c);
    }
    return n;
}

static void random_run(struct prio *q, struct heddle_rng *rng, uint32_t nprios, size_t nsteps)
{
    uint64_t npushes = 0;
    size_t length = 0;

    for (size_t step = 0; step < nsteps; step++) {
        struct item *i = &items[heddle_rng_below32(rng, N)];

        /* Phases of growth and of decline. */
        if (heddle_rng_below32(rng, 100) < (step / 500 % 2 == 0 ? 70u : 30u)) {
            if (i->pushed != 0)
                continue;
            i->prio = i->t.prio = (int)heddle_rng_below32(rng, nprios) - (int)(nprios / 2);
            i->pushed = ++npushes;
            heddle_sched_prio.push(q, &i->t, (int)heddle_rng_below32(rng, 4));
            length++;
        } else {
            struct heddle_sched_task *t = heddle_sched_prio.pop(q, 0);

            i = naive_first();
            CHECK(t == (i == NULL ? NULL : &i->t));
            if (i != NULL) {
                i->pushed = 0;
                length--;
            }
        }
        if (step % 64 == 0 && q->root != NULL) {
            CHECK(q->root->link[1] == NULL); /* invariant prio(2) */
            CHECK_EQ(count_heap(q->root), length);
        }
    }
    for (struct item *i; (i = naive_first()) != NULL; i->pushed = 0)
        CHECK(heddle_sched_prio.pop(q, 0) == &i->t);
    CHECK(heddle_sched_prio.pop(q, 0) == NULL);
}

TEST(order)
{
    static const uint32_t nprios[] = {1, 2, 10, 1000000};
    const struct heddle_sched_env env = {.nworkers = 4};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < sizeof(nprios) / sizeof(nprios[0]); i++) {
        struct prio q = {.pushes = 0};

        CHECK_OK(heddle_sched_prio.init(&q, &env));
        random_run(&q, &rng, nprios[i], test_scale(20000));
        heddle_sched_prio.fini(&q);
    }
}

TEST(push_numbers_wrap)
{
    const struct heddle_sched_env env = {.nworkers = 1};
    struct heddle_rng rng;
    struct prio q = {.pushes = 0};

    heddle_rng_seed(&rng, test_seed());
    CHECK_OK(heddle_sched_prio.init(&q, &env));
    q.pushes = UINT32_MAX - 400;
    random_run(&q, &rng, 2, 3000);
    CHECK(q.pushes < UINT32_MAX - 400); /* it did wrap */
    heddle_sched_prio.fini(&q);
}

TEST(extreme_priorities)
{
    static const int prio[] = {0, INT32_MIN, INT32_MAX, -1, 1};
    static const int want[] = {INT32_MAX, 1, 0, -1, INT32_MIN};
    const struct heddle_sched_env env = {.nworkers = 1};
    struct heddle_sched_task t[5] = {{.prio = 0}};
    struct prio q = {.pushes = 0};

    CHECK_OK(heddle_sched_prio.init(&q, &env));
    for (int i = 0; i < 5; i++) {
        t[i].prio = prio[i];
        heddle_sched_prio.push(&q, &t[i], HEDDLE_SCHED_FOREIGN);
    }
    for (int i = 0; i < 5; i++)
        CHECK_EQ(heddle_sched_prio.pop(&q, 0)->prio, want[i]);
    heddle_sched_prio.fini(&q);
}

TEST_MAIN(order, push_numbers_wrap, extreme_priorities)
