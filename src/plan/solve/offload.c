/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload: computes again, or moves to the host and back, whichever is cheaper.
 *
 * Purpose   any graph. Never worse than computing again alone, or moving alone.
 * Method    sets of values that may move, of those that a relaxation holds; for each,
 *           a graph in which copies are computations says what is computed again
 *           (offload/set.c). Plans of the best other solver for this budget and for larger
 *           ones are sequences of operations, too; heddle_plan_move() makes each fit by moving
 *           what is left over. A larger budget means fewer computations and more
 *           bytes on the link: that is the trade-off. From the best, single
 *           repetitions are taken out (their values are kept, and moved where
 *           there is no room) as long as that pays. Everything is evaluated, and
 *           the shortest plan wins, the other solver's own among them.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "plan/bound/bound.h"
#include "plan/offload/pool.h"

enum {
    TARGETS = 12, /* sets of values tried, each for an amount of memory */
    SLICES = 40,  /* of the time, for addresses of one plan */
    TRIES = 3,
    MANY = 1000 /* operations: more time for each set */
};

/* Of what recomputation costs: a link that removes more is worth the time. */
#define MUCH 0.2

/* Of what recomputation costs: so far from its bound, another order will be better. */
#define WIDE 0.9

/* The next stop: a part of the time that is left behind the other solvers. */
static void set_stop(struct heddle_plan_joint *j, double part)
{
    j->stop_s = j->begin_s + part * fmax(j->job->opts.time_limit_s - j->begin_s,
                                         0.25 * j->job->opts.time_limit_s);
}

static bool can_move(const struct heddle_plan_job *job)
{
    return job->opts.moves && (job->m->host.out_rate > 0 || job->m->disk.out_rate > 0);
}

static int offload_rank(const struct heddle_plan_job *job)
{
    return can_move(job) ? 100 : 0;
}

/* ---- the other solvers ------------------------------------------------------- */

static const struct heddle_plan_solver_ops *other_solver(const struct heddle_plan_job *job)
{
    const struct heddle_plan_solver_ops *best = NULL;
    int most = 0;

    for (size_t i = 0; heddle_plan_solver_table[i] != NULL; i++) {
        const struct heddle_plan_solver_ops *s = heddle_plan_solver_table[i];

        if (s->rank == offload_rank || (s->face.is_for_chains && job->g->chain == NULL))
            continue;
        if (s->rank(job) > most) {
            most = s->rank(job);
            best = s;
        }
    }
    return best;
}

/* Computing again alone, for a budget, in a share of the time. */
static heddle_status solve_other(const struct heddle_plan_job *job,
                                 const struct heddle_plan_solver_ops *s, uint64_t budget,
                                 double share, struct heddle_plan **out)
{
    struct heddle_plan_machine m = *job->m;
    struct heddle_plan_job sub = *job;

    if (s == NULL)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT, "there is no other solver");
    m.budget = budget;
    sub.m = &m;
    sub.opts.moves = 0;
    sub.opts.solver = NULL;
    sub.opts.progress = NULL;
    sub.opts.time_limit_s *= share;
    sub.start_ns = heddle_clock_ns();
    sub.deadline_ns = sub.start_ns + (uint64_t)(sub.opts.time_limit_s * 1e9);
    if (sub.deadline_ns > job->deadline_ns)
        sub.deadline_ns = job->deadline_ns;
    return s->solve(&sub, out);
}

static void keep_shorter(struct heddle_plan **best, struct heddle_plan *p)
{
    if (p != NULL && (*best == NULL || p->makespan < (*best)->makespan)) {
        heddle_plan_destroy(*best);
        *best = p;
    } else {
        heddle_plan_destroy(p);
    }
}

/* What the link can remove of the time that computing again costs, by the bounds
 * with and without it; 0 to 1. */
