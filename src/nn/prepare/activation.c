/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * activation: functions of one number written in their parts.
 *
 *     GELU       x 0.5 (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3))
 *     Swish      x sigmoid(x)
 *     HardSwish  x hardsigmoid(x) with 1/6 and 1/2, or x clip(x + 3, 0, 6) / 6
 *
 * The factors of a product come in any order, with 0.5 at any of them.
 */
#include <math.h>

#include "nn/prepare/prepare.h"

struct activation {
    struct prep_change c;
    const struct nn_task *of; /* x is operand k of it */
    uint32_t k;
    struct nn_task *last;
};

/* Operand k of t is x. */
static bool activation_is_x(const struct nn_prep *q, const struct activation *a,
                            const struct nn_task *t, uint32_t k)
{
    return heddle_prep_same(q, t, k, a->of, a->k);
}

/* Operand k of t is v x, or x / (1 / v); *j: x is operand j of the task that says so. */
static struct nn_task *activation_scaled(const struct nn_prep *q, const struct nn_task *t,
                                         uint32_t k, double v, uint32_t *j)
{
    struct nn_task *m = heddle_prep_maker(q, t, k);

    if (m == NULL || !heddle_prep_reads(q, t, k, m))
        return NULL;
    *j = 0;
    if ((heddle_prep_is(m, "Mul") && heddle_prep_is_number(m, 1, v)) ||
        (heddle_prep_is(m, "Div") && heddle_prep_is_number(m, 1, 1 / v)))
        return m;
    *j = 1;
    return heddle_prep_is(m, "Mul") && heddle_prep_is_number(m, 0, v) ? m : NULL;
}

/* From `e` on: products with x and with `by`, each once; by 1: x alone. */
static bool activation_product(struct nn_prep *q, struct activation *a, struct nn_task *e,
                               double by)
{
    bool has_x = false, has_by = by == 1;

    while (!has_x || !has_by) {
        struct nn_task *t = heddle_prep_only(q, e), *m;
        uint32_t j = 0;
        int k;

        if (!has_by && heddle_prep_is(t, "Div") && heddle_prep_reads(q, t, 0, e) &&
            heddle_prep_is_number(t, 1, 1 / by)) {
            has_by = true;
        } else {
            k = heddle_prep_is(t, "Mul") ? heddle_prep_other(q, t, e) : -1;
            if (k < 0)
                return false;
            m = !has_x && !has_by ? activation_scaled(q, t, (uint32_t)k, by, &j) : NULL;
            if (!has_x && activation_is_x(q, a, t, (uint32_t)k)) {
                has_x = true;
            } else if (!has_by && heddle_prep_is_number(t, (uint32_t)k, by)) {
                has_by = true;
            } else if (m != NULL && activation_is_x(q, a, m, j) && heddle_prep_add(&a->c, m)) {
                has_x = has_by = true;
            } else {
                return false;
            }
        }
        if (!heddle_prep_add(&a->c, t))
            return false;
        e = t;
    }
    a->last = e;
    return true;
}

/* 1 + e */
static struct nn_task *activation_plus_one(struct nn_prep *q, struct activation *a,
                                           struct nn_task *e)
{
    struct nn_task *t = heddle_prep_only(q, e);
    const int k = heddle_prep_is(t, "Add") ? heddle_prep_other(q, t, e) : -1;

    return k >= 0 && heddle_prep_is_number(t, (uint32_t)k, 1) && heddle_prep_add(&a->c, e) &&
                   heddle_prep_add(&a->c, t)
               ? t
               : NULL;
}

static bool activation_gelu(struct nn_prep *q, struct activation *a, struct nn_task *e)
{
    struct nn_task *one;

    a->of = activation_scaled(q, e, 0, sqrt(0.5), &a->k);
    if (a->of == NULL || !heddle_prep_add(&a->c, heddle_prep_maker(q, e, 0)))
        return false;
    one = activation_plus_one(q, a, e);
    return one != NULL && activation_product(q, a, one, 0.5);
}

/* Operand k of t is x^3: a power, or two products. */
static bool activation_cube(struct nn_prep *q, struct activation *a, struct nn_task *t, uint32_t k)
{
    struct nn_task *m = heddle_prep_maker(q, t, k), *square;

    if (m == NULL || !heddle_prep_reads(q, t, k, m) || !heddle_prep_add(&a->c, m))
        return false;
    if (heddle_prep_is(m, "Pow") && heddle_prep_is_number(m, 1, 3))
        return activation_is_x(q, a, m, 0);
    if (!heddle_prep_is(m, "Mul"))
        return false;
    for (uint32_t j = 0; j < 2; j++) {
        square = heddle_prep_maker(q, m, j);
        if (activation_is_x(q, a, m, 1 - j) && square != NULL &&
            heddle_prep_reads(q, m, j, square) &&
            ((heddle_prep_is(square, "Mul") && activation_is_x(q, a, square, 0) &&
              activation_is_x(q, a, square, 1)) ||
             (heddle_prep_is(square, "Pow") && heddle_prep_is_number(square, 1, 2) &&
              activation_is_x(q, a, square, 0))))
            return heddle_prep_add(&a->c, square);
    }
    return false;
}

