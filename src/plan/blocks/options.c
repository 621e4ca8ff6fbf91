/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: the ways in which a block can be run.
 *
 * A block is made into a graph of its own (part.c), in which one operation stands for
 * all that is within the block. The workspace of that operation is the difference
 * between two budgets, one while the block runs and one for what it saves meanwhile: so
 * any solver of graphs answers for both.
 *
 * Blocks that are equal up to their times are solved once. Networks repeat their
 * blocks, and what is saved hardly depends on small differences of times.
 */
#include "plan/blocks/part.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

#define NONE HEDDLE_PLAN_NONE

enum {
    FEW_SAVES = 8,  /* budgets of what is saved */
    FEW_PEAKS = 4,  /* budgets of the memory while it runs */
    FEW_HALVES = 6, /* the same, towards the least */
    SMALL = 80,     /* operations of a small block */
};

/* ---- a forward part that saves nothing ----------------------------------------- */

static heddle_status set_pass(struct heddle_plan_parts *k, const struct heddle_plan_part *p)
{
    bool *needed = heddle_scratch_get(k->mem, p->inside + (size_t)1, sizeof(*needed));
    uint32_t *pass = heddle_scratch_get(k->mem, p->inside + (size_t)1, sizeof(*pass));
    uint32_t *last = heddle_scratch_get(&k->tmp, p->g.nvalues, sizeof(*last));
    uint64_t *gone = heddle_scratch_get(&k->tmp, p->inside + (size_t)1, sizeof(*gone));
    uint64_t alive = 0, peak = 0;

    if (needed == NULL || pass == NULL || last == NULL || gone == NULL)
        return HEDDLE_ENOMEM;
    memset(last, 0xff, p->g.nvalues * sizeof(*last));
    needed[p->inside] = true;
    for (uint32_t i = p->inside + 1; i-- > 0;) {
        const struct heddle_plan_op *op = &p->op[i];

        for (uint32_t v = 0; v < op->ninputs && needed[i]; v++) {
            const uint32_t in = p->input[op->first_input + v];

            needed[p->value[in].op] = true;
            if (last[in] == NONE) {
                last[in] = i;
                gone[i] += p->value[in].bytes;
            }
        }
    }
    for (uint32_t i = 0; i < p->inside; i++) {
        const struct heddle_plan_op *op = &p->op[i];
        uint64_t now = alive + op->work_bytes;

        pass[p->shape->npass++] = i;
        if (!needed[i])
            continue;
        for (uint32_t v = op->first_value; v < op->first_value + op->nvalues; v++)
            if (last[v] != NONE) {
                alive += p->value[v].bytes;
                now += p->value[v].bytes;
            } else if (v == op->first_value) {
                now += p->value[v].bytes;
            }
        peak = now > peak ? now : peak;
        alive -= gone[i];
    }
    p->shape->peak_x = peak;
    p->shape->pass = pass;
    p->shape->is_needed = needed;
    return HEDDLE_OK;
}

/* ---- options -------------------------------------------------------------------- */

struct solve {
    struct heddle_plan_parts *k;
    struct heddle_plan_part *p;
    struct heddle_plan_shape *shape;
    struct heddle_plan_search x;
    struct heddle_plan_job job;
    struct heddle_plan_machine m;
    struct heddle_plan_seq s;
    uint32_t *seq; /* of all options; in k->mem */
    uint32_t nseq, cap;
    double time[HEDDLE_PLAN_OPTIONS];
    uint64_t held; /* by others during the forward part */
};

static struct heddle_plan_option measure(const struct solve *z)
{
    const struct heddle_plan_seq *s = &z->s;
    struct heddle_plan_option o = {.seq = z->nseq};
    uint32_t p = 0;

    for (; s->op[p] != z->p->inside; p++)
        if ((uint64_t)s->mem[p] > o.peak_f)
            o.peak_f = (uint64_t)s->mem[p];
    o.peak_f -= p > 0 ? z->held : 0;
    o.nf = p;
    o.saved = (uint64_t)s->mem[p] - z->held - z->p->op[z->p->inside].work_bytes;
    for (p++; p < s->n; p++) {
        if ((uint64_t)s->mem[p] > o.peak_b)
            o.peak_b = (uint64_t)s->mem[p];
        o.nb += s->op[p] < z->p->inside || s->op[p] > z->p->inside + z->p->nleave;
    }
    return o;
}

