/* SPDX-License-Identifier: BSD-3-Clause */
/* slice: from start to end in steps, along some axes; bounds beyond the ends are cut, as by NumPy.
 * The lists are attributes before opset 10, without steps. */
#include <string.h>

#include "base/assert.h"
#include "nn/op/step.h"

struct slice {
    int64_t start[NN_DIMS], step[NN_DIMS], count[NN_DIMS]; /* count below 0: not known */
};

struct lists {
    int64_t start[NN_DIMS], end[NN_DIMS], axis[NN_DIMS], step[NN_DIMS];
    size_t nstart, nend, naxes, nsteps;
};

static heddle_status slice_attr(struct nn_call *c, const char *name, int64_t *list, size_t *n)
{
    const int64_t *v = heddle_nn_ints(c, name, n);

    if (*n > NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' has %zu numbers", name, *n);
    for (size_t i = 0; i < *n; i++)
        list[i] = v[i];
    return HEDDLE_OK;
}

static heddle_status slice_lists(struct nn_call *c, struct lists *l)
{
    l->naxes = l->nsteps = 0;
    if (c->node->op->nin_max == 1) {
        HEDDLE_TRY(slice_attr(c, "starts", l->start, &l->nstart));
        HEDDLE_TRY(slice_attr(c, "ends", l->end, &l->nend));
        return slice_attr(c, "axes", l->axis, &l->naxes);
    }
    HEDDLE_TRY(heddle_nn_list(c, 1, l->start, NN_DIMS, &l->nstart));
    HEDDLE_TRY(heddle_nn_list(c, 2, l->end, NN_DIMS, &l->nend));
    HEDDLE_TRY(heddle_nn_list(c, 3, l->axis, NN_DIMS, &l->naxes));
    return heddle_nn_list(c, 4, l->step, NN_DIMS, &l->nsteps);
}

/* One axis of `length` elements. */
static void slice_cut(struct slice *s, int d, int64_t length, int64_t start, int64_t end,
                      int64_t step)
{
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;

    start = start < 0 ? start + length : start;
    end = end < 0 ? (end < -length ? -1 : end + length) : end;
    if (end < 0 && step > 0)
        end = 0;
    start = start < 0 ? low : start > high ? high : start;
    end = end < low ? low : end > length ? length : end;
    s->start[d] = start;
    s->step[d] = step;
    if (step > 0)
        s->count[d] = end > start ? (end - start - 1) / step + 1 : 0;
    else
        s->count[d] =
            start > end ? (start - end - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1 : 0;
}

static heddle_status slice_read(struct nn_call *c, struct slice *s)
{
    const struct nn_shape *in = &c->in[0].shape;
    struct lists l;

    HEDDLE_TRY(slice_lists(c, &l));
    for (int d = 0; d < in->rank; d++) {
        s->start[d] = 0;
        s->step[d] = 1;
        s->count[d] = in->dim[d];
    }
    if (l.naxes == SIZE_MAX || l.nstart == SIZE_MAX || l.nend == SIZE_MAX || l.nsteps == SIZE_MAX) {
        for (int d = 0; d < in->rank; d++)
            s->count[d] = NN_UNKNOWN;
        return HEDDLE_OK;
    }
    if (l.nstart != l.nend || (l.naxes > 0 && l.naxes != l.nstart) ||
        (l.nsteps > 0 && l.nsteps != l.nstart) || l.nstart > (size_t)in->rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu starts, %zu ends, %zu axes, %zu steps",
                              l.nstart, l.nend, l.naxes, l.nsteps);
    for (size_t i = 0; i < l.nstart; i++) {
        const int64_t step = l.nsteps > 0 ? l.step[i] : 1;
        int axis = (int)i;

        if (l.naxes > 0)
            HEDDLE_TRY(heddle_nn_axis(c, l.axis[i], in->rank, &axis));
        if (step == 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a step of 0");
        if (in->dim[axis] < 0)
            s->count[axis] = NN_UNKNOWN;
        else
            slice_cut(s, axis, in->dim[axis], l.start[i], l.end[i], step);
    }
    return HEDDLE_OK;
}

static heddle_status slice_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = c->in[0].shape.rank};
    struct slice s;

    if (out.rank >= 0)
        HEDDLE_TRY(slice_read(c, &s));
    for (int d = 0; d < out.rank; d++)
        out.dim[d] = s.count[d];
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status slice_ref(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
    const size_t each = heddle_nn_type_bytes(c->in[0].type), n = heddle_nn_count(out);
    int64_t step[NN_DIMS], at[NN_DIMS] = {0}, from = 0, stride = 1;
    const char *x = c->in[0].data;
    char *y = c->out[0].data;
    struct slice s;

    HEDDLE_TRY(slice_read(c, &s));
    for (int d = in->rank - 1; d >= 0; d--) {
        from += s.start[d] * stride;
        step[d] = s.count[d] > 1 ? s.step[d] * stride : 0;
        stride *= in->dim[d];
    }
    for (size_t k = 0; k < n; k++) {
        memcpy(y + k * each, x + (size_t)from * each, each);
        for (int d = out->rank - 1; d >= 0; d--) {
            from += step[d];
            if (++at[d] < out->dim[d])
                break;
            from -= step[d] * at[d];
            at[d] = 0;
        }
    }
    return HEDDLE_OK;
}

static heddle_status slice_fast(struct nn_call *c, struct nn_step *out)
{
    const struct nn_shape *in = &c->in[0].shape;
    const int64_t each = (int64_t)heddle_nn_type_bytes(c->in[0].type);
    struct nn_move m = {.each = (size_t)each, .rank = (unsigned)in->rank};
    int64_t from = each, to = each;
    struct slice s;

    if (c->in[0].type == NN_STR)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(slice_read(c, &s));
    for (int d = in->rank - 1; d >= 0; d--) {
        if (s.count[d] < 0)
            return HEDDLE_ENOSYS;
        m.from += s.start[d] * from;
        m.dim[d] = (size_t)s.count[d];
        m.from_step[d] = s.count[d] > 1 ? s.step[d] * from : 0;
        m.to_step[d] = to;
        from *= in->dim[d];
        to *= s.count[d];
    }
    return heddle_nn_move_step(c, &m, 1, out);
}

static const struct nn_attr_rule old_attrs[] = {
    {"starts", NN_INTS, true}, {"ends", NN_INTS, true}, {"axes", NN_INTS, false}, {0}};

const struct nn_op heddle_nn_op_slice[] = {
    {.name = "Slice",
     .since = 10,
     .nin_min = 3,
     .nin_max = 5,
     .type = {NN_M_TENSOR, NN_M_INDEX, NN_M_INDEX, NN_M_INDEX, NN_M_INDEX},
     .shape = slice_shape,
     .ref = slice_ref,
     .fast = slice_fast},
    {.name = "Slice",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_TENSOR},
     .attrs = old_attrs,
     .shape = slice_shape,
     .ref = slice_ref,
     .fast = slice_fast},
    {0},
};
