/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heev, gesvd: eigenvalues and singular values through polar decompositions.
 *
 * heev divides the spectrum: the polar factor U of A - sigma I is its sign, so
 * P = (I - U) / 2 projects onto the vectors of eigenvalues below sigma. An
 * orthonormal basis Q of its range and of what is left splits A:
 *
 *   Q^H A Q = [A1  E^H; E  A2],   |E| is of the size of rounding errors
 *
 * A1 and A2 are solved the same way, small ones by LAPACK in one task. sigma is the
 * median of the diagonal; when it is so close to an eigenvalue that U is no sign, E
 * is not small, and another one is tried.
 *
 * gesvd: A = U H, -H = V (-S) V^H, so A = (U V) S V^H.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "la/matrix/paste.h"

enum {
    LEAF = 256, /* what LAPACK solves, or four block columns if that is less */
    TRIES = 6,  /* of sigma */
    DEPTH = 24  /* of the recursion, then LAPACK solves the rest */
};

struct eig {
    heddle_la *la;
    enum heddle_dtype dtype;
    enum blas_type t;
    size_t nb;
    bool wants_vectors;
    double norm; /* of the whole matrix, Frobenius */
    _Atomic int info;
};

static double eps_of(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static heddle_status temporary(const struct eig *e, size_t m, size_t n, heddle_matrix **out)
{
    return heddle_la_temporary(e->la, e->dtype, m, n, e->nb, out);
}

/* --- tasks --------------------------------------------------------------------------- */

struct leaf_arg {
    struct la_head h;
    struct eig *e;
    double *w;
};

static void to_double(enum blas_type t, const void *from, double *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] =
            blas_real_bytes(t) == 4 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static heddle_status run_leaf(struct heddle_exec *x)
{
    const struct leaf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const size_t bytes = heddle_blas_heevd_bytes(t, a.n);
    char *work;
    int info;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    work = heddle_la_work(g->h.la, bytes + a.n * sizeof(double));
    if (work == NULL)
        return HEDDLE_ENOMEM;
    info = heddle_blas_heevd(t, g->e->wants_vectors ? 'V' : 'N', 'L', a, work,
                             work + a.n * sizeof(double));
    to_double(t, work, g->w, a.n);
    if (info > 0)
        atomic_store_explicit(&g->e->info, info, memory_order_relaxed);
    return HEDDLE_OK;
}

static struct heddle_cost cost_leaf(struct heddle_exec *x)
{
    const struct leaf_arg *g = heddle_exec_arg(x);
    const size_t n = heddle_exec_layout(x, 0)->extent[1];

    return (struct heddle_cost){.flops = 4 * la_flops(g->h.t, n, n, n)};
}

/* The real parts of a diagonal. */
struct diagonal_arg {
    struct la_head h;
    size_t j0;
    double *out;
};

static heddle_status run_diagonal(struct heddle_exec *x)
{
    const struct diagonal_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < a.n; j++)
        to_double(g->h.t, blas_at(g->h.t, a, g->j0 + j, j), g->out + g->j0 + j, 1);
    return HEDDLE_OK;
}

static const heddle_kernel kernel_leaf = {.size = sizeof(heddle_kernel),
                                          .name = "heevd",
                                          .noperands = 1,
                                          .mode = {HEDDLE_RW},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_leaf}},
                                          .cost = cost_leaf};

static const heddle_kernel kernel_diagonal = {
    .size = sizeof(heddle_kernel),
    .name = "la_diagonal_of",
    .noperands = 1,
    .mode = {HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_diagonal}}};

/* Waits. */
static heddle_status diagonal_of(const struct eig *e, heddle_matrix *a, double *out)
{
    struct diagonal_arg g = {.h = heddle_la_begin(e->la, a), .out = out};

    for (size_t j = 0; j < a->nt; j++) {
        g.j0 = la_first(a, j);
        LA_TRY(heddle_la_submit(e->la, &kernel_diagonal, &a->col[j], NULL, 1, &g, sizeof(g), 0));
    }
    return heddle_la_wait(e->la, NULL);
}

