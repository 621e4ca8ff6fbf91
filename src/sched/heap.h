/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_HEAP_H
#define HEDDLE_SCHED_HEAP_H

/*
 * Pairing heap through the tasks themselves: link[0] is the first child, link[1]
 * the next sibling. Needs no memory. The caller's function says which of two tasks comes
 * first; its answer must not change while both are in the heap. No lock.
 */
#include "sched/sched.h"

typedef bool (*heddle_heap_before)(const void *ctx, const struct heddle_sched_task *a,
                                   const struct heddle_sched_task *b);

struct heddle_heap {
    struct heddle_sched_task *root;
    size_t count;
};

/* Two roots without siblings become one. */
static inline struct heddle_sched_task *heddle_heap_meld(struct heddle_sched_task *a,
                                                         struct heddle_sched_task *b,
                                                         heddle_heap_before before, const void *ctx)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (before(ctx, b, a)) {
        struct heddle_sched_task *t = a;

        a = b;
        b = t;
    }
    b->link[1] = a->link[0];
    a->link[0] = b;
    return a;
}

static inline void heddle_heap_push(struct heddle_heap *h, struct heddle_sched_task *t,
                                    heddle_heap_before before, const void *ctx)
{
    t->link[0] = t->link[1] = NULL;
    h->root = heddle_heap_meld(h->root, t, before, ctx);
    h->count++;
}

/* NULL: empty. Melds pairs of children from left to right, then right to left. */
static inline struct heddle_sched_task *heddle_heap_pop(struct heddle_heap *h,
                                                        heddle_heap_before before, const void *ctx)
{
    struct heddle_sched_task *top = h->root, *done = NULL, *root = NULL;
    struct heddle_sched_task *next = top != NULL ? top->link[0] : NULL;

    if (top == NULL)
        return NULL;
    while (next != NULL) {
        struct heddle_sched_task *a = next, *b = a->link[1];

        next = b != NULL ? b->link[1] : NULL;
        a->link[1] = NULL;
        if (b != NULL)
            b->link[1] = NULL;
        a = heddle_heap_meld(a, b, before, ctx);
        a->link[1] = done;
        done = a;
    }
    while (done != NULL) {
        next = done->link[1];
        done->link[1] = NULL;
        root = heddle_heap_meld(root, done, before, ctx);
        done = next;
    }
    h->root = root;
    h->count--;
    return top;
}

#endif /* HEDDLE_SCHED_HEAP_H */
