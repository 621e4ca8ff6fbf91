/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_TEXT_H
#define HEDDLE_BASE_TEXT_H

/*
 * Text without allocation and without locale: a bounded string builder,
 * numbers for people, and strict parsers of what people type.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "heddle/status.h"

/* buf[len] == '\0' and len < cap, always, once initialised with cap > 0. What
 * does not fit is dropped, never in the middle of a UTF-8 character, and
 * is_truncated stays set: later additions are dropped too. */
struct heddle_text {
    char *buf;
    size_t cap;
    size_t len;
    bool is_truncated;
};

void heddle_text_init(struct heddle_text *t, char *buf, size_t cap);
void heddle_text_clear(struct heddle_text *t);

/* printf-like. Keep %f, %e and %g out: the host's locale decides about their
 * decimal point. heddle_text_fixed() and heddle_text_double() do not ask it. */
HEDDLE_PRINTF(2, 3)
void heddle_text_add(struct heddle_text *t, const char *fmt, ...);
HEDDLE_PRINTF(2, 0)
void heddle_text_vadd(struct heddle_text *t, const char *fmt, va_list ap);
void heddle_text_str(struct heddle_text *t, const char *s);
void heddle_text_mem(struct heddle_text *t, const char *s, size_t n);

/* The fewest digits that read back as the same double; "nan", "inf", "-inf". */
void heddle_text_double(struct heddle_text *t, double v);
/* `decimals` (0 to 9) digits after the point, rounded half away from zero. */
void heddle_text_fixed(struct heddle_text *t, double v, unsigned decimals);
/* "512 B", "1.50 KiB", "23.5 GiB": three digits, powers of 1024. */
void heddle_text_bytes(struct heddle_text *t, uint64_t bytes);
/* "12 ns", "1.50 us", "2.35 ms", "41.0 s": three digits below a minute, then
 * "1 min 5 s" and "2 h 3 min". */
void heddle_text_ns(struct heddle_text *t, uint64_t ns);
/* "999", "12.3 k", "1.00 M": three digits, powers of 1000. */
void heddle_text_count(struct heddle_text *t, uint64_t n);

/*
 * Parsers. The whole string must match, blanks included.
 *
 * HEDDLE_OK         *out is set
 * HEDDLE_EINVAL     NULL, empty or malformed
 * HEDDLE_EOVERFLOW  well formed, but it does not fit
 */
/* Decimal digits, no sign. */
HEDDLE_MUST_USE heddle_status heddle_parse_u64(const char *s, uint64_t *out);
/* The same with an optional '-' or '+'. */
HEDDLE_MUST_USE heddle_status heddle_parse_i64(const char *s, int64_t *out);
/* 1 0, on off, yes no, true false. */
HEDDLE_MUST_USE heddle_status heddle_parse_bool(const char *s, bool *out);
/* Bytes: "4096", "512M", "1.5GiB", "9GB", "25%". K M G T P E are powers of 1024, alone and
 * with "iB"; with "B" they are powers of 1000; letters in either case. A percentage, at
 * most 100, is taken of `total` (0: percentages are HEDDLE_EINVAL). Rounded down. */
HEDDLE_MUST_USE heddle_status heddle_parse_size(const char *s, uint64_t total, uint64_t *out);
/* A duration in nanoseconds: "250ms", "1.5s"; units ns us ms s min h, required
 * except for 0. Rounded down. */
HEDDLE_MUST_USE heddle_status heddle_parse_ns(const char *s, uint64_t *out);

#endif /* HEDDLE_BASE_TEXT_H */
