/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SIM_ENERGY_H
#define HEDDLE_TOOLS_SIM_ENERGY_H

/* The joules of a log that was made with an energy model; see sim/energy.c. */
#include "cmd/cmd.h"
#include "heddle/energy.h"

/* Prints them: active, idle, of each domain, and the product with the time. Returns
 * the exit status. */
int sim_energy_print(struct cli *c, const char *log, const heddle_energy *e);

#endif /* HEDDLE_TOOLS_SIM_ENERGY_H */
