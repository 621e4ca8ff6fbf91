/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gemm: C = alpha op(A) op(B) + beta C on block columns.
 *
 * A task computes some block columns of C, with all of op(A) and the columns of
 * op(B) that belong to them: on cores that is one call of BLAS when the memory of
 * A is in one piece. Where C is narrow, tasks compute rows of a block column.
 */
#include "la/cuda/cuda.h"
#include "la/product/product.h"

enum {
    GEMM_WIDTH = 1024, /* columns of C of a task, if there are enough */
    GEMM_COLUMNS = 14, /* block columns of C of a task */
    GEMM_ROWS = 256    /* the least rows of a task, where C is narrow */
};

void heddle_la_pieces(struct heddle_exec *x, enum blas_type t, unsigned at, unsigned n,
                      size_t first, struct la_pieces *out)
{
    out->n = heddle_la_merge(x, t, at, n, out->block);
    for (unsigned p = 0; p < out->n; p++) {
        out->first[p] = first;
        first += out->block[p].n;
    }
}

static bool is_empty(struct la_range r)
{
    return r.first >= r.end;
}

/* The part of a piece: rows and columns by their numbers, transposed or not. */
static struct blas_block piece_part(enum blas_type t, const struct la_pieces *s, unsigned p,
                                    bool is_transposed, struct la_range rows, struct la_range cols)
{
    const struct la_range r = is_transposed ? cols : rows, c = is_transposed ? rows : cols;

    return blas_part(t, s->block[p], r.first, c.first - s->first[p], r.end - r.first,
                     c.end - c.first);
}

static struct blas_block c_part(enum blas_type t, const struct la_pieces *c, unsigned p,
                                size_t c_row, struct la_range i, struct la_range j)
{
    return blas_part(t, c->block[p], i.first - c_row, j.first - c->first[p], i.end - i.first,
                     j.end - j.first);
}

/* C = beta C: a product of no columns. */
static heddle_status scale(struct la_gpu *gpu, const void *beta, const struct la_pieces *c,
                           size_t c_row, struct la_ranges r)
{
    const enum blas_type t = gpu->t;

    for (unsigned p = 0; p < c->n; p++) {
        const struct la_range j = split_cut(r.j, la_piece_columns(c, p));
        const struct blas_block to = c_part(t, c, p, c_row, r.i, j);
        const struct blas_block a = {to.a, to.m, 0, to.m}, b = {to.a, 0, to.n, 1};

        LA_TRY(heddle_gpu_gemm(gpu, 'N', 'N', heddle_blas_one(t), a, b, beta, to));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_multiply(struct la_gpu *gpu, char ta, char tb, const void *alpha,
                                 const struct la_pieces *a, const struct la_pieces *b,
                                 const void *beta, const struct la_pieces *c, size_t c_row,
                                 struct la_ranges r)
{
    const enum blas_type t = gpu->t;
    const bool at = ta != 'N', bt = tb != 'N';

    if (is_empty(r.k))
        return scale(gpu, beta, c, c_row, r);
    for (unsigned pc = 0; pc < c->n; pc++)
        for (unsigned pa = 0; pa < a->n; pa++)
            for (unsigned pb = 0; pb < b->n; pb++) {
                const struct la_range ac = la_piece_columns(a, pa), bc = la_piece_columns(b, pb);
                struct la_range i = r.i, k = r.k;
                struct la_range j = split_cut(r.j, la_piece_columns(c, pc));

                if (at)
                    i = split_cut(i, ac);
                else
                    k = split_cut(k, ac);
                if (bt)
                    k = split_cut(k, bc);
                else
                    j = split_cut(j, bc);
                if (is_empty(i) || is_empty(j) || is_empty(k))
                    continue;
                LA_TRY(heddle_gpu_gemm(gpu, ta, tb, alpha, piece_part(t, a, pa, at, i, k),
                                       piece_part(t, b, pb, bt, k, j),
                                       k.first == r.k.first ? beta : heddle_blas_one(t),
                                       c_part(t, c, pc, c_row, i, j)));
            }
    return HEDDLE_OK;
}

/* --- the task ------------------------------------------------------------------ */

/* Operands: block columns of C, of A, of B. */
struct gemm_arg {
    struct la_head h;
    char ta, tb;
    bool b_is_a; /* the same block columns, given once */
    unsigned nc, na, nb;
    size_t c0, a0, b0; /* first columns of the first operands */
    size_t c_row;
    struct la_ranges r;
    struct la_scalar alpha, beta;
};

static heddle_status run_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct gemm_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    struct la_pieces a, b, c;

    heddle_la_pieces(x, t, 0, g->nc, g->c0, &c);
    heddle_la_pieces(x, t, g->nc, g->na, g->a0, &a);
    if (!g->b_is_a)
        heddle_la_pieces(x, t, g->nc + g->na, g->nb, g->b0, &b);
    return heddle_la_multiply(gpu, g->ta, g->tb, &g->alpha, &a, g->b_is_a ? &a : &b, &g->beta, &c,
                              g->c_row, g->r);
}

static heddle_status run_gemm(struct heddle_exec *x)
{
    const struct gemm_arg *g = heddle_exec_arg(x);

    return heddle_la_is_broken(&g->h) ? HEDDLE_OK : run_on(x, &LA_CORE(g->h.t));
}

static heddle_status cuda_gemm(struct heddle_exec *x)
{
    const struct gemm_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return run_on(x, &gpu);
}

static struct heddle_cost cost_gemm(struct heddle_exec *x)
{
    const struct gemm_arg *g = heddle_exec_arg(x);
    const size_t m = g->r.i.end - g->r.i.first, n = g->r.j.end - g->r.j.first,
                 k = g->r.k.end - g->r.k.first;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, n, k),
                                .bytes = (double)(m * k + k * n + 2 * m * n) *
                                         (double)blas_bytes(g->h.t)};
}

