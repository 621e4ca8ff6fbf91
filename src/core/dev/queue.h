/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_QUEUE_H
#define HEDDLE_CORE_DEV_QUEUE_H

/* Ready tasks of a context with devices. */
#include <stdbool.h>

#include "core/worker.h"
#include "sched/sched.h"

struct heddle_devs;

/* The engine's own work: any core does it, no scheduler is asked. */
bool heddle_dev_is_own(struct heddle_sched_task *t);
/* The list of tasks for any core: puts one there; takes the first (NULL: none). */
void heddle_dev_put_supplied(struct heddle_devs *d, struct heddle_sched_task *t);
struct heddle_sched_task *heddle_dev_take_supplied(struct heddle_devs *d);
/* A task goes to the scheduler (or: comes from it). */
void heddle_dev_count_core(struct heddle_devs *d, struct heddle_sched_task *t, bool goes);
/* Can any class run it? */
bool heddle_dev_has_home(struct heddle_devs *d, struct heddle_sched_task *t);
/* The nodes of a graph are about to be pushed, as far as they are ready. The others
 * have predecessors that the scheduler is not told of. */
void heddle_dev_announce(heddle_ctx *ctx, struct heddle_sched_task *t, bool is_ready);

#endif /* HEDDLE_CORE_DEV_QUEUE_H */
