/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/run: a task on a device, from its launch to its end.
 *
 *   go       partial results go there, then launch
 *   done     partial results come back, then the end: or another try, on another
 *            variant or class, or after the device was lost
 *
 * Invariants (1) whatever a task holds (turns aside) is given back before it is
 *                tried again
 *            (2) a task that no class can run any more ends with a sentence
 * Threads    the driver.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/dev/dev.h"

enum { TIME_LONG_NS = 20000, NOTE_TRIES = 0xff, NOTE_SHIFT = 8, RAW_TRIES = 3 };

/* --- records ------------------------------------------------------------------ */

struct dev_task *heddle_dev_task_new(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    const bool is_driver = w == d->ctx->driver;
    struct dev_task *dt = is_driver ? d->spare : NULL;

    if (dt != NULL) {
        d->spare = dt->next;
    } else {
        heddle_spin_lock(&d->pool_lock);
        dt = d->free;
        if (dt != NULL)
            d->free = dt->next;
        heddle_spin_unlock(&d->pool_lock);
    }
    if (dt == NULL)
        dt = heddle_zalloc(&d->ctx->alloc, 1, sizeof(*dt));
    if (dt == NULL)
        return NULL;
    dt->ctx = d->ctx;
    dt->worker = dt->on = NULL;
    dt->ahead = NULL;
    dt->is_flying = dt->has_heir = dt->is_held = dt->was_ahead = false;
    dt->work_ns = 0;
    dt->ext = NULL;
    dt->more = NULL;
    dt->model = NULL;
    dt->nraw = 0;
    dt->is_out = dt->is_lent = dt->has_run = false;
    dt->raw_status = HEDDLE_OK;
    dt->req.nops = dt->req.nprivate = 0;
    dt->req.op = dt->req.local;
    dt->req.is_forced = dt->req.is_last = dt->req.keeps = false;
    dt->req.stays = false;
    dt->req.user = dt->req.task = 0;
    dt->req.is_watched = false;
    dt->wait = DEV_WAIT_NONE;
    dt->s.dev = NULL;
    dt->s.gang = NULL;
    dt->s.message[0] = '\0';
    return dt;
}

void heddle_dev_task_free(struct worker *w, struct dev_task *dt)
{
    struct heddle_devs *d = w->ctx->dev;

    if (dt->more != NULL)
        heddle_free(&d->ctx->alloc, dt->more, (TASK_NOPS + 1) * sizeof(*dt->more));
    if (w == d->ctx->driver) {
        dt->next = d->spare;
        d->spare = dt;
        return;
    }
    heddle_spin_lock(&d->pool_lock);
    dt->next = d->free;
    d->free = dt;
    heddle_spin_unlock(&d->pool_lock);
}

/* What a task has tried in vain: classes << 8 | failures. */
static uint64_t note_get(struct heddle_devs *d, const struct heddle_sched_task *t)
{
    uint64_t v = 0;

    if (heddle_load_acq(&d->nnotes) == 0)
        return 0;
    heddle_spin_lock(&d->note_lock);
    (void)heddle_map_get(&d->notes, (uintptr_t)t, &v);
    heddle_spin_unlock(&d->note_lock);
    return v;
}

static bool note_put(struct heddle_devs *d, const struct heddle_sched_task *t, uint64_t v)
{
    heddle_status st;

    heddle_spin_lock(&d->note_lock);
    st = heddle_map_put(&d->notes, (uintptr_t)t, v);
    heddle_store_rel(&d->nnotes, (uint32_t)heddle_map_count(&d->notes));
    heddle_spin_unlock(&d->note_lock);
    return st == HEDDLE_OK;
}

void heddle_dev_drop_note(struct heddle_devs *d, const struct heddle_sched_task *t)
{
    if (heddle_load_acq(&d->nnotes) == 0)
        return;
    heddle_spin_lock(&d->note_lock);
    (void)heddle_map_remove(&d->notes, (uintptr_t)t, NULL);
    heddle_store_rel(&d->nnotes, (uint32_t)heddle_map_count(&d->notes));
    heddle_spin_unlock(&d->note_lock);
}

