/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle: a graph, one node after another, with the reference kernels.
 *
 * Purpose    what everything faster is compared with, the way to fold constants, and how graphs
 *            inside of nodes run.
 * Memory     values live until the graph has ended; results are copied out then.
 */
#include <string.h>

#include "base/assert.h"
#include "base/why.h"
#include "nn/nn.h"

enum { ORACLE_DEPTH = 64 };

struct oracle {
    const struct nn_graph *g;
    struct nn_value *value;
    struct nn_run run;
    const struct nn_opts *opts;
};

static heddle_status oracle_memory(const struct nn_opts *o)
{
    return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory to run the graph");
}

/* Room for the results whose shapes are known before the operator runs. */
static heddle_status oracle_room(struct nn_call *c)
{
    for (uint32_t i = 0; i < c->nout; i++) {
        const struct nn_value v = c->out[i];

        if (v.kind == NN_TENSOR && heddle_nn_is_concrete(&v.shape))
            HEDDLE_TRY(heddle_nn_out(c, i, v.type, &v.shape));
    }
    return HEDDLE_OK;
}

static heddle_status oracle_node(struct oracle *o, const struct nn_node *n, struct nn_value *in,
                                 struct nn_value *out)
{
    struct nn_call c = {.node = n,
                        .nin = n->nin,
                        .nout = n->nout,
                        .in = in,
                        .out = out,
                        .run = &o->run,
                        .why = o->opts->why,
                        .why_bytes = o->opts->why_bytes};

    memset(out, 0, n->nout * sizeof(*out));
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = n->in[i] == NN_NONE ? (struct nn_value){0} : o->value[n->in[i]];
    HEDDLE_TRY(heddle_nn_rule(&c));
    if ((n->op->flags & NN_DYNAMIC) == 0)
        HEDDLE_TRY(oracle_room(&c));
    HEDDLE_TRY(n->op->ref(&c));
    for (uint32_t i = 0; i < n->nout; i++)
        if (n->out[i] != NN_NONE)
            o->value[n->out[i]] = out[i];
    return HEDDLE_OK;
}

static uint32_t oracle_most(const struct nn_graph *g)
{
    uint32_t most = 1;

    for (uint32_t i = 0; i < g->nnodes; i++) {
        most = g->node[i].nin > most ? g->node[i].nin : most;
        most = g->node[i].nout > most ? g->node[i].nout : most;
    }
    return most;
}

static heddle_status oracle_run(struct oracle *o, const struct nn_value *in,
                                const struct nn_value *outer)
{
    const struct nn_graph *g = o->g;
    const uint32_t most = oracle_most(g);
    struct nn_value *operands =
        heddle_scratch_get(o->run.keep, (size_t)2 * most, sizeof(*operands));

    o->value = heddle_scratch_get(o->run.keep, g->nvalues, sizeof(*o->value));
    if (o->value == NULL || operands == NULL)
        return oracle_memory(o->opts);
    for (uint32_t i = 0; i < g->nvalues; i++)
        o->value[i] = g->value[i].constant;
    for (uint32_t i = 0; i < g->ncaptures; i++)
        o->value[g->capture[i].inner] = outer[g->capture[i].outer];
    for (uint32_t i = 0; i < g->ninputs; i++)
        o->value[g->input[i]] = in[i];
    o->run.outer = o->value;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        if (g->node[i].is_dead)
            continue;
        HEDDLE_TRY(oracle_node(o, &g->node[i], operands, operands + most));
        heddle_scratch_drop(o->run.temp);
    }
    return HEDDLE_OK;
}

/* Runs with memory of its own; results are copied into mem. */
static heddle_status oracle_graph(const struct nn_graph *g, const struct nn_value *in,
                                  struct nn_value *out, struct heddle_scratch *mem,
                                  const struct nn_value *outer, const struct nn_opts *opts,
                                  unsigned depth)
{
    struct heddle_scratch keep = heddle_scratch_make(opts->alloc),
                          temp = heddle_scratch_make(opts->alloc);
    struct oracle o = {.g = g,
                       .run = {.keep = &keep, .temp = &temp, .alloc = opts->alloc, .depth = depth},
                       .opts = opts};
    heddle_status st;

    if (depth > ORACLE_DEPTH)
        return heddle_why(opts->why, opts->why_bytes, HEDDLE_EINVAL,
                          "graphs are in graphs too deep");
    st = oracle_run(&o, in, outer);
    for (uint32_t i = 0; i < g->noutputs && st == HEDDLE_OK; i++)
        if (heddle_nn_copy(mem, &o.value[g->output[i]], &out[i]) != HEDDLE_OK)
            st = oracle_memory(opts);
    heddle_scratch_drop(&temp);
    heddle_scratch_drop(&keep);
    return st;
}

heddle_status heddle_nn_oracle(const struct nn_graph *g, const struct nn_value *in,
                               struct nn_value *out, struct heddle_scratch *mem,
                               const struct nn_opts *opts)
{
    const struct nn_opts none = {0};

    return oracle_graph(g, in, out, mem, NULL, opts != NULL ? opts : &none, 0);
}

/* --- graphs inside of nodes ---------------------------------------------------------- */

const struct nn_graph *heddle_nn_sub(const struct nn_call *c, const char *name)
{
    uint32_t k = 0;

    for (size_t i = 0; i < c->node->nattrs; i++) {
        if (c->node->attr[i].type != HEDDLE_ONNX_ATTR_GRAPH)
            continue;
        if (strcmp(c->node->attr[i].name, name) == 0)
            return c->node->sub[k];
        k++;
    }
    return NULL;
}

heddle_status heddle_nn_run_sub(struct nn_call *c, const char *name, const struct nn_value *in,
                                uint32_t nin, struct nn_value *out, uint32_t nout)
{
    const struct nn_graph *g = heddle_nn_sub(c, name);
    const struct nn_opts o = {c->run->alloc, c->why, c->why_bytes};

    if (g == NULL || g->ninputs != nin || g->noutputs != nout)
        return heddle_nn_fail(c, HEDDLE_EINVAL,
                              "its graph '%s' does not have %u inputs and %u "
                              "outputs",
                              name, nin, nout);
    return oracle_graph(g, in, out, c->run->keep, c->run->outer, &o, c->run->depth + 1);
}
