/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A power plant: the samples that counters would have shown in a run.
 *
 * Truth      the energy of each domain up to any time, by the model and the
 *            executions of the log, exactly.
 * Counter    is updated once per period, at a phase of its own: it looks at the
 *            last part of the period, takes the mean power there (each moment
 *            being itself a mean over the window before it), and adds that power
 *            times the period, with noise. What it shows is a whole number of
 *            counts.
 * Reading    at equal distances, each somewhat late; a reading is what the latest
 *            update left.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "energy/run.h"
#include "heddle/compose.h"
#include "heddle/energy_fit.h"

enum {
    MAX_SAMPLES = 20 * 1000 * 1000,
    MAX_UPDATES = 200 * 1000 * 1000,
    LOOKS = 16,
    INFO_BYTES = 600
};

#define MS INT64_C(1000000)

static const struct {
    const char *name;
    struct heddle_energy_counter c;
} presets[] = {
    {"cpu",
     {.period_ns = MS,
      .lag_ns = MS / 2,
      .sampled = 1,
      .quantum_j = 61e-6,
      .noise = 0.01,
      .sample_ns = 10 * MS,
      .late = 0.05,
      .margin_ns = 50 * MS}},
    {"gpu",
     {.period_ns = 100 * MS,
      .lag_ns = 10 * MS,
      .sampled = 0.25,
      .quantum_j = 1e-3,
      .noise = 0.02,
      .sample_ns = 50 * MS,
      .late = 0.05,
      .margin_ns = 300 * MS}},
};

heddle_status heddle_energy_counter_find(const char *name, struct heddle_energy_counter *out)
{
    if (name == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_energy_counter, out, NULL, 0));
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
        if (strcmp(presets[i].name, name) == 0) {
            heddle_sized_put(out, &presets[i].c, sizeof(presets[i].c));
            return HEDDLE_OK;
        }
    return HEDDLE_ENOENT;
}

struct plant {
    const heddle_log *log;
    const heddle_energy *model;
    const struct heddle_energy_plant_opts *o;
    struct heddle_energy_keys keys;
    struct heddle_energy_load load;
    struct heddle_scratch mem;
    struct heddle_log_event *event;
    size_t nevents, ndomains;
    struct heddle_rng rng;
};

/* What one domain adds up, as weights of the load's curves. */
struct truth {
    const struct plant *p;
    double idle, from;
    double *watts; /* [curves] */
    double *bytes; /* [places] joules per byte */
};

static double energy_at(const struct truth *t, double ns)
{
    double sum = ns > t->from ? t->idle * (ns - t->from) * 1e-9 : 0;

    for (size_t i = 0; i < t->p->load.ncurves; i++)
        if (t->watts[i] > 0)
            sum += t->watts[i] * heddle_energy_curve_at(&t->p->load.curve[i], ns);
    for (size_t i = 0; i < t->p->load.nplaces; i++)
        if (t->bytes[i] > 0)
            sum += t->bytes[i] * heddle_energy_curve_at(&t->p->load.place[i].bytes, ns);
    return sum;
}

/* Mean watts between two times, of power that is a mean over w before. */
static double mean_watts(const struct truth *t, double a, double b, double w)
{
    double sum = 0;

    if (w <= 0)
        return (energy_at(t, b) - energy_at(t, a)) / ((b - a) * 1e-9);
    for (int i = 0; i < LOOKS; i++) {
        const double at = a + (b - a) * (i + 0.5) / LOOKS;

        sum += (energy_at(t, at) - energy_at(t, at - w)) / (w * 1e-9);
    }
    return sum / LOOKS;
}

/* Normal, by the sum of twelve uniform ones. */
static double gauss(struct heddle_rng *r)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += heddle_rng_double(r);
    return sum;
}

/* ---- options --------------------------------------------------------------- */

