/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deque: sequential use; all interleavings of an owner and two thieves (see
 * model_test.h for the memory model), with broken variants that must be caught;
 * and a stress test with real threads.
 *
 * Checked in every state of the model: an item comes out once, thieves get the
 * oldest and the owner the newest of what is there, "empty" and "full" are true
 * at some moment of the call; at the end nothing is lost.
 */
#include "base/model_test.h"

#include "base/deque.h"
#include "base/thread.h"

#define ITEM(i) ((void *)(uintptr_t)(i))

static int64_t item_of(const void *p)
{
    return (int64_t)(uintptr_t)p;
}

/* --- sequential ------------------------------------------------------------*/

TEST(last_in_first_out_for_the_owner)
{
    struct heddle_deque d;

    CHECK_OK(heddle_deque_init(&d, NULL, 4));
    CHECK(heddle_deque_pop(&d) == NULL);
    CHECK(heddle_deque_steal(&d) == NULL);
    CHECK(heddle_deque_seems_empty(&d));
    for (int i = 1; i <= 4; i++)
        CHECK(heddle_deque_push(&d, ITEM(i)));
    CHECK(!heddle_deque_push(&d, ITEM(5)));
    CHECK(!heddle_deque_seems_empty(&d));
    CHECK_EQ(item_of(heddle_deque_pop(&d)), 4);
    CHECK_EQ(item_of(heddle_deque_steal(&d)), 1);
    CHECK(heddle_deque_push(&d, ITEM(5)));
    CHECK_EQ(item_of(heddle_deque_pop(&d)), 5);
    CHECK_EQ(item_of(heddle_deque_pop(&d)), 3);
    CHECK_EQ(item_of(heddle_deque_steal(&d)), 2);
    CHECK(heddle_deque_pop(&d) == NULL);
    CHECK(heddle_deque_pop(&d) == NULL);
    heddle_deque_fini(&d, NULL);
    heddle_deque_fini(&d, NULL);
}

TEST(wraps_around_many_times)
{
    struct heddle_deque d;
    int64_t in = 0, out = 0;

    CHECK_OK(heddle_deque_init(&d, NULL, 8));
    for (int round = 0; round < 1000; round++) {
        while (heddle_deque_push(&d, ITEM(in + 1)))
            in++;
        CHECK_EQ(in - out, 8);
        for (int i = 0; i <= round % 8; i++)
            CHECK_EQ(item_of(heddle_deque_steal(&d)), ++out);
    }
    heddle_deque_fini(&d, NULL);
}

/* --- model -----------------------------------------------------------------*/

enum { MAX_ITEMS = 8 };

/* The code under test, or a broken variant of it. */
struct deque_code {
    bool (*push)(struct heddle_deque *d, void *item);
    void *(*pop)(struct heddle_deque *d);
    void *(*steal)(struct heddle_deque *d);
};

struct deque_world {
    struct heddle_deque d;
    _Atomic(void *) slot[4];
    uint64_t npushed;
    uint64_t last_stolen;
    uint64_t was_full; /* when the push under way began */
    uint8_t ntaken[MAX_ITEMS];
};

_Static_assert(sizeof(struct deque_world) <= MODEL_WORLD, "fits the model");

static _Alignas(64) struct model_state deque_state;

static struct {
    struct deque_code code;
    const char *owner; /* '+' push, '-' pop */
    unsigned nsteals;  /* per thief */
    size_t capacity;
} deque_run;

static struct deque_world *deque_world(void)
{
    return (void *)deque_state.world;
}

static void deque_begin(void)
{
    struct deque_world *w = deque_world();

    w->d.slot = w->slot;
    w->d.mask = deque_run.capacity - 1;
}

static void deque_take(const void *item)
{
    struct deque_world *w = deque_world();
    const uint64_t i = (uint64_t)item_of(item);

    model_expect(i >= 1 && i <= w->npushed, "an item that was never pushed");
    if (i >= MAX_ITEMS)
        return;
    model_expect(w->ntaken[i] == 0, "an item came out twice");
    w->ntaken[i]++;
}

/* In the owner's eyes. */
static int64_t deque_length(const struct heddle_deque *d)
{
    return (int64_t)(model_peek(0, &d->bottom, 8) - model_peek(0, &d->top, 8));
}

static void deque_owner_push(struct deque_world *w)
{
    if (model_self()->nlog == 0)
        w->was_full = deque_length(&w->d) > (int64_t)w->d.mask;
    if (deque_run.code.push(&w->d, ITEM(w->npushed + 1)))
        w->npushed++;
    else
        model_expect(w->was_full, "a push was refused without need");
    w->was_full = 0;
}

static void deque_owner_pop(struct deque_world *w)
{
    const void *item = deque_run.code.pop(&w->d);

    if (item == NULL) {
        model_expect(deque_length(&w->d) <= 0, "a pop missed an item");
        return;
    }
    deque_take(item);
    for (uint64_t i = (uint64_t)item_of(item) + 1; i <= w->npushed; i++)
        model_expect(w->ntaken[i] != 0, "a pop did not take the newest");
}

