/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prio: one queue for all workers, highest priority first; among equals the
 * one that was pushed first.
 *
 * Purpose    for graphs whose critical path the user knows.
 * Structure  pairing heap through the tasks themselves: link[0] is the first
 *            child, link[1] the next sibling. No memory besides the tasks.
 *            `aux` holds the push number, so equal priorities stay in order (it
 *            wraps after 2^32 pushes; compared by signed difference).
 * Invariants (1) no child comes before its parent
 *            (2) the root has no sibling
 * Classes    with several, masks.h does it: the first that can run there.
 * Threads    `lock` guards the heap; `count` is a hint for idle workers.
 * Cost       push O(1), pop O(log n) amortised.
 */
#include "base/spin.h"
#include "sched/masks.h"

struct prio {
    struct heddle_spin lock;
    struct heddle_sched_task *root;
    uint32_t pushes;
    _Atomic size_t count;
    struct heddle_masks *masks; /* NULL: one class */
};

static heddle_status prio_init(void *self, const struct heddle_sched_env *env)
{
    struct prio *q = self;

    heddle_spin_init(&q->lock);
    return env->cls == NULL ? HEDDLE_OK : heddle_masks_create(env, true, &q->masks);
}

static void prio_fini(void *self)
{
    struct prio *q = self;

    heddle_masks_destroy(q->masks);
}

static bool prio_before(const struct heddle_sched_task *a, const struct heddle_sched_task *b)
{
    if (a->prio != b->prio)
        return a->prio > b->prio;
    return (int32_t)(a->aux - b->aux) < 0;
}

/* Two roots without siblings become one. */
static struct heddle_sched_task *prio_meld(struct heddle_sched_task *a, struct heddle_sched_task *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (prio_before(b, a)) {
        struct heddle_sched_task *t = a;

        a = b;
        b = t;
    }
    b->link[1] = a->link[0];
    a->link[0] = b;
    return a;
}

/* Melds a list of siblings: pairs from left to right, then right to left. */
static struct heddle_sched_task *prio_merge(struct heddle_sched_task *first)
{
    struct heddle_sched_task *done = NULL, *root = NULL;

    while (first != NULL) {
        struct heddle_sched_task *a = first, *b = a->link[1];

        first = b != NULL ? b->link[1] : NULL;
        a->link[1] = NULL;
        if (b != NULL)
            b->link[1] = NULL;
        a = prio_meld(a, b);
        a->link[1] = done;
        done = a;
    }
    while (done != NULL) {
        struct heddle_sched_task *next = done->link[1];

        done->link[1] = NULL;
        root = prio_meld(root, done);
        done = next;
    }
    return root;
}

static void prio_push(void *self, struct heddle_sched_task *t, int worker)
{
    struct prio *q = self;

    (void)worker;
    if (HEDDLE_UNLIKELY(q->masks != NULL)) {
        heddle_masks_push(q->masks, t);
        return;
    }
    t->link[0] = t->link[1] = NULL;
    heddle_spin_lock(&q->lock);
    t->aux = q->pushes++;
    q->root = prio_meld(q->root, t);
    heddle_add_rlx(&q->count, 1u); /* a hint: the lock carries the data */
    heddle_spin_unlock(&q->lock);
}

static struct heddle_sched_task *prio_pop(void *self, unsigned worker)
{
    struct prio *q = self;
    struct heddle_sched_task *t;

    if (HEDDLE_UNLIKELY(q->masks != NULL))
        return heddle_masks_pop(q->masks, worker);
    if (heddle_load_rlx(&q->count) == 0)
        return NULL;
    heddle_spin_lock(&q->lock);
    t = q->root;
    if (t != NULL) {
        q->root = prio_merge(t->link[0]);
        heddle_add_rlx(&q->count, (size_t)-1);
    }
    heddle_spin_unlock(&q->lock);
    return t;
}

static struct heddle_sched_task *prio_lost(void *self, unsigned cls)
{
    struct prio *q = self;

    return q->masks == NULL ? NULL : heddle_masks_lost(q->masks, cls);
}

const struct heddle_sched_ops heddle_sched_prio = {
    .name = "prio",
    .help = "one central queue, highest priority first",
    .instance_size = sizeof(struct prio),
    .init = prio_init,
    .fini = prio_fini,
    .push = prio_push,
    .pop = prio_pop,
    .knows_classes = true,
    .lost = prio_lost,
};
