/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DATA_DATA_H
#define HEDDLE_DATA_DATA_H

/*
 * Data module: handles, views, and the access history of each.
 *
 * A handle is a *unit*: either a whole array (a root) or a view, a box of a
 * root. Each unit has its own access history (struct heddle_dep). Two units of
 * one root that share an element know each other (the overlap list), so that an
 * access to one looks at the history of the other. A handle without views has an
 * empty list and costs nothing for this.
 *
 * Threads  `dep` and the overlap lists are guarded by the submission lock of the
 *          context; lists are changed under the registry's `lock` as well, so
 *          that a nested submission, which does not hold the submission lock, can
 *          read them under `lock` alone. base and mark are atomic. All other
 *          fields are constant once the program has the handle.
 * Lifetime a unit has one reference for each of: the user, a view of the unit, a scope
 *          that has the unit in its table, a graph that was recorded with it. Tasks hold
 *          none: when the last reference is dropped, core waits for the tasks of the
 *          history instead.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/spin.h"
#include "heddle/data.h"

/* A task that may have ended: generation << 32 | record. 0: none. */
typedef uint64_t heddle_ref;

enum heddle_crowd {
    HEDDLE_CROWD_READ,    /* members read, each after `writer` */
    HEDDLE_CROWD_COMMUTE, /* members exclude each other, each after `writer` */
    HEDDLE_CROWD_REDUCE   /* members add into private copies, after `writer` */
};

#define HEDDLE_DEP_INLINE 3

/*
 * The accesses of one unit that a later access may have to wait for: the last
 * exclusive writer, and the crowd that came after it. Plain memory: the
 * thread that submits in this dependency domain owns it.
 */
struct heddle_dep {
    heddle_ref writer;
    heddle_ref *member; /* inl until it overflows */
    uint32_t nmembers;
    uint32_t cap : 24;
    uint32_t crowd : 8; /* enum heddle_crowd */
    heddle_ref inl[HEDDLE_DEP_INLINE];
};

#define HEDDLE_DEP_MAX ((1u << 24) - 1) /* members */

/* The elements of a root that a unit covers: per dimension an arithmetic
 * progression of indices. */
struct heddle_box {
    size_t first[HEDDLE_MAX_DIMS];
    size_t count[HEDDLE_MAX_DIMS];
    size_t step[HEDDLE_MAX_DIMS];
};

bool heddle_box_overlap(const struct heddle_box *a, const struct heddle_box *b, unsigned ndim);
/* Every element of `in` is in `out`. */
bool heddle_box_contains(const struct heddle_box *out, const struct heddle_box *in, unsigned ndim);

/* A private copy that tasks reduce into. */
struct heddle_partial {
    struct heddle_partial *next;
    void *mem;
};

/* Fields that only some handles need. */
struct heddle_extra {
    struct heddle_reduction reduction;
    struct heddle_spin lock;     /* guards the rest */
    struct heddle_partial *free; /* partial results that no task uses */
    void *acquired;              /* core: open grants, newest first */
};

/* One task at a time holds it; the rest wait in order (COMMUTE). */
struct heddle_turn {
    struct heddle_spin lock;
    bool is_held;
    void *head, *tail; /* waiting tasks, linked by the engine */
};

struct heddle_registry;
struct heddle_where;

_Static_assert(sizeof(struct heddle_dep) == 48, "fits a line with reg and id");

struct heddle_handle {
    /* read by workers */
    _Atomic(char *) base; /* first element; NULL: not allocated yet */
    _Atomic int mark;     /* heddle_status of the failed writer, or 0 */
    size_t count;
    heddle_handle *root; /* itself when no view */
    struct heddle_handle **overlap;
    _Atomic uint32_t refs;
    _Atomic uint32_t users;      /* of these the program's */
    _Atomic uint32_t is_dropped; /* the program has none, and all it had open is over */
    /* Of a root: units that have copies in other memories (the mem module's). */
    _Atomic uint32_t naway;
    _Atomic(struct heddle_where *) where; /* such copies; NULL: none ever */

    /* submitters only: one line per operand of a submission */
    _Alignas(HEDDLE_CACHE_LINE) struct heddle_dep dep;
    struct heddle_registry *reg; /* NULL: the context is gone */
    /* Length of the overlap list, and the bit HEDDLE_UNIT_LAZY. Relaxed: the
     * locks carry the list. */
    _Atomic uint32_t noverlaps;
    uint32_t id;

    /* seldom used */
    _Alignas(HEDDLE_CACHE_LINE) size_t offset_bytes; /* of base in the root */
    size_t bytes;                                    /* payload: count * element */
    uint64_t shape;                                  /* hash of type and extents: key of models */
    struct heddle_layout layout;                     /* strides always filled in */
    struct heddle_layout dense;                      /* of a private copy */
    struct heddle_box box;                           /* in the root's index space */
    struct heddle_turn turn;
    struct heddle_extra extra;
    char *name;           /* NULL: none */
    uint32_t *overlap_at; /* where the other one's list has this unit */
    uint32_t overlap_cap;
    bool owns_memory;              /* root allocated by the runtime */
    bool has_promise;              /* its bytes are in reg->promised */
    size_t span_bytes;             /* from the first to the last element */
    _Atomic uint64_t pinned;       /* root: nodes whose drivers have pinned it */
    heddle_handle *prev, *next;    /* all units of the registry */
    struct heddle_allocator alloc; /* outlives the registry */
    uint64_t creator;              /* task that made it, 0: none */
    bool is_zombie;                /* without references; ends with reg */
    bool is_ghost;                 /* a view that is gone but for its mark */
    struct heddle_grid *grid;      /* of a root with views */
    uint64_t visit;                /* of a view: grid.c */
    uint32_t level, level_slot;    /* the same */
    uint32_t nghosts;              /* of a root */
};

