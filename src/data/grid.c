/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grid: finds the views of a root near a box without looking at all of them.
 *
 * Purpose    a matrix cut into many tiles, with halos that overlap: each new view is
 *            compared with its neighbours, not with every other view.
 * Structure  the first two long dimensions of the root are looked at. Views of one size,
 *            up to a factor of two in each, form a level. The level has bins of twice
 *            that size, so a view stands in four bins at most: those that its bounding
 *            box touches. Bins are found by hashing; two bins of one hash are one.
 *            Two views that share an element: the box of one touches a bin of the other,
 *            on the level of the other.
 * Invariant  a view stands in exactly the bins of level_span() on its level and in the
 *            list of that level, or in none
 * Threads    registry lock held.
 * Cost       add and remove: what stands in four bins. Visit: for each level the bins
 *            touched and what stands in them, at most all its views.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/map.h"
#include "base/rng.h"
#include "data/data.h"

struct grid_list {
    heddle_handle **unit;
    uint32_t n, cap;
};

struct grid_level {
    unsigned shift[2]; /* bins of 2^shift elements */
    struct grid_list all;
};

struct heddle_grid {
    unsigned ndims;
    unsigned dim[2]; /* the dimensions that are looked at */
    uint64_t visit;  /* number of the last visit: a view is met once in each */
    struct grid_level *level;
    uint32_t nlevels, cap;
    struct heddle_map bin; /* bin_key() -> struct grid_list */
};

struct grid_span {
    size_t lo[2], hi[2]; /* bins, inclusive */
};

static struct heddle_grid *grid_create(const heddle_handle *root)
{
    struct heddle_grid *g = heddle_zalloc(&root->alloc, 1, sizeof(*g));
    const struct heddle_layout *l = &root->layout;

    if (g == NULL)
        return NULL;
    heddle_map_init(&g->bin, &root->alloc);
    for (unsigned d = 0; d < l->ndim && g->ndims < 2; d++)
        if (l->extent[d] > 1)
            g->dim[g->ndims++] = d;
    return g;
}

/* --- lists ---------------------------------------------------------------------- */

static heddle_status list_add(struct grid_list *b, heddle_handle *v)
{
    if (b->n == b->cap) {
        const uint32_t cap = b->cap == 0 ? 4 : 2 * b->cap;
        heddle_handle **p = heddle_zalloc(&v->alloc, cap, sizeof(*p));

        if (p == NULL)
            return HEDDLE_ENOMEM;
        if (b->n != 0)
            memcpy(p, b->unit, b->n * sizeof(*p));
        heddle_free(&v->alloc, b->unit, b->cap * sizeof(*p));
        b->unit = p;
        b->cap = cap;
    }
    b->unit[b->n++] = v;
    return HEDDLE_OK;
}

/* The youngest first: most views live a short or a long time. */
static void list_remove(struct grid_list *b, const heddle_handle *v)
{
    for (uint32_t i = b->n; i-- > 0;)
        if (b->unit[i] == v) {
            b->unit[i] = b->unit[--b->n];
            return;
        }
}

static void list_free(struct grid_list *b, const struct heddle_allocator *a)
{
    heddle_free(a, b->unit, b->cap * sizeof(*b->unit));
    b->unit = NULL;
    b->n = b->cap = 0;
}

/* --- levels and bins ---------------------------------------------------------- */

/* The smallest s with extent <= 2^s. */
static unsigned level_shift(size_t extent)
{
    unsigned s = 0;

    while (s < 63 && (UINT64_C(1) << s) < extent)
        s++;
    return s;
}

static size_t box_last(const struct heddle_box *b, unsigned d)
{
    return b->first[d] + (b->count[d] - 1) * b->step[d];
}

static struct grid_span level_span(const struct heddle_grid *g, const struct grid_level *k,
                                   const struct heddle_box *b)
{
    struct grid_span s = {.lo = {0, 0}, .hi = {0, 0}};

    for (unsigned i = 0; i < g->ndims; i++) {
        s.lo[i] = b->first[g->dim[i]] >> k->shift[i];
        s.hi[i] = box_last(b, g->dim[i]) >> k->shift[i];
    }
    return s;
}

