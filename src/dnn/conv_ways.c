/* SPDX-License-Identifier: BSD-3-Clause */
/* conv_ways: the three ways to run a convolution; conv.h says when each is used. */
#include <string.h>

#include "dnn/conv.h"

/* --- direct ------------------------------------------------------------------- */

struct direct_rows {
    const struct conv *c;
    const float *image; /* at the first channel of the group */
    size_t pixel;       /* of row 0 */
};

/* n pixels of one output line, from (y, x) of the padded input on, in one tap; zeros outside of the
 * image. */
static void direct_run_of(const struct conv *c, const float *image, const size_t in[2], size_t n,
                          const float **a)
{
    const struct dnn_conv *d = &c->d;
    const float *zero = c->o.weights->data + c->at_zero;
    const size_t y = in[0] - d->pad_top, step = d->stride_w * d->ci; /* y wraps below 0 */
    size_t x = in[1], i = 0;

    for (; i < n && (x < d->pad_left || y >= d->h); i++, x += d->stride_w)
        a[i] = zero;
    if (i < n && x < d->pad_left + d->w) {
        const size_t there = (d->pad_left + d->w - x - 1) / d->stride_w + 1;
        const float *p = image + (y * d->w + x - d->pad_left) * d->ci;

        for (const size_t end = dnn_min(n, i + there); i < end; i++, p += step)
            a[i] = p;
    }
    for (; i < n; i++)
        a[i] = zero;
}

static void direct_rows(const void *arg, size_t row, size_t mr, size_t tap, size_t ntaps,
                        const float **a)
{
    const struct direct_rows *r = arg;
    const struct dnn_conv *d = &r->c->d;
    size_t y = (r->pixel + row) / r->c->ow, x = (r->pixel + row) % r->c->ow;

    for (size_t i = 0; i < mr;) { /* what is in one output line */
        const size_t n = dnn_min(mr - i, r->c->ow - x);
        size_t ky = tap / d->kw, kx = tap % d->kw;

        for (size_t t = 0; t < ntaps; t++) {
            const size_t in[2] = {y * d->stride_h + ky * d->dilation_h,
                                  x * d->stride_w + kx * d->dilation_w};

            direct_run_of(r->c, r->image, in, n, a + t * mr + i);
            if (++kx == d->kw) {
                kx = 0;
                ky++;
            }
        }
        i += n;
        x = 0;
        y++;
    }
}

/* Pixels first .. last - 1 of panel at[2], group at[1], image at[0]. */
static void direct_strip(const struct conv *c, const void *const *in, void *const *out,
                         const size_t where[3], struct dnn_range pixels, const float **a)
{
    const size_t at[4] = {where[0], where[1], where[2], pixels.first};
    const float *image =
        (const float *)in[0] + where[0] * c->d.h * c->d.w * c->d.ci + where[1] * c->ci;
    const struct direct_rows rows = {c, image, pixels.first};
    struct dnn_strip s = heddle_dnn_conv_strip(c, in, out, at, pixels.last - pixels.first);

    s.is_dense = c->is_dense;
    s.rows = direct_rows;
    s.arg = &rows;
    heddle_dnn_strip(&s, a);
}

/* A unit is a block of pixels of a panel; pixels first, then panels, groups, images. Or, where all
 * weights stay in the cache, a block of pixels of all panels. */
static void direct_run(const struct heddle_dnn *o, const void *const *in, void *const *out,
                       size_t part, size_t nparts, void *scratch)
{
    const struct conv *c = (const struct conv *)(const void *)o;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    const size_t npanels = c->is_by_pixels ? 1 : c->p.count;

    for (size_t u = r.first; u < r.last;) {
        const size_t strip = u / c->nblocks, block = u % c->nblocks;
        const size_t end = c->is_by_pixels ? block + 1 : dnn_min(c->nblocks, block + (r.last - u));
        const struct dnn_range pixels = {block * c->block, dnn_min(c->npixels, end * c->block)};
        size_t at[3] = {strip / npanels / c->d.groups, strip / npanels % c->d.groups,
                        strip % npanels};

        if (c->is_by_pixels)
            for (at[2] = 0; at[2] < c->p.count; at[2]++)
                direct_strip(c, in, out, at, pixels, scratch);
        else
            direct_strip(c, in, out, at, pixels, scratch);
        u += end - block;
    }
}

const struct dnn_kind heddle_dnn_conv_direct = {"conv", direct_run};

/* --- lines -------------------------------------------------------------------- */

struct lines_rows {
    const struct conv *c;
    const float *lines;
};

static void lines_rows(const void *arg, size_t row, size_t mr, size_t tap, size_t ntaps,
                       const float **a)
{
    const struct lines_rows *r = arg;
    const struct conv *c = r->c;
    const size_t per_line = c->d.dilation_w == 1 ? 1 : c->d.kw;

    for (size_t t = 0; t < ntaps; t++) {
        const size_t line = (tap + t) / per_line, kx = (tap + t) % per_line;
        const float *p = r->lines + line * c->line + kx * c->d.dilation_w * c->deep;

        for (size_t i = 0; i < mr; i++)
            a[t * mr + i] = p + (row + i) * c->d.stride_w * c->deep;
    }
}

