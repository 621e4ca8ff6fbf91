/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random: test matrices.
 *
 * An element is a hash of the seed and of its place, so it does not depend on
 * block columns or on which worker computes it: a GPU makes the same bits.
 *
 * latms: a diagonal matrix with the wanted values is multiplied from both sides by
 * block reflectors I - V T V^H of random vectors, which are unitary up to rounding.
 */
#include <complex.h>
#include <math.h>

#include "base/rng.h"
#include "la/cuda/norm.h"
#include "la/product/product.h"
#include "la/qr/reflect.h"

enum {
    LATMS_WIDTH = 64, /* vectors of a block reflector */
    LATMS_ROUNDS = 2, /* reflectors on each side */
    CHUNK = 512       /* numbers that are made at once */
};

struct random_arg {
    struct la_head h;
    struct la_random r;
    size_t j0; /* first column of the block column */
};

/* In (-0.5, 0.5), with as many bits as the type has, of which the last is 1. */
static double uniform(enum blas_type t, uint64_t h)
{
    /* In [1, 2) first. */
    const uint64_t few = h >> 41 << 29, all = h >> 12;
    const uint64_t bits = (blas_real_bytes(t) == 4 ? few : all) | UINT64_C(0x3ff) << 52;
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v - 1.5 + (blas_real_bytes(t) == 4 ? 0x1p-24 : 0x1p-53);
}

/* Those of n counters, `step` apart: two multiplications each, and no branch. */
static void uniforms(enum blas_type t, uint64_t key, uint64_t counter, uint64_t step, size_t n,
                     double *out)
{
    const uint64_t first = key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t by = step * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t i = 0; i < n; i++)
        out[i] = uniform(t, heddle_mix64(first + i * by));
}

static void put(enum blas_type t, void *at, double re, double im)
{
    switch (t) {
    case BLAS_S: *(float *)at = (float)re; break;
    case BLAS_D: *(double *)at = re; break;
    case BLAS_C:
        ((float *)at)[0] = (float)re;
        ((float *)at)[1] = (float)im;
        break;
    default:
        ((double *)at)[0] = re;
        ((double *)at)[1] = im;
        break;
    }
}

/* n elements that follow each other. */
static void put_some(enum blas_type t, void *at, const double *re, const double *im, size_t n)
{
    switch (t) {
    case BLAS_S:
        for (size_t i = 0; i < n; i++)
            ((float *)at)[i] = (float)re[i];
        break;
    case BLAS_D: memcpy(at, re, n * sizeof(*re)); break;
    default:
        for (size_t i = 0; i < n; i++)
            put(t, (char *)at + i * blas_bytes(t), re[i], im[i]);
        break;
    }
}

static uint64_t counter_of(uint64_t row, uint64_t col)
{
    return (col << 32 | row) << 1;
}

/* Rows r of column j, which begins at `col`; above the diagonal of a symmetric
 * matrix they are those of row j. */
static void put_rows(const struct random_arg *g, void *col, struct la_range r, uint64_t j,
                     bool is_above)
{
    const enum blas_type t = g->h.t;
    const uint64_t step = is_above ? UINT64_C(1) << 33 : 2;
    double re[CHUNK], im[CHUNK];

    for (size_t i = r.first; i < r.end; i += CHUNK) {
        const size_t n = la_min(r.end - i, CHUNK);
        const uint64_t at = is_above ? counter_of(j, i) : counter_of(i, j);

        uniforms(t, g->r.key, at, step, n, re);
        if (blas_is_complex(t))
            uniforms(t, g->r.key, at + 1, step, n, im);
        for (size_t k = 0; k < n && blas_is_complex(t) && is_above && g->r.is_hermitian; k++)
            im[k] = -im[k];
        put_some(t, (char *)col + i * blas_bytes(t), re, im, n);
    }
}

