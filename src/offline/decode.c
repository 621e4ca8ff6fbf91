/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode: list schedules by the thousand.
 *
 * Purpose    the search spends its time here: a point of the search is a type for each
 *            task and an order, and its value is the length of their list schedule.
 * Structure  workers of a type are alike, so only their number is kept. Ready
 *            tasks are bits at the place of the task in the order, in levels of
 *            64: the first of them is found by a few bit scans. The tasks that
 *            run lie in a heap by end.
 * Backwards  the same with the edges turned round, from the end of the schedule
 *            to its start. Pushing a schedule against its end and back
 *            (justification, as for projects with scarce resources) shortens
 *            it: tasks that need not be early make room for tasks that must be.
 * Others     with transfers or releases the engine (engine.c) evaluates a point, and
 *            only forwards.
 */
#include <string.h>

#include "base/assert.h"
#include "offline/offline.h"

bool heddle_offline_point_get(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                              struct heddle_offline_point *p)
{
    *p = (struct heddle_offline_point){.length = INFINITY, .value = INFINITY};
    p->type = heddle_scratch_get(m, d->n, sizeof(*p->type));
    p->order = heddle_scratch_get(m, d->n, sizeof(*p->order));
    return p->type != NULL && p->order != NULL;
}

void heddle_offline_point_copy(const struct heddle_offline_dag *d, struct heddle_offline_point *to,
                               const struct heddle_offline_point *from)
{
    memcpy(to->type, from->type, d->n * sizeof(*to->type));
    memcpy(to->order, from->order, d->n * sizeof(*to->order));
    to->length = from->length;
    to->value = from->value;
}

double heddle_offline_value(const struct heddle_offline_dag *d, const uint8_t *type, double length)
{
    const double within = d->opts->within;
    double sum = 0.0;

    if (d->cost == NULL)
        return length;
    if (within > 0.0 && length > within)
        return d->cost_top * (length / within);
    for (uint32_t t = 0; t < d->n; t++)
        sum += d->cost[(size_t)d->row[t] * d->r + type[t]];
    sum += d->opts->cost_rate * length;
    return d->opts->cost_product != 0 ? sum * length : sum;
}

heddle_status heddle_offline_decoder_init(struct heddle_offline_decoder *c,
                                          const struct heddle_offline_dag *d,
                                          struct heddle_scratch *m)
{
    size_t n = d->n == 0 ? 1 : d->n;

    *c = (struct heddle_offline_decoder){.d = d, .scratch = {.a = m->a}};
    do {
        n = (n + 63) / 64;
        c->level[c->nlevels++] = c->words;
        c->words += n;
    } while (n > 1); /* 2^32 tasks: six levels */
    c->rank = heddle_scratch_get(m, d->n, sizeof(*c->rank));
    c->wait = heddle_scratch_get(m, d->n, sizeof(*c->wait));
    c->started = heddle_scratch_get(m, d->n, sizeof(*c->started));
    c->ended = heddle_scratch_get(m, d->n, sizeof(*c->ended));
    c->back = heddle_scratch_get(m, d->n, sizeof(*c->back));
    c->bits = heddle_scratch_get(m, c->words * d->r, sizeof(*c->bits));
    c->end = heddle_scratch_get(m, d->w, sizeof(*c->end));
    c->run = heddle_scratch_get(m, d->w, sizeof(*c->run));
    c->nfree = heddle_scratch_get(m, d->r, sizeof(*c->nfree));
    if (c->rank == NULL || c->wait == NULL || c->started == NULL || c->ended == NULL ||
        c->back == NULL || c->bits == NULL || c->end == NULL || c->run == NULL ||
        c->nfree == NULL || !heddle_offline_sched_get(d, m, &c->s))
        return HEDDLE_ENOMEM;
    return HEDDLE_OK;
}

void heddle_offline_decoder_fini(struct heddle_offline_decoder *c)
{
    heddle_scratch_drop(&c->scratch);
}

