/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rotary: rotary positions written in their parts, along the last axis of 2 h numbers.
 *
 *     x cos + concat(-x[h ..], x[.. h]) sin
 *
 * cos and sin have a number for each of the 2 h, and may be broadcast in the other dimensions. A
 * transpose of x that leaves the last axis where it is, and that nobody else reads, joins.
 */
#include <string.h>

#include "base/alloc.h"
#include "nn/prepare/prepare.h"

/* --- the operator -------------------------------------------------------------------- */

struct rotary_own {
    int perm[NN_DIMS]; /* dimension d of the result is perm[d] of operand 0 */
};

/* Rows of the result, and where their operands are: steps in floats. */
struct rotary_step {
    size_t rows, half;
    int rank; /* but for the last axis */
    size_t dim[NN_DIMS];
    size_t x[NN_DIMS], cos[NN_DIMS], sin[NN_DIMS];
};

static void rotary_prepare(const struct nn_call *c, struct rotary_step *r)
{
    const struct rotary_own *own = c->node->own;
    const struct nn_shape *s = &c->out[0].shape, *from = &c->in[0].shape;
    int64_t cos[NN_DIMS], sin[NN_DIMS];

    heddle_nn_broadcast_steps(&c->in[1].shape, s, cos);
    heddle_nn_broadcast_steps(&c->in[2].shape, s, sin);
    *r = (struct rotary_step){.rows = 1, .rank = s->rank - 1};
    r->half = (size_t)s->dim[r->rank] / 2;
    for (int d = 0; d < r->rank; d++) {
        r->dim[d] = (size_t)s->dim[d];
        r->rows *= r->dim[d];
        r->x[d] = heddle_nn_count_range(from, own->perm[d] + 1, from->rank);
        r->cos[d] = (size_t)cos[d];
        r->sin[d] = (size_t)sin[d];
    }
}

/* Where row `row` of the operands begins. */
static void rotary_at(const struct rotary_step *r, size_t row, size_t *x, size_t *cos, size_t *sin)
{
    *x = *cos = *sin = 0;
    for (int d = r->rank; d-- > 0; row /= r->dim[d]) {
        const size_t i = row % r->dim[d];

        *x += i * r->x[d];
        *cos += i * r->cos[d];
        *sin += i * r->sin[d];
    }
}

static void rotary_row(size_t half, const float *restrict x, const float *restrict cos,
                       const float *restrict sin, float *restrict y)
{
    for (size_t i = 0; i < half; i++)
        y[i] = x[i] * cos[i] - x[half + i] * sin[i];
    for (size_t i = 0; i < half; i++)
        y[half + i] = x[half + i] * cos[half + i] + x[i] * sin[half + i];
}

static heddle_status rotary_run_step(const void *state, const struct nn_args *a, size_t part,
                                     size_t nparts, void *scratch)
{
    const struct rotary_step *r = state;
    const size_t end = r->rows * (part + 1) / nparts;

    (void)scratch;
    for (size_t row = r->rows * part / nparts; row < end; row++) {
        size_t x, cos, sin;

        rotary_at(r, row, &x, &cos, &sin);
        rotary_row(r->half, (const float *)a->in[0] + x, (const float *)a->in[1] + cos,
                   (const float *)a->in[2] + sin, (float *)a->out[0] + row * 2 * r->half);
    }
    return HEDDLE_OK;
}

static void rotary_destroy(const struct heddle_allocator *a, void *state)
{
    heddle_free(a, state, sizeof(struct rotary_step));
}

static heddle_status rotary_fast(struct nn_call *c, struct nn_step *out)
{
    struct rotary_step *r = heddle_nn_alloc(c, sizeof(*r));

    if (r == NULL)
        return HEDDLE_ENOMEM;
    rotary_prepare(c, r);
    *out = (struct nn_step){
        .state = r, .parts = r->rows, .run = rotary_run_step, .destroy = rotary_destroy};
    return HEDDLE_OK;
}

