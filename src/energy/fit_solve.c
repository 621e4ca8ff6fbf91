/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watts of one domain, by non-negative least squares.
 *
 * Ridge      watts are drawn to a prior (fit_prior.c); how strongly is chosen by
 *            generalised cross validation (lambda). A kernel that draws of the
 *            data still disagree about keeps its prior.
 * Bootstrap  draws blocks of rows, so that what neighbours have in common is kept,
 *            and priors within their error; a run is held out by taking its blocks
 *            away.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "energy/fit_state.h"
#include "energy/nnls.h"

enum { FEW_BLOCKS = 4, WEAK_DRAWS = 60, NLAMBDAS = 19 };

#define PINNED    1e6   /* the weight of a prior that stands for data */
#define LAMBDA_LO 1e-9  /* the least lambda that is tried */
#define LAMBDA_UP 3.163 /* from one to the next */

/* ---- solving ----------------------------------------------------------------- */

/* The weight of the prior of unknown i. */
static double weight(const struct heddle_energy_solving *f, double lambda, size_t i)
{
    return lambda * f->ridge[i] + f->floor[i];
}

/* g and h with the prior as further rows. */
static void with_ridge(struct heddle_energy_solving *f, const struct heddle_energy_gram *g,
                       const double *prior, double lambda)
{
    memcpy(f->gl, g->g, f->n * f->n * sizeof(*f->gl));
    for (size_t i = 0; i < f->n; i++) {
        f->gl[i * f->n + i] += weight(f, lambda, i);
        f->hl[i] = g->h[i] + weight(f, lambda, i) * prior[i];
    }
}

static void solve_one(struct heddle_energy_solving *f, const struct heddle_energy_gram *g,
                      const double *prior, double lambda, double *x)
{
    with_ridge(f, g, prior, lambda);
    heddle_energy_nnls(f->n, f->gl, f->hl, x, f->work);
}

/* Generalised cross validation, without the sign constraint. */
static double gcv(struct heddle_energy_solving *f, double lambda)
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
    return left <= 1 ? INFINITY : heddle_energy_gram_rss(&f->all, f->x) / (left * left);
}

/* The largest lambda that is as good as the best: between those the data do not
 * decide, and the prior may. */
static double best_lambda(struct heddle_energy_solving *f)
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
        if (value[i] <= least * (1 + 2 / (double)f->all.nrows) && !isinf(value[i]))
            best = lambda;
    return best;
}

/* Unknowns as columns; what has no data gets its prior. */
static void expand(const struct heddle_energy_solving *f, const double *x, double *out)
{
    for (size_t c = 0; c < f->s->ncols; c++)
        out[c] = f->to[c] == SIZE_MAX ? f->out->prior[c] : x[f->to[c]];
}

/* A prior within its error, as its weight says how large that is. */
static double draw_prior(const struct heddle_energy_solving *f, double lambda, size_t i,
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

static heddle_status draws_init(struct heddle_energy_solving *f, struct draws *d)
{
    d->x = heddle_scratch_get(&f->tmp, 2 * f->n, sizeof(*d->x));
    heddle_rng_seed(&d->rng, f->o->seed);
    if (d->x == NULL || !heddle_energy_gram_init(&f->tmp, f->n, &d->g))
        return HEDDLE_ENOMEM;
    d->prior = d->x + f->n;
    return HEDDLE_OK;
}

/* A solution from blocks that are drawn, into d->x. */
static void draw(struct heddle_energy_solving *f, struct draws *d)
{
    heddle_energy_gram_clear(&d->g);
    for (size_t i = 0; i < f->nblocks; i++)
        heddle_energy_gram_add(&d->g, &f->small[heddle_rng_below(&d->rng, f->nblocks)], 1);
    for (size_t i = 0; i < f->n; i++)
        d->prior[i] = draw_prior(f, f->out->lambda, i, &d->rng);
    solve_one(f, &d->g, d->prior, f->out->lambda, d->x);
}

/* Kernels about which the draws disagree by about as much as kernels differ at all
 * keep the mean of their device. */
static heddle_status pin_weak(struct heddle_energy_solving *f)
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
            (!is_few && squares[i] - sum[i] * sum[i] <= f->scale * f->scale / 2))
            continue;
        f->is_pinned[i] = true;
        f->floor[i] = PINNED * f->all.g[0];
        f->out->has_data[c] = false;
    }
    return HEDDLE_OK;
}

