/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eval: what a list of steps costs, by the rules of heddle/plan.h.
 *
 * One sweep with a clock per stream. `room` is when everything given back so far
 * is free: computations and prefetches wait for it.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/plan.h"

enum { HERE = 1 }; /* has[v]: in memory; bits 1 and 2: copy on level 1, 2 */

struct eval {
    const struct heddle_plan_graph *g;
    const struct heddle_plan_opts *o;
    const struct heddle_plan_store *store[3];
    uint32_t at; /* the step */
    uint8_t *has;
    bool *is_taken;     /* [nvalues] its memory was taken in place */
    bool *is_done;      /* [nops] */
    double *ready;      /* [nvalues] when it is in memory */
    double *copied;     /* [nvalues] when the last copy from or to memory ends */
    double *stored[3];  /* [nvalues] when the copy on a level is complete */
    double *touched[3]; /* [nvalues] when the last copy to or from it ends */
    double compute_end, out_end[3], in_end[3], room, store_room[3];
    uint64_t live, store_bytes[3];
    double begin, end; /* of the step at hand */
    struct heddle_plan_cost cost;
};

#define BAD(e, ...) HEDDLE_PLAN_FAIL((e)->o, HEDDLE_EINVAL, __VA_ARGS__)

static double later(double a, double b)
{
    return a > b ? a : b;
}

static heddle_status eval_init(struct eval *e, struct heddle_scratch *mem)
{
    const size_t n = e->g->nvalues;

    e->has = heddle_scratch_get(mem, n, sizeof(*e->has));
    e->is_taken = heddle_scratch_get(mem, n, sizeof(*e->is_taken));
    e->is_done = heddle_scratch_get(mem, e->g->nops, sizeof(*e->is_done));
    e->ready = heddle_scratch_get(mem, 6 * n, sizeof(*e->ready));
    if (e->has == NULL || e->is_taken == NULL || e->is_done == NULL || e->ready == NULL)
        return HEDDLE_PLAN_FAIL(e->o, HEDDLE_ENOMEM, "no memory for steps");
    e->copied = e->ready + n;
    for (unsigned l = 1; l <= 2; l++) {
        e->stored[l] = e->ready + 2 * l * n;
        e->touched[l] = e->ready + (2 * l + 1) * n;
    }
    for (uint32_t v = 0; v < e->g->nvalues; v++) {
        const struct heddle_plan_value *x = &e->g->values[v];

        if (heddle_plan_is_initial(x)) {
            e->has[v] = HERE;
            e->live += x->bytes;
        } else if (x->op == HEDDLE_PLAN_NONE) {
            e->has[v] = 1 << 1;
            e->store_bytes[1] += x->bytes;
        }
    }
    e->cost.peak_bytes = e->live;
    return HEDDLE_OK;
}

static void take(struct eval *e, uint64_t bytes)
{
    e->live += bytes;
    if (e->live > e->cost.peak_bytes)
        e->cost.peak_bytes = e->live;
}

static heddle_status compute_begin(struct eval *e, const struct heddle_plan_step *s, double *begin)
{
    const struct heddle_plan_op *op = &e->g->ops[s->what];

    *begin = later(e->compute_end, e->room);
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = e->g->inputs[op->first_input + i];

        if ((e->has[v] & HERE) == 0)
            return BAD(e,
                       "step %u: operation %s reads value %u, which is not "
                       "in memory",
                       e->at, heddle_plan_op_label(e->g, s->what).text, v);
        *begin = later(*begin, e->ready[v]);
    }
    if (s->in_place) {
        if (op->inplace == HEDDLE_PLAN_NONE || (s->outputs & 1) == 0 ||
            (e->has[op->first_value] & HERE) != 0)
            return BAD(e, "step %u: nothing can be taken in place", e->at);
        *begin = later(*begin, e->copied[op->inplace]);
    }
    return HEDDLE_OK;
}

