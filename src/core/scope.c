/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scope: the children of a running task.
 *
 * Purpose    nesting that is safe by construction: children are ordered among
 *            themselves in a domain of their own, and use only what the parent
 *            holds. The parent keeps its operands until the last child has ended,
 *            so outside tasks cannot see the difference.
 * Structure  made with the first child; a table from units to histories.
 *            The body counts its children by itself; those that end elsewhere, or after
 *            the body, are counted in `pending`. The thread that brings it to 0 after the
 *            body has left ends the parent (docs/design/hot-path.md, section 9).
 * Invariants (1) a child's access lies inside an operand of the parent, in a mode
 *                the parent's covers, or on a handle the parent made
 *            (2) only the worker that runs the body submits into the scope, so
 *                the table needs no lock
 *            (3) one reference is held on each unit in the table
 * Threads    the worker that runs the body; `pending` and `status` are atomic.
 */
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/mode.h"
#include "core/call.h"
#include "core/check.h"
#include "core/child.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/graph/node.h"
#include "core/group.h"
#include "core/handle.h"
#include "core/hidden.h"
#include "core/kinfo.h"
#include "core/outside.h"
#include "core/scope.h"
#include "core/stack.h"
#include "core/submit.h"
#include "core/submitter.h"
#include "core/time.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"

enum {
    SCOPE_WINDOW = 4096, /* children in flight before submit helps */
    SCOPE_KEPT = 64,     /* scopes that a slot keeps to use them again */
};

struct scope_unit {
    struct scope_unit *next;
    heddle_handle *unit;
    struct heddle_dep dep;
};

static struct heddle_scope *scope_of(struct heddle_domain *d)
{
    return (struct heddle_scope *)(void *)((char *)d - offsetof(struct heddle_scope, domain));
}

static struct heddle_dep *scope_find(struct heddle_domain *d, heddle_handle *unit)
{
    struct scope_unit *u = heddle_map_get_ptr(&scope_of(d)->units, (uint64_t)(uintptr_t)unit);

    return u == NULL ? NULL : &u->dep;
}

static heddle_status scope_close(struct heddle_domain *d, heddle_handle *unit,
                                 struct heddle_dep *dep)
{
    struct heddle_scope *sc = scope_of(d);
    struct submission s = {.sub = &sc->worker->sub, .domain = d, .scope = sc};

    HEDDLE_TRY(heddle_submit_close(sc->ctx, &s, unit, dep));
    if (s.ready != NULL)
        heddle_engine_push(sc->worker, s.ready);
    return HEDDLE_OK;
}

bool heddle_scope_has(const struct heddle_scope *s, const struct heddle_scope *in)
{
    while (in != NULL && in != s)
        in = in->cell != NULL ? in->cell->scope : heddle_node_scope(in->node);
    return in == s;
}

void heddle_scope_begin(struct heddle_exec *x, struct heddle_scope *s)
{
    memset(s, 0, sizeof(*s));
    s->is_lent = true;
    s->ctx = x->ctx;
    s->worker = x->worker;
    s->cell = x->cell;
    s->node = x->node;
    s->parent_id = x->id;
    s->op = x->op;
    s->mode = x->mode;
    s->nops = x->nops;
    s->group = heddle_exec_group(x);
    s->in_gang = x->worker->gang_depth > 0 ||
                 (x->cell != NULL && x->cell->scope != NULL && x->cell->scope->in_gang);
    s->domain.slab = &x->worker->sub.slab;
    s->domain.find = scope_find;
    s->domain.close_crowd = scope_close;
    heddle_map_init(&s->units, &x->ctx->alloc);
    x->scope = s;
    /* What the parent overwrites is valid for its children. */
    for (unsigned i = 0; i < x->nops; i++)
        if (heddle_mode_overwrites(x->mode[i]) && heddle_load_acq(&x->ctx->reg.nmarks) != 0)
            heddle_unit_unmark(x->op[i]);
}

