/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TASK_H
#define HEDDLE_TASK_H

/*
 * heddle/task.h - kernels, tasks, groups and events.
 *
 * A kernel says what a computation is; its variants say how it can be done. A
 * task is one call of a kernel on handles. Tasks end as if they had run one
 * after another in the order of submission.
 *
 * Threads:  any function may be called from any thread unless it says otherwise.
 *           Tasks submitted by several threads are ordered as their calls are.
 * Errors:   functions return heddle_status; on failure nothing was submitted.
 * Lifetime: kernels are constant and outlive the contexts that use them.
 *           Arguments are copied at submission. Names are not: they are literals
 *           or outlive the task.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/ctx.h"
#include "heddle/data.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_event heddle_event;
typedef struct heddle_group heddle_group;

/* What a running task is given. Valid until its function returns. */
struct heddle_exec;

typedef heddle_status (*heddle_run_fn)(struct heddle_exec *x);

enum heddle_device { HEDDLE_DEV_CPU = 1, HEDDLE_DEV_CUDA = 2, HEDDLE_DEV_OPENCL = 3 };

/* A set of kinds of devices; HEDDLE_DEVS_ANY is no restriction. */
typedef uint32_t heddle_devices;

#define HEDDLE_DEVS(kind)  ((heddle_devices)1 << (kind)) /* of an enum heddle_device */
#define HEDDLE_DEVS_ANY    ((heddle_devices)0)
#define HEDDLE_DEVS_CPU    HEDDLE_DEVS(HEDDLE_DEV_CPU)
#define HEDDLE_DEVS_CUDA   HEDDLE_DEVS(HEDDLE_DEV_CUDA)
#define HEDDLE_DEVS_OPENCL HEDDLE_DEVS(HEDDLE_DEV_OPENCL)

/* "cpu", "cuda", "opencl"; "unknown" for anything else. Never NULL. */
HEDDLE_API const char *heddle_device_name(enum heddle_device kind);

struct heddle_variant {
    const char *name;          /* NULL: the device's name */
    enum heddle_device device; /* required; 0 ends the list */
    heddle_run_fn run;         /* NULL: runs on simulated devices only */
    unsigned gang;             /* workers at once, all or nothing; 0: 1. With
                                  too few there, the next variant is taken */
    size_t scratch_bytes;      /* see heddle_exec_scratch() */
    unsigned digits;           /* decimal digits of its results; 0: all there are */
    bool is_urgent;            /* many wait for it; on a device that can do so its
                           kernels go before those of others */
    uint64_t reserved[2];      /* zero: fields to come (ADR 0029) */
};

/* What one call costs, for models and reports. */
struct heddle_cost {
    double flops;
    double bytes;
};

#define HEDDLE_KERNEL_OPERANDS 16
#define HEDDLE_KERNEL_VARIANTS 8

/* What want_expand() answers. */
enum heddle_expand {
    HEDDLE_EXPAND_NO = 0, /* run the task whole */
    HEDDLE_EXPAND_YES,    /* call expand() */
    HEDDLE_EXPAND_KNOWN   /* the same; but in a context with devices only once the
                             whole task has been timed on a core, which the
                             scheduler compares places by */
};

typedef struct heddle_kernel {
    size_t size;      /* sizeof(heddle_kernel) */
    const char *name; /* required */
    unsigned noperands;
    enum heddle_mode mode[HEDDLE_KERNEL_OPERANDS];
    struct heddle_variant variants[HEDDLE_KERNEL_VARIANTS];

    /* Optional. A task of this kernel is timed and predicted when set. Computes
     * from what heddle_exec_* tells it, and calls nothing else of Heddle: it may
     * be called under a lock. */
    struct heddle_cost (*cost)(struct heddle_exec *x);

    /* Optional: makes the task recursive. Called instead of a variant when the
     * runtime finds that it needs more parallelism, or when `want_expand` says
     * so: submits the same work as smaller tasks with heddle_exec_submit(). */
    heddle_run_fn expand;
    enum heddle_expand (*want_expand)(struct heddle_exec *x);

    uint64_t version; /* change it when the code changes: old timings go */
} heddle_kernel;

#define HEDDLE_CALL_OPERANDS 6

/* The rarely needed part of a call. Zero means none. */
struct heddle_task_opts {
    size_t size;                /* sizeof(struct heddle_task_opts) */
    const char *name;           /* for messages and the log */
    heddle_event *const *after; /* starts after these; cancelled if one failed */
    size_t nafter;
    heddle_group *group;
    uint64_t timeout_ns; /* cancelled (HEDDLE_ETIMEDOUT) if not started by then */
    unsigned retries;    /* failed runs repeated, on the next variant if any;
                            operands are put back before each */
    void (*done)(void *user, heddle_status st); /* called once when it ended, by
                            the thread that ran it; may submit, must not wait */
    void *done_user;
    heddle_event **event_out; /* a new event that completes with the task */
    unsigned variant;         /* 1 + index of the only variant to use; 0: any */
    heddle_devices devices;   /* kinds that may run it: HEDDLE_DEVS_CPU | HEDDLE_DEVS_CUDA;
                                 0: any */
    unsigned digits;          /* decimal digits the result must have; 0: any variant */
};

