/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle: the time of every worker in pieces, each with a cause.
 *
 * Structure  the busy pieces of a lane and the gaps between them are the
 *            makespan. A gap is cut where the state of the lane changes, then
 *            where data or room for the next task begin and end, then, if the
 *            worker looked for work, where the supply changes.
 * Invariants (1) every function that gets [a, b) hands on pieces that are
 *                [a, b), in order and without overlap; gap_add() is the only
 *                place that counts
 *            (2) so ns[] of a worker sums to the makespan
 *            (3) the gaps of a lane have the causes and lengths of ns[]
 * Cost       linear in rows, states and steps of the supply, per type. Many
 *            idle workers times many steps could be more pieces than there are
 *            rows: then `group` steps of a gap are put together, one piece
 *            per cause, which keeps (1) to (3) and loses their order only.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "explain/explain.h"

enum { NSUPPLY = HEDDLE_CAUSE_UNKNOWN - HEDDLE_CAUSE_START + 1, BLOCK = 32 };

struct idle {
    const struct heddle_explain_work *w;
    struct heddle_explain_supply supply;
    struct heddle_explain_lane *lanes;
    int64_t *cover; /* [lanes] */
    struct heddle_explain_gap *gaps;
    size_t ngaps, cap;
    const struct heddle_allocator *alloc;
    heddle_status st;

    bool is_counting; /* pieces, to choose `group` */
    uint64_t npieces;
    size_t group;            /* steps that may become one piece per cause */
    int64_t (*sum)[NSUPPLY]; /* of BLOCK steps each */
    uint32_t lane;           /* of which the time is cut now */
    size_t hint;             /* where step_at() was */
};

/* --- output -------------------------------------------------------------------- */

static bool gaps_grow(struct idle *d)
{
    const size_t cap = d->cap == 0 ? 256 : 2 * d->cap;
    struct heddle_explain_gap *p;

    p = cap > SIZE_MAX / 4 / sizeof(*p) ? NULL : heddle_alloc(d->alloc, cap * sizeof(*p));
    if (p == NULL) {
        d->st = HEDDLE_ENOMEM;
        return false;
    }
    if (d->ngaps > 0)
        memcpy(p, d->gaps, d->ngaps * sizeof(*p));
    heddle_free(d->alloc, d->gaps, d->cap * sizeof(*p));
    d->gaps = p;
    d->cap = cap;
    return true;
}

static void gap_add(struct idle *d, int64_t a, int64_t b, unsigned cause)
{
    struct heddle_explain_gap *last = d->ngaps > 0 ? &d->gaps[d->ngaps - 1] : NULL;

    if (a >= b || d->st != HEDDLE_OK)
        return;
    if (d->is_counting) {
        d->npieces++;
        return;
    }
    d->lanes[d->lane].ns[cause] += b - a;
    if (last != NULL && last->lane == d->lane && last->cause == cause && last->end_ns == a) {
        last->end_ns = b;
        return;
    }
    if (d->ngaps == d->cap && !gaps_grow(d))
        return;
    d->gaps[d->ngaps++] = (struct heddle_explain_gap){
        .start_ns = a, .end_ns = b, .lane = d->lane, .cause = (uint8_t)cause};
}

/* --- looking for work ------------------------------------------------------------ */

/* On the program's lane no worker looks for work: the program is elsewhere. */
static unsigned cause_of(unsigned cause, bool is_program)
{
    return is_program && cause != HEDDLE_CAUSE_START && cause != HEDDLE_CAUSE_END
               ? HEDDLE_CAUSE_SUBMIT
               : cause;
}

/* The last step that begins at or before t. Questions about one lane come in
 * order of time, so it is near the last answer. */
static size_t step_at(struct idle *d, int64_t t)
{
    const struct heddle_explain_supply *s = &d->supply;
    size_t lo = d->hint, hi, stride = 1, mid;

    if (s->step[lo].t > t)
        lo = 0;
    for (hi = lo + 1; hi < s->n && s->step[hi].t <= t; stride *= 2) {
        lo = hi;
        hi = s->n - hi > stride ? hi + stride : s->n;
    }
    while (hi - lo > 1) {
        mid = lo + (hi - lo) / 2;
        if (s->step[mid].t <= t)
            lo = mid;
        else
            hi = mid;
    }
    d->hint = lo;
    return lo;
}

static int64_t step_end(const struct idle *d, size_t i)
{
    return i + 1 < d->supply.n ? d->supply.step[i + 1].t : d->w->last;
}

