/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The samples of a log as steps of energy.
 *
 * Wraps      a reading below the one before is a wrap if the log says where the
 *            counter wraps and the energy is then a usual one; else it went back,
 *            and counting begins anew there. If the next reading is above the
 *            one before, only the reading in between was wrong.
 * Starts     a counter that is updated less often than it is read was last updated
 *            some time before the first reading: the first step there has energy
 *            of before, and is left out.
 * Jumps      a step of JUMP times the median power is not believed.
 */
#include "energy/series.h"

#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "base/text.h"
#include "heddle/energy.h"

enum { MAX_DOMAINS = 65536, JUMP = 100, FEW = 8, SLOW = 8 };

#define MICRO 1e-6

/* ---- what the log says of a domain ------------------------------------------ */

static const char *info_find(const struct heddle_log_view *v, unsigned domain)
{
    char key[64];
    struct heddle_text t;

    heddle_text_init(&t, key, sizeof(key));
    heddle_text_add(&t, "energy.domain.%u", domain);
    for (size_t i = 0; i < v->ninfos; i++)
        if (strcmp(v->infos[i].key, key) == 0)
            return v->infos[i].value;
    return NULL;
}

/* Copies the next word of *s; "" at the end. NULL: no memory. */
static char *word(struct heddle_scratch *mem, const char **s)
{
    size_t n;
    char *to;

    *s += strspn(*s, " ");
    n = strcspn(*s, " ");
    to = heddle_scratch_get(mem, n + 1, 1);
    if (to != NULL && n > 0)
        memcpy(to, *s, n);
    *s += n;
    if (to != NULL && n > HEDDLE_ENERGY_NAME_MAX)
        to[HEDDLE_ENERGY_NAME_MAX] = '\0';
    return to;
}

static heddle_status describe(struct heddle_scratch *mem, const struct heddle_log_view *v,
                              unsigned domain, struct heddle_energy_series *s, uint64_t *wrap_uj)
{
    const char *value = info_find(v, domain);
    char *name, *device;
    const char *last;
    size_t n;

    *wrap_uj = 0;
    if (value == NULL || value[strspn(value, " ")] == '\0') {
        struct heddle_text t;

        name = heddle_scratch_get(mem, 32, 1);
        if (name == NULL)
            return HEDDLE_ENOMEM;
        heddle_text_init(&t, name, 32);
        heddle_text_add(&t, "domain-%u", domain);
        s->name = name;
        s->device = "*"; /* the log does not say whose tasks these are */
        return HEDDLE_OK;
    }
    name = word(mem, &value);
    /* The device may have blanks; a number behind it is where the counter wraps. */
    value += strspn(value, " ");
    last = strrchr(value, ' ');
    n = strlen(value);
    if (last != NULL && heddle_parse_u64(last + 1, wrap_uj) == HEDDLE_OK)
        n = (size_t)(last - value);
    else
        *wrap_uj = 0;
    while (n > 0 && value[n - 1] == ' ')
        n--;
    if (n > HEDDLE_ENERGY_NAME_MAX)
        n = HEDDLE_ENERGY_NAME_MAX;
    device = heddle_scratch_get(mem, n + 1, 1);
    if (name == NULL || device == NULL)
        return HEDDLE_ENOMEM;
    if (n > 0)
        memcpy(device, value, n);
    s->name = name;
    s->device = device;
    return HEDDLE_OK;
}

/* ---- steps ----------------------------------------------------------------- */

static double watts(const struct heddle_energy_step *s)
{
    return s->joules / ((double)(s->to - s->from) * 1e-9);
}