/* --- ready tasks ----------------------------------------------------------- */

static inline void bit_set(const struct heddle_offline_decoder *c, uint32_t r, uint32_t i)
{
    uint64_t *b = c->bits + c->words * r;

    for (unsigned l = 0; l < c->nlevels; l++, i >>= 6) {
        uint64_t *word = &b[c->level[l] + (i >> 6)];
        const bool was_empty = *word == 0;

        *word |= UINT64_C(1) << (i & 63);
        if (!was_empty)
            return;
    }
}

/* Takes the first out; there is one. */
static inline uint32_t bit_take(const struct heddle_offline_decoder *c, uint32_t r)
{
    uint64_t *b = c->bits + c->words * r;
    uint32_t i = 0, first;

    for (unsigned l = c->nlevels; l-- > 0;)
        i = i * 64 + (uint32_t)__builtin_ctzll(b[c->level[l] + i]);
    first = i;
    for (unsigned l = 0; l < c->nlevels; l++, i >>= 6) {
        uint64_t *word = &b[c->level[l] + (i >> 6)];

        *word &= ~(UINT64_C(1) << (i & 63));
        if (*word != 0)
            break;
    }
    return first;
}

static inline bool bit_any(const struct heddle_offline_decoder *c, uint32_t r)
{
    return c->bits[c->words * r + c->words - 1] != 0;
}

/* --- running tasks: least end first, then first started --------------------- */

