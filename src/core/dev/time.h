/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_TIME_H
#define HEDDLE_CORE_DEV_TIME_H

/*
 * The time of devices: real ones and a device thread (real.c), or simulated ones and
 * steps (virtual*.c). As core/time.h, for the files of core/dev, which call the table
 * and do not ask. Driver, but where a function says otherwise.
 */
#include <stdbool.h>
#include <stdint.h>

#include "core/dev/shape.h"
#include "core/exec.h"
#include "drive/drive.h"
#include "trace/trace.h"

struct dev_task;
struct dev_worker;
struct heddle_devs;

struct dev_time_ops {
    bool has_caps;   /* devices can be given power caps */
    bool tells_late; /* the scheduler may hear of ends a little late, several at once */

    /* The scheduler is there: the device thread may begin. The end of it. Creation and end. */
    heddle_status (*start)(struct heddle_devs *d);
    void (*stop)(struct heddle_devs *d);
    /* Any thread. */
    uint64_t (*now_ns)(const struct heddle_devs *d);
    /* There is something to do for the device thread. Any thread. */
    void (*kick)(struct heddle_devs *d);
    /* Does no worker run anything? A guess. Any thread. */
    bool (*is_idle)(const struct heddle_devs *d);
    /* May the worker begin another task? */
    bool (*has_room)(const struct heddle_devs *d, const struct dev_worker *dw);

    /* What a kernel takes on operands of one size, if that is described. False: no memory.
     * Any thread, as the next one. */
    bool (*fill_shape)(struct heddle_devs *d, const struct heddle_exec *x, struct dev_shape *s);
    /* As heddle_dev_cost(), on a class that can run it. */
    double (*cost)(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                   unsigned cls, unsigned *variant_out, double *confidence_out);
    /* ns of a transfer that begins now; of one that a scheduler (any thread) has in mind. */
    double (*copy_ns)(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
    double (*fetch_ns)(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
    /* The same when nothing else moves. */
    double (*way_ns)(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
    /* Speed and latency of a link, for the log, and its name if it has one. False: nothing is
     * known. Creation and end. */
    bool (*find_link)(const struct heddle_devs *d, unsigned from, unsigned to,
                      struct heddle_trace_link *l);

    /* A task has all it needs on its device: heddle_dev_launch_now(), at once or later. */
    void (*launch)(struct dev_task *dt);
    /* The launch of a task: its function and length; to the driver of the device; that was
     * refused; it has ended, the op of the launch. */
    void (*prepare)(struct dev_task *dt, struct heddle_dev_launch *l);
    heddle_status (*put)(struct dev_task *dt, const struct heddle_dev_launch *l);
    void (*refused)(struct dev_task *dt);
    void (*done)(struct heddle_op *op, heddle_status st);
};

extern const struct dev_time_ops heddle_dev_time_real;
extern const struct dev_time_ops heddle_dev_time_virtual;

#endif /* HEDDLE_CORE_DEV_TIME_H */
