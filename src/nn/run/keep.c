/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep: keys and values of tokens that stay where they are from one launch to the next.
 *
 * Purpose  a decoder takes the past and gives it back longer: present = Concat(past, new) along
 *          the tokens, for every layer. A plan that keeps the past has no such copies: `present`
 *          has memory of its own that no other value uses, the graph's input `past` is not there
 *          at all, and Concat becomes a task `append` that writes the row of the new token into
 *          `present`. Which row is a value of the plan that is no value of the graph: one number
 *          for each sequence of the batch; below 0 nothing is written.
 *
 * Invariants (1) nothing but its Concat reads the data of a past
 *            (2) there is one new token, so which row it takes is a matter of the mask only
 *            (3) all pairs have the same batch, tokens and type of elements
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/why.h"
#include "nn/run/run.h"

/* append: in 0 the new row of each head, in 1 rows; out 0 batch x heads x tokens x bytes. */
struct append {
    size_t batch, heads, tokens, bytes;
};

static heddle_status append_run(const void *state, const struct nn_args *a, size_t part,
                                size_t nparts, void *scratch)
{
    const struct append *s = state;
    const char *from = a->in[0];
    const int64_t *row = a->in[1];
    char *to = a->out[0];

    (void)part;
    (void)nparts;
    (void)scratch;
    for (size_t b = 0; b < s->batch; b++)
        for (size_t h = b * s->heads; h < (b + 1) * s->heads; h++)
            if (row[b] >= 0 && (size_t)row[b] < s->tokens)
                memcpy(to + (h * s->tokens + (size_t)row[b]) * s->bytes, from + h * s->bytes,
                       s->bytes);
    return HEDDLE_OK;
}

static void append_destroy(const struct heddle_allocator *a, void *state)
{
    heddle_free(a, state, sizeof(struct append));
}

static heddle_status append_fast(struct nn_call *c, struct nn_step *out)
{
    const struct nn_shape *s = &c->out[0].shape;
    struct append *a = heddle_nn_alloc(c, sizeof(*a));

    if (a == NULL)
        return HEDDLE_ENOMEM;
    *a = (struct append){(size_t)s->dim[0], (size_t)s->dim[1], (size_t)s->dim[2],
                         (size_t)s->dim[3] * heddle_nn_type_bytes(c->out[0].type)};
    *out = (struct nn_step){.state = a, .parts = 1, .run = append_run, .destroy = append_destroy};
    return HEDDLE_OK;
}

static struct heddle_cost append_cost(const struct nn_call *c)
{
    return (struct heddle_cost){.bytes = 2 * (double)heddle_nn_bytes(&c->in[0])};
}

/* No operator of ONNX. */
static const struct nn_op append_op = {.name = "append",
                                       .nin_min = 2,
                                       .nin_max = 2,
                                       .type = {NN_M_TENSOR, NN_M(NN_I64)},
                                       .fast = append_fast,
                                       .cost = append_cost};

/* The task that makes `present` of `past` and one new row, if there is one; else NULL. */
static struct nn_task *keep_find(const struct nn_plan *p, const struct nn_keep *k)
{
    const struct nn_value *past = &p->value[k->past], *present = &p->value[p->root[k->present]];
    struct nn_task *found = NULL;

    for (uint32_t i = 0; i < p->ntasks; i++) {
        struct nn_task *t = &p->task[i];

        for (uint32_t v = 0; v < t->node->nin; v++) {
            if (t->in_value[v] == NN_NONE || p->root[t->in_value[v]] != k->past)
                continue;
            if (found != NULL || v != 0 || t->node->nin != 2 ||
                strcmp(t->node->op->name, "Concat") != 0 || t->in_value[1] == NN_NONE ||
                t->out_value[0] != p->root[k->present])
                return NULL;
            found = t;
        }
    }
    if (found == NULL || past->shape.rank != 4 || present->shape.rank != 4 ||
        found->in[1].shape.dim[2] != 1 || present->shape.dim[2] != past->shape.dim[2] + 1)
        return NULL;
    return found;
}

/* Concat becomes append; the past has no memory of its own. */
static heddle_status keep_task(struct nn_plan *p, const struct nn_keep *k, struct nn_task *t)
{
    struct nn_node *node = heddle_scratch_get(&p->mem, 1, sizeof(*node));
    uint32_t *number = heddle_scratch_get(&p->mem, 3, sizeof(*number));
    struct nn_value *value = heddle_scratch_get(&p->mem, 3, sizeof(*value));

    if (node == NULL || number == NULL || value == NULL)
        return HEDDLE_ENOMEM;
    number[0] = t->in_value[1];
    number[1] = p->rows;
    number[2] = t->out_value[0];
    value[0] = t->in[1];
    value[1] = p->value[p->rows];
    value[2] = t->out[0];
    *node = (struct nn_node){.op = &append_op,
                             .name = t->node->name,
                             .nin = 2,
                             .nout = 1,
                             .in = number,
                             .out = number + 2};
    *t = (struct nn_task){
        .node = node, .in = value, .out = value + 2, .in_value = number, .out_value = number + 2};
    p->root[k->past] = t->out_value[0];
    return HEDDLE_OK;
}

/* One more value behind those of the graph: the rows. */
static heddle_status keep_rows(struct nn_plan *p, int64_t batch)
{
    const struct nn_shape s = {1, {batch}};
    struct nn_value *value = heddle_scratch_get(&p->mem, (size_t)p->nvalues + 1, sizeof(*value));
    uint32_t *root = heddle_scratch_get(&p->mem, (size_t)p->nvalues + 1, sizeof(*root));

    if (value == NULL || root == NULL)
        return HEDDLE_ENOMEM;
    memcpy(value, p->value, p->nvalues * sizeof(*value));
    memcpy(root, p->root, p->nvalues * sizeof(*root));
    p->rows = p->nvalues;
    value[p->rows] = heddle_nn_tensor(NN_I64, &s);
    root[p->rows] = p->rows;
    p->value = value;
    p->root = root;
    p->nvalues++;
    return HEDDLE_OK;
}

heddle_status heddle_nn_keep_past(struct nn_plan *p, const struct nn_keep *keep, uint32_t n,
                                  const struct nn_opts *o)
{
    uint32_t *kept = heddle_scratch_get(&p->mem, n, sizeof(*kept));
    heddle_status st = HEDDLE_ENOMEM;

    if (!p->is_static)
        return HEDDLE_ENOSYS;
    for (uint32_t i = 0; i < n; i++)
        if (keep_find(p, &keep[i]) == NULL)
            return HEDDLE_ENOSYS;
    if (kept != NULL && n > 0)
        st = keep_rows(p, p->value[keep[0].past].shape.dim[0]);
    for (uint32_t i = 0; i < n && st == HEDDLE_OK; i++) {
        st = keep_task(p, &keep[i], keep_find(p, &keep[i]));
        kept[i] = p->root[keep[i].present];
    }
    p->kept = kept;
    p->nkept = n;
    return st == HEDDLE_ENOMEM ? heddle_why(o->why, o->why_bytes, st, "no memory for a plan") : st;
}