/* --- a wide task on several cores: some columns of C each ------------------------ */

static const heddle_kernel kernel_part = {
    .size = sizeof(heddle_kernel),
    .name = "gemm_part",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gemm}}};

/* Without a device the tasks were made for cores. */
static enum heddle_expand want_gemm(struct heddle_exec *x)
{
    const struct gemm_arg *g = heddle_exec_arg(x);

    return g->h.la->has_cuda && g->nc == 1 && heddle_exec_noperands(x) <= SPLIT_CUTS
               ? la_wants_split(&g->h, g->r.j.end - g->r.j.first)
               : HEDDLE_EXPAND_NO;
}

static heddle_status expand_gemm(struct heddle_exec *x)
{
    struct gemm_arg g = *(const struct gemm_arg *)heddle_exec_arg(x);
    const struct la_range j = g.r.j;
    const size_t w = la_split(&g.h, j.end - j.first), c0 = g.c0;

    for (g.r.j.first = j.first; g.r.j.first < j.end; g.r.j.first = g.r.j.end) {
        g.r.j.end = la_min(j.end, g.r.j.first + w);
        g.c0 = g.r.j.first;
        LA_TRY(heddle_split_columns(x, &kernel_part, 0, heddle_exec_noperands(x), g.c0 - c0,
                                    g.r.j.end - g.r.j.first, &g, sizeof(g)));
    }
    return HEDDLE_OK;
}

static const heddle_kernel kernel_gemm = {
    .size = sizeof(heddle_kernel),
    .name = "gemm",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gemm}, LA_GPU(cuda_gemm)},
    .cost = cost_gemm,
    .expand = expand_gemm,
    .want_expand = want_gemm};

/* --- submitting ------------------------------------------------------------------ */

/* Rows of a block column as a handle of their own. */
static heddle_status view_rows(heddle_handle *column, struct la_range rows, heddle_handle **out)
{
    const size_t offset[2] = {rows.first, 0};
    const size_t extent[2] = {rows.end - rows.first, heddle_handle_get_layout(column)->extent[1]};

    return heddle_view_box(column, offset, extent, NULL, out);
}

