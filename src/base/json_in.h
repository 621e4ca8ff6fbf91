/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_JSON_IN_H
#define HEDDLE_BASE_JSON_IN_H

/*
 * JSON reader: one item after another, without allocation and without a tree.
 *
 *     heddle_json_in_init(&j, text, len);
 *     while (heddle_json_next(&j, &item) != HEDDLE_JSON_DONE) ...
 *
 * A text is one value of RFC 8259. The reader checks all of the grammar, UTF-8 and
 * surrogates included, so a text that reached HEDDLE_JSON_DONE was valid. The first
 * fault sticks: every later call returns HEDDLE_JSON_BAD, and `what` and `at` say what
 * was wrong where. Time is linear in the text, the nesting is limited.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

enum { HEDDLE_JSON_IN_DEPTH = 63 };

enum heddle_json_kind {
    HEDDLE_JSON_DONE, /* the end of the text, behind a complete value */
    HEDDLE_JSON_BAD,
    HEDDLE_JSON_OBJECT, /* { */
    HEDDLE_JSON_ARRAY,  /* [ */
    HEDDLE_JSON_CLOSE,  /* the } or ] of the innermost object or array */
    HEDDLE_JSON_KEY,    /* in objects: the value comes next */
    HEDDLE_JSON_STRING,
    HEDDLE_JSON_NUMBER,
    HEDDLE_JSON_TRUE,
    HEDDLE_JSON_FALSE,
    HEDDLE_JSON_NULL
};

/* An item: a part of the text, borrowed from it. For keys and strings what stands
 * between the quotes, escapes included. */
struct heddle_json_item {
    enum heddle_json_kind kind;
    const char *text;
    size_t len;
};

struct heddle_json_in {
    const char *begin, *at, *end;
    const char *what; /* the fault, without the place; NULL: none */
    unsigned depth;
    uint64_t in_object; /* bit d: level d is an object */
    unsigned want;      /* what may come next */
};

/* `text` has a zero behind its len bytes, and outlives the reader. */
void heddle_json_in_init(struct heddle_json_in *j, const char *text, size_t len);

/* The next item; returns its kind. */
enum heddle_json_kind heddle_json_next(struct heddle_json_in *j, struct heddle_json_item *item);

/* Passes over the rest of a value whose first item was `item`. False: a fault. */
bool heddle_json_skip(struct heddle_json_in *j, const struct heddle_json_item *item);

/* Is the key or string `item` this text? Escapes in the item count as what they mean. */
bool heddle_json_is(const struct heddle_json_item *item, const char *text);

/*
 * The key or string with escapes resolved, and a zero behind it.
 *
 * HEDDLE_EINVAL     the item is no string
 * HEDDLE_EOVERFLOW  it does not fit into cap bytes
 */
HEDDLE_MUST_USE heddle_status heddle_json_get_string(const struct heddle_json_item *item, char *buf,
                                                     size_t cap, size_t *len_out);

/* A number. HEDDLE_EINVAL: the item is none. */
HEDDLE_MUST_USE heddle_status heddle_json_get_double(const struct heddle_json_item *item,
                                                     double *out);
/* A number that is whole ("3", "3.0" and "3e0" are). HEDDLE_EINVAL: not one.
 * HEDDLE_EOVERFLOW: it does not fit. */
HEDDLE_MUST_USE heddle_status heddle_json_get_i64(const struct heddle_json_item *item,
                                                  int64_t *out);
HEDDLE_MUST_USE heddle_status heddle_json_get_u64(const struct heddle_json_item *item,
                                                  uint64_t *out);

#endif /* HEDDLE_BASE_JSON_IN_H */
