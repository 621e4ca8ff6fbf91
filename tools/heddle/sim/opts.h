/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SIM_OPTS_H
#define HEDDLE_TOOLS_SIM_OPTS_H

/*
 * Options of the benchmarks that run graphs in virtual time. Where nothing else is
 * said, a function returns 0, or the exit status after a sentence.
 */
#include "sim/graph.h"

struct sim_machines {
    const char *source[SIM_MAX_MACHINES];
    unsigned n;
};

/* Takes every --machine out of argv, which is NULL-terminated again after it.
 * Returns 0, or the exit status after a sentence. */
int sim_take_machines(struct cli *c, int *argc, char **argv, struct sim_machines *out);
/* "8,12,16": from 1 to SIM_MAX_TILES each. Returns 0, or the exit status. */
int sim_parse_tiles(struct cli *c, const char *text, uint32_t *tiles, unsigned max,
                    unsigned *n_out);
int sim_check_workload(struct cli *c, const char *name, enum sim_workload *out);

/* --- schedulers ------------------------------------------------------------ */

bool sim_is_policy(const char *name);
/* `name` may be NULL: the default. */
int sim_check_policy(struct cli *c, const char *name);
/* The same, and it may be "all". */
int sim_check_policies(struct cli *c, const char *name);

/* `is_one_of_all`: it may be that the machine has nothing for this policy. */
typedef int sim_policy_fn(void *user, const char *policy, bool is_one_of_all);
/* Calls run() with the policy of that name, or with each one for "all", until one call
 * returns no 0. Returns what the last one did. */
int sim_each_policy(const char *name, sim_policy_fn *run, void *user);

#endif /* HEDDLE_TOOLS_SIM_OPTS_H */