/* All data of one context. */
struct heddle_registry {
    struct heddle_mutex lock; /* list, overlap lists */
    struct heddle_allocator alloc;
    void *owner;          /* the context */
    heddle_handle *units; /* list */
    uint32_t next_id;
    size_t budget;             /* bytes of runtime-allocated data; 0: none */
    _Atomic size_t used, peak; /* now, and the most so far */
    _Atomic size_t promised;   /* bytes of roots that heddle_unit_promise() found room for */
    _Atomic uint32_t nmarks;   /* units that carry a mark of failure */
    /* Called before a unit that has `where` goes; NULL: nobody sets `where`. */
    void (*forget)(void *owner, heddle_handle *h);
    /* The memory of a root came (or: went), and `used` with it. Lock held; may be
     * NULL, and changes under the lock. */
    void (*changed)(void *owner, const heddle_handle *root, bool is_less);
};

void heddle_registry_init(struct heddle_registry *reg, void *owner,
                          const struct heddle_allocator *a);
/* Orphans what is left: handles live until their last reference goes. */
void heddle_registry_fini(struct heddle_registry *reg);

/* See heddle_handle_create(); no message, the status says it all. */
heddle_status heddle_unit_create(struct heddle_registry *reg, const struct heddle_layout *layout,
                                 void *ptr, heddle_handle **h_out);
/* The caller holds the submission lock (or is the only user). */
heddle_status heddle_unit_view(heddle_handle *h, const size_t *offset, const size_t *extent,
                               const size_t *step, heddle_handle **view_out);
/* The same; a view of that very box that the program has dropped and tasks still use is
 * returned instead, with one more reference. */
heddle_status heddle_unit_share(heddle_handle *h, const size_t *offset, const size_t *extent,
                                const size_t *step, heddle_handle **view_out);
/* Frees a unit without references or history. Submission lock as above.
 * Returns the handle whose reference it held (unref it), or NULL. A view that
 * carries a mark of failure stays as a ghost, for the data outlive it: it goes
 * with its root. */
heddle_handle *heddle_unit_destroy(heddle_handle *h);

/* Is there room in the budget for the root, beside all others that have a promise? Then it
 * has one until its end. True as well for memory that the runtime does not allocate. */
bool heddle_unit_promise(heddle_handle *root);
/* The first element, allocating on first use. NULL: no memory or over budget. */
void *heddle_unit_memory(heddle_handle *h);

static inline void *heddle_unit_base(heddle_handle *h)
{
    /* Acquire: pairs with the publication in heddle_unit_memory(). */
    char *p = heddle_load_acq(&h->base);

    return p != NULL ? p : heddle_unit_memory(h);
}

/* The runtime allocates the memory, and has not been seen to have done so. */
#define HEDDLE_UNIT_LAZY (UINT32_C(1) << 31)

static inline uint32_t heddle_unit_noverlaps(const heddle_handle *h)
{
    return heddle_load_rlx(&h->noverlaps) & ~HEDDLE_UNIT_LAZY;
}

/* No overlaps and memory: nothing to ask about. */
static inline bool heddle_unit_is_plain(const heddle_handle *h)
{
    return heddle_load_rlx(&h->noverlaps) == 0;
}

static inline bool heddle_unit_is_lazy(const heddle_handle *h)
{
    return (heddle_load_rlx(&h->noverlaps) & HEDDLE_UNIT_LAZY) != 0;
}

/* Submission lock held: forgets the bit once there is memory. */
static inline void heddle_unit_settle(heddle_handle *h)
{
    if (heddle_load_acq(&h->base) != NULL)
        heddle_store_rlx(&h->noverlaps, heddle_unit_noverlaps(h));
}

/* The views of a root, by place. Registry lock held. fn is called once for each
 * view that may overlap v, until it fails. */
heddle_status heddle_grid_add(heddle_handle *v);
void heddle_grid_remove(heddle_handle *v);
heddle_status heddle_grid_visit(heddle_handle *v,
                                heddle_status (*fn)(heddle_handle *v, heddle_handle *near));
/* A view of that very box, whose root has v's root; NULL: there is none. */
heddle_handle *heddle_grid_find(const heddle_handle *v);
void heddle_grid_destroy(heddle_handle *root);

/* Marks or clears the failure of a unit, and of the units inside of it. */
void heddle_unit_mark(heddle_handle *h, heddle_status st);
void heddle_unit_unmark(heddle_handle *h);
/* The mark that a reader of this unit would meet, or HEDDLE_OK. */
heddle_status heddle_unit_marked(heddle_handle *h);

/* Takes a partial result to reduce into (initialised), gives it back. */
struct heddle_partial *heddle_partial_take(heddle_handle *h);
void heddle_partial_give(heddle_handle *h, struct heddle_partial *p);
/* Combines all of them into the data and frees them. */
heddle_status heddle_partial_combine(heddle_handle *h);
void heddle_partial_drop(heddle_handle *h);

/* Dense copies of a strided unit, in row-major order of its index space. */
void heddle_unit_pack(const heddle_handle *h, const void *base, void *dense);
void heddle_unit_unpack(const heddle_handle *h, const void *dense, void *base);
uint64_t heddle_unit_hash(const heddle_handle *h, const void *base);

const char *heddle_unit_name(const heddle_handle *h, char *buf, size_t cap);

#endif /* HEDDLE_DATA_DATA_H */
