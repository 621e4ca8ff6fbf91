/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every row with a prepared step against its reference kernel: random shapes, operands and
 * attributes from a line of the table, one to seven pieces with the same bits. A row that has no
 * line here fails the test.
 */
#include <math.h>

#include "base/alloc.h"
#include "nn/check.h"
#include "nn/nn.h"
#include "tests/test.h"

enum { MAX_IN = 10, MAX_OUT = 3, MAX_ATTRS = 8, ROUNDS = 60 };

static uint32_t seed = 1;
static unsigned rnd(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* A case: operands, attributes, results wanted. */
struct c {
    struct nn_value in[MAX_IN];
    uint32_t nin, nout;
    bool is_constant[MAX_IN];
    struct heddle_onnx_attr attr[MAX_ATTRS];
    size_t nattrs;
    int64_t list[MAX_ATTRS][NN_DIMS];
    struct heddle_scratch mem;
};

static void add_in(struct c *c, unsigned type, int rank, const int64_t *dim)
{
    struct nn_shape s = {.rank = rank};
    size_t n;

    for (int d = 0; d < rank; d++)
        s.dim[d] = dim[d];
    c->in[c->nin] = heddle_nn_tensor(type, &s);
    n = heddle_nn_count(&s);
    c->in[c->nin].data =
        heddle_scratch_get(&c->mem, n + 1, heddle_nn_type_bytes(type)); /* an odd end */
    CHECK(c->in[c->nin].data != NULL);
    for (size_t i = 0; i < n; i++)
        heddle_nn_put_f64(type, c->in[c->nin].data, i, ((double)rnd(2001) - 1000) / 500);
    c->nin++;
}

/* Operand of integers. */
static void add_list(struct c *c, unsigned n, const int64_t *v)
{
    const int64_t dim = n;

    add_in(c, NN_I64, 1, &dim);
    for (unsigned i = 0; i < n; i++)
        ((int64_t *)c->in[c->nin - 1].data)[i] = v[i];
    c->is_constant[c->nin - 1] = true;
}

static void attr_i(struct c *c, const char *name, int64_t v)
{
    c->attr[c->nattrs++] = (struct heddle_onnx_attr){.name = name, .i = v};
}

static void attr_f(struct c *c, const char *name, float v)
{
    c->attr[c->nattrs++] = (struct heddle_onnx_attr){.name = name, .f = v};
}

static void attr_ints(struct c *c, const char *name, unsigned n, const int64_t *v)
{
    int64_t *list = c->list[c->nattrs];

    for (unsigned i = 0; i < n; i++)
        list[i] = v[i];
    c->attr[c->nattrs++] = (struct heddle_onnx_attr){.name = name, .ints = list, .nints = n};
}

static void positive(struct c *c, unsigned i)
{
    float *x = c->in[i].data;

    for (size_t k = 0; k < heddle_nn_count(&c->in[i].shape); k++)
        x[k] = fabsf(x[k]) + 0.125f;
}

/* --- makers: a random case of an operator ---------------------------------------------------- */

static int some_dims(int64_t *dim, int least, unsigned more, unsigned most)
{
    const int rank = least + (int)rnd(more + 1);

    for (int d = 0; d < rank; d++)
        dim[d] = 1 + rnd(most);
    return rank;
}

static void make_unary(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 0, 4, 7);

    add_in(c, NN_F32, rank, dim);
    if (strcmp(op->name, "Log") == 0 || strcmp(op->name, "Sqrt") == 0 ||
        strcmp(op->name, "Reciprocal") == 0)
        positive(c, 0);
    if (strcmp(op->name, "Gelu") == 0 && rnd(2))
        c->attr[c->nattrs++] = (struct heddle_onnx_attr){.name = "approximate", .s = {"tanh", 4}};
    if (op->attrs != NULL && strcmp(op->attrs[0].name, "alpha") == 0 && rnd(2))
        attr_f(c, "alpha", 0.3f);
}

