/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_OP_OP_H
#define HEDDLE_NN_OP_OP_H

/*
 * Contract of an operator.
 *
 * An operator is a row of a table: struct nn_op, keyed by domain, name and the first opset in which
 * it means this. A file op/x.c ends with the rows of one operator (or of a family that differs in
 * one function), heddle_nn_op_x, and has one line in op.def. Of the rows with the name of a node,
 * the one with the largest `since` that is not above the opset of the model is taken: a new row is
 * needed where meaning or attributes have changed, not where a type was added.
 *
 * What a row gives
 *   attrs, type, nin, nout   are checked before any function of the row is called: number of
 *                            operands, required ones are there, types, names and types of
 *                            attributes. A function need not check them again.
 *   shape()                  from operands to types and shapes of results
 *   ref()                    computes, plainly, for every type of the row. This is the oracle for
 *                            everything faster, so it favours clarity; floats are computed in
 *                            double and rounded once.
 *   fast()                   optional: prepares the same for constant shapes, to be run in parts
 *   cost()                   optional: operations and bytes
 *
 * Who calls what
 *   The preparation of a graph calls shape() with what is known: kinds and types always; shapes
 *   perhaps in part (a rank of -1, a dimension below 0); data only of constants and of small values
 *   that follow from constants. Then, for concrete shapes, fast() once per plan, and run() of the
 *   step once per part and request. The sequential executor calls shape() with everything known,
 *   and ref().
 *
 * Threads  rows and nodes do not change. Functions are called by any number of threads at once,
 *          each with a struct nn_call of its own; they keep nothing.
 * Errors   a function that refuses says one sentence with heddle_nn_fail() and returns its status:
 *          HEDDLE_EINVAL what the model or the input got wrong, HEDDLE_ENOSYS what the standard
 *          allows and this operator cannot do, HEDDLE_ENOMEM. NaN and overflow are no errors.
 * Memory   operands are borrowed and never written (but see `inplace`). Memory from
 *          heddle_nn_out() and heddle_nn_keep() goes with the results, memory of heddle_nn_temp()
 *          ends with the call. No function frees anything.
 */
#include "base/compiler.h"
#include "heddle/task.h"
#include "nn/value.h"

struct nn_op;
struct nn_graph;
struct nn_map;
struct heddle_dnn;

/* A node of a graph: constant once the graph is loaded. */
struct nn_node {
    const struct nn_op *op;
    const char *name;    /* as the file says, or "Conv.17" */
    uint16_t opset;      /* of the model, for the node's domain; at least op->since */
    bool is_dead;        /* a pass has removed it */
    uint32_t nin, nout;  /* with absent ones */
    const uint32_t *in;  /* values of the graph; NN_NONE: absent */
    const uint32_t *out; /* the same */
    const struct heddle_onnx_attr *attr;
    size_t nattrs;
    struct nn_graph *const *sub; /* sub[i]: the graph of the i-th attribute that is one */
    uint32_t nsubs;
    const void *own; /* of a node that a pass has made: what its row's functions read */
};
#define NN_NONE UINT32_MAX

/* What runs a call: memory, and the graph around. */
struct nn_run {
    struct heddle_scratch *keep;          /* goes with the results */
    struct heddle_scratch *temp;          /* dropped after the call */
    const struct heddle_allocator *alloc; /* for steps */
    const struct heddle_dnn *share;       /* of fast(): the same node's in another plan, or NULL */
    const struct nn_value *outer;         /* values of the graph that the node is in */
    unsigned depth;                       /* graphs inside of graphs */
};

/* One call of a function of a row. */
struct nn_call {
    const struct nn_node *node;
    uint32_t nin, nout;
    const struct nn_value *in; /* [nin]; kind NN_ABSENT: not there */
    struct nn_value *out;      /* [nout] */
    bool is_rule;              /* shape() for a plan: data may be missing */
    bool is_nhwc;       /* fast(): images (f32, four dimensions) are stored n, h, w, c: operand
                                  0 and the result of NN_IMAGE, all images of NN_IMAGES and
                                  NN_POINT but constants. Shapes stay n, c, h, w */
    bool is_plain_in;   /* with is_nhwc, NN_INNER: operand 0 is stored n, c, h, w all the same */
    struct nn_run *run; /* private: memory and sub-graphs */
    char *why;
    size_t why_bytes;
};

