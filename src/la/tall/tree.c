/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree: Householder QR of a tall matrix by a tree.
 *
 * Leaf g     A_g = H_g [R_g; 0]: V over A_g, T_g
 * Join i, j  [R_i; R_j] = H [R_i; 0]: V and T in a node of their own; the lower
 *            part of V is a triangle too
 * Split i, j [C_i; C_j] = H [C_i; 0], from C_0 = I down the same tree
 * Rows g     A_g = H_g [C_g; 0] = [C_g; 0] - V X, X = T V1^H C_g
 */
#include "la/tall/tall.h"

enum { ROWS_AT_ONCE = 512 };

struct tree_arg {
    struct la_head h;
    unsigned nviews;
    size_t n;
};

/* Rows of dense copies are that far apart: no power of two, which the cache
 * dislikes. */
static size_t padded(size_t m)
{
    return m % 256 == 0 ? m + 8 : m;
}

/* to = a - b. */
static void difference(enum blas_type t, struct blas_block a, struct blas_block b,
                       struct blas_block to)
{
    const size_t n = to.m * (blas_is_complex(t) ? 2 : 1);

    for (size_t j = 0; j < to.n; j++) {
        if (blas_real_bytes(t) == 4) {
            const float *p = blas_at(t, a, 0, j), *q = blas_at(t, b, 0, j);
            float *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] = p[i] - q[i];
        } else {
            const double *p = blas_at(t, a, 0, j), *q = blas_at(t, b, 0, j);
            double *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] = p[i] - q[i];
        }
    }
}

static heddle_status run_leaf(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t m = heddle_exec_layout(x, 0)->extent[0], ld = padded(m);
    struct blas_block d = {NULL, m, g->n, ld};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    d.a = heddle_la_work(g->h.la, ld * g->n * blas_bytes(t));
    if (d.a == NULL)
        return HEDDLE_ENOMEM;
    heddle_tall_gather(x, t, g->nviews, 0, d);
    (void)heddle_blas_geqrt3(t, d, la_operand(x, g->nviews + 1));
    heddle_tall_scatter(x, t, g->nviews, 0, d);
    heddle_tall_upper(t, d, la_operand(x, g->nviews));
    return HEDDLE_OK;
}

/* A node is V (2n rows) over T. */
static heddle_status run_join(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n;
    const struct blas_block r = la_operand(x, 0), node = la_operand(x, 2);
    const struct blas_block v = blas_part(t, node, 0, 0, 2 * n, n);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_tall_copy(t, r, blas_part(t, v, 0, 0, n, n));
    heddle_tall_copy(t, la_operand(x, 1), blas_part(t, v, n, 0, n, n));
    (void)heddle_blas_geqrt3(t, v, blas_part(t, node, 2 * n, 0, n, n));
    heddle_tall_upper(t, v, r);
    return HEDDLE_OK;
}

static heddle_status run_split(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n;
    const void *one = heddle_blas_one(t);
    const struct blas_block node = la_operand(x, 0), c = la_operand(x, 1), c2 = la_operand(x, 2);
    const struct blas_block v1 = blas_part(t, node, 0, 0, n, n);
    struct blas_block w = {NULL, n, n, n};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    w.a = heddle_la_work(g->h.la, n * n * blas_bytes(t));
    if (w.a == NULL)
        return HEDDLE_ENOMEM;
    heddle_tall_copy(t, c, w);
    heddle_blas_trmm(t, 'L', 'L', 'C', 'U', one, v1, w);
    heddle_blas_trmm(t, 'L', 'U', 'N', 'N', one, blas_part(t, node, 2 * n, 0, n, n), w);
    heddle_tall_copy(t, w, c2);
    heddle_blas_trmm(t, 'L', 'U', 'N', 'N', heddle_blas_minus_one(t),
                     blas_part(t, node, n, 0, n, n), c2);
    heddle_blas_trmm(t, 'L', 'L', 'N', 'U', one, v1, w);
    difference(t, c, w, c);
    return HEDDLE_OK;
}

static heddle_status run_identity(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block c = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < c.n; j++) {
        memset(blas_at(t, c, 0, j), 0, c.m * blas_bytes(t));
        memcpy(blas_at(t, c, j, j), heddle_blas_one(t), blas_bytes(t));
    }
    return HEDDLE_OK;
}

/* Rows of A_g = - V X, all columns of each view at once. */
static void rows_below(struct heddle_exec *x, const struct tree_arg *g, size_t row,
                       struct blas_block v, struct blas_block w)
{
    const enum blas_type t = g->h.t;
    size_t at = 0;

    for (unsigned i = 0; i < g->nviews; i++) {
        const struct blas_block a = la_operand(x, i);

        heddle_blas_gemm(t, 'N', 'N', heddle_blas_minus_one(t), v,
                         blas_part(t, w, 0, at, g->n, a.n), heddle_blas_zero(t),
                         blas_part(t, a, row, 0, v.m, a.n));
        at += a.n;
    }
}

static heddle_status run_rows(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t n = g->n, m = heddle_exec_layout(x, 0)->extent[0],
                 ld = padded(la_max(ROWS_AT_ONCE, n));
    const void *one = heddle_blas_one(t);
    const struct blas_block c = la_operand(x, g->nviews + 1);
    struct blas_block w = {NULL, n, n, n}, v = {NULL, n, n, ld};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    w.a = heddle_la_work(g->h.la, (n + ld) * n * blas_bytes(t));
    if (w.a == NULL)
        return HEDDLE_ENOMEM;
    v.a = blas_at(t, w, 0, n);
    heddle_tall_gather(x, t, g->nviews, 0, v);
    heddle_tall_copy(t, c, w);
    heddle_blas_trmm(t, 'L', 'L', 'C', 'U', one, v, w);
    heddle_blas_trmm(t, 'L', 'U', 'N', 'N', one, la_operand(x, g->nviews), w);
    for (size_t row = n; row < m; row += ROWS_AT_ONCE) {
        const struct blas_block part = {v.a, la_min(ROWS_AT_ONCE, m - row), n, ld};

        heddle_tall_gather(x, t, g->nviews, row, part);
        rows_below(x, g, row, part, w);
    }
    heddle_tall_gather(x, t, g->nviews, 0, v);
    heddle_blas_trmm(t, 'L', 'L', 'N', 'U', one, v, w);
    difference(t, c, w, w);
    heddle_tall_scatter(x, t, g->nviews, 0, w);
    return HEDDLE_OK;
}

