/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_NN_H
#define HEDDLE_NN_NN_H

/*
 * Contract of nn inside of the library: graphs of operators, made from ONNX files.
 *
 * A graph has values and nodes. A value is an input, a constant, the result of one node, or (in a
 * graph inside of a node) a value of the graph around it. Nodes are in an order in which each one
 * comes after those whose results it reads. Functions of the file are inlined; what an operator
 * means in which opset is settled at loading: a node has its row.
 *
 * Threads  a graph that is loaded and prepared does not change: any number of threads may read it.
 * Memory   a model is one block of memory and one mapped file; both go with it.
 */
#include "nn/op/op.h"
#include "nn/value.h"

/* A value of a graph. */
struct nn_info {
    const char *name;         /* never NULL */
    uint32_t maker;           /* the node whose result it is; NN_NONE */
    struct nn_value declared; /* what the file says of it; kind NN_ABSENT: nothing */
    struct nn_value constant; /* NN_TENSOR with data: a constant; NN_ABSENT: none */
};

/* `inner` of this graph is `outer` of the graph around it. */
struct nn_capture {
    uint32_t outer, inner;
};

struct nn_graph {
    const char *name;
    struct nn_info *value;
    uint32_t nvalues, cap_values;
    struct nn_node *node;
    uint32_t nnodes, cap_nodes;
    uint32_t *input; /* constants that a caller may replace are not among them */
    uint32_t ninputs, cap_inputs;
    uint32_t *output;
    uint32_t noutputs, cap_outputs;
    struct nn_capture *capture;
    uint32_t ncaptures, cap_captures;
    bool as_is; /* plans run the operators of the file: no pass joins them */
    const struct heddle_onnx_file *file; /* of the model */
};

struct nn_opts {
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;
    size_t why_bytes;
};

struct nn_model {
    const char *path;
    const struct heddle_allocator *alloc;
    struct heddle_scratch mem;
    struct heddle_onnx_file *file;
    struct nn_graph *graph;
    int64_t opset;             /* of the standard's own domain */
    const char *const *symbol; /* names of symbolic dimensions */
    uint32_t nsymbols, cap_symbols;
};

/* Loads a model: graphs, operators, constants; every node is checked against its row.
 * HEDDLE_ENOSYS: an operator is missing. Others as heddle_onnx_open(). */
HEDDLE_MUST_USE heddle_status heddle_nn_load(const char *path, const struct nn_opts *opts,
                                             struct nn_model **out);
/* The same from memory, which must stay. */
HEDDLE_MUST_USE heddle_status heddle_nn_load_memory(const void *ptr, size_t bytes, const char *name,
                                                    const struct nn_opts *opts,
                                                    struct nn_model **out);
/* NULL is fine. */
void heddle_nn_unload(struct nn_model *m);

/*
 * oracle.c: runs a graph one node after another with the reference kernels. in[i] is the value of
 * graph->input[i]; out[i], in `mem`, that of graph->output[i].
 */
HEDDLE_MUST_USE heddle_status heddle_nn_oracle(const struct nn_graph *g, const struct nn_value *in,
                                               struct nn_value *out, struct heddle_scratch *mem,
                                               const struct nn_opts *opts);

/* call.c: types of operands against the row, then shape(). */
HEDDLE_MUST_USE heddle_status heddle_nn_rule(struct nn_call *c);

#endif /* HEDDLE_NN_NN_H */
