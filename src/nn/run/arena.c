/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena: addresses of values and scratch, by the planner: a training graph without a backward pass,
 * for which the solver `keep` finds addresses.
 *
 * The inputs are the results of operations before all others, so that their memory can be used
 * again; so is what stays between launches, whose memory is not. Values of no bytes get one.
 */
#include <string.h>

#include "base/assert.h"
#include "base/why.h"
#include "heddle/plan.h"
#include "nn/run/run.h"

enum { ARENA_ALIGN = 64, ARENA_OUTPUTS = 64 };

struct arena {
    struct nn_plan *p;
    const struct nn_opts *o;
    struct heddle_scratch *mem;
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    uint32_t *number; /* of a value of the graph here; NN_NONE */
    uint32_t *who;    /* the way back */
    uint32_t nops, nvalues, ninputs;
    uint32_t nfirst; /* operations before the first task */
};

static uint64_t arena_bytes(const struct nn_value *v)
{
    const size_t n = heddle_nn_bytes(v);

    return n > 0 ? n : 1;
}

static void arena_value(struct arena *a, uint32_t v, uint32_t op)
{
    a->number[v] = a->nvalues;
    a->who[a->nvalues] = v;
    a->value[a->nvalues++] =
        (struct heddle_plan_value){.bytes = arena_bytes(&a->p->value[v]), .op = op};
}

static bool arena_has_input(const struct arena *a, uint32_t first, uint32_t number)
{
    for (uint32_t i = first; i < a->ninputs; i++)
        if (a->input[i] == number)
            return true;
    return false;
}

static void arena_inputs_op(struct arena *a)
{
    a->op[a->nops++] = (struct heddle_plan_op){
        .name = "inputs", .inplace = HEDDLE_PLAN_NONE, .first_value = a->nvalues};
}

/* A value that is there before the first task. An operation of the planner has a limited number
 * of results, so there may be several of such operations. */
static void arena_first(struct arena *a, uint32_t v)
{
    if (a->p->root[v] != v || a->number[v] != NN_NONE)
        return;
    if (a->op[a->nops - 1].nvalues == ARENA_OUTPUTS)
        arena_inputs_op(a);
    a->op[a->nops - 1].nvalues++;
    arena_value(a, v, a->nops - 1);
}

/* Inputs, and what stays between launches. */
static void arena_start(struct arena *a)
{
    const struct nn_plan *p = a->p;

    arena_inputs_op(a);
    for (uint32_t i = 0; i < p->g->ninputs; i++)
        arena_first(a, p->g->input[i]);
    if (p->rows != NN_NONE)
        arena_first(a, p->rows);
    for (uint32_t i = 0; i < p->nkept; i++) {
        arena_first(a, p->kept[i]);
        a->value[a->number[p->kept[i]]].flags |= HEDDLE_PLAN_RESULT;
    }
    a->nfirst = a->nops;
}

/* Inserts in order: the planner wants them sorted. */
static void arena_input(struct arena *a, uint32_t first, uint32_t number)
{
    uint32_t i = a->ninputs++;

    for (; i > first && a->input[i - 1] > number; i--)
        a->input[i] = a->input[i - 1];
    a->input[i] = number;
}

/* Does another operand, which has to stay while result 0 is written, have the same memory? */
static bool arena_is_read_elsewhere(const struct arena *a, const struct nn_task *t, uint32_t k,
                                    uint32_t root)
{
    for (uint32_t i = 0; i < t->node->nin; i++)
        if (i != k && t->in_value[i] != NN_NONE && a->p->root[t->in_value[i]] == root &&
            (i >= 32 || (t->node->op->inplace >> i & 1) == 0))
            return true;
    return false;
}

/* The operand whose memory result 0 may take. */
static uint32_t arena_inplace(const struct arena *a, const struct nn_task *t)
{
    for (uint32_t i = 0; i < t->node->nin && i < 32; i++) {
        uint32_t v;

        if ((t->node->op->inplace >> i & 1) == 0 || t->in_value[i] == NN_NONE)
            continue;
        v = a->p->root[t->in_value[i]];
        if (arena_is_read_elsewhere(a, t, i, v))
            continue;
        if (t->in[i].type == t->out[0].type && a->number[v] != NN_NONE &&
            heddle_nn_bytes(&t->in[i]) == heddle_nn_bytes(&t->out[0]) &&
            heddle_nn_bytes(&a->p->value[v]) == heddle_nn_bytes(&t->out[0]))
            return a->number[v];
    }
    return HEDDLE_PLAN_NONE;
}

