/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request: from the wish of a task to its data, and back.
 *
 * Structure  begin: room (room.c), then advance: look at every operand, start the
 *            transfers that are missing, wait; look again when they have ended;
 *            until nothing is missing. Looking again makes every order of events
 *            right, also a device that is lost in between.
 * Invariants (1) between advance and end the copies of the request are pinned
 *            (2) a writer starts only when no transfer reads or fills its copy,
 *                nor that of a unit that overlaps on the host
 * Threads    begin and end: any. The rest: the lock held.
 */
#include "base/mode.h"
#include "mem/internal.h"

/* Counts its writers in, or out. */
void heddle_req_writes(struct heddle_mem_req *req, bool is_writing)
{
    if (req->is_writing == is_writing)
        return;
    req->is_writing = is_writing;
    for (unsigned i = 0; i < req->nops; i++)
        if (heddle_mode_writes(req->op[i].mode))
            req->op[i].copy->where->nwriters += is_writing ? 1u : -1u;
}

void heddle_mem_lend(struct heddle_mem *m, struct heddle_mem_req *req)
{
    mem_lock(m);
    heddle_req_writes(req, false);
    mem_unlock(m);
}

/* Counts it as the program's, or as that no more. */
static void req_hand_out(struct heddle_mem_req *req, bool is_out)
{
    if (req->is_handed_out == is_out)
        return;
    req->is_handed_out = is_out;
    for (unsigned i = 0; i < req->nops; i++)
        if (heddle_mode_writes(req->op[i].mode))
            req->op[i].copy->where->nowners += is_out ? 1u : -1u;
}

void heddle_mem_hand_out(struct heddle_mem *m, struct heddle_mem_req *req)
{
    mem_lock(m);
    req_hand_out(req, true);
    heddle_req_writes(req, false);
    mem_unlock(m);
}

static void req_release(struct heddle_mem *m, struct heddle_mem_req *req)
{
    struct mem_node *n = &m->node[req->node];

    heddle_req_writes(req, false);
    req_hand_out(req, false);
    for (unsigned i = 0; i < req->nops; i++)
        if (req->op[i].copy != NULL)
            heddle_copy_unpin(m, req->op[i].copy);
    for (unsigned i = 0; i < req->nprivate; i++) {
        n->drv->free(n->dev, req->private_ptr[i], req->private_bytes[i], n->copy_stream);
        heddle_mem_account(m, req->node, -(int64_t)req->private_bytes[i], 0);
    }
    n->admitted--;
    n->nforced -= req->is_forced;
    n->is_dirty = true;
}

/* ready() will be called with this; nothing is held. */
void heddle_req_fail(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status st,
                     heddle_handle *culprit)
{
    req->status = st;
    if (culprit != NULL)
        req->culprit = culprit;
    req->state = REQ_FAILED;
    mem_tell(m, req);
}

/* Waits for x; counts what cannot even be waited for. */
static void op_wait(struct heddle_mem *m, struct heddle_mem_req *req, struct mem_xfer *x)
{
    const heddle_status st = heddle_xfer_wait(m, x, req);

    if (st != HEDDLE_OK && req->status == HEDDLE_OK)
        req->status = st;
}

/* True: there is something to wait for. */
static bool op_wait_all(struct heddle_mem *m, struct heddle_mem_req *req, struct mem_copy *c)
{
    if (c == NULL)
        return false;
    if (c->arriving != NULL)
        op_wait(m, req, c->arriving);
    for (struct mem_xfer *x = c->leaving; x != NULL; x = x->next_out)
        op_wait(m, req, x);
    return c->arriving != NULL || c->leaving != NULL;
}

/* A unit that overlaps: home with it, unless all of it will be overwritten. True:
 * there is something to wait for. */
