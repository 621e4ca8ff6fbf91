/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_IMPORT_H
#define HEDDLE_TRACE_IMPORT_H

/*
 * What the two files of the importer share: fields of records, the rows that
 * are being made. Private to trace.
 */
#include "trace/log.h"
#include "trace/recutils.h"
#include "trace/store.h"

enum heddle_import_field {
    F_NAME,
    F_MODEL,
    F_JOBID,
    F_DEPENDS,
    F_PRIORITY,
    F_TAG,
    F_WORKER,
    F_NODE,
    F_SUBMIT,
    F_READY,
    F_START,
    F_END,
    F_FOOTPRINT,
    F_GFLOP,
    F_ITERATION,
    F_HANDLES,
    F_MODES,
    F_SIZES,
    F_RANK,
    F_PARENT,
    F_ESTIMATED,
    F_CONTROL,
    F_WORKERS, /* of a platform */
    F_SIZE,
    F_SECTION,
    HEDDLE_IMPORT_FIELDS
};

/* One record: texts of the fields it has, and their lines. */
struct heddle_import_rec {
    const char *value[HEDDLE_IMPORT_FIELDS];
    size_t line[HEDDLE_IMPORT_FIELDS];
    size_t first;        /* line; 0: empty */
    const char *section; /* of the latest %rec, or "" */
    bool is_schema;      /* it describes records, it is none */
};

#define HEDDLE_IMPORT_NODES 4096 /* of one process */
enum { HEDDLE_IMPORT_NAME = 48 };

/* A worker, until all are known. */
struct heddle_import_lane {
    uint64_t key; /* process and number */
    uint32_t node;
};

struct heddle_import_node {
    uint32_t id;
    uint64_t bytes;
    char name[HEDDLE_IMPORT_NAME]; /* "": not known */
};

struct heddle_import {
    const struct heddle_allocator *a;
    char *why;
    size_t why_bytes;
    const char *tasks_path, *platform_path;
    const char *path; /* of the file being read */

    struct heddle_log_task *tasks;
    struct heddle_log_dep *deps;
    struct heddle_log_access *accesses;
    struct heddle_log_attr *attrs;
    struct heddle_log_kernel *kernels;
    struct heddle_log_handle *handles;
    size_t ntasks, ndeps, naccesses, nattrs, nkernels, nhandles;
    size_t task_cap, dep_cap, access_cap, attr_cap, kernel_cap, handle_cap;
    struct heddle_map kernel_of;  /* hash of a name to index + 1 */
    struct heddle_map handle_of;  /* address to index + 1 */
    struct heddle_map tasks_seen; /* id to the line of its JobId */

    /* import_lanes.c */
    struct heddle_import_lane *found; /* workers */
    struct heddle_import_node *nodes_found;
    size_t nfound, found_cap, nnodes, node_cap;
    struct heddle_map lane_of;     /* key to index + 1 in found[] */
    struct heddle_map node_of;     /* id to index + 1 in nodes_found[] */
    struct heddle_log_lane *lanes; /* nfound workers, and the submitter */
    struct heddle_log_node *nodes;
    struct heddle_log_variant (*variants)[2]; /* per kernel */
    char (*names)[HEDDLE_IMPORT_NAME];        /* of lanes */
    size_t nlanes;
};

/* "<path>, line <line>: <what>." HEDDLE_EFORMAT. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_import_refuse(const struct heddle_import *m, size_t line, const char *fmt,
                                   ...);

/* *out is left alone when the record has no such field. */
HEDDLE_MUST_USE heddle_status heddle_import_uint(const struct heddle_import *m,
                                                 const struct heddle_import_rec *r,
                                                 enum heddle_import_field f, uint64_t max,
                                                 uint64_t *out);

/* Calls take() for each record of a text, which is changed. */
HEDDLE_MUST_USE heddle_status heddle_import_records(
    struct heddle_import *m, char *text, size_t bytes,
    heddle_status (*take)(struct heddle_import *, const struct heddle_import_rec *));

/* The index in found[] of a worker of a process. */
HEDDLE_MUST_USE heddle_status heddle_import_lane(struct heddle_import *m, uint64_t rank,
                                                 uint64_t worker, uint64_t node, size_t line,
                                                 uint32_t *index_out);
/* A record of the platform. */
heddle_status heddle_import_platform(struct heddle_import *m, const struct heddle_import_rec *r);
/* Makes lanes, nodes and variants; lanes of tasks become indices in lanes. */
HEDDLE_MUST_USE heddle_status heddle_import_lanes_finish(struct heddle_import *m);
void heddle_import_lanes_fini(struct heddle_import *m);

/* import_cycle.c: HEDDLE_EFORMAT, with a sentence, when tasks wait for each other in a
 * circle, or are inside of each other. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_import_check_cycles(const struct heddle_import *m);

#endif /* HEDDLE_TRACE_IMPORT_H */
