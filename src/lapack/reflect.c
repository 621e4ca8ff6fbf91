/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reflect: ormqr, ormlq, orgqr, orglq, and their names for complex types.
 *
 * LAPACK keeps tau only, so the triangular factor T of each block of reflectors
 * is made anew, a task per block: with G = V^H V (V V^H when reflectors are rows),
 *   T(j, j) = tau(j),   T(0:j, j) = -tau(j) T(0:j, 0:j) G(0:j, j)
 * Almost all of that is one product. These tasks read the program's memory; the call
 * waits for them before it returns, so the program does not write that memory meanwhile.
 */
#include <string.h>

#include "lapack/factor.h"
#include "lapack/lapack.h"

typedef void (*gram_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, void *, const int *, size_t,
                        size_t);
typedef void (*trmm_fn)(const char *, const char *, const char *, const char *, const int *,
                        const int *, const void *, const void *, const int *, void *, const int *,
                        size_t, size_t, size_t, size_t);
typedef void (*trmv_fn)(const char *, const char *, const char *, const int *, const void *,
                        const int *, void *, const int *, size_t, size_t, size_t);

static const float one_s[2] = {1, 0};
static const double one_d[2] = {1, 0};

/* --- the triangular factors ------------------------------------------------------ */

struct factor_arg {
    enum lapack_type t;
    bool is_row; /* reflectors are rows: LQ */
    int n, k;    /* length of the first reflector, and their number */
    int ldv;
    const char *v;   /* its diagonal element */
    const char *tau; /* k of them */
};

static const void *one_of(enum lapack_type t)
{
    return t == LAPACK_S || t == LAPACK_C ? (const void *)one_s : (const void *)one_d;
}

/* The triangle of V, ones and zeros added, into f. */
static void copy_triangle(const struct factor_arg *g, char *f, size_t ldf)
{
    const size_t bytes = lapack_bytes(g->t), k = (size_t)g->k;

    for (size_t j = 0; j < k; j++)
        for (size_t i = 0; i < k; i++) {
            char *to = f + (i + j * ldf) * bytes;

            if (i == j)
                memcpy(to, one_of(g->t), bytes);
            else if (g->is_row ? i < j : i > j)
                memcpy(to, g->v + (i + j * (size_t)g->ldv) * bytes, bytes);
            else
                memset(to, 0, bytes);
        }
}

/* f = the upper triangle of V^H V or V V^H. */
static void gram(const struct factor_arg *g, char *f, int ldf)
{
    const char *conj = lapack_is_complex(g->t) ? "C" : "T";
    const void *one = one_of(g->t);
    const int rest = g->n - g->k;
    const size_t skip = (size_t)g->k * (g->is_row ? (size_t)g->ldv : 1);

    copy_triangle(g, f, (size_t)ldf);
    LAPACK_REAL(trmm, g->t, trmm_fn)
    (g->is_row ? "R" : "L", g->is_row ? "U" : "L", conj, "U", &g->k, &g->k, one, g->v, &g->ldv, f,
     &ldf, 1, 1, 1, 1);
    if (rest > 0)
        LAPACK_REAL(gram, g->t, gram_fn)
    ("U", g->is_row ? "N" : conj, &g->k, &rest, one, g->v + skip * lapack_bytes(g->t), &g->ldv, one,
     f, &ldf, 1, 1);
}

/* x = -tau x for n elements. */
static void scale(enum lapack_type t, const void *tau, void *x, int n)
{
    const bool is_single = t == LAPACK_S || t == LAPACK_C;
    const size_t parts = lapack_is_complex(t) ? 2 : 1;
    double by[2] = {0, 0};

    for (size_t p = 0; p < parts; p++)
        by[p] = is_single ? (double)((const float *)tau)[p] : ((const double *)tau)[p];
    for (size_t i = 0; i < (size_t)n * parts; i += parts) {
        float *s = (float *)x + i;
        double *d = (double *)x + i;
        const double re = is_single ? (double)s[0] : d[0];
        const double im = parts == 1 ? 0 : is_single ? (double)s[1] : d[1];
        const double out[2] = {-(by[0] * re - by[1] * im), -(by[0] * im + by[1] * re)};

        for (size_t p = 0; p < parts; p++)
            if (is_single)
                s[p] = (float)out[p];
            else
                d[p] = out[p];
    }
}

