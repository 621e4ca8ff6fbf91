/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boxes: what detectors of objects do with boxes: NonMaxSuppression, RoiAlign.
 */
#include <math.h>
#include <stdlib.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* --- NonMaxSuppression -------------------------------------------------------- */

/* A box, ordered by its score; of equal scores the lower number comes first. */
struct candidate {
    double score, y1, x1, y2, x2;
    int64_t i;
};

static int by_score(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->i > b->i) - (a->i < b->i);
}

static double area(const struct candidate *a)
{
    return (a->y2 - a->y1) * (a->x2 - a->x1);
}

/* The area of two boxes together over the area of both. */
static double overlap(const struct candidate *a, const struct candidate *b)
{
    const double h = fmin(a->y2, b->y2) - fmax(a->y1, b->y1),
                 w = fmin(a->x2, b->x2) - fmax(a->x1, b->x1);
    const double both = h > 0 && w > 0 ? h * w : 0, all = area(a) + area(b) - both;

    return all > 0 ? both / all : 0;
}

static double scalar(struct nn_call *c, uint32_t i, double absent)
{
    const struct nn_value *v = &c->in[i];

    return heddle_nn_has_in(c, i) && heddle_nn_count(&v->shape) > 0
               ? heddle_nn_get_f64(v->type, v->data, 0)
               : absent;
}

static heddle_status nms_shape(struct nn_call *c)
{
    c->out[0] = heddle_nn_tensor(NN_I64, &(struct nn_shape){.rank = 2, .dim = {NN_UNKNOWN, 3}});
    return HEDDLE_OK;
}

static void read_box(const struct nn_call *c, size_t at, struct candidate *out)
{
    const float *b = (const float *)c->in[0].data + 4 * at;
    const double v[4] = {(double)b[0], (double)b[1], (double)b[2], (double)b[3]};

    if (heddle_nn_int(c, "center_point_box", 0) != 0) { /* x, y of the centre, width, height */
        out->x1 = v[0] - v[2] / 2;
        out->x2 = v[0] + v[2] / 2;
        out->y1 = v[1] - v[3] / 2;
        out->y2 = v[1] + v[3] / 2;
    } else { /* two opposite corners: y, x, y, x */
        out->y1 = fmin(v[0], v[2]);
        out->y2 = fmax(v[0], v[2]);
        out->x1 = fmin(v[1], v[3]);
        out->x2 = fmax(v[1], v[3]);
    }
}

/* The boxes of one class of one image that stay, at the front of `list`; their number. */
static size_t suppress(struct candidate *list, size_t n, size_t most, double threshold)
{
    size_t kept = 0;

    qsort(list, n, sizeof(*list), by_score);
    for (size_t i = 0; i < n && kept < most; i++) {
        bool stays = true;

        for (size_t k = 0; k < kept && stays; k++)
            stays = overlap(&list[k], &list[i]) <= threshold;
        if (stays)
            list[kept++] = list[i];
    }
    return kept;
}

static heddle_status nms_ref(struct nn_call *c)
{
    const struct nn_shape *b = &c->in[0].shape, *s = &c->in[1].shape;
    const double most = scalar(c, 2, 0), threshold = scalar(c, 3, 0), least = scalar(c, 4, 0);
    const bool has_least = heddle_nn_has_in(c, 4);
    struct nn_shape out = {.rank = 2, .dim = {0, 3}};
    struct candidate *list;
    int64_t *found;
    size_t nfound = 0, nboxes;

    if (b->rank != 3 || s->rank != 3 || b->dim[2] != 4 || b->dim[0] != s->dim[0] ||
        b->dim[1] != s->dim[2])
        return heddle_nn_fail(c, HEDDLE_EINVAL, "boxes of shape %s, scores of shape %s",
                              heddle_nn_shape_text(b).text, heddle_nn_shape_text(s).text);
    nboxes = (size_t)b->dim[1];
    list = heddle_nn_temp(c, nboxes + 1, sizeof(*list));
    found = heddle_nn_temp(c, 3 * heddle_nn_count(s) + 1, sizeof(*found));
    if (list == NULL || found == NULL)
        return HEDDLE_ENOMEM;
    for (size_t r = 0; most >= 1 && r < (size_t)(s->dim[0] * s->dim[1]); r++) {
        const size_t image = r / (size_t)s->dim[1];
        const float *score = (const float *)c->in[1].data + r * nboxes;
        size_t n = 0, kept;

        for (size_t i = 0; i < nboxes; i++) {
            if (has_least && !((double)score[i] > least))
                continue;
            list[n] = (struct candidate){.score = (double)score[i], .i = (int64_t)i};
            read_box(c, image * nboxes + i, &list[n++]);
        }
        kept = suppress(list, n, most < (double)nboxes ? (size_t)most : nboxes, threshold);
        for (size_t k = 0; k < kept; k++, nfound++) {
            found[3 * nfound] = (int64_t)image;
            found[3 * nfound + 1] = (int64_t)(r % (size_t)s->dim[1]);
            found[3 * nfound + 2] = list[k].i;
        }
    }
    out.dim[0] = (int64_t)nfound;
    HEDDLE_TRY(heddle_nn_out(c, 0, NN_I64, &out));
    for (size_t i = 0; i < 3 * nfound; i++)
        ((int64_t *)c->out[0].data)[i] = found[i];
    return HEDDLE_OK;
}

