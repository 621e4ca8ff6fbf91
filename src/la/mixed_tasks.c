/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed_tasks: what a refinement does with A and with right-hand sides.
 *
 * With one right-hand side all but the factorisation is bound by memory, so what
 * reads A reads it once: the copy to low precision also sums up the rows, and the
 * product with half of a hermitian matrix goes through small squares.
 */
#include <complex.h>
#include <math.h>

#include "la/mixed.h"
#include "la/product.h"

/* --- A to low precision, with sums of its rows ---------------------------------- */

/* Operands: block columns of A, then those of the low matrix. */
struct narrow_arg {
    struct la_head h;
    char uplo; /* 0: all */
    unsigned n;
    size_t j0;
    double scale;
    double *sums; /* as many as rows, this task's own */
};

static inline double abs_z(double complex v)
{
    const double re = creal(v), im = cimag(v), s = re * re + im * im;

    return s > 1e-280 && s < 1e300 ? sqrt(s) : hypot(re, im);
}

/* to = scale from, sums += |from|; the sum of all. */
static double narrow_d(const double *from, float *to, size_t n, double scale,
                       double *sums)
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

static double narrow_z(const double complex *from, float complex *to, size_t n,
                       double scale, double *sums)
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
static void narrow_plain(const double *from, float *to, size_t n, double scale,
                         double *sums)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)(scale * from[i]);
        sums[i] += fabs(from[i]);
    }
}

static void narrow_column(const struct narrow_arg *g, const void *from,
                          void *to, struct la_range r, size_t col)
{
    const size_t n = r.end - r.first;
    double *sums = g->sums + r.first, sum;

    if (g->uplo == '\0' && g->h.t == LA_D) {
        narrow_plain(from, to, n, g->scale, sums);
        return;
    }
    sum = g->h.t == LA_D ? narrow_d(from, to, n, g->scale, sums)
                         : narrow_z(from, to, n, g->scale, sums);
    if (g->uplo != '\0') { /* the mirrored part: all but the diagonal */
        const size_t at = g->uplo == 'L' ? 0 : n - 1;
        const double d = g->h.t == LA_D
                             ? fabs(((const double *)from)[at])
                             : abs_z(((const double complex *)from)[at]);

        /* d may be most of the sum: what rounding leaves is below its error. */
        g->sums[col] += sum == d ? 0 : sum - d;
    }
}

static heddle_status run_narrow(struct heddle_exec *x)
{
    const struct narrow_arg *g = heddle_exec_arg(x);
    size_t col = g->j0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned k = 0; k < g->n; k++) {
        const struct la_block a = la_operand(x, k),
                              low = la_operand(x, g->n + k);

        for (size_t j = 0; j < a.n; j++, col++) {
            const struct la_range r =
                la_rows(g->uplo == '\0' ? 'A' : g->uplo, a.m, col);

            narrow_column(g, la_at(g->h.t, a, r.first, j),
                          la_at(la_low(g->h.t), low, r.first, j), r, col);
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_narrow(struct heddle_exec *x)
{
    const struct narrow_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){.bytes = 1.5 * g->n * (double)l->extent[0] *
                                         (double)l->extent[1] *
                                         (double)la_bytes(g->h.t)};
}

static const heddle_kernel kernel_narrow = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_narrow",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_narrow}},
    .cost = cost_narrow};

enum { PARTS = 64 };

size_t heddle_la_mixed_parts(const heddle_matrix *a)
{
    return la_max(la_min(a->nt, PARTS), (a->nt + LA_LIST - 1) / LA_LIST);
}

heddle_status heddle_la_mixed_narrow(struct la_mixed *s, double *sums)
{
    heddle_matrix *a = s->a, *low = s->low.m;
    struct narrow_arg g = {
        .h = heddle_la_begin(s->la, a), .uplo = s->uplo, .scale = s->scale};
    const size_t parts = heddle_la_mixed_parts(a);

    for (size_t p = 0; p < parts; p++) {
        const size_t first = a->nt * p / parts, end = a->nt * (p + 1) / parts;
        heddle_handle *op[2 * LA_LIST];
        enum heddle_mode mode[2 * LA_LIST];

        g.n = (unsigned)(end - first);
        g.j0 = la_first(a, first);
        g.sums = sums + p * a->m;
        for (unsigned i = 0; i < g.n; i++) {
            op[i] = a->col[first + i];
            mode[i] = HEDDLE_R;
            op[g.n + i] = low->col[first + i];
            mode[g.n + i] = s->uplo == '\0' ? HEDDLE_W : HEDDLE_RW;
        }
        LA_TRY(heddle_la_submit(s->la, &kernel_narrow, op, mode, 2 * g.n, &g,
                                sizeof(g), (int)(2 * (parts - p))));
    }
    return HEDDLE_OK;
}