static heddle_status run_factor(struct heddle_exec *x)
{
    const struct factor_arg *g = heddle_exec_arg(x);
    const size_t bytes = lapack_bytes(g->t);
    const int ldf = (int)heddle_exec_layout(x, 0)->stride[1], step = 1;
    char *f = heddle_exec_ptr(x, 0);

    heddle_lapack_inside(true);
    gram(g, f, ldf);
    for (int j = 0; j < g->k; j++) {
        char *column = f + (size_t)j * (size_t)ldf * bytes;
        const char *tau = g->tau + (size_t)j * bytes;

        scale(g->t, tau, column, j);
        LAPACK_REAL(trmv, g->t, trmv_fn)
        ("U", "N", "N", &j, f, &ldf, column, &step, 1, 1, 1);
        memcpy(column + (size_t)j * bytes, tau, bytes);
        memset(column + (size_t)(j + 1) * bytes, 0, (size_t)(g->k - j - 1) * bytes);
    }
    heddle_lapack_inside(false);
    return HEDDLE_OK;
}

static const heddle_kernel kernel_factor = {
    .size = sizeof(heddle_kernel),
    .name = "lapack_factor",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_factor}}};

/* The factors of all k reflectors of a, m x n. NULL: not this time. */
static heddle_matrix *make_factors(struct lapack_call *c, bool is_row, heddle_matrix *a, int k,
                                   const char *v, int ldv, const char *tau)
{
    heddle_matrix *f = heddle_lapack_factors(c, a, k);
    const int nb = (int)heddle_matrix_nb(f);
    const size_t bytes = lapack_bytes(c->t);
    const int length = (int)(is_row ? heddle_matrix_cols(a) : heddle_matrix_rows(a));
    heddle_group *group = NULL;
    heddle_status st, waited;

    if (f == NULL || heddle_group_create(c->ctx, &group) != HEDDLE_OK)
        return NULL;
    st = HEDDLE_OK;
    for (int j = 0; j < k && st == HEDDLE_OK; j += nb) {
        heddle_handle *h = heddle_matrix_column(f, (size_t)(j / nb));
        const struct heddle_task_opts o = {.size = sizeof(o), .group = group};
        const struct factor_arg g = {.t = c->t,
                                     .is_row = is_row,
                                     .n = length - j,
                                     .k = lapack_min(nb, k - j),
                                     .ldv = ldv,
                                     .v = v + ((size_t)j + (size_t)j * (size_t)ldv) * bytes,
                                     .tau = tau + (size_t)j * bytes};

        st = heddle_submit(
            c->ctx, &kernel_factor,
            &(struct heddle_call){
                .arg = &g, .arg_bytes = sizeof(g), .noperands = 1, .operands = &h, .opts = &o});
    }
    waited = heddle_group_wait(group, 0);
    heddle_group_unref(group);
    return st == HEDDLE_OK && waited == HEDDLE_OK ? f : NULL;
}

/* --- products with Q -------------------------------------------------------------- */

typedef void (*ormqr_fn)(const char *, const char *, const int *, const int *, const int *,
                         const void *, const int *, const void *, void *, const int *, void *,
                         const int *, int *, size_t, size_t);

