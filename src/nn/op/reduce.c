/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce: sums and the like along axes. A row says how numbers are added up, and what becomes of
 * the sum. The axes are operand 1 since opset 18 (ReduceSum: 13), an attribute before. No axes:
 * all, or none where `noop_with_empty_axes` says so (each element is then a sum of one).
 *
 * Cost  two passes: LogSumExp needs the largest element first.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "nn/op/step.h"

struct reduce {
    double (*add)(double sum, double x, double max);
    double (*end)(double sum, double n, double max); /* NULL: the sum */
    double first;
    int64_t (*iadd)(int64_t sum, int64_t x, bool is_signed); /* NULL: integers go through double */
};

static heddle_status reduce_mask(struct nn_call *c, uint32_t *mask, bool *is_known)
{
    const int rank = c->in[0].shape.rank;
    int64_t list[NN_DIMS];
    const int64_t *v = list;
    size_t n;
    int axis;

    *mask = 0;
    *is_known = true;
    if (c->node->op->nin_max > 1)
        HEDDLE_TRY(heddle_nn_list(c, 1, list, NN_DIMS, &n));
    else
        v = heddle_nn_ints(c, "axes", &n);
    if (n == SIZE_MAX) {
        *is_known = false;
        return HEDDLE_OK;
    }
    for (size_t i = 0; i < n; i++) {
        HEDDLE_TRY(heddle_nn_axis(c, v[i], rank, &axis));
        *mask |= 1u << axis;
    }
    if (n == 0 && heddle_nn_int(c, "noop_with_empty_axes", 0) == 0)
        *mask = (1u << rank) - 1;
    return HEDDLE_OK;
}