static heddle_status link_worth(const struct heddle_plan_job *job, double *out)
{
    double base = 0, alone = 0, joint = 0;
    uint32_t at;

    base = heddle_plan_sum_times(job->g);
    HEDDLE_TRY(heddle_plan_bound_dag(job, 0, 0, &alone));
    HEDDLE_TRY(heddle_plan_joint_bound(job, &joint, &at));
    *out = alone > base ? (alone - joint) / (alone - base) : 0;
    if (isinf(alone)) /* moving is all that helps */
        *out = 1;
    return HEDDLE_OK;
}

/*
 * The best plan that moves nothing. Where joint plans will be much better it has a
 * little of the time; otherwise as much as it would have without a link, so that
 * it is the same plan and ours is not worse.
 */
static heddle_status solve_alone(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    const struct heddle_plan_solver_ops *tried[] = {
        other_solver(job), heddle_plan_find_solver("improve"), heddle_plan_find_solver("greedy")};
    static const double little[] = {0.12, 0.08, 0.06}, all[] = {1, 0.1, 0.06};
    struct heddle_plan *best = NULL;
    double worth;

    if (link_worth(job, &worth) != HEDDLE_OK)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the solver");
    for (int i = 0; i < 3; i++) {
        struct heddle_plan *p = NULL;
        heddle_status st;

        if (i == 1 ? tried[1] == tried[0] : i == 2 && best != NULL)
            continue;
        st = solve_other(job, tried[i], job->m->budget, worth > MUCH ? little[i] : all[i], &p);
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT) {
            heddle_plan_destroy(best);
            return st;
        }
        keep_shorter(&best, p);
    }
    *out = best;
    return best != NULL ? HEDDLE_OK : HEDDLE_ENOENT;
}

/* The order of first computations is the given one. */
static bool has_given_order(const struct heddle_plan_step *step, uint32_t n)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (step[i].kind != HEDDLE_PLAN_COMPUTE || step[i].what < next)
            continue;
        if (step[i].what > next)
            return false;
        next++;
    }
    return true;
}

/* How far it is from its bound, of what it costs; 1: another order, or no plan. */
static double gap_of(const struct heddle_plan *p)
{
    if (p == NULL || !has_given_order(p->steps, p->nsteps))
        return 1;
    return p->makespan > p->baseline ? (p->makespan - p->lower_bound) / (p->makespan - p->baseline)
                                     : 0;
}

/* ---- sequences to begin with ------------------------------------------------------ */

static heddle_status try_plan(struct heddle_plan_joint *j, const struct heddle_plan *p)
{
    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, p->nsteps));
    j->trial.n = 0;
    j->trial.is_moved = NULL;
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].kind == HEDDLE_PLAN_COMPUTE)
            j->trial.seq[j->trial.n++] = p->steps[i].what;
    HEDDLE_TRY(heddle_plan_entry_time(j, &j->trial));
    return heddle_plan_pool_add(j, &j->trial);
}

static heddle_status try_budget(struct heddle_plan_joint *j, uint64_t budget, bool is_near)
{
    struct heddle_plan_job quiet = *j->job;
    const struct heddle_plan_solver_ops *solver[] = {
        heddle_plan_find_solver("greedy"),
        is_near && quiet.g->chain != NULL ? other_solver(&quiet) : NULL,
        is_near ? heddle_plan_find_solver("improve") : NULL};
    static const double share[] = {0.03, 0.03, 0.06};

    quiet.opts.base.why = NULL;
    for (int k = 0; k < 3; k++) {
        struct heddle_plan *p = NULL;
        heddle_status st = solve_other(&quiet, solver[k], budget, share[k], &p);

        if (st == HEDDLE_OK)
            st = try_plan(j, p);
        heddle_plan_destroy(p);
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
            return st == HEDDLE_ENOMEM ? heddle_plan_joint_no_memory(j) : st;
    }
    return HEDDLE_OK;
}

