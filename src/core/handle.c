/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle: the public face of data, access from outside of tasks, and the end of
 * a handle.
 *
 * Structure  An acquire is a hidden task ("grant") that is told when it may start
 *            and does not end before the release. The end of a handle is a hidden
 *            task too: it comes after everything in the handle's history, so
 *            tasks need no reference of their own.
 * Invariants (1) extra.acquired lists the grants that are open; extra.lock
 *            (2) a unit is freed when its references are gone and its history is
 *                over
 * Threads    any.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/mode.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/handle.h"
#include "core/hidden.h"
#include "core/outside.h"
#include "core/submit.h"
#include "core/worker.h"
#include "data/data.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

static heddle_ctx *handle_ctx(const heddle_handle *h)
{
    return h->reg == NULL ? NULL : h->reg->owner;
}

/* Which task made it: its children may use it. */
static void handle_sign(heddle_ctx *ctx, heddle_handle *h)
{
    struct worker *w = heddle_ctx_self(ctx);

    heddle_mutex_lock(&ctx->reg.lock); /* the checker reads it under this */
    h->creator = w == NULL ? 0 : w->current->id;
    heddle_mutex_unlock(&ctx->reg.lock);
}

static void handle_define(heddle_ctx *ctx, const heddle_handle *h)
{
    uint64_t shape[HEDDLE_MAX_DIMS];
    int64_t offset[HEDDLE_MAX_DIMS], step[HEDDLE_MAX_DIMS];
    struct heddle_trace_handle t = {
        .id = h->id,
        .parent = h->root->id,
        .name = h->name,
        .bytes = h->bytes,
        .elem_bytes = (uint32_t)heddle_dtype_bytes(h->layout.dtype),
        .ndims = h->layout.ndim,
        .shape = shape,
        .offset = offset,
        .step = step,
    };

    for (unsigned d = 0; d < h->layout.ndim; d++) {
        shape[d] = h->layout.extent[d];
        offset[d] = (int64_t)h->box.first[d];
        step[d] = (int64_t)h->box.step[d];
    }
    heddle_trace_define_handle(ctx->trace, &t);
}

/* A wait for room: it ends when there is some, or when no task is left to give some back. */
struct room_wait {
    heddle_ctx *ctx;
    heddle_handle *h;
    bool has_room;
};

static bool room_stop(void *arg)
{
    struct room_wait *r = arg;
    /* First whether all have ended: what they gave back is counted then. */
    const bool is_quiet = heddle_ctx_is_quiet(r->ctx);

    r->has_room = heddle_unit_promise(r->h);
    return r->has_room || is_quiet;
}

/* The option memory_waits. A task does not wait: memory may be what its parent holds. */
static heddle_status handle_find_room(heddle_ctx *ctx, heddle_handle *h)
{
    struct room_wait r = {.ctx = ctx, .h = h, .has_room = heddle_unit_promise(h)};

    if (!r.has_room && heddle_ctx_self(ctx) == NULL)
        (void)heddle_ctx_help(ctx, room_stop, &r, 0);
    return r.has_room || heddle_ctx_self(ctx) != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

heddle_status heddle_handle_create(heddle_ctx *ctx, const struct heddle_layout *layout, void *ptr,
                                   heddle_handle **h_out)
{
    heddle_handle *h = NULL;
    heddle_status st;

    HEDDLE_CHECK(ctx != NULL && layout != NULL && h_out != NULL);
    st = heddle_unit_create(&ctx->reg, layout, ptr, &h);
    if (st == HEDDLE_EINVAL)
        return heddle_fail(ctx, st,
                           "a handle needs a type, 1 to %d dimensions, no "
                           "extent of 0, and strides that keep elements apart",
                           HEDDLE_MAX_DIMS);
    if (st == HEDDLE_EOVERFLOW)
        return heddle_fail(ctx, st, "the size of a handle does not fit");
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, st, "no memory for a handle");
    handle_sign(ctx, h);
    if (ctx->memory_waits && handle_find_room(ctx, h) != HEDDLE_OK) {
        const size_t bytes = h->span_bytes;

        heddle_handle_unref(h);
        return heddle_fail(ctx, HEDDLE_ENOMEM,
                           "%zu bytes do not fit into the budget of %zu, and no task is left that "
                           "could give memory back",
                           bytes, ctx->reg.budget);
    }
    handle_define(ctx, h);
    *h_out = h;
    return HEDDLE_OK;
}