static bool op_neighbour(struct heddle_mem *m, struct heddle_mem_req *req,
                         const struct heddle_mem_op *op, heddle_handle *other)
{
    struct heddle_where *w = heddle_load_rlx(&other->where);
    struct mem_xfer *x;
    heddle_status st = HEDDLE_OK;

    if (w == NULL)
        return false;
    if (w->is_listed_away &&
        (heddle_mode_reads(op->mode) ||
         !heddle_box_contains(&op->unit->box, &other->box, other->root->layout.ndim))) {
        if (w->at[0] == NULL)
            return false; /* a root that is being settled: op_root() */
        if (where_valid(w) == 0 && heddle_load_acq(&other->mark) != 0 &&
            heddle_mode_reads(op->mode) && req->status == HEDDLE_OK) {
            req->status = HEDDLE_EDEV; /* lost while this one waited */
            req->culprit = other;
            return false;
        }
        x = where_valid(w) == 0 ? NULL : heddle_xfer_get(m, w, 0, HEDDLE_MEM_FETCH, &st);
        if (x != NULL)
            op_wait(m, req, x);
        else if (st != HEDDLE_OK && req->status == HEDDLE_OK) {
            req->status = st;
            req->culprit = other;
        }
        return x != NULL;
    }
    return heddle_mode_writes(op->mode) && op_wait_all(m, req, w->at[0]);
}

/* Views live in the memory of their root: it has to be there, for good. True:
 * there is something to wait for. */
static bool op_root(struct heddle_mem *m, struct heddle_mem_req *req, const heddle_handle *unit)
{
    struct heddle_where *w = heddle_load_rlx(&unit->root->where);
    struct mem_xfer *x;
    heddle_status st = HEDDLE_OK;

    if (m->disk < 0 || unit->root == unit || w == NULL || (w->at[0] != NULL && w->at[0]->is_home))
        return false;
    if (w->at[0] == NULL && heddle_copy_alloc(m, w, 0, &st) == NULL) {
        req->status = st;
        return false;
    }
    w->pinned |= 1;
    if (where_valid(w) == 0 && !w->is_zero)
        heddle_where_set(m, w, 1); /* spoilt: there is nothing to bring */
    x = heddle_xfer_get(m, w, 0, HEDDLE_MEM_FETCH, &st);
    if (x != NULL)
        op_wait(m, req, x);
    else if (st != HEDDLE_OK)
        req->status = st;
    return x != NULL;
}

static void op_fetch(struct heddle_mem *m, struct heddle_mem_req *req, struct heddle_mem_op *op)
{
    struct heddle_where *w = op->copy->where;
    struct mem_xfer *x;
    heddle_status st = HEDDLE_OK;

    if (where_valid(w) == 0 && !w->is_zero) {
        /* The writer failed, or a device took it along; restored since? */
        if (heddle_load_acq(&w->unit->mark) != 0 || w->at[0] == NULL) {
            if (req->status == HEDDLE_OK) {
                req->status = HEDDLE_EDEV;
                req->culprit = w->unit;
            }
            return;
        }
        heddle_where_set(m, w, 1);
    }
    if (where_is_at(w, req->node))
        return;
    x = heddle_xfer_get(m, w, req->node, HEDDLE_MEM_FETCH, &st);
    if (x != NULL) {
        op_wait(m, req, x);
    } else if (st != HEDDLE_OK && req->status == HEDDLE_OK) {
        req->status = st;
        req->culprit = w->unit;
    }
}

/* Should the task fail, it can be tried again from the other copy. */
static void op_keep(struct heddle_mem *m, struct heddle_mem_req *req, struct heddle_mem_op *op)
{
    struct heddle_where *w = op->copy->where;
    heddle_status st;
    struct mem_xfer *x;

    if (where_valid(w) != UINT64_C(1) << req->node || w->at[0] == NULL)
        return;
    x = heddle_xfer_get(m, w, 0, HEDDLE_MEM_WRITEBACK, &st);
    if (x != NULL)
        op_wait(m, req, x);
}

/* The end of a handle is ordered with the tasks on it and no others. So it leaves
 * its neighbours alone; and when one of those is being written, what is away here
 * is void already. */
static void op_last(struct heddle_mem *m, struct heddle_mem_req *req, struct heddle_mem_op *op)
{
    for (unsigned i = 0; i < m->nnodes; i++)
        (void)op_wait_all(m, req, op->copy->where->at[i]);
    if (heddle_mode_reads(op->mode) && !heddle_where_is_written(op->copy->where))
        op_fetch(m, req, op);
}

