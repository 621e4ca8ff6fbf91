/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seq: sequences of operations with repetition: memory at every position, and a
 * tree over positions.
 *
 * The memory is that of the steps which heddle_plan_draft_from_sequence() makes:
 * an output lives from its occurrence to its last reader before the next
 * occurrence of its operation.
 */
#include "plan/seq/seq.h"

#include <string.h>

#define NONE HEDDLE_PLAN_NONE

uint32_t heddle_plan_seq_room(const struct heddle_plan_graph *g)
{
    const uint64_t n = g->nops;
    const uint64_t room = n <= 1000 ? 256 * n + 1024 : n <= 100000 ? 24 * n + 232000 : 4 * n;

    return room < (uint64_t)1 << 31 ? (uint32_t)room : (uint32_t)1 << 31;
}

static uint32_t pow2(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

bool heddle_plan_seq_init(struct heddle_plan_seq *s, const struct heddle_plan_graph *g,
                          uint32_t cap, struct heddle_scratch *mem)
{
    const size_t per_op = (size_t)g->nvalues / g->nops + 1;

    memset(s, 0, sizeof(*s));
    s->g = g;
    s->cap = cap;
    s->vcap = (uint32_t)(per_op * cap < UINT32_MAX ? per_op * cap : UINT32_MAX);
    s->op = heddle_scratch_raw(mem, cap, sizeof(*s->op));
    s->prev = heddle_scratch_raw(mem, cap, sizeof(*s->prev));
    s->next = heddle_scratch_raw(mem, cap, sizeof(*s->next));
    s->base = heddle_scratch_raw(mem, (size_t)cap + 1, sizeof(*s->base));
    s->last = heddle_scratch_raw(mem, s->vcap, sizeof(*s->last));
    s->mem = heddle_scratch_raw(mem, cap, sizeof(*s->mem));
    s->diff = heddle_scratch_raw(mem, (size_t)cap + 2, sizeof(*s->diff));
    s->tail = heddle_scratch_get(mem, g->nops, sizeof(*s->tail));
    s->none = heddle_scratch_get(mem, g->nvalues, sizeof(*s->none));
    s->tree.max = heddle_scratch_raw(mem, 2 * (size_t)pow2(cap), sizeof(*s->tree.max));
    s->tree.add = heddle_scratch_raw(mem, 2 * (size_t)pow2(cap), sizeof(*s->tree.add));
    if (s->base != NULL)
        s->base[0] = 0;
    return s->op != NULL && s->prev != NULL && s->next != NULL && s->base != NULL &&
           s->last != NULL && s->mem != NULL && s->diff != NULL && s->tail != NULL &&
           s->none != NULL && s->tree.max != NULL && s->tree.add != NULL;
}

void heddle_plan_seq_start(struct heddle_plan_seq *s)
{
    for (uint32_t i = 0; i < s->g->nops; i++)
        s->op[i] = i;
    s->n = s->g->nops;
}

void heddle_plan_seq_copy(struct heddle_plan_seq *to, const struct heddle_plan_seq *from)
{
    const size_t n = from->n;

    to->n = from->n;
    to->time = from->time;
    to->peak = from->peak;
    to->peak_at = from->peak_at;
    memcpy(to->op, from->op, n * sizeof(*to->op));
    memcpy(to->prev, from->prev, n * sizeof(*to->prev));
    memcpy(to->next, from->next, n * sizeof(*to->next));
    memcpy(to->base, from->base, (n + 1) * sizeof(*to->base));
    memcpy(to->last, from->last, from->base[n] * sizeof(*to->last));
    memcpy(to->mem, from->mem, n * sizeof(*to->mem));
    memcpy(to->tail, from->tail, from->g->nops * sizeof(*to->tail));
}

/* ---- memory --------------------------------------------------------------- */

/* The readers: fills prev, next, base, last, none, tail, time. */
static bool find_readers(struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = s->g;

    memset(s->tail, 0xff, g->nops * sizeof(*s->tail));
    memset(s->none, 0xff, g->nvalues * sizeof(*s->none));
    s->time = 0;
    s->base[0] = 0;
    for (uint32_t p = 0; p < s->n; p++) {
        const uint32_t id = s->op[p];
        const struct heddle_plan_op *op = &g->ops[id];

        if (op->nvalues > s->vcap - s->base[p])
            return false;
        s->base[p + 1] = s->base[p] + op->nvalues;
        for (uint32_t i = 0; i < op->nvalues; i++)
            s->last[s->base[p] + i] = NONE;
        for (uint32_t i = 0; i < op->ninputs; i++) {
            const uint32_t v = g->inputs[op->first_input + i];
            const uint32_t by = g->values[v].op;

            if (by == NONE)
                s->none[v] = p;
            else
                s->last[s->base[s->tail[by]] + v - g->ops[by].first_value] = p;
        }
        s->prev[p] = s->tail[id];
        s->next[p] = NONE;
        if (s->tail[id] != NONE)
            s->next[s->tail[id]] = p;
        s->tail[id] = p;
        s->time += op->time;
    }
    return true;
}

static void keep_results(struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = s->g;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t by = g->values[v].op;

        if ((g->values[v].flags & HEDDLE_PLAN_RESULT) != 0 && by != NONE)
            s->last[s->base[s->tail[by]] + v - g->ops[by].first_value] = s->n;
    }
}

/* Whether the first output of p takes the place of an input that no operation reads
 * afterwards. */
static bool takes_place(const struct heddle_plan_seq *s, const uint32_t *current, uint32_t p)
{
    const uint32_t v = s->g->ops[s->op[p]].inplace;
    const struct heddle_plan_value *x;

    if (v == NONE)
        return false;
    x = &s->g->values[v];
    if (x->op == NONE)
        return s->none[v] == p && (x->flags & HEDDLE_PLAN_RESULT) == 0;
    return s->last[s->base[current[x->op]] + v - s->g->ops[x->op].first_value] == p;
}