heddle_status heddle_scope_open(struct heddle_exec *x)
{
    struct worker *w = x->worker;
    struct heddle_scope *s;

    if (x->cell == NULL && x->node == NULL)
        HEDDLE_TRY(heddle_child_settle(x)); /* opens the scopes of those below */
    s = w->scopes;
    if (s != NULL) {
        w->scopes = s->next_free;
        w->nscopes--;
    } else {
        s = heddle_alloc(&x->ctx->alloc, sizeof(*s));
    }
    if (s == NULL)
        return heddle_refuse(x->ctx, HEDDLE_ENOMEM, "no memory for a child task");
    heddle_scope_begin(x, s);
    s->is_lent = false;
    if (x->ctx->dev != NULL)
        heddle_dev_lend(x);
    return HEDDLE_OK;
}

/* Slot w; the last to use the scope. */
static void scope_destroy(struct worker *w, struct heddle_scope *s)
{
    heddle_ctx *ctx = s->ctx;

    while (s->list != NULL) {
        struct scope_unit *u = s->list;

        s->list = u->next;
        heddle_dep_fini(&u->dep, &ctx->alloc);
        heddle_unit_unref(u->unit); /* invariant (3) */
        heddle_free(&ctx->alloc, u, sizeof(*u));
    }
    heddle_map_fini(&s->units);
    if (s->is_lent)
        return;
    if (w->nscopes == SCOPE_KEPT) {
        heddle_free(&ctx->alloc, s, sizeof(*s));
        return;
    }
    s->next_free = w->scopes;
    w->scopes = s;
    w->nscopes++;
}

void heddle_scope_free_all(struct worker *w)
{
    while (w->scopes != NULL) {
        struct heddle_scope *s = w->scopes;

        w->scopes = s->next_free;
        heddle_free(&w->ctx->alloc, s, sizeof(*s));
    }
    w->nscopes = 0;
}

/* Invariant (1). */
static bool scope_holds(const struct heddle_scope *s, const heddle_handle *h, enum heddle_mode mode)
{
    if (heddle_mode_is_scratch(mode) || h->root->creator == s->parent_id)
        return true;
    for (unsigned i = 0; i < s->nops; i++) {
        const heddle_handle *p = s->op[i];

        if (heddle_mode_is_private(s->mode[i]) ||
            (heddle_mode_only_reads(s->mode[i]) && !heddle_mode_only_reads(mode)))
            continue;
        if (p->root == h->root && heddle_box_contains(&p->box, &h->box, p->root->layout.ndim))
            return true;
    }
    return false;
}

static heddle_status scope_enter(struct heddle_scope *s, heddle_handle *h,
                                 struct heddle_dep **dep_out)
{
    struct scope_unit *u = heddle_map_get_ptr(&s->units, (uint64_t)(uintptr_t)h);

    if (u == NULL) {
        u = heddle_zalloc(&s->ctx->alloc, 1, sizeof(*u));
        if (u == NULL || heddle_map_put_ptr(&s->units, (uint64_t)(uintptr_t)h, u) != HEDDLE_OK) {
            heddle_free(&s->ctx->alloc, u, sizeof(*u));
            return heddle_refuse(s->ctx, HEDDLE_ENOMEM, "no memory for a child task");
        }
        u->unit = h;
        heddle_dep_init(&u->dep);
        heddle_unit_ref(h);
        u->next = s->list;
        s->list = u;
    }
    *dep_out = &u->dep;
    return HEDDLE_OK;
}

