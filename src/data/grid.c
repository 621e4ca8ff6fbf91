/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grid: finds the views of a root near a box without looking at all of them.
 *
 * Purpose    a matrix cut into thousands of tiles: each new tile is compared with
 *            its neighbours, not with every other tile.
 * Structure  the first two long dimensions of the root are cut into GRID bins
 *            each; a view stands in every bin that its bounding box touches. Two
 *            views that share an element share a bin.
 * Invariant  a view stands in exactly the bins of grid_span(), or in none
 * Threads    registry lock held.
 * Cost       add, remove and visit: the bins touched times what stands in them.
 */
#include <string.h>

#include "base/alloc.h"
#include "data/data.h"

enum { GRID = 32 };

struct grid_bin {
    heddle_handle **unit;
    uint32_t n, cap;
};

struct heddle_grid {
    unsigned dim[2]; /* the dimensions that are cut */
    size_t width[2]; /* elements per bin */
    uint32_t visit;  /* number of the last visit: a view is met once in each */
    struct grid_bin bin[GRID][GRID];
};

struct grid_span {
    unsigned lo[2], hi[2]; /* bins, inclusive */
};

static struct heddle_grid *grid_create(const heddle_handle *root)
{
    struct heddle_grid *g = heddle_zalloc(&root->alloc, 1, sizeof(*g));
    const struct heddle_layout *l = &root->layout;
    unsigned n = 0;

    if (g == NULL)
        return NULL;
    g->width[0] = g->width[1] = SIZE_MAX; /* a dimension that is not there */
    for (unsigned d = 0; d < l->ndim && n < 2; d++)
        if (l->extent[d] > 1) {
            g->dim[n] = d;
            g->width[n++] = l->extent[d] / GRID + 1;
        }
    return g;
}

static struct grid_span grid_span(const struct heddle_grid *g, const struct heddle_box *b)
{
    struct grid_span s;

    for (unsigned i = 0; i < 2; i++) {
        const unsigned d = g->dim[i];
        const size_t last = b->first[d] + (b->count[d] - 1) * b->step[d];

        s.lo[i] = (unsigned)(b->first[d] / g->width[i]);
        s.hi[i] = (unsigned)(last / g->width[i]);
    }
    return s;
}

static void bin_remove(struct grid_bin *b, const heddle_handle *v)
{
    for (uint32_t i = b->n; i-- > 0;)
        if (b->unit[i] == v) {
            b->unit[i] = b->unit[--b->n];
            return;
        }
}

static heddle_status bin_add(struct grid_bin *b, heddle_handle *v)
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

void heddle_grid_remove(heddle_handle *v)
{
    struct heddle_grid *g = v->root->grid;
    struct grid_span s;

    if (g == NULL || v->root == v)
        return;
    s = grid_span(g, &v->box);
    for (unsigned i = s.lo[0]; i <= s.hi[0]; i++)
        for (unsigned j = s.lo[1]; j <= s.hi[1]; j++)
            bin_remove(&g->bin[i][j], v);
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
    s = grid_span(root->grid, &v->box);
    for (unsigned i = s.lo[0]; i <= s.hi[0] && st == HEDDLE_OK; i++)
        for (unsigned j = s.lo[1]; j <= s.hi[1] && st == HEDDLE_OK; j++)
            st = bin_add(&root->grid->bin[i][j], v);
    if (st != HEDDLE_OK)
        heddle_grid_remove(v);
    return st;
}

heddle_status heddle_grid_visit(heddle_handle *v,
                                heddle_status (*fn)(heddle_handle *v, heddle_handle *near))
{
    struct heddle_grid *g = v->root->grid;
    heddle_status st = HEDDLE_OK;
    struct grid_span s;

    if (g == NULL)
        return HEDDLE_OK;
    s = grid_span(g, &v->box);
    g->visit++;
    for (unsigned i = s.lo[0]; i <= s.hi[0]; i++)
        for (unsigned j = s.lo[1]; j <= s.hi[1]; j++)
            for (uint32_t k = 0; k < g->bin[i][j].n; k++) {
                heddle_handle *u = g->bin[i][j].unit[k];

                if (u->visit == g->visit || st != HEDDLE_OK)
                    continue;
                u->visit = g->visit;
                st = fn(v, u);
            }
    return st;
}

void heddle_grid_destroy(heddle_handle *root)
{
    struct heddle_grid *g = root->grid;

    if (g == NULL)
        return;
    for (unsigned i = 0; i < GRID; i++)
        for (unsigned j = 0; j < GRID; j++)
            heddle_free(&root->alloc, g->bin[i][j].unit,
                        g->bin[i][j].cap * sizeof(heddle_handle *));
    heddle_free(&root->alloc, g, sizeof(*g));
    root->grid = NULL;
}
