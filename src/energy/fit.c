/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs with samples -> a model and a report.
 *
 * Domains    of equal name in several logs are one counter. Each is fitted by
 *            itself; the watts of a key are the sum over the domains that count
 *            its device, as package and memory both do. So are the draws of the
 *            bootstrap, which begin with the same number in every domain.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "energy/fit_all.h"

enum { NBOOT = 200, MAX_BOOT = 2000 };

static heddle_status fail(const struct heddle_energy_fitting *f, heddle_status st, const char *text)
{
    return heddle_why(f->o.why, f->o.why_bytes, st, "%s", text);
}

/* ---- what the logs have ------------------------------------------------------ */

/* The sentence when there is nothing to fit: what the logs say about it. */
static heddle_status no_samples(const struct heddle_energy_fitting *f, bool has_series)
{
    char text[512];
    struct heddle_text t;
    const struct heddle_log_view *v = heddle_log_get_view(f->logs[0]);
    const char *time = "";

    heddle_text_init(&t, text, sizeof(text));
    heddle_text_str(&t, has_series ? "the counters in the log never moved, or not "
                                     "while it was read"
                                   : "the log has no samples of energy counters");
    for (size_t i = 0; i < v->ninfos; i++) {
        const char *key = v->infos[i].key;

        if (strcmp(key, "time") == 0)
            time = v->infos[i].value;
        if (strncmp(key, "energy", 6) == 0 && strncmp(key, "energy.domain.", 14) != 0 &&
            strncmp(key, "energy.source", 13) != 0)
            heddle_text_add(&t, "; it says: %s", v->infos[i].value);
    }
    if (!has_series && strcmp(time, "virtual") == 0)
        heddle_text_str(&t, "; it was made in virtual time: 'heddle energy "
                            "plant' adds some by a model");
    return fail(f, HEDDLE_ENOENT, text);
}

static heddle_status read_logs(struct heddle_energy_fitting *f)
{
    f->load = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*f->load));
    f->series = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*f->series));
    f->nseries = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*f->nseries));
    if (f->load == NULL || f->series == NULL || f->nseries == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < f->nlogs; i++) {
        HEDDLE_TRY(heddle_energy_load_make(&f->load[i], f->logs[i], &f->keys));
        HEDDLE_TRY(heddle_energy_series_get(&f->tmp, f->logs[i], &f->series[i], &f->nseries[i]));
    }
    return HEDDLE_OK;
}

/* The domain of a series; a new one when there is none. */
static struct heddle_energy_system *system_of(struct heddle_energy_fitting *f,
                                              const struct heddle_energy_series *s)
{
    size_t i = 0;

    while (i < f->ndomains && strcmp(f->system[i].name, s->name) != 0)
        i++;
    if (i == f->ndomains)
        f->system[f->ndomains++] = (struct heddle_energy_system){
            .mem = &f->tmp, .keys = &f->keys, .name = s->name, .device = s->device};
    return &f->system[i];
}

static heddle_status note_series(struct heddle_energy_fitting *f,
                                 const struct heddle_energy_series *s)
{
    if (s->nback > 0)
        HEDDLE_TRY(heddle_notes_add(&f->notes,
                                    "%s went back %zu times, and no wrap explains it: the "
                                    "energy around it is left out",
                                    s->name, s->nback));
    if (s->njumps > 0)
        HEDDLE_TRY(heddle_notes_add(&f->notes,
                                    "%s jumped ahead %zu times, by more than 100 times the "
                                    "usual power: these are left out",
                                    s->name, s->njumps));
    if (s->ngaps > 0)
        HEDDLE_TRY(heddle_notes_add(&f->notes, "%s has %zu gaps", s->name, s->ngaps));
    if (s->nsteps == 0)
        HEDDLE_TRY(
            heddle_notes_add(&f->notes, "%s never moved in %zu samples", s->name, s->nsamples));
    return HEDDLE_OK;
}

static heddle_status systems_make(struct heddle_energy_fitting *f)
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
                y->part = heddle_scratch_get(&f->tmp, f->nlogs, sizeof(*y->part));
            if (y->part == NULL)
                return HEDDLE_ENOMEM;
            if (y->nparts > 0 && y->part[y->nparts - 1].log == i)
                continue; /* the same name twice in a log */
            y->part[y->nparts++] = (struct heddle_energy_part){&f->load[i], s, i, 0};
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

