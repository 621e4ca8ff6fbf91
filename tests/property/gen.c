/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen: a program from a seed.
 *
 * Structure  operations are drawn one by one; the oracle does each at once, so
 *            that the generator knows what is marked, failed and defined.
 * Invariants (1) before an operation that blocks, all events of the main list
 *                are completed and all data released: a program always ends
 *            (2) what a program does is the same in every order that Heddle may
 *                choose: cancellations come before their tasks can start,
 *                failures do not meet commutative accesses, lists that run in
 *                parallel share only sums
 */
#include <string.h>

#include "gen.h"

enum { MAX_UNITS = 900 };

bool gen_has(enum prog_feature f)
{
    return (prog_features() & f) != 0;
}

bool gen_chance(struct gen *g, unsigned percent)
{
    return prog_chance(g->p, percent);
}

struct prog_op *gen_emit(struct gen *g, struct prog_op op)
{
    struct prog_op *slot = prog_add_op(g->p, g->list, op.kind);

    *slot = op;
    oracle_op(g->o, slot);
    return slot;
}

static void gen_complete(struct gen *g, unsigned i, heddle_status st)
{
    gen_emit(g, (struct prog_op){.kind = OP_COMPLETE, .a = g->open[i], .st = st});
    g->open[i] = g->open[--g->nopen];
}

/* All that was submitted has ended: events of tasks are complete. */
static void gen_wait(struct gen *g, int how)
{
    gen_emit(g, (struct prog_op){.kind = OP_WAIT, .b = how});
    for (int i = 0; i < g->p->nevents && i < PROG_EVENTS; i++)
        g->p->is_free[i] = true;
}

/* Invariant (1). */
static void gen_let_go(struct gen *g)
{
    while (g->nopen > 0)
        gen_complete(g, g->nopen - 1,
                     oracle_event_failed(g->o, g->open[g->nopen - 1]) ? HEDDLE_ETASK : HEDDLE_OK);
    while (g->nheld > 0)
        gen_emit(g, (struct prog_op){.kind = OP_RELEASE, .a = g->held[--g->nheld]});
}

/* --- data -------------------------------------------------------------------- */

static void gen_root(struct gen *g)
{
    static const size_t shapes[][PROG_DIMS] = {{1, 0, 0}, {7, 0, 0},  {40, 0, 0},
                                               {6, 5, 0}, {12, 9, 0}, {3, 4, 5}};
    const enum heddle_dtype types[] = {HEDDLE_U8, HEDDLE_I32, HEDDLE_I64};
    const size_t *shape = shapes[prog_below(g->p, 6)];
    struct prog_unit u = {.parent = -1, .owner = -1};
    size_t stride = 1;

    u.layout.dtype = types[prog_below(g->p, 3)];
    u.span = 1;
    /* Column-major with gaps, as matrices are. */
    for (unsigned d = 0; d < PROG_DIMS && shape[d] != 0; d++) {
        u.layout.ndim++;
        u.layout.extent[d] = u.abs.extent[d] = shape[d];
        u.abs.step[d] = 1;
        u.layout.stride[d] = stride;
        u.span += (shape[d] - 1) * stride;
        stride *= shape[d] + (d == 0 && gen_chance(g, 30) ? 3 : 0);
    }
    u.is_runtime = gen_chance(g, 25);
    u.has_sum = gen_chance(g, 60);
    u.root = (int)g->p->nunits;
    gen_emit(g, (struct prog_op){.kind = OP_ROOT, .a = prog_add_unit(g->p, &u)});
}

static int gen_live_unit(struct gen *g)
{
    for (unsigned i = 0; i < 30; i++) {
        const int u = (int)prog_below(g->p, g->p->nunits);

        if (g->p->unit[u].is_live)
            return u;
    }
    return -1;
}

static void gen_tile(struct gen *g, const struct heddle_layout *l, struct prog_unit *u)
{
    for (unsigned d = 0; d < 2; d++) {
        const size_t size = 1 + prog_below(g->p, l->extent[d]);
        const size_t i = prog_below(g->p, (l->extent[d] + size - 1) / size);
        const size_t left = l->extent[d] - i * size;

        u->tile[d] = size;
        u->rel.first[d] = i * size;
        u->rel.step[d] = 1;
        u->rel.extent[d] = left < size ? left : size;
    }
}

