/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/gen: a random program from a seed.
 *
 * Invariants (1) operands in modes COMMUTE and REDUCE overlap no other operand
 *                of their task: their order is open
 *            (2) operands of a task that may only run on a device do not
 *                overlap when one of them is written: a device has no memory
 *                for that
 *            (3) before the program blocks it releases what it holds and
 *                completes its events
 *            (4) a unit is not used after it was let go of
 */
#include <string.h>

#include "fuzz/gen.h"

const char *const heddle_fuzz_parts[FUZZ_NPARTS + 1] = {
    "reduce",  "commute", "scratch", "views", "advice", "pins",   "nesting", "graphs",   "events",
    "retries", "acquire", "unref",   "alias", "late",   "limits", "chains",  "bindings", NULL};

static enum heddle_device device_kind(const struct fuzz_prog *p)
{
    return p->config.device == FUZZ_OPENCL ? HEDDLE_DEV_OPENCL : HEDDLE_DEV_CUDA;
}

struct fuzz_op *gen_emit(struct gen *g, enum fuzz_kind kind, int unit)
{
    struct fuzz_prog *p = g->p;
    struct fuzz_op *op;

    if (p->nops == FUZZ_OPS)
        p->nops--; /* cannot be: the loop below stops before */
    op = &p->op[p->nops++];
    *op = (struct fuzz_op){.kind = kind, .unit = unit};
    return op;
}

/* --- tasks --------------------------------------------------------------- */

struct fuzz_task *gen_task_new(struct gen *g)
{
    struct fuzz_task *t = fuzz_alloc(g->a, 1, sizeof(*t));

    if (t == NULL) {
        g->failed = true;
        return NULL;
    }
    t->id = g->p->ntasks++;
    t->salt = heddle_rng_next(&g->p->rng);
    t->by_hand = -1;
    atomic_store(&t->status, HEDDLE_AGAIN);
    t->name = (unsigned)below(g, 2);
    t->priority = chance(g, 50) ? (int)below(g, 7) - 3 : 0;
    if (g->p->config.device == FUZZ_CUDA && chance(g, 10))
        t->spin_ns = 1000 * (1 + below(g, 100));
    return t;
}

static enum heddle_mode gen_mode(struct gen *g, bool in_graph)
{
    const unsigned x = (unsigned)below(g, 100);

    if (x < 35)
        return HEDDLE_R;
    if (x < 55)
        return HEDDLE_W;
    if (x < 78)
        return HEDDLE_RW;
    if (x < 87)
        return has(g, PART_COMMUTE) ? HEDDLE_COMMUTE : HEDDLE_RW;
    if (x < 95)
        return in_graph || !has(g, PART_REDUCE) ? HEDDLE_RW : HEDDLE_REDUCE;
    return has(g, PART_SCRATCH) ? HEDDLE_SCRATCH : HEDDLE_R;
}

bool gen_units_meet(const struct gen *g, int u, int v)
{
    const struct fuzz_unit *unit = g->p->unit;

    return unit[u].root == unit[v].root &&
           fuzz_overlap(&unit[u].abs, &unit[v].abs, unit[u].layout.ndim);
}

/* May unit u in mode m stand beside the operands that the task has? */
static bool operand_fits(struct gen *g, const struct fuzz_task *t, int u, enum heddle_mode m)
{
    if (!heddle_mode_is_ordered(m))
        return true;
    for (unsigned i = 0; i < t->nops; i++) {
        if (!heddle_mode_is_ordered(t->mode[i]) || !gen_units_meet(g, u, t->unit[i]) ||
            (heddle_mode_only_reads(m) && heddle_mode_only_reads(t->mode[i])))
            continue;
        if (fuzz_adds(m) || fuzz_adds(t->mode[i]) || t->sort == SORT_DEVICE ||
            t->sort == SORT_NEST || (t->devices >> device_kind(g->p) & 1) != 0 || t->variant != 0 ||
            !chance(g, 25) || !has(g, PART_ALIAS))
            return false;
    }
    return true;
}

static size_t unit_bytes(const struct fuzz_unit *u)
{
    return u->count * heddle_dtype_bytes(u->layout.dtype);
}

static size_t round_up(size_t bytes)
{
    return (bytes + FUZZ_ALIGN - 1) & ~(size_t)(FUZZ_ALIGN - 1);
}

