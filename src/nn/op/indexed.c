/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * indexed: elements that are read or written where a tensor of indices says: GatherElements,
 * GatherND, ScatterElements (older: Scatter), ScatterND.
 *
 * Elements  move as bytes, whatever their type; a scatter that adds, multiplies or compares goes
 *           through double, or through 64-bit integers.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* Index v of `size`, counted from the end when negative. */
static heddle_status index_of(struct nn_call *c, const struct nn_value *i, size_t k, int64_t size,
                              size_t *out)
{
    const int64_t v = heddle_nn_get_i64(i->type, i->data, k);

    if (v < -size || v >= size)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "index %lld of %lld", (long long)v,
                              (long long)size);
    *out = (size_t)(v < 0 ? v + size : v);
    return HEDDLE_OK;
}

/* --- what a scatter does with what is there ---------------------------------------- */

enum meeting { REPLACE, ADD, MUL, MIN, MAX };

static heddle_status read_meeting(struct nn_call *c, enum meeting *out)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (heddle_nn_is_text(c, "reduction", "none", names[i])) {
            *out = (enum meeting)i;
            return HEDDLE_OK;
        }
    }
    return heddle_nn_fail(c, HEDDLE_EINVAL, "'reduction' is none of none, add, mul, min, max");
}

static double meet_f64(enum meeting m, double a, double b)
{
    switch (m) {
    case ADD: return a + b;
    case MUL: return a * b;
    case MIN: return b < a ? b : a;
    case MAX: return b > a ? b : a;
    default: return b;
    }
}

static int64_t meet_i64(enum meeting m, int64_t a, int64_t b)
{
    switch (m) {
    case ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case MIN: return b < a ? b : a;
    case MAX: return b > a ? b : a;
    default: return b;
    }
}

/* n elements of `from` go into y. */
static void meet(enum meeting m, unsigned type, void *y, size_t at, const void *from, size_t k,
                 size_t n)
{
    const size_t bytes = heddle_nn_type_bytes(type);

    if (m == REPLACE) {
        memcpy((char *)y + at * bytes, (const char *)from + k * bytes, n * bytes);
        return;
    }
    for (size_t e = 0; e < n; e++) {
        if ((NN_M(type) & NN_M_FLOAT) != 0)
            heddle_nn_put_f64(type, y, at + e,
                              meet_f64(m, heddle_nn_get_f64(type, y, at + e),
                                       heddle_nn_get_f64(type, from, k + e)));
        else
            heddle_nn_put_i64(type, y, at + e,
                              meet_i64(m, heddle_nn_get_i64(type, y, at + e),
                                       heddle_nn_get_i64(type, from, k + e)));
    }
}

static heddle_status meeting_fits(struct nn_call *c, enum meeting m)
{
    if (m != REPLACE && (NN_M(c->in[0].type) & (NN_M_NUM | NN_M(NN_BOOL))) == 0)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "a reduction of %s",
                              heddle_nn_type_name(c->in[0].type));
    return HEDDLE_OK;
}

/* --- along one axis: the index has the rank of the data ------------------------------------ */

static heddle_status elements_check(struct nn_call *c, const struct nn_shape *x,
                                    const struct nn_shape *i)
{
    if (x->rank >= 0 && i->rank >= 0 && x->rank != i->rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, indices of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(i).text);
    return HEDDLE_OK;
}

static heddle_status gather_elements_shape(struct nn_call *c)
{
    HEDDLE_TRY(elements_check(c, &c->in[0].shape, &c->in[1].shape));
    c->out[0] = heddle_nn_tensor(c->in[0].type, &c->in[1].shape);
    return HEDDLE_OK;
}

static heddle_status scatter_elements_shape(struct nn_call *c)
{
    HEDDLE_TRY(elements_check(c, &c->in[0].shape, &c->in[1].shape));
    HEDDLE_TRY(elements_check(c, &c->in[0].shape, &c->in[2].shape));
    c->out[0] = heddle_nn_tensor(c->in[0].type, &c->in[0].shape);
    return HEDDLE_OK;
}

