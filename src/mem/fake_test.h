/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MEM_FAKE_TEST_H
#define HEDDLE_MEM_FAKE_TEST_H

/*
 * For tests of this module: an engine of a few lines, in one thread. Node 0 is the
 * host, node i is dev[i - 1] (fake_dev_test.h). The test is the mover; a task is what
 * the test does between ready() and heddle_mem_end().
 */
#include "base/faulty_test.h"
#include "mem/fake_dev_test.h"
#include "mem/internal.h"
#include "tests/test.h"

enum {
    FAKE_UNIT = 256, /* bytes: what the module rounds up to */
    FAKE_N = FAKE_UNIT / sizeof(int32_t)
};

struct fake {
    struct faulty heap;
    struct heddle_registry reg;
    struct heddle_mem *mem;
    struct heddle_dev dev[FAKE_DEVS];
    unsigned ndevs;
    unsigned nlost;                      /* units whose only copy went with a device */
    unsigned nadmitted;                  /* watched requests */
    uint64_t used[FAKE_DEVS + 1];        /* as host.used() told */
    uint64_t moved[HEDDLE_MEM_NREASONS]; /* transfers that ended well, by reason */
};

/* One task: its request, and what ready() said. */
struct fake_task {
    struct heddle_mem_req req; /* first */
    bool is_ready;
    bool has_failed;
    heddle_status st;
};

static inline double fake_link_ns(void *user, unsigned from, unsigned to, uint64_t bytes)
{
    (void)user;
    return (double)bytes * (from == 0 || to == 0 ? 2 : 1); /* straight is faster */
}

static inline void fake_moved(void *user, const struct heddle_mem_move *move, heddle_status st)
{
    struct fake *f = user;

    CHECK(move->from != move->to);
    f->moved[move->why] += st == HEDDLE_OK;
}

static inline void fake_used(void *user, unsigned node, int64_t delta, uint64_t used, uint32_t unit,
                             uint64_t task)
{
    struct fake *f = user;

    (void)unit;
    (void)task;
    f->used[node] += (uint64_t)delta;
    CHECK_EQ(f->used[node], used);
}

static inline void fake_admitted(void *user, struct heddle_mem_req *req)
{
    (void)req;
    ((struct fake *)user)->nadmitted++;
}

static inline void fake_lost(void *user, heddle_handle *unit, unsigned node)
{
    CHECK(heddle_load_acq(&unit->mark) != 0 && node != 0);
    ((struct fake *)user)->nlost++;
}

static inline void fake_kick(void *user)
{
    (void)user; /* the test is the mover, and comes anyway */
}

static inline void fake_forget(void *owner, heddle_handle *h)
{
    struct fake *f = owner;

    if (f->mem != NULL)
        heddle_mem_forget(f->mem, h);
}

static inline void fake_ready(struct heddle_mem_req *req, heddle_status st)
{
    struct fake_task *t = (struct fake_task *)(void *)req;

    CHECK(!t->is_ready && !t->has_failed); /* called once */
    t->is_ready = st == HEDDLE_OK;
    t->has_failed = st != HEDDLE_OK;
    t->st = st;
}

/* `ndevs` devices of `budget` bytes each. The last is a disk, if that is wanted: then
 * the host has the budget `host_budget`. False: no memory. */
static inline bool fake_open(struct fake *f, unsigned ndevs, uint64_t budget, uint64_t host_budget,
                             size_t fail_at)
{
    struct heddle_mem_node_opts node[FAKE_DEVS + 1] = {
        {.kind = HEDDLE_MEM_HOST, .budget = host_budget != 0 ? host_budget : HEDDLE_MEM_NO_LIMIT}};
    struct heddle_mem_opts o = {.node = node, .nnodes = ndevs + 1};

    memset(f, 0, sizeof(*f));
    faulty_init(&f->heap, fail_at);
    heddle_registry_init(&f->reg, f, &f->heap.a);
    f->reg.forget = fake_forget;
    f->ndevs = ndevs;
    for (unsigned i = 0; i < FAKE_DEVS; i++)
        fake_dev_init(&f->dev[i], f->dev);
    for (unsigned i = 0; i < ndevs; i++) {
        const bool is_disk = host_budget != 0 && i + 1 == ndevs;

        node[i + 1] =
            (struct heddle_mem_node_opts){.kind = is_disk ? HEDDLE_MEM_DISK : HEDDLE_MEM_DEVICE,
                                          .dev = &f->dev[i],
                                          .budget = is_disk ? HEDDLE_MEM_NO_LIMIT : budget};
    }
    o.alloc = &f->heap.a;
    o.reg = &f->reg;
    o.host = (struct heddle_mem_host){.user = f,
                                      .link_ns = fake_link_ns,
                                      .moved = fake_moved,
                                      .used = fake_used,
                                      .admitted = fake_admitted,
                                      .lost = fake_lost,
                                      .kick = fake_kick};
    return heddle_mem_create(&o, &f->mem) == HEDDLE_OK;
}