/* One task: r is small enough. */
static heddle_status submit_one(const struct la_head *h, const struct la_product *p,
                                struct la_ranges r, int priority)
{
    const bool is_first = r.k.first == p->r.k.first;
    const struct la_range ac = p->ta == 'N' ? r.k : r.i, bc = p->tb == 'N' ? r.j : r.k;
    const struct la_range cb = la_cover(p->c, r.j);
    const bool is_whole = is_first && la_is_zero(h->t, p->beta) &&
                          (p->by_rows || (r.i.first == 0 && r.i.end == p->c->m)) &&
                          r.j.first == la_first(p->c, cb.first) &&
                          r.j.end == la_min(p->c->n, cb.end * p->c->nb);
    struct gemm_arg g = {.h = *h, .ta = p->ta, .tb = p->tb, .r = r};
    struct la_list l = {.n = 0};
    heddle_status st = HEDDLE_OK;

    g.alpha = la_scalar_of(h->t, p->alpha);
    g.beta = la_scalar_of(h->t, is_first ? p->beta : heddle_blas_one(h->t));
    g.c_row = p->by_rows ? r.i.first : 0;
    g.nc = la_list_columns(&l, p->c, r.j, is_whole ? HEDDLE_W : HEDDLE_RW, &g.c0);
    if (!is_empty(r.k)) {
        const struct la_range an = la_cover(p->a, ac), bn = la_cover(p->b, bc);

        g.na = la_list_columns(&l, p->a, ac, HEDDLE_R, &g.a0);
        g.b_is_a = p->a == p->b && an.first == bn.first && an.end == bn.end;
        if (!g.b_is_a)
            g.nb = la_list_columns(&l, p->b, bc, HEDDLE_R, &g.b0);
    }
    if (p->by_rows) {
        unsigned made = 0;

        for (; made < g.nc && st == HEDDLE_OK; made++)
            st = view_rows(l.op[made], r.i, &l.op[made]);
        if (st != HEDDLE_OK)
            made--;
        if (st == HEDDLE_OK)
            st = heddle_la_submit(h->la, &kernel_gemm, l.op, l.mode, l.n, &g, sizeof(g), priority);
        for (unsigned i = 0; i < made; i++)
            heddle_handle_unref(l.op[i]);
        return st;
    }
    return heddle_la_submit(h->la, &kernel_gemm, l.op, l.mode, l.n, &g, sizeof(g), priority);
}

/* Columns of C of one task: not too many block columns of C or of B. */
static struct la_range chunk_j(const struct la_product *p, struct la_range j)
{
    struct la_range r = {j.first, la_min(j.end, (j.first / p->c->nb + GEMM_COLUMNS) * p->c->nb)};

    return p->tb == 'N' ? split_cut(r, la_chunk(p->b, r)) : r;
}

heddle_status heddle_la_submit_product(const struct la_head *h, const struct la_product *p,
                                       int priority)
{
    struct la_range k0 = p->r.k;

    if (is_empty(p->r.i) || is_empty(p->r.j))
        return HEDDLE_OK;
    if (is_empty(k0) || la_is_zero(h->t, p->alpha))
        k0.end = k0.first;
    for (struct la_range j = p->r.j; j.first < p->r.j.end;) {
        j = chunk_j(p, (struct la_range){j.first, p->r.j.end});
        for (struct la_range i = p->r.i; i.first < p->r.i.end;) {
            struct la_range k = k0;

            i.end = p->r.i.end;
            if (p->ta != 'N' && !is_empty(k0))
                i = la_chunk(p->a, i);
            do { /* once when there is no k: C is scaled */
                k.end = k0.end;
                if (p->ta == 'N' && !is_empty(k))
                    k = la_chunk(p->a, k);
                if (p->tb != 'N' && !is_empty(k))
                    k = la_chunk(p->b, k);
                LA_TRY(submit_one(h, p, (struct la_ranges){i, j, k}, priority));
                k.first = k.end;
            } while (k.first < k0.end);
            i.first = i.end;
        }
        j.first = j.end;
    }
    return HEDDLE_OK;
}