static void put_diagonal(const struct random_arg *g, void *at, uint64_t j)
{
    double re, im;

    uniforms(g->h.t, g->r.key, counter_of(j, j), 0, 1, &re);
    uniforms(g->h.t, g->r.key, counter_of(j, j) + 1, 0, 1, &im);
    put(g->h.t, at, re + g->r.bump, g->r.is_hermitian ? 0 : im);
}

static heddle_status run_random(struct heddle_exec *x)
{
    const struct random_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < a.n; j++) {
        const size_t at = g->j0 + j, diagonal = la_min(at, a.m);
        void *col = blas_at(g->h.t, a, 0, j);

        put_rows(g, col, (struct la_range){0, diagonal}, at, g->r.is_symmetric);
        put_rows(g, col, (struct la_range){diagonal, a.m}, at, false);
        if (at < a.m)
            put_diagonal(g, blas_at(g->h.t, a, at, j), at);
    }
    return HEDDLE_OK;
}

static heddle_status cuda_random(struct heddle_exec *x)
{
    const struct random_arg *g = heddle_exec_arg(x);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return heddle_gpu_random(x, g->r, g->j0, g->h.t, la_operand(x, 0));
}

/* One block column is written. */
static struct heddle_cost cost_write(struct heddle_exec *x)
{
    const struct la_head *h = heddle_exec_arg(x);

    return (struct heddle_cost){.bytes = (double)(heddle_exec_count(x, 0) * blas_bytes(h->t))};
}

static const heddle_kernel kernel_random = {
    .size = sizeof(heddle_kernel),
    .name = "random",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_random}, LA_GPU(cuda_random)},
    .cost = cost_write};

heddle_status heddle_la_random(heddle_la *la, enum heddle_la_kind kind, double bump, uint64_t seed,
                               heddle_matrix *a)
{
    struct random_arg g = {.r = {.key = heddle_mix64(seed + UINT64_C(0x9e3779b97f4a7c15)),
                                 .bump = bump,
                                 .is_symmetric = kind != HEDDLE_LA_GENERAL,
                                 .is_hermitian = kind == HEDDLE_LA_HERMITIAN}};

    LA_CHECK(la, 1, la != NULL && (unsigned)kind <= HEDDLE_LA_HERMITIAN);
    LA_CHECK(la, 4, a != NULL && (kind == HEDDLE_LA_GENERAL || a->m == a->n));
    g.h = heddle_la_begin(la, a);
    for (size_t j = 0; j < a->nt; j++) {
        g.j0 = la_first(a, j);
        LA_TRY(heddle_la_submit(la, &kernel_random, &a->col[j], NULL, 1, &g, sizeof(g),
                                (int)(a->nt - j)));
    }
    return HEDDLE_OK;
}

/* --- given singular values ---------------------------------------------------- */

struct latms_arg {
    struct la_head h;
    char trans;
    bool is_hermitian;
    double cond;
    size_t n, stride; /* value number (j stride) mod n stands in column j */
    size_t j0;
};

static heddle_status run_values(struct heddle_exec *x)
{
    const struct latms_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < a.n; j++) {
        const size_t col = g->j0 + j;
        const size_t k = (size_t)((uint64_t)col * g->stride % g->n);
        const double e = g->n > 1 ? (double)k / (double)(g->n - 1) : 0;

        memset(blas_at(g->h.t, a, 0, j), 0, a.m * blas_bytes(g->h.t));
        put(g->h.t, blas_at(g->h.t, a, col, j), pow(g->cond, -e), 0);
    }
    return HEDDLE_OK;
}

/* A block column of op(H) A. */
static heddle_status run_reflect(struct heddle_exec *x)
{
    const struct latms_arg *g = heddle_exec_arg(x);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return heddle_la_reflect(g->h.la, g->h.t, 'L', g->trans, la_operand(x, 0), la_operand(x, 1),
                             la_operand(x, 2));
}

/* W = W op(T). */
static heddle_status run_triangle(struct heddle_exec *x)
{
    const struct latms_arg *g = heddle_exec_arg(x);
    const struct blas_block w = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_blas_trmm(g->h.t, 'R', 'U', g->trans, 'N', heddle_blas_one(g->h.t),
                     blas_part(g->h.t, la_operand(x, 0), 0, 0, w.n, w.n), w);
    return HEDDLE_OK;
}