/* --- columns of right-hand sides --------------------------------------------------- */

/* Operands: `to`, then `from` (the block column of rhs at j0). */
struct rhs_arg {
    struct la_head h; /* with the full precision */
    bool adds;
    struct la_rhs *rhs;
};

static double largest(enum heddle_la_type t, const void *p, size_t n)
{
    const double *d = p;
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        const double v = t == LA_D ? fabs(d[i]) : hypot(d[2 * i], d[2 * i + 1]);

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
    const struct la_block r = la_operand(x, 0), v = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < r.n; j++) {
        g->rhs[j].r = largest(g->h.t, la_at(g->h.t, r, 0, j), r.m);
        g->rhs[j].x = largest(g->h.t, la_at(g->h.t, v, 0, j), v.m);
    }
    return HEDDLE_OK;
}

static size_t reals(enum heddle_la_type t)
{
    return la_is_complex(t) ? 2 : 1;
}

static heddle_status run_down(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block to = la_operand(x, 0), from = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        const double *v = la_at(t, from, 0, j);
        float *d = la_at(la_low(t), to, 0, j);

        for (size_t i = 0; i < to.m * reals(t); i++)
            d[i] = g->rhs[j].is_done ? 0 : (float)(g->rhs[j].down * v[i]);
    }
    return HEDDLE_OK;
}

static heddle_status run_up(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block to = la_operand(x, 0), from = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        const float *v = la_at(la_low(t), from, 0, j);
        const double f = g->rhs[j].up;
        double *d = la_at(t, to, 0, j);

        if (g->rhs[j].is_done && !g->adds)
            memset(d, 0, to.m * la_bytes(t));
        else if (!g->rhs[j].is_done)
            for (size_t i = 0; i < to.m * reals(t); i++)
                d[i] = (g->adds ? d[i] : 0) + f * (double)v[i];
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_rhs(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes =
            2.0 * (double)(l->extent[0] * l->extent[1] * la_bytes(g->h.t))};
}

static const heddle_kernel kernel_measure = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_measure",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_measure}},
    .cost = cost_rhs};

static const heddle_kernel kernel_down = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_down",
    .noperands = 2,
    .mode = {HEDDLE_W, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_down}},
    .cost = cost_rhs};

static const heddle_kernel kernel_up = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_up",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_up}},
    .cost = cost_rhs};

