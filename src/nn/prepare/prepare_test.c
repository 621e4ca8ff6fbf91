/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every pass on graphs by hand: those that it should join, and look-alikes that it must not.
 * The outputs of the prepared graph are compared with those of the
 * reference kernels on the graph as it is. Plans whose k-th allocation fails.
 */
#include "base/faulty_test.h"
#define GRAPH_FILE "prepare_prepare.onnx"
#include "nn/prepare/graph_test.h"

/* --- same, transpose ----------------------------------------------------------------- */

TEST(nothing_to_do)
{
    begin(2, DIM(3, 5));
    put_number(&g, "one", 1);
    put_number(&g, "zero", 0);
    put_list(&g, "shape", 2, (const int64_t[]){3, 1});
    put_list(&g, "from", 2, (const int64_t[]){0, 0});
    put_list(&g, "to", 2, (const int64_t[]){3, 5});
    node("Identity", "x", "a", "");
    node("Dropout", "a", "b", "");
    node("Mul", "one b", "c", "");
    node("Sub", "c zero", "d", "");
    node("Expand", "d shape", "e", "");
    node("Slice", "e from to", "f", "");
    node("Cast", "f", "h", "to:1");
    node("Concat", "h", "i", "axis:0");
    node("Softmax", "i", "y", "axis:1");
    expect("y", 1, "Softmax", 1);
}

TEST(almost_nothing)
{
    begin(2, DIM(3, 5));
    put_number(&g, "one", 1);
    put_number(&g, "zero", 0);
    put_list(&g, "begin", 1, (const int64_t[]){4});
    put_list(&g, "end", 1, (const int64_t[]){-9});
    put_list(&g, "axis", 1, (const int64_t[]){1});
    put_list(&g, "back", 1, (const int64_t[]){-1});
    put_list(&g, "pads", 4, (const int64_t[]){1, 0, -1, 0});
    put_weights(&g, "row", 3, DIM(1, 1, 1));
    node("Slice", "x begin end axis back", "a", "");
    node("Pad", "a pads", "b", "");
    node("Sub", "zero b", "c", "");
    node("Softmax", "c", "d", "axis:0");
    node("Div", "one d", "y", "");
    expect("y", 5, "Slice", 1);
}

TEST(transposes)
{
    begin(4, DIM(2, 3, 1, 5));
    node("Transpose", "x", "a", "perm=0,2,1,3"); /* moves nothing */
    node("Transpose", "a", "b", "perm=3,0,1,2");
    node("Transpose", "b", "c", "perm=1,2,3,0"); /* back */
    node("Transpose", "c", "d", "perm=3,2,1,0");
    node("Transpose", "d", "y", "perm=1,0,2,3");
    expect("y", 1, "Transpose", 1);
}

/* --- norm ---------------------------------------------------------------------------- */

struct norm_how {
    const char *axes, *square, *divide;
    bool is_rms, no_shift, is_twice;
};

static void put_norm(const struct norm_how *h, const char *x, const char *to)
{
    char in[40];

    (void)snprintf(in, sizeof(in), "%s mean", x);
    if (!h->is_rms) {
        node("ReduceMean", x, "mean", h->axes);
        node("Sub", in, "d", "");
    } else {
        node("Identity", x, "d", "");
    }
    if (h->is_twice)
        node("Sub", in, "d2", "");
    if (strcmp(h->square, "Pow") == 0)
        node("Pow", "d two", "dd", "");
    else
        node("Mul", "d d", "dd", "");
    node("ReduceMean", "dd", "var", h->axes);
    node("Add", "var eps", "vare", "");
    node("Sqrt", "vare", "root", "");
    if (strcmp(h->divide, "Div") == 0) {
        node("Div", h->is_twice ? "d2 root" : "d root", "unit", "");
    } else {
        if (strcmp(h->divide, "one") == 0)
            node("Div", "one root", "inv", "");
        else
            node("Reciprocal", "root", "inv", "");
        node("Mul", "inv d", "unit", "");
    }
    node("Mul", "gamma unit", h->no_shift ? to : "scaled", "");
    if (!h->no_shift)
        node("Add", "scaled beta", to, "");
}

