/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel: what a task of a network runs. A task that is worth it has a kernel that becomes pieces
 * when a worker is idle; every piece is a child without operands, since the parent holds them.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/why.h"
#include "nn/run/run.h"

/* A result that nobody wants has no memory of its own, but is computed. */
static heddle_status kernel_unwanted(struct nn_call *c, const struct nn_work *w)
{
    bool all = true;

    for (uint32_t i = 0; i < c->nout; i++)
        all &= w->out[i] != NULL;
    if (all)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_nn_rule(c));
    for (uint32_t i = 0; i < c->nout; i++) {
        const struct nn_value v = c->out[i];

        if (w->out[i] != NULL)
            c->out[i].data = w->out[i];
        else
            HEDDLE_TRY(heddle_nn_out(c, i, v.type, &v.shape));
    }
    return HEDDLE_OK;
}

/* The operator's own code for types and shapes that have no step. */
static heddle_status kernel_reference(const struct nn_work *w, char *why, size_t why_bytes)
{
    const struct nn_node *n = w->task->node;
    struct heddle_scratch keep = heddle_scratch_make(w->alloc), temp = keep;
    struct nn_run run = {.keep = &keep, .temp = &temp, .alloc = w->alloc};
    const size_t count = (size_t)n->nin + n->nout;
    struct nn_value *v = heddle_scratch_get(&keep, count, sizeof(*v));
    struct nn_call c = {.node = n,
                        .nin = n->nin,
                        .nout = n->nout,
                        .in = v,
                        .run = &run,
                        .why = why,
                        .why_bytes = why_bytes};
    heddle_status st = HEDDLE_ENOMEM;

    if (v != NULL) {
        c.out = v + n->nin;
        for (uint32_t i = 0; i < n->nin; i++) {
            v[i] = w->task->in[i];
            if (v[i].kind == NN_TENSOR)
                v[i].data = (void *)(uintptr_t)w->in[i];
        }
        for (uint32_t i = 0; i < n->nout; i++) {
            c.out[i] = w->task->out[i];
            c.out[i].data = w->out[i];
        }
        st = HEDDLE_OK;
    }
    if (st == HEDDLE_OK)
        st = kernel_unwanted(&c, w);
    if (st == HEDDLE_OK)
        st = n->op->ref(&c);
    heddle_scratch_drop(&temp);
    heddle_scratch_drop(&keep);
    return st;
}

/* The sentence is the task's and the request's: the context keeps the first failure of all. */
static heddle_status kernel_failed(struct heddle_exec *x, const struct nn_work *w, heddle_status st,
                                   const char *why)
{
    /* Relaxed: the end of the tasks carries the sentence to the end of the request. */
    if (!atomic_exchange_explicit(&w->blame->is_said, true, memory_order_relaxed))
        (void)heddle_why(w->blame->why, sizeof(w->blame->why), st, "%s", why);
    return heddle_exec_fail(x, st, why);
}

static heddle_status kernel_piece_of(struct heddle_exec *x, const struct nn_work *w, size_t part,
                                     size_t nparts, char *scratch)
{
    const struct nn_args a = {(const void *const *)w->in, w->out};
    const heddle_status st = w->task->step.run(w->task->step.state, &a, part, nparts, scratch);
    const struct nn_node *n = w->task->node;
    char why[400];

    if (st == HEDDLE_OK)
        return st;
    /* A step knows no sentence. The reference kernel does, and fails in the same way; but other
     * pieces may be writing the results that it would write. */
    (void)heddle_why(why, sizeof(why), st, "node '%s' (%s): %s", n->name, n->op->name,
                     heddle_status_text(st));
    if (nparts == 1)
        (void)kernel_reference(w, why, sizeof(why));
    return kernel_failed(x, w, st, why);
}

static heddle_status kernel_whole(struct heddle_exec *x)
{
    const struct nn_work *w = *(const struct nn_work *const *)heddle_exec_arg(x);
    char why[400] = "";
    heddle_status st;

    if (w->task->step.run != NULL)
        return kernel_piece_of(x, w, 0, 1, w->scratch);
    st = kernel_reference(w, why, sizeof(why));
    return st == HEDDLE_OK ? st : kernel_failed(x, w, st, why);
}

heddle_status heddle_nn_work_run(const struct nn_work *w, char *why, size_t why_bytes)
{
    const struct nn_args a = {(const void *const *)w->in, w->out};

    if (w->task->step.run == NULL ||
        w->task->step.run(w->task->step.state, &a, 0, 1, w->scratch) != HEDDLE_OK)
        return kernel_reference(w, why, why_bytes);
    return HEDDLE_OK;
}

static heddle_status kernel_piece(struct heddle_exec *x)
{
    const struct nn_piece *p = heddle_exec_arg(x);
    const struct nn_task *t = p->work->task;

    return kernel_piece_of(x, p->work, p->part, t->pieces,
                           p->work->scratch + p->part * t->piece_bytes);
}

/* Children come before other tasks: their parent has begun. */
enum { PIECE_FIRST = 1 << 28 };

static const heddle_kernel piece_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "piece",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = kernel_piece}},
};

static heddle_status kernel_expand(struct heddle_exec *x)
{
    const struct nn_work *w = *(const struct nn_work *const *)heddle_exec_arg(x);
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < w->task->pieces && st == HEDDLE_OK; i++) {
        const struct nn_piece p = {w, i};

        st = heddle_exec_submit(
            x, &piece_kernel,
            &(struct heddle_call){.arg = &p, .arg_bytes = sizeof(p), .priority = PIECE_FIRST});
    }
    return st;
}

static const heddle_kernel whole_kernels[] = {
#define HEDDLE_NN_KERNEL(nm)                                                                       \
    {.size = sizeof(heddle_kernel),                                                                \
     .name = #nm,                                                                                  \
     .variants = {{.device = HEDDLE_DEV_CPU, .run = kernel_whole}}},
#include "nn/run/kernel.def"
#undef HEDDLE_NN_KERNEL
};

static const heddle_kernel cut_kernels[] = {
#define HEDDLE_NN_KERNEL(nm)                                                                       \
    {.size = sizeof(heddle_kernel),                                                                \
     .name = #nm,                                                                                  \
     .variants = {{.device = HEDDLE_DEV_CPU, .run = kernel_whole}},                                \
     .expand = kernel_expand},
#include "nn/run/kernel.def"
#undef HEDDLE_NN_KERNEL
};

const heddle_kernel *heddle_nn_kernel(const char *name, bool is_plain)
{
    const heddle_kernel *k = is_plain ? whole_kernels : cut_kernels;
    const size_t last = sizeof(whole_kernels) / sizeof(whole_kernels[0]) - 1;
    size_t i = 0;

    while (i < last && strcmp(k[i].name, name) != 0)
        i++;
    return &k[i];
}
