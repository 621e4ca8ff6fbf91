/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ormqr, orgqr: Q of a QR factorisation applied, and formed.
 *
 * Left    C_j = op(H_k) C_j: a task for each block reflector k and each few block
 *         columns j; k goes up for Q^H, down for Q
 * Right   C Q = (Q^H C^H)^H, with C^H in memory of the runtime
 * Form    Q = H_1 H_2 .. [I; 0]: k goes down; columns left of block reflector k
 *         are those of the identity, which H_k leaves alone. In place, block
 *         column k becomes H_k [0; I; 0] when the columns right of it have it.
 */
#include "la/cuda/cuda.h"
#include "la/la.h"
#include "la/matrix/flip.h"
#include "la/qr/reflect.h"

enum { APPLY_MANY = 14, APPLY_WIDTH = 256 };

struct ormqr_arg {
    struct la_head h;
    size_t k0, nk; /* first row, and number of reflectors */
    char trans;
    size_t column; /* number of the first one */
};

/* --- tasks -------------------------------------------------------------------- */

static void set_one(enum blas_type t, struct blas_block a, size_t i, size_t j)
{
    memcpy(blas_at(t, a, i, j), heddle_blas_one(t), blas_bytes(t));
}

/* Columns `column` and so on of the identity. */
static void set_identity(enum blas_type t, struct blas_block a, size_t column)
{
    for (size_t j = 0; j < a.n; j++) {
        memset(blas_at(t, a, 0, j), 0, a.m * blas_bytes(t));
        if (column + j < a.m)
            set_one(t, a, column + j, j);
    }
}

static heddle_status run_apply(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block v = la_operand(x, 0), tri = la_operand(x, 1);
    const unsigned n = heddle_exec_noperands(x) - 2;
    struct blas_block c[APPLY_MANY];
    unsigned count;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    count = heddle_la_merge(x, t, 2, n, c);
    for (unsigned i = 0; i < count; i++)
        LA_TRY(heddle_la_reflect(g->h.la, t, 'L', g->trans,
                                 blas_part(t, v, g->k0, 0, v.m - g->k0, g->nk), tri,
                                 blas_part(t, c[i], g->k0, 0, c[i].m - g->k0, c[i].n)));
    return HEDDLE_OK;
}

static heddle_status run_identity(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    set_identity(g->h.t, la_operand(x, 0), g->column);
    return HEDDLE_OK;
}

/* H E = E - V X with X = T V1^H, upper triangular: V2 is multiplied in place. */
static heddle_status form(heddle_la *la, enum blas_type t, struct blas_block v,
                          struct blas_block tri)
{
    const size_t k = v.n, bytes = k * k * blas_bytes(t);
    char *work = heddle_la_work(la, 2 * bytes);
    const struct blas_block x = {work, k, k, k};
    const struct blas_block y = {work != NULL ? work + bytes : NULL, k, k, k};

    if (work == NULL)
        return HEDDLE_ENOMEM;
    memset(work, 0, bytes);
    for (size_t j = 0; j < k; j++)
        memcpy(blas_at(t, x, 0, j), blas_at(t, tri, 0, j), (j + 1) * blas_bytes(t));
    heddle_blas_trmm(t, 'R', 'L', 'C', 'U', heddle_blas_one(t), v, x);
    memcpy(y.a, x.a, bytes);
    heddle_blas_trmm(t, 'L', 'L', 'N', 'U', heddle_blas_minus_one(t), v, y);
    heddle_blas_trmm(t, 'R', 'U', 'N', 'N', heddle_blas_minus_one(t), x,
                     blas_part(t, v, k, 0, v.m - k, k));
    for (size_t j = 0; j < k; j++) {
        void *d = blas_at(t, y, j, j);

        if (blas_real_bytes(t) == 4)
            *(float *)d += 1;
        else
            *(double *)d += 1;
        memcpy(blas_at(t, v, 0, j), blas_at(t, y, 0, j), k * blas_bytes(t));
    }
    return HEDDLE_OK;
}

/* A block column in place; it may have more columns than reflectors. */
static heddle_status run_form(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0), tri = la_operand(x, 1);
    const struct blas_block v = blas_part(t, a, g->k0, 0, a.m - g->k0, g->nk);
    const struct blas_block more = blas_part(t, a, 0, g->nk, a.m, a.n - g->nk);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    set_identity(t, more, g->k0 + g->nk);
    LA_TRY(heddle_la_reflect(g->h.la, t, 'L', 'N', v, tri,
                             blas_part(t, more, g->k0, 0, more.m - g->k0, more.n)));
    LA_TRY(form(g->h.la, t, v, tri));
    for (size_t j = 0; j < g->nk; j++)
        memset(blas_at(t, a, 0, j), 0, g->k0 * blas_bytes(t));
    return HEDDLE_OK;
}

/* --- the same on a GPU ---------------------------------------------------------- */

