/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_HOST_H
#define HEDDLE_CORE_DEV_HOST_H

/* Tasks on cores in a context with other memories. */
#include "core/worker.h"
#include "sched/sched.h"

/* Ends a task that no worker can run. */
void heddle_dev_give_up(struct worker *w, struct heddle_sched_task *t);

#endif /* HEDDLE_CORE_DEV_HOST_H */
