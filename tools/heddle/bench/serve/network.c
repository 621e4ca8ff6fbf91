/* SPDX-License-Identifier: BSD-3-Clause */
/* network: see network.h. The file is a message of protobuf: fields of numbers and of bytes; a
 * message inside another is bytes, so the inner one is made first. */
#include "bench/serve/network.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/text.h"
#include "base/why.h"
#include "bench/bench.h"
#include "heddle/nn.h"

enum { RUNS = 300, LEAST_WIDTH = 16, MOST_WIDTH = 4096 };

/* --- protobuf --------------------------------------------------------------------------- */

struct message {
    char *data;
    size_t n, cap;
    bool has_no_memory;
};

static void put(struct message *m, const void *data, size_t bytes)
{
    if (m->n + bytes > m->cap && !m->has_no_memory) {
        const size_t cap = 2 * (m->n + bytes);
        char *p = realloc(m->data, cap);

        m->has_no_memory = p == NULL;
        m->data = p != NULL ? p : m->data;
        m->cap = p != NULL ? cap : m->cap;
    }
    if (m->has_no_memory)
        return;
    memcpy(m->data + m->n, data, bytes);
    m->n += bytes;
}

static void put_varint(struct message *m, uint64_t v)
{
    for (; v > 127; v >>= 7) {
        const unsigned char byte = (unsigned char)(v | 128);

        put(m, &byte, 1);
    }
    put(m, &(unsigned char){(unsigned char)v}, 1);
}

static void put_number(struct message *m, unsigned field, uint64_t v)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, v);
}

static void put_bytes(struct message *m, unsigned field, const void *data, size_t bytes)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, bytes);
    put(m, data, bytes);
}

static void put_text(struct message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

/* Ends `inner`. */
static void put_message(struct message *m, unsigned field, struct message *inner)
{
    put_bytes(m, field, inner->data, inner->n);
    m->has_no_memory = m->has_no_memory || inner->has_no_memory;
    free(inner->data);
}

/* --- the model, with the fields of onnx.proto -------------------------------------------- */

static void put_node(struct message *graph, const char *op, const char *a, const char *b,
                     const char *out)
{
    struct message node = {.n = 0};

    put_text(&node, 1, a);
    if (b != NULL)
        put_text(&node, 1, b);
    put_text(&node, 2, out);
    put_text(&node, 3, out);
    put_text(&node, 4, op);
    put_message(graph, 1, &node);
}

/* f32; rows 0: a vector. */
static void put_weights(struct message *graph, const char *name, size_t rows, size_t columns)
{
    const size_t n = rows > 0 ? rows * columns : columns;
    struct message tensor = {.n = 0}, raw = {.n = 0};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, n);
    for (size_t i = 0; i < n; i++) {
        const float v = (float)((heddle_rng_double(&rng) - 0.5) / (double)columns);

        put(&raw, &v, sizeof(v));
    }
    if (rows > 0)
        put_number(&tensor, 1, rows);
    put_number(&tensor, 1, columns);
    put_number(&tensor, 2, HEDDLE_NN_F32);
    put_text(&tensor, 8, name);
    put_message(&tensor, 9, &raw);
    put_message(graph, 5, &tensor);
}

/* "sums2" */
static const char *name_of(char name[16], const char *word, unsigned layer)
{
    struct heddle_text t;

    heddle_text_init(&t, name, 16);
    heddle_text_add(&t, "%s%u", word, layer);
    return name;
}

/* Layer l: from `in` to `out`, with relu() unless it is the last. */
static void put_layer(struct message *graph, unsigned l, const char *in, size_t rows,
                      size_t columns, const char *out)
{
    char w[16], b[16], sums[16], shifted[16];
    const bool is_last = l == NETWORK_HIDDEN;

    put_weights(graph, name_of(w, "w", l), rows, columns);
    put_weights(graph, name_of(b, "b", l), 0, columns);
    put_node(graph, "MatMul", in, w, name_of(sums, "sums", l));
    put_node(graph, "Add", sums, b, is_last ? out : name_of(shifted, "shifted", l));
    if (!is_last)
        put_node(graph, "Relu", shifted, NULL, out);
}

static void put_layers(struct message *graph, size_t width)
{
    char in[16] = "x", out[16];
    size_t rows = NETWORK_IN;

    for (unsigned l = 0; l < NETWORK_HIDDEN; l++) {
        put_layer(graph, l, in, rows, width, name_of(out, "layer", l));
        memcpy(in, out, sizeof(in));
        rows = width;
    }
    put_layer(graph, NETWORK_HIDDEN, in, rows, NETWORK_OUT, "y");
}

