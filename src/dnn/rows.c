/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows: softmax and norms. A unit is a row.
 *
 * Softmax along an axis that is not the last one is done with columns of COLUMNS numbers that are
 * copied into rows, and back.
 */
#include <string.h>

#include "dnn/object.h"

/* --- softmax ------------------------------------------------------------------ */

struct softmax {
    struct heddle_dnn o;
    struct dnn_softmax d;
};

enum { COLUMNS = 16 };

/* Columns first .. of the outer index `outer`, at most COLUMNS. */
static void columns(const struct softmax *s, const float *x, float *y, size_t ncols, float *room)
{
    const struct dnn_softmax *d = &s->d;

    s->o.isa->transpose(x, d->inner, room, d->n, d->n, ncols);
    for (size_t i = 0; i < ncols; i++)
        s->o.isa->softmax(room + i * d->n, NULL, 1, d->is_log, room + i * d->n, d->n);
    s->o.isa->transpose(room, d->n, y, d->inner, ncols, d->n);
}

static void run_softmax(const struct heddle_dnn *o, const void *const *in, void *const *out,
                        size_t part, size_t nparts, void *scratch)
{
    const struct softmax *s = (const struct softmax *)(const void *)o;
    const struct dnn_softmax *d = &s->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    const size_t blocks = (d->inner + COLUMNS - 1) / COLUMNS;

    for (size_t u = r.first; u < r.last; u++) {
        const size_t first = u % blocks * COLUMNS;
        const size_t at = u / blocks * d->n * d->inner + first;
        const float *x = (const float *)in[0] + at;
        float *y = (float *)out[0] + at;

        if (d->inner == 1)
            o->isa->softmax(x, NULL, 1, d->is_log, y, d->n);
        else
            columns(s, x, y, dnn_min(COLUMNS, d->inner - first), scratch);
    }
}

static const struct dnn_kind softmax_kind = {"softmax", run_softmax};

heddle_status heddle_dnn_create_softmax(const struct dnn_softmax *desc, const struct dnn_make *make,
                                        struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_softmax d;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_softmax, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st != HEDDLE_OK)
        return st;
    d.inner = dnn_or_one(d.inner);
    if (!dnn_fits(d.outer, d.n, d.inner + COLUMNS, 1) || !dnn_fits(d.n, COLUMNS, 1, 1))
        return DNN_WHY(&ask, HEDDLE_EOVERFLOW, "softmax: %zu x %zu x %zu numbers do not fit",
                       d.outer, d.n, d.inner);
    st = heddle_dnn_new(&ask, &softmax_kind, sizeof(struct softmax), &o);
    if (st != HEDDLE_OK)
        return st;
    ((struct softmax *)(void *)o)->d = d;
    o->nparts = d.n == 0 ? 0 : d.outer * ((d.inner + COLUMNS - 1) / COLUMNS);
    o->scratch = d.inner == 1 ? 0 : dnn_room(d.n * COLUMNS);
    o->flops = 20.0 * (double)d.outer * (double)d.n * (double)d.inner;
    o->moved = 8.0 * (double)d.outer * (double)d.n * (double)d.inner;
    *out = o;
    return HEDDLE_OK;
}

/* --- norms -------------------------------------------------------------------- */

struct norm {
    struct heddle_dnn o;
    struct dnn_norm d;
};

static void run_norm(const struct heddle_dnn *o, const void *const *in, void *const *out,
                     size_t part, size_t nparts, void *scratch)
{
    const struct dnn_norm *d = &((const struct norm *)(const void *)o)->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);

    for (size_t u = r.first; u < r.last; u++) {
        const float *x = (const float *)in[0] + u * d->n;
        float *y = (float *)out[0] + u * d->n;

        if (in[3] != NULL) {
            float *sum = out[1] != NULL ? (float *)out[1] + u * d->n : scratch;

            o->isa->map2[0][0](x, (const float *)in[3] + u * d->n, sum, d->n);
            x = sum;
        }
        o->isa->norm(x, in[1], in[2], d->eps, d->is_rms, y, d->n);
    }
}

static const struct dnn_kind norm_kind = {"norm", run_norm};

heddle_status heddle_dnn_create_norm(const struct dnn_norm *desc, const struct dnn_make *make,
                                     struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_norm d;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_norm, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st != HEDDLE_OK)
        return st;
    if (!dnn_fits(d.rows, d.n, 1, 1))
        return DNN_WHY(&ask, HEDDLE_EOVERFLOW, "norm: %zu rows of %zu numbers do not fit", d.rows,
                       d.n);
    st = heddle_dnn_new(&ask, &norm_kind, sizeof(struct norm), &o);
    if (st != HEDDLE_OK)
        return st;
    ((struct norm *)(void *)o)->d = d;
    o->nparts = d.rows;
    o->scratch = dnn_room(d.n);
    o->flops = 8.0 * (double)d.rows * (double)d.n;
    o->moved = 8.0 * (double)d.rows * (double)d.n;
    *out = o;
    return HEDDLE_OK;
}
