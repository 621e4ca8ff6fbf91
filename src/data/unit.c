/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit: creation, views, memory and marks of handles.
 *
 * Purpose    everything about a handle except the order of tasks.
 * Invariants (1) u is in v's overlap list exactly when v is in u's, they have one
 *                root, are different, and share an element
 *            (2) a view's base is its root's base + offset_bytes, or NULL
 *            (3) reg->nmarks is the number of units with mark != 0
 *            (4) entry i of v's overlap list is u: then entry v->overlap_at[i] of u's
 *                list is v
 * Threads    see data.h.
 * Errors     statuses only; sentences are made by core, which knows names.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "data/data.h"

struct dtype_fact {
    const char *name;
    size_t bytes;
};

static const struct dtype_fact dtype_facts[] = {
    [HEDDLE_U8] = {"u8", 1},   [HEDDLE_I32] = {"i32", 4},   [HEDDLE_I64] = {"i64", 8},
    [HEDDLE_F16] = {"f16", 2}, [HEDDLE_BF16] = {"bf16", 2}, [HEDDLE_F32] = {"f32", 4},
    [HEDDLE_F64] = {"f64", 8}, [HEDDLE_C64] = {"c64", 8},   [HEDDLE_C128] = {"c128", 16},
};

#define NDTYPES (sizeof(dtype_facts) / sizeof(dtype_facts[0]))

enum { UNIT_LARGE = 4 << 20 }; /* bytes of memory that is worth huge pages */

size_t heddle_dtype_bytes(enum heddle_dtype t)
{
    return (size_t)t < NDTYPES ? dtype_facts[t].bytes : 0;
}

const char *heddle_dtype_name(enum heddle_dtype t)
{
    return (size_t)t < NDTYPES && dtype_facts[t].name != NULL ? dtype_facts[t].name : "unknown";
}

void heddle_registry_init(struct heddle_registry *reg, void *owner,
                          const struct heddle_allocator *a)
{
    *reg = (struct heddle_registry){.alloc = *a, .owner = owner, .next_id = 1};
    heddle_mutex_init(&reg->lock, HEDDLE_RANK_DATA, "registry");
}

void heddle_registry_fini(struct heddle_registry *reg)
{
    for (heddle_handle *h = reg->units; h != NULL; h = h->next)
        h->reg = NULL;
    reg->units = NULL;
    heddle_mutex_fini(&reg->lock);
}

static void unit_list(struct heddle_registry *reg, heddle_handle *h)
{
    heddle_mutex_lock(&reg->lock);
    h->id = reg->next_id++;
    h->prev = NULL;
    h->next = reg->units;
    if (reg->units != NULL)
        reg->units->prev = h;
    reg->units = h;
    heddle_mutex_unlock(&reg->lock);
}

static heddle_handle *unit_alloc(const struct heddle_allocator *a)
{
    heddle_handle *h = heddle_zalloc_aligned(a, 1, sizeof(*h), 64);

    if (h == NULL)
        return NULL;
    h->root = h;
    h->alloc = *a;
    h->dep.member = h->dep.inl;
    h->dep.cap = HEDDLE_DEP_INLINE;
    heddle_store_rlx(&h->refs, 1u); /* not shared yet */
    heddle_store_rlx(&h->users, 1u);
    return h;
}

