/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/region: recorded regions and their launches, and chains of tasks on a
 * device.
 *
 * Purpose    a device resolves dependencies between its tasks by itself, and a
 *            region all of whose tasks run there may become one operation: both
 *            are drawn often enough to meet every hazard.
 * Invariants (1) what is bound in the place of a recorded unit has its shape and
 *                touches nothing else that the region uses
 *            (2) the units of a chain do not overlap
 */
#include <string.h>

#include "fuzz/gen.h"

int fuzz_launch_unit(const struct fuzz_launch *l, int unit)
{
    for (unsigned i = 0; l != NULL && i < l->nbindings; i++)
        if (l->recorded[i] == unit)
            return l->actual[i];
    return unit;
}

uint64_t fuzz_launch_salt(const struct fuzz_op *op, unsigned i)
{
    for (unsigned k = 0; k < op->launch.nargs; k++)
        if (op->launch.task[k] == i)
            return op->launch.salt[k];
    return op->graph->task[i]->salt;
}

/* --- launches ------------------------------------------------------------ */

/* A unit of the graph, not only as scratch; -1: there is none. */
static int graph_pick(struct gen *g, const struct fuzz_graph *graph)
{
    const struct fuzz_task *t = graph->task[below(g, graph->ntasks)];
    const unsigned i = (unsigned)below(g, FUZZ_OPERANDS);

    return i < t->nops && heddle_mode_is_ordered(t->mode[i]) ? t->unit[i] : -1;
}

static bool graph_uses(const struct fuzz_graph *graph, int unit)
{
    for (unsigned i = 0; i < graph->ntasks; i++)
        for (unsigned k = 0; k < graph->task[i]->nops; k++)
            if (graph->task[i]->unit[k] == unit)
                return true;
    return false;
}

/* Does the region use this one, or anything that overlaps it? */
static bool graph_touches(const struct gen *g, const struct fuzz_graph *graph, int unit)
{
    for (unsigned i = 0; i < graph->ntasks; i++)
        for (unsigned k = 0; k < graph->task[i]->nops; k++)
            if (gen_units_meet(g, graph->task[i]->unit[k], unit))
                return true;
    return false;
}

static bool same_shape(const struct heddle_layout *a, const struct heddle_layout *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->extent, b->extent, a->ndim * sizeof(a->extent[0])) == 0;
}

static void launch_bindings(struct gen *g, const struct fuzz_graph *graph, struct fuzz_launch *l)
{
    struct fuzz_unit *unit = g->p->unit;

    for (unsigned i = 0; i < 80 && l->nbindings < FUZZ_BOUND; i++) {
        const int rec = graph_pick(g, graph), act = gen_pick_unit(g);
        bool is_ok = rec >= 0 && act >= 0 && same_shape(&unit[rec].layout, &unit[act].layout) &&
                     !graph_touches(g, graph, act);

        for (unsigned k = 0; k < l->nbindings && is_ok; k++)
            is_ok = l->recorded[k] != rec && !gen_units_meet(g, l->actual[k], act);
        if (!is_ok)
            continue;
        l->recorded[l->nbindings] = rec;
        l->actual[l->nbindings++] = act;
    }
}

static void launch_args(struct gen *g, const struct fuzz_graph *graph, struct fuzz_launch *l)
{
    while (l->nargs < FUZZ_BOUND && chance(g, 60)) {
        const unsigned i = (unsigned)below(g, graph->ntasks);
        bool is_new = true;

        for (unsigned k = 0; k < l->nargs; k++)
            is_new = is_new && l->task[k] != i;
        if (!is_new)
            break;
        l->task[l->nargs] = i;
        l->salt[l->nargs++] = heddle_rng_next(&g->p->rng);
    }
}

static void gen_launch(struct gen *g, struct fuzz_graph *graph)
{
    struct fuzz_task *t = gen_task_new(g);
    struct fuzz_op *op;

    if (t == NULL)
        return;
    op = gen_emit(g, OP_LAUNCH, -1);
    op->graph = graph;
    op->task = t;
    t->has_opts = g->p->config.has_faults || chance(g, 30);
    op->launch.passes = 1;
    if (!has(g, PART_BINDINGS))
        return;
    if (chance(g, 15))
        op->launch.passes += (unsigned)below(g, 3);
    if (chance(g, 40))
        launch_args(g, graph, &op->launch);
    if (chance(g, 40))
        launch_bindings(g, graph, &op->launch);
    for (unsigned i = 0; i < graph->ntasks && op->launch.nbindings > 0; i++)
        gen_task_needs(g, graph->task[i], &op->launch);
}

/* --- chains -------------------------------------------------------------- */

