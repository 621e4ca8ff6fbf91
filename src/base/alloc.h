/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_ALLOC_H
#define HEDDLE_BASE_ALLOC_H

/*
 * Host memory for the library: every allocation of src/ goes through a
 * struct heddle_allocator, so a test can make any of them fail. Frees carry
 * the size. NULL for `a` means the default allocator.
 */
#include <stdbool.h>
#include <stddef.h>

#include "heddle/alloc.h"

extern const struct heddle_allocator heddle_allocator_default;

/* NULL when there is no memory or bytes is 0. Aligned for any type. */
void *heddle_alloc(const struct heddle_allocator *a, size_t bytes);
void *heddle_alloc_aligned(const struct heddle_allocator *a, size_t bytes, size_t align);
/* The same for arrays that may be very large, from a few MiB on in huge pages:
 * the first touch of each small page costs more than a pass over it. */
void *heddle_alloc_large(const struct heddle_allocator *a, size_t bytes);
/* heddle_alloc, zeroed; n * bytes is checked for overflow (then NULL). */
void *heddle_zalloc(const struct heddle_allocator *a, size_t n, size_t bytes);
void *heddle_zalloc_aligned(const struct heddle_allocator *a, size_t n, size_t bytes, size_t align);
/* NULL is fine. `bytes` is what was asked for (n * bytes for zalloc). */
void heddle_free(const struct heddle_allocator *a, void *ptr, size_t bytes);

/* A copy of a string; free it with strlen + 1 bytes (heddle_strfree). */
char *heddle_strdup(const struct heddle_allocator *a, const char *s);
void heddle_strfree(const struct heddle_allocator *a, char *s);

/* *out = a * b; false (and *out untouched) when it does not fit. */
static inline bool heddle_mul(size_t *out, size_t a, size_t b)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool heddle_add(size_t *out, size_t a, size_t b)
{
    size_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

#endif /* HEDDLE_BASE_ALLOC_H */
