/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cycle: a wait inside of a task for what can only come after that task.
 *
 * Purpose    a program may wait for an event or a group that is behind the waiting
 *            task, or behind a task below it on the same stack. Nothing can end such a
 *            wait, so the wait ends with HEDDLE_EDEADLK.
 * Structure  a wait that has been in vain for a while is entered into ctx->waits and
 *            looks for what cannot end before it returns: the tasks on its stack, what
 *            waits for these (edges, parents, turns, events), the other waits for any of
 *            it, the tasks on their stacks, and so on. If that has what it waits for,
 *            it waits for itself.
 * Invariants (1) what has been found stays: none of it ends, or lets go of an edge,
 *                before the search is over. The search is in a wait, and the other
 *                waits are on the list, which is locked
 *            (2) so HEDDLE_EDEADLK is never wrong. It is found by one wait of each
 *                cycle at least: the last that looks after the cycle is complete
 * Cost       nothing for a wait of less than LOOK_NS; then all that is behind the
 *            waiting tasks, at intervals that grow.
 */
#include "core/cycle.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/map.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/event.h"
#include "core/exec.h"
#include "core/graph/node.h"
#include "core/group.h"
#include "core/kinfo.h"
#include "core/scope.h"
#include "core/turn.h"
#include "task/task.h"

enum {
    LOOK_NS = 2000000,        /* before the first search */
    LOOK_MOST_NS = 500000000, /* between two of them */
    LOOK_TASKS = 1 << 22,     /* a search that finds more gives up */
};

struct cycle_wait {
    struct cycle_wait *prev, *next; /* in ctx->waits, once is_listed */
    struct worker *w;
    struct heddle_exec *x; /* the task that waits */
    const heddle_event *event;
    const heddle_group *group;
    stop_fn stop;
    void *arg;
    uint64_t look_at_ns, gap_ns;
    bool is_listed;
    bool is_dead;  /* waits for itself */
    bool is_found; /* by the search of this moment; event_lock */
};

/* One search. */
struct cycle_look {
    heddle_ctx *ctx;
    const struct cycle_wait *self;
    struct heddle_map seen; /* cells that cannot end before `self` returns */
    uint32_t *todo;         /* of these, what is behind them is not known yet */
    size_t n, cap;
    bool has_failed; /* no memory, or too many */
};

static void look_add(struct cycle_look *l, const struct heddle_cell *c)
{
    uint64_t *place;

    if (l->has_failed || heddle_map_find(&l->seen, c->self) != NULL)
        return;
    if (l->n == l->cap) {
        const size_t cap = l->cap == 0 ? 64 : 2 * l->cap;
        uint32_t *p = cap > LOOK_TASKS ? NULL : heddle_zalloc(&l->ctx->alloc, cap, sizeof(*p));

        for (size_t i = 0; p != NULL && i < l->n; i++)
            p[i] = l->todo[i];
        l->has_failed = p == NULL;
        if (l->has_failed)
            return;
        heddle_free(&l->ctx->alloc, l->todo, l->cap * sizeof(*p));
        l->todo = p;
        l->cap = cap;
    }
    l->has_failed = heddle_map_slot(&l->seen, c->self, &place) != HEDDLE_OK;
    if (!l->has_failed)
        l->todo[l->n++] = c->self;
}

/* The parent does not end before its child. */
static void look_add_parent(struct cycle_look *l, const struct heddle_scope *s)
{
    while (s != NULL && s->cell == NULL)
        s = heddle_node_scope(s->node);
    if (s != NULL)
        look_add(l, s->cell);
}

/* The tasks on a stack, from a waiting one down. */
static void look_add_stack(struct cycle_look *l, const struct heddle_exec *x)
{
    for (; x != NULL; x = x->outer) {
        if (x->cell != NULL)
            look_add(l, x->cell);
        else
            look_add_parent(l, heddle_node_scope(x->node));
    }
}

static void look_add_queued(void *arg, struct heddle_cell *c)
{
    look_add(arg, c);
}

/* What cannot end before this cell. */
static void look_behind(struct cycle_look *l, struct heddle_cell *c)
{
    heddle_ctx *ctx = l->ctx;
    const struct task_ext *ext = heddle_cell_ext(ctx, c);
    /* Acquire: the cells that wait. */
    uint32_t node = (uint32_t)heddle_load_acq(&c->succ);

    if (node == HEDDLE_ENDED)
        return; /* taken off for a moment: dev/ahead.c */
    while (node != 0) {
        uint32_t next;

        look_add(l, heddle_edge_owner(&ctx->pool, node, &next));
        node = next;
    }
    look_add_parent(l, c->scope);
    if ((c->flags & TASK_TURNS) != 0) {
        struct heddle_exec x;

        heddle_cell_exec_ext(l->self->w, c, ext, &x);
        heddle_turns_visit(&x, look_add_queued, l);
    }
    if (ext != NULL && ext->done != NULL) {
        const heddle_event *e = heddle_event_behind(ext->done, ext->done_user);

        if (e != NULL)
            look_add(l, heddle_pool_cell(&ctx->pool, (uint32_t)e->ref));
    }
}