/* [a, b), which lies in the steps i up to j, as one piece per cause. */
static void cell_add(struct idle *d, int64_t a, int64_t b, size_t i, size_t j, bool is_program)
{
    const struct heddle_explain_step_at *step = d->supply.step;
    int64_t ns[NSUPPLY] = {0};

    while (i < j) {
        if (i % BLOCK == 0 && j - i >= BLOCK && a <= step[i].t && step_end(d, i + BLOCK - 1) <= b) {
            for (unsigned c = 0; c < NSUPPLY; c++)
                ns[c] += d->sum[i / BLOCK][c];
            i += BLOCK;
        } else {
            ns[step[i].cause - HEDDLE_CAUSE_START] +=
                heddle_explain_min(b, step_end(d, i)) - heddle_explain_max(a, step[i].t);
            i++;
        }
    }
    for (unsigned c = 0; c < NSUPPLY; c++) {
        gap_add(d, a, a + ns[c], cause_of(HEDDLE_CAUSE_START + c, is_program));
        a += ns[c];
    }
    HEDDLE_ASSERT(a == b);
}

static void look_add(struct idle *d, int64_t a, int64_t b, bool is_program)
{
    const struct heddle_explain_supply *s = &d->supply;
    size_t i = step_at(d, a);

    if (d->is_counting) {
        d->npieces += step_at(d, b - 1) - i + 1;
        return;
    }
    while (a < b) {
        /* Groups are at fixed places, so that all lanes are cut alike. */
        size_t j = (i / d->group + 1) * d->group;
        int64_t end;

        if (j > s->n)
            j = s->n;
        end = step_end(d, j - 1);
        if (end > b) {
            j = step_at(d, b - 1) + 1;
            end = b;
        }
        if (d->group == 1)
            gap_add(d, a, end, cause_of(s->step[i].cause, is_program));
        else
            cell_add(d, a, end, i, j, is_program);
        a = end;
        i = j;
    }
}

/* --- cutting a gap ----------------------------------------------------------------- */

enum base { BASE_LOOK, BASE_PROGRAM, BASE_CAUSE };

/* A part of a gap in one state of the lane. */
struct part {
    int64_t a, b;
    enum base base;
    unsigned cause; /* BASE_CAUSE */
};

static void part_add(struct idle *d, const struct part *p, int64_t a, int64_t b)
{
    if (a >= b)
        return;
    if (p->base == BASE_CAUSE)
        gap_add(d, a, b, p->cause);
    else
        look_add(d, a, b, p->base == BASE_PROGRAM);
}

/* Between a and b, the spans with that cause and the rest of the part. */
static void part_room(struct idle *d, const struct part *p, int64_t a, int64_t b,
                      const struct heddle_explain_span *room, size_t nroom)
{
    for (size_t i = 0; i < nroom && a < b; i++) {
        const int64_t s = heddle_explain_min(heddle_explain_max(room[i].start, a), b);
        const int64_t e = heddle_explain_min(heddle_explain_max(room[i].end, s), b);

        part_add(d, p, a, s);
        gap_add(d, s, e, HEDDLE_CAUSE_MEMORY);
        a = e;
    }
    part_add(d, p, a, b);
}

/* What the next task of the lane waits for goes before everything else. */
static void part_cut(struct idle *d, const struct part *p, uint32_t next)
{
    struct heddle_explain_span data[HEDDLE_EXPLAIN_SPANS], room[HEDDLE_EXPLAIN_SPANS];
    size_t ndata = 0, nroom = 0;
    int64_t a = p->a;

    if (next != HEDDLE_EXPLAIN_NONE) {
        ndata = heddle_explain_data(d->w, next, p->a, p->b, data);
        nroom = heddle_explain_room(d->w, next, p->a, p->b, room);
    }
    for (size_t i = 0; i < ndata; i++) {
        part_room(d, p, a, data[i].start, room, nroom);
        gap_add(d, data[i].start, data[i].end, HEDDLE_CAUSE_DATA);
        a = data[i].end;
    }
    part_room(d, p, a, p->b, room, nroom);
}

/* The first submission of the main program at or after a; b: none before. */
static int64_t submission_in(const struct heddle_explain_work *w, int64_t a, int64_t b)
{
    size_t lo = 0, hi = w->nprogram, mid;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (w->program[mid] < a)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < w->nprogram && w->program[lo] < b ? w->program[lo] : b;
}

/* The lane said what it does. A core that sleeps says in the argument whether
 * tasks for cores waited for data or memory then. */
