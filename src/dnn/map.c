/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map: chains of elementwise functions.
 *
 * Axes that are adjacent in memory for all operands are joined first. Then the output is cut along
 * its last axis into blocks of BLOCK numbers; each step of the chain runs over a whole block,
 * which stays in the first cache. A unit is a block.
 */
#include <string.h>

#include "dnn/object.h"

enum { BLOCK = 512 };

struct map {
    struct heddle_dnn o;
    struct dnn_map d;
    size_t last;    /* size of the last axis */
    size_t nblocks; /* per row of the last axis */
    size_t room;    /* numbers of a block, rounded up */
};

/* A value of the chain in a block: an array, or one number for all. */
struct value {
    const float *p;
    bool is_one;
};

static void step(const struct map *m, const struct dnn_step *s, const struct value *v, float *y,
                 size_t n)
{
    const struct dnn_isa *isa = m->o.isa;
    const struct value a = v[s->a], b = v[s->b];

    if (!dnn_fn_is_binary(s->fn)) {
        isa->map1[s->fn](s->p, s->q, a.p, y, a.is_one ? 1 : n);
        for (size_t i = 1; a.is_one && i < n; i++)
            y[i] = y[0];
    } else if (a.is_one && b.is_one) {
        isa->map2[s->fn - DNN_ADD][0](a.p, b.p, y, 1);
        for (size_t i = 1; i < n; i++)
            y[i] = y[0];
    } else {
        isa->map2[s->fn - DNN_ADD][a.is_one ? 2 : b.is_one ? 1 : 0](a.p, b.p, y, n);
    }
}

/* Numbers first .. first + n - 1 of the last axis; at[i]: where input i's axis begins. */
static void block(const struct map *m, const size_t *at, const void *const *in, float *out,
                  size_t first, size_t n, float *room)
{
    const struct dnn_map *d = &m->d;
    struct value v[DNN_MAX_IN + DNN_MAX_STEPS];

    for (unsigned i = 0; i < d->nin; i++) {
        const size_t stride = d->stride[i][d->rank - 1];
        const float *p = (const float *)in[i] + at[i] + first * stride;

        if (stride > 1) {
            for (size_t k = 0; k < n; k++)
                room[k] = p[k * stride];
            p = room;
            room += m->room;
        }
        v[i] = (struct value){p, stride == 0};
    }
    for (unsigned i = 0; i < d->nsteps; i++) {
        float *y = i + 1 == d->nsteps ? out : room + i * m->room;

        step(m, &d->step[i], v, y, n);
        v[d->nin + i] = (struct value){y, false};
    }
}

static void run(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch)
{
    const struct map *m = (const struct map *)(const void *)o;
    const struct dnn_map *d = &m->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    size_t at[DNN_MAX_IN];

    for (size_t u = r.first; u < r.last; u++) {
        const size_t first = u % m->nblocks * BLOCK;
        size_t row = u / m->nblocks;
        float *y = (float *)out[0] + row * m->last + first;

        memset(at, 0, sizeof(at));
        for (unsigned axis = d->rank - 1; axis-- > 0;) {
            for (unsigned i = 0; i < d->nin; i++)
                at[i] += row % d->dims[axis] * d->stride[i][axis];
            row /= d->dims[axis];
        }
        block(m, at, in, y, first, dnn_min(BLOCK, m->last - first), scratch);
    }
}

static const struct dnn_kind kind = {"map", run};

/* Can axes k and k + 1 be one axis, for all inputs? */
static bool are_joined(const struct dnn_map *d, unsigned k)
{
    for (unsigned i = 0; i < d->nin; i++)
        if (d->stride[i][k] != d->stride[i][k + 1] * d->dims[k + 1])
            return false;
    return true;
}

static void join(struct dnn_map *d)
{
    unsigned to = 0;

    for (unsigned k = 0; k < d->rank; k++) { /* axes of size 1 say nothing */
        if (d->dims[k] == 1)
            continue;
        d->dims[to] = d->dims[k];
        for (unsigned i = 0; i < d->nin; i++)
            d->stride[i][to] = d->stride[i][k];
        to++;
    }
    if (to == 0) {
        d->dims[to++] = 1;
        for (unsigned i = 0; i < d->nin; i++)
            d->stride[i][0] = 0;
    }
    d->rank = to;
    for (unsigned k = d->rank - 1; k-- > 0;) {
        if (!are_joined(d, k))
            continue;
        d->dims[k] *= d->dims[k + 1];
        for (unsigned i = 0; i < d->nin; i++)
            d->stride[i][k] = d->stride[i][k + 1];
        for (unsigned j = k + 1; j + 1 < d->rank; j++) {
            d->dims[j] = d->dims[j + 1];
            for (unsigned i = 0; i < d->nin; i++)
                d->stride[i][j] = d->stride[i][j + 1];
        }
        d->rank--;
    }
}

static heddle_status check(const struct dnn_ask *ask, const struct dnn_map *d, size_t *total)
{
    *total = 1;
    if (d->rank > DNN_MAX_RANK || d->nin == 0 || d->nin > DNN_MAX_IN || d->nsteps == 0 ||
        d->nsteps > DNN_MAX_STEPS)
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "map: %u axes, %u inputs, %u steps; at most %d, 1 to %d, 1 to %d are "
                       "possible",
                       d->rank, d->nin, d->nsteps, DNN_MAX_RANK, DNN_MAX_IN, DNN_MAX_STEPS);
    for (unsigned i = 0; i < d->nsteps; i++) {
        const struct dnn_step *s = &d->step[i];

        if (s->fn >= DNN_NFN || s->a >= d->nin + i ||
            (dnn_fn_is_binary(s->fn) && s->b >= d->nin + i))
            return DNN_WHY(ask, HEDDLE_EINVAL,
                           "map: step %u has no such function, or reads a later result", i);
    }
    for (unsigned k = 0; k < d->rank; k++)
        if (!heddle_mul(total, *total, d->dims[k]))
            return DNN_WHY(ask, HEDDLE_EOVERFLOW, "map: the output does not fit into memory");
    return dnn_fits(*total, 1, 1, 1)
               ? HEDDLE_OK
               : DNN_WHY(ask, HEDDLE_EOVERFLOW, "map: the output does not fit into memory");
}

heddle_status heddle_dnn_create_map(const struct dnn_map *desc, const struct dnn_make *make,
                                    struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_map d;
    struct map *m;
    struct dnn_ask ask;
    size_t total = 0;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_map, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = check(&ask, &d, &total);
    if (st == HEDDLE_OK)
        st = heddle_dnn_new(&ask, &kind, sizeof(*m), &o);
    if (st != HEDDLE_OK)
        return st;
    if (total != 0)
        join(&d);
    m = (struct map *)(void *)o;
    m->d = d;
    m->last = total == 0 ? 0 : d.dims[d.rank - 1];
    m->nblocks = (m->last + BLOCK - 1) / BLOCK;
    o->nparts = total == 0 ? 0 : total / m->last * m->nblocks;
    m->room = dnn_up(dnn_min(BLOCK, m->last), DNN_ALIGN / sizeof(float));
    o->scratch = dnn_room((d.nsteps - 1) * m->room);
    for (unsigned i = 0; i < d.nin; i++) /* inputs that are not adjacent are copied */
        o->scratch += d.stride[i][d.rank - 1] > 1 ? dnn_room(m->room) : 0;
    o->flops = (double)total * d.nsteps;
    o->moved = 4.0 * (double)total * (d.nin + 1);
    *out = o;
    return HEDDLE_OK;
}
