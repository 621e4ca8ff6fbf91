/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cholesky: QR of a tall matrix by a preconditioner and Cholesky.
 *
 * Sketch g   sums of rows of group g with random signs
 * Sketch     R of the sum of all: U, such that A U^-1 is well conditioned. When U is
 *            not (A has no full rank in this precision): LU. LU is also the way
 *            where the caller asks for it (LU-CholeskyQR2).
 * Pick g     LU of a copy of group g: n of its rows that are good pivots
 * Pick i, j  of two such sets the better n rows; at the end LU of the last set:
 *            P A = L U, with a tournament for the pivots
 * Rows g     A_g = A_g U^-1, B_g = A_g^H A_g
 * Sum        S^H S = sum of B_g, R = S R (from R = U on)
 * Rows g     A_g = A_g S^-1, and B_g again, ...
 *
 * L has elements of about 1 and a unit triangle in it: its condition is small
 * whatever that of A is, so that B has a Cholesky factor. One that has none in this
 * precision gets a small multiple of I added (shifted CholeskyQR). A pass is the
 * last one when the condition of its B was small: then Q is orthogonal to working
 * precision. One is the rule after a sketch, two are after LU; later ones find that
 * there is nothing to do.
 *
 * A pivot that is zero: U keeps it, so that R is right; L gets a zero column but
 * for its 1, so that Q is orthogonal nevertheless.
 */
#include "la/tall/gram.h"
#include "la/tall/sketch.h"
#include "la/tall/tall.h"

enum { PASSES = 4, ROWS_AT_ONCE = 512 };

struct chol_arg {
    struct la_head h;
    unsigned nviews;
    size_t n, first; /* columns; first row of the group */
    int32_t pass;
    bool is_lu; /* without a sketch */
};

/* What tasks have found. Zero at first. */
struct state {
    int32_t last;    /* the number of the last pass; 0: not known yet */
    int32_t is_lu;   /* the sketch was of no use */
    int32_t is_easy; /* the inverse of U can be multiplied with */
};

static const double good_condition = 100; /* of B, in the last pass */

/* Rows of the group: where they are, or a dense copy at `copy`. Copies are made of
 * several views, and of columns that are a power of two apart, which caches
 * dislike. */
static struct blas_block rows_begin(struct heddle_exec *x, const struct chol_arg *g, size_t row,
                                    struct blas_block copy)
{
    const struct blas_block a = la_operand(x, 0);

    if (g->nviews == 1 && a.ld * blas_bytes(g->h.t) % 1024 != 0)
        return blas_part(g->h.t, a, row, 0, copy.m, copy.n);
    heddle_tall_gather(x, g->h.t, g->nviews, row, copy);
    return copy;
}

static void rows_end(struct heddle_exec *x, const struct chol_arg *g, size_t row,
                     struct blas_block copy, struct blas_block rows)
{
    if (rows.a == copy.a)
        heddle_tall_scatter(x, g->h.t, g->nviews, row, copy);
}

/* --- the sketch -------------------------------------------------------------------- */

/* Operands behind the views: the sketch of the group. */
static heddle_status run_sketch(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n, m = heddle_exec_layout(x, 0)->extent[0];
    const struct blas_block y = la_operand(x, g->nviews);
    struct blas_block d = {NULL, 0, n, ROWS_AT_ONCE + 8};
    void *signs;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    d.a = heddle_la_work(g->h.la, d.ld * n * blas_bytes(t) + heddle_sketch_bytes(t, ROWS_AT_ONCE));
    if (d.a == NULL)
        return HEDDLE_ENOMEM;
    signs = blas_at(t, d, 0, n);
    for (size_t j = 0; j < n; j++)
        memset(blas_at(t, y, 0, j), 0, y.m * blas_bytes(t));
    for (size_t row = 0; row < m; row += ROWS_AT_ONCE) {
        d.m = la_min(ROWS_AT_ONCE, m - row);
        heddle_sketch_add(t, rows_begin(x, g, row, d), g->first + row, signs, y);
    }
    return HEDDLE_OK;
}

/* to = to + from; lengths in real numbers. */
static void add_all(enum blas_type t, struct blas_block from, struct blas_block to)
{
    const size_t n = to.m * (blas_is_complex(t) ? 2 : 1);

    for (size_t j = 0; j < to.n; j++) {
        if (blas_real_bytes(t) == 4) {
            const float *s = blas_at(t, from, 0, j);
            float *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] += s[i];
        } else {
            const double *s = blas_at(t, from, 0, j);
            double *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] += s[i];
        }
    }
}

