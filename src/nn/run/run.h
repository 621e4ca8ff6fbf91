/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_RUN_RUN_H
#define HEDDLE_NN_RUN_RUN_H

/*
 * Private to nn: a graph as tasks.
 *
 * A plan is a graph for constant shapes: what follows from constants is computed, every node
 * that is left has a step or its reference kernel, every value an address in an arena. An
 * instance is the memory of one request: an arena, views of it, and a recorded region of tasks
 * on these views, which is launched again and again. Where values share memory, their views
 * overlap, and so the runtime orders the tasks that use them.
 *
 * Invariants (1) a plan does not change once it is made; any number of instances use it
 *            (2) an instance belongs to one request at a time
 *            (3) results do not depend on the number of pieces of a task
 */
#include "base/lock.h"
#include "heddle/graph.h"
#include "heddle/nn.h"
#include "nn/nn.h"

#define NN_NOWHERE UINT64_MAX

/* A node that runs. */
struct nn_task {
    const struct nn_node *node;
    struct nn_step step;       /* run NULL: the reference kernel */
    bool is_nhwc, is_plain_in; /* as in struct nn_call */
    size_t pieces;             /* children when it is cut; 1: never */
    size_t piece_bytes;        /* scratch of one piece, rounded up to 64 */
    size_t work_bytes;         /* scratch of all */
    uint64_t work_at;          /* in the arena */
    struct heddle_cost cost;
    struct nn_value *in, *out;            /* kinds, types, shapes; data of constants */
    const uint32_t *in_value, *out_value; /* NN_NONE: absent */
};

/* What a pass did: operators that went, and the one that came. */
struct nn_change {
    uint32_t pass, ngone;
    const struct nn_node *made; /* NULL: the memory of operand 0 serves */
    const struct nn_node *const *gone;
};

/* An input, and the output that is the same, longer by the new tokens. */
struct nn_keep {
    uint32_t past, present; /* values of the graph */
};

struct nn_plan {
    struct nn_plan *next; /* of the network, the last used one first */
    const struct nn_graph *g;
    const struct nn_shape *key; /* shapes of the inputs */
    struct heddle_scratch mem;
    const struct heddle_allocator *alloc;
    uint32_t nvalues;       /* of the graph, then copies of images in another layout */
    struct nn_value *value; /* data: constants */
    uint32_t *root;         /* the value whose memory this one is */
    uint64_t *at;           /* address of a root in the arena, or NN_NOWHERE: constant, or unused */
    uint32_t rows;          /* with kept values: where the new tokens go, i64; else NN_NONE */
    const uint32_t *kept;   /* values whose memory is theirs alone: they stay between launches */
    uint32_t nkept;
    const uint32_t *output; /* of the graph, or their copies in the plain layout */
    struct nn_task *task;
    uint32_t ntasks;
    struct nn_change *change; /* by the passes of nn/prepare */
    uint32_t nchanges;
    uint64_t arena_bytes, peak_bytes;
    bool is_static; /* false: shapes depend on data; the graph runs as one task */
    double flops;
    struct nn_instance *idle; /* guarded by the lock of the network */
    uint32_t nrefs;           /* requests in flight, guarded by the same */
};

struct heddle_nn {
    heddle_ctx *ctx;
    struct nn_model *model;
    const struct heddle_allocator *alloc;
    struct heddle_allocator from; /* what alloc points to */
    unsigned nworkers;
    struct heddle_mutex lock; /* plans and their idle instances */
    struct nn_plan *plan;
    unsigned nplans;
};

/* What a plan is made with besides. */
struct nn_plan_with {
    const struct nn_plan *like; /* of the same graph, whose packed weights are shared; or NULL */
    /* Pasts that stay. HEDDLE_ENOSYS, without a sentence: the graph has other uses of them. */
    const struct nn_keep *keep;
    uint32_t nkeep;
};

/* infer.c: shapes, constants, and which nodes are needed. is_static says whether the plan can be
 * made; *task, *root are filled. */
heddle_status heddle_nn_infer(struct nn_plan *p, const struct nn_value *in,
                              const struct nn_opts *o);
/* keep.c: the past of a decoder stays in place. HEDDLE_ENOSYS, without a sentence: it cannot. */
heddle_status heddle_nn_keep_past(struct nn_plan *p, const struct nn_keep *keep, uint32_t n,
                                  const struct nn_opts *o);
