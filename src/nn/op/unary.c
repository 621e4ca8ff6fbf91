/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unary: functions of one number, element by element. A row names the function for floats and,
 * where the standard has integers, the one for integers.
 *
 * Shapes    out = in.
 * In place  yes.
 */
#include <math.h>

#include "nn/op/step.h"

struct unary {
    double (*f)(double x, double a, double b);
    int64_t (*i)(int64_t x, unsigned type); /* NULL: floats only */
    const char *a, *b;                      /* attributes, or NULL */
    float a0, b0;                           /* where they are absent */
};

typedef double (*unary_fn)(double x, double a, double b);

/* The function; Gelu's attribute may ask for another one. */
static unary_fn unary_of(const struct nn_call *c);

static heddle_status unary_ref(struct nn_call *c)
{
    const struct unary *u = c->node->op->family;
    const unary_fn f = unary_of(c);
    const unsigned type = c->in[0].type;
    const size_t n = heddle_nn_count(&c->in[0].shape);
    const double a = u->a != NULL ? heddle_nn_float(c, u->a, (double)u->a0) : 0,
                 b = u->b != NULL ? heddle_nn_float(c, u->b, (double)u->b0) : 0;
    const void *x = c->in[0].data;
    void *y = c->out[0].data;

    if (u->i != NULL && (NN_M(type) & (NN_M_INT | NN_M(NN_BOOL))) != 0)
        for (size_t k = 0; k < n; k++)
            heddle_nn_put_i64(type, y, k, u->i(heddle_nn_get_i64(type, x, k), type));
    else
        for (size_t k = 0; k < n; k++)
            heddle_nn_put_f64(type, y, k, f(heddle_nn_get_f64(type, x, k), a, b));
    return HEDDLE_OK;
}

#define UNARY(name, expr)                                                                          \
    static double f_##name(double x, double a, double b)                                           \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        return expr;                                                                               \
    }
UNARY(abs, fabs(x))
UNARY(neg, -x)
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(sqrt, sqrt(x))
UNARY(reciprocal, 1 / x)
UNARY(floor, floor(x))
UNARY(ceil, ceil(x))
UNARY(round, nearbyint(x))
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : x)
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tan, tan(x))
UNARY(asin, asin(x))
UNARY(acos, acos(x))
UNARY(atan, atan(x))
UNARY(sinh, sinh(x))
UNARY(cosh, cosh(x))
UNARY(tanh, tanh(x))
UNARY(asinh, asinh(x))
UNARY(acosh, acosh(x))
UNARY(atanh, atanh(x))
UNARY(erf, erf(x))
UNARY(relu, x < 0 ? 0 : x)
UNARY(sigmoid, x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)))
UNARY(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
UNARY(softsign, x / (1 + fabs(x)))
UNARY(leaky, x < 0 ? a * x : x)
UNARY(elu, x < 0 ? a * expm1(x) : x)
UNARY(celu, (x > 0 ? x : 0) + (a * expm1(x / a) < 0 ? a * expm1(x / a) : 0))
UNARY(selu, b *(x > 0 ? x : a * expm1(x)))
UNARY(thresholded, x > a ? x : 0)
UNARY(hard_sigmoid, a *x + b < 0 ? 0 : a * x + b > 1 ? 1 : a * x + b)
UNARY(hard_swish, x *(x / 6 + 0.5 < 0 ? 0 : x / 6 + 0.5 > 1 ? 1 : x / 6 + 0.5))
UNARY(swish, x *f_sigmoid(a *x, 0, 0))
UNARY(mish, x *tanh(f_softplus(x, 0, 0)))
UNARY(gelu, 0.5 * x * (1 + erf(x * 0.70710678118654752440)))
UNARY(gelu_tanh, 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))))
UNARY(shrink, x<-a ? x + b : x> a ? x - b : 0)
#undef UNARY