/* Operands: U over its inverse, the state, the sketches of all groups. */
static heddle_status run_choose(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n, rows = heddle_sketch_rows(n);
    const struct blas_block u = la_operand(x, 0);
    struct state *now = heddle_exec_ptr(x, 1);
    struct blas_block y = {NULL, rows, n, rows};
    double condition;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    y.a = heddle_la_work(g->h.la, (rows + n) * n * blas_bytes(t));
    if (y.a == NULL)
        return HEDDLE_ENOMEM;
    heddle_tall_copy(t, la_operand(x, 2), y);
    for (unsigned i = 3; i < heddle_exec_noperands(x); i++)
        add_all(t, la_operand(x, i), y);
    condition = heddle_sketch_factor(t, y, blas_part(t, u, 0, 0, n, n), blas_part(t, u, n, 0, n, n),
                                     (struct blas_block){blas_at(t, y, 0, n), n, n, n});
    now->is_lu = !(condition <= 0.01 / heddle_gram_epsilon(t));
    now->is_easy = condition <= 16 * (double)n;
    return HEDDLE_OK;
}

/* --- rows that are pivots --------------------------------------------------------- */

/* No pivots are needed after a good sketch. */
static bool is_skipped(const struct chol_arg *g, const struct state *now)
{
    return heddle_la_is_broken(&g->h) || (!g->is_lu && now->is_lu == 0);
}

/* LU of d; out gets the numbers of the rows that came first. */
static void pick(enum blas_type t, struct blas_block d, int *ipiv, int *out)
{
    for (size_t i = 0; i < d.m; i++)
        out[i] = (int)i;
    (void)heddle_blas_getrf(t, d, ipiv);
    for (size_t i = 0; i < d.n; i++) {
        const int k = ipiv[i] - 1, old = out[i];

        if (k < (int)i || k >= (int)d.m) /* no numbers in that column */
            continue;
        out[i] = out[k];
        out[k] = old;
    }
}

static void copy_row(enum blas_type t, struct blas_block from, size_t i, struct blas_block to,
                     size_t k)
{
    const size_t bytes = blas_bytes(t);

    for (size_t j = 0; j < from.n; j++)
        memcpy(blas_at(t, to, k, j), blas_at(t, from, i, j), bytes);
}

/* Scratch: a dense matrix, then two lists of rows. */
static bool scratch(heddle_la *la, enum blas_type t, struct blas_block *d, int **ipiv, int **rows)
{
    const size_t bytes = d->ld * d->n * blas_bytes(t);
    char *p = heddle_la_work(la, bytes + 2 * d->m * sizeof(int));

    if (p == NULL)
        return false;
    d->a = p;
    *ipiv = (int *)(void *)(p + bytes);
    *rows = *ipiv + d->m;
    return true;
}

static heddle_status run_pick(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t m = heddle_exec_layout(x, 0)->extent[0];
    struct blas_block d = {NULL, m, g->n, m + 8}, w;
    int *ipiv, *rows;
    int32_t *number;
    size_t at = 0;

    if (is_skipped(g, heddle_exec_ptr(x, g->nviews + 2)))
        return HEDDLE_OK;
    if (!scratch(g->h.la, t, &d, &ipiv, &rows))
        return HEDDLE_ENOMEM;
    heddle_tall_gather(x, t, g->nviews, 0, d);
    pick(t, d, ipiv, rows);
    w = la_operand(x, g->nviews);
    number = heddle_exec_ptr(x, g->nviews + 1);
    for (size_t k = 0; k < g->n; k++)
        number[k] = (int32_t)(g->first + (size_t)rows[k]);
    for (unsigned i = 0; i < g->nviews; i++) {
        const struct blas_block a = la_operand(x, i);

        for (size_t k = 0; k < g->n; k++)
            copy_row(t, a, (size_t)rows[k], blas_part(t, w, 0, at, w.m, a.n), k);
        at += a.n;
    }
    return HEDDLE_OK;
}