/* Dimensions of 1 in one of the two, fewer dimensions in the second one. */
static void make_binary(struct c *c, const struct nn_op *op)
{
    int64_t a[NN_DIMS], b[NN_DIMS];
    const int rank = some_dims(a, 1, 3, 6), less = op->since < 7 ? 0 : (int)rnd((unsigned)rank);

    for (int d = 0; d < rank; d++) {
        b[d] = a[d];
        if (op->since >= 7 && rnd(4) == 0)
            *(rnd(2) ? &a[d] : &b[d]) = 1;
    }
    add_in(c, NN_F32, rank, a);
    add_in(c, NN_F32, rank - less, b + less);
    c->is_constant[1] = rnd(2);
    if (strcmp(op->name, "Div") == 0)
        positive(c, 1);
    if (strcmp(op->name, "Pow") != 0)
        return;
    positive(c, 0);
    if (rnd(2)) {
        c->nin = 1;
        add_in(c, NN_F32, 0, NULL);
        *(float *)c->in[1].data = (float)(1 + rnd(4));
        c->is_constant[1] = true;
    }
}

static void make_variadic(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 6);
    const unsigned n = 1 + rnd(MAX_IN);

    (void)op;
    for (unsigned i = 0; i < n; i++)
        add_in(c, NN_F32, rank, dim);
}

static void make_clip(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 9);

    add_in(c, NN_F32, rank, dim);
    if (op->since < 11) {
        attr_f(c, "min", -0.5f);
        attr_f(c, "max", 0.75f);
        return;
    }
    for (int i = 0; i < 2; i++) {
        add_in(c, NN_F32, 0, NULL);
        *(float *)c->in[1 + i].data = i == 0 ? -0.25f : 1;
        c->is_constant[1 + i] = true;
    }
}

static void make_matmul(struct c *c, const struct nn_op *op)
{
    const int64_t m = 1 + rnd(40), n = 1 + rnd(40), k = 1 + rnd(70), b = 1 + rnd(3), h = 1 + rnd(3);
    const unsigned kind = rnd(5);

    (void)op;
    if (kind == 0)
        add_in(c, NN_F32, 1, (int64_t[]){k});
    else if (kind == 1)
        add_in(c, NN_F32, 2, (int64_t[]){m, k});
    else
        add_in(c, NN_F32, 4, (int64_t[]){b, h, m, k});
    if (kind == 2)
        add_in(c, NN_F32, 1, (int64_t[]){k});
    else if (kind == 3)
        add_in(c, NN_F32, 4, (int64_t[]){b, h, k, n});
    else
        add_in(c, NN_F32, 2, (int64_t[]){k, n});
    c->is_constant[1] = rnd(2);
}

static void make_gemm(struct c *c, const struct nn_op *op)
{
    const int64_t m = 1 + rnd(40), n = 1 + rnd(40), k = 1 + rnd(70), ta = rnd(2), tb = rnd(2);
    const unsigned with = rnd(4);

    (void)op;
    attr_i(c, "transA", ta);
    attr_i(c, "transB", tb);
    if (rnd(2))
        attr_f(c, "alpha", 0.5f);
    add_in(c, NN_F32, 2, ta ? (int64_t[]){k, m} : (int64_t[]){m, k});
    add_in(c, NN_F32, 2, tb ? (int64_t[]){n, k} : (int64_t[]){k, n});
    if (with == 1)
        add_in(c, NN_F32, 1, (int64_t[]){n});
    else if (with == 2)
        add_in(c, NN_F32, 2, (int64_t[]){m, n});
    else if (with == 3)
        add_in(c, NN_F32, 2, (int64_t[]){m, 1});
    c->is_constant[1] = rnd(2);
    c->is_constant[2] = rnd(2);
}

