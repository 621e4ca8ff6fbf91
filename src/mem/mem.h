/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MEM_MEM_H
#define HEDDLE_MEM_MEM_H

/*
 * Where data are: copies of units in several memories, and room for these copies.
 *
 * A node is a memory: 0 is the host's, then one per device, then perhaps a disk.
 * A unit (handle or view) that was ever used away from the host has a heddle_where:
 * which nodes hold a valid copy, and the buffers. A *request* prepares a node for a
 * task:
 *
 *   heddle_mem_begin   asks for room for all operands and buffers of the task on the
 *                      node, in one step, then for the data; the mover calls
 *                      req->ready when everything is there, or cannot be
 *   heddle_mem_end     the task has run: the units it wrote are valid on the node and
 *                      nowhere else
 *
 * Coherency. `valid` has a bit per node. Dependencies keep writers and readers apart,
 * so a request only waits for transfers. Units that overlap are brought to the host:
 *   (1) when a unit is not valid on the host (it is *away*), no unit that overlaps it
 *       is away or has a valid copy on a device
 *   (2) a request for U first brings home every overlapping unit that is away
 *
 * Room. A node has a budget. A request is *admitted* when all buffers that it lacks
 * were allocated; until then it holds no memory, and afterwards it never asks for room
 * again. docs/design/memory.md proves that no request waits for ever.
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
    enum heddle_mode mode; /* R, W, RW or COMMUTE; scratch and reductions are private */
    bool is_promised;      /* the task that writes the unit now does so on this node, and
                         has ended when the task of this request runs */
    struct mem_copy *copy; /* on the node, once admitted */
};

struct heddle_mem_req {
    /* set by the caller */
    unsigned node;
    unsigned nops;
    unsigned nprivate;        /* private buffers: scratch, partial results */
    bool is_forced;           /* exceeds the budget rather than wait: see memory.md */
    bool stays;               /* next uses are not known: its end sends no data home */
    bool keeps;               /* units that it updates must have another copy */
    bool is_writing;          /* set by the module: counted in nwriters */
    bool is_handed_out;       /* set by the module: counted in nowners */
    bool is_last;             /* the unit ends: waits for every transfer of the unit, and no
                       transfer begins afterwards */
    struct heddle_mem_op *op; /* at least nops; units may repeat */
    uint64_t user;            /* the end of the request ends the uses of this task: see
                      heddle_mem_will_use(); 0: of none */
    uint64_t task;            /* for the log: the task of the request; 0: none */
    bool is_watched;          /* host.admitted() is called for this request */
    /* The mover calls this once, without a lock: HEDDLE_OK, or why the request failed;
     * a request that failed holds nothing and needs no end. */
    void (*ready)(struct heddle_mem_req *req, heddle_status st);

    heddle_handle *culprit; /* result: the unit without room or valid copy, or NULL */

    /* private to the module */
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
    uint64_t task; /* whose request began the transfer; 0: no task */
    enum heddle_mem_reason why;
    uint64_t asked_ns;          /* when the module asked for the transfer */
    uint64_t begin_ns;          /* begin of its first leg; 0: the driver cannot tell */
    const struct heddle_op *op; /* of its last leg (a transfer may go through the host) */
};

/* Functions of the engine that this module calls, with `lock` held unless the comment
 * says otherwise. They must not call back. */
struct heddle_mem_host {
    void *user;
    /* ns until a copy of that size, begun now, would arrive; INFINITY: there is no
     * link. */
    double (*link_ns)(void *user, unsigned from, unsigned to, uint64_t bytes);
    /* A transfer ended; without the lock. */
    void (*moved)(void *user, const struct heddle_mem_move *move, heddle_status st);
    /* The clock of the drivers. */
    uint64_t (*now_ns)(void *user);
    /* The bytes in use on a node changed by `delta`, for a copy of unit number `unit`
     * (0: a private buffer) and a request of `task` (0: of no task). */
    void (*used)(void *user, unsigned node, int64_t delta, uint64_t used, uint32_t unit,
                 uint64_t task);
    /* A watched request has room now and still waits for data. */
    void (*admitted)(void *user, struct heddle_mem_req *req);
    /* The only copy of a unit was on a device that was lost: the unit is poisoned. */
    void (*lost)(void *user, heddle_handle *unit, unsigned node);
    /* Tasks run about in the increasing order of the returned number; `tag` as in
     * heddle_mem_will_use(). NAN: not known. *nodes_out: where the task may run, a bit
     * per node. */
    double (*order)(void *user, const void *tag, uint64_t *nodes_out);
    /* The mover has work: wake it up. */
    void (*kick)(void *user);
    /* Injected faults: HEDDLE_OK, or the status with which the operation shall fail. */
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
    bool is_fake;    /* no bytes are copied (virtual time): the host has no memory either */
    unsigned policy; /* enum heddle_mem_policy */
};

