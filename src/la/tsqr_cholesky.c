/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tsqr_cholesky: QR of a tall matrix by LU, then Cholesky twice (LU-CholeskyQR2).
 *
 * Pick g     LU of a copy of group g: n of its rows that are good pivots
 * Pick i, j  of two such sets the better n rows; at the end LU of the last set:
 *            P A = L U, with a tournament for the pivots
 * Rows g     A_g = L_g = A_g U^-1, B_g = L_g^H L_g
 * Sum        S^H S = sum of B_g, R = S R (from R = U on)
 * Rows g     A_g = A_g S^-1, and B_g again, ...
 *
 * L has elements of about 1 and a unit triangle in it: its condition is small
 * whatever that of A is, so that B has a Cholesky factor. One that has none in this
 * precision gets a small multiple of I added (shifted CholeskyQR). A pass is the
 * last one when its B was near I: then Q is orthogonal to working precision. Two
 * are the rule; later ones find that there is nothing to do.
 *
 * A pivot that is zero: U keeps it, so that R is right; L gets a zero column but
 * for its 1, so that Q is orthogonal nevertheless.
 */
#include <float.h>
#include <math.h>

#include "la/tall.h"

enum { PASSES = 4, ROWS_AT_ONCE = 512, SHIFTS = 12 };

struct chol_arg {
    struct la_head h;
    unsigned nviews;
    size_t n, first; /* columns; first row of the group */
    int32_t pass;
};

/* What passes have found. */
struct state {
    int32_t last; /* the number of the last pass; 0: not known yet */
};

/* --- rows that are pivots --------------------------------------------------------- */

/* LU of d; out gets the numbers of the rows that came first. */
static void pick(enum heddle_la_type t, struct la_block d, int *ipiv, int *out)
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

static void copy_row(enum heddle_la_type t, struct la_block from, size_t i,
                     struct la_block to, size_t k)
{
    const size_t bytes = la_bytes(t);

    for (size_t j = 0; j < from.n; j++)
        memcpy(la_at(t, to, k, j), la_at(t, from, i, j), bytes);
}

/* Scratch: a dense matrix, then two lists of rows. */
static bool scratch(enum heddle_la_type t, struct la_block *d, int **ipiv,
                    int **rows)
{
    const size_t bytes = d->ld * d->n * la_bytes(t);
    char *p = heddle_la_work(bytes + 2 * d->m * sizeof(int));

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
    const enum heddle_la_type t = g->h.t;
    const size_t m = heddle_exec_layout(x, 0)->extent[0];
    struct la_block d = {NULL, m, g->n, m + 8}, w;
    int *ipiv, *rows;
    int32_t *number;
    size_t at = 0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (!scratch(t, &d, &ipiv, &rows))
        return HEDDLE_ENOMEM;
    heddle_tall_gather(x, t, g->nviews, 0, d);
    pick(t, d, ipiv, rows);
    w = la_operand(x, g->nviews);
    number = heddle_exec_ptr(x, g->nviews + 1);
    for (size_t k = 0; k < g->n; k++)
        number[k] = (int32_t)(g->first + (size_t)rows[k]);
    for (unsigned i = 0; i < g->nviews; i++) {
        const struct la_block a = la_operand(x, i);

        for (size_t k = 0; k < g->n; k++)
            copy_row(t, a, (size_t)rows[k], la_part(t, w, 0, at, w.m, a.n), k);
        at += a.n;
    }
    return HEDDLE_OK;
}

