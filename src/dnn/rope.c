/* SPDX-License-Identifier: BSD-3-Clause */
/* rope: rotary positions. A unit is one position of one head. */
#include <string.h>

#include "dnn/object.h"

struct rope {
    struct heddle_dnn o;
    struct dnn_rope d;
};

static size_t position(const struct dnn_rope *d, const int64_t *pos, size_t b, size_t i)
{
    size_t p = d->first_pos + i;

    if (pos != NULL)
        p = pos[b * d->pos_batch + i] < 0 ? 0 : (size_t)pos[b * d->pos_batch + i];
    return p < d->npos ? p : d->npos - 1;
}

/* A pair is read before it is written: y may be x. */
static void turn(const struct dnn_rope *d, const float *x, const float *cos, const float *sin,
                 float *y)
{
    const size_t half = d->rot / 2, step = d->is_interleaved ? 2 : 1;
    const size_t other = d->is_interleaved ? 1 : half;

    for (size_t i = 0; i < half; i++) {
        const float a = x[i * step], b = x[i * step + other];

        y[i * step] = a * cos[i] - b * sin[i];
        y[i * step + other] = a * sin[i] + b * cos[i];
    }
    if (y != x)
        memcpy(y + d->rot, x + d->rot, (d->dim - d->rot) * sizeof(float));
}

static void run(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch)
{
    const struct dnn_rope *d = &((const struct rope *)(const void *)o)->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);

    (void)scratch;
    for (size_t u = r.first; u < r.last; u++) {
        const size_t i = u % d->len, h = u / d->len % d->heads, b = u / d->len / d->heads;
        const size_t at = position(d, in[3], b, i) * (d->rot / 2);

        turn(d, (const float *)in[0] + b * d->x.batch + h * d->x.head + i * d->x.pos,
             (const float *)in[1] + at, (const float *)in[2] + at,
             (float *)out[0] + b * d->y.batch + h * d->y.head + i * d->y.pos);
    }
}

static const struct dnn_kind kind = {"rope", run};

heddle_status heddle_dnn_create_rope(const struct dnn_rope *desc, const struct dnn_make *make,
                                     struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_rope d;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_rope, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st != HEDDLE_OK)
        return st;
    d.rot = d.rot != 0 ? d.rot : d.dim;
    if (d.rot % 2 != 0 || d.rot > d.dim || d.npos == 0)
        return DNN_WHY(&ask, HEDDLE_EINVAL,
                       "rope: %zu of %zu elements cannot be turned in pairs, or there are no "
                       "positions",
                       d.rot, d.dim);
    if (!dnn_fits(d.batch, d.heads, d.len, d.dim) || !dnn_fits(d.npos, d.rot, 1, 1))
        return DNN_WHY(&ask, HEDDLE_EOVERFLOW, "rope: the sizes do not fit into memory");
    st = heddle_dnn_new(&ask, &kind, sizeof(struct rope), &o);
    if (st != HEDDLE_OK)
        return st;
    ((struct rope *)(void *)o)->d = d;
    o->nparts = d.batch * d.heads * d.len;
    o->flops = 3.0 * (double)o->nparts * (double)d.rot;
    o->moved = 8.0 * (double)o->nparts * (double)d.dim;
    *out = o;
    return HEDDLE_OK;
}
