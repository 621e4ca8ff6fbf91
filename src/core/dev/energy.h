/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_ENERGY_H
#define HEDDLE_CORE_DEV_ENERGY_H

/* What tasks draw, what a joule is worth, virtual joules. */
#include <stddef.h>
#include <stdint.h>

#include "core/dev/shape.h"
#include "core/exec.h"
#include "heddle/ctx.h"
#include "sched/sched.h"

struct dev_task;
struct heddle_devs;
/* Before classes are made; after. */
heddle_status heddle_dev_energy_open(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                     char *why, size_t cap);
heddle_status heddle_dev_energy_start(struct heddle_devs *d, const struct heddle_ctx_opts *o,
                                      char *why, size_t cap);
void heddle_dev_energy_close(struct heddle_devs *d);
/* The class that will be d->ncls: is it capped by the list? Then `model` changes. */
heddle_status heddle_dev_energy_cap(struct heddle_devs *d, const char *list, const char *cls,
                                    enum heddle_device kind, char *model, size_t bytes, char *why,
                                    size_t cap);
/* Times on the class are multiplied by this. */
double heddle_dev_energy_time(const struct heddle_devs *d, unsigned cls);
/* For the scheduler: how energy counts when something is chosen; NULL: not. */
struct heddle_sched_energy *heddle_dev_objective(struct heddle_devs *d);
/* Fills watts of a new shape. */
void heddle_dev_energy_shape(struct heddle_devs *d, const struct heddle_exec *x,
                             const struct dev_shape *s, double *watts);
/* A time of the variant counts so many times, for the energy it takes. */
double heddle_dev_energy_worth(const struct heddle_devs *d, const struct dev_shape *s, unsigned cls,
                               unsigned v);
/* Virtual time, with a model. Driver. A kernel begins, and ends; a copy; names of the
 * domains for the log; the last sample. */
void heddle_dev_energy_begin(struct dev_task *dt);
void heddle_dev_energy_end(struct dev_task *dt);
void heddle_dev_energy_moved(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes);
void heddle_dev_energy_define(struct heddle_devs *d);
void heddle_dev_energy_last(struct heddle_devs *d);

#endif /* HEDDLE_CORE_DEV_ENERGY_H */