/* --- one division --------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The matrices of a division; NULL: not there. */
struct division {
    heddle_matrix *a;       /* full, hermitian */
    heddle_matrix *s, *p;   /* n x n: the sign; the projector */
    heddle_matrix *x, *y;   /* n x k */
    heddle_matrix *tri, *e; /* of reflectors; below A1 */
    heddle_matrix *q;       /* n x n */
    size_t k;               /* eigenvalues below sigma */
};

static void drop(heddle_matrix **a)
{
    heddle_matrix_destroy(*a);
    *a = NULL;
}

static void division_end(struct division *d)
{
    drop(&d->s);
    drop(&d->p);
    drop(&d->x);
    drop(&d->y);
    drop(&d->tri);
    drop(&d->e);
    drop(&d->q);
}

/* The sign of A - sigma I in s. *k_out: eigenvalues below sigma; *is_sign_out:
 * their number is a whole one. */
static heddle_status sign_of(const struct eig *e, struct division *d, double sigma,
                             double *diagonal, size_t *k_out, bool *is_sign_out)
{
    const size_t n = d->a->n;
    double trace = 0, below;

    LA_TRY(heddle_la_lacpy(e->la, 'A', d->a, d->s));
    LA_TRY(heddle_la_add_diagonal(e->la, -sigma, 0, d->s));
    LA_TRY(heddle_la_polar(e->la, d->s, NULL, NULL));
    LA_TRY(heddle_la_hermitian_part(e->la, d->s, d->p));
    LA_TRY(diagonal_of(e, d->s, diagonal));
    for (size_t i = 0; i < n; i++)
        trace += diagonal[i];
    below = ((double)n - trace) / 2;
    *k_out = below > 0 ? (size_t)(below + 0.5) : 0;
    *is_sign_out = fabs(below - (double)*k_out) < 0.01;
    return HEDDLE_OK;
}

/* y = P from, then its factors. */
static heddle_status range_of(const struct eig *e, struct division *d, heddle_matrix *from)
{
    LA_TRY(heddle_la_gemm(e->la, 'N', 'N', heddle_blas_one(e->t), d->p, from,
                          heddle_blas_zero(e->t), d->y));
    return heddle_la_geqrf(e->la, d->y, d->tri);
}

/* Q from the projector: its first k columns span the range. Twice: the first basis
 * has the condition of random columns, the second one that of orthonormal ones. */
static heddle_status basis_of(const struct eig *e, struct division *d)
{
    const size_t n = d->a->n, k = d->k;

    LA_TRY(heddle_la_paste(e->la, -0.5, d->s, 0, 0, d->p, 0, 0, n, n));
    LA_TRY(heddle_la_add_diagonal(e->la, 0.5, 0, d->p));
    LA_TRY(temporary(e, n, k, &d->x));
    LA_TRY(temporary(e, n, k, &d->y));
    LA_TRY(temporary(e, la_min(e->nb, k), k, &d->tri));
    LA_TRY(temporary(e, n, n, &d->q));
    LA_TRY(heddle_la_random(e->la, HEDDLE_LA_GENERAL, 0, n, d->x));
    LA_TRY(range_of(e, d, d->x));
    LA_TRY(heddle_la_orgqr(e->la, d->y, d->tri, d->x));
    LA_TRY(range_of(e, d, d->x));
    return heddle_la_orgqr(e->la, d->y, d->tri, d->q);
}

