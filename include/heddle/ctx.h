/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CTX_H
#define HEDDLE_CTX_H

/*
 * heddle/ctx.h - one runtime instance.
 *
 * A context (heddle_ctx) owns its workers, its scheduler, its models and its log.
 * Several contexts may live in one process; they share nothing.
 *
 * Threads:  any function may be called from any thread unless it says otherwise.
 * Errors:   functions return heddle_status; on failure nothing has changed. The
 *           sentence behind the latest failure is read with heddle_ctx_error().
 * Options:  an option that is zero comes from the environment (HEDDLE_*, see
 *           heddle(7)); when that has no value, the default holds.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context: one instance of the runtime. */
typedef struct heddle_ctx heddle_ctx;

/* A three-valued switch whose zero means "default". */
enum heddle_switch { HEDDLE_DEFAULT = 0, HEDDLE_OFF = 1, HEDDLE_ON = 2 };

/* How serious a message is. */
enum heddle_severity { HEDDLE_INFO, HEDDLE_WARNING, HEDDLE_ERROR };

/* Receives messages of a context, a sentence each: from any thread, never with a lock
 * held. */
typedef void (*heddle_message_fn)(void *user, enum heddle_severity severity, const char *text);

/* The options of a context; zero is a default everywhere. */
struct heddle_ctx_opts {
    size_t size;               /* sizeof(struct heddle_ctx_opts) */
    unsigned nworkers;         /* threads that run tasks; 0: one per usable core, and one
                          less when a device thread needs a core for a GPU */
    const char *sched;         /* scheduler by name; NULL: ws, with devices lookahead */
    enum heddle_switch bind;   /* bind workers to cores; default on */
    enum heddle_switch helps;  /* a thread that waits, or that submits into a full
                                 window, works as one of the nworkers (default);
                                 off: the context starts nworkers threads, and
                                 calling threads only wait */
    size_t stack_bytes;        /* stack of each worker; 0: 8 MiB */
    unsigned spin_us;          /* how long an idle worker spins before it sleeps; 0: 200 */
    unsigned window;           /* the most tasks that are submitted and have not ended; when
                               the window is full, the submitting thread runs tasks;
                               0: automatic */
    size_t memory_budget;      /* bytes for data that the runtime allocates on the
                               host; 0: the memory that is available now */
    enum heddle_switch log;    /* the recorder; default on */
    int log_level;             /* record level: 0 (default) tasks; 1 the graph as
                               well; 2 and 3 as 1, see heddle(7) */
    const char *energy;        /* energy counters in a log of level 1: "off", "auto"
                               (default), or the period of reading, "20ms"; with
                               ",sys=DIR" at the end the kernel's files are read
                               from DIR instead of /sys */
    const char *log_path;      /* write the whole log to this file; NULL: the latest
                               records stay in memory (heddle_ctx_dump_log) */
    enum heddle_switch check;  /* the access checker, which is slow; default off */
    enum heddle_switch models; /* time every kernel and keep the history;
                                  default: only kernels that have a cost */
    const char *model_dir;     /* NULL: the user's cache directory; "": memory only */
    unsigned watchdog_ms;      /* report a wait without progress after this; 0: never */
    heddle_message_fn message; /* NULL: see `messages` */
    void *message_user;
    struct heddle_allocator allocator; /* zero: the C library's */

    /* Devices and memories; see docs/guide/06-devices.md. */
    const char *devices;        /* "none", or names and kinds with commas, as in
                            "opencl" or "cpu,opencl0"; NULL: every accelerator
                            that is found quickly */
    size_t device_memory;       /* budget of each device in bytes; 0: 90 % of its memory,
                            or of its free memory where the driver can tell */
    const char *disk_path;      /* a folder for data that the runtime allocates and that
                              exceed memory_budget; NULL: off */
    size_t disk_bytes;          /* the most to use of that folder; 0: the free space */
    const char *machine;        /* run in virtual time on the machine described in
                              this file, or by "starpu:DIR:NAME" */
    enum heddle_switch execute; /* virtual time: call the functions of tasks as well,
                                   with real memory per device; default off */
    const char *faults;         /* faults to inject: `fault` lines of a machine file
                           with ';' between them */
    union {
        const char *placement; /* for the scheduler replay: a placement file */
        const char *plan;      /* the older name of the same field */
    };
    bool ignore_env; /* take nothing from the environment */

    /* Energy; see docs/design/energy-online.md. */
    const char *energy_model;                  /* a file, docs/formats/energy.md; NULL: none */
    const struct heddle_energy *energy_object; /* or a model in memory, which outlives
                               the context and does not change */
    double energy_weight;                      /* 0 to 1: how much joules count besides time when
                             the scheduler places a task or the runtime chooses a
                             variant; 0: not at all */
    double energy_slack;                       /* instead of a weight: the fewest joules, with
                            a run that is expected to take longer by this share
                            at most; 0.05: 5 percent */
    const char *power_cap;                     /* virtual time: caps of the model for devices, as in
                              "cuda0:250W,cuda1:150W" */

