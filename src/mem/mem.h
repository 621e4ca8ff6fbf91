/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MEM_MEM_H
#define HEDDLE_MEM_MEM_H

/*
 * Where data are: copies of units in several memories, and room for them.
 *
 * A node is a memory: 0 is the host's, then one per device, then perhaps a disk.
 * A unit (handle or view) that was ever used away from the host has a heddle_where:
 * which nodes hold a valid copy, and the buffers. A task is brought to a node by a
 * *request*:
 *
 *   heddle_mem_begin   asks for room for everything the task needs there, in one
 *                      step, then for the data; req->ready is called when all is
 *                      there (or cannot be)
 *   heddle_mem_end     the task has run: what it wrote is valid there and nowhere
 *                      else
 *
 * Coherency. `valid` has a bit per node. Writers exclude readers by dependencies,
 * so a request only waits for transfers. Units that overlap meet on the host:
 *   (1) when a unit is valid nowhere on the host (it is *away*), no unit that
 *       overlaps it is away or has a valid copy on a device
 *   (2) a request for U first brings home every overlapping unit that is away
 *
 * Room. A node has a budget. A request is *admitted* when all buffers it lacks were
 * allocated; until then it holds nothing, afterwards it never asks for room again.
 * docs/design/memory.md proves that nobody waits for ever.
 *
 * Threads   `lock` guards everything. heddle_mem_begin and end may be called by
 *           any thread. Only one thread, the *mover*, calls heddle_mem_pump(): it
 *           starts transfers, allocates, evicts and calls ready().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "data/data.h"
#include "drive/drive.h"

struct heddle_mem;
struct mem_xfer;

enum { HEDDLE_MEM_NODES = 64, HEDDLE_MEM_OPERANDS = 16 };

#define HEDDLE_MEM_NO_LIMIT UINT64_MAX

enum heddle_mem_kind { HEDDLE_MEM_HOST, HEDDLE_MEM_DEVICE, HEDDLE_MEM_DISK };

enum heddle_mem_reason {
    HEDDLE_MEM_FETCH,
    HEDDLE_MEM_PREFETCH,
    HEDDLE_MEM_WRITEBACK, /* while the copy stays */
    HEDDLE_MEM_EVICT,
    HEDDLE_MEM_NREASONS
};

/* One operand of a request. */
struct heddle_mem_op {
    heddle_handle *unit;
    enum heddle_mode mode; /* R, W, RW or COMMUTE; private ones are not here */
    bool is_promised;      /* who writes it now does so there, and has ended when this
                         one runs */
    struct mem_copy *copy; /* on the node, once admitted */
};

struct heddle_mem_req {
    /* the caller's */
    unsigned node;
    unsigned nops;
    unsigned nprivate;        /* buffers of its own: scratch, partial results */
    bool is_forced;           /* over the budget rather than wait: see memory.md */
    bool stays;               /* its next uses are not known: nothing goes home with it */
    bool keeps;               /* another copy of what it updates must exist */
    bool is_writing;          /* the module's: counted in nwriters */
    bool is_handed_out;       /* and in nowners */
    bool is_last;             /* the unit goes: waits for every transfer of it, and none
                       begins afterwards */
    struct heddle_mem_op *op; /* at least nops; units may repeat */
    uint64_t user;            /* its end is that of these uses: see heddle_mem_will_use();
                      0: of none */
    uint64_t task;            /* for the log: whose request it is; 0: nobody's */
    bool is_watched;          /* host.admitted() is called for it */
    /* Called once, by the mover, without a lock: HEDDLE_OK, or why not; then the
     * request holds nothing and needs no end. */
    void (*ready)(struct heddle_mem_req *req, heddle_status st);

    heddle_handle *culprit; /* a result: the unit that could not be had, or NULL */

    /* the module's */
    struct heddle_mem_req *next, *prev;
    unsigned state;
    unsigned nwaits;
    unsigned bypassed;
    unsigned appeals;
    heddle_status status;

