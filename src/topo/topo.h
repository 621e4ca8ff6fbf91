/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOPO_TOPO_H
#define HEDDLE_TOPO_TOPO_H

/*
 * The host as this process may use it: CPUs, how near they are to each other,
 * memory. Everything is found once, at creation, and never changes after, so
 * any thread may read it without a lock.
 *
 * CPUs are those of the calling thread's affinity mask, which is how cpusets,
 * job schedulers and taskset speak. A CPU quota and a memory limit of the
 * control groups (v1 and v2, all levels) are honoured too.
 *
 * An `os` number is the kernel's. All other numbers are indices from 0, dense
 * over what is usable.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#define HEDDLE_TOPO_MODEL_MAX 96

struct heddle_topo_cpu {
    int os;
    int core;
    int package;
    int node;                              /* index into heddle_topo.node */
    int l2, l3;                            /* equal number: shared cache; -1: none or unknown */
    unsigned smt;                          /* 0 for the first CPU of its core, then 1, ... */
    uint64_t l1_bytes, l2_bytes, l3_bytes; /* data; of one cache; 0: unknown */
};

struct heddle_topo_node {
    int os;
    unsigned ncpus; /* usable ones; 0: memory only */
    uint64_t total_bytes;
    uint64_t free_bytes; /* free or reclaimable without swapping, estimate */
};

struct heddle_topo {
    struct heddle_allocator a;
    const char *source;          /* "hwloc" or "sysfs" */
    struct heddle_topo_cpu *cpu; /* ascending by os */
    unsigned ncpus;              /* at least 1 */
    unsigned ncpus_online;       /* of the machine, usable or not */
    unsigned ncores, npackages, nl2, nl3;
    struct heddle_topo_node *node; /* ascending by os */
    unsigned nnodes;               /* at least 1 */
    double cpu_quota;              /* CPUs worth of time; 0: no quota */
    uint64_t memory_total;         /* of the machine or of the control group */
    uint64_t memory_available;     /* now; 0: unknown */
    uint64_t page_bytes;
    uint64_t huge_page_bytes; /* 0: none */
    char model[HEDDLE_TOPO_MODEL_MAX];
};

/* How far two CPUs are: the nearest thing they share. */
enum heddle_topo_distance {
    HEDDLE_TOPO_SAME = 0, /* the same CPU */
    HEDDLE_TOPO_CORE,
    HEDDLE_TOPO_L2,
    HEDDLE_TOPO_L3,
    HEDDLE_TOPO_NODE,
    HEDDLE_TOPO_PACKAGE,
    HEDDLE_TOPO_MACHINE, /* nothing below; also: not known */
};

/* Zero means default. */
struct heddle_topo_opts {
    const char *root;   /* folder that holds proc/ and sys/; NULL: the real */
    const char *source; /* NULL: the first that works */
    const int *cpus;    /* os numbers, any order; NULL: the affinity mask, or
                           all online ones when root is given */
    unsigned ncpus;
};

/*
 * `a` may be NULL; it is copied.
 *
 * HEDDLE_OK      *topo_out is a new object
 * HEDDLE_EINVAL  a CPU of opts is negative, too large or named twice
 * HEDDLE_ENOMEM  no memory
 * HEDDLE_ENOENT  opts name a source this build does not have, or no CPU is
 *                there
 * HEDDLE_ENOSYS  no source could read the machine
 */
HEDDLE_MUST_USE heddle_status heddle_topo_create(const struct heddle_allocator *a,
                                                 struct heddle_topo **topo_out);
HEDDLE_MUST_USE heddle_status heddle_topo_create_with(const struct heddle_allocator *a,
                                                      const struct heddle_topo_opts *opts,
                                                      struct heddle_topo **topo_out);

/* NULL is fine. */
void heddle_topo_destroy(struct heddle_topo *t);

/* One worker per core, but not more than the CPU quota, rounded up, pays for.
 * At least 1. */
unsigned heddle_topo_default_workers(const struct heddle_topo *t);

/* Index into t->cpu of the kernel's CPU number; -1: not usable. */
int heddle_topo_find(const struct heddle_topo *t, int os);

/* a and b: the kernel's CPU numbers; unknown ones are MACHINE away. */
enum heddle_topo_distance heddle_topo_distance(const struct heddle_topo *t, int a, int b);

/*
 * Where to bind nworkers workers: cpu_out[i] is the kernel's CPU number of
 * worker i. As few packages as hold one worker per core; within them the
 * workers are spread over the last-level caches; second and later CPUs of a
 * core only when all cores have a worker; CPUs twice only when all have one.
 * Consecutive workers are near each other.
 *
 * HEDDLE_ENOMEM  no memory for the work area
 */
HEDDLE_MUST_USE heddle_status heddle_topo_bind_order(const struct heddle_topo *t, unsigned nworkers,
                                                     int *cpu_out);

/*
 * In which order worker `self` of n should look for work at the others:
 * nearest first, workers equally far in the order self + 1, self + 2, ... so
 * that two thieves do not begin with the same victim. cpu[i] is the kernel's
 * CPU number of worker i, -1 when it is not bound. Writes n - 1 workers.
 *
 * HEDDLE_EINVAL  self >= n
 */
HEDDLE_MUST_USE heddle_status heddle_topo_steal_order(const struct heddle_topo *t, const int *cpu,
                                                      unsigned n, unsigned self,
                                                      unsigned *order_out);

#endif /* HEDDLE_TOPO_TOPO_H */
