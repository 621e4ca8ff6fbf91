/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eager: one queue for all workers, first in first out.
 *
 * Purpose    the baseline every other policy is compared with; fair and simple.
 * Structure  a list through link[0].
 * Invariant  head == NULL exactly when tail == NULL; tail->link[0] == NULL.
 * Threads    `lock` guards head and tail; `count` is a hint that spares idle
 *            workers the lock.
 * Cost       push and pop O(1), one lock each; stops scaling near 16 workers.
 */
#include "base/spin.h"
#include "sched/sched.h"

struct eager {
    struct heddle_spin lock;
    struct heddle_sched_task *head;
    struct heddle_sched_task *tail;
    _Atomic size_t count;
};

static heddle_status eager_init(void *self, const struct heddle_sched_env *env)
{
    struct eager *q = self;

    (void)env;
    heddle_spin_init(&q->lock);
    return HEDDLE_OK;
}

static void eager_fini(void *self)
{
    (void)self;
}

static void eager_push(void *self, struct heddle_sched_task *t, int worker)
{
    struct eager *q = self;

    (void)worker;
    t->link[0] = NULL;
    heddle_spin_lock(&q->lock);
    if (q->tail != NULL)
        q->tail->link[0] = t;
    else
        q->head = t;
    q->tail = t;
    heddle_add_rlx(&q->count, 1u); /* a hint: the lock carries the data */
    heddle_spin_unlock(&q->lock);
}

static struct heddle_sched_task *eager_pop(void *self, unsigned worker)
{
    struct eager *q = self;
    struct heddle_sched_task *t;

    (void)worker;
    if (heddle_load_rlx(&q->count) == 0)
        return NULL;
    heddle_spin_lock(&q->lock);
    t = q->head;
    if (t != NULL) {
        q->head = t->link[0];
        if (q->head == NULL)
            q->tail = NULL;
        heddle_add_rlx(&q->count, (size_t)-1);
    }
    heddle_spin_unlock(&q->lock);
    return t;
}

const struct heddle_sched_ops heddle_sched_eager = {
    .name = "eager",
    .help = "one central first-in-first-out queue",
    .instance_size = sizeof(struct eager),
    .init = eager_init,
    .fini = eager_fini,
    .push = eager_push,
    .pop = eager_pop,
};