static heddle_status rotary_ref(struct nn_call *c)
{
    const float *in[3] = {c->in[0].data, c->in[1].data, c->in[2].data};
    float *y = c->out[0].data;
    struct rotary_step r;

    rotary_prepare(c, &r);
    for (size_t row = 0; row < r.rows; row++, y += 2 * r.half) {
        size_t x, cos, sin;

        rotary_at(&r, row, &x, &cos, &sin);
        for (size_t i = 0; i < 2 * r.half; i++) {
            const size_t other = i < r.half ? i + r.half : i - r.half;
            const double v = (double)in[0][x + other] * (double)in[2][sin + i];

            y[i] = (float)((double)in[0][x + i] * (double)in[1][cos + i] + (i < r.half ? -v : v));
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost rotary_cost(const struct nn_call *c)
{
    struct heddle_cost cost = {.flops = 3 * (double)heddle_nn_count(&c->out[0].shape),
                               .bytes = (double)heddle_nn_bytes(&c->out[0])};

    for (uint32_t i = 0; i < c->nin; i++)
        cost.bytes += (double)heddle_nn_bytes(&c->in[i]);
    return cost;
}

static const struct nn_op rotary_op = {.name = "FusedRotary",
                                       .nin_min = 3,
                                       .nin_max = 3,
                                       .ref = rotary_ref,
                                       .fast = rotary_fast,
                                       .cost = rotary_cost};

/* --- the pass ------------------------------------------------------------------------ */

struct rotary {
    struct prep_change c;
    struct nn_task *add, *cos, *sin; /* the sum, and its products */
    uint32_t cos_k, sin_k;           /* which operands of the products are cos and sin */
    struct nn_task *low, *high;      /* the halves of x */
    struct rotary_own own;
};

/* The task that makes operand k of t, in the shape that t sees, when it is this operator. */
static struct nn_task *rotary_maker(const struct nn_prep *q, const struct nn_task *t, uint32_t k,
                                    const char *op)
{
    struct nn_task *m = heddle_prep_maker(q, t, k);

    return heddle_prep_is(m, op) && heddle_prep_reads(q, t, k, m) ? m : NULL;
}

/* Integer i of operand k, a constant list; or_else where the operand is absent. */
static bool rotary_integer(const struct nn_task *t, uint32_t k, size_t i, int64_t or_else,
                           int64_t *out)
{
    *out = or_else;
    if (k >= t->node->nin || t->in[k].kind == NN_ABSENT)
        return true;
    if (t->in[k].data == NULL || i >= heddle_nn_count(&t->in[k].shape))
        return false;
    *out = heddle_nn_get_i64(t->in[k].type, t->in[k].data, i);
    return true;
}

/* Half of the last axis, from `start` on, and all of the other dimensions, forwards. */
static bool rotary_is_half(const struct nn_task *t, int64_t start)
{
    const struct nn_shape *s = &t->in[0].shape;
    const int last = s->rank - 1;
    struct nn_shape half = *s;
    bool is_said = false;

    if (t->node->nin < 3 || s->rank < 2)
        return false;
    half.dim[last] /= 2;
    if (!heddle_nn_same_shape(&t->out[0].shape, &half))
        return false;
    for (size_t i = 0; i < heddle_nn_count(&t->in[1].shape); i++) {
        int64_t from, axis, step;

        if (!rotary_integer(t, 1, i, 0, &from) || !rotary_integer(t, 3, i, (int64_t)i, &axis) ||
            !rotary_integer(t, 4, i, 1, &step) || step != 1)
            return false;
        if (axis != last && axis != -1)
            continue;
        if ((from < 0 ? from + s->dim[last] : from) != start)
            return false;
        is_said = true;
    }
    return is_said;
}

/* concat(-x[h ..], x[.. h]): its parts join. */
static bool rotary_is_turned(struct nn_prep *q, struct rotary *r, struct nn_task *concat)
{
    const struct nn_call c = {.node = concat != NULL ? concat->node : NULL};
    struct nn_task *neg;
    int64_t axis;
    int rank;

    if (concat == NULL || concat->node->nin != 2 || concat->out[0].shape.rank < 2)
        return false;
    rank = concat->out[0].shape.rank;
    axis = heddle_nn_int(&c, "axis", 0);
    neg = rotary_maker(q, concat, 0, "Neg");
    r->low = rotary_maker(q, concat, 1, "Slice");
    r->high = neg != NULL ? rotary_maker(q, neg, 0, "Slice") : NULL;
    if (r->low == NULL || r->high == NULL || (axis != -1 && axis != rank - 1) ||
        concat->out[0].shape.dim[rank - 1] % 2 != 0 || !heddle_prep_same(q, r->low, 0, r->high, 0))
        return false;
    return heddle_nn_same_shape(&r->low->in[0].shape, &concat->out[0].shape) &&
           rotary_is_half(r->low, 0) &&
           rotary_is_half(r->high, concat->out[0].shape.dim[rank - 1] / 2) &&
           heddle_prep_add(&r->c, concat) && heddle_prep_add(&r->c, neg) &&
           heddle_prep_add(&r->c, r->low) && heddle_prep_add(&r->c, r->high);
}

/* Which operand of `sin` is turned, and which one of `cos` is what was turned. */
static bool rotary_products(struct nn_prep *q, struct rotary *r)
{
    r->c.ngone = 0;
    if (r->cos == NULL || r->sin == NULL || r->cos == r->sin || !heddle_prep_add(&r->c, r->add) ||
        !heddle_prep_add(&r->c, r->cos) || !heddle_prep_add(&r->c, r->sin))
        return false;
    r->sin_k = 1;
    if (!rotary_is_turned(q, r, rotary_maker(q, r->sin, 0, "Concat"))) {
        r->sin_k = 0;
        if (!rotary_is_turned(q, r, rotary_maker(q, r->sin, 1, "Concat")))
            return false;
    }
    r->cos_k = heddle_prep_same(q, r->cos, 0, r->low, 0) ? 1 : 0;
    return heddle_prep_same(q, r->cos, 1 - r->cos_k, r->low, 0);
}

/* cos or sin: as long as the last axis, and no result of the group. */
static bool rotary_factor(const struct nn_prep *q, const struct rotary *r, const struct nn_task *t,
                          uint32_t k)
{
    const struct nn_shape *s = &r->low->in[0].shape, *f = &t->in[k].shape;
    const struct nn_task *maker = heddle_prep_maker(q, t, k);

    for (uint32_t i = 0; i < r->c.ngone; i++)
        if (r->c.gone[i] == maker)
            return false;
    return f->rank > 0 && f->dim[f->rank - 1] == s->dim[s->rank - 1] &&
           heddle_nn_same_shape(&t->out[0].shape, s);
}

/* A transpose that makes x joins; else operand 0 is x as it is. */
static void rotary_transpose(struct nn_prep *q, struct rotary *r)
{
    struct nn_task *t = rotary_maker(q, r->low, 0, "Transpose");
    const struct nn_call c = {.node = t != NULL ? t->node : NULL};
    const int rank = r->low->in[0].shape.rank;
    const int64_t *perm;
    bool is_plain = true; /* no axis is counted from the end, and the last one stays */
    size_t n = 0;

    r->c.in[0] = (struct prep_operand){r->low, 0};
    for (int d = 0; d < rank; d++)
        r->own.perm[d] = d;
    perm = t != NULL ? heddle_nn_ints(&c, "perm", &n) : NULL;
    for (size_t d = 0; d < n; d++)
        is_plain &= perm[d] >= 0 && (d + 1 < n || perm[d] == rank - 1);
    if (perm == NULL || n != (size_t)rank || !is_plain || !heddle_prep_add(&r->c, t))
        return;
    if (!heddle_prep_closed(q, &r->c, r->add) || !rotary_factor(q, r, r->cos, r->cos_k) ||
        !rotary_factor(q, r, r->sin, r->sin_k)) {
        r->c.ngone--;
        return;
    }
    r->c.in[0] = (struct prep_operand){t, 0};
    for (int d = 0; d < rank; d++)
        r->own.perm[d] = (int)perm[d];
}

static heddle_status rotary_replace(struct nn_prep *q, struct rotary *r)
{
    struct rotary_own *own = heddle_prep_keep(q, 1, sizeof(*own));

    if (own == NULL)
        return HEDDLE_ENOMEM;
    rotary_transpose(q, r);
    *own = r->own;
    r->c.in[1] = (struct prep_operand){r->cos, r->cos_k};
    r->c.in[2] = (struct prep_operand){r->sin, r->sin_k};
    r->c.nin = 3;
    r->c.op = &rotary_op;
    r->c.own = own;
    return heddle_prep_replace(q, &r->c, r->add);
}

static heddle_status rotary_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);

        if (!heddle_prep_is(t, "Add") || !heddle_prep_is_f32(t))
            continue;
        for (uint32_t k = 0; k < 2; k++) {
            struct rotary r = {.add = t,
                               .cos = rotary_maker(q, t, k, "Mul"),
                               .sin = rotary_maker(q, t, 1 - k, "Mul")};

            if (!rotary_products(q, &r) || !heddle_prep_closed(q, &r.c, t) ||
                !rotary_factor(q, &r, r.cos, r.cos_k) || !rotary_factor(q, &r, r.sin, r.sin_k))
                continue;
            HEDDLE_TRY(rotary_replace(q, &r));
            break;
        }
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_rotary = {
    "rotary", "rotary positions in parts become one operator", rotary_run};
