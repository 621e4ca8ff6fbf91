/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conv_transpose: the transpose of a convolution: each element of the data adds a window of
 * weights to the result.
 *
 * Operands  X [n, c, d...], W [c, m/g, k...], B [m] (optional); Y [n, m, e...].
 * Size      e = stride (d - 1) + output_padding + reach - pads; or `output_shape` says it, and the
 *           pads follow.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "nn/op/step.h"
#include "nn/op/window.h"

/* Attributes that a plain window has not. */
struct transpose {
    struct nn_window w; /* w.in: of X; w.out: of Y */
    size_t group;
};

static heddle_status read_list(struct nn_call *c, const char *name, int nd, int64_t absent,
                               int64_t *out)
{
    size_t n;
    const int64_t *v = heddle_nn_ints(c, name, &n);

    if (v != NULL && n != (size_t)nd)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' has %zu numbers for %d dimensions", name, n,
                              nd);
    for (int d = 0; d < nd; d++) {
        out[d] = v != NULL ? v[d] : absent;
        if (out[d] < 0 || out[d] > INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' has %lld", name, (long long)out[d]);
    }
    return HEDDLE_OK;
}

/* The size along d from what is left out at both ends, or the other way round. */
static void settle(struct nn_call *c, struct nn_window *w, int d, int64_t more, int64_t said)
{
    const bool is_upper = heddle_nn_is_text(c, "auto_pad", "NOTSET", "SAME_UPPER"),
               is_lower = heddle_nn_is_text(c, "auto_pad", "NOTSET", "SAME_LOWER");
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    const int64_t full = (w->in[d] - 1) * w->stride[d] + more + reach;
    int64_t pad;

    if (w->in[d] < 0) {
        w->out[d] = said > 0 ? said : NN_UNKNOWN;
        return;
    }
    if (said == 0 && !is_upper && !is_lower) {
        w->out[d] = full - w->before[d] - w->after[d];
        return;
    }
    w->out[d] = said > 0 ? said : w->in[d] * w->stride[d];
    pad = full - w->out[d];
    pad = pad < 0 ? 0 : pad;
    w->before[d] = is_upper ? pad / 2 : pad - pad / 2;
    w->after[d] = pad - w->before[d];
}

static heddle_status read_window(struct nn_call *c, struct transpose *t)
{
    const struct nn_shape *x = &c->in[0].shape, *k = &c->in[1].shape;
    int64_t pads[2 * NN_WINDOW], more[NN_WINDOW], said[NN_WINDOW];
    struct nn_window *w = &t->w;

    w->nd = x->rank - 2;
    HEDDLE_TRY(read_list(c, "strides", w->nd, 1, w->stride));
    HEDDLE_TRY(read_list(c, "dilations", w->nd, 1, w->dilation));
    HEDDLE_TRY(read_list(c, "pads", 2 * w->nd, 0, pads));
    HEDDLE_TRY(read_list(c, "output_padding", w->nd, 0, more));
    HEDDLE_TRY(read_list(c, "output_shape", w->nd, 0, said));
    for (int d = 0; d < w->nd; d++) {
        w->in[d] = x->dim[d + 2];
        w->kernel[d] = k->dim[d + 2];
        w->before[d] = pads[d];
        w->after[d] = pads[d + w->nd];
        if (w->kernel[d] == 0 || w->stride[d] == 0 || w->dilation[d] == 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a window, step or dilation is 0");
        if (w->kernel[d] < 0) {
            w->out[d] = NN_UNKNOWN;
            continue;
        }
        settle(c, w, d, more[d], said[d]);
        if (w->in[d] >= 0 && w->out[d] <= 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "dimension %d of the result is %lld", d + 2,
                                  (long long)w->out[d]);
    }
    return HEDDLE_OK;
}

static heddle_status transpose_read(struct nn_call *c, struct transpose *t)
{
    const struct nn_shape *x = &c->in[0].shape, *k = &c->in[1].shape;
    const int64_t group = heddle_nn_int(c, "group", 1);

    if (x->rank < 3 || x->rank != k->rank || group < 1 ||
        (x->dim[1] >= 0 && k->dim[0] >= 0 && (x->dim[1] != k->dim[0] || x->dim[1] % group != 0)))
        return heddle_nn_fail(
            c, HEDDLE_EINVAL, "data of shape %s and weights of shape %s in %lld groups",
            heddle_nn_shape_text(x).text, heddle_nn_shape_text(k).text, (long long)group);
    t->group = (size_t)group;
    return read_window(c, t);
}

static heddle_status transpose_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = c->in[0].shape.rank};
    struct transpose t = {.group = 0};

    if (c->is_rule && (c->in[0].shape.rank < 0 || c->in[1].shape.rank < 0)) {
        c->out[0] = heddle_nn_tensor(c->in[0].type, &(struct nn_shape){.rank = -1});
        return HEDDLE_OK;
    }
    HEDDLE_TRY(transpose_read(c, &t));
    out.dim[0] = c->in[0].shape.dim[0];
    out.dim[1] = c->in[1].shape.dim[1] >= 0 ? c->in[1].shape.dim[1] * (int64_t)t.group : NN_UNKNOWN;
    if (heddle_nn_has_in(c, 2) && c->in[2].shape.rank >= 0 && out.dim[1] >= 0 &&
        heddle_nn_is_concrete(&c->in[2].shape) &&
        heddle_nn_count(&c->in[2].shape) != (size_t)out.dim[1])
        return heddle_nn_fail(c, HEDDLE_EINVAL, "a bias of shape %s",
                              heddle_nn_shape_text(&c->in[2].shape).text);
    for (int d = 0; d < t.w.nd; d++)
        out.dim[d + 2] = t.w.out[d];
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static size_t plane_of(const int64_t *dim, int nd)
{
    size_t n = 1;

    for (int d = 0; d < nd; d++)
        n *= (size_t)dim[d];
    return n;
}