static heddle_status arena_task(struct arena *a, const struct nn_task *t)
{
    struct heddle_plan_op *op = &a->op[a->nops];

    *op = (struct heddle_plan_op){.name = t->node->name,
                                  .time = 1,
                                  .work_bytes = t->work_bytes,
                                  .first_value = a->nvalues,
                                  .first_input = a->ninputs,
                                  .inplace = arena_inplace(a, t)};
    for (uint32_t i = 0; i < t->node->nin; i++) {
        const uint32_t v = t->in_value[i] == NN_NONE ? NN_NONE : a->p->root[t->in_value[i]];

        if (v != NN_NONE && a->number[v] != NN_NONE &&
            !arena_has_input(a, op->first_input, a->number[v]))
            arena_input(a, op->first_input, a->number[v]);
    }
    op->ninputs = a->ninputs - op->first_input;
    for (uint32_t i = 0; i < t->node->nout; i++)
        if (t->out_value[i] != NN_NONE && a->number[t->out_value[i]] == NN_NONE)
            arena_value(a, t->out_value[i], a->nops);
    op->nvalues = a->nvalues - op->first_value;
    a->nops++;
    return op->nvalues <= ARENA_OUTPUTS ? HEDDLE_OK : HEDDLE_EOVERFLOW;
}

static heddle_status arena_solve(struct arena *a)
{
    struct heddle_plan_graph desc = {.size = sizeof(desc),
                                     .name = "arena",
                                     .nops = a->nops,
                                     .nvalues = a->nvalues,
                                     .ninputs = a->ninputs,
                                     .ops = a->op,
                                     .values = a->value,
                                     .inputs = a->input};
    const struct heddle_plan_machine m = {
        .size = sizeof(m), .budget = UINT64_C(1) << 60, .align = ARENA_ALIGN};
    const struct heddle_plan_opts po = {sizeof(po), a->o->alloc, a->o->why, a->o->why_bytes};
    const struct heddle_plan_solve_opts so = {.size = sizeof(so),
                                              .solver = "keep",
                                              .alloc = a->o->alloc,
                                              .why = a->o->why,
                                              .why_bytes = a->o->why_bytes};
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan *plan = NULL;
    heddle_status st = heddle_plan_graph_create(&desc, &po, &g);

    if (st == HEDDLE_OK)
        st = heddle_plan_solve(g, &m, &so, &plan);
    for (uint32_t i = 0; st == HEDDLE_OK && i < plan->nplaces; i++) {
        const struct heddle_plan_place *at = &plan->places[i];
        const struct heddle_plan_step *s = &plan->steps[at->step];

        if (at->value != HEDDLE_PLAN_NONE)
            a->p->at[a->who[at->value]] = at->offset;
        else if (s->kind == HEDDLE_PLAN_COMPUTE && s->what >= a->nfirst)
            a->p->task[s->what - a->nfirst].work_at = at->offset;
    }
    if (st == HEDDLE_OK) {
        a->p->arena_bytes = plan->arena_bytes;
        a->p->peak_bytes = plan->peak_bytes;
    }
    heddle_plan_destroy(plan);
    heddle_plan_graph_destroy(g);
    return st;
}

static heddle_status arena_room(struct arena *a)
{
    const uint32_t nvalues = a->p->nvalues;
    size_t nin = 1;

    for (uint32_t i = 0; i < a->p->ntasks; i++)
        nin += a->p->task[i].node->nin;
    a->op = heddle_scratch_get(a->mem, (size_t)a->p->ntasks + nvalues / ARENA_OUTPUTS + 1,
                               sizeof(*a->op));
    a->value = heddle_scratch_get(a->mem, (size_t)nvalues + 1, sizeof(*a->value));
    a->who = heddle_scratch_get(a->mem, (size_t)nvalues + 1, sizeof(*a->who));
    a->number = heddle_scratch_get(a->mem, nvalues, sizeof(*a->number));
    a->input = heddle_scratch_get(a->mem, nin, sizeof(*a->input));
    a->p->at = heddle_scratch_get(&a->p->mem, nvalues, sizeof(*a->p->at));
    if (a->op == NULL || a->value == NULL || a->who == NULL || a->number == NULL ||
        a->input == NULL || a->p->at == NULL)
        return heddle_why(a->o->why, a->o->why_bytes, HEDDLE_ENOMEM, "no memory for a plan");
    for (uint32_t i = 0; i < nvalues; i++) {
        a->number[i] = NN_NONE;
        a->p->at[i] = NN_NOWHERE;
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_arena(struct nn_plan *p, const struct nn_opts *o)
{
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    struct arena a = {.p = p, .o = o, .mem = &mem};
    const struct nn_graph *g = p->g;
    heddle_status st = arena_room(&a);

    if (st == HEDDLE_OK)
        arena_start(&a);
    for (uint32_t i = 0; i < p->ntasks && st == HEDDLE_OK; i++)
        st = arena_task(&a, &p->task[i]);
    if (st == HEDDLE_EOVERFLOW)
        st = heddle_why(o->why, o->why_bytes, HEDDLE_ENOSYS, "a node has more than %d results",
                        ARENA_OUTPUTS);
    for (uint32_t i = 0; i < g->noutputs && st == HEDDLE_OK; i++) {
        const uint32_t v = p->root[p->output[i]];

        if (a.number[v] != NN_NONE)
            a.value[a.number[v]].flags |= HEDDLE_PLAN_RESULT;
    }
    if (st == HEDDLE_OK)
        st = arena_solve(&a);
    heddle_scratch_drop(&mem);
    return st;
}
