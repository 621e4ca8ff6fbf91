/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_SHADOW_H
#define HEDDLE_CORE_SHADOW_H

/* The access checker's copy of an operand; inside of the checker alone. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data.h"

struct shadow {
    heddle_handle *unit; /* NULL: none of its own */
    char *buf;           /* guard, elements and gaps, guard */
    char *image;         /* the second half of the same block */
    size_t bytes;        /* of each half; a multiple of 8 */
    size_t first;        /* offset of the first element */
    bool can_write;
    bool is_output; /* and was not read into the shadow */
};

/* A hash of all elements. */
uint64_t heddle_shadow_hash(const struct heddle_layout *l, const char *base);
/* Bytes of a floating-point number of this type; 0: it has none. */
size_t heddle_shadow_float(enum heddle_dtype t);
/* Random bytes everywhere. */
void heddle_shadow_fill(struct shadow *s, uint64_t seed);
/* The elements of the original, into shadow and image. */
void heddle_shadow_read(struct shadow *s);
/* All elements to the original, whether they were written or not. */
void heddle_shadow_store(struct shadow *s);
/* Elements that changed since the image was made, to the original. */
void heddle_shadow_flush(struct shadow *s);
/* Are guards and gaps as they were? */
bool heddle_shadow_is_tight(const struct shadow *s);
/* Elements that are as they were lent. */
size_t heddle_shadow_unchanged(const struct shadow *s);
/* How many of them may be so by chance. */
size_t heddle_shadow_luck(const heddle_handle *h);
/* Nothing was written to an output, and that is no chance. */
bool heddle_shadow_is_untouched(const struct shadow *s);

#endif /* HEDDLE_CORE_SHADOW_H */