/* Two sets, or (the last pick) one, which is replaced by its L and U. */
static heddle_status run_play(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const bool is_last = heddle_exec_noperands(x) == 3;
    const size_t n = g->n, m = is_last ? n : 2 * n;
    const struct blas_block w = la_operand(x, 0);
    int32_t *number = heddle_exec_ptr(x, 1);
    /* the rows, their LU, their numbers */
    struct blas_block d = {NULL, m, 2 * n, m}, lu;
    int *ipiv, *rows, *old;

    if (is_skipped(g, heddle_exec_ptr(x, 2)))
        return HEDDLE_OK;
    d.m = 2 * m; /* room for four lists */
    if (!scratch(g->h.la, t, &d, &ipiv, &rows))
        return HEDDLE_ENOMEM;
    d.m = m;
    d.n = n;
    old = rows + m;
    lu = (struct blas_block){blas_at(t, d, 0, n), m, n, m};
    heddle_tall_copy(t, w, blas_part(t, d, 0, 0, n, n));
    memcpy(old, number, n * sizeof(int32_t));
    if (!is_last) {
        heddle_tall_copy(t, la_operand(x, 3), blas_part(t, d, n, 0, n, n));
        memcpy(old + n, heddle_exec_ptr(x, 4), n * sizeof(int32_t));
    }
    heddle_tall_copy(t, d, lu);
    pick(t, lu, ipiv, rows);
    for (size_t k = 0; k < n; k++) {
        number[k] = old[rows[k]];
        if (!is_last)
            copy_row(t, d, (size_t)rows[k], w, k);
    }
    if (is_last)
        heddle_tall_copy(t, lu, w);
    return HEDDLE_OK;
}

/* --- rows by a triangle -------------------------------------------------------------- */

/* U for the solve: a zero on the diagonal is so large that what is divided by it
 * becomes nothing. */
static void solvable(enum blas_type t, struct blas_block lu, struct blas_block u)
{
    heddle_tall_upper(t, lu, u);
    for (size_t j = 0; j < u.n; j++) {
        void *d = blas_at(t, u, j, j);

        if (!heddle_blas_is_zero(t, d))
            continue;
        if (blas_real_bytes(t) == 4)
            *(float *)d = 0x1p100F;
        else
            *(double *)d = 0x1p900;
    }
}

/* Rows of d that are pivots, exactly as LU has left them. */
static void set_pivots(const struct chol_arg *g, struct blas_block lu, const int32_t *number,
                       size_t first, struct blas_block d)
{
    const enum blas_type t = g->h.t;

    for (size_t k = 0; k < g->n; k++) {
        const size_t i = (size_t)number[k] - first;

        if ((size_t)number[k] < first || i >= d.m)
            continue;
        copy_row(t, blas_part(t, lu, 0, 0, lu.m, k), k, d, i);
        memcpy(blas_at(t, d, i, k), heddle_blas_one(t), blas_bytes(t));
        for (size_t j = k + 1; j < g->n; j++)
            memset(blas_at(t, d, i, j), 0, blas_bytes(t));
    }
}

/* d^H d is added to b (upper triangle), or is b. */
static void add_gram(enum blas_type t, struct blas_block d, bool is_first, struct blas_block b)
{
    heddle_blas_syrk(t, true, 'U', 'C', heddle_blas_one(t), d,
                     is_first ? heddle_blas_zero(t) : heddle_blas_one(t), b);
}

/* A_g U^-1 and its B_g. Operands behind the views: the state, LU, pivots, U of the
 * sketch over its inverse, B_g. */
static heddle_status run_solve(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n, m = heddle_exec_layout(x, 0)->extent[0], ld = ROWS_AT_ONCE + 8;
    const struct state *now = heddle_exec_ptr(x, g->nviews);
    const struct blas_block lu = la_operand(x, g->nviews + 1),
                            sketch = la_operand(x, g->nviews + 3), b = la_operand(x, g->nviews + 4);
    const int32_t *number = heddle_exec_ptr(x, g->nviews + 2);
    const bool is_lu = g->is_lu || now->is_lu != 0;
    struct blas_block u = {NULL, n, n, n};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    u.a = heddle_la_work(g->h.la, (n + ld) * n * blas_bytes(t));
    if (u.a == NULL)
        return HEDDLE_ENOMEM;
    solvable(t, is_lu ? lu : sketch, u);
    for (size_t row = 0; row < m; row += ROWS_AT_ONCE) {
        const struct blas_block copy = {blas_at(t, u, 0, n), la_min(ROWS_AT_ONCE, m - row), n, ld};
        const struct blas_block d = rows_begin(x, g, row, copy);

        if (is_lu || now->is_easy == 0)
            heddle_blas_trsm(t, 'R', 'U', 'N', 'N', heddle_blas_one(t), u, d);
        else
            heddle_blas_trmm(t, 'R', 'U', 'N', 'N', heddle_blas_one(t),
                             blas_part(t, sketch, n, 0, n, n), d);
        if (is_lu)
            set_pivots(g, lu, number, g->first + row, d);
        add_gram(t, d, row == 0, b);
        rows_end(x, g, row, copy, d);
    }
    return HEDDLE_OK;
}

