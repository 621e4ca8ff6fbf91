/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trxm: products (trmm) and solves (trsm) with a triangle.
 *
 * A step belongs to some block columns of A, the columns p. These hold the triangle
 * A_pp and, in the other rows o of the triangle, A_op:
 *
 *   pushing   left 'N', right 'T' 'C'   B_o = B_o -+ A_op B_p (left, for example)
 *   pulling   left 'T' 'C', right 'N'   B_p = B_p -+ A_op^T B_o
 *
 * A solve does A_pp first when it pushes and last when it pulls, a product the
 * other way round, and takes the columns in the opposite order. So every task
 * needs few block columns of A, and a solve may follow a factorisation closely.
 *
 * Left    the block columns of B are independent: a task is a step on one block
 *         column. When there are fewer block columns than cores, these are cut into
 *         groups of rows, and a step becomes one task for p and one for each o.
 * Right   the groups are block columns of B. The rows of B are independent:
 *         when there are few block columns, the rows are cut for the cores.
 *
 * The block columns of A and the groups of B need not match: a task gets all block
 * columns that cover its columns, and works on the part that its argument names.
 */
#include "base/alloc.h"
#include "la/cuda/cuda.h"
#include "la/la.h"

enum {
    MOST_OPERANDS = 250,
    GOOD_WIDTH = 256 /* products are fast from here on */
};

struct trxm_arg {
    struct la_head h;
    bool is_solve, is_push;
    bool is_forward; /* a solve takes the columns upwards */
    char side, uplo, trans, diag;
    unsigned nfirst; /* operands before those of A */
    size_t a0;       /* first column of the first operand of A */
    size_t p0, p1;   /* columns of A that the task is about */
    size_t i0, i1;   /* rows or columns of B: those written */
    size_t k0;       /* first of those read, if another operand */
    double alpha[2]; /* of the type of the elements */
};

static void set_alpha(struct trxm_arg *g, const void *alpha)
{
    memcpy(g->alpha, alpha, blas_bytes(g->h.t));
}

/* --- inside of tasks ----------------------------------------------------------- */

/* Rows (left) or columns first .. end - 1 of a part of B that begins at b0. */
static struct blas_block cut(const struct trxm_arg *g, struct blas_block b, size_t b0, size_t first,
                             size_t end)
{
    return g->side == 'L' ? blas_part(g->h.t, b, first - b0, 0, end - first, b.n)
                          : blas_part(g->h.t, b, 0, first - b0, b.m, end - first);
}

/* to = beta to + alpha op(A) from, or with A on the right. */
static heddle_status product(const struct trxm_arg *g, struct la_gpu *gpu, const void *alpha,
                             struct blas_block a, struct blas_block from, const void *beta,
                             struct blas_block to)
{
    return g->side == 'L' ? heddle_gpu_gemm(gpu, g->trans, 'N', alpha, a, from, beta, to)
                          : heddle_gpu_gemm(gpu, 'N', g->trans, alpha, from, a, beta, to);
}

static heddle_status diagonal(const struct trxm_arg *g, struct la_gpu *gpu, const void *alpha,
                              struct blas_block a, struct blas_block b)
{
    return (g->is_solve ? heddle_gpu_trsm : heddle_gpu_trmm)(gpu, g->side, g->uplo, g->trans,
                                                             g->diag, alpha, a, b);
}

/* A step with the columns c0 .. c1 - 1 of A, which are all of a. */
static heddle_status step(const struct trxm_arg *g, struct la_gpu *gpu, struct blas_block a,
                          size_t c0, struct blas_block b, const void *alpha)
{
    const enum blas_type t = g->h.t;
    const size_t c1 = c0 + a.n;
    const bool is_behind = g->is_push == g->is_forward;
    const size_t o0 = is_behind ? c1 : g->i0, o1 = is_behind ? g->i1 : c0;
    const struct blas_block tri = blas_part(t, a, c0, 0, a.n, a.n);
    const struct blas_block rest = blas_part(t, a, o0, 0, o1 - o0, a.n);
    const struct blas_block bp = cut(g, b, g->i0, c0, c1), bo = cut(g, b, g->i0, o0, o1);
    const struct blas_block from = g->is_push ? bp : bo, to = g->is_push ? bo : bp;
    const void *one = heddle_blas_one(t);
    const void *f = g->is_solve ? heddle_blas_minus_one(t) : alpha,
               *beta = g->is_solve ? alpha : one;
    const bool is_last = g->is_solve != g->is_push; /* the diagonal */

    if (o0 == o1)
        return diagonal(g, gpu, alpha, tri, bp);
    if (is_last)
        LA_TRY(product(g, gpu, f, rest, from, beta, to));
    LA_TRY(diagonal(g, gpu, g->is_solve && is_last ? one : alpha, tri, bp));
    return is_last ? HEDDLE_OK : product(g, gpu, f, rest, from, beta, to);
}

