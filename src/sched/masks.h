/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_MASKS_H
#define HEDDLE_SCHED_MASKS_H

/*
 * prio and eager with several classes: a worker gets the first task that can run on
 * its class. There is a heap per set of classes (mask) that can run a task; a worker
 * looks at the heads of the heaps whose mask contains its class. When there are too
 * many different sets, a task waits in the heap of one of its classes alone.
 *
 * Threads  its own lock; the view is asked without it.
 * Cost     push: one cost() per class. pop: O(masks + log n).
 */
#include "sched/sched.h"

struct heddle_masks;

/* HEDDLE_ENOMEM; HEDDLE_ENOSYS for more than 64 classes. `by_prio`: priorities
 * count; otherwise first in first out. */
HEDDLE_MUST_USE heddle_status heddle_masks_create(const struct heddle_sched_env *env, bool by_prio,
                                                  struct heddle_masks **out);
void heddle_masks_destroy(struct heddle_masks *m); /* NULL is fine */

void heddle_masks_push(struct heddle_masks *m, struct heddle_sched_task *t);
struct heddle_sched_task *heddle_masks_pop(struct heddle_masks *m, unsigned worker);
struct heddle_sched_task *heddle_masks_lost(struct heddle_masks *m, unsigned cls);

#endif /* HEDDLE_SCHED_MASKS_H */
