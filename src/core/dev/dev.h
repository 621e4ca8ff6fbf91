/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_DEV_H
#define HEDDLE_CORE_DEV_DEV_H

/*
 * The face of core/dev: what the engine calls in a context that has devices or other
 * memories. A context that has none has ctx->dev == NULL: that test is inline at every
 * call, and nothing of this is called but heddle_dev_open(), _stop() and _close(). What
 * depends on the clock of the devices goes through core/time.h instead. What is known once
 * the devices are open is in ctx->has_devs, and ctx.c and handle.c call the memories (ctx->mem)
 * directly.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ctx.h"
#include "core/exec.h"
#include "core/worker.h"
#include "data/data.h"
#include "heddle/ctx.h"
#include "sched/sched.h"
#include "task/task.h"

struct graph_run;
struct submission;

/* --- the beginning and the end: start.c, ctx.c; one thread, no lock ------------------------ */

/* Finds and opens what the options ask for, after the topology and before the log. ctx->dev
 * stays NULL when there is nothing but cores; else ctx->has_devs is filled, and in virtual
 * time ctx->time. A refusal leaves a sentence in `why`. */
heddle_status heddle_dev_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o, char *why,
                              size_t cap);
/* Workers and memories, when log, models and scheduler are there. Then the device thread
 * begins. */
heddle_status heddle_dev_start(heddle_ctx *ctx);
/* The device thread ends, after the worker threads and before the log. */
void heddle_dev_stop(heddle_ctx *ctx);
/* Frees everything, and ctx->dev is NULL. Half-built contexts, too. */
void heddle_dev_close(heddle_ctx *ctx);

/* --- submission: call.c; the submission lock is held, or the submitter is the calling
 *     worker's --------------------------------------------------------------------------- */

/* Can a class run it, and has it room? Else a refusal with a sentence. Before a cell is taken;
 * not for the launch of a graph. */
heddle_status heddle_dev_check(heddle_ctx *ctx, const struct submission *s,
                               const struct heddle_access *acc, unsigned nops);
/* A task is complete but for its edges; its m candidates are in the slab. The scheduler and
 * the memories learn of it. */
void heddle_dev_submitted(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                          const struct heddle_access *acc, unsigned nops, uint32_t m);

/* --- ready tasks: engine.h, engine.c, outside.c; any thread ---------------------------------- */

/* A task is ready: heddle_ready(). The submission lock may be held. */
void heddle_dev_push(heddle_ctx *ctx, struct heddle_sched_task *t);
/* The next task for a core; NULL: none. The holder of slot w, no lock. */
struct heddle_sched_task *heddle_dev_pop(struct worker *w);
/* heddle_engine_put_back(). The holder of slot w, no lock. */
void heddle_dev_put_back(struct worker *w, struct heddle_sched_task *t, bool keeps_data);
/* Is there anything that a core may run? heddle_ring(), after each push. */
bool heddle_dev_wants_cores(const heddle_ctx *ctx);
/* Are tasks on devices, or data on their way? An outside thread that finds all cores idle
 * asks, no lock. */
bool heddle_dev_is_busy(heddle_ctx *ctx);

/* --- a task on a core: slow.c, hidden.c, scope.c, handle.c, graph/run.c, end.c; the slot that
 *     runs the task, no lock ---------------------------------------------------------------- */

/* The data of a task that is about to run come to the host; x is NULL for a task of the
 * engine itself. HEDDLE_OK: go on. HEDDLE_AGAIN: do not touch it any more; it comes back when
 * they are there, or it has ended. Any other status, of hidden tasks alone: why they are not
 * there. */
heddle_status heddle_dev_supply(struct worker *w, struct heddle_sched_task *t,
                                struct heddle_exec *x, const struct task_ext *ext);
/* It is about to have its first child: what it wrote so far is valid on the host and nowhere
 * else. */
void heddle_dev_lend(struct heddle_exec *x);
/* It has waited for its children: its operands come home. */
heddle_status heddle_dev_return(struct heddle_exec *x);
/* The same as a loan for what the program acquires, which may hold it for long. */
void heddle_dev_hand_out(heddle_ctx *ctx, struct heddle_sched_task *t, heddle_handle *unit,
                         enum heddle_mode mode);
/* First thing in the end of every task, wherever it ran: what it wrote is valid there, and it
 * gives back what it holds. */
void heddle_dev_settle(struct worker *w, struct heddle_sched_task *t, heddle_status st);
/* heddle_engine_end() for a task with TASK_AHEAD: others went ahead of its end. */
struct heddle_sched_task *heddle_dev_end_ahead(struct worker *w, struct heddle_cell *c,
                                               heddle_status st);

/* --- recorded regions: graph/ ---------------------------------------------------------------- */

/* A run of a region starts. True: it is done as a whole, and heddle_run_end() or
 * heddle_run_nodes() will be called. False: the caller starts its nodes, of which the
 * scheduler knows now. The slot that runs the launch, no lock. */
bool heddle_region_offer(struct worker *w, struct graph_run *r);
/* A graph is freed. Any thread, no lock. */
void heddle_region_forget(heddle_ctx *ctx, uint64_t serial);

#endif /* HEDDLE_CORE_DEV_DEV_H */
