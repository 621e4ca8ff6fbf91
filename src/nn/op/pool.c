/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: MaxPool, AveragePool and LpPool over windows; the Global ones have a window as large as the
 * image.
 *
 * Padding  never counts as data. AveragePool divides by what it has added up, or, with
 *          count_include_pad, by the elements of the window that are in the image or its padding.
 * Indices  of MaxPool (result 1): where in operand 0 the largest element is; with storage_order 1,
 *          the last two dimensions swap.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/step.h"
#include "nn/op/window.h"

enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP };

struct pool {
    enum pool_kind kind;
    bool is_global;
};

static heddle_status pool_window(struct nn_call *c, struct nn_window *w)
{
    const struct pool *p = c->node->op->family;
    const struct nn_shape *x = &c->in[0].shape;
    size_t n;
    const int64_t *k = heddle_nn_ints(c, "kernel_shape", &n);

    if (x->rank < 2 || (x->rank == 2 && !p->is_global))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s", heddle_nn_shape_text(x).text);
    w->nd = x->rank - 2;
    if (!p->is_global && n != (size_t)w->nd)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'kernel_shape' has %zu numbers for %d dimensions",
                              n, w->nd);
    for (int d = 0; d < w->nd; d++) {
        w->in[d] = x->dim[d + 2];
        w->kernel[d] = p->is_global ? (x->dim[d + 2] > 0 ? x->dim[d + 2] : 1) : k[d];
    }
    HEDDLE_TRY(heddle_nn_window(c, w));
    for (int d = 0; p->is_global && d < w->nd; d++)
        w->out[d] = 1;
    return HEDDLE_OK;
}

static heddle_status pool_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = c->in[0].shape.rank};
    struct nn_window w = {0};

    if (out.rank >= 0)
        HEDDLE_TRY(pool_window(c, &w));
    for (int d = 0; d < out.rank; d++)
        out.dim[d] = d < 2 ? c->in[0].shape.dim[d] : w.out[d - 2];
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    if (c->nout > 1)
        c->out[1] = heddle_nn_tensor(NN_I64, &out);
    return HEDDLE_OK;
}

/* What one window has seen. */
struct seen {
    double value;
    size_t count, padded, best;
};

static void seen_add(struct seen *s, enum pool_kind kind, double p, double v, size_t i)
{
    if (kind == POOL_MAX) {
        if (s->count == 0 || v > s->value || (isnan(v) && !isnan(s->value))) {
            s->value = v;
            s->best = i;
        }
    } else {
        s->value += kind == POOL_AVERAGE ? v : pow(fabs(v), p);
    }
    s->count++;
}

static struct seen pool_one(const struct nn_window *w, enum pool_kind kind, double p,
                            const int64_t *at, const double *x)
{
    struct seen s = {0};
    size_t taps = 1;

    for (int d = 0; d < w->nd; d++)
        taps *= (size_t)w->kernel[d];
    for (size_t t = 0; t < taps; t++) {
        size_t rest = t, i = 0, step = 1;
        bool is_in = true, is_padded = true;

        for (int d = w->nd - 1; d >= 0; d--) {
            const int64_t q = at[d] * w->stride[d] - w->before[d] +
                              (int64_t)(rest % (size_t)w->kernel[d]) * w->dilation[d];

            rest /= (size_t)w->kernel[d];
            is_padded &= q < w->in[d] + w->after[d];
            is_in &= q >= 0 && q < w->in[d];
            i += is_in ? (size_t)q * step : 0;
            step *= (size_t)w->in[d];
        }
        s.padded += is_padded;
        if (is_in)
            seen_add(&s, kind, p, x[i], i);
    }
    return s;
}

static double pool_value(const struct seen *s, enum pool_kind kind, double p, bool with_padding)
{
    if (kind == POOL_MAX)
        return s->count > 0 ? s->value : -(double)INFINITY;
    if (kind == POOL_LP)
        return pow(s->value, 1 / p);
    return s->value / (double)(with_padding ? s->padded : s->count);
}

/* The element of a plane, as the other storage order counts. */
static size_t pool_index(const struct nn_window *w, size_t i, bool swap)
{
    const size_t cols = w->nd > 0 ? (size_t)w->in[w->nd - 1] : 1,
                 rows = w->nd > 1 ? (size_t)w->in[w->nd - 2] : 1, in = i % (rows * cols);

    return swap ? i - in + in % cols * rows + in / cols : i;
}