/* Channels first .. first + ci of line y of an image, interleaved. */
static void fill_interleaved(const struct conv *c, const float *image, size_t y, size_t first,
                             float *to)
{
    const struct dnn_conv *d = &c->d;

    memset(to, 0, d->pad_left * c->ci * sizeof(float));
    to += d->pad_left * c->ci;
    if (d->in_layout == DNN_NHWC)
        memcpy(to, image + y * d->w * d->ci, d->w * c->ci * sizeof(float));
    else
        c->o.isa->transpose(image + (first * d->h + y) * d->w, d->h * d->w, to, c->ci, c->ci, d->w);
    memset(to + d->w * c->ci, 0, d->pad_right * c->ci * sizeof(float));
}

static void fill_planar(const struct conv *c, const float *image, size_t y, size_t channel,
                        float *to)
{
    const struct dnn_conv *d = &c->d;

    memset(to, 0, d->pad_left * sizeof(float));
    memcpy(to + d->pad_left, image + (channel * d->h + y) * d->w, d->w * sizeof(float));
    memset(to + d->pad_left + d->w, 0, d->pad_right * sizeof(float));
}

/* The lines that output line y needs, of group g. */
static void fill(const struct conv *c, const float *image, size_t y, size_t g, float *lines)
{
    const struct dnn_conv *d = &c->d;
    const size_t nc = c->is_planar ? c->ci : 1;

    for (size_t i = 0; i < nc; i++)
        for (size_t ky = 0; ky < d->kh; ky++) {
            const size_t from = y * d->stride_h + ky * d->dilation_h - d->pad_top;
            float *to = lines + (i * d->kh + ky) * c->line;

            if (from >= d->h)
                memset(to, 0, c->line * sizeof(float));
            else if (c->is_planar)
                fill_planar(c, image, from, g * c->ci + i, to);
            else
                fill_interleaved(c, image, from, g * c->ci, to);
        }
}

/* A unit is a line of the output. */
static void lines_run(const struct heddle_dnn *o, const void *const *in, void *const *out,
                      size_t part, size_t nparts, void *scratch)
{
    const struct conv *c = (const struct conv *)(const void *)o;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    char *left = scratch;
    const float **a = (const float **)(void *)dnn_take(&left, c->ntaps * DNN_MAX_MR * 2);
    float *lines = dnn_take(&left, c->nlines * c->line);
    float *planar = c->is_planar ? dnn_take(&left, 0) : lines;
    const struct lines_rows rows = {c, lines};

    for (size_t u = r.first; u < r.last; u++) {
        const size_t n = u / c->oh, y = u % c->oh;
        const float *image = (const float *)in[0] + n * c->d.ci * c->d.h * c->d.w;

        for (size_t g = 0; g < c->d.groups; g++) {
            fill(c, image, y, g, planar);
            if (c->is_planar)
                o->isa->transpose(planar, c->line, lines, c->deep, c->nlines, c->line);
            for (size_t i = 0; i < c->p.count; i++) {
                const size_t at[4] = {n, g, i, y * c->ow};
                struct dnn_strip s = heddle_dnn_conv_strip(c, in, out, at, c->ow);

                s.rows = lines_rows;
                s.arg = &rows;
                heddle_dnn_strip(&s, a);
            }
        }
    }
}

const struct dnn_kind heddle_dnn_conv_lines = {"conv", lines_run};

/* --- depthwise ---------------------------------------------------------------- */

static void depthwise_run(const struct heddle_dnn *o, const void *const *in, void *const *out,
                          size_t part, size_t nparts, void *scratch)
{
    const struct conv *c = (const struct conv *)(const void *)o;
    const struct dnn_conv *d = &c->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    const float **tap = scratch;
    struct dnn_window w = {.tap = tap,
                           .ntaps = d->kh * d->kw,
                           .n = c->ow,
                           .c = d->ci,
                           .w = o->weights->data,
                           .ldw = d->ci,
                           .bias = c->has_bias ? o->weights->data + c->at_bias : NULL,
                           .ldout = d->co,
                           .ldres = d->co};

    w.is_clamped = heddle_dnn_clamp(d->act, &w.lo, &w.hi);
    for (size_t u = r.first; u < r.last; u++) {
        const size_t n = u / c->oh, y = u % c->oh;
        const float *image = (const float *)in[0] + n * d->h * d->w * d->ci;

        for (size_t t = 0; t < w.ntaps; t++) {
            const size_t at[2] = {y * d->stride_h + t / d->kw * d->dilation_h,
                                  t % d->kw * d->dilation_w};

            direct_run_of(c, image, at, c->ow, tap + t * c->ow);
        }
        w.out = (float *)out[0] + u * c->ow * d->co;
        w.res = d->has_residual && in[1] != NULL ? (const float *)in[1] + u * c->ow * d->co : NULL;
        o->isa->depthwise(&w);
        if (!w.is_clamped && d->act.fn != DNN_COPY)
            o->isa->map1[d->act.fn](d->act.p, d->act.q, w.out, w.out, c->ow * d->co);
    }
}

const struct dnn_kind heddle_dnn_conv_depthwise = {"conv", depthwise_run};
