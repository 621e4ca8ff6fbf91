/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/host: tasks on cores, and hidden tasks, in a context with other memories.
 *
 * Structure  a task whose operands were never away costs one look at each root.
 *            Otherwise it asks for its data and is put aside; the device thread puts it on
 *            the list of supplied tasks, and a core goes on with it from the start.
 *            link[1] of a task that is in no queue is its struct dev_task, or
 *            NULL.
 * Threads    workers; host_ready(): the device thread.
 */
#include <math.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/park.h"
#include "base/thread.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/advice.h"
#include "core/dev/begin.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/host.h"
#include "core/dev/log.h"
#include "core/dev/queue.h"
#include "core/dev/task.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/graph/node.h"
#include "core/outside.h"
#include "core/scope.h"
#include "core/slow.h"
#include "core/worker.h"
#include "data/data.h"
#include "drive/drive.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"

/* Remembers which worker got a running task of a core from the scheduler; another worker may
 * end the task. 1 + the worker's number is in link[0], which has no other use meanwhile. */
static void task_set_popper(struct heddle_sched_task *t, unsigned popper)
{
    t->link[0] = (struct heddle_sched_task *)(uintptr_t)(popper + 1u);
}

/* --- requests ---------------------------------------------------------------------- */

/* The device thread: data are on the host, or cannot be. */
static void host_ready(struct heddle_mem_req *req, heddle_status st)
{
    struct dev_task *dt = dev_task_of(req);
    heddle_ctx *ctx = dt->ctx;

    heddle_dev_log_wait(dt, DEV_WAIT_NONE);
    dt->is_settled = st != HEDDLE_OK;
    heddle_store_rel(&dt->status, (int)st);
    heddle_dev_put_supplied(ctx->dev, dt->t);
    heddle_park_ring(&ctx->park, ctx->driver->id);
    heddle_ctx_signal(ctx);
}

static struct dev_task *host_request(struct worker *w, struct heddle_sched_task *t,
                                     const struct heddle_exec *x)
{
    struct dev_task *dt = heddle_dev_task_new(w);

    if (dt == NULL)
        return NULL;
    dt->t = t;
    dt->x = *x;
    dt->popper = w->popper;
    dt->req.task = x->id;
    heddle_store_rlx(&dt->status, (int)HEDDLE_OK); /* not shared yet */
    dt->is_settled = false;
    dt->req.ready = host_ready;
    t->link[1] = (struct heddle_sched_task *)(void *)dt;
    return dt;
}

/* Is it, or may it be, elsewhere than in its memory on the host? With a disk that
 * goes for all that the runtime allocates. */
static bool unit_is_concerned(const struct heddle_devs *d, const heddle_handle *u)
{
    return heddle_mem_concerns(u) || (d->disk != NULL && u->root->owns_memory);
}

static bool host_is_concerned(const struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops; i++)
        if (!heddle_mode_is_private(x->mode[i]) && unit_is_concerned(x->ctx->dev, x->op[i]))
            return true;
    return false;
}

/* Ends a task that did not run, with the sentence in s. */
static void host_refuse(struct worker *w, struct heddle_exec *x, struct exec_slow *s,
                        heddle_status st)
{
    struct heddle_sched_task *next;

    x->slow = s;
    next = x->node != NULL ? heddle_node_leave(x, st) : heddle_end_leave(x, st);
    if (next != NULL)
        heddle_engine_push(w, next);
}

static void host_explain(struct dev_task *dt, struct exec_slow *s)
{
    char name[64];

    if (dt->req.culprit != NULL)
        snprintf(s->message, sizeof(s->message),
                 heddle_load_acq(&dt->status) == HEDDLE_EDEV
                     ? "the only copy of its operand %s was lost"
                     : "its operand %s could not be brought to the host",
                 heddle_unit_name(dt->req.culprit, name, sizeof(name)));
    else
        snprintf(s->message, sizeof(s->message), "no room on the host for its operands");
    if (dt->ctx->dev->disk != NULL && heddle_load_acq(&dt->status) == HEDDLE_ENOMEM) {
        struct heddle_dev *disk = dt->ctx->dev->disk;
        const char *why = heddle_dev_base(disk)->driver->error(disk);

        if (why[0] != '\0')
            snprintf(s->message, sizeof(s->message), "%s", why);
    }
}

