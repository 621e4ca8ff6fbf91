/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_H
#define HEDDLE_TRACE_H

/*
 * heddle/trace.h - read the log of a run.
 *
 * A context writes its log to a file on request (docs/formats/log.md has the bytes).
 * heddle_log_open() turns such a file into arrays; summaries and exports work on these
 * arrays.
 *
 * Threads:  a heddle_log never changes after it was opened: any number of
 *           threads may read it. Close it once, when no thread uses it.
 * Errors:   functions return heddle_status; on failure nothing was created.
 * Times:    int64_t nanoseconds since the log was started, HEDDLE_LOG_NONE
 *           when not known. Two known times never overflow when subtracted.
 * Lifetime: every pointer reached through a log is valid until the log is closed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open log. */
typedef struct heddle_log heddle_log;

/* Values with a meaning of their own, and the most dimensions of a handle in a log. */
#define HEDDLE_LOG_NONE     INT64_MAX  /* a time that is not known */
#define HEDDLE_LOG_NO_LANE  UINT32_MAX /* the task has not run */
#define HEDDLE_LOG_MAX_DIMS 8

/* Record levels: how much a context writes. Each level includes the levels before. */
enum heddle_log_level {
    HEDDLE_LOG_OFF = -1,
    HEDDLE_LOG_TASKS = 0, /* one record per task, and when a worker sleeps */
    HEDDLE_LOG_GRAPH = 1, /* submissions, dependencies, accesses, states */
    HEDDLE_LOG_SCHED = 2, /* reserved for decisions of the scheduler; now as 1 */
    HEDDLE_LOG_EXPERT = 3 /* reserved; now as 1 */
};

/* How an execution ended. */
enum heddle_log_status {
    HEDDLE_LOG_OK = 0,
    HEDDLE_LOG_FAILED = 1,
    HEDDLE_LOG_CANCELLED = 2,
    HEDDLE_LOG_DECLINED = 3, /* another variant was tried afterwards */
    HEDDLE_LOG_PENDING = 7,  /* the task was submitted; the log has no execution of it */
};

/* heddle_log_task.flags */
enum heddle_log_task_flag {
    HEDDLE_LOG_INLINE = 0x08,   /* ran inside another task that was waiting */
    HEDDLE_LOG_GANG = 0x10,     /* helper of a gang: same id, other lane */
    HEDDLE_LOG_EXPANDED = 0x20, /* became a graph of smaller tasks */
    HEDDLE_LOG_REPLAYED = 0x40, /* from a recorded graph */
};

/* heddle_log_lane.kind: the records of which part of a run a lane has. */
enum heddle_log_lane_kind {
    HEDDLE_LOG_WORKER = 0,
    HEDDLE_LOG_SUBMITTER = 1,
    HEDDLE_LOG_DEVICE = 2, /* a stream of an accelerator */
    HEDDLE_LOG_LINK = 3,   /* transfers */
    HEDDLE_LOG_OTHER = 4,
};

/* What a lane does between tasks. */
enum heddle_log_state_kind {
    HEDDLE_LOG_IDLE = 0, /* looks for work */
    HEDDLE_LOG_SPIN = 1,
    HEDDLE_LOG_SLEEP = 2,
    HEDDLE_LOG_WAKE = 3,
    HEDDLE_LOG_SUBMIT = 4,
    HEDDLE_LOG_OVERHEAD = 5, /* in the runtime, on behalf of a task */
    HEDDLE_LOG_DATA = 6,     /* waits for operands of an assigned task */
    HEDDLE_LOG_MEMORY = 7,   /* waits for memory */
};

/* heddle_log_mark.phase: a moment, or the two ends of a span. */
enum heddle_log_mark_phase {
    HEDDLE_LOG_MARK_POINT = 0,
    HEDDLE_LOG_MARK_BEGIN = 1,
    HEDDLE_LOG_MARK_END = 2,
};

/* Facts about a task beyond those of heddle_log_task. */
enum heddle_log_attr_key {
    HEDDLE_LOG_ATTR_NAME = 1,      /* a string; also in heddle_log_task.name */
    HEDDLE_LOG_ATTR_FLOPS = 2,     /* the bits of a double */
    HEDDLE_LOG_ATTR_FOOTPRINT = 3, /* key of the performance model */
    HEDDLE_LOG_ATTR_ITERATION = 4,
    HEDDLE_LOG_ATTR_TAG = 5,
    HEDDLE_LOG_ATTR_DEADLINE = 6, /* CLOCK_MONOTONIC nanoseconds */
    /* Predicted nanoseconds on the device that ran the task; also in
     * heddle_log_task.predicted_ns, which otherwise has the prediction made at the
     * submission. */
    HEDDLE_LOG_ATTR_PREDICTED = 7,
};

