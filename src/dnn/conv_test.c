/* SPDX-License-Identifier: BSD-3-Clause */
/* conv: random convolutions against loops in double precision. */
#include "dnn/dnn_test.h"

static size_t at(enum dnn_layout l, const size_t dims[4], size_t n, size_t c, size_t y, size_t x)
{
    return l == DNN_NCHW ? ((n * dims[1] + c) * dims[2] + y) * dims[3] + x
                         : ((n * dims[2] + y) * dims[3] + x) * dims[1] + c;
}

struct example {
    struct dnn_conv d;
    struct guarded x, w, bias, res, y;
    bool has_bias;
    size_t in[4], out[4];
};

/* One number of the output, and the size of its terms. */
static double naive(const struct example *e, const size_t i[4], double *size)
{
    const struct dnn_conv *d = &e->d;
    const size_t ci = d->ci / d->groups, g = i[1] / (d->co / d->groups);
    double s = e->has_bias ? (double)e->bias.p[i[1]] : 0;

    *size = fabs(s);
    for (size_t c = 0; c < ci; c++)
        for (size_t ky = 0; ky < d->kh; ky++)
            for (size_t kx = 0; kx < d->kw; kx++) {
                const size_t y = i[2] * d->stride_h + ky * d->dilation_h - d->pad_top;
                const size_t x = i[3] * d->stride_w + kx * d->dilation_w - d->pad_left;
                const size_t w = ((i[1] * ci + c) * d->kh + ky) * d->kw + kx;
                double t;

                if (y >= d->h || x >= d->w)
                    continue;
                t = (double)e->x.p[at(d->in_layout, e->in, i[0], g * ci + c, y, x)] *
                    (double)e->w.p[w];
                s += t;
                *size += fabs(t);
            }
    if (d->has_residual)
        s += (double)e->res.p[at(d->out_layout, e->out, i[0], i[1], i[2], i[3])];
    return dnn_test_act(d->act, s);
}

static void compare(const struct example *e)
{
    size_t i[4];

    for (i[0] = 0; i[0] < e->out[0]; i[0]++)
        for (i[1] = 0; i[1] < e->out[1]; i[1]++)
            for (i[2] = 0; i[2] < e->out[2]; i[2]++)
                for (i[3] = 0; i[3] < e->out[3]; i[3]++) {
                    double size = 0;
                    const double want = naive(e, i, &size);

                    dnn_test_near(e->y.p[at(e->d.out_layout, e->out, i[0], i[1], i[2], i[3])], want,
                                  size, 4e-6);
                }
}

static size_t below(struct heddle_rng *r, size_t n)
{
    return heddle_rng_below(r, n);
}

/* Sizes around the vectors' and the tiles'; all groups, strides and pads that fit. */
static struct dnn_conv random_conv(struct heddle_rng *r)
{
    static const size_t channels[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 24, 33, 64, 70, 129};
    struct dnn_conv d = {.size = sizeof(d)};
    const size_t ci = channels[below(r, 14)], co = channels[below(r, 14)];

    d.groups = below(r, 3) == 0 ? 1 + below(r, 3) : 1;
    d.ci = ci * d.groups;
    d.co = co * d.groups;
    if (below(r, 5) == 0) { /* depthwise */
        d.groups = d.ci = d.co = channels[below(r, 14)];
    }
    d.n = 1 + below(r, 2);
    d.kh = 1 + below(r, 4);
    d.kw = 1 + below(r, 4);
    d.stride_h = 1 + below(r, 3);
    d.stride_w = 1 + below(r, 3);
    d.dilation_h = 1 + below(r, 2);
    d.dilation_w = 1 + below(r, 2);
    d.pad_top = below(r, 4);
    d.pad_bottom = below(r, 4);
    d.pad_left = below(r, 4);
    d.pad_right = below(r, 4);
    d.h = (d.kh - 1) * d.dilation_h + 1 + below(r, 7);
    d.w = (d.kw - 1) * d.dilation_w + 1 + below(r, 9);
    d.in_layout = below(r, 3) == 0 ? DNN_NCHW : DNN_NHWC;
    d.out_layout = below(r, 3) == 0 ? DNN_NCHW : DNN_NHWC;
    d.has_residual = below(r, 2) == 0;
    d.act = dnn_test_random_act(r);
    return d;
}

static void open_example(struct example *e, struct heddle_rng *r)
{
    const struct dnn_conv *d = &e->d;
    const size_t oh =
        heddle_dnn_conv_out(d->h, d->kh, d->stride_h, d->dilation_h, d->pad_top, d->pad_bottom);
    const size_t ow =
        heddle_dnn_conv_out(d->w, d->kw, d->stride_w, d->dilation_w, d->pad_left, d->pad_right);
    const size_t in[4] = {d->n, d->ci, d->h, d->w}, out[4] = {d->n, d->co, oh, ow};

    memcpy(e->in, in, sizeof(in));
    memcpy(e->out, out, sizeof(out));
    e->has_bias = below(r, 3) != 0;
    e->x = guarded_random(r, d->n * d->ci * d->h * d->w);
    e->w = guarded_random(r, d->co * (d->ci / d->groups) * d->kh * d->kw);
    e->bias = guarded_random(r, d->co);
    e->res = guarded_random(r, d->n * d->co * oh * ow);
    e->y = guarded_new(d->n * d->co * oh * ow);
}

