/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_MODEL_TEST_H
#define HEDDLE_NN_MODEL_TEST_H

/* Helpers of tests: small models as files, and tasks against the reference kernels. */
#include <math.h>

#include "heddle/heddle.h"
#include "nn/check.h"
#include "nn/run/run.h"
#include "nn/write_test.h"

enum { OUTPUTS = 16, FILL = 9000 };

static uint32_t seed = 1;

static inline unsigned rnd(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* --- writing ---------------------------------------------------------------------------- */

/* Numbers of some size around 0. */
static inline void put_weights(struct wire_out *g, const char *name, unsigned rank,
                               const unsigned *dim)
{
    struct wire_out t = {.len = 0};
    float v[3000];
    unsigned n = 1;

    for (unsigned d = 0; d < rank; d++) {
        wire_int(&t, 1, dim[d]);
        n *= dim[d];
    }
    CHECK(n <= sizeof(v) / sizeof(v[0]));
    for (unsigned i = 0; i < n; i++)
        v[i] = ((float)rnd(2001) - 1000) / 1500;
    wire_int(&t, 2, HEDDLE_ONNX_FLOAT);
    wire_str(&t, 8, name);
    wire_mem(&t, 9, v, n * sizeof(v[0]));
    wire_sub_message(g, 5, &t);
}

/* An input or output; without dimensions for rank 0. */
static inline void put_port(struct wire_out *g, unsigned field, const char *name, unsigned rank,
                            const unsigned *dim)
{
    struct wire_out v = {.len = 0}, type = {.len = 0}, t = {.len = 0}, s = {.len = 0};

    for (unsigned i = 0; i < rank; i++) {
        struct wire_out d = {.len = 0};

        wire_int(&d, 1, dim[i]);
        wire_sub_message(&s, 1, &d);
    }
    wire_int(&t, 1, HEDDLE_ONNX_FLOAT);
    if (rank > 0)
        wire_sub_message(&t, 2, &s);
    wire_sub_message(&type, 1, &t);
    wire_str(&v, 1, name);
    wire_sub_message(&v, 2, &type);
    wire_sub_message(g, field, &v);
}

/* A constant f32 of these numbers. */
static inline void put_floats(struct wire_out *g, const char *name, unsigned rank,
                              const unsigned *dim, unsigned n, const float *v)
{
    struct wire_out t = {.len = 0};

    for (unsigned d = 0; d < rank; d++)
        wire_int(&t, 1, dim[d]);
    wire_int(&t, 2, HEDDLE_ONNX_FLOAT);
    wire_str(&t, 8, name);
    wire_mem(&t, 9, v, n * sizeof(v[0]));
    wire_sub_message(g, 5, &t);
}

static inline void put_number(struct wire_out *g, const char *name, double v)
{
    const float f = (float)v;

    put_floats(g, name, 0, NULL, 1, &f);
}

/* A constant of integers of a type of 1 or 4 bytes. */
static inline void put_integers(struct wire_out *g, const char *name, int type, unsigned rank,
                                const unsigned *dim, const int *v)
{
    struct wire_out t = {.len = 0};
    const size_t each = type == HEDDLE_ONNX_INT32 ? 4 : 1;
    uint8_t data[2000];
    size_t n = 1;

    for (unsigned d = 0; d < rank; d++) {
        wire_int(&t, 1, dim[d]);
        n *= dim[d];
    }
    CHECK(n * each <= sizeof(data));
    for (size_t i = 0; i < n; i++)
        memcpy(data + i * each, &v[i], each); /* the low bytes come first */
    wire_int(&t, 2, type);
    wire_str(&t, 8, name);
    wire_mem(&t, 9, data, n * each);
    wire_sub_message(g, 5, &t);
}

/* A constant list of integers. */
static inline void put_list(struct wire_out *g, const char *name, unsigned n, const int64_t *v)
{
    struct wire_out t = {.len = 0};

    wire_int(&t, 1, n);
    wire_int(&t, 2, HEDDLE_ONNX_INT64);
    wire_str(&t, 8, name);
    wire_mem(&t, 9, v, n * sizeof(v[0]));
    wire_sub_message(g, 5, &t);
}

/* --- the comparison ------------------------------------------------------------------------ */

static inline double greatest(const struct nn_value *v)
{
    double most = 1; /* differences of such numbers may be what is left */

    for (size_t i = 0; i < heddle_nn_count(&v->shape); i++)
        most = fmax(most, fabs(heddle_nn_get_f64(v->type, v->data, i)));
    return most;
}

/* Tasks and reference kernels on random numbers. */
static inline void
compare_model(const char *path,
              void (*look)(const struct nn_graph *g, const struct nn_value *in, void *to), void *to)
{
    const struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 2, .models = HEDDLE_OFF, .ignore_env = true};
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    char why[300] = "";
    const struct nn_opts o = {NULL, why, sizeof(why)};
    struct nn_model *m = NULL;
    struct nn_value in, want[OUTPUTS];
    struct heddle_nn_tensor t = {.type = HEDDLE_NN_F32};
    struct heddle_nn_result *r = NULL;
    heddle_ctx *ctx = NULL;
    heddle_nn *net = NULL;

    CHECK_OK(heddle_nn_load(path, &o, &m));
    in = m->graph->value[m->graph->input[0]].declared;
    t.bytes = heddle_nn_bytes(&in);
    t.ndim = (unsigned)in.shape.rank;
    memcpy(t.dim, in.shape.dim, t.ndim * sizeof(t.dim[0]));
    t.data = in.data = heddle_scratch_get(&mem, t.bytes, 1);
    CHECK(in.data != NULL && m->graph->noutputs <= OUTPUTS);
    for (size_t i = 0; i < t.bytes / sizeof(float); i++)
        ((float *)in.data)[i] = ((float)rnd(2001) - 1000) / 500;
    CHECK_OK(heddle_nn_oracle(m->graph, &in, want, &mem, &o));
    look(m->graph, &in, to);
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_OK(heddle_nn_open(ctx, path, NULL, &net));
    CHECK(remove(path) == 0);
    CHECK_OK(heddle_nn_run(net, &t, 1, NULL, &r));
    for (uint32_t i = 0; i < m->graph->noutputs; i++) {
        struct nn_value got = want[i];

        CHECK_EQ(r->output[i].bytes, heddle_nn_bytes(&want[i]));
        got.data = r->output[i].data;
        if (!heddle_nn_compare(&got, &want[i], 1e-5, 1e-5 * greatest(&want[i]), why, sizeof(why))) {
            printf("%s, output %s: %s\n", path, m->graph->value[m->graph->output[i]].name, why);
            exit(1);
        }
    }
    heddle_nn_result_destroy(r);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
    heddle_nn_unload(m);
    heddle_scratch_drop(&mem);
}

#define DIM(...)                                                                                   \
    (const unsigned[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#endif /* HEDDLE_NN_MODEL_TEST_H */
