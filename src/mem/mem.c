/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem: nodes, the mover's loop, hints, and what happens when a device goes.
 *
 * Threads    see mem.h. heddle_mem_pump() is the mover's.
 */
#include "mem/internal.h"

heddle_status heddle_mem_create(const struct heddle_mem_opts *o, struct heddle_mem **mem_out)
{
    struct heddle_mem *m;

    HEDDLE_CHECK(o->nnodes >= 1 && o->nnodes <= HEDDLE_MEM_NODES);
    m = heddle_zalloc(o->alloc, 1, sizeof(*m) + o->nnodes * sizeof(m->node[0]));
    if (m == NULL)
        return HEDDLE_ENOMEM;
    heddle_mutex_init(&m->lock, HEDDLE_RANK_MEM, "memory");
    m->alloc = *o->alloc;
    m->reg = o->reg;
    m->host = o->host;
    m->is_fake = o->is_fake;
    m->policy = (enum heddle_mem_policy)o->policy;
    m->disk = -1;
    m->nnodes = o->nnodes;
    for (unsigned i = 0; i < o->nnodes; i++) {
        struct mem_node *n = &m->node[i];

        n->kind = o->node[i].kind;
        n->dev = o->node[i].dev;
        n->budget = n->promised = o->node[i].budget;
        if (n->dev != NULL) {
            n->drv = heddle_dev_base(n->dev)->driver;
            n->copy_stream = heddle_dev_base(n->dev)->info.nstreams;
        }
        if (n->kind == HEDDLE_MEM_DISK)
            m->disk = (int)i;
    }
    *mem_out = m;
    return HEDDLE_OK;
}

/* All copies of a unit go, whatever they hold. */
static void unit_strip(struct heddle_mem *m, struct heddle_where *w)
{
    for (unsigned i = 0; i < m->nnodes; i++) {
        struct mem_copy *c = w->at[i];

        if (c == NULL)
            continue;
        c->pins = 0; /* of an acquire that was never released, at most */
        w->at[i] = NULL;
        if (c->is_home)
            heddle_free(&m->alloc, c, sizeof(*c));
        else
            heddle_copy_drop(m, c);
    }
}

void heddle_mem_forget(struct heddle_mem *m, heddle_handle *unit)
{
    struct heddle_where *w;

    heddle_mutex_lock(&m->lock);
    w = heddle_load_rlx(&unit->where);
    if (w != NULL) {
        unit_strip(m, w);
        heddle_where_free(m, w);
    }
    heddle_mutex_unlock(&m->lock);
    m->host.kick(m->host.user);
}

void heddle_mem_destroy(struct heddle_mem *m)
{
    if (m == NULL)
        return;
    while (m->units != NULL) {
        unit_strip(m, m->units);
        heddle_where_free(m, m->units);
    }
    heddle_mem_collect(m, -1);
    while (m->free_copies != NULL) {
        struct mem_copy *c = m->free_copies;

        m->free_copies = c->next;
        heddle_free(&m->alloc, c, sizeof(*c));
    }
    while (m->free_xfers != NULL) {
        struct mem_xfer *x = m->free_xfers;

        m->free_xfers = x->next;
        heddle_free(&m->alloc, x, sizeof(*x));
    }
    while (m->free_waits != NULL) {
        struct mem_wait *w = m->free_waits;

        m->free_waits = w->next;
        heddle_free(&m->alloc, w, sizeof(*w));
    }
    heddle_free(&m->alloc, m->stage, m->stage_bytes);
    heddle_mutex_fini(&m->lock);
    heddle_free(&m->alloc, m, sizeof(*m) + m->nnodes * sizeof(m->node[0]));
}

/* --- the mover's loop -------------------------------------------------------- */

/* Requests that waited for transfers look again. */
static void mem_wake(struct heddle_mem *m)
{
    while (m->wake != NULL) {
        struct heddle_mem_req *req = m->wake;

        m->wake = req->next;
        req_resume(m, req);
    }
}

/* Is the host's part of a unit old, because a unit that overlaps is away? */
static bool unit_is_torn(const heddle_handle *unit)
{
    for (uint32_t i = 0; i < heddle_unit_noverlaps(unit); i++) {
        const struct heddle_where *o = heddle_load_rlx(&unit->overlap[i]->where);

        if (o != NULL && o->is_listed_away)
            return true;
    }
    return false;
}

/* A view lives in the memory of its root: is that there, for good? Else the first task on
 * the view sees to it (op_root() in request.c). */
static bool unit_has_root(const struct heddle_mem *m, const heddle_handle *unit)
{
    const struct heddle_where *w = heddle_load_rlx(&unit->root->where);

    if (m->disk < 0 || unit->root == unit || w == NULL)
        return true;
    return w->at[0] != NULL && (w->at[0]->is_home || ((w->pinned & 1) != 0 && where_is_at(w, 0)));
}

