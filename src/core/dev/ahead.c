/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/ahead: tasks that are put on a device before their predecessors have ended.
 *
 * Purpose    dependencies between the kernels of one device stay on the device: the
 *            host launches a task behind its predecessors (stream order, events) and
 *            only follows the ends.
 * Structure  When a task was launched, the tasks that wait for it are taken off its
 *            list, and each gets a record. When the task of a record waits for nothing
 *            but launched tasks of one device, the engine pushes it to the scheduler
 *            *ahead* of its predecessors' ends. When a worker of that device gets the
 *            task, the task goes its usual way: an operand that is being written
 *            counts as present, because its writer is a predecessor and so on this
 *            device. When another worker gets the task, the task is put aside and
 *            pushed again when it is ready.
 *
 *              WAITING   at least one predecessor is not launched
 *              PUSHED    ahead: the scheduler has the task
 *              ASIDE     a worker of another device got the task, or its device
 *                        failed: the end of its last predecessor pushes it again
 *              RUNNING   on the device, ahead or not
 *              READY     not ahead any more; the record stays for its successors
 *
 * Invariants (1) the engine's own count (ndeps) is not touched by going ahead: it
 *                reaches 0 when all predecessors have ended, and what a task has
 *                written counts only then (heddle_mem_end)
 *            (2) a task does not end before its predecessors: its end is held back
 *                until then (heddle_ahead_hold)
 *            (3) when a predecessor must run again because its device was lost,
 *                every task that ran behind it runs again, too
 *            (4) npred == ndeps: only this file counts ndeps down, so that no other
 *                file pushes the task; the words of its edges are free then, and the
 *                scheduler may use them
 * Threads    the device thread, except heddle_ahead_pop() (a core that got such a
 *            task) and heddle_dev_end_ahead() (a task that ran again on a core); `lock`.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/ahead_state.h"
#include "core/dev/begin.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/estimate.h"
#include "core/dev/queue.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/scope.h"
#include "core/time.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

#define DIRECT_NS 20000.0 /* shorter tasks cost more to place than to run */
#define SOON_NS   100000  /* a stream may wait so long for another one */

/* --- records ------------------------------------------------------------------ */

static struct dev_ahead *ahead_new(struct ahead *a, struct heddle_cell *c)
{
    struct dev_ahead *r = a->free;