static void begin_norm(void)
{
    begin(3, DIM(2, 6, 8));
    put_number(&g, "two", 2);
    put_number(&g, "one", 1);
    put_number(&g, "eps", 1e-3);
    put_weights(&g, "gamma", 1, DIM(8));
    put_weights(&g, "beta", 1, DIM(8));
    node("Tanh", "x", "h", "");
}

TEST(norms)
{
    static const struct norm_how how[] = {
        {"axes=-1", "Pow", "Div", false, false, false},
        {"axes=2 keepdims:1", "Mul", "Reciprocal", false, true, false},
        {"axes=-1", "Mul", "one", false, false, false},
        {"axes=-1", "Pow", "Div", false, false, true},
        {"axes=-1", "Pow", "Reciprocal", true, true, false},
        {"axes=-1", "Mul", "Div", true, true, false},
    };

    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        begin_norm();
        put_norm(&how[i], "h", "y");
        expect("y", 2, how[i].is_rms ? "RMSNormalization" : "LayerNormalization", 1);
    }
}

TEST(no_norms)
{
    const struct norm_how last = {"axes=-1", "Pow", "Div", false, false, false},
                          other = {"axes=1", "Pow", "Div", false, false, false},
                          both = {"axes=1,2", "Pow", "Div", false, false, false};
    static const char *const inside[] = {"y d", "y unit", "y root", "y var", "y mean"};
    struct census c = {.op = {"LayerNormalization"}};

    begin_norm();
    put_norm(&other, "h", "y");
    expect("y", 7, "LayerNormalization", 0);
    begin_norm();
    put_norm(&both, "h", "y");
    expect("y", 7, "LayerNormalization", 0);
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) { /* an output in the middle */
        begin_norm();
        put_norm(&last, "h", "y");
        put_port(&g, 12, "y", 0, NULL);
        put_port(&g, 12, inside[i] + 2, 0, NULL);
        end_model(path, &g, 17);
        compare_model(path, count_ops, &c);
    }
    begin_norm(); /* another reader in the middle */
    put_norm(&last, "h", "z");
    node("Softmax", "d", "s", "");
    node("Add", "z s", "y", "");
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g, 17);
    compare_model(path, count_ops, &c);
    begin(3, DIM(2, 6, 8)); /* epsilon from the data */
    put_number(&g, "two", 2);
    put_weights(&g, "gamma", 1, DIM(8));
    put_weights(&g, "beta", 1, DIM(8));
    node("Abs", "x", "h", "");
    node("ReduceMax", "h", "eps", "keepdims:0");
    put_norm(&last, "h", "y");
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g, 17);
    compare_model(path, count_ops, &c);
    CHECK_EQ(c.n[0], 0);
}

TEST(norm_scaled_by_rows)
{
    begin(2, DIM(6, 8));
    put_number(&g, "two", 2);
    put_number(&g, "eps", 1e-3);
    put_weights(&g, "gamma", 2, DIM(6, 1));
    put_norm(&(struct norm_how){"axes=-1", "Pow", "Div", false, true, false}, "x", "y");
    expect("y", 6, "LayerNormalization", 0);
}

/* --- activation ---------------------------------------------------------------------- */

static void begin_activation(void)
{
    begin(2, DIM(7, 9));
    put_number(&g, "one", 1);
    put_number(&g, "half", 0.5);
    put_number(&g, "three", 3);
    put_number(&g, "six", 6);
    put_number(&g, "zero", 0);
    put_number(&g, "root2", sqrt(2));
    put_number(&g, "iroot2", sqrt(0.5));
    put_number(&g, "c1", 0.044715);
    put_number(&g, "c2", sqrt(2 / M_PI));
    node("Softmax", "x", "h", ""); /* keeps what follows apart from the input */
}

