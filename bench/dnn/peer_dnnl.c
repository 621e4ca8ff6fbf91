/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_dnnl: oneDNN 2 as a peer, loaded at run time. The number of threads of a primitive is fixed
 * when it is created; this program asks for one.
 */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_dnn.h"

enum { MOST_ARGS = 8 };

/* C has no cast from an object's address to a function's. */
#define FIND(name)                                                                                 \
    {                                                                                              \
        void *p_ = dlsym(library, #name);                                                          \
                                                                                                   \
        if (p_ == NULL)                                                                            \
            return false;                                                                          \
        memcpy(&api.name, &p_, sizeof(p_));                                                        \
    }

#define API_LIST(X)                                                                                \
    X(dnnl_version)                                                                                \
    X(dnnl_engine_create)                                                                          \
    X(dnnl_stream_create)                                                                          \
    X(dnnl_stream_wait)                                                                            \
    X(dnnl_memory_desc_init_by_tag)                                                                \
    X(dnnl_memory_create)                                                                          \
    X(dnnl_memory_get_data_handle)                                                                 \
    X(dnnl_memory_desc_get_size)                                                                   \
    X(dnnl_memory_destroy)                                                                         \
    X(dnnl_dilated_convolution_forward_desc_init)                                                  \
    X(dnnl_matmul_desc_init)                                                                       \
    X(dnnl_layer_normalization_forward_desc_init)                                                  \
    X(dnnl_eltwise_forward_desc_init)                                                              \
    X(dnnl_primitive_attr_create)                                                                  \
    X(dnnl_primitive_attr_set_post_ops)                                                            \
    X(dnnl_post_ops_create)                                                                        \
    X(dnnl_post_ops_append_eltwise)                                                                \
    X(dnnl_post_ops_append_sum)                                                                    \
    X(dnnl_primitive_desc_create)                                                                  \
    X(dnnl_primitive_desc_query_md)                                                                \
    X(dnnl_primitive_create)                                                                       \
    X(dnnl_primitive_execute)                                                                      \
    X(dnnl_primitive_destroy)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    API_LIST(MEMBER)
#undef MEMBER
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    char name[32];
} api;

static bool load(void)
{
    void *library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    void *omp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    void *p = omp != NULL ? dlsym(omp, "omp_set_num_threads") : NULL;
    void (*set)(int) = NULL;

    if (library == NULL)
        return false;
    if (p != NULL) {
        memcpy(&set, &p, sizeof(p));
        set(1);
    }
    API_LIST(FIND)
    if (api.dnnl_engine_create(&api.engine, dnnl_cpu, 0) != dnnl_success ||
        api.dnnl_stream_create(&api.stream, api.engine, dnnl_stream_default_flags) != dnnl_success)
        return false;
    snprintf(api.name, sizeof(api.name), "oneDNN %d.%d.%d", api.dnnl_version()->major,
             api.dnnl_version()->minor, api.dnnl_version()->patch);
    return true;
}

const char *bench_peer_name(void)
{
    if (api.name[0] == '\0' && !load())
        return NULL;
    return api.name;
}

struct peer {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arg[MOST_ARGS];
    int nargs;
};

static void run(void *self, size_t part, size_t nparts)
{
    struct peer *p = self;

    (void)part;
    (void)nparts;
    api.dnnl_primitive_execute(p->primitive, api.stream, p->nargs, p->arg);
    api.dnnl_stream_wait(api.stream);
}

static void close_peer(void *self)
{
    struct peer *p = self;

    for (int i = 0; i < p->nargs; i++)
        api.dnnl_memory_destroy(p->arg[i].memory);
    api.dnnl_primitive_destroy(p->primitive);
    free(p);
}

static dnnl_memory_desc_t any(int rank, const dnnl_dims_t dims)
{
    dnnl_memory_desc_t d;

    api.dnnl_memory_desc_init_by_tag(&d, rank, dims, dnnl_f32, dnnl_format_tag_any);
    return d;
}

static dnnl_memory_desc_t plain(int rank, const dnnl_dims_t dims)
{
    static const dnnl_format_tag_t tags[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    dnnl_memory_desc_t d;

    api.dnnl_memory_desc_init_by_tag(&d, rank, dims, dnnl_f32, tags[rank]);
    return d;
}

static dnnl_primitive_attr_t post(enum dnn_fn fn, bool has_residual)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;

    api.dnnl_primitive_attr_create(&attr);
    api.dnnl_post_ops_create(&ops);
    if (has_residual)
        api.dnnl_post_ops_append_sum(ops, 1);
    if (fn == DNN_RELU)
        api.dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
    if (fn == DNN_CLIP)
        api.dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_clip, 0, 6);
    if (fn == DNN_GELU)
        api.dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_gelu_erf, 0, 0);
    if (fn == DNN_GELU_TANH)
        api.dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_gelu_tanh, 0, 0);
    api.dnnl_primitive_attr_set_post_ops(attr, ops);
    return attr;
}

