/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_DEV_H
#define HEDDLE_CORE_DEV_DEV_H

/*
 * The face of core/dev: what the engine calls in a context that has devices or other
 * memories. A context that has none has ctx->dev == NULL, and nothing of this is called.
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
#include "trace/trace.h"

struct dev_ahead;
struct graph_run;
struct submission;
/* Finds and opens what the options ask for; ctx->dev stays NULL when there is
 * nothing but the cores. */
heddle_status heddle_dev_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o, char *why,
                              size_t cap);
/* When lanes and models are there: workers, memories. */
heddle_status heddle_dev_start(heddle_ctx *ctx);
heddle_status heddle_dev_start_thread(heddle_ctx *ctx);
void heddle_dev_stop(heddle_ctx *ctx);
void heddle_dev_close(heddle_ctx *ctx);
/* Transfers that nobody waits for have ended. */
void heddle_dev_drain(heddle_ctx *ctx);
void heddle_kinfo_free_shapes(heddle_ctx *ctx, struct heddle_kinfo *k);
/* How many lanes it needs: nworkers, which is not known at first. */
uint32_t heddle_dev_log_lanes(const struct heddle_devs *d);
/* Is there a class that can run it, with room for it? Lock held. */
heddle_status heddle_dev_check(heddle_ctx *ctx, const struct submission *s,
                               const struct heddle_access *acc, unsigned nops);
void heddle_dev_submitted(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                          const struct heddle_access *acc, unsigned nops, uint32_t m);
void heddle_dev_push(heddle_ctx *ctx, struct heddle_sched_task *t);
/* The data of a task on a core, or of a hidden task. True: go on. False: it comes
 * back when they are there; do not touch it. */
bool heddle_dev_supply_host(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                            const struct task_ext *ext);
bool heddle_dev_supply_hidden(struct worker *w, struct heddle_cell *c);
/* A task on a core is about to have children: what it wrote so far is valid on
 * the host and nowhere else. */
void heddle_dev_lend(struct heddle_exec *x);
/* The same for what a thread outside acquires: it may hold it for long. */
void heddle_dev_lend_unit(heddle_ctx *ctx, struct heddle_sched_task *t, heddle_handle *unit,
                          enum heddle_mode mode);
/* All its children have ended: its operands come home. */
heddle_status heddle_dev_return(struct heddle_exec *x);
/* Why the data of a hidden task are not there, or HEDDLE_OK. */
heddle_status heddle_dev_status(const struct heddle_sched_task *t);
/* Gives back what a task that does not run now holds. */
void heddle_dev_drop(struct worker *w, struct heddle_sched_task *t);
/* A task has ended: what it wrote is valid where it ran. */
/* Somebody waits for everything, or not any more. */
void heddle_dev_set_homing(heddle_ctx *ctx, bool is_homing);
/* The memory of a root goes. */
void heddle_dev_unpin_host(heddle_ctx *ctx, heddle_handle *root);
/* dev/region.c: true: the run is done as a whole; heddle_run_end() or
 * heddle_run_nodes() will be called. */
bool heddle_region_offer(struct worker *w, struct graph_run *r);
/* A graph is freed. */
void heddle_region_forget(heddle_ctx *ctx, uint64_t serial);
/* dev/ahead.c: around the end of a task with TASK_AHEAD. */
struct dev_ahead *heddle_ahead_leave(heddle_ctx *ctx, struct heddle_cell *c);
void heddle_ahead_end(struct worker *w, struct dev_ahead *r, heddle_status st);
void heddle_dev_settle(struct worker *w, struct heddle_sched_task *t, heddle_status st);
/* A task that the scheduler gave out does not run now: it will be pushed again.
 * Before anybody can push it. */
void heddle_dev_defer(struct worker *w, struct heddle_sched_task *t);
/* A task that heddle_dev_pop() gave out and that shall wait for another worker. */
void heddle_dev_put_back(struct worker *w, struct heddle_sched_task *t);
/* The nodes of a graph are about to be pushed, as far as they are ready. The others
 * have predecessors that the scheduler is not told of. */
void heddle_dev_announce(heddle_ctx *ctx, struct heddle_sched_task *t, bool is_ready);
/* The next task for a core; NULL: none. */
struct heddle_sched_task *heddle_dev_pop(struct worker *w);
/* Tasks are on devices, or data on their way. */
bool heddle_dev_is_busy(heddle_ctx *ctx);
/* Failed runs of a task so far, on devices. */
unsigned heddle_dev_tries(const struct heddle_exec *x);
/* Does what an advice says; arg as in heddle_handle_advise(). */
void heddle_dev_advise(heddle_ctx *ctx, heddle_handle *h, uintptr_t arg);
/* Virtual time: the loop of every wait, and one step of it. */
bool heddle_dev_is_virtual(const heddle_ctx *ctx);
bool heddle_dev_loop(struct worker *w, bool (*stop)(void *), void *arg, uint64_t deadline_ns);
bool heddle_dev_step_virtual(struct worker *w);
/* Virtual time: n tasks were submitted, which took a while. No lock held. */
void heddle_dev_charge(heddle_ctx *ctx, size_t n);
/* After all tasks have ended: data of the user come home. False: too late. */
bool heddle_dev_go_home(heddle_ctx *ctx, uint64_t deadline_ns);
/* May a handle that nobody refers to be freed at once? */
bool heddle_dev_may_free(heddle_ctx *ctx, heddle_handle *h);
/* The layout of an operand on a device. */
const struct heddle_layout *heddle_dev_layout(const struct heddle_exec *x, unsigned i);
/* heddle_ticks(), or virtual time. */
uint64_t heddle_ctx_ticks(const heddle_ctx *ctx);
/* What an idle core waits for: data, memory, or nothing known (SPIN). */
enum heddle_log_state_kind heddle_dev_idle_state(const heddle_ctx *ctx);
/* What the fastest device is expected to take, in ns; 0: unknown. */
float heddle_dev_predict(heddle_ctx *ctx, struct heddle_cell *c);
/* Is there anything that a core may run? Only asked when there are devices. */
bool heddle_dev_wants_cores(const heddle_ctx *ctx);

#endif /* HEDDLE_CORE_DEV_DEV_H */
