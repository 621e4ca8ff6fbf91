/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bracket: exact bytes from tables in units.
 *
 * Sizes rounded down: every plan that fits in bytes fits in units, so the table
 * has a lower bound. Plans come from tables of several roundings, and are evaluated
 * in bytes, from more units than the budget has downwards: the first that fits is
 * the best of its table, and what rounding wasted is used. Where all else fails
 * sizes are rounded up: then every plan fits. When the unit divides all sizes one
 * table says everything.
 *
 * Monotone   units are those of unit_of_level() and depend on the budget only
 *            through "so many slots at most". For one unit the plan cannot get
 *            worse with more memory: what fits in less fits in more. Where the
 *            unit grows, the finer table of the budget at which it did is asked
 *            too, unless the coarse bound at that budget says that it cannot be
 *            better; a few times at most.
 * A caller who gives the number of slots gets the plan of one table, without a
 * bound.
 *
 * Repeatable the number of slots follows from the time that may be used, not from
 *            a clock.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/chain/chain.h"

#define SUMS_PER_SECOND 6e9 /* of minplus, on a slow day */
#define TABLE_BYTES     1.4e9
enum { SLOTS_MIN = 64, SLOTS_MOST = 8192, PLACES_MAX = 16, LEVELS_MOST = 2 };

struct bracket {
    const struct heddle_plan_job *job;
    const struct heddle_plan_model *model;
    struct heddle_plan_units u;
    struct heddle_scratch mem; /* of u */
    void *table;
    uint64_t unit;
    double bound;             /* of the whole, in the caller's time */
    struct heddle_plan *best; /* its bound is not set yet */
    struct heddle_plan_draft draft;
    unsigned nplaced; /* plans that were given addresses in this walk */
};

static heddle_status no_memory(const struct bracket *b)
{
    return HEDDLE_PLAN_FAIL(&b->job->opts.base, HEDDLE_ENOMEM,
                            "no memory for the table of solver %s", b->model->name);
}

static void close_table(struct bracket *b)
{
    if (b->table != NULL)
        b->model->drop(b->table);
    b->table = NULL;
    heddle_scratch_drop(&b->mem);
    b->mem = heddle_scratch_make(b->job->opts.base.alloc);
}

static heddle_status open_table(struct bracket *b, uint64_t unit,
                                enum heddle_plan_rounding rounding, uint32_t slots)
{
    const struct heddle_allocator *a = b->job->opts.base.alloc;

    close_table(b);
    b->unit = unit;
    if (heddle_plan_units_make(b->job->g->chain, unit, rounding, slots, &b->mem, &b->u) !=
            HEDDLE_OK ||
        b->model->make(&b->u, a, &b->table) != HEDDLE_OK)
        return no_memory(b);
    return HEDDLE_OK;
}

/* ---- plans of a table -------------------------------------------------------- */

static double bound_at(const struct bracket *b, uint32_t m)
{
    const double v = b->model->value(b->table, m) * b->u.scale;

    if (b->u.is_exact && 2 * v <= (1 << 24))
        return v;
    return v * (1 - b->model->roundings(b->u.n) * 0x1p-23);
}

/* Whether the steps of the draft are a better plan than the best, in bytes. */
static heddle_status evaluate(struct bracket *b, uint64_t limit, struct heddle_plan_cost *cost)
{
    const struct heddle_plan_opts quiet = {.size = sizeof(quiet), .alloc = b->job->opts.base.alloc};

    HEDDLE_TRY(heddle_plan_eval(b->job->g, b->job->m, b->draft.step, b->draft.n, &quiet, cost));
    return cost->peak_bytes > limit ? HEDDLE_ENOENT : HEDDLE_OK;
}

static heddle_status draft_plan(struct bracket *b, uint32_t m)
{
    struct heddle_plan_seq q = {.a = b->job->opts.base.alloc};
    heddle_status st;

    b->model->trace(b->table, m, &q);
    heddle_plan_draft_clear(&b->draft);
    st = q.st;
    if (st == HEDDLE_OK)
        st = heddle_plan_draft_from_sequence(b->job->g, q.op, q.n, &b->job->opts.base, &b->draft);
    heddle_plan_seq_fini(&q);
    return st;
}

/* The plan of m units becomes the best, when it fits `limit` bytes, addresses
 * included, and is better. HEDDLE_ENOENT: it does not fit. */
