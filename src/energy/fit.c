/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs with samples -> a model and a report.
 *
 * Domains    of equal name in several logs are one counter. Each is fitted by
 *            itself; the watts of a key are the sum over the domains that count
 *            its device, as package and memory both do. So are the draws of the
 *            bootstrap, which begin with the same number in every domain.
 * Variants   a kernel that had one variant on a device gets a row without.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sort.h"
#include "base/text.h"
#include "energy/fit.h"
#include "energy/why.h"

enum { MAX_COLUMNS = 400, NOTE_BYTES = 320, NBOOT = 200, MAX_BOOT = 2000 };

#define LOW  0.025
#define HIGH 0.975

struct fit {
    const heddle_log *const *logs;
    size_t nlogs;
    struct heddle_energy_fit_opts o;
    struct heddle_scratch tmp;  /* for the time of the call */
    struct heddle_scratch *own; /* of the report */
    struct heddle_energy_keys keys;
    struct heddle_energy_load *load;      /* [nlogs] */
    struct heddle_energy_series **series; /* [nlogs] */
    size_t *nseries;                      /* [nlogs] */
    struct heddle_energy_system *system;  /* [ndomains] */
    struct heddle_energy_solution *solution;
    struct heddle_energy_fit_domain *domain;
    size_t ndomains;
    double *watts, *low, *high; /* [keys] */
    uint32_t *group;            /* [keys] */
    double *sorted;             /* [boot] */
    struct heddle_energy_fit_report *r;
    const char **notes;
    size_t nnotes, notes_room;
};

static heddle_status fail(const struct fit *f, heddle_status st,
                          const char *text)
{
    return heddle_energy_why(f->o.why, f->o.why_bytes, st, "%s", text);
}

HEDDLE_PRINTF(2, 3)
static heddle_status note(struct fit *f, const char *fmt, ...)
{
    char *s = heddle_scratch_get(f->own, NOTE_BYTES, 1);
    struct heddle_text t;
    va_list ap;

    if (f->nnotes == f->notes_room) {
        const size_t room = f->notes_room == 0 ? 16 : 2 * f->notes_room;
        const char **more = heddle_scratch_get(f->own, room, sizeof(*more));

        if (more == NULL)
            return HEDDLE_ENOMEM;
        if (f->nnotes > 0)
            memcpy(more, f->notes, f->nnotes * sizeof(*more));
        f->notes = more;
        f->notes_room = room;
    }
    if (s == NULL)
        return HEDDLE_ENOMEM;
    heddle_text_init(&t, s, NOTE_BYTES);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    f->notes[f->nnotes++] = s;
    return HEDDLE_OK;
}

static const char *keep(struct heddle_scratch *mem, const char *s)
{
    const size_t n = strlen(s);
    char *to = heddle_scratch_get(mem, n + 1, 1);

    if (to != NULL && n > 0)
        memcpy(to, s, n);
    return to;
}

/* ---- what the logs have ------------------------------------------------------ */

/* The sentence when there is nothing to fit: what the logs say about it. */
static heddle_status no_samples(const struct fit *f, bool has_series)
{
    char text[512];
    struct heddle_text t;
    const struct heddle_log_view *v = heddle_log_get_view(f->logs[0]);
    const char *time = "";

    heddle_text_init(&t, text, sizeof(text));
    heddle_text_str(&t, has_series
                            ? "the counters in the log never moved, or not "
                              "while it was read"
                            : "the log has no samples of energy counters");
    for (size_t i = 0; i < v->ninfos; i++) {
        const char *key = v->infos[i].key;

        if (strcmp(key, "time") == 0)
            time = v->infos[i].value;
        if (strncmp(key, "energy", 6) == 0 &&
            strncmp(key, "energy.domain.", 14) != 0 &&
            strncmp(key, "energy.source.", 14) != 0)
            heddle_text_add(&t, "; it says: %s", v->infos[i].value);
    }
    if (!has_series && strcmp(time, "virtual") == 0)
        heddle_text_str(&t, "; it was made in virtual time: 'heddle energy "
                            "plant' adds some by a model");
    return fail(f, HEDDLE_ENOENT, text);
}

