/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/energy: the energy model of a context: what tasks draw, what a joule is worth,
 * caps, and in virtual time the joules themselves.
 *
 * Objective  a weight w becomes one number, the time that a joule is worth:
 *            k = w / ((1 - w) P + w I) seconds, I: idle watts of all domains, P: I
 *            and what all workers draw at once. Then time + k * joules is least
 *            where (1 - w) T + w (I T + E) / P is, E: joules above idle. A slack
 *            leaves k to the scheduler.
 * Joules     of virtual time: watts are added to a domain when a kernel begins and
 *            taken away when it ends. In between they are constant, so the energy at
 *            any moment is exact; samples are written for the moments that have
 *            passed whenever watts change.
 * Invariants (1) without a model d->energy is NULL, and nothing here is called but
 *                heddle_dev_objective(), which says so
 *            (2) last_ns never goes back
 * Threads    creation of the context; shapes: any thread; joules: the device thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/sized.h"
#include "base/why.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/worker.h"
#include "drive/sim/sim.h"
#include "heddle/energy.h"
#include "sched/sched.h"
#include "trace/trace.h"

enum {
    PERIOD_NS = 10000000, /* of samples, virtual */
    GAP_SAMPLES = 1000,   /* at most while nothing changes */
};

#define WORTH_LEAST 1e-6 /* of P: what a second is worth at least */

struct energy_domain {
    char name[64];
    char device[32];
    double idle_watts;
    double watts; /* of what runs now, above idle */
    unsigned nrunning;
    double joules; /* above idle, up to last_ns */
};

struct dev_energy {
    heddle_energy *own; /* read from a file; or NULL */
    const heddle_energy *model;
    struct heddle_sched_energy objective;
    bool is_told; /* of a kernel without a row */
    struct heddle_energy_cap cap[DEV_CLASSES];
    double joules_per_byte;

    struct energy_domain *domain;
    unsigned ndomains;
    unsigned first[DEV_CLASSES], n[DEV_CLASSES]; /* domains of a class */
    uint64_t last_ns, sampled_ns;
};

/* How well a name of the model fits a class: by its name, else by its kind. */
static unsigned class_fit(const char *name, const char *cls, enum heddle_device kind)
{
    const unsigned fit = heddle_energy_fit_device(name, cls);

    if (fit > 1)
        return 4 + fit;
    if (heddle_energy_fit_device(name, heddle_device_name(kind)) > 1)
        return 2;
    return fit;
}

/* --- caps -------------------------------------------------------------------- */

/* One "DEVICE:NAME" of a list; false: there is no more. */
static bool cap_next(const char **list, char *device, char *name, size_t bytes)
{
    const char *p = *list, *end, *colon = NULL;

    if (p == NULL || *p == '\0')
        return false;
    end = p + strcspn(p, ",");
    for (const char *s = p; s < end; s++)
        if (*s == ':')
            colon = s;
    if (colon == NULL)
        colon = end;
    snprintf(device, bytes, "%.*s", (int)(colon - p), p);
    snprintf(name, bytes, "%.*s", colon < end ? (int)(end - colon - 1) : 0,
             colon < end ? colon + 1 : "");
    *list = *end == ',' ? end + 1 : end;
    return true;
}

/* The row of the model with this name that fits the class best. */
static bool cap_row(const struct dev_energy *e, const char *cls, enum heddle_device kind,
                    const char *name, struct heddle_energy_cap *out)
{
    struct heddle_energy_cap row = {.size = sizeof(row)};
    unsigned best = 0;

    for (size_t i = 0; heddle_energy_get_cap(e->model, i, &row) == HEDDLE_OK; i++) {
        const unsigned fit = class_fit(row.device, cls, kind);

        if (strcmp(row.name, name) == 0 && fit > best) {
            best = fit;
            *out = row;
        }
    }
    return best > 0;
}

