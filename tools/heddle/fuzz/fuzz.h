/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_FUZZ_FUZZ_H
#define HEDDLE_TOOLS_FUZZ_FUZZ_H

/*
 * Random programs for memories and devices: `heddle bench fuzz`.
 *
 *   fuzz/gen.c     a program from a seed: plain data
 *   fuzz/region.c  its recorded regions, and chains of tasks on a device
 *   fuzz/print.c   shows it
 *   fuzz/world.c   the machine it runs on, and what goes wrong there
 *   fuzz/mix.c     what a task does to memory, for Heddle and for the oracle
 *   fuzz/kernel.c  the same as kernels; fuzz/opencl.c for OpenCL, fuzz/cuda.c for
 *                  CUDA
 *   fuzz/live.c    runs the program with Heddle and keeps what is seen
 *   fuzz/log.c     looks at the log of the run
 *   fuzz/check.c   runs it again in plain memory, one operation after another,
 *                  and compares
 *   fuzz/arena.c   the memory of a run
 *
 * The oracle runs afterwards. A task that ended well is done again, one that
 * failed must have had a reason to, and from then on its outputs are unknown.
 * So the same code checks runs with and without injected failures.
 *
 * Threads  one run at a time. While it runs, kernels touch only the atomic
 *          members of their own task.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/mode.h"
#include "base/rng.h"
#include "heddle/heddle.h"

enum {
    FUZZ_DIMS = 3,
    FUZZ_ROOTS = 24,
    FUZZ_UNITS = 96,
    FUZZ_TASKS = 300,
    FUZZ_OPS = 2048,
    FUZZ_OPERANDS = 6,
    FUZZ_CHILDREN = 4,
    FUZZ_AFTER = 2,
    FUZZ_GPUS = 3,
    FUZZ_SCHEDS = 16,
    FUZZ_GRAPHS = 4,
    FUZZ_REGION = 16, /* tasks of a graph */
    FUZZ_SLOTS = 6,   /* units of one element of 8 bytes */
    FUZZ_BOUND = 4,   /* bindings and arguments of a launch */
    FUZZ_BIG = 7000,  /* elements of a large array */
    FUZZ_ALIGN = 256, /* of what a device allocates */
    FUZZ_SCRATCH = 192,
    FUZZ_WORD = FUZZ_ALIGN - FUZZ_SCRATCH /* of scratch, for the hash */
};

enum fuzz_device { FUZZ_CPU, FUZZ_SIM, FUZZ_OPENCL, FUZZ_DISK, FUZZ_CUDA, FUZZ_NDEVICES };

/* What may be left out to narrow a failure down. */
enum fuzz_part {
    PART_REDUCE = 1,
    PART_COMMUTE = 2,
    PART_SCRATCH = 4,
    PART_VIEWS = 8,
    PART_ADVICE = 16,
    PART_PINS = 32,
    PART_NESTING = 64,
    PART_GRAPHS = 128,
    PART_EVENTS = 256,
    PART_RETRIES = 512,
    PART_ACQUIRE = 1024,
    PART_UNREF = 2048,
    PART_ALIAS = 4096,
    PART_LATE = 8192,
    PART_LIMITS = 16384,
    PART_CHAINS = 32768,
    PART_BINDINGS = 65536
};
enum { FUZZ_NPARTS = 17 };
extern const char *const heddle_fuzz_parts[FUZZ_NPARTS + 1];

extern const char *const heddle_fuzz_devices[FUZZ_NDEVICES + 1];

/* --- the program --------------------------------------------------------- */

struct fuzz_box {
    size_t first[FUZZ_DIMS], extent[FUZZ_DIMS], step[FUZZ_DIMS];
};

struct fuzz_unit {
    int root;                    /* own number: it is one */
    int parent;                  /* of a view */
    struct heddle_layout layout; /* strides in the memory of the root */
    struct fuzz_box rel, abs;    /* in the parent's and in the root's elements */
    size_t offset;               /* first element, from the root's */
    size_t count;
    /* roots */
    size_t span; /* elements from first to last */
    bool is_runtime;
    bool has_views;
    bool has_sum; /* the ready-made one */

