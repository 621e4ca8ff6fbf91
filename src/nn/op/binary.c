/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * binary: functions of two numbers, element by element, with NumPy's broadcast. Comparisons and
 * logic give bool.
 *
 * Shapes    the broadcast shape. Before opset 7 (rows since 1) a smaller second operand was laid
 *           along `axis` of the first one when `broadcast` was set.
 * Integers  wrap; a division by zero gives 0.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "nn/op/step.h"

/* Another function, when the integer attribute `name` is not 0, or the text attribute is `text`. */
struct binary_other {
    const char *name, *text;
    double (*f)(double x, double y);
    int64_t (*i)(int64_t x, int64_t y, bool is_signed);
};

struct binary {
    double (*f)(double x, double y);                    /* NULL: no floats */
    int64_t (*i)(int64_t x, int64_t y, bool is_signed); /* NULL: no integers */
    bool (*s)(const struct heddle_onnx_bytes *x, const struct heddle_onnx_bytes *y); /* strings */
    bool to_bool;
    const struct binary_other *other; /* NULL: none */
};

/* The second operand as it is laid along the first one. */
static heddle_status binary_shapes(struct nn_call *c, struct nn_shape *y, struct nn_shape *out)
{
    const struct nn_shape *a = &c->in[0].shape;
    int axis;

    *y = c->in[1].shape;
    /* The slopes of the older PRelu are those of the channels. */
    if (c->node->op->since < 7 && strcmp(c->node->op->name, "PRelu") == 0 && a->rank > 1 &&
        y->rank == 1)
        for (; y->rank + 1 < a->rank; y->rank++)
            y->dim[y->rank] = 1;
    if (c->node->op->since < 7 && heddle_nn_int(c, "broadcast", 0) != 0 && a->rank >= 0 &&
        y->rank >= 0 && heddle_nn_has(c, "axis")) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), a->rank + 1, &axis));
        if (axis + y->rank > a->rank)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "axis %d is too far right", axis);
        for (; y->rank + axis < a->rank; y->rank++)
            y->dim[y->rank] = 1;
    }
    if (!heddle_nn_broadcast(a, y, out))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "shapes %s and %s do not go together",
                              heddle_nn_shape_text(a).text, heddle_nn_shape_text(y).text);
    return HEDDLE_OK;
}

static heddle_status binary_shape(struct nn_call *c)
{
    const struct binary *b = c->node->op->family;
    struct nn_shape y, out;

    HEDDLE_TRY(binary_shapes(c, &y, &out));
    c->out[0] = heddle_nn_tensor(b->to_bool ? (unsigned)NN_BOOL : c->in[0].type, &out);
    return HEDDLE_OK;
}

static void binary_one(const struct binary *b, const struct nn_value *x, size_t ix,
                       const struct nn_value *y, size_t iy, const struct nn_value *z, size_t iz)
{
    const uint32_t m = NN_M(x->type);
    const bool is_signed = (m & NN_M_SINT) != 0;

    if (x->type == NN_STR)
        ((uint8_t *)z->data)[iz] = b->s((const struct heddle_onnx_bytes *)x->data + ix,
                                        (const struct heddle_onnx_bytes *)y->data + iy);
    else if (b->i != NULL && (m & (NN_M_INT | NN_M(NN_BOOL))) != 0)
        heddle_nn_put_i64(z->type, z->data, iz,
                          b->i(heddle_nn_get_i64(x->type, x->data, ix),
                               heddle_nn_get_i64(y->type, y->data, iy), is_signed));
    else
        heddle_nn_put_f64(
            z->type, z->data, iz,
            b->f(heddle_nn_get_f64(x->type, x->data, ix), heddle_nn_get_f64(y->type, y->data, iy)));
}

/* What the attributes of the node make of the row. */
static struct binary binary_chosen(struct nn_call *c)
{
    struct binary b = *(const struct binary *)c->node->op->family;
    const struct binary_other *o = b.other;

    if (o != NULL && (o->text != NULL ? heddle_nn_is_text(c, o->name, "", o->text)
                                      : heddle_nn_int(c, o->name, 0) != 0)) {
        b.f = o->f;
        b.i = o->i;
    }
    return b;
}

static heddle_status binary_ref(struct nn_call *c)
{
    const struct binary b = binary_chosen(c);
    int64_t sx[NN_DIMS], sy[NN_DIMS], at[NN_DIMS] = {0};
    struct nn_shape yshape, out;
    size_t n, ix = 0, iy = 0;

    if ((NN_M(c->in[0].type) & NN_M_FLOAT) != 0 && b.f == NULL)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "floats need 'fmod'");
    HEDDLE_TRY(binary_shapes(c, &yshape, &out));
    heddle_nn_broadcast_steps(&c->in[0].shape, &out, sx);
    heddle_nn_broadcast_steps(&yshape, &out, sy);
    n = heddle_nn_count(&out);
    for (size_t k = 0; k < n; k++) {
        binary_one(&b, &c->in[0], ix, &c->in[1], iy, &c->out[0], k);
        for (int d = out.rank - 1; d >= 0; d--) {
            ix += (size_t)sx[d];
            iy += (size_t)sy[d];
            if (++at[d] < out.dim[d])
                break;
            ix -= (size_t)(sx[d] * at[d]);
            iy -= (size_t)(sy[d] * at[d]);
            at[d] = 0;
        }
    }
    return HEDDLE_OK;
}

