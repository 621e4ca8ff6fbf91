/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * best: the shortest schedule that can be found in the time, or the cheapest.
 *
 * Method     1. all other policies, `fixed` when the caller gave types; each
 *               schedule is pushed to and fro
 *            2. shares: how much of each kernel goes where
 *            3. annealing around the best of them
 *            With a schedule in hand, it may stop at any time.
 */
#include "offline/offline.h"

enum { SEED_ROUNDS = 10, STARTS = 3, WARM = 512 };

extern const struct heddle_offline_ops heddle_offline_fixed;

struct best {
    const struct heddle_offline_dag *d;
    struct heddle_offline_decoder c;
    struct heddle_offline_groups g;
    struct heddle_offline_point p;   /* the best point */
    struct heddle_offline_point try; /* one that is tried */
    struct heddle_offline_sched s;   /* of one policy */
    struct heddle_offline_sched *out;
    double value; /* of `out` */
    double *key;
};

static bool is_done(const struct best *b)
{
    return fmin(b->value, b->p.value) <= b->d->opts->stop_at || heddle_offline_is_late(b->d);
}

/* The order of a schedule, whose types are in `try`, as a point. */
static heddle_status improve(struct best *b, struct heddle_scratch *m)
{
    const struct heddle_offline_dag *d = b->d;
    heddle_status st;

    for (uint32_t t = 0; t < d->n; t++)
        b->key[t] = fmax(0.0, b->s.makespan - b->s.start[t]);
    st = heddle_offline_order(d, b->key, m, b->try.order);
    if (st == HEDDLE_OK)
        st = heddle_offline_evaluate(&b->c, &b->try, SEED_ROUNDS, INFINITY);
    if (st == HEDDLE_OK && b->try.value < b->p.value)
        heddle_offline_point_copy(d, &b->p, &b->try);
    return st;
}

static heddle_status seed(struct best *b, const struct heddle_offline_ops *ops)
{
    struct heddle_scratch own = {.a = b->d->opts->alloc};
    const double before = fmin(b->value, b->p.value);
    heddle_status st = ops->run(b->d, &own, &b->s);
    double value = INFINITY;

    for (uint32_t t = 0; t < b->d->n && st == HEDDLE_OK; t++)
        b->try.type[t] = (uint8_t)b->s.type[t];
    if (st == HEDDLE_OK)
        value = heddle_offline_value(b->d, b->try.type, b->s.makespan);
    if (value < b->value) {
        heddle_offline_sched_copy(b->d, b->out, &b->s);
        b->value = value;
        b->out->policy = ops->name;
    }
    /* The first one has to come, the rest may be cut short. */
    if (st == HEDDLE_OK && !is_done(b))
        st = improve(b, &own);
    if (fmin(b->value, b->p.value) < before)
        b->out->policy = ops->name;
    heddle_scratch_drop(&own);
    return st;
}

/* Costs, three starts: the best seed made cheaper; shares, which know nothing of
 * it, made cheaper; the seed as it is. Each is annealed for a while, and the best
 * remains. */
static heddle_status spare(struct best *b, struct heddle_scratch *m)
{
    const struct heddle_offline_dag *d = b->d;
    const uint64_t most = d->opts->iterations;
    struct heddle_offline_point start[STARTS];
    heddle_status st = HEDDLE_OK;

    for (int i = 0; i < STARTS; i++)
        if (!heddle_offline_point_get(d, m, &start[i]))
            return HEDDLE_ENOMEM;
    heddle_offline_point_copy(d, &start[0], &b->p);
    heddle_offline_point_copy(d, &start[2], &b->p);
    if (b->p.value < INFINITY)
        st = heddle_offline_cheapen(d, &b->c, m, &start[0]);
    if (st == HEDDLE_OK && !is_done(b))
        st = heddle_offline_search_shares(d, &b->g, &b->c, m, &start[1]);
    if (st == HEDDLE_OK && !is_done(b) && start[1].value < INFINITY)
        st = heddle_offline_cheapen(d, &b->c, m, &start[1]);
    for (int i = 0; i < STARTS && st == HEDDLE_OK; i++) {
        const uint64_t until = b->out->iterations + WARM;

        if (start[i].value < INFINITY && (most == 0 || b->out->iterations < most))
            st = heddle_offline_anneal(d, &b->g, &b->c, m, most == 0 || until < most ? until : most,
                                       &start[i], &b->out->iterations);
        if (st == HEDDLE_OK && start[i].value < b->p.value)
            heddle_offline_point_copy(d, &b->p, &start[i]);
    }
    return st;
}

static heddle_status search(struct best *b, struct heddle_scratch *m)
{
    const struct heddle_offline_dag *d = b->d;
    const double before = fmin(b->value, b->p.value);
    heddle_status st = HEDDLE_OK;

    if (!is_done(b))
        st = heddle_offline_groups(d, m, &b->g);
    if (st == HEDDLE_OK && !is_done(b))
        st =
            d->cost == NULL ? heddle_offline_search_shares(d, &b->g, &b->c, m, &b->p) : spare(b, m);
    if (fmin(b->value, b->p.value) < before)
        b->out->policy = "shares";
    if (st == HEDDLE_OK && !is_done(b) && b->p.value < INFINITY &&
        (d->opts->iterations == 0 || b->out->iterations < d->opts->iterations))
        st = heddle_offline_anneal(d, &b->g, &b->c, m, d->opts->iterations, &b->p,
                                   &b->out->iterations);
    if (st == HEDDLE_OK && b->p.value < b->value)
        st = heddle_offline_emit(&b->c, &b->p, m, b->out);
    return st;
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    struct best b = {.d = d, .out = out, .value = INFINITY};
    heddle_status st = heddle_offline_decoder_init(&b.c, d, m);

    if (d->deadline == 0 && d->opts->iterations == 0)
        return HEDDLE_OFFLINE_FAIL(d->opts, HEDDLE_EINVAL,
                                   "the policy 'best' needs a limit of time or "
                                   "of iterations");
    b.key = heddle_scratch_get(m, d->n, sizeof(*b.key));
    if (st != HEDDLE_OK || b.key == NULL || !heddle_offline_point_get(d, m, &b.p) ||
        !heddle_offline_point_get(d, m, &b.try) || !heddle_offline_sched_get(d, m, &b.s))
        return HEDDLE_ENOMEM;
    out->makespan = INFINITY;
    if (d->opts->type != NULL)
        st = seed(&b, &heddle_offline_fixed);
    for (size_t i = 0; heddle_offline_table[i] != NULL && st == HEDDLE_OK; i++)
        if (d->n <= heddle_offline_table[i]->seed_limit &&
            heddle_offline_table[i]->seed_limit > 0 &&
            (b.value == (double)INFINITY || !is_done(&b)))
            st = seed(&b, heddle_offline_table[i]);
    if (st == HEDDLE_OK)
        st = search(&b, m);
    heddle_offline_decoder_fini(&b.c);
    return st;
}

const struct heddle_offline_ops heddle_offline_best = {
    .name = "best",
    .help = "all of them, then a search for as long as it may take",
    .run = run,
};
