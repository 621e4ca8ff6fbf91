/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attention: softmax(scale Q K' + mask) V.
 *
 * A unit is QUERIES queries of a head. A piece packs the keys and the values of a head when its
 * first unit comes by; then a unit computes the scores of its queries, their softmax, and the
 * product with the values, all in scratch that stays in the second cache. With the causal rule
 * keys that no query of the unit sees are left out.
 */
#include <string.h>

#include "dnn/panel.h"

enum { QUERIES = 24 };

struct attention {
    struct heddle_dnn o;
    struct dnn_attention d;
    struct dnn_panels keys, values;
    size_t nblocks; /* units of a head */
    size_t ld;      /* of the scores */
};

struct rows_at {
    const float *p;
    size_t ld;
};

static void rows_of(const void *arg, size_t row, size_t mr, size_t tap, size_t ntaps,
                    const float **a)
{
    const struct rows_at *r = arg;

    (void)tap;
    (void)ntaps;
    for (size_t i = 0; i < mr; i++)
        a[i] = r->p + (row + i) * r->ld;
}

/* The memory of a piece. */
struct room {
    float *keys, *values, *scores;
};

static struct room room_of(const struct attention *t, char *scratch)
{
    struct room r;

    r.keys = dnn_take(&scratch, dnn_panels_floats(t->o.isa, &t->keys));
    r.values = dnn_take(&scratch, dnn_panels_floats(t->o.isa, &t->values));
    r.scores = dnn_take(&scratch, QUERIES * t->ld);
    return r;
}

static void pack_head(const struct attention *t, const float *k, const float *v, struct room *r)
{
    const struct dnn_attention *d = &t->d;

    for (size_t i = 0; i < t->keys.count; i++)
        heddle_dnn_pack_panel(t->o.isa, &t->keys, i, k, 1, d->k.pos, d->scale,
                              r->keys + i * t->keys.width * t->keys.k);
    for (size_t i = 0; i < t->values.count; i++)
        heddle_dnn_pack_panel(t->o.isa, &t->values, i, v, d->v.pos, 1, 1,
                              r->values + i * t->values.width * t->values.k);
}

/* c = rows times the panels of b, whose first k rows count. */
static void product(const struct attention *t, const struct dnn_panels *p, const float *b,
                    const struct rows_at *rows, size_t m, size_t k, size_t n, float *c, size_t ldc)
{
    const float *a[DNN_MAX_MR];

    for (size_t i = 0; i < p->count && i * p->width < n; i++) {
        const size_t nv = dnn_panel_nv(t->o.isa, p, i);
        const struct dnn_strip s = {.isa = t->o.isa,
                                    .nv = nv,
                                    .ncols = dnn_min(p->n - i * p->width, nv * t->o.isa->lanes),
                                    .m = m,
                                    .ntaps = 1,
                                    .k = k,
                                    .b = b + i * p->width * p->k,
                                    .ldb = nv * t->o.isa->lanes,
                                    .c = c + i * p->width,
                                    .ldc = ldc,
                                    .act = {.fn = DNN_COPY},
                                    .rows = rows_of,
                                    .arg = rows};

        heddle_dnn_strip(&s, a);
    }
}

/* Queries first .. first + m - 1 of a head. mask: of query 0, or NULL. */
static void queries(const struct attention *t, const float *q, const float *mask, float *out,
                    const struct dnn_range *r, const struct room *room)
{
    const struct dnn_attention *d = &t->d;
    const size_t m = r->last - r->first;
    const size_t most = d->is_causal ? dnn_min(d->kv_len, r->last + d->past) : d->kv_len;
    const struct rows_at from = {q + r->first * d->q.pos, d->q.pos}, to = {room->scores, t->ld};

    product(t, &t->keys, room->keys, &from, m, d->dim, most, room->scores, t->ld);
    for (size_t i = 0; i < m; i++) {
        float *s = room->scores + i * t->ld;
        const size_t n = d->is_causal ? dnn_min(most, r->first + i + 1 + d->past) : most;

        t->o.isa->softmax(s, mask != NULL ? mask + (r->first + i) * d->mask_q : NULL, 1, false, s,
                          n);
        memset(s + n, 0, (most - n) * sizeof(float));
    }
    product(t, &t->values, room->values, &to, m, most, d->dim_v, out + r->first * d->out.pos,
            d->out.pos);
}

static void run(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch)
{
    const struct attention *t = (const struct attention *)(const void *)o;
    const struct dnn_attention *d = &t->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    struct room room = room_of(t, scratch);
    size_t packed = SIZE_MAX;

    for (size_t u = r.first; u < r.last; u++) {
        const size_t h = u / t->nblocks, b = h / d->heads, head = h % d->heads;
        const size_t kv = head / (d->heads / d->kv_heads), block = u % t->nblocks;
        const struct dnn_range rows = {block * QUERIES, dnn_min(d->q_len, (block + 1) * QUERIES)};
        const float *mask = d->has_mask ? in[3] : NULL;

        if (packed != b * d->kv_heads + kv)
            pack_head(t, (const float *)in[1] + b * d->k.batch + kv * d->k.head,
                      (const float *)in[2] + b * d->v.batch + kv * d->v.head, &room);
        packed = b * d->kv_heads + kv;
        if (mask != NULL)
            mask += b * d->mask_batch + head * d->mask_head;
        queries(t, (const float *)in[0] + b * d->q.batch + head * d->q.head, mask,
                (float *)out[0] + b * d->out.batch + head * d->out.head, &rows, &room);
    }
}

static const struct dnn_kind kind = {"attention", run};

static heddle_status check(const struct dnn_ask *ask, struct dnn_attention *d)
{
    d->kv_heads = d->kv_heads != 0 ? d->kv_heads : d->heads;
    d->dim_v = d->dim_v != 0 ? d->dim_v : d->dim;
    if (d->scale == 0 && d->dim != 0)
        d->scale = (float)(1 / __builtin_sqrt((double)d->dim));
    if (d->heads == 0 || d->heads % d->kv_heads != 0)
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "attention: %zu heads of queries are no multiple of %zu of keys", d->heads,
                       d->kv_heads);
    if (d->dim == 0)
        return DNN_WHY(ask, HEDDLE_EINVAL, "attention: a head has no elements");
    if (!dnn_fits(d->batch, d->heads, d->q_len + QUERIES, d->dim + d->dim_v) ||
        !dnn_fits(d->batch, d->kv_heads, d->kv_len + 256, d->dim + d->dim_v + 256) ||
        !dnn_fits(d->kv_len + 256, QUERIES, 1, 1) ||
        !dnn_fits(d->q_len, d->mask_q + d->q.pos + d->out.pos, 1, 1) || d->past > SIZE_MAX / 2)
        return DNN_WHY(ask, HEDDLE_EOVERFLOW, "attention: the sizes do not fit into memory");
    return HEDDLE_OK;
}