    char *why;        /* gets a sentence when heddle_ctx_create() fails; may be NULL */
    size_t why_bytes; /* of `why` */

    const char *messages; /* when there is no `message`: "stderr" prints the sentences there,
                             "off" (default) prints none */
    enum heddle_switch memory_waits; /* heddle_handle_create() of data that the runtime
                             allocates runs tasks until memory_budget has room for them;
                             default off: the first task that uses the data fails. No effect
                             with disk_path */
};

/*
 * Starts a context. `opts` may be NULL. There is no context yet to keep the
 * sentence behind a failure: opts->why and opts->message get it.
 *
 * HEDDLE_OK      *ctx_out is yours; end it with heddle_ctx_destroy()
 * HEDDLE_EINVAL  a field is out of range, or names no scheduler
 * HEDDLE_ENOMEM  no memory or no threads
 * HEDDLE_EIO     log_path cannot be written, or the disk cannot be used
 * HEDDLE_ENOENT, HEDDLE_EFORMAT  the machine file, or the energy model, is not
 *                there, or malformed
 * HEDDLE_EDEV    a device that was asked for is not there
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_ctx_create(const struct heddle_ctx_opts *opts,
                                                           heddle_ctx **ctx_out);

/*
 * Waits for every task, stops the workers and frees the context; data that the
 * program still has acquired are released first. NULL is fine. Must not be called by a
 * task, by the message callback on a thread of the context, nor while another thread
 * uses the context: in these cases the call returns HEDDLE_EDEADLK or HEDDLE_ESTATE and
 * does nothing. Otherwise it returns what a last heddle_wait() would return, or why the
 * log could not be written; the context is gone in every such case.
 */
HEDDLE_API heddle_status heddle_ctx_destroy(heddle_ctx *ctx);

/*
 * Runs tasks until all submitted tasks have ended. Returns HEDDLE_OK or the status of
 * the first task that failed since the last wait.
 *
 * HEDDLE_EINVAL   ctx is NULL
 * HEDDLE_EDEADLK  called by a task, which would wait for itself
 * HEDDLE_ENOMEM   no memory to combine a reduction; the call has not waited
 * HEDDLE_ECANCELED  no task failed since the last wait, but heddle_ctx_cancel() was called,
 *                   or a task did not run because of an older failure: its data were
 *                   poisoned already, or an event that it waits for had failed already.
 *                   heddle_ctx_error() names the cause. Data stay poisoned until they are
 *                   written whole or restored
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_wait(heddle_ctx *ctx);

/* heddle_wait() for at most `timeout_ns` (0: no limit). HEDDLE_ETIMEDOUT: tasks remain,
 * or a task missed its deadline; heddle_ctx_error() then names that task. With several
 * workers the calling thread runs only tasks whose kernel has always been short enough, as the
 * recorder has seen it (option `log`), and those of gangs. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_wait_for(heddle_ctx *ctx, uint64_t timeout_ns);

/* Cancels every task that has not started: it ends without running, after the tasks it
 * waits for, and so do its dependents. Tasks submitted after the next heddle_wait() run
 * again. Returns at once. HEDDLE_EINVAL: ctx is NULL. */
HEDDLE_API heddle_status heddle_ctx_cancel(heddle_ctx *ctx);

/* The sentence behind the failure that the last wait returned, or, when there is
 * none, behind the call that was refused last. */
struct heddle_error {
    size_t size;          /* sizeof(struct heddle_error) */
    heddle_status status; /* HEDDLE_OK: there was no failure */
    uint64_t task;        /* id of the task; 0: the failure is not about a task */
    char task_name[64];   /* "" when the task has no name */
    char kernel[64];
    char message[320]; /* one sentence */
};

/* Copies the latest failure; set error_out->size before. HEDDLE_EINVAL: NULL or a wrong
 * size. */
HEDDLE_API heddle_status heddle_ctx_error(heddle_ctx *ctx, struct heddle_error *error_out);

/* Counters of a context since its start. */
struct heddle_ctx_stats {
    size_t size; /* sizeof(struct heddle_ctx_stats) */
    unsigned nworkers;
    const char *sched;  /* the scheduler in use */
    uint64_t submitted; /* tasks submitted to the context */
    uint64_t done;      /* submitted tasks that have ended, well or not */
    uint64_t executed;  /* runs of variants, children and recorded tasks included */
    uint64_t failed;
    uint64_t cancelled;
    uint64_t steals;
    uint64_t parks;        /* times a worker went to sleep */
    size_t cell_bytes;     /* memory of all task records */
    uint64_t cells;        /* task records allocated */
    size_t data_bytes;     /* runtime-allocated data now */
    uint64_t virtual_ns;   /* virtual time since the start; 0: real time */
    uint64_t copied_bytes; /* between memories, all reasons */
    uint64_t evictions;
};

/* Copies the counters; set out->size before. While tasks run, the numbers may be a
 * little old. HEDDLE_EINVAL: NULL, or a wrong size. */
HEDDLE_API heddle_status heddle_ctx_get_stats(heddle_ctx *ctx, struct heddle_ctx_stats *out);