/* What the largest tasks need, for memories that just suffice. */
void gen_task_needs(struct gen *g, const struct fuzz_task *t, const struct fuzz_launch *l)
{
    struct fuzz_prog *p = g->p;
    const bool has_word = p->config.device == FUZZ_OPENCL || p->config.device == FUZZ_CUDA;
    size_t host = t->sort == SORT_SCRATCH ? FUZZ_ALIGN : 0;
    size_t bytes = has_word ? FUZZ_ALIGN : host;

    for (unsigned i = 0; i < t->nops; i++) {
        const struct fuzz_unit *u = &p->unit[fuzz_launch_unit(l, t->unit[i])];
        bool is_new = true;

        for (unsigned k = 0; k < i && !heddle_mode_is_private(t->mode[i]); k++)
            is_new = is_new && (t->unit[k] != t->unit[i] || heddle_mode_is_private(t->mode[k]));
        if (!is_new)
            continue;
        bytes += round_up(unit_bytes(u));
        host += round_up(p->unit[u->root].span * heddle_dtype_bytes(u->layout.dtype));
    }
    if (bytes > p->need_most)
        p->need_most = bytes;
    if ((t->sort == SORT_DEVICE || t->sort == SORT_PLAIN || t->devices == 1u << device_kind(p) ||
         t->variant != 0) &&
        bytes > p->need_device)
        p->need_device = bytes;
    if (host > p->need_host)
        p->need_host = host;
}

static void task_operands(struct gen *g, struct fuzz_task *t, bool in_graph)
{
    const unsigned want = (unsigned)below(g, FUZZ_OPERANDS + 1);
    const unsigned near = (unsigned)below(g, 3);
    int u = -1;

    for (unsigned i = 0; i < want; i++) {
        enum heddle_mode m = gen_mode(g, in_graph);

        if (u < 0 || near != 0 || chance(g, 70))
            u = gen_pick_unit(g);
        if (t->sort == SORT_NEST && !heddle_mode_is_plain(m))
            m = HEDDLE_RW;
        if (u < 0 || !operand_fits(g, t, u, m))
            continue;
        t->unit[t->nops] = u;
        t->mode[t->nops++] = m;
    }
}

static enum fuzz_sort gen_sort(struct gen *g, bool in_graph)
{
    const struct fuzz_config *c = &g->p->config;
    const unsigned x = (unsigned)below(g, 100);

    if (c->ngpus > 0 && chance(g, g->device_percent))
        return SORT_DEVICE;
    if (x < 55)
        return SORT_BOTH;
    if (x < 67)
        return has(g, PART_SCRATCH) ? SORT_SCRATCH : SORT_BOTH;
    if (x < 80)
        return SORT_CORE;
    if (x < 94 || in_graph || !c->has_nesting || !has(g, PART_NESTING))
        return c->ngpus > 0 ? SORT_DEVICE : SORT_BOTH;
    return SORT_NEST;
}

/* Failures of its own; only what can be retried does not fail in the end. */
static void task_faults(struct gen *g, struct fuzz_task *t)
{
    if (!has(g, PART_RETRIES))
        return;
    if (chance(g, 15))
        t->retries = 1 + (unsigned)below(g, 3);
    if (t->retries > 0 && t->sort != SORT_NEST && chance(g, 50))
        t->fail_runs = 1 + (unsigned)below(g, t->retries);
    if (g->p->config.has_faults && t->sort != SORT_NEST && chance(g, 2))
        t->fail_runs = t->retries + 1;
    if (t->sort == SORT_NEST)
        t->retries = 0;
}

void gen_task_options(struct gen *g, struct fuzz_task *t)
{
    struct fuzz_prog *p = g->p;

    t->has_opts = p->config.has_faults || chance(g, 40);
    if (!t->has_opts)
        return;
    task_faults(g, t);
    if (!has(g, PART_EVENTS))
        return;
    while (p->nrecent > 0 && t->nafter < FUZZ_AFTER && chance(g, 12)) {
        struct fuzz_task *e = p->recent[below(g, p->nrecent < 16 ? p->nrecent : 16)];

        e->has_event = true;
        t->after[t->nafter++] = (int)e->id;
    }
    if (p->nopen > 0 && chance(g, 30))
        t->by_hand = p->open[below(g, p->nopen)];
}

static struct fuzz_task *child_new(struct gen *g, const struct fuzz_task *t)
{
    struct fuzz_task *c = gen_task_new(g);
    const unsigned want = (unsigned)below(g, 4);

