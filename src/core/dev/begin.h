/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_BEGIN_H
#define HEDDLE_CORE_DEV_BEGIN_H

/* A task on a device, from the scheduler to its launch. */
#include <stdbool.h>

#include "sched/sched.h"

struct dev_task;
struct dev_worker;
struct heddle_devs;
/* A task that the scheduler gave to a worker of a device. Driver. */
void heddle_dev_begin(struct heddle_devs *d, struct dev_worker *dw, struct heddle_sched_task *t);
/* Fills the operands of a request. False: no memory. */
bool heddle_dev_fill(struct dev_task *dt, unsigned node);

#endif /* HEDDLE_CORE_DEV_BEGIN_H */
