/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush: partitions for schedules that end with all micro-batches done.
 *
 * A first partition minimises the sum of loads plus (m - 1) times the largest, and
 * its boundaries are shifted while the schedule gets shorter. Then all partitions
 * are looked at, from the first stage on, but for those whose front alone takes as
 * long as the best: a stage does the work of all micro-batches behind the
 * forwards, and before the backwards, of the stages in front. As long as that
 * takes not too many operations, the partition is the best of its schedule.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/pipeline.h"

enum { MOST_OPS = 1000000 };

static uint32_t flight_all(uint32_t q, uint32_t n, uint32_t nmicro)
{
    (void)q;
    (void)n;
    return nmicro;
}

static uint32_t flight_1f1b(uint32_t q, uint32_t n, uint32_t nmicro)
{
    (void)n;
    return q + 1 < nmicro ? q + 1 : nmicro;
}

/* q behind it and n - 1 - q of lag. */
static uint32_t flight_zb1(uint32_t q, uint32_t n, uint32_t nmicro)
{
    (void)q;
    return n < nmicro ? n : nmicro;
}

static uint32_t flight_zb2(uint32_t q, uint32_t n, uint32_t nmicro)
{
    (void)q;
    return 2 * n - 1 < nmicro ? 2 * n - 1 : nmicro;
}

struct kind {
    uint32_t policy;
    enum heddle_pl_order order;
    uint32_t (*in_flight)(uint32_t, uint32_t, uint32_t);
};

static const struct kind flushes[] = {
    {HEDDLE_PIPELINE_GPIPE, HEDDLE_PL_ALL_FORWARD, flight_all},
    {HEDDLE_PIPELINE_1F1B, HEDDLE_PL_1F1B, flight_1f1b},
    {HEDDLE_PIPELINE_ZB, HEDDLE_PL_ZB1, flight_zb1},
    {HEDDLE_PIPELINE_ZB, HEDDLE_PL_ZB2, flight_zb2},
};

/* Moves one layer over the boundary behind stage s, to the right when `dir` is 1;
 * both stages take their first way that fits. */
static bool move_boundary(const struct heddle_pl *p, const struct heddle_pl_part *from, uint32_t s,
                          int dir, struct heddle_pl_part *to)
{
    const struct heddle_pipeline_stage *a = &from->stage[s];
    const struct heddle_pipeline_stage *b = &from->stage[s + 1];
    const uint32_t last = dir > 0 ? a->last + 1 : a->last - 1;

    if (dir > 0 ? b->first == b->last : a->first == a->last)
        return false;
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++) {
        const uint32_t lo = i == s + 1 ? last + 1 : from->stage[i].first;
        const uint32_t hi = i == s ? last : from->stage[i].last;
        const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, lo, hi);
        uint32_t way = from->way[i], best = UINT32_MAX;

        for (way = 0; way < ways->n && (i == s || i == s + 1); way++)
            if (heddle_pl_memory(p, lo, hi, &ways->way[way], from->stage[i].in_flight) <=
                    p->budget &&
                (best == UINT32_MAX || ways->way[way].extra < ways->way[best].extra))
                best = way;
        if (i != s && i != s + 1)
            best = from->way[i];
        if (best == UINT32_MAX)
            return false;
        heddle_pl_stage(p, lo, hi, best, i, to);
    }
    return true;
}

/* Shifts boundaries as long as the schedule gets shorter. */
static heddle_status improve(const struct heddle_pl *p, enum heddle_pl_order order,
                             struct heddle_pl_found *best)
{
    struct heddle_pl_found now = {.policy = best->policy};
    bool again = true;

    HEDDLE_TRY(heddle_pl_found_init(p, &now));
    for (int round = 0; again && round < 8; round++) {
        again = false;
        for (uint32_t k = 0; k + 1 < best->part->n; k++)
            for (int dir = -1; dir <= 1; dir += 2) {
                const struct heddle_pl_found old = *best;

                if (!move_boundary(p, best->part, k, dir, now.part))
                    continue;
                HEDDLE_TRY(heddle_pl_time_flush(p, now.part, order, now.t, &now.end));
                if (!now.t->fits || !(now.end < best->end))
                    continue;
                *best = now;
                now = old;
                again = true;
            }
    }
    return HEDDLE_OK;
}

/* From its first start to its last end, of the stage that takes longest: what a
 * step takes when the next one begins behind it without a common stop. */
