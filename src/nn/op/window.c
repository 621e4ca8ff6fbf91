/* SPDX-License-Identifier: BSD-3-Clause */
/* window: sizes and paddings of windows that move. */
#include "nn/op/window.h"

#include "base/assert.h"

/* An attribute with one number per dimension; absent: all `absent`. */
static heddle_status window_list(struct nn_call *c, const char *name, int nd, int64_t absent,
                                 int64_t *out)
{
    size_t n;
    const int64_t *v = heddle_nn_ints(c, name, &n);

    if (v != NULL && n != (size_t)nd)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' has %zu numbers for %d dimensions", name, n,
                              nd);
    for (int d = 0; d < nd; d++) {
        out[d] = v != NULL ? v[d] : absent;
        if (out[d] < 1 || out[d] > INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' has %lld", name, (long long)out[d]);
    }
    return HEDDLE_OK;
}

static heddle_status window_pads(struct nn_call *c, struct nn_window *w)
{
    size_t n;
    const int64_t *v = heddle_nn_ints(c, "pads", &n);

    if (v != NULL && n != 2 * (size_t)w->nd)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'pads' has %zu numbers for %d dimensions", n,
                              w->nd);
    for (int d = 0; d < w->nd; d++) {
        w->before[d] = v != NULL ? v[d] : 0;
        w->after[d] = v != NULL ? v[d + w->nd] : 0;
        if (w->before[d] < -INT32_MAX || w->before[d] > INT32_MAX || w->after[d] < -INT32_MAX ||
            w->after[d] > INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "'pads' are too large");
    }
    return HEDDLE_OK;
}

/* SAME: as many windows as steps fit; an odd padding goes to the end, or to the beginning. */
static void window_same(struct nn_window *w, int d, bool is_lower)
{
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    int64_t pad;

    w->out[d] = (w->in[d] + w->stride[d] - 1) / w->stride[d];
    pad = (w->out[d] - 1) * w->stride[d] + reach - w->in[d];
    pad = pad < 0 ? 0 : pad;
    w->before[d] = is_lower ? (pad + 1) / 2 : pad / 2;
    w->after[d] = pad - w->before[d];
}

static heddle_status window_one(struct nn_call *c, struct nn_window *w, int d, bool is_ceil)
{
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    const int64_t room = w->in[d] + w->before[d] + w->after[d] - reach;

    if (room < 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "a window of %lld is wider than dimension %d",
                              (long long)reach, d + 2);
    w->out[d] = room / w->stride[d] + 1;
    if (is_ceil && room % w->stride[d] != 0 && w->out[d] * w->stride[d] < w->in[d] + w->before[d])
        w->out[d]++; /* a window begins in the data or in the padding before them */
    return HEDDLE_OK;
}

heddle_status heddle_nn_window(struct nn_call *c, struct nn_window *w)
{
    const bool is_upper = heddle_nn_is_text(c, "auto_pad", "NOTSET", "SAME_UPPER"),
               is_lower = heddle_nn_is_text(c, "auto_pad", "NOTSET", "SAME_LOWER"),
               is_valid = heddle_nn_is_text(c, "auto_pad", "NOTSET", "VALID");
    const bool is_ceil = heddle_nn_int(c, "ceil_mode", 0) != 0;

    HEDDLE_TRY(window_list(c, "strides", w->nd, 1, w->stride));
    HEDDLE_TRY(window_list(c, "dilations", w->nd, 1, w->dilation));
    HEDDLE_TRY(window_pads(c, w));
    for (int d = 0; d < w->nd; d++) {
        if (w->kernel[d] < 1 || w->kernel[d] > INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a window has the size %lld",
                                  (long long)w->kernel[d]);
        w->out[d] = NN_UNKNOWN;
        if (is_valid)
            w->before[d] = w->after[d] = 0;
        if (w->in[d] < 0)
            continue;
        if (is_upper || is_lower)
            window_same(w, d, is_lower);
        else
            HEDDLE_TRY(window_one(c, w, d, is_ceil));
    }
    return HEDDLE_OK;
}
