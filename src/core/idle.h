/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_IDLE_H
#define HEDDLE_CORE_IDLE_H

/* A worker without a task: it spins, then it sleeps. */
#include <stdbool.h>
#include <stdint.h>

#include "core/engine.h"
#include "core/worker.h"

/* Spins for a while; *since is when it began to (0: now). Returns a task, or NULL when it is
 * time to sleep or to look at the stop condition again. */
struct heddle_sched_task *heddle_idle_spin(struct worker *w, uint64_t *since);
/* Goes to sleep unless a task (which is returned), a gang or the condition turns up. */
struct heddle_sched_task *heddle_idle_park(struct worker *w, stop_fn stop, void *arg,
                                           uint64_t timeout_ns);
/* The rest of heddle_idle_end(). */
void heddle_idle_leave(struct worker *w, bool found);

/* The worker spins no more; `found`: because there is a task. The last spinner then wakes
 * another one up, for there may be more than one task. */
static inline void heddle_idle_end(struct worker *w, bool found)
{
    if (w->is_spinning)
        heddle_idle_leave(w, found);
}

/* How long a wait may sleep: not past the deadline, and in slices, so that the
 * watchdog gets a look in; a worker in its main loop has no limit. */
uint64_t heddle_idle_slice(uint64_t deadline_ns, bool is_main);
/* After a sleep in a wait: has nothing moved for long? Then the watchdog reports. */
void heddle_idle_watch(heddle_ctx *ctx, uint64_t *quiet_since);

#endif /* HEDDLE_CORE_IDLE_H */
