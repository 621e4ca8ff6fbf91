/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topk: the largest or smallest elements along an axis with their numbers: TopK, ArgMax, ArgMin.
 *
 * Order  of equal elements the one with the lower number comes first; ArgMax and ArgMin may take
 *        the last one instead. NaN counts as larger than all numbers.
 */
#include <math.h>
#include <stdlib.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* An element and its number along the axis. Integers are compared as integers. */
struct ranked {
    double v;
    int64_t i; /* the bits of an integer */
    size_t at;
};

struct axis {
    size_t outer, length, step;
};

static struct axis axis_of(const struct nn_shape *s, int axis)
{
    return (struct axis){heddle_nn_count_range(s, 0, axis), (size_t)s->dim[axis],
                         heddle_nn_count_range(s, axis + 1, s->rank)};
}

/* -1, 0, 1: a is smaller, equal, larger. */
static int compare(unsigned type, const struct ranked *a, const struct ranked *b)
{
    if ((NN_M(type) & NN_M_FLOAT) != 0) {
        if (isnan(a->v) || isnan(b->v))
            return (isnan(a->v) ? 1 : 0) - (isnan(b->v) ? 1 : 0);
        return (a->v > b->v) - (a->v < b->v);
    }
    if ((NN_M(type) & NN_M_UINT) != 0)
        return ((uint64_t)a->i > (uint64_t)b->i) - ((uint64_t)a->i < (uint64_t)b->i);
    return (a->i > b->i) - (a->i < b->i);
}

static struct ranked element(const struct nn_value *x, size_t first, size_t step, size_t k)
{
    const size_t i = first + k * step;
    struct ranked r = {.at = k};

    if ((NN_M(x->type) & NN_M_FLOAT) != 0)
        r.v = heddle_nn_get_f64(x->type, x->data, i);
    else
        r.i = heddle_nn_get_i64(x->type, x->data, i);
    return r;
}

/* --- TopK ------------------------------------------------------------------------------ */

static heddle_status topk_read(struct nn_call *c, int64_t *k, int *axis)
{
    size_t n = 1;

    *k = heddle_nn_int(c, "k", 0);
    if (c->node->op->nin_max > 1)
        HEDDLE_TRY(heddle_nn_list(c, 1, k, 1, &n));
    if (n == SIZE_MAX)
        *k = NN_UNKNOWN;
    if (c->in[0].shape.rank < 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), c->in[0].shape.rank, axis));
    if (n == 0 || (n == 1 && *k < 0) ||
        (*k > c->in[0].shape.dim[*axis] && c->in[0].shape.dim[*axis] >= 0))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%lld of %lld elements", (long long)*k,
                              (long long)c->in[0].shape.dim[*axis]);
    return HEDDLE_OK;
}

static heddle_status topk_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;
    int64_t k;
    int axis = 0;

    HEDDLE_TRY(topk_read(c, &k, &axis));
    if (out.rank > 0)
        out.dim[axis] = k;
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    if (c->nout > 1)
        c->out[1] = heddle_nn_tensor(NN_I64, &out);
    return HEDDLE_OK;
}

/* Where no order is wanted, that of the numbers. */
static int by_at(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;

    return (a->at > b->at) - (a->at < b->at);
}

/* Moves the k first elements of the order to the front, by a heap that holds the best k. */
static bool goes_first(unsigned type, bool is_largest, const struct ranked *a,
                       const struct ranked *b)
{
    const int d = compare(type, a, b);

    return d != 0 ? (d > 0) == is_largest : a->at < b->at;
}

static void sift_down(unsigned type, bool is_largest, struct ranked *heap, size_t n, size_t i)
{
    for (;;) {
        size_t last = i; /* of the three the one that goes last is on top */

        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            last = goes_first(type, is_largest, &heap[last], &heap[k]) ? k : last;
        if (last == i)
            return;
        const struct ranked t = heap[i];

        heap[i] = heap[last];
        heap[last] = t;
        i = last;
    }
}

static void select_k(const struct nn_value *x, const struct axis *a, size_t first, bool is_largest,
                     struct ranked *heap, size_t k)
{
    for (size_t j = 0; j < a->length; j++) {
        const struct ranked r = element(x, first, a->step, j);

        if (j < k) {
            heap[j] = r;
            for (size_t i = j + 1 == k ? k / 2 + 1 : 0; i-- > 0;)
                sift_down(x->type, is_largest, heap, k, i);
        } else if (goes_first(x->type, is_largest, &r, &heap[0])) {
            heap[0] = r;
            sift_down(x->type, is_largest, heap, k, 0);
        }
    }
    for (size_t n = k; n > 1; n--) { /* the last one of the order goes behind */
        const struct ranked t = heap[0];

        heap[0] = heap[n - 1];
        heap[n - 1] = t;
        sift_down(x->type, is_largest, heap, n - 1, 0);
    }
}