static heddle_status pool_ref(struct nn_call *c)
{
    const struct pool *pool = c->node->op->family;
    const double p = heddle_nn_float(c, "p", 0) > 0 ? heddle_nn_float(c, "p", 0)
                                                    : (double)heddle_nn_int(c, "p", 2);
    const bool with_padding = heddle_nn_int(c, "count_include_pad", 0) != 0,
               swap = heddle_nn_int(c, "storage_order", 0) != 0;
    const double *x = heddle_nn_f64(c, 0);
    double *y = heddle_nn_f64_out(c, 0);
    int64_t *where = heddle_nn_wants(c, 1) ? c->out[1].data : NULL;
    struct nn_window w = {0};
    size_t planes, in, out;

    if (x == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(pool_window(c, &w));
    planes = heddle_nn_count_range(&c->in[0].shape, 0, 2);
    in = heddle_nn_count_range(&c->in[0].shape, 2, c->in[0].shape.rank);
    out = heddle_nn_count_range(&c->out[0].shape, 2, c->out[0].shape.rank);
    for (size_t k = 0; k < planes; k++) {
        int64_t at[NN_WINDOW] = {0};

        for (size_t e = 0; e < out; e++) {
            const struct seen s = pool_one(&w, pool->kind, p, at, x + k * in);

            y[k * out + e] = pool_value(&s, pool->kind, p, with_padding);
            if (where != NULL)
                where[k * out + e] = (int64_t)(k * in + pool_index(&w, s.best, swap));
            for (int d = w.nd - 1; d >= 0 && ++at[d] == w.out[d]; d--)
                at[d] = 0;
        }
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static heddle_status pool_fast(struct nn_call *c, struct nn_step *out)
{
    const struct pool *pool = c->node->op->family;
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    const bool with_padding = heddle_nn_int(c, "count_include_pad", 0) != 0;
    struct heddle_dnn *o = NULL;
    struct dnn_pool d = {.size = sizeof(d)};
    struct nn_window w = {0};
    heddle_status st;
    int x;

    if (!heddle_nn_is_f32(c) || c->nout > 1 || pool->kind == POOL_LP)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(pool_window(c, &w));
    for (int i = 0; i < w.nd; i++)
        if (w.before[i] < 0 || w.after[i] < 0)
            return HEDDLE_ENOSYS;
    if (w.nd != 1 && w.nd != 2)
        return HEDDLE_ENOSYS;
    x = w.nd - 1;
    d.kind = pool->kind == POOL_MAX ? DNN_POOL_MAX
             : with_padding         ? DNN_POOL_AVERAGE_PADDED
                                    : DNN_POOL_AVERAGE;
    d.layout = c->is_nhwc ? DNN_NHWC : DNN_NCHW;
    d.n = (size_t)c->in[0].shape.dim[0];
    d.c = (size_t)c->in[0].shape.dim[1];
    d.h = d.kh = d.out_h = 1;
    d.w = (size_t)w.in[x];
    d.kw = (size_t)w.kernel[x];
    d.stride_w = (size_t)w.stride[x];
    d.dilation_w = (size_t)w.dilation[x];
    d.pad_left = (size_t)w.before[x];
    d.pad_right = (size_t)w.after[x];
    d.out_w = (size_t)w.out[x];
    if (w.nd == 2) {
        d.h = (size_t)w.in[0];
        d.kh = (size_t)w.kernel[0];
        d.stride_h = (size_t)w.stride[0];
        d.dilation_h = (size_t)w.dilation[0];
        d.pad_top = (size_t)w.before[0];
        d.pad_bottom = (size_t)w.after[0];
        d.out_h = (size_t)w.out[0];
    }
    st = heddle_dnn_create_pool(&d, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static const struct nn_attr_rule attrs[] = {
    {"auto_pad", NN_STRING, false}, {"ceil_mode", NN_INT, false},
    {"dilations", NN_INTS, false},  {"kernel_shape", NN_INTS, true},
    {"pads", NN_INTS, false},       {"storage_order", NN_INT, false},
    {"strides", NN_INTS, false},    {"count_include_pad", NN_INT, false},
    {"p", NN_INT, false},           {0}};
static const struct nn_attr_rule lp_attrs[] = {{"p", NN_INT, false}, {0}};

#define ROW(nm, k, most, flag)                                                                     \
    {                                                                                              \
        .name = nm, .since = 1, .nin_min = 1, .nin_max = 1, .nout_min = 1, .nout_max = most,       \
        .flags = flag, .type = {NN_M_FLOAT | NN_M(NN_U8) | NN_M(NN_I8)}, .attrs = attrs,           \
        .shape = pool_shape, .ref = pool_ref, .fast = pool_fast, .family = &(const struct pool)    \
        {                                                                                          \
            k, false                                                                               \
        }                                                                                          \
    }
#define GLOBAL(nm, k, at)                                                                          \
    {                                                                                              \
        .name = nm, .since = 1, .nin_min = 1, .nin_max = 1, .flags = NN_IMAGE,                     \
        .type = {NN_M_FLOAT}, .attrs = at, .shape = pool_shape, .ref = pool_ref,                   \
        .fast = pool_fast, .family = &(const struct pool)                                          \
        {                                                                                          \
            k, true                                                                                \
        }                                                                                          \
    }

const struct nn_op heddle_nn_op_pool[] = {
    ROW("MaxPool", POOL_MAX, 2, NN_IMAGE),
    ROW("AveragePool", POOL_AVERAGE, 1, NN_IMAGE),
    ROW("LpPool", POOL_LP, 1, 0),
    GLOBAL("GlobalMaxPool", POOL_MAX, NULL),
    GLOBAL("GlobalAveragePool", POOL_AVERAGE, NULL),
    GLOBAL("GlobalLpPool", POOL_LP, lp_attrs),
    {0},
};
