/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * smooth: the same computations in an order that leaves addresses more room.
 *
 * Addresses are hard to find where memory is almost full for long. An occurrence is
 * moved past its neighbours, one by one, as far as its inputs and its readers
 * allow; it stays where the squares of what is above a level sum up to least. The
 * peak does not rise, and nothing is computed more or less often.
 *
 * An exchange of two neighbours changes the memory at their two positions and
 * nowhere else: what lives on behind both is the same. So a step costs the inputs of
 * one operation.
 *
 * An operation that takes the place of an input stays where it is.
 */
#include "plan/seq/seq.h"

#include <math.h>
#include <string.h>

#define NONE  HEDDLE_PLAN_NONE
#define LEVEL 0.75 /* of the peak: what is below it does not count */
#define FAR   400  /* exchanges of one occurrence in one direction */

/* An occurrence; known by its position at the beginning. */
struct item {
    uint32_t op, first; /* inputs, in `slot` */
    int64_t own;        /* bytes that it adds while it runs */
    int64_t keep;       /* and those that stay */
    int64_t dead;       /* of inputs that no operation reads behind it */
    bool is_first, is_fixed;
};

struct smooth {
    const struct heddle_plan_graph *g;
    uint32_t n;
    struct item *item; /* [n] */
    uint32_t *at;      /* [n] item at a position */
    uint32_t *slot;    /* what an item reads: outputs of items; NONE */
    uint32_t *maker;   /* [nslots] item of an output */
    uint32_t *last;    /* [nslots] item that reads it last; NONE: results too */
    int64_t *bytes;    /* [nslots] */
    uint32_t *mark;    /* [nslots] read by the item at hand: now */
    uint32_t *by;      /* [nops] makes an input of the item at hand: now */
    uint32_t now;
    int64_t *mem;   /* [n] at a position */
    int64_t *aside; /* [n] what is set aside there */
    int64_t most;   /* of both together */
    double level;
    double work;
    bool is_free;
};

/* ---- the sequence ------------------------------------------------------------- */

static bool smooth_init(struct smooth *m, const struct heddle_plan_seq *s,
                        struct heddle_scratch *mem)
{
    const struct heddle_plan_graph *g = m->g;
    size_t nslots = s->base[s->n], nreads = 0;

    for (uint32_t p = 0; p < s->n; p++)
        nreads += g->ops[s->op[p]].ninputs;
    m->n = s->n;
    m->item = heddle_scratch_get(mem, (size_t)s->n + 1, sizeof(*m->item));
    m->at = heddle_scratch_raw(mem, s->n, sizeof(*m->at));
    m->slot = heddle_scratch_raw(mem, nreads + 1, sizeof(*m->slot));
    m->maker = heddle_scratch_raw(mem, nslots + 1, sizeof(*m->maker));
    m->last = heddle_scratch_raw(mem, nslots + 1, sizeof(*m->last));
    m->bytes = heddle_scratch_raw(mem, nslots + 1, sizeof(*m->bytes));
    m->mark = heddle_scratch_get(mem, nslots + 1, sizeof(*m->mark));
    m->by = heddle_scratch_get(mem, g->nops, sizeof(*m->by));
    m->mem = heddle_scratch_raw(mem, s->n, sizeof(*m->mem));
    m->aside = heddle_scratch_get(mem, s->n, sizeof(*m->aside));
    return m->item != NULL && m->at != NULL && m->slot != NULL && m->maker != NULL &&
           m->last != NULL && m->bytes != NULL && m->mark != NULL && m->by != NULL &&
           m->mem != NULL && m->aside != NULL;
}

/* What is set aside stays at its positions. */
static void read_aside(struct smooth *m, const struct heddle_plan_seq *s)
{
    int64_t bytes = 0;

    for (uint32_t p = s->n; p-- > 0;) {
        if (s->prev[p] == NONE)
            bytes = s->aside[s->op[p]];
        m->aside[p] = bytes;
    }
}

