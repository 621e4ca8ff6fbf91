/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_KERNELS_MIXED_H
#define HEDDLE_TESTS_KERNELS_MIXED_H

/* Kernels of src/la/cuda/mixed.cu, for kernels.c. NULL: there is none of that name. */
#include "fakecuda.h"

const struct fc_kernel *fc_kernel_find_mixed(const char *name);

#endif /* HEDDLE_TESTS_KERNELS_MIXED_H */
