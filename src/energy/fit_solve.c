/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watts of one domain, by non-negative least squares.
 *
 * Rows       are weighted by the inverse of their length. Successive ones are put
 *            together while that makes the joules of the kernels surer: errors in
 *            when a counter was updated cancel within a longer row, but a longer
 *            row tells kernels apart less well.
 * Groups     columns whose correlation, with idle power taken out, is above
 *            TWINS become one: nothing in the data tells them apart.
 * Ridge      watts are drawn to a prior: the caller's, else the mean of the
 *            device, from a fit with one column per device. How strongly is
 *            chosen by generalised cross validation (lambda), but never less than
 *            if the prior were a measurement with an error as large as the watts
 *            that were seen at all: that is nothing beside the data of a kernel that ran for a while,
 *            and keeps one that hardly ran from following the noise. A kernel
 *            that draws of the data still disagree about keeps its prior.
 * Blocks     rows are summed up in at most MAX_BLOCKS blocks, none of two logs.
 *            The bootstrap draws blocks, so that what neighbours have in common
 *            is kept, and priors within their error; a run is held out by taking
 *            its blocks away.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "base/sort.h"
#include "energy/fit.h"
#include "energy/nnls.h"
#include "energy/run.h"

enum { MAX_BLOCKS = 48, MAX_ROWS = 65536, MIN_ROWS = 40, MAX_EACH = 64 };
enum { FEW_BLOCKS = 4, WEAK_DRAWS = 60 };

#define TWINS       0.99
#define FLAT        1e-4  /* share of a column that is not idle's */
#define LAMBDA_LO   1e-9  /* the least lambda that is tried */
#define LAMBDA_UP   3.163 /* from one to the next */
#define NLAMBDAS    19
#define BUSY        0.25 /* workers, for a row that counts as busy */
#define PINNED      1e6  /* the weight of a prior that stands for the data */
#define BYTE_JOULES 1e-9 /* the error of the prior of bytes, which is 0 */

struct solve {
    const struct heddle_energy_system *s;
    const struct heddle_energy_solve_opts *o;
    struct heddle_energy_solution *out;
    struct heddle_scratch tmp;
    struct heddle_energy_rows rows;
    struct heddle_energy_gram *block; /* [nblocks], all columns */
    size_t nblocks;
    size_t n;   /* unknowns: groups of columns that have data */
    size_t *to; /* [ncols] unknown of a column; SIZE_MAX: it has no data */
    struct heddle_energy_gram *small; /* [nblocks], unknowns */
    struct heddle_energy_gram all;    /* their sum */
    double *prior;                    /* [n] */
    double *ridge;   /* [n] what lambda is multiplied by; 0: free */
    double *floor;   /* [n] the least weight of the prior */
    bool *is_pinned; /* [n] the prior stands for the data */
    double sigma;    /* standard deviation of a row */
    double scale;    /* watts that a kernel may well have */
    double *x, *work, *gl, *hl;
};

/* ---- how many rows become one ---------------------------------------------- */

/* Variance of the joules of all columns but idle, were rows independent. */
static double doubt(struct solve *f, const struct heddle_energy_gram *g)
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

static heddle_status choose_rows(struct solve *f)
{
    const struct heddle_energy_system *s = f->s;
    const size_t nsteps = heddle_energy_count_steps(s);
    const size_t first = (nsteps + MAX_ROWS - 1) / MAX_ROWS;
    double best = INFINITY;
    struct heddle_energy_gram g;

    f->out->each = first;
    HEDDLE_TRY(heddle_energy_rows_make(&f->tmp, s, 0, s->nparts, first,
                                       SIZE_MAX, &f->rows));
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
    HEDDLE_TRY(heddle_energy_rows_make(&f->tmp, s, 0, s->nparts, f->out->each,
                                       SIZE_MAX, &f->rows));
    f->out->nrows = f->rows.n;
    return HEDDLE_OK;
}

/* ---- blocks ---------------------------------------------------------------- */

static heddle_status blocks_make(struct solve *f)
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
        heddle_energy_gram_row(&f->block[f->nblocks - 1], f->rows.a + i * ncols,
                               f->rows.b[i]);
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
static bool bytes_matter(struct solve *f, const struct heddle_energy_gram *g)
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

static void group_columns(struct solve *f, const struct heddle_energy_gram *g)
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
                strcmp(s->keys->key[s->key[k]].device,
                       s->keys->key[s->key[c]].device) == 0)
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

