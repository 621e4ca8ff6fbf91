/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_HANDLE_H
#define HEDDLE_CORE_HANDLE_H

/* Handles as the engine holds them; acquires. */
#include "core/worker.h"
#include "data/data.h"
#include "task/task.h"

/* A reference that is not the program's; returns h. */
heddle_handle *heddle_unit_ref(heddle_handle *h);
/* Drops a reference; frees when it was the last. Any thread. */
void heddle_unit_unref(heddle_handle *h);
/* Frees a unit without references. */
void heddle_unit_free(heddle_handle *h);
/* The task of an acquire runs; data: HEDDLE_OK, or why they are not on the host. */
void heddle_grant_run(struct worker *w, struct heddle_cell *c, heddle_status data);
/* Forgets what was acquired and never released; the context ends. */
void heddle_grants_drop(heddle_ctx *ctx);
/* Releases what heddle_handle_acquire() was granted and was not released. */
void heddle_grants_release(heddle_ctx *ctx);

#endif /* HEDDLE_CORE_HANDLE_H */
