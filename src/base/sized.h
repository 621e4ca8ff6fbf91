/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_SIZED_H
#define HEDDLE_BASE_SIZED_H

/*
 * What the first field of a public struct, `size_t size`, means: one answer for
 * all of them (ADR 0029).
 *
 * A program sets the field to sizeof, so the library knows which header the
 * program was compiled with. Structs grow at their end only.
 *
 *   smaller   the program has an older header: fields that the program does not
 *             know count as zero, and are not written
 *   larger    the program has a newer header: accepted while the fields that the
 *             library does not know are zero; filled with zero in an output
 *   0         refused: the program has forgotten the field
 *
 * A size that no header can have (less than the fields a call cannot do without,
 * or 64 KiB and more beyond what the library knows) is refused like 0.
 */
#include <stddef.h>
#include <string.h>

#include "heddle/status.h"

/*
 * Copies an input struct into `to`, of `known` bytes, whose size field becomes
 * `known`. `from` NULL: all fields are zero. `name`: "struct heddle_x", for the
 * sentence, which goes to `why` (may be NULL) of `why_bytes` bytes.
 *
 * HEDDLE_EINVAL  the size is refused; `to` is as it was
 */
HEDDLE_MUST_USE heddle_status heddle_sized_get(const char *name, void *to, size_t known,
                                               const void *from, char *why, size_t why_bytes);

/* The same for an options struct that has the fields `why` and `why_bytes` itself,
 * the first of them `why_at` bytes behind its beginning: the sentence goes there,
 * if the program's struct has them. */
HEDDLE_MUST_USE heddle_status heddle_sized_get_opts(const char *name, void *to, size_t known,
                                                    const void *from, size_t why_at);

/*
 * May the library fill the struct at `out`? To be asked before anything is done.
 * `least`: the bytes that the call cannot do without.
 *
 * HEDDLE_EINVAL  `out` is NULL, or its size is refused
 */
HEDDLE_MUST_USE heddle_status heddle_sized_room(const char *name, const void *out, size_t known,
                                                size_t least, char *why, size_t why_bytes);

/* Fills `out`, for which heddle_sized_room() was HEDDLE_OK, from a struct of `known`
 * bytes; out's size field stays. */
void heddle_sized_put(void *out, const void *from, size_t known);

/* Zeroes all of a result but its size field, for its fini(). */
void heddle_sized_clear(void *out);

#define HEDDLE_SIZED_GET(type, to, from, why, why_bytes)                                           \
    heddle_sized_get(#type, to, sizeof(type), from, why, why_bytes)
/* For a struct that stands inside others and so cannot grow: its last fields are
 * `reserved`, and must be zero like what the library does not know. */
#define HEDDLE_SIZED_GET_FIXED(type, to, from, why, why_bytes)                                     \
    (memset(to, 0, sizeof(type)),                                                                  \
     heddle_sized_get(#type, to, offsetof(type, reserved), from, why, why_bytes))
#define HEDDLE_SIZED_GET_OPTS(type, to, from)                                                      \
    heddle_sized_get_opts(#type, to, sizeof(type), from, offsetof(type, why))
#define HEDDLE_SIZED_ROOM(type, out, why, why_bytes)                                               \
    heddle_sized_room(#type, out, sizeof(type), sizeof(size_t), why, why_bytes)
/* For a result that is ended with fini(): its memory hangs off the field `own`. */
#define HEDDLE_SIZED_ROOM_OWN(type, out, why, why_bytes)                                           \
    heddle_sized_room(#type, out, sizeof(type), offsetof(type, own) + sizeof(void *), why,         \
                      why_bytes)

#endif /* HEDDLE_BASE_SIZED_H */
