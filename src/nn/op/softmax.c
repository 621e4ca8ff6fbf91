/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softmax: exp(x - max) / sum along an axis, its logarithm, and one-hot of the largest. Before
 * opset 13 all dimensions from the axis on were one, and the axis was 1 unless said.
 *
 * In place  yes where a part is one row of the axis: it is read before it is written.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/step.h"

/* rows x length x step: element j of a row is step elements behind element j - 1. */
struct rows {
    size_t outer, length, step;
};

typedef void (*row_fn)(const double *x, double *y, size_t n, size_t step);

struct softmax {
    row_fn row;
};

static heddle_status softmax_rows(struct nn_call *c, struct rows *r)
{
    const struct nn_shape *s = &c->in[0].shape;
    const bool is_flat = c->node->op->since < 13;
    const int64_t said = heddle_nn_int(c, "axis", is_flat ? 1 : -1);
    int axis = 0;

    if (s->rank == 0 && heddle_nn_int(c, "axis", -1) >= -1) {
        *r = (struct rows){1, 1, 1};
        return HEDDLE_OK;
    }
    /* Flat, the axis may be behind the last one; a negative one counts from the rank. */
    HEDDLE_TRY(heddle_nn_axis(c, said, s->rank + (is_flat && said >= 0 ? 1 : 0), &axis));
    r->outer = heddle_nn_count_range(s, 0, axis);
    r->length = is_flat ? heddle_nn_count_range(s, axis, s->rank) : (size_t)s->dim[axis];
    r->step = is_flat ? 1 : heddle_nn_count_range(s, axis + 1, s->rank);
    return HEDDLE_OK;
}

static double row_max(const double *x, size_t n, size_t step)
{
    double max = -(double)INFINITY;

    for (size_t i = 0; i < n; i++)
        max = x[i * step] > max ? x[i * step] : max;
    return max;
}

static double row_sum(const double *x, size_t n, size_t step, double max)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += exp(x[i * step] - max);
    return sum;
}

static void row_softmax(const double *x, double *y, size_t n, size_t step)
{
    const double max = row_max(x, n, step), sum = row_sum(x, n, step, max);

    for (size_t i = 0; i < n; i++)
        y[i * step] = exp(x[i * step] - max) / sum;
}

static void row_log_softmax(const double *x, double *y, size_t n, size_t step)
{
    const double max = row_max(x, n, step), sum = log(row_sum(x, n, step, max));

    for (size_t i = 0; i < n; i++)
        y[i * step] = x[i * step] - max - sum;
}

static void row_hardmax(const double *x, double *y, size_t n, size_t step)
{
    size_t best = 0;

    for (size_t i = 0; i < n; i++) {
        best = x[i * step] > x[best * step] ? i : best;
        y[i * step] = 0;
    }
    if (n > 0)
        y[best * step] = 1;
}

static heddle_status softmax_ref(struct nn_call *c)
{
    const struct softmax *f = c->node->op->family;
    const double *x = heddle_nn_f64(c, 0);
    double *y = heddle_nn_f64_out(c, 0);
    struct rows r;

    if (x == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(softmax_rows(c, &r));
    for (size_t o = 0; o < r.outer; o++)
        for (size_t s = 0; s < r.step; s++)
            f->row(x + o * r.length * r.step + s, y + o * r.length * r.step + s, r.length, r.step);
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static heddle_status softmax_fast(struct nn_call *c, struct nn_step *out)
{
    const struct softmax *f = c->node->op->family;
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    struct dnn_softmax d = {.size = sizeof(d), .is_log = f->row == row_log_softmax};
    struct heddle_dnn *o = NULL;
    struct rows r;
    heddle_status st;

    if (!heddle_nn_is_f32(c) || f->row == row_hardmax)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(softmax_rows(c, &r));
    d.outer = r.outer;
    d.n = r.length;
    d.inner = r.step;
    st = heddle_dnn_create_softmax(&d, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static const struct nn_attr_rule attrs[] = {{"axis", NN_INT, false}, {0}};

#define ROW(nm, from, fn)                                                                          \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = 1, .nin_max = 1, .type = {NN_M_FLOAT}, .inplace = 1, \
        .attrs = attrs, .ref = softmax_ref, .fast = softmax_fast,                                  \
        .family = &(const struct softmax)                                                          \
        {                                                                                          \
            fn                                                                                     \
        }                                                                                          \
    }

const struct nn_op heddle_nn_op_softmax[] = {
    ROW("Softmax", 13, row_softmax),
    ROW("Softmax", 1, row_softmax),
    ROW("LogSoftmax", 13, row_log_softmax),
    ROW("LogSoftmax", 1, row_log_softmax),
    ROW("Hardmax", 13, row_hardmax),
    ROW("Hardmax", 1, row_hardmax),
    {0},
};
