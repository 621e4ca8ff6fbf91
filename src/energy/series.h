/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_SERIES_H
#define HEDDLE_ENERGY_SERIES_H

/* Private: the samples of a log, per domain, as steps of energy. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scratch.h"
#include "heddle/trace.h"

/* The counter went up by `joules`, which is the energy from `from` to `to`: when it
 * was first seen with its old and its new value, or when these came about if that
 * is known. `seen` is the last reading of the old one. */
struct heddle_energy_step {
    int64_t from, to;
    double joules;
    int64_t seen;
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
HEDDLE_MUST_USE heddle_status heddle_energy_series_get(struct heddle_scratch *mem,
                                                       const heddle_log *log,
                                                       struct heddle_energy_series **out,
                                                       size_t *n_out);

/* updates.c: moves the ends of steps to the updates of the counter, if these are
 * regular and readings come more often. */
void heddle_energy_find_updates(struct heddle_energy_series *s);

#endif /* HEDDLE_ENERGY_SERIES_H */
