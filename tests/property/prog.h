/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_PROPERTY_PROG_H
#define HEDDLE_TESTS_PROPERTY_PROG_H

/*
 * A random program: a list of operations on units (handles), tasks, events,
 * groups and graphs. It is data, made from a seed:
 *
 *   gen*.c             makes it, and lets the oracle run along
 *   oracle.c, place.c  run it in plain memory, one operation after another
 *   live.c, body.c     run it with Heddle
 *   mix.c              what a task does to memory, for both
 *
 * The oracle leaves in each task and operation what is to be expected; the
 * interpreter counts what happens. Both must agree, and so must all bytes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "heddle/heddle.h"

enum {
    PROG_DIMS = 3,
    PROG_AFTER = 4,
    PROG_EVENTS = 1024,
    PROG_THREADS = 3,
    PROG_MODES = HEDDLE_KERNEL_OPERANDS,
    PROG_ARG_HEAD = 16, /* task pointer (not hashed), salt */
};

/* In each dimension first, first + step, ...: extent of them. */
struct prog_box {
    size_t first[PROG_DIMS];
    size_t extent[PROG_DIMS];
    size_t step[PROG_DIMS];
};

struct prog_unit {
    int root;                    /* own number for a root */
    int parent;                  /* what it is a view of; -1: a root */
    struct heddle_layout layout; /* strides in the memory of the root */
    struct prog_box rel;         /* in the parent's index space */
    struct prog_box abs;         /* in the root's */
    size_t span;                 /* root: elements from first to last */
    size_t tile[2];              /* a tile of this size; 0: a box */
    bool is_runtime;             /* root: the runtime allocates */
    bool has_sum;
    bool is_live;   /* while generating: not let go of */
    bool is_shared; /* in parallel lists: commutative use only */
    int owner;      /* the list that may use it; -1: any */
};

enum prog_fail {
    FAIL_NONE,
    FAIL_CLEAN,  /* before anything is touched */
    FAIL_DIRTY,  /* after scribbling over all outputs */
    FAIL_LATE,   /* after all the work */
    FAIL_TIMEOUT /* its deadline has passed when it starts */
};

enum prog_shape {
    SHAPE_PLAIN,
    SHAPE_RETRY,   /* the first variant scribbles and fails */
    SHAPE_DECLINE, /* the first variant declines */
    SHAPE_SECOND,  /* only the second variant is allowed */
    SHAPE_SCRATCH, /* the variant wants scratch bytes */
    SHAPE_COST,    /* has a cost: timed and predicted */
    SHAPE_RECURSE, /* splits itself when the runtime likes */
    SHAPE_DIVIDE   /* splits itself when it says so */
};

struct prog_operand {
    enum heddle_mode mode;
    int unit;      /* a unit; of a child: the parent's operand, or -1 - local */
    int root;      /* operands with different values cannot overlap */
    bool is_whole; /* child: the very handle, else `rel` of it */
    struct prog_box rel;
    struct heddle_layout layout; /* the shape; strides are not used */
};

struct prog_task {
    struct prog *prog;
    unsigned id;
    unsigned nops;
    struct prog_operand *op;
    unsigned char *arg;
    size_t arg_bytes;
    int priority;
    unsigned spin;
    unsigned gang;
    enum prog_shape shape;
    enum prog_fail fail;
    bool has_call_modes; /* modes in the call, not in the kernel */

    struct prog_task **child;
    unsigned nchildren;
    uint32_t waits; /* bit i: wait after child i */
    bool swallows;  /* a child's failure is not its own */
    struct prog_unit *local;
    unsigned nlocals;

    bool has_opts, has_done, has_name;
    int event; /* -1: none */
    int group;
    int after[PROG_AFTER];
    unsigned nafter;
    bool is_doomed; /* its group or the context is cancelled in time */

    /* expected, by the oracle */
    unsigned want_runs, want_ends;
    heddle_status want;
    bool is_exact; /* which failure is known, not only that */

    /* seen */
    _Atomic unsigned runs, ends;
    _Atomic int status;
    const heddle_kernel *kernel;
};

enum prog_kind {
    OP_ROOT,
    OP_VIEW,
    OP_UNREF,
    OP_TASK, /* several: in one heddle_submit_n() */
    OP_WAIT,
    OP_ACQUIRE,
    OP_RELEASE,
    OP_ACQUIRE_ASYNC,
    OP_EVENT,
    OP_EVENT_AFTER,
    OP_COMPLETE,
    OP_EVENT_WAIT,
    OP_GROUP,
    OP_GROUP_WAIT,
    OP_GROUP_CANCEL,
    OP_RECORD,
    OP_LAUNCH,
    OP_RESTORE,
    OP_CANCEL,
    OP_PARALLEL
};

/* Values of `b` in OP_WAIT: is the status looked at? Lists that run in parallel
 * take failures away from each other. */
enum { WAIT_CHECKED, WAIT_BESIDE, WAIT_UNCHECKED };

struct prog_op;

struct prog_list {
    struct prog_op *op;
    size_t n, cap;
};

struct prog_graph {
    struct prog_task **task;
    unsigned ntasks;
    bool is_live; /* while generating */
};