/* --- RoiAlign ------------------------------------------------------------------- */

/* The parts of an image that boxes show, in a grid of out_h x out_w. */
struct align {
    size_t channels, h, w, out_h, out_w;
    double scale;
    int64_t samples; /* per cell and direction; 0: as many as the cell is wide */
    bool is_half, is_max;
};

static heddle_status align_read(struct nn_call *c, struct align *a)
{
    const struct nn_shape *x = &c->in[0].shape, *roi = &c->in[1].shape;
    const int64_t h = heddle_nn_int(c, "output_height", 1), w = heddle_nn_int(c, "output_width", 1);

    if ((x->rank >= 0 && x->rank != 4) || (roi->rank >= 0 && roi->rank != 2) || h < 1 || w < 1 ||
        h > INT32_MAX || w > INT32_MAX)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, boxes of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(roi).text);
    *a = (struct align){.out_h = (size_t)h,
                        .out_w = (size_t)w,
                        .scale = heddle_nn_float(c, "spatial_scale", 1),
                        .samples = heddle_nn_int(c, "sampling_ratio", 0),
                        .is_half = c->node->op->since >= 16 &&
                                   heddle_nn_is_text(c, "coordinate_transformation_mode",
                                                     "half_pixel", "half_pixel"),
                        .is_max = heddle_nn_is_text(c, "mode", "avg", "max")};
    return HEDDLE_OK;
}

static heddle_status align_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *roi = &c->in[1].shape;
    struct nn_shape out = {.rank = 4};
    struct align a;

    HEDDLE_TRY(align_read(c, &a));
    out.dim[0] = roi->rank < 0 ? NN_UNKNOWN : roi->dim[0];
    out.dim[1] = x->rank < 0 ? NN_UNKNOWN : x->dim[1];
    out.dim[2] = (int64_t)a.out_h;
    out.dim[3] = (int64_t)a.out_w;
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* The four neighbours of a point with their weights; outside of the image: 0. For the largest,
 * the largest of the four weighted ones counts. */
static double sample(const struct align *a, const double *plane, double y, double x)
{
    size_t y0, x0, y1, x1;
    double v[4], dy, dx;

    if (y < -1 || y > (double)a->h || x < -1 || x > (double)a->w)
        return 0;
    y = fmax(y, 0);
    x = fmax(x, 0);
    y0 = (size_t)y < a->h - 1 ? (size_t)y : a->h - 1;
    x0 = (size_t)x < a->w - 1 ? (size_t)x : a->w - 1;
    y1 = y0 + 1 < a->h ? y0 + 1 : y0;
    x1 = x0 + 1 < a->w ? x0 + 1 : x0;
    dy = y0 + 1 < a->h ? y - (double)y0 : 0;
    dx = x0 + 1 < a->w ? x - (double)x0 : 0;
    v[0] = plane[y0 * a->w + x0] * (1 - dy) * (1 - dx);
    v[1] = plane[y0 * a->w + x1] * (1 - dy) * dx;
    v[2] = plane[y1 * a->w + x0] * dy * (1 - dx);
    v[3] = plane[y1 * a->w + x1] * dy * dx;
    return a->is_max ? fmax(fmax(v[0], v[1]), fmax(v[2], v[3])) : v[0] + v[1] + v[2] + v[3];
}