    bool is_live; /* while generating */
    bool is_held;

    /* while it runs */
    heddle_handle *h;
    unsigned char *mem; /* the user's memory */
    /* the oracle's */
    unsigned char *want;
    unsigned char *flag; /* per element, enum fuzz_flag */
};

enum fuzz_flag {
    FLAG_UNKNOWN = 1, /* the contract leaves the value open */
    FLAG_MUST = 2,    /* a task that reads it must be refused */
    FLAG_MAY = 4,     /* a task that reads it may be refused */
    FLAG_TOUCHED = 8
};

enum fuzz_sort {
    SORT_BOTH,    /* core and device */
    SORT_SCRATCH, /* the same, with scratch of the variant */
    SORT_CORE,
    SORT_DEVICE,
    SORT_NEST, /* cores; has children */
    /* CUDA: without scratch, so that a region of them may be one operation. The
     * last operand, one element of 8 bytes that is written, holds the hash. */
    SORT_PLAIN,
    SORT_N
};

struct fuzz_task {
    unsigned id;
    unsigned nops;
    int unit[FUZZ_OPERANDS]; /* of a child: the parent's operand */
    enum heddle_mode mode[FUZZ_OPERANDS];
    enum fuzz_sort sort;
    unsigned name; /* which of the kernels of this sort */
    uint64_t salt;
    uint64_t spin_ns; /* CUDA: takes its time before it reads */
    int priority;
    bool has_opts;
    unsigned retries, fail_runs; /* its first runs fail */
    bool declines;               /* on devices */
    unsigned variant, devices;
    int after[FUZZ_AFTER]; /* tasks */
    unsigned nafter;
    bool has_event; /* another task is after it */
    int by_hand;    /* an event that the program completes, or -1 */
    struct fuzz_task *child[FUZZ_CHILDREN];
    unsigned nchildren;
    bool waits;                          /* for its children */
    struct fuzz_box part[FUZZ_OPERANDS]; /* child: of the parent's operand */
    bool is_whole[FUZZ_OPERANDS];

    /* seen */
    struct fuzz_run *run;
    heddle_event *event;
    bool is_refused; /* by right: it does not exist */
    _Atomic unsigned runs, on_device, ends;
    _Atomic int status; /* HEDDLE_AGAIN: not told yet */
};

enum fuzz_kind {
    OP_ROOT,
    OP_VIEW,
    OP_UNREF,
    OP_TASK,
    OP_WAIT,
    OP_ACQUIRE,
    OP_RELEASE,
    OP_ADVISE,
    OP_EVENT,
    OP_COMPLETE,
    OP_LAUNCH
};

struct fuzz_graph {
    struct fuzz_task *task[FUZZ_REGION];
    unsigned ntasks;
    heddle_graph *g;
};

/* What a launch changes. */
struct fuzz_launch {
    int recorded[FUZZ_BOUND], actual[FUZZ_BOUND]; /* units */
    unsigned nbindings;
    unsigned task[FUZZ_BOUND]; /* of the graph, that get another salt */
    uint64_t salt[FUZZ_BOUND];
    unsigned nargs;
    unsigned passes;
};

struct fuzz_op {
    enum fuzz_kind kind;
    int unit;
    struct fuzz_task *task; /* LAUNCH: stands for the launch */
    struct fuzz_graph *graph;
    struct fuzz_launch launch;
    enum heddle_mode mode;
    uint64_t salt;
    enum heddle_advice advice;
    unsigned memory;
    int event;
    /* seen */
    heddle_status st;
    unsigned char *copy; /* what an acquire found, without gaps */
};

struct fuzz_config {
    enum fuzz_device device;
    const char *sched;
    unsigned nworkers;
    bool helps;
    bool has_faults;
    bool has_pins;
    bool has_nesting;
    bool has_big;        /* its first root is too large for the easy ways */
    bool ends_with_wait; /* before the end of the context */
    bool unrefs_late;    /* after the end of the context */
    size_t device_memory, memory_budget;
    unsigned ngpus;
    unsigned nnodes; /* memories that advice may name */
    bool has_loss, has_kernel_faults;
    unsigned nkernel_faults;
    char faults[512];
    char machine[4096];
};

