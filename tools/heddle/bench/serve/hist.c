/* SPDX-License-Identifier: BSD-3-Clause */
/* hist: see hist.h. A cell of octave e has the values whose leading bits, after a shift by e, are
 * the same. */
#include "bench/serve/hist.h"

#include <stddef.h>

static unsigned octave_of(uint64_t ns)
{
    const unsigned top = ns == 0 ? 0 : 63 - (unsigned)__builtin_clzll(ns);

    return top < HIST_BITS ? 0 : top - HIST_BITS + 1;
}

static size_t cell_of(uint64_t ns)
{
    const unsigned e = octave_of(ns);

    if (e == 0)
        return (size_t)ns;
    return ((size_t)e << HIST_BITS) + (size_t)((ns >> (e - 1)) - HIST_FINE);
}

/* The largest value of a cell. */
static uint64_t end_of(size_t cell)
{
    const unsigned e = (unsigned)(cell >> HIST_BITS);
    const uint64_t leading = (cell & (HIST_FINE - 1)) + HIST_FINE;

    return e == 0 ? cell : (leading << (e - 1)) + ((UINT64_C(1) << (e - 1)) - 1);
}

void hist_add(struct hist *h, uint64_t ns)
{
    h->n++;
    h->sum += (double)ns;
    h->max = ns > h->max ? ns : h->max;
    h->cell[cell_of(ns)]++;
}

void hist_merge(struct hist *h, const struct hist *other)
{
    h->n += other->n;
    h->sum += other->sum;
    h->max = other->max > h->max ? other->max : h->max;
    for (size_t i = 0; i < HIST_CELLS; i++)
        h->cell[i] += other->cell[i];
}

uint64_t hist_at(const struct hist *h, double share)
{
    const double want = share * (double)h->n;
    uint64_t seen = 0;

    for (size_t i = 0; i < HIST_CELLS; i++) {
        seen += h->cell[i];
        if (seen > 0 && (double)seen >= want)
            return end_of(i) < h->max ? end_of(i) : h->max;
    }
    return h->max;
}