static heddle_status cuda_apply(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block v = la_operand(x, 0), tri = la_operand(x, 1);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    for (unsigned i = 2; i < heddle_exec_noperands(x); i++) {
        const struct blas_block c = la_operand(x, i);

        LA_TRY(heddle_gpu_reflect_packed(&gpu, g->trans,
                                         blas_part(t, v, g->k0, 0, v.m - g->k0, g->nk), tri,
                                         blas_part(t, c, g->k0, 0, c.m - g->k0, c.n)));
    }
    return HEDDLE_OK;
}

static heddle_status cuda_identity(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_identity(&gpu, la_operand(x, 0), g->column);
}

static heddle_status cuda_form(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0), tri = la_operand(x, 1);
    const struct blas_block v = blas_part(t, a, g->k0, 0, a.m - g->k0, g->nk);
    const struct blas_block more = blas_part(t, a, 0, g->nk, a.m, a.n - g->nk);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    LA_TRY(heddle_gpu_has_squares(&gpu, g->nk, 2));
    LA_TRY(heddle_gpu_identity(&gpu, more, g->k0 + g->nk));
    LA_TRY(heddle_gpu_reflect_packed(&gpu, 'N', v, tri, blas_part(t, more, g->k0, 0, v.m, more.n)));
    LA_TRY(heddle_gpu_form(&gpu, v, tri));
    return heddle_gpu_identity(&gpu, blas_part(t, a, 0, 0, g->k0, g->nk), g->k0);
}

/* --- costs ---------------------------------------------------------------------- */

