/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/shape: shapes: what is known about a kernel on operands of one size.
 *
 * Structure  a kernel keeps a list of the shapes it was called with; a shape knows
 *            its cost per class (virtual time) or its models (real time).
 * Threads    any, at any time. A shape is constant once it is in the list.
 */
#include "core/dev/shape.h"
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/spin.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "perf/perf.h"

static uint64_t shape_key(const struct heddle_exec *x)
{
    uint64_t h = x->nops;

    for (unsigned i = 0; i < x->nops; i++)
        h = (h ^ x->op[i]->shape) * UINT64_C(0x9e3779b97f4a7c15) + i;
    return h;
}

/* Described times, and watts. False: no memory. */
static bool shape_more(struct heddle_devs *d, const struct heddle_exec *x, struct dev_shape *s)
{
    s->nvariants = x->kinfo->nvariants;
    if (!d->time->fill_shape(d, x, s))
        return false;
    if (d->energy == NULL)
        return true;
    s->watts = heddle_zalloc(&d->ctx->alloc, (size_t)s->nvariants * d->ncls + 1, sizeof(*s->watts));
    if (s->watts == NULL)
        return false;
    heddle_dev_energy_shape(d, x, s, s->watts);
    return true;
}

static void shape_free(struct heddle_devs *d, struct dev_shape *s)
{
    const struct heddle_allocator *a = &d->ctx->alloc;
    const size_t nentries = (size_t)d->ntypes * HEDDLE_KERNEL_VARIANTS;

    heddle_free(a, s->ns, 3 * d->ncls * sizeof(*s->ns));
    heddle_free(a, s->entry, nentries * sizeof(*s->entry));
    heddle_free(a, s->quick, d->ncls * sizeof(*s->quick));
    heddle_free(a, s->own, (size_t)s->nvariants * d->ncls * sizeof(*s->own));
    heddle_free(a, s->watts, ((size_t)s->nvariants * d->ncls + 1) * sizeof(*s->watts));
    heddle_free(a, s, sizeof(*s));
}

static struct dev_shape *shape_new(struct heddle_devs *d, struct heddle_exec *x, uint64_t key)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const size_t nentries = (size_t)d->ntypes * HEDDLE_KERNEL_VARIANTS;
    struct dev_shape *s = heddle_zalloc(&d->ctx->alloc, 1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->ns = heddle_zalloc(&d->ctx->alloc, 3 * (size_t)d->ncls, sizeof(*s->ns));
    s->entry = heddle_zalloc(&d->ctx->alloc, nentries, sizeof(*s->entry));
    s->quick = heddle_zalloc(&d->ctx->alloc, d->ncls, sizeof(*s->quick));
    if (s->ns == NULL || s->entry == NULL || s->quick == NULL) {
        shape_free(d, s);
        return NULL;
    }
    s->alone = s->ns + d->ncls;
    s->share = s->alone + d->ncls;
    s->hash = key;
    for (unsigned i = 0; i < x->nops; i++)
        s->bytes += (double)x->op[i]->bytes;
    if (k->cost != NULL)
        s->cost = k->cost(x);
    if (!shape_more(d, x, s)) {
        shape_free(d, s);
        return NULL;
    }
    return s;
}

/* Last ones first: a kernel has few shapes. NULL: no memory. */
struct dev_shape *heddle_dev_shape(struct heddle_devs *d, struct heddle_exec *x)
{
    const uint64_t key = shape_key(x);
    struct heddle_kinfo *k = x->kinfo;
    struct dev_shape *s, *made;

    /* Acquire: pairs with the release below. */
    for (s = heddle_load_acq(&k->shapes); s != NULL; s = s->next)
        if (s->hash == key)
            return s;
    made = shape_new(d, x, key);
    if (made == NULL)
        return NULL;
    heddle_spin_lock(&d->shape_lock);
    for (s = heddle_load_acq(&k->shapes); s != NULL && s->hash != key;)
        s = s->next;
    if (s == NULL) {
        made->sort = d->nsorts++;
        made->next = heddle_load_rlx(&k->shapes);
        heddle_store_rel(&k->shapes, made);
        s = made;
        made = NULL;
    }
    heddle_spin_unlock(&d->shape_lock);
    if (made != NULL) /* another thread was faster */
        shape_free(d, made);
    return s;
}

void heddle_dev_free_shapes(struct heddle_devs *d, struct heddle_kinfo *k)
{
    struct dev_shape *s = heddle_load_acq(&k->shapes);

    while (s != NULL) {
        struct dev_shape *next = s->next;

        while (s->sorts != NULL) {
            struct dev_sort *q = s->sorts;

            s->sorts = q->next;
            heddle_free(&d->ctx->alloc, q, sizeof(*q));
        }
        shape_free(d, s);
        s = next;
    }
}

struct heddle_perf_entry *heddle_dev_model(struct heddle_devs *d, struct heddle_exec *x,
                                           struct dev_shape *shape, unsigned cls, unsigned v)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const struct dev_class *c = &d->cls[cls];
    _Atomic(struct heddle_perf_entry *) *slot = &shape->entry[c->type * HEDDLE_KERNEL_VARIANTS + v];
    struct heddle_perf_entry *e = heddle_load_acq(slot);
    const char *name = k->variants[v].name;
    const struct heddle_perf_key key = {
        .kernel = k->name,
        .variant = name != NULL ? name : heddle_device_name(c->kind),
        .device = c->model,
        .version = k->version,
    };
    struct heddle_perf_series *series;
    uint64_t hash = 0;

    if (e != NULL || d->ctx->perf == NULL)
        return e;
    if (heddle_perf_series_get(d->ctx->perf, &key, &series) != HEDDLE_OK)
        return NULL;
    for (unsigned i = 0; i < x->nops; i++) {
        const struct heddle_layout *l = &x->op[i]->layout;

        hash = heddle_perf_hash(hash, (uint64_t)l->dtype << 8 | l->ndim);
        for (unsigned n = 0; n < l->ndim; n++)
            hash = heddle_perf_hash(hash, l->extent[n]);
    }
    if (heddle_perf_entry_get(series, hash, shape->cost.flops, shape->cost.bytes, &e) != HEDDLE_OK)
        return NULL;
    heddle_store_rel(slot, e); /* two threads find the same one */
    return e;
}

/* Sorts of one shape that differ in where they may run. */
unsigned heddle_dev_shape_sort(struct heddle_devs *d, struct dev_shape *s, uint64_t classes)
{
    struct dev_sort *q;
    unsigned sort;

    if (classes == UINT64_MAX)
        return s->sort;
    heddle_spin_lock(&d->shape_lock);
    for (q = s->sorts; q != NULL && q->classes != classes;)
        q = q->next;
    if (q == NULL) {
        q = heddle_alloc(&d->ctx->alloc, sizeof(*q));
        if (q != NULL) {
            q->classes = classes;
            q->sort = d->nsorts++;
            q->next = s->sorts;
            s->sorts = q;
        }
    }
    sort = q == NULL ? s->sort : q->sort;
    heddle_spin_unlock(&d->shape_lock);
    return sort;
}
