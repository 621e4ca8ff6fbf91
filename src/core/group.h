/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_GROUP_H
#define HEDDLE_CORE_GROUP_H

/* Groups of tasks. */
#include <stdint.h>

#include "base/atomic.h"
#include "core/object.h"
#include "heddle/task.h"

struct heddle_group {
    struct heddle_object obj; /* first */
    _Atomic uint32_t refs;    /* the user's, and one per task */
    _Atomic uint32_t is_cancelled;
    _Atomic int64_t pending;
    _Atomic int status; /* of the first task that failed */
};

/* A task of the group has ended. Drops its reference. */
void heddle_group_task_end(heddle_group *g, heddle_status st);

#endif /* HEDDLE_CORE_GROUP_H */