static heddle_status compute(struct eval *e, const struct heddle_plan_step *s)
{
    const struct heddle_plan_op *op = &e->g->ops[s->what];
    double begin = 0;

    if ((s->outputs & ~heddle_plan_all(op)) != 0 || (op->nvalues > 0 && (s->outputs & 1) == 0))
        return BAD(e,
                   "step %u asks for outputs that there are not, or not "
                   "for the first",
                   e->at);
    if (e->is_done[s->what] && (op->flags & HEDDLE_PLAN_ONCE) != 0)
        return BAD(e, "step %u: operation %s must be computed only once", e->at,
                   heddle_plan_op_label(e->g, s->what).text);
    HEDDLE_TRY(compute_begin(e, s, &begin));
    e->is_done[s->what] = true;
    e->begin = begin;
    e->end = e->compute_end = begin + op->time;
    e->cost.compute += op->time;
    for (uint32_t i = 0; i < op->nvalues; i++) {
        const uint32_t v = op->first_value + i;

        if ((s->outputs >> i & 1) == 0 || (e->has[v] & HERE) != 0)
            continue;
        e->has[v] |= HERE;
        e->ready[v] = e->compute_end;
        e->copied[v] = 0;
        if (i > 0 || !s->in_place)
            take(e, e->g->values[v].bytes);
    }
    take(e, op->work_bytes);
    e->live -= op->work_bytes;
    if (op->work_bytes > 0)
        e->room = later(e->room, e->compute_end);
    if (s->in_place) {
        e->has[op->inplace] &= (uint8_t)~HERE;
        e->is_taken[op->inplace] = true;
        e->live -= e->g->values[op->inplace].bytes - e->g->values[op->first_value].bytes;
        if (e->g->values[op->inplace].bytes > e->g->values[op->first_value].bytes)
            e->room = later(e->room, e->compute_end);
    }
    return HEDDLE_OK;
}

static heddle_status discard(struct eval *e, uint32_t v)
{
    if ((e->has[v] & HERE) == 0)
        return BAD(e, "step %u discards value %u, which is not in memory", e->at, v);
    if (e->g->values[v].op == HEDDLE_PLAN_NONE && (e->has[v] & 6) == 0)
        return BAD(e,
                   "step %u discards value %u, of which there is no other "
                   "copy",
                   e->at, v);
    e->has[v] &= (uint8_t)~HERE;
    e->live -= e->g->values[v].bytes;
    e->begin = e->end = later(e->compute_end, e->copied[v]);
    e->room = later(e->room, e->end);
    return HEDDLE_OK;
}

static heddle_status offload(struct eval *e, uint32_t v, unsigned l)
{
    const uint64_t bytes = e->g->values[v].bytes;
    double begin, time;

    if ((e->has[v] & HERE) == 0 || (e->has[v] >> l & 1) != 0)
        return BAD(e,
                   "step %u copies value %u out, which is not in memory or "
                   "there already",
                   e->at, v);
    e->store_bytes[l] += bytes;
    if (e->store[l]->bytes > 0 && e->store_bytes[l] > e->store[l]->bytes)
        return HEDDLE_PLAN_FAIL(e->o, HEDDLE_ENOENT, "step %u: the %s has no room for value %u",
                                e->at, l == 1 ? "host" : "disk", v);
    time = (double)bytes / e->store[l]->out_rate;
    begin = later(later(e->out_end[l], e->ready[v]), e->store_room[l]);
    e->begin = begin;
    e->end = e->out_end[l] = begin + time;
    e->cost.link_busy += time;
    e->has[v] |= (uint8_t)(1u << l);
    e->stored[l][v] = e->touched[l][v] = e->out_end[l];
    e->copied[v] = later(e->copied[v], e->out_end[l]);
    return HEDDLE_OK;
}

static heddle_status prefetch(struct eval *e, uint32_t v, unsigned l)
{
    double begin, time;

    if ((e->has[v] & HERE) != 0 || (e->has[v] >> l & 1) == 0)
        return BAD(e,
                   "step %u copies value %u in, which is in memory or not "
                   "there",
                   e->at, v);
    time = (double)e->g->values[v].bytes / e->store[l]->in_rate;
    begin = later(later(e->in_end[l], e->stored[l][v]), e->room);
    e->begin = begin;
    e->end = e->in_end[l] = begin + time;
    e->cost.link_busy += time;
    e->has[v] |= HERE;
    e->ready[v] = e->copied[v] = e->in_end[l];
    e->touched[l][v] = later(e->touched[l][v], e->in_end[l]);
    take(e, e->g->values[v].bytes);
    return HEDDLE_OK;
}

static heddle_status forget(struct eval *e, uint32_t v, unsigned l)
{
    if ((e->has[v] >> l & 1) == 0)
        return BAD(e, "step %u forgets a copy of value %u that there is not", e->at, v);
    e->has[v] &= (uint8_t) ~(1u << l);
    e->store_bytes[l] -= e->g->values[v].bytes;
    e->begin = e->end = e->touched[l][v];
    e->store_room[l] = later(e->store_room[l], e->end);
    return HEDDLE_OK;
}