    if (r != NULL)
        a->free = r->next;
    else
        r = heddle_alloc(a->alloc, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->cell = c;
    r->dt = NULL;
    r->state = WAITING;
    r->cls = r->npred = 0; /* what is in pred[] counts by npred */
    r->succ = NULL;
    r->shared = r->written = 0;
    r->ready_ns = r->later_ns = r->begun_ns = 0;
    r->is_listed = r->is_mixed = r->is_void = r->has_failed = false;
    *ahead_place(a, c) = r;
    c->flags |= TASK_AHEAD | TASK_SLOW;
    return r;
}

static void ahead_list(struct ahead *a, struct dev_ahead *r)
{
    r->is_listed = true;
    r->prev = &a->waiting;
    r->next = a->waiting;
    if (r->next != NULL)
        r->next->prev = &r->next;
    a->waiting = r;
}

static bool ahead_reserve(struct ahead *a, unsigned n)
{
    for (; a->nspare < n; a->nspare++) {
        struct ahead_succ *s = heddle_alloc(a->alloc, sizeof(*s));

        if (s == NULL)
            return false;
        s->next = a->spare;
        a->spare = s;
    }
    return true;
}

void heddle_ahead_init(struct ahead *a, heddle_ctx *ctx)
{
    a->pool = &ctx->pool;
    a->alloc = &ctx->alloc;
}

void heddle_ahead_fini(struct ahead *a)
{
    while (a->free != NULL) {
        struct dev_ahead *r = a->free;

        a->free = r->next;
        heddle_free(a->alloc, r, sizeof(*r));
    }
    while (a->spare != NULL) {
        struct ahead_succ *s = a->spare;

        a->spare = s->next;
        heddle_free(a->alloc, s, sizeof(*s));
    }
}

/* --- who may ------------------------------------------------------------------- */

/* Plain operands, nothing that waits for its turn or is tried again. */
static bool exec_is_plain(const struct heddle_exec *x, const struct task_ext *ext)
{
    if (x->cell == NULL || x->cell->scope != NULL || (x->cell->flags & TASK_HIDDEN) != 0 ||
        x->nops > HEDDLE_KERNEL_OPERANDS || (ext != NULL && ext->retries != 0))
        return false;
    for (unsigned i = 0; i < x->nops; i++)
        if (heddle_mode_is_in_turn(x->mode[i]) || heddle_mode_combines(x->mode[i]))
            return false;
    return true;
}

static bool units_overlap(const heddle_handle *a, const heddle_handle *b)
{
    return a->root == b->root && heddle_box_overlap(&a->box, &b->box, a->root->layout.ndim);
}

/* What x shares with p, which has it on the device, and what of that p writes. False:
 * they share data in another way than as whole units, and those meet on the host. */
static bool exec_shared(const struct heddle_exec *x, const struct heddle_exec *p, uint32_t *shared,
                        uint32_t *written)
{
    for (unsigned i = 0; i < x->nops; i++)
        for (unsigned k = 0; k < p->nops; k++) {
            if (!heddle_mode_is_ordered(x->mode[i]) || !heddle_mode_is_ordered(p->mode[k]))
                continue;
            if (x->op[i] != p->op[k]) {
                if (units_overlap(x->op[i], p->op[k]))
                    return false;
                continue;
            }
            *shared |= UINT32_C(1) << i;
            if (heddle_mode_writes(p->mode[k]))
                *written |= UINT32_C(1) << i;
        }
    return true;
}

/* A chain takes no more places of its device than one stream has: what waits for
 * nothing runs on the others, though its priority is lower. */
static bool ahead_is_far(const struct dev_ahead *r)
{
    for (unsigned i = 0; i < r->npred; i++)
        if (heddle_dev_is_full(r->pred[i]->dt->on))
            return true;
    return false;
}

static void ahead_put_direct(struct ahead *a, struct heddle_sched_task *t)
{
    t->link[0] = NULL;
    if (a->direct == NULL)
        a->direct = t;
    else
        a->direct_last->link[0] = t;
    a->direct_last = t;
}

static bool is_urgent(const struct heddle_exec *x, unsigned variant)
{
    return x->kinfo->kernel->variants[variant].is_urgent != 0;
}

/* Behind an urgent task that runs on for long: 0, or when to look again. It has a
 * stream of its own, and on any other one its successor would keep those from running
 * that wait for nothing. */
static uint64_t ahead_later(struct heddle_devs *d, const struct dev_ahead *r)
{
    const uint64_t now = heddle_dev_now_ns(d);
    uint64_t later = 0;

    for (unsigned i = 0; i < r->npred; i++) {
        const struct dev_ahead *p = r->pred[i];
        const uint64_t begun = p->npred != 0 ? now : p->begun_ns,
                       end = begun + (uint64_t)p->dt->work_ns;

        if (is_urgent(&p->dt->x, p->dt->variant) && end > now + SOON_NS && end - SOON_NS > later)
            later = end - SOON_NS;
    }
    return later;
}

/* May it go ahead? Then to the scheduler with it; or, when it is short and there
 * is nothing to decide, right behind its predecessor. Lock held; drops it. */
static bool ahead_consider(struct heddle_devs *d, struct dev_ahead *r)
{
    struct ahead *a = &d->ahead;
    struct heddle_exec x;
    struct task_ext own;
    const struct task_ext *ext;
    uint32_t shared = 0, written = 0;
    uint64_t ready_ns = 0;
    struct dev_cost cost = {.ns = 0};

    /* Acquire: what the predecessors that have ended wrote. */
    if (r->state != WAITING || r->is_mixed || r->npred == 0 ||
        heddle_load_acq(&r->cell->ndeps) != (int32_t)r->npred)
        return false;
    /* Marked data may be written anew by those that it waits for. */
    if (heddle_load_rlx(&d->ctx->reg.nmarks) != 0)
        return false;
    if (!ahead_is_supported(r) || ahead_is_far(r) ||
        (r->later_ns != 0 && heddle_dev_now_ns(d) < r->later_ns))
        return false;
    ext = heddle_task_exec(d->ctx->driver, &r->cell->sched, &x, &own);
    r->is_mixed = !exec_is_plain(&x, ext) || heddle_dev_is_own(&r->cell->sched) ||
                  (heddle_load_rlx(&d->nlost) != 0 && !heddle_dev_has_home(d, &r->cell->sched));
    if (!r->is_mixed) {
        heddle_dev_cost_now(d, &x, ext, r->cls, &cost);
        r->is_mixed = isinf(cost.ns);
    }
    for (unsigned i = 0; i < r->npred && !r->is_mixed; i++) {
        const struct dev_task *p = r->pred[i]->dt;

        r->is_mixed = !exec_shared(&x, &p->x, &shared, &written);
        if (p->due_ns > ready_ns)
            ready_ns = p->due_ns;
    }
    if (r->is_mixed)
        return false;
    r->later_ns = d->has_urgent && d->cls[r->cls].drv->has_urgent && !is_urgent(&x, cost.variant)
                      ? ahead_later(d, r)
                      : 0;
    if (r->later_ns != 0)
        return false;
    ahead_unlist(r);
    r->shared = shared;
    r->written = written;
    r->ready_ns = ready_ns;
    r->state = PUSHED;
    /* No other thread counts its predecessors any more (4): a store will do. */
    heddle_store_rel(&r->cell->ndeps, (int32_t)r->npred | AHEAD_BIT);
    if (heddle_trace_is_on(d->ctx->driver->lane, HEDDLE_TRACE_READY))
        heddle_trace_ready(d->ctx->driver->lane, r->cell->id, heddle_ctx_ticks(d->ctx));
    if (cost.ns < DIRECT_NS && !x.kinfo->has_core && d->ctx->sched->took != NULL) {
        ahead_put_direct(a, &r->cell->sched);
        return true;
    }
    heddle_spin_unlock(&a->lock);
    heddle_engine_push(d->ctx->driver, &r->cell->sched);
    heddle_spin_lock(&a->lock);
    return true;
}

/* --- launched -------------------------------------------------------------------- */

/* `to` waits for the task of r. Lock held; there is a spare link. */
static void ahead_link(struct ahead *a, struct dev_ahead *r, struct dev_ahead *to)
{
    struct ahead_succ *s = a->spare;

    a->spare = s->next;
    a->nspare--;
    s->to = to;
    s->next = r->succ;
    r->succ = s;
    if (to->npred == 0)
        to->cls = r->dt->worker->cls;
    if (to->npred < AHEAD_PREDS)
        to->pred[to->npred] = r;
    to->is_mixed = to->is_mixed || to->npred >= AHEAD_PREDS || to->cls != r->dt->worker->cls;
    to->npred++;
}

/* Those that wait for a launched task come here. */
static bool ahead_take(struct heddle_devs *d, struct dev_task *dt)
{
    struct ahead *a = &d->ahead;
    struct heddle_cell *c = dt->x.cell;
    const uint64_t gen = (uint64_t)c->gen << 32;
    uint64_t was;
    uint32_t node = (uint32_t)heddle_load_acq(&c->succ);
    unsigned n = 0;
    bool did = false;

    if (node == 0)
        return false;
    heddle_spin_lock(&a->lock);
    for (uint32_t e = node; e != 0; n++)
        (void)heddle_edge_owner(&d->ctx->pool, e, &e);
    if (!ahead_reserve(a, n) || (dt->ahead == NULL && (dt->ahead = ahead_new(a, c)) == NULL)) {
        heddle_spin_unlock(&a->lock);
        return false; /* no memory: they wait for the end */
    }
    dt->ahead->dt = dt;
    dt->ahead->state = RUNNING;
    if (dt->ahead->npred == 0 && dt->ahead->begun_ns == 0)
        dt->ahead->begun_ns = dt->due_ns - (uint64_t)dt->work_ns;
    /* What was counted, and no more: the rest comes the next time. Acquire: the
     * waiting cells that submitters linked. */
    was = gen | node;
    if (!heddle_cas_acqrel(&c->succ, &was, gen)) {
        heddle_spin_unlock(&a->lock);
        return true; /* there are more by now */
    }
    while (node != 0) {
        uint32_t next;
        struct heddle_cell *w = heddle_edge_owner(&d->ctx->pool, node, &next);
        struct dev_ahead *to = ahead_find(a, w);

        if (to == NULL) {
            to = ahead_new(a, w);
            if (to == NULL) { /* it and the rest go back */
                heddle_edges_return(&d->ctx->pool, c, node);
                break;
            }
            ahead_list(a, to);
        }
        ahead_link(a, dt->ahead, to);
        did = ahead_consider(d, to) || did;
        node = next;
    }
    heddle_spin_unlock(&a->lock);
    return did;
}

void heddle_ahead_launched(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    struct ahead *a = &d->ahead;

    /* A task that runs behind this one may overwrite the only copy of what this one would
     * need to run again: so this one must be sure to end, or to be lost with its device. */
    if (!d->cls[dt->worker->cls].drv->is_sure || dt->called != HEDDLE_OK ||
        !exec_is_plain(&dt->x, dt->ext))
        return;
    dt->is_flying = true;
    dt->fly_next = NULL;
    dt->fly_prev = a->flying_last;
    if (a->flying_last != NULL)
        a->flying_last->fly_next = dt;
    else
        a->flying = dt;
    a->flying_last = dt;
    (void)ahead_take(d, dt);
}

void heddle_ahead_landed(struct dev_task *dt)
{
    struct ahead *a = &dt->ctx->dev->ahead;

    if (!dt->is_flying)
        return;
    dt->is_flying = false;
    if (a->look == dt)
        a->look = dt->fly_next;
    if (dt->fly_prev != NULL)
        dt->fly_prev->fly_next = dt->fly_next;
    else
        a->flying = dt->fly_next;
    if (dt->fly_next != NULL)
        dt->fly_next->fly_prev = dt->fly_prev;
    else
        a->flying_last = dt->fly_prev;
}

bool heddle_ahead_step(struct heddle_devs *d, bool is_busy)
{
    struct ahead *a = &d->ahead;
    struct dev_ahead *r, *next;
    struct dev_task *dt = is_busy && a->look != NULL ? a->look : a->flying;
    bool did = false;

    /* Their cells are the submitters' too, and so a miss each: a driver that has
     * launches to do looks at some of them at a time. */
    for (unsigned n = 0; dt != NULL && (n < AHEAD_LOOKS || !is_busy); n++) {
        did = ahead_take(d, dt) || did;
        dt = dt->fly_next;
    }
    a->look = dt;
    heddle_spin_lock(&a->lock);
    for (r = a->waiting; r != NULL; r = next) {
        next = r->next;
        if (ahead_consider(d, r)) { /* the lock was let go */
            next = a->waiting;
            did = true;
        }
    }
    heddle_spin_unlock(&a->lock);
    while (a->freed != NULL) {
        dt = a->freed;
        a->freed = dt->next;
        heddle_dev_unhold(dt);
        did = true;
    }
    return did;
}

/* The worker whose stream a predecessor is on, else one of its class; NULL: none of
 * them has room. */
static struct dev_worker *direct_worker(struct heddle_devs *d, const struct dev_ahead *r)
{
    struct dev_worker *dw = r->pred[0]->dt->on;

