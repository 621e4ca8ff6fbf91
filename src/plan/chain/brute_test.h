/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_CHAIN_BRUTE_TEST_H
#define HEDDLE_PLAN_CHAIN_BRUTE_TEST_H

/*
 * For tests: small chains, and the least time of any plan of one by search over
 * all states (which activations, tapes and gradient are there).
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "heddle/plan.h"
#include "tests/test.h"

enum { BRUTE_LAYERS = 6, BRUTE_BUDGET = 128, BRUTE_STATES = 1 << 15 };
#define BRUTE_NONE UINT32_MAX

struct brute_chain {
    struct heddle_plan_chain c;
    uint64_t x[BRUTE_LAYERS + 1], t[BRUTE_LAYERS + 1];
    uint64_t work_f[BRUTE_LAYERS], work_b[BRUTE_LAYERS];
    double forward[BRUTE_LAYERS], backward[BRUTE_LAYERS];
};

static inline void brute_point(struct brute_chain *b, uint32_t n)
{
    b->c = (struct heddle_plan_chain){.n = n,
                                      .x = b->x,
                                      .t = b->t,
                                      .forward = b->forward,
                                      .backward = b->backward,
                                      .work_f = b->work_f,
                                      .work_b = b->work_b};
}

static inline void brute_random(struct brute_chain *b, struct heddle_rng *r)
{
    static const unsigned xs[] = {1, 1, 2, 5, 8}, ts[] = {0, 1, 4, 8};
    static const unsigned fs[] = {1, 1, 10, 3}, bs[] = {1, 2, 5};
    static const unsigned ws[] = {0, 0, 1};
    const uint32_t n = 1 + heddle_rng_below32(r, BRUTE_LAYERS);

    brute_point(b, n);
    for (uint32_t i = 0; i <= n; i++) {
        b->x[i] = xs[heddle_rng_below32(r, 5)];
        b->t[i] = b->x[i] + ts[heddle_rng_below32(r, 4)];
    }
    for (uint32_t i = 0; i < n; i++) {
        b->forward[i] = fs[heddle_rng_below32(r, 4)];
        b->backward[i] = bs[heddle_rng_below32(r, 3)];
        b->work_f[i] = ws[heddle_rng_below32(r, 3)];
        b->work_b[i] = ws[heddle_rng_below32(r, 3)];
    }
}

/* State: bit i - 1: x[i]; bit BRUTE_LAYERS + i - 1: t[i], which stands for x[i]
 * too; then the gradient, n + 1: not yet. x[0] is always there. */
struct brute {
    const struct heddle_plan_chain *c;
    bool is_pinned;
    uint32_t budget;
    uint32_t time[BRUTE_STATES], peak[BRUTE_STATES];
    struct {
        uint32_t time, peak, state;
    } heap[1 << 18];
    uint32_t nheap;
};

static inline bool brute_before(const struct brute *b, uint32_t i, uint32_t j)
{
    return b->heap[i].time != b->heap[j].time ? b->heap[i].time < b->heap[j].time
                                              : b->heap[i].peak < b->heap[j].peak;
}

static inline void brute_swap(struct brute *b, uint32_t i, uint32_t j)
{
    const __typeof__(b->heap[0]) t = b->heap[i];

    b->heap[i] = b->heap[j];
    b->heap[j] = t;
}

static inline void brute_push(struct brute *b, uint32_t state, uint32_t time, uint32_t peak)
{
    uint32_t i;

    if (peak > b->budget || time > b->time[state] ||
        (time == b->time[state] && peak >= b->peak[state]))
        return;
    b->time[state] = time;
    b->peak[state] = peak;
    CHECK(b->nheap < 1 << 18);
    i = b->nheap++;
    b->heap[i].time = time;
    b->heap[i].peak = peak;
    b->heap[i].state = state;
    for (; i > 0 && brute_before(b, i, (i - 1) / 2); i = (i - 1) / 2)
        brute_swap(b, i, (i - 1) / 2);
}

static inline void brute_pop(struct brute *b)
{
    uint32_t i = 0;

    b->heap[0] = b->heap[--b->nheap];
    for (;;) {
        uint32_t k = 2 * i + 1;

        if (k >= b->nheap)
            return;
        if (k + 1 < b->nheap && brute_before(b, k + 1, k))
            k++;
        if (!brute_before(b, k, i))
            return;
        brute_swap(b, i, k);
        i = k;
    }
}