static void window(struct c *c, int nd, const char *kernel, const int64_t *k)
{
    int64_t s[2], p[4];

    for (int d = 0; d < nd; d++) {
        s[d] = 1 + rnd(2);
        p[d] = rnd((unsigned)k[d]);
        p[d + nd] = rnd((unsigned)k[d]);
    }
    if (kernel != NULL)
        attr_ints(c, kernel, (unsigned)nd, k);
    attr_ints(c, "strides", (unsigned)nd, s);
    attr_ints(c, "pads", 2 * (unsigned)nd, p);
}

static void make_conv(struct c *c, const struct nn_op *op)
{
    const int nd = 1 + (int)rnd(2);
    const int64_t g = rnd(2) ? 1 + rnd(20) : 1, cg = rnd(2) ? 1 : 1 + rnd(6),
                  mg = rnd(2) ? 1 : 1 + rnd(6);
    const int64_t k[2] = {1 + rnd(3), 1 + rnd(3)};

    (void)op;
    add_in(c, NN_F32, nd + 2, (int64_t[]){1 + rnd(2), g * cg, 3 + rnd(8), 3 + rnd(8)});
    add_in(c, NN_F32, nd + 2, (int64_t[]){g * mg, cg, k[0], k[1]});
    if (rnd(2))
        add_in(c, NN_F32, 1, (int64_t[]){g * mg});
    c->is_constant[1] = c->is_constant[2] = true;
    attr_i(c, "group", g);
    window(c, nd, rnd(2) ? "kernel_shape" : NULL, k);
}

static void make_conv_transpose(struct c *c, const struct nn_op *op)
{
    const int nd = 1 + (int)rnd(2);
    const int64_t cin = 1 + rnd(20), cout = 1 + rnd(20);
    const int64_t k[2] = {1 + rnd(4), 1 + rnd(4)}, more[2] = {rnd(2), rnd(2)};

    (void)op;
    add_in(c, NN_F32, nd + 2, (int64_t[]){1 + rnd(2), cin, 1 + rnd(8), 1 + rnd(8)});
    add_in(c, NN_F32, nd + 2, (int64_t[]){cin, cout, k[0], k[1]});
    if (rnd(2))
        add_in(c, NN_F32, 1, (int64_t[]){cout});
    c->is_constant[1] = c->is_constant[2] = true;
    window(c, nd, rnd(2) ? "kernel_shape" : NULL, k);
    if (rnd(2))
        attr_ints(c, "output_padding", (unsigned)nd, more);
}

static void make_pool(struct c *c, const struct nn_op *op)
{
    const int nd = 1 + (int)rnd(2);
    const int64_t k[2] = {1 + rnd(3), 1 + rnd(3)};

    add_in(c, NN_F32, nd + 2, (int64_t[]){1 + rnd(2), 1 + rnd(20), 3 + rnd(8), 3 + rnd(8)});
    if (strncmp(op->name, "Global", 6) == 0)
        return;
    window(c, nd, "kernel_shape", k);
    if (strcmp(op->name, "AveragePool") == 0)
        attr_i(c, "count_include_pad", rnd(2));
    attr_i(c, "ceil_mode", rnd(2));
}

static void make_axis(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 12);

    (void)op;
    add_in(c, NN_F32, rank, dim);
    attr_i(c, "axis", rnd((unsigned)rank));
}

static void make_batch(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 2, 2, 7);

    (void)op;
    add_in(c, NN_F32, rank, dim);
    for (unsigned i = 1; i < 5; i++) {
        add_in(c, NN_F32, 1, &dim[1]);
        c->is_constant[i] = true;
    }
    positive(c, 4);
}

static void make_layer(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 20), axis = (int)rnd((unsigned)rank);

    add_in(c, NN_F32, rank, dim);
    add_in(c, NN_F32, rank - axis, dim + axis);
    if (op->nin_max > 2 && rnd(2))
        add_in(c, NN_F32, rank - axis, dim + axis);
    attr_i(c, "axis", axis);
}

