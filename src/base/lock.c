/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock: mutexes that know their order.
 *
 * Purpose    a wrong lock order fails in the first test that runs it, not in
 *            the one run in a million that deadlocks.
 * Structure  HEDDLE_DEBUG >= 2: each thread keeps the locks it holds in `held`,
 *            the only mutable thread-local of the code base. It must outlive
 *            every context, so it cannot hang off one. Below 2 the stack and
 *            its checks do not exist.
 * Invariants (1) rank of a lock() > every rank held by the thread
 *            (2) unlock() is called by the holder
 * Threads    any.
 */
#include "base/lock.h"

#include "base/assert.h"

#if HEDDLE_DEBUG >= 2

#define HELD_MAX 16

static _Thread_local struct {
    const struct heddle_mutex *lock[HELD_MAX];
    unsigned n;
} held;

/* Invariant (1), before waiting: a deadlock would hide the message. */
static void held_check(const struct heddle_mutex *l)
{
    for (unsigned i = 0; i < held.n; i++) {
        const struct heddle_mutex *h = held.lock[i];

        if (h->rank >= l->rank)
            heddle_panic(__FILE__, __LINE__,
                         "lock order: '%s' (rank %d) taken under '%s' "
                         "(rank %d)",
                         l->name, (int)l->rank, h->name, (int)h->rank);
    }
}

static void held_push(const struct heddle_mutex *l)
{
    HEDDLE_ASSERT(held.n < HELD_MAX);
    held.lock[held.n++] = l;
}

static void held_pop(const struct heddle_mutex *l)
{
    unsigned i = held.n;

    while (i > 0 && held.lock[i - 1] != l)
        i--;
    if (i == 0)
        heddle_panic(__FILE__, __LINE__, "unlock of '%s', which this thread does not hold",
                     l->name);
    for (; i < held.n; i++)
        held.lock[i - 1] = held.lock[i];
    held.n--;
}

bool heddle_mutex_is_held(const struct heddle_mutex *l)
{
    for (unsigned i = 0; i < held.n; i++) {
        if (held.lock[i] == l)
            return true;
    }
    return false;
}

#else

static void held_check(const struct heddle_mutex *l)
{
    (void)l;
}

static void held_push(const struct heddle_mutex *l)
{
    (void)l;
}

static void held_pop(const struct heddle_mutex *l)
{
    (void)l;
}

bool heddle_mutex_is_held(const struct heddle_mutex *l)
{
    (void)l;
    return true;
}

#endif

/* The results below are ours to get right: a plain mutex that is initialised
 * has no other way to fail. */
static void must(int err)
{
    HEDDLE_ASSERT(err == 0);
    (void)err;
}

void heddle_mutex_init(struct heddle_mutex *l, enum heddle_rank rank, const char *name)
{
    l->rank = rank;
    l->name = name;
    must(pthread_mutex_init(&l->m, NULL));
}

void heddle_mutex_fini(struct heddle_mutex *l)
{
    must(pthread_mutex_destroy(&l->m));
}

void heddle_mutex_lock(struct heddle_mutex *l)
{
    held_check(l);
    must(pthread_mutex_lock(&l->m));
    held_push(l);
}

bool heddle_mutex_trylock(struct heddle_mutex *l)
{
    if (pthread_mutex_trylock(&l->m) != 0)
        return false;
    held_push(l);
    return true;
}

void heddle_mutex_unlock(struct heddle_mutex *l)
{
    held_pop(l);
    must(pthread_mutex_unlock(&l->m));
}
