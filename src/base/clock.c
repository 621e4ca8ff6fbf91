/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock: calibrates the core's counter against CLOCK_MONOTONIC.
 *
 * Purpose    gives ns_per_tick good to 1e-4 within 1 ms. The rate that CPUID
 *            or the device tree announces is not used: it is missing on many
 *            machines, nominal on others and wrong under some hypervisors.
 * Method     one pair (tick, ns) at each end. A pair reads tick, ns, tick and
 *            takes the middle; of several tries the one with the least time
 *            between the two ticks wins, which throws interrupts away. Each
 *            pair is good to about 20 ns, so 1 ms gives 4e-5.
 * Threads    a clock belongs to its owner; conversions are read-only.
 */
#include "base/clock.h"

#include "base/atomic.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATE_NS UINT64_C(1000000)
#define PAIR_TRIES   8

static bool counter_is_constant(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;

    /* "Invariant TSC": constant rate in all power states. */
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    return true; /* by the architecture */
#else
    return false;
#endif
}

static void read_pair(uint64_t *tick_out, uint64_t *ns_out)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < PAIR_TRIES; i++) {
        const uint64_t before = heddle_ticks();
        const uint64_t ns = heddle_clock_ns();
        const uint64_t width = heddle_ticks() - before;

        if (width < best) {
            best = width;
            *tick_out = before + width / 2;
            *ns_out = ns;
        }
    }
}

void heddle_clock_refine(struct heddle_clock *c)
{
    uint64_t tick = 0, ns = 0;

    read_pair(&tick, &ns);
    if (tick > c->tick0 && ns > c->ns0)
        c->ns_per_tick = (double)(ns - c->ns0) / (double)(tick - c->tick0);
}

void heddle_clock_init(struct heddle_clock *c)
{
    *c = (struct heddle_clock){
        .ns_per_tick = 1.0,
        .is_tsc = counter_is_constant(),
    };
    read_pair(&c->tick0, &c->ns0);
    while (heddle_clock_ns() - c->ns0 < CALIBRATE_NS)
        heddle_pause();
    heddle_clock_refine(c);
}