/* What s is, with the outputs of an occurrence numbered as in s->last. */
static void read_seq(struct smooth *m, const struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = m->g;
    uint32_t *tail = m->by; /* for now: the last occurrence of an operation */
    uint32_t nreads = 0;

    memset(tail, 0xff, g->nops * sizeof(*tail));
    for (uint32_t p = 0; p < s->n; p++) {
        const struct heddle_plan_op *op = &g->ops[s->op[p]];
        struct item *x = &m->item[p];

        *x = (struct item){.op = s->op[p],
                           .first = nreads,
                           .own = (int64_t)op->work_bytes,
                           .is_first = s->prev[p] == NONE,
                           .is_fixed = op->inplace != NONE};
        m->at[p] = p;
        m->mem[p] = s->mem[p] - m->aside[p];
        for (uint32_t i = 0; i < op->nvalues; i++) {
            const uint32_t k = s->base[p] + i, last = s->last[k];

            m->maker[k] = p;
            m->last[k] = last == s->n ? NONE : last;
            m->bytes[k] = (int64_t)g->values[op->first_value + i].bytes;
            if (last != NONE || i == 0)
                x->own += m->bytes[k];
            if (last != NONE)
                x->keep += m->bytes[k];
        }
        for (uint32_t i = 0; i < op->ninputs; i++) {
            const uint32_t v = g->inputs[op->first_input + i];
            const uint32_t by = g->values[v].op;
            uint32_t k = NONE;

            if (by != NONE) {
                k = s->base[tail[by]] + v - g->ops[by].first_value;
                if (m->last[k] == p)
                    x->dead += m->bytes[k];
            }
            m->slot[nreads++] = k;
        }
        tail[s->op[p]] = p;
    }
    m->item[s->n].first = nreads;
    memset(m->by, 0, g->nops * sizeof(*m->by));
}

/* ---- moves --------------------------------------------------------------------- */

static double cost(const struct smooth *m, uint32_t p, int64_t bytes)
{
    const double over = (double)(bytes + m->aside[p]) - m->level;

    return over > 0 ? over * over : 0;
}

/* Marks what item a reads. */
static void mark_inputs(struct smooth *m, uint32_t a)
{
    m->now++;
    for (uint32_t i = m->item[a].first; i < m->item[a + 1].first; i++)
        if (m->slot[i] != NONE) {
            m->mark[m->slot[i]] = m->now;
            m->by[m->item[m->maker[m->slot[i]]].op] = m->now;
        }
}

/* Whether a may change places with b, which is in front of it (or behind it). The
 * bytes that both read, and that the later one of them reads last. */
static bool may_pass(struct smooth *m, uint32_t a, uint32_t b, bool is_behind, int64_t *shared)
{
    const struct item *x = &m->item[a], *y = &m->item[b];
    const uint32_t later = is_behind ? b : a;

    if (y->is_fixed || x->op == y->op || (x->is_first && y->is_first && !m->is_free) ||
        m->by[y->op] == m->now)
        return false;
    *shared = 0;
    for (uint32_t i = y->first; i < m->item[b + 1].first; i++) {
        const uint32_t k = m->slot[i];

        if (k == NONE)
            continue;
        if (m->item[m->maker[k]].op == x->op)
            return false;
        if (m->mark[k] == m->now && m->last[k] == later)
            *shared += m->bytes[k];
    }
    m->work += m->item[b + 1].first - y->first + 2;
    return true;
}

/* Moves the one at p one further, for good. */
static void exchange(struct smooth *m, uint32_t p, bool is_right)
{
    const uint32_t lo = is_right ? p : p - 1;
    const uint32_t b = m->at[is_right ? p + 1 : p - 1];
    const uint32_t now_first = m->at[lo + 1], now_last = m->at[lo];
    const int64_t live = m->mem[lo] - m->item[now_last].own;
    int64_t shared = 0;

    for (uint32_t i = m->item[b].first; i < m->item[b + 1].first; i++) {
        const uint32_t k = m->slot[i];

        if (k != NONE && m->mark[k] == m->now && m->last[k] == now_first) {
            m->last[k] = now_last;
            shared += m->bytes[k];
        }
    }
    m->item[now_first].dead -= shared;
    m->item[now_last].dead += shared;
    m->at[lo] = now_first;
    m->at[lo + 1] = now_last;
    m->mem[lo] = live + m->item[now_first].own;
    m->mem[lo + 1] =
        live + m->item[now_first].keep - m->item[now_first].dead + m->item[now_last].own;
}

