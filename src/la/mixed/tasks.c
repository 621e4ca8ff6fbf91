/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tasks: what a refinement does with A and with right-hand sides.
 *
 * With one right-hand side all but the factorisation is bound by memory, so what
 * reads A reads it once: the copy to low precision also sums up the rows, and the
 * product with half of a hermitian matrix goes through small squares.
 */
#include <complex.h>
#include <math.h>

#include "base/alloc.h"
#include "la/cuda/mixed.h"
#include "la/mixed/mixed.h"
#include "la/product/product.h"

/* --- A to low precision, with sums of its rows ---------------------------------- */

/* Operands: sums of rows, block columns of A, then those of the low matrix. */
struct narrow_arg {
    struct la_head h;
    char uplo; /* 0: all */
    unsigned n;
    size_t j0;
    double scale;
    bool adds;   /* to the sums that are there */
    bool clears; /* what is outside of the triangle */
};

static inline double abs_z(double complex v)
{
    const double re = creal(v), im = cimag(v), s = re * re + im * im;

    return s > 1e-280 && s < 1e300 ? sqrt(s) : hypot(re, im);
}

/* to = scale from, sums += |from|; the sum of all. */
static double narrow_d(const double *from, float *to, size_t n, double scale, double *sums)
{
    double s[4] = {0, 0, 0, 0};

    for (size_t i = 0; i < n; i++) {
        to[i] = (float)(scale * from[i]);
        sums[i] += fabs(from[i]);
    }
    for (size_t i = 0; i < n; i++)
        s[i & 3] += fabs(from[i]);
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static double narrow_z(const double complex *from, float complex *to, size_t n, double scale,
                       double *sums)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        const double v = abs_z(from[i]);

        to[i] = (float complex)(scale * from[i]);
        sums[i] += v;
        sum += v;
    }
    return sum;
}

/* In all of A the sums of columns are not wanted. */
static void narrow_plain(const double *from, float *to, size_t n, double scale, double *sums)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)(scale * from[i]);
        sums[i] += fabs(from[i]);
    }
}

static void narrow_column(const struct narrow_arg *g, const void *from, void *to, struct la_range r,
                          size_t col, double *all)
{
    const size_t n = r.end - r.first;
    double *sums = all + r.first, sum;

    if (g->uplo == '\0' && g->h.t == BLAS_D) {
        narrow_plain(from, to, n, g->scale, sums);
        return;
    }
    sum = g->h.t == BLAS_D ? narrow_d(from, to, n, g->scale, sums)
                           : narrow_z(from, to, n, g->scale, sums);
    if (g->uplo != '\0') { /* the mirrored part: all but the diagonal */
        const size_t at = g->uplo == 'L' ? 0 : n - 1;
        const double d = g->h.t == BLAS_D ? fabs(((const double *)from)[at])
                                          : abs_z(((const double complex *)from)[at]);

        /* d may be most of the sum: what rounding leaves is below its error. */
        all[col] += sum == d ? 0 : sum - d;
    }
}

static heddle_status run_narrow(struct heddle_exec *x)
{
    const struct narrow_arg *g = heddle_exec_arg(x);
    double *sums = heddle_exec_ptr(x, 0);
    size_t col = g->j0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (!g->adds)
        memset(sums, 0, heddle_exec_count(x, 0) * sizeof(*sums));
    for (unsigned k = 0; k < g->n; k++) {
        const struct blas_block a = la_operand(x, 1 + k), low = la_operand(x, 1 + g->n + k);

        for (size_t j = 0; j < a.n; j++, col++) {
            const struct la_range r = la_rows(g->uplo == '\0' ? 'A' : g->uplo, a.m, col);

            if (g->clears)
                memset(blas_at(la_low(g->h.t), low, 0, j), 0, low.m * blas_bytes(la_low(g->h.t)));
            narrow_column(g, blas_at(g->h.t, a, r.first, j),
                          blas_at(la_low(g->h.t), low, r.first, j), r, col, sums);
        }
    }
    return HEDDLE_OK;
}

static heddle_status cuda_narrow(struct heddle_exec *x)
{
    const struct narrow_arg *g = heddle_exec_arg(x);
    size_t col = g->j0;

    if (g->h.t != BLAS_D || heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS ||
        g->clears != (g->uplo != '\0'))
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned k = 0; k < g->n; k++) {
        const struct blas_block a = la_operand(x, 1 + k);

        LA_TRY(heddle_gpu_narrow(x, g->uplo, col, a, la_operand(x, 1 + g->n + k), g->scale,
                                 heddle_exec_ptr(x, 0), g->adds || k > 0));
        col += a.n;
    }
    return HEDDLE_OK;
}