/* A_g = A_g S^-1 and, if there is another pass, B_g. Operands behind the views:
 * S^-1, the state, B_g. */
static heddle_status run_rows(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n, m = heddle_exec_layout(x, 0)->extent[0], ld = ROWS_AT_ONCE + 8;
    const struct blas_block s = la_operand(x, g->nviews), b = la_operand(x, g->nviews + 2);
    const struct state *now = heddle_exec_ptr(x, g->nviews + 1);
    struct blas_block copy = {NULL, 0, n, ld}, d;

    if (heddle_la_is_broken(&g->h) || (now->last != 0 && now->last < g->pass))
        return HEDDLE_OK;
    copy.a = heddle_la_work(g->h.la, ld * n * blas_bytes(t));
    if (copy.a == NULL)
        return HEDDLE_ENOMEM;
    for (size_t row = 0; row < m; row += ROWS_AT_ONCE) {
        copy.m = la_min(ROWS_AT_ONCE, m - row);
        d = rows_begin(x, g, row, copy);
        heddle_blas_trmm(t, 'R', 'U', 'N', 'N', heddle_blas_one(t), s, d);
        if (now->last == 0)
            add_gram(t, d, row == 0, b);
        rows_end(x, g, row, copy, d);
    }
    return HEDDLE_OK;
}

/* --- the triangle --------------------------------------------------------------------- */

/* Operands: S^-1, R, the state, LU, U of the sketch (the first pass begins with
 * R = U), all B_g. */
static heddle_status run_sum(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n, bytes = n * n * blas_bytes(t);
    const struct blas_block inverse = la_operand(x, 0), r = la_operand(x, 1);
    struct state *now = heddle_exec_ptr(x, 2);
    struct blas_block b = {NULL, n, n, n}, s = {NULL, n, n, n};
    struct blas_block v = {NULL, n, 1, n};
    bool is_exact = true, is_there;
    double condition;

    if (heddle_la_is_broken(&g->h) || now->last != 0)
        return HEDDLE_OK;
    if (g->pass == 1)
        heddle_tall_upper(t, la_operand(x, g->is_lu || now->is_lu != 0 ? 3 : 4), r);
    b.a = heddle_la_work(g->h.la, 2 * bytes + n * blas_bytes(t));
    if (b.a == NULL)
        return HEDDLE_ENOMEM;
    s.a = blas_at(t, b, 0, n);
    v.a = blas_at(t, s, 0, n);
    memset(b.a, 0, bytes);
    for (unsigned i = 5; i < heddle_exec_noperands(x); i++)
        heddle_gram_add(t, la_operand(x, i), b);
    is_there = heddle_gram_factor(t, b, s, &is_exact);
    if (!is_there)
        heddle_gram_spoil(t, s);
    heddle_blas_trmm(t, 'L', 'U', 'N', 'N', heddle_blas_one(t), s, r);
    condition = heddle_gram_largest(t, s, v);
    (void)heddle_blas_trtri(t, 'U', 'N', s);
    condition *= heddle_gram_largest(t, s, v);
    if (!is_there || g->pass == PASSES || (is_exact && condition <= good_condition))
        now->last = g->pass;
    heddle_tall_copy(t, s, inverse);
    return HEDDLE_OK;
}

/* --- costs ------------------------------------------------------------------------ */

static struct heddle_cost cost_rows(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0];

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->n, g->n),
                                .bytes = (double)(2 * m * g->n * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_sketch(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0];

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->n, 4),
                                .bytes = (double)(m * g->n * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_small(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){
        .flops = 2 * la_flops(g->h.t, g->n, g->n, g->n),
        .bytes = (double)(heddle_exec_noperands(x) * g->n * g->n * blas_bytes(g->h.t))};
}

