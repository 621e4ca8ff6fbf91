/* SPDX-License-Identifier: BSD-3-Clause */
/* Normal equations, row by row; sums and differences of them. */
#include <math.h>
#include <string.h>

#include "energy/fit.h"

bool heddle_energy_gram_init(struct heddle_scratch *mem, size_t n, struct heddle_energy_gram *out)
{
    *out = (struct heddle_energy_gram){.n = n};
    out->g = heddle_scratch_get(mem, n * n, sizeof(*out->g));
    out->h = heddle_scratch_get(mem, n, sizeof(*out->h));
    out->sum = heddle_scratch_get(mem, n, sizeof(*out->sum));
    return out->g != NULL && out->h != NULL && out->sum != NULL;
}

void heddle_energy_gram_clear(struct heddle_energy_gram *g)
{
    memset(g->g, 0, g->n * g->n * sizeof(*g->g));
    memset(g->h, 0, g->n * sizeof(*g->h));
    memset(g->sum, 0, g->n * sizeof(*g->sum));
    g->bb = g->joules = 0;
    g->nrows = 0;
}

void heddle_energy_gram_row(struct heddle_energy_gram *g, const double *a, double b)
{
    const double w = a[0] > 0 ? 1 / a[0] : 0;

    for (size_t i = 0; i < g->n; i++) {
        g->sum[i] += a[i];
        if (a[i] == 0)
            continue;
        g->h[i] += w * a[i] * b;
        for (size_t j = 0; j < g->n; j++)
            g->g[i * g->n + j] += w * a[i] * a[j];
    }
    g->bb += w * b * b;
    g->joules += b;
    g->nrows++;
}

void heddle_energy_gram_add(struct heddle_energy_gram *to, const struct heddle_energy_gram *from,
                            double factor)
{
    const size_t n = to->n;

    for (size_t i = 0; i < n * n; i++)
        to->g[i] += factor * from->g[i];
    for (size_t i = 0; i < n; i++) {
        to->h[i] += factor * from->h[i];
        to->sum[i] += factor * from->sum[i];
    }
    to->bb += factor * from->bb;
    to->joules += factor * from->joules;
    to->nrows = factor > 0 ? to->nrows + from->nrows : to->nrows - from->nrows;
}

double heddle_energy_gram_rss(const struct heddle_energy_gram *g, const double *x)
{
    double rss = g->bb;

    for (size_t i = 0; i < g->n; i++) {
        rss -= 2 * g->h[i] * x[i];
        for (size_t j = 0; j < g->n; j++)
            rss += x[i] * g->g[i * g->n + j] * x[j];
    }
    return rss > 0 ? rss : 0;
}
