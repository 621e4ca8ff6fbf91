/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_GRAPH_NODE_H
#define HEDDLE_CORE_GRAPH_NODE_H

/* Tasks of recorded regions in flight, as the rest of the engine sees them. */
#include <stdint.h>

#include "core/cell.h"
#include "core/exec.h"
#include "core/worker.h"
#include "heddle/task.h"
#include "sched/sched.h"

struct heddle_node;
struct heddle_scope;
/* The kernel of the tasks that start a graph. */
extern const heddle_kernel heddle_launch_kernel;
/* In heddle_exec.arg_bytes of a node: ask heddle_node_arg_bytes(). */
#define NODE_ARG UINT32_MAX
uint32_t heddle_node_arg_bytes(const struct heddle_exec *x);
/* The group of a node's launch. */
heddle_group *heddle_node_group(struct heddle_node *n);
/* The scope that a node's run is a child of. */
struct heddle_scope *heddle_node_scope(struct heddle_node *n);

/* Runs a node that a slot has got. Returns a task to run next, or NULL. */
struct heddle_sched_task *heddle_node_run(struct worker *w, struct heddle_sched_task *t);
/* Fills x and ext for a node; after it ran elsewhere. */
void heddle_node_exec(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                      struct task_ext *ext);
const struct heddle_kinfo *heddle_node_kinfo(struct heddle_sched_task *t);
/* It starts elsewhere than in heddle_node_run(): invariant (4) of graph.h. */
void heddle_node_rearm(struct heddle_sched_task *t);
/* After the function of a node that ran elsewhere; its end, unless children remain. */
struct heddle_sched_task *heddle_node_leave(struct heddle_exec *x, heddle_status st);
/* The end of a node: releases its successors. */
struct heddle_sched_task *heddle_node_end(struct worker *w, struct heddle_node *n,
                                          heddle_status st);

#endif /* HEDDLE_CORE_GRAPH_NODE_H */
