/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every pass on graphs by hand: those that it should join, and look-alikes that it must not; random
 * graphs of such fragments. The outputs of the prepared graph are compared with those of the
 * reference kernels on the graph as it is. Plans whose k-th allocation fails.
 */
#include "base/faulty_test.h"
#include "nn/model_test.h"
#include "nn/prepare/prepare.h"

static struct wire_out g;
static const char *const path = "prepare_graph.onnx";

/* How often operators are in a plan. */
struct census {
    const char *op[8];
    unsigned n[8], ntasks;
};

static void count_ops(const struct nn_graph *graph, const struct nn_value *in, void *to)
{
    struct census *c = to;
    const struct nn_opts o = {0};
    struct nn_plan *p = NULL;

    CHECK_OK(heddle_nn_plan(graph, in, 2, &o, &p));
    c->ntasks = p->ntasks;
    for (uint32_t i = 0; i < p->ntasks; i++)
        for (unsigned k = 0; c->op[k] != NULL; k++)
            c->n[k] += strcmp(p->task[i].node->op->name, c->op[k]) == 0;
    heddle_nn_plan_destroy(p);
}

static void begin(unsigned rank, const unsigned *dim)
{
    g.len = 0;
    put_port(&g, 11, "x", rank, dim);
}

static void node(const char *op, const char *in, const char *out, const char *attrs)
{
    put_node(&g, op, in, out, attrs);
}

/* The graph as it is now, with these outputs: as many tasks in all, and as many of `op`. */
static void expect(const char *outputs, unsigned ntasks, const char *op, unsigned n)
{
    struct census c = {.op = {op}};

    while (*outputs != '\0') {
        const size_t len = strcspn(outputs, " ");
        char name[40];

        (void)snprintf(name, sizeof(name), "%.*s", (int)len, outputs);
        put_port(&g, 12, name, 0, NULL);
        outputs += len + (outputs[len] == ' ');
    }
    end_model(path, &g);
    compare_model(path, count_ops, &c);
    if (c.ntasks != ntasks || c.n[0] != n)
        printf("%u tasks, %u of %s\n", c.ntasks, c.n[0], op);
    CHECK_EQ(c.ntasks, ntasks);
    CHECK_EQ(c.n[0], n);
}

/* --- same, transpose ------------------------------------------------------------------------- */

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

/* --- norm -------------------------------------------------------------------------------------- */

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
        end_model(path, &g);
        compare_model(path, count_ops, &c);
    }
    begin_norm(); /* another reader in the middle */
    put_norm(&last, "h", "z");
    node("Softmax", "d", "s", "");
    node("Add", "z s", "y", "");
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g);
    compare_model(path, count_ops, &c);
    begin(3, DIM(2, 6, 8)); /* epsilon from the data */
    put_number(&g, "two", 2);
    put_weights(&g, "gamma", 1, DIM(8));
    put_weights(&g, "beta", 1, DIM(8));
    node("Abs", "x", "h", "");
    node("ReduceMax", "h", "eps", "keepdims:0");
    put_norm(&last, "h", "y");
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g);
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

/* --- activation -------------------------------------------------------------------------------- */

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

/* --- attention ----------------------------------------------------------------------------------- */

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

/* --- conv ------------------------------------------------------------------------------------------ */

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

/* --- matmul ---------------------------------------------------------------------------------------- */

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

/* --- chain ------------------------------------------------------------------------------------------ */

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

/* --- random graphs -------------------------------------------------------------------------------- */

/* Names, and which of them are values of 2 x 6 x 8. */
struct soup {
    char name[200][8];
    const char *pool[200];
    unsigned count, n;
};

static const char *soup_some(const struct soup *s)
{
    return rnd(3) > 0 ? s->pool[s->n - 1] : s->pool[rnd(s->n)];
}

/* A value that others may read, and sometimes an output. */
static void soup_keep(struct soup *s, const char *name)
{
    s->pool[s->n++] = name;
    if (rnd(8) == 0)
        put_port(&g, 12, name, 0, NULL);
}