/* s = Q^H A Q; *off_out: |E|. */
static heddle_status split(const struct eig *e, struct division *d, double *off_out)
{
    const size_t n = d->a->n, k = d->k;
    const void *one = heddle_blas_one(e->t), *zero = heddle_blas_zero(e->t);

    LA_TRY(heddle_la_gemm(e->la, 'N', 'N', one, d->a, d->q, zero, d->p));
    LA_TRY(heddle_la_gemm(e->la, 'C', 'N', one, d->q, d->p, zero, d->s));
    LA_TRY(temporary(e, n - k, k, &d->e));
    LA_TRY(heddle_la_paste(e->la, 1, d->s, k, 0, d->e, 0, 0, n - k, k));
    LA_TRY(heddle_la_norm(e->la, 'F', HEDDLE_LA_GENERAL, 'L', d->e, off_out));
    return heddle_la_wait(e->la, NULL);
}

/* Looks for a sigma that divides. *is_good_out: s has A1 and A2, q has Q. */
static heddle_status divide(const struct eig *e, struct division *d, double sigma, double radius,
                            double *diagonal, bool *is_good_out)
{
    const size_t n = d->a->n;
    const double most = 4 * sqrt((double)n) * eps_of(e->t) * e->norm;
    double low = sigma - radius, high = sigma + radius, off = 0;

    *is_good_out = false;
    for (int i = 0; i < TRIES && !*is_good_out; i++) {
        bool is_sign = false;

        division_end(d);
        LA_TRY(temporary(e, n, n, &d->s));
        LA_TRY(temporary(e, n, n, &d->p));
        LA_TRY(sign_of(e, d, sigma, diagonal, &d->k, &is_sign));
        if (is_sign && d->k > 0 && d->k < n) {
            LA_TRY(basis_of(e, d));
            LA_TRY(split(e, d, &off));
            *is_good_out = off <= most;
        }
        if (is_sign && d->k == 0)
            low = sigma;
        else if (is_sign && d->k >= n)
            high = sigma;
        if (is_sign && (d->k == 0 || d->k >= n))
            sigma = low + (high - low) / 2;
        else
            sigma += (i % 2 == 0 ? 1 : -1) * 0.013 * (i + 1) * (high - low);
    }
    return HEDDLE_OK;
}

/* --- the recursion ----------------------------------------------------------------------- */

static heddle_status solve(struct eig *e, heddle_matrix *a, double *w, heddle_matrix *v, int depth);

/* By LAPACK, as one task. */
static heddle_status leaf(struct eig *e, heddle_matrix *a, double *w, heddle_matrix *v)
{
    const size_t n = a->n;
    const struct leaf_arg g = {heddle_la_begin(e->la, a), e, w};
    heddle_matrix *one = NULL;
    heddle_status st = heddle_la_temporary(e->la, e->dtype, n, n, n, &one);

    if (st == HEDDLE_OK)
        st = heddle_la_paste(e->la, 1, a, 0, 0, one, 0, 0, n, n);
    if (st == HEDDLE_OK)
        st = heddle_la_submit(e->la, &kernel_leaf, one->col, NULL, 1, &g, sizeof(g), 2);
    if (st == HEDDLE_OK && v != NULL)
        st = heddle_la_paste(e->la, 1, one, 0, 0, v, 0, 0, n, n);
    heddle_matrix_destroy(one);
    return st;
}

/* Part i .. i + n - 1 of s: solved, its vectors into `to` at the same place. */
static heddle_status solve_part(struct eig *e, heddle_matrix *s, size_t i, size_t n, double *w,
                                heddle_matrix *to, int depth)
{
    heddle_matrix *a = NULL, *v = NULL;
    heddle_status st = temporary(e, n, n, &a);

    if (st == HEDDLE_OK)
        st = temporary(e, n, n, &v);
    if (st == HEDDLE_OK)
        st = heddle_la_paste(e->la, 1, s, i, i, a, 0, 0, n, n);
    if (st == HEDDLE_OK)
        st = heddle_la_hermitian_part(e->la, a, v);
    if (st == HEDDLE_OK)
        st = solve(e, a, w + i, v, depth + 1);
    if (st == HEDDLE_OK && to != NULL)
        st = heddle_la_paste(e->la, 1, v, 0, 0, to, i, i, n, n);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(v);
    return st;
}

