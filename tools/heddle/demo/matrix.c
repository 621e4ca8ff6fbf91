/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo/matrix: the matrix of the demo, its factorisation and its check.
 *
 * Structure  each tile of the lower triangle has memory of its own, so tiles
 *            do not share cache lines. A step registers them with the context
 *            it is given and drops the handles at its end.
 * Check      R = A - L L^T tile by tile, as tasks: fill, gemm or syrk, norm.
 *            The tiles of R are allocated by the runtime and freed as soon as
 *            their norm was added (handles are dropped at submission).
 */
#include "demo/demo.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"

enum { TICK_NS = 50000000, SUBMITS_PER_TICK = 64, PEAK_ROUNDS = 5 };

/* Argument of fill and norm. */
struct place {
    uint32_t i, j; /* of the first element */
    uint64_t n;
};

/* --- kernels -------------------------------------------------------------- */

/* A[i][j]: see demo/demo.h. */
static double element(uint64_t i, uint64_t j, uint64_t n)
{
    const uint64_t lo = i < j ? i : j, hi = i < j ? j : i;
    const uint64_t h = heddle_mix64(hi << 32 | lo);

    return (double)(h >> 11) * 0x1.0p-53 - 0.5 + (i == j ? (double)n : 0.0);
}

static heddle_status run_fill(struct heddle_exec *x)
{
    const struct place *p = heddle_exec_arg(x);
    const struct tile t = tile_operand(x, 0);

    for (size_t j = 0; j < t.n; j++)
        for (size_t i = 0; i < t.m; i++)
            t.a[i + j * t.ld] = element(p->i + i, p->j + j, p->n);
    return HEDDLE_OK;
}

/* Adds the squares of a tile of R and of A. A diagonal tile counts its lower
 * part, once, the others count for their mirror image too. */
static heddle_status run_norm(struct heddle_exec *x)
{
    const struct place *p = heddle_exec_arg(x);
    const struct tile t = tile_operand(x, 0);
    double *sum = heddle_exec_ptr(x, 1);
    double r = 0, a = 0;

    for (size_t j = 0; j < t.n; j++) {
        for (size_t i = p->i == p->j ? j : 0; i < t.m; i++) {
            const double e = element(p->i + i, p->j + j, p->n);
            const double d = t.a[i + j * t.ld];
            const double twice = p->i + i == p->j + j ? 1.0 : 2.0;

            r += twice * d * d;
            a += twice * e * e;
        }
    }
    sum[0] += r;
    sum[1] += a;
    return HEDDLE_OK;
}

/* --- the matrix ----------------------------------------------------------- */

size_t demo_matrix_bytes(size_t n, size_t nb)
{
    const size_t nt = (n + nb - 1) / nb;
    size_t bytes;

    if (!heddle_mul(&bytes, nt * (nt + 1) / 2, nb * nb * sizeof(double)))
        return 0;
    return bytes;
}

static void matrix_kernels(struct demo_matrix *m)
{
    heddle_kernel *const fill = &m->kernel[DEMO_FILL];
    heddle_kernel *const norm = &m->kernel[DEMO_NORM];
    const struct heddle_variant core = {.name = m->ops->name, .device = HEDDLE_DEV_CPU};

    cholesky_kernels(m->kernel, m->ops, m->nb);
    *fill = (heddle_kernel){.size = sizeof(*fill),
                            .name = "fill",
                            .noperands = 1,
                            .mode = {HEDDLE_W},
                            .variants = {core}};
    fill->variants[0].run = run_fill;
    *norm = (heddle_kernel){.size = sizeof(*norm),
                            .name = "norm",
                            .noperands = 2,
                            .mode = {HEDDLE_R, HEDDLE_REDUCE},
                            .variants = {core}};
    norm->variants[0].run = run_norm;
}

