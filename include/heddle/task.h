/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TASK_H
#define HEDDLE_TASK_H

/*
 * heddle/task.h - kernels, tasks, groups and events.
 *
 * A kernel describes a computation; its variants are ways to run it, each for one kind
 * of device. A task is one call of a kernel on handles. The results are those of running
 * the tasks one after another in the order of submission.
 *
 * Threads:  any function may be called from any thread unless it says otherwise.
 *           Tasks of several submitting threads are ordered as their calls are.
 * Errors:   functions return heddle_status; on failure nothing was submitted.
 * Lifetime: kernels are constant and outlive the contexts that use them.
 *           Arguments are copied at submission. Names are not copied: a name is a
 *           literal or outlives the task.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/ctx.h"
#include "heddle/data.h"
#include "heddle/device.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An event completes once: with a task, or by hand. Tasks may wait for events. */
typedef struct heddle_event heddle_event;
/* Tasks that are waited for, or cancelled, together. */
typedef struct heddle_group heddle_group;

/* A running task, as its function sees it. Valid until the function returns. */
struct heddle_exec;

/* The function of a variant. Its status becomes the status of the task. */
typedef heddle_status (*heddle_run_fn)(struct heddle_exec *x);

/* One way to run a kernel, on one kind of device. */
struct heddle_variant {
    const char *name;          /* NULL: the name of the kind of device */
    enum heddle_device device; /* required; 0 ends the list of variants */
    heddle_run_fn run;         /* NULL: the variant runs on simulated devices only */
    unsigned gang;             /* workers at once, all or nothing; 0: 1. When too few
                                  workers can take part, the next variant runs */
    size_t scratch_bytes;      /* see heddle_exec_scratch() */
    unsigned digits;           /* decimal digits of its results; 0: full precision */
    bool is_urgent;            /* many tasks wait for this one: a device with
                           priorities runs its GPU kernels before other kernels */
    uint64_t reserved[2];      /* zero: fields to come (ADR 0029) */
};

/* The work of one task, for models and reports. */
struct heddle_cost {
    double flops;
    double bytes;
};

/* The most operands and variants of a kernel. */
#define HEDDLE_KERNEL_OPERANDS 16
#define HEDDLE_KERNEL_VARIANTS 8

/* What want_expand() answers. */
enum heddle_expand {
    HEDDLE_EXPAND_NO = 0, /* run the task whole */
    HEDDLE_EXPAND_YES,    /* call expand() */
    HEDDLE_EXPAND_KNOWN   /* call expand() too; but in a context with devices run the
                             task whole on a core until its time there is measured,
                             because schedulers compare it with the devices' times */
};

/* A kernel: constant, and it outlives the contexts that use it. */
typedef struct heddle_kernel {
    size_t size;      /* sizeof(heddle_kernel) */
    const char *name; /* required */
    unsigned noperands;
    enum heddle_mode mode[HEDDLE_KERNEL_OPERANDS];
    struct heddle_variant variants[HEDDLE_KERNEL_VARIANTS];

    /* Optional. When it is set, tasks of this kernel are timed and their times are
     * predicted. The function computes from what heddle_exec_* returns, and calls no
     * other function of Heddle: it may be called under a lock. */
    struct heddle_cost (*cost)(struct heddle_exec *x);

    /* Optional: makes the kernel recursive. The function submits the same work as
     * smaller tasks with heddle_exec_submit(). It is called instead of a variant when
     * want_expand() says so, or, without want_expand, when a worker is idle. */
    heddle_run_fn expand;
    enum heddle_expand (*want_expand)(struct heddle_exec *x);

    uint64_t version; /* change it when the code changes: older timings are dropped */
} heddle_kernel;

/* Operands that fit into a struct heddle_call. */
#define HEDDLE_CALL_OPERANDS 6