/* The diagonal of a hermitian matrix is real. */
static heddle_status run_real(struct heddle_exec *x)
{
    const struct latms_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h) || !blas_is_complex(g->h.t))
        return HEDDLE_OK;
    for (size_t j = 0; j < a.n; j++) {
        char *d = blas_at(g->h.t, a, g->j0 + j, j);

        memset(d + blas_real_bytes(g->h.t), 0, blas_real_bytes(g->h.t));
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_reflect(struct heddle_exec *x)
{
    const struct latms_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *v = heddle_exec_layout(x, 0), *c = heddle_exec_layout(x, 2);

    return (struct heddle_cost){
        .flops = 2 * la_flops(g->h.t, c->extent[0], c->extent[1], v->extent[1]),
        .bytes = (double)(c->extent[0] * (v->extent[1] + 2 * c->extent[1]) * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_triangle(struct heddle_exec *x)
{
    const struct latms_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *w = heddle_exec_layout(x, 1);

    return (struct heddle_cost){.flops =
                                    la_flops(g->h.t, w->extent[0], w->extent[1], w->extent[1]) / 2};
}

static const heddle_kernel kernel_values = {
    .size = sizeof(heddle_kernel),
    .name = "latms_values",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_values}},
    .cost = cost_write};

static const heddle_kernel kernel_reflect = {
    .size = sizeof(heddle_kernel),
    .name = "latms_reflect",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_reflect}},
    .cost = cost_reflect};

static const heddle_kernel kernel_triangle = {
    .size = sizeof(heddle_kernel),
    .name = "latms_triangle",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_triangle}},
    .cost = cost_triangle};

static const heddle_kernel kernel_real = {.size = sizeof(heddle_kernel),
                                          .name = "latms_real",
                                          .noperands = 1,
                                          .mode = {HEDDLE_RW},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_real}},
                                          .cost = cost_write};

