/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm: layer and RMS normalisation written in their parts, along the last axis.
 *
 *     d = x - mean(x)   (RMS: d = x)      unit = d / sqrt(mean(d d) + eps)
 *     unit scale + shift                  shift is optional, RMS has none
 *
 * Exporters write d d as Pow or Mul, the division as Div, or as Reciprocal (or 1 / ...) and Mul,
 * and some compute d twice.
 */
#include <math.h>
#include <string.h>

#include "nn/prepare/prepare.h"

struct norm {
    struct prep_change c;
    struct nn_task *root, *square, *minus; /* minus: NULL for RMS */
    struct nn_task *unit, *scaled, *last;
    int scale, shift; /* which operand; shift -1: none */
    double eps;
};

/* The mean along the last axis, which stays as a dimension of one element. */
static bool norm_is_mean(const struct nn_task *t)
{
    const struct nn_call c = {.node = t != NULL ? t->node : NULL};
    int64_t axis = 0;
    size_t n = 0;

    if (!heddle_prep_is(t, "ReduceMean") || heddle_nn_int(&c, "keepdims", 1) == 0)
        return false;
    if (t->node->op->nin_max > 1) {
        if (t->node->nin < 2 || t->in[1].data == NULL || heddle_nn_count(&t->in[1].shape) != 1)
            return false;
        axis = heddle_nn_get_i64(t->in[1].type, t->in[1].data, 0);
    } else {
        const int64_t *axes = heddle_nn_ints(&c, "axes", &n);

        if (n != 1)
            return false;
        axis = axes[0];
    }
    return t->in[0].shape.rank > 0 && (axis == -1 || axis == t->in[0].shape.rank - 1);
}

/* From the root back: the variance and what it is of. */
static bool norm_back(struct nn_prep *q, struct norm *m)
{
    struct nn_task *add = heddle_prep_maker(q, m->root, 0), *mean, *of;

    if (!heddle_prep_is(add, "Add") || !heddle_prep_reads(q, m->root, 0, add))
        return false;
    mean = heddle_prep_number(add, 1, &m->eps)   ? heddle_prep_maker(q, add, 0)
           : heddle_prep_number(add, 0, &m->eps) ? heddle_prep_maker(q, add, 1)
                                                 : NULL;
    if (!norm_is_mean(mean) || !(m->eps >= 0) || isinf(m->eps))
        return false;
    m->square = heddle_prep_maker(q, mean, 0);
    if (m->square == NULL || !heddle_prep_reads(q, mean, 0, m->square) ||
        !heddle_prep_is_f32(m->square))
        return false;
    if (!(heddle_prep_is(m->square, "Pow") && heddle_prep_is_number(m->square, 1, 2)) &&
        !(heddle_prep_is(m->square, "Mul") && heddle_prep_same(q, m->square, 0, m->square, 1)))
        return false;
    m->minus = heddle_prep_maker(q, m->square, 0);
    of = heddle_prep_is(m->minus, "Sub") && heddle_prep_reads(q, m->square, 0, m->minus)
             ? heddle_prep_maker(q, m->minus, 1)
             : NULL;
    if (!norm_is_mean(of) || !heddle_prep_reads(q, m->minus, 1, of) ||
        !heddle_prep_same(q, m->minus, 0, of, 0)) {
        m->minus = NULL;
        of = NULL;
    }
    return heddle_prep_add(&m->c, m->root) && heddle_prep_add(&m->c, add) &&
           heddle_prep_add(&m->c, mean) && heddle_prep_add(&m->c, m->square) &&
           (of == NULL || heddle_prep_add(&m->c, of)) &&
           (m->minus == NULL || heddle_prep_add(&m->c, m->minus));
}

/* Is operand k of t what was squared, or the same difference computed again? */
static bool norm_is_centred(struct nn_prep *q, struct norm *m, struct nn_task *t, uint32_t k)
{
    struct nn_task *again = heddle_prep_maker(q, t, k);

    if (heddle_prep_same(q, t, k, m->square, 0))
        return true;
    return m->minus != NULL && heddle_prep_is(again, "Sub") && heddle_prep_reads(q, t, k, again) &&
           heddle_prep_same(q, again, 0, m->minus, 0) &&
           heddle_prep_same(q, again, 1, m->minus, 1) && heddle_prep_add(&m->c, again);
}