static bool look_has_group(const struct cycle_look *l, const heddle_group *g)
{
    struct heddle_map *m = (struct heddle_map *)(uintptr_t)&l->seen;
    const struct heddle_map_slot *s;
    size_t it = 0;

    while ((s = heddle_map_next(m, &it)) != NULL) {
        const struct task_ext *ext =
            heddle_cell_ext(l->ctx, heddle_pool_cell(&l->ctx->pool, (uint32_t)s->key));

        if (ext != NULL && ext->group == g)
            return true;
    }
    return false;
}

/* Does it wait for something that was found? */
static bool look_has(const struct cycle_look *l, const struct cycle_wait *c)
{
    if (c->group != NULL)
        return look_has_group(l, c->group);
    return heddle_map_find(&l->seen, (uint32_t)c->event->ref) != NULL;
}

/* Lock held. */
static bool look_all(struct cycle_look *l)
{
    bool is_new = true;

    look_add_stack(l, l->self->x);
    while (is_new && !l->has_failed) {
        while (l->n > 0 && !l->has_failed)
            look_behind(l, heddle_pool_cell(&l->ctx->pool, l->todo[--l->n]));
        if (l->has_failed || look_has(l, l->self))
            break;
        is_new = false;
        for (struct cycle_wait *c = l->ctx->waits; c != NULL; c = c->next)
            /* Not one that is over and has not left the list yet. */
            if (!c->is_found && !c->stop(c->arg) && look_has(l, c)) {
                c->is_found = is_new = true;
                look_add_stack(l, c->x);
            }
    }
    for (struct cycle_wait *c = l->ctx->waits; c != NULL; c = c->next)
        c->is_found = false;
    return !l->has_failed && look_has(l, l->self);
}

static bool cycle_look(struct cycle_wait *c)
{
    heddle_ctx *ctx = c->w->ctx;
    struct cycle_look l = {.ctx = ctx, .self = c};
    bool found;

    heddle_map_init(&l.seen, &ctx->alloc);
    heddle_mutex_lock(&ctx->event_lock);
    if (!c->is_listed) {
        c->next = ctx->waits;
        if (c->next != NULL)
            c->next->prev = c;
        ctx->waits = c;
        c->is_listed = true;
    }
    found = !c->stop(c->arg) && look_all(&l);
    heddle_mutex_unlock(&ctx->event_lock);
    heddle_map_fini(&l.seen);
    heddle_free(&ctx->alloc, l.todo, l.cap * sizeof(*l.todo));
    return found;
}

static void cycle_leave(struct cycle_wait *c)
{
    heddle_ctx *ctx = c->w->ctx;

    if (!c->is_listed)
        return;
    heddle_mutex_lock(&ctx->event_lock);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        ctx->waits = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    heddle_mutex_unlock(&ctx->event_lock);
}

static bool cycle_stop(void *arg)
{
    struct cycle_wait *c = arg;
    uint64_t now;

    if (c->stop(c->arg))
        return true;
    now = heddle_clock_ns();
    if (now >= c->look_at_ns) {
        c->is_dead = cycle_look(c);
        c->look_at_ns = heddle_clock_ns() + c->gap_ns;
        if (c->gap_ns < LOOK_MOST_NS)
            c->gap_ns *= 2;
    }
    return c->is_dead;
}

heddle_status heddle_cycle_wait(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                                const heddle_event *event, const heddle_group *group)
{
    struct cycle_wait c = {.w = w,
                           .x = w->current,
                           .event = event,
                           .group = group,
                           .stop = stop,
                           .arg = arg,
                           .look_at_ns = heddle_clock_ns() + LOOK_NS,
                           .gap_ns = LOOK_NS};
    const bool ok = heddle_engine_wait(w, cycle_stop, &c, deadline_ns);

    cycle_leave(&c);
    if (c.is_dead)
        return heddle_fail(w->ctx, HEDDLE_EDEADLK,
                           "a task%s%s waits for %s that can only be complete after that task",
                           c.x->kinfo != NULL ? " of kernel " : "",
                           c.x->kinfo != NULL ? c.x->kinfo->kernel->name : "",
                           group != NULL ? "a group" : "an event");
    return ok ? HEDDLE_OK : HEDDLE_ETIMEDOUT;
}
