/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/host: tasks on cores, and hidden tasks, in a context with other memories.
 *
 * Structure  a task whose operands were never away costs one look at each root.
 *            Otherwise it asks for its data and is put aside; the driver puts it on
 *            the list of supplied tasks, and a core goes on with it from the start.
 *            link[1] of a task that nobody has queued is its struct dev_task, or
 *            NULL.
 * Threads    workers; host_ready(): the driver.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/dev/dev.h"

/* Who got a running task of a core from the scheduler: the one who ends it may be
 * another. 1 + the worker's number in link[0], which nobody uses meanwhile. */
static void task_set_popper(struct heddle_sched_task *t, unsigned popper)
{
    t->link[0] = (struct heddle_sched_task *)(uintptr_t)(popper + 1u);
}

static struct dev_task *task_record(const struct heddle_sched_task *t)
{
    return (struct dev_task *)(void *)t->link[1];
}

/* --- ready tasks ---------------------------------------------------------------- */

void heddle_dev_supply(struct heddle_devs *d, struct heddle_sched_task *t)
{
    heddle_spin_lock(&d->supplied_lock);
    t->link[0] = NULL;
    if (d->supplied == NULL)
        d->supplied = t;
    else
        d->supplied_last->link[0] = t;
    d->supplied_last = t;
    heddle_add_acqrel(&d->nsupplied, 1u);
    heddle_spin_unlock(&d->supplied_lock);
}

struct heddle_sched_task *heddle_dev_take_supplied(struct heddle_devs *d)
{
    struct heddle_sched_task *t;

    if (heddle_load_acq(&d->nsupplied) == 0)
        return NULL;
    heddle_spin_lock(&d->supplied_lock);
    t = d->supplied;
    if (t != NULL) {
        d->supplied = t->link[0];
        heddle_sub_acqrel(&d->nsupplied, 1u);
    }
    heddle_spin_unlock(&d->supplied_lock);
    return t;
}

/* The engine's own work: any core does it, no scheduler is asked. */
bool heddle_dev_is_own(struct heddle_sched_task *t)
{
    const struct heddle_cell *c = heddle_task_cell(t);

    return !heddle_is_node(t) &&
           ((c->flags & TASK_HIDDEN) != 0 || c->kinfo->kernel == &heddle_launch_kernel);
}

bool heddle_dev_has_home(struct heddle_devs *d, struct heddle_sched_task *t)
{
    for (unsigned c = 0; c < d->ncls; c++)
        if (!isinf(heddle_dev_view.cost(d, t, c, NULL)))
            return true;
    return false;
}

bool heddle_dev_wants_cores(const heddle_ctx *ctx)
{
    /* After a loss a task may be queued that nobody can run: they see to it. */
    return heddle_load_acq(&ctx->dev->ncore) != 0 || heddle_load_acq(&ctx->dev->nsupplied) != 0 ||
           heddle_load_acq(&ctx->dev->nlost) != 0;
}

void heddle_dev_count_core(struct heddle_devs *d, struct heddle_sched_task *t, bool goes)
{
    const struct heddle_kinfo *k =
        heddle_is_node(t) ? heddle_node_kinfo(t) : heddle_task_cell(t)->kinfo;

    if (!k->has_core)
        return;
    if (goes)
        heddle_add_acqrel(&d->ncore, 1u);
    else
        heddle_sub_acqrel(&d->ncore, 1u);
}

void heddle_dev_push(heddle_ctx *ctx, struct heddle_sched_task *t)
{
    struct heddle_devs *d = ctx->dev;

    const bool is_own = heddle_dev_is_own(t);
    const uint32_t nlost = heddle_load_acq(&d->nlost);

    if (is_own || (nlost != 0 && !heddle_dev_has_home(d, t))) {
        if (!is_own && heddle_ahead_aside(d, t))
            return; /* not before those it waits for have ended */
        t->link[1] = NULL;
        heddle_dev_supply(d, t);
        return;
    }
    heddle_dev_count_core(d, t, true);
    if (d->is_virtual)
        heddle_cost_pushed(d, t);
    ctx->sched->push(ctx->sched_self, t, HEDDLE_SCHED_FOREIGN);
    /* A class was lost meanwhile: it may have gone to its queue, after that was
     * emptied. */
    if (HEDDLE_UNLIKELY(heddle_load_acq(&d->nlost) != nlost))
        heddle_store_rel(&d->has_strays, 1u);
    if (d->nworkers != 0)
        heddle_dev_kick(d);
}

