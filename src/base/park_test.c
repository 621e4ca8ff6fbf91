/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * park: sequential use; all interleavings of threads that make work and threads that
 * sleep (see model_test.h for the memory model; the futex is modelled as blocking
 * on the word), with broken variants that must be caught; and a stress test with
 * real threads.
 *
 * The property: no thread sleeps for good while there is work. Consumers of the
 * model never end, so every run comes to rest with all of them asleep; then no
 * work may be left. Invariant park(1) is checked there as well.
 */
#include "base/model_test.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* park.c calls this instead of the system. */
static long park_syscall(long number, void *word, int op, uint32_t value,
                         const struct timespec *timeout, void *word2, int value3)
{
    if (!model.is_on)
        return syscall(number, word, op, value, timeout, word2, value3);
    if (op == FUTEX_WAKE_PRIVATE)
        return model_futex_wake(word);
    return model_futex_wait(word, value, timeout != NULL);
}

#define syscall(number, word, ...) park_syscall(number, (void *)(uintptr_t)(word), __VA_ARGS__)
#include "base/park.c" /* the code under test, over the modelled futex */
#undef syscall

/* --- sequential ------------------------------------------------------------*/

TEST(a_wake_before_the_commit_is_not_lost)
{
    struct heddle_park p;

    CHECK_OK(heddle_park_init(&p, NULL, 2));
    heddle_park_prepare(&p, 0);
    CHECK_EQ(heddle_load_rlx(&p.nparked), 1);
    heddle_park_ring(&p, 1);
    CHECK_EQ(heddle_load_rlx(&p.nparked), 0);
    heddle_park_commit(&p, 0, 0); /* returns at once */
    heddle_park_prepare(&p, 0);
    heddle_park_wake(&p, 1); /* nobody */
    CHECK_EQ(heddle_load_rlx(&p.nparked), 1);
    heddle_park_cancel(&p, 0);
    heddle_park_cancel(&p, 0);
    CHECK_EQ(heddle_load_rlx(&p.nparked), 0);
    heddle_park_fini(&p, NULL);
    heddle_park_fini(&p, NULL);
}

TEST(a_timeout_ends_the_sleep)
{
    struct heddle_park p;
    const uint64_t start = heddle_clock_ns();

    CHECK_OK(heddle_park_init(&p, NULL, 1));
    heddle_park_prepare(&p, 0);
    heddle_park_commit(&p, 0, 2000000);
    CHECK(heddle_clock_ns() - start >= 1000000);
    CHECK_EQ(heddle_load_rlx(&p.nparked), 0);
    heddle_park_fini(&p, NULL);
}

TEST(nobody_is_woken_while_one_spins)
{
    struct heddle_park p;

    CHECK_OK(heddle_park_init(&p, NULL, 3));
    heddle_add_acqrel(&p.nspinning, 1u);
    heddle_park_prepare(&p, 1);
    heddle_park_prepare(&p, 2);
    heddle_park_ring(&p, 0);
    CHECK_EQ(heddle_load_rlx(&p.nparked), 2);
    heddle_park_ring_all(&p, 0); /* a condition, not a task: all must look */
    CHECK_EQ(heddle_load_rlx(&p.nparked), 0);
    heddle_park_fini(&p, NULL);
}

/* --- model -----------------------------------------------------------------*/

enum { MAX_SLOTS = 3 };

/* The code under test, or a broken variant of it. */
struct park_code {
    void (*prepare)(struct heddle_park *p, unsigned slot);
    void (*ring)(struct heddle_park *p, unsigned slot);
};

struct park_world {
    struct heddle_park p;
    struct heddle_park_slot slot[MAX_SLOTS];
    /* Who makes work stores into its own word: work is published without a
     * read-modify-write, as a push into a deque is. */
    _Atomic uint64_t made[2];
    _Atomic uint64_t taken;
    _Atomic uint64_t is_stopping;
};

_Static_assert(sizeof(struct park_world) <= MODEL_WORLD, "fits the model");

static _Alignas(64) struct model_state park_state;

static struct {
    struct park_code code;
    unsigned nproducers; /* threads 0 ..; the others consume */
    unsigned nconsumers;
    unsigned nworks; /* per producer */
    bool has_spinners;
    bool is_selfish; /* a broken consumer: keeps a call it has no use for */
} park_run;

static struct park_world *park_world(void)
{
    return (void *)park_state.world;
}

