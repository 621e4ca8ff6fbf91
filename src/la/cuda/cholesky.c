/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cholesky: launches the panels of cholesky.cu, which says what the numbers
 * are.
 */
#include <stdio.h>

#include "la/cuda/cuda.h"
#include "la/cuda/ptx/cholesky_d.h"
#include "la/cuda/ptx/cholesky_s.h"
#include "launch/launch.h"

/* At most so many blocks: what is left of the device goes on with updates. */
enum {
    CHOL_NB = 64,
    CHOL_ROWS = 192,
    CHOL_THREADS = CHOL_NB + CHOL_ROWS,
    CHOL_BLOCKS = 96,
    CHOL_WIDE = 512 /* columns of a launch: it takes away by itself, but slower
                       than a library */
};

static size_t shared_bytes(enum blas_type t)
{
    return (2 * 16 * (CHOL_THREADS + 4) + CHOL_NB * (CHOL_ROWS + 2) + CHOL_NB * (CHOL_NB + 2) +
            5 * CHOL_NB) *
           blas_bytes(t);
}

static heddle_status find(struct la_gpu *g, const char *name, void **out)
{
    char entry[20];

    snprintf(entry, sizeof(entry), "%s_%c", name, g->t == BLAS_S ? 's' : 'd');
    return heddle_launch_find(g->x, g->t == BLAS_S ? la_cholesky_s_ptx : la_cholesky_d_ptx, entry,
                              out);
}

void heddle_la_cholesky_preload(heddle_ctx *ctx)
{
    (void)heddle_cuda_preload(ctx, la_cholesky_d_ptx); /* a hint, for the usual type */
}

/* Nothing is done yet when it is declined. */
static heddle_status find_both(struct la_gpu *g, void **start, void **panel)
{
    if (blas_is_complex(g->t) || heddle_cuda_get_capability(g->x) < 90)
        return HEDDLE_EDECLINED;
    LA_TRY(find(g, "la_chol_start", start));
    return find(g, "la_chol", panel);
}

struct chol {
    struct la_gpu *g;
    void *start, *panel; /* the kernels */
    unsigned most;       /* blocks at once */
};

/* As many columns as one launch is good for, of which `before` come first. */
static heddle_status few(const struct chol *c, struct blas_block a, size_t before, int *info)
{
    struct heddle_exec *x = c->g->x;
    void *bar = heddle_exec_scratch(x);
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n, col0 = (int)before;
    const size_t w = la_min(a.n, CHOL_NB), most = la_min(c->most, CHOL_BLOCKS);
    const size_t chunks = la_max((a.m - w + CHOL_ROWS - 1) / CHOL_ROWS, 1);
    const size_t rounds = (chunks + most - 1) / most; /* all do as much */
    const struct heddle_cuda_shape one = launch_shape(1, 1);
    struct heddle_cuda_shape all = launch_shape((chunks + rounds - 1) / rounds, CHOL_THREADS);

    all.shared_bytes = shared_bytes(c->g->t);
    all.is_cooperative = 1;
    LA_TRY(heddle_launch_put(x, c->start, &one, LAUNCH_VALUES(&bar)));
    return heddle_launch_put(x, c->panel, &all,
                             LAUNCH_VALUES(&a.a, &ld, &m, &n, &col0, &info, &bar));
}

/* What the columns `from` .. `to` - 1 take away from those up to `end`. */
static heddle_status take_away(struct la_gpu *g, struct blas_block a, size_t from, size_t to,
                               size_t end)
{
    const void *one = heddle_blas_one(g->t), *minus = heddle_blas_minus_one(g->t);
    const struct blas_block top = blas_part(g->t, a, to, from, end - to, to - from);

    LA_TRY(heddle_gpu_syrk(g, true, 'L', 'N', minus, top, one,
                           blas_part(g->t, a, to, to, end - to, end - to)));
    return heddle_gpu_gemm(g, 'N', 'T', minus, blas_part(g->t, a, end, from, a.m - end, to - from),
                           top, one, blas_part(g->t, a, end, to, a.m - end, end - to));
}

heddle_status heddle_gpu_cholesky(struct la_gpu *g, struct blas_block a, int *info)
{
    struct chol c = {.g = g};
    size_t shared = 0;

    heddle_cuda_get_limits(g->x, &c.most, &shared);
    if (c.most == 0 || shared < shared_bytes(g->t))
        return HEDDLE_EDECLINED;
    LA_TRY(find_both(g, &c.start, &c.panel));
    for (size_t j = 0; j < a.n; j += CHOL_WIDE) {
        const size_t end = la_min(a.n, j + CHOL_WIDE);

        if (j > 0)
            LA_TRY(take_away(g, a, 0, j, end));
        LA_TRY(few(&c, blas_part(g->t, a, j, j, a.m - j, end - j), j, info));
    }
    return HEDDLE_OK;
}
