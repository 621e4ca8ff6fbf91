/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: sequences of operations, how long each takes with what is moved, and
 * the way from one to a shorter one.
 *
 * Climb     from the best of the pool single repetitions are taken out (their values are
 *           kept, and moved where there is no room), and where something waits for the
 *           link, values that come back are computed again instead; what is shorter
 *           stays.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/offload/pool.h"

enum { STARTS = 6, ROUNDS = 6, CLIMBS = 18 };

const double heddle_plan_prices[] = {0, 0.25, 2};

bool heddle_plan_joint_is_late(const struct heddle_plan_joint *j)
{
    return heddle_plan_job_seconds(j->job) > j->stop_s;
}

heddle_status heddle_plan_joint_no_memory(const struct heddle_plan_joint *j)
{
    return HEDDLE_PLAN_FAIL(&j->job->opts.base, HEDDLE_ENOMEM, "no memory for the solver");
}

/* ---- sequences ----------------------------------------------------------------- */

heddle_status heddle_plan_entry_reserve(struct heddle_plan_joint *j, struct heddle_plan_entry *e,
                                        size_t n)
{
    if (n <= e->cap)
        return HEDDLE_OK;
    e->seq = heddle_scratch_get(&j->mem, 2 * n, sizeof(*e->seq));
    e->cap = e->seq != NULL ? 2 * n : 0;
    return e->seq != NULL ? HEDDLE_OK : heddle_plan_joint_no_memory(j);
}

static heddle_status copy(struct heddle_plan_joint *j, struct heddle_plan_entry *to,
                          const struct heddle_plan_entry *from)
{
    HEDDLE_TRY(heddle_plan_entry_reserve(j, to, from->n));
    memcpy(to->seq, from->seq, from->n * sizeof(*to->seq));
    to->n = from->n;
    to->end = from->end;
    to->is_moved = from->is_moved;
    to->price = from->price;
    to->climbed = from->climbed;
    return HEDDLE_OK;
}

/* Moves what is left over, at prices first..last; e->end: the shortest, INFINITY:
 * it cannot be done. Its steps are in j->good. */
