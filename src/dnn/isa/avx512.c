/* SPDX-License-Identifier: BSD-3-Clause */
/* avx512: 32 registers of 16 lanes; tiles of 6 x 64 and 12 x 32. Compiled with -mavx512f. */
#define DNN_LANES 16

#include "dnn/isa/all.h"

TILE_TWELVE(TILE_DEFINE, 1)
TILE_TWELVE(TILE_DEFINE, 2)
TILE_SIX(TILE_DEFINE, 3)
TILE_SIX(TILE_DEFINE, 4)

static bool is_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

const struct dnn_isa heddle_dnn_avx512 = {
    DNN_ISA_COMMON,
    .name = "avx512",
    .is_here = is_here,
    .nv = 4,
    .mr = {0, 12, 12, 6, 6},
    .tile = {TILE_TWELVE(TILE_NAME, 1) TILE_TWELVE(TILE_NAME, 2) TILE_SIX(TILE_NAME, 3)
                 TILE_SIX(TILE_NAME, 4)},
};
