/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From solutions of domains to the report.
 *
 * Variants   a kernel that had one variant on a device gets a row without.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "base/text.h"
#include "energy/fit_all.h"

#define LOW  0.025
#define HIGH 0.975

/* The value below which a share of the n values is; they become sorted. */
static double quantile(double *v, size_t n, double share)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && v[j - 1] > v[j]; j--) {
            const double x = v[j];

            v[j] = v[j - 1];
            v[j - 1] = x;
        }
    return v[(size_t)(share * (double)(n - 1) + 0.5)];
}

/* Interval around x out of n draws in f->sorted. */
static void interval(struct heddle_energy_fitting *f, double x, size_t n, double *low, double *high)
{
    *low = *high = 0;
    if (n < 20)
        return;
    *low = quantile(f->sorted, n, LOW);
    *high = quantile(f->sorted, n, HIGH);
    if (*low > x)
        *low = x;
    if (*high < x)
        *high = x;
}

static double mean_error(const double *predicted, const double *measured, size_t n)
{
    double sum = 0;
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (measured[i] > 0 && !isnan(predicted[i])) {
            sum += fabs(predicted[i] - measured[i]) / measured[i];
            k++;
        }
    return k < 2 ? NAN : sum / (double)k;
}

heddle_status heddle_energy_fit_domain(struct heddle_energy_fitting *f, size_t d)
{
    const struct heddle_energy_system *y = &f->system[d];
    const struct heddle_energy_solution *x = &f->solution[d];
    struct heddle_energy_fit_domain *out = &f->domain[d];
    int64_t step = 0;

    HEDDLE_TRY(heddle_energy_median_step(y, &step));
    out->name = heddle_scratch_text(f->own, y->name);
    out->device = heddle_scratch_text(f->own, strcmp(y->device, "-") == 0 ? "" : y->device);
    if (out->name == NULL || out->device == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < y->nparts; i++) {
        const struct heddle_energy_series *s = y->part[i].series;

        out->nsamples += s->nsamples;
        out->lag_ns += y->part[i].lag_ns / (int64_t)y->nparts;
        out->ndropped += s->nback + s->njumps + s->ngaps;
        for (size_t k = 0; k < s->nsteps; k++) {
            out->seconds += (double)(s->step[k].to - s->step[k].from) * 1e-9;
            out->measured_joules += s->step[k].joules;
        }
    }
    out->idle_watts = x->x[0];
    for (size_t k = 0; k < x->nboot; k++)
        f->sorted[k] = x->boot[k * x->ncols];
    interval(f, x->x[0], x->nboot, &out->low, &out->high);
    out->r2 = x->r2;
    out->condition = x->condition;
    out->lambda = x->lambda;
    out->window_ns = y->window_ns;
    out->interval_ns = step * (int64_t)x->each;
    out->nintervals = x->nrows;
    out->held_out = mean_error(x->predicted, x->measured, f->nlogs);
    f->r->measured_joules += out->measured_joules;
    f->r->idle_joules += out->idle_watts * out->seconds;
    return HEDDLE_OK;
}

/* The column of a key in a domain; 0: it has none. */
static size_t column_of(const struct heddle_energy_system *y, size_t key)
{
    for (size_t c = 1; c < y->ncols; c++)
        if (y->key[c] == key)
            return c;
    return 0;
}

/* Watts of a key: the sum over domains. */
static void key_result(struct heddle_energy_fitting *f, size_t key, uint32_t *first_group)
{
    size_t n = SIZE_MAX;

    *first_group = 0;
    for (size_t d = 0; d < f->ndomains; d++) {
        const struct heddle_energy_solution *x = &f->solution[d];
        const size_t c = column_of(&f->system[d], key);

        if (c == 0)
            continue;
        if (n == SIZE_MAX)
            memset(f->sorted, 0, x->nboot * sizeof(*f->sorted));
        n = x->nboot < n ? x->nboot : n;
        f->watts[key] += x->x[c];
        for (size_t k = 0; k < n; k++)
            f->sorted[k] += x->boot[k * x->ncols + c];
        if (*first_group == 0 && x->group[c] != 0)
            *first_group = (uint32_t)(d * HEDDLE_ENERGY_COLUMNS_MAX) + x->group[c];
    }
    if (n == SIZE_MAX)
        f->watts[key] = NAN;
    else
        interval(f, f->watts[key], n, &f->low[key], &f->high[key]);
}