heddle_status heddle_handle_vector(heddle_ctx *ctx, void *ptr, size_t n, enum heddle_dtype dtype,
                                   heddle_handle **h_out)
{
    const struct heddle_layout l = {.dtype = dtype, .ndim = 1, .extent = {n}, .stride = {1}};

    return heddle_handle_create(ctx, &l, ptr, h_out);
}

heddle_status heddle_handle_matrix(heddle_ctx *ctx, void *ptr, size_t m, size_t n, size_t ld,
                                   enum heddle_dtype dtype, heddle_handle **h_out)
{
    const struct heddle_layout l = {
        .dtype = dtype, .ndim = 2, .extent = {m, n}, .stride = {1, ld == 0 ? m : ld}};

    HEDDLE_CHECK(ctx != NULL);
    if (ld != 0 && ld < m)
        return heddle_fail(ctx, HEDDLE_EINVAL, "a leading dimension of %zu for columns of %zu", ld,
                           m);
    return heddle_handle_create(ctx, &l, ptr, h_out);
}

heddle_status heddle_view_box(heddle_handle *h, const size_t *offset, const size_t *extent,
                              const size_t *step, heddle_handle **view_out)
{
    bool is_new = false;
    heddle_status st;
    heddle_ctx *ctx;

    HEDDLE_CHECK(h != NULL && offset != NULL && extent != NULL && view_out != NULL);
    ctx = handle_ctx(h);
    if (ctx == NULL)
        return HEDDLE_ESTATE;
    HEDDLE_TRY(heddle_submit_lock(ctx));
    st = heddle_unit_share(h, offset, extent, step, view_out);
    if (st == HEDDLE_OK) /* else the log has it already */
        is_new = heddle_load_rlx(&(*view_out)->refs) == 1;
    heddle_submit_unlock(ctx);
    if (st == HEDDLE_EINVAL)
        return heddle_fail(ctx, st,
                           "a view reaches outside of its handle, or has an "
                           "extent or a step of 0");
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, st, "no memory for a view");
    if (is_new)
        handle_define(ctx, *view_out);
    return HEDDLE_OK;
}

heddle_status heddle_view_tile(heddle_handle *h, size_t i, size_t j, size_t mb, size_t nb,
                               heddle_handle **view_out)
{
    size_t offset[2], extent[2];

    HEDDLE_CHECK(h != NULL && mb != 0 && nb != 0);
    HEDDLE_CHECK(h->layout.ndim == 2);
    if (!heddle_mul(&offset[0], i, mb) || !heddle_mul(&offset[1], j, nb) ||
        offset[0] >= h->layout.extent[0] || offset[1] >= h->layout.extent[1]) {
        heddle_ctx *ctx = handle_ctx(h);

        return ctx == NULL ? HEDDLE_ESTATE
                           : heddle_fail(ctx, HEDDLE_EINVAL,
                                         "tile (%zu, %zu) lies outside of its "
                                         "matrix",
                                         i, j);
    }
    extent[0] = h->layout.extent[0] - offset[0];
    extent[1] = h->layout.extent[1] - offset[1];
    extent[0] = extent[0] < mb ? extent[0] : mb;
    extent[1] = extent[1] < nb ? extent[1] : nb;
    return heddle_view_box(h, offset, extent, NULL, view_out);
}

heddle_handle *heddle_unit_ref(heddle_handle *h)
{
    heddle_add_rlx(&h->refs, 1u); /* the caller holds one */
    return h;
}

heddle_handle *heddle_handle_ref(heddle_handle *h)
{
    if (h == NULL)
        return NULL;
    heddle_add_rlx(&h->users, 1u);
    return heddle_unit_ref(h);
}

void heddle_unit_free(heddle_handle *h)
{
    heddle_ctx *ctx = handle_ctx(h);
    heddle_handle *root;

    if (ctx != NULL && ctx->mem != NULL && heddle_load_rlx(&h->pinned) != 0)
        heddle_mem_unpin_host(ctx->mem, h);
    if (ctx != NULL)
        heddle_spin_lock(&ctx->submit_lock);
    root = heddle_unit_destroy(h);
    if (ctx != NULL)
        heddle_spin_unlock(&ctx->submit_lock);
    heddle_unit_unref(root); /* a view held its root */
}

/* One reference is left, ours. Invariant (2): when nothing in the history runs it
 * is the end; else the release task inherits the reference and tries again when
 * its turn comes. (A task that runs may still make views of its operand.) */
