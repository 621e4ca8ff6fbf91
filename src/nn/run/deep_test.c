/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks of many small operators: results, and work that grows as the network does. The work is
 * the number of bytes that are asked of the allocator, from the file to the first result: edges
 * between all pairs of tasks, or lists of all pairs of views, would show there.
 */
#include "base/faulty_test.h"
#include "nn/model_test.h"

enum { SMALL = 2500, LARGE = 10000, FEATURES = 32, NODE_BYTES = 64 };

/* Bytes of a graph, which is larger than a wire_out. */
struct text {
    uint8_t *buf;
    size_t len, cap;
};

static void text_take(struct text *t, const struct wire_out *w)
{
    CHECK(t->len + w->len <= t->cap);
    memcpy(t->buf + t->len, w->buf, w->len);
    t->len += w->len;
}

static void write_file(const char *path, const struct text *graph)
{
    struct wire_out head = {.len = 0}, opset = {.len = 0}, tail = {.len = 0};
    FILE *f = fopen(path, "wb");

    wire_int(&head, 1, 8);
    wire_number(&head, 7 << 3 | 2);
    wire_number(&head, graph->len);
    wire_int(&opset, 2, 17);
    wire_sub_message(&tail, 8, &opset);
    CHECK(f != NULL);
    CHECK(fwrite(head.buf, 1, head.len, f) == head.len);
    CHECK(fwrite(graph->buf, 1, graph->len, f) == graph->len);
    CHECK(fwrite(tail.buf, 1, tail.len, f) == tail.len);
    CHECK(fclose(f) == 0);
}

/* A chain of n operators; some add what is a few operators back, some double the number of
 * features for the next one, which halves it. Values so have two sizes and live long and short. */
static void write_chain(const char *path, unsigned n)
{
    static const char *const ops[] = {"Relu", "Tanh", "Neg", "Abs", "Sigmoid"};
    struct text t = {.cap = (size_t)n * NODE_BYTES + 4096};
    struct wire_out w = {.len = 0};
    unsigned wide = 0;

    t.buf = malloc(t.cap);
    CHECK(t.buf != NULL);
    put_port(&w, 11, "v0", 2, DIM(2, FEATURES));
    put_list(&w, "halves", 2, (const int64_t[]){FEATURES, FEATURES});
    text_take(&t, &w);
    for (unsigned i = 1; i <= n; i++) {
        char in[40], out[40];

        w.len = 0;
        (void)snprintf(in, sizeof(in), "v%u", i - 1);
        (void)snprintf(out, sizeof(out), "v%u", i);
        if (wide == i - 1 && wide > 0) {
            (void)snprintf(out, sizeof(out), "v%u w%u", i, i);
            (void)snprintf(in, sizeof(in), "v%u halves", i - 1);
            put_node(&w, "Split", in, out, "axis:1");
        } else if (i % 7 == 3 && i < n) {
            (void)snprintf(in, sizeof(in), "v%u v%u", i - 1, i - 1);
            put_node(&w, "Concat", in, out, "axis:1");
            wide = i;
        } else if (i % 7 == 0) {
            (void)snprintf(in, sizeof(in), "v%u v%u", i - 1, i - 7);
            put_node(&w, "Add", in, out, "");
        } else {
            put_node(&w, ops[i % 5], in, out, "");
        }
        text_take(&t, &w);
    }
    w.len = 0;
    {
        char last[40];

        (void)snprintf(last, sizeof(last), "v%u", n);
        put_port(&w, 12, last, 0, NULL);
    }
    text_take(&t, &w);
    write_file(path, &t);
    free(t.buf);
}

/* Bytes that a network of n operators needs in all; its result is that of the oracle. */
static size_t run_chain(unsigned n, bool as_is)
{
    static const char *const path = "deep.onnx";
    const struct heddle_nn_opts no = {.size = sizeof(no), .as_is = as_is};
    struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 2, .models = HEDDLE_OFF, .ignore_env = true};
    char why[300] = "";
    const struct nn_opts o = {NULL, why, sizeof(why)};
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct nn_shape shape = {.rank = 2, .dim = {2, FEATURES}};
    struct nn_value in = heddle_nn_tensor(NN_F32, &shape), want, got;
    float x[2 * FEATURES];
    const struct heddle_nn_tensor t = {
        .type = HEDDLE_NN_F32, .ndim = 2, .dim = {2, FEATURES}, .data = x, .bytes = sizeof(x)};
    struct heddle_nn_result *r = NULL;
    struct nn_model *m = NULL;
    struct faulty f;
    heddle_ctx *ctx = NULL;
    heddle_nn *net = NULL;

    for (unsigned i = 0; i < 2 * FEATURES; i++)
        x[i] = ((float)rnd(2001) - 1000) / 500;
    in.data = x;
    write_chain(path, n);
    CHECK_OK(heddle_nn_load(path, &o, &m));
    CHECK_OK(heddle_nn_oracle(m->graph, &in, &want, &mem, &o));
    faulty_init(&f, 0);
    co.allocator = f.a;
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_OK(heddle_nn_open(ctx, path, &no, &net));
    CHECK(remove(path) == 0);
    CHECK_OK(heddle_nn_run(net, &t, 1, NULL, &r));
    got = want;
    got.data = r->output[0].data;
    CHECK(heddle_nn_compare(&got, &want, 1e-5, 1e-5, why, sizeof(why)));
    heddle_nn_result_destroy(r);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
    heddle_nn_unload(m);
    heddle_scratch_drop(&mem);
    CHECK_EQ(f.nlive, 0);
    return f.nbytes;
}

/* Four times the operators need four times the work: sixteen times if it were quadratic. */
TEST(as_is)
{
    const size_t few = run_chain(SMALL, true), many = run_chain(LARGE, true);

    if (many > 6 * few)
        printf("%zu bytes for %d operators, %zu for %d\n", few, SMALL, many, LARGE);
    CHECK(many <= 6 * few);
}

TEST(prepared)
{
    const size_t few = run_chain(SMALL, false), many = run_chain(LARGE, false);

    if (many > 6 * few)
        printf("%zu bytes for %d operators, %zu for %d\n", few, SMALL, many, LARGE);
    CHECK(many <= 6 * few);
}

TEST_MAIN(as_is, prepared)
