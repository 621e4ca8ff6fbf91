/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_KINFO_H
#define HEDDLE_CORE_KINFO_H

/* Kernels as a context knows them. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "heddle/task.h"
#include "perf/perf.h"

/* What a context knows about a kernel. Constant once it is in the table, except
 * for `series`, `longest` and `shapes`. */
struct heddle_kinfo {
    const heddle_kernel *kernel;
    heddle_run_fn run; /* of the first variant */
    uint32_t id;
    unsigned noperands;
    unsigned nvariants;
    bool is_slow;  /* tasks of it take the slow path */
    bool is_short; /* no operands, not slow: children may take the way of child.c */
    bool has_core; /* some variant runs on a core */
    enum heddle_mode mode[HEDDLE_KERNEL_OPERANDS];
    _Atomic(struct heddle_perf_series *) series[HEDDLE_KERNEL_VARIANTS];
    _Atomic uint64_t longest;           /* ticks of the longest run on a core; 0: none yet */
    _Atomic(struct dev_shape *) shapes; /* with devices: what tasks cost */
    const heddle_kernel *given;         /* by the program; its size may be another */
    heddle_kernel *copy;                /* then `kernel` is this one; else NULL */
    struct heddle_kinfo *next;
};

/* A task of the kernel took so many ticks. */
static inline void heddle_kinfo_took(struct heddle_kinfo *k, uint64_t ticks)
{
    /* Relaxed: an estimate, of which an update may be lost. */
    if (HEDDLE_UNLIKELY(ticks > heddle_load_rlx(&k->longest)))
        heddle_store_rlx(&k->longest, ticks);
}

/* The entry of a kernel, checked and made on first sight. Any thread. */
heddle_status heddle_kinfo_get(heddle_ctx *ctx, const heddle_kernel *k, struct heddle_kinfo **out);
void heddle_kinfo_free_all(heddle_ctx *ctx);

#endif /* HEDDLE_CORE_KINFO_H */
