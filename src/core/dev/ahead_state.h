/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_AHEAD_STATE_H
#define HEDDLE_CORE_DEV_AHEAD_STATE_H

/* Records of tasks that go ahead: states, and where they are found. For ahead*.c alone. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "core/cell.h"
#include "core/dev/ahead.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "task/task.h"

/* ahead.c says what they mean. */
enum { WAITING, PUSHED, ASIDE, RUNNING, READY };

#define AHEAD_BIT INT32_C(0x40000000) /* of ndeps: look for the record */

struct ahead_succ {
    struct ahead_succ *next;
    struct dev_ahead *to;
};

/* Where the record of a cell is noted. Lock held for what is there. */
static inline void **ahead_place(struct ahead *a, const struct heddle_cell *c)
{
    return &heddle_pool_chunk(a->pool, c->self)->side[c->self % HEDDLE_CHUNK];
}

static inline struct dev_ahead *ahead_find(struct ahead *a, const struct heddle_cell *c)
{
    return *ahead_place(a, c);
}

static inline bool ahead_is_marked(struct heddle_sched_task *t)
{
    return !heddle_is_node(t) && (heddle_load_acq(&heddle_task_cell(t)->ndeps) & AHEAD_BIT) != 0;
}

/* Its record, while it is ahead. Lock held. */
static inline struct dev_ahead *ahead_of(struct ahead *a, struct heddle_sched_task *t)
{
    return ahead_is_marked(t) ? ahead_find(a, heddle_task_cell(t)) : NULL;
}

/* Its predecessors are where it would have to be: launched, on one device. */
static inline bool ahead_is_supported(const struct dev_ahead *r)
{
    for (unsigned i = 0; i < r->npred; i++) {
        const struct dev_task *p = r->pred[i]->dt;

        if (p == NULL || !p->is_flying || r->pred[i]->is_void || p->worker->cls != r->cls)
            return false;
    }
    return true;
}

static inline void ahead_unlist(struct dev_ahead *r)
{
    if (!r->is_listed)
        return;
    r->is_listed = false;
    *r->prev = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
}

/* Its task is an ordinary one from now on, or has ended. */
static inline void ahead_free(struct ahead *a, struct dev_ahead *r)
{
    *ahead_place(a, r->cell) = NULL;
    r->cell->flags &= ~(uint32_t)TASK_AHEAD;
    ahead_unlist(r);
    r->state = READY;
    r->next = a->free;
    a->free = r;
}

#endif /* HEDDLE_CORE_DEV_AHEAD_STATE_H */
