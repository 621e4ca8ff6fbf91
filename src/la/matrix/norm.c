/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm: the largest element, column and row sums, Frobenius.
 *
 * Several tasks make partial results from some block columns each; a last task
 * combines the partial results in the order of the block columns, so a norm does not
 * depend on which task ran first. Sums are made in double precision. A NaN in the matrix
 * gives NaN.
 */
#include <complex.h>
#include <float.h>
#include <math.h>

#include "la/cuda/norm.h"
#include "la/product/product.h"

/* Partial results at most; with devices fewer, as they come home from there. */
enum { PARTS = 64, PARTS_DEVICE = 16 };

/* Operands: the partial result, then block columns. */
struct norm_arg {
    struct la_head h;
    enum la_norm_what what;
    enum heddle_la_kind kind;
    char uplo;
    bool is_first; /* of the tasks on this partial result */
    size_t a0;     /* first column of the first block column */
    double *norm_out;
};

static double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

/* --- sums of squares: scale^2 sum ------------------------------------------- */

struct squares {
    double scale, sum;
};

static struct squares squares_add(struct squares a, struct squares b)
{
    const struct squares big = a.scale < b.scale ? b : a, small = a.scale < b.scale ? a : b;
    double ratio;

    if (small.scale == 0)
        return big;
    ratio = small.scale == big.scale ? 1 : small.scale / big.scale;
    return (struct squares){big.scale, big.sum + small.sum * ratio * ratio};
}

static struct squares squares_f32(const float *x, size_t n)
{
    double s[4] = {0, 0, 0, 0};

    for (size_t i = 0; i < n; i++)
        s[i & 3] += (double)x[i] * (double)x[i];
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    return (struct squares){s[0] == 0 ? 0 : 1, s[0]};
}

/* Without scaling first: that is enough unless numbers are very large or small. */
static struct squares squares_f64(const double *x, size_t n)
{
    double s[4] = {0, 0, 0, 0}, most = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        s[i & 3] += x[i] * x[i];
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    if (s[0] >= 1e-250 && s[0] <= 1e300)
        return (struct squares){1, s[0]};
    for (size_t i = 0; i < n; i++)
        most = larger(most, fabs(x[i]));
    if (most != most)
        return (struct squares){1, most};
    if (most == 0 || most > DBL_MAX)
        return (struct squares){most, 1};
    for (size_t i = 0; i < n; i++)
        sum += (x[i] / most) * (x[i] / most);
    return (struct squares){most, sum};
}

static struct squares squares_of(enum blas_type t, const void *x, size_t n)
{
    n *= blas_is_complex(t) ? 2 : 1;
    return blas_real_bytes(t) == 4 ? squares_f32(x, n) : squares_f64(x, n);
}

/* --- absolute values ---------------------------------------------------------- */

static inline double abs_s(float v)
{
    return fabs((double)v);
}

static inline double abs_d(double v)
{
    return fabs(v);
}

static inline double abs_c(float complex v)
{
    const double re = crealf(v), im = cimagf(v);

    return sqrt(re * re + im * im);
}

static inline double abs_z(double complex v)
{
    const double re = creal(v), im = cimag(v), s = re * re + im * im;

    return s > 1e-280 && s < 1e300 ? sqrt(s) : hypot(re, im);
}

/* Of a part of a column: the largest; the sum, added to sums[i] one by one too
 * unless that is NULL. hypot(inf, NaN) is inf: such a number is still none. */
#define OVER(name, type, abs)                                                                      \
    static double largest_##name(const type *x, size_t n)                                          \
    {                                                                                              \
        double most = 0;                                                                           \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            most = larger(most, x[i] != x[i] ? NAN : abs(x[i]));                                   \
        return most;                                                                               \
    }                                                                                              \
    static double sum_##name(const type *x, size_t n, double *sums)                                \
    {                                                                                              \
        double s[4] = {0, 0, 0, 0};                                                                \
                                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double v = x[i] != x[i] ? NAN : abs(x[i]);                                       \
                                                                                                   \
            s[i & 3] += v;                                                                         \
            if (sums != NULL)                                                                      \
                sums[i] += v;                                                                      \
        }                                                                                          \
        return (s[0] + s[1]) + (s[2] + s[3]);                                                      \
    }

OVER(s, float, abs_s)
OVER(d, double, abs_d)
OVER(c, float complex, abs_c)
OVER(z, double complex, abs_z)

static double largest(enum blas_type t, const void *x, size_t n)
{
    switch (t) {
    case BLAS_S: return largest_s(x, n);
    case BLAS_D: return largest_d(x, n);
    case BLAS_C: return largest_c(x, n);
    default: return largest_z(x, n);
    }
}

static double sum_of(enum blas_type t, const void *x, size_t n, double *sums)
{
    switch (t) {
    case BLAS_S: return sum_s(x, n, sums);
    case BLAS_D: return sum_d(x, n, sums);
    case BLAS_C: return sum_c(x, n, sums);
    default: return sum_z(x, n, sums);
    }
}