heddle_status demo_matrix_init(struct demo_matrix *m, const struct heddle_tile_ops *ops, size_t n,
                               size_t nb)
{
    *m = (struct demo_matrix){.ops = ops, .n = n, .nb = nb};
    m->nt = (uint32_t)((n + nb - 1) / nb);
    m->bytes = demo_matrix_bytes(n, nb);
    if (m->bytes != 0)
        m->data = heddle_alloc_aligned(NULL, m->bytes, 64);
    m->info = calloc(m->nt, sizeof(*m->info));
    matrix_kernels(m);
    return m->data == NULL || m->info == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void demo_matrix_fini(struct demo_matrix *m)
{
    heddle_free(NULL, m->data, m->bytes);
    free(m->info);
    m->data = NULL;
    m->info = NULL;
}

static size_t tile_order(const struct demo_matrix *m, size_t i)
{
    const size_t rest = m->n - i * m->nb;

    return rest < m->nb ? rest : m->nb;
}

/* --- tiles as handles ----------------------------------------------------- */

static void drop_tiles(const struct demo_matrix *m, heddle_handle **tiles)
{
    for (size_t t = 0; tiles != NULL && t < cholesky_tile(m->nt, 0); t++)
        heddle_handle_unref(tiles[t]);
    free(tiles);
}

/* One handle per tile; NULL after a failure. */
static heddle_handle **make_tiles(const struct demo_matrix *m, heddle_ctx *ctx, heddle_status *st)
{
    heddle_handle **tiles = calloc(cholesky_tile(m->nt, 0), sizeof(heddle_handle *));

    *st = tiles == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
    for (size_t i = 0; i < m->nt; i++) {
        for (size_t j = 0; j <= i && *st == HEDDLE_OK; j++) {
            const size_t t = cholesky_tile(i, j);

            *st = heddle_handle_matrix(ctx, m->data + t * m->nb * m->nb, tile_order(m, i),
                                       tile_order(m, j), tile_order(m, i), HEDDLE_F64, &tiles[t]);
        }
    }
    if (*st == HEDDLE_OK)
        return tiles;
    drop_tiles(m, tiles);
    return NULL;
}

static heddle_status submit_place(const struct demo_matrix *m, heddle_ctx *ctx, unsigned kernel,
                                  size_t i, size_t j, heddle_handle *const op[2])
{
    const struct place p = {(uint32_t)(i * m->nb), (uint32_t)(j * m->nb), m->n};

    return heddle_submit(
        ctx, &m->kernel[kernel],
        &(struct heddle_call){.operand = {op[0], op[1]}, .arg = &p, .arg_bytes = sizeof(p)});
}

/* The failure of the submission, or of the tasks. */
static heddle_status finish(heddle_ctx *ctx, heddle_status st)
{
    const heddle_status waited = heddle_wait(ctx);

    return st != HEDDLE_OK ? st : waited;
}

heddle_status demo_matrix_fill(struct demo_matrix *m, heddle_ctx *ctx)
{
    heddle_status st;
    heddle_handle **tiles = make_tiles(m, ctx, &st);

    for (size_t i = 0; i < m->nt; i++)
        for (size_t j = 0; j <= i && st == HEDDLE_OK; j++)
            st = submit_place(m, ctx, DEMO_FILL, i, j,
                              (heddle_handle *[2]){tiles[cholesky_tile(i, j)]});
    st = finish(ctx, st);
    drop_tiles(m, tiles);
    return st;
}

/* --- factorisation -------------------------------------------------------- */

struct submission {
    const struct demo_matrix *m;
    struct demo_factor *f;
    heddle_handle **tiles;
    struct cholesky_arg args;
    size_t nsubmitted;
};

static void tick(const struct demo_factor *f)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    if (f->tick != NULL && heddle_ctx_get_stats(f->ctx, &s) == HEDDLE_OK)
        f->tick(f->tick_user, s.done);
}

static heddle_status submit_one(void *user, const struct cholesky_task *t)
{
    struct submission *s = user;
    struct heddle_call call = {.arg = &s->args, .arg_bytes = sizeof(s->args)};
    heddle_handle *info = NULL;
    heddle_status st = HEDDLE_OK;

    for (uint32_t i = 0; i < t->ntiles; i++)
        call.operand[i] = s->tiles[t->tile[i]];
    /* Early steps first, and in a step what the next one waits for. */
    call.priority = (int)(s->m->nt - t->step) * 4 + (CHOLESKY_GEMM - (int)t->kind);
    if (++s->nsubmitted % SUBMITS_PER_TICK == 0)
        tick(s->f);
    if (t->kind == CHOLESKY_POTRF) {
        st = heddle_handle_vector(s->f->ctx, &s->m->info[t->step], 1, HEDDLE_I32, &info);
        call.operand[1] = info;
    }
    if (st == HEDDLE_OK)
        st = heddle_submit(s->f->ctx, &s->m->kernel[t->kind], &call);
    heddle_handle_unref(info); /* the task keeps it */
    return st;
}

/* What potrf on a device has found out. */
static heddle_status look_at_pivots(const struct demo_matrix *m, struct demo_factor *f)
{
    for (size_t k = 0; k < m->nt; k++) {
        if (m->info[k] == 0)
            continue;
        f->bad_row = k * m->nb + (size_t)m->info[k];
        return HEDDLE_ETASK;
    }
    return HEDDLE_OK;
}

heddle_status demo_matrix_factor(struct demo_matrix *m, struct demo_factor *f)
{
    struct submission s = {.m = m, .f = f, .args = {m->ops}};
    heddle_status st, waited;
    uint64_t start;

    s.tiles = make_tiles(m, f->ctx, &st);
    if (st != HEDDLE_OK)
        return st;
    start = heddle_clock_ns();
    st = cholesky_walk(m->nt, submit_one, &s);
    while ((waited = heddle_wait_for(f->ctx, TICK_NS)) == HEDDLE_ETIMEDOUT)
        tick(f);
    f->wall_ns = (double)(heddle_clock_ns() - start);
    tick(f);
    drop_tiles(m, s.tiles);
    if (st == HEDDLE_OK)
        st = waited;
    return st == HEDDLE_OK ? look_at_pivots(m, f) : st;
}

