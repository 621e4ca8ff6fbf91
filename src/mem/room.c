/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room: whole working sets in one step; which copies to evict.
 *
 * Structure  a request that does not fit waits in the queue of its node. Whenever
 *            something changes on the node, the oldest request is tried again: it is
 *            admitted, or copies are evicted for it. Younger requests may overtake it
 *            only when they need no room at all, and only a limited number of times.
 * Invariants (1) a queued request holds nothing: no buffer, no pin
 *            (2) an admitted request has every buffer it needs and never waits for
 *                room again
 *            (3) while requests wait and none is admitted, every copy without a pin
 *                can be evicted; so the oldest request fits, or it never will, and
 *                then it fails
 * Cost       an eviction looks at all copies of the node.
 * See also   docs/design/memory.md: why no request waits for ever.
 */
#include "mem/internal.h"

static bool req_has_before(const struct heddle_mem_req *req, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (req->op[k].unit == req->op[i].unit)
            return true;
    return false;
}

/* Bytes that are missing for the whole request. */
static uint64_t room_need(struct heddle_mem *m, const struct heddle_mem_req *req)
{
    uint64_t need = 0;

    for (unsigned i = 0; i < req->nops; i++) {
        const struct heddle_where *w = heddle_load_rlx(&req->op[i].unit->where);

        if (w->at[req->node] == NULL && !req_has_before(req, i))
            need += heddle_copy_size(m, req->op[i].unit, req->node);
    }
    for (unsigned i = 0; i < req->nprivate; i++)
        need += req->private_bytes[i];
    return need;
}

/* Gives back what an admission that failed half-way had taken. */
static void room_undo(struct heddle_mem *m, struct heddle_mem_req *req, unsigned nops,
                      unsigned nprivate)
{
    struct mem_node *n = &m->node[req->node];

    for (unsigned i = 0; i < nops; i++) {
        struct mem_copy *c = req->op[i].copy;

        req->op[i].copy = NULL;
        heddle_copy_unpin(m, c);
        if (c->pins == 0 && !where_is_at(c->where, c->node))
            heddle_copy_drop(m, c);
    }
    for (unsigned i = 0; i < nprivate; i++) {
        if (n->kind == HEDDLE_MEM_HOST)
            continue;
        n->drv->free(n->dev, req->private_ptr[i], req->private_bytes[i], n->copy_stream);
        heddle_mem_account(m, req->node, -(int64_t)req->private_bytes[i], 0);
    }
}

static heddle_status room_take_private(struct heddle_mem *m, struct heddle_mem_req *req, unsigned i)
{
    struct mem_node *n = &m->node[req->node];

    if (m->host.fault_alloc != NULL)
        HEDDLE_TRY(m->host.fault_alloc(m->host.user, req->node));
    HEDDLE_TRY(n->drv->alloc(n->dev, req->private_bytes[i], n->copy_stream, &req->private_ptr[i]));
    heddle_mem_account(m, req->node, (int64_t)req->private_bytes[i], 0);
    return HEDDLE_OK;
}

/* Everything at once; on failure nothing is held. */
static heddle_status room_take(struct heddle_mem *m, struct heddle_mem_req *req)
{
    heddle_status st = HEDDLE_OK;
    unsigned i = 0, p = 0;

    for (; i < req->nops && st == HEDDLE_OK; i++) {
        struct heddle_where *w = heddle_load_rlx(&req->op[i].unit->where);
        struct mem_copy *c = w->at[req->node];

        if (c == NULL)
            c = heddle_copy_alloc(m, w, req->node, &st);
        if (c == NULL)
            break;
        req->op[i].copy = c;
        heddle_copy_pin(m, c);
    }
    for (; p < req->nprivate && st == HEDDLE_OK; p++) {
        st = room_take_private(m, req, p);
        if (st != HEDDLE_OK)
            break;
    }
    if (st != HEDDLE_OK)
        room_undo(m, req, i, p);
    return st;
}

/* --- whom to evict ----------------------------------------------------------- */

static bool copy_is_clean(const struct mem_copy *c)
{
    const uint64_t valid = where_valid(c->where);

    return (valid >> c->node & 1) == 0 || (valid & ~(UINT64_C(1) << c->node)) != 0;
}

/* Where a copy that is the only one can go. */
static unsigned room_refuge(struct heddle_mem *m, const struct mem_copy *c)
{
    if (c->node != 0 && c->where->at[0] != NULL)
        return 0;
    return m->disk >= 0 ? (unsigned)m->disk : 0;
}

/* An old version is still on its way to the refuge: wait until that is there. */
static bool room_is_late(struct heddle_mem *m, const struct mem_copy *c)
{
    const struct mem_copy *to = c->where->at[room_refuge(m, c)];

    return to != NULL && to != c && to->arriving != NULL;
}