static double real_part(enum blas_type t, const void *x)
{
    return blas_real_bytes(t) == 4 ? (double)*(const float *)x : *(const double *)x;
}

/* --- one column ------------------------------------------------------------------ */

static bool is_mirrored(enum heddle_la_kind kind)
{
    return kind == HEDDLE_LA_SYMMETRIC || kind == HEDDLE_LA_HERMITIAN;
}

/* What counts of the element on the diagonal. */
static double diagonal(const struct norm_arg *g, struct blas_block a, size_t j, size_t col)
{
    const void *x = blas_at(g->h.t, a, j, col);

    switch (g->kind) {
    case HEDDLE_LA_UNIT_TRIANGULAR: return 1;
    case HEDDLE_LA_HERMITIAN: return fabs(real_part(g->h.t, x));
    default: return largest(g->h.t, x, 1);
    }
}

/* Column j of the matrix, which is column col of a; its diagonal comes alone
 * unless all elements count alike. out: one number, two, or the row sums. */
static void add_column(const struct norm_arg *g, struct blas_block a, size_t j, size_t col,
                       double *out)
{
    const enum blas_type t = g->h.t;
    const bool alone = g->kind != HEDDLE_LA_GENERAL && j < a.m;
    const bool twice = is_mirrored(g->kind);
    struct la_range r = {0, a.m};
    const double d = alone ? diagonal(g, a, j, col) : 0;
    const void *x;

    if (g->kind != HEDDLE_LA_GENERAL && g->uplo == 'L')
        r.first = la_min(j + 1, a.m);
    else if (g->kind != HEDDLE_LA_GENERAL)
        r.end = la_min(j, a.m);
    x = blas_at(t, a, r.first, col);
    switch (g->what) {
    case LA_NORM_LARGEST: *out = larger(larger(*out, d), largest(t, x, r.end - r.first)); break;
    case LA_NORM_COLUMN_SUM: *out = larger(*out, d + sum_of(t, x, r.end - r.first, NULL)); break;
    case LA_NORM_ROW_SUMS: {
        const double s = sum_of(t, x, r.end - r.first, out + r.first);

        if (alone)
            out[j] += d + (twice ? s : 0);
        break;
    }
    case LA_NORM_SQUARES: {
        struct squares s = squares_of(t, x, r.end - r.first);

        s.sum *= twice ? 2 : 1;
        s = squares_add((struct squares){out[0], out[1]}, s);
        s = squares_add(s, squares_f64(&d, 1));
        out[0] = s.scale;
        out[1] = s.sum;
        break;
    }
    }
}

/* --- tasks ------------------------------------------------------------------------ */

static heddle_status run_part(struct heddle_exec *x)
{
    const struct norm_arg *g = heddle_exec_arg(x);
    const unsigned n = heddle_exec_noperands(x);
    double *out = heddle_exec_ptr(x, 0);
    size_t j = g->a0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->is_first)
        memset(out, 0, heddle_exec_count(x, 0) * sizeof(*out));
    for (unsigned i = 1; i < n; i++) {
        const struct blas_block a = la_operand(x, i);

        for (size_t c = 0; c < a.n; c++)
            add_column(g, a, j++, c, out);
    }
    return HEDDLE_OK;
}

/* Block column by block column, whichever lie beside each other: so a sum does not
 * depend on where they are. */
static heddle_status cuda_part(struct heddle_exec *x)
{
    const struct norm_arg *g = heddle_exec_arg(x);
    const unsigned n = heddle_exec_noperands(x);
    double *out = heddle_exec_ptr(x, 0);
    size_t j = g->a0;

    if (n > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 1; i < n; i++) {
        const struct blas_block a = la_operand(x, i);

        LA_TRY(heddle_gpu_norm(x, g->what, g->kind, g->uplo, j, g->h.t, a, i > 1 || !g->is_first,
                               out));
        j += a.n;
    }
    return HEDDLE_OK;
}

/* Operands: the partial results; the first one is overwritten. */
static heddle_status run_last(struct heddle_exec *x)
{
    const struct norm_arg *g = heddle_exec_arg(x);
    const unsigned n = heddle_exec_noperands(x);
    const size_t count = heddle_exec_count(x, 0);
    double *sum = heddle_exec_ptr(x, 0), norm = 0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 1; i < n; i++) {
        const double *part = heddle_exec_ptr(x, i);

        if (g->what == LA_NORM_SQUARES) {
            const struct squares s =
                squares_add((struct squares){sum[0], sum[1]}, (struct squares){part[0], part[1]});

            sum[0] = s.scale;
            sum[1] = s.sum;
        } else {
            for (size_t k = 0; k < count; k++)
                sum[k] = g->what == LA_NORM_ROW_SUMS ? sum[k] + part[k] : larger(sum[k], part[k]);
        }
    }
    if (g->what == LA_NORM_SQUARES)
        norm = sum[0] == 0 ? 0 : sum[0] * sqrt(sum[1]);
    else
        for (size_t k = 0; k < count; k++)
            norm = larger(norm, sum[k]);
    *g->norm_out = norm;
    return HEDDLE_OK;
}

