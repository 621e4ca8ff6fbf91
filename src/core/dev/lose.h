/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_LOSE_H
#define HEDDLE_CORE_DEV_LOSE_H

/* Devices that are gone, and failures that are injected. Driver. */
#include "heddle/status.h"

struct heddle_devs;
/* The device of a class is gone. Driver. */
void heddle_dev_lose(struct heddle_devs *d, unsigned cls);
/* Takes the tasks of lost classes out of the scheduler. Driver. */
void heddle_dev_find_strays(struct heddle_devs *d);
heddle_status heddle_dev_fault_copy(void *user, unsigned from, unsigned to);
heddle_status heddle_dev_fault_alloc(void *user, unsigned node);
/* One more launch on the class: HEDDLE_OK, or what was injected. */
heddle_status heddle_dev_fault_launch(struct heddle_devs *d, unsigned cls);

#endif /* HEDDLE_CORE_DEV_LOSE_H */