struct prog_launch {
    struct prog_task *task; /* options and expectations of the launch */
    int recorded[PROG_AFTER], actual[PROG_AFTER];
    unsigned nbindings;
    size_t index[PROG_AFTER]; /* tasks that get another argument */
    unsigned char *arg[PROG_AFTER];
    unsigned nargs;
    unsigned passes;
    _Atomic unsigned seen_passes;
    unsigned want_passes;
};

struct prog_op {
    enum prog_kind kind;
    int a, b; /* numbers of a unit, an event, a group or a graph */
    enum heddle_mode mode;
    uint64_t salt;
    bool is_foreign;  /* another thread does it, later */
    heddle_status st; /* to complete with */
    struct prog_task **task;
    unsigned ntasks;
    struct prog_launch *launch;
    struct prog_list *list; /* PROG_THREADS of them */

    heddle_status want; /* OK, or any failure */
    uint64_t want_hash; /* of what an acquire sees; 0: unknown */
};

struct prog_config {
    unsigned nworkers;
    const char *sched;
    unsigned window;
    bool helps;
    int log_level;
    bool checks; /* the access checker, which has to find nothing */
    bool has_failures;
    bool is_virtual; /* devices and memories, simulated */
    unsigned nops;
};

struct prog {
    uint64_t seed;
    uint64_t rng;
    struct prog_config config;
    struct prog_unit *unit;
    size_t nunits, unit_cap;
    struct prog_list main;
    struct prog_task **task; /* all of them, children too */
    size_t ntasks, task_cap;
    int nevents, ngroups, ngraphs;
    bool is_free[PROG_EVENTS]; /* generator: events that come by themselves */
    struct prog_graph graph[8];
    heddle_event **event;  /* while it runs: the objects */
    heddle_kernel *kernel; /* a table, filled by body.c */
    size_t nkernels;
    void **block; /* memory that goes with the program */
    size_t nblocks, block_cap;
};

/* --- prog.c ----------------------------------------------------------------- */

/* What may be switched off to narrow a failure down: HEDDLE_WITHOUT. */
enum prog_feature {
    WITH_FAILURES = 1,
    WITH_NESTING = 2,
    WITH_GANGS = 4,
    WITH_GRAPHS = 8,
    WITH_EVENTS = 16,
    WITH_REDUCE = 32,
    WITH_COMMUTE = 64,
    WITH_VIEWS = 128,
    WITH_PARALLEL = 256,
    WITH_RECURSION = 512,
    WITH_ACQUIRE = 1024,
    WITH_UNREF = 2048,
    WITH_GROUPS = 4096,
    WITH_RETRIES = 8192,
    WITH_CHECKER = 16384
};

unsigned prog_features(void);

void *prog_alloc(struct prog *p, size_t n, size_t bytes);
uint64_t prog_random(struct prog *p);
/* 0 .. n - 1 */
size_t prog_below(struct prog *p, size_t n);
/* True in `percent` of all cases. */
bool prog_chance(struct prog *p, unsigned percent);
uint64_t prog_mix(uint64_t x);

int prog_add_unit(struct prog *p, const struct prog_unit *u);
struct prog_task *prog_add_task(struct prog *p);
struct prog_op *prog_add_op(struct prog *p, struct prog_list *l, enum prog_kind kind);
void prog_free(struct prog *p);
/* For whoever looks for the reason of a failure. */
void prog_print_op(const struct prog *p, const struct prog_op *op);

bool prog_box_overlap(const struct prog_box *a, const struct prog_box *b, unsigned ndim);
bool prog_box_contains(const struct prog_box *out, const struct prog_box *in, unsigned ndim);
/* `rel` inside of `abs`, in the index space that abs is given in. */
struct prog_box prog_box_inside(const struct prog_box *abs, const struct prog_box *rel,
                                unsigned ndim);

/* --- gen*.c -------------------------------------------------------- */

struct oracle;

struct prog *prog_generate(uint64_t seed, struct oracle **o_out);
/* Gives a task a new argument; of the size it has, if it has one. */
void gen_arg(struct prog *p, struct prog_task *t);

/* --- oracle.c ----------------------------------------------------------------- */

struct oracle *oracle_create(struct prog *p);
void oracle_destroy(struct oracle *o);
/* Does the operation; leaves in it and its tasks what is to be expected. */
void oracle_op(struct oracle *o, struct prog_op *op);
/* Would this task, with all its children, run to success now? */
bool oracle_predict(struct oracle *o, const struct prog_task *t);
/* Is everything in the unit what some task has written? */
bool oracle_is_defined(struct oracle *o, int unit);
bool oracle_is_marked(struct oracle *o, int unit);
bool oracle_event_failed(struct oracle *o, int event);
/* The memory of a root, and for each byte whether it is known. */
const unsigned char *oracle_memory(struct oracle *o, int root);
const bool *oracle_unknown(struct oracle *o, int root);
/* The contents a root of the caller's memory begins with. */
void prog_init_memory(const struct prog *p, int root, void *mem);

/* --- live.c ------------------------------------------------------------------- */

/* Runs it with Heddle and compares; a difference ends the program. */
void prog_run(struct prog *p, struct oracle *o);

#endif /* HEDDLE_TESTS_PROPERTY_PROG_H */
