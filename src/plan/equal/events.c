/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events: what the solvers of equal layers do, as steps.
 *
 * One pass backwards finds the last use of each value before it is made or
 * fetched again: it is discarded there. A pass forwards writes the steps.
 */
#include <string.h>

#include "plan/equal/equal.h"

void heddle_plan_events_init(struct heddle_plan_events *e, const struct heddle_plan_chain *c,
                             const struct heddle_allocator *a)
{
    e->c = c;
    heddle_plan_draft_init(&e->d, a);
}

void heddle_plan_events_fini(struct heddle_plan_events *e)
{
    heddle_plan_draft_fini(&e->d);
}

static uint32_t value_of(uint32_t i)
{
    return i == 0 ? 0 : 2 * i - 1;
}

void heddle_plan_events_advance(struct heddle_plan_events *e, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        heddle_plan_draft_compute(&e->d, i, 1, false);
}

void heddle_plan_events_backward(struct heddle_plan_events *e, uint32_t i)
{
    heddle_plan_draft_compute(&e->d, i, 3, false);
    if (i + 1 == e->c->n)
        heddle_plan_draft_compute(&e->d, e->c->n, 1, false);
    heddle_plan_draft_compute(&e->d, 2 * e->c->n - i, 1, false);
}

void heddle_plan_events_revolve(struct heddle_plan_events *e, uint32_t base, uint32_t n, uint32_t s)
{
    struct part {
        uint32_t base, n, s;
    } * stack;
    struct heddle_scratch mem = heddle_scratch_make(e->d.a);
    size_t depth = 0;

    /* A part to the right is smaller by one and leaves one part behind. */
    stack = heddle_scratch_get(&mem, (size_t)n + 2, sizeof(*stack));
    if (stack == NULL) {
        e->d.st = HEDDLE_ENOMEM;
        return;
    }
    stack[depth++] = (struct part){base, n, s};
    while (depth > 0 && e->d.st == HEDDLE_OK) {
        const struct part p = stack[--depth];
        uint32_t j;

        if (p.n == 1) {
            heddle_plan_events_backward(e, p.base);
            continue;
        }
        j = (uint32_t)heddle_plan_revolve_jump(p.n, p.s);
        heddle_plan_events_advance(e, p.base, p.base + j);
        stack[depth++] = (struct part){p.base, j, p.s};
        stack[depth++] = (struct part){p.base + j, p.n - j, p.s - 1};
    }
    heddle_scratch_drop(&mem);
}

void heddle_plan_events_write(struct heddle_plan_events *e, uint32_t i, unsigned level)
{
    heddle_plan_draft_offload(&e->d, value_of(i), level);
}

void heddle_plan_events_read(struct heddle_plan_events *e, uint32_t i, unsigned level)
{
    heddle_plan_draft_prefetch(&e->d, value_of(i), level);
}

void heddle_plan_events_forget(struct heddle_plan_events *e, uint32_t i, unsigned level)
{
    if (i > 0)
        heddle_plan_draft_forget(&e->d, value_of(i), level);
}

/* ---- the end of values -------------------------------------------------------- */

struct ends {
    const struct heddle_plan_graph *g;
    bool *is_needed; /* [nvalues] by a later event */
    bool *is_stored; /* [nvalues] values of op NONE: there is a copy */
    uint8_t *ends;   /* [nevents] bits: the inputs (or the value) that end there;
                        bit 7: the first output */
};

static void mark_compute(struct ends *x, const struct heddle_plan_step *s, uint8_t *end)
{
    const struct heddle_plan_op *op = &x->g->ops[s->what];

    for (uint32_t i = 0; i < op->nvalues; i++)
        if ((s->outputs >> i & 1) != 0) {
            if (!x->is_needed[op->first_value + i] && i == 0)
                *end |= 1u << 7;
            x->is_needed[op->first_value + i] = false;
        }
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = x->g->inputs[op->first_input + i];

        if (!x->is_needed[v])
            *end |= (uint8_t)(1u << i);
        x->is_needed[v] = true;
    }
}

static void mark(struct ends *x, const struct heddle_plan_step *s, uint8_t *end)
{
    if (s->kind == HEDDLE_PLAN_COMPUTE)
        mark_compute(x, s, end);
    else if (s->kind == HEDDLE_PLAN_PREFETCH)
        x->is_needed[s->what] = false;
    else if (s->kind == HEDDLE_PLAN_OFFLOAD) {
        *end = !x->is_needed[s->what];
        x->is_needed[s->what] = true;
    }
}

static void discard(struct ends *x, uint32_t v, struct heddle_plan_draft *out)
{
    if (x->g->values[v].op != HEDDLE_PLAN_NONE || x->is_stored[v])
        heddle_plan_draft_discard(out, v);
}

static void write_event(struct ends *x, const struct heddle_plan_step *s, uint8_t end,
                        struct heddle_plan_draft *out)
{
    const struct heddle_plan_op *op;

    switch (s->kind) {
    case HEDDLE_PLAN_COMPUTE:
        op = &x->g->ops[s->what];
        heddle_plan_draft_compute(out, s->what, s->outputs, false);
        for (uint32_t i = 0; i < op->ninputs; i++)
            if ((end >> i & 1) != 0)
                discard(x, x->g->inputs[op->first_input + i], out);
        if (end >> 7 != 0)
            discard(x, op->first_value, out);
        break;
    case HEDDLE_PLAN_OFFLOAD:
        heddle_plan_draft_offload(out, s->what, s->level);
        x->is_stored[s->what] = true;
        if (end != 0)
            discard(x, s->what, out);
        break;
    case HEDDLE_PLAN_PREFETCH: heddle_plan_draft_prefetch(out, s->what, s->level); break;
    default: heddle_plan_draft_forget(out, s->what, s->level);
    }
}

heddle_status heddle_plan_events_draft(const struct heddle_plan_events *e,
                                       const struct heddle_plan_graph *g,
                                       struct heddle_plan_draft *out)
{
    struct heddle_scratch mem = heddle_scratch_make(e->d.a);
    struct ends x = {.g = g};

    x.is_needed = heddle_scratch_get(&mem, g->nvalues, sizeof(bool));
    x.is_stored = heddle_scratch_get(&mem, g->nvalues, sizeof(bool));
    x.ends = heddle_scratch_get(&mem, e->d.n, sizeof(*x.ends));
    if (e->d.st != HEDDLE_OK || x.is_needed == NULL || x.is_stored == NULL || x.ends == NULL) {
        heddle_scratch_drop(&mem);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t i = e->d.n; i-- > 0;)
        mark(&x, &e->d.step[i], &x.ends[i]);
    for (uint32_t i = 0; i < e->d.n; i++)
        write_event(&x, &e->d.step[i], x.ends[i], out);
    heddle_scratch_drop(&mem);
    return out->st;
}
