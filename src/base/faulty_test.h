/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_FAULTY_TEST_H
#define HEDDLE_BASE_FAULTY_TEST_H

/*
 * For tests: an allocator that counts, checks the size that comes with each free
 * and the bytes behind the block, and refuses the k-th allocation. Any thread.
 *
 *     for (size_t k = 1; k == 1 || f.has_failed; k++) {
 *         faulty_init(&f, k);
 *         ... everything with &f.a ...
 *         CHECK_EQ(f.nlive, 0);
 *     }
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/alloc.h"
#include "tests/test.h"

struct faulty {
    struct heddle_allocator a;
    size_t fail_at; /* counted from 1; 0: never */
    _Atomic size_t ncalls;
    _Atomic size_t nbytes; /* of all allocations */
    _Atomic size_t nlive;
    _Atomic bool has_failed;
};

enum { FAULTY_TAIL = 64 }; /* bytes behind each block that nobody may touch */

/* In front of each block. */
struct faulty_head {
    size_t bytes;
    void *raw;
};

static inline void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;
    struct faulty_head head = {.bytes = bytes};
    const size_t front = align < 64 ? 64 : align;
    char *p;

    CHECK(bytes > 0);
    CHECK(align > 0 && (align & (align - 1)) == 0);
    if (atomic_fetch_add(&f->ncalls, 1) + 1 == f->fail_at) {
        atomic_store(&f->has_failed, true);
        return NULL;
    }
    if (posix_memalign(&head.raw, front, front + bytes + FAULTY_TAIL) != 0)
        return NULL;
    p = (char *)head.raw + front;
    memcpy(p - sizeof(head), &head, sizeof(head));
    memset(p, 0xa5, bytes); /* nobody may count on zeros */
    memset(p + bytes, 0xbb, FAULTY_TAIL);
    atomic_fetch_add(&f->nlive, 1);
    atomic_fetch_add(&f->nbytes, bytes);
    return p;
}

static inline void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;
    struct faulty_head head;

    memcpy(&head, (char *)ptr - sizeof(head), sizeof(head));
    CHECK_EQ(bytes, head.bytes);
    for (size_t i = 0; i < FAULTY_TAIL; i++)
        CHECK_EQ(((unsigned char *)ptr)[bytes + i], 0xbb);
    CHECK(atomic_fetch_sub(&f->nlive, 1) > 0);
    memset(ptr, 0x5a, bytes);
    free(head.raw);
}

static inline void faulty_init(struct faulty *f, size_t fail_at)
{
    memset(f, 0, sizeof(*f));
    f->a.alloc = faulty_alloc;
    f->a.free = faulty_free;
    f->a.user = f;
    f->fail_at = fail_at;
}

#endif /* HEDDLE_BASE_FAULTY_TEST_H */