static void deque_thief(struct deque_world *w)
{
    const void *item = deque_run.code.steal(&w->d);

    if (item == NULL)
        return;
    deque_take(item);
    model_expect((uint64_t)item_of(item) > w->last_stolen, "steals out of order");
    w->last_stolen = (uint64_t)item_of(item);
}

static void deque_op(unsigned thread)
{
    struct deque_world *w = deque_world();
    struct model_thread *t = model_self();

    if (thread != 0) {
        deque_thief(w);
        t->is_done = ++t->op == deque_run.nsteals;
        return;
    }
    w->d.top_cached = t->own; /* the owner's private field: see model_test.h */
    if (deque_run.owner[t->op] == '+')
        deque_owner_push(w);
    else
        deque_owner_pop(w);
    t->own = w->d.top_cached;
    t->is_done = deque_run.owner[++t->op] == '\0';
}

static void deque_at_rest(void)
{
    struct deque_world *w = deque_world();
    const int64_t top = atomic_load(&w->d.top);

    for (int64_t i = 0; i < deque_length(&w->d); i++)
        deque_take(atomic_load(&w->slot[(size_t)(top + i) & w->d.mask]));
    for (uint64_t i = 1; i <= w->npushed; i++)
        model_expect(w->ntaken[i] == 1, "an item was lost");
}

static const char *deque_model(const struct deque_code *code, const char *owner, unsigned nthieves,
                               unsigned nsteals, size_t capacity)
{
    deque_run.code = *code;
    deque_run.owner = owner;
    deque_run.nsteals = nsteals;
    deque_run.capacity = capacity;
    return model_run(&deque_state, 1 + nthieves, deque_begin, deque_op, deque_at_rest, NULL);
}

static const struct deque_code real_code = {heddle_deque_push, heddle_deque_pop,
                                            heddle_deque_steal};

/* All scripts of `n` pushes and pops. */
static void deque_all_scripts(unsigned n, unsigned nthieves, unsigned nsteals, size_t capacity)
{
    for (unsigned bits = 0; bits < 1u << n; bits++) {
        char owner[8] = "";
        const char *violation;

        for (unsigned i = 0; i < n; i++)
            owner[i] = (bits >> i & 1) != 0 ? '-' : '+';
        violation = deque_model(&real_code, owner, nthieves, nsteals, capacity);
        if (violation != NULL)
            printf("owner %s, %u thieves, %u steals, capacity %zu: %s\n", owner, nthieves, nsteals,
                   capacity, violation);
        CHECK(violation == NULL);
    }
}

TEST(model_owner_and_one_thief)
{
    for (unsigned n = 1; n <= 4; n++) {
        deque_all_scripts(n, 1, 2, 1);
        deque_all_scripts(n, 1, 4, 2);
        deque_all_scripts(n, 1, 4, 4);
    }
    deque_all_scripts(5, 1, 3, 2);
}

TEST(model_owner_and_two_thieves)
{
    deque_all_scripts(4, 2, 2, 2);
    deque_all_scripts(4, 2, 1, 4);
    if (!TEST_SANITIZED)
        deque_all_scripts(3, 2, 3, 2);
}

TEST(model_owner_and_three_thieves)
{
    deque_all_scripts(4, 3, 1, 2);
}

/* --- broken variants -------------------------------------------------------*/

/* Takes the last item without asking who else does. */
static void *pop_without_cas(struct heddle_deque *d)
{
    int64_t b = heddle_load_rlx(&d->bottom) - 1;
    int64_t t;

    heddle_xchg_sc(&d->bottom, b);
    t = heddle_load_sc(&d->top);
    if (t > b) {
        heddle_store_rlx(&d->bottom, b + 1);
        return NULL;
    }
    return heddle_load_rlx(&d->slot[(size_t)b & d->mask]);
}

/* A plain store of bottom: the load of top may overtake it. */
static void *pop_without_order(struct heddle_deque *d)
{
    int64_t b = heddle_load_rlx(&d->bottom) - 1;
    int64_t t;
    void *item;

    heddle_store_rel(&d->bottom, b);
    t = heddle_load_sc(&d->top);
    if (t > b) {
        heddle_store_rlx(&d->bottom, b + 1);
        return NULL;
    }
    item = heddle_load_rlx(&d->slot[(size_t)b & d->mask]);
    if (t < b)
        return item;
    if (!heddle_cas_sc(&d->top, &t, t + 1))
        item = NULL;
    heddle_store_rlx(&d->bottom, b + 1);
    return item;
}

static void *steal_without_cas(struct heddle_deque *d)
{
    int64_t t = heddle_load_sc(&d->top);
    int64_t b = heddle_load_sc(&d->bottom);
    void *item;

    if (t >= b)
        return NULL;
    item = heddle_load_rlx(&d->slot[(size_t)t & d->mask]);
    heddle_store_sc(&d->top, t + 1);
    return item;
}

