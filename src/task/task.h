/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TASK_TASK_H
#define HEDDLE_TASK_TASK_H

/*
 * Task module: task records and dependencies.
 *
 * A record is a *cell* of 128 bytes. Cells live in chunks; a cell is named by a
 * 27-bit index and, together with its generation, by a heddle_ref. A *slab* is
 * the allocator of one submitter: it hands out cells and takes them back.
 *
 * Waiting. A cell has a list of the edges to tasks that wait for it (`succ`).
 * The list is closed by the task's end: one exchange takes all waiters and marks
 * the end, so that a submitter that comes later sees "done" and adds no edge. An
 * edge is a node inside the *waiting* cell: a word that links to the next edge of
 * the same predecessor. So an edge costs no memory, one CAS to add and nothing to
 * free. docs/design/hot-path.md has the memory orders and the proof.
 *
 * Recycling. Cells are never freed before the context. The generation in `succ`
 * makes a stale reference harmless: it differs, so that task has ended.
 *
 * Threads  a slab and the generations of its chunks belong to its submitter (the
 *          holder of the submission lock, or one worker). Any thread may end a
 *          task and give its cell back: cells return in batches of up to
 *          HEDDLE_BATCH through slab->returned.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/spin.h"
#include "data/data.h"
#include "sched/sched.h"

#define HEDDLE_CELL_NODES    5  /* edges inside the record */
#define HEDDLE_SPILL_NODES   24 /* edges in each further cell */
#define HEDDLE_CELL_OPERANDS 4
#define HEDDLE_CELL_ARG      16
#define HEDDLE_BATCH         28
#define HEDDLE_CHUNK         1024 /* cells per chunk */

/* The low half of `succ`: 0: no waiter; NODE(cell, slot) + 1: the newest edge;
 * HEDDLE_ENDED: the task has ended. */
#define HEDDLE_ENDED UINT32_MAX

struct heddle_kinfo;
struct heddle_scope;

struct heddle_cell {
    /* generation << 32 | newest edge or HEDDLE_ENDED. Whatever the cell is used
     * for, this word stays valid: stale references may look at it. */
    _Atomic uint64_t succ;

    union {
        struct {                   /* a task */
            _Atomic int32_t ndeps; /* predecessors that have not ended */
            uint32_t gen;
            uint32_t self;  /* own index */
            uint32_t flags; /* the engine's; the low 8 bits: operands */
            struct heddle_kinfo *kinfo;
            struct heddle_scope *scope; /* parent's, NULL: the context's */
            uint64_t id;
            union {
                struct heddle_sched_task sched; /* once it is ready */
                struct {
                    int prio;
                    uint32_t aux;
                    _Atomic uint32_t node[HEDDLE_CELL_NODES]; /* until then */
                    uint32_t ext;                             /* index of a further cell, 0: none */
                };
            };
            heddle_handle *op[HEDDLE_CELL_OPERANDS];
            _Alignas(8) unsigned char arg[HEDDLE_CELL_ARG];
        };
        struct {            /* further edges of a task */
            uint32_t owner; /* index of the waiting task */
            _Atomic uint32_t spill[HEDDLE_SPILL_NODES];
        };
        struct { /* the first cell of a chunk: where its cells belong */
            struct heddle_slab *slab;
            _Atomic uint32_t *is_hungry; /* &slab->is_hungry */
            uint32_t slab_id;
        };
        struct {           /* cells on their way back to the slab */
            uint32_t next; /* 1 + index of the next batch, 0: last */
            uint32_t n;
            uint32_t index[HEDDLE_BATCH];
        };
        unsigned char bytes[120]; /* whatever the engine keeps in a further cell */
    };
};

_Static_assert(sizeof(struct heddle_cell) == 128, "two cache lines");
_Static_assert(offsetof(struct heddle_cell, prio) == offsetof(struct heddle_cell, sched.prio),
               "the scheduler's part and the edges overlay");

struct heddle_slab;

/* Cells of a chunk lie at a multiple of its size, so that the first one, which
 * is no task, is found by masking. Workers read it and nothing else of a slab. */
