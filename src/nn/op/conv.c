/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conv: convolution over any number of dimensions, with groups, strides, dilations and padding.
 *
 * Operands  X [n, c, d...], W [m, c/g, k...], B [m] (optional); Y [n, m, e...].
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "nn/op/step.h"
#include "nn/op/window.h"

/* Fewer channels are as fast outermost: the first image of a network. */
enum { CONV_MANY = 16 };

static heddle_status conv_window(struct nn_call *c, struct nn_window *w)
{
    const struct nn_shape *x = &c->in[0].shape, *k = &c->in[1].shape;
    const int64_t group = heddle_nn_int(c, "group", 1);
    size_t n;
    const int64_t *said = heddle_nn_ints(c, "kernel_shape", &n);

    if (x->rank < 3 || x->rank != k->rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s and weights of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(k).text);
    if (group < 1 || (k->dim[0] >= 0 && k->dim[0] % group != 0) ||
        (x->dim[1] >= 0 && k->dim[1] >= 0 &&
         (x->dim[1] % group != 0 || x->dim[1] / group != k->dim[1])))
        return heddle_nn_fail(
            c, HEDDLE_EINVAL, "data of shape %s and weights of shape %s in %lld groups",
            heddle_nn_shape_text(x).text, heddle_nn_shape_text(k).text, (long long)group);
    w->nd = x->rank - 2;
    for (int d = 0; d < w->nd; d++) {
        w->in[d] = x->dim[d + 2];
        w->kernel[d] = k->dim[d + 2] >= 0                   ? k->dim[d + 2]
                       : said != NULL && n == (size_t)w->nd ? said[d]
                                                            : 1;
        if (said != NULL && (n != (size_t)w->nd || said[d] != w->kernel[d]))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'kernel_shape' is not that of the weights");
    }
    return heddle_nn_window(c, w);
}

heddle_status heddle_nn_conv_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = c->in[0].shape.rank};
    struct nn_window w;

    if (c->is_rule && (c->in[0].shape.rank < 0 || c->in[1].shape.rank < 0)) {
        c->out[0] = heddle_nn_tensor(c->in[0].type, &(struct nn_shape){.rank = -1});
        return HEDDLE_OK;
    }
    HEDDLE_TRY(conv_window(c, &w));
    if (heddle_nn_has_in(c, 2) && c->in[2].shape.rank >= 0 &&
        (c->in[2].shape.rank != 1 ||
         (c->in[2].shape.dim[0] >= 0 && c->in[2].shape.dim[0] != c->in[1].shape.dim[0])))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "a bias of shape %s",
                              heddle_nn_shape_text(&c->in[2].shape).text);
    out.dim[0] = c->in[0].shape.dim[0];
    out.dim[1] = c->in[1].shape.dim[0];
    for (int d = 0; d < w.nd; d++)
        out.dim[d + 2] = w.out[d];
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* The sum of one window: `cin` channels of data x and weights k. */
static double conv_sum(const struct nn_window *w, size_t cin, const int64_t *at, const double *x,
                       const double *k)
{
    size_t taps = 1, plane = 1;
    double sum = 0;

    for (int d = 0; d < w->nd; d++) {
        taps *= (size_t)w->kernel[d];
        plane *= (size_t)w->in[d];
    }
    for (size_t t = 0; t < taps; t++) {
        size_t rest = t, i = 0, step = 1;
        bool is_in = true;

        for (int d = w->nd - 1; d >= 0; d--) {
            const int64_t p = at[d] * w->stride[d] - w->before[d] +
                              (int64_t)(rest % (size_t)w->kernel[d]) * w->dilation[d];

            rest /= (size_t)w->kernel[d];
            is_in &= p >= 0 && p < w->in[d];
            i += is_in ? (size_t)p * step : 0;
            step *= (size_t)w->in[d];
        }
        for (size_t ch = 0; is_in && ch < cin; ch++)
            sum += x[ch * plane + i] * k[ch * taps + t];
    }
    return sum;
}