/* What item b reads as well and a reads last is not for a any more. */
static void share(struct smooth *m, uint32_t a, uint32_t b)
{
    for (uint32_t i = m->item[b].first; i < m->item[b + 1].first; i++) {
        const uint32_t k = m->slot[i];

        if (k != NONE && m->mark[k] == m->now && m->last[k] == a)
            m->mark[k] = m->now - 1;
    }
}

/* The best number of exchanges of the one at p in a direction, and what that gains:
 * more than 0. */
static uint32_t look(struct smooth *m, uint32_t p, bool is_right, double *best)
{
    const uint32_t a = m->at[p];
    const struct item *x = &m->item[a];
    int64_t live = m->mem[p] - x->own, dead = x->dead;
    double gain = cost(m, p, m->mem[p]); /* of all but x itself */
    uint32_t nbest = 0;

    mark_inputs(m, a);
    *best = 0;
    for (uint32_t k = 1; k <= FAR && (is_right ? p + k < m->n : k <= p); k++) {
        const uint32_t q = is_right ? p + k : p - k; /* where x goes */
        const uint32_t lo = is_right ? q - 1 : q, b = m->at[q];
        const struct item *y = &m->item[b];
        int64_t shared, first, second;

        if (!may_pass(m, a, b, is_right, &shared))
            break;
        if (is_right) {
            first = live + y->own;
            live += y->keep - y->dead + shared;
            second = live + x->own;
            gain += cost(m, q, m->mem[q]) - cost(m, lo, first);
        } else {
            live = m->mem[q] - y->own;
            first = live + x->own;
            dead -= shared;
            second = live + x->keep - dead + y->own;
            gain += cost(m, q, m->mem[q]) - cost(m, q + 1, second);
            share(m, a, b);
        }
        if (first + m->aside[lo] > m->most || second + m->aside[lo + 1] > m->most)
            break;
        if (gain - cost(m, q, is_right ? second : first) > *best) {
            *best = gain - cost(m, q, is_right ? second : first);
            nbest = k;
        }
    }
    return nbest;
}

static bool move_one(struct smooth *m, uint32_t p)
{
    double left, right;
    uint32_t nl, nr;

    if (m->item[m->at[p]].is_fixed)
        return false;
    nr = look(m, p, true, &right);
    nl = look(m, p, false, &left);
    if (nr == 0 && nl == 0)
        return false;
    mark_inputs(m, m->at[p]);
    if (right >= left)
        for (; nr > 0; nr--, p++)
            exchange(m, p, true);
    else
        for (; nl > 0; nl--, p--)
            exchange(m, p, false);
    return true;
}

/* Until nothing moves any more, or the work is done. */
static void move_all(struct smooth *m, struct heddle_plan_search *x, double work)
{
    const uint32_t enough = 20 * m->n;

    for (uint32_t idle = 0, k = 1; idle < enough && m->work < work; k++) {
        const uint32_t p = heddle_rng_below32(&x->rng, m->n);

        idle = move_one(m, p) ? 0 : idle + 1;
        if (k % 64 == 0 && heddle_plan_search_is_late(x))
            break;
    }
}

void heddle_plan_smooth(struct heddle_plan_search *x, struct heddle_plan_seq *s, double work)
{
    struct heddle_scratch mem = heddle_scratch_make(x->mem.a);
    const int64_t most = s->peak < x->budget ? s->peak : x->budget;
    struct smooth m = {
        .g = x->g, .level = LEVEL * (double)most, .most = s->peak, .is_free = x->is_free};

    if (smooth_init(&m, s, &mem)) {
        if (s->aside != NULL)
            read_aside(&m, s);
        read_seq(&m, s);
        move_all(&m, x, work);
        for (uint32_t p = 0; p < m.n; p++)
            s->op[p] = m.item[m.at[p]].op;
        (void)!heddle_plan_seq_eval(s);
        /* What is set aside goes by operations, here it went by positions. */
        if (s->peak > m.most) {
            for (uint32_t p = 0; p < m.n; p++)
                s->op[p] = m.item[p].op;
            (void)!heddle_plan_seq_eval(s);
        }
        x->work += m.work / 4;
    }
    heddle_scratch_drop(&mem);
}