    if (c == NULL)
        return NULL;
    c->sort = chance(g, 60) ? SORT_BOTH : SORT_CORE;
    for (unsigned i = 0; i < want && t->nops > 0; i++) {
        const unsigned k = (unsigned)below(g, t->nops);
        const struct fuzz_unit *u = &g->p->unit[t->unit[k]];
        bool is_used = false;

        for (unsigned n = 0; n < c->nops; n++)
            is_used = is_used || g->p->unit[t->unit[c->unit[n]]].root == u->root;
        if (is_used)
            continue;
        c->unit[c->nops] = (int)k;
        c->mode[c->nops] = HEDDLE_R;
        if (heddle_mode_changes(t->mode[k]) && chance(g, 70))
            c->mode[c->nops] = chance(g, 50) ? HEDDLE_RW : HEDDLE_W;
        c->is_whole[c->nops] = chance(g, 40);
        c->part[c->nops] = gen_box(g, &u->layout);
        c->nops++;
    }
    return c;
}

struct fuzz_task *gen_task(struct gen *g, bool in_graph)
{
    struct fuzz_prog *p = g->p;
    struct fuzz_task *t = gen_task_new(g);

    if (t == NULL)
        return NULL;
    t->sort = gen_sort(g, in_graph);
    if (!in_graph)
        gen_task_options(g, t);
    if (t->has_opts && t->sort == SORT_BOTH && p->config.ngpus > 0 && has(g, PART_LIMITS)) {
        if (chance(g, 10))
            t->devices = 1u << (chance(g, 50) ? HEDDLE_DEV_CPU : device_kind(p));
        else if (chance(g, 10))
            t->declines = true;
        else if (chance(g, 10))
            t->variant = 1 + (unsigned)below(g, 2);
    }
    task_operands(g, t, in_graph);
    for (unsigned i = 0; t->sort == SORT_NEST && i < FUZZ_CHILDREN; i++)
        if (chance(g, 60)) {
            t->child[t->nchildren] = child_new(g, t);
            t->nchildren += t->child[t->nchildren] != NULL;
        }
    t->waits = chance(g, 40);
    gen_task_needs(g, t, NULL);
    return t;
}

void gen_emit_task(struct gen *g, struct fuzz_task *t)
{
    struct fuzz_prog *p = g->p;

    if (t == NULL)
        return;
    gen_emit(g, OP_TASK, -1)->task = t;
    if (t->has_opts)
        p->recent[p->nrecent++ % 16] = t;
}

/* --- other operations ---------------------------------------------------- */

static void release_all(struct gen *g)
{
    struct fuzz_prog *p = g->p;

    while (p->nopen > 0)
        gen_emit(g, OP_COMPLETE, -1)->event = p->open[--p->nopen];
    while (p->nheld > 0) {
        const int u = p->held[--p->nheld];

        p->unit[u].is_held = false;
        gen_emit(g, OP_RELEASE, u);
    }
}

void gen_acquire(struct gen *g, int u)
{
    static const enum heddle_mode mode[] = {HEDDLE_R, HEDDLE_R, HEDDLE_RW, HEDDLE_W};
    struct fuzz_prog *p = g->p;
    struct fuzz_op *op;

    if (u < 0 || !has(g, PART_ACQUIRE))
        return;
    release_all(g);
    op = gen_emit(g, OP_ACQUIRE, u);
    op->mode = mode[below(g, 4)];
    op->salt = heddle_rng_next(&p->rng);
    p->unit[u].is_held = true;
    p->held[p->nheld++] = u;
    if (chance(g, 60))
        release_all(g);
}

static void gen_advise(struct gen *g)
{
    struct fuzz_prog *p = g->p;
    const int u = gen_pick_unit(g);
    struct fuzz_op *op;

    if (u < 0 || !has(g, PART_ADVICE))
        return;
    op = gen_emit(g, OP_ADVISE, u);
    op->advice =
        (enum heddle_advice)(1 + below(g, p->config.has_pins && has(g, PART_PINS) ? 5 : 3));
    op->memory = (unsigned)below(g, p->config.nnodes);
}

static void gen_unref(struct gen *g)
{
    struct fuzz_prog *p = g->p;
    const int u = gen_pick_unit(g);

    if (u < 0 || p->unit[u].is_held || !has(g, PART_UNREF))
        return;
    for (unsigned i = 0; i < p->ngraphs; i++) /* their units are used again */
        for (unsigned k = 0; k < p->graph[i]->ntasks; k++)
            for (unsigned n = 0; n < p->graph[i]->task[k]->nops; n++)
                if (p->graph[i]->task[k]->unit[n] == u)
                    return;
    p->unit[u].is_live = false;
    gen_emit(g, OP_UNREF, u);
}

