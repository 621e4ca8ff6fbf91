/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CHILD_H
#define HEDDLE_CORE_CHILD_H

/* Submission of children, and children without a cell. */
#include "heddle/task.h"

/* A running task without a cell gets one: it is about to push a child. */
heddle_status heddle_child_settle(struct heddle_exec *x);

#endif /* HEDDLE_CORE_CHILD_H */