/* Operands: told, then sums. The largest sum of a row; NaN when one is. */
static heddle_status run_norm(struct heddle_exec *x)
{
    const struct la_head *h = heddle_exec_arg(x);
    const size_t m = heddle_exec_count(x, 1);
    const unsigned n = heddle_exec_noperands(x) - 1;
    const double *sums[LA_MIXED_SUMS];
    double *told = heddle_exec_ptr(x, 0);

    if (heddle_la_is_broken(h))
        return HEDDLE_OK;
    for (unsigned p = 0; p < n; p++)
        sums[p] = heddle_exec_ptr(x, 1 + p);
    told[0] = 0;
    for (size_t i = 0; i < m; i++) {
        double sum = 0;

        for (unsigned p = 0; p < n; p++)
            sum += sums[p][i];
        if (told[0] < sum || sum != sum)
            told[0] = sum;
        if (sum != sum)
            break;
    }
    return HEDDLE_OK;
}

static heddle_status cuda_norm(struct heddle_exec *x)
{
    const struct la_head *h = heddle_exec_arg(x);
    const size_t m = heddle_exec_count(x, 1);

    if (heddle_exec_noperands(x) != 2)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(h))
        return HEDDLE_OK;
    return heddle_gpu_largest(x, (struct blas_block){heddle_exec_ptr(x, 1), m, 1, m},
                              heddle_exec_ptr(x, 0));
}

static struct heddle_cost cost_narrow(struct heddle_exec *x)
{
    const struct narrow_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1);

    return (struct heddle_cost){.bytes = 1.5 * g->n * (double)l->extent[0] * (double)l->extent[1] *
                                         (double)blas_bytes(g->h.t)};
}

static const heddle_kernel kernel_narrow = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_narrow",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_narrow},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_narrow}},
    .cost = cost_narrow};

static const heddle_kernel kernel_norm = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_norm",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_norm},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_norm}}};

/* On a device one vector of sums is enough: tasks follow each other there. */
static size_t count_sums(const struct la_mixed *s)
{
    return s->la->has_cuda ? 1 : la_min(s->a->nt, LA_MIXED_SUMS);
}

heddle_status heddle_la_mixed_narrow(struct la_mixed *s)
{
    heddle_matrix *a = s->a, *low = s->low.m;
    const bool has_cuda = s->la->has_cuda, is_part = s->uplo != '\0';
    struct narrow_arg g = {.h = heddle_la_begin(s->la, a),
                           .uplo = s->uplo,
                           .scale = s->scale,
                           .clears = has_cuda && is_part};
    const size_t tasks = la_max(la_min(a->nt, LA_MIXED_SUMS), (a->nt + a->list - 1) / a->list);
    const size_t nsums = count_sums(s);
    heddle_handle *op[1 + 2 * LA_LIST] = {s->told};
    enum heddle_mode mode[1 + 2 * LA_LIST] = {HEDDLE_RW};

    for (size_t p = 0; p < tasks; p++) {
        const size_t first = a->nt * p / tasks, end = a->nt * (p + 1) / tasks;

        g.n = (unsigned)(end - first);
        g.j0 = la_first(a, first);
        g.adds = p >= nsums;
        op[0] = s->sums[p % nsums];
        mode[0] = g.adds ? HEDDLE_RW : HEDDLE_W;
        for (unsigned i = 0; i < g.n; i++) {
            op[1 + i] = a->col[first + i];
            mode[1 + i] = HEDDLE_R;
            op[1 + g.n + i] = low->col[first + i];
            mode[1 + g.n + i] = is_part && !g.clears ? HEDDLE_RW : HEDDLE_W;
        }
        LA_TRY(heddle_la_submit(s->la, &kernel_narrow, op, mode, 1 + 2 * g.n, &g, sizeof(g),
                                (int)(2 * (tasks - p))));
    }
    op[0] = s->told;
    mode[0] = HEDDLE_RW;
    for (unsigned p = 0; p < nsums; p++) {
        op[1 + p] = s->sums[p];
        mode[1 + p] = HEDDLE_R;
    }
    return heddle_la_submit(s->la, &kernel_norm, op, mode, 1 + (unsigned)nsums, &g.h, sizeof(g.h),
                            0);
}