heddle_status heddle_nn_conv_f64(struct nn_call *c, double **out)
{
    const double *x = heddle_nn_f64(c, 0), *k = heddle_nn_f64(c, 1),
                 *bias = heddle_nn_has_in(c, 2) ? heddle_nn_f64(c, 2) : NULL;
    double *y = heddle_nn_f64_out(c, 0);
    const size_t nimages = (size_t)c->out[0].shape.dim[0], nout = (size_t)c->out[0].shape.dim[1],
                 nin = (size_t)c->in[0].shape.dim[1], cin = (size_t)c->in[1].shape.dim[1],
                 per_group = nout / (size_t)heddle_nn_int(c, "group", 1);
    const size_t plane_in = heddle_nn_count_range(&c->in[0].shape, 2, c->in[0].shape.rank),
                 plane = heddle_nn_count_range(&c->out[0].shape, 2, c->out[0].shape.rank),
                 taps = heddle_nn_count_range(&c->in[1].shape, 2, c->in[1].shape.rank);
    struct nn_window w;

    if (x == NULL || k == NULL || y == NULL || (bias == NULL && heddle_nn_has_in(c, 2)))
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(conv_window(c, &w));
    for (size_t r = 0; r < nimages * nout; r++) {
        const size_t image = r / nout, m = r % nout;
        int64_t at[NN_WINDOW] = {0};

        for (size_t e = 0; e < plane; e++) {
            y[r * plane + e] =
                conv_sum(&w, cin, at, x + (image * nin + m / per_group * cin) * plane_in,
                         k + m * cin * taps) +
                (bias != NULL ? bias[m] : 0);
            for (int d = w.nd - 1; d >= 0 && ++at[d] == w.out[d]; d--)
                at[d] = 0;
        }
    }
    *out = y;
    return HEDDLE_OK;
}

