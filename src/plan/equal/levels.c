/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * levels: equal layers, several levels of storage whose copies stall the
 * computation (H-Revolve).
 *
 * there[k][l][m]: least time of l + 1 steps when the first activation is at level
 * k, m slots of level k may be used, that one included; fresh[k][l][m]: when it is
 * stored nowhere. Slower levels are filled first: a part that uses level k - 1
 * has all of its slots.
 */
#include <math.h>

#include "base/alloc.h"
#include "plan/equal/equal.h"

struct heddle_plan_levels_table {
    struct heddle_plan_levels v;
    uint32_t n;
    struct heddle_scratch mem;
    double *fresh[HEDDLE_PLAN_LEVELS], *there[HEDDLE_PLAN_LEVELS];
};

typedef struct heddle_plan_levels_table table;

static size_t at(const table *t, uint32_t l, uint32_t m)
{
    return (size_t)m * t->n + l;
}

static double fresh(const table *t, uint32_t k, uint32_t l, uint32_t m)
{
    return t->fresh[k][at(t, l, m)];
}

static double there(const table *t, uint32_t k, uint32_t l, uint32_t m)
{
    return t->there[k][at(t, l, m)];
}

double heddle_plan_levels_time(const struct heddle_plan_levels_table *t, uint32_t level, uint32_t l,
                               uint32_t slots)
{
    return fresh(t, level, l, slots);
}

/* From one slot, again and again. */
static double from_one(const struct heddle_plan_levels *v, double l)
{
    return (l + 1) * v->backward + l * (l + 1) / 2 * v->forward + l * v->read[0];
}

/* The best first jump of there[k][l][m] and its time; 0: there is none. */
static uint32_t best_jump(const table *t, uint32_t k, uint32_t l, uint32_t m, double *time_out)
{
    double best = INFINITY;
    uint32_t jump = 0;

    for (uint32_t j = 1; j < l && m > 0; j++) {
        const double time =
            j * t->v.forward + fresh(t, k, l - j, m - 1) + t->v.read[k] + there(t, k, j - 1, m);

        if (time < best) {
            best = time;
            jump = j;
        }
    }
    *time_out = best;
    return jump;
}

static void fill_memory(table *t, uint32_t l, uint32_t m)
{
    double time = 0, split;

    if (l == 0) {
        t->there[0][at(t, 0, m)] = t->fresh[0][at(t, 0, m)] = t->v.backward;
        return;
    }
    if (m == 0) {
        t->there[0][at(t, l, 0)] = t->fresh[0][at(t, l, 0)] = INFINITY;
        return;
    }
    time = from_one(&t->v, l);
    (void)best_jump(t, 0, l, m, &split);
    time = split < time && m > 1 ? split : time;
    t->there[0][at(t, l, m)] = time;
    t->fresh[0][at(t, l, m)] = t->v.write[0] + time;
}

static void fill_level(table *t, uint32_t k, uint32_t l, uint32_t m)
{
    const double below = fresh(t, k - 1, l, t->v.slots[k - 1]);
    double time = below, split;

    if (l == 0 || m == 0) {
        t->there[k][at(t, l, m)] = t->fresh[k][at(t, l, m)] = l == 0 ? t->v.backward : below;
        return;
    }
    (void)best_jump(t, k, l, m, &split);
    time = split < time ? split : time;
    if (l == 1 && t->v.slots[0] > 0)
        time = t->v.forward + 2 * t->v.backward + t->v.read[0];
    t->there[k][at(t, l, m)] = time;
    time += l == 1 ? t->v.write[0] : t->v.write[k];
    t->fresh[k][at(t, l, m)] = time < below ? time : below;
}

heddle_status heddle_plan_levels_make(const struct heddle_plan_levels *v, uint32_t n,
                                      const struct heddle_allocator *a,
                                      struct heddle_plan_levels_table **out)
{
    struct heddle_scratch mem = heddle_scratch_make(a);
    table *t = heddle_scratch_get(&mem, 1, sizeof(*t));
    bool is_ok = t != NULL;

    for (uint32_t k = 0; k < v->nlevels && is_ok; k++) {
        const size_t rows = (size_t)v->slots[k] + 1;
        size_t cells = 0;

        is_ok = heddle_mul(&cells, rows, n);
        t->fresh[k] = is_ok ? heddle_scratch_get(&mem, cells, sizeof(double)) : NULL;
        t->there[k] = is_ok ? heddle_scratch_get(&mem, cells, sizeof(double)) : NULL;
        is_ok = t->fresh[k] != NULL && t->there[k] != NULL;
    }
    if (!is_ok) {
        heddle_scratch_drop(&mem);
        return HEDDLE_ENOMEM;
    }
    t->v = *v;
    t->n = n;
    t->mem = mem;
    for (uint32_t k = 0; k < v->nlevels; k++)
        for (uint32_t l = 0; l < n; l++)
            for (uint32_t m = 0; m <= v->slots[k]; m++) {
                if (k == 0)
                    fill_memory(t, l, m);
                else
                    fill_level(t, k, l, m);
            }
    *out = t;
    return HEDDLE_OK;
}

