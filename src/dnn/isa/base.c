/* SPDX-License-Identifier: BSD-3-Clause */
/* base: vectors of 4 lanes, which every 64-bit processor has (SSE2, NEON). */
#define DNN_LANES 4

#include "dnn/isa/all.h"

TILE_TWELVE(TILE_DEFINE, 1)
TILE_SIX(TILE_DEFINE, 2)

static bool is_here(void)
{
    return true;
}

const struct dnn_isa heddle_dnn_base = {
    DNN_ISA_COMMON, .name = "base",   .is_here = is_here,
    .nv = 2,        .mr = {0, 12, 6}, .tile = {TILE_TWELVE(TILE_NAME, 1) TILE_SIX(TILE_NAME, 2)},
};