/* Does another task write it now? Then its copy is pinned there. Else the data are
 * there, or have left, or never were. */
static bool op_is_coming(const struct heddle_mem_req *req, const struct heddle_mem_op *op)
{
    const struct heddle_where *w = op->copy->where;
    unsigned own = 0;

    for (unsigned i = 0; i < req->nops && req->is_writing; i++)
        own += req->op[i].copy->where == w && heddle_mode_writes(req->op[i].mode);
    return w->nwriters > own;
}

static void op_supply(struct heddle_mem *m, struct heddle_mem_req *req, struct heddle_mem_op *op)
{
    const uint32_t n = heddle_unit_noverlaps(op->unit);
    bool waits, meets;

    if (req->is_last) {
        op_last(m, req, op);
        return;
    }
    if (op->is_promised && op_is_coming(req, op)) {
        if (heddle_mode_writes(op->mode))
            (void)op_wait_all(m, req, op->copy);
        return;
    }
    waits = op_root(m, req, op->unit);
    /* A unit may be away, or be copied out of the bytes to be written. */
    meets = heddle_load_rlx(&op->unit->root->naway) > 0 ||
            (req->node == 0 && heddle_mode_writes(op->mode) && m->inflight > 0);
    for (uint32_t i = 0; i < n && meets; i++)
        waits = op_neighbour(m, req, op, op->unit->overlap[i]) || waits;
    if (waits || req->status != HEDDLE_OK)
        return; /* its own copy comes from the host, afterwards; never if a neighbour stays away */
    if (heddle_mode_writes(op->mode))
        (void)op_wait_all(m, req, op->copy);
    if (heddle_mode_reads(op->mode))
        op_fetch(m, req, op);
    if (req->keeps && req->node != 0 && heddle_mode_writes(op->mode))
        op_keep(m, req, op);
}

void heddle_req_advance(struct heddle_mem *m, struct heddle_mem_req *req)
{
    req->state = REQ_ADMITTED;
    if (m->node[req->node].is_lost && req->status == HEDDLE_OK)
        req->status = HEDDLE_EDEV;
    for (unsigned i = 0; i < req->nops && req->status == HEDDLE_OK; i++)
        op_supply(m, req, &req->op[i]);
    if (req->nwaits != 0)
        return; /* also when it has failed: transfers must end first */
    if (req->is_last)
        req->status = HEDDLE_OK; /* what is lost is not missed any more */
    if (req->status != HEDDLE_OK) {
        req_release(m, req);
        heddle_req_fail(m, req, req->status, NULL);
        return;
    }
    for (unsigned i = 0; i < req->nops && req->is_last; i++)
        req->op[i].copy->where->is_going = true;
    req->state = REQ_READY;
}

bool heddle_mem_begin(struct heddle_mem *m, struct heddle_mem_req *req)
{
    const struct mem_node *n = &m->node[req->node];
    heddle_status st = HEDDLE_OK;
    bool is_ready = false, wants_mover;

    req->state = 0;
    req->is_writing = req->is_handed_out = false;
    req->nwaits = req->bypassed = req->appeals = 0;
    req->status = HEDDLE_OK;
    req->culprit = NULL;
    for (unsigned i = 0; i < req->nops; i++)
        req->op[i].copy = NULL;
    mem_lock(m);
    m->whom = req->task;
    for (unsigned i = 0; i < req->nops && st == HEDDLE_OK; i++) {
        struct heddle_where *w = heddle_where_get(m, req->op[i].unit);

        if (w == NULL)
            st = HEDDLE_ENOMEM;
        else
            w->is_going = w->is_frozen = false; /* it is used again */
    }
    if (st != HEDDLE_OK) {
        heddle_req_fail(m, req, st, NULL);
    } else if ((n->q_first != NULL && !req->is_forced) || !heddle_room_admit(m, req, &st)) {
        heddle_room_queue(m, req);
    } else if (st != HEDDLE_OK) {
        heddle_req_fail(m, req, st, NULL);
    } else {
        heddle_req_advance(m, req);
        is_ready = req->state == REQ_READY;
    }
    wants_mover = !is_ready || n->used > n->budget;
    m->whom = 0;
    mem_unlock(m);
    if (wants_mover)
        m->host.kick(m->host.user);
    return is_ready;
}