static void add_range(int64_t *diff, uint32_t from, uint32_t to, uint64_t bytes)
{
    diff[from] += (int64_t)bytes;
    diff[to] -= (int64_t)bytes;
}

static void add_outputs(struct heddle_plan_seq *s, uint32_t p, bool takes)
{
    const struct heddle_plan_op *op = &s->g->ops[s->op[p]];

    for (uint32_t i = 0; i < op->nvalues; i++) {
        const uint64_t bytes = s->g->values[op->first_value + i].bytes;
        uint32_t last = s->last[s->base[p] + i];
        const uint32_t from = p + (i == 0 && takes);

        if (last == NONE && i > 0)
            continue;
        last = last == NONE ? p : last == s->n ? s->n - 1 : last;
        if (last >= from)
            add_range(s->diff, from, last + 1, bytes);
    }
    if (op->work_bytes > 0)
        add_range(s->diff, p, p + 1, op->work_bytes);
}

/* Values of op NONE: `taken` was set where one lost its place. */
static void add_initial(struct heddle_plan_seq *s)
{
    for (uint32_t v = 0; v < s->g->nvalues; v++) {
        const struct heddle_plan_value *x = &s->g->values[v];

        if (x->op == NONE)
            add_range(s->diff, 0, s->n, x->bytes);
    }
}

/* What is set aside counts as used. */
static void set_aside(struct heddle_plan_seq *s)
{
    int64_t bytes = 0;

    for (uint32_t p = s->n; p-- > 0;) {
        if (s->prev[p] == NONE)
            bytes = s->aside[s->op[p]];
        s->mem[p] += bytes;
    }
}

bool heddle_plan_seq_eval(struct heddle_plan_seq *s)
{
    uint32_t *current = s->tail; /* while we sweep */
    int64_t sum = 0;

    if (s->n > s->cap || !find_readers(s))
        return false;
    keep_results(s);
    memset(s->diff, 0, ((size_t)s->n + 2) * sizeof(*s->diff));
    add_initial(s);
    for (uint32_t p = 0; p < s->n; p++) {
        const struct heddle_plan_op *op = &s->g->ops[s->op[p]];
        const bool takes = takes_place(s, current, p);

        current[s->op[p]] = p;
        if (takes && s->g->values[op->inplace].op == NONE)
            add_range(s->diff, p + 1, s->n + 1, -s->g->values[op->inplace].bytes);
        add_outputs(s, p, takes);
    }
    for (uint32_t p = 0; p < s->n; p++) {
        sum += s->diff[p];
        s->mem[p] = sum;
    }
    if (s->aside != NULL)
        set_aside(s);
    s->peak = 0;
    s->peak_at = 0;
    for (uint32_t p = 0; p < s->n; p++)
        if (s->mem[p] > s->peak) {
            s->peak = s->mem[p];
            s->peak_at = p;
        }
    return true;
}

/* ---- the tree -------------------------------------------------------------- */

static void plant(struct heddle_plan_tree *t, const int64_t *mem, uint32_t n)
{
    const uint32_t leaves = pow2(n);

    t->n = leaves;
    for (uint32_t i = 0; i < leaves; i++)
        t->max[leaves + i] = i < n ? mem[i] : INT64_MIN / 2;
    for (uint32_t i = leaves; i-- > 1;) {
        const int64_t a = t->max[2 * i], b = t->max[2 * i + 1];

        t->max[i] = a > b ? a : b;
    }
    memset(t->add, 0, 2 * (size_t)leaves * sizeof(*t->add));
}

void heddle_plan_seq_plant(struct heddle_plan_seq *s)
{
    plant(&s->tree, s->mem, s->n);
}

static void pull(struct heddle_plan_tree *t, uint32_t i)
{
    for (i /= 2; i >= 1; i /= 2) {
        const int64_t a = t->max[2 * i], b = t->max[2 * i + 1];

        t->max[i] = (a > b ? a : b) + t->add[i];
    }
}

void heddle_plan_tree_add(struct heddle_plan_tree *t, uint32_t lo, uint32_t hi, int64_t bytes)
{
    uint32_t l = lo + t->n, r = hi + t->n;

    if (lo >= hi)
        return;
    for (; l < r; l /= 2, r /= 2) {
        if (l & 1) {
            t->max[l] += bytes;
            t->add[l++] += bytes;
        }
        if (r & 1) {
            t->max[--r] += bytes;
            t->add[r] += bytes;
        }
    }
    pull(t, lo + t->n);
    pull(t, hi - 1 + t->n);
}

/* Recursion-free: what ancestors added is taken on the way up, on both sides. */
int64_t heddle_plan_tree_max(const struct heddle_plan_tree *t, uint32_t lo, uint32_t hi)
{
    int64_t left = INT64_MIN / 2, right = INT64_MIN / 2;
    uint32_t l = lo + t->n, r = hi + t->n;

    if (lo >= hi)
        return INT64_MIN;
    r--; /* the last one; l and r walk up together */
    left = t->max[l];
    right = t->max[r];
    while (l / 2 != r / 2) {
        if ((l & 1) == 0 && t->max[l + 1] > left)
            left = t->max[l + 1];
        if ((r & 1) == 1 && t->max[r - 1] > right)
            right = t->max[r - 1];
        l /= 2;
        r /= 2;
        left += t->add[l];
        right += t->add[r];
    }
    if (right > left)
        left = right;
    for (l /= 2; l >= 1; l /= 2)
        left += t->add[l];
    return left;
}