static void park_begin(void)
{
    struct park_world *w = park_world();

    w->p.nslots = park_run.nproducers + park_run.nconsumers;
    w->p.slot = w->slot;
}

static void park_produce(unsigned thread)
{
    struct park_world *w = park_world();
    struct model_thread *t = model_self();

    heddle_store_rel(&w->made[thread], (uint64_t)t->op + 1);
    park_run.code.ring(&w->p, thread);
    t->is_done = ++t->op == park_run.nworks;
}

static bool park_take(struct park_world *w)
{
    uint64_t taken = heddle_load_acq(&w->taken), made = 0;

    for (unsigned i = 0; i < park_run.nproducers; i++)
        made += heddle_load_acq(&w->made[i]);
    while (taken < made)
        if (heddle_cas_acqrel(&w->taken, &taken, taken + 1))
            return true;
    return false;
}

/* A worker: looks (spinning), announces, looks again, sleeps. Each phase is an
 * operation of its own, because what is over need not be remembered. */
enum park_phase { SPIN, LOOK, SPIN_END, PREPARE, LAST_LOOK, CANCEL, COMMIT };

static enum park_phase park_consume(unsigned thread, enum park_phase phase)
{
    struct park_world *w = park_world();
    struct model_thread *t = model_self();
    bool found;

    switch (phase) {
    case SPIN:
        if (park_run.has_spinners)
            heddle_add_acqrel(&w->p.nspinning, 1u);
        return LOOK;
    case LOOK:
        found = park_take(w);
        t->own = found;
        if (park_run.has_spinners)
            return SPIN_END;
        return found ? SPIN : PREPARE;
    case SPIN_END:
        /* The last one to find work calls the next. */
        found = t->own != 0;
        if (heddle_sub_acqrel(&w->p.nspinning, 1u) == 1 && found &&
            heddle_load_rlx(&w->p.nparked) != 0)
            heddle_park_wake_one(&w->p);
        t->own = 0;
        return found ? SPIN : PREPARE;
    case PREPARE: park_run.code.prepare(&w->p, thread); return LAST_LOOK;
    case LAST_LOOK: return park_take(w) ? CANCEL : COMMIT;
    case CANCEL:
        /* Woken meanwhile, perhaps for other work: somebody else must look. */
        if (!heddle_park_cancel(&w->p, thread) && !park_run.is_selfish)
            heddle_park_wake_one(&w->p);
        return SPIN;
    case COMMIT: heddle_park_commit(&w->p, thread, 0); return SPIN;
    }
    return SPIN;
}

static void park_op(unsigned thread)
{
    if (thread < park_run.nproducers)
        park_produce(thread);
    else
        model_self()->op = park_consume(thread, model_self()->op);
}

static void park_check_counts(const struct park_world *w)
{
    uint32_t n = 0;

    for (unsigned s = 0; s < w->p.nslots; s++)
        n += atomic_load(&w->slot[s].state) == PARKED;
    model_expect(atomic_load(&w->p.nparked) == n, "park(1): nparked is wrong");
    model_expect(atomic_load(&w->p.nspinning) == 0, "nspinning is wrong");
}

static void park_at_rest(void)
{
    struct park_world *w = park_world();

    model_expect(atomic_load(&w->made[0]) + atomic_load(&w->made[1]) == atomic_load(&w->taken),
                 "all sleep and there is work");
    park_check_counts(w);
}

static const char *park_model(const struct park_code *code, unsigned nproducers,
                              unsigned nconsumers, unsigned nworks, bool has_spinners)
{
    park_run.code = *code;
    park_run.nproducers = nproducers;
    park_run.nconsumers = nconsumers;
    park_run.nworks = nworks;
    park_run.has_spinners = has_spinners;
    return model_run(&park_state, nproducers + nconsumers, park_begin, park_op, park_at_rest, NULL);
}

static const struct park_code real_code = {heddle_park_prepare, heddle_park_ring};

static void park_must_hold(unsigned nproducers, unsigned nconsumers, unsigned nworks,
                           bool has_spinners)
{
    const char *violation = park_model(&real_code, nproducers, nconsumers, nworks, has_spinners);

    if (violation != NULL)
        printf("%u producers, %u consumers, %u works each, %s: %s\n", nproducers, nconsumers,
               nworks, has_spinners ? "spinning" : "not spinning", violation);
    CHECK(violation == NULL);
}

