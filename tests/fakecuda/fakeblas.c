/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakeblas: the part of cuBLAS that the project calls, on top of fakecuda.
 *
 * Structure  a call copies its arguments and puts a function on the stream of the
 *            handle; that one is the definition of the operation, element by
 *            element. Scalars are read at the call: pointer mode "host".
 * Threads    a handle is for one thread at a time, as in CUDA.
 */
#include "fakeblas.h"

#include <string.h>

enum { MAGIC = 0xb1a5 };

typedef struct blas_handle *handle_t;

static bool is_alive(const struct blas_handle *h)
{
    return h != NULL && h->magic == MAGIC;
}

/* cuBLAS allocates here: not while this thread captures. */
BLAS(cublasCreate_v2, handle_t *out)
{
    if (fakecuda_unsafe() != FC_OK)
        return BLAS_NOT_INITIALIZED;
    *out = fakecuda_handle_create(sizeof(**out));
    if (*out == NULL)
        return BLAS_ALLOC_FAILED;
    (*out)->magic = MAGIC;
    return BLAS_OK;
}

BLAS(cublasDestroy_v2, handle_t h)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    h->magic = 0;
    fakecuda_handle_destroy(h);
    return BLAS_OK;
}

BLAS(cublasSetStream_v2, handle_t h, CUstream stream)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    h->stream = stream;
    return BLAS_OK;
}

BLAS(cublasGetStream_v2, handle_t h, CUstream *out)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    *out = h->stream;
    return BLAS_OK;
}

BLAS(cublasSetWorkspace_v2, handle_t h, void *at, size_t bytes)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    return bytes > 0 && !fakecuda_is_memory(at, bytes) ? BLAS_INVALID_VALUE : BLAS_OK;
}

BLAS(cublasSetSmCountTarget, handle_t h, int n)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    return n < 0 ? BLAS_INVALID_VALUE : BLAS_OK;
}

BLAS(cublasSetPointerMode_v2, handle_t h, int mode)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    return mode == 0 ? BLAS_OK : BLAS_INVALID_VALUE;
}

BLAS(cublasSetMathMode, handle_t h, unsigned mode)
{
    (void)mode;
    return is_alive(h) ? BLAS_OK : BLAS_NOT_INITIALIZED;
}

static int give(handle_t h, fakecuda_fn fn, const void *arg, size_t bytes)
{
    return fakecuda_host_call(h->stream, fn, arg, bytes) == FC_OK ? BLAS_OK : BLAS_EXECUTION_FAILED;
}

static bool is_op(int op)
{
    return op >= OP_N && op <= OP_C;
}

static int max1(int n)
{
    return n > 1 ? n : 1;
}

/* --- what all operations share -------------------------------------------- */

/* A matrix as an argument: m x n elements at a. */
struct part {
    const void *a;
    int m, n, ld;
};

struct call {
    enum blas_type t;
    int op_a, op_b, side, fill, diag, m, n, k;
    bool is_hermitian, is_solve, is_two;
    double complex alpha, beta;
    struct part a, b, c;
    int count; /* of a batch */
    long long step_a, step_b, step_c;
};

static bool is_part(struct part p)
{
    return p.m >= 0 && p.n >= 0 && p.ld >= max1(p.m);
}

static struct part turned(const void *a, int op, int m, int n, int ld)
{
    return (struct part){a, op == OP_N ? m : n, op == OP_N ? n : m, ld};
}

static bool is_there(CUcontext ctx, const struct call *q, struct part p)
{
    return blas_touch(ctx, p.a, p.m, p.n, p.ld, blas_bytes(q->t));
}

/* Element (i, j) of op(p). */
static double complex at(const struct call *q, struct part p, int op, int i, int j)
{
    const double complex v =
        blas_get(q->t, p.a, op == OP_N ? blas_at(i, j, p.ld) : blas_at(j, i, p.ld));

    return op == OP_C ? conj(v) : v;
}

