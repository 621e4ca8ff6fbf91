/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_ASKED_H
#define HEDDLE_CORE_DEV_ASKED_H

/* What a function on a device asks about its task. */
#include "heddle/task.h"

struct heddle_dev;
/* The device that runs it, and the stream; NULL: a core. */
struct heddle_dev *heddle_exec_dev(struct heddle_exec *x, unsigned *stream_out);

#endif /* HEDDLE_CORE_DEV_ASKED_H */