/* Where element k of the indices is in the data. */
static heddle_status element_place(struct nn_call *c, int axis, size_t k, size_t *out)
{
    const struct nn_shape *x = &c->in[0].shape, *i = &c->in[1].shape;
    size_t rest = k, step = 1, at = 0;

    for (int d = x->rank - 1; d >= 0; d--) {
        size_t p = rest % (size_t)i->dim[d];

        rest /= (size_t)i->dim[d];
        if (d == axis)
            HEDDLE_TRY(index_of(c, &c->in[1], k, x->dim[d], &p));
        else if (p >= (size_t)x->dim[d])
            return heddle_nn_fail(c, HEDDLE_EINVAL, "indices of shape %s for data of shape %s",
                                  heddle_nn_shape_text(i).text, heddle_nn_shape_text(x).text);
        at += p * step;
        step *= (size_t)x->dim[d];
    }
    *out = at;
    return HEDDLE_OK;
}

static heddle_status gather_elements_ref(struct nn_call *c)
{
    const size_t n = heddle_nn_count(&c->in[1].shape);
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), c->in[0].shape.rank, &axis));
    for (size_t k = 0; k < n; k++) {
        size_t at;

        HEDDLE_TRY(element_place(c, axis, k, &at));
        meet(REPLACE, c->in[0].type, c->out[0].data, k, c->in[0].data, at, 1);
    }
    return HEDDLE_OK;
}

static heddle_status scatter_elements_ref(struct nn_call *c)
{
    const size_t n = heddle_nn_count(&c->in[1].shape);
    enum meeting m = REPLACE;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), c->in[0].shape.rank, &axis));
    HEDDLE_TRY(read_meeting(c, &m));
    HEDDLE_TRY(meeting_fits(c, m));
    if (!heddle_nn_same_shape(&c->in[1].shape, &c->in[2].shape))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "indices of shape %s, updates of shape %s",
                              heddle_nn_shape_text(&c->in[1].shape).text,
                              heddle_nn_shape_text(&c->in[2].shape).text);
    memcpy(c->out[0].data, c->in[0].data, heddle_nn_bytes(&c->in[0]));
    for (size_t k = 0; k < n; k++) {
        size_t at;

        HEDDLE_TRY(element_place(c, axis, k, &at));
        meet(m, c->in[0].type, c->out[0].data, at, c->in[2].data, k, 1);
    }
    return HEDDLE_OK;
}

/* --- the last dimension of the indices is a place in the data-- */

/* Places of `depth` numbers, each with `slice` elements behind it. */
struct places {
    size_t batches, per_batch; /* of the indices */
    size_t depth, slice;
    int first; /* the dimension of the data that the first number counts */
};

static heddle_status places_read(struct nn_call *c, struct places *p)
{
    const struct nn_shape *x = &c->in[0].shape, *i = &c->in[1].shape;
    const int64_t b = heddle_nn_int(c, "batch_dims", 0);

    if (i->rank < 1 || b < 0 || b >= i->rank || b >= x->rank || i->dim[i->rank - 1] < 1 ||
        i->dim[i->rank - 1] > x->rank - b)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, indices of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(i).text);
    p->first = (int)b;
    p->depth = (size_t)i->dim[i->rank - 1];
    p->batches = heddle_nn_count_range(i, 0, p->first);
    p->per_batch = heddle_nn_count_range(i, p->first, i->rank - 1);
    p->slice = heddle_nn_count_range(x, p->first + (int)p->depth, x->rank);
    if (p->batches != heddle_nn_count_range(x, 0, p->first))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, indices of shape %s",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(i).text);
    return HEDDLE_OK;
}

/* The first element of place k. */
static heddle_status place_of(struct nn_call *c, const struct places *p, size_t k, size_t *out)
{
    const struct nn_shape *x = &c->in[0].shape;
    size_t at = p->per_batch > 0 ? k / p->per_batch : 0;

    for (size_t d = 0; d < p->depth; d++) {
        const int64_t size = x->dim[p->first + (int)d];
        size_t v = 0;

        HEDDLE_TRY(index_of(c, &c->in[1], k * p->depth + d, size, &v));
        at = at * (size_t)size + v;
    }
    *out = at * p->slice;
    return HEDDLE_OK;
}

