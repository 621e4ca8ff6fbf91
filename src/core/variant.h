/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_VARIANT_H
#define HEDDLE_CORE_VARIANT_H

/* The function of a task on a core: its variants, models, retries. */
#include "core/exec.h"
#include "heddle/ctx.h"

/* Calls the function of a task that is filled in: expansion, or variants in turn. */
heddle_status heddle_variant_call(struct heddle_exec *x, const struct task_ext *ext);
/* What a task is expected to take, in ns; 0: unknown. */
float heddle_variant_predict(heddle_ctx *ctx, struct heddle_cell *c);

#endif /* HEDDLE_CORE_VARIANT_H */
