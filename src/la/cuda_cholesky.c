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
    CHOL_BLOCKS = 96
};

static size_t shared_bytes(enum heddle_la_type t)
{
    return (3 * 16 * (CHOL_THREADS + 4) + CHOL_NB * (CHOL_NB + 2) +
            5 * CHOL_NB) *
           la_bytes(t);
}

static heddle_status find(struct la_gpu *g, const char *name, void **out)
{
    char entry[20];

    snprintf(entry, sizeof(entry), "%s_%c", name, g->t == LA_S ? 's' : 'd');
    return heddle_cuda_kernel(
        g->x, g->t == LA_S ? la_cholesky_s_ptx : la_cholesky_d_ptx, 0, entry,
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

heddle_status heddle_gpu_cholesky(struct la_gpu *g, struct la_block a,
                                  int *info)
{
    void *bar = heddle_exec_scratch(g->x), *start = NULL, *panel = NULL;
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n;
    const size_t w = la_min(a.n, CHOL_NB);
    const size_t chunks = la_max((a.m - w + CHOL_ROWS - 1) / CHOL_ROWS, 1);
    size_t blocks, rounds, shared;
    unsigned most = 0;

    heddle_cuda_get_limits(g->x, &most, &shared);
    if (most == 0 || shared < shared_bytes(g->t))
        return HEDDLE_EDECLINED;
    LA_TRY(find_both(g, &start, &panel));
    blocks = la_min(most, CHOL_BLOCKS);
    rounds = (chunks + blocks - 1) / blocks;
    blocks = (chunks + rounds - 1) / rounds; /* all do as much */
    LA_TRY(heddle_cuda_launch(
        g->x, start, &(struct heddle_cuda_shape){.grid = {1}, .block = {1}},
        (const struct heddle_cuda_arg[]){{.value = &bar}}, 1));
    return heddle_cuda_launch(
        g->x, panel,
        &(struct heddle_cuda_shape){.grid = {(unsigned)blocks},
                                    .block = {CHOL_THREADS},
                                    .shared_bytes = shared_bytes(g->t),
                                    .is_cooperative = 1},
        (const struct heddle_cuda_arg[]){{.value = &a.a},
                                         {.value = &ld},
                                         {.value = &m},
                                         {.value = &n},
                                         {.value = &info},
                                         {.value = &bar}},
        6);
}
