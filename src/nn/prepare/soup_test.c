/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random graphs of the fragments that passes look for, and of others that look like them: the
 * outputs of the prepared graph against those of the reference kernels on the graph as it is.
 */
#define GRAPH_FILE "prepare_soup.onnx"
#include "nn/prepare/graph_test.h"

/* --- random graphs ------------------------------------------------------------------- */

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

/* Halves of rows of 8, sometimes the wrong ones. */
static void soup_rotary(struct soup *s)
{
    const char *x = soup_some(s), *low, *high, *turned, *cos, *sin;
    const bool is_turned = rnd(3) == 0;

    if (is_turned)
        x = soup_op(s, "Transpose", x, "", "perm=1,0,2");
    low = soup_op(s, "Slice", x, rnd(8) > 0 ? "zero four last" : "four eight last", "");
    high =
        soup_op(s, "Slice", rnd(8) > 0 ? x : soup_op(s, "Tanh", x, "", ""), "four eight last", "");
    turned =
        soup_op(s, "Concat", rnd(8) > 0 ? soup_op(s, "Neg", high, "", "") : high, low, "axis:2");
    cos = soup_op(s, "Mul", x, rnd(3) > 0 ? "row" : "half", "");
    sin = soup_op(s, "Mul", turned, rnd(3) > 0 ? "row2" : rnd(2) ? "row" : cos, "");
    x = rnd(2) ? soup_op(s, "Add", cos, sin, "") : soup_op(s, "Add", sin, cos, "");
    if (is_turned)
        x = soup_op(s, "Transpose", x, "", "perm=1,0,2");
    soup_keep(s, soup_op(s, "Tanh", x, "", ""));
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
    put_list(&g, "zero", 1, (const int64_t[]){0});
    put_list(&g, "four", 1, (const int64_t[]){4});
    put_list(&g, "eight", 1, (const int64_t[]){8});
    put_list(&g, "last", 1, (const int64_t[]){2});
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
    static void (*const add[])(struct soup * s) = {
        soup_norm, soup_gelu, soup_attention, soup_linear, soup_simple, soup_simple, soup_rotary};
    static struct soup s;

    s = (struct soup){.n = 1, .pool = {"x"}};
    begin(3, DIM(2, 6, 8));
    soup_constants();
    while (s.n < 10 && g.len < FILL)
        add[rnd(7)](&s);
    put_port(&g, 12, s.pool[s.n - 1], 0, NULL);
    end_model(path, &g, 17);
}

TEST(random_graphs)
{
    struct census c = {.op = {"LayerNormalization", "RMSNormalization", "Gelu", "FusedAttention",
                              "FusedMatMul", "FusedMap", "FusedRotary"}};

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

TEST_MAIN(random_graphs)
