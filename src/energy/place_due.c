/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place_due: jobs with due dates; as much work here as possible.
 *
 * Idea       machine by machine, the most work that one machine can do of what is
 *            left: each gains at least 1/m of what the best placement still has, so
 *            1 - ((m - 1) / m)^m of it together.
 * One        in the order of due dates, all sums of durations that can be reached,
 * machine    as bits: reach |= (reach << p) & [0, due]. The first job that reaches a
 *            sum is kept with it; going back from the largest sum gives the jobs.
 * Units      durations are multiples of their greatest common divisor, so a bit is
 *            that long, and the answer exact. When that needs too many bits, bits
 *            are longer, durations are rounded up and due dates down; what then
 *            still fits in microseconds is added, and the same from nothing is tried
 *            as well (`top_up`). What a machine gained against what it could at most
 *            have gained is known, and goes into `proved`.
 * Cost       about opts.work words in all; when they are spent, the rest is done by
 *            `top_up` alone.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "energy/place.h"

/* CALL: words that a job costs besides those of its sums. */
enum { CHUNK = 32, CALL = 16, LEAST_BITS = 1024, MOST_BITS = 1 << 24 };

/* The jobs that are left, by due date. */
struct list {
    size_t n;
    uint64_t *p, *due; /* microseconds */
    uint32_t *id;
};

struct machine {
    struct list left;
    uint64_t most_bits;
    uint64_t work; /* words that may still be looked at */
    uint64_t most; /* no choice does more work */
    uint64_t unit;
    bool is_exact;
    uint64_t *reach; /* of MOST bits; a zero word in front */
    uint32_t *first; /* [bits] the job that reached the sum first */
    bool *a, *b;     /* [n] choices */
    uint64_t *slack; /* [n] */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Of all durations. */
static uint64_t common_unit(const struct list *l)
{
    uint64_t g = 0;

    for (size_t i = 0; i < l->n && g != 1; i++)
        g = gcd(l->p[i], g);
    return g;
}

/* The work that m machines do at most when jobs may be cut anywhere. */
static uint64_t fluid(const struct list *l, uint64_t m)
{
    uint64_t u = 0;

    for (size_t i = 0; i < l->n; i++) {
        uint64_t room;

        if (__builtin_mul_overflow(l->due[i], m, &room))
            room = UINT64_MAX;
        u = least(u + l->p[i], room);
    }
    return u;
}

/* --- sums as bits ---------------------------------------------------------- */

static void mark_new(struct machine *k, size_t word, uint64_t x, uint32_t job)
{
    k->reach[word] |= x;
    for (; x != 0; x &= x - 1)
        k->first[word * 64 + (unsigned)__builtin_ctzll(x)] = job;
}

/* Sums up to `last` that end with a job of p units. Words are handled in pieces from
 * the top: what a piece reads has not changed yet. */
static void add_job(struct machine *k, uint64_t p, uint64_t last, uint32_t job)
{
    const size_t jump = p / 64, end = last / 64 + 1;
    const unsigned bits = p % 64;
    const uint64_t top = last % 64 == 63 ? UINT64_MAX : (UINT64_C(1) << (last % 64 + 1)) - 1;
    uint64_t x[CHUNK];

    for (size_t hi = end; hi > jump;) {
        const size_t n = hi - jump < CHUNK ? hi - jump : CHUNK, lo = hi - n;
        const uint64_t *src = k->reach + lo - jump, *old = k->reach + lo;
        uint64_t any = 0;

        if (bits == 0)
            for (size_t i = 0; i < n; i++)
                any |= x[i] = src[i] & ~old[i];
        else
            for (size_t i = 0; i < n; i++)
                any |= x[i] = (src[i] << bits | src[(ptrdiff_t)i - 1] >> (64 - bits)) & ~old[i];
        if (hi == end)
            x[n - 1] &= top;
        for (size_t i = 0; any != 0 && i < n; i++)
            mark_new(k, lo + i, x[i], job);
        hi = lo;
    }
}

/* There is none above `last`. */
static uint64_t largest_sum(const struct machine *k, uint64_t last)
{
    size_t word = last / 64;

    while (k->reach[word] == 0) /* ends at the sum 0 */
        word--;
    return word * 64 + 63 - (unsigned)__builtin_clzll(k->reach[word]);
}

static void choose_bits(struct machine *k, bool *in)
{
    const struct list *l = &k->left;
    const uint64_t cap = k->most / k->unit;
    uint64_t sum = 0, largest = 0, words = l->n;

    memset(k->reach - 1, 0, (cap / 64 + 2) * sizeof(*k->reach));
    memset(in, 0, l->n * sizeof(*in));
    k->reach[0] = 1;
    for (size_t i = 0; i < l->n && largest < cap; i++) {
        const uint64_t p = (l->p[i] - 1) / k->unit + 1;
        const uint64_t last = least(least(l->due[i] / k->unit, cap), largest + p);

        if (p > last)
            continue;
        add_job(k, p, last, (uint32_t)i);
        words += (last - p) / 64 + CALL;
        largest = largest_sum(k, last > largest ? last : largest);
    }
    k->work -= least(k->work, words);
    for (sum = largest; sum > 0;) {
        const uint32_t i = k->first[sum];

        in[i] = true;
        sum -= (l->p[i] - 1) / k->unit + 1;
    }
}

/* --- microseconds ---------------------------------------------------------- */

/* Adds the jobs that still fit, by due date; the work of all. */
static uint64_t top_up(struct machine *k, bool *in)
{
    const struct list *l = &k->left;
    uint64_t end = 0, slack = UINT64_MAX, added = 0;

    for (size_t i = 0; i < l->n; i++)
        end += in[i] ? l->p[i] : 0;
    for (size_t i = l->n; i-- > 0;) {
        if (in[i]) {
            slack = least(slack, l->due[i] - end);
            end -= l->p[i];
        }
        k->slack[i] = slack; /* of the chosen ones from here on */
    }
    for (size_t i = 0; i < l->n; i++) {
        if (!in[i] && end + l->p[i] <= l->due[i] &&
            (k->slack[i] == UINT64_MAX || added + l->p[i] <= k->slack[i])) {
            in[i] = true;
            added += l->p[i];
        } else if (!in[i]) {
            continue;
        }
        end += l->p[i];
    }
    return end;
}

/* The choice is in k->a; its work is returned. */
static uint64_t choose(struct machine *k)
{
    const struct list *l = &k->left;
    const uint64_t g = common_unit(l);
    uint64_t work = 0, other;

    k->most = fluid(l, 1);
    k->is_exact = k->work > 0 && k->most / g < k->most_bits;
    k->unit = k->is_exact ? g : k->most / k->most_bits + 1;
    if (k->work > 0) {
        choose_bits(k, k->a);
    } else {
        memset(k->a, 0, l->n * sizeof(*k->a));
        k->unit = 1;
    }
    if (k->is_exact) {
        for (size_t i = 0; i < l->n; i++)
            work += k->a[i] ? l->p[i] : 0;
        return work;
    }
    work = top_up(k, k->a);
    memset(k->b, 0, l->n * sizeof(*k->b));
    other = top_up(k, k->b);
    if (other > work) {
        memcpy(k->a, k->b, l->n * sizeof(*k->a));
        work = other;
    }
    return work;
}

/* --- all machines ---------------------------------------------------------- */

static void take(struct heddle_energy_draft *d, struct machine *k, uint32_t m)
{
    struct list *l = &k->left;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (k->a[i]) {
            d->machine[l->id[i]] = m;
            continue;
        }
        l->p[n] = l->p[i];
        l->due[n] = l->due[i];
        l->id[n++] = l->id[i];
    }
    l->n = n;
}