static void ormxx(enum lapack_routine r, enum lapack_type t, const char *side, const char *trans,
                  const int *m, const int *n, const int *k, const void *a, const int *lda,
                  const void *tau, void *c, const int *ldc, void *work, const int *lwork, int *info)
{
    const bool is_row = r == LAPACK_ormlq;
    const char s = lapack_letter(side, "LR"), op = lapack_trans_q(trans, t);
    const int nq = s == 'L' ? *m : *n, nw = s == 'L' ? *n : *m;
    struct lapack_call q;

    if (s != '\0' && op != '\0' && *n >= 0 && *k >= 0 && *k <= nq &&
        lapack_is_ld(*lda, is_row ? *k : nq) && lapack_is_ld(*ldc, *m) &&
        *lwork >= lapack_max(1, nw) &&
        heddle_lapack_begin(&q, r, t, lapack_min(lapack_min(*m, *n), *k))) {
        heddle_matrix *x = heddle_lapack_in(&q, is_row ? *k : nq, is_row ? nq : *k, a, *lda);
        heddle_matrix *f = make_factors(&q, is_row, x, *k, a, *lda, tau);
        heddle_matrix *y = heddle_lapack_out(&q, *m, *n, c, *ldc);

        if (heddle_lapack_end(&q,
                              is_row ? heddle_la_ormlq(q.la, s, op, x, f, y)
                                     : heddle_la_ormqr(q.la, s, op, x, f, y),
                              info)) {
            heddle_lapack_work(t, work, lapack_max(1, nw));
            return;
        }
    }
    ((ormqr_fn)heddle_lapack_real(r, t))(side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork,
                                         info, 1, 1);
}

#define ORMXX(symbol, t, r)                                                                        \
    LAPACK_EXPORT void symbol(const char *side, const char *trans, const int *m, const int *n,     \
                              const int *k, const void *a, const int *lda, const void *tau,        \
                              void *c, const int *ldc, void *work, const int *lwork, int *info);   \
    void symbol(const char *side, const char *trans, const int *m, const int *n, const int *k,     \
                const void *a, const int *lda, const void *tau, void *c, const int *ldc,           \
                void *work, const int *lwork, int *info)                                           \
    {                                                                                              \
        ormxx(r, t, side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info);                 \
    }
#define ORMQR(symbol, t) ORMXX(symbol, t, LAPACK_ormqr)
#define ORMLQ(symbol, t) ORMXX(symbol, t, LAPACK_ormlq)
LAPACK_FOUR(ORMQR, ormqr_, unmqr_)
LAPACK_FOUR(ORMLQ, ormlq_, unmlq_)

/* --- Q itself ----------------------------------------------------------------------- */

typedef void (*orgqr_fn)(const int *, const int *, const int *, void *, const int *, const void *,
                         void *, const int *, int *);

/* As many reflectors as columns (rows): Q takes the place of its reflectors. With
 * fewer, they would be one matrix and Q another one in the same memory. */
static void orgxx(enum lapack_routine r, enum lapack_type t, const int *m, const int *n,
                  const int *k, void *a, const int *lda, const void *tau, void *work,
                  const int *lwork, int *info)
{
    const bool is_row = r == LAPACK_orglq;
    const int count = is_row ? *m : *n, length = is_row ? *n : *m;
    struct lapack_call q;

    if (count >= 0 && count <= length && *k == count && lapack_is_ld(*lda, *m) &&
        *lwork >= lapack_max(1, count) && heddle_lapack_begin(&q, r, t, *k)) {
        heddle_matrix *x = heddle_lapack_out(&q, *m, *n, a, *lda);
        heddle_matrix *f = make_factors(&q, is_row, x, *k, a, *lda, tau);

        if (heddle_lapack_end(
                &q, is_row ? heddle_la_orglq(q.la, x, f, x) : heddle_la_orgqr(q.la, x, f, x),
                info)) {
            heddle_lapack_work(t, work, lapack_max(1, count));
            return;
        }
    }
    ((orgqr_fn)heddle_lapack_real(r, t))(m, n, k, a, lda, tau, work, lwork, info);
}

#define ORGXX(symbol, t, r)                                                                        \
    LAPACK_EXPORT void symbol(const int *m, const int *n, const int *k, void *a, const int *lda,   \
                              const void *tau, void *work, const int *lwork, int *info);           \
    void symbol(const int *m, const int *n, const int *k, void *a, const int *lda,                 \
                const void *tau, void *work, const int *lwork, int *info)                          \
    {                                                                                              \
        orgxx(r, t, m, n, k, a, lda, tau, work, lwork, info);                                      \
    }
#define ORGQR(symbol, t) ORGXX(symbol, t, LAPACK_orgqr)
#define ORGLQ(symbol, t) ORGXX(symbol, t, LAPACK_orglq)
LAPACK_FOUR(ORGQR, orgqr_, ungqr_)
LAPACK_FOUR(ORGLQ, orglq_, unglq_)