TEST(activations)
{
    begin_activation();
    node("Div", "h root2", "a", "");
    node("Erf", "a", "b", "");
    node("Add", "b one", "c", "");
    node("Mul", "h c", "d", "");
    node("Mul", "d half", "y", "");
    expect("y", 2, "Gelu", 1);
    begin_activation();
    node("Mul", "h iroot2", "a", "");
    node("Erf", "a", "b", "");
    node("Add", "one b", "c", "");
    node("Mul", "half h", "d", "");
    node("Mul", "d c", "y", "");
    expect("y", 2, "Gelu", 1);
    begin_activation();
    node("Pow", "h three", "a", "");
    node("Mul", "a c1", "b", "");
    node("Add", "h b", "c", "");
    node("Mul", "c c2", "d", "");
    node("Tanh", "d", "e", "");
    node("Add", "e one", "f", "");
    node("Mul", "h half", "i", "");
    node("Mul", "i f", "y", "");
    expect("y", 2, "Gelu", 1);
    begin_activation();
    node("Mul", "h h", "a0", "");
    node("Mul", "h a0", "a", "");
    node("Mul", "c1 a", "b", "");
    node("Add", "b h", "c", "");
    node("Mul", "c2 c", "d", "");
    node("Tanh", "d", "e", "");
    node("Add", "one e", "f", "");
    node("Mul", "half f", "i", "");
    node("Mul", "i h", "y", "");
    expect("y", 2, "Gelu", 1);
    begin_activation();
    node("Sigmoid", "h", "a", "");
    node("Mul", "a h", "y", "");
    expect("y", 2, "Swish", 1);
    begin_activation();
    node("HardSigmoid", "h", "a", "alpha~0.16666667 beta~0.5");
    node("Mul", "h a", "y", "");
    expect("y", 2, "HardSwish", 1);
    begin_activation();
    node("Add", "h three", "a", "");
    node("Clip", "a zero six", "b", "");
    node("Mul", "h b", "c", "");
    node("Div", "c six", "y", "");
    expect("y", 2, "HardSwish", 1);
}

TEST(no_activations)
{
    begin_activation(); /* another function */
    node("Div", "h six", "a", "");
    node("Erf", "a", "b", "");
    node("Add", "b one", "c", "");
    node("Mul", "h c", "d", "");
    node("Mul", "d half", "y", "");
    expect("y", 2, "Gelu", 0);
    begin_activation(); /* another x */
    node("Sigmoid", "h", "a", "");
    node("Mul", "a x", "y", "");
    expect("y", 2, "Swish", 0);
    begin_activation(); /* an output in the middle */
    node("Sigmoid", "h", "a", "");
    node("Mul", "a h", "y", "");
    expect("y a", 3, "Swish", 0);
    begin_activation(); /* x once too often */
    node("Sigmoid", "h", "a", "");
    node("Mul", "a a", "y", "");
    expect("y", 3, "Swish", 0);
    begin_activation(); /* no shape of x */
    put_weights(&g, "w", 3, DIM(2, 1, 1));
    node("Sigmoid", "h", "a", "");
    node("Mul", "a w", "y", "");
    expect("y", 3, "Swish", 0);
}

/* --- attention ----------------------------------------------------------------------- */

struct attention_how {
    const char *scale; /* operator; "": none */
    const char *mask;  /* "": none; "causal", "row", "full" */
    unsigned groups;   /* of the 4 heads */
    bool is_split, keeps_heads;
};

enum { SEQ = 6, HEADS = 4, DIM_HEAD = 5, WIDTH = HEADS * DIM_HEAD };

/* Heads of x, batch x SEQ x (n DIM_HEAD). */
static void put_heads(const char *x, unsigned n, const char *to, const char *perm)
{
    char in[80], shape[16], mid[60];

    (void)snprintf(shape, sizeof(shape), "shape%u", n);
    (void)snprintf(in, sizeof(in), "%s %s", x, shape);
    (void)snprintf(mid, sizeof(mid), "%s.r", to);
    node("Reshape", in, mid, "");
    node("Transpose", mid, to, perm);
}

static void put_groups(const char *x, const char *to)
{
    char in[80], a[60], b[60];

    (void)snprintf(in, sizeof(in), "%s two", x);
    (void)snprintf(a, sizeof(a), "%s.u", to);
    node("Unsqueeze", in, a, "");
    (void)snprintf(in, sizeof(in), "%s wide", a);
    (void)snprintf(b, sizeof(b), "%s.e", to);
    node("Expand", in, b, "");
    (void)snprintf(in, sizeof(in), "%s flat", b);
    node("Reshape", in, to, "");
}

