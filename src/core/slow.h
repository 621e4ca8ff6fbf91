/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_SLOW_H
#define HEDDLE_CORE_SLOW_H

/* Tasks that are not plain: what they need before their function. */
#include "core/exec.h"
#include "core/worker.h"
#include "sched/sched.h"

/* Runs a task that is not plain. Returns a task to run next, or NULL. */
struct heddle_sched_task *heddle_slow_run(struct worker *w, struct heddle_cell *c);
/* May it run at all? Else why not: cancelled, too late, marked data. */
heddle_status heddle_slow_may_start(struct heddle_exec *x, const struct task_ext *ext);
/* The body: checks, partials, retries, the function, marks. x is filled in but
 * for slow. Or TASK_PUT_BACK. */
heddle_status heddle_slow_body(struct heddle_exec *x, struct exec_slow *s,
                               const struct task_ext *ext);

#endif /* HEDDLE_CORE_SLOW_H */
