/* SPDX-License-Identifier: BSD-3-Clause */
/* variadic: Sum, Mean, Min and Max of any number of operands, with broadcast. */
#include <math.h>

#include "base/assert.h"
#include "nn/op/step.h"

struct variadic {
    double (*f)(double x, double y);
    int64_t (*i)(int64_t x, int64_t y, bool is_signed);
    bool is_mean;
};

static heddle_status variadic_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;

    for (uint32_t i = 1; i < c->nin; i++)
        if (!heddle_nn_broadcast(&out, &c->in[i].shape, &out))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "shapes %s and %s do not go together",
                                  heddle_nn_shape_text(&out).text,
                                  heddle_nn_shape_text(&c->in[i].shape).text);
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* Adds operand k to what there is. */
static void variadic_add(struct nn_call *c, uint32_t k, double *sum, int64_t *whole)
{
    const struct variadic *v = c->node->op->family;
    const struct nn_shape *out = &c->out[0].shape;
    const struct nn_value *x = &c->in[k];
    const bool is_signed = (NN_M(x->type) & NN_M_SINT) != 0;
    const size_t n = heddle_nn_count(out);
    int64_t step[NN_DIMS], at[NN_DIMS] = {0};
    size_t i = 0;

    heddle_nn_broadcast_steps(&x->shape, out, step);
    for (size_t e = 0; e < n; e++) {
        if (whole != NULL) {
            const int64_t a = heddle_nn_get_i64(x->type, x->data, i);

            whole[e] = k == 0 ? a : v->i(whole[e], a, is_signed);
        } else {
            const double a = heddle_nn_get_f64(x->type, x->data, i);

            sum[e] = k == 0 ? a : v->f(sum[e], a);
        }
        for (int d = out->rank - 1; d >= 0; d--) {
            i += (size_t)step[d];
            if (++at[d] < out->dim[d])
                break;
            i -= (size_t)(step[d] * at[d]);
            at[d] = 0;
        }
    }
}

static heddle_status variadic_ref(struct nn_call *c)
{
    const struct variadic *v = c->node->op->family;
    const bool is_whole = (NN_M(c->in[0].type) & NN_M_INT) != 0;
    const size_t n = heddle_nn_count(&c->out[0].shape);
    double *sum = is_whole ? NULL : heddle_nn_f64_out(c, 0);
    int64_t *whole = is_whole ? heddle_nn_temp(c, n, sizeof(*whole)) : NULL;

    if (sum == NULL && whole == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t k = 0; k < c->nin; k++)
        variadic_add(c, k, sum, whole);
    for (size_t e = 0; e < n; e++)
        if (is_whole)
            heddle_nn_put_i64(c->out[0].type, c->out[0].data, e, whole[e]);
        else
            heddle_nn_put_f64(c->out[0].type, c->out[0].data, e,
                              v->is_mean ? sum[e] / c->nin : sum[e]);
    return HEDDLE_OK;
}

static double f_add(double x, double y)
{
    return x + y;
}

static double f_max(double x, double y)
{
    return isnan(x) || x >= y ? x : y;
}

static double f_min(double x, double y)
{
    return isnan(x) || x <= y ? x : y;
}

static int64_t i_add(int64_t x, int64_t y, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static int64_t i_max(int64_t x, int64_t y, bool is_signed)
{
    return (is_signed ? x > y : (uint64_t)x > (uint64_t)y) ? x : y;
}

static int64_t i_min(int64_t x, int64_t y, bool is_signed)
{
    return (is_signed ? x < y : (uint64_t)x < (uint64_t)y) ? x : y;
}

static heddle_status variadic_map(struct nn_call *c, struct nn_map *to)
{
    const struct variadic *v = c->node->op->family;
    const enum dnn_fn fn = v->f == f_add ? DNN_ADD : v->f == f_max ? DNN_MAX : DNN_MIN;
    struct dnn_map *m = &to->m;

    if (c->nin > DNN_MAX_IN)
        return HEDDLE_ENOSYS;
    *to = (struct nn_map){.nin = c->nin};
    for (uint32_t k = 0; k < c->nin; k++)
        to->shape[k] = c->in[k].shape;
    for (uint32_t k = 1; k < c->nin; k++) {
        m->step[m->nsteps] = (struct dnn_step){
            .fn = fn, .a = (uint8_t)(k == 1 ? 0 : c->nin + m->nsteps - 1), .b = (uint8_t)k};
        m->nsteps++;
    }
    if (v->is_mean || c->nin == 1) {
        m->step[m->nsteps] =
            (struct dnn_step){.fn = DNN_LINEAR,
                              .a = (uint8_t)(c->nin == 1 ? 0 : c->nin + m->nsteps - 1),
                              .p = 1 / (float)c->nin};
        m->nsteps++;
    }
    return HEDDLE_OK;
}

static const struct nn_attr_rule old_attrs[] = {{"consumed_inputs", NN_INTS, false}, {0}};

#define ROW(nm, from, at, ...)                                                                     \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = 1, .nin_max = NN_MANY, .flags = NN_POINT,            \
        .inplace = 1, .type = {NN_M_NUM, NN_M_NUM, NN_M_NUM, NN_M_NUM, NN_M_NUM, NN_M_NUM},        \
        .same = UINT32_MAX, .attrs = at, .shape = variadic_shape, .ref = variadic_ref,             \
        .fast = heddle_nn_map_fast, .map = variadic_map, .family = &(const struct variadic)        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct nn_op heddle_nn_op_variadic[] = {
    ROW("Sum", 6, NULL, f_add, i_add, false),
    ROW("Sum", 1, old_attrs, f_add, i_add, false),
    ROW("Mean", 6, NULL, f_add, i_add, true),
    ROW("Mean", 1, old_attrs, f_add, i_add, true),
    ROW("Max", 6, NULL, f_max, i_max, false),
    ROW("Max", 1, old_attrs, f_max, i_max, false),
    ROW("Min", 6, NULL, f_min, i_min, false),
    ROW("Min", 1, old_attrs, f_min, i_min, false),
    {0},
};