static void compress(const struct heddle_energy_gram *from, const size_t *to,
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

static heddle_status small_make(struct solve *f)
{
    f->small = heddle_scratch_get(&f->tmp, f->nblocks, sizeof(*f->small));
    if (f->small == NULL || !heddle_energy_gram_init(&f->tmp, f->n, &f->all))
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nblocks; i++) {
        if (!heddle_energy_gram_init(&f->tmp, f->n, &f->small[i]))
            return HEDDLE_ENOMEM;
        compress(&f->block[i], f->to, &f->small[i]);
        heddle_energy_gram_add(&f->all, &f->small[i], 1);
    }
    return HEDDLE_OK;
}

/* ---- prior and ridge -------------------------------------------------------- */

/* Watts of a worker, idle power taken out, in the rows where they are highest:
 * the mean of a device says little about its kernels when one of them ran nearly
 * all the time. */
static heddle_status scale_make(struct solve *f, double idle)
{
    const size_t last = f->s->ncols - (f->s->has_bytes ? 1 : 0);
    struct heddle_pair *p =
        heddle_scratch_get(&f->tmp, 2 * f->rows.n, sizeof(*p));
    size_t n = 0;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->rows.n; i++) {
        const double *a = f->rows.a + i * f->rows.ncols;
        double busy = 0, watts;

        for (size_t c = 1; c < last; c++)
            busy += a[c];
        watts = busy > BUSY * a[0] ? (f->rows.b[i] - idle * a[0]) / busy : 0;
        if (watts > 0) {
            memcpy(&p[n].key, &watts, sizeof(watts)); /* in order, if > 0 */
            p[n++].idx = i;
        }
    }
    heddle_sort_pairs(p, p + n, n);
    if (n > 0)
        memcpy(&f->scale, &p[(n - 1) * 19 / 20].key, sizeof(f->scale));
    for (size_t c = 1; c < last; c++)
        if (f->out->prior[c] > f->scale)
            f->scale = f->out->prior[c];
    return HEDDLE_OK;
}

/* The mean watts of each device: one column for all of its keys. */
static heddle_status device_means(struct solve *f,
                                  const struct heddle_energy_gram *g)
{
    const struct heddle_energy_system *s = f->s;
    const size_t last = s->ncols - (s->has_bytes ? 1 : 0);
    size_t *to = heddle_scratch_get(&f->tmp, s->ncols, sizeof(*to));
    struct heddle_energy_gram d;
    size_t n = 1;

    if (to == NULL)
        return HEDDLE_ENOMEM;
    for (size_t c = 1; c < s->ncols; c++) {
        size_t k = 1;

        while (k < c && c < last &&
               strcmp(s->keys->key[s->key[k]].device,
                      s->keys->key[s->key[c]].device) != 0)
            k++;
        to[c] = c < last && k < c ? to[k] : n++;
    }
    if (!heddle_energy_gram_init(&f->tmp, n, &d))
        return HEDDLE_ENOMEM;
    compress(g, to, &d);
    heddle_energy_nnls(n, d.g, d.h, f->x, f->work);
    for (size_t c = 1; c < last; c++)
        f->out->prior[c] = f->x[to[c]];
    return scale_make(f, f->x[0]);
}

/* Watts of the caller's model, for the share of this domain. */
static void given_prior(struct solve *f)
{
    const struct heddle_energy_system *s = f->s;
    struct heddle_energy_domain d = {.size = sizeof(d)};
    size_t domain = 0;

    if (f->o->prior == NULL)
        return;
    while (heddle_energy_get_domain(f->o->prior, domain, &d) == HEDDLE_OK &&
           strcmp(d.name, s->name) != 0)
        domain++;
    for (size_t c = 1; c < s->ncols - (s->has_bytes ? 1 : 0); c++) {
        const struct heddle_energy_key *k = &s->keys->key[s->key[c]];
        const double w = heddle_energy_watts(f->o->prior, k->kernel, k->variant,
                                             k->device, k->bytes) *
                         heddle_energy_share(f->o->prior, domain, k->device);

        if (w > 0)
            f->out->prior[c] = w;
    }
}