struct heddle_chunk {
    struct heddle_cell *cell; /* HEDDLE_CHUNK of them */
    struct heddle_slab *slab; /* owner */
    void **side;              /* the engine's, which locks; or NULL */
    /* Owner only, so that it never loads a cell that another core wrote; on lines
     * that no other core reads: */
    _Alignas(HEDDLE_CACHE_LINE) uint64_t *id; /* of the tasks, for the log */
    uint32_t *aux;                            /* the scheduler's; or NULL */
    uint32_t gen[HEDDLE_CHUNK];
    uint32_t next[HEDDLE_CHUNK]; /* free list; further cells of a task in use */
};

/* All cells of one context. */
struct heddle_pool {
    struct heddle_allocator alloc;
    _Atomic(struct heddle_chunk **) table; /* grows by copying, see pool_grow */
    struct heddle_spin lock;               /* guards growth */
    uint32_t nchunks, cap;
    bool has_ids;                  /* chunks keep the ids of tasks: the log wants edges */
    bool has_aux;                  /* and what the scheduler remembers of them */
    bool has_side;                 /* and the engine */
    struct heddle_chunk **old[32]; /* outgrown tables: readers may hold them */
    unsigned nold;
    uint32_t nslabs;
};

struct heddle_slab {
    struct heddle_pool *pool;
    uint32_t id;      /* number among the slabs of the pool */
    uint32_t free;    /* 1 + index of the first free cell, 0: none */
    uint32_t ncells;  /* all */
    uint32_t in_use;  /* taken and not collected */
    uint32_t tick;    /* calls since the last collection */
    heddle_ref *cand; /* scratch of the dependency pass */
    uint32_t cand_cap;

    /* Any thread: 1 + index of the newest returned batch. */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t returned;
    /* The owner is out of cells: give back at once. Seldom written. */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t is_hungry;
};

/* A thread's half-filled batches, one per slab. */
struct heddle_returns {
    struct heddle_batch {
        struct heddle_cell *cell; /* holds the batch; NULL: none is begun */
        uint32_t first;           /* its index */
        uint32_t n;
    } * batch;
    uint32_t nslabs;
};

heddle_status heddle_pool_init(struct heddle_pool *p, const struct heddle_allocator *a);
void heddle_pool_fini(struct heddle_pool *p);

void heddle_slab_init(struct heddle_slab *s, struct heddle_pool *p);
void heddle_slab_fini(struct heddle_slab *s);

heddle_status heddle_returns_init(struct heddle_returns *r, struct heddle_pool *p, uint32_t nslabs);
void heddle_returns_fini(struct heddle_returns *r, struct heddle_pool *p);
/* Hands over what is half filled. */
void heddle_returns_flush(struct heddle_returns *r);

/* Hands over one batch. */
void heddle_batch_push(struct heddle_batch *b);

static inline struct heddle_cell *heddle_cell_home(struct heddle_cell *c)
{
    const uintptr_t size = HEDDLE_CHUNK * sizeof(struct heddle_cell);

    return (struct heddle_cell *)((uintptr_t)c & ~(size - 1));
}

/* Gives back the cell of an ended task, with all further cells. */
static inline void heddle_cell_return(struct heddle_returns *r, struct heddle_cell *c)
{
    struct heddle_cell *home = heddle_cell_home(c);
    struct heddle_batch *b = &r->batch[home->slab_id];
    const uint32_t index = c->self;

    if (b->cell == NULL) {
        b->cell = c;
        b->first = index;
        b->n = 0;
    } else {
        b->cell->index[b->n++] = index;
    }
    /* Relaxed: a hint; late sight costs the owner a little waiting. */
    if (HEDDLE_UNLIKELY(b->n == HEDDLE_BATCH || heddle_load_rlx(home->is_hungry) != 0))
        heddle_batch_push(b);
}

/* Slow paths of the inline functions below. */
heddle_status heddle_slab_grow(struct heddle_slab *s);
void heddle_slab_collect(struct heddle_slab *s);

static inline struct heddle_chunk *heddle_pool_chunk(struct heddle_pool *p, uint32_t index)
{
    /* Acquire: pairs with the publication in pool_grow(). */
    return heddle_load_acq(&p->table)[index / HEDDLE_CHUNK];
}

static inline struct heddle_cell *heddle_pool_cell(struct heddle_pool *p, uint32_t index)
{
    return &heddle_pool_chunk(p, index)->cell[index % HEDDLE_CHUNK];
}

