/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_PLAN_CHAIN_H
#define HEDDLE_TOOLS_BENCH_PLAN_CHAIN_H

/* How long the tables of chain solvers take: part of `heddle bench plan`. */
#include <stdint.h>

#include "cmd/cmd.h"

/* One line per case of up to so many layers. Returns 0, or the exit status after a sentence. */
int bench_plan_chain(struct cli *c, uint64_t layers, uint64_t seed);

#endif /* HEDDLE_TOOLS_BENCH_PLAN_CHAIN_H */