/* The bits of a double >= 0 are in its order. */
static uint64_t double_key(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static heddle_status median_watts(const struct heddle_allocator *a,
                                  const struct heddle_energy_series *s, double *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(a);
    struct heddle_pair *p = heddle_scratch_get(&tmp, 2 * s->nsteps, sizeof(*p));

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->nsteps; i++)
        p[i] = (struct heddle_pair){double_key(watts(&s->step[i])), i};
    heddle_sort_pairs(p, p + s->nsteps, s->nsteps);
    *out = watts(&s->step[p[s->nsteps / 2].idx]);
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

/* What is known of a step while it is not sure to stay. */
struct mark {
    bool is_wrap, is_first;
};

/* Is it updated less often than it is read? */
static bool is_slow(const struct heddle_energy_series *s, size_t nsame)
{
    return nsame * SLOW >= s->nsamples;
}

/* Leaves out first steps of counters that are slow. */
static void drop_starts(struct heddle_energy_series *s, struct mark *mark, size_t nsame)
{
    size_t kept = 0;

    if (!is_slow(s, nsame))
        return;
    for (size_t i = 0; i < s->nsteps; i++) {
        if (mark[i].is_first) {
            s->nwraps -= mark[i].is_wrap;
            continue;
        }
        mark[kept] = mark[i];
        s->step[kept++] = s->step[i];
    }
    s->nsteps = kept;
}

/* Leaves out steps that no machine makes. */
static heddle_status drop_jumps(const struct heddle_allocator *a, struct heddle_energy_series *s,
                                const struct mark *mark)
{
    double usual = 0;
    size_t kept = 0;

    if (s->nsteps < FEW)
        return HEDDLE_OK;
    HEDDLE_TRY(median_watts(a, s, &usual));
    for (size_t i = 0; i < s->nsteps; i++) {
        if (watts(&s->step[i]) > JUMP * usual) {
            s->njumps += !mark[i].is_wrap;
            s->nback += mark[i].is_wrap;
            s->nwraps -= mark[i].is_wrap;
            continue;
        }
        s->step[kept++] = s->step[i];
    }
    s->nsteps = kept;
    return HEDDLE_OK;
}

/* What was read last, and when the counter last changed. */
struct reader {
    uint64_t uj, wrap_uj;
    int64_t at, seen;   /* first and last reading of that */
    bool has, is_start; /* nothing was added up since the start */
    bool went_back;     /* with the last reading; this was before: */
    uint64_t high_uj;
    int64_t high_at;
    size_t nsame; /* readings that did not change */
};

static void reading(struct heddle_energy_series *s, struct reader *r,
                    const struct heddle_log_event *e, struct mark *mark)
{
    const bool is_back = r->has && e->x < r->uj;
    const bool wraps = is_back && r->wrap_uj > r->uj;
    uint64_t up = e->x - r->uj;

    s->nsamples++;
    if (r->has && e->x == r->uj && e->c == 0) {
        r->nsame++;
        r->seen = e->t_ns;
        return;
    }
    if (r->went_back && e->c == 0 && e->x >= r->high_uj) {
        r->uj = r->high_uj;
        r->at = r->seen = r->high_at;
        r->is_start = false;
        up = e->x - r->uj;
    }
    r->went_back = is_back && !wraps && e->c == 0;
    r->high_uj = r->uj;
    r->high_at = r->at;
    if (!r->has || e->c != 0 || (is_back && !wraps) || e->t_ns <= r->at) {
        s->ngaps += r->has && e->c != 0;
        s->nback += is_back && !wraps && e->c == 0;
        r->is_start = true;
    } else {
        if (wraps)
            up = e->x + (r->wrap_uj - r->uj);
        s->nwraps += wraps;
        mark[s->nsteps] = (struct mark){wraps, r->is_start};
        r->is_start = false;
        s->step[s->nsteps++] =
            (struct heddle_energy_step){r->at, e->t_ns, (double)up * MICRO, r->seen};
    }
    r->has = true;
    r->uj = e->x;
    r->at = r->seen = e->t_ns;
}

static bool is_sample(const struct heddle_log_event *e)
{
    return e->kind == HEDDLE_LOG_POWER && e->t_ns != HEDDLE_LOG_NONE;
}

heddle_status heddle_energy_series_get(struct heddle_scratch *mem, const heddle_log *log,
                                       struct heddle_energy_series **out, size_t *n_out)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_scratch tmp = heddle_scratch_make(mem->a);
    uint32_t *count = heddle_scratch_get(&tmp, MAX_DOMAINS, sizeof(*count));
    struct heddle_energy_series *series = NULL;
    heddle_status st = count == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
    size_t n = 0, k = 0;

    for (size_t i = 0; i < v->nevents && st == HEDDLE_OK; i++)
        if (is_sample(&v->events[i]))
            n += count[v->events[i].b]++ == 0;
    series = heddle_scratch_get(mem, n, sizeof(*series));
    if (series == NULL)
        st = HEDDLE_ENOMEM;
    for (unsigned d = 0; d < MAX_DOMAINS && k < n && st == HEDDLE_OK; d++) {
        struct heddle_energy_series *s = &series[k];
        struct reader r = {0};
        struct mark *mark;

        if (count[d] == 0)
            continue;
        k++;
        s->step = heddle_scratch_get(mem, count[d], sizeof(*s->step));
        mark = heddle_scratch_get(&tmp, count[d], sizeof(*mark));
        if (s->step == NULL || mark == NULL) {
            st = HEDDLE_ENOMEM;
            break;
        }
        st = describe(mem, v, d, s, &r.wrap_uj);
        for (size_t i = 0; i < v->nevents && st == HEDDLE_OK; i++)
            if (is_sample(&v->events[i]) && v->events[i].b == d)
                reading(s, &r, &v->events[i], mark);
        if (st == HEDDLE_OK) {
            drop_starts(s, mark, r.nsame);
            st = drop_jumps(mem->a, s, mark);
            if (is_slow(s, r.nsame))
                heddle_energy_find_updates(s);
        }
    }
    heddle_scratch_drop(&tmp);
    *out = series;
    *n_out = n;
    return st;
}