static heddle_status keys_result(struct heddle_energy_fitting *f)
{
    const size_t n = f->keys.n;
    uint32_t ngroups = 0;

    f->watts = heddle_scratch_get(&f->tmp, n, sizeof(*f->watts));
    f->low = heddle_scratch_get(&f->tmp, n, sizeof(*f->low));
    f->high = heddle_scratch_get(&f->tmp, n, sizeof(*f->high));
    f->group = heddle_scratch_get(&f->tmp, 2 * n, sizeof(*f->group));
    if (f->watts == NULL || f->low == NULL || f->high == NULL || f->group == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        uint32_t *raw = f->group + n;

        key_result(f, i, &raw[i]);
        for (size_t k = 0; k < i && raw[i] != 0 && f->group[i] == 0; k++)
            if (raw[k] == raw[i])
                f->group[i] = f->group[k];
        if (raw[i] != 0 && f->group[i] == 0)
            f->group[i] = ++ngroups;
    }
    return HEDDLE_OK;
}

static double byte_joules(const struct heddle_energy_fitting *f, double *bytes_out)
{
    double joules = 0, bytes = 0;

    for (size_t i = 0; i < f->nlogs; i++)
        bytes += f->load[i].moved;
    for (size_t d = 0; d < f->ndomains; d++) {
        const struct heddle_energy_system *y = &f->system[d];

        for (size_t i = 0; i < y->nparts && y->has_bytes; i++)
            for (size_t k = 0; k < y->part[i].load->nplaces; k++)
                if (heddle_energy_counts(y->device, y->part[i].load->place[k].name))
                    joules += f->solution[d].x[y->ncols - 1] * y->part[i].load->place[k].moved;
    }
    *bytes_out = bytes;
    return bytes > 0 ? joules / bytes : 0;
}

/* Is there another key that is equal but for its variant (or its bytes)? */
static bool has_other(const struct heddle_energy_fitting *f, size_t i, bool bytes)
{
    const struct heddle_energy_key *a = &f->keys.key[i];

    for (size_t k = 0; k < f->keys.n; k++) {
        const struct heddle_energy_key *b = &f->keys.key[k];

        if (k != i && b->seconds > 0 && strcmp(a->kernel, b->kernel) == 0 &&
            strcmp(a->device, b->device) == 0 &&
            (bytes ? a->bytes != b->bytes : strcmp(a->variant, b->variant) != 0))
            return true;
    }
    return false;
}

static heddle_status rows_make(struct heddle_energy_fitting *f)
{
    const size_t n = f->keys.n;
    struct heddle_energy_fit_row *row = heddle_scratch_get(f->own, n, sizeof(*row));
    struct heddle_pair *p = heddle_scratch_get(&f->tmp, 2 * n, sizeof(*p));
    size_t nrows = 0;

    if (row == NULL || p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const double joules = f->watts[i] * f->keys.key[i].seconds;
        uint64_t bits;

        if (!(joules >= 0) || f->keys.key[i].seconds <= 0)
            continue;
        memcpy(&bits, &joules, sizeof(bits));
        p[nrows++] = (struct heddle_pair){UINT64_MAX - bits, i};
    }
    heddle_sort_pairs(p, p + nrows, nrows);
    for (size_t k = 0; k < nrows; k++) {
        const size_t i = p[k].idx;
        const struct heddle_energy_key *key = &f->keys.key[i];

        row[k] = (struct heddle_energy_fit_row){
            .kernel = heddle_scratch_text(f->own, key->kernel),
            .variant = heddle_scratch_text(f->own, has_other(f, i, false) ? key->variant : ""),
            .device = heddle_scratch_text(f->own, key->device),
            .bytes = has_other(f, i, true) ? key->bytes : 0,
            .ntasks = key->ntasks,
            .seconds = key->seconds,
            .watts = f->watts[i],
            .low = f->low[i],
            .high = f->high[i],
            .joules = f->watts[i] * key->seconds,
            .group = f->group[i]};
        if (row[k].kernel == NULL || row[k].variant == NULL || row[k].device == NULL)
            return HEDDLE_ENOMEM;
        f->r->active_joules += row[k].joules;
    }
    f->r->rows = row;
    f->r->nrows = nrows;
    return HEDDLE_OK;
}