/* A prepared operator: made once per plan, read by many threads. */
struct nn_args {
    const void *const *in; /* data of the operands; NULL: absent */
    void *const *out;      /* NULL: nobody reads this result */
};
struct nn_step {
    void *state;                  /* for the functions below; a struct heddle_dnn, often */
    const struct heddle_dnn *dnn; /* what state is, for those who look; NULL: something else */
    size_t parts;                 /* it may be cut into up to this many pieces; >= 1 */
    /* Optional: bytes for one piece while it runs, aligned to 64, not zeroed. NULL: none. */
    size_t (*scratch)(const void *state, size_t nparts);
    /* Required. Computes piece `part` of `nparts`, 1 to `parts`. Pieces run in any order and at
     * the same time and write disjoint parts of the results; the bits of the results do not
     * depend on nparts. */
    heddle_status (*run)(const void *state, const struct nn_args *a, size_t part, size_t nparts,
                         void *scratch);
    /* Optional. Called once, with the allocator of the call. */
    void (*destroy)(const struct heddle_allocator *a, void *state);
};

enum nn_attr_kind {
    NN_ATTR_END = 0,
    NN_INT,
    NN_FLOAT,
    NN_STRING,
    NN_INTS,
    NN_FLOATS,
    NN_STRINGS,
    NN_TENSOR_ATTR,
    NN_GRAPH,
    NN_SPARSE,
    NN_TYPE
};

struct nn_attr_rule {
    const char *name;
    uint8_t kind; /* enum nn_attr_kind */
    bool is_required;
};

enum nn_op_flag {
    NN_DYNAMIC = 1,     /* shapes of results depend on data: shape() leaves what it cannot know, and
                       ref() calls heddle_nn_out() for every result */
    NN_RANDOM = 2,      /* another call gives another result: never folded */
    NN_ALIAS = 4,       /* result 0 is operand 0, byte for byte, in another shape */
    NN_CONTROL = 8,     /* runs graphs of its own */
    NN_IMAGE = 16,      /* fast() can take operand 0 with the channels innermost, and give its
                       result so; nn_call.is_nhwc says when */
    NN_POINT = 32,      /* element k of the result needs element k of the operands alone, so any
                       layout will do that all of them have */
    NN_SHAPE_ONLY = 64, /* looks at shapes of operands alone, never at their data */
    NN_IMAGES = 128,    /* as NN_IMAGE, for all operands */
    NN_INNER = 256      /* with NN_IMAGE: much faster with the channels innermost, so worth a copy
                       of operand 0 */
};

enum { NN_TYPE_RULES = 6, NN_MANY = 255 };

struct nn_op {
    const char *domain; /* "": the standard's own; NULL counts as "" */
    const char *name;   /* "Conv"; NULL ends the rows of a file */
    uint16_t since;
    uint8_t nin_min, nin_max;   /* the first nin_min must be there; NN_MANY: no limit */
    uint8_t nout_min, nout_max; /* 0, 0 counts as 1, 1 */
    uint16_t flags;             /* enum nn_op_flag */
    uint32_t inplace;           /* bit i: result 0 may be written over operand i where they have the
                                   same size: element k of the result needs element k alone */
    uint32_t type[NN_TYPE_RULES]; /* masks of types for operands; the last one counts for all that
                                     follow; NN_M_ANY (0): any type, and what is no tensor */
    uint32_t same; /* bit i: operand i has the type of the first operand with a bit */
    const struct nn_attr_rule *attrs; /* NULL: none; ended by {0} */
    const void *family;               /* the row's own part of a family: what its functions share */

    /* Sets kind, type and shape of out[i] for every i. NULL: result 0 is like operand 0. May be
     * called without data: what it needs and cannot see makes dimensions NN_UNKNOWN. */
    heddle_status (*shape)(struct nn_call *c);

    /* Required. out[i].data are there when the shape is concrete and the operator not
     * NN_DYNAMIC. */
    heddle_status (*ref)(struct nn_call *c);

    /* Optional. Shapes are concrete; data of operands are there only for constants, which outlive
     * the step. HEDDLE_ENOSYS without a sentence: not for these types or shapes, ref() does it.
     * Memory of the state: heddle_nn_alloc(), or c->run->alloc. */
    heddle_status (*fast)(struct nn_call *c, struct nn_step *out);