/* A task for each block column of a, alone. */
static heddle_status submit_each(struct latms_arg g, const heddle_kernel *kernel, heddle_matrix *a)
{
    for (size_t j = 0; j < a->nt; j++) {
        g.j0 = la_first(a, j);
        LA_TRY(heddle_la_submit(g.h.la, kernel, &a->col[j], NULL, 1, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

/* A random block reflector of order m: V explicit, its triangle in tri. */
struct reflector {
    heddle_matrix *v, *tri;
};

static void reflector_end(struct reflector *r)
{
    heddle_matrix_destroy(r->v);
    heddle_matrix_destroy(r->tri);
}

static heddle_status reflector_make(heddle_la *la, enum heddle_dtype dtype, size_t m, uint64_t seed,
                                    struct reflector *r)
{
    const size_t w = la_min(m, LATMS_WIDTH);
    enum blas_type t = BLAS_D;

    (void)blas_type_of(dtype, &t);
    LA_TRY(heddle_la_temporary(la, dtype, m, w, w, &r->v));
    LA_TRY(heddle_la_temporary(la, dtype, w, w, w, &r->tri));
    LA_TRY(heddle_la_random(la, HEDDLE_LA_GENERAL, 0, seed, r->v));
    LA_TRY(heddle_la_geqrf(la, r->v, r->tri));
    return heddle_la_laset(la, 'U', heddle_blas_zero(t), heddle_blas_one(t), r->v);
}

/* A = H A. */
static heddle_status apply_left(struct latms_arg g, struct reflector r, heddle_matrix *a)
{
    g.trans = 'N';
    for (size_t j = 0; j < a->nt; j++) {
        heddle_handle *const op[3] = {r.v->col[0], r.tri->col[0], a->col[j]};

        LA_TRY(heddle_la_submit(g.h.la, &kernel_reflect, op, NULL, 3, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

/* A = A H^H = A - (A V T^H) V^H, with w as workspace. */
static heddle_status apply_right(struct latms_arg g, struct reflector r, heddle_matrix *w,
                                 heddle_matrix *a)
{
    const enum blas_type t = g.h.t;
    heddle_handle *const op[2] = {r.tri->col[0], w->col[0]};

    g.trans = 'C';
    LA_TRY(heddle_la_gemm(g.h.la, 'N', 'N', heddle_blas_one(t), a, r.v, heddle_blas_zero(t), w));
    LA_TRY(heddle_la_submit(g.h.la, &kernel_triangle, op, NULL, 2, &g, sizeof(g), 0));
    return heddle_la_gemm(g.h.la, 'N', 'C', heddle_blas_minus_one(t), w, r.v, heddle_blas_one(t),
                          a);
}

/* One reflector from the left and one from the right; hermitian: the same. */
static heddle_status mix(struct latms_arg g, uint64_t seed, heddle_matrix *a)
{
    heddle_la *la = g.h.la;
    struct reflector left = {NULL, NULL}, right = {NULL, NULL};
    heddle_matrix *w = NULL;
    heddle_status st = reflector_make(la, a->dtype, a->m, seed, &left);

    if (st == HEDDLE_OK && !g.is_hermitian)
        st = reflector_make(la, a->dtype, a->n, ~seed, &right);
    if (st == HEDDLE_OK)
        st = heddle_la_temporary(la, a->dtype, a->m, la_min(a->n, LATMS_WIDTH), LATMS_WIDTH, &w);
    if (st == HEDDLE_OK)
        st = apply_left(g, left, a);
    if (st == HEDDLE_OK)
        st = apply_right(g, g.is_hermitian ? left : right, w, a);
    reflector_end(&left);
    reflector_end(&right);
    heddle_matrix_destroy(w);
    return st;
}

/* One triangle from the other: rounding has made them differ. */
static heddle_status mirror(struct latms_arg g, heddle_matrix *a)
{
    heddle_la *la = g.h.la;
    heddle_matrix *b = NULL;
    heddle_status st = submit_each(g, &kernel_real, a);

    if (st == HEDDLE_OK)
        st = heddle_la_temporary(la, a->dtype, a->m, a->n, a->nb, &b);
    if (st == HEDDLE_OK)
        st = heddle_la_transpose(la, 'C', a, b);
    if (st == HEDDLE_OK)
        st = heddle_la_lacpy(la, 'U', b, a);
    heddle_matrix_destroy(b);
    return st;
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b != 0) {
        const size_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* A number without a common divisor with n, far from both its ends. */
static size_t stride_of(size_t n)
{
    size_t s = (size_t)(0.618 * (double)n) + 1;

    while (common_divisor(n, s) != 1)
        s++;
    return s;
}

heddle_status heddle_la_latms(heddle_la *la, enum heddle_la_kind kind, double cond, uint64_t seed,
                              heddle_matrix *a)
{
    struct latms_arg g = {.cond = cond};

    LA_CHECK(la, 1,
             la != NULL && (kind == HEDDLE_LA_GENERAL || kind == HEDDLE_LA_HERMITIAN ||
                            (kind == HEDDLE_LA_SYMMETRIC && a != NULL && !blas_is_complex(a->t))));
    LA_CHECK(la, 2, cond >= 1 && cond <= 1e300);
    g.is_hermitian = kind != HEDDLE_LA_GENERAL;
    LA_CHECK(la, 4, a != NULL && (g.is_hermitian ? a->m == a->n : a->m >= a->n));
    g.h = heddle_la_begin(la, a);
    if (a->nt == 0)
        return HEDDLE_OK;
    g.n = a->n;
    g.stride = stride_of(a->n);
    LA_TRY(submit_each(g, &kernel_values, a));
    for (uint64_t round = 0; round < LATMS_ROUNDS; round++)
        LA_TRY(mix(g, heddle_mix64(seed + round), a));
    return g.is_hermitian ? mirror(g, a) : HEDDLE_OK;
}