static unary_fn unary_of(const struct nn_call *c)
{
    const struct unary *u = c->node->op->family;

    return u->f == f_gelu && heddle_nn_is_text(c, "approximate", "none", "tanh") ? f_gelu_tanh
                                                                                 : u->f;
}

/* What src/dnn has. Its parameters p and q are ours, a and b, where there are some. */
static const struct {
    double (*f)(double x, double a, double b);
    enum dnn_fn fn;
} fast_fn[] = {
    {f_abs, DNN_ABS},
    {f_neg, DNN_NEG},
    {f_exp, DNN_EXP},
    {f_log, DNN_LOG},
    {f_sqrt, DNN_SQRT},
    {f_reciprocal, DNN_RECIPROCAL},
    {f_floor, DNN_FLOOR},
    {f_ceil, DNN_CEIL},
    {f_sin, DNN_SIN},
    {f_cos, DNN_COS},
    {f_tanh, DNN_TANH},
    {f_erf, DNN_ERF},
    {f_relu, DNN_RELU},
    {f_sigmoid, DNN_SIGMOID},
    {f_leaky, DNN_LEAKY_RELU},
    {f_elu, DNN_ELU},
    {f_hard_sigmoid, DNN_HARD_SIGMOID},
    {f_hard_swish, DNN_HARD_SWISH},
    {f_swish, DNN_SILU},
    {f_gelu, DNN_GELU},
    {f_gelu_tanh, DNN_GELU_TANH},
};

static heddle_status unary_map(struct nn_call *c, struct nn_map *m)
{
    const struct unary *u = c->node->op->family;
    const unary_fn f = unary_of(c);
    const double a = u->a != NULL ? heddle_nn_float(c, u->a, (double)u->a0) : 0,
                 b = u->b != NULL ? heddle_nn_float(c, u->b, (double)u->b0) : 0;

    for (size_t i = 0; i < sizeof(fast_fn) / sizeof(fast_fn[0]); i++) {
        if (fast_fn[i].f != f || (f == f_swish && a != 1))
            continue;
        heddle_nn_map_one(c, m, fast_fn[i].fn, (float)a, (float)b);
        return HEDDLE_OK;
    }
    return HEDDLE_ENOSYS;
}

static int64_t i_abs(int64_t x, unsigned type)
{
    return x < 0 && (NN_M(type) & NN_M_SINT) != 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

static int64_t i_neg(int64_t x, unsigned type)
{
    (void)type;
    return (int64_t)(0 - (uint64_t)x);
}

static int64_t i_sign(int64_t x, unsigned type)
{
    return x == 0 ? 0 : x < 0 && (NN_M(type) & NN_M_SINT) != 0 ? -1 : 1;
}

static int64_t i_relu(int64_t x, unsigned type)
{
    return x < 0 && (NN_M(type) & NN_M_SINT) != 0 ? 0 : x;
}

static int64_t i_not(int64_t x, unsigned type)
{
    (void)type;
    return x == 0;
}

static int64_t i_bitnot(int64_t x, unsigned type)
{
    (void)type;
    return ~x;
}

static const struct nn_attr_rule alpha_attrs[] = {{"alpha", NN_FLOAT, false}, {0}};
static const struct nn_attr_rule alpha_beta_attrs[] = {
    {"alpha", NN_FLOAT, false}, {"beta", NN_FLOAT, false}, {0}};
static const struct nn_attr_rule alpha_gamma_attrs[] = {
    {"alpha", NN_FLOAT, false}, {"gamma", NN_FLOAT, false}, {0}};
static const struct nn_attr_rule shrink_attrs[] = {
    {"lambd", NN_FLOAT, false}, {"bias", NN_FLOAT, false}, {0}};
static const struct nn_attr_rule gelu_attrs[] = {{"approximate", NN_STRING, false}, {0}};
/* The first opset had it, for an optimisation that never came. */
static const struct nn_attr_rule old_attrs[] = {{"consumed_inputs", NN_INTS, false}, {0}};
static const struct nn_attr_rule old_alpha_attrs[] = {
    {"alpha", NN_FLOAT, false}, {"consumed_inputs", NN_INTS, false}, {0}};

#define ROW(nm, from, types, at, ...)                                                              \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = 1, .nin_max = 1, .inplace = 1, .type = {types},      \
        .attrs = at, .family = &(const struct unary){__VA_ARGS__}, .ref = unary_ref,               \
        .fast = heddle_nn_map_fast, .map = unary_map, .flags = NN_POINT                            \
    }