/* Larger budgets: by parts of what the link can move, and of what is missing. */
static heddle_status try_budgets(struct heddle_plan_joint *j)
{
    const struct heddle_plan_job *job = j->job;
    const uint64_t peak = heddle_plan_peak(job->g), budget = job->m->budget;
    const double rate = job->m->host.out_rate + job->m->disk.out_rate;

    HEDDLE_TRY(try_budget(j, budget, false));
    for (int k = 0; k < 10 && peak > budget; k++) {
        const double missing = (double)(peak - budget);
        const double more = k < 7 ? ldexp(rate * j->base, k - 6) : ldexp(missing, k - 10);

        if (more < missing && !heddle_plan_joint_is_late(j))
            HEDDLE_TRY(try_budget(j, budget + (uint64_t)more, k == 1 || k == 3));
    }
    return HEDDLE_OK;
}

/* ---- the plan ------------------------------------------------------------------- */

static heddle_status finish(struct heddle_plan_joint *j, uint64_t *over_out,
                            struct heddle_plan **out)
{
    struct heddle_plan_job job = *j->job;
    char note[160];
    struct heddle_text t;
    struct heddle_plan_claim claim = {.solver = "offload", .bound_note = note};

    heddle_text_init(&t, note, sizeof(note));
    if (has_given_order(j->good.step, j->good.n)) {
        claim.lower_bound = j->bound;
        heddle_text_str(&t, "given order of first computations; moving alone ");
    } else {
        heddle_text_str(&t, "every operation once; moving alone, in the given "
                            "order: ");
    }
    heddle_text_double(&t, j->bound_alone);
    job.deadline_ns = heddle_clock_ns() + (uint64_t)(job.opts.time_limit_s / SLICES * 1e9);
    return heddle_plan_finish(&job, &j->good, &claim, over_out, out);
}

/* The pool is these, for another target. */
static heddle_status retime(struct heddle_plan_joint *j, const struct heddle_plan_entry *all,
                            uint32_t n, uint64_t target)
{
    struct heddle_plan_entry now[HEDDLE_PLAN_POOL];

    memcpy(now, all, sizeof(now));
    memset(j->pool, 0, sizeof(j->pool));
    j->npool = 0;
    j->target = target;
    for (uint32_t i = 0; i < n; i++) {
        now[i].climbed = 0;
        HEDDLE_TRY(heddle_plan_entry_time(j, &now[i]));
        HEDDLE_TRY(heddle_plan_pool_add(j, &now[i]));
    }
    return HEDDLE_OK;
}

/* Addresses for the first of the pool that has some, if it is shorter than *out.
 * *over_out: what the very first needs; 0: it fits, or is not shorter. */
static heddle_status try_addresses(struct heddle_plan_joint *j, uint64_t *over_out,
                                   struct heddle_plan **out)
{
    *over_out = 0;
    for (uint32_t k = 0; k < j->npool && k < TRIES; k++) {
        struct heddle_plan *p = NULL;
        uint64_t over;
        heddle_status st;

        if (*out != NULL && j->pool[k].end >= (*out)->makespan)
            break;
        HEDDLE_TRY(heddle_plan_entry_time(j, &j->pool[k]));
        st = finish(j, &over, &p);
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
            return st;
        keep_shorter(out, p);
        if (st == HEDDLE_OK)
            break;
        if (k == 0)
            *over_out = over;
    }
    return HEDDLE_OK;
}

/* The pool for another target, and what else can be found for it. Where a target is too
 * low for all of the pool, half of the way back, and again. */
static heddle_status go_to(struct heddle_plan_joint *j, uint64_t target, uint32_t round)
{
    static const uint32_t of_pool[] = {0, 0, 1, 0, 2, 0, 3};
    const uint64_t was = j->target;
    const uint32_t n = j->npool, k = of_pool[round % 7];
    const double limit = j->job->opts.time_limit_s;
    struct heddle_plan_entry all[HEDDLE_PLAN_POOL];
    double end, share;

    memcpy(all, j->pool, sizeof(all));
    if (target != was)
        HEDDLE_TRY(retime(j, all, n, target));
    for (int i = 0; i < 6 && j->npool == 0 && n > 0 && target < was; i++) {
        target += (was - target + 1) / 2;
        HEDDLE_TRY(retime(j, all, n, target));
    }
    share = fmin(j->job->g->nops > MANY ? 0.16 : 0.08,
                 0.02 + (j->stop_s - heddle_plan_job_seconds(j->job)) / limit);
    if (!heddle_plan_joint_is_late(j) && j->npool == 0)
        HEDDLE_TRY(heddle_plan_loads_solve(j, j->load + round, fmin(share, 0.08), false, &end));
    else if (!heddle_plan_joint_is_late(j))
        HEDDLE_TRY(heddle_plan_loads_again(j, &j->pool[k < j->npool ? k : 0], share));
    return heddle_plan_pool_climb(j);
}

