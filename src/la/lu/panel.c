/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * panel: a panel of LU with partial pivoting by a gang of cores.
 *
 * Halves     the columns are cut in two until few (LA_LEAF) are left: factorise the
 *            left half, solve for its rows of the right half, multiply, factorise the
 *            right half. So most of the work is products, in which each member updates
 *            its own rows.
 * Leaf       the remaining rows are dealt out anew, one piece to each part, and each
 *            member copies its piece (leaf.h). For each column every part publishes its
 *            largest element and the row of it, the first part also the row of the
 *            diagonal; then all members meet at a barrier. After the barrier each
 *            member knows which two rows are exchanged and their contents, computes the
 *            row of U itself, and changes its own rows only: one barrier per column.
 * Invariants (1) the result depends on the number of parts, not on which member
 *                computes which part
 *            (2) there are two copies of what the parts publish, used in turn: a member
 *                that overwrites a copy has met all its readers at a barrier
 *            (3) all members take the same branches: what one member alone knows (no
 *                memory) is published before the first barrier
 */
#include "la/lu/panel.h"

#include <float.h>
#include <math.h>

#include "la/lu/leaf.h"

enum {
    LEAST = 64,         /* rows of a part; a multiple of it has whole blocks of a leaf */
    PAIRS = 2 * LA_LEAF /* numbers of a row of a leaf */
};

/* What a part tells of a column. */
struct told {
    double value; /* the size of its largest element */
    size_t row;   /* of the leaf, and what is in it */
    double best[PAIRS];
    double diagonal[PAIRS]; /* the first part: of the row that comes next */
} __attribute__((aligned(64)));

struct room {
    bool is_short[LA_PANEL_MOST]; /* a member has no memory */
    struct told told[2][LA_PANEL_MOST];
};
_Static_assert(sizeof(struct room) <= LA_PANEL_ROOM, "it has to fit");

struct panel {
    heddle_la *la;
    struct heddle_exec *x;
    unsigned nparts, rank, size; /* parts; this member, and how many there are */
    enum blas_type t;
    struct blas_block a;
    int *ipiv;
    struct room *room;
    void *work; /* for the leaves of this member's parts, then: */
    int *local; /* pivots from a row on */
    int info;
};

/* A leaf, as one member sees it. */
struct leaf {
    struct la_leaf part[LA_PANEL_MOST]; /* this member's are in use */
    size_t first[LA_PANEL_MOST];        /* their first rows, from the leaf's */
    size_t n;                           /* columns */
    double u[LA_LEAF][PAIRS];           /* rows of U */
    double scale[2];                    /* of the column before */
};

static void meet(const struct panel *p)
{
    heddle_exec_gang_barrier(p->x);
}

#define FOR_OWN(p, i) for (unsigned i = (p)->rank; i < (p)->nparts; i += (p)->size)

/* Rows of a part of `rows` rows, but of the last ones. */
static size_t share(const struct panel *p, size_t rows)
{
    return (rows / p->nparts + (rows % p->nparts != 0) + LEAST - 1) / LEAST * LEAST;
}

/* Where part i of the rows from `first` on begins; part nparts: the end. */
static size_t deal(const struct panel *p, size_t first, unsigned i)
{
    const size_t rows = p->a.m - first;

    return first + la_min(rows, i * share(p, rows));
}

/* --- leaves -------------------------------------------------------------------------- */

static void leaf_begin(const struct panel *p, size_t j0, size_t n, struct leaf *l)
{
    char *at = p->work;

    l->n = n;
    l->scale[0] = 1;
    l->scale[1] = 0;
    FOR_OWN(p, i)
    {
        const size_t from = deal(p, j0, i), rows = deal(p, j0, i + 1) - from;

        l->part[i] = (struct la_leaf){p->t, at, rows};
        l->first[i] = from - j0;
        heddle_leaf_load(&l->part[i], blas_part(p->t, p->a, from, j0, rows, n));
        at += heddle_leaf_bytes(p->t, rows);
    }
}