/* The columns p0 .. p1 - 1 of A as blocks, and the first column of each. */
static unsigned pieces(struct heddle_exec *x, const struct trxm_arg *g, struct blas_block *out,
                       size_t *first)
{
    const unsigned n =
        heddle_la_merge(x, g->h.t, g->nfirst, heddle_exec_noperands(x) - g->nfirst, out);
    size_t c = g->a0;

    for (unsigned i = 0; i < n; i++) {
        const size_t end = c + out[i].n;
        const size_t c0 = la_max(c, g->p0), c1 = la_min(end, g->p1);

        out[i] = blas_part(g->h.t, out[i], 0, c0 - c, out[i].m, c1 - c0);
        first[i] = c0;
        c = end;
    }
    return n;
}

static heddle_status step_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct trxm_arg *g = heddle_exec_arg(x);
    const struct blas_block b = la_operand(x, 0);
    const bool is_upward = g->is_forward == g->is_solve;
    struct blas_block a[MOST_OPERANDS];
    size_t first[MOST_OPERANDS];
    unsigned n;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    n = pieces(x, g, a, first);
    for (unsigned i = 0; i < n; i++) {
        const unsigned at = is_upward ? i : n - 1 - i;
        /* Later steps find what they read scaled. */
        const bool is_scaled = g->is_solve && g->is_push && i > 0;

        LA_TRY(step(g, gpu, a[at], first[at], b, is_scaled ? heddle_blas_one(g->h.t) : g->alpha));
    }
    return HEDDLE_OK;
}

/* One part of B changes another one. */
static heddle_status update_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct trxm_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);
    struct blas_block a[MOST_OPERANDS];
    size_t first[MOST_OPERANDS];
    unsigned n;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    n = pieces(x, g, a, first);
    for (unsigned i = 0; i < n; i++) {
        const size_t c0 = first[i], c1 = c0 + a[i].n;
        const bool is_scaled = g->is_push && i > 0;
        const void *one = heddle_blas_one(t);
        const void *f = g->is_solve ? heddle_blas_minus_one(t) : g->alpha;
        const void *beta = g->is_solve && !is_scaled ? g->alpha : one;

        if (g->is_push)
            LA_TRY(product(g, gpu, f, blas_part(t, a[i], g->i0, 0, g->i1 - g->i0, a[i].n),
                           cut(g, from, g->k0, c0, c1), beta, to));
        else
            LA_TRY(product(g, gpu, f,
                           blas_part(t, a[i], g->k0, 0, g->side == 'L' ? from.m : from.n, a[i].n),
                           from, beta, cut(g, to, g->i0, c0, c1)));
    }
    return HEDDLE_OK;
}

/* A product of nothing: B = 0. */
static heddle_status zero_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct trxm_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block b = la_operand(x, 0), left = {b.a, b.m, 0, b.ld},
                            right = {b.a, 0, b.n, 1};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return heddle_gpu_gemm(gpu, 'N', 'N', heddle_blas_one(t), left, right, heddle_blas_zero(t), b);
}

typedef heddle_status (*task_fn)(struct heddle_exec *, struct la_gpu *);

static heddle_status on_core(struct heddle_exec *x, task_fn run)
{
    const struct trxm_arg *g = heddle_exec_arg(x);

    return run(x, &LA_CORE(g->h.t));
}

static heddle_status on_cuda(struct heddle_exec *x, task_fn run)
{
    const struct trxm_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return run(x, &gpu);
}

static heddle_status run_step(struct heddle_exec *x)
{
    return on_core(x, step_on);
}

static heddle_status cuda_step(struct heddle_exec *x)
{
    return on_cuda(x, step_on);
}

static heddle_status run_update(struct heddle_exec *x)
{
    return on_core(x, update_on);
}

static heddle_status cuda_update(struct heddle_exec *x)
{
    return on_cuda(x, update_on);
}

static heddle_status run_zero(struct heddle_exec *x)
{
    return on_core(x, zero_on);
}

static heddle_status cuda_zero(struct heddle_exec *x)
{
    return on_cuda(x, zero_on);
}

