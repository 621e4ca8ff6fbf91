/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_LOAD_H
#define HEDDLE_NN_LOAD_H

/*
 * Private to nn: from the messages of a file to graphs.
 *
 * A scope maps names to values of one graph. The body of a function has a scope of its own and the
 * graph of its caller (it is inlined); a graph inside of a node has its own graph and sees the
 * scopes around it.
 */
#include "base/map.h"
#include "nn/nn.h"

enum { LOAD_DEPTH = 32 };

/* The call of a function that is being inlined: attributes refer to it. */
struct load_call {
    const struct heddle_onnx_function *fn;
    const struct heddle_onnx_attr *attr;
    size_t nattrs;
};

struct load_scope {
    struct nn_graph *graph;
    struct load_scope *around;    /* lexically; NULL: a function, or the main graph */
    const struct load_call *call; /* NULL: not in a function */
    const struct heddle_onnx_opset *opset;
    size_t nopsets;
    struct heddle_map name; /* hash of the name, plus the tries: value */
    unsigned depth;
};

struct loader {
    struct nn_model *model;
    const struct heddle_onnx_model *file;
    const struct nn_opts *opts;
};

/* "FILE: ...". Returns st. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_nn_load_fail(struct loader *l, heddle_status st, const char *fmt, ...);
heddle_status heddle_nn_load_memory_fail(struct loader *l);

/* Room for one more element of an array in the memory of the model. */
HEDDLE_MUST_USE bool heddle_nn_grow(struct heddle_scratch *mem, void *array, uint32_t *cap,
                                    uint32_t n, size_t bytes);

/* scope.c: names. find: NN_NONE when no scope has it. */
void heddle_nn_scope_init(struct loader *l, struct load_scope *s, struct nn_graph *g);
heddle_status heddle_nn_scope_bind(struct loader *l, struct load_scope *s, const char *name,
                                   uint32_t value);
heddle_status heddle_nn_scope_find(struct loader *l, struct load_scope *s, const char *name,
                                   uint32_t *out);
heddle_status heddle_nn_new_value(struct loader *l, struct nn_graph *g, const char *name,
                                  uint32_t *out);

/* node.c: adds a node of the file to the graph of the scope; functions are inlined. */
heddle_status heddle_nn_load_node(struct loader *l, struct load_scope *s,
                                  const struct heddle_onnx_node *n);
/* load.c: a graph of the file. around NULL: the main graph. */
heddle_status heddle_nn_load_graph(struct loader *l, const struct heddle_onnx_graph *file,
                                   struct load_scope *around, struct nn_graph **out);
/* load.c: a declared type as a value without data. */
heddle_status heddle_nn_load_type(struct loader *l, const struct heddle_onnx_value_type *t,
                                  struct nn_value *out);

#endif /* HEDDLE_NN_LOAD_H */
