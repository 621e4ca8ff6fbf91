/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tsqr: QR of a tall matrix, Q explicit: which algorithm, groups of rows, and what
 * the algorithms share.
 */
#include "base/alloc.h"
#include "la/tall/tall.h"

enum {
    TALL_RATIO = 16,   /* m / n from which on groups of rows pay */
    TALL_NARROW = 48,  /* columns up to which trees are best */
    TALL_LEAST = 4096, /* rows below which one task does all */
    TALL_GROUPS = 192  /* groups at most: one task reads a part of each */
};

/* --- groups of rows -------------------------------------------------------------- */

bool heddle_tall_fits(const heddle_matrix *a)
{
    return a->root != NULL || a->nt <= TALL_VIEWS;
}

/* Group g of a matrix of the program is one view, of a matrix of the runtime one
 * for each block column. */
static heddle_status make_views(struct tall *s, size_t g)
{
    const heddle_matrix *a = s->a;
    const size_t first = tall_first(s, g);

    for (size_t j = 0; j < s->nviews; j++) {
        heddle_handle *const of = a->root != NULL ? a->root : a->col[j];
        const size_t at[2] = {first, 0}, extent[2] = {tall_first(s, g + 1) - first,
                                                      a->root != NULL ? a->n : la_width(a, j)};

        LA_TRY(heddle_view_box(of, at, extent, NULL, &s->view[g * s->nviews + j]));
    }
    return HEDDLE_OK;
}

heddle_status heddle_tall_open(struct tall *s, heddle_la *la, heddle_matrix *a, heddle_matrix *r,
                               size_t rows, size_t nown)
{
    heddle_status st = HEDDLE_OK;
    size_t n;

    *s = (struct tall){.la = la, .a = a, .r = r};
    s->ngroups = la_max(1, la_min(TALL_GROUPS, a->m / la_max(rows, a->n)));
    s->nviews = a->root != NULL ? 1 : a->nt;
    s->nown = nown * s->ngroups + TALL_CHOLESKY_MORE;
    n = s->ngroups * s->nviews;
    s->view = heddle_zalloc(&s->la->alloc, n + s->nown, sizeof(s->view[0]));
    if (s->view == NULL)
        return HEDDLE_ENOMEM;
    s->own = s->view + n;
    for (size_t g = 0; g < s->ngroups && st == HEDDLE_OK; g++)
        st = make_views(s, g);
    if (st != HEDDLE_OK)
        heddle_tall_close(s);
    return st;
}

void heddle_tall_close(struct tall *s)
{
    const size_t n = s->ngroups * s->nviews + s->nown;

    for (size_t i = 0; i < n; i++)
        heddle_handle_unref(s->view[i]);
    heddle_free(&s->la->alloc, s->view, n * sizeof(s->view[0]));
}

heddle_status heddle_tall_submit(struct tall *s, const heddle_kernel *kernel, size_t g,
                                 enum heddle_mode mode, heddle_handle *const *others,
                                 const enum heddle_mode *modes, unsigned n, const void *arg,
                                 size_t arg_bytes, int priority)
{
    heddle_handle *op[255];
    enum heddle_mode m[255];
    const unsigned nviews = (unsigned)s->nviews;

    for (unsigned i = 0; i < nviews; i++) {
        op[i] = s->view[g * nviews + i];
        m[i] = mode;
    }
    for (unsigned i = 0; i < n; i++) {
        op[nviews + i] = others[i];
        m[nviews + i] = modes[i];
    }
    return heddle_la_submit(s->la, kernel, op, m, nviews + n, arg, arg_bytes, priority);
}

/* --- inside of tasks ------------------------------------------------------------- */

void heddle_tall_copy(enum blas_type t, struct blas_block from, struct blas_block to)
{
    for (size_t j = 0; j < to.n; j++)
        memcpy(blas_at(t, to, 0, j), blas_at(t, from, 0, j), to.m * blas_bytes(t));
}

void heddle_tall_upper(enum blas_type t, struct blas_block from, struct blas_block to)
{
    for (size_t j = 0; j < to.n; j++) {
        const size_t n = la_min(j + 1, to.m);

        memcpy(blas_at(t, to, 0, j), blas_at(t, from, 0, j), n * blas_bytes(t));
        memset(blas_at(t, to, n, j), 0, (to.m - n) * blas_bytes(t));
    }
}

void heddle_tall_gather(struct heddle_exec *x, enum blas_type t, unsigned nviews, size_t row,
                        struct blas_block to)
{
    size_t at = 0;

    for (unsigned i = 0; i < nviews; i++) {
        const struct blas_block v = la_operand(x, i);

        heddle_tall_copy(t, blas_part(t, v, row, 0, to.m, v.n), blas_part(t, to, 0, at, to.m, v.n));
        at += v.n;
    }
}

void heddle_tall_scatter(struct heddle_exec *x, enum blas_type t, unsigned nviews, size_t row,
                         struct blas_block from)
{
    size_t at = 0;

    for (unsigned i = 0; i < nviews; i++) {
        const struct blas_block v = la_operand(x, i);

        heddle_tall_copy(t, blas_part(t, from, 0, at, from.m, v.n),
                         blas_part(t, v, row, 0, from.m, v.n));
        at += v.n;
    }
}

/* --- the triangle ----------------------------------------------------------------- */

enum { TRIANGLE_MANY = 32 }; /* block columns that a task reads */

struct triangle_arg {
    struct la_head h;
    size_t to, from; /* numbers of the first columns of both sides */
};

