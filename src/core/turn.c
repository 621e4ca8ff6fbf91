/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn: tasks that commute on a unit run one at a time, in any order.
 *
 * Structure  each unit has a turn: held or not, and a queue of tasks that wait for
 *            nothing but this turn. A task that ends passes its turns on.
 * Invariants (1) a task takes turns in the order of the units' addresses and waits
 *                for one at most, so turns cannot form a cycle
 *            (2) the number of turns a task holds is in its flags; a task that
 *                passes a turn on adds to the number of the receiver
 * Threads    the slot that runs the task; the queue has its own lock.
 */
#include "core/turn.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/scope.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"

/* The unit with the smallest address above `last` that x commutes on. (Accesses
 * to other units that overlap are ordered, they do not commute.) */
static heddle_handle *turn_next(const struct heddle_exec *x, const heddle_handle *last)
{
    heddle_handle *best = NULL;

    for (unsigned i = 0; i < x->nops; i++) {
        heddle_handle *r = x->op[i];

        if (heddle_mode_is_in_turn(x->mode[i]) && (uintptr_t)r > (uintptr_t)last &&
            (best == NULL || (uintptr_t)r < (uintptr_t)best))
            best = r;
    }
    return best;
}

/* True: all turns are held. False: the task waits in a queue; do not touch it. */
bool heddle_turns_take(struct heddle_exec *x)
{
    struct heddle_cell *c = x->cell;
    unsigned held = (c->flags & TASK_TURNS) / TASK_TURN;
    heddle_handle *r = NULL;

    if (c->scope != NULL)
        return true; /* children are ordered instead: heddle_scope_admit() */
    while ((r = turn_next(x, r)) != NULL) {
        struct heddle_turn *t = &r->turn;

        if (held > 0) {
            held--;
            continue;
        }
        heddle_spin_lock(&t->lock);
        if (t->is_held) {
            struct heddle_sched_task *tail = t->tail;

            heddle_engine_defer(x->worker, &c->sched);
            c->sched.link[0] = NULL;
            if (tail != NULL)
                tail->link[0] = &c->sched;
            else
                t->head = &c->sched;
            t->tail = &c->sched;
            heddle_spin_unlock(&t->lock);
            return false;
        }
        t->is_held = true;
        heddle_spin_unlock(&t->lock);
        c->flags += TASK_TURN;
    }
    return true;
}

void heddle_turns_visit(const struct heddle_exec *x, void (*fn)(void *arg, struct heddle_cell *c),
                        void *arg)
{
    heddle_handle *r = NULL;

    for (unsigned held = (x->cell->flags & TASK_TURNS) / TASK_TURN; held > 0; held--) {
        r = turn_next(x, r);
        if (r == NULL)
            return;
        heddle_spin_lock(&r->turn.lock);
        for (struct heddle_sched_task *t = r->turn.head; t != NULL; t = t->link[0])
            fn(arg, heddle_task_cell(t));
        heddle_spin_unlock(&r->turn.lock);
    }
}

void heddle_turns_release(struct heddle_exec *x)
{
    struct heddle_cell *c = x->cell;
    heddle_handle *r = NULL;

    for (unsigned held = (c->flags & TASK_TURNS) / TASK_TURN; held > 0; held--) {
        struct heddle_sched_task *next;
        struct heddle_turn *t;

        r = turn_next(x, r);
        t = &r->turn;
        heddle_spin_lock(&t->lock);
        next = t->head;
        if (next != NULL) {
            t->head = next->link[0];
            if (t->head == NULL)
                t->tail = NULL;
            heddle_task_cell(next)->flags += TASK_TURN; /* it holds it now */
        } else {
            t->is_held = false;
        }
        heddle_spin_unlock(&t->lock);
        if (next != NULL)
            heddle_engine_push(x->worker, next);
    }
    c->flags &= ~(uint32_t)TASK_TURNS;
}
