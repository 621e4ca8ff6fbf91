/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * masks: see masks.h.
 *
 * Invariants (1) the first ncls heaps are those of the single classes, so there is
 *                always one for a task that can run somewhere
 *            (2) aux is the push number; it orders equal priorities
 *            (3) `nowhere` holds what can run on no class; lost() hands it out
 */
#include "sched/masks.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/spin.h"
#include "sched/heap.h"

enum { MASKS_MORE = 32 };

struct masks_heap {
    uint64_t mask;
    struct heddle_heap heap;
};

struct heddle_masks {
    struct heddle_spin lock;
    struct heddle_sched_env env;
    heddle_heap_before before;
    uint32_t pushes;
    uint64_t lost;
    unsigned nheaps;
    _Atomic size_t count; /* a hint for idle workers */
    struct heddle_heap nowhere;
    struct masks_heap heap[64 + MASKS_MORE];
};

static bool masks_by_order(const void *ctx, const struct heddle_sched_task *a,
                           const struct heddle_sched_task *b)
{
    (void)ctx;
    return (int32_t)(a->aux - b->aux) < 0;
}

static bool masks_by_prio(const void *ctx, const struct heddle_sched_task *a,
                          const struct heddle_sched_task *b)
{
    return a->prio != b->prio ? a->prio > b->prio : masks_by_order(ctx, a, b);
}

heddle_status heddle_masks_create(const struct heddle_sched_env *env, bool by_prio,
                                  struct heddle_masks **out)
{
    struct heddle_masks *m;

    if (env->ncls > 64)
        return HEDDLE_ENOSYS;
    m = heddle_zalloc(env->alloc, 1, sizeof(*m));
    if (m == NULL)
        return HEDDLE_ENOMEM;
    heddle_spin_init(&m->lock);
    m->env = *env;
    m->before = by_prio ? masks_by_prio : masks_by_order;
    m->nheaps = env->ncls;
    for (unsigned c = 0; c < env->ncls; c++)
        m->heap[c].mask = UINT64_C(1) << c;
    *out = m;
    return HEDDLE_OK;
}

void heddle_masks_destroy(struct heddle_masks *m)
{
    if (m != NULL)
        heddle_free(m->env.alloc, m, sizeof(*m));
}

/* The heap of a mask; a new one, or that of its first class, when there is none. */
static struct heddle_heap *masks_heap(struct heddle_masks *m, uint64_t mask)
{
    if (mask == 0)
        return &m->nowhere;
    for (unsigned i = 0; i < m->nheaps; i++)
        if (m->heap[i].mask == mask)
            return &m->heap[i].heap;
    for (unsigned i = m->env.ncls; i < m->nheaps; i++)
        if (m->heap[i].heap.count == 0) {
            m->heap[i].mask = mask;
            return &m->heap[i].heap;
        }
    if (m->nheaps < m->env.ncls + MASKS_MORE) {
        m->heap[m->nheaps].mask = mask;
        return &m->heap[m->nheaps++].heap;
    }
    return &m->heap[__builtin_ctzll(mask)].heap;
}

void heddle_masks_push(struct heddle_masks *m, struct heddle_sched_task *t)
{
    uint64_t mask = 0;

    for (unsigned c = 0; c < m->env.ncls; c++)
        if (m->env.view->cost(m->env.view_self, t, c, NULL) != INFINITY)
            mask |= UINT64_C(1) << c;
    heddle_spin_lock(&m->lock);
    t->aux = m->pushes++;
    heddle_heap_push(masks_heap(m, mask & ~m->lost), t, m->before, NULL);
    heddle_add_rlx(&m->count, 1u); /* the lock carries the data */
    heddle_spin_unlock(&m->lock);
}

struct heddle_sched_task *heddle_masks_pop(struct heddle_masks *m, unsigned worker)
{
    const unsigned cls = m->env.class_of[worker];
    struct heddle_heap *best = NULL;
    struct heddle_sched_task *t = NULL;

    if (heddle_load_rlx(&m->count) == 0)
        return NULL;
    heddle_spin_lock(&m->lock);
    for (unsigned i = 0; i < m->nheaps; i++) {
        struct heddle_heap *h = &m->heap[i].heap;

        if ((m->heap[i].mask >> cls & 1) != 0 && h->root != NULL &&
            (best == NULL || m->before(NULL, h->root, best->root)))
            best = h;
    }
    if (best != NULL) {
        t = heddle_heap_pop(best, m->before, NULL);
        heddle_add_rlx(&m->count, (size_t)-1);
    }
    heddle_spin_unlock(&m->lock);
    return t;
}

static void masks_drain(struct heddle_masks *m, struct heddle_heap *h,
                        struct heddle_sched_task **out)
{
    struct heddle_sched_task *t;

    while ((t = heddle_heap_pop(h, m->before, NULL)) != NULL) {
        t->link[0] = *out;
        *out = t;
        heddle_add_rlx(&m->count, (size_t)-1);
    }
}

struct heddle_sched_task *heddle_masks_lost(struct heddle_masks *m, unsigned cls)
{
    struct heddle_sched_task *out = NULL;

    heddle_spin_lock(&m->lock);
    m->lost |= UINT64_C(1) << cls;
    for (unsigned i = 0; i < m->nheaps; i++) {
        const uint64_t left = m->heap[i].mask & ~m->lost;

        if (left == 0)
            masks_drain(m, &m->heap[i].heap, &out);
        if (i >= m->env.ncls)
            m->heap[i].mask = left; /* 0: free for another mask */
    }
    masks_drain(m, &m->nowhere, &out);
    heddle_spin_unlock(&m->lock);
    return out;
}
