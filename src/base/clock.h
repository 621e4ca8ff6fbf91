/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_CLOCK_H
#define HEDDLE_BASE_CLOCK_H

/*
 * Two clocks: ticks of the core's counter, as cheap as the machine allows, for
 * the hot path; nanoseconds of CLOCK_MONOTONIC for deadlines and reports. A
 * struct heddle_clock converts the first into the second.
 */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define HEDDLE_NS_PER_S UINT64_C(1000000000)

struct heddle_clock {
    double ns_per_tick;
    uint64_t tick0; /* the pair (tick0, ns0) was read at one moment */
    uint64_t ns0;
    bool is_tsc; /* hardware counter of constant rate, equal on all cores;
                    false: the conversion is an estimate, refine it often */
};

static inline uint64_t heddle_clock_read(clockid_t id)
{
    struct timespec ts = {0, 0};

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * HEDDLE_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds since some moment before the process began. Never goes back. */
static inline uint64_t heddle_clock_ns(void)
{
    return heddle_clock_read(CLOCK_MONOTONIC);
}

/* The moment `timeout_ns` from now; 0, which means "no limit", stays 0, and what
 * is too far away is as far as it gets. */
static inline uint64_t heddle_deadline_ns(uint64_t timeout_ns)
{
    const uint64_t now = heddle_clock_ns();

    if (timeout_ns == 0)
        return 0;
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

/* CPU time of the calling thread, of the process. */
static inline uint64_t heddle_clock_thread_ns(void)
{
    return heddle_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t heddle_clock_process_ns(void)
{
    return heddle_clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

/* The counter. Not ordered with the instructions around it: good to a few
 * dozen cycles, which is the price of being cheap. */
static inline uint64_t heddle_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t t;

    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return heddle_clock_read(CLOCK_MONOTONIC_RAW);
#endif
}

/* The clock of a simulation: ticks are nanoseconds since its beginning. */
static inline struct heddle_clock heddle_clock_virtual(void)
{
    return (struct heddle_clock){.ns_per_tick = 1, .is_tsc = true};
}

static inline bool heddle_clock_is_virtual(const struct heddle_clock *c)
{
    return c->tick0 == 0 && c->ns0 == 0;
}

/* Measures the rate; takes about 1 ms. Good to 1e-4 at once. */
void heddle_clock_init(struct heddle_clock *c);

/* Measures again from (tick0, ns0) until now: the longer ago heddle_clock_init
 * was, the better. Later conversions use the new rate, so values converted
 * before and after differ by the correction. Owner only. */
void heddle_clock_refine(struct heddle_clock *c);

/* The heddle_clock_ns() of that tick; ticks before tick0 are fine. */
static inline uint64_t heddle_clock_to_ns(const struct heddle_clock *c, uint64_t tick)
{
    const double d = (double)(int64_t)(tick - c->tick0) * c->ns_per_tick;

    return c->ns0 + (uint64_t)(int64_t)d;
}

/* A duration: ticks to nanoseconds. */
static inline double heddle_clock_delta_ns(const struct heddle_clock *c, uint64_t ticks)
{
    return (double)ticks * c->ns_per_tick;
}

/* The tick of that heddle_clock_ns(): for deadlines compared with ticks. */
static inline uint64_t heddle_clock_to_ticks(const struct heddle_clock *c, uint64_t ns)
{
    const double d = (double)(int64_t)(ns - c->ns0) / c->ns_per_tick;

    return c->tick0 + (uint64_t)(int64_t)d;
}

#endif /* HEDDLE_BASE_CLOCK_H */
