/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_CHAIN_DP_GENERAL_H
#define HEDDLE_PLAN_CHAIN_DP_GENERAL_H

/*
 * Private to dp_general.c and dp_trace.c: the table of the general models, and what a
 * state needs. The top of dp_general.c has the recurrences.
 */
#include "plan/chain/chain.h"
#include "plan/chain/minplus.h"

enum { HEDDLE_PLAN_GENERAL_TILE = HEDDLE_MINPLUS_TILE };

struct heddle_plan_general {
    const struct heddle_plan_units *u;
    const struct heddle_allocator *a;
    struct heddle_scratch mem;
    heddle_minplus_fn *minplus;
    size_t nf;      /* values of f: 1 general, 2 unpinned, 4 free */
    size_t nstages; /* n + 1 */
    size_t width, pad;
    float *row;
    size_t row_bytes;
    size_t *layer;   /* [nstages + 1] first row of a layer, of one h */
    float *split;    /* [nh][nstages + 1][HEDDLE_PLAN_GENERAL_TILE][pad + width] */
    float *hole;     /* the same */
    uint32_t *same;  /* [nstages + 1] x[s]: the shift of splits */
    uint32_t *slide; /* [nstages + 1] the shift of holes */
    uint32_t *reach; /* [nstages + 1] memory of a hole, without the gradient */
    uint32_t *sat;   /* [2][nh][nstages][nstages] */
};

struct heddle_plan_general_cell {
    uint32_t s, t, l, m, f;
};

/* f = h + 2 g. */
static inline size_t heddle_plan_general_in_hand(size_t f)
{
    return f & 1;
}

static inline size_t heddle_plan_general_left_behind(size_t f)
{
    return f >> 1;
}

static inline uint32_t heddle_plan_general_max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline float *heddle_plan_general_row_at(const struct heddle_plan_general *x, size_t s,
                                                size_t t, size_t l, size_t f)
{
    const size_t d = t - s, n = x->nstages - s;
    const size_t i = x->layer[s] + d * n - d * (d + 1) / 2 + (l - s);

    return x->row + (f * x->layer[x->nstages] + i) * x->width;
}

/* ---- memory tests -------------------------------------------------------------- */

static inline uint32_t heddle_plan_general_held(const struct heddle_plan_units *u, size_t l,
                                                size_t h)
{
    return u->x[l + 1] + (h != 0 ? u->t[l + 1] : 0);
}

static inline uint32_t heddle_plan_general_need_backward(const struct heddle_plan_units *u,
                                                         size_t s)
{
    return 2 * u->x[s] + u->x[s + 1] + u->t[s + 1] + u->work_b[s];
}

/* Of the tape of s, made while what l and h say is held. */
static inline uint32_t heddle_plan_general_need_tape(const struct heddle_plan_units *u, size_t s,
                                                     size_t l, size_t h)
{
    const uint32_t back = heddle_plan_general_need_backward(u, s);

    if (s == l && h != 0)
        return back;
    return heddle_plan_general_max(back, u->x[s] + u->t[s + 1] + heddle_plan_general_held(u, l, h) +
                                             u->work_f[s]);
}

static inline uint32_t heddle_plan_general_need_step(const struct heddle_plan_units *u, size_t s,
                                                     size_t l, size_t h)
{
    return u->x[s] + u->x[s + 1] + heddle_plan_general_held(u, l, h) + u->work_f[s];
}

/* Of the way from s to the tape of each k > s, without what is held. */
static inline void heddle_plan_general_set_reach(const struct heddle_plan_units *u, size_t s,
                                                 uint32_t *reach)
{
    uint32_t way = u->x[s] + u->x[s + 1] + u->work_f[s];

    for (size_t k = s + 1; k < u->n; k++) {
        reach[k] = heddle_plan_general_max(way, u->x[s] + u->x[k] + u->t[k + 1] + u->work_f[k]);
        way = heddle_plan_general_max(way, u->x[s] + u->x[k] + u->x[k + 1] + u->work_f[k]);
    }
}

/* The forward of s, and what comes next; `need` is its memory. */
struct heddle_plan_general_next {
    uint32_t t, f, less, need;
    double time;
};

/* What a cell does when nothing of it is kept for a second pass: the tape of s,
 * or one step on. In the last step before t a tape may have to stay behind. */
static inline struct heddle_plan_general_next
heddle_plan_general_next_of(const struct heddle_plan_units *u, size_t s, size_t t, size_t l,
                            size_t f)
{
    const size_t h = heddle_plan_general_in_hand(f);
    struct heddle_plan_general_next n = {.t = (uint32_t)t,
                                         .f = (uint32_t)f,
                                         .need = heddle_plan_general_need_step(u, s, l, h),
                                         .time = u->forward[s]};

    if (t == s) {
        n.t = (uint32_t)s + 1;
        n.less = u->x[s] + u->t[s + 1] - u->x[s + 1];
        n.need = heddle_plan_general_need_tape(u, s, l, h);
        n.time += u->backward[s];
    } else if (t == s + 1 && heddle_plan_general_left_behind(f) != 0) {
        n.f = (uint32_t)h;
        n.less = u->t[s + 1] - u->x[s + 1];
        n.need += n.less;
    }
    n.need = heddle_plan_general_max(n.need, n.less);
    return n;
}

/* dp_trace.c: the least time of the whole chain within m units, and its operations. */
double heddle_plan_general_value(const void *table, uint32_t m);
void heddle_plan_general_trace(const void *table, uint32_t m, struct heddle_plan_seq *q);

#endif /* HEDDLE_PLAN_CHAIN_DP_GENERAL_H */
