/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rows and columns the system of a domain has.
 *
 * Rows       are weighted by the inverse of their length. Successive ones are put
 *            together while that makes the joules of the kernels surer: errors in
 *            when a counter was updated cancel within a longer row, but a longer
 *            row tells kernels apart less well.
 * Groups     columns whose correlation, with idle power taken out, is above
 *            TWINS become one: nothing in the data tells them apart.
 * Blocks     rows are summed up in at most MAX_BLOCKS blocks, none of two logs.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "energy/fit_state.h"
#include "energy/nnls.h"

enum { MAX_BLOCKS = 48, MAX_ROWS = 65536, MIN_ROWS = 40, MAX_EACH = 64 };

#define TWINS 0.99
#define FLAT  1e-4 /* share of a column that is not idle's */

/* ---- how many rows become one ---------------------------------------------- */

/* Variance of the joules of all columns but idle, were rows independent. */
static double doubt(struct heddle_energy_solving *f, const struct heddle_energy_gram *g)
{
    const size_t n = g->n;
    double *l = f->work, *e = f->work + n * n, sum = 0;
    double trace = 0;

    if (g->nrows <= n + 2)
        return INFINITY;
    heddle_energy_nnls(n, g->g, g->h, f->x, f->work);
    sum = heddle_energy_gram_rss(g, f->x) / (double)(g->nrows - n);
    for (size_t i = 0; i < n; i++)
        trace += g->g[i * n + i];
    memcpy(f->gl, g->g, n * n * sizeof(*f->gl));
    for (size_t i = 0; i < n; i++) /* columns without data, twins */
        f->gl[i * n + i] += 1e-6 * (g->g[i * n + i] + 1e-9 * trace);
    if (!heddle_energy_cholesky(n, f->gl, l))
        return INFINITY;
    trace = 0;
    for (size_t i = 1; i < n; i++) {
        memset(e, 0, n * sizeof(*e));
        e[i] = 1;
        heddle_energy_cholesky_solve(n, l, e, e);
        trace += g->sum[i] * g->sum[i] * e[i];
    }
    return sum * trace;
}

heddle_status heddle_energy_choose_rows(struct heddle_energy_solving *f)
{
    const struct heddle_energy_system *s = f->s;
    const size_t nsteps = heddle_energy_count_steps(s);
    const size_t first = (nsteps + MAX_ROWS - 1) / MAX_ROWS;
    double best = INFINITY;
    struct heddle_energy_gram g;

    f->out->each = first;
    HEDDLE_TRY(heddle_energy_rows_make(&f->tmp, s, 0, s->nparts, first, SIZE_MAX, &f->rows));
    if (!heddle_energy_gram_init(&f->tmp, s->ncols, &g))
        return HEDDLE_ENOMEM;
    for (size_t each = 1; each <= MAX_EACH; each *= 2) {
        double d;

        if (each > 1)
            heddle_energy_rows_merge(&f->rows, 2);
        if (each > 1 && f->rows.n < MIN_ROWS + 4 * s->ncols)
            break;
        heddle_energy_gram_clear(&g);
        for (size_t i = 0; i < f->rows.n; i++)
            heddle_energy_gram_row(&g, f->rows.a + i * s->ncols, f->rows.b[i]);
        d = doubt(f, &g);
        if (d < best) {
            best = d;
            f->out->each = first * each;
        }
    }
    /* Merged for good. */
    HEDDLE_TRY(heddle_energy_rows_make(&f->tmp, s, 0, s->nparts, f->out->each, SIZE_MAX, &f->rows));
    f->out->nrows = f->rows.n;
    return HEDDLE_OK;
}

/* ---- blocks ---------------------------------------------------------------- */

static heddle_status blocks_make(struct heddle_energy_solving *f)
{
    const size_t ncols = f->s->ncols, n = f->rows.n;
    const size_t length = n / MAX_BLOCKS + 1;
    const size_t room = n / length + 1 + f->s->nparts;
    size_t have = 0;

    f->block = heddle_scratch_get(&f->tmp, room, sizeof(*f->block));
    if (f->block == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++, have++) {
        struct heddle_energy_gram *b;

        if (i == 0 || have == length || f->rows.log[i] != f->rows.log[i - 1]) {
            b = &f->block[f->nblocks++];
            if (!heddle_energy_gram_init(&f->tmp, ncols, b))
                return HEDDLE_ENOMEM;
            b->log = f->rows.log[i];
            have = 0;
        }
        heddle_energy_gram_row(&f->block[f->nblocks - 1], f->rows.a + i * ncols, f->rows.b[i]);
    }
    return HEDDLE_OK;
}

/* ---- which columns are one -------------------------------------------------- */

