/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move: transposes, reorders, rows by index.
 *
 * A transpose is brought to its smallest form first: axes that stay neighbours become one. Then
 * either the last axis stays last, and rows are copied, or two axes are exchanged in blocks.
 */
#include <string.h>

#include "dnn/object.h"

/* --- transpose ---------------------------------------------------------------- */

/* Axes of the output, slowest first; stride: of the input, in elements. */
struct transpose {
    struct heddle_dnn o;
    unsigned rank;
    size_t elem, dims[DNN_MAX_RANK], stride[DNN_MAX_RANK];
    size_t nlines; /* of the last two axes (or one), which a unit moves */
};

#define MOVE_COPY(type)                                                                            \
    static void copy_##type(const void *from, size_t stride, void *to, size_t n)                   \
    {                                                                                              \
        const type *f = from;                                                                      \
        type *t = to;                                                                              \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            t[i] = f[i * stride];                                                                  \
    }

MOVE_COPY(uint8_t)
MOVE_COPY(uint16_t)
MOVE_COPY(uint32_t)
MOVE_COPY(uint64_t)

static void line(const struct transpose *t, const char *from, char *to)
{
    const size_t n = t->dims[t->rank - 1], stride = t->stride[t->rank - 1];

    if (stride == 1)
        memcpy(to, from, n * t->elem);
    else if (t->elem == 1)
        copy_uint8_t(from, stride, to, n);
    else if (t->elem == 2)
        copy_uint16_t(from, stride, to, n);
    else if (t->elem == 4)
        copy_uint32_t(from, stride, to, n);
    else
        copy_uint64_t(from, stride, to, n);
}

/* The last two axes are exchanged: the transpose of a matrix. */
static bool is_matrix(const struct transpose *t)
{
    return t->elem == 4 && t->rank >= 2 && t->stride[t->rank - 2] == 1 &&
           t->stride[t->rank - 1] != 1;
}

enum { MATRIX_ROWS = 16 };

static void run_transpose(const struct heddle_dnn *o, const void *const *in, void *const *out,
                          size_t part, size_t nparts, void *scratch)
{
    const struct transpose *t = (const struct transpose *)(const void *)o;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    const bool is_m = is_matrix(t);
    const size_t n = t->dims[t->rank - 1], m = t->rank >= 2 ? t->dims[t->rank - 2] : 1;
    const size_t blocks = is_m ? (m + MATRIX_ROWS - 1) / MATRIX_ROWS : 1;

    (void)scratch;
    for (size_t u = r.first; u < r.last; u++) {
        const size_t row = u % blocks * MATRIX_ROWS;
        size_t at = is_m ? row : 0, rest = u / blocks;
        char *to = (char *)out[0] + (is_m ? (u / blocks * m + row) * n : u * n) * t->elem;

        for (unsigned k = t->rank - (is_m ? 2 : 1); k-- > 0;) {
            at += rest % t->dims[k] * t->stride[k];
            rest /= t->dims[k];
        }
        if (is_m)
            o->isa->transpose((const float *)in[0] + at, t->stride[t->rank - 1], (void *)to, n, n,
                              dnn_min(MATRIX_ROWS, m - row));
        else
            line(t, (const char *)in[0] + at * t->elem, to);
    }
}

static const struct dnn_kind transpose_kind = {"transpose", run_transpose};

static heddle_status check_transpose(const struct dnn_ask *ask, const struct dnn_transpose *d,
                                     size_t *total)
{
    unsigned seen = 0;

    *total = 1;
    if (d->rank == 0 || d->rank > DNN_MAX_RANK ||
        (d->elem_bytes != 1 && d->elem_bytes != 2 && d->elem_bytes != 4 && d->elem_bytes != 8))
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "transpose: %u axes of elements of %zu bytes; at most %d, and 1, 2, 4 or 8 "
                       "bytes are possible",
                       d->rank, d->elem_bytes, DNN_MAX_RANK);
    for (unsigned k = 0; k < d->rank; k++) {
        if (d->perm[k] >= d->rank || (seen & 1u << d->perm[k]) != 0)
            return DNN_WHY(ask, HEDDLE_EINVAL,
                           "transpose: axis %u of the output is no axis of "
                           "the input, or one that was there before",
                           k);
        seen |= 1u << d->perm[k];
        if (!heddle_mul(total, *total, d->dims[k]) || !dnn_fits(*total, 8, 1, 1))
            return DNN_WHY(ask, HEDDLE_EOVERFLOW, "transpose: the sizes do not fit into memory");
    }
    return HEDDLE_OK;
}

