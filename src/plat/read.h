/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAT_READ_H
#define HEDDLE_PLAT_READ_H

/*
 * Text files for the readers of machine descriptions: a whole file in memory,
 * lines, words, and the one sentence when something is
 * wrong.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/number.h"
#include "base/why.h"
#include "heddle/alloc.h"
#include "heddle/status.h"

#define HEDDLE_PLAT_PATH  1024
#define HEDDLE_PLAT_WORDS 32u
#define HEDDLE_PLAT_LINE  4096u

struct heddle_plat_text {
    const struct heddle_allocator *a;
    const char *path; /* borrowed */
    char *text;       /* text[len] == 0 */
    size_t len;
    size_t at;     /* the next line */
    unsigned line; /* number of the current one; 0: none */
    char *why;
    size_t cap;
    char buf[HEDDLE_PLAT_LINE];
    char *word[HEDDLE_PLAT_WORDS];
    unsigned nwords;
};

/* HEDDLE_ENOENT, HEDDLE_EIO, HEDDLE_EFORMAT (a folder, too large), HEDDLE_ENOMEM;
 * t->path, t->a, t->why and t->cap are set by the caller before. */
HEDDLE_MUST_USE heddle_status heddle_plat_text_open(struct heddle_plat_text *t);
void heddle_plat_text_close(struct heddle_plat_text *t);
void heddle_plat_text_rewind(struct heddle_plat_text *t);

/* The words of the next line that has some, without comments (a word that begins
 * with '#', to the end of the line). HEDDLE_AGAIN: the end. HEDDLE_EFORMAT. */
HEDDLE_MUST_USE heddle_status heddle_plat_text_next(struct heddle_plat_text *t);
/* Splits one line. */
HEDDLE_MUST_USE heddle_status heddle_plat_text_split(struct heddle_plat_text *t, const char *s,
                                                     size_t n);

/* "path:line: sentence" (without what is unknown) into why; returns
 * HEDDLE_EFORMAT. */
#define HEDDLE_PLAT_TEXT_BAD(t, ...)                                                               \
    heddle_why_line((t)->why, (t)->cap, (t)->path, (t)->line, __VA_ARGS__)

#endif /* HEDDLE_PLAT_READ_H */