/* A supplied task that waited for nothing: no device is left that can run it. */
static bool is_homeless(struct heddle_devs *d, struct heddle_sched_task *t)
{
    return heddle_load_acq(&d->nlost) != 0 && !heddle_dev_is_own(t) && task_record(t) == NULL &&
           !heddle_dev_has_home(d, t);
}

struct heddle_sched_task *heddle_dev_pop(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    struct heddle_sched_task *t;

    while ((t = heddle_dev_take_supplied(d)) != NULL) {
        if (!is_homeless(d, t))
            return t;
        heddle_dev_give_up(w, t);
    }
    do {
        if (!heddle_dev_wants_cores(w->ctx))
            return NULL;
        t = w->ctx->sched->pop(w->ctx->sched_self, w->id);
        if (t != NULL)
            heddle_dev_count_core(d, t, false);
    } while (t != NULL && !heddle_ahead_pop(d, t, 0, w->id));
    if (t != NULL) {
        t->link[1] = NULL;
        w->popper = w->id;
        w->popped_ns = heddle_dev_now_ns(d);
    }
    return t;
}

void heddle_dev_defer(struct worker *w, struct heddle_sched_task *t)
{
    const struct heddle_sched_ops *sched = w->ctx->sched;

    if (sched->ended != NULL)
        sched->ended(w->ctx->sched_self, t, w->popper, -1);
}

void heddle_dev_put_back(struct worker *w, struct heddle_sched_task *t)
{
    heddle_ctx *ctx = w->ctx;

    if (heddle_dev_is_own(t) || task_record(t) != NULL) {
        heddle_dev_supply(ctx->dev, t); /* its data are there */
    } else {
        heddle_dev_defer(w, t);
        heddle_dev_push(ctx, t);
    }
    heddle_park_ring(&ctx->park, ctx->nworkers);
}

void heddle_dev_announce(heddle_ctx *ctx, struct heddle_sched_task *t, bool is_ready)
{
    struct heddle_sched_task unknown = {0}, *pred = &unknown;

    if (ctx->sched->submitted != NULL)
        ctx->sched->submitted(ctx->sched_self, t, &pred, is_ready ? 0 : 1);
}

/* --- requests ---------------------------------------------------------------------- */

/* The driver: data are on the host, or cannot be. */
static void host_ready(struct heddle_mem_req *req, heddle_status st)
{
    struct dev_task *dt = dev_task_of(req);
    heddle_ctx *ctx = dt->ctx;

    heddle_dev_log_wait(dt, DEV_WAIT_NONE);
    dt->is_settled = st != HEDDLE_OK;
    heddle_store_rel(&dt->status, (int)st);
    heddle_dev_supply(ctx->dev, dt->t);
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
        if (x->mode[i] <= HEDDLE_COMMUTE && unit_is_concerned(x->ctx->dev, x->op[i]))
            return true;
    return false;
}

