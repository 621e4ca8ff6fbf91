/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_H
#define HEDDLE_NN_H

/*
 * heddle/nn.h - run a trained network.
 *
 * A network is an ONNX file, opened in a context. A request brings a tensor for each input and gets
 * a tensor for each output. The operators of a request are tasks of the context: many requests in
 * flight share all workers, and what a request returns does not depend on the others, to the bit.
 *
 * The first request with new shapes makes a plan (shapes, prepared weights, addresses in an arena),
 * which later requests with these shapes use again.
 *
 * Threads:  any function may be called from any thread; heddle_nn_close() by one
 *           thread, when no request of the network is in flight.
 * Errors:   functions return heddle_status; on failure nothing has changed, and
 *           `why` has a sentence.
 * Lifetime: a network ends before its context.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/ctx.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A network. */
typedef struct heddle_nn heddle_nn;

/* The most dimensions of a tensor. */
#define HEDDLE_NN_DIMS 12

/* Types of elements, with the numbers of ONNX. */
enum heddle_nn_type {
    HEDDLE_NN_F32 = 1,
    HEDDLE_NN_U8 = 2,
    HEDDLE_NN_I8 = 3,
    HEDDLE_NN_U16 = 4,
    HEDDLE_NN_I16 = 5,
    HEDDLE_NN_I32 = 6,
    HEDDLE_NN_I64 = 7,
    HEDDLE_NN_BOOL = 9,
    HEDDLE_NN_F16 = 10,
    HEDDLE_NN_F64 = 11,
    HEDDLE_NN_U32 = 12,
    HEDDLE_NN_U64 = 13,
    HEDDLE_NN_BF16 = 16
};

/* "float32", "int64"; "?" for another number. */
HEDDLE_API const char *heddle_nn_type_text(int type);
/* Bytes of an element; 0: no such type. */
HEDDLE_API size_t heddle_nn_type_size(int type);

/* A tensor: dense, the last dimension varies fastest. */
struct heddle_nn_tensor {
    int type; /* enum heddle_nn_type */
    unsigned ndim;
    int64_t dim[HEDDLE_NN_DIMS];
    void *data;   /* not written when it is an input */
    size_t bytes; /* of the data */
};

/* An input or output of a network, as the file declares it. */
struct heddle_nn_port {
    const char *name;
    int type;                           /* 0: no tensor, or not said */
    int ndim;                           /* -1: any */
    int64_t dim[HEDDLE_NN_DIMS];        /* -1: any */
    const char *symbol[HEDDLE_NN_DIMS]; /* the name of a dimension of -1, or "" */
};

/* Options of a network; zero is a default everywhere. */
struct heddle_nn_opts {
    size_t size;
    char *why; /* a sentence; may be NULL */
    size_t why_bytes;
    bool as_is; /* run the operators of the file: join none of them to faster ones */
};

/*
 * Opens a model. The file stays mapped, and must not shrink, until the network is closed.
 *
 * HEDDLE_OK        *out is yours; end it with heddle_nn_close()
 * HEDDLE_ENOENT    no such file, or external data are missing
 * HEDDLE_EFORMAT   the file is damaged
 * HEDDLE_EINVAL    a node is not what its operator allows
 * HEDDLE_ENOSYS    an operator is missing; HEDDLE_EVERSION: the opset is too new
 * HEDDLE_EIO, HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_nn_open(heddle_ctx *ctx, const char *path,
                                                        const struct heddle_nn_opts *opts,
                                                        heddle_nn **out);
/* Closes a network none of whose requests is in flight. NULL is fine. */
HEDDLE_API void heddle_nn_close(heddle_nn *net);

/* Inputs and outputs. Port i is copied to *out. HEDDLE_ENOENT: there is none. */
HEDDLE_API unsigned heddle_nn_get_ninputs(const heddle_nn *net);
HEDDLE_API unsigned heddle_nn_get_noutputs(const heddle_nn *net);
HEDDLE_API heddle_status heddle_nn_get_input(const heddle_nn *net, unsigned i,
                                             struct heddle_nn_port *out);
HEDDLE_API heddle_status heddle_nn_get_output(const heddle_nn *net, unsigned i,
                                              struct heddle_nn_port *out);

