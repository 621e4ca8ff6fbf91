/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MACHINE_H
#define HEDDLE_MACHINE_H

/*
 * heddle/machine.h - the host, as this process may use it.
 *
 * Counts are of what is usable: the calling thread's CPU affinity, which is
 * how cpusets and job schedulers speak, and the limits of the control groups
 * are honoured.
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

#define HEDDLE_MACHINE_MODEL_MAX  96
#define HEDDLE_MACHINE_SOURCE_MAX 16

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
    char source[HEDDLE_MACHINE_SOURCE_MAX]; /* who told: "hwloc" or "sysfs" */
};

/*
 * Looks at the machine and fills `info`, of which only `size` is read. A
 * smaller size, from a program built against an older header, gets the members
 * it knows; of a larger one the rest is zeroed.
 *
 * HEDDLE_OK      *info is filled
 * HEDDLE_EINVAL  info is NULL or info->size is less than the first version's
 * HEDDLE_ENOMEM  no memory to look
 * HEDDLE_ENOSYS  the machine could not be read
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_machine_query(struct heddle_machine_info *info);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_MACHINE_H */