static heddle_status try_plan(struct bracket *b, uint32_t m, uint64_t limit, bool is_hard)
{
    struct heddle_plan_claim claim = {.solver = b->model->name, .bound_note = b->model->note};
    struct heddle_plan_machine machine = *b->job->m;
    struct heddle_plan_job job = *b->job;
    struct heddle_plan_cost cost = {0};
    struct heddle_plan *p = NULL;

    HEDDLE_TRY(draft_plan(b, m));
    HEDDLE_TRY(evaluate(b, limit, &cost));
    if (b->best != NULL && !(cost.makespan < b->best->makespan))
        return HEDDLE_OK;
    machine.budget = limit;
    job.m = &machine;
    if (!is_hard)
        job.deadline_ns = 0; /* only a little search for addresses */
    b->nplaced++;
    HEDDLE_TRY(heddle_plan_finish(&job, &b->draft, &claim, NULL, &p));
    heddle_plan_destroy(b->best);
    b->best = p;
    return HEDDLE_OK;
}

/* The fewest units whose plan takes no longer than that of m. */
static uint32_t fewest(const struct bracket *b, uint32_t m)
{
    const double v = b->model->value(b->table, m);
    uint32_t lo = 0, hi = m;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (b->model->value(b->table, mid) <= v)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/*
 * From `slots` units down: the first plan that fits. Of equal times the least
 * memory is tried. Where addresses are the trouble the steps get longer; the last
 * resort is the plan with the least memory and a long search for addresses.
 */
static heddle_status walk(struct bracket *b, uint64_t limit)
{
    uint32_t m = b->u.slots, step = 1;

    b->nplaced = 0;
    for (;;) {
        const double v = b->model->value(b->table, m) * b->u.scale;
        const uint32_t least = isfinite(v) ? fewest(b, m) : 0;
        heddle_status st;

        if (!isfinite(v))
            break;
        if (b->best != NULL && v > b->best->makespan * (1 + 1e-6))
            return HEDDLE_OK;
        st = try_plan(b, least, limit, false);
        if (st != HEDDLE_ENOENT)
            return st;
        if (b->nplaced > PLACES_MAX)
            step = b->u.slots / 64 + 1;
        if (least < step)
            break;
        m = least - step;
    }
    return HEDDLE_OK;
}

/* Nothing found: the plan with the least memory. */
static heddle_status last_resort(struct bracket *b, uint64_t limit)
{
    const uint32_t slots = b->u.slots;
    uint32_t lo = 0, hi = slots;
    heddle_status st;

    if (b->best != NULL || !isfinite(b->model->value(b->table, slots)))
        return HEDDLE_OK;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (isfinite(b->model->value(b->table, mid)))
            hi = mid;
        else
            lo = mid + 1;
    }
    st = try_plan(b, lo, limit, true);
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* ---- levels ------------------------------------------------------------------- */

uint32_t heddle_plan_bracket_slots(const struct heddle_plan_job *job,
                                   const struct heddle_plan_model *model, double seconds)
{
    const uint32_t n = job->g->chain->n;
    /* two tables, one of them an eighth larger */
    double s = seconds * SUMS_PER_SECOND / (2.2 * model->work(n));
    const double cap = TABLE_BYTES / (1.125 * model->bytes(n));

    if (job->opts.slots > 0)
        return job->opts.slots <= cap ? job->opts.slots : 0;
    s = s < cap ? s : cap;
    s = s < SLOTS_MOST ? s : SLOTS_MOST;
    return s >= SLOTS_MIN ? (uint32_t)s : 0;
}

static double best_time(const struct bracket *b)
{
    return b->best != NULL ? b->best->makespan : (double)INFINITY;
}

/* Both tables for `limit` bytes. *below_out: no plan within `less` slots is
 * shorter. */
static heddle_status solve_level(struct bracket *b, uint64_t unit, uint64_t limit, bool is_whole,
                                 uint32_t less, double *below_out)
{
    const uint32_t slots = (uint32_t)(limit / unit);
    heddle_status st = open_table(b, unit, HEDDLE_PLAN_DOWN, slots);
    double bound;

    if (st != HEDDLE_OK)
        return st;
    bound = bound_at(b, slots);
    if (limit == b->job->m->budget)
        b->bound = bound;
    *below_out = less < slots ? bound_at(b, less) : 0;
    st = walk(b, limit);
    if (st == HEDDLE_OK && is_whole)
        st = last_resort(b, limit);
    if (st != HEDDLE_OK || is_whole || !isfinite(bound) || best_time(b) <= bound * (1 + 1e-6))
        return st;
    st = open_table(b, unit, HEDDLE_PLAN_EVEN, slots + slots / 8);
    if (st == HEDDLE_OK)
        st = walk(b, limit);
    if (st != HEDDLE_OK || b->best != NULL)
        return st;
    st = open_table(b, unit, HEDDLE_PLAN_UP, slots);
    if (st == HEDDLE_OK)
        st = walk(b, limit);
    return st == HEDDLE_OK ? last_resort(b, limit) : st;
}

static heddle_status no_plan(const struct bracket *b)
{
    return HEDDLE_PLAN_FAIL(&b->job->opts.base, HEDDLE_ENOENT,
                            isfinite(b->bound) ? "solver %s found no plan within %s"
                                               : "solver %s: no plan of its kind exists within %s",
                            b->model->name, heddle_plan_bytes_label(b->job->m->budget).text);
}

/* The caller says how many slots: one table, of sizes rounded up. */
static heddle_status solve_fixed(struct bracket *b, uint32_t slots)
{
    const uint64_t budget = b->job->m->budget;
    uint64_t unit;
    heddle_status st;

    slots = slots < HEDDLE_PLAN_SLOTS_MAX ? slots : HEDDLE_PLAN_SLOTS_MAX;
    unit = budget / slots + (budget % slots != 0);
    unit = unit > 0 ? unit : 1;
    st = open_table(b, unit, HEDDLE_PLAN_UP, (uint32_t)(budget / unit));
    if (st == HEDDLE_OK)
        st = walk(b, budget);
    return st == HEDDLE_OK ? last_resort(b, budget) : st;
}

/* Units are the divisor of all sizes times 1 2 3 4 5 6 7 8 10 12 14 16 20 ... */
static uint64_t unit_of_level(uint64_t divisor, unsigned level)
{
    const unsigned shift = level < 4 ? 0 : level / 4 - 1;
    const uint64_t factor = level < 4 ? level + 1 : (uint64_t)(4 + level % 4) << shift;

    return factor <= UINT64_MAX / divisor ? divisor * factor : UINT64_MAX;
}

static heddle_status solve_levels(struct bracket *b, uint32_t slots)
{
    const uint64_t budget = b->job->m->budget;
    uint64_t divisor = heddle_plan_chain_unit(b->job->g->chain);
    uint64_t limit = budget;
    unsigned level = 0;

    divisor = divisor > 0 ? divisor : budget / slots + 1;
    while (budget / unit_of_level(divisor, level) > slots)
        level++;
    for (unsigned i = 0; i < LEVELS_MOST; i++) {
        const uint64_t unit = unit_of_level(divisor, level);
        const uint64_t finer = level > 0 ? unit_of_level(divisor, level - 1) * slots : 0;
        double below = 0;

        HEDDLE_TRY(solve_level(b, unit, limit, level == 0, (uint32_t)(finer / unit), &below));
        if (level == 0 || best_time(b) <= below || !isfinite(b->bound))
            break;
        level--;
        limit = finer;
    }
    return HEDDLE_OK;
}

/* The bound became known, or better, after the plan was made. */
static void set_bound(struct bracket *b)
{
    if (b->bound > b->best->lower_bound)
        b->best->lower_bound = b->bound < b->best->makespan ? b->bound : b->best->makespan;
    b->best->budget = b->job->m->budget;
    b->best->seconds = heddle_plan_job_seconds(b->job);
}

heddle_status heddle_plan_bracket(const struct heddle_plan_job *job,
                                  const struct heddle_plan_model *model, double seconds,
                                  double *bound_out, struct heddle_plan **out)
{
    const uint32_t slots = heddle_plan_bracket_slots(job, model, seconds);
    struct bracket b = {.job = job, .model = model, .bound = 0};
    heddle_status st;

    if (slots == 0)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                                "the chain is too long for solver %s in this "
                                "time and memory",
                                model->name);
    b.mem = heddle_scratch_make(job->opts.base.alloc);
    heddle_plan_draft_init(&b.draft, job->opts.base.alloc);
    st = job->opts.slots > 0 ? solve_fixed(&b, slots) : solve_levels(&b, slots);
    close_table(&b);
    heddle_plan_draft_fini(&b.draft);
    if (st == HEDDLE_ENOMEM)
        st = no_memory(&b);
    if (st == HEDDLE_OK && b.best == NULL)
        st = no_plan(&b);
    if (bound_out != NULL)
        *bound_out = b.bound;
    if (st != HEDDLE_OK) {
        heddle_plan_destroy(b.best);
        return st;
    }
    set_bound(&b);
    *out = b.best;
    return HEDDLE_OK;
}