/* A task has at most 255 operands. Of these the first HEDDLE_KERNEL_OPERANDS may
 * be commutative, reductions or scratch; a task with retries and a recorded task
 * have no more than that. */
struct heddle_call {
    heddle_handle *operand[HEDDLE_CALL_OPERANDS];
    const void *arg; /* copied; kernels get it from heddle_exec_arg() */
    size_t arg_bytes;
    int priority; /* higher first, where the scheduler looks at it */

    /* For more operands, or a number that differs from call to call: when
     * noperands is not 0, these replace `operand` and the kernel's modes (modes
     * may be NULL when the kernel has as many). */
    unsigned noperands;
    heddle_handle *const *operands;
    const enum heddle_mode *modes;

    const struct heddle_task_opts *opts; /* NULL: none */
    uint64_t reserved[2];                /* zero: fields to come (ADR 0029) */
};

/*
 * Submits one task. It may have run before the call returns. When the window is
 * full the calling thread runs tasks first: so a task must not wait, inside of
 * its function, for what only this thread would do later.
 *
 * HEDDLE_EINVAL   no kernel, no name, no variant; an operand is NULL or belongs
 *                 to another context; more operands than the kernel declares; a mode
 *                 that is none; a gang larger than the context; a reduction on a
 *                 handle that has none
 * HEDDLE_ENOVARIANT  opts->variant names none
 * HEDDLE_ENOMEM   no memory for the task
 * HEDDLE_ESTATE   the context is being destroyed
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_submit(heddle_ctx *ctx, const heddle_kernel *kernel,
                                                       const struct heddle_call *call);

/* Submits n tasks of one kernel, in order, up to the first that is refused: its
 * status is returned. *n_out (may be NULL): how many were submitted. */
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
 * HEDDLE_EINVAL also for more operands than the kernel has. What else a call can
 * have (a priority, options) needs a struct heddle_call.
 */
#define heddle_go(ctx, kernel, ...) heddle_submit_call(ctx, kernel, HEDDLE_CALL(__VA_ARGS__))
/* The same with heddle_exec_submit(). */
#define heddle_exec_go(x, kernel, ...) heddle_exec_submit_call(x, kernel, HEDDLE_CALL(__VA_ARGS__))

struct heddle_arg {
    const void *ptr;
    size_t bytes;
};

#define HEDDLE_ARG(ptr) heddle_arg_of(ptr, sizeof(*(ptr)))
#define HEDDLE_NO_ARG   heddle_arg_of(NULL, 0)

/* A struct heddle_call of an argument and operands. One operand too many becomes
 * the pointer to a struct heddle_no_operand, which it is not: a compiler says so. */
#define HEDDLE_CALL(...) HEDDLE_CALL_OF(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0)
#define HEDDLE_CALL_OF(arg, o0, o1, o2, o3, o4, o5, end, ...)                                      \
    heddle_call_of(arg, o0, o1, o2, o3, o4, o5, end)

struct heddle_no_operand;

static inline struct heddle_arg heddle_arg_of(const void *ptr, size_t bytes)
{
    struct heddle_arg a;

    a.ptr = ptr;
    a.bytes = bytes;
    return a;
}

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

static inline HEDDLE_MUST_USE heddle_status heddle_submit_call(heddle_ctx *ctx,
                                                               const heddle_kernel *kernel,
                                                               struct heddle_call call)
{
    return heddle_submit(ctx, kernel, &call);
}

/* --- inside a task ------------------------------------------------------- */

/* What is asked is borrowed from the task: valid until its function returns. An
 * operand that does not exist is NULL or 0. */

/* First element of operand i. */
HEDDLE_API void *heddle_exec_ptr(struct heddle_exec *x, unsigned i);
/* Number of its elements. */
HEDDLE_API size_t heddle_exec_count(struct heddle_exec *x, unsigned i);
/* Its shape and strides; dense for HEDDLE_REDUCE and HEDDLE_SCRATCH, which get
 * private memory. */
HEDDLE_API const struct heddle_layout *heddle_exec_layout(struct heddle_exec *x, unsigned i);
/* Its handle, to make views of it and to submit children on. */
HEDDLE_API heddle_handle *heddle_exec_operand(struct heddle_exec *x, unsigned i);
HEDDLE_API unsigned heddle_exec_noperands(struct heddle_exec *x);
/* The copy of the argument, and its size; NULL and 0 when there is none. */
HEDDLE_API const void *heddle_exec_arg(struct heddle_exec *x);
HEDDLE_API size_t heddle_exec_arg_bytes(struct heddle_exec *x);
/* The variant's scratch_bytes, aligned to 64, not zeroed, one for all members of
 * a gang; NULL when it has none. */
