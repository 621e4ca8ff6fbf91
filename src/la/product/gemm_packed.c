/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gemm_packed: large products of doubles on cores, with packed operands (packed.h).
 *
 * Slab p        DEPTH columns of op(A) are packed by one task, times alpha
 * Product j, p  some block columns of C get slab p times their part of op(B), which
 *               the task packs for itself
 *
 * A BLAS that is called by each task packs A as often as there are tasks on it; here
 * that is done once, for all cores. Slabs take turns in a few places: one is packed
 * while others are used. The depth does not depend on the machine, so results do not.
 */
#include "la/product/packed.h"
#include "la/product/product.h"

enum {
    DEPTH = 320, /* columns of a slab, at most */
    RING = 3,    /* slabs that are there at once */
    WIDTH = 512, /* columns of C of a task, if there are enough */
    LEAST = 512  /* rows, columns and depth from which on it pays */
};

struct slab_arg {
    struct la_head h;
    char ta, tb;
    double alpha, beta;
    unsigned nc, nb;   /* operands */
    size_t c0, b0, a0; /* first columns of the first ones */
    struct la_range j, k;
};

/* --- tasks ------------------------------------------------------------------------ */

/* Operands: the slab, block columns of A. */
static heddle_status run_pack(struct heddle_exec *x)
{
    const struct slab_arg *g = heddle_exec_arg(x);
    const size_t k = g->k.end - g->k.first;
    struct la_pieces a;
    size_t m;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, BLAS_D, 1, heddle_exec_noperands(x) - 1, g->a0, &a);
    m = g->ta == 'N' ? a.block[0].m : g->j.end;
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = la_piece_columns(&a, p);

        if (g->ta == 'N') {
            const struct la_range q = split_cut(g->k, c);

            heddle_packed_left(
                'N', g->alpha,
                blas_part(BLAS_D, a.block[p], 0, q.first - c.first, m, q.end - q.first), 0,
                q.first - g->k.first, m, k, heddle_exec_ptr(x, 0));
        } else
            heddle_packed_left('T', g->alpha,
                               blas_part(BLAS_D, a.block[p], g->k.first, 0, k, a.block[p].n),
                               c.first, 0, m, k, heddle_exec_ptr(x, 0));
    }
    return HEDDLE_OK;
}

/* Columns j of op(B), as a right operand. */
static void pack_right(const struct slab_arg *g, const struct la_pieces *b, struct la_range j,
                       double *to)
{
    const size_t k = g->k.end - g->k.first, n = j.end - j.first;

    for (unsigned p = 0; p < b->n; p++) {
        const struct la_range c = la_piece_columns(b, p);
        const struct la_range q = split_cut(g->tb == 'N' ? j : g->k, c);

        if (q.first >= q.end)
            continue;
        if (g->tb == 'N') /* j is inside of one piece */
            heddle_packed_right('N',
                                blas_part(BLAS_D, b->block[p], g->k.first, j.first - c.first, k, n),
                                0, k, n, to);
        else
            heddle_packed_right(
                'T', blas_part(BLAS_D, b->block[p], j.first, q.first - c.first, n, q.end - q.first),
                q.first - g->k.first, k, n, to);
    }
}

/* Operands: the slab, block columns of C, of B. */
static heddle_status run_product(struct heddle_exec *x)
{
    const struct slab_arg *g = heddle_exec_arg(x);
    const size_t k = g->k.end - g->k.first;
    struct la_pieces b, c;
    double *right;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    right = heddle_packed_right_room(g->h.la, k, g->j.end - g->j.first);
    if (right == NULL)
        return HEDDLE_ENOMEM;
    heddle_la_pieces(x, BLAS_D, 1, g->nc, g->c0, &c);
    heddle_la_pieces(x, BLAS_D, 1 + g->nc, g->nb, g->b0, &b);
    for (unsigned p = 0; p < c.n; p++) {
        const struct la_range all = split_cut(g->j, la_piece_columns(&c, p));

        for (unsigned q = 0; q < (g->tb == 'N' ? b.n : 1); q++) {
            const struct la_range j = g->tb == 'N' ? split_cut(all, la_piece_columns(&b, q)) : all;

            if (j.first >= j.end)
                continue;
            pack_right(g, &b, j, right);
            heddle_packed_multiply(k, heddle_exec_ptr(x, 0), right, g->beta,
                                   blas_part(BLAS_D, c.block[p], 0, j.first - c.first[p],
                                             c.block[p].m, j.end - j.first));
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_pack(struct heddle_exec *x)
{
    return (struct heddle_cost){.bytes = 2.0 * (double)heddle_exec_count(x, 0)};
}

static struct heddle_cost cost_product(struct heddle_exec *x)
{
    const struct slab_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 1)->extent[0], n = g->j.end - g->j.first,
                 k = g->k.end - g->k.first;

    return (struct heddle_cost){.flops = la_flops(BLAS_D, m, n, k),
                                .bytes = (double)(m * k + k * n + 2 * m * n) * sizeof(double)};
}

static const heddle_kernel kernel_pack = {.size = sizeof(heddle_kernel),
                                          .name = "gemm_pack",
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_pack}},
                                          .cost = cost_pack};

