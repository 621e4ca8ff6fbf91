/* SPDX-License-Identifier: BSD-3-Clause */
/* node: a node of a file becomes a node of a graph, or the nodes of a function. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "nn/load.h"

static const char *node_domain(const char *d)
{
    return strcmp(d, "ai.onnx") == 0 ? "" : d;
}

static int64_t node_opset(const struct load_scope *s, const char *domain)
{
    for (size_t i = 0; i < s->nopsets; i++)
        if (strcmp(node_domain(s->opset[i].domain), domain) == 0)
            return s->opset[i].version;
    return 1;
}

/* The name in sentences: the file's, or the operator and the number of the node. */
static const char *node_name(struct loader *l, const struct load_scope *s,
                             const struct heddle_onnx_node *n)
{
    char buf[120];
    struct heddle_text t;

    if (n->name[0] != '\0')
        return n->name;
    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_add(&t, "%s.%u", n->op_type, s->graph->nnodes);
    return heddle_scratch_text(&l->model->mem, buf);
}

static const struct heddle_onnx_function *node_function(const struct loader *l,
                                                        const struct heddle_onnx_node *n)
{
    for (size_t i = 0; i < l->file->nfunctions; i++) {
        const struct heddle_onnx_function *f = &l->file->function[i];

        if (strcmp(f->name, n->op_type) == 0 &&
            strcmp(node_domain(f->domain), node_domain(n->domain)) == 0 &&
            strcmp(f->overload, n->overload) == 0)
            return f;
    }
    return NULL;
}

/* --- attributes ----------------------------------------------------------------- */

static const struct heddle_onnx_attr *attr_find(const struct heddle_onnx_attr *a, size_t n,
                                                const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i].name, name) == 0)
            return &a[i];
    return NULL;
}

/* What an attribute of a function's body refers to: the caller's, or the default. */
static const struct heddle_onnx_attr *attr_refer(const struct load_call *call, const char *name)
{
    const struct heddle_onnx_attr *a = attr_find(call->attr, call->nattrs, name);

    return a != NULL ? a : attr_find(call->fn->attr, call->fn->nattrs, name);
}

/* The attributes of a node, with references replaced; those that refer to nothing are absent. */
static heddle_status node_attrs(struct loader *l, const struct load_scope *s,
                                const struct heddle_onnx_node *n,
                                const struct heddle_onnx_attr **out, size_t *n_out)
{
    struct heddle_onnx_attr *a;
    size_t have = 0;
    bool has_refs = false;

    for (size_t i = 0; i < n->nattrs; i++)
        has_refs |= n->attr[i].ref[0] != '\0';
    *out = n->attr;
    *n_out = n->nattrs;
    if (!has_refs || s->call == NULL)
        return HEDDLE_OK;
    a = heddle_scratch_get(&l->model->mem, n->nattrs, sizeof(*a));
    if (a == NULL)
        return heddle_nn_load_memory_fail(l);
    for (size_t i = 0; i < n->nattrs; i++) {
        const struct heddle_onnx_attr *from = &n->attr[i];

        if (from->ref[0] != '\0')
            from = attr_refer(s->call, from->ref);
        if (from == NULL)
            continue;
        a[have] = *from;
        a[have++].name = n->attr[i].name;
    }
    *out = a;
    *n_out = have;
    return HEDDLE_OK;
}

static const uint8_t attr_types[] = {
    [NN_INT] = HEDDLE_ONNX_ATTR_INT,
    [NN_FLOAT] = HEDDLE_ONNX_ATTR_FLOAT,
    [NN_STRING] = HEDDLE_ONNX_ATTR_STRING,
    [NN_INTS] = HEDDLE_ONNX_ATTR_INTS,
    [NN_FLOATS] = HEDDLE_ONNX_ATTR_FLOATS,
    [NN_STRINGS] = HEDDLE_ONNX_ATTR_STRINGS,
    [NN_TENSOR_ATTR] = HEDDLE_ONNX_ATTR_TENSOR,
    [NN_GRAPH] = HEDDLE_ONNX_ATTR_GRAPH,
    [NN_SPARSE] = HEDDLE_ONNX_ATTR_SPARSE,
    [NN_TYPE] = HEDDLE_ONNX_ATTR_TYPE,
};

