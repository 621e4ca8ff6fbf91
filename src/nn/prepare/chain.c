/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain: elementwise operators that follow one another become one, which computes block by block
 * in the first cache. A result that only the next one reads, in the shape of the result of the
 * chain, joins; operands may be broadcast.
 */
#include <string.h>

#include "nn/prepare/prepare.h"

/* --- the operator -------------------------------------------------------------------- */

static heddle_status chain_map(struct nn_call *c, struct nn_map *m)
{
    *m = *(const struct nn_map *)c->node->own;
    return HEDDLE_OK;
}

static heddle_status chain_ref(struct nn_call *c)
{
    const struct nn_map *m = c->node->own;
    const struct nn_shape *s = &c->out[0].shape;
    int64_t step[DNN_MAX_IN][NN_DIMS];
    double v[DNN_MAX_IN + DNN_MAX_STEPS] = {0};

    for (unsigned i = 0; i < m->nin; i++)
        heddle_nn_broadcast_steps(&m->shape[i], s, step[i]);
    for (size_t e = 0; e < heddle_nn_count(s); e++) {
        for (unsigned i = 0; i < m->nin; i++) {
            size_t rest = e, at = 0;

            for (int d = s->rank - 1; d >= 0; d--) {
                at += rest % (size_t)s->dim[d] * (size_t)step[i][d];
                rest /= (size_t)s->dim[d];
            }
            v[i] = (double)((const float *)c->in[i].data)[at];
        }
        for (unsigned i = 0; i < m->m.nsteps; i++) {
            const struct dnn_step *f = &m->m.step[i];

            v[m->nin + i] = heddle_nn_fn_f64(f->fn, (double)f->p, (double)f->q, v[f->a], v[f->b]);
        }
        ((float *)c->out[0].data)[e] = (float)v[m->nin + m->m.nsteps - 1];
    }
    return HEDDLE_OK;
}

static struct heddle_cost chain_cost(const struct nn_call *c)
{
    const struct nn_map *m = c->node->own;
    struct heddle_cost cost = {.flops =
                                   (double)heddle_nn_count(&c->out[0].shape) * (double)m->m.nsteps,
                               .bytes = (double)heddle_nn_bytes(&c->out[0])};

    for (uint32_t i = 0; i < c->nin; i++)
        cost.bytes += (double)heddle_nn_bytes(&c->in[i]);
    return cost;
}

static const struct nn_op chain_op = {.name = "FusedMap",
                                      .nin_min = 1,
                                      .nin_max = DNN_MAX_IN,
                                      .flags = NN_POINT,
                                      .inplace = (1u << DNN_MAX_IN) - 1,
                                      .ref = chain_ref,
                                      .fast = heddle_nn_map_fast,
                                      .map = chain_map,
                                      .cost = chain_cost};

/* --- the pass ------------------------------------------------------------------------ */

struct chain {
    struct prep_change c;
    struct nn_map m;
};

/* Is the task elementwise, of f32, with few dimensions? */
static bool chain_can(const struct nn_prep *q, const struct nn_task *t, struct nn_map *m)
{
    struct nn_run run;
    struct nn_call c;

    if (t == NULL || t->node->op->map == NULL || t->node->nout != 1 || !heddle_prep_is_f32(t) ||
        t->out[0].shape.rank > DNN_MAX_RANK)
        return false;
    c = heddle_prep_call(q, t, &run);
    return t->node->op->map(&c, m) == HEDDLE_OK && m->nin <= t->node->nin;
}

/* The register of operand k of t, which becomes an operand of the chain. Registers of operands are
 * numbered from 0, those of steps from DNN_MAX_IN on until the chain is complete. */
static bool chain_operand(const struct nn_prep *q, struct chain *h, const struct nn_task *t,
                          uint32_t k, const struct nn_shape *shape, uint8_t *reg)
{
    for (uint32_t i = 0; i < h->c.nin; i++) {
        const struct prep_operand *o = &h->c.in[i];

        if (heddle_prep_same(q, o->of, o->k, t, k) && heddle_nn_same_shape(&h->m.shape[i], shape)) {
            *reg = (uint8_t)i;
            return true;
        }
    }
    if (h->c.nin == DNN_MAX_IN)
        return false;
    h->m.shape[h->c.nin] = *shape;
    h->c.in[h->c.nin] = (struct prep_operand){t, k};
    *reg = (uint8_t)h->c.nin++;
    return true;
}