struct fuzz_prog {
    uint64_t seed;
    struct heddle_rng rng;
    struct fuzz_config config;
    struct fuzz_unit unit[FUZZ_UNITS];
    unsigned nunits;
    struct fuzz_op op[FUZZ_OPS];
    unsigned nops;
    unsigned ntasks; /* all, also children and recorded ones */
    unsigned nevents;
    /* generator */
    struct fuzz_task *recent[16]; /* tasks that may be waited for */
    unsigned nrecent;
    int held[4];
    unsigned nheld;
    int open[4]; /* events to complete */
    unsigned nopen;
    struct fuzz_graph *graph[FUZZ_GRAPHS];
    unsigned ngraphs;
    int slot[FUZZ_SLOTS];
    unsigned nslots;
    size_t need_most;   /* bytes of the largest task on a device */
    size_t need_device; /* of those that run nowhere else */
    size_t need_region; /* of a recorded region as a whole */
    size_t need_host;
};

/* --- memory of a run ----------------------------------------------------- */

struct fuzz_arena {
    unsigned char *block[64];
    size_t size[64];
    unsigned nblocks, now;
    size_t used;
};

/* --- fuzz/arena.c -------------------------------------------------------- */

/* Zeroed; NULL: no memory. Goes with the next reset. */
void *fuzz_alloc(struct fuzz_arena *a, size_t n, size_t bytes);
void fuzz_arena_reset(struct fuzz_arena *a);
void fuzz_arena_fini(struct fuzz_arena *a);

/* --- one run ------------------------------------------------------------- */

/* Counts what a context takes from the heap. */
struct fuzz_memory {
    _Atomic int64_t live;
};

struct fuzz_setup {
    uint64_t tasks;   /* cut the program after so many; 0: do not */
    unsigned without; /* enum fuzz_part */
    bool has_faults;
    bool may_lose; /* devices go without being told to */
    bool prints;
    const char *folder;             /* for machine files and disks */
    const char *sched[FUZZ_SCHEDS]; /* those that know classes */
    unsigned nscheds;
    heddle_ctx *cuda; /* keeps the GPUs open from run to run */
    unsigned ncuda;
    FILE *err;
};

struct fuzz_run {
    const struct fuzz_setup *setup;
    struct fuzz_prog *prog;
    struct fuzz_arena *arena;
    struct fuzz_memory memory;
    heddle_ctx *ctx;
    heddle_event *event[FUZZ_TASKS];
    heddle_status end; /* of the context */
    bool is_lost;      /* a device */
    _Atomic unsigned scratch_errors;
    uint64_t evictions, copied;
    /* the verdict */
    bool is_wrong, is_leak;
    char why[320];
};

/* --- fuzz/gen.c ---------------------------------------------------------- */

/* False: no memory. */
bool fuzz_generate(struct fuzz_prog *p, struct fuzz_arena *a, const struct fuzz_setup *s,
                   enum fuzz_device device, uint64_t seed);
bool fuzz_overlap(const struct fuzz_box *a, const struct fuzz_box *b, unsigned ndim);
struct fuzz_box fuzz_inside(const struct fuzz_box *abs, const struct fuzz_box *rel, unsigned ndim);

static inline uint64_t fuzz_below(struct fuzz_prog *p, uint64_t n)
{
    return heddle_rng_below(&p->rng, n);
}

static inline bool fuzz_chance(struct fuzz_prog *p, unsigned percent)
{
    return heddle_rng_below32(&p->rng, 100) < percent;
}

/* --- fuzz/region.c ------------------------------------------------------- */

/* What stands for a recorded unit in this launch, and the salt of its i-th task. */
int fuzz_launch_unit(const struct fuzz_launch *l, int unit);
uint64_t fuzz_launch_salt(const struct fuzz_op *op, unsigned i);

