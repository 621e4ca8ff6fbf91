/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eager: one queue for all workers, first in first out.
 *
 * Purpose    the baseline every other policy is compared with; fair and simple.
 * Classes    with several, masks.h does it: the first that can run there.
 * Threads    the list has its own lock.
 * Cost       push and pop O(1), one lock each; stops scaling near 16 workers.
 */
#include "sched/list.h"
#include "sched/masks.h"

struct eager {
    struct heddle_sched_list list;
    struct heddle_masks *masks; /* NULL: one class */
};

static heddle_status eager_init(void *self, const struct heddle_sched_env *env)
{
    struct eager *q = self; /* zeroed: an empty list */

    return env->cls == NULL ? HEDDLE_OK : heddle_masks_create(env, false, &q->masks);
}

static void eager_fini(void *self)
{
    struct eager *q = self;

    heddle_masks_destroy(q->masks);
}

static void eager_push(void *self, struct heddle_sched_task *t, int worker)
{
    struct eager *q = self;

    (void)worker;
    if (HEDDLE_UNLIKELY(q->masks != NULL))
        heddle_masks_push(q->masks, t);
    else
        heddle_sched_list_push(&q->list, t);
}

static struct heddle_sched_task *eager_pop(void *self, unsigned worker)
{
    struct eager *q = self;

    if (HEDDLE_UNLIKELY(q->masks != NULL))
        return heddle_masks_pop(q->masks, worker);
    return heddle_sched_list_pop(&q->list);
}

static struct heddle_sched_task *eager_lost(void *self, unsigned cls)
{
    struct eager *q = self;

    return q->masks == NULL ? NULL : heddle_masks_lost(q->masks, cls);
}

const struct heddle_sched_ops heddle_sched_eager = {
    .name = "eager",
    .help = "one central first-in-first-out queue",
    .instance_size = sizeof(struct eager),
    .init = eager_init,
    .fini = eager_fini,
    .push = eager_push,
    .pop = eager_pop,
    .knows_classes = true,
    .lost = eager_lost,
};