/* heddle_log_event.kind; docs/formats/log.md says what the fields mean. */
enum heddle_log_event_kind {
    HEDDLE_LOG_PUSH = 1,
    HEDDLE_LOG_POP = 2,
    HEDDLE_LOG_STEAL = 3,
    HEDDLE_LOG_SPLIT = 4,
    HEDDLE_LOG_FETCH = 16, /* transfers, by reason */
    HEDDLE_LOG_PREFETCH = 17,
    HEDDLE_LOG_WRITEBACK = 18,
    HEDDLE_LOG_EVICT = 19,
    HEDDLE_LOG_MEM_ALLOC = 24,
    HEDDLE_LOG_MEM_FREE = 25,
    HEDDLE_LOG_POWER = 32, /* b: domain, x: microjoules, c: flags below */
    HEDDLE_LOG_LOCK = 40,
    HEDDLE_LOG_LOST = 41, /* at the end of a task: y_ns of it the system ran something else */
};

/* heddle_log_event.c of POWER. */
enum heddle_log_power_flag {
    HEDDLE_LOG_POWER_GAP = 1, /* the energy since the sample before is not known: it is
                                 missing in this sample and all later ones */
};

/*
 * One execution of a task, or one task that never ran (status PENDING). A task that was
 * retried, or that ran on a gang, has several executions with one id.
 */
struct heddle_log_task {
    uint64_t id;
    uint64_t parent; /* the task that submitted this one; 0: the main program */
    int64_t submit_ns;
    int64_t ready_ns;
    int64_t start_ns;
    int64_t end_ns;   /* >= start_ns */
    const char *name; /* NULL: none was given */
    float predicted_ns;
    int32_t priority;
    uint32_t kernel; /* index in kernels[] */
    uint32_t lane;   /* index in lanes[] or HEDDLE_LOG_NO_LANE */
    uint8_t variant;
    uint8_t status; /* enum heddle_log_status */
    uint8_t flags;  /* enum heddle_log_task_flag */
};

/* A dependency: task `succ` waited for task `pred`. */
struct heddle_log_dep {
    uint64_t succ;
    uint64_t pred;
};

/* An operand of a task. */
struct heddle_log_access {
    uint64_t task;
    uint32_t handle; /* index in handles[] */
    uint16_t operand;
    uint8_t mode; /* enum heddle_mode (heddle/data.h) */
};

/* What a lane did between tasks. A state lasts until the next state, or the next start or
 * end of a task, of its lane. */
struct heddle_log_state {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t lane;
    uint32_t arg;
    uint8_t state; /* enum heddle_log_state_kind */
};

/* A named moment that the program put into the log (heddle_mark). */
struct heddle_log_mark {
    int64_t t_ns;
    const char *text;
    uint32_t lane;
    uint8_t phase; /* enum heddle_log_mark_phase */
};

/* A further fact about a task. */
struct heddle_log_attr {
    uint64_t task;
    uint64_t value;
    uint8_t key; /* enum heddle_log_attr_key */
};

/* Something else that happened. docs/formats/log.md has the fields of each kind. */
struct heddle_log_event {
    int64_t t_ns;
    uint64_t task;
    uint64_t x;
    int64_t y_ns;
    int64_t z_ns;
    uint32_t lane;
    uint32_t c;
    uint16_t b;
    uint8_t kind; /* enum heddle_log_event_kind */
};

/* A variant of a kernel. */
struct heddle_log_variant {
    const char *name;
    uint32_t device; /* enum heddle_device (heddle/device.h) */
};

/* A kernel that the run used. */
struct heddle_log_kernel {
    uint32_t id;
    uint32_t nvariants;
    const char *name; /* never NULL */
    const struct heddle_log_variant *variants;
};

/* A lane: the records of one thread, stream or link. */
struct heddle_log_lane {
    uint32_t id;
    uint32_t kind; /* enum heddle_log_lane_kind */
    int32_t cpu;   /* -1: not bound */
    uint32_t node; /* memory node */
    const char *name;
    uint64_t nrecords;
    uint64_t lost;        /* records dropped: no memory or no disk */
    uint64_t overwritten; /* 16-byte slots the flight recorder reused */
};

