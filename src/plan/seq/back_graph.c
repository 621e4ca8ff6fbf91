/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back_graph: the large values of a graph, and the operations that make something else
 * out of them.
 */
#include <string.h>

#include "plan/seq/back.h"

#define NONE HEDDLE_PLAN_NONE

static bool is_read(const struct heddle_plan_back *b, uint32_t v)
{
    const uint32_t *first = b->x->job->users.first;

    return first[v] < first[v + 1] || heddle_plan_back_is_result(b, v);
}

/* The large inputs of an operation, each once; returns their number. */
static uint32_t add_inputs(struct heddle_plan_back *b, uint32_t a, uint32_t *ninput)
{
    const struct heddle_plan_op *op = &b->g->ops[a];
    const uint32_t begin = *ninput;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t k = b->number[b->g->inputs[op->first_input + i]];
        uint32_t at = begin;

        while (at < *ninput && b->input[at] != k)
            at++;
        if (k != NONE && at == *ninput)
            b->input[(*ninput)++] = k;
    }
    return *ninput - begin;
}

/* It makes nothing, and reads one large value and nothing else: it runs when that is there
 * the first time. That is certain where its operation makes only that. */
static bool is_tail(const struct heddle_plan_back *b, uint32_t a)
{
    const struct heddle_plan_op *op = &b->g->ops[a];
    uint32_t v;

    for (v = op->first_value; v < op->first_value + op->nvalues; v++)
        if (is_read(b, v) || b->g->values[v].bytes > 0)
            return false;
    if (op->ninputs != 1 || op->work_bytes > 0)
        return false;
    v = b->g->inputs[op->first_input];
    return b->number[v] != NONE && b->g->ops[b->g->values[v].op].nvalues == 1;
}

/* Nodes of the large outputs of an operation that another one reads, and a target if it
 * makes something else out of large values. */
static void add_op(struct heddle_plan_back *b, uint32_t a, uint64_t small, uint32_t *dep,
                   uint32_t *ninput)
{
    const struct heddle_plan_op *op = &b->g->ops[a];
    const uint32_t begin = *ninput, ninputs = add_inputs(b, a, ninput);
    const uint32_t begin_node = b->n;
    uint64_t bytes = op->work_bytes;
    bool is_target = op->nvalues == 0;
    struct heddle_plan_back_node x;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = b->g->inputs[op->first_input + i];
        const uint32_t by = b->g->values[v].op;

        if (by != NONE && dep[by] > dep[a])
            dep[a] = dep[by];
        if (b->number[v] != NONE && b->node[b->number[v]].dep > dep[a])
            dep[a] = b->node[b->number[v]].dep;
    }
    x = (struct heddle_plan_back_node){
        .work = op->work_bytes, .op = a, .first_input = begin, .ninputs = ninputs, .dep = dep[a]};
    for (uint32_t v = op->first_value; v < op->first_value + op->nvalues; v++) {
        b->number[v] = NONE;
        bytes += b->g->values[v].bytes;
        if (b->g->values[v].bytes <= small || b->n == HEDDLE_PLAN_BACK_NODES || !is_read(b, v)) {
            is_target = true;
            continue;
        }
        b->number[v] = b->n;
        x.first = b->number[op->first_value];
        b->node[b->n] = x;
        b->node[b->n].bytes = b->g->values[v].bytes;
        b->node[b->n].hash = heddle_mix64((uint64_t)v + 1);
        b->node[b->n++].first_bytes = v > op->first_value ? b->g->values[op->first_value].bytes : 0;
    }
    if (is_target && (ninputs > 0 || b->n > begin_node || bytes > small) && !is_tail(b, a)) {
        b->target[b->ntargets++] = (struct heddle_plan_back_target){
            .bytes = bytes, .op = a, .first_input = begin, .ninputs = ninputs};
        dep[a] = b->ntargets;
    } else if (b->n == begin_node) {
        *ninput = begin;
    }
}

/* How far nodes and targets are. The largest value counts as much as all numbers: with
 * less the search is lost in sets of many early values. */
static void measure(struct heddle_plan_back *b)
{
    uint64_t largest = 1, far = 0;

    for (uint32_t x = 0; x < b->n; x++)
        if (b->node[x].bytes > largest)
            largest = b->node[x].bytes;
    for (uint32_t x = 0; x < b->n; x++)
        b->node[x].far =
            x + 1 + (uint64_t)((double)b->n * (double)b->node[x].bytes / (double)largest);
    for (uint32_t i = 0; i < b->ntargets; i++) {
        const struct heddle_plan_back_target *t = &b->target[i];

        b->target[i].far = far;
        for (uint32_t k = 0; k < t->ninputs; k++)
            far += b->node[b->input[t->first_input + k]].far;
    }
    b->all_far = far;
}

heddle_status heddle_plan_back_nodes(struct heddle_plan_back *b, uint64_t small)
{
    struct heddle_scratch *mem = &b->x->mem;
    uint32_t *dep = heddle_scratch_get(mem, b->g->nops, sizeof(*dep));
    uint32_t ninput = 0;

    b->number = heddle_scratch_raw(mem, b->g->nvalues, sizeof(*b->number));
    b->input = heddle_scratch_raw(mem, b->g->ninputs + (size_t)1, sizeof(*b->input));
    b->node = heddle_scratch_raw(mem, HEDDLE_PLAN_BACK_NODES, sizeof(*b->node));
    b->target = heddle_scratch_raw(mem, b->g->nops, sizeof(*b->target));
    if (dep == NULL || b->number == NULL || b->input == NULL || b->node == NULL ||
        b->target == NULL)
        return HEDDLE_ENOMEM;
    memset(b->number, 0xff, b->g->nvalues * sizeof(*b->number));
    for (uint32_t a = 0; a < b->g->nops; a++)
        add_op(b, a, small, dep, &ninput);
    measure(b);
    b->nwords = b->n / 64 + 1;
    b->above = heddle_scratch_get(mem, (size_t)b->n * b->nwords + 1, sizeof(*b->above));
    b->is_in = heddle_scratch_get(mem, b->n + (size_t)1, 1);
    if (b->above == NULL || b->is_in == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t x = 0; x < b->n; x++)
        for (uint32_t i = 0; i < b->node[x].ninputs; i++) {
            const uint32_t y = b->input[b->node[x].first_input + i];
            uint64_t *to = &b->above[(size_t)x * b->nwords];

            for (uint32_t w = 0; w < b->nwords; w++)
                to[w] |= b->above[(size_t)y * b->nwords + w];
            to[y / 64] |= UINT64_C(1) << (y % 64);
        }
    return HEDDLE_OK;
}