static const heddle_kernel kernel_product = {
    .size = sizeof(heddle_kernel),
    .name = "gemm_slab",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_product}},
    .cost = cost_product};

/* --- submitting ------------------------------------------------------------------- */

/* Groups of block columns of C: two for each core and more, none too wide. */
static size_t ngroups(const heddle_la *la, const heddle_matrix *c)
{
    const size_t most = la_max(1, WIDTH / c->nb), cores = la_max(la->ncores, 1);
    const size_t n = la_max((c->nt + most - 1) / most, 2 * cores);

    return la_min(c->nt, (n + cores - 1) / cores * cores);
}

/* Block columns of a that may be operands of one task. */
static size_t covers(const heddle_matrix *a, size_t columns)
{
    return la_min(a->nt, columns / a->nb + 2);
}

bool heddle_la_packs(const heddle_la *la, const struct la_product *p)
{
    const size_t k = p->r.k.end;
    const size_t wide = la_max(WIDTH, p->c->nb);
    const size_t na = p->ta == 'N' ? covers(p->a, DEPTH) : p->a->nt,
                 nb = covers(p->b, p->tb == 'N' ? wide : DEPTH), nc = covers(p->c, wide);

    return p->c->t == BLAS_D && !la->has_cuda && heddle_packed() != NULL &&
           la_min(la_min(p->c->m, p->c->n), k) >= LEAST && !la_is_zero(BLAS_D, p->alpha) &&
           na + 1 <= LA_OPERANDS && nb + nc + 1 <= LA_OPERANDS;
}

/* One slab: its place is free when the products of an earlier one have ended. */
static heddle_status submit_pack(const struct slab_arg *g, const struct la_product *p,
                                 heddle_handle *slab, int priority)
{
    struct slab_arg own = *g;
    struct la_list l = {.op = {slab}, .mode = {HEDDLE_W}, .n = 1};

    own.j = (struct la_range){0, p->c->m}; /* rows of op(A) */
    (void)la_list_columns(&l, p->a, p->ta == 'N' ? g->k : own.j, HEDDLE_R, &own.a0);
    return heddle_la_submit(g->h.la, &kernel_pack, l.op, l.mode, l.n, &own, sizeof(own), priority);
}

static heddle_status submit_slab(struct slab_arg *g, const struct la_product *p,
                                 heddle_handle *slab, int priority)
{
    const size_t n = ngroups(g->h.la, p->c), nt = p->c->nt;
    const enum heddle_mode mode = g->beta == 0 ? HEDDLE_W : HEDDLE_RW;

    LA_TRY(submit_pack(g, p, slab, priority + 1));
    for (size_t i = 0; i < n; i++) {
        struct la_list l = {.op = {slab}, .mode = {HEDDLE_R}, .n = 1};

        g->j = (struct la_range){la_first(p->c, nt * i / n),
                                 la_min(p->c->n, la_first(p->c, nt * (i + 1) / n))};
        g->nc = la_list_columns(&l, p->c, g->j, mode, &g->c0);
        g->nb = la_list_columns(&l, p->b, p->tb == 'N' ? g->j : g->k, HEDDLE_R, &g->b0);
        LA_TRY(
            heddle_la_submit(g->h.la, &kernel_product, l.op, l.mode, l.n, g, sizeof(*g), priority));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_submit_packed(const struct la_head *h, const struct la_product *p)
{
    const size_t depth = p->r.k.end, n = (depth + DEPTH - 1) / DEPTH;
    const size_t bytes = heddle_packed_left_bytes(p->c->m, DEPTH);
    heddle_handle *ring[RING] = {NULL};
    struct slab_arg g = {.h = *h, .ta = p->ta, .tb = p->tb};
    heddle_status st = HEDDLE_OK;

    g.alpha = *(const double *)p->alpha;
    g.beta = *(const double *)p->beta;
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++) {
        heddle_handle **slab = &ring[i % RING];

        if (*slab == NULL)
            st = heddle_handle_vector(h->la->ctx, NULL, bytes, HEDDLE_U8, slab);
        g.k = (struct la_range){depth * i / n, depth * (i + 1) / n};
        if (st == HEDDLE_OK)
            st = submit_slab(&g, p, *slab, (int)(n - i));
        g.beta = 1;
    }
    for (unsigned i = 0; i < RING; i++)
        heddle_handle_unref(ring[i]);
    return st;
}
