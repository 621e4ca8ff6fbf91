/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_ERROR_H
#define HEDDLE_CORE_ERROR_H

/* Sentences about failures: kept, and told to the program. */
#include "base/compiler.h"
#include "heddle/ctx.h"
#include "heddle/data.h"
#include "heddle/task.h"

/* Keeps the first failure and its sentence; reports it. Returns st. No lock is
 * held: the callback is the user's. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_fail(heddle_ctx *ctx, heddle_status st, const char *fmt, ...);
/* The same under a lock: keeps it; heddle_tell() reports it afterwards. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_refuse(heddle_ctx *ctx, heddle_status st, const char *fmt, ...);
/* Reports what was kept. No lock is held. */
void heddle_tell(heddle_ctx *ctx);
/* The call asked for data that have failed: keeps and reports their name, with the
 * sentence of the latest failure that a wait returned. Returns st. No lock is held. */
heddle_status heddle_fail_data(heddle_ctx *ctx, heddle_status st, const heddle_handle *h);
/* A failure of no task that the next wait returns. No lock is held. */
HEDDLE_PRINTF(3, 4)
void heddle_fail_wait(heddle_ctx *ctx, heddle_status st, const char *fmt, ...);
/* A struct of the program, of any size (base/sized.h), into one that the library
 * knows; a sentence is kept, as heddle_refuse() does. HEDDLE_EINVAL. */
HEDDLE_MUST_USE heddle_status heddle_take(heddle_ctx *ctx, const char *name, void *to, size_t known,
                                          const void *from);
#define HEDDLE_TAKE(ctx, type, to, from) heddle_take(ctx, #type, to, sizeof(type), from)
/* May a struct of the program be filled? No lock is held. */
HEDDLE_MUST_USE heddle_status heddle_may_fill(heddle_ctx *ctx, const char *name, const void *out,
                                              size_t known);
#define HEDDLE_MAY_FILL(ctx, type, out) heddle_may_fill(ctx, #type, out, sizeof(type))
/* The failure of a task, with the sentence it left, if any. */
void heddle_fail_task(struct heddle_exec *x, heddle_status st);
HEDDLE_PRINTF(3, 4)
void heddle_report(heddle_ctx *ctx, enum heddle_severity severity, const char *fmt, ...);

#endif /* HEDDLE_CORE_ERROR_H */