unsigned heddle_dev_tries(const struct heddle_exec *x)
{
    const struct heddle_sched_task *t =
        x->cell != NULL ? &x->cell->sched : (struct heddle_sched_task *)(void *)x->node;

    return t == NULL ? 0 : (unsigned)(note_get(x->ctx->dev, t) & NOTE_TRIES);
}

bool heddle_dev_is_barred(struct heddle_devs *d, const struct heddle_sched_task *t, unsigned cls)
{
    return (note_get(d, t) >> (NOTE_SHIFT + cls) & 1) != 0;
}

/* --- the end ------------------------------------------------------------------------ */

void heddle_dev_tell_flush(struct heddle_devs *d)
{
    const unsigned n = d->ntold;

    d->ntold = 0;
    if (n != 0)
        d->ctx->sched->noted(d->ctx->sched_self, d->told, n);
}

static void dev_tell(struct heddle_devs *d, const struct heddle_sched_task *t, unsigned worker,
                     double ns)
{
    d->told[d->ntold++] = (struct heddle_sched_note){t->aux, worker, ns};
    if (d->ntold == DEV_NOTES)
        heddle_dev_tell_flush(d);
}

void heddle_dev_tell_took(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker)
{
    if (d->ctx->sched->noted != NULL)
        dev_tell(d, t, worker, -1);
    else
        d->ctx->sched->took(d->ctx->sched_self, t, worker);
}

void heddle_dev_tell_ended(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker,
                           double ns)
{
    if (d->ctx->sched->ended == NULL)
        return;
    if (ns >= 0 && !d->is_virtual && d->ctx->sched->noted != NULL) {
        dev_tell(d, t, worker, ns);
        return;
    }
    heddle_dev_tell_flush(d); /* it may have been taken just now */
    d->ctx->sched->ended(d->ctx->sched_self, t, worker, ns);
}

/* Tells the scheduler; the worker has room for another. */
static void dev_leave(struct heddle_devs *d, struct dev_task *dt, double ns)
{
    heddle_dev_tell_ended(d, dt->t, dt->worker->id, ns);
    dt->worker->ntasks--;
    dt->worker->work_ns -= dt->work_ns;
    if (dt->worker->ntasks == 0)
        dt->worker->work_ns = 0; /* no rounding is kept */
    heddle_store_rel(&d->ntasks, heddle_load_rlx(&d->ntasks) - 1);
}

static void dev_partials(struct dev_task *dt)
{
    for (unsigned i = 0; i < dt->x.nops && i < HEDDLE_KERNEL_OPERANDS; i++)
        if (dt->s.partial[i] != NULL) {
            heddle_partial_give(dt->x.op[i], dt->s.partial[i]);
            dt->s.partial[i] = NULL;
        }
}

/* The record is gone when the task is: keeps what its end has to say. */
static HEDDLE_NOINLINE struct heddle_sched_task *dev_say(struct dev_task *dt, heddle_status st)
{
    struct heddle_exec x = dt->x;
    struct exec_slow s = dt->s;

    x.slow = &s;
    return x.node != NULL ? heddle_node_leave(&x, st) : heddle_slow_leave(&x, st);
}

/* NAN: nothing is to be learned from it. */
static double dev_took(const struct dev_task *dt, heddle_status st)
{
    if (st != HEDDLE_OK || dt->op.end_ns <= dt->op.begin_ns)
        return 0;
    return dt->op.is_loading ? (double)NAN : (double)(dt->op.end_ns - dt->op.begin_ns);
}

