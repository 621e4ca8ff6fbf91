/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc: the one door to host memory.
 *
 * Purpose    lets a context bring its own allocator and lets a test make the
 *            k-th allocation fail.
 * Threads    as safe as the allocator behind it; the default one is.
 */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *default_alloc(void *user, size_t bytes, size_t align)
{
    void *p = NULL;

    (void)user;
    if (align <= _Alignof(max_align_t))
        return malloc(bytes);
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}

static void default_free(void *user, void *ptr, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(ptr);
}

const struct heddle_allocator heddle_allocator_default = {
    .alloc = default_alloc,
    .free = default_free,
};

void *heddle_alloc_aligned(const struct heddle_allocator *a, size_t bytes, size_t align)
{
    if (a == NULL)
        a = &heddle_allocator_default;
    return bytes == 0 ? NULL : a->alloc(a->user, bytes, align);
}

void *heddle_alloc(const struct heddle_allocator *a, size_t bytes)
{
    return heddle_alloc_aligned(a, bytes, _Alignof(max_align_t));
}

void *heddle_alloc_large(const struct heddle_allocator *a, size_t bytes)
{
    const size_t huge = (size_t)2 << 20;
    void *p;

    if (bytes < 2 * huge)
        return heddle_alloc(a, bytes);
    p = heddle_alloc_aligned(a, bytes, huge);
    if (p != NULL) /* a hint; up to the last whole one, the rest is others' */
        (void)madvise(p, bytes / huge * huge, MADV_HUGEPAGE);
    return p;
}

void *heddle_zalloc_aligned(const struct heddle_allocator *a, size_t n, size_t bytes, size_t align)
{
    size_t total;
    void *p;

    if (!heddle_mul(&total, n, bytes))
        return NULL;
    p = heddle_alloc_aligned(a, total, align);
    if (p != NULL)
        memset(p, 0, total);
    return p;
}

void *heddle_zalloc(const struct heddle_allocator *a, size_t n, size_t bytes)
{
    return heddle_zalloc_aligned(a, n, bytes, _Alignof(max_align_t));
}

void heddle_free(const struct heddle_allocator *a, void *ptr, size_t bytes)
{
    if (a == NULL)
        a = &heddle_allocator_default;
    if (ptr != NULL)
        a->free(a->user, ptr, bytes);
}

char *heddle_strdup(const struct heddle_allocator *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = heddle_alloc(a, n);

    if (p != NULL)
        memcpy(p, s, n);
    return p;
}

void heddle_strfree(const struct heddle_allocator *a, char *s)
{
    if (s != NULL)
        heddle_free(a, s, strlen(s) + 1);
}
