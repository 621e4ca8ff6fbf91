/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu: the simplest driver. Its memory is the host's; whatever it is given is
 * done inside of progress(). For tests, and as the example to copy.
 *
 * Structure  one list for all streams, first in first out: the order in each
 *            stream and every order() follow from that.
 * Invariants (1) a freed buffer stays in the list behind its last use
 *            (2) free() cannot fail: the list entry is inside of the buffer
 * Threads    none of its own.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "drive/drive.h"
#include "drive/host.h"

#define STREAMS 2
#define ALIGN   64

enum item_kind { ITEM_COPY, ITEM_LAUNCH, ITEM_FREE };

struct item {
    enum item_kind kind;
    size_t bytes; /* of the allocation that holds it */
    struct item *next;
};

/* A copy or a launch. */
struct work {
    struct item item;
    struct heddle_op *op;
    struct heddle_copy copy;
    struct heddle_dev_launch launch;
};

/* In front of a buffer; ALIGN bytes in all. */
struct head {
    struct item item;
};

struct heddle_dev {
    struct heddle_dev_base base;
    struct heddle_drive_env env;
    struct item *first, **last;
    size_t nitems;
    uint64_t used;
};

extern const struct heddle_driver heddle_driver_cpu; /* the end of this file */

static void cpu_describe(struct heddle_dev_info *info)
{
    *info = (struct heddle_dev_info){.name = "cpu",
                                     .model = "host",
                                     .kind = HEDDLE_DEV_CPU,
                                     .nstreams = STREAMS,
                                     .is_cpu = true};
    heddle_host_memory(&info->memory_total, &info->memory_free);
}

static heddle_status cpu_probe(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                               unsigned cap, unsigned *n_out)
{
    (void)env;
    if (cap > 0)
        cpu_describe(info);
    *n_out = 1;
    return HEDDLE_OK;
}

static heddle_status cpu_open(const struct heddle_drive_env *env, unsigned index,
                              struct heddle_dev **dev_out)
{
    struct heddle_dev *dev;

    if (index != 0)
        return HEDDLE_ENOENT;
    dev = heddle_zalloc(env->alloc, 1, sizeof(*dev));
    if (dev == NULL)
        return HEDDLE_ENOMEM;
    dev->base.driver = &heddle_driver_cpu;
    dev->env = *env;
    dev->last = &dev->first;
    cpu_describe(&dev->base.info);
    *dev_out = dev;
    return HEDDLE_OK;
}

static void cpu_put(struct heddle_dev *dev, struct item *i)
{
    i->next = NULL;
    *dev->last = i;
    dev->last = &i->next;
    dev->nitems++;
}

static struct item *cpu_take(struct heddle_dev *dev)
{
    struct item *i = dev->first;

    dev->first = i->next;
    if (dev->first == NULL)
        dev->last = &dev->first;
    dev->nitems--;
    return i;
}

/* What is left are buffers: nothing is in flight. */
static void cpu_close(struct heddle_dev *dev)
{
    while (dev->first != NULL) {
        struct item *i = cpu_take(dev);

        HEDDLE_ASSERT(i->kind == ITEM_FREE);
        heddle_free(dev->env.alloc, i, i->bytes);
    }
    heddle_free(dev->env.alloc, dev, sizeof(*dev));
}

static heddle_status cpu_alloc(struct heddle_dev *dev, size_t bytes, unsigned stream,
                               void **ptr_out)
{
    const uint64_t total = dev->base.info.memory_total;
    struct head *h;

    (void)stream;
    /* Refused here, not by the system: it would hand out addresses that it has
     * no memory for. */
    if (bytes > SIZE_MAX - ALIGN || (total != 0 && (bytes > total || dev->used > total - bytes)))
        return HEDDLE_ENOMEM;
    h = heddle_alloc_aligned(dev->env.alloc, ALIGN + bytes, ALIGN);
    if (h == NULL)
        return HEDDLE_ENOMEM;
    h->item = (struct item){.kind = ITEM_FREE, .bytes = ALIGN + bytes};
    dev->used += bytes;
    *ptr_out = (char *)h + ALIGN;
    return HEDDLE_OK;
}

