/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_STORE_H
#define HEDDLE_TRACE_STORE_H

/*
 * What the files of the writing side share: the trace behind the opaque
 * pointer, the memory of a lane, the file. Private to trace.
 *
 * Locks: `file` may be taken under `lane`, and `defs`, a leaf, under either.
 * The allocator may be called under `defs`.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/thread.h"
#include "trace/format.h"
#include "trace/trace.h"

/* A growing string of bytes. Zeroed memory is an empty one. */
struct heddle_bytes {
    uint8_t *p;
    size_t len;
    size_t cap;
};

/* Room for `more` bytes beyond len, without passing `max` in all. */
bool heddle_bytes_room(struct heddle_bytes *b, const struct heddle_allocator *a, size_t more,
                       size_t max);
void heddle_bytes_fini(struct heddle_bytes *b, const struct heddle_allocator *a);

struct heddle_index_entry {
    uint64_t offset;
    uint64_t first_tick;
    uint64_t last_tick;
    uint32_t lane;
    uint32_t nrecords;
};

/* An open log file. One thread at a time. */
struct heddle_log_writer {
    const struct heddle_allocator *a;
    char *path;
    int fd; /* -1: not open */
    uint32_t seq;
    uint64_t off;     /* the file is whole up to here */
    heddle_status st; /* the first error */
    char why[256];
    struct heddle_index_entry *index; /* of the RECORDS chunks */
    size_t nindex;
    size_t index_cap;
    bool is_index_lost; /* no memory for it: the file goes without */
};

/* Keeps the first failure: "The log 'x' <what>: <text of err>." */
void heddle_log_writer_fail(struct heddle_log_writer *w, heddle_status st, const char *what,
                            int err);

/* Sets st and why on failure. Close it in any case. */
HEDDLE_MUST_USE heddle_status heddle_log_writer_open(struct heddle_log_writer *w,
                                                     const struct heddle_allocator *a,
                                                     const char *path,
                                                     const struct heddle_fmt_header *h);

/* Appends a chunk; payload_bytes and payload_sum are set by the caller. false:
 * it is not in the file. After an error it writes nothing more, unless
 * `is_last` asks for one more try. */
bool heddle_log_writer_chunk(struct heddle_log_writer *w, struct heddle_fmt_chunk *k,
                             const uint8_t *payload, bool is_last);

/* Index and end. */
void heddle_log_writer_finish(struct heddle_log_writer *w, uint64_t lost, uint64_t overwritten);

/* Closes the file, frees; returns the first error and copies its sentence.
 * Zeroed memory with fd -1 is fine. */
heddle_status heddle_log_writer_close(struct heddle_log_writer *w, char *why, size_t why_bytes);

/* The chunks of one lane. */
struct heddle_lane_store {
    struct heddle_mutex lock; /* guards cur, nfull, used, from; and that the
                                 chunk stays */
    union heddle_slot *mem;   /* nchunks chunks, one in file mode */
    uint32_t *used;           /* slots in each full chunk; flight only */
    uint8_t *coded;           /* file mode: belongs to the holder of the lock */
    size_t from;              /* file mode: slots that are in the file already */
    uint32_t cur;             /* chunk being written */
    uint32_t nfull;           /* full ones before it, in ring order */
    /* Relaxed: counters, read for reports. */
    _Atomic uint64_t lost;
    _Atomic uint64_t overwritten;
};

struct heddle_trace {
    const struct heddle_allocator *a;
    struct heddle_clock clock;
    uint32_t nlanes;
    uint32_t nchunks; /* per lane */
    size_t chunk_bytes;
    size_t chunk_slots;
    size_t max_def_bytes;
    bool is_off;
    bool is_file;
    struct heddle_fmt_header header;
    struct heddle_trace_lane *lanes;
    struct heddle_lane_store *stores;
    _Atomic uint32_t mask;

    /* File mode: the thread that flushes. */
    struct heddle_thread flusher;
    bool has_flusher;
    unsigned flush_ms;
    _Atomic uint32_t stops; /* a futex */

    struct heddle_mutex file_lock; /* file mode: guards the three below */
    struct heddle_log_writer writer;
    struct heddle_bytes spare; /* definitions on their way to the file */
    uint64_t next_epoch;       /* tick */

    struct heddle_mutex def_lock; /* guards the four below */
    struct heddle_bytes defs;     /* all (flight) or not yet written (file) */
    struct heddle_map strings;    /* hash to id */
    uint32_t nstrings;
    uint64_t lost_defs;
};

/* live.c: starts and ends the thread that flushes. Without it the file is as good,
 * only later. */
void heddle_trace_live_start(struct heddle_trace *tr);
void heddle_trace_live_stop(struct heddle_trace *tr);

/* Codes the records [p, end) into `out` (heddle_pack_bound() bytes) and fills
 * in the chunk header, but for lane, seq and lost. */
void heddle_pack(const union heddle_slot *p, const union heddle_slot *end, uint8_t *out,
                 struct heddle_fmt_chunk *k);

/* No record takes more than twice its slots; plus the first tick. */
static inline size_t heddle_pack_bound(size_t slot_bytes)
{
    return 2 * slot_bytes + 8;
}

/* A (tick, CLOCK_MONOTONIC) pair becomes a definition. */
void heddle_trace_define_epoch(struct heddle_trace *tr);
/* What a lane lost and holds, at the end. */
void heddle_trace_define_totals(struct heddle_trace *tr, uint32_t lane);
/* The same into bytes: at most HEDDLE_DEF_NUMBERS_MAX each. */
#define HEDDLE_DEF_NUMBERS_MAX 32
uint8_t *heddle_def_put_epoch(const struct heddle_trace *tr, uint8_t *p);
uint8_t *heddle_def_put_totals(uint8_t *p, struct heddle_trace *tr, uint32_t lane);
/* File mode, file_lock is held: writes what was defined since the last time. */
void heddle_trace_flush_defs(struct heddle_trace *tr, bool is_last);
/* Writes definitions as chunks. */
bool heddle_trace_write_defs(struct heddle_log_writer *w, const uint8_t *p, size_t bytes,
                             bool is_last);

/* Removes a file that could not be finished; leaves devices and links alone. */
void heddle_trace_discard(const char *path);

#endif /* HEDDLE_TRACE_STORE_H */