/* Two sets, or (the last pick) one, which is replaced by its L and U. */
static heddle_status run_play(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const bool is_last = heddle_exec_noperands(x) == 2;
    const size_t n = g->n, m = is_last ? n : 2 * n;
    const struct la_block w = la_operand(x, 0);
    int32_t *number = heddle_exec_ptr(x, 1);
    /* the rows, their LU, their numbers */
    struct la_block d = {NULL, m, 2 * n, m}, lu;
    int *ipiv, *rows, *old;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    d.m = 2 * m; /* room for four lists */
    if (!scratch(t, &d, &ipiv, &rows))
        return HEDDLE_ENOMEM;
    d.m = m;
    d.n = n;
    old = rows + m;
    lu = (struct la_block){la_at(t, d, 0, n), m, n, m};
    heddle_tall_copy(t, w, la_part(t, d, 0, 0, n, n));
    memcpy(old, number, n * sizeof(int32_t));
    if (!is_last) {
        heddle_tall_copy(t, la_operand(x, 2), la_part(t, d, n, 0, n, n));
        memcpy(old + n, heddle_exec_ptr(x, 3), n * sizeof(int32_t));
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

static bool is_zero(enum heddle_la_type t, const void *p)
{
    if (la_real_bytes(t) == 4) {
        const float *v = p;

        return v[0] == 0 && (!la_is_complex(t) || v[1] == 0);
    } else {
        const double *v = p;

        return v[0] == 0 && (!la_is_complex(t) || v[1] == 0);
    }
}

/* U for the solve: a zero on the diagonal is so large that what is divided by it
 * becomes nothing. */
static void solvable(enum heddle_la_type t, struct la_block lu,
                     struct la_block u)
{
    heddle_tall_upper(t, lu, u);
    for (size_t j = 0; j < u.n; j++) {
        void *d = la_at(t, u, j, j);

        if (!is_zero(t, d))
            continue;
        if (la_real_bytes(t) == 4)
            *(float *)d = 0x1p100F;
        else
            *(double *)d = 0x1p900;
    }
}

/* Rows of d that are pivots, exactly as LU has left them. */
static void set_pivots(const struct chol_arg *g, struct la_block lu,
                       const int32_t *number, size_t first, struct la_block d)
{
    const enum heddle_la_type t = g->h.t;

    for (size_t k = 0; k < g->n; k++) {
        const size_t i = (size_t)number[k] - first;

        if ((size_t)number[k] < first || i >= d.m)
            continue;
        copy_row(t, la_part(t, lu, 0, 0, lu.m, k), k, d, i);
        memcpy(la_at(t, d, i, k), heddle_la_one(t), la_bytes(t));
        for (size_t j = k + 1; j < g->n; j++)
            memset(la_at(t, d, i, j), 0, la_bytes(t));
    }
}

/* d^H d is added to b (upper triangle), or is b. */
static void add_gram(enum heddle_la_type t, struct la_block d, bool is_first,
                     struct la_block b)
{
    heddle_blas_syrk(t, true, 'U', 'C', heddle_la_one(t), d,
                     is_first ? heddle_la_zero(t) : heddle_la_one(t), b);
}

/* L_g and its B_g. Operands behind the views: LU, pivots, B_g. */
static heddle_status run_solve(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const size_t n = g->n, m = heddle_exec_layout(x, 0)->extent[0],
                 ld = ROWS_AT_ONCE + 8;
    const struct la_block lu = la_operand(x, g->nviews),
                          b = la_operand(x, g->nviews + 2);
    const int32_t *number = heddle_exec_ptr(x, g->nviews + 1);
    struct la_block u = {NULL, n, n, n};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    u.a = heddle_la_work((n + ld) * n * la_bytes(t));
    if (u.a == NULL)
        return HEDDLE_ENOMEM;
    solvable(t, lu, u);
    for (size_t row = 0; row < m; row += ROWS_AT_ONCE) {
        const struct la_block d = {la_at(t, u, 0, n),
                                   la_min(ROWS_AT_ONCE, m - row), n, ld};

        heddle_tall_gather(x, t, g->nviews, row, d);
        heddle_blas_trsm(t, 'R', 'U', 'N', 'N', heddle_la_one(t), u, d);
        set_pivots(g, lu, number, g->first + row, d);
        add_gram(t, d, row == 0, b);
        heddle_tall_scatter(x, t, g->nviews, row, d);
    }
    return HEDDLE_OK;
}

/* A_g = A_g S^-1 and, if there is another pass, B_g. Operands behind the views:
 * S^-1, the state, B_g. */
static heddle_status run_rows(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const size_t n = g->n, m = heddle_exec_layout(x, 0)->extent[0],
                 ld = ROWS_AT_ONCE + 8;
    const struct la_block s = la_operand(x, g->nviews),
                          b = la_operand(x, g->nviews + 2);
    const struct state *now = heddle_exec_ptr(x, g->nviews + 1);
    struct la_block d = {NULL, 0, n, ld};

    if (heddle_la_is_broken(&g->h) || (now->last != 0 && now->last < g->pass))
        return HEDDLE_OK;
    d.a = heddle_la_work(ld * n * la_bytes(t));
    if (d.a == NULL)
        return HEDDLE_ENOMEM;
    for (size_t row = 0; row < m; row += ROWS_AT_ONCE) {
        d.m = la_min(ROWS_AT_ONCE, m - row);
        heddle_tall_gather(x, t, g->nviews, row, d);
        heddle_blas_trmm(t, 'R', 'U', 'N', 'N', heddle_la_one(t), s, d);
        if (now->last == 0)
            add_gram(t, d, row == 0, b);
        heddle_tall_scatter(x, t, g->nviews, row, d);
    }
    return HEDDLE_OK;
}

/* --- the triangle --------------------------------------------------------------------- */

/* The upper triangle of `from` is added to `to`. */
static void add_upper(enum heddle_la_type t, struct la_block from,
                      struct la_block to)
{
    const size_t each = la_is_complex(t) ? 2 : 1;

    for (size_t j = 0; j < to.n; j++) {
        const size_t n = each * (j + 1);

        if (la_real_bytes(t) == 4) {
            const float *s = la_at(t, from, 0, j);
            float *d = la_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] += s[i];
        } else {
            const double *s = la_at(t, from, 0, j);
            double *d = la_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] += s[i];
        }
    }
}

