/* SPDX-License-Identifier: BSD-3-Clause */
/* ports: which inputs and outputs of a graph are those of a decoder. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"
#include "nn/decode/decode.h"

static uint32_t find_port(const struct nn_graph *g, const uint32_t *port, uint32_t n,
                          const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(g->value[port[i]].name, name) == 0)
            return i;
    return DECODE_NO_PORT;
}

static const struct nn_value *input_of(const struct nn_graph *g, uint32_t i)
{
    return &g->value[g->input[i]].declared;
}

/* Rows of whole numbers, one row for each sequence. */
static heddle_status check_rows(const struct nn_graph *g, uint32_t i, const struct nn_opts *o)
{
    const struct nn_value *v = input_of(g, i);

    if (v->kind != NN_TENSOR || (NN_M(v->type) & (NN_M_INDEX | NN_M(NN_BOOL))) == 0 ||
        v->shape.rank != 2)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input '%s' of a decoder has to be a matrix of int64 or int32",
                          g->value[g->input[i]].name);
    return HEDDLE_OK;
}

/* The number and the kind in "past_key_values.3.key", "present.3.key" behind their first part;
 * false: the name is another one. */
static bool port_tail(const char *name, const char *const *head, const char **tail)
{
    for (; *head != NULL; head++) {
        const size_t n = strlen(*head);

        if (strncmp(name, *head, n) == 0) {
            *tail = name + n;
            return true;
        }
    }
    return false;
}

static const char *const past_heads[] = {"past_key_values.", "past.", NULL};
static const char *const present_heads[] = {"present.", "present_key_values.", NULL};

static heddle_status add_pair(struct decode_ports *p, uint32_t in, const char *tail,
                              const struct nn_opts *o)
{
    const struct nn_graph *g = p->g;
    const struct nn_value *v = input_of(g, in);
    const char *name = g->value[g->input[in]].name, *other;
    struct decode_pair *pair = &p->pair[p->npairs];

    *pair = (struct decode_pair){.in = in, .out = DECODE_NO_PORT};
    for (uint32_t i = 0; i < g->noutputs; i++)
        if (port_tail(g->value[g->output[i]].name, present_heads, &other) &&
            strcmp(tail, other) == 0)
            pair->out = i;
    if (pair->out == DECODE_NO_PORT)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input '%s' has no output 'present.%s'", name, tail);
    if (v->kind != NN_TENSOR || (NN_M(v->type) & NN_M_FLOAT) == 0 || v->shape.rank != 4 ||
        v->shape.dim[1] <= 0 || v->shape.dim[3] <= 0 || v->shape.dim[2] >= 0)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input '%s' is not of the shape batch x heads x tokens x size with heads "
                          "and size known and tokens open",
                          name);
    pair->heads = v->shape.dim[1];
    pair->dim = v->shape.dim[3];
    pair->type = v->type;
    p->keep[p->npairs++] = (struct nn_keep){g->input[in], g->output[pair->out]};
    p->token_bytes +=
        (uint64_t)pair->heads * (uint64_t)pair->dim * heddle_nn_type_bytes(pair->type);
    return HEDDLE_OK;
}

static heddle_status check_inputs(struct decode_ports *p, const struct nn_opts *o)
{
    const struct nn_graph *g = p->g;

    for (uint32_t i = 0; i < g->ninputs; i++) {
        const char *name = g->value[g->input[i]].name, *tail;

        if (i == p->ids || i == p->mask || i == p->positions)
            HEDDLE_TRY(check_rows(g, i, o));
        else if (port_tail(name, past_heads, &tail))
            HEDDLE_TRY(add_pair(p, i, tail, o));
        else
            return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                              "a decoder has no input '%s': input_ids, attention_mask, "
                              "position_ids and past_key_values.N.key and .value are known",
                              name);
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_decode_ports(const struct nn_graph *g, struct heddle_scratch *mem,
                                     const struct nn_opts *o, struct decode_ports *out)
{
    struct decode_ports p = {.g = g, .length = -1, .vocabulary = -1};
    const struct nn_value *v;

    p.pair = heddle_scratch_get(mem, g->ninputs, sizeof(*p.pair));
    p.keep = heddle_scratch_get(mem, g->ninputs, sizeof(*p.keep));
    if (p.pair == NULL || p.keep == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a decoder");
    p.ids = find_port(g, g->input, g->ninputs, "input_ids");
    p.mask = find_port(g, g->input, g->ninputs, "attention_mask");
    p.positions = find_port(g, g->input, g->ninputs, "position_ids");
    p.logits = find_port(g, g->output, g->noutputs, "logits");
    if (p.ids == DECODE_NO_PORT || p.logits == DECODE_NO_PORT)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "the network is no decoder: it has no %s",
                          p.ids == DECODE_NO_PORT ? "input 'input_ids'" : "output 'logits'");
    HEDDLE_TRY(check_inputs(&p, o));
    v = &g->value[g->output[p.logits]].declared;
    if (v->kind != NN_TENSOR || (NN_M(v->type) & NN_M_FLOAT) == 0 ||
        (v->shape.rank >= 0 && v->shape.rank != 3))
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "output 'logits' is not of the shape batch x tokens x vocabulary");
    if (v->shape.rank == 3 && v->shape.dim[2] > 0)
        p.vocabulary = v->shape.dim[2];
    p.batch = input_of(g, p.ids)->shape.dim[0] < 0 ? -1 : input_of(g, p.ids)->shape.dim[0];
    if (p.batch > 1)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input 'input_ids' has a fixed batch of more than one sequence");
    if (input_of(g, p.ids)->shape.dim[1] >= 0)
        p.length = input_of(g, p.ids)->shape.dim[1];
    if (p.npairs > 0 && p.length >= 0)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input 'input_ids' has a fixed number of tokens, and the network a past");
    *out = p;
    return HEDDLE_OK;
}