static void gen_event(struct gen *g)
{
    struct fuzz_prog *p = g->p;

    if (p->nopen == 4 || p->nevents == FUZZ_TASKS || !has(g, PART_EVENTS))
        return;
    gen_emit(g, OP_EVENT, -1)->event = (int)p->nevents;
    p->open[p->nopen++] = (int)p->nevents++;
}

static void gen_other(struct gen *g)
{
    struct fuzz_prog *p = g->p;
    const unsigned x = (unsigned)below(g, 1000);

    if (x < 250)
        gen_view(g);
    else if (x < 600)
        gen_advise(g);
    else if (x < 740)
        gen_acquire(g, gen_pick_unit(g));
    else if (x < 780) {
        release_all(g);
        gen_emit(g, OP_WAIT, -1);
    } else if (x < 820)
        gen_unref(g);
    else if (x < 860 && p->nunits < FUZZ_ROOTS)
        gen_root(g);
    else if (x < 920)
        gen_graph(g);
    else if (x < 960)
        gen_event(g);
    else
        release_all(g);
}

static unsigned gen_length(struct gen *g)
{
    const unsigned x = (unsigned)below(g, 100);

    if (x < 50)
        return 5 + (unsigned)below(g, 25);
    if (x < 88)
        return 5 + (unsigned)below(g, 95);
    return 5 + (unsigned)below(g, FUZZ_TASKS - 5);
}

/* Only the first tasks; everything else, also the sizes, stays as it was. */
static void gen_cut(struct gen *g, uint64_t tasks)
{
    struct fuzz_prog *p = g->p;
    const unsigned all = p->nops;
    unsigned n = 0;

    while (n < all && tasks > 0)
        tasks -= p->op[n++].kind == OP_TASK;
    p->nops = n;
    for (unsigned i = 0; i < n; i++) {
        const struct fuzz_op *op = &p->op[i];

        if (op->kind == OP_EVENT)
            p->open[p->nopen++] = op->event;
        else if (op->kind == OP_COMPLETE)
            p->nopen--; /* the latest first */
        else if (op->kind == OP_ACQUIRE)
            p->held[p->nheld++] = op->unit;
        else if (op->kind == OP_RELEASE)
            p->nheld--;
    }
    release_all(g);
}

bool fuzz_generate(struct fuzz_prog *p, struct fuzz_arena *a, const struct fuzz_setup *s,
                   enum fuzz_device device, uint64_t seed)
{
    struct gen g = {.without = s->without, .p = p, .a = a};
    unsigned nroots, ntasks, others;

    memset(p, 0, offsetof(struct fuzz_prog, unit));
    p->nunits = p->nops = p->ntasks = p->nevents = p->nrecent = 0;
    p->nheld = p->nopen = p->ngraphs = p->nslots = 0;
    p->need_most = p->need_device = p->need_region = p->need_host = 0;
    p->seed = seed;
    heddle_rng_seed(&p->rng, seed * FUZZ_NDEVICES + (unsigned)device);
    fuzz_world(p, s, device);
    if (!has(&g, PART_LATE)) {
        p->config.ends_with_wait = true;
        p->config.unrefs_late = false;
    }
    nroots = 1 + (unsigned)below(&g, chance(&g, 50) ? 5 : FUZZ_ROOTS);
    ntasks = gen_length(&g);
    others = 5 + (unsigned)below(&g, 40);
    for (unsigned i = 0; i < nroots; i++)
        gen_root(&g);
    if (device == FUZZ_CUDA)
        gen_slots(&g);
    for (unsigned i = 0; i < 4; i++)
        if (chance(&g, 50))
            gen_view(&g);
    for (unsigned i = 0; i < ntasks && has_room(&g); i++) {
        gen_emit_task(&g, gen_task(&g, false));
        if (p->config.ngpus > 0 && chance(&g, device == FUZZ_CUDA ? 12 : 3))
            i += gen_chain(&g);
        if (device == FUZZ_CUDA && chance(&g, 12))
            gen_graph(&g);
        while (has_room(&g) && chance(&g, others))
            gen_other(&g);
    }
    release_all(&g);
    fuzz_world_sizes(p, s);
    if (s->tasks != 0)
        gen_cut(&g, s->tasks);
    return !g.failed;
}
