/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen_task: random tasks and their children.
 *
 * Invariants (1) operands in modes COMMUTE and REDUCE overlap no other operand
 *                of their task and stand among the first sixteen
 *            (2) a child uses parts of its parent's operands, in modes that
 *                the parent's cover, and handles its parent makes
 *            (3) a gang has no gang among its descendants
 *            (4) a task that overwrites something does not hide the failures of
 *                its descendants: its success would say that all is written
 *            (5) a task that may fail or be cancelled commutes nowhere: which of
 *                its like are cancelled with it would depend on the order
 *            (6) a child waits for no event that the main list has to complete:
 *                its parent may run, and wait for it, on the main thread
 */
#include <string.h>

#include "gen.h"

enum { MAX_DEPTH = 3, FIRST_LOCAL_ROOT = 1 << 20 };

struct task_gen {
    struct prog *p;
    unsigned depth;
    bool in_gang;
    bool in_graph;
    bool in_write; /* some ancestor overwrites an operand */
    int next_root; /* for locals */
};

struct prog_box gen_box(struct prog *p, const struct heddle_layout *l)
{
    struct prog_box b = {{0}, {0}, {0}};

    for (unsigned d = 0; d < l->ndim; d++) {
        const size_t n = l->extent[d];

        b.first[d] = prog_chance(p, 40) ? 0 : prog_below(p, n);
        b.step[d] = prog_chance(p, 70) ? 1 : 1 + prog_below(p, 3);
        b.extent[d] = 1 + prog_below(p, (n - b.first[d] + b.step[d] - 1) / b.step[d]);
        if (prog_chance(p, 30))
            b.extent[d] = (n - b.first[d] + b.step[d] - 1) / b.step[d];
    }
    return b;
}

void gen_arg(struct prog *p, struct prog_task *t)
{
    const size_t extra[] = {0, 0, 0, 1, 8, 24, 100, 120, 121, 300};

    if (t->arg == NULL) {
        t->arg_bytes = PROG_ARG_HEAD + extra[prog_below(p, 10)];
        t->arg = prog_alloc(p, t->arg_bytes, 1);
    }
    for (size_t i = 8; i < t->arg_bytes; i++)
        t->arg[i] = (unsigned char)prog_random(p);
}

static enum heddle_mode gen_mode(struct task_gen *g, bool has_sum, enum heddle_mode parent)
{
    const unsigned dice = (unsigned)prog_below(g->p, 100);

    if (dice < 5)
        return HEDDLE_SCRATCH;
    if (parent == HEDDLE_R || dice < 35)
        return HEDDLE_R;
    if (dice < 45)
        return HEDDLE_W;
    if (dice < 60 && gen_has(WITH_COMMUTE))
        return HEDDLE_COMMUTE;
    if (dice < 75 && has_sum && gen_has(WITH_REDUCE))
        return HEDDLE_REDUCE;
    return HEDDLE_RW;
}

static bool mode_is_special(enum heddle_mode m)
{
    return m == HEDDLE_COMMUTE || m == HEDDLE_REDUCE;
}

/* Invariant (1): may operand `op` stand in t at this place? */
static bool gen_fits(const struct task_gen *g, const struct prog_task *t,
                     const struct prog_operand *op)
{
    const struct prog_unit *unit = g->p->unit;
    const bool is_private = op->mode == HEDDLE_SCRATCH;

    if (t->nops >= PROG_MODES && (is_private || mode_is_special(op->mode)))
        return false;
    for (unsigned i = 0; i < t->nops && !is_private; i++) {
        const struct prog_operand *q = &t->op[i];

        if (q->mode == HEDDLE_SCRATCH || q->root != op->root ||
            (!mode_is_special(q->mode) && !mode_is_special(op->mode)))
            continue;
        /* Units of the program are known; parts of operands are not. */
        if (g->depth > 0 || op->unit == q->unit ||
            prog_box_overlap(&unit[op->unit].abs, &unit[q->unit].abs, unit[op->unit].layout.ndim))
            return false;
    }
    return true;
}

static void gen_room(struct prog *p, struct prog_task *t, unsigned n)
{
    t->op = prog_alloc(p, n, sizeof(*t->op));
}

static unsigned gen_nops(struct prog *p)
{
    const unsigned dice = (unsigned)prog_below(p, 100);

    if (dice < 75)
        return 1 + dice % 3;
    if (dice < 96)
        return 4 + dice % 4;
    return 15 + dice % 12;
}

/* --- children ------------------------------------------------------------------- */

static struct prog_task *gen_child(struct task_gen *g, const struct prog_task *parent);

