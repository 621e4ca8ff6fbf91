/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_SIM_WORLD_TEST_H
#define HEDDLE_DRIVE_SIM_WORLD_TEST_H

/*
 * For tests: a small simulated machine and operations that note their end.
 *
 * 3 cores, two accelerators with 2 streams each. gpu0 has links of its own;
 * gpu1's share a bus of 10 bytes per ns with the link between the two.
 */
#include "drive/sim/sim.h"
#include "tests/test.h"

extern const struct heddle_driver heddle_driver_sim;

enum { CPU, GPU0, GPU1, NCLS };
enum { UP0, DOWN0, UP1, DOWN1, ACROSS, NLINKS };

struct machine {
    struct heddle_plat p;
    struct heddle_plat_class cls[NCLS];
    struct heddle_plat_node node[3];
    struct heddle_plat_link link[NLINKS];
    struct heddle_plat_bus bus[1];
    struct heddle_fault fault[8];
};

static inline void machine_init(struct machine *m)
{
    *m = (struct machine){
        .cls = {{"cpu", "core", HEDDLE_DEV_CPU, 0, 0, 3, 0, 10, 0},
                {"gpu0", "gpu", HEDDLE_DEV_CUDA, 1, 1, 2, 0, 1000, 0},
                {"gpu1", "gpu", HEDDLE_DEV_CUDA, 1, 2, 2, 0, 1000, 0}},
        .node = {{"host", HEDDLE_NODE_HOST, 0},
                 {"gpu0", HEDDLE_NODE_DEVICE, 1 << 20},
                 {"gpu1", HEDDLE_NODE_DEVICE, 1 << 20}},
        .link = {{"up0", 0, 1, 2, 100, -1},
                 {"down0", 1, 0, 4, 50, -1},
                 {"up1", 0, 2, 8, 100, 0},
                 {"down1", 2, 0, 8, 0, 0},
                 {"across", 1, 2, 1, 0, 0}},
        .bus = {{"bus", 10}},
    };
    m->p.cls = m->cls;
    m->p.ncls = NCLS;
    m->p.ntypes = 2;
    m->p.node = m->node;
    m->p.nnodes = 3;
    m->p.link = m->link;
    m->p.nlinks = NLINKS;
    m->p.bus = m->bus;
    m->p.nbuses = 1;
    m->p.fault = m->fault;
}

/* What a launch of a test knows. */
struct heddle_exec {
    int *data;
    size_t n;
    int calls;
    heddle_status st;
    struct world *w;
};

struct world {
    struct machine m;
    struct heddle_sim *s;
    struct heddle_dev *dev[NCLS];
    struct heddle_drive_env env;
};

static const struct heddle_driver *const drv = &heddle_driver_sim;

static inline void world_open(struct world *w, const struct heddle_allocator *a, bool executes)
{
    CHECK_OK(heddle_sim_create(a, &w->m.p, executes, &w->s));
    w->env = (struct heddle_drive_env){.alloc = a, .world = w->s};
    for (unsigned i = 0; i < NCLS; i++)
        CHECK_OK(drv->open(&w->env, i, &w->dev[i]));
}

static inline void world_init(struct world *w, bool executes)
{
    machine_init(&w->m);
    world_open(w, NULL, executes);
}

static inline void world_fini(struct world *w)
{
    for (unsigned i = 0; i < NCLS; i++)
        drv->close(w->dev[i]);
    heddle_sim_destroy(w->s);
}

struct note {
    struct heddle_op op;
    heddle_status st;
    unsigned ends;
    unsigned rank; /* how many had ended before */
};

static unsigned nended;

static inline void note_done(struct heddle_op *op, heddle_status st)
{
    struct note *n = (struct note *)(void *)op;

    n->st = st;
    n->ends++;
    n->rank = nended++;
}

static inline heddle_status kernel(struct world *w, unsigned cls, unsigned stream, double ns,
                                   struct note *n)
{
    const struct heddle_dev_launch l = {.model_ns = ns};

    *n = (struct note){.op.done = note_done};
    return drv->launch(w->dev[cls], &l, stream, &n->op);
}

static inline heddle_status copy(struct world *w, unsigned cls, enum heddle_copy_kind kind,
                                 size_t bytes, unsigned stream, struct note *n)
{
    const struct heddle_copy c = {.kind = kind,
                                  .peer = kind == HEDDLE_COPY_PEER ? w->dev[GPU1] : NULL,
                                  .runs = {.run_bytes = bytes, .nruns = 1}};

    *n = (struct note){.op.done = note_done};
    return drv->copy(w->dev[cls], &c, stream, &n->op);
}

static inline void run_all(struct world *w)
{
    while (heddle_sim_step(w->s))
        ;
}

#define CHECK_SPAN(n, b, e)                                                                        \
    do {                                                                                           \
        CHECK_EQ((n).ends, 1);                                                                     \
        CHECK_OK((n).st);                                                                          \
        CHECK_EQ((n).op.begin_ns, b);                                                              \
        CHECK_EQ((n).op.end_ns, e);                                                                \
    } while (0)

#endif /* HEDDLE_DRIVE_SIM_WORLD_TEST_H */