static struct heddle_cost cost_part(struct heddle_exec *x)
{
    const struct norm_arg *g = heddle_exec_arg(x);
    const unsigned n = heddle_exec_noperands(x);
    double elements = 0;

    for (unsigned i = 1; i < n; i++)
        elements += (double)heddle_exec_count(x, i);
    return (struct heddle_cost){.flops = 2 * elements,
                                .bytes = elements * (double)blas_bytes(g->h.t)};
}

static const heddle_kernel kernel_part = {
    .size = sizeof(heddle_kernel),
    .name = "norm_part",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_part},
                 LA_GPU(cuda_part, .scratch_bytes = LA_GPU_NORM_SCRATCH)},
    .cost = cost_part};

static const heddle_kernel kernel_last = {
    .size = sizeof(heddle_kernel),
    .name = "norm",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_last}}};

/* --- the loop ----------------------------------------------------------------------- */

/* Block columns `cols` into one partial result. */
static heddle_status submit_part(struct norm_arg g, heddle_matrix *a, struct la_range cols,
                                 heddle_handle *part)
{
    g.is_first = true;
    for (size_t k = cols.first; k < cols.end;) {
        heddle_handle *op[1 + LA_LIST] = {part};
        enum heddle_mode mode[1 + LA_LIST] = {g.is_first ? HEDDLE_W : HEDDLE_RW};
        unsigned n = 1;

        g.a0 = la_first(a, k);
        for (; k < cols.end && n <= a->list; k++) {
            op[n] = a->col[k];
            mode[n++] = HEDDLE_R;
        }
        LA_TRY(heddle_la_submit(g.h.la, &kernel_part, op, mode, n, &g, sizeof(g), 0));
        g.is_first = false;
    }
    return HEDDLE_OK;
}

static heddle_status submit_all(struct norm_arg g, heddle_matrix *a)
{
    const size_t n = la_min(a->nt, g.h.la->has_cuda ? PARTS_DEVICE : PARTS);
    const size_t count = g.what == LA_NORM_ROW_SUMS ? a->m : g.what == LA_NORM_SQUARES ? 2 : 1;
    heddle_handle *part[PARTS] = {NULL};
    enum heddle_mode mode[PARTS];
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < n && st == HEDDLE_OK; i++) {
        const struct la_range cols = {a->nt * i / n, a->nt * (i + 1) / n};

        mode[i] = i == 0 ? HEDDLE_RW : HEDDLE_R;
        st = heddle_handle_vector(g.h.la->ctx, NULL, count, HEDDLE_F64, &part[i]);
        if (st == HEDDLE_OK)
            st = submit_part(g, a, cols, part[i]);
    }
    if (st == HEDDLE_OK)
        st = heddle_la_submit_home(g.h.la, &kernel_last, part, mode, (unsigned)n, &g, sizeof(g));
    for (size_t i = 0; i < n; i++)
        heddle_handle_unref(part[i]);
    return st;
}

static enum la_norm_what what_of(char norm, enum heddle_la_kind kind)
{
    switch (norm) {
    case 'M': return LA_NORM_LARGEST;
    case 'F': return LA_NORM_SQUARES;
    case '1': return is_mirrored(kind) ? LA_NORM_ROW_SUMS : LA_NORM_COLUMN_SUM;
    default: return LA_NORM_ROW_SUMS;
    }
}

heddle_status heddle_la_norm(heddle_la *la, char norm, enum heddle_la_kind kind, char uplo,
                             heddle_matrix *a, double *norm_out)
{
    struct norm_arg g = {.kind = kind, .norm_out = norm_out};

    norm = heddle_la_letter(norm, "M1OIFE");
    norm = norm == 'O' ? '1' : norm == 'E' ? 'F' : norm;
    g.uplo = heddle_la_letter(uplo, "UL");
    LA_CHECK(la, 1, la != NULL && norm != '\0');
    LA_CHECK(la, 2, (unsigned)kind <= HEDDLE_LA_UNIT_TRIANGULAR);
    LA_CHECK(la, 3, kind == HEDDLE_LA_GENERAL || g.uplo != '\0');
    LA_CHECK(la, 4, a != NULL && (!is_mirrored(kind) || a->m == a->n));
    LA_CHECK(la, 5, norm_out != NULL);
    g.h = heddle_la_begin(la, a);
    g.what = what_of(norm, kind);
    if (a->nt == 0 || a->m == 0) {
        *norm_out = 0;
        return HEDDLE_OK;
    }
    return submit_all(g, a);
}
