/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loss: negative log likelihood, and the same behind a softmax (cross entropy).
 *
 * Operands  scores [n, classes, d...], labels [n, d...], weights [classes] (optional). A label
 *           that is `ignore_index` counts nothing.
 * Result    [n, d...] when `reduction` is none, else one number: the sum, or the sum over the
 *           sum of weights. Cross entropy also gives the logarithms of the softmax.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* What the two have in common. */
struct loss {
    size_t n, classes, inner; /* scores: n x classes x inner */
    const double *score;      /* logarithms of probabilities */
    const double *weight;     /* NULL: all 1 */
    bool is_none, is_sum, has_ignored;
    int64_t ignored;
};

static heddle_status loss_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    struct nn_shape out = {.rank = 0};

    if (x->rank >= 0 && x->rank < 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "scores of shape %s", heddle_nn_shape_text(x).text);
    if (c->in[1].shape.rank >= 0 && x->rank >= 0 && c->in[1].shape.rank != x->rank - 1)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "labels of shape %s for scores of shape %s",
                              heddle_nn_shape_text(&c->in[1].shape).text,
                              heddle_nn_shape_text(x).text);
    if (heddle_nn_is_text(c, "reduction", "mean", "none"))
        out = c->in[1].shape;
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    if (c->nout > 1)
        c->out[1] = heddle_nn_tensor(c->in[0].type, x);
    return HEDDLE_OK;
}

static heddle_status loss_begin(struct nn_call *c, struct loss *l)
{
    const struct nn_shape *x = &c->in[0].shape;

    *l = (struct loss){.n = (size_t)x->dim[0],
                       .classes = (size_t)x->dim[1],
                       .inner = heddle_nn_count_range(x, 2, x->rank),
                       .score = heddle_nn_f64(c, 0),
                       .is_none = heddle_nn_is_text(c, "reduction", "mean", "none"),
                       .is_sum = heddle_nn_is_text(c, "reduction", "mean", "sum"),
                       .has_ignored = heddle_nn_has(c, "ignore_index"),
                       .ignored = heddle_nn_int(c, "ignore_index", 0)};
    if (l->score == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_nn_count(&c->in[1].shape) != l->n * l->inner)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "labels of shape %s for scores of shape %s",
                              heddle_nn_shape_text(&c->in[1].shape).text,
                              heddle_nn_shape_text(x).text);
    if (!heddle_nn_has_in(c, 2))
        return HEDDLE_OK;
    if (heddle_nn_count(&c->in[2].shape) != l->classes)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu weights for %zu classes",
                              heddle_nn_count(&c->in[2].shape), l->classes);
    l->weight = heddle_nn_f64(c, 2);
    return l->weight != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* The loss of place i; its weight is added to *sum. */
static heddle_status loss_at(struct nn_call *c, const struct loss *l, size_t i, double *value,
                             double *sum)
{
    const int64_t label = heddle_nn_get_i64(c->in[1].type, c->in[1].data, i);
    const size_t image = i / l->inner, at = i % l->inner;
    double w;

    *value = 0;
    if (l->has_ignored && label == l->ignored)
        return HEDDLE_OK;
    if (label < 0 || (size_t)label >= l->classes)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "label %lld of %zu classes", (long long)label,
                              l->classes);
    w = l->weight != NULL ? l->weight[label] : 1;
    *value = -w * l->score[(image * l->classes + (size_t)label) * l->inner + at];
    *sum += w;
    return HEDDLE_OK;
}

static heddle_status loss_all(struct nn_call *c, const struct loss *l)
{
    double *y = heddle_nn_f64_out(c, 0);
    double total = 0, weights = 0;

    if (y == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < l->n * l->inner; i++) {
        double v;

        HEDDLE_TRY(loss_at(c, l, i, &v, &weights));
        total += v;
        if (l->is_none)
            y[i] = v;
    }
    if (!l->is_none)
        y[0] = l->is_sum ? total : total / weights;
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static heddle_status nll_ref(struct nn_call *c)
{
    struct loss l;

    HEDDLE_TRY(loss_begin(c, &l));
    return loss_all(c, &l);
}

/* The logarithm of the softmax over the classes. */
static void log_softmax(const struct loss *l, double *out)
{
    for (size_t r = 0; r < l->n * l->inner; r++) {
        const size_t first = r / l->inner * l->classes * l->inner + r % l->inner;
        double max = -(double)INFINITY, sum = 0;

        for (size_t k = 0; k < l->classes; k++)
            max = fmax(max, l->score[first + k * l->inner]);
        for (size_t k = 0; k < l->classes; k++)
            sum += exp(l->score[first + k * l->inner] - max);
        for (size_t k = 0; k < l->classes; k++)
            out[first + k * l->inner] = l->score[first + k * l->inner] - max - log(sum);
    }
}

static heddle_status cross_entropy_ref(struct nn_call *c)
{
    struct loss l;
    double *p;

    HEDDLE_TRY(loss_begin(c, &l));
    p = heddle_nn_temp(c, l.n * l.classes * l.inner, sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    log_softmax(&l, p);
    l.score = p;
    if (heddle_nn_wants(c, 1))
        heddle_nn_f64_done(c, 1, p);
    return loss_all(c, &l);
}

static const struct nn_attr_rule attrs[] = {
    {"reduction", NN_STRING, false}, {"ignore_index", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_loss[] = {
    {.name = "NegativeLogLikelihoodLoss",
     .since = 12,
     .nin_min = 2,
     .nin_max = 3,
     .type = {NN_M_FLOAT, NN_M_INDEX, NN_M_FLOAT},
     .same = 5,
     .attrs = attrs,
     .shape = loss_shape,
     .ref = nll_ref},
    {.name = "SoftmaxCrossEntropyLoss",
     .since = 12,
     .nin_min = 2,
     .nin_max = 3,
     .nout_min = 1,
     .nout_max = 2,
     .type = {NN_M_FLOAT, NN_M_INDEX, NN_M_FLOAT},
     .same = 5,
     .attrs = attrs,
     .shape = loss_shape,
     .ref = cross_entropy_ref},
    {0},
};
