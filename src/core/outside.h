/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_OUTSIDE_H
#define HEDDLE_CORE_OUTSIDE_H

/* Threads of the program that wait, help, or end tasks: they hold slot 0 or none. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "core/ctx.h"
#include "core/engine.h"
#include "core/worker.h"

/* Is the calling thread inside a task of this context? Then its slot. */
struct worker *heddle_ctx_self(heddle_ctx *ctx);

/* Around what an outside thread does after it may have let tasks go: the context
 * does not end in between. */
static inline void heddle_foreign_enter(heddle_ctx *ctx)
{
    heddle_add_acqrel(&ctx->nforeign, 1u);
}

static inline void heddle_foreign_leave(heddle_ctx *ctx)
{
    heddle_sub_acqrel(&ctx->nforeign, 1u); /* the last access to ctx */
}

/* Slot 0, if it is free; NULL: another thread has it, or the option helps is off. */
struct worker *heddle_master_trylock(heddle_ctx *ctx);
void heddle_master_unlock(heddle_ctx *ctx);
/* heddle_engine_help() for an outside thread: takes slot 0 or sleeps while another has it. */
bool heddle_ctx_help(heddle_ctx *ctx, stop_fn stop, void *arg, uint64_t deadline_ns);
/* Wakes up threads that wait for a condition that may have become true. */
void heddle_ctx_signal(heddle_ctx *ctx);
/* An outside thread that shares a CPU with a bound worker moves to the one that
 * was left for it. */
void heddle_ctx_nudge(heddle_ctx *ctx);
/* Have all tasks of the context ended? */
bool heddle_ctx_is_quiet(heddle_ctx *ctx);
/* No task runs: only an event or a release can make one ready. */
bool heddle_ctx_is_stuck(heddle_ctx *ctx);

#endif /* HEDDLE_CORE_OUTSIDE_H */