/* A handle or view that the run used. */
struct heddle_log_handle {
    uint32_t id;
    uint32_t parent; /* index in handles[]; its own index: not a view */
    uint64_t bytes;
    const char *name; /* never NULL */
    uint32_t elem_bytes;
    uint32_t node; /* home memory node */
    uint32_t ndims;
    uint64_t shape[HEDDLE_LOG_MAX_DIMS];
    int64_t offset[HEDDLE_LOG_MAX_DIMS]; /* of a view, in the parent */
    int64_t step[HEDDLE_LOG_MAX_DIMS];
};

/* A memory node. */
struct heddle_log_node {
    uint32_t id;
    uint32_t kind;
    uint64_t bytes; /* capacity or budget; 0: not known */
    const char *name;
};

/* A link from one memory node to another; from and to are indices in nodes[]. */
struct heddle_log_link {
    uint32_t from;
    uint32_t to;
    double bytes_per_s; /* > 0 */
    double latency_ns;  /* >= 0 */
    const char *name;
};

/* Facts about the run: "program", "scheduler", "host"... */
struct heddle_log_info {
    const char *key;
    const char *value;
};

/* The whole log as arrays. `size` is the size that the library knows. */
struct heddle_log_view {
    size_t size;

    /* Sorted by start_ns, longer first; tasks that never ran come last. */
    const struct heddle_log_task *tasks;
    size_t ntasks;
    const struct heddle_log_dep *deps; /* sorted by succ */
    size_t ndeps;
    const struct heddle_log_access *accesses; /* sorted by task */
    size_t naccesses;
    const struct heddle_log_state *states; /* sorted by start_ns */
    size_t nstates;
    const struct heddle_log_mark *marks; /* sorted by t_ns */
    size_t nmarks;
    const struct heddle_log_attr *attrs; /* sorted by task */
    size_t nattrs;
    const struct heddle_log_event *events; /* sorted by t_ns */
    size_t nevents;

    const struct heddle_log_kernel *kernels;
    size_t nkernels;
    const struct heddle_log_lane *lanes;
    size_t nlanes;
    const struct heddle_log_handle *handles;
    size_t nhandles;
    const struct heddle_log_node *nodes;
    size_t nnodes;
    const struct heddle_log_info *infos;
    size_t ninfos;

    uint64_t bytes;       /* of the file */
    uint64_t origin_ns;   /* CLOCK_MONOTONIC at time 0 */
    uint64_t wall_ns;     /* CLOCK_REALTIME at time 0, since 1970 */
    double ns_per_tick;   /* resolution of the clock */
    uint64_t lost;        /* sum over the lanes, plus lost definitions */
    uint64_t overwritten; /* sum over the lanes */
    uint32_t nchunks;     /* that were read */
    uint32_t ndamaged;    /* that were found damaged or missing */
    uint16_t version;     /* major << 8 | minor */
    bool is_flight;       /* dumped by the flight recorder */
    bool is_partial;      /* heddle_log_get_partial() says why */

    const struct heddle_log_link *links; /* since version 1.1 */
    size_t nlinks;
};

/* Options for opening and writing logs; zero is a default everywhere. */
struct heddle_log_opts {
    size_t size;                              /* sizeof(struct heddle_log_opts) */
    const struct heddle_allocator *allocator; /* NULL: the default */
    char *why;                                /* gets a sentence when opening fails; may be NULL */
    size_t why_bytes;
};

/*
 * Reads and checks a log. Of a file that was cut or damaged the whole chunks are read, and
 * is_partial is set. `opts` may be NULL.
 *
 * HEDDLE_EINVAL    path or log_out is NULL
 * HEDDLE_ENOENT    no such file
 * HEDDLE_EIO       the file cannot be read, or is not a plain file
 * HEDDLE_EFORMAT   the file is not a log, or its header is damaged
 * HEDDLE_EVERSION  a newer Heddle wrote the file
 * HEDDLE_EOVERFLOW  more than 2^32 - 2 records of one kind
 * HEDDLE_ENOMEM    no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_open(const char *path,
                                                         const struct heddle_log_opts *opts,
                                                         heddle_log **log_out);

/* heddle_log_open() for a log in memory, which may be freed afterwards. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_parse(const void *data, size_t bytes,
                                                          const struct heddle_log_opts *opts,
                                                          heddle_log **log_out);

/* Frees the log. NULL is fine. */
HEDDLE_API void heddle_log_close(heddle_log *log);