static void put_row(struct nn_call *c, const struct axis *a, size_t o, size_t s,
                    const struct ranked *r, size_t k)
{
    const struct nn_value *x = &c->in[0], *y = &c->out[0];
    const size_t from = o * a->length * a->step + s, to = o * k * a->step + s;

    for (size_t i = 0; i < k; i++) {
        if ((NN_M(x->type) & NN_M_FLOAT) != 0)
            heddle_nn_put_f64(y->type, y->data, to + i * a->step,
                              heddle_nn_get_f64(x->type, x->data, from + r[i].at * a->step));
        else
            heddle_nn_put_i64(y->type, y->data, to + i * a->step, r[i].i);
        if (heddle_nn_wants(c, 1))
            ((int64_t *)c->out[1].data)[to + i * a->step] = (int64_t)r[i].at;
    }
}

static heddle_status topk_ref(struct nn_call *c)
{
    const bool is_largest = heddle_nn_int(c, "largest", 1) != 0,
               is_sorted = heddle_nn_int(c, "sorted", 1) != 0;
    struct ranked *heap;
    struct axis a;
    int64_t k;
    int axis = 0;

    HEDDLE_TRY(topk_read(c, &k, &axis));
    a = axis_of(&c->in[0].shape, axis);
    heap = heddle_nn_temp(c, (size_t)k + 1, sizeof(*heap));
    if (heap == NULL)
        return HEDDLE_ENOMEM;
    for (size_t r = 0; k > 0 && r < a.outer * a.step; r++) {
        const size_t o = r / a.step, s = r % a.step;

        select_k(&c->in[0], &a, o * a.length * a.step + s, is_largest, heap, (size_t)k);
        if (!is_sorted)
            qsort(heap, (size_t)k, sizeof(*heap), by_at);
        put_row(c, &a, o, s, heap, (size_t)k);
    }
    return HEDDLE_OK;
}

/* --- ArgMax, ArgMin -------------------------------------------------------------------------- */

static heddle_status arg_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    const bool keeps = heddle_nn_int(c, "keepdims", 1) != 0;
    struct nn_shape out = {.rank = -1};
    int axis;

    if (x->rank >= 0) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
        if (x->dim[axis] == 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "dimension %d is empty", axis);
        out.rank = 0;
        for (int d = 0; d < x->rank; d++) {
            if (d != axis)
                out.dim[out.rank++] = x->dim[d];
            else if (keeps)
                out.dim[out.rank++] = 1;
        }
    }
    c->out[0] = heddle_nn_tensor(NN_I64, &out);
    return HEDDLE_OK;
}

static heddle_status arg_ref(struct nn_call *c)
{
    const bool is_max = c->node->op->family != NULL,
               is_last = heddle_nn_int(c, "select_last_index", 0) != 0;
    int64_t *y = c->out[0].data;
    struct axis a;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), c->in[0].shape.rank, &axis));
    a = axis_of(&c->in[0].shape, axis);
    for (size_t r = 0; r < a.outer * a.step; r++) {
        const size_t first = r / a.step * a.length * a.step + r % a.step;
        struct ranked best = element(&c->in[0], first, a.step, 0);

        for (size_t k = 1; k < a.length; k++) {
            const struct ranked e = element(&c->in[0], first, a.step, k);
            const int d = compare(c->in[0].type, &e, &best);

            if ((d != 0 && (d > 0) == is_max) || (d == 0 && is_last))
                best = e;
        }
        y[r] = (int64_t)best.at;
    }
    return HEDDLE_OK;
}

static const struct nn_attr_rule topk_attrs[] = {
    {"axis", NN_INT, false}, {"largest", NN_INT, false}, {"sorted", NN_INT, false}, {0}};
static const struct nn_attr_rule old_attrs[] = {{"axis", NN_INT, false}, {"k", NN_INT, true}, {0}};
static const struct nn_attr_rule arg_attrs[] = {{"axis", NN_INT, false},
                                                {"keepdims", NN_INT, false},
                                                {"select_last_index", NN_INT, false},
                                                {0}};

#define ARG(nm, is)                                                                                \
    {                                                                                              \
        .name = nm, .since = 1, .nin_min = 1, .nin_max = 1, .type = {NN_M_NUM},                    \
        .attrs = arg_attrs, .family = is, .shape = arg_shape, .ref = arg_ref                       \
    }

const struct nn_op heddle_nn_op_topk[] = {
    {.name = "TopK",
     .since = 10,
     .nin_min = 2,
     .nin_max = 2,
     .nout_min = 1,
     .nout_max = 2,
     .type = {NN_M_NUM, NN_M(NN_I64)},
     .attrs = topk_attrs,
     .shape = topk_shape,
     .ref = topk_ref},
    {.name = "TopK",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .nout_min = 1,
     .nout_max = 2,
     .type = {NN_M_NUM},
     .attrs = old_attrs,
     .shape = topk_shape,
     .ref = topk_ref},
    ARG("ArgMax", "max"),
    ARG("ArgMin", NULL),
    {0},
};