/* The task is over. What it held goes in heddle_dev_settle(). */
void heddle_dev_finish(struct dev_task *dt, heddle_status st)
{
    heddle_ctx *ctx = dt->ctx;
    struct worker *w = ctx->driver;
    struct dev_from from;
    struct heddle_sched_task *next;

    if (heddle_ahead_is_void(dt)) {
        heddle_dev_unhold(dt);
        return;
    }
    if (heddle_ahead_hold(dt, st))
        return;
    heddle_dev_log_task(dt, st);
    dev_leave(ctx->dev, dt, dev_took(dt, st));
    dev_partials(dt);
    if (st != HEDDLE_ECANCELED || !dt->s.is_skipped)
        heddle_store_rlx(&w->executed, heddle_load_rlx(&w->executed) + 1);
    from = heddle_cost_release(ctx->dev, dt);
    next = HEDDLE_LIKELY(st == HEDDLE_OK && dt->x.cell != NULL && dt->x.scope == NULL)
               ? heddle_engine_finish(w, dt->x.cell, st)
               : dev_say(dt, st);
    HEDDLE_ASSERT(next == NULL || ctx->allows_handoff);
    if (next != NULL)
        heddle_engine_push(w, next);
    ctx->dev->cost.from = from;
}

/* Back to the scheduler; is_barred: not on such a device any more. */
void heddle_dev_again(struct dev_task *dt, heddle_status st, bool is_barred, bool has_failed)
{
    heddle_ctx *ctx = dt->ctx;
    struct heddle_devs *d = ctx->dev;
    struct heddle_sched_task *t = dt->t;
    uint64_t note = note_get(d, t);

    if (heddle_ahead_is_ahead(dt)) { /* not before those it waits for */
        /* The scheduler learns it before anybody can push it again. */
        dev_partials(dt);
        dev_leave(d, dt, -1);
        t->link[1] = NULL;
        if (!heddle_ahead_again(dt)) /* they have just ended */
            heddle_engine_push(ctx->driver, t);
        heddle_dev_task_free(ctx->driver, dt);
        return;
    }
    (void)heddle_ahead_again(dt);
    /* Equal devices would do the same, and schedulers think in types. */
    for (unsigned c = 0; c < d->ncls && is_barred; c++)
        if (d->cls[c].type == d->cls[dt->worker->cls].type)
            note |= UINT64_C(1) << (NOTE_SHIFT + c);
    note += has_failed;
    if (note != 0 && !note_put(d, t, note)) {
        heddle_dev_finish(dt, HEDDLE_ENOMEM);
        return;
    }
    /* Somewhere else? */
    for (unsigned c = 0; c < d->ncls; c++) {
        double sure;
        unsigned v;

        if ((note >> (NOTE_SHIFT + c) & 1) == 0 &&
            !isinf(heddle_dev_cost(d, &dt->x, dt->ext, c, &v, &sure))) {
            dev_partials(dt);
            dev_leave(d, dt, is_barred ? (double)NAN : -1);
            t->link[1] = NULL;
            heddle_dev_task_free(ctx->driver, dt);
            if (is_barred) /* it is of another sort now */
                heddle_dev_announce(ctx, t, true);
            heddle_engine_push(ctx->driver, t);
            return;
        }
    }
    if (dt->s.message[0] == '\0')
        snprintf(dt->s.message, sizeof(dt->s.message), "no device is left that can run it (%s)",
                 heddle_status_text(st));
    heddle_dev_finish(dt, st == HEDDLE_EDECLINED ? HEDDLE_ENOVARIANT : st);
}

/* A core that has called functions has tried them all by itself. */
unsigned heddle_dev_retries(const struct dev_task *dt)
{
    if (dt->ext == NULL || (dt->req.node == 0 && dt->has_run))
        return 0;
    return dt->ext->retries;
}

/* What it holds goes; `st`: how what it wrote counts. */
static void dev_drop_data(struct dev_task *dt, heddle_status st)
{
    if (!dt->is_settled)
        heddle_mem_end(dt->ctx->dev->mem, &dt->req, st);
    dt->is_settled = true;
}

