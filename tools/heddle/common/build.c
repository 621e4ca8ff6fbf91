/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/build: what was compiled in, as values.
 *
 * Purpose    the one file of the tool that sees the build switches without
 *            being a registry.
 */
#include "cmd/cmd.h"
#include "heddle_config.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

const struct heddle_build heddle_build = {
    .has_hwloc = HEDDLE_WITH_HWLOC,
    .has_blas = HEDDLE_WITH_BLAS,
    .has_cuda = HEDDLE_WITH_CUDA,
    .compiler = COMPILER,
};
