/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_THREAD_H
#define HEDDLE_BASE_THREAD_H

/*
 * Threads: create with a name, a stack size and a set of CPUs; join; bind.
 * CPUs are named by the kernel's index. The threads of the library take no
 * signal that is not caused by their own instructions (SIGPROF excepted, for
 * profilers), so the host's handlers run on the host's threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

/* The kernel's own bound on CPU indices. */
#define HEDDLE_CPU_MAX 8192

struct heddle_thread {
    pthread_t id;
};

struct heddle_thread_opts {
    const char *name;   /* NULL: inherited; cut to 15 bytes */
    size_t stack_bytes; /* 0: the system's; rounded up to what it needs */
    const int *cpus;    /* NULL: inherited */
    unsigned ncpus;
};

/*
 * Starts fn(arg). `opts` may be NULL. Until heddle_thread_join().
 *
 * HEDDLE_EINVAL  fn is NULL, a CPU is out of range, or none is usable
 * HEDDLE_ENOMEM  the system has no thread or no stack to give
 */
HEDDLE_MUST_USE heddle_status heddle_thread_create(struct heddle_thread *t,
                                                   const struct heddle_thread_opts *opts,
                                                   void *(*fn)(void *arg), void *arg);

/* Waits for its end. HEDDLE_EDEADLK: a thread that joins itself. */
HEDDLE_MUST_USE heddle_status heddle_thread_join(struct heddle_thread *t);

/* Binds the calling thread to these CPUs. HEDDLE_EINVAL as above. */
HEDDLE_MUST_USE heddle_status heddle_thread_bind(const int *cpus, unsigned ncpus);

/* The CPUs the calling thread may use, ascending. *n_out may exceed cap: then
 * only cap were written. `cpus` may be NULL when cap is 0. */
HEDDLE_MUST_USE heddle_status heddle_thread_get_cpus(int *cpus, unsigned cap, unsigned *n_out);

/* Moves the calling thread to that CPU now and leaves it free to go elsewhere. */
void heddle_thread_nudge(int cpu);

/* The CPU the caller runs on now, -1 when unknown. */
int heddle_thread_cpu(void);

/* The kernel's id of the calling thread. */
uint32_t heddle_thread_id(void);

/* At least that long; signals do not shorten it. */
void heddle_thread_sleep_ns(uint64_t ns);

/* The calling thread's sleeps end when they should, not up to 50 us later. */
void heddle_thread_sharpen(void);

static inline void heddle_thread_yield(void)
{
    sched_yield();
}

#endif /* HEDDLE_BASE_THREAD_H */
