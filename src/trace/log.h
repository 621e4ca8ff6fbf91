/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_LOG_H
#define HEDDLE_TRACE_LOG_H

/*
 * What the files of the reading side share: the log behind the opaque pointer.
 * Private to trace.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/sort.h"
#include "heddle/trace.h"
#include "trace/format.h"

/* Items with ids: index = order of first appearance. */
struct heddle_table {
    struct heddle_map map; /* id to index */
    uint8_t *items;
    size_t item_bytes;
    size_t n;
    size_t cap;
};

/* A known (tick, time) pair; the clock is linear from here to the next. */
struct heddle_log_epoch {
    uint64_t tick;
    int64_t t_ns; /* since ns0 of the header */
    double slope; /* ns per tick from here on */
};

struct heddle_log_chunk {
    const uint8_t *payload;
    uint32_t bytes;
    uint32_t lane; /* id */
    uint32_t nrecords;
    uint8_t kind;
};

struct heddle_log_block; /* of text: reader.c */

/* The arrays of `v`, as they were allocated. */
struct heddle_log_arrays {
    struct heddle_log_task *tasks;
    struct heddle_log_dep *deps;
    struct heddle_log_access *accesses;
    struct heddle_log_state *states;
    struct heddle_log_mark *marks;
    struct heddle_log_attr *attrs;
    struct heddle_log_event *events;
    uint32_t *by_id; /* indices of tasks, by id, then by time */
    size_t ntasks, ndeps, naccesses, nstates, nmarks, nattrs, nevents;
};

struct heddle_log {
    struct heddle_allocator alloc;
    const struct heddle_allocator *a; /* &alloc, or NULL: the default */
    struct heddle_log_view v;
    struct heddle_log_arrays arr;
    struct heddle_log_block *text;
    char partial[320];

    struct heddle_table kernels;
    struct heddle_table lanes;
    struct heddle_table handles;
    struct heddle_table nodes;
    struct heddle_table strings;
    struct heddle_table infos;
    struct heddle_table links; /* by from << 16 | to; nodes are ids, then indices */

    /* Only while reading. */
    struct heddle_fmt_header header;
    struct heddle_log_chunk *chunks;
    size_t nchunks, chunk_cap;
    struct heddle_log_epoch *epochs;
    size_t nepochs, epoch_cap;
    int64_t origin; /* time 0, since ns0 of the header */
    uint64_t end_lost, end_overwritten;
    uint64_t nskipped; /* bytes outside of chunks */
    bool has_end;
    bool is_cut; /* the last chunk is not whole */
};

/* Reads a plain file, which errors call `what`, into *cap_out bytes: at least one
 * more than *bytes_out, what was there. */
HEDDLE_MUST_USE heddle_status heddle_log_read_file(const char *path, const char *what,
                                                   const struct heddle_log_opts *o, uint8_t **p_out,
                                                   size_t *cap_out, size_t *bytes_out);

/* Makes *p, of *cap items of `bytes`, hold at least `need`. */
HEDDLE_MUST_USE heddle_status heddle_log_grow(const struct heddle_allocator *a, void *p,
                                              size_t *cap, size_t need, size_t bytes);

/* Index of an id; a new one gets a zeroed item. */
HEDDLE_MUST_USE heddle_status heddle_table_at(struct heddle_table *t, uint32_t id,
                                              uint32_t *index_out);

/* A copy with a zero behind it. */
HEDDLE_MUST_USE heddle_status heddle_log_text(heddle_log *log, const void *p, size_t bytes,
                                              const char **text_out);

/* "<what> <id>", for things that were used and never defined. */
HEDDLE_MUST_USE heddle_status heddle_log_name(heddle_log *log, const char *what, uint32_t id,
                                              const char **text_out);

/* Reads all DEFS chunks: defs.c. */
HEDDLE_MUST_USE heddle_status heddle_log_read_defs(heddle_log *log);
/* Ticks to time: needs the definitions. Within +-2^61. */
int64_t heddle_log_time(const heddle_log *log, uint64_t tick);
/* Reads all RECORDS chunks and builds the arrays: model.c. */
HEDDLE_MUST_USE heddle_status heddle_log_read_records(heddle_log *log);

/* A submission and a readiness until they are joined with their task. */
struct heddle_log_sub {
    uint64_t id;
    uint64_t parent;
    int64_t t_ns;
    float predicted_ns;
    int32_t prio;
    uint32_t kernel; /* index */
};

struct heddle_log_ready {
    uint64_t id;
    int64_t t_ns;
};

/* Rows while they are filled; each n counts up to its cap. */
struct heddle_log_build {
    heddle_log *log;
    uint32_t lane; /* index of the chunk being read */
    size_t cap[HEDDLE_REC_KINDS];
    size_t n[HEDDLE_REC_KINDS];
    struct heddle_log_task *exec;
    struct heddle_log_sub *sub;
    struct heddle_log_ready *ready;
};

/* Sorts and joins what was read: join.c. */
HEDDLE_MUST_USE heddle_status heddle_log_join(struct heddle_log_build *b);

#endif /* HEDDLE_TRACE_LOG_H */