static uint64_t bin_key(uint32_t level, size_t i, size_t j)
{
    return heddle_mix64(heddle_mix64((uint64_t)level << 40 ^ i) + j);
}

/* The level of boxes of that size; UINT32_MAX: no memory. */
static uint32_t grid_level(struct heddle_grid *g, const heddle_handle *v)
{
    struct grid_level k = {.all = {.n = 0}}, *p;
    uint32_t cap;

    for (unsigned i = 0; i < g->ndims; i++) {
        const unsigned d = g->dim[i];

        k.shift[i] = level_shift(box_last(&v->box, d) - v->box.first[d] + 1);
    }
    for (uint32_t i = 0; i < g->nlevels; i++)
        if (g->level[i].shift[0] == k.shift[0] && g->level[i].shift[1] == k.shift[1])
            return i;
    if (g->nlevels == g->cap) {
        cap = g->cap == 0 ? 4 : 2 * g->cap;
        p = heddle_zalloc(&v->alloc, cap, sizeof(*p));
        if (p == NULL)
            return UINT32_MAX;
        if (g->nlevels != 0)
            memcpy(p, g->level, g->nlevels * sizeof(*p));
        heddle_free(&v->alloc, g->level, g->cap * sizeof(*p));
        g->level = p;
        g->cap = cap;
    }
    g->level[g->nlevels] = k;
    return g->nlevels++;
}

/* A bin that is there, or NULL. */
static struct grid_list *grid_bin(const struct heddle_grid *g, uint32_t level, size_t i, size_t j)
{
    return heddle_map_get_ptr(&g->bin, bin_key(level, i, j));
}

static heddle_status bin_add(struct heddle_grid *g, heddle_handle *v, size_t i, size_t j)
{
    struct grid_list *b = grid_bin(g, v->level, i, j);

    if (b == NULL) {
        b = heddle_zalloc(&v->alloc, 1, sizeof(*b));
        if (b == NULL)
            return HEDDLE_ENOMEM;
        if (heddle_map_put_ptr(&g->bin, bin_key(v->level, i, j), b) != HEDDLE_OK) {
            heddle_free(&v->alloc, b, sizeof(*b));
            return HEDDLE_ENOMEM;
        }
    }
    return list_add(b, v);
}

static void bin_remove(struct heddle_grid *g, const heddle_handle *v, size_t i, size_t j)
{
    struct grid_list *b = grid_bin(g, v->level, i, j);

    if (b == NULL)
        return;
    list_remove(b, v);
    if (b->n != 0)
        return;
    (void)heddle_map_remove(&g->bin, bin_key(v->level, i, j), NULL);
    list_free(b, &v->alloc);
    heddle_free(&v->alloc, b, sizeof(*b));
}

/* --- the face ------------------------------------------------------------------- */

void heddle_grid_remove(heddle_handle *v)
{
    struct heddle_grid *g = v->root->grid;
    struct grid_level *k;
    struct grid_span s;

    if (g == NULL || v->root == v || v->level_slot == 0)
        return;
    k = &g->level[v->level];
    s = level_span(g, k, &v->box);
    for (size_t i = s.lo[0]; i <= s.hi[0]; i++)
        for (size_t j = s.lo[1]; j <= s.hi[1]; j++)
            bin_remove(g, v, i, j);
    k->all.unit[v->level_slot - 1] = k->all.unit[--k->all.n];
    k->all.unit[v->level_slot - 1]->level_slot = v->level_slot;
    v->level_slot = 0;
}

