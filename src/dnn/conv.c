/* SPDX-License-Identifier: BSD-3-Clause */
/* conv: convolutions; checks, choice of the way, packing. conv.h says what the ways are. */
#include "dnn/conv.h"

#include <string.h>

/* Pixels of a block: a unit of one panel, a unit of all; and when the latter is better. */
enum { MANY_CHANNELS = 16, PIXELS = 12, PIXELS_OF_ALL = 48, FEW_WEIGHTS = 128 * 1024 };

size_t heddle_dnn_conv_out(size_t in, size_t window, size_t stride, size_t dilation,
                           size_t pad_before, size_t pad_behind)
{
    size_t all, span;

    if (window == 0 || !heddle_add(&all, in, pad_before) || !heddle_add(&all, all, pad_behind) ||
        !heddle_mul(&span, window - 1, dnn_or_one(dilation)) || span >= all)
        return 0;
    return (all - span - 1) / dnn_or_one(stride) + 1;
}

struct dnn_strip heddle_dnn_conv_strip(const struct conv *c, const void *const *in,
                                       void *const *out, const size_t at[4], size_t m)
{
    const size_t n = at[0], g = at[1], i = at[2], pixel = at[3];
    const size_t channel = g * c->co + i * c->p.width;
    const size_t where = conv_out_at(c, n, channel, pixel);
    const bool is_last = c->d.out_layout == DNN_NHWC;
    const float *w = c->o.weights->data;
    const float *res = c->d.has_residual ? in[1] : NULL;
    const size_t nv = dnn_panel_nv(c->o.isa, &c->p, i);

    return (struct dnn_strip){
        .isa = c->o.isa,
        .nv = nv,
        .ncols = dnn_min(c->p.width, c->co - i * c->p.width),
        .m = m,
        .ntaps = c->ntaps,
        .k = c->k,
        .b = w + g * dnn_panels_floats(c->o.isa, &c->p) + i * c->p.width * c->p.k,
        .ldb = nv * c->o.isa->lanes,
        .c = (float *)out[0] + where,
        .ldc = is_last ? c->d.co : 1,
        .bias = c->has_bias ? w + c->at_bias + channel : NULL,
        .res = res != NULL ? res + where : NULL,
        .ldres = is_last ? c->d.co : 1,
        .act = c->d.act,
        .col = is_last ? 0 : c->npixels,
    };
}

/* --- the description --------------------------------------------------------- */

static heddle_status defaults(const struct dnn_ask *ask, struct dnn_conv *d)
{
    d->groups = dnn_or_one(d->groups);
    d->stride_h = dnn_or_one(d->stride_h);
    d->stride_w = dnn_or_one(d->stride_w);
    d->dilation_h = dnn_or_one(d->dilation_h);
    d->dilation_w = dnn_or_one(d->dilation_w);
    if (d->ci == 0 || d->co == 0 || d->ci % d->groups != 0 || d->co % d->groups != 0)
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "conv: %zu input and %zu output channels are no multiples of %zu groups",
                       d->ci, d->co, d->groups);
    if (d->act.fn >= DNN_ADD)
        return DNN_WHY(ask, HEDDLE_EINVAL, "conv: the activation is no function of one number");
    return HEDDLE_OK;
}

static heddle_status check(const struct dnn_ask *ask, struct conv *c)
{
    const struct dnn_conv *d = &c->d;
    size_t padded;

    c->oh = heddle_dnn_conv_out(d->h, d->kh, d->stride_h, d->dilation_h, d->pad_top, d->pad_bottom);
    c->ow = heddle_dnn_conv_out(d->w, d->kw, d->stride_w, d->dilation_w, d->pad_left, d->pad_right);
    if (c->oh == 0 || c->ow == 0)
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "conv: a window of %zu x %zu does not fit into an image of %zu x %zu with "
                       "its padding",
                       d->kh, d->kw, d->h, d->w);
    if (!heddle_add(&padded, d->w, d->pad_left) || !heddle_add(&padded, padded, d->pad_right) ||
        !dnn_fits(d->n, d->ci, d->h, d->w) || !dnn_fits(d->n, d->co + 256, c->oh + 1, c->ow + 1) ||
        !dnn_fits(d->co + 256, d->ci + 256, d->kh, d->kw) ||
        !dnn_fits(padded, d->ci + 16, d->kh, 1) || !dnn_fits(c->ow, d->kh, d->kw, DNN_MAX_MR))
        return DNN_WHY(ask, HEDDLE_EOVERFLOW, "conv: its sizes do not fit into memory");
    return HEDDLE_OK;
}