enum { CHAIN_UNITS = 5, CHAIN_TASKS = 48 };

struct chain {
    int unit[CHAIN_UNITS];
    unsigned nunits;
    unsigned ntasks;
};

static void chain_units(struct gen *g, struct chain *c)
{
    const unsigned want = 1 + (unsigned)below(g, CHAIN_UNITS);

    for (unsigned i = 0; i < 16 && c->nunits < want; i++) {
        const int u = gen_pick_unit(g);
        bool is_apart = u >= 0;

        for (unsigned k = 0; k < c->nunits && is_apart; k++)
            is_apart = !gen_units_meet(g, c->unit[k], u);
        if (is_apart)
            c->unit[c->nunits++] = u;
    }
}

/* A task without operands; NULL: enough. */
static struct fuzz_task *chain_task(struct gen *g, struct chain *c)
{
    struct fuzz_task *t;

    if (c->ntasks == CHAIN_TASKS || !has_room(g))
        return NULL;
    t = gen_task_new(g);
    if (t == NULL)
        return NULL;
    c->ntasks++;
    t->sort = chance(g, 90) ? SORT_DEVICE : SORT_BOTH;
    if (t->sort == SORT_BOTH && chance(g, 50))
        t->sort = SORT_CORE;
    if (g->p->config.has_faults || chance(g, 10))
        gen_task_options(g, t);
    return t;
}

static void chain_add(struct fuzz_task *t, int unit, enum heddle_mode m)
{
    if (t == NULL || t->nops == FUZZ_OPERANDS)
        return;
    t->unit[t->nops] = unit;
    t->mode[t->nops++] = m;
}

static int pick_slot(struct gen *g)
{
    const struct fuzz_prog *p = g->p;
    const unsigned first = (unsigned)below(g, FUZZ_SLOTS);

    for (unsigned i = 0; i < p->nslots; i++) {
        const int slot = p->slot[(first + i) % p->nslots];

        if (p->unit[slot].is_live)
            return slot;
    }
    return -1;
}

/* The place of the hash becomes its last operand; what touches it goes. */
static void chain_slot(struct gen *g, struct fuzz_task *t)
{
    const int slot = pick_slot(g);
    unsigned n = 0;

    t->sort = slot >= 0 ? SORT_PLAIN : SORT_DEVICE;
    if (slot < 0)
        return;
    for (unsigned i = 0; i < t->nops && n < FUZZ_OPERANDS - 1; i++)
        if (!gen_units_meet(g, t->unit[i], slot)) {
            t->unit[n] = t->unit[i];
            t->mode[n++] = t->mode[i];
        }
    t->nops = n;
    chain_add(t, slot, HEDDLE_W);
}

static void chain_end(struct gen *g, struct fuzz_task *t)
{
    if (t == NULL)
        return;
    if (t->sort == SORT_DEVICE && chance(g, 35))
        chain_slot(g, t);
    gen_task_needs(g, t, NULL);
    gen_emit_task(g, t);
}

/* One after another through the same unit. */
static void chain_line(struct gen *g, struct chain *c, unsigned n)
{
    const int u = c->unit[below(g, c->nunits)];

    while (n-- > 0) {
        struct fuzz_task *t = chain_task(g, c);

        chain_add(t, u, HEDDLE_RW);
        if (chance(g, 30)) {
            const int v = c->unit[below(g, c->nunits)];

            if (v != u)
                chain_add(t, v, HEDDLE_R);
        }
        chain_end(g, t);
    }
}

/* One writes, all others read it, one reads them and writes again. */
static void chain_diamond(struct gen *g, struct chain *c)
{
    const unsigned top = (unsigned)below(g, c->nunits);
    struct fuzz_task *t = chain_task(g, c);

    chain_add(t, c->unit[top], chance(g, 50) ? HEDDLE_W : HEDDLE_RW);
    chain_end(g, t);
    for (unsigned i = 0; i < c->nunits; i++) {
        if (i == top)
            continue;
        t = chain_task(g, c);
        chain_add(t, c->unit[top], HEDDLE_R);
        chain_add(t, c->unit[i], chance(g, 60) ? HEDDLE_RW : HEDDLE_W);
        chain_end(g, t);
    }
    t = chain_task(g, c);
    for (unsigned i = 0; i < c->nunits; i++)
        if (i != top)
            chain_add(t, c->unit[i], HEDDLE_R);
    chain_add(t, c->unit[top], chance(g, 50) ? HEDDLE_W : HEDDLE_RW);
    chain_end(g, t);
}

