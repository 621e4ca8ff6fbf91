/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_TURN_H
#define HEDDLE_CORE_TURN_H

/* Commutative operands: one task at a time, in any order. */
#include <stdbool.h>

#include "core/exec.h"

/* True: the task holds all its turns. False: it waits in a queue; do not touch
 * it any more. */
bool heddle_turns_take(struct heddle_exec *x);
/* Calls fn for each task that waits for a turn that x holds, with a spin lock held. */
void heddle_turns_visit(const struct heddle_exec *x, void (*fn)(void *arg, struct heddle_cell *c),
                        void *arg);
void heddle_turns_release(struct heddle_exec *x);

#endif /* HEDDLE_CORE_TURN_H */
