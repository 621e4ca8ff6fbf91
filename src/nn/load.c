/* SPDX-License-Identifier: BSD-3-Clause */
/* load: a file becomes a model. */
#include "nn/load.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"

enum { LOAD_OPSET_MAX = 28 };

heddle_status heddle_nn_load_fail(struct loader *l, heddle_status st, const char *fmt, ...)
{
    char buf[400];
    struct heddle_text t;
    va_list ap;

    heddle_text_init(&t, buf, sizeof(buf));
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return heddle_why(l->opts->why, l->opts->why_bytes, st, "%s: %s", l->model->path, buf);
}

heddle_status heddle_nn_load_memory_fail(struct loader *l)
{
    return heddle_nn_load_fail(l, HEDDLE_ENOMEM, "no memory to load it");
}

/* --- declared types ---------------------------------------------------------------- */

/* A name of a dimension as a number below NN_UNKNOWN. */
static heddle_status load_symbol(struct loader *l, const char *name, int64_t *out)
{
    struct nn_model *m = l->model;
    uint32_t i = 0;

    while (i < m->nsymbols && strcmp(m->symbol[i], name) != 0)
        i++;
    if (i == m->nsymbols) {
        if (!heddle_nn_grow(&m->mem, &m->symbol, &m->cap_symbols, i, sizeof(*m->symbol)))
            return heddle_nn_load_memory_fail(l);
        ((const char **)(uintptr_t)m->symbol)[i] = name;
        m->nsymbols++;
    }
    *out = -2 - (int64_t)i;
    return HEDDLE_OK;
}

