/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_LOOP_H
#define HEDDLE_CORE_DEV_LOOP_H

/* The driver's loop. */
#include <stdbool.h>
#include <stdint.h>

struct dev_worker;
struct heddle_devs;

/* There is something to do for the driver. Any thread. */
void heddle_dev_kick(void *user);
/* The clock of the context's devices. Any thread. */
uint64_t heddle_dev_now_ns(void *user);
/* May the worker begin another task? */
bool heddle_dev_has_room(const struct heddle_devs *d, const struct dev_worker *dw);
/* Does what can be done now. Driver. */
bool heddle_dev_step(struct heddle_devs *d);

#endif /* HEDDLE_CORE_DEV_LOOP_H */
