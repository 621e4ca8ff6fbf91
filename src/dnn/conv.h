/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_CONV_H
#define HEDDLE_DNN_CONV_H

/*
 * For conv.c and its ways of computing.
 *
 * direct     pixels are rows of A where they are, one tap per pixel of the window; the
 *            padding is a row of zeros. DNN_NHWC with 16 channels per group or more
 * lines      the input lines that an output line needs are copied first, with their padding; few
 *            channels, and DNN_NCHW. With few channels, lines of all channels and of the whole
 *            window are interleaved: a pixel of the window's line is one run of numbers
 * depthwise  one channel per group, DNN_NHWC
 */
#include "dnn/panel.h"

enum conv_way { CONV_DIRECT, CONV_LINES, CONV_DEPTHWISE };

struct conv {
    struct heddle_dnn o;
    struct dnn_conv d;
    enum conv_way way;
    size_t oh, ow, npixels; /* of the output */
    size_t ci, co;          /* of a group */
    struct dnn_panels p;    /* of a group */
    size_t block, nblocks;  /* direct: pixels of a block, and blocks of an image */
    bool is_by_pixels;      /* direct: a unit is a block of all panels */
    bool is_planar;         /* lines: few channels, DNN_NCHW; channels before lines */
    size_t ntaps, k;        /* of a tile */
    size_t nlines, line;    /* lines: how many, and numbers of one with its padding */
    size_t deep;            /* lines: numbers of a pixel */
    size_t at_bias, at_zero;
    bool has_bias;
    bool is_dense; /* direct: output pixels and input pixels are the same, in order */
};

/* Where group g begins at pixel `pixel` of image n, for the output and the residual. */
static inline size_t conv_out_at(const struct conv *c, size_t n, size_t channel, size_t pixel)
{
    return c->d.out_layout == DNN_NHWC ? (n * c->npixels + pixel) * c->d.co + channel
                                       : (n * c->d.co + channel) * c->npixels + pixel;
}

/* Everything of a strip but its rows: panel i of group g, `m` pixels from `pixel` on. */
struct dnn_strip heddle_dnn_conv_strip(const struct conv *c, const void *const *in,
                                       void *const *out, const size_t at[4], size_t m);

extern const struct dnn_kind heddle_dnn_conv_direct;
extern const struct dnn_kind heddle_dnn_conv_lines;
extern const struct dnn_kind heddle_dnn_conv_depthwise;

#endif /* HEDDLE_DNN_CONV_H */