heddle_status heddle_dnn_create_attention(const struct dnn_attention *desc,
                                          const struct dnn_make *make, struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_attention d;
    struct attention *t;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_attention, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = check(&ask, &d);
    if (st == HEDDLE_OK)
        st = heddle_dnn_new(&ask, &kind, sizeof(*t), &o);
    if (st != HEDDLE_OK)
        return st;
    t = (struct attention *)(void *)o;
    t->d = d;
    t->keys = heddle_dnn_panels(o->isa, d.dim, d.kv_len);
    t->values = heddle_dnn_panels(o->isa, d.kv_len, d.dim_v);
    t->nblocks = (d.q_len + QUERIES - 1) / QUERIES;
    t->ld = dnn_up(d.kv_len, DNN_ALIGN / sizeof(float)) + 16;
    o->nparts = d.batch * d.heads * t->nblocks;
    o->scratch = dnn_room(dnn_panels_floats(o->isa, &t->keys)) +
                 dnn_room(dnn_panels_floats(o->isa, &t->values)) + dnn_room(QUERIES * t->ld);
    o->flops = 2.0 * (double)d.batch * (double)d.heads * (double)d.q_len * (double)d.kv_len *
               (double)(d.dim + d.dim_v);
    o->moved = 4.0 * (double)d.batch * (double)(d.dim + d.dim_v) *
               ((double)d.heads * (double)d.q_len + (double)d.kv_heads * (double)d.kv_len);
    *out = o;
    return HEDDLE_OK;
}