/* Data that shall be somewhere early, if there is room and no task writes them. */
static void mem_wish(struct heddle_mem *m, struct heddle_where *w, unsigned node)
{
    struct mem_node *n = &m->node[node];
    const uint64_t bytes = heddle_copy_size(m, w->unit, node);
    heddle_status st;

    if (n->is_lost || n->q_first != NULL || w->is_frozen || heddle_where_is_taken(w) ||
        unit_is_torn(w->unit) || where_valid(w) == 0 || where_is_at(w, node) ||
        !unit_has_root(m, w->unit))
        return;
    if (w->at[node] == NULL && n->used <= n->budget && bytes <= n->budget - n->used)
        (void)heddle_copy_alloc(m, w, node, &st);
    if (w->at[node] != NULL)
        (void)heddle_xfer_get(m, w, node, HEDDLE_MEM_PREFETCH, &st);
}

static void mem_wishes(struct heddle_mem *m)
{
    while (m->wishes != NULL) {
        struct heddle_where *w = m->wishes;
        uint64_t nodes = w->wished;

        m->wishes = w->wish_next;
        w->wished = 0;
        for (unsigned i = 0; nodes != 0; i++, nodes >>= 1)
            if ((nodes & 1) != 0)
                mem_wish(m, w, i);
    }
}

/* With the lock: what the state asks for. True: something was done. */
static bool mem_settle(struct heddle_mem *m)
{
    const bool has_garbage = heddle_mem_collect(m, -1);

    mem_wishes(m);
    mem_wake(m);
    for (unsigned i = 0; i < m->nnodes; i++)
        if (m->node[i].is_dirty)
            heddle_room_serve(m, i);
    mem_wake(m);
    return has_garbage;
}

/* One thing at a time: what is called may come back here. */
bool heddle_mem_pump(struct heddle_mem *m)
{
    bool did = false;

    for (;;) {
        struct heddle_mem_req *req = NULL;
        struct mem_xfer *x = NULL;

        mem_lock(m);
        did = mem_settle(m) || did;
        if (m->todo != NULL) {
            x = m->todo;
            m->todo = x->next;
        } else if (m->done != NULL) {
            req = m->done;
            m->done = req->next;
        }
        mem_unlock(m);
        if (x == NULL && req == NULL)
            return did;
        did = true;
        if (x != NULL)
            heddle_xfer_start(x);
        else
            req->ready(req, req->status);
    }
}

bool heddle_mem_is_idle(struct heddle_mem *m)
{
    bool is_idle;

    heddle_mutex_lock(&m->lock);
    is_idle = m->inflight == 0 && m->nwaiting == 0 && m->wake == NULL && m->done == NULL &&
              m->todo == NULL && m->wishes == NULL;
    for (unsigned i = 0; i < m->nnodes && is_idle; i++)
        is_idle = !m->node[i].is_dirty; /* else it may begin to evict */
    heddle_mutex_unlock(&m->lock);
    return is_idle;
}

/* --- hints --------------------------------------------------------------------- */

bool heddle_mem_may_forget(struct heddle_mem *m, heddle_handle *unit)
{
    struct heddle_where *w;
    bool may;

    heddle_mutex_lock(&m->lock);
    w = heddle_load_rlx(&unit->where);
    may = w == NULL || w->is_going;
    for (unsigned i = 0; may && w != NULL && i < m->nnodes; i++)
        may = w->at[i] == NULL || w->at[i]->pins == 0;
    if (may && w != NULL)
        w->is_frozen = true;
    heddle_mutex_unlock(&m->lock);
    return may;
}

bool heddle_mem_home(struct heddle_mem *m, struct heddle_where *w)
{
    heddle_status st;

    if (w->unit->root->owns_memory || where_valid(w) == 0 || w->at[0] == NULL || w->is_frozen ||
        heddle_where_is_written(w))
        return false;
    return heddle_xfer_get(m, w, 0, HEDDLE_MEM_WRITEBACK, &st) != NULL;
}

size_t heddle_mem_go_home(struct heddle_mem *m)
{
    size_t n = 0;

    mem_lock(m);
    for (struct heddle_where *w = m->away; w != NULL; w = w->away_next)
        n += heddle_mem_home(m, w);
    mem_unlock(m);
    if (n != 0)
        m->host.kick(m->host.user);
    return n;
}

void heddle_mem_give_home(struct heddle_mem *m)
{
    mem_lock(m);
    for (struct heddle_where *w = m->units; w != NULL; w = w->next) {
        uint64_t valid = where_valid(w);

        if (w->unit->root->owns_memory || (valid & 1) == 0 || valid == 1 ||
            heddle_where_is_written(w))
            continue;
        for (unsigned i = 1; i < m->nnodes; i++)
            if ((w->pinned >> i & 1) == 0 && (w->at[i] == NULL || w->at[i]->pins == 0))
                valid &= ~(UINT64_C(1) << i);
        heddle_where_set(m, w, valid);
    }
    mem_unlock(m);
}