static struct heddle_cost cost_apply(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0] - g->k0;
    size_t n = 0;

    for (unsigned i = 2; i < heddle_exec_noperands(x); i++)
        n += heddle_exec_layout(x, i)->extent[1];
    return (struct heddle_cost){.flops = 2 * la_flops(g->h.t, m, n, g->nk),
                                .bytes = (double)(m * (g->nk + 2 * n) * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_form(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    const size_t m = l->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->nk, g->nk) / 2,
                                .bytes = (double)(2 * m * l->extent[1] * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_identity(struct heddle_exec *x)
{
    const struct ormqr_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){.bytes = (double)(heddle_exec_count(x, 0) * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_apply = {
    .size = sizeof(heddle_kernel),
    .name = "ormqr_apply",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_apply},
                 LA_GPU(cuda_apply, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_apply};

static const heddle_kernel kernel_form = {
    .size = sizeof(heddle_kernel),
    .name = "orgqr_form",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_form},
                 LA_GPU(cuda_form, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_form};

static const heddle_kernel kernel_identity = {
    .size = sizeof(heddle_kernel),
    .name = "orgqr_identity",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_identity}, LA_GPU(cuda_identity)},
    .cost = cost_identity};

/* --- loops ---------------------------------------------------------------------- */

/* Block columns of c for one task: wide enough for products, few enough that all
 * cores have some. */
static size_t columns_per_task(const heddle_la *la, const heddle_matrix *c)
{
    const size_t cores = la_max(la->ncores, 1);
    const size_t wide = (APPLY_WIDTH + c->nb - 1) / c->nb, share = c->nt / (2 * cores);

    return la_max(1, la_min(APPLY_MANY, la_min(wide, share)));
}

/* Block reflector k to the block columns of c from `from` on. */
static heddle_status apply_one(heddle_matrix *a, heddle_matrix *t, heddle_matrix *c, size_t k,
                               size_t from, const struct ormqr_arg *g, int priority)
{
    static const enum heddle_mode mode[2 + APPLY_MANY] = {
        HEDDLE_R,  HEDDLE_R,  HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW,
        HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW, HEDDLE_RW};
    const size_t many = columns_per_task(g->h.la, c);

    /* Groups begin at the same columns for every k. */
    for (size_t j = from / many * many; from < c->nt && j < c->nt; j += many) {
        const size_t first = la_max(j, from), n = la_min(j + many, c->nt) - first;
        heddle_handle *op[2 + APPLY_MANY] = {a->col[k], t->col[k]};

        for (size_t i = 0; i < n; i++)
            op[2 + i] = c->col[first + i];
        LA_TRY(heddle_la_submit(g->h.la, &kernel_apply, op, mode, (unsigned)(2 + n), g, sizeof(*g),
                                priority));
    }
    return HEDDLE_OK;
}

/* Number of reflectors; t may have fewer columns than a. */
static size_t reflectors(const heddle_matrix *a, const heddle_matrix *t)
{
    return la_min(la_min(a->m, a->n), t->n);
}

static size_t block_reflectors(const heddle_matrix *a, const heddle_matrix *t)
{
    return (reflectors(a, t) + a->nb - 1) / a->nb;
}

static void select_block(struct ormqr_arg *g, const heddle_matrix *a, const heddle_matrix *t,
                         size_t k)
{
    g->k0 = la_first(a, k);
    g->nk = la_min(a->nb, reflectors(a, t) - g->k0);
}

static heddle_status apply_left(heddle_la *la, char trans, heddle_matrix *a, heddle_matrix *t,
                                heddle_matrix *c)
{
    struct ormqr_arg g = {.h = heddle_la_begin(la, a), .trans = trans};
    const size_t n = c->nt > 0 ? block_reflectors(a, t) : 0;

    for (size_t i = 0; i < n; i++) {
        const size_t k = trans == 'N' ? n - 1 - i : i;

        select_block(&g, a, t, k);
        LA_TRY(apply_one(a, t, c, k, 0, &g, (int)(n - i)));
    }
    return HEDDLE_OK;
}

static heddle_status apply_right(heddle_la *la, char trans, heddle_matrix *a, heddle_matrix *t,
                                 heddle_matrix *c)
{
    const size_t share = c->m / (4 * la_max(la->ncores, 1));
    heddle_matrix *w = NULL;
    heddle_status st;

    if (c->nt == 0)
        return HEDDLE_OK;
    st = heddle_la_temporary(la, c->dtype, c->n, c->m, la_max(16, la_min(APPLY_WIDTH, share)), &w);
    if (st == HEDDLE_OK)
        st = heddle_la_flip(la, c, w);
    if (st == HEDDLE_OK)
        st = apply_left(la, trans == 'N' ? 'C' : 'N', a, t, w);
    if (st == HEDDLE_OK)
        st = heddle_la_flip(la, w, c);
    heddle_matrix_destroy(w);
    return st;
}

static bool is_factor(const heddle_matrix *a, const heddle_matrix *t)
{
    return t != NULL && t->t == a->t && t->nb == a->nb && t->m >= la_min(a->nb, reflectors(a, t));
}

heddle_status heddle_la_ormqr(heddle_la *la, char side, char trans, heddle_matrix *a,
                              heddle_matrix *t, heddle_matrix *c)
{
    const char s = heddle_la_letter(side, "LR");
    char op;

    LA_CHECK(la, 1, la != NULL && s != '\0');
    LA_CHECK(la, 3, a != NULL);
    op = heddle_la_letter(trans, blas_is_complex(a->t) ? "NC" : "NTC");
    LA_CHECK(la, 2, op != '\0');
    LA_CHECK(la, 4, is_factor(a, t));
    LA_CHECK(la, 5,
             c != NULL && c != a && c != t && c->t == a->t && (s == 'L' ? c->m : c->n) == a->m);
    op = op == 'T' ? 'C' : op;
    return s == 'L' ? apply_left(la, op, a, t, c) : apply_right(la, op, a, t, c);
}

/* Each block column k becomes columns of Q after those right of it got H_k. */
static heddle_status form_in_place(heddle_la *la, heddle_matrix *a, heddle_matrix *t)
{
    struct ormqr_arg g = {.h = heddle_la_begin(la, a), .trans = 'N'};
    const size_t n = block_reflectors(a, t);

    for (size_t j = n; j < a->nt; j++) {
        g.column = la_first(a, j);
        LA_TRY(
            heddle_la_submit(la, &kernel_identity, &a->col[j], NULL, 1, &g, sizeof(g), (int)n + 1));
    }
    for (size_t k = n; k-- > 0;) {
        heddle_handle *const op[2] = {a->col[k], t->col[k]};

        select_block(&g, a, t, k);
        LA_TRY(apply_one(a, t, a, k, k + 1, &g, (int)k + 1));
        LA_TRY(heddle_la_submit(la, &kernel_form, op, NULL, 2, &g, sizeof(g), (int)k + 1));
    }
    return HEDDLE_OK;
}

static heddle_status form_apart(heddle_la *la, heddle_matrix *a, heddle_matrix *t, heddle_matrix *q)
{
    struct ormqr_arg g = {.h = heddle_la_begin(la, a), .trans = 'N'};
    const size_t n = q->nt > 0 ? block_reflectors(a, t) : 0;

    for (size_t j = 0; j < q->nt; j++) {
        g.column = la_first(q, j);
        LA_TRY(
            heddle_la_submit(la, &kernel_identity, &q->col[j], NULL, 1, &g, sizeof(g), (int)n + 1));
    }
    for (size_t k = n; k-- > 0;) {
        select_block(&g, a, t, k);
        if (g.k0 < q->n) /* the block column that has column k0 is the first */
            LA_TRY(apply_one(a, t, q, k, g.k0 / q->nb, &g, (int)k + 1));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_orgqr(heddle_la *la, heddle_matrix *a, heddle_matrix *t, heddle_matrix *q)
{
    LA_CHECK(la, 1, la != NULL && a != NULL);
    LA_CHECK(la, 2, is_factor(a, t));
    LA_CHECK(la, 3, q != NULL && q != t && q->t == a->t && q->m == a->m && q->n <= q->m);
    return q == a ? form_in_place(la, a, t) : form_apart(la, a, t, q);
}
