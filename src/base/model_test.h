/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_MODEL_TEST_H
#define HEDDLE_BASE_MODEL_TEST_H

/*
 * For tests: every interleaving of a few threads over the real lock-free code.
 *
 * Include it before the code under test. It replaces the macros of base/atomic.h
 * by versions that, while the model is on, stop a thread before each access to
 * shared memory; when it is off they are the real ones, so that the same program
 * can run a stress test with real threads.
 *
 * Memory model: x86-TSO. A store (relaxed or release) goes into the store buffer
 * of its thread, in order, and reaches memory at any later moment; loads look
 * into the own buffer first; read-modify-writes, sequentially consistent stores
 * and system calls drain it. Sequential consistency is the special case of
 * buffers that drain at once, so it is covered. What only weaker machines do is
 * not: there TSan watches the orders that the code asks for.
 *
 * Search: depth first over states, each visited once. A state is the test's
 * world and what it put into model.region, the buffers, and for each thread the operation it is
 * in and the values
 * that its accesses returned so far. So a thread needs no stack of its own: to
 * make one step, its operation is called again from the beginning, gets the
 * values of the past from the log, does one new access, and is left by longjmp()
 * at the next. An operation must therefore be a function of its log: it changes
 * the world outside of atomics only after its last access, and puts fields that
 * belong to it alone (model_thread.own) back first.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "tests/test.h"

enum {
    MODEL_THREADS = 4,
    MODEL_LOG = 40,     /* accesses in one operation */
    MODEL_BUFFER = 8,   /* stores that have not reached memory */
    MODEL_WORLD = 1024, /* bytes */
    MODEL_REGIONS = 4,
    MODEL_REGION = 2048, /* bytes of all */
};

struct model_store {
    void *addr;
    uint64_t value;
    uint64_t bytes;
};

struct model_thread {
    uint32_t op;      /* the test's: how far it is */
    uint32_t nlog;    /* accesses of the operation under way */
    uint32_t nstores; /* in the buffer */
    bool is_done;     /* the test's: nothing more to do */
    bool is_asleep;   /* in futex_wait */
    bool is_timed;    /* with a timeout: may wake by itself */
    bool is_woken;    /* by futex_wake */
    void *futex;      /* what it sleeps on */
    int64_t own;      /* the test's: see the top */
    struct model_store buffer[MODEL_BUFFER];
    uint64_t log[MODEL_LOG];
};

/* What a state consists of. */
struct model_state {
    struct model_thread thread[MODEL_THREADS];
    unsigned char world[MODEL_WORLD];
    unsigned char region[MODEL_REGION]; /* copies, in a saved state */
};

struct model_hash {
    uint64_t a, b;
};

static struct {
    bool is_on;
    struct model_state *now; /* NULL until model_run() */
    unsigned nthreads;
    void (*op)(unsigned thread);
    void (*at_rest)(void); /* checks a state in which no thread can go on */
    const char *violation; /* NULL: none so far */

    /* Changing memory outside of the world; set before model_run(). */
    struct {
        void *addr;
        size_t bytes;
    } region[MODEL_REGIONS];

    unsigned self; /* the thread that makes a step */
    uint32_t pos;  /* in its log */
    bool has_stepped;
    uint64_t kept;
    jmp_buf out;

    struct model_hash *seen; /* open addressing; {0, 0}: free */
    size_t nseen, cap;
} model;

static inline struct model_thread *model_self(void)
{
    return &model.now->thread[model.self];
}

/* To be called by operations and at_rest. */
static inline void model_expect(bool ok, const char *what)
{
    if (!ok && model.violation == NULL)
        model.violation = what;
}

/* --- accesses --------------------------------------------------------------*/

/* True: the value is in the log. Else this is the one new access of the step;
 * at the second one the step is over. */
static inline bool model_enter(void)
{
    if (model.pos < model_self()->nlog)
        return true;
    if (model.has_stepped)
        longjmp(model.out, 1);
    model.has_stepped = true;
    return false;
}

static inline uint64_t model_get(void)
{
    return model_self()->log[model.pos++];
}

