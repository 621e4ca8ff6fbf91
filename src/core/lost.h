/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_LOST_H
#define HEDDLE_CORE_LOST_H

/*
 * Time that the system took from a running task to run something else on its core. Such
 * time says nothing about the kernel: models leave the sample out, and the log has an event
 * for it (HEDDLE_LOG_LOST).
 */
#include <stdint.h>

#include "base/compiler.h"
#include "core/worker.h"

/* At least so long between two looks. */
#define LOST_PERIOD_NS 500000

/*
 * The task of the holder of slot w ran from `start` to `now`, ticks of the real clock. Returns
 * how many ticks of these it lost for certain; 0: none that are worth a word.
 */
uint64_t heddle_lost_look(struct worker *w, uint64_t start, uint64_t now);

/* The same, at the price of a comparison while the last look is not long ago. */
static inline uint64_t heddle_lost_take(struct worker *w, uint64_t start, uint64_t now)
{
    return HEDDLE_LIKELY(now < w->look_at) ? 0 : heddle_lost_look(w, start, now);
}

/* Slot w goes on after a sleep, or with another thread: what was before does not count. */
void heddle_lost_begin(struct worker *w, uint64_t now);

/* The event in the log: the task lost so many ticks, and has ended now. */
void heddle_lost_trace(struct worker *w, uint64_t task, uint64_t ticks, uint64_t now);

#endif /* HEDDLE_CORE_LOST_H */