/* The options of a task, which most tasks do not need. Zero means none. */
struct heddle_task_opts {
    size_t size;                /* sizeof(struct heddle_task_opts) */
    const char *name;           /* for messages and the log */
    heddle_event *const *after; /* the task starts after these events; it is cancelled
                                   if one of them failed */
    size_t nafter;
    heddle_group *group; /* NULL: none */
    uint64_t timeout_ns; /* a task that has not started so long after its submission
                            ends with HEDDLE_ETIMEDOUT; 0: no limit */
    unsigned retries;    /* how often a run that failed is repeated, on the next
                            variant if there is one; operands are put back before */
    void (*done)(void *user, heddle_status st); /* called once when the task has ended,
                            by the thread that ran it; may submit, must not wait */
    void *done_user;
    heddle_event **event_out; /* a new event that completes with the task */
    unsigned variant;         /* 1 + index of the only variant to use; 0: any */
    heddle_devices devices;   /* kinds that may run the task, as in
                                 HEDDLE_DEVS_CPU | HEDDLE_DEVS_CUDA; 0: any */
    unsigned digits;          /* decimal digits the result must have; 0: any variant */
};

/* One call of a kernel: operands, argument, priority. A task has at most 255 operands.
 * Only the first HEDDLE_KERNEL_OPERANDS of them may be commutative, reductions or
 * scratch. A task with retries, and a recorded task, have at most
 * HEDDLE_KERNEL_OPERANDS operands. */
struct heddle_call {
    heddle_handle *operand[HEDDLE_CALL_OPERANDS];
    const void *arg; /* copied; the function gets it from heddle_exec_arg() */
    size_t arg_bytes;
    int priority; /* higher runs first, where the scheduler uses priorities */

    /* For more operands, or a number that differs from call to call: when noperands is
     * not 0, `operands` replaces `operand` and `modes` replaces the kernel's modes
     * (modes may be NULL when the kernel has as many operands). */
    unsigned noperands;
    heddle_handle *const *operands;
    const enum heddle_mode *modes;

    const struct heddle_task_opts *opts; /* NULL: none */
    uint64_t reserved[2];                /* zero: fields to come (ADR 0029) */
};

/*
 * Submits one task. The task may have run before the call returns. When the window is
 * full the calling thread runs tasks first: so the function of a task must not wait for
 * something that only this thread would do later.
 *
 * HEDDLE_EINVAL   no kernel, or a kernel without name or variant; an operand is NULL or
 *                 belongs to another context; more operands than the kernel declares; an
 *                 unknown mode; a gang larger than the context; a reduction on a handle
 *                 without init and combine
 * HEDDLE_ENOVARIANT  opts->variant names no variant of the kernel
 * HEDDLE_ENOMEM   no memory for the task
 * HEDDLE_ESTATE   the context is being destroyed
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_submit(heddle_ctx *ctx, const heddle_kernel *kernel,
                                                       const struct heddle_call *call);

/* Submits n tasks of one kernel, in order. Stops at the first call that is refused and
 * returns its status. *n_out (may be NULL): how many tasks were submitted. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_submit_n(heddle_ctx *ctx,
                                                         const heddle_kernel *kernel,
                                                         const struct heddle_call *calls, size_t n,
                                                         size_t *n_out);

/* --- a task in one line -------------------------------------------------- */

/*
 * heddle_go() submits a task with an argument and up to HEDDLE_CALL_OPERANDS
 * operands, in the order of the kernel:
 *
 *     st = heddle_go(ctx, &scale, HEDDLE_ARG(&a), h);
 *     st = heddle_go(ctx, &gemm, HEDDLE_NO_ARG, a, b, c);
 *
 * HEDDLE_ARG(&a) is the object a, copied at submission. Statuses as heddle_submit();
 * HEDDLE_EINVAL also for more operands than the kernel has. A task with a priority
 * or options needs a struct heddle_call and heddle_submit().
 */
#define heddle_go(ctx, kernel, ...) heddle_submit_call(ctx, kernel, HEDDLE_CALL(__VA_ARGS__))
/* heddle_go() for a child: with heddle_exec_submit(). */
#define heddle_exec_go(x, kernel, ...) heddle_exec_submit_call(x, kernel, HEDDLE_CALL(__VA_ARGS__))

/* An argument for heddle_go(): HEDDLE_ARG() or HEDDLE_NO_ARG. */
struct heddle_arg {
    const void *ptr;
    size_t bytes;
};

/* The argument *ptr, and no argument. */
#define HEDDLE_ARG(ptr) heddle_arg_of(ptr, sizeof(*(ptr)))
#define HEDDLE_NO_ARG   heddle_arg_of(NULL, 0)

