/* SPDX-License-Identifier: BSD-3-Clause */
/* transposes, reorders, rows by index, pooling: against plain loops. */
#include "dnn/dnn_test.h"

static size_t below(struct heddle_rng *r, size_t n)
{
    return heddle_rng_below(r, n);
}

static void check_transpose(const struct dnn_transpose *d, const char *x, const char *y,
                            size_t total)
{
    for (size_t u = 0; u < total; u++) {
        size_t at[DNN_MAX_RANK] = {0}, rest = u, from = 0;

        for (unsigned k = d->rank; k-- > 0;) {
            at[d->perm[k]] = rest % d->dims[d->perm[k]];
            rest /= d->dims[d->perm[k]];
        }
        for (unsigned k = 0; k < d->rank; k++)
            from = from * d->dims[k] + at[k];
        CHECK(memcmp(x + from * d->elem_bytes, y + u * d->elem_bytes, d->elem_bytes) == 0);
    }
}

TEST(transpose)
{
    static const size_t sizes[] = {1, 2, 4, 8};
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t t = 0; t < test_scale(300); t++) {
        struct dnn_transpose d = {.size = sizeof(d), .elem_bytes = sizes[below(&r, 4)]};
        struct guarded x, y;
        size_t total = 1;

        d.rank = 1 + (unsigned)below(&r, 5);
        for (unsigned k = 0; k < d.rank; k++) {
            const unsigned j = (unsigned)below(&r, k + 1);

            d.dims[k] = below(&r, 10) == 0 ? 1 : below(&r, d.rank < 4 ? 40 : 7);
            total *= d.dims[k];
            d.perm[k] = d.perm[j];
            d.perm[j] = k;
        }
        x = guarded_random(&r, total * 2);
        y = guarded_new((total * d.elem_bytes + 3) / 4);
        EACH_ISA(isa)
        {
            const struct dnn_make make = dnn_test_make(isa, NULL, 0);
            const void *in[1] = {x.p};
            void *out[1] = {y.p};
            struct heddle_dnn *o = NULL;

            CHECK_OK(heddle_dnn_create_transpose(&d, &make, &o));
            if (total * d.elem_bytes % 4 == 0)
                dnn_test_pieces(o, in, out, &y, NULL);
            else
                dnn_test_run(o, in, out, 1);
            check_transpose(&d, (const char *)x.p, (const char *)y.p, total);
            heddle_dnn_destroy(o);
        }
        guarded_free(&x);
        guarded_free(&y);
    }
}

TEST(reorder)
{
    struct heddle_rng r;
    const struct dnn_reorder d = {
        .size = sizeof(d), .n = 2, .c = 19, .h = 5, .w = 7, .from = DNN_NCHW, .to = DNN_NHWC};
    struct dnn_reorder back = d;
    struct guarded x, y, z;

    heddle_rng_seed(&r, test_seed());
    x = guarded_random(&r, d.n * d.c * d.h * d.w);
    y = guarded_new(x.n);
    z = guarded_new(x.n);
    back.from = DNN_NHWC;
    back.to = DNN_NCHW;
    EACH_ISA(isa)
    {
        const struct dnn_make make = dnn_test_make(isa, NULL, 0);
        const void *in[1] = {x.p};
        void *out[1] = {y.p};
        struct heddle_dnn *o = NULL;

        CHECK_OK(heddle_dnn_create_reorder(&d, &make, &o));
        dnn_test_pieces(o, in, out, &y, NULL);
        heddle_dnn_destroy(o);
        for (size_t i = 0; i < x.n; i++) {
            const size_t px = d.h * d.w, c = i / px % d.c;

            CHECK(x.p[i] == y.p[(i / px / d.c * px + i % px) * d.c + c]);
        }
        in[0] = y.p;
        out[0] = z.p;
        CHECK_OK(heddle_dnn_create_reorder(&back, &make, &o));
        dnn_test_pieces(o, in, out, &z, NULL);
        heddle_dnn_destroy(o);
        CHECK(memcmp(x.p, z.p, x.n * sizeof(float)) == 0);
    }
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&z);
}