heddle_status heddle_dev_energy_cap(struct heddle_devs *d, const char *list, const char *cls,
                                    enum heddle_device kind, char *model, size_t bytes, char *why,
                                    size_t cap)
{
    struct dev_energy *e = d->energy;
    char device[128], name[128];

    while (e != NULL && cap_next(&list, device, name, sizeof(device))) {
        if (name[0] == '\0' || class_fit(device, cls, kind) == 0)
            continue; /* cap_check() says so */
        if (!cap_row(e, cls, kind, name, &e->cap[d->ncls]))
            return heddle_why(why, cap, HEDDLE_EINVAL,
                              "the energy model has no cap '%.60s' of the device %.31s", name, cls);
        /* Times differ from those of equal devices: another type. */
        snprintf(model, bytes, "%.40s cap %.18s", d->plat->cls[d->nplat].model, name);
    }
    return HEDDLE_OK;
}

/* Every device that was named must be there. */
static heddle_status cap_check(const struct heddle_devs *d, const char *list, char *why, size_t cap)
{
    char device[128], name[128];

    if (list == NULL || list[0] == '\0')
        return HEDDLE_OK;
    if (!d->time->has_caps)
        return heddle_why(why, cap, HEDDLE_EINVAL,
                          "a power cap is simulated only: clocks of real "
                          "devices are not touched");
    if (d->energy == NULL)
        return heddle_why(why, cap, HEDDLE_EINVAL,
                          "a power cap needs an energy model, which says "
                          "what it changes");
    while (cap_next(&list, device, name, sizeof(device))) {
        bool is_there = false;

        if (device[0] == '\0' || name[0] == '\0')
            return heddle_why(why, cap, HEDDLE_EINVAL,
                              "a power cap is a device and a state, as in "
                              "cuda0:250W, and not '%.60s'",
                              device);
        for (unsigned c = 0; c < d->ncls; c++)
            is_there = is_there || class_fit(device, d->cls[c].name, d->cls[c].kind) != 0;
        if (!is_there)
            return heddle_why(why, cap, HEDDLE_EINVAL, "there is no device '%.60s' to cap", device);
    }
    return HEDDLE_OK;
}

double heddle_dev_energy_time(const struct heddle_devs *d, unsigned cls)
{
    return d->energy == NULL || d->energy->cap[cls].size == 0 ? 1 : d->energy->cap[cls].time_factor;
}

/* --- watts -------------------------------------------------------------------- */

static double energy_watts(const struct heddle_devs *d, const char *kernel, const char *variant,
                           unsigned cls, double bytes)
{
    const struct dev_energy *e = d->energy;
    const struct dev_class *c = &d->cls[cls];
    const uint64_t n = bytes < 1e18 ? (uint64_t)bytes : 0;
    double watts = heddle_energy_watts(e->model, kernel, variant, c->name, n);

    if (isnan(watts))
        watts = heddle_energy_watts(e->model, kernel, variant, heddle_device_name(c->kind), n);
    return e->cap[cls].size == 0 ? watts : watts * e->cap[cls].watts_factor;
}

void heddle_dev_energy_shape(struct heddle_devs *d, const struct heddle_exec *x,
                             const struct dev_shape *s, double *watts)
{
    const heddle_kernel *k = x->kinfo->kernel;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++)
        for (unsigned c = 0; c < d->ncls; c++) {
            const char *name = k->variants[v].name;

            watts[v * d->ncls + c] =
                k->variants[v].device != d->cls[c].kind
                    ? (double)NAN
                    : energy_watts(d, k->name,
                                   name != NULL ? name : heddle_device_name(d->cls[c].kind), c,
                                   s->bytes);
        }
}

double heddle_dev_energy_worth(const struct heddle_devs *d, const struct dev_shape *s, unsigned cls,
                               unsigned v)
{
    const double watts = s->watts[v * d->ncls + cls];

    return isnan(watts) ? 1
                        : 1 + 1e-9 * watts * heddle_load_rlx(&d->energy->objective.ns_per_joule);
}

struct heddle_sched_energy *heddle_dev_objective(struct heddle_devs *d)
{
    return d->weighs_energy ? &d->energy->objective : NULL;
}

