/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: the tree of what is known, and looking things up in it.
 *
 * Purpose    one entry per kernel, variant, device, version and shape, found in
 *            nanoseconds by threads that run tasks.
 * Invariants (1) a node is complete before it is linked, and stays until the
 *                tree is destroyed
 *            (2) every entry of a series is in its newest table
 *            (3) a series has about HEDDLE_MODEL_SHAPES entries plus one per
 *                bucket at most, unless it is a tree used for merging
 * Threads    links are published by release stores under the perf's lock and
 *            followed by acquire loads without it.
 * Errors     HEDDLE_ENOMEM leaves the tree as it was.
 */
#include "perf/model.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

#define FIRST_SLOTS 16

bool heddle_model_name_ok(const char *name)
{
    return name != NULL && name[0] != '\0' && memchr(name, '\0', HEDDLE_PERF_NAME_MAX + 1) != NULL;
}

/* --- entries ------------------------------------------------------------- */

static size_t table_bytes(size_t nslots)
{
    return sizeof(struct heddle_model_table) + nslots * sizeof(_Atomic(struct heddle_perf_entry *));
}

/* Needs the lock. There is room. */
static void table_put(struct heddle_model_table *t, struct heddle_perf_entry *e)
{
    size_t i = (size_t)heddle_perf_hash(0, e->shape) & (t->nslots - 1);

    while (heddle_load_rlx(&t->slot[i]) != NULL) /* writers hold the lock */
        i = (i + 1) & (t->nslots - 1);
    /* Publishes *e; pairs with the acquire in heddle_model_entry_find(). */
    heddle_store_rel(&t->slot[i], e);
}

/* Makes room for one more entry. Needs the lock. */
static heddle_status table_reserve(struct heddle_perf_series *s)
{
    struct heddle_model_table *old = heddle_load_rlx(&s->table), *t;
    const size_t nslots = old == NULL ? FIRST_SLOTS : old->nslots * 2;

    if (old != NULL && (heddle_load_rlx(&s->nentries) + 1) * 2 <= old->nslots)
        return HEDDLE_OK;
    t = heddle_zalloc(s->kernel->alloc, 1, table_bytes(nslots));
    if (t == NULL)
        return HEDDLE_ENOMEM;
    t->nslots = nslots;
    t->older = old;
    for (struct heddle_perf_entry *e = heddle_load_rlx(&s->first); e != NULL;
         e = heddle_load_rlx(&e->next))
        table_put(t, e);
    /* Publishes the slots; pairs with the acquire in entry_find(). */
    heddle_store_rel(&s->table, t);
    return HEDDLE_OK;
}

struct heddle_perf_entry *heddle_model_entry_find(struct heddle_perf_series *s, uint64_t shape)
{
    /* Acquire: pairs with the releases in table_reserve() and table_put(). */
    struct heddle_model_table *t = heddle_load_acq(&s->table);
    struct heddle_perf_entry *e;
    size_t i;

    if (t == NULL)
        return NULL;
    i = (size_t)heddle_perf_hash(0, shape) & (t->nslots - 1);
    while ((e = heddle_load_acq(&t->slot[i])) != NULL && e->shape != shape)
        i = (i + 1) & (t->nslots - 1);
    return e;
}

heddle_status heddle_model_entry_add(struct heddle_perf_series *s, uint64_t shape,
                                     struct heddle_perf_entry **out)
{
    struct heddle_perf_entry *e = heddle_model_entry_find(s, shape);

    if (e == NULL) {
        HEDDLE_TRY(table_reserve(s));
        e = heddle_zalloc_aligned(s->kernel->alloc, 1, sizeof(*e), HEDDLE_CACHE_LINE);
        if (e == NULL)
            return HEDDLE_ENOMEM;
        e->series = s;
        e->shape = shape;
        /* Publishes *e to the walkers of the list. */
        if (s->last == NULL)
            heddle_store_rel(&s->first, e);
        else
            heddle_store_rel(&s->last->next, e);
        s->last = e;
        heddle_add_rlx(&s->nentries, 1); /* a number, nothing hangs on it */
        table_put(heddle_load_rlx(&s->table), e);
    }
    *out = e;
    return HEDDLE_OK;
}

static double sane_cost(double v)
{
    return v > 0.0 ? fmin(v, HEDDLE_MODEL_MAX_COST) : 0.0;
}

/* Keeps the line clean when nothing changes. */
static void keep_cost(_Atomic double *field, double v)
{
    if (v > 0.0 && heddle_load_rlx(field) != v)
        heddle_store_rlx(field, v);
}

void heddle_model_entry_cost(struct heddle_perf_entry *e, double flops, double bytes)
{
    keep_cost(&e->flops, sane_cost(flops));
    keep_cost(&e->bytes, sane_cost(bytes));
}

/* The shape under which all shapes of about this work are kept when there are
 * too many of them. Part of the file format, like heddle_perf_hash(). */
