/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_WHY_H
#define HEDDLE_ENERGY_WHY_H

/* Private: the sentence about a failure. */
#include <stddef.h>

#include "base/compiler.h"
#include "heddle/status.h"

/* Writes the sentence (why may be NULL, cap 0) and returns st. */
HEDDLE_PRINTF(4, 5)
heddle_status heddle_energy_why(char *why, size_t cap, heddle_status st, const char *fmt, ...);

/* The same about a line of a file; returns HEDDLE_EFORMAT. */
HEDDLE_PRINTF(5, 6)
heddle_status heddle_energy_why_at(char *why, size_t cap, const char *path, size_t line,
                                   const char *fmt, ...);

#endif /* HEDDLE_ENERGY_WHY_H */
