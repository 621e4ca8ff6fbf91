/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quantize: operators on floats between bytes become operators on bytes.
 *
 *     DequantizeLinear, Conv or MatMul (of constant, dequantised weights), [Relu], QuantizeLinear
 *     DequantizeLinear of two operands, Add, [Relu], QuantizeLinear
 *
 * Sums of products become exact integers, where those of floats were rounded: a result that lay
 * within that rounding of the middle between two bytes may be the other one. Relu of a product goes
 * where its bound, the zero point, is the least byte.
 */
#include <math.h>
#include <string.h>

#include "nn/op/quantize.h"
#include "nn/prepare/prepare.h"

struct quantize {
    struct prep_change c;
    struct nn_task *last, *relu, *t; /* what gives bytes; NULL or the Relu; what is between */
};

static struct nn_call quantize_call(const struct nn_task *t)
{
    return (struct nn_call){.node = t->node, .nin = t->node->nin, .in = t->in};
}

/* One constant scale and zero point, both there, for bytes. */
static bool quantize_desc(const struct nn_task *t, unsigned type, struct dnn_quant *out)
{
    const struct nn_call c = quantize_call(t);

    return t->node->nin == 3 && heddle_nn_has_in(&c, 2) && t->in[1].data != NULL &&
           heddle_nn_quant_desc(&c, type, 1, 2, out);
}

/* The task that makes operand k of t out of bytes. */
static struct nn_task *quantize_source(struct nn_prep *q, const struct nn_task *t, uint32_t k,
                                       struct dnn_quant *out)
{
    struct nn_task *d = heddle_prep_maker(q, t, k);

    return heddle_prep_is(d, "DequantizeLinear") && heddle_prep_reads(q, t, k, d) &&
                   quantize_desc(d, d->in[0].type, out)
               ? d
               : NULL;
}

/* --- sums of two --------------------------------------------------------------------- */

static void add_run(const void *state, const struct nn_args *a, size_t at, size_t n)
{
    heddle_dnn_qadd(state, (const char *)a->in[0] + at, (const char *)a->in[1] + at,
                    (char *)a->out[0] + at, n);
}

static heddle_status add_fast(struct nn_call *c, struct nn_step *out)
{
    return heddle_nn_point_step(c, add_run, c->node->own, sizeof(struct dnn_qadd), out);
}

static heddle_status add_ref(struct nn_call *c)
{
    heddle_dnn_qadd(c->node->own, c->in[0].data, c->in[1].data, c->out[0].data,
                    heddle_nn_count(&c->out[0].shape));
    return HEDDLE_OK;
}

static const struct nn_op add_op = {.name = "QuantizedAdd",
                                    .nin_min = 2,
                                    .nin_max = 2,
                                    .flags = NN_POINT,
                                    .inplace = 3,
                                    .ref = add_ref,
                                    .fast = add_fast};

static heddle_status quantize_add(struct nn_prep *q, struct quantize *z, const struct dnn_quant *y)
{
    struct dnn_qadd d = {.y = *y, .is_relu = z->relu != NULL}, *own;
    const struct nn_task *a = quantize_source(q, z->t, 0, &d.a),
                         *b = quantize_source(q, z->t, 1, &d.b);

    if (a == NULL || b == NULL || a->in[0].data != NULL || b->in[0].data != NULL ||
        !heddle_nn_same_shape(&a->in[0].shape, &z->last->out[0].shape) ||
        !heddle_nn_same_shape(&b->in[0].shape, &z->last->out[0].shape))
        return HEDDLE_OK;
    own = heddle_prep_keep(q, 1, sizeof(*own));
    if (own == NULL)
        return HEDDLE_ENOMEM;
    *own = d;
    z->c.in[0] = (struct prep_operand){a, 0};
    z->c.in[1] = (struct prep_operand){b, 0};
    z->c.nin = 2;
    z->c.own = own;
    z->c.op = &add_op;
    return heddle_prep_replace(q, &z->c, z->last);
}

/* --- products ------------------------------------------------------------------------ */

/* Weights that were bytes: signed ones with zero points of 0, one scale or one for each place of
 * dimension `along`. */
static struct nn_task *quantize_weights(struct nn_prep *q, const struct nn_task *t, int along)
{
    struct nn_task *w = heddle_prep_folded(q, t, 1);
    const struct nn_call c = w != NULL ? quantize_call(w) : (struct nn_call){.nin = 0};
    const struct nn_shape *s;

    if (!heddle_prep_is(w, "DequantizeLinear") || w->node->nin != 3 || !heddle_nn_has_in(&c, 2) ||
        w->in[0].type != NN_I8 || w->in[0].data == NULL || w->in[1].data == NULL ||
        w->in[1].type != NN_F32 || w->in[2].data == NULL || heddle_nn_int(&c, "block_size", 0) != 0)
        return NULL;
    s = &w->in[0].shape;
    for (size_t i = 0; i < heddle_nn_count(&w->in[2].shape); i++)
        if (heddle_nn_get_i64(NN_I8, w->in[2].data, i) != 0)
            return NULL;
    if (heddle_nn_count(&w->in[1].shape) != 1) {
        const int64_t axis = heddle_nn_int(&c, "axis", 1);

        if ((axis < 0 ? axis + s->rank : axis) != along)
            return NULL;
    }
    return heddle_nn_same_shape(s, &t->in[1].shape) ? w : NULL;
}

