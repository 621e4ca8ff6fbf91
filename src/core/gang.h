/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_GANG_H
#define HEDDLE_CORE_GANG_H

/* One task on several workers at once. */
#include <stdbool.h>

#include "core/exec.h"

/* Runs the function on `size` workers, of which this is one; or TASK_PUT_BACK. */
heddle_status heddle_gang_run(struct heddle_exec *x, struct exec_slow *s, heddle_run_fn run,
                              unsigned size);
/* Are there enough threads for a gang of that size, of which w would be one? They may
 * have gone when it forms. */
bool heddle_gang_fits(const struct worker *w, unsigned size);
/* Joins a gang that needs members. True: took part in one. */
bool heddle_gang_join(struct worker *w);

#endif /* HEDDLE_CORE_GANG_H */
