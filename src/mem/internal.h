/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MEM_INTERNAL_H
#define HEDDLE_MEM_INTERNAL_H

/* What the files of the module share; see mem.h for the whole. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "mem/mem.h"

enum {
    MEM_ALIGN = 256,    /* sizes on devices are rounded up to this */
    XFER_TRIES = 4,     /* a copy that fails is tried so often */
    BYPASS_MAX = 16,    /* younger requests that may overtake one that waits */
    APPEALS = 4,        /* a driver that refuses is asked so often */
    CLEAN_PERCENT = 85, /* from here on copies are written back early */
    CLEAN_LOOKS = 16,   /* so many of the longest unused are looked at */
    PIN_BYTES = 65536,  /* of the host are pinned from this size on */
};

/* One buffer: a unit on a node. */
struct mem_copy {
    struct heddle_where *where;
    uint32_t id; /* of its unit */
    unsigned node;
    void *ptr;      /* NULL for a home: ask heddle_unit_base() */
    uint64_t bytes; /* counted against the budget; 0 for a home */
    unsigned pins;  /* requests and transfers that use it */
    struct mem_xfer *arriving;
    struct mem_xfer *leaving;     /* transfers that read it, by next_out */
    struct mem_copy *prev, *next; /* of the node, least recently used first */
    double next_order;            /* heddle_copy_next_use(), as of use_epoch == */
    uint64_t next_epoch;          /* this */
    bool is_home;                 /* the unit's memory on the host: never freed here */
    bool is_doomed;               /* goes when the last pin does */
};

struct heddle_where {
    struct heddle_where_head head; /* first */
    heddle_handle *unit;
    uint64_t version;                           /* of the data: a transfer of an old one is void */
    struct heddle_where *prev, *next;           /* all of them */
    struct heddle_where *away_prev, *away_next; /* not valid on the host */
    bool is_listed_away;
    bool is_zero; /* never written and without memory: all zeros */
    bool wont_use;
    uint64_t wished; /* nodes for which a prefetch waits for the mover */
    struct heddle_where *wish_next;
    unsigned nwriters; /* requests that write it and have not ended */
    unsigned nowners;  /* the program writes it (an acquire) */
    bool is_going;     /* its release has run: no request waits for its data */
    bool is_frozen;    /* its handle is being freed: nothing moves any more */
    uint64_t pinned;   /* nodes where the user wants it to stay */
    struct heddle_layout compact;
    struct heddle_runs runs;
    /* Tasks that will use it, in order of submission. */
    struct mem_use {
        uint64_t task;
        const void *tag;
        double order;   /* NAN: not asked yet */
        uint64_t nodes; /* where it will be */
        bool writes;
    } * use;
    uint32_t use_head, use_n, use_cap;
    uint64_t use_epoch;    /* grows when the list changes */
    struct mem_copy *at[]; /* per node */
};

/* A request waits for a transfer. */
struct mem_wait {
    struct heddle_mem_req *req;
    struct mem_wait *next;
};

/* One transfer of a unit between two nodes. */
struct mem_xfer {
    struct heddle_op op; /* first */
    struct heddle_mem *mem;
    struct heddle_where *where;
    unsigned from, to;
    enum heddle_mem_reason why;
    uint64_t task; /* the task whose request began it */
    uint64_t asked_ns, begin_ns;
    uint64_t version;
    struct mem_copy *src, *dst; /* src NULL: zeros */
    struct mem_wait *waits;
    struct mem_xfer *next;     /* to be started, or free */
    struct mem_xfer *next_out; /* of src */
    unsigned tries;
    bool is_staged; /* through memory of ours on the host, in two legs */
    unsigned leg;
};

/* req->state */
enum { REQ_QUEUED = 1, REQ_ADMITTED, REQ_READY, REQ_FAILED };

struct mem_node {
    enum heddle_mem_kind kind;
    struct heddle_dev *dev;
    const struct heddle_driver *drv;
    unsigned copy_stream;
    uint64_t budget, used, peak;
    uint64_t promised; /* the budget before the driver turned out to have less */
    uint64_t leaving;  /* bytes of copies that are being evicted */
    unsigned admitted; /* requests that hold memory here */
    unsigned nevicting;
    unsigned nforced;              /* of the admitted: over the budget if need be */
    unsigned nmoving;              /* transfers from or to here: their copies are pinned */
    struct mem_copy *first, *last; /* those that count, LRU */
    struct heddle_mem_req *q_first, *q_last; /* wait for room, oldest first */
    bool is_dirty;                           /* something changed: look at the queue */
    bool is_lost;
    bool is_desperate; /* the pins of the user count no more */
    struct heddle_mem_stats stats;
};

