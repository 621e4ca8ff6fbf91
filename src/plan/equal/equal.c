/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * equal: solvers of chains of equal layers: how many activations fit, and the
 * plan with so many.
 */
#include <math.h>

#include "plan/equal/equal.h"

enum { TRY_ALL = 256 };

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static heddle_status check_equal(const struct heddle_plan_job *job, const char *name)
{
    const struct heddle_plan_chain *c = job->g->chain;

    for (uint32_t i = 0; i < c->n; i++)
        if (c->x[i + 1] != c->x[0] || c->forward[i] != c->forward[0])
            return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_EINVAL,
                                    "solver %s is for chains of equal "
                                    "activations and forward times; layer %u "
                                    "differs",
                                    name, i);
    return HEDDLE_OK;
}

/* Activations that fit beside the largest operation, at least 1. */
static uint32_t slots_that_fit(const struct heddle_plan_job *job)
{
    const struct heddle_plan_chain *c = job->g->chain;
    const uint64_t x = c->x[0];
    uint64_t most = 0, slots;

    for (uint32_t i = 0; i < c->n; i++) {
        most = larger(most, 3 * x + c->work_f[i]);
        most = larger(most, c->t[i + 1] + x + c->work_f[i]);
        most = larger(most, c->t[i + 1] + 2 * x + c->work_b[i]);
    }
    if (job->m->budget <= most)
        return 1;
    slots = x > 0 ? (job->m->budget - most) / x : c->n;
    slots = slots < c->n ? slots : c->n;
    return slots > 0 ? (uint32_t)slots : 1;
}

struct heddle_plan_levels heddle_plan_equal_levels(const struct heddle_plan_job *job,
                                                   uint32_t slots, unsigned *store)
{
    const struct heddle_plan_chain *c = job->g->chain;
    const struct heddle_plan_store *const all[] = {&job->m->host, &job->m->disk};
    struct heddle_plan_levels v = {.forward = c->forward[0],
                                   .backward = c->forward[0] + c->backward[0],
                                   .nlevels = 1,
                                   .slots = {slots}};

    for (unsigned i = 0; i < 2 && job->opts.moves != 0; i++) {
        uint64_t fit = c->n;

        if (!(all[i]->out_rate > 0 && all[i]->in_rate > 0))
            continue;
        if (all[i]->bytes > 0 && c->x[0] > 0)
            fit = all[i]->bytes / c->x[0];
        v.slots[v.nlevels] = (uint32_t)(fit < c->n ? fit : c->n);
        v.write[v.nlevels] = (double)c->x[0] / all[i]->out_rate;
        v.read[v.nlevels] = (double)c->x[0] / all[i]->in_rate;
        store[v.nlevels++] = i + 1;
    }
    return v;
}

/* What differing backwards add to the model's time, in which all are as the
 * first. */
static double more_backward(const struct heddle_plan_chain *c)
{
    double sum = 0;

    for (uint32_t i = 0; i < c->n; i++)
        sum += c->backward[i] - c->backward[0];
    return sum;
}

static heddle_status try_slots(const struct heddle_plan_job *job, const char *name,
                               heddle_plan_equal_fn *fn, uint32_t slots, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_plan_claim claim = {.solver = name, .bound_note = "every operation once"};
    struct heddle_plan_events e;
    struct heddle_plan_draft d;
    struct heddle_plan *p = NULL;
    double time = 0;
    heddle_status st;

    heddle_plan_events_init(&e, job->g->chain, o->alloc);
    heddle_plan_draft_init(&d, o->alloc);
    st = fn(job, slots, &e, &time);
    if (st == HEDDLE_OK)
        st = heddle_plan_events_draft(&e, job->g, &d);
    if (st == HEDDLE_ENOMEM)
        st = HEDDLE_PLAN_FAIL(o, st, "no memory for solver %s", name);
    if (st == HEDDLE_OK)
        st = heddle_plan_finish(job, &d, &claim, NULL, &p);
    heddle_plan_events_fini(&e);
    heddle_plan_draft_fini(&d);
    if (st != HEDDLE_OK)
        return st;
    time += more_backward(job->g->chain);
    if (p->makespan > time * (1 + 1e-9)) {
        heddle_plan_destroy(p);
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL,
                                "the plan of solver %s takes longer than its "
                                "model",
                                name);
    }
    if (*out != NULL && (*out)->makespan <= p->makespan) {
        heddle_plan_destroy(p);
        return HEDDLE_OK;
    }
    heddle_plan_destroy(*out);
    *out = p;
    return HEDDLE_OK;
}

heddle_status heddle_plan_equal_solve(const struct heddle_plan_job *job, const char *name,
                                      heddle_plan_equal_fn *fn, struct heddle_plan **out)
{
    const uint32_t n = job->g->chain->n;
    struct heddle_plan *best = NULL;
    heddle_status st = check_equal(job, name);
    uint32_t fit, slots;

    if (st != HEDDLE_OK)
        return st;
    fit = slots_that_fit(job);
    /* Copies run beside the computation, which the model does not know: fewer
     * slots may be better. And more than what surely fits may fit. */
    slots = job->opts.moves != 0 && n <= TRY_ALL ? 1 : fit;
    do {
        st = try_slots(job, name, fn, slots, &best);
    } while ((st == HEDDLE_OK || (st == HEDDLE_ENOENT && slots < fit)) && slots++ < n &&
             !heddle_plan_job_is_late(job));
    for (slots = fit; st == HEDDLE_ENOENT && best == NULL && --slots > 0;)
        st = try_slots(job, name, fn, slots, &best);
    if (best != NULL && st == HEDDLE_ENOENT)
        st = HEDDLE_OK;
    if (st != HEDDLE_OK) {
        heddle_plan_destroy(best);
        return st;
    }
    *out = best;
    return HEDDLE_OK;
}