static void give(struct peer *p, dnnl_primitive_desc_t pd, dnnl_query_t what, int index, int name)
{
    const dnnl_memory_desc_t *md = api.dnnl_primitive_desc_query_md(pd, what, index);
    void *data = NULL;

    api.dnnl_memory_create(&p->arg[p->nargs].memory, md, api.engine, DNNL_MEMORY_ALLOCATE);
    api.dnnl_memory_get_data_handle(p->arg[p->nargs].memory, &data);
    memset(data, 0, api.dnnl_memory_desc_get_size(md));
    p->arg[p->nargs++].arg = name;
}

static bool open_primitive(struct peer *p, const void *desc, dnnl_primitive_attr_t attr,
                           bool has_weights)
{
    dnnl_primitive_desc_t pd;

    if (api.dnnl_primitive_desc_create(&pd, desc, attr, api.engine, NULL) != dnnl_success ||
        api.dnnl_primitive_create(&p->primitive, pd) != dnnl_success)
        return false;
    give(p, pd, dnnl_query_src_md, 0, DNNL_ARG_SRC);
    give(p, pd, dnnl_query_dst_md, 0, DNNL_ARG_DST);
    if (has_weights) {
        give(p, pd, dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS);
        give(p, pd, dnnl_query_weights_md, 1, DNNL_ARG_BIAS);
    }
    return true;
}

static bool conv(const struct bench_case *c, struct peer *p)
{
    const dnnl_dim_t ci = (dnnl_dim_t)c->v[0], h = (dnnl_dim_t)c->v[1], w = (dnnl_dim_t)c->v[2],
                     co = (dnnl_dim_t)c->v[3], k = (dnnl_dim_t)c->v[4], s = (dnnl_dim_t)c->v[5],
                     pad = (dnnl_dim_t)c->v[6], g = (dnnl_dim_t)c->v[7];
    const dnnl_dim_t oh = (h + 2 * pad - k) / s + 1, ow = (w + 2 * pad - k) / s + 1;
    const dnnl_dims_t src = {1, ci, h, w}, dst = {1, co, oh, ow}, plainw = {co, ci, k, k},
                      groupw = {g, co / g, ci / g, k, k}, bias = {co};
    const dnnl_dims_t strides = {s, s}, dilates = {0, 0}, pads = {pad, pad};
    const dnnl_memory_desc_t a = any(4, src), b = g > 1 ? any(5, groupw) : any(4, plainw),
                             z = any(1, bias), d = any(4, dst);
    dnnl_convolution_desc_t desc;

    return api.dnnl_dilated_convolution_forward_desc_init(
               &desc, dnnl_forward_inference, dnnl_convolution_auto, &a, &b, &z, &d, strides,
               dilates, pads, pads) == dnnl_success &&
           open_primitive(p, &desc, post(c->act, c->v[8] != 0), true);
}

static bool matmul(const struct bench_case *c, struct peer *p)
{
    const dnnl_dim_t m = (dnnl_dim_t)c->v[0], n = (dnnl_dim_t)c->v[1], k = (dnnl_dim_t)c->v[2];
    const dnnl_dims_t src = {m, k}, weights = {k, n}, bias = {1, n}, dst = {m, n};
    const dnnl_memory_desc_t a = plain(2, src), b = any(2, weights), z = plain(2, bias),
                             d = plain(2, dst);
    dnnl_matmul_desc_t desc;

    return api.dnnl_matmul_desc_init(&desc, &a, &b, &z, &d) == dnnl_success &&
           open_primitive(p, &desc, post(c->act, false), true);
}

static bool norm(const struct bench_case *c, struct peer *p)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)c->v[0], (dnnl_dim_t)c->v[1]};
    const dnnl_memory_desc_t a = plain(2, dims);
    dnnl_layer_normalization_desc_t desc;

    return api.dnnl_layer_normalization_forward_desc_init(&desc, dnnl_forward_inference, &a, NULL,
                                                          1e-5f, 0) == dnnl_success &&
           open_primitive(p, &desc, NULL, false);
}

static bool map(const struct bench_case *c, struct peer *p)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)c->v[0]};
    const dnnl_memory_desc_t a = plain(1, dims);
    const dnnl_alg_kind_t alg = c->act == DNN_GELU   ? dnnl_eltwise_gelu_erf
                                : c->act == DNN_TANH ? dnnl_eltwise_tanh
                                                     : dnnl_eltwise_logistic;
    dnnl_eltwise_desc_t desc;

    return api.dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, alg, &a, 0, 0) ==
               dnnl_success &&
           open_primitive(p, &desc, NULL, false);
}

static bool none(const struct bench_case *c, struct peer *p)
{
    (void)c;
    (void)p;
    return false;
}

bool bench_peer(const struct bench_case *c, struct runner *out)
{
    static bool (*const make_case[])(const struct bench_case *, struct peer *) = {conv, matmul,
                                                                                  none, norm, map};
    struct peer *p = calloc(1, sizeof(*p));

    if (bench_peer_name() == NULL || p == NULL || !make_case[c->kind](c, p)) {
        free(p);
        return false;
    }
    *out = (struct runner){p, run, close_peer, 0, 0};
    return true;
}
