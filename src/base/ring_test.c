/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring: sequential use; all interleavings of the producer and up to three
 * consumers (see model_test.h for the memory model), with broken variants that
 * must be caught; and a stress test with real threads.
 *
 * Checked in every state of the model: claims get the next items in order,
 * without gap and without repetition; a push is refused only when the ring was
 * full; at the end nothing is lost.
 */
#include "base/model_test.h"

#include "base/ring.h"
#include "base/thread.h"

#define ITEM(i) ((void *)(uintptr_t)(i))

static uint64_t item_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* --- sequential ------------------------------------------------------------*/

TEST(first_in_first_out)
{
    struct heddle_ring r;
    uint64_t in = 0, out = 0;
    void *item[8];

    CHECK_OK(heddle_ring_init(&r, NULL, 8));
    CHECK_EQ(heddle_ring_claim(&r, item, 8, 1), 0);
    CHECK(heddle_ring_seems_empty(&r));
    for (int round = 0; round < 1000; round++) {
        size_t n;

        while (heddle_ring_push(&r, ITEM(in + 1)))
            in++;
        CHECK_EQ(in - out, 8);
        CHECK(!heddle_ring_seems_empty(&r));
        n = heddle_ring_claim(&r, item, 1 + (size_t)round % 8, 1);
        CHECK_EQ(n, 1 + round % 8);
        for (size_t i = 0; i < n; i++)
            CHECK_EQ(item_of(item[i]), ++out);
    }
    heddle_ring_fini(&r, NULL);
    heddle_ring_fini(&r, NULL);
}

TEST(share_leaves_some_for_others)
{
    struct heddle_ring r;
    void *item[16];

    CHECK_OK(heddle_ring_init(&r, NULL, 16));
    for (uint64_t i = 1; i <= 10; i++)
        CHECK(heddle_ring_push(&r, ITEM(i)));
    CHECK_EQ(heddle_ring_claim(&r, item, 16, 4), 3); /* of 10 */
    CHECK_EQ(heddle_ring_claim(&r, item, 1, 4), 1);  /* of 7 */
    CHECK_EQ(heddle_ring_claim(&r, item, 16, 3), 2); /* of 6 */
    CHECK_EQ(heddle_ring_claim(&r, item, 16, 0), 4); /* all */
    CHECK_EQ(item_of(item[3]), 10);
    CHECK_EQ(heddle_ring_claim(&r, item, 16, 2), 0);
    CHECK(heddle_ring_push(&r, ITEM(11)));
    CHECK_EQ(heddle_ring_claim(&r, item, 16, 100), 1); /* rounded up */
    heddle_ring_fini(&r, NULL);
}

/* --- model -----------------------------------------------------------------*/

struct ring_code {
    bool (*push)(struct heddle_ring *r, void *item);
    size_t (*claim)(struct heddle_ring *r, void **out, size_t max, size_t share);
};

struct ring_world {
    struct heddle_ring r;
    _Atomic(void *) slot[4];
    uint64_t npushed;
    uint64_t nclaimed;
    uint64_t was_full; /* when the push under way began */
};

_Static_assert(sizeof(struct ring_world) <= MODEL_WORLD, "fits the model");

static _Alignas(64) struct model_state ring_state;

static struct {
    struct ring_code code;
    unsigned npushes;
    unsigned nclaims; /* per consumer */
    size_t capacity, max, share;
} ring_run;

static struct ring_world *ring_world(void)
{
    return (void *)ring_state.world;
}

static void ring_begin(void)
{
    struct ring_world *w = ring_world();

    w->r.slot = w->slot;
    w->r.mask = ring_run.capacity - 1;
}

/* In the producer's eyes. */
static uint64_t ring_length(const struct heddle_ring *r)
{
    return model_peek(0, &r->tail, 8) - model_peek(0, &r->head, 8);
}