static void cpu_free(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream)
{
    struct head *h = (void *)((char *)ptr - ALIGN);

    _Static_assert(sizeof(struct head) <= ALIGN, "the head has its own room");
    (void)stream;
    HEDDLE_ASSERT(h->item.bytes == ALIGN + bytes);
    dev->used -= bytes;
    if (dev->first == NULL)
        heddle_free(dev->env.alloc, h, h->item.bytes);
    else
        cpu_put(dev, &h->item);
}

static struct work *cpu_work(struct heddle_dev *dev, enum item_kind kind, struct heddle_op *op)
{
    struct work *w = heddle_zalloc(dev->env.alloc, 1, sizeof(*w));

    if (w == NULL)
        return NULL;
    w->item.kind = kind;
    w->item.bytes = sizeof(*w);
    w->op = op;
    cpu_put(dev, &w->item);
    return w;
}

static heddle_status cpu_copy(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                              struct heddle_op *op)
{
    struct work *w;

    (void)stream;
    if (c->kind == HEDDLE_COPY_PEER)
        return HEDDLE_ENOSYS;
    w = cpu_work(dev, ITEM_COPY, op);
    if (w == NULL)
        return HEDDLE_ENOMEM;
    w->copy = *c;
    return HEDDLE_OK;
}

static heddle_status cpu_launch(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                                unsigned stream, struct heddle_op *op)
{
    struct work *w = cpu_work(dev, ITEM_LAUNCH, op);

    (void)stream;
    if (w == NULL)
        return HEDDLE_ENOMEM;
    w->launch = *l;
    return HEDDLE_OK;
}

/* Everything runs in the order in which it was given anyway. */
static heddle_status cpu_order(struct heddle_dev *dev, unsigned stream, struct heddle_op *op)
{
    (void)dev;
    (void)stream;
    (void)op;
    return HEDDLE_OK;
}

static heddle_status cpu_do(const struct work *w)
{
    const struct heddle_copy *c = &w->copy;

    if (w->item.kind == ITEM_LAUNCH)
        return w->launch.run != NULL ? w->launch.run(w->launch.x) : HEDDLE_OK;
    if (c->kind == HEDDLE_COPY_IN)
        heddle_runs_gather(&c->runs, c->host, c->ptr);
    else
        heddle_runs_scatter(&c->runs, c->ptr, c->host);
    return HEDDLE_OK;
}

static uint64_t cpu_now(const struct heddle_dev *dev)
{
    return dev->env.now_ns != NULL ? dev->env.now_ns(dev->env.user) : 0;
}

/* No more than what is there now: done() may add to the list for ever. */
static unsigned cpu_progress(struct heddle_dev *dev)
{
    unsigned nended = 0;

    for (size_t n = dev->nitems; n > 0; n--) {
        struct item *i = cpu_take(dev);

        if (i->kind != ITEM_FREE) {
            struct heddle_op *op = ((struct work *)i)->op;
            heddle_status st;

            op->begin_ns = cpu_now(dev);
            st = cpu_do((struct work *)i);
            op->end_ns = cpu_now(dev);
            heddle_free(dev->env.alloc, i, i->bytes);
            op->done(op, st);
            nended++;
        } else {
            heddle_free(dev->env.alloc, i, i->bytes);
        }
    }
    return nended;
}

static uint64_t cpu_memory_free(struct heddle_dev *dev)
{
    uint64_t total, available;

    (void)dev;
    heddle_host_memory(&total, &available);
    return available;
}

const struct heddle_driver heddle_driver_cpu = {
    .name = "cpu",
    .help = "the host itself, for tests: work is done inside of progress()",
    .kind = HEDDLE_DEV_CPU,
    .probe = cpu_probe,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .launch = cpu_launch,
    .order = cpu_order,
    .progress = cpu_progress,
    .memory_free = cpu_memory_free,
};
