/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part: a block as a graph of its own.
 *
 * The graph has the forward operations of the block, one operation that stands for the blocks
 * inside of it, and its backward operations. The one operation reads the values that the blocks
 * inside need of this block, and makes the values that this block needs of them. Values that
 * come from outside of the block are in memory all the time and count no bytes.
 */
#include "plan/blocks/part.h"

#include <string.h>

#include "base/rng.h"

#define NONE HEDDLE_PLAN_NONE

enum { WIDE = 64 }; /* outputs of an operation */

static struct heddle_plan_op *begin_op(struct heddle_plan_part *p, double time, uint64_t work,
                                       uint32_t flags)
{
    struct heddle_plan_op *op = &p->op[p->g.nops++];

    *op = (struct heddle_plan_op){.time = time,
                                  .work_bytes = work,
                                  .first_value = p->g.nvalues,
                                  .first_input = p->g.ninputs,
                                  .inplace = NONE,
                                  .flags = flags};
    return op;
}

static uint32_t add_value(struct heddle_plan_part *p, struct heddle_plan_op *op, uint64_t bytes,
                          uint32_t flags)
{
    p->value[p->g.nvalues] =
        (struct heddle_plan_value){.bytes = bytes, .op = p->g.nops - 1, .flags = flags};
    op->nvalues++;
    return p->g.nvalues++;
}

static void add_input(struct heddle_plan_part *p, struct heddle_plan_op *op, uint32_t v)
{
    uint32_t at = p->g.ninputs++;

    for (; at > op->first_input && p->input[at - 1] > v; at--)
        p->input[at] = p->input[at - 1];
    p->input[at] = v;
    op->ninputs++;
}

static void set_local(struct heddle_plan_parts *k, uint32_t block, uint32_t v, uint32_t local)
{
    k->local[v] = local;
    k->owner[v] = block + 1;
}

/* Operation u of the graph as one of the block. */
static void copy_op(struct heddle_plan_parts *k, uint32_t block, uint32_t u)
{
    const struct heddle_plan_graph *g = k->job->g;
    const struct heddle_plan_op *from = &g->ops[u];
    const struct heddle_plan_cuts *c = k->cuts;
    struct heddle_plan_part *p = &k->at;
    struct heddle_plan_op *op = begin_op(p, from->time, from->work_bytes, from->flags);

    for (uint32_t i = 0; i < from->ninputs; i++) {
        const uint32_t v = g->inputs[from->first_input + i];

        if (k->owner[v] != block + 1)
            continue;
        add_input(p, op, k->local[v]);
        if (from->inplace == v)
            op->inplace = k->local[v];
    }
    for (uint32_t i = 0; i < from->nvalues; i++) {
        const uint32_t v = from->first_value + i;
        const bool stays = (g->values[v].flags & HEDDLE_PLAN_RESULT) != 0 ||
                           heddle_plan_is_read(k->job, v, c->end[block], g->nops);

        set_local(k, block, v,
                  add_value(p, op, g->values[v].bytes, stays ? HEDDLE_PLAN_RESULT : 0));
    }
}

/* The operation that stands for the inside: reads what it needs of the block. */
static void add_inside(struct heddle_plan_parts *k, uint32_t block)
{
    const struct heddle_plan_graph *g = k->job->g;
    const struct heddle_plan_cuts *c = k->cuts;
    struct heddle_plan_part *p = &k->at;
    struct heddle_plan_op *op;

    p->inside = p->g.nops;
    op = begin_op(p, 0, 0, HEDDLE_PLAN_ONCE);
    for (uint32_t u = c->first[block]; u < c->first[block + 1]; u++) {
        const struct heddle_plan_op *from = &g->ops[u];

        if (c->is_kept[u])
            continue;
        for (uint32_t i = 0; i < from->nvalues; i++)
            if (heddle_plan_is_read(k->job, from->first_value + i, c->first[block + 1],
                                    c->end[block + 1]))
                add_input(p, op, k->local[from->first_value + i]);
    }
}

/* What the inside leaves: each value that the block reads, the rest as one. */
static void add_leavers(struct heddle_plan_parts *k, uint32_t block)
{
    const struct heddle_plan_graph *g = k->job->g;
    const struct heddle_plan_cuts *c = k->cuts;
    struct heddle_plan_part *p = &k->at;
    struct heddle_plan_op *op = begin_op(p, 0, 0, HEDDLE_PLAN_ONCE);
    uint64_t rest = c->y[block + 1];

    p->nleave = 1;
    for (uint32_t u = c->end[block + 1]; u < c->end[block]; u++) {
        const struct heddle_plan_op *o = &g->ops[u];

        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = g->inputs[o->first_input + i];
            const uint32_t by = g->values[v].op;
            bool stays;

            if (by == NONE || by < c->first[block + 1] || by >= c->end[block + 1] ||
                k->owner[v] == block + 1 || (by < c->turn && c->is_kept[by]))
                continue;
            if (op->nvalues == WIDE - 1) {
                op = begin_op(p, 0, 0, HEDDLE_PLAN_ONCE);
                p->nleave++;
            }
            stays = (g->values[v].flags & HEDDLE_PLAN_RESULT) != 0 ||
                    heddle_plan_is_read(k->job, v, c->end[block], g->nops);
            set_local(k, block, v,
                      add_value(p, op, g->values[v].bytes, stays ? HEDDLE_PLAN_RESULT : 0));
            rest -= g->values[v].bytes;
        }
    }
    (void)add_value(p, op, rest, HEDDLE_PLAN_RESULT);
}