static void make_transpose(struct c *c, const struct nn_op *op)
{
    static const unsigned type[] = {NN_F32, NN_I64, NN_U8, NN_F16};
    int64_t dim[NN_DIMS] = {0}, perm[NN_DIMS] = {0};
    const int rank = some_dims(dim, 0, 4, 9);

    (void)op;
    add_in(c, type[rnd(4)], rank, dim);
    for (int d = 0; d < rank; d++) {
        const int to = (int)rnd((unsigned)d + 1);

        perm[d] = perm[to];
        perm[to] = d;
    }
    if (rnd(4) > 0)
        attr_ints(c, "perm", (unsigned)rank, perm);
}

static void make_gather(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS], n[NN_DIMS];
    const int rank = some_dims(dim, 1, 2, 9), irank = some_dims(n, 0, 2, 5),
              axis = (int)rnd((unsigned)rank);
    int64_t *at;

    (void)op;
    add_in(c, rnd(2) ? NN_F32 : NN_I64, rank, dim);
    add_in(c, NN_I64, irank, n);
    at = c->in[1].data;
    for (size_t i = 0; i < heddle_nn_count(&c->in[1].shape); i++)
        at[i] = (int64_t)rnd(2 * (unsigned)dim[axis]) - dim[axis];
    attr_i(c, "axis", axis);
}

static void make_concat(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 9), axis = (int)rnd((unsigned)rank);
    const unsigned n = 1 + rnd(4), type = rnd(2) ? NN_F32 : NN_BOOL;

    (void)op;
    for (unsigned i = 0; i < n; i++) {
        dim[axis] = rnd(40);
        add_in(c, type, rank, dim);
    }
    attr_i(c, "axis", axis);
}

static void make_split(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS], part[3] = {rnd(50), 1 + rnd(50), rnd(9)};
    const int rank = some_dims(dim, 1, 3, 9), axis = (int)rnd((unsigned)rank);

    dim[axis] = part[0] + part[1] + part[2];
    add_in(c, rnd(2) ? NN_F32 : NN_F64, rank, dim);
    c->nout = 3;
    attr_i(c, "axis", axis);
    if (op->since >= 13)
        add_list(c, 3, part);
    else
        attr_ints(c, "split", 3, part);
}

static void make_slice(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS], start[NN_DIMS], end[NN_DIMS], axis[NN_DIMS], step[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 40);

    add_in(c, rnd(2) ? NN_F32 : NN_I64, rank, dim);
    for (int d = 0; d < rank; d++) {
        start[d] = (int64_t)rnd(60) - 30;
        end[d] = (int64_t)rnd(60) - 30;
        axis[d] = d;
        step[d] = rnd(2) ? 1 : (int64_t)rnd(3) + 1;
        if (rnd(4) == 0)
            step[d] = -step[d];
    }
    if (op->since < 10) {
        attr_ints(c, "starts", (unsigned)rank, start);
        attr_ints(c, "ends", (unsigned)rank, end);
        return;
    }
    add_list(c, (unsigned)rank, start);
    add_list(c, (unsigned)rank, end);
    add_list(c, (unsigned)rank, axis);
    add_list(c, (unsigned)rank, step);
}

static void make_expand(struct c *c, const struct nn_op *op)
{
    int64_t a[NN_DIMS], b[NN_DIMS];
    const int rank = some_dims(a, 1, 3, 8), less = (int)rnd((unsigned)rank);

    (void)op;
    for (int d = 0; d < rank; d++) {
        b[d] = a[d];
        a[d] = rnd(2) ? 1 : a[d];
    }
    add_in(c, rnd(2) ? NN_F32 : NN_U8, rank - less, a + less);
    add_list(c, (unsigned)rank, b);
}

