/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_VIRTUAL_H
#define HEDDLE_CORE_DEV_VIRTUAL_H

/* Virtual time: inside of virtual*.c, cost.c and open.c alone. All other files use the tables. */
#include <stdbool.h>
#include <stdint.h>

#include "core/dev/shape.h"
#include "core/exec.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "trace/trace.h"

struct dev_task;
struct heddle_devs;

/* The context has virtual time from now on. Creation, before its workers are counted. */
void heddle_virtual_set(struct heddle_devs *d);
/* Does what can be done now, else the clock goes to the next event. False: there is none. The
 * holder of slot 0, which is the device thread meanwhile. */
bool heddle_virtual_step(struct worker *w);

/* virtual_task.c. A task waits for its children (or: goes on): its worker may run others
 * meanwhile. */
void heddle_virtual_block(struct heddle_devs *d, bool is_blocked);

/* Entries of struct dev_time_ops: virtual_task.c, */
void heddle_virtual_launch(struct dev_task *dt);
void heddle_virtual_prepare(struct dev_task *dt, struct heddle_dev_launch *l);
heddle_status heddle_virtual_put(struct dev_task *dt, const struct heddle_dev_launch *l);
void heddle_virtual_refused(struct dev_task *dt);
void heddle_virtual_done(struct heddle_op *op, heddle_status st);
/* and virtual_shape.c. */
bool heddle_virtual_fill_shape(struct heddle_devs *d, const struct heddle_exec *x,
                               struct dev_shape *s);
double heddle_virtual_cost(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                           unsigned cls, unsigned *variant_out, double *confidence_out);
double heddle_virtual_copy_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
double heddle_virtual_fetch_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
double heddle_virtual_way_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
bool heddle_virtual_find_link(const struct heddle_devs *d, unsigned from, unsigned to,
                              struct heddle_trace_link *l);

#endif /* HEDDLE_CORE_DEV_VIRTUAL_H */