static heddle_status reduce_shape(struct nn_call *c)
{
    const bool keep = heddle_nn_int(c, "keepdims", 1) != 0;
    const struct nn_shape *in = &c->in[0].shape;
    struct nn_shape out = {.rank = -1};
    bool is_known = false;
    uint32_t mask;

    if (in->rank >= 0)
        HEDDLE_TRY(reduce_mask(c, &mask, &is_known));
    if (is_known) {
        out.rank = 0;
        for (int d = 0; d < in->rank; d++)
            if ((mask >> d & 1) == 0)
                out.dim[out.rank++] = in->dim[d];
            else if (keep)
                out.dim[out.rank++] = 1;
    } else if (in->rank >= 0 && keep) {
        out.rank = in->rank;
        for (int d = 0; d < in->rank; d++)
            out.dim[d] = NN_UNKNOWN;
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* Walks over all elements; `to` steps of the result are 0 along reduced axes. */
struct walk {
    const struct nn_shape *in;
    size_t step[NN_DIMS], at[NN_DIMS], to;
};

static void walk_begin(struct walk *w, const struct nn_shape *in, uint32_t mask)
{
    size_t n = 1;

    *w = (struct walk){.in = in};
    for (int d = in->rank - 1; d >= 0; d--) {
        w->step[d] = (mask >> d & 1) != 0 ? 0 : n;
        n *= (mask >> d & 1) != 0 ? 1 : (size_t)in->dim[d];
    }
}

static void walk_next(struct walk *w)
{
    for (int d = w->in->rank - 1; d >= 0; d--) {
        w->to += w->step[d];
        if (++w->at[d] < (size_t)w->in->dim[d])
            return;
        w->to -= w->step[d] * w->at[d];
        w->at[d] = 0;
    }
}

static heddle_status reduce_ints(struct nn_call *c, const struct reduce *r, uint32_t mask)
{
    const struct nn_value *x = &c->in[0], *y = &c->out[0];
    const bool is_signed = (NN_M(x->type) & NN_M_SINT) != 0;
    const size_t n = heddle_nn_count(&x->shape), m = heddle_nn_count(&y->shape);
    int64_t *sum = heddle_nn_temp(c, m, sizeof(*sum));
    bool *has = heddle_nn_temp(c, m, sizeof(*has));
    struct walk w;

    if (sum == NULL || has == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < m; i++)
        sum[i] = (int64_t)(isinf(r->first) ? 0 : r->first);
    walk_begin(&w, &x->shape, mask);
    for (size_t i = 0; i < n; i++, walk_next(&w)) {
        const int64_t v = heddle_nn_get_i64(x->type, x->data, i);

        /* The largest of none is no number: the first element begins. */
        sum[w.to] = isinf(r->first) && !has[w.to] ? v : r->iadd(sum[w.to], v, is_signed);
        has[w.to] = true;
    }
    for (size_t i = 0; i < m; i++)
        heddle_nn_put_i64(y->type, y->data, i, sum[i]);
    return HEDDLE_OK;
}

static heddle_status reduce_ref(struct nn_call *c)
{
    const struct reduce *r = c->node->op->family;
    const struct nn_value *x = &c->in[0], *y = &c->out[0];
    const size_t n = heddle_nn_count(&x->shape), m = heddle_nn_count(&y->shape);
    double *sum = heddle_nn_temp(c, m, sizeof(*sum)), *max = heddle_nn_temp(c, m, sizeof(*max));
    struct walk w;
    uint32_t mask;
    bool is_known;

    if (sum == NULL || max == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(reduce_mask(c, &mask, &is_known));
    if (r->iadd != NULL && (NN_M(x->type) & (NN_M_INT | NN_M(NN_BOOL))) != 0)
        return reduce_ints(c, r, mask);
    for (size_t i = 0; i < m; i++) {
        sum[i] = r->first;
        max[i] = -(double)INFINITY;
    }
    walk_begin(&w, &x->shape, mask);
    for (size_t i = 0; i < n; i++, walk_next(&w)) {
        const double v = heddle_nn_get_f64(x->type, x->data, i);

        max[w.to] = v > max[w.to] ? v : max[w.to];
    }
    walk_begin(&w, &x->shape, mask);
    for (size_t i = 0; i < n; i++, walk_next(&w))
        sum[w.to] = r->add(sum[w.to], heddle_nn_get_f64(x->type, x->data, i), max[w.to]);
    for (size_t i = 0; i < m; i++)
        heddle_nn_put_f64(
            y->type, y->data, i,
            r->end == NULL ? sum[i] : r->end(sum[i], m > 0 ? (double)n / (double)m : 0, max[i]));
    return HEDDLE_OK;
}

#define ADD(name, expr)                                                                            \
    static double add_##name(double s, double x, double max)                                       \
    {                                                                                              \
        (void)max;                                                                                 \
        return expr;                                                                               \
    }
#define END(name, expr)                                                                            \
    static double end_##name(double s, double n, double max)                                       \
    {                                                                                              \
        (void)n;                                                                                   \
        (void)max;                                                                                 \
        return expr;                                                                               \
    }
#define INT(name, expr)                                                                            \
    static int64_t int_##name(int64_t s, int64_t x, bool is_signed)                                \
    {                                                                                              \
        (void)is_signed;                                                                           \
        return expr;                                                                               \
    }
ADD(sum, s + x)
ADD(l1, s + fabs(x))
ADD(square, s + x * x)
ADD(prod, s *x)
ADD(max, x > s || isnan(x) ? x : s)
ADD(min, x < s || isnan(x) ? x : s)
ADD(exp, s + (isinf(max) ? exp(x) : exp(x - max)))
END(mean, s / n)
END(sqrt, sqrt(s))
END(log, log(s))
END(log_exp, isinf(max) ? log(s) : log(s) + max)
INT(sum, (int64_t)((uint64_t)s + (uint64_t)x))
INT(prod, (int64_t)((uint64_t)s *(uint64_t)x))
INT(max, (is_signed ? x > s : (uint64_t)x > (uint64_t)s) ? x : s)
INT(min, (is_signed ? x < s : (uint64_t)x < (uint64_t)s) ? x : s)

/* --- f32 along the last axes -------------------------------------------------------------- */

enum { LANES = 16, BLOCK = 1024 };

/* Rows of n adjacent numbers, each in LANES sums of every LANES-th one: the order does not depend
 * on the pieces. */
struct rows {
    size_t rows, n;
    bool is_max;
    float by;
};

static float row_sum(const float *x, size_t n)
{
    double sum = 0; /* of blocks: the error does not grow with the row */

    for (size_t i = 0; i < n;) {
        const size_t end = n - i > BLOCK ? i + BLOCK : n;
        float lane[LANES] = {0};

        for (; i + LANES <= end; i += LANES)
            for (size_t k = 0; k < LANES; k++)
                lane[k] += x[i + k];
        for (; i < end; i++)
            sum += (double)x[i];
        for (size_t k = 0; k < LANES; k++)
            sum += (double)lane[k];
    }
    return (float)sum;
}

static float row_max(const float *x, size_t n)
{
    float max = -INFINITY;

    for (size_t i = 0; i < n; i++)
        max = x[i] > max || isnan(x[i]) ? x[i] : max;
    return max;
}

static heddle_status rows_run(const void *state, const struct nn_args *a, size_t part,
                              size_t nparts, void *scratch)
{
    const struct rows *r = state;
    const float *x = a->in[0];
    float *y = a->out[0];

    (void)scratch;
    for (size_t i = r->rows * part / nparts; i < r->rows * (part + 1) / nparts; i++)
        y[i] = r->is_max ? row_max(x + i * r->n, r->n) : row_sum(x + i * r->n, r->n) * r->by;
    return HEDDLE_OK;
}

static void rows_destroy(const struct heddle_allocator *a, void *state)
{
    heddle_free(a, state, sizeof(struct rows));
}

static heddle_status reduce_fast(struct nn_call *c, struct nn_step *out)
{
    const struct reduce *f = c->node->op->family;
    const struct nn_shape *s = &c->in[0].shape;
    const bool is_max = f->add == add_max && f->end == NULL,
               is_sum = f->add == add_sum && (f->end == NULL || f->end == end_mean);
    struct rows *r;
    uint32_t mask;
    bool is_known;
    int axis = s->rank;

    if ((!is_max && !is_sum) || c->in[0].type != NN_F32 || heddle_nn_count(s) == 0)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(reduce_mask(c, &mask, &is_known));
    while (axis > 0 && (mask >> (axis - 1) & 1) != 0)
        axis--;
    if (!is_known || (mask & ((1u << axis) - 1)) != 0)
        return HEDDLE_ENOSYS;
    r = heddle_nn_alloc(c, sizeof(*r));
    if (r == NULL)
        return HEDDLE_ENOMEM;
    *r = (struct rows){.rows = heddle_nn_count_range(s, 0, axis),
                       .n = heddle_nn_count_range(s, axis, s->rank),
                       .is_max = is_max};
    r->by = f->end == end_mean ? 1 / (float)r->n : 1;
    *out = (struct nn_step){
        .state = r, .parts = r->rows < 64 ? r->rows : 64, .run = rows_run, .destroy = rows_destroy};
    return HEDDLE_OK;
}
#undef ADD
#undef END
#undef INT

static const struct nn_attr_rule attrs[] = {
    {"keepdims", NN_INT, false}, {"noop_with_empty_axes", NN_INT, false}, {0}};
static const struct nn_attr_rule old_attrs[] = {
    {"keepdims", NN_INT, false}, {"axes", NN_INTS, false}, {0}};

#define ROWS(nm, from, ...)                                                                        \
    {.name = nm,                                                                                   \
     .since = from,                                                                                \
     .nin_min = 1,                                                                                 \
     .nin_max = 2,                                                                                 \
     .type = {NN_M_NUM | NN_M(NN_BOOL), NN_M_INDEX},                                               \
     .attrs = attrs,                                                                               \
     .shape = reduce_shape,                                                                        \
     .ref = reduce_ref,                                                                            \
     .fast = reduce_fast,                                                                          \
     .family = &(const struct reduce){__VA_ARGS__}},                                               \
    {                                                                                              \
        .name = nm, .since = 1, .nin_min = 1, .nin_max = 1, .type = {NN_M_NUM},                    \
        .attrs = old_attrs, .shape = reduce_shape, .ref = reduce_ref, .fast = reduce_fast,         \
        .family = &(const struct reduce)                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct nn_op heddle_nn_op_reduce[] = {
    ROWS("ReduceSum", 13, add_sum, NULL, 0, int_sum),
    ROWS("ReduceMean", 18, add_sum, end_mean, 0, NULL),
    ROWS("ReduceMax", 18, add_max, NULL, -INFINITY, int_max),
    ROWS("ReduceMin", 18, add_min, NULL, INFINITY, int_min),
    ROWS("ReduceProd", 18, add_prod, NULL, 1, int_prod),
    ROWS("ReduceL1", 18, add_l1, NULL, 0, NULL),
    ROWS("ReduceL2", 18, add_square, end_sqrt, 0, NULL),
    ROWS("ReduceSumSquare", 18, add_square, NULL, 0, NULL),
    ROWS("ReduceLogSum", 18, add_sum, end_log, 0, NULL),
    ROWS("ReduceLogSumExp", 18, add_exp, end_log_exp, 0, NULL),
    {0},
};