static void make_reduce(struct c *c, const struct nn_op *op)
{
    int64_t dim[NN_DIMS], axes[NN_DIMS];
    const int rank = some_dims(dim, 1, 3, 14);
    const unsigned n = 1 + rnd((unsigned)rank);

    add_in(c, NN_F32, rank, dim);
    for (unsigned i = 0; i < n; i++)
        axes[i] = -1 - (int64_t)i;
    attr_i(c, "keepdims", rnd(2));
    if (op->nin_max > 1)
        add_list(c, n, axes);
    else
        attr_ints(c, "axes", n, axes);
}

/* An operand of bytes (or of 32 bits) of their whole range; constant but for operand 0. */
static void add_bytes(struct c *c, unsigned type, int rank, const int64_t *dim)
{
    const uint32_t at = c->nin;

    add_in(c, type, rank, dim);
    for (size_t i = 0; i < heddle_nn_count(&c->in[at].shape); i++)
        heddle_nn_put_i64(type, c->in[at].data, i,
                          type == NN_I32 ? (int)rnd(4001) - 2000
                                         : (int)rnd(256) - (type == NN_I8 ? 128 : 0));
    c->is_constant[at] = at > 0;
}

static void add_scale(struct c *c, int rank, const int64_t *dim)
{
    add_in(c, NN_F32, rank, dim);
    for (size_t i = 0; i < heddle_nn_count(&c->in[c->nin - 1].shape); i++)
        ((float *)c->in[c->nin - 1].data)[i] = (float)(1 + rnd(999)) / 4000;
    c->is_constant[c->nin - 1] = true;
}

/* The zero point of weights has to be 0 for signed ones, and near 128 for others, or there is no
 * step. */
static void add_weights_zero(struct c *c, unsigned type)
{
    add_bytes(c, type, 0, NULL);
    heddle_nn_put_i64(type, c->in[c->nin - 1].data, 0, type == NN_I8 ? 0 : 128);
}

static void make_qconv(struct c *c, const struct nn_op *op)
{
    const unsigned x = rnd(2) ? NN_U8 : NN_I8, w = rnd(2) ? NN_U8 : NN_I8,
                   y = rnd(2) ? NN_U8 : NN_I8;
    const int64_t ci = 1 + rnd(9), co = 1 + rnd(70), k = 1 + rnd(3), p = rnd((unsigned)k + 1),
                  size[] = {1 + rnd(2), ci, 3 + rnd(5), 3 + rnd(5)}, weights[] = {co, ci, k, k},
                  pads[] = {p, 0, 1, p}, steps[] = {1 + rnd(2), 1 + rnd(2)};
    const bool is_linear = op->nin_min == 8;

    add_bytes(c, x, 4, size);
    if (is_linear) {
        add_scale(c, 0, NULL);
        add_bytes(c, x, 0, NULL);
    }
    add_bytes(c, w, 4, weights);
    if (is_linear)
        add_scale(c, rnd(2) ? 1 : 0, &co);
    else
        add_bytes(c, x, 0, NULL);
    add_weights_zero(c, w);
    if (is_linear) {
        add_scale(c, 0, NULL);
        add_bytes(c, y, 0, NULL);
        if (rnd(2))
            add_bytes(c, NN_I32, 1, &co);
    }
    attr_ints(c, "pads", 4, pads);
    attr_ints(c, "strides", 2, steps);
}

static void make_quantize(struct c *c, const struct nn_op *op)
{
    const unsigned type = rnd(2) ? NN_U8 : NN_I8;
    int64_t dim[NN_DIMS];
    const int rank = some_dims(dim, 0, 4, 9);

    if (strcmp(op->name, "QuantizeLinear") == 0)
        add_in(c, NN_F32, rank, dim);
    else
        add_bytes(c, type, rank, dim);
    add_scale(c, 0, NULL);
    add_bytes(c, type, 0, NULL);
}