static inline uint64_t model_put(uint64_t value)
{
    struct model_thread *t = model_self();

    CHECK(t->nlog < MODEL_LOG);
    t->log[t->nlog++] = value;
    model.pos++;
    return value;
}

static inline bool model_keep(bool value)
{
    model.kept = value;
    return value;
}

/* The oldest store of thread t reaches memory. */
static inline void model_flush(struct model_thread *t)
{
    const struct model_store s = t->buffer[0];

    memcpy(s.addr, &s.value, s.bytes); /* little-endian */
    t->nstores--;
    memmove(&t->buffer[0], &t->buffer[1], t->nstores * sizeof(s));
    memset(&t->buffer[t->nstores], 0, sizeof(s));
}

static inline void model_drain(void)
{
    while (model_self()->nstores > 0)
        model_flush(model_self());
}

/* What thread t would load; no step. */
static inline uint64_t model_peek(unsigned thread, const void *addr, size_t bytes)
{
    const struct model_thread *t = &model.now->thread[thread];
    uint64_t value = 0;

    for (uint32_t i = t->nstores; i-- > 0;)
        if (t->buffer[i].addr == addr)
            return t->buffer[i].value;
    memcpy(&value, addr, bytes);
    return value;
}

static inline uint64_t model_load(const void *addr, size_t bytes)
{
    if (model_enter())
        return model_get();
    return model_put(model_peek(model.self, addr, bytes));
}

/* No step: nobody sees it before it leaves the buffer. */
static inline void model_store(void *addr, uint64_t value, size_t bytes)
{
    struct model_thread *t = model_self();
    const uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 32) - 1;

    if (model.pos < t->nlog) {
        model_get();
        return;
    }
    model_put(0);
    if (t->nstores == MODEL_BUFFER)
        model_flush(t); /* full: so does the machine */
    t->buffer[t->nstores++] =
        (struct model_store){.addr = addr, .value = value & mask, .bytes = bytes};
}

/* --- futex -----------------------------------------------------------------*/

/* FUTEX_WAIT: 0 woken, -1 the word had another value, or timed out. */
static inline long model_futex_wait(void *word, uint32_t value, bool is_timed)
{
    struct model_thread *t = model_self();

    if (model_enter())
        return (long)model_get();
    model_drain();
    if (t->is_asleep) { /* scheduled again: woken or timed out */
        const bool is_woken = t->is_woken;

        t->is_asleep = t->is_woken = t->is_timed = false;
        t->futex = NULL;
        return (long)model_put(is_woken ? 0 : (uint64_t)-1);
    }
    if ((uint32_t)model_peek(model.self, word, 4) != value)
        return (long)model_put((uint64_t)-1);
    t->is_asleep = true;
    t->is_timed = is_timed;
    t->futex = word;
    longjmp(model.out, 1);
}

/* FUTEX_WAKE of one. */
static inline long model_futex_wake(void *word)
{
    if (model_enter())
        return (long)model_get();
    model_drain();
    for (unsigned i = 0; i < model.nthreads; i++) {
        struct model_thread *t = &model.now->thread[i];

        if (t->is_asleep && !t->is_woken && t->futex == word) {
            t->is_woken = true;
            return (long)model_put(1);
        }
    }
    return (long)model_put(0);
}

/* --- search ----------------------------------------------------------------*/

static inline struct model_hash model_hash_words(struct model_hash h, const void *p, size_t bytes)
{
    const unsigned char *c = p;

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t w = 0;

        memcpy(&w, c + i, bytes - i < 8 ? bytes - i : 8);
        h.a = heddle_mix64(h.a ^ w) + UINT64_C(0x9e3779b97f4a7c15);
        h.b = (h.b ^ w) * UINT64_C(0xff51afd7ed558ccd);
        h.b ^= h.b >> 32;
    }
    return h;
}

static inline struct model_hash model_hash_now(void)
{
    struct model_hash h = {.a = 1, .b = 1};

    h = model_hash_words(h, model.now->world, MODEL_WORLD);
    for (unsigned i = 0; i < MODEL_REGIONS; i++)
        h = model_hash_words(h, model.region[i].addr, model.region[i].bytes);
    for (unsigned i = 0; i < model.nthreads; i++) {
        const struct model_thread *t = &model.now->thread[i];

        h = model_hash_words(h, t, offsetof(struct model_thread, buffer));
        h = model_hash_words(h, t->buffer, t->nstores * sizeof(t->buffer[0]));
        h = model_hash_words(h, t->log, t->nlog * sizeof(t->log[0]));
    }
    return h;
}

