/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grid_sample: an image seen through a grid of places, from -1 to 1 along each dimension.
 *
 * Operands  X [n, c, d...], grid [n, e..., dimensions]; the last dimension of the grid has the
 *           place along the last dimension of X first. Y [n, c, e...].
 * Method    along each dimension one, two or four neighbours with weights; the result is the sum
 *           over all combinations.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/op.h"

enum { GRID_DIMS = 3, GRID_TAPS = 4 };

struct grid {
    int nd;
    int64_t size[GRID_DIMS];
    bool is_corners, is_nearest, is_cubic, is_border, is_reflected;
};

static heddle_status grid_read(struct nn_call *c, struct grid *g)
{
    const struct nn_shape *x = &c->in[0].shape, *s = &c->in[1].shape;

    if (x->rank != s->rank || x->rank < 3 || x->rank - 2 > GRID_DIMS ||
        (s->dim[s->rank - 1] >= 0 && s->dim[s->rank - 1] != x->rank - 2))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, grid of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(s).text);
    *g = (struct grid){.nd = x->rank - 2,
                       .is_corners = heddle_nn_int(c, "align_corners", 0) != 0,
                       .is_nearest = heddle_nn_is_text(c, "mode", "linear", "nearest"),
                       .is_cubic = heddle_nn_is_text(c, "mode", "linear", "bicubic") ||
                                   heddle_nn_is_text(c, "mode", "linear", "cubic"),
                       .is_border = heddle_nn_is_text(c, "padding_mode", "zeros", "border"),
                       .is_reflected = heddle_nn_is_text(c, "padding_mode", "zeros", "reflection")};
    for (int d = 0; d < g->nd; d++)
        g->size[d] = x->dim[d + 2];
    return HEDDLE_OK;
}

static heddle_status grid_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *s = &c->in[1].shape;
    struct nn_shape out = {.rank = -1};
    struct grid g;

    if (x->rank >= 0 && s->rank >= 0) {
        HEDDLE_TRY(grid_read(c, &g));
        out = *x;
        for (int d = 0; d < g.nd; d++)
            out.dim[d + 2] = s->dim[d + 1];
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* A place behind the ends comes back from there. */
static double reflect(double x, double low, double high)
{
    const double range = high - low;
    double over;
    int64_t times;

    if (range <= 0)
        return low;
    over = x < low ? low - x : x > high ? x - high : 0;
    if (over == 0)
        return x;
    times = (int64_t)(over / range);
    over -= (double)times * range;
    if (x < low)
        return times % 2 == 0 ? low + over : high - over;
    return times % 2 == 0 ? high - over : low + over;
}

/* The neighbours along one dimension; weight 0 where there is none. */
struct taps {
    int n;
    int64_t at[GRID_TAPS];
    double weight[GRID_TAPS];
};

static void cubic_weights(double t, double w[GRID_TAPS])
{
    static const double a = -0.75;
    const double far[2] = {1 + t, 2 - t}, near[2] = {t, 1 - t};

    for (int i = 0; i < 2; i++) {
        w[i == 0 ? 0 : 3] = ((a * far[i] - 5 * a) * far[i] + 8 * a) * far[i] - 4 * a;
        w[i == 0 ? 1 : 2] = ((a + 2) * near[i] - (a + 3)) * near[i] * near[i] + 1;
    }
}

static void settle(const struct grid *g, int64_t size, int64_t at, struct taps *t, int i)
{
    const double low = g->is_corners ? 0 : -0.5, high = (double)size - (g->is_corners ? 1 : 0.5);

    if (g->is_reflected)
        at = (int64_t)reflect((double)at, low, high);
    if (at < 0 || at >= size) {
        if (!g->is_border && !g->is_reflected)
            t->weight[i] = 0;
        at = at < 0 ? 0 : size - 1;
    }
    t->at[i] = at;
}

static void find_taps(const struct grid *g, int d, double place, struct taps *t)
{
    const int64_t size = g->size[d];
    const double low = g->is_corners ? 0 : -0.5, high = (double)size - (g->is_corners ? 1 : 0.5);
    double x =
        g->is_corners ? (place + 1) / 2 * ((double)size - 1) : ((place + 1) * (double)size - 1) / 2;
    double first;

    if (g->is_nearest)
        x = nearbyint(x);
    if (x < low || x > high) {
        if (g->is_border && !g->is_cubic)
            x = fmin(fmax(x, 0), (double)size - 1);
        else if (g->is_reflected)
            x = reflect(x, low, high);
    }
    if (!(fabs(x) < 1e15)) /* no place at all */
        x = -10;
    first = g->is_nearest ? nearbyint(x) : floor(x);
    t->n = g->is_nearest ? 1 : g->is_cubic ? 4 : 2;
    if (g->is_cubic) {
        cubic_weights(x - first, t->weight);
        first -= 1;
    } else {
        t->weight[0] = g->is_nearest ? 1 : 1 - (x - first);
        t->weight[1] = x - first;
    }
    for (int i = 0; i < t->n; i++)
        settle(g, size, (int64_t)first + i, t, i);
}

/* The sum over the neighbours of all dimensions. */
static double combine(const struct grid *g, const struct taps *t, const double *plane)
{
    size_t all = 1;
    double sum = 0;

    for (int d = 0; d < g->nd; d++)
        all *= (size_t)t[d].n;
    for (size_t k = 0; k < all; k++) {
        size_t rest = k, at = 0;
        double w = 1;

        for (int d = 0; d < g->nd; d++) {
            const size_t i = rest % (size_t)t[d].n;

            rest /= (size_t)t[d].n;
            at = at * (size_t)g->size[d] + (size_t)t[d].at[i];
            w *= t[d].weight[i];
        }
        sum += w == 0 ? 0 : w * plane[at];
    }
    return sum;
}

static heddle_status grid_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0), *places = heddle_nn_f64(c, 1);
    double *y = heddle_nn_f64_out(c, 0);
    const size_t n = (size_t)c->in[0].shape.dim[0], channels = (size_t)c->in[0].shape.dim[1],
                 plane = heddle_nn_count_range(&c->in[0].shape, 2, c->in[0].shape.rank),
                 out = heddle_nn_count_range(&c->out[0].shape, 2, c->out[0].shape.rank);
    struct grid g;

    if (x == NULL || places == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(grid_read(c, &g));
    if (c->in[1].shape.dim[0] != c->in[0].shape.dim[0] || plane == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, grid of shape %s",
                              heddle_nn_shape_text(&c->in[0].shape).text,
                              heddle_nn_shape_text(&c->in[1].shape).text);
    for (size_t k = 0; k < n * out; k++) {
        const size_t image = k / out, at = k % out;
        struct taps t[GRID_DIMS];

        for (int d = 0; d < g.nd; d++)
            find_taps(&g, d, places[k * (size_t)g.nd + (size_t)(g.nd - 1 - d)], &t[d]);
        for (size_t ch = 0; ch < channels; ch++)
            y[(image * channels + ch) * out + at] =
                combine(&g, t, x + (image * channels + ch) * plane);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"align_corners", NN_INT, false},
                                            {"mode", NN_STRING, false},
                                            {"padding_mode", NN_STRING, false},
                                            {0}};

const struct nn_op heddle_nn_op_grid_sample[] = {
    {.name = "GridSample",
     .since = 16,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_NUM, NN_M_FLOAT},
     .attrs = attrs,
     .shape = grid_shape,
     .ref = grid_ref},
    {0},
};
