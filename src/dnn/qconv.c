/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qconv: convolutions of images of bytes, channels innermost.
 *
 * Rows      a pixel of the image is a row of as many bytes as there are channels, and is read where
 *           it is; outside of the image a row of zero points is read. Where the channels are no
 *           multiple of four, the window of a pixel is copied to one row first.
 * Zero      sum (x - zero) w = sum x w - zero sum w, and the second sum is known beforehand. Signed
 *           bytes become unsigned ones by + 128 while they are read.
 * A unit    is Q_BLOCK pixels in one panel of Q_COLS columns, panels first: the panel stays in the
 *           second cache.
 */
#include <string.h>

#include "base/assert.h"
#include "dnn/object.h"
#include "dnn/qtile.h"

enum { Q_BLOCK = 8 * Q_ROWS };

struct qconv {
    struct heddle_dnn o;
    struct dnn_qconv d;
    const struct q_isa *q;
    size_t oh, ow, npanels, nblocks;
    size_t ntaps, quads; /* of a row: 1 tap where windows are copied */
    bool is_copied;
    size_t at_offset, at_factor, at_outside; /* in the weights, in floats */
};

static const int8_t *panel_of(const struct qconv *c, size_t i)
{
    return (const int8_t *)(const void *)c->o.weights->data + i * c->ntaps * c->quads * 4 * Q_COLS;
}

/* --- rows ------------------------------------------------------------------------------- */

/* The rows of a block of pixels: groups of Q_ROWS, each with all taps. */
struct block {
    size_t image, first, n;
    const uint8_t **a;
    uint8_t *room; /* copied rows */
};

/* Addresses of row `row` of the block: output pixel (y, x). */
static void row_direct(const struct qconv *c, const uint8_t *image, size_t y, size_t x,
                       const uint8_t **a)
{
    const struct dnn_qconv *d = &c->d;
    const uint8_t *outside = (const uint8_t *)(c->o.weights->data + c->at_outside);

    y = y * d->stride_h - d->pad_top; /* wraps below 0 */
    x = x * d->stride_w - d->pad_left;
    for (size_t ky = 0; ky < d->kh; ky++)
        for (size_t kx = 0; kx < d->kw; kx++, a += Q_ROWS) {
            const size_t iy = y + ky * d->dilation_h, ix = x + kx * d->dilation_w;

            *a = iy < d->h && ix < d->w ? image + (iy * d->w + ix) * d->ci : outside;
        }
}

static void row_copied(const struct qconv *c, const uint8_t *image, size_t y, size_t x, uint8_t *to)
{
    const struct dnn_qconv *d = &c->d;
    const size_t used = d->kh * d->kw * d->ci;

    y = y * d->stride_h - d->pad_top;
    x = x * d->stride_w - d->pad_left;
    memset(to + used, 0, 4 * c->quads - used);
    for (size_t ky = 0; ky < d->kh; ky++)
        for (size_t kx = 0; kx < d->kw; kx++, to += d->ci) {
            const size_t iy = y + ky * d->dilation_h, ix = x + kx * d->dilation_w;

            if (iy < d->h && ix < d->w)
                memcpy(to, image + (iy * d->w + ix) * d->ci, d->ci);
            else
                memset(to, d->x_zero, d->ci);
        }
}

/* Rows behind the last one are the last one again. */
static void block_rows(const struct qconv *c, const void *in, const struct block *b)
{
    const struct dnn_qconv *d = &c->d;
    const uint8_t *image = (const uint8_t *)in + b->image * d->h * d->w * d->ci;
    size_t y = b->first / c->ow, x = b->first % c->ow;

    for (size_t i = 0; i < dnn_up(b->n, Q_ROWS); i++) {
        const uint8_t **a = b->a + i / Q_ROWS * c->ntaps * Q_ROWS + i % Q_ROWS;

        if (c->is_copied) {
            *a = b->room + (i < b->n ? i : b->n - 1) * 4 * c->quads;
            if (i < b->n)
                row_copied(c, image, y, x, b->room + i * 4 * c->quads);
        } else {
            row_direct(c, image, y, x, a);
        }
        if (i + 1 < b->n && ++x == c->ow) {
            x = 0;
            y++;
        }
    }
}