static inline bool brute_has(uint32_t state, uint32_t i)
{
    return i == 0 || (state >> (i - 1) & 1) != 0 || (state >> (BRUTE_LAYERS + i - 1) & 1) != 0;
}

static inline bool brute_has_tape(uint32_t state, uint32_t i)
{
    return (state >> (BRUTE_LAYERS + i - 1) & 1) != 0;
}

static inline uint32_t brute_bytes(const struct brute *b, uint32_t state)
{
    const uint32_t y = state >> (2 * BRUTE_LAYERS);
    uint64_t sum = b->c->x[0];

    for (uint32_t i = 1; i <= b->c->n; i++) {
        if (brute_has_tape(state, i))
            sum += b->c->t[i];
        else if (brute_has(state, i))
            sum += b->c->x[i];
    }
    return (uint32_t)(sum + (y <= b->c->n ? b->c->x[y] : 0));
}

static inline uint32_t brute_later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline void brute_moves(struct brute *b, uint32_t state, uint32_t time, uint32_t peak)
{
    const struct heddle_plan_chain *c = b->c;
    const uint32_t n = c->n, y = state >> (2 * BRUTE_LAYERS);
    const uint32_t here = brute_bytes(b, state);

    for (uint32_t i = 1; i <= n; i++) {
        const uint32_t x = 1u << (i - 1), t = x << BRUTE_LAYERS;
        const bool is_held = b->is_pinned && i < n && brute_has_tape(state, i + 1);

        if ((state & (x | t)) != 0 && !is_held)
            brute_push(b, state & ~(x | t), time, peak);
    }
    for (uint32_t i = 0; i < n && i < y; i++) {
        const uint32_t x = 1u << i, t = x << BRUTE_LAYERS;
        const uint32_t more = (uint32_t)c->work_f[i] + here;
        const uint32_t took = time + (uint32_t)c->forward[i];

        if (!brute_has(state, i) || brute_has_tape(state, i + 1))
            continue;
        if (!brute_has(state, i + 1))
            brute_push(b, state | x, took, brute_later(peak, more + (uint32_t)c->x[i + 1]));
        brute_push(b, (state | t) & ~x, took,
                   brute_later(peak, more + (uint32_t)c->t[i + 1] -
                                         ((state & x) != 0 ? (uint32_t)c->x[i + 1] : 0)));
    }
    if (y == n + 1 && brute_has(state, n))
        brute_push(b, state - (1u << (2 * BRUTE_LAYERS)), time,
                   brute_later(peak, here + (uint32_t)c->x[n]));
    if (y >= 1 && y <= n && brute_has_tape(state, y) && brute_has(state, y - 1))
        brute_push(b, state - (1u << (2 * BRUTE_LAYERS)), time + (uint32_t)c->backward[y - 1],
                   brute_later(peak, here + (uint32_t)(c->x[y - 1] + c->work_b[y - 1])));
}

/* Least time within `budget`; *peak_out: it needs no more than that. NONE. */
static inline uint32_t brute_solve(struct brute *b, uint32_t budget, uint32_t *peak_out)
{
    memset(b->time, 0xff, sizeof(b->time));
    memset(b->peak, 0xff, sizeof(b->peak));
    b->nheap = 0;
    b->budget = budget;
    brute_push(b, (b->c->n + 1) << (2 * BRUTE_LAYERS), 0, (uint32_t)b->c->x[0]);
    while (b->nheap > 0) {
        const __typeof__(b->heap[0]) top = b->heap[0];

        brute_pop(b);
        if (top.time != b->time[top.state] || top.peak != b->peak[top.state])
            continue;
        if (top.state >> (2 * BRUTE_LAYERS) == 0) {
            *peak_out = top.peak;
            return top.time;
        }
        brute_moves(b, top.state, top.time, top.peak);
    }
    return BRUTE_NONE;
}

/* best[m] for every budget m < BRUTE_BUDGET. */
static inline void brute_all(struct brute *b, const struct heddle_plan_chain *c, bool is_pinned,
                             uint32_t *best)
{
    uint32_t m = BRUTE_BUDGET;

    b->c = c;
    b->is_pinned = is_pinned;
    while (m > 0) {
        uint32_t peak = 0;
        const uint32_t time = brute_solve(b, m - 1, &peak);

        if (time == BRUTE_NONE)
            peak = 0;
        while (m > peak) {
            best[m - 1] = time;
            if (m-- == 0)
                break;
        }
    }
}

#endif /* HEDDLE_PLAN_CHAIN_BRUTE_TEST_H */
