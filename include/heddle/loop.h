/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LOOP_H
#define HEDDLE_LOOP_H

/*
 * heddle/loop.h - loops whose iterations may run in any order, on all workers.
 *
 * A loop is one task that gives the upper half of its range away as a child as long as
 * the range is larger than the grain, and then runs the rest itself. Idle workers steal
 * the largest ranges first, so a loop of uneven iterations balances itself.
 *
 * Threads:  any function may be called from any thread unless it says otherwise; the
 *           body is called by several workers at once.
 * Errors:   functions return heddle_status. The first failure of the body is returned;
 *           ranges that have not begun by then are cancelled.
 * Memory:   the body sees the program's memory as it is: a loop has no operands and is
 *           ordered with nothing. For loops on handles that other tasks use, submit a
 *           task on these handles and call heddle_exec_parallel_for() inside of it.
 */
#include <stddef.h>

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The iterations begin .. end - 1. */
typedef heddle_status (*heddle_range_fn)(void *arg, size_t begin, size_t end);

/*
 * Calls body(arg, b, e) for ranges that together are [begin, end) and returns when all
 * have ended; the calling thread works on them too. `grain`: the most iterations of a
 * range; 0: about eight ranges per worker. An empty range is HEDDLE_OK.
 *
 * HEDDLE_EINVAL     ctx or body is NULL
 * HEDDLE_ENOMEM     no memory for a task; every range that had begun has ended
 * HEDDLE_ECANCELED  heddle_ctx_cancel() was called
 * other             the first failure of the body; heddle_wait() does not return it again
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_parallel_for(heddle_ctx *ctx, size_t begin,
                                                             size_t end, size_t grain,
                                                             heddle_range_fn body, void *arg);

/* The same inside of a task that runs on a core: the ranges are children of the task.
 * Waits for all children that the task has submitted so far. HEDDLE_ESTATE: the task
 * runs on a device. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_exec_parallel_for(struct heddle_exec *x,
                                                                  size_t begin, size_t end,
                                                                  size_t grain,
                                                                  heddle_range_fn body, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_LOOP_H */