static heddle_status submit_rhs(struct la_mixed *s, const heddle_kernel *kernel,
                                heddle_matrix *to, heddle_matrix *from,
                                bool adds)
{
    struct rhs_arg g = {.h = heddle_la_begin(s->la, s->x.m), .adds = adds};

    for (size_t j = 0; j < to->nt; j++) {
        heddle_handle *const op[2] = {to->col[j], from->col[j]};

        g.rhs = s->rhs + la_first(to, j);
        LA_TRY(heddle_la_submit(s->la, kernel, op, NULL, 2, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_solve(struct la_mixed *s, heddle_matrix *from,
                                    heddle_matrix *to, bool adds)
{
    LA_TRY(submit_rhs(s, &kernel_down, s->d.m, from, false));
    if (s->uplo == '\0')
        LA_TRY(heddle_la_getrs(s->la, 'N', s->low.m, s->ipiv, s->d.m));
    else
        LA_TRY(heddle_la_potrs(s->la, s->uplo, s->low.m, s->d.m));
    return submit_rhs(s, &kernel_up, to, s->d.m, adds);
}

heddle_status heddle_la_mixed_measure(struct la_mixed *s)
{
    LA_TRY(submit_rhs(s, &kernel_measure, s->r.m, s->x.m, false));
    return heddle_la_wait(s->la, NULL);
}

/* --- products with A ---------------------------------------------------------------- */

/* Operands: the partial product, x, block columns of A. */
struct half_arg {
    struct la_head h;
    char uplo;
    unsigned n;
    size_t j0, step; /* first columns of its block columns */
    struct la_scalar alpha, beta;
};

enum { SQUARE = 256 }; /* rows that stay in cache */

/* y = y + A x for what is stored in columns j0 ... of A. */
static void half_columns(const struct half_arg *g, struct la_block a, size_t j0,
                         struct la_block x, struct la_block y)
{
    const enum heddle_la_type t = g->h.t;
    const void *one = heddle_la_one(t);
    const size_t n = a.n, first = g->uplo == 'L' ? j0 + n : 0,
                 end = g->uplo == 'L' ? a.m : j0;
    const struct la_block xj = la_part(t, x, j0, 0, n, x.n),
                          yj = la_part(t, y, j0, 0, n, x.n);

    heddle_blas_symm(t, true, 'L', g->uplo, one, la_part(t, a, j0, 0, n, n), xj,
                     one, yj);
    for (size_t i = first; i < end; i += SQUARE) {
        const size_t m = la_min(SQUARE, end - i);
        const struct la_block off = la_part(t, a, i, 0, m, n);

        heddle_blas_gemm(t, 'N', 'N', one, off, xj, one,
                         la_part(t, y, i, 0, m, x.n));
        heddle_blas_gemm(t, 'C', 'N', one, off, la_part(t, x, i, 0, m, x.n),
                         one, yj);
    }
}

static heddle_status run_half(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const struct la_block v = la_operand(x, 1);
    const struct la_block y = {heddle_exec_ptr(x, 0), v.m, v.n, v.m};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    memset(y.a, 0, y.m * y.n * la_bytes(g->h.t));
    for (unsigned k = 0; k < g->n; k++)
        half_columns(g, la_operand(x, 2 + k), g->j0 + k * g->step, v, y);
    return HEDDLE_OK;
}

/* Operands: y, then partial products. */
static heddle_status run_join(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block y = la_operand(x, 0);
    const double alpha = g->alpha.v[0], beta = g->beta.v[0];
    const size_t n = y.m * reals(t);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < y.n; j++) {
        double *to = la_at(t, y, 0, j);

        for (size_t i = 0; i < n; i++)
            to[i] = beta == 0 ? 0 : beta * to[i];
        for (unsigned k = 0; k < g->n; k++) {
            const double *from =
                (const double *)heddle_exec_ptr(x, 1 + k) + j * n;

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
        .flops = la_flops(g->h.t, l->extent[0], l->extent[1], l->extent[0]) *
                 g->n / m,
        .bytes = m * (double)(g->n * la_bytes(g->h.t)) * 32};
}

static const heddle_kernel kernel_half = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_half",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_half}},
    .cost = cost_half};

static const heddle_kernel kernel_join = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_join",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_join}}};

/* One block column of few right-hand sides: every task makes a product of its own
 * with some block columns of A. */
static heddle_status submit_half(struct la_mixed *s, struct half_arg g,
                                 heddle_matrix *x, heddle_matrix *y)
{
    heddle_matrix *a = s->a;
    const size_t parts = la_max(la_min(a->nt, 4 * (size_t)s->la->ncores),
                                (a->nt + LA_LIST - 1) / LA_LIST);
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
        st = heddle_handle_vector(s->la->ctx, NULL, x->m * x->n, a->dtype,
                                  &op[1 + made]);
        if (st != HEDDLE_OK)
            break;
        in[0] = op[1 + made];
        st = heddle_la_submit(s->la, &kernel_half, in, how, 2 + g.n, &g,
                              sizeof(g), 1);
    }
    g.n = made;
    if (st == HEDDLE_OK)
        st = heddle_la_submit(s->la, &kernel_join, op, mode, 1 + made, &g,
                              sizeof(g), 1);
    for (unsigned i = 0; i < made; i++)
        heddle_handle_unref(op[1 + i]);
    return st;
}

heddle_status heddle_la_mixed_product(struct la_mixed *s, const void *alpha,
                                      heddle_matrix *x, const void *beta,
                                      heddle_matrix *y)
{
    struct half_arg g = {.h = heddle_la_begin(s->la, x), .uplo = s->uplo};
    const size_t cores = la_max(1, s->la->ncores);

    if (s->uplo == '\0')
        return heddle_la_gemm(s->la, 'N', 'N', alpha, s->a, x, beta, y);
    if (x->nt != 1 || 4 * cores > PARTS || s->a->nt > PARTS * LA_LIST)
        return heddle_la_hemm(s->la, 'L', s->uplo, alpha, s->a, x, beta, y);
    g.alpha = la_scalar_of(s->t, alpha);
    g.beta = la_scalar_of(s->t, beta);
    return submit_half(s, g, x, y);
}

heddle_status heddle_la_mixed_residual(struct la_mixed *s)
{
    LA_TRY(heddle_la_lacpy(s->la, 'A', s->b, s->r.m));
    return heddle_la_mixed_product(s, heddle_la_minus_one(s->t), s->x.m,
                                   heddle_la_one(s->t), s->r.m);
}