/* --- fuzz/print.c --------------------------------------------------------- */

void fuzz_print(FILE *f, const struct fuzz_prog *p);

/* --- fuzz/world.c -------------------------------------------------------- */

/* Before the program is drawn: device, workers, scheduler, machine. */
void fuzz_world(struct fuzz_prog *p, const struct fuzz_setup *s, enum fuzz_device device);
/* Afterwards: sizes of memories that just suffice, times of faults. */
void fuzz_world_sizes(struct fuzz_prog *p, const struct fuzz_setup *s);
/* Which schedulers know classes; false: a context could not be made. */
bool fuzz_find_scheds(struct fuzz_setup *s);
/* How many GPUs there are; they stay open until fuzz_drop_cuda(). */
void fuzz_find_cuda(struct fuzz_setup *s);
void fuzz_drop_cuda(struct fuzz_setup *s);
heddle_status fuzz_open(struct fuzz_run *r);

/* --- fuzz/log.c ---------------------------------------------------------- */

/* Where the log of this run is; false: it writes none. */
bool fuzz_log_path(const struct fuzz_run *r, char *path, size_t cap);
/* After the context ended. */
void fuzz_log_check(struct fuzz_run *r);

/* --- fuzz/mix.c ---------------------------------------------------------- */

struct fuzz_mem {
    unsigned char *ptr;
    const struct heddle_layout *layout;
    enum heddle_mode mode;
};

static inline bool fuzz_reads(enum heddle_mode m)
{
    return heddle_mode_reads(m);
}

static inline bool fuzz_writes(enum heddle_mode m)
{
    return heddle_mode_changes(m);
}

/* Tasks that write in any order with their like: the outcome must not depend on it, so they do not
 * look at the operand, and add to it. */
static inline bool fuzz_adds(enum heddle_mode m)
{
    return heddle_mode_changes(m) && heddle_mode_is_shared(m);
}

/* All reads, then all writes. False: private memory was not private. */
bool fuzz_mix(const struct fuzz_mem *mem, unsigned n, uint64_t salt);
/* Garbage over everything that is written. */
void fuzz_scribble(const struct fuzz_mem *mem, unsigned n, uint64_t salt);
/* What the program does with what it has acquired. */
void fuzz_mix_acquired(const struct fuzz_mem *mem, uint64_t salt);
/* All elements, row by row, to or from memory without gaps. */
void fuzz_pack(const struct fuzz_mem *mem, unsigned char *out);
/* The hash of one operand, begun with h; and the value that index i of a
 * written operand gets: the contract of the versions for devices. */
uint64_t fuzz_fold(const struct fuzz_mem *mem, uint64_t h);
uint64_t fuzz_value(uint64_t h, uint64_t op, uint64_t i);
/* dst += src, element by element, as wrapping integers of the type's size. */
void fuzz_sum(unsigned char *dst, const unsigned char *src, size_t bytes, size_t elem);

/* --- fuzz/kernel.c ------------------------------------------------------- */

struct fuzz_arg {
    struct fuzz_task *task;
    uint64_t salt;
};

const heddle_kernel *fuzz_kernel(const struct fuzz_task *t, enum fuzz_device device);
struct fuzz_task *fuzz_task_of(struct heddle_exec *x);
uint64_t fuzz_salt_of(struct heddle_exec *x);
extern const struct heddle_reduction heddle_fuzz_reduction;

/* --- fuzz/opencl.c ------------------------------------------------------- */

heddle_status fuzz_opencl_run(struct heddle_exec *x);

/* --- fuzz/cuda.c --------------------------------------------------------- */

heddle_status fuzz_cuda_run(struct heddle_exec *x);

/* --- fuzz/live.c, fuzz/check.c ------------------------------------------- */

/* Runs it; false and r->why when a call was refused that must not be. */
bool fuzz_live(struct fuzz_run *r);
void fuzz_check(struct fuzz_run *r);
/* Notes the first thing that is wrong. */
void fuzz_wrong(struct fuzz_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif /* HEDDLE_TOOLS_FUZZ_FUZZ_H */
