/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loads: which sets of values may move, and a sequence for each.
 *
 * The first sets come from the relaxation: the values that it keeps elsewhere at the operation
 * with the least room, by several rules. Later sets are the values that the best plans move.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/offload/pool.h"

/* Of what recomputation costs: so far from its bound, another order may be better. */
#define SOME 0.5

/* Sets of values that move: the rule by which they are taken, and the part of the time in
 * front of the operation with least room by which they are out. */
struct load {
    enum heddle_plan_first rule;
    double part;
};
static const struct load loads[] = {
    {HEDDLE_PLAN_FIRST_LARGE, 1},   {HEDDLE_PLAN_FIRST_MADE, 1},   {HEDDLE_PLAN_FIRST_LARGE, 1.2},
    {HEDDLE_PLAN_FIRST_MADE, 1.2},  {HEDDLE_PLAN_FIRST_DEAR, 1},   {HEDDLE_PLAN_FIRST_MADE, 0.9},
    {HEDDLE_PLAN_FIRST_LARGE, 0.9}, {HEDDLE_PLAN_FIRST_DEAR, 0.8}, {HEDDLE_PLAN_FIRST_MADE, 1.1},
    {HEDDLE_PLAN_FIRST_LARGE, 1.1}, {HEDDLE_PLAN_FIRST_DEAR, 1.2}, {HEDDLE_PLAN_FIRST_MADE, 0.75},
};
/* The relaxation knows nothing of other orders. */
static const struct load free_loads[] = {
    {HEDDLE_PLAN_FIRST_DEAR, 1},    {HEDDLE_PLAN_FIRST_DEAR, 1.2},  {HEDDLE_PLAN_FIRST_DEAR, 0.9},
    {HEDDLE_PLAN_FIRST_DEAR, 0.75}, {HEDDLE_PLAN_FIRST_DEAR, 1.1},  {HEDDLE_PLAN_FIRST_DEAR, 0.85},
    {HEDDLE_PLAN_FIRST_MADE, 1},    {HEDDLE_PLAN_FIRST_DEAR, 0.7},  {HEDDLE_PLAN_FIRST_LARGE, 1},
    {HEDDLE_PLAN_FIRST_DEAR, 1.3},  {HEDDLE_PLAN_FIRST_MADE, 0.75}, {HEDDLE_PLAN_FIRST_DEAR, 0.95},
};
enum { NLOADS = 12, FIRST_LOADS = 6, FREE_LOADS = 4 };

heddle_status heddle_plan_loads_given(struct heddle_plan_joint *j, const uint8_t *is_moved)
{
    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, j->job->g->nops));
    for (uint32_t i = 0; i < j->job->g->nops; i++)
        j->trial.seq[i] = i;
    j->trial.n = j->job->g->nops;
    j->trial.is_moved = is_moved;
    HEDDLE_TRY(heddle_plan_entry_time(j, &j->trial));
    return heddle_plan_pool_add(j, &j->trial);
}

/* Whether a set is one of those that were solved, which it is from now on. */
static bool is_solved(struct heddle_plan_joint *j, const uint8_t *is_moved)
{
    uint64_t sum = 1469598103934665603u; /* FNV-1a */

    for (uint32_t v = 0; v < j->job->g->nvalues; v++)
        sum = (sum ^ is_moved[v]) * 1099511628211u;
    for (uint32_t i = 0; i < j->nsolved; i++)
        if (j->solved[i] == sum)
            return true;
    if (j->nsolved < HEDDLE_PLAN_SOLVED)
        j->solved[j->nsolved++] = sum;
    return false;
}