/* Where tap t of element e lands in the plane of the result; SIZE_MAX: outside. */
static size_t land(const struct nn_window *w, size_t e, size_t t)
{
    size_t at = 0, step = 1;

    for (int d = w->nd - 1; d >= 0; d--) {
        const int64_t p = (int64_t)(e % (size_t)w->in[d]) * w->stride[d] +
                          (int64_t)(t % (size_t)w->kernel[d]) * w->dilation[d] - w->before[d];

        if (p < 0 || p >= w->out[d])
            return SIZE_MAX;
        at += (size_t)p * step;
        step *= (size_t)w->out[d];
        e /= (size_t)w->in[d];
        t /= (size_t)w->kernel[d];
    }
    return at;
}

/* One plane of the data through one plane of weights. */
static void add_plane(const struct nn_window *w, const double *x, const double *k, double *y)
{
    const size_t nin = plane_of(w->in, w->nd), taps = plane_of(w->kernel, w->nd);

    for (size_t e = 0; e < nin; e++) {
        for (size_t t = 0; t < taps; t++) {
            const size_t at = land(w, e, t);

            if (at != SIZE_MAX)
                y[at] += x[e] * k[t];
        }
    }
}

static heddle_status transpose_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0), *k = heddle_nn_f64(c, 1),
                 *bias = heddle_nn_has_in(c, 2) ? heddle_nn_f64(c, 2) : NULL;
    double *y = heddle_nn_f64_out(c, 0);
    const size_t n = (size_t)c->in[0].shape.dim[0], cin = (size_t)c->in[0].shape.dim[1],
                 cout = (size_t)c->out[0].shape.dim[1], per = (size_t)c->in[1].shape.dim[1];
    struct transpose t = {.group = 0};
    size_t plane, taps, nin;

    if (x == NULL || k == NULL || y == NULL || (bias == NULL && heddle_nn_has_in(c, 2)))
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(transpose_read(c, &t));
    nin = plane_of(t.w.in, t.w.nd);
    plane = plane_of(t.w.out, t.w.nd);
    taps = plane_of(t.w.kernel, t.w.nd);
    for (size_t i = 0; i < n * cout * plane; i++)
        y[i] = bias != NULL ? bias[i / plane % cout] : 0;
    for (size_t r = 0; r < n * cin; r++) {
        const size_t image = r / cin, ch = r % cin, first = ch / (cin / t.group) * per;

        for (size_t m = 0; m < per; m++)
            add_plane(&t.w, x + r * nin, k + (ch * per + m) * taps,
                      y + (image * cout + first + m) * plane);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* --- lines of the result -------------------------------------------------------------------- */

/* A line of the result is a sum over the lines ky of the window: for each there is one line of the
 * data at most, whose product with the weights of ky has what each of its pixels adds to kw pixels
 * of the result. No product is computed twice, so a piece is some lines. */
struct lines {
    size_t n, cin, cout, in[2], out[2], kernel[2];
    int64_t stride[2], dilation[2], before[2];
    bool is_inner, is_inner_in; /* channels of the result and of the data innermost */
    int bias_in;                /* the operand, or -1 */
    size_t inner;               /* scratch of a product, rounded up */
    struct heddle_dnn *line[];  /* by ky: pixels x (kx, channels of the result) */
};

static size_t lines_room(size_t floats)
{
    return (floats * sizeof(float) + 63) / 64 * 64;
}

static size_t lines_scratch(const void *state, size_t nparts)
{
    const struct lines *l = state;

    (void)nparts;
    return l->inner + lines_room(l->in[1] * l->kernel[1] * l->cout) +
           lines_room(l->out[1] * l->cout);
}

/* Adds what the pixels of a line of the data give to a line of the result. */
static void lines_add(const struct lines *l, const float *product, float *sum)
{
    for (size_t x = 0; x < l->in[1]; x++)
        for (size_t k = 0; k < l->kernel[1]; k++) {
            const int64_t at =
                (int64_t)x * l->stride[1] + (int64_t)k * l->dilation[1] - l->before[1];
            const float *from = product + (x * l->kernel[1] + k) * l->cout;
            float *to = sum + at * (int64_t)l->cout;

            for (size_t i = 0; at >= 0 && at < (int64_t)l->out[1] && i < l->cout; i++)
                to[i] += from[i];
        }
}

/* Line y of an image, channels innermost. */
static void lines_one(const struct lines *l, const float *image, const float *bias, size_t y,
                      char *scratch, float *sum)
{
    float *product = (float *)(void *)(scratch + l->inner);
    void *const out[] = {product};

    for (size_t i = 0; i < l->out[1] * l->cout; i++)
        sum[i] = bias != NULL ? bias[i % l->cout] : 0;
    for (size_t k = 0; k < l->kernel[0]; k++) {
        const int64_t at = (int64_t)y + l->before[0] - (int64_t)k * l->dilation[0];
        const void *in[DNN_MAX_IN] = {NULL};

        if (at < 0 || at % l->stride[0] != 0 || at / l->stride[0] >= (int64_t)l->in[0])
            continue;
        in[0] = image + (size_t)(at / l->stride[0]) * l->in[1] * (l->is_inner_in ? l->cin : 1);
        heddle_dnn_run(l->line[k], in, out, 0, 1, scratch);
        lines_add(l, product, sum);
    }
}

static heddle_status lines_run(const void *state, const struct nn_args *a, size_t part,
                               size_t nparts, void *scratch)
{
    const struct lines *l = state;
    const size_t nlines = l->n * l->out[0], width = l->out[1];
    const float *bias = l->bias_in < 0 ? NULL : a->in[l->bias_in];
    float *own = (float *)(void *)((char *)scratch + l->inner +
                                   lines_room(l->in[1] * l->kernel[1] * l->cout));

    for (size_t u = nlines * part / nparts; u < nlines * (part + 1) / nparts; u++) {
        const size_t image = u / l->out[0], y = u % l->out[0];
        const float *x = (const float *)a->in[0] + image * l->cin * l->in[0] * l->in[1];
        float *out = (float *)a->out[0] + image * l->cout * l->out[0] * width;

        if (l->is_inner) {
            lines_one(l, x, bias, y, scratch, out + y * width * l->cout);
            continue;
        }
        lines_one(l, x, bias, y, scratch, own);
        for (size_t i = 0; i < l->cout; i++)
            for (size_t e = 0; e < width; e++)
                out[(i * l->out[0] + y) * width + e] = own[e * l->cout + i];
    }
    return HEDDLE_OK;
}

static size_t lines_bytes(size_t nlines)
{
    return sizeof(struct lines) + nlines * sizeof(struct heddle_dnn *);
}

static void lines_destroy(const struct heddle_allocator *a, void *state)
{
    struct lines *l = state;

    for (size_t k = 0; k < l->kernel[0]; k++)
        heddle_dnn_destroy(l->line[k]);
    heddle_free(a, l, lines_bytes(l->kernel[0]));
}

/* The products of all lines of the window; `w` has room for the weights of one. */
static heddle_status lines_products(struct nn_call *c, struct lines *l, float *w)
{
    const struct dnn_make make = heddle_nn_make(c);
    const struct dnn_matmul d = {.size = sizeof(d),
                                 .m = l->in[1],
                                 .n = l->kernel[1] * l->cout,
                                 .k = l->cin,
                                 .trans_a = !l->is_inner_in,
                                 .lda = l->is_inner_in ? 0 : l->in[0] * l->in[1],
                                 .is_b_constant = true};
    const float *all = c->in[1].data;

    for (size_t ky = 0; ky < l->kernel[0]; ky++) {
        size_t bytes;

        for (size_t i = 0; i < l->cin * l->cout; i++)
            for (size_t kx = 0; kx < l->kernel[1]; kx++)
                w[(i / l->cout * l->kernel[1] + kx) * l->cout + i % l->cout] =
                    all[(i * l->kernel[0] + ky) * l->kernel[1] + kx];
        HEDDLE_TRY(heddle_dnn_create_matmul(&d, w, NULL, &make, &l->line[ky]));
        bytes = heddle_dnn_scratch_bytes(l->line[ky], 1);
        bytes = (bytes + 63) / 64 * 64;
        l->inner = bytes > l->inner ? bytes : l->inner;
    }
    return HEDDLE_OK;
}

static void lines_sizes(const struct nn_call *c, const struct nn_window *w, struct lines *l)
{
    const int first = 2 - w->nd;

    l->n = (size_t)c->in[0].shape.dim[0];
    l->cin = (size_t)c->in[0].shape.dim[1];
    l->cout = (size_t)c->out[0].shape.dim[1];
    l->is_inner = c->is_nhwc;
    l->is_inner_in = c->is_nhwc && !c->is_plain_in;
    l->bias_in = heddle_nn_has_in(c, 2) ? 2 : -1;
    l->in[0] = l->out[0] = l->kernel[0] = 1; /* of one dimension: a line of an image */
    l->stride[0] = l->dilation[0] = 1;
    for (int d = 0; d < w->nd; d++) {
        l->in[first + d] = (size_t)w->in[d];
        l->out[first + d] = (size_t)w->out[d];
        l->kernel[first + d] = (size_t)w->kernel[d];
        l->stride[first + d] = w->stride[d];
        l->dilation[first + d] = w->dilation[d];
        l->before[first + d] = w->before[d];
    }
}

static heddle_status transpose_fast(struct nn_call *c, struct nn_step *out)
{
    struct transpose t = {.group = 0};
    struct lines *l;
    heddle_status st = HEDDLE_ENOMEM;
    size_t nlines, bytes;
    float *w;

    if (!heddle_nn_is_f32(c) || c->in[1].data == NULL ||
        (heddle_nn_has_in(c, 2) && c->in[2].data == NULL))
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(transpose_read(c, &t));
    if (t.group > 1 || t.w.nd > 2 || heddle_nn_count(&c->in[0].shape) == 0)
        return HEDDLE_ENOSYS;
    nlines = t.w.nd == 2 ? (size_t)t.w.kernel[0] : 1;
    l = heddle_nn_alloc(c, lines_bytes(nlines));
    if (l == NULL)
        return HEDDLE_ENOMEM;
    memset(l, 0, lines_bytes(nlines));
    lines_sizes(c, &t.w, l);
    bytes = l->cin * l->kernel[1] * l->cout * sizeof(*w);
    w = heddle_nn_alloc(c, bytes);
    if (w != NULL) {
        st = lines_products(c, l, w);
        heddle_free(c->run->alloc, w, bytes);
    }
    if (st != HEDDLE_OK) {
        lines_destroy(c->run->alloc, l);
        return st;
    }
    *out = (struct nn_step){.state = l,
                            .parts = l->n * l->out[0],
                            .scratch = lines_scratch,
                            .run = lines_run,
                            .destroy = lines_destroy};
    return HEDDLE_OK;
}

static struct heddle_cost transpose_cost(const struct nn_call *c)
{
    const struct nn_shape *k = &c->in[1].shape;

    return (struct heddle_cost){.flops = 2 * (double)heddle_nn_count(&c->in[0].shape) *
                                         (double)heddle_nn_count_range(k, 1, k->rank),
                                .bytes = (double)heddle_nn_bytes(&c->in[0]) +
                                         (double)heddle_nn_bytes(&c->in[1]) +
                                         (double)heddle_nn_bytes(&c->out[0])};
}

static const struct nn_attr_rule attrs[] = {{"auto_pad", NN_STRING, false},
                                            {"dilations", NN_INTS, false},
                                            {"group", NN_INT, false},
                                            {"kernel_shape", NN_INTS, false},
                                            {"output_padding", NN_INTS, false},
                                            {"output_shape", NN_INTS, false},
                                            {"pads", NN_INTS, false},
                                            {"strides", NN_INTS, false},
                                            {0}};

const struct nn_op heddle_nn_op_conv_transpose[] = {
    {.name = "ConvTranspose",
     .since = 1,
     .nin_min = 2,
     .nin_max = 3,
     .flags = NN_IMAGE | NN_INNER,
     .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT},
     .same = 7,
     .attrs = attrs,
     .shape = transpose_shape,
     .ref = transpose_ref,
     .fast = transpose_fast,
     .cost = transpose_cost},
    {0},
};
