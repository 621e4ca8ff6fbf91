/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instance: the memory of one request, and the tasks on it, recorded once.
 *
 * Operands  a task names the views of what it reads and writes, its scratch included. Views of
 *           values that share memory overlap; from that the runtime knows the order. A task with
 *           more operands than a recorded one may have names the whole arena.
 * Views     values of the same blocks of the arena have one view: a deep network has thousands of
 *           values at a few addresses, and each view costs as much as there are others that
 *           overlap it.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/map.h"
#include "base/why.h"
#include "nn/run/run.h"

struct nn_instance {
    struct nn_plan *plan;
    const struct heddle_allocator *alloc;
    struct heddle_scratch mem;
    struct nn_instance *next;
    char *arena;
    heddle_handle *all;
    size_t arena_bytes;
    unsigned block_bits;    /* addresses are multiples of this power of two */
    struct heddle_map view; /* by first block << 32 | blocks */
    struct nn_work *work;
    heddle_graph *graph;
    bool is_spoiled; /* its last request has failed: why */
    struct nn_blame blame;
};

const struct nn_work *heddle_nn_instance_work(const struct nn_instance *i, uint32_t k)
{
    return &i->work[k];
}

struct nn_instance **heddle_nn_instance_next(struct nn_instance *i)
{
    return &i->next;
}

/* The arena in whole blocks, so many that a number of a block has 32 bits. */
static void instance_blocks(struct nn_instance *i, uint64_t bytes)
{
    for (i->block_bits = 6; bytes >> i->block_bits > UINT32_MAX / 2; i->block_bits++)
        ;
    i->arena_bytes = (((size_t)bytes >> i->block_bits) + 1) << i->block_bits;
}

void *heddle_nn_instance_data(const struct nn_instance *i, uint32_t value)
{
    const struct nn_plan *p = i->plan;

    if (p->value[value].data != NULL)
        return p->value[value].data;
    value = p->root[value];
    if (p->value[value].data != NULL)
        return p->value[value].data;
    return p->at[value] == NN_NOWHERE ? NULL : i->arena + p->at[value];
}

/* The view of the blocks that hold `bytes` bytes of the arena; made when it is asked for. */
static heddle_status instance_view(struct nn_instance *i, uint64_t at, size_t bytes,
                                   heddle_handle **out)
{
    const uint64_t first = at >> i->block_bits;
    const uint64_t end = ((at + (bytes > 0 ? bytes : 1) - 1) >> i->block_bits) + 1;
    const size_t offset = (size_t)first << i->block_bits;
    const size_t extent = (size_t)(end - first) << i->block_bits;
    const uint64_t key = first << 32 | (end - first);
    heddle_status st;

    *out = heddle_map_get_ptr(&i->view, key);
    if (*out != NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_view_box(i->all, &offset, &extent, NULL, out));
    st = heddle_map_put_ptr(&i->view, key, *out);
    if (st != HEDDLE_OK)
        heddle_handle_unref(*out);
    return st;
}

struct operands {
    heddle_handle *handle[HEDDLE_KERNEL_OPERANDS];
    enum heddle_mode mode[HEDDLE_KERNEL_OPERANDS];
    unsigned n;
    bool is_full;
};

static heddle_status operands_add(struct nn_instance *i, struct operands *o, uint32_t value,
                                  enum heddle_mode mode)
{
    const struct nn_plan *p = i->plan;
    heddle_handle *h = NULL;

    if (value == NN_NONE)
        return HEDDLE_OK;
    value = p->root[value];
    if (p->at[value] == NN_NOWHERE)
        return HEDDLE_OK;
    HEDDLE_TRY(instance_view(i, p->at[value], heddle_nn_bytes(&p->value[value]), &h));
    for (unsigned k = 0; k < o->n; k++)
        if (o->handle[k] == h) {
            o->mode[k] = (enum heddle_mode)(o->mode[k] | mode);
            return HEDDLE_OK;
        }
    if (o->n == HEDDLE_KERNEL_OPERANDS) {
        o->is_full = true;
        return HEDDLE_OK;
    }
    o->handle[o->n] = h;
    o->mode[o->n++] = mode;
    return HEDDLE_OK;
}

/* What a task reads and writes. A result that takes the place of an operand is a view of the same
 * bytes: the task names it once, to read and write. */
static heddle_status instance_operands(struct nn_instance *i, uint32_t k, struct operands *o)
{
    const struct nn_plan *p = i->plan;
    const struct nn_task *t = &p->task[k];
    heddle_handle *h = NULL;

    for (uint32_t v = 0; v < t->node->nin; v++)
        HEDDLE_TRY(operands_add(i, o, t->in_value[v], HEDDLE_R));
    for (uint32_t v = 0; v < t->node->nout; v++)
        HEDDLE_TRY(operands_add(i, o, t->out_value[v], HEDDLE_RW));
    if (t->work_bytes > 0 && !o->is_full) {
        HEDDLE_TRY(instance_view(i, t->work_at, t->work_bytes, &h));
        o->is_full = o->n == HEDDLE_KERNEL_OPERANDS;
        if (!o->is_full) {
            o->handle[o->n] = h;
            o->mode[o->n++] = HEDDLE_RW;
        }
    }
    if (o->is_full || o->n == 0) {
        o->handle[0] = i->all;
        o->mode[0] = HEDDLE_RW;
        o->n = 1;
    }
    return HEDDLE_OK;
}