#define KERNEL(run_fn, text, cost_fn)                                                              \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = (text), .noperands = 1,                             \
        .mode = {HEDDLE_RW}, /* all calls bring their own */                                       \
            .variants = {{.device = HEDDLE_DEV_CPU, .run = (run_fn)}}, .cost = (cost_fn)           \
    }

static const heddle_kernel kernel_sketch = KERNEL(run_sketch, "tsqr_sketch", cost_sketch);
static const heddle_kernel kernel_choose = KERNEL(run_choose, "tsqr_choose", cost_small);
static const heddle_kernel kernel_pick = KERNEL(run_pick, "tsqr_pick", cost_rows);
static const heddle_kernel kernel_play = KERNEL(run_play, "tsqr_play", cost_small);
static const heddle_kernel kernel_solve = KERNEL(run_solve, "tsqr_solve", cost_rows);
static const heddle_kernel kernel_sum = KERNEL(run_sum, "tsqr_sum", cost_small);
static const heddle_kernel kernel_rows = KERNEL(run_rows, "tsqr_pass", cost_rows);

/* The same where most calls find that there is nothing to do: their times would
 * tell a model nothing. */
static const heddle_kernel kernel_pick_maybe = KERNEL(run_pick, "tsqr_pick_maybe", NULL);
static const heddle_kernel kernel_play_maybe = KERNEL(run_play, "tsqr_play_maybe", NULL);
static const heddle_kernel kernel_sum_maybe = KERNEL(run_sum, "tsqr_sum_maybe", NULL);
static const heddle_kernel kernel_rows_maybe = KERNEL(run_rows, "tsqr_pass_maybe", NULL);

/* --- tasks in order ------------------------------------------------------------------ */

/* The handles of group g, and those of all. */
struct group {
    heddle_handle *w, *number, *b, *sketch;
};

struct whole {
    heddle_handle *inverse, *r, *state, *u;
};

static struct group *group_at(struct tall *s, size_t g)
{
    return (struct group *)(void *)&s->own[g * TALL_CHOLESKY_OWN];
}

static struct whole *whole_of(struct tall *s)
{
    return (struct whole *)(void *)&s->own[s->ngroups * TALL_CHOLESKY_OWN];
}

static heddle_status make_handles(struct tall *s, bool is_lu)
{
    const size_t n = s->a->n, rows = heddle_sketch_rows(n);
    heddle_ctx *ctx = s->la->ctx;
    const enum heddle_dtype d = s->a->dtype;
    struct whole *all = whole_of(s);

    for (size_t i = 0; i < s->ngroups; i++) {
        struct group *p = group_at(s, i);

        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &p->w));
        LA_TRY(heddle_handle_vector(ctx, NULL, n, HEDDLE_I32, &p->number));
        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &p->b));
        if (!is_lu)
            LA_TRY(heddle_handle_matrix(ctx, NULL, rows, n, 0, d, &p->sketch));
    }
    LA_TRY(heddle_handle_matrix(ctx, NULL, 2 * n, n, 0, d, &all->u));
    LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &all->inverse));
    LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &all->r));
    return heddle_handle_vector(ctx, NULL, sizeof(struct state), HEDDLE_U8, &all->state);
}

static heddle_status submit_sketch(struct tall *s, struct chol_arg *g)
{
    static const enum heddle_mode first[1] = {HEDDLE_W};
    const struct whole *all = whole_of(s);
    heddle_handle *op[255] = {all->u, all->state};
    enum heddle_mode mode[255] = {HEDDLE_W, HEDDLE_RW};

    for (size_t i = 0; i < s->ngroups; i++) {
        op[2 + i] = group_at(s, i)->sketch;
        mode[2 + i] = HEDDLE_R;
        g->first = tall_first(s, i);
        LA_TRY(heddle_tall_submit(s, &kernel_sketch, i, HEDDLE_R, &op[2 + i], first, 1, g,
                                  sizeof(*g), 1));
    }
    return heddle_la_submit(s->la, &kernel_choose, op, mode, (unsigned)(2 + s->ngroups), g,
                            sizeof(*g), 2);
}

