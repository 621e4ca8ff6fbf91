/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conv: what follows a convolution becomes its end: batch normalisation and factors and addends of
 * channels go into the weights and the bias, then one image may be added, then one activation.
 */
#include <math.h>
#include <string.h>

#include "nn/op/window.h"
#include "nn/prepare/prepare.h"

/* y = act((x * w + b) scale + shift + residual) */
struct conv_own {
    float *scale, *shift; /* by channel; NULL: 1 and 0 */
    struct dnn_act act;
    bool has_residual;
};

/* --- the operator -------------------------------------------------------------------- */

static heddle_status conv_fast(struct nn_call *c, struct nn_step *out)
{
    const struct conv_own *own = c->node->own;
    const struct nn_shape *s = &c->in[1].shape;
    const size_t co = (size_t)s->dim[0], each = heddle_nn_count_range(s, 1, s->rank);
    const float *w = c->in[1].data, *b = heddle_nn_has_in(c, 2) ? c->in[2].data : NULL;
    struct nn_conv_more more = {w, b, own->has_residual, own->act};
    float *weights, *bias;

    if (own->scale != NULL) {
        weights = heddle_nn_temp(c, co * each + 1, sizeof(*weights));
        bias = heddle_nn_temp(c, co + 1, sizeof(*bias));
        if (weights == NULL || bias == NULL)
            return HEDDLE_ENOMEM;
        for (size_t m = 0; m < co; m++) {
            for (size_t i = 0; i < each; i++)
                weights[m * each + i] = w[m * each + i] * own->scale[m];
            bias[m] = (b != NULL ? b[m] * own->scale[m] : 0) + own->shift[m];
        }
        more.weights = weights;
        more.bias = bias;
        c->run->share = NULL; /* another node may scale the same weights by other factors */
    }
    return heddle_nn_conv_step(c, &more, out);
}

