/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_RECUTILS_H
#define HEDDLE_TRACE_RECUTILS_H

/*
 * Text in the syntax of GNU recutils: records of "Field: value" lines with
 * empty lines between them. "+ more" continues a value on a line of its own, a
 * backslash at the end joins the next line, "#" begins a comment line. Private
 * to trace.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum heddle_recutils_item {
    HEDDLE_RECUTILS_FIELD,  /* name, value and field_line are set */
    HEDDLE_RECUTILS_RECORD, /* a record ended; several in a row are possible */
    HEDDLE_RECUTILS_END,
    HEDDLE_RECUTILS_BAD, /* why is set, field_line too; reading is over */
};

/* Reads text in place: names and values are pieces of it. */
struct heddle_recutils {
    char *p;
    char *end; /* writable: the text has one byte more */
    size_t line;

    size_t field_line; /* counted from 1 */
    const char *name;
    const char *value; /* continued lines are separated by '\n' */
    const char *why;
};

void heddle_recutils_init(struct heddle_recutils *r, char *text, size_t bytes);
enum heddle_recutils_item heddle_recutils_next(struct heddle_recutils *r);

/* Values. The next word of a list, which is advanced; false: there is none, or
 * it does not fit (then *list stays where it is and word is ""). */
enum { HEDDLE_RECUTILS_WORD = 64 };
bool heddle_recutils_word(const char **list, char word[HEDDLE_RECUTILS_WORD]);

/* A decimal number, "-12.5e3", times 10^scale, rounded to an integer; false: it
 * is not one, or beyond +-2^62. */
bool heddle_recutils_scaled(const char *s, int scale, int64_t *out);
bool heddle_recutils_double(const char *s, double *out);
/* Hexadecimal digits, with or without 0x. */
bool heddle_recutils_hex(const char *s, uint64_t *out);

#endif /* HEDDLE_TRACE_RECUTILS_H */
