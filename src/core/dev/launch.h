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
/* Its partial results are there, too, and it is its turn. */
void heddle_dev_launch_now(struct dev_task *dt);
/* The launch has ended. */
void heddle_dev_landed(struct dev_task *dt, heddle_status st);
/* Calls the variant of a task on a device. */
heddle_status heddle_dev_call(struct heddle_exec *x);

#endif /* HEDDLE_CORE_DEV_LAUNCH_H */