static void put_attention(const struct attention_how *h)
{
    const int64_t groups = h->groups, heads = HEADS;
    float causal[SEQ * SEQ] = {0};

    begin(3, DIM(2, SEQ, 3 * WIDTH));
    put_number(&g, "scale", strcmp(h->scale, "Mul") == 0 ? 0.4 : 2.5);
    put_list(&g, "shape4", 4, (const int64_t[]){0, -1, 4, DIM_HEAD});
    put_list(&g, "shape2", 4, (const int64_t[]){0, -1, 2, DIM_HEAD});
    put_list(&g, "shape1", 4, (const int64_t[]){0, -1, 1, DIM_HEAD});
    put_list(&g, "back", 3, (const int64_t[]){0, -1, WIDTH});
    put_list(&g, "two", 1, (const int64_t[]){2});
    put_list(&g, "wide", 5, (const int64_t[]){2, groups, heads / groups, SEQ, DIM_HEAD});
    put_list(&g, "flat", 4, (const int64_t[]){2, heads, SEQ, DIM_HEAD});
    put_weights(&g, "w", 2, DIM(20, 20));
    put_list(&g, "parts", 3, (const int64_t[]){WIDTH, WIDTH, WIDTH});
    for (unsigned i = 0; i < SEQ * SEQ; i++)
        causal[i] = i % SEQ > i / SEQ ? -1e9f : 0;
    put_floats(&g, "causal", 2, DIM(SEQ, SEQ), SEQ * SEQ, causal);
    put_weights(&g, "full", 4, DIM(2, 1, SEQ, SEQ));
    put_weights(&g, "row", 1, DIM(SEQ));
    node("Softmax", "x", "h", "");
    node("Split", "h parts", "q k v", "axis:2");
    put_heads("q", HEADS, "qh", "perm=0,2,1,3");
    if (h->groups == HEADS) {
        put_heads("k", HEADS, "kh", "perm=0,2,3,1");
        put_heads("v", HEADS, "vh", "perm=0,2,1,3");
    } else {
        const int64_t some = groups * DIM_HEAD;

        put_list(&g, "zero", 1, (const int64_t[]){0});
        put_list(&g, "some", 1, &some);
        node("Slice", "k zero some two", "k2", "");
        node("Slice", "v zero some two", "v2", "");
        put_heads("k2", h->groups, "kg", "perm=0,2,1,3");
        put_heads("v2", h->groups, "vg", "perm=0,2,1,3");
        put_groups("kg", "kw");
        put_groups("vg", "vh");
        node("Transpose", "kw", "kh", "perm=0,1,3,2");
    }
    node("MatMul", "qh kh", "s0", "");
    node(h->scale[0] != '\0' ? h->scale : "Identity", h->scale[0] != '\0' ? "s0 scale" : "s0", "s1",
         "");
    if (h->mask[0] == '\0')
        node("Identity", "s1", "s2", "");
    else
        node("Add",
             strcmp(h->mask, "causal") == 0 ? "s1 causal"
             : strcmp(h->mask, "row") == 0  ? "row s1"
                                            : "s1 full",
             "s2", "");
    node("Softmax", "s2", "p", "axis:-1");
    node("MatMul", "p vh", "o", "");
    if (h->keeps_heads) {
        node("Tanh", "o", "y", "");
        return;
    }
    node("Transpose", "o", "t", "perm=0,2,1,3");
    node("Reshape", "t back", "r", "");
    node("MatMul", "r w", "y", "");
}

TEST(attentions)
{
    static const struct attention_how how[] = {
        {"Div", "", 4, true, false},   {"Mul", "full", 4, true, false},
        {"", "causal", 4, true, true}, {"Div", "row", 4, true, false},
        {"Mul", "", 2, false, false},  {"Div", "causal", 1, false, true},
    };

    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        put_attention(&how[i]);
        /* Softmax, (Split and slices of groups,) attention, what follows */
        expect("y", how[i].groups == HEADS ? 3 : 6, "FusedAttention", 1);
    }
}