/* A struct heddle_call of an argument and operands. One operand too many becomes
 * the pointer to a struct heddle_no_operand, which it is not: a compiler says so. */
#define HEDDLE_CALL(...) HEDDLE_CALL_OF(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0)
#define HEDDLE_CALL_OF(arg, o0, o1, o2, o3, o4, o5, end, ...)                                      \
    heddle_call_of(arg, o0, o1, o2, o3, o4, o5, end)

/* Not defined: only NULL converts to a pointer to it without a warning. */
struct heddle_no_operand;

/* For HEDDLE_ARG() and HEDDLE_NO_ARG. */
static inline struct heddle_arg heddle_arg_of(const void *ptr, size_t bytes)
{
    struct heddle_arg a;

    a.ptr = ptr;
    a.bytes = bytes;
    return a;
}

/* For HEDDLE_CALL(). */
static inline struct heddle_call heddle_call_of(struct heddle_arg arg, heddle_handle *o0,
                                                heddle_handle *o1, heddle_handle *o2,
                                                heddle_handle *o3, heddle_handle *o4,
                                                heddle_handle *o5,
                                                const struct heddle_no_operand *end)
{
    const struct heddle_call c = {
        {o0, o1, o2, o3, o4, o5}, arg.ptr, arg.bytes, 0, 0, NULL, NULL, NULL, {0, 0}};

    (void)end;
    return c;
}

/* For heddle_go(). */
static inline HEDDLE_MUST_USE heddle_status heddle_submit_call(heddle_ctx *ctx,
                                                               const heddle_kernel *kernel,
                                                               struct heddle_call call)
{
    return heddle_submit(ctx, kernel, &call);
}

/* --- inside a task ------------------------------------------------------- */

/* The pointers below are borrowed from the task: valid until its function returns. For an
 * operand that does not exist the functions return NULL or 0. */

/* The address of operand i, in the memory where the task runs (OpenCL: a cl_mem). */
HEDDLE_API void *heddle_exec_ptr(struct heddle_exec *x, unsigned i);
/* The number of elements of operand i. */
HEDDLE_API size_t heddle_exec_count(struct heddle_exec *x, unsigned i);
/* Shape and strides of operand i where the task runs; without gaps on devices, and for
 * HEDDLE_REDUCE and HEDDLE_SCRATCH, which get private memory. */
HEDDLE_API const struct heddle_layout *heddle_exec_layout(struct heddle_exec *x, unsigned i);
/* The handle of operand i, to make views of it and to submit children on it. */
HEDDLE_API heddle_handle *heddle_exec_operand(struct heddle_exec *x, unsigned i);
/* The number of operands. */
HEDDLE_API unsigned heddle_exec_noperands(struct heddle_exec *x);
/* The copy of the argument, and its size; NULL and 0 when there is none. */
HEDDLE_API const void *heddle_exec_arg(struct heddle_exec *x);
HEDDLE_API size_t heddle_exec_arg_bytes(struct heddle_exec *x);
/* Memory of the variant's scratch_bytes, aligned to 64, not zeroed, one block for all
 * members of a gang; NULL when the variant asks for none. */
HEDDLE_API void *heddle_exec_scratch(struct heddle_exec *x);
/* The kind of device that runs the task. */
HEDDLE_API enum heddle_device heddle_exec_device(struct heddle_exec *x);
/* An object of the device that runs the task, under the name that its driver documents: "stream",
 * "queue", "context". NULL: the device has no such object, or the task runs on a core. */
HEDDLE_API void *heddle_exec_native(struct heddle_exec *x, const char *what);
/* The number of the worker that runs the task, from 0, and the context. */
HEDDLE_API unsigned heddle_exec_worker(struct heddle_exec *x);
HEDDLE_API heddle_ctx *heddle_exec_ctx(struct heddle_exec *x);

/* The rank of this member of a gang, the number of members, and a barrier among them. In
 * a task without a gang: 0, 1, and the barrier returns at once. */
HEDDLE_API unsigned heddle_exec_gang_rank(struct heddle_exec *x);
HEDDLE_API unsigned heddle_exec_gang_size(struct heddle_exec *x);
HEDDLE_API void heddle_exec_gang_barrier(struct heddle_exec *x);

