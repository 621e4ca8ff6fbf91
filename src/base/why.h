/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_WHY_H
#define HEDDLE_BASE_WHY_H

/*
 * The one sentence about a failure, in the caller's buffer.
 *
 * Functions that can fail for many reasons take a buffer for a sentence, often as two
 * members of their options. The function that knows the reason writes the sentence and
 * returns its status in one step:
 *
 *     return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL, "there is no graph");
 */
#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"
#include "heddle/status.h"

/* Writes the sentence into why[0 .. bytes) and returns st. why NULL or bytes 0: the
 * caller does not ask. What does not fit is cut. */
HEDDLE_PRINTF(4, 5)
heddle_status heddle_why(char *why, size_t bytes, heddle_status st, const char *fmt, ...);

/* heddle_why() for a function that takes a format and arguments itself. */
HEDDLE_PRINTF(4, 0)
heddle_status heddle_why_va(char *why, size_t bytes, heddle_status st, const char *fmt, va_list ap);

/* The same about a line of a file: "path:line: sentence". path NULL: the sentence alone;
 * line 0: the whole file. Returns HEDDLE_EFORMAT. */
HEDDLE_PRINTF(5, 6)
heddle_status heddle_why_line(char *why, size_t bytes, const char *path, size_t line,
                              const char *fmt, ...);

/* What an errno means, in English; never NULL. Any thread, unlike strerror(). */
const char *heddle_why_errno(int err);

#endif /* HEDDLE_BASE_WHY_H */