static void ring_produce(struct ring_world *w)
{
    struct model_thread *t = model_self();

    w->r.head_cached = (uint64_t)t->own; /* private: see model_test.h */
    if (t->nlog == 0)
        w->was_full = ring_length(&w->r) > w->r.mask;
    if (ring_run.code.push(&w->r, ITEM(w->npushed + 1)))
        w->npushed++;
    else
        model_expect(w->was_full, "a push was refused without need");
    w->was_full = 0;
    t->own = (int64_t)w->r.head_cached;
    t->is_done = ++t->op == ring_run.npushes;
}

static void ring_consume(struct ring_world *w)
{
    struct model_thread *t = model_self();
    void *item[4] = {NULL};
    const size_t n = ring_run.code.claim(&w->r, item, ring_run.max, ring_run.share);

    /* The claiming CAS is the last access, so claims arrive here in order. */
    for (size_t i = 0; i < n; i++)
        model_expect(item_of(item[i]) == ++w->nclaimed, "claims out of order");
    model_expect(w->nclaimed <= w->npushed, "an item that was never pushed");
    t->is_done = ++t->op == ring_run.nclaims;
}

static void ring_op(unsigned thread)
{
    if (thread == 0)
        ring_produce(ring_world());
    else
        ring_consume(ring_world());
}

static void ring_at_rest(void)
{
    struct ring_world *w = ring_world();
    const uint64_t head = atomic_load(&w->r.head);

    model_expect(head == w->nclaimed, "head is not what was claimed");
    model_expect(head + ring_length(&w->r) == w->npushed, "an item was lost");
    for (uint64_t i = head; i < w->npushed; i++)
        model_expect(item_of(atomic_load(&w->slot[i & w->r.mask])) == i + 1,
                     "a wrong item is left");
}

static const char *ring_model(const struct ring_code *code, unsigned npushes, unsigned nconsumers,
                              unsigned nclaims, size_t capacity, size_t max, size_t share)
{
    ring_run.code = *code;
    ring_run.npushes = npushes;
    ring_run.nclaims = nclaims;
    ring_run.capacity = capacity;
    ring_run.max = max;
    ring_run.share = share;
    return model_run(&ring_state, 1 + nconsumers, ring_begin, ring_op, ring_at_rest, NULL);
}

static const struct ring_code real_code = {heddle_ring_push, heddle_ring_claim};

static void ring_must_hold(unsigned npushes, unsigned nconsumers, unsigned nclaims, size_t capacity)
{
    for (size_t max = 1; max <= 3; max++)
        for (size_t share = 1; share <= 2; share++) {
            const char *violation =
                ring_model(&real_code, npushes, nconsumers, nclaims, capacity, max, share);

            if (violation != NULL)
                printf("%u pushes, %u consumers, %u claims, capacity %zu, "
                       "max %zu, share %zu: %s\n",
                       npushes, nconsumers, nclaims, capacity, max, share, violation);
            CHECK(violation == NULL);
        }
}

TEST(model_one_consumer)
{
    for (unsigned npushes = 1; npushes <= 6; npushes++) {
        ring_must_hold(npushes, 1, 3, 1);
        ring_must_hold(npushes, 1, 4, 2);
        ring_must_hold(npushes, 1, 4, 4);
    }
}

TEST(model_two_consumers)
{
    ring_must_hold(4, 2, 2, 1);
    ring_must_hold(4, 2, 2, 2);
    ring_must_hold(4, 2, 2, 4);
    if (!TEST_SANITIZED)
        ring_must_hold(4, 2, 3, 2);
}

TEST(model_three_consumers)
{
    ring_must_hold(4, 3, 1, 1);
    ring_must_hold(4, 3, 1, 2);
}

/* --- broken variants -------------------------------------------------------*/

static size_t claim_without_cas(struct heddle_ring *r, void **out, size_t max, size_t share)
{
    uint64_t h = heddle_load_acq(&r->head);
    uint64_t t = heddle_load_acq(&r->tail);

    (void)max;
    (void)share;
    if (h >= t)
        return 0;
    out[0] = heddle_load_rlx(&r->slot[h & r->mask]);
    heddle_store_sc(&r->head, h + 1);
    return 1;
}

