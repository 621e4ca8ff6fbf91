/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How late a counter is, and over what it averages: the shift and the width for
 * which the rows explain most of the energy.
 *
 * Search     a grid of shifts up to two steps, first for whole steps, then for
 *            windows from an eighth of a step to eight; the best of each is
 *            refined by halving.
 * Runs       the window is the counter's. When it is read after an update differs
 *            from run to run, so the lag is then refined for each log by itself.
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

enum { MAX_STEPS = 2048, MAX_COLS = 10, SHIFTS = 16, ROUNDS = 6, PASSES = 2 };

#define GAIN 0.02
#define SURE 4 /* n log of the ratio of what is unexplained, for one lag */

struct search {
    struct heddle_energy_system *s;
    struct heddle_energy_gram *part; /* [nparts] */
    struct heddle_energy_gram all, one;
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
            rank += s->keys->key[s->key[k]].seconds > s->keys->key[s->key[c]].seconds ||
                    (s->keys->key[s->key[k]].seconds == s->keys->key[s->key[c]].seconds && k < c);
        if (c >= last)
            f->to[c] = n; /* bytes have another unit */
        else
            f->to[c] = 1 + (rank < MAX_COLS ? rank : MAX_COLS);
        if (f->to[c] >= n)
            n = f->to[c] + 1;
    }
    return n;
}

/* Normal equations of part i with the lag and window that are set. */
static heddle_status part_gram(struct search *f, size_t i, struct heddle_energy_gram *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(f->s->mem->a);
    struct heddle_energy_rows r;
    const heddle_status st = heddle_energy_rows_make(&tmp, f->s, i, 1, 1, MAX_STEPS, &r);

    heddle_energy_gram_clear(out);
    for (size_t k = 0; k < r.n && st == HEDDLE_OK; k++) {
        memset(f->row, 0, out->n * sizeof(*f->row));
        for (size_t c = 0; c < r.ncols; c++)
            f->row[f->to[c]] += r.a[k * r.ncols + c];
        heddle_energy_gram_row(out, f->row, r.b[k]);
    }
    heddle_scratch_drop(&tmp);
    return st;
}

static double unexplained(struct search *f)
{
    heddle_energy_nnls(f->all.n, f->all.g, f->all.h, f->x, f->work);
    return heddle_energy_gram_rss(&f->all, f->x);
}

/* All logs with one lag. */
static heddle_status try(struct search *f, int64_t lag, int64_t window)
{
    double rss;

    f->s->window_ns = window;
    heddle_energy_gram_clear(&f->all);
    for (size_t i = 0; i < f->s->nparts; i++) {
        f->s->part[i].lag_ns = lag;
        HEDDLE_TRY(part_gram(f, i, &f->one));
        heddle_energy_gram_add(&f->all, &f->one, 1);
    }
    rss = unexplained(f);
    if (rss < f->rss) {
        f->rss = rss;
        f->lag = lag;
        f->window = window;
    }
    return HEDDLE_OK;
}

/* Another lag for part i, if it is surely better. */
static heddle_status try_part(struct search *f, size_t i, int64_t lag)
{
    struct heddle_energy_part *p = &f->s->part[i];
    const int64_t old = p->lag_ns;
    double rss;

    if (lag < 0)
        return HEDDLE_OK;
    p->lag_ns = lag;
    HEDDLE_TRY(part_gram(f, i, &f->one));
    heddle_energy_gram_add(&f->all, &f->part[i], -1);
    heddle_energy_gram_add(&f->all, &f->one, 1);
    rss = unexplained(f);
    if (rss > 0 && (double)f->all.nrows * log(f->rss / rss) > SURE) {
        struct heddle_energy_gram g = f->part[i];

        f->rss = rss;
        f->part[i] = f->one;
        f->one = g;
        return HEDDLE_OK;
    }
    heddle_energy_gram_add(&f->all, &f->one, -1);
    heddle_energy_gram_add(&f->all, &f->part[i], 1);
    p->lag_ns = old;
    return HEDDLE_OK;
}

