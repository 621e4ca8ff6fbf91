/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_END_H
#define HEDDLE_CORE_DEV_END_H

/* The end of a task on a device, or another try. Driver. */
#include <stdbool.h>

#include "heddle/status.h"
#include "sched/sched.h"

struct dev_task;
struct heddle_devs;
struct worker;

/* The function has ended, and partial results are back. */
void heddle_dev_end(struct dev_task *dt, heddle_status st);
/* It is over. */
void heddle_dev_finish(struct dev_task *dt, heddle_status st);
/* Another try, elsewhere if its class is barred. In vain: its end. */
void heddle_dev_again(struct dev_task *dt, heddle_status st, bool is_barred);
/* How often it may be tried again after a failure. */
unsigned heddle_dev_retries(const struct dev_task *dt);
/* What was held for its predecessors goes on. Driver. */
void heddle_dev_unhold(struct dev_task *dt);
/* The scheduler learns that a worker of a device has got a task without a pop
 * (took), or that one has ended after ns, or goes back (ns < 0 or NAN): that at
 * once, else a little late. The flush: now. Driver. */
void heddle_dev_tell_took(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker);
void heddle_dev_tell_ended(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker,
                           double ns);
void heddle_dev_tell_flush(struct heddle_devs *d);

#endif /* HEDDLE_CORE_DEV_END_H */
