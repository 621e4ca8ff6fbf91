/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * infer: a graph for constant shapes.
 *
 * Purpose  one walk in order: what follows from constants (and from shapes alone) is computed with
 *          the reference kernels, for all others the rule gives the shapes. Then one walk back:
 *          what nobody reads does not run.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/why.h"
#include "nn/run/run.h"

enum { FOLD_BYTES = 1 << 26 }; /* larger results of constants are computed by each request */

struct infer {
    struct nn_plan *p;
    struct nn_run run;
    const struct nn_opts *o;
    bool *is_folded; /* by node */
};

/* Everything that the node looks at is known. */
static bool infer_can_fold(const struct infer *f, const struct nn_node *n)
{
    if ((n->op->flags & (NN_RANDOM | NN_CONTROL)) != 0)
        return false;
    for (uint32_t i = 0; i < n->nin; i++) {
        const struct nn_value *v = n->in[i] == NN_NONE ? NULL : &f->p->value[n->in[i]];

        if (v == NULL)
            continue;
        if (v->kind != NN_TENSOR || (v->data == NULL && (n->op->flags & NN_SHAPE_ONLY) == 0))
            return false;
    }
    return true;
}

static heddle_status infer_fold(struct infer *f, struct nn_call *c)
{
    const struct nn_node *n = c->node;

    c->is_rule = false;
    if ((n->op->flags & NN_DYNAMIC) == 0)
        for (uint32_t i = 0; i < n->nout; i++) {
            const struct nn_value v = c->out[i];

            HEDDLE_TRY(heddle_nn_out(c, i, v.type, &v.shape));
        }
    HEDDLE_TRY(n->op->ref(c));
    f->is_folded[n - f->p->g->node] = true;
    return HEDDLE_OK;
}

/* Shapes that a plan can be made for. */
static bool infer_is_static(const struct nn_call *c)
{
    if ((c->node->op->flags & (NN_DYNAMIC | NN_CONTROL)) != 0)
        return false;
    for (uint32_t i = 0; i < c->nout; i++)
        if (c->out[i].kind != NN_TENSOR || c->out[i].type == NN_STR ||
            !heddle_nn_is_concrete(&c->out[i].shape))
            return false;
    for (uint32_t i = 0; i < c->nin; i++)
        if (c->in[i].kind != NN_ABSENT && (c->in[i].kind != NN_TENSOR || c->in[i].type == NN_STR))
            return false;
    return true;
}

static heddle_status infer_node(struct infer *f, const struct nn_node *n, struct nn_value *in,
                                struct nn_value *out)
{
    struct nn_call c = {.node = n,
                        .nin = n->nin,
                        .nout = n->nout,
                        .in = in,
                        .out = out,
                        .is_rule = true,
                        .run = &f->run,
                        .why = f->o->why,
                        .why_bytes = f->o->why_bytes};
    size_t bytes = 0;

    memset(out, 0, n->nout * sizeof(*out));
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = n->in[i] == NN_NONE ? (struct nn_value){0} : f->p->value[n->in[i]];
    HEDDLE_TRY(heddle_nn_rule(&c));
    for (uint32_t i = 0; i < n->nout; i++)
        bytes += out[i].kind == NN_TENSOR && heddle_nn_is_concrete(&out[i].shape)
                     ? heddle_nn_bytes(&out[i])
                     : 0;
    if (infer_can_fold(f, n) && bytes <= FOLD_BYTES)
        HEDDLE_TRY(infer_fold(f, &c));
    else if (!infer_is_static(&c))
        f->p->is_static = false;
    for (uint32_t i = 0; i < n->nout; i++)
        if (n->out[i] != NN_NONE)
            f->p->value[n->out[i]] = out[i];
    return HEDDLE_OK;
}

/* Which nodes have to run, from the outputs back. */
static heddle_status infer_needed(struct infer *f, bool *is_needed, uint32_t *count)
{
    const struct nn_graph *g = f->p->g;
    bool *value = heddle_scratch_get(f->run.temp, g->nvalues, sizeof(*value));

    if (value == NULL)
        return HEDDLE_ENOMEM;
    *count = 0;
    for (uint32_t i = 0; i < g->noutputs; i++)
        value[g->output[i]] = true;
    for (uint32_t i = g->nnodes; i-- > 0;) {
        const struct nn_node *n = &g->node[i];

        for (uint32_t k = 0; k < n->nout && !f->is_folded[i] && !n->is_dead; k++)
            is_needed[i] |= n->out[k] != NN_NONE && value[n->out[k]];
        for (uint32_t k = 0; k < n->nin && is_needed[i]; k++)
            if (n->in[k] != NN_NONE)
                value[n->in[k]] = true;
        *count += is_needed[i];
    }
    return HEDDLE_OK;
}

