/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shares: how many tasks of each group go to which type; of a group, the tasks with
 * the most slack go to the slower types.
 *
 * Groups     tasks whose times on the types have about the same ratios, so a
 *            group is a kernel, or several kernels that are alike.
 * Search     levelled loads say how many tasks at most go to a slower type. They do not
 *            know dependencies, so fractions of these numbers are tried. From the best
 *            trial, single counts go up and down, or one up and one down, in steps that
 *            become smaller. Each trial is a list schedule, justified from both ends.
 */
#include <string.h>

#include "base/rng.h"
#include "offline/offline.h"

/* --- groups ---------------------------------------------------------------- */

/* Ratios of a task's times, in steps of `quantum` in the logarithm. */
static uint64_t ratio_key(const struct heddle_offline_dag *d, uint32_t t, double quantum)
{
    const double *p = heddle_offline_row(d, t);
    uint64_t h = d->home[t];

    for (uint32_t r = 0; r < d->r; r++) {
        uint64_t q = 0;

        if (p[r] == INFINITY)
            q = 1000;
        else if (p[r] > d->fast[t])
            q = d->fast[t] > 0.0 ? 1 + (uint64_t)fmin(log(p[r] / d->fast[t]) / quantum, 900) : 999;
        h = heddle_mix64(h * 1009 + q + r);
    }
    return h;
}

/* False: there are too many groups. The last one takes them when `all`. */
static bool split(const struct heddle_offline_dag *d, struct heddle_offline_groups *g,
                  double quantum, bool all)
{
    uint64_t key[HEDDLE_OFFLINE_GROUPS];
    uint32_t row = HEDDLE_OFFLINE_NONE, last = 0;

    g->n = 0;
    for (uint32_t t = 0; t < d->n; t++) {
        uint64_t k;
        uint32_t i = 0;

        if (d->row[t] == row) { /* as the one before */
            g->of[t] = (uint8_t)last;
            continue;
        }
        k = ratio_key(d, t, quantum);
        while (i < g->n && key[i] != k)
            i++;
        if (i == HEDDLE_OFFLINE_GROUPS && !all)
            return false;
        if (i == HEDDLE_OFFLINE_GROUPS)
            i--;
        if (i == g->n)
            key[g->n++] = k;
        g->of[t] = (uint8_t)i;
        row = d->row[t];
        last = i;
    }
    return true;
}

heddle_status heddle_offline_groups(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                                    struct heddle_offline_groups *g)
{
    double *slack = heddle_scratch_get(m, d->n, sizeof(*slack));
    double *rank = heddle_scratch_get(m, d->n, sizeof(*rank));
    uint32_t *order = heddle_scratch_get(m, d->n, sizeof(*order));
    uint32_t at[HEDDLE_OFFLINE_GROUPS + 1] = {0};
    heddle_status st;
    double quantum = 0.1;

    *g = (struct heddle_offline_groups){0};
    g->of = heddle_scratch_get(m, d->n, sizeof(*g->of));
    g->task = heddle_scratch_get(m, d->n, sizeof(*g->task));
    if (slack == NULL || rank == NULL || order == NULL || g->of == NULL || g->task == NULL)
        return HEDDLE_ENOMEM;
    while (quantum < 50.0 && !split(d, g, quantum, false))
        quantum *= 2.0;
    if (quantum >= 50.0)
        (void)split(d, g, quantum, true);
    heddle_offline_heads(d, slack);
    heddle_offline_rank(d, d->fast, rank);
    for (uint32_t t = 0; t < d->n; t++) {
        slack[t] += rank[t]; /* the longest way through t */
        at[g->of[t] + 1]++;
    }
    st = heddle_offline_order(d, slack, m, order);
    if (st != HEDDLE_OK)
        return st;
    for (uint32_t i = 0; i < g->n; i++)
        at[i + 1] += at[i];
    memcpy(g->first, at, sizeof(at));
    for (uint32_t i = d->n; i-- > 0;) /* the shortest way first */
        g->task[at[g->of[order[i]]]++] = order[i];
    return HEDDLE_OK;
}

/* --- search ---------------------------------------------------------------- */

enum { STEPS = 7, ROUNDS = 2, STARTS = 4, PAIRS = 8 };

/* A count that is searched. */
struct knob {
    uint32_t g, r;
};

struct shares {
    const struct heddle_offline_dag *d;
    const struct heddle_offline_groups *g;
    struct heddle_offline_decoder *c;
    struct heddle_scratch *m;
    uint32_t *count, *trial, *full; /* [groups x r] away from home */
    struct heddle_offline_point p, *best;
    double value;  /* of `count` */
    uint32_t left; /* trials */
    struct knob *knob;
    uint32_t nknobs;
    uint32_t *start; /* [STARTS x groups x r] */
    double start_value[STARTS];
};

static uint32_t size_of(const struct shares *s, uint32_t g)
{
    return s->g->first[g + 1] - s->g->first[g];
}

