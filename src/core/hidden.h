/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_HIDDEN_H
#define HEDDLE_CORE_HIDDEN_H

/* The engine's own tasks, and the dependency domain of the context. */
#include <stdbool.h>

#include "core/submit.h"
#include "core/worker.h"

/* A hidden task of the engine on one unit; arg is a pointer. Lock held. */
heddle_status heddle_submit_hidden(heddle_ctx *ctx, struct submission *s, heddle_handle *unit,
                                   enum heddle_mode mode, void *arg, struct heddle_cell **cell_out);
/* Combines all reductions of the context that wait for a next use. */
heddle_status heddle_submit_combine(heddle_ctx *ctx);
/* A join or a combination, submitted through s. */
heddle_status heddle_submit_close(heddle_ctx *ctx, struct submission *s, heddle_handle *unit,
                                  struct heddle_dep *dep);
/* The domain of the context: struct heddle_domain. */
heddle_status heddle_domain_close(struct heddle_domain *d, heddle_handle *unit,
                                  struct heddle_dep *dep);
struct heddle_dep *heddle_domain_find(struct heddle_domain *d, heddle_handle *unit);
/* Runs a task of the engine itself. True: it was one, and *next_out is a task to run next,
 * or NULL. */
bool heddle_hidden_run(struct worker *w, struct heddle_cell *c,
                       struct heddle_sched_task **next_out);

#endif /* HEDDLE_CORE_HIDDEN_H */