/* --- the objective ---------------------------------------------------------------- */

/* The mean of the rows that hold for the class; those of its kind count as well
 * when none names it. */
static double class_watts(const struct heddle_devs *d, unsigned cls)
{
    const struct dev_class *c = &d->cls[cls];
    struct heddle_energy_active row = {.size = sizeof(row)};
    unsigned best = 0, n = 0;
    double sum = 0;

    for (size_t i = 0; heddle_energy_get_active(d->energy->model, i, &row) == HEDDLE_OK; i++) {
        const unsigned fit = class_fit(row.device, c->name, c->kind);

        if (fit > best) {
            best = fit;
            sum = 0;
            n = 0;
        }
        if (fit != 0 && fit == best) {
            sum += row.watts;
            n++;
        }
    }
    if (n == 0)
        return 0;
    return sum / n * (d->energy->cap[cls].size == 0 ? 1 : d->energy->cap[cls].watts_factor);
}

static void energy_weigh(struct heddle_devs *d, const struct heddle_ctx_opts *o)
{
    struct dev_energy *e = d->energy;
    const double w = o->energy_weight;
    double all, worth;

    e->objective.slack = o->energy_slack;
    e->objective.idle_watts = all = heddle_energy_idle_watts(e->model);
    for (unsigned c = 0; c < d->ncls; c++)
        all += class_watts(d, c) * d->cls[c].nworkers;
    worth = (1 - w) * all + w * e->objective.idle_watts;
    if (worth < WORTH_LEAST * all)
        worth = WORTH_LEAST * all;
    if (w > 0 && worth > 0)
        heddle_store_rlx(&e->objective.ns_per_joule, 1e9 * w / worth);
    d->weighs_energy = all > 0 && (w > 0 || o->energy_slack > 0);
}

/* --- creation ---------------------------------------------------------------------- */

heddle_status heddle_dev_energy_open(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                     char *why, size_t cap)
{
    const bool has_file = o->energy_model != NULL && o->energy_model[0] != '\0';
    struct dev_energy *e;

    if (o->energy_weight > 0 && o->energy_slack > 0)
        return heddle_why(why, cap, HEDDLE_EINVAL,
                          "an energy weight and an energy slack are two "
                          "ways to say it: give one of them");
    if (o->energy_object == NULL && !has_file) {
        if (o->energy_weight > 0 || o->energy_slack > 0)
            return heddle_why(why, cap, HEDDLE_EINVAL,
                              "an energy weight or slack needs an energy "
                              "model (HEDDLE_ENERGY_MODEL)");
        return HEDDLE_OK;
    }
    e = heddle_zalloc(&d->ctx->alloc, 1, sizeof(*e));
    if (e == NULL)
        return HEDDLE_ENOMEM;
    d->energy = e;
    e->model = o->energy_object;
    if (e->model == NULL) {
        HEDDLE_TRY(heddle_energy_read(&d->ctx->alloc, o->energy_model, &e->own, why, cap));
        e->model = e->own;
    }
    e->joules_per_byte = heddle_energy_get_move(e->model);
    return HEDDLE_OK;
}

static heddle_status energy_domains(struct heddle_devs *d)
{
    struct dev_energy *e = d->energy;
    struct heddle_energy_domain row = {.size = sizeof(row)};
    unsigned n = 0;

    while (heddle_energy_get_domain(e->model, n, &row) == HEDDLE_OK)
        n++;
    e->domain = heddle_zalloc(&d->ctx->alloc, n + 1, sizeof(*e->domain));
    if (e->domain == NULL)
        return HEDDLE_ENOMEM;
    e->ndomains = n + 1; /* the last one: "rest" */
    snprintf(e->domain[n].name, sizeof(e->domain[n].name), "rest");
    for (unsigned i = 0; heddle_energy_get_domain(e->model, i, &row) == HEDDLE_OK; i++) {
        struct energy_domain *m = &e->domain[i];

        snprintf(m->name, sizeof(m->name), "%.63s", row.name);
        snprintf(m->device, sizeof(m->device), "%.31s", row.device != NULL ? row.device : "");
        m->idle_watts = row.idle_watts;
    }
    return HEDDLE_OK;
}