static double cell(const struct align *a, const double *plane, double y, double x, double dy,
                   double dx)
{
    const int64_t ny = a->samples > 0 ? a->samples : (int64_t)ceil(dy),
                  nx = a->samples > 0 ? a->samples : (int64_t)ceil(dx);
    double sum = 0, max = -(double)INFINITY;

    for (int64_t i = 0; i < ny; i++) {
        for (int64_t k = 0; k < nx; k++) {
            const double v = sample(a, plane, y + ((double)i + 0.5) * dy / (double)ny,
                                    x + ((double)k + 0.5) * dx / (double)nx);

            sum += v;
            max = fmax(max, v);
        }
    }
    if (a->is_max)
        return ny * nx > 0 ? max : 0;
    return ny * nx > 0 ? sum / (double)(ny * nx) : 0;
}

static void align_box(const struct align *a, const double *roi, const double *image, double *y)
{
    const double shift = a->is_half ? 0.5 : 0;
    const double x1 = roi[0] * a->scale - shift, y1 = roi[1] * a->scale - shift;
    double w = roi[2] * a->scale - shift - x1, h = roi[3] * a->scale - shift - y1;

    if (!a->is_half) { /* the older form makes no box smaller than one element */
        w = fmax(w, 1);
        h = fmax(h, 1);
    }
    w /= (double)a->out_w;
    h /= (double)a->out_h;
    for (size_t i = 0; i < a->channels * a->out_h * a->out_w; i++) {
        const size_t col = i % a->out_w, row = i / a->out_w % a->out_h,
                     ch = i / (a->out_w * a->out_h);

        y[i] = cell(a, image + ch * a->h * a->w, y1 + (double)row * h, x1 + (double)col * w, h, w);
    }
}

static heddle_status align_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *r = &c->in[1].shape;
    const double *image = heddle_nn_f64(c, 0), *roi = heddle_nn_f64(c, 1);
    double *y = heddle_nn_f64_out(c, 0);
    struct align a;

    if (image == NULL || roi == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(align_read(c, &a));
    a.channels = (size_t)x->dim[1];
    a.h = (size_t)x->dim[2];
    a.w = (size_t)x->dim[3];
    if (r->dim[1] != 4 || a.h == 0 || a.w == 0 ||
        heddle_nn_count(&c->in[2].shape) != (size_t)r->dim[0])
        return heddle_nn_fail(c, HEDDLE_EINVAL, "boxes of shape %s, images of shape %s",
                              heddle_nn_shape_text(r).text,
                              heddle_nn_shape_text(&c->in[2].shape).text);
    for (size_t i = 0; i < (size_t)r->dim[0]; i++) {
        const int64_t at = heddle_nn_get_i64(c->in[2].type, c->in[2].data, i);

        if (at < 0 || at >= x->dim[0])
            return heddle_nn_fail(c, HEDDLE_EINVAL, "image %lld of %lld", (long long)at,
                                  (long long)x->dim[0]);
        align_box(&a, roi + 4 * i, image + (size_t)at * a.channels * a.h * a.w,
                  y + i * a.channels * a.out_h * a.out_w);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static const struct nn_attr_rule nms_attrs[] = {{"center_point_box", NN_INT, false}, {0}};
static const struct nn_attr_rule align_attrs[] = {
    {"coordinate_transformation_mode", NN_STRING, false},
    {"mode", NN_STRING, false},
    {"output_height", NN_INT, false},
    {"output_width", NN_INT, false},
    {"sampling_ratio", NN_INT, false},
    {"spatial_scale", NN_FLOAT, false},
    {0}};

#define ALIGN(from)                                                                                \
    {                                                                                              \
        .name = "RoiAlign", .since = from, .nin_min = 3, .nin_max = 3,                             \
        .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M(NN_I64)}, .same = 3, .attrs = align_attrs,           \
        .shape = align_shape, .ref = align_ref                                                     \
    }

const struct nn_op heddle_nn_op_boxes[] = {
    {.name = "NonMaxSuppression",
     .since = 10,
     .nin_min = 2,
     .nin_max = 5,
     .type = {NN_M(NN_F32), NN_M(NN_F32), NN_M(NN_I64), NN_M(NN_F32), NN_M(NN_F32)},
     .flags = NN_DYNAMIC,
     .attrs = nms_attrs,
     .shape = nms_shape,
     .ref = nms_ref},
    ALIGN(16),
    ALIGN(10),
    {0},
};