static heddle_status conv_ref(struct nn_call *c)
{
    const struct conv_own *own = c->node->own;
    const struct nn_shape *s = &c->out[0].shape;
    const size_t co = (size_t)s->dim[1], each = heddle_nn_count_range(s, 2, s->rank),
                 n = heddle_nn_count(s);
    const float *residual = own->has_residual ? c->in[3].data : NULL;
    double *y = NULL;

    HEDDLE_TRY(heddle_nn_conv_f64(c, &y));
    for (size_t i = 0; i < n; i++) {
        const size_t m = i / each % co;

        if (own->scale != NULL)
            y[i] = y[i] * (double)own->scale[m] + (double)own->shift[m];
        y[i] += residual != NULL ? (double)residual[i] : 0;
        y[i] = heddle_nn_fn_f64(own->act.fn, (double)own->act.p, (double)own->act.q, y[i], 0);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static const struct nn_op conv_op = {.name = "FusedConv",
                                     .nin_min = 2,
                                     .nin_max = 4,
                                     .flags = NN_IMAGE | NN_IMAGES | NN_INNER,
                                     .inplace = 8,
                                     .ref = conv_ref,
                                     .fast = conv_fast,
                                     .cost = heddle_nn_conv_cost};

/* --- the pass ------------------------------------------------------------------------ */

struct conv {
    struct prep_change c;
    struct nn_task *conv, *last;
    double *scale, *shift; /* by channel, in temp; what is in them so far */
    size_t co;
    bool has_scale;
    struct conv_own own;
};

/* Element m of a constant operand that is one number, or one for each channel of an image of this
 * rank. */
static bool conv_channels(const struct conv *v, const struct nn_task *t, uint32_t k, size_t *step)
{
    const struct nn_value *x = &t->in[k];
    const int rank = v->conv->out[0].shape.rank, axis = x->shape.rank - (rank - 1);

    *step = 0;
    if (x->data == NULL || x->type != NN_F32 || x->shape.rank > rank)
        return false;
    if (heddle_nn_count(&x->shape) == 1)
        return true;
    *step = 1;
    return axis >= 0 && x->shape.dim[axis] == (int64_t)v->co && heddle_nn_count(&x->shape) == v->co;
}

/* BatchNormalization of constants: another scale and shift of each channel. */
static bool conv_norm(struct conv *v, const struct nn_task *t)
{
    const struct nn_call c = {.node = t->node};
    const double eps = heddle_nn_float(&c, "epsilon", (double)1e-5f);

    if (!heddle_prep_is(t, "BatchNormalization") || heddle_nn_int(&c, "training_mode", 0) != 0)
        return false;
    for (uint32_t i = 1; i < 5; i++)
        if (t->in[i].data == NULL || heddle_nn_count(&t->in[i].shape) != v->co)
            return false;
    for (size_t m = 0; m < v->co; m++) {
        const double by = (double)((const float *)t->in[1].data)[m] /
                          sqrt((double)((const float *)t->in[4].data)[m] + eps);

        v->scale[m] *= by;
        v->shift[m] = (v->shift[m] - (double)((const float *)t->in[3].data)[m]) * by +
                      (double)((const float *)t->in[2].data)[m];
    }
    return true;
}

/* A factor or an addend of each channel. */
static bool conv_scaled(struct conv *v, const struct nn_task *t, uint32_t k)
{
    const bool is_add = heddle_prep_is(t, "Add"), is_sub = heddle_prep_is(t, "Sub") && k == 1;
    const bool is_mul = heddle_prep_is(t, "Mul"), is_div = heddle_prep_is(t, "Div") && k == 1;
    const float *x = t->in[k].data;
    size_t step;

    if ((!is_add && !is_sub && !is_mul && !is_div) || !conv_channels(v, t, k, &step))
        return false;
    for (size_t m = 0; m < v->co; m++) {
        const double by = (double)x[m * step];

        if (is_add || is_sub) {
            v->shift[m] += is_add ? by : -by;
        } else {
            v->scale[m] *= is_mul ? by : 1 / by;
            v->shift[m] *= is_mul ? by : 1 / by;
        }
    }
    return true;
}

/* Weights times a huge factor, or by nothing, are no longer what they were. */
static bool conv_is_sane(const struct conv *v)
{
    for (size_t m = 0; m < v->co; m++)
        if (!isfinite(v->scale[m]) || !isfinite(v->shift[m]) || fabs(v->scale[m]) > 1e18)
            return false;
    return true;
}

/* Takes t, the reader of v->last, to the convolution. False: it stays by itself. */
static bool conv_take(struct nn_prep *q, struct conv *v, struct nn_task *t)
{
    const bool is_early = !v->own.has_residual;
    struct dnn_act act;
    int k;

    if (t == NULL || !heddle_prep_is_f32(t) || v->own.act.fn != DNN_COPY ||
        !heddle_prep_reads(q, t, 0, v->last) + !heddle_prep_reads(q, t, 1, v->last) > 1 ||
        !heddle_nn_same_shape(&t->out[0].shape, &v->last->out[0].shape))
        return false;
    k = t->node->nin == 2 ? heddle_prep_other(q, t, v->last) : -1;
    if (is_early && k < 0 && conv_norm(v, t)) {
        v->has_scale = true;
    } else if (is_early && k >= 0 && conv_scaled(v, t, (uint32_t)k)) {
        v->has_scale = true;
    } else if (is_early && k >= 0 && (heddle_prep_is(t, "Add") || heddle_prep_is(t, "Sum")) &&
               heddle_nn_same_shape(&t->in[k].shape, &t->out[0].shape) && t->in[k].data == NULL) {
        v->own.has_residual = true;
        v->c.in[3] = (struct prep_operand){t, (uint32_t)k};
        v->c.nin = 4;
    } else if (heddle_prep_act(t, &act)) {
        v->own.act = act;
    } else {
        return false;
    }
    return heddle_prep_add(&v->c, t);
}

static heddle_status conv_replace(struct nn_prep *q, struct conv *v)
{
    struct conv_own *own = heddle_prep_keep(q, 1, sizeof(*own));

    if (own == NULL)
        return HEDDLE_ENOMEM;
    if (v->has_scale) {
        v->own.scale = heddle_prep_keep(q, v->co + 1, sizeof(float));
        v->own.shift = heddle_prep_keep(q, v->co + 1, sizeof(float));
        if (v->own.scale == NULL || v->own.shift == NULL)
            return HEDDLE_ENOMEM;
        for (size_t m = 0; m < v->co; m++) {
            v->own.scale[m] = (float)v->scale[m];
            v->own.shift[m] = (float)v->shift[m];
        }
    }
    *own = v->own;
    for (uint32_t k = 0; k < 3; k++)
        v->c.in[k] = (struct prep_operand){k < v->conv->node->nin ? v->conv : NULL, k};
    v->c.nin = v->c.nin > 3 ? v->c.nin : 3;
    v->c.op = &conv_op;
    v->c.attr = v->conv->node->attr;
    v->c.nattrs = v->conv->node->nattrs;
    v->c.own = own;
    return heddle_prep_replace(q, &v->c, v->last);
}

static heddle_status conv_one(struct nn_prep *q, struct nn_task *t)
{
    struct conv v = {.conv = t, .last = t, .co = (size_t)t->in[1].shape.dim[0]};
    struct nn_task *next;

    if (t->in[1].data == NULL || t->out[0].shape.rank > 4 ||
        (t->node->nin > 2 && t->in[2].kind != NN_ABSENT && t->in[2].data == NULL))
        return HEDDLE_OK;
    v.scale = heddle_scratch_get(q->temp, 2 * v.co + 1, sizeof(*v.scale));
    if (v.scale == NULL)
        return HEDDLE_ENOMEM;
    v.shift = v.scale + v.co;
    for (size_t m = 0; m < v.co; m++)
        v.scale[m] = 1;
    (void)heddle_prep_add(&v.c, t);
    for (next = heddle_prep_only(q, t); conv_take(q, &v, next); next = heddle_prep_only(q, next))
        v.last = next;
    return v.last != t && conv_is_sane(&v) ? conv_replace(q, &v) : HEDDLE_OK;
}

static heddle_status conv_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);

        if (heddle_prep_is(t, "Conv") && heddle_prep_is_f32(t))
            HEDDLE_TRY(conv_one(q, t));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_conv = {
    "conv", "batch norm, scale, addend and activation become the end of their convolution",
    conv_run};
