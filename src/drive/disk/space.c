/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * space: which ranges of the file are free.
 *
 * Structure  an array of free ranges by position; best fit; neighbours become
 *            one when a range comes back.
 * Invariants (1) ascending, with taken bytes between any two
 *            (2) cap > number of taken ranges, so give() needs no memory
 * Cost       linear in the number of free ranges, some ns each: what is read or
 *            written there takes a thousand times as long.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "drive/disk/disk.h"

#define FIRST_CAP 64

heddle_status heddle_disk_space_reserve(struct heddle_disk_space *s, size_t nlive)
{
    struct heddle_disk_range *range;
    size_t cap = s->cap == 0 ? FIRST_CAP : s->cap;

    /* n taken ranges have at most n + 1 free ones around them. */
    while (cap < nlive + 2)
        cap *= 2;
    if (cap == s->cap)
        return HEDDLE_OK;
    range = heddle_alloc(s->alloc, cap * sizeof(*range));
    if (range == NULL)
        return HEDDLE_ENOMEM;
    if (s->n > 0)
        memcpy(range, s->range, s->n * sizeof(*range));
    heddle_free(s->alloc, s->range, s->cap * sizeof(*range));
    s->range = range;
    s->cap = cap;
    return HEDDLE_OK;
}

void heddle_disk_space_fini(struct heddle_disk_space *s)
{
    heddle_free(s->alloc, s->range, s->cap * sizeof(*s->range));
    memset(s, 0, sizeof(*s));
}

static void range_remove(struct heddle_disk_space *s, size_t i)
{
    s->n--;
    memmove(&s->range[i], &s->range[i + 1], (s->n - i) * sizeof(*s->range));
}

bool heddle_disk_space_take(struct heddle_disk_space *s, uint64_t bytes, uint64_t *at_out)
{
    size_t best = s->n;

    for (size_t i = 0; i < s->n; i++)
        if (s->range[i].bytes >= bytes &&
            (best == s->n || s->range[i].bytes < s->range[best].bytes))
            best = i;
    if (best == s->n)
        return false;
    *at_out = s->range[best].at;
    s->range[best].at += bytes;
    s->range[best].bytes -= bytes;
    if (s->range[best].bytes == 0)
        range_remove(s, best);
    s->used += bytes;
    return true;
}

/* The first range behind `at`. */
static size_t range_after(const struct heddle_disk_space *s, uint64_t at)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (s->range[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void range_insert(struct heddle_disk_space *s, uint64_t at, uint64_t bytes)
{
    const size_t i = range_after(s, at);
    struct heddle_disk_range *r = s->range;
    const bool joins_prev = i > 0 && r[i - 1].at + r[i - 1].bytes == at;
    const bool joins_next = i < s->n && at + bytes == r[i].at;

    HEDDLE_ASSERT(i == 0 || r[i - 1].at + r[i - 1].bytes <= at);
    HEDDLE_ASSERT(i == s->n || at + bytes <= r[i].at);
    if (joins_prev && joins_next) {
        r[i - 1].bytes += bytes + r[i].bytes;
        range_remove(s, i);
    } else if (joins_prev) {
        r[i - 1].bytes += bytes;
    } else if (joins_next) {
        r[i].at = at;
        r[i].bytes += bytes;
    } else {
        HEDDLE_ASSERT(s->n < s->cap);
        memmove(&r[i + 1], &r[i], (s->n - i) * sizeof(*r));
        r[i] = (struct heddle_disk_range){at, bytes};
        s->n++;
    }
}

void heddle_disk_space_give(struct heddle_disk_space *s, uint64_t at, uint64_t bytes)
{
    HEDDLE_ASSERT(bytes <= s->used && at + bytes <= s->end);
    range_insert(s, at, bytes);
    s->used -= bytes;
}

uint64_t heddle_disk_space_tail(const struct heddle_disk_space *s)
{
    const struct heddle_disk_range *last = &s->range[s->n - (s->n > 0)];

    return s->n > 0 && last->at + last->bytes == s->end ? last->bytes : 0;
}

void heddle_disk_space_grow(struct heddle_disk_space *s, uint64_t bytes)
{
    s->end += bytes;
    range_insert(s, s->end - bytes, bytes);
}