/* An operation of the block without the inside and the leavers. */
static uint32_t own_number(const struct heddle_plan_part *p, uint32_t op)
{
    return op < p->inside ? op : op - 1 - p->nleave;
}

/* Adds the sequence at hand, unless there is one that is nowhere worse. */
static void add_option(struct solve *z)
{
    struct heddle_plan_shape *h = z->shape;
    const struct heddle_plan_option o = measure(z);

    if (h->noptions == HEDDLE_PLAN_OPTIONS || o.nf + o.nb > z->cap - z->nseq)
        return;
    for (uint32_t i = 0; i < h->noptions; i++) {
        const struct heddle_plan_option *q = &h->option[i];

        if (q->saved <= o.saved && q->peak_f <= o.peak_f && q->peak_b <= o.peak_b &&
            z->time[i] <= z->s.time)
            return;
    }
    for (uint32_t p = 0; p < z->s.n; p++)
        if (z->s.op[p] < z->p->inside || z->s.op[p] > z->p->inside + z->p->nleave)
            z->seq[z->nseq++] = own_number(z->p, z->s.op[p]);
    z->time[h->noptions] = z->s.time;
    h->option[h->noptions++] = o;
}

/* No operation needs more. */
static uint64_t floor_of(const struct heddle_plan_part *p)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < p->g.nops; i++) {
        const uint64_t b = heddle_plan_op_bytes(&p->g, i, 1);

        most = b > most ? b : most;
    }
    return most;
}

/* A sequence of the block within the budget. In large blocks
 * heddle_plan_first_seq() would try for long what need not be. */
static heddle_status block_seq(struct solve *z)
{
    struct heddle_plan_search *x = &z->x;
    heddle_status st = HEDDLE_OK;

    if (z->held > 0) /* no run that evicts: it does not know of that */
        return heddle_plan_greedy_seq(x, &z->s);
    if (z->job.g->nops <= SMALL)
        return heddle_plan_first_seq(x, &z->s);
    heddle_plan_seq_start(&z->s);
    if (!heddle_plan_seq_eval(&z->s))
        return HEDDLE_ENOMEM;
    x->batch = 4;
    x->max_time = 4 * z->s.time;
    if (!heddle_plan_reduce(x, &z->s)) {
        x->max_time = 4 * z->time[0];
        x->patience = 4;
        st = heddle_plan_evict(x, HEDDLE_PLAN_RULE_NEXT, &z->s);
    }
    if (st == HEDDLE_OK)
        heddle_plan_prune(x, &z->s);
    return st;
}

/* Solves for both budgets. HEDDLE_ENOENT: there is no such option. */
static heddle_status try_budgets(struct solve *z, uint64_t peak, uint64_t saved)
{
    heddle_status st;

    struct heddle_plan_op *inside = &z->p->op[z->p->inside];

    inside->work_bytes = peak > saved ? peak - saved : 0;
    z->x.budget = (int64_t)peak;
    z->m.budget = peak;
    heddle_rng_seed(&z->x.rng, 0);
    z->x.noise = 0;
    z->job.floor = floor_of(z->p);
    if (z->job.floor > peak)
        return HEDDLE_ENOENT;
    st = block_seq(z);
    if (st == HEDDLE_OK)
        add_option(z);
    return st;
}

/* What the inside leaves is there during the forward part too when that is
 * computed again: it counts, or not any more. */
static void set_held(struct solve *z, bool is_held)
{
    const struct heddle_plan_part *p = z->p;

    z->held = 0;
    for (uint32_t i = p->inside + 1; is_held && i <= p->inside + p->nleave; i++)
        for (uint32_t v = 0; v < p->op[i].nvalues; v++)
            z->held += p->value[p->op[i].first_value + v].bytes;
    for (uint32_t i = 0; i <= p->inside; i++)
        z->x.aside[i] = (int64_t)z->held;
    z->s.aside = is_held ? z->x.aside : NULL;
}

/* The least memory of both parts: between the least peak of an option and what
 * one operation needs. */
static heddle_status try_least(struct solve *z, uint64_t most, uint64_t all, uint64_t least)
{
    uint64_t high = most, low = 0;
    heddle_status st = HEDDLE_OK;

    for (uint32_t i = 0; i < z->shape->noptions; i++) {
        const struct heddle_plan_option *o = &z->shape->option[i];
        const uint64_t peak = o->peak_f > o->peak_b ? o->peak_f : o->peak_b;

        high = peak < high ? peak : high;
    }
    set_held(z, true);
    for (uint32_t i = 0; i < FEW_HALVES; i++) {
        const uint64_t peak = low + (high - low) / 2;

        if (heddle_plan_search_is_late(z->k->x))
            break;
        st = try_budgets(z, peak, all < peak ? all : peak);
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
            return st;
        if (st == HEDDLE_OK)
            (void)!try_budgets(z, peak, least);
        if (st == HEDDLE_OK)
            high = peak;
        else
            low = peak;
    }
    set_held(z, false);
    return HEDDLE_OK;
}

