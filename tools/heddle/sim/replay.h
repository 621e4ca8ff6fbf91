/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SIM_REPLAY_H
#define HEDDLE_TOOLS_SIM_REPLAY_H

/*
 * What a run would have copied with an ideal memory manager: the tasks of a log,
 * in the order and on the memories where they ran, through a cache of given
 * capacity per device.
 *
 * Rules    all operands of a task are in the memory of its worker at once. What
 *          is missing and read is loaded: from a memory with a straight link,
 *          else over the host, which counts twice. A write makes all other
 *          copies void. A victim whose copy is the only valid one is written
 *          back to the host. What is on devices at the end stays there. The
 *          runtime counts its copies by the same rules.
 * Victims  BELADY: the copy whose next use on its device is the last, where an
 *          overwrite elsewhere before that use means no use; among equals a copy that
 *          need not be written back. LRU: the copy that was used longest ago.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/machine.h"
#include "heddle/status.h"
#include "heddle/trace.h"

enum sim_victim { SIM_BELADY, SIM_LRU };

enum { SIM_NODES = 64, SIM_OPERANDS = 16 };

struct sim_step {
    uint32_t node;
    uint32_t nops;
    struct {
        uint32_t handle;
        uint32_t mode;
    } op[SIM_OPERANDS];
};

struct sim_replay {
    size_t nsteps, nhandles;
    struct sim_step *step;
    uint64_t *bytes;              /* of each handle */
    uint64_t capacity[SIM_NODES]; /* 0: no limit */
    uint64_t link[SIM_NODES];     /* mask of nodes with a link to this one */
};

/* The order of the log; capacity and links stay to be filled. HEDDLE_ENOMEM;
 * HEDDLE_EINVAL: views, or more operands or nodes than the limits. */
heddle_status sim_replay_read(struct sim_replay *r, const heddle_log *log);
void sim_replay_free(struct sim_replay *r);

struct sim_traffic {
    uint64_t load_bytes; /* to devices, hops included */
    uint64_t home_bytes; /* to the host */
};

/* HEDDLE_ENOMEM; HEDDLE_EINVAL: a task does not fit. */
heddle_status sim_replay_run(const struct sim_replay *r, enum sim_victim victim,
                             struct sim_traffic *out);

#endif /* HEDDLE_TOOLS_SIM_REPLAY_H */
