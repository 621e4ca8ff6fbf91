/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_SPEND_H
#define HEDDLE_ENERGY_SPEND_H

/* Private to energy: what the calls of heddle/energy_bound.h share. */
#include "heddle/energy_bound.h"

/* What to schedule, as this library knows it: eg.graph is &graph. */
struct heddle_spend_input {
    struct heddle_energy_graph eg;
    struct heddle_bound_graph graph;
};

/* Takes the structs of the caller, of whatever size, and checks joules and idle
 * power; the graph itself is checked by the functions that use it. */
HEDDLE_MUST_USE heddle_status heddle_spend_get(const struct heddle_energy_graph *from,
                                               struct heddle_spend_input *to, char *why,
                                               size_t why_bytes);

#endif /* HEDDLE_ENERGY_SPEND_H */