TEST(model_no_wake_up_is_lost)
{
    for (unsigned nworks = 1; nworks <= 4; nworks++)
        park_must_hold(1, 1, nworks, false);
    park_must_hold(1, 2, 1, false);
    park_must_hold(2, 1, 1, false);
}

TEST(model_no_wake_up_is_lost_with_spinners)
{
    for (unsigned nworks = 1; nworks <= 4; nworks++)
        park_must_hold(1, 1, nworks, true);
    park_must_hold(1, 2, 1, true);
    park_must_hold(2, 1, 1, true);
    if (!TEST_SANITIZED)
        park_must_hold(1, 2, 2, true);
}

/*
 * The stronger property: nobody sleeps while there is work even when those who
 * found some stay busy with it for ever (here: end).
 */
static void park_once_op(unsigned thread)
{
    struct model_thread *t = model_self();
    enum park_phase phase = t->op, next;

    if (thread < park_run.nproducers) {
        park_produce(thread);
        return;
    }
    next = park_consume(thread, phase);
    t->op = next;
    t->is_done = next == SPIN && phase != COMMIT;
}

static void park_once_at_rest(void)
{
    struct park_world *w = park_world();
    bool has_work = atomic_load(&w->made[0]) + atomic_load(&w->made[1]) != atomic_load(&w->taken);

    for (unsigned i = 0; i < model.nthreads; i++)
        model_expect(!has_work || !park_state.thread[i].is_asleep, "one sleeps and there is work");
}

static const char *park_once_model(unsigned nconsumers, unsigned nworks, bool is_selfish)
{
    park_run.code = (struct park_code){heddle_park_prepare, heddle_park_ring};
    park_run.nproducers = 1;
    park_run.nconsumers = nconsumers;
    park_run.nworks = nworks;
    park_run.has_spinners = false;
    park_run.is_selfish = is_selfish;
    return model_run(&park_state, 1 + nconsumers, park_begin, park_once_op, park_once_at_rest,
                     NULL);
}

TEST(model_nobody_sleeps_while_others_are_busy)
{
    CHECK_STR(park_once_model(1, 2, false), NULL);
    CHECK_STR(park_once_model(2, 1, false), NULL);
    CHECK_STR(park_once_model(2, 2, false), NULL);
    CHECK(park_once_model(2, 2, true) != NULL);
    park_run.is_selfish = false;
}

/* A stop: thread 0 says so and rings for all; the others must end. */
static void park_stop_op(unsigned thread)
{
    struct park_world *w = park_world();
    struct model_thread *t = model_self();
    bool stops;

    if (thread == 0) {
        heddle_store_rel(&w->is_stopping, (uint64_t)1);
        heddle_park_ring_all(&w->p, 0);
        t->is_done = true;
        return;
    }
    heddle_park_prepare(&w->p, thread);
    stops = heddle_load_acq(&w->is_stopping) != 0;
    if (stops)
        heddle_park_cancel(&w->p, thread);
    else
        heddle_park_commit(&w->p, thread, 0);
    t->is_done = stops;
}

/* Two short sleeps with a timeout against one ring. */
static void park_timed_op(unsigned thread)
{
    struct park_world *w = park_world();
    struct model_thread *t = model_self();

    if (thread == 0) {
        heddle_park_ring(&w->p, 0);
        t->is_done = true;
        return;
    }
    heddle_park_prepare(&w->p, thread);
    heddle_park_commit(&w->p, thread, 1);
    t->is_done = ++t->op == 2;
}

static void park_all_done(void)
{
    for (unsigned i = 0; i < model.nthreads; i++)
        model_expect(park_state.thread[i].is_done, "a thread sleeps for good");
    park_check_counts(park_world());
}

TEST(model_stop_reaches_everybody)
{
    for (unsigned n = 1; n <= 2; n++) {
        park_run.nproducers = 1;
        park_run.nconsumers = n;
        CHECK_STR(model_run(&park_state, 1 + n, park_begin, park_stop_op, park_all_done, NULL),
                  NULL);
    }
}

TEST(model_timeouts_keep_the_count)
{
    for (unsigned n = 1; n <= 2; n++) {
        park_run.nproducers = 1;
        park_run.nconsumers = n;
        CHECK_STR(model_run(&park_state, 1 + n, park_begin, park_timed_op, park_all_done, NULL),
                  NULL);
    }
}

/* --- broken variants -------------------------------------------------------*/

