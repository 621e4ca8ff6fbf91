/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attention: softmax(scale Q K' + mask) V in its parts becomes one operator.
 *
 *     MatMul, [Mul or Div by a number], [Add a mask], Softmax, MatMul, [Transpose of the heads]
 *
 * Operands are read where they are: the heads of a matrix of batch x positions x (heads elements)
 * are a view of it, as are parts that Split gives and heads that Expand repeats. A view is
 * followed back through operators that move elements alone, as long as it has strides.
 */
#include <math.h>
#include <string.h>

#include "nn/prepare/prepare.h"

/* --- views --------------------------------------------------------------------------- */

enum { VIEW_DEPTH = 8 };

/* Elements of operand k of a task, in a shape and with steps. */
struct view {
    const struct nn_task *of;
    uint32_t k;
    size_t from;
    struct nn_shape shape;
    size_t step[NN_DIMS]; /* element i of a dimension is i / rep steps behind the first one */
    size_t rep[NN_DIMS];
};

/* All of the operand, dense. */
static struct view view_dense(const struct nn_task *t, uint32_t k)
{
    struct view v = {.of = t, .k = k, .shape = t->in[k].shape};
    size_t step = 1;

    for (int d = v.shape.rank - 1; d >= 0; d--) {
        v.step[d] = step;
        v.rep[d] = 1;
        step *= (size_t)v.shape.dim[d];
    }
    return v;
}

/* Joins dimensions from i on until they have `want` elements. A dimension of step 0 behind another
 * one makes its indices repeat. */
static bool view_join(const struct view *v, int *i, size_t want, size_t *have, size_t *step,
                      size_t *rep)
{
    while (*have < want) {
        if (*i == v->shape.rank || *rep != 1 || v->rep[*i] != 1)
            return false;
        if (*step != v->step[*i] * (size_t)v->shape.dim[*i]) {
            if (v->step[*i] != 0 || *have * (size_t)v->shape.dim[*i] != want)
                return false;
            *rep = (size_t)v->shape.dim[*i];
        } else {
            *step = v->step[*i];
        }
        *have *= (size_t)v->shape.dim[(*i)++];
    }
    return true;
}

/* Dimensions of one element go. */
static void view_squeeze(struct view *v)
{
    int n = 0;

    for (int d = 0; d < v->shape.rank; d++) {
        if (v->shape.dim[d] == 1)
            continue;
        v->shape.dim[n] = v->shape.dim[d];
        v->step[n] = v->step[d];
        v->rep[n++] = v->rep[d];
    }
    v->shape.rank = n;
}

/* The same elements in another shape, where steps can say it: dimensions are cut, and such as
 * follow one another in memory joined. */
static bool view_reshape(struct view *v, const struct nn_shape *to)
{
    struct view out = *v;
    int i = 0, j = 0;

    view_squeeze(v);
    out.shape = *to;
    while (j < to->rank) {
        const int first = j;
        size_t have, want = (size_t)to->dim[j++], step, rep;

        out.step[first] = 0;
        out.rep[first] = 1;
        if (want == 1)
            continue;
        if (i == v->shape.rank)
            return false;
        step = v->step[i];
        rep = v->rep[i];
        have = (size_t)v->shape.dim[i++];
        while (have != want) {
            if (have < want) {
                if (!view_join(v, &i, want, &have, &step, &rep))
                    return false;
            } else {
                if (j == to->rank || rep != 1)
                    return false;
                want *= (size_t)to->dim[j++];
            }
        }
        if (rep != 1 && j > first + 1)
            return false;
        for (int d = j; d-- > first; step *= (size_t)to->dim[d]) {
            out.step[d] = step;
            out.rep[d] = 1;
        }
        out.rep[first] = rep;
    }
    *v = out;
    return true;
}

static bool view_transpose(struct view *v, const struct nn_task *t)
{
    const struct nn_call c = {.node = t->node};
    const struct view from = *v;
    const int rank = from.shape.rank;
    size_t n;
    const int64_t *perm = heddle_nn_ints(&c, "perm", &n);

    for (int d = 0; d < rank; d++) {
        const int at = perm == NULL ? rank - 1 - d : (int)(perm[d] < 0 ? perm[d] + rank : perm[d]);

        v->shape.dim[d] = from.shape.dim[at];
        v->step[d] = from.step[at];
        v->rep[d] = from.rep[at];
    }
    return true;
}

static bool view_expand(struct view *v, const struct nn_shape *to)
{
    const struct view from = *v;
    const int more = to->rank - from.shape.rank;

    v->shape = *to;
    for (int d = 0; d < to->rank; d++) {
        const bool is_one = d < more || from.shape.dim[d - more] == 1;

        v->step[d] = is_one ? 0 : from.step[d - more];
        v->rep[d] = is_one ? 1 : from.rep[d - more];
    }
    return true;
}

/* Which part of its operand a result of Split is. */
static bool view_split(struct view *v, const struct nn_task *t, uint32_t root,
                       const struct nn_prep *q)
{
    const struct nn_call c = {.node = t->node};
    const int rank = t->in[0].shape.rank;
    const int64_t said = heddle_nn_int(&c, "axis", 0);
    const int axis = (int)(said < 0 ? said + rank : said);

    for (uint32_t i = 0; i < t->node->nout; i++) {
        if (t->out_value[i] != NN_NONE && q->p->root[t->out_value[i]] == root) {
            v->shape = t->out[i].shape;
            return true;
        }
        v->from += (size_t)t->out[i].shape.dim[axis] * v->step[axis];
    }
    return false;
}

/* Operand k of t as a view of something before it, or of itself. */
static struct view view_of(const struct nn_prep *q, const struct nn_task *t, uint32_t k,
                           unsigned depth)
{
    const struct view own = view_dense(t, k);
    const uint32_t root = heddle_prep_root(q, t->in_value[k]);
    const struct nn_task *m = prep_task(q, q->maker[root]);
    struct view v = own;
    bool is_view = false;

    if (depth == 0 || m == NULL || m->node->nin == 0 || m->in[0].data != NULL ||
        m->in[0].shape.rank < 1)
        return own;
    v = view_of(q, m, 0, depth - 1);
    if (heddle_prep_is(m, "Transpose"))
        is_view = view_transpose(&v, m);
    else if (heddle_prep_is(m, "Expand"))
        is_view = view_expand(&v, &m->out[0].shape);
    else if (strcmp(m->node->op->name, "Split") == 0 && m->node->op->domain == NULL)
        is_view = view_split(&v, m, root, q);
    return is_view && view_reshape(&v, &t->in[k].shape) ? v : own;
}

/* --- the pattern --------------------------------------------------------------------- */

struct attention {
    struct prep_change c;
    struct nn_task *scores, *masked, *softmax, *product, *last;
    int mask; /* operand of `masked`; -1: none */
    struct view q, k, v, m;
    struct dnn_attention d;
};

/* What the row's functions read: where the operands begin, and the description. */
struct attention_own {
    struct dnn_attention d;
    size_t from[4];
};

/* From the softmax back: mask, scale, the first product. */
static bool attention_back(struct nn_prep *q, struct attention *a)
{
    const struct nn_call c = {.node = a->softmax->node};
    const int rank = a->softmax->in[0].shape.rank;
    const int64_t axis = heddle_nn_int(&c, "axis", a->softmax->node->op->since < 13 ? 1 : -1);
    struct nn_task *t = heddle_prep_inner(q, a->softmax, 0);
    double by = 1;
    int at = 0;

    a->mask = -1;
    a->d.scale = 1;
    if (rank < 3 || rank > 4 || (axis != -1 && axis != rank - 1))
        return false;
    if (heddle_prep_is(t, "Add")) {
        for (int k = 0; k < 2 && a->mask < 0; k++) {
            struct nn_task *m = heddle_prep_inner(q, t, (uint32_t)k);

            if (heddle_prep_is(m, "MatMul") ||
                ((heddle_prep_is(m, "Mul") || heddle_prep_is(m, "Div")) &&
                 (heddle_prep_number(m, 1, &by) || heddle_prep_number(m, 0, &by)))) {
                a->mask = 1 - k;
                a->masked = t;
            }
        }
        if (a->mask < 0 || !heddle_prep_add(&a->c, t))
            return false;
        t = heddle_prep_inner(q, t, 1 - (uint32_t)a->mask);
    }
    if (heddle_prep_is(t, "Mul") || heddle_prep_is(t, "Div")) {
        at = heddle_prep_is(t, "Mul") && heddle_prep_number(t, 0, &by) ? 1 : 0;
        if ((at == 0 && !heddle_prep_number(t, 1, &by)) || !heddle_prep_add(&a->c, t))
            return false;
        a->d.scale = (float)(heddle_prep_is(t, "Mul") ? by : 1 / by);
        t = heddle_prep_inner(q, t, (uint32_t)at);
    }
    a->scores = t;
    return heddle_prep_is(t, "MatMul") && heddle_prep_is_f32(t) && heddle_prep_add(&a->c, t) &&
           heddle_nn_same_shape(&t->out[0].shape, &a->softmax->in[0].shape) && a->d.scale != 0 &&
           isfinite(a->d.scale);
}

/* From the softmax on: the second product, and the heads back behind the positions. */
static bool attention_on(struct nn_prep *q, struct attention *a)
{
    struct nn_task *t = heddle_prep_only(q, a->softmax), *turn;
    struct view v;

    if (!heddle_prep_add(&a->c, a->softmax) || !heddle_prep_is(t, "MatMul") ||
        !heddle_prep_reads(q, t, 0, a->softmax) || !heddle_prep_add(&a->c, t) ||
        !heddle_prep_is_f32(t))
        return false;
    a->product = a->last = t;
    turn = heddle_prep_only(q, t);
    if (heddle_prep_is(turn, "Transpose") && heddle_prep_reads(q, turn, 0, t) &&
        turn->in[0].shape.rank == 4) {
        v = view_dense(turn, 0);
        (void)view_transpose(&v, turn);
        if (v.step[0] == view_dense(turn, 0).step[0] && v.step[1] == view_dense(turn, 0).step[2] &&
            v.step[3] == 1 && heddle_prep_add(&a->c, turn))
            a->last = turn;
    }
    return true;
}

/* Batch, head and position of a view of three or four dimensions. */
static struct dnn_heads attention_heads(const struct view *v, int pos)
{
    const int rank = v->shape.rank;

    return (struct dnn_heads){
        .batch = v->step[0], .head = rank == 4 ? v->step[1] : 0, .pos = v->step[pos]};
}

/* Are elements of dimension d adjacent? Only heads may repeat, each `rep` times. */
static bool attention_can(const struct view *v, int d, size_t rep)
{
    const int rank = v->shape.rank;

    for (int i = 0; i < rank; i++)
        if (v->rep[i] != (i == 1 && rank == 4 ? rep : 1))
            return false;
    return v->shape.dim[d] == 1 || v->step[d] == 1;
}

/* Sizes, and where Q, K and V are: some of their views are more than the kernel can do. */
static bool attention_operands(struct nn_prep *q, struct attention *a)
{
    struct dnn_attention *d = &a->d;
    const struct nn_shape *sq = &a->scores->in[0].shape, *sk = &a->scores->in[1].shape,
                          *sv = &a->product->in[1].shape;
    const int r = sq->rank;
    size_t rep;

    if (sk->rank != r || sv->rank != r)
        return false;
    for (int i = 0; i < r - 2; i++)
        if (sq->dim[i] != sk->dim[i] || sq->dim[i] != sv->dim[i])
            return false;
    d->size = sizeof(*d);
    d->batch = (size_t)sq->dim[0];
    d->heads = r == 4 ? (size_t)sq->dim[1] : 1;
    d->q_len = (size_t)sq->dim[r - 2];
    d->dim = (size_t)sq->dim[r - 1];
    d->kv_len = (size_t)sk->dim[r - 1];
    d->dim_v = (size_t)sv->dim[r - 1];
    if (d->batch * d->heads * d->q_len * d->dim * d->kv_len * d->dim_v == 0)
        return false;
    a->q = view_of(q, a->scores, 0, VIEW_DEPTH);
    a->k = view_of(q, a->scores, 1, VIEW_DEPTH);
    a->v = view_of(q, a->product, 1, VIEW_DEPTH);
    rep = r == 4 ? a->k.rep[1] : 1;
    if (!attention_can(&a->q, r - 1, 1))
        a->q = view_dense(a->scores, 0);
    if (!attention_can(&a->v, r - 1, rep)) {
        a->v = view_dense(a->product, 1);
        if (rep != 1)
            return false;
    }
    d->kv_heads = d->heads / rep;
    d->q = attention_heads(&a->q, r - 2);
    d->k = attention_heads(&a->k, r - 1);
    d->v = attention_heads(&a->v, r - 2);
    /* The keys' own elements have to be adjacent: they are read by rows. */
    return d->heads % rep == 0 && attention_can(&a->k, r - 2, rep);
}

/* Every key that follows a query is hidden, and no other. */
static bool attention_is_causal(const struct attention *a, const struct nn_value *m)
{
    const size_t nq = a->d.q_len, nk = a->d.kv_len;
    const float *v = m->data;

    if (v == NULL || nk < nq || heddle_nn_count(&m->shape) != nq * nk)
        return false;
    for (size_t i = 0; i < nq; i++)
        for (size_t k = 0; k < nk; k++)
            if (k <= i + (nk - nq) ? v[i * nk + k] != 0 : !(v[i * nk + k] <= -1e8f))
                return false;
    return true;
}

static bool attention_mask(struct attention *a)
{
    struct dnn_attention *d = &a->d;
    const int r = a->softmax->in[0].shape.rank;
    const struct nn_value *m;
    int64_t step[NN_DIMS];

    if (a->mask < 0)
        return true;
    m = &a->masked->in[a->mask];
    if (m->type != NN_F32 || m->shape.rank < 1 || m->shape.rank > r ||
        m->shape.dim[m->shape.rank - 1] != (int64_t)d->kv_len ||
        !heddle_nn_same_shape(&a->masked->out[0].shape, &a->softmax->in[0].shape))
        return false;
    if (attention_is_causal(a, m)) {
        d->is_causal = true;
        d->past = d->kv_len - d->q_len;
        a->mask = -1;
        return true;
    }
    heddle_nn_broadcast_steps(&m->shape, &a->softmax->in[0].shape, step);
    d->has_mask = true;
    d->mask_batch = (size_t)step[0];
    d->mask_head = r == 4 ? (size_t)step[1] : 0;
    d->mask_q = (size_t)step[r - 2];
    return true;
}

static void attention_result(struct attention *a)
{
    struct dnn_attention *d = &a->d;
    const size_t each = d->q_len * d->dim_v;

    d->out = (struct dnn_heads){.batch = d->heads * each, .head = each, .pos = d->dim_v};
    if (a->last != a->product)
        d->out = (struct dnn_heads){
            .batch = d->heads * each, .head = d->dim_v, .pos = d->heads * d->dim_v};
}

/* --- the operator -------------------------------------------------------------------- */

static heddle_status attention_fast(struct nn_call *c, struct nn_step *out)
{
    const struct attention_own *own = c->node->own;
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(own->d.has_mask ? 4 : 3);
    struct heddle_dnn *o = NULL;
    heddle_status st;

    for (int i = 0; i < 4; i++)
        in.at[i] = own->from[i];
    st = heddle_dnn_create_attention(&own->d, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

/* One query of a head: weights of keys, then the sum of values. */
static void attention_query(const struct dnn_attention *d, const float *q, const float *k,
                            const float *v, const float *mask, size_t nkeys, double *weight,
                            float *out)
{
    double most = -(double)INFINITY, sum = 0;

    for (size_t j = 0; j < nkeys; j++) {
        double s = 0;

        for (size_t i = 0; i < d->dim; i++)
            s += (double)q[i] * (double)k[j * d->k.pos + i];
        weight[j] = s * (double)d->scale + (mask != NULL ? (double)mask[j] : 0);
        most = fmax(most, weight[j]);
    }
    for (size_t j = 0; j < nkeys; j++) {
        weight[j] = exp(weight[j] - most);
        sum += weight[j];
    }
    for (size_t i = 0; i < d->dim_v; i++) {
        double s = 0;

        for (size_t j = 0; j < nkeys; j++)
            s += weight[j] / sum * (double)v[j * d->v.pos + i];
        out[i] = (float)s;
    }
}

static heddle_status attention_ref(struct nn_call *c)
{
    const struct attention_own *own = c->node->own;
    const struct dnn_attention *d = &own->d;
    const float *q = (const float *)c->in[0].data + own->from[0],
                *k = (const float *)c->in[1].data + own->from[1],
                *v = (const float *)c->in[2].data + own->from[2],
                *mask = d->has_mask ? c->in[3].data : NULL;
    double *weight = heddle_nn_temp(c, d->kv_len, sizeof(*weight));
    float *out = c->out[0].data;

    if (weight == NULL)
        return HEDDLE_ENOMEM;
    for (size_t u = 0; u < d->batch * d->heads * d->q_len; u++) {
        const size_t b = u / d->q_len / d->heads, h = u / d->q_len % d->heads, i = u % d->q_len,
                     g = h / (d->heads / d->kv_heads);

        attention_query(d, q + b * d->q.batch + h * d->q.head + i * d->q.pos,
                        k + b * d->k.batch + g * d->k.head, v + b * d->v.batch + g * d->v.head,
                        mask != NULL ? mask + b * d->mask_batch + h * d->mask_head + i * d->mask_q
                                     : NULL,
                        d->is_causal && i + d->past + 1 < d->kv_len ? i + d->past + 1 : d->kv_len,
                        weight, out + b * d->out.batch + h * d->out.head + i * d->out.pos);
    }
    return HEDDLE_OK;
}

static struct heddle_cost attention_cost(const struct nn_call *c)
{
    const struct dnn_attention *d = &((const struct attention_own *)c->node->own)->d;
    const double rows = (double)(d->batch * d->heads * d->q_len),
                 keys = (double)(d->batch * d->kv_heads * d->kv_len);

    return (struct heddle_cost){.flops = 2 * rows * (double)d->kv_len * (double)(d->dim + d->dim_v),
                                .bytes = 4 * (rows + keys) * (double)(d->dim + d->dim_v)};
}

static const struct nn_op attention_op = {.name = "FusedAttention",
                                          .nin_min = 3,
                                          .nin_max = 4,
                                          .ref = attention_ref,
                                          .fast = attention_fast,
                                          .cost = attention_cost};

/* --- the pass ------------------------------------------------------------------------ */

static heddle_status attention_replace(struct nn_prep *q, struct attention *a)
{
    struct attention_own *own = heddle_prep_keep(q, 1, sizeof(*own));
    const struct view *const view[] = {&a->q, &a->k, &a->v};

    if (own == NULL)
        return HEDDLE_ENOMEM;
    own->d = a->d;
    a->c.nin = 3;
    for (int i = 0; i < 3; i++) {
        a->c.in[i] = (struct prep_operand){view[i]->of, view[i]->k};
        own->from[i] = view[i]->from;
    }
    if (a->mask >= 0)
        a->c.in[a->c.nin++] = (struct prep_operand){a->masked, (uint32_t)a->mask};
    a->c.own = own;
    a->c.op = &attention_op;
    return heddle_prep_replace(q, &a->c, a->last);
}

static heddle_status attention_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct attention a = {.softmax = prep_task(q, i)};

        if (!heddle_prep_is(a.softmax, "Softmax") || !heddle_prep_is_f32(a.softmax) ||
            !attention_back(q, &a) || !attention_on(q, &a) ||
            !heddle_prep_closed(q, &a.c, a.last) || !attention_operands(q, &a) ||
            !attention_mask(&a))
            continue;
        attention_result(&a);
        HEDDLE_TRY(attention_replace(q, &a));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_attention = {
    "attention", "softmax(scale Q K' + mask) V in parts becomes one operator", attention_run};