static heddle_status read_logs(struct fit *f)
{
    f->load = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*f->load));
    f->series = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*f->series));
    f->nseries = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*f->nseries));
    if (f->load == NULL || f->series == NULL || f->nseries == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nlogs; i++) {
        HEDDLE_TRY(heddle_energy_load_make(&f->load[i], f->logs[i], &f->keys));
        HEDDLE_TRY(heddle_energy_series_get(&f->tmp, f->logs[i], &f->series[i],
                                            &f->nseries[i]));
    }
    return HEDDLE_OK;
}

/* The domain of a series; a new one when there is none. */
static struct heddle_energy_system *
system_of(struct fit *f, const struct heddle_energy_series *s)
{
    size_t i = 0;

    while (i < f->ndomains && strcmp(f->system[i].name, s->name) != 0)
        i++;
    if (i == f->ndomains)
        f->system[f->ndomains++] =
            (struct heddle_energy_system){.mem = &f->tmp,
                                          .keys = &f->keys,
                                          .name = s->name,
                                          .device = s->device};
    return &f->system[i];
}

static heddle_status note_series(struct fit *f,
                                 const struct heddle_energy_series *s)
{
    if (s->nback > 0)
        HEDDLE_TRY(note(f,
                        "%s went back %zu times, and no wrap explains it: the "
                        "energy around it is left out",
                        s->name, s->nback));
    if (s->njumps > 0)
        HEDDLE_TRY(note(f,
                        "%s jumped ahead %zu times, by more than 100 times the "
                        "usual power: these are left out",
                        s->name, s->njumps));
    if (s->ngaps > 0)
        HEDDLE_TRY(note(f, "%s has %zu gaps", s->name, s->ngaps));
    if (s->nsteps == 0)
        HEDDLE_TRY(
            note(f, "%s never moved in %zu samples", s->name, s->nsamples));
    return HEDDLE_OK;
}

static heddle_status systems_make(struct fit *f)
{
    size_t most = 0;

    for (size_t i = 0; i < f->nlogs; i++)
        most += f->nseries[i];
    f->system = heddle_scratch_get(&f->tmp, most, sizeof(*f->system));
    if (f->system == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nlogs; i++)
        for (size_t k = 0; k < f->nseries[i]; k++) {
            const struct heddle_energy_series *s = &f->series[i][k];
            struct heddle_energy_system *y;

            HEDDLE_TRY(note_series(f, s));
            if (s->nsteps == 0)
                continue;
            y = system_of(f, s);
            if (y->part == NULL)
                y->part =
                    heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*y->part));
            if (y->part == NULL)
                return HEDDLE_ENOMEM;
            if (y->nparts > 0 && y->part[y->nparts - 1].log == i)
                continue; /* the same name twice in a log */
            y->part[y->nparts++] =
                (struct heddle_energy_part){&f->load[i], s, i, 0};
        }
    return f->ndomains > 0 ? HEDDLE_OK : no_samples(f, most > 0);
}

/* ---- columns ----------------------------------------------------------------- */

static bool moves_touch(const struct heddle_energy_system *y)
{
    for (size_t i = 0; i < y->nparts; i++)
        for (size_t k = 0; k < y->part[i].load->nplaces; k++)
            if (y->part[i].load->place[k].moved > 0 &&
                heddle_energy_counts(y->device, y->part[i].load->place[k].name))
                return true;
    return false;
}

static heddle_status columns_make(struct fit *f, struct heddle_energy_system *y)
{
    y->has_bytes = moves_touch(y);
    y->key = heddle_scratch_get(&f->tmp, f->keys.n + 2, sizeof(*y->key));
    if (y->key == NULL)
        return HEDDLE_ENOMEM;
    y->key[0] = SIZE_MAX;
    y->ncols = 1;
    for (size_t i = 0; i < f->keys.n; i++)
        if (f->keys.key[i].seconds > 0 &&
            heddle_energy_counts(y->device, f->keys.key[i].device))
            y->key[y->ncols++] = i;
    if (y->has_bytes)
        y->key[y->ncols++] = SIZE_MAX;
    if (y->ncols > MAX_COLUMNS)
        return heddle_energy_why(f->o.why, f->o.why_bytes, HEDDLE_EINVAL,
                                 "%s would have %zu kinds of tasks, more than "
                                 "%d: fit without sizes, "
                                 "or fewer logs",
                                 y->name, y->ncols, MAX_COLUMNS);
    return HEDDLE_OK;
}

/* ---- results ----------------------------------------------------------------- */

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
static void interval(struct fit *f, double x, size_t n, double *low,
                     double *high)
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