/* Without the touch the store of `state` may come after the last look. */
static void prepare_without_touch(struct heddle_park *p, unsigned slot)
{
    heddle_add_acqrel(&p->nparked, 1u);
    heddle_store_rel(&p->slot[slot].state, PARKED);
}

/* Nobody knows. */
static void prepare_uncounted(struct heddle_park *p, unsigned slot)
{
    heddle_store_sc(&p->slot[slot].state, PARKED);
}

/* The look at nparked may come before the work is out. */
static void ring_without_bell(struct heddle_park *p, unsigned slot)
{
    (void)slot;
    if (heddle_load_rlx(&p->nparked) != 0 && heddle_load_rlx(&p->nspinning) == 0)
        heddle_park_wake_one(p);
}

TEST(model_catches_broken_variants)
{
    static const struct park_code broken[] = {
        {prepare_without_touch, heddle_park_ring},
        {prepare_uncounted, heddle_park_ring},
        {heddle_park_prepare, ring_without_bell},
    };

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        const char *v = park_model(&broken[i], 1, 1, 1, false);

        if (v == NULL)
            printf("variant %zu was not caught\n", i);
        CHECK(v != NULL);
    }
}

/* --- real threads ----------------------------------------------------------*/

enum { WORKERS = 3 };

struct park_shared {
    struct heddle_park p; /* slots: the workers, then the producer */
    size_t nworks;
    _Atomic size_t made, taken, done;
    _Atomic uint32_t is_stopping;
    _Atomic unsigned next_worker;
};

static bool park_shared_take(struct park_shared *s)
{
    size_t t = atomic_load_explicit(&s->taken, memory_order_relaxed);

    while (t < atomic_load_explicit(&s->made, memory_order_acquire))
        if (atomic_compare_exchange_weak(&s->taken, &t, t + 1))
            return true;
    return false;
}

static bool park_shared_stops(struct park_shared *s)
{
    return atomic_load_explicit(&s->is_stopping, memory_order_acquire) != 0;
}

static void *park_worker_main(void *arg)
{
    struct park_shared *s = arg;
    const unsigned me = atomic_fetch_add(&s->next_worker, 1u);

    while (!park_shared_stops(s)) {
        if (park_shared_take(s)) {
            atomic_fetch_add(&s->done, 1);
            continue;
        }
        heddle_park_prepare(&s->p, me);
        if (park_shared_take(s)) {
            atomic_fetch_add(&s->done, 1);
            heddle_park_cancel(&s->p, me);
        } else if (park_shared_stops(s)) {
            heddle_park_cancel(&s->p, me);
        } else {
            heddle_park_commit(&s->p, me, 0); /* no limit: a loss hangs */
        }
    }
    return NULL;
}

/* Each piece of work is made only when all before it are done, so that workers
 * fall asleep again and again; a lost wake-up ends in CTest's time limit. */
TEST(stress_four_threads)
{
    struct park_shared s = {.nworks = test_scale(10000)};
    struct heddle_thread worker[WORKERS];

    CHECK_OK(heddle_park_init(&s.p, NULL, WORKERS + 1));
    for (int i = 0; i < WORKERS; i++)
        CHECK_OK(heddle_thread_create(&worker[i], NULL, park_worker_main, &s));
    for (size_t i = 1; i <= s.nworks; i++) {
        atomic_store_explicit(&s.made, i, memory_order_release);
        heddle_park_ring(&s.p, WORKERS);
        while (i % 4 == 0 && atomic_load(&s.done) < i)
            heddle_thread_yield();
    }
    while (atomic_load(&s.done) < s.nworks)
        heddle_thread_yield();
    atomic_store_explicit(&s.is_stopping, 1u, memory_order_release);
    heddle_park_ring_all(&s.p, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        CHECK_OK(heddle_thread_join(&worker[i]));
    CHECK_EQ(atomic_load(&s.done), s.nworks);
    CHECK_EQ(atomic_load(&s.p.nparked), 0);
    heddle_park_fini(&s.p, NULL);
}

TEST_MAIN(a_wake_before_the_commit_is_not_lost, a_timeout_ends_the_sleep,
          nobody_is_woken_while_one_spins, model_no_wake_up_is_lost,
          model_no_wake_up_is_lost_with_spinners, model_nobody_sleeps_while_others_are_busy,
          model_stop_reaches_everybody, model_timeouts_keep_the_count,
          model_catches_broken_variants, stress_four_threads)