/* v = q [b1 0; 0 b2]. */
static heddle_status put_together(const struct eig *e, heddle_matrix *q, heddle_matrix *b, size_t k,
                                  heddle_matrix *v)
{
    const size_t n = v->n, step = heddle_la_group(e->la, v) * v->nb;
    const struct la_head h = heddle_la_begin(e->la, v);

    for (unsigned part = 0; part < 2; part++) {
        const struct la_range all = {part == 0 ? 0 : k, part == 0 ? k : n};
        struct la_product p = {.a = q,
                               .b = b,
                               .c = v,
                               .ta = 'N',
                               .tb = 'N',
                               .alpha = heddle_blas_one(e->t),
                               .beta = heddle_blas_zero(e->t),
                               .r = {{0, n}, all, all}};

        for (size_t j = all.first; j < all.end; j = p.r.j.end) {
            p.r.j = (struct la_range){j, la_min(all.end, (j / step + 1) * step)};
            LA_TRY(heddle_la_submit_product(&h, &p, 1));
        }
    }
    return HEDDLE_OK;
}

/* Both halves of a division. */
static heddle_status conquer(struct eig *e, struct division *d, double *w, heddle_matrix *v,
                             int depth)
{
    const size_t n = d->a->n;
    heddle_matrix *s = d->s, *q = d->q, *b = NULL;
    heddle_status st = HEDDLE_OK;

    d->s = d->q = NULL;
    division_end(d);
    if (e->wants_vectors)
        st = temporary(e, n, n, &b);
    if (st == HEDDLE_OK)
        st = solve_part(e, s, 0, d->k, w, b, depth);
    if (st == HEDDLE_OK)
        st = solve_part(e, s, d->k, n - d->k, w, b, depth);
    if (st == HEDDLE_OK && e->wants_vectors)
        st = put_together(e, q, b, d->k, v);
    heddle_matrix_destroy(s);
    heddle_matrix_destroy(q);
    heddle_matrix_destroy(b);
    return st;
}

/* With memory for the diagonal. */
static heddle_status solve_large(struct eig *e, heddle_matrix *a, double *w, heddle_matrix *v,
                                 double *diagonal, int depth)
{
    const size_t n = a->n;
    const void *one = heddle_blas_one(e->t), *zero = heddle_blas_zero(e->t);
    struct division d = {.a = a};
    double sigma, radius = 0;
    bool is_good = false;
    heddle_status st;

    LA_TRY(diagonal_of(e, a, diagonal));
    memcpy(w, diagonal, n * sizeof(*w));
    qsort(diagonal, n, sizeof(*diagonal), compare);
    sigma = (diagonal[(n - 1) / 2] + diagonal[n / 2]) / 2;
    LA_TRY(temporary(e, n, n, &d.s));
    st = heddle_la_lacpy(e->la, 'A', a, d.s);
    if (st == HEDDLE_OK)
        st = heddle_la_add_diagonal(e->la, -sigma, 0, d.s);
    if (st == HEDDLE_OK)
        st = heddle_la_norm(e->la, 'F', HEDDLE_LA_GENERAL, 'L', d.s, &radius);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(e->la, NULL);
    if (st == HEDDLE_OK && radius <= sqrt((double)n) * eps_of(e->t) * e->norm) {
        division_end(&d); /* one eigenvalue: any vectors, w is the diagonal */
        return heddle_la_laset(e->la, 'A', zero, one, v);
    }
    if (st == HEDDLE_OK)
        st = divide(e, &d, sigma, radius, diagonal, &is_good);
    if (st == HEDDLE_OK)
        st = is_good ? conquer(e, &d, w, v, depth) : leaf(e, a, w, v);
    division_end(&d);
    return st;
}