/* True when the task's group or context was cancelled meanwhile. */
HEDDLE_API bool heddle_exec_is_cancelled(struct heddle_exec *x);

/* Sets the sentence for a failure that the function is about to return; the sentence is
 * copied. Returns st. */
HEDDLE_API heddle_status heddle_exec_fail(struct heddle_exec *x, heddle_status st,
                                          const char *message);

/*
 * Submits a child of the running task, which must run on a core. Children are ordered
 * among themselves; the parent ends, and its operands are released, when all children
 * have ended. A child may use the parent's operands, views of them, and handles made by
 * the parent.
 *
 * HEDDLE_ESTATE   the parent runs on a device
 * HEDDLE_EACCESS  the parent does not hold an operand, or not in a mode that covers it
 * others          as heddle_submit()
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_exec_submit(struct heddle_exec *x,
                                                            const heddle_kernel *kernel,
                                                            const struct heddle_call *call);

/* For heddle_exec_go(). */
static inline HEDDLE_MUST_USE heddle_status heddle_exec_submit_call(struct heddle_exec *x,
                                                                    const heddle_kernel *kernel,
                                                                    struct heddle_call call)
{
    return heddle_exec_submit(x, kernel, &call);
}

/* Runs tasks until all children submitted so far have ended. Returns the first failure of
 * a child, or HEDDLE_OK. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_exec_wait(struct heddle_exec *x);

/* --- groups: cancel and wait for some tasks ------------------------------ */

/* Makes a group; *g_out is a new reference. HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_group_create(heddle_ctx *ctx, heddle_group **g_out);
/* Drops the reference; the tasks of the group go on. NULL is fine. */
HEDDLE_API void heddle_group_unref(heddle_group *g);
/* Cancels the tasks of the group that have not started, and tasks that join it later:
 * they end without running when their turn comes. */
HEDDLE_API heddle_status heddle_group_cancel(heddle_group *g);
/* Runs tasks until the tasks of the group have ended. timeout_ns 0: no limit. Returns the
 * status of the first task of the group that failed or was cancelled since the last wait,
 * or HEDDLE_OK.
 *
 * HEDDLE_ETIMEDOUT  tasks remain
 * HEDDLE_EDEADLK    called by a task, and one of the group can only end after that task, or
 *                   after one that the same thread has to finish first
 * HEDDLE_ESTATE     the context is gone
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_group_wait(heddle_group *g, uint64_t timeout_ns);

/* --- events: wait for one task, or for something outside ----------------- */

/* Makes an event that the program completes by hand; *e_out is a new reference. When the
 * last reference is dropped before that, the event completes as cancelled.
 * HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_event_create(heddle_ctx *ctx, heddle_event **e_out);
/* One more reference; returns e. */
HEDDLE_API heddle_event *heddle_event_ref(heddle_event *e);
/* Drops a reference. NULL is fine. */
HEDDLE_API void heddle_event_unref(heddle_event *e);
/* Completes an event with status `st`; a failure cancels the tasks that wait for it.
 * HEDDLE_ESTATE: the event is complete already, belongs to a task, or its context is
 * gone. HEDDLE_EINVAL: st is positive. */
HEDDLE_API heddle_status heddle_event_complete(heddle_event *e, heddle_status st);
/* Delays the completion of `e`, an event completed by hand, until `pred` is complete as
 * well. HEDDLE_ECYCLE: pred waits, through events and tasks, for e. HEDDLE_ESTATE: e is
 * complete, or belongs to a task. HEDDLE_EINVAL: the events are of two contexts.
 * HEDDLE_ENOMEM: no memory. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_event_after(heddle_event *e, heddle_event *pred);
/* HEDDLE_AGAIN: the event is not complete; otherwise the status it completed with. Never
 * blocks. */
HEDDLE_API heddle_status heddle_event_poll(heddle_event *e);
/* Runs tasks until the event is complete and returns the status it completed with.
 * timeout_ns 0: no limit. HEDDLE_ETIMEDOUT: the event was not complete by then.
 * HEDDLE_EDEADLK: called by a task, and the event can only be complete after that task, or
 * after one that the same thread has to finish first. HEDDLE_ESTATE: the context is gone. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_event_wait(heddle_event *e, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TASK_H */