static void part_state(const struct idle *d, struct part *p, const struct heddle_log_state *s)
{
    const unsigned state =
        s->state == HEDDLE_LOG_SLEEP && (s->arg == HEDDLE_LOG_DATA || s->arg == HEDDLE_LOG_MEMORY)
            ? s->arg
            : s->state;
    int64_t t;

    p->base = BASE_CAUSE;
    if (state == HEDDLE_LOG_OVERHEAD) {
        p->cause = HEDDLE_CAUSE_OVERHEAD;
    } else if (state == HEDDLE_LOG_DATA) {
        p->cause = HEDDLE_CAUSE_DATA;
    } else if (state == HEDDLE_LOG_MEMORY) {
        p->cause = HEDDLE_CAUSE_MEMORY;
    } else if (state == HEDDLE_LOG_SUBMIT) {
        p->base = BASE_PROGRAM;
    } else {
        p->base = BASE_LOOK;
        if (d->lane != d->w->program_lane)
            return;
        /* Who submits looks for nothing: the thread has left the lane. */
        t = submission_in(d->w, p->a, p->b);
        if (t == p->a)
            p->base = BASE_PROGRAM;
        else
            p->b = t;
    }
}

/* The lane says nothing. Between two records of a thread that notes when it
 * looks for work, that is the runtime. */
static void part_silent(const struct idle *d, struct part *p)
{
    const struct heddle_explain_work *w = d->w;

    p->base = BASE_LOOK;
    if (d->lane == w->program_lane && submission_in(w, p->a, p->b) < p->b) {
        p->base = BASE_PROGRAM;
    } else if (w->has_looks && w->v->lanes[d->lane].kind == HEDDLE_LOG_WORKER && p->a > w->first &&
               p->b < w->last) {
        p->base = BASE_CAUSE;
        p->cause = HEDDLE_CAUSE_OVERHEAD;
    }
}

/* `s` is the lane's first state that does not end before a. */
static void gap_cut(struct idle *d, int64_t a, int64_t b, size_t *s, uint32_t next)
{
    const struct heddle_explain_work *w = d->w;
    const size_t last = w->state_at[d->lane + 1];

    while (a < b) {
        struct part p = {.a = a, .b = b};
        const struct heddle_log_state *x = NULL;

        while (*s < last && w->v->states[w->state[*s]].end_ns <= a)
            ++*s;
        if (*s < last)
            x = &w->v->states[w->state[*s]];
        if (x != NULL && x->start_ns <= a) {
            p.b = heddle_explain_min(b, x->end_ns);
            part_state(d, &p, x);
        } else {
            if (x != NULL)
                p.b = heddle_explain_min(b, x->start_ns);
            part_silent(d, &p);
        }
        part_cut(d, &p, next);
        a = p.b;
    }
}

static void lane_cut(struct idle *d)
{
    const struct heddle_explain_work *w = d->w;
    const size_t last = w->busy_at[d->lane + 1];
    size_t s = w->state_at[d->lane];
    int64_t t = w->first;

    for (size_t i = w->busy_at[d->lane]; i < last; i++) {
        gap_cut(d, t, w->busy[i].start, &s, w->busy[i].first);
        t = w->busy[i].end;
    }
    gap_cut(d, t, w->last, &s, HEDDLE_EXPLAIN_NONE);
}

/* --- all lanes ---------------------------------------------------------------------- */

static void block_sums(struct idle *d)
{
    for (size_t i = 0; i < d->supply.n; i++)
        d->sum[i / BLOCK][d->supply.step[i].cause - HEDDLE_CAUSE_START] +=
            step_end(d, i) - d->supply.step[i].t;
}

static void lanes_of_type(struct idle *d, unsigned type)
{
    for (uint32_t l = 0; l < d->w->v->nlanes; l++)
        if (d->w->type[l] == type) {
            d->lane = l;
            lane_cut(d);
        }
}

static heddle_status type_cut(struct idle *d, unsigned type)
{
    const struct heddle_explain_work *w = d->w;
    const uint64_t enough = UINT64_C(65536) + 4 * (w->nrows + (uint64_t)w->v->nstates);
    struct heddle_scratch tmp = {.a = d->alloc};

    heddle_explain_supply_run(w, &d->supply, type);
    d->group = 1;
    d->hint = 0;
    d->npieces = 0;
    d->is_counting = true;
    lanes_of_type(d, type);
    d->is_counting = false;
    if (d->npieces > enough) {
        d->group = (size_t)(d->npieces / enough + 1) * (NSUPPLY + 1);
        d->sum = heddle_scratch_get(&tmp, d->supply.n / BLOCK + 1, sizeof(*d->sum));
        if (d->sum == NULL)
            return HEDDLE_ENOMEM;
        block_sums(d);
    }
    lanes_of_type(d, type);
    heddle_scratch_drop(&tmp);
    return d->st;
}

