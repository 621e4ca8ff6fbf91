/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The energy of a run, by a model.
 *
 * Time       a run lasts from the first start to the last end of its tasks. What
 *            was measured is compared with what the model predicts for the time
 *            that samples cover.
 * Moves      a byte costs half of its joules at each end; in the sum it counts
 *            once, whatever the domains are.
 */
#include "energy/run.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sort.h"
#include "energy/series.h"
#include "heddle/energy_fit.h"

bool heddle_energy_has_sizes(const heddle_energy *e)
{
    struct heddle_energy_active a = {.size = sizeof(a)};

    for (size_t i = 0; heddle_energy_get_active(e, i, &a) == HEDDLE_OK; i++)
        if (a.bytes != 0)
            return true;
    return false;
}

double heddle_energy_share(const heddle_energy *e, size_t domain, const char *device)
{
    struct heddle_energy_domain d = {.size = sizeof(d)};
    double idle = 0, sum = 0;
    size_t n = 0;

    if (heddle_energy_get_domain(e, domain, &d) != HEDDLE_OK ||
        !heddle_energy_counts(d.device, device))
        return 0;
    idle = d.idle_watts;
    for (size_t i = 0; heddle_energy_get_domain(e, i, &d) == HEDDLE_OK; i++)
        if (heddle_energy_counts(d.device, device)) {
            sum += d.idle_watts;
            n++;
        }
    return sum > 0 ? idle / sum : 1 / (double)n;
}

struct maker {
    const heddle_energy *e;
    struct heddle_energy_keys keys;
    struct heddle_energy_load load;
    struct heddle_scratch tmp;
    struct heddle_scratch *own;
    struct heddle_energy_run *r;
    double *watts; /* [keys], NAN: not known */
    struct heddle_energy_series *series;
    size_t nseries;
};

/* Joules of domain d between two times. */
static double joules_between(const struct maker *m, size_t d, double idle, double from, double to)
{
    double sum = idle * (to - from) * 1e-9;

    for (size_t i = 0; i < m->load.ncurves; i++) {
        const struct heddle_energy_curve *c = &m->load.curve[i];
        const double share = heddle_energy_share(m->e, d, m->keys.key[i].device);

        if (share > 0 && !isnan(m->watts[i]))
            sum += share * m->watts[i] *
                   (heddle_energy_curve_at(c, to) - heddle_energy_curve_at(c, from));
    }
    for (size_t i = 0; i < m->load.nplaces; i++) {
        const struct heddle_energy_place *p = &m->load.place[i];
        const double share = heddle_energy_share(m->e, d, p->name);

        if (share > 0)
            sum +=
                share * heddle_energy_get_move(m->e) / 2 *
                (heddle_energy_curve_at(&p->bytes, to) - heddle_energy_curve_at(&p->bytes, from));
    }
    return sum;
}

static void measured(struct maker *m, size_t d, double idle, struct heddle_energy_run_domain *out)
{
    const struct heddle_energy_series *s = NULL;

    out->measured_joules = out->predicted_joules = out->seconds = NAN;
    for (size_t i = 0; i < m->nseries && s == NULL; i++)
        if (strcmp(m->series[i].name, out->name) == 0)
            s = &m->series[i];
    if (s == NULL || s->nsteps == 0)
        return;
    out->measured_joules = out->predicted_joules = out->seconds = 0;
    for (size_t i = 0; i < s->nsteps; i++) {
        const struct heddle_energy_step *p = &s->step[i];

        out->measured_joules += p->joules;
        out->seconds += (double)(p->to - p->from) * 1e-9;
    }
    /* Steps follow each other but for the gaps. */
    for (size_t i = 0, j; i < s->nsteps; i = j) {
        for (j = i + 1; j < s->nsteps && s->step[j].from == s->step[j - 1].to;)
            j++;
        out->predicted_joules +=
            joules_between(m, d, idle, (double)s->step[i].from, (double)s->step[j - 1].to);
    }
    if (isnan(m->r->measured_joules))
        m->r->measured_joules = m->r->measured_predicted = 0;
    m->r->measured_joules += out->measured_joules;
    m->r->measured_predicted += out->predicted_joules;
}

static heddle_status domains_make(struct maker *m)
{
    struct heddle_energy_domain d = {.size = sizeof(d)};
    struct heddle_energy_run_domain *out;
    size_t n = 0;

    while (heddle_energy_get_domain(m->e, n, &d) == HEDDLE_OK)
        n++;
    out = heddle_scratch_get(m->own, n, sizeof(*out));
    if (out == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const heddle_status st = heddle_energy_get_domain(m->e, i, &d);

        out[i].name = heddle_scratch_text(m->own, d.name);
        out[i].device = heddle_scratch_text(m->own, d.device);
        if (st != HEDDLE_OK || out[i].name == NULL || out[i].device == NULL)
            return HEDDLE_ENOMEM;
        out[i].idle_joules = d.idle_watts * m->r->seconds;
        for (size_t k = 0; k < m->load.ncurves; k++)
            if (!isnan(m->watts[k]))
                out[i].active_joules += heddle_energy_share(m->e, i, m->keys.key[k].device) *
                                        m->watts[k] * m->load.seconds[k];
        for (size_t k = 0; k < m->load.nplaces; k++)
            out[i].move_joules += heddle_energy_share(m->e, i, m->load.place[k].name) *
                                  heddle_energy_get_move(m->e) / 2 * m->load.place[k].moved;
        out[i].joules = out[i].idle_joules + out[i].active_joules + out[i].move_joules;
        m->r->idle_joules += out[i].idle_joules;
        measured(m, i, d.idle_watts, &out[i]);
    }
    m->r->domains = out;
    m->r->ndomains = n;
    return HEDDLE_OK;
}

