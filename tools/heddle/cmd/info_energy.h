/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_CMD_INFO_ENERGY_H
#define HEDDLE_TOOLS_CMD_INFO_ENERGY_H

/* The energy counters of the machine, for `heddle info`. */
#include <stdio.h>

#include "base/json.h"

void info_energy_json(struct heddle_json *j); /* key and value */
void info_energy_lines(FILE *out);

#endif /* HEDDLE_TOOLS_CMD_INFO_ENERGY_H */
