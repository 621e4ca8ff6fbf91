/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAT_PLAT_H
#define HEDDLE_PLAT_PLAT_H

/*
 * A machine as a description: classes of workers, memories, links, and how long
 * kernels take. Read from a file (docs/formats/machine.md) or from another
 * system's measurements; constant once it is made. Node 0 is the host's memory.
 *
 *   source              who reads it
 *   FILE                plat/file.c, our own text format
 *   starpu:DIR:NAME     plat/starpu.c: its measurements in DIR
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"
#include "heddle/task.h"

#define HEDDLE_PLAT_NAME 32

enum heddle_node_kind { HEDDLE_NODE_HOST, HEDDLE_NODE_DEVICE, HEDDLE_NODE_DISK };

struct heddle_plat_node {
    char name[HEDDLE_PLAT_NAME];
    enum heddle_node_kind kind;
    uint64_t bytes; /* 0: no limit */
};

/* Workers that are alike and share a memory: the cores, or one accelerator. */
struct heddle_plat_class {
    char name[HEDDLE_PLAT_NAME];
    char model[64]; /* classes with equal kind and model take equal times */
    enum heddle_device kind;
    unsigned type;     /* number of (kind, model) among the classes, from 0 */
    unsigned node;     /* its memory */
    unsigned nworkers; /* > 0 */
    double launch_ns;  /* added to every kernel */
    double gflops;     /* of one worker; 0: unknown. Used when no timing fits */
    double gbytes;     /* GB/s of one worker to its memory; 0: unknown */
};

struct heddle_plat_link {
    char name[HEDDLE_PLAT_NAME];
    unsigned from, to; /* nodes; a link goes one way */
    double bytes_per_ns;
    double latency_ns;
    int bus; /* -1: none */
};

struct heddle_plat_bus {
    char name[HEDDLE_PLAT_NAME];
    double bytes_per_ns;
};

/* Something that goes wrong on purpose. */
enum heddle_fault_kind {
    HEDDLE_FAULT_KERNEL, /* the nth launch on the class fails */
    HEDDLE_FAULT_COPY,   /* the nth copy to or from the node fails */
    HEDDLE_FAULT_ALLOC,  /* the nth allocation on the node fails */
    HEDDLE_FAULT_LOSE,   /* the class disappears at at_ns */
    HEDDLE_FAULT_SLOW    /* the class takes factor times as long from at_ns */
};

struct heddle_fault {
    enum heddle_fault_kind kind;
    unsigned where; /* class or node */
    uint64_t nth;   /* from 1 */
    double at_ns;
    double factor;
};

struct heddle_plat_table; /* timings: plat/table.c */

struct heddle_plat {
    struct heddle_allocator alloc;
    char name[64];
    struct heddle_plat_class *cls;
    unsigned ncls, ntypes;
    struct heddle_plat_node *node;
    unsigned nnodes;
    struct heddle_plat_link *link;
    unsigned nlinks;
    struct heddle_plat_bus *bus;
    unsigned nbuses;
    struct heddle_fault *fault;
    unsigned nfaults;
    /* What the runtime itself costs. */
    bool charges;     /* submit_ns too: not in files of version 1 */
    double submit_ns; /* one submission, on the submitter's clock */
    double task_ns;   /* per task on its worker */
    double wake_ns;   /* until a core that sleeps begins a task */
    double drive_ns;  /* per task of a device, on the one thread that drives all */
    double notice_ns; /* from its end there until others know */
    bool has_shares;  /* some kernels share their device, see heddle_plat_share() */
    struct heddle_plat_table *table;
};

/*
 * `source` as above. On failure *why (cap bytes) has one sentence with file and
 * line.
 *
 * HEDDLE_ENOENT   a file is not there
 * HEDDLE_EFORMAT  malformed, or what it describes makes no sense: no class, a
 *                 memory without a way to the host, a negative bandwidth, ...
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status heddle_plat_open(const struct heddle_allocator *a, const char *source,
                                               struct heddle_plat **plat_out, char *why,
                                               size_t cap);
void heddle_plat_destroy(struct heddle_plat *p);

/* One fault from words, as a `fault` line of a file has them. */
HEDDLE_MUST_USE heddle_status heddle_plat_add_fault(struct heddle_plat *p, const char *words,
                                                    char *why, size_t cap);

/* ns of one run of `kernel` on a worker of class `cls`; bytes: of all operands.
 * The timing of exactly these bytes; else a power law through the timings of
 * other sizes; else flops and bytes over the class's rates; NAN: unknown. launch_ns
 * is included. Cheap enough to be called once per kernel and shape; keep it. */
double heddle_plat_time(const struct heddle_plat *p, const char *kernel, unsigned cls, double bytes,
                        double flops);

/* The same for a variant that has timings of its own, as KERNEL:VARIANT. NAN: it has
 * none. */
double heddle_plat_variant_time(const struct heddle_plat *p, const char *kernel,
                                const char *variant, unsigned cls, double bytes, double flops);

/* ns that one of many runs of `kernel` at once on all workers of the class adds to
 * the time of all: its share of the device. NAN: it runs as if it were alone. */
double heddle_plat_share(const struct heddle_plat *p, const char *kernel, unsigned cls,
                         double bytes);

/* The link from one node straight to another, or -1. */
int heddle_plat_find_link(const struct heddle_plat *p, unsigned from, unsigned to);
/* Class or node by name, or -1. */
int heddle_plat_find_class(const struct heddle_plat *p, const char *name);
int heddle_plat_find_node(const struct heddle_plat *p, const char *name);

#endif /* HEDDLE_PLAT_PLAT_H */
