/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_END_H
#define HEDDLE_CORE_END_H

/* The end of a task, from its function to its successors. */
#include <stdint.h>

#include "core/exec.h"
#include "core/worker.h"
#include "sched/sched.h"

/* Settles all that ends with a task besides its successors, then heddle_engine_end(). The cell is
 * gone afterwards. Returns a task to run next, or NULL, as all of these. */
struct heddle_sched_task *heddle_engine_finish(struct worker *w, struct heddle_cell *c,
                                               heddle_status st);
/* The first half of it: all but heddle_engine_end(), or heddle_dev_end_ahead(). */
void heddle_engine_settle(struct worker *w, struct heddle_cell *c, heddle_status st);
/* heddle_engine_finish() by a thread that holds no slot. */
void heddle_engine_finish_foreign(heddle_ctx *ctx, struct heddle_cell *c, heddle_status st);
/* After the function of a plain task that failed or has children. */
struct heddle_sched_task *heddle_end_after(struct heddle_exec *x, heddle_status st, uint64_t start);
/* The same without a record in the log. */
struct heddle_sched_task *heddle_end_leave(struct heddle_exec *x, heddle_status st);
/* Marks what a failed task should have written, clears what one overwrote. */
void heddle_end_settle(struct heddle_exec *x, heddle_status st);
/* The record of a run that just ended; also feeds `last`. */
void heddle_end_trace(struct heddle_exec *x, heddle_status st, uint64_t start, unsigned flags);

#endif /* HEDDLE_CORE_END_H */
