/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_REGION_H
#define HEDDLE_CORE_DEV_REGION_H

/* Recorded regions as one operation of a device. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/spin.h"

struct dev_graph;
struct heddle_devs;
struct region_run;

/* Recorded regions on devices: see dev/region.c. */
struct region {
    struct heddle_spin lock;
    struct region_run *first, *last; /* for the device thread */
    struct dev_graph *made;          /* changed by the device thread */
    _Atomic uint32_t has_dead;       /* set under the lock */
    unsigned turn;                   /* the device thread's */
};

void heddle_region_init(struct heddle_devs *d);
void heddle_region_fini(struct heddle_devs *d);
/* Begins the runs that were offered. True: there were some. Driver. */
bool heddle_region_step(struct heddle_devs *d);

#endif /* HEDDLE_CORE_DEV_REGION_H */