static heddle_status node_check_attrs(struct loader *l, const struct nn_node *n)
{
    static const struct nn_attr_rule none = {NULL, NN_ATTR_END, false};
    const struct nn_attr_rule *rules = n->op->attrs != NULL ? n->op->attrs : &none, *r;

    for (size_t i = 0; i < n->nattrs; i++) {
        const struct heddle_onnx_attr *a = &n->attr[i];

        for (r = rules; r->kind != NN_ATTR_END && strcmp(r->name, a->name) != 0;)
            r++;
        if (r->kind == NN_ATTR_END)
            return heddle_nn_load_fail(l, HEDDLE_EINVAL,
                                       "node '%s' (%s): the operator of opset %u has no "
                                       "attribute '%s'",
                                       n->name, n->op->name, n->opset, a->name);
        if (attr_types[r->kind] != a->type)
            return heddle_nn_load_fail(l, HEDDLE_EINVAL,
                                       "node '%s' (%s): attribute '%s' is of the wrong type",
                                       n->name, n->op->name, a->name);
    }
    for (r = rules; r->kind != NN_ATTR_END; r++)
        if (r->is_required && attr_find(n->attr, n->nattrs, r->name) == NULL)
            return heddle_nn_load_fail(l, HEDDLE_EINVAL,
                                       "node '%s' (%s): attribute '%s' is missing", n->name,
                                       n->op->name, r->name);
    return HEDDLE_OK;
}

/* --- operands -------------------------------------------------------------------- */

static heddle_status node_check_counts(struct loader *l, const struct nn_node *n)
{
    const struct nn_op *op = n->op;
    const unsigned most = op->nout_max > 0 ? op->nout_max : 1;
    const unsigned least = op->nout_max > 0 ? op->nout_min : 1;

    for (uint32_t i = 0; i < op->nin_min; i++)
        if (i >= n->nin || n->in[i] == NN_NONE)
            return heddle_nn_load_fail(l, HEDDLE_EINVAL, "node '%s' (%s): operand %u is missing",
                                       n->name, op->name, i);
    if ((op->nin_max != NN_MANY && n->nin > op->nin_max) || n->nout < least ||
        (most != NN_MANY && n->nout > most))
        return heddle_nn_load_fail(l, HEDDLE_EINVAL, "node '%s' (%s): %u operands and %u results",
                                   n->name, op->name, n->nin, n->nout);
    return HEDDLE_OK;
}

static heddle_status node_inputs(struct loader *l, struct load_scope *s, const char *name,
                                 const struct heddle_onnx_node *n, uint32_t *in)
{
    for (size_t i = 0; i < n->ninputs; i++) {
        in[i] = NN_NONE;
        if (n->input[i][0] == '\0')
            continue;
        HEDDLE_TRY(heddle_nn_scope_find(l, s, n->input[i], &in[i]));
        if (in[i] == NN_NONE)
            return heddle_nn_load_fail(l, HEDDLE_EFORMAT,
                                       "node '%s' (%s) reads '%s', which nothing before it makes",
                                       name, n->op_type, n->input[i]);
    }
    return HEDDLE_OK;
}

static heddle_status node_subs(struct loader *l, struct load_scope *s, struct nn_node *n)
{
    struct nn_graph **sub;

    for (size_t i = 0; i < n->nattrs; i++)
        n->nsubs += n->attr[i].type == HEDDLE_ONNX_ATTR_GRAPH;
    if (n->nsubs == 0)
        return HEDDLE_OK;
    sub = heddle_scratch_get(&l->model->mem, n->nsubs, sizeof(struct nn_graph *));
    if (sub == NULL)
        return heddle_nn_load_memory_fail(l);
    n->nsubs = 0;
    for (size_t i = 0; i < n->nattrs; i++) {
        if (n->attr[i].type != HEDDLE_ONNX_ATTR_GRAPH)
            continue;
        if (n->attr[i].g == NULL)
            return heddle_nn_load_fail(l, HEDDLE_EFORMAT, "node '%s' has an empty graph", n->name);
        HEDDLE_TRY(heddle_nn_load_graph(l, n->attr[i].g, s, &sub[n->nsubs++]));
    }
    n->sub = sub;
    return HEDDLE_OK;
}

static heddle_status node_find_op(struct loader *l, const char *name,
                                  const struct heddle_onnx_node *n, int64_t opset,
                                  const struct nn_op **out)
{
    const char *domain = node_domain(n->domain), *dot = domain[0] != '\0' ? "." : "";
    unsigned from = 0;

    *out = heddle_nn_find_op(domain, n->op_type, opset, &from);
    if (*out != NULL)
        return HEDDLE_OK;
    if (from > 0)
        return heddle_nn_load_fail(l, HEDDLE_ENOSYS,
                                   "node '%s': operator %s%s%s is known from opset %u on, and "
                                   "this is opset %lld",
                                   name, domain, dot, n->op_type, from, (long long)opset);
    return heddle_nn_load_fail(l, HEDDLE_ENOSYS, "node '%s': there is no operator %s%s%s", name,
                               domain, dot, n->op_type);
}

/* --- functions -------------------------------------------------------------------- */