heddle_status heddle_scope_admit(struct submission *s, struct heddle_access *acc, unsigned nops)
{
    heddle_ctx *ctx = s->scope->ctx;

    for (unsigned i = 0; i < nops; i++) {
        if (!scope_holds(s->scope, acc[i].unit, acc[i].mode)) {
            char buf[32];

            return heddle_refuse(ctx, HEDDLE_EACCESS,
                                 "kernel %s: operand %u (%s) is not held by the parent task in "
                                 "such a mode",
                                 s->kinfo->kernel->name, i,
                                 heddle_unit_name(acc[i].unit, buf, sizeof(buf)));
        }
    }
    for (unsigned i = 0; i < nops; i++) {
        HEDDLE_TRY(scope_enter(s->scope, acc[i].unit, &acc[i].dep));
        /* Children take no turns: their parent may hold them. They are ordered
         * like writers instead. */
        if (heddle_mode_is_in_turn(acc[i].mode))
            acc[i].mode = HEDDLE_RW;
    }
    return HEDDLE_OK;
}

/* Overlap lists may change under a nested submission; lock them if there are
 * any. Views made meanwhile are none of this task's business. */
static bool scope_needs_lock(const struct heddle_call *call, unsigned nops)
{
    heddle_handle *const *op = call->noperands != 0 ? call->operands : call->operand;

    for (unsigned i = 0; i < nops; i++)
        if (op != NULL && op[i] != NULL && heddle_unit_noverlaps(op[i]) != 0)
            return true;
    return false;
}

static heddle_status scope_check(struct heddle_exec *x, const struct heddle_kinfo *k)
{
    for (unsigned v = 0; v < k->nvariants && x->scope->in_gang; v++)
        if (k->kernel->variants[v].gang > 1)
            return heddle_refuse(x->ctx, HEDDLE_EINVAL,
                                 "kernel %s: a gang cannot be the child of a "
                                 "gang",
                                 k->kernel->name);
    return HEDDLE_OK;
}

/* Deep down the stack must not grow by unrelated tasks, and the members of a gang
 * may wait for each other: such a worker runs its own children and no others. */
static bool scope_is_confined(const struct worker *w)
{
    return w->nest >= HEDDLE_SCOPE_NEST || w->gang_depth > 0;
}

/* A child that runs inside of heddle_exec_submit(), for heddle_stack_call(). */
struct scope_child {
    struct worker *w;
    struct heddle_sched_task *t;
};

static void scope_run(void *arg)
{
    struct scope_child *c = arg;

    heddle_engine_run(c->w, c->t);
}

/* Runs or passes on a child that is ready. */
static void scope_go(struct heddle_exec *x, struct heddle_sched_task *ready)
{
    struct worker *w = x->worker;
    const uint64_t last = w->last;

    if (ready == NULL)
        return;
    if (x->ctx->dev != NULL || (!x->ctx->runs_inline && !scope_is_confined(w))) {
        heddle_engine_push(w, ready);
        return;
    }
    w->last = 0;
    heddle_stack_call(w, scope_run, &(struct scope_child){.w = w, .t = ready});
    w->last = last;
}

