/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer: bringing a unit from one node to another.
 *
 * Structure  heddle_xfer_get() finds or makes a transfer and puts a new one on the list
 *            of transfers to be started; the mover starts them without the lock; the
 *            driver reports their ends (xfer_done), and requests that wait for the
 *            transfer look again.
 * Invariants (1) source and destination are pinned while a transfer is in flight
 *            (2) a transfer makes its destination valid only when the data were
 *                not written meanwhile (version) and the node is not lost
 *            (3) one transfer at a time goes through the staging buffer, and it
 *                waits for nothing but its own two legs
 * Threads    callers hold the lock, except where a function says otherwise.
 */
#include "mem/internal.h"

/* Is there a way from node a straight to node b? */
static bool xfer_is_direct(struct heddle_mem *m, unsigned a, unsigned b)
{
    struct mem_node *na = &m->node[a], *nb = &m->node[b];

    if (na->is_lost || nb->is_lost)
        return false;
    if (a == 0 || b == 0)
        return true;
    return na->drv == nb->drv && na->drv->can_peer != NULL && na->drv->can_peer(na->dev, nb->dev);
}

/* The best node to copy from, straight; -1: none. */
static int xfer_source(struct heddle_mem *m, const struct heddle_where *w, unsigned to)
{
    const uint64_t valid = where_valid(w);
    double best = INFINITY;
    int from = -1;

    for (unsigned s = 0; s < m->nnodes; s++) {
        double ns;

        if ((valid >> s & 1) == 0 || s == to || w->at[s] == NULL || !xfer_is_direct(m, s, to))
            continue;
        ns = m->host.link_ns(m->host.user, s, to, w->unit->bytes);
        if (from < 0 || ns < best) {
            best = ns;
            from = (int)s;
        }
    }
    return from;
}

static struct mem_xfer *xfer_new(struct heddle_mem *m)
{
    struct mem_xfer *x = m->free_xfers;

    if (x != NULL)
        m->free_xfers = x->next;
    else
        x = heddle_zalloc(&m->alloc, 1, sizeof(*x));
    return x;
}

static void xfer_list(struct mem_xfer **first, struct mem_xfer **last, struct mem_xfer *x)
{
    x->next = NULL;
    if (*first == NULL)
        *first = x;
    else
        (*last)->next = x;
    *last = x;
}

/* Staged ones one after another, the others at once. */
static void xfer_enlist(struct heddle_mem *m, struct mem_xfer *x)
{
    if (!x->is_staged) {
        xfer_list(&m->todo, &m->todo_last, x);
    } else if (m->is_staging) {
        xfer_list(&m->staged, &m->staged_last, x);
    } else {
        m->is_staging = true;
        xfer_list(&m->todo, &m->todo_last, x);
    }
}

static void xfer_done(struct heddle_op *op, heddle_status st);

static struct mem_xfer *xfer_begin(struct heddle_mem *m, struct heddle_where *w, int from,
                                   unsigned to, enum heddle_mem_reason why, bool is_staged)
{
    struct mem_xfer *x = xfer_new(m);

    if (x == NULL)
        return NULL;
    *x = (struct mem_xfer){
        .op = {.done = xfer_done},
        .mem = m,
        .where = w,
        .from = from < 0 ? 0 : (unsigned)from,
        .to = to,
        .why = why,
        .task = m->whom,
        .asked_ns = m->host.now_ns == NULL ? 0 : m->host.now_ns(m->host.user),
        .version = w->version,
        .src = from < 0 ? NULL : w->at[from],
        .dst = w->at[to],
        .is_staged = is_staged,
    };
    if (x->src != NULL) {
        heddle_copy_pin(m, x->src);
        x->next_out = x->src->leaving;
        x->src->leaving = x;
    }
    heddle_copy_pin(m, x->dst);
    x->dst->arriving = x;
    m->inflight++;
    m->node[x->from].nmoving++;
    m->node[x->to].nmoving++;
    xfer_enlist(m, x);
    return x;
}

