/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ALLOC_H
#define HEDDLE_ALLOC_H

/*
 * heddle/alloc.h - where Heddle gets host memory from.
 *
 * A context allocates through one such table and through nothing else. Leave
 * it zero for the C library's allocator.
 */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct heddle_allocator {
    /* Required. `bytes` > 0, `align` a power of two. NULL: no memory, which is
     * an ordinary answer. May be called from any thread at any time, also
     * while Heddle holds a lock: it must not call Heddle. */
    void *(*alloc)(void *user, size_t bytes, size_t align);

    /* Required. `bytes` is what alloc() was asked for. */
    void (*free)(void *user, void *ptr, size_t bytes);

    /* Passed to both. */
    void *user;
};

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ALLOC_H */
