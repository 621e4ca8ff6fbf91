/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LOG_GRAPH_LOG_GRAPH_H
#define HEDDLE_LOG_GRAPH_LOG_GRAPH_H

/*
 * Private to this folder: a graph while it is made from a log.
 *
 * Order      tasks.c      which executions are tasks, lanes, kinds
 *            edges.c      dependencies, and which the run contradicts
 *            took.c       how long each execution had its lane for itself
 *            times.c      types of workers, what each kind of task takes there
 *            log_graph.c  memory, sentences, the whole
 *
 * All memory is in the list of blocks that begins at `own`; a failure drops it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/notes.h"
#include "base/scratch.h"
#include "base/why.h"
#include "heddle/log_graph.h"

/* A device of the log, or its cores. */
struct log_type {
    const char *name; /* of a lane; up to name_bytes */
    size_t name_bytes;
    uint32_t device; /* enum heddle_device; 0: not known */
    uint32_t nlanes;
    uint32_t node;
    uint32_t to; /* type of the graph or HEDDLE_LOG_GRAPH_NONE */
};

struct maker {
    const heddle_log *log;
    const struct heddle_log_view *v;
    struct heddle_log_graph_opts o;
    struct heddle_scratch *own;     /* what the graph keeps */
    struct heddle_scratch *temp;    /* what goes when it is made */
    struct heddle_scratch *scratch; /* what goes when a step of it is made */
    struct heddle_log_graph *g;

    /* tasks */
    uint32_t n;
    struct heddle_map task_of; /* id: 1 + task */
    uint32_t *order;           /* [n] tasks by parent, then as submitted */
    uint64_t *id;
    uint32_t *log_index, *kind, *type_log, *type, *width;
    int64_t *start_ns, *end_ns;
    double *took_ns;
    int32_t *priority;
    bool has_children;

    /* lanes */
    struct log_type *types;
    uint32_t ntypes;
    uint32_t *lane_log; /* [lanes] index in types[] or NONE */

    /* kinds */
    struct heddle_log_graph_kind *kinds;
    uint32_t nkinds;

    /* edges */
    uint32_t *from, *to;
    size_t nedges, cap;

    /* notes */
    struct heddle_notes notes;
};

enum { EDGE_FEW = 64 }; /* of a crowd that meets a crowd, these make edges */

/* Writes the sentence of a failure and returns st. */
#define HEDDLE_LG_FAIL(o, st, ...) heddle_why((o)->why, (o)->why_bytes, st, __VA_ARGS__)

HEDDLE_MUST_USE heddle_status heddle_lg_lanes(struct maker *m);
HEDDLE_MUST_USE heddle_status heddle_lg_tasks(struct maker *m);
HEDDLE_MUST_USE heddle_status heddle_lg_kinds(struct maker *m);
HEDDLE_MUST_USE heddle_status heddle_lg_edges(struct maker *m);
HEDDLE_MUST_USE heddle_status heddle_lg_took(struct maker *m);
HEDDLE_MUST_USE heddle_status heddle_lg_types(struct maker *m);
HEDDLE_MUST_USE heddle_status heddle_lg_times(struct maker *m);

static inline uint64_t heddle_lg_mix(uint64_t h, uint64_t word)
{
    h ^= word;
    h = (h << 29 | h >> 35) * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

#endif /* HEDDLE_LOG_GRAPH_LOG_GRAPH_H */