/* Part i of column j: what the columns before mean for it, and what is to be told. */
static void leaf_tell(const struct panel *p, struct leaf *l, size_t j, unsigned i)
{
    const struct la_leaf *part = &l->part[i];
    struct told *t = &p->room->told[j % 2][i];
    double u[PAIRS];

    t->value = -1;
    if (part->rows == 0)
        return;
    for (size_t q = 0; q < j; q++)
        memcpy(u + 2 * q, l->u[q] + 2 * j, 2 * sizeof(double));
    t->value = heddle_leaf_column(part, j, i == 0 ? j : 0, l->scale, u, &t->row);
    if (i == 0) {
        const double *d = t->diagonal;

        heddle_leaf_get(part, j, l->n, t->diagonal);
        /* As LAPACK: nothing is larger than a NaN that comes first. */
        if (d[2 * j] != d[2 * j] || d[2 * j + 1] != d[2 * j + 1])
            t->value = NAN;
        if (t->value != t->value)
            t->row = j;
    }
    if (t->value < 0)
        return;
    heddle_leaf_get(part, t->row, l->n, t->best);
    t->row += l->first[i];
}

/* Row j of U, from the row that becomes it. */
static void leaf_row(enum blas_type t, struct leaf *l, size_t j, const double *row)
{
    double *u = l->u[j];

    memcpy(u, row, 2 * l->n * sizeof(double));
    for (size_t q = 0; q < j; q++)
        for (size_t c = 2 * (j + 1); c < 2 * l->n; c += 2) {
            const double *v = l->u[q] + c, re = row[2 * q], im = row[2 * q + 1];

            u[c] -= re * v[0];
            if (!blas_is_complex(t))
                continue; /* 0 times infinity is none */
            u[c] += im * v[1];
            u[c + 1] -= re * v[1] + im * v[0];
        }
}

/* Numbers that are kept in single precision are rounded to it. */
static void leaf_round(enum blas_type t, double *row, size_t n)
{
    for (size_t i = 0; i < 2 * n && blas_real_bytes(t) == 4; i++)
        row[i] = (double)(float)row[i];
}

/* Rows j and q change places, in the parts of this member; row j is then done. */
static void leaf_swap(const struct panel *p, const struct leaf *l, size_t j, size_t q,
                      const double *diagonal)
{
    FOR_OWN(p, i)
    {
        const struct la_leaf *part = &l->part[i];

        if (q != j && q >= l->first[i] && q - l->first[i] < part->rows)
            heddle_leaf_put(part, q - l->first[i], l->n, diagonal);
        if (i == 0)
            heddle_leaf_put(part, j, l->n, l->u[j]);
    }
}

/* What column j is to be multiplied with; where that would run over it is divided at
 * once. */
static void leaf_pivot(struct panel *p, struct leaf *l, size_t j, size_t j0)
{
    const double least = blas_real_bytes(p->t) == 4 ? (double)FLT_MIN : DBL_MIN;
    const double *d = l->u[j] + 2 * j;
    const double size = fmax(fabs(d[0]), fabs(d[1]));

    l->scale[0] = 1;
    l->scale[1] = 0;
    if (d[0] == 0 && d[1] == 0) {
        if (p->info == 0)
            p->info = (int)(j0 + j + 1);
    } else if (size < least) {
        FOR_OWN(p, i)
        heddle_leaf_divide(&l->part[i], j, i == 0 ? j + 1 : 0, d);
    } else {
        heddle_leaf_inverse(d, l->scale);
        leaf_round(p->t, l->scale, 1);
    }
}

static void leaf(struct panel *p, size_t j0, size_t n)
{
    struct leaf l;

    leaf_begin(p, j0, n, &l);
    for (size_t j = 0; j < n; j++) {
        const struct told *all = p->room->told[j % 2];
        unsigned best = 0;

        FOR_OWN(p, i) leaf_tell(p, &l, j, i);
        meet(p);
        for (unsigned i = 1; i < p->nparts; i++)
            if (all[i].value > all[best].value)
                best = i;
        leaf_row(p->t, &l, j, all[best].best);
        leaf_round(p->t, l.u[j], n);
        leaf_swap(p, &l, j, all[best].row, all[0].diagonal);
        if (p->rank == 0)
            p->ipiv[j0 + j] = (int)(j0 + all[best].row + 1);
        leaf_pivot(p, &l, j, j0);
    }
    FOR_OWN(p, i)
    {
        const size_t from = deal(p, j0, i);

        heddle_leaf_scale(&l.part[i], n - 1, i == 0 ? n : 0, l.scale);
        heddle_leaf_store(&l.part[i], blas_part(p->t, p->a, from, j0, l.part[i].rows, n));
    }
    meet(p);
}

