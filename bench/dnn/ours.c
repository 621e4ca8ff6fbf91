/* SPDX-License-Identifier: BSD-3-Clause */
/* ours: the kernels of src/dnn as runners. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_dnn.h"

enum { MOST_THREADS = 64 };

struct ours {
    struct heddle_dnn *o;
    float *in[4], *out;
    const void *ptr[4];
    void *to[2];
    void *scratch[MOST_THREADS];
};

/* Numbers of a size that neither grow nor vanish. */
static float *numbers(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof(float) + 127) / 64 * 64);

    for (size_t i = 0; p != NULL && i < n; i++)
        p[i] = (float)((i * 2654435761u >> 8) % 2001) * 1e-3f - 1;
    return p;
}

static void run(void *self, size_t part, size_t nparts)
{
    struct ours *s = self;
    const size_t most = heddle_dnn_parts(s->o);

    nparts = nparts < most ? nparts : most;
    if (part < nparts)
        heddle_dnn_run(s->o, s->ptr, s->to, part, nparts, s->scratch[part]);
}

static void close_ours(void *self)
{
    struct ours *s = self;

    heddle_dnn_destroy(s->o);
    for (size_t i = 0; i < 4; i++)
        free(s->in[i]);
    free(s->out);
    for (size_t i = 0; i < MOST_THREADS; i++)
        free(s->scratch[i]);
    free(s);
}

static heddle_status conv(const struct bench_case *c, const struct dnn_make *make, struct ours *s)
{
    const size_t *v = c->v;
    const struct dnn_conv d = {.size = sizeof(d),
                               .n = 1,
                               .ci = v[0],
                               .h = v[1],
                               .w = v[2],
                               .co = v[3],
                               .kh = v[4],
                               .kw = v[4],
                               .stride_h = v[5],
                               .stride_w = v[5],
                               .pad_top = v[6],
                               .pad_left = v[6],
                               .pad_bottom = v[6],
                               .pad_right = v[6],
                               .groups = v[7],
                               .in_layout = v[0] < 16 ? DNN_NCHW : DNN_NHWC,
                               .out_layout = DNN_NHWC,
                               .has_residual = v[8] != 0,
                               .act = {c->act, 0, 6}};
    const size_t out = heddle_dnn_conv_out(v[1], v[4], v[5], 1, v[6], v[6]);
    const size_t nout = out * out * v[3];
    float *w = numbers(v[3] * v[0] * v[4] * v[4]), *bias = numbers(v[3]);
    heddle_status st = heddle_dnn_create_conv(&d, w, bias, make, &s->o);

    s->in[0] = numbers(v[0] * v[1] * v[2]);
    s->in[1] = numbers(nout);
    s->out = numbers(nout);
    free(w);
    free(bias);
    return st;
}

static heddle_status matmul(const struct bench_case *c, const struct dnn_make *make, struct ours *s)
{
    const struct dnn_matmul d = {.size = sizeof(d),
                                 .m = c->v[0],
                                 .n = c->v[1],
                                 .k = c->v[2],
                                 .has_bias = true,
                                 .is_b_constant = true,
                                 .is_bias_constant = true,
                                 .act = {c->act, 0, 6}};
    float *b = numbers(d.n * d.k), *bias = numbers(d.n);
    heddle_status st = heddle_dnn_create_matmul(&d, b, bias, make, &s->o);

    s->in[0] = numbers(d.m * d.k);
    s->out = numbers(d.m * d.n);
    free(b);
    free(bias);
    return st;
}

static heddle_status attention(const struct bench_case *c, const struct dnn_make *make,
                               struct ours *s)
{
    const size_t h = c->v[0], q = c->v[1], kv = c->v[2], dim = c->v[3];
    const struct dnn_attention d = {.size = sizeof(d),
                                    .batch = 1,
                                    .heads = h,
                                    .q_len = q,
                                    .kv_len = kv,
                                    .dim = dim,
                                    .is_causal = c->v[4] != 0,
                                    .q = {0, dim, h * dim},
                                    .k = {0, dim, h * dim},
                                    .v = {0, dim, h * dim},
                                    .out = {0, dim, h * dim}};

    s->in[0] = numbers(h * q * dim);
    s->in[1] = numbers(h * kv * dim);
    s->in[2] = numbers(h * kv * dim);
    s->out = numbers(h * q * dim);
    return heddle_dnn_create_attention(&d, make, &s->o);
}

static heddle_status norm(const struct bench_case *c, const struct dnn_make *make, struct ours *s)
{
    const struct dnn_norm d = {.size = sizeof(d), .rows = c->v[0], .n = c->v[1], .eps = 1e-5f};

    s->in[0] = numbers(d.rows * d.n);
    s->in[1] = numbers(d.n);
    s->in[2] = numbers(d.n);
    s->out = numbers(d.rows * d.n);
    return heddle_dnn_create_norm(&d, make, &s->o);
}

static heddle_status map(const struct bench_case *c, const struct dnn_make *make, struct ours *s)
{
    const struct dnn_map d = {.size = sizeof(d),
                              .rank = 1,
                              .nin = 1,
                              .nsteps = 1,
                              .dims = {c->v[0]},
                              .stride = {{1}},
                              .step = {{.fn = c->act}}};

    s->in[0] = numbers(c->v[0]);
    s->out = numbers(c->v[0]);
    return heddle_dnn_create_map(&d, make, &s->o);
}

bool bench_ours(const struct bench_case *c, const char *isa, struct runner *out)
{
    static heddle_status (*const make_case[])(const struct bench_case *, const struct dnn_make *,
                                              struct ours *) = {conv, matmul, attention, norm, map};
    struct ours *s = calloc(1, sizeof(*s));
    char why[256] = "no memory";
    const struct dnn_make make = {
        .size = sizeof(make), .isa = isa, .why = why, .why_bytes = sizeof(why)};

    if (s == NULL || make_case[c->kind](c, &make, s) != HEDDLE_OK) {
        fprintf(stderr, "bench dnn: %s\n", why);
        exit(1);
    }
    for (size_t i = 0; i < 4; i++)
        s->ptr[i] = s->in[i];
    s->to[0] = s->out;
    for (size_t i = 0; i < MOST_THREADS; i++)
        s->scratch[i] = aligned_alloc(64, heddle_dnn_scratch_bytes(s->o, 1) / 64 * 64 + 64);
    *out = (struct runner){s, run, close_ours, heddle_dnn_flops(s->o), heddle_dnn_bytes(s->o)};
    return true;
}
