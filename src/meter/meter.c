/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meter: all sources of the table as one list of domains.
 *
 * Structure  a source keeps an instance of its plug-in and its domains; the i-th
 *            domain of the meter is found by counting through the sources.
 * Invariants (1) names of domains are unique: what an earlier source gives is not
 *                taken again
 * Threads    one at a time.
 */
#include "meter/meter.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/sized.h"
#include "base/text.h"
#include "heddle_config.h"

#define HEDDLE_METER(name, on)                                                                     \
    HEDDLE_IF(on, extern const struct heddle_meter_ops heddle_meter_##name;)
#include "meter/meter.def"
#undef HEDDLE_METER

const struct heddle_meter_ops *const heddle_meter_table[] = {
#define HEDDLE_METER(name, on) HEDDLE_IF(on, &heddle_meter_##name, )
#include "meter/meter.def"
#undef HEDDLE_METER
    NULL,
};

struct domain {
    char name[HEDDLE_METER_NAME];
    char device[HEDDLE_METER_NAME];
    size_t slot; /* the plug-in's number */
    struct heddle_follow follow;
    uint64_t nread, ndropped;
    char why[HEDDLE_METER_WHY];
};

struct source {
    const struct heddle_meter_ops *ops;
    void *self;
    struct domain *domain;
    size_t ndomains, cap;
    char why[HEDDLE_METER_WHY];
};

struct heddle_meter {
    struct heddle_allocator alloc;
    struct source *source;
    size_t nsources;
};

/* --- opening ---------------------------------------------------------------- */

static bool has_domain(const heddle_meter *m, const char *name)
{
    for (size_t s = 0; s < m->nsources; s++)
        for (size_t i = 0; i < m->source[s].ndomains; i++)
            if (strcmp(m->source[s].domain[i].name, name) == 0)
                return true;
    return false;
}

static heddle_status domain_take(struct source *s, struct domain *d)
{
    uint64_t raw = 0;

    HEDDLE_TRY(s->ops->read(s->self, d->slot, &raw, d->why));
    return heddle_follow_take(&d->follow, raw, heddle_clock_ns(), d->why) ? HEDDLE_OK
                                                                          : HEDDLE_AGAIN;
}

static heddle_status source_keep(heddle_meter *m, struct source *s,
                                 const struct heddle_meter_found *found, size_t n)
{
    if (n == 0)
        return HEDDLE_OK;
    s->domain = heddle_zalloc(&m->alloc, n, sizeof(*s->domain));
    if (s->domain == NULL)
        return HEDDLE_ENOMEM;
    s->cap = n;
    for (size_t i = 0; i < n; i++) {
        struct domain *d = &s->domain[s->ndomains];

        if (has_domain(m, found[i].name))
            continue; /* invariant (1) */
        memcpy(d->name, found[i].name, sizeof(d->name));
        memcpy(d->device, found[i].device, sizeof(d->device));
        d->slot = i;
        d->follow.range = found[i].range_uj;
        /* Energy counts from here; a bad first reading is made up for later. */
        (void)domain_take(s, d);
        s->ndomains++;
    }
    if (s->ndomains == 0)
        heddle_meter_say(s->why, "another source gives the same already");
    return HEDDLE_OK;
}

static heddle_status source_open(heddle_meter *m, struct source *s,
                                 const struct heddle_meter_ops *ops,
                                 const struct heddle_meter_env *env,
                                 struct heddle_meter_found *found)
{
    size_t n = 0;

    s->ops = ops;
    s->self = heddle_zalloc(&m->alloc, 1, ops->instance_size);
    if (s->self == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(ops->open(s->self, env, found, HEDDLE_METER_MOST, &n, s->why));
    return source_keep(m, s, found, n);
}

heddle_status heddle_meter_create(const struct heddle_meter_env *env,
                                  const struct heddle_meter_ops *const *table, heddle_meter **out)
{
    struct heddle_meter_env e = *env;
    struct heddle_meter_found *found;
    heddle_status st = HEDDLE_OK;
    size_t n = 0;
    heddle_meter *m;

    if (table == NULL)
        table = heddle_meter_table;
    if (e.alloc == NULL)
        e.alloc = &heddle_allocator_default;
    while (table[n] != NULL)
        n++;
    m = heddle_zalloc(e.alloc, 1, sizeof(*m));
    if (m == NULL)
        return HEDDLE_ENOMEM;
    m->alloc = *e.alloc;
    found = heddle_zalloc(e.alloc, HEDDLE_METER_MOST, sizeof(*found));
    m->source = heddle_zalloc(e.alloc, n, sizeof(*m->source));
    m->nsources = m->source != NULL ? n : 0;
    if (found == NULL || m->nsources != n)
        st = HEDDLE_ENOMEM;
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++)
        st = source_open(m, &m->source[i], table[i], &e, found);
    heddle_free(e.alloc, found, HEDDLE_METER_MOST * sizeof(*found));
    if (st == HEDDLE_OK)
        *out = m;
    else
        heddle_meter_close(m);
    return st;
}

void heddle_meter_close(heddle_meter *m)
{
    struct heddle_allocator a;

    if (m == NULL)
        return;
    a = m->alloc;
    for (size_t i = 0; i < m->nsources; i++) {
        struct source *s = &m->source[i];

        if (s->self != NULL) {
            s->ops->close(s->self);
            heddle_free(&a, s->self, s->ops->instance_size);
        }
        heddle_free(&a, s->domain, s->cap * sizeof(*s->domain));
    }
    heddle_free(&a, m->source, m->nsources * sizeof(*m->source));
    heddle_free(&a, m, sizeof(*m));
}

/* --- asking ----------------------------------------------------------------- */

static struct domain *domain_find(const heddle_meter *m, size_t i, size_t *source_out)
{
    for (size_t s = 0; s < m->nsources; s++) {
        if (i < m->source[s].ndomains) {
            *source_out = s;
            return &m->source[s].domain[i];
        }
        i -= m->source[s].ndomains;
    }
    return NULL;
}

size_t heddle_meter_ndomains(const heddle_meter *m)
{
    size_t n = 0;

    for (size_t s = 0; s < m->nsources; s++)
        n += m->source[s].ndomains;
    return n;
}

const char *heddle_meter_explain(const heddle_meter *m, char *out, size_t cap)
{
    struct heddle_text t;

    heddle_text_init(&t, out, cap);
    for (size_t s = 0; heddle_meter_ndomains(m) == 0 && s < m->nsources; s++)
        heddle_text_add(&t, "%s%s: %s", s == 0 ? "" : "; ", m->source[s].ops->name,
                        m->source[s].why);
    return out;
}

heddle_status heddle_meter_get_source(const heddle_meter *m, size_t i,
                                      struct heddle_meter_source *out)
{
    struct heddle_meter_source r;
    const struct source *s;

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_meter_source, out, NULL, 0));
    if (i >= m->nsources)
        return HEDDLE_ENOENT;
    s = &m->source[i];
    r = (struct heddle_meter_source){.size = sizeof(r),
                                     .name = s->ops->name,
                                     .help = s->ops->help,
                                     .period_ns = s->ops->period_ns,
                                     .ndomains = s->ndomains,
                                     .why = s->why};
    heddle_sized_put(out, &r, sizeof(r));
    return HEDDLE_OK;
}