/* Real part i of the column that begins at p. */
static double real_at(enum heddle_la_type t, const void *p, size_t i)
{
    return la_real_bytes(t) == 4 ? ((const float *)p)[i]
                                 : ((const double *)p)[i];
}

/* Is |B - I| in Frobenius' norm at most 1/2? *trace_out: that of B. */
static bool is_near_identity(enum heddle_la_type t, struct la_block b,
                             double *trace_out)
{
    const size_t each = la_is_complex(t) ? 2 : 1;
    double sum = 0;

    *trace_out = 0;
    for (size_t j = 0; j < b.n; j++) {
        const void *p = la_at(t, b, 0, j);
        const double d = real_at(t, p, each * j) - 1;

        for (size_t i = 0; i < each * j; i++)
            sum += 2 * real_at(t, p, i) * real_at(t, p, i);
        sum += d * d;
        *trace_out += d + 1;
    }
    return sum <= 0.25;
}

static void add_shift(enum heddle_la_type t, struct la_block b, double shift)
{
    for (size_t j = 0; j < b.n; j++) {
        void *d = la_at(t, b, j, j);

        if (la_real_bytes(t) == 4)
            *(float *)d += (float)shift;
        else
            *(double *)d += shift;
    }
}

/* The factor of b in s; with the smallest shift that it needs. False: none, b is
 * not made of numbers. *is_exact_out: without. */
static bool factor(enum heddle_la_type t, struct la_block b, double trace,
                   struct la_block s, bool *is_exact_out)
{
    const double eps =
        la_real_bytes(t) == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
    double shift = (double)b.n * eps * trace;

    heddle_tall_upper(t, b, s);
    *is_exact_out = heddle_blas_potrf(t, 'U', s) == 0;
    if (*is_exact_out)
        return true;
    for (unsigned i = 0; i < SHIFTS && isfinite(trace); i++, shift *= 16) {
        heddle_tall_upper(t, b, s);
        add_shift(t, s, shift);
        if (heddle_blas_potrf(t, 'U', s) == 0)
            return true;
    }
    return false;
}