    /* by operand; private_ptr: results */
    struct heddle_mem_op local[HEDDLE_MEM_OPERANDS];
    size_t private_bytes[HEDDLE_MEM_OPERANDS + 1];
    void *private_ptr[HEDDLE_MEM_OPERANDS + 1];
};

/* A transfer that has ended, for host.moved(). Times in ns of host.now_ns(). */
struct heddle_mem_move {
    const heddle_handle *unit;
    unsigned from, to;
    uint64_t bytes;
    uint64_t task; /* for whose request it was begun; 0: for nobody's */
    enum heddle_mem_reason why;
    uint64_t asked_ns;          /* when it was begun */
    uint64_t begin_ns;          /* of its first leg; 0: the driver cannot tell */
    const struct heddle_op *op; /* of its last leg */
};

/* What the engine tells and is asked. Called with `lock` held unless it says
 * otherwise; must not call back. */
struct heddle_mem_host {
    void *user;
    /* ns until a copy of that size, given now, would arrive; INFINITY: there is no
     * link. */
    double (*link_ns)(void *user, unsigned from, unsigned to, uint64_t bytes);
    /* A transfer ended; without the lock. */
    void (*moved)(void *user, const struct heddle_mem_move *move, heddle_status st);
    /* The clock of the drivers. */
    uint64_t (*now_ns)(void *user);
    /* The bytes in use of a node changed, by those of a copy of unit number `unit`
     * (0: a private buffer), for a request of `task` (0: for nobody's). */
    void (*used)(void *user, unsigned node, int64_t delta, uint64_t used, uint32_t unit,
                 uint64_t task);
    /* A watched request has room now; what it still waits for is data. */
    void (*admitted)(void *user, struct heddle_mem_req *req);
    /* The only copy of a unit went with a device. It is marked. */
    void (*lost)(void *user, heddle_handle *unit, unsigned node);
    /* Tasks run about in the growing order of this; `tag` as in
     * heddle_mem_will_use(). NAN: not known. *nodes_out: where, a bit per node. */
    double (*order)(void *user, const void *tag, uint64_t *nodes_out);
    /* There is something to do for the mover. */
    void (*kick)(void *user);
    /* Injected failures: HEDDLE_OK, or what shall happen instead. */
    heddle_status (*fault_copy)(void *user, unsigned from, unsigned to);
    heddle_status (*fault_alloc)(void *user, unsigned node);
};

struct heddle_mem_node_opts {
    enum heddle_mem_kind kind;
    struct heddle_dev *dev; /* NULL: the host */
    uint64_t budget;        /* HEDDLE_MEM_NO_LIMIT: none */
};

struct heddle_mem_opts {
    const struct heddle_allocator *alloc;
    struct heddle_registry *reg;
    struct heddle_mem_host host;
    const struct heddle_mem_node_opts *node; /* node 0 is the host */
    unsigned nnodes;
    bool is_fake;    /* nothing is really copied: the host has no memory either */
    unsigned policy; /* enum heddle_mem_policy */
};

/* Whom to evict. */
enum heddle_mem_policy {
    HEDDLE_MEM_NEXT_USE, /* by next use in the submitted window */
    HEDDLE_MEM_LRU       /* for comparison */
};

HEDDLE_MUST_USE heddle_status heddle_mem_create(const struct heddle_mem_opts *o,
                                                struct heddle_mem **mem_out);
/* Nothing is in flight. Frees all copies; units keep living. */
void heddle_mem_destroy(struct heddle_mem *m);

/* Does a task on the host need a request at all? False: every operand is at home
 * and nowhere else. No lock. */
static inline bool heddle_mem_concerns(const heddle_handle *unit)
{
    /* Relaxed: dependencies order this task after whoever changed it. */
    return heddle_load_rlx(&unit->root->naway) != 0;
}

/* True: admitted and supplied at once, ready() will not be called. */
bool heddle_mem_begin(struct heddle_mem *m, struct heddle_mem_req *req);
/* The task has run (HEDDLE_OK) or not; drops the request. */
void heddle_mem_end(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status st);

