/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack: a wait inside of a task goes on on another stack before this one is full.
 *
 * Purpose    a thread that waits inside of a task runs other tasks, which may wait as
 *            well: frames pile up without a bound. Every one of them gets at least half
 *            of a thread's stack.
 * Structure  a chain of threads, each of which waits for the next to end: one logical
 *            stack in several pieces. The last thread holds the slot.
 * Invariants (1) one thread of the chain runs, all others are in
 *                heddle_thread_join(): nothing else changes for the engine
 * Threads    the holder of a slot.
 */
#include "core/stack.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/thread.h"

bool heddle_stack_look(struct worker *w)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    pthread_attr_t attr;
    void *low = NULL;
    size_t bytes = 0;

    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return false; /* unknown: as good as large */
    if (pthread_attr_getstack(&attr, &low, &bytes) != 0)
        bytes = 0;
    pthread_attr_destroy(&attr);
    if (here - (uintptr_t)low >= bytes)
        return false; /* a stack that is not the thread's own: a fiber's, say */
    w->stack_half = (uintptr_t)low + bytes / 2;
    w->stack_room = bytes - bytes / 2;
    return here < w->stack_half;
}

struct stack_piece {
    struct worker *w;
    void (*fn)(void *arg);
    void *arg;
};

static void *piece_main(void *arg)
{
    struct stack_piece *p = arg;

    /* Relaxed: as in heddle_worker_main(). */
    heddle_store_rlx(&p->w->self, (uintptr_t)pthread_self());
    p->fn(p->arg);
    return NULL;
}

void heddle_stack_call(struct worker *w, void (*fn)(void *arg), void *arg)
{
    struct stack_piece p = {.w = w, .fn = fn, .arg = arg};
    const struct heddle_thread_opts o = {.name = "heddle-stack"};
    const uintptr_t self = heddle_load_rlx(&w->self);
    struct heddle_thread next;

    if (!heddle_stack_is_low(w) || heddle_thread_create(&next, &o, piece_main, &p) != HEDDLE_OK) {
        fn(arg);
        return;
    }
    (void)!heddle_thread_join(&next);
    heddle_store_rlx(&w->self, self);
}