static heddle_status solve(struct eig *e, heddle_matrix *a, double *w, heddle_matrix *v, int depth)
{
    const size_t n = a->n;
    double *diagonal;
    heddle_status st;

    if (n <= la_min(LEAF, 4 * e->nb) || depth >= DEPTH)
        return leaf(e, a, w, v);
    diagonal = heddle_zalloc(&e->la->alloc, n, sizeof(*diagonal));
    if (diagonal == NULL)
        return HEDDLE_ENOMEM;
    st = solve_large(e, a, w, v, diagonal, depth);
    heddle_free(&e->la->alloc, diagonal, n * sizeof(*diagonal));
    return st;
}

/* --- heev --------------------------------------------------------------------------------- */

/* a = the matrix of which `from` has the triangle uplo. */
static heddle_status mirror(const struct eig *e, char uplo, heddle_matrix *from, heddle_matrix *a,
                            heddle_matrix *work)
{
    LA_TRY(heddle_la_lacpy(e->la, uplo, from, a));
    LA_TRY(heddle_la_transpose(e->la, 'C', a, work));
    LA_TRY(heddle_la_lacpy(e->la, uplo == 'L' ? 'U' : 'L', work, a));
    return heddle_la_hermitian_part(e->la, a, work);
}

/* An element is no number: nor is anything else. */
static heddle_status give_nan(struct eig *e, heddle_matrix *v, double *w)
{
    const struct la_scalar none = heddle_la_real(e->t, (double)NAN);

    for (size_t i = 0; i < v->n; i++)
        w[i] = (double)NAN;
    atomic_store_explicit(&e->info, 1, memory_order_relaxed);
    return heddle_la_laset(e->la, 'A', &none, &none, v);
}

static heddle_status heev(struct eig *e, char uplo, heddle_matrix *a, double *w)
{
    heddle_matrix *full = NULL, *v = NULL;
    heddle_status st = temporary(e, a->n, a->n, &full);

    if (st == HEDDLE_OK)
        st = temporary(e, a->n, a->n, &v);
    if (st == HEDDLE_OK)
        st = mirror(e, uplo, a, full, v);
    if (st == HEDDLE_OK)
        st = heddle_la_norm(e->la, 'F', HEDDLE_LA_GENERAL, 'L', full, &e->norm);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(e->la, NULL);
    if (st == HEDDLE_OK)
        st = e->norm <= DBL_MAX ? solve(e, full, w, v, 0) : give_nan(e, v, w);
    if (st == HEDDLE_OK && e->wants_vectors)
        st = heddle_la_lacpy(e->la, 'A', v, a);
    heddle_matrix_destroy(full);
    heddle_matrix_destroy(v);
    if (st == HEDDLE_OK)
        st = heddle_la_wait(e->la, NULL);
    if (st == HEDDLE_OK)
        qsort(w, a->n, sizeof(*w), compare); /* up to rounding it was so */
    return st;
}

static void from_double(enum blas_type t, const double *from, void *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (blas_real_bytes(t) == 4)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = from[i];
}

static struct eig eig_of(heddle_la *la, const heddle_matrix *a)
{
    return (struct eig){.la = la, .dtype = a->dtype, .t = a->t, .nb = a->nb};
}

static void end_tasks(heddle_la *la)
{
    if (heddle_group_wait(la->group, 0) != HEDDLE_OK)
        (void)0; /* the first failure is known */
}