/* Through the host, when the unit has memory there; else through ours. */
static struct mem_xfer *xfer_hop(struct heddle_mem *m, struct heddle_where *w, unsigned to,
                                 enum heddle_mem_reason why, heddle_status *st)
{
    const uint64_t valid = where_valid(w);
    int from = -1;

    for (unsigned s = 0; s < m->nnodes && from < 0; s++)
        if ((valid >> s & 1) != 0 && s != to && w->at[s] != NULL && !m->node[s].is_lost)
            from = (int)s;
    if (from < 0 && !w->is_zero) {
        *st = HEDDLE_EDEV;
        return NULL;
    }
    if (from > 0 && w->at[0] != NULL)
        return heddle_xfer_get(m, w, 0, why, st); /* then from there */
    return xfer_begin(m, w, from, to, why, true);
}

struct mem_xfer *heddle_xfer_get(struct heddle_mem *m, struct heddle_where *w, unsigned to,
                                 enum heddle_mem_reason why, heddle_status *st)
{
    struct mem_copy *dst = w->at[to];
    struct mem_xfer *x;
    int from;

    *st = HEDDLE_OK;
    HEDDLE_ASSERT(dst != NULL);
    if (where_is_at(w, to))
        return NULL;
    if (dst->arriving != NULL)
        return dst->arriving;
    if (w->is_zero && to == 0) { /* fresh memory is zeroed */
        w->is_zero = false;
        heddle_where_set(m, w, 1);
        return NULL;
    }
    from = xfer_source(m, w, to);
    x = from >= 0 ? xfer_begin(m, w, from, to, why, false) : xfer_hop(m, w, to, why, st);
    if (x == NULL && *st == HEDDLE_OK && !where_is_at(w, to))
        *st = HEDDLE_ENOMEM;
    return x;
}

heddle_status heddle_xfer_wait(struct heddle_mem *m, struct mem_xfer *x, struct heddle_mem_req *req)
{
    struct mem_wait *w = m->free_waits;

    if (x->waits != NULL && x->waits->req == req)
        return HEDDLE_OK; /* it waits already */
    if (w != NULL)
        m->free_waits = w->next;
    else
        w = heddle_zalloc(&m->alloc, 1, sizeof(*w));
    if (w == NULL)
        return HEDDLE_ENOMEM;
    w->req = req;
    w->next = x->waits;
    x->waits = w;
    req->nwaits++;
    return HEDDLE_OK;
}

/* --- the copy itself: mover, without the lock ------------------------------ */

/* Room for one unit on the host; zeroed when zeros are to be copied. */
static void *xfer_stage(struct mem_xfer *x, size_t bytes)
{
    struct heddle_mem *m = x->mem;

    if (m->is_fake)
        return NULL;
    if (m->stage_bytes < bytes) {
        heddle_free(&m->alloc, m->stage, m->stage_bytes);
        m->stage_bytes = 0;
        m->stage = heddle_alloc_aligned(&m->alloc, bytes, 4096);
        if (m->stage == NULL)
            return NULL;
        m->stage_bytes = bytes;
    }
    if (x->src == NULL)
        memset(m->stage, 0, bytes);
    return m->stage;
}

static void *xfer_host(struct mem_xfer *x)
{
    return x->mem->is_fake ? NULL : heddle_unit_base(x->where->unit);
}

/* One leg of a staged transfer: what is on a device or disk has no gaps, or is a
 * root with all its gaps; both are one run of bytes. */
static heddle_status xfer_leg(struct mem_xfer *x)
{
    struct heddle_mem *m = x->mem;
    const bool is_out = x->leg == 0 && x->src != NULL;
    struct mem_node *n = &m->node[is_out ? x->from : x->to];
    struct heddle_copy c = {
        .kind = is_out ? HEDDLE_COPY_OUT : HEDDLE_COPY_IN,
        .ptr = is_out ? x->src->ptr : x->dst->ptr,
        .runs = {.run_bytes = x->where->unit->bytes, .nruns = 1},
    };

    c.host = xfer_stage(x, c.runs.run_bytes);
    if (c.host == NULL && !m->is_fake)
        return HEDDLE_ENOMEM;
    return n->drv->copy(n->dev, &c, n->copy_stream, &x->op);
}