/* The function has ended, and partial results are back. */
static void dev_end(struct dev_task *dt, heddle_status st)
{
    struct heddle_devs *d = dt->ctx->dev;
    const unsigned cls = dt->worker->cls;

    if (st > 0)
        st = HEDDLE_ETASK;
    if (heddle_load_rlx(&d->cls[cls].is_lost) != 0)
        st = HEDDLE_EDEV; /* whatever it did is out of reach */
    if (st == HEDDLE_OK) {
        if (dt->model != NULL && dt->op.end_ns > dt->op.begin_ns && !dt->op.is_rough &&
            !dt->op.is_loading)
            heddle_perf_record(dt->model, (double)(dt->op.end_ns - dt->op.begin_ns));
        heddle_dev_finish(dt, st);
        return;
    }
    if (st == HEDDLE_EDEV && d->cls[cls].node != 0)
        heddle_dev_lose(d, cls);
    if (dt->x.scope != NULL ||
        ((st != HEDDLE_EDEV || d->cls[cls].node == 0) && st != HEDDLE_EDECLINED &&
         (note_get(d, dt->t) & NOTE_TRIES) >= heddle_dev_retries(dt))) {
        if (st == HEDDLE_EDEV && dt->s.message[0] == '\0')
            snprintf(dt->s.message, sizeof(dt->s.message), "the device %s was lost",
                     d->cls[cls].name);
        heddle_dev_finish(dt, st);
        return;
    }
    dev_drop_data(dt, st);
    heddle_dev_again(dt, st, st == HEDDLE_EDECLINED, st != HEDDLE_EDEV && st != HEDDLE_EDECLINED);
}

void heddle_dev_unhold(struct dev_task *dt)
{
    heddle_status st;

    /* One that was not even started may be fit to start now. And what ended well
     * is gone when its device went before it could be said. */
    if (heddle_ahead_is_void(dt) || dt->s.is_skipped ||
        heddle_load_rlx(&dt->ctx->dev->cls[dt->worker->cls].is_lost) != 0) {
        dev_drop_data(dt, HEDDLE_EDEV);
        heddle_dev_again(dt, HEDDLE_EDEV, false, false);
        return;
    }
    if (heddle_ahead_has_failed(dt)) {
        st = heddle_slow_may_start(&dt->x, dt->ext);
        if (st != HEDDLE_OK) { /* what it read is not what it should be */
            dt->s.is_skipped = true;
            dt->held = st;
        }
    }
    heddle_dev_finish(dt, dt->held);
}

/* --- partial results: copied there before, back afterwards --------------------------- */

static void raw_done(struct heddle_op *op, heddle_status st);

static heddle_status raw_copy(struct dev_task *dt, unsigned i)
{
    struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];
    const struct heddle_copy copy = {.kind = dt->is_out ? HEDDLE_COPY_OUT : HEDDLE_COPY_IN,
                                     .ptr = dt->s.ptr[i],
                                     .host = dt->is_out ? dt->raw[i].back : dt->s.partial[i]->mem,
                                     .runs = {.run_bytes = dt->x.op[i]->bytes, .nruns = 1}};

    dt->raw[i].op = (struct heddle_op){.done = raw_done};
    dt->raw[i].owner = dt;
    return c->drv->copy(c->dev, &copy, dt->on->stream, &dt->raw[i].op);
}

static void dev_launch(struct dev_task *dt);

/* Partial results are back. When the device is gone, or one of them did not come,
 * the task runs again: then they must be what they were before it. */
static void raw_settle(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    const bool counts =
        dt->raw_status == HEDDLE_OK && heddle_load_rlx(&d->cls[dt->worker->cls].is_lost) == 0;

    for (unsigned i = 0; i < dt->x.nops; i++) {
        const size_t bytes = dt->x.op[i]->bytes;

        if (dt->s.partial[i] == NULL || dt->raw[i].back == NULL)
            continue;
        if (counts)
            memcpy(dt->s.partial[i]->mem, dt->raw[i].back, bytes);
        heddle_free(&dt->ctx->alloc, dt->raw[i].back, bytes);
        dt->raw[i].back = NULL;
    }
}

