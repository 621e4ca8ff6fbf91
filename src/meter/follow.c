/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow: from raw readings of a counter to energy that never decreases.
 *
 * Purpose    counters wrap, jump back (a driver was loaded again, a machine was
 *            suspended) and now and then answer nonsense. What is not energy must
 *            not look like energy.
 * How        a step is believed if no machine could draw more: MOST_UJ_PER_NS since
 *            the last reading, and for SLACK_NS more because counters are brought
 *            up to date in steps. A reading below the last one is a wrap if that
 *            makes a believable step.
 * Invariants (1) sum never decreases
 *            (2) last <= range, unless range is 0
 */
#include "base/text.h"
#include "meter/meter.h"

#define MOST_UJ_PER_NS UINT64_C(10) /* 10 kW for one domain */
#define SLACK_NS       UINT64_C(100000000)

/* The largest step in that time. */
static uint64_t most_uj(uint64_t ns)
{
    uint64_t uj;

    if (ns > UINT64_MAX - SLACK_NS || __builtin_mul_overflow(ns + SLACK_NS, MOST_UJ_PER_NS, &uj))
        return UINT64_MAX;
    return uj;
}

static void explain(const struct heddle_follow *f, uint64_t raw, uint64_t ns, char *why)
{
    struct heddle_text t;

    heddle_text_init(&t, why, HEDDLE_METER_WHY);
    if (raw < f->last)
        heddle_text_add(&t, "the counter went back from %llu to %llu microjoules",
                        (unsigned long long)f->last, (unsigned long long)raw);
    else
        heddle_text_add(&t, "the counter jumped ahead by %llu microjoules",
                        (unsigned long long)(raw - f->last));
    heddle_text_str(&t, " in ");
    heddle_text_ns(&t, ns);
}

static void start_at(struct heddle_follow *f, uint64_t raw, uint64_t ns)
{
    f->last = raw;
    f->last_ns = ns;
    f->has_last = true;
}

bool heddle_follow_take(struct heddle_follow *f, uint64_t raw, uint64_t ns, char *why)
{
    const uint64_t dt = ns > f->last_ns ? ns - f->last_ns : 0;
    uint64_t step = UINT64_MAX;
    struct heddle_text t;

    if (f->range != 0 && raw > f->range) {
        heddle_text_init(&t, why, HEDDLE_METER_WHY);
        heddle_text_add(&t,
                        "the counter says %llu microjoules, but it ends at "
                        "%llu",
                        (unsigned long long)raw, (unsigned long long)f->range);
        return false; /* nonsense: the next reading is compared with `last` */
    }
    if (!f->has_last) {
        start_at(f, raw, ns);
        return true;
    }
    if (raw >= f->last)
        step = raw - f->last;
    else if (f->range != 0) /* invariant (2): no overflow below the range */
        step = f->range - f->last + raw;
    if (step > most_uj(dt)) {
        explain(f, raw, dt, why);
        start_at(f, raw, ns);
        f->has_gap = true;
        return false;
    }
    if (__builtin_add_overflow(f->sum, step, &f->sum))
        f->sum = UINT64_MAX;
    start_at(f, raw, ns);
    return true;
}