/* From what a fit without prior leaves unexplained. */
static void floor_make(struct solve *f)
{
    const size_t n = f->n;
    const double left = (double)f->all.nrows - (double)n;

    heddle_energy_nnls(n, f->all.g, f->all.h, f->x, f->work);
    f->sigma =
        sqrt(heddle_energy_gram_rss(&f->all, f->x) / (left > 1 ? left : 1));
    for (size_t i = 1; i < n; i++) {
        const bool is_bytes = f->s->has_bytes && i == f->to[f->s->ncols - 1];
        const double error = is_bytes ? BYTE_JOULES : f->scale;

        if (error > 0)
            f->floor[i] = f->sigma * f->sigma / (error * error);
    }
}

static heddle_status prior_make(struct solve *f,
                                const struct heddle_energy_gram *g)
{
    const struct heddle_energy_system *s = f->s;
    double mean = 0;
    size_t n = 0;

    HEDDLE_TRY(device_means(f, g));
    given_prior(f);
    f->prior = heddle_scratch_get(&f->tmp, f->n, sizeof(*f->prior));
    f->ridge = heddle_scratch_get(&f->tmp, f->n, sizeof(*f->ridge));
    f->floor = heddle_scratch_get(&f->tmp, f->n, sizeof(*f->floor));
    f->is_pinned = heddle_scratch_get(&f->tmp, f->n, sizeof(*f->is_pinned));
    if (f->prior == NULL || f->ridge == NULL || f->floor == NULL ||
        f->is_pinned == NULL)
        return HEDDLE_ENOMEM;
    for (size_t c = 1; c < s->ncols; c++) {
        if (f->to[c] == SIZE_MAX)
            continue;
        f->prior[f->to[c]] = f->out->prior[c];
        if (s->has_bytes && c == s->ncols - 1) {
            f->ridge[f->to[c]] = f->all.g[f->to[c] * f->n + f->to[c]];
            continue;
        }
        mean += g->g[c * g->n + c];
        n++;
    }
    for (size_t c = 1; c < s->ncols - (s->has_bytes ? 1 : 0); c++)
        if (f->to[c] != SIZE_MAX)
            f->ridge[f->to[c]] = mean / (double)n;
    floor_make(f);
    return HEDDLE_OK;
}

/* ---- solving ----------------------------------------------------------------- */

/* The weight of the prior of unknown i. */
static double weight(const struct solve *f, double lambda, size_t i)
{
    return lambda * f->ridge[i] + f->floor[i];
}

/* g and h with the prior as further rows. */
static void with_ridge(struct solve *f, const struct heddle_energy_gram *g,
                       const double *prior, double lambda)
{
    memcpy(f->gl, g->g, f->n * f->n * sizeof(*f->gl));
    for (size_t i = 0; i < f->n; i++) {
        f->gl[i * f->n + i] += weight(f, lambda, i);
        f->hl[i] = g->h[i] + weight(f, lambda, i) * prior[i];
    }
}

static void solve_one(struct solve *f, const struct heddle_energy_gram *g,
                      const double *prior, double lambda, double *x)
{
    with_ridge(f, g, prior, lambda);
    heddle_energy_nnls(f->n, f->gl, f->hl, x, f->work);
}

/* Generalised cross validation, without the sign constraint. */
static double gcv(struct solve *f, double lambda)
{
    const size_t n = f->n;
    double *l = f->work, *e = f->work + n * n, trace = 0, left;

    with_ridge(f, &f->all, f->prior, lambda);
    if (!heddle_energy_cholesky(n, f->gl, l))
        return INFINITY;
    heddle_energy_cholesky_solve(n, l, f->hl, f->x);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            e[j] = f->all.g[j * n + i];
        heddle_energy_cholesky_solve(n, l, e, e);
        trace += e[i];
    }
    left = (double)f->all.nrows - trace;
    return left <= 1 ? INFINITY
                     : heddle_energy_gram_rss(&f->all, f->x) / (left * left);
}

/* The largest lambda that is as good as the best: between those the data do not
 * decide, and the prior may. */
static double best_lambda(struct solve *f)
{
    double value[NLAMBDAS], least = INFINITY, lambda = LAMBDA_LO;
    double best = 1e-3; /* when none makes sense: just enough for an answer */

    for (int i = 0; i < NLAMBDAS; i++, lambda *= LAMBDA_UP) {
        value[i] = gcv(f, lambda);
        if (value[i] < least)
            least = value[i];
    }
    lambda = LAMBDA_LO;
    for (int i = 0; i < NLAMBDAS; i++, lambda *= LAMBDA_UP)
        if (value[i] <= least * (1 + 2 / (double)f->all.nrows) &&
            !isinf(value[i]))
            best = lambda;
    return best;
}

