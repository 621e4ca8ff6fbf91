/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync: locks, time, chance.
 *
 * Purpose    a lock of pthread tells the thread sanitizer that what was done
 *            before an unlock is known after the next lock: then a queue that
 *            both sides look at would hide that one of them did not wait. These
 *            locks are made of a word and the futex call, in code that is compiled
 *            without the thread sanitizer, so that it sees no order but what
 *            fc_release() and fc_acquire() say.
 * Threads    any.
 */
#include "fakecuda.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void fc_lock(struct fc_lock *l)
{
    uint32_t was = 0;

    if (atomic_compare_exchange_strong(&l->word, &was, 1))
        return;
    while (atomic_exchange(&l->word, 2) != 0)
        futex_wait(&l->word, 2);
}

void fc_unlock(struct fc_lock *l)
{
    if (atomic_exchange(&l->word, 0) == 2)
        futex_wake(&l->word, 1);
}

void fc_wait(struct fc_cond *c, struct fc_lock *l)
{
    const uint32_t count = atomic_load(&c->count);

    fc_unlock(l);
    futex_wait(&c->count, count);
    fc_lock(l);
}

void fc_wake(struct fc_cond *c)
{
    atomic_fetch_add(&c->count, 1);
    futex_wake(&c->count, INT32_MAX);
}

/* Of the sanitizer's library, where the program has one. */
void __tsan_acquire(void *at) __attribute__((weak));
void __tsan_release(void *at) __attribute__((weak));

void fc_release(void *at)
{
    if (__tsan_release != NULL)
        __tsan_release(at);
}

void fc_acquire(void *at)
{
    if (__tsan_acquire != NULL)
        __tsan_acquire(at);
}

uint64_t fc_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void fc_pause(uint64_t ns)
{
    const uint64_t end = fc_now_ns() + ns;

    if (ns > 50000) {
        const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                                   .tv_nsec = (long)(ns % 1000000000u)};

        nanosleep(&t, NULL);
    }
    while (fc_now_ns() < end)
        sched_yield();
}

static _Atomic uint64_t random_state = 1;

void fc_random_seed(uint64_t seed)
{
    atomic_store(&random_state, seed);
}

uint32_t fc_random(void)
{
    uint64_t z = atomic_fetch_add(&random_state, UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}
