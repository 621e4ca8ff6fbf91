/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_PANEL_H
#define HEDDLE_DNN_PANEL_H

/*
 * For the files of this module: products by panels of columns.
 *
 * B, k x n, is packed as panels of `nv` vectors of columns (fewer in the last one), each k rows
 * one after another, zeros behind column n. A panel is computed for many rows of A at once: a part
 * of its rows at a time (`step`), which stays in the first cache while the tiles of all rows go
 * by. Sums then wait in C. They are the same to the bit whatever `step` is, since a number of
 * C is one chain of multiply-adds in the order of k in either case.
 */
#include "dnn/object.h"

struct dnn_panels {
    size_t k, n;
    size_t width; /* columns of a full panel */
    size_t count;
    size_t last_nv; /* vectors of the last panel */
};

struct dnn_panels heddle_dnn_panels(const struct dnn_isa *isa, size_t k, size_t n);

static inline size_t dnn_panel_nv(const struct dnn_isa *isa, const struct dnn_panels *p, size_t i)
{
    return i + 1 < p->count ? isa->nv : p->last_nv;
}

static inline size_t dnn_panels_floats(const struct dnn_isa *isa, const struct dnn_panels *p)
{
    return p->count == 0 ? 0 : ((p->count - 1) * p->width + p->last_nv * isa->lanes) * p->k;
}

/* Panel i of B, whose element (p, j) is at b[p * row + j * col], times alpha. */
void heddle_dnn_pack_panel(const struct dnn_isa *isa, const struct dnn_panels *p, size_t i,
                           const float *b, size_t row, size_t col, float alpha, float *out);

/* Rows of a product with one panel. */
struct dnn_strip {
    const struct dnn_isa *isa;
    size_t nv, ncols; /* vectors of the panel, columns of it that are there */
    size_t m;         /* rows */
    size_t ntaps, k;  /* as in struct dnn_tile */
    const float *b;
    size_t ldb;
    float *c; /* of row 0, at the panel's first column */
    size_t ldc;
    const float *bias; /* at the panel's first column, or NULL */
    const float *res;
    size_t ldres;
    struct dnn_act act;
    /* Where rows row .. row + mr - 1 begin in the taps tap .. tap + ntaps - 1: row after row for
     * the first tap, then for the next one. */
    void (*rows)(const void *arg, size_t row, size_t mr, size_t tap, size_t ntaps, const float **a);
    const void *arg;
    bool is_dense; /* rows of A are k numbers, one row after another */
    size_t col;    /* not 0: column j of C is at c + j * col, and its rows ldc apart */
};

/* `a`: room for ntaps * DNN_MAX_MR addresses. */
void heddle_dnn_strip(const struct dnn_strip *s, const float **a);

/* Is the activation one of the clamps that tiles do, and which? */
bool heddle_dnn_clamp(struct dnn_act act, float *lo, float *hi);

#endif /* HEDDLE_DNN_PANEL_H */
