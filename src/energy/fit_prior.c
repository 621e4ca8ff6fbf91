/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What watts are drawn to where the data say little.
 *
 * Prior      the caller's, else the mean of the device, from a fit with one column
 *            per device.
 * Weight     never less than if the prior were a measurement with an error as
 *            large as the watts that were seen at all: that is nothing beside the
 *            data of a kernel that ran for a while, and keeps one that hardly ran
 *            from following the noise.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "energy/fit_state.h"
#include "energy/nnls.h"
#include "energy/run.h"

#define BUSY        0.25 /* workers, for a row that counts as busy */
#define BYTE_JOULES 1e-9 /* the error of the prior of bytes, which is 0 */

/* ---- prior and ridge -------------------------------------------------------- */

/* Watts of a worker, idle power taken out, in the rows where they are highest:
 * the mean of a device says little about its kernels when one of them ran nearly
 * all the time. */
static heddle_status scale_make(struct heddle_energy_solving *f, double idle)
{
    const size_t last = f->s->ncols - (f->s->has_bytes ? 1 : 0);
    struct heddle_pair *p = heddle_scratch_get(&f->tmp, 2 * f->rows.n, sizeof(*p));
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
static heddle_status device_means(struct heddle_energy_solving *f,
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
               strcmp(s->keys->key[s->key[k]].device, s->keys->key[s->key[c]].device) != 0)
            k++;
        to[c] = c < last && k < c ? to[k] : n++;
    }
    if (!heddle_energy_gram_init(&f->tmp, n, &d))
        return HEDDLE_ENOMEM;
    heddle_energy_gram_compress(g, to, &d);
    heddle_energy_nnls(n, d.g, d.h, f->x, f->work);
    for (size_t c = 1; c < last; c++)
        f->out->prior[c] = f->x[to[c]];
    return scale_make(f, f->x[0]);
}

/* Watts of the caller's model, for the share of this domain. */
static void given_prior(struct heddle_energy_solving *f)
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
        const double w =
            heddle_energy_watts(f->o->prior, k->kernel, k->variant, k->device, k->bytes) *
            heddle_energy_share(f->o->prior, domain, k->device);

        if (w > 0)
            f->out->prior[c] = w;
    }
}

/* From what a fit without prior leaves unexplained. */
static void floor_make(struct heddle_energy_solving *f)
{
    const size_t n = f->n;
    const double left = (double)f->all.nrows - (double)n;

    heddle_energy_nnls(n, f->all.g, f->all.h, f->x, f->work);
    f->sigma = sqrt(heddle_energy_gram_rss(&f->all, f->x) / (left > 1 ? left : 1));
    for (size_t i = 1; i < n; i++) {
        const bool is_bytes = f->s->has_bytes && i == f->to[f->s->ncols - 1];
        const double error = is_bytes ? BYTE_JOULES : f->scale;

        if (error > 0)
            f->floor[i] = f->sigma * f->sigma / (error * error);
    }
}

heddle_status heddle_energy_choose_prior(struct heddle_energy_solving *f,
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
    if (f->prior == NULL || f->ridge == NULL || f->floor == NULL || f->is_pinned == NULL)
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