static void gen_view(struct gen *g)
{
    const int parent = gen_live_unit(g);
    struct prog_unit u = {.parent = parent, .owner = -1};

    if (parent < 0 || !gen_has(WITH_VIEWS) || g->p->nunits > MAX_UNITS)
        return;
    u.root = g->p->unit[parent].root;
    u.layout = g->p->unit[parent].layout;
    if (u.layout.ndim == 2 && gen_chance(g, 50))
        gen_tile(g, &u.layout, &u);
    else
        u.rel = gen_box(g->p, &u.layout);
    u.abs = prog_box_inside(&g->p->unit[parent].abs, &u.rel, u.layout.ndim);
    for (unsigned d = 0; d < u.layout.ndim; d++)
        u.layout.extent[d] = u.rel.extent[d];
    u.has_sum = gen_chance(g, 50);
    gen_emit(g, (struct prog_op){.kind = OP_VIEW, .a = prog_add_unit(g->p, &u)});
}

static bool gen_is_held(const struct gen *g, int unit)
{
    for (unsigned i = 0; i < g->nheld; i++)
        if (g->held[i] == unit)
            return true;
    return false;
}

static void gen_unref(struct gen *g)
{
    const int u = gen_live_unit(g);

    if (u < 0 || !gen_has(WITH_UNREF) || gen_is_held(g, u))
        return;
    g->p->unit[u].is_live = false;
    gen_emit(g, (struct prog_op){.kind = OP_UNREF, .a = u});
}

static void gen_acquire(struct gen *g)
{
    const enum heddle_mode modes[] = {HEDDLE_R, HEDDLE_W, HEDDLE_RW};
    struct prog_op op = {.kind = OP_ACQUIRE, .a = gen_live_unit(g)};
    const struct prog_op *made;

    if (op.a < 0 || !gen_has(WITH_ACQUIRE))
        return;
    op.mode = modes[prog_below(g->p, 3)];
    op.salt = prog_random(g->p);
    if (gen_chance(g, 40)) {
        op.kind = OP_ACQUIRE_ASYNC;
        op.is_foreign = gen_chance(g, 50);
        gen_emit(g, op);
        return;
    }
    gen_let_go(g);
    made = gen_emit(g, op);
    if (made->want == HEDDLE_OK)
        g->held[g->nheld++] = op.a;
}

static void gen_restore(struct gen *g)
{
    const int u = gen_live_unit(g);

    if (u < 0 || !oracle_is_marked(g->o, u) || !oracle_is_defined(g->o, u))
        return;
    gen_let_go(g);
    gen_wait(g, WAIT_CHECKED);
    gen_emit(g, (struct prog_op){.kind = OP_RESTORE, .a = u});
}

/* --- tasks ------------------------------------------------------------------- */

void gen_options(struct gen *g, struct prog_task *t)
{
    struct prog *p = g->p;

    t->has_done = gen_chance(g, 20);
    t->has_name = gen_chance(g, 10);
    if (gen_has(WITH_EVENTS) && p->nevents > 0 && gen_chance(g, 20)) {
        t->nafter = 1 + (unsigned)prog_below(p, PROG_AFTER);
        for (unsigned i = 0; i < t->nafter; i++)
            t->after[i] = (int)prog_below(p, (size_t)p->nevents);
    }
    if (gen_has(WITH_EVENTS) && gen_chance(g, 15))
        t->event = p->nevents++;
    if (p->ngroups > 0 && gen_chance(g, 25)) {
        t->group = (int)prog_below(p, (size_t)p->ngroups);
        t->is_doomed = g->group_ends[t->group];
    }
}

static void gen_emit_tasks(struct gen *g, struct prog_task *const *t, unsigned n)
{
    struct prog_op op = {.kind = OP_TASK, .ntasks = n};

    for (unsigned i = 0; i < n; i++)
        gen_settle_commute(g->o, t[i]);
    op.task = prog_alloc(g->p, n, sizeof(*t));
    memcpy(op.task, t, n * sizeof(*t));
    gen_emit(g, op);
}

static struct prog_task *gen_one(struct gen *g)
{
    struct prog_task *t = gen_task(g->p, g->o, -1);

    if (gen_chance(g, 35))
        gen_options(g, t);
    return t;
}

static void gen_submit(struct gen *g)
{
    struct prog_task *t = gen_one(g);

    gen_emit_tasks(g, &t, 1);
}

/* Several tasks of one kernel in one call: the same operands in turn. */
static void gen_bulk(struct gen *g)
{
    struct prog_task *t[8], *first = gen_task(g->p, g->o, -1);
    const unsigned n = 2 + (unsigned)prog_below(g->p, 7);

    if (first->nchildren != 0 || first->gang > 1 || first->fail != FAIL_NONE) {
        gen_emit_tasks(g, &first, 1);
        return;
    }
    gen_settle_commute(g->o, first);
    for (unsigned i = 0; i < n; i++) {
        const unsigned id = (unsigned)g->p->ntasks;

        t[i] = i == 0 ? first : prog_add_task(g->p);
        if (i == 0)
            continue;
        memcpy(t[i], first, sizeof(*first));
        t[i]->id = id;
        t[i]->arg = NULL;
        gen_arg(g->p, t[i]);
    }
    gen_emit_tasks(g, t, n);
}

