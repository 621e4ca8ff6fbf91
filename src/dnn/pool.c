/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: maxima and averages over windows.
 *
 * DNN_NHWC: a unit is a line of the output, computed over all channels at once; taps outside of
 * the image are left out per pixel. DNN_NCHW: a unit is a channel.
 */
#include "dnn/object.h"

struct pool {
    struct heddle_dnn o;
    struct dnn_pool d;
};

/* The pixels of the image that a window covers along one axis: first, first + step, ... */
struct span {
    size_t first, count;
    size_t padded; /* with those of the padding */
};

static struct span span_of(size_t at, size_t in, size_t window, size_t dilation, size_t before,
                           size_t behind)
{
    struct span s = {0, 0, 0};

    for (size_t k = 0; k < window; k++) {
        const size_t x = at + k * dilation;

        s.padded += x < before + in + behind;
        if (x < before || x - before >= in)
            continue;
        if (s.count++ == 0)
            s.first = x - before;
    }
    return s;
}

static struct span span_y(const struct dnn_pool *d, size_t y)
{
    return span_of(y * d->stride_h, d->h, d->kh, d->dilation_h, d->pad_top, d->pad_bottom);
}

static struct span span_x(const struct dnn_pool *d, size_t x)
{
    return span_of(x * d->stride_w, d->w, d->kw, d->dilation_w, d->pad_left, d->pad_right);
}

static float factor_of(const struct dnn_pool *d, struct span y, struct span x)
{
    return d->kind == DNN_POOL_AVERAGE ? 1 / (float)(y.count * x.count)
                                       : 1 / (float)(y.padded * x.padded);
}

static void line_nhwc(const struct pool *p, const float *image, float *out, size_t y,
                      const float **tap)
{
    const struct dnn_pool *d = &p->d;
    const struct span sy = span_y(d, y);
    struct dnn_window w = {.tap = tap, .n = 1, .c = d->c, .ldout = d->c};

    for (size_t x = 0; x < d->out_w; x++) {
        const struct span sx = span_x(d, x);

        w.ntaps = 0;
        for (size_t i = 0; i < sy.count; i++)
            for (size_t j = 0; j < sx.count; j++)
                tap[w.ntaps++] =
                    image +
                    ((sy.first + i * d->dilation_h) * d->w + sx.first + j * d->dilation_w) * d->c;
        w.out = out + x * d->c;
        if (d->kind == DNN_POOL_MAX)
            p->o.isa->pool_max(&w);
        else
            p->o.isa->pool_sum(&w, factor_of(d, sy, sx));
    }
}

static float one_nchw(const struct dnn_pool *d, const float *image, struct span sy, struct span sx)
{
    const bool is_max = d->kind == DNN_POOL_MAX;
    float r = is_max ? -__builtin_inff() : 0;

    for (size_t i = 0; i < sy.count; i++)
        for (size_t j = 0; j < sx.count; j++) {
            const float v =
                image[(sy.first + i * d->dilation_h) * d->w + sx.first + j * d->dilation_w];

            r = !is_max ? r + v : v > r || v != v ? v : r;
        }
    return is_max ? r : r * factor_of(d, sy, sx);
}

static void channel_nchw(const struct pool *p, const float *image, float *out)
{
    const struct dnn_pool *d = &p->d;

    if (d->out_h * d->out_w == 1 && d->kh == d->h && d->kw == d->w && d->kind != DNN_POOL_MAX &&
        d->pad_top + d->pad_left + d->pad_bottom + d->pad_right == 0) {
        *out = p->o.isa->sum(image, d->h * d->w) / (float)(d->h * d->w);
        return;
    }
    for (size_t y = 0; y < d->out_h; y++) {
        const struct span sy = span_y(d, y);

        for (size_t x = 0; x < d->out_w; x++)
            *out++ = one_nchw(d, image, sy, span_x(d, x));
    }
}