static uint32_t *count_of(const struct shares *s, uint32_t *c, uint32_t g, uint32_t r)
{
    return &c[(size_t)g * s->d->r + r];
}

/* The tasks with the most slack leave, as far as they can. */
static void apply(struct shares *s)
{
    const struct heddle_offline_dag *d = s->d;

    memcpy(s->p.type, d->home, d->n);
    for (uint32_t g = 0; g < s->g->n; g++) {
        uint32_t i = s->g->first[g];

        for (uint32_t r = 0; r < d->r; r++) {
            uint32_t n = *count_of(s, s->trial, g, r);

            for (; n > 0 && i < s->g->first[g + 1]; i++, n--)
                if (heddle_offline_time(d, s->g->task[i], r) < INFINITY)
                    s->p.type[s->g->task[i]] = (uint8_t)r;
        }
    }
}

/* Evaluates `trial`; keeps it when it is shorter. */
static heddle_status attempt(struct shares *s, bool *is_better)
{
    heddle_status st;

    *is_better = false;
    if (s->left == 0 || heddle_offline_is_late(s->d))
        return HEDDLE_OK;
    s->left--;
    apply(s);
    st = heddle_offline_order_types(s->d, s->p.type, s->m, s->p.order);
    if (st == HEDDLE_OK)
        st = heddle_offline_evaluate(s->c, &s->p, ROUNDS, INFINITY);
    if (st != HEDDLE_OK)
        return st;
    if (s->p.value < s->best->value)
        heddle_offline_point_copy(s->d, s->best, &s->p);
    if (s->p.value < s->value) {
        s->value = s->p.value;
        *is_better = true;
        memcpy(s->count, s->trial, (size_t)s->g->n * s->d->r * sizeof(*s->count));
    }
    return HEDDLE_OK;
}

/* Remembers where the fine search begins: the best of the coarse one. */
static void remember(struct shares *s)
{
    const size_t n = (size_t)s->g->n * s->d->r;
    int i = STARTS - 1;

    if (s->p.value >= s->start_value[i])
        return;
    for (int k = 0; k < STARTS; k++)
        if (s->p.value == s->start_value[k])
            return; /* most likely the same */
    for (; i > 0 && s->start_value[i - 1] > s->p.value; i--) {
        s->start_value[i] = s->start_value[i - 1];
        memcpy(s->start + (size_t)i * n, s->start + (size_t)(i - 1) * n, n * sizeof(*s->start));
    }
    s->start_value[i] = s->p.value;
    memcpy(s->start + (size_t)i * n, s->trial, n * sizeof(*s->start));
}

/* Parts of the levelled loads, with none or one group kept at home, or one alone
 * away. */
static heddle_status coarse(struct shares *s)
{
    static const double part[] = {0.0, 1.0, 0.75, 0.5, 0.25};
    const uint32_t n = s->g->n;
    heddle_status st = HEDDLE_OK;
    bool is_better;

    for (uint32_t which = 0; which <= 2 * n && st == HEDDLE_OK; which++) {
        for (size_t i = which > 0; i < 5 && st == HEDDLE_OK; i++) {
            for (uint32_t g = 0; g < n; g++) {
                const bool stays = which <= n ? g + 1 == which : g + 1 + n != which;

                for (uint32_t r = 0; r < s->d->r; r++)
                    *count_of(s, s->trial, g, r) =
                        stays ? 0 : (uint32_t)(part[i] * *count_of(s, s->full, g, r));
            }
            st = attempt(s, &is_better);
            if (st == HEDDLE_OK)
                remember(s);
        }
    }
    return st;
}

/* One count up or down by a step; false: it is at its end. */
static bool change(struct shares *s, const struct knob *k, double step, bool is_up)
{
    const uint32_t size = size_of(s, k->g);
    const uint32_t by = (uint32_t)fmax(1.0, step * size);
    uint32_t *c = count_of(s, s->trial, k->g, k->r);
    uint32_t sum = 0;

    if (!is_up) {
        if (*c == 0)
            return false;
        *c -= by < *c ? by : *c;
        return true;
    }
    for (uint32_t i = 0; i < s->d->r; i++)
        sum += *count_of(s, s->trial, k->g, i);
    if (sum >= size)
        return false;
    *c += by < size - sum ? by : size - sum;
    return true;
}

/* Turns one knob, or one up and another one down, as long as that helps. */
static heddle_status turn(struct shares *s, const struct knob *up, const struct knob *down,
                          double step, bool *any)
{
    const size_t bytes = (size_t)s->g->n * s->d->r * sizeof(*s->count);
    heddle_status st = HEDDLE_OK;
    bool is_better = true;

    while (is_better && st == HEDDLE_OK && s->left > 0) {
        memcpy(s->trial, s->count, bytes);
        if ((up != NULL && !change(s, up, step, true)) ||
            (down != NULL && !change(s, down, step, false)))
            break;
        st = attempt(s, &is_better);
        *any = *any || is_better;
    }
    return st;
}

