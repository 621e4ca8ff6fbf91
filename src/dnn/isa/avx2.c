/* SPDX-License-Identifier: BSD-3-Clause */
/* avx2: 16 registers of 8 lanes; tiles of 6 x 16 and 12 x 8. Compiled with -mavx2 -mfma. */
#define DNN_LANES 8

#include "dnn/isa/all.h"

TILE_TWELVE(TILE_DEFINE, 1)
TILE_SIX(TILE_DEFINE, 2)

static bool is_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct dnn_isa heddle_dnn_avx2 = {
    DNN_ISA_COMMON, .name = "avx2",   .is_here = is_here,
    .nv = 2,        .mr = {0, 12, 6}, .tile = {TILE_TWELVE(TILE_NAME, 1) TILE_SIX(TILE_NAME, 2)},
};
