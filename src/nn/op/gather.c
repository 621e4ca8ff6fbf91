/* SPDX-License-Identifier: BSD-3-Clause */
/* gather: slices of the first operand along an axis, by numbers in the second one; a number below
 * zero counts from the end. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "nn/op/step.h"

static heddle_status gather_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *i = &c->in[1].shape;
    struct nn_shape out = {.rank = -1};
    int axis;

    if (x->rank >= 0 && i->rank >= 0) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
        if (x->rank + i->rank - 1 > NN_DIMS)
            return heddle_nn_fail(c, HEDDLE_ENOSYS, "more than %d dimensions", NN_DIMS);
        out.rank = 0;
        for (int d = 0; d < axis; d++)
            out.dim[out.rank++] = x->dim[d];
        for (int d = 0; d < i->rank; d++)
            out.dim[out.rank++] = i->dim[d];
        for (int d = axis + 1; d < x->rank; d++)
            out.dim[out.rank++] = x->dim[d];
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status gather_ref(struct nn_call *c)
{
    const struct nn_value *x = &c->in[0], *i = &c->in[1];
    const size_t n = heddle_nn_count(&i->shape);
    const char *from = x->data;
    char *to = c->out[0].data;
    size_t outer, bytes;
    int64_t length;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->shape.rank, &axis));
    length = x->shape.dim[axis];
    outer = heddle_nn_count_range(&x->shape, 0, axis);
    bytes =
        heddle_nn_count_range(&x->shape, axis + 1, x->shape.rank) * heddle_nn_type_bytes(x->type);
    for (size_t o = 0; o < outer; o++, from += (size_t)length * bytes)
        for (size_t k = 0; k < n; k++, to += bytes) {
            int64_t at = heddle_nn_get_i64(i->type, i->data, k);

            if (at < -length || at >= length)
                return heddle_nn_fail(c, HEDDLE_EINVAL, "index %lld of %lld", (long long)at,
                                      (long long)length);
            memcpy(to, from + (size_t)(at < 0 ? at + length : at) * bytes, bytes);
        }
    return HEDDLE_OK;
}

/* Rows of `bytes`. A number that is out of range is refused, where the kernel of src/dnn would give
 * zeros. */
struct gather {
    size_t outer, count, bytes;
    int64_t length;
    unsigned type;
};

static heddle_status gather_run(const void *state, const struct nn_args *a, size_t part,
                                size_t nparts, void *scratch)
{
    const struct gather *g = state;
    const size_t end = g->outer * g->count * (part + 1) / nparts;

    (void)scratch;
    for (size_t r = g->outer * g->count * part / nparts; r < end; r++) {
        const size_t o = r / g->count;
        int64_t at = heddle_nn_get_i64(g->type, a->in[1], r % g->count);

        at = at < 0 ? at + g->length : at;
        if (at < 0 || at >= g->length)
            return HEDDLE_EINVAL;
        memcpy((char *)a->out[0] + r * g->bytes,
               (const char *)a->in[0] + (o * (size_t)g->length + (size_t)at) * g->bytes, g->bytes);
    }
    return HEDDLE_OK;
}

static void gather_destroy(const struct heddle_allocator *a, void *state)
{
    heddle_free(a, state, sizeof(struct gather));
}

static heddle_status gather_fast(struct nn_call *c, struct nn_step *out)
{
    const struct nn_shape *x = &c->in[0].shape;
    struct gather *g;
    int axis;

    if (c->in[0].type == NN_STR || heddle_nn_count(&c->out[0].shape) == 0)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
    g = heddle_nn_alloc(c, sizeof(*g));
    if (g == NULL)
        return HEDDLE_ENOMEM;
    *g = (struct gather){.outer = heddle_nn_count_range(x, 0, axis),
                         .count = heddle_nn_count(&c->in[1].shape),
                         .bytes = heddle_nn_count_range(x, axis + 1, x->rank) *
                                  heddle_nn_type_bytes(c->in[0].type),
                         .length = x->dim[axis],
                         .type = c->in[1].type};
    *out = (struct nn_step){.state = g,
                            .parts = g->outer * g->count < 64 ? g->outer * g->count : 64,
                            .run = gather_run,
                            .destroy = gather_destroy};
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"axis", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_gather[] = {
    {.name = "Gather",
     .since = 1,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M_INDEX},
     .attrs = attrs,
     .shape = gather_shape,
     .ref = gather_ref,
     .fast = gather_fast},
    {0},
};