static heddle_status scope_submit(struct heddle_exec *x, const heddle_kernel *kernel,
                                  const struct heddle_call *call)
{
    static const struct heddle_call nothing = {.arg = NULL};
    struct submission s = {.call = call != NULL ? call : &nothing};
    heddle_status st;
    bool is_locked;
    unsigned nops;

    s.sub = &x->worker->sub;
    HEDDLE_TRY(submitter_kinfo(x->ctx, s.sub, kernel, &s.kinfo));
    if (x->slow != NULL && x->slow->gang != NULL && x->slow->rank != 0)
        return heddle_refuse(x->ctx, HEDDLE_ESTATE,
                             "kernel %s: only the first member of a gang may "
                             "submit",
                             x->kinfo->kernel->name);
    if (x->slow != NULL && x->slow->dev != NULL)
        return heddle_refuse(x->ctx, HEDDLE_ESTATE, "kernel %s: a task on a device cannot submit",
                             x->kinfo->kernel->name);
    if (x->scope == NULL)
        HEDDLE_TRY(heddle_scope_open(x));
    HEDDLE_TRY(scope_check(x, s.kinfo));
    if (x->slow != NULL && x->slow->check != NULL)
        heddle_check_lend(x, false);
    while (s.sub->slab.in_use > SCOPE_WINDOW && !scope_is_confined(x->worker) &&
           !heddle_stack_is_low(x->worker)) {
        heddle_returns_flush(&x->worker->returns);
        heddle_slab_collect(&s.sub->slab);
        if (s.sub->slab.in_use > SCOPE_WINDOW && !x->ctx->time->step(x->worker))
            break;
    }
    s.scope = x->scope;
    s.domain = &x->scope->domain;
    nops = s.call->noperands != 0 ? s.call->noperands : s.kinfo->noperands;
    if (s.call->noperands == 0 && nops > HEDDLE_CALL_OPERANDS)
        nops = HEDDLE_CALL_OPERANDS; /* refused below */
    is_locked = scope_needs_lock(s.call, nops);
    x->scope->domain.is_blind = !is_locked;
    if (is_locked)
        heddle_mutex_lock(&x->ctx->reg.lock);
    st = heddle_submit_one(x->ctx, &s);
    if (is_locked)
        heddle_mutex_unlock(&x->ctx->reg.lock);
    if (st == HEDDLE_OK)
        scope_go(x, s.ready);
    return st;
}

heddle_status heddle_scope_submit(struct heddle_exec *x, const heddle_kernel *kernel,
                                  const struct heddle_call *call)
{
    const heddle_status st = scope_submit(x, kernel, call);

    if (st != HEDDLE_OK)
        heddle_tell(x->ctx);
    return st;
}

/* Reductions of children are combined before the parent looks or ends. */
static heddle_status scope_combine(struct heddle_scope *s)
{
    heddle_status st = HEDDLE_OK;

    for (struct scope_unit *u = s->list; u != NULL; u = u->next)
        if (u->dep.crowd == HEDDLE_CROWD_REDUCE && st == HEDDLE_OK)
            st = scope_close(&s->domain, u->unit, &u->dep);
    if (st != HEDDLE_OK)
        (void)heddle_fail(s->ctx, st, "no memory to combine a reduction");
    return st;
}

/* Have all children ended? For the body, which counts by itself so far. */
static bool scope_seems_alone(struct heddle_scope *s)
{
    /* Acquire: see what the children wrote. */
    return s->submitted - s->own + heddle_load_acq(&s->pending) == 0;
}

/* The stop condition of a body that waits in earnest: all is counted in `pending`, so that
 * the last child, wherever it ends, knows that it is the last. */
static bool scope_is_alone(void *arg)
{
    struct heddle_scope *s = arg;

    if (s->own != 0) {
        heddle_sub_acqrel(&s->pending, s->own);
        s->own = 0;
    }
    return heddle_load_acq(&s->pending) == 1; /* acquire: as above */
}

/* What is there to run is run without a word; often this was all. */
static void scope_help(struct worker *w, struct heddle_scope *s)
{
    w->last = 0; /* what runs meanwhile begins when it begins */
    w->nest++;
    while (!scope_seems_alone(s) && heddle_load_rlx(&w->ctx->gang) == NULL) {
        struct heddle_sched_task *t = heddle_engine_pop(w);

        if (t == NULL)
            break;
        heddle_engine_run(w, t);
    }
    w->nest--;
}

static void scope_wait_own(void *arg)
{
    struct heddle_scope *s = arg;

    s->ctx->time->loop_own(s->worker, scope_is_alone, s);
}

/* Waits, asleep in the end: from now on the last child signals. */
static void scope_wait(struct worker *w, struct heddle_scope *s)
{
    heddle_add_acqrel(&s->pending, s->submitted - s->own + 1);
    s->submitted = 0;
    s->own = 0;
    w->last = 0;
    if (scope_is_confined(w))
        heddle_stack_call(w, scope_wait_own, s);
    else
        (void)heddle_engine_wait(w, scope_is_alone, s, 0);
    /* All have ended, so the body is the only one that counts again. */
    heddle_store_rlx(&s->pending, 0);
}