/* --- the routine -------------------------------------------------------------------- */

/* Each task packs A again, which costs less when it has more columns of C. */
size_t heddle_la_group(const heddle_la *la, const heddle_matrix *c)
{
    size_t group = la_max(1, GEMM_WIDTH / c->nb);

    if (la->has_cuda)
        return la_min(group, 2);
    while (group > 1 && c->nt / group < 2 * (size_t)la->ncores)
        group--;
    return la_min(group, GEMM_COLUMNS);
}

/* How C is cut into tasks: groups of block columns and, when these would be too
 * narrow or too few, parts of their rows. */
static size_t cut_rows(const heddle_la *la, const heddle_matrix *c, size_t *group)
{
    const size_t want = 2 * (size_t)la->ncores;
    const size_t wide = la_min(la_max(1, GEMM_WIDTH / 2 / c->nb), GEMM_COLUMNS);
    size_t columns;

    *group = heddle_la_group(la, c);
    if (c->nt == 0 || la->has_cuda) /* devices like whole block columns */
        return 1;
    columns = (c->nt + *group - 1) / *group;
    if (*group >= wide && columns >= want)
        return 1;
    *group = la_min(la_max(*group, wide), c->nt);
    columns = (c->nt + *group - 1) / *group;
    return la_max(1, la_min((want + columns - 1) / columns, c->m / GEMM_ROWS));
}

static heddle_status submit_gemm(const struct la_head *h, struct la_product p)
{
    size_t group;
    const size_t parts = cut_rows(h->la, p.c, &group), nt = p.c->nt;
    const size_t cores = parts == 1 ? la_max(h->la->ncores, 1) : 1;
    size_t ngroups = (nt + group - 1) / group;

    /* As many for each core, all about as wide. */
    ngroups = la_min(nt, (ngroups + cores - 1) / cores * cores);
    p.by_rows = parts > 1;
    for (size_t g = 0; g < ngroups; g++)
        for (size_t part = 0; part < parts; part++) {
            const size_t j = nt * g / ngroups, end = nt * (g + 1) / ngroups;

            p.r.j = (struct la_range){la_first(p.c, j), la_min(p.c->n, la_first(p.c, end))};
            p.r.i = (struct la_range){p.c->m * part / parts, p.c->m * (part + 1) / parts};
            LA_TRY(heddle_la_submit_product(h, &p, (int)(nt - j)));
        }
    return HEDDLE_OK;
}

heddle_status heddle_la_gemm(heddle_la *la, char transa, char transb, const void *alpha,
                             heddle_matrix *a, heddle_matrix *b, const void *beta, heddle_matrix *c)
{
    struct la_product p = {.a = a, .b = b, .c = c, .alpha = alpha, .beta = beta};
    size_t k;

    p.ta = heddle_la_letter(transa, "NTC");
    p.tb = heddle_la_letter(transb, "NTC");
    LA_CHECK(la, 1, la != NULL && p.ta != '\0');
    LA_CHECK(la, 2, p.tb != '\0');
    LA_CHECK(la, 3, alpha != NULL);
    LA_CHECK(la, 4, a != NULL);
    k = p.ta == 'N' ? a->n : a->m;
    LA_CHECK(la, 5, b != NULL && b->t == a->t && (p.tb == 'N' ? b->m : b->n) == k);
    LA_CHECK(la, 6, beta != NULL);
    LA_CHECK(la, 7,
             c != NULL && c != a && c != b && c->t == a->t && c->m == (p.ta == 'N' ? a->m : a->n) &&
                 c->n == (p.tb == 'N' ? b->n : b->m));
    {
        const struct la_head h = heddle_la_begin(la, c);

        p.r.k = (struct la_range){0, k};
        return heddle_la_packs(la, &p) ? heddle_la_submit_packed(&h, &p) : submit_gemm(&h, p);
    }
}
