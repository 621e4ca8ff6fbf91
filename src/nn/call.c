/* SPDX-License-Identifier: BSD-3-Clause */
/* call: what functions of operators ask their call for, and the checks before them. */
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"
#include "nn/nn.h"

heddle_status heddle_nn_fail(struct nn_call *c, heddle_status st, const char *fmt, ...)
{
    char buf[300];
    struct heddle_text t;
    va_list ap;

    heddle_text_init(&t, buf, sizeof(buf));
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return heddle_why(c->why, c->why_bytes, st, "node '%s' (%s): %s", c->node->name,
                      c->node->op->name, buf);
}

/* --- attributes --------------------------------------------------------------- */

const struct heddle_onnx_attr *heddle_nn_attr(const struct nn_call *c, const char *name)
{
    for (size_t i = 0; i < c->node->nattrs; i++)
        if (strcmp(c->node->attr[i].name, name) == 0)
            return &c->node->attr[i];
    return NULL;
}

bool heddle_nn_has(const struct nn_call *c, const char *name)
{
    return heddle_nn_attr(c, name) != NULL;
}

int64_t heddle_nn_int(const struct nn_call *c, const char *name, int64_t absent)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, name);

    return a != NULL ? a->i : absent;
}

double heddle_nn_float(const struct nn_call *c, const char *name, double absent)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, name);

    return a != NULL ? (double)a->f : absent;
}

const int64_t *heddle_nn_ints(const struct nn_call *c, const char *name, size_t *n_out)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, name);

    *n_out = a != NULL ? a->nints : 0;
    return a != NULL ? a->ints : NULL;
}

const float *heddle_nn_floats(const struct nn_call *c, const char *name, size_t *n_out)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, name);

    *n_out = a != NULL ? a->nfloats : 0;
    return a != NULL ? a->floats : NULL;
}

bool heddle_nn_is_text(const struct nn_call *c, const char *name, const char *absent,
                       const char *text)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, name);
    const size_t n = strlen(text);

    if (a == NULL)
        return strcmp(absent, text) == 0;
    return a->s.len == n && memcmp(a->s.ptr, text, n) == 0;
}

/* --- operands ----------------------------------------------------------------- */

bool heddle_nn_has_in(const struct nn_call *c, uint32_t i)
{
    return i < c->nin && c->in[i].kind != NN_ABSENT;
}

bool heddle_nn_wants(const struct nn_call *c, uint32_t i)
{
    return i < c->nout && c->node->out[i] != NN_NONE;
}

heddle_status heddle_nn_axis(struct nn_call *c, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "axis %lld of %d dimensions", (long long)axis,
                              rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return HEDDLE_OK;
}

heddle_status heddle_nn_list(struct nn_call *c, uint32_t i, int64_t *list, size_t max,
                             size_t *n_out)
{
    const struct nn_value *v = &c->in[i];
    size_t n;

    *n_out = 0;
    if (!heddle_nn_has_in(c, i))
        return HEDDLE_OK;
    *n_out = SIZE_MAX;
    if (v->data == NULL || !heddle_nn_is_concrete(&v->shape))
        return HEDDLE_OK;
    n = heddle_nn_count(&v->shape);
    if (v->shape.rank > 1 || n > max)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u is no list of at most %zu numbers", i,
                              max);
    for (size_t k = 0; k < n; k++)
        list[k] = heddle_nn_get_i64(v->type, v->data, k);
    *n_out = n;
    return HEDDLE_OK;
}

/* --- memory ------------------------------------------------------------------- */

static void *call_take(struct nn_call *c, struct heddle_scratch *mem, size_t n, size_t bytes)
{
    void *p = heddle_scratch_get(mem, n, bytes);

    if (p == NULL)
        (void)heddle_nn_fail(c, HEDDLE_ENOMEM, "no memory");
    return p;
}

void *heddle_nn_temp(struct nn_call *c, size_t n, size_t bytes)
{
    return call_take(c, c->run->temp, n, bytes);
}

void *heddle_nn_keep(struct nn_call *c, size_t n, size_t bytes)
{
    return call_take(c, c->run->keep, n, bytes);
}

void *heddle_nn_alloc(struct nn_call *c, size_t bytes)
{
    void *p = heddle_alloc_aligned(c->run->alloc, bytes, 64);

    if (p == NULL)
        (void)heddle_nn_fail(c, HEDDLE_ENOMEM, "no memory");
    return p;
}

heddle_status heddle_nn_out(struct nn_call *c, uint32_t i, unsigned type,
                            const struct nn_shape *shape)
{
    const struct nn_value v = heddle_nn_tensor(type, shape);
    const size_t bytes = heddle_nn_bytes(&v);

    if (bytes > SIZE_MAX / 2)
        return heddle_nn_fail(c, HEDDLE_EOVERFLOW, "the size of result %u overflows", i);
    c->out[i] = v;
    c->out[i].data = heddle_nn_keep(c, bytes, 1);
    return c->out[i].data == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

const double *heddle_nn_f64(struct nn_call *c, uint32_t i)
{
    const struct nn_value *v = &c->in[i];
    const size_t n = heddle_nn_count(&v->shape);
    double *p;

    if (v->type == NN_F64)
        return v->data;
    p = heddle_nn_temp(c, n, sizeof(*p));
    if (p != NULL)
        for (size_t k = 0; k < n; k++)
            p[k] = heddle_nn_get_f64(v->type, v->data, k);
    return p;
}

double *heddle_nn_f64_out(struct nn_call *c, uint32_t i)
{
    return heddle_nn_temp(c, heddle_nn_count(&c->out[i].shape), sizeof(double));
}

void heddle_nn_f64_done(struct nn_call *c, uint32_t i, const double *v)
{
    const size_t n = heddle_nn_count(&c->out[i].shape);

    for (size_t k = 0; k < n; k++)
        heddle_nn_put_f64(c->out[i].type, c->out[i].data, k, v[k]);
}

/* --- before the functions of a row ---------------------------------------------- */

static heddle_status call_types(struct nn_call *c)
{
    const struct nn_op *op = c->node->op;
    unsigned first = 0;

    for (uint32_t i = 0; i < c->nin; i++) {
        const struct nn_value *v = &c->in[i];
        const uint32_t mask = op->type[i < NN_TYPE_RULES ? i : NN_TYPE_RULES - 1];

        if (v->kind == NN_ABSENT)
            continue;
        if (mask != NN_M_ANY && (v->kind != NN_TENSOR || (mask & NN_M(v->type)) == 0))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u is of type %s", i,
                                  v->kind == NN_TENSOR ? heddle_nn_type_name(v->type)
                                                       : "sequence or optional");
        if (i < 32 && (op->same >> i & 1) != 0) {
            if (first != 0 && v->type != first)
                return heddle_nn_fail(c, HEDDLE_EINVAL,
                                      "operand %u is of type %s, another one of "
                                      "type %s",
                                      i, heddle_nn_type_name(v->type), heddle_nn_type_name(first));
            first = v->type;
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_rule(struct nn_call *c)
{
    const struct nn_op *op = c->node->op;

    HEDDLE_TRY(call_types(c));
    if (op->shape != NULL)
        return op->shape(c);
    c->out[0] = c->in[0];
    c->out[0].data = NULL;
    return HEDDLE_OK;
}