struct heddle_mem {
    struct heddle_mutex lock;
    struct heddle_allocator alloc;
    struct heddle_registry *reg;
    struct heddle_mem_host host;
    bool is_fake;
    enum heddle_mem_policy policy;
    int disk; /* its node, or -1 */
    struct heddle_where *units;
    struct heddle_where *away;
    struct heddle_where *wishes;           /* with something in `wished` */
    struct mem_xfer *todo, *todo_last;     /* to be started */
    struct mem_xfer *staged, *staged_last; /* wait for the staging buffer */
    bool is_staging;
    void *stage;
    size_t stage_bytes;
    struct heddle_mem_req *wake;             /* all transfers there: look again */
    struct heddle_mem_req *done, *done_last; /* ready() is to be called */
    struct mem_copy *garbage;
    uint64_t whom;    /* the task whose request is served now; 0: none */
    unsigned nhoming; /* threads that wait for everything */
    size_t inflight;  /* transfers begun or to begin */
    size_t nwaiting;  /* requests queued or waiting for data */
    /* free lists */
    struct mem_copy *free_copies;
    struct mem_xfer *free_xfers;
    struct mem_wait *free_waits;
    unsigned nnodes;
    struct mem_node node[];
};

/* Lock order: the registry's first, for the overlap lists. */
static inline void mem_lock(struct heddle_mem *m)
{
    heddle_mutex_lock(&m->reg->lock);
    heddle_mutex_lock(&m->lock);
}

static inline void mem_unlock(struct heddle_mem *m)
{
    heddle_mutex_unlock(&m->lock);
    heddle_mutex_unlock(&m->reg->lock);
}

static inline uint64_t where_valid(const struct heddle_where *w)
{
    return heddle_load_rlx(&w->head.valid); /* written under the lock */
}

static inline bool where_is_at(const struct heddle_where *w, unsigned node)
{
    return (where_valid(w) >> node & 1) != 0;
}

/* where.c. All with the lock held. */
struct heddle_where *heddle_where_get(struct heddle_mem *m, heddle_handle *unit);
void heddle_where_used(heddle_handle *unit, uint64_t task);
void heddle_where_set(struct heddle_mem *m, struct heddle_where *w, uint64_t valid);
void heddle_where_free(struct heddle_mem *m, struct heddle_where *w);
/* When a copy is used next, in the order of host.order(); INFINITY: not again, or
 * not before a task elsewhere makes it void. */
double heddle_copy_next_use(struct heddle_mem *m, struct mem_copy *c);
bool heddle_where_has_write(const struct heddle_where *w);

/* Does a task write it, or a unit that overlaps? Then its copies must not move:
 * what they hold is about to be void, and where they would go is in use. */
bool heddle_where_is_written(const struct heddle_where *w);
/* Does the program, or a task? Room can be waited for, a hint cannot. */
bool heddle_where_is_taken(const struct heddle_where *w);

/* copy.c */
uint64_t heddle_copy_size(const struct heddle_mem *m, const heddle_handle *unit, unsigned node);
/* A buffer with memory; NULL and *st: none. */
struct mem_copy *heddle_copy_alloc(struct heddle_mem *m, struct heddle_where *w, unsigned node,
                                   heddle_status *st);
void heddle_copy_pin(struct heddle_mem *m, struct mem_copy *c);
void heddle_copy_unpin(struct heddle_mem *m, struct mem_copy *c);
/* Frees it now or with its last pin. */
void heddle_copy_drop(struct heddle_mem *m, struct mem_copy *c);
/* Gives memory of a node back, or of all (-1). Only the mover for a device. */
bool heddle_mem_collect(struct heddle_mem *m, int node);
/* `unit` is the number of the one whose copy it is; 0: a private buffer. */
void heddle_mem_account(struct heddle_mem *m, unsigned node, int64_t delta, uint32_t unit);

/* xfer.c */
/* A transfer to node `to` that is under way or begins. NULL: *st is HEDDLE_OK when
 * none is needed, else there is no source or no memory. */
struct mem_xfer *heddle_xfer_get(struct heddle_mem *m, struct heddle_where *w, unsigned to,
                                 enum heddle_mem_reason why, heddle_status *st);
heddle_status heddle_xfer_wait(struct heddle_mem *m, struct mem_xfer *x,
                               struct heddle_mem_req *req);
/* Mover, without the lock. */
void heddle_xfer_start(struct mem_xfer *x);

/* room.c */
bool heddle_room_admit(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status *st);
void heddle_room_queue(struct heddle_mem *m, struct heddle_mem_req *req);
void heddle_room_serve(struct heddle_mem *m, unsigned node);
void heddle_room_clean(struct heddle_mem *m, unsigned node);

/* mem.c */
/* Starts to bring the user's data home. True: they are on their way. */
bool heddle_mem_home(struct heddle_mem *m, struct heddle_where *w);

/* request.c */
void heddle_req_writes(struct heddle_mem_req *req, bool is_writing);
/* Looks at all operands; then it waits, is REQ_READY or has failed. */
void heddle_req_advance(struct heddle_mem *m, struct heddle_mem_req *req);
/* The same; ready() will be called when it is. */
static inline void mem_tell(struct heddle_mem *m, struct heddle_mem_req *req)
{
    req->next = NULL;
    if (m->done == NULL)
        m->done = req;
    else
        m->done_last->next = req;
    m->done_last = req;
}
static inline void req_resume(struct heddle_mem *m, struct heddle_mem_req *req)
{
    const uint64_t whom = m->whom;

    m->whom = req->task;
    heddle_req_advance(m, req);
    m->whom = whom;
    if (req->state == REQ_READY)
        mem_tell(m, req);
}
void heddle_req_fail(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status st,
                     heddle_handle *culprit);

#endif /* HEDDLE_MEM_INTERNAL_H */