#define F(name, expr)                                                                              \
    static double f_##name(double x, double y)                                                     \
    {                                                                                              \
        return expr;                                                                               \
    }
#define I(name, expr)                                                                              \
    static int64_t i_##name(int64_t x, int64_t y, bool is_signed)                                  \
    {                                                                                              \
        (void)is_signed;                                                                           \
        return expr;                                                                               \
    }
#define U(v) ((uint64_t)(v))
F(add, x + y)
F(sub, x - y)
F(mul, x *y)
F(div, x / y)
F(pow, pow(x, y))
F(equal, x == y)
F(less, x < y)
F(less_equal, x <= y)
F(greater, x > y)
F(greater_equal, x >= y)
F(prelu, x < 0 ? x * y : x)
I(add, (int64_t)(U(x) + U(y)))
I(sub, (int64_t)(U(x) - U(y)))
I(mul, (int64_t)(U(x) * U(y)))
I(div, y == 0 ? 0 : !is_signed ? (int64_t)(U(x) / U(y)) : y == -1 ? (int64_t)(0 - U(x)) : x / y)
I(and, x != 0 && y != 0)
I(or, x != 0 || y != 0)
I(xor, (x != 0) != (y != 0))
I(bit_and, x &y)
I(bit_or, x | y)
I(bit_xor, x ^ y)
I(equal, x == y)
I(less, is_signed ? x < y : U(x) < U(y))
I(less_equal, is_signed ? x <= y : U(x) <= U(y))
I(greater, is_signed ? x > y : U(x) > U(y))
I(greater_equal, is_signed ? x >= y : U(x) >= U(y))
F(mod, fmod(x, y))
/* The sign of the divisor. */
I(floor_mod, y == 0 || y == -1 ? 0
             : !is_signed      ? (int64_t)(U(x) % U(y))
                               : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0))
I(mod, y == 0 || y == -1 ? 0 : !is_signed ? (int64_t)(U(x) % U(y)) : x % y)
I(shift_left, U(y) > 63 ? 0 : (int64_t)(U(x) << U(y)))
I(shift_right, U(y) > 63 ? 0 : (int64_t)(U(x) >> U(y)))
I(prelu, is_signed &&x < 0 ? x * y : x)
#undef F
#undef I
#undef U

static const struct {
    double (*f)(double x, double y);
    enum dnn_fn fn;
} fast_fn[] = {{f_add, DNN_ADD}, {f_sub, DNN_SUB}, {f_mul, DNN_MUL}, {f_div, DNN_DIV}};

static heddle_status binary_map(struct nn_call *c, struct nn_map *m)
{
    const struct binary *b = c->node->op->family;
    struct nn_shape z;

    *m = (struct nn_map){.m = {.nsteps = 1}, .nin = 2, .shape = {c->in[0].shape}};
    HEDDLE_TRY(binary_shapes(c, &m->shape[1], &z));
    for (size_t i = 0; i < sizeof(fast_fn) / sizeof(fast_fn[0]); i++) {
        if (fast_fn[i].f != b->f)
            continue;
        m->m.step[0] = (struct dnn_step){.fn = fast_fn[i].fn, .a = 0, .b = 1};
        return HEDDLE_OK;
    }
    return HEDDLE_ENOSYS;
}

/* A constant exponent of 2 or 3 is one or two products. */
static heddle_status pow_map(struct nn_call *c, struct nn_map *m)
{
    const struct nn_value *y = &c->in[1];

    if (!heddle_nn_is_f32(c))
        return HEDDLE_ENOSYS;
    *m = (struct nn_map){.m = {.nsteps = 1, .step = {{.fn = DNN_POW, .a = 0, .b = 1}}},
                         .nin = 2,
                         .shape = {c->in[0].shape, y->shape}};
    if (y->data != NULL && heddle_nn_count(&y->shape) == 1) {
        const float e = *(const float *)y->data;

        if (e == 2 || e == 3)
            m->m.step[0] = (struct dnn_step){.fn = DNN_SQUARE, .a = 0};
        if (e == 3)
            m->m.step[m->m.nsteps++] = (struct dnn_step){.fn = DNN_MUL, .a = 2, .b = 0};
    }
    return HEDDLE_OK;
}

static bool s_equal(const struct heddle_onnx_bytes *x, const struct heddle_onnx_bytes *y)
{
    return x->len == y->len && (x->len == 0 || memcmp(x->ptr, y->ptr, x->len) == 0);
}