static void close_example(struct example *e)
{
    guarded_free(&e->x);
    guarded_free(&e->w);
    guarded_free(&e->bias);
    guarded_free(&e->res);
    guarded_free(&e->y);
}

static void try_one(struct example *e, const char *isa)
{
    const void *in[2] = {e->x.p, e->res.p};
    void *out[1] = {e->y.p};
    char why[256] = "";
    const struct dnn_make make = dnn_test_make(isa, why, sizeof(why));
    struct heddle_dnn *o = NULL;

    CHECK_OK(heddle_dnn_create_conv(&e->d, e->w.p, e->has_bias ? e->bias.p : NULL, &make, &o));
    CHECK_STR(heddle_dnn_isa(o), isa);
    dnn_test_pieces(o, in, out, &e->y, NULL);
    compare(e);
    if (e->d.has_residual) { /* which may be the output */
        in[1] = e->y.p;
        dnn_test_pieces(o, in, out, &e->y, e->res.p);
        compare(e);
    }
    heddle_dnn_destroy(o);
}

TEST(random)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(400); i++) {
        struct example e = {.d = random_conv(&r)};

        open_example(&e, &r);
        EACH_ISA(isa) try_one(&e, isa);
        close_example(&e);
    }
}

/* Long sums: several steps through the weights of a panel. */
TEST(deep)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(10); i++) {
        struct example e = {.d = {.size = sizeof(e.d),
                                  .n = 1,
                                  .ci = 300 + 17 * i,
                                  .co = 64 + 5 * (i & 1),
                                  .h = 7,
                                  .w = 5,
                                  .kh = 1 + 2 * (i & 1),
                                  .kw = 3,
                                  .groups = 1,
                                  .stride_h = 1,
                                  .stride_w = 1,
                                  .dilation_h = 1,
                                  .dilation_w = 1,
                                  .pad_top = 1,
                                  .pad_left = 1,
                                  .pad_right = 1,
                                  .in_layout = DNN_NHWC,
                                  .out_layout = DNN_NHWC,
                                  .has_residual = (i & 2) != 0,
                                  .act = dnn_test_random_act(&r)}};

        open_example(&e, &r);
        EACH_ISA(isa) try_one(&e, isa);
        close_example(&e);
    }
}

static struct dnn_conv small(void)
{
    return (struct dnn_conv){.size = sizeof(struct dnn_conv),
                             .n = 1,
                             .ci = 4,
                             .co = 6,
                             .h = 5,
                             .w = 5,
                             .kh = 3,
                             .kw = 3};
}

static void refused(struct dnn_conv d, heddle_status want)
{
    float w[6 * 4 * 9] = {0};
    char why[256] = "";
    const struct dnn_make make = dnn_test_make(NULL, why, sizeof(why));
    struct heddle_dnn *o = NULL;

    CHECK_STATUS(heddle_dnn_create_conv(&d, w, NULL, &make, &o), want);
    CHECK(o == NULL);
    CHECK(strlen(why) > 10);
}

TEST(refusals)
{
    struct dnn_conv d = small();

    d.kh = 6;
    refused(d, HEDDLE_EINVAL);
    d = small();
    d.groups = 3;
    refused(d, HEDDLE_EINVAL);
    d = small();
    d.kw = 0;
    refused(d, HEDDLE_EINVAL);
    d = small();
    d.act.fn = DNN_MUL;
    refused(d, HEDDLE_EINVAL);
    d = small();
    d.h = d.w = SIZE_MAX / 8;
    refused(d, HEDDLE_EOVERFLOW);
    d = small();
    d.pad_top = SIZE_MAX;
    refused(d, HEDDLE_EINVAL);
    d = small();
    d.pad_left = d.pad_right = SIZE_MAX / 16;
    refused(d, HEDDLE_EOVERFLOW);
}

/* Each allocation fails once; a second object shares the weights of the first. */
TEST(memory)
{
    struct heddle_rng r;
    struct example e = {.d = small()};
    struct faulty f;

    heddle_rng_seed(&r, test_seed());
    e.d.groups = e.d.stride_h = e.d.stride_w = e.d.dilation_h = e.d.dilation_w = 1;
    open_example(&e, &r);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_dnn *o = NULL, *twin = NULL;
        struct dnn_make make = dnn_test_make(NULL, NULL, 0);
        struct dnn_conv wide = e.d;

        faulty_init(&f, k);
        make.alloc = &f.a;
        wide.w = 9;
        if (heddle_dnn_create_conv(&e.d, e.w.p, e.bias.p, &make, &o) == HEDDLE_OK) {
            make.share = o;
            if (heddle_dnn_create_conv(&wide, NULL, NULL, &make, &twin) == HEDDLE_OK)
                CHECK_EQ(heddle_dnn_packed_bytes(o), heddle_dnn_packed_bytes(twin));
            wide.kw = 1;
            make.share = o;
            CHECK(heddle_dnn_create_conv(&wide, NULL, NULL, &make, &twin) != HEDDLE_OK);
        }
        heddle_dnn_destroy(o);
        heddle_dnn_destroy(twin);
        CHECK_EQ(f.nlive, 0);
    }
    close_example(&e);
}

TEST_MAIN(random, deep, refusals, memory)