/* The same of a symmetric or hermitian matrix, of which one triangle is there. */
static double complex at_mirror(const struct call *q, struct part p, int i, int j)
{
    const bool is_stored = q->fill == LOWER ? i >= j : i <= j;
    const double complex v = at(q, p, OP_N, is_stored ? i : j, is_stored ? j : i);

    if (!q->is_hermitian)
        return v;
    return i == j ? creal(v) : is_stored ? v : conj(v);
}

/* c(i, j) = v + beta c(i, j); beta 0: C need not be a number. */
static void store(const struct call *q, int i, int j, double complex v)
{
    void *c = (void *)(uintptr_t)q->c.a;
    const size_t where = blas_at(i, j, q->c.ld);

    blas_set(q->t, c, where, q->beta == 0 ? v : v + q->beta * blas_get(q->t, c, where));
}

/* --- C = alpha op(A) op(B) + beta C -------------------------------------- */

/* n vectors of k numbers, one behind the other: the rows of op(A), or the columns
 * of op(B). */
static double complex *gather(const struct call *q, struct part p, int op, bool is_rows, int n)
{
    double complex *to = blas_new((size_t)n * (size_t)q->k * sizeof(*to));

    for (int i = 0; i < n; i++)
        for (int k = 0; k < q->k; k++)
            to[blas_at(k, i, q->k)] = is_rows ? at(q, p, op, i, k) : at(q, p, op, k, i);
    return to;
}

BLAS_UNSEEN static double complex dot(enum blas_type t, const double complex *a,
                                      const double complex *b, int n)
{
    double complex sum = 0;
    double s = 0;

    if (t < TYPE_C) { /* as the others, but tests have large ones */
        for (int k = 0; k < n; k++)
            s += creal(a[k]) * creal(b[k]);
        return s;
    }
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

static void run_gemm(CUcontext ctx, void *arg)
{
    struct call q = *(const struct call *)arg;
    const size_t bytes = blas_bytes(q.t);

    for (int p = 0; p < q.count; p++) {
        double complex *a, *b;

        if (!is_there(ctx, &q, q.a) || !is_there(ctx, &q, q.b) || !is_there(ctx, &q, q.c))
            return;
        a = gather(&q, q.a, q.op_a, true, q.m);
        b = gather(&q, q.b, q.op_b, false, q.n);
        for (int j = 0; j < q.n; j++)
            for (int i = 0; i < q.m; i++)
                store(&q, i, j,
                      q.alpha * dot(q.t, a + blas_at(0, i, q.k), b + blas_at(0, j, q.k), q.k));
        free(a);
        free(b);
        q.a.a = (const char *)q.a.a + q.step_a * (long long)bytes;
        q.b.a = (const char *)q.b.a + q.step_b * (long long)bytes;
        q.c.a = (const char *)q.c.a + q.step_c * (long long)bytes;
    }
}

static int gemm(handle_t h, const struct call *q)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if (!is_op(q->op_a) || !is_op(q->op_b) || q->k < 0 || q->count < 0 || !is_part(q->a) ||
        !is_part(q->b) || !is_part(q->c))
        return BLAS_INVALID_VALUE;
    return give(h, run_gemm, q, sizeof(*q));
}