static void raw_end(struct dev_task *dt)
{
    if (dt->nraw != 0)
        return;
    if (dt->is_out)
        raw_settle(dt);
    if (dt->is_out || dt->raw_status != HEDDLE_OK)
        dev_end(dt, dt->raw_status);
    else
        dev_launch(dt);
}

static void raw_done(struct heddle_op *op, heddle_status st)
{
    struct dev_raw *r = (struct dev_raw *)(void *)op;
    struct dev_task *dt = r->owner;

    if (st != HEDDLE_OK && st != HEDDLE_EDEV && r->tries++ < RAW_TRIES) {
        st = raw_copy(dt, (unsigned)(r - dt->raw));
        if (st == HEDDLE_OK)
            return; /* once more */
    }
    dt->nraw--;
    if (st != HEDDLE_OK && dt->raw_status == HEDDLE_OK)
        dt->raw_status = st;
    raw_end(dt);
}

/* All of them at once; one extra count, so that none ends it too early. */
static void raw_start(struct dev_task *dt, bool is_out)
{
    dt->is_out = is_out;
    dt->nraw = 1;
    for (unsigned i = 0; i < dt->x.nops && dt->raw_status == HEDDLE_OK; i++)
        if (dt->s.partial[i] != NULL) {
            dt->raw[i].tries = 0;
            dt->raw[i].back = is_out ? heddle_alloc(&dt->ctx->alloc, dt->x.op[i]->bytes) : NULL;
            dt->nraw++;
            dt->raw_status = is_out && dt->raw[i].back == NULL ? HEDDLE_ENOMEM : raw_copy(dt, i);
            if (dt->raw_status != HEDDLE_OK)
                dt->nraw--;
        }
    dt->nraw--;
    raw_end(dt);
}

/* --- launch ---------------------------------------------------------------------------- */

heddle_status heddle_dev_call(struct heddle_exec *x)
{
    const struct heddle_variant *v = &x->kinfo->kernel->variants[x->slow->variant];
    heddle_status st;

    heddle_exec_enter(x);
    st = v->run(x);
    heddle_exec_leave(x);
    x->slow->dev->called = st;
    return st;
}

/* A simulated core: everything a real one does, at that moment. */
static heddle_status dev_call_core(struct heddle_exec *x)
{
    struct dev_task *dt = x->slow->dev;

    x->slow->dev = NULL;
    dt->has_run = true;
    return heddle_slow_body(x, x->slow, dt->ext);
}

/* Without functions there is still one that must be called. */
static heddle_status dev_call_expand(struct heddle_exec *x)
{
    heddle_status st;

    heddle_exec_enter(x);
    st = x->kinfo->kernel->expand(x);
    heddle_exec_leave(x);
    return st;
}

static heddle_run_fn dev_function(struct dev_task *dt)
{
    const struct heddle_devs *d = dt->ctx->dev;
    const heddle_kernel *k = dt->x.kinfo->kernel;
    const bool is_core = d->cls[dt->worker->cls].node == 0;

    if (!d->is_virtual)
        return heddle_dev_call;
    if (d->executes)
        return is_core ? dev_call_core : heddle_dev_call;
    if (is_core && k->expand != NULL &&
        (dt->x.kinfo->nvariants == 0 || (k->want_expand != NULL && k->want_expand(&dt->x) == 1)))
        return dev_call_expand;
    return NULL;
}

static void dev_start_next(struct dev_worker *dw);

/* It is on its stream, or is not any more. */
static void stream_count(struct dev_task *dt, bool is_more)
{
    struct dev_worker *on = dt->on;

    on->nlaunched += is_more ? 1 : -1u;
    on->nqueued += is_more ? 1 : -1u;
    on->queued_ns += is_more ? dt->work_ns : -dt->work_ns;
    if (on->nqueued == 0)
        on->queued_ns = 0; /* no rounding is kept */
}

