/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy: buffers of units on nodes, and the bytes they take.
 *
 * Invariants (1) node.used is the sum of the bytes of its copies, of private
 *                buffers of requests, and of garbage that was not collected
 *            (2) only the mover frees memory of a device: other threads put the
 *                memory on the garbage list
 * Threads    callers hold the module's lock.
 */
#include "mem/internal.h"

uint64_t heddle_mem_copy_bytes(const heddle_handle *unit)
{
    return ((uint64_t)unit->bytes + MEM_ALIGN - 1) & ~(uint64_t)(MEM_ALIGN - 1);
}

uint64_t heddle_copy_size(const struct heddle_mem *m, const heddle_handle *unit, unsigned node)
{
    /* On the host with all its gaps, elsewhere without. */
    if (m->node[node].kind == HEDDLE_MEM_HOST)
        return ((uint64_t)unit->span_bytes + MEM_ALIGN - 1) & ~(uint64_t)(MEM_ALIGN - 1);
    return heddle_mem_copy_bytes(unit);
}

void heddle_mem_account(struct heddle_mem *m, unsigned node, int64_t delta, uint32_t unit)
{
    struct mem_node *n = &m->node[node];

    n->used = (uint64_t)((int64_t)n->used + delta);
    if (n->used > n->peak)
        n->peak = n->used;
    if (m->host.used != NULL)
        m->host.used(m->host.user, node, delta, n->used, unit, m->whom);
}

static void copy_link(struct mem_node *n, struct mem_copy *c)
{
    c->next = NULL;
    c->prev = n->last;
    if (n->last != NULL)
        n->last->next = c;
    else
        n->first = c;
    n->last = c;
}

static void copy_unlink(struct mem_node *n, struct mem_copy *c)
{
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        n->first = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    else
        n->last = c->prev;
}

/* Memory for a copy; an address that is not NULL also when nothing is real. */
static heddle_status copy_memory(struct heddle_mem *m, struct heddle_where *w, unsigned node,
                                 uint64_t bytes, void **ptr_out)
{
    struct mem_node *n = &m->node[node];

    if (m->host.fault_alloc != NULL)
        HEDDLE_TRY(m->host.fault_alloc(m->host.user, node));
    if (n->kind != HEDDLE_MEM_HOST)
        return n->drv->alloc(n->dev, (size_t)bytes, n->copy_stream, ptr_out);
    if (m->is_fake) {
        *ptr_out = w;
        return HEDDLE_OK;
    }
    *ptr_out = heddle_zalloc_aligned(&m->alloc, 1, (size_t)bytes, 64);
    if (*ptr_out == NULL)
        return HEDDLE_ENOMEM;
    heddle_store_rel(&w->unit->base, *ptr_out); /* see heddle_unit_base() */
    return HEDDLE_OK;
}

struct mem_copy *heddle_copy_alloc(struct heddle_mem *m, struct heddle_where *w, unsigned node,
                                   heddle_status *st)
{
    const uint64_t bytes = heddle_copy_size(m, w->unit, node);
    struct mem_copy *c = m->free_copies;
    void *ptr = NULL;

    if (c != NULL)
        m->free_copies = c->next;
    else
        c = heddle_zalloc(&m->alloc, 1, sizeof(*c));
    *st = c == NULL ? HEDDLE_ENOMEM : copy_memory(m, w, node, bytes, &ptr);
    if (*st != HEDDLE_OK) {
        if (c != NULL) {
            c->next = m->free_copies;
            m->free_copies = c;
        }
        return NULL;
    }
    *c = (struct mem_copy){.where = w, .id = w->unit->id, .node = node, .ptr = ptr, .bytes = bytes};
    w->at[node] = c;
    copy_link(&m->node[node], c);
    heddle_mem_account(m, node, (int64_t)bytes, w->unit->id);
    return c;
}

void heddle_copy_pin(struct heddle_mem *m, struct mem_copy *c)
{
    c->pins++;
    c->is_doomed = false;
    if (!c->is_home) { /* the most recently used one */
        copy_unlink(&m->node[c->node], c);
        copy_link(&m->node[c->node], c);
    }
}

void heddle_copy_unpin(struct heddle_mem *m, struct mem_copy *c)
{
    HEDDLE_ASSERT(c->pins > 0);
    if (--c->pins != 0)
        return;
    m->node[c->node].is_dirty = true; /* it may be evicted now */
    if (c->is_doomed)
        heddle_copy_drop(m, c);
}

void heddle_copy_drop(struct heddle_mem *m, struct mem_copy *c)
{
    struct mem_node *n = &m->node[c->node];

    if (c->is_home)
        return;
    if (c->pins != 0) {
        c->is_doomed = true;
        return;
    }
    HEDDLE_ASSERT(c->arriving == NULL && c->leaving == NULL);
    heddle_where_set(m, c->where, where_valid(c->where) & ~(UINT64_C(1) << c->node));
    copy_unlink(n, c);
    if (c->where->at[c->node] == c)
        c->where->at[c->node] = NULL;
    if (n->kind == HEDDLE_MEM_HOST && !m->is_fake)
        heddle_store_rel(&c->where->unit->base, NULL);
    c->where = NULL;
    c->next = m->garbage;
    m->garbage = c;
    n->is_dirty = true;
}

bool heddle_mem_collect(struct heddle_mem *m, int node)
{
    struct mem_copy **at = &m->garbage, *c;
    bool has_any = false;

    while ((c = *at) != NULL) {
        struct mem_node *n = &m->node[c->node];

        if (node >= 0 && c->node != (unsigned)node) {
            at = &c->next;
            continue;
        }
        has_any = true;
        *at = c->next;
        if (n->kind != HEDDLE_MEM_HOST)
            n->drv->free(n->dev, c->ptr, (size_t)c->bytes, n->copy_stream);
        else if (!m->is_fake)
            heddle_free(&m->alloc, c->ptr, (size_t)c->bytes);
        heddle_mem_account(m, c->node, -(int64_t)c->bytes, c->id);
        n->is_dirty = true;
        c->next = m->free_copies;
        m->free_copies = c;
    }
    return has_any;
}
