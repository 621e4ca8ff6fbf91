/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: simulated devices on a virtual clock, as a driver.
 *
 * Structure   a job is an operation in flight. It waits in its stream, then runs
 *             (a kernel) or lines up in its link (a copy), then ends. Running jobs
 *             and moving copies have an event in the heap (heap.h).
 * Invariants  1. nflying is the number of operations whose done() is due.
 *             2. A job is on its device's list from when it was given until its
 *                end. A barrier is not.
 *             3. heddle_sim_step() needs no memory.
 * Memory      with `executes` a buffer has a header in front of it, so that free()
 *             can keep it until what was given before has ended.
 * Threads     one at a time.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "drive/sim/world.h"

/* Fake addresses are no address of any process: to touch one is a fault. */
#define FAKE_BASE  ((uint64_t)1 << 56)
#define FAKE_END   ((uint64_t)1 << 62)
#define FAKE_MAX   ((uint64_t)1 << 50) /* more at once is no memory */
#define FAKE_ALIGN 256u

struct heddle_dev {
    struct heddle_dev_base base;
    struct heddle_sim *s;
    unsigned cls;
    const char *why;
};

static heddle_status create_classes(struct heddle_sim *s)
{
    for (unsigned i = 0; i < s->plat->ncls; i++) {
        struct sim_class *c = &s->cls[i];

        c->factor = 1;
        c->stream = heddle_zalloc(&s->alloc, s->plat->cls[i].nworkers + 1u, sizeof(*c->stream));
        if (c->stream == NULL)
            return HEDDLE_ENOMEM;
    }
    return HEDDLE_OK;
}

