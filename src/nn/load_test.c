/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading and the reference executor: sentences about wrong models, no memory, changed bytes. */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "nn/nn.h"
#include "onnx/wire_test.h"

static void put_node(struct wire_out *g, const char *op, const char *a, const char *b,
                     const char *out, const char *attr)
{
    struct wire_out n = {.len = 0}, t = {.len = 0};

    wire_str(&n, 1, a);
    if (b != NULL)
        wire_str(&n, 1, b);
    wire_str(&n, 2, out);
    wire_str(&n, 3, "here");
    wire_str(&n, 4, op);
    if (attr != NULL) {
        wire_str(&t, 1, attr);
        wire_int(&t, 3, 1);
        wire_int(&t, 20, HEDDLE_ONNX_ATTR_INT);
        wire_sub_message(&n, 5, &t);
    }
    wire_sub_message(g, 1, &n);
}

static void put_port(struct wire_out *g, unsigned field, const char *name)
{
    struct wire_out v = {.len = 0}, type = {.len = 0}, t = {.len = 0};

    wire_int(&t, 1, HEDDLE_ONNX_FLOAT);
    wire_sub_message(&type, 1, &t);
    wire_str(&v, 1, name);
    wire_sub_message(&v, 2, &type);
    wire_sub_message(g, field, &v);
}

static void finish(struct wire_out *m, const struct wire_out *g, int opset)
{
    struct wire_out o = {.len = 0};

    m->len = 0;
    wire_sub_message(m, 7, g);
    wire_int(&o, 2, opset);
    wire_sub_message(m, 8, &o);
}

/* y = softmax(x + w, axis 1) */
static void make_model(struct wire_out *m)
{
    const float w[3] = {1, 2, 3};
    struct wire_out g = {.len = 0}, t = {.len = 0};

    wire_int(&t, 1, 3);
    wire_int(&t, 2, HEDDLE_ONNX_FLOAT);
    wire_str(&t, 8, "w");
    wire_mem(&t, 9, w, sizeof(w));
    wire_sub_message(&g, 5, &t);
    put_port(&g, 11, "x");
    put_port(&g, 12, "y");
    put_node(&g, "Add", "x", "w", "a", NULL);
    put_node(&g, "Softmax", "a", NULL, "y", "axis");
    finish(m, &g, 17);
}

/* Loads it, which must fail with this in the sentence. */
static void refused(const struct wire_out *m, heddle_status want, const char *part)
{
    char why[400] = "";
    const struct nn_opts o = {NULL, why, sizeof(why)};
    struct nn_model *model = NULL;

    CHECK_STATUS(heddle_nn_load_memory(m->buf, m->len, "m", &o, &model), want);
    if (strstr(why, part) == NULL || strncmp(why, "m: ", 3) != 0)
        CHECK_STR(why, part);
}

TEST(sentences)
{
    struct wire_out g = {.len = 0}, m;

    put_port(&g, 11, "x");
    put_node(&g, "Frobnicate", "x", NULL, "y", NULL);
    finish(&m, &g, 17);
    refused(&m, HEDDLE_ENOSYS, "node 'here': there is no operator Frobnicate");
    g.len = 0;
    put_port(&g, 11, "x");
    put_node(&g, "Mish", "x", NULL, "y", NULL);
    finish(&m, &g, 17);
    refused(&m, HEDDLE_ENOSYS, "known from opset 18 on");
    g.len = 0;
    put_node(&g, "Relu", "y", NULL, "y", NULL); /* a circle */
    finish(&m, &g, 17);
    refused(&m, HEDDLE_EFORMAT, "reads 'y', which nothing before it makes");
    g.len = 0;
    put_port(&g, 11, "x");
    put_node(&g, "Relu", "x", NULL, "x", NULL);
    finish(&m, &g, 17);
    refused(&m, HEDDLE_EFORMAT, "two values are called 'x'");
    g.len = 0;
    put_port(&g, 11, "x");
    put_node(&g, "Relu", "x", NULL, "y", "slope");
    finish(&m, &g, 17);
    refused(&m, HEDDLE_EINVAL, "no attribute 'slope'");
    g.len = 0;
    put_port(&g, 11, "x");
    put_node(&g, "Add", "x", NULL, "y", NULL);
    finish(&m, &g, 17);
    refused(&m, HEDDLE_EINVAL, "operand 1 is missing");
    g.len = 0;
    put_port(&g, 12, "y");
    finish(&m, &g, 17);
    refused(&m, HEDDLE_EFORMAT, "nothing makes the result 'y'");
    finish(&m, &g, 1000);
    refused(&m, HEDDLE_EVERSION, "opset 1000");
}

static heddle_status load_and_run(const struct wire_out *m, const struct nn_opts *o, float *y)
{
    float x[6] = {0, 0, 0, 1, 1, 1};
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    struct nn_value in = heddle_nn_tensor(NN_F32, &(struct nn_shape){2, {2, 3}}), out;
    struct nn_model *model = NULL;
    heddle_status st = heddle_nn_load_memory(m->buf, m->len, "m", o, &model);

    in.data = x;
    if (st == HEDDLE_OK)
        st = heddle_nn_oracle(model->graph, &in, &out, &mem, o);
    if (st == HEDDLE_OK)
        memcpy(y, out.data, 6 * sizeof(*y));
    heddle_scratch_drop(&mem);
    heddle_nn_unload(model);
    return st;
}

TEST(no_memory)
{
    struct wire_out m;
    struct faulty a;
    float y[6];

    make_model(&m);
    for (size_t k = 1; k == 1 || a.has_failed; k++) {
        char why[200] = "";
        struct nn_opts o = {NULL, why, sizeof(why)};
        heddle_status st;

        faulty_init(&a, k);
        o.alloc = &a.a;
        st = load_and_run(&m, &o, y);
        CHECK_STATUS(st, a.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK(!a.has_failed || strstr(why, "no memory") != NULL);
        CHECK_EQ(a.nlive, 0);
    }
    CHECK_NEAR((double)y[2], 0.66524096, 1e-6);
    CHECK_NEAR((double)(y[0] + y[1] + y[2]), 1, 1e-6);
    CHECK_NEAR((double)y[5], 0.66524096, 1e-6);
}

/* Bytes changed at random: a sentence, or a model. */
TEST(changed_anywhere)
{
    struct heddle_rng rng;
    struct wire_out m, c;
    char why[400];
    const struct nn_opts o = {NULL, why, sizeof(why)};

    make_model(&m);
    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < test_scale(20000); i++) {
        struct nn_model *model = NULL;

        c = m;
        for (unsigned k = 0; k <= heddle_rng_below32(&rng, 3); k++)
            c.buf[heddle_rng_below(&rng, c.len)] = (uint8_t)heddle_rng_next(&rng);
        why[0] = '\0';
        if (heddle_nn_load_memory(c.buf, c.len, "m", &o, &model) == HEDDLE_OK)
            heddle_nn_unload(model);
        else
            CHECK(strncmp(why, "m: ", 3) == 0);
    }
}

TEST_MAIN(sentences, no_memory, changed_anywhere)
