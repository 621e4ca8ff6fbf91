/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CYCLE_H
#define HEDDLE_CORE_CYCLE_H

/* Waits of tasks for events and groups, which may wait for themselves. */
#include <stdbool.h>
#include <stdint.h>

#include "core/time.h"
#include "core/worker.h"
#include "heddle/task.h"

/* Do done() and the argument belong to heddle_event_after()? Then its event. */
heddle_event *heddle_event_behind(void (*done)(void *user, heddle_status st), void *user);

/*
 * The wait of the task that runs on slot w for `event`, or for `group` (the other one is
 * NULL), which stop(arg) asks about: heddle_engine_wait(), and an end with a sentence
 * where stop(arg) cannot come true before this very wait has returned.
 *
 * HEDDLE_ETIMEDOUT, HEDDLE_EDEADLK
 */
heddle_status heddle_cycle_wait(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                                const heddle_event *event, const heddle_group *group);

#endif /* HEDDLE_CORE_CYCLE_H */
