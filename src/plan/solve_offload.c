/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload: computes again, or moves to the host and back, whichever is cheaper.
 *
 * Purpose   any graph. Never worse than computing again alone, or moving alone.
 * Method    plans of the best other solver for this budget and for larger ones are
 *           sequences of operations; heddle_plan_move() makes each fit by moving
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
#include "plan/offload.h"

static const double prices[] = {0, 0.25, 2};

struct joint {
    const struct heddle_plan_job *job;
    struct heddle_scratch mem;
    struct heddle_plan_draft raw, moved, best;
    double best_end; /* INFINITY: none */
    double only_end; /* moving alone */
    uint64_t target;
    uint32_t *seq, *trial, *best_seq; /* of room for `cap` */
    size_t nseq, nbest, cap;
};

static heddle_status no_memory(const struct joint *j)
{
    return heddle_plan_fail(&j->job->opts.base, HEDDLE_ENOMEM,
                            "no memory for the solver");
}

static bool can_move(const struct heddle_plan_job *job)
{
    return job->opts.moves &&
           (job->m->host.out_rate > 0 || job->m->disk.out_rate > 0);
}

static int offload_rank(const struct heddle_plan_job *job)
{
    return can_move(job) ? 100 : 0;
}

/* ---- the other solvers ------------------------------------------------------- */

static const struct heddle_plan_solver_ops *
other_solver(const struct heddle_plan_job *job)
{
    const struct heddle_plan_solver_ops *best = NULL;
    int most = 0;

    for (size_t i = 0; heddle_plan_solver_table[i] != NULL; i++) {
        const struct heddle_plan_solver_ops *s = heddle_plan_solver_table[i];

        if (s->rank == offload_rank ||
            (s->face.is_for_chains && job->g->chain == NULL))
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
                                 uint64_t budget, double share,
                                 struct heddle_plan **out)
{
    struct heddle_plan_machine m = *job->m;
    struct heddle_plan_job sub = *job;
    const struct heddle_plan_solver_ops *s;

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
    s = other_solver(&sub);
    return s != NULL ? s->solve(&sub, out)
                     : heddle_plan_fail(&job->opts.base, HEDDLE_EINVAL,
                                        "there is no other solver");
}

/* ---- sequences ----------------------------------------------------------------- */

static heddle_status reserve(struct joint *j, size_t n)
{
    uint32_t *p;

    if (n <= j->cap)
        return HEDDLE_OK;
    p = heddle_scratch_get(&j->mem, 3 * n, sizeof(*p));
    if (p == NULL)
        return no_memory(j);
    if (j->nbest > 0)
        memcpy(p + 2 * n, j->best_seq, j->nbest * sizeof(*p));
    j->seq = p;
    j->trial = p + n;
    j->best_seq = p + 2 * n;
    j->cap = n;
    return HEDDLE_OK;
}

static void keep_draft(struct joint *j, const uint32_t *seq, size_t n,
                       double end)
{
    const struct heddle_plan_draft d = j->best;

    j->best = j->moved;
    j->moved = d;
    j->best_end = end;
    memmove(j->best_seq, seq, n * sizeof(*seq));
    j->nbest = n;
}

/* Moves what is left over, at several prices; keeps the best of all. *end_out:
 * the shortest of this sequence; INFINITY: it cannot be done. */
static heddle_status try_sequence(struct joint *j, const uint32_t *seq,
                                  size_t n, double *end_out)
{
    const struct heddle_plan_job *job = j->job;
    struct heddle_plan_opts o = job->opts.base;
    heddle_status st;

    o.why = NULL; /* what fails here is not the end */
    *end_out = INFINITY;
    heddle_plan_draft_clear(&j->raw);
    st = heddle_plan_draft_from_sequence(job->g, seq, n, &o, &j->raw);
    if (st == HEDDLE_EINVAL)
        return HEDDLE_OK;
    HEDDLE_TRY(st);
    for (size_t i = 0; i < 2 * sizeof(prices) / sizeof(prices[0]); i++) {
        const struct heddle_plan_move_opts mo = {
            .target = j->target, .price = prices[i / 2], .is_late = i % 2 == 1};
        struct heddle_plan_cost cost;

        /* Copies that begin late matter where the stores are small. */
        if (mo.is_late && job->m->host.bytes == 0 && job->m->disk.bytes == 0)
            continue;
        heddle_plan_draft_clear(&j->moved);
        st = heddle_plan_move(job->g, job->m, j->raw.step, j->raw.n, &mo, &o,
                              &j->moved);
        if (st == HEDDLE_OK)
            st = heddle_plan_eval(job->g, job->m, j->moved.step, j->moved.n, &o,
                                  &cost);
        if (st == HEDDLE_ENOMEM)
            return no_memory(j);
        if (st != HEDDLE_OK || cost.peak_bytes > j->target)
            continue;
        *end_out = fmin(*end_out, cost.makespan);
        if (cost.makespan < j->best_end)
            keep_draft(j, seq, n, cost.makespan);
    }
    return HEDDLE_OK;
}

static heddle_status try_plan(struct joint *j, const struct heddle_plan *p)
{
    double end;

    HEDDLE_TRY(reserve(j, p->nsteps));
    j->nseq = 0;
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].kind == HEDDLE_PLAN_COMPUTE)
            j->seq[j->nseq++] = p->steps[i].what;
    return try_sequence(j, j->seq, j->nseq, &end);
}

