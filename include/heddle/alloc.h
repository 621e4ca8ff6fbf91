/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ALLOC_H
#define HEDDLE_ALLOC_H

/*
 * heddle/alloc.h - where Heddle gets host memory from.
 *
 * A context allocates host memory through one table of functions and through nothing else.
 * A table that is all zero stands for the C library's allocator.
 */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of an allocator. Any thread may call them at any time, also while Heddle
 * holds a lock: so they must not call Heddle. */
struct heddle_allocator {
    /* Required. `bytes` > 0, `align` a power of two. NULL: there is no memory; the caller
     * goes on without. */
    void *(*alloc)(void *user, size_t bytes, size_t align);

    /* Required. `bytes` is the number given to alloc(). */
    void (*free)(void *user, void *ptr, size_t bytes);

    /* Passed to both. */
    void *user;
};

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ALLOC_H */