/*
 * Addresses need more than the values do. When those of the best do not fit, all
 * is fitted to less memory, as much less as they were over; when they do, to half
 * of the way back. What is left of the time goes into the sets of values that the
 * best plans move.
 */
static heddle_status settle(struct heddle_plan_joint *j, bool has_other, struct heddle_plan **out)
{
    const double budget = (double)j->job->m->budget;

    for (uint32_t i = 0;; i++) {
        double target = (double)j->target;
        uint64_t over;

        HEDDLE_TRY(try_addresses(j, &over, out));
        if (over > 0)
            target *= 0.9985 * fmax(0.9, budget / (double)over);
        else if (j->npool > 0)
            target += (budget - target) / 2;
        if (target > 0.998 * budget && over == 0)
            target = budget;
        set_stop(j, 0.95);
        if (i == TARGETS || ((*out != NULL || has_other) && heddle_plan_joint_is_late(j)))
            return HEDDLE_OK;
        j->stop_s -= (j->stop_s - heddle_plan_job_seconds(j->job)) / 2;
        HEDDLE_TRY(go_to(j, target < budget ? (uint64_t)target : j->job->m->budget, i));
    }
}

static heddle_status solve_joint(struct heddle_plan_joint *j, const struct heddle_plan *other,
                                 struct heddle_plan **out)
{
    const bool has_other = other != NULL;

    j->target = j->job->m->budget;
    j->gap = gap_of(other);
    j->is_improved = j->gap > WIDE;
    HEDDLE_TRY(heddle_plan_loads_given(j, NULL));
    if (has_other)
        HEDDLE_TRY(try_plan(j, other));
    set_stop(j, 0.3);
    HEDDLE_TRY(heddle_plan_loads_try(j));
    set_stop(j, 0.4);
    HEDDLE_TRY(try_budgets(j));
    set_stop(j, 0.5);
    HEDDLE_TRY(heddle_plan_pool_climb(j));
    HEDDLE_TRY(settle(j, has_other, out));
    if (*out != NULL || has_other)
        return HEDDLE_OK;
    return HEDDLE_PLAN_FAIL(&j->job->opts.base, HEDDLE_ENOENT, "no plan was found within %s",
                            heddle_plan_bytes_label(j->job->m->budget).text);
}

/* Another solver's plan as ours: where data may move, its bound does not hold. */
static heddle_status adopt(const struct heddle_plan_job *job, struct heddle_plan *p)
{
    double bound;
    uint32_t at;

    p->solver = "offload";
    p->seconds = heddle_plan_job_seconds(job);
    if (!can_move(job))
        return HEDDLE_OK;
    p->lower_bound = p->baseline;
    p->bound_note = "every operation once";
    if (!has_given_order(p->steps, p->nsteps))
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_plan_joint_bound(job, &bound, &at));
    HEDDLE_TRY(heddle_plan_joint_relax(job, at, &bound, NULL));
    if (bound > p->lower_bound) {
        p->lower_bound = fmin(bound, p->makespan);
        p->bound_note = "given order of first computations";
    }
    return HEDDLE_OK;
}