void heddle_plan_part_make(struct heddle_plan_parts *k, uint32_t block)
{
    const struct heddle_plan_cuts *c = k->cuts;
    struct heddle_plan_part *p = &k->at;

    p->g.nops = p->g.nvalues = p->g.ninputs = 0;
    for (uint32_t u = c->first[block]; u < c->first[block + 1]; u++)
        if (!c->is_kept[u])
            copy_op(k, block, u);
    p->nf = p->g.nops;
    add_inside(k, block);
    add_leavers(k, block);
    for (uint32_t u = c->end[block + 1]; u < c->end[block]; u++)
        copy_op(k, block, u);
    p->nb = p->g.nops - p->inside - 1 - p->nleave;
}

/* ---- equal blocks ------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    return heddle_mix64(h ^ (v + UINT64_C(0x9e3779b97f4a7c15)));
}

uint64_t heddle_plan_part_hash(const struct heddle_plan_part *p)
{
    uint64_t h = mix(p->nf, p->g.nops);

    for (uint32_t i = 0; i < p->g.nops; i++)
        h = mix(mix(h, p->op[i].work_bytes), (uint64_t)p->op[i].nvalues << 32 | p->op[i].ninputs);
    for (uint32_t i = 0; i < p->g.nvalues; i++)
        h = mix(h, p->value[i].bytes);
    for (uint32_t i = 0; i < p->g.ninputs; i++)
        h = mix(h, p->input[i]);
    return h;
}

bool heddle_plan_part_is_equal(const struct heddle_plan_part *a, const struct heddle_plan_part *b)
{
    if (a->hash != b->hash || a->nf != b->nf || a->g.nops != b->g.nops ||
        a->g.nvalues != b->g.nvalues || a->g.ninputs != b->g.ninputs || a->nleave != b->nleave)
        return false;
    for (uint32_t i = 0; i < a->g.nops; i++) {
        const struct heddle_plan_op *x = &a->op[i], *y = &b->op[i];

        if (x->work_bytes != y->work_bytes || x->nvalues != y->nvalues ||
            x->ninputs != y->ninputs || x->inplace != y->inplace || x->flags != y->flags)
            return false;
    }
    for (uint32_t i = 0; i < a->g.nvalues; i++)
        if (a->value[i].bytes != b->value[i].bytes || a->value[i].flags != b->value[i].flags)
            return false;
    return memcmp(a->input, b->input, a->g.ninputs * sizeof(*a->input)) == 0;
}

struct heddle_plan_part *heddle_plan_part_keep(struct heddle_plan_parts *k)
{
    const struct heddle_plan_part *at = &k->at;
    struct heddle_plan_part *p = heddle_scratch_get(&k->tmp, 1, sizeof(*p));
    struct heddle_plan_part **head = &k->parts[at->hash % 256];

    if (p == NULL)
        return NULL;
    *p = *at;
    p->op = heddle_scratch_get(&k->tmp, at->g.nops, sizeof(*p->op));
    p->value = heddle_scratch_get(&k->tmp, at->g.nvalues, sizeof(*p->value));
    p->input = heddle_scratch_get(&k->tmp, at->g.ninputs + (size_t)1, sizeof(*p->input));
    p->shape = heddle_scratch_get(k->mem, 1, sizeof(*p->shape));
    if (p->op == NULL || p->value == NULL || p->input == NULL || p->shape == NULL)
        return NULL;
    memcpy(p->op, at->op, at->g.nops * sizeof(*p->op));
    memcpy(p->value, at->value, at->g.nvalues * sizeof(*p->value));
    if (at->g.ninputs > 0)
        memcpy(p->input, at->input, at->g.ninputs * sizeof(*p->input));
    p->g.ops = p->op;
    p->g.values = p->value;
    p->g.inputs = p->input;
    p->next = *head;
    *head = p;
    k->nshapes++;
    return p;
}

/* ---- memory --------------------------------------------------------------------- */

bool heddle_plan_part_room(struct heddle_plan_parts *k)
{
    const struct heddle_plan_graph *g = k->job->g;
    const struct heddle_plan_cuts *c = k->cuts;
    size_t ops = 0, values = 0, inputs = 0;

    for (uint32_t b = 0; b < c->n; b++) {
        const uint32_t range[2][2] = {{c->first[b], c->first[b + 1]}, {c->end[b + 1], c->end[b]}};
        size_t nops = 0, nvalues = 0, ninputs = 0;

        for (int r = 0; r < 2; r++)
            for (uint32_t u = range[r][0]; u < range[r][1]; u++) {
                nops++;
                nvalues += g->ops[u].nvalues;
                ninputs += g->ops[u].ninputs;
            }
        ops = nops > ops ? nops : ops;
        values = nvalues > values ? nvalues : values;
        inputs = ninputs > inputs ? ninputs : inputs;
    }
    /* the inside reads values, leavers make inputs */
    ops += 2 + inputs / (WIDE - 1) + 1;
    k->at.op = heddle_scratch_get(&k->tmp, ops, sizeof(*k->at.op));
    k->at.value = heddle_scratch_get(&k->tmp, values + inputs + 1, sizeof(*k->at.value));
    k->at.input = heddle_scratch_get(&k->tmp, values + inputs + 1, sizeof(*k->at.input));
    k->local = heddle_scratch_get(&k->tmp, g->nvalues, sizeof(*k->local));
    k->owner = heddle_scratch_get(&k->tmp, g->nvalues, sizeof(*k->owner));
    return k->at.op != NULL && k->at.value != NULL && k->at.input != NULL && k->local != NULL &&
           k->owner != NULL;
}
