/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_NOTES_H
#define HEDDLE_BASE_NOTES_H

/*
 * A growing list of sentences: what the caller should know about a result that is good.
 * All memory is in one scratch, so the list goes with the object that it is about.
 */
#include <stddef.h>

#include "base/compiler.h"
#include "base/scratch.h"
#include "heddle/status.h"

enum { HEDDLE_NOTE_BYTES = 320 }; /* a longer note is cut */

struct heddle_notes {
    struct heddle_scratch *mem;
    const char **text; /* [n] */
    size_t n, cap;
};

/* Adds a sentence. HEDDLE_ENOMEM: the list is unchanged. */
HEDDLE_PRINTF(2, 3)
HEDDLE_MUST_USE heddle_status heddle_notes_add(struct heddle_notes *notes, const char *fmt, ...);

#endif /* HEDDLE_BASE_NOTES_H */
