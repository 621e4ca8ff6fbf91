/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * where: what is known about one unit: valid copies, layout away from home, next
 * uses.
 *
 * Invariants (1) a unit is in the away list exactly when it is not valid on the
 *                host and is not all zeros
 *            (2) root->naway counts the units of a root that have a heddle_where
 * Threads    the module's lock.
 */
#include "base/mode.h"
#include "mem/internal.h"

/* The dimensions in the order of the host's strides, largest first. */
static void where_order(const struct heddle_layout *l, unsigned *order)
{
    for (unsigned d = 0; d < l->ndim; d++) {
        unsigned i = d;

        for (; i > 0 && l->stride[order[i - 1]] < l->stride[d]; i--)
            order[i] = order[i - 1];
        order[i] = d;
    }
}

/* Host strides, run by run; away from home the same order without gaps. */
static void where_shape(struct heddle_where *w)
{
    const struct heddle_layout *l = &w->unit->layout;
    const size_t elem = heddle_dtype_bytes(l->dtype);
    struct heddle_runs *r = &w->runs;
    unsigned order[HEDDLE_MAX_DIMS], n = l->ndim;
    size_t s = 1;

    where_order(l, order);
    w->compact = *l;
    for (unsigned i = l->ndim; i-- > 0;) {
        w->compact.stride[order[i]] = s;
        s *= l->extent[order[i]];
    }
    r->run_bytes = elem;
    while (n > 0 &&
           (l->extent[order[n - 1]] == 1 || l->stride[order[n - 1]] * elem == r->run_bytes)) {
        r->run_bytes *= l->extent[order[n - 1]];
        n--;
    }
    r->ndim = 0;
    r->nruns = 1;
    for (unsigned i = 0; i < n; i++) {
        if (l->extent[order[i]] == 1)
            continue;
        r->count[r->ndim] = l->extent[order[i]];
        r->step[r->ndim] = l->stride[order[i]] * elem;
        r->nruns *= l->extent[order[i]];
        r->ndim++;
    }
}

/* Data that may go to the disk have no home: their host copy comes and goes. */
static bool where_needs_home(const struct heddle_mem *m, const heddle_handle *u)
{
    return m->disk < 0 || u->root != u || !u->owns_memory || heddle_unit_noverlaps(u) != 0 ||
           heddle_load_acq(&u->base) != NULL;
}

static struct mem_copy *where_home(struct heddle_mem *m, struct heddle_where *w)
{
    struct mem_copy *c = heddle_zalloc(&m->alloc, 1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->where = w;
    c->is_home = true;
    w->at[0] = c;
    return c;
}

struct heddle_where *heddle_where_get(struct heddle_mem *m, heddle_handle *unit)
{
    struct heddle_where *w = heddle_load_acq(&unit->where);
    const size_t bytes = sizeof(*w) + m->nnodes * sizeof(w->at[0]);