/* --- costs ------------------------------------------------------------------------ */

static struct heddle_cost cost_leaf(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0];

    return (struct heddle_cost){.flops = 1.5 * la_flops(g->h.t, m, g->n, g->n),
                                .bytes = (double)(2 * m * g->n * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_rows(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0];

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->n, g->n),
                                .bytes = (double)(2 * m * g->n * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_small(struct heddle_exec *x)
{
    const struct tree_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){.flops = 2 * la_flops(g->h.t, g->n, g->n, g->n),
                                .bytes = (double)(6 * g->n * g->n * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_leaf = {.size = sizeof(heddle_kernel),
                                          .name = "tsqr_leaf",
                                          .noperands = 3,
                                          .mode = {HEDDLE_RW, HEDDLE_W, HEDDLE_W},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_leaf}},
                                          .cost = cost_leaf};

static const heddle_kernel kernel_join = {.size = sizeof(heddle_kernel),
                                          .name = "tsqr_join",
                                          .noperands = 3,
                                          .mode = {HEDDLE_RW, HEDDLE_R, HEDDLE_W},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_join}},
                                          .cost = cost_small};

static const heddle_kernel kernel_split = {
    .size = sizeof(heddle_kernel),
    .name = "tsqr_split",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_RW, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_split}},
    .cost = cost_small};

static const heddle_kernel kernel_identity = {
    .size = sizeof(heddle_kernel),
    .name = "tsqr_identity",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_identity}}};

static const heddle_kernel kernel_rows = {.size = sizeof(heddle_kernel),
                                          .name = "tsqr_rows",
                                          .noperands = 3,
                                          .mode = {HEDDLE_RW, HEDDLE_R, HEDDLE_R},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_rows}},
                                          .cost = cost_rows};

/* --- the tree ----------------------------------------------------------------------- */

/* The handles of group g. Node g is that of the join in which g is the second. */
struct leaf {
    heddle_handle *r, *t, *c, *node;
};

static struct leaf *leaf_at(struct tall *s, size_t g)
{
    return (struct leaf *)(void *)&s->own[g * TALL_TREE_OWN];
}

static heddle_status make_leaves(struct tall *s)
{
    const size_t n = s->a->n;
    heddle_ctx *ctx = s->la->ctx;
    const enum heddle_dtype d = s->a->dtype;

    for (size_t g = 0; g < s->ngroups; g++) {
        struct leaf *l = leaf_at(s, g);

        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &l->r));
        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &l->t));
        LA_TRY(heddle_handle_matrix(ctx, NULL, n, n, 0, d, &l->c));
        if (g > 0)
            LA_TRY(heddle_handle_matrix(ctx, NULL, 3 * n, n, 0, d, &l->node));
    }
    return HEDDLE_OK;
}

/* The pairs of one level: s->ngroups leaves, distance `step`. */
static heddle_status level(struct tall *s, const struct tree_arg *g, size_t step, bool is_down)
{
    for (size_t i = 0; i + step < s->ngroups; i += 2 * step) {
        struct leaf *l = leaf_at(s, i), *other = leaf_at(s, i + step);
        heddle_handle *const up[3] = {l->r, other->r, other->node}, *const down[3] = {other->node,
                                                                                      l->c,
                                                                                      other->c};

        LA_TRY(heddle_la_submit(s->la, is_down ? &kernel_split : &kernel_join, is_down ? down : up,
                                NULL, 3, g, sizeof(*g), 2));
    }
    return HEDDLE_OK;
}

heddle_status heddle_tall_tree(struct tall *s, struct la_head h)
{
    static const enum heddle_mode leaf[2] = {HEDDLE_W, HEDDLE_W}, rows[2] = {HEDDLE_R, HEDDLE_R};
    const struct tree_arg g = {.h = h, .nviews = (unsigned)s->nviews, .n = s->a->n};
    size_t step = 1;

    LA_TRY(make_leaves(s));
    for (size_t i = 0; i < s->ngroups; i++) {
        heddle_handle *const op[2] = {leaf_at(s, i)->r, leaf_at(s, i)->t};

        LA_TRY(heddle_tall_submit(s, &kernel_leaf, i, HEDDLE_RW, op, leaf, 2, &g, sizeof(g), 1));
    }
    for (; step < s->ngroups; step *= 2)
        LA_TRY(level(s, &g, step, false));
    LA_TRY(heddle_tall_finish(s, h, leaf_at(s, 0)->r));
    LA_TRY(heddle_la_submit(s->la, &kernel_identity, &leaf_at(s, 0)->c, NULL, 1, &g, sizeof(g), 2));
    for (step /= 2; step > 0; step /= 2)
        LA_TRY(level(s, &g, step, true));
    for (size_t i = 0; i < s->ngroups; i++) {
        heddle_handle *const op[2] = {leaf_at(s, i)->t, leaf_at(s, i)->c};

        LA_TRY(heddle_tall_submit(s, &kernel_rows, i, HEDDLE_RW, op, rows, 2, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}