static heddle_status columns_make(struct heddle_energy_fitting *f, struct heddle_energy_system *y)
{
    y->has_bytes = moves_touch(y);
    y->key = heddle_scratch_get(&f->tmp, f->keys.n + 2, sizeof(*y->key));
    if (y->key == NULL)
        return HEDDLE_ENOMEM;
    y->key[0] = SIZE_MAX;
    y->ncols = 1;
    for (size_t i = 0; i < f->keys.n; i++)
        if (f->keys.key[i].seconds > 0 && heddle_energy_counts(y->device, f->keys.key[i].device))
            y->key[y->ncols++] = i;
    if (y->has_bytes)
        y->key[y->ncols++] = SIZE_MAX;
    if (y->ncols > HEDDLE_ENERGY_COLUMNS_MAX)
        return heddle_why(f->o.why, f->o.why_bytes, HEDDLE_EINVAL,
                          "%s would have %zu kinds of tasks, more than "
                          "%d: fit without sizes, "
                          "or fewer logs",
                          y->name, y->ncols, HEDDLE_ENERGY_COLUMNS_MAX);
    return HEDDLE_OK;
}

/* ---- the model ----------------------------------------------------------------- */

/* The mean of a device stands for kernels that did not run. */
static heddle_status mean_row(const struct heddle_energy_fitting *f, size_t first, heddle_energy *e)
{
    const struct heddle_energy_fit_row *r = f->r->rows;
    struct heddle_energy_active a = {.size = sizeof(a), .kernel = "*", .device = r[first].device};
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

static heddle_status model_make(const struct heddle_energy_fitting *f, heddle_energy *e)
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

static heddle_status solve_domains(struct heddle_energy_fitting *f)
{
    const struct heddle_energy_solve_opts so = {
        .nlogs = f->nlogs, .nboot = f->o.nbootstrap, .seed = f->o.seed, .prior = f->o.prior};

    f->solution = heddle_scratch_get(&f->tmp, f->ndomains, sizeof(*f->solution));
    f->domain = heddle_scratch_get(f->own, f->ndomains, sizeof(*f->domain));
    f->sorted = heddle_scratch_get(&f->tmp, f->o.nbootstrap, sizeof(*f->sorted));
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
        HEDDLE_TRY(heddle_energy_fit_domain(f, d));
    }
    return HEDDLE_OK;
}

static heddle_status fit(struct heddle_energy_fitting *f, heddle_energy *e)
{
    f->r->size = sizeof(*f->r);
    f->r->nlogs = f->nlogs;
    HEDDLE_TRY(read_logs(f));
    HEDDLE_TRY(systems_make(f));
    HEDDLE_TRY(solve_domains(f));
    HEDDLE_TRY(heddle_energy_fit_results(f));
    return model_make(f, e);
}

static heddle_status check(struct heddle_energy_fitting *f,
                           const struct heddle_energy_fit_opts *opts)
{
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_fit_opts, &f->o, opts));
    if (f->nlogs == 0 || f->logs == NULL)
        return fail(f, HEDDLE_EINVAL, "a log is needed");
    for (size_t i = 0; i < f->nlogs; i++)
        if (f->logs[i] == NULL)
            return fail(f, HEDDLE_EINVAL, "a log is needed");
    if (f->o.has_lag && (f->o.lag_ns < 0 || f->o.window_ns < 0 || f->o.lag_ns > INT64_MAX / 1024 ||
                         f->o.window_ns > INT64_MAX / 1024))
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
    struct heddle_energy_fitting f = {.logs = logs, .nlogs = n};
    struct heddle_scratch own, *kept;
    heddle_energy *e = NULL;
    heddle_status st;

    if (model_out == NULL || report_out == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(check(&f, opts));
    own = f.tmp = heddle_scratch_make(f.o.alloc);
    f.own = f.notes.mem = &own;
    f.keys = heddle_energy_keys_make(f.o.alloc, f.o.by_size != 0);
    f.r = heddle_scratch_get(&own, 1, sizeof(*f.r));
    kept = heddle_scratch_get(&own, 1, sizeof(*kept));
    st = f.r == NULL || kept == NULL ? HEDDLE_ENOMEM : heddle_energy_create(f.o.alloc, &e);
    if (st == HEDDLE_OK)
        st = fit(&f, e);
    for (size_t i = 0; i < n && f.load != NULL; i++)
        heddle_energy_load_drop(&f.load[i]);
    heddle_energy_keys_drop(&f.keys);
    heddle_scratch_drop(&f.tmp);
    if (st != HEDDLE_OK) {
        heddle_energy_destroy(e);
        heddle_scratch_drop(&own);
        return st == HEDDLE_ENOMEM ? fail(&f, st, "there is not enough memory") : st;
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
