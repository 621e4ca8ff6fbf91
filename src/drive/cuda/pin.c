/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pin: which memory of the host is pinned.
 *
 * Purpose    the bus reads pinned memory by itself, at its full rate. Pinning takes
 *            long (0.1 s per GB), so a thread of its own pins, while copies go
 *            through staging buffers; once a range is pinned, copies of it go direct.
 * Structure  ranges by address that do not overlap: on their way to be registered,
 *            registered, or pinned by the user. A large range is taken at once, a
 *            smaller one when it is asked for a second time; one that overlaps
 *            another only in part stays as it is, and so does one that CUDA refused.
 * Uses       a copy holds the range that it reads or writes. Two handles may have the
 *            same memory, one after the other: a range that the first handle gives up
 *            while a copy of the second is in flight is unpinned when that copy has
 *            ended (is_gone).
 * Invariants (1) `bytes` is the sum of what is QUEUED, BUSY and OURS, <= limit
 *            (2) a range is in the list of the thread exactly while QUEUED
 * Threads    `lock` guards everything; any thread may call pin() and unpin(). No
 *            slow call is made with the lock held.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "drive/cuda/dev.h"
#include "drive/host.h"

#define AT_ONCE ((size_t)1 << 20)
#define AT_ALL  HEDDLE_CUDA_SMALL /* smaller copies have a way of their own */

enum range_state {
    RANGE_QUEUED, /* for the thread */
    RANGE_BUSY,   /* being registered, or given back */
    RANGE_OURS,
    RANGE_THEIRS /* the program has pinned it */
};

struct heddle_cuda_range {
    struct heddle_cuda_range *next;
    char *start;
    size_t bytes;
    enum range_state state;
    unsigned nuses; /* copies on their way */
    bool is_gone;   /* given up: no further copy takes it */
};