/* A bias that was integers in units of the scale of x times that of the weights. */
static struct nn_task *quantize_bias(struct nn_prep *q, const struct nn_task *t,
                                     const struct dnn_quant *x, const struct nn_task *w)
{
    struct nn_task *b = heddle_prep_folded(q, t, 2);
    const size_t nw = heddle_nn_count(&w->in[1].shape);
    size_t n;

    if (!heddle_prep_is(b, "DequantizeLinear") || b->in[0].type != NN_I32 ||
        b->in[0].data == NULL || b->in[1].data == NULL || b->in[1].type != NN_F32 ||
        (b->node->nin > 2 && b->in[2].data == NULL && b->in[2].kind != NN_ABSENT))
        return NULL;
    n = heddle_nn_count(&b->in[1].shape);
    for (size_t i = 0; b->node->nin > 2 && i < heddle_nn_count(&b->in[2].shape); i++)
        if (b->in[2].kind != NN_ABSENT && heddle_nn_get_i64(NN_I32, b->in[2].data, i) != 0)
            return NULL;
    for (size_t i = 0; i < (n > nw ? n : nw); i++) {
        const double by =
                         (double)x->scale * (double)((const float *)w->in[1].data)[nw == 1 ? 0 : i],
                     is = (double)((const float *)b->in[1].data)[n == 1 ? 0 : i];

        if ((n != 1 && nw != 1 && n != nw) || fabs(is - by) > 1e-6 * by)
            return NULL;
    }
    return b;
}

static heddle_status quantize_product(struct nn_prep *q, struct quantize *z,
                                      const struct dnn_quant *y)
{
    const bool is_conv = heddle_prep_is(z->t, "Conv");
    const struct nn_call c = quantize_call(z->t);
    struct dnn_quant x;
    const struct nn_task *d = quantize_source(q, z->t, 0, &x), *w, *b = NULL;
    const int rank = z->t->in[1].shape.rank;

    if (d == NULL || d->in[0].data != NULL ||
        (z->relu != NULL && y->zero != (y->type == DNN_S8 ? -128 : 0)))
        return HEDDLE_OK;
    if (is_conv ? rank > 4 || heddle_nn_int(&c, "group", 1) != 1
                : rank != 2 || z->t->in[0].shape.rank < 2)
        return HEDDLE_OK;
    w = quantize_weights(q, z->t, is_conv ? 0 : 1);
    if (w == NULL ||
        heddle_nn_count(&w->in[0].shape) / (size_t)w->in[0].shape.dim[is_conv ? 0 : 1] > 65536)
        return HEDDLE_OK;
    if (heddle_nn_has_in(&c, 2)) {
        b = quantize_bias(q, z->t, &x, w);
        if (b == NULL)
            return HEDDLE_OK;
    }
    for (uint32_t k = 0; k < 3; k++) {
        z->c.in[k] = (struct prep_operand){d, k};
        z->c.in[3 + k] = (struct prep_operand){w, k};
    }
    z->c.in[6] = (struct prep_operand){z->last, 1};
    z->c.in[7] = (struct prep_operand){z->last, 2};
    z->c.in[8] = (struct prep_operand){b, 0};
    z->c.nin = b != NULL ? 9 : 8;
    z->c.op = heddle_nn_find_op("", is_conv ? "QLinearConv" : "QLinearMatMul", 10, NULL);
    z->c.attr = z->t->node->attr;
    z->c.nattrs = z->t->node->nattrs;
    return heddle_prep_replace(q, &z->c, z->last);
}

/* --- the pass ------------------------------------------------------------------------ */

static heddle_status quantize_one(struct nn_prep *q, struct nn_task *last)
{
    struct quantize z = {.last = last, .t = heddle_prep_inner(q, last, 0)};
    struct dnn_quant y;

    if (last->in[0].type != NN_F32 || !quantize_desc(last, last->out[0].type, &y))
        return HEDDLE_OK;
    (void)heddle_prep_add(&z.c, last);
    if (heddle_prep_is(z.t, "Relu") && heddle_prep_reads(q, last, 0, z.t)) {
        z.relu = z.t;
        (void)heddle_prep_add(&z.c, z.relu);
        z.t = heddle_prep_inner(q, z.relu, 0);
    }
    if (z.t == NULL || !heddle_prep_reads(q, z.relu != NULL ? z.relu : last, 0, z.t) ||
        !heddle_prep_is_f32(z.t))
        return HEDDLE_OK;
    (void)heddle_prep_add(&z.c, z.t);
    if (heddle_prep_is(z.t, "Add") && z.t->node->nin == 2)
        return quantize_add(q, &z, &y);
    if (heddle_prep_is(z.t, "Conv") || (heddle_prep_is(z.t, "MatMul") && z.t->node->nin == 2))
        return quantize_product(q, &z, &y);
    return HEDDLE_OK;
}

static heddle_status quantize_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);

        if (heddle_prep_is(t, "QuantizeLinear"))
            HEDDLE_TRY(quantize_one(q, t));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_quantize = {
    "quantize", "operators on floats between bytes become operators on bytes", quantize_run};
