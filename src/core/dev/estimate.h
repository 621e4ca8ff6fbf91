/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_ESTIMATE_H
#define HEDDLE_CORE_DEV_ESTIMATE_H

/* What a task is expected to take on a class, and whether it can run there. */
#include <stdbool.h>
#include <stdint.h>

#include "core/dev/shape.h"
#include "core/dev/worker.h"
#include "core/exec.h"

struct heddle_devs;
/* ns on the class with the best variant, or INFINITY or NAN. */
double heddle_dev_cost(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                       unsigned cls, unsigned *variant_out, double *confidence_out);
/* dev_time_ops.cost by models: the best known variant. */
double heddle_dev_cost_measured(struct heddle_devs *d, struct heddle_exec *x,
                                const struct task_ext *ext, unsigned cls, unsigned *variant_out,
                                double *confidence_out);
/* What a task of which no variant serves takes there: a kernel that is only a graph of others
 * may run on cores. */
double heddle_dev_cost_of_none(const struct heddle_devs *d, const struct heddle_exec *x,
                               unsigned cls);
/* As heddle_dev_cost() and its model, for the device thread, which asks for every task: known costs
 * are kept for a while. */
void heddle_dev_cost_now(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                         unsigned cls, struct dev_cost *out);
/* The bytes it needs on a class at once. */
uint64_t heddle_dev_need(const struct heddle_devs *d, const struct heddle_exec *x, unsigned cls);
/* Can the class call this variant, and is it exact enough? */
bool heddle_dev_variant_serves(const struct heddle_devs *d, const struct heddle_variant *v,
                               const struct dev_class *c, const struct task_ext *ext);
/* Two operands that share elements, one of them written: one memory only. */
bool heddle_dev_has_alias(const struct heddle_exec *x);

#endif /* HEDDLE_CORE_DEV_ESTIMATE_H */