/* Which copy to evict. */
enum heddle_mem_policy {
    HEDDLE_MEM_NEXT_USE, /* by next use in the submitted window */
    HEDDLE_MEM_LRU       /* for comparison */
};

HEDDLE_MUST_USE heddle_status heddle_mem_create(const struct heddle_mem_opts *o,
                                                struct heddle_mem **mem_out);
/* No transfer is in flight. Frees all copies; the units live on. */
void heddle_mem_destroy(struct heddle_mem *m);

/* Does a task on the host need a request for this unit? False: no unit of its array has
 * a heddle_where, so all are at home and nowhere else. Takes no lock. */
static inline bool heddle_mem_concerns(const heddle_handle *unit)
{
    /* Relaxed: dependencies order this task after the task that changed it. */
    return heddle_load_rlx(&unit->root->naway) != 0;
}

/* True: the request is admitted and its data are there; ready() will not be called. */
bool heddle_mem_begin(struct heddle_mem *m, struct heddle_mem_req *req);
/* The task has run (HEDDLE_OK) or has not; ends the request. */
void heddle_mem_end(struct heddle_mem *m, struct heddle_mem_req *req, heddle_status st);

/* The task of an admitted request has children now: requests of the children may move
 * the units that the task writes. */
void heddle_mem_lend(struct heddle_mem *m, struct heddle_mem_req *req);

/* The program has the units (an acquire) until the request ends: no hint moves them. */
void heddle_mem_hand_out(struct heddle_mem *m, struct heddle_mem_req *req);
/* A task that still runs on the host has written the unit: from now on the unit is valid
 * on the host and nowhere else. */
void heddle_mem_written(struct heddle_mem *m, heddle_handle *unit);

/* The address of operand i of an admitted request, on its node. */
void *heddle_mem_ptr(const struct heddle_mem_req *req, unsigned i);
/* The layout of copies on devices: the dimensions in the host's order, without gaps. */
const struct heddle_layout *heddle_mem_layout(const struct heddle_mem_req *req, unsigned i);

/* For the mover. Does everything that can be done now; true: it did something. */
bool heddle_mem_pump(struct heddle_mem *m);
/* No transfer is in flight and no request waits. */
bool heddle_mem_is_idle(struct heddle_mem *m);

/* A task was submitted that will use the unit. Called in the order of submission. */
void heddle_mem_will_use(struct heddle_mem *m, heddle_handle *unit, uint64_t task, const void *tag,
                         enum heddle_mode mode);
/* The task has ended, or will not run. */
void heddle_mem_used(struct heddle_mem *m, heddle_handle *unit, uint64_t task);

/* A unit is freed, and its copies with it. No request uses the unit. */
void heddle_mem_forget(struct heddle_mem *m, heddle_handle *unit);
/* True: no transfer uses the unit, and none will, so that it may be forgotten. */
bool heddle_mem_may_forget(struct heddle_mem *m, heddle_handle *unit);

/* The memory of a root is freed: drivers unpin it. The caller holds no lock. */
void heddle_mem_unpin_host(struct heddle_mem *m, heddle_handle *root);

/* Starts to bring home all data whose memory is the user's; returns how many units are
 * not at home yet, those under way included. */
size_t heddle_mem_go_home(struct heddle_mem *m);

/* The user may write the memory of his data now: copies on other nodes become invalid,
 * except copies that he has pinned there. */
void heddle_mem_give_home(struct heddle_mem *m);

/* A thread waits for all tasks (or: not any more), so that no new uses are expected: in
 * this state the user's data go home as soon as their last use is over. Works only where
 * the engine reports uses with heddle_mem_will_use(). */
void heddle_mem_set_homing(struct heddle_mem *m, bool is_homing);

/* Hints, for the unit as it is now. */
void heddle_mem_prefetch(struct heddle_mem *m, heddle_handle *unit, unsigned node);
void heddle_mem_wont_use(struct heddle_mem *m, heddle_handle *unit);
void heddle_mem_evict(struct heddle_mem *m, heddle_handle *unit);
void heddle_mem_pin(struct heddle_mem *m, heddle_handle *unit, unsigned node, bool is_pinned);

/* For the mover. The device of a node is lost: requests for the node end with
 * HEDDLE_EDEV. */
void heddle_mem_lose(struct heddle_mem *m, unsigned node);

/* Nodes that hold a valid copy, a bit per node. Takes no lock: the answer may be old. */
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