static void launch_done(struct heddle_op *op, heddle_status st)
{
    struct dev_task *dt = (struct dev_task *)(void *)op;
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_worker *dw = dt->worker;
    bool has_partials = false;

    stream_count(dt, false);
    dw->nrunning -= d->is_virtual;
    if (d->is_virtual) {
        heddle_cost_idle(d, dw);
        if (d->energy != NULL)
            heddle_dev_energy_end(dt);
    }
    if (dt->ahead != NULL)
        heddle_side_prefetch(&dt->ctx->pool, dt->x.cell);
    heddle_ahead_landed(dt);
    /* A core has its partial results where they belong. */
    for (unsigned i = 0; i < dt->x.nops && i < HEDDLE_KERNEL_OPERANDS && dt->s.dev != NULL; i++)
        has_partials = has_partials || dt->s.partial[i] != NULL;
    if (st == HEDDLE_OK && has_partials)
        raw_start(dt, true);
    else
        dev_end(dt, st);
    if (d->is_virtual)
        dev_start_next(dw);
}

/* On a core whose task waits for its children: at once, beside the stream. */
static heddle_status launch_beside(struct heddle_devs *d, const struct heddle_dev_launch *l,
                                   struct heddle_op *op)
{
    if (l->run != NULL)
        HEDDLE_TRY(l->run(l->x));
    op->begin_ns = heddle_sim_now(d->sim);
    op->end_ns = op->begin_ns + (uint64_t)l->model_ns;
    heddle_sim_after(d->sim, l->model_ns, op);
    return HEDDLE_OK;
}

/* Clocks on devices cost: short tasks whose length is known are timed now and
 * then. */
static bool launch_wants_time(const struct dev_task *dt)
{
    const struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];

    return dt->work_ns >= TIME_LONG_NS || (c->launches & (dt->time_every - 1)) == 0;
}

/* When it will have ended, about. */
static void launch_note(struct dev_task *dt)
{
    const uint64_t now = heddle_dev_now_ns(dt->ctx->dev);

    if (dt->on->due_ns < now)
        dt->on->due_ns = now;
    dt->on->due_ns += (uint64_t)dt->work_ns;
    dt->due_ns = dt->on->due_ns;
}

/* Virtual time: kernels that share their device. */
static void launch_share(struct dev_task *dt, struct heddle_dev_launch *l)
{
    struct heddle_devs *d = dt->ctx->dev;
    const unsigned cls = dt->worker->cls;
    const struct dev_shape *shape = heddle_dev_shape(d, &dt->x);

    if (shape == NULL || !(shape->share[cls] > 0))
        return;
    l->model_ns = shape->alone[cls];
    l->share_ns = shape->share[cls];
}

/* A launch takes a while: what is needed after it can come meanwhile. A submitter
 * had the task that waits for this one, the driver its next record long ago. */
static void launch_prefetch(const struct heddle_devs *d, const struct dev_task *dt)
{
    const struct dev_task *next = d->spare;

    if (dt->x.cell != NULL)
        heddle_edge_prefetch(&dt->ctx->pool, dt->x.cell);
    if (next == NULL)
        return;
    HEDDLE_PREFETCH_W(next);
    HEDDLE_PREFETCH_W(&next->ctx);
    HEDDLE_PREFETCH_W(&next->x.nops);
    HEDDLE_PREFETCH_W(&next->ahead);
    HEDDLE_PREFETCH_W(&next->variant);
    HEDDLE_PREFETCH_W(&next->req);
    HEDDLE_PREFETCH_W(&next->req.status);
    HEDDLE_PREFETCH_W(&next->s);
    HEDDLE_PREFETCH_W(&next->s.message);
}