static bool is_counter(const struct heddle_energy_counter *c)
{
    return c->period_ns > 0 && c->lag_ns >= 0 && c->window_ns >= 0 && c->sampled > 0 &&
           c->sampled <= 1 && isfinite(c->quantum_j) && c->quantum_j >= 1e-6 && c->noise >= 0 &&
           isfinite(c->noise) && c->sample_ns > 0 && c->late >= 0 && c->late < 1 &&
           c->margin_ns >= 0 && c->period_ns < INT64_MAX / 1024 && c->lag_ns < INT64_MAX / 1024 &&
           c->window_ns < INT64_MAX / 1024 && c->margin_ns < INT64_MAX / 1024 &&
           c->sample_ns < INT64_MAX / 1024;
}

static heddle_status counter_of(const struct plant *p, const char *device,
                                struct heddle_energy_counter *out)
{
    const bool is_cpu = heddle_energy_counts(device, "cpu");
    const struct heddle_energy_counter *given = is_cpu ? p->o->cpu : p->o->gpu;

    if (given == NULL) {
        *out = presets[is_cpu ? 0 : 1].c;
        out->size = sizeof(*out);
        return HEDDLE_OK;
    }
    HEDDLE_TRY(
        HEDDLE_SIZED_GET(struct heddle_energy_counter, out, given, p->o->why, p->o->why_bytes));
    return is_counter(out) ? HEDDLE_OK
                           : heddle_why(p->o->why, p->o->why_bytes, HEDDLE_EINVAL,
                                        "this is no counter: a period, a quantum or "
                                        "a share is negative, 0 or not a number");
}

static size_t count_samples(const struct plant *p, const struct heddle_energy_counter *c)
{
    const int64_t ns = p->load.last_ns - p->load.first_ns + 2 * c->margin_ns;

    return ns / c->sample_ns >= MAX_SAMPLES ? MAX_SAMPLES : (size_t)(ns / c->sample_ns) + 2;
}

/* ---- samples --------------------------------------------------------------- */

static heddle_status truth_make(struct plant *p, size_t d, struct truth *t)
{
    struct heddle_energy_domain row = {.size = sizeof(row)};

    t->p = p;
    t->watts = heddle_scratch_get(&p->mem, p->load.ncurves, sizeof(*t->watts));
    t->bytes = heddle_scratch_get(&p->mem, p->load.nplaces, sizeof(*t->bytes));
    if (t->watts == NULL || t->bytes == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_energy_get_domain(p->model, d, &row));
    t->idle = row.idle_watts;
    for (size_t i = 0; i < p->load.ncurves; i++) {
        const struct heddle_energy_key *k = &p->keys.key[i];
        const double w = heddle_energy_watts(p->model, k->kernel, k->variant, k->device, k->bytes);

        if (!isnan(w))
            t->watts[i] = w * heddle_energy_share(p->model, d, k->device);
    }
    for (size_t i = 0; i < p->load.nplaces; i++)
        t->bytes[i] = heddle_energy_get_move(p->model) / 2 *
                      heddle_energy_share(p->model, d, p->load.place[i].name);
    return HEDDLE_OK;
}

static uint64_t shown(const struct heddle_energy_counter *c, double joules)
{
    const double uj = floor(joules > 0 ? joules / c->quantum_j : 0) * c->quantum_j * 1e6;
    const uint64_t x = uj < 9e18 ? (uint64_t)uj : UINT64_C(9000000000000000000);

    return c->wrap_uj > 0 ? x % c->wrap_uj : x;
}

static void sample(struct plant *p, size_t d, uint32_t lane, const struct heddle_energy_counter *c,
                   struct truth *t)
{
    const int64_t from = p->load.first_ns - c->margin_ns;
    const int64_t to = p->load.last_ns + c->margin_ns;
    const double period = (double)c->period_ns, lag = (double)c->lag_ns;
    double update = (double)from - period * heddle_rng_double(&p->rng);
    double joules = 0;
    bool is_last = false;

