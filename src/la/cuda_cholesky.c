/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_cholesky: launches the panels of cuda_cholesky.cu, which says what the numbers
 * are.
 */
#include <stdio.h>

#include "heddle/cuda.h"
#include "la/cuda.h"
#include "la/cuda_cholesky_d.h"
#include "la/cuda_cholesky_s.h"

/* At most so many blocks: what is left of the device goes on with updates. */
enum {
    CHOL_NB = 64,
    CHOL_ROWS = 192,
    CHOL_THREADS = CHOL_NB + CHOL_ROWS,
    CHOL_BLOCKS = 96,
    CHOL_WIDE = 512 /* columns of a launch: it takes away by itself, but slower
                       than a library */
};

static size_t shared_bytes(enum heddle_la_type t)
{
    return (2 * 16 * (CHOL_THREADS + 4) + CHOL_NB * (CHOL_ROWS + 2) + CHOL_NB * (CHOL_NB + 2) +
            5 * CHOL_NB) *
           la_bytes(t);
}

static heddle_status find(struct la_gpu *g, const char *name, void **out)
{
    char entry[20];

    snprintf(entry, sizeof(entry), "%s_%c", name, g->t == LA_S ? 's' : 'd');
    return heddle_cuda_kernel(g->x, g->t == LA_S ? la_cholesky_s_ptx : la_cholesky_d_ptx, 0, entry,
                              out);
}

/* Nothing is done yet when it is declined. */
static heddle_status find_both(struct la_gpu *g, void **start, void **panel)
{
    heddle_status st;

    if (la_is_complex(g->t) || heddle_cuda_get_capability(g->x) < 90)
        return HEDDLE_EDECLINED;
    st = find(g, "la_chol_start", start);
    if (st == HEDDLE_OK)
        st = find(g, "la_chol", panel);
    return st == HEDDLE_EINVAL ? HEDDLE_EDECLINED : st;
}

struct chol {
    struct la_gpu *g;
    void *start, *panel; /* the kernels */
    unsigned most;       /* blocks at once */
};

/* As many columns as one launch is good for, of which `before` come first. */
static heddle_status few(const struct chol *c, struct la_block a, size_t before, int *info)
{
    struct heddle_exec *x = c->g->x;
    void *bar = heddle_exec_scratch(x);
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n, col0 = (int)before;
    const size_t w = la_min(a.n, CHOL_NB), most = la_min(c->most, CHOL_BLOCKS);
    const size_t chunks = la_max((a.m - w + CHOL_ROWS - 1) / CHOL_ROWS, 1);
    const size_t rounds = (chunks + most - 1) / most; /* all do as much */

    LA_TRY(heddle_cuda_launch(x, c->start, &(struct heddle_cuda_shape){.grid = {1}, .block = {1}},
                              (const struct heddle_cuda_arg[]){{.value = &bar}}, 1));
    return heddle_cuda_launch(
        x, c->panel,
        &(struct heddle_cuda_shape){.grid = {(unsigned)((chunks + rounds - 1) / rounds)},
                                    .block = {CHOL_THREADS},
                                    .shared_bytes = shared_bytes(c->g->t),
                                    .is_cooperative = 1},
        (const struct heddle_cuda_arg[]){{.value = &a.a},
                                         {.value = &ld},
                                         {.value = &m},
                                         {.value = &n},
                                         {.value = &col0},
                                         {.value = &info},
                                         {.value = &bar}},
        7);
}

/* What the columns `from` .. `to` - 1 take away from those up to `end`. */
static heddle_status take_away(struct la_gpu *g, struct la_block a, size_t from, size_t to,
                               size_t end)
{
    const void *one = heddle_la_one(g->t), *minus = heddle_la_minus_one(g->t);
    const struct la_block top = la_part(g->t, a, to, from, end - to, to - from);

    LA_TRY(heddle_gpu_syrk(g, true, 'L', 'N', minus, top, one,
                           la_part(g->t, a, to, to, end - to, end - to)));
    return heddle_gpu_gemm(g, 'N', 'T', minus, la_part(g->t, a, end, from, a.m - end, to - from),
                           top, one, la_part(g->t, a, end, to, a.m - end, end - to));
}

heddle_status heddle_gpu_cholesky(struct la_gpu *g, struct la_block a, int *info)
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
        LA_TRY(few(&c, la_part(g->t, a, j, j, a.m - j, end - j), j, info));
    }
    return HEDDLE_OK;
}