/* Output axes without those of size 1; neighbours that stay neighbours are joined. */
static void shorten(struct transpose *t, const struct dnn_transpose *d)
{
    size_t stride[DNN_MAX_RANK] = {0}, all = 1;

    for (unsigned k = d->rank; k-- > 0;) {
        stride[k] = all;
        all *= d->dims[k];
    }
    for (unsigned k = 0; k < d->rank; k++) {
        const size_t n = d->dims[d->perm[k]], s = stride[d->perm[k]];

        if (n == 1)
            continue;
        if (t->rank > 0 && t->stride[t->rank - 1] == n * s) {
            t->dims[t->rank - 1] *= n;
            t->stride[t->rank - 1] = s;
            continue;
        }
        t->dims[t->rank] = n;
        t->stride[t->rank++] = s;
    }
    if (t->rank == 0) {
        t->dims[0] = t->stride[0] = 1;
        t->rank = 1;
    }
}

heddle_status heddle_dnn_create_transpose(const struct dnn_transpose *desc,
                                          const struct dnn_make *make, struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_transpose d;
    struct transpose *t;
    struct dnn_ask ask;
    size_t total = 0, unit;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_transpose, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = check_transpose(&ask, &d, &total);
    if (st == HEDDLE_OK)
        st = heddle_dnn_new(&ask, &transpose_kind, sizeof(*t), &o);
    if (st != HEDDLE_OK)
        return st;
    t = (struct transpose *)(void *)o;
    t->elem = d.elem_bytes;
    shorten(t, &d);
    unit = t->dims[t->rank - 1];
    o->nparts = total == 0 ? 0 : total / unit;
    if (total != 0 && is_matrix(t)) {
        const size_t m = t->dims[t->rank - 2];

        o->nparts = total / unit / m * ((m + MATRIX_ROWS - 1) / MATRIX_ROWS);
    }
    o->moved = 2.0 * (double)total * (double)d.elem_bytes;
    *out = o;
    return HEDDLE_OK;
}

heddle_status heddle_dnn_create_reorder(const struct dnn_reorder *desc, const struct dnn_make *make,
                                        struct heddle_dnn **out)
{
    struct dnn_transpose t = {.size = sizeof(t), .rank = 4, .elem_bytes = 4};
    struct dnn_reorder d;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_reorder, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st != HEDDLE_OK)
        return st;
    t.dims[0] = d.n;
    t.dims[1] = d.from == DNN_NCHW ? d.c : d.h;
    t.dims[2] = d.from == DNN_NCHW ? d.h : d.w;
    t.dims[3] = d.from == DNN_NCHW ? d.w : d.c;
    for (unsigned k = 1; k < 4; k++)
        t.perm[k] = d.from == d.to ? k : d.from == DNN_NCHW ? k % 3 + 1 : (k + 1) % 3 + 1;
    return heddle_dnn_create_transpose(&t, make, out);
}

/* --- rows by index ------------------------------------------------------------ */

struct gather {
    struct heddle_dnn o;
    struct dnn_gather d;
};

static void run_gather(const struct heddle_dnn *o, const void *const *in, void *const *out,
                       size_t part, size_t nparts, void *scratch)
{
    const struct dnn_gather *d = &((const struct gather *)(const void *)o)->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);

    (void)scratch;
    for (size_t u = r.first; u < r.last; u++) {
        const size_t i = u % d->count;
        const char *table = (const char *)in[0] + u / d->count * d->n * d->row_bytes;
        int64_t at = d->is_i32 ? ((const int32_t *)in[1])[i] : ((const int64_t *)in[1])[i];

        at += at < 0 ? (int64_t)d->n : 0;
        if (at < 0 || (uint64_t)at >= d->n)
            memset((char *)out[0] + u * d->row_bytes, 0, d->row_bytes);
        else
            memcpy((char *)out[0] + u * d->row_bytes, table + (size_t)at * d->row_bytes,
                   d->row_bytes);
    }
}

static const struct dnn_kind gather_kind = {"gather", run_gather};

heddle_status heddle_dnn_create_gather(const struct dnn_gather *desc, const struct dnn_make *make,
                                       struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_gather d;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_gather, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st != HEDDLE_OK)
        return st;
    if (!dnn_fits(d.outer, d.n, d.row_bytes, 1) || !dnn_fits(d.outer, d.count, d.row_bytes, 1) ||
        !dnn_fits(d.count, 8, 1, 1))
        return DNN_WHY(&ask, HEDDLE_EOVERFLOW, "gather: the sizes do not fit into memory");
    st = heddle_dnn_new(&ask, &gather_kind, sizeof(struct gather), &o);
    if (st != HEDDLE_OK)
        return st;
    ((struct gather *)(void *)o)->d = d;
    o->nparts = d.outer * d.count;
    o->moved = 2.0 * (double)d.outer * (double)d.count * (double)d.row_bytes;
    *out = o;
    return HEDDLE_OK;
}