/* x + 0.044715 x^3, the operand of the product with sqrt(2 / pi). */
static bool activation_inner(struct nn_prep *q, struct activation *a, struct nn_task *sum)
{
    for (uint32_t k = 0; k < 2; k++) {
        struct nn_task *m;
        const uint32_t had = a->c.ngone;
        uint32_t j;

        a->of = sum;
        a->k = 1 - k;
        m = activation_scaled(q, sum, k, 0.044715, &j);
        if (m != NULL && heddle_prep_add(&a->c, m) && activation_cube(q, a, m, j))
            return heddle_prep_add(&a->c, sum);
        a->c.ngone = had;
    }
    return false;
}

static bool activation_gelu_tanh(struct nn_prep *q, struct activation *a, struct nn_task *e)
{
    uint32_t j;
    struct nn_task *scaled = activation_scaled(q, e, 0, sqrt(2 / M_PI), &j), *sum, *one;

    sum = scaled != NULL ? heddle_prep_maker(q, scaled, j) : NULL;
    if (!heddle_prep_is(sum, "Add") || !heddle_prep_reads(q, scaled, j, sum) ||
        !heddle_prep_add(&a->c, scaled) || !activation_inner(q, a, sum))
        return false;
    one = activation_plus_one(q, a, e);
    return one != NULL && activation_product(q, a, one, 0.5);
}

static bool activation_swish(struct nn_prep *q, struct activation *a, struct nn_task *e)
{
    a->of = e;
    a->k = 0;
    return heddle_prep_add(&a->c, e) && activation_product(q, a, e, 1);
}

/* clip(x + 3, 0, 6) x / 6 */
static bool activation_clip(struct nn_prep *q, struct activation *a, struct nn_task *e)
{
    struct nn_task *sum = heddle_prep_maker(q, e, 0);
    struct dnn_act act;

    if (!heddle_prep_is(sum, "Add") || !heddle_prep_reads(q, e, 0, sum) ||
        !heddle_prep_act(e, &act) || act.fn != DNN_CLIP || act.p != 0 || act.q != 6)
        return false;
    a->of = sum;
    a->k = heddle_prep_is_number(sum, 1, 3) ? 0 : 1;
    return (a->k == 0 || heddle_prep_is_number(sum, 0, 3)) && heddle_prep_add(&a->c, sum) &&
           heddle_prep_add(&a->c, e) && activation_product(q, a, e, 1.0 / 6);
}

static bool activation_hard_swish(struct nn_prep *q, struct activation *a, struct nn_task *e)
{
    struct dnn_act act;

    return heddle_prep_act(e, &act) && act.fn == DNN_HARD_SIGMOID &&
           fabs((double)act.p - 1.0 / 6) < 1e-7 && act.q == 0.5f && activation_swish(q, a, e);
}

/* Where a pattern begins, and the operator that it is. */
static const struct {
    const char *begins, *op, *how;
    bool (*find)(struct nn_prep *q, struct activation *a, struct nn_task *e);
} patterns[] = {
    {"Erf", "Gelu", "none", activation_gelu},
    {"Tanh", "Gelu", "tanh", activation_gelu_tanh},
    {"Sigmoid", "Swish", NULL, activation_swish},
    {"HardSigmoid", "HardSwish", NULL, activation_hard_swish},
    {"Clip", "HardSwish", NULL, activation_clip},
};

static heddle_status activation_replace(struct nn_prep *q, struct activation *a, const char *op,
                                        const char *how)
{
    struct heddle_onnx_attr *attr;

    a->c.op = heddle_nn_find_op("", op, 24, NULL);
    a->c.in[0] = (struct prep_operand){a->of, a->k};
    a->c.nin = 1;
    if (how != NULL) {
        attr = heddle_prep_keep(q, 1, sizeof(*attr));
        if (attr == NULL)
            return HEDDLE_ENOMEM;
        *attr = (struct heddle_onnx_attr){
            .name = "approximate", .type = HEDDLE_ONNX_ATTR_STRING, .s = {how, 4}};
        a->c.attr = attr;
        a->c.nattrs = 1;
    }
    return heddle_prep_replace(q, &a->c, a->last);
}

static heddle_status activation_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++)
        for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++) {
            struct nn_task *e = prep_task(q, i);
            struct activation a = {.c = {.ngone = 0}};

            if (!heddle_prep_is(e, patterns[k].begins) || !heddle_prep_is_f32(e) ||
                !patterns[k].find(q, &a, e) || !heddle_prep_is_f32(a.last) ||
                !heddle_prep_closed(q, &a.c, a.last) ||
                !heddle_nn_same_shape(&a.last->out[0].shape, &a.of->in[a.k].shape))
                continue;
            HEDDLE_TRY(activation_replace(q, &a, patterns[k].op, patterns[k].how));
        }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_activation = {
    "activation", "GELU, Swish and HardSwish in parts become one operator", activation_run};
