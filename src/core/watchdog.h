/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_WATCHDOG_H
#define HEDDLE_CORE_WATCHDOG_H

/* A report about tasks that wait, when nothing has moved for long. */
#include <stdint.h>

#include "heddle/ctx.h"

/* Called by a waiting thread now and then; `quiet_ns` without progress. */
void heddle_watchdog_report(heddle_ctx *ctx, uint64_t quiet_ns);

#endif /* HEDDLE_CORE_WATCHDOG_H */
