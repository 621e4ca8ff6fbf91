/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_SPANS_H
#define HEDDLE_TRACE_SPANS_H

/*
 * What exporters have in common: everything in a log that has a length, on
 * tracks, nested; transfers and their links; ready tasks over time. Private to
 * trace.
 *
 * Viewers draw a track as a stack: of two pieces one is inside the other, or
 * they do not touch. Where a log has an overlap (clocks of a device that differ
 * a little, copies at once on one link), the earlier piece is cut where the
 * later one begins.
 */
#include "trace/log.h"

enum heddle_span_kind {
    HEDDLE_SPAN_TASK,  /* idx in tasks[] */
    HEDDLE_SPAN_STATE, /* idx in states[] */
    HEDDLE_SPAN_MOVE,  /* idx in events[] */
};

struct heddle_span {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t track; /* a lane; from nlanes on: a link */
    uint32_t idx;
    uint8_t kind;
};

/* A pair of memory nodes between which something was copied. */
struct heddle_span_link {
    uint32_t src;
    uint32_t dst;
};

/* A node that events can name. */
#define HEDDLE_SPAN_NODES 65536
enum heddle_span_node_flag {
    HEDDLE_NODE_USED = 1,   /* defined, or that of a lane, link or event */
    HEDDLE_NODE_MEMORY = 2, /* its bytes in use are known */
    HEDDLE_NODE_ENERGY = 4, /* of the domain of that number, which is no node */
};

struct heddle_spans {
    struct heddle_span *span; /* by start, longer first */
    size_t n;
    struct heddle_pair *edge; /* 2n; key: time, idx: heddle_edge_*() */
    struct heddle_span_link *link;
    uint32_t nlinks;
    uint8_t *node;   /* HEDDLE_SPAN_NODES sets of enum heddle_span_node_flag */
    int64_t base_ns; /* 0, or the earliest time of the log if that is before:
                        for formats without negative times */
    int64_t last_ns; /* the latest time of the log, at least base_ns */
};

/* Tasks and transfers; states with HEDDLE_LOG_EXPORT_STATES. At one moment
 * edges are in this order: ends, then begins, outer ones first, and what has no
 * length ends right after it began. */
HEDDLE_MUST_USE heddle_status heddle_spans_init(struct heddle_spans *s, const heddle_log *log,
                                                unsigned flags);
void heddle_spans_fini(struct heddle_spans *s, const heddle_log *log);

static inline const struct heddle_span *heddle_edge_span(const struct heddle_spans *s,
                                                         const struct heddle_pair *e)
{
    return &s->span[e->idx >> 1];
}

static inline bool heddle_edge_is_end(const struct heddle_pair *e)
{
    return (e->idx & 1) != 0;
}

static inline int64_t heddle_edge_time(const struct heddle_pair *e)
{
    return (int64_t)heddle_time_key((int64_t)e->key); /* its own inverse */
}

/* Transfer? Then when it was copied, and between which nodes. */
bool heddle_event_move(const struct heddle_log_event *e, int64_t *start_ns, int64_t *end_ns,
                       struct heddle_span_link *link);

/* Bytes in use of a node? */
static inline bool heddle_event_is_memory(const struct heddle_log_event *e)
{
    return e->kind == HEDDLE_LOG_MEM_ALLOC || e->kind == HEDDLE_LOG_MEM_FREE;
}

/* Its name, or "node 3". */
const char *heddle_span_node(const struct heddle_log_view *v, uint32_t id, char *buf, size_t bytes);

/* "host to gpu" */
enum { HEDDLE_SPAN_NAME = 128 };
const char *heddle_span_link_name(const struct heddle_log_view *v,
                                  const struct heddle_span_link *link, char buf[HEDDLE_SPAN_NAME]);

/* Times (key) when the number of ready tasks changed, and the number then
 * (idx); at most 2 * ntasks, strictly ascending. */
HEDDLE_MUST_USE heddle_status heddle_ready_curve(const heddle_log *log, struct heddle_pair **p_out,
                                                 size_t *n_out);
void heddle_ready_free(const heddle_log *log, struct heddle_pair *p);

#endif /* HEDDLE_TRACE_SPANS_H */