static heddle_status instance_task(struct nn_instance *i, uint32_t k)
{
    const struct nn_plan *p = i->plan;
    const struct nn_task *t = &p->task[k];
    struct nn_work *w = &i->work[k];
    struct operands o = {.n = 0};
    const struct heddle_task_opts opts = {.size = sizeof(opts), .name = t->node->name};
    const uint32_t nin = t->node->nin, nout = t->node->nout;

    w->task = t;
    w->blame = &i->blame;
    w->alloc = i->alloc;
    w->scratch = i->arena + (t->work_bytes > 0 ? t->work_at : 0);
    w->in = heddle_scratch_get(&i->mem, nin, sizeof(void *));
    w->out = heddle_scratch_get(&i->mem, nout, sizeof(void *));
    if (w->in == NULL || w->out == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t v = 0; v < nin; v++)
        w->in[v] = t->in_value[v] == NN_NONE ? NULL : heddle_nn_instance_data(i, t->in_value[v]);
    for (uint32_t v = 0; v < nout; v++)
        w->out[v] = t->out_value[v] == NN_NONE ? NULL : heddle_nn_instance_data(i, t->out_value[v]);
    HEDDLE_TRY(instance_operands(i, k, &o));
    return heddle_graph_submit(i->graph, heddle_nn_kernel(t->node->op->name, t->pieces < 2),
                               &(struct heddle_call){.arg = &w,
                                                     .arg_bytes = sizeof(struct nn_work *),
                                                     .noperands = o.n,
                                                     .operands = o.handle,
                                                     .modes = o.mode,
                                                     .opts = &opts});
}

static heddle_status instance_record(struct nn_instance *i, heddle_ctx *ctx)
{
    HEDDLE_TRY(heddle_handle_vector(ctx, i->arena, i->arena_bytes, HEDDLE_U8, &i->all));
    HEDDLE_TRY(heddle_graph_begin(ctx, &i->graph));
    for (uint32_t k = 0; k < i->plan->ntasks; k++)
        HEDDLE_TRY(instance_task(i, k));
    return heddle_graph_end(i->graph);
}

heddle_status heddle_nn_instance_create(struct heddle_nn *net, struct nn_plan *p,
                                        const struct nn_opts *o, struct nn_instance **out)
{
    struct nn_instance *i = heddle_zalloc(net->alloc, 1, sizeof(*i));
    struct heddle_error e = {.size = sizeof(e)};
    heddle_status st = HEDDLE_ENOMEM;

    if (i == NULL)
        return heddle_why(o->why, o->why_bytes, st, "no memory for a request");
    i->plan = p;
    i->alloc = net->alloc;
    i->mem = heddle_scratch_make(net->alloc);
    heddle_map_init(&i->view, net->alloc);
    instance_blocks(i, p->arena_bytes);
    i->arena = heddle_alloc_large(net->alloc, i->arena_bytes);
    i->work = heddle_scratch_get(&i->mem, p->ntasks, sizeof(*i->work));
    if (i->arena != NULL && i->work != NULL)
        st = instance_record(i, net->ctx);
    if (st == HEDDLE_OK) {
        *out = i;
        return st;
    }
    heddle_nn_instance_destroy(i);
    if (st == HEDDLE_ENOMEM)
        return heddle_why(o->why, o->why_bytes, st, "no memory for a request");
    (void)heddle_ctx_error(net->ctx, &e);
    return heddle_why(o->why, o->why_bytes, st, "the tasks of a request: %s", e.message);
}

void heddle_nn_instance_destroy(struct nn_instance *i)
{
    const struct heddle_allocator *a;
    const struct heddle_map_slot *s;
    size_t it = 0;

    if (i == NULL)
        return;
    a = i->alloc;
    heddle_graph_unref(i->graph);
    while ((s = heddle_map_next(&i->view, &it)) != NULL)
        heddle_handle_unref((heddle_handle *)(uintptr_t)s->val);
    heddle_map_fini(&i->view);
    heddle_handle_unref(i->all);
    heddle_free(a, i->arena, i->arena_bytes);
    heddle_scratch_drop(&i->mem);
    heddle_free(a, i, sizeof(*i));
}

const char *heddle_nn_instance_why(const struct nn_instance *i)
{
    return i->blame.why;
}

void heddle_nn_instance_spoil(struct nn_instance *i)
{
    i->is_spoiled = true;
}

/* Every result is written before it is read, so what a failed request left counts as good. */
static heddle_status instance_restore(struct nn_instance *i)
{
    const struct heddle_map_slot *s;
    size_t it = 0;

    HEDDLE_TRY(heddle_handle_restore(i->all));
    while ((s = heddle_map_next(&i->view, &it)) != NULL)
        HEDDLE_TRY(heddle_handle_restore((heddle_handle *)(uintptr_t)s->val));
    i->is_spoiled = false;
    i->blame.why[0] = '\0';
    heddle_store_rlx(&i->blame.is_said, false); /* no task of it runs */
    return HEDDLE_OK;
}

heddle_status heddle_nn_instance_launch(struct nn_instance *i, const struct heddle_task_opts *opts)
{
    const struct heddle_launch l = {.size = sizeof(l), .opts = opts};

    if (i->is_spoiled)
        HEDDLE_TRY(instance_restore(i));
    return heddle_graph_launch(i->graph, &l);
}
