/* SPDX-License-Identifier: BSD-3-Clause */
/* Random convolutions of bytes, on every instruction set and in pieces, against plain loops: the
 * same bits. Images and results end at a page that nobody may touch. */
#include <string.h>

#include "dnn/dnn_test.h"
#include "tests/test.h"

struct kase {
    struct dnn_qconv d;
    size_t oh, ow;
    int8_t *w;
    int32_t *bias;
    double *factor;
    const uint8_t *x;
};

static int element(enum dnn_byte type, const uint8_t *p)
{
    return type == DNN_S8 ? (int8_t)*p : *p;
}

static int32_t sum_of(const struct kase *k, size_t n, size_t y, size_t x, size_t co)
{
    const struct dnn_qconv *d = &k->d;
    int32_t sum = k->bias[co];

    for (size_t t = 0; t < d->kh * d->kw; t++) {
        const size_t iy = y * d->stride_h + t / d->kw * d->dilation_h - d->pad_top,
                     ix = x * d->stride_w + t % d->kw * d->dilation_w - d->pad_left;

        for (size_t ci = 0; ci < d->ci && iy < d->h && ix < d->w; ci++)
            sum += (element(d->in, k->x + ((n * d->h + iy) * d->w + ix) * d->ci + ci) - d->x_zero) *
                   k->w[co * d->w_co + ci * d->w_ci + t * d->w_tap];
    }
    return sum;
}

static void reference(const struct kase *k, uint8_t *out)
{
    const struct dnn_qconv *d = &k->d;
    size_t at = 0;

    for (size_t n = 0; n < d->n; n++)
        for (size_t p = 0; p < k->oh * k->ow; p++)
            for (size_t co = 0; co < d->co; co++, at++) {
                const int32_t sum = sum_of(k, n, p / k->ow, p % k->ow, co);
                double v;

                if (d->out == DNN_S32) {
                    memcpy(out + 4 * at, &sum, 4);
                    continue;
                }
                v = nearbyint((double)(float)(sum * k->factor[co])) + d->y_zero;
                out[at] = (uint8_t)(int)fmin(fmax(v, d->low), d->high);
            }
}

static void make_case(struct heddle_rng *r, struct kase *k)
{
    struct dnn_qconv *d = &k->d;
    const size_t pad = heddle_rng_below(r, 3);
    size_t taps;

    *d = (struct dnn_qconv){.size = sizeof(*d),
                            .n = 1 + heddle_rng_below(r, 2),
                            .ci = 1 + heddle_rng_below(r, 21),
                            .h = 3 + heddle_rng_below(r, 6),
                            .w = 3 + heddle_rng_below(r, 6),
                            .co = 1 + heddle_rng_below(r, 140),
                            .kh = 1 + heddle_rng_below(r, 3),
                            .kw = 1 + heddle_rng_below(r, 3),
                            .stride_h = 1 + heddle_rng_below(r, 2),
                            .stride_w = 1 + heddle_rng_below(r, 2),
                            .dilation_h = 1,
                            .dilation_w = 1,
                            .pad_top = pad,
                            .pad_left = heddle_rng_below(r, 3),
                            .pad_bottom = pad,
                            .pad_right = 1,
                            .in = heddle_rng_below(r, 2) ? DNN_U8 : DNN_S8,
                            .out = (enum dnn_byte)heddle_rng_below(r, 3)};
    d->x_zero = (int)heddle_rng_below(r, 256) - (d->in == DNN_S8 ? 128 : 0);
    d->low = d->out == DNN_S8 ? -128 : 0;
    d->high = d->low + 255;
    d->y_zero = d->low + (int)heddle_rng_below(r, 256);
    taps = d->kh * d->kw;
    if (heddle_rng_below(r, 2)) { /* as ONNX stores them, or as a matrix of columns */
        d->w_co = d->ci * taps;
        d->w_ci = taps;
        d->w_tap = 1;
    } else {
        d->w_co = 1;
        d->w_ci = d->co;
        d->w_tap = d->co * d->ci;
    }
    k->oh = heddle_dnn_conv_out(d->h, d->kh, d->stride_h, 1, d->pad_top, d->pad_bottom);
    k->ow = heddle_dnn_conv_out(d->w, d->kw, d->stride_w, 1, d->pad_left, d->pad_right);
    k->w = malloc(d->co * d->ci * taps);
    k->bias = malloc(d->co * sizeof(*k->bias));
    k->factor = malloc(d->co * sizeof(*k->factor));
    CHECK(k->w != NULL && k->bias != NULL && k->factor != NULL);
    for (size_t i = 0; i < d->co * d->ci * taps; i++)
        k->w[i] = (int8_t)((int)heddle_rng_below(r, 256) - 128);
    for (size_t i = 0; i < d->co; i++) {
        k->bias[i] = (int32_t)heddle_rng_below(r, 20001) - 10000;
        /* Halves are ties; large ones leave the range of bytes, and of 32-bit integers. */
        k->factor[i] = heddle_rng_below(r, 4) == 0   ? 0.5
                       : heddle_rng_below(r, 9) == 0 ? 1e9
                                                     : heddle_rng_double(r) / 200;
    }
}