/* 128 bits stand for the state: two of a few million never meet. */
static inline bool model_insert(struct model_hash h)
{
    size_t i = h.a & (model.cap - 1);

    for (; model.seen[i].a != 0 || model.seen[i].b != 0; i = (i + 1) & (model.cap - 1))
        if (model.seen[i].a == h.a && model.seen[i].b == h.b)
            return false;
    model.seen[i] = h;
    model.nseen++;
    return true;
}

static inline bool model_is_new(void)
{
    if (2 * (model.nseen + 1) > model.cap) {
        struct model_hash *old = model.seen;
        const size_t n = model.cap;

        model.cap = n == 0 ? 1024 : 4 * n;
        model.seen = calloc(model.cap, sizeof(*model.seen));
        CHECK(model.seen != NULL);
        model.nseen = 0;
        for (size_t i = 0; i < n; i++)
            if (old[i].a != 0 || old[i].b != 0)
                model_insert(old[i]);
        free(old);
    }
    return model_insert(model_hash_now());
}

static inline bool model_can_run(const struct model_thread *t)
{
    return !t->is_done && (!t->is_asleep || t->is_woken || t->is_timed);
}

static inline void model_advance(unsigned thread)
{
    model.self = thread;
    model.pos = 0;
    model.has_stepped = false;
    if (setjmp(model.out) == 0) {
        model.op(thread);
        model_self()->nlog = 0; /* the operation is over */
    }
}

/* Between `saved` and the state of now. */
static inline void model_copy(struct model_state *saved, bool restores)
{
    unsigned char *p = saved->region;

    if (restores)
        *model.now = *saved;
    else
        *saved = *model.now;
    for (unsigned i = 0; i < MODEL_REGIONS; i++) {
        const size_t n = model.region[i].bytes;

        CHECK(n <= (size_t)(saved->region + MODEL_REGION - p));
        if (n != 0)
            memcpy(restores ? model.region[i].addr : p, restores ? p : model.region[i].addr, n);
        p += n;
    }
}

/* All that can come after the state of now. */
static inline void model_explore(unsigned depth)
{
    struct model_state *saved;
    bool is_rest = true;

    if (!model_is_new())
        return;
    CHECK(depth < 1000);
    saved = malloc(sizeof(*saved));
    CHECK(saved != NULL);
    model_copy(saved, false);
    for (unsigned i = 0; i < 2 * model.nthreads; i++) {
        struct model_thread *t = &model.now->thread[i / 2];

        if (i % 2 == 0 ? !model_can_run(t) : t->nstores == 0)
            continue;
        is_rest = false;
        if (i % 2 == 0)
            model_advance(i / 2);
        else
            model_flush(t);
        if (model.violation == NULL)
            model_explore(depth + 1);
        if (model.violation != NULL)
            break;
        model_copy(saved, true);
    }
    if (is_rest)
        model.at_rest();
    free(saved);
}

/*
 * Starts from what init() makes of a zeroed world. Returns the first violation
 * or NULL, and into *nstates_out (may be NULL) how many states there are.
 */
static inline const char *model_run(struct model_state *state, unsigned nthreads,
                                    void (*init)(void), void (*op)(unsigned), void (*at_rest)(void),
                                    size_t *nstates_out)
{
    memset(state, 0, sizeof(*state));
    model.now = state;
    model.nthreads = nthreads;
    model.op = op;
    model.at_rest = at_rest;
    model.violation = NULL;
    init();
    model.is_on = true;
    model_explore(0);
    model.is_on = false;
    if (nstates_out != NULL)
        *nstates_out = model.nseen;
    free(model.seen);
    model.seen = NULL;
    model.nseen = model.cap = 0;
    return model.violation;
}

#include "base/model_atomic_test.h" /* from here on, atomics are the model's */

#endif /* HEDDLE_BASE_MODEL_TEST_H */