/* Drivers copy faster from and to memory that is pinned. */
static void xfer_pin_host(struct heddle_mem *m, unsigned node, heddle_handle *root)
{
    const struct mem_node *n = &m->node[node];
    void *base = heddle_load_acq(&root->base);

    if (n->drv->pin == NULL || m->disk >= 0 || root->span_bytes < PIN_BYTES || base == NULL)
        return;
    n->drv->pin(n->dev, base, root->span_bytes);
    /* Relaxed: who frees the memory comes after this transfer. */
    atomic_fetch_or_explicit(&root->pinned, UINT64_C(1) << node, memory_order_relaxed);
}

void heddle_mem_unpin_host(struct heddle_mem *m, heddle_handle *root)
{
    const uint64_t pinned = heddle_load_rlx(&root->pinned);

    for (unsigned i = 0; i < m->nnodes; i++)
        if ((pinned >> i & 1) != 0)
            m->node[i].drv->unpin(m->node[i].dev, heddle_load_acq(&root->base), root->span_bytes);
    heddle_store_rlx(&root->pinned, UINT64_C(0)); /* no other thread has it */
}

static heddle_status xfer_copy(struct mem_xfer *x)
{
    struct heddle_mem *m = x->mem;
    struct mem_node *n = &m->node[x->from == 0 ? x->to : x->from];
    struct heddle_copy c = {.runs = x->where->runs};

    if (m->host.fault_copy != NULL)
        HEDDLE_TRY(m->host.fault_copy(m->host.user, x->from, x->to));
    if (x->is_staged)
        return xfer_leg(x);
    if (x->from != 0 && x->to != 0) {
        c.kind = HEDDLE_COPY_PEER;
        c.ptr = x->src->ptr;
        c.peer = m->node[x->to].dev;
        c.peer_ptr = x->dst->ptr;
        c.runs = (struct heddle_runs){.run_bytes = x->where->unit->bytes, .nruns = 1};
        return n->drv->copy(n->dev, &c, n->copy_stream, &x->op);
    }
    c.kind = x->from == 0 ? HEDDLE_COPY_IN : HEDDLE_COPY_OUT;
    c.ptr = x->from == 0 ? x->dst->ptr : x->src->ptr;
    c.host = xfer_host(x);
    if (c.host == NULL && !m->is_fake)
        return HEDDLE_ENOMEM;
    xfer_pin_host(m, x->from == 0 ? x->to : x->from, x->where->unit->root);
    return n->drv->copy(n->dev, &c, n->copy_stream, &x->op);
}

void heddle_xfer_start(struct mem_xfer *x)
{
    const heddle_status st = xfer_copy(x);

    if (st != HEDDLE_OK)
        xfer_done(&x->op, st);
}

/* --- its end ---------------------------------------------------------------- */

static void xfer_release(struct heddle_mem *m, struct mem_xfer *x)
{
    if (x->src != NULL) {
        struct mem_xfer **p = &x->src->leaving;

        while (*p != x)
            p = &(*p)->next_out;
        *p = x->next_out;
        heddle_copy_unpin(m, x->src);
    }
    x->dst->arriving = NULL;
    heddle_copy_unpin(m, x->dst);
}

static void xfer_wake(struct heddle_mem *m, struct mem_xfer *x, heddle_status st)
{
    while (x->waits != NULL) {
        struct mem_wait *w = x->waits;
        struct heddle_mem_req *req = w->req;

        x->waits = w->next;
        w->next = m->free_waits;
        m->free_waits = w;
        if (st != HEDDLE_OK && req->status == HEDDLE_OK) {
            req->status = st;
            req->culprit = x->where->unit;
        }
        if (--req->nwaits == 0) {
            req->next = m->wake;
            m->wake = req;
        }
    }
}

static void xfer_count(struct heddle_mem *m, const struct mem_xfer *x)
{
    struct mem_node *from = &m->node[x->from], *to = &m->node[x->to];

    to->stats.bytes_in[x->why] += x->where->unit->bytes;
    to->stats.copies_in++;
    from->stats.bytes_out += x->where->unit->bytes;
    from->stats.copies_out++;
}