/* In a task that ended well: the union of those. The rest of the busy time is
 * waste. */
static void lanes_busy(const struct idle *d)
{
    const struct heddle_explain_work *w = d->w;
    int64_t *cover = d->cover;

    for (size_t l = 0; l < w->v->nlanes; l++)
        cover[l] = w->first;
    for (uint32_t i = 0; i < w->nran; i++) {
        const struct heddle_log_task *t = &w->v->tasks[i];
        const int64_t from = heddle_explain_max(t->start_ns, cover[t->lane]);

        if (!w->is_good[i] || t->end_ns <= from)
            continue;
        d->lanes[t->lane].ns[HEDDLE_CAUSE_WORK] += t->end_ns - from;
        cover[t->lane] = t->end_ns;
    }
    for (uint32_t l = 0; l < w->v->nlanes; l++)
        d->lanes[l].ns[HEDDLE_CAUSE_WASTE] =
            heddle_explain_busy_in(w, l, w->first, w->last) - d->lanes[l].ns[HEDDLE_CAUSE_WORK];
}

/* By lane, then by start; they come by type of worker. */
static heddle_status gaps_keep(const struct idle *d, struct heddle_explain *x,
                               struct heddle_scratch *out)
{
    const size_t nlanes = d->w->v->nlanes;
    struct heddle_scratch tmp = {.a = d->alloc};
    struct heddle_explain_gap *p = heddle_scratch_get(out, d->ngaps, sizeof(*p));
    size_t *at = heddle_scratch_get(&tmp, nlanes + 1, sizeof(*at));

    if (p != NULL && at != NULL) {
        for (size_t i = 0; i < d->ngaps; i++)
            at[d->gaps[i].lane + 1]++;
        for (size_t l = 0; l < nlanes; l++)
            at[l + 1] += at[l];
        for (size_t i = 0; i < d->ngaps; i++)
            p[at[d->gaps[i].lane]++] = d->gaps[i];
        x->gaps = p;
        x->ngaps = d->ngaps;
    }
    heddle_scratch_drop(&tmp);
    return x->gaps == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static heddle_status idle_run(struct idle *d, struct heddle_explain *x)
{
    const struct heddle_explain_work *w = d->w;
    const size_t nlanes = w->v->nlanes;
    unsigned types = 0;

    for (uint32_t l = 0; l < nlanes; l++) {
        d->lanes[l].is_worker = w->type[l] != HEDDLE_EXPLAIN_NOT_A_WORKER;
        x->nworkers += d->lanes[l].is_worker;
        if (d->lanes[l].is_worker)
            types |= 1u << w->type[l];
    }
    if (w->last <= w->first)
        return HEDDLE_OK;
    lanes_busy(d);
    HEDDLE_TRY(heddle_explain_supply_create(w, &d->supply));
    for (unsigned t = 0; t < HEDDLE_EXPLAIN_NTYPES; t++)
        if ((types >> t & 1) != 0)
            HEDDLE_TRY(type_cut(d, t));
    for (uint32_t l = 0; l < nlanes; l++)
        for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
            x->total_ns[c] = heddle_explain_add(x->total_ns[c], d->lanes[l].ns[c]);
    return HEDDLE_OK;
}

heddle_status heddle_explain_idle(struct heddle_explain_work *w, struct heddle_explain *x,
                                  struct heddle_scratch *out)
{
    struct heddle_scratch tmp = {.a = w->mem->a};
    struct idle d = {.w = w, .alloc = w->mem->a, .supply.mem = &tmp};
    heddle_status st;

    d.lanes = heddle_scratch_get(out, w->v->nlanes, sizeof(*d.lanes));
    d.cover = heddle_scratch_get(&tmp, w->v->nlanes, sizeof(*d.cover));
    if (d.lanes == NULL || d.cover == NULL)
        st = HEDDLE_ENOMEM;
    else
        st = idle_run(&d, x);
    if (st == HEDDLE_OK)
        st = gaps_keep(&d, x, out);
    x->lanes = d.lanes;
    x->nlanes = w->v->nlanes;
    heddle_free(d.alloc, d.gaps, d.cap * sizeof(*d.gaps));
    heddle_scratch_drop(&tmp);
    return st;
}
