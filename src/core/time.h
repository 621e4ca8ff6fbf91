/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_TIME_H
#define HEDDLE_CORE_TIME_H

/*
 * The time of a context: the machine's clock and threads (engine.c), or a simulated
 * clock and steps (dev/virtual.c). The engine calls the table, and does not ask which
 * of the two it has. The part of core/dev is dev/time.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "core/ctx.h"
#include "core/worker.h"
#include "heddle/ctx.h"
#include "trace/trace.h"

struct heddle_scope;

typedef bool (*stop_fn)(void *arg);

struct heddle_time_ops {
    const char *name; /* in the log */
    /* Slots are threads of their own. Else the thread of the program takes all steps: it
     * always helps, and gangs have one member. */
    bool has_threads;
    /* What tasks take and draw is measured: models learn, energy counters are read. */
    bool is_measured;
    /* Facts about the time, at the beginning of the log. */
    void (*define)(heddle_ctx *ctx, const struct heddle_ctx_opts *o);
    /* The name of slot i in the log; returns what its lane is. */
    enum heddle_log_lane_kind (*name_slot)(unsigned i, char *name, size_t bytes);
    /* The cores that a window of submissions is made for; 0: submissions take no time, and
     * there is no need to stop them. */
    unsigned (*window_cores)(const heddle_ctx *ctx);
    /* See heddle_ctx_ticks(). */
    uint64_t (*ticks)(const heddle_ctx *ctx);
    /* The virtual time that has passed; 0: there is none. */
    uint64_t (*virtual_ns)(const heddle_ctx *ctx);
    /* Runs one ready task on slot w, or takes one step. False: there is nothing to do. */
    bool (*step)(struct worker *w);
    /* Does so until stop(arg), or until deadline_ns (0: none); is_main: a worker thread, and
     * no wait. False: the deadline came first. */
    bool (*loop)(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns, bool is_main);
    /* The same for a wait that runs only what is inside of a scope. */
    void (*loop_own)(struct worker *w, stop_fn stop, struct heddle_scope *scope);
    /* The cells of tasks that ended on slot w go back to their submitters. */
    void (*flush)(struct worker *w);
    /* n tasks were submitted, which takes a while. Called where there are devices, with no
     * lock held. */
    void (*charge)(heddle_ctx *ctx, size_t n);
};

extern const struct heddle_time_ops heddle_time_real;
extern const struct heddle_time_ops heddle_time_virtual;

/* The clock of the log: ticks of the machine's, or virtual nanoseconds. */
static inline uint64_t heddle_ctx_ticks(const heddle_ctx *ctx)
{
    return HEDDLE_LIKELY(ctx->dev == NULL) ? heddle_ticks() : ctx->time->ticks(ctx);
}

#endif /* HEDDLE_CORE_TIME_H */
