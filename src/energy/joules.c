/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * joules: from a model and a task graph to times and joules of each kind on each
 * type.
 *
 * States     workers of a type that run under a cap become a type of their own,
 *            with its factors on time and watts; what is left keeps the type as
 *            it was. So uneven caps need nothing else anywhere.
 * Memory     one scratch, in which the instance lies too.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/scratch.h"
#include "base/why.h"
#include "heddle/energy_bound.h"
#include "heddle/task.h"

struct make {
    const heddle_energy *model;
    const struct heddle_log_graph *log;
    const struct heddle_energy_state *state;
    size_t nstates;
    char *why;
    size_t cap;
    struct heddle_scratch m;
    struct heddle_energy_instance *out;

    uint32_t ntypes;
    uint32_t type_of[HEDDLE_BOUND_TYPES_MAX];
    uint32_t nworkers[HEDDLE_BOUND_TYPES_MAX];
    const char *name[HEDDLE_BOUND_TYPES_MAX]; /* of the cap; NULL: none */
    double time_factor[HEDDLE_BOUND_TYPES_MAX];
    double watts_factor[HEDDLE_BOUND_TYPES_MAX];
    double *watts; /* [nkinds x types of the log] NAN: none */
};

#define FAIL(st, ...) heddle_why(x->why, x->cap, st, __VA_ARGS__)

/* How well a row for `name` fits a type: by the type's name, or by what kind of
 * device it is. */
static unsigned fit_type(const char *name, const struct heddle_log_graph_type *type)
{
    const unsigned own = heddle_energy_fit_device(name, type->name);
    const unsigned kind = heddle_energy_fit_device(name, heddle_device_name(type->device));

    return own >= 2 ? own + 1 : kind >= 2 ? 2 : own;
}

/* The name under which the model knows a type. */
static const char *name_of(const struct make *x, const struct heddle_log_graph_type *type)
{
    struct heddle_energy_active a = {.size = sizeof(a)};
    unsigned best = 0;

    for (size_t i = 0; heddle_energy_get_active(x->model, i, &a) == HEDDLE_OK; i++) {
        const unsigned fit = fit_type(a.device, type);

        best = fit > best ? fit : best;
    }
    return best == 2 ? heddle_device_name(type->device) : type->name;
}

static heddle_status add_type(struct make *x, uint32_t r, uint32_t nworkers,
                              const struct heddle_energy_cap *cap)
{
    const uint32_t i = x->ntypes;

    if (i == HEDDLE_BOUND_TYPES_MAX)
        return FAIL(HEDDLE_EOVERFLOW,
                    "with their caps there are more than %d "
                    "types of workers",
                    HEDDLE_BOUND_TYPES_MAX);
    x->type_of[i] = r;
    x->nworkers[i] = nworkers;
    x->name[i] = cap != NULL ? cap->name : NULL;
    x->time_factor[i] = cap != NULL ? cap->time_factor : 1.0;
    x->watts_factor[i] = cap != NULL ? cap->watts_factor : 1.0;
    x->ntypes++;
    return HEDDLE_OK;
}

/* The cap of this name whose device fits best. */
static heddle_status find_cap(const struct make *x, const char *name,
                              const struct heddle_log_graph_type *type,
                              struct heddle_energy_cap *out)
{
    struct heddle_energy_cap c = {.size = sizeof(c)};
    unsigned best = 0;

    for (size_t i = 0; heddle_energy_get_cap(x->model, i, &c) == HEDDLE_OK; i++) {
        const unsigned fit = fit_type(c.device, type);

        if (strcmp(c.name, name) == 0 && fit > best) {
            best = fit;
            *out = c;
        }
    }
    return best > 0 ? HEDDLE_OK
                    : FAIL(HEDDLE_ENOENT, "the model has no cap '%s' for '%s'", name, type->name);
}

static heddle_status split(struct make *x, uint32_t r, bool *is_used)
{
    const struct heddle_log_graph_type *type = &x->log->types[r];
    uint32_t left = x->log->graph.nworkers[r];

    for (size_t i = 0; i < x->nstates; i++) {
        const struct heddle_energy_state *s = &x->state[i];
        const uint32_t n = s->nworkers == 0 ? left : s->nworkers;
        struct heddle_energy_cap cap = {.size = sizeof(cap)};

        if (fit_type(s->type, type) < 2)
            continue;
        is_used[i] = true;
        HEDDLE_TRY(find_cap(x, s->cap, type, &cap));
        if (n > left)
            return FAIL(HEDDLE_EINVAL, "'%s' has %u workers without a cap, not %u", type->name,
                        left, n);
        if (n == 0)
            continue;
        HEDDLE_TRY(add_type(x, r, n, &cap));
        left -= n;
    }
    if (left > 0 || x->log->graph.nworkers[r] == 0)
        HEDDLE_TRY(add_type(x, r, left, NULL));
    return HEDDLE_OK;
}

static heddle_status split_all(struct make *x)
{
    bool *is_used = heddle_scratch_get(&x->m, x->nstates, sizeof(*is_used));

    if (is_used == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < x->nstates; i++)
        if (x->state[i].type == NULL || x->state[i].cap == NULL)
            return FAIL(HEDDLE_EINVAL, "a state has no type or no cap");
    for (uint32_t r = 0; r < x->log->graph.ntypes; r++)
        HEDDLE_TRY(split(x, r, is_used));
    for (size_t i = 0; i < x->nstates; i++)
        if (!is_used[i])
            return FAIL(HEDDLE_EINVAL, "there is no type of workers '%s'", x->state[i].type);
    return HEDDLE_OK;
}