heddle_status heddle_plan_loads_solve(struct heddle_plan_joint *j, uint32_t which, double share,
                                      bool is_both, double *end_out)
{
    const struct heddle_plan_job *job = j->job;
    const struct load load = (j->is_improved ? free_loads : loads)[which % NLOADS];
    const size_t nv = job->g->nvalues;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    uint8_t *is_moved = heddle_scratch_get(&j->mem, nv, sizeof(*is_moved));
    heddle_status st = HEDDLE_ENOMEM;

    if (is_moved != NULL)
        st = heddle_plan_loads_choose(job, j->at, load.part, load.rule,
                                      load.rule != HEDDLE_PLAN_FIRST_DEAR ? j->is_held : NULL, &mem,
                                      is_moved);
    heddle_scratch_drop(&mem);
    if (st != HEDDLE_OK)
        return heddle_plan_joint_no_memory(j);
    HEDDLE_TRY(heddle_plan_loads_given(j, is_moved));
    (void)is_solved(j, is_moved);
    return heddle_plan_set_solve(j, is_moved, NULL, share, is_both, end_out);
}

/* Another set: without some of these, with others that the relaxation has there. */
static heddle_status change_set(struct heddle_plan_joint *j, uint8_t *is_moved)
{
    const struct heddle_plan_job *job = j->job;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    const uint32_t nv = job->g->nvalues, part = 3 + heddle_rng_below32(&j->rng, 6);
    uint8_t *rank = heddle_scratch_get(&mem, nv, sizeof(*rank));
    heddle_status st = HEDDLE_ENOMEM;

    for (uint32_t v = 0; v < nv && rank != NULL; v++) {
        if (is_moved[v])
            rank[v] = heddle_rng_below32(&j->rng, part) == 0 ? 0 : UINT8_MAX;
        else if (j->is_held[v])
            rank[v] = (uint8_t)(1 + heddle_rng_below32(&j->rng, 250));
    }
    if (rank != NULL)
        st = heddle_plan_loads_choose(job, j->at, 1 + 0.05 * heddle_rng_below32(&j->rng, 4),
                                      HEDDLE_PLAN_FIRST_RANK, rank, &mem, is_moved);
    heddle_scratch_drop(&mem);
    return st == HEDDLE_OK ? st : heddle_plan_joint_no_memory(j);
}

/* What a plan of the pool moves, whichever solver has found it; where that was tried before, a
 * part of it and others. */
heddle_status heddle_plan_loads_again(struct heddle_plan_joint *j, struct heddle_plan_entry *e,
                                      double share)
{
    const struct heddle_plan_job *job = j->job;
    uint8_t *is_moved = heddle_scratch_get(&j->mem, job->g->nvalues, sizeof(*is_moved));
    struct heddle_plan_draft d = j->known;
    uint32_t n = 0;
    double end;

    if (is_moved == NULL)
        return heddle_plan_joint_no_memory(j);
    HEDDLE_TRY(heddle_plan_entry_time(j, e));
    for (uint32_t i = 0; i < j->good.n; i++)
        if (j->good.step[i].kind == HEDDLE_PLAN_OFFLOAD) {
            is_moved[j->good.step[i].what] = 1;
            n++;
        }
    if (n > HEDDLE_PLAN_LOADS)
        return HEDDLE_OK; /* such a graph takes too long */
    for (int k = 0; k < 4 && !j->is_improved && is_solved(j, is_moved); k++)
        HEDDLE_TRY(change_set(j, is_moved));
    j->known = j->good;
    j->good = d;
    return heddle_plan_set_solve(j, is_moved, &j->known, share, false, &end);
}

heddle_status heddle_plan_loads_try(struct heddle_plan_joint *j)
{
    const uint32_t n = j->is_improved ? FREE_LOADS : FIRST_LOADS;
    double best = INFINITY, end;

    for (uint32_t k = 0; k < n && !heddle_plan_joint_is_late(j); k++) {
        HEDDLE_TRY(heddle_plan_loads_solve(j, k, 0.02, k == 0 && j->gap > SOME, &end));
        if (end < best) {
            best = end;
            j->load = k;
        }
    }
    return heddle_plan_joint_is_late(j) ? HEDDLE_OK
                                        : heddle_plan_loads_solve(j, j->load, 0.06, true, &end);
}