/* By then the producer may have used the slot again. */
static size_t claim_reads_late(struct heddle_ring *r, void **out, size_t max, size_t share)
{
    uint64_t h = heddle_load_acq(&r->head);
    uint64_t t = heddle_load_acq(&r->tail);
    const uint64_t first = h;

    (void)max;
    (void)share;
    if (h >= t || !heddle_cas_acqrel(&r->head, &h, h + 1))
        return 0;
    out[0] = heddle_load_rlx(&r->slot[first & r->mask]);
    return 1;
}

static bool push_publishes_early(struct heddle_ring *r, void *item)
{
    uint64_t t = heddle_load_rlx(&r->tail);

    if (t - heddle_load_acq(&r->head) > r->mask)
        return false;
    heddle_store_rel(&r->tail, t + 1);
    heddle_store_rlx(&r->slot[t & r->mask], item);
    return true;
}

/* Off by one: the newest item overwrites the oldest. */
static bool push_too_many(struct heddle_ring *r, void *item)
{
    uint64_t t = heddle_load_rlx(&r->tail);

    if (t - heddle_load_acq(&r->head) > r->mask + 1)
        return false;
    heddle_store_rlx(&r->slot[t & r->mask], item);
    heddle_store_rel(&r->tail, t + 1);
    return true;
}

TEST(model_catches_broken_variants)
{
    static const struct ring_code broken[] = {
        {heddle_ring_push, claim_without_cas},
        {heddle_ring_push, claim_reads_late},
        {push_publishes_early, heddle_ring_claim},
        {push_too_many, heddle_ring_claim},
    };

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        const char *v = ring_model(&broken[i], 4, 2, 2, 2, 2, 1);

        if (v == NULL)
            printf("variant %zu was not caught\n", i);
        CHECK(v != NULL);
    }
}

/* --- real threads ----------------------------------------------------------*/

enum { BATCH = 5 };

struct ring_shared {
    struct heddle_ring r;
    size_t nitems;
    _Atomic uint8_t *ntaken;
    size_t *payload; /* plain: the ring publishes it */
    _Atomic size_t left;
};

static void *ring_consumer_main(void *arg)
{
    struct ring_shared *s = arg;
    size_t last = 0;

    while (atomic_load(&s->left) != 0) {
        void *item[BATCH];
        const size_t n = heddle_ring_claim(&s->r, item, BATCH, 3);

        if (n == 0)
            heddle_thread_yield();
        for (size_t i = 0; i < n; i++) {
            const size_t *p = item[i];
            const size_t k = (size_t)(p - s->payload);

            CHECK_EQ(*p, 3 * k + 1);
            CHECK(k >= last);
            last = k;
            CHECK_EQ(atomic_fetch_add(&s->ntaken[k], 1), 0);
        }
        atomic_fetch_sub(&s->left, n);
    }
    return NULL;
}

TEST(stress_four_threads)
{
    struct ring_shared s = {.nitems = test_scale(400000)};
    struct heddle_thread consumer[3];

    s.ntaken = calloc(s.nitems, sizeof(*s.ntaken));
    s.payload = calloc(s.nitems, sizeof(*s.payload));
    CHECK(s.ntaken != NULL && s.payload != NULL);
    atomic_store(&s.left, s.nitems);
    CHECK_OK(heddle_ring_init(&s.r, NULL, 32));
    for (int i = 0; i < 3; i++)
        CHECK_OK(heddle_thread_create(&consumer[i], NULL, ring_consumer_main, &s));
    for (size_t i = 0; i < s.nitems; i++) {
        s.payload[i] = 3 * i + 1;
        while (!heddle_ring_push(&s.r, &s.payload[i]))
            heddle_thread_yield();
    }
    for (int i = 0; i < 3; i++)
        CHECK_OK(heddle_thread_join(&consumer[i]));
    CHECK_EQ(atomic_load(&s.left), 0);
    CHECK(heddle_ring_seems_empty(&s.r));
    heddle_ring_fini(&s.r, NULL);
    free(s.ntaken);
    free(s.payload);
}

TEST_MAIN(first_in_first_out, share_leaves_some_for_others, model_one_consumer, model_two_consumers,
          model_three_consumers, model_catches_broken_variants, stress_four_threads)