static bool room_may_evict(struct heddle_mem *m, const struct mem_node *n, const struct mem_copy *c)
{
    const heddle_handle *u = c->where->unit;

    if (c->pins != 0 || c->where->is_frozen || room_is_late(m, c) ||
        heddle_where_is_written(c->where) ||
        ((c->where->pinned >> c->node & 1) != 0 && !n->is_desperate))
        return false;
    /* Views point into the memory of their root. */
    return c->node != 0 || heddle_unit_noverlaps(u) == 0;
}

/* Is a the better victim? Not needed any more, then needed last; what is clean or
 * was not used for long first. (The list is in order of use: a comes later.) */
static bool victim_is_better(struct heddle_mem *m, struct mem_copy *a, struct mem_copy *b)
{
    double ua, ub;

    if (m->policy == HEDDLE_MEM_LRU)
        return false;
    ua = heddle_copy_next_use(m, a);
    ub = heddle_copy_next_use(m, b);
    if (ua != ub)
        return ua > ub;
    return copy_is_clean(a) && !copy_is_clean(b);
}

static struct mem_copy *room_victim(struct heddle_mem *m, struct mem_node *n)
{
    struct mem_copy *best = NULL;

    for (struct mem_copy *c = n->first; c != NULL; c = c->next) {
        if (!room_may_evict(m, n, c))
            continue;
        if ((where_valid(c->where) >> c->node & 1) == 0)
            return c; /* holds nothing */
        if (best == NULL || victim_is_better(m, c, best))
            best = c;
    }
    return best;
}

/* Starts to evict one copy. False: it cannot leave. */
static bool room_evict(struct heddle_mem *m, struct mem_copy *c)
{
    struct mem_node *n = &m->node[c->node];
    struct heddle_where *w = c->where;
    const unsigned to = room_refuge(m, c);
    struct mem_xfer *x;
    heddle_status st;

    n->stats.evictions++;
    if (copy_is_clean(c)) {
        heddle_where_set(m, w, where_valid(w) & ~(UINT64_C(1) << c->node));
        heddle_copy_drop(m, c);
        return true;
    }
    if (w->at[to] == NULL && heddle_copy_alloc(m, w, to, &st) == NULL)
        return false; /* the disk is full */
    x = heddle_xfer_get(m, w, to, HEDDLE_MEM_EVICT, &st);
    if (x == NULL)
        return false;
    if (x->why == HEDDLE_MEM_EVICT && x->src == c) {
        n->leaving += c->bytes;
        n->nevicting++;
    }
    return true;
}

/* Evicts until `need` bytes are free or on their way to be. False: there is
 * nothing left to evict. */
static bool room_make(struct heddle_mem *m, struct mem_node *n, uint64_t need)
{
    while (n->used - n->leaving > n->budget || n->budget - (n->used - n->leaving) < need) {
        struct mem_copy *c = room_victim(m, n);

        if (c == NULL || !room_evict(m, c))
            return false;
        heddle_mem_collect(m, (int)(n - m->node));
    }
    return true;
}

/*
 * True: admitted, or it cannot be (*st). False: not now. A driver that has less
 * memory than the budget promised makes the budget smaller.
 */
bool heddle_room_admit(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status *st)
{
    struct mem_node *n = &m->node[req->node];
    uint64_t need;

    *st = HEDDLE_EDEV;
    if (n->is_lost)
        return true;
    *st = HEDDLE_OK;
    need = room_need(m, req);
    if (need != 0 && !req->is_forced && n->budget != HEDDLE_MEM_NO_LIMIT &&
        (n->used > n->budget || need > n->budget - n->used))
        return false;
    *st = room_take(m, req);
    if (*st == HEDDLE_OK) {
        n->admitted++;
        n->nforced += req->is_forced;
        n->is_dirty |= n->used > n->budget; /* the mover makes it smaller */
        heddle_req_writes(req, true);
        if (req->is_watched)
            m->host.admitted(m->host.user, req);
        return true;
    }
    if (*st != HEDDLE_ENOMEM)
        return true;
    heddle_mem_collect(m, (int)req->node);
    if (n->used < n->budget)
        n->budget = n->used;
    return false;
}

/* --- the queue ----------------------------------------------------------------- */

void heddle_room_queue(struct heddle_mem *m, struct heddle_mem_req *req)
{
    struct mem_node *n = &m->node[req->node];

    req->state = REQ_QUEUED;
    req->next = NULL;
    req->prev = n->q_last;
    if (n->q_last != NULL)
        n->q_last->next = req;
    else
        n->q_first = req;
    n->q_last = req;
    n->is_dirty = true;
    m->nwaiting++;
}

static void room_unqueue(struct heddle_mem *m, struct heddle_mem_req *req)
{
    struct mem_node *n = &m->node[req->node];

    if (req->prev != NULL)
        req->prev->next = req->next;
    else
        n->q_first = req->next;
    if (req->next != NULL)
        req->next->prev = req->prev;
    else
        n->q_last = req->prev;
    m->nwaiting--;
}