static void make_qmatmul(struct c *c, const struct nn_op *op)
{
    const unsigned x = rnd(2) ? NN_U8 : NN_I8, w = rnd(2) ? NN_U8 : NN_I8;
    const int64_t k = 1 + rnd(40), n = 1 + rnd(80), a[] = {1 + rnd(3), 1 + rnd(9), k}, b[] = {k, n};
    const bool is_linear = op->nin_min == 8;

    add_bytes(c, x, 3, a);
    if (is_linear) {
        add_scale(c, 0, NULL);
        add_bytes(c, x, 0, NULL);
    }
    add_bytes(c, w, 2, b);
    if (is_linear)
        add_scale(c, rnd(2) ? 1 : 0, &n);
    else
        add_bytes(c, x, 0, NULL);
    add_weights_zero(c, w);
    if (is_linear) {
        add_scale(c, 0, NULL);
        add_bytes(c, rnd(2) ? NN_U8 : NN_I8, 0, NULL);
    }
}

static const struct maker {
    const char *file; /* names, with blanks around */
    void (*make)(struct c *c, const struct nn_op *op);
} makers[] = {
    {" Abs Neg Exp Log Sqrt Reciprocal Floor Ceil Sin Cos Tanh Erf Relu Sigmoid LeakyRelu Elu "
     "HardSigmoid HardSwish Swish Gelu Sign Not BitwiseNot Round Tan Asin Acos Atan Sinh Cosh "
     "Asinh "
     "Acosh Atanh Softplus Softsign Celu Selu ThresholdedRelu Mish Shrink ",
     make_unary},
    {" Add Sub Mul Div Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Less Greater "
     "LessOrEqual GreaterOrEqual PRelu Mod BitShift ",
     make_binary},
    {" Sum Mean Max Min ", make_variadic},
    {" Clip ", make_clip},
    {" MatMul ", make_matmul},
    {" Gemm ", make_gemm},
    {" Conv ", make_conv},
    {" ConvTranspose ", make_conv_transpose},
    {" MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool ", make_pool},
    {" Softmax LogSoftmax Hardmax ", make_axis},
    {" BatchNormalization ", make_batch},
    {" LayerNormalization RMSNormalization ", make_layer},
    {" QuantizeLinear DequantizeLinear ", make_quantize},
    {" ConvInteger QLinearConv ", make_qconv},
    {" MatMulInteger QLinearMatMul ", make_qmatmul},
    {" Transpose ", make_transpose},
    {" Gather ", make_gather},
    {" Concat ", make_concat},
    {" Split ", make_split},
    {" Slice ", make_slice},
    {" Expand ", make_expand},
    {" ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
     "ReduceLogSum ReduceLogSumExp ",
     make_reduce},
};

/* --- the comparison ------------------------------------------------------------------------- */

static void run_pieces(const struct nn_step *s, const struct c *c, struct nn_value *got,
                       size_t nparts)
{
    const size_t bytes = s->scratch != NULL ? s->scratch(s->state, nparts) : 0;
    void *scratch = bytes > 0 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    const void *in[MAX_IN];
    void *out[MAX_OUT];
    const struct nn_args a = {in, out};

    for (uint32_t i = 0; i < c->nin; i++)
        in[i] = c->in[i].kind == NN_ABSENT ? NULL : c->in[i].data;
    for (uint32_t i = 0; i < c->nout; i++)
        out[i] = got[i].data;
    for (size_t p = nparts; p-- > 0;)
        CHECK_OK(s->run(s->state, &a, p, nparts, scratch));
    free(scratch);
}

