/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draft: growing lists of steps, and the steps of a sequence of operations.
 *
 * A sequence needs two sweeps. The first finds, for each value that an occurrence
 * may make, its last reader before the next occurrence of the same operation; the
 * second emits a computation with the outputs that have one, and a discard behind
 * each last reader.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "plan/plan.h"

void heddle_plan_draft_init(struct heddle_plan_draft *d, const struct heddle_allocator *a)
{
    memset(d, 0, sizeof(*d));
    d->a = a;
}

void heddle_plan_draft_fini(struct heddle_plan_draft *d)
{
    heddle_free(d->a, d->step, d->cap * sizeof(*d->step));
    heddle_plan_draft_init(d, d->a);
}

void heddle_plan_draft_clear(struct heddle_plan_draft *d)
{
    d->n = 0;
    d->st = HEDDLE_OK;
}

static bool grow(struct heddle_plan_draft *d)
{
    const size_t cap = d->cap == 0 ? 64 : 2 * d->cap;
    struct heddle_plan_step *p;

    if (d->n >= HEDDLE_PLAN_NONE - 1) {
        d->st = HEDDLE_EOVERFLOW;
        return false;
    }
    p = heddle_zalloc(d->a, cap, sizeof(*p));
    if (p == NULL) {
        d->st = HEDDLE_ENOMEM;
        return false;
    }
    if (d->n > 0)
        memcpy(p, d->step, d->n * sizeof(*p));
    heddle_free(d->a, d->step, d->cap * sizeof(*p));
    d->step = p;
    d->cap = cap;
    return true;
}

static void add(struct heddle_plan_draft *d, struct heddle_plan_step s)
{
    if (d->st != HEDDLE_OK || (d->n == d->cap && !grow(d)))
        return;
    d->step[d->n++] = s;
}

void heddle_plan_draft_compute(struct heddle_plan_draft *d, uint32_t op, uint64_t outputs,
                               bool in_place)
{
    add(d, (struct heddle_plan_step){
               .kind = HEDDLE_PLAN_COMPUTE, .in_place = in_place, .what = op, .outputs = outputs});
}

void heddle_plan_draft_discard(struct heddle_plan_draft *d, uint32_t value)
{
    add(d, (struct heddle_plan_step){.kind = HEDDLE_PLAN_DISCARD, .what = value});
}

void heddle_plan_draft_offload(struct heddle_plan_draft *d, uint32_t value, unsigned level)
{
    add(d, (struct heddle_plan_step){
               .kind = HEDDLE_PLAN_OFFLOAD, .level = (uint8_t)level, .what = value});
}

void heddle_plan_draft_prefetch(struct heddle_plan_draft *d, uint32_t value, unsigned level)
{
    add(d, (struct heddle_plan_step){
               .kind = HEDDLE_PLAN_PREFETCH, .level = (uint8_t)level, .what = value});
}

void heddle_plan_draft_forget(struct heddle_plan_draft *d, uint32_t value, unsigned level)
{
    add(d, (struct heddle_plan_step){
               .kind = HEDDLE_PLAN_FORGET, .level = (uint8_t)level, .what = value});
}

/* ---- from a sequence ------------------------------------------------------- */

#define NEVER SIZE_MAX

struct sweep {
    const struct heddle_plan_graph *g;
    const struct heddle_plan_opts *o;
    const uint32_t *seq;
    size_t nseq;
    size_t *at;    /* [nops] the occurrence at hand; NEVER: none yet */
    size_t *base;  /* [nseq + 1] outputs of occurrence p: last[base[p] + i] */
    size_t *last;  /* position of the last reader */
    size_t *none;  /* [nvalues] the same for values of op NONE */
    bool *is_last; /* [nseq] no later occurrence of the same op */
    bool *is_here; /* [nvalues] values that began on the host */
};

static heddle_status sweep_init(struct sweep *s, struct heddle_scratch *mem)
{
    s->at = heddle_scratch_get(mem, s->g->nops, sizeof(*s->at));
    s->base = heddle_scratch_get(mem, s->nseq + 1, sizeof(*s->base));
    s->none = heddle_scratch_get(mem, s->g->nvalues, sizeof(*s->none));
    s->is_last = heddle_scratch_get(mem, s->nseq, sizeof(*s->is_last));
    s->is_here = heddle_scratch_get(mem, s->g->nvalues, sizeof(*s->is_here));
    if (s->at == NULL || s->base == NULL || s->none == NULL || s->is_last == NULL ||
        s->is_here == NULL)
        return HEDDLE_PLAN_FAIL(s->o, HEDDLE_ENOMEM, "no memory for steps");
    for (size_t p = 0; p < s->nseq; p++) {
        if (s->seq[p] >= s->g->nops)
            return HEDDLE_PLAN_FAIL(s->o, HEDDLE_EINVAL,
                                    "the sequence has operation %u, which "
                                    "does not exist",
                                    s->seq[p]);
        s->base[p + 1] = s->base[p] + s->g->ops[s->seq[p]].nvalues;
    }
    s->last = heddle_scratch_get(mem, s->base[s->nseq], sizeof(*s->last));
    if (s->last == NULL)
        return HEDDLE_PLAN_FAIL(s->o, HEDDLE_ENOMEM, "no memory for steps");
    memset(s->last, 0xff, s->base[s->nseq] * sizeof(*s->last));
    memset(s->none, 0xff, s->g->nvalues * sizeof(*s->none));
    memset(s->at, 0xff, s->g->nops * sizeof(*s->at));
    return HEDDLE_OK;
}

