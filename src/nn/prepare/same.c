/* SPDX-License-Identifier: BSD-3-Clause */
/* same: operators whose result is their operand, byte for byte, for these shapes and constants. */
#include <string.h>

#include "nn/prepare/prepare.h"

/* Operators that change nothing when the shape stays. */
static const char *const shape_tells[] = {"Expand", "Concat"};
/* x op v is x. */
static const struct {
    const char *op;
    double v;
    bool both; /* v op x is x as well */
} neutral[] = {{"Add", 0, true}, {"Sub", 0, false}, {"Mul", 1, true}, {"Div", 1, false}};

static bool same_dropout(const struct nn_task *t)
{
    const struct nn_value *trains = t->node->nin > 2 ? &t->in[2] : NULL;

    if (strcmp(t->node->op->name, "Dropout") != 0 ||
        (t->node->nout > 1 && t->out_value[1] != NN_NONE))
        return false;
    return trains == NULL || trains->kind == NN_ABSENT ||
           (trains->data != NULL && heddle_nn_get_i64(NN_BOOL, trains->data, 0) == 0);
}

/* A slice of everything, forwards: the steps are operand 4, or 1. */
static bool same_slice(const struct nn_task *t)
{
    if (!heddle_prep_is(t, "Slice"))
        return false;
    if (t->node->nin < 5 || t->in[4].kind == NN_ABSENT)
        return true;
    for (size_t i = 0; t->in[4].data != NULL && i < heddle_nn_count(&t->in[4].shape); i++)
        if (heddle_nn_get_i64(t->in[4].type, t->in[4].data, i) < 0)
            return false;
    return t->in[4].data != NULL;
}

/* The operand that the result is; -1: none. */
static int same_operand(const struct nn_task *t)
{
    bool is_same = same_dropout(t) || same_slice(t) || heddle_prep_is(t, "Cast") ||
                   heddle_prep_is(t, "CastLike");

    for (size_t i = 0; i < sizeof(shape_tells) / sizeof(shape_tells[0]); i++)
        is_same |= heddle_prep_is(t, shape_tells[i]) &&
                   (t->node->nin == 1 || strcmp(shape_tells[i], "Expand") == 0);
    if (is_same)
        return 0;
    for (size_t i = 0; i < sizeof(neutral) / sizeof(neutral[0]); i++) {
        if (!heddle_prep_is(t, neutral[i].op) || t->node->nin != 2)
            continue;
        if (heddle_prep_is_number(t, 1, neutral[i].v))
            return 0;
        if (neutral[i].both && heddle_prep_is_number(t, 0, neutral[i].v))
            return 1;
    }
    return -1;
}

static heddle_status same_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);
        const struct prep_change c = {.gone = {t}, .ngone = 1};
        const int k = t != NULL && t->node->nin > 0 ? same_operand(t) : -1;

        if (k < 0 || t->in[k].data != NULL || t->in[k].type != t->out[0].type ||
            !heddle_nn_same_shape(&t->in[k].shape, &t->out[0].shape))
            continue;
        HEDDLE_TRY(heddle_prep_alias_of(q, &c, t, t->in_value[k]));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_same = {"same", "operators whose result is their operand go",
                                            same_run};