static inline void run_push(struct heddle_offline_decoder *c, uint32_t *n, uint32_t task,
                            double end)
{
    uint32_t i = (*n)++;

    while (i > 0 && end < c->end[(i - 1) / 2]) {
        c->end[i] = c->end[(i - 1) / 2];
        c->run[i] = c->run[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->end[i] = end;
    c->run[i] = task;
}

static inline uint32_t run_pop(struct heddle_offline_decoder *c, uint32_t *n)
{
    const uint32_t top = c->run[0], last = c->run[--*n];
    const double end = c->end[*n];
    uint32_t i = 0, k;

    while ((k = 2 * i + 1) < *n) {
        if (k + 1 < *n && c->end[k + 1] < c->end[k])
            k++;
        if (!(c->end[k] < end))
            break;
        c->end[i] = c->end[k];
        c->run[i] = c->run[k];
        i = k;
    }
    c->end[i] = end;
    c->run[i] = last;
    return top;
}

/* --- one schedule ---------------------------------------------------------- */

/* Fills started and ended. Returns the length. */
static double decode(struct heddle_offline_decoder *c, const uint8_t *type, const uint32_t *order,
                     bool is_backward)
{
    const struct heddle_offline_dag *d = c->d;
    const uint32_t *out_end = is_backward ? d->pred_end : d->succ_end;
    const uint32_t *out = is_backward ? d->pred : d->succ;
    const uint32_t *in_end = is_backward ? d->succ_end : d->pred_end;
    uint32_t nrun = 0, nstarted = 0, nended = 0;
    double now = 0.0;

    for (uint32_t i = 0; i < d->n; i++)
        c->rank[order[i]] = i;
    for (uint32_t t = 0; t < d->n; t++) {
        c->wait[t] = in_end[t + 1] - in_end[t];
        if (c->wait[t] == 0)
            bit_set(c, type[t], c->rank[t]);
    }
    for (uint32_t r = 0; r < d->r; r++)
        c->nfree[r] = d->first[r + 1] - d->first[r];
    for (;;) {
        for (uint32_t r = 0; r < d->r; r++) {
            for (; c->nfree[r] > 0 && bit_any(c, r); c->nfree[r]--) {
                const uint32_t t = order[bit_take(c, r)];

                c->started[nstarted++] = t;
                run_push(c, &nrun, t, now + heddle_offline_time(d, t, r));
            }
        }
        if (nrun == 0)
            break;
        now = c->end[0];
        do {
            const uint32_t t = run_pop(c, &nrun);

            c->ended[nended++] = t;
            c->nfree[type[t]]++;
            for (uint32_t k = out_end[t]; k < out_end[t + 1]; k++) {
                const uint32_t s = out[k];

                if (--c->wait[s] == 0)
                    bit_set(c, type[s], c->rank[s]);
            }
        } while (nrun > 0 && c->end[0] <= now);
    }
    HEDDLE_ASSERT(nended == d->n);
    return now;
}

static void reverse(uint32_t *to, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = from[n - 1 - i];
}

static heddle_status evaluate_slow(struct heddle_offline_decoder *c, struct heddle_offline_point *p)
{
    heddle_status st;

    heddle_scratch_drop(&c->scratch);
    st = heddle_offline_list(c->d, p->type, p->order, &c->scratch, &c->s);
    p->length = c->s.makespan;
    p->value = heddle_offline_value(c->d, p->type, p->length);
    return st;
}

heddle_status heddle_offline_evaluate(struct heddle_offline_decoder *c,
                                      struct heddle_offline_point *p, unsigned rounds, double worth)
{
    const uint32_t n = c->d->n;

    if (!c->d->is_plain)
        return evaluate_slow(c, p);
    p->length = decode(c, p->type, p->order, false);
    memcpy(p->order, c->started, n * sizeof(*p->order));
    for (unsigned i = 0; i < rounds && p->length <= worth; i++) {
        double length;

        reverse(c->back, c->ended, n);
        (void)decode(c, p->type, c->back, true);
        reverse(c->back, c->ended, n);
        length = decode(c, p->type, c->back, false);
        if (length >= p->length && i > 0)
            break;
        if (length >= p->length)
            continue;
        p->length = length;
        memcpy(p->order, c->started, n * sizeof(*p->order));
    }
    p->value = heddle_offline_value(c->d, p->type, p->length);
    return HEDDLE_OK;
}

/* --- the schedule itself --------------------------------------------------- */

/* `seq` lists the tasks by start: each gets the worker of its type that was given
 * away longest ago, which is free. */
static heddle_status assign(const struct heddle_offline_dag *d, const uint8_t *type,
                            const uint32_t *seq, struct heddle_scratch *m,
                            struct heddle_offline_sched *out)
{
    double *free_at = heddle_scratch_get(m, d->w, sizeof(*free_at));

    if (free_at == NULL)
        return HEDDLE_ENOMEM;
    out->makespan = 0.0;
    for (uint32_t i = 0; i < d->n; i++) {
        const uint32_t t = seq[i], r = type[t];
        uint32_t best = d->first[r];
        double start = 0.0;

        for (uint32_t k = d->pred_end[t]; k < d->pred_end[t + 1]; k++)
            start = fmax(start, out->end[d->pred[k]]);
        for (uint32_t w = best + 1; w < d->first[r + 1]; w++)
            if (free_at[w] < free_at[best])
                best = w;
        start = fmax(start, free_at[best]);
        out->type[t] = r;
        out->worker[t] = best;
        out->start[t] = start;
        out->end[t] = free_at[best] = start + heddle_offline_time(d, t, r);
        out->makespan = fmax(out->makespan, out->end[t]);
    }
    return HEDDLE_OK;
}

heddle_status heddle_offline_emit(struct heddle_offline_decoder *c,
                                  const struct heddle_offline_point *p, struct heddle_scratch *m,
                                  struct heddle_offline_sched *out)
{
    const struct heddle_offline_dag *d = c->d;
    struct heddle_scratch own = {.a = m->a};
    heddle_status st;

    if (!d->is_plain) {
        st = heddle_offline_list(d, p->type, p->order, &own, out);
    } else {
        (void)decode(c, p->type, p->order, false);
        st = assign(d, p->type, c->started, &own, out);
    }
    heddle_scratch_drop(&own);
    return st;
}
