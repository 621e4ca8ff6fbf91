/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_GRAPH_INSIDE_H
#define HEDDLE_CORE_GRAPH_INSIDE_H

/*
 * Recorded regions for a module that makes one of another (planned): what was recorded,
 * order that no operand stands for, and a watcher of the tasks.
 *
 * Threads  as heddle/graph.h. A watcher is called by the worker that runs the task.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/graph.h"
#include "heddle/task.h"

/* A recorded task; pointers are borrowed from the graph. */
struct heddle_graph_task {
    const heddle_kernel *kernel;
    heddle_handle *const *operands;
    const enum heddle_mode *modes;
    unsigned noperands;
    bool has_modes; /* the modes are not those of the kernel */
    const void *arg;
    size_t arg_bytes;
    int priority;
    struct heddle_task_opts opts; /* name and variant */
};

/* Called before the function of a task, again when the task was put back, and when the
 * task has ended, before those that wait for it can start. A task that is left out has
 * both calls too. */
struct heddle_graph_watch {
    void (*begin)(void *user, uint32_t task);
    void (*end)(void *user, uint32_t task, heddle_status st);
    void *user;
};

/* The context, or NULL when it is gone. */
heddle_ctx *heddle_graph_ctx(const heddle_graph *g, bool *is_sealed_out, bool *has_devices_out);
/* Of a sealed graph: task and edge of a number below the count. */
void heddle_graph_get_task(const heddle_graph *g, size_t task, struct heddle_graph_task *out);
void heddle_graph_get_edge(const heddle_graph *g, size_t edge, uint32_t *pred_out,
                           uint32_t *succ_out);
/* Sets the watcher, both functions, before the first task is recorded. */
void heddle_graph_set_watch(heddle_graph *g, const struct heddle_graph_watch *watch);
/* As heddle_graph_submit(); the task also waits for the tasks `pred`. */
HEDDLE_MUST_USE heddle_status heddle_graph_submit_after(heddle_graph *g,
                                                        const heddle_kernel *kernel,
                                                        const struct heddle_call *call,
                                                        const uint32_t *pred, size_t npreds);

#endif /* HEDDLE_CORE_GRAPH_INSIDE_H */
