/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_COMPILER_H
#define HEDDLE_BASE_COMPILER_H

/*
 * Compiler attributes under our own names: the one header that knows them.
 * HEDDLE_API and HEDDLE_MUST_USE are public and live in heddle/status.h.
 */
#if defined(__GNUC__)
#define HEDDLE_LIKELY(x)     __builtin_expect(!!(x), 1)
#define HEDDLE_UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define HEDDLE_NOINLINE      __attribute__((noinline))
#define HEDDLE_INLINE        inline __attribute__((always_inline))
#define HEDDLE_COLD          __attribute__((cold, noinline))
#define HEDDLE_UNUSED        __attribute__((unused))
#define HEDDLE_PREFETCH(p)   __builtin_prefetch(p)
#define HEDDLE_PREFETCH_W(p) __builtin_prefetch(p, 1)
/* The compiler checks argument `fmt` (from 1) against those from `first`. */
#define HEDDLE_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define HEDDLE_LIKELY(x)   (x)
#define HEDDLE_UNLIKELY(x) (x)
#define HEDDLE_NOINLINE
#define HEDDLE_INLINE inline
#define HEDDLE_COLD
#define HEDDLE_UNUSED
#define HEDDLE_PREFETCH(p)   ((void)(p))
#define HEDDLE_PREFETCH_W(p) ((void)(p))
#define HEDDLE_PRINTF(fmt, first)
#endif

#endif /* HEDDLE_BASE_COMPILER_H */