    t->from = (double)from - 2 * period - lag - (double)c->window_ns;
    for (int64_t due = from; !is_last; due += c->sample_ns) {
        int64_t now = due + (int64_t)(c->late * heddle_rng_double(&p->rng) * (double)c->sample_ns);

        is_last = now >= to;
        if (is_last)
            now = to;
        while (update + period <= (double)now) {
            double more;

            update += period;
            more = mean_watts(t, update - lag - c->sampled * period, update - lag,
                              (double)c->window_ns) *
                   period * 1e-9 * (1 + c->noise * gauss(&p->rng));
            joules += more > 0 ? more : 0;
        }
        p->event[p->nevents++] = (struct heddle_log_event){.t_ns = now,
                                                           .x = shown(c, joules),
                                                           .lane = lane,
                                                           .b = (uint16_t)d,
                                                           .kind = HEDDLE_LOG_POWER};
    }
}

/* ---- the log --------------------------------------------------------------- */

static heddle_status infos_make(struct plant *p, struct heddle_log_view *v)
{
    const struct heddle_log_view *old = heddle_log_get_view(p->log);
    struct heddle_energy_domain d = {.size = sizeof(d)};
    struct heddle_log_info *info =
        heddle_scratch_get(&p->mem, old->ninfos + p->ndomains, sizeof(*info));
    size_t n = 0;

    if (info == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < old->ninfos; i++)
        if (strncmp(old->infos[i].key, "energy.", 7) != 0)
            info[n++] = old->infos[i];
    for (size_t i = 0; i < p->ndomains; i++) {
        char *key = heddle_scratch_get(&p->mem, INFO_BYTES, 1);
        char *value = heddle_scratch_get(&p->mem, INFO_BYTES, 1);
        struct heddle_energy_counter c = {.size = sizeof(c)};
        struct heddle_text t;

        if (key == NULL || value == NULL)
            return HEDDLE_ENOMEM;
        HEDDLE_TRY(heddle_energy_get_domain(p->model, i, &d));
        HEDDLE_TRY(counter_of(p, d.device, &c));
        heddle_text_init(&t, key, INFO_BYTES);
        heddle_text_add(&t, "energy.domain.%zu", i);
        heddle_text_init(&t, value, INFO_BYTES);
        heddle_text_add(&t, "%s %s", d.name, d.device[0] != '\0' ? d.device : "-");
        if (c.wrap_uj > 0)
            heddle_text_add(&t, " %llu", (unsigned long long)c.wrap_uj);
        info[n++] = (struct heddle_log_info){key, value};
    }
    v->infos = info;
    v->ninfos = n;
    return HEDDLE_OK;
}

/* A domain or device with a blank in its name would be two words. */
static heddle_status check_names(const struct plant *p)
{
    struct heddle_energy_domain d = {.size = sizeof(d)};

    for (size_t i = 0; i < p->ndomains; i++) {
        HEDDLE_TRY(heddle_energy_get_domain(p->model, i, &d));
        if (strchr(d.name, ' ') != NULL || strchr(d.device, ' ') != NULL)
            return heddle_why(p->o->why, p->o->why_bytes, HEDDLE_EINVAL,
                              "domain '%.80s' or its device has a blank in its name: a log "
                              "cannot hold that",
                              d.name);
    }
    return HEDDLE_OK;
}

