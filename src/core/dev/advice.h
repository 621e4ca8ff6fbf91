/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_ADVICE_H
#define HEDDLE_CORE_DEV_ADVICE_H

/* Hints of the program about where data should be. */
#include "heddle/ctx.h"
#include "task/task.h"

/* Does what the task of an advice says; see heddle_handle_advise(). The slot that runs it. */
void heddle_dev_advise(heddle_ctx *ctx, const struct heddle_cell *c);

#endif /* HEDDLE_CORE_DEV_ADVICE_H */
