/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy/log: sums of the energy counters of a log.
 *
 * Samples    events of power, docs/formats/log.md: microjoules so far; c != 0: what
 *            was used since the sample before is not known. The info
 *            "energy.domain.N" is "NAME DEVICE", and of a counter that begins anew
 *            "NAME DEVICE MICROJOULES".
 */
#include "energy/log.h"

#include <string.h>

#include "base/text.h"

/* A domain while its samples are read. */
struct reading {
    int64_t from, to;
    uint64_t wrap; /* the counter begins anew there; 0: never */
    uint64_t x;    /* of the latest sample */
    int64_t t;
    uint64_t since_x; /* of the latest one that differed from that before */
    int64_t since_t;
};

static const char *info(const struct heddle_log_view *v, const char *key)
{
    for (size_t i = 0; i < v->ninfos; i++)
        if (strcmp(v->infos[i].key, key) == 0)
            return v->infos[i].value;
    return NULL;
}

const char *energy_log_why(const struct heddle_log_view *v)
{
    return info(v, "energy");
}

static void keep(char to[ENERGY_METER_NAME], const char *s, size_t n)
{
    struct heddle_text t;

    heddle_text_init(&t, to, ENERGY_METER_NAME);
    heddle_text_mem(&t, s, n);
}

/* Returns where the counter begins anew; 0: never. */
static uint64_t describe(const struct heddle_log_view *v, uint32_t id, struct energy_meter *m)
{
    char key[32];
    struct heddle_text t;
    const char *s, *last;
    uint64_t wrap = 0;
    size_t n;

    memset(m, 0, sizeof(*m));
    m->id = id;
    heddle_text_init(&t, key, sizeof(key));
    heddle_text_add(&t, "energy.domain.%u", (unsigned)id);
    s = info(v, key);
    n = s == NULL ? 0 : strcspn(s, " ");
    if (n == 0) {
        heddle_text_init(&t, m->name, sizeof(m->name));
        heddle_text_add(&t, "domain-%u", (unsigned)id);
        return 0;
    }
    keep(m->name, s, n);
    s += n + (s[n] == ' ');
    last = strrchr(s, ' ');
    n = strlen(s);
    if (last != NULL && heddle_parse_u64(last + 1, &wrap) == HEDDLE_OK)
        n = (size_t)(last - s);
    if (n != 1 || s[0] != '-')
        keep(m->device, s, n);
    return wrap;
}

/* Watts from microjoules and nanoseconds. */
static double watts(uint64_t uj, int64_t ns)
{
    return (double)uj * 1e3 / (double)ns;
}

/* The part of [t0, t1] that lies in [from, to]; t0 < t1. */
static double part_of(int64_t t0, int64_t t1, int64_t from, int64_t to)
{
    const int64_t a = t0 > from ? t0 : from, b = t1 < to ? t1 : to;

    return b > a ? (double)(b - a) / (double)(t1 - t0) : 0;
}

static void take(struct energy_meter *m, struct reading *r, const struct heddle_log_event *e)
{
    const bool is_back = e->x < r->x;
    uint64_t used = 1; /* begins anew */

    if (m->nsamples++ > 0 && e->t_ns <= r->t)
        return;
    if (m->nsamples > 1 && (e->c & HEDDLE_LOG_POWER_GAP) == 0 && (!is_back || r->wrap > r->x)) {
        const double part = part_of(r->t, e->t_ns, r->from, r->to);

        used = is_back ? r->wrap - r->x + e->x : e->x - r->x;
        m->joules += part * 1e-6 * (double)used;
        m->seconds += part * 1e-9 * (double)(e->t_ns - r->t);
        r->since_x += used;
        if (used > 0 && part > 0) {
            const double w = watts(r->since_x, e->t_ns - r->since_t);

            m->peak = w > m->peak ? w : m->peak;
        }
    }
    if (used > 0) {
        r->since_x = 0;
        r->since_t = e->t_ns;
    }
    r->x = e->x;
    r->t = e->t_ns;
}

/* There are few. */
static void sort(struct energy_meter *m, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && m[k].id < m[k - 1].id; k--) {
            const struct energy_meter x = m[k];

            m[k] = m[k - 1];
            m[k - 1] = x;
        }
}

size_t energy_meters(const struct heddle_log_view *v, int64_t from, int64_t to,
                     struct energy_meter out[ENERGY_METERS])
{
    struct reading r[ENERGY_METERS];
    size_t n = 0;

    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];
        size_t k = 0;

        if (e->kind != HEDDLE_LOG_POWER)
            continue;
        while (k < n && out[k].id != e->b)
            k++;
        if (k == ENERGY_METERS)
            continue;
        if (k == n) {
            r[k] = (struct reading){.wrap = describe(v, e->b, &out[k]), .from = from, .to = to};
            n++;
        }
        take(&out[k], &r[k], e);
    }
    sort(out, n);
    return n;
}