/* The arrays of a log. */
HEDDLE_API const struct heddle_log_view *heddle_log_get_view(const heddle_log *log);

/* One sentence: what is missing; "" when the log is whole. Never NULL. */
HEDDLE_API const char *heddle_log_get_partial(const heddle_log *log);

/* The index of the first execution of a task; SIZE_MAX: the log has none. */
HEDDLE_API size_t heddle_log_find_task(const heddle_log *log, uint64_t id);

/* The range [*first, *last) of a task's entries in deps[] (as successor), in accesses[],
 * in attrs[]; empty when there are none, and without a log. `first`, `last` may be NULL. */
HEDDLE_API void heddle_log_find_deps(const heddle_log *log, uint64_t succ, size_t *first,
                                     size_t *last);
HEDDLE_API void heddle_log_find_accesses(const heddle_log *log, uint64_t task, size_t *first,
                                         size_t *last);
HEDDLE_API void heddle_log_find_attrs(const heddle_log *log, uint64_t task, size_t *first,
                                      size_t *last);

/* Names of statuses, states and kinds of events; "?" for a value without a name. */
HEDDLE_API const char *heddle_log_status_name(unsigned status);
HEDDLE_API const char *heddle_log_state_name(unsigned state);
HEDDLE_API const char *heddle_log_event_name(unsigned kind);

/* The time of one lane: busy_ns + idle_ns + overhead_ns == makespan_ns, exactly. */
struct heddle_log_lane_sum {
    uint64_t ntasks;     /* executions, cancelled ones too */
    int64_t busy_ns;     /* inside a task; nested tasks count once */
    int64_t idle_ns;     /* known idle: looked for work, spun or slept */
    int64_t overhead_ns; /* the rest; with level 0 it includes looking for
                            work */
};

/* The executions of one kernel. */
struct heddle_log_kernel_sum {
    uint64_t ntasks; /* executions, without helpers of a gang and cancelled
                        tasks */
    int64_t total_ns;
    int64_t min_ns;
    int64_t median_ns;
    int64_t max_ns;
    uint64_t npredicted; /* executions with a prediction */
    double model_error;  /* mean of |predicted - measured| / measured */
};

/* A summary of a run. */
struct heddle_log_summary {
    size_t size;
    struct heddle_log_lane_sum *lanes;     /* one per lane of the log */
    struct heddle_log_kernel_sum *kernels; /* one per kernel of the log */
    uint64_t nexecuted;                    /* OK or FAILED or DECLINED */
    uint64_t nfailed;
    uint64_t ncancelled;
    uint64_t npending;
    uint64_t nworkers; /* lanes of kind WORKER or DEVICE, or that ran a task */
    int64_t first_ns;  /* first submission or start */
    int64_t last_ns;   /* last end */
    int64_t makespan_ns;
    int64_t busy_ns; /* this and the next two: sums over the nworkers lanes */
    int64_t idle_ns;
    int64_t overhead_ns;
    double utilisation;      /* busy / (workers * makespan); 0: no makespan */
    double overhead_task_ns; /* overhead per executed task */
};

/* Makes the summary of a log. HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_log_summary_create(const heddle_log *log, struct heddle_log_summary **sum_out);
/* Frees a summary, before the log is closed. NULL is fine. */
HEDDLE_API void heddle_log_summary_destroy(const heddle_log *log, struct heddle_log_summary *sum);

/* flags of heddle_log_export */
enum heddle_log_export_flag {
    HEDDLE_LOG_EXPORT_DEPS = 1u << 0,   /* dependencies as arrows */
    HEDDLE_LOG_EXPORT_STATES = 1u << 1, /* what workers do between tasks */
};

/*
 * Writes the log to `path` in another format ("-" is not special).
 *
 * HEDDLE_EINVAL  an argument is NULL, or the path has the extension of one of
 *                the other files of the format
 * HEDDLE_ENOENT  no such format
 * HEDDLE_EIO     the file cannot be written; what was written is removed
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_export(const heddle_log *log,
                                                           const char *format, const char *path,
                                                           unsigned flags);

/* A format of heddle_log_export(). */
struct heddle_log_format {
    const char *name; /* "chrome" */
    const char *help; /* one line */
    /* The extensions of further files that the format writes, beside the file at `path`
     * and with the same name otherwise. NULL ends the list; NULL instead of the list: no
     * further file. */
    const char *const *parts;
};

/* Format number i, or NULL when there are no more. */
HEDDLE_API const struct heddle_log_format *heddle_log_get_format(size_t i);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TRACE_H */