static double mean_error(const double *predicted, const double *measured,
                         size_t n)
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

static heddle_status domain_report(struct fit *f, size_t d)
{
    const struct heddle_energy_system *y = &f->system[d];
    const struct heddle_energy_solution *x = &f->solution[d];
    struct heddle_energy_fit_domain *out = &f->domain[d];
    int64_t step = 0;

    HEDDLE_TRY(heddle_energy_median_step(y, &step));
    out->name = keep(f->own, y->name);
    out->device = keep(f->own, strcmp(y->device, "-") == 0 ? "" : y->device);
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
static void key_result(struct fit *f, size_t key, uint32_t *first_group)
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
            *first_group = (uint32_t)(d * MAX_COLUMNS) + x->group[c];
    }
    if (n == SIZE_MAX)
        f->watts[key] = NAN;
    else
        interval(f, f->watts[key], n, &f->low[key], &f->high[key]);
}

static heddle_status keys_result(struct fit *f)
{
    const size_t n = f->keys.n;
    uint32_t ngroups = 0;

    f->watts = heddle_scratch_get(&f->tmp, n, sizeof(*f->watts));
    f->low = heddle_scratch_get(&f->tmp, n, sizeof(*f->low));
    f->high = heddle_scratch_get(&f->tmp, n, sizeof(*f->high));
    f->group = heddle_scratch_get(&f->tmp, 2 * n, sizeof(*f->group));
    if (f->watts == NULL || f->low == NULL || f->high == NULL ||
        f->group == NULL)
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

static double byte_joules(const struct fit *f, double *bytes_out)
{
    double joules = 0, bytes = 0;

    for (size_t i = 0; i < f->nlogs; i++)
        bytes += f->load[i].moved;
    for (size_t d = 0; d < f->ndomains; d++) {
        const struct heddle_energy_system *y = &f->system[d];

        for (size_t i = 0; i < y->nparts && y->has_bytes; i++)
            for (size_t k = 0; k < y->part[i].load->nplaces; k++)
                if (heddle_energy_counts(y->device,
                                         y->part[i].load->place[k].name))
                    joules += f->solution[d].x[y->ncols - 1] *
                              y->part[i].load->place[k].moved;
    }
    *bytes_out = bytes;
    return bytes > 0 ? joules / bytes : 0;
}

/* Is there another key that is equal but for its variant (or its bytes)? */
static bool has_other(const struct fit *f, size_t i, bool bytes)
{
    const struct heddle_energy_key *a = &f->keys.key[i];

    for (size_t k = 0; k < f->keys.n; k++) {
        const struct heddle_energy_key *b = &f->keys.key[k];

        if (k != i && b->seconds > 0 && strcmp(a->kernel, b->kernel) == 0 &&
            strcmp(a->device, b->device) == 0 &&
            (bytes ? a->bytes != b->bytes
                   : strcmp(a->variant, b->variant) != 0))
            return true;
    }
    return false;
}

static heddle_status rows_make(struct fit *f)
{
    const size_t n = f->keys.n;
    struct heddle_energy_fit_row *row =
        heddle_scratch_get(f->own, n, sizeof(*row));
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
            .kernel = keep(f->own, key->kernel),
            .variant = keep(f->own, has_other(f, i, false) ? key->variant : ""),
            .device = keep(f->own, key->device),
            .bytes = has_other(f, i, true) ? key->bytes : 0,
            .ntasks = key->ntasks,
            .seconds = key->seconds,
            .watts = f->watts[i],
            .low = f->low[i],
            .high = f->high[i],
            .joules = f->watts[i] * key->seconds,
            .group = f->group[i]};
        if (row[k].kernel == NULL || row[k].variant == NULL ||
            row[k].device == NULL)
            return HEDDLE_ENOMEM;
        f->r->active_joules += row[k].joules;
    }
    f->r->rows = row;
    f->r->nrows = nrows;
    return HEDDLE_OK;
}

/* All logs, all domains: one held out after the other. */
static heddle_status held_out(struct fit *f)
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

/* ---- the model ----------------------------------------------------------------- */

