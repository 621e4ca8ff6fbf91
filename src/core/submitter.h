/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_SUBMITTER_H
#define HEDDLE_CORE_SUBMITTER_H

/* A submitter of tasks: its cells, its lane of the log, its kernels. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "core/kinfo.h"
#include "task/task.h"
#include "trace/trace.h"

/* A maker of tasks: the holder of the submission lock, or a worker. */
struct submitter {
    struct heddle_slab slab;
    struct heddle_domain domain; /* of the context; workers do not use it */
    int pusher;                  /* worker number for the scheduler */
    unsigned bell;               /* slot to ring */
    struct heddle_trace_lane *lane;
    uint64_t next_id, end_id;
    struct {
        const heddle_kernel *kernel;
        struct heddle_kinfo *kinfo;
    } cache[16];
    struct heddle_access *acc; /* scratch for tasks with many operands */
    unsigned acc_cap;
};

static inline heddle_status submitter_kinfo(heddle_ctx *ctx, struct submitter *s,
                                            const heddle_kernel *k, struct heddle_kinfo **out)
{
    const size_t i = ((uintptr_t)k >> 4) % 16;

    if (HEDDLE_LIKELY(s->cache[i].kernel == k && k != NULL)) {
        *out = s->cache[i].kinfo;
        return HEDDLE_OK;
    }
    HEDDLE_TRY(heddle_kinfo_get(ctx, k, out));
    s->cache[i].kernel = k;
    s->cache[i].kinfo = *out;
    return HEDDLE_OK;
}

#endif /* HEDDLE_CORE_SUBMITTER_H */