void heddle_plan_levels_drop(struct heddle_plan_levels_table *t)
{
    struct heddle_scratch mem;

    if (t == NULL)
        return;
    mem = t->mem;
    heddle_scratch_drop(&mem);
}

/* ---- the plan -------------------------------------------------------------------- */

struct part {
    uint32_t base, k, l, m;
    bool is_stored;  /* the first activation is at level k */
    bool must_fetch; /* and not in memory now */
};

struct tracer {
    const table *t;
    const unsigned *store;
    struct heddle_plan_events *e;
    struct part *stack;
    size_t depth;
};

static void push(struct tracer *x, struct part p)
{
    x->stack[x->depth++] = p;
}

/* Memory is left: level 0 is Revolve with reads, of which the model counts the
 * time and the plan has none. */
static void trace_memory(struct tracer *x, struct part p)
{
    double time;
    const uint32_t j = best_jump(x->t, 0, p.l, p.m, &time);

    if (p.m <= 1 || j == 0 || time >= from_one(&x->t->v, p.l)) {
        for (uint32_t i = p.l + 1; i-- > 0;) {
            heddle_plan_events_advance(x->e, p.base, p.base + i);
            heddle_plan_events_backward(x->e, p.base + i);
        }
        return;
    }
    heddle_plan_events_advance(x->e, p.base, p.base + j);
    push(x, (struct part){.base = p.base, .l = j - 1, .m = p.m});
    push(x, (struct part){.base = p.base + j, .l = p.l - j, .m = p.m - 1});
}

static void trace_fresh(struct tracer *x, struct part p)
{
    const table *t = x->t;
    const double below = fresh(t, p.k - 1, p.l, t->v.slots[p.k - 1]);

    if (p.m == 0 || p.l == 1 || below <= t->v.write[p.k] + there(t, p.k, p.l, p.m)) {
        push(x, (struct part){.base = p.base, .k = p.k - 1, .l = p.l, .m = t->v.slots[p.k - 1]});
        return;
    }
    heddle_plan_events_write(x->e, p.base, x->store[p.k]);
    p.is_stored = true;
    push(x, p);
}

static void trace_stored(struct tracer *x, struct part p)
{
    const table *t = x->t;
    double time = 0;
    const uint32_t j = best_jump(t, p.k, p.l, p.m, &time);

    if (p.l <= 1 || j == 0 || fresh(t, p.k - 1, p.l, t->v.slots[p.k - 1]) <= time) {
        heddle_plan_events_forget(x->e, p.base, x->store[p.k]);
        push(x, (struct part){.base = p.base, .k = p.k - 1, .l = p.l, .m = t->v.slots[p.k - 1]});
        return;
    }
    heddle_plan_events_advance(x->e, p.base, p.base + j);
    push(
        x,
        (struct part){
            .base = p.base, .k = p.k, .l = j - 1, .m = p.m, .is_stored = true, .must_fetch = true});
    push(x, (struct part){.base = p.base + j, .k = p.k, .l = p.l - j, .m = p.m - 1});
}

void heddle_plan_levels_trace(const struct heddle_plan_levels_table *t, const unsigned *store,
                              struct heddle_plan_events *e)
{
    struct heddle_scratch mem = heddle_scratch_make(e->d.a);
    const uint32_t top = t->v.nlevels - 1;
    struct tracer x = {.t = t, .store = store, .e = e};

    x.stack = heddle_scratch_get(&mem, 2 * (size_t)t->n + 8, sizeof(*x.stack));
    if (x.stack == NULL) {
        e->d.st = HEDDLE_ENOMEM;
        return;
    }
    push(&x, (struct part){.k = top, .l = t->n - 1, .m = t->v.slots[top]});
    while (x.depth > 0 && e->d.st == HEDDLE_OK) {
        const struct part p = x.stack[--x.depth];

        if (p.must_fetch)
            heddle_plan_events_read(e, p.base, store[p.k]);
        if (p.l == 0) {
            if (p.is_stored)
                heddle_plan_events_forget(e, p.base, store[p.k]);
            heddle_plan_events_backward(e, p.base);
        } else if (p.k == 0)
            trace_memory(&x, p);
        else if (p.is_stored)
            trace_stored(&x, p);
        else
            trace_fresh(&x, p);
    }
    heddle_scratch_drop(&mem);
}
