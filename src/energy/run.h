/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_RUN_H
#define HEDDLE_ENERGY_RUN_H

/* Private: what share of a task's watts a domain sees. */
#include "energy/load.h"

/* Does the model have rows of their own for sizes? */
bool heddle_energy_has_sizes(const heddle_energy *e);

/* Of the active watts of a device: 0 if the domain does not count it; domains
 * that count the same device share in proportion to their idle watts, as the
 * model does not say more. */
double heddle_energy_share(const heddle_energy *e, size_t domain, const char *device);

#endif /* HEDDLE_ENERGY_RUN_H */