heddle_status heddle_exec_wait(struct heddle_exec *x)
{
    struct heddle_scope *s;
    struct worker *w;
    heddle_status st, child;

    HEDDLE_CHECK(x != NULL);
    s = x->scope;
    w = x->worker;
    child = x->inlined;
    x->inlined = HEDDLE_OK;
    if (s == NULL)
        return child;
    st = s->list == NULL ? HEDDLE_OK : scope_combine(s);
    if (!scope_seems_alone(s) && w->ctx->dev == NULL && !scope_is_confined(w) &&
        !heddle_stack_is_low(w))
        scope_help(w, s);
    if (!scope_seems_alone(s))
        scope_wait(w, s);
    if (x->slow != NULL && x->slow->check != NULL)
        heddle_check_lend(x, true);
    if (heddle_load_rlx(&s->status) != 0) { /* no child is left to set it */
        if (child == HEDDLE_OK)
            child = (heddle_status)heddle_load_rlx(&s->status);
        heddle_store_rlx(&s->status, 0);
    }
    if (x->ctx->dev != NULL && st == HEDDLE_OK)
        st = heddle_dev_return(x);
    return st != HEDDLE_OK ? st : child;
}

bool heddle_scope_leave(struct heddle_exec *x, heddle_status *st)
{
    struct heddle_scope *s = x->scope;
    const heddle_status combined = scope_combine(s);
    int child;

    if (*st == HEDDLE_OK)
        *st = combined;
    s->body = *st;
    x->scope = NULL;
    s->has_left = true;
    /* Release: body; acquire: what the children did. All have ended: no other thread counts. */
    if (!scope_seems_alone(s)) {
        const int64_t left = s->submitted - s->own;

        if (heddle_add_acqrel(&s->pending, left) != -left)
            return true; /* the scope may be gone by now */
    }
    child = heddle_load_rlx(&s->status);
    if (*st == HEDDLE_OK)
        *st = (heddle_status)child;
    scope_destroy(x->worker, s);
    return false;
}

/* The task to run next, of two; the other one is pushed. */
static struct heddle_sched_task *scope_either(struct worker *w, struct heddle_sched_task *next,
                                              struct heddle_sched_task *more)
{
    if (next == NULL)
        return more;
    if (more != NULL)
        heddle_engine_push(w, more);
    return next;
}

struct heddle_sched_task *heddle_scope_child_end(struct worker *w, struct heddle_scope *s,
                                                 struct heddle_sched_task *next)
{
    /* A loop, not a recursion: the last leaf may end thousands of parents. */
    while (s != NULL) {
        /* Read before the count: then the scope may go. */
        heddle_ctx *ctx = s->ctx;
        struct heddle_cell *c;
        struct heddle_node *n;
        heddle_status st;
        int64_t left;

        if (s->worker == w && !s->has_left) {
            s->own++; /* the body is below on this very stack */
            return next;
        }
        left = heddle_sub_acqrel(&s->pending, (int64_t)1) - 1;
        if (left == 1)
            heddle_ctx_signal(ctx); /* the body may wait for this */
        if (left != 0)
            return next;
        st = s->body != HEDDLE_OK ? s->body : (heddle_status)heddle_load_rlx(&s->status);
        c = s->cell;
        n = s->node;
        scope_destroy(w, s);
        if (c == NULL)
            return scope_either(w, next, heddle_node_end(w, n, st));
        if ((c->flags & TASK_AHEAD) != 0)
            return scope_either(w, next, heddle_engine_finish(w, c, st));
        heddle_engine_settle(w, c, st);
        next = scope_either(w, next, heddle_engine_close(w, c, &s));
    }
    return next;
}
