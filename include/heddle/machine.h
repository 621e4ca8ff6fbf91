/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MACHINE_H
#define HEDDLE_MACHINE_H

/*
 * heddle/machine.h - the host, as this process may use it.
 *
 * All counts are of what this process may use: they honour the CPU affinity of the
 * calling thread, which cpusets and job schedulers set, and the limits of control groups.
 *
 * Threads:  any function may be called from any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the strings below. */
#define HEDDLE_MACHINE_MODEL_MAX  96
#define HEDDLE_MACHINE_SOURCE_MAX 16

/* The machine that this process runs on. */
struct heddle_machine_info {
    size_t size;          /* set it to sizeof(struct heddle_machine_info) */
    uint32_t cpus;        /* usable CPUs, hyperthreads counted */
    uint32_t cpus_online; /* of the machine, usable or not */
    uint32_t cores;       /* usable cores */
    uint32_t packages;    /* sockets with a usable core */
    uint32_t numa_nodes;  /* nodes memory may come from */
    uint32_t workers;     /* workers a context starts by default */
    double cpu_quota;     /* CPUs worth of time; 0: no quota */

    /* Size of one data cache as the first usable CPU has it, and how many of
     * them the usable CPUs have. 0: unknown. */
    uint64_t l1_bytes, l2_bytes, l3_bytes;
    uint32_t l2_caches, l3_caches;

    uint64_t memory_total;     /* of the machine or of the control group */
    uint64_t memory_available; /* at this moment; 0: unknown */
    uint64_t page_bytes;
    uint64_t huge_page_bytes; /* 0: none */

    char model[HEDDLE_MACHINE_MODEL_MAX];   /* of the processor */
    char source[HEDDLE_MACHINE_SOURCE_MAX]; /* where the facts are from: "hwloc", "sysfs" */
};

/*
 * Looks at the machine and fills `info`, of which only `size` is read.
 *
 * HEDDLE_OK      *info is filled
 * HEDDLE_EINVAL  info is NULL or has no size
 * HEDDLE_ENOMEM  no memory to look
 * HEDDLE_ENOSYS  the machine could not be read
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_machine_query(struct heddle_machine_info *info);

/*
 * The description of a machine, to simulate and to compare schedulers on. Sources:
 *
 *   FILE               a text file, docs/formats/machine.md
 *   starpu:DIR:NAME    measurements of StarPU: DIR/bus/NAME.config and so on,
 *                      DIR/codelets/45/KERNEL.NAME
 *
 * Constant once it is open: any thread may read it.
 */
typedef struct heddle_machine heddle_machine;

/* Bytes of a name. */
#define HEDDLE_MACHINE_NAME_MAX 64

/*
 * Reads the description of a machine.
 *
 * HEDDLE_OK       *out is the machine; close it with heddle_machine_close()
 * HEDDLE_EINVAL   source or out is NULL
 * HEDDLE_ENOENT   a file is not there
 * HEDDLE_EIO      a file cannot be read
 * HEDDLE_EFORMAT  a file is malformed, or describes a machine that makes no sense
 * HEDDLE_ENOMEM   no memory
 *
 * On failure `why` (why_bytes bytes; may be NULL) has one sentence, with file and line.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_machine_open(const char *source,
                                                             heddle_machine **out, char *why,
                                                             size_t why_bytes);

/* Frees a description. NULL is fine. */
HEDDLE_API void heddle_machine_close(heddle_machine *m);

/* What a description has. This struct and the next ones begin with their size, as
 * heddle_machine_info does. */
struct heddle_machine_counts {
    size_t size;
    uint32_t classes; /* kinds of workers that share a memory */
    uint32_t types;   /* different (kind, model) among them */
    uint32_t workers; /* of all classes */
    uint32_t nodes;   /* memories; 0 is the host's */
    uint32_t links;   /* one way each */
    uint32_t buses;
    uint32_t faults;  /* things that go wrong on purpose */
    double submit_ns; /* cost of one submission */
    double task_ns;   /* overhead per task on its worker */
    char name[HEDDLE_MACHINE_NAME_MAX];
    double wake_ns;   /* from waking a sleeping core until it begins a task */
    double drive_ns;  /* per task of a device, on the device thread */
    double notice_ns; /* from the end of such a task until the device thread sees it */
};

/* A class of a described machine. */
struct heddle_machine_class {
    size_t size;
    char name[HEDDLE_MACHINE_NAME_MAX];
    char model[HEDDLE_MACHINE_NAME_MAX];
    uint32_t kind;     /* enum heddle_device */
    uint32_t type;     /* classes of one type take equal times */
    uint32_t node;     /* its memory */
    uint32_t nworkers; /* > 0 */
    double launch_ns;  /* added to every kernel */
    double gflops;     /* of one worker; 0: unknown */
    double gbytes;     /* GB/s of one worker to its memory; 0: unknown */
};

/* heddle_machine_node.kind */
enum heddle_machine_memory { HEDDLE_MEMORY_HOST, HEDDLE_MEMORY_DEVICE, HEDDLE_MEMORY_DISK };

/* A memory of a described machine. */
struct heddle_machine_node {
    size_t size;
    char name[HEDDLE_MACHINE_NAME_MAX];
    uint32_t kind;  /* enum heddle_machine_memory */
    uint64_t bytes; /* 0: no limit */
};

/* A link of a described machine. */
struct heddle_machine_link {
    size_t size;
    char name[HEDDLE_MACHINE_NAME_MAX];
    uint32_t from, to;   /* nodes */
    double bytes_per_ns; /* equal to GB/s */
    double latency_ns;
    int32_t bus;             /* links of a bus share its bandwidth; -1: none */
    double bus_bytes_per_ns; /* 0: no bus */
};

/*
 * The parts of a description; set out->size before.
 *
 * HEDDLE_OK      *out is filled
 * HEDDLE_EINVAL  an argument is NULL, or out has no size
 * HEDDLE_ENOENT  there is no such class, node or link
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_machine_describe(const heddle_machine *m,
                                                                 struct heddle_machine_counts *out);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_machine_get_class(const heddle_machine *m,
                                                                  uint32_t i,
                                                                  struct heddle_machine_class *out);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_machine_get_node(const heddle_machine *m,
                                                                 uint32_t i,
                                                                 struct heddle_machine_node *out);
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_machine_get_link(const heddle_machine *m,
                                                                 uint32_t i,
                                                                 struct heddle_machine_link *out);

/*
 * The ns of one run of `kernel` on a worker of class `cls`; bytes: of all operands,
 * flops: 0 when unknown. From the timing for exactly these bytes; else by a power law
 * through other timings; else by rates. NAN: not known.
 */
HEDDLE_API double heddle_machine_time(const heddle_machine *m, const char *kernel, uint32_t cls,
                                      double bytes, double flops);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_MACHINE_H */
