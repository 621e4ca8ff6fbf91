/* SPDX-License-Identifier: BSD-3-Clause */
/* identity: Identity, and Dropout when it does not train: the operand as it is. */
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "nn/op/op.h"

static heddle_status identity_ref(struct nn_call *c)
{
    if (c->in[0].kind != NN_TENSOR)
        return heddle_nn_copy(c->run->keep, &c->in[0], &c->out[0]);
    memcpy(c->out[0].data, c->in[0].data, heddle_nn_bytes(&c->in[0]));
    return HEDDLE_OK;
}

static heddle_status dropout_shape(struct nn_call *c)
{
    c->out[0] = heddle_nn_tensor(c->in[0].type, &c->in[0].shape);
    if (c->nout > 1) /* the mask was of the operand's type before opset 10 */
        c->out[1] = heddle_nn_tensor(c->node->op->since >= 10 ? (unsigned)NN_BOOL : c->in[0].type,
                                     &c->in[0].shape);
    return HEDDLE_OK;
}

/* Training: a share of the elements becomes 0, the others grow. */
static void dropout_train(struct nn_call *c, double ratio)
{
    const struct nn_value *x = &c->in[0];
    const size_t n = heddle_nn_count(&x->shape);
    struct heddle_rng rng;

    heddle_rng_seed(&rng, (uint64_t)heddle_nn_int(c, "seed", 1));
    for (size_t i = 0; i < n; i++) {
        const bool keep = heddle_rng_double(&rng) >= ratio;

        heddle_nn_put_f64(x->type, c->out[0].data, i,
                          keep ? heddle_nn_get_f64(x->type, x->data, i) / (1 - ratio) : 0);
        if (c->nout > 1)
            heddle_nn_put_i64(c->out[1].type, c->out[1].data, i, keep);
    }
}

static heddle_status dropout_ref(struct nn_call *c)
{
    const size_t n = heddle_nn_count(&c->in[0].shape);
    const bool trains = heddle_nn_has_in(c, 2) && heddle_nn_get_i64(NN_BOOL, c->in[2].data, 0) != 0;
    const double ratio =
        heddle_nn_has_in(c, 1) ? heddle_nn_get_f64(c->in[1].type, c->in[1].data, 0) : 0.5;

    if (trains && ratio > 0) {
        dropout_train(c, ratio);
        return HEDDLE_OK;
    }
    memcpy(c->out[0].data, c->in[0].data, heddle_nn_bytes(&c->in[0]));
    for (size_t i = 0; c->nout > 1 && i < n; i++)
        heddle_nn_put_i64(c->out[1].type, c->out[1].data, i, 1);
    return HEDDLE_OK;
}

static const struct nn_attr_rule seed_attrs[] = {{"seed", NN_INT, false}, {0}};
static const struct nn_attr_rule ratio_attrs[] = {{"ratio", NN_FLOAT, false}, {0}};
static const struct nn_attr_rule old_attrs[] = {{"ratio", NN_FLOAT, false},
                                                {"is_test", NN_INT, false},
                                                {"consumed_inputs", NN_INTS, false},
                                                {0}};

#define DROPOUT(from, most, fl, at)                                                                \
    {                                                                                              \
        .name = "Dropout", .since = from, .nin_min = 1, .nin_max = most, .nout_min = 1,            \
        .nout_max = 2, .flags = fl, .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M(NN_BOOL)}, .attrs = at,  \
        .shape = dropout_shape, .ref = dropout_ref                                                 \
    }

const struct nn_op heddle_nn_op_identity[] = {
    {.name = "Identity",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .flags = NN_ALIAS,
     .ref = identity_ref},
    DROPOUT(12, 3, 0, seed_attrs),
    DROPOUT(10, 1, NN_ALIAS, ratio_attrs),
    DROPOUT(1, 1, NN_ALIAS, old_attrs),
    {0},
};