heddle_status heddle_meter_get_domain(const heddle_meter *m, size_t i,
                                      struct heddle_meter_domain *out)
{
    struct heddle_meter_domain r;
    const struct domain *d;
    size_t s = 0;

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_meter_domain, out, NULL, 0));
    d = domain_find(m, i, &s);
    if (d == NULL)
        return HEDDLE_ENOENT;
    r = (struct heddle_meter_domain){.size = sizeof(r),
                                     .name = d->name,
                                     .device = d->device,
                                     .source = s,
                                     .read = d->nread,
                                     .dropped = d->ndropped,
                                     .why = d->why};
    heddle_sized_put(out, &r, sizeof(r));
    return HEDDLE_OK;
}

heddle_status heddle_meter_read(heddle_meter *m, size_t i, struct heddle_meter_sample *out)
{
    struct heddle_meter_sample r;
    struct domain *d;
    heddle_status st;
    size_t s = 0;

    HEDDLE_CHECK(m != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_meter_sample, out, NULL, 0));
    d = domain_find(m, i, &s);
    if (d == NULL)
        return HEDDLE_ENOENT;
    st = domain_take(&m->source[s], d);
    if (st != HEDDLE_OK) {
        d->ndropped++;
        return st;
    }
    d->nread++;
    r = (struct heddle_meter_sample){
        .size = sizeof(r), .microjoules = d->follow.sum, .has_gap = d->follow.has_gap};
    heddle_sized_put(out, &r, sizeof(r));
    d->follow.has_gap = false;
    return HEDDLE_OK;
}
