/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_STACK_H
#define HEDDLE_CORE_STACK_H

/* Room on the stack of the thread that holds a slot, and more of it. */
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/worker.h"

/* Finds the stack of the calling thread. True: more than half of it is used. */
bool heddle_stack_look(struct worker *w);

/* Is more than half of the stack used? */
static inline bool heddle_stack_is_low(struct worker *w)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    /* Live threads have different stacks, so this holds whichever thread it is. */
    if (HEDDLE_LIKELY(here - w->stack_half < w->stack_room))
        return false;
    return heddle_stack_look(w);
}

/*
 * fn(arg), with at least half of a stack for it: on this one, or by a thread with a
 * stack of its own, which holds the slot until fn returns. Where the system has no such
 * thread to give, fn gets what is left of this stack.
 */
void heddle_stack_call(struct worker *w, void (*fn)(void *arg), void *arg);

#endif /* HEDDLE_CORE_STACK_H */
