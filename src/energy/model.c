/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The energy model: rows of idle power, active power and caps.
 *
 * How        three arrays that grow; names are kept in a scratch of the model, so
 *            a row that is replaced leaves its old names there until the end.
 * Lookup     a row is ranked by how well its device, kernel, variant and bytes
 *            fit, in this order; rows of other bytes by their distance.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/scratch.h"
#include "base/sized.h"
#include "heddle/energy.h"

struct heddle_energy {
    const struct heddle_allocator *alloc;
    struct heddle_scratch names;
    struct heddle_energy_domain *domain;
    struct heddle_energy_active *active;
    struct heddle_energy_cap *cap;
    size_t ndomains, nactive, ncaps;
    size_t domain_room, active_room, cap_room;
    double move;
};

heddle_status heddle_energy_create(const struct heddle_allocator *alloc, heddle_energy **out)
{
    heddle_energy *e;

    if (out == NULL)
        return HEDDLE_EINVAL;
    e = heddle_zalloc(alloc, 1, sizeof(*e));
    if (e == NULL)
        return HEDDLE_ENOMEM;
    e->alloc = alloc;
    e->names = heddle_scratch_make(alloc);
    *out = e;
    return HEDDLE_OK;
}

void heddle_energy_destroy(heddle_energy *e)
{
    if (e == NULL)
        return;
    heddle_free(e->alloc, e->domain, e->domain_room * sizeof(*e->domain));
    heddle_free(e->alloc, e->active, e->active_room * sizeof(*e->active));
    heddle_free(e->alloc, e->cap, e->cap_room * sizeof(*e->cap));
    heddle_scratch_drop(&e->names);
    heddle_free(e->alloc, e, sizeof(*e));
}

static bool is_name(const char *s)
{
    return s != NULL && s[0] != '\0' && strlen(s) <= HEDDLE_ENERGY_NAME_MAX;
}

/* A name that may be missing. */
static bool is_name_or_none(const char *s)
{
    return s == NULL || strlen(s) <= HEDDLE_ENERGY_NAME_MAX;
}

static bool is_amount(double x)
{
    return isfinite(x) && x >= 0;
}

static bool is_range(double low, double high)
{
    return is_amount(low) && is_amount(high) && low <= high;
}

/* Room for one more row of `bytes`; false: no memory. */
static bool grow(heddle_energy *e, void **rows, size_t n, size_t *room, size_t bytes)
{
    const size_t want = *room == 0 ? 8 : 2 * *room;
    void *more;

    if (n < *room)
        return true;
    more = heddle_zalloc(e->alloc, want, bytes);
    if (more == NULL)
        return false;
    if (n > 0)
        memcpy(more, *rows, n * bytes);
    heddle_free(e->alloc, *rows, *room * bytes);
    *rows = more;
    *room = want;
    return true;
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

heddle_status heddle_energy_set_domain(heddle_energy *e, const struct heddle_energy_domain *row)
{
    struct heddle_energy_domain r;
    size_t i = 0;

    if (e == NULL || row == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_energy_domain, &r, row, NULL, 0));
    if (!is_name(r.name) || !is_name_or_none(r.device) || !is_amount(r.idle_watts) ||
        !is_range(r.low, r.high))
        return HEDDLE_EINVAL;
    r.name = heddle_scratch_text(&e->names, r.name);
    r.device = heddle_scratch_text(&e->names, r.device);
    if (r.name == NULL || r.device == NULL ||
        !grow(e, (void **)&e->domain, e->ndomains, &e->domain_room, sizeof(r)))
        return HEDDLE_ENOMEM;
    while (i < e->ndomains && !is_same(e->domain[i].name, r.name))
        i++;
    e->domain[i] = r;
    if (i == e->ndomains)
        e->ndomains++;
    return HEDDLE_OK;
}

heddle_status heddle_energy_set_active(heddle_energy *e, const struct heddle_energy_active *row)
{
    struct heddle_energy_active r;
    size_t i = 0;

    if (e == NULL || row == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_energy_active, &r, row, NULL, 0));
    if (!is_name(r.kernel) || !is_name(r.device) || !is_name_or_none(r.variant) ||
        !is_amount(r.watts) || !is_range(r.low, r.high))
        return HEDDLE_EINVAL;
    r.kernel = heddle_scratch_text(&e->names, r.kernel);
    r.device = heddle_scratch_text(&e->names, r.device);
    r.variant = heddle_scratch_text(&e->names, r.variant);
    if (r.kernel == NULL || r.device == NULL || r.variant == NULL ||
        !grow(e, (void **)&e->active, e->nactive, &e->active_room, sizeof(r)))
        return HEDDLE_ENOMEM;
    while (i < e->nactive &&
           !(is_same(e->active[i].kernel, r.kernel) && is_same(e->active[i].device, r.device) &&
             is_same(e->active[i].variant, r.variant) && e->active[i].bytes == r.bytes))
        i++;
    e->active[i] = r;
    if (i == e->nactive)
        e->nactive++;
    return HEDDLE_OK;
}