static heddle_status fine(struct shares *s, double step, bool *any)
{
    heddle_status st = HEDDLE_OK;

    *any = false;
    for (uint32_t i = 0; i < s->nknobs && st == HEDDLE_OK; i++) {
        st = turn(s, &s->knob[i], NULL, step, any);
        if (st == HEDDLE_OK)
            st = turn(s, NULL, &s->knob[i], step, any);
    }
    /* With many knobs, pairs would take all the time. */
    for (uint32_t i = 0; i < s->nknobs && s->nknobs <= PAIRS; i++)
        for (uint32_t k = 0; k < s->nknobs && st == HEDDLE_OK; k++)
            if (i != k)
                st = turn(s, &s->knob[i], &s->knob[k], step, any);
    return st;
}

/* From one start, in steps that become smaller. */
static heddle_status climb(struct shares *s, int start, uint32_t trials)
{
    const size_t n = (size_t)s->g->n * s->d->r;
    heddle_status st = HEDDLE_OK;
    double step = 0.25;

    if (s->start_value[start] == INFINITY)
        return HEDDLE_OK;
    s->left = trials;
    s->value = s->start_value[start];
    memcpy(s->count, s->start + (size_t)start * n, n * sizeof(*s->count));
    for (int i = 0; i < STEPS && st == HEDDLE_OK; i++, step /= 2.0) {
        bool any = true;

        while (any && st == HEDDLE_OK && s->left > 0)
            st = fine(s, step, &any);
    }
    return st;
}

static bool shares_get(struct shares *s)
{
    const struct heddle_offline_dag *d = s->d;
    const size_t n = (size_t)s->g->n * d->r;

    s->count = heddle_scratch_get(s->m, n, sizeof(*s->count));
    s->trial = heddle_scratch_get(s->m, n, sizeof(*s->trial));
    s->full = heddle_scratch_get(s->m, n, sizeof(*s->full));
    s->start = heddle_scratch_get(s->m, n * STARTS, sizeof(*s->start));
    s->knob = heddle_scratch_get(s->m, n, sizeof(*s->knob));
    for (int i = 0; i < STARTS; i++)
        s->start_value[i] = INFINITY;
    if (s->knob == NULL || s->count == NULL || s->trial == NULL || s->full == NULL ||
        s->start == NULL || !heddle_offline_point_get(d, s->m, &s->p))
        return false;
    for (uint32_t g = 0; g < s->g->n; g++) {
        const uint32_t one = s->g->task[s->g->first[g]];

        for (uint32_t r = 0; r < d->r; r++)
            if (r != d->home[one] && heddle_offline_time(d, one, r) < INFINITY)
                s->knob[s->nknobs++] = (struct knob){g, r};
    }
    return true;
}

heddle_status heddle_offline_search_shares(const struct heddle_offline_dag *d,
                                           const struct heddle_offline_groups *g,
                                           struct heddle_offline_decoder *c,
                                           struct heddle_scratch *m,
                                           struct heddle_offline_point *best)
{
    /* Per start; so many that the annealing has its time too. */
    const uint32_t trials = d->n < 1024 ? 512 : d->n < 65536 ? (1u << 19) / d->n : 8;
    struct shares s = {.d = d, .g = g, .c = c, .m = m, .best = best, .left = trials};
    uint8_t *type = heddle_scratch_get(m, d->n, sizeof(*type));
    heddle_status st = HEDDLE_ENOMEM;

    s.value = INFINITY;
    if (shares_get(&s) && type != NULL)
        st = heddle_offline_balance(d, 0.0, NULL, m, type);
    for (uint32_t t = 0; t < d->n && st == HEDDLE_OK; t++)
        if (type[t] != d->home[t])
            ++*count_of(&s, s.full, g->of[t], type[t]);
    if (st == HEDDLE_OK)
        st = coarse(&s);
    for (int i = 0; i < STARTS && st == HEDDLE_OK; i++)
        st = climb(&s, i, trials);
    return st;
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    struct heddle_offline_groups g;
    struct heddle_offline_decoder c;
    struct heddle_offline_point best;
    heddle_status st = heddle_offline_groups(d, m, &g);

    if (st != HEDDLE_OK || !heddle_offline_point_get(d, m, &best))
        return HEDDLE_ENOMEM;
    st = heddle_offline_decoder_init(&c, d, m);
    if (st == HEDDLE_OK)
        st = heddle_offline_search_shares(d, &g, &c, m, &best);
    if (st == HEDDLE_OK)
        st = best.value < INFINITY ? heddle_offline_emit(&c, &best, m, out)
                                   : heddle_offline_list_types(d, d->home, m, out);
    heddle_offline_decoder_fini(&c);
    return st;
}

const struct heddle_offline_ops heddle_offline_shares = {
    .name = "shares",
    .help = "searches how much of each kernel goes to which type",
    .run = run,
};