/* Fills in dense strides; checks extents and that no two elements overlap. */
static heddle_status unit_check_layout(struct heddle_layout *l, size_t *count, size_t *span)
{
    bool is_dense = true;
    size_t n = 1, last = 0, sorted[HEDDLE_MAX_DIMS];

    HEDDLE_CHECK(heddle_dtype_bytes(l->dtype) != 0);
    HEDDLE_CHECK(l->ndim >= 1 && l->ndim <= HEDDLE_MAX_DIMS);
    for (unsigned d = 0; d < l->ndim; d++) {
        HEDDLE_CHECK(l->extent[d] != 0);
        if (!heddle_mul(&n, n, l->extent[d]))
            return HEDDLE_EOVERFLOW;
        is_dense = is_dense && l->stride[d] == 0;
    }
    if (is_dense) {
        size_t s = 1;

        for (unsigned d = l->ndim; d-- > 0; s *= l->extent[d])
            l->stride[d] = s;
    }
    for (unsigned d = 0; d < l->ndim; d++) {
        size_t reach, i = d;

        HEDDLE_CHECK(l->stride[d] != 0 || l->extent[d] == 1);
        if (!heddle_mul(&reach, l->extent[d] - 1, l->stride[d]) || !heddle_add(&last, last, reach))
            return HEDDLE_EOVERFLOW;
        for (; i > 0 && l->stride[sorted[i - 1]] > l->stride[d]; i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = d;
    }
    /* In order of stride, each must step over all that the smaller ones reach. */
    for (size_t i = 0, reach = 0; i < l->ndim; i++) {
        const size_t d = sorted[i];

        if (l->extent[d] == 1)
            continue;
        HEDDLE_CHECK(l->stride[d] > reach);
        reach += (l->extent[d] - 1) * l->stride[d];
    }
    if (last > SIZE_MAX / 4 / heddle_dtype_bytes(l->dtype))
        return HEDDLE_EOVERFLOW;
    *count = n;
    *span = (last + 1) * heddle_dtype_bytes(l->dtype);
    return HEDDLE_OK;
}

/* The layout of private copies: the same shape without gaps. */
static void unit_fill_dense(heddle_handle *h)
{
    size_t s = 1;

    h->dense = h->layout;
    for (unsigned d = h->dense.ndim; d-- > 0; s *= h->dense.extent[d])
        h->dense.stride[d] = s;
    h->shape = heddle_mix64((uint64_t)h->layout.dtype << 8 | h->layout.ndim);
    for (unsigned d = 0; d < h->layout.ndim; d++)
        h->shape = heddle_mix64((h->shape ^ h->layout.extent[d]) + UINT64_C(0x9e3779b97f4a7c15));
}

heddle_status heddle_unit_create(struct heddle_registry *reg, const struct heddle_layout *layout,
                                 void *ptr, heddle_handle **h_out)
{
    struct heddle_layout l = *layout;
    size_t count, span;
    heddle_handle *h;

    HEDDLE_TRY(unit_check_layout(&l, &count, &span));
    h = unit_alloc(&reg->alloc);
    if (h == NULL)
        return HEDDLE_ENOMEM;
    h->reg = reg;
    h->layout = l;
    h->count = count;
    h->bytes = count * heddle_dtype_bytes(l.dtype);
    h->span_bytes = span;
    h->owns_memory = ptr == NULL;
    if (ptr == NULL)
        heddle_store_rlx(&h->noverlaps, HEDDLE_UNIT_LAZY); /* not shared yet */
    heddle_store_rlx(&h->base, ptr);                       /* not shared yet */
    for (unsigned d = 0; d < l.ndim; d++) {
        h->box.count[d] = l.extent[d];
        h->box.step[d] = 1;
    }
    unit_fill_dense(h);
    unit_list(reg, h);
    *h_out = h;
    return HEDDLE_OK;
}

static heddle_status unit_grow_overlaps(heddle_handle *h)
{
    const uint32_t cap = h->overlap_cap == 0 ? 4 : 2 * h->overlap_cap;
    const uint32_t n = heddle_unit_noverlaps(h);
    heddle_handle **p;
    uint32_t *at;

    if (n < h->overlap_cap)
        return HEDDLE_OK;
    p = heddle_zalloc(&h->alloc, cap, sizeof(*p));
    at = heddle_zalloc(&h->alloc, cap, sizeof(*at));
    if (p == NULL || at == NULL) {
        heddle_free(&h->alloc, p, cap * sizeof(*p));
        heddle_free(&h->alloc, at, cap * sizeof(*at));
        return HEDDLE_ENOMEM;
    }
    if (n != 0) {
        memcpy(p, h->overlap, n * sizeof(*p));
        memcpy(at, h->overlap_at, n * sizeof(*at));
    }
    heddle_free(&h->alloc, h->overlap, h->overlap_cap * sizeof(*p));
    heddle_free(&h->alloc, h->overlap_at, h->overlap_cap * sizeof(*at));
    h->overlap = p;
    h->overlap_at = at;
    h->overlap_cap = cap;
    return HEDDLE_OK;
}

/* The length of a list: whoever changes it holds both locks. */
static void unit_set_noverlaps(heddle_handle *h, uint32_t n)
{
    heddle_store_rlx(&h->noverlaps, n | (heddle_load_rlx(&h->noverlaps) & HEDDLE_UNIT_LAZY));
}

/* Takes entry i out of v's list: the last one takes its place. */
static void unit_forget_at(heddle_handle *v, uint32_t i)
{
    const uint32_t n = heddle_unit_noverlaps(v) - 1;

    v->overlap[i] = v->overlap[n];
    v->overlap_at[i] = v->overlap_at[n];
    v->overlap[i]->overlap_at[v->overlap_at[i]] = i; /* invariant (4) */
    unit_set_noverlaps(v, n);
}

static void unit_unlink(heddle_handle *v)
{
    for (uint32_t i = 0; i < heddle_unit_noverlaps(v); i++)
        unit_forget_at(v->overlap[i], v->overlap_at[i]);
    unit_set_noverlaps(v, 0);
}

static heddle_status unit_meet(heddle_handle *v, heddle_handle *u)
{
    const uint32_t nv = heddle_unit_noverlaps(v), nu = heddle_unit_noverlaps(u);

    if (!heddle_box_overlap(&u->box, &v->box, v->root->layout.ndim))
        return HEDDLE_OK;
    HEDDLE_TRY(unit_grow_overlaps(u));
    HEDDLE_TRY(unit_grow_overlaps(v));
    u->overlap[nu] = v;
    u->overlap_at[nu] = nv;
    unit_set_noverlaps(u, nu + 1);
    v->overlap[nv] = u;
    v->overlap_at[nv] = nu;
    unit_set_noverlaps(v, nv + 1);
    return HEDDLE_OK;
}

/* Invariant (1), for a new view. Registry lock held. */
static heddle_status unit_link(heddle_handle *v)
{
    heddle_status st = unit_meet(v, v->root);

    if (st == HEDDLE_OK)
        st = heddle_grid_visit(v, unit_meet);
    if (st == HEDDLE_OK)
        st = heddle_grid_add(v);
    if (st != HEDDLE_OK)
        unit_unlink(v);
    return st;
}

static heddle_status unit_view_box(const heddle_handle *h, heddle_handle *v, const size_t *offset,
                                   const size_t *extent, const size_t *step)
{
    const size_t elem = heddle_dtype_bytes(h->layout.dtype);

    v->count = 1;
    v->offset_bytes = h->offset_bytes;
    for (unsigned d = 0; d < h->layout.ndim; d++) {
        const size_t s = step == NULL ? 1 : step[d];
        size_t reach;

        HEDDLE_CHECK(s != 0 && extent[d] != 0);
        HEDDLE_CHECK(heddle_mul(&reach, extent[d] - 1, s) && heddle_add(&reach, reach, offset[d]) &&
                     reach < h->layout.extent[d]);
        v->layout.extent[d] = extent[d];
        v->layout.stride[d] = h->layout.stride[d] * (extent[d] == 1 ? 1 : s);
        v->box.first[d] = h->box.first[d] + offset[d] * h->box.step[d];
        v->box.count[d] = extent[d];
        v->box.step[d] = extent[d] == 1 ? 1 : h->box.step[d] * s;
        v->offset_bytes += offset[d] * h->layout.stride[d] * elem;
        v->count *= extent[d];
    }
    v->bytes = v->count * elem;
    return HEDDLE_OK;
}

/* Ghosts that have lost their mark are of no use any more. */
static void unit_sweep_ghosts(heddle_handle *root)
{
    if (root->nghosts == 0)
        return;
    for (uint32_t i = heddle_unit_noverlaps(root); i-- > 0;) {
        heddle_handle *v = root->overlap[i];

        if (v->is_ghost && heddle_load_acq(&v->mark) == 0) {
            (void)heddle_unit_destroy(v);
            root->nghosts--;
        }
    }
}

/* A view of the box of v that tasks still have and the program has not, with a reference.
 * (What the program has is a name of its own: a recorded region may bind it.) */
static heddle_handle *unit_find(const heddle_handle *v)
{
    struct heddle_registry *reg = v->reg;
    heddle_handle *u;
    uint32_t refs, yes = 1;

    heddle_mutex_lock(&reg->lock);
    u = heddle_grid_find(v);
    refs = u == NULL || u->is_ghost || u->is_zombie || !heddle_cas_acqrel(&u->is_dropped, &yes, 0u)
               ? 0
               : heddle_load_acq(&u->refs);
    while (refs != 0 && !heddle_cas_acqrel(&u->refs, &refs, refs + 1))
        ;
    if (refs != 0)
        heddle_add_rlx(&u->users, 1u);
    heddle_mutex_unlock(&reg->lock);
    return refs != 0 ? u : NULL;
}

static heddle_status unit_view(heddle_handle *h, const size_t *offset, const size_t *extent,
                               const size_t *step, bool shares, heddle_handle **view_out)
{
    heddle_handle *v = unit_alloc(&h->alloc);
    heddle_status st;
    char *root_base;

    if (v == NULL)
        return HEDDLE_ENOMEM;
    v->layout.dtype = h->layout.dtype;
    v->layout.ndim = h->layout.ndim;
    v->root = h->root;
    v->reg = h->reg;
    v->span_bytes = 0;
    st = unit_view_box(h, v, offset, extent, step);
    if (st != HEDDLE_OK) {
        heddle_free(&v->alloc, v, sizeof(*v));
        return st;
    }
    *view_out = shares ? unit_find(v) : NULL;
    if (*view_out != NULL) {
        heddle_free(&v->alloc, v, sizeof(*v));
        return HEDDLE_OK;
    }
    unit_fill_dense(v);
    /* Acquire: pairs with heddle_unit_memory(). */
    root_base = heddle_load_acq(&h->root->base);
    if (root_base != NULL)
        heddle_store_rlx(&v->base, root_base + v->offset_bytes);
    else
        heddle_store_rlx(&v->noverlaps, HEDDLE_UNIT_LAZY); /* not shared yet */
    unit_sweep_ghosts(h->root);
    unit_list(h->reg, v);
    heddle_mutex_lock(&h->reg->lock);
    st = unit_link(v);
    heddle_mutex_unlock(&h->reg->lock);
    heddle_add_rlx(&h->root->refs, 1u); /* the caller holds one, so it is > 0 */
    if (st != HEDDLE_OK) {
        (void)heddle_unit_destroy(v);
        heddle_sub_acqrel(&h->root->refs, 1u);
        return st;
    }
    *view_out = v;
    return HEDDLE_OK;
}

heddle_status heddle_unit_view(heddle_handle *h, const size_t *offset, const size_t *extent,
                               const size_t *step, heddle_handle **view_out)
{
    return unit_view(h, offset, extent, step, false, view_out);
}

heddle_status heddle_unit_share(heddle_handle *h, const size_t *offset, const size_t *extent,
                                const size_t *step, heddle_handle **view_out)
{
    return unit_view(h, offset, extent, step, true, view_out);
}

static void unit_set_mark(heddle_handle *h, int mark)
{
    const int old = heddle_xchg_acqrel(&h->mark, mark);

    if (old == 0 && mark != 0)
        heddle_add_acqrel(&h->reg->nmarks, 1u); /* invariant (3) */
    else if (old != 0 && mark == 0)
        heddle_sub_acqrel(&h->reg->nmarks, 1u);
}

/* Ghosts of a root that goes. */
static void unit_destroy_ghosts(heddle_handle *root)
{
    for (uint32_t i = heddle_unit_noverlaps(root); i-- > 0;)
        if (root->overlap[i]->is_ghost)
            (void)heddle_unit_destroy(root->overlap[i]);
}

heddle_handle *heddle_unit_destroy(heddle_handle *h)
{
    const bool is_view = h->root != h;
    heddle_handle *root = is_view && !h->is_ghost ? h->root : NULL;
    const struct heddle_allocator a = h->alloc;
    struct heddle_registry *reg = h->reg;

    if (heddle_load_acq(&h->where) != NULL && reg != NULL && reg->forget != NULL)
        reg->forget(reg->owner, h);
    if (is_view && reg != NULL && !h->is_ghost && heddle_load_acq(&h->mark) != 0) {
        h->is_ghost = true;
        root->nghosts++;
        return root;
    }
    if (!is_view)
        unit_destroy_ghosts(h);
    if (reg != NULL) {
        unit_set_mark(h, 0);
        heddle_mutex_lock(&reg->lock);
        unit_unlink(h);
        heddle_grid_remove(h);
        if (h->prev != NULL)
            h->prev->next = h->next;
        else
            reg->units = h->next;
        if (h->next != NULL)
            h->next->prev = h->prev;
        heddle_mutex_unlock(&reg->lock);
    } else {
        unit_unlink(h);
        heddle_grid_remove(h);
    }
    heddle_grid_destroy(h);
    heddle_partial_drop(h);
    if (!is_view && h->owns_memory) {
        char *p = heddle_load_acq(&h->base);

        if (p != NULL && reg != NULL) {
            heddle_mutex_lock(&reg->lock);
            atomic_fetch_sub_explicit(&reg->used, h->span_bytes,
                                      memory_order_relaxed); /* a counter */
            if (reg->changed != NULL)
                reg->changed(reg->owner, h, true);
            heddle_mutex_unlock(&reg->lock);
        }
        heddle_free(&a, p, h->span_bytes);
        if (h->has_promise && reg != NULL)
            (void)heddle_sub_acqrel(&reg->promised, h->span_bytes);
    }
    if (h->dep.member != h->dep.inl)
        heddle_free(&a, h->dep.member, h->dep.cap * sizeof(heddle_ref));
    heddle_free(&a, h->overlap, h->overlap_cap * sizeof(*h->overlap));
    heddle_free(&a, h->overlap_at, h->overlap_cap * sizeof(*h->overlap_at));
    heddle_strfree(&a, h->name);
    heddle_free(&a, h, sizeof(*h));
    return root;
}

/* Zeroed; on a line of a cache, and what is large in huge pages. */
static char *unit_zalloc(const struct heddle_allocator *a, size_t bytes)
{
    char *p =
        bytes < UNIT_LARGE ? heddle_alloc_aligned(a, bytes, 64) : heddle_alloc_large(a, bytes);

    if (p != NULL)
        memset(p, 0, bytes);
    return p;
}

bool heddle_unit_promise(heddle_handle *root)
{
    struct heddle_registry *reg = root->reg;
    size_t have = heddle_load_acq(&reg->promised);

    if (!root->owns_memory || root->has_promise || reg->budget == 0)
        return true;
    do
        if (root->span_bytes > reg->budget || have > reg->budget - root->span_bytes)
            return false;
    while (!heddle_cas_acqrel(&reg->promised, &have, have + root->span_bytes));
    root->has_promise = true;
    return true;
}

/* Allocates the memory of a root unless somebody has; NULL: cannot be. */
static char *unit_allocate(heddle_handle *root)
{
    struct heddle_registry *reg = root->reg;
    char *p;

    heddle_mutex_lock(&reg->lock); /* two first users: one allocates */
    p = heddle_load_rlx(&root->base);
    if (p == NULL &&
        (reg->budget == 0 || heddle_load_rlx(&reg->used) + root->span_bytes <= reg->budget))
        p = unit_zalloc(&root->alloc, root->span_bytes);
    if (p != NULL && heddle_load_rlx(&root->base) == NULL) {
        const size_t used = heddle_add_rlx(&reg->used, root->span_bytes) + root->span_bytes;

        if (used > heddle_load_rlx(&reg->peak)) /* both are counters */
            heddle_store_rlx(&reg->peak, used);
        if (reg->changed != NULL)
            reg->changed(reg->owner, root, false);
        /* Publishes the zeroed memory; pairs with heddle_unit_base(). */
        heddle_store_rel(&root->base, p);
    }
    heddle_mutex_unlock(&reg->lock);
    return p;
}

void *heddle_unit_memory(heddle_handle *h)
{
    heddle_handle *root = h->root;
    char *p = heddle_load_acq(&root->base);

    if (p == NULL)
        p = unit_allocate(root);
    if (p == NULL || h == root)
        return p;
    p += h->offset_bytes;
    heddle_store_rel(&h->base, p); /* as above */
    return p;
}

void heddle_unit_mark(heddle_handle *h, heddle_status st)
{
    unit_set_mark(h, (int)st);
}

void heddle_unit_unmark(heddle_handle *h)
{
    unit_set_mark(h, 0);
    if (heddle_unit_noverlaps(h) == 0)
        return;
    heddle_mutex_lock(&h->reg->lock);
    for (uint32_t i = 0; i < heddle_unit_noverlaps(h); i++)
        if (heddle_box_contains(&h->box, &h->overlap[i]->box, h->root->layout.ndim))
            unit_set_mark(h->overlap[i], 0);
    heddle_mutex_unlock(&h->reg->lock);
}

heddle_status heddle_unit_marked(heddle_handle *h)
{
    /* Acquire: pairs with unit_set_mark() on the failing worker. */
    int mark = heddle_load_acq(&h->mark);

    if (mark != 0 || heddle_unit_noverlaps(h) == 0)
        return (heddle_status)mark;
    heddle_mutex_lock(&h->reg->lock);
    for (uint32_t i = 0; i < heddle_unit_noverlaps(h) && mark == 0; i++)
        mark = heddle_load_acq(&h->overlap[i]->mark);
    heddle_mutex_unlock(&h->reg->lock);
    return (heddle_status)mark;
}

const char *heddle_unit_name(const heddle_handle *h, char *buf, size_t cap)
{
    if (h->name != NULL)
        return h->name;
    snprintf(buf, cap, "%s %u", h->root == h ? "handle" : "view", h->id);
    return buf;
}