    if (d->time->has_room(d, dw))
        return dw;
    for (unsigned i = 0; i < d->nworkers; i++)
        if (d->worker[i].cls == r->cls && d->time->has_room(d, &d->worker[i]))
            return &d->worker[i];
    return NULL;
}

/* Looks at one of them. True: it is not on the list any more. */
static bool direct_begin(struct heddle_devs *d, struct heddle_sched_task *t)
{
    struct dev_worker *dw = NULL;
    struct dev_ahead *r;
    bool is_aside = false;

    heddle_spin_lock(&d->ahead.lock);
    r = ahead_of(&d->ahead, t);
    if (r != NULL && !ahead_is_supported(r)) {
        r->state = ASIDE; /* the device is gone */
        is_aside = true;
    } else if (r != NULL) {
        dw = direct_worker(d, r);
    }
    heddle_spin_unlock(&d->ahead.lock);
    if (is_aside)
        return true;
    if (r == NULL) { /* really ready: a task like others */
        heddle_engine_push(d->ctx->driver, t);
        return true;
    }
    if (dw == NULL)
        return false;
    heddle_dev_tell_took(d, t, dw->id);
    heddle_dev_begin(d, dw, t);
    return true;
}

/* Those that begin may put others on the list. */
bool heddle_ahead_begin_direct(struct heddle_devs *d)
{
    struct ahead *a = &d->ahead;
    struct heddle_sched_task *kept = NULL, *last = NULL;
    bool did = false;

    while (a->direct != NULL) {
        struct heddle_sched_task *t = a->direct;

        a->direct = t->link[0];
        if (direct_begin(d, t)) {
            did = true;
            continue;
        }
        t->link[0] = NULL;
        if (last != NULL)
            last->link[0] = t;
        else
            kept = t;
        last = t;
    }
    a->direct = kept;
    a->direct_last = last;
    return did;
}