TEST(no_attentions)
{
    const struct attention_how plain = {"Div", "", 4, true, false};

    put_attention(&plain); /* the weights are wanted */
    expect("y p", 11, "FusedAttention", 0);
    put_attention(&plain);
    expect("y s1", 11, "FusedAttention", 0);
    begin(3, DIM(4, SEQ, SEQ)); /* along the queries */
    node("Transpose", "x", "k", "perm=0,2,1");
    node("MatMul", "x k", "s", "");
    node("Softmax", "s", "p", "axis:1");
    node("MatMul", "p x", "y", "");
    expect("y", 4, "FusedAttention", 0);
    begin(3, DIM(4, SEQ, SEQ)); /* keys by columns */
    node("Tanh", "x", "k", "");
    node("MatMul", "x k", "s", "");
    node("Softmax", "s", "p", "axis:2");
    node("MatMul", "p x", "y", "");
    expect("y", 4, "FusedAttention", 0);
    begin(3, DIM(4, SEQ, SEQ)); /* and as it should be, without heads */
    node("Transpose", "x", "k", "perm=0,2,1");
    node("MatMul", "x k", "s", "");
    node("Softmax", "s", "p", "axis:2");
    node("MatMul", "p x", "y", "");
    expect("y", 1, "FusedAttention", 1);
}

/* --- conv ---------------------------------------------------------------------------- */

static void begin_conv(void)
{
    begin(4, DIM(2, 5, 6, 7));
    put_weights(&g, "w", 4, DIM(5, 5, 3, 3));
    put_weights(&g, "dw", 4, DIM(5, 1, 3, 3));
    put_weights(&g, "b", 1, DIM(5));
    put_floats(&g, "var", 1, DIM(5), 5, (const float[]){0.5f, 1, 2, 0.25f, 3});
    put_weights(&g, "ch", 3, DIM(5, 1, 1));
    put_weights(&g, "line", 4, DIM(1, 1, 6, 1));
    put_number(&g, "low", -0.5);
    put_number(&g, "high", 0.75);
}

TEST(convs)
{
    const char *const conv = "pads=1,1,1,1", *const deep = "pads=1,1,1,1 group:5";

    begin_conv();
    node("Conv", "x w b", "c", conv);
    node("BatchNormalization", "c b b b var", "n", "epsilon~0.001");
    node("Relu", "n", "y", "");
    expect("y", 2, "FusedConv", 1); /* with a copy of y */
    begin_conv();
    node("Conv", "x w", "c", conv);
    node("Add", "x c", "s", "");
    node("Clip", "s low high", "r", "");
    node("Conv", "r dw b", "d", deep);
    node("Mul", "d ch", "e", "");
    node("Add", "ch e", "f", "");
    node("Add", "f r", "h", "");
    node("HardSwish", "h", "y", "");
    expect("y", 4, "FusedConv", 2);
    begin_conv(); /* the second one takes the sum */
    node("Conv", "x w", "c", conv);
    node("Conv", "x w b", "d", conv);
    node("Sum", "c d", "s", "");
    node("Sigmoid", "s", "y", "");
    expect("y", 4, "FusedConv", 1);
    begin_conv(); /* its own operand: not in its place */
    put_weights(&g, "w1", 4, DIM(5, 5, 1, 1));
    node("Relu", "x", "r", "");
    node("Conv", "r w1", "c", "");
    node("Add", "c r", "y", "");
    expect("y", 4, "FusedConv", 1);
}

TEST(no_convs)
{
    const char *const conv = "pads=1,1,1,1";

    begin_conv(); /* an output in the middle */
    node("Conv", "x w b", "c", conv);
    node("Relu", "c", "y", "");
    expect("y c", 4, "FusedConv", 0);
    begin_conv(); /* not by channels */
    node("Conv", "x w b", "c", conv);
    node("Mul", "c line", "y", "");
    expect("y", 3, "FusedConv", 0);
    begin_conv(); /* twice */
    node("Conv", "x w b", "c", conv);
    node("Add", "c c", "y", "");
    expect("y", 3, "FusedConv", 0);
    begin_conv(); /* the divisor, not the dividend */
    node("Conv", "x w b", "c", conv);
    node("Div", "ch c", "d", "");
    node("Tanh", "d", "y", "");
    expect("y", 3, "FusedConv", 0);
}

TEST(lines)
{
    begin(3, DIM(2, 6, 9)); /* one dimension, in groups, with a residual */
    put_weights(&g, "w", 3, DIM(6, 3, 3));
    node("Conv", "x w", "c", "pads=1,1 group:2");
    node("Add", "c x", "s", "");
    node("Relu", "s", "y", "");
    expect("y", 1, "FusedConv", 1);
}

/* --- matmul -------------------------------------------------------------------------- */