static void gen_locals(struct task_gen *g, struct prog_task *t)
{
    const enum heddle_dtype types[] = {HEDDLE_U8, HEDDLE_I32, HEDDLE_I64};

    t->nlocals = (unsigned)prog_below(g->p, 3);
    t->local = prog_alloc(g->p, t->nlocals, sizeof(*t->local));
    for (unsigned i = 0; i < t->nlocals; i++) {
        struct prog_unit *u = &t->local[i];

        u->layout.dtype = types[prog_below(g->p, 3)];
        u->layout.ndim = 1 + (unsigned)prog_below(g->p, 2);
        u->span = 1;
        for (unsigned d = u->layout.ndim; d-- > 0;) {
            u->layout.extent[d] = 1 + prog_below(g->p, 8);
            u->layout.stride[d] = u->span;
            u->span *= u->layout.extent[d];
            u->abs.extent[d] = u->layout.extent[d];
            u->abs.step[d] = 1;
        }
        u->root = g->next_root++;
    }
}

static void gen_children(struct task_gen *g, struct prog_task *t)
{
    struct task_gen inner = *g;
    const unsigned n = 1 + (unsigned)prog_below(g->p, 4);

    if (g->depth >= MAX_DEPTH || !gen_has(WITH_NESTING))
        return;
    inner.depth++;
    inner.in_gang = g->in_gang || t->gang > 1;
    gen_locals(&inner, t);
    t->child = prog_alloc(g->p, n, sizeof(struct prog_task *));
    for (unsigned i = 0; i < t->nops; i++)
        inner.in_write = inner.in_write || t->op[i].mode == HEDDLE_W;
    t->swallows = prog_chance(g->p, 30) && !inner.in_write; /* (4) */
    for (unsigned i = 0; i < n; i++) {
        struct prog_task *k = gen_child(&inner, t);

        if (k == NULL)
            continue;
        if (prog_chance(g->p, 25))
            t->waits |= UINT32_C(1) << t->nchildren;
        t->child[t->nchildren++] = k;
    }
    g->next_root = inner.next_root;
}

static bool gen_child_operand(struct task_gen *g, const struct prog_task *t,
                              const struct prog_task *parent)
{
    const size_t n = parent->nops + parent->nlocals;
    const size_t i = n == 0 ? 0 : prog_below(g->p, n);
    enum heddle_mode outer = HEDDLE_RW;
    struct prog_operand *op = &t->op[t->nops];

    *op = (struct prog_operand){.is_whole = prog_chance(g->p, 40)};
    if (n == 0)
        return false;
    if (i < parent->nops) {
        outer = parent->op[i].mode;
        op->unit = (int)i;
        op->root = parent->op[i].root;
        op->layout = parent->op[i].layout;
    } else {
        op->unit = -1 - (int)(i - parent->nops);
        op->root = parent->local[i - parent->nops].root;
        op->layout = parent->local[i - parent->nops].layout;
    }
    if (outer == HEDDLE_REDUCE || outer == HEDDLE_SCRATCH ||
        (outer == HEDDLE_COMMUTE && g->p->config.has_failures))
        return false;
    if (!op->is_whole) {
        op->rel = gen_box(g->p, &op->layout);
        memcpy(op->layout.extent, op->rel.extent, sizeof(op->rel.extent));
    }
    /* A view made for the child can be given a sum. */
    op->mode = gen_mode(g, !op->is_whole, outer);
    if (outer == HEDDLE_COMMUTE) /* whatever is inside commutes as well */
        op->mode = op->is_whole || !gen_has(WITH_REDUCE) ? HEDDLE_COMMUTE : HEDDLE_REDUCE;
    return gen_fits(g, t, op);
}

static void gen_shape(struct task_gen *g, struct prog_task *t)
{
    struct prog *p = g->p;
    const unsigned dice = (unsigned)prog_below(p, 100);

    t->priority = prog_chance(p, 70) ? 0 : (int)prog_below(p, 9) - 4;
    t->spin = prog_chance(p, 60) ? 0 : (unsigned)prog_below(p, 3000);
    t->has_call_modes = t->nops > PROG_MODES || prog_chance(p, 20);
    if (dice < 6)
        t->shape = SHAPE_DECLINE;
    else if (dice < 9)
        t->shape = SHAPE_SCRATCH;
    else if (dice < 11)
        t->shape = SHAPE_COST;
    else if (dice < 14)
        t->shape = SHAPE_SECOND;
    if (t->shape == SHAPE_PLAIN && !g->in_gang && prog_chance(p, 6) && p->config.nworkers > 1 &&
        gen_has(WITH_GANGS))
        t->gang = 2 + (unsigned)prog_below(p, p->config.nworkers - 1);
    if (p->config.has_failures && prog_chance(p, 5))
        t->fail = FAIL_CLEAN + prog_below(p, 3);
}

/* A task that splits itself: one operand, all of it updated. */
static bool gen_is_recursive(struct task_gen *g, struct prog_task *t)
{
    if (t->nops != 1 || t->op[0].mode != HEDDLE_RW || t->gang > 1 || t->fail != FAIL_NONE ||
        !gen_has(WITH_RECURSION) || !prog_chance(g->p, 25))
        return false;
    t->shape = prog_chance(g->p, 50) ? SHAPE_RECURSE : SHAPE_DIVIDE;
    t->has_call_modes = false;
    return true;
}