static heddle_status take_watts(struct make *x)
{
    const uint32_t r = x->log->graph.ntypes;

    x->watts = heddle_scratch_get(&x->m, (size_t)x->log->nkinds * r, sizeof(*x->watts));
    if (x->watts == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < r; i++) {
        const char *device = name_of(x, &x->log->types[i]);

        for (uint32_t k = 0; k < x->log->nkinds; k++)
            x->watts[(size_t)k * r + i] = heddle_energy_watts(x->model, x->log->kinds[k].name, NULL,
                                                              device, x->log->kinds[k].bytes);
    }
    return HEDDLE_OK;
}

static heddle_status fill(struct make *x, size_t rows, double *time, double *joules)
{
    const struct heddle_bound_graph *g = &x->log->graph;

    for (size_t row = 0; row < rows; row++) {
        const uint32_t kind = g->kind != NULL ? (uint32_t)row : x->log->kind[row];

        for (uint32_t i = 0; i < x->ntypes; i++) {
            const uint32_t r = x->type_of[i];
            const double p = g->time[row * g->ntypes + r];
            const double w = x->watts[(size_t)kind * g->ntypes + r];
            const size_t at = row * x->ntypes + i;

            time[at] = p * x->time_factor[i];
            if (!(p < INFINITY) || x->nworkers[i] == 0)
                continue;
            if (isnan(w))
                return FAIL(HEDDLE_ENOENT, "the model has no watts for kernel '%s' on '%s'",
                            x->log->kinds[kind].name, x->log->types[r].name);
            joules[at] = w * x->watts_factor[i] * time[at] * 1e-9;
        }
    }
    return HEDDLE_OK;
}

/* Of the tasks where and as long as they ran. */
static double run_joules(const struct make *x)
{
    const uint32_t r = x->log->graph.ntypes;
    double sum = 0.0;

    for (uint32_t t = 0; t < x->log->graph.ntasks; t++)
        sum += x->log->type[t] == HEDDLE_LOG_GRAPH_NONE
                   ? (double)NAN
                   : x->watts[(size_t)x->log->kind[t] * r + x->log->type[t]] * x->log->took_ns[t] *
                         1e-9;
    return sum;
}

static heddle_status make(struct make *x)
{
    const struct heddle_bound_graph *g = &x->log->graph;
    const size_t rows = g->kind != NULL ? g->nkinds : g->ntasks;
    struct heddle_energy_domain domain = {.size = sizeof(domain)};
    struct heddle_energy_instance *out;
    double *time, *joules;
    uint32_t *nworkers, *type_of;
    const char **cap;

    if (heddle_energy_get_domain(x->model, 0, &domain) != HEDDLE_OK)
        return FAIL(HEDDLE_ENOENT, "the model has no idle power: it has no "
                                   "domain");
    HEDDLE_TRY(split_all(x));
    HEDDLE_TRY(take_watts(x));
    out = x->out = heddle_scratch_get(&x->m, 1, sizeof(*out));
    time = heddle_scratch_get(&x->m, rows * x->ntypes, sizeof(*time));
    joules = heddle_scratch_get(&x->m, rows * x->ntypes, sizeof(*joules));
    nworkers = heddle_scratch_get(&x->m, x->ntypes, sizeof(*nworkers));
    type_of = heddle_scratch_get(&x->m, x->ntypes, sizeof(*type_of));
    cap = heddle_scratch_get(&x->m, x->ntypes, sizeof(*cap));
    if (out == NULL || time == NULL || joules == NULL || nworkers == NULL || type_of == NULL ||
        cap == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(fill(x, rows, time, joules));
    memcpy(nworkers, x->nworkers, x->ntypes * sizeof(*nworkers));
    memcpy(type_of, x->type_of, x->ntypes * sizeof(*type_of));
    memcpy(cap, x->name, x->ntypes * sizeof(*cap));
    out->size = sizeof(*out);
    out->graph = *g;
    out->graph.ntypes = x->ntypes;
    out->graph.nworkers = nworkers;
    out->graph.time = time;
    out->eg = (struct heddle_energy_graph){.size = sizeof(out->eg),
                                           .graph = &out->graph,
                                           .joules = joules,
                                           .idle = heddle_energy_idle_watts(x->model) * 1e-9};
    out->type_of = type_of;
    out->cap = cap;
    out->run_joules = run_joules(x);
    return HEDDLE_OK;
}

heddle_status heddle_energy_graph_create(const struct heddle_allocator *alloc,
                                         const heddle_energy *model,
                                         const struct heddle_log_graph *log,
                                         const struct heddle_energy_state *state, size_t nstates,
                                         struct heddle_energy_instance **out, char *why,
                                         size_t why_bytes)
{
    struct make state_of = {.model = model,
                            .log = log,
                            .state = state,
                            .nstates = nstates,
                            .why = why,
                            .cap = why_bytes,
                            .m = {.a = alloc}};
    struct make *x = &state_of;
    struct heddle_scratch *own;
    heddle_status st;

    if (model == NULL || log == NULL || out == NULL || (nstates > 0 && state == NULL))
        return FAIL(HEDDLE_EINVAL, "an argument is NULL");
    own = heddle_scratch_get(&x->m, 1, sizeof(*own));
    st = own == NULL ? HEDDLE_ENOMEM : make(x);
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&x->m);
        return st == HEDDLE_ENOMEM ? FAIL(st, "there is no memory") : st;
    }
    *own = x->m;
    x->out->own = own;
    *out = x->out;
    return HEDDLE_OK;
}

void heddle_energy_graph_destroy(struct heddle_energy_instance *instance)
{
    struct heddle_scratch m;

    if (instance == NULL)
        return;
    m = *(struct heddle_scratch *)instance->own;
    heddle_scratch_drop(&m);
}