/* The mean of a device stands for kernels that did not run. */
static heddle_status mean_row(const struct fit *f, size_t first,
                              heddle_energy *e)
{
    const struct heddle_energy_fit_row *r = f->r->rows;
    struct heddle_energy_active a = {
        .size = sizeof(a), .kernel = "*", .device = r[first].device};
    double seconds = 0, joules = 0;

    for (size_t i = 0; i < f->r->nrows; i++) {
        if (strcmp(r[i].device, r[first].device) != 0)
            continue;
        if (i < first)
            return HEDDLE_OK; /* done with the first of them */
        seconds += r[i].seconds;
        joules += r[i].joules;
        a.count += r[i].ntasks;
    }
    a.watts = joules / seconds;
    return heddle_energy_set_active(e, &a);
}

static heddle_status model_make(const struct fit *f, heddle_energy *e)
{
    for (size_t i = 0; i < f->ndomains; i++) {
        const struct heddle_energy_fit_domain *d = &f->domain[i];
        const struct heddle_energy_domain row = {.size = sizeof(row),
                                                 .name = d->name,
                                                 .device = d->device,
                                                 .idle_watts = d->idle_watts,
                                                 .low = d->low,
                                                 .high = d->high};

        HEDDLE_TRY(heddle_energy_set_domain(e, &row));
    }
    for (size_t i = 0; i < f->r->nrows; i++) {
        const struct heddle_energy_fit_row *r = &f->r->rows[i];
        const struct heddle_energy_active a = {.size = sizeof(a),
                                               .kernel = r->kernel,
                                               .device = r->device,
                                               .variant = r->variant,
                                               .bytes = r->bytes,
                                               .watts = r->watts,
                                               .low = r->low,
                                               .high = r->high,
                                               .group = r->group,
                                               .count = r->ntasks};

        if (r->kernel[0] != '\0')
            HEDDLE_TRY(heddle_energy_set_active(e, &a));
    }
    for (size_t i = 0; i < f->r->nrows; i++)
        HEDDLE_TRY(mean_row(f, i, e));
    return heddle_energy_set_move(e, f->r->joules_per_byte);
}

/* ---- all of it ------------------------------------------------------------------ */

static heddle_status note_results(struct fit *f)
{
    for (size_t d = 0; d < f->ndomains; d++) {
        const struct heddle_energy_solution *x = &f->solution[d];
        const struct heddle_energy_system *y = &f->system[d];

        if (strcmp(y->device, "*") == 0)
            HEDDLE_TRY(note(f,
                            "the log does not say whose tasks %s counts: all "
                            "are taken",
                            y->name));
        if (x->nrows < 3 * x->ncols)
            HEDDLE_TRY(note(f,
                            "%s has %zu intervals for %zu unknowns: longer "
                            "runs are needed",
                            y->name, x->nrows, x->ncols));
        if (x->is_idle_unclear)
            HEDDLE_TRY(note(f,
                            "%s: a kernel ran all the time, so that its watts "
                            "cannot be told from idle ones",
                            y->name));
        for (size_t c = 1; c < y->ncols; c++)
            if (!x->has_data[c] && y->key[c] != SIZE_MAX)
                HEDDLE_TRY(note(f,
                                "%s on %s ran too little while %s was read: "
                                "it has the mean of its device",
                                f->keys.key[y->key[c]].kernel,
                                f->keys.key[y->key[c]].device, y->name));
    }
    for (size_t i = 0; i < f->keys.n; i++)
        if (isnan(f->watts[i]) && f->keys.key[i].seconds > 0)
            HEDDLE_TRY(note(f, "%s on %s: no counter counts that device",
                            f->keys.key[i].kernel, f->keys.key[i].device));
    return HEDDLE_OK;
}

static heddle_status solve_domains(struct fit *f)
{
    const struct heddle_energy_solve_opts so = {.nlogs = f->nlogs,
                                                .nboot = f->o.nbootstrap,
                                                .seed = f->o.seed,
                                                .prior = f->o.prior};

    f->solution =
        heddle_scratch_get(&f->tmp, f->ndomains, sizeof(*f->solution));
    f->domain = heddle_scratch_get(f->own, f->ndomains, sizeof(*f->domain));
    f->sorted =
        heddle_scratch_get(&f->tmp, f->o.nbootstrap, sizeof(*f->sorted));
    if (f->solution == NULL || f->domain == NULL || f->sorted == NULL)
        return HEDDLE_ENOMEM;
    for (size_t d = 0; d < f->ndomains; d++) {
        struct heddle_energy_system *y = &f->system[d];

        HEDDLE_TRY(columns_make(f, y));
        for (size_t i = 0; i < y->nparts; i++)
            y->part[i].lag_ns = f->o.lag_ns;
        y->window_ns = f->o.window_ns;
        if (!f->o.has_lag)
            HEDDLE_TRY(heddle_energy_find_lag(y));
        HEDDLE_TRY(heddle_energy_solve(y, &so, &f->solution[d]));
        HEDDLE_TRY(domain_report(f, d));
    }
    return HEDDLE_OK;
}