static heddle_status time_at(struct heddle_plan_joint *j, struct heddle_plan_entry *e,
                             uint32_t first, uint32_t last)
{
    const struct heddle_plan_job *job = j->job;
    struct heddle_plan_opts o = job->opts.base;
    heddle_status st;

    o.why = NULL; /* what fails here is not the end */
    e->end = INFINITY;
    heddle_plan_draft_clear(&j->raw);
    st = heddle_plan_draft_from_sequence(job->g, e->seq, e->n, &o, &j->raw);
    if (st == HEDDLE_EINVAL)
        return HEDDLE_OK;
    if (st != HEDDLE_OK)
        return heddle_plan_joint_no_memory(j);
    for (uint32_t i = first; i <= last; i++) {
        const struct heddle_plan_move_opts mo = {.target = j->target,
                                                 .price = heddle_plan_prices[i / 2],
                                                 .is_late = i % 2 == 1,
                                                 .is_moved = e->is_moved};
        struct heddle_plan_cost cost;

        /* Copies that begin late matter where the stores are small. */
        if (mo.is_late && job->m->host.bytes == 0 && job->m->disk.bytes == 0)
            continue;
        heddle_plan_draft_clear(&j->moved);
        st = heddle_plan_move(job->g, job->m, j->raw.step, j->raw.n, &mo, &o, &j->moved);
        if (st == HEDDLE_OK)
            st = heddle_plan_eval(job->g, job->m, j->moved.step, j->moved.n, &o, &cost);
        if (st == HEDDLE_ENOMEM)
            return heddle_plan_joint_no_memory(j);
        if (st == HEDDLE_OK && cost.peak_bytes <= j->target && cost.makespan < e->end) {
            const struct heddle_plan_draft d = j->good;

            e->end = cost.makespan;
            e->price = i;
            j->good = j->moved;
            j->moved = d;
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_plan_entry_time(struct heddle_plan_joint *j, struct heddle_plan_entry *e)
{
    return time_at(j, e, 0, 2 * HEDDLE_PLAN_NPRICES - 1);
}

/* j->trial, a neighbour of j->now: at its price. */
static heddle_status time_trial(struct heddle_plan_joint *j, bool *is_better)
{
    j->trial.is_moved = j->now.is_moved;
    j->trial.price = j->now.price;
    HEDDLE_TRY(time_at(j, &j->trial, j->now.price, j->now.price));
    *is_better = j->trial.end < j->now.end;
    return *is_better ? copy(j, &j->now, &j->trial) : HEDDLE_OK;
}

heddle_status heddle_plan_pool_add(struct heddle_plan_joint *j, const struct heddle_plan_entry *e)
{
    uint32_t at = j->npool;
    struct heddle_plan_entry last;

    if (!isfinite(e->end))
        return HEDDLE_OK;
    for (uint32_t i = 0; i < j->npool; i++)
        if (j->pool[i].end == e->end && j->pool[i].n == e->n)
            return HEDDLE_OK;
    if (j->npool < HEDDLE_PLAN_POOL)
        j->npool++;
    else if (e->end < j->pool[--at].end)
        ;
    else
        return HEDDLE_OK;
    last = j->pool[at];
    HEDDLE_TRY(copy(j, &last, e));
    for (; at > 0 && e->end < j->pool[at - 1].end; at--)
        j->pool[at] = j->pool[at - 1];
    j->pool[at] = last;
    return HEDDLE_OK;
}

/* ---- one repetition less or more ------------------------------------------------ */

/* j->now without the occurrences from..to. */
static heddle_status try_without(struct heddle_plan_joint *j, size_t from, size_t to,
                                 bool *is_better)
{
    const size_t n = j->now.n - (to - from + 1);

    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, n));
    memcpy(j->trial.seq, j->now.seq, from * sizeof(*j->trial.seq));
    memcpy(j->trial.seq + from, j->now.seq + to + 1, (n - from) * sizeof(*j->trial.seq));
    j->trial.n = n;
    return time_trial(j, is_better);
}

static heddle_status try_with(struct heddle_plan_joint *j, size_t at, uint32_t op, bool *is_better)
{
    HEDDLE_TRY(heddle_plan_entry_reserve(j, &j->trial, j->now.n + 1));
    memcpy(j->trial.seq, j->now.seq, at * sizeof(*j->trial.seq));
    memcpy(j->trial.seq + at + 1, j->now.seq + at, (j->now.n - at) * sizeof(*j->trial.seq));
    j->trial.seq[at] = op;
    j->trial.n = j->now.n + 1;
    return time_trial(j, is_better);
}

static bool is_repeat(const struct heddle_plan_entry *e, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (e->seq[i] == e->seq[at])
            return true;
    return false;
}

static heddle_status take_out(struct heddle_plan_joint *j, bool *has_changed)
{
    bool was_repeat = false;

    for (size_t i = 0; i < j->now.n; i++) {
        const bool is_one = is_repeat(&j->now, i);
        size_t to = i;
        bool is_better = false;

        if (heddle_plan_joint_is_late(j))
            return HEDDLE_OK;
        /* The whole run when it begins here, then this one. */
        while (is_one && !was_repeat && to + 1 < j->now.n && is_repeat(&j->now, to + 1))
            to++;
        if (is_one && to > i)
            HEDDLE_TRY(try_without(j, i, to, &is_better));
        if (is_one && !is_better)
            HEDDLE_TRY(try_without(j, i, i, &is_better));
        *has_changed |= is_better;
        was_repeat = is_one && !is_better;
    }
    return HEDDLE_OK;
}

/* Values that come back are computed again instead. j->good has the steps. */
static heddle_status put_in(struct heddle_plan_joint *j, bool *has_changed)
{
    const struct heddle_plan_graph *g = j->job->g;
    struct heddle_plan_entry *found = &(struct heddle_plan_entry){.n = 0};
    size_t at = 0;

    HEDDLE_TRY(heddle_plan_entry_time(j, &j->now));
    HEDDLE_TRY(heddle_plan_entry_reserve(j, found, 2 * (size_t)j->good.n + 1));
    for (uint32_t i = 0; i < j->good.n; i++) {
        const struct heddle_plan_step *s = &j->good.step[i];

        at += s->kind == HEDDLE_PLAN_COMPUTE;
        if (s->kind != HEDDLE_PLAN_PREFETCH || g->values[s->what].op == HEDDLE_PLAN_NONE)
            continue;
        found->seq[found->n++] = (uint32_t)at;
        found->seq[found->n++] = s->what;
    }
    for (size_t i = found->n; i >= 2; i -= 2) {
        const uint32_t v = found->seq[i - 1];
        size_t use = found->seq[i - 2];
        bool is_better = false;

        if (heddle_plan_joint_is_late(j))
            return HEDDLE_OK;
        for (; use < j->now.n; use++) {
            const struct heddle_plan_op *op = &g->ops[j->now.seq[use]];
            uint32_t k = 0;

            while (k < op->ninputs && g->inputs[op->first_input + k] != v)
                k++;
            if (k < op->ninputs)
                break;
        }
        if (use < j->now.n)
            HEDDLE_TRY(try_with(j, use, g->values[v].op, &is_better));
        *has_changed |= is_better;
    }
    return HEDDLE_OK;
}

/* Of its computations. */
static double time_of(const struct heddle_plan_joint *j, const struct heddle_plan_entry *e)
{
    double sum = 0;

    for (size_t i = 0; i < e->n; i++)
        sum += j->job->g->ops[e->seq[i]].time;
    return sum;
}

/* From one of the pool, at one price. */
static heddle_status climb(struct heddle_plan_joint *j, const struct heddle_plan_entry *from,
                           uint32_t price)
{
    bool has_changed = true;

    HEDDLE_TRY(copy(j, &j->now, from));
    HEDDLE_TRY(time_at(j, &j->now, price, price));
    j->now.price = price;
    for (int i = 0; i < ROUNDS && has_changed && !heddle_plan_joint_is_late(j); i++) {
        has_changed = false;
        HEDDLE_TRY(take_out(j, &has_changed));
        if (j->now.end > time_of(j, &j->now)) /* something waits */
            HEDDLE_TRY(put_in(j, &has_changed));
    }
    HEDDLE_TRY(heddle_plan_entry_time(j, &j->now));
    j->now.climbed = 1u << price;
    return heddle_plan_pool_add(j, &j->now);
}

/* The first of the pool that was not climbed from, at its own price, or at the
 * next ones; NULL: all were. */
static struct heddle_plan_entry *next_start(struct heddle_plan_joint *j, uint32_t *price)
{
    for (uint32_t i = 0; i < 2 * HEDDLE_PLAN_NPRICES; i += 2)
        for (uint32_t k = 0; k < STARTS && k < j->npool; k++) {
            *price = (j->pool[k].price + i) % (2 * HEDDLE_PLAN_NPRICES);
            if ((j->pool[k].climbed >> *price & 1) == 0)
                return &j->pool[k];
        }
    return NULL;
}

heddle_status heddle_plan_pool_climb(struct heddle_plan_joint *j)
{
    struct heddle_plan_entry start = {.n = 0};
    struct heddle_plan_entry *e;
    uint32_t price;

    for (int i = 0; i < CLIMBS && (i < 2 || !heddle_plan_joint_is_late(j)); i++) {
        e = next_start(j, &price);
        if (e == NULL)
            break;
        e->climbed |= 1u << price;
        HEDDLE_TRY(copy(j, &start, e));
        HEDDLE_TRY(climb(j, &start, price));
    }
    return HEDDLE_OK;
}
