/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_JSON_H
#define HEDDLE_BASE_JSON_H

/*
 * JSON writer: values go out as they come, into memory or a FILE.
 *
 * The first error sticks; later calls do nothing, so a caller checks once, at
 * the end. Errors: HEDDLE_ENOMEM, HEDDLE_EIO, HEDDLE_ESTATE (a call that does
 * not fit here: a value without a key, an end without a begin),
 * HEDDLE_EOVERFLOW (more than HEDDLE_JSON_DEPTH levels).
 *
 * Several values may follow each other at the top when heddle_json_line() ends
 * each: JSON Lines.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#define HEDDLE_JSON_DEPTH 63

struct heddle_json {
    const struct heddle_allocator *a;
    FILE *file; /* NULL: into buf */
    char *buf;  /* the text, zero-terminated when not NULL */
    size_t len, cap;
    heddle_status st;
    unsigned depth;
    uint64_t in_object; /* bit d: level d is an object, not an array */
    uint64_t has_item;  /* bit d: level d needs a comma before the next */
    bool has_key;       /* a key waits for its value */
};

/* `a` may be NULL (the default one) and must outlive the writer. */
void heddle_json_init(struct heddle_json *j, const struct heddle_allocator *a);
/* The file stays the caller's. */
void heddle_json_init_file(struct heddle_json *j, FILE *file);
/* Zeroed memory is fine. */
void heddle_json_fini(struct heddle_json *j);

void heddle_json_object(struct heddle_json *j); /* { */
void heddle_json_array(struct heddle_json *j);  /* [ */
void heddle_json_end(struct heddle_json *j);    /* the matching } or ] */
void heddle_json_key(struct heddle_json *j, const char *key);

/* NULL is written as null. Bytes that are not UTF-8 become U+FFFD. */
void heddle_json_str(struct heddle_json *j, const char *s);
void heddle_json_strn(struct heddle_json *j, const char *s, size_t n);
void heddle_json_int(struct heddle_json *j, int64_t v);
void heddle_json_uint(struct heddle_json *j, uint64_t v);
/* Shortest text that reads back the same; NaN and infinities are null. */
void heddle_json_double(struct heddle_json *j, double v);
void heddle_json_bool(struct heddle_json *j, bool v);
void heddle_json_null(struct heddle_json *j);

/* A newline after a complete top-level value; the next one may follow. */
void heddle_json_line(struct heddle_json *j);

/* The first error, or HEDDLE_ESTATE when a value is still open. Flushes a
 * file. */
HEDDLE_MUST_USE heddle_status heddle_json_finish(struct heddle_json *j);

/* key + value in one call. */
static inline void heddle_json_key_str(struct heddle_json *j, const char *key, const char *v)
{
    heddle_json_key(j, key);
    heddle_json_str(j, v);
}

static inline void heddle_json_key_int(struct heddle_json *j, const char *key, int64_t v)
{
    heddle_json_key(j, key);
    heddle_json_int(j, v);
}

static inline void heddle_json_key_uint(struct heddle_json *j, const char *key, uint64_t v)
{
    heddle_json_key(j, key);
    heddle_json_uint(j, v);
}

static inline void heddle_json_key_double(struct heddle_json *j, const char *key, double v)
{
    heddle_json_key(j, key);
    heddle_json_double(j, v);
}

static inline void heddle_json_key_bool(struct heddle_json *j, const char *key, bool v)
{
    heddle_json_key(j, key);
    heddle_json_bool(j, v);
}

#endif /* HEDDLE_BASE_JSON_H */