static double longest_span(const struct heddle_pl_found *f)
{
    double most = 0;

    for (uint32_t s = 0; s < f->part->n; s++) {
        double first = INFINITY, last = 0;

        for (uint32_t i = 0; i < f->t->n; i++)
            if (f->t->op[i].stage == s && f->t->op[i].kind < HEDDLE_PIPELINE_SEND) {
                first = fmin(first, f->t->op[i].start);
                last = fmax(last, f->t->op[i].end);
            }
        most = fmax(most, last - first);
    }
    return most;
}

/* ---- all partitions ---------------------------------------------------------- */

struct exact {
    const struct heddle_pl *p;
    const struct kind *kind;
    uint32_t nstages;
    struct heddle_pl_found *best, now;
    double left; /* operations */
};

static heddle_status judge(struct exact *e)
{
    const struct heddle_pl *p = e->p;

    e->left -= (double)e->nstages * p->nmicro * 3;
    HEDDLE_TRY(heddle_pl_time_flush(p, e->now.part, e->kind->order, e->now.t, &e->now.end));
    if (e->now.t->fits && e->now.end < e->best->end) {
        const struct heddle_pl_found old = *e->best;

        *e->best = e->now;
        e->now = old;
        *e->now.part = *e->best->part;
    }
    return HEDDLE_OK;
}

static heddle_status place(struct exact *e, uint32_t s, uint32_t first, double front);

/* Layers first..last as stage s, in one way. A way that takes longer can be
 * better: other copies are first on a link. */
static heddle_status place_way(struct exact *e, uint32_t s, uint32_t first, uint32_t last,
                               uint32_t way, double front)
{
    const struct heddle_pl *p = e->p;
    const struct heddle_pipeline_stage *st = &e->now.part->stage[s];
    double more;

    e->now.part->n = s;
    heddle_pl_stage(p, first, last, way, s, e->now.part);
    if (front + p->nmicro * (st->forward + st->backward) >= e->best->end)
        return HEDDLE_OK;
    more = st->forward + st->send;
    if (e->kind->order < HEDDLE_PL_ZB1) /* gradients of weights may come last */
        more += st->backward + st->send;
    return s + 1 < e->nstages ? place(e, s + 1, last + 1, front + more) : judge(e);
}

/* Stage s begins with layer `first`; `front` is what the stages before it take
 * before its first and behind its last operation. */
static heddle_status place(struct exact *e, uint32_t s, uint32_t first, double front)
{
    const struct heddle_pl *p = e->p;
    const uint32_t behind = e->nstages - 1 - s;
    const uint32_t g = e->kind->in_flight(behind, e->nstages, p->nmicro);

    for (uint32_t last = behind > 0 ? first : p->n - 1; last + behind < p->n; last++) {
        const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, first, last);

        if (front + p->nmicro * heddle_pl_load(p, first, last) >= e->best->end)
            break;
        for (uint32_t i = 0; i < ways->n && e->left-- > 0; i++)
            if (heddle_pl_memory(p, first, last, &ways->way[i], g) <= p->budget)
                HEDDLE_TRY(place_way(e, s, first, last, i, front));
    }
    return HEDDLE_OK;
}

static heddle_status search_all(const struct heddle_pl *p, const struct kind *kind,
                                struct heddle_pl_found *best)
{
    struct exact e = {
        .p = p, .kind = kind, .best = best, .now = {.policy = best->policy}, .left = MOST_OPS};

    HEDDLE_TRY(heddle_pl_found_init(p, &e.now));
    for (e.nstages = 1; e.nstages <= p->ndevices && e.nstages <= p->n; e.nstages++)
        HEDDLE_TRY(place(&e, 0, 0, 0));
    return HEDDLE_OK;
}

heddle_status heddle_pl_solve_flush(const struct heddle_pl *p, uint32_t policy,
                                    struct heddle_pl_found *f)
{
    heddle_status st = HEDDLE_ENOENT;

    f->end = INFINITY;
    for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
        struct heddle_pl_found now = {.policy = policy};
        heddle_status one;
        double cost;

        if (flushes[i].policy != policy)
            continue;
        HEDDLE_TRY(heddle_pl_found_init(p, &now));
        one = heddle_pl_flush(p, flushes[i].in_flight, &cost, now.part);
        if (one == HEDDLE_OK)
            one = heddle_pl_time_flush(p, now.part, flushes[i].order, now.t, &now.end);
        if (one == HEDDLE_OK && now.t->fits) {
            HEDDLE_TRY(improve(p, flushes[i].order, &now));
            HEDDLE_TRY(search_all(p, &flushes[i], &now));
            if (st != HEDDLE_OK || longest_span(&now) < longest_span(f))
                *f = now;
            st = HEDDLE_OK;
        } else if (one != HEDDLE_OK && one != HEDDLE_ENOENT) {
            return one;
        }
    }
    return st;
}