const struct nn_op heddle_nn_op_unary[] = {
    ROW("Abs", 6, NN_M_NUM, NULL, f_abs, i_abs, NULL, NULL, 0, 0),
    ROW("Abs", 1, NN_M_NUM, old_attrs, f_abs, i_abs, NULL, NULL, 0, 0),
    ROW("Neg", 6, NN_M_NUM, NULL, f_neg, i_neg, NULL, NULL, 0, 0),
    ROW("Neg", 1, NN_M_NUM, old_attrs, f_neg, i_neg, NULL, NULL, 0, 0),
    ROW("Sign", 9, NN_M_NUM, NULL, f_sign, i_sign, NULL, NULL, 0, 0),
    ROW("Not", 1, NN_M(NN_BOOL), NULL, NULL, i_not, NULL, NULL, 0, 0),
    ROW("BitwiseNot", 18, NN_M_INT, NULL, NULL, i_bitnot, NULL, NULL, 0, 0),
    ROW("Exp", 6, NN_M_FLOAT, NULL, f_exp, NULL, NULL, NULL, 0, 0),
    ROW("Exp", 1, NN_M_FLOAT, old_attrs, f_exp, NULL, NULL, NULL, 0, 0),
    ROW("Log", 6, NN_M_FLOAT, NULL, f_log, NULL, NULL, NULL, 0, 0),
    ROW("Log", 1, NN_M_FLOAT, old_attrs, f_log, NULL, NULL, NULL, 0, 0),
    ROW("Sqrt", 6, NN_M_FLOAT, NULL, f_sqrt, NULL, NULL, NULL, 0, 0),
    ROW("Sqrt", 1, NN_M_FLOAT, old_attrs, f_sqrt, NULL, NULL, NULL, 0, 0),
    ROW("Reciprocal", 6, NN_M_FLOAT, NULL, f_reciprocal, NULL, NULL, NULL, 0, 0),
    ROW("Reciprocal", 1, NN_M_FLOAT, old_attrs, f_reciprocal, NULL, NULL, NULL, 0, 0),
    ROW("Floor", 6, NN_M_FLOAT, NULL, f_floor, NULL, NULL, NULL, 0, 0),
    ROW("Floor", 1, NN_M_FLOAT, old_attrs, f_floor, NULL, NULL, NULL, 0, 0),
    ROW("Ceil", 6, NN_M_FLOAT, NULL, f_ceil, NULL, NULL, NULL, 0, 0),
    ROW("Ceil", 1, NN_M_FLOAT, old_attrs, f_ceil, NULL, NULL, NULL, 0, 0),
    ROW("Round", 11, NN_M_FLOAT, NULL, f_round, NULL, NULL, NULL, 0, 0),
    ROW("Sin", 7, NN_M_FLOAT, NULL, f_sin, NULL, NULL, NULL, 0, 0),
    ROW("Cos", 7, NN_M_FLOAT, NULL, f_cos, NULL, NULL, NULL, 0, 0),
    ROW("Tan", 7, NN_M_FLOAT, NULL, f_tan, NULL, NULL, NULL, 0, 0),
    ROW("Asin", 7, NN_M_FLOAT, NULL, f_asin, NULL, NULL, NULL, 0, 0),
    ROW("Acos", 7, NN_M_FLOAT, NULL, f_acos, NULL, NULL, NULL, 0, 0),
    ROW("Atan", 7, NN_M_FLOAT, NULL, f_atan, NULL, NULL, NULL, 0, 0),
    ROW("Sinh", 9, NN_M_FLOAT, NULL, f_sinh, NULL, NULL, NULL, 0, 0),
    ROW("Cosh", 9, NN_M_FLOAT, NULL, f_cosh, NULL, NULL, NULL, 0, 0),
    ROW("Tanh", 6, NN_M_FLOAT, NULL, f_tanh, NULL, NULL, NULL, 0, 0),
    ROW("Tanh", 1, NN_M_FLOAT, old_attrs, f_tanh, NULL, NULL, NULL, 0, 0),
    ROW("Asinh", 9, NN_M_FLOAT, NULL, f_asinh, NULL, NULL, NULL, 0, 0),
    ROW("Acosh", 9, NN_M_FLOAT, NULL, f_acosh, NULL, NULL, NULL, 0, 0),
    ROW("Atanh", 9, NN_M_FLOAT, NULL, f_atanh, NULL, NULL, NULL, 0, 0),
    ROW("Erf", 9, NN_M_NUM, NULL, f_erf, NULL, NULL, NULL, 0, 0),
    ROW("Relu", 6, NN_M_NUM, NULL, f_relu, i_relu, NULL, NULL, 0, 0),
    ROW("Relu", 1, NN_M_NUM, old_attrs, f_relu, i_relu, NULL, NULL, 0, 0),
    ROW("Sigmoid", 6, NN_M_FLOAT, NULL, f_sigmoid, NULL, NULL, NULL, 0, 0),
    ROW("Sigmoid", 1, NN_M_FLOAT, old_attrs, f_sigmoid, NULL, NULL, NULL, 0, 0),
    ROW("Softplus", 1, NN_M_FLOAT, NULL, f_softplus, NULL, NULL, NULL, 0, 0),
    ROW("Softsign", 1, NN_M_FLOAT, NULL, f_softsign, NULL, NULL, NULL, 0, 0),
    ROW("LeakyRelu", 6, NN_M_FLOAT, alpha_attrs, f_leaky, NULL, "alpha", NULL, 0.01f, 0),
    ROW("LeakyRelu", 1, NN_M_FLOAT, old_alpha_attrs, f_leaky, NULL, "alpha", NULL, 0.01f, 0),
    ROW("Elu", 6, NN_M_FLOAT, alpha_attrs, f_elu, NULL, "alpha", NULL, 1, 0),
    ROW("Elu", 1, NN_M_FLOAT, old_alpha_attrs, f_elu, NULL, "alpha", NULL, 1, 0),
    ROW("Celu", 12, NN_M_FLOAT, alpha_attrs, f_celu, NULL, "alpha", NULL, 1, 0),
    ROW("Selu", 6, NN_M_FLOAT, alpha_gamma_attrs, f_selu, NULL, "alpha", "gamma", 1.67326319f,
        1.05070102f),
    ROW("ThresholdedRelu", 10, NN_M_FLOAT, alpha_attrs, f_thresholded, NULL, "alpha", NULL, 1, 0),
    ROW("HardSigmoid", 6, NN_M_FLOAT, alpha_beta_attrs, f_hard_sigmoid, NULL, "alpha", "beta", 0.2f,
        0.5f),
    ROW("HardSwish", 14, NN_M_FLOAT, NULL, f_hard_swish, NULL, NULL, NULL, 0, 0),
    ROW("Swish", 24, NN_M_FLOAT, alpha_attrs, f_swish, NULL, "alpha", NULL, 1, 0),
    ROW("Gelu", 20, NN_M_FLOAT, gelu_attrs, f_gelu, NULL, NULL, NULL, 0, 0),
    ROW("Mish", 18, NN_M_FLOAT, NULL, f_mish, NULL, NULL, NULL, 0, 0),
    ROW("Shrink", 9, NN_M_NUM, shrink_attrs, f_shrink, NULL, "lambd", "bias", 0.5f, 0),
    {0},
};