/* Most joules first; what is not known last. */
static uint64_t row_key(double joules)
{
    uint64_t bits;

    if (!(joules >= 0))
        return UINT64_MAX;
    memcpy(&bits, &joules, sizeof(bits));
    return UINT64_MAX - 1 - bits;
}

static heddle_status rows_make(struct maker *m)
{
    const size_t n = m->load.ncurves;
    struct heddle_energy_run_row *out = heddle_scratch_get(m->own, n, sizeof(*out));
    struct heddle_pair *p = heddle_scratch_get(&m->tmp, 2 * n, sizeof(*p));

    m->watts = heddle_scratch_get(&m->tmp, n, sizeof(*m->watts));
    if (out == NULL || p == NULL || m->watts == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct heddle_energy_key *k = &m->keys.key[i];
        const double joules =
            (m->watts[i] = heddle_energy_watts(m->e, k->kernel, k->variant, k->device, k->bytes)) *
            m->load.seconds[i];

        p[i] = (struct heddle_pair){row_key(joules), i};
        if (isnan(joules))
            m->r->nunknown += m->load.ntasks[i];
        else
            m->r->active_joules += joules;
    }
    heddle_sort_pairs(p, p + n, n);
    for (size_t i = 0; i < n; i++) {
        const struct heddle_energy_key *k = &m->keys.key[p[i].idx];

        out[i] = (struct heddle_energy_run_row){.kernel = heddle_scratch_text(m->own, k->kernel),
                                                .variant = heddle_scratch_text(m->own, k->variant),
                                                .device = heddle_scratch_text(m->own, k->device),
                                                .ntasks = m->load.ntasks[p[i].idx],
                                                .seconds = m->load.seconds[p[i].idx],
                                                .watts = m->watts[p[i].idx],
                                                .joules =
                                                    m->watts[p[i].idx] * m->load.seconds[p[i].idx]};
        if (out[i].kernel == NULL || out[i].variant == NULL || out[i].device == NULL)
            return HEDDLE_ENOMEM;
    }
    m->r->rows = out;
    m->r->nrows = n;
    return HEDDLE_OK;
}

static heddle_status make(struct maker *m, const heddle_log *log)
{
    struct heddle_energy_run *r = m->r;

    r->size = sizeof(*r);
    r->measured_joules = r->measured_predicted = NAN;
    HEDDLE_TRY(heddle_energy_load_make(&m->load, log, &m->keys));
    HEDDLE_TRY(heddle_energy_series_get(&m->tmp, log, &m->series, &m->nseries));
    r->seconds = (double)(m->load.last_ns - m->load.first_ns) * 1e-9;
    HEDDLE_TRY(rows_make(m));
    HEDDLE_TRY(domains_make(m));
    r->move_joules = heddle_energy_get_move(m->e) * m->load.moved;
    r->joules = r->idle_joules + r->active_joules + r->move_joules;
    return HEDDLE_OK;
}

heddle_status heddle_energy_run_create(const struct heddle_allocator *alloc,
                                       const heddle_energy *model, const heddle_log *log,
                                       struct heddle_energy_run **out)
{
    struct heddle_scratch own = heddle_scratch_make(alloc);
    struct maker m = {.e = model, .own = &own};
    struct heddle_scratch *kept;
    heddle_status st = HEDDLE_ENOMEM;

    if (model == NULL || log == NULL || out == NULL)
        return HEDDLE_EINVAL;
    m.tmp = heddle_scratch_make(alloc);
    m.keys = heddle_energy_keys_make(alloc, heddle_energy_has_sizes(model));
    m.load.mem = heddle_scratch_make(alloc);
    m.r = heddle_scratch_get(&own, 1, sizeof(*m.r));
    kept = heddle_scratch_get(&own, 1, sizeof(*kept));
    if (m.r != NULL && kept != NULL)
        st = make(&m, log);
    heddle_energy_load_drop(&m.load);
    heddle_energy_keys_drop(&m.keys);
    heddle_scratch_drop(&m.tmp);
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&own);
        return st;
    }
    *kept = own;
    m.r->own = kept;
    *out = m.r;
    return HEDDLE_OK;
}

void heddle_energy_run_destroy(struct heddle_energy_run *r)
{
    struct heddle_scratch own;

    if (r == NULL)
        return;
    own = *(struct heddle_scratch *)r->own;
    heddle_scratch_drop(&own);
}