/* The outputs of a request. */
struct heddle_nn_result {
    unsigned noutputs;
    const struct heddle_nn_tensor *output;
    void *own;
};
/* Frees a result. NULL is fine. */
HEDDLE_API void heddle_nn_result_destroy(struct heddle_nn_result *r);

/* Called once when a request has ended, by a thread of the context; must not wait. On HEDDLE_OK
 * `result` belongs to the function, which ends it with heddle_nn_result_destroy(). Otherwise
 * `result` is NULL, and `why` is a sentence, valid until the function returns. */
typedef void (*heddle_nn_done_fn)(void *user, heddle_status st, struct heddle_nn_result *result,
                                  const char *why);

/*
 * Starts a request: input[i] is the tensor for input port i. The inputs are copied before the call
 * returns. On failure `done` is not called.
 *
 * HEDDLE_EINVAL   a wrong number of inputs, or an input of the wrong type, rank or size
 * HEDDLE_ENOSYS   an operator cannot do what the model asks for
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_nn_start(heddle_nn *net,
                                                         const struct heddle_nn_tensor *input,
                                                         unsigned ninputs, heddle_nn_done_fn done,
                                                         void *user,
                                                         const struct heddle_nn_opts *opts);

/* Runs a request and waits for it; the calling thread runs tasks meanwhile. *out is yours.
 * Statuses as heddle_nn_start(), and the statuses of operators. Must not be called by a task. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_nn_run(heddle_nn *net,
                                                       const struct heddle_nn_tensor *input,
                                                       unsigned ninputs,
                                                       const struct heddle_nn_opts *opts,
                                                       struct heddle_nn_result **out);

/* What the plan for some shapes needs. */
struct heddle_nn_plan_info {
    size_t size;
    unsigned ntasks;      /* operators that run for a request */
    uint64_t arena_bytes; /* activations of one request */
    uint64_t peak_bytes;  /* the most of them alive at once: no arena is smaller */
    double flops;
    bool is_static; /* false: shapes depend on data, the request is one task */
};
/* The plan for the shapes of these inputs, whose data are not looked at; the call makes the plan
 * where there is none. Set info->size before. Statuses as heddle_nn_start(). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_nn_get_plan(heddle_nn *net,
                                                            const struct heddle_nn_tensor *input,
                                                            unsigned ninputs,
                                                            const struct heddle_nn_opts *opts,
                                                            struct heddle_nn_plan_info *info);

/* An operator that runs for a request. */
struct heddle_nn_task {
    const char *name; /* of the node; may be "" */
    const char *op;   /* of the operator */
    double flops, bytes;
    uint64_t weight_bytes; /* constants that it reads */
    double ns;             /* one run on one core; 0: was not timed */
};

/* What runs for a request, in an order in which every value is made before it is read, and the
 * values between tasks. */
struct heddle_nn_tasks {
    size_t size;
    void *own; /* what fini frees */
    uint32_t ntasks, nvalues, nreads;
    const struct heddle_nn_task *task;
    const uint64_t *bytes;  /* [nvalues] */
    const uint32_t *maker;  /* [nvalues] a task; UINT32_MAX: an input */
    const uint32_t *value;  /* [nreads] value[i] is read ... */
    const uint32_t *reader; /* [nreads] ... by this task; UINT32_MAX: it is an output */
};
/*
 * The tasks of the plan for these inputs. With `runs` each is run so often on the calling thread,
 * in order, on the inputs' data (NULL: zeros), and `ns` is the median. Set tasks->size before; end
 * it with heddle_nn_tasks_fini() before the network is closed. Statuses as heddle_nn_start(), and
 * HEDDLE_ENOSYS where shapes depend on data.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_nn_get_tasks(heddle_nn *net,
                                                             const struct heddle_nn_tensor *input,
                                                             unsigned ninputs, unsigned runs,
                                                             const struct heddle_nn_opts *opts,
                                                             struct heddle_nn_tasks *tasks);
/* Frees the arrays and zeroes the struct but for its size. NULL is fine. */
HEDDLE_API void heddle_nn_tasks_fini(struct heddle_nn_tasks *tasks);

