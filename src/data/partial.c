/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * partial: private copies for reductions, and walks over strided elements.
 *
 * Structure  a task that reduces takes a free partial result, or makes one, and
 *            gives it back when it ends; so there are never more than tasks that
 *            ran at once. The combine task, which the dependency layer puts in
 *            front of the next other access, adds them up. Partials are dense.
 * Invariants (1) between combine and the next reduction the list is empty
 * Threads    extra.lock guards the list; a taken partial belongs to its task.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "data/data.h"

static bool unit_is_dense(const heddle_handle *h)
{
    for (unsigned d = 0; d < h->layout.ndim; d++)
        if (h->layout.extent[d] != 1 && h->layout.stride[d] != h->dense.stride[d])
            return false;
    return true;
}

struct heddle_partial *heddle_partial_take(heddle_handle *h)
{
    struct heddle_extra *e = &h->extra;
    struct heddle_partial *p;

    heddle_spin_lock(&e->lock);
    p = e->free;
    if (p != NULL)
        e->free = p->next;
    heddle_spin_unlock(&e->lock);
    if (p != NULL)
        return p;
    p = heddle_alloc(&h->alloc, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->mem = heddle_alloc_aligned(&h->alloc, h->bytes, 64);
    if (p->mem == NULL) {
        heddle_free(&h->alloc, p, sizeof(*p));
        return NULL;
    }
    e->reduction.init(p->mem, &h->dense, e->reduction.user);
    return p;
}

void heddle_partial_give(heddle_handle *h, struct heddle_partial *p)
{
    heddle_spin_lock(&h->extra.lock);
    p->next = h->extra.free;
    h->extra.free = p;
    heddle_spin_unlock(&h->extra.lock);
}

static void partial_free(heddle_handle *h, struct heddle_partial *p)
{
    heddle_free(&h->alloc, p->mem, h->bytes);
    heddle_free(&h->alloc, p, sizeof(*p));
}

void heddle_partial_drop(heddle_handle *h)
{
    struct heddle_partial *p = h->extra.free, *next;

    h->extra.free = NULL;
    for (; p != NULL; p = next) {
        next = p->next;
        partial_free(h, p);
    }
}

/* All partials into `acc`, a dense array. */
static void partial_add_all(heddle_handle *h, void *acc)
{
    const struct heddle_reduction *r = &h->extra.reduction;

    for (struct heddle_partial *p = h->extra.free; p != NULL; p = p->next)
        r->combine(acc, p->mem, &h->dense, r->user);
}

heddle_status heddle_partial_combine(heddle_handle *h)
{
    char *base = heddle_unit_base(h);
    void *tmp = NULL;

    if (base == NULL)
        return HEDDLE_ENOMEM;
    if (h->extra.free == NULL)
        return HEDDLE_OK;
    if (!unit_is_dense(h)) {
        tmp = heddle_alloc_aligned(&h->alloc, h->bytes, 64);
        if (tmp == NULL)
            return HEDDLE_ENOMEM;
        heddle_unit_pack(h, base, tmp);
    }
    partial_add_all(h, tmp != NULL ? tmp : base);
    if (tmp != NULL) {
        heddle_unit_unpack(h, tmp, base);
        heddle_free(&h->alloc, tmp, h->bytes);
    }
    heddle_partial_drop(h);
    return HEDDLE_OK;
}

/* Calls fn for each run of elements along the last dimension. */
struct unit_walk {
    const heddle_handle *h;
    char *strided;
    char *dense;
    uint64_t hash;
    void (*row)(struct unit_walk *w, size_t offset, size_t stride, size_t n);
};

static void unit_walk_rows(struct unit_walk *w)
{
    const struct heddle_layout *l = &w->h->layout;
    const size_t elem = heddle_dtype_bytes(l->dtype);
    const unsigned last = l->ndim - 1;
    size_t idx[HEDDLE_MAX_DIMS] = {0}, offset = 0;

    for (;;) {
        unsigned d = last;

        w->row(w, offset * elem, l->stride[last] * elem, l->extent[last]);
        while (d-- > 0) {
            offset += l->stride[d];
            if (++idx[d] < l->extent[d])
                break;
            offset -= l->stride[d] * l->extent[d];
            idx[d] = 0;
        }
        if (d == (unsigned)-1)
            return;
    }
}

static void row_copy(struct unit_walk *w, size_t offset, size_t stride, size_t n, bool to_dense)
{
    const size_t elem = heddle_dtype_bytes(w->h->layout.dtype);
    char *s = w->strided + offset;

    for (size_t i = 0; i < n; i++, s += stride, w->dense += elem)
        memcpy(to_dense ? w->dense : s, to_dense ? s : w->dense, elem);
}

static void row_pack(struct unit_walk *w, size_t offset, size_t stride, size_t n)
{
    row_copy(w, offset, stride, n, true);
}

static void row_unpack(struct unit_walk *w, size_t offset, size_t stride, size_t n)
{
    row_copy(w, offset, stride, n, false);
}

static void row_hash(struct unit_walk *w, size_t offset, size_t stride, size_t n)
{
    const size_t elem = heddle_dtype_bytes(w->h->layout.dtype);

    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = (const unsigned char *)w->strided + offset + i * stride;

        for (size_t b = 0; b < elem; b++)
            w->hash = (w->hash ^ p[b]) * UINT64_C(1099511628211);
    }
}

/* The walk writes through `strided` only in row_unpack, which got a writable
 * pointer; the cast through uintptr_t keeps the const of the other two. */
static char *unit_writable(const void *p)
{
    return (char *)(uintptr_t)p;
}

void heddle_unit_pack(const heddle_handle *h, const void *base, void *dense)
{
    struct unit_walk w = {.h = h, .strided = unit_writable(base), .dense = dense, .row = row_pack};

    unit_walk_rows(&w);
}

void heddle_unit_unpack(const heddle_handle *h, const void *dense, void *base)
{
    struct unit_walk w = {
        .h = h, .strided = base, .dense = unit_writable(dense), .row = row_unpack};

    unit_walk_rows(&w);
}

uint64_t heddle_unit_hash(const heddle_handle *h, const void *base)
{
    struct unit_walk w = {.h = h,
                          .strided = unit_writable(base),
                          .hash = UINT64_C(14695981039346656037),
                          .row = row_hash};

    unit_walk_rows(&w);
    return w.hash;
}
