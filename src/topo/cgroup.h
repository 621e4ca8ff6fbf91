/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOPO_CGROUP_H
#define HEDDLE_TOPO_CGROUP_H

/*
 * What the control groups of this process allow, version 1, 2 or both.
 */
#include <stdint.h>

#define HEDDLE_CGROUP_NO_LIMIT UINT64_MAX

struct heddle_cgroup {
    double cpus; /* quota / period; 0: no quota */
    uint64_t memory_limit;
    uint64_t memory_available; /* limit - use, reclaimable cache not counted */
};

/* The strictest over all levels from the process's group up. Cannot fail: what
 * is not there does not limit. `root` as in topo/parse.h. */
void heddle_cgroup_read(const char *root, struct heddle_cgroup *out);

/* Pure parts, for tests. */
/* cpu.max: "max 100000" or "150000 100000"; 0: no quota or malformed. */
double heddle_cgroup_cpu_max(const char *text);
/* cpu.cfs_quota_us and cpu.cfs_period_us of version 1. */
double heddle_cgroup_cfs(const char *quota, const char *period);
/* Bytes, "max", or version 1's huge number: the last two are no limit. */
uint64_t heddle_cgroup_bytes(const char *text);

#endif /* HEDDLE_TOPO_CGROUP_H */