/* Where the context gets host memory from, for libraries on top of it that want theirs from
 * there as well. HEDDLE_EINVAL: NULL. */
HEDDLE_API heddle_status heddle_ctx_get_allocator(const heddle_ctx *ctx,
                                                  struct heddle_allocator *out);

/* A memory of the context: the host's, a device's, a disk. */
struct heddle_memory_info {
    size_t size;     /* sizeof(struct heddle_memory_info) */
    char name[32];   /* "host", "opencl0", ... */
    uint64_t budget; /* bytes; UINT64_MAX: no limit */
    uint64_t used, peak;
    uint64_t bytes_in, bytes_out; /* copied to and from this memory */
    uint64_t bytes_written_back;  /* copied to this memory to be kept here, not for a task */
    uint64_t evictions;
};

/* The i-th memory, the host's first. HEDDLE_ENOENT: there is none, HEDDLE_EINVAL:
 * NULL or a wrong size. */
HEDDLE_API heddle_status heddle_ctx_get_memory(heddle_ctx *ctx, unsigned i,
                                               struct heddle_memory_info *out);

/* Workers that are alike and share a memory: the cores, or one device. */
struct heddle_class_info {
    size_t size; /* sizeof(struct heddle_class_info) */
    char name[32];
    char model[64];
    char kind[16];   /* "cpu", "cuda", "opencl" */
    unsigned memory; /* index for heddle_ctx_get_memory() */
    unsigned nworkers;
    bool is_lost;
};

/* The i-th class, the cores first. Statuses as heddle_ctx_get_memory(). */
HEDDLE_API heddle_status heddle_ctx_get_class(heddle_ctx *ctx, unsigned i,
                                              struct heddle_class_info *out);

/* The energy that a domain of the energy model has used, in virtual time. */
struct heddle_energy_use {
    size_t size;   /* sizeof(struct heddle_energy_use) */
    char name[64]; /* of the domain; "rest": devices that no domain counts */
    char device[32];
    double active_joules; /* drawn by tasks and copies */
    double idle_joules;   /* idle power times virtual time */
};

/* The i-th domain, up to now. Call it while no task runs. HEDDLE_ENOENT: there is no such
 * domain, or no model, or the context does not run in virtual time; HEDDLE_EINVAL: NULL or
 * a wrong size. */
HEDDLE_API heddle_status heddle_ctx_get_energy(heddle_ctx *ctx, unsigned i,
                                               struct heddle_energy_use *out);

/* A GPU of the machine, whether a context uses it or not. */
struct heddle_gpu_info {
    size_t size;   /* sizeof(struct heddle_gpu_info) */
    char name[32]; /* "cuda0", as the option devices names it */
    char model[64];
    uint64_t memory_total, memory_free; /* bytes; free: now, for all processes */
    double watts;                       /* drawn now; < 0: the GPU does not tell */
    char why[240];                      /* one sentence: why there is no GPU (HEDDLE_ENOENT), or why
                      this one cannot be used; else "" */
};

/* The i-th GPU, of all kinds of devices that are GPUs. For tools: the call opens the device, which
 * takes a while. HEDDLE_ENOENT: there is no such GPU, HEDDLE_EINVAL: NULL or a wrong size,
 * HEDDLE_ENOMEM. */
HEDDLE_API heddle_status heddle_gpu_query(unsigned i, struct heddle_gpu_info *out);

/*
 * Writes what the recorder holds to a file (docs/formats/log.md).
 *
 * HEDDLE_EINVAL  an argument is NULL
 * HEDDLE_ESTATE  tasks are pending: the context must be idle
 * HEDDLE_EIO     the file cannot be written
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_ctx_dump_log(heddle_ctx *ctx, const char *path);

/* Puts a mark, a named moment, into a log of level 1; the name is copied. HEDDLE_EINVAL:
 * NULL; HEDDLE_ESTATE: the context is being destroyed. */
HEDDLE_API heddle_status heddle_mark(heddle_ctx *ctx, const char *name);

/* An environment variable that a context reads, for help texts. */
struct heddle_env_var {
    const char *name;
    const char *value; /* the form of its value: "integer", "on|off", ... */
    const char *help;
};

/* All environment variables that a context reads, as a constant array; an entry with the name
 * NULL ends the array. */
HEDDLE_API const struct heddle_env_var *heddle_env_list(void);

/* The value of a variable of heddle_env_list(); NULL: the variable is not set, is empty, or
 * is not in the list. */
HEDDLE_API const char *heddle_env_value(const char *name);

/* A built-in scheduler; the strings are constant. */
struct heddle_sched_info {
    const char *name;
    const char *help; /* one line */
};

/* The i-th scheduler; HEDDLE_ENOENT past the last one, HEDDLE_EINVAL: NULL. */
HEDDLE_API heddle_status heddle_sched_get_info(unsigned i, struct heddle_sched_info *out);

/* The name of the scheduler that `name` selects: `name` itself, or the present name when
 * `name` is an older one ("plan": "lookahead"). Constant; NULL: there is no such scheduler. */
HEDDLE_API const char *heddle_sched_get_name(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_CTX_H */