/* Product of two columns with idle power taken out. */
static double apart(const struct heddle_energy_gram *g, size_t i, size_t j)
{
    const size_t n = g->n;

    return g->g[i * n + j] - g->g[i * n] * g->g[j * n] / g->g[0];
}

static bool are_twins(const struct heddle_energy_gram *g, size_t i, size_t j)
{
    const double a = apart(g, i, i), b = apart(g, j, j);

    return a > 0 && b > 0 && apart(g, i, j) > TWINS * sqrt(a * b);
}

/* Copies come with tasks, so their joules are easily mistaken for those: the
 * column of bytes stays only if it explains more than chance would (Schwarz's
 * criterion, with something to spare). */
static bool bytes_matter(struct heddle_energy_solving *f, const struct heddle_energy_gram *g)
{
    const size_t n = g->n;
    const double rows = (double)g->nrows;
    double with, without;

    heddle_energy_nnls(n, g->g, g->h, f->x, f->work);
    with = heddle_energy_gram_rss(g, f->x);
    if (f->x[n - 1] <= 0)
        return false;
    memcpy(f->gl, g->g, n * n * sizeof(*f->gl));
    for (size_t i = 0; i < n; i++) /* a column of zeros gets 0 */
        f->gl[i * n + n - 1] = f->gl[(n - 1) * n + i] = 0;
    heddle_energy_nnls(n, f->gl, g->h, f->x, f->work);
    without = heddle_energy_gram_rss(g, f->x);
    return rows * log(without / (with > 0 ? with : 1e-300)) > log(rows) + 4;
}

static void group_columns(struct heddle_energy_solving *f, const struct heddle_energy_gram *g)
{
    const struct heddle_energy_system *s = f->s;
    const size_t last = s->ncols - (s->has_bytes ? 1 : 0);
    uint32_t ngroups = 0;

    f->n = 1;
    f->to[0] = 0;
    f->out->has_data[0] = true;
    for (size_t c = 1; c < s->ncols; c++) {
        size_t twin = c;

        f->to[c] = SIZE_MAX;
        f->out->has_data[c] = g->g[c * g->n + c] > 0;
        if (f->out->has_data[c] && c >= last)
            f->out->has_data[c] = bytes_matter(f, g);
        if (!f->out->has_data[c])
            continue;
        if (apart(g, c, c) < FLAT * g->g[c * g->n + c])
            f->out->is_idle_unclear = true;
        for (size_t k = 1; k < c && c < last && twin == c; k++)
            if (f->to[k] != SIZE_MAX && are_twins(g, k, c) &&
                strcmp(s->keys->key[s->key[k]].device, s->keys->key[s->key[c]].device) == 0)
                twin = k;
        if (twin == c) {
            f->to[c] = f->n++;
            continue;
        }
        f->to[c] = f->to[twin];
        for (size_t k = 1; k < c; k++) /* the group has a number by now? */
            if (f->to[k] == f->to[c] && f->out->group[k] != 0)
                f->out->group[c] = f->out->group[k];
        if (f->out->group[c] == 0)
            f->out->group[c] = f->out->group[twin] = ++ngroups;
    }
}

void heddle_energy_gram_compress(const struct heddle_energy_gram *from, const size_t *to,
                                 struct heddle_energy_gram *out)
{
    const size_t n = from->n;

    for (size_t i = 0; i < n; i++) {
        if (to[i] == SIZE_MAX)
            continue;
        out->h[to[i]] += from->h[i];
        out->sum[to[i]] += from->sum[i];
        for (size_t j = 0; j < n; j++)
            if (to[j] != SIZE_MAX)
                out->g[to[i] * out->n + to[j]] += from->g[i * n + j];
    }
    out->bb = from->bb;
    out->joules = from->joules;
    out->nrows = from->nrows;
    out->log = from->log;
}

static heddle_status small_make(struct heddle_energy_solving *f)
{
    f->small = heddle_scratch_get(&f->tmp, f->nblocks, sizeof(*f->small));
    if (f->small == NULL || !heddle_energy_gram_init(&f->tmp, f->n, &f->all))
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nblocks; i++) {
        if (!heddle_energy_gram_init(&f->tmp, f->n, &f->small[i]))
            return HEDDLE_ENOMEM;
        heddle_energy_gram_compress(&f->block[i], f->to, &f->small[i]);
        heddle_energy_gram_add(&f->all, &f->small[i], 1);
    }
    return HEDDLE_OK;
}

heddle_status heddle_energy_choose_columns(struct heddle_energy_solving *f,
                                           struct heddle_energy_gram *whole)
{
    HEDDLE_TRY(blocks_make(f));
    if (!heddle_energy_gram_init(&f->tmp, f->s->ncols, whole))
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nblocks; i++)
        heddle_energy_gram_add(whole, &f->block[i], 1);
    group_columns(f, whole);
    return small_make(f);
}