heddle_status heddle_la_heev(heddle_la *la, char vectors, char uplo, heddle_matrix *a, void *w,
                             int *info_out)
{
    struct la_kept kept;
    bool is_broken = false;
    struct eig e;
    heddle_status st;
    double *values;

    vectors = heddle_la_letter(vectors, "NV");
    uplo = heddle_la_letter(uplo, "UL");
    LA_CHECK(la, 1, la != NULL && vectors != '\0');
    LA_CHECK(la, 2, uplo != '\0');
    LA_CHECK(la, 3, a != NULL && a->m == a->n);
    LA_CHECK(la, 4, w != NULL || a->n == 0);
    if (info_out != NULL)
        *info_out = 0;
    if (a->n == 0)
        return HEDDLE_OK;
    e = eig_of(la, a);
    e.wants_vectors = vectors == 'V';
    LA_TRY(heddle_la_kept_open(la, &kept, &is_broken));
    if (is_broken)
        return HEDDLE_OK;
    values = heddle_zalloc(&la->alloc, a->n, sizeof(*values));
    st = values == NULL ? HEDDLE_ENOMEM : heev(&e, uplo, a, values);
    if (st == HEDDLE_OK)
        from_double(e.t, values, w, a->n);
    else
        end_tasks(la);
    heddle_free(&la->alloc, values, a->n * sizeof(*values));
    heddle_la_kept_shut(la, &kept);
    if (info_out != NULL)
        *info_out = atomic_load_explicit(&e.info, memory_order_relaxed);
    return st;
}

/* --- gesvd -------------------------------------------------------------------------------- */

/* a becomes the polar factor, h has -H; then the vectors. */
static heddle_status gesvd(struct eig *e, heddle_matrix *a, heddle_matrix *h, heddle_matrix *work,
                           double *s, heddle_matrix *u, heddle_matrix *vt)
{
    const size_t n = a->n;

    LA_TRY(heddle_la_polar(e->la, a, work, NULL));
    LA_TRY(heddle_la_paste(e->la, -1, work, 0, 0, h, 0, 0, n, n));
    LA_TRY(heev(e, 'L', h, s));
    for (size_t i = 0; i < n; i++)
        s[i] = s[i] > 0 ? 0 : -s[i];
    if (u != NULL)
        LA_TRY(heddle_la_gemm(e->la, 'N', 'N', heddle_blas_one(e->t), a, h, heddle_blas_zero(e->t),
                              u));
    if (vt != NULL)
        LA_TRY(heddle_la_transpose(e->la, 'C', h, vt));
    return heddle_la_wait(e->la, NULL);
}

heddle_status heddle_la_gesvd(heddle_la *la, heddle_matrix *a, void *s, heddle_matrix *u,
                              heddle_matrix *vt, int *info_out)
{
    struct la_kept kept;
    bool is_broken = false;
    heddle_matrix *h = NULL, *work = NULL;
    struct eig e;
    heddle_status st;
    double *values;

    LA_CHECK(la, 1, la != NULL && a != NULL && a->m >= a->n);
    LA_CHECK(la, 2, s != NULL || a->n == 0);
    LA_CHECK(la, 3, u == NULL || (u != a && u->t == a->t && u->m == a->m && u->n == a->n));
    LA_CHECK(la, 4,
             vt == NULL || (vt != a && vt != u && vt->t == a->t && vt->m == a->n && vt->n == a->n));
    if (info_out != NULL)
        *info_out = 0;
    if (a->n == 0)
        return HEDDLE_OK;
    e = eig_of(la, a);
    e.wants_vectors = u != NULL || vt != NULL;
    LA_TRY(heddle_la_kept_open(la, &kept, &is_broken));
    if (is_broken)
        return HEDDLE_OK;
    values = heddle_zalloc(&la->alloc, a->n, sizeof(*values));
    st = values == NULL ? HEDDLE_ENOMEM : temporary(&e, a->n, a->n, &h);
    if (st == HEDDLE_OK)
        st = temporary(&e, a->n, a->n, &work);
    if (st == HEDDLE_OK)
        st = gesvd(&e, a, h, work, values, u, vt);
    if (st == HEDDLE_OK)
        from_double(e.t, values, s, a->n);
    else
        end_tasks(la);
    heddle_matrix_destroy(h);
    heddle_matrix_destroy(work);
    heddle_free(&la->alloc, values, a->n * sizeof(*values));
    heddle_la_kept_shut(la, &kept);
    if (info_out != NULL)
        *info_out = atomic_load_explicit(&e.info, memory_order_relaxed);
    return st;
}
