/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel: finds and launches kernels of our own, and deals out narrow panels.
 */
#include "la/cuda/kernel.h"

#include <stdio.h>
#include <string.h>

#include "la/cuda/ptx/cluster_d.h"
#include "la/cuda/ptx/cluster_s.h"
#include "la/cuda/ptx/kernels.h"

void heddle_la_preload(heddle_ctx *ctx, const char *routine)
{
    const bool is_lu =
        routine != NULL && (strncmp(routine, "getrf", 5) == 0 || strncmp(routine, "gesv", 4) == 0);

    (void)heddle_cuda_preload(ctx, la_kernels_ptx); /* a hint */
    if (is_lu)
        (void)heddle_cuda_preload(ctx, la_cluster_d_ptx);
    if (routine != NULL && strncmp(routine, "po", 2) == 0)
        heddle_la_cholesky_preload(ctx);
}

heddle_status heddle_la_kernel(struct la_gpu *g, bool is_cluster, const char *entry,
                               void **function_out)
{
    const char *ptx = !is_cluster      ? la_kernels_ptx
                      : g->t == BLAS_S ? la_cluster_s_ptx
                                       : la_cluster_d_ptx;

    return heddle_launch_find(g->x, ptx, entry, function_out);
}

/* name_<suffix> */
static heddle_status put(struct la_gpu *g, const char *name, const char *suffix,
                         struct heddle_cuda_shape shape, const void *const *values, unsigned n)
{
    void *function = NULL;
    char entry[16];

    snprintf(entry, sizeof(entry), "%s_%s", name, suffix);
    LA_TRY(heddle_la_kernel(g, shape.cluster > 0, entry, &function));
    return heddle_launch_put(g->x, function, &shape, values, n);
}

heddle_status heddle_la_put(struct la_gpu *g, const char *name, struct heddle_cuda_shape shape,
                            const void *const *values, unsigned n)
{
    static const char *const suffix[4] = {"s", "d", "c", "z"};

    return put(g, name, suffix[g->t], shape, values, n);
}

heddle_status heddle_la_put_sized(struct la_gpu *g, const char *name,
                                  struct heddle_cuda_shape shape, const void *const *values,
                                  unsigned n)
{
    static const char *const suffix[4] = {"4", "8", "8", "16"};

    return put(g, name, suffix[g->t], shape, values, n);
}

/* --- narrow panels -------------------------------------------------------------- */

bool heddle_la_deal_rows(struct la_gpu *g, size_t m, size_t extra, struct heddle_cuda_shape *shape)
{
    unsigned most = 0;
    size_t threads = 128, blocks, shared = 0;

    heddle_cuda_get_limits(g->x, &most, &shared);
    most = most < LA_PANEL_BLOCKS ? most : LA_PANEL_BLOCKS;
    while (threads < 512 && (m + threads - 1) / threads > most / 2)
        threads += 128;
    blocks = (m + threads - 1) / threads;
    *shape = la_shape(blocks, threads, (threads * LA_PANEL_STRIDE + extra) * blas_bytes(g->t));
    shape->is_cooperative = 1;
    return blocks <= most && shape->shared_bytes <= shared;
}

heddle_status heddle_la_start_panel(struct la_gpu *g, unsigned **bar, void **tell)
{
    const int n = LA_GPU_NB / LA_PANEL;
    void *function = NULL;

    *bar = heddle_exec_scratch(g->x);
    *tell = (char *)*bar + 4096;
    LA_TRY(heddle_la_kernel(g, false, "la_zero", &function));
    return heddle_launch_put(g->x, function, &(struct heddle_cuda_shape){.block = {32}},
                             LAUNCH_VALUES(bar, &n));
}