/* layout.c: a step for each task that can have one; images stay with the channels innermost where
 * that is faster, and tasks that reorder are put where a reader needs the other layout. Weights
 * that the plan `like` (NULL: none) has packed are shared. */
heddle_status heddle_nn_layout(struct nn_plan *p, const struct nn_plan *like,
                               struct heddle_scratch *temp, const struct nn_opts *o);
/* plan.c: the call of a function of a task's row. */
struct nn_call heddle_nn_task_call(const struct nn_task *t, struct nn_run *run,
                                   const struct nn_opts *o);
/* plan.c: what an operator costs, all of its shapes being known. */
struct heddle_cost heddle_nn_cost(const struct nn_call *c);
/* plan.c: a plan for inputs of these types and shapes. with: NULL is fine. */
heddle_status heddle_nn_plan(const struct nn_graph *g, const struct nn_value *in,
                             const struct nn_plan_with *with, unsigned nworkers,
                             const struct nn_opts *o, struct nn_plan **out);
void heddle_nn_plan_destroy(struct nn_plan *p);
/* arena.c: addresses. */
heddle_status heddle_nn_arena(struct nn_plan *p, const struct nn_opts *o);

/* net.c: the plan for these inputs, which stays until it is left. */
heddle_status heddle_nn_hold_plan(struct heddle_nn *net, const struct heddle_nn_tensor *input,
                                  unsigned n, const struct nn_opts *o, struct nn_plan **out);
void heddle_nn_leave_plan(struct heddle_nn *net, struct nn_plan *p);
/* net.c: the plan for inputs of these shapes and an idle instance, to launch as one likes.
 * HEDDLE_ENOSYS: shapes depend on data. */
heddle_status heddle_nn_lease(heddle_nn *net, const struct nn_value *in, const struct nn_opts *o,
                              struct nn_plan **plan, struct nn_instance **instance);
void heddle_nn_unlease(heddle_nn *net, struct nn_plan *plan, struct nn_instance *instance);
/* net.c: a plan of the caller's own that keeps pasts and shares the weights of the network's plans.
 * HEDDLE_ENOSYS, without a sentence: see keep.c. */
heddle_status heddle_nn_plan_keeping(heddle_nn *net, const struct nn_value *in,
                                     const struct nn_keep *keep, uint32_t n,
                                     const struct nn_opts *o, struct nn_plan **out);

/* instance.c */
struct nn_instance;
struct nn_work;
heddle_status heddle_nn_instance_create(struct heddle_nn *net, struct nn_plan *p,
                                        const struct nn_opts *o, struct nn_instance **out);
void heddle_nn_instance_destroy(struct nn_instance *i);
/* Where the data of a value are in this instance. */
void *heddle_nn_instance_data(const struct nn_instance *i, uint32_t value);
heddle_status heddle_nn_instance_launch(struct nn_instance *i, const struct heddle_task_opts *opts);
/* Its request has failed: the data are poisoned until the next launch, which writes them anew. */
void heddle_nn_instance_spoil(struct nn_instance *i);
/* The sentence of the request that has failed; "": none of its tasks has. */
const char *heddle_nn_instance_why(const struct nn_instance *i);
/* The work of task k. */
const struct nn_work *heddle_nn_instance_work(const struct nn_instance *i, uint32_t k);
struct nn_instance **heddle_nn_instance_next(struct nn_instance *i);

/* kernel.c: the kernel of an operator, under its name; plain runs whole, else it may be cut. */
const heddle_kernel *heddle_nn_kernel(const char *name, bool is_plain);

/* Runs a task here and now, whole. On failure why has a sentence. */
heddle_status heddle_nn_work_run(const struct nn_work *w, char *why, size_t why_bytes);

/* Why a request has failed: the sentence of the first of its tasks that did. */
struct nn_blame {
    _Atomic bool is_said;
    char why[400];
};

/* What a task of an instance gets as its argument. */
struct nn_work {
    const struct nn_task *task;
    struct nn_blame *blame;
    const void **in;
    void **out;
    char *scratch;
    const struct heddle_allocator *alloc;
};
struct nn_piece {
    const struct nn_work *work;
    size_t part;
};

#endif /* HEDDLE_NN_RUN_RUN_H */
