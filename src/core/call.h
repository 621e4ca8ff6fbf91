/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CALL_H
#define HEDDLE_CORE_CALL_H

/* A call becomes a task. */
#include <stdint.h>

#include "core/cell.h"
#include "core/submit.h"

/* The submitter is the caller's: the lock is held, or it is the worker's. */
heddle_status heddle_submit_one(heddle_ctx *ctx, struct submission *s);
/* At level 1 and above the log has the graph: the task, its accesses and the m
 * candidates in its slab. */
void heddle_submit_trace(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                         const struct heddle_access *acc, unsigned nops, uint32_t m);
/* A further cell for the seldom used part; NULL: no memory. */
struct task_ext *heddle_submit_new_ext(struct submitter *sub, struct heddle_cell *c);
/* Gives back the cell of a submission that failed with st. Returns st. */
heddle_status heddle_submit_undo(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                 heddle_status st);
/* Room for the accesses of a task with many operands. */
heddle_status heddle_submit_reserve(heddle_ctx *ctx, struct submitter *sub, unsigned nops);

#endif /* HEDDLE_CORE_CALL_H */
