/* SPDX-License-Identifier: BSD-3-Clause */
/* transpose: two in a row become one, and one that moves nothing goes. */
#include "nn/prepare/prepare.h"

static bool transpose_perm(const struct nn_task *t, int perm[NN_DIMS])
{
    const struct nn_call c = {.node = t->node};
    const int rank = t->in[0].shape.rank;
    size_t n;
    const int64_t *said = heddle_nn_ints(&c, "perm", &n);

    for (int i = 0; i < rank; i++) {
        perm[i] = said == NULL ? rank - 1 - i : (int)(said[i] < 0 ? said[i] + rank : said[i]);
    }
    return rank > 0;
}

/* Dimensions of more than one element stay in their order. */
static bool transpose_stays(const struct nn_shape *s, const int perm[NN_DIMS])
{
    int last = -1;

    for (int i = 0; i < s->rank; i++) {
        if (s->dim[perm[i]] == 1)
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

static heddle_status transpose_join(struct nn_prep *q, struct nn_task *t, const struct nn_task *in,
                                    const int perm[NN_DIMS])
{
    struct prep_change c = {.op = t->node->op, .nin = 1, .in = {{in, 0}}, .nattrs = 1};
    struct heddle_onnx_attr *attr = heddle_prep_keep(q, 1, sizeof(*attr));
    int64_t *list = heddle_prep_keep(q, NN_DIMS, sizeof(*list));

    if (attr == NULL || list == NULL)
        return HEDDLE_ENOMEM;
    for (int i = 0; i < t->in[0].shape.rank; i++)
        list[i] = perm[i];
    *attr = (struct heddle_onnx_attr){.name = "perm",
                                      .type = HEDDLE_ONNX_ATTR_INTS,
                                      .ints = list,
                                      .nints = (size_t)t->in[0].shape.rank};
    c.attr = attr;
    (void)heddle_prep_add(&c, t);
    return heddle_prep_replace(q, &c, t);
}

static heddle_status transpose_one(struct nn_prep *q, struct nn_task *t)
{
    const struct nn_task *before = heddle_prep_maker(q, t, 0);
    const struct prep_change c = {.gone = {t}, .ngone = 1};
    int perm[NN_DIMS], first[NN_DIMS], both[NN_DIMS];

    if (!transpose_perm(t, perm) || t->in[0].data != NULL)
        return HEDDLE_OK;
    if (transpose_stays(&t->in[0].shape, perm))
        return heddle_prep_alias(q, t);
    if (!heddle_prep_is(before, "Transpose") || !heddle_prep_reads(q, t, 0, before) ||
        !transpose_perm(before, first))
        return HEDDLE_OK;
    for (int i = 0; i < t->in[0].shape.rank; i++)
        both[i] = first[perm[i]];
    if (transpose_stays(&before->in[0].shape, both) && before->in[0].data == NULL)
        return heddle_prep_alias_of(q, &c, t, before->in_value[0]);
    return transpose_join(q, t, before, both);
}

static heddle_status transpose_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);

        if (heddle_prep_is(t, "Transpose"))
            HEDDLE_TRY(transpose_one(q, t));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_transpose = {
    "transpose", "two transposes become one, and those that move nothing go", transpose_run};