/* --- costs --------------------------------------------------------------------- */

static struct heddle_cost cost_of(const struct trxm_arg *g, size_t rows, size_t columns,
                                  size_t others)
{
    return (struct heddle_cost){
        .flops = la_flops(g->h.t, rows, columns, others),
        .bytes = (double)((rows * columns + (rows + columns) * others) * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_step(struct heddle_exec *x)
{
    const struct trxm_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    const size_t rows = g->is_push == g->is_forward ? g->i1 - g->p0 : g->p1 - g->i0;

    return cost_of(g, rows, g->p1 - g->p0, l->extent[g->side == 'L']);
}

static struct heddle_cost cost_update(struct heddle_exec *x)
{
    const struct trxm_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0), *from = heddle_exec_layout(x, 1);
    const unsigned along = g->side == 'L' ? 0 : 1;

    return cost_of(g, g->is_push ? g->i1 - g->i0 : from->extent[along], g->p1 - g->p0,
                   l->extent[1 - along]);
}

static const heddle_kernel kernel_step = {
    .size = sizeof(heddle_kernel),
    .name = "trxm_step",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_step}, LA_GPU(cuda_step)},
    .cost = cost_step};

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "trxm_update",
    .noperands = 3,
    .mode = {HEDDLE_RW, HEDDLE_R, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}, LA_GPU(cuda_update)},
    .cost = cost_update};

static const heddle_kernel kernel_zero = {
    .size = sizeof(heddle_kernel),
    .name = "trxm_zero",
    .noperands = 1,
    .mode = {HEDDLE_RW}, /* not W: a broken sequence leaves it as it is */
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_zero}, LA_GPU(cuda_zero)}};

/* --- tasks ----------------------------------------------------------------------- */

/* A task that writes `to`, reads `from` (NULL: nothing else of B) and the columns
 * p0 .. p1 - 1 of A; several if these are too many block columns. */
static heddle_status submit(const struct trxm_arg *g, heddle_matrix *a, heddle_handle *to,
                            heddle_handle *from, int priority)
{
    const size_t first = g->p0 / a->nb, end = (g->p1 - 1) / a->nb + 1;
    const size_t most = la_min(MOST_OPERANDS - 2, a->list);
    const bool is_upward = g->is_forward == g->is_solve;
    heddle_handle *op[MOST_OPERANDS] = {to, from};
    enum heddle_mode modes[MOST_OPERANDS] = {HEDDLE_RW};
    struct trxm_arg one = *g;

    one.nfirst = from != NULL ? 2 : 1;
    for (unsigned i = 1; i < MOST_OPERANDS; i++)
        modes[i] = HEDDLE_R;
    for (size_t done = 0; done < end - first;) {
        const size_t n = la_min(most, end - first - done);
        const size_t c = is_upward ? first + done : end - done - n;

        memcpy(op + one.nfirst, a->col + c, n * sizeof(op[0]));
        one.a0 = c * a->nb;
        one.p0 = la_max(g->p0, one.a0);
        one.p1 = la_min(g->p1, (c + n) * a->nb);
        LA_TRY(heddle_la_submit(g->h.la, from != NULL ? &kernel_update : &kernel_step, op, modes,
                                one.nfirst + (unsigned)n, &one, sizeof(one), priority));
        if (g->is_solve && g->is_push)
            set_alpha(&one, heddle_blas_one(g->h.t)); /* it is scaled now */
        done += n;
    }
    return HEDDLE_OK;
}

/* --- parts of B ------------------------------------------------------------------- */

/* B in n parts, that wide but for the last one. */
struct parts {
    size_t n, width;
    heddle_handle **part;
    const struct heddle_allocator *alloc;
    bool is_own; /* views, to be dropped */
};

static void drop(struct parts *r)
{
    if (!r->is_own)
        return;
    for (size_t i = 0; i < r->n; i++)
        heddle_handle_unref(r->part[i]);
    heddle_free(r->alloc, r->part, r->n * sizeof(r->part[0]));
}

