/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed: gesv and posv with factors of half as many digits, then refined.
 *
 *   low = scale A in low precision, factorised
 *   x = 0, r = b;  again: x = x + A^-1 r by the low factors, r = b - A x
 *
 * until every residual is small: |r| <= |x| |A| eps sqrt(n) in inf norms. When a
 * step does not halve the residual, GMRES goes on (mixed_gmres.c), and after that
 * the full precision is factorised.
 *
 * With one right-hand side all but the factorisation is bound by memory, so what
 * reads A reads it once: the copy to low precision also sums up the rows, and the
 * product with half of a hermitian matrix goes through small squares.
 *
 * Scaling  A as a whole, when its norm is far from 1; each residual, always: so
 *          neither runs over in low precision.
 */
#include "la/mixed.h"

#include <complex.h>
#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "la/product.h"

/* A NaN stays. */
static inline double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

enum {
    STEPS = 30,    /* of refinement, at most */
    TOGETHER = 256 /* right-hand sides that are one block column */
};

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

static size_t parts_of(const heddle_matrix *a)
{
    return la_max(la_min(a->nt, PARTS), (a->nt + LA_LIST - 1) / LA_LIST);
}

static heddle_status submit_narrow(struct la_mixed *s, double *sums)
{
    heddle_matrix *a = s->a, *low = s->low.m;
    struct narrow_arg g = {
        .h = heddle_la_begin(s->la, a), .uplo = s->uplo, .scale = s->scale};
    const size_t parts = parts_of(a);

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

/* --- classic refinement --------------------------------------------------------------- */

/* The largest residual that is good enough. */
static double goal_of(const struct la_mixed *s, const struct la_rhs *h)
{
    return h->x * s->norm * DBL_EPSILON * sqrt((double)s->a->n);
}

/* A power of two near 1 / v. */
static double inverse_power(double v)
{
    int e = 0;

    (void)frexp(v, &e);
    return v == 0 ? 1 : ldexp(1, -e);
}

double heddle_la_mixed_look(struct la_mixed *s)
{
    double worst = 0;

    for (size_t j = 0; j < s->nrhs; j++) {
        struct la_rhs *h = &s->rhs[j];
        const double ratio = h->before == 0 ? 1 : h->r / h->before;

        h->is_done = h->is_done || h->r <= goal_of(s, h);
        if (h->is_done)
            continue;
        worst = larger(worst, ratio);
        h->before = h->r;
        h->goal = goal_of(s, h);
        h->down = inverse_power(h->r);
        h->up = s->scale / h->down;
    }
    return worst;
}

static bool all_done(const struct la_mixed *s)
{
    for (size_t j = 0; j < s->nrhs; j++)
        if (!s->rhs[j].is_done)
            return false;
    return true;
}

/* A step has to make a residual `factor` times smaller. */
static heddle_status classic(struct la_mixed *s, double factor,
                             bool *is_good_out)
{
    bool is_moving = true;

    for (int step = 0; step <= STEPS && is_moving && !all_done(s); step++) {
        LA_TRY(heddle_la_mixed_solve(s, s->r.m, s->x.m, true));
        LA_TRY(heddle_la_mixed_residual(s));
        LA_TRY(heddle_la_mixed_measure(s));
        s->iterations = step; /* the first one is the solve */
        is_moving = heddle_la_mixed_look(s) * factor <= 1;
    }
    *is_good_out = all_done(s);
    return HEDDLE_OK;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* After a failure: memory that tasks may use goes next. */
static void end_tasks(heddle_la *la)
{
    if (heddle_group_wait(la->group, 0) != HEDDLE_OK)
        (void)0; /* the first failure is known */
}

static heddle_status factorise(struct la_mixed *s)
{
    return s->uplo == '\0' ? heddle_la_getrf(s->la, s->low.m, s->ipiv)
                           : heddle_la_potrf(s->la, s->uplo, s->low.m);
}

/* The largest sum of a row; NaN when one is. */
static double norm_of(const double *sums, size_t parts, size_t m)
{
    double most = 0;

    for (size_t i = 0; i < m; i++) {
        double sum = 0;

        for (size_t p = 0; p < parts; p++)
            sum += sums[p * m + i];
        most = larger(most, sum);
    }
    return most;
}

/* The low factors. *is_good_out: they can be used. */
static heddle_status go_down(struct la_mixed *s, double *sums, size_t parts,
                             bool *is_good_out)
{
    int info = 0;

    s->scale = 1;
    LA_TRY(submit_narrow(s, sums));
    LA_TRY(factorise(s));
    LA_TRY(heddle_la_wait(s->la, &info));
    s->norm = norm_of(sums, parts, s->a->m);
    *is_good_out = false;
    if (!(s->norm > 0 && s->norm <= DBL_MAX))
        return HEDDLE_OK;
    if (s->norm > 0x1p100 || s->norm < 0x1p-60) {
        s->scale = inverse_power(s->norm);
        LA_TRY(submit_narrow(s, sums));
        LA_TRY(factorise(s));
        LA_TRY(heddle_la_wait(s->la, &info));
    }
    *is_good_out = info == 0 && s->scale >= DBL_MIN && s->scale <= 0x1p1000;
    return HEDDLE_OK;
}

static double backward_error(const struct la_mixed *s)
{
    double worst = 0;

    for (size_t j = 0; j < s->nrhs; j++) {
        const struct la_rhs *h = &s->rhs[j];
        const double e = h->r == 0 ? 0 : h->r / (s->norm * h->x + h->b);

        worst = larger(worst, e);
    }
    return worst;
}

/* In full precision, as the plain routine. A copy of A is for the residual. */
static heddle_status fall_back(struct la_mixed *s, bool wants_error,
                               int *info_out)
{
    heddle_matrix *a = s->a;
    struct la_owned copy = {.m = NULL};
    heddle_status st = HEDDLE_OK;

    heddle_la_owned_end(&s->low);
    if (wants_error) {
        st = heddle_la_owned_make(s->la, a->dtype, a->m, a->n, a->nb, &copy);
        if (st == HEDDLE_OK)
            st = heddle_la_lacpy(s->la, s->uplo == '\0' ? 'A' : s->uplo, a,
                                 copy.m);
    }
    if (st == HEDDLE_OK)
        st = heddle_la_lacpy(s->la, 'A', s->b, s->x.m);
    if (st == HEDDLE_OK)
        st = s->uplo == '\0' ? heddle_la_gesv(s->la, a, s->ipiv, s->x.m)
                             : heddle_la_posv(s->la, s->uplo, a, s->x.m);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(s->la, info_out);
    if (st == HEDDLE_OK && wants_error && *info_out == 0) {
        s->a = copy.m;
        st = heddle_la_mixed_residual(s);
        if (st == HEDDLE_OK)
            st = heddle_la_mixed_measure(s);
        s->a = a;
    }
    if (st != HEDDLE_OK)
        end_tasks(s->la);
    heddle_la_owned_end(&copy);
    return st;
}

static heddle_status refine(struct la_mixed *s, enum heddle_la_refine *how,
                            bool *is_good_out)
{
    bool is_finite = true;

    LA_TRY(heddle_la_laset(s->la, 'A', heddle_la_zero(s->t),
                           heddle_la_zero(s->t), s->x.m));
    LA_TRY(heddle_la_lacpy(s->la, 'A', s->b, s->r.m));
    LA_TRY(heddle_la_mixed_measure(s));
    for (size_t j = 0; j < s->nrhs; j++) {
        s->rhs[j].b = s->rhs[j].r;
        is_finite = is_finite && s->rhs[j].b <= DBL_MAX;
    }
    (void)heddle_la_mixed_look(s);
    *is_good_out = false;
    if (!is_finite)
        return HEDDLE_OK;
    if (all_done(s)) {
        *is_good_out = true;
        return HEDDLE_OK;
    }
    if (*how != HEDDLE_LA_REFINE_GMRES)
        LA_TRY(
            classic(s, *how == HEDDLE_LA_REFINE_AUTO ? 2 : 1.1, is_good_out));
    if (*is_good_out || *how == HEDDLE_LA_REFINE_CLASSIC)
        return HEDDLE_OK;
    *how = HEDDLE_LA_REFINE_GMRES;
    return heddle_la_mixed_gmres(s, is_good_out);
}

static heddle_status make(struct la_mixed *s, const heddle_matrix *x)
{
    const enum heddle_dtype full = s->a->dtype,
                            low = full == HEDDLE_F64 ? HEDDLE_F32 : HEDDLE_C64;
    const size_t n = s->a->n, nb = la_max(1, la_min(x->n, TOGETHER));

    LA_TRY(heddle_la_owned_make(s->la, low, n, n, s->a->nb, &s->low));
    LA_TRY(heddle_la_owned_make(s->la, full, n, x->n, nb, &s->x));
    LA_TRY(heddle_la_owned_make(s->la, full, n, x->n, nb, &s->r));
    return heddle_la_owned_make(s->la, low, n, x->n, nb, &s->d);
}

static heddle_status work(struct la_mixed *s, enum heddle_la_refine how,
                          heddle_matrix *x, struct heddle_la_refined *out,
                          int *info_out)
{
    const size_t parts = parts_of(s->a);
    double *sums = heddle_zalloc(&heddle_allocator_default, parts * s->a->m,
                                 sizeof(*sums));
    bool is_good = false;
    heddle_status st = sums == NULL ? HEDDLE_ENOMEM : make(s, x);

    if (st == HEDDLE_OK)
        st = go_down(s, sums, parts, &is_good);
    if (st != HEDDLE_OK)
        end_tasks(s->la);
    heddle_free(&heddle_allocator_default, sums,
                parts * s->a->m * sizeof(*sums));
    if (st == HEDDLE_OK && is_good)
        st = refine(s, &how, &is_good);
    if (st == HEDDLE_OK && !is_good)
        st = fall_back(s, out != NULL, info_out);
    if (st == HEDDLE_OK)
        st = heddle_la_lacpy(s->la, 'A', s->x.m, x);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(s->la, NULL);
    if (st == HEDDLE_OK && out != NULL) {
        out->iterations = s->iterations;
        out->fell_back = !is_good;
        out->how = how;
        out->backward_error =
            *info_out == 0 ? backward_error(s) : (double)INFINITY;
    }
    return st;
}

static bool fits(const heddle_matrix *a, const heddle_matrix *b)
{
    return b != NULL && b != a && b->t == a->t && b->m == a->m;
}

static bool is_full(const heddle_matrix *a)
{
    return a != NULL && a->m == a->n && la_real_bytes(a->t) == 8;
}

static bool is_out(const struct heddle_la_refined *out)
{
    return out == NULL || out->size == sizeof(*out);
}

/* Arguments are fine. */
static heddle_status solve(struct la_mixed s, enum heddle_la_refine how,
                           heddle_matrix *x, struct heddle_la_refined *out,
                           int *info_out)
{
    struct la_kept kept;
    bool is_broken = false;
    heddle_status st;
    int info = 0;

    if (out != NULL)
        *out = (struct heddle_la_refined){.size = sizeof(*out),
                                          .how = how == HEDDLE_LA_REFINE_AUTO
                                                     ? HEDDLE_LA_REFINE_CLASSIC
                                                     : how};
    if (info_out != NULL)
        *info_out = 0;
    if (s.a->n == 0)
        return HEDDLE_OK;
    s.t = s.a->t;
    s.nrhs = x->n;
    LA_TRY(heddle_la_kept_open(s.la, &kept, &is_broken));
    if (is_broken)
        return HEDDLE_OK;
    s.rhs = heddle_zalloc(&heddle_allocator_default, la_max(s.nrhs, 1),
                          sizeof(*s.rhs));
    st = s.rhs == NULL ? HEDDLE_ENOMEM : work(&s, how, x, out, &info);
    if (st != HEDDLE_OK)
        end_tasks(s.la);
    heddle_la_owned_end(&s.low);
    heddle_la_owned_end(&s.x);
    heddle_la_owned_end(&s.r);
    heddle_la_owned_end(&s.d);
    heddle_free(&heddle_allocator_default, s.rhs,
                la_max(s.nrhs, 1) * sizeof(*s.rhs));
    heddle_la_kept_shut(s.la, &kept);
    if (out != NULL && out->how == HEDDLE_LA_REFINE_AUTO)
        out->how = HEDDLE_LA_REFINE_CLASSIC;
    if (info_out != NULL)
        *info_out = info;
    return st;
}

heddle_status heddle_la_gesv_mixed(heddle_la *la, enum heddle_la_refine how,
                                   heddle_matrix *a, int *ipiv,
                                   heddle_matrix *b, heddle_matrix *x,
                                   struct heddle_la_refined *out, int *info_out)
{
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= HEDDLE_LA_REFINE_GMRES);
    LA_CHECK(la, 2, is_full(a));
    LA_CHECK(la, 3, ipiv != NULL || a->n == 0);
    LA_CHECK(la, 4, fits(a, b));
    LA_CHECK(la, 5, fits(a, x) && x != b && x->n == b->n);
    LA_CHECK(la, 6, is_out(out));
    return solve((struct la_mixed){.la = la, .a = a, .ipiv = ipiv, .b = b}, how,
                 x, out, info_out);
}

heddle_status heddle_la_posv_mixed(heddle_la *la, enum heddle_la_refine how,
                                   char uplo, heddle_matrix *a,
                                   heddle_matrix *b, heddle_matrix *x,
                                   struct heddle_la_refined *out, int *info_out)
{
    uplo = heddle_la_letter(uplo, "UL");
    LA_CHECK(la, 1, la != NULL && (unsigned)how <= HEDDLE_LA_REFINE_GMRES);
    LA_CHECK(la, 2, uplo != '\0');
    LA_CHECK(la, 3, is_full(a));
    LA_CHECK(la, 4, fits(a, b));
    LA_CHECK(la, 5, fits(a, x) && x != b && x->n == b->n);
    LA_CHECK(la, 6, is_out(out));
    return solve((struct la_mixed){.la = la, .a = a, .uplo = uplo, .b = b}, how,
                 x, out, info_out);
}