static void launch_now(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_class *c = &d->cls[dt->worker->cls];
    struct heddle_dev_launch l = {.run = dev_function(dt),
                                  .x = &dt->x,
                                  .model_ns = dt->model_ns,
                                  .wants_time = launch_wants_time(dt)};
    heddle_status st = HEDDLE_OK;

    if (heddle_ahead_is_void(dt)) {
        heddle_dev_unhold(dt);
        return;
    }
    if (d->is_virtual && d->plat->has_shares)
        launch_share(dt, &l);
    dt->op = (struct heddle_op){.done = launch_done};
    st = heddle_dev_fault_launch(d, dt->worker->cls);
    if (st == HEDDLE_ETASK)
        snprintf(dt->s.message, sizeof(dt->s.message), "injected failure");
    if (st == HEDDLE_OK)
        st = heddle_ahead_order(dt);
    launch_prefetch(d, dt);
    stream_count(dt, true);
    if (d->is_virtual && d->energy != NULL)
        heddle_dev_energy_begin(dt);
    if (st == HEDDLE_OK && dt->worker->nblocked > 0)
        st = launch_beside(d, &l, &dt->op);
    else if (st == HEDDLE_OK)
        st = c->drv->launch(c->dev, &l, dt->on->stream, &dt->op);
    if (st == HEDDLE_OK && !d->is_virtual) {
        launch_note(dt);
        heddle_ahead_launched(dt);
    }
    if (st != HEDDLE_OK) {
        const char *why = c->drv->error != NULL ? c->drv->error(c->dev) : "";

        stream_count(dt, false);
        if (d->is_virtual && d->energy != NULL)
            heddle_dev_energy_end(dt);
        if (dt->s.message[0] == '\0' && why != NULL)
            snprintf(dt->s.message, sizeof(dt->s.message), "%s", why);
        dt->worker->nrunning -= d->is_virtual;
        dev_end(dt, st);
    }
}

/* Virtual time: a worker runs one task, and those that wait for children. */
static void dev_start_next(struct dev_worker *dw)
{
    while (dw->queue != NULL && dw->nrunning == dw->nblocked) {
        struct dev_task *dt = dw->queue;

        dw->queue = dt->next;
        dw->nrunning++;
        launch_now(dt);
    }
}

/* Virtual time: it has its data, and its worker knows of it. */
static void dev_enqueue(struct dev_task *dt)
{
    struct dev_worker *dw = dt->worker;

    dt->next = NULL;
    if (dw->queue == NULL)
        dw->queue = dt;
    else
        dw->queue_last->next = dt;
    dw->queue_last = dt;
    dev_start_next(dw);
}

static void launch_late(struct heddle_op *op, heddle_status st)
{
    (void)st;
    heddle_dev_log_wait((struct dev_task *)(void *)op, DEV_WAIT_NONE);
    dev_enqueue((struct dev_task *)(void *)op);
}

static void dev_launch(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    uint64_t ns;

    if (!d->is_virtual) {
        launch_now(dt);
        return;
    }
    ns = heddle_cost_delay(dt);
    if (ns == 0) {
        dev_enqueue(dt);
        return;
    }
    heddle_dev_log_wait(dt, DEV_WAIT_LATE);
    dt->op = (struct heddle_op){.done = launch_late};
    heddle_sim_after(d->sim, (double)ns, &dt->op);
}

void heddle_dev_go(struct dev_task *dt, bool has_partials)
{
    if (has_partials)
        raw_start(dt, false);
    else
        dev_launch(dt);
}

void heddle_dev_block(struct heddle_devs *d, bool is_blocked)
{
    const struct heddle_exec *x = d->ctx->driver->current;
    struct heddle_sched_task *t;
    struct dev_task *dt;

    while (x != NULL && x->cell == NULL && x->node == NULL)
        x = x->outer; /* a callback */
    if (x == NULL)
        return;
    t = x->cell != NULL ? &x->cell->sched : (struct heddle_sched_task *)(void *)x->node;
    dt = (struct dev_task *)(void *)t->link[1];
    if (dt == NULL || dt->worker == NULL)
        return;
    if (is_blocked) {
        dt->worker->nblocked++;
        dev_start_next(dt->worker);
    } else {
        dt->worker->nblocked--;
    }
}