static heddle_status node_inline(struct loader *l, struct load_scope *s,
                                 const struct heddle_onnx_function *fn,
                                 const struct heddle_onnx_node *n, const char *name)
{
    struct load_call call = {.fn = fn};
    struct load_scope in;
    heddle_status st = HEDDLE_OK;
    uint32_t v = NN_NONE;

    if (s->depth >= LOAD_DEPTH)
        return heddle_nn_load_fail(l, HEDDLE_EFORMAT, "function '%s' calls itself, or too deep",
                                   fn->name);
    if (n->ninputs > fn->ninputs || n->noutputs > fn->noutputs)
        return heddle_nn_load_fail(l, HEDDLE_EINVAL, "node '%s' gives function '%s' too much", name,
                                   fn->name);
    HEDDLE_TRY(node_attrs(l, s, n, &call.attr, &call.nattrs));
    heddle_nn_scope_init(l, &in, s->graph);
    in.call = &call;
    in.opset = fn->opset;
    in.nopsets = fn->nopsets;
    in.depth = s->depth + 1;
    for (size_t i = 0; i < n->ninputs && st == HEDDLE_OK; i++) {
        if (n->input[i][0] == '\0')
            continue;
        st = heddle_nn_scope_find(l, s, n->input[i], &v);
        if (st == HEDDLE_OK && v == NN_NONE)
            st = heddle_nn_load_fail(l, HEDDLE_EFORMAT,
                                     "node '%s' reads '%s', which nothing "
                                     "before it makes",
                                     name, n->input[i]);
        if (st == HEDDLE_OK)
            st = heddle_nn_scope_bind(l, &in, fn->input[i], v);
    }
    for (size_t i = 0; i < fn->nnodes && st == HEDDLE_OK; i++)
        st = heddle_nn_load_node(l, &in, &fn->node[i]);
    for (size_t i = 0; i < n->noutputs && st == HEDDLE_OK; i++) {
        if (n->output[i][0] == '\0')
            continue;
        st = heddle_nn_scope_find(l, &in, fn->output[i], &v);
        if (st == HEDDLE_OK && v == NN_NONE)
            st = heddle_nn_load_fail(l, HEDDLE_EFORMAT, "function '%s' does not make '%s'",
                                     fn->name, fn->output[i]);
        if (st == HEDDLE_OK)
            st = heddle_nn_scope_bind(l, s, n->output[i], v);
    }
    heddle_map_fini(&in.name);
    return st;
}

heddle_status heddle_nn_load_node(struct loader *l, struct load_scope *s,
                                  const struct heddle_onnx_node *file)
{
    const struct heddle_onnx_function *fn = node_function(l, file);
    const int64_t opset = node_opset(s, node_domain(file->domain));
    struct heddle_scratch *mem = &l->model->mem;
    struct nn_node n = {.name = node_name(l, s, file)};
    uint32_t *in, *out;

    if (n.name == NULL)
        return heddle_nn_load_memory_fail(l);
    if (fn != NULL)
        return node_inline(l, s, fn, file, n.name);
    HEDDLE_TRY(node_find_op(l, n.name, file, opset, &n.op));
    n.opset = (uint16_t)(opset > UINT16_MAX ? UINT16_MAX : opset);
    in = heddle_scratch_get(mem, file->ninputs, sizeof(*in));
    out = heddle_scratch_get(mem, file->noutputs, sizeof(*out));
    if (in == NULL || out == NULL)
        return heddle_nn_load_memory_fail(l);
    HEDDLE_TRY(node_attrs(l, s, file, &n.attr, &n.nattrs));
    HEDDLE_TRY(node_inputs(l, s, n.name, file, in));
    n.nin = (uint32_t)file->ninputs;
    n.nout = (uint32_t)file->noutputs;
    n.in = in;
    HEDDLE_TRY(node_check_counts(l, &n));
    HEDDLE_TRY(node_check_attrs(l, &n));
    HEDDLE_TRY(node_subs(l, s, &n));
    if (!heddle_nn_grow(mem, &s->graph->node, &s->graph->cap_nodes, s->graph->nnodes, sizeof(n)))
        return heddle_nn_load_memory_fail(l);
    for (size_t i = 0; i < file->noutputs; i++) {
        out[i] = NN_NONE;
        if (file->output[i][0] == '\0')
            continue;
        HEDDLE_TRY(heddle_nn_new_value(l, s->graph, file->output[i], &out[i]));
        s->graph->value[out[i]].maker = s->graph->nnodes;
        HEDDLE_TRY(heddle_nn_scope_bind(l, s, file->output[i], out[i]));
    }
    n.out = out;
    s->graph->node[s->graph->nnodes++] = n;
    return HEDDLE_OK;
}