HEDDLE_API void *heddle_exec_scratch(struct heddle_exec *x);
/* The kind of device that runs this. */
HEDDLE_API enum heddle_device heddle_exec_device(struct heddle_exec *x);
/* The worker that runs this, from 0, and its context. */
HEDDLE_API unsigned heddle_exec_worker(struct heddle_exec *x);
HEDDLE_API heddle_ctx *heddle_exec_ctx(struct heddle_exec *x);

/* This member of a gang, their number, and a barrier among them. Alone: 0, 1,
 * and the barrier returns at once. */
HEDDLE_API unsigned heddle_exec_gang_rank(struct heddle_exec *x);
HEDDLE_API unsigned heddle_exec_gang_size(struct heddle_exec *x);
HEDDLE_API void heddle_exec_gang_barrier(struct heddle_exec *x);

/* True when the task's group or context was cancelled meanwhile. */
HEDDLE_API bool heddle_exec_cancelled(struct heddle_exec *x);

/* The sentence that goes with a failure the function is about to return; it is
 * copied. Returns st. */
HEDDLE_API heddle_status heddle_exec_fail(struct heddle_exec *x, heddle_status st,
                                          const char *message);

/*
 * Submits a child; not from a device. Children are ordered among themselves; the parent ends, and
 * its operands are released, when all of them have. A child may use the
 * parent's operands, parts of them, and handles made by the parent.
 *
 * HEDDLE_ESTATE   the parent runs on a device
 * HEDDLE_EACCESS  an operand that the parent does not hold in such a mode
 * others          as heddle_submit()
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_exec_submit(struct heddle_exec *x,
                                                            const heddle_kernel *kernel,
                                                            const struct heddle_call *call);

static inline HEDDLE_MUST_USE heddle_status heddle_exec_submit_call(struct heddle_exec *x,
                                                                    const heddle_kernel *kernel,
                                                                    struct heddle_call call)
{
    return heddle_exec_submit(x, kernel, &call);
}

/* Runs tasks until all children so far have ended; the first failure of one, or
 * HEDDLE_OK. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_exec_wait(struct heddle_exec *x);

/* --- groups: cancel and wait for some tasks ------------------------------ */

/* *g_out is a new reference. HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_group_create(heddle_ctx *ctx, heddle_group **g_out);
/* Drops the reference; its tasks go on. NULL is fine. */
HEDDLE_API void heddle_group_unref(heddle_group *g);
/* Tasks of the group that have not started end as cancelled when their turn
 * comes, later ones too. */
HEDDLE_API heddle_status heddle_group_cancel(heddle_group *g);
/* Runs tasks until those of the group have ended. timeout_ns 0: no limit. The
 * status of the first that did not end well since the last wait, or HEDDLE_OK.
 *
 * HEDDLE_ETIMEDOUT  tasks remain
 * HEDDLE_ESTATE     the context is gone
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_group_wait(heddle_group *g, uint64_t timeout_ns);

/* --- events: wait for one task, or for something outside ----------------- */

/* An event that a thread completes by hand; *e_out is a new reference. When the
 * last reference goes before that, it completes as cancelled.
 * HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_event_create(heddle_ctx *ctx, heddle_event **e_out);
/* One more reference; returns e. */
HEDDLE_API heddle_event *heddle_event_ref(heddle_event *e);
/* Drops a reference. NULL is fine. */
HEDDLE_API void heddle_event_unref(heddle_event *e);
/* Completes it; a failure cancels the tasks after it. HEDDLE_ESTATE: it is
 * complete already, belongs to a task, or its context is gone. HEDDLE_EINVAL:
 * st is positive. */
HEDDLE_API heddle_status heddle_event_complete(heddle_event *e, heddle_status st);
/* Makes a hand-completed event complete only after `pred` has as well.
 * HEDDLE_ECYCLE: pred waits, through events and tasks, for e. HEDDLE_ESTATE: e
 * is complete, or a task's. HEDDLE_EINVAL: they are of two contexts.
 * HEDDLE_ENOMEM: no memory. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_event_after(heddle_event *e, heddle_event *pred);
/* HEDDLE_AGAIN: not complete; else how it ended. Never blocks. */
HEDDLE_API heddle_status heddle_event_poll(heddle_event *e);
/* Runs tasks until it is complete; then how it ended. timeout_ns 0: no limit.
 * HEDDLE_ETIMEDOUT: not by then. HEDDLE_ESTATE: the context is gone. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_event_wait(heddle_event *e, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TASK_H */