/* The pivots of all groups, then L and U of them in the first one's set. */
static heddle_status submit_picks(struct tall *s, struct chol_arg *g)
{
    static const enum heddle_mode first[3] = {HEDDLE_W, HEDDLE_W, HEDDLE_R},
                                  play[5] = {HEDDLE_RW, HEDDLE_RW, HEDDLE_R, HEDDLE_R, HEDDLE_R};
    heddle_handle *const state = whole_of(s)->state;
    const heddle_kernel *pick_kernel = g->is_lu ? &kernel_pick : &kernel_pick_maybe,
                        *play_kernel = g->is_lu ? &kernel_play : &kernel_play_maybe;

    for (size_t i = 0; i < s->ngroups; i++) {
        struct group *p = group_at(s, i);
        heddle_handle *const op[3] = {p->w, p->number, state};

        g->first = tall_first(s, i);
        LA_TRY(heddle_tall_submit(s, pick_kernel, i, HEDDLE_R, op, first, 3, g, sizeof(*g), 1));
    }
    for (size_t step = 1; step < s->ngroups; step *= 2)
        for (size_t i = 0; i + step < s->ngroups; i += 2 * step) {
            struct group *p = group_at(s, i), *q = group_at(s, i + step);
            heddle_handle *const op[5] = {p->w, p->number, state, q->w, q->number};

            LA_TRY(heddle_la_submit(s->la, play_kernel, op, play, 5, g, sizeof(*g), 2));
        }
    {
        heddle_handle *const op[3] = {group_at(s, 0)->w, group_at(s, 0)->number, state};

        return heddle_la_submit(s->la, play_kernel, op, play, 3, g, sizeof(*g), 2);
    }
}

/* The sum of all groups. */
static heddle_status submit_sum(struct tall *s, const struct chol_arg *g)
{
    const struct whole *all = whole_of(s);
    heddle_handle *op[255] = {all->inverse, all->r, all->state, group_at(s, 0)->w, all->u};
    enum heddle_mode mode[255] = {HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_R, HEDDLE_R};

    for (size_t i = 0; i < s->ngroups; i++) {
        op[5 + i] = group_at(s, i)->b;
        mode[5 + i] = HEDDLE_R;
    }
    return heddle_la_submit(s->la, g->pass == 1 ? &kernel_sum : &kernel_sum_maybe, op, mode,
                            (unsigned)(5 + s->ngroups), g, sizeof(*g), 2);
}

/* Pass 0: rows by U; others: rows by the inverse of S. */
static heddle_status submit_rows(struct tall *s, struct chol_arg *g)
{
    static const enum heddle_mode solve[5] = {HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_W},
                                  rows[3] = {HEDDLE_R, HEDDLE_R, HEDDLE_RW};
    const struct whole *all = whole_of(s);
    const bool is_first = g->pass == 0;

    for (size_t i = 0; i < s->ngroups; i++) {
        heddle_handle *const b = group_at(s, i)->b,
                             *const by_u[5] = {all->state, group_at(s, 0)->w,
                                               group_at(s, 0)->number, all->u, b},
                             *const by_s[3] = {all->inverse, all->state, b};

        g->first = tall_first(s, i);
        LA_TRY(heddle_tall_submit(s,
                                  is_first       ? &kernel_solve
                                  : g->pass == 1 ? &kernel_rows
                                                 : &kernel_rows_maybe,
                                  i, HEDDLE_RW, is_first ? by_u : by_s, is_first ? solve : rows,
                                  is_first ? 5 : 3, g, sizeof(*g), 1));
    }
    return HEDDLE_OK;
}

heddle_status heddle_tall_cholesky(struct tall *s, struct la_head h, bool is_lu)
{
    struct chol_arg g = {.h = h, .nviews = (unsigned)s->nviews, .n = s->a->n, .is_lu = is_lu};

    LA_TRY(make_handles(s, is_lu));
    if (!is_lu)
        LA_TRY(submit_sketch(s, &g));
    LA_TRY(submit_picks(s, &g));
    LA_TRY(submit_rows(s, &g));
    for (g.pass = 1; g.pass <= PASSES; g.pass++) {
        LA_TRY(submit_sum(s, &g));
        LA_TRY(submit_rows(s, &g));
    }
    return heddle_tall_finish(s, h, whole_of(s)->r);
}