/* From the root on: the division, the scale, the shift. */
static bool norm_on(struct nn_prep *q, struct norm *m)
{
    struct nn_task *t = heddle_prep_only(q, m->root);
    const struct nn_task *by = m->root;
    const struct nn_shape *s = &m->square->in[0].shape;
    const size_t n = (size_t)s->dim[s->rank - 1];
    struct nn_shape one = *s;
    int k;

    one.dim[s->rank - 1] = 1;
    if (!heddle_nn_same_shape(&m->root->out[0].shape, &one))
        return false;

    if (heddle_prep_is(t, "Reciprocal") ||
        (heddle_prep_is(t, "Div") && heddle_prep_is_number(t, 0, 1))) {
        if (!heddle_prep_add(&m->c, t))
            return false;
        by = t;
        t = heddle_prep_only(q, t);
        k = heddle_prep_is(t, "Mul") ? heddle_prep_other(q, t, by) : -1;
    } else {
        k = heddle_prep_is(t, "Div") && heddle_prep_reads(q, t, 1, by) ? 0 : -1;
    }
    if (k < 0 || !norm_is_centred(q, m, t, (uint32_t)k) || !heddle_prep_add(&m->c, t))
        return false;
    m->unit = t;
    t = heddle_prep_only(q, t);
    m->scale = heddle_prep_is(t, "Mul") ? heddle_prep_other(q, t, m->unit) : -1;
    if (m->scale < 0 || !heddle_prep_is_row(t, (uint32_t)m->scale, n) || !heddle_prep_add(&m->c, t))
        return false;
    m->scaled = m->last = t;
    t = heddle_prep_only(q, t);
    m->shift =
        m->minus != NULL && heddle_prep_is(t, "Add") ? heddle_prep_other(q, t, m->scaled) : -1;
    if (m->shift >= 0 && heddle_prep_is_row(t, (uint32_t)m->shift, n) && heddle_prep_add(&m->c, t))
        m->last = t;
    else
        m->shift = -1;
    return heddle_nn_same_shape(&m->last->out[0].shape, s);
}

static heddle_status norm_replace(struct nn_prep *q, struct norm *m)
{
    struct heddle_onnx_attr *attr = heddle_prep_keep(q, 2, sizeof(*attr));

    if (attr == NULL)
        return HEDDLE_ENOMEM;
    attr[0] = (struct heddle_onnx_attr){
        .name = "epsilon", .type = HEDDLE_ONNX_ATTR_FLOAT, .f = (float)m->eps};
    attr[1] = (struct heddle_onnx_attr){.name = "axis", .type = HEDDLE_ONNX_ATTR_INT, .i = -1};
    m->c.attr = attr;
    m->c.nattrs = 2;
    m->c.op = heddle_nn_find_op("", m->minus != NULL ? "LayerNormalization" : "RMSNormalization",
                                23, NULL);
    m->c.in[0] = (struct prep_operand){m->minus != NULL ? m->minus : m->square, 0};
    m->c.in[1] = (struct prep_operand){m->scaled, (uint32_t)m->scale};
    m->c.nin = 2;
    if (m->shift >= 0)
        m->c.in[m->c.nin++] = (struct prep_operand){m->last, (uint32_t)m->shift};
    return heddle_prep_replace(q, &m->c, m->last);
}

static heddle_status norm_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct norm m = {.root = prep_task(q, i)};

        if (heddle_prep_is(m.root, "Sqrt") && heddle_prep_is_f32(m.root) && norm_back(q, &m) &&
            norm_on(q, &m) && heddle_prep_is_f32(m.last) && heddle_prep_closed(q, &m.c, m.last))
            HEDDLE_TRY(norm_replace(q, &m));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_norm = {
    "norm", "layer and RMS normalisation in parts become one operator", norm_run};