/* `op` of one or two values, or a constant. */
static const char *soup_op(struct soup *s, const char *op, const char *a, const char *b,
                           const char *attrs)
{
    char in[40];
    const char *to;

    (void)snprintf(in, sizeof(in), "%s%s%s", a, b[0] != '\0' ? " " : "", b);
    to = s->name[s->count];
    (void)snprintf(s->name[s->count], sizeof(s->name[0]), "v%u", s->count);
    s->count++;
    node(op, in, to, attrs);
    if (rnd(30) == 0 && strchr("MAEST", op[0]) != NULL)
        put_port(&g, 12, to, 0, NULL); /* an output in the middle, of any shape */
    return to;
}

/* One of the middle may get another reader. */
static void soup_maybe(struct soup *s, const char *name)
{
    if (rnd(5) == 0)
        soup_keep(s, name);
}

static void soup_norm(struct soup *s)
{
    const char *axes = rnd(6) == 0 ? "axes=1" : "axes=-1";
    const char *x = soup_some(s), *d, *dd, *root;

    d = rnd(3) > 0 ? soup_op(s, "Sub", x, soup_op(s, "ReduceMean", x, "", axes), "") : x;
    dd = rnd(2) ? soup_op(s, "Mul", d, d, "") : soup_op(s, "Pow", d, "two", "");
    soup_maybe(s, dd);
    root = soup_op(s, "Add", soup_op(s, "ReduceMean", dd, "", axes), "eps", "");
    root = soup_op(s, "Sqrt", root, "", "");
    if (rnd(2))
        d = soup_op(s, "Div", d, root, "");
    else
        d = soup_op(s, "Mul", d, soup_op(s, "Reciprocal", root, "", ""), "");
    soup_maybe(s, d);
    d = soup_op(s, "Mul", d, rnd(4) > 0 ? "row" : "col", "");
    soup_keep(s, rnd(2) ? soup_op(s, "Add", d, "row2", "") : d);
}

static void soup_gelu(struct soup *s)
{
    const char *x = soup_some(s), *e;

    e = soup_op(s, "Div", x, "root2", "");
    e = soup_op(s, "Add", soup_op(s, "Erf", e, "", ""), "one", "");
    soup_maybe(s, e);
    if (rnd(4) == 0)
        x = soup_some(s);
    e = soup_op(s, "Mul", e, x, "");
    soup_keep(s, soup_op(s, "Mul", e, rnd(4) > 0 ? "half" : "one", ""));
}

static const char *soup_heads(struct soup *s, const char *perm)
{
    return soup_op(s, "Transpose", soup_op(s, "Reshape", soup_some(s), "heads", ""), "", perm);
}

static void soup_attention(struct soup *s)
{
    const char *q = soup_heads(s, "perm=0,2,1,3"), *k = soup_heads(s, "perm=0,2,3,1"),
               *v = soup_heads(s, "perm=0,2,1,3"), *p = soup_op(s, "MatMul", q, k, "");

    if (rnd(2))
        p = soup_op(s, "Mul", p, "half", "");
    if (rnd(2))
        p = soup_op(s, "Add", p, "mask", "");
    p = soup_op(s, "Softmax", p, "", rnd(5) > 0 ? "axis:3" : "axis:2");
    p = soup_op(s, "Transpose", soup_op(s, "MatMul", p, v, ""), "", "perm=0,2,1,3");
    soup_keep(s, soup_op(s, "Reshape", p, "back", ""));
}

static void soup_linear(struct soup *s)
{
    const char *m = soup_op(s, "MatMul", soup_some(s), "w", "");

    if (rnd(2))
        m = soup_op(s, "Add", m, rnd(4) > 0 ? "row" : "col", "");
    soup_maybe(s, m);
    if (rnd(2))
        m = soup_op(s, "Add", m, soup_some(s), "");
    soup_keep(s, rnd(2) ? soup_op(s, rnd(2) ? "Relu" : "Sigmoid", m, "", "") : m);
}