static void run(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch)
{
    const struct pool *p = (const struct pool *)(const void *)o;
    const struct dnn_pool *d = &p->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);

    for (size_t u = r.first; u < r.last; u++)
        if (d->layout == DNN_NHWC)
            line_nhwc(p, (const float *)in[0] + u / d->out_h * d->h * d->w * d->c,
                      (float *)out[0] + u * d->out_w * d->c, u % d->out_h, scratch);
        else
            channel_nchw(p, (const float *)in[0] + u * d->h * d->w,
                         (float *)out[0] + u * d->out_h * d->out_w);
}

static const struct dnn_kind kind = {"pool", run};

/* Is there a window that sees no pixel, or begins behind the padding? */
static bool has_empty(size_t out, size_t stride, size_t before, size_t in)
{
    return out > 0 && (out - 1) * stride >= before + in;
}

static heddle_status check(const struct dnn_ask *ask, struct dnn_pool *d)
{
    size_t oh, ow;

    d->stride_h = dnn_or_one(d->stride_h);
    d->stride_w = dnn_or_one(d->stride_w);
    d->dilation_h = dnn_or_one(d->dilation_h);
    d->dilation_w = dnn_or_one(d->dilation_w);
    oh = heddle_dnn_conv_out(d->h, d->kh, d->stride_h, d->dilation_h, d->pad_top, d->pad_bottom);
    ow = heddle_dnn_conv_out(d->w, d->kw, d->stride_w, d->dilation_w, d->pad_left, d->pad_right);
    d->out_h = d->out_h != 0 ? d->out_h : oh;
    d->out_w = d->out_w != 0 ? d->out_w : ow;
    if (d->out_h == 0 || d->out_w == 0 || d->kh == 0 || d->kw == 0)
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "pool: a window of %zu x %zu does not fit into an image of %zu x %zu with "
                       "its padding",
                       d->kh, d->kw, d->h, d->w);
    if (!dnn_fits(d->n, d->c, d->h, d->w) || !dnn_fits(d->n, d->c, d->out_h, d->out_w) ||
        !dnn_fits(d->kh, d->kw, 16, 1) || !dnn_fits(d->kh, d->dilation_h, 1, 1) ||
        !dnn_fits(d->kw, d->dilation_w, 1, 1) || !dnn_fits(d->out_h, d->stride_h, 1, 1) ||
        !dnn_fits(d->out_w, d->stride_w, 1, 1))
        return DNN_WHY(ask, HEDDLE_EOVERFLOW, "pool: its sizes do not fit into memory");
    if (d->pad_top >= d->kh * d->dilation_h || d->pad_left >= d->kw * d->dilation_w ||
        has_empty(d->out_h, d->stride_h, d->pad_top, d->h) ||
        has_empty(d->out_w, d->stride_w, d->pad_left, d->w))
        return DNN_WHY(ask, HEDDLE_EINVAL, "pool: a window lies in the padding alone");
    return HEDDLE_OK;
}

heddle_status heddle_dnn_create_pool(const struct dnn_pool *desc, const struct dnn_make *make,
                                     struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_pool d;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_pool, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = check(&ask, &d);
    if (st == HEDDLE_OK)
        st = heddle_dnn_new(&ask, &kind, sizeof(struct pool), &o);
    if (st != HEDDLE_OK)
        return st;
    ((struct pool *)(void *)o)->d = d;
    o->nparts = d.n * (d.layout == DNN_NHWC ? d.out_h : d.c);
    o->scratch = d.layout == DNN_NHWC ? dnn_room(d.kh * d.kw * 2) : 0;
    o->flops =
        (double)d.n * (double)d.c * (double)d.out_h * (double)d.out_w * (double)d.kh * (double)d.kw;
    o->moved = 4.0 * (double)d.n * (double)d.c *
               ((double)d.h * (double)d.w + (double)d.out_h * (double)d.out_w);
    *out = o;
    return HEDDLE_OK;
}