heddle_status heddle_la_mixed_open(struct la_mixed *s)
{
    const size_t m = s->a->m;

    s->perm = heddle_zalloc(&s->la->alloc, m, sizeof(*s->perm));
    if (s->perm == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < count_sums(s); i++)
        LA_TRY(heddle_handle_vector(s->la->ctx, NULL, m, HEDDLE_F64, &s->sums[i]));
    return heddle_handle_vector(s->la->ctx, NULL, 1 + 2 * s->nrhs, HEDDLE_F64, &s->told);
}

void heddle_la_mixed_shut(struct la_mixed *s)
{
    for (unsigned i = 0; i < LA_MIXED_SUMS; i++)
        heddle_handle_unref(s->sums[i]);
    heddle_handle_unref(s->told);
    heddle_handle_unref(s->perms);
    heddle_free(&s->la->alloc, s->perm, s->a->m * sizeof(*s->perm));
}

heddle_status heddle_la_mixed_norm(struct la_mixed *s)
{
    void *p = NULL;

    LA_TRY(heddle_handle_acquire(s->told, HEDDLE_R, &p));
    s->norm = *(const double *)p;
    return heddle_handle_release(s->told);
}

/* --- columns of right-hand sides --------------------------------------------------- */

/* Operands: `to`, then `from` (the block column of rhs at j0), then told or perms. */
struct rhs_arg {
    struct la_head h; /* with the full precision */
    bool adds, has_perm;
    size_t j0, nrhs;
    const struct la_rhs *rhs;
};

static double largest(enum blas_type t, const void *p, size_t n)
{
    const double *d = p;
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        const double v = t == BLAS_D ? fabs(d[i]) : hypot(d[2 * i], d[2 * i + 1]);

        if (v != v)
            return v;
        if (v > most)
            most = v;
    }
    return most;
}

static heddle_status run_measure(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct blas_block r = la_operand(x, 0), v = la_operand(x, 1);
    double *told = (double *)heddle_exec_ptr(x, 2) + 1 + g->j0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < r.n; j++) {
        told[j] = largest(g->h.t, blas_at(g->h.t, r, 0, j), r.m);
        told[g->nrhs + j] = largest(g->h.t, blas_at(g->h.t, v, 0, j), v.m);
    }
    return HEDDLE_OK;
}

static heddle_status cuda_measure(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    double *told = (double *)heddle_exec_ptr(x, 2) + 1 + g->j0;

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_largest(x, la_operand(x, 0), told));
    return heddle_gpu_largest(x, la_operand(x, 1), told + g->nrhs);
}

static size_t reals(enum blas_type t)
{
    return blas_is_complex(t) ? 2 : 1;
}

/* to[i] = f from[perm[i]]. */
static void down_d(const double *from, const int *perm, double f, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(f * from[perm != NULL ? (size_t)perm[i] : i]);
}

static void down_z(const double complex *from, const int *perm, double f, float complex *to,
                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float complex)(f * from[perm != NULL ? (size_t)perm[i] : i]);
}

static heddle_status run_down(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);
    const int *perm = g->has_perm ? heddle_exec_ptr(x, 2) : NULL;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        void *d = blas_at(la_low(t), to, 0, j);
        const double f = g->rhs[j].down;

        if (g->rhs[j].is_done)
            memset(d, 0, to.m * blas_bytes(la_low(t)));
        else if (t == BLAS_D)
            down_d(blas_at(t, from, 0, j), perm, f, d, to.m);
        else
            down_z(blas_at(t, from, 0, j), perm, f, d, to.m);
    }
    return HEDDLE_OK;
}

/* What is done becomes zero: its numbers times zero might be NaN. */
static heddle_status cuda_down(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);
    const int *perm = g->has_perm ? heddle_exec_ptr(x, 2) : NULL;

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++)
        LA_TRY(g->rhs[j].is_done
                   ? heddle_gpu_set(x, 'A', 0, BLAS_S, heddle_blas_zero(BLAS_S),
                                    heddle_blas_zero(BLAS_S), blas_part(BLAS_S, to, 0, j, to.m, 1))
                   : heddle_gpu_down(x, blas_at(BLAS_S, to, 0, j), blas_at(BLAS_D, from, 0, j),
                                     perm, to.m, g->rhs[j].down));
    return HEDDLE_OK;
}