heddle_status heddle_energy_set_cap(heddle_energy *e, const struct heddle_energy_cap *row)
{
    struct heddle_energy_cap r;
    size_t i = 0;

    if (e == NULL || row == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_energy_cap, &r, row, NULL, 0));
    if (!is_name(r.device) || !is_name(r.name) || !is_amount(r.time_factor) || r.time_factor == 0 ||
        !is_amount(r.watts_factor) || r.watts_factor == 0)
        return HEDDLE_EINVAL;
    r.device = heddle_scratch_text(&e->names, r.device);
    r.name = heddle_scratch_text(&e->names, r.name);
    if (r.device == NULL || r.name == NULL ||
        !grow(e, (void **)&e->cap, e->ncaps, &e->cap_room, sizeof(r)))
        return HEDDLE_ENOMEM;
    while (i < e->ncaps &&
           !(is_same(e->cap[i].device, r.device) && is_same(e->cap[i].name, r.name)))
        i++;
    e->cap[i] = r;
    if (i == e->ncaps)
        e->ncaps++;
    return HEDDLE_OK;
}

heddle_status heddle_energy_set_move(heddle_energy *e, double joules_per_byte)
{
    if (e == NULL || !is_amount(joules_per_byte))
        return HEDDLE_EINVAL;
    e->move = joules_per_byte;
    return HEDDLE_OK;
}

double heddle_energy_get_move(const heddle_energy *e)
{
    return e == NULL ? 0 : e->move;
}

heddle_status heddle_energy_get_domain(const heddle_energy *e, size_t i,
                                       struct heddle_energy_domain *out)
{
    if (e == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_energy_domain, out, NULL, 0));
    if (i >= e->ndomains)
        return HEDDLE_ENOENT;
    heddle_sized_put(out, &e->domain[i], sizeof(e->domain[i]));
    return HEDDLE_OK;
}

heddle_status heddle_energy_get_active(const heddle_energy *e, size_t i,
                                       struct heddle_energy_active *out)
{
    if (e == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_energy_active, out, NULL, 0));
    if (i >= e->nactive)
        return HEDDLE_ENOENT;
    heddle_sized_put(out, &e->active[i], sizeof(e->active[i]));
    return HEDDLE_OK;
}

heddle_status heddle_energy_get_cap(const heddle_energy *e, size_t i, struct heddle_energy_cap *out)
{
    if (e == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_energy_cap, out, NULL, 0));
    if (i >= e->ncaps)
        return HEDDLE_ENOENT;
    heddle_sized_put(out, &e->cap[i], sizeof(e->cap[i]));
    return HEDDLE_OK;
}

/* Is `name` the first n letters of s? */
static bool begins(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

unsigned heddle_energy_fit_device(const char *name, const char *device)
{
    size_t n;

    if (name == NULL || device == NULL)
        return 0;
    n = strlen(device);
    if (strcmp(name, device) == 0)
        return 4;
    while (n > 0 && device[n - 1] >= '0' && device[n - 1] <= '9')
        n--;
    if (begins(device, n, name))
        return 3;
    n = strcspn(device, " ");
    if (begins(device, n, name))
        return 2;
    return strcmp(name, "*") == 0 ? 1 : 0;
}

/* Larger is better: 0, it does not fit. */
static unsigned rank_of(const struct heddle_energy_active *r, const char *kernel,
                        const char *variant, const char *device, uint64_t bytes)
{
    const unsigned d = heddle_energy_fit_device(r->device, device);
    unsigned rank;

    if (d == 0)
        return 0;
    rank = d * 16;
    if (strcmp(r->kernel, kernel) == 0)
        rank += 8;
    else if (strcmp(r->kernel, "*") != 0)
        return 0;
    if (r->variant[0] != '\0') {
        if (variant == NULL)
            return rank - 1; /* below a row of any variant, above "*" */
        if (!is_same(r->variant, variant))
            return 0;
        rank += 4;
    }
    return rank + (r->bytes == bytes ? 2 : r->bytes != 0 ? 1 : 0);
}

static double distance(uint64_t a, uint64_t b)
{
    return fabs(log((double)a + 1) - log((double)b + 1));
}

double heddle_energy_watts(const heddle_energy *e, const char *kernel, const char *variant,
                           const char *device, uint64_t bytes)
{
    const struct heddle_energy_active *best = NULL;
    unsigned best_rank = 0;

    if (e == NULL || kernel == NULL || device == NULL)
        return NAN;
    for (size_t i = 0; i < e->nactive; i++) {
        const struct heddle_energy_active *r = &e->active[i];
        const unsigned rank = rank_of(r, kernel, variant, device, bytes);

        if (rank > best_rank || (rank > 0 && rank == best_rank &&
                                 distance(r->bytes, bytes) < distance(best->bytes, bytes))) {
            best = r;
            best_rank = rank;
        }
    }
    return best == NULL ? NAN : best->watts;
}

double heddle_energy_idle_watts(const heddle_energy *e)
{
    double sum = 0;

    for (size_t i = 0; e != NULL && i < e->ndomains; i++)
        sum += e->domain[i].idle_watts;
    return sum;
}