/* Where the last reader of value v, as it is now, is kept. NULL: v is not made
 * yet. */
static size_t *last_of(const struct sweep *s, uint32_t v)
{
    const uint32_t op = s->g->values[v].op;

    if (op == HEDDLE_PLAN_NONE)
        return &s->none[v];
    if (s->at[op] == NEVER)
        return NULL;
    return &s->last[s->base[s->at[op]] + (v - s->g->ops[op].first_value)];
}

static heddle_status find_readers(struct sweep *s)
{
    for (size_t p = 0; p < s->nseq; p++) {
        const struct heddle_plan_op *op = &s->g->ops[s->seq[p]];

        if (s->at[s->seq[p]] != NEVER && (op->flags & HEDDLE_PLAN_ONCE) != 0)
            return HEDDLE_PLAN_FAIL(s->o, HEDDLE_EINVAL, "operation %s must be computed only once",
                                    heddle_plan_op_label(s->g, s->seq[p]).text);
        for (uint32_t i = 0; i < op->ninputs; i++) {
            size_t *last = last_of(s, s->g->inputs[op->first_input + i]);

            if (last == NULL)
                return HEDDLE_PLAN_FAIL(s->o, HEDDLE_EINVAL,
                                        "operation %s runs before an input is made",
                                        heddle_plan_op_label(s->g, s->seq[p]).text);
            *last = p;
        }
        s->at[s->seq[p]] = p;
    }
    for (uint32_t i = 0; i < s->g->nops; i++) {
        if (s->at[i] == NEVER)
            return HEDDLE_PLAN_FAIL(s->o, HEDDLE_EINVAL, "operation %s is never computed",
                                    heddle_plan_op_label(s->g, i).text);
        s->is_last[s->at[i]] = true;
    }
    memset(s->at, 0xff, s->g->nops * sizeof(*s->at));
    return HEDDLE_OK;
}

/* Whether the value, as it is now, must be there at the end. */
static bool must_stay(const struct sweep *s, uint32_t v)
{
    const struct heddle_plan_value *x = &s->g->values[v];

    if (x->op == HEDDLE_PLAN_NONE)
        return heddle_plan_is_initial(x);
    return (x->flags & HEDDLE_PLAN_RESULT) != 0 && s->is_last[s->at[x->op]];
}

static bool takes_place(const struct sweep *s, size_t p, const struct heddle_plan_op *op)
{
    const uint32_t v = op->inplace;

    if (v == HEDDLE_PLAN_NONE || *last_of(s, v) != p)
        return false;
    if ((s->g->values[v].flags & HEDDLE_PLAN_RESULT) == 0)
        return true;
    return s->g->values[v].op != HEDDLE_PLAN_NONE && !must_stay(s, v);
}

static void fetch_inputs(struct sweep *s, const struct heddle_plan_op *op,
                         struct heddle_plan_draft *d)
{
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = s->g->inputs[op->first_input + i];

        if ((s->g->values[v].flags & HEDDLE_PLAN_AT_HOST) == 0 || s->is_here[v])
            continue;
        s->is_here[v] = true;
        heddle_plan_draft_prefetch(d, v, 1);
    }
}

static void emit_one(struct sweep *s, size_t p, struct heddle_plan_draft *d)
{
    const uint32_t id = s->seq[p];
    const struct heddle_plan_op *op = &s->g->ops[id];
    const bool takes = takes_place(s, p, op);
    const size_t *last = &s->last[s->base[p]];
    uint64_t mask = op->nvalues > 0;

    fetch_inputs(s, op, d);
    s->at[id] = p;
    for (uint32_t i = 1; i < op->nvalues; i++)
        if (last[i] != NEVER || must_stay(s, op->first_value + i))
            mask |= (uint64_t)1 << i;
    heddle_plan_draft_compute(d, id, mask, takes);
    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = s->g->inputs[op->first_input + i];

        if (*last_of(s, v) == p && !must_stay(s, v) && !(takes && v == op->inplace))
            heddle_plan_draft_discard(d, v);
    }
    if (op->nvalues > 0 && last[0] == NEVER && !must_stay(s, op->first_value))
        heddle_plan_draft_discard(d, op->first_value);
}

heddle_status heddle_plan_draft_from_sequence(const struct heddle_plan_graph *g,
                                              const uint32_t *seq, size_t nseq,
                                              const struct heddle_plan_opts *o,
                                              struct heddle_plan_draft *d)
{
    struct heddle_scratch mem = heddle_scratch_make(d->a);
    struct heddle_plan_opts opts;
    struct sweep s = {.g = g, .o = &opts, .seq = seq, .nseq = nseq};
    heddle_status st = heddle_plan_opts_get(o, &opts);

    if (st == HEDDLE_OK)
        st = sweep_init(&s, &mem);
    if (st == HEDDLE_OK)
        st = find_readers(&s);
    for (size_t p = 0; p < nseq && st == HEDDLE_OK; p++) {
        emit_one(&s, p, d);
        st = d->st;
    }
    heddle_scratch_drop(&mem);
    return st;
}