/* What the way needs to know, and the units of its pieces. */
static void plan(struct conv *c)
{
    const struct dnn_conv *d = &c->d;
    const size_t padded = d->pad_left + d->w + d->pad_right, ntaps = d->kh * d->kw;

    c->npixels = c->oh * c->ow;
    c->ci = d->ci / d->groups;
    c->co = d->co / d->groups;
    c->p = heddle_dnn_panels(c->o.isa, c->ci * ntaps, c->co);
    c->ntaps = ntaps;
    c->k = c->ci;
    if (d->in_layout == DNN_NHWC && d->out_layout == DNN_NHWC && c->ci == 1 && c->co == 1) {
        c->way = CONV_DEPTHWISE;
        c->o.nparts = d->n * c->oh;
        c->o.scratch = dnn_room(ntaps * c->ow * 2);
        return;
    }
    if (d->in_layout == DNN_NHWC && (d->groups > 1 || c->ci >= MANY_CHANNELS)) {
        c->way = CONV_DIRECT;
        c->is_dense = ntaps == 1 && d->groups == 1 && c->npixels == d->h * d->w &&
                      d->pad_top + d->pad_left == 0;
        c->is_by_pixels = c->p.count > 1 && c->npixels > 8 * PIXELS_OF_ALL &&
                          dnn_panels_floats(c->o.isa, &c->p) <= FEW_WEIGHTS;
        c->block = c->is_by_pixels ? PIXELS_OF_ALL : PIXELS;
        c->nblocks = (c->npixels + c->block - 1) / c->block;
        c->o.nparts = d->n * d->groups * (c->is_by_pixels ? 1 : c->p.count) * c->nblocks;
        c->o.scratch = dnn_room(ntaps * DNN_MAX_MR * 2);
        return;
    }
    c->way = CONV_LINES;
    c->is_planar = d->in_layout == DNN_NCHW && c->ci < MANY_CHANNELS;
    c->line = c->is_planar ? padded : padded * c->ci;
    c->nlines = c->is_planar ? c->ci * d->kh : d->kh;
    c->deep = c->is_planar ? c->nlines : c->ci;
    /* What of a window is in one piece: a line of it, when no column is left out. */
    c->k = d->dilation_w == 1 ? d->kw * c->deep : c->deep;
    c->ntaps = c->ci * ntaps / c->k;
    c->o.nparts = d->n * c->oh;
    c->o.scratch = dnn_room(c->ntaps * DNN_MAX_MR * 2) +
                   (c->is_planar ? 2 : 1) * dnn_room(c->nlines * c->line);
}

/* --- weights ------------------------------------------------------------------ */

/* Some output channels, each a row of the product: the order in which taps come by. Planar: columns
 * of the window, then channels, then lines; else lines, columns, channels. */
static void order(const struct conv *c, const float *w, size_t nout, float *out)
{
    const size_t nk = c->d.kh * c->d.kw, kw = c->d.kw;

    for (size_t o = 0; o < nout; o++, w += c->ci * nk, out += c->ci * nk) {
        if (!c->is_planar)
            c->o.isa->transpose(w, nk, out, c->ci, c->ci, nk);
        for (size_t i = 0; i < c->ci && c->is_planar; i++)
            for (size_t t = 0; t < nk; t++)
                out[(t % kw * c->ci + i) * c->d.kh + t / kw] = w[i * nk + t];
    }
}

