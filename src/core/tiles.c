/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tiles: a matrix as a grid of views, made and dropped together.
 *
 * Structure  one block: the object, then its views, column of tiles by column.
 * Threads    a grid never changes; it is created and destroyed by one thread.
 * Lifetime   the grid holds one reference to each view, each view one to its
 *            matrix. The context may be gone when a grid is destroyed.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "core/error.h"
#include "data/data.h"

struct heddle_tiles {
    struct heddle_allocator alloc; /* of the matrix */
    size_t bytes;                  /* of this block */
    size_t mt, nt;                 /* tiles in a column, in a row */
    heddle_handle *tile[];         /* [mt * nt]; tile (i, j) is number i + j * mt */
};

/* Bytes of a grid of mt x nt tiles. */
static bool tiles_bytes(size_t mt, size_t nt, size_t *out)
{
    size_t n;

    return heddle_mul(&n, mt, nt) && heddle_mul(&n, n, sizeof(heddle_handle *)) &&
           heddle_add(out, n, sizeof(heddle_tiles));
}

heddle_status heddle_tiles_create(heddle_handle *h, size_t mb, size_t nb, heddle_tiles **tiles_out)
{
    heddle_status st = HEDDLE_OK;
    size_t mt, nt, bytes;
    heddle_tiles *t;

    HEDDLE_CHECK(h != NULL && tiles_out != NULL && mb != 0 && nb != 0 && h->layout.ndim == 2);
    if (h->reg == NULL)
        return HEDDLE_ESTATE;
    mt = (h->layout.extent[0] - 1) / mb + 1; /* no extent is 0 */
    nt = (h->layout.extent[1] - 1) / nb + 1;
    if (!tiles_bytes(mt, nt, &bytes))
        return heddle_fail(h->reg->owner, HEDDLE_EOVERFLOW, "%zu x %zu tiles are too many", mt, nt);
    t = heddle_zalloc(&h->alloc, 1, bytes);
    if (t == NULL)
        return heddle_fail(h->reg->owner, HEDDLE_ENOMEM, "no memory for %zu x %zu tiles", mt, nt);
    t->alloc = h->alloc;
    t->bytes = bytes;
    t->mt = mt;
    t->nt = nt;
    for (size_t i = 0; i < mt * nt && st == HEDDLE_OK; i++)
        st = heddle_view_tile(h, i % mt, i / mt, mb, nb, &t->tile[i]);
    if (st != HEDDLE_OK) {
        heddle_tiles_destroy(t);
        return st;
    }
    *tiles_out = t;
    return HEDDLE_OK;
}

void heddle_tiles_destroy(heddle_tiles *t)
{
    struct heddle_allocator a;

    if (t == NULL)
        return;
    a = t->alloc;
    for (size_t i = 0; i < t->mt * t->nt; i++)
        heddle_handle_unref(t->tile[i]);
    heddle_free(&a, t, t->bytes);
}

heddle_handle *heddle_tiles_get(const heddle_tiles *t, size_t i, size_t j)
{
    return t != NULL && i < t->mt && j < t->nt ? t->tile[i + j * t->mt] : NULL;
}

size_t heddle_tiles_rows(const heddle_tiles *t)
{
    return t != NULL ? t->mt : 0;
}

size_t heddle_tiles_cols(const heddle_tiles *t)
{
    return t != NULL ? t->nt : 0;
}