/* Owner. A cell with a new generation, or NULL: no memory. */
static inline struct heddle_cell *heddle_slab_take(struct heddle_slab *s)
{
    struct heddle_chunk *k;
    struct heddle_cell *c;
    uint32_t index, i;

    if (HEDDLE_UNLIKELY((++s->tick & 7) == 0) || s->free == 0) {
        /* Relaxed: a hint, the collection acquires. */
        if (heddle_load_rlx(&s->returned) != 0)
            heddle_slab_collect(s);
        if (HEDDLE_UNLIKELY(s->free == 0) && heddle_slab_grow(s) != HEDDLE_OK)
            return NULL;
    }
    index = s->free - 1;
    k = heddle_pool_chunk(s->pool, index);
    i = index % HEDDLE_CHUNK;
    c = &k->cell[i];
    s->free = k->next[i];
    if (s->free != 0) /* the next one: a worker had it last */
        HEDDLE_PREFETCH_W(heddle_pool_cell(s->pool, s->free - 1));
    k->next[i] = 0;
    s->in_use++;
    c->gen = k->gen[i];
    c->self = index;
    return c;
}

/* Owner. Puts a task's cells into the free list, the first on top (it is the warmest); a
 * new generation for each. The task has ended, and this thread knows. */
static inline void heddle_slab_free(struct heddle_slab *s, uint32_t index)
{
    while (true) {
        struct heddle_chunk *k = heddle_pool_chunk(s->pool, index);
        const uint32_t i = index % HEDDLE_CHUNK, further = k->next[i];

        if (++k->gen[i] == 0)
            k->gen[i] = 1; /* 0 would make a ref of "none" */
        k->next[i] = s->free;
        s->free = index + 1;
        s->in_use--;
        if (HEDDLE_LIKELY(further == 0))
            return;
        index = further - 1;
    }
}

/* Owner. Takes back a cell that no other thread has seen. */
void heddle_slab_untake(struct heddle_slab *s, struct heddle_cell *c);

/* Owner. A further cell that comes back together with `c`. */
struct heddle_cell *heddle_slab_take_further(struct heddle_slab *s, struct heddle_cell *c);

static inline heddle_ref heddle_cell_ref(const struct heddle_cell *c)
{
    return (heddle_ref)c->gen << 32 | c->self;
}

/*
 * Is the task of `ref` still to be waited for? Then its cell, else NULL. The
 * acquire that sees the end makes everything the task wrote visible.
 */
static inline struct heddle_cell *heddle_ref_live(struct heddle_slab *s, heddle_ref ref)
{
    const uint32_t index = (uint32_t)ref, gen = (uint32_t)(ref >> 32);
    struct heddle_chunk *k;
    struct heddle_cell *c;
    uint64_t w;

    if (ref == 0)
        return NULL;
    k = heddle_pool_chunk(s->pool, index);
    if (k->slab == s && k->gen[index % HEDDLE_CHUNK] != gen)
        return NULL; /* collected: known without touching the cell */
    c = &k->cell[index % HEDDLE_CHUNK];
    w = heddle_load_acq(&c->succ);
    if ((uint32_t)(w >> 32) != gen || (uint32_t)w == HEDDLE_ENDED)
        return NULL;
    return c;
}

/*
 * Could the task of `ref` still run? A cheaper question: the cell is not looked
 * at, so an ended task may be taken for a live one until its cell comes home.
 * heddle_deps_link() finds out then.
 */
static inline bool heddle_ref_may_live(struct heddle_slab *s, heddle_ref ref)
{
    const uint32_t index = (uint32_t)ref;

    return ref != 0 &&
           heddle_pool_chunk(s->pool, index)->gen[index % HEDDLE_CHUNK] == (uint32_t)(ref >> 32);
}

/* --- dependencies (deps.c) ------------------------------------------------ */

/* One operand on its way into the history. */
struct heddle_access {
    heddle_handle *unit;
    struct heddle_dep *dep; /* its history in this domain */
    enum heddle_mode mode;
};

