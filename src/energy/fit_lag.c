/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How late a counter is, and over what it averages: the shift and the width for
 * which the rows explain most of the energy.
 *
 * Search     a grid of shifts up to two steps, for whole steps and for windows from
 *            an eighth of a step to eight; then the best is refined by halving.
 * Doubt      an estimate counts only if it explains GAIN of what is left
 *            unexplained without it: noise always favours something.
 * Cost       at most MAX_STEPS steps per log and MAX_COLS columns, those that ran
 *            longest; the others are one column.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "energy/fit.h"
#include "energy/nnls.h"

enum { MAX_STEPS = 2048, MAX_COLS = 10, SHIFTS = 16, ROUNDS = 6 };

#define GAIN 0.02

struct search {
    const struct heddle_energy_system *s;
    struct heddle_energy_gram gram;
    size_t *to; /* [s->ncols] column of the small system */
    double *work, *x, *row;
    double rss; /* of the best so far */
    int64_t lag, window;
};

/* Columns by seconds; all beyond the first ones go together. */
static size_t choose(struct search *f)
{
    const struct heddle_energy_system *s = f->s;
    const size_t last = s->ncols - (s->has_bytes ? 1 : 0);
    size_t n = 1;

    f->to[0] = 0;
    for (size_t c = 1; c < s->ncols; c++) {
        size_t rank = 0;

        for (size_t k = 1; k < last && c < last; k++)
            rank += s->keys->key[s->key[k]].seconds >
                        s->keys->key[s->key[c]].seconds ||
                    (s->keys->key[s->key[k]].seconds ==
                         s->keys->key[s->key[c]].seconds &&
                     k < c);
        if (c >= last)
            f->to[c] = n; /* bytes have another unit */
        else
            f->to[c] = 1 + (rank < MAX_COLS ? rank : MAX_COLS);
        if (f->to[c] >= n)
            n = f->to[c] + 1;
    }
    return n;
}

static heddle_status try(struct search *f, int64_t lag, int64_t window)
{
    struct heddle_scratch tmp = heddle_scratch_make(f->s->mem->a);
    struct heddle_energy_rows r;
    const heddle_status st =
        heddle_energy_rows_make(&tmp, f->s, lag, window, 1, MAX_STEPS, &r);
    double rss;

    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&tmp);
        return st;
    }
    heddle_energy_gram_clear(&f->gram);
    for (size_t i = 0; i < r.n; i++) {
        memset(f->row, 0, f->gram.n * sizeof(*f->row));
        for (size_t c = 0; c < r.ncols; c++)
            f->row[f->to[c]] += r.a[i * r.ncols + c];
        heddle_energy_gram_row(&f->gram, f->row, r.b[i]);
    }
    heddle_scratch_drop(&tmp);
    heddle_energy_nnls(f->gram.n, f->gram.g, f->gram.h, f->x, f->work);
    rss = heddle_energy_gram_rss(&f->gram, f->x);
    if (rss < f->rss) {
        f->rss = rss;
        f->lag = lag;
        f->window = window;
    }
    return HEDDLE_OK;
}

static heddle_status grid(struct search *f, int64_t step)
{
    for (int k = 1; k <= SHIFTS; k++)
        HEDDLE_TRY(try(f, k * step * 2 / SHIFTS, 0));
    for (int64_t w = step / 8; w <= step * 8; w *= 2)
        for (int k = 0; k <= SHIFTS && w > 0; k++)
            HEDDLE_TRY(try(f, k * step * 2 / SHIFTS, w));
    return HEDDLE_OK;
}

static heddle_status refine(struct search *f, int64_t step)
{
    int64_t d = step / SHIFTS;

    for (int k = 0; k < ROUNDS && d > 0; k++, d /= 2) {
        const int64_t lag = f->lag, w = f->window;

        HEDDLE_TRY(try(f, lag + d, w));
        if (lag >= d)
            HEDDLE_TRY(try(f, lag - d, w));
        if (w > 0) {
            /* wider or narrower at either end */
            HEDDLE_TRY(try(f, f->lag, w + d));
            HEDDLE_TRY(try(f, f->lag, w > d ? w - d : w));
            HEDDLE_TRY(try(f, f->lag + d, w > d ? w - d : w));
            if (f->lag >= d)
                HEDDLE_TRY(try(f, f->lag - d, w + d));
        }
    }
    return HEDDLE_OK;
}

static heddle_status search(struct search *f, int64_t step)
{
    double plain;

    f->rss = INFINITY;
    HEDDLE_TRY(try(f, 0, 0));
    plain = f->rss;
    if (heddle_energy_count_steps(f->s) < 3 * f->gram.n || !(plain > 0))
        return HEDDLE_OK;
    HEDDLE_TRY(grid(f, step));
    HEDDLE_TRY(refine(f, step));
    if (f->rss > (1 - GAIN) * plain)
        f->lag = f->window = 0;
    return HEDDLE_OK;
}

heddle_status heddle_energy_find_lag(struct heddle_energy_system *s)
{
    struct heddle_scratch tmp = heddle_scratch_make(s->mem->a);
    struct search f = {.s = s};
    int64_t step = 0;
    heddle_status st = heddle_energy_median_step(s, &step);
    size_t n;

    if (st != HEDDLE_OK)
        return st;
    f.to = heddle_scratch_get(&tmp, s->ncols, sizeof(*f.to));
    if (f.to == NULL)
        return HEDDLE_ENOMEM;
    n = choose(&f);
    f.row = heddle_scratch_get(&tmp, n, sizeof(*f.row));
    f.x = heddle_scratch_get(&tmp, n, sizeof(*f.x));
    f.work =
        heddle_scratch_get(&tmp, HEDDLE_ENERGY_NNLS_WORK(n), sizeof(*f.work));
    if (!heddle_energy_gram_init(&tmp, n, &f.gram) || f.row == NULL ||
        f.x == NULL || f.work == NULL)
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        st = search(&f, step);
    heddle_scratch_drop(&tmp);
    if (st == HEDDLE_OK) {
        s->lag_ns = f.lag;
        s->window_ns = f.window;
    }
    return st;
}