static const struct nn_attr_rule old_attrs[] = {{"axis", NN_INT, false},
                                                {"broadcast", NN_INT, false},
                                                {"consumed_inputs", NN_INTS, false},
                                                {0}};

static const struct binary_other mod_other = {"fmod", NULL, f_mod, i_mod};
static const struct binary_other shift_other = {"direction", "LEFT", NULL, i_shift_left};
static const struct nn_attr_rule mod_attrs[] = {{"fmod", NN_INT, false}, {0}};
static const struct nn_attr_rule shift_attrs[] = {{"direction", NN_STRING, true}, {0}};

#define ROWS(nm, from, types, at, more, ...)                                                       \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = 2, .nin_max = 2, .inplace = 3, .flags = NN_POINT,    \
        .type = {types, types}, .same = 3, .attrs = at, .shape = binary_shape, .ref = binary_ref,  \
        .fast = heddle_nn_map_fast, .map = binary_map, .family = &(const struct binary)            \
        {                                                                                          \
            __VA_ARGS__, more                                                                      \
        }                                                                                          \
    }
#define ROW(nm, from, types, at, ...) ROWS(nm, from, types, at, NULL, __VA_ARGS__)
#define B                             NN_M(NN_BOOL)
#define EQUALS                        (NN_M_NUM | NN_M(NN_BOOL) | NN_M(NN_STR))

const struct nn_op heddle_nn_op_binary[] = {
    ROW("Add", 7, NN_M_NUM, NULL, f_add, i_add, NULL, false),
    ROW("Add", 1, NN_M_NUM, old_attrs, f_add, i_add, NULL, false),
    ROW("Sub", 7, NN_M_NUM, NULL, f_sub, i_sub, NULL, false),
    ROW("Sub", 1, NN_M_NUM, old_attrs, f_sub, i_sub, NULL, false),
    ROW("Mul", 7, NN_M_NUM, NULL, f_mul, i_mul, NULL, false),
    ROW("Mul", 1, NN_M_NUM, old_attrs, f_mul, i_mul, NULL, false),
    ROW("Div", 7, NN_M_NUM, NULL, f_div, i_div, NULL, false),
    ROW("Div", 1, NN_M_NUM, old_attrs, f_div, i_div, NULL, false),
    ROW("And", 7, B, NULL, NULL, i_and, NULL, true),
    ROW("And", 1, B, old_attrs, NULL, i_and, NULL, true),
    ROW("Or", 7, B, NULL, NULL, i_or, NULL, true),
    ROW("Or", 1, B, old_attrs, NULL, i_or, NULL, true),
    ROW("Xor", 7, B, NULL, NULL, i_xor, NULL, true),
    ROW("Xor", 1, B, old_attrs, NULL, i_xor, NULL, true),
    ROW("BitwiseAnd", 18, NN_M_INT, NULL, NULL, i_bit_and, NULL, false),
    ROW("BitwiseOr", 18, NN_M_INT, NULL, NULL, i_bit_or, NULL, false),
    ROW("BitwiseXor", 18, NN_M_INT, NULL, NULL, i_bit_xor, NULL, false),
    ROW("Equal", 7, EQUALS, NULL, f_equal, i_equal, s_equal, true),
    ROW("Equal", 1, EQUALS, old_attrs, f_equal, i_equal, s_equal, true),
    ROW("Less", 7, NN_M_NUM, NULL, f_less, i_less, NULL, true),
    ROW("Less", 1, NN_M_NUM, old_attrs, f_less, i_less, NULL, true),
    ROW("Greater", 7, NN_M_NUM, NULL, f_greater, i_greater, NULL, true),
    ROW("Greater", 1, NN_M_NUM, old_attrs, f_greater, i_greater, NULL, true),
    ROW("LessOrEqual", 12, NN_M_NUM, NULL, f_less_equal, i_less_equal, NULL, true),
    ROW("GreaterOrEqual", 12, NN_M_NUM, NULL, f_greater_equal, i_greater_equal, NULL, true),
    ROWS("Mod", 10, NN_M_NUM, mod_attrs, &mod_other, NULL, i_floor_mod, NULL, false),
    ROWS("BitShift", 11, NN_M_UINT, shift_attrs, &shift_other, NULL, i_shift_right, NULL, false),
    ROW("PRelu", 7, NN_M_NUM, NULL, f_prelu, i_prelu, NULL, false),
    ROW("PRelu", 1, NN_M_FLOAT, old_attrs, f_prelu, i_prelu, NULL, false),
    {.name = "Pow",
     .since = 7,
     .nin_min = 2,
     .nin_max = 2,
     .inplace = 1,
     .type = {NN_M_NUM, NN_M_NUM},
     .shape = binary_shape,
     .ref = binary_ref,
     .fast = heddle_nn_map_fast,
     .map = pow_map,
     .family = &(const struct binary){f_pow, NULL, NULL, false, NULL}},
    {0},
};