/* By then the owner may have used the slot again. */
static void *steal_reads_late(struct heddle_deque *d)
{
    int64_t t = heddle_load_sc(&d->top);
    int64_t b = heddle_load_sc(&d->bottom);
    const size_t i = (size_t)t & d->mask;

    if (t >= b || !heddle_cas_sc(&d->top, &t, t + 1))
        return NULL;
    return heddle_load_rlx(&d->slot[i]);
}

static bool push_publishes_early(struct heddle_deque *d, void *item)
{
    int64_t b = heddle_load_rlx(&d->bottom);

    if (b - heddle_load_acq(&d->top) > (int64_t)d->mask)
        return false;
    heddle_store_rel(&d->bottom, b + 1);
    heddle_store_rlx(&d->slot[(size_t)b & d->mask], item);
    return true;
}

static bool push_never_full(struct heddle_deque *d, void *item)
{
    int64_t b = heddle_load_rlx(&d->bottom);

    heddle_store_rlx(&d->slot[(size_t)b & d->mask], item);
    heddle_store_rel(&d->bottom, b + 1);
    return true;
}

TEST(model_catches_broken_variants)
{
    static const struct {
        struct deque_code code;
        const char *owner;
    } broken[] = {
        {{heddle_deque_push, pop_without_cas, heddle_deque_steal}, "+-"},
        {{heddle_deque_push, pop_without_order, heddle_deque_steal}, "++--"},
        {{heddle_deque_push, heddle_deque_pop, steal_without_cas}, "++--"},
        {{heddle_deque_push, heddle_deque_pop, steal_reads_late}, "++++"},
        {{push_publishes_early, heddle_deque_pop, heddle_deque_steal}, "+"},
        {{push_never_full, heddle_deque_pop, heddle_deque_steal}, "+++"},
    };

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        const char *v = deque_model(&broken[i].code, broken[i].owner, 2, 2, 2);

        if (v == NULL)
            printf("variant %zu was not caught\n", i);
        CHECK(v != NULL);
    }
}

/* --- real threads ----------------------------------------------------------*/

struct deque_shared {
    struct heddle_deque d;
    size_t nitems;
    _Atomic uint8_t *ntaken;
    size_t *payload; /* plain: the deque publishes it */
    _Atomic size_t left;
};

static void deque_consume(struct deque_shared *s, const size_t *item)
{
    const size_t i = (size_t)(item - s->payload);

    CHECK_EQ(*item, 3 * i + 1);
    CHECK_EQ(atomic_fetch_add(&s->ntaken[i], 1), 0);
    atomic_fetch_sub(&s->left, 1);
}

static void *deque_thief_main(void *arg)
{
    struct deque_shared *s = arg;
    size_t last = 0;

    while (atomic_load(&s->left) != 0) {
        size_t *item = heddle_deque_steal(&s->d);

        if (item == NULL) {
            heddle_thread_yield();
            continue;
        }
        CHECK((size_t)(item - s->payload) >= last); /* oldest first */
        last = (size_t)(item - s->payload);
        deque_consume(s, item);
    }
    return NULL;
}

static void deque_owner_main(struct deque_shared *s, struct heddle_rng *rng)
{
    for (size_t i = 0; i < s->nitems;) {
        uint32_t n = heddle_rng_below32(rng, 24);
        size_t *item;

        for (; n > 0 && i < s->nitems; n--) {
            s->payload[i] = 3 * i + 1;
            if (!heddle_deque_push(&s->d, &s->payload[i]))
                break;
            i++;
        }
        for (n = heddle_rng_below32(rng, 24); n > 0; n--) {
            item = heddle_deque_pop(&s->d);
            if (item == NULL)
                break;
            deque_consume(s, item);
        }
    }
}

TEST(stress_four_threads)
{
    struct deque_shared s = {.nitems = test_scale(400000)};
    struct heddle_thread thief[3];
    struct heddle_rng rng;
    size_t *item;

    heddle_rng_seed(&rng, test_seed());
    s.ntaken = calloc(s.nitems, sizeof(*s.ntaken));
    s.payload = calloc(s.nitems, sizeof(*s.payload));
    CHECK(s.ntaken != NULL && s.payload != NULL);
    atomic_store(&s.left, s.nitems);
    CHECK_OK(heddle_deque_init(&s.d, NULL, 16));
    for (int i = 0; i < 3; i++)
        CHECK_OK(heddle_thread_create(&thief[i], NULL, deque_thief_main, &s));
    deque_owner_main(&s, &rng);
    while ((item = heddle_deque_pop(&s.d)) != NULL)
        deque_consume(&s, item);
    for (int i = 0; i < 3; i++)
        CHECK_OK(heddle_thread_join(&thief[i]));
    CHECK_EQ(atomic_load(&s.left), 0);
    CHECK(heddle_deque_seems_empty(&s.d));
    heddle_deque_fini(&s.d, NULL);
    free(s.ntaken);
    free(s.payload);
}

TEST_MAIN(last_in_first_out_for_the_owner, wraps_around_many_times, model_owner_and_one_thief,
          model_owner_and_two_thieves, model_owner_and_three_thieves, model_catches_broken_variants,
          stress_four_threads)