/* Is the result of an alias: the memory of its operand, in another shape. */
static bool infer_is_alias(const struct nn_plan *p, const struct nn_node *n)
{
    return (n->op->flags & NN_ALIAS) != 0 && n->nout == 1 && p->value[n->in[0]].data == NULL;
}

static heddle_status infer_tasks(struct infer *f)
{
    struct nn_plan *p = f->p;
    const struct nn_graph *g = p->g;
    bool *is_needed = heddle_scratch_get(f->run.temp, g->nnodes, sizeof(*is_needed));
    uint32_t n = 0;

    if (is_needed == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(infer_needed(f, is_needed, &n));
    p->task = heddle_scratch_get(&p->mem, n, sizeof(*p->task));
    p->root = heddle_scratch_get(&p->mem, g->nvalues, sizeof(*p->root));
    if (p->task == NULL || p->root == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->nvalues; i++)
        p->root[i] = i;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const struct nn_node *node = &g->node[i];
        struct nn_task *t = &p->task[p->ntasks];

        if (!is_needed[i])
            continue;
        if (infer_is_alias(p, node)) {
            p->root[node->out[0]] = p->root[node->in[0]];
            continue;
        }
        t->node = node;
        t->in_value = node->in;
        t->out_value = node->out;
        t->in = heddle_scratch_get(&p->mem, (size_t)node->nin + node->nout, sizeof(*t->in));
        if (t->in == NULL)
            return HEDDLE_ENOMEM;
        t->out = t->in + node->nin;
        for (uint32_t k = 0; k < node->nin; k++)
            if (node->in[k] != NN_NONE)
                t->in[k] = p->value[node->in[k]];
        for (uint32_t k = 0; k < node->nout; k++)
            if (node->out[k] != NN_NONE)
                t->out[k] = p->value[node->out[k]];
        p->ntasks++;
    }
    return HEDDLE_OK;
}

static heddle_status infer_walk(struct infer *f, const struct nn_value *in)
{
    struct nn_plan *p = f->p;
    const struct nn_graph *g = p->g;
    uint32_t most = 1;
    struct nn_value *operand;

    for (uint32_t i = 0; i < g->nnodes; i++) {
        most = g->node[i].nin > most ? g->node[i].nin : most;
        most = g->node[i].nout > most ? g->node[i].nout : most;
    }
    p->value = heddle_scratch_get(&p->mem, g->nvalues, sizeof(*p->value));
    f->is_folded = heddle_scratch_get(&p->mem, g->nnodes, sizeof(*f->is_folded));
    operand = heddle_scratch_get(&p->mem, (size_t)2 * most, sizeof(*operand));
    if (p->value == NULL || f->is_folded == NULL || operand == NULL)
        return heddle_why(f->o->why, f->o->why_bytes, HEDDLE_ENOMEM, "no memory for a plan");
    for (uint32_t i = 0; i < g->nvalues; i++)
        p->value[i] = g->value[i].constant;
    for (uint32_t i = 0; i < g->ninputs; i++) {
        p->value[g->input[i]] = in[i];
        p->value[g->input[i]].data = NULL;
        if (in[i].kind != NN_TENSOR || in[i].type == NN_STR)
            p->is_static = false;
    }
    for (uint32_t i = 0; i < g->nnodes && p->is_static; i++) {
        if (g->node[i].is_dead)
            continue;
        HEDDLE_TRY(infer_node(f, &g->node[i], operand, operand + most));
        heddle_scratch_drop(f->run.temp);
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_infer(struct nn_plan *p, const struct nn_value *in, const struct nn_opts *o)
{
    struct heddle_scratch temp = heddle_scratch_make(o->alloc);
    struct infer f = {.p = p, .o = o, .run = {.keep = &p->mem, .temp = &temp, .alloc = o->alloc}};
    heddle_status st;

    p->is_static = true;
    st = infer_walk(&f, in);
    if (st == HEDDLE_OK && p->is_static)
        st = infer_tasks(&f);
    heddle_scratch_drop(&temp);
    return st;
}
