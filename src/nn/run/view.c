/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view: a network before and after its preparation, as programs see it.
 *
 * Purpose  everything is copied out of the plan, but for names, which are the network's. What
 *          became of an operator follows from the changes, in order: each one leads to the node
 *          that it made, which a later one may have taken again.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/map.h"
#include "base/sized.h"
#include "base/why.h"
#include "dnn/dnn.h"
#include "nn/prepare/prepare.h"

struct view {
    struct heddle_nn_view face;
    struct heddle_allocator from;
    struct heddle_scratch mem;
    const struct nn_plan *p;
    struct heddle_map home; /* node: the change that took it, plus 1 */
    struct heddle_map task; /* node: its task, plus 1 */
};

static void *view_get(struct view *v, size_t n, size_t bytes)
{
    return heddle_scratch_get(&v->mem, n, bytes);
}

static uint64_t view_key(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* --- values -------------------------------------------------------------------------- */

static heddle_status view_values(struct view *v)
{
    const struct nn_plan *p = v->p;
    struct heddle_nn_value *to = view_get(v, p->nvalues, sizeof(*to));

    if (to == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < p->nvalues; i++) {
        const struct nn_value *x = &p->value[i];

        to[i].name = i < p->g->nvalues ? p->g->value[i].name : "copy";
        to[i].root = p->root[i];
        while (to[i].root != p->root[to[i].root])
            to[i].root = p->root[to[i].root];
        to[i].is_constant = x->data != NULL;
        if (x->kind != NN_TENSOR || !heddle_nn_is_concrete(&x->shape))
            continue;
        to[i].type = x->type;
        to[i].ndim = (unsigned)x->shape.rank;
        memcpy(to[i].dim, x->shape.dim, to[i].ndim * sizeof(to[i].dim[0]));
        to[i].bytes = heddle_nn_bytes(x);
    }
    v->face.value = to;
    v->face.nvalues = p->nvalues;
    return HEDDLE_OK;
}

/* --- nodes and tasks ----------------------------------------------------------------- */

static heddle_status view_operands(struct view *v, const struct nn_node *n, const uint32_t *in,
                                   const uint32_t *out, struct heddle_nn_node *to)
{
    uint32_t *number = view_get(v, (size_t)n->nin + n->nout, sizeof(*number));

    if (number == NULL)
        return HEDDLE_ENOMEM;
    if (n->nin > 0)
        memcpy(number, in, n->nin * sizeof(*in));
    if (n->nout > 0)
        memcpy(number + n->nin, out, n->nout * sizeof(*out));
    to->name = n->name;
    to->op = n->op->name;
    to->nin = n->nin;
    to->nout = n->nout;
    to->in = number;
    to->out = number + n->nin;
    return HEDDLE_OK;
}

static heddle_status view_tasks(struct view *v)
{
    const struct nn_plan *p = v->p;
    struct heddle_nn_node *to = view_get(v, p->ntasks, sizeof(*to));

    if (to == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < p->ntasks; i++) {
        const struct nn_task *t = &p->task[i];
        const struct heddle_dnn *dnn = t->step.dnn;

        HEDDLE_TRY(view_operands(v, t->node, t->in_value, t->out_value, &to[i]));
        to[i].task = i;
        to[i].kernel = t->step.run == NULL ? NULL : dnn != NULL ? heddle_dnn_kind(dnn) : "";
        to[i].isa = dnn != NULL ? heddle_dnn_isa(dnn) : "";
        to[i].packed = dnn != NULL ? heddle_dnn_packed_bytes(dnn) : 0;
        to[i].flops = t->cost.flops;
        to[i].bytes = t->cost.bytes;
        to[i].pieces = (unsigned)t->pieces;
        HEDDLE_TRY(heddle_map_put(&v->task, view_key(t->node), i + 1));
    }
    v->face.task = to;
    v->face.ntasks = p->ntasks;
    return HEDDLE_OK;
}

/* What the operator would cost by itself. */
static heddle_status view_cost(struct view *v, const struct nn_node *n, struct heddle_nn_node *to)
{
    const struct nn_plan *p = v->p;
    struct nn_value *x = view_get(v, (size_t)n->nin + n->nout, sizeof(*x));
    const struct nn_call c = {
        .node = n, .nin = n->nin, .nout = n->nout, .in = x, .out = x == NULL ? NULL : x + n->nin};
    struct heddle_cost cost;

    if (x == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t k = 0; k < n->nin + n->nout; k++) {
        const uint32_t i = k < n->nin ? n->in[k] : n->out[k - n->nin];

        if (i != NN_NONE)
            x[k] = p->value[i];
        if (x[k].kind == NN_TENSOR && !heddle_nn_is_concrete(&x[k].shape))
            return HEDDLE_OK;
    }
    cost = heddle_nn_cost(&c);
    to->flops = cost.flops;
    to->bytes = cost.bytes;
    return HEDDLE_OK;
}

/* The task that does the work of the node; UINT32_MAX: none. */
static uint32_t view_task_of(const struct view *v, const struct nn_node *n)
{
    uint64_t i = 0;

    while (n != NULL && !heddle_map_get(&v->task, view_key(n), &i)) {
        if (!heddle_map_get(&v->home, view_key(n), &i))
            return UINT32_MAX;
        n = v->p->change[i - 1].made;
        i = 0;
    }
    return i > 0 ? (uint32_t)(i - 1) : UINT32_MAX;
}

static enum heddle_nn_fate view_fate(const struct view *v, const struct nn_node *n,
                                     const struct heddle_nn_node *to)
{
    const struct nn_plan *p = v->p;
    const uint32_t out = n->nout > 0 ? n->out[0] : NN_NONE;
    uint64_t change = 0;

    if (out != NN_NONE && p->value[out].data != NULL)
        return HEDDLE_NN_CONSTANT;
    if (to->task != UINT32_MAX)
        return p->task[to->task].node == n ? HEDDLE_NN_RUNS : HEDDLE_NN_JOINED;
    if (heddle_map_get(&v->home, view_key(n), &change))
        return p->change[change - 1].made == NULL ? HEDDLE_NN_NO_WORK : HEDDLE_NN_UNUSED;
    return (n->op->flags & NN_ALIAS) != 0 ? HEDDLE_NN_NO_WORK : HEDDLE_NN_UNUSED;
}

static heddle_status view_nodes(struct view *v)
{
    const struct nn_graph *g = v->p->g;
    struct heddle_nn_node *to = view_get(v, g->nnodes, sizeof(*to));

    if (to == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const struct nn_node *n = &g->node[i];

        HEDDLE_TRY(view_operands(v, n, n->in, n->out, &to[i]));
        HEDDLE_TRY(view_cost(v, n, &to[i]));
        to[i].isa = "";
        to[i].task = view_task_of(v, n);
        to[i].fate = view_fate(v, n, &to[i]);
        if (to[i].fate == HEDDLE_NN_CONSTANT || to[i].fate == HEDDLE_NN_NO_WORK)
            to[i].flops = to[i].bytes = 0;
    }
    v->face.node = to;
    v->face.nnodes = g->nnodes;
    return HEDDLE_OK;
}

/* --- changes ------------------------------------------------------------------------- */

static heddle_status view_changes(struct view *v)
{
    const struct nn_plan *p = v->p;
    struct heddle_nn_change *to = view_get(v, p->nchanges, sizeof(*to));
    struct heddle_nn_pass *pass;
    unsigned n = 0;

    while (heddle_nn_get_pass(n) != NULL)
        n++;
    pass = view_get(v, n, sizeof(*pass));
    if (to == NULL || pass == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        pass[i].name = heddle_nn_get_pass(i)->name;
        pass[i].what = heddle_nn_get_pass(i)->what;
    }
    for (uint32_t i = 0; i < p->nchanges; i++) {
        const struct nn_change *c = &p->change[i];
        const char **gone = view_get(v, (size_t)2 * c->ngone, sizeof(*gone));

        if (gone == NULL)
            return HEDDLE_ENOMEM;
        for (uint32_t k = 0; k < c->ngone; k++) {
            gone[k] = c->gone[k]->op->name;
            gone[c->ngone + k] = c->gone[k]->name;
            HEDDLE_TRY(heddle_map_put(&v->home, view_key(c->gone[k]), i + 1));
        }
        to[i] = (struct heddle_nn_change){.pass = c->pass,
                                          .made = c->made != NULL ? c->made->op->name : NULL,
                                          .name = c->made != NULL ? c->made->name : NULL,
                                          .ngone = c->ngone,
                                          .gone = gone,
                                          .gone_name = gone + c->ngone};
        pass[c->pass].nchanges++;
        pass[c->pass].ngone += c->ngone;
    }
    v->face.change = to;
    v->face.nchanges = p->nchanges;
    v->face.pass = pass;
    v->face.npasses = n;
    return HEDDLE_OK;
}

/* --- all ----------------------------------------------------------------------------- */

static heddle_status view_fill(struct view *v)
{
    HEDDLE_TRY(view_values(v));
    HEDDLE_TRY(view_changes(v));
    HEDDLE_TRY(view_tasks(v));
    return view_nodes(v);
}

/* The plan for these shapes, which was there a moment ago, kept for the time of the call. */
static struct nn_plan *view_plan(heddle_nn *net, const struct heddle_nn_tensor *t)
{
    struct nn_plan *p;

    heddle_mutex_lock(&net->lock);
    for (p = net->plan; p != NULL; p = p->next) {
        bool is_same = true;

        for (uint32_t i = 0; i < p->g->ninputs && is_same; i++) {
            is_same = p->key[i].rank == (int)t[i].ndim;
            for (unsigned d = 0; d < t[i].ndim && is_same; d++)
                is_same = p->key[i].dim[d] == t[i].dim[d];
        }
        if (is_same)
            break;
    }
    if (p != NULL)
        p->nrefs++;
    heddle_mutex_unlock(&net->lock);
    return p;
}

static struct view *view_new(heddle_nn *net)
{
    struct view *v = heddle_zalloc(net->alloc, 1, sizeof(*v));

    if (v == NULL)
        return NULL;
    v->from = net->from;
    v->mem = heddle_scratch_make(&v->from);
    heddle_map_init(&v->home, &v->from);
    heddle_map_init(&v->task, &v->from);
    v->face.own = v;
    return v;
}

void heddle_nn_view_destroy(struct heddle_nn_view *face)
{
    struct view *v;
    struct heddle_allocator from;

    if (face == NULL)
        return;
    v = face->own;
    from = v->from;
    heddle_map_fini(&v->home);
    heddle_map_fini(&v->task);
    heddle_scratch_drop(&v->mem);
    heddle_free(&from, v, sizeof(*v));
}

heddle_status heddle_nn_view_create(heddle_nn *net, const struct heddle_nn_tensor *input,
                                    unsigned ninputs, const struct heddle_nn_opts *opts,
                                    struct heddle_nn_view **out)
{
    struct heddle_nn_plan_info info = {.size = sizeof(info)};
    struct heddle_nn_opts o;
    heddle_status st = HEDDLE_ENOMEM;
    struct nn_plan *p;
    struct view *v;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_nn_opts, &o, opts));
    HEDDLE_CHECK(out != NULL);
    HEDDLE_TRY(heddle_nn_get_plan(net, input, ninputs, opts, &info));
    if (!info.is_static)
        return heddle_why(o.why, o.why_bytes, HEDDLE_ENOSYS,
                          "%s: shapes depend on data, so the operators run one after another as "
                          "the file has them",
                          net->model->path);
    p = view_plan(net, input);
    v = view_new(net);
    if (v != NULL && p != NULL) {
        v->p = p;
        v->face.arena_bytes = info.arena_bytes;
        v->face.peak_bytes = info.peak_bytes;
        v->face.flops = info.flops;
        st = view_fill(v);
        v->p = NULL;
    }
    if (p != NULL) {
        heddle_mutex_lock(&net->lock);
        p->nrefs--;
        heddle_mutex_unlock(&net->lock);
    }
    if (st == HEDDLE_OK) {
        *out = &v->face;
        return st;
    }
    heddle_nn_view_destroy(v != NULL ? &v->face : NULL);
    return heddle_why(o.why, o.why_bytes, st, "no memory for the view of a network");
}