static void handle_retire(heddle_ctx *ctx, heddle_handle *h)
{
    struct submission s = {.sub = &ctx->root, .domain = &ctx->root.domain, .kinfo = &ctx->release};
    heddle_status st = HEDDLE_OK;
    bool is_live;

    heddle_spin_lock(&ctx->submit_lock);
    if (h->dep.crowd == HEDDLE_CROWD_REDUCE) /* nothing added is lost */
        st = heddle_domain_close(&ctx->root.domain, h, &h->dep);
    is_live = st != HEDDLE_OK || heddle_dep_is_live(&ctx->root.slab, &h->dep) ||
              (ctx->mem != NULL && !heddle_mem_may_forget(ctx->mem, h));
    if (is_live && st == HEDDLE_OK)
        st = heddle_submit_hidden(ctx, &s, h, HEDDLE_RW, NULL, NULL);
    if (st != HEDDLE_OK)
        h->is_zombie = true; /* no memory to wait for it: goes with the context */
    heddle_spin_unlock(&ctx->submit_lock);
    if (!is_live && heddle_sub_acqrel(&h->refs, 1u) == 1)
        heddle_unit_free(h);
    else if (is_live && st == HEDDLE_OK)
        heddle_submit_finish(ctx, &s);
}

void heddle_unit_unref(heddle_handle *h)
{
    heddle_ctx *ctx;
    uint32_t refs;

    if (h == NULL)
        return;
    refs = heddle_load_acq(&h->refs);
    while (refs > 1)
        if (heddle_cas_acqrel(&h->refs, &refs, refs - 1))
            return;
    ctx = handle_ctx(h);
    if (ctx != NULL)
        handle_retire(ctx, h);
    else if (heddle_sub_acqrel(&h->refs, 1u) == 1)
        heddle_unit_free(h);
}

static void grants_end_of(heddle_ctx *ctx, heddle_handle *h);

/* Without a reference the program cannot release what it has acquired. */
void heddle_handle_unref(heddle_handle *h)
{
    heddle_ctx *ctx;

    if (h == NULL)
        return;
    if (heddle_sub_acqrel(&h->users, 1u) == 1) {
        ctx = handle_ctx(h);
        if (ctx != NULL)
            grants_end_of(ctx, h);
        /* Release: the open grants are over; pairs with unit_find(). */
        heddle_store_rel(&h->is_dropped, 1u);
    }
    heddle_unit_unref(h);
}

heddle_status heddle_handle_set_name(heddle_handle *h, const char *name)
{
    heddle_ctx *ctx;
    char *copy, *old;

    HEDDLE_CHECK(h != NULL && name != NULL);
    ctx = handle_ctx(h);
    if (ctx == NULL)
        return HEDDLE_ESTATE;
    copy = heddle_strdup(&h->alloc, name);
    if (copy == NULL)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for a name");
    heddle_mutex_lock(&ctx->reg.lock);
    old = h->name;
    h->name = copy;
    heddle_mutex_unlock(&ctx->reg.lock);
    heddle_strfree(&h->alloc, old);
    handle_define(ctx, h);
    return HEDDLE_OK;
}

const struct heddle_layout *heddle_handle_get_layout(const heddle_handle *h)
{
    return h == NULL ? NULL : &h->layout;
}

const char *heddle_handle_get_name(const heddle_handle *h)
{
    return h == NULL || h->name == NULL ? "" : h->name;
}

size_t heddle_handle_get_bytes(const heddle_handle *h)
{
    return h == NULL ? 0 : h->bytes;
}

heddle_status heddle_handle_restore(heddle_handle *h)
{
    HEDDLE_CHECK(h != NULL);
    if (h->reg == NULL)
        return HEDDLE_ESTATE;
    heddle_unit_unmark(h);
    return HEDDLE_OK;
}

/* --- acquire and release --------------------------------------------------- */

struct grant {
    struct grant *next;    /* open grants of the unit */
    _Atomic uint32_t refs; /* the list's (or the decision's), and the waiter's
                              (or, when no thread waits, heddle_grant_run()'s) */
    heddle_handle *unit;
    struct heddle_cell *cell;
    enum heddle_mode mode;
    heddle_acquired_fn fn; /* NULL: a thread waits */
    void *user;
    _Atomic int status; /* HEDDLE_AGAIN until granted or refused */
    void *ptr;
};

static void grant_drop(heddle_ctx *ctx, struct grant *g)
{
    if (heddle_sub_acqrel(&g->refs, 1u) == 1)
        heddle_free(&ctx->alloc, g, sizeof(*g));
}

