/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_SERIES_H
#define HEDDLE_ENERGY_SERIES_H

/* Private: the samples of a log, per domain, as steps of energy. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scratch.h"
#include "heddle/trace.h"

/* The counter went up by `joules`; it was read before that at `from`, and after
 * it at `to`. */
struct heddle_energy_step {
    int64_t from, to;
    double joules;
};

struct heddle_energy_series {
    const char *name, *device;
    size_t nsamples, nsteps;
    struct heddle_energy_step *step; /* in order of time */
    size_t nback;                    /* readings below the one before */
    size_t njumps;                   /* far above what is usual */
    size_t ngaps;                    /* marked as such */
    size_t nwraps;
};

/*
 * All series of a log that have a sample, in the order of their numbers.
 * Readings that did not change are left out: a counter that is read more often
 * than it is updated has steps at its updates. HEDDLE_ENOMEM.
 */
HEDDLE_MUST_USE heddle_status
heddle_energy_series_get(struct heddle_scratch *mem, const heddle_log *log,
                         struct heddle_energy_series **out, size_t *n_out);

#endif /* HEDDLE_ENERGY_SERIES_H */
