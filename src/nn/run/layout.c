/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout: a step for each task, and how images are stored.
 *
 * Purpose  convolutions are fast with the channels innermost (n, h, w, c), so images stay there
 *          from one to the next. Steps are made in order: one that is NN_INNER gives its result
 *          so; one that can have any layout takes that of most of its images; all others read and
 *          write n, c, h, w. Where a reader needs the layout that a value does not have, a task
 *          `reorder` makes a copy, once per value.
 * Terms    plain: n, c, h, w. Inner: n, h, w, c. A copy: the same value in the other layout.
 *
 * Invariants (1) inputs and outputs of the graph are plain, constants as well
 *            (2) an inner value is an image whose layouts differ, and the root of its memory
 *            (3) operands of an inner NN_POINT task that it may be written over are inner
 */
#include <string.h>

#include "base/assert.h"
#include "base/why.h"
#include "nn/op/step.h"
#include "nn/run/run.h"

struct layout {
    struct nn_plan *p;
    const struct nn_opts *o;
    struct heddle_scratch *temp;
    bool *is_inner; /* by value */
    uint32_t *copy; /* by value; NN_NONE */
    uint32_t ncopies;
    const struct nn_plan *like; /* of the same graph, or NULL */
    uint32_t like_at;           /* where its next task is likely to be */
};

/* A task that stands for the same node and has the same constants has packed its weights. */
static const struct heddle_dnn *layout_share(struct layout *l, const struct nn_task *t)
{
    const struct nn_plan *p = l->like;
    const uint32_t n = p != NULL ? p->ntasks : 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = (l->like_at + i) % n;
        const struct nn_task *other = &p->task[at];

        if (other->node->op != t->node->op || other->node->nin != t->node->nin ||
            strcmp(other->node->name, t->node->name) != 0)
            continue;
        l->like_at = at + 1;
        for (uint32_t k = 0; k < t->node->nin; k++)
            if (other->in[k].data != t->in[k].data)
                return NULL;
        return heddle_nn_step_dnn(&other->step);
    }
    return NULL;
}

/* --- copies as tasks --------------------------------------------------------------- */

