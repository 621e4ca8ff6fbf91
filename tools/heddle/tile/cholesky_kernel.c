/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tile/cholesky_kernel: the kernels of a tile Cholesky factorisation, for cores and
 * for CUDA devices.
 *
 * Operands   as tile/cholesky.h says. The arithmetic on cores is that of the set the
 *            argument points to, on devices that of tile/cuda.c.
 */
#include "tile/cholesky.h"

#include "tile/tile.h"

static const struct heddle_tile_ops *exec_ops(struct heddle_exec *x)
{
    return ((const struct cholesky_arg *)heddle_exec_arg(x))->ops;
}

static heddle_status run_potrf(struct heddle_exec *x)
{
    int *info = heddle_exec_ptr(x, 1);

    *info = (int)exec_ops(x)->potrf(tile_operand(x, 0));
    if (*info != 0)
        return heddle_exec_fail(x, HEDDLE_ETASK, "the matrix is not positive definite");
    return HEDDLE_OK;
}

static heddle_status run_trsm(struct heddle_exec *x)
{
    exec_ops(x)->trsm(tile_operand(x, 0), tile_operand(x, 1));
    return HEDDLE_OK;
}

static heddle_status run_syrk(struct heddle_exec *x)
{
    exec_ops(x)->syrk(tile_operand(x, 0), tile_operand(x, 1));
    return HEDDLE_OK;
}

static heddle_status run_gemm(struct heddle_exec *x)
{
    exec_ops(x)->gemm(tile_operand(x, 0), tile_operand(x, 1), tile_operand(x, 2));
    return HEDDLE_OK;
}

/* Operations of one task, from the shape of the tile it updates. */
static struct heddle_cost cost(struct heddle_exec *x, double flops)
{
    double bytes = 0;

    for (unsigned i = 0; i < heddle_exec_noperands(x); i++)
        bytes += 8.0 * (double)heddle_exec_count(x, i);
    return (struct heddle_cost){.flops = flops, .bytes = bytes};
}

static struct heddle_cost cost_potrf(struct heddle_exec *x)
{
    const double n = (double)heddle_exec_layout(x, 0)->extent[1];

    return cost(x, n * n * n / 3);
}

/* trsm and syrk: m n n. */
static struct heddle_cost cost_half(struct heddle_exec *x)
{
    const struct heddle_layout *a = heddle_exec_layout(x, 0);

    return cost(x, (double)a->extent[1] * (double)heddle_exec_count(x, 1));
}

static struct heddle_cost cost_gemm(struct heddle_exec *x)
{
    const struct heddle_layout *a = heddle_exec_layout(x, 0);

    return cost(x, 2.0 * (double)a->extent[1] * (double)heddle_exec_count(x, 2));
}

void cholesky_kernels(heddle_kernel k[CHOLESKY_NKINDS], const struct heddle_tile_ops *ops,
                      size_t nb)
{
    static const struct {
        heddle_run_fn core, cuda;
        struct heddle_cost (*cost)(struct heddle_exec *x);
        unsigned noperands;
        enum heddle_mode mode[3];
    } def[CHOLESKY_NKINDS] = {
        {run_potrf, tile_cuda_potrf, cost_potrf, 2, {HEDDLE_RW, HEDDLE_W}},
        {run_trsm, tile_cuda_trsm, cost_half, 2, {HEDDLE_R, HEDDLE_RW}},
        {run_syrk, tile_cuda_syrk, cost_half, 2, {HEDDLE_R, HEDDLE_RW}},
        {run_gemm, tile_cuda_gemm, cost_gemm, 3, {HEDDLE_R, HEDDLE_R, HEDDLE_RW}},
    };

    for (enum cholesky_kind i = 0; i < CHOLESKY_NKINDS; i++) {
        k[i] = (heddle_kernel){.size = sizeof(k[i]),
                               .name = cholesky_name(i),
                               .noperands = def[i].noperands,
                               .cost = def[i].cost};
        k[i].variants[0] = (struct heddle_variant){
            .name = ops->name, .device = HEDDLE_DEV_CPU, .run = def[i].core};
        k[i].variants[1] = (struct heddle_variant){.device = HEDDLE_DEV_CUDA, .run = def[i].cuda};
        for (unsigned o = 0; o < def[i].noperands; o++)
            k[i].mode[o] = def[i].mode[o];
    }
    k[CHOLESKY_POTRF].variants[1].scratch_bytes = tile_cuda_potrf_scratch(nb);
}