static uint64_t bucket_shape(double flops, double bytes)
{
    const double work = fmax(sane_cost(flops > 0.0 ? flops : bytes), 1.0);
    const double quarter = floor(4.0 * log2(work) + 0.5);

    return heddle_perf_hash(0x6275636b6574u, (uint64_t)fmin(quarter, HEDDLE_MODEL_BUCKETS - 1));
}

heddle_status heddle_perf_entry_get(struct heddle_perf_series *series, uint64_t shape, double flops,
                                    double bytes, struct heddle_perf_entry **entry_out)
{
    struct heddle_perf_entry *e = heddle_model_entry_find(series, shape);
    struct heddle_perf *perf = series->kernel->perf;
    heddle_status st = HEDDLE_OK;

    /* Relaxed: seen late, it makes some shapes more, at most one per thread. */
    if (e == NULL && heddle_load_rlx(&series->nentries) >= HEDDLE_MODEL_SHAPES) {
        shape = bucket_shape(flops, bytes);
        e = heddle_model_entry_find(series, shape);
    }
    if (e == NULL) {
        heddle_mutex_lock(&perf->lock);
        st = heddle_model_entry_add(series, shape, &e);
        heddle_mutex_unlock(&perf->lock);
    }
    if (st == HEDDLE_OK) {
        heddle_model_entry_cost(e, flops, bytes);
        *entry_out = e;
    }
    return st;
}

/* --- series -------------------------------------------------------------- */

static void series_destroy(struct heddle_perf_series *s)
{
    const struct heddle_allocator *a = s->kernel->alloc;
    struct heddle_model_table *t = heddle_load_rlx(&s->table);
    struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

    while (e != NULL) {
        struct heddle_perf_entry *next = heddle_load_rlx(&e->next);

        heddle_free(a, e, sizeof(*e));
        e = next;
    }
    while (t != NULL) {
        struct heddle_model_table *older = t->older;

        heddle_free(a, t, table_bytes(t->nslots));
        t = older;
    }
    heddle_strfree(a, s->variant);
    heddle_strfree(a, s->device);
    heddle_free(a, s, sizeof(*s));
}

static int series_compare(const struct heddle_perf_series *s, const struct heddle_perf_key *key)
{
    int c = strcmp(s->variant, key->variant);

    if (c == 0)
        c = strcmp(s->device, key->device);
    if (c == 0)
        c = s->version < key->version ? -1 : s->version > key->version;
    return c;
}

struct heddle_perf_series *heddle_model_series_find(struct heddle_model_kernel *k,
                                                    const struct heddle_perf_key *key)
{
    /* Acquire: pairs with the release in heddle_model_series_add(). */
    struct heddle_perf_series *s = heddle_load_acq(&k->series);

    while (s != NULL && series_compare(s, key) != 0)
        s = heddle_load_acq(&s->next);
    return s;
}

/* Finds or makes the record of a device. Needs the lock. */
static struct heddle_model_device *device_get(struct heddle_perf *perf, const char *name)
{
    struct heddle_model_device *d = perf->devices;