/* What became of an operator of the file. */
enum heddle_nn_fate {
    HEDDLE_NN_RUNS,     /* a task of its own */
    HEDDLE_NN_JOINED,   /* part of another task */
    HEDDLE_NN_CONSTANT, /* computed when the plan was made */
    HEDDLE_NN_NO_WORK,  /* its result is the memory of its operand */
    HEDDLE_NN_UNUSED    /* nobody needs its result any more */
};

/* An operator of the file, or a task of the plan. */
struct heddle_nn_node {
    const char *name, *op;
    enum heddle_nn_fate fate;
    uint32_t task;       /* which one computes this; UINT32_MAX: none */
    const char *kernel;  /* of a task: the kernel; "": loops of the operator; NULL: the reference */
    const char *isa;     /* of a kernel: its instruction set; "" */
    double flops, bytes; /* work, and bytes read and written */
    uint64_t packed;     /* of a task: bytes of weights in the kernel's own form */
    unsigned pieces;     /* of a task: into how many it may be cut */
    unsigned nin, nout;
    const uint32_t *in, *out; /* values; UINT32_MAX: absent */
};

/* A value between operators. */
struct heddle_nn_value {
    const char *name;
    int type;      /* enum heddle_nn_type; 0: no tensor */
    unsigned ndim; /* with dim: the shape for the inputs of the view */
    int64_t dim[HEDDLE_NN_DIMS];
    size_t bytes;
    bool is_constant;
    uint32_t root; /* the value whose memory this one has */
};

/* A pass of the preparation, and a change that it made. */
struct heddle_nn_pass {
    const char *name, *what;
    unsigned nchanges, ngone; /* operators that went */
};
struct heddle_nn_change {
    unsigned pass;
    const char *made, *name; /* operator and name of what came; NULL: nothing had to */
    unsigned ngone;
    const char *const *gone, *const *gone_name;
};

/* A network before and after its preparation, for inputs of some shapes. */
struct heddle_nn_view {
    unsigned nnodes, ntasks, nvalues, npasses, nchanges;
    const struct heddle_nn_node *node; /* of the file */
    const struct heddle_nn_node *task; /* of the plan */
    const struct heddle_nn_value *value;
    const struct heddle_nn_pass *pass;
    const struct heddle_nn_change *change;
    uint64_t arena_bytes, peak_bytes; /* as in heddle_nn_plan_info */
    double flops;
    void *own;
};
/* The view of the plan for these inputs (their data are not looked at). *out is yours; end it with
 * heddle_nn_view_destroy(), after which the network may be closed. HEDDLE_ENOSYS: shapes depend on
 * data, so that there is no plan; others as heddle_nn_get_plan(). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_nn_view_create(heddle_nn *net,
                                                               const struct heddle_nn_tensor *input,
                                                               unsigned ninputs,
                                                               const struct heddle_nn_opts *opts,
                                                               struct heddle_nn_view **out);
/* NULL is fine. */
HEDDLE_API void heddle_nn_view_destroy(struct heddle_nn_view *v);

/* Counts of cases, or an operator: see below. */
struct heddle_nn_operator {
    const char *domain, *name;
    unsigned since;
    bool is_fast; /* has prepared steps besides the reference kernel */
};
/* Operator i; HEDDLE_ENOENT: there are no more. */
HEDDLE_API heddle_status heddle_nn_get_operator(unsigned i, struct heddle_nn_operator *out);

/* How a case of ONNX's test data ended. */
enum heddle_nn_verdict {
    HEDDLE_NN_PASS,
    HEDDLE_NN_FAIL,
    HEDDLE_NN_UNSUPPORTED, /* an operator or a type is missing */
    HEDDLE_NN_NO_CASE      /* the folder has no case */
};
/* Runs the case in a folder (model.onnx, test_data_set_0 and so on): as tasks of `ctx`, or, where
 * ctx is NULL, with the reference kernels. `op` gets the name of the model's first operator, `why`
 * a sentence unless the case passes. */
HEDDLE_API enum heddle_nn_verdict heddle_nn_check(heddle_ctx *ctx, const char *folder, char op[64],
                                                  char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_NN_H */