static heddle_status run_up(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        const float *v = blas_at(la_low(t), from, 0, j);
        const double f = g->rhs[j].up;
        double *d = blas_at(t, to, 0, j);

        if (g->rhs[j].is_done && !g->adds)
            memset(d, 0, to.m * blas_bytes(t));
        else if (!g->rhs[j].is_done)
            for (size_t i = 0; i < to.m * reals(t); i++)
                d[i] = (g->adds ? d[i] : 0) + f * (double)v[i];
    }
    return HEDDLE_OK;
}

static heddle_status cuda_up(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        if (!g->rhs[j].is_done)
            LA_TRY(heddle_gpu_up(x, blas_at(BLAS_D, to, 0, j), blas_at(BLAS_S, from, 0, j), to.m,
                                 g->adds ? 1 : 0, g->rhs[j].up));
        else if (!g->adds)
            LA_TRY(heddle_gpu_set(x, 'A', 0, BLAS_D, heddle_blas_zero(BLAS_D),
                                  heddle_blas_zero(BLAS_D), blas_part(BLAS_D, to, 0, j, to.m, 1)));
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_rhs(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = 2.0 * (double)(l->extent[0] * l->extent[1] * blas_bytes(g->h.t))};
}

#define RHS_KERNEL(what)                                                                           \
    static const heddle_kernel kernel_##what = {                                                   \
        .size = sizeof(heddle_kernel),                                                             \
        .name = "mixed_" #what,                                                                    \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_##what},                                \
                     {.device = HEDDLE_DEV_CUDA, .run = cuda_##what}},                             \
        .cost = cost_rhs}

RHS_KERNEL(measure);
RHS_KERNEL(down);
RHS_KERNEL(up);

static heddle_status submit_rhs(struct la_mixed *s, const heddle_kernel *kernel, heddle_matrix *to,
                                heddle_matrix *from, heddle_handle *third, enum heddle_mode first,
                                enum heddle_mode last, bool adds)
{
    const enum heddle_mode modes[3] = {first, HEDDLE_R, last};
    struct rhs_arg g = {.h = heddle_la_begin(s->la, s->x.m),
                        .adds = adds,
                        .has_perm = third != NULL,
                        .nrhs = s->nrhs};

