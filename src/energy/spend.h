/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_SPEND_H
#define HEDDLE_ENERGY_SPEND_H

/* Private to energy: what the calls of heddle/energy_bound.h share. */
#include "heddle/energy_bound.h"

/* Joules and idle power; the graph itself is checked by those who use it. */
HEDDLE_MUST_USE heddle_status heddle_spend_check(const struct heddle_energy_graph *eg, char *error,
                                                 size_t bytes);

#endif /* HEDDLE_ENERGY_SPEND_H */