/* --- the end -------------------------------------------------------------------- */

/* All copies but that on `node` are void. */
static void unit_invalidate(struct heddle_mem *m, struct heddle_where *w, unsigned node)
{
    w->version++;
    w->is_zero = false;
    heddle_where_set(m, w, UINT64_C(1) << node);
    for (unsigned s = 0; s < m->nnodes; s++)
        if (s != node && w->at[s] != NULL)
            heddle_copy_drop(m, w->at[s]);
}

/* Its parts on devices are void, the host has what is left of it. */
static void neighbour_invalidate(struct heddle_mem *m, heddle_handle *other)
{
    struct heddle_where *w = heddle_load_rlx(&other->where);

    if (w != NULL && w->at[0] != NULL)
        unit_invalidate(m, w, 0);
}

static void op_written(struct heddle_mem *m, const struct heddle_mem_req *req,
                       const struct heddle_mem_op *op)
{
    const uint32_t n = heddle_unit_noverlaps(op->unit);

    unit_invalidate(m, op->copy->where, req->node);
    for (uint32_t i = 0; i < n; i++)
        neighbour_invalidate(m, op->unit->overlap[i]);
}

/* What a failed task wrote is nothing; other copies are as before it. */
static void op_spoilt(struct heddle_mem *m, const struct heddle_mem_req *req,
                      const struct heddle_mem_op *op)
{
    struct heddle_where *w = op->copy->where;

    w->version++;
    w->is_zero = false;
    heddle_where_set(m, w, where_valid(w) & ~(UINT64_C(1) << req->node));
}

void heddle_mem_end(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status st)
{
    bool has_work;

    mem_lock(m);
    m->whom = req->task;
    for (unsigned i = 0; i < req->nops && req->user != 0; i++)
        heddle_where_used(req->op[i].unit, req->user);
    for (unsigned i = 0; i < req->nops; i++) {
        if (!heddle_mode_writes(req->op[i].mode) || st == HEDDLE_EDECLINED)
            continue;
        if (st == HEDDLE_OK)
            op_written(m, req, &req->op[i]);
        else
            op_spoilt(m, req, &req->op[i]);
    }
    req_release(m, req);
    has_work = m->garbage != NULL;
    for (unsigned i = 0; i < req->nops && m->nhoming != 0 && !req->stays; i++) {
        struct heddle_where *w = heddle_load_rlx(&req->op[i].unit->where);

        if (w != NULL && w->is_listed_away && w->use_n == 0)
            has_work = heddle_mem_home(m, w) || has_work;
    }
    for (unsigned i = 0; i < m->nnodes; i++) /* room_is_held() may be over */
        if (m->node[i].q_first != NULL)
            has_work = m->node[i].is_dirty = true;
    m->whom = 0;
    mem_unlock(m);
    if (has_work)
        m->host.kick(m->host.user);
}

void heddle_mem_written(struct heddle_mem *m, heddle_handle *unit)
{
    struct heddle_where *w;

    mem_lock(m);
    w = heddle_load_rlx(&unit->where);
    if (w != NULL && w->at[0] != NULL)
        unit_invalidate(m, w, 0);
    for (uint32_t i = 0; i < heddle_unit_noverlaps(unit); i++)
        neighbour_invalidate(m, unit->overlap[i]);
    mem_unlock(m);
}

void *heddle_mem_ptr(const struct heddle_mem_req *req, unsigned i)
{
    const struct mem_copy *c = req->op[i].copy;

    return c->is_home ? heddle_unit_base(req->op[i].unit) : c->ptr;
}

const struct heddle_layout *heddle_mem_layout(const struct heddle_mem_req *req, unsigned i)
{
    return req->node == 0 ? &req->op[i].unit->layout : &req->op[i].copy->where->compact;
}
