/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_PLACE_PRIVATE_H
#define HEDDLE_ENERGY_PLACE_PRIVATE_H

/* Private to the two algorithms that place jobs. */
#include "base/scratch.h"
#include "heddle/energy_place.h"

struct heddle_energy_draft {
    const struct heddle_energy_job *jobs;
    size_t n;                          /* > 0 */
    struct heddle_energy_place_opts o; /* complete and checked */
    uint64_t total;                    /* of all durations */
    struct heddle_scratch tmp;

    /* To be filled in. */
    uint32_t *machine; /* [n] all THERE at first */
    double bound, proved;
    uint64_t unit_us;
};

/* place_free.c and place_due.c. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_place_free(struct heddle_energy_draft *d);
HEDDLE_MUST_USE heddle_status heddle_energy_place_due(struct heddle_energy_draft *d);

/* Jobs in ascending order of key[i]; NULL: no memory. */
const uint32_t *heddle_energy_place_order(struct heddle_scratch *mem, const uint64_t *key,
                                          size_t n);

#endif /* HEDDLE_ENERGY_PLACE_PRIVATE_H */