static heddle_status events_make(struct plant *p, uint32_t lane)
{
    const struct heddle_log_view *old = heddle_log_get_view(p->log);
    struct heddle_energy_domain d = {.size = sizeof(d)};
    struct heddle_energy_counter c = {.size = sizeof(c)};
    size_t n = old->nevents;

    for (size_t i = 0; i < p->ndomains; i++) {
        HEDDLE_TRY(heddle_energy_get_domain(p->model, i, &d));
        HEDDLE_TRY(counter_of(p, d.device, &c));
        if (count_samples(p, &c) >= MAX_SAMPLES)
            return heddle_why(p->o->why, p->o->why_bytes, HEDDLE_EINVAL,
                              "there would be more than %d samples", MAX_SAMPLES);
        if ((p->load.last_ns - p->load.first_ns + 2 * c.margin_ns) / c.period_ns >= MAX_UPDATES)
            return heddle_why(p->o->why, p->o->why_bytes, HEDDLE_EINVAL,
                              "the counter would be updated more than "
                              "%d times",
                              MAX_UPDATES);
        n += count_samples(p, &c);
    }
    p->event = heddle_scratch_get(&p->mem, n, sizeof(*p->event));
    if (p->event == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < old->nevents; i++)
        if (old->events[i].kind != HEDDLE_LOG_POWER)
            p->event[p->nevents++] = old->events[i];
    for (size_t i = 0; i < p->ndomains; i++) {
        struct truth t = {0};

        HEDDLE_TRY(heddle_energy_get_domain(p->model, i, &d));
        HEDDLE_TRY(counter_of(p, d.device, &c));
        HEDDLE_TRY(truth_make(p, i, &t));
        sample(p, i, lane, &c, &t);
    }
    return HEDDLE_OK;
}

static heddle_status write_log(struct plant *p, const char *path)
{
    struct heddle_log_view v = *heddle_log_get_view(p->log);
    const struct heddle_log_opts lo = {.size = sizeof(lo),
                                       .allocator = p->o->alloc,
                                       .why = p->o->why,
                                       .why_bytes = p->o->why_bytes};
    struct heddle_log_lane *lane = heddle_scratch_get(&p->mem, v.nlanes + 1, sizeof(*lane));

    if (lane == NULL)
        return HEDDLE_ENOMEM;
    if (v.nlanes > 0)
        memcpy(lane, v.lanes, v.nlanes * sizeof(*lane));
    lane[v.nlanes] = (struct heddle_log_lane){
        .id = (uint32_t)v.nlanes, .kind = HEDDLE_LOG_OTHER, .cpu = -1, .name = "energy"};
    HEDDLE_TRY(events_make(p, (uint32_t)v.nlanes));
    HEDDLE_TRY(infos_make(p, &v));
    v.lanes = lane;
    v.nlanes++;
    v.events = p->event;
    v.nevents = p->nevents;
    return heddle_log_compose(&v, path, &lo);
}

static heddle_status check(struct plant *p)
{
    struct heddle_energy_domain d = {.size = sizeof(d)};

    while (heddle_energy_get_domain(p->model, p->ndomains, &d) == HEDDLE_OK)
        p->ndomains++;
    if (p->ndomains == 0 || p->ndomains > UINT16_MAX)
        return heddle_why(p->o->why, p->o->why_bytes, HEDDLE_EINVAL,
                          p->ndomains == 0 ? "the model has no domain: nothing would be "
                                             "counted"
                                           : "the model has too many domains");
    return check_names(p);
}

heddle_status heddle_energy_plant_write(const heddle_log *log, const heddle_energy *model,
                                        const struct heddle_energy_plant_opts *opts,
                                        const char *path)
{
    struct heddle_energy_plant_opts o;
    struct plant p = {.log = log, .model = model, .o = &o};
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_plant_opts, &o, opts));
    if (log == NULL || model == NULL || path == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL,
                          "a log, a model and a file name are needed");
    p.mem = heddle_scratch_make(p.o->alloc);
    p.keys = heddle_energy_keys_make(p.o->alloc, heddle_energy_has_sizes(model));
    heddle_rng_seed(&p.rng, p.o->seed);
    st = check(&p);
    if (st == HEDDLE_OK)
        st = heddle_energy_load_make(&p.load, log, &p.keys);
    if (st == HEDDLE_OK && p.keys.n == 0)
        st = heddle_why(p.o->why, p.o->why_bytes, HEDDLE_EINVAL, "the log has no task that ran");
    if (st == HEDDLE_OK)
        st = write_log(&p, path);
    if (st == HEDDLE_ENOMEM)
        (void)heddle_why(p.o->why, p.o->why_bytes, st, "there is not enough memory");
    heddle_energy_load_drop(&p.load);
    heddle_energy_keys_drop(&p.keys);
    heddle_scratch_drop(&p.mem);
    return st;
}