static bool supply_host(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                        const struct task_ext *ext)
{
    struct dev_task *dt = dev_record(t);
    struct exec_slow s = {.name = ext != NULL ? ext->name : NULL};
    heddle_status st = HEDDLE_OK;

    task_set_popper(t, dt != NULL ? dt->popper : w->popper);
    if (dt == NULL) {
        if (!host_is_concerned(x))
            return true;
        x->slow = &s;
        st = heddle_slow_may_start(x, ext);
        x->slow = NULL;
        if (st != HEDDLE_OK)
            return true; /* it needs no data to end, heddle_slow_body() sees to it */
        dt = host_request(w, t, x);
        if (dt == NULL || !heddle_dev_fill(dt, 0))
            st = HEDDLE_ENOMEM;
        if (st == HEDDLE_OK) {
            /* A parent may hold what its children wait for: memory.md. */
            dt->req.is_forced = x->cell == NULL || x->cell->scope != NULL;
            dt->req.is_watched = true;
            heddle_dev_log_wait(dt, DEV_WAIT_ROOM);
            if (!heddle_mem_begin(w->ctx->mem, &dt->req))
                return false;
            heddle_dev_log_wait(dt, DEV_WAIT_NONE);
            return true;
        }
        if (dt != NULL)
            dt->is_settled = true;
        snprintf(s.message, sizeof(s.message), "no memory for its record");
    } else {
        st = (heddle_status)heddle_load_acq(&dt->status);
        if (st == HEDDLE_OK)
            return true;
        if (dt->req.culprit != NULL && heddle_load_acq(&dt->req.culprit->mark) != 0) {
            st = HEDDLE_ECANCELED; /* its writer failed, or it went with a
                                      device, and that was said */
            s.is_skipped = s.is_missing = true;
        } else {
            host_explain(dt, &s);
        }
    }
    host_refuse(w, x, &s, st);
    return false;
}

/* Ends a task for which no device is left. */
void heddle_dev_give_up(struct worker *w, struct heddle_sched_task *t)
{
    struct task_ext own;
    struct heddle_exec x;
    const struct task_ext *ext = heddle_task_exec(w, t, &x, &own);
    struct exec_slow s = {.name = ext != NULL ? ext->name : NULL};

    if (heddle_is_node(t))
        heddle_node_rearm(t);
    t->link[0] = NULL; /* no scheduler gave the task to a worker */
    if (w->ctx->sched->ended != NULL)
        w->ctx->sched->ended(w->ctx->sched_self, t, HEDDLE_SCHED_NOBODY, NAN);
    snprintf(s.message, sizeof(s.message), "no device is left that can run it");
    host_refuse(w, &x, &s, HEDDLE_EDEV);
}

static bool supply_hidden(struct worker *w, struct heddle_cell *c)
{
    heddle_ctx *ctx = w->ctx;
    struct heddle_devs *d = ctx->dev;
    struct heddle_exec x;
    struct dev_task *dt;
    enum heddle_mode mode = HEDDLE_RW;

    if (c->kinfo == &ctx->advice) {
        heddle_dev_advise(ctx, c);
        return true;
    }
    if (c->sched.link[1] != NULL || (c->flags & TASK_NOPS) == 0 ||
        !unit_is_concerned(d, c->op[0]) || c->kinfo == &ctx->notice)
        return true;
    heddle_cell_exec_ext(w, c, heddle_cell_ext(ctx, c), &x);
    if (c->kinfo == &ctx->grant)
        mode = x.mode[0];
    else if (c->kinfo == &ctx->release) /* what is the user's comes home */
        mode = c->op[0]->root == c->op[0] && c->op[0]->owns_memory ? HEDDLE_W : HEDDLE_R;
    dt = host_request(w, &c->sched, &x);
    if (dt == NULL) {
        /* No memory for a record: try again, a task that ends will give one back. */
        heddle_dev_put_supplied(d, &c->sched);
        heddle_thread_yield();
        return false;
    }
    dt->req.node = 0;
    dt->req.nops = 1;
    dt->req.local[0] = (struct heddle_mem_op){.unit = c->op[0], .mode = mode};
    dt->req.is_forced = true;
    dt->req.is_last = c->kinfo == &ctx->release;
    return heddle_mem_begin(ctx->mem, &dt->req);
}