static heddle_status parts(struct search *f, int64_t step)
{
    f->s->window_ns = f->window;
    heddle_energy_gram_clear(&f->all);
    for (size_t i = 0; i < f->s->nparts; i++) {
        f->s->part[i].lag_ns = f->lag;
        HEDDLE_TRY(part_gram(f, i, &f->part[i]));
        heddle_energy_gram_add(&f->all, &f->part[i], 1);
    }
    f->rss = unexplained(f);
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i < f->s->nparts && f->s->nparts > 1; i++)
            for (int64_t d = step / 2; d > step / 1024; d /= 2) {
                const int64_t lag = f->s->part[i].lag_ns;

                HEDDLE_TRY(try_part(f, i, lag + d));
                HEDDLE_TRY(try_part(f, i, lag - d));
            }
    return HEDDLE_OK;
}

/* Shifts of whole steps. */
static heddle_status grid_whole(struct search *f, int64_t step)
{
    for (int k = 1; k <= SHIFTS; k++)
        HEDDLE_TRY(try(f, k * step * 2 / SHIFTS, 0));
    return HEDDLE_OK;
}

static heddle_status grid_windows(struct search *f, int64_t step)
{
    for (int64_t w = step / 8; w <= step * 8 && w > 0; w *= 2)
        for (int k = 0; k <= SHIFTS; k++)
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
    double plain, whole;
    int64_t lag;

    f->rss = INFINITY;
    HEDDLE_TRY(try(f, 0, 0));
    plain = f->rss;
    if (heddle_energy_count_steps(f->s) < 3 * f->all.n || !(plain > 0))
        return HEDDLE_OK;
    HEDDLE_TRY(grid_whole(f, step));
    HEDDLE_TRY(refine(f, step));
    if (f->rss > (1 - GAIN) * plain) {
        f->rss = plain;
        f->lag = 0;
    }
    whole = f->rss;
    lag = f->lag;
    f->rss = INFINITY;
    HEDDLE_TRY(grid_windows(f, step));
    HEDDLE_TRY(refine(f, step));
    if (f->rss > (1 - GAIN) * whole) {
        f->lag = lag;
        f->window = 0;
    }
    return parts(f, step);
}

/* Everything the search needs; false: no memory. */
static bool search_init(struct search *f, struct heddle_scratch *tmp)
{
    const size_t nparts = f->s->nparts;
    size_t n;

    f->to = heddle_scratch_get(tmp, f->s->ncols, sizeof(*f->to));
    f->part = heddle_scratch_get(tmp, nparts, sizeof(*f->part));
    if (f->to == NULL || f->part == NULL)
        return false;
    n = choose(f);
    f->row = heddle_scratch_get(tmp, n, sizeof(*f->row));
    f->x = heddle_scratch_get(tmp, n, sizeof(*f->x));
    f->work = heddle_scratch_get(tmp, HEDDLE_ENERGY_NNLS_WORK(n), sizeof(*f->work));
    for (size_t i = 0; i < nparts; i++)
        if (!heddle_energy_gram_init(tmp, n, &f->part[i]))
            return false;
    return heddle_energy_gram_init(tmp, n, &f->all) && heddle_energy_gram_init(tmp, n, &f->one) &&
           f->row != NULL && f->x != NULL && f->work != NULL;
}

heddle_status heddle_energy_find_lag(struct heddle_energy_system *s)
{
    struct heddle_scratch tmp = heddle_scratch_make(s->mem->a);
    struct search f = {.s = s};
    int64_t step = 0;
    heddle_status st = heddle_energy_median_step(s, &step);

    if (st == HEDDLE_OK && !search_init(&f, &tmp))
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        st = search(&f, step);
    heddle_scratch_drop(&tmp);
    return st;
}