    if (w != NULL)
        return w;
    w = heddle_zalloc(&m->alloc, 1, bytes);
    if (w == NULL)
        return NULL;
    w->unit = unit;
    if (where_needs_home(m, unit)) {
        if (where_home(m, w) == NULL) {
            heddle_free(&m->alloc, w, bytes);
            return NULL;
        }
        heddle_store_rlx(&w->head.valid, UINT64_C(1)); /* not shared yet */
    } else {
        w->is_zero = true;
    }
    where_shape(w);
    w->next = m->units;
    if (m->units != NULL)
        m->units->prev = w;
    m->units = w;
    heddle_store_rel(&unit->where, w); /* for heddle_mem_valid() */
    heddle_add_acqrel(&unit->root->naway, 1u);
    return w;
}

void heddle_where_set(struct heddle_mem *m, struct heddle_where *w, uint64_t valid)
{
    const bool is_away = (valid & 1) == 0 && !w->is_zero;

    heddle_store_rel(&w->head.valid, valid); /* readers without the lock */
    if (is_away == w->is_listed_away)
        return;
    w->is_listed_away = is_away;
    if (is_away) {
        w->away_prev = NULL;
        w->away_next = m->away;
        if (m->away != NULL)
            m->away->away_prev = w;
        m->away = w;
        return;
    }
    if (w->away_prev != NULL)
        w->away_prev->away_next = w->away_next;
    else
        m->away = w->away_next;
    if (w->away_next != NULL)
        w->away_next->away_prev = w->away_prev;
}

void heddle_where_free(struct heddle_mem *m, struct heddle_where *w)
{
    w->is_zero = true; /* nothing of it is missed */
    heddle_where_set(m, w, 0);
    for (struct heddle_where **at = &m->wishes; *at != NULL && w->wished != 0;)
        if (*at == w)
            *at = w->wish_next;
        else
            at = &(*at)->wish_next;
    if (w->prev != NULL)
        w->prev->next = w->next;
    else
        m->units = w->next;
    if (w->next != NULL)
        w->next->prev = w->prev;
    heddle_store_rel(&w->unit->where, NULL);
    heddle_sub_acqrel(&w->unit->root->naway, 1u);
    heddle_free(&m->alloc, w->use, w->use_cap * sizeof(*w->use));
    heddle_free(&m->alloc, w, sizeof(*w) + m->nnodes * sizeof(w->at[0]));
}

/* Requests that write it or a unit that overlaps; and the program, if asked. */
static bool where_has_writer(const struct heddle_where *w, bool counts_program)
{
    const heddle_handle *u = w->unit;
    const uint32_t n = heddle_unit_noverlaps(u);

    if (w->nwriters != 0 || (counts_program && w->nowners != 0))
        return true;
    for (uint32_t i = 0; i < n; i++) {
        const struct heddle_where *o = heddle_load_rlx(&u->overlap[i]->where);

        if (o != NULL && (o->nwriters != 0 || (counts_program && o->nowners != 0)))
            return true;
    }
    return false;
}

bool heddle_where_is_written(const struct heddle_where *w)
{
    return where_has_writer(w, false);
}

bool heddle_where_is_taken(const struct heddle_where *w)
{
    return where_has_writer(w, true);
}

/* --- next uses ------------------------------------------------------------ */

/* What the scheduler cannot tell runs as it was submitted, after all else. */
static double use_order(struct heddle_mem *m, struct mem_use *u)
{
    if (isnan(u->order)) {
        u->nodes = UINT64_MAX;
        if (m->host.order != NULL)
            u->order = m->host.order(m->host.user, u->tag, &u->nodes);
        if (isnan(u->order))
            u->order = (double)u->task;
    }
    return u->order;
}

double heddle_copy_next_use(struct heddle_mem *m, struct mem_copy *c)
{
    struct heddle_where *w = c->where;
    double here = INFINITY, void_at = INFINITY;

    if (w->wont_use)
        return INFINITY;
    if (c->next_epoch == w->use_epoch + 1)
        return c->next_order;
    for (uint32_t i = 0; i < w->use_n; i++) {
        struct mem_use *u = &w->use[(w->use_head + i) % w->use_cap];
        const double o = use_order(m, u);

        if ((u->nodes >> c->node & 1) != 0)
            here = o < here ? o : here;
        else if (u->writes)
            void_at = o < void_at ? o : void_at;
    }
    c->next_order = void_at < here ? (double)INFINITY : here;
    c->next_epoch = w->use_epoch + 1;
    return c->next_order;
}

bool heddle_where_has_write(const struct heddle_where *w)
{
    for (uint32_t i = 0; i < w->use_n; i++)
        if (w->use[(w->use_head + i) % w->use_cap].writes)
            return true;
    return false;
}

/* No memory for a hint: it is lost, and nothing else. */
static void use_push(struct heddle_mem *m, struct heddle_where *w, const struct mem_use *u)
{
    if (w->use_n == w->use_cap) {
        const uint32_t cap = w->use_cap == 0 ? 8 : 2 * w->use_cap;
        struct mem_use *p = heddle_zalloc(&m->alloc, cap, sizeof(*p));

        if (p == NULL)
            return;
        for (uint32_t i = 0; i < w->use_n; i++)
            p[i] = w->use[(w->use_head + i) % w->use_cap];
        heddle_free(&m->alloc, w->use, w->use_cap * sizeof(*w->use));
        w->use = p;
        w->use_head = 0;
        w->use_cap = cap;
    }
    w->use[(w->use_head + w->use_n++) % w->use_cap] = *u;
    w->use_epoch++;
}

static void use_remove(struct heddle_where *w, uint64_t task)
{
    for (uint32_t i = 0; i < w->use_n; i++) {
        const uint32_t at = (w->use_head + i) % w->use_cap;

        if (w->use[at].task != task)
            continue;
        /* Those before it move up: usually there are none. */
        for (uint32_t k = i; k > 0; k--)
            w->use[(w->use_head + k) % w->use_cap] = w->use[(w->use_head + k - 1) % w->use_cap];
        w->use_head = (w->use_head + 1) % w->use_cap;
        w->use_n--;
        w->use_epoch++;
        return;
    }
}

void heddle_mem_will_use(struct heddle_mem *m, heddle_handle *unit, uint64_t task, const void *tag,
                         enum heddle_mode mode)
{
    const struct mem_use u = {
        .task = task, .tag = tag, .order = (double)NAN, .writes = heddle_mode_writes(mode)};
    struct heddle_where *w;

    heddle_mutex_lock(&m->lock);
    w = heddle_where_get(m, unit);
    if (w != NULL) {
        use_push(m, w, &u);
        w->wont_use = false;
    }
    heddle_mutex_unlock(&m->lock);
}

/* Lock held. */
void heddle_where_used(heddle_handle *unit, uint64_t task)
{
    struct heddle_where *w = heddle_load_rlx(&unit->where);

    if (w != NULL)
        use_remove(w, task);
}

void heddle_mem_used(struct heddle_mem *m, heddle_handle *unit, uint64_t task)
{
    heddle_mutex_lock(&m->lock);
    heddle_where_used(unit, task);
    heddle_mutex_unlock(&m->lock);
}