static void compare(const struct kase *k, const uint8_t *want, size_t bytes)
{
    char why[200] = "";

    for (size_t i = 0; heddle_dnn_isa_name(i) != NULL; i++) {
        const struct dnn_make make = dnn_test_make(heddle_dnn_isa_name(i), why, sizeof(why));
        const size_t pieces[] = {1, 2, 7};
        struct heddle_dnn *o = NULL;

        CHECK_OK(heddle_dnn_create_qconv(&k->d, k->w, k->bias,
                                         k->d.out == DNN_S32 ? NULL : k->factor, &make, &o));
        for (size_t p = 0; p < 3; p++) {
            struct guarded g = guarded_new((bytes + 3) / 4);
            uint8_t *y = (uint8_t *)(void *)(g.p + g.n) - bytes;
            const size_t n = pieces[p] < heddle_dnn_parts(o) ? pieces[p] : heddle_dnn_parts(o);

            dnn_test_run(o, (const void *const[]){k->x}, (void *const[]){y}, n);
            CHECK(memcmp(y, want, bytes) == 0);
            guarded_free(&g);
        }
        heddle_dnn_destroy(o);
    }
}

TEST(random_bytes)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned i = 0; i < test_scale(150); i++) {
        struct kase k;
        struct guarded g;
        size_t bytes, nx;
        uint8_t *want, *x;

        make_case(&r, &k);
        nx = k.d.n * k.d.h * k.d.w * k.d.ci;
        g = guarded_new((nx + 3) / 4);
        x = (uint8_t *)(void *)(g.p + g.n) - nx;
        for (size_t j = 0; j < nx; j++)
            x[j] = (uint8_t)heddle_rng_below(&r, 256);
        k.x = x;
        bytes = k.d.n * k.oh * k.ow * k.d.co * (k.d.out == DNN_S32 ? 4 : 1);
        want = malloc(bytes + 1);
        CHECK(want != NULL);
        reference(&k, want);
        compare(&k, want, bytes);
        guarded_free(&g);
        free(want);
        free(k.w);
        free(k.bias);
        free(k.factor);
    }
}

TEST(refused)
{
    char why[200] = "";
    const struct dnn_make make = dnn_test_make(NULL, why, sizeof(why));
    const struct dnn_qconv d = {
        .size = sizeof(d), .n = 1, .ci = 4, .h = 2, .w = 2, .co = 1, .kh = 3, .kw = 1};
    const int8_t w[12] = {0};
    const double factor = 1;
    struct heddle_dnn *o = NULL;

    CHECK_STATUS(heddle_dnn_create_qconv(&d, w, NULL, &factor, &make, &o), HEDDLE_EINVAL);
    CHECK(strstr(why, "does not fit") != NULL);
    CHECK_STATUS(heddle_dnn_create_qconv(&d, NULL, NULL, &factor, &make, &o), HEDDLE_EINVAL);
}

TEST_MAIN(random_bytes, refused)