double demo_matrix_flops(size_t n)
{
    const double x = (double)n;

    return x * x * x / 3 + x * x / 2 + x / 6;
}

/* --- check ---------------------------------------------------------------- */

/* R[i][j] -= L[i][k] L[j][k]^T for all k, then its norm. */
static heddle_status submit_residual(const struct demo_matrix *m, heddle_ctx *ctx,
                                     heddle_handle **tiles, heddle_handle *sum, size_t i, size_t j)
{
    const struct cholesky_arg args = {m->ops};
    struct heddle_call call = {.arg = &args, .arg_bytes = sizeof(args)};
    heddle_handle *r = NULL;
    heddle_status st =
        heddle_handle_matrix(ctx, NULL, tile_order(m, i), tile_order(m, j), 0, HEDDLE_F64, &r);

    if (st == HEDDLE_OK)
        st = submit_place(m, ctx, DEMO_FILL, i, j, (heddle_handle *[2]){r});
    for (size_t k = 0; k <= j && st == HEDDLE_OK; k++) {
        const bool is_diagonal = i == j;

        call.operand[0] = tiles[cholesky_tile(i, k)];
        call.operand[1] = is_diagonal ? r : tiles[cholesky_tile(j, k)];
        call.operand[2] = is_diagonal ? NULL : r;
        st = heddle_submit(ctx, &m->kernel[is_diagonal ? CHOLESKY_SYRK : CHOLESKY_GEMM], &call);
    }
    if (st == HEDDLE_OK)
        st = submit_place(m, ctx, DEMO_NORM, i, j, (heddle_handle *[2]){r, sum});
    heddle_handle_unref(r); /* the tasks keep it */
    return st;
}

/* What devices leave above the diagonal is no part of L. */
static void clear_upper(struct demo_matrix *m)
{
    for (size_t k = 0; k < m->nt; k++) {
        const size_t ld = tile_order(m, k);
        double *a = m->data + cholesky_tile(k, k) * m->nb * m->nb;

        for (size_t j = 1; j < ld; j++)
            memset(a + j * ld, 0, j * sizeof(*a));
    }
}

heddle_status demo_matrix_check(struct demo_matrix *m, heddle_ctx *ctx, double *error_out)
{
    double sums[2] = {0, 0}; /* squares of R, of A */
    heddle_handle *sum = NULL;
    heddle_handle **tiles;
    heddle_status st;

    clear_upper(m);
    tiles = make_tiles(m, ctx, &st);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(ctx, sums, 2, HEDDLE_F64, &sum);
    if (st == HEDDLE_OK)
        st = heddle_handle_set_sum(sum);
    for (size_t i = 0; i < m->nt; i++)
        for (size_t j = 0; j <= i && st == HEDDLE_OK; j++)
            st = submit_residual(m, ctx, tiles, sum, i, j);
    st = finish(ctx, st);
    if (st == HEDDLE_OK)
        st = heddle_handle_acquire(sum, HEDDLE_R, NULL);
    if (st == HEDDLE_OK) {
        *error_out = sqrt(sums[0] / sums[1]) / ((double)m->n * DBL_EPSILON);
        st = heddle_handle_release(sum);
    }
    heddle_handle_unref(sum);
    drop_tiles(m, tiles);
    return st;
}

/* --- peak ----------------------------------------------------------------- */

double demo_peak(const struct heddle_tile_ops *ops, size_t nb)
{
    const size_t bytes = 3 * nb * nb * sizeof(double);
    const double flops = 2.0 * (double)nb * (double)nb * (double)nb;
    double *d = heddle_alloc_aligned(NULL, bytes, 64);
    double best = 0;

    if (d == NULL)
        return 0;
    for (size_t i = 0; i < 3 * nb * nb; i++)
        d[i] = (double)(i % 7) * 0.125;
    for (unsigned r = 0; r < PEAK_ROUNDS; r++) {
        const struct tile a = {d, nb, nb, nb}, b = {d + nb * nb, nb, nb, nb},
                          c = {d + 2 * nb * nb, nb, nb, nb};
        const uint64_t start = heddle_clock_ns();
        uint64_t ns;
        unsigned runs = 0;

        do {
            ops->gemm(a, b, c);
            ns = heddle_clock_ns() - start;
            runs++;
        } while (ns < 10000000);
        if (flops * runs / (double)ns > best)
            best = flops * runs / (double)ns;
    }
    heddle_free(NULL, d, bytes);
    return best;
}
