/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: shapes, then layouts and steps, then addresses. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/why.h"
#include "nn/prepare/prepare.h"

/* A piece takes about as long as it takes to wake a worker that sleeps, or longer: with less, a
 * network of small operators spends its time in parking and waking. The rates are about those of
 * a core of an AMD EPYC, whose data are in its caches. */
#define PLAN_PIECE_US     10.0
#define PLAN_FLOPS_PER_US 5e4
#define PLAN_BYTES_PER_US 2e4

struct heddle_cost heddle_nn_cost(const struct nn_call *c)
{
    struct heddle_cost cost = {0, 0};

    if (c->node->op->cost != NULL)
        return c->node->op->cost(c);
    for (uint32_t i = 0; i < c->nout; i++)
        if (c->out[i].kind == NN_TENSOR) {
            cost.flops += (double)heddle_nn_count(&c->out[i].shape);
            cost.bytes += (double)heddle_nn_bytes(&c->out[i]);
        }
    for (uint32_t i = 0; i < c->nin; i++)
        if (c->in[i].kind == NN_TENSOR)
            cost.bytes += (double)heddle_nn_bytes(&c->in[i]);
    return cost;
}

static size_t plan_scratch(const struct nn_step *s, size_t pieces)
{
    const size_t n = s->scratch != NULL ? s->scratch(s->state, pieces) : 0;

    return (n + 63) / 64 * 64;
}

struct nn_call heddle_nn_task_call(const struct nn_task *t, struct nn_run *run,
                                   const struct nn_opts *o)
{
    return (struct nn_call){.node = t->node,
                            .nin = t->node->nin,
                            .nout = t->node->nout,
                            .in = t->in,
                            .out = t->out,
                            .is_nhwc = t->is_nhwc,
                            .is_plain_in = t->is_plain_in,
                            .run = run,
                            .why = o->why,
                            .why_bytes = o->why_bytes};
}

/* Into how many pieces a task of this cost is cut at the most. */
static size_t plan_pieces(const struct heddle_cost *cost, size_t parts, unsigned nworkers)
{
    const double us = cost->flops / PLAN_FLOPS_PER_US + cost->bytes / PLAN_BYTES_PER_US;
    const size_t most = parts < 2 * (size_t)nworkers ? parts : 2 * (size_t)nworkers;

    if (nworkers < 2 || us < 2 * PLAN_PIECE_US)
        return 1;
    return us < PLAN_PIECE_US * (double)most ? (size_t)(us / PLAN_PIECE_US) : most;
}

/* What a task costs, and how it is cut. */
static void plan_cut(struct nn_plan *p, struct nn_task *t, unsigned nworkers,
                     struct heddle_scratch *temp, const struct nn_opts *o)
{
    struct nn_run run = {.keep = &p->mem, .temp = temp, .alloc = o->alloc};
    const struct nn_call c = heddle_nn_task_call(t, &run, o);

    t->cost = heddle_nn_cost(&c);
    heddle_scratch_drop(temp);
    p->flops += t->cost.flops;
    t->pieces = 1;
    if (t->step.run == NULL)
        return;
    t->pieces = plan_pieces(&t->cost, t->step.parts, nworkers);
    t->piece_bytes = plan_scratch(&t->step, t->pieces);
    t->work_bytes = t->piece_bytes * t->pieces;
    if (plan_scratch(&t->step, 1) > t->work_bytes)
        t->work_bytes = plan_scratch(&t->step, 1);
}

void heddle_nn_plan_destroy(struct nn_plan *p)
{
    const struct heddle_allocator *a;

    if (p == NULL)
        return;
    a = p->alloc;
    for (uint32_t i = 0; i < p->ntasks; i++)
        if (p->task[i].step.destroy != NULL)
            p->task[i].step.destroy(a, p->task[i].step.state);
    heddle_scratch_drop(&p->mem);
    heddle_free(a, p, sizeof(*p));
}

heddle_status heddle_nn_plan(const struct nn_graph *g, const struct nn_value *in,
                             const struct nn_plan_with *with, unsigned nworkers,
                             const struct nn_opts *o, struct nn_plan **out)
{
    static const struct nn_plan_with nothing = {0};
    struct nn_plan *p = heddle_zalloc(o->alloc, 1, sizeof(*p));
    struct heddle_scratch temp = heddle_scratch_make(o->alloc);
    struct nn_shape *key;
    heddle_status st;

    if (p == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a plan");
    with = with != NULL ? with : &nothing;
    p->g = g;
    p->alloc = o->alloc;
    p->mem = heddle_scratch_make(o->alloc);
    key = heddle_scratch_get(&p->mem, g->ninputs, sizeof(*key));
    st = key != NULL ? HEDDLE_OK
                     : heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a plan");
    for (uint32_t i = 0; i < g->ninputs && st == HEDDLE_OK; i++)
        key[i] = in[i].shape;
    p->key = key;
    if (st == HEDDLE_OK)
        st = heddle_nn_infer(p, in, o);
    p->nvalues = g->nvalues;
    p->output = g->output;
    p->rows = NN_NONE;
    if (st == HEDDLE_OK && with->nkeep > 0)
        st = heddle_nn_keep_past(p, with->keep, with->nkeep, o);
    if (st == HEDDLE_OK && p->is_static && !g->as_is)
        st = heddle_nn_prepare(p, o);
    if (st == HEDDLE_OK)
        st = heddle_nn_layout(p, with->like, &temp, o);
    for (uint32_t i = 0; i < p->ntasks && st == HEDDLE_OK; i++)
        plan_cut(p, &p->task[i], nworkers, &temp, o);
    if (st == HEDDLE_OK && p->is_static)
        st = heddle_nn_arena(p, o);
    heddle_scratch_drop(&temp);
    if (st != HEDDLE_OK) {
        heddle_nn_plan_destroy(p);
        return st;
    }
    *out = p;
    return HEDDLE_OK;
}