static heddle_status create_parts(struct heddle_sim *s)
{
    const struct heddle_plat *p = s->plat;

    s->cls = heddle_zalloc(&s->alloc, p->ncls + 1u, sizeof(*s->cls));
    s->node = heddle_zalloc(&s->alloc, p->nnodes + 1u, sizeof(*s->node));
    if (s->cls == NULL || s->node == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(create_classes(s));
    HEDDLE_TRY(heddle_sim_links_create(s));
    return heddle_sim_faults_create(s);
}

heddle_status heddle_sim_create(const struct heddle_allocator *a, const struct heddle_plat *plat,
                                bool executes, struct heddle_sim **sim_out)
{
    struct heddle_sim *s = heddle_zalloc(a, 1, sizeof(*s));
    heddle_status st;

    if (s == NULL)
        return HEDDLE_ENOMEM;
    s->alloc = a != NULL ? *a : heddle_allocator_default;
    s->plat = plat;
    s->executes = executes;
    s->fake = FAKE_BASE;
    s->heap.a = &s->alloc;
    st = create_parts(s);
    if (st != HEDDLE_OK) {
        heddle_sim_destroy(s);
        return st;
    }
    *sim_out = s;
    return HEDDLE_OK;
}

static void destroy_classes(struct heddle_sim *s)
{
    for (unsigned i = 0; s->cls != NULL && i < s->plat->ncls; i++) {
        struct sim_class *c = &s->cls[i];

        c->own.head = c->incoming.head = NULL;
        heddle_sim_flush(s, c);
        heddle_free(&s->alloc, c->stream, (s->plat->cls[i].nworkers + 1u) * sizeof(*c->stream));
    }
    heddle_free(&s->alloc, s->cls, (s->plat->ncls + 1u) * sizeof(*s->cls));
}

void heddle_sim_destroy(struct heddle_sim *s)
{
    struct heddle_allocator a;

    if (s == NULL)
        return;
    a = s->alloc;
    destroy_classes(s);
    heddle_sim_links_destroy(s);
    heddle_free(&a, s->node, (s->plat->nnodes + 1u) * sizeof(*s->node));
    sim_heap_fini(&s->heap);
    heddle_free(&a, s, sizeof(*s));
}

uint64_t heddle_sim_now(const struct heddle_sim *s)
{
    return heddle_load_rlx(&s->now);
}

static bool fault_hits(const struct heddle_sim *s, enum heddle_fault_kind kind, unsigned where,
                       uint64_t n)
{
    for (unsigned i = 0; i < s->plat->nfaults; i++) {
        const struct heddle_fault *f = &s->plat->fault[i];

        if (f->kind == kind && f->where == where && f->nth == n)
            return true;
    }
    return false;
}

static void dev_info(const struct heddle_plat *p, unsigned cls, struct heddle_dev_info *info)
{
    const struct heddle_plat_class *c = &p->cls[cls];

    *info = (struct heddle_dev_info){
        .kind = c->kind,
        .nstreams = c->nworkers,
        .memory_total = p->node[c->node].bytes,
        .memory_free = p->node[c->node].bytes,
        .peak_flops = c->gflops * 1e9 * c->nworkers,
        .peak_bytes_per_s = c->gbytes * 1e9 * c->nworkers,
    };
    _Static_assert(sizeof(info->name) == sizeof(c->name), "names differ");
    _Static_assert(sizeof(info->model) == sizeof(c->model), "models differ");
    memcpy(info->name, c->name, sizeof(info->name));
    memcpy(info->model, c->model, sizeof(info->model));
}

static heddle_status sim_probe(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                               unsigned cap, unsigned *n_out)
{
    const struct heddle_sim *s = env->world;

    *n_out = 0;
    if (s == NULL)
        return HEDDLE_OK;
    for (unsigned i = 0; i < s->plat->ncls && i < cap; i++)
        dev_info(s->plat, i, &info[i]);
    *n_out = s->plat->ncls;
    return HEDDLE_OK;
}

static heddle_status sim_open(const struct heddle_drive_env *env, unsigned index,
                              struct heddle_dev **dev_out)
{
    struct heddle_sim *s = env->world;
    struct heddle_dev *dev;

    if (s == NULL || index >= s->plat->ncls)
        return HEDDLE_ENOENT;
    dev = heddle_zalloc(&s->alloc, 1, sizeof(*dev));
    if (dev == NULL)
        return HEDDLE_ENOMEM;
    dev->base.driver = &heddle_driver_sim;
    dev_info(s->plat, index, &dev->base.info);
    dev->s = s;
    dev->cls = index;
    dev->why = "";
    *dev_out = dev;
    return HEDDLE_OK;
}

static void sim_close(struct heddle_dev *dev)
{
    struct sim_class *c = &dev->s->cls[dev->cls];

    heddle_sim_flush(dev->s, c);
    heddle_free(&dev->s->alloc, dev, sizeof(*dev));
}

static unsigned dev_node(const struct heddle_dev *dev)
{
    return dev->s->plat->cls[dev->cls].node;
}

static heddle_status dev_fail(struct heddle_dev *dev, heddle_status st, const char *why)
{
    dev->why = why;
    return st;
}

static heddle_status dev_ready(struct heddle_dev *dev, unsigned stream)
{
    if (dev->s->cls[dev->cls].is_lost)
        return dev_fail(dev, HEDDLE_EDEV, "the simulated device was lost");
    if (stream > dev->s->plat->cls[dev->cls].nworkers)
        return dev_fail(dev, HEDDLE_EINVAL, "there is no such stream");
    return HEDDLE_OK;
}

static void *fake_address(struct heddle_sim *s, size_t bytes)
{
    uint64_t at = s->fake;

    if (bytes > FAKE_MAX)
        return NULL;
    if (at >= FAKE_END)
        at = FAKE_BASE;
    s->fake = at + (bytes + FAKE_ALIGN - 1) / FAKE_ALIGN * FAKE_ALIGN;
    return (void *)(uintptr_t)at;
}

static void *real_memory(struct heddle_sim *s, size_t bytes)
{
    struct sim_buffer *b;
    size_t all;

    if (!heddle_add(&all, bytes, SIM_BUFFER_HEAD))
        return NULL;
    b = heddle_alloc_aligned(&s->alloc, all, SIM_BUFFER_HEAD);
    if (b == NULL)
        return NULL;
    b->bytes = bytes;
    return (char *)(void *)b + SIM_BUFFER_HEAD;
}

static heddle_status sim_alloc(struct heddle_dev *dev, size_t bytes, unsigned stream,
                               void **ptr_out)
{
    struct heddle_sim *s = dev->s;
    const unsigned node = dev_node(dev);
    void *p;

    HEDDLE_TRY(dev_ready(dev, stream));
    if (fault_hits(s, HEDDLE_FAULT_ALLOC, node, ++s->node[node].nallocs))
        return dev_fail(dev, HEDDLE_ENOMEM, "the machine description makes this allocation fail");
    p = s->executes ? real_memory(s, bytes) : fake_address(s, bytes);
    if (p == NULL)
        return dev_fail(dev, HEDDLE_ENOMEM, "no memory of that size");
    s->node[node].used += bytes;
    *ptr_out = p;
    return HEDDLE_OK;
}

static void sim_free(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream)
{
    struct heddle_sim *s = dev->s;
    struct sim_class *c = &s->cls[dev->cls];
    struct sim_buffer *b;

    (void)stream;
    if (ptr == NULL)
        return;
    s->node[dev_node(dev)].used -= bytes;
    if (!s->executes)
        return;
    b = (struct sim_buffer *)(void *)((char *)ptr - SIM_BUFFER_HEAD);
    HEDDLE_ASSERT(b->bytes == bytes);
    b->number = c->next_number;
    b->next = NULL;
    if (c->free_tail != NULL)
        c->free_tail->next = b;
    else
        c->free_head = b;
    c->free_tail = b;
    heddle_sim_flush(s, c);
}

static bool copy_fault(struct heddle_sim *s, unsigned from, unsigned to)
{
    bool hit = fault_hits(s, HEDDLE_FAULT_COPY, from, ++s->node[from].ncopies);

    if (to != from && fault_hits(s, HEDDLE_FAULT_COPY, to, ++s->node[to].ncopies))
        hit = true;
    return hit;
}

static heddle_status sim_copy(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                              struct heddle_op *op)
{
    struct heddle_sim *s = dev->s;
    unsigned from = dev_node(dev), to = 0;
    struct sim_job *j;
    int link;

    HEDDLE_TRY(dev_ready(dev, stream));
    if (c->kind == HEDDLE_COPY_PEER)
        to = dev_node(c->peer);
    if (c->kind == HEDDLE_COPY_IN) {
        to = from;
        from = 0;
    }
    link = from == to ? -1 : sim_link_between(s, from, to);
    if (link < 0 && from != to)
        return dev_fail(dev, HEDDLE_ENOSYS, "no link joins the two memories");
    j = sim_job_get(&s->heap, SIM_COPY);
    if (j == NULL)
        return dev_fail(dev, HEDDLE_ENOMEM, "no memory for a copy");
    j->op = op;
    j->cls = dev->cls;
    j->stream = stream;
    j->link = link;
    if (c->kind == HEDDLE_COPY_PEER)
        j->peer_cls = c->peer->cls;
    j->bytes = heddle_runs_bytes(&c->runs);
    j->copy = *c;
    j->st = copy_fault(s, from, to) ? HEDDLE_EIO : HEDDLE_OK;
    if (j->st != HEDDLE_OK)
        dev->why = "the machine description makes this copy fail";
    heddle_sim_give(s, j);
    return HEDDLE_OK;
}

static bool sim_can_peer(struct heddle_dev *dev, struct heddle_dev *to)
{
    const unsigned a = dev_node(dev);

    if (heddle_dev_base(to)->driver != dev->base.driver || to->s != dev->s ||
        dev->s->cls[dev->cls].is_lost || dev->s->cls[to->cls].is_lost)
        return false;
    return a == dev_node(to) || sim_link_between(dev->s, a, dev_node(to)) >= 0;
}

static heddle_status sim_launch(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                                unsigned stream, struct heddle_op *op)
{
    struct heddle_sim *s = dev->s;
    struct sim_job *j;

    HEDDLE_TRY(dev_ready(dev, stream));
    if (sim_is_copy_stream(s, dev->cls, stream))
        return dev_fail(dev, HEDDLE_EINVAL, "this stream is for copies only");
    if (!(l->model_ns >= 0 && l->model_ns < SIM_NS_MAX))
        return dev_fail(dev, HEDDLE_EINVAL, "it is not known how long this takes");
    j = sim_job_get(&s->heap, SIM_KERNEL);
    if (j == NULL)
        return dev_fail(dev, HEDDLE_ENOMEM, "no memory for a launch");
    j->op = op;
    j->cls = dev->cls;
    j->stream = stream;
    j->ns = l->model_ns;
    j->share = l->share_ns > 0 && l->model_ns > 0
                   ? (l->share_ns < l->model_ns ? l->share_ns / l->model_ns : 1)
                   : 0;
    j->run = l->run;
    j->x = l->x;
    if (fault_hits(s, HEDDLE_FAULT_KERNEL, dev->cls, ++s->cls[dev->cls].nlaunches)) {
        j->st = HEDDLE_ETASK;
        dev->why = "the machine description makes this launch fail";
    }
    heddle_sim_give(s, j);
    return HEDDLE_OK;
}

static heddle_status sim_order(struct heddle_dev *dev, unsigned stream, struct heddle_op *op)
{
    struct heddle_sim *s = dev->s;
    struct sim_job *first = op->priv[0];
    struct sim_job *b;

    HEDDLE_TRY(dev_ready(dev, stream));
    if (first == NULL)
        return HEDDLE_OK; /* it has ended */
    if (op->priv[0] == (void *)op)
        return dev_fail(dev, HEDDLE_ENOMEM, "no memory to order by");
    b = sim_job_get(&s->heap, SIM_BARRIER);
    if (b == NULL)
        return dev_fail(dev, HEDDLE_ENOMEM, "no memory to order by");
    b->cls = dev->cls;
    b->stream = stream;
    heddle_sim_hold(s, b, first);
    return HEDDLE_OK;
}

/* heddle_sim_step() is what ends operations. */
static unsigned sim_progress(struct heddle_dev *dev)
{
    (void)dev;
    return 0;
}

static uint64_t sim_memory_free(struct heddle_dev *dev)
{
    const unsigned node = dev_node(dev);
    const uint64_t all = dev->s->plat->node[node].bytes;
    const uint64_t used = dev->s->node[node].used;

    return all > used ? all - used : 0;
}

static const char *sim_error(struct heddle_dev *dev)
{
    return dev->why;
}

const struct heddle_driver heddle_driver_sim = {
    .name = "sim",
    .help = "devices of a machine description, on a virtual clock",
    .kind = HEDDLE_DEV_CPU,
    .probe = sim_probe,
    .open = sim_open,
    .close = sim_close,
    .alloc = sim_alloc,
    .free = sim_free,
    .copy = sim_copy,
    .can_peer = sim_can_peer,
    .launch = sim_launch,
    .order = sim_order,
    .progress = sim_progress,
    .memory_free = sim_memory_free,
    .error = sim_error,
};
