/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_PLAN_CHAIN_H
#define HEDDLE_TOOLS_BENCH_PLAN_CHAIN_H

#include <stdint.h>

#include "cmd.h"

/* One line per length of chain. Returns 0, or the exit status after a sentence. */
int bench_plan_chain(struct cli *c, uint64_t seed);

#endif /* HEDDLE_TOOLS_BENCH_PLAN_CHAIN_H */
