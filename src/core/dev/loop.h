/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_LOOP_H
#define HEDDLE_CORE_DEV_LOOP_H

/* The device thread. */
#include <stdbool.h>

#include "heddle/status.h"

struct heddle_devs;

/* Tasks for the workers of devices, as long as they have room. True: there were some. Driver. */
bool heddle_dev_fill_workers(struct heddle_devs *d);
/* The thread of real time, see struct dev_time_ops. */
heddle_status heddle_driver_start(struct heddle_devs *d);
void heddle_driver_kick(struct heddle_devs *d);
void heddle_driver_stop(struct heddle_devs *d);

#endif /* HEDDLE_CORE_DEV_LOOP_H */