/* All units must be gone. */
static inline void fake_close(struct fake *f)
{
    CHECK(f->reg.units == NULL);
    heddle_mem_destroy(f->mem);
    f->mem = NULL;
    heddle_registry_fini(&f->reg);
    for (unsigned i = 0; i < f->ndevs; i++) {
        CHECK_EQ(f->dev[i].nflying, 0);
        CHECK_EQ(f->dev[i].used, 0);
    }
    CHECK_EQ(f->heap.nlive, 0);
}

/* A unit goes, and with a view its reference on the root. */
static inline void fake_drop(heddle_handle *h)
{
    heddle_handle *root = heddle_unit_destroy(h);

    if (root != NULL)
        CHECK(heddle_sub_acqrel(&root->refs, 1u) > 1);
}

/* The mover, until every transfer has ended and nothing more begins. */
static inline void fake_settle(struct fake *f)
{
    bool has_moved = true;

    for (unsigned turn = 0; has_moved; turn++) {
        CHECK(turn < 10000);
        has_moved = heddle_mem_pump(f->mem);
        for (unsigned i = 0; i < f->ndevs && !has_moved; i++) {
            has_moved = f->dev[i].nflying != 0;
            if (has_moved)
                fake_land(&f->dev[i], 0);
        }
    }
}

/* Asks for `n` operands on a node. The other fields of the request are the caller's. */
static inline void fake_ask(struct fake *f, struct fake_task *t, unsigned node, unsigned n,
                            const struct heddle_mem_op *op)
{
    t->is_ready = t->has_failed = false;
    t->req.node = node;
    t->req.nops = n;
    t->req.op = t->req.local;
    t->req.ready = fake_ready;
    memcpy(t->req.local, op, n * sizeof(*op));
    t->is_ready = heddle_mem_begin(f->mem, &t->req);
}

#define FAKE_ASK(f, t, node, ...)                                                                  \
    fake_ask(f, t, node,                                                                           \
             sizeof((struct heddle_mem_op[]){__VA_ARGS__}) / sizeof(struct heddle_mem_op),         \
             (struct heddle_mem_op[]){__VA_ARGS__})

/* Element (i, j) of operand k, where the task is. A vector has j 0. */
static inline int32_t *fake_at(const struct fake_task *t, unsigned k, size_t i, size_t j)
{
    const struct heddle_layout *l = heddle_mem_layout(&t->req, k);
    int32_t *p = heddle_mem_ptr(&t->req, k);

    return &p[i * l->stride[0] + (l->ndim > 1 ? j * l->stride[1] : 0)];
}

static inline void fake_fill(const struct fake_task *t, unsigned k, int32_t value)
{
    const struct heddle_layout *l = heddle_mem_layout(&t->req, k);

    for (size_t i = 0; i < l->extent[0]; i++)
        for (size_t j = 0; j < (l->ndim > 1 ? l->extent[1] : 1); j++)
            *fake_at(t, k, i, j) = value;
}

/* The one value that all elements have. */
static inline int32_t fake_value(const struct fake_task *t, unsigned k)
{
    const struct heddle_layout *l = heddle_mem_layout(&t->req, k);

    for (size_t i = 0; i < l->extent[0]; i++)
        for (size_t j = 0; j < (l->ndim > 1 ? l->extent[1] : 1); j++)
            CHECK_EQ(*fake_at(t, k, i, j), *fake_at(t, k, 0, 0));
    return *fake_at(t, k, 0, 0);
}

/* A vector of FAKE_N elements: FAKE_UNIT bytes. ptr NULL: the runtime's memory. */
static inline heddle_handle *fake_vector(struct fake *f, int32_t *ptr)
{
    const struct heddle_layout l = {.dtype = HEDDLE_I32, .ndim = 1, .extent = {FAKE_N}};
    heddle_handle *h = NULL;

    CHECK_OK(heddle_unit_create(&f->reg, &l, ptr, &h));
    return h;
}

/* Elements first .. first + n - 1 of a vector. */
static inline heddle_handle *fake_part(heddle_handle *h, size_t first, size_t n)
{
    heddle_handle *v = NULL;

    CHECK_OK(heddle_unit_view(h, &first, &n, NULL, &v));
    return v;
}

/* A whole task: writes every element of the unit on the node. */
static inline void fake_put(struct fake *f, unsigned node, heddle_handle *u, int32_t value)
{
    struct fake_task t = {0};

    FAKE_ASK(f, &t, node, {.unit = u, .mode = HEDDLE_W});
    fake_settle(f);
    CHECK(t.is_ready);
    fake_fill(&t, 0, value);
    heddle_mem_end(f->mem, &t.req, HEDDLE_OK);
}

/* A whole task: reads the one value that every element has. */
static inline int32_t fake_get(struct fake *f, unsigned node, heddle_handle *u)
{
    struct fake_task t = {0};
    int32_t value;

    FAKE_ASK(f, &t, node, {.unit = u, .mode = HEDDLE_R});
    fake_settle(f);
    CHECK(t.is_ready);
    value = fake_value(&t, 0);
    heddle_mem_end(f->mem, &t.req, HEDDLE_OK);
    return value;
}

/* One of the numbers that are kept for each node. */
#define FAKE_STAT(f, node_, field) ((f)->mem->node[node_].stats.field)

#endif /* HEDDLE_MEM_FAKE_TEST_H */
