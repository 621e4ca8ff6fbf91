/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_TRACE_H
#define HEDDLE_TRACE_TRACE_H

/*
 * The event log of one context: the writing side. (Reading is public, in
 * heddle/trace.h.)
 *
 * A trace has lanes, one per role of a thread: each worker, the submitter.
 * Recording into a lane is inline (recorder.h): a mask test, a bounds test,
 * stores. The caller reads the clock, because it usually needs the time for
 * something else too.
 *
 * Two modes:
 *   flight recorder   no path: each lane keeps its last `nchunks` chunks in
 *                     memory; heddle_trace_dump() writes them to a file at any
 *                     time, also while lanes are being written
 *   file              with a path: the thread that fills a chunk codes and
 *                     appends it; a thread of the trace appends the records of
 *                     unfinished chunks about once per second, so that a running
 *                     program can be watched; close appends the rest
 *
 * Threads: a lane is written by one thread at a time; handing it over needs
 * synchronisation (a lock, a join). The define functions, dump and set_level
 * may be called from any thread at any time. create and close run alone.
 *
 * Errors: recording cannot fail. When memory or disk is short, records are
 * dropped and counted; the count is in the file, and heddle_trace_close()
 * returns the first error.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "heddle/alloc.h"
#include "heddle/status.h"
#include "heddle/trace.h"

struct heddle_trace;

struct heddle_trace_opts {
    const struct heddle_allocator *alloc; /* NULL: the default */
    const struct heddle_clock *clock;     /* copied; required */
    int level;                            /* enum heddle_log_level; OFF takes no memory */
    uint32_t nlanes;                      /* fixed for the life of the trace; > 0 */
    size_t chunk_bytes;                   /* 0: 64 KiB; rounded up to 16, at least 256 */
    uint32_t nchunks;                     /* per lane, flight recorder; 0: 4; at least 2 */
    size_t max_def_bytes;                 /* kept for a dump; 0: 16 MiB */
    const char *path;                     /* NULL: flight recorder */
    unsigned flush_ms;                    /* file: between two flushes; 0: 1000 */
    uint64_t wall_ns;                     /* of a virtual clock: CLOCK_REALTIME when the log */
    uint64_t wall_tick;                   /*   began, and the tick then; 0: now, 0 */
    char *why;                            /* gets a sentence on failure; may be NULL */
    size_t why_bytes;
};

/*
 * HEDDLE_EINVAL  no clock, no lane, unknown level, a chunk over 1 GiB
 * HEDDLE_EIO     the file cannot be created
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_MUST_USE heddle_status heddle_trace_create(const struct heddle_trace_opts *opts,
                                                  struct heddle_trace **trace_out);

/*
 * Ends the trace and frees it; in file mode writes what is left. No lane may
 * be in use. NULL is fine. HEDDLE_EIO or HEDDLE_ENOMEM: the file is not
 * complete and `why` (may be NULL) says why in a sentence.
 */
heddle_status heddle_trace_close(struct heddle_trace *tr, char *why, size_t why_bytes);

/*
 * Writes what the flight recorder holds to a new file. Lanes may be written
 * meanwhile; one that has to change its chunk waits until it was copied out.
 *
 * HEDDLE_ESTATE  not a flight recorder, or off
 * HEDDLE_EIO     the file cannot be written; `why` says why
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_MUST_USE heddle_status heddle_trace_dump(struct heddle_trace *tr, const char *path,
                                                char *why, size_t why_bytes);

/* File mode: everything recorded so far is in the file afterwards. Any thread,
 * any time; a lane that has to change its chunk waits meanwhile. Else nothing. */
void heddle_trace_flush(struct heddle_trace *tr);

/* Borrowed; i < nlanes. */
struct heddle_trace_lane *heddle_trace_get_lane(struct heddle_trace *tr, uint32_t i);

/* Call it once on the thread that will write the lane: its pages are mapped
 * now, on that thread's NUMA node, and not record by record. Optional. */
void heddle_trace_lane_touch(struct heddle_trace_lane *l);

/* From now on; HEDDLE_ESTATE when the trace was created with level OFF. */
HEDDLE_MUST_USE heddle_status heddle_trace_set_level(struct heddle_trace *tr, int level);

/* Records and definitions dropped so far. */
uint64_t heddle_trace_lost(struct heddle_trace *tr);

/*
 * Definitions. Ids are the caller's (32 bits, any value) unless said
 * otherwise; a later definition of the same id replaces the earlier one when
 * the log is read. Names may be NULL. Nothing is kept of the arguments. A
 * definition that does not fit is dropped and counted. With level OFF they do
 * nothing.
 */
void heddle_trace_define_lane(struct heddle_trace *tr, uint32_t lane,
                              enum heddle_log_lane_kind kind, const char *name, int cpu,
                              uint32_t node);

void heddle_trace_define_kernel(struct heddle_trace *tr, uint32_t id, const char *name,
                                const struct heddle_log_variant *variants, uint32_t nvariants);

void heddle_trace_define_node(struct heddle_trace *tr, uint32_t id, uint32_t kind, const char *name,
                              uint64_t bytes);

/* A way from one memory node to another, by their ids. */
struct heddle_trace_link {
    uint32_t from;
    uint32_t to;
    double bytes_per_s;
    double latency_ns;
    const char *name;
};
void heddle_trace_define_link(struct heddle_trace *tr, const struct heddle_trace_link *l);

struct heddle_trace_handle {
    uint32_t id;
    uint32_t parent; /* id of the handle this is a view of, or id itself */
    const char *name;
    uint64_t bytes;
    uint32_t elem_bytes;
    uint32_t node;
    uint32_t ndims; /* at most HEDDLE_LOG_MAX_DIMS are kept */
    const uint64_t *shape;
    const int64_t *offset; /* of a view, in elements of the parent; or NULL */
    const int64_t *step;   /* likewise */
};
/* Below level GRAPH it does nothing. */
void heddle_trace_define_handle(struct heddle_trace *tr, const struct heddle_trace_handle *h);

/* The id of a string, the same for equal strings; 0: NULL, off or no room. */
uint32_t heddle_trace_define_string(struct heddle_trace *tr, const char *s);

/* A fact about the run: "scheduler", "ws". */
void heddle_trace_define_info(struct heddle_trace *tr, const char *key, const char *value);

#include "trace/recorder.h"

#endif /* HEDDLE_TRACE_TRACE_H */
