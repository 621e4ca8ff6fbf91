/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * times: types of workers, and what each kind of task takes there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "heddle/task.h"
#include "log_graph/log_graph.h"

#define NONE HEDDLE_LOG_GRAPH_NONE

enum { NOTES_MAX = 12 }; /* about times */

/* --- types ---------------------------------------------------------------- */

static char *copy_name(struct maker *m, const char *s, size_t bytes)
{
    char *to = heddle_scratch_get(m->own, bytes + 1, 1);

    if (to != NULL)
        memcpy(to, s, bytes);
    return to;
}

static heddle_status types_of_log(struct maker *m, struct heddle_log_graph_type *types,
                                  uint32_t *ntypes_out)
{
    if (m->ntypes > HEDDLE_BOUND_TYPES_MAX)
        return HEDDLE_LG_FAIL(&m->o, HEDDLE_EOVERFLOW, "the log has %u devices, more than %d",
                              (unsigned)m->ntypes, HEDDLE_BOUND_TYPES_MAX);
    for (uint32_t i = 0; i < m->ntypes; i++) {
        struct log_type *t = &m->types[i];

        t->to = i;
        types[i].name = copy_name(m, t->name, t->name_bytes);
        if (types[i].name == NULL)
            return HEDDLE_ENOMEM;
        types[i].device = t->device;
        types[i].nworkers = t->nlanes;
        types[i].node = t->node;
    }
    *ntypes_out = m->ntypes;
    return HEDDLE_OK;
}

/* Of the machine's types of that kind: the one of that name, or the first. */
static uint32_t find_type(const struct heddle_log_graph_type *types, uint32_t n,
                          const struct log_type *of)
{
    uint32_t best = NONE;

    for (uint32_t i = 0; i < n; i++) {
        if (types[i].device != of->device)
            continue;
        if (best == NONE)
            best = i;
        if (strlen(types[i].name) == of->name_bytes &&
            memcmp(types[i].name, of->name, of->name_bytes) == 0)
            return i;
    }
    return best;
}

static heddle_status type_of_class(struct maker *m, uint32_t i,
                                   const struct heddle_machine_class *c,
                                   struct heddle_log_graph_type *t)
{
    char name[2 * HEDDLE_MACHINE_NAME_MAX];
    struct heddle_text x;

    if (t->name == NULL) {
        heddle_text_init(&x, name, sizeof(name));
        heddle_text_str(&x, c->name);
        t->name = copy_name(m, name, x.len);
        t->device = c->kind;
        t->node = c->node;
        t->first_cls = i;
        if (t->name == NULL)
            return HEDDLE_ENOMEM;
    }
    t->nworkers += c->nworkers;
    return HEDDLE_OK;
}

static heddle_status types_of_machine(struct maker *m, struct heddle_log_graph_type *types,
                                      uint32_t *ntypes_out)
{
    struct heddle_machine_counts n = {.size = sizeof(n)};

    HEDDLE_TRY(heddle_machine_describe(m->o.machine, &n));
    if (n.types > HEDDLE_BOUND_TYPES_MAX)
        return HEDDLE_LG_FAIL(&m->o, HEDDLE_EOVERFLOW,
                              "the machine has more than %d types of workers",
                              HEDDLE_BOUND_TYPES_MAX);
    for (uint32_t i = 0; i < n.classes; i++) {
        struct heddle_machine_class c = {.size = sizeof(c)};

        HEDDLE_TRY(heddle_machine_get_class(m->o.machine, i, &c));
        if (c.type < n.types)
            HEDDLE_TRY(type_of_class(m, i, &c, &types[c.type]));
    }
    for (uint32_t i = 0; i < m->ntypes; i++)
        m->types[i].to = find_type(types, n.types, &m->types[i]);
    *ntypes_out = n.types;
    return HEDDLE_OK;
}