    for (size_t j = 0; j < to->nt; j++) {
        heddle_handle *const op[3] = {to->col[j], from->col[j], third};

        g.j0 = la_first(to, j);
        g.rhs = s->rhs + g.j0;
        LA_TRY(heddle_la_submit(s->la, kernel, op, modes, third != NULL ? 3 : 2, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_down(struct la_mixed *s, heddle_matrix *from)
{
    return submit_rhs(s, &kernel_down, s->d.m, from, s->perms, HEDDLE_W, HEDDLE_R, false);
}

heddle_status heddle_la_mixed_up(struct la_mixed *s, heddle_matrix *to, bool adds)
{
    return submit_rhs(s, &kernel_up, to, s->d.m, NULL, adds ? HEDDLE_RW : HEDDLE_W, HEDDLE_R, adds);
}

heddle_status heddle_la_mixed_measure(struct la_mixed *s)
{
    const double *told;
    void *p = NULL;

    LA_TRY(submit_rhs(s, &kernel_measure, s->r.m, s->x.m, s->told, HEDDLE_R, HEDDLE_RW, false));
    LA_TRY(heddle_la_wait(s->la, NULL));
    LA_TRY(heddle_handle_acquire(s->told, HEDDLE_R, &p));
    told = p;
    for (size_t j = 0; j < s->nrhs; j++) {
        s->rhs[j].r = told[1 + j];
        s->rhs[j].x = told[1 + s->nrhs + j];
    }
    return heddle_handle_release(s->told);
}

/* --- products with A ---------------------------------------------------------------- */

enum { PARTS = 64 };

/* Operands: the partial product, x, block columns of A. */
struct half_arg {
    struct la_head h;
    char uplo;
    unsigned n;
    size_t j0, step; /* first columns of its block columns */
    struct la_scalar alpha, beta;
};

enum { SQUARE = 256 }; /* rows that stay in cache */

/* y = y + alpha A x for what is stored in columns j0 ... of A. */
static void half_columns(const struct half_arg *g, const void *alpha, struct blas_block a,
                         size_t j0, struct blas_block x, struct blas_block y)
{
    const enum blas_type t = g->h.t;
    const void *one = heddle_blas_one(t);
    const size_t n = a.n, first = g->uplo == 'L' ? j0 + n : 0, end = g->uplo == 'L' ? a.m : j0;
    const struct blas_block xj = blas_part(t, x, j0, 0, n, x.n),
                            yj = blas_part(t, y, j0, 0, n, x.n);

    heddle_blas_symm(t, true, 'L', g->uplo, alpha, blas_part(t, a, j0, 0, n, n), xj, one, yj);
    for (size_t i = first; i < end; i += SQUARE) {
        const size_t m = la_min(SQUARE, end - i);
        const struct blas_block off = blas_part(t, a, i, 0, m, n);

        heddle_blas_gemm(t, 'N', 'N', alpha, off, xj, one, blas_part(t, y, i, 0, m, x.n));
        heddle_blas_gemm(t, 'C', 'N', alpha, off, blas_part(t, x, i, 0, m, x.n), one, yj);
    }
}

static heddle_status run_half(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const struct blas_block v = la_operand(x, 1);
    const struct blas_block y = {heddle_exec_ptr(x, 0), v.m, v.n, v.m};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    memset(y.a, 0, y.m * y.n * blas_bytes(g->h.t));
    for (unsigned k = 0; k < g->n; k++)
        half_columns(g, heddle_blas_one(g->h.t), la_operand(x, 2 + k), g->j0 + k * g->step, v, y);
    return HEDDLE_OK;
}

/* Operands: y, x, block columns of A beside each other. y = beta y + alpha A x. */
static heddle_status run_whole(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block y = la_operand(x, 0), v = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_blas_gemm(t, 'N', 'N', heddle_blas_one(t), (struct blas_block){y.a, y.m, 0, y.m},
                     (struct blas_block){y.a, 0, y.n, 1}, &g->beta, y);
    for (unsigned k = 0; k < g->n; k++)
        half_columns(g, &g->alpha, la_operand(x, 2 + k), g->j0 + k * g->step, v, y);
    return HEDDLE_OK;
}

static heddle_status cuda_whole(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block y = la_operand(x, 0), v = la_operand(x, 1);
    const void *one = heddle_blas_one(t);
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(&gpu, 'N', 'N', one, (struct blas_block){y.a, y.m, 0, y.m},
                           (struct blas_block){y.a, 0, y.n, 1}, &g->beta, y));
    for (unsigned k = 0; k < g->n; k++) {
        const struct blas_block a = la_operand(x, 2 + k);
        const size_t n = a.n, j0 = g->j0 + k * g->step, first = g->uplo == 'L' ? j0 + n : 0,
                     m = g->uplo == 'L' ? a.m - first : j0;
        const struct blas_block off = blas_part(t, a, first, 0, m, n),
                                vj = blas_part(t, v, j0, 0, n, v.n),
                                yj = blas_part(t, y, j0, 0, n, y.n);

        LA_TRY(heddle_gpu_symm(&gpu, true, 'L', g->uplo, &g->alpha, blas_part(t, a, j0, 0, n, n),
                               vj, one, yj));
        LA_TRY(heddle_gpu_gemm(&gpu, 'N', 'N', &g->alpha, off, vj, one,
                               blas_part(t, y, first, 0, m, y.n)));
        if (m > 0)
            LA_TRY(heddle_gpu_gemm(&gpu, 'C', 'N', &g->alpha, off,
                                   blas_part(t, v, first, 0, m, v.n), one, yj));
    }
    return HEDDLE_OK;
}

/* Operands: y, then partial products. */
static heddle_status run_join(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block y = la_operand(x, 0);
    const double alpha = g->alpha.v[0], beta = g->beta.v[0];
    const size_t n = y.m * reals(t);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < y.n; j++) {
        double *to = blas_at(t, y, 0, j);

        for (size_t i = 0; i < n; i++)
            to[i] = beta == 0 ? 0 : beta * to[i];
        for (unsigned k = 0; k < g->n; k++) {
            const double *from = (const double *)heddle_exec_ptr(x, 1 + k) + j * n;

            for (size_t i = 0; i < n; i++)
                to[i] += alpha * from[i];
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_half(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1);
    const double m = (double)l->extent[0];

    return (struct heddle_cost){
        .flops = la_flops(g->h.t, l->extent[0], l->extent[1], l->extent[0]) * g->n / m,
        .bytes = m * (double)(g->n * blas_bytes(g->h.t)) * 32};
}

static const heddle_kernel kernel_half = {.size = sizeof(heddle_kernel),
                                          .name = "mixed_half",
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_half}},
                                          .cost = cost_half};

static const heddle_kernel kernel_whole = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_whole",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_whole},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_whole}},
    .cost = cost_half};

static const heddle_kernel kernel_join = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_join",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_join}}};

/* One block column of few right-hand sides: every task makes a product of its own
 * with some block columns of A. */
static heddle_status submit_half(struct la_mixed *s, struct half_arg g, heddle_matrix *x,
                                 heddle_matrix *y)
{
    heddle_matrix *a = s->a;
    const size_t parts =
        la_max(la_min(a->nt, 4 * (size_t)s->la->ncores), (a->nt + LA_LIST - 1) / LA_LIST);
    heddle_handle *op[1 + PARTS] = {y->col[0]};
    enum heddle_mode mode[1 + PARTS] = {HEDDLE_RW};
    heddle_status st = HEDDLE_OK;
    unsigned made = 0;

    g.step = parts * a->nb;
    for (; made < parts && st == HEDDLE_OK; made++) {
        heddle_handle *in[2 + LA_LIST] = {NULL, x->col[0]};
        enum heddle_mode how[2 + LA_LIST] = {HEDDLE_W, HEDDLE_R};

        g.n = 0;
        g.j0 = la_first(a, made);
        for (size_t k = made; k < a->nt; k += parts) {
            in[2 + g.n] = a->col[k];
            how[2 + g.n++] = HEDDLE_R;
        }
        mode[1 + made] = HEDDLE_R;
        st = heddle_handle_vector(s->la->ctx, NULL, x->m * x->n, a->dtype, &op[1 + made]);
        if (st != HEDDLE_OK)
            break;
        in[0] = op[1 + made];
        st = heddle_la_submit(s->la, &kernel_half, in, how, 2 + g.n, &g, sizeof(g), 1);
    }
    g.n = made;
    if (st == HEDDLE_OK)
        st = heddle_la_submit(s->la, &kernel_join, op, mode, 1 + made, &g, sizeof(g), 1);
    for (unsigned i = 0; i < made; i++)
        heddle_handle_unref(op[1 + i]);
    return st;
}

/* Where there is a device, tasks that follow each other: each has all of it. */
static heddle_status submit_whole(struct la_mixed *s, struct half_arg g, heddle_matrix *x,
                                  heddle_matrix *y)
{
    heddle_matrix *a = s->a;

    g.step = a->nb;
    for (size_t j = 0; j < x->nt; j++)
        for (size_t k = 0; k < a->nt; k += a->list) {
            const size_t n = la_min(a->list, a->nt - k);
            heddle_handle *op[2 + LA_LIST] = {y->col[j], x->col[j]};
            enum heddle_mode mode[2 + LA_LIST] = {HEDDLE_RW, HEDDLE_R};
            struct half_arg one = g;

            one.n = (unsigned)n;
            one.j0 = la_first(a, k);
            if (k > 0)
                one.beta = la_scalar_of(s->t, heddle_blas_one(s->t));
            else if (la_is_zero(s->t, &g.beta))
                mode[0] = HEDDLE_W;
            for (size_t i = 0; i < n; i++) {
                op[2 + i] = a->col[k + i];
                mode[2 + i] = HEDDLE_R;
            }
            LA_TRY(heddle_la_submit(s->la, &kernel_whole, op, mode, 2 + (unsigned)n, &one,
                                    sizeof(one), 1));
        }
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_product(struct la_mixed *s, const void *alpha, heddle_matrix *x,
                                      const void *beta, heddle_matrix *y)
{
    struct half_arg g = {.h = heddle_la_begin(s->la, x), .uplo = s->uplo};
    const size_t cores = la_max(1, s->la->ncores);

    if (s->uplo == '\0')
        return heddle_la_gemm(s->la, 'N', 'N', alpha, s->a, x, beta, y);
    g.alpha = la_scalar_of(s->t, alpha);
    g.beta = la_scalar_of(s->t, beta);
    if (s->la->has_cuda)
        return submit_whole(s, g, x, y);
    if (x->nt != 1 || 4 * cores > PARTS || s->a->nt > PARTS * LA_LIST)
        return heddle_la_hemm(s->la, 'L', s->uplo, alpha, s->a, x, beta, y);
    return submit_half(s, g, x, y);
}

heddle_status heddle_la_mixed_residual(struct la_mixed *s)
{
    LA_TRY(heddle_la_lacpy(s->la, 'A', s->b, s->r.m));
    return heddle_la_mixed_product(s, heddle_blas_minus_one(s->t), s->x.m, heddle_blas_one(s->t),
                                   s->r.m);
}
