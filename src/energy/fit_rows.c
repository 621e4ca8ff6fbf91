/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps of a counter as rows of a linear system.
 *
 * A step of joules between two readings is idle watts x its length + the watts of
 * each key x the seconds its tasks ran in that time. A counter with a lag tells about
 * a time before the readings. A counter that averages sees a window only: the seconds
 * that tasks ran in the window, in proportion, stand for the seconds of the whole step.
 * Spans of tasks are cut at both ends exactly.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "energy/fit.h"

#define NS 1e-9

size_t heddle_energy_count_steps(const struct heddle_energy_system *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nparts; i++)
        n += s->part[i].series->nsteps;
    return n;
}

heddle_status heddle_energy_median_step(const struct heddle_energy_system *s, int64_t *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(s->mem->a);
    const size_t n = heddle_energy_count_steps(s);
    struct heddle_pair *p = heddle_scratch_get(&tmp, 2 * n, sizeof(*p));
    size_t k = 0;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->nparts; i++)
        for (size_t j = 0; j < s->part[i].series->nsteps; j++) {
            const struct heddle_energy_step *t = &s->part[i].series->step[j];

            p[k++] = (struct heddle_pair){(uint64_t)(t->to - t->from), 0};
        }
    heddle_sort_pairs(p, p + n, n);
    *out = n == 0 ? 0 : (int64_t)p[n / 2].key;
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

/* Bytes that touch the memories of the domain's device. */
static double bytes_from(const struct heddle_energy_system *s, const struct heddle_energy_load *l,
                         double ns, size_t *hint)
{
    double sum = 0;

    for (size_t i = 0; i < l->nplaces; i++)
        if (heddle_energy_counts(s->device, l->place[i].name))
            sum += heddle_energy_curve_from(&l->place[i].bytes, ns, &hint[i]);
    return sum;
}

/* Between two times; hints for both ends. */
static double between(const struct heddle_energy_system *s, const struct heddle_energy_load *l,
                      size_t col, double from, double to, size_t *hint, size_t nhints)
{
    const struct heddle_energy_curve *c;

    if (s->has_bytes && col == s->ncols - 1)
        return bytes_from(s, l, to, hint + 2 * s->ncols + nhints) -
               bytes_from(s, l, from, hint + 2 * s->ncols);
    if (s->key[col] >= l->ncurves)
        return 0; /* the log was read before the key was seen */
    c = &l->curve[s->key[col]];
    return heddle_energy_curve_from(c, to, &hint[2 * col + 1]) -
           heddle_energy_curve_from(c, from, &hint[2 * col]);
}

static void row_add(const struct heddle_energy_system *s, const struct heddle_energy_part *p,
                    const struct heddle_energy_step *t, size_t *hint, double *a)
{
    const double to = (double)(t->to - p->lag_ns);
    const double length = (double)(t->to - t->from);
    const double window = s->window_ns > 0 ? (double)s->window_ns : length;

    a[0] += length * NS;
    for (size_t c = 1; c < s->ncols; c++)
        a[c] += between(s, p->load, c, to - window, to, hint, p->load->nplaces) * length / window;
}

static heddle_status part_rows(const struct heddle_energy_system *s,
                               const struct heddle_energy_part *p, size_t each, size_t max,
                               struct heddle_energy_rows *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(s->mem->a);
    size_t *hint = heddle_scratch_get(&tmp, 2 * s->ncols + 2 * p->load->nplaces, sizeof(*hint));
    size_t nsteps = p->series->nsteps;

    if (hint == NULL)
        return HEDDLE_ENOMEM;
    if (nsteps > max)
        nsteps = max;
    for (size_t i = 0; i < nsteps; i++) {
        if (i % each == 0)
            out->log[out->n++] = (uint32_t)p->log;
        row_add(s, p, &p->series->step[i], hint, out->a + (out->n - 1) * s->ncols);
        out->b[out->n - 1] += p->series->step[i].joules;
    }
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

heddle_status heddle_energy_rows_make(struct heddle_scratch *mem,
                                      const struct heddle_energy_system *s, size_t first,
                                      size_t nparts, size_t each, size_t max,
                                      struct heddle_energy_rows *out)
{
    size_t n = 0;

    *out = (struct heddle_energy_rows){.ncols = s->ncols};
    for (size_t i = first; i < first + nparts; i++) {
        const size_t k = s->part[i].series->nsteps;

        n += ((k < max ? k : max) + each - 1) / each;
    }
    out->a = heddle_scratch_get(mem, n * s->ncols, sizeof(*out->a));
    out->b = heddle_scratch_get(mem, n, sizeof(*out->b));
    out->log = heddle_scratch_get(mem, n, sizeof(*out->log));
    if (out->a == NULL || out->b == NULL || out->log == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = first; i < first + nparts; i++)
        HEDDLE_TRY(part_rows(s, &s->part[i], each, max, out));
    return HEDDLE_OK;
}

void heddle_energy_rows_merge(struct heddle_energy_rows *r, size_t each)
{
    size_t n = 0, have = 0;

    for (size_t i = 0; i < r->n; i++) {
        const double *from = r->a + i * r->ncols;

        if (n > 0 && have < each && r->log[n - 1] == r->log[i]) {
            double *to = r->a + (n - 1) * r->ncols;

            for (size_t c = 0; c < r->ncols; c++)
                to[c] += from[c];
            r->b[n - 1] += r->b[i];
            have++;
            continue;
        }
        memmove(r->a + n * r->ncols, from, r->ncols * sizeof(*r->a));
        r->b[n] = r->b[i];
        r->log[n++] = r->log[i];
        have = 1;
    }
    r->n = n;
}
