/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_OPEN_H
#define HEDDLE_CORE_DEV_OPEN_H

/* Which devices a context has. */
#include <stddef.h>

#include "base/compiler.h"
#include "heddle/status.h"

/* A sentence into why; returns st. */
HEDDLE_PRINTF(4, 5)
heddle_status heddle_dev_refuse(heddle_status st, char *why, size_t cap, const char *fmt, ...);

#endif /* HEDDLE_CORE_DEV_OPEN_H */