/* Tasks that are held back, then cancelled, then let go. */
static void gen_doom(struct gen *g, bool is_group)
{
    const unsigned n = 1 + (unsigned)prog_below(g->p, 4);
    const int gate = g->p->nevents, group = g->p->ngroups;

    gen_let_go(g);
    if (is_group) {
        if (group >= 64)
            return;
        g->p->ngroups++;
        gen_emit(g, (struct prog_op){.kind = OP_GROUP, .a = group});
    } else {
        gen_emit(g, (struct prog_op){.kind = OP_WAIT});
    }
    g->p->nevents++;
    gen_emit(g, (struct prog_op){.kind = OP_EVENT, .a = gate});
    for (unsigned i = 0; i < n; i++) {
        struct prog_task *t = gen_task(g->p, g->o, -1);

        t->after[t->nafter++] = gate;
        t->is_doomed = true;
        t->has_done = gen_chance(g, 50);
        if (is_group)
            t->group = group;
        gen_emit_tasks(g, &t, 1);
    }
    gen_emit(g, (struct prog_op){.kind = is_group ? OP_GROUP_CANCEL : OP_CANCEL, .a = group});
    gen_emit(g, (struct prog_op){.kind = OP_COMPLETE, .a = gate});
    if (is_group)
        g->group_ends[group] = true;
    else /* until then later tasks would be cancelled as well */
        gen_emit(g, (struct prog_op){.kind = OP_WAIT})->want = HEDDLE_ECANCELED;
}

static void gen_group(struct gen *g)
{
    const int n = g->p->ngroups;

    if (!gen_has(WITH_GROUPS))
        return;
    if (g->p->config.has_failures && gen_chance(g, 50)) {
        gen_doom(g, gen_chance(g, 70));
    } else if (n < 64 && gen_chance(g, 40)) {
        g->p->ngroups++;
        gen_emit(g, (struct prog_op){.kind = OP_GROUP, .a = n});
    } else if (n > 0) {
        gen_let_go(g);
        gen_emit(g, (struct prog_op){.kind = OP_GROUP_WAIT, .a = (int)prog_below(g->p, (size_t)n)});
    }
}

/* --- events -------------------------------------------------------------------- */

static void gen_event(struct gen *g)
{
    const int e = g->p->nevents;
    struct prog_op op = {.kind = OP_EVENT, .a = e};
    bool is_free;

    if (!gen_has(WITH_EVENTS) || g->nopen == MAX_OPEN)
        return;
    if (e > 0 && gen_chance(g, 30)) {
        gen_let_go(g);
        gen_emit(g, (struct prog_op){.kind = OP_EVENT_WAIT, .a = (int)prog_below(g->p, (size_t)e)});
        return;
    }
    if (g->nopen > 0 && gen_chance(g, 30)) {
        gen_complete(g, 0, oracle_event_failed(g->o, g->open[0]) ? HEDDLE_EIO : HEDDLE_OK);
        return;
    }
    g->p->nevents++;
    if (g->p->config.has_failures && gen_chance(g, 20))
        op.st = HEDDLE_EIO;
    gen_emit(g, op);
    is_free = e < PROG_EVENTS;
    if (e > 0 && gen_chance(g, 40)) {
        const int pred = (int)prog_below(g->p, (size_t)e);

        gen_emit(g, (struct prog_op){.kind = OP_EVENT_AFTER, .a = e, .b = pred});
        is_free = is_free && g->p->is_free[pred];
    }
    if (is_free && gen_chance(g, 50))
        g->p->is_free[e] = true;
    else
        is_free = false;
    if (is_free || gen_chance(g, 25))
        gen_emit(g, (struct prog_op){.kind = OP_COMPLETE, .a = e, .st = op.st, .is_foreign = true});
    else
        g->open[g->nopen++] = e;
}

/* --- lists in parallel ---------------------------------------------------------- */

static void gen_parallel_op(struct gen *g, int list)
{
    struct prog_task *t = gen_task(g->p, g->o, list);
    int unit = -1;

    if (gen_chance(g, 6))
        gen_emit(g, (struct prog_op){.kind = OP_WAIT, .b = WAIT_BESIDE});
    for (unsigned i = 0; i < 20 && unit < 0; i++) {
        unit = (int)prog_below(g->p, g->p->nunits);
        if (!g->p->unit[unit].is_live || g->p->unit[unit].owner != list)
            unit = -1;
    }
    if (unit >= 0 && gen_has(WITH_ACQUIRE) && gen_chance(g, 10)) {
        struct prog_op op = {
            .kind = OP_ACQUIRE, .a = unit, .mode = HEDDLE_RW, .salt = prog_random(g->p)};

        if (gen_emit(g, op)->want == HEDDLE_OK)
            gen_emit(g, (struct prog_op){.kind = OP_RELEASE, .a = unit});
    }
    if (t != NULL)
        gen_emit_tasks(g, &t, 1);
}

