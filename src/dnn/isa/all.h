/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_ALL_H
#define HEDDLE_DNN_ISA_ALL_H

/* The inner loops of an instruction set, for the file that has chosen DNN_LANES. */
#include "dnn/isa/isa.h"
#include "dnn/isa/map.h"
#include "dnn/isa/rows.h"
#include "dnn/isa/tile.h"
#include "dnn/isa/turn.h"
#include "dnn/isa/window.h"

/* What is the same in all tables. */
#define DNN_ISA_COMMON                                                                             \
    .lanes = DNN_LANES, .depthwise = window_depthwise, .pool_max = window_max,                     \
    .pool_sum = window_sum, .map1 = MAP_TABLE1, .map2 = MAP_TABLE2, .softmax = row_softmax,        \
    .norm = row_norm, .sum = row_sum, .transpose = turn

#endif /* HEDDLE_DNN_ISA_ALL_H */
