/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_ASSERT_H
#define HEDDLE_BASE_ASSERT_H

/*
 * Assertions, for our own bugs only; what the caller or the machine did is a
 * status. Levels: HEDDLE_DEBUG 0 nothing, 1 cheap asserts, 2 ownership and lock
 * ranks, 3 heddle_<x>_valid() walks whole structures.
 */
#include "base/compiler.h"
#include "heddle/status.h"

#ifndef HEDDLE_DEBUG
#define HEDDLE_DEBUG 0
#endif

/* Prints "heddle: file:line: message" to stderr and aborts. Nothing else in
 * the library does either. */
HEDDLE_COLD HEDDLE_PRINTF(3, 4) _Noreturn void heddle_panic(const char *file, int line,
                                                            const char *fmt, ...);

/* A disabled assertion is compiled, so that it cannot rot, but not run. */
#define HEDDLE_ASSERT_ON(on, cond)                                                                 \
    ((!(on) || HEDDLE_LIKELY(cond))                                                                \
         ? (void)0                                                                                 \
         : heddle_panic(__FILE__, __LINE__, "assertion failed: %s", #cond))

#define HEDDLE_ASSERT(cond)  HEDDLE_ASSERT_ON(HEDDLE_DEBUG >= 1, cond)
#define HEDDLE_ASSERT2(cond) HEDDLE_ASSERT_ON(HEDDLE_DEBUG >= 2, cond)
#define HEDDLE_ASSERT3(cond) HEDDLE_ASSERT_ON(HEDDLE_DEBUG >= 3, cond)

/* Returns the status unless it is HEDDLE_OK. Only where nothing must be
 * undone. */
#define HEDDLE_TRY(expr)                                                                           \
    do {                                                                                           \
        const heddle_status heddle_try_st = (expr);                                                \
        if (HEDDLE_UNLIKELY(heddle_try_st != HEDDLE_OK))                                           \
            return heddle_try_st;                                                                  \
    } while (0)

/* For arguments, at the top of a public function. */
#define HEDDLE_CHECK(cond)                                                                         \
    do {                                                                                           \
        if (HEDDLE_UNLIKELY(!(cond)))                                                              \
            return HEDDLE_EINVAL;                                                                  \
    } while (0)

#endif /* HEDDLE_BASE_ASSERT_H */