static heddle_status fit(struct fit *f, heddle_energy *e)
{
    double bytes = 0;

    f->r->size = sizeof(*f->r);
    f->r->nlogs = f->nlogs;
    HEDDLE_TRY(read_logs(f));
    HEDDLE_TRY(systems_make(f));
    HEDDLE_TRY(solve_domains(f));
    HEDDLE_TRY(keys_result(f));
    f->r->joules_per_byte = byte_joules(f, &bytes);
    f->r->move_joules = f->r->joules_per_byte * bytes;
    HEDDLE_TRY(rows_make(f));
    HEDDLE_TRY(held_out(f));
    HEDDLE_TRY(note_results(f));
    f->r->domains = f->domain;
    f->r->ndomains = f->ndomains;
    f->r->notes = f->notes;
    f->r->nnotes = f->nnotes;
    return model_make(f, e);
}

static heddle_status check(struct fit *f,
                           const struct heddle_energy_fit_opts *opts)
{
    if (opts != NULL && opts->size < sizeof(*opts))
        return HEDDLE_EINVAL;
    if (opts != NULL)
        f->o = *opts;
    if (f->nlogs == 0 || f->logs == NULL)
        return fail(f, HEDDLE_EINVAL, "a log is needed");
    for (size_t i = 0; i < f->nlogs; i++)
        if (f->logs[i] == NULL)
            return fail(f, HEDDLE_EINVAL, "a log is needed");
    if (f->o.has_lag &&
        (f->o.lag_ns < 0 || f->o.window_ns < 0 ||
         f->o.lag_ns > INT64_MAX / 1024 || f->o.window_ns > INT64_MAX / 1024))
        return fail(f, HEDDLE_EINVAL, "a lag or a window is negative");
    if (f->o.nbootstrap == 0)
        f->o.nbootstrap = NBOOT;
    if (f->o.nbootstrap > MAX_BOOT)
        return fail(f, HEDDLE_EINVAL, "the bootstrap has 2000 draws at most");
    if (f->o.no_bootstrap)
        f->o.nbootstrap = 0;
    return HEDDLE_OK;
}

heddle_status heddle_energy_fit(const heddle_log *const *logs, size_t n,
                                const struct heddle_energy_fit_opts *opts,
                                heddle_energy **model_out,
                                struct heddle_energy_fit_report **report_out)
{
    struct fit f = {.logs = logs, .nlogs = n};
    struct heddle_scratch own, *kept;
    heddle_energy *e = NULL;
    heddle_status st;

    if (model_out == NULL || report_out == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(check(&f, opts));
    own = f.tmp = heddle_scratch_make(f.o.alloc);
    f.own = &own;
    f.keys = heddle_energy_keys_make(f.o.alloc, f.o.by_size != 0);
    f.r = heddle_scratch_get(&own, 1, sizeof(*f.r));
    kept = heddle_scratch_get(&own, 1, sizeof(*kept));
    st = f.r == NULL || kept == NULL ? HEDDLE_ENOMEM
                                     : heddle_energy_create(f.o.alloc, &e);
    if (st == HEDDLE_OK)
        st = fit(&f, e);
    for (size_t i = 0; i < n && f.load != NULL; i++)
        heddle_energy_load_drop(&f.load[i]);
    heddle_energy_keys_drop(&f.keys);
    heddle_scratch_drop(&f.tmp);
    if (st != HEDDLE_OK) {
        heddle_energy_destroy(e);
        heddle_scratch_drop(&own);
        return st == HEDDLE_ENOMEM ? fail(&f, st, "there is not enough memory")
                                   : st;
    }
    *kept = own;
    f.r->own = kept;
    *model_out = e;
    *report_out = f.r;
    return HEDDLE_OK;
}

void heddle_energy_fit_report_destroy(struct heddle_energy_fit_report *r)
{
    struct heddle_scratch own;

    if (r == NULL)
        return;
    own = *(struct heddle_scratch *)r->own;
    heddle_scratch_drop(&own);
}