heddle_status heddle_dev_supply(struct worker *w, struct heddle_sched_task *t,
                                struct heddle_exec *x, const struct task_ext *ext)
{
    if (x != NULL)
        return supply_host(w, t, x, ext) ? HEDDLE_OK : HEDDLE_AGAIN;
    if (!supply_hidden(w, heddle_task_cell(t)))
        return HEDDLE_AGAIN;
    return dev_record(t) == NULL ? HEDDLE_OK
                                 : (heddle_status)heddle_load_acq(&dev_record(t)->status);
}

/* --- parents and children ----------------------------------------------------------- */

static struct heddle_sched_task *exec_task(const struct heddle_exec *x)
{
    if (x->cell != NULL)
        return &x->cell->sched;
    return (struct heddle_sched_task *)(void *)x->node;
}

static void exec_written(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops; i++)
        if (heddle_mode_writes(x->mode[i]) && heddle_mem_concerns(x->op[i]))
            heddle_mem_written(x->ctx->mem, x->op[i]);
}

void heddle_dev_lend(struct heddle_exec *x)
{
    struct heddle_sched_task *t = exec_task(x);

    if (t == NULL)
        return;
    if (t->link[1] != NULL) {
        struct dev_task *dt = dev_record(t);

        dt->is_lent = true;
        if (!dt->is_settled)
            heddle_mem_lend(x->ctx->mem, &dt->req);
    }
    exec_written(x);
}

void heddle_dev_hand_out(heddle_ctx *ctx, struct heddle_sched_task *t, heddle_handle *unit,
                         enum heddle_mode mode)
{
    struct dev_task *dt = dev_record(t);

    if (dt == NULL || !heddle_mode_writes(mode))
        return;
    dt->is_lent = true;
    heddle_mem_hand_out(ctx->mem, &dt->req);
    heddle_mem_written(ctx->mem, unit);
}

static void return_ready(struct heddle_mem_req *req, heddle_status st)
{
    struct dev_task *dt = dev_task_of(req);
    heddle_ctx *ctx = dt->ctx;

    heddle_store_rel(&dt->status, (int)st);
    heddle_ctx_signal(ctx);
}

static bool return_is_there(void *arg)
{
    return heddle_load_acq(&((struct dev_task *)arg)->status) != HEDDLE_AGAIN;
}

heddle_status heddle_dev_return(struct heddle_exec *x)
{
    struct heddle_sched_task *t = exec_task(x);
    struct dev_task *dt, *old;
    heddle_status st = HEDDLE_OK;

    if (t == NULL || !host_is_concerned(x))
        return HEDDLE_OK;
    old = dev_record(t);
    dt = host_request(x->worker, t, x);
    t->link[1] = (struct heddle_sched_task *)(void *)old;
    if (dt == NULL || !heddle_dev_fill(dt, 0))
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < dt->req.nops; i++)
        if (heddle_mode_overwrites(dt->req.op[i].mode)) /* children have written it */
            dt->req.op[i].mode = HEDDLE_RW;
    dt->req.is_forced = true;
    dt->req.ready = return_ready;
    heddle_store_rlx(&dt->status, (int)HEDDLE_AGAIN); /* not shared yet */
    if (!heddle_mem_begin(x->ctx->mem, &dt->req)) {
        (void)heddle_engine_wait(x->worker, return_is_there, dt, 0);
        st = (heddle_status)heddle_load_acq(&dt->status);
    }
    heddle_store_rlx(&dt->status, (int)HEDDLE_OK);
    dt->is_settled = st != HEDDLE_OK;
    if (dt->req.culprit != NULL && heddle_load_acq(&dt->req.culprit->mark) != 0)
        st = HEDDLE_OK; /* the child that failed says so */
    dt->is_lent = true;
    exec_written(x); /* it may write again */
    if (old == NULL) {
        t->link[1] = (struct heddle_sched_task *)(void *)dt;
        if (!dt->is_settled)
            heddle_mem_lend(x->ctx->mem, &dt->req);
        return st;
    }
    if (!dt->is_settled) /* what it had from the beginning is pinned still */
        heddle_mem_end(x->ctx->mem, &dt->req, HEDDLE_EDECLINED);
    heddle_dev_task_free(x->worker, dt);
    return st;
}