/* Panel by panel, so that what is ordered stays in the cache; of one tap, it is in order. */
static heddle_status pack_panels(struct conv *c, const struct dnn_ask *ask, const float *w)
{
    const bool is_ordered = c->d.kh * c->d.kw == 1;
    const size_t floats = is_ordered ? 1 : dnn_min(c->p.width, c->co) * c->p.k;
    float *ordered = heddle_alloc_large(c->o.alloc, floats * sizeof(float));

    if (ordered == NULL)
        return DNN_WHY(ask, HEDDLE_ENOMEM, "conv: no memory to pack %zu weights", floats);
    for (size_t g = 0; g < c->d.groups; g++) {
        float *to = c->o.weights->data + g * dnn_panels_floats(c->o.isa, &c->p);

        for (size_t i = 0; i < c->p.count; i++) {
            const size_t first = i * c->p.width, nout = dnn_min(c->p.width, c->co - first);
            const struct dnn_panels one = heddle_dnn_panels(c->o.isa, c->p.k, nout);
            const float *from = w + (g * c->co + first) * c->p.k;

            if (!is_ordered)
                order(c, from, nout, ordered);
            heddle_dnn_pack_panel(c->o.isa, &one, 0, is_ordered ? from : ordered, 1, c->p.k, 1,
                                  to + first * c->p.k);
        }
    }
    heddle_free(c->o.alloc, ordered, floats * sizeof(float));
    return HEDDLE_OK;
}

static heddle_status pack(struct conv *c, const struct dnn_ask *ask, const float *w,
                          const float *bias)
{
    const struct dnn_conv *d = &c->d;
    const size_t nk = d->kh * d->kw;
    const size_t floats =
        c->way == CONV_DEPTHWISE ? nk * d->co : d->groups * dnn_panels_floats(c->o.isa, &c->p);
    const size_t key[4] = {d->ci, d->co, d->kh + d->kw * 65536,
                           d->groups * 16 + c->way * 4 + c->is_planar * 2u + c->has_bias};
    heddle_status st;
    bool is_new;

    c->at_bias = floats;
    c->at_zero = dnn_up(floats + d->co, 16);
    st = heddle_dnn_get_weights(&c->o, ask, key, c->at_zero + d->ci + 16, &is_new);
    if (st != HEDDLE_OK || !is_new)
        return st;
    if (w == NULL)
        return DNN_WHY(ask, HEDDLE_EINVAL, "conv: there are no weights");
    memset(c->o.weights->data + c->at_zero, 0, (d->ci + 16) * sizeof(float));
    if (bias != NULL)
        memcpy(c->o.weights->data + c->at_bias, bias, d->co * sizeof(float));
    if (c->way != CONV_DEPTHWISE)
        return pack_panels(c, ask, w);
    c->o.isa->transpose(w, nk, c->o.weights->data, d->co, d->co, nk);
    return HEDDLE_OK;
}

static const struct dnn_kind *const kinds[] = {
    [CONV_DIRECT] = &heddle_dnn_conv_direct,
    [CONV_LINES] = &heddle_dnn_conv_lines,
    [CONV_DEPTHWISE] = &heddle_dnn_conv_depthwise,
};

static bool is_conv(const struct heddle_dnn *o)
{
    return o != NULL && (o->kind == kinds[0] || o->kind == kinds[1] || o->kind == kinds[2]);
}

heddle_status heddle_dnn_create_conv(const struct dnn_conv *desc, const float *weights,
                                     const float *bias, const struct dnn_make *make,
                                     struct heddle_dnn **out)
{
    struct conv c = {.has_bias = bias != NULL};
    struct heddle_dnn *o = NULL;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_conv, &c.d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = defaults(&ask, &c.d);
    if (st == HEDDLE_OK)
        st = check(&ask, &c);
    if (st != HEDDLE_OK)
        return st;
    c.o.isa = ask.isa;
    if (weights == NULL && is_conv(ask.make.share))
        c.has_bias = ((const struct conv *)(const void *)ask.make.share)->has_bias;
    plan(&c);
    st = heddle_dnn_new(&ask, kinds[c.way], sizeof(c), &o);
    if (st != HEDDLE_OK)
        return st;
    o->nparts = c.o.nparts;
    o->scratch = c.o.scratch;
    o->flops = 2.0 * (double)c.d.n * (double)c.npixels * (double)c.d.co * (double)c.p.k;
    o->moved = 4.0 * ((double)c.d.n * ((double)c.d.ci * (double)c.d.h * (double)c.d.w +
                                       (double)c.d.co * (double)c.npixels) +
                      (double)c.d.co * (double)c.p.k);
    c.o = *o;
    *(struct conv *)(void *)o = c;
    st = pack((struct conv *)(void *)o, &ask, weights, bias);
    if (st != HEDDLE_OK) {
        heddle_dnn_destroy(o);
        return st;
    }
    *out = o;
    return HEDDLE_OK;
}