    while (d != NULL && strcmp(d->name, name) != 0)
        d = d->next;
    if (d != NULL)
        return d;
    d = heddle_zalloc(&perf->alloc, 1, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->name = heddle_strdup(&perf->alloc, name);
    if (d->name == NULL) {
        heddle_free(&perf->alloc, d, sizeof(*d));
        return NULL;
    }
    d->next = perf->devices;
    perf->devices = d;
    return d;
}

static struct heddle_perf_series *series_new(struct heddle_model_kernel *k,
                                             const struct heddle_perf_key *key)
{
    struct heddle_perf_series *s = heddle_zalloc(k->alloc, 1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->kernel = k;
    s->variant = heddle_strdup(k->alloc, key->variant);
    s->device = heddle_strdup(k->alloc, key->device);
    s->version = key->version;
    heddle_store_rlx(&s->gen, 1); /* not shared yet */
    if (k->perf != NULL)
        s->peaks = device_get(k->perf, key->device);
    if (s->variant == NULL || s->device == NULL || (k->perf != NULL && s->peaks == NULL)) {
        series_destroy(s);
        return NULL;
    }
    return s;
}

heddle_status heddle_model_series_add(struct heddle_model_kernel *k,
                                      const struct heddle_perf_key *key,
                                      struct heddle_perf_series **out)
{
    _Atomic(struct heddle_perf_series *) *at = &k->series;
    struct heddle_perf_series *s, *next;

    for (; (next = heddle_load_rlx(at)) != NULL; at = &next->next) {
        const int c = series_compare(next, key);

        if (c == 0) {
            *out = next;
            return HEDDLE_OK;
        }
        if (c > 0)
            break;
    }
    if (k->nseries >= HEDDLE_MODEL_SERIES)
        return HEDDLE_EOVERFLOW;
    s = series_new(k, key);
    if (s == NULL)
        return HEDDLE_ENOMEM;
    heddle_store_rlx(&s->next, next); /* published by the next line */
    /* Publishes *s; pairs with the acquires of the walkers. */
    heddle_store_rel(at, s);
    k->nseries++;
    *out = s;
    return HEDDLE_OK;
}

/* --- kernels ------------------------------------------------------------- */

struct heddle_model_kernel *heddle_model_kernel_create(const struct heddle_allocator *alloc,
                                                       struct heddle_perf *perf, const char *name)
{
    struct heddle_model_kernel *k = heddle_zalloc(alloc, 1, sizeof(*k));

    if (k == NULL)
        return NULL;
    k->alloc = alloc;
    k->perf = perf;
    k->name = heddle_strdup(alloc, name);
    if (k->name == NULL) {
        heddle_free(alloc, k, sizeof(*k));
        return NULL;
    }
    return k;
}

void heddle_model_kernel_destroy(struct heddle_model_kernel *k)
{
    struct heddle_perf_series *s;

    if (k == NULL)
        return;
    s = heddle_load_rlx(&k->series);
    while (s != NULL) {
        struct heddle_perf_series *next = heddle_load_rlx(&s->next);

        series_destroy(s);
        s = next;
    }
    heddle_strfree(k->alloc, k->name);
    heddle_free(k->alloc, k, sizeof(*k));
}

struct heddle_model_kernel *heddle_model_kernel_find(struct heddle_perf *perf, const char *name)
{
    /* Acquire: pairs with the release in heddle_model_kernel_link(). */
    struct heddle_model_kernel *k = heddle_load_acq(&perf->kernels);

    while (k != NULL && strcmp(k->name, name) != 0)
        k = heddle_load_acq(&k->next);
    return k;
}

void heddle_model_kernel_link(struct heddle_perf *perf, struct heddle_model_kernel *k)
{
    _Atomic(struct heddle_model_kernel *) *at = &perf->kernels;
    struct heddle_model_kernel *next;

    while ((next = heddle_load_rlx(at)) != NULL && strcmp(next->name, k->name) < 0)
        at = &next->next;
    heddle_store_rlx(&k->next, next); /* published by the next line */
    /* Publishes *k; pairs with the acquires of the walkers. */
    heddle_store_rel(at, k);
}

void heddle_model_kernel_clear(struct heddle_model_kernel *k)
{
    struct heddle_perf_series *s = heddle_load_rlx(&k->series);

    for (; s != NULL; s = heddle_load_rlx(&s->next)) {
        struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

        for (; e != NULL; e = heddle_load_rlx(&e->next)) {
            heddle_history_clear(&e->history);
            heddle_store_rlx(&e->before, 0);
            e->saved = 0;
        }
        heddle_add_rlx(&s->gen, 1); /* a hint: guesses are made anew */
    }
}

/* --- the face ------------------------------------------------------------ */

heddle_status heddle_perf_series_get(heddle_perf *perf, const struct heddle_perf_key *key,
                                     struct heddle_perf_series **series_out)
{
    struct heddle_model_kernel *k = NULL;
    heddle_status st;

    HEDDLE_CHECK(perf != NULL && key != NULL && series_out != NULL);
    HEDDLE_CHECK(heddle_model_name_ok(key->kernel));
    HEDDLE_CHECK(strcmp(key->kernel, HEDDLE_PERF_LINKS) != 0);
    HEDDLE_CHECK(heddle_model_name_ok(key->variant));
    HEDDLE_CHECK(heddle_model_name_ok(key->device));
    heddle_mutex_lock(&perf->lock);
    st = heddle_store_kernel(perf, key->kernel, &k);
    if (st == HEDDLE_OK)
        st = heddle_model_series_add(k, key, series_out);
    if (st == HEDDLE_OK)
        (*series_out)->is_live = true;
    heddle_mutex_unlock(&perf->lock);
    return st;
}

static bool peak_ok(double v)
{
    return isfinite(v) && v >= 0.0;
}

heddle_status heddle_perf_device_set(heddle_perf *perf, const char *device,
                                     const struct heddle_perf_device *dev)
{
    struct heddle_model_device *d;
    struct heddle_model_kernel *k;

    HEDDLE_CHECK(perf != NULL && dev != NULL && heddle_model_name_ok(device));
    HEDDLE_CHECK(peak_ok(dev->peak_flops) && peak_ok(dev->peak_bytes_per_s) &&
                 peak_ok(dev->overhead_ns));
    heddle_mutex_lock(&perf->lock);
    d = device_get(perf, device);
    if (d != NULL) {
        heddle_store_rlx(&d->peak_flops, dev->peak_flops);
        heddle_store_rlx(&d->peak_bytes_per_s, dev->peak_bytes_per_s);
        heddle_store_rlx(&d->overhead_ns, dev->overhead_ns);
        for (k = heddle_load_rlx(&perf->kernels); k != NULL; k = heddle_load_rlx(&k->next))
            for (struct heddle_perf_series *s = heddle_load_rlx(&k->series); s != NULL;
                 s = heddle_load_rlx(&s->next))
                heddle_add_rlx(&s->gen, 1); /* a hint, as above */
    }
    heddle_mutex_unlock(&perf->lock);
    return d != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}
