/* SPDX-License-Identifier: BSD-3-Clause */
/* transpose: dimension i of the result is dimension perm[i] of the operand; without `perm`, all in
 * the opposite order. */
#include <string.h>

#include "base/assert.h"
#include "nn/op/step.h"

static heddle_status transpose_perm(struct nn_call *c, int rank, int perm[NN_DIMS])
{
    size_t n;
    const int64_t *p = heddle_nn_ints(c, "perm", &n);
    uint32_t seen = 0;

    if (p != NULL && n != (size_t)rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'perm' has %zu numbers for %d dimensions", n,
                              rank);
    for (int i = 0; i < rank; i++) {
        perm[i] = rank - 1 - i;
        if (p != NULL)
            HEDDLE_TRY(heddle_nn_axis(c, p[i], rank, &perm[i]));
        seen |= 1u << perm[i];
    }
    if (seen != (1u << rank) - 1)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'perm' has a dimension twice");
    return HEDDLE_OK;
}

static heddle_status transpose_shape(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape;
    struct nn_shape out = {.rank = in->rank};
    int perm[NN_DIMS];

    if (in->rank >= 0)
        HEDDLE_TRY(transpose_perm(c, in->rank, perm));
    for (int i = 0; i < in->rank; i++)
        out.dim[i] = in->dim[perm[i]];
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status transpose_ref(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
    const size_t each = heddle_nn_type_bytes(c->in[0].type), n = heddle_nn_count(out);
    size_t step[NN_DIMS], at[NN_DIMS] = {0}, from = 0;
    const char *x = c->in[0].data;
    char *y = c->out[0].data;
    int perm[NN_DIMS];

    HEDDLE_TRY(transpose_perm(c, in->rank, perm));
    for (int i = 0; i < out->rank; i++)
        step[i] = heddle_nn_count_range(in, perm[i] + 1, in->rank) * each;
    for (size_t k = 0; k < n; k++) {
        memcpy(y + k * each, x + from, each);
        for (int d = out->rank - 1; d >= 0; d--) {
            from += step[d];
            if (++at[d] < (size_t)out->dim[d])
                break;
            from -= step[d] * at[d];
            at[d] = 0;
        }
    }
    return HEDDLE_OK;
}

static heddle_status transpose_fast(struct nn_call *c, struct nn_step *out)
{
    const struct nn_shape *s = &c->in[0].shape;
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    const size_t each = heddle_nn_type_bytes(c->in[0].type);
    struct dnn_transpose d = {.size = sizeof(d), .rank = 1, .elem_bytes = each, .dims = {1}};
    struct heddle_dnn *o = NULL;
    int perm[NN_DIMS];
    heddle_status st;

    if (s->rank > DNN_MAX_RANK || c->in[0].type == NN_STR || each > 8 || heddle_nn_count(s) == 0)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(transpose_perm(c, s->rank, perm));
    d.rank = s->rank > 0 ? (unsigned)s->rank : 1;
    for (int i = 0; i < s->rank; i++) {
        d.dims[i] = (size_t)s->dim[i];
        d.perm[i] = (unsigned)perm[i];
    }
    st = heddle_dnn_create_transpose(&d, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static const struct nn_attr_rule attrs[] = {{"perm", NN_INTS, false}, {0}};

const struct nn_op heddle_nn_op_transpose[] = {
    {.name = "Transpose",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_TENSOR},
     .attrs = attrs,
     .shape = transpose_shape,
     .ref = transpose_ref,
     .fast = transpose_fast},
    {0},
};