static heddle_status alloc(const heddle_matrix *b, struct parts *r, size_t extent, size_t width)
{
    r->n = (extent + width - 1) / width;
    r->width = width;
    r->alloc = &b->alloc;
    r->part = heddle_zalloc(r->alloc, r->n, sizeof(r->part[0]));
    r->is_own = true;
    return r->part != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* Views of block column j: groups of rows. */
static heddle_status cut_column(heddle_matrix *b, size_t j, size_t height, struct parts *r)
{
    heddle_status st = alloc(b, r, b->m, height);

    if (st != HEDDLE_OK)
        return st;
    for (size_t i = 0; i < r->n && st == HEDDLE_OK; i++)
        st = heddle_view_tile(b->col[j], i, 0, height, la_width(b, j), &r->part[i]);
    if (st != HEDDLE_OK)
        drop(r);
    return st;
}

/* Rows i of B, height of them, in groups of columns. The width is that of the block
 * columns, or, in memory of the program, a multiple of it. */
static heddle_status cut_rows(heddle_matrix *b, size_t i, size_t height, size_t width,
                              struct parts *r)
{
    heddle_status st;

    if (height >= b->m && width == b->nb) {
        *r = (struct parts){.n = b->nt, .width = b->nb, .part = b->col};
        return HEDDLE_OK;
    }
    st = alloc(b, r, b->n, width);
    if (st != HEDDLE_OK)
        return st;
    for (size_t j = 0; j < r->n && st == HEDDLE_OK; j++)
        st = b->root != NULL
                 ? heddle_view_tile(b->root, i, j, height, width, &r->part[j])
                 : heddle_view_tile(b->col[j], i, 0, height, la_width(b, j), &r->part[j]);
    if (st != HEDDLE_OK)
        drop(r);
    return st;
}

/* Narrow block columns together, as long as there are parts for all cores. Views of
 * what lies on a device would go through the host. */
static size_t pick_width(const heddle_la *la, const heddle_matrix *b, size_t parts)
{
    if (la->has_cuda || b->root == NULL)
        return b->nb;
    return b->nb * la_max(1, la_min(GOOD_WIDTH / b->nb, b->nt / la_max(1, parts)));
}

/* --- parts that are independent ----------------------------------------------------- */

static heddle_status left_steps(struct trxm_arg *g, const void *alpha, heddle_matrix *a,
                                const struct parts *r)
{
    const bool is_upward = g->is_forward == g->is_solve;
    const size_t width = a->nb * la_max(1, la_min(GOOD_WIDTH / a->nb, a->list));
    const size_t n = (a->n + width - 1) / width;

    g->i0 = 0;
    g->i1 = a->n;
    for (size_t s = 0; s < n; s++) {
        const size_t k = is_upward ? s : n - 1 - s;

        g->p0 = k * width;
        g->p1 = la_min(a->n, g->p0 + width);
        set_alpha(g, g->is_solve && g->is_push && s > 0 ? heddle_blas_one(g->h.t) : alpha);
        for (size_t j = 0; j < r->n; j++)
            LA_TRY(submit(g, a, r->part[j], NULL, (int)(2 * (n - s))));
    }
    return HEDDLE_OK;
}

/* --- parts that change one another -------------------------------------------------- */

static heddle_status submit_group(struct trxm_arg *g, heddle_matrix *a, const struct parts *r,
                                  size_t k)
{
    g->i0 = g->p0 = k * r->width;
    g->i1 = g->p1 = la_min(a->n, g->p0 + r->width);
    return submit(g, a, r->part[k], NULL, (int)(2 * r->n + 1));
}

static heddle_status submit_update(struct trxm_arg *g, heddle_matrix *a, const struct parts *r,
                                   size_t i, size_t k, int priority)
{
    const size_t i1 = la_min(a->n, (i + 1) * r->width);
    const size_t k1 = la_min(a->n, (k + 1) * r->width);

    g->i0 = i * r->width;
    g->i1 = i1;
    g->k0 = k * r->width;
    g->p0 = g->is_push ? g->k0 : g->i0;
    g->p1 = g->is_push ? k1 : i1;
    return submit(g, a, r->part[i], r->part[k], priority);
}

static heddle_status group_steps(struct trxm_arg *g, const void *alpha, heddle_matrix *a,
                                 const struct parts *r)
{
    const bool is_upward = g->is_forward == g->is_solve;

    set_alpha(g, alpha);
    for (size_t s = 0; s < r->n; s++) {
        const size_t k = is_upward ? s : r->n - 1 - s;
        const size_t begin = g->is_solve ? s + 1 : 0, end = g->is_solve ? r->n : s;

        if (g->is_solve)
            LA_TRY(submit_group(g, a, r, k));
        for (size_t at = begin; at < end; at++)
            LA_TRY(
                submit_update(g, a, r, is_upward ? at : r->n - 1 - at, k, (int)(2 * (r->n - at))));
        if (!g->is_solve)
            LA_TRY(submit_group(g, a, r, k));
        else
            set_alpha(g, heddle_blas_one(g->h.t)); /* all is scaled now */
    }
    return HEDDLE_OK;
}

/* --- the loops ------------------------------------------------------------------------ */

static heddle_status left(struct trxm_arg *g, const void *alpha, heddle_matrix *a, heddle_matrix *b)
{
    const heddle_la *la = g->h.la;
    const size_t cores = la_max(1, la->ncores);
    const size_t want = la_max(GOOD_WIDTH, a->n / la_max(8, 4 * cores));
    const size_t height = (want + a->nb - 1) / a->nb * a->nb;
    heddle_status st = HEDDLE_OK;
    struct parts r;

    if (la->has_cuda || b->nt >= cores || a->n < 2 * GOOD_WIDTH) {
        LA_TRY(cut_rows(b, 0, b->m, pick_width(la, b, 4 * cores), &r));
        st = left_steps(g, alpha, a, &r);
        drop(&r);
        return st;
    }
    for (size_t j = 0; j < b->nt && st == HEDDLE_OK; j++) {
        LA_TRY(cut_column(b, j, height, &r));
        st = group_steps(g, alpha, a, &r);
        drop(&r);
    }
    return st;
}

static heddle_status right(struct trxm_arg *g, const void *alpha, heddle_matrix *a,
                           heddle_matrix *b)
{
    const heddle_la *la = g->h.la;
    const size_t cores = la_max(1, la->ncores);
    const size_t most = la_max(1, b->m / GOOD_WIDTH); /* chunks of rows */
    const bool is_whole = la->has_cuda || cores == 1 || b->nt >= 4 * cores || most == 1;
    const size_t chunks = is_whole ? 1 : la_min(2 * cores, most);
    const size_t height = (b->m + chunks - 1) / chunks;
    const size_t width = pick_width(la, b, is_whole ? 4 * cores : 1);
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i * height < b->m && st == HEDDLE_OK; i++) {
        struct parts r;

        LA_TRY(cut_rows(b, i, height, width, &r));
        st = group_steps(g, alpha, a, &r);
        drop(&r);
    }
    return st;
}