static void set_nan(enum heddle_la_type t, struct la_block s)
{
    const size_t each = la_is_complex(t) ? 2 : 1;

    for (size_t j = 0; j < s.n; j++) {
        float *f = la_at(t, s, 0, j);
        double *d = la_at(t, s, 0, j);

        for (size_t i = 0; i < each * s.m; i++)
            if (la_real_bytes(t) == 4)
                f[i] = NAN;
            else
                d[i] = NAN;
    }
}

/* Operands: S^-1, R, the state, LU (the first pass begins with R = U), all B_g. */
static heddle_status run_sum(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const size_t n = g->n, bytes = n * n * la_bytes(t);
    const struct la_block inverse = la_operand(x, 0), r = la_operand(x, 1);
    struct state *now = heddle_exec_ptr(x, 2);
    struct la_block b = {NULL, n, n, n}, s = {NULL, n, n, n};
    bool is_near, is_exact = true;
    double trace;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->pass == 1) {
        now->last = 0;
        heddle_tall_upper(t, la_operand(x, 3), r);
    } else if (now->last != 0) {
        return HEDDLE_OK;
    }
    b.a = heddle_la_work(2 * bytes);
    if (b.a == NULL)
        return HEDDLE_ENOMEM;
    s.a = la_at(t, b, 0, n);
    memset(b.a, 0, bytes);
    for (unsigned i = 4; i < heddle_exec_noperands(x); i++)
        add_upper(t, la_operand(x, i), b);
    is_near = is_near_identity(t, b, &trace);
    if (!factor(t, b, trace, s, &is_exact)) {
        set_nan(t, s);
        now->last = g->pass;
    } else if ((is_near && is_exact) || g->pass == PASSES) {
        now->last = g->pass;
    }
    heddle_blas_trmm(t, 'L', 'U', 'N', 'N', heddle_la_one(t), s, r);
    (void)heddle_blas_trtri(t, 'U', 'N', s);
    heddle_tall_copy(t, s, inverse);
    return HEDDLE_OK;
}

/* --- costs ------------------------------------------------------------------------ */

static struct heddle_cost cost_rows(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0];

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->n, g->n),
                                .bytes =
                                    (double)(2 * m * g->n * la_bytes(g->h.t))};
}

static struct heddle_cost cost_small(struct heddle_exec *x)
{
    const struct chol_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){.flops = 2 * la_flops(g->h.t, g->n, g->n, g->n),
                                .bytes =
                                    (double)(heddle_exec_noperands(x) * g->n *
                                             g->n * la_bytes(g->h.t))};
}

#define KERNEL(run_fn, text, cost_fn)                                          \
    {                                                                          \
        .size = sizeof(heddle_kernel), .name = (text), .noperands = 1,         \
        .mode = {HEDDLE_RW}, /* all calls bring their own */                   \
            .variants = {{.device = HEDDLE_DEV_CPU, .run = (run_fn)}},         \
        .cost = (cost_fn)                                                      \
    }

static const heddle_kernel kernel_pick =
                               KERNEL(run_pick, "tsqr_pick", cost_rows),
                           kernel_play =
                               KERNEL(run_play, "tsqr_play", cost_small),
                           kernel_solve =
                               KERNEL(run_solve, "tsqr_solve", cost_rows),
                           kernel_rows =
                               KERNEL(run_rows, "tsqr_pass", cost_rows),
                           kernel_sum = KERNEL(run_sum, "tsqr_sum", cost_small);

/* --- tasks in order ------------------------------------------------------------------ */

/* The handles of group g, and those of all. */
struct group {
    heddle_handle *w, *number, *b;
};

struct whole {
    heddle_handle *inverse, *r, *state;
};

static struct group *group_at(struct tall *s, size_t g)
{
    return (struct group *)(void *)&s->own[g * TALL_CHOLESKY_OWN];
}

static struct whole *whole_of(struct tall *s)
{
    return (struct whole *)(void *)&s->own[s->ngroups * TALL_CHOLESKY_OWN];
}