void heddle_mem_set_homing(struct heddle_mem *m, bool is_homing)
{
    size_t n = 0;

    mem_lock(m);
    m->nhoming += is_homing ? 1u : -1u;
    for (struct heddle_where *w = m->away; w != NULL && is_homing; w = w->away_next)
        n += w->use_n == 0 && heddle_mem_home(m, w);
    mem_unlock(m);
    if (n != 0)
        m->host.kick(m->host.user);
}

/* Only into memory that is free, and only whole: a hint moves no other data. */
void heddle_mem_prefetch(struct heddle_mem *m, heddle_handle *unit, unsigned node)
{
    struct heddle_where *w;

    mem_lock(m);
    w = heddle_where_get(m, unit);
    if (w != NULL && w->wished == 0) {
        w->wish_next = m->wishes;
        m->wishes = w;
    }
    if (w != NULL)
        w->wished |= UINT64_C(1) << node;
    mem_unlock(m);
    m->host.kick(m->host.user);
}

void heddle_mem_wont_use(struct heddle_mem *m, heddle_handle *unit)
{
    heddle_mutex_lock(&m->lock);
    if (heddle_load_rlx(&unit->where) != NULL)
        heddle_load_rlx(&unit->where)->wont_use = true;
    heddle_mutex_unlock(&m->lock);
}

void heddle_mem_evict(struct heddle_mem *m, heddle_handle *unit)
{
    struct heddle_where *w;
    heddle_status st;

    mem_lock(m);
    w = heddle_load_rlx(&unit->where);
    if (w != NULL && (w->is_frozen || heddle_where_is_written(w)))
        w = NULL;
    if (w != NULL && w->is_listed_away && where_valid(w) != 0 && w->at[0] != NULL)
        (void)heddle_xfer_get(m, w, 0, HEDDLE_MEM_WRITEBACK, &st);
    for (unsigned i = 1; w != NULL && i < m->nnodes; i++) {
        struct mem_copy *c = w->at[i];

        if (c == NULL || m->node[i].kind != HEDDLE_MEM_DEVICE)
            continue;
        w->wont_use = true; /* goes as soon as it is home */
        if (c->pins == 0 && where_is_at(w, 0)) {
            heddle_where_set(m, w, where_valid(w) & ~(UINT64_C(1) << i));
            heddle_copy_drop(m, c);
        } else if (c->pins != 0) {
            c->is_doomed = where_is_at(w, 0);
        }
    }
    mem_unlock(m);
    m->host.kick(m->host.user);
}

void heddle_mem_pin(struct heddle_mem *m, heddle_handle *unit, unsigned node, bool is_pinned)
{
    struct heddle_where *w;

    heddle_mutex_lock(&m->lock);
    w = heddle_where_get(m, unit);
    if (w != NULL && is_pinned)
        w->pinned |= UINT64_C(1) << node;
    else if (w != NULL && (node != 0 || m->disk < 0 || heddle_unit_noverlaps(unit) == 0))
        w->pinned &= ~(UINT64_C(1) << node); /* a root with views stays: unit_has_root() */
    m->node[node].is_dirty = true;
    heddle_mutex_unlock(&m->lock);
    m->host.kick(m->host.user);
}

/* --- a device is gone ------------------------------------------------------------ */

static void lose_unit(struct heddle_mem *m, struct heddle_where *w, unsigned node)
{
    struct mem_copy *c = w->at[node];

    if (c == NULL)
        return;
    if (where_is_at(w, node)) {
        const uint64_t left = where_valid(w) & ~(UINT64_C(1) << node);

        heddle_where_set(m, w, left);
        if (left == 0 && !w->is_zero) {
            heddle_unit_mark(w->unit, HEDDLE_EDEV);
            if (m->host.lost != NULL)
                m->host.lost(m->host.user, w->unit, node);
        }
    }
    heddle_copy_drop(m, c);
}

void heddle_mem_lose(struct heddle_mem *m, unsigned node)
{
    struct mem_node *n = &m->node[node];

    mem_lock(m);
    n->is_lost = true;
    n->is_dirty = true; /* those in its queue end */
    for (struct heddle_where *w = m->units; w != NULL; w = w->next)
        lose_unit(m, w, node);
    mem_unlock(m);
    m->host.kick(m->host.user);
}

/* --- facts ------------------------------------------------------------------------ */

void heddle_mem_get_stats(struct heddle_mem *m, unsigned node, struct heddle_mem_stats *out)
{
    heddle_mutex_lock(&m->lock);
    *out = m->node[node].stats;
    out->used = m->node[node].used;
    out->peak = m->node[node].peak;
    out->budget = m->node[node].budget;
    heddle_mutex_unlock(&m->lock);
}
