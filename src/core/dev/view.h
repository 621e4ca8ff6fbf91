/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_VIEW_H
#define HEDDLE_CORE_DEV_VIEW_H

/* What schedulers may ask about tasks. */
#include "sched/sched.h"

extern const struct heddle_sched_view heddle_dev_view;

#endif /* HEDDLE_CORE_DEV_VIEW_H */
