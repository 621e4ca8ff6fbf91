/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_LAUNCH_H
#define HEDDLE_CORE_DEV_LAUNCH_H

/* The launch of a task on a device. Driver. */
#include <stdbool.h>

#include "heddle/task.h"

struct dev_task;
struct heddle_devs;

/* All that it needs is there. */
void heddle_dev_go(struct dev_task *dt, bool has_partials);
/* Its partial results are there, too. */
void heddle_dev_launch(struct dev_task *dt);
/* Calls the variant of a task on a device. */
heddle_status heddle_dev_call(struct heddle_exec *x);
/* Virtual time: a task waits for its children (or: goes on). Its worker may run
 * others meanwhile. */
void heddle_dev_block(struct heddle_devs *d, bool is_blocked);

#endif /* HEDDLE_CORE_DEV_LAUNCH_H */