static heddle_status try_given_order(struct joint *j)
{
    HEDDLE_TRY(reserve(j, j->job->g->nops));
    for (uint32_t i = 0; i < j->job->g->nops; i++)
        j->seq[i] = i;
    return try_sequence(j, j->seq, j->job->g->nops, &j->only_end);
}

/* Larger budgets: by parts of what the link can move, and of what is missing. */
static heddle_status try_larger_budgets(struct joint *j)
{
    const struct heddle_plan_job *job = j->job;
    const uint64_t peak = heddle_plan_peak(job->g), budget = job->m->budget;
    const double rate = job->m->host.out_rate + job->m->disk.out_rate;
    double base = 0;

    for (uint32_t i = 0; i < job->g->nops; i++)
        base += job->g->ops[i].time;
    for (int k = 0; k < 9 && peak > budget; k++) {
        const double missing = (double)(peak - budget);
        const double more =
            k < 6 ? ldexp(rate * base, k - 5) : ldexp(missing, k - 9);
        struct heddle_plan *p = NULL;
        struct heddle_plan_opts quiet = job->opts.base;
        struct heddle_plan_job sub = *job;
        heddle_status st;

        if (!(more < missing) || heddle_plan_job_is_late(job))
            continue;
        quiet.why = NULL;
        sub.opts.base = quiet;
        st = solve_other(&sub, budget + (uint64_t)more, 0.04, &p);
        if (st == HEDDLE_OK)
            st = try_plan(j, p);
        heddle_plan_destroy(p);
        if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
            return st;
    }
    return HEDDLE_OK;
}

/* ---- taking repetitions out ---------------------------------------------------- */

/* True at occurrences that repeat an earlier one. */
static heddle_status mark_repeats(struct joint *j, bool *is_repeat, bool *seen)
{
    memset(seen, 0, j->job->g->nops * sizeof(*seen));
    for (size_t i = 0; i < j->nbest; i++) {
        is_repeat[i] = seen[j->best_seq[i]];
        seen[j->best_seq[i]] = true;
    }
    return HEDDLE_OK;
}

/* The best sequence without the occurrences from..to. */
static heddle_status try_without(struct joint *j, size_t from, size_t to,
                                 bool *is_better)
{
    const double before = j->best_end;
    const size_t n = j->nbest - (to - from + 1);
    double end;

    memcpy(j->trial, j->best_seq, from * sizeof(*j->trial));
    memcpy(j->trial + from, j->best_seq + to + 1,
           (n - from) * sizeof(*j->trial));
    HEDDLE_TRY(try_sequence(j, j->trial, n, &end));
    *is_better = j->best_end < before;
    return HEDDLE_OK;
}

