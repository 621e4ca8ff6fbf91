/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_GRAPH_GRAPH_H
#define HEDDLE_CORE_GRAPH_GRAPH_H

/*
 * Recorded regions, inside: what is recorded and what runs.
 *
 * Recording (graph/record.c) keeps, per task, its kernel, operands and argument,
 * and the edges found with the same rules as live submission, on task numbers
 * instead of cells. Sealing turns edges into arrays. A launch (graph/launch.c) is
 * one task of the context on the union of all operands; when it starts, it makes
 * a run (graph/run.c): one node of 32 bytes per task. The last sink to end ends
 * the launch.
 *
 * Invariants (1) a sealed graph is constant: runs share it without locks
 *            (2) a run is touched by its own nodes only; a finished run goes to
 *                the graph's free list and is used again by the next launch
 *            (3) two launches that share written handles exclude each other by
 *                the accesses of their launch tasks
 *            (4) a node resets its counter when it starts; no thread reads the counter
 *                again before the next pass
 * Threads    recording: one thread. Runs: any worker; `left` and ndeps are atomic.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/map.h"
#include "base/spin.h"
#include "core/dev/dev.h"
#include "core/graph/inside.h"
#include "core/kinfo.h"
#include "core/object.h"
#include "core/scope.h"
#include "core/worker.h"
#include "data/data.h"
#include "heddle/graph.h"
#include "heddle/task.h"
#include "sched/sched.h"
#include "task/task.h"

/* A recorded task, constant after sealing: what a run touches, two to a line. */
struct graph_task {
    struct heddle_kinfo *kinfo;
    uint32_t op;   /* first operand in graph.op */
    uint32_t succ; /* first successor in graph.succ */
    uint32_t nsucc;
    int32_t ndeps;
    uint32_t arg;  /* in graph.arg, in units of 16 bytes */
    uint32_t info; /* low byte: operands; then bits */
};

enum {
    GRAPH_NOPS = 0xff,
    GRAPH_SLOW = 1 << 8,  /* not a plain task */
    GRAPH_MODES = 1 << 9, /* modes of its own, in graph.mode */
};

_Static_assert(sizeof(struct graph_task) == 32, "two to a cache line");

/* The rest of it. */
struct graph_cold {
    const char *name;
    uint32_t arg_bytes;
    uint32_t variant; /* as in heddle_task_opts */
    int prio;
    uint32_t succ; /* while recording: 1 + the last task that has an edge from this one */
};

/* What recording knows about a unit. */
struct graph_unit {
    struct graph_unit *next;
    heddle_handle *unit;
    enum heddle_mode mode; /* the union, for the launch */
    uint32_t index;        /* access number of the launch */
    uint32_t writer;       /* 1 + task */
    uint32_t *reader;      /* tasks since */
    uint32_t nreaders, cap;
};

struct graph_edge {
    uint32_t pred, succ;
};

struct graph_op {
    heddle_handle *unit;
    enum heddle_mode mode;
    uint32_t index; /* access number of the launch */
};

struct heddle_graph {
    struct heddle_object obj; /* first */
    _Atomic uint32_t refs;    /* the user's, and one per launch */
    bool is_sealed;
    bool is_broken; /* recording ran out of memory */
    bool has_lazy;  /* some memory is allocated on first use */
    struct graph_task *task;
    struct graph_cold *cold;
    size_t ntasks, task_cap, cold_cap;
    struct graph_op *rec; /* operands of all tasks */
    size_t nops, op_cap;
    heddle_handle **op; /* the same after sealing, as kernels see them */
    enum heddle_mode *mode;
    unsigned char *arg;
    size_t arg_bytes, arg_cap;
    struct graph_edge *edge; /* while recording */
    size_t nedges, edge_cap;
    uint32_t *succ;  /* after sealing */
    uint32_t nsinks; /* tasks without successors */
    struct heddle_graph_watch watch;
    struct heddle_map units;
    struct graph_unit *list;
    uint32_t nunits;
    struct heddle_access *acc; /* what a launch does, after sealing */
    struct heddle_spin lock;   /* guards free */
    struct graph_run *free;
    uint64_t serial;        /* unique in the context */
    _Atomic int32_t region; /* where it runs as a whole: dev/region.c */
    _Atomic uint32_t region_age, region_fails;
};

struct heddle_node {
    struct heddle_sched_task sched;
    uint32_t index;
    uint32_t pad; /* to 32 bytes */
};

_Static_assert(sizeof(struct heddle_node) == 32, "heddle_is_node");

struct graph_run {
    heddle_graph *graph;
    const struct graph_task *task; /* graph->task */
    const uint32_t *succ;          /* graph->succ */
    _Atomic int32_t *ndeps;        /* behind the nodes: small, so that it stays in a near
                               cache while nodes come and go */
    heddle_handle **op;            /* graph.op, or own with bindings */
    unsigned char *arg;            /* graph.arg, or own */
    uint64_t first_id;
    struct heddle_scope *scope; /* of the launch; the run is its only child */
    struct heddle_scope own_scope;
    struct graph_run *next;
    bool (*again)(void *user, unsigned pass);
    void *again_user;
    unsigned pass;
    bool is_started;
    heddle_group *group;                        /* of the launch, which holds it */
    struct heddle_task_opts opts;               /* of the launch, with our `done` */
    void (*done)(void *user, heddle_status st); /* the caller's */
    void *done_user;
    /* Sinks that have not ended: every other node ends before one of them. */
    _Alignas(64) _Atomic uint32_t left;
    _Alignas(64) struct heddle_node node[];
};

/* Frees a run and what it owns. */
void heddle_run_free(struct graph_run *r);
/* Starts all tasks without predecessors; returns one to run next. */
struct heddle_sched_task *heddle_run_nodes(struct worker *w, struct graph_run *r);
/* The last task has ended. Returns one to run next, or NULL. */
struct heddle_sched_task *heddle_run_end(struct worker *w, struct graph_run *r);

/* Starts a run, as a whole or with its nodes; as heddle_run_nodes(). */
static inline struct heddle_sched_task *heddle_run_start(struct worker *w, struct graph_run *r)
{
    if (w->ctx->dev != NULL && heddle_region_offer(w, r))
        return NULL;
    return heddle_run_nodes(w, r);
}

#endif /* HEDDLE_CORE_GRAPH_GRAPH_H */