static enum heddle_mode chain_mode(struct gen *g)
{
    static const enum heddle_mode mode[] = {HEDDLE_R, HEDDLE_R, HEDDLE_W, HEDDLE_RW};

    return mode[below(g, 4)];
}

/* Readers and writers of a few units in any order. */
static void chain_hazards(struct gen *g, struct chain *c, unsigned n)
{
    while (n-- > 0) {
        struct fuzz_task *t = chain_task(g, c);
        const unsigned first = (unsigned)below(g, c->nunits);
        const unsigned nops = 1 + (unsigned)below(g, c->nunits);

        for (unsigned i = 0; i < nops; i++)
            chain_add(t, c->unit[(first + i) % c->nunits], chain_mode(g));
        chain_end(g, t);
    }
}

unsigned gen_chain(struct gen *g)
{
    struct chain c = {.nunits = 0};
    unsigned n = 1 + (unsigned)below(g, 3);

    if (!has(g, PART_CHAINS))
        return 0;
    chain_units(g, &c);
    while (n-- > 0 && c.nunits > 0) {
        switch (below(g, 3)) {
        case 0: chain_line(g, &c, 2 + (unsigned)below(g, 14)); break;
        case 1: chain_diamond(g, &c); break;
        default: chain_hazards(g, &c, 2 + (unsigned)below(g, 10)); break;
        }
    }
    return c.ntasks;
}

/* --- regions ------------------------------------------------------------- */

/* What a device may do as one operation: a few units that are apart, no scratch. */
static struct fuzz_task *plain_task(struct gen *g, const struct chain *c)
{
    struct fuzz_task *t = gen_task_new(g);
    const unsigned first = (unsigned)below(g, c->nunits);
    const unsigned nops = (unsigned)below(g, c->nunits + 1);

    if (t == NULL)
        return NULL;
    for (unsigned i = 0; i < nops; i++)
        chain_add(t, c->unit[(first + i) % c->nunits], chain_mode(g));
    chain_slot(g, t);
    gen_task_needs(g, t, NULL);
    return t;
}

/* All its operands at once, or more. */
static void graph_needs(struct gen *g, const struct fuzz_graph *graph)
{
    struct fuzz_prog *p = g->p;
    size_t bytes = 0;

    for (unsigned u = 0; u < p->nunits; u++)
        if (graph_uses(graph, (int)u))
            bytes += p->unit[u].count * heddle_dtype_bytes(p->unit[u].layout.dtype) + FUZZ_ALIGN;
    if (bytes > p->need_region)
        p->need_region = bytes;
}

static struct fuzz_graph *graph_new(struct gen *g)
{
    struct fuzz_graph *graph = fuzz_alloc(g->a, 1, sizeof(*graph));
    const unsigned want = 1 + (unsigned)below(g, FUZZ_REGION - 1);
    const bool is_plain = g->p->nslots > 0 && chance(g, 60);
    struct chain c = {.nunits = 0};

    if (is_plain)
        chain_units(g, &c);
    /* On the device alone, all but a few, or as it comes. */
    g->device_percent = chance(g, 50) ? 100 : chance(g, 40) ? 85 : 0;
    while (graph != NULL && graph->ntasks < want) {
        struct fuzz_task *t = c.nunits > 0 ? plain_task(g, &c) : gen_task(g, true);

        if (t == NULL)
            graph = NULL;
        else
            graph->task[graph->ntasks++] = t;
    }
    g->device_percent = 0;
    g->failed = g->failed || graph == NULL;
    if (graph != NULL && c.nunits > 0)
        graph_needs(g, graph);
    return graph;
}

/* Again and again, in flight at the same time; its data move in between. */
static void launch_often(struct gen *g, struct fuzz_graph *graph)
{
    unsigned n = 1 + (unsigned)below(g, chance(g, 50) ? 4 : 12);

    while (n-- > 0 && has_room(g)) {
        if (chance(g, 20))
            gen_acquire(g, graph_pick(g, graph));
        if (chance(g, 20))
            gen_emit_task(g, gen_task(g, false));
        gen_launch(g, graph);
    }
}

void gen_graph(struct gen *g)
{
    struct fuzz_prog *p = g->p;
    struct fuzz_graph *graph;

    if (!has(g, PART_GRAPHS))
        return;
    if (p->ngraphs == FUZZ_GRAPHS || (p->ngraphs > 0 && chance(g, 50))) {
        graph = p->graph[below(g, p->ngraphs)];
    } else {
        graph = graph_new(g);
        if (graph == NULL)
            return;
        p->graph[p->ngraphs++] = graph;
    }
    gen_launch(g, graph);
    if (p->config.ngpus > 0 && chance(g, 50))
        launch_often(g, graph);
}