static heddle_status trxm(heddle_la *la, bool is_solve, const char *how, const void *alpha,
                          heddle_matrix *a, heddle_matrix *b)
{
    struct trxm_arg g = {.is_solve = is_solve,
                         .side = heddle_la_letter(how[0], "LR"),
                         .uplo = heddle_la_letter(how[1], "UL"),
                         .trans = heddle_la_letter(how[2], "NTC"),
                         .diag = heddle_la_letter(how[3], "NU")};

    LA_CHECK(la, 1, la != NULL && g.side != '\0');
    LA_CHECK(la, 2, g.uplo != '\0');
    LA_CHECK(la, 3, g.trans != '\0');
    LA_CHECK(la, 4, g.diag != '\0');
    LA_CHECK(la, 5, alpha != NULL);
    LA_CHECK(la, 6, a != NULL && a->m == a->n);
    LA_CHECK(la, 7, b != NULL && b != a && b->t == a->t && (g.side == 'L' ? b->m : b->n) == a->n);
    g.h = heddle_la_begin(la, a);
    g.is_push = (g.side == 'L') == (g.trans == 'N');
    g.is_forward = (g.side == 'L') == ((g.uplo == 'L') == (g.trans == 'N'));
    if (heddle_blas_is_zero(a->t, alpha)) { /* nothing of A is looked at */
        for (size_t j = 0; j < b->nt; j++)
            LA_TRY(heddle_la_submit(la, &kernel_zero, &b->col[j], NULL, 1, &g, sizeof(g), 0));
        return HEDDLE_OK;
    }
    if (b->nt == 0)
        return HEDDLE_OK;
    return g.side == 'L' ? left(&g, alpha, a, b) : right(&g, alpha, a, b);
}

heddle_status heddle_la_trsm(heddle_la *la, char side, char uplo, char trans, char diag,
                             const void *alpha, heddle_matrix *a, heddle_matrix *b)
{
    const char how[4] = {side, uplo, trans, diag};

    return trxm(la, true, how, alpha, a, b);
}

heddle_status heddle_la_trmm(heddle_la *la, char side, char uplo, char trans, char diag,
                             const void *alpha, heddle_matrix *a, heddle_matrix *b)
{
    const char how[4] = {side, uplo, trans, diag};

    return trxm(la, false, how, alpha, a, b);
}
