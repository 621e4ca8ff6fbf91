/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_LIST_H
#define HEDDLE_SCHED_LIST_H

/*
 * A first-in-first-out list of tasks under a spin lock, linked through link[0]:
 * needs no memory and never refuses. The count is a hint with which a thread that
 * finds the list empty need not take the lock; the lock carries the data.
 */
#include "base/spin.h"
#include "sched/sched.h"

struct heddle_sched_list {
    struct heddle_spin lock;
    struct heddle_sched_task *head; /* NULL exactly when tail is */
    struct heddle_sched_task *tail;
    _Atomic size_t count;
};

static inline void heddle_sched_list_push(struct heddle_sched_list *l, struct heddle_sched_task *t)
{
    t->link[0] = NULL;
    heddle_spin_lock(&l->lock);
    if (l->tail != NULL)
        l->tail->link[0] = t;
    else
        l->head = t;
    l->tail = t;
    heddle_add_rlx(&l->count, 1u);
    heddle_spin_unlock(&l->lock);
}

/* NULL: empty. */
static inline struct heddle_sched_task *heddle_sched_list_pop(struct heddle_sched_list *l)
{
    struct heddle_sched_task *t;

    if (heddle_load_rlx(&l->count) == 0)
        return NULL;
    heddle_spin_lock(&l->lock);
    t = l->head;
    if (t != NULL) {
        l->head = t->link[0];
        if (l->head == NULL)
            l->tail = NULL;
        heddle_add_rlx(&l->count, (size_t)-1);
    }
    heddle_spin_unlock(&l->lock);
    return t;
}

#endif /* HEDDLE_SCHED_LIST_H */
