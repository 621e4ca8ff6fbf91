/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ws: work stealing. Each worker has a deque; a worker whose deque is empty steals
 * from the others, nearest first.
 *
 * Purpose    the default on CPUs: tasks stay where their data were just written,
 *            and nothing is shared by all workers in the steady state.
 * Structure  a deque per worker (owner: last in first out); a ring for what the
 *            submitter makes ready, from which workers claim batches in order; a
 *            locked list for the two rare cases: a full deque or ring, and pushes
 *            by threads that are no workers.
 * Invariant  a task is in exactly one of deque, ring, list
 * Threads    see base/deque.h and base/ring.h; the list has its own lock.
 * Cost       push and pop without contention: a few nanoseconds; a batch claim:
 *            one contended operation per up to 16 tasks.
 */
#include "base/alloc.h"
#include "base/deque.h"
#include "base/ring.h"
#include "sched/list.h"

enum { WS_DEQUE = 4096, WS_RING = 8192, WS_BATCH = 16 };

struct ws_worker {
    struct heddle_deque deque;
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint64_t steals; /* owner writes */
};

struct ws {
    const struct heddle_allocator *alloc;
    unsigned nworkers;
    const unsigned *order;
    struct ws_worker *worker;
    struct heddle_ring ring;

    _Alignas(HEDDLE_CACHE_LINE) struct heddle_sched_list list;
};

static heddle_status ws_init(void *self, const struct heddle_sched_env *env)
{
    struct ws *q = self;
    heddle_status st;

    q->alloc = env->alloc;
    q->nworkers = env->nworkers;
    q->order = env->steal_order;
    q->worker =
        heddle_zalloc_aligned(env->alloc, env->nworkers, sizeof(*q->worker), HEDDLE_CACHE_LINE);
    if (q->worker == NULL)
        return HEDDLE_ENOMEM;
    st = heddle_ring_init(&q->ring, env->alloc, WS_RING);
    for (unsigned w = 0; w < q->nworkers && st == HEDDLE_OK; w++)
        st = heddle_deque_init(&q->worker[w].deque, env->alloc, WS_DEQUE);
    return st;
}

static void ws_fini(void *self)
{
    struct ws *q = self;

    if (q->worker == NULL)
        return;
    for (unsigned w = 0; w < q->nworkers; w++)
        heddle_deque_fini(&q->worker[w].deque, q->alloc);
    heddle_ring_fini(&q->ring, q->alloc);
    heddle_free(q->alloc, q->worker, q->nworkers * sizeof(*q->worker));
}

static void ws_push(void *self, struct heddle_sched_task *t, int worker)
{
    struct ws *q = self;
    bool ok = false;

    if (worker >= 0)
        ok = heddle_deque_push(&q->worker[worker].deque, t);
    else if (worker == HEDDLE_SCHED_SUBMITTER)
        ok = heddle_ring_push(&q->ring, t);
    if (!ok)
        heddle_sched_list_push(&q->list, t);
}

/* A batch from the ring: the first is returned, the rest go to the own deque so
 * that they come out in order and can be stolen. */
static struct heddle_sched_task *ws_claim(struct ws *q, unsigned worker)
{
    void *item[WS_BATCH];
    size_t n = heddle_ring_claim(&q->ring, item, WS_BATCH, 2 * q->nworkers);

    if (n == 0)
        return NULL;
    for (size_t i = n; i-- > 1;)
        ws_push(q, item[i], (int)worker);
    return item[0];
}

static struct heddle_sched_task *ws_steal(struct ws *q, unsigned worker)
{
    const unsigned n = q->nworkers - 1;
    struct heddle_sched_task *t;

    for (unsigned i = 0; i < n; i++) {
        struct heddle_deque *d = &q->worker[q->order[(size_t)worker * n + i]].deque;

        if (heddle_deque_seems_empty(d))
            continue;
        t = heddle_deque_steal(d);
        if (t != NULL) {
            /* A counter that only its owner writes. */
            heddle_store_rlx(&q->worker[worker].steals,
                             heddle_load_rlx(&q->worker[worker].steals) + 1);
            return t;
        }
    }
    return NULL;
}

static size_t ws_length(void *self, unsigned worker, uint64_t *taken_out)
{
    struct ws *q = self;

    return heddle_deque_length(&q->worker[worker].deque, taken_out);
}

static struct heddle_sched_task *ws_pop(void *self, unsigned worker)
{
    struct ws *q = self;
    struct heddle_deque *own = &q->worker[worker].deque;
    struct heddle_sched_task *t =
        q->nworkers == 1 ? heddle_deque_pop_alone(own) : heddle_deque_pop(own);

    if (t == NULL)
        t = ws_claim(q, worker);
    if (t == NULL)
        t = heddle_sched_list_pop(&q->list);
    if (t == NULL)
        t = ws_steal(q, worker);
    return t;
}

static uint64_t ws_steals(void *self)
{
    struct ws *q = self;
    uint64_t n = 0;

    for (unsigned w = 0; w < q->nworkers; w++)
        n += heddle_load_rlx(&q->worker[w].steals);
    return n;
}

const struct heddle_sched_ops heddle_sched_ws = {
    .name = "ws",
    .help = "a deque per worker, stealing from the nearest (default)",
    .instance_size = sizeof(struct ws),
    .allows_handoff = true,
    .init = ws_init,
    .fini = ws_fini,
    .push = ws_push,
    .length = ws_length,
    .pop = ws_pop,
    .steals = ws_steals,
};
