/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eager: one queue for all workers, first in first out.
 *
 * Purpose    the baseline every other policy is compared with; fair and simple.
 * Threads    the list has its own lock.
 * Cost       push and pop O(1), one lock each; stops scaling near 16 workers.
 */
#include "sched/list.h"

static heddle_status eager_init(void *self, const struct heddle_sched_env *env)
{
    (void)self; /* zeroed: an empty list */
    (void)env;
    return HEDDLE_OK;
}

static void eager_fini(void *self)
{
    (void)self;
}

static void eager_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_sched_list_push(self, t);
}

static struct heddle_sched_task *eager_pop(void *self, unsigned worker)
{
    (void)worker;
    return heddle_sched_list_pop(self);
}

const struct heddle_sched_ops heddle_sched_eager = {
    .name = "eager",
    .help = "one central first-in-first-out queue",
    .instance_size = sizeof(struct heddle_sched_list),
    .init = eager_init,
    .fini = eager_fini,
    .push = eager_push,
    .pop = eager_pop,
};