void heddle_grants_drop(heddle_ctx *ctx)
{
    for (heddle_handle *h = ctx->reg.units; h != NULL; h = h->next)
        while (h->extra.acquired != NULL) {
            struct grant *g = h->extra.acquired;

            h->extra.acquired = g->next;
            grant_drop(ctx, g);
        }
}

/* The callback of an asynchronous acquire; it must not wait. */
static void grant_call(struct worker *w, heddle_acquired_fn fn, void *user, heddle_status st,
                       void *ptr)
{
    struct heddle_exec x = {.ctx = w->ctx, .worker = w};

    heddle_exec_enter(&x);
    fn(user, st, st == HEDDLE_OK ? ptr : NULL);
    heddle_exec_leave(&x);
}

/* It is listed, told, and counted as done: heddle_wait() waits for the grant and
 * its callback, not for the release. */
static void grant_give(struct worker *w, struct heddle_cell *c, struct grant *g)
{
    struct heddle_extra *e = &g->unit->extra;
    const heddle_acquired_fn fn = g->fn;
    void *user = g->user, *ptr = g->ptr;

    c->flags |= TASK_LOOSE;
    if (w->ctx->dev != NULL)
        heddle_dev_hand_out(w->ctx, &c->sched, g->unit, g->mode);
    heddle_spin_lock(&e->lock);
    g->next = e->acquired;
    e->acquired = g;
    heddle_spin_unlock(&e->lock);
    /* From here on the cell may end, and g is ours by its second reference. */
    if (fn != NULL) {
        grant_drop(w->ctx, g);
        grant_call(w, fn, user, HEDDLE_OK, ptr);
    }
    heddle_counter_add(&w->hidden, 1);
    heddle_store_rel(&w->done, heddle_load_rlx(&w->done) + 1);
    if (fn == NULL) /* release: ptr, and what tasks wrote */
        heddle_store_rel(&g->status, (int)HEDDLE_OK);
    heddle_ctx_signal(w->ctx);
}

static void grant_refuse(struct worker *w, struct heddle_cell *c, struct grant *g, heddle_status st)
{
    const heddle_acquired_fn fn = g->fn;
    struct heddle_sched_task *t;

    if (fn != NULL)
        grant_call(w, fn, g->user, st, NULL);
    else
        grant_drop(w->ctx, g); /* the waiter has the other one */
    if (fn == NULL)
        heddle_store_rel(&g->status, (int)st);
    else
        heddle_free(&w->ctx->alloc, g, sizeof(*g));
    c->flags &= ~(uint32_t)TASK_NOPS; /* it ends without having written */
    if (w->ctx->dev != NULL)
        heddle_dev_settle(w, &c->sched, HEDDLE_EDECLINED);
    t = heddle_engine_finish(w, c, HEDDLE_OK);
    if (t != NULL)
        heddle_engine_push(w, t);
    heddle_ctx_signal(w->ctx);
}

void heddle_grant_run(struct worker *w, struct heddle_cell *c, heddle_status data)
{
    heddle_status st = HEDDLE_OK;
    struct grant *g;

    memcpy(&g, c->arg, sizeof(g));
    if (heddle_mode_reads(g->mode))
        st = heddle_unit_marked(g->unit);
    if (st == HEDDLE_OK)
        st = data;
    g->ptr = st == HEDDLE_OK ? heddle_unit_base(g->unit) : NULL;
    if (st == HEDDLE_OK && g->ptr == NULL)
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        grant_give(w, c, g);
    else
        grant_refuse(w, c, g, st);
}

static heddle_status grant_submit(heddle_ctx *ctx, struct grant *g)
{
    struct submission s = {.sub = &ctx->root, .domain = &ctx->root.domain, .kinfo = &ctx->grant};
    heddle_status st = heddle_submit_lock(ctx);

    if (st != HEDDLE_OK)
        return st;
    /* g->cell is set before the grant can start. */
    st = heddle_submit_hidden(ctx, &s, g->unit, g->mode, g, &g->cell);
    heddle_submit_unlock(ctx);
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for an acquire");
    heddle_submit_finish(ctx, &s);
    return HEDDLE_OK;
}