heddle_status heddle_lg_types(struct maker *m)
{
    struct heddle_log_graph_type *types =
        heddle_scratch_get(m->own, HEDDLE_BOUND_TYPES_MAX, sizeof(*types));
    uint32_t *nworkers = heddle_scratch_get(m->own, HEDDLE_BOUND_TYPES_MAX, sizeof(*nworkers));
    uint32_t *lane_type = heddle_scratch_get(m->own, m->v->nlanes, sizeof(*lane_type));
    struct heddle_log_graph *g = m->g;

    if (types == NULL || nworkers == NULL || lane_type == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(m->o.machine != NULL ? types_of_machine(m, types, &g->graph.ntypes)
                                    : types_of_log(m, types, &g->graph.ntypes));
    for (uint32_t i = 0; i < g->graph.ntypes; i++)
        nworkers[i] = types[i].nworkers;
    for (size_t i = 0; i < m->v->nlanes; i++)
        lane_type[i] = m->lane_log[i] == NONE ? NONE : m->types[m->lane_log[i]].to;
    for (uint32_t i = 0; i < m->n; i++)
        m->type[i] = m->types[m->type_log[i]].to;
    g->types = types;
    g->graph.nworkers = nworkers;
    g->lane_type = lane_type;
    return HEDDLE_OK;
}

/* --- what was seen -------------------------------------------------------- */

static int cmp_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* [kinds x log types] least or median time; NAN: never seen. */
static heddle_status read_seen(struct maker *m, bool is_median, double *seen)
{
    const size_t cells = (size_t)m->nkinds * m->ntypes;
    size_t *first = heddle_scratch_get(m->scratch, cells + 2, sizeof(*first));
    double *took = heddle_scratch_get(m->scratch, m->n, sizeof(*took));

    if (first == NULL || took == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < m->n; i++)
        first[(size_t)m->kind[i] * m->ntypes + m->type_log[i] + 2]++;
    for (size_t i = 2; i < cells + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t i = 0; i < m->n; i++)
        took[first[(size_t)m->kind[i] * m->ntypes + m->type_log[i] + 1]++] = m->took_ns[i];
    for (size_t i = 0; i < cells; i++) {
        const size_t n = first[i + 1] - first[i];
        double *at = took + first[i];

        seen[i] = (double)NAN;
        if (n == 0)
            continue;
        if (is_median)
            qsort(at, n, sizeof(*at), cmp_double);
        seen[i] = is_median ? at[(n - 1) / 2] : at[0];
        for (size_t k = 1; !is_median && k < n; k++)
            seen[i] = fmin(seen[i], at[k]);
    }
    return HEDDLE_OK;
}

/* --- what models say ------------------------------------------------------ */

struct ask {
    const struct heddle_log_graph_kind *kind;
    const char *device;
    double ns;
};

static heddle_status ask_info(void *user, const struct heddle_perf_info *i)
{
    struct ask *a = user;
    const size_t n = strlen(a->device);
    const bool is_same =
        a->kind->flops > 0 ? i->flops == a->kind->flops : i->bytes == (double)a->kind->bytes;

    if (is_same && strncmp(i->device, a->device, n) == 0 &&
        (i->device[n] == ':' || i->device[n] == '\0'))
        a->ns = fmin(a->ns, i->ns); /* of NAN and a number, the number */
    return HEDDLE_OK;
}

static double model_ns(const struct maker *m, uint32_t kind, uint32_t type)
{
    const struct heddle_log_graph_kind *k = &m->kinds[kind];
    const struct heddle_log_graph_type *t = &m->g->types[type];
    double ns = (double)NAN;

    if (m->o.machine != NULL)
        ns = heddle_machine_time(m->o.machine, k->name, t->first_cls, (double)k->bytes, k->flops);
    if (!(ns >= 0 && ns < (double)INFINITY) && m->o.perf != NULL) {
        struct ask a = {.kind = k,
                        .device = heddle_device_name((enum heddle_device)t->device),
                        .ns = (double)NAN};

        /* Nothing known of a kernel is no failure. */
        if (heddle_perf_show(m->o.perf, k->name, ask_info, &a) == HEDDLE_OK)
            ns = a.ns;
    }
    return ns >= 0 && ns < (double)INFINITY ? ns : (double)NAN;
}

/* --- what a kind takes ---------------------------------------------------- */

struct teller {
    struct maker *m;
    const double *seen;
    uint32_t nnotes, nleft;
};

static heddle_status tell(struct teller *t, uint32_t kind, uint32_t type, const char *what)
{
    const struct heddle_log_graph_kind *k = &t->m->kinds[kind];
    char of[48] = "";
    struct heddle_text x;

    if (t->nnotes == NOTES_MAX) {
        t->nleft++;
        return HEDDLE_OK;
    }
    t->nnotes++;
    heddle_text_init(&x, of, sizeof(of));
    if (k->bytes > 0) {
        heddle_text_str(&x, " of ");
        heddle_text_bytes(&x, k->bytes);
    }
    return heddle_notes_add(&t->m->notes, "assuming %.80s%s %s %.60s: never seen there", k->name,
                            of, what, t->m->g->types[type].name);
}

/* Whether the kernel has code for the device; true when the log does not say. */
static bool has_code(const struct maker *m, uint32_t kind, uint32_t type)
{
    const struct heddle_log_kernel *k = &m->v->kernels[m->kinds[kind].kernel];
    const uint32_t device = m->g->types[type].device;

    for (uint32_t i = 0; i < k->nvariants; i++)
        if (k->variants[i].device == device)
            return true;
    return k->nvariants == 0 || device == 0;
}

/* The least of what was seen on the type itself, or on others of its device. */
static double seen_ns(const struct teller *t, uint32_t kind, uint32_t type, bool is_itself)
{
    const struct maker *m = t->m;
    double ns = (double)NAN;

    for (uint32_t i = 0; i < m->ntypes; i++) {
        const bool is_it = m->types[i].to == type;

        if (is_itself ? is_it
                      : m->types[i].device != 0 && m->types[i].device == m->g->types[type].device)
            ns = fmin(ns, t->seen[(size_t)kind * m->ntypes + i]);
    }
    return ns;
}

static heddle_status kind_row(struct teller *t, uint32_t kind, double *row)
{
    struct maker *m = t->m;
    const bool is_model = m->o.durations == HEDDLE_DURATIONS_MODEL;

    for (uint32_t r = 0; r < m->g->graph.ntypes; r++) {
        double ns = is_model ? model_ns(m, kind, r) : seen_ns(t, kind, r, true);

        if (isnan(ns))
            ns = is_model ? seen_ns(t, kind, r, true) : model_ns(m, kind, r);
        if (!isnan(ns) && !has_code(m, kind, r) &&
            isnan(seen_ns(t, kind, r, true))) /* a rate is for any kernel */
            HEDDLE_TRY(tell(t, kind, r, "runs as predicted on"));
        if (isnan(ns)) {
            ns = seen_ns(t, kind, r, false);
            if (!isnan(ns))
                HEDDLE_TRY(tell(t, kind, r, "takes as long as elsewhere on"));
        }
        if (isnan(ns)) {
            ns = (double)INFINITY;
            if (has_code(m, kind, r))
                HEDDLE_TRY(tell(t, kind, r, "cannot run on"));
        }
        row[r] = ns;
    }
    return HEDDLE_OK;
}

static heddle_status task_rows(struct maker *m, const double *kinds)
{
    const uint32_t ntypes = m->g->graph.ntypes;
    size_t cells;
    double *rows;

    if (!heddle_mul(&cells, m->n, ntypes))
        return HEDDLE_ENOMEM;
    rows = heddle_scratch_get(m->own, cells, sizeof(*rows));
    if (rows == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        const double *of = kinds + (size_t)m->kind[i] * ntypes;

        for (uint32_t r = 0; r < ntypes; r++)
            rows[i * ntypes + r] = r == m->type[i] ? m->took_ns[i] : of[r];
    }
    m->g->graph.time = rows;
    return HEDDLE_OK;
}

static heddle_status check_rows(struct maker *m, const double *time)
{
    const uint32_t ntypes = m->g->graph.ntypes;

    for (uint32_t k = 0; k < m->nkinds; k++) {
        bool is_ok = false;

        for (uint32_t r = 0; r < ntypes; r++)
            is_ok |= m->g->graph.nworkers[r] > 0 && time[(size_t)k * ntypes + r] < (double)INFINITY;
        if (!is_ok)
            return HEDDLE_LG_FAIL(&m->o, HEDDLE_EINVAL,
                                  "kernel %.80s can run on no worker of the machine: neither the "
                                  "log nor the machine has a time for it",
                                  m->kinds[k].name);
    }
    return HEDDLE_OK;
}

heddle_status heddle_lg_times(struct maker *m)
{
    const bool is_median =
        m->o.durations == HEDDLE_DURATIONS_MEDIAN || m->o.durations == HEDDLE_DURATIONS_MODEL;
    struct heddle_log_graph *g = m->g;
    struct teller t = {.m = m};
    size_t cells, seen_cells;
    double *time, *seen;

    if (!heddle_mul(&cells, m->nkinds, g->graph.ntypes) ||
        !heddle_mul(&seen_cells, m->nkinds, m->ntypes))
        return HEDDLE_ENOMEM;
    time = heddle_scratch_get(m->own, cells, sizeof(*time));
    seen = heddle_scratch_get(m->scratch, seen_cells, sizeof(*seen));
    if (time == NULL || seen == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(read_seen(m, is_median, seen));
    t.seen = seen;
    for (uint32_t k = 0; k < m->nkinds; k++)
        HEDDLE_TRY(kind_row(&t, k, time + (size_t)k * g->graph.ntypes));
    if (t.nleft > 0)
        HEDDLE_TRY(heddle_notes_add(&m->notes, "and %u more such assumptions", t.nleft));
    HEDDLE_TRY(check_rows(m, time));
    g->kind_time = time;
    if (m->o.durations == HEDDLE_DURATIONS_MEASURED)
        return task_rows(m, time);
    g->graph.nkinds = m->nkinds;
    g->graph.kind = m->kind;
    g->graph.time = time;
    return HEDDLE_OK;
}