/* True when there was a step. */
static bool compare(const struct nn_op *op, struct c *c)
{
    const struct nn_node node = {.op = op,
                                 .name = "n",
                                 .opset = op->since,
                                 .attr = c->attr,
                                 .nattrs = c->nattrs,
                                 .nin = c->nin,
                                 .nout = c->nout};
    struct heddle_scratch temp = heddle_scratch_make(NULL);
    struct nn_run run = {.keep = &c->mem, .temp = &temp};
    struct nn_value want[MAX_OUT] = {{0}}, got[MAX_OUT], planned[MAX_IN];
    struct nn_step step = {0};
    char why[300] = "";
    struct nn_call call = {.node = &node,
                           .nin = c->nin,
                           .nout = c->nout,
                           .in = c->in,
                           .out = want,
                           .run = &run,
                           .why = why,
                           .why_bytes = sizeof(why)};
    heddle_status st = heddle_nn_rule(&call);
    size_t total = 0;

    if (st != HEDDLE_OK) /* a random window may be too wide */
        return false;
    for (uint32_t i = 0; i < c->nout; i++) {
        const struct nn_value v = want[i];

        CHECK_OK(heddle_nn_out(&call, i, v.type, &v.shape));
        CHECK_OK(heddle_nn_copy(&c->mem, &want[i], &got[i]));
        total += heddle_nn_count(&v.shape);
    }
    for (uint32_t i = 0; i < c->nin; i++) {
        planned[i] = c->in[i];
        planned[i].data = c->is_constant[i] ? planned[i].data : NULL;
    }
    call.in = planned;
    call.out = got;
    st = op->fast(&call, &step);
    if (st == HEDDLE_ENOSYS) {
        heddle_scratch_drop(&temp);
        return false;
    }
    if (st != HEDDLE_OK) {
        printf("%s since %u: %s\n", op->name, op->since, why);
        exit(1);
    }
    call.in = c->in;
    call.out = want;
    CHECK_OK(op->ref(&call));
    CHECK(step.parts >= 1 || total == 0);
    for (size_t n = 1; n <= 7 && n <= step.parts; n++) {
        struct nn_value first[MAX_OUT];

        for (uint32_t i = 0; i < c->nout; i++) {
            CHECK_OK(heddle_nn_copy(&c->mem, &got[i], &first[i]));
            memset(got[i].data, 0x55, heddle_nn_bytes(&got[i]));
        }
        run_pieces(&step, c, got, n);
        for (uint32_t i = 0; i < c->nout; i++) {
            if (!heddle_nn_compare(&got[i], &want[i], 2e-5, 2e-5, why, sizeof(why))) {
                printf("%s since %u, result %u, %zu pieces: %s\n", op->name, op->since, i, n, why);
                exit(1);
            }
            if ((NN_M_INT & NN_M(got[i].type)) != 0)
                CHECK(memcmp(want[i].data, got[i].data, heddle_nn_bytes(&got[i])) == 0);
            if (n > 1)
                CHECK(memcmp(first[i].data, got[i].data, heddle_nn_bytes(&got[i])) == 0);
        }
    }
    if (step.destroy != NULL)
        step.destroy(NULL, step.state);
    heddle_scratch_drop(&temp);
    return true;
}

static const struct maker *maker_of(const char *name)
{
    char with[80];

    (void)snprintf(with, sizeof(with), " %s ", name);
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
        if (strstr(makers[i].file, with) != NULL)
            return &makers[i];
    return NULL;
}

int main(void)
{
    const struct nn_op *op;
    unsigned nrows = 0, ncases = 0;

    for (size_t i = 0; (op = heddle_nn_get_op(i)) != NULL; i++) {
        const struct maker *m = maker_of(op->name);
        unsigned n = 0;

        if (op->fast == NULL || (op->domain != NULL && op->domain[0] != '\0'))
            continue;
        if (m == NULL) {
            printf("%s has a step, and no cases in this test\n", op->name);
            return 1;
        }
        for (int r = 0; r < ROUNDS; r++) {
            struct c c = {.nout = 1, .mem = heddle_scratch_make(NULL)};

            m->make(&c, op);
            n += compare(op, &c);
            heddle_scratch_drop(&c.mem);
        }
        nrows += n > 0;
        ncases += n;
    }
    printf("%u rows, %u cases\n", nrows, ncases);
    CHECK(nrows >= 60);
    return 0;
}