/* With the lock: what the end means for the data. A failure that may pass is
 * tried again, also from elsewhere; the mover finds the next one on the list. */
static bool xfer_settle(struct heddle_mem *m, struct mem_xfer *x, heddle_status st)
{
    struct heddle_where *w = x->where;

    if (st == HEDDLE_OK)
        xfer_count(m, x);
    if (st == HEDDLE_OK && x->version == w->version && !m->node[x->to].is_lost) {
        w->is_zero = false;
        heddle_where_set(m, w, where_valid(w) | UINT64_C(1) << x->to);
    }
    if (x->why == HEDDLE_MEM_EVICT) {
        m->node[x->from].leaving -= x->src->bytes;
        m->node[x->from].nevicting--;
        /* Not wanted by a task meanwhile, nor seen through a view: it goes. */
        if (st == HEDDLE_OK && x->src->pins == 1 &&
            (x->from != 0 || heddle_unit_noverlaps(w->unit) == 0))
            x->src->is_doomed = true;
    }
    if (st != HEDDLE_OK && st != HEDDLE_EDEV && st != HEDDLE_ENOMEM && ++x->tries < XFER_TRIES &&
        !m->node[x->from].is_lost && !m->node[x->to].is_lost) {
        if (x->why == HEDDLE_MEM_EVICT) {
            m->node[x->from].leaving += x->src->bytes;
            m->node[x->from].nevicting++;
        }
        x->leg = 0;
        xfer_list(&m->todo, &m->todo_last, x);
        return false;
    }
    return true;
}

static void xfer_finish(struct heddle_mem *m, struct mem_xfer *x, heddle_status st)
{
    /* A lost device is no failure of those who wait: there may be other copies. */
    const bool is_lost = m->node[x->from].is_lost || m->node[x->to].is_lost;

    xfer_release(m, x);
    if (st != HEDDLE_OK && x->why == HEDDLE_MEM_EVICT)
        m->node[x->from].is_dirty = true;
    xfer_wake(m, x, is_lost ? HEDDLE_OK : st);
    if (x->is_staged) {
        struct mem_xfer *next = m->staged;

        m->is_staging = next != NULL;
        if (next != NULL) {
            m->staged = next->next;
            xfer_list(&m->todo, &m->todo_last, next);
        }
    }
    for (unsigned i = 0; i < m->nnodes; i++)
        if (x->where->at[i] != NULL || i == x->from || i == x->to)
            m->node[i].is_dirty = true;
    m->inflight--;
    m->node[x->from].nmoving--;
    m->node[x->to].nmoving--;
    x->next = m->free_xfers;
    m->free_xfers = x;
}

static void xfer_tell(struct heddle_mem *m, const struct mem_xfer *x, heddle_status st)
{
    const struct heddle_mem_move move = {
        .unit = x->where->unit,
        .from = x->from,
        .to = x->to,
        .bytes = x->where->unit->bytes,
        .task = x->task,
        .why = x->why,
        .asked_ns = x->asked_ns,
        .begin_ns = x->begin_ns,
        .op = &x->op,
    };

    if (m->host.moved != NULL)
        m->host.moved(m->host.user, &move, st);
}

/* From progress() of a driver, or at once when the copy was refused. */
static void xfer_done(struct heddle_op *op, heddle_status st)
{
    struct mem_xfer *x = (struct mem_xfer *)(void *)op;
    struct heddle_mem *m = x->mem;

    if (x->leg == 0)
        x->begin_ns = x->op.begin_ns;
    if (x->is_staged && x->leg == 0 && x->src != NULL && st == HEDDLE_OK) {
        x->leg = 1;
        st = xfer_leg(x);
        if (st == HEDDLE_OK)
            return;
    }
    xfer_tell(m, x, st);
    mem_lock(m);
    if (xfer_settle(m, x, st))
        xfer_finish(m, x, st);
    mem_unlock(m);
    m->host.kick(m->host.user);
}