/* Moving alone: the given order. j->pool has it already, if it is any good. */
static heddle_status solve_given_order(struct heddle_plan_joint *j, struct heddle_plan **best)
{
    const struct heddle_plan_job *job = j->job;
    struct heddle_plan_opts o = job->opts.base;

    o.why = NULL;
    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, job->g->nops));
    for (uint32_t i = 0; i < job->g->nops; i++)
        j->trial.seq[i] = i;
    heddle_plan_draft_clear(&j->raw);
    if (heddle_plan_draft_from_sequence(job->g, j->trial.seq, job->g->nops, &o, &j->raw) !=
        HEDDLE_OK)
        return heddle_plan_joint_no_memory(j);
    for (size_t i = 0; i < sizeof(heddle_plan_prices) / sizeof(heddle_plan_prices[0]); i++) {
        const struct heddle_plan_move_opts mo = {.target = job->m->budget,
                                                 .price = heddle_plan_prices[i]};
        struct heddle_plan *p = NULL;
        heddle_status st;

        heddle_plan_draft_clear(&j->good);
        st = heddle_plan_move(job->g, job->m, j->raw.step, j->raw.n, &mo, &o, &j->good);
        if (st == HEDDLE_OK)
            st = finish(j, NULL, &p);
        if (st == HEDDLE_ENOMEM)
            return heddle_plan_joint_no_memory(j);
        if (st == HEDDLE_OK)
            keep_shorter(best, p);
    }
    return HEDDLE_OK;
}

static heddle_status solve_moving(const struct heddle_plan_job *job,
                                  const struct heddle_plan *other, struct heddle_plan **out)
{
    struct heddle_plan_joint j = {.job = job, .mem = heddle_scratch_make(job->opts.base.alloc)};
    heddle_status st;

    heddle_plan_draft_init(&j.raw, job->opts.base.alloc);
    heddle_plan_draft_init(&j.moved, job->opts.base.alloc);
    heddle_plan_draft_init(&j.good, job->opts.base.alloc);
    heddle_plan_draft_init(&j.known, job->opts.base.alloc);
    heddle_rng_seed(&j.rng, job->opts.seed);
    j.base = heddle_plan_sum_times(job->g);
    st = heddle_plan_move_bound(job, &j.bound_alone);
    if (st == HEDDLE_OK)
        st = heddle_plan_joint_bound(job, &j.bound, &j.at);
    j.is_held = heddle_scratch_get(&j.mem, job->g->nvalues, sizeof(*j.is_held));
    if (st == HEDDLE_OK && j.is_held == NULL)
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        st = heddle_plan_joint_relax(job, j.at, &j.bound, j.is_held);
    if (st != HEDDLE_OK)
        st = heddle_plan_joint_no_memory(&j);
    if (st == HEDDLE_OK)
        st = solve_given_order(&j, out);
    j.begin_s = heddle_plan_job_seconds(job);
    if (st == HEDDLE_OK)
        st = solve_joint(&j, other, out);
    if (st != HEDDLE_OK) {
        heddle_plan_destroy(*out);
        *out = NULL;
    }
    heddle_plan_draft_fini(&j.raw);
    heddle_plan_draft_fini(&j.moved);
    heddle_plan_draft_fini(&j.good);
    heddle_plan_draft_fini(&j.known);
    heddle_scratch_drop(&j.mem);
    return st;
}

static heddle_status offload_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct heddle_plan *other = NULL, *joint = NULL;
    heddle_status st, alone;

    if (!can_move(job)) {
        HEDDLE_TRY(solve_other(job, other_solver(job), job->m->budget, 1, out));
        return adopt(job, *out);
    }
    alone = solve_alone(job, &other);
    if (alone != HEDDLE_OK && alone != HEDDLE_ENOENT)
        return alone;
    st = solve_moving(job, other, &joint);
    if (other != NULL && (st == HEDDLE_OK || st == HEDDLE_ENOENT) &&
        (joint == NULL || other->makespan <= joint->makespan)) {
        heddle_plan_destroy(joint);
        st = adopt(job, other);
        if (st == HEDDLE_OK)
            *out = other;
        else
            heddle_plan_destroy(other);
        return st;
    }
    heddle_plan_destroy(other);
    if (st == HEDDLE_OK)
        *out = joint;
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_offload = {
    .face = {.name = "offload", .help = "moves data to the host or disk, or computes it again"},
    .rank = offload_rank,
    .solve = offload_solve,
};