static heddle_status conv_ref(struct nn_call *c)
{
    double *y = NULL;

    HEDDLE_TRY(heddle_nn_conv_f64(c, &y));
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* A description for src/dnn: two dimensions, or one, which is then a row of an image. */
heddle_status heddle_nn_conv_desc(struct nn_call *c, struct dnn_conv *d)
{
    const struct nn_shape *x = &c->in[0].shape, *k = &c->in[1].shape;
    struct nn_window w;

    HEDDLE_TRY(conv_window(c, &w));
    if (w.nd > 2)
        return HEDDLE_ENOSYS;
    for (int i = 0; i < w.nd; i++)
        if (w.before[i] < 0 || w.after[i] < 0)
            return HEDDLE_ENOSYS;
    *d = (struct dnn_conv){.size = sizeof(*d),
                           .n = (size_t)x->dim[0],
                           .ci = (size_t)x->dim[1],
                           .h = w.nd == 2 ? (size_t)w.in[0] : 1,
                           .w = (size_t)w.in[w.nd - 1],
                           .co = (size_t)k->dim[0],
                           .kh = w.nd == 2 ? (size_t)w.kernel[0] : 1,
                           .kw = (size_t)w.kernel[w.nd - 1],
                           .groups = (size_t)heddle_nn_int(c, "group", 1),
                           .stride_w = (size_t)w.stride[w.nd - 1],
                           .dilation_w = (size_t)w.dilation[w.nd - 1],
                           .pad_left = (size_t)w.before[w.nd - 1],
                           .pad_right = (size_t)w.after[w.nd - 1]};
    d->out_layout = c->is_nhwc ? DNN_NHWC : DNN_NCHW;
    d->in_layout = c->is_plain_in ? DNN_NCHW : d->out_layout;
    if (w.nd == 1)
        return HEDDLE_OK;
    d->stride_h = (size_t)w.stride[0];
    d->dilation_h = (size_t)w.dilation[0];
    d->pad_top = (size_t)w.before[0];
    d->pad_bottom = (size_t)w.after[0];
    return HEDDLE_OK;
}

/* --- groups, channels outermost ------------------------------------------------------------ */

/* Groups are fast with the channels innermost alone, so an image goes there and back: the copies
 * cost less than what they save. A piece is some of the images. */
struct grouped {
    struct heddle_dnn *to, *conv, *back, *res; /* of one image; res: NULL without a residual */
    size_t n, in, out;                         /* images; bytes of one */
};

static size_t grouped_room(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t grouped_inner(const struct grouped *g)
{
    const struct heddle_dnn *const all[] = {g->to, g->conv, g->back, g->res};
    size_t most = 0;

    for (size_t i = 0; i < 4; i++) {
        const size_t bytes = all[i] != NULL ? heddle_dnn_scratch_bytes(all[i], 1) : 0;

        most = bytes > most ? bytes : most;
    }
    return grouped_room(most);
}

static size_t grouped_scratch(const void *state, size_t nparts)
{
    const struct grouped *g = state;

    (void)nparts;
    return grouped_inner(g) + grouped_room(g->in) + grouped_room(g->out);
}

static heddle_status grouped_run(const void *state, const struct nn_args *a, size_t part,
                                 size_t nparts, void *scratch)
{
    const struct grouped *g = state;
    char *x = (char *)scratch + grouped_inner(g), *y = x + grouped_room(g->in);

    for (size_t i = g->n * part / nparts; i < g->n * (part + 1) / nparts; i++) {
        const void *const from[] = {(const char *)a->in[0] + i * g->in}, *const image[] = {x, y},
                          *const result[] = {y};
        void *const px[] = {x}, *const py[] = {y}, *const to[] = {(char *)a->out[0] + i * g->out};

        heddle_dnn_run(g->to, from, px, 0, 1, scratch);
        if (g->res != NULL)
            heddle_dnn_run(g->res, (const void *const[]){(const char *)a->in[3] + i * g->out}, py,
                           0, 1, scratch);
        heddle_dnn_run(g->conv, image, py, 0, 1, scratch);
        heddle_dnn_run(g->back, result, to, 0, 1, scratch);
    }
    return HEDDLE_OK;
}

static void grouped_destroy(const struct heddle_allocator *a, void *state)
{
    struct grouped *g = state;

    heddle_dnn_destroy(g->to);
    heddle_dnn_destroy(g->conv);
    heddle_dnn_destroy(g->back);
    heddle_dnn_destroy(g->res);
    heddle_free(a, g, sizeof(*g));
}

static heddle_status grouped_step(struct nn_call *c, heddle_status st, struct grouped *g,
                                  struct nn_step *out)
{
    if (st != HEDDLE_OK) {
        grouped_destroy(c->run->alloc, g);
        return st;
    }
    *out = (struct nn_step){.state = g,
                            .dnn = g->conv,
                            .parts = g->n,
                            .scratch = grouped_scratch,
                            .run = grouped_run,
                            .destroy = grouped_destroy};
    return HEDDLE_OK;
}

/* An image whose elements have `each` bytes, from one order of its dimensions to the other. */
static heddle_status grouped_turn(struct nn_call *c, size_t outer, size_t inner, size_t each,
                                  struct heddle_dnn **out)
{
    const struct dnn_make make = heddle_nn_make(c);
    const struct dnn_transpose d = {
        .size = sizeof(d), .rank = 2, .elem_bytes = each, .dims = {outer, inner}, .perm = {1, 0}};

    return heddle_dnn_create_transpose(&d, &make, out);
}

heddle_status heddle_nn_turned_step(struct nn_call *c, heddle_status st, struct heddle_dnn *conv,
                                    const struct nn_turned *t, struct nn_step *out)
{
    struct grouped *g = st == HEDDLE_OK ? heddle_nn_alloc(c, sizeof(*g)) : NULL;

    if (g == NULL) {
        heddle_dnn_destroy(conv);
        return st == HEDDLE_OK ? HEDDLE_ENOMEM : st;
    }
    *g = (struct grouped){.conv = conv,
                          .n = t->n,
                          .in = t->ci * t->in_pixels * t->in_each,
                          .out = t->co * t->out_pixels * t->out_each};
    st = grouped_turn(c, t->ci, t->in_pixels, t->in_each, &g->to);
    if (st == HEDDLE_OK)
        st = grouped_turn(c, t->out_pixels, t->co, t->out_each, &g->back);
    return grouped_step(c, st, g, out);
}

static heddle_status grouped_fast(struct nn_call *c, struct dnn_conv *d,
                                  const struct nn_conv_more *w, struct nn_step *out)
{
    const struct nn_shape *s = &c->out[0].shape;
    const struct dnn_make make = heddle_nn_make(c);
    const size_t oh = s->rank == 4 ? (size_t)s->dim[2] : 1, ow = (size_t)s->dim[s->rank - 1];
    const struct dnn_reorder to = {sizeof(to), 1, d->ci, d->h, d->w, DNN_NCHW, DNN_NHWC},
                             res = {sizeof(res), 1, d->co, oh, ow, DNN_NCHW, DNN_NHWC},
                             back = {sizeof(back), 1, d->co, oh, ow, DNN_NHWC, DNN_NCHW};
    struct grouped *g = heddle_nn_alloc(c, sizeof(*g));
    heddle_status st;

    if (g == NULL)
        return HEDDLE_ENOMEM;
    *g = (struct grouped){.n = d->n,
                          .in = d->ci * d->h * d->w * sizeof(float),
                          .out = d->co * oh * ow * sizeof(float)};
    d->n = 1;
    d->in_layout = d->out_layout = DNN_NHWC;
    st = heddle_dnn_create_conv(d, w->weights, w->bias, &make, &g->conv);
    if (st == HEDDLE_OK)
        st = heddle_dnn_create_reorder(&to, &make, &g->to);
    if (st == HEDDLE_OK)
        st = heddle_dnn_create_reorder(&back, &make, &g->back);
    if (st == HEDDLE_OK && w->has_residual)
        st = heddle_dnn_create_reorder(&res, &make, &g->res);
    return grouped_step(c, st, g, out);
}

heddle_status heddle_nn_conv_step(struct nn_call *c, const struct nn_conv_more *w,
                                  struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(1);
    struct heddle_dnn *o = NULL;
    struct dnn_conv d;
    heddle_status st;

    HEDDLE_TRY(heddle_nn_conv_desc(c, &d));
    if (c->is_plain_in && (d.groups > 1 || d.ci >= CONV_MANY))
        return HEDDLE_ENOSYS;
    d.has_residual = w->has_residual;
    d.act = w->act;
    if (d.groups > 1 && !c->is_nhwc)
        return grouped_fast(c, &d, w, out);
    in.from[1] = w->has_residual ? 3 : STEP_NONE;
    st = heddle_dnn_create_conv(&d, w->weights, w->bias, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static heddle_status conv_fast(struct nn_call *c, struct nn_step *out)
{
    struct nn_conv_more w = {.weights = c->in[1].data};

    if (!heddle_nn_is_f32(c) || c->in[1].data == NULL ||
        (heddle_nn_has_in(c, 2) && c->in[2].data == NULL))
        return HEDDLE_ENOSYS;
    w.bias = heddle_nn_has_in(c, 2) ? c->in[2].data : NULL;
    return heddle_nn_conv_step(c, &w, out);
}

struct heddle_cost heddle_nn_conv_cost(const struct nn_call *c)
{
    const struct nn_shape *k = &c->in[1].shape;

    return (struct heddle_cost){.flops = 2 * (double)heddle_nn_count(&c->out[0].shape) *
                                         (double)heddle_nn_count_range(k, 1, k->rank),
                                .bytes = (double)heddle_nn_bytes(&c->in[0]) +
                                         (double)heddle_nn_bytes(&c->in[1]) +
                                         (double)heddle_nn_bytes(&c->out[0])};
}

static const struct nn_attr_rule attrs[] = {{"auto_pad", NN_STRING, false},
                                            {"dilations", NN_INTS, false},
                                            {"group", NN_INT, false},
                                            {"kernel_shape", NN_INTS, false},
                                            {"pads", NN_INTS, false},
                                            {"strides", NN_INTS, false},
                                            {0}};

const struct nn_op heddle_nn_op_conv[] = {
    {.name = "Conv",
     .since = 1,
     .nin_min = 2,
     .nin_max = 3,
     .flags = NN_IMAGE | NN_INNER,
     .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT},
     .same = 7,
     .attrs = attrs,
     .shape = heddle_nn_conv_shape,
     .ref = conv_ref,
     .fast = conv_fast,
     .cost = heddle_nn_conv_cost},
    {0},
};
