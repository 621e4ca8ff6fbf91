/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table: how long kernels take.
 *
 * Structure   kernels by the hash of their name; each has a short list of curves,
 *             one per who; a curve is its timings in ascending order of bytes.
 * Between     two timings: the power law through both, so a time lies between its
 *             neighbours'. Beyond the last one: from there on with the exponent
 *             that fits the three timings at that end best (least squares of the
 *             logarithms), kept within 0 and 3: more bytes never take less time,
 *             and no dense kernel grows faster than that. A single timing grows
 *             in proportion to the bytes.
 * Cost        a lookup is a hash, a few string compares, a binary search.
 */
#include "plat/table.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"

#define MAX_EXPONENT 3.0
#define END_POINTS   3u
#define ALIAS_HOPS   16u

struct point {
    double bytes, ns;
    double n; /* timings of which ns is the mean */
};

struct curve {
    struct curve *next;
    unsigned who;
    double rate; /* 0: none */
    struct point *point;
    size_t npoints, cap;
};

struct kernel {
    struct kernel *next; /* of equal hash */
    struct kernel *alias;
    struct curve *curves;
    char *name;
};

struct heddle_plat_table {
    struct heddle_allocator alloc;
    struct heddle_map kernels;
};

static uint64_t hash_of(const char *s)
{
    uint64_t h = 14695981039346656037u;

    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

heddle_status heddle_plat_table_create(const struct heddle_allocator *a,
                                       struct heddle_plat_table **table_out)
{
    struct heddle_plat_table *t = heddle_zalloc(a, 1, sizeof(*t));

    if (t == NULL)
        return HEDDLE_ENOMEM;
    t->alloc = a != NULL ? *a : heddle_allocator_default;
    heddle_map_init(&t->kernels, &t->alloc);
    *table_out = t;
    return HEDDLE_OK;
}

static void kernel_destroy(struct heddle_plat_table *t, struct kernel *k)
{
    while (k->curves != NULL) {
        struct curve *c = k->curves;

        k->curves = c->next;
        heddle_free(&t->alloc, c->point, c->cap * sizeof(*c->point));
        heddle_free(&t->alloc, c, sizeof(*c));
    }
    heddle_strfree(&t->alloc, k->name);
    heddle_free(&t->alloc, k, sizeof(*k));
}

void heddle_plat_table_destroy(struct heddle_plat_table *t)
{
    struct heddle_allocator a;
    struct heddle_map_slot *s;
    size_t it = 0;

    if (t == NULL)
        return;
    while ((s = heddle_map_next(&t->kernels, &it)) != NULL) {
        struct kernel *k = (struct kernel *)(uintptr_t)s->val;

        while (k != NULL) {
            struct kernel *next = k->next;

            kernel_destroy(t, k);
            k = next;
        }
    }
    heddle_map_fini(&t->kernels);
    a = t->alloc;
    heddle_free(&a, t, sizeof(*t));
}

static struct kernel *kernel_find(const struct heddle_plat_table *t, const char *name)
{
    struct kernel *k = heddle_map_get_ptr(&t->kernels, hash_of(name));

    while (k != NULL && strcmp(k->name, name) != 0)
        k = k->next;
    return k;
}

/* The kernel, made when it is new. NULL: no memory. */
static struct kernel *kernel_get(struct heddle_plat_table *t, const char *name)
{
    const uint64_t hash = hash_of(name);
    struct kernel *k = kernel_find(t, name);

    if (k != NULL)
        return k;
    k = heddle_zalloc(&t->alloc, 1, sizeof(*k));
    if (k == NULL)
        return NULL;
    k->name = heddle_strdup(&t->alloc, name);
    k->next = heddle_map_get_ptr(&t->kernels, hash);
    if (k->name == NULL || heddle_map_put_ptr(&t->kernels, hash, k) != HEDDLE_OK) {
        kernel_destroy(t, k);
        return NULL;
    }
    return k;
}

static const struct curve *curve_find(const struct kernel *k, unsigned who)
{
    const struct curve *c = k->curves;

    while (c != NULL && c->who != who)
        c = c->next;
    return c;
}

static struct curve *curve_get(struct heddle_plat_table *t, const char *kernel, unsigned who)
{
    struct kernel *k = kernel_get(t, kernel);
    struct curve *c;

    if (k == NULL)
        return NULL;
    for (c = k->curves; c != NULL; c = c->next)
        if (c->who == who)
            return c;
    c = heddle_zalloc(&t->alloc, 1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->who = who;
    c->next = k->curves;
    k->curves = c;
    return c;
}

/* The first point with at least that many bytes; npoints: none. */
static size_t curve_at(const struct curve *c, double bytes)
{
    size_t lo = 0, hi = c->npoints;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (c->point[mid].bytes < bytes)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static heddle_status curve_grow(struct heddle_plat_table *t, struct curve *c)
{
    const size_t cap = c->cap == 0 ? 4 : 2 * c->cap;
    struct point *p;

    if (c->npoints < c->cap)
        return HEDDLE_OK;
    p = heddle_alloc(&t->alloc, cap * sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    if (c->npoints > 0)
        memcpy(p, c->point, c->npoints * sizeof(*p));
    heddle_free(&t->alloc, c->point, c->cap * sizeof(*p));
    c->point = p;
    c->cap = cap;
    return HEDDLE_OK;
}

heddle_status heddle_plat_table_add(struct heddle_plat_table *t, const char *kernel, unsigned who,
                                    double bytes, double ns, bool merges)
{
    struct curve *c = curve_get(t, kernel, who);
    size_t at;

    if (c == NULL || curve_grow(t, c) != HEDDLE_OK)
        return HEDDLE_ENOMEM;
    at = curve_at(c, bytes);
    if (at < c->npoints && c->point[at].bytes <= bytes) {
        struct point *p = &c->point[at];

        if (!merges)
            return HEDDLE_ESTATE;
        p->n++;
        p->ns += (ns - p->ns) / p->n;
        return HEDDLE_OK;
    }
    memmove(&c->point[at + 1], &c->point[at], (c->npoints - at) * sizeof(c->point[0]));
    c->point[at] = (struct point){bytes, ns, 1};
    c->npoints++;
    return HEDDLE_OK;
}

heddle_status heddle_plat_table_rate(struct heddle_plat_table *t, const char *kernel, unsigned who,
                                     double rate)
{
    struct curve *c = curve_get(t, kernel, who);

    if (c == NULL)
        return HEDDLE_ENOMEM;
    if (c->rate > 0)
        return HEDDLE_ESTATE;
    c->rate = rate;
    return HEDDLE_OK;
}

heddle_status heddle_plat_table_alias(struct heddle_plat_table *t, const char *kernel,
                                      const char *name)
{
    struct kernel *to = kernel_find(t, name);
    struct kernel *k = kernel_find(t, kernel);

    if (to == NULL || (to->curves == NULL && to->alias == NULL))
        return HEDDLE_ENOENT;
    if (k != NULL && (k->curves != NULL || k->alias != NULL))
        return HEDDLE_ESTATE;
    k = kernel_get(t, kernel);
    if (k == NULL)
        return HEDDLE_ENOMEM;
    k->alias = to;
    return HEDDLE_OK;
}

/* ---- times --------------------------------------------------------------- */

/* Logarithms of what may be 0. */
static double log_bytes(double bytes)
{
    return log(bytes > 1 ? bytes : 1);
}

static double log_ns(double ns)
{
    return log(ns > 1e-3 ? ns : 1e-3);
}

/* Least squares of log ns over log bytes; npoints >= 1. */
static double exponent(const struct point *p, size_t n)
{
    double mx = 0, my = 0, sxx = 0, sxy = 0, e;

    if (n < 2)
        return 1;
    for (size_t i = 0; i < n; i++) {
        mx += log_bytes(p[i].bytes) / (double)n;
        my += log_ns(p[i].ns) / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        const double dx = log_bytes(p[i].bytes) - mx;

        sxx += dx * dx;
        sxy += dx * (log_ns(p[i].ns) - my);
    }
    e = sxx > 0 ? sxy / sxx : 1;
    return e < 0 ? 0 : e > MAX_EXPONENT ? MAX_EXPONENT : e;
}

static double from_end(const struct point *end, double e, double bytes)
{
    return end->ns * exp(e * (log_bytes(bytes) - log_bytes(end->bytes)));
}

static double between(const struct point *a, const struct point *b, double bytes)
{
    const double x0 = log_bytes(a->bytes), x1 = log_bytes(b->bytes);
    const double y0 = log_ns(a->ns), y1 = log_ns(b->ns);

    if (!(x1 > x0))
        return (a->ns + b->ns) / 2;
    return exp(y0 + (y1 - y0) * (log_bytes(bytes) - x0) / (x1 - x0));
}

static double curve_fit(const struct curve *c, double bytes)
{
    const size_t at = curve_at(c, bytes);
    const size_t n = c->npoints < END_POINTS ? c->npoints : END_POINTS;

    if (at == 0)
        return from_end(&c->point[0], exponent(c->point, n), bytes);
    if (at == c->npoints) {
        const double e = exponent(&c->point[c->npoints - n], n);

        return from_end(&c->point[c->npoints - 1], e, bytes);
    }
    return between(&c->point[at - 1], &c->point[at], bytes);
}

static bool curve_exact(const struct curve *c, double bytes, double *ns_out)
{
    /* Sizes are whole numbers of bytes; the caller's may be computed. */
    const size_t at = curve_at(c, bytes - 0.5);

    if (at == c->npoints || c->point[at].bytes > bytes + 0.5)
        return false;
    *ns_out = c->point[at].ns;
    return true;
}

static const struct kernel *resolve(const struct heddle_plat_table *t, const char *name)
{
    const struct kernel *k = kernel_find(t, name);

    for (unsigned i = 0; k != NULL && k->alias != NULL && i < ALIAS_HOPS; i++)
        k = k->alias;
    return k;
}

double heddle_plat_table_time(const struct heddle_plat_table *t, const char *kernel,
                              const unsigned *who, unsigned nwho, double bytes, double flops)
{
    const struct kernel *k = resolve(t, kernel);
    const struct curve *c;
    double ns;

    if (k == NULL)
        return (double)NAN;
    for (unsigned i = 0; i < nwho; i++) {
        c = curve_find(k, who[i]);
        if (c != NULL && curve_exact(c, bytes, &ns))
            return ns;
    }
    for (unsigned i = 0; i < nwho; i++) {
        c = curve_find(k, who[i]);
        if (c != NULL && c->npoints > 0)
            return curve_fit(c, bytes);
    }
    for (unsigned i = 0; i < nwho; i++) {
        c = curve_find(k, who[i]);
        if (c != NULL && c->rate > 0 && flops > 0)
            return flops / c->rate;
    }
    return (double)NAN;
}
