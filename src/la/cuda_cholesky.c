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

enum { CHOL_NB = 64, CHOL_ROWS = 192, CHOL_THREADS = CHOL_NB + CHOL_ROWS };

static size_t shared_bytes(enum heddle_la_type t)
{
    return (3 * 16 * (CHOL_THREADS + 4) + CHOL_NB * (CHOL_NB + 2) + CHOL_NB) *
           la_bytes(t);
}

static heddle_status find(struct la_gpu *g, const char *name, void **out)
{
    char entry[16];

    snprintf(entry, sizeof(entry), "%s_%c", name, g->t == LA_S ? 's' : 'd');
    return heddle_cuda_kernel(
        g->x, g->t == LA_S ? la_cholesky_s_ptx : la_cholesky_d_ptx, 0, entry,
        out);
}

/* Nothing is done yet when it is declined. */
static heddle_status find_both(struct la_gpu *g, void **step, void **put)
{
    heddle_status st;

    if (la_is_complex(g->t) || heddle_cuda_get_capability(g->x) < 90)
        return HEDDLE_EDECLINED;
    st = find(g, "la_chol", step);
    if (st == HEDDLE_OK)
        st = find(g, "la_chol_put", put);
    return st == HEDDLE_EINVAL ? HEDDLE_EDECLINED : st;
}

heddle_status heddle_gpu_cholesky(struct la_gpu *g, struct la_block a,
                                  int *info)
{
    void *diag = heddle_exec_scratch(g->x), *step = NULL, *put = NULL;
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n;

    if (a.n > LA_GPU_NB)
        return HEDDLE_EDECLINED;
    LA_TRY(find_both(g, &step, &put));
    for (int c0 = 0; c0 < n; c0 += CHOL_NB) {
        const int w = n - c0 < CHOL_NB ? n - c0 : CHOL_NB;
        const int below = m - c0 - w;
        const unsigned blocks =
            below > 0 ? (unsigned)((below + CHOL_ROWS - 1) / CHOL_ROWS) : 1;
        void *d = (char *)diag + (size_t)c0 * CHOL_NB * la_bytes(g->t);

        LA_TRY(heddle_cuda_launch(
            g->x, step,
            &(struct heddle_cuda_shape){.grid = {blocks},
                                        .block = {CHOL_THREADS},
                                        .shared_bytes = shared_bytes(g->t)},
            (const struct heddle_cuda_arg[]){{.value = &a.a},
                                             {.value = &ld},
                                             {.value = &m},
                                             {.value = &c0},
                                             {.value = &w},
                                             {.value = &d},
                                             {.value = &info}},
            7));
    }
    return heddle_cuda_launch(
        g->x, put,
        &(struct heddle_cuda_shape){
            .grid = {(unsigned)((n + CHOL_NB - 1) / CHOL_NB)},
            .block = {CHOL_THREADS}},
        (const struct heddle_cuda_arg[]){
            {.value = &a.a}, {.value = &ld}, {.value = &n}, {.value = &diag}},
        4);
}