static void gen_finish(struct task_gen *g, struct prog_task *t)
{
    gen_shape(g, t);
    gen_arg(g->p, t);
    if (gen_is_recursive(g, t))
        return;
    if (t->fail != FAIL_CLEAN && t->fail != FAIL_DIRTY &&
        prog_chance(g->p, g->depth == 0 ? 15 : 25))
        gen_children(g, t);
}

static struct prog_task *gen_child(struct task_gen *g, const struct prog_task *parent)
{
    struct prog_task *t = prog_add_task(g->p);
    const unsigned n = (unsigned)prog_below(g->p, 4);

    t->has_done = prog_chance(g->p, 10) && !g->in_graph;
    if (gen_has(WITH_EVENTS) && g->p->nevents > 0 && prog_chance(g->p, 10)) {
        t->after[0] = (int)prog_below(g->p, (size_t)g->p->nevents);
        t->nafter = g->p->is_free[t->after[0]]; /* (6) */
    }

    gen_room(g->p, t, n);
    for (unsigned i = 0; i < n; i++)
        t->nops += gen_child_operand(g, t, parent);
    gen_finish(g, t);
    return t;
}

/* --- tasks of the program --------------------------------------------------------- */

/* A unit that this list may use, or -1. */
static int gen_unit(struct prog *p, int list)
{
    for (unsigned try = 0; try < 20; try++) {
        const int u = (int)prog_below(p, p->nunits);

        if (p->unit[u].is_live && (list < 0 || p->unit[u].is_shared || p->unit[u].owner == list))
            return u;
    }
    return -1;
}

static bool gen_operand(struct task_gen *g, struct prog_task *t, int list)
{
    const int unit = gen_unit(g->p, list);
    struct prog_operand *op = &t->op[t->nops];
    const struct prog_unit *u;

    if (unit < 0)
        return false;
    u = &g->p->unit[unit];
    *op = (struct prog_operand){.unit = unit,
                                .root = u->root,
                                .is_whole = true,
                                .layout = u->layout,
                                .mode = gen_mode(g, u->has_sum && !g->in_graph, HEDDLE_RW)};
    if (list >= 0 && u->is_shared && op->mode != HEDDLE_SCRATCH)
        op->mode = u->has_sum && gen_has(WITH_REDUCE) && prog_chance(g->p, 50) ? HEDDLE_REDUCE
                                                                               : HEDDLE_COMMUTE;
    return gen_fits(g, t, op);
}

static struct prog_task *gen_top(struct task_gen *g, int list)
{
    struct prog_task *t = prog_add_task(g->p);
    unsigned n = gen_nops(g->p);

    if (g->in_graph && n > PROG_MODES)
        n = PROG_MODES;
    gen_room(g->p, t, n);
    for (unsigned i = 0; i < n; i++)
        t->nops += gen_operand(g, t, list);
    gen_finish(g, t);
    return t;
}

static void task_replace_commute(struct prog_task *t)
{
    for (unsigned i = 0; i < t->nops; i++)
        if (t->op[i].mode == HEDDLE_COMMUTE)
            t->op[i].mode = HEDDLE_RW;
}

/* Invariant (5): children commute only where nothing fails; the task itself is
 * looked at when all about it is known. Descendants follow their parent. */
static void gen_tame_children(struct prog *p, const struct prog_task *t)
{
    if (p->config.has_failures)
        for (size_t i = t->id + (size_t)1; i < p->ntasks; i++)
            task_replace_commute(p->task[i]);
}

void gen_settle_commute(struct oracle *o, struct prog_task *t)
{
    if (!oracle_predict(o, t))
        task_replace_commute(t);
}

static bool task_is_shared(const struct prog *p, const struct prog_task *t)
{
    for (unsigned i = 0; i < t->nops; i++)
        if (p->unit[t->op[i].unit].is_shared)
            return true;
    return false;
}

struct prog_task *gen_task(struct prog *p, struct oracle *o, int list)
{
    struct task_gen g = {.p = p, .next_root = FIRST_LOCAL_ROOT};
    struct prog_task *t = gen_top(&g, list);

    gen_tame_children(p, t);
    if (list >= 0) {
        if (task_is_shared(p, t) && !oracle_predict(o, t))
            return NULL;
        gen_settle_commute(o, t);
        return t;
    }
    if (t->shape == SHAPE_PLAIN && t->gang <= 1 && t->nchildren == 0 && t->fail == FAIL_NONE &&
        t->nops <= PROG_MODES && gen_has(WITH_RETRIES) && prog_chance(p, 8))
        t->shape = SHAPE_RETRY;
    if (p->config.has_failures && t->fail == FAIL_NONE && prog_chance(p, 2))
        t->fail = FAIL_TIMEOUT;
    return t;
}

struct prog_task *gen_graph_task(struct prog *p)
{
    struct task_gen g = {.p = p, .in_graph = true, .next_root = FIRST_LOCAL_ROOT};
    struct prog_task *t = gen_top(&g, -1);

    gen_tame_children(p, t);
    if (p->config.has_failures)
        task_replace_commute(t);
    return t;
}