/* --- running -------------------------------------------------------------------------------- */

static size_t out_bytes(const struct dnn_qconv *d)
{
    return d->out == DNN_S32 ? 4 : 1;
}

static void run_panel(const struct qconv *c, const struct block *b, size_t panel, char *y)
{
    const struct dnn_qconv *d = &c->d;
    const size_t col = panel * Q_COLS, ncols = dnn_min(Q_COLS, d->co - col);
    const struct q_end e = {
        .offset = (const int32_t *)(const void *)(c->o.weights->data + c->at_offset) + col,
        .factor = d->out == DNN_S32
                      ? NULL
                      : (const double *)(const void *)(c->o.weights->data + c->at_factor) + col,
        .zero = d->y_zero,
        .low = d->low,
        .high = d->high};
    int32_t sums[Q_ROWS * Q_COLS];
    struct q_tile t = {.ntaps = c->ntaps,
                       .quads = c->quads,
                       .flip = d->in == DNN_S8 ? 0x80808080u : 0,
                       .b = panel_of(c, panel)};

    for (size_t i = 0; i < b->n; i += Q_ROWS) {
        t.a = b->a + i * c->ntaps;
        c->q->tile(&t, sums);
        for (size_t k = 0; k < dnn_min(Q_ROWS, b->n - i); k++)
            c->q->end(&e, sums + k * Q_COLS, y + ((i + k) * d->co + col) * out_bytes(d), ncols);
    }
}

static void run(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch)
{
    const struct qconv *c = (const struct qconv *)(const void *)o;
    const struct dnn_qconv *d = &c->d;
    const size_t npixels = c->oh * c->ow;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    struct block b = {.a = scratch,
                      .room = (uint8_t *)scratch +
                              dnn_up(c->ntaps * Q_BLOCK * sizeof(const uint8_t *), DNN_ALIGN)};

    for (size_t u = r.first; u < r.last; u++) {
        const size_t at = u / c->npanels;

        if (u == r.first || u % c->npanels == 0) {
            b.image = at / c->nblocks;
            b.first = at % c->nblocks * Q_BLOCK;
            b.n = dnn_min(Q_BLOCK, npixels - b.first);
            block_rows(c, in[0], &b);
        }
        run_panel(c, &b, u % c->npanels,
                  (char *)out[0] + (b.image * npixels + b.first) * d->co * out_bytes(d));
    }
}

static const struct dnn_kind kind = {"qconv", run};

/* --- creating --------------------------------------------------------------------------------- */

static heddle_status check(const struct dnn_ask *ask, struct dnn_qconv *d, const int8_t *weights,
                           const double *factor)
{
    d->stride_h = dnn_or_one(d->stride_h);
    d->stride_w = dnn_or_one(d->stride_w);
    d->dilation_h = dnn_or_one(d->dilation_h);
    d->dilation_w = dnn_or_one(d->dilation_w);
    if (d->ci == 0 || d->co == 0 || weights == NULL || d->in == DNN_S32 ||
        (d->out != DNN_S32 && factor == NULL))
        return DNN_WHY(ask, HEDDLE_EINVAL, "qconv: channels, weights or factors are missing");
    if (!dnn_fits(d->ci + 4, d->kh, d->kw, 1) || d->ci * d->kh * d->kw > 65536 ||
        !dnn_fits(d->n, d->h, d->w, d->ci) || !dnn_fits(d->co + Q_COLS, d->ci + 4, d->kh, d->kw))
        return DNN_WHY(ask, HEDDLE_EOVERFLOW,
                       "qconv: its sizes do not fit, or a sum has more than "
                       "65536 products");
    return HEDDLE_OK;
}

static void pack_column(const struct qconv *c, const int8_t *weights, size_t co, int32_t *sum)
{
    const struct dnn_qconv *d = &c->d;
    int8_t *to = (int8_t *)(uintptr_t)panel_of(c, co / Q_COLS) + co % Q_COLS * 4;

    *sum = 0;
    for (size_t t = 0; t < d->kh * d->kw; t++)
        for (size_t ci = 0; ci < d->ci; ci++) {
            const int8_t w = weights[co * d->w_co + ci * d->w_ci + t * d->w_tap];
            const size_t k = c->is_copied ? t * d->ci + ci : t * 4 * c->quads + ci;

            to[k / 4 * 4 * Q_COLS + k % 4] = w;
            *sum += w;
        }
}