/* Unknowns as columns; what has no data gets its prior. */
static void expand(const struct solve *f, const double *x, double *out)
{
    for (size_t c = 0; c < f->s->ncols; c++)
        out[c] = f->to[c] == SIZE_MAX ? f->out->prior[c] : x[f->to[c]];
}

/* A prior within its error, as its weight says how large that is. */
static double draw_prior(const struct solve *f, double lambda, size_t i,
                         struct heddle_rng *rng)
{
    const double w = weight(f, lambda, i);
    double sum = -6, x;

    for (int k = 0; k < 12; k++) /* normal, nearly */
        sum += heddle_rng_double(rng);
    x = f->prior[i];
    if (f->is_pinned[i])
        x += sum * f->scale / 2; /* nothing is known but that */
    else if (w > 0)
        x += sum * f->sigma / sqrt(w);
    return x > 0 ? x : 0;
}

struct draws {
    struct heddle_energy_gram g;
    struct heddle_rng rng;
    double *x, *prior; /* [n] */
};

static heddle_status draws_init(struct solve *f, struct draws *d)
{
    d->x = heddle_scratch_get(&f->tmp, 2 * f->n, sizeof(*d->x));
    heddle_rng_seed(&d->rng, f->o->seed);
    if (d->x == NULL || !heddle_energy_gram_init(&f->tmp, f->n, &d->g))
        return HEDDLE_ENOMEM;
    d->prior = d->x + f->n;
    return HEDDLE_OK;
}

/* A solution from blocks that are drawn, into d->x. */
static void draw(struct solve *f, struct draws *d)
{
    heddle_energy_gram_clear(&d->g);
    for (size_t i = 0; i < f->nblocks; i++)
        heddle_energy_gram_add(
            &d->g, &f->small[heddle_rng_below(&d->rng, f->nblocks)], 1);
    for (size_t i = 0; i < f->n; i++)
        d->prior[i] = draw_prior(f, f->out->lambda, i, &d->rng);
    solve_one(f, &d->g, d->prior, f->out->lambda, d->x);
}

/* Kernels about which the draws disagree by about as much as kernels differ at all
 * keep the mean of their device. */