static heddle_status bootstrap(struct heddle_energy_solving *f)
{
    struct heddle_energy_solution *out = f->out;
    struct draws d;

    out->nboot = f->nblocks >= FEW_BLOCKS ? f->o->nboot : 0;
    out->boot = heddle_scratch_get(f->s->mem, out->nboot * out->ncols, sizeof(*out->boot));
    if (out->boot == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(draws_init(f, &d));
    for (size_t k = 0; k < out->nboot; k++) {
        draw(f, &d);
        expand(f, d.x, out->boot + k * out->ncols);
    }
    return HEDDLE_OK;
}

static heddle_status hold_out(struct heddle_energy_solving *f)
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
            heddle_energy_gram_add(f->small[i].log == log ? &one : &g, &f->small[i], 1);
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

static double r_squared(const struct heddle_energy_solving *f, const double *x)
{
    const double total = f->all.bb - f->all.h[0] * f->all.h[0] / f->all.g[0];
    const double r2 = total > 0 ? 1 - heddle_energy_gram_rss(&f->all, x) / total : 0;

    return r2 > 0 ? r2 : 0;
}

static heddle_status results_get(struct heddle_energy_solving *f)
{
    struct heddle_energy_solution *out = f->out;
    const size_t n = f->s->ncols;

    out->ncols = n;
    out->x = heddle_scratch_get(f->s->mem, n, sizeof(*out->x));
    out->prior = heddle_scratch_get(f->s->mem, n, sizeof(*out->prior));
    out->has_data = heddle_scratch_get(f->s->mem, n, sizeof(*out->has_data));
    out->group = heddle_scratch_get(f->s->mem, n, sizeof(*out->group));
    out->predicted = heddle_scratch_get(f->s->mem, f->o->nlogs, sizeof(*out->predicted));
    out->measured = heddle_scratch_get(f->s->mem, f->o->nlogs, sizeof(*out->measured));
    f->to = heddle_scratch_get(&f->tmp, n, sizeof(*f->to));
    f->x = heddle_scratch_get(&f->tmp, n, sizeof(*f->x));
    f->hl = heddle_scratch_get(&f->tmp, n, sizeof(*f->hl));
    f->gl = heddle_scratch_get(&f->tmp, n * n, sizeof(*f->gl));
    f->work = heddle_scratch_get(&f->tmp, HEDDLE_ENERGY_NNLS_WORK(n), sizeof(*f->work));
    return out->x == NULL || out->prior == NULL || out->has_data == NULL || out->group == NULL ||
                   out->predicted == NULL || out->measured == NULL || f->to == NULL ||
                   f->x == NULL || f->hl == NULL || f->gl == NULL || f->work == NULL
               ? HEDDLE_ENOMEM
               : HEDDLE_OK;
}

static heddle_status solve(struct heddle_energy_solving *f)
{
    struct heddle_energy_gram whole;

    HEDDLE_TRY(results_get(f));
    HEDDLE_TRY(heddle_energy_choose_rows(f));
    HEDDLE_TRY(heddle_energy_choose_columns(f, &whole));
    HEDDLE_TRY(heddle_energy_choose_prior(f, &whole));
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
    struct heddle_energy_solving f = {.s = s, .o = o, .out = out};
    heddle_status st;

    *out = (struct heddle_energy_solution){0};
    f.tmp = heddle_scratch_make(s->mem->a);
    st = solve(&f);
    heddle_scratch_drop(&f.tmp);
    return st;
}