static void put_port(struct message *graph, unsigned field, const char *name, size_t width)
{
    struct message rows = {.n = 0}, columns = {.n = 0}, shape = {.n = 0}, tensor = {.n = 0};
    struct message type = {.n = 0}, port = {.n = 0};

    put_text(&rows, 2, "rows");
    put_number(&columns, 1, width);
    put_message(&shape, 1, &rows);
    put_message(&shape, 1, &columns);
    put_number(&tensor, 1, HEDDLE_NN_F32);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, name);
    put_message(&port, 2, &type);
    put_message(graph, field, &port);
}

heddle_status network_write(const char *path, size_t width)
{
    struct message graph = {.n = 0}, opset = {.n = 0}, model = {.n = 0};
    FILE *f;
    bool is_good;

    put_layers(&graph, width);
    put_text(&graph, 2, "network");
    put_port(&graph, 11, "x", NETWORK_IN);
    put_port(&graph, 12, "y", NETWORK_OUT);
    put_number(&opset, 2, 17);
    put_number(&model, 1, 8);
    put_message(&model, 7, &graph);
    put_message(&model, 8, &opset);
    if (model.has_no_memory) {
        free(model.data);
        return HEDDLE_ENOMEM;
    }
    f = fopen(path, "we");
    is_good = f != NULL && fwrite(model.data, 1, model.n, f) == model.n;
    is_good = f != NULL && fclose(f) == 0 && is_good;
    free(model.data);
    return is_good ? HEDDLE_OK : HEDDLE_EIO;
}

/* --- how long it takes ------------------------------------------------------------------- */

static heddle_status time_net(heddle_nn *net, double *ns_out)
{
    float *row = calloc(NETWORK_IN, sizeof(*row));
    const struct heddle_nn_tensor in = {.type = HEDDLE_NN_F32,
                                        .ndim = 2,
                                        .dim = {1, NETWORK_IN},
                                        .data = row,
                                        .bytes = NETWORK_IN * sizeof(*row)};
    heddle_status st = row == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;

    *ns_out = INFINITY;
    for (int i = 0; i < RUNS && st == HEDDLE_OK; i++) {
        struct heddle_nn_result *out = NULL;
        const uint64_t start = heddle_clock_ns();
        double ns;

        st = heddle_nn_run(net, &in, 1, NULL, &out);
        heddle_nn_result_destroy(out);
        ns = (double)(heddle_clock_ns() - start);
        *ns_out = ns < *ns_out ? ns : *ns_out;
    }
    free(row);
    return st;
}

static heddle_status time_width(heddle_ctx *ctx, const char *path, size_t width, double *ns_out,
                                char *why, size_t why_bytes)
{
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = why_bytes};
    heddle_nn *net = NULL;
    heddle_status st = network_write(path, width);

    if (st != HEDDLE_OK)
        return heddle_why(why, why_bytes, st, "'%s' cannot be written: %s", path,
                          heddle_why_errno(errno));
    st = heddle_nn_open(ctx, path, &o, &net);
    if (st == HEDDLE_OK)
        st = time_net(net, ns_out);
    heddle_nn_close(net);
    return st;
}

heddle_status network_find(const char *path, double want_ns, size_t *width_out, double *ns_out,
                           char *why, size_t why_bytes)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 1, .model_dir = "", .ignore_env = true};
    heddle_ctx *ctx = NULL;
    size_t below = 0, width = LEAST_WIDTH;
    double ns = 0;
    heddle_status st = heddle_ctx_create(&o, &ctx);

    if (st != HEDDLE_OK)
        return heddle_why(why, why_bytes, st, "no context can be made");
    /* The first power of two that takes longer, then halves of what is between. */
    while (st == HEDDLE_OK && width <= MOST_WIDTH) {
        st = time_width(ctx, path, width, &ns, why, why_bytes);
        if (ns >= want_ns)
            break;
        below = width;
        width *= 2;
    }
    for (size_t step = (width - below) / 2; st == HEDDLE_OK && step >= 8; step /= 2) {
        width = ns > want_ns ? width - step : width + step;
        st = time_width(ctx, path, width, &ns, why, why_bytes);
    }
    heddle_ctx_destroy(ctx);
    *width_out = width;
    *ns_out = ns;
    return st;
}
