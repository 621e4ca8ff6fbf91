/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_PARTIAL_H
#define HEDDLE_CORE_DEV_PARTIAL_H

/* Partial results of tasks on devices. Driver. */
#include <stdbool.h>

struct dev_task;

/* To the device, then its launch; or (is_out) back, then heddle_dev_end(). */
void heddle_dev_move_partials(struct dev_task *dt, bool is_out);

#endif /* HEDDLE_CORE_DEV_PARTIAL_H */
