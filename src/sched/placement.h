/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_PLACEMENT_H
#define HEDDLE_SCHED_PLACEMENT_H

/*
 * A placement file in memory: which task runs where, and in which order. The
 * format is described in docs/formats/placement.md.
 */
#include "base/map.h"
#include "sched/sched.h"

struct heddle_placement_entry {
    uint64_t id;
    uint64_t order;
    uint32_t target; /* a class; or ncls + a worker */
    uint32_t place;  /* from 0: by order, then line */
};

struct heddle_placement {
    const struct heddle_allocator *alloc;
    struct heddle_placement_entry *entry; /* sorted by place */
    size_t n, cap;
    struct heddle_map by_id; /* id -> index + 1 */
};

/* HEDDLE_ENOENT, HEDDLE_EIO: the file is not there or cannot be read. HEDDLE_EFORMAT:
 * a line is malformed, or the path leads to no plain file of at most 1 GiB.
 * HEDDLE_ENOMEM. env->why gets a sentence with path and line. Targets that this
 * machine does not have are left out. End with fini() after a failure too. */
HEDDLE_MUST_USE heddle_status heddle_placement_read(struct heddle_placement *p,
                                                    const struct heddle_sched_env *env,
                                                    const char *path);
void heddle_placement_fini(struct heddle_placement *p);

/* The index of a task's entry; UINT32_MAX: it has none. Any thread. */
uint32_t heddle_placement_find(const struct heddle_placement *p, uint64_t id);

#endif /* HEDDLE_SCHED_PLACEMENT_H */