/* All logs, all domains: one held out after the other. */
static heddle_status held_out(struct heddle_energy_fitting *f)
{
    double *p = heddle_scratch_get(&f->tmp, 2 * f->nlogs, sizeof(*p));
    double *m = p + f->nlogs;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nlogs; i++)
        for (size_t d = 0; d < f->ndomains; d++)
            if (!isnan(f->solution[d].predicted[i])) {
                p[i] += f->solution[d].predicted[i];
                m[i] += f->solution[d].measured[i];
            }
    f->r->held_out = mean_error(p, m, f->nlogs);
    return HEDDLE_OK;
}

static heddle_status note_results(struct heddle_energy_fitting *f)
{
    for (size_t d = 0; d < f->ndomains; d++) {
        const struct heddle_energy_solution *x = &f->solution[d];
        const struct heddle_energy_system *y = &f->system[d];

        if (strcmp(y->device, "*") == 0)
            HEDDLE_TRY(heddle_notes_add(&f->notes,
                                        "the log does not say whose tasks %s counts: all "
                                        "are taken",
                                        y->name));
        if (x->nrows < 3 * x->ncols)
            HEDDLE_TRY(heddle_notes_add(&f->notes,
                                        "%s has %zu intervals for %zu unknowns: longer "
                                        "runs are needed",
                                        y->name, x->nrows, x->ncols));
        if (x->is_idle_unclear)
            HEDDLE_TRY(heddle_notes_add(&f->notes,
                                        "%s: a kernel ran all the time, so that its watts "
                                        "cannot be told from idle ones",
                                        y->name));
        for (size_t c = 1; c < y->ncols; c++)
            if (!x->has_data[c] && y->key[c] != SIZE_MAX)
                HEDDLE_TRY(heddle_notes_add(&f->notes,
                                            "%s on %s ran too little while %s was read: "
                                            "it has the mean of its device",
                                            f->keys.key[y->key[c]].kernel,
                                            f->keys.key[y->key[c]].device, y->name));
    }
    for (size_t i = 0; i < f->keys.n; i++)
        if (isnan(f->watts[i]) && f->keys.key[i].seconds > 0)
            HEDDLE_TRY(heddle_notes_add(&f->notes, "%s on %s: no counter counts that device",
                                        f->keys.key[i].kernel, f->keys.key[i].device));
    return HEDDLE_OK;
}

heddle_status heddle_energy_fit_results(struct heddle_energy_fitting *f)
{
    double bytes = 0;

    HEDDLE_TRY(keys_result(f));
    f->r->joules_per_byte = byte_joules(f, &bytes);
    f->r->move_joules = f->r->joules_per_byte * bytes;
    HEDDLE_TRY(rows_make(f));
    HEDDLE_TRY(held_out(f));
    HEDDLE_TRY(note_results(f));
    f->r->domains = f->domain;
    f->r->ndomains = f->ndomains;
    f->r->notes = f->notes.text;
    f->r->nnotes = f->notes.n;
    return HEDDLE_OK;
}