static heddle_status take_out(struct joint *j)
{
    bool *is_repeat, *seen;
    bool again = true;

    is_repeat = heddle_scratch_get(&j->mem, j->cap, sizeof(*is_repeat));
    seen = heddle_scratch_get(&j->mem, j->job->g->nops, sizeof(*seen));
    if (is_repeat == NULL || seen == NULL)
        return no_memory(j);
    for (int round = 0; again && round < 8; round++) {
        again = false;
        HEDDLE_TRY(mark_repeats(j, is_repeat, seen));
        for (size_t i = 0; i < j->nbest; i++) {
            size_t to = i;
            bool is_better = false;

            if (heddle_plan_job_is_late(j->job))
                return HEDDLE_OK;
            if (!is_repeat[i])
                continue;
            while (to + 1 < j->nbest && is_repeat[to + 1])
                to++;
            /* The whole run when it begins here, then this one. */
            if (to > i && (i == 0 || !is_repeat[i - 1]))
                HEDDLE_TRY(try_without(j, i, to, &is_better));
            if (!is_better)
                HEDDLE_TRY(try_without(j, i, i, &is_better));
            if (is_better) {
                again = true;
                HEDDLE_TRY(mark_repeats(j, is_repeat, seen));
            }
        }
    }
    return HEDDLE_OK;
}

/* ---- the plan ------------------------------------------------------------------- */

static heddle_status search(struct joint *j, const struct heddle_plan *other)
{
    j->best_end = INFINITY;
    j->nbest = 0;
    HEDDLE_TRY(try_given_order(j));
    if (other != NULL)
        HEDDLE_TRY(try_plan(j, other));
    HEDDLE_TRY(try_larger_budgets(j));
    if (isfinite(j->best_end))
        HEDDLE_TRY(take_out(j));
    return HEDDLE_OK;
}

static heddle_status finish(struct joint *j, uint64_t *over,
                            struct heddle_plan **out)
{
    char note[160];
    struct heddle_text t;
    struct heddle_plan_claim claim = {.solver = "offload", .bound_note = note};
    double bound = 0;

    HEDDLE_TRY(heddle_plan_move_bound(j->job, &bound));
    heddle_text_init(&t, note, sizeof(note));
    heddle_text_str(&t, "every operation once; moving alone, in this order: ");
    heddle_text_double(&t, bound);
    return heddle_plan_finish(j->job, &j->best, &claim, over, out);
}

/* Joint plans, with less and less memory until the addresses fit. */
static heddle_status solve_joint(struct joint *j,
                                 const struct heddle_plan *other,
                                 struct heddle_plan **out)
{
    const uint64_t budget = j->job->m->budget;
    heddle_status st = HEDDLE_ENOENT;

    j->target = budget;
    for (int i = 0; i < 6 && st == HEDDLE_ENOENT; i++) {
        uint64_t over = 0;

        if (i > 0 && heddle_plan_job_is_late(j->job))
            break;
        HEDDLE_TRY(search(j, other));
        if (!isfinite(j->best_end))
            return heddle_plan_fail(&j->job->opts.base, HEDDLE_ENOENT,
                                    "no plan was found within %s",
                                    heddle_plan_bytes_label(budget).text);
        st = finish(j, &over, out);
        if (over > budget)
            j->target -= j->target < over - budget ? j->target : over - budget;
    }
    return st;
}

static heddle_status offload_solve(const struct heddle_plan_job *job,
                                   struct heddle_plan **out)
{
    struct joint j = {.job = job,
                      .mem = heddle_scratch_make(job->opts.base.alloc)};
    struct heddle_plan *other = NULL, *joint = NULL;
    heddle_status st, one;

    if (!can_move(job))
        return solve_other(job, job->m->budget, 1, out);
    one = solve_other(job, job->m->budget, 0.4, &other);
    if (one != HEDDLE_OK && one != HEDDLE_ENOENT)
        return one;
    heddle_plan_draft_init(&j.raw, job->opts.base.alloc);
    heddle_plan_draft_init(&j.moved, job->opts.base.alloc);
    heddle_plan_draft_init(&j.best, job->opts.base.alloc);
    st = solve_joint(&j, other, &joint);
    heddle_plan_draft_fini(&j.raw);
    heddle_plan_draft_fini(&j.moved);
    heddle_plan_draft_fini(&j.best);
    heddle_scratch_drop(&j.mem);
    if (st == HEDDLE_ENOENT && other != NULL)
        st = HEDDLE_OK;
    if (st == HEDDLE_OK && other != NULL &&
        (joint == NULL || other->makespan <= joint->makespan)) {
        *out = other;
        heddle_plan_destroy(joint);
        return HEDDLE_OK;
    }
    heddle_plan_destroy(other);
    if (st == HEDDLE_OK)
        *out = joint;
    else
        heddle_plan_destroy(joint);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_offload = {
    .face = {.name = "offload",
             .help = "moves data to the host or disk, or computes it again"},
    .rank = offload_rank,
    .solve = offload_solve,
};