static heddle_status pin_weak(struct solve *f)
{
    double *sum = heddle_scratch_get(&f->tmp, 2 * f->n, sizeof(*sum));
    double *squares = sum + f->n;
    const bool is_few = f->nblocks < FEW_BLOCKS;
    struct draws d;

    if (sum == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(draws_init(f, &d));
    for (int k = 0; k < WEAK_DRAWS && !is_few; k++) {
        draw(f, &d);
        for (size_t i = 0; i < f->n; i++) {
            sum[i] += d.x[i] / WEAK_DRAWS;
            squares[i] += d.x[i] * d.x[i] / WEAK_DRAWS;
        }
    }
    for (size_t c = 1; c < f->s->ncols; c++) {
        const size_t i = f->to[c];

        if (i == SIZE_MAX || !(f->prior[i] > 0) ||
            (!is_few &&
             squares[i] - sum[i] * sum[i] <= f->scale * f->scale / 2))
            continue;
        f->is_pinned[i] = true;
        f->floor[i] = PINNED * f->all.g[0];
        f->out->has_data[c] = false;
    }
    return HEDDLE_OK;
}

static heddle_status bootstrap(struct solve *f)
{
    struct heddle_energy_solution *out = f->out;
    struct draws d;

    out->nboot = f->nblocks >= FEW_BLOCKS ? f->o->nboot : 0;
    out->boot = heddle_scratch_get(f->s->mem, out->nboot * out->ncols,
                                   sizeof(*out->boot));
    if (out->boot == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(draws_init(f, &d));
    for (size_t k = 0; k < out->nboot; k++) {
        draw(f, &d);
        expand(f, d.x, out->boot + k * out->ncols);
    }
    return HEDDLE_OK;
}

static heddle_status hold_out(struct solve *f)
{
    struct heddle_energy_solution *out = f->out;
    struct heddle_energy_gram g, one;

    if (!heddle_energy_gram_init(&f->tmp, f->n, &g) ||
        !heddle_energy_gram_init(&f->tmp, f->n, &one))
        return HEDDLE_ENOMEM;
    for (size_t log = 0; log < f->o->nlogs; log++) {
        out->predicted[log] = out->measured[log] = NAN;
        heddle_energy_gram_clear(&g);
        heddle_energy_gram_clear(&one);
        for (size_t i = 0; i < f->nblocks; i++)
            heddle_energy_gram_add(f->small[i].log == log ? &one : &g,
                                   &f->small[i], 1);
        if (one.nrows == 0 || g.nrows == 0)
            continue;
        solve_one(f, &g, f->prior, out->lambda, f->x);
        out->measured[log] = one.joules;
        out->predicted[log] = 0;
        for (size_t i = 0; i < f->n; i++)
            out->predicted[log] += f->x[i] * one.sum[i];
    }
    return HEDDLE_OK;
}

static double r_squared(const struct solve *f, const double *x)
{
    const double total = f->all.bb - f->all.h[0] * f->all.h[0] / f->all.g[0];
    const double r2 =
        total > 0 ? 1 - heddle_energy_gram_rss(&f->all, x) / total : 0;

    return r2 > 0 ? r2 : 0;
}

static heddle_status results_get(struct solve *f)
{
    struct heddle_energy_solution *out = f->out;
    const size_t n = f->s->ncols;

    out->ncols = n;
    out->x = heddle_scratch_get(f->s->mem, n, sizeof(*out->x));
    out->prior = heddle_scratch_get(f->s->mem, n, sizeof(*out->prior));
    out->has_data = heddle_scratch_get(f->s->mem, n, sizeof(*out->has_data));
    out->group = heddle_scratch_get(f->s->mem, n, sizeof(*out->group));
    out->predicted =
        heddle_scratch_get(f->s->mem, f->o->nlogs, sizeof(*out->predicted));
    out->measured =
        heddle_scratch_get(f->s->mem, f->o->nlogs, sizeof(*out->measured));
    f->to = heddle_scratch_get(&f->tmp, n, sizeof(*f->to));
    f->x = heddle_scratch_get(&f->tmp, n, sizeof(*f->x));
    f->hl = heddle_scratch_get(&f->tmp, n, sizeof(*f->hl));
    f->gl = heddle_scratch_get(&f->tmp, n * n, sizeof(*f->gl));
    f->work = heddle_scratch_get(&f->tmp, HEDDLE_ENERGY_NNLS_WORK(n),
                                 sizeof(*f->work));
    return out->x == NULL || out->prior == NULL || out->has_data == NULL ||
                   out->group == NULL || out->predicted == NULL ||
                   out->measured == NULL || f->to == NULL || f->x == NULL ||
                   f->hl == NULL || f->gl == NULL || f->work == NULL
               ? HEDDLE_ENOMEM
               : HEDDLE_OK;
}

static heddle_status solve(struct solve *f)
{
    struct heddle_energy_gram whole;

    HEDDLE_TRY(results_get(f));
    HEDDLE_TRY(choose_rows(f));
    HEDDLE_TRY(blocks_make(f));
    if (!heddle_energy_gram_init(&f->tmp, f->s->ncols, &whole))
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nblocks; i++)
        heddle_energy_gram_add(&whole, &f->block[i], 1);
    group_columns(f, &whole);
    HEDDLE_TRY(small_make(f));
    HEDDLE_TRY(prior_make(f, &whole));
    f->out->lambda = best_lambda(f);
    f->out->condition = heddle_energy_condition(f->n, f->all.g, f->work);
    HEDDLE_TRY(pin_weak(f));
    HEDDLE_TRY(bootstrap(f));
    HEDDLE_TRY(hold_out(f));
    solve_one(f, &f->all, f->prior, f->out->lambda, f->x);
    f->out->r2 = r_squared(f, f->x);
    expand(f, f->x, f->out->x);
    return HEDDLE_OK;
}

heddle_status heddle_energy_solve(const struct heddle_energy_system *s,
                                  const struct heddle_energy_solve_opts *o,
                                  struct heddle_energy_solution *out)
{
    struct solve f = {.s = s, .o = o, .out = out};
    heddle_status st;

    *out = (struct heddle_energy_solution){0};
    f.tmp = heddle_scratch_make(s->mem->a);
    st = solve(&f);
    heddle_scratch_drop(&f.tmp);
    return st;
}
