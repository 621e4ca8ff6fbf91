/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab: memory of task records.
 *
 * Invariants (1) a cell is free (in the list of its slab), in use, or returned
 *                (in a batch); further cells share the fate of the first
 *            (2) gen[] of a chunk changes only when the cell comes home; while
 *                the cell is out, gen[] == generation in its `succ`
 *            (3) the `succ` of a cell that is not a live task is ENDED
 * Threads    take, collect, grow: the owner of the slab. return: any thread,
 *            with its own struct heddle_returns.
 * Cost       a take is a pop from a private list; a return is a store, and one
 *            CAS per HEDDLE_BATCH of them. A batch is written into the first cell
 *            that it returns, so it needs no memory of its own.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "task/task.h"

heddle_status heddle_pool_init(struct heddle_pool *p, const struct heddle_allocator *a)
{
    struct heddle_chunk **table;

    *p = (struct heddle_pool){.alloc = *a, .cap = 16};
    heddle_spin_init(&p->lock);
    table = heddle_zalloc(a, p->cap, sizeof(struct heddle_chunk *));
    heddle_store_rlx(&p->table, table); /* not shared yet */
    return table == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static void chunk_free(struct heddle_pool *p, struct heddle_chunk *k)
{
    heddle_free(&p->alloc, k->cell, HEDDLE_CHUNK * sizeof(*k->cell));
    heddle_free(&p->alloc, k->id, HEDDLE_CHUNK * sizeof(*k->id));
    heddle_free(&p->alloc, k->aux, HEDDLE_CHUNK * sizeof(*k->aux));
    heddle_free(&p->alloc, k->side, HEDDLE_CHUNK * sizeof(*k->side));
    heddle_free(&p->alloc, k, sizeof(*k));
}

void heddle_pool_fini(struct heddle_pool *p)
{
    struct heddle_chunk **table = heddle_load_rlx(&p->table);

    if (table == NULL)
        return;
    for (uint32_t i = 0; i < p->nchunks; i++)
        chunk_free(p, table[i]);
    for (unsigned i = 0; i < p->nold; i++)
        heddle_free(&p->alloc, p->old[i], (sizeof(*table) * 16) << i);
    heddle_free(&p->alloc, table, p->cap * sizeof(*table));
}

/* Room for one more chunk in the table; lock held. */
static heddle_status pool_grow(struct heddle_pool *p)
{
    struct heddle_chunk **table = heddle_load_rlx(&p->table), **bigger;

    if (p->nchunks < p->cap)
        return HEDDLE_OK;
    if (p->nold == sizeof(p->old) / sizeof(p->old[0]) ||
        p->cap >= (UINT32_C(1) << 27) / HEDDLE_CHUNK)
        return HEDDLE_ENOMEM; /* 2^27 pending tasks */
    bigger = heddle_zalloc(&p->alloc, 2 * (size_t)p->cap, sizeof(*table));
    if (bigger == NULL)
        return HEDDLE_ENOMEM;
    memcpy(bigger, table, p->cap * sizeof(*table));
    p->old[p->nold++] = table;
    p->cap *= 2;
    /* Publishes the copied entries; pairs with heddle_pool_chunk(). */
    heddle_store_rel(&p->table, bigger);
    return HEDDLE_OK;
}

void heddle_slab_init(struct heddle_slab *s, struct heddle_pool *p)
{
    *s = (struct heddle_slab){.pool = p, .id = p->nslabs++};
}

void heddle_slab_fini(struct heddle_slab *s)
{
    if (s->pool != NULL)
        heddle_free(&s->pool->alloc, s->cand, s->cand_cap * sizeof(*s->cand));
    s->cand = NULL;
}

heddle_status heddle_slab_grow(struct heddle_slab *s)
{
    struct heddle_pool *p = s->pool;
    struct heddle_chunk *k = heddle_zalloc_aligned(&p->alloc, 1, sizeof(*k), HEDDLE_CACHE_LINE);
    uint32_t first, i;
    heddle_status st = HEDDLE_ENOMEM;

    if (k == NULL)
        return HEDDLE_ENOMEM;
    k->cell = heddle_zalloc_aligned(&p->alloc, HEDDLE_CHUNK, sizeof(*k->cell),
                                    HEDDLE_CHUNK * sizeof(*k->cell));
    if (p->has_ids)
        k->id = heddle_zalloc(&p->alloc, HEDDLE_CHUNK, sizeof(*k->id));
    if (p->has_aux)
        k->aux = heddle_zalloc(&p->alloc, HEDDLE_CHUNK, sizeof(*k->aux));
    if (p->has_side)
        k->side = heddle_zalloc(&p->alloc, HEDDLE_CHUNK, sizeof(*k->side));
    k->slab = s;
    heddle_spin_lock(&p->lock);
    if (k->cell != NULL && (k->id != NULL || !p->has_ids) && (k->aux != NULL || !p->has_aux) &&
        (k->side != NULL || !p->has_side))
        st = pool_grow(p);
    if (st != HEDDLE_OK) {
        heddle_spin_unlock(&p->lock);
        chunk_free(p, k);
        return st;
    }
    first = p->nchunks++ * HEDDLE_CHUNK;
    /* No reader has an index of this chunk before we hand one out. */
    heddle_load_rlx(&p->table)[first / HEDDLE_CHUNK] = k;
    heddle_spin_unlock(&p->lock);
    k->cell[0].slab = s;
    k->cell[0].is_hungry = &s->is_hungry;
    k->cell[0].slab_id = s->id;
    for (i = HEDDLE_CHUNK; i-- > 1;) {
        k->gen[i] = 1;
        k->next[i] = s->free;
        s->free = first + i + 1;
        heddle_store_rlx(&k->cell[i].succ, (uint64_t)1 << 32 | HEDDLE_ENDED); /* invariant (3) */
    }
    s->ncells += HEDDLE_CHUNK - 1;
    return HEDDLE_OK;
}

void heddle_slab_untake(struct heddle_slab *s, struct heddle_cell *c)
{
    /* Invariant (3): a collected generation was never seen by any thread. */
    heddle_store_rlx(&c->succ, (uint64_t)c->gen << 32 | HEDDLE_ENDED);
    heddle_slab_free(s, c->self);
}

struct heddle_cell *heddle_slab_take_further(struct heddle_slab *s, struct heddle_cell *c)
{
    struct heddle_cell *f = heddle_slab_take(s);
    struct heddle_chunk *kc, *kf;
    uint32_t index;

    if (f == NULL)
        return NULL;
    index = f->self;
    kc = heddle_pool_chunk(s->pool, c->self);
    kf = heddle_pool_chunk(s->pool, index);
    kf->next[index % HEDDLE_CHUNK] = kc->next[c->self % HEDDLE_CHUNK];
    kc->next[c->self % HEDDLE_CHUNK] = index + 1;
    return f;
}

void heddle_slab_collect(struct heddle_slab *s)
{
    /* Acquire: pairs with heddle_batch_push(); the cells are ours again. */
    uint32_t batch = heddle_xchg_acqrel(&s->returned, 0u);

    while (batch != 0) {
        struct heddle_cell *c = heddle_pool_cell(s->pool, batch - 1);
        const uint32_t first = batch - 1;

        batch = c->next;
        for (uint32_t i = 0, n = c->n; i < n; i++)
            heddle_slab_free(s, c->index[i]);
        heddle_slab_free(s, first);
    }
}

heddle_status heddle_returns_init(struct heddle_returns *r, struct heddle_pool *p, uint32_t nslabs)
{
    r->nslabs = nslabs;
    r->batch = heddle_zalloc(&p->alloc, nslabs, sizeof(*r->batch));
    return r->batch == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void heddle_returns_fini(struct heddle_returns *r, struct heddle_pool *p)
{
    heddle_free(&p->alloc, r->batch, r->nslabs * sizeof(*r->batch));
    r->batch = NULL;
}

void heddle_batch_push(struct heddle_batch *b)
{
    struct heddle_cell *c = b->cell;
    struct heddle_slab *s = heddle_cell_home(c)->slab;
    /* Relaxed: only the value to compare with. */
    uint32_t head = heddle_load_rlx(&s->returned);

    b->cell = NULL;
    c->n = b->n;
    do
        c->next = head;
    /* Publishes the batch and all use of its cells; pairs with collect(). Only
     * the owner removes, and it removes all, so there is no ABA. */
    while (!heddle_cas_weak_acqrel(&s->returned, &head, b->first + 1));
}

void heddle_returns_flush(struct heddle_returns *r)
{
    for (uint32_t i = 0; i < r->nslabs; i++)
        if (r->batch[i].cell != NULL)
            heddle_batch_push(&r->batch[i]);
}