static heddle_status try_all(struct solve *z)
{
    struct heddle_plan_op *inside = &z->p->op[z->p->inside];
    uint64_t most, all, least = 0;
    heddle_status st = HEDDLE_OK;

    heddle_plan_seq_start(&z->s);
    if (!heddle_plan_seq_eval(&z->s))
        return HEDDLE_ENOMEM;
    add_option(z);
    most = (uint64_t)z->s.peak;
    all = z->shape->option[0].saved;
    for (uint32_t i = 0; i < inside->ninputs; i++)
        least += z->p->value[z->p->input[inside->first_input + i]].bytes;
    if (all <= least || z->p->nf == 0)
        return HEDDLE_OK;
    if (z->k->cuts->is_least)
        HEDDLE_TRY(try_least(z, most, all, least));
    for (uint32_t i = 0; i < FEW_SAVES; i++) {
        const double part = (double)i / FEW_SAVES;

        if (heddle_plan_search_is_late(z->k->x))
            return HEDDLE_OK;
        st = try_budgets(z, most, least + (uint64_t)(part * (double)(all - least)));
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
            return st;
    }
    for (uint32_t i = 1; i <= FEW_PEAKS; i++) {
        const uint64_t peak = most - most / 8 * i;

        if (heddle_plan_search_is_late(z->k->x))
            break;
        st = try_budgets(z, peak, all < peak ? all : peak);
        if (st == HEDDLE_OK)
            st = try_budgets(z, peak, least + (all - least) / 4);
        if (st != HEDDLE_OK)
            break;
    }
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* Another forward part that saves nothing, with recomputations, if it needs less. */
static heddle_status try_pass(struct solve *z)
{
    struct heddle_plan_shape *h = z->shape;
    uint32_t *pass = heddle_scratch_get(z->k->mem, 4 * (z->p->inside + (size_t)1), sizeof(*pass));
    uint64_t high = h->peak_x, low = 0;

    if (pass == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < FEW_HALVES; i++) {
        heddle_status st;

        if (heddle_plan_search_is_late(z->k->x))
            break;
        z->x.budget = (int64_t)(low + (high - low) / 2);
        z->m.budget = low + (high - low) / 2;
        st = block_seq(z);
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
            return st;
        if (st != HEDDLE_OK || z->s.n > 4 * z->p->inside) {
            low = z->m.budget;
            continue;
        }
        h->npass = 0;
        for (uint32_t p = 0; p < z->s.n; p++)
            if (z->s.op[p] != z->p->inside)
                pass[h->npass++] = z->s.op[p];
        h->pass = pass;
        h->peak_x = high = (uint64_t)z->s.peak;
    }
    return HEDDLE_OK;
}

static heddle_status solve_pass(struct heddle_plan_parts *k, struct heddle_plan_part *p)
{
    struct heddle_scratch mem = heddle_scratch_make(k->tmp.a);
    struct solve z = {.k = k, .p = p, .shape = p->shape};
    struct heddle_plan_graph g = p->g;
    heddle_status st = set_pass(k, p);

    if (st == HEDDLE_OK && k->cuts->is_least && p->nf > 0) {
        g.nops = p->inside + 1;
        g.nvalues = p->op[p->inside].first_value;
        g.ninputs = p->op[p->inside].first_input + p->op[p->inside].ninputs;
        z.job = *k->job;
        z.job.g = &g;
        z.job.m = &z.m;
        z.m = *k->job->m;
        for (uint32_t i = 0; i < g.nops; i++)
            z.time[0] += p->op[i].time;
        st = heddle_plan_users_make(&g, &mem, &z.job.users);
        if (st == HEDDLE_OK)
            st = heddle_plan_search_init(&z.x, &z.job);
        if (st == HEDDLE_OK) {
            st = heddle_plan_seq_init(&z.s, &g, z.x.room, &z.x.mem) ? try_pass(&z) : HEDDLE_ENOMEM;
            k->x->work += z.x.work;
            heddle_plan_search_fini(&z.x);
        }
    }
    heddle_scratch_drop(&mem);
    return st;
}

static heddle_status solve_part(struct heddle_plan_parts *k, struct heddle_plan_part *p)
{
    const uint32_t per_option = 8 * (p->nf + p->nb) + 8;
    struct solve z = {.k = k, .p = p, .shape = p->shape};
    struct heddle_scratch mem = heddle_scratch_make(k->tmp.a);
    heddle_status st;

    z.shape->nf = p->nf;
    z.shape->nb = p->nb;
    z.job = *k->job;
    z.job.g = &p->g;
    z.job.m = &z.m;
    z.m = *k->job->m;
    z.cap = HEDDLE_PLAN_OPTIONS * per_option;
    z.seq = heddle_scratch_get(k->mem, z.cap, sizeof(*z.seq));
    st = z.seq != NULL ? heddle_plan_users_make(&p->g, &mem, &z.job.users) : HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        st = solve_pass(k, p);
    if (st == HEDDLE_OK)
        st = heddle_plan_search_init(&z.x, &z.job);
    if (st == HEDDLE_OK) {
        st = heddle_plan_seq_init(&z.s, &p->g, z.x.room, &z.x.mem) ? try_all(&z) : HEDDLE_ENOMEM;
        k->x->work += z.x.work;
        heddle_plan_search_fini(&z.x);
    }
    p->op[p->inside].work_bytes = 0;
    z.shape->seq = z.seq;
    heddle_scratch_drop(&mem);
    return st;
}

/* ---- stages ----------------------------------------------------------------------- */

static heddle_status make_stage(struct heddle_plan_parts *k, uint32_t block,
                                struct heddle_plan_stage *out)
{
    const struct heddle_plan_graph *g = k->job->g;
    const struct heddle_plan_cuts *c = k->cuts;
    struct heddle_plan_part *p;
    uint32_t *op, n = 0;

    heddle_plan_part_make(k, block);
    k->at.hash = heddle_plan_part_hash(&k->at);
    for (p = k->parts[k->at.hash % 256]; p != NULL; p = p->next)
        if (heddle_plan_part_is_equal(p, &k->at))
            break;
    if (p == NULL) {
        p = heddle_plan_part_keep(k);
        if (p == NULL)
            return HEDDLE_ENOMEM;
        HEDDLE_TRY(solve_part(k, p));
    }
    op = heddle_scratch_get(k->mem, p->nf + (size_t)p->nb + 1, sizeof(*op));
    if (op == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t u = c->first[block]; u < c->first[block + 1]; u++)
        if (!c->is_kept[u])
            op[n++] = u;
    for (uint32_t u = c->end[block + 1]; u < c->end[block]; u++)
        op[n++] = u;
    out->shape = p->shape;
    out->op = op;
    for (uint32_t i = 0; i < p->shape->npass; i++)
        if (p->shape->is_needed[p->shape->pass[i]])
            out->pass += g->ops[op[p->shape->pass[i]]].time;
    for (uint32_t i = 0; i < p->shape->noptions; i++) {
        const struct heddle_plan_option *o = &p->shape->option[i];

        for (uint32_t q = 0; q < o->nf + o->nb; q++)
            out->time[i] += g->ops[op[p->shape->seq[o->seq + q]]].time;
    }
    return HEDDLE_OK;
}

heddle_status heddle_plan_make_stages(struct heddle_plan_search *x,
                                      const struct heddle_plan_cuts *cuts,
                                      struct heddle_scratch *mem, struct heddle_plan_stage **out,
                                      uint32_t *nshapes_out)
{
    struct heddle_plan_parts k = {
        .x = x, .job = x->job, .cuts = cuts, .mem = mem, .tmp = heddle_scratch_make(mem->a)};
    struct heddle_plan_stage *stage = heddle_scratch_get(mem, cuts->n, sizeof(*stage));
    heddle_status st = stage != NULL && heddle_plan_part_room(&k) ? HEDDLE_OK : HEDDLE_ENOMEM;

    k.at.g = (struct heddle_plan_graph){.size = sizeof(k.at.g), .name = "", .ops = k.at.op};
    for (uint32_t b = 0; b < cuts->n && st == HEDDLE_OK; b++)
        st = heddle_plan_search_is_late(x) ? HEDDLE_ENOENT : make_stage(&k, b, &stage[b]);
    heddle_scratch_drop(&k.tmp);
    *out = stage;
    if (nshapes_out != NULL)
        *nshapes_out = k.nshapes;
    return st;
}