/* The place of the first range that ends behind `at`. */
static size_t range_find(const struct heddle_cuda_pins *p, const char *at)
{
    size_t lo = 0, hi = p->nranges;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct heddle_cuda_range *r = p->range[mid];

        if (r->start + r->bytes <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool range_insert(struct heddle_dev *dev, size_t i, char *start, size_t bytes,
                         enum range_state state)
{
    struct heddle_cuda_pins *p = &dev->pins;
    const struct heddle_allocator *a = dev->env.alloc;
    struct heddle_cuda_range *r, **more;
    size_t cap;

    if (p->nranges == p->cap) {
        cap = p->cap != 0 ? 2 * p->cap : 64;
        more = heddle_alloc(a, cap * sizeof(*more));
        if (more == NULL)
            return false;
        if (p->nranges != 0)
            memcpy(more, p->range, p->nranges * sizeof(*more));
        heddle_free(a, p->range, p->cap * sizeof(*more));
        p->range = more;
        p->cap = cap;
    }
    r = heddle_alloc(a, sizeof(*r));
    if (r == NULL)
        return false;
    *r = (struct heddle_cuda_range){.start = start, .bytes = bytes, .state = state};
    memmove(&p->range[i + 1], &p->range[i], (p->nranges - i) * sizeof(p->range[0]));
    p->range[i] = r;
    p->nranges++;
    if (state == RANGE_QUEUED) {
        p->bytes += bytes;
        *p->tail = r;
        p->tail = &r->next;
    }
    return true;
}

static void range_unqueue(struct heddle_cuda_pins *p, struct heddle_cuda_range *r)
{
    struct heddle_cuda_range **at = &p->first;

    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (p->tail == &r->next)
        p->tail = at;
}

static void range_remove(struct heddle_dev *dev, struct heddle_cuda_range *r)
{
    struct heddle_cuda_pins *p = &dev->pins;
    const size_t i = range_find(p, r->start);

    HEDDLE_ASSERT(p->range[i] == r);
    if (r->state == RANGE_QUEUED)
        range_unqueue(p, r);
    if (r->state != RANGE_THEIRS)
        p->bytes -= r->bytes;
    memmove(&p->range[i], &p->range[i + 1], (p->nranges - i - 1) * sizeof(p->range[0]));
    p->nranges--;
    heddle_free(dev->env.alloc, r, sizeof(*r));
}

/* --- the thread ---------------------------------------------------------- */

/* Are these bytes pinned already? Needs a context. */
static bool is_host_memory(struct heddle_dev *dev, const char *at)
{
    unsigned type = 0;

    return dev->api.cuPointerGetAttribute(&type, HEDDLE_CU_POINTER_MEMORY_TYPE,
                                          (heddle_cu_ptr)(uintptr_t)at) == 0 &&
           type == HEDDLE_CU_MEMORY_HOST;
}

static bool is_pinned_already(struct heddle_dev *dev, const char *start, size_t bytes)
{
    return is_host_memory(dev, start) && is_host_memory(dev, start + bytes - 1);
}

/* Another device of this process may have been faster: that counts as well. */
static enum range_state range_register(struct heddle_dev *dev, char *start, size_t bytes, bool *ok)
{
    const heddle_cu_result err =
        dev->api.cuMemHostRegister_v2(start, bytes, HEDDLE_CU_HOST_PORTABLE);

    *ok = err == 0 ||
          (err == HEDDLE_CU_HOST_MEMORY_ALREADY_REGISTERED && is_pinned_already(dev, start, bytes));
    return err == 0 ? RANGE_OURS : RANGE_THEIRS;
}

static void *pin_main(void *arg)
{
    struct heddle_dev *dev = arg;
    struct heddle_cuda_pins *p = &dev->pins;

    dev->api.cuCtxSetCurrent(dev->context);
    heddle_mutex_lock(&p->lock);
    for (;;) {
        struct heddle_cuda_range *r;
        enum range_state state;
        bool ok;

        while (!p->stops && p->first == NULL)
            pthread_cond_wait(&p->work, &p->lock.m);
        if (p->stops)
            break;
        r = p->first;
        range_unqueue(p, r);
        r->state = RANGE_BUSY;
        heddle_mutex_unlock(&p->lock);
        state = range_register(dev, r->start, r->bytes, &ok);
        heddle_mutex_lock(&p->lock);
        if (ok && state == RANGE_THEIRS)
            p->bytes -= r->bytes;
        if (ok) {
            r->state = state;
        } else {
            (void)!heddle_map_put(&p->wanted, (uint64_t)(uintptr_t)r->start, 0);
            range_remove(dev, r);
        }
        pthread_cond_broadcast(&p->done);
    }
    heddle_mutex_unlock(&p->lock);
    return NULL;
}

/* With the lock. */
static bool pin_start(struct heddle_dev *dev)
{
    const struct heddle_thread_opts opts = {.name = "heddle-pin"};
    struct heddle_cuda_pins *p = &dev->pins;

    if (!p->has_thread)
        p->has_thread = heddle_thread_create(&p->thread, &opts, pin_main, dev) == HEDDLE_OK;
    return p->has_thread;
}

/* --- the calls ----------------------------------------------------------- */

/* The thread's own context comes back: it may be the user's. */
static bool asks_already(struct heddle_dev *dev, const char *start, size_t bytes)
{
    heddle_cu_context before = NULL;
    bool is;

    dev->api.cuCtxGetCurrent(&before);
    if (before != dev->context)
        dev->api.cuCtxSetCurrent(dev->context);
    is = is_pinned_already(dev, start, bytes);
    if (before != dev->context)
        dev->api.cuCtxSetCurrent(before);
    return is;
}

/* With the lock. True: this range is to be looked at; *i is its place. */
static bool pin_is_new(struct heddle_cuda_pins *p, const char *start, size_t bytes, size_t *i)
{
    *i = range_find(p, start);
    return *i == p->nranges || start + bytes <= p->range[*i]->start;
}

void heddle_cuda_pin(struct heddle_dev *dev, void *host, size_t bytes)
{
    struct heddle_cuda_pins *p = &dev->pins;
    const uint64_t key = (uint64_t)(uintptr_t)host;
    uint64_t seen = 0;
    bool was_seen, is_theirs = false;
    size_t i;

    if (bytes < AT_ALL)
        return;
    heddle_mutex_lock(&p->lock);
    was_seen = heddle_map_get(&p->wanted, key, &seen);
    if (!pin_is_new(p, host, bytes, &i) || (was_seen && seen != bytes)) {
        heddle_mutex_unlock(&p->lock);
        return;
    }
    if (!was_seen) {
        heddle_mutex_unlock(&p->lock);
        is_theirs = asks_already(dev, host, bytes);
        heddle_mutex_lock(&p->lock);
        if (!pin_is_new(p, host, bytes, &i)) {
            heddle_mutex_unlock(&p->lock);
            return;
        }
    }
    if (is_theirs) {
        (void)range_insert(dev, i, host, bytes, RANGE_THEIRS);
    } else if (!was_seen && bytes < AT_ONCE) {
        (void)!heddle_map_put(&p->wanted, key, bytes);
    } else if (p->bytes + bytes <= p->limit && pin_start(dev) &&
               range_insert(dev, i, host, bytes, RANGE_QUEUED)) {
        heddle_map_remove(&p->wanted, key, NULL);
        pthread_cond_signal(&p->work);
    }
    heddle_mutex_unlock(&p->lock);
}

static void host_unregister(struct heddle_dev *dev, void *start)
{
    heddle_cu_context before = NULL;

    dev->api.cuCtxGetCurrent(&before);
    if (before != dev->context)
        dev->api.cuCtxSetCurrent(dev->context);
    dev->api.cuMemHostUnregister(start);
    if (before != dev->context)
        dev->api.cuCtxSetCurrent(before);
}

/* With the lock, which is open while CUDA works. Until then the range stays in its
 * place, so that no thread takes this memory for pinned by the program. */
static void range_give_up(struct heddle_dev *dev, struct heddle_cuda_range *r)
{
    struct heddle_cuda_pins *p = &dev->pins;

    r->is_gone = true;
    if (r->nuses > 0)
        return;
    if (r->state == RANGE_OURS) {
        r->state = RANGE_BUSY;
        heddle_mutex_unlock(&p->lock);
        host_unregister(dev, r->start);
        heddle_mutex_lock(&p->lock);
    }
    range_remove(dev, r);
    pthread_cond_broadcast(&p->done);
}

static struct heddle_cuda_range *range_at(struct heddle_cuda_pins *p, const void *start,
                                          size_t bytes)
{
    const size_t i = range_find(p, start);

    if (i == p->nranges || p->range[i]->start != (const char *)start || p->range[i]->bytes != bytes)
        return NULL;
    return p->range[i];
}

void heddle_cuda_unpin(struct heddle_dev *dev, void *host, size_t bytes)
{
    struct heddle_cuda_pins *p = &dev->pins;
    struct heddle_cuda_range *r;

    heddle_mutex_lock(&p->lock);
    heddle_map_remove(&p->wanted, (uint64_t)(uintptr_t)host, NULL);
    while ((r = range_at(p, host, bytes)) != NULL && r->state == RANGE_BUSY)
        pthread_cond_wait(&p->done, &p->lock.m);
    if (r != NULL)
        range_give_up(dev, r);
    heddle_mutex_unlock(&p->lock);
}

/* With the lock. The range that all of it is in; NULL: it is not pinned. */
static struct heddle_cuda_range *range_around(struct heddle_cuda_pins *p, const char *at,
                                              size_t bytes)
{
    const size_t i = range_find(p, at);
    struct heddle_cuda_range *r = i < p->nranges ? p->range[i] : NULL;

    return r != NULL && !r->is_gone && (r->state == RANGE_OURS || r->state == RANGE_THEIRS) &&
                   r->start <= at && at + bytes <= r->start + r->bytes
               ? r
               : NULL;
}

struct heddle_cuda_range *heddle_cuda_pin_hold(struct heddle_dev *dev, const void *host,
                                               size_t bytes)
{
    struct heddle_cuda_pins *p = &dev->pins;
    struct heddle_cuda_range *r;

    heddle_mutex_lock(&p->lock);
    if ((r = range_around(p, host, bytes)) != NULL)
        r->nuses++;
    heddle_mutex_unlock(&p->lock);
    return r;
}

void heddle_cuda_pin_drop(struct heddle_dev *dev, struct heddle_cuda_range *r)
{
    struct heddle_cuda_pins *p = &dev->pins;

    heddle_mutex_lock(&p->lock);
    r->nuses--;
    if (r->is_gone)
        range_give_up(dev, r);
    heddle_mutex_unlock(&p->lock);
}

void heddle_cuda_pin_doubt(struct heddle_dev *dev, const void *host)
{
    struct heddle_cuda_pins *p = &dev->pins;
    size_t i;

    heddle_mutex_lock(&p->lock);
    i = range_find(p, host);
    if (i < p->nranges && p->range[i]->state == RANGE_THEIRS) {
        struct heddle_cuda_range *r = p->range[i];

        (void)!heddle_map_put(&p->wanted, (uint64_t)(uintptr_t)r->start, 0);
        range_give_up(dev, r);
    }
    heddle_mutex_unlock(&p->lock);
}

heddle_status heddle_cuda_pins_init(struct heddle_dev *dev)
{
    struct heddle_cuda_pins *p = &dev->pins;
    uint64_t total, available;

    if (pthread_cond_init(&p->work, NULL) != 0)
        return HEDDLE_ENOMEM;
    if (pthread_cond_init(&p->done, NULL) != 0) {
        pthread_cond_destroy(&p->work);
        return HEDDLE_ENOMEM;
    }
    heddle_mutex_init(&p->lock, HEDDLE_RANK_LEAF, "cuda pins");
    heddle_map_init(&p->wanted, dev->env.alloc);
    p->tail = &p->first;
    heddle_host_memory(&total, &available);
    p->limit = total / 2;
    p->is_ready = true;
    return HEDDLE_OK;
}

void heddle_cuda_pins_fini(struct heddle_dev *dev)
{
    struct heddle_cuda_pins *p = &dev->pins;

    if (!p->is_ready)
        return;
    heddle_mutex_lock(&p->lock);
    p->stops = true;
    pthread_cond_broadcast(&p->work);
    heddle_mutex_unlock(&p->lock);
    if (p->has_thread)
        (void)!heddle_thread_join(&p->thread);
    for (size_t i = 0; i < p->nranges; i++) {
        if (p->range[i]->state == RANGE_OURS)
            dev->api.cuMemHostUnregister(p->range[i]->start);
        heddle_free(dev->env.alloc, p->range[i], sizeof(*p->range[i]));
    }
    heddle_free(dev->env.alloc, p->range, p->cap * sizeof(p->range[0]));
    heddle_map_fini(&p->wanted);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    heddle_mutex_fini(&p->lock);
}
