/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move: a matrix from and to memory of the program, by columns or by tiles.
 *
 * The caller acquires one block column after the other, so it has all rights and
 * failures at once; a task on a core copies it, while the next one is on its way. The
 * call waits for these tasks alone, in a group of their own: what else the sequence has
 * to do goes on.
 *
 * Tiles lie as PLASMA and Chameleon have them: those of full size, then those of the
 * last rows, then those of the last columns, then the corner; in each of these four
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
    enum heddle_la_type t;
    bool is_put;
    size_t m, n, ld, mb, nb;
    size_t first;      /* column of the matrix */
    struct la_block a; /* the block column */
};

/* n elements of the matrix and of the program's memory. */
static void move(const struct move_arg *g, char *mine, size_t at, size_t n)
{
    const size_t bytes = la_bytes(g->t);
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
    const struct la_block a = g->a;
    const size_t c0 = la_max(j, g->first);
    const size_t end =
        la_min(g->n - j > g->nb ? j + g->nb : g->n, g->first + a.n);

    for (size_t i = 0, h; i < g->m; i += h) {
        const size_t at = tile_at(g, i, j);

        h = la_min(g->mb, g->m - i);
        for (size_t c = c0; c < end; c++)
            move(g, la_at(g->t, a, i, c - g->first), at + (c - j) * h, h);
    }
}

static heddle_status run_move(struct heddle_exec *x)
{
    const struct move_arg *g = heddle_exec_arg(x);
    const struct la_block a = g->a;
    const size_t end = g->first + a.n;

    for (size_t j = 0; j < a.n && g->ld > 0; j++)
        move(g, la_at(g->t, a, 0, j), (g->first + j) * g->ld, a.m);
    for (size_t j = g->first; j < end && g->ld == 0;) {
        const size_t tile = j - j % g->nb;

        move_tiles(g, tile);
        j = end - tile > g->nb ? tile + g->nb : end;
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_move(struct heddle_exec *x)
{
    const struct move_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){
        .bytes = 2 * (double)(g->a.m * g->a.n * la_bytes(g->t))};
}

static const heddle_kernel kernel_move = {
    .size = sizeof(heddle_kernel),
    .name = "la_move",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_move}},
    .cost = cost_move};

/* Block column j, which is held afterwards if *nheld says so. */
static heddle_status move_column(heddle_la *la, heddle_matrix *a, size_t j,
                                 struct move_arg g, heddle_group *group,
                                 size_t *nheld)
{
    const struct heddle_task_opts o = {.size = sizeof(o), .group = group};
    const struct heddle_layout *l = heddle_handle_get_layout(a->col[j]);
    void *p = NULL;

    LA_TRY(
        heddle_handle_acquire(a->col[j], g.is_put ? HEDDLE_W : HEDDLE_R, &p));
    ++*nheld;
    g.first = la_first(a, j);
    g.a = (struct la_block){p, a->m, la_width(a, j), l->stride[1]};
    return heddle_submit(la->ctx, &kernel_move,
                         &(struct heddle_call){.arg = &g,
                                               .arg_bytes = sizeof(g),
                                               .priority = la->opts.priority,
                                               .opts = &o});
}

static heddle_status move_all(heddle_la *la, heddle_matrix *a,
                              struct move_arg g)
{
    heddle_group *group = NULL;
    heddle_status st = HEDDLE_OK, more;
    size_t nheld = 0;

    if (a->nt == 0)
        return HEDDLE_OK;
    if (g.user == NULL)
        return HEDDLE_EINVAL;
    g.t = a->t;
    g.m = a->m;
    g.n = a->n;
    LA_TRY(heddle_group_create(la->ctx, &group));
    for (size_t j = 0; j < a->nt && st == HEDDLE_OK; j++)
        st = move_column(la, a, j, g, group, &nheld);
    more = heddle_group_wait(group, 0);
    st = st != HEDDLE_OK ? st : more;
    while (nheld > 0) {
        more = heddle_handle_release(a->col[--nheld]);
        st = st != HEDDLE_OK ? st : more;
    }
    heddle_group_unref(group);
    return st;
}

static heddle_status move_columns(heddle_la *la, heddle_matrix *a, void *user,
                                  size_t ld, bool is_put)
{
    if (la == NULL || a == NULL || ld < a->m)
        return HEDDLE_EINVAL;
    return move_all(
        la, a, (struct move_arg){.user = user, .ld = ld, .is_put = is_put});
}

static heddle_status move_by_tiles(heddle_la *la, heddle_matrix *a, void *user,
                                   size_t mb, size_t nb, bool is_put)
{
    if (la == NULL || a == NULL || mb == 0 || nb == 0)
        return HEDDLE_EINVAL;
    return move_all(
        la, a,
        (struct move_arg){.user = user, .mb = mb, .nb = nb, .is_put = is_put});
}

heddle_status heddle_matrix_put(heddle_la *la, heddle_matrix *a,
                                const void *from, size_t ld)
{
    return move_columns(la, a, (void *)(uintptr_t)from, ld, true);
}

heddle_status heddle_matrix_get(heddle_la *la, heddle_matrix *a, void *to,
                                size_t ld)
{
    return move_columns(la, a, to, ld, false);
}

heddle_status heddle_matrix_put_tiles(heddle_la *la, heddle_matrix *a,
                                      const void *from, size_t mb, size_t nb)
{
    return move_by_tiles(la, a, (void *)(uintptr_t)from, mb, nb, true);
}

heddle_status heddle_matrix_get_tiles(heddle_la *la, heddle_matrix *a, void *to,
                                      size_t mb, size_t nb)
{
    return move_by_tiles(la, a, to, mb, nb, false);
}