static heddle_status prepare(struct heddle_energy_draft *d, struct machine *k)
{
    const uint64_t jobs = (uint64_t)d->n * d->o.machines;
    struct list *l = &k->left;
    uint64_t *due = heddle_scratch_get(&d->tmp, d->n, sizeof(*due));
    const uint32_t *order;

    l->p = heddle_scratch_get(&d->tmp, d->n, sizeof(*l->p));
    l->due = heddle_scratch_get(&d->tmp, d->n, sizeof(*l->due));
    l->id = heddle_scratch_get(&d->tmp, d->n, sizeof(*l->id));
    k->a = heddle_scratch_get(&d->tmp, d->n, sizeof(*k->a));
    k->b = heddle_scratch_get(&d->tmp, d->n, sizeof(*k->b));
    k->slack = heddle_scratch_get(&d->tmp, d->n, sizeof(*k->slack));
    if (due == NULL || l->p == NULL || l->due == NULL || l->id == NULL || k->a == NULL ||
        k->b == NULL || k->slack == NULL)
        return HEDDLE_ENOMEM;
    /* Whatever is due after all work is done is due then. */
    for (size_t i = 0; i < d->n; i++)
        due[i] = least(d->jobs[i].due_us, d->total);
    order = heddle_energy_place_order(&d->tmp, due, d->n);
    if (order == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < d->n; i++) {
        const uint32_t id = order[i];

        if (d->jobs[id].us > due[id])
            continue; /* late in any case */
        l->p[l->n] = d->jobs[id].us;
        l->due[l->n] = due[id];
        l->id[l->n++] = id;
    }
    k->work = d->o.work;
    k->most_bits = d->o.work / jobs < MOST_BITS / 64 ? d->o.work / jobs * 64 : MOST_BITS;
    if (k->most_bits < LEAST_BITS)
        k->most_bits = LEAST_BITS;
    return HEDDLE_OK;
}

static heddle_status make_bits(struct heddle_energy_draft *d, struct machine *k)
{
    const uint64_t g = k->left.n == 0 ? 1 : common_unit(&k->left);
    const uint64_t bits = least(k->most_bits, fluid(&k->left, 1) / g) + 64;

    k->reach = heddle_scratch_get(&d->tmp, bits / 64 + 2, sizeof(*k->reach));
    k->first = heddle_scratch_get(&d->tmp, bits + 64, sizeof(*k->first));
    if (k->reach == NULL || k->first == NULL)
        return HEDDLE_ENOMEM;
    k->reach++; /* the word in front stays zero */
    return HEDDLE_OK;
}

heddle_status heddle_energy_place_due(struct heddle_energy_draft *d)
{
    const double m = d->o.machines;
    struct machine k;
    double gap = 1, bound, here = 0;

    memset(&k, 0, sizeof(k));
    HEDDLE_TRY(prepare(d, &k));
    HEDDLE_TRY(make_bits(d, &k));
    bound = (double)fluid(&k.left, d->o.machines);
    for (uint32_t i = 0; i < d->o.machines && k.left.n > 0; i++) {
        const double work = (double)choose(&k);
        const double most = k.is_exact ? work : (double)k.most;

        if (i == 0)
            bound = fmin(bound, m * most);
        if (!k.is_exact && k.unit > d->unit_us)
            d->unit_us = k.unit;
        here += work;
        gap *= 1 - work / most / m;
        take(d, &k, i);
    }
    d->proved = k.left.n == 0 ? 1 : 1 - gap;
    d->bound = fmin(bound, here / d->proved) / 1e6;
    return HEDDLE_OK;
}