static heddle_status gather_nd_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *i = &c->in[1].shape;
    const int b = (int)heddle_nn_int(c, "batch_dims", 0);
    struct nn_shape out = {.rank = -1};

    if (x->rank >= 0 && i->rank >= 1 && i->dim[i->rank - 1] >= 0) {
        const int depth = (int)i->dim[i->rank - 1];

        if (b < 0 || b >= i->rank || b + depth > x->rank ||
            i->rank - 1 + x->rank - b - depth > NN_DIMS)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, indices of shape %s",
                                  heddle_nn_shape_text(x).text, heddle_nn_shape_text(i).text);
        out.rank = 0;
        for (int d = 0; d < i->rank - 1; d++)
            out.dim[out.rank++] = i->dim[d];
        for (int d = b + depth; d < x->rank; d++)
            out.dim[out.rank++] = x->dim[d];
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status gather_nd_ref(struct nn_call *c)
{
    struct places p;

    HEDDLE_TRY(places_read(c, &p));
    for (size_t k = 0; k < p.batches * p.per_batch; k++) {
        size_t at;

        HEDDLE_TRY(place_of(c, &p, k, &at));
        meet(REPLACE, c->in[0].type, c->out[0].data, k * p.slice, c->in[0].data, at, p.slice);
    }
    return HEDDLE_OK;
}

static heddle_status scatter_nd_shape(struct nn_call *c)
{
    c->out[0] = heddle_nn_tensor(c->in[0].type, &c->in[0].shape);
    return HEDDLE_OK;
}

static heddle_status scatter_nd_ref(struct nn_call *c)
{
    enum meeting m = REPLACE;
    struct places p;

    HEDDLE_TRY(places_read(c, &p));
    HEDDLE_TRY(read_meeting(c, &m));
    HEDDLE_TRY(meeting_fits(c, m));
    if (heddle_nn_count(&c->in[2].shape) != p.per_batch * p.slice)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "indices of shape %s, updates of shape %s",
                              heddle_nn_shape_text(&c->in[1].shape).text,
                              heddle_nn_shape_text(&c->in[2].shape).text);
    memcpy(c->out[0].data, c->in[0].data, heddle_nn_bytes(&c->in[0]));
    for (size_t k = 0; k < p.per_batch; k++) {
        size_t at;

        HEDDLE_TRY(place_of(c, &p, k, &at));
        meet(m, c->in[0].type, c->out[0].data, at, c->in[2].data, k * p.slice, p.slice);
    }
    return HEDDLE_OK;
}

static const struct nn_attr_rule axis_attrs[] = {{"axis", NN_INT, false}, {0}};
static const struct nn_attr_rule scatter_attrs[] = {
    {"axis", NN_INT, false}, {"reduction", NN_STRING, false}, {0}};
static const struct nn_attr_rule batch_attrs[] = {{"batch_dims", NN_INT, false}, {0}};
static const struct nn_attr_rule reduction_attrs[] = {{"reduction", NN_STRING, false}, {0}};

#define GATHER(nm, from, at, rule, fn)                                                             \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = 2, .nin_max = 2, .type = {NN_M_TENSOR, NN_M_INDEX},  \
        .attrs = at, .shape = rule, .ref = fn                                                      \
    }
#define SCATTER(nm, from, at, rule, fn)                                                            \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = 3, .nin_max = 3,                                     \
        .type = {NN_M_TENSOR, NN_M_INDEX, NN_M_TENSOR}, .same = 5, .attrs = at, .shape = rule,     \
        .ref = fn                                                                                  \
    }

const struct nn_op heddle_nn_op_indexed[] = {
    GATHER("GatherElements", 11, axis_attrs, gather_elements_shape, gather_elements_ref),
    GATHER("GatherND", 11, batch_attrs, gather_nd_shape, gather_nd_ref),
    SCATTER("ScatterElements", 11, scatter_attrs, scatter_elements_shape, scatter_elements_ref),
    SCATTER("Scatter", 9, axis_attrs, scatter_elements_shape, scatter_elements_ref),
    SCATTER("ScatterND", 11, reduction_attrs, scatter_nd_shape, scatter_nd_ref),
    {0},
};
