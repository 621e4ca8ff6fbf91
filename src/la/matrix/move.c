/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move: a matrix from and to memory of the program, by columns or by tiles.
 *
 * The caller acquires one block column after the other and copies it. Only one block
 * column is held at a time: other tasks may wait for several block columns, and there may
 * be no memory for more.
 *
 * Tiles lie in the order of PLASMA and Chameleon: the full tiles, then the tiles of the
 * last rows, then the tiles of the last columns, then the corner; in each of these four
 * parts one tile column after the other, and no gaps. With w, the width of a tile
 * column, and h, the rows of the full tiles above each other, the tile that begins in
 * row i and column j so is at
 *
 *     j h + i w             of full height, in a tile column of full width
 *     h n' + j (m - h)      of the last rows; n' columns are in such tile columns
 *     m n' + i w            in the last tile column, of whatever height
 */
#include "la/la.h"

/* ld > 0: columns ld elements apart; else tiles of mb x nb. */
struct move_arg {
    char *user;
    enum blas_type t;
    bool is_put;
    size_t m, n, ld, mb, nb;
    size_t first;        /* column of the matrix */
    struct blas_block a; /* the block column */
};

/* n elements of the matrix and of the program's memory. */
static void move(const struct move_arg *g, char *mine, size_t at, size_t n)
{
    const size_t bytes = blas_bytes(g->t);
    char *theirs = g->user + at * bytes;

    memcpy(g->is_put ? mine : theirs, g->is_put ? theirs : mine, n * bytes);
}

/* Where the tile begins that has its first element in row i, column j. */
static size_t tile_at(const struct move_arg *g, size_t i, size_t j)
{
    const size_t high = g->m - g->m % g->mb, wide = g->n - g->n % g->nb;

    if (j >= wide)
        return g->m * wide + i * (g->n - wide);
    return i < high ? j * high + i * g->nb : high * wide + j * (g->m - high);
}

/* The columns of a block column that are in the tile column from column j on. */
static void move_tiles(const struct move_arg *g, size_t j)
{
    const struct blas_block a = g->a;
    const size_t c0 = la_max(j, g->first);
    const size_t end = la_min(g->n - j > g->nb ? j + g->nb : g->n, g->first + a.n);

    for (size_t i = 0, h; i < g->m; i += h) {
        const size_t at = tile_at(g, i, j);

        h = la_min(g->mb, g->m - i);
        for (size_t c = c0; c < end; c++)
            move(g, blas_at(g->t, a, i, c - g->first), at + (c - j) * h, h);
    }
}

static void move_block(const struct move_arg *g)
{
    const struct blas_block a = g->a;
    const size_t end = g->first + a.n;

    for (size_t j = 0; j < a.n && g->ld > 0; j++)
        move(g, blas_at(g->t, a, 0, j), (g->first + j) * g->ld, a.m);
    for (size_t j = g->first; j < end && g->ld == 0;) {
        const size_t tile = j - j % g->nb;

        move_tiles(g, tile);
        j = end - tile > g->nb ? tile + g->nb : end;
    }
}

static heddle_status move_all(heddle_la *la, heddle_matrix *a, struct move_arg g)
{
    if (la == NULL || (g.user == NULL && a->nt > 0))
        return HEDDLE_EINVAL;
    g.t = a->t;
    g.m = a->m;
    g.n = a->n;
    for (size_t j = 0; j < a->nt; j++) {
        const struct heddle_layout *l = heddle_handle_get_layout(a->col[j]);
        void *p = NULL;

        LA_TRY(heddle_handle_acquire(a->col[j], g.is_put ? HEDDLE_W : HEDDLE_R, &p));
        g.first = la_first(a, j);
        g.a = (struct blas_block){p, a->m, la_width(a, j), l->stride[1]};
        move_block(&g);
        LA_TRY(heddle_handle_release(a->col[j]));
    }
    return HEDDLE_OK;
}

static heddle_status move_columns(heddle_la *la, heddle_matrix *a, void *user, size_t ld,
                                  bool is_put)
{
    if (a == NULL || ld < a->m)
        return HEDDLE_EINVAL;
    return move_all(la, a, (struct move_arg){.user = user, .ld = ld, .is_put = is_put});
}

static heddle_status move_by_tiles(heddle_la *la, heddle_matrix *a, void *user, size_t mb,
                                   size_t nb, bool is_put)
{
    if (a == NULL || mb == 0 || nb == 0)
        return HEDDLE_EINVAL;
    return move_all(la, a, (struct move_arg){.user = user, .mb = mb, .nb = nb, .is_put = is_put});
}

heddle_status heddle_matrix_put(heddle_la *la, heddle_matrix *a, const void *from, size_t ld)
{
    return move_columns(la, a, (void *)(uintptr_t)from, ld, true);
}

heddle_status heddle_matrix_get(heddle_la *la, heddle_matrix *a, void *to, size_t ld)
{
    return move_columns(la, a, to, ld, false);
}

heddle_status heddle_matrix_put_tiles(heddle_la *la, heddle_matrix *a, const void *from, size_t mb,
                                      size_t nb)
{
    return move_by_tiles(la, a, (void *)(uintptr_t)from, mb, nb, true);
}

heddle_status heddle_matrix_get_tiles(heddle_la *la, heddle_matrix *a, void *to, size_t mb,
                                      size_t nb)
{
    return move_by_tiles(la, a, to, mb, nb, false);
}