static heddle_status run_triangle(struct heddle_exec *x)
{
    const struct triangle_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0);
    size_t column = g->from;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 1; i < heddle_exec_noperands(x); i++) {
        const struct blas_block from = la_operand(x, i);

        for (size_t j = 0; j < from.n; j++, column++) {
            const size_t n = column + 1;
            char *d;

            if (column < g->to || column >= g->to + to.n)
                continue;
            d = blas_at(t, to, 0, column - g->to);
            memcpy(d, blas_at(t, from, 0, j), n * blas_bytes(t));
            memset(d + n * blas_bytes(t), 0, (to.m - n) * blas_bytes(t));
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_triangle(struct heddle_exec *x)
{
    const struct triangle_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){.bytes =
                                    (double)(2 * heddle_exec_count(x, 0) * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_triangle = {
    .size = sizeof(heddle_kernel),
    .name = "tsqr_triangle",
    .noperands = 2,
    .mode = {HEDDLE_W, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_triangle}},
    .cost = cost_triangle};

/* R from the tops of block columns of width nb to those of r. */
static heddle_status triangle(heddle_la *la, struct la_head h, heddle_matrix *r,
                              heddle_handle *const *from, size_t nb)
{
    for (size_t j = 0; j < r->nt; j++) {
        struct triangle_arg g = {.h = h, .to = la_first(r, j)};
        const size_t first = g.to / nb, last = (g.to + la_width(r, j) - 1) / nb;

        for (size_t k = first; k <= last; k += TRIANGLE_MANY) {
            const size_t n = la_min(TRIANGLE_MANY, last + 1 - k);
            heddle_handle *op[1 + TRIANGLE_MANY] = {r->col[j]};
            enum heddle_mode mode[1 + TRIANGLE_MANY] = {last - first < TRIANGLE_MANY ? HEDDLE_W
                                                                                     : HEDDLE_RW};

            for (size_t i = 0; i < n; i++) {
                op[1 + i] = from[k + i];
                mode[1 + i] = HEDDLE_R;
            }
            g.from = k * nb;
            LA_TRY(heddle_la_submit(la, &kernel_triangle, op, mode, (unsigned)(1 + n), &g,
                                    sizeof(g), 1));
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_tall_finish(struct tall *s, struct la_head h, heddle_handle *from)
{
    return triangle(s->la, h, s->r, &from, s->a->n);
}

/* --- which one --------------------------------------------------------------------- */

static heddle_status flat(heddle_la *la, heddle_matrix *a, heddle_matrix *r)
{
    heddle_matrix *t = NULL;
    heddle_status st = heddle_la_temporary(la, a->dtype, la_min(a->nb, a->n), a->n, a->nb, &t);

    if (st == HEDDLE_OK)
        st = heddle_la_geqrf(la, a, t);
    if (st == HEDDLE_OK)
        st = triangle(la, heddle_la_begin(la, a), r, a->col, a->nb);
    if (st == HEDDLE_OK)
        st = heddle_la_orgqr(la, a, t, a);
    heddle_matrix_destroy(t);
    return st;
}

/* Rows of a group: a leaf is worth much more than a join of two triangles, and
 * all cores have some. */
static size_t rows_of_group(const heddle_la *la, const heddle_matrix *a)
{
    const size_t share = a->m / (4 * (size_t)la_max(la->ncores, 1));

    return la_max(la_min(share, la_max(16 * a->n, 4096)), la_max(2 * a->n, 256));
}

static heddle_status by_groups(heddle_la *la, enum heddle_la_tall how, heddle_matrix *a,
                               heddle_matrix *r)
{
    const struct la_head h = heddle_la_begin(la, a);
    struct tall s;
    heddle_status st;

    LA_TRY(heddle_tall_open(&s, la, a, r, rows_of_group(la, a),
                            how == HEDDLE_LA_TALL_TREE ? TALL_TREE_OWN : TALL_CHOLESKY_OWN));
    st = how == HEDDLE_LA_TALL_TREE ? heddle_tall_tree(&s, h)
                                    : heddle_tall_cholesky(&s, h, how == HEDDLE_LA_TALL_CHOLESKY);
    heddle_tall_close(&s);
    return st;
}

/* Measured on two cores: where joins of triangles cost little, trees are best, with
 * more columns a sketch is; both need many rows. */
static enum heddle_la_tall choose(const heddle_matrix *a)
{
    if (a->m < TALL_LEAST || a->m / a->n < TALL_RATIO)
        return HEDDLE_LA_TALL_FLAT;
    return a->n <= TALL_NARROW ? HEDDLE_LA_TALL_TREE : HEDDLE_LA_TALL_SKETCH;
}

heddle_status heddle_la_tsqr(heddle_la *la, enum heddle_la_tall how, heddle_matrix *a,
                             heddle_matrix *r)
{
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= (unsigned)HEDDLE_LA_TALL_SKETCH);
    LA_CHECK(la, 2, a != NULL && a->m >= a->n);
    LA_CHECK(la, 3, r != NULL && r != a && r->t == a->t && r->m == a->n && r->n == a->n);
    if (a->nt == 0)
        return HEDDLE_OK;
    if (how == HEDDLE_LA_TALL_AUTO)
        how = choose(a);
    if (how == HEDDLE_LA_TALL_FLAT || !heddle_tall_fits(a))
        return flat(la, a, r);
    return by_groups(la, how, a, r);
}