static heddle_status grant_new(heddle_handle *h, enum heddle_mode mode, struct grant **g_out)
{
    heddle_ctx *ctx;
    struct grant *g;

    HEDDLE_CHECK(h != NULL);
    ctx = handle_ctx(h);
    if (ctx == NULL)
        return HEDDLE_ESTATE;
    if (!heddle_mode_is_known(mode) || !heddle_mode_is_plain(mode))
        return heddle_fail(ctx, HEDDLE_EINVAL, "data are acquired in mode R, W or RW");
    g = heddle_zalloc(&ctx->alloc, 1, sizeof(*g));
    if (g == NULL)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for an acquire");
    g->unit = h;
    g->mode = mode;
    heddle_store_rlx(&g->status, (int)HEDDLE_AGAIN); /* not shared yet */
    heddle_store_rlx(&g->refs, 2u);
    *g_out = g;
    return HEDDLE_OK;
}

static bool grant_is_decided(void *arg)
{
    /* Acquire: pairs with heddle_grant_run(). */
    return heddle_load_acq(&((struct grant *)arg)->status) != HEDDLE_AGAIN;
}

heddle_status heddle_handle_acquire(heddle_handle *h, enum heddle_mode mode, void **ptr_out)
{
    heddle_status st;
    heddle_ctx *ctx;
    struct grant *g = NULL;

    HEDDLE_CHECK(h != NULL);
    ctx = handle_ctx(h);
    if (ctx == NULL)
        return HEDDLE_ESTATE;
    if (heddle_ctx_self(ctx) != NULL)
        return heddle_fail(ctx, HEDDLE_EDEADLK, "a task cannot acquire data: declare an operand");
    HEDDLE_TRY(grant_new(h, mode, &g));
    st = grant_submit(ctx, g);
    if (st != HEDDLE_OK) {
        heddle_free(&ctx->alloc, g, sizeof(*g));
        return st;
    }
    (void)heddle_ctx_help(ctx, grant_is_decided, g, 0);
    st = (heddle_status)heddle_load_acq(&g->status);
    if (st == HEDDLE_OK && ptr_out != NULL)
        *ptr_out = g->ptr;
    grant_drop(ctx, g);
    return st == HEDDLE_OK ? st : heddle_fail_data(ctx, st, h);
}

heddle_status heddle_handle_acquire_async(heddle_handle *h, enum heddle_mode mode,
                                          heddle_acquired_fn fn, void *user)
{
    heddle_status st;
    struct grant *g = NULL;

    HEDDLE_CHECK(fn != NULL);
    HEDDLE_TRY(grant_new(h, mode, &g));
    g->fn = fn;
    g->user = user;
    st = grant_submit(handle_ctx(h), g);
    if (st != HEDDLE_OK)
        heddle_free(&handle_ctx(h)->alloc, g, sizeof(*g));
    return st;
}

/* Takes an open grant out of the list; waited_only: only one that a thread
 * waited for, since what a callback got may still be in use. */
static struct grant *grant_take(heddle_handle *h, bool waited_only)
{
    void **at = &h->extra.acquired;
    struct grant *g;

    heddle_spin_lock(&h->extra.lock);
    for (g = *at; g != NULL && waited_only && g->fn != NULL; g = *at)
        at = (void **)&g->next;
    if (g != NULL)
        *at = g->next;
    heddle_spin_unlock(&h->extra.lock);
    return g;
}

static void grant_end(heddle_ctx *ctx, struct grant *g)
{
    struct heddle_cell *c = g->cell;

    grant_drop(ctx, g);
    heddle_engine_finish_foreign(ctx, c, HEDDLE_OK);
}

static void grants_end_of(heddle_ctx *ctx, heddle_handle *h)
{
    struct grant *g;

    while ((g = grant_take(h, true)) != NULL)
        grant_end(ctx, g);
}

void heddle_grants_release(heddle_ctx *ctx)
{
    struct grant *g;

    do {
        g = NULL;
        heddle_mutex_lock(&ctx->reg.lock);
        for (heddle_handle *h = ctx->reg.units; h != NULL && g == NULL; h = h->next)
            g = grant_take(h, true);
        heddle_mutex_unlock(&ctx->reg.lock);
        if (g != NULL)
            grant_end(ctx, g);
    } while (g != NULL);
}

heddle_status heddle_handle_release(heddle_handle *h)
{
    heddle_ctx *ctx;
    struct grant *g;

    HEDDLE_CHECK(h != NULL);
    ctx = handle_ctx(h);
    if (ctx == NULL)
        return HEDDLE_ESTATE;
    g = grant_take(h, false);
    if (g == NULL)
        return heddle_fail(ctx, HEDDLE_ESTATE, "nothing is acquired on this handle");
    grant_end(ctx, g);
    return HEDDLE_OK;
}