    /* Optional, as fast(): the elementwise functions of src/dnn that this is (op/step.h). */
    heddle_status (*map)(struct nn_call *c, struct nn_map *m);

    /* Optional: operations and bytes moved, for concrete shapes. NULL: one operation per element
     * of the results, and all bytes once. */
    struct heddle_cost (*cost)(const struct nn_call *c);
};

/* The row for a node; NULL: there is none. *from_out (may be NULL): the first opset in which we
 * have the operator; 0: in none. */
const struct nn_op *heddle_nn_find_op(const char *domain, const char *name, int64_t opset,
                                      unsigned *from_out);
/* Row i of all, in no order; NULL: there are no more. */
const struct nn_op *heddle_nn_get_op(size_t i);

/* --- for functions of rows -------------------------------------------------- */

/* "node 'x' (Conv): ...". Returns st. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_nn_fail(struct nn_call *c, heddle_status st, const char *fmt, ...);

/* Attributes by name, or the value for one that is absent. Lists: NULL and 0. */
bool heddle_nn_has(const struct nn_call *c, const char *name);
int64_t heddle_nn_int(const struct nn_call *c, const char *name, int64_t absent);
double heddle_nn_float(const struct nn_call *c, const char *name, double absent);
const int64_t *heddle_nn_ints(const struct nn_call *c, const char *name, size_t *n_out);
const float *heddle_nn_floats(const struct nn_call *c, const char *name, size_t *n_out);
const struct heddle_onnx_attr *heddle_nn_attr(const struct nn_call *c, const char *name);
/* True when the text attribute is `text`; `absent`: the text that counts when it is absent. */
bool heddle_nn_is_text(const struct nn_call *c, const char *name, const char *absent,
                       const char *text);

/* Is operand i there? Result i wanted? */
bool heddle_nn_has_in(const struct nn_call *c, uint32_t i);
bool heddle_nn_wants(const struct nn_call *c, uint32_t i);

/* An axis of `rank` dimensions, counted from the end when negative; refused outside of -rank ..
 * rank - 1. */
heddle_status heddle_nn_axis(struct nn_call *c, int64_t axis, int rank, int *out);

/* Operand i as a list of integers. `*n_out` is SIZE_MAX, and HEDDLE_OK, when the operand is there
 * and its data are not known; 0 when it is absent. At most `max` numbers. */
heddle_status heddle_nn_list(struct nn_call *c, uint32_t i, int64_t *list, size_t max,
                             size_t *n_out);

/* Gives result i its type and shape, which is concrete, and its data: in an operator that is
 * NN_DYNAMIC, or where the shape was not known. */
heddle_status heddle_nn_out(struct nn_call *c, uint32_t i, unsigned type,
                            const struct nn_shape *shape);

/* Memory that ends with the call, and memory that goes with the results: zeroed. NULL: none, and
 * the sentence is said. */
void *heddle_nn_temp(struct nn_call *c, size_t n, size_t bytes);
void *heddle_nn_keep(struct nn_call *c, size_t n, size_t bytes);
/* For fast(): memory of a step, to be freed with its size by destroy(). */
void *heddle_nn_alloc(struct nn_call *c, size_t bytes);

/* Operand i as doubles: its data when it is f64, else a converted copy that ends with the call.
 * NULL: no memory, said. */
const double *heddle_nn_f64(struct nn_call *c, uint32_t i);
/* Room for result i as doubles, and the way back: rounds them into the result. */
double *heddle_nn_f64_out(struct nn_call *c, uint32_t i);
void heddle_nn_f64_done(struct nn_call *c, uint32_t i, const double *v);

/* NN_CONTROL: runs the graph of attribute `name` on operands. Results go with the results of the
 * call. */
heddle_status heddle_nn_run_sub(struct nn_call *c, const char *name, const struct nn_value *in,
                                uint32_t nin, struct nn_value *out, uint32_t nout);
/* The graph of an attribute; NULL: none. */
const struct nn_graph *heddle_nn_sub(const struct nn_call *c, const char *name);

#endif /* HEDDLE_NN_OP_OP_H */