static heddle_status make_handles(struct tall *s)
{
    const size_t n = s->a->n;
    heddle_ctx *ctx = s->la->ctx;
    const enum heddle_dtype d = s->a->dtype;
    struct whole *all = whole_of(s);

    for (size_t i = 0; i < s->ngroups; i++) {
        struct group *p = group_at(s, i);

        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &p->w));
        LA_TRY(heddle_handle_vector(ctx, NULL, n, HEDDLE_I32, &p->number));
        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &p->b));
    }
    LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &all->inverse));
    LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &all->r));
    return heddle_handle_vector(ctx, NULL, sizeof(struct state), HEDDLE_U8,
                                &all->state);
}

/* The pivots of all groups, then L and U of them in the first one's set. */
static heddle_status submit_picks(struct tall *s, struct chol_arg *g)
{
    static const enum heddle_mode first[2] = {HEDDLE_W, HEDDLE_W},
                                  play[4] = {HEDDLE_RW, HEDDLE_RW, HEDDLE_R,
                                             HEDDLE_R};

    for (size_t i = 0; i < s->ngroups; i++) {
        struct group *p = group_at(s, i);
        heddle_handle *const op[2] = {p->w, p->number};

        g->first = tall_first(s, i);
        LA_TRY(heddle_tall_submit(s, &kernel_pick, i, HEDDLE_R, op, first, 2, g,
                                  sizeof(*g), 1));
    }
    for (size_t step = 1; step < s->ngroups; step *= 2)
        for (size_t i = 0; i + step < s->ngroups; i += 2 * step) {
            struct group *p = group_at(s, i), *q = group_at(s, i + step);
            heddle_handle *const op[4] = {p->w, p->number, q->w, q->number};

            LA_TRY(heddle_la_submit(s->la, &kernel_play, op, play, 4, g,
                                    sizeof(*g), 2));
        }
    {
        heddle_handle *const op[2] = {group_at(s, 0)->w,
                                      group_at(s, 0)->number};

        return heddle_la_submit(s->la, &kernel_play, op, play, 2, g, sizeof(*g),
                                2);
    }
}

/* Pass 0: rows by U; others: the sum of all groups, then rows by its inverse. */
static heddle_status submit_pass(struct tall *s, struct chol_arg *g)
{
    static const enum heddle_mode solve[3] = {HEDDLE_R, HEDDLE_R, HEDDLE_W},
                                  rows[3] = {HEDDLE_R, HEDDLE_R, HEDDLE_RW};
    const struct whole *all = whole_of(s);
    struct group *top = group_at(s, 0);

    if (g->pass > 0) {
        heddle_handle *op[255] = {all->inverse, all->r, all->state, top->w};
        enum heddle_mode mode[255] = {HEDDLE_RW, HEDDLE_RW, HEDDLE_RW,
                                      HEDDLE_R};

        for (size_t i = 0; i < s->ngroups; i++) {
            op[4 + i] = group_at(s, i)->b;
            mode[4 + i] = HEDDLE_R;
        }
        LA_TRY(heddle_la_submit(s->la, &kernel_sum, op, mode,
                                (unsigned)(4 + s->ngroups), g, sizeof(*g), 2));
    }
    for (size_t i = 0; i < s->ngroups; i++) {
        heddle_handle *const by_u[3] = {top->w, top->number, group_at(s, i)->b},
                             *const by_s[3] = {all->inverse, all->state,
                                               group_at(s, i)->b};

        g->first = tall_first(s, i);
        LA_TRY(heddle_tall_submit(s, g->pass > 0 ? &kernel_rows : &kernel_solve,
                                  i, HEDDLE_RW, g->pass > 0 ? by_s : by_u,
                                  g->pass > 0 ? rows : solve, 3, g, sizeof(*g),
                                  1));
    }
    return HEDDLE_OK;
}

heddle_status heddle_tall_cholesky(struct tall *s, struct la_head h)
{
    struct chol_arg g = {.h = h, .nviews = (unsigned)s->nviews, .n = s->a->n};

    LA_TRY(make_handles(s));
    LA_TRY(submit_picks(s, &g));
    for (g.pass = 0; g.pass <= PASSES; g.pass++)
        LA_TRY(submit_pass(s, &g));
    return heddle_tall_finish(s, h, whole_of(s)->r);
}
