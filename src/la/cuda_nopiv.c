/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_nopiv: panels of LU without pivots on a CUDA device. 64 columns are two launches
 * of cuda_nopiv.cu; wider panels are made by halves, with solves and products of cuBLAS
 * between them.
 */
#include <stdio.h>

#include "heddle/cuda.h"
#include "la/cuda.h"
#include "la/cuda_nopiv_ptx.h"

/* As in cuda_nopiv.cu. */
enum { NOPIV_NB = 64, NOPIV_THREADS = 256, BELOW_THREADS = 128 };

struct nopiv {
    struct la_gpu *g;
    void *diagonal, *below; /* the kernels */
    int *info;
};

static heddle_status find(struct la_gpu *g, const char *name, void **out)
{
    char entry[16];
    heddle_status st;

    snprintf(entry, sizeof(entry), "%s_%c", name, "sdcz"[g->t]);
    st = heddle_cuda_kernel(g->x, la_nopiv_ptx, 0, entry, out);
    return st == HEDDLE_EINVAL ? HEDDLE_EDECLINED : st;
}

/* n columns, at most NOPIV_NB, from their diagonal block down; `before` come first. */
static heddle_status few(const struct nopiv *p, struct la_block a,
                         size_t before)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, col0 = (int)before, m = (int)(a.m - a.n);
    const struct la_block b = la_part(p->g->t, a, a.n, 0, a.m - a.n, a.n);

    LA_TRY(heddle_cuda_launch(
        p->g->x, p->diagonal,
        &(struct heddle_cuda_shape){.grid = {1}, .block = {NOPIV_THREADS}},
        (const struct heddle_cuda_arg[]){{.value = &a.a},
                                         {.value = &ld},
                                         {.value = &n},
                                         {.value = &col0},
                                         {.value = &p->info}},
        5));
    if (m == 0)
        return HEDDLE_OK;
    return heddle_cuda_launch(
        p->g->x, p->below,
        &(struct heddle_cuda_shape){
            .grid = {(unsigned)((b.m + BELOW_THREADS - 1) / BELOW_THREADS)},
            .block = {BELOW_THREADS}},
        (const struct heddle_cuda_arg[]){{.value = &a.a},
                                         {.value = &b.a},
                                         {.value = &ld},
                                         {.value = &m},
                                         {.value = &n}},
        5);
}

/* Half of the columns, what they do to the others, the other half. */
static heddle_status halves(const struct nopiv *p, struct la_block a,
                            size_t before)
{
    const enum heddle_la_type t = p->g->t;
    const size_t left =
        (a.n / 2 + NOPIV_NB - 1) / NOPIV_NB * NOPIV_NB; /* < a.n */
    const struct la_block u = la_part(t, a, 0, left, left, a.n - left),
                          rest =
                              la_part(t, a, left, left, a.m - left, a.n - left);

    if (a.n <= NOPIV_NB)
        return few(p, a, before);
    LA_TRY(halves(p, la_part(t, a, 0, 0, a.m, left), before));
    LA_TRY(heddle_gpu_trsm(p->g, 'L', 'L', 'N', 'U', heddle_la_one(t),
                           la_part(t, a, 0, 0, left, left), u));
    LA_TRY(heddle_gpu_gemm(p->g, 'N', 'N', heddle_la_minus_one(t),
                           la_part(t, a, left, 0, a.m - left, left), u,
                           heddle_la_one(t), rest));
    return halves(p, rest, before + left);
}

heddle_status heddle_gpu_lu_nopiv(struct la_gpu *g, struct la_block a,
                                  int *info)
{
    const enum heddle_la_type t = g->t;
    const size_t n = la_min(a.m, a.n);
    struct nopiv p = {.g = g, .info = info};

    LA_TRY(find(g, "la_nopiv", &p.diagonal));
    LA_TRY(find(g, "la_below", &p.below));
    LA_TRY(halves(&p, la_part(t, a, 0, 0, a.m, n), 0));
    if (n == a.n)
        return HEDDLE_OK;
    return heddle_gpu_trsm(g, 'L', 'L', 'N', 'U', heddle_la_one(t),
                           la_part(t, a, 0, 0, n, n),
                           la_part(t, a, 0, n, n, a.n - n));
}