static heddle_status pack(struct qconv *c, const struct dnn_ask *ask, const int8_t *weights,
                          const int32_t *bias, const double *factor)
{
    const struct dnn_qconv *d = &c->d;
    const size_t cols = c->npanels * Q_COLS, panels = c->ntaps * c->quads * cols;
    const size_t key[4] = {0};
    const int zero = d->x_zero + (d->in == DNN_S8 ? 128 : 0);
    int32_t *offset;
    double *factors;
    bool is_new;

    c->at_offset = panels; /* four bytes each */
    c->at_factor = dnn_up(c->at_offset + cols, 16);
    c->at_outside = c->at_factor + 2 * cols;
    HEDDLE_TRY(heddle_dnn_get_weights(&c->o, ask, key, c->at_outside + d->ci / 4 + 1, &is_new));
    memset(c->o.weights->data, 0, c->o.weights->bytes);
    offset = (int32_t *)(void *)(c->o.weights->data + c->at_offset);
    factors = (double *)(void *)(c->o.weights->data + c->at_factor);
    memset(c->o.weights->data + c->at_outside, d->x_zero, d->ci);
    for (size_t co = 0; co < d->co; co++) {
        int32_t sum;

        pack_column(c, weights, co, &sum);
        offset[co] = (bias != NULL ? bias[co] : 0) - zero * sum;
        factors[co] = factor != NULL ? factor[co] : 0;
    }
    return HEDDLE_OK;
}

heddle_status heddle_dnn_create_qconv(const struct dnn_qconv *desc, const int8_t *weights,
                                      const int32_t *bias, const double *factor,
                                      const struct dnn_make *make, struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_qconv d;
    struct qconv *c;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    ask.make.share = NULL; /* factors and offsets are packed with the weights */
    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_qconv, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = check(&ask, &d, weights, factor);
    if (st == HEDDLE_OK)
        st = heddle_dnn_new(&ask, &kind, sizeof(*c), &o);
    if (st != HEDDLE_OK)
        return st;
    c = (struct qconv *)(void *)o;
    c->d = d;
    c->q = heddle_dnn_q_isa(o->isa->name);
    c->oh = heddle_dnn_conv_out(d.h, d.kh, d.stride_h, d.dilation_h, d.pad_top, d.pad_bottom);
    c->ow = heddle_dnn_conv_out(d.w, d.kw, d.stride_w, d.dilation_w, d.pad_left, d.pad_right);
    c->is_copied = d.ci % 4 != 0;
    c->ntaps = c->is_copied ? 1 : d.kh * d.kw;
    c->quads = ((c->is_copied ? d.kh * d.kw * d.ci : d.ci) + 3) / 4;
    c->npanels = (d.co + Q_COLS - 1) / Q_COLS;
    c->nblocks = (c->oh * c->ow + Q_BLOCK - 1) / Q_BLOCK;
    o->nparts = d.n * c->nblocks * c->npanels;
    o->scratch = dnn_up(c->ntaps * Q_BLOCK * sizeof(void *), DNN_ALIGN) +
                 (c->is_copied ? dnn_up(Q_BLOCK * 4 * c->quads, DNN_ALIGN) : 0);
    o->flops = 2.0 * (double)(d.n * c->oh * c->ow) * (double)d.co * (double)(d.ci * d.kh * d.kw);
    o->moved = (double)(d.n * d.h * d.w * d.ci) +
               (double)(d.n * c->oh * c->ow * d.co * out_bytes(&d)) +
               (double)(d.co * d.ci * d.kh * d.kw);
    st =
        c->nblocks > 0 || d.n == 0
            ? pack(c, &ask, weights, bias, factor)
            : DNN_WHY(&ask, HEDDLE_EINVAL, "qconv: a window of %zu x %zu does not fit", d.kh, d.kw);
    if (st != HEDDLE_OK) {
        heddle_dnn_destroy(o);
        return st;
    }
    *out = o;
    return HEDDLE_OK;
}