static bool room_try(struct heddle_mem *m, struct heddle_mem_req *req)
{
    const uint64_t whom = m->whom;
    heddle_status st;
    bool is_settled;

    m->whom = req->task;
    is_settled = heddle_room_admit(m, req, &st);
    m->whom = whom;
    if (!is_settled)
        return false;
    room_unqueue(m, req);
    if (st != HEDDLE_OK)
        heddle_req_fail(m, req, st, NULL);
    else
        req_resume(m, req);
    return true;
}

/* Requests that find everything in place overtake the oldest, for a while. */
static void room_bypass(struct heddle_mem *m, struct mem_node *n)
{
    struct heddle_mem_req *first = n->q_first, *req = first->next;

    while (req != NULL && first->bypassed < BYPASS_MAX) {
        struct heddle_mem_req *next = req->next;

        if (room_need(m, req) == 0 && room_try(m, req))
            first->bypassed++;
        req = next;
    }
}

/* What lies here can go a little later: tasks elsewhere write it, its handle is on
 * its way out, or its refuge is taken for a moment. */
static bool room_is_held(struct heddle_mem *m, const struct mem_node *n)
{
    for (const struct mem_copy *c = n->first; c != NULL; c = c->next)
        if (c->where->is_frozen || room_is_late(m, c) || heddle_where_is_written(c->where))
            return true;
    return false;
}

/* What a request finds here already is not evicted for its sake. */
static bool room_make_for(struct heddle_mem *m, struct heddle_mem_req *req, uint64_t need)
{
    struct mem_node *n = &m->node[req->node];
    const uint64_t whom = m->whom;
    bool ok;

    for (unsigned i = 0; i < req->nops; i++) {
        struct heddle_where *w = heddle_load_rlx(&req->op[i].unit->where);

        if (w->at[req->node] != NULL)
            w->at[req->node]->pins++;
    }
    m->whom = req->task;
    ok = room_make(m, n, need);
    m->whom = whom;
    for (unsigned i = 0; i < req->nops; i++) {
        struct heddle_where *w = heddle_load_rlx(&req->op[i].unit->where);

        if (w->at[req->node] != NULL)
            w->at[req->node]->pins--;
    }
    return ok;
}

/*
 * No request will give anything back, and the oldest request has no room. In this
 * order: what the user pinned, which is a hint; another question to a driver that
 * had too little; over the budget when only those who were let in over it are
 * here. False: it is hopeless.
 */
static bool room_appeal(struct mem_node *n, struct heddle_mem_req *req)
{
    if (n->nforced != 0) {
        req->is_forced = true;
        return true;
    }
    if (++req->appeals > APPEALS)
        return false;
    n->is_desperate = true;
    n->budget = n->promised;
    return true;
}

void heddle_room_serve(struct heddle_mem *m, unsigned node)
{
    struct mem_node *n = &m->node[node];

    n->is_dirty = false;
    while (n->q_first != NULL) {
        struct heddle_mem_req *req = n->q_first;
        const uint64_t need = room_need(m, req);

        if (room_try(m, req)) {
            n->is_desperate = false;
            continue;
        }
        if (need <= n->budget && room_make_for(m, req, need)) {
            if (n->nevicting == 0)
                continue; /* clean ones went at once */
        } else if (n->admitted == n->nforced && n->nmoving == 0 && !room_is_held(m, n)) {
            if (room_appeal(n, req))
                continue;
            n->is_desperate = false;
            room_unqueue(m, req);
            heddle_req_fail(m, req, HEDDLE_ENOMEM, NULL);
            continue;
        }
        room_bypass(m, n);
        return;
    }
    if (n->used - n->leaving > n->budget)
        (void)room_make(m, n, 0); /* what was forced in goes first */
    heddle_room_clean(m, node);
}

/* A copy that no task will write again is written back while there is time. */
void heddle_room_clean(struct heddle_mem *m, unsigned node)
{
    struct mem_node *n = &m->node[node];
    struct mem_copy *best = NULL;
    unsigned looks = CLEAN_LOOKS;
    heddle_status st;

    if (n->kind != HEDDLE_MEM_DEVICE || n->nevicting != 0 || n->is_lost ||
        n->budget == HEDDLE_MEM_NO_LIMIT || n->used < n->budget / 100 * CLEAN_PERCENT)
        return;
    for (struct mem_copy *c = n->first; c != NULL && looks-- > 0; c = c->next) {
        if (!room_may_evict(m, n, c) || copy_is_clean(c) || c->leaving != NULL ||
            c->where->at[0] == NULL || heddle_where_has_write(c->where))
            continue;
        if (c->where->unit->root->owns_memory && c->where->use_n == 0)
            continue; /* perhaps no task wants it at all */
        if (best == NULL || victim_is_better(m, c, best))
            best = c;
    }
    if (best != NULL)
        (void)heddle_xfer_get(m, best->where, 0, HEDDLE_MEM_WRITEBACK, &st);
}
