/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLANNED_PLANNED_H
#define HEDDLE_PLANNED_PLANNED_H

/*
 * Private to planned: from a recorded graph to a plan, and from the plan to a graph that
 * runs in one arena.
 *
 *   read.c    the recorded graph -> a struct heddle_plan_graph, and what each task does to
 *             temporary data (touches)
 *   cover.c   which parts of a temporary have been written
 *   solve.c   options -> machine -> plan, or the plan of a file
 *   record.c  the steps of the plan -> tasks on handles in the arena
 *   space.c   who used which addresses last: the order that addresses ask for
 *   store.c   the host's memory and the file that values are moved to, and copies
 *   watch.c   times and memory of the tasks, as measured
 *   planned.c the public functions
 *
 * Words      temporary: a handle of the program, a number here. Value: a version of one
 *            temporary, or of all that one task writes, as the planner sees it; each of its
 *            temporaries is a part. Block: a value at an address, from its first use to its
 *            last; values that are updated in place share a block.
 * Invariant  operation i of the planner is the recorded task i.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/scratch.h"
#include "base/why.h"
#include "core/graph/inside.h"
#include "data/data.h"
#include "heddle/planned.h"

enum { PLANNED_ALIGN = 64 };

#define PLANNED_NONE UINT32_MAX

/* The sentence of a failure, in the options of heddle_planned_create(). */
#define PLANNED_FAIL(o, st, ...) heddle_why((o)->why, (o)->why_bytes, st, __VA_ARGS__)

static inline uint64_t planned_round(uint64_t bytes)
{
    return (bytes + PLANNED_ALIGN - 1) / PLANNED_ALIGN * PLANNED_ALIGN;
}

/* What a task does to a temporary. */
struct planned_touch {
    uint32_t temp;
    uint32_t from; /* the value that it reads or updates; NONE: none */
    uint32_t to;   /* the value that it makes; NONE: it only reads */
    uint64_t at;   /* of `to`: the offset of this part */
    bool is_whole; /* it writes the whole temporary and does not read it */
};

/* The recorded graph, read. Everything lies in `mem`. */
struct planned_source {
    const heddle_graph *g;
    const struct heddle_planned_opts *o;
    struct heddle_scratch *mem;
    uint32_t ntasks, ntemps;
    heddle_handle **temp;
    struct planned_touch *touch; /* by task */
    uint32_t *first_touch;       /* [ntasks + 1] */
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    uint32_t nvalues, ninputs;
};

/* Reads the graph: `g`, `o` and `mem` are set. HEDDLE_EINVAL, HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_planned_read(struct planned_source *s);

/* cover.c: the parts of a temporary that have been written since its version began. */
struct planned_cover {
    bool is_full;
    bool is_tangled; /* boxes overlap: their counts do not add up */
    struct planned_box *box;
};
void heddle_planned_cover_clear(struct planned_cover *c);
/* HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_planned_cover_add(struct planned_cover *c,
                                                       const heddle_handle *h,
                                                       struct heddle_scratch *mem);
bool heddle_planned_cover_has(const struct planned_cover *c, const heddle_handle *h);

/* solve.c: the planner's graph, the machine and the plan, all of them p's. */
HEDDLE_MUST_USE heddle_status heddle_planned_solve(struct heddle_planned *p,
                                                   const struct planned_source *s);

/* --- space.c ------------------------------------------------------------------ */

/* Numbers, growing. Zeroed: empty. */
struct planned_list {
    uint32_t *at;
    size_t n, cap;
};
HEDDLE_MUST_USE heddle_status heddle_planned_list_add(struct planned_list *l,
                                                      const struct heddle_allocator *a, uint32_t x);
void heddle_planned_list_fini(struct planned_list *l, const struct heddle_allocator *a);

/* The block that used each address last: stretches by address, apart from each other. */
struct planned_stretch {
    uint64_t low, high;
    uint32_t block;
};
struct planned_space {
    struct planned_stretch *at;
    size_t n, cap;
};
/* Block `block` takes [low, high); the blocks that it replaces there are added to `before`.
 * HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_planned_space_take(struct planned_space *s,
                                                        const struct heddle_allocator *a,
                                                        uint64_t low, uint64_t high, uint32_t block,
                                                        struct planned_list *before);
void heddle_planned_space_fini(struct planned_space *s, const struct heddle_allocator *a);

/* --- what runs ------------------------------------------------------------------ */

/* A block, for the watcher. */
struct planned_memory {
    uint64_t at, bytes;
    uint32_t nnodes; /* that use it */
    _Atomic uint32_t left;
    _Atomic uint32_t is_live;
};

/* A task of the graph that runs. */
struct planned_node {
    uint32_t task;        /* the recorded one; NONE: a copy */
    uint32_t first_block; /* in heddle_planned.used */
    uint64_t start_ns;
};

struct heddle_planned {
    struct heddle_allocator alloc;
    struct heddle_scratch mem;
    _Atomic uint32_t refs; /* the user's, and one per launch */
    heddle_ctx *ctx;
    heddle_graph *graph;
    char *arena, *host;
    int fd;                      /* the file; -1: none */
    char mark;                   /* what stands for data in the file */
    struct heddle_mutex lock;    /* of those who begin a launch: nflying grows under it */
    _Atomic uint32_t nflying;    /* launches */
    _Atomic uint32_t is_spoiled; /* one has failed: data in the arena are poisoned */
    uint64_t store_bytes[3];     /* by level: 1 host, 2 disk */
    struct heddle_plan_graph *pgraph;
    struct heddle_plan_machine machine;
    struct heddle_plan *plan;
    uint64_t as_is_bytes, floor_bytes;
    uint32_t ntasks;
    uint32_t nnodes, ncopies, nmoved;
    struct planned_node *node; /* [nnodes + 1] */
    struct planned_list used;  /* blocks of nodes */
    uint32_t *run;             /* nodes of the recorded tasks, by task */
    uint32_t *first_run;       /* [ntasks + 1] in run */
    struct planned_memory *block;
    uint32_t nblocks;
    heddle_handle **handle; /* to be dropped */
    size_t nhandles;
    bool is_watched;
    _Atomic uint64_t *least_ns; /* [ntasks] */
    _Atomic uint64_t live, real_peak, real_arena;
};

/* store.c */

/* The argument of a copy. */
struct planned_copy {
    size_t bytes;
    uint64_t at; /* in the file */
    int fd;
};
extern const heddle_kernel heddle_planned_copy, heddle_planned_write, heddle_planned_fetch;
/* at[i]: where step i, which moves a value to the store, puts it. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_planned_store_place(struct heddle_planned *p, unsigned level,
                                                         struct heddle_scratch *mem, uint64_t *at);
/* The memory and the file. HEDDLE_ENOMEM, HEDDLE_EIO. */
HEDDLE_MUST_USE heddle_status heddle_planned_store_open(struct heddle_planned *p,
                                                        const struct heddle_planned_opts *o);
void heddle_planned_store_close(struct heddle_planned *p);

/* record.c: p->graph, and all behind it. HEDDLE_ENOMEM, or what a handle is refused with. */
HEDDLE_MUST_USE heddle_status heddle_planned_record(struct heddle_planned *p,
                                                    const struct planned_source *s);

/* watch.c */
void heddle_planned_watch_begin(void *user, uint32_t node);
void heddle_planned_watch_end(void *user, uint32_t node, heddle_status st);

#endif /* HEDDLE_PLANNED_PLANNED_H */