#define GEMM(L)                                                                                    \
    BLAS(cublas##L##gemm_v2, handle_t h, int op_a, int op_b, int m, int n, int k,                  \
         const void *alpha, const void *a, int lda, const void *b, int ldb, const void *beta,      \
         void *c, int ldc)                                                                         \
    {                                                                                              \
        return gemm(h, &(struct call){.t = TYPE_##L,                                               \
                                      .op_a = op_a,                                                \
                                      .op_b = op_b,                                                \
                                      .m = m,                                                      \
                                      .n = n,                                                      \
                                      .k = k,                                                      \
                                      .alpha = blas_scalar(TYPE_##L, alpha),                       \
                                      .beta = blas_scalar(TYPE_##L, beta),                         \
                                      .a = turned(a, op_a, m, k, lda),                             \
                                      .b = turned(b, op_b, k, n, ldb),                             \
                                      .c = {c, m, n, ldc},                                         \
                                      .count = 1});                                                \
    }                                                                                              \
    BLAS(cublas##L##gemmStridedBatched, handle_t h, int op_a, int op_b, int m, int n, int k,       \
         const void *alpha, const void *a, int lda, long long step_a, const void *b, int ldb,      \
         long long step_b, const void *beta, void *c, int ldc, long long step_c, int count)        \
    {                                                                                              \
        return gemm(h, &(struct call){.t = TYPE_##L,                                               \
                                      .op_a = op_a,                                                \
                                      .op_b = op_b,                                                \
                                      .m = m,                                                      \
                                      .n = n,                                                      \
                                      .k = k,                                                      \
                                      .alpha = blas_scalar(TYPE_##L, alpha),                       \
                                      .beta = blas_scalar(TYPE_##L, beta),                         \
                                      .a = turned(a, op_a, m, k, lda),                             \
                                      .b = turned(b, op_b, k, n, ldb),                             \
                                      .c = {c, m, n, ldc},                                         \
                                      .count = count,                                              \
                                      .step_a = step_a,                                            \
                                      .step_b = step_b,                                            \
                                      .step_c = step_c});                                          \
    }
BLAS_TYPES(GEMM)

/* --- C = alpha A B + beta C, A symmetric or hermitian ---------------------- */

static void run_symm(CUcontext ctx, void *arg)
{
    const struct call *q = arg;
    const int k_end = q->side == LEFT ? q->m : q->n;

    if (!is_there(ctx, q, q->a) || !is_there(ctx, q, q->b) || !is_there(ctx, q, q->c))
        return;
    for (int j = 0; j < q->n; j++)
        for (int i = 0; i < q->m; i++) {
            double complex sum = 0;

            for (int k = 0; k < k_end; k++)
                sum += q->side == LEFT ? at_mirror(q, q->a, i, k) * at(q, q->b, OP_N, k, j)
                                       : at(q, q->b, OP_N, i, k) * at_mirror(q, q->a, k, j);
            store(q, i, j, q->alpha * sum);
        }
}

static int symm(handle_t h, enum blas_type t, bool is_hermitian, int side, int fill, struct part c,
                const void *alpha, const void *a, int lda, const void *b, int ldb, const void *beta)
{
    const int order = side == LEFT ? c.m : c.n;
    const struct call q = {.t = t,
                           .is_hermitian = is_hermitian,
                           .side = side,
                           .fill = fill,
                           .m = c.m,
                           .n = c.n,
                           .alpha = blas_scalar(t, alpha),
                           .beta = blas_scalar(t, beta),
                           .a = {a, order, order, lda},
                           .b = {b, c.m, c.n, ldb},
                           .c = c};

    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if ((side != LEFT && side != RIGHT) || (fill != LOWER && fill != UPPER) || !is_part(q.a) ||
        !is_part(q.b) || !is_part(q.c))
        return BLAS_INVALID_VALUE;
    return give(h, run_symm, &q, sizeof(q));
}

#define SYMM_NAMED(L, name, is_hermitian)                                                          \
    BLAS(cublas##L##name##_v2, handle_t h, int side, int fill, int m, int n, const void *alpha,    \
         const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)       \
    {                                                                                              \
        return symm(h, TYPE_##L, is_hermitian, side, fill, (struct part){c, m, n, ldc}, alpha, a,  \
                    lda, b, ldb, beta);                                                            \
    }
#define SYMM(L) SYMM_NAMED(L, symm, false)
BLAS_TYPES(SYMM)
SYMM_NAMED(C, hemm, true)
SYMM_NAMED(Z, hemm, true)

/* --- C = alpha A A' + beta C or with A B' + B A', one triangle -------------- */

static void run_rank(CUcontext ctx, void *arg)
{
    const struct call *q = arg;
    /* what stands on the right: the transpose, conjugated or not */
    const int other = q->op_a != OP_N ? OP_N : q->is_hermitian ? OP_C : OP_T;
    const int op = q->op_a == OP_N ? OP_N : q->is_hermitian ? OP_C : OP_T;
    const double complex alpha2 = q->is_hermitian ? conj(q->alpha) : q->alpha;

    if (!is_there(ctx, q, q->a) || (q->is_two && !is_there(ctx, q, q->b)) ||
        !is_there(ctx, q, q->c))
        return;
    for (int j = 0; j < q->n; j++)
        for (int i = q->fill == LOWER ? j : 0; i < (q->fill == LOWER ? q->n : j + 1); i++) {
            const struct part b = q->is_two ? q->b : q->a;
            double complex sum = 0, two = 0;

            for (int k = 0; k < q->k; k++) {
                sum += at(q, q->a, op, i, k) * at(q, b, other, k, j);
                if (q->is_two)
                    two += at(q, b, op, i, k) * at(q, q->a, other, k, j);
            }
            store(q, i, j, q->alpha * sum + alpha2 * two);
            if (q->is_hermitian && i == j) { /* the diagonal is real */
                void *c = (void *)(uintptr_t)q->c.a;
                const size_t where = blas_at(i, j, q->c.ld);

                blas_set(q->t, c, where, creal(blas_get(q->t, c, where)));
            }
        }
}

/* Scalars of hermitian ones are real, but for alpha of her2k. */
static enum blas_type real_of(enum blas_type t)
{
    return t == TYPE_C ? TYPE_S : t == TYPE_Z ? TYPE_D : t;
}

static int rank(handle_t h, struct call q, const void *alpha, const void *beta)
{
    q.alpha = blas_scalar(q.is_hermitian && !q.is_two ? real_of(q.t) : q.t, alpha);
    q.beta = blas_scalar(q.is_hermitian ? real_of(q.t) : q.t, beta);
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if ((q.fill != LOWER && q.fill != UPPER) || !is_op(q.op_a) ||
        (q.t >= TYPE_C && q.op_a == (q.is_hermitian ? OP_T : OP_C)) || q.k < 0 || !is_part(q.a) ||
        (q.is_two && !is_part(q.b)) || !is_part(q.c))
        return BLAS_INVALID_VALUE;
    return give(h, run_rank, &q, sizeof(q));
}

#define RANK_NAMED(L, name, name2, hermitian)                                                      \
    BLAS(cublas##L##name##_v2, handle_t h, int fill, int op, int n, int k, const void *alpha,      \
         const void *a, int lda, const void *beta, void *c, int ldc)                               \
    {                                                                                              \
        return rank(h,                                                                             \
                    (struct call){.t = TYPE_##L,                                                   \
                                  .is_hermitian = hermitian,                                       \
                                  .fill = fill,                                                    \
                                  .op_a = op,                                                      \
                                  .n = n,                                                          \
                                  .k = k,                                                          \
                                  .a = turned(a, op, n, k, lda),                                   \
                                  .c = {c, n, n, ldc}},                                            \
                    alpha, beta);                                                                  \
    }                                                                                              \
    BLAS(cublas##L##name2##_v2, handle_t h, int fill, int op, int n, int k, const void *alpha,     \
         const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)       \
    {                                                                                              \
        return rank(h,                                                                             \
                    (struct call){.t = TYPE_##L,                                                   \
                                  .is_hermitian = hermitian,                                       \
                                  .is_two = true,                                                  \
                                  .fill = fill,                                                    \
                                  .op_a = op,                                                      \
                                  .n = n,                                                          \
                                  .k = k,                                                          \
                                  .a = turned(a, op, n, k, lda),                                   \
                                  .b = turned(b, op, n, k, ldb),                                   \
                                  .c = {c, n, n, ldc}},                                            \
                    alpha, beta);                                                                  \
    }
#define RANK(L) RANK_NAMED(L, syrk, syr2k, false)
BLAS_TYPES(RANK)
RANK_NAMED(C, herk, her2k, true)
RANK_NAMED(Z, herk, her2k, true)

/* --- B = alpha op(A)^-1 B, C = alpha op(A) B, or with A on the right -------- */

/* Element (i, j) of op(A), a triangle. */
static double complex at_triangle(const struct call *q, int i, int j)
{
    const bool is_lower = (q->fill == LOWER) == (q->op_a == OP_N);

    if (i == j && q->diag == UNIT)
        return 1;
    return (is_lower ? i >= j : i <= j) ? at(q, q->a, q->op_a, i, j) : 0;
}

/* One column (left) or row of B: x[i] is element i of it, `step` apart. */
static void solve_vector(const struct call *q, int n, size_t first, size_t step)
{
    const bool is_left = q->side == LEFT;
    const bool is_lower = (q->fill == LOWER) == (q->op_a == OP_N);
    const bool forward = is_lower == is_left;
    void *x = (void *)(uintptr_t)q->c.a;

    for (int p = 0; p < n; p++) {
        const int i = forward ? p : n - 1 - p;
        const size_t where = first + (size_t)i * step;
        double complex v = q->alpha * blas_get(q->t, x, where);

        for (int r = 0; r < p; r++) {
            const int k = forward ? r : n - 1 - r;

            v -= (is_left ? at_triangle(q, i, k) : at_triangle(q, k, i)) *
                 blas_get(q->t, x, first + (size_t)k * step);
        }
        blas_set(q->t, x, where, q->diag == UNIT ? v : v / at_triangle(q, i, i));
    }
}

/* The product in an order that allows C = B. */
static void multiply_vector(const struct call *q, int n, size_t from, size_t from_step, size_t to,
                            size_t to_step)
{
    const bool is_left = q->side == LEFT;
    const bool is_lower = (q->fill == LOWER) == (q->op_a == OP_N);
    const bool forward = is_lower != is_left;
    void *c = (void *)(uintptr_t)q->c.a;

    for (int p = 0; p < n; p++) {
        const int i = forward ? p : n - 1 - p;
        double complex v = 0;

        for (int k = 0; k < n; k++) {
            const double complex a = is_left ? at_triangle(q, i, k) : at_triangle(q, k, i);

            if (a != 0)
                v += a * blas_get(q->t, q->b.a, from + (size_t)k * from_step);
        }
        blas_set(q->t, c, to + (size_t)i * to_step, q->alpha * v);
    }
}

static void run_triangle(CUcontext ctx, void *arg)
{
    const struct call *q = arg;
    const bool is_left = q->side == LEFT;
    const int n = is_left ? q->m : q->n, others = is_left ? q->n : q->m;
    const size_t ldb = (size_t)q->b.ld, ldc = (size_t)q->c.ld;

    if (!is_there(ctx, q, q->a) || !is_there(ctx, q, q->b) || !is_there(ctx, q, q->c))
        return;
    for (int o = 0; o < others; o++) {
        const size_t b = (size_t)o * (is_left ? ldb : 1), c = (size_t)o * (is_left ? ldc : 1);

        if (q->is_solve)
            solve_vector(q, n, c, is_left ? 1 : ldc);
        else
            multiply_vector(q, n, b, is_left ? 1 : ldb, c, is_left ? 1 : ldc);
    }
}

static int triangle(handle_t h, const struct call *q)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if ((q->side != LEFT && q->side != RIGHT) || (q->fill != LOWER && q->fill != UPPER) ||
        !is_op(q->op_a) || (q->diag != UNIT && q->diag != NON_UNIT) || !is_part(q->a) ||
        !is_part(q->b) || !is_part(q->c))
        return BLAS_INVALID_VALUE;
    return give(h, run_triangle, q, sizeof(*q));
}

#define TRIANGLE(L)                                                                                \
    BLAS(cublas##L##trsm_v2, handle_t h, int side, int fill, int op, int diag, int m, int n,       \
         const void *alpha, const void *a, int lda, void *b, int ldb)                              \
    {                                                                                              \
        const int order = side == LEFT ? m : n;                                                    \
                                                                                                   \
        return triangle(h, &(struct call){.t = TYPE_##L,                                           \
                                          .is_solve = true,                                        \
                                          .side = side,                                            \
                                          .fill = fill,                                            \
                                          .op_a = op,                                              \
                                          .diag = diag,                                            \
                                          .m = m,                                                  \
                                          .n = n,                                                  \
                                          .alpha = blas_scalar(TYPE_##L, alpha),                   \
                                          .a = {a, order, order, lda},                             \
                                          .b = {b, m, n, ldb},                                     \
                                          .c = {b, m, n, ldb}});                                   \
    }                                                                                              \
    BLAS(cublas##L##trmm_v2, handle_t h, int side, int fill, int op, int diag, int m, int n,       \
         const void *alpha, const void *a, int lda, const void *b, int ldb, void *c, int ldc)      \
    {                                                                                              \
        const int order = side == LEFT ? m : n;                                                    \
                                                                                                   \
        return triangle(h, &(struct call){.t = TYPE_##L,                                           \
                                          .side = side,                                            \
                                          .fill = fill,                                            \
                                          .op_a = op,                                              \
                                          .diag = diag,                                            \
                                          .m = m,                                                  \
                                          .n = n,                                                  \
                                          .alpha = blas_scalar(TYPE_##L, alpha),                   \
                                          .a = {a, order, order, lda},                             \
                                          .b = {b, m, n, ldb},                                     \
                                          .c = {c, m, n, ldc}});                                   \
    }
BLAS_TYPES(TRIANGLE)

/* --- C = alpha op(A) + beta op(B) ------------------------------------------- */

static void run_geam(CUcontext ctx, void *arg)
{
    const struct call *q = arg;
    void *c = (void *)(uintptr_t)q->c.a;

    if ((q->alpha != 0 && !is_there(ctx, q, q->a)) || (q->beta != 0 && !is_there(ctx, q, q->b)) ||
        !is_there(ctx, q, q->c))
        return;
    for (int j = 0; j < q->n; j++)
        for (int i = 0; i < q->m; i++)
            blas_set(q->t, c, blas_at(i, j, q->c.ld),
                     (q->alpha == 0 ? 0 : q->alpha * at(q, q->a, q->op_a, i, j)) +
                         (q->beta == 0 ? 0 : q->beta * at(q, q->b, q->op_b, i, j)));
}

static int geam(handle_t h, const struct call *q)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if (!is_op(q->op_a) || !is_op(q->op_b) || !is_part(q->a) || !is_part(q->b) || !is_part(q->c) ||
        (q->c.a == q->a.a && (q->op_a != OP_N || q->a.ld != q->c.ld)) ||
        (q->c.a == q->b.a && (q->op_b != OP_N || q->b.ld != q->c.ld)))
        return BLAS_INVALID_VALUE;
    return give(h, run_geam, q, sizeof(*q));
}

#define GEAM(L)                                                                                    \
    BLAS(cublas##L##geam, handle_t h, int op_a, int op_b, int m, int n, const void *alpha,         \
         const void *a, int lda, const void *beta, const void *b, int ldb, void *c, int ldc)       \
    {                                                                                              \
        return geam(h, &(struct call){.t = TYPE_##L,                                               \
                                      .op_a = op_a,                                                \
                                      .op_b = op_b,                                                \
                                      .m = m,                                                      \
                                      .n = n,                                                      \
                                      .alpha = blas_scalar(TYPE_##L, alpha),                       \
                                      .beta = blas_scalar(TYPE_##L, beta),                         \
                                      .a = turned(a, op_a, m, n, lda),                             \
                                      .b = turned(b, op_b, m, n, ldb),                             \
                                      .c = {c, m, n, ldc}});                                       \
    }
BLAS_TYPES(GEAM)