TEST(gather)
{
    const struct dnn_gather d = {.size = sizeof(d), .outer = 2, .n = 3, .row_bytes = 8, .count = 4};
    const float table[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const int64_t index[4] = {2, -3, 3, INT64_MIN};
    const float want[16] = {5, 6, 1, 2, 0, 0, 0, 0, 11, 12, 7, 8, 0, 0, 0, 0};
    const void *in[2] = {table, index};
    struct guarded y = guarded_new(16);
    void *out[1] = {y.p};
    struct heddle_dnn *o = NULL;

    CHECK_OK(heddle_dnn_create_gather(&d, NULL, &o));
    dnn_test_pieces(o, in, out, &y, NULL);
    CHECK(memcmp(y.p, want, sizeof(want)) == 0);
    heddle_dnn_destroy(o);
    guarded_free(&y);
}

/* --- pooling ------------------------------------------------------------------ */

static double naive(const struct dnn_pool *d, const float *x, const size_t i[4])
{
    const bool is_max = d->kind == DNN_POOL_MAX;
    size_t inside = 0, padded = 0;
    double v = is_max ? -INFINITY : 0;

    for (size_t ky = 0; ky < d->kh; ky++)
        for (size_t kx = 0; kx < d->kw; kx++) {
            const size_t py = i[2] * d->stride_h + ky * d->dilation_h;
            const size_t px = i[3] * d->stride_w + kx * d->dilation_w;
            const size_t y = py - d->pad_top, z = px - d->pad_left;
            double t;

            padded +=
                py < d->pad_top + d->h + d->pad_bottom && px < d->pad_left + d->w + d->pad_right;
            if (y >= d->h || z >= d->w)
                continue;
            inside++;
            t = (double)(d->layout == DNN_NCHW ? x[((i[0] * d->c + i[1]) * d->h + y) * d->w + z]
                                               : x[((i[0] * d->h + y) * d->w + z) * d->c + i[1]]);
            v = !is_max ? v + t : t > v || isnan(t) ? t : v;
        }
    if (is_max)
        return v;
    return v / (double)(d->kind == DNN_POOL_AVERAGE ? inside : padded);
}

static void check_pool(const struct dnn_pool *d, const struct guarded *x, const struct guarded *y,
                       size_t oh, size_t ow)
{
    for (size_t u = 0; u < y->n; u++) {
        const size_t px = u % (oh * ow), nc = u / (oh * ow);
        const size_t i[4] = {nc / d->c, nc % d->c, px / ow, px % ow};
        const size_t at = d->layout == DNN_NCHW ? u : (i[0] * oh * ow + px) * d->c + i[1];

        dnn_test_near(y->p[at], naive(d, x->p, i), 1, 1e-6);
    }
}

TEST(pool)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t t = 0; t < test_scale(300); t++) {
        struct dnn_pool d = {.size = sizeof(d),
                             .kind = (enum dnn_pool_kind)below(&r, 3),
                             .n = 1 + below(&r, 2),
                             .c = 1 + below(&r, 40),
                             .kh = 1 + below(&r, 4),
                             .kw = 1 + below(&r, 4),
                             .stride_h = 1 + below(&r, 3),
                             .stride_w = 1 + below(&r, 3),
                             .dilation_h = 1 + below(&r, 2),
                             .dilation_w = 1 + below(&r, 2),
                             .layout = (enum dnn_layout)below(&r, 2)};
        struct guarded x, y;
        size_t oh, ow;

        d.h = (d.kh - 1) * d.dilation_h + 1 + below(&r, 9);
        d.w = (d.kw - 1) * d.dilation_w + 1 + below(&r, 9);
        d.pad_top = below(&r, d.kh);
        d.pad_left = below(&r, d.kw);
        d.pad_bottom = below(&r, d.kh);
        d.pad_right = below(&r, d.kw);
        if (t % 5 == 0) { /* global */
            d.kh = d.h;
            d.kw = d.w;
            d.dilation_h = d.dilation_w = 1;
            d.pad_top = d.pad_left = d.pad_bottom = d.pad_right = 0;
        }
        oh = heddle_dnn_conv_out(d.h, d.kh, d.stride_h, d.dilation_h, d.pad_top, d.pad_bottom);
        ow = heddle_dnn_conv_out(d.w, d.kw, d.stride_w, d.dilation_w, d.pad_left, d.pad_right);
        x = guarded_random(&r, d.n * d.c * d.h * d.w);
        y = guarded_new(d.n * d.c * oh * ow);
        if (t % 6 == 0)
            x.p[below(&r, x.n)] = NAN;
        EACH_ISA(isa)
        {
            const struct dnn_make make = dnn_test_make(isa, NULL, 0);
            const void *in[1] = {x.p};
            void *out[1] = {y.p};
            struct heddle_dnn *o = NULL;

            CHECK_OK(heddle_dnn_create_pool(&d, &make, &o));
            dnn_test_pieces(o, in, out, &y, NULL);
            heddle_dnn_destroy(o);
            check_pool(&d, &x, &y, oh, ow);
        }
        guarded_free(&x);
        guarded_free(&y);
    }
}

TEST_MAIN(transpose, reorder, gather, pool)