/* Adds the steps of t. from[k] != NN_NONE: the register of operand k, a step of the chain. */
static bool chain_steps(const struct nn_prep *q, struct chain *h, struct nn_task *t,
                        const struct nn_map *m, const uint32_t from[DNN_MAX_IN])
{
    uint8_t reg[DNN_MAX_IN + DNN_MAX_STEPS];
    bool is_used[DNN_MAX_IN] = {false};

    if (h->m.m.nsteps + m->m.nsteps > DNN_MAX_STEPS || !heddle_prep_add(&h->c, t))
        return false;
    for (unsigned i = 0; i < m->m.nsteps; i++) {
        const struct dnn_step *s = &m->m.step[i];

        if (s->a < m->nin)
            is_used[s->a] = true;
        if (dnn_fn_is_binary(s->fn) && s->b < m->nin)
            is_used[s->b] = true;
    }
    for (unsigned k = 0; k < m->nin; k++) {
        reg[k] = (uint8_t)from[k];
        if (from[k] == NN_NONE) {
            reg[k] = 0;
            if (is_used[k] && !chain_operand(q, h, t, k, &m->shape[k], &reg[k]))
                return false;
        }
    }
    for (unsigned i = 0; i < m->m.nsteps; i++) {
        struct dnn_step s = m->m.step[i];

        s.a = reg[s.a];
        s.b = dnn_fn_is_binary(s.fn) ? reg[s.b] : 0;
        reg[m->nin + i] = (uint8_t)(DNN_MAX_IN + h->m.m.nsteps);
        h->m.m.step[h->m.m.nsteps++] = s;
    }
    return true;
}

/* The task that makes operand k of t, when it can join: nobody else reads it, and it has the shape
 * of the result. */
static struct nn_task *chain_before(const struct nn_prep *q, const struct nn_task *t, uint32_t k,
                                    struct nn_map *m)
{
    struct nn_task *b = heddle_prep_inner(q, t, k);

    return b != NULL && heddle_prep_reads(q, t, k, b) &&
                   heddle_nn_same_shape(&b->out[0].shape, &t->out[0].shape) && chain_can(q, b, m)
               ? b
               : NULL;
}

/* Joins t with what makes its operands. Tasks before t are chains already, so one step back is
 * enough. */
static heddle_status chain_one(struct nn_prep *q, struct nn_task *t)
{
    struct chain h = {.m = {.nin = 0}};
    uint32_t from[DNN_MAX_IN], none[DNN_MAX_IN];
    struct nn_map own, *kept;
    bool has_joined = false;

    if (!chain_can(q, t, &own))
        return HEDDLE_OK;
    memset(none, 0xff, sizeof(none));
    memset(from, 0xff, sizeof(from));
    for (unsigned k = 0; k < own.nin; k++) {
        const struct chain had = h;
        struct nn_map m;
        struct nn_task *b = chain_before(q, t, k, &m);

        if (b == NULL)
            continue;
        if (m.m.nsteps + own.m.nsteps + h.m.m.nsteps > DNN_MAX_STEPS ||
            !chain_steps(q, &h, b, &m, none) || h.c.ngone + 1 >= PREP_GROUP) {
            h = had;
            continue;
        }
        from[k] = DNN_MAX_IN + h.m.m.nsteps - 1;
        has_joined = true;
    }
    if (!has_joined || !chain_steps(q, &h, t, &own, from))
        return HEDDLE_OK;
    h.m.nin = h.c.nin;
    for (unsigned i = 0; i < h.m.m.nsteps; i++) {
        struct dnn_step *s = &h.m.m.step[i];

        s->a = (uint8_t)(s->a >= DNN_MAX_IN ? s->a - DNN_MAX_IN + h.c.nin : s->a);
        s->b = (uint8_t)(s->b >= DNN_MAX_IN ? s->b - DNN_MAX_IN + h.c.nin : s->b);
    }
    kept = heddle_prep_keep(q, 1, sizeof(*kept));
    if (kept == NULL)
        return HEDDLE_ENOMEM;
    *kept = h.m;
    h.c.own = kept;
    h.c.op = &chain_op;
    return heddle_prep_replace(q, &h.c, t);
}

static heddle_status chain_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);

        if (t != NULL)
            HEDDLE_TRY(chain_one(q, t));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_chain = {
    "chain", "elementwise operators that follow one another become one", chain_run};