/* --- halves -------------------------------------------------------------------------- */

/* Rows of columns c0 to c1 change places, by the pivots of n columns from j0 on; with
 * is_right they become rows of U. Columns are dealt out. */
static void exchange(const struct panel *p, size_t j0, size_t n, size_t c0, size_t c1,
                     bool is_right)
{
    const size_t each = (c1 - c0 + p->nparts - 1) / p->nparts;

    for (size_t i = 0; i < n; i++)
        p->local[i] = p->ipiv[j0 + i] - (int)j0;
    FOR_OWN(p, i)
    {
        const size_t from = la_min(c0 + i * each, c1), w = la_min(each, c1 - from);
        const struct blas_block c = blas_part(p->t, p->a, j0, from, p->a.m - j0, w);

        heddle_blas_laswp(p->t, c, p->local, n, false);
        if (is_right)
            heddle_blas_trsm(p->t, 'L', 'L', 'N', 'U', heddle_blas_one(p->t),
                             blas_part(p->t, p->a, j0, j0, n, n), blas_part(p->t, c, 0, 0, n, w));
    }
    meet(p);
}

static void halves(struct panel *p, size_t j0, size_t n)
{
    const size_t left = (n / 2 + LA_LEAF - 1) / LA_LEAF * LA_LEAF;
    const size_t j1 = j0 + left;

    if (n <= LA_LEAF) {
        leaf(p, j0, n);
        return;
    }
    halves(p, j0, left);
    exchange(p, j0, left, j1, j0 + n, true);
    FOR_OWN(p, i)
    {
        const size_t from = deal(p, j1, i), rows = deal(p, j1, i + 1) - from;

        heddle_blas_gemm(p->t, 'N', 'N', heddle_blas_minus_one(p->t),
                         blas_part(p->t, p->a, from, j0, rows, left),
                         blas_part(p->t, p->a, j0, j1, left, n - left), heddle_blas_one(p->t),
                         blas_part(p->t, p->a, from, j1, rows, n - left));
    }
    halves(p, j1, n - left); /* begins with the same rows */
    exchange(p, j1, n - left, j0, j1, false);
}

/* --- all of it ------------------------------------------------------------------------ */

static bool get_memory(struct panel *p, size_t n)
{
    size_t bytes = 0;

    FOR_OWN(p, i) bytes += heddle_leaf_bytes(p->t, share(p, p->a.m));
    p->work = heddle_la_work(p->la, bytes + n * sizeof(int));
    if (p->work == NULL)
        return false;
    p->local = (int *)(void *)((char *)p->work + bytes);
    return true;
}

heddle_status heddle_la_gang_panel(heddle_la *la, struct heddle_exec *x, unsigned nparts,
                                   enum blas_type t, struct blas_block a, int *ipiv, void *room,
                                   int *info_out)
{
    struct panel p = {.la = la,
                      .x = x,
                      .nparts = nparts,
                      .rank = heddle_exec_gang_rank(x),
                      .size = heddle_exec_gang_size(x),
                      .t = t,
                      .a = a,
                      .ipiv = ipiv,
                      .room = room};
    const size_t n = la_min(a.m, a.n);

    p.room->is_short[p.rank] = !get_memory(&p, n);
    meet(&p);
    for (unsigned i = 0; i < p.size; i++)
        if (p.room->is_short[i])
            return HEDDLE_ENOMEM;
    if (n > 0)
        halves(&p, 0, n);
    if (n > 0 && n < a.n)
        exchange(&p, 0, n, n, a.n, true);
    if (p.rank == 0)
        *info_out = p.info;
    meet(&p);
    return HEDDLE_OK;
}