static heddle_status reorder_bytes(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    const int64_t *dim = c->in[0].shape.dim;
    const size_t channels = (size_t)dim[1], pixels = (size_t)(dim[2] * dim[3]);
    const struct dnn_transpose d = {
        .size = sizeof(d),
        .rank = 3,
        .elem_bytes = 1,
        .dims = {(size_t)dim[0], c->is_nhwc ? channels : pixels, c->is_nhwc ? pixels : channels},
        .perm = {0, 2, 1}};
    struct heddle_dnn *o = NULL;
    const heddle_status st = heddle_dnn_create_transpose(&d, &make, &o);

    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static heddle_status reorder_fast(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    const int64_t *dim = c->in[0].shape.dim;
    const struct dnn_reorder d = {.size = sizeof(d),
                                  .n = (size_t)dim[0],
                                  .c = (size_t)dim[1],
                                  .h = (size_t)dim[2],
                                  .w = (size_t)dim[3],
                                  .from = c->is_nhwc ? DNN_NCHW : DNN_NHWC,
                                  .to = c->is_nhwc ? DNN_NHWC : DNN_NCHW};
    struct heddle_dnn *o = NULL;
    heddle_status st;

    if (c->in[0].type != NN_F32)
        return reorder_bytes(c, out);
    st = heddle_dnn_create_reorder(&d, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static struct heddle_cost reorder_cost(const struct nn_call *c)
{
    return (struct heddle_cost){.bytes = 2 * (double)heddle_nn_bytes(&c->in[0])};
}

/* No operator of ONNX: it has a step always. Its is_nhwc says what the copy is. */
static const struct nn_op reorder_op = {.name = "reorder",
                                        .nin_min = 1,
                                        .nin_max = 1,
                                        .type = {NN_M(NN_F32)},
                                        .fast = reorder_fast,
                                        .cost = reorder_cost};

/* The task that makes the copy of value v. */
static heddle_status reorder_task(struct layout *l, uint32_t v, struct nn_task *t)
{
    struct nn_plan *p = l->p;
    struct nn_node *node = heddle_scratch_get(&p->mem, 1, sizeof(*node));
    uint32_t *number = heddle_scratch_get(&p->mem, 2, sizeof(*number));
    struct nn_value *value = heddle_scratch_get(&p->mem, 2, sizeof(*value));

    if (node == NULL || number == NULL || value == NULL)
        return HEDDLE_ENOMEM;
    number[0] = v;
    number[1] = l->copy[v];
    value[0] = value[1] = p->value[v];
    *node = (struct nn_node){.op = &reorder_op,
                             .name = p->g->value[v].name,
                             .nin = 1,
                             .nout = 1,
                             .in = number,
                             .out = number + 1};
    *t = (struct nn_task){.node = node,
                          .is_nhwc = !l->is_inner[v],
                          .in = value,
                          .out = value + 1,
                          .in_value = number,
                          .out_value = number + 1};
    return HEDDLE_OK;
}

/* --- which layout -------------------------------------------------------------------- */

/* An image that requests bring or compute. */
static bool layout_is_image(const struct nn_value *v)
{
    const bool is_bytes = v->type == NN_U8 || v->type == NN_I8;

    return v->kind == NN_TENSOR && (v->type == NN_F32 || is_bytes) && v->data == NULL &&
           v->shape.rank == 4 && heddle_nn_count(&v->shape) > 0;
}

/* One whose layouts differ. */
static bool layout_differs(const struct nn_value *v)
{
    return layout_is_image(v) && v->shape.dim[1] > 1 && v->shape.dim[2] * v->shape.dim[3] > 1;
}

/* The value whose memory a reader of v takes when v has its shape, else v. */
static uint32_t layout_source(const struct layout *l, uint32_t v)
{
    const struct nn_plan *p = l->p;
    const uint32_t r = p->root[v];

    return heddle_nn_same_shape(&p->value[v].shape, &p->value[r].shape) ? r : v;
}

/* Does the task, inner, take operand k inner? */
static bool layout_takes_inner(const struct nn_task *t, uint32_t k)
{
    const unsigned flags = t->node->op->flags;

    return layout_differs(&t->in[k]) &&
           ((flags & (NN_IMAGES | NN_POINT)) != 0 || (k == 0 && (flags & NN_IMAGE) != 0));
}

/* May the task be inner, and how many of its operands are so already, less those that are not? */
static bool layout_can(const struct layout *l, const struct nn_task *t, int *gain)
{
    const unsigned flags = t->node->op->flags;

    *gain = 0;
    if ((flags & (NN_IMAGE | NN_IMAGES | NN_POINT)) == 0 || t->node->op->fast == NULL ||
        t->node->nin == 0 || !layout_is_image(&t->out[0]))
        return false;
    for (uint32_t k = 0; k < t->node->nin; k++) {
        const struct nn_value *v = &t->in[k];
        uint32_t from;

        if (t->in_value[k] == NN_NONE || v->data != NULL)
            continue;
        if (!layout_is_image(v) && (flags & NN_IMAGE) == 0 && heddle_nn_count(&v->shape) != 1)
            return false;
        if (!layout_takes_inner(t, k))
            continue;
        from = layout_source(l, t->in_value[k]);
        if (l->is_inner[l->p->root[from]] && from != l->p->root[from])
            return false; /* the same memory in another shape */
        *gain += l->is_inner[from] ? 1 : -1;
    }
    return layout_is_image(&t->in[0]) || (flags & NN_IMAGE) == 0;
}

/* The pages of the file whose numbers the task has packed: they are not read any more, but where
 * another task reads them as they are. */
static void layout_give_back(const struct layout *l, const struct nn_task *t)
{
    const struct heddle_dnn *dnn = heddle_nn_step_dnn(&t->step);

    if (dnn == NULL || heddle_dnn_packed_bytes(dnn) == 0)
        return;
    for (uint32_t k = 0; k < t->node->nin; k++)
        if (t->in[k].kind == NN_TENSOR && t->in[k].data != NULL)
            heddle_onnx_give_back(l->p->g->file, t->in[k].data, heddle_nn_bytes(&t->in[k]));
}

/* Tries to make the step. HEDDLE_ENOSYS: there is none. */
static heddle_status layout_try(struct layout *l, struct nn_task *t, bool is_nhwc, bool is_plain_in)
{
    struct nn_run run = {.keep = &l->p->mem, .temp = l->temp, .alloc = l->o->alloc};
    struct nn_call c;
    heddle_status st;

    if (t->node->op->fast == NULL)
        return HEDDLE_ENOSYS;
    run.share = layout_share(l, t);
    t->is_nhwc = is_nhwc;
    t->is_plain_in = is_plain_in;
    c = heddle_nn_task_call(t, &run, l->o);
    st = t->node->op->fast(&c, &t->step);
    heddle_scratch_drop(l->temp);
    if (st == HEDDLE_OK)
        layout_give_back(l, t);
    if (st != HEDDLE_OK) {
        t->step = (struct nn_step){0};
        t->is_nhwc = t->is_plain_in = false;
    }
    return st;
}

static heddle_status layout_step(struct layout *l, struct nn_task *t)
{
    heddle_status st = HEDDLE_ENOSYS;
    int gain;

    if (layout_can(l, t, &gain)) {
        const bool is_anchor = (t->node->op->flags & NN_INNER) != 0;

        if (is_anchor && gain < 0)
            st = layout_try(l, t, true, true);
        if (st == HEDDLE_ENOSYS && (is_anchor || gain > 0))
            st = layout_try(l, t, true, false);
        if (st == HEDDLE_OK)
            l->is_inner[t->out_value[0]] = layout_differs(&t->out[0]);
    }
    if (st == HEDDLE_ENOSYS)
        st = layout_try(l, t, false, false);
    return st == HEDDLE_ENOSYS ? HEDDLE_OK : st;
}

/* --- copies ------------------------------------------------------------------------------ */

/* The value whose copy a reader of v needs, or NN_NONE. */
static uint32_t layout_copied(const struct layout *l, uint32_t v, bool takes_inner)
{
    const uint32_t root = l->p->root[v];

    if (takes_inner) {
        v = layout_source(l, v);
        return l->is_inner[v] ? NN_NONE : v;
    }
    return l->is_inner[root] ? root : NN_NONE;
}

static uint32_t layout_operand(const struct layout *l, const struct nn_task *t, uint32_t k)
{
    const uint32_t v = t->in_value[k];

    if (v == NN_NONE || t->in[k].data != NULL)
        return NN_NONE;
    return layout_copied(l, v,
                         t->is_nhwc && !(k == 0 && t->is_plain_in) && layout_takes_inner(t, k));
}

static void layout_count(struct layout *l, uint32_t v)
{
    if (v != NN_NONE && l->copy[v] == NN_NONE)
        l->copy[v] = l->p->nvalues + l->ncopies++;
}

/* Values for the copies, behind those of the graph. */
static heddle_status layout_values(struct layout *l)
{
    struct nn_plan *p = l->p;
    const uint32_t n = p->nvalues + l->ncopies;
    struct nn_value *value = heddle_scratch_get(&p->mem, n, sizeof(*value));
    uint32_t *root = heddle_scratch_get(&p->mem, n, sizeof(*root));
    uint32_t *output = heddle_scratch_get(&p->mem, p->g->noutputs, sizeof(*output));

    if (value == NULL || root == NULL || output == NULL)
        return HEDDLE_ENOMEM;
    memcpy(value, p->value, p->nvalues * sizeof(*value));
    memcpy(root, p->root, p->nvalues * sizeof(*root));
    for (uint32_t v = 0; v < p->nvalues; v++)
        if (l->copy[v] != NN_NONE) {
            value[l->copy[v]] = p->value[v];
            root[l->copy[v]] = l->copy[v];
        }
    for (uint32_t i = 0; i < p->g->noutputs; i++) {
        const uint32_t v = layout_copied(l, p->g->output[i], false);

        output[i] = v == NN_NONE ? p->g->output[i] : l->copy[v];
    }
    p->value = value;
    p->root = root;
    p->output = output;
    p->nvalues = n;
    return HEDDLE_OK;
}

struct layout_list {
    struct nn_task *task;
    uint32_t n;
    bool *is_made; /* by value: its copy */
};

static heddle_status layout_copy(struct layout *l, struct layout_list *list, uint32_t v)
{
    if (v == NN_NONE || list->is_made[v])
        return HEDDLE_OK;
    list->is_made[v] = true;
    return reorder_task(l, v, &list->task[list->n++]);
}

/* The task, behind those that make what it reads. */
static heddle_status layout_insert(struct layout *l, struct layout_list *list,
                                   const struct nn_task *t)
{
    struct nn_task own = *t;
    uint32_t *in = NULL;

    for (uint32_t k = 0; k < t->node->nin; k++) {
        const uint32_t v = layout_operand(l, t, k);

        if (v == NN_NONE)
            continue;
        if (in == NULL) {
            in = heddle_scratch_get(&l->p->mem, t->node->nin, sizeof(*in));
            if (in == NULL)
                return HEDDLE_ENOMEM;
            memcpy(in, t->in_value, t->node->nin * sizeof(*in));
            own.in_value = in;
        }
        HEDDLE_TRY(layout_copy(l, list, v));
        in[k] = l->copy[v];
    }
    list->task[list->n++] = own;
    return HEDDLE_OK;
}

/* The list of tasks with those that make copies. The old one owns the steps until the new one is
 * complete. */
static heddle_status layout_tasks(struct layout *l)
{
    struct nn_plan *p = l->p;
    struct layout_list list = {
        .task = heddle_scratch_get(&p->mem, (size_t)p->ntasks + l->ncopies, sizeof(*p->task)),
        .is_made = heddle_scratch_get(l->temp, p->nvalues, sizeof(bool))};

    if (list.task == NULL || list.is_made == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < p->ntasks; i++)
        HEDDLE_TRY(layout_insert(l, &list, &p->task[i]));
    for (uint32_t i = 0; i < p->g->noutputs; i++)
        HEDDLE_TRY(layout_copy(l, &list, layout_copied(l, p->g->output[i], false)));
    p->task = list.task;
    p->ntasks = list.n;
    heddle_scratch_drop(l->temp);
    for (uint32_t i = 0; i < p->ntasks; i++)
        if (p->task[i].node->op == &reorder_op)
            HEDDLE_TRY(layout_try(l, &p->task[i], p->task[i].is_nhwc, false));
    return HEDDLE_OK;
}

static heddle_status layout_run(struct layout *l)
{
    struct nn_plan *p = l->p;

    for (uint32_t i = 0; i < p->ntasks; i++)
        HEDDLE_TRY(layout_step(l, &p->task[i]));
    for (uint32_t i = 0; i < p->ntasks; i++)
        for (uint32_t k = 0; k < p->task[i].node->nin; k++)
            layout_count(l, layout_operand(l, &p->task[i], k));
    for (uint32_t i = 0; i < p->g->noutputs; i++)
        layout_count(l, layout_copied(l, p->g->output[i], false));
    if (l->ncopies == 0)
        return HEDDLE_OK;
    HEDDLE_TRY(layout_tasks(l));
    return layout_values(l);
}

heddle_status heddle_nn_layout(struct nn_plan *p, const struct nn_plan *like,
                               struct heddle_scratch *temp, const struct nn_opts *o)
{
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    struct layout l = {.p = p, .o = o, .temp = temp, .like = like};
    heddle_status st = HEDDLE_ENOMEM;

    if (!p->is_static)
        return HEDDLE_OK;
    l.is_inner = heddle_scratch_get(&mem, p->nvalues, sizeof(*l.is_inner));
    l.copy = heddle_scratch_get(&mem, p->nvalues, sizeof(*l.copy));
    if (l.is_inner != NULL && l.copy != NULL) {
        for (uint32_t v = 0; v < p->nvalues; v++)
            l.copy[v] = NN_NONE;
        st = layout_run(&l);
    }
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_ENOMEM)
        return heddle_why(o->why, o->why_bytes, st, "no memory for a plan");
    return st;
}