/* The domains that count a class: those that fit best. They follow each other or
 * only the first ones count. */
static void energy_map(struct heddle_devs *d)
{
    struct dev_energy *e = d->energy;
    bool has_rest = false;

    for (unsigned c = 0; c < d->ncls; c++) {
        unsigned best = 0;

        e->first[c] = e->ndomains - 1;
        e->n[c] = 1;
        for (unsigned i = 0; i + 1 < e->ndomains; i++) {
            const unsigned fit = class_fit(e->domain[i].device, d->cls[c].name, d->cls[c].kind);

            if (fit > best) {
                best = fit;
                e->first[c] = i;
                e->n[c] = 1;
            } else if (fit != 0 && fit == best && e->first[c] + e->n[c] == i) {
                e->n[c]++;
            }
        }
        has_rest = has_rest || best == 0;
    }
    if (!has_rest)
        e->ndomains--; /* its room stays: see heddle_dev_energy_close() */
}

heddle_status heddle_dev_energy_start(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                      char *why, size_t cap)
{
    HEDDLE_TRY(cap_check(d, o->power_cap, why, cap));
    if (d->energy == NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(energy_domains(d));
    energy_map(d);
    energy_weigh(d, o);
    return HEDDLE_OK;
}

void heddle_dev_energy_close(struct heddle_devs *d)
{
    struct dev_energy *e = d->energy;
    struct heddle_energy_domain row = {.size = sizeof(row)};
    size_t n = 0;

    if (e == NULL)
        return;
    while (heddle_energy_get_domain(e->model, n, &row) == HEDDLE_OK)
        n++;
    heddle_free(&d->ctx->alloc, e->domain, (n + 1) * sizeof(*e->domain));
    heddle_energy_destroy(e->own);
    heddle_free(&d->ctx->alloc, e, sizeof(*e));
    d->energy = NULL;
}

/* --- joules of virtual time -------------------------------------------------------- */

static void energy_sample(struct heddle_devs *d, uint64_t at)
{
    const struct dev_energy *e = d->energy;
    const double s = 1e-9 * (double)at, since = 1e-9 * (double)(at - e->last_ns);
    struct heddle_trace_lane *lane = d->ctx->driver->lane;

    if (!heddle_trace_is_on(lane, HEDDLE_TRACE_DATA))
        return;
    for (unsigned i = 0; i < e->ndomains; i++) {
        const struct energy_domain *m = &e->domain[i];
        const double uj = 1e6 * (m->joules + m->watts * since + m->idle_watts * s);

        heddle_trace_event(
            lane, HEDDLE_TRACE_DATA, HEDDLE_LOG_POWER,
            &(struct heddle_trace_event){
                .t = at, .x = uj < 1e19 ? (uint64_t)(uj + 0.5) : UINT64_MAX, .b = (uint16_t)i});
    }
}

/* Time goes on to now. */
static void energy_pass(struct heddle_devs *d)
{
    struct dev_energy *e = d->energy;
    const uint64_t now = heddle_sim_now(d->sim);
    uint64_t step = PERIOD_NS, at;

    if (now <= e->last_ns)
        return;
    if ((now - e->sampled_ns) / step > GAP_SAMPLES)
        step *= (now - e->sampled_ns) / step / GAP_SAMPLES + 1;
    at = e->sampled_ns + step;
    if (at <= e->last_ns) /* the steps before were longer */
        at += ((e->last_ns - at) / step + 1) * step;
    for (; at <= now; at += step) {
        energy_sample(d, at);
        e->sampled_ns = at;
    }
    for (unsigned i = 0; i < e->ndomains; i++)
        e->domain[i].joules += e->domain[i].watts * 1e-9 * (double)(now - e->last_ns);
    e->last_ns = now;
}

/* Processors: workers are dealt to the domains of their class in a row. */
static struct energy_domain *energy_domain(struct heddle_devs *d, const struct dev_worker *dw)
{
    struct dev_energy *e = d->energy;

    return &e->domain[e->first[dw->cls] + dw->stream * e->n[dw->cls] / d->cls[dw->cls].nworkers];
}

void heddle_dev_energy_begin(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    const struct dev_shape *s = heddle_dev_shape(d, &dt->x);
    const unsigned cls = dt->worker->cls;
    struct energy_domain *m = energy_domain(d, dt->worker);

    energy_pass(d);
    dt->watts =
        s == NULL || dt->x.kinfo->nvariants == 0 ? 0 : s->watts[dt->variant * d->ncls + cls];
    if (isnan(dt->watts)) {
        dt->watts = 0;
        if (!d->energy->is_told)
            heddle_report(d->ctx, HEDDLE_WARNING,
                          "the energy model has no watts of kernel %s on %s: "
                          "its tasks count nothing",
                          dt->x.kinfo->kernel->name, d->cls[cls].name);
        d->energy->is_told = true;
    }
    m->watts += dt->watts;
    m->nrunning++;
}

void heddle_dev_energy_end(struct dev_task *dt)
{
    struct energy_domain *m = energy_domain(dt->ctx->dev, dt->worker);

    energy_pass(dt->ctx->dev);
    m->nrunning--;
    m->watts = m->nrunning == 0 ? 0 : m->watts - dt->watts; /* no rounding */
}

void heddle_dev_energy_moved(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    struct dev_energy *e = d->energy;
    const unsigned node = to != 0 ? to : from;
    unsigned i = 0;

    energy_pass(d);
    for (unsigned c = 0; c < d->ncls; c++)
        if (d->cls[c].node == node) {
            i = e->first[c];
            break;
        }
    e->domain[i].joules += e->joules_per_byte * (double)bytes;
}

void heddle_dev_energy_define(struct heddle_devs *d)
{
    const struct dev_energy *e = d->energy;
    char key[48], value[128];

    heddle_trace_define_info(d->ctx->trace, "energy.source", "model");
    for (unsigned i = 0; i < e->ndomains; i++) {
        int n;

        snprintf(key, sizeof(key), "energy.domain.%u", i);
        n = snprintf(value, sizeof(value), "%s", e->domain[i].name);
        for (int c = 0; c < n; c++)
            if (value[c] == ' ') /* it ends the name */
                value[c] = '_';
        if (e->domain[i].device[0] != '\0')
            snprintf(value + n, sizeof(value) - (size_t)n, " %s", e->domain[i].device);
        heddle_trace_define_info(d->ctx->trace, key, value);
    }
    energy_sample(d, 0);
}

void heddle_dev_energy_last(struct heddle_devs *d)
{
    energy_pass(d);
    if (d->energy->last_ns > d->energy->sampled_ns)
        energy_sample(d, d->energy->last_ns);
}

heddle_status heddle_ctx_get_energy(heddle_ctx *ctx, unsigned i, struct heddle_energy_use *out)
{
    struct heddle_energy_use u = {.size = sizeof(u)};
    const struct energy_domain *m;
    struct dev_energy *e;

    HEDDLE_CHECK(ctx != NULL);
    HEDDLE_TRY(HEDDLE_MAY_FILL(ctx, struct heddle_energy_use, out));
    e = ctx->dev != NULL && ctx->dev->counts_joules ? ctx->dev->energy : NULL;
    if (e == NULL || i >= e->ndomains)
        return HEDDLE_ENOENT;
    energy_pass(ctx->dev);
    m = &e->domain[i];
    memcpy(u.name, m->name, sizeof(u.name));
    memcpy(u.device, m->device, sizeof(u.device));
    u.active_joules = m->joules;
    u.idle_joules = m->idle_watts * 1e-9 * (double)e->last_ns;
    heddle_sized_put(out, &u, sizeof(u));
    return HEDDLE_OK;
}