/* What an admitted request writes is lent to children now: they move it. */
void heddle_mem_lend(struct heddle_mem *m, struct heddle_mem_req *req);

/* The program has it (an acquire) until the request ends: no hint moves it. */
void heddle_mem_hand_out(struct heddle_mem *m, struct heddle_mem_req *req);
/* A task on the host has written it so far: it is valid there and nowhere else,
 * also before the end. */
void heddle_mem_written(struct heddle_mem *m, heddle_handle *unit);

/* Where the operand i of an admitted request is. */
void *heddle_mem_ptr(const struct heddle_mem_req *req, unsigned i);
/* The layout of copies on devices: the order of the host's, without gaps. */
const struct heddle_layout *heddle_mem_layout(const struct heddle_mem_req *req, unsigned i);

/* Mover. Does what can be done now; true: did something. */
bool heddle_mem_pump(struct heddle_mem *m);
/* Nothing is in flight or waiting. */
bool heddle_mem_is_idle(struct heddle_mem *m);

/* A task was submitted that will use the unit. Submission order. */
void heddle_mem_will_use(struct heddle_mem *m, heddle_handle *unit, uint64_t task, const void *tag,
                         enum heddle_mode mode);
/* The task will not come, or has ended. */
void heddle_mem_used(struct heddle_mem *m, heddle_handle *unit, uint64_t task);

/* A unit goes: its copies too. Nothing uses it. */
void heddle_mem_forget(struct heddle_mem *m, heddle_handle *unit);
/* May it be forgotten: no transfer uses it, and none will? */
bool heddle_mem_may_forget(struct heddle_mem *m, heddle_handle *unit);

/* The memory of a root goes: no driver keeps it pinned. No lock is held. */
void heddle_mem_unpin_host(struct heddle_mem *m, heddle_handle *root);

/* Starts to bring home all data whose memory is the user's; the number that is not
 * there yet (also counting those under way). */
size_t heddle_mem_go_home(struct heddle_mem *m);

/* The user may write his data now: copies of them elsewhere are void, but for those
 * that he has pinned there. */
void heddle_mem_give_home(struct heddle_mem *m);

/* Somebody waits for everything (or: not any more), so that no new uses are to be
 * expected: meanwhile such data go home as soon as their last use is over. Only
 * when uses are told with heddle_mem_will_use(). */
void heddle_mem_set_homing(struct heddle_mem *m, bool is_homing);

/* Hints, for the unit as it is now. */
void heddle_mem_prefetch(struct heddle_mem *m, heddle_handle *unit, unsigned node);
void heddle_mem_wont_use(struct heddle_mem *m, heddle_handle *unit);
void heddle_mem_evict(struct heddle_mem *m, heddle_handle *unit);
void heddle_mem_pin(struct heddle_mem *m, heddle_handle *unit, unsigned node, bool is_pinned);

/* Mover. The device of a node is gone. Requests for it end with HEDDLE_EDEV. */
void heddle_mem_lose(struct heddle_mem *m, unsigned node);

/* Nodes that hold a valid copy. No lock: about now. */
static inline uint64_t heddle_mem_valid(const heddle_handle *unit);

/* Bytes that a copy takes on a device, for checks before submission. */
uint64_t heddle_mem_copy_bytes(const heddle_handle *unit);

struct heddle_mem_stats {
    uint64_t used, peak, budget;
    uint64_t bytes_in[HEDDLE_MEM_NREASONS]; /* arrived, by reason */
    uint64_t bytes_out;
    uint64_t copies_in, copies_out, evictions;
};
void heddle_mem_get_stats(struct heddle_mem *m, unsigned node, struct heddle_mem_stats *out);

/* First member of struct heddle_where: what is read without the lock. */
struct heddle_where_head {
    _Atomic uint64_t valid;
};

static inline uint64_t heddle_mem_valid(const heddle_handle *unit)
{
    const struct heddle_where_head *w = (const void *)heddle_load_acq(&unit->where);

    return w == NULL ? 1 : heddle_load_acq(&w->valid);
}

#endif /* HEDDLE_MEM_MEM_H */