static void soup_simple(struct soup *s)
{
    static const char *const one[] = {"Relu", "Tanh", "Sigmoid", "Neg", "Identity"},
                             *const two[] = {"Add", "Sub", "Mul", "Max"},
                             *const other[] = {"row", "col", "half", "one"};
    const char *x = soup_some(s);

    switch (rnd(4)) {
    case 0: x = soup_op(s, one[rnd(5)], x, "", ""); break;
    case 1: x = soup_op(s, two[rnd(4)], x, other[rnd(4)], ""); break;
    case 2: x = soup_op(s, two[rnd(4)], x, soup_some(s), ""); break;
    default:
        x = soup_op(s, "Transpose", x, "", "perm=0,2,1");
        if (rnd(2))
            x = soup_op(s, "Tanh", x, "", "");
        x = soup_op(s, "Transpose", x, "", "perm=0,2,1");
    }
    /* Numbers stay small: rounding is what the comparison sees. */
    soup_keep(s, soup_op(s, "Tanh", x, "", ""));
}

static void soup_constants(void)
{
    put_number(&g, "one", 1);
    put_number(&g, "two", 2);
    put_number(&g, "half", 0.5);
    put_number(&g, "eps", 0.01);
    put_number(&g, "root2", sqrt(2));
    put_list(&g, "heads", 4, (const int64_t[]){0, -1, 2, 4});
    put_list(&g, "back", 3, (const int64_t[]){0, -1, 8});
    put_weights(&g, "row", 1, DIM(8));
    put_weights(&g, "row2", 2, DIM(1, 8));
    put_weights(&g, "col", 2, DIM(6, 1));
    put_weights(&g, "w", 2, DIM(8, 8));
    put_weights(&g, "mask", 4, DIM(2, 1, 6, 6));
}

static void write_soup(void)
{
    static void (*const add[])(struct soup * s) = {soup_norm,   soup_gelu,   soup_attention,
                                                   soup_linear, soup_simple, soup_simple};
    static struct soup s;

    s = (struct soup){.n = 1, .pool = {"x"}};
    begin(3, DIM(2, 6, 8));
    soup_constants();
    while (s.n < 10 && g.len < FILL)
        add[rnd(6)](&s);
    put_port(&g, 12, s.pool[s.n - 1], 0, NULL);
    end_model(path, &g);
}

TEST(random_graphs)
{
    struct census c = {.op = {"LayerNormalization", "RMSNormalization", "Gelu", "FusedAttention",
                              "FusedMatMul", "FusedMap"}};

    seed = (uint32_t)test_seed();
    for (unsigned i = 0; i < test_scale(120); i++) {
        write_soup();
        compare_model(path, count_ops, &c);
    }
    for (unsigned k = 0; c.op[k] != NULL; k++)
        printf("%s %u\n", c.op[k], c.n[k]);
    for (unsigned k = 0; c.op[k] != NULL; k++)
        CHECK(c.n[k] > 0);
}

/* --- limits --------------------------------------------------------------------------------------- */

TEST(no_memory)
{
    const struct nn_opts o = {0};
    struct nn_model *m = NULL;
    struct nn_value in;
    struct faulty f;

    put_attention(&(struct attention_how){"Div", "full", 2, false, false});
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g);
    CHECK_OK(heddle_nn_load(path, &o, &m));
    CHECK(remove(path) == 0);
    in = m->graph->value[m->graph->input[0]].declared;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        const struct nn_opts fo = {.alloc = &f.a};
        struct nn_plan *p = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_nn_plan(m->graph, &in, 2, &fo, &p);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_nn_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_nn_unload(m);
}

TEST_MAIN(nothing_to_do, almost_nothing, transposes, norms, no_norms, norm_scaled_by_rows,
          activations, no_activations, attentions, no_attentions, convs, no_convs, lines, matmuls,
          no_matmuls, chains, random_graphs, no_memory)
