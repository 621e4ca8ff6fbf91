/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * box: do two boxes share an element, does one hold the other?
 *
 * Structure  a box is a product of arithmetic progressions, one per dimension,
 *            so both questions are answered exactly, dimension by dimension: a
 *            product is empty when a factor is, and inside when all factors are.
 *            Two progressions a + i p and b + j q meet when a = b mod gcd(p, q)
 *            and the first common element past max(a, b) is in both ranges.
 * Cost       O(ndim log step).
 */
#include "data/data.h"

/* Products of two indices; steps may be absurdly large. */
__extension__ typedef unsigned __int128 box_wide;

static size_t box_gcd(size_t a, size_t b)
{
    while (b != 0) {
        size_t t = a % b;

        a = b;
        b = t;
    }
    return a;
}

/* x with (x * a) mod m == 1; a and m coprime, m > 1. */
static size_t box_inverse(size_t a, size_t m)
{
    int64_t r0 = (int64_t)m, r1 = (int64_t)(a % m), s0 = 0, s1 = 1;

    while (r1 != 0) {
        int64_t q = r0 / r1, t = r0 - q * r1;

        r0 = r1;
        r1 = t;
        t = s0 - q * s1;
        s0 = s1;
        s1 = t;
    }
    return (size_t)(s0 < 0 ? s0 + (int64_t)m : s0);
}

static bool box_meet(size_t a, size_t na, size_t p, size_t b, size_t nb, size_t q)
{
    const size_t enda = a + (na - 1) * p, endb = b + (nb - 1) * q;
    const size_t lo = a > b ? a : b, hi = enda < endb ? enda : endb;
    size_t g, diff, m, k;
    box_wide x, period;

    if (lo > hi)
        return false;
    if (p == 1 && q == 1)
        return true;
    g = box_gcd(p, q);
    diff = a > b ? a - b : b - a;
    if (diff % g != 0)
        return false;
    /* x = a + p k with x = b mod q: k = ((b - a) / g) inv(p / g) mod (q / g) */
    m = q / g;
    k = 0;
    if (m > 1) {
        size_t d = diff / g % m;

        if (a > b && d != 0)
            d = m - d;
        k = (size_t)((box_wide)d * box_inverse(p / g % m, m) % m);
    }
    period = (box_wide)p * m; /* the least common multiple of p and q */
    x = a + (box_wide)p * k;  /* the first common element at or after a */
    if (x < lo)
        x += (lo - x + period - 1) / period * period;
    return x <= hi;
}

bool heddle_box_overlap(const struct heddle_box *a, const struct heddle_box *b, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        if (!box_meet(a->first[d], a->count[d], a->step[d], b->first[d], b->count[d], b->step[d]))
            return false;
    return true;
}

static bool box_inside(size_t a, size_t na, size_t p, size_t b, size_t nb, size_t q)
{
    /* Is every b + j q of the form a + i p with i < na? */
    if (b < a || b + (nb - 1) * q > a + (na - 1) * p)
        return false;
    if ((b - a) % p != 0)
        return false;
    return nb == 1 || q % p == 0;
}

bool heddle_box_contains(const struct heddle_box *out, const struct heddle_box *in, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        if (!box_inside(out->first[d], out->count[d], out->step[d], in->first[d], in->count[d],
                        in->step[d]))
            return false;
    return true;
}