heddle_status heddle_grid_add(heddle_handle *v)
{
    heddle_handle *root = v->root;
    heddle_status st = HEDDLE_OK;
    struct grid_span s;

    if (root->grid == NULL)
        root->grid = grid_create(root);
    if (root->grid == NULL)
        return HEDDLE_ENOMEM;
    v->level = grid_level(root->grid, v);
    if (v->level == UINT32_MAX)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(list_add(&root->grid->level[v->level].all, v));
    v->level_slot = root->grid->level[v->level].all.n;
    s = level_span(root->grid, &root->grid->level[v->level], &v->box);
    for (size_t i = s.lo[0]; i <= s.hi[0] && st == HEDDLE_OK; i++)
        for (size_t j = s.lo[1]; j <= s.hi[1] && st == HEDDLE_OK; j++)
            st = bin_add(root->grid, v, i, j);
    if (st != HEDDLE_OK)
        heddle_grid_remove(v);
    return st;
}

/* One call of heddle_grid_visit(). */
struct grid_visit {
    heddle_handle *v;
    heddle_status (*fn)(heddle_handle *v, heddle_handle *near);
    uint64_t number;
    heddle_status st;
};

static void visit_list(struct grid_visit *t, const struct grid_list *b)
{
    for (uint32_t i = 0; b != NULL && i < b->n && t->st == HEDDLE_OK; i++)
        if (b->unit[i]->visit != t->number) {
            b->unit[i]->visit = t->number;
            t->st = t->fn(t->v, b->unit[i]);
        }
}

heddle_status heddle_grid_visit(heddle_handle *v,
                                heddle_status (*fn)(heddle_handle *v, heddle_handle *near))
{
    struct heddle_grid *g = v->root->grid;
    struct grid_visit t = {.v = v, .fn = fn, .st = HEDDLE_OK};

    if (g == NULL)
        return HEDDLE_OK;
    t.number = ++g->visit;
    for (uint32_t n = 0; n < g->nlevels; n++) {
        const struct grid_level *k = &g->level[n];
        const struct grid_span s = level_span(g, k, &v->box);
        const size_t wide = s.hi[0] - s.lo[0] + 1, high = s.hi[1] - s.lo[1] + 1;

        if (wide >= k->all.n || high >= k->all.n / wide) { /* as many bins as views */
            visit_list(&t, &k->all);
            continue;
        }
        for (size_t i = s.lo[0]; i <= s.hi[0]; i++)
            for (size_t j = s.lo[1]; j <= s.hi[1]; j++)
                visit_list(&t, grid_bin(g, n, i, j));
    }
    return t.st;
}

static bool box_is_same(const heddle_handle *u, const heddle_handle *v)
{
    for (unsigned d = 0; d < v->layout.ndim; d++)
        if (u->box.first[d] != v->box.first[d] || u->box.count[d] != v->box.count[d] ||
            u->box.step[d] != v->box.step[d] || u->layout.stride[d] != v->layout.stride[d])
            return false;
    return true;
}

heddle_handle *heddle_grid_find(const heddle_handle *v)
{
    struct heddle_grid *g = v->root->grid;
    const uint32_t level = g == NULL ? UINT32_MAX : grid_level(g, v);
    const struct grid_list *b;
    struct grid_span s;

    if (level == UINT32_MAX)
        return NULL;
    s = level_span(g, &g->level[level], &v->box);
    b = grid_bin(g, level, s.lo[0], s.lo[1]);
    for (uint32_t i = b == NULL ? 0 : b->n; i-- > 0;)
        if (box_is_same(b->unit[i], v))
            return b->unit[i];
    return NULL;
}

void heddle_grid_destroy(heddle_handle *root)
{
    struct heddle_grid *g = root->grid;
    const struct heddle_map_slot *s;
    size_t it = 0;

    if (g == NULL)
        return;
    while ((s = heddle_map_next(&g->bin, &it)) != NULL) {
        struct grid_list *b = (struct grid_list *)(uintptr_t)s->val;

        list_free(b, &root->alloc);
        heddle_free(&root->alloc, b, sizeof(*b));
    }
    heddle_map_fini(&g->bin);
    for (uint32_t i = 0; i < g->nlevels; i++)
        list_free(&g->level[i].all, &root->alloc);
    heddle_free(&root->alloc, g->level, g->cap * sizeof(*g->level));
    heddle_free(&root->alloc, g, sizeof(*g));
    root->grid = NULL;
}
