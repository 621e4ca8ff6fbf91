/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain_best: the best of the chain solvers that the time allows.
 *
 * The models are nested: what is persistent is general, what is general is
 * unpinned, what is unpinned is free. So the bound of the last one that ran holds for all plans
 * of all of
 * them. Larger models have coarser tables: none is always the best.
 */
#include <math.h>

#include "base/clock.h"
#include "plan/chain/chain.h"

static const struct heddle_plan_model *const models[] = {
    &heddle_plan_model_persistent,
    &heddle_plan_model_general,
    &heddle_plan_model_unpinned,
    &heddle_plan_model_free,
};
enum {
    NMODELS = sizeof(models) / sizeof(models[0]),
    UNPINNED = 2,
    SHORT = 40, /* layers: the models do it better */
    FINE = 4,   /* times what is useful: as good as exact */
};
#define GRAPHS 0.4 /* of the time, for a plan of the chain as a graph */

/* With fewer the sizes of layers are lost in rounding. */
static uint32_t useful_slots(const struct heddle_plan_job *job)
{
    return job->g->chain->n > 200 ? job->g->chain->n / 2 : 100;
}

/* Its part of the time: most of it is for the largest model that can use it. */
static double seconds_of(const struct heddle_plan_job *job, unsigned i)
{
    const double all = job->opts.time_limit_s, most = 0.4 * all;

    for (unsigned k = NMODELS; k-- > i + 1;)
        if (heddle_plan_bracket_slots(job, models[k], most) >= useful_slots(job))
            return 0.15 * all;
    return most;
}

static uint32_t slots_of(const struct heddle_plan_job *job, unsigned i)
{
    return heddle_plan_bracket_slots(job, models[i], seconds_of(job, i));
}

static int best_rank(const struct heddle_plan_job *job)
{
    if (slots_of(job, 0) < useful_slots(job))
        return 0;
    return job->opts.moves != 0 ? 60 : 90;
}

struct best {
    struct heddle_plan *plan;
    double bound;
    const char *note;
};

static heddle_status try_one(const struct heddle_plan_job *job, unsigned i, struct best *b)
{
    struct heddle_plan *p = NULL;
    double bound = 0;
    const heddle_status st = heddle_plan_bracket(job, models[i], seconds_of(job, i), &bound, &p);

    if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
        return st;
    b->bound = bound;
    b->note = models[i]->note;
    if (st == HEDDLE_ENOENT)
        return HEDDLE_OK;
    if (b->plan != NULL && b->plan->makespan <= p->makespan) {
        heddle_plan_destroy(p);
        return HEDDLE_OK;
    }
    heddle_plan_destroy(b->plan);
    b->plan = p;
    return HEDDLE_OK;
}

/* Long chains leave no time for the models in which a tape may stay without its
 * input. A plan of graphs may do that, and is often the better one. What the
 * models prove does not hold for it: it has its own bound. */
static heddle_status try_graphs(const struct heddle_plan_job *job, struct best *b)
{
    const struct heddle_plan_solver_ops *s = heddle_plan_find_solver("improve");
    struct heddle_plan_job one = *job;
    struct heddle_plan *p = NULL;
    heddle_status st;

    if (s == NULL || job->g->chain->n < SHORT ||
        slots_of(job, UNPINNED) >= FINE * useful_slots(job))
        return HEDDLE_OK;
    one.start_ns = heddle_clock_ns();
    one.opts.time_limit_s = GRAPHS * job->opts.time_limit_s;
    one.deadline_ns = one.start_ns + (uint64_t)(one.opts.time_limit_s * 1e9);
    one.opts.progress = NULL;
    st = s->solve(&one, &p);
    if (st != HEDDLE_OK)
        return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
    if (b->plan != NULL && b->plan->makespan <= p->makespan) {
        heddle_plan_destroy(p);
        return HEDDLE_OK;
    }
    heddle_plan_destroy(b->plan);
    b->plan = p;
    b->bound = p->lower_bound;
    b->note = p->bound_note;
    return HEDDLE_OK;
}

static heddle_status best_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct best b = {.plan = NULL};
    bool go_on = true;

    for (unsigned i = 0; i < NMODELS && go_on; i++) {
        heddle_status st;

        if (i > 0 && slots_of(job, i) < useful_slots(job))
            continue;
        st = try_one(job, i, &b);
        if (st != HEDDLE_OK) {
            heddle_plan_destroy(b.plan);
            return st;
        }
        if (b.plan != NULL)
            go_on = heddle_plan_job_report(job, b.plan) && b.plan->makespan > b.plan->baseline;
    }
    if (go_on) {
        const heddle_status st = try_graphs(job, &b);

        if (st != HEDDLE_OK) {
            heddle_plan_destroy(b.plan);
            return st;
        }
    }
    if (b.plan == NULL)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                                "no chain solver found a plan within %s",
                                heddle_plan_bytes_label(job->m->budget).text);
    b.plan->lower_bound = fmin(fmax(b.bound, b.plan->baseline), b.plan->makespan);
    b.plan->bound_note = b.note;
    b.plan->solver = "chain_best";
    *out = b.plan;
    return HEDDLE_OK;
}

const struct heddle_plan_solver_ops heddle_plan_solver_chain_best = {
    .face = {.name = "chain_best",
             .help = "the best of the chain solvers that the time allows",
             .is_for_chains = 1},
    .rank = best_rank,
    .solve = best_solve,
};
