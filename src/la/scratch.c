/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scratch: memory of tasks on cores, kept from one task to the next.
 *
 * Default    With the C library's allocator, scratch belongs to the thread and stays until the
 *            thread ends: touching new pages in each sequence would cost more than small calls.
 * Otherwise  With an allocator of the program, scratch belongs to the sequence, which gives it
 *            back at its end: a thread may live longer than that allocator.
 * Threads    A piece of scratch is used by one thread only. The list of a sequence grows while
 *            its tasks run, and nothing leaves it before the end.
 */
#include <pthread.h>

#include "base/alloc.h"
#include "la/la.h"

enum { STORES = 2, LARGE = 4 << 20 /* in huge pages */ };

struct store {
    void *p[STORES];
    size_t bytes[STORES];
};

struct la_scratch {
    struct la_scratch *next;
    pthread_t thread;
    struct store store;
};

static void store_clear(const struct heddle_allocator *a, struct store *s)
{
    for (unsigned i = 0; i < STORES; i++)
        heddle_free(a, s->p[i], s->bytes[i]);
}

static void *store_room(const struct heddle_allocator *a, struct store *s, unsigned i, size_t bytes)
{
    if (s == NULL)
        return NULL;
    if (s->bytes[i] < bytes) {
        heddle_free(a, s->p[i], s->bytes[i]);
        s->p[i] =
            bytes < LARGE ? heddle_alloc_aligned(a, bytes, 4096) : heddle_alloc_large(a, bytes);
        s->bytes[i] = s->p[i] != NULL ? bytes : 0;
    }
    return s->p[i];
}

/* --- of a thread ------------------------------------------------------------------ */

static struct {
    pthread_once_t once;
    pthread_key_t key;
    bool has_key;
} stores = {.once = PTHREAD_ONCE_INIT};

static void thread_free(void *arg)
{
    store_clear(&heddle_allocator_default, arg);
    heddle_free(&heddle_allocator_default, arg, sizeof(struct store));
}

static void thread_key(void)
{
    stores.has_key = pthread_key_create(&stores.key, thread_free) == 0;
}

static struct store *thread_store(void)
{
    struct store *s;

    (void)pthread_once(&stores.once, thread_key);
    if (!stores.has_key)
        return NULL;
    s = pthread_getspecific(stores.key);
    if (s != NULL)
        return s;
    s = heddle_zalloc(&heddle_allocator_default, 1, sizeof(*s));
    if (s != NULL && pthread_setspecific(stores.key, s) != 0) {
        heddle_free(&heddle_allocator_default, s, sizeof(*s));
        return NULL;
    }
    return s;
}

/* --- of a sequence ---------------------------------------------------------------- */

static struct store *sequence_store(heddle_la *la)
{
    const pthread_t self = pthread_self();
    struct la_scratch *first = atomic_load_explicit(&la->scratch, memory_order_acquire), *s;

    for (s = first; s != NULL; s = s->next)
        if (pthread_equal(s->thread, self))
            return &s->store;
    s = heddle_zalloc(&la->alloc, 1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->thread = self;
    do
        s->next = first;
    while (!atomic_compare_exchange_weak_explicit(&la->scratch, &first, s, memory_order_release,
                                                  memory_order_acquire));
    return &s->store;
}

void heddle_la_scratch_drop(heddle_la *la)
{
    struct la_scratch *s = atomic_exchange_explicit(&la->scratch, NULL, memory_order_acquire);

    while (s != NULL) {
        struct la_scratch *next = s->next;

        store_clear(&la->alloc, &s->store);
        heddle_free(&la->alloc, s, sizeof(*s));
        s = next;
    }
}

static void *room(heddle_la *la, unsigned i, size_t bytes)
{
    if (la == NULL || la->alloc.alloc == heddle_allocator_default.alloc)
        return store_room(&heddle_allocator_default, thread_store(), i, bytes);
    return store_room(&la->alloc, sequence_store(la), i, bytes);
}

void *heddle_la_work(heddle_la *la, size_t bytes)
{
    return room(la, 0, bytes);
}

void *heddle_la_pack_work(heddle_la *la, size_t bytes)
{
    return room(la, 1, bytes);
}