static heddle_status one_step(struct eval *e, const struct heddle_plan_step *s)
{
    if (s->kind == HEDDLE_PLAN_COMPUTE)
        return s->what < e->g->nops ? compute(e, s)
                                    : BAD(e, "step %u: there is no operation %u", e->at, s->what);
    if (s->what >= e->g->nvalues)
        return BAD(e, "step %u: there is no value %u", e->at, s->what);
    if (s->kind == HEDDLE_PLAN_DISCARD)
        return discard(e, s->what);
    if (s->level < 1 || s->level > 2 || !(e->store[s->level]->out_rate > 0))
        return BAD(e, "step %u: the machine has no store %u", e->at, s->level);
    switch (s->kind) {
    case HEDDLE_PLAN_OFFLOAD: return offload(e, s->what, s->level);
    case HEDDLE_PLAN_PREFETCH: return prefetch(e, s->what, s->level);
    case HEDDLE_PLAN_FORGET: return forget(e, s->what, s->level);
    default: return BAD(e, "step %u is of no known kind", e->at);
    }
}

static heddle_status check_end(struct eval *e)
{
    for (uint32_t op = 0; op < e->g->nops; op++)
        if (!e->is_done[op])
            return BAD(e, "operation %s is never computed", heddle_plan_op_label(e->g, op).text);
    for (uint32_t v = 0; v < e->g->nvalues; v++) {
        const struct heddle_plan_value *x = &e->g->values[v];
        const bool is_result = (x->flags & HEDDLE_PLAN_RESULT) != 0;

        if (e->has[v] != 0 || (!is_result && x->op != HEDDLE_PLAN_NONE))
            continue;
        if (is_result || !e->is_taken[v])
            return BAD(e, "value %u is not there at the end", v);
    }
    e->cost.makespan = e->compute_end;
    for (unsigned l = 1; l <= 2; l++)
        e->cost.makespan = later(e->cost.makespan, later(e->out_end[l], e->in_end[l]));
    if (!isfinite(e->cost.makespan) || !isfinite(e->cost.compute))
        return BAD(e, "the times of the steps are too large to add");
    return HEDDLE_OK;
}

/* begin and end of each step go to the arrays, if there are any. */
static heddle_status run(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                         const struct heddle_plan_step *step, uint32_t nsteps,
                         const struct heddle_plan_opts *o, double *begin, double *end,
                         struct heddle_plan_cost *out)
{
    struct heddle_plan_opts opts;
    struct heddle_scratch mem;
    struct eval e = {.g = g, .o = &opts, .store = {NULL, &m->host, &m->disk}};
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(o, &opts));
    mem = heddle_scratch_make(opts.alloc);
    st = eval_init(&e, &mem);
    for (e.at = 0; e.at < nsteps && st == HEDDLE_OK; e.at++) {
        st = one_step(&e, &step[e.at]);
        if (begin != NULL) {
            begin[e.at] = e.begin;
            end[e.at] = e.end;
        }
    }
    if (st == HEDDLE_OK)
        st = check_end(&e);
    if (st == HEDDLE_OK)
        *out = e.cost;
    heddle_scratch_drop(&mem);
    return st;
}

heddle_status heddle_plan_eval(const struct heddle_plan_graph *g,
                               const struct heddle_plan_machine *m,
                               const struct heddle_plan_step *step, uint32_t nsteps,
                               const struct heddle_plan_opts *o, struct heddle_plan_cost *out)
{
    return run(g, m, step, nsteps, o, NULL, NULL, out);
}

heddle_status heddle_plan_times(const struct heddle_plan_graph *g,
                                const struct heddle_plan_machine *m, const struct heddle_plan *p,
                                const struct heddle_plan_opts *opts, double *begin_out,
                                double *end_out)
{
    struct heddle_plan_opts o;
    struct heddle_plan_machine machine;
    struct heddle_plan_cost cost;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (g == NULL || p == NULL || begin_out == NULL || end_out == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no plan");
    HEDDLE_TRY(heddle_plan_machine_get(m, &o, &machine));
    return run(g, &machine, p->steps, p->nsteps, &o, begin_out, end_out, &cost);
}