static heddle_status load_shape(struct loader *l, const struct heddle_onnx_shape *s,
                                struct nn_shape *out)
{
    out->rank = -1;
    if (s == NULL)
        return HEDDLE_OK;
    if (s->ndims > NN_DIMS)
        return heddle_nn_load_fail(l, HEDDLE_ENOSYS, "a value has %zu dimensions, more than %d",
                                   s->ndims, NN_DIMS);
    out->rank = (int)s->ndims;
    for (size_t i = 0; i < s->ndims; i++) {
        out->dim[i] = s->dim[i].value >= 0 ? s->dim[i].value : NN_UNKNOWN;
        if (s->dim[i].value < 0 && s->dim[i].param[0] != '\0')
            HEDDLE_TRY(load_symbol(l, s->dim[i].param, &out->dim[i]));
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_load_type(struct loader *l, const struct heddle_onnx_value_type *t,
                                  struct nn_value *out)
{
    const struct heddle_onnx_elem_type *e;

    memset(out, 0, sizeof(*out));
    out->shape.rank = -1;
    if (t == NULL)
        return HEDDLE_OK;
    if (t->tensor != NULL) {
        out->kind = NN_TENSOR;
        out->type = t->tensor->type > 0 && t->tensor->type < NN_NTYPES ? (uint8_t)t->tensor->type
                                                                       : NN_NOTYPE;
        return load_shape(l, t->tensor->shape, &out->shape);
    }
    e = t->sequence != NULL ? t->sequence : t->optional;
    if (e == NULL)
        return HEDDLE_OK; /* a map or a sparse tensor: what uses it will say so */
    HEDDLE_TRY(heddle_nn_load_type(l, e->elem, out));
    out->kind = t->sequence != NULL ? NN_SEQUENCE : NN_OPTIONAL;
    return HEDDLE_OK;
}

/* --- graphs -------------------------------------------------------------------------- */

static heddle_status load_inits(struct loader *l, const struct heddle_onnx_graph *file,
                                struct load_scope *s)
{
    uint32_t v;

    for (size_t i = 0; i < file->ninits; i++) {
        const struct heddle_onnx_tensor *t = &file->init[i];
        heddle_status st;

        HEDDLE_TRY(heddle_nn_new_value(l, s->graph, t->name, &v));
        st = heddle_nn_from_onnx(&l->model->mem, t, &s->graph->value[v].constant);
        if (st == HEDDLE_ENOMEM)
            return heddle_nn_load_memory_fail(l);
        if (st != HEDDLE_OK)
            return heddle_nn_load_fail(l, st, "tensor '%s' has no data, or more than %d dimensions",
                                       t->name, NN_DIMS);
        if (s->graph->value[v].constant.data != t->data) /* a copy, aligned or unpacked */
            heddle_onnx_give_back(l->model->file, t->data, t->bytes);
        s->graph->value[v].declared = s->graph->value[v].constant;
        s->graph->value[v].declared.data = NULL;
        HEDDLE_TRY(heddle_nn_scope_bind(l, s, t->name, v));
    }
    if (file->nsparse_inits > 0)
        return heddle_nn_load_fail(l, HEDDLE_ENOSYS, "it has sparse tensors");
    return HEDDLE_OK;
}

/* Inputs that are constants too (files of the first versions list all of them) are constants. */
static heddle_status load_inputs(struct loader *l, const struct heddle_onnx_graph *file,
                                 struct load_scope *s)
{
    struct nn_graph *g = s->graph;
    uint32_t v;

    for (size_t i = 0; i < file->ninputs; i++) {
        const struct heddle_onnx_value_info *in = &file->input[i];
        bool is_init = false;

        for (size_t k = 0; k < file->ninits; k++)
            is_init |= strcmp(file->init[k].name, in->name) == 0;
        if (is_init)
            continue;
        HEDDLE_TRY(heddle_nn_new_value(l, g, in->name, &v));
        HEDDLE_TRY(heddle_nn_load_type(l, in->type, &g->value[v].declared));
        HEDDLE_TRY(heddle_nn_scope_bind(l, s, in->name, v));
        if (!heddle_nn_grow(&l->model->mem, &g->input, &g->cap_inputs, g->ninputs,
                            sizeof(*g->input)))
            return heddle_nn_load_memory_fail(l);
        g->input[g->ninputs++] = v;
    }
    return HEDDLE_OK;
}

static heddle_status load_outputs(struct loader *l, const struct heddle_onnx_graph *file,
                                  struct load_scope *s)
{
    struct nn_graph *g = s->graph;
    struct nn_value declared;
    uint32_t v;

    for (size_t i = 0; i < file->noutputs; i++) {
        const struct heddle_onnx_value_info *o = &file->output[i];

        HEDDLE_TRY(heddle_nn_scope_find(l, s, o->name, &v));
        if (v == NN_NONE)
            return heddle_nn_load_fail(l, HEDDLE_EFORMAT, "nothing makes the result '%s'", o->name);
        HEDDLE_TRY(heddle_nn_load_type(l, o->type, &declared));
        if (g->value[v].declared.kind == NN_ABSENT)
            g->value[v].declared = declared;
        if (!heddle_nn_grow(&l->model->mem, &g->output, &g->cap_outputs, g->noutputs,
                            sizeof(*g->output)))
            return heddle_nn_load_memory_fail(l);
        g->output[g->noutputs++] = v;
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_load_graph(struct loader *l, const struct heddle_onnx_graph *file,
                                   struct load_scope *around, struct nn_graph **out)
{
    struct nn_graph *g = heddle_scratch_get(&l->model->mem, 1, sizeof(*g));
    struct load_scope s;
    heddle_status st;

    if (g == NULL)
        return heddle_nn_load_memory_fail(l);
    g->name = file->name;
    g->file = l->model->file;
    heddle_nn_scope_init(l, &s, g);
    s.around = around;
    s.call = around != NULL ? around->call : NULL;
    s.opset = around != NULL ? around->opset : l->file->opset;
    s.nopsets = around != NULL ? around->nopsets : l->file->nopsets;
    s.depth = around != NULL ? around->depth + 1 : 0;
    st = s.depth < LOAD_DEPTH ? HEDDLE_OK
                              : heddle_nn_load_fail(l, HEDDLE_EFORMAT,
                                                    "graphs are in graphs too "
                                                    "deep");
    if (st == HEDDLE_OK)
        st = load_inits(l, file, &s);
    if (st == HEDDLE_OK)
        st = load_inputs(l, file, &s);
    for (size_t i = 0; i < file->nnodes && st == HEDDLE_OK; i++)
        st = heddle_nn_load_node(l, &s, &file->node[i]);
    if (st == HEDDLE_OK)
        st = load_outputs(l, file, &s);
    heddle_map_fini(&s.name);
    if (st == HEDDLE_OK)
        *out = g;
    return st;
}

/* --- models ---------------------------------------------------------------------------- */

static heddle_status load_versions(struct loader *l)
{
    for (size_t i = 0; i < l->file->nopsets; i++) {
        const struct heddle_onnx_opset *o = &l->file->opset[i];

        if (o->domain[0] != '\0' && strcmp(o->domain, "ai.onnx") != 0)
            continue;
        l->model->opset = o->version;
        if (o->version > LOAD_OPSET_MAX)
            return heddle_nn_load_fail(l, HEDDLE_EVERSION,
                                       "it uses opset %lld, and %d is the newest we know",
                                       (long long)o->version, LOAD_OPSET_MAX);
    }
    return HEDDLE_OK;
}

static heddle_status load_model(const char *path, const struct nn_opts *o,
                                struct heddle_onnx_file *file, struct nn_model **out)
{
    struct nn_model *m = heddle_zalloc(o->alloc, 1, sizeof(*m));
    struct loader l = {.model = m, .file = file->model, .opts = o};
    heddle_status st = HEDDLE_OK;

    if (m == NULL) {
        heddle_onnx_close(file);
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "%s: no memory to load it", path);
    }
    m->alloc = o->alloc;
    m->file = file;
    m->mem = heddle_scratch_make(o->alloc);
    m->path = path; /* until there is memory */
    path = heddle_scratch_text(&m->mem, path);
    if (path == NULL)
        st = heddle_nn_load_memory_fail(&l);
    else
        m->path = path;
    if (st == HEDDLE_OK)
        st = load_versions(&l);
    if (st == HEDDLE_OK)
        st = heddle_nn_load_graph(&l, file->model->graph, NULL, &m->graph);
    if (st != HEDDLE_OK) {
        heddle_nn_unload(m);
        return st;
    }
    *out = m;
    return HEDDLE_OK;
}

heddle_status heddle_nn_load(const char *path, const struct nn_opts *opts, struct nn_model **out)
{
    const struct nn_opts none = {0}, *o = opts != NULL ? opts : &none;
    const struct heddle_onnx_opts fo = {o->alloc, o->why, o->why_bytes};
    struct heddle_onnx_file *file = NULL;

    HEDDLE_TRY(heddle_onnx_open(path, HEDDLE_ONNX_MODEL, &fo, &file));
    return load_model(path, o, file, out);
}

heddle_status heddle_nn_load_memory(const void *ptr, size_t bytes, const char *name,
                                    const struct nn_opts *opts, struct nn_model **out)
{
    const struct nn_opts none = {0}, *o = opts != NULL ? opts : &none;
    const struct heddle_onnx_opts fo = {o->alloc, o->why, o->why_bytes};
    struct heddle_onnx_file *file = NULL;

    HEDDLE_TRY(heddle_onnx_decode(ptr, bytes, name, HEDDLE_ONNX_MODEL, &fo, &file));
    return load_model(name, o, file, out);
}

void heddle_nn_unload(struct nn_model *m)
{
    const struct heddle_allocator *a;

    if (m == NULL)
        return;
    a = m->alloc;
    heddle_onnx_close(m->file);
    heddle_scratch_drop(&m->mem);
    heddle_free(a, m, sizeof(*m));
}