/* Where the histories of other units of this domain are found. */
struct heddle_domain {
    struct heddle_slab *slab;
    /* The overlap lists may change under us and are not looked at: when they
     * were last seen under the lock they were empty. */
    bool is_blind;
    /* The history of a unit, or NULL when it was never used here. */
    struct heddle_dep *(*find)(struct heddle_domain *d, heddle_handle *unit);
    /* Submits a task that joins (or, for a reduction, combines) the crowd of
     * `unit` and is the writer from then on. */
    heddle_status (*close_crowd)(struct heddle_domain *d, heddle_handle *unit,
                                 struct heddle_dep *dep);
};

/*
 * Step 1: makes room for everything the accesses will need, and for `extra`
 * candidates the caller adds; closes crowds that stand in the way. May fail;
 * then histories are as good as before.
 */
heddle_status heddle_deps_prepare(struct heddle_domain *d, const struct heddle_access *acc,
                                  unsigned n, size_t extra);

/*
 * Step 2: the tasks to wait for, into slab->cand; returns how many. Nothing is
 * changed.
 */
uint32_t heddle_deps_collect(struct heddle_domain *d, const struct heddle_access *acc, unsigned n);

/* Step 3: the accesses of `ref` become part of the histories. */
void heddle_deps_update(struct heddle_domain *d, const struct heddle_access *acc, unsigned n,
                        heddle_ref ref);

/*
 * Step 4: adds an edge to each of the m candidates. The cell is complete by now:
 * the task may start before this returns. True: nothing to wait for, the caller
 * makes it ready. Further cells for m edges were taken by heddle_deps_spill().
 */
bool heddle_deps_link(struct heddle_slab *s, struct heddle_cell *c, uint32_t m);

/* Takes the further cells that m edges need. */
heddle_status heddle_deps_spill(struct heddle_slab *s, struct heddle_cell *c, uint32_t m);

/* Room for n candidates in slab->cand. */
heddle_status heddle_deps_reserve(struct heddle_slab *s, size_t n);
/* All of one history, whatever the mode, into slab->cand; returns how many. */
uint32_t heddle_deps_collect_all(struct heddle_slab *s, const struct heddle_dep *dep);
/* `ref` is the writer now; the crowd is empty. */
static inline void heddle_dep_write(struct heddle_dep *dep, heddle_ref ref)
{
    dep->writer = ref;
    dep->nmembers = 0;
    dep->crowd = HEDDLE_CROWD_READ;
}

/* Drops members that have ended. True: there is room, and some to spare. */
bool heddle_dep_compact(struct heddle_slab *s, struct heddle_dep *dep);

/* Does anything in this history still run? */
bool heddle_dep_is_live(struct heddle_slab *s, const struct heddle_dep *dep);
void heddle_dep_init(struct heddle_dep *dep);
void heddle_dep_fini(struct heddle_dep *dep, const struct heddle_allocator *a);

/* The cell that the edge word `node` (not 0) belongs to, and the next edge. */
struct heddle_cell *heddle_edge_owner(struct heddle_pool *p, uint32_t node, uint32_t *next_out);
/* The newest of those that wait for a task will be needed soon. */
static inline void heddle_edge_prefetch(struct heddle_pool *p, const struct heddle_cell *c)
{
    /* Relaxed: a guess. Nothing is read there. */
    const uint32_t node = (uint32_t)heddle_load_rlx(&c->succ);
    const struct heddle_chunk *k;
    const struct heddle_cell *to;

    if (node == 0 || node == HEDDLE_ENDED)
        return;
    k = heddle_pool_chunk(p, (node - 1) >> 5);
    to = &k->cell[((node - 1) >> 5) % HEDDLE_CHUNK];
    HEDDLE_PREFETCH_W(to);
    HEDDLE_PREFETCH_W(&to->op);
    HEDDLE_PREFETCH_W(&k->side[((node - 1) >> 5) % HEDDLE_CHUNK]);
}

/* What the engine keeps beside a cell will be needed soon. */
static inline void heddle_side_prefetch(struct heddle_pool *p, const struct heddle_cell *c)
{
    HEDDLE_PREFETCH_W(&heddle_pool_chunk(p, c->self)->side[c->self % HEDDLE_CHUNK]);
}

/* Puts edges that were taken off a task's list, from `first` to the last one,
 * back; it has not ended. */
void heddle_edges_return(struct heddle_pool *p, struct heddle_cell *c, uint32_t first);

#endif /* HEDDLE_TASK_TASK_H */