static void begin_matmul(void)
{
    begin(3, DIM(2, 5, 8));
    put_weights(&g, "w", 2, DIM(8, 8));
    put_weights(&g, "b", 1, DIM(8));
    put_weights(&g, "col", 2, DIM(5, 1));
    put_list(&g, "flat", 2, (const int64_t[]){10, 8});
    put_list(&g, "deep", 3, (const int64_t[]){2, 5, 8});
    put_number(&g, "half", 0.5);
}

TEST(matmuls)
{
    begin_matmul();
    node("MatMul", "x w", "m", "");
    node("Add", "b m", "a", "");
    node("Add", "x a", "r", "");
    node("Relu", "r", "y", "");
    expect("y", 1, "FusedMatMul", 1);
    begin_matmul(); /* another shape between, as exporters of Gemm write it */
    node("Reshape", "x flat", "f", "");
    node("Gemm", "f w b", "m", "transB:1 alpha~0.5");
    node("Reshape", "m deep", "d", "");
    node("Sigmoid", "d", "y", "");
    expect("y", 1, "FusedMatMul", 1);
    begin_matmul(); /* a second matrix from the data */
    node("Transpose", "x", "t", "perm=0,2,1");
    node("MatMul", "t x", "m", "");
    node("Add", "m b", "a", "");
    node("Tanh", "a", "y", "");
    expect("y", 2, "FusedMatMul", 1);
}

TEST(no_matmuls)
{
    begin_matmul(); /* a column */
    node("MatMul", "x w", "m", "");
    node("Add", "m col", "y", "");
    expect("y", 2, "FusedMatMul", 0);
    begin_matmul(); /* what comes first is no activation of a sum */
    node("MatMul", "x w", "m", "");
    node("Relu", "m", "r", "");
    node("Add", "r x", "y", "");
    expect("y", 2, "FusedMatMul", 1);
    begin_matmul();
    node("MatMul", "x w", "m", "");
    node("Add", "m b", "y", "");
    expect("y m", 2, "FusedMatMul", 0);
    begin_matmul(); /* beta */
    node("Reshape", "x flat", "f", "");
    node("Gemm", "f w b", "m", "beta~0.5");
    node("Relu", "m", "y", "");
    expect("y", 2, "FusedMatMul", 0);
}

/* --- chain --------------------------------------------------------------------------- */

TEST(chains)
{
    begin(3, DIM(2, 5, 8));
    put_weights(&g, "b", 1, DIM(8));
    put_weights(&g, "col", 2, DIM(5, 1));
    put_number(&g, "two", 2);
    node("Tanh", "x", "a", "");
    node("Mul", "a b", "c", "");
    node("Pow", "x two", "d", "");
    node("Sub", "c d", "e", "");
    node("Max", "e col x", "f", "");
    node("Neg", "f", "y", "");
    expect("y", 1, "FusedMap", 1);
    begin(2, DIM(5, 1)); /* what is broadcast is computed once */
    put_weights(&g, "m", 2, DIM(5, 8));
    node("Exp", "x", "a", "");
    node("Add", "a m", "b", "");
    node("Abs", "b", "y", "");
    expect("y", 2, "FusedMap", 1);
    begin(2, DIM(5, 8)); /* an output in the middle */
    node("Exp", "x", "a", "");
    node("Neg", "a", "y", "");
    expect("y a", 2, "FusedMap", 0);
}

/* --- limits -------------------------------------------------------------------------- */

TEST(no_memory)
{
    const struct nn_opts o = {0};
    struct nn_model *m = NULL;
    struct nn_value in;
    struct faulty f;

    put_attention(&(struct attention_how){"Div", "full", 2, false, false});
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g, 17);
    CHECK_OK(heddle_nn_load(path, &o, &m));
    CHECK(remove(path) == 0);
    in = m->graph->value[m->graph->input[0]].declared;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        const struct nn_opts fo = {.alloc = &f.a};
        struct nn_plan *p = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_nn_plan(m->graph, &in, NULL, 2, &fo, &p);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_nn_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_nn_unload(m);
}

TEST_MAIN(nothing_to_do, almost_nothing, transposes, norms, no_norms, norm_scaled_by_rows,
          activations, no_activations, attentions, no_attentions, convs, no_convs, lines, matmuls,
          no_matmuls, chains, no_memory)