/* Ends a task that did not run, with the sentence in s. */
static void host_refuse(struct worker *w, struct heddle_exec *x, struct exec_slow *s,
                        heddle_status st)
{
    struct heddle_sched_task *next;

    x->slow = s;
    next = x->node != NULL ? heddle_node_leave(x, st) : heddle_slow_leave(x, st);
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

bool heddle_dev_supply_host(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                            const struct task_ext *ext)
{
    struct dev_task *dt = task_record(t);
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
            return true; /* it needs no data to end, slow_body() sees to it */
        dt = host_request(w, t, x);
        if (dt == NULL || !heddle_dev_fill(dt, 0))
            st = HEDDLE_ENOMEM;
        if (st == HEDDLE_OK) {
            /* A parent may hold what its children wait for: memory.md. */
            dt->req.is_forced = x->cell == NULL || x->cell->scope != NULL;
            dt->req.is_watched = true;
            heddle_dev_log_wait(dt, DEV_WAIT_ROOM);
            if (!heddle_mem_begin(w->ctx->dev->mem, &dt->req))
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
            s.is_skipped = true;
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
    t->link[0] = NULL; /* no scheduler gave it to anybody */
    if (w->ctx->sched->ended != NULL)
        w->ctx->sched->ended(w->ctx->sched_self, t, HEDDLE_SCHED_NOBODY, NAN);
    snprintf(s.message, sizeof(s.message), "no device is left that can run it");
    host_refuse(w, &x, &s, HEDDLE_EDEV);
}

bool heddle_dev_supply_hidden(struct worker *w, struct heddle_cell *c)
{
    heddle_ctx *ctx = w->ctx;
    struct heddle_devs *d = ctx->dev;
    struct heddle_exec x;
    struct dev_task *dt;
    enum heddle_mode mode = HEDDLE_RW;

    if (c->sched.link[1] != NULL || (c->flags & TASK_NOPS) == 0 ||
        !unit_is_concerned(d, c->op[0]) || c->kinfo == &ctx->notice || c->kinfo == &ctx->advice)
        return true;
    heddle_slow_exec(w, c, heddle_cell_ext(ctx, c), &x);
    if (c->kinfo == &ctx->grant)
        mode = x.mode[0];
    else if (c->kinfo == &ctx->release) /* what is the user's comes home */
        mode = c->op[0]->root == c->op[0] && c->op[0]->owns_memory ? HEDDLE_W : HEDDLE_R;
    dt = host_request(w, &c->sched, &x);
    if (dt == NULL) {
        /* No memory for a record: try again, somebody will give one back. */
        heddle_dev_supply(d, &c->sched);
        heddle_thread_yield();
        return false;
    }
    dt->req.node = 0;
    dt->req.nops = 1;
    dt->req.local[0] = (struct heddle_mem_op){.unit = c->op[0], .mode = mode};
    dt->req.is_forced = true;
    dt->req.is_last = c->kinfo == &ctx->release;
    return heddle_mem_begin(d->mem, &dt->req);
}

heddle_status heddle_dev_status(const struct heddle_sched_task *t)
{
    return t->link[1] == NULL ? HEDDLE_OK : (heddle_status)heddle_load_acq(&task_record(t)->status);
}

/* The next uses of its operands are over. The end of its request says so, if there
 * is one: then its operands are those. */
static void settle_uses(struct worker *w, struct heddle_sched_task *t, struct dev_task *dt)
{
    struct heddle_devs *d = w->ctx->dev;
    struct heddle_cell *c = heddle_task_cell(t);
    struct heddle_exec x;

    if (!d->has_budget || heddle_is_node(t) || c->scope != NULL || (c->flags & TASK_HIDDEN) != 0)
        return;
    if (dt != NULL && !dt->is_settled) {
        dt->req.user = c->id;
        return;
    }
    heddle_slow_exec(w, c, heddle_cell_ext(w->ctx, c), &x);
    for (unsigned i = 0; i < x.nops; i++)
        if (x.mode[i] <= HEDDLE_COMMUTE)
            heddle_mem_used(d->mem, x.op[i], x.id);
}

/* A task of a core is over, for the scheduler too. (Those of devices tell it when
 * they leave their worker.) */
static void settle_sched(struct worker *w, struct heddle_sched_task *t, const struct dev_task *dt)
{
    const struct heddle_sched_ops *sched = w->ctx->sched;
    const uintptr_t popper = (uintptr_t)t->link[0];
    double ns = 0;

    if (sched->ended == NULL || heddle_dev_is_own(t) || popper == 0 ||
        (dt != NULL && dt->worker != NULL))
        return;
    if (w->popped_ns != 0 && w->popper == popper - 1)
        ns = (double)(heddle_dev_now_ns(w->ctx->dev) - w->popped_ns);
    sched->ended(w->ctx->sched_self, t, (unsigned)popper - 1, ns);
}

void heddle_dev_drop(struct worker *w, struct heddle_sched_task *t)
{
    struct dev_task *dt = task_record(t);

    t->link[1] = NULL;
    if (dt == NULL)
        return;
    if (!dt->is_settled)
        heddle_mem_end(w->ctx->dev->mem, &dt->req, HEDDLE_EDECLINED);
    heddle_dev_task_free(w, dt);
}

void heddle_dev_settle(struct worker *w, struct heddle_sched_task *t, heddle_status st)
{
    struct heddle_devs *d = w->ctx->dev;
    struct dev_task *dt = task_record(t);

    t->link[1] = NULL;
    settle_uses(w, t, dt);
    settle_sched(w, t, dt);
    heddle_dev_drop_note(d, t);
    if (dt == NULL)
        return;
    if (!dt->is_settled) /* what children wrote is where they wrote it */
        heddle_mem_end(d->mem, &dt->req, dt->is_lent ? HEDDLE_EDECLINED : st);
    heddle_dev_task_free(w, dt);
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
        if ((x->mode[i] & HEDDLE_W) != 0 && x->mode[i] <= HEDDLE_COMMUTE &&
            heddle_mem_concerns(x->op[i]))
            heddle_mem_written(x->ctx->dev->mem, x->op[i]);
}

void heddle_dev_lend(struct heddle_exec *x)
{
    struct heddle_sched_task *t = exec_task(x);

    if (t == NULL)
        return;
    if (t->link[1] != NULL) {
        struct dev_task *dt = task_record(t);

        dt->is_lent = true;
        if (!dt->is_settled)
            heddle_mem_lend(x->ctx->dev->mem, &dt->req);
    }
    exec_written(x);
}

void heddle_dev_lend_unit(heddle_ctx *ctx, struct heddle_sched_task *t, heddle_handle *unit,
                          enum heddle_mode mode)
{
    struct dev_task *dt = task_record(t);

    if (dt == NULL || (mode & HEDDLE_W) == 0)
        return;
    dt->is_lent = true;
    heddle_mem_hand_out(ctx->dev->mem, &dt->req);
    heddle_mem_written(ctx->dev->mem, unit);
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
    struct heddle_devs *d = x->ctx->dev;
    struct dev_task *dt, *old;
    heddle_status st = HEDDLE_OK;

    if (t == NULL || !host_is_concerned(x))
        return HEDDLE_OK;
    old = task_record(t);
    dt = host_request(x->worker, t, x);
    t->link[1] = (struct heddle_sched_task *)(void *)old;
    if (dt == NULL || !heddle_dev_fill(dt, 0))
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < dt->req.nops; i++)
        if (dt->req.op[i].mode == HEDDLE_W) /* children have written it */
            dt->req.op[i].mode = HEDDLE_RW;
    dt->req.is_forced = true;
    dt->req.ready = return_ready;
    heddle_store_rlx(&dt->status, (int)HEDDLE_AGAIN); /* not shared yet */
    if (!heddle_mem_begin(d->mem, &dt->req)) {
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
            heddle_mem_lend(d->mem, &dt->req);
        return st;
    }
    if (!dt->is_settled) /* what it had from the beginning is pinned still */
        heddle_mem_end(d->mem, &dt->req, HEDDLE_EDECLINED);
    heddle_dev_task_free(x->worker, dt);
    return st;
}

bool heddle_dev_may_free(heddle_ctx *ctx, heddle_handle *h)
{
    return heddle_mem_may_forget(ctx->dev->mem, h);
}

void heddle_dev_set_homing(heddle_ctx *ctx, bool is_homing)
{
    if (ctx->dev->has_budget) /* else nobody knows the next uses */
        heddle_mem_set_homing(ctx->dev->mem, is_homing);
}

void heddle_dev_unpin_host(heddle_ctx *ctx, heddle_handle *root)
{
    heddle_mem_unpin_host(ctx->dev->mem, root);
}

/* --- hints ------------------------------------------------------------------------- */

enum { ADVICE_SHIFT = 8 };

void heddle_dev_advise(heddle_ctx *ctx, heddle_handle *h, uintptr_t arg)
{
    struct heddle_mem *m = ctx->dev->mem;
    const unsigned node = (unsigned)(arg >> ADVICE_SHIFT);

    switch ((enum heddle_advice)(arg & 0xff)) {
    case HEDDLE_PREFETCH: heddle_mem_prefetch(m, h, node); break;
    case HEDDLE_WONT_USE: heddle_mem_wont_use(m, h); break;
    case HEDDLE_EVICT: heddle_mem_evict(m, h); break;
    case HEDDLE_PIN: heddle_mem_pin(m, h, node, true); break;
    case HEDDLE_UNPIN: heddle_mem_pin(m, h, node, false); break;
    }
}

heddle_status heddle_handle_advise(heddle_handle *h, enum heddle_advice advice, unsigned memory)
{
    struct submission s = {0};
    heddle_status st;
    heddle_ctx *ctx;

    HEDDLE_CHECK(h != NULL);
    if (h->reg == NULL)
        return HEDDLE_ESTATE;
    ctx = h->reg->owner;
    if (advice < HEDDLE_PREFETCH || advice > HEDDLE_UNPIN)
        return heddle_fail(ctx, HEDDLE_EINVAL, "there is no advice %d", (int)advice);
    if (memory >= (ctx->dev != NULL ? ctx->dev->nnodes : 1))
        return heddle_fail(ctx, HEDDLE_EINVAL, "there is no memory %u", memory);
    if (ctx->dev == NULL)
        return HEDDLE_OK; /* everything is where it should be */
    s.sub = &ctx->root;
    s.domain = &ctx->root.domain;
    s.kinfo = &ctx->advice;
    HEDDLE_TRY(heddle_submit_lock(ctx));
    st =
        heddle_submit_hidden(ctx, &s, h, HEDDLE_R,
                             (void *)((uintptr_t)memory << ADVICE_SHIFT | (uintptr_t)advice), NULL);
    heddle_submit_unlock(ctx);
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for an advice");
    heddle_submit_finish(ctx, &s);
    return HEDDLE_OK;
}
