/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * narrow: A to low precision, with sums of its rows.
 *
 * With one right-hand side all but the factorisation is bound by memory, so what
 * reads A reads it once: the copy also sums up the rows.
 */
#include <complex.h>
#include <math.h>

#include "base/alloc.h"
#include "la/cuda/mixed.h"
#include "la/mixed/mixed.h"
#include "la/product/product.h"

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
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_narrow}, LA_GPU(cuda_narrow)},
    .cost = cost_narrow};

static const heddle_kernel kernel_norm = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_norm",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_norm}, LA_GPU(cuda_norm)}};

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