static void gen_parallel(struct gen *g)
{
    struct prog *p = g->p;
    struct prog_list *lists;
    struct prog_list *main = g->list;

    if (!gen_has(WITH_PARALLEL))
        return;
    gen_let_go(g);
    lists = prog_alloc(p, PROG_THREADS, sizeof(*lists));
    for (size_t i = 0; i < p->nunits; i++) { /* all of a root together */
        struct prog_unit *u = &p->unit[i], *r = &p->unit[u->root];

        if (u->parent < 0) {
            u->owner = (int)prog_below(p, PROG_THREADS + 1);
            u->is_shared = u->owner == PROG_THREADS;
        }
        u->owner = r->owner;
        u->is_shared = r->is_shared;
    }
    for (int k = 0; k < PROG_THREADS; k++) {
        const unsigned n = 3 + (unsigned)prog_below(p, 12);

        g->list = &lists[k];
        for (unsigned i = 0; i < n; i++)
            gen_parallel_op(g, k);
    }
    g->list = main;
    for (size_t i = 0; i < p->nunits; i++) {
        p->unit[i].owner = -1;
        p->unit[i].is_shared = false;
    }
    prog_add_op(p, g->list, OP_PARALLEL)->list = lists;
    if (p->config.has_failures)
        gen_emit(g, (struct prog_op){.kind = OP_WAIT, .b = WAIT_UNCHECKED});
}

/* --- all -------------------------------------------------------------------------- */

static void gen_config(struct prog *p)
{
    static const unsigned windows[] = {0, 0, 0, 8, 8, 1, 3, 64};
    struct prog_config *c = &p->config;
    struct heddle_sched_info info;
    unsigned n = 0;

    while (heddle_sched_get_info(n, &info) == HEDDLE_OK)
        n++;
    (void)heddle_sched_get_info((unsigned)prog_below(p, n), &info);
    c->sched = info.name;
    c->nworkers = 1 + (unsigned)prog_below(p, 8);
    c->window = windows[prog_below(p, 8)];
    c->helps = prog_chance(p, 70);
    c->log_level = (int)prog_below(p, 4);
    c->has_failures = prog_chance(p, 40) && (prog_features() & WITH_FAILURES) != 0;
    c->checks = prog_chance(p, 8) && gen_has(WITH_CHECKER);
    if (c->checks)
        c->nworkers = 1;
    c->nops = 20 + (unsigned)prog_below(p, 100);
}

static void gen_step(struct gen *g)
{
    const size_t dice = prog_below(g->p, 100);

    if (dice < 50)
        gen_submit(g);
    else if (dice < 54)
        gen_bulk(g);
    else if (dice < 57)
        gen_root(g);
    else if (dice < 67)
        gen_view(g);
    else if (dice < 71)
        gen_unref(g);
    else if (dice < 78)
        gen_acquire(g);
    else if (dice < 83)
        gen_event(g);
    else if (dice < 87)
        gen_group(g);
    else if (dice < 95)
        gen_graph(g);
    else if (dice < 96)
        gen_parallel(g);
    else if (dice < 98)
        gen_restore(g);
    else {
        gen_let_go(g);
        gen_wait(g, WAIT_CHECKED);
    }
}

struct prog *prog_generate(uint64_t seed, struct oracle **o_out)
{
    struct prog *p = calloc(1, sizeof(*p));
    struct gen g = {.p = p};

    if (p == NULL)
        return NULL;
    p->seed = p->rng = seed * 1000003;
    gen_config(p);
    if (getenv("HEDDLE_VIRTUAL") != NULL) {
        p->config.is_virtual = true;
        p->config.checks = false; /* that is for the host's memory */
        p->config.nworkers = 1;   /* gangs of virtual cores have one member */
    }
    if (getenv("HEDDLE_OPS") != NULL)
        p->config.nops = (unsigned)strtoul(getenv("HEDDLE_OPS"), NULL, 0);
    g.o = *o_out = oracle_create(p);
    g.list = &p->main;
    for (unsigned i = 0; i < 4; i++)
        gen_root(&g);
    for (unsigned i = 0; i < p->config.nops; i++)
        gen_step(&g);
    gen_let_go(&g);
    gen_emit(&g, (struct prog_op){.kind = OP_WAIT});
    return p;
}
